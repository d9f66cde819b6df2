"""Programs run before and after `--fix`: a safe fix leaves the experiment the same experiment, and cures its cause.

Every program calls `shown(…)`. What it calls `draws` must tell apart after the fix what it told apart before (calls,
epochs, workers, objects); what it calls `run` must differ between two seeds where it did so before, and be equal in two
runs with the same seed, which have different hash seeds.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import runpy
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import repair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    run; `cured`: two runs are equal after the fix; `start`: how its workers are started."""

    name: str
    code: str
    codes: tuple[str, ...] = ()
    seeded: bool = True
    cured: bool = True
    start: str = ""


CURED = [
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
        ("a generator of a data set in a wrapper", "torch.utils.data.Subset(Folder(), [0, 1, 2, 3])", "fork"),
    )
]

LEFT = [
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
    options()
    shown(run=torch.rand(2).tolist())
""",
        codes=("TDL101",),
        seeded=False,
    ),
]


def run(path: Path, *arguments: str) -> dict[str, Any]:
    """What a program shows, run in a copy of this process: torch is imported already, every generator is fresh."""
    context = multiprocessing.get_context("fork")
    output = path.with_suffix(".out")
    child = context.Process(target=_start, args=(path, output, arguments))
    child.start()
    child.join(120)
    assert child.exitcode == 0, output.read_text()
    return read(output.read_text())


def _start(path: Path, output: Path, arguments: Sequence[str]) -> None:
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
        try:
            runpy.run_path(str(path), run_name="__main__")
        except BaseException:
            traceback.print_exc(file=stream)
            stream.flush()
            os._exit(1)


def run_afresh(path: Path, *arguments: str, hash_seed: str = "0") -> dict[str, Any]:
    """The same in a process that is started for it."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True, text=True, env=environment, cwd=path.parent, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return read(done.stdout)


def read(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(next(line for line in output.splitlines() if line.startswith("@"))[1:])
    return found


def fixed(folder: Path, files: Mapping[str, str], select: Sequence[str] = ()) -> dict[str, str]:
    """The files after their safe fixes."""
    for name, text in files.items():
        (folder / name).write_text(text)
    settings = Settings(root=str(folder), fix=True, cache_dir="")
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


@pytest.mark.parametrize("trial", [*CURED, *LEFT], ids=lambda trial: trial.name)
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
