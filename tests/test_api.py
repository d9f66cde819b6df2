"""`torchdet_lint.lint`, `lint_source` and `fix_source`, as a program uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import torchdet_lint
from torchdet_lint.api import LintError
from torchdet_lint.config import ConfigError

FAULTY = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.py").write_text(FAULTY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_lint(folder: Path) -> None:
    for paths in ((), (".",), (folder,), (["a.py"],), ((Path("a.py"),),)):
        (finding,) = torchdet_lint.lint(*paths, cache_dir="")
        assert isinstance(finding, torchdet_lint.Finding)
        assert (finding.code, finding.location.row, Path(finding.filename).name) == ("TDL201", 3, "a.py")
    assert not (folder / ".torchdet_cache").exists()
    assert torchdet_lint.lint(select=["TDL3"]) == []
    (folder / "sub").mkdir()
    (folder / "sub/b.py").write_text(FAULTY)
    (folder / "sub/torchdet-lint.toml").write_text("ignore = ['TDL201']\n")
    assert [finding.filename for finding in torchdet_lint.lint()] == ["a.py"]
    assert [finding.filename for finding in torchdet_lint.lint(isolated=True)] == ["a.py", "sub/b.py"]


def test_what_cannot_be_done_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no option 'selekt'; did you mean 'select'"):
        torchdet_lint.lint(selekt=["TDL3"])
    with pytest.raises(ConfigError, match="Expected"):
        torchdet_lint.lint(seed="one")
    with pytest.raises(LintError, match=r"nowhere\.py: no such file"):
        torchdet_lint.lint("nowhere.py")


def test_source() -> None:
    (finding,) = torchdet_lint.lint_source(FAULTY)
    assert (finding.code, finding.filename) == ("TDL201", "source.py")
    assert torchdet_lint.lint_source(FAULTY.encode(), "b.py", ignore=["TDL2"]) == []
    assert torchdet_lint.fix_source(FAULTY) == FAULTY.replace("True", "False")
    assert torchdet_lint.fix_source("x = 1\n") == "x = 1\n"
    assert torchdet_lint.lint_source("x = (\n")[0].code == "TDL001"
    unsafe = "import torch\ntorch.use_deterministic_algorithms(False)\n"
    assert torchdet_lint.fix_source(unsafe) == unsafe
    assert torchdet_lint.fix_source(unsafe, unsafe=True) != unsafe


def test_the_package_is_light_until_it_is_used() -> None:
    program = (
        "import sys, torchdet_lint\nassert set(torchdet_lint.__all__) <= set(dir(torchdet_lint))\n"
        "print(sorted({'msgspec', 'libcst', 'rich', 'torch'} & set(sys.modules)))\ntorchdet_lint.lint\n"
        "assert 'torch' not in sys.modules"
    )
    environment = {"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        torchdet_lint.nothing  # noqa: B018


@pytest.mark.parametrize(("seed", "severity"), [("0", "error"), ("self.seeds.get()", "warning")])
def test_a_worker_that_takes_its_seed_from_a_queue_has_a_generator_of_its_own(seed: str, severity: str) -> None:
    text = (
        "import random\nfrom torch.utils.data import DataLoader, Dataset\n\nclass Rows(Dataset):\n"
        "    def __init__(self, seeds):\n        self.seeds = seeds\n        self.rng = random.Random(0)\n\n"
        f"    def __getitem__(self, index):\n        self.rng.seed({seed})\n        return self.rng.random()\n\n"
        "def load(seeds):\n    return DataLoader(Rows(seeds), num_workers=2)\n"
    )
    assert [(one.code, one.severity) for one in torchdet_lint.lint_source(text)] == [("TDL301", severity)]


@pytest.mark.parametrize(
    ("head", "safe"), [("", True), ("def main(rate=1, seed=0):", False), ("class Options:\n    seed: int = 3", False)]
)
def test_a_number_is_no_safe_seed_where_the_program_names_one(head: str, safe: bool) -> None:
    text = f"import torch\n\n{head}\n    print(torch.rand(3))\n" if head else "import torch\n\nprint(torch.rand(3))\n"
    text += '\nif __name__ == "__main__":\n    print(main)\n    torch.save(torch.rand(3), "x")\n'
    found = [one for one in torchdet_lint.lint_source(text, select=["TDL101"]) if one.fix is not None]
    assert [one.fix is not None and one.fix.applicability == "safe" for one in found] == [safe]
