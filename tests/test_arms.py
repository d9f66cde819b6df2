"""What a constant of a call picks by name: an object in the arm that does not run is not used."""

from __future__ import annotations

import textwrap

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

BEGIN = """\
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms

class Noisy(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.rand(1)

class Plain(Noisy):
    def __getitem__(self, index):
        return index

def both():
    train = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    return train, transforms.ToTensor()

"""
PICKED = "DataLoader(datasets.CIFAR10('data', transform=picked))"
MADE = "train, valid = transforms.RandomHorizontalFlip(), transforms.ToTensor()"


def _draws(folder, body, call):
    lines = textwrap.indent(textwrap.dedent(body), "    ")
    text = f"{BEGIN}def get(augment, name='a'):\n{lines}\nfor x in get({call}):\n    print(x)\n"
    (folder / "train.py").write_text(text)
    return any(one.code == "TDL101" for one in run.run([str(folder)], Settings(root=str(folder), jobs=1)).findings)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (f"{MADE}\npicked = train if augment else valid\nreturn {PICKED}", True),
        (f"train, valid = both()\npicked = train if augment else valid\nreturn {PICKED}", True),
        (f"{MADE}\npicked = valid if not augment else train\nreturn {PICKED}", True),
        (f"{MADE}\npicked = valid if augment == False else train\nreturn {PICKED}", True),
        (f"{MADE}\npicked = train if augment is not False else valid\nreturn {PICKED}", True),
        (f"{MADE}\npicked = train if augment and name else valid\nreturn {PICKED}", True),
        (f"{MADE}\npicked = valid if not augment or not name else train\nreturn {PICKED}", True),
        (f"{MADE}\nif augment:\n    picked = train\nelse:\n    picked = valid\nreturn {PICKED}", True),
        (f"train, picked = both()\nif augment:\n    picked = train\nreturn {PICKED}", True),
        (f"picked, valid = both()\npicked = picked if augment else valid\nreturn {PICKED}", True),
        (f"if name:\n    picked, valid = both()\n    picked = picked if augment else valid\nreturn {PICKED}", True),
        ("data = Noisy() if augment else Plain()\nreturn DataLoader(data)", True),
        # What the parameter is when it is asked, nobody knows.
        (f"{MADE}\naugment = print(name)\npicked = train if augment else valid\nreturn {PICKED}", False),
        (f"{MADE}\npicked = train if augment else valid\npicked = transforms.ToTensor()\nreturn {PICKED}", None),
        (f"{MADE}\npicked = train\nif name == 'b':\n    picked = valid\nreturn {PICKED}", False),
        (f"{MADE}\npicked = train\ndef f():\n    return {PICKED}\nmade = f()\npicked = valid\nreturn made", False),
        (f"{MADE}\npicked = train\nfor part in name:\n    print(part)\npicked = valid\nreturn {PICKED}", False),
    ],
)
def test_what_a_constant_leaves_out_draws_nothing(tmp_path, body, names):
    assert [_draws(tmp_path, body, call) for call in ("augment=True", "augment=False")] == (
        [True, False] if names else [False, False] if names is None else [True, True]
    )


def test_an_option_that_is_handed_on_picks_by_name(tmp_path):
    made = f"def made(flag):\n    {MADE}\n    picked = train if flag else valid\n    return {PICKED}\n"
    lines = f"{made}\nreturn made(augment)"
    assert [_draws(tmp_path, lines, call) for call in ("True", "False")] == [True, False]
