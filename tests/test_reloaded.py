"""Weights that a program draws and replaces by loaded ones before anything reads them, though it trains."""

from __future__ import annotations

import textwrap

import pytest

from torchdet_lint.api import lint_source

NETS = """\
import copy
import torch
from torch import nn
from elsewhere import unknown

class Net(nn.Module):
    def __init__(self, size=2):
        super().__init__()
        self.body = nn.Linear(size, 2)
        self.gain = nn.Parameter(torch.randn(2))

    def forward(self, x):
        return self.gain * self.body(x)

class Dropped(Net):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), training=self.training)

class Partly(Net):
    def load_state_dict(self, state):
        self.body.load_state_dict(state)

def build(size):
    return Net(size)

def fit(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()

"""
LOAD = "model.load_state_dict(torch.load('a.pt'))"
LOOSE = "model.load_state_dict(torch.load('a.pt'), strict=False)"
TARGET = """\
pose = torch.zeros(1, 2, requires_grad=True)
optimizer = torch.optim.SGD([pose], lr=0.1)
loss = (pose - model(torch.ones(1, 2))).sum()
loss.backward()
optimizer.step()
"""


def draws(lines: str) -> bool:
    return bool(lint_source(f"{NETS}{lines}\n", select=["TDL101"]))


@pytest.mark.parametrize(
    ("lines", "drawn"),
    [
        (["model = Net()", LOAD], False),
        (["model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())", LOAD], False),
        (["model = build(2)", "model.load_state_dict(torch.load('a.pt'), strict=True)"], False),
        (["model = Net().to('cpu').train()", "state = torch.load('a.pt')", "model.load_state_dict(state)"], False),
        (["model: nn.Module = Net()", "with torch.no_grad():", f"    {LOAD}"], False),
        (["model = Net()", "model = nn.DataParallel(model)", LOAD], False),
        (["model = nn.DataParallel(Net())", "model.module.load_state_dict(torch.load('a.pt'))"], False),
        (["model = Net()", "size = sum(p.numel() for p in model.parameters())", "print(model, size)", LOAD], False),
        (["if torch.rand is None:", "    model = Net(2)", "else:", "    model = nn.Linear(2, 2)", LOAD], False),
        (["found = Net()", "found.load_state_dict(torch.load('a.pt'))", "model = found"], False),
        (["model = Net()", LOAD, "model.body = nn.Linear(2, 2)"], True),
        (["model = Net()", LOOSE], True),
        (["model = Net()", "model.load_state_dict(torch.load('a.pt'), False)"], True),
        (["model = Net()", "model.load_state_dict(torch.load('a.pt'), **options)"], True),
        (["model = Net()", "model.body.load_state_dict(torch.load('a.pt'))"], True),
        (["model = Net()", "if resume:", f"    {LOAD}"], True),
        (["model = Net()", "for path in paths:", f"    {LOAD}"], True),
        (["try:", "    model = Net()", f"    {LOAD}", "except OSError:", "    print('from scratch')"], True),
        (["model = Net()", "a = model.state_dict()", "a.update(torch.load('a.pt'))", "model.load_state_dict(a)"], True),
        (["model = Net()", "model.load_state_dict({**model.state_dict(), **torch.load('a.pt')})"], True),
        (["model = Net()", "first = copy.deepcopy(model)", LOAD, "fit(first)"], True),
        (["model = Net()", "print(model(torch.ones(2)))", LOAD], True),
        (["model = Net()", "fit(model)", LOAD], True),
        (["model = Partly()", LOAD], True),
        (["model = unknown()", "other = Net()", LOAD, "fit(other)"], True),
        (["model = Net(torch.randn(2).size(0))", LOAD], True),
        (["model = Dropped()", LOAD], True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("within", [False, True])
def test_what_is_loaded_for_the_whole_model_replaces_what_was_drawn(
    lines: list[str], drawn: bool, within: bool
) -> None:
    body = "\n".join([*lines, "fit(model)"])
    given = "resume, options, paths"
    inside = f"def main({given}):\n{textwrap.indent(body, '    ')}\n\nmain(*input())"
    assert draws(inside if within else f"{given} = input()\n{body}") is drawn


@pytest.mark.parametrize(
    ("lines", "drawn"),
    [
        (["self.net = Net()", "self.net.load_state_dict(torch.load('a.pt'))"], False),
        (["self.rate = 3", "self.net = Net().to(device)", "self.rate += 1", "self.net.load_state_dict(state)"], False),
        (["self.net = Net()", "self.prepare()", "self.net.load_state_dict(torch.load('a.pt'))"], True),
        (["self.net = Net()", "look(self)", "self.net.load_state_dict(torch.load('a.pt'))"], True),
        (["self.net = Net()", "self.net.load_state_dict(torch.load('a.pt'), strict=False)"], True),
    ],
)  # fmt: skip
def test_what_an_object_keeps_is_loaded_too(lines: list[str], drawn: bool) -> None:
    made = textwrap.indent("\n".join(lines), "        ")
    prepare = "    def prepare(self):\n        print(self)\n"
    source = f"class Trainer:\n    def __init__(self, device, state):\n{made}\n\n{prepare}"
    assert draws(f"{source}\ntrainer = Trainer('cpu', torch.load('a.pt'))\nfit(trainer.net)") is drawn


@pytest.mark.parametrize(
    ("lines", "drawn"),
    [
        ([LOOSE, "model.eval()", TARGET], False),
        (["missing = " + LOOSE, "print(missing)", TARGET], False),
        ([LOOSE, TARGET, "optimizer.add_param_group({'params': model.parameters()})"], True),
        ([LOOSE, TARGET, "fit(model)"], True),
        ([LOOSE, TARGET, "held = [model]"], True),
    ],
)
def test_what_may_be_left_out_counts_where_an_optimizer_may_get_the_model(lines: list[str], drawn: bool) -> None:
    assert draws("\n".join(["model = Net()", *lines])) is drawn


@pytest.mark.parametrize(
    ("lines", "drawn"),
    [
        ([LOOSE, "model.eval()", TARGET], False),
        ([LOAD, TARGET], True),
        ([LOOSE, "model.eval()", TARGET, "model.train()"], True),
        ([LOAD, "if torch.cuda.is_available():", "    model.eval()", TARGET], True),
        ([LOAD, "model.eval()", "fit(model)"], True),
    ],
)
def test_a_layer_of_what_is_only_evaluated_drops_nothing(lines: list[str], drawn: bool) -> None:
    assert draws("\n".join(["model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())", *lines])) is drawn
