"""What the constants that objects are made with rule out in their methods, program by program."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.prefilter.assigned import ANY, OPTION, assigned

PARTS = """\
import random
from torch.utils.data import Dataset

class Base(Dataset):
    def __init__(self, paths, train=False, split="train", noise=0.0):
        self.paths = paths
        self.train = train
        self.split, self.size = split, 3
        self.noise = noise

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        {body}
        return index

    def grow(self, by):
        if by:
            random.random()

    def cut(self, noise=0.0):
        pass

class Derived(Base):
    def __init__(self, paths, *, train=False, **more):
        super().__init__(paths, train=train)

class Given(Base):
    def __init__(self, paths, **more):
        super().__init__(paths, **more)

class Spelt(Base):
    def __init__(self, paths, mode):
        super().__init__(paths)
        self.mode = mode.lower()

class Turned(Base):
    def turn(self):
        self.train = True

class Split(Dataset):
    def __init__(self, paths, share=0.0):
        self.paths = self.divided(paths, share)

    def divided(self, paths, share):
        if share == 0.0:
            return paths
        return random.sample(paths, int(share * len(paths)))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.paths[index]
"""
PARTS_TAKEN = "from parts import Base, Derived, Given, Spelt, Split, Turned"
MAIN = f"""\
import sys
import torch
from torch.utils.data import DataLoader
{PARTS_TAKEN}

args = sys.argv
paths = args[1:]

if __name__ == "__main__":
    torch.manual_seed(0)
    {{made}}
    for x in DataLoader(data):
        print(x)
"""
TRAIN = "if self.train: random.random()"


def drawn(project, body, made):
    project(parts_DOT_py=PARTS.format(body=body), main_DOT_py=MAIN.format(made=made))
    folder = project()
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL103",)))
    assert result.errors == ()
    return [finding.code for finding in result.findings] == ["TDL103"]


@pytest.mark.parametrize(
    ("made", "draws"),
    [
        ("data = Base(paths)", False),
        ("data = Base(paths, False)", False),
        ("data = Base(paths, True)", True),
        ("data = Base(paths, train=args.train)", True),
        ("data = Base(*args)", True),
        ("data = Base(paths, **args)", True),
        ("data = Base(paths); other = Base(paths, True)", False),
        ("data = Base(paths, True); other = Base(paths)", True),
        ("data = Base(paths); data = Base(paths, True)", True),
        ("data = Derived(paths)", False),
        ("data = Derived(paths, train=True)", True),
        ("data = Derived(paths); other = Base(paths, True); print(other)", False),
        ("data = Given(paths)", True),
        ("data = Turned(paths)", True),
        ("data = Split(paths)", False),
        ("data = Split(paths, share=0.1)", True),
    ],
)
def test_what_objects_are_made_with_decides_what_runs(project, made, draws):
    assert drawn(project, TRAIN, made) == draws


@pytest.mark.parametrize(
    ("body", "made", "draws"),
    [
        ("if not self.train: return index\n        random.random()", "Base(paths)", False),
        ("train = self.train\n        if train: random.random()", "Base(paths)", False),
        ("if self.paths and self.train: random.random()", "Base(paths)", False),
        ("if self.noise > 0: random.random()", "Base(paths)", False),
        ("if self.noise > 0: random.random()", "Base(paths, noise=0.5)", True),
        ("if self.noise in (0.0, None): return index\n        random.random()", "Base(paths)", False),
        ("if self.noise > 'a': random.random()", "Base(paths)", True),
        ("self.grow(self.noise)", "Base(paths)", False),
        ("self.grow(self.noise)", "Base(paths, noise=1)", True),
        ("if self.split == 'val': random.random()", "Base(paths)", False),
        ("if self.split == 'val': random.random()", "Base(paths, split='val')", True),
        ("if self.paths: random.random()", "Base(paths)", True),
    ],
)
def test_what_is_asked_of_an_object(project, body, made, draws):
    assert drawn(project, body, f"data = {made}") == draws


WHOLE = """\
import random
from torch.utils.data import Dataset

class Clips(Dataset):
    def __init__(self, paths, seconds=4.0, rate=8):
        self.paths = paths
        {made}
        self.whole = self.length is {negated}None

    def __add__(self, other):
        self.length = min(self.length, other.length)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if index == self.length or {negated}self.whole:
            return 0
        return random.randint(0, index)
"""
PICKED = "self.length = None if seconds is None else int(seconds * rate)"
TURNED = "self.length = seconds * rate if seconds is not None else None"
ARMS = "if seconds is None:\n            self.length = None\n        else:\n            self.length = int(seconds)"


@pytest.mark.parametrize("negated", ["", "not "])
@pytest.mark.parametrize(
    ("made", "seconds", "draws"),
    [
        (PICKED, "None", False),
        (PICKED, "2.0", True),
        (PICKED, "args.seconds", True),
        (TURNED, "None", False),
        (TURNED, "2.0", True),
        (ARMS, "None", False),
        (ARMS, "3", True),
        ("self.length = seconds", "None", False),
        ("self.length = seconds", "0", True),
        ("self.length = seconds or rate", "None", True),
        ("self.length = None if seconds is None else rate.get(seconds)", "None", True),
        ("self.length = 1 if seconds is None else int(seconds)", "None", True),
        ("self.length = None if rate else int(seconds)", "None", True),
        ("if seconds is None:\n            self.length = 1\n        self.length = 2", "None", True),
    ],
)
def test_what_the_constructor_finds_to_be_none(project, made, seconds, draws, negated):
    project(clips_DOT_py=WHOLE.format(made=made, negated=negated))
    main = MAIN.replace(PARTS_TAKEN, "from clips import Clips")
    folder = project(main_DOT_py=main.format(made=f"data = Clips(paths, {seconds})"))
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL103",)))
    assert [finding.code for finding in result.findings] == ["TDL103"] * draws


KINDS = """\
import random
from torch.utils.data import Dataset

class Clips(Dataset):
    def __init__(self, paths, kinds=None):
        self.paths = paths
        {made}

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return random.random() if "noise" in self.kinds else index
"""
EMPTIED = "if kinds is not None:\n            self.kinds = kinds['all']\n        else:\n            self.kinds = ()"


@pytest.mark.parametrize(
    ("made", "given", "draws"),
    [
        ("self.kinds = [] if kinds is None else kinds['all']", "paths", False),
        ("self.kinds = [] if kinds is None else kinds['all']", "paths, args.kinds", True),
        ("self.kinds = kinds['all'] if kinds is not None else []", "paths", False),
        (EMPTIED, "paths", False),
        (EMPTIED, "paths, {'all': ['noise']}", True),
        ("self.kinds = ['noise'] if kinds is None else kinds['all']", "paths", True),
        ("self.kinds = [] if self.paths is None else kinds['all']", "paths", True),
        ("self.kinds = [] if kinds else kinds['all']", "paths", True),
        ("self.kinds = []\n        self.kinds = kinds or ['noise']", "paths", True),
    ],
)
def test_what_the_constructor_leaves_empty_holds_nothing(project, made, given, draws):
    project(clips_DOT_py=KINDS.format(made=made))
    main = MAIN.replace(PARTS_TAKEN, "from clips import Clips")
    folder = project(main_DOT_py=main.format(made=f"data = Clips({given})"))
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL103",)))
    assert [finding.code for finding in result.findings] == ["TDL103"] * draws


@pytest.mark.parametrize(
    ("call", "draws"),
    [
        ("loader('val')", False),
        ("loader('train')", True),
        ("loader(args[0])", True),
        ("loader('val'), loader('train')", True),
        ("chosen('val', 0)", False),
        ("chosen('train', 0)", True),
        ("chosen('val', 1)", False),
        ("far('val')", True),
    ],
)
def test_a_text_that_is_handed_on_decides_at_most_two_calls_further(project, call, draws):
    project(
        main_DOT_py="import random\nimport sys\n\nargs = sys.argv\n\nclass Data:\n    def __init__(self, split):\n"
        "        self.split = split\n\n    def __getitem__(self, index):\n        if self.split == 'train':\n"
        "            random.random()\n        return index\n\ndef built(split):\n    return Data(split)\n\n"
        "def loader(split):\n    return built(split)[0]\n\ndef asked(split, number, more):\n"
        "    if split == 'train' and number == 0:\n        random.random()\n\ndef chosen(split, number):\n"
        "    asked(split, number, more=3)\n\ndef third(split):\n    asked(split, 0, 0)\n\n"
        "def second(split):\n    third(split)\n\ndef far(split):\n    second(split)\n\n"
        f"if __name__ == '__main__':\n    print({call})\n"
    )
    folder = project()
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL103",)))
    assert [finding.code for finding in result.findings] == (["TDL103"] if draws else [])


@pytest.mark.parametrize(
    ("change", "draws"),
    [
        ("data.train = args.train", True),
        ("data.train, x = args", True),
        ("setattr(data, 'train', 1)", True),
        ("data.other = args.train", False),
        ("print(data.train == 1)", False),
    ],
)
def test_what_is_assigned_from_outside_is_not_known(project, change, draws):
    assert drawn(project, TRAIN, f"data = Base(paths)\n    {change}") == draws


@pytest.mark.parametrize(("mode", "draws"), [("Train", True), ("Test", False)])
def test_another_spelling_of_a_parameter_is_known(project, mode, draws):
    assert drawn(project, "if self.mode == 'train': random.random()", f"data = Spelt(paths, '{mode}')") == draws


BY_NAME = ["setattr(self, name, value)", "self.__dict__.update(values)", "vars(self)[name] = 1"]


@pytest.mark.parametrize("change", BY_NAME)
def test_of_a_class_that_takes_attributes_by_name_nothing_is_known(project, change):
    body = f"if self.train: random.random()\n\n    def take(self, name, value, values=()):\n        {change}"
    assert drawn(project, body, "data = Base(paths)")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("self.a = 1", ""),
        ("self.a: int = 2", ""),
        ("self.a = self.b = f(x, c=1)", ""),
        ("self.a, self.b = 1, 2", ""),
        ("(self.a, self.b) = f(x, c=1)", ""),
        ("self.a, x.b = 1, 2", "ab"),
        ("self.a, self.b[0] = 1, 2", "a"),
        ("self.a += 1", "a"),
        ("self.a //= 1", "a"),
        ("x.a = 1", "a"),
        ("x.a.b = self.c = 1", "b"),
        ("if x == 1: self.a = 3", "a"),
        ("f(self.a, b=1)", ""),
        ("x.a == 3", ""),
        ("x.a[0] = 3", ""),
        ("setattr(x, 'a', 1)", "a"),
        ("setattr(self, name, 1)", ANY),
        ("object.__setattr__(self, 'a', 1)", "a"),
        ("setattr(self, 'a', 1)", "a"),
        ("def __setattr__(self, name, value):", ANY),
        ("=" * 9, ""),
    ],
)
def test_attributes_that_a_line_assigns(line, names):
    assert "".join(sorted(assigned([line]))) == names


@pytest.mark.parametrize(
    ("made", "names"),
    [
        ("args = parser.parse_args()", ""),
        ("args, rest = parser.parse_known_args(argv)", ""),
        ("args = parser", "mode"),
        ("other = parser.parse_args()", "mode"),
    ],
)
def test_options_of_the_command_line_are_no_attributes_of_other_objects(made, names):
    assert "".join(sorted(assigned([made, "args.mode = 'test'"]).keys() - {f"{OPTION}mode"})) == names


@pytest.mark.parametrize(("mode", "unseeded"), [("test", False), ("train", True)])
def test_workers_run_what_an_object_was_made_with_through_the_constructor_around(tmp_path, mode, unseeded):
    """The mode goes from the program to a loader, and from there to the data set that it keeps."""
    (tmp_path / "data.py").write_text(
        "import random\nfrom torch.utils.data import DataLoader, Dataset\n\n"
        "class Rows(Dataset):\n    def __init__(self, mode):\n        self.mode = mode\n\n"
        "    def __len__(self):\n        return 8\n\n    def __getitem__(self, index):\n"
        "        return random.random() if self.mode == 'train' else index\n\n"
        "class Loader:\n    def __init__(self, mode):\n        self.rows = Rows(mode)\n"
        "        self.data = DataLoader(self.rows, num_workers=1)\n"
    )
    (tmp_path / "train.py").write_text(
        "import argparse\nfrom data import Loader\n\ndef main():\n"
        "    args = argparse.ArgumentParser().parse_args()\n    args.mode = 'test'\n"
        f"    for row in Loader('{mode}').data:\n        print(row)\n\nif __name__ == '__main__':\n    main()\n"
    )
    found = run.run([str(tmp_path)], Settings(root=str(tmp_path), select=("TDL101",), cache_dir=str(tmp_path / "c")))
    assert bool(found.findings) is unseeded


ON_THE_CPU = """
import torch

class Agent:
    def __init__(self, options, device):
        {kept}
        self.net = torch.nn.Linear(3, 3).to(self.device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def move(self, pair):
        {moved}

    def update(self, rows):
        loss = self.net(rows.to(self.device)).sum()
        loss.backward()
        self.optimizer.step()

if __name__ == "__main__":
    torch.manual_seed(0)
    agent = Agent({{}}, torch.device("cpu"))
    agent.move(torch.load("pair.pt"))
    for rows in torch.load("rows.pt"):
        agent.update(rows)
"""


@pytest.mark.parametrize("kept", ["self.device = device", "self.options, self.device = options, device"])
@pytest.mark.parametrize(
    ("moved", "told"),
    [
        ("self.pair = pair", False),
        ("self.device, self.pair = pair", True),
        ("self.pair, self.device = 3, torch.device('cuda')", True),
        ("(self.device, self.pair) = torch.load(pair)", True),
        ("self.pair, self.rest = pair", False),
    ],
)
def test_an_attribute_that_is_assigned_among_others_is_known_where_all_are_in_sight(project, kept, moved, told):
    folder = project(main_DOT_py=ON_THE_CPU.format(kept=kept, moved=moved))
    found = run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="")).findings
    assert ("TDL203" in {one.code for one in found}) == told
