"""What is shipped: a wheel with every rule in it, and hooks and an action that name options there are."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml

from torchdet_lint import __version__
from torchdet_lint.catalogue import compiled, texts
from torchdet_lint.cli.options import check_parser

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """sdist and wheel by name, of which each was built twice: of the checkout and of the unpacked sdist."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("dist", ROOT / "release/dist.py")
    assert spec is not None
    assert spec.loader is not None
    dist = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dist)
    files: dict[str, bytes] = dist.twice(tmp_path_factory.mktemp("dist"))
    return files


@pytest.fixture(scope="module")
def wheel(built: dict[str, bytes]) -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(next(data for name, data in built.items() if name.endswith(".whl"))))


def test_two_builds_are_the_same_bytes(built: dict[str, bytes]) -> None:
    """The fixture raises where they are not."""
    assert [name.rpartition(".")[2] for name in sorted(built)] == ["whl", "gz"]


def test_the_recipe_needs_what_the_project_needs() -> None:
    text = (ROOT / "release/conda-forge/recipe.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(text)
    configured = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = configured["project"]
    host = {one.replace("msgspec-python ", "msgspec ").replace(" ", "") for one in recipe["requirements"]["host"]}
    assert set(configured["build-system"]["requires"]) <= host
    run = {one.replace("msgspec-python ", "msgspec ").replace(" ", "") for one in recipe["requirements"]["run"]}
    assert run - {"python>=${{python_min}}"} == set(project["dependencies"])
    assert project["requires-python"] == f">={recipe['context']['python_min']}"
    assert recipe["context"]["version"] == __version__
    (script,) = (f"{name} = {place}" for name, place in project["scripts"].items())
    assert recipe["build"]["python"]["entry_points"] == [script]


def test_a_wheel_carries_every_rule(wheel: zipfile.ZipFile) -> None:
    shipped = {name.removeprefix("torchdet_lint/") for name in wheel.namelist() if name.endswith(".toml")}
    assert shipped == {str(path.relative_to(ROOT)) for path in (ROOT / "rules").rglob("*.toml")}
    assert len(shipped) > 5


def test_a_wheel_carries_the_catalogue_decoded(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(wheel.read("torchdet_lint/catalogue/compiled.msgpack"))
    assert compiled.read(kept, texts.fingerprint()) is not None


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
    commands = [line for line in lines if re.search(r"torchdet-lint check|TORCHDET\" check|report=\(--", line)]
    used = {option for line in commands for option in re.findall(r"--[a-z-]+", line)}
    assert used
    assert used <= known


def _steps() -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in _action()["runs"]["steps"]}


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """What GitHub gives to every step, with Python, and the linter that is tested as what the action installed."""
    bin_ = _bin(tmp_path, "python3", f'exec {sys.executable} "$@"')
    installed = _bin(tmp_path, "installed", f'PYTHONPATH={ROOT} exec {sys.executable} -m torchdet_lint "$@"')
    (tmp_path / "temp").mkdir()
    (tmp_path / "checkout" / "ml").mkdir(parents=True)
    (tmp_path / "checkout" / ".git").mkdir()
    (tmp_path / "checkout" / "ml" / "a b.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    (tmp_path / "checkout" / "ml" / "c.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    return {
        "PATH": f"{bin_}:/usr/bin:/bin",
        "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_WORKSPACE": str(tmp_path / "checkout"),
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "TORCHDET": str(installed / "installed"),
    }


def _inputs(**given: str) -> dict[str, str]:
    """The variables of the step that lints, from the inputs of the action."""
    inputs = {name: str(one["default"]) for name, one in _action()["inputs"].items()}
    assert given.keys() <= {name.replace("-", "_") for name in inputs}
    inputs |= {name.replace("_", "-"): value for name, value in given.items()}
    named = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")
    return {
        variable: inputs[match[1]]
        for variable, value in _steps()["Lint"]["env"].items()
        if (match := named.fullmatch(value))
    }


def _lines(path: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in Path(path).read_text().splitlines())


def test_the_action_installs_into_a_place_of_its_own_and_runs_no_code_of_the_checkout(
    tmp_path: Path, runner: dict[str, str]
) -> None:
    checkout = tmp_path / "checkout"
    for name in ("pip.py", "venv.py", "sitecustomize.py"):
        (checkout / name).write_text("print('PWNED')\n")
    (tmp_path / "empty").mkdir()
    found = _bash(_steps()["Look for Python"]["run"], checkout, {**runner, "WANTED": ""})
    assert found.returncode == 0, found.stderr
    assert _lines(runner["GITHUB_OUTPUT"]) == {"found": "python3"}
    more = {"ACTION_PATH": str(tmp_path / "empty"), "PYTHON": "python3", "PIP_NO_INDEX": "1"}
    done = _bash(_steps()["Install"]["run"], checkout, {**runner, **more})
    assert "PWNED" not in found.stdout + done.stdout
    assert "empty" in done.stderr, "pip itself was asked, or this shows nothing"
    assert (tmp_path / "temp/torchdet-lint/bin/python").exists(), "pip was that of a new environment"


def test_a_python_that_is_asked_for_is_set_up_beside_that_of_the_job(tmp_path: Path, runner: dict[str, str]) -> None:
    _bash(_steps()["Look for Python"]["run"], tmp_path, {**runner, "WANTED": "3.13"})
    assert _lines(runner["GITHUB_OUTPUT"]) == {"found": ""}
    setup = _steps()["Set up Python"]
    assert setup["with"]["update-environment"] is False
    assert setup["if"] == "steps.python.outputs.found == ''"


def test_the_action_lints_in_a_folder_and_says_what_it_found(tmp_path: Path, runner: dict[str, str]) -> None:
    folder = tmp_path / "checkout/ml"
    variables = _inputs(paths="c.py\n.\n", args="--select TDL1\n--extend-select TDL2\n", working_directory="ml")
    done = _bash(_steps()["Lint"]["run"], folder, {**runner, **variables})
    assert done.returncode == 1, done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith("::error")]
    assert [re.search(r"file=([^,]*),line=(\d+)", line)[0] for line in told] == [  # type: ignore[index]
        "file=ml/a b.py,line=2",
        "file=ml/c.py,line=2",
    ]
    assert _lines(runner["GITHUB_OUTPUT"]) == {"exit-status": "1", "findings": "2"}
    summary = Path(runner["GITHUB_STEP_SUMMARY"]).read_text()
    assert summary.startswith("### torchdet-lint: 2 findings\n")
    assert "\nc.py:2:1: TDL201 " in summary


def test_the_action_writes_sarif_where_the_upload_step_finds_it(tmp_path: Path, runner: dict[str, str]) -> None:
    variables = _inputs(working_directory="ml", output_format="sarif", summary="false", fail="false")
    done = _bash(_steps()["Lint"]["run"], tmp_path / "checkout/ml", {**runner, **variables})
    assert done.returncode == 0, done.stderr
    outputs = _lines(runner["GITHUB_OUTPUT"])
    assert outputs == {"exit-status": "1", "findings": "2", "report": "ml/torchdet-lint.sarif"}
    results = json.loads((tmp_path / "checkout" / outputs["report"]).read_text())["runs"][0]["results"]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
    assert uris == ["ml/a%20b.py", "ml/c.py"]
    assert not Path(runner["GITHUB_STEP_SUMMARY"]).exists()


def test_the_action_names_a_report_elsewhere_as_it_was_named(tmp_path: Path, runner: dict[str, str]) -> None:
    report = tmp_path / "temp" / "all.sarif"
    variables = _inputs(working_directory="ml", output_format="sarif", output_file=str(report), fail="false")
    done = _bash(_steps()["Lint"]["run"], tmp_path / "checkout/ml", {**runner, **variables})
    assert done.returncode == 0, done.stderr
    assert _lines(runner["GITHUB_OUTPUT"])["report"] == str(report)
    assert report.exists()


def test_the_action_counts_whatever_its_options_say_of_formats(tmp_path: Path, runner: dict[str, str]) -> None:
    variables = _inputs(args="--output-format json --output-file all.json", fail="false")
    done = _bash(_steps()["Lint"]["run"], tmp_path / "checkout", {**runner, **variables})
    assert done.returncode == 0, done.stderr
    assert _lines(runner["GITHUB_OUTPUT"]) == {"exit-status": "1", "findings": "2"}
    assert len(json.loads((tmp_path / "checkout/all.json").read_text())) == 2


def test_the_action_fails_where_the_run_fails(tmp_path: Path, runner: dict[str, str]) -> None:
    variables = _inputs(args="--select TDL999", fail="false")
    done = _bash(_steps()["Lint"]["run"], tmp_path / "checkout", {**runner, **variables})
    assert done.returncode == 2
    assert "--select" in done.stderr
    assert _lines(runner["GITHUB_OUTPUT"]) == {"exit-status": "2", "findings": "0"}


def test_what_the_documentation_passes_to_the_action_it_takes() -> None:
    known = _action()
    page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    steps = [step for block in blocks if isinstance(block, dict) for step in _used(block)]
    assert steps
    for step in steps:
        assert step.get("with", {}).keys() <= known["inputs"].keys()
    named = set(re.findall(r"steps\.torchdet\.outputs\.([\w-]+)", page))
    assert named
    assert named <= known["outputs"].keys()


def _used(block: dict[str, Any]) -> list[dict[str, Any]]:
    every = [step for job in block.get("jobs", {}).values() for step in job["steps"]]
    return [step for step in every if str(step.get("uses", "")).startswith("torchdet-lint/")]


def _action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return found


def _bin(folder: Path, name: str, script: str) -> Path:
    """A folder with an executable `name` in it."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    (place / name).write_text(f"#!/bin/sh\n{script}\n")
    (place / name).chmod(0o755)
    return place


def _bash(script: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `script` as GitHub runs the steps of an action."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
