"""A number -> an input: real files and examples stirred, programs of the grammar, and what else the linter reads."""

from __future__ import annotations

import functools
import json
import random
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rulebook
from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzzing.material import KEYS, REQUIREMENTS, RULE, VALUES, YAML
from fuzzing.oracles import Input
from fuzzing.stirring import SUPPRESSIONS, damaged, encoded, notebook, stirred
from torchdet_lint.verifier.trace.format import BLOCK, MAGIC, PROLOGUE, VERSION, words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_LARGEST = 200_000
WEIGHTS = {
    "source": 70, "text": 4, "suppressions": 4, "edits": 4, "settings": 5, "yaml": 5, "baseline": 3, "trace": 4,
    "cache": 1,
}  # fmt: skip
"""How often each kind of input comes."""
CHEAP = {
    "source": 50, "text": 250, "suppressions": 240, "edits": 100, "settings": 30, "yaml": 180, "baseline": 9,
    "trace": 140, "cache": 1,
}  # fmt: skip
"""The same for a great number of inputs: what is read in less than a millisecond comes most often."""
_GRAMMAR = 0.04
_HEAD = "import torch, random, os, glob, numpy as np\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"
_UNIT = re.compile(r"^(?=[^\s#)\]}])", re.MULTILINE)


class Maker:
    """Makes inputs: the same number, seed and trees make the same input, but for those of the grammar."""

    def __init__(self, start: int, trees: Sequence[str], weights: Mapping[str, int] = WEIGHTS) -> None:
        """`trees` are folders with Python files and notebooks; the catalogue's examples are always there."""
        self._seed = start
        self._weights = weights
        cases = [case.example for case in rulebook.cases()]
        self._examples = [(example.code, example.files) for example in cases]
        self._snippets = sorted(
            {unit.rstrip() for example in cases for unit in _units(example.code) if len(unit) < 300}
        )
        self._files = [
            path
            for tree in trees
            for path in sorted(Path(tree).rglob("*"))
            if path.suffix in (".py", ".ipynb") and path.is_file() and path.stat().st_size < _LARGEST
        ]
        self._grammatical: list[str] = []
        self._draws = 0

    def make(self, number: int) -> Input:
        """The input of that number."""
        rng = random.Random(f"{self._seed} {number}")
        kind = rng.choices(tuple(self._weights), tuple(self._weights.values()))[0]
        return Input(kind, _MAKERS[kind](self, rng))

    def _program(self, rng: random.Random) -> tuple[str, dict[str, str]]:
        """A text to begin with, and the files that it comes with."""
        choice = rng.random()
        if choice < _GRAMMAR:
            return _HEAD + self._from_grammar(rng) + rng.choice(self._snippets) + "\n", {}
        if choice < 0.45 and self._files:
            text = _read(rng.choice(self._files))
            units = _units(text)
            heads = [unit for unit in units if unit.startswith(("import ", "from "))]
            at = rng.randrange(len(units) + 1)
            lines = "".join(units[at : at + rng.choice((1, 1, 2, 4))]).split("\n")
            return "".join(heads[:12]) + "\n".join(lines[: rng.choice((10, 40, 80))]) + "\n", {}
        if choice < 0.55:
            return _HEAD + "\n".join(rng.choices(self._snippets, k=rng.choice((1, 2, 4, 8)))) + "\n", {}
        text, files = rng.choice(self._examples)
        return text, dict(files)

    def _from_grammar(self, rng: random.Random) -> str:
        """A program of a batch; the next batch is made when this one has been used ten times over."""
        if self._draws % 1000 == 0:
            self._grammatical = self._batch(self._draws // 1000)
        self._draws += 1
        return rng.choice(self._grammatical)

    def _batch(self, number: int) -> list[str]:
        import hypothesmith  # which takes seconds

        made: list[str] = []
        strategy = (hypothesmith.from_node if number % 2 else hypothesmith.from_grammar)(auto_target=False)

        @seed(self._seed * 1000 + number)
        @settings(max_examples=100, database=None, deadline=None, phases=[Phase.generate],
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(strategy)
        def collect(text: str) -> None:
            made.append(text)

        collect()
        return made

    def source(self, rng: random.Random) -> dict[str, bytes]:
        text, others = self._program(rng)
        text = stirred(text, rng, self._snippets)
        files = {name: encoded(stirred(other, rng, self._snippets), rng) for name, other in others.items()}
        if not files and rng.random() < 0.06:
            files["helper.py"] = encoded(stirred(self._program(rng)[0], rng, self._snippets), rng)
            text = rng.choice(("import helper\n", "from helper import *\n", "from helper import main\n")) + text
        if rng.random() < 0.12:
            return {"fuzz.ipynb": notebook(text, rng), **files}
        data = encoded(text, rng)
        return {"fuzz.py": damaged(data, rng) if rng.random() < 0.03 else data, **files}

    def text(self, rng: random.Random) -> dict[str, bytes]:
        made = stirred(self._few_lines(rng), rng, self._snippets)
        if rng.random() < 0.5:
            return {"fuzz.ipynb": notebook(made, rng)}
        data = encoded(made, rng)
        return {"fuzz.py": damaged(data, rng) if rng.random() < 0.3 else data}

    def suppressions(self, rng: random.Random) -> dict[str, bytes]:
        lines = self._few_lines(rng).split("\n")
        for row in rng.sample(range(len(lines)), k=min(len(lines), 3)):
            lines[row] += "  " + rng.choice(SUPPRESSIONS)
        return {"fuzz.py": stirred("\n".join(lines), rng, SUPPRESSIONS).encode("utf-8", "surrogatepass")}

    def edits(self, rng: random.Random) -> dict[str, bytes]:
        made = self._few_lines(rng)
        lines = made.split("\n")

        def place() -> tuple[int, int]:
            row = rng.randrange(len(lines))
            return row + 1, rng.randrange(len(lines[row]) + 2) + 1

        fixes = []
        for _ in range(rng.choice((1, 2, 5))):
            spans = [sorted((place(), place())) for _ in range(rng.choice((1, 1, 2, 3)))]
            contents = ("", "x", "\n", "import os\n", "sorted(", ")", *rng.choices(self._snippets, k=2))
            fixes.append([(rng.choice(contents), begin, rng.choice((begin, end))) for begin, end in spans])
        return {"fuzz.py": made.encode("utf-8", "surrogatepass"), "fixes": json.dumps(fixes).encode()}

    def _few_lines(self, rng: random.Random) -> str:
        return "\n".join(rng.choices(self._snippets, k=rng.choice((1, 2, 4)))) + "\n"

    def settings(self, rng: random.Random) -> dict[str, bytes]:
        files = {"train.py": self._example(rng)}
        rows = [
            "[tool.torchdet-lint]",
            *(f"{rng.choice(KEYS)} = {rng.choice(VALUES)}" for _ in range(rng.choice((1, 2, 5)))),
        ]
        text = "\n".join(dict.fromkeys(rows)) + "\n"
        name = rng.choice(("pyproject.toml", "pyproject.toml", "torchdet-lint.toml"))
        if name == "torchdet-lint.toml":
            text = text.partition("\n")[2]
        if rng.random() < 0.3:
            text = stirred(text, rng, VALUES)
        files[name] = damaged(text.encode("utf-8", "surrogatepass"), rng) if rng.random() < 0.1 else encoded(text, rng)
        if rng.random() < 0.5:
            rows = rng.choices(REQUIREMENTS, k=rng.choice((1, 2, 4)))
            text = stirred("\n".join(rows), rng, REQUIREMENTS)
            files[rng.choice(("requirements.txt", "setup.cfg", "setup.py", "environment.yml"))] = encoded(text, rng)
        if rng.random() < 0.15:
            rule = stirred(RULE, rng, RULE.split("\n"))
            files[rng.choice(("ACME001-acme.toml", "ACME002-acme.toml", "x.toml"))] = encoded(rule, rng)
            files.setdefault(
                "pyproject.toml", b"[tool.torchdet-lint]\nextend-select = ['ACME']\nrule-files = ['*E0*.toml']\n"
            )
        return files

    def yaml(self, rng: random.Random) -> dict[str, bytes]:
        text = "\n".join(rng.choices(YAML, k=rng.choice((1, 3, 8))))
        return {"config.yaml": encoded(stirred(text, rng, YAML), rng)}

    def baseline(self, rng: random.Random) -> dict[str, bytes]:
        known = {
            "train.py": {rng.choice(("TDL201", "TDL302", "x")): {"0123456789abcdef": rng.choice((1, 0, -1, 2**70))}}
        }
        text = json.dumps({"version": rng.choice((1, 1, 1, 2, "1")), "findings": known}, indent=rng.choice((None, 1)))
        data = text.encode() if rng.random() < 0.2 else stirred(text, rng, YAML).encode("utf-8", "surrogatepass")
        return {"train.py": self._example(rng), "baseline.json": damaged(data, rng) if rng.random() < 0.3 else data}

    def cache(self, rng: random.Random) -> dict[str, bytes]:
        texts = ("", "0", "-1", '"', "]", "null", "\udcff", "TDL201", "{}", "[" * 50, "\0")
        damage = [(rng.random(), rng.choice((0, 1, 1, 8, 200)), rng.choice(texts)) for _ in range(rng.choice((1, 3)))]
        return {"train.py": self._example(rng), "other.py": self._example(rng), "damage": json.dumps(damage).encode()}

    def trace(self, rng: random.Random) -> dict[str, bytes]:
        blocks = _blocks(rng)
        files = {}
        for name in ("a.tdtrace", "b.tdtrace"):
            mine = list(blocks)
            for _ in range(rng.choice((0, 1, 1, 3))):
                place = rng.randrange(len(mine))
                kind, stream, payload = mine[place]
                other = stirred(payload.decode("latin-1"), rng, YAML).encode("utf-8", "surrogatepass")
                changed = [(kind, stream, damaged(payload, rng)), (kind, stream, other), (kind, stream + 1, payload)]
                mine[place] = rng.choice([*changed, (rng.choice(_KINDS), stream, payload)])
            packed = b"".join(BLOCK.pack(kind, at, len(load), zlib.crc32(load)) + load for kind, at, load in mine)
            whole = PROLOGUE.pack(MAGIC, VERSION) + packed
            files[name] = damaged(whole, rng) if rng.random() < 0.1 else whole[: rng.choice((None, None, -1, -9, -40))]
        return files

    def _example(self, rng: random.Random) -> bytes:
        return rng.choice(self._examples)[0].encode("utf-8", "surrogatepass")


_KINDS = (b"H", b"S", b"D", b"N", b"F", b"R", b"X")


def _blocks(rng: random.Random) -> list[tuple[bytes, int, bytes]]:
    """The blocks of a trace: a header, one to three streams with sites and records, notes."""

    def told(value: Any) -> bytes:
        return json.dumps(value).encode()

    found = [(b"H", 0, told({"hash": "xxh3-64", "environment": {"torch": "2.13", "variables": {}}, "order": []}))]
    for stream in range(rng.choice((1, 1, 2, 3))):
        kind = ("main", "thread", "process")[stream]
        found.append((b"S", stream, told({"kind": kind, "name": kind, "role": rng.choice(("worker", "x"))})))
        names = ("aten.a", "aten.b", "loader.batch")
        found.append((b"D", stream, told([[name, "forward", "m.py", 1, "f", "", "", 0] for name in names])))
        for _ in range(rng.choice((0, 1, 3))):
            values = []
            for _ in range(rng.choice((1, 3))):
                flags, digests = rng.choice((0, 0, 1, 2, 4, 7, 1 << 9)), rng.choice((0, 1, 2))
                extra = (flags & 1) + 2 * (flags & 2) + bool(flags & 4)
                values += [
                    rng.randrange(3) | digests << 32 | flags << 48,
                    *rng.choices(range(5), k=2 + digests + extra),
                ]
            found.append((b"R", stream, words(values)))
        if rng.random() < 0.7:
            found.append((b"F", stream, told({"records": 2})))
    if rng.random() < 0.3:
        found.append((b"N", 0, told({rng.choice(("missed", "steps", "x")): rng.choice(("a", 1, None))})))
    return found


@functools.lru_cache(maxsize=512)
def _read(path: Path) -> str:
    """The Python of a file: of a notebook, that of its cells."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix != ".ipynb":
        return text
    try:
        cells = json.loads(text)["cells"]
        return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    except (ValueError, KeyError, TypeError):
        return text


def _units(text: str) -> list[str]:
    """The statements at top level, each with what is indented below it, more or less."""
    return [unit for unit in _UNIT.split(text) if unit]


_MAKERS: dict[str, Callable[[Maker, random.Random], dict[str, bytes]]] = {
    "source": Maker.source,
    "text": Maker.text,
    "suppressions": Maker.suppressions,
    "edits": Maker.edits,
    "settings": Maker.settings,
    "yaml": Maker.yaml,
    "baseline": Maker.baseline,
    "cache": Maker.cache,
    "trace": Maker.trace,
}
