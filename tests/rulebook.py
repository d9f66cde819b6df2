"""Running the catalogue's examples: what stands in `[[bad]]` and `[[good]]` against what every check reports."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.catalogue import loading
from torchdet_lint.catalogue.ops import release
from torchdet_lint.config import NEWEST_TORCH, Settings, known
from torchdet_lint.engine import run
from torchdet_lint.engine.linter import Linter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Example

MARK = re.compile(r"#\s*(?P<kind>expect|todo):\s*(?P<codes>[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)")


class Case(NamedTuple):
    """One example and the rule file it stands in."""

    code: str
    kind: str
    index: int
    example: Example

    @property
    def program(self) -> bool:
        """Whether the example is a whole program: only then the rules of scope `project` judge it."""
        scope = loading.load().rules[self.code].scope
        return scope == "project" or bool(self.example.files) or self.example.program

    @property
    def identity(self) -> str:
        return f"{self.code}-{self.kind}{self.index}"


def cases() -> Iterator[Case]:
    for rule in loading.load(examples=True).rules.values():
        for kind, examples in (("bad", rule.bad), ("good", rule.good)):
            for index, example in enumerate(examples, 1):
                yield Case(rule.code, kind, index, example)


def marks(text: str, kind: str = "expect") -> set[tuple[int, str]]:
    """The (row, code) pairs that the comments of `text` announce."""
    found = set()
    for row, line in enumerate(text.split("\n"), 1):
        for match in MARK.finditer(line):
            if match["kind"] == kind:
                found.update((row, code.strip()) for code in match["codes"].split(","))
    return found


@functools.cache
def linter(torch_version: str, devices: tuple[str, ...], program: bool) -> Linter:
    """Every rule, for the target that an example names; without `program` those of scope `project` are left out."""
    rules = loading.load().rules
    torch, older = known(release(torch_version) if torch_version else NEWEST_TORCH)
    settings = Settings(
        root=str(Path.cwd()),
        min_severity="note",
        torch=torch,
        older=older,
        devices=devices or ("cpu", "cuda"),
        ignore=() if program else tuple(code for code, rule in rules.items() if rule.scope == "project"),
    )
    return Linter(settings)


def reported(example: Example, *, program: bool = False) -> set[tuple[int, str]]:
    """The (row, code) pairs that a run over `example` and its further files reports for the example itself."""
    texts = {example.filename: example.code, **example.files}
    findings, errors = run.examine(
        linter(example.torch_version, example.devices, program), {path: text.encode() for path, text in texts.items()}
    )
    assert errors == []
    return {(finding.location.row, finding.code) for finding in findings if finding.filename == example.filename}


if __name__ == "__main__":
    for case in cases():
        reported(case.example, program=case.program)
