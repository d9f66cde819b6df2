"""Buffers that a class keeps in an attribute -> the first read of one that the file writes nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.finding import RelatedNode, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.checks.memory.domain import Buffer
    from torchdet_lint.module.module import Class, Module


class AttributeReads:
    """Buffers that a class keeps in an attribute, reads, and writes nowhere in the file."""

    def __init__(self, module: Module, rule: Rule, buffers: Mapping[cst.CSTNode, Buffer]) -> None:
        self.module = module
        self.words = {role: frozenset(words) for role, words in rule.words.items()}
        self.buffers = buffers
        self._first_reads: dict[str, tuple[cst.Attribute | None, int]] = {}

    def found(self) -> Iterator[Violation]:
        """The first read of each such attribute."""
        if not self.buffers or self.module.mentions.allocations.all_initialised:
            return
        kept: dict[tuple[Class, str], list[Buffer]] = {}
        for node, buffer in self.buffers.items():
            name = self._kept_as(node)
            class_ = self.module.enclosing_class(node)
            if name and class_ is not None and 0 not in (buffer.size or ()):
                kept.setdefault((class_, name), []).append(buffer)
        for (class_, name), made in kept.items():
            if self.module.mentions.allocations.is_touched(name) or not self._bases_in_sight(class_):
                continue
            read = self._read(name, len(made))
            if read is not None:
                call = self.module.code(made[0].node.func)
                related = RelatedNode(made[0].node, f"`{call}` allocates the memory here and writes nothing into it")
                details = {"name": self.module.code(read), "call": call}
                yield Violation(read, details, "attribute", "warning", related=(related,))

    def _kept_as(self, node: cst.CSTNode) -> str:
        """`name` where `node` is assigned to `self.name`, or registered under it."""
        module = self.module
        parent = module.parent(node)
        if isinstance(parent, cst.Attribute):
            call = module.parent(parent)
            return (
                self._kept_as(call) if isinstance(call, cst.Call) and parent.attr.value in self.words["views"] else ""
            )
        if isinstance(parent, cst.IfExp) and node is not parent.test:
            return self._kept_as(parent)
        if isinstance(parent, cst.Arg):
            call = module.parent(parent)
            if not isinstance(call, cst.Call):
                return ""
            if not self.words["wrappers"].isdisjoint(module.resolve(call.func)):
                return self._kept_as(call)
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in self.words["registers"]:
                first = call.args[0].value
                value = first.evaluated_value if isinstance(first, cst.SimpleString) else ""
                return value if isinstance(value, str) else ""
            return ""
        if isinstance(parent, cst.Assign):
            target = parent.targets[0].target
            if isinstance(target, cst.Name):
                loads = DefUse(module).loads_after(target, parent)
                return self._kept_as(loads[0]) if len(loads) == 1 else ""
        elif isinstance(parent, cst.AnnAssign):
            target = parent.target
        else:
            return ""
        own = isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name) and target.value.value == "self"
        return target.attr.value if own and isinstance(target, cst.Attribute) else ""

    def _bases_in_sight(self, class_: Class) -> bool:
        """Whether every base is `nn.Module`, `object` or a class of the file: another one may initialise."""
        return all(
            name in ("torch.nn.Module", "builtins.object") or self.module.local_class(name) is not None
            for relative in self.module.family(class_)
            for name in self.module.base_names(relative) or (("",) if relative.bases else ())
        )

    def _read(self, name: str, made: int) -> cst.Attribute | None:
        """The first read of `.name`; None where there is none, where something else is done with it, or where it is
        assigned more often than it is `made`."""
        if name not in self._first_reads:
            self._first_reads[name] = self._find_first_read(name)
        first, assigned = self._first_reads[name]
        return first if made >= assigned else None

    def _find_first_read(self, name: str) -> tuple[cst.Attribute | None, int]:
        module, assigned = self.module, 0
        module.load_where(lambda text: f".{name}" in text, name)
        first: cst.Attribute | None = None
        for unit in module.holding(name):
            for node in module.attributes_under(unit.root, name) if unit.root is not None else ():
                if isinstance(module.parent(node), (cst.AssignTarget, cst.AnnAssign)):
                    assigned += 1
                    continue
                use = self._use(node)
                if use == "other":
                    return None, 0
                if use == "read" and first is None:
                    first = node
        return first, assigned

    def _use(self, node: cst.BaseExpression) -> str:
        """`read`, `look` (at shape, type, presence) or `other`."""
        module = self.module
        parent = module.parent(node)
        if isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)):
            return "read"
        if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
            whole = parent if isinstance(parent, cst.Comparison) else module.parent(parent)
            assert isinstance(whole, cst.Comparison)
            looks = all(isinstance(one.operator, (cst.Is, cst.IsNot)) for one in whole.comparisons)
            return "look" if looks else "read"
        if isinstance(parent, cst.Subscript) and node is parent.value:
            return (
                "other" if isinstance(module.parent(parent), (cst.AssignTarget, cst.AugAssign)) else self._use(parent)
            )
        if isinstance(parent, cst.Attribute):
            return self._method(parent)
        if isinstance(parent, cst.Arg):
            return self._argument(parent)
        return "other"

    def _method(self, node: cst.Attribute) -> str:
        word, call = node.attr.value, self.module.parent(node)
        if word in self.words["metadata"]:
            return "look"
        if not isinstance(call, cst.Call) or call.func is not node:
            return self._use(node) if word in self.words["attribute-views"] else "other"
        if word in self.words["views"] or word in self.words["part-views"]:
            return self._use(call)
        return "read" if word in self.words["reads"] else "other"

    def _argument(self, arg: cst.Arg) -> str:
        call = self.module.parent(arg)
        if not isinstance(call, cst.Call) or (arg.keyword is not None and arg.keyword.value == "out"):
            return "other"
        for name in self.module.resolve(call.func):
            module, _, last = name.rpartition(".")
            if name in self.words["looks"]:
                return "look"
            if module not in self.words["modules"]:
                continue
            if last in self.words["reads"]:
                return "read"
            if last in self.words["metadata"] or last.endswith("_like"):
                return "look"
            if last in self.words["views"]:
                return self._use(call)
        return "other"
