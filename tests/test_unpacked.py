"""What a function gives back in a tuple: each thing by its place."""

from __future__ import annotations

import textwrap

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

MAKERS = """\
import random
import torch

class Noise:
    def __call__(self, x):
        return x if random.random() > 0.5 else -x

class Plain:
    def __call__(self, x):
        return x

def simple():
    return Plain()

def build():
    return Noise(), simple()

def held():
    found = Noise(), Plain()
    return found

def listed():
    return [Noise(), Plain()]

def around(turned=False):
    if turned:
        return Plain(), Noise()
    return build()

def nested():
    return (Noise(), Plain()), Plain()

def one_of(several):
    if several:
        return Noise(), Plain()
    return Plain()

def starred(*more):
    return (*more, Noise(), Plain())

class Maker:
    def build(self):
        return self._both()

    def _both(self):
        return Noise(), Plain()

    def keep(self):
        self.noise, self.plain = build()
        return self

    def apply(self, x):
        return self.plain(x)

    def disturb(self, x):
        return self.noise(x)
"""


IMPORTS = "from makers import Maker, around, build, held, listed, nested, one_of, starred\n"


@pytest.mark.parametrize("imported", [False, True])
@pytest.mark.parametrize(
    ("lines", "draws"),
    [
        ("noise, plain = build()\nplain(1)", False),
        ("noise, plain = build()\nnoise(1)", True),
        ("noise, plain = held()\nplain(1)", False),
        ("noise, plain = held()\nnoise(1)", True),
        ("noise, plain = listed()\nplain(1)", False),
        ("noise, plain = listed()\nnoise(1)", True),
        ("noise, plain = around()\nplain(1)", False),
        ("noise, plain = around()\nnoise(1)", True),
        ("noise, plain = around(turned=True)\nplain(1)", True),
        ("noise, plain = around(turned=True)\nnoise(1)", False),
        ("pair, plain = nested()\nplain(1)", False),
        ("(noise, plain), other = nested()\nnoise(1)", True),
        ("(noise, plain), other = nested()\nother(1)", False),
        ("noise, plain = one_of(True)\nplain(1)", False),
        ("plain = one_of(False)\nplain(1)", False),
        ("noise, plain = starred()\nnoise(1)", True),
        ("noise, *rest = build()\nnoise(1)", True),
        ("plain = build()[1]\nplain(1)", False),
        ("build()[0](1)", True),
        ("both = build()\nboth[1](1)", False),
        ("both = build()\nboth[0](1)", True),
        ("both = build()\nfor place in range(2):\n    both[place](1)", True),
        ("noise, plain = Maker().build()\nplain(1)", False),
        ("noise, plain = Maker().build()\nnoise(1)", True),
        ("Maker().keep().apply(1)", False),
        ("Maker().keep().disturb(1)", True),
        ("def use(f):\n    f(1)\nnoise, plain = build()\nuse(plain)", False),
        ("def use(f):\n    f(1)\nnoise, plain = build()\nuse(noise)", True),
    ],
)
def test_what_is_unpacked_is_told_apart(tmp_path, lines, draws, imported):
    rest = f"if __name__ == '__main__':\n    torch.manual_seed(0)\n{textwrap.indent(lines, '    ')}\n"
    if imported:
        (tmp_path / "makers.py").write_text(MAKERS)
        (tmp_path / "train.py").write_text(f"import torch\n{IMPORTS}\n{rest}")
    else:
        (tmp_path / "train.py").write_text(f"{MAKERS}\n{rest}")
    found = run.run([str(tmp_path)], Settings(root=str(tmp_path), jobs=1)).findings
    assert any(finding.code == "TDL103" for finding in found) is draws, found


def test_what_is_unpacked_of_a_module_that_all_is_imported_from_is_told_apart(tmp_path):
    (tmp_path / "makers.py").write_text(MAKERS)
    lines = "torch.manual_seed(0)\nnoise, plain = build()\nplain(1)\n"
    (tmp_path / "train.py").write_text(f"import torch\nfrom makers import *\n\n{lines}")
    assert not run.run([str(tmp_path)], Settings(root=str(tmp_path), jobs=1)).findings


def test_the_options_of_a_command_line_are_known_among_others(tmp_path):
    (tmp_path / "train.py").write_text(
        textwrap.dedent("""\
            import argparse, random
            import torch

            def parse():
                parser = argparse.ArgumentParser()
                parser.add_argument("--kind", default="plain", choices=["plain"])
                return parser.parse_args(), 3

            args, count = parse()
            torch.manual_seed(0)
            if args.kind == "drawn":
                print(random.random())
            """)
    )
    assert not run.run([str(tmp_path)], Settings(root=str(tmp_path), jobs=1)).findings
