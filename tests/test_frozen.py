"""Networks whose parameters get no gradient: what they make of data has none."""

from __future__ import annotations

import textwrap

import pytest

from torchdet_lint.api import lint_source

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
from elsewhere import adapted, build

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 3)

    def forward(self, x):
        return self.layer(x)

"""
FREEZES = "for p in body.parameters():\n    p.requires_grad = False"
RESIZES = "y = F.interpolate(body(x), scale_factor=2, mode='bicubic')"


def varies(source: str) -> bool:
    return bool(lint_source(HEAD + source, select=["TDL403"]))


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["body = nn.Conv2d(3, 3, 3).cuda()", FREEZES, RESIZES], False),
        (["body = Net()", FREEZES, "body.eval()", RESIZES], False),
        (["body, a = Net(), 3", "for _, q in body.named_parameters():", "    q.requires_grad_(False)", RESIZES], False),
        (["body = Net()", "body.requires_grad_(False)", "if True:", f"    {RESIZES}"], False),
        (["body = Net().requires_grad_(False).eval()", RESIZES], False),
        (["body = Net().cuda()", "body.requires_grad_(requires_grad=False)", "while 1:", f"    {RESIZES}"], False),
        (["body = build('resnet')", FREEZES, "body.train()", RESIZES], False),
        (["body = Net()", "body.eval()", RESIZES], True),
        (["body = Net()", RESIZES, FREEZES], True),
        (["body = Net()", "if x is None:", textwrap.indent(FREEZES, "    "), RESIZES], True),
        (["body = Net()", FREEZES.replace("p.req", "if p.ndim > 1: p.req"), RESIZES], True),
        (["body = Net()", FREEZES, "body.layer = nn.Conv2d(3, 3, 3)", RESIZES], True),
        (["body = Net()", FREEZES, "body = adapted(body)", RESIZES], True),
        (["body = Net()", FREEZES, "adapted(body)", RESIZES], True),
        (["body = Net()", FREEZES, "for p in body.layer.parameters():", "    p.requires_grad = True", RESIZES], True),
        (["body = Net()", FREEZES, "body.requires_grad_()", RESIZES], True),
        (["body = Net()", "for p in body.layer.parameters():", "    p.requires_grad = False", RESIZES], True),
        (["body, other = Net(), Net()", FREEZES.replace("body", "other"), RESIZES], True),
        (["body, first = Net(), Net()", FREEZES, "x = first(x)", RESIZES], True),
        (["body = Net()", FREEZES, "x = torch.ones(1, 3, 8, 8, requires_grad=True)", RESIZES], True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("within", [False, True])
def test_what_a_frozen_network_makes_of_data_has_no_gradient(lines: list[str], found: bool, within: bool) -> None:
    body = "\n".join(["x = torch.rand(1, 3, 8, 8).cuda()", *lines, "y.sum().backward()"])
    source = f"def train():\n{textwrap.indent(body, '    ')}\n\ntrain()\n" if within else body
    assert varies(source) is found


KEEPER = """\
class Keeper:
    def __init__(self, rate):
        self.body = Net()
        {freezes}

    def step(self):
        x = torch.rand(1, 3, 8, 8).cuda()
        y = F.interpolate(self.body(x), scale_factor=2, mode="bicubic")
        (y * self.scale).sum().backward()

    def more(self):
        {more}
"""


@pytest.mark.parametrize(
    ("freezes", "more", "found"),
    [
        ("self.body.requires_grad_(False)", "self.body.eval()", False),
        ("for p in self.body.parameters(): p.requires_grad = False", "return self.body(3)", False),
        ("self.rate = rate", "self.body.requires_grad_(False)", True),
        ("self.body.requires_grad_(rate)", "pass", True),
        ("if rate: self.body.requires_grad_(False)", "pass", True),
        ("self.body.requires_grad_(False)", "self.body.layer = nn.Conv2d(3, 3, 3)", True),
        ("self.body.requires_grad_(False)", "adapted(self.body)", True),
        ("self.body.requires_grad_(False)", "self.body = Net()", True),
        ("self.body.requires_grad_(False)", "self.body.layer.requires_grad_(True)", True),
        ("self.body.eval()", "pass", True),
    ],
)
def test_what_a_constructor_freezes_stays_so(freezes: str, more: str, found: bool) -> None:
    assert varies(KEEPER.format(freezes=freezes, more=more)) is found


LOSS = """\
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 1)

    def forward(self, f, at):
        return self.out(torch.index_select(f, 0, at))

def train(body):
    x, at = torch.rand(8, 4).cuda(), torch.tensor([0, 0, 1]).cuda()
    {makes}
    {freezes}
    {applies}
"""
FROZEN = "body.requires_grad_(False)"


@pytest.mark.parametrize(
    ("makes", "freezes", "applies", "found"),
    [
        ("head = Loss()", FROZEN, "head(body(x), at).backward()", False),
        ("head = Loss().cuda()", FROZEN, "head(body(x), at).backward()", False),
        ("rate, head = 3, Loss().to('cuda')", FROZEN, "head(body(x), at).backward()", False),
        ("head: Loss = Loss().cuda()", FROZEN, "head(body(x), at).backward()", False),
        ("head = Loss().cuda()", "body.eval()", "head(body(x).cuda(), at).backward()", True),
        ("a, b = Loss().cuda(), Loss()", FROZEN, "a(nn.Linear(4, 4)(x), at).backward(); b(body(x), at)", True),
        ("a, b = Loss(), Loss().cuda()", FROZEN, "a(body(x), at).backward(); b(nn.Linear(4, 4)(x), at)", True),
        ("heads = [Loss(), Loss()]", FROZEN, "heads[0](body(x), at).backward()", True),
        ("head = nn.Sequential(Loss())", FROZEN, "head(body(x), at).backward()", True),
    ],
)
def test_a_layer_that_is_given_only_that_has_no_gradient_to_pass_on(
    makes: str, freezes: str, applies: str, found: bool
) -> None:
    assert varies(LOSS.format(makes=makes, freezes=freezes, applies=applies)) is found
