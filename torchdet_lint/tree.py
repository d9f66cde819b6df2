"""libcst's tree as the walks here see it: the nodes that mean something, without punctuation and whitespace."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAVES = frozenset(
    {cst.Name, cst.Integer, cst.Float, cst.SimpleString, cst.Pass, cst.Break, cst.Continue, cst.Ellipsis}
)
PLAIN = frozenset({str, bool, type(None), cst.MaybeSentinel})
_NOT_CHILDREN = frozenset(
    """ast async asynchronous asname colon comma dot encoding default_indent equal default_newline footer
    has_trailing_newline header indent indicator keyword leading_lines lines_after_decorators lpar lbrace lbracket
    lines_after_colon operator posonly_ind raw rpar rbrace rbracket relative semicolon star_ind
    trailing_whitespace""".split()
)


def parse(text: str) -> cst.Module:
    """`libcst.parse_module` without the validation of every node, a quarter of its cost: its parser makes none that is
    invalid, and validation is there for nodes that people make."""
    validate = cst.CSTNode.__post_init__
    cst.CSTNode.__post_init__ = _accept  # type: ignore[assignment,method-assign]
    try:
        return cst.parse_module(text)
    finally:
        cst.CSTNode.__post_init__ = validate  # type: ignore[method-assign]


def _accept(_: cst.CSTNode) -> None:
    return


def positions(root: cst.Module) -> Mapping[cst.CSTNode, Any]:
    """What `MetadataWrapper(root).resolve(PositionProvider)` is, but for the visit it makes for other providers."""
    from libcst.metadata import PositionProvider

    provider = PositionProvider()
    provider._gen_impl(root)
    return provider._computed


def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in dataclasses.fields(kind)
        if not field.name.startswith("whitespace") and field.name not in _NOT_CHILDREN
    )


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes that `node` holds, in source order, without punctuation and whitespace (`node.children` runs a visitor
    and costs ten times as much)."""
    found: list[cst.CSTNode] = []
    for name in FIELDS[type(node)]:
        child = getattr(node, name)
        kind = type(child)
        if kind is tuple or kind is list:
            found.extend(child)
        elif kind not in PLAIN:
            found.append(child)
    return found


class _Fields(dict[type, tuple[str, ...]]):
    """Node class -> the fields that hold nodes worth a visit, filled on demand."""

    def __missing__(self, kind: type[cst.CSTNode]) -> tuple[str, ...]:
        found = self[kind] = _fields(kind)
        return found


FIELDS = _Fields()
