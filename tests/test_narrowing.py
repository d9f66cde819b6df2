"""What a call gives, with the constants that it passes: program by program, not all that a function may make."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

PARTS = """\
import random
from torch.utils.data import Dataset

class Plain(Dataset):
    def __getitem__(self, index):
        return index

class Wrapped(Dataset):
    def __init__(self, data):
        self.data = data

    def __getitem__(self, index):
        return self.data.__getitem__(index)

class Drawn(Plain):
    def __getitem__(self, index):
        return random.randrange(9)

    @classmethod
    def load(cls, path, strict=False):
        if strict:
            print(path)
        return path

def get(p, wrap=False, draw=False):
    data = Plain()
    if wrap:
        data = Wrapped(data)
    if draw:
        data = Drawn()
    return data

def chosen(kind, p=None):
    if kind == "plain":
        return Plain()
    return Drawn()

def passed(kind, draw=True):
    return get(kind, draw=draw)

def pair(draw):
    return get(0), get(0, draw=draw)

def far(kind, draw=True):
    return passed(kind, draw)
"""
MAIN = """\
import sys
from torch.utils.data import DataLoader
from parts import Drawn, chosen, far, get, pair, passed

args = sys.argv
shared = get(args, draw=True)

def run(draw=False):
    {body}

def main():
    run()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("made", "draws"),
    [
        ("get(args)", False),
        ("get(args, draw=True)", True),
        ("get(args, draw=args)", True),
        ("get(*args)", True),
        ("get(args, wrap=True)", False),
        ("get(args, wrap=True, draw=True)", True),
        ("get(args, draw=draw)", False),
        ("chosen('plain')", False),
        ("chosen('other')", True),
        ("chosen(args)", True),
        ("passed(args, False)", False),
        ("passed(args)", True),
        ("pair(False)[0]", False),
        ("pair(True)[0]", True),
        ("far(args, False)", False),
        ("far(args)", True),
        ("shared", True),
        ("Drawn.load(args)", True),
    ],
)
def test_a_call_gives_what_its_constants_leave(project, made, draws):
    body = f"data = {made}\n    for x in DataLoader(data):\n        print(x)"
    if made == "shared" or "get(" not in made:
        source = MAIN.format(body=body)
    else:
        source = MAIN.replace("shared = get(args, draw=True)\n", "").format(body=body)
    project(parts_DOT_py=PARTS, main_DOT_py=source)
    folder = project()
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL103",)))
    assert result.errors == ()
    assert [finding.code for finding in result.findings] == (["TDL103"] if draws else [])


CHOSEN = """\
import random
import sys

args = sys.argv

def drawn(scale, draw=True, also=1.0):
    {body}

if __name__ == "__main__":
    print(drawn({given}))
"""


@pytest.mark.parametrize(
    ("body", "given", "draws"),
    [
        ("return random.random() if draw else scale", "1, False", False),
        ("return random.random() if draw else scale", "1", True),
        ("return random.random() if draw else scale", "1, args", True),
        ("return scale if not draw else random.random()", "1, draw=False", False),
        ("return scale if draw else random.random()", "1, draw=False", True),
        ("return scale if draw is None else random.random()", "1, None", False),
        ("return random.random() if args else scale", "1, False", True),
        ("return random.random() * scale", "0", False),
        ("return scale * random.random()", "0.0", False),
        ("return 1 + (also + random.random()) * scale", "0", False),
        ("return random.random() * scale", "0.1", True),
        ("return random.random() * scale", "len(args)", True),
        ("return random.random() + scale", "0", True),
        ("scale += 1\n    return random.random() * scale", "0", True),
        ("return scale * also if draw else random.random()", "0", False),
    ],
)
def test_what_counts_of_an_expression_hangs_on_what_the_function_is_given(project, body, given, draws):
    folder = project(main_DOT_py=CHOSEN.format(body=body, given=given))
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL103",)))
    assert [finding.code for finding in result.findings] == (["TDL103"] if draws else [])


WRAPPED = """\
import torch

class Wrapper:
    def __init__(self, opt, rate):
        self.opt, self.rate = opt, rate

    @classmethod
    def create(cls, function, model, rate):
        opt = function(model.parameters())
        opt = cls(opt, rate)
        return opt

    def step(self):
        self.opt.step()

if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Conv2d(3, 3, 3).cuda()
    optimizer = Wrapper.create(torch.optim.Adam, model, 0.1)
    model(torch.ones(1, 3, 8, 8, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_what_wraps_an_optimizer_of_the_same_name_steps_with_it(project):
    folder = project(main_DOT_py=WRAPPED)
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL203",)))
    assert [finding.code for finding in result.findings] == ["TDL203"]
