"""A loader that a program makes and never goes through takes no row of its data set, and draws nothing."""

from __future__ import annotations

import textwrap

import pytest

from torchdet_lint.api import lint_source

DATA = """\
import abc
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader as Loads, Dataset, DataLoader
from tqdm import tqdm
import out_of_sight

class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return np.random.rand()

"""

KEEPER = """\
class Solver({base}):
    def __init__(self, loaders, rate=0):
        super().__init__()
        self.loaders = loaders
        self.size = len(loaders)

    def train(self):
        for x in self.loaders["train"]:
            print(x)

    def run(self):
        self.train()

    def __call__(self):
        return len(self.loaders)

"""


def draws(source: str) -> bool:
    return bool(lint_source(DATA + source, select=["TDL102"]))


def program(lines: str) -> str:
    return f'if __name__ == "__main__":\n{textwrap.indent(lines, "    ")}\n'


@pytest.mark.parametrize(
    ("lines", "drawn"),
    [
        ("loader = DataLoader(Rows())\nprint(len(loader))", False),
        ("loader = Loads(Rows())\nassert isinstance(loader, Loads)", False),
        ("loader = DataLoader(Rows(), shuffle=True)\nif loader is None or len(loader.dataset) > 3:\n    pass", False),
        ("loader = DataLoader(Rows())\nsteps = len(loader) // loader.batch_size\nprint(f'{loader}: {steps}')", False),
        ("loader = DataLoader(Rows())\ndel loader", False),
        ("a, b = DataLoader(Rows()), DataLoader([1])\nfor x in b:\n    print(x)", False),
        ("a, b = DataLoader(Rows()), DataLoader([1])\nfor x in a:\n    print(x)", True),
        ("a = [DataLoader(Rows()), DataLoader([1])]\nfor x in a[1]:\n    print(x)", False),
        ("a = [DataLoader(Rows()), DataLoader([1])]\nfor x in a[-1]:\n    print(x)", True),
        ("a = [DataLoader(Rows()), DataLoader([1])]\nfor one in a:\n    print(len(one))", False),
        ("a = [DataLoader(Rows()), DataLoader([1])]\nfor one in a:\n    for x in one:\n        print(x)", True),
        ("a = {'x': DataLoader(Rows()), 'y': DataLoader([1])}\nprint(list(a['y']), a.keys(), 'x' in a)", False),
        ("a = {'x': DataLoader(Rows()), 'y': DataLoader([1])}\nprint(list(a['x']))", True),
        ("a = {'x': DataLoader(Rows()), 'y': DataLoader([1])}\nfor key, one in a.items():\n    print(list(one))", True),
        ("a = {'x': DataLoader(Rows())}\nfor key in a:\n    print(list(a[key]))", True),
        ("a = {x: DataLoader(Rows()) for x in ('train', 'val')}\nprint(len(a['train']))", False),
        ("a = {x: DataLoader(Rows()) for x in ('train', 'val')}\nprint(list(a['train']))", True),
        ("a = {}\na['x'] = DataLoader(Rows())\nprint(len(a['x']))", False),
        ("a = {}\na['x'] = DataLoader(Rows())\nb = {**a}\nprint(next(iter(b['x'])))", True),
        ("a = dict(x=DataLoader(Rows()), y=3)\nprint(a['y'], a.get('y'))", False),
        ("a = dict(x=DataLoader(Rows()), y=3)\nprint(list(a.get('x')))", True),
        ("a = out_of_sight.table()\na['x'] = DataLoader(Rows())", True),
        ("loader = DataLoader(Rows())\nfor x in tqdm(loader):\n    print(x)", True),
        ("loader = DataLoader(Rows())\nloader = out_of_sight.prepare(loader)", True),
        ("loader = DataLoader(Rows())\nprint([x for x in loader])", True),
        ("loader = DataLoader(Rows())\nrows = iter(loader)\nprint(next(rows))", True),
        ("loader = DataLoader(Rows())\nprint(3 in loader)", True),
        ("loader = DataLoader(Rows())\na, b = loader\nprint(a)", True),
        ("loader = DataLoader(Rows())\nrun = lambda: list(loader)\nprint(run())", True),
        ("loader = DataLoader(Rows())\nprint(locals()['loader'])", True),
        ("def run():\n    for x in loader:\n        print(x)\nloader = DataLoader(Rows())\nrun()", True),
        ("loader = DataLoader(Rows())\nother = loader if len(loader) else None\nprint(other)", False),
        ("loader = DataLoader(Rows())\nother = loader or []\nprint(list(other))", True),
        ("loader = DataLoader(Rows())\nprint(loader.dataset[0])", True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("within", ["main", "function"])
def test_a_name_is_followed(lines: str, drawn: bool, within: str) -> None:
    main = program(lines)
    source = main if within == "main" else f"def main():\n{textwrap.indent(lines, '    ')}\n\n{program('main()')}"
    if "locals" not in lines or within == "function":
        assert draws(source) is drawn


MAKERS = """\
def make(data):
    return DataLoader(data)

class Holds:
    def __init__(self, data):
        self.loader = DataLoader(data)

def both():
    train, test = DataLoader(Rows()), DataLoader([1, 2])
    return train, test

def named():
    return {"train": DataLoader(Rows()), "test": DataLoader([1])}

def chosen(train=True):
    if train:
        return DataLoader(Rows())
    return DataLoader([1])

def passed(loader, size):
    return 3 * size

def gone(loader, size=1):
    for x in loader:
        print(x)

def deep():
    return named()

def given(size):
    return gone

def started():
    def run():
        return DataLoader(Rows())
    return run

@out_of_sight.kept
def wrapped():
    return DataLoader(Rows())

def rows():
    yield DataLoader(Rows())

"""


@pytest.mark.parametrize(
    ("lines", "drawn"),
    [
        ("_, test = both()\nprint(list(test))", False),
        ("train, _ = both()\nprint(list(train))", True),
        ("print(list(both()[1]))", False),
        ("print(list(both()[0]))", True),
        ("*_, test = both()\nprint(list(test))", True),
        ("for x in named()['test']:\n    print(x)", False),
        ("for x in deep()['test']:\n    print(x)", False),
        ("for x in deep()['train']:\n    print(x)", True),
        ("test = make([1])\ntrain = make(Rows())\nprint(list(test), len(train))", False),
        ("train = make(Rows())\nprint(len(train))", False),
        ("train = make(Rows())\nprint(list(train))", True),
        ("train = Holds(Rows())\nprint(len(train.loader))", False),
        ("train, test = Holds(Rows()), Holds([1])\nprint(len(train.loader), list(test.loader))", False),
        ("train = Holds(Rows())\nprint(list(train.loader))", True),
        ("print(passed(named()['train'], 3))", False),
        ("print(passed(loader=named()['train'], size=3))", False),
        ("gone(named()['train'])", True),
        ("gone(size=3, loader=named()['train'])", True),
        ("gone(*both())", True),
        ("test = chosen(train=False)\nprint(list(test))", False),
        ("test, train = chosen(train=False), chosen()\nprint(list(test), len(train))", False),
        ("test, train = chosen(train=False), chosen()\nprint(list(train))", True),
        ("print(wrapped())", True),
        ("for one in rows():\n    print(one)", True),
        ("out_of_sight.train(named()['train'])", True),
        ("get = both\nprint(get())", True),
        ("given(3)(named()['train'])", True),
        ("print(given(named()['train'])(3))", False),
        ("print(given)\nstarted()()", True),
    ],
)
def test_what_a_function_returns_or_gets_is_followed(lines: str, drawn: bool) -> None:
    assert draws(MAKERS + program(lines)) is drawn


@pytest.mark.parametrize(
    ("lines", "drawn"),
    [
        ("solver = Solver({'train': DataLoader(Rows())})\nprint(solver.size, solver())", False),
        ("solver = Solver({'train': DataLoader(Rows())}, rate=3)\nsolver.train()", True),
        ("solver = Solver(loaders={'train': DataLoader(Rows())})\nsolver.run()", True),
        ("solver = Solver({'train': DataLoader(Rows())})\nprint(list(solver.loaders['train']))", True),
        ("solver = Solver({'train': DataLoader(Rows())})\nout_of_sight.run(solver)", True),
        ("solver = Solver({'train': DataLoader(Rows())})\nout_of_sight.run(solver.train)", True),
        ("solver = Solver({'train': DataLoader(Rows())})\ngetattr(solver, 'train')()", True),
        ("one = Solver({'train': DataLoader(Rows()), 'test': [1]})\nprint(list(one.loaders['test']))", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("base", ["", "object", "nn.Module", "abc.ABC"])
def test_an_object_that_keeps_it_is_followed(lines: str, drawn: bool, base: str) -> None:
    assert draws(KEEPER.format(base=base) + program(lines)) is drawn


OBJECTS = """\
class Base:
    def __init__(self, rate):
        self.rate = rate
        self.build()

    def build(self):
        self.train_loader = DataLoader(Rows())
        self.test_loader = DataLoader([1])

    def evaluate(self):
        return list(self.test_loader)

    @property
    def batches(self):
        return list(self.train_loader)

class Derived(Base):
    def __init__(self, rate):
        super().__init__(rate)

    def train(self):
        for x in self.train_loader:
            print(x)

    def fit(self):
        return super().batches

class Above(Base):
    def evaluate(self):
        return super().evaluate() + self.more()

    def more(self):
        return [x for x in self.train_loader]

class Threaded(out_of_sight.Thread):
    def __init__(self):
        super().__init__()
        self.loader = DataLoader(Rows())

    def run(self):
        for x in self.loader:
            print(x)

class Holder:
    def __init__(self, solver):
        self.solver = solver

    def run(self):
        self.solver.train()

class Kept:
    def __init__(self, loader):
        self.loader = loader

    def run(self):
        for x in self.held():
            print(x)

    def held(self):
        return self.loader

class Iterated:
    def __init__(self):
        self.loader = DataLoader(Rows())

    def __iter__(self):
        yield from self.loader

"""


@pytest.mark.parametrize(
    ("lines", "drawn"),
    [
        ("print(Base(3).evaluate())", False),
        ("print(Derived(3).evaluate(), Derived(4).rate)", False),
        ("Derived(3).train()", True),
        ("print(Base(3).batches)", True),
        ("print(Derived(3).fit())", True),
        ("print(Above(3).evaluate())", True),
        ("Threaded().start()", True),
        ("Holder(Derived(3)).run()", True),
        ("print(Holder(Derived(3)).solver.rate)", False),
        ("base = Base(3)\nprint(vars(base))", True),
        ("for x in Iterated():\n    print(x)", True),
        ("made = Iterated()\nprint(made)", False),
        ("a, b = Kept(DataLoader(Rows())), Kept(DataLoader([1]))\nb.run()\nprint(a)", False),
        ("a, b = Kept(DataLoader(Rows())), Kept(DataLoader([1]))\na.run()\nprint(b)", True),
        ("a, b = Kept(DataLoader(Rows())), Kept(DataLoader([1]))\nprint(a, list(b.held()))", False),
        ("a, b = Kept(DataLoader(Rows())), Kept(DataLoader([1]))\nprint(b, list(a.held()))", True),
    ],
)
def test_what_objects_make_for_themselves_is_followed(lines: str, drawn: bool) -> None:
    assert draws(OBJECTS + program(lines)) is drawn


@pytest.mark.parametrize(
    ("given", "drawn"), [("Kind(True)", True), ("Kind(False)", False), ("train", True), ("test", False)]
)
def test_each_loader_has_rows_of_its_own(given: str, drawn: bool) -> None:
    source = (
        "class Kind(Dataset):\n    def __init__(self, train):\n        self.train = train\n\n"
        "    def __getitem__(self, i):\n        return np.random.rand() if self.train else i\n\n"
    )
    lines = f"train = Kind(True)\ntest = Kind(False)\nfor x in DataLoader({given}):\n    print(x)"
    assert draws(source + program(lines)) is drawn


TRANSFORMS = """\
from torchvision import datasets, transforms
from torchvision.transforms import RandomCrop

class Images(Dataset):
    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return self.transform(torch.ones(3, 40, 40))

def loaders():
    cut = transforms.Compose([transforms.RandomCrop(32), transforms.ToTensor()])
    train = datasets.CIFAR10("data", train=True, transform=cut)
    test = datasets.CIFAR10("data", train=False, transform=transforms.ToTensor())
    print(len(train), train.classes)
    return DataLoader(train), DataLoader(test)

def own():
    train = Images(transform=transforms.Compose([RandomCrop(32)]))
    print(len(train))
    return {"train": DataLoader(train), "test": DataLoader(Images(transforms.ToTensor()))}

"""


@pytest.mark.parametrize(
    ("lines", "drawn"),
    [
        ("_, test = loaders()\nprint(list(test))", False),
        ("train, _ = loaders()\nprint(list(train))", True),
        ("print(list(own()['test']))", False),
        ("print(list(own()['train']))", True),
        ("cut = RandomCrop(3)\nprint(cut)", False),
        ("cut = RandomCrop(3)\nprint(cut(torch.ones(3, 4, 4)))", True),
        ("cut = transforms.Compose([RandomCrop(3)])\nprint(cut.transforms[0](torch.ones(3, 4, 4)))", True),
        ("rows = datasets.CIFAR10('data', transform=RandomCrop(3))\nprint(rows[0])", True),
        ("rows = datasets.CIFAR10('data', transform=RandomCrop(3))\nprint(rows.targets)", False),
        ("rows = Images(RandomCrop(3))\nprint(rows[0])", True),
        ("rows = Images(RandomCrop(3))\nout_of_sight.use(rows)", True),
        ("rows = datasets.CIFAR10('data', transform=RandomCrop(3))\nout_of_sight.use(rows)", True),
        ("rows = torch.utils.data.Subset(Images(RandomCrop(3)), [1])\nprint(len(rows))", False),
        ("rows = torch.utils.data.Subset(Images(RandomCrop(3)), [1])\nprint(rows[0])", True),
    ],
)
def test_a_transform_of_rows_that_nobody_takes_draws_nothing(lines: str, drawn: bool) -> None:
    assert bool(lint_source(DATA + TRANSFORMS + program(lines), select=["TDL101"])) is drawn
