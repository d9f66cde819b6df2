"""Running the catalogue's examples: what stands in `[[bad]]` and `[[good]]` against what every check reports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint import catalogue
from torchdet_lint.catalogue import Example, release
from torchdet_lint.checks import CHECKS
from torchdet_lint.module import Module, Target
from torchdet_lint.names import Library

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = re.compile(r"#\s*(?P<kind>expect|todo):\s*(?P<codes>[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)")


class Text(NamedTuple):
    path: str
    text: str


class Case(NamedTuple):
    """One example and the rule file it stands in."""

    code: str
    kind: str
    index: int
    example: Example

    @property
    def identity(self) -> str:
        return f"{self.code}-{self.kind}{self.index}"


def cases() -> Iterator[Case]:
    for rule in catalogue.load(examples=True).rules.values():
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


def library() -> Library:
    return Library(catalogue.load())


def reported(example: Example, library: Library) -> set[tuple[int, str]]:
    """The (row, code) pairs that the checks of single files report for `example`."""
    target = Target()
    if example.torch_version:
        target = target._replace(torch=release(example.torch_version))
    if example.devices:
        target = target._replace(devices=example.devices)
    module = Module(Text(example.filename, example.code), library, target)
    found = set()
    for code, check in CHECKS.items():
        for fault in check(module, library.catalogue.rules[code]):
            found.add((module.span(fault.node)[0].row, code))
    return found
