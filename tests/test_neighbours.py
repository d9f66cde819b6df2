"""Orders that go to other files: a record of the cache holds only as long as those files stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.inference.cross_file import _methods

if TYPE_CHECKING:
    from pathlib import Path

DATA = """import os
from base import Base

class Images(Base):
    def __init__(self, root):
        super().__init__(os.listdir(root))
"""
INDEXED = """class Base:
    def __init__(self, files):
        self.files = files

    def __getitem__(self, index):
        return self.files[index]
"""
COUNTED = INDEXED.replace("self.files[index]", "len(self.files)")
SORTED = INDEXED.replace("self.files = files", "self.files = sorted(files)")
HANDED_ON = "from inner import Base\n"


def found(root: Path, **files: str) -> list[tuple[str, int]]:
    """The findings of TDL304 in `data.py`, with the cache, beside `files`."""
    for name, text in {"data": DATA, **files}.items():
        (root / f"{name}.py").write_text(text)
    settings = Settings(root=str(root), cache_dir=str(root / "cache"), select=("TDL304",), jobs=1)
    return [(one.code, one.location.row) for one in run.run([str(root)], settings).findings]


@pytest.mark.parametrize("silent", [COUNTED, SORTED], ids=["counted", "sorted"])
def test_the_cache_follows_the_file_that_an_order_goes_to(tmp_path: Path, silent: str) -> None:
    assert found(tmp_path, base=INDEXED) == [("TDL304", 6)]
    assert found(tmp_path, base=silent) == []
    assert found(tmp_path, base=INDEXED) == [("TDL304", 6)]


def test_an_import_of_an_import_counts_too(tmp_path: Path) -> None:
    assert found(tmp_path, base=HANDED_ON, inner=INDEXED) == [("TDL304", 6)]
    assert found(tmp_path, base=HANDED_ON, inner=SORTED) == []


def test_files_that_name_each_other_end(tmp_path: Path) -> None:
    assert found(tmp_path, base="from data import *\nfrom inner import Base\n", inner="from base import Base\n") == [
        ("TDL304", 6)
    ]


def test_a_neighbour_that_cannot_be_read_is_out_of_sight(tmp_path: Path) -> None:
    assert found(tmp_path, base="class Base(:\n") == [("TDL304", 6)]


OWN = {
    "random.py": "class Random:\n    state = 7\n\ndef shuffle(items):\n    return items\n",
    "glob.py": "def glob(pattern):\n    return ['b', 'a']\n",
    "time.py": "def time_ns():\n    return 7\n",
}
STANDARD = """import glob
import random
import time
from random import Random, shuffle

import torch

torch.manual_seed(time.time_ns())
files = glob.glob("*.pt")
first = torch.load(files[0])
order = [1, 2, 3]
random.shuffle(order)
shuffle(order)
print(first, order, random.Random(), Random())

if __name__ == "__main__":
    pass
"""


def of_script(root: Path, *own: str, package: bool = False) -> list[tuple[str, int]]:
    """The findings in a script below `root` that lies beside the modules `own`, or in a package with them."""
    folder = root / "part"
    folder.mkdir()
    for name in own:
        (folder / name).write_text(OWN[name])
    if package:
        (folder / "__init__.py").touch()
    (folder / "train.py").write_text(STANDARD)
    return [(one.code, one.location.row) for one in run.run([str(root)], Settings(root=str(root), jobs=1)).findings]


EVERY = [("TDL103", 12), ("TDL104", 14), ("TDL104", 14), ("TDL105", 8), ("TDL304", 9)]


@pytest.mark.parametrize(
    ("own", "left"),
    [
        ((), EVERY),
        (("random.py",), [("TDL105", 8), ("TDL304", 9)]),
        (("glob.py",), [one for one in EVERY if one[0] != "TDL304"]),
        # The interpreter has this one built in: a file beside the script is never read.
        (("time.py",), EVERY),
    ],
)
def test_a_module_of_the_project_hides_one_of_the_standard_library(
    tmp_path: Path, own: tuple[str, ...], left: list[tuple[str, int]]
) -> None:
    assert sorted(of_script(tmp_path, *own)) == left


def test_a_module_of_a_package_hides_none_of_the_standard_library(tmp_path: Path) -> None:
    assert sorted(of_script(tmp_path, *OWN, package=True)) == EVERY


def test_a_class_without_methods_is_no_network() -> None:
    assert not _methods("    width = 1\n" * 3, "forward")
