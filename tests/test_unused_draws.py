"""What is drawn and reaches no result: it says how long to wait, only assertions look at it, it is drawn again, or only
counted."""

from __future__ import annotations

import textwrap

import pytest

from torchdet_lint.api import lint_source

NETS = """\
import random
import time

import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Embedding(3, 3)

def size(model):
    return sum(p.numel() for p in model.parameters())

def norm(model):
    return sum(p.norm() for p in model.parameters())

def train():
    print(model(torch.ones(3)))

"""


def codes(source: str) -> set[str]:
    return {one.code for one in lint_source(NETS + source, select=["TDL101", "TDL103", "TDL106"])}


@pytest.mark.parametrize(
    ("lines", "draws"),
    [
        ("delay = 2 + random.uniform(0, 1)\ntime.sleep(delay)", False),
        ("delay = random.uniform(0, 1)\ndelay = min(delay, 3)\ntime.sleep(delay)", False),
        ("delay = random.uniform(0, 1)\npause = delay * 2\ntime.sleep(pause)", False),
        ("delay = 2\ndelay += random.uniform(0, 1)\nprint(delay)\ntime.sleep(delay)", False),
        ("delay = random.uniform(0, 1)\ntime.sleep(delay)\nreturn delay", True),
        ("delay = random.uniform(0, 1)\ntime.sleep(delay)\nif delay > 3:\n    return 3", True),
        ("delay = random.uniform(0, 1)\nfound = delay * 2\ntime.sleep(delay)\nreturn found", True),
        ("delay = random.uniform(0, 1)\ntime.sleep(3)\nprint(delay)", True),
        ("global delay\ndelay = random.uniform(0, 1)\ntime.sleep(delay)", True),
        ("delay, more = random.uniform(0, 1), random.random()\ntime.sleep(delay)\nreturn more", True),
    ],
)
def test_how_long_it_waits_is_no_result(lines: str, draws: bool) -> None:
    source = f"def wait():\n{textwrap.indent(lines, '    ')}\n\nprint(wait())\n"
    assert codes(source) == ({"TDL103"} if draws else set())


@pytest.mark.parametrize(
    ("lines", "late"),
    [
        ("a = torch.rand(3)\nassert torch.equal(a, a.clone())", False),
        ("a = torch.rand(3)\nb = a.flip(0)\ntorch.testing.assert_close(a, b.flip(0))", False),
        ("net = Net()\nwith torch.no_grad():\n    for n in (1, 2):\n        assert net(n).shape == (3,)", False),
        ("a = torch.rand(3)\nassert torch.equal(a, a.clone())\nreturn a", True),
        ("a = torch.rand(3)\nassert torch.equal(a, a.clone())\nprint(a)", True),
        ("a = torch.rand(3)", True),
        ("global a\na = torch.rand(3)\nassert torch.equal(a, a.clone())", True),
        ("a = torch.rand(3)\nassert torch.equal(a, a.clone())\nkept.a = a", True),
    ],
)
def test_what_only_assertions_look_at_may_come_before_the_seed(lines: str, late: bool) -> None:
    source = f"def tried():\n{textwrap.indent(lines, '    ')}\n\ntried()\ntorch.manual_seed(0)\nprint(torch.rand(3))\n"
    assert codes(source) == ({"TDL106"} if late else set())


def test_what_only_assertions_look_at_has_to_be_seeded_all_the_same() -> None:
    source = (
        "def tried():\n    a = torch.rand(3)\n    assert torch.equal(a, a.clone())\n\ntried()\nprint(torch.rand(3))\n"
    )
    assert codes(source) == {"TDL101"}


@pytest.mark.parametrize(
    ("above", "below", "late"),
    [
        ("model = Net()", "model.reset_parameters()", False),
        ("model = Net().to('cuda')\nmodel = model.eval()", "model.reset_parameters()", False),
        ("model = Net()\nprint(model)\nbest = torch.optim.SGD(model.parameters())", "model.reset_parameters()", False),
        ("model = Net()", "model.load_state_dict(torch.load('a.pt'))", False),
        ("model, other = Net(), 3", "model.reset_parameters()", True),
        ("model = Net()", "print(3)\nmodel.reset_parameters()", True),
        ("model = Net()", "print(model(torch.ones(3)))", True),
        ("model = Net()\nfirst = model.state_dict()", "model.reset_parameters()", True),
        ("model = Net()\nprint(model(torch.ones(3)))", "model.reset_parameters()", True),
        ("model = Net()\ntrain()", "model.reset_parameters()", True),
        ("model = Net()\nother = Net()", "model.reset_parameters()", True),
    ],
)
def test_what_is_drawn_again_below_the_seed_may_come_before_it(above: str, below: str, late: bool) -> None:
    inside = textwrap.indent(f"torch.manual_seed(run)\n{below}\nprint(model(torch.ones(3)))", "    ")
    assert codes(f"{above}\nfor run in range(3):\n{inside}\n") == ({"TDL106"} if late else set())


@pytest.mark.parametrize(
    ("line", "draws"),
    [
        ("print(sum(p.numel() for p in Net().parameters()))", False),
        ("n = sum(p.numel() for p in Net().to('cpu').parameters() if p.requires_grad)\nprint(n)", False),
        ("print(f'{sum([p.numel() for _, p in Net().named_parameters()]) / 1e6:.1f}')", False),
        ("print(size(Net()))", False),
        ("print(sum(p.norm() for p in Net().parameters()))", True),
        ("print(norm(Net()))", True),
        ("print(sum(p.numel() for p in Net().parameters()), torch.rand(3))", True),
        ("print([p for p in Net().parameters()])", True),
        ("print(size(Net()), norm(Net()))", True),
    ],
)
def test_a_model_that_is_only_counted_draws_nothing_that_counts(line: str, draws: bool) -> None:
    assert codes(f"{line}\n") == ({"TDL101"} if draws else set())
