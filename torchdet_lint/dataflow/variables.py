"""A value that a name or an attribute is bound to → the uses of the reads that see it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.collecting import Collecting
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.dataflow.uses import Use

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.names import Scope

_SETS = re.compile(r"[sS]et\b|Iterable|Collection|Sized|Container")


class Variables(Collecting):
    """The uses of names, and of attributes in the methods of a class."""

    def stored(self, target: cst.BaseExpression, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of what `node` assigns to `target`."""
        if isinstance(target, cst.Name):
            yield from self.named(target, node)
        elif isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
            yield from self.attribute_uses(target)
        else:
            yield Use(node, "stored")

    def grown(self, target: cst.BaseExpression, node: cst.CSTNode) -> Iterator[Use]:
        """A list that takes in the value: its later uses."""
        yield from self.stored(target, node)

    def named(self, name: cst.Name, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of `name`, bound at or changed by `node`, after it."""
        scope = self.module.scope_of(node)
        home = scope.home(name.value)
        if home is None:
            yield Use(node, "other")
            return
        root = home.function.node
        yield from self.loads(name, root if isinstance(root, cst.FunctionDef) else None, home, node)

    def loads(
        self, name: cst.Name, function: cst.FunctionDef | None, home: Scope | None, node: cst.CSTNode | None
    ) -> Iterator[Use]:
        """The uses of the reads of `name` in `function` that see what `node` binds."""
        loads = self.definitions.live_loads(name, function, home, node)
        counted = [where for load in loads if (where := self._counted_one(load)) is not False]
        for load in loads:
            if isinstance(node, (cst.For, cst.While)) and self._grows(load):
                continue
            if self.is_set and self._is_no_set(load):
                continue
            alone = bool(counted) and (True in counted or any(one in counted for one in self.module.ancestors(load)))
            for use in self.of(load):
                if not (alone and use.kind in ("picked", "returned")):
                    yield use
                if use.kind == "sorted" and self._in_place(use.node, load):
                    return

    def _counted_one(self, load: cst.Name) -> cst.BaseSuite | bool:
        """Where there is but one, as `load` stands in `len(x) == 1`, `len(x) > 1` or their like: in the branch of an
        `if`, or everywhere, where somebody is told of more."""
        call = self.module.parent(self.module.parent(load) or load)
        if not isinstance(call, cst.Call) or last_word(call.func) != "len":
            return False
        around = self.module.parent(call)
        if isinstance(around, cst.Arg):
            check = self.module.parent(around)
            return isinstance(check, cst.Call) and any(bare(arg.value) == "1" for arg in check.args)
        if not isinstance(around, cst.Comparison) or bare(around.comparisons[0].comparator) != "1":
            return False
        choice = self.module.parent(around)
        branch = isinstance(choice, cst.If) and isinstance(around.comparisons[0].operator, cst.Equal)
        return choice.body if branch else True  # type: ignore[union-attr]

    def _is_no_set(self, load: cst.Name) -> bool:
        """Whether `load` stands where an `isinstance` says that it is something else than a set."""
        below: cst.CSTNode = load
        for around in self.module.ancestors(load):
            if isinstance(around, cst.If) and below is around.body:
                text = bare(around.test)
                if text.startswith(f"isinstance({load.value},") and not _SETS.search(text):
                    return True
            below = around
        return False

    def _in_place(self, node: cst.CSTNode, load: cst.Name) -> bool:
        return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.value is load

    def _grows(self, load: cst.Name) -> bool:
        parent = self.module.parent(load)
        return isinstance(parent, cst.Attribute) and parent.attr.value in self.words["grows"]

    def attribute_uses(self, target: cst.Attribute) -> Iterator[Use]:
        """The uses of an attribute in the methods of its class; none after it is sorted in place anywhere."""
        module, word = self.module, target.attr.value
        class_ = module.enclosing_class(target)
        if class_ is None:
            yield Use(target, "stored")
            return
        units = [unit for unit in module.holding(word) if unit.piece.owner == class_.index >= 0]
        for unit in units:
            if word in module.words[unit.index]:
                module.load(unit)
                module.load_statements()
        roots: list[cst.CSTNode] = [unit.root for unit in units if unit.root is not None]
        if not roots and class_.node is not None:
            roots = [class_.node]
        found: list[Use] = []
        for root in roots:
            for attribute in module.attributes_under(root, word):
                if attribute is target or not isinstance(attribute.value, cst.Name):
                    continue
                if isinstance(module.parent(attribute), (cst.AssignTarget, cst.AnnAssign)):
                    continue
                found += self.of(attribute)
        if any(use.kind == "sorted" and self._stays_sorted(use.node, target) for use in found):
            yield Use(target, "sorted")
        else:
            yield from found or [Use(target, "stored")]

    def _stays_sorted(self, node: cst.CSTNode, target: cst.Attribute) -> bool:
        """`self.x.sort()` or `self.x = sorted(self.x)`."""
        parent = self.module.parent(node)
        if isinstance(parent, cst.Assign):
            return bare(parent.targets[0].target) == bare(target)
        return isinstance(node, cst.Call) and last_word(node.func) == "sort"
