"""The text of a file -> the attributes that its statements give a class or a function: `args.net = nets.Deep`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# An attribute of an object that is no `self`, and what may stand for a class or a function: a name, an entry of a
# table, what a text picks, and a lambda. What is called gives an object.
_PLACES = lazy(
    r"(?m)^[ \t]*(?:\w+\.)*(?!self\b|cls\b)(\w+)\.([^\W\d]\w*)[ \t]*=[ \t]*"
    r"(?:lambda\b|getattr[ \t]*\(|partial[ \t]*\(|functools\.partial[ \t]*\("
    r"|[A-Za-z_][\w.]*(?:\([^()\n]*\))?\[[^\n]*\][ \t]*(?:#.*)?$"
    r"|(?!(?:None|True|False)\b)[A-Za-z_][\w.]*(?:[ \t]+if\b[^\n]*|[ \t]*(?:#.*)?)$)"
)
_IS_OPTIONS = lazy(r"(?i)[a-z]?args?|\w*(?:cfg|conf|config|configs|opts?|option|options|params?|hp|hparams|settings?)")


def placings(text: str) -> Iterator[tuple[str, str]]:
    """The last word of an object, and the attribute of it that is given something."""
    for match in _PLACES.finditer(text):
        yield match[1], match[2]


def owner_of(tokens: Sequence[str]) -> str:
    """The word for what has the attribute behind `tokens`; empty for what is called."""
    return tokens[-1] if tokens[-1:] != ["()"] else ""


def may_be(owner: str, other: str) -> bool:
    """Whether two words may be of one object: they are the same, or both say that it holds options, as what was called
    for it may."""
    return owner == other or all(_IS_OPTIONS.fullmatch(word) is not None for word in (owner or other, other))
