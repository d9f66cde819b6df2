"""`pool.map(work, enumerate(x))` -> whether `work` does no more with the number that it is given than to show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.loops import displays, uses_name
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.module.tree import children

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from torchdet_lint.dataflow.call_edges import CallEdges
    from torchdet_lint.module.module import Module

_STARMAP = "starmap"


class _Mapped(NamedTuple):
    """A function that is given each element, the file it stands in, and the statements or the expression it runs."""

    module: Module
    function: cst.FunctionDef | cst.Lambda
    parts: tuple[cst.CSTNode, ...]


def shows_number(module: Module, edges: CallEdges, call: cst.Call, silent: Collection[str]) -> bool:
    """Whether what `call` maps over the pairs of an `enumerate` is in sight, and does nothing with the number of a pair
    but show it."""
    mapped = _mapped(module, edges, call.args[0].value)
    if mapped is None:
        return False
    params = [param.name.value for param in mapped.function.params.params if param.default is None]
    shown = {*silent, *displays(mapped.module, mapped.function, silent)}
    if last_word(call.func) == _STARMAP:
        return len(params) > 1 and not uses_name(mapped.parts, params[0], shown, mapped.module)
    if len(params) != 1:
        return False
    taken = {id(statement): number for statement, number in _taken_apart(mapped, params[0])}
    parts = [part for part in mapped.parts if id(part) not in taken]
    if any(_reads_pair(part, params[0]) for part in parts):
        return False
    return not any(uses_name(parts, number, shown, mapped.module) for number in sorted(taken.values()))


def _mapped(module: Module, edges: CallEdges, node: cst.BaseExpression) -> _Mapped | None:
    """The function that `node` is, where it is in sight."""
    if isinstance(node, cst.Lambda):
        return _Mapped(module, node, (node.body,))
    for name in module.resolve(node):
        own = module.definition(name.removeprefix("@.")) if name.startswith("@.") else None
        found = edges.foreign(name) if not name.startswith("@.") else None
        function = own or (found.function if found is not None else None)
        if function is not None:
            return _Mapped(module if found is None else found.module, function, tuple(_statements(function)))
    return None


def _statements(function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """The statements of a function, each by itself where several stand on a line."""
    for one in function.body.body:
        if isinstance(one, cst.SimpleStatementLine):
            yield from one.body
        else:
            yield one


def _taken_apart(mapped: _Mapped, pair: str) -> Iterator[tuple[cst.CSTNode, str]]:
    """The statements that take the parameter `pair` apart, `number, x = pair`, and what each calls the number."""
    for one in mapped.parts:
        if not isinstance(one, cst.Assign) or bare(one.value) != pair or len(one.targets) != 1:
            continue
        target = one.targets[0].target
        if isinstance(target, cst.Tuple) and isinstance(first := target.elements[0].value, cst.Name):
            yield one, first.value


def _reads_pair(part: cst.CSTNode, pair: str) -> bool:
    """Whether `part` reads more of `pair` than `pair[1]`, which is no number."""
    stack = [part]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Name) and node.value == pair:
            return True
        if not (isinstance(node, cst.Subscript) and bare(node.value) == pair and _is_second(node)):
            stack.extend(children(node))
    return False


def _is_second(node: cst.Subscript) -> bool:
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Integer) and index.value.value == "1"
