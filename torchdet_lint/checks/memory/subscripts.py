"""Subscripts and the loops around them -> the part of a buffer that they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.memory.domain import EVERYTHING, SOMETHING, Buffer, Counter, Part, Refs, Span
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.module import Module


# What a counter is at least where one is compared with a bound: the bound, or one more.
_COMES_TO: dict[type, int] = {cst.Equal: 0, cst.GreaterThanEqual: 0, cst.GreaterThan: 1}
_IS_COME_TO: dict[type, int] = {cst.Equal: 0, cst.LessThanEqual: 0, cst.LessThan: 1}


class Subscripts:
    """Which part of a buffer a subscript takes; `spans` are what the counters of the loops around it go through."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.spans: dict[str, Span] = {}
        # How many loops are around the body of the loop of a counter, and how far it counts from zero.
        self.counted: dict[str, tuple[int, int | str]] = {}

    def count(self, node: cst.For, loops: int) -> None:
        """The head of a loop, the one of `loops` that is innermost: a counter over a range spans it."""
        target: cst.BaseExpression = node.target
        span = self._range(self._bar(node.iter))
        if isinstance(target, cst.Tuple) and self._calls(node.iter, "builtins.enumerate"):
            target = target.elements[0].value
        if span is not None and isinstance(target, cst.Name):
            self.spans[target.value] = span._replace(end="")
            self.counted[target.value] = loops, span.end if (span.low, span.step) == (0, 1) else ""

    def _bar(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The call that makes the progress bar, or the range, that the name `node` stands for; else `node`."""
        if not isinstance(node, cst.Name):
            return node
        made = self.module.followed(node, self.module.scope_of(node), self.module.order_of(node))
        called = self.module.resolve(made.node.func) if made is not None and isinstance(made.node, cst.Call) else ()
        memory = self.module.library.facts.memory
        return node if made is None or (memory.ranges | memory.progress).isdisjoint(called) else made.node

    def reached(self, test: cst.BaseExpression) -> tuple[cst.BaseExpression, int] | None:
        """The bound that a counter has come to where `test` holds, and what the counter is beyond it then."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return None
        right, operator = test.comparisons[0].comparator, type(test.comparisons[0].operator)
        for one, other, kinds in ((test.left, right, _COMES_TO), (right, test.left, _IS_COME_TO)):
            counter, more = _shifted(one, cst.Add)
            last = self.module.followed(other, self.module.scope_of(other), self.module.order_of(other))
            bound, less = _shifted(last.node if last is not None else other, cst.Subtract)
            if operator not in kinds:
                continue
            span = self.spans.get(counter.value) if isinstance(counter, cst.Name) else None
            if span is not None and span.low == 0 and span.step == 1:
                return bound, kinds[operator] - more - less
            if span is None and self._tallies(counter):
                return bound, kinds[operator] - less
        return None

    def _tallies(self, node: cst.BaseExpression) -> bool:
        """Whether `node` says how often something was done: a name that counts from zero, or the length of a list."""
        if isinstance(node, cst.Call):
            return len(node.args) == 1 and self._calls(node, "builtins.len")
        home = self.module.scope_of(node).home(node.value) if isinstance(node, cst.Name) else None
        bindings = home.bindings[node.value] if home is not None and isinstance(node, cst.Name) else []
        counts = [one for one in bindings if one.kind == "augment"]
        starts = [one.value for one in bindings if one.kind == "assign" and one.value is not None and not one.path]
        return 0 < len(counts) == len(bindings) - len(starts) and all(bare(one) == "0" for one in starts)

    def extents(self, buffer: Buffer) -> tuple[int | str, ...]:
        """How far the dimensions of `buffer` go; an attribute that alone sizes it counts for what is compared with it,
        though it may be a tuple."""
        args = buffer.node.args
        if buffer.extents is None and len(args) == 1 and isinstance(args[0].value, cst.Attribute) and not args[0].star:
            return (extent(self.module, args[0].value),)
        return buffer.extents or ()

    def _range(self, node: cst.BaseExpression) -> Span | None:
        if not isinstance(node, cst.Call):
            return None
        memory = self.module.library.facts.memory
        names = self.module.resolve(node.func)
        args = [arg.value for arg in node.args]
        if not args or any(arg.star for arg in node.args):
            return None
        if "builtins.enumerate" in names:
            length = _length(args[0])
            return Span(self._bound(args[1]) if len(args) > 1 else 0, length and f"len({bare(args[0])})", end=length)
        if memory.ranges.isdisjoint(names):
            return self._range(args[0]) if len(args) == 1 or not memory.progress.isdisjoint(names) else None
        args = [arg.value for arg in node.args if arg.keyword is None]
        if len(args) == 1:
            return Span(0, self._bound(args[0]), end=extent(self.module, args[0]))
        step = self._bound(args[2]) if len(args) == 3 else 1
        if not isinstance(step, int) or step < 1:
            return SOMETHING
        return Span(self._bound(args[0]), self._bound(args[1]), step, end=extent(self.module, args[1]))

    def _calls(self, node: cst.BaseExpression, name: str) -> bool:
        return isinstance(node, cst.Call) and name in self.module.resolve(node.func)

    def _bound(self, node: cst.BaseExpression) -> int | str:
        value = self.module.value(node)
        return value.constant if isinstance(value.constant, int) else bare(node)

    def viewed(self, refs: Refs, node: cst.Subscript) -> Refs:
        """The part of `refs` that the subscript `node` takes."""
        if not refs:
            return refs
        part = self._part(node)
        if part is None:
            return refs
        return frozenset(ref._replace(part=part if ref.part is None else Part()) for ref in refs)

    def _part(self, node: cst.Subscript) -> Part | None:
        """None: all of it."""
        spans: list[tuple[int, Span]] = []
        counters: list[Counter] = []
        elements = list(node.slice)
        some = len(elements) == 1 and (self._compares(elements[0].slice) or self._picks_the_same(node))
        if some and not self._runs_again(node):
            return Part(((0, SOMETHING),), masked=self.module.code(elements[0]))
        for position, element in enumerate(elements):
            index = element.slice
            if isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis):
                spans += self._behind(elements[position + 1 :])
                break
            span = self._span(index)
            if isinstance(index, cst.Index) and isinstance(index.value, cst.Name):
                if index.value.value == "None":
                    return Part()
                if index.value.value in self.spans:
                    counters.append(Counter(position, *self.counted[index.value.value]))
            if span != EVERYTHING:
                spans.append((position, span))
        return Part(tuple(spans), tuple(counters)) if spans else None

    def _compares(self, index: cst.BaseSlice) -> bool:
        """Whether `index` is a mask that is made in sight, `x > 0` or `~x.isnan()`, or its name."""
        value = index.value if isinstance(index, cst.Index) else None
        if isinstance(value, cst.Name):
            home = self.module.scope_of(value).home(value.value)
            bound = home.bindings[value.value] if home is not None else []
            value = bound[0].value if len(bound) == 1 and not bound[0].path else None
        while isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.BitInvert):
            value = value.expression
        return isinstance(value, cst.Comparison) or (
            isinstance(value, cst.Call) and last_word(value.func) in self.module.library.facts.memory.masks
        )

    def _picks_the_same(self, node: cst.Subscript) -> bool:
        """Whether it is `x[chosen] = y[chosen]`: what chooses all of them would not be needed."""
        assign = self.module.parent(self.module.parent(node) or node)
        value = assign.value if isinstance(assign, cst.Assign) else None
        index = node.slice[0].slice
        if (
            not isinstance(value, cst.Subscript)
            or not isinstance(index, cst.Index)
            or bare(value.value) == bare(node.value)
        ):
            return False
        return isinstance(index.value, cst.Name) and [bare(one) for one in value.slice] == [bare(node.slice[0])]

    def _runs_again(self, node: cst.CSTNode) -> bool:
        """Whether a loop runs `node`: its rounds may write one element after the other."""
        return any(isinstance(around, (cst.For, cst.While)) for around in self.module.ancestors(node))

    def _behind(self, elements: Sequence[cst.SubscriptElement]) -> Iterator[tuple[int, Span]]:
        for position, element in enumerate(elements):
            span = self._span(element.slice)
            if span != EVERYTHING:
                yield position - len(elements), span

    def _span(self, index: cst.BaseSlice) -> Span:
        if isinstance(index, cst.Slice):
            step = self._bound(index.step) if index.step is not None else 1
            if not isinstance(step, int) or step < 1:
                return SOMETHING
            low = self._bound(index.lower) if index.lower is not None else 0
            high = self._bound(index.upper) if index.upper is not None else ""
            end = extent(self.module, index.upper) if index.upper is not None else ""
            return Span(low, high, step, end=end)
        assert isinstance(index, cst.Index)
        value, shift = index.value, 0
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            added = self._bound(value.right)
            if isinstance(added, int) and added > 0:
                value, shift = value.left, added
        if isinstance(value, cst.Name) and value.value in self.spans:
            span = self.spans[value.value]
            if shift and isinstance(span.low, int):
                return Span(span.low + shift, "", span.step, span.exact)
            return SOMETHING if shift else span
        bound = self._bound(index.value)
        if isinstance(bound, bool) or not isinstance(bound, int):
            return SOMETHING
        return Span(bound, bound + 1 if bound != -1 else "", end=1 if bound == 0 else "")


def _length(node: cst.BaseExpression) -> str:
    """The length of a sequence as `extent` has it; empty for what is not a name or an attribute."""
    return f"{bare(node)}.size(0)" if isinstance(node, (cst.Name, cst.Attribute)) else ""


def _shifted(node: cst.BaseExpression, operator: type) -> tuple[cst.BaseExpression, int]:
    """`n` and 1 of `n + 1`."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, operator):
        return (node.left, node.right.evaluated_value) if isinstance(node.right, cst.Integer) else (node, 0)
    return node, 0


def extent(module: Module, node: cst.BaseExpression) -> int | str:
    """What bounds or sizes a dimension: an int, or text that is the same for the same extent, as far as one can see; a
    question mark in it says that it may be another's too."""
    value = module.value(node)
    if isinstance(value.constant, int):
        return value.constant
    if isinstance(node, cst.Name):
        home = module.scope_of(node).home(node.value)
        bindings = home.bindings[node.value] if home is not None else []
        if len(bindings) == 1 and bindings[0].kind == "parameter":
            return node.value
        followed = module.followed(node, module.scope_of(node), module.order_of(node))
        if len(bindings) != 1 or followed is None or followed.node is node:
            return f"{node.value}?"
        return extent(module, followed.node) if not isinstance(followed.node, cst.Name) else bare(followed.node)
    return _LENGTH.sub(r"\1.size(0)", _SHAPE.sub(r".size(\1)", bare(node)))


def beyond(module: Module, buffer: Buffer, bound: cst.BaseExpression) -> int | None:
    """What `bound` is beyond the first dimension of `buffer`; None where that is not in sight."""
    sizes, extents = (buffer.size or ())[:1], (buffer.extents or ())[:1]
    found = extent(module, bound)
    if isinstance(found, int) and sizes and isinstance(sizes[0], int):
        return found - sizes[0]
    if bare(bound) in sizes or found in extents:
        return 0
    # One step more than a number of steps: `n + 1` elements for the bound `n`.
    rest = next((str(one).partition("+")[2] for one in (*sizes, *extents) if str(one).startswith(f"{found}+")), "")
    return -int(rest) if rest.isdecimal() else None


_SHAPE = lazy(r"\.shape\[(\d+)\]")
_LENGTH = lazy(r"\blen[ \t]*\(([\w.]+)\)")
