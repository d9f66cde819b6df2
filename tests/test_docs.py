"""What is written for people agrees with what the code does."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import torchdet_lint
from torchdet_lint import config, verifier
from torchdet_lint.catalogue import loading
from torchdet_lint.cli.main import main
from torchdet_lint.cli.options import check_parser

ROOT = Path(__file__).parents[1]
PAGES = "https://github.com/torchdet-lint/torchdet-lint/blob/main"
RAW = "https://raw.githubusercontent.com/torchdet-lint/torchdet-lint/main"
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    """What `make docs` would write; `make lint` compares it with what is there."""
    sys.path.insert(0, str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    made: dict[Path, str] = generate.generated()
    return made


def test_every_rule_has_a_page(texts: dict[Path, str]) -> None:
    for rule in loading.load(examples=True).rules.values():
        page = texts[ROOT / f"docs/rules/{rule.stem}.md"]
        assert page.startswith(f"# {rule.code} {rule.name}\n")
        assert rule.why.strip() in page
        assert f"[{rule.code}]({PAGES}/docs/rules/{rule.stem}.md)" in texts[ROOT / "README.md"]


def test_a_rule_with_a_fix_says_when_it_is_safe(texts: dict[Path, str]) -> None:
    for rule in loading.load().rules.values():
        assert bool(rule.fix) == bool(rule.fix_safety), rule.code
        assert ("## Fix safety" in texts[ROOT / f"docs/rules/{rule.stem}.md"]) == bool(rule.fix)
        assert not rule.fix or rule.fix_safety.lstrip().startswith(("Safe", "Unsafe")), rule.code


def test_readme_shows_real_output(texts: dict[Path, str]) -> None:
    blocks = re.findall(r"```console\n\$ torchdet-lint examples.*?\n(.*?)```", texts[ROOT / "README.md"], re.DOTALL)
    assert len(blocks) == 1
    assert all("examples/birdsong/model.py:49:21: TDL401" in block for block in blocks)


def test_readme_lists_every_key() -> None:
    table = README[README.index("| key |") : README.index("An unknown key")]
    first = [row.split("|")[1] for row in table.splitlines()[2:] if row]
    listed = {key for cell in first for key in re.findall(r"`([a-z-]+)`", cell)}
    assert listed == {field.encode_name for field in msgspec.structs.fields(config.Options)}


def test_readme_lists_every_format() -> None:
    row = next(line for line in README.splitlines() if line.startswith("| `output-format`"))
    assert set(config.FORMATS) == set(row.split("|")[3].strip(" `").split())


def test_commands_of_readme_are_accepted() -> None:
    parser = check_parser("check")
    for line in re.findall(r"^torchdet-lint (src/.*)$", README, re.MULTILINE):
        parser.parse_args(line.partition("#")[0].split())


def test_make_targets_that_are_spoken_of_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", ".ci/run"):
        spoken = set(re.findall(r"\bmake ([a-z-]+)\b(?= |`|$)", (ROOT / name).read_text(), re.MULTILINE))
        assert spoken <= targets | {"it", "the", "them"}, name


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text(encoding="utf-8")):
        path = target.removeprefix(f"{PAGES}/").removeprefix(f"{RAW}/")
        assert ":" in path or (ROOT / path).exists(), target


def test_links_of_readme_work_on_the_package_index_too() -> None:
    relative = [target for target in re.findall(r"\]\(([^)]+)\)", README) if not target.startswith(("https://", "#"))]
    assert relative == []


def test_the_page_on_python_lists_every_public_name() -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    told = set(re.findall(r"\b\w+\b", " ".join(re.findall(r"^\| `([^`]*)`", page, re.MULTILINE))))
    assert {*torchdet_lint.__all__, *verifier.__all__} - {"__version__"} <= told


def test_the_tutorial_shows_what_the_linter_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    page = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    shutil.copy(ROOT / "examples/colours/train.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    for words, status in (("train.py --output-format concise", 1), ("train.py --diff", 1)):
        assert main([*words.split(), "--no-cache", "--isolated"]) == status
        out, err = (text.decode() for text in capfdbinary.readouterr())
        shown = re.sub(r"^ $", "", f"$ torchdet-lint {words}\n{out}{err}", flags=re.MULTILINE)
        assert shown in page, shown


@pytest.mark.slow
def test_the_tutorial_goes_from_red_to_green(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    shutil.copy(ROOT / "examples/colours/train.py", tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "torchdet_lint", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    status, said = run("verify", "train.py")
    assert status == 1
    assert re.findall(r"^\d (TDL\d+)", said, re.MULTILINE) == ["TDL101", "TDL103"]
    run("train.py", "--fix")
    status, said = run("verify", "train.py")
    assert status == 1
    assert re.findall(r"^\d (TDL\d+)", said, re.MULTILINE) == ["TDL305"]
    run("train.py", "--fix", "--unsafe-fixes")
    for more in ([], ["--mode", "stress"]):
        status, said = run("verify", *more, "train.py")
        assert (status, said[0]) == (0, "✓")
