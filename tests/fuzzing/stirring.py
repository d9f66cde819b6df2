"""A text -> a text that is near to it: what people and their tools do to files, and what nobody does."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

NAMES = """
    torch np random DataLoader x self loader F nn index_add_ seed os generator cuda manual_seed set list sorted Path
    trainer model data dict super cls args kwargs scatter_add_ cumsum empty hash glob
""".split()
TOKENS = ["(", ")", "[", "]", "{", "}", "*", "**", "lambda: ", ":=", "\n", "\t", "\r", "\r\n", "\f", "\v", "\\\n", ";"]
TOKENS += [
    ",",
    ":",
    "=",
    "@",
    "->",
    "...",
    "'",
    '"',
    '"""',
    "f'{",
    "}'",
    "#",
    "\\",
    "async ",
    "await ",
    "yield ",
    "not ",
]
TOKENS += ["global x\n", "nonlocal x\n", "del x\n", "return\n", "import ", "from x import *\n", "if ", "else:\n", "is "]
TOKENS += [
    "\x00",
    "\x1a",
    "\x1b[2J",
    "\x85",
    "\xa0",
    "\u200b",
    "\u2028",
    "\u202e",
    "\ufeff",
    "é",
    "ｔｏｒｃｈ",
    "𝐱",
    "\ud800",
]
LITERALS = [
    "0",
    "-1",
    "1e400",
    "0x_f",
    "1_0",
    "9" * 30,
    "None",
    "True",
    "''",
    "b''",
    "f'{x!r:>{x}}'",
    "()",
    "{}",
    "...",
]
SUPPRESSIONS = (
    """
    # noqa|# noqa: TDL301|# noqa:TDL301,TDL302|# noqa : tdl402 TDL403|# NOQA: E501|#noqa|# noqa: TDL4|# noqa: TDL
    # torchdet: skip-file|# torchdet: noqa: TDL404|# torchdet:noqa:TDL1|# torchdet: noqa|# torchdet: what
    # noqa: cudnn-benchmark|# noqa: TDL999|# type: ignore # noqa: TDL201|# noqa: TDL201 # noqa: TDL304|# noqa:
    # noqa: TDL301 because|# noqa: TDL101, E501, TDL302|# ruff: noqa|# flake8: noqa: TDL301|# noqa-file|# fmt: skip
""".strip()
    .replace("\n", "|")
    .split("|")
)
SUPPRESSIONS = [one.strip() for one in SUPPRESSIONS]
_WORD = re.compile(r"[^\W\d]\w*")
_LITERAL = re.compile(r"\b\d[\w.]*|\"[^\"\n]*\"|'[^'\n]*'")
HEADS = [
    "if x:",
    "else:",
    "for x in y:",
    "while x:",
    "with x as y:",
    "try:",
    "def f(x):",
    "class C(nn.Module):",
    "lambda",
]
HEADS += ["match x:\n    case [*_]:", "async def f():", "for i in range(3):", "if __name__ == '__main__':", "except E:"]
HEADS += ["with torch.no_grad():", "def forward(self, x):", "@decorated\ndef f(x, *args, y=1, **kw):", "finally:"]


_NESTS = [
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ("f(", ")"),
    ("(x, ", ")"),
    ("[x for x in ", "]"),
    ("not ", ""),
    ("-", ""),
]
_NESTS += [("lambda: ", ""), ("*", ""), ("", ".add(1)"), ("", "[0]"), ("", " + x"), ("", " | x"), ("", " if x else y")]


def stirred(text: str, rng: random.Random, snippets: Sequence[str]) -> str:
    """`text` after a few changes at random; `snippets` are lines of code to put in."""
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 5))):
        text = rng.choice(_CHANGES)(text, rng, snippets)
    return text[:200_000]


def _piece(text: str, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.choice((1, 2, 5, 20, 80)))


def _cut(text: str, rng: random.Random, _: Sequence[str]) -> str:
    start, end = _piece(text, rng)
    return text[:start] + text[end:]


def _doubled(text: str, rng: random.Random, _: Sequence[str]) -> str:
    start, end = _piece(text, rng)
    return text[:end] + text[start:end] * rng.choice((1, 1, 2, 30)) + text[end:]


def _token(text: str, rng: random.Random, _: Sequence[str]) -> str:
    start, end = _piece(text, rng)
    return text[:start] + rng.choice(TOKENS) + text[rng.choice((start, end)) :]


def _renamed(text: str, rng: random.Random, _: Sequence[str]) -> str:
    words = list(_WORD.finditer(text))
    if not words:
        return text
    match = rng.choice(words)
    other = rng.choice(words)[0] if rng.random() < 0.5 else rng.choice(NAMES)
    if rng.random() < 0.3:
        return re.sub(rf"\b{match[0]}\b", other, text)
    return text[: match.start()] + other + text[match.end() :]


def _other_literal(text: str, rng: random.Random, _: Sequence[str]) -> str:
    found = list(_LITERAL.finditer(text))
    if not found:
        return text
    match = rng.choice(found)
    other = rng.choice(LITERALS) if rng.random() < 0.6 else rng.choice(NAMES)
    return text[: match.start()] + other + text[match.end() :]


def _lines(change: Callable[[list[str], int, random.Random, Sequence[str]], None]) -> Callable[..., str]:
    """A change of the list of lines, at a row."""

    def changed(text: str, rng: random.Random, snippets: Sequence[str]) -> str:
        lines = text.split("\n")
        change(lines, rng.randrange(len(lines)), rng, snippets)
        return "\n".join(lines)

    return changed


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _without_line(lines: list[str], row: int, rng: random.Random, _: Sequence[str]) -> None:
    del lines[row : row + rng.choice((1, 1, 3))]


def _line_again(lines: list[str], row: int, rng: random.Random, _: Sequence[str]) -> None:
    lines[row:row] = lines[row : row + rng.choice((1, 2, 6))] * rng.choice((1, 1, 2, 20))


def _line_elsewhere(lines: list[str], row: int, rng: random.Random, _: Sequence[str]) -> None:
    lines.insert(rng.randrange(len(lines)), lines.pop(row))


def _snippet(lines: list[str], row: int, rng: random.Random, snippets: Sequence[str]) -> None:
    lines[row:row] = [_indent(lines[row]) + line for line in rng.choice(snippets).split("\n")]


def _suppressed(lines: list[str], row: int, rng: random.Random, _: Sequence[str]) -> None:
    lines[row] += rng.choice(("  ", " ", "")) + rng.choice(SUPPRESSIONS)


def _wrapped(lines: list[str], row: int, rng: random.Random, _: Sequence[str]) -> None:
    end = row + rng.choice((1, 2, 5, 20))
    indent = _indent(lines[row])
    head = [indent + line for line in rng.choice(HEADS).split("\n")]
    depth = "    " * (1 + (len(head) > 1 and head[0].lstrip().startswith("match")))
    lines[row:end] = head + [depth + line if line.strip() else line for line in lines[row:end]]


def _joined(lines: list[str], row: int, rng: random.Random, _: Sequence[str]) -> None:
    if row + 1 < len(lines):
        joint = rng.choice(("; ", " \\\n", " ", ", ", " if x else ", ".add(1)", " and "))
        lines[row : row + 2] = [lines[row] + joint + lines[row + 1].lstrip()]


def _commented(lines: list[str], row: int, rng: random.Random, _: Sequence[str]) -> None:
    lines[row] = rng.choice(("# ", "#", "%", "!", "?", ">>> ", "  ")) + lines[row]


def _tabs(text: str, rng: random.Random, _: Sequence[str]) -> str:
    return text.replace("    ", rng.choice(("\t", "  ", "\t  ", " ", "        ")))


def _ends(text: str, rng: random.Random, _: Sequence[str]) -> str:
    end = rng.choice(("\r\n", "\r", "\n\n", "\r\r\n", "\f\n", "\x0b"))
    return text.replace("\n", end) if rng.random() < 0.5 else text.replace("\n", end, rng.choice((1, 3)))


def _nested(text: str, rng: random.Random, _: Sequence[str]) -> str:
    words = list(_WORD.finditer(text))
    if not words:
        return text
    match, many = rng.choice(words), rng.choice((2, 5, 30, 120))
    before, after = rng.choice(_NESTS)
    return text[: match.start()] + before * many + match[0] + after * many + text[match.end() :]


def _no_end(text: str, rng: random.Random, _: Sequence[str]) -> str:
    return text.rstrip("\n") + rng.choice(("", "\\", "\\\n", "\\\n\n", "\n    ", "#", "\n\x1a", "\n\f", "'''"))


_CHANGES: list[Callable[[str, random.Random, Sequence[str]], str]] = [
    _cut, _doubled, _token, _renamed, _renamed, _renamed, _other_literal, _nested, _no_end, _tabs, _ends,
    *map(_lines, (_without_line, _line_again, _line_elsewhere, _snippet, _snippet, _snippet, _suppressed, _wrapped,
                  _wrapped, _joined, _commented)),
]  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """`data` with some of its bytes changed."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(found) + 1)
        length = rng.choice((0, 1, 1, 4, 30))
        found[at : at + length] = rng.choice(
            (
                b"",
                bytes([rng.randrange(256)]),
                rng.randbytes(4),
                bytes(found[at : at + length]) * 2,
                b"\xff\xfe",
                b"\0" * 8,
            )
        )
    return bytes(found)


def encoded(text: str, rng: random.Random) -> bytes:
    """`text` in one of the encodings that sources come in, mostly UTF-8."""
    if rng.random() < 0.95:
        return text.encode("utf-8", "surrogatepass")
    name = rng.choice(("utf-8-sig", "latin-1", "cp932", "utf-7", "utf-16", "gbk", "iso-2022-jp", "cp1252", "idna", "x"))
    cookie = rng.choice(("# coding: ", "# -*- coding: ", "#coding=", "#!python\n# vim: fileencoding="))
    try:
        return f"{cookie}{name}\n{text}".encode(name, "replace")
    except (LookupError, UnicodeError):
        return f"{cookie}{name}\n{text}".encode("utf-8", "surrogatepass")


def notebook(text: str, rng: random.Random) -> bytes:
    """A notebook whose cells are the pieces of `text`."""
    cells, lines = [], text.split("\n")
    magics = (
        "%matplotlib inline",
        "%%time",
        "!pip install x",
        "x?",
        "%time x = 1",
        "a = !ls",
        "%%bash\nls",
        "%load_ext x",
    )
    while lines:
        many = rng.choice((1, 3, 10, 30))
        piece, lines = lines[:many], lines[many:]
        if rng.random() < 0.2:
            piece.insert(rng.choice((0, len(piece))), rng.choice(magics))
        source = "\n".join(piece)
        cells.append(
            {
                "cell_type": rng.choice(("code",) * 8 + ("markdown", "raw")),
                "metadata": {},
                "outputs": [],
                "execution_count": rng.choice((None, 1)),
                "source": source if rng.random() < 0.3 else [line + "\n" for line in piece],
            }
        )
    made: dict[str, object] = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    if rng.random() < 0.05:
        made = {"worksheets": [{"cells": [{**cell, "input": cell["source"]} for cell in cells]}], "nbformat": 3}
    shown = json.dumps(made, indent=rng.choice((1, None, 4, "\t")), ensure_ascii=rng.random() < 0.5)
    data = shown.encode("utf-8", "surrogatepass")
    return damaged(data, rng) if rng.random() < 0.2 else data
