"""`fuzz.py [TREE…] --minutes N`: inputs made at random through the linter, for as long as there is time.

Each failure is made small and kept as a file below `--keep`, with the command that repeats it:
`fuzz.py --repeat FILE…`. One input in ten is judged a second time by a process with another hash seed. An input fails
too where it takes far more time than others of its kind and size. What was mended goes to `tests/data/fuzz`, which
the suite repeats.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from fuzzing.oracles import ASKED, Failure, Input, judge  # noqa: E402
from fuzzing.shrinking import shrunk  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fuzzing.making import Maker

ROOT = Path(__file__).parents[1]
TIMES_THE_USUAL = 40
"""More than this much of the usual time for an input of its kind and size is a failure, from a second on."""
_LEAST_SECONDS = 1.0
_MEMORY = 3 << 30


class Usual:
    """The usual processor time of each kind of input, by size."""

    def __init__(self) -> None:
        self._rates: dict[str, list[float]] = {}

    def limit(self, one: Input, seconds: float) -> float:
        """What an input may take; `seconds` is what it took, which counts for those to come."""
        rates = self._rates.setdefault(one.kind, [])
        if len(rates) < 501:
            rates.append(seconds / (one.size + 500))
            rates.sort()
        usual = rates[len(rates) // 2] * (one.size + 500)
        return max(_LEAST_SECONDS, TIMES_THE_USUAL * usual)


class Echo:
    """A process with another hash seed, which says what digest it comes to."""

    def __init__(self, seed: int) -> None:
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, str(Path(__file__).absolute()), "--echo"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, encoding="ascii"
        )

    def digest(self, one: Input) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(one.encoded() + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.communicate()


def echo() -> None:
    """Answer each input on standard input by its digest."""
    for line in sys.stdin:
        print(judge(Input.decoded(line)).digest, flush=True)


def fails_like(failure: Failure, limit: float) -> Callable[[Input], bool]:
    """Whether an input fails as `failure` says; too much time is tried three times."""

    def fails(one: Input) -> bool:
        if failure.oracle == "slow":
            return all(judge(one).seconds > limit for _ in range(3))
        if failure.oracle == "hash seed":
            return len(_digests(one)) > 1
        found = judge(one).failure
        return found is not None and found.key == failure.key

    return fails


def _digests(one: Input) -> set[str]:
    found = set()
    for seed in range(4):
        process = Echo(seed)
        found.add(process.digest(one))
        process.close()
    return found


def keep(one: Input, failure: Failure, folder: Path) -> Path:
    """Write a failing input; the file's name says what failed."""
    folder.mkdir(parents=True, exist_ok=True)
    words = "-".join("".join(c if c.isalnum() else " " for c in f"{failure.oracle} {failure.place}").split())[:70]
    path = folder / f"{words.lower()}-{hashlib.blake2b(one.encoded().encode(), digest_size=3).hexdigest()}.json"
    told = {"failure": failure.story[-3000:], **json.loads(one.encoded())}
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="ascii")
    return path


def campaign(maker: Maker, until: float, most: int, folder: Path, start: int) -> int:
    """Judge inputs until the time is over; how many failures there were, each cause once."""
    usual, kinds, known = Usual(), Counter[str](), Counter[tuple[str, str]]()
    began, told = time.monotonic(), 0.0
    other = Echo(random.Random(start).randrange(1, 10**6))
    gc.collect()
    gc.freeze()
    number = start
    while time.time() < until and number - start < most:
        one = maker.make(number)
        number += 1
        kinds[one.kind] += 1
        digest, failure, seconds = judge(one)
        limit = usual.limit(one, seconds)
        if failure is None and seconds > limit and all(judge(one).seconds > limit for _ in range(2)):
            failure = Failure("slow", one.kind, f"{seconds:.2f} s for {one.size} bytes; the limit is {limit:.2f} s")
        if failure is None and number % 10 == 0:
            ASKED["hash seed"] += 1
            if other.digest(one) != digest:
                failure = Failure("hash seed", one.kind, "two hash seeds, two results")
        if failure is not None:
            known[failure.key] += 1
            if known[failure.key] == 1:
                small = shrunk(one, fails_like(failure, limit), 60)
                path = keep(small, failure, folder)
                print(f"{failure.oracle}: {failure.story.strip().splitlines()[-1]}\n  input {number - 1}; repeat: "
                      f"python tests/fuzz.py --repeat {path}", flush=True)  # fmt: skip
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(_progress(number - start, told - began, kinds, known), flush=True)
            gc.collect()
    other.close()
    print(_progress(number - start, time.monotonic() - began, kinds, known))
    print("asked: " + ", ".join(f"{count} {oracle}" for oracle, count in ASKED.most_common()))
    for (oracle, place), count in known.most_common():
        print(f"{count:>8} × {oracle} {place}")
    return len(known)


def _progress(number: int, seconds: float, kinds: Counter[str], known: Counter[tuple[str, str]]) -> str:
    shares = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"{number} inputs in {seconds:.0f} s ({number / max(seconds, 1):.0f}/s): {shares}; {len(known)} failures"


def repeat(paths: Sequence[str]) -> int:
    """Judge kept inputs; how many still fail."""
    failing = 0
    for path in paths:
        one = Input.decoded(Path(path).read_text(encoding="ascii"))
        verdict = judge(one)
        story = verdict.failure.story if verdict.failure else ""
        if not story and len(_digests(one)) > 1:
            story = "two hash seeds, two results"
        failing += bool(story)
        print(f"{path}: {verdict.seconds:.2f} s: {story or 'holds'}")
    return failing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", help="folders with Python files (default: the examples and the tests)")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--inputs", type=int, default=sys.maxsize, help="end after so many")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cheap", action="store_true", help="mostly what is read in less than a millisecond")
    parser.add_argument("--keep", type=Path, default=ROOT / "build" / "fuzz", help="where failing inputs are kept")
    parser.add_argument("--repeat", nargs="+", metavar="FILE", help="judge these kept inputs")
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    until = time.time() + 60 * given.minutes
    trees = given.trees or [ROOT / "examples", ROOT / "tests", ROOT / "torchdet_lint"]
    trees, folder = [str(Path(tree).absolute()) for tree in trees], given.keep.absolute()
    kept = [str(Path(path).absolute()) for path in given.repeat or ()]
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)  # what an input imports is not to be found in the working folder
        if given.echo:
            echo()
            return 0
        if kept:
            return min(repeat(kept), 1)
        from fuzzing.making import CHEAP, WEIGHTS, Maker

        maker = Maker(given.seed, trees, CHEAP if given.cheap else WEIGHTS)
        return min(campaign(maker, until, given.inputs, folder, given.first), 1)


if __name__ == "__main__":
    sys.exit(main())
