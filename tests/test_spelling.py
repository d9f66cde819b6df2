"""Examples spelt as others spell them: spaces inside and before brackets, and around the `=` of an argument, change no
finding."""

from __future__ import annotations

import ast
import io
import tokenize
from typing import TYPE_CHECKING

import pytest
import rulebook
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


# What is still read off the text of a file before it is parsed, by the spelling that hides it.
KNOWN: dict[Callable[[str], str], frozenset[str]] = {
    around_equals: frozenset("TDL105-bad21 TDL404-bad15 TDL404-bad16".split()),
    inside_brackets: frozenset(
        (
            "TDL101-bad73 TDL101-good56 TDL103-bad24 TDL103-good19 TDL106-good12 TDL203-bad8 TDL304-good7 "
            "TDL305-bad41 TDL305-bad50 TDL305-bad61 TDL402-good16 TDL403-bad29 TDL403-bad57 TDL403-bad89 "
            "TDL403-good28 TDL403-good63 TDL404-bad15 TDL404-bad16 TDL501-bad33 "
        ).split()
    ),
    before_brackets: frozenset(
        (
            "TDL101-good48 TDL101-good56 TDL102-good9 TDL103-bad17 TDL103-bad24 TDL103-good9 TDL103-good19 "
            "TDL106-good12 TDL107-bad10 TDL107-bad13 TDL302-bad5 TDL303-bad10 TDL304-good7 TDL305-bad9 TDL305-bad41 "
            "TDL305-bad57 TDL305-bad58 TDL305-bad59 TDL305-bad65 TDL305-bad79 TDL305-good2 TDL305-good50 "
            "TDL402-good16 TDL403-bad57 TDL403-bad61 TDL403-bad67 TDL403-bad80 TDL403-bad89 TDL403-good28 "
            "TDL403-good59 TDL403-good63 TDL403-good76 TDL403-good79 TDL501-bad33 TDL501-bad46 TDL501-bad51 "
        ).split()
    ),
}
SPELLINGS = tuple(KNOWN)


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
    cases = list(rulebook.cases())[SPELLINGS.index(spelling) :: len(SPELLINGS)]
    spelt = [(case, _spelt(case.example, spelling)) for case in cases if not case.example.filename.endswith("ipynb")]
    differ = {
        case.identity
        for case, example in spelt
        if example is not None and rulebook.reported(example, program=case.program) != rulebook.marks(case.example.code)
    }
    assert sum(example is not None for _, example in spelt) > 400
    assert differ <= KNOWN[spelling]
