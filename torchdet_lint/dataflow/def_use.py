"""A name and what binds it → the reads that the binding reaches."""

from __future__ import annotations

import bisect
import operator
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import last_word, names_read

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Binding, Scope

# Of the reads of one value, so many are looked at.
_MOST = 500
_order = operator.attrgetter("order")


class Reads:
    """The names that a file reads, looked up by word."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._names: dict[int, dict[str, list[cst.Name]]] = {}
        self._everywhere: dict[str, dict[int, list[cst.Name]]] = {}
        self._parsed = 0

    def of(self, root: cst.CSTNode | None, word: str) -> list[cst.Name]:
        """The places under `root` (None: the whole file) where the name is read, in the order of the source."""
        if root is not None:
            if id(root) not in self._names:
                self._names[id(root)] = names_read(root)
            return self._names[id(root)].get(word, [])
        self.module.load_where(word=word)
        if self._parsed < len(self.module.parsed):
            for unit in self.module.parsed[self._parsed :]:
                assert unit.root is not None
                for name, loads in names_read(unit.root).items():
                    self._everywhere.setdefault(name, {})[unit.index] = loads
            self._parsed = len(self.module.parsed)
        return [load for _, loads in sorted(self._everywhere.get(word, {}).items()) for load in loads]


class DefUse:
    """The reads of a file's names."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.orders = module.library.facts.orders
        self._sorted: dict[tuple[int, str], tuple[list[cst.Name], list[int]]] = {}
        self._bound: dict[tuple[Scope, str], tuple[int, list[Binding]]] = {}

    def loads_after(self, name: cst.Name, node: cst.CSTNode) -> list[cst.Name]:
        """Where `name`, bound at `node`, is read afterwards, in the order of the source."""
        home = self.module.scope_of(node).home(name.value)
        if home is None:
            return []
        root = home.function.node
        return self.live_loads(name, root if isinstance(root, cst.FunctionDef) else None, home, node)

    def live_loads(
        self, name: cst.Name, function: cst.FunctionDef | None, home: Scope | None, node: cst.CSTNode | None
    ) -> list[cst.Name]:
        """The reads of `name` in `function` (None: the whole file) that see what `node` binds (None: a parameter)."""
        module = self.module
        start = module.order_of(node) if node is not None else -1
        loads, orders = self._sorted_loads(function, name.value)
        killers = self._killers(home, name.value) if home is not None else []
        hidden: set[int] = set()
        found: list[cst.Name] = []
        at = bisect.bisect_right(killers, start, key=_order)
        first = bisect.bisect_right(orders, start) if node is not None else 0
        for load, order in zip(loads[first : first + _MOST], orders[first:], strict=False):
            while at < len(killers) and killers[at].order < order:
                binding, at = killers[at], at + 1
                if binding.node is None or binding.node is node:
                    continue
                block = self._reach(binding.node, binding.value, node)
                if block is None:
                    return found
                hidden.add(id(block))
            around = [id(one) for one in module.ancestors(load)]
            if (node is None or id(node) not in around) and hidden.isdisjoint(around):
                found.append(load)
        return found

    def _sorted_loads(self, function: cst.FunctionDef | None, word: str) -> tuple[list[cst.Name], list[int]]:
        """The reads of a name and their orders, in the order of the source."""
        loads = self.loads_in(function, word)
        known = self._sorted.get((id(function), word))
        if known is None or len(known[0]) != len(loads):
            pairs = sorted(((self.module.order_of(load), load) for load in loads), key=operator.itemgetter(0))
            known = self._sorted[id(function), word] = [load for _, load in pairs], [order for order, _ in pairs]
        return known

    def _killers(self, home: Scope, word: str) -> list[Binding]:
        """What gives a name in `home` another value, in the order of the source."""
        bindings: list[Binding] = home.bindings.get(word) or []
        known = self._bound.get((home, word))
        if known is None or known[0] != len(bindings):
            kept = [one for one in bindings if one.node is not None and one.kind in ("assign", "unpack", "loop")]
            known = self._bound[home, word] = len(bindings), sorted(kept, key=_order)
        return known[1]

    def _reach(
        self, binder: cst.CSTNode, value: cst.BaseExpression | None, node: cst.CSTNode | None
    ) -> cst.CSTNode | None:
        """The block in which a later binding hides the value; None: everywhere after it, as where whatever binds the
        value at `node` comes by there too. `if sort: x = sorted(x)` gives
        the user the choice, unless the value was itself bound in a branch of that `if`."""
        module = self.module
        block = module.parent(module.statement(binder))
        if node is not None and any(around is block for around in module.ancestors(node)):
            return None
        if isinstance(value, cst.Call) and self.orders.sorts(last_word(value.func)):
            choice = next((one for one in module.ancestors(binder) if isinstance(one, cst.If)), None)
            if choice is not None and (node is None or choice not in module.ancestors(node)):
                return None
        return block

    def loads_in(self, function: cst.FunctionDef | None, word: str) -> list[cst.Name]:
        """The places in `function` (None: the whole file) where the name is read, in the order of the source."""
        return self.module.shared(Reads).of(function, word)
