"""The statements of a function -> what it loads that is evidently data, and no weights of a model."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import children, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

# Methods that move a tensor or a model, and what else both have: it says nothing.
_MOVES = frozenset({"bfloat16", "cpu", "cuda", "double", "float", "half", "to"})
_OF_MODELS = _MOVES | {"data", "device", "dtype", "requires_grad_", "type"}
# What goes through a value, shows it or measures it.
_READS = frozenset({"enumerate", "len", "print", "range", "type", "zip"})


class DataUses:
    """Tells whether what a function loads is used as a tensor, or as a dictionary of tensors that are."""

    def __init__(
        self,
        body: Sequence[ast.stmt],
        is_load: Callable[[ast.Call], bool],
        takes: Callable[[ast.Call], bool | None],
        attributes: Collection[str],
    ) -> None:
        """`takes` says of a call that it takes data (True), takes anything and gives no model weights (None), or may do
        anything with what it is given (False); `attributes` are those of tensors."""
        nodes = [node for statement in body for node in walk(statement)]
        self._nodes = nodes
        self._takes = takes
        self._attributes = frozenset(attributes) - _OF_MODELS
        self.loads = [node for node in nodes if isinstance(node, ast.Call) and is_load(node)]

    @functools.cached_property
    def _around(self) -> Mapping[ast.AST, ast.AST]:
        """By node what it is a part of."""
        return {inner: node for node in self._nodes for inner in children(node)}

    def of_data(self, shared: Set[str], *, kept: bool) -> frozenset[ast.Call]:
        """The calls that load nothing but data. What is bound to a name in `shared` is read elsewhere too; what is
        `kept` in an attribute is data."""
        names = [node for node in self._nodes if isinstance(node, ast.Name)]
        stored = Counter(name.id for name in names if isinstance(name.ctx, ast.Store))
        declared = {word for node in self._nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for word in node.names}
        read: dict[str, list[ast.Name]] = {}
        for name in names:
            if isinstance(name.ctx, ast.Load):
                read.setdefault(name.id, []).append(name)
        found: set[ast.Call] = set()
        for call in self.loads:
            node = self._moved(call)
            outer = self._around.get(node)
            if isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.targets[0], ast.Name):
                bound = outer.targets[0].id
                once = stored[bound] == 1 and bound not in declared | shared
                uses = [told for name in read.get(bound, ()) for told in self._uses(name)] if once else []
            elif isinstance(outer, ast.Assign) and all(isinstance(one, ast.Attribute) for one in outer.targets):
                uses = [kept]
            else:
                uses = list(self._uses(node))
            if True in uses and False not in uses:
                found.add(call)
        return frozenset(found)

    def _moved(self, node: ast.AST) -> ast.AST:
        """`torch.load(path).float()` of the call in it: what is moved, or taken out of a dictionary."""
        while True:
            outer = self._around.get(node)
            if isinstance(outer, ast.Attribute) and outer.attr in _MOVES:
                called = self._around.get(outer)
                if not (isinstance(called, ast.Call) and called.func is outer):
                    return node
                node = called
            elif isinstance(outer, ast.Subscript) and outer.value is node:
                node = outer
            else:
                return node

    def _uses(self, node: ast.AST) -> Iterator[bool | None]:
        """What a read of a value says: that it is data (True), nothing (None), or that it may hold weights (False)."""
        node = self._moved(node)
        outer = self._around.get(node)
        match outer:
            case ast.Attribute(attr=attribute):
                yield attribute in self._attributes
            case ast.BinOp():
                yield True
            case ast.Compare() | ast.Expr() | ast.For() | ast.comprehension() | ast.Subscript():
                yield None
            case ast.keyword():
                yield self._given_to(self._around.get(outer))
            case ast.Call():
                yield self._given_to(outer) if outer.func is not node else False
            case _:
                yield False

    def _given_to(self, call: ast.AST | None) -> bool | None:
        if not isinstance(call, ast.Call):
            return False
        if isinstance(call.func, ast.Name) and call.func.id in _READS:
            return None
        return self._takes(call)
