"""What is shipped: a wheel with every rule in it, and hooks and an action that name options there are."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from torchdet_lint.cli.options import check_parser

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    pytest.importorskip("hatchling")
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return zipfile.ZipFile(next(place.glob("*.whl")))


def test_a_wheel_carries_every_rule(wheel: zipfile.ZipFile) -> None:
    shipped = {name.removeprefix("torchdet_lint/") for name in wheel.namelist() if name.endswith(".toml")}
    assert shipped == {str(path.relative_to(ROOT)) for path in (ROOT / "rules").rglob("*.toml")}
    assert len(shipped) > 5


def test_a_wheel_carries_the_package_alone(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0].split("-")[0] for name in wheel.namelist()} == {"torchdet_lint", "torchdet_lint.pth"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name]


def test_the_wheel_lints_without_the_checkout(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path / "site")
    (tmp_path / "a.py").write_text("import torch\nx = 1  # noqa: TDL201\n")
    program = (
        "import sys; sys.path.insert(0, 'site'); "
        "from torchdet_lint.cli.main import main; sys.exit(main(['a.py', '-q']))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "TDL002" in done.stdout


def test_it_needs_no_torch(wheel: zipfile.ZipFile) -> None:
    metadata = wheel.read(next(name for name in wheel.namelist() if name.endswith("METADATA"))).decode()
    needed = re.findall(r"^Requires-Dist: ([\w-]+)(.*)$", metadata, re.MULTILINE)
    assert sorted(name for name, rest in needed if "extra ==" not in rest) == [
        "libcst", "msgspec", "pathspec", "pyyaml", "rich", "tomli"
    ]  # fmt: skip


@pytest.mark.parametrize("name", [".pre-commit-hooks.yaml", "action.yml"])
def test_hooks_and_action_name_options_there_are(name: str) -> None:
    parser = check_parser("check")
    known = {option for action in parser._actions for option in action.option_strings}
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if "torchdet-lint check" in line or "args+=" in line]
    used = {option for line in commands for option in re.findall(r"--[a-z-]+", line)}
    assert used
    assert used <= known


def test_the_action_runs_no_code_of_the_checkout(tmp_path: Path) -> None:
    steps = {step.get("name"): step for step in _action()["runs"]["steps"]}
    (tmp_path / "pip.py").write_text("print('PWNED')\n")
    (tmp_path / "empty").mkdir()
    bin_ = _bin(tmp_path, "python", f'exec {sys.executable} "$@"')
    environment = {"PATH": f"{bin_}:/usr/bin:/bin", "ACTION_PATH": str(tmp_path / "empty")}
    done = _bash(steps["Install"]["run"], tmp_path, environment)
    assert "PWNED" not in done.stdout
    assert "empty" in done.stderr, "pip itself was asked, or this shows nothing"


def test_the_action_takes_paths_over_several_lines(tmp_path: Path) -> None:
    steps = {step.get("name"): step for step in _action()["runs"]["steps"]}
    bin_ = _bin(tmp_path, "torchdet-lint", "printf '%s\\n' \"$@\"")
    environment = {
        "PATH": f"{bin_}:/usr/bin:/bin",
        "TORCHDET_PATHS": "scripts\nsrc notebooks\n",
        "TORCHDET_ARGS": "--select TDL1\n--exit-zero\n",
        "TORCHDET_FORMAT": "github",
        "TORCHDET_FILE": "",
    }
    done = _bash(steps["Lint"]["run"], tmp_path, environment)
    assert done.returncode == 0, done.stderr
    told = done.stdout.split("\n")[:-1]
    assert told == "check --output-format github --select TDL1 --exit-zero scripts src notebooks".split()


def _action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return found


def _bin(folder: Path, name: str, script: str) -> Path:
    """A folder with an executable `name` in it."""
    place = folder / "bin"
    place.mkdir()
    (place / name).write_text(f"#!/bin/sh\n{script}\n")
    (place / name).chmod(0o755)
    return place


def _bash(script: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `script` as GitHub runs the steps of an action."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
