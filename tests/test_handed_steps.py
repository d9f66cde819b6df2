"""A program trains where something out of sight is given what takes a training step."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

HEAD = """\
import torch
import torch.nn as nn
from somelib.runners import Base, Runner, evaluate

from data import loader

net = nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
torch.manual_seed(0)


"""
STEP = """\
def step(engine, x):
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()


"""
MADE = """\
def made(net, optimizer):
    def step(x):
        net(x).sum().backward()
        optimizer.step()

    return step


"""
OWNER = """\
class Algorithm({}):
    def optimize(self, x):
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    def other(self):
        return 1


"""
OWN, DERIVED = OWNER.replace("({})", ""), OWNER.format("Base")
HEIR = f"{DERIVED}class Heir(Algorithm):\n    pass\n\n\n"


def trains(project, text):
    folder = project(main_DOT_py=HEAD + text)
    found = run.run([str(folder)], Settings(root=str(folder), min_severity="note", jobs=1)).findings
    return any(one.code == "TDL203" for one in found)


@pytest.mark.parametrize(
    "text",
    [
        f"{STEP}Runner(step).run(loader)\n",
        f"{STEP}Runner(loader, step=step).run()\n",
        f"{STEP}runner = Runner()\nrunner.add(step)\nrunner.go(loader)\n",
        f"{MADE}one = made(net, optimizer)\nRunner(one, loader).go()\n",
        f"{OWN}Runner(Algorithm()).train()\n",
        f"{OWN}algorithm = Algorithm()\nrunner = Runner(n=3, algorithm=algorithm)\nrunner.train()\n",
        f"{OWN}def main():\n    runner = Runner(Algorithm())\n    runner.train()\n\n\nmain()\n",
        f"{DERIVED}Algorithm(net).train(loader)\n",
        f"{HEIR}Heir(net).fit(loader)\n",
    ],
)
def test_who_gets_a_training_step_runs_it(project, text):
    assert trains(project, text)


@pytest.mark.parametrize(
    "text",
    [
        f"{STEP}Runner(net).run(loader)\n",
        f"{STEP.replace('optimizer.step()', 'print(engine)')}Runner(step).run(loader)\n",
        f"{STEP}torch.no_grad(step)\n",
        f"{STEP}print(step)\n",
        f"{OWN}Runner(Algorithm()).describe()\n",
        f"{OWN}evaluate(Algorithm())\n",
        f"{OWN}Runner(3).train()\n",
        f"{DERIVED}Algorithm(net).evaluate(loader)\n",
        f"{OWN}Algorithm().train(loader)\n",
        f"{OWNER.format('nn.Module')}Algorithm().train(True)\n",
    ],
)
def test_what_does_not_train_runs_none(project, text):
    assert not trains(project, text)


def test_it_runs_no_sooner_than_what_gets_it(project):
    text = HEAD.replace("torch.manual_seed(0)\n", "") + STEP.replace("net(x)", "net(torch.rand(2))")
    folder = project(main_DOT_py=f"{text}engine = Runner(step)\ntorch.manual_seed(0)\nengine.run(loader)\n")
    found = run.run([str(folder)], Settings(root=str(folder), min_severity="note", jobs=1)).findings
    assert [one.message for one in found if one.code == "TDL106" and "rand" in one.message] == []
