"""The statements and expressions of a function -> the reads of memory that no path before them wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.memory.calls import Calls
from torchdet_lint.checks.memory.domain import NO_REFS, Buffer, CutShort, Refs, State, some_part
from torchdet_lint.checks.memory.store import settle
from torchdet_lint.checks.memory.subscripts import Subscripts, beyond
from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.dataflow.syntax import condition, names_bound, names_read
from torchdet_lint.module.tree import LEAVES, children

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.module.module import Module


class Reads(Calls):
    """The reads of unwritten memory in one function, or in the statements of a module."""

    def __init__(self, module: Module, rule: Rule, buffers: Mapping[cst.CSTNode, Buffer], captured: set[str]) -> None:
        super().__init__(module, rule, buffers)
        self.captured = captured
        self.subscripts = Subscripts(module)

    def is_measured(self, node: cst.CSTNode) -> bool:
        """Whether `node` is part of what a name is bound to of which only the shape, the type and the like are read."""
        around = next((one for one in self.module.ancestors(node) if isinstance(one, cst.BaseSmallStatement)), None)
        if not isinstance(around, cst.Assign) or len(around.targets) != 1:
            return False
        name = around.targets[0].target
        loads = self.module.shared(DefUse).loads_after(name, around) if isinstance(name, cst.Name) else []
        asked = [self.module.parent(load) for load in loads]
        words = self.words["metadata"]
        return bool(asked) and all(isinstance(one, cst.Attribute) and one.attr.value in words for one in asked)

    # ------------------------------------------------------------------ statements

    def expression(self, node: cst.BaseExpression, state: State) -> None:
        """Evaluate."""
        self.value(node, state)

    def test(self, node: cst.BaseExpression, state: State) -> None:
        """The truth of a tensor is a read of it."""
        self.read(self.value(node, state), node, state)

    def leave(self, node: cst.BaseExpression, state: State) -> None:
        """Returned: whoever receives it may write it."""
        self.escape(self.value(node, state), state)

    def define(self, node: cst.CSTNode, state: State) -> None:
        """What a nested function names is its own to write, at a time that we do not know."""
        for name in free_names(self.module, node):
            self.escape(state.env.get(name, NO_REFS), state)

    def delete(self, node: cst.BaseExpression, state: State) -> None:
        """A deleted name refers to nothing."""
        if isinstance(node, cst.Name):
            state.env.pop(node.value, None)

    def assign(self, targets: Sequence[cst.BaseExpression], value: cst.BaseExpression, state: State) -> None:
        """Names become names of the same memory; subscripts write it; all else is out of sight."""
        displays = (cst.Tuple, cst.List)
        if len(targets) == 1 and isinstance(targets[0], displays) and isinstance(value, displays):
            left, right = targets[0].elements, value.elements
            if len(left) == len(right) and not any(isinstance(one, cst.StarredElement) for one in (*left, *right)):
                values = [self.value(element.value, state) for element in right]
                for element, refs in zip(left, values, strict=True):
                    self.bind(element.value, refs, state)
                return
        refs = self.value(value, state)
        for target in targets:
            self.bind(target, refs, state)

    def bind(self, target: cst.BaseExpression, refs: Refs, state: State) -> None:
        """`target` receives a value that shares memory with `refs`."""
        if isinstance(target, cst.Name):
            state.name(target.value, refs)
            self.subscripts.spans.pop(target.value, None)
            if target.value in self.captured:
                self.escape(refs, state)
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self.bind(element.value, some_part(refs), state)
        elif isinstance(target, cst.Subscript):
            owner = self.value(target.value, state)
            within = {ref.buffer for ref in owner}
            if not within:
                self.escape(refs, state)
            elif any(ref.buffer not in within for ref in refs):
                # An element that goes to another place of its own buffer has reached nothing yet.
                self.read(refs, target, state)
            self.indices(target, state)
            self.write(self.subscripts.viewed(owner, target), state)
        else:
            assert isinstance(target, cst.Attribute)
            self.escape(refs, state)
            owner = self.value(target.value, state)
            if target.attr.value == "data":
                self.write(owner, state)
            elif target.attr.value in ("real", "imag"):
                self.write(some_part(owner), state)

    def augment(self, node: cst.AugAssign, state: State) -> None:
        """`x += y` reads both."""
        self.read(self.value(node.value, state), node.value, state)
        target = node.target
        if isinstance(target, cst.Subscript):
            self.indices(target, state)
            refs = self.subscripts.viewed(self.value(target.value, state), target)
        else:
            refs = self.value(target, state)
        self.read(refs, target, state)

    def at_end(self, test: cst.BaseExpression, state: State) -> bool:
        """A counter that has come to the size of a buffer has been at every element of it."""
        if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
            return self.at_end(test.left, state) or self.at_end(test.right, state)
        reached = self.subscripts.reached(test)
        if reached is None:
            return False
        for number, memory in state.memories.items():
            more = beyond(self.module, self.buffers[number], reached[0])
            # The last element is written in this round, above the test or not at all.
            if more is not None and more + reached[1] >= (-1 if memory.parts else 0):
                return True
        return False

    def broken(self, node: cst.For | cst.While, entry: State, state: State) -> None:
        """What the counter of the loop was to go through is cut short."""
        loops = len(self.entered) + 1
        found: dict[int, CutShort] = {}
        names: frozenset[str] | None = None
        for number, memory in state.memories.items():
            known = entry.memories.get(number)
            if memory is known or known is None or memory.full or memory.escaped:
                continue
            extents = self.subscripts.extents(self.buffers[number])
            parts = {part for part in memory.parts - known.parts if part.is_counted(loops, extents)}
            if parts:
                names = names if names is not None else frozenset(names_bound(node))
                found[number] = CutShort(frozenset(parts), names)
        state.cut = {**state.cut, **found} if found else state.cut

    def iterate(self, node: cst.For, state: State) -> None:
        """Rows of a tensor are views of it; a counter over a range spans it."""
        refs = some_part(self.refs_of(node.iter, state))
        self.bind(node.target, refs, state)
        self.subscripts.count(node, len(self.entered))

    # ------------------------------------------------------------------ expressions

    def refs_of(self, node: cst.BaseExpression, state: State) -> Refs:
        """What `node` refers to, without evaluating it a second time."""
        return state.env.get(node.value, NO_REFS) if isinstance(node, cst.Name) else NO_REFS

    def value(self, node: cst.CSTNode, state: State) -> Refs:
        """Evaluate `node`: its reads, writes and escapes happen, and what it shares memory with is returned."""
        if isinstance(node, cst.Name):
            return state.env.get(node.value, NO_REFS)
        if type(node) in LEAVES:
            return NO_REFS
        if isinstance(node, cst.Call):
            return self.call(node, state)
        if isinstance(node, cst.Attribute):
            return self.attribute(node, state)
        if isinstance(node, cst.Subscript):
            refs = self.value(node.value, state)
            self.indices(node, state)
            return self.subscripts.viewed(refs, node)
        if isinstance(node, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
            self.operands(node, state)
            return NO_REFS
        if isinstance(node, (cst.BooleanOperation, cst.IfExp)):
            return self.choice(node, state)
        if isinstance(node, cst.NamedExpr):
            refs = self.value(node.value, state)
            self.bind(node.target, refs, state)
            return refs
        if isinstance(node, (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)):
            self.comprehension(node, state)
            return NO_REFS
        if isinstance(node, cst.Lambda):
            self.define(node, state)
            return NO_REFS
        if isinstance(node, cst.FormattedStringExpression):
            self.read(self.value(node.expression, state), node.expression, state)
            return NO_REFS
        for child in children(node):
            self.escape(self.value(child, state), state)
        return NO_REFS

    def operands(self, node: cst.BinaryOperation | cst.UnaryOperation | cst.Comparison, state: State) -> None:
        """Operators read their operands; `is` and `in` do not."""
        if isinstance(node, cst.UnaryOperation):
            self.read(self.value(node.expression, state), node.expression, state)
            return
        sides: list[cst.BaseExpression] = [node.left]
        if isinstance(node, cst.BinaryOperation):
            sides = _terms(node)
        elif all(isinstance(one.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for one in node.comparisons):
            for side in (node.left, *(one.comparator for one in node.comparisons)):
                self.value(side, state)
            return
        else:
            sides += [one.comparator for one in node.comparisons]
        for side in sides:
            self.read(self.value(side, state), side, state)

    def choice(self, node: cst.BooleanOperation | cst.IfExp, state: State) -> Refs:
        """`a or b`, `a if c else b`: either."""
        if isinstance(node, cst.BooleanOperation):
            refs = self.value(node.left, state)
            self.depth += 1
            refs |= self.value(node.right, state)
            self.depth -= 1
            return refs
        self.test(node.test, state)
        text, truth = condition(node.test)
        self.depth += 1
        taken, other = self.copy(state), self.copy(state)
        refs = self.value(node.body, self.branch(text, truth, taken))
        others = self.value(node.orelse, self.branch(text, not truth, other))
        self.depth -= 1
        joined = self.merge(text, taken, other) if truth else self.merge(text, other, taken)
        assert joined is not None
        state.env, state.memories, state.cut = joined.env, joined.memories, joined.cut
        if refs != others:
            settle(state, text)
        return refs | others

    def comprehension(self, node: cst.BaseComp, state: State) -> None:
        """Runs at once, with its own names."""
        env = dict(state.env)
        part: cst.CompFor | None = node.for_in
        while part is not None:
            self.bind(part.target, some_part(self.value(part.iter, state)), state)
            for one in part.ifs:
                self.test(one.test, state)
            part = part.inner_for_in
        elements = (node.key, node.value) if isinstance(node, cst.DictComp) else (node.elt,)  # type: ignore[attr-defined]
        for element in elements:
            self.escape(self.value(element, state), state)
        state.env = env

    def attribute(self, node: cst.Attribute, state: State) -> Refs:
        """`x.T` is a view of x, `x.shape` says nothing of its elements, and what else it is we do not know."""
        refs = self.value(node.value, state)
        name = node.attr.value
        if name in self.words["attribute-views"]:
            return refs
        if name not in self.words["metadata"]:
            self.escape(refs, state)
        return NO_REFS

    def indices(self, node: cst.Subscript, state: State) -> None:
        """A tensor used as an index is read."""
        for element in node.slice:
            index = element.slice
            for bound in children(index):
                if isinstance(bound, cst.BaseExpression):
                    self.read(self.value(bound, state), bound, state)


def _terms(node: cst.BinaryOperation) -> list[cst.BaseExpression]:
    """The operands of `a + b + c`, in the order in which they are evaluated; a sum may be long."""
    terms = [node.right]
    left = node.left
    while isinstance(left, cst.BinaryOperation):
        terms.append(left.right)
        left = left.left
    return [left, *reversed(terms)]


def free_names(module: Module, node: cst.CSTNode) -> set[str]:
    """The names that the functions under `node` take from outside: no parameter and no variable of their own."""
    found: set[str] = set()
    for name, reads in names_read(node).items():
        for read in reads:
            if isinstance(module.parent(read), cst.Param):
                continue
            home = module.scope_of(read).home(name)
            if home is None or home.kind == "module" or home.node is None or not _is_under(module, home.node, node):
                found.add(name)
                break
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, (cst.Global, cst.Nonlocal)):
            found.update(item.name.value for item in current.names)
        elif type(current) not in LEAVES:
            stack.extend(children(current))
    return found


def _is_under(module: Module, node: cst.CSTNode, root: cst.CSTNode) -> bool:
    return isinstance(root, cst.Module) or node is root or any(around is root for around in module.ancestors(node))
