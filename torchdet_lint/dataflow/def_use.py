"""A name and what binds it → the reads that the binding reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import last_word, names_read

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Scope


class DefUse:
    """The reads of a file's names."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.orders = module.library.facts.orders
        self._names: dict[int, dict[str, list[cst.Name]]] = {}

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
        killers = [
            (binding.order, self._reach(binding.node, binding.value, node))
            for binding in (home.bindings.get(name.value, ()) if home is not None else ())
            if binding.order > start
            and binding.node is not None
            and binding.node is not node
            and binding.kind in ("assign", "unpack", "loop")
        ]
        found = []
        for load in sorted(self.loads_in(function, name.value), key=module.order_of):
            order = module.order_of(load)
            around = list(module.ancestors(load))
            if node is not None and (order <= start or node in around):
                continue
            if not any(killed < order and (block is None or block in around) for killed, block in killers):
                found.append(load)
        return found

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
        if function is None:
            self.module.load_where(word=word)
            roots: list[cst.CSTNode] = [unit.root for unit in self.module.units if unit.root is not None]
            return [load for root in roots for load in names_read(root).get(word, ())]
        key = id(function)
        if key not in self._names:
            self._names[key] = names_read(function)
        return self._names[key].get(word, [])
