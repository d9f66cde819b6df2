"""A value that a name or an attribute is bound to -> the uses of the reads that see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.collecting import Collecting, Path
from torchdet_lint.dataflow.loops import outermost
from torchdet_lint.dataflow.reaching_definitions import choice_of
from torchdet_lint.dataflow.relatives import annotated_class
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.dataflow.uses import NO_RESULT, Use

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Scope

_SELF = ("self", "cls")

# What looks at an order and leaves it to others.
_LOOKS = NO_RESULT - {"sorted"}


class _Objects:
    """The reads of attributes of objects in one file, by the name of the attribute and the class, each with the number
    of units that were parsed by then."""

    def __init__(self, module: Module) -> None:
        self.reads: dict[str, tuple[int, dict[int, list[cst.Attribute]]]] = {}


class Variables(Collecting):
    """The uses of names, and of attributes in the methods of a class."""

    def stored(self, target: cst.BaseExpression, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of what `node` assigns to `target`."""
        if isinstance(target, cst.Name):
            yield from self.named(target, node)
        elif isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name) and target.value.value in _SELF:
            yield from self.attribute_uses(target)
        elif isinstance(target, cst.Attribute):
            yield from self._object_uses(target, node)
        elif isinstance(target, cst.Subscript) and not self.trail.is_set and not self.trail.nested:
            if isinstance(target.value, cst.Name):
                around = outermost(self.module, node, target.value.value)
                yield from self.of_entries(self.definitions.loads_after(target.value, around))
            yield from self.table_uses(target, node)
        elif isinstance(target, cst.Subscript) and not self.trail.nested:
            yield from self._set_stored(target, node)
        else:
            yield Use(node, "stored")

    def _set_stored(self, entry: cst.Subscript, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of the set that `node` puts into `entry`, `table["train"]["names"]`, where all keys are in sight."""
        table: cst.BaseExpression = entry
        path: Path = ()
        while isinstance(table, cst.Subscript):
            index = table.slice[0].slice
            key = self.key_of(index.value) if isinstance(index, cst.Index) else None
            if key is None:
                yield Use(node, "stored")
                return
            path, table = (key, *path), table.value
        reads = [one for one in self.table_reads(table, node) if not self.module.contains(node, one)]
        yield from list(self.of_entries(reads, path)) or [Use(node, "stored")]

    def _object_uses(self, target: cst.Attribute, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of an attribute of another object: where the function reads it afterwards, in the methods of its
        class, and with an object from elsewhere wherever that is."""
        module = self.module
        text, start, function = bare(target), module.order_of(node), module.enclosing_function(node)
        class_ = self.class_of(target.value)
        found: list[Use] = []
        if class_ is not None:
            found = [*self.beside(class_[0]).field_uses(class_[1], target.attr.value)]
            found = [self.here(use, target, class_[0]) for use in found]
        elif function is not None:
            for read in module.attributes_under(function, target.attr.value):
                later = module.order_of(read) > start and not module.contains(node, read)
                if later and bare(read) == text and self._is_read(read):
                    found += self.of(read)
        yield from found
        looked_at = all(use.kind in _LOOKS for use in found)
        if looked_at and class_ is None and not self.trail.is_set and self._comes_from_outside(target, function):
            yield Use(target, "kept")

    def class_of(self, node: cst.BaseExpression) -> tuple[Module, Class] | None:
        """The class that `node` is evidently an object of, and its file."""
        module = self.module
        for name in module.resolve(node, module.scope_of(node), module.order_of(node)):
            if name.endswith("()") or module.local_class(name) is not None:
                name = name.removesuffix("()")
                local = module.local_class(name)
                if local is not None:
                    return module, local
                found = module.neighbour(name) if module.neighbour is not None else None
                class_ = found[0].local_class(f"@.{found[1]}") if found is not None else None
                if found is not None and class_ is not None:
                    return found[0], class_
        if isinstance(node, cst.Attribute):
            given = [value.node for value in module.self_attribute(node, module.scope_of(node))]
            node = given[0] if len(given) == 1 else node
        return annotated_class(module, node) if isinstance(node, cst.Name) else None

    def _comes_from_outside(self, target: cst.Attribute, function: cst.FunctionDef | None) -> bool:
        """Whether the object whose attribute `target` is was given to `function`, or is the file's: what is put there
        others read."""
        root: cst.BaseExpression = target
        while isinstance(root, cst.Attribute):
            root = root.value
        if function is None or not isinstance(root, cst.Name) or root.value in _SELF:
            return False
        home = self.module.scope_of(target).home(root.value)
        if home is None or home is self.module.scope:
            return True
        bindings = home.bindings[root.value]
        return bool(bindings) and all(binding.kind == "parameter" for binding in bindings)

    def here(self, use: Use, node: cst.CSTNode, module: Module) -> Use:
        """`use`, found in the file `module`, as one of this file: what is done elsewhere is done where `node` leads
        there."""
        owner = use.module or module
        if owner is self.module:
            return use._replace(module=None)
        return use._replace(node=node, file=use.file or owner.source.path, module=None, origin=None)

    def beside(self, module: Module) -> Variables:
        """Who follows the same value through the file `module`."""
        raise NotImplementedError

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
        if home.kind == "class" and (class_ := self.module.enclosing_class(node)) is not None:
            for use in self.field_uses(class_, name.value):
                yield self.here(use, name, self.module)
            return
        root = home.function.node
        uses = self.loads(name, root if isinstance(root, cst.FunctionDef) else None, home, node)
        if home is not self.module.scope or self.trail.is_set or self.module.enclosing_function(node) is not None:
            yield from uses
            return
        found = list(uses)
        yield from found
        if all(use.kind == "measured" for use in found):
            yield from self._elsewhere(name)

    def _elsewhere(self, name: cst.Name) -> Iterator[Use]:
        """The uses of the global `name` in files that import it."""
        for module, read in self.module.readers(name.value) if self.module.readers is not None else ():
            for use in self.beside(module).of(read):
                yield self.here(use, name, module)

    def loads(
        self, name: cst.Name, function: cst.FunctionDef | None, home: Scope | None, node: cst.CSTNode | None
    ) -> Iterator[Use]:
        """The uses of the reads of `name` in `function` that see what `node` binds."""
        again = isinstance(node, (cst.For, cst.While))
        loads = self.definitions.live_loads(name, function, home, node, growing=not again)
        counted = [where for load in loads if (where := self.definitions.counted_one(load)) is not False]
        for load in loads:
            if self.trail.is_set and self.is_no_set(load):
                continue
            alone = bool(counted) and (True in counted or any(one in counted for one in self.module.ancestors(load)))
            for use in self.of(load):
                if not (alone and use.kind in ("picked", "first", "returned", "joined")):
                    yield use
                if use.kind == "sorted" and self._in_place(use.node, load):
                    return

    def _in_place(self, node: cst.CSTNode, load: cst.Name) -> bool:
        return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.value is load

    def attribute_uses(self, target: cst.Attribute) -> Iterator[Use]:
        """The uses of an attribute in the methods of its class, of those that it derives from and of those that derive
        from it; where it is sorted in place anywhere, those before that in the function that assigns it."""
        class_ = self.module.enclosing_class(target)
        if class_ is None:
            yield Use(target, "stored")
        else:
            for use in self.field_uses(class_, target.attr.value, target):
                yield self.here(use, target, self.module)

    def field_uses(self, class_: Class, word: str, target: cst.Attribute | None = None) -> Iterator[Use]:
        """The same of the attribute `word` of `class_`, which is assigned at `target`."""
        found: list[Use] = []
        near: list[tuple[cst.Attribute, list[Use]]] = []
        family = [*self.edges.ancestors(self.module, class_), *self.edges.derived(class_)]
        gone_through = False
        for module, relative in family:
            other = self.beside(module)
            for attribute in other.reads_in_class(relative, word):
                if attribute is not target:
                    gone_through |= isinstance(module.parent(attribute), (cst.For, cst.CompFor))
                    uses = [use._replace(module=use.module or module) for use in other.of(attribute)]
                    found += uses
                    near += [(attribute, uses)] if module is self.module else []
        if target is not None:
            sorts = [use for use in found if use.kind == "sorted" and self._stays_sorted(use.node, target, use.module)]
            sorts = [use for use in sorts if use.module is not self.module or not self._is_apart(use.node, target)]
            if sorts:
                yield from self._before(sorts[0], target, near)
                yield Use(target, "sorted")
                return
        if target is not None and not self.trail.is_set and all(use.kind == "measured" for use in found):
            found += self._uses_in_heirs(class_, word, target)
        if not found or self.trail.is_set:
            for follower in self.trail.followers:
                for attribute in follower.reads_of(class_, word):
                    found += [use._replace(module=use.module or follower.module) for use in follower.of(attribute)]
        if found:
            yield from found
        elif target is not None and gone_through:
            # Who goes through it in sight makes nothing of the order.
            yield Use(target, "measured")
        elif target is not None:
            open_ = (
                not self.trail.is_set
                and not self.trail.nested
                and (
                    self.edges.is_open(self.module, class_)
                    or not (class_.name.startswith("_") or target.attr.value.startswith("_"))
                )
            )
            yield Use(target, "kept" if open_ else "stored")

    def _before(
        self, sort: Use, target: cst.Attribute, near: Sequence[tuple[cst.Attribute, list[Use]]]
    ) -> Iterator[Use]:
        """The uses of those reads of an attribute that stand, in one function, between `target` and `sort`."""
        module = self.module
        function = module.enclosing_function(target)
        if sort.module is not module or module.enclosing_function(sort.node) is not function:
            return
        first, last = module.order_of(target), module.order_of(sort.node)
        for attribute, uses in near:
            if module.enclosing_function(attribute) is function and first < module.order_of(attribute) < last:
                yield from uses

    def _uses_in_heirs(self, class_: Class, word: str, target: cst.Attribute) -> Iterator[Use]:
        """The uses of the attribute in the classes of other files that derive from `class_`; none of those of one that
        sorts it in place."""
        for module, relative in self.edges.heirs(class_):
            other = self.beside(module)
            own = [
                use._replace(module=use.module or module)
                for attribute in other.reads_in_class(relative, word)
                for use in other.of(attribute)
            ]
            if any(use.kind == "sorted" and self._stays_sorted(use.node, target, use.module) for use in own):
                yield Use(target, "measured")
            else:
                yield from own

    def reads_in_class(self, class_: Class, word: str) -> list[cst.Attribute]:
        """Where the methods of `class_` read the attribute `word` of an object."""
        module = self.module
        units = [unit for unit in module.holding(word) if unit.piece.owner == class_.index >= 0]
        for unit in units:
            if word in module.words[unit.index]:
                module.load(unit)
                module.load_statements()
        roots: list[cst.CSTNode] = [unit.root for unit in units if unit.root is not None]
        if not roots and class_.node is not None:
            roots = [class_.node]
        return [one for root in roots for one in module.attributes_under(root, word) if self._is_read(one)]

    def reads_of(self, class_: Class, word: str) -> list[cst.Attribute]:
        """Where the file reads the attribute `word` of what is evidently an object of `class_`."""
        self.module.load_where(lambda text: f".{word}" in text, word)
        known = self.module.shared(_Objects).reads
        if word not in known or known[word][0] != len(self.module.parsed):
            known[word] = len(self.module.parsed), self._read_by_class(word)
        return known[word][1].get(id(class_), [])

    def _read_by_class(self, word: str) -> dict[int, list[cst.Attribute]]:
        """The same by the identity of the class."""
        found: dict[int, list[cst.Attribute]] = {}
        roots = [unit.root for unit in self.module.holding(word) if unit.root is not None]
        for one in (one for root in roots for one in self.module.attributes_under(root, word) if self._is_read(one)):
            class_ = self.class_of(one.value)
            if class_ is not None:
                found.setdefault(id(class_[1]), []).append(one)
        return found

    def _is_read(self, attribute: cst.Attribute) -> bool:
        assigned = isinstance(self.module.parent(attribute), (cst.AssignTarget, cst.AnnAssign))
        return isinstance(attribute.value, cst.Name) and not assigned

    def _is_apart(self, node: cst.CSTNode, target: cst.Attribute) -> bool:
        """Whether one call of a function comes to `node` or to `target` and never to both: they stand in two arms of an
        `if`, or `target` behind an arm with `node` that ends in a way out; in no loop, which may come to one after the
        other."""
        module = self.module
        apart, arm = False, node
        for around in module.ancestors(node):
            if isinstance(around, cst.FunctionDef):
                return apart and module.contains(around, target)
            if module.contains(around, target) and isinstance(around, (cst.For, cst.While)):
                return False
            if isinstance(around, (cst.If, cst.Else)) and not apart and not module.contains(arm, target):
                choice = choice_of(module, arm) if arm is around.body else None
                behind = module.order_of(target) > module.order_of(node) and _ends_in_way_out(arm)
                apart = choice is not None and (behind or module.contains(choice, target))
            arm = around
        return False

    def _stays_sorted(self, node: cst.CSTNode, target: cst.Attribute, module: Module | None) -> bool:
        """`self.x.sort()` or `self.x = sorted(self.x)`."""
        parent = (module or self.module).parent(node)
        if isinstance(parent, cst.Assign):
            return bare(parent.targets[0].target) == bare(target)
        return isinstance(node, cst.Call) and last_word(node.func) == "sort"


def _ends_in_way_out(block: cst.CSTNode) -> bool:
    """Whether a block ends by leaving the function."""
    last = block.body[-1] if isinstance(block, (cst.IndentedBlock, cst.SimpleStatementSuite)) and block.body else None
    return isinstance(last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last, (cst.Return, cst.Raise))
