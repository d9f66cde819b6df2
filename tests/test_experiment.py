"""Programs run before and after `--fix`: a safe fix leaves the experiment the same experiment, and cures its cause.

Every program calls `shown(…)`. What it calls `draws` must tell apart after the fix what it told apart before (calls,
epochs, workers, objects); what it calls `run` must differ between two seeds where it did so before, and be equal in two
runs with the same seed, which have different hash seeds.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import pytest

from torchdet_lint.config import NEWEST_TORCH, Settings
from torchdet_lint.engine import repair
from torchdet_lint.verifier.remedies import context, fixes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

torch = pytest.importorskip("torch")

IMPORTS = """\
import argparse
import json
import random
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler, random_split


def shown(**values):
    print("@" + json.dumps(values, sort_keys=True, default=float), flush=True)


"""
OPTIONS = """\
def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


"""


# Stand-ins for libraries that need not be installed: what they draw, and from which generator, is the same.
STAND_INS = Path(__file__).parent / "data" / "stand_ins"


class Trial(NamedTuple):
    """A program. `codes`: what is fixed by itself (empty: nothing may be); `seeded`: another `--seed` gives another
    run; `cured`: two runs are equal after the fix; `expected`: what `run` is after it, and was not before; `torch`: the
    release it is fixed for."""

    name: str
    code: str
    codes: tuple[str, ...] = ()
    seeded: bool = True
    cured: bool = True
    expected: Any = None
    torch: tuple[int, int] = NEWEST_TORCH


CURED = [
    Trial(
        "beside a seed that cannot be read twice",
        """
torch.manual_seed(max(options().seed, 0))
shown(run=[np.random.rand(2).tolist(), random.random()])
""",
        ("TDL102", "TDL103"),
    ),
    Trial(
        "a generator beside the global one of its library, which no seed reaches",
        """
args = options()
torch.manual_seed(args.seed)
state = np.random.RandomState()
own = random.Random()
draws = [state.rand(), np.random.rand(), own.random(), random.random()]
shown(draws=draws, run=draws)
""",
        ("TDL104",),
    ),
    Trial(
        "a loader below a helper that seeds, with one that seeds the workers",
        """
def set_seed(number):
    torch.manual_seed(number)


def start(worker):
    torch.manual_seed(worker)


def main():
    set_seed(options().seed)
    loader = DataLoader(list(range(8)), shuffle=True, num_workers=0, worker_init_fn=start)
    epochs = [[int(x) for x in loader] for _ in range(3)]
    shown(draws=epochs, run=epochs)


if __name__ == "__main__":
    main()
""",
        ("TDL302",),
    ),
    Trial(
        "a generator beside the global one, in a program without a seed",
        """
state = np.random.RandomState()
own = random.Random()
draws = [state.rand(), np.random.rand(), own.random(), random.random()]
shown(draws=draws, run=draws)
""",
        ("TDL102", "TDL103", "TDL104"),
    ),
    Trial(
        "a loader that is made once",
        """
def main():
    args = options()
    torch.manual_seed(args.seed)
    loader = DataLoader(list(range(8)), shuffle=True)
    epochs = [[int(x) for x in loader] for _ in range(3)]
    shown(draws=epochs, run=epochs)


if __name__ == "__main__":
    main()
""",
        ("TDL302",),
    ),
    Trial(
        "two loaders, a split and a sampler, each made once",
        """
args = options()
torch.manual_seed(args.seed)
first, second = random_split(list(range(16)), [8, 8])
one = DataLoader(list(range(8)), shuffle=True)
two = DataLoader(list(range(8)), shuffle=True)
sampler = RandomSampler(list(range(8)))
orders = [[int(x) for x in one], [int(x) for x in two], list(sampler)]
shown(draws=orders, run=[*orders, list(first.indices)])
""",
        ("TDL302", "TDL303"),
    ),
    Trial(
        "two splits that agree, for the program seeds before each: nothing is in both parts",
        """
args = options()
torch.manual_seed(args.seed)
training, _ = random_split(list(range(16)), [12, 4])
torch.manual_seed(args.seed)
_, rest = random_split(list(range(16)), [12, 4])
loader = DataLoader(training, shuffle=True)
shown(draws=[*training.indices, *rest.indices], run=[list(training.indices), [int(x) for x in loader]])
""",
        ("TDL302", "TDL303"),
    ),
    Trial(
        "a split below a permutation of as many, which both draw before all else",
        """
args = options()
torch.manual_seed(args.seed)
order = torch.randperm(16).tolist()
first, second = random_split(list(range(16)), [8, 8])
sampler = RandomSampler(list(range(16)))
shown(draws=[order, [*first.indices, *second.indices], list(sampler)], run=[order, list(first.indices)])
""",
        ("TDL303",),
    ),
    Trial(
        "a generator in a constructor that is called once, and another at top level",
        """
class Noise:
    def __init__(self):
        self.rng = np.random.default_rng()

    def draw(self):
        return self.rng.random()


def main():
    args = options()
    np.random.seed(args.seed)
    other = np.random.default_rng()
    legacy = np.random.RandomState()
    own = random.Random()
    noise = Noise()
    shown(
        draws=[noise.draw(), other.random(), legacy.random_sample(), np.random.random_sample(), own.random()],
        run=[noise.draw(), other.random(), legacy.random_sample(), own.random()],
    )


if __name__ == "__main__":
    main()
""",
        ("TDL104",),
        cured=False,
    ),
    Trial(
        "a generator below the seed of the program",
        """
args = options()
torch.manual_seed(args.seed)
rng = np.random.default_rng()
legacy = np.random.RandomState()
shown(draws=[rng.random(), rng.random(), legacy.random_sample()], run=[rng.random(), legacy.random_sample()])
""",
        ("TDL104",),
    ),
    Trial(
        "a seed that torch takes and NumPy does not",
        """
args = options()
seed = args.seed - 10
torch.manual_seed(seed)
rng = np.random.default_rng()
legacy = np.random.RandomState()
own = random.Random()
shown(draws=[rng.random(), legacy.random_sample(), own.random()], run=[rng.random(), legacy.random_sample()])
""",
        ("TDL104",),
    ),
    Trial(
        "a seed that may be none",
        """
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
args = parser.parse_args()
torch.manual_seed(1)
if args.seed is not None:
    torch.manual_seed(args.seed)
rng = random.Random()
other = random.Random()
shown(draws=[rng.random(), other.random()], run=[rng.random(), other.random()])
""",
        ("TDL104",),
    ),
    Trial(
        "a generator in a program without any",
        """
rng = np.random.default_rng()
other = np.random.default_rng()
shown(draws=[rng.random(), other.random()], run=[rng.random(), other.random()])
""",
        ("TDL104",),
        seeded=False,
    ),
    Trial(
        "the clock as the seed of the program",
        """
import time

torch.manual_seed(int(time.time() * 1e6) % 2**31)
shown(draws=torch.rand(3).tolist(), run=torch.rand(3).tolist())
""",
        ("TDL105",),
        seeded=False,
    ),
    Trial(
        "fresh entropy beside a seed",
        """
args = options()
torch.manual_seed(args.seed)
np.random.seed()
shown(draws=np.random.rand(3).tolist(), run=np.random.rand(3).tolist())
""",
        ("TDL105",),
    ),
    Trial(
        "the clock in the workers, by a lambda",
        """
import time


class Crops(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return np.random.random_sample()


def main():
    args = options()
    torch.manual_seed(args.seed)
    loader = DataLoader(
        Crops(), num_workers=2, worker_init_fn=lambda x: np.random.seed((x + int(time.time() * 1e6)) % 2**32)
    )
    epochs = [[float(x) for x in loader] for _ in range(2)]
    shown(draws=[x for epoch in epochs for x in epoch], run=epochs)


if __name__ == "__main__":
    main()
""",
        ("TDL105",),
    ),
    Trial(
        "the clock in the workers, by a function",
        """
import os


class Crops(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return np.random.random_sample()


def start(worker_id):
    np.random.seed(os.getpid() + worker_id)


def main():
    args = options()
    torch.manual_seed(args.seed)
    loader = DataLoader(Crops(), num_workers=2, worker_init_fn=start)
    epochs = [[float(x) for x in loader] for _ in range(2)]
    shown(draws=[x for epoch in epochs for x in epoch], run=epochs)


if __name__ == "__main__":
    main()
""",
        ("TDL105",),
    ),
    Trial(
        "two calls of a library that draws",
        """
import pandas as pd

args = options()
np.random.seed(args.seed)
frame = pd.DataFrame({"x": range(8)})
one = frame.sample(frac=1.0)
two = frame.sample(frac=1.0)
shown(draws=[one.x.tolist(), two.x.tolist()], run=[one.x.tolist(), two.x.tolist()])
""",
        ("TDL107",),
    ),
]

# `seed` of a `torch.Generator` is a method of a C type, which nothing replaces at run time. What a program never seeds
# is seeded with a number at run time, before the program has a seed of its own. The clock
# stays real where a variable passes it on.
IN_THE_SOURCE = [
    Trial(
        "a seed in the same line as its condition",
        """
args = options()
if args.seed is not None: torch.manual_seed(args.seed)
draws = [float(torch.rand(1)), np.random.rand(), random.random()]
shown(draws=draws, run=draws)
""",
        ("TDL102", "TDL103"),
    ),
    Trial(
        "an option that is a seed by its first long name, and is called something else where it is parsed",
        """
parser = argparse.ArgumentParser()
parser.add_argument("-s", "--seed", "--random-number", dest="start", type=int, default=0)
args = parser.parse_args()
draws = [float(torch.rand(1)), np.random.rand()]
shown(draws=draws, run=draws)
""",
        ("TDL101", "TDL102"),
    ),
    Trial(
        "an option that is a seed, beside one that seeds another library",
        """
parser = argparse.ArgumentParser()
parser.add_argument("--data_seed", type=int, default=0)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
np.random.seed(args.data_seed)
draws = [float(torch.rand(1)), np.random.rand()]
shown(draws=draws, run=draws)
""",
        ("TDL101",),
    ),
    Trial(
        "an option that a generator is made with",
        """
args = options()
state = np.random.RandomState(args.seed)
draws = [state.rand(), np.random.rand()]
shown(draws=draws, run=draws)
""",
        ("TDL102",),
    ),
    Trial(
        "a generator that is made with a number by its name, beside the global one",
        """
SEED = 0
state = np.random.RandomState(SEED)
draws = [state.rand(), np.random.rand()]
shown(draws=draws, run=draws)
""",
        ("TDL102",),
        seeded=False,
    ),
    Trial(
        "a seed in a comment that NumPy does not take",
        """
# np.random.seed(99999999999)
draws = [np.random.rand(), np.random.rand()]
shown(draws=draws, run=draws)
""",
        ("TDL102",),
        seeded=False,
    ),
    Trial(
        "generators that have the usual number already, beside the global ones",
        """
state = np.random.RandomState(0)
own = random.Random(1)
other = torch.Generator().manual_seed(2)
draws = [state.rand(), np.random.rand(), own.random(), random.random()]
draws += [float(torch.rand(1, generator=other)), float(torch.rand(1))]
shown(draws=draws, run=draws)
""",
        ("TDL101", "TDL102", "TDL103"),
        seeded=False,
    ),
    Trial(
        "a generator with the option that seeds torch, beside the global one",
        """
args = options()
torch.manual_seed(args.seed)
state = np.random.RandomState(args.seed)
other = np.random.RandomState(args.seed + 1)
draws = [state.rand(), other.rand(), np.random.rand()]
shown(draws=draws, run=draws)
""",
        ("TDL102",),
    ),
    Trial(
        "a number that seeds one library, and another library that nothing seeds",
        """
torch.manual_seed(5)
draws = [float(torch.rand(1)), np.random.rand(), random.random()]
shown(draws=draws, run=draws)
""",
        ("TDL102", "TDL103"),
        seeded=False,
    ),
    Trial(
        "a seed in a comment, beside a generator of that number",
        """
# np.random.seed(4)

state = np.random.RandomState(4)
draws = [state.rand(), np.random.rand()]
shown(draws=draws, run=draws)
""",
        ("TDL102",),
        seeded=False,
    ),
    Trial(
        "the clock as the seed of the program, which measures time with it too",
        """
import time

start = time.time()
torch.manual_seed(int(start * 1e6) % 2**31)
draws = torch.rand(3).tolist()
shown(draws=[*draws, time.time() - start < 100, True], run=draws)
""",
        ("TDL105",),
        seeded=False,
    ),
    Trial(
        "NumPy, which follows the option that seeds torch",
        """
def main():
    args = options()
    torch.manual_seed(args.seed)
    orders = [[int(x) for x in np.random.permutation(8)] for _ in range(3)]
    shown(draws=orders, run=orders)


if __name__ == "__main__":
    main()
""",
        ("TDL102",),
    ),
    Trial(
        "an option that is a seed and is never used",
        """
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    args, rest = parser.parse_known_args()
    start = torch.rand(2).tolist()
    shown(draws=[*start, random.random(), np.random.rand()], run=start)


if __name__ == "__main__":
    main()
""",
        ("TDL101", "TDL102", "TDL103"),
    ),
    Trial(
        "an option that is a seed, beside a number that seeds another library",
        """
args = options()
np.random.seed(3)
shown(draws=torch.rand(3).tolist(), run=torch.rand(3).tolist())
""",
        ("TDL101",),
    ),
    Trial(
        "fresh entropy for torch and for a generator of its own",
        """
args = options()
np.random.seed(args.seed)
torch.seed()
own = torch.Generator()
own.seed()
draws = [*torch.rand(2).tolist(), *torch.rand(2, generator=own).tolist()]
shown(draws=draws, run=draws)
""",
        ("TDL105",),
    ),
]

SETTINGS = [
    Trial(
        "global generators: every call, a loop, a lambda, many objects, every epoch",
        """
class Noise:
    def __init__(self):
        self.shift = random.random()


def augmented(value):
    return value + np.random.random_sample()


def main():
    make = lambda: float(torch.rand(1))
    draws = [Noise().shift for _ in range(3)] + [augmented(1) for _ in range(3)]
    for _ in range(3):
        draws.append(float(torch.randn(1)))
    shown(draws=[*draws, make(), make()], run=draws)


if __name__ == "__main__":
    main()
""",
        ("TDL101", "TDL102", "TDL103"),
        seeded=False,
    ),
    Trial(
        "global generators: in the workers of a loader",
        """
class Crops(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return np.random.random_sample() + random.random() + float(torch.rand(1))


def main():
    loader = DataLoader(Crops(), num_workers=2)
    start = float(torch.rand(1))
    epochs = [[float(x) for x in loader] for _ in range(2)]
    shown(draws=[start, *(x for epoch in epochs for x in epoch)], run=epochs)


if __name__ == "__main__":
    main()
""",
        ("TDL101",),
        seeded=False,
    ),
    Trial(
        "cuDNN: at every call, in a loop, in a lambda",
        """
def settle():
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = False


def state():
    return [torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic]


states = [state()]
for _ in range(2):
    settle()
    states.append(state())
late = lambda: setattr(torch.backends.cudnn, "benchmark", True)
late()
with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
    states.append(state())
shown(run=[*states, state()])
""",
        ("TDL201", "TDL202"),
        expected=[[False, False], *[[False, True]] * 4],
    ),
    Trial(
        "the fill of fresh memory",
        """
def settle():
    torch.utils.deterministic.fill_uninitialized_memory = False


torch.use_deterministic_algorithms(True)
filled = []
for _ in range(2):
    settle()
    filled.append(torch.utils.deterministic.fill_uninitialized_memory)
shown(run=filled)
""",
        ("TDL206",),
        expected=[True, True],
    ),
    Trial(
        "the workspace of cuBLAS, for a release that needs it",
        """
import os


def main():
    torch.use_deterministic_algorithms(True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer = torch.nn.Linear(2, 2).to(device)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 2, device=device)).sum().backward()
    optimizer.step()
    shown(run=[os.environ.get("CUBLAS_WORKSPACE_CONFIG")])


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
""",
        ("TDL205",),
        expected=[":4096:8"],
        torch=(2, 5),
    ),
    Trial(
        "batches in the order of their workers, from a loader that is made at every call",
        """
import time


class Slow(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(0.3 if index == 0 else 0)
        return index


def loader():
    return DataLoader(Slow(), num_workers=2, in_order=False)


def main():
    args = options()
    torch.manual_seed(args.seed)
    shown(run=[[int(x) for x in loader()] for _ in range(2)])


if __name__ == "__main__":
    main()
""",
        ("TDL308",),
        seeded=False,
        expected=[[0, 1, 2, 3]] * 2,
    ),
    Trial(
        "memory that nobody wrote: at every call, in a loop, in many objects",
        """
def used():
    return torch.full((4096,), 7.0)


def summed():
    total = torch.empty(4096)
    total += 1
    return float(total.sum())


class Mean:
    def __init__(self):
        buffer = torch.empty(4096)
        self.value = float((buffer + 1).sum())


sums = []
for _ in range(2):
    used()
    sums.append(summed())
    used()
    total = torch.empty_like(torch.ones(4096))
    total.add_(1)
    sums.append(float(total.sum()))
    used()
    sums.append(Mean().value)
shown(run=sums)
""",
        ("TDL501",),
        expected=[4096.0] * 6,
    ),
]

LISTINGS = Trial(
    "the order of files: at every call, in a loop, in a constructor",
    """
import glob
import os
from pathlib import Path


class Folder(Dataset):
    def __init__(self, root):
        self.files = os.listdir(root)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.files[index]


def names(root):
    return [path.name for path in Path(root).iterdir()]


def deep(root):
    found = []
    for name in Path(root).rglob("*.txt"):
        found.append(name.name)
    return found


root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
orders = []
for _ in range(2):
    folder = Folder(root)
    with open(os.path.join(root, "..", "order.txt"), "w") as stream:
        for line in glob.glob(os.path.join(root, "*.txt")):
            stream.write(os.path.basename(line) + "\\n")
    orders += [[folder[index] for index in range(8)], names(root), deep(root), open(stream.name).read().split()]
shown(run=orders)
""",
    ("TDL304",),
)

SETS = """\
import json
import os


def vocabulary(text):
    ids = {}
    for word in set(text.split()):
        ids[word] = len(ids)
    return ids


class Names:
    def __init__(self, text):
        self.ids = {word: number for number, word in enumerate(set(text.split()))}


TEXT = "the quick brown fox jumps over the lazy dog"
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "orders.txt")
with open(path, "w") as stream:
    for _ in range(2):
        stream.write(json.dumps(vocabulary(TEXT)))
        stream.write(json.dumps(Names(TEXT).ids))
        stream.write(",".join(set(TEXT.split())))
        for word in set(TEXT.split()):
            stream.write(word)
print("@" + json.dumps({"run": open(path).read()}))
"""

CELLS = (
    """import json
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split
""",
    """class Crops(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index + float(torch.rand(1))
""",
    "one, two = random_split(list(range(16)), [8, 8])\nloader = DataLoader(Crops(), shuffle=True, num_workers=2)",
    """rng = np.random.default_rng()
draws = [[float(x) for x in loader] for _ in range(2)]
draws += [rng.random(), random.random(), np.random.random_sample()]
print("@" + json.dumps({"draws": draws, "run": [*draws, list(one.indices)]}))
""",
)

OWNED = """
class Folder(Dataset):
    def __init__(self, transform=None):
        self.rng = np.random.default_rng(3)
        self.transform = transform

    def __len__(self):
        return 4

    def __getitem__(self, index):
        value = float(self.rng.random())
        return value if self.transform is None else self.transform(value)


class Noise:
    def __init__(self):
        self.own = random.Random()

    def __call__(self, value):
        return self.own.random()


class Private(Dataset):
    def __init__(self):
        self.__rng = np.random.default_rng(3)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return float(self.__rng.random())


def main():
    args = options()
    torch.manual_seed(args.seed)
    loader = DataLoader({data}, num_workers=2, multiprocessing_context="{start}")
    epochs = [[float(x) for x in loader] for _ in range({epochs})]
    shown(draws=[x for epoch in epochs for x in epoch], run=epochs)


if __name__ == "__main__":
    main()
"""
WORKERS = [
    Trial(
        f"{name}, {start}",
        OWNED.replace("{data}", data).replace("{start}", start).replace("{epochs}", "2" if start == "fork" else "1"),
        ("TDL301",),
    )
    for name, data, start in (
        ("a generator of the data set", "Folder()", "fork"),
        ("a generator of the data set", "Folder()", "spawn"),
        ("a generator of the data set", "Folder()", "forkserver"),
        ("a generator of a transform", "Folder(Noise())", "fork"),
        ("a private generator of the data set", "Private()", "fork"),
        ("a generator of a data set in a wrapper", "torch.utils.data.Subset(Folder(), [0, 1, 2, 3])", "fork"),
    )
]

DRAWN = "draws = [float(torch.rand(1)), np.random.rand()]\nshown(draws=draws, run=draws)\n"
PARSED = {
    "of a command": """
parser = argparse.ArgumentParser()
parser.add_subparsers().add_parser("one").add_argument("--seed", type=int, default=0)
args = parser.parse_args([])
""",
    "which is a list": """
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, nargs=1, default=0)
args = parser.parse_args()
""",
    "which a constructor parses": """
class App:
    def __init__(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--seed", type=int, default=0)
        self.args = parser.parse_args()


app = App()
""",
    "which a function parses and returns as something else": """
def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args = vars(args)
    return args


args = parse()
""",
    "which is among the first of two results": """
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_known_args()
""",
}
LEFT = [
    *(
        Trial(f"NumPy is seeded in each of two arms, {name}", f"{seeding}\n{DRAWN}", seeded=False, cured=False)
        for name, seeding in {
            "of an if": """
seed = int(sys.argv[2]) if len(sys.argv) > 4 else 0
if seed:
    np.random.seed(seed)
else:
    np.random.seed(1234)
""",
            "by a function": """
def seed_all(seed):
    np.random.seed(seed)


seed = int(sys.argv[2]) if len(sys.argv) > 4 else 0
if seed:
    seed_all(seed)
else:
    seed_all(1234)
""",
            "of a match": """
match len(sys.argv):
    case 9:
        np.random.seed(3)
    case _:
        np.random.seed(1234)
""",
            "which are functions": """
def seed_all(seed):
    np.random.seed(seed)


def demo():
    seed_all(3)
    return float(torch.rand(1))


def full(seed):
    seed_all(seed)
    return float(torch.rand(1))


print(demo() if len(sys.argv) < 9 else full(1234))
""",
            "by a number each": """
def seed_all(name):
    if name == "a":
        np.random.seed(11)
        return
    np.random.seed(22)


seed_all(sys.argv[-1])
""",
            "of a try": """
try:
    np.random.seed(int(sys.argv[9]))
except IndexError:
    np.random.seed(1234)
""",
        }.items()
    ),
    *(
        Trial(f"an option that is a seed, {name}", f"{parsing}\n{DRAWN}", seeded=False, cured=False)
        for name, parsing in PARSED.items()
    ),
    Trial(
        "a data set that takes no new generator",
        """
import dataclasses


@dataclasses.dataclass(frozen=True)
class Rows(Dataset):
    rng: object = dataclasses.field(default_factory=lambda: np.random.default_rng(3))

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.rng.random()


def main():
    args = options()
    torch.manual_seed(args.seed)
    shown(run=[float(x) for x in DataLoader(Rows(), num_workers=2)])


if __name__ == "__main__":
    main()
""",
        seeded=False,
    ),
    Trial(
        "the clock beside an option that seeds another library, which cannot be read there",
        """
import time


def begin():
    torch.manual_seed(int(time.time() * 1e6) % 2**31)


if __name__ == "__main__":
    args = options()
    np.random.seed(args.seed)
    begin()
    shown(draws=np.random.rand(2).tolist(), run=np.random.rand(2).tolist())
""",
    ),
    Trial(
        "a loader that is made under one seed and read under another",
        """
args = options()
torch.manual_seed(0)
loader = DataLoader(list(range(8)), shuffle=True)
torch.manual_seed(args.seed)
epochs = [[int(x) for x in loader] for _ in range(3)]
shown(draws=epochs, run=epochs)
""",
    ),
    Trial(
        "a loader and a sampler that a trainer seeds torch for: in a method, in a function that is handed on",
        """
class Trainer:
    def __init__(self, seed):
        self.seed = seed

    def fit(self, loader):
        torch.manual_seed(self.seed)
        return [int(x) for x in loader]


def main(seed):
    torch.manual_seed(1)
    loader = DataLoader(list(range(8)), shuffle=True)
    sampler = RandomSampler(range(8))
    return [Trainer(seed).fit(loader), Trainer(seed + 1).fit(sampler)]


if __name__ == "__main__":
    found = main(options().seed)
    shown(draws=found, run=found)
""",
    ),
    Trial(
        "a loader whose order a callback decides",
        """
def seeded(number):
    torch.manual_seed(number)


def called(callback, loader, seed):
    callback(seed)
    return [int(x) for x in loader]


args = options()
torch.manual_seed(1)
loader = DataLoader(list(range(8)), shuffle=True)
found = [called(seeded, loader, args.seed), called(seeded, loader, args.seed + 1)]
shown(draws=found, run=found)
""",
    ),
    Trial(
        "an option that is a seed, which cannot be read where the program begins, or may be none",
        """
def main(args):
    shown(run=torch.rand(3).tolist())


if __name__ == "__main__":
    main(options())
""",
        seeded=False,
    ),
    Trial(
        "a seed that is parsed after other arguments",
        """
first, rest = argparse.ArgumentParser().parse_known_args()
args = options()
shown(run=torch.rand(3).tolist())
""",
        seeded=False,
    ),
    Trial(
        "a split right below a seed, and a permutation of as many that is drawn next",
        """
args = options()
torch.manual_seed(args.seed)
first, second = random_split(list(range(16)), [8, 8])
order = torch.randperm(16).tolist()
shown(draws=[order, [*first.indices, *second.indices]], run=[order, list(first.indices)])
""",
    ),
    Trial(
        "a generator made at every call",
        """
def resampled(values):
    rng = np.random.default_rng()
    return float(np.mean(rng.random(len(values))))


values = list(range(50))
shown(draws=[resampled(values) for _ in range(20)])
""",
    ),
    Trial(
        "a generator in a loop, in a lambda and in a comprehension",
        """
draws = []
for _ in range(3):
    draws.append(random.Random().random())
make = lambda: np.random.default_rng()
draws += [make().random(), make().random()]
draws += [np.random.RandomState().random_sample() for _ in range(3)]
shown(draws=draws)
""",
    ),
    Trial(
        "a generator in a constructor of many objects",
        """
class Walker:
    def __init__(self):
        self.rng = random.Random()


walkers = [Walker() for _ in range(3)]
shown(draws=[walker.rng.random() for walker in walkers])
""",
    ),
    Trial(
        "a generator in a constructor that is called twice, and through a base class",
        """
class Base:
    def __init__(self):
        self.rng = np.random.default_rng()


class Train(Base):
    pass


class Valid(Base):
    pass


class Pair:
    def __init__(self):
        self.rng = np.random.default_rng()


shown(draws=[Train().rng.random(), Valid().rng.random(), Pair().rng.random(), Pair().rng.random()])
""",
    ),
    Trial(
        "a loader for each epoch, and from a function that is called twice",
        """
def loader(data):
    return DataLoader(data, shuffle=True)


def main():
    args = options()
    torch.manual_seed(args.seed)
    epochs = []
    for _ in range(3):
        epochs.append([int(x) for x in DataLoader(list(range(8)), shuffle=True)])
    pairs = [[int(x) for x in loader(list(range(8)))], [int(x) for x in loader(list(range(8)))]]
    splits = [list(random_split(list(range(8)), [4, 4])[0].indices) for _ in range(3)]
    shown(draws=[*epochs, *pairs, *splits], run=[epochs, pairs, splits])


if __name__ == "__main__":
    main()
""",
    ),
    Trial(
        "a text and a list that seed, which other libraries do not take",
        """
name = "first"
entropy = [1, 2]
random.seed(name)
np.random.seed(entropy)
shown(draws=[random.Random().random(), np.random.default_rng().random()])
""",
    ),
    Trial(
        "benchmark mode by a name that is bound there",
        """
torch.backends.cudnn.benchmark = (fast := True)
shown(draws=[fast])
""",
    ),
    Trial(
        "a loader that is made before the program seeds",
        """
loader = DataLoader(list(range(8)), shuffle=True)


def main():
    args = options()
    torch.manual_seed(args.seed)
    shown(run=[int(x) for x in loader])


if __name__ == "__main__":
    main()
""",
    ),
    Trial(
        "the clock as the seed of each trial",
        """
import time

draws = []
for _ in range(3):
    torch.manual_seed(time.time_ns() % 2**31)
    draws.append(float(torch.rand(1)))
shown(draws=draws)
""",
        seeded=False,
        cured=False,
    ),
    Trial(
        "a library that draws, called in a loop",
        """
import pandas as pd

args = options()
np.random.seed(args.seed)
frame = pd.DataFrame({"x": range(8)})


def boot(frame):
    return frame.sample(frac=1.0, replace=True)


shown(draws=[boot(frame).x.tolist() for _ in range(4)], run=[boot(frame).x.tolist() for _ in range(4)])
""",
    ),
    Trial(
        "a context manager that seeds is no seeding function",
        """
import contextlib


@contextlib.contextmanager
def seeded(seed):
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    yield
    torch.set_rng_state(state)


if __name__ == "__main__":
    shown(run=torch.rand(2).tolist())
""",
        codes=("TDL101",),
        seeded=False,
    ),
]


# What is made again and again: no safe fix, and the unsafe one keeps apart what drew different numbers.
REPEATED = [
    Trial(
        "bootstraps by a function that makes a generator",
        """
values = np.arange(50.0)


def resampled():
    rng = np.random.default_rng()
    return float(values[rng.integers(0, 50, 50)].mean()), random.Random().random()


draws = [resampled() for _ in range(6)]
shown(draws=draws, run=draws)
""",
        ("TDL104",),
    ),
    Trial(
        "objects of two classes that take their generator from a third",
        """
class Source:
    def __init__(self):
        self.rng = np.random.RandomState()


class Left(Source):
    pass


class Right(Source):
    pass


if __name__ == "__main__":
    draws = [float(one.rng.rand()) for one in (Left(), Right(), Right())]
    shown(draws=draws, run=draws)
""",
        ("TDL104",),
    ),
    Trial(
        "an attempt that seeds, made again until it succeeds",
        """
import time


def attempt():
    random.seed(time.time_ns())
    if random.random() < 0.7:
        raise ValueError
    return random.random()


def main():
    for _ in range(200):
        try:
            return attempt()
        except ValueError:
            pass
    raise SystemExit("no attempt succeeded")


shown(run=main())
""",
        ("TDL105",),
    ),
    Trial(
        "trials in a loop, each seeded by the clock",
        """
import time

draws = []
for trial in range(4):
    torch.manual_seed(time.time_ns() % 2**31)
    draws.append(float(torch.rand(1)))
shown(draws=draws, run=draws)
""",
        ("TDL105",),
    ),
    Trial(
        "samples of a table by a function that is called again and again",
        """
import pandas as pd

frame = pd.DataFrame({"x": range(8)})


def boot(frame):
    return frame.sample(frac=1.0, replace=True)


draws = [boot(frame).x.tolist() for _ in range(4)]
shown(draws=draws, run=draws)
""",
        ("TDL107",),
    ),
]


@pytest.fixture(scope="session", autouse=True)
def compiler() -> None:
    """Imports what a program that sets the mode would have to import in each process."""
    torch.use_deterministic_algorithms(False)


def run(path: Path, *arguments: str, remedies: Sequence[str] = ()) -> dict[str, Any]:
    """What a program shows, run in a copy of this process: torch is imported already, every generator is fresh, files
    are listed in any order. `remedies` are rules whose runtime fix is applied."""
    output = path.with_suffix(".out")
    if not (child := os.fork()):
        _start(path, output, arguments, remedies)
    _, status = os.waitpid(child, 0)
    assert status == 0, output.read_text()
    return read(output.read_text())


def _start(path: Path, output: Path, arguments: Sequence[str], remedies: Sequence[str]) -> NoReturn:
    signal.alarm(120)
    with output.open("w") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
        sys.stdout = sys.__stdout__ = os.fdopen(1, "w")
        sys.argv = [str(path), *arguments]
        sys.path[:0] = [str(path.parent), str(STAND_INS)]
        torch.set_num_threads(1)
        random.seed()
        np.random.seed()
        torch.seed()
        _shuffle_listings()
        try:
            if remedies:
                context.lineage.cache_clear()
                fixes.install(remedies)
            if path.suffix == ".ipynb":
                _run_cells(path)
            else:
                runpy.run_path(str(path), run_name="__main__")
        except BaseException:
            traceback.print_exc(file=stream)
            stream.flush()
            os._exit(1)
        sys.stdout.flush()
    os._exit(0)


def _run_cells(path: Path) -> None:
    """Run a notebook as its kernel does: one cell after the other, in the names of the main module."""
    names = sys.modules["__main__"].__dict__
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)


def _shuffle_listings() -> None:
    """Let the operating system list files in another order every time."""
    listed, scanned = os.listdir, os.scandir

    class Scan(contextlib.AbstractContextManager[Any]):
        def __init__(self, folder: Any) -> None:
            with scanned(folder) as entries:
                self.entries = sorted(entries, key=lambda entry: entry.name)
            random.SystemRandom().shuffle(self.entries)

        def __iter__(self) -> Iterator[Any]:
            return iter(self.entries)

        def __exit__(self, *_: object) -> None:
            pass

    def listdir(folder: Any = ".") -> list[Any]:
        names = sorted(listed(folder))
        random.SystemRandom().shuffle(names)
        return names

    os.listdir, os.scandir = listdir, Scan  # type: ignore[assignment]


def run_afresh(path: Path, *, hash_seed: str) -> dict[str, Any]:
    """The same in a process that is started for it, with a hash seed of its own."""
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": hash_seed}, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return read(done.stdout)


def read(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(next(line for line in output.splitlines() if line.startswith("@"))[1:])
    return found


def fixed(
    folder: Path,
    files: Mapping[str, str],
    select: Sequence[str] = (),
    release: tuple[int, int] = NEWEST_TORCH,
    *,
    unsafe: bool = False,
) -> dict[str, str]:
    """The files after their safe fixes, and the `unsafe` ones too, for a release of torch."""
    for name, text in files.items():
        (folder / name).write_text(text)
    settings = Settings(
        root=str(folder), fix=True, unsafe_fixes=unsafe, min_severity="note", cache_dir="", torch=release
    )
    outcome = repair.repair(sorted(str(folder / name) for name in files), settings)
    assert not outcome.result.errors
    changed = {Path(path).name: change.new.decode() for path, change in outcome.changes.items()}
    codes = {code for change in outcome.changes.values() for code, _ in change.fixed}
    assert not select or codes >= set(select), (codes, changed)
    return {**files, **changed}


def kinds(found: Mapping[str, Any]) -> int:
    return len({json.dumps(one) for one in found.get("draws", ())})


def program_of(trial: Trial) -> str:
    return IMPORTS + (OPTIONS if "options()" in trial.code else "") + trial.code.lstrip("\n")


@pytest.mark.parametrize("trial", WORKERS, ids=lambda trial: trial.name)
def test_a_generator_that_is_copied_to_the_workers_gets_a_seed_in_each(trial: Trial, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(program_of(trial))
    old = run(program, "--seed", "1") if trial.name.endswith("fork") else {}
    program.write_text(fixed(tmp_path, {"program.py": program.read_text()}, trial.codes)["program.py"])
    if not old:
        # A worker of these imports torch again: one run shows that it can be started.
        new = run(program, "--seed", "1")
        assert kinds(new) == len(new["draws"])
        return
    new, again, other = (run(program, "--seed", seed) for seed in ("1", "1", "2"))
    assert kinds(old) < len(old["draws"])
    assert kinds(new) == len(new["draws"]), "two workers or two epochs drew the same"
    assert new == again
    assert new != other


TWO_STREAMS = """
class Rows(Dataset):
    def __init__(self):
        {made}

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return [{drawn}]


if __name__ == "__main__":
    torch.manual_seed(options().seed)
    draws = [round(float(one), 6) for row in DataLoader(Rows(), batch_size=None, num_workers=2) for one in row]
    shown(draws=draws, run=draws)
"""


@pytest.mark.parametrize(
    ("made", "drawn"),
    [
        (
            "self.crop, self.noise, self.flip = np.random.default_rng(1), np.random.RandomState(3), random.Random(4)",
            "self.crop.random(), self.noise.rand(), self.flip.random()",
        ),
        (
            "self.crop = np.random.default_rng(1)\n        self.noise = np.random.default_rng(3)",
            "self.crop.random(), self.noise.random()",
        ),
        (
            "self.source = torch.Generator().manual_seed(7)",
            "torch.rand((), generator=self.source), torch.rand(())",
        ),
    ],
)
def test_no_two_streams_of_the_workers_are_the_same(made: str, drawn: str, tmp_path: Path) -> None:
    """The second generator of a worker was given the seed of the next worker, and one of torch that of the worker."""
    program = tmp_path / "program.py"
    text = IMPORTS + OPTIONS + TWO_STREAMS.lstrip("\n").replace("{made}", made).replace("{drawn}", drawn)
    program.write_text(fixed(tmp_path, {"program.py": text}, ("TDL301",))["program.py"])
    new, again = run(program, "--seed", "1"), run(program, "--seed", "1")
    assert kinds(new) == len(new["draws"])
    assert new == again


@pytest.mark.parametrize("trial", [*CURED, *IN_THE_SOURCE, *LEFT], ids=lambda trial: trial.name)
def test_a_safe_fix_keeps_the_experiment(trial: Trial, tmp_path: Path) -> None:
    text = program_of(trial)
    program = tmp_path / "program.py"
    program.write_text(text)
    seed = ["--seed", "1"] if "--seed" in text else []
    old = run(program, *seed)
    new_text = fixed(tmp_path, {"program.py": text}, trial.codes)["program.py"]
    program.write_text(new_text)
    assert trial.codes or new_text == text
    new = run(program, *seed)
    assert kinds(new) == kinds(old)
    if seed and trial.seeded:
        assert run(program, "--seed", "2")["run"] != new["run"]
    if trial.cured and trial.codes:
        assert run(program, *seed)["run"] == new["run"]


@pytest.mark.parametrize("trial", REPEATED, ids=lambda trial: trial.name)
def test_an_unsafe_fix_of_what_is_made_again_and_again_keeps_it_apart(trial: Trial, tmp_path: Path) -> None:
    """A constant made all bootstraps the same, and went on for ever in a loop that tries again."""
    files = {"program.py": program_of(trial)}
    program = tmp_path / "program.py"
    assert fixed(tmp_path, files) == files
    old = run(program)
    program.write_text(fixed(tmp_path, files, trial.codes, unsafe=True)["program.py"])
    new = run(program)
    assert kinds(new) == kinds(old)
    assert old["run"] != new["run"] == run(program)["run"]


@pytest.mark.parametrize("trial", SETTINGS, ids=lambda trial: trial.name)
def test_a_safe_fix_cures_what_it_says(trial: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    text = program_of(trial)
    program = tmp_path / "program.py"
    program.write_text(text)
    old = run(program)
    program.write_text(fixed(tmp_path, {"program.py": text}, trial.codes, trial.torch)["program.py"])
    new = run(program)
    assert kinds(new) == kinds(old)
    if trial.expected is None:
        assert old["run"] != new["run"] == run(program)["run"]
    else:
        assert old["run"] != trial.expected
        assert new["run"] == trial.expected


@pytest.mark.parametrize("above", ["OFFSET = random.random()", "torch.manual_seed(1)"])
def test_new_processes_draw_different_numbers_after_a_safe_fix(tmp_path: Path, above: str) -> None:
    """A spawned process imports the program, and a seed at its top level would seed all of them alike."""
    code = f"""
import multiprocessing as mp

{above}


def target(queue):
    queue.put(random.random())


if __name__ == "__main__":
    own, context = random.random(), mp.get_context("spawn")
    queue = context.Queue()
    started = [context.Process(target=target, args=(queue,)) for _ in range(2)]
    for one in started:
        one.start()
    draws = [queue.get() for _ in started]
    for one in started:
        one.join()
    shown(draws=draws)
"""
    program = tmp_path / "program.py"
    program.write_text(fixed(tmp_path, {"program.py": IMPORTS + code})["program.py"])
    assert kinds(run_afresh(program, hash_seed="0")) == 2


def test_generators_of_two_files_draw_different_numbers(tmp_path: Path) -> None:
    files = {
        "noise.py": "import numpy as np\n\nrng = np.random.default_rng()\nprint(rng.random())\n",
        "program.py": IMPORTS + "import noise\n\nrng = np.random.default_rng()\n"
        "shown(draws=[rng.random(), noise.rng.random()], run=rng.random())\n",
    }  # fmt: skip
    for name, text in fixed(tmp_path, files, ("TDL104",)).items():
        (tmp_path / name).write_text(text)
    new = run(tmp_path / "program.py")
    assert kinds(new) == 2
    assert new["run"] == run(tmp_path / "program.py")["run"]


@pytest.mark.parametrize(("given", "mended"), [("0", False), ("seed=0", False), ("3", True), ("0, 4", False)])
def test_a_number_that_a_file_beside_gives_a_generator_is_not_given_another(
    tmp_path: Path, given: str, mended: bool
) -> None:
    files = {
        "noise.py": f"import numpy as np\n\nrng = np.random.Generator(np.random.Philox({given}))\n",
        "program.py": "import numpy as np\nimport noise\n\nrng = np.random.Generator(np.random.Philox())\n"
        "print(rng.random(), noise.rng.random())\n",
    }  # fmt: skip
    assert (fixed(tmp_path, files) != files) is mended


def test_a_generator_draws_other_numbers_than_the_global_one_that_a_file_beside_uses(tmp_path: Path) -> None:
    files = {
        "noise.py": "import random\n\nimport numpy as np\n\n\ndef noise():\n    return np.random.rand()\n\n\n"
        "def coin():\n    return random.random()\n",
        "program.py": IMPORTS + "import noise\n\nstate = np.random.RandomState()\nown = random.Random()\n"
        "draws = [state.rand(), noise.noise(), own.random(), noise.coin()]\nshown(draws=draws, run=draws)\n",
    }  # fmt: skip
    for name, text in fixed(tmp_path, files, ("TDL102", "TDL103", "TDL104")).items():
        (tmp_path / name).write_text(text)
    new = run(tmp_path / "program.py")
    assert kinds(new) == 4
    assert new == run(tmp_path / "program.py")


RESEEDING = """\
import torch


def begin(number):
    torch.manual_seed(number)


def called(loader, number):
    begin(number)
    return [int(x) for x in loader]


class Trainer:
    def __init__(self, seed):
        self.seed = seed

    def fit(self, loader):
        return [called(loader, self.seed + epoch) for epoch in range(2)]


class Quiet:
    def __init__(self, seed):
        begin(seed)

    def fit(self, loader):
        return [[int(x) for x in loader] for _ in range(2)]
"""


@pytest.mark.parametrize(
    ("imported", "found", "mended"),
    [
        ("Trainer", "Trainer(args.seed).fit(loader)", False),
        ("called", "[called(loader, args.seed + epoch) for epoch in range(2)]", False),
        ("Quiet", "Quiet(args.seed).fit(loader)", False),
        ("begin", "[[int(x) for x in loader] for _ in range(2)]", True),
    ],
)
def test_what_another_file_seeds_torch_with_decides_the_order_of_a_loader(
    tmp_path: Path, imported: str, found: str, *, mended: bool
) -> None:
    files = {
        "helper.py": RESEEDING,
        "program.py": f"{IMPORTS}{OPTIONS}from helper import begin, {imported}\n\nargs = options()\nbegin(args.seed)\n"
        f"loader = DataLoader(list(range(8)), shuffle=True)\nfound = {found}\nshown(draws=found, run=found)\n",
    }
    new = fixed(tmp_path, files)
    assert (new != files) is mended
    for name, text in new.items():
        (tmp_path / name).write_text(text)
    assert run(tmp_path / "program.py", "--seed", "1") != run(tmp_path / "program.py", "--seed", "2")


def test_a_loader_that_is_made_above_the_seed_of_another_file_gets_no_initial_seed(tmp_path: Path) -> None:
    """Its order repeated; with what torch was seeded with when it was made, it would differ in every run."""
    engine = """\
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self):
        self.loader = DataLoader(range(6), batch_size=2, shuffle=True)
"""
    program = """
from engine import Trainer


def seed_all(seed):
    torch.manual_seed(seed)


def main():
    args = options()
    trainer = Trainer()
    seed_all(args.seed)
    shown(run=[batch.tolist() for batch in trainer.loader])


if __name__ == "__main__":
    main()
"""
    files = {"engine.py": engine, "train.py": IMPORTS + OPTIONS + program}
    assert fixed(tmp_path, files, unsafe=True)["engine.py"] == engine
    below = {**files, "train.py": files["train.py"].replace(
        "    trainer = Trainer()\n    seed_all(args.seed)\n", "    seed_all(args.seed)\n    trainer = Trainer()\n"
    )}  # fmt: skip
    assert "initial_seed" in fixed(tmp_path, below, unsafe=True)["engine.py"]


def test_no_process_goes_on_from_a_copy_of_the_source_of_seeds(tmp_path: Path) -> None:
    """Tasks of a pool, targets and classes of processes would all have drawn the same numbers."""
    text = """\
import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch


def draw():
    return np.random.default_rng()


def roll(index):
    return index, int(draw().integers(10**6))


class Worker(mp.Process):
    def run(self):
        source = torch.Generator()
        source.seed()
        print(torch.rand(1, generator=source))


def play(queue):
    queue.put(np.random.default_rng().random())


class Rows(torch.utils.data.Dataset):
    def __getitem__(self, index):
        return np.random.default_rng().random()


class Collate:
    def __call__(self, rows):
        return np.random.default_rng().permutation(rows)


def batches(data):
    return torch.utils.data.DataLoader(data, num_workers=2, collate_fn=Collate())


def many():
    return [np.random.default_rng() for _ in range(3)]


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(roll, range(4))))
    mp.Process(target=play, args=(mp.Queue(),)).start()
    Worker().start()
    print(many())
"""
    new = fixed(tmp_path, {"program.py": text}, ("TDL104",), unsafe=True)["program.py"]
    assert new.count("seed_source.getrandbits(32)") == 1
    assert "[np.random.default_rng(seed_source.getrandbits(32)) for _ in range(3)]" in new


@pytest.mark.parametrize(
    "seeding",
    [
        'rank = int(os.environ.get("RANK", 0))\ntorch.manual_seed(options().seed + rank)',
        "seed = options().seed + get_rank()\ntorch.manual_seed(seed)",
    ],
)
def test_two_loaders_of_a_rank_shuffle_unlike_those_of_the_next(
    seeding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second loader was given what torch was seeded with and one more: the seed of the next rank."""
    text = (
        IMPORTS
        + OPTIONS
        + """
import os


def get_rank():
    return int(os.environ.get("RANK", 0))


{seeding}
loaders = [
    DataLoader(range(16), batch_size=16, shuffle=True),
    DataLoader(range(16), batch_size=16, shuffle=True),
]
shown(draws=[batch.tolist() for loader in loaders for batch in loader])
""".replace("{seeding}", seeding)
    )
    program = tmp_path / "program.py"
    program.write_text(fixed(tmp_path, {"program.py": text}, ("TDL302",))["program.py"])
    orders = []
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        orders += run(program)["draws"]
    assert kinds({"draws": orders}) == 6


@pytest.mark.parametrize(
    "own",
    [
        "DataLoader(range(16), 16, shuffle=True, generator=torch.Generator().manual_seed(args.seed))",
        "DataLoader(range(16), 16, sampler=torch.utils.data.DistributedSampler(range(16), 1, 0, seed=args.seed))",
        "DataLoader(range(16), 16, sampler=Epochs(args.seed))",
    ],
)
def test_a_loader_shuffles_unlike_one_that_is_given_the_seed_of_torch(own: str, tmp_path: Path) -> None:
    """What torch was seeded with is the seed of a generator that the program makes itself."""
    text = (
        IMPORTS
        + OPTIONS
        + """
class Epochs(torch.utils.data.Sampler):
    def __init__(self, seed):
        self.seed, self.epoch = seed, 0

    def __len__(self):
        return 16

    def __iter__(self):
        source = torch.Generator()
        source.manual_seed(self.seed + self.epoch)
        return iter(torch.randperm(16, generator=source).tolist())


if __name__ == "__main__":
    args = options()
    torch.manual_seed(args.seed)
    model = torch.nn.Linear(2, 2)
    own = {own}
    other = DataLoader(range(16), 16, shuffle=True)
    third = DataLoader(range(16), 16, shuffle=True)
    train, test = random_split(range(16), [10, 6])
    draws = [batch.tolist() for batch in other] + [batch.tolist() for batch in third]
    draws.append([*train.indices, *test.indices])
    for epoch in range(3):
        if hasattr(own.sampler, "epoch"):
            own.sampler.epoch = epoch
        draws += [batch.tolist() for batch in own]
    shown(draws=draws, run=draws)
""".replace("{own}", own)
    )
    program = tmp_path / "program.py"
    program.write_text(text)
    assert kinds(run(program)) == 6
    program.write_text(fixed(tmp_path, {"program.py": text}, ("TDL302", "TDL303"))["program.py"])
    assert kinds(run(program)) == 6


def test_no_number_seeds_all_ranks_of_a_program_that_reads_its_own(tmp_path: Path) -> None:
    """Each rank drew numbers of its own."""
    text = (
        IMPORTS
        + """
import os

rank = int(os.environ.get("LOCAL_RANK", 0))
shown(run=torch.rand(2).tolist())
"""
    )
    assert fixed(tmp_path, {"program.py": text})["program.py"] == text
    assert "torch.manual_seed(0)" in fixed(tmp_path, {"program.py": text}, unsafe=True)["program.py"]


def test_two_functions_that_seed_workers_have_two_names(tmp_path: Path) -> None:
    """The second took the place of the first."""
    text = (
        IMPORTS
        + """
class Rows(Dataset):
    def __init__(self):
        self.source = random.Random(3)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.source.random()


def batches(data):
    return list(DataLoader(data, num_workers=2))


if __name__ == "__main__":
    torch.manual_seed(0)
    shown(run=[float(one) for one in DataLoader(Rows(), batch_size=None, num_workers=2)])
"""
    )
    new = fixed(tmp_path, {"program.py": text}, unsafe=True)["program.py"]
    defined = [line.partition("(")[0] for line in new.splitlines() if line.startswith("def seed_")]
    assert len(defined) == len(set(defined)) == 2


def test_a_function_reads_no_seed_that_only_the_main_guard_binds(tmp_path: Path) -> None:
    """Whoever imports the function has no such name."""
    guard = 'if __name__ == "__main__":\n    seed = 3\n    torch.manual_seed(seed)\n    random.seed(seed)\n'
    function = "def noise():\n    return random.Random().random()\n"
    text = f"import random\n\nimport torch\n\n\n{function}\n\n{guard}    print(noise())\n"
    (tmp_path / "noise.py").write_text(fixed(tmp_path, {"noise.py": text}, ("TDL104",))["noise.py"])
    program = tmp_path / "program.py"
    program.write_text(IMPORTS + "from noise import noise\n\ntorch.manual_seed(4)\nshown(run=noise())\n")
    assert run(program) == run(program)


def test_an_option_that_another_file_parses_is_the_seed(tmp_path: Path) -> None:
    files = {
        "settings.py": "import argparse\n\n\n" + OPTIONS,
        "program.py": IMPORTS + "from settings import options\n\nargs = options()\nshown(run=torch.rand(3).tolist())\n",
    }
    for name, text in fixed(tmp_path, files, ("TDL101",)).items():
        (tmp_path / name).write_text(text)
    first, again, other = (run(tmp_path / "program.py", "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again != other


@pytest.mark.parametrize("drawn", ["np.random.default_rng()", "random.Random(time.time_ns())"])
def test_no_generator_gets_a_number_where_another_file_parses_a_seed(tmp_path: Path, drawn: str) -> None:
    """Whoever runs the program with another seed would get the same numbers."""
    files = {
        "settings.py": "import argparse\n\n\n" + OPTIONS,
        "program.py": f"{IMPORTS}import time\n\nfrom settings import options\n\nargs = options()\n"
        f"print({drawn}.random())\n",
    }
    assert fixed(tmp_path, files) == files
    files["settings.py"] = files["settings.py"].replace("--seed", "--speed")
    assert fixed(tmp_path, files) != files


def test_a_function_of_another_file_seeds_whatever_it_is_called(tmp_path: Path) -> None:
    body = "    random.seed(value)\n    torch.manual_seed(value)\n"
    files = {
        "helper.py": f"import random\n\nimport torch\n\n\ndef start(value):\n{body}",
        "program.py": IMPORTS + "import helper\n\nhelper.start(3)\n"
        "first, second = random_split(list(range(8)), [4, 4])\nshown(run=list(first.indices))\n",
    }  # fmt: skip
    for name, text in fixed(tmp_path, files, ("TDL303",)).items():
        (tmp_path / name).write_text(text)
    assert run(tmp_path / "program.py") == run(tmp_path / "program.py")


def test_a_value_that_the_user_sets_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    trial = next(one for one in SETTINGS if one.codes == ("TDL205",))
    program = tmp_path / "program.py"
    program.write_text(fixed(tmp_path, {"program.py": program_of(trial)}, trial.codes, trial.torch)["program.py"])
    assert run(program)["run"] == [":16:8"]


def test_listed_files_have_one_order(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for name in "abcdefgh":
        (tmp_path / "files" / f"{name}.txt").touch()
    program = tmp_path / "program.py"
    program.write_text(program_of(LISTINGS))
    old = run(program)["run"]
    program.write_text(fixed(tmp_path, {"program.py": program.read_text()}, LISTINGS.codes)["program.py"])
    new = run(program)["run"]
    assert new == [sorted(one) for one in old]
    assert old != new == run(program)["run"]


def test_sets_have_one_order_under_every_hash_seed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SETS)
    assert run_afresh(program, hash_seed="1") != run_afresh(program, hash_seed="2")
    program.write_text(fixed(tmp_path, {"program.py": SETS}, ("TDL305",))["program.py"])
    assert run_afresh(program, hash_seed="1") == run_afresh(program, hash_seed="2")


def test_a_notebook_runs_after_its_fixes(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in CELLS]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    notebook = tmp_path / "program.ipynb"
    notebook.write_text(text)
    old = run(notebook)
    codes = ("TDL101", "TDL102", "TDL103", "TDL104")
    notebook.write_text(fixed(tmp_path, {"program.ipynb": text}, codes)["program.ipynb"])
    new = run(notebook)
    assert kinds(new) == kinds(old) == len(new["draws"])
    assert old != new == run(notebook)


@pytest.mark.parametrize("name", ["program.py", "program.ipynb"])
def test_what_is_written_stands_below_the_import_that_it_needs(tmp_path: Path, name: str) -> None:
    shown = 'print("@" + json.dumps({"draws": order, "run": [order, value]}))\n'
    cells = [
        "import json\nfrom torch import manual_seed\nfrom torch.utils.data import DataLoader\n\nmanual_seed(3)\n",
        "loader = DataLoader(list(range(8)), shuffle=True)\norder = [int(x) for x in loader]\n",
        f"import numpy as np\nimport torch\n\nvalue = np.random.rand() + float(torch.rand(1))\n{shown}",
    ]
    held = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    notebook = json.dumps({"cells": held, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    text = notebook if name.endswith("b") else "".join(cells)
    (tmp_path / name).write_text(fixed(tmp_path, {name: text}, ("TDL102", "TDL302"))[name])
    assert run(tmp_path / name) == run(tmp_path / name)


RUNTIME = ("TDL101", "TDL102", "TDL103", "TDL104", "TDL105", "TDL107", "TDL301", "TDL302", "TDL303")


@pytest.mark.parametrize("trial", [*CURED, *LEFT, *SETTINGS[:2]], ids=lambda trial: trial.name)
def test_a_runtime_fix_keeps_the_experiment(trial: Trial, tmp_path: Path) -> None:
    """What gets a generator of its own at run time still differs where it did, and follows the program's own seed."""
    text = program_of(trial)
    program = tmp_path / "program.py"
    program.write_text(text)
    seed = ["--seed", "1"] if "--seed" in text else []
    old = run(program, *seed)
    new = run(program, *seed, remedies=RUNTIME)
    assert kinds(new) == kinds(old)
    assert new == run(program, *seed, remedies=RUNTIME)
    if seed and trial.seeded:
        assert run(program, "--seed", "2", remedies=RUNTIME)["run"] != new["run"]


def test_options_that_are_named_at_run_time_may_be_a_seed(tmp_path: Path) -> None:
    """A constant would take from the program the seed that its configuration gives it."""
    code = """\
import argparse
import json

import torch

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    with open("config.json") as stream:
        for key, value in json.load(stream).items():
            parser.add_argument(f"--{key}", default=value, type=type(value))
    args = parser.parse_args()
    print(torch.nn.Linear(2, args.width).weight)
"""
    program = tmp_path / "train.py"
    program.write_text(code)
    command = [sys.executable, "-m", "torchdet_lint", "--fix", "--isolated", "--no-cache", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "TDL101" in done.stdout
    assert program.read_text() == code


def test_a_seed_that_is_read_from_the_command_line_where_it_is_used_seeds_the_other_generators(tmp_path: Path) -> None:
    """NumPy was given a number, and drew the same whatever the command line said."""
    program = tmp_path / "train.py"
    program.write_text(IMPORTS + "torch.manual_seed(int(sys.argv[1]))\nshown(run=np.random.rand(4).tolist())\n")
    command = [sys.executable, "-m", "torchdet_lint", "--fix", "--isolated", "--no-cache", "train.py"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert run(program, "1") == run(program, "1")
    assert run(program, "1") != run(program, "2")
