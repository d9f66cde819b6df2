"""Examples spelt as others spell them: spaces inside and before brackets, and around the `=` of an argument, change no
finding."""

from __future__ import annotations

import ast
import io
import tokenize
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import rulebook
import tomli
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchdet_lint.catalogue.rules import Example

Edit = tuple[tuple[int, int], tuple[int, int], str]


def _operators(code: str) -> Iterator[tuple[tokenize.TokenInfo, tokenize.TokenInfo | None, int]]:
    """The operators of `code`, each with what stands before it and how many brackets are open there."""
    before: tokenize.TokenInfo | None = None
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.OP:
            depth -= token.string in ")]}"
            yield token, before, depth
            depth += token.string in "([{"
        before = token


def _edited(code: str, edits: list[Edit]) -> str:
    lines = code.split("\n")
    for (row, start), (_, end), text in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + text + line[end:]
    return "\n".join(lines)


def around_equals(code: str) -> str:
    """`f(x = 1 , y = 2)`."""
    wanted = {"=": " = ", ",": " ,"}
    return _edited(
        code,
        [
            (token.start, token.end, wanted[token.string])
            for token, _, depth in _operators(code)
            if depth and token.string in wanted
        ],
    )


def inside_brackets(code: str) -> str:
    """`f( x[ 0 ] )`."""
    wanted = {"(": "( ", "[": "[ ", ")": " )", "]": " ]"}
    return _edited(
        code,
        [(token.start, token.end, wanted[token.string]) for token, _, _ in _operators(code) if token.string in wanted],
    )


def before_brackets(code: str) -> str:
    """`f (x)`."""
    return _edited(
        code,
        [
            (token.start, token.end, " (")
            for token, before, _ in _operators(code)
            if token.string == "(" and before is not None and before.type == tokenize.NAME
            and before.end == token.start
        ],
    )  # fmt: skip


SPELLINGS = (around_equals, inside_brackets, before_brackets)
# What is still read off the text of a file before it is parsed.
KNOWN = tomli.loads((Path(__file__).parent / "data" / "spellings.toml").read_text())


def _spelt(example: Example, spelling: Callable[[str], str]) -> Example | None:
    """`example` in another spelling; None where it has no other one, or is no plain Python."""
    try:
        code = spelling(example.code)
        files = {name: spelling(text) if name.endswith(".py") else text for name, text in example.files.items()}
        ast.parse(code)
    except (SyntaxError, tokenize.TokenError):
        return None
    return replace(example, code=code, files=files) if code != example.code else None


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda one: one.__name__)
def test_the_spelling_of_an_example_changes_no_finding(spelling: Callable[[str], str]) -> None:
    # Each spelling takes a third of the examples, for time.
    turn = SPELLINGS.index(spelling)
    cases = [case for case in rulebook.cases() if zlib.crc32(case.example.title.encode()) % len(SPELLINGS) == turn]
    spelt = [(case, _spelt(case.example, spelling)) for case in cases if not case.example.filename.endswith("ipynb")]
    differ = {
        (case.code, case.example.title)
        for case, example in spelt
        if example is not None and rulebook.reported(example, program=case.program) != rulebook.marks(case.example.code)
    }
    assert sum(example is not None for _, example in spelt) > 400
    assert differ <= {(code, title) for code, titles in KNOWN[spelling.__name__].items() for title in titles}
