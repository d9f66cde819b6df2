"""Switches of a configuration that are off wherever the project sets them: what they guard does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torchdet_lint.api import lint

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """\
class Node(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__

_C = Node()
config = _C
_C.TRAIN = Node()
_C.TRAIN.SHUFFLE = True
_C.VAL = Node()
_C.VAL.SHUFFLE = False
_C.TRAIN.RATE = 0.5
_C.VAL.RATE = 0
"""
DATA = """\
import random

def order(rows, shuffle):
    if shuffle:
        random.shuffle(rows)
    return rows

def rows(cfg, mode):
    if mode == "train":
        shuffle = cfg.TRAIN.SHUFFLE
    else:
        shuffle = cfg.VAL.SHUFFLE
    return order([1, 2, 3], shuffle=shuffle)

def placed(cfg, mode):
    shuffle = cfg.TRAIN.SHUFFLE if mode == "train" else cfg.VAL.SHUFFLE
    return order([1, 2, 3], shuffle)

def direct(cfg):
    return order([1, 2, 3], cfg.VAL.SHUFFLE)

def asked(cfg):
    if cfg.VAL.SHUFFLE:
        return random.random()
    return 0

def asked_of_train(cfg):
    return random.random() if cfg.TRAIN.SHUFFLE else 0

class Flip:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, x):
        return -x if random.random() < self.rate else x

def flipped(cfg, mode):
    if mode == "train":
        rate = cfg.TRAIN.RATE
    else:
        rate = cfg.VAL.RATE
    return Flip(rate)(1)

def of_another(cfg):
    return random.random() if cfg.TEST.SHUFFLE else 0
"""


def draws(folder: Path, run: str, more: str = "", **files: str) -> bool:
    main = f"from config import config\nfrom data import *\n{more}\nif __name__ == '__main__':\n    print({run})\n"
    written = {"config.py": CONFIG, "data.py": DATA, "main.py": main}
    for name, text in (written | {name.replace("_DOT_", "."): text for name, text in files.items()}).items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = lint(folder, isolated=True, cache_dir="", select=["TDL103"])
    return any(one.code == "TDL103" for one in found)


@pytest.mark.parametrize(
    ("run", "drawn"),
    [
        ("rows(config, 'val')", False),
        ("rows(config, 'train')", True),
        ("placed(config, 'val')", False),
        ("placed(config, 'train')", True),
        ("direct(config)", False),
        ("asked(config)", False),
        ("asked_of_train(config)", True),
        ("flipped(config, 'val')", False),
        ("flipped(config, 'train')", True),
        ("of_another(config)", True),
    ],
)
def test_what_a_switch_guards_that_is_off_does_not_run(run: str, drawn: bool, tmp_path: Path) -> None:
    assert draws(tmp_path, run) is drawn


@pytest.mark.parametrize(
    ("files", "drawn"),
    [
        ({"cfgs__small_DOT_yaml": "VAL:\n  SHUFFLE: false\nTRAIN:\n  SHUFFLE: true\n"}, False),
        ({"cfgs__small_DOT_yaml": "VAL:\n  SIZE: 3\n"}, False),
        ({"cfgs__small_DOT_yaml": "VAL:\n  SHUFFLE: true\n"}, True),
        ({"cfgs__deep__small_DOT_yaml": "VAL: {SHUFFLE: true}\n"}, True),
        ({"cfgs__small_DOT_yaml": "VAL: [SHUFFLE\n"}, True),
        ({"tune_DOT_py": "from config import config\n\ndef tune(x):\n    config.VAL.SHUFFLE = x\n"}, True),
        ({"tune_DOT_py": "from config import config\n\ndef tune():\n    config.VAL.SHUFFLE = True\n"}, True),
        ({"tune_DOT_py": "from config import config\n\ndef tune():\n    config.VAL.SHUFFLE = False\n"}, False),
        ({"tune_DOT_py": "def tune(config, x):\n    config['VAL']['SHUFFLE'] = x\n"}, True),
        ({"tune_DOT_py": "def tune(node, x):\n    return node(SHUFFLE=x)\n"}, True),
        ({"tune_DOT_py": "def tune(node, x):\n    node.SHUFFLE = x\n"}, True),
        ({"tune_DOT_py": "def tune(config, x):\n    config.VAL.SHUFFLE |= x\n"}, True),
        ({"tune_DOT_py": "def tune(config, args):\n    config.merge_from_list(args.opts)\n"}, True),
    ],
)
def test_a_switch_that_is_on_somewhere_or_that_a_command_line_sets_is_open(
    files: dict[str, str], drawn: bool, tmp_path: Path
) -> None:
    assert draws(tmp_path, "rows(config, 'val')", **files) is drawn


@pytest.mark.parametrize(
    ("asked", "drawn"),
    [
        ("config.VAL.SHUFFLE", False),
        ("not config.VAL.SHUFFLE", True),
        ("config.VAL.SHUFFLE == True", False),
        ("config.VAL.RATE > 0", False),
        ("config.TRAIN.RATE > 0", True),
        ("config.TRAIN.RATE == 0.25", False),
        ("config.TRAIN.SHUFFLE", True),
        ("config.TEST.SHUFFLE", True),
    ],
)
def test_a_switch_decides_what_a_script_does_at_top_level(asked: str, drawn: bool, tmp_path: Path) -> None:
    more = f"import random\nimport torch\nif {asked}:\n    print(random.random(), torch.nn.LSTM(3, 3).cuda())\n"
    assert draws(tmp_path, "1", more) is drawn
    ops = lint(tmp_path, isolated=True, cache_dir="", select=["TDL404"])
    assert bool(ops) is drawn
