"""A node of a parsed unit -> where it stands, by what Python's own parser says of the same text.

`ast` has positions, and takes a tenth of the time in which libcst writes a statement out again. The statements of the
two trees are paired as they come; the parts of a statement are paired on the way to a node that is asked for. What has
no counterpart with the same ends, as a tuple in parentheses or what stands in an f-string, is left to libcst.
"""

from __future__ import annotations

import ast
import bisect
from typing import TYPE_CHECKING, Any

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Span = tuple[tuple[int, int], tuple[int, int]]
"""Row (from 1) and column (from 0) of the start and of the end."""


class Spans:
    """The places of the nodes below `root`, the tree of `text`; of none where the two parsers do not see the same
    statements. Columns count bytes."""

    def __init__(self, root: cst.Module, text: str, parents: Mapping[int, cst.CSTNode]) -> None:
        self._parents = parents
        self._theirs: dict[int, Any] = {}
        self._paired: dict[int, list[cst.CSTNode]] = {}
        # The first and the last statement of a line.
        self._lines: dict[int, tuple[ast.stmt, ast.stmt]] = {}
        # What begins in which row, with its decorators: lines of simple statements, and statements with blocks.
        self._starting: list[cst.CSTNode] = []
        self._rows: list[int] = []
        try:
            theirs = list(_their_statements(ast.parse(text).body))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        ours = list(_our_statements(root.body))
        if len(ours) != len(theirs):
            return
        for (statement, line), their in zip(ours, theirs, strict=True):
            self._theirs[id(statement)] = their
            if line is not None:
                known = self._lines.get(id(line))
                self._lines[id(line)] = known[0] if known is not None else their, their
                if known is not None:
                    continue
            if line is not None or isinstance(statement, cst.BaseCompoundStatement):
                self._starting.append(line or statement)
                self._rows.append(min([their.lineno, *(one.lineno for one in getattr(their, "decorator_list", ()))]))

    def row(self, line: cst.SimpleStatementLine) -> int | None:
        """The row in which `line` starts."""
        found = self._lines.get(id(line))
        return found[0].lineno if found is not None else None

    def statement_at(self, row: int) -> cst.CSTNode | None:
        """The statement, or the line of simple ones, that starts in `row` or is the last before it."""
        at = bisect.bisect_right(self._rows, row) - 1
        return self._starting[at] if at >= 0 else None

    def starts_in(self, statement: cst.CSTNode, row: int) -> bool:
        """Whether `statement`, one of `statement_at`, starts in `row`."""
        found = self._lines[id(statement)][0] if id(statement) in self._lines else self._theirs[id(statement)]
        return bool(found.lineno == row)

    def calls_at(self, row: int, column: int) -> list[cst.Call]:
        """The calls that start at `row` and `column`, inner ones first; none where only libcst can tell."""
        statement = self.statement_at(row)
        if statement is None:
            return []
        stack: list[cst.CSTNode] = [statement]
        body = statement if isinstance(statement, cst.SimpleStatementLine) else getattr(statement, "body", None)
        if isinstance(body, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            stack += body.body
        found: list[cst.Call] = []
        while stack:
            node = stack.pop()
            their = self._theirs.get(id(node))
            if their is None:
                continue
            if isinstance(node, cst.Call) and (their.lineno, their.col_offset) == (row, column):
                found.append(node)
            stack += self._parts(node, their)
        return found[::-1]

    def get(self, node: cst.CSTNode) -> Span | None:
        """Where `node` stands; None where only libcst can tell."""
        outer = self._parents.get(id(node))
        if isinstance(outer, cst.Attribute) and node is outer.attr:
            whole = self.get(outer)
            if whole is None:
                return None
            row, end = whole[1]
            return (row, end - len(outer.attr.value.encode())), (row, end)
        if isinstance(node, cst.SimpleStatementLine):
            first, last = self._lines.get(id(node), (None, None))
        else:
            first = last = self._counterpart(node) if _ends_alike(node) else None
        if first is None or last is None or last.end_lineno is None or last.end_col_offset is None:
            return None
        return (first.lineno, first.col_offset), (last.end_lineno, last.end_col_offset)

    def _counterpart(self, node: cst.CSTNode) -> Any:
        """What `ast` has for `node`."""
        theirs, parents = self._theirs, self._parents
        way: list[cst.CSTNode] = []
        current = node
        while id(current) not in theirs:
            way.append(current)
            outer = parents.get(id(current))
            if outer is None:
                return None
            current = outer
        while way:
            their = theirs.get(id(current))
            if their is not None:
                self._parts(current, their)
            current = way.pop()
        return theirs.get(id(node))

    def _parts(self, node: cst.CSTNode, their: Any) -> list[cst.CSTNode]:
        """The parts of `node`, whose counterpart is `their`, that have counterparts, which are known from then on."""
        found = self._paired.get(id(node))
        if found is None:
            parts = _PARTS.get(type(node))
            pairs = [pair for pair in parts(node, their) if pair[0] is not None] if parts is not None else []
            self._theirs.update((id(our), other) for our, other in pairs)
            found = self._paired[id(node)] = [our for our, _ in pairs]
        return found


def _ends_alike(node: cst.CSTNode) -> bool:
    """Whether `ast` counts to a node what libcst counts to it."""
    kind = type(node)
    if kind is cst.Tuple:
        return not node.lpar  # type: ignore[attr-defined]
    if kind is cst.Arg:
        value = node.value  # type: ignore[attr-defined]
        plain = node.keyword is None and not node.star  # type: ignore[attr-defined]
        return not (plain and value.lpar) and not isinstance(value, (cst.Tuple, cst.GeneratorExp))
    return kind not in _OTHERWISE


_OTHERWISE = frozenset({cst.GeneratorExp, cst.IndentedBlock, cst.SimpleStatementSuite})
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


def _their_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements below a block, those in blocks after the one that holds them."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt):
            yield node
        # Only the block of a handler or a case counts.
        for field in reversed(_BLOCKS if isinstance(node, ast.stmt) else ("body",)):
            stack.extend(reversed(getattr(node, field, ())))


def _our_statements(body: Sequence[cst.CSTNode]) -> Iterator[tuple[cst.CSTNode, cst.SimpleStatementLine | None]]:
    """The statements as `_their_statements` has them, simple ones with their line where they have one of their own."""
    stack: list[cst.CSTNode] = list(reversed(body))
    while stack:
        node = stack.pop()
        if isinstance(node, cst.SimpleStatementLine):
            for statement in node.body:
                yield statement, node
            continue
        if isinstance(node, cst.SimpleStatementSuite):
            for statement in node.body:
                yield statement, None
            continue
        if isinstance(node, cst.IndentedBlock):
            stack.extend(reversed(node.body))
            continue
        if isinstance(node, cst.BaseCompoundStatement):
            yield node, None
        for field in reversed(_BLOCKS):
            inner = getattr(node, field, None)
            stack.extend((inner,) if isinstance(inner, cst.CSTNode) else reversed(inner or ()))


def _call(node: cst.Call, their: ast.Call) -> Iterator[tuple[Any, Any]]:
    yield node.func, their.func
    positional: Iterator[ast.AST] = iter(their.args)
    named: Iterator[ast.AST] = iter(their.keywords)
    for arg in node.args:
        other = next(named if arg.keyword is not None or arg.star == "**" else positional)
        yield arg, other
        yield arg.value, other.value if isinstance(other, (ast.keyword, ast.Starred)) else other


def _assign(node: cst.Assign, their: ast.Assign) -> Iterator[tuple[Any, Any]]:
    for target, other in zip(node.targets, their.targets, strict=True):
        yield target.target, other
    yield node.value, their.value


def _annotated(node: cst.AnnAssign, their: ast.AnnAssign) -> Iterator[tuple[Any, Any]]:
    yield node.target, their.target
    yield node.annotation.annotation, their.annotation
    yield node.value, their.value


def _subscript(node: cst.Subscript, their: ast.Subscript) -> Iterator[tuple[Any, Any]]:
    yield node.value, their.value
    if len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index) and not isinstance(their.slice, ast.Tuple):
        yield node.slice[0].slice.value, their.slice


def _elements(node: cst.Tuple | cst.List | cst.Set, their: ast.Tuple | ast.List | ast.Set) -> Iterator[tuple[Any, Any]]:
    for element, other in zip(node.elements, their.elts, strict=True):
        yield element.value, other.value if isinstance(other, ast.Starred) else other


def _dictionary(node: cst.Dict, their: ast.Dict) -> Iterator[tuple[Any, Any]]:
    for element, key, value in zip(node.elements, their.keys, their.values, strict=True):
        yield element.value, value
        if isinstance(element, cst.DictElement):
            yield element.key, key


def _comparison(node: cst.Comparison, their: ast.Compare) -> Iterator[tuple[Any, Any]]:
    yield node.left, their.left
    for part, other in zip(node.comparisons, their.comparators, strict=True):
        yield part.comparator, other


def _boolean(node: cst.BooleanOperation, their: ast.BoolOp) -> Iterator[tuple[Any, Any]]:
    """`a or b or c`, which is one operation to `ast`, and one in another to libcst."""
    operands: list[cst.BaseExpression] = []
    inner: cst.BaseExpression = node
    while isinstance(inner, cst.BooleanOperation) and len(operands) < len(their.values) - 1:
        operands.append(inner.right)
        inner = inner.left
    return zip((inner, *reversed(operands)), their.values, strict=True)


def _comprehension(node: cst.BaseComp, their: ast.ListComp | ast.SetComp | ast.DictComp) -> Iterator[tuple[Any, Any]]:
    if isinstance(node, cst.DictComp) and isinstance(their, ast.DictComp):
        yield from ((node.key, their.key), (node.value, their.value))
    elif isinstance(node, cst.BaseSimpleComp) and not isinstance(their, ast.DictComp):
        yield node.elt, their.elt
    part: cst.CompFor | None = node.for_in
    for loop in their.generators:
        assert part is not None
        yield from ((part.target, loop.target), (part.iter, loop.iter))
        yield from ((condition.test, test) for condition, test in zip(part.ifs, loop.ifs, strict=True))
        part = part.inner_for_in


def _decorated(
    node: cst.FunctionDef | cst.ClassDef, their: ast.FunctionDef | ast.ClassDef
) -> Iterator[tuple[Any, Any]]:
    for decorator, other in zip(node.decorators, their.decorator_list, strict=True):
        yield decorator.decorator, other


def _with(node: cst.With, their: ast.With) -> Iterator[tuple[Any, Any]]:
    for item, other in zip(node.items, their.items, strict=True):
        yield item.item, other.context_expr


def _same(*fields: str) -> Any:
    """The pairs of a node whose `fields` both have; where the other one's name differs, `ours=theirs`."""
    names = [(field.partition("=")[0], field.rpartition("=")[2]) for field in fields]

    def pairs(node: cst.CSTNode, their: ast.AST) -> Iterator[tuple[Any, Any]]:
        for ours, theirs in names:
            yield getattr(node, ours), getattr(their, theirs)

    return pairs


_PARTS: dict[type, Any] = {
    cst.AnnAssign: _annotated,
    cst.Assert: _same("test", "msg"),
    cst.Assign: _assign,
    cst.Attribute: _same("value"),
    cst.AugAssign: _same("target", "value"),
    cst.Await: _same("expression=value"),
    cst.BinaryOperation: _same("left", "right"),
    cst.BooleanOperation: _boolean,
    cst.Call: _call,
    cst.ClassDef: _decorated,
    cst.Comparison: _comparison,
    cst.Dict: _dictionary,
    cst.DictComp: _comprehension,
    cst.Expr: _same("value"),
    cst.For: _same("target", "iter"),
    cst.FunctionDef: _decorated,
    cst.GeneratorExp: _comprehension,
    cst.If: _same("test"),
    cst.IfExp: _same("test", "body", "orelse"),
    cst.Lambda: _same("body"),
    cst.List: _elements,
    cst.ListComp: _comprehension,
    cst.NamedExpr: _same("target", "value"),
    cst.Raise: _same("exc"),
    cst.Return: _same("value"),
    cst.Set: _elements,
    cst.SetComp: _comprehension,
    cst.Subscript: _subscript,
    cst.Tuple: _elements,
    cst.UnaryOperation: _same("expression=operand"),
    cst.While: _same("test"),
    cst.With: _with,
}
