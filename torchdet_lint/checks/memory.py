"""Memory that is read before it was written: `torch.empty` and its like, followed through a function or a class."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.interpreter import Flow, bare, condition, names_in
from torchdet_lint.dataflow.uses import Follower
from torchdet_lint.finding import Change, Found, NeedImport, RelatedNode, Replace
from torchdet_lint.module.tree import LEAVES, attributes_named, children

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torchdet_lint.catalogue.schema import Rule
    from torchdet_lint.module.module import Call, Class, Module, Value

_SIZE_NAME = r"(?:\w*(?:_size|_dim|_?features|_?channels|_units)|num_\w+|n_\w+)"
_DTYPES = "Float|Double|Half|Long|Int|Short|Byte|Char|Bool|BFloat16"
_EXTENTS = rf"\((?!\s*\[)(?:\s*\d|[^()\n]*,|\s*(?:[\w.]+\.)?(?:{_SIZE_NAME}\s*\)|size\(|shape\b|len\())"
_TENSOR_OF_SIZE = re.compile(
    rf"(?<![\w.])(?:\w+\.(?:cuda\.)?)?(?:Tensor(?={_EXTENTS})|(?:{_DTYPES})Tensor(?={_EXTENTS}|\(\s*\w+\)))"
)
_METHODS = ("new_empty", "new_empty_strided", "new")
_TWINS = {
    "empty": "zeros", "empty_like": "zeros_like", "new_empty": "new_zeros", "new": "new_zeros", "Tensor": "zeros",
}  # fmt: skip
_TORCH = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft")
_WHOLE_VIEWS = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})


class Span(NamedTuple):
    """What a write reaches along one dimension: `[low, high)` in steps; the ends are ints or source text.

    `exact` is false where that is not known.
    """

    low: int | str = 0
    high: int | str = ""
    step: int = 1
    exact: bool = True


_EVERYTHING = Span()
_SOMETHING = Span(exact=False)


class Part(NamedTuple):
    """Part of a buffer: spans by dimension (negative: counted from the last), the others whole; None: anything."""

    spans: tuple[tuple[int, Span], ...] | None = None
    loose: bool = False


class Ref(NamedTuple):
    """A value that shares the memory of buffer number `buffer`, all of it or `part`."""

    buffer: int
    part: Part | None = None


_Refs = frozenset[Ref]
_NONE: _Refs = frozenset()


class Memory(NamedTuple):
    """What is known of one buffer on the paths that lead here.

    `full`: written wholly, or out of sight. `maybe`: so on some path only, which `guards` say; `level` is the number of
    conditions around the place where the paths met. `parts` are the partial writes of any path.
    """

    loops: int
    born: frozenset[tuple[str, bool]]
    full: bool = False
    escaped: bool = False
    maybe: bool = False
    level: int = 0
    guards: frozenset[tuple[str, bool]] = frozenset()
    parts: frozenset[Part] = frozenset()
    certain: frozenset[Part] = frozenset()


class State:
    """Names with the memory they refer to, the buffers, and the conditions that hold."""

    __slots__ = ("env", "facts", "memories")

    def __init__(self) -> None:
        self.env: dict[str, _Refs] = {}
        self.memories: dict[int, Memory] = {}
        self.facts: frozenset[tuple[str, bool]] = frozenset()


class Buffer(NamedTuple):
    """One place where memory is allocated, and its size where that is in sight."""

    node: cst.Call
    word: str
    size: tuple[int | str, ...] | None
    array: bool = False


class Read(NamedTuple):
    """Buffer and the expression that reads it first."""

    buffer: Buffer
    node: cst.CSTNode


class Reads(Flow[State]):
    """The reads of unwritten memory in one function, or in the statements of a module."""

    def __init__(self, module: Module, rule: Rule, buffers: Mapping[cst.CSTNode, Buffer], captured: set[str]) -> None:
        super().__init__()
        self.module = module
        self.words = {role: frozenset(words) for role, words in rule.words.items()}
        self.created = buffers
        self.buffers: list[Buffer] = []
        self.numbers: dict[cst.CSTNode, int] = {}
        self.captured = captured
        self.found: dict[int, cst.CSTNode] = {}
        self.spans: dict[str, Span] = {}

    # ------------------------------------------------------------------ states

    def copy(self, state: State) -> State:
        """An independent copy."""
        other = State()
        other.env, other.memories, other.facts = dict(state.env), dict(state.memories), state.facts
        return other

    def join(self, left: State, right: State) -> State:
        """A buffer that only one path knows is as that path says."""
        joined = State()
        for name in left.env.keys() | right.env.keys():
            joined.env[name] = left.env.get(name, _NONE) | right.env.get(name, _NONE)
        for number in left.memories.keys() | right.memories.keys():
            one, two = left.memories.get(number), right.memories.get(number)
            found = one if two is None else two if one is None else self._meeting(one, two)
            assert found is not None
            joined.memories[number] = found
        joined.facts = left.facts & right.facts
        return joined

    def _meeting(self, one: Memory, two: Memory) -> Memory:
        if one == two:
            return one
        guards = one.guards & two.guards if not (one.full or two.full) else (two if one.full else one).guards
        return one._replace(
            full=one.full and two.full,
            escaped=one.escaped or two.escaped,
            maybe=one.maybe or two.maybe or one.full != two.full,
            level=min(self.depth, *(memory.level for memory in (one, two) if memory.maybe or memory.parts), self.depth),
            guards=guards,
            parts=one.parts | two.parts,
            certain=one.certain & two.certain,
        )

    def branch(self, text: str, truth: bool, state: State) -> State:
        """Buffers that are made only where the condition is otherwise do not exist here; what it guards is written."""
        state.facts |= {(text, truth)}
        for number, memory in list(state.memories.items()):
            if (text, not truth) in memory.born:
                del state.memories[number]
            elif (text, truth) in memory.guards:
                state.memories[number] = memory._replace(full=True)
            elif (text, not truth) in memory.guards and not memory.parts:
                state.memories[number] = memory._replace(maybe=False)
        return state

    def merge(self, text: str, positive: State | None, negative: State | None) -> State | None:
        """Where one side wrote a buffer, remember under which condition."""
        joined = self.meet(positive, negative)
        if positive is None or negative is None or joined is None:
            return joined
        for number in joined.memories:
            one, two = positive.memories.get(number), negative.memories.get(number)
            if one is not None and two is not None and one.full != two.full:
                memory = joined.memories[number]
                joined.memories[number] = memory._replace(guards=memory.guards | {(text, one.full)}, level=self.depth)
        return joined

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
        for name in names_in(node):
            self.escape(state.env.get(name, _NONE), state)

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

    def bind(self, target: cst.BaseExpression, refs: _Refs, state: State) -> None:
        """`target` receives a value that shares memory with `refs`."""
        if isinstance(target, cst.Name):
            state.env[target.value] = refs
            self.spans.pop(target.value, None)
            if target.value in self.captured:
                self.escape(refs, state)
        elif isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self.bind(element.value, _parts(refs), state)
        elif isinstance(target, cst.Subscript):
            self.read(refs, target, state) if self.value(target.value, state) else self.escape(refs, state)
            self.indices(target, state)
            self.write(self.viewed(self.value(target.value, state), target), state)
        else:
            assert isinstance(target, cst.Attribute)
            self.escape(refs, state)
            owner = self.value(target.value, state)
            if target.attr.value == "data":
                self.write(owner, state)
            elif target.attr.value in ("real", "imag"):
                self.write(_unknown(owner), state)

    def augment(self, node: cst.AugAssign, state: State) -> None:
        """`x += y` reads both."""
        self.read(self.value(node.value, state), node.value, state)
        target = node.target
        if isinstance(target, cst.Subscript):
            self.indices(target, state)
            refs = self.viewed(self.value(target.value, state), target)
        else:
            refs = self.value(target, state)
        self.read(refs, target, state)

    def iterate(self, node: cst.For, state: State) -> None:
        """Rows of a tensor are views of it; a counter over a range spans it."""
        refs = _parts(self.refs_of(node.iter, state))
        self.bind(node.target, refs, state)
        target: cst.BaseExpression = node.target
        span = self._range(node.iter)
        if isinstance(target, cst.Tuple) and self._calls(node.iter, "builtins.enumerate"):
            target = target.elements[0].value
        if span is not None and isinstance(target, cst.Name):
            self.spans[target.value] = span

    def _range(self, node: cst.BaseExpression) -> Span | None:
        if not isinstance(node, cst.Call):
            return None
        names = self.module.resolve(node.func)
        args = [arg.value for arg in node.args]
        if not args or any(arg.star for arg in node.args):
            return None
        if "builtins.enumerate" in names:
            return Span(self._bound(args[1]) if len(args) > 1 else 0, "")
        if "builtins.range" not in names:
            return self._range(args[0]) if len(args) == 1 or names == ("tqdm.tqdm",) else None
        if len(args) == 1:
            return Span(0, self._bound(args[0]))
        step = self._bound(args[2]) if len(args) == 3 else 1
        if not isinstance(step, int) or step < 1:
            return _SOMETHING
        return Span(self._bound(args[0]), self._bound(args[1]), step)

    def _calls(self, node: cst.BaseExpression, name: str) -> bool:
        return isinstance(node, cst.Call) and name in self.module.resolve(node.func)

    def _bound(self, node: cst.BaseExpression) -> int | str:
        value = self.module.value(node)
        return value.constant if isinstance(value.constant, int) else bare(node)

    # ------------------------------------------------------------------ reads, writes, escapes

    def read(self, refs: Iterable[Ref], node: cst.CSTNode, state: State) -> None:
        """The elements of `refs` are an input here."""
        for ref in sorted(refs, key=lambda one: one.buffer):
            memory = state.memories.get(ref.buffer)
            if memory is None or ref.buffer in self.found or _asked(node, state.facts):
                continue
            if self._unwritten(ref, memory):
                self.found[ref.buffer] = node
                state.memories[ref.buffer] = memory._replace(full=True)

    def _unwritten(self, ref: Ref, memory: Memory) -> bool:
        if memory.full or memory.escaped:
            return False
        if any(0 <= entered < self.depth for entered in self.entered[memory.loops :]):
            return False
        if (memory.maybe or memory.parts) and self.depth > memory.level:
            return False
        if memory.maybe and len(self.entered) > memory.loops:
            return False
        if not memory.parts:
            return True
        return ref.part is None and self._lacks(self.buffers[ref.buffer], memory)

    def _lacks(self, buffer: Buffer, memory: Memory) -> bool:
        """Whether the partial writes of all paths together evidently leave a part out."""
        parts = memory.parts
        if len(parts) == 1 and memory.parts != memory.certain and all(part.loose for part in parts):
            return True
        if any(part.spans is None for part in parts):
            return False
        columns = {dimension for part in parts for dimension, _ in part.spans or ()}
        if len({dimension < 0 for dimension in columns}) != 1:
            return False
        for column in sorted(columns):
            spans = [dict(part.spans or ()).get(column, _EVERYTHING) for part in parts]
            size = buffer.size[column] if buffer.size and -len(buffer.size) <= column < len(buffer.size) else ""
            if all(span.exact for span in spans) and _leaves_out(spans, size):
                return True
        return False

    def write(self, refs: Iterable[Ref], state: State) -> None:
        """Every element of `refs` is written."""
        refs = list(refs)
        for ref in refs:
            memory = state.memories.get(ref.buffer)
            if memory is None:
                continue
            if ref.part is None:
                maybe = len(refs) > 1 and len({one.buffer for one in refs}) > 1
                state.memories[ref.buffer] = memory._replace(full=True, escaped=memory.escaped or maybe)
            else:
                part = frozenset({ref.part})
                level = self.depth if not memory.parts else max(memory.level, self.depth)
                state.memories[ref.buffer] = memory._replace(
                    parts=memory.parts | part, certain=memory.certain | part, level=level
                )

    def escape(self, refs: Iterable[Ref], state: State) -> None:
        """Unknown code has `refs`: from here on we know nothing of them."""
        for ref in refs:
            memory = state.memories.get(ref.buffer)
            if memory is not None:
                state.memories[ref.buffer] = memory._replace(escaped=True)

    # ------------------------------------------------------------------ expressions

    def refs_of(self, node: cst.BaseExpression, state: State) -> _Refs:
        """What `node` refers to, without evaluating it a second time."""
        return state.env.get(node.value, _NONE) if isinstance(node, cst.Name) else _NONE

    def value(self, node: cst.CSTNode, state: State) -> _Refs:
        """Evaluate `node`: its reads, writes and escapes happen, and what it shares memory with is returned."""
        if isinstance(node, cst.Name):
            return state.env.get(node.value, _NONE)
        if type(node) in LEAVES:
            return _NONE
        if isinstance(node, cst.Call):
            return self.call(node, state)
        if isinstance(node, cst.Attribute):
            return self.attribute(node, state)
        if isinstance(node, cst.Subscript):
            refs = self.value(node.value, state)
            self.indices(node, state)
            return self.viewed(refs, node)
        if isinstance(node, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
            self.operands(node, state)
            return _NONE
        if isinstance(node, (cst.BooleanOperation, cst.IfExp)):
            return self.choice(node, state)
        if isinstance(node, cst.NamedExpr):
            refs = self.value(node.value, state)
            self.bind(node.target, refs, state)
            return refs
        if isinstance(node, (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)):
            self.comprehension(node, state)
            return _NONE
        if isinstance(node, cst.Lambda):
            self.define(node, state)
            return _NONE
        if isinstance(node, cst.FormattedStringExpression):
            self.read(self.value(node.expression, state), node.expression, state)
            return _NONE
        for child in children(node):
            self.escape(self.value(child, state), state)
        return _NONE

    def operands(self, node: cst.BinaryOperation | cst.UnaryOperation | cst.Comparison, state: State) -> None:
        """Operators read their operands; `is` and `in` do not."""
        if isinstance(node, cst.UnaryOperation):
            self.read(self.value(node.expression, state), node.expression, state)
            return
        sides: list[cst.BaseExpression] = [node.left]
        if isinstance(node, cst.BinaryOperation):
            sides.append(node.right)
        elif all(isinstance(one.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for one in node.comparisons):
            for side in (node.left, *(one.comparator for one in node.comparisons)):
                self.value(side, state)
            return
        else:
            sides += [one.comparator for one in node.comparisons]
        for side in sides:
            self.read(self.value(side, state), side, state)

    def choice(self, node: cst.BooleanOperation | cst.IfExp, state: State) -> _Refs:
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
        refs |= self.value(node.orelse, self.branch(text, not truth, other))
        self.depth -= 1
        joined = self.merge(text, taken, other) if truth else self.merge(text, other, taken)
        assert joined is not None
        state.env, state.memories = joined.env, joined.memories
        return refs

    def comprehension(self, node: cst.BaseComp, state: State) -> None:
        """Runs at once, with its own names."""
        env = dict(state.env)
        part: cst.CompFor | None = node.for_in
        while part is not None:
            self.bind(part.target, _parts(self.value(part.iter, state)), state)
            for one in part.ifs:
                self.test(one.test, state)
            part = part.inner_for_in
        elements = (node.key, node.value) if isinstance(node, cst.DictComp) else (node.elt,)  # type: ignore[attr-defined]
        for element in elements:
            self.escape(self.value(element, state), state)
        state.env = env

    def attribute(self, node: cst.Attribute, state: State) -> _Refs:
        """`x.T` is a view of x, `x.shape` says nothing of its elements, and what else it is we do not know."""
        refs = self.value(node.value, state)
        name = node.attr.value
        if name in _WHOLE_VIEWS:
            return refs
        if name not in self.words["metadata"]:
            self.escape(refs, state)
        return _NONE

    def indices(self, node: cst.Subscript, state: State) -> None:
        """A tensor used as an index is read."""
        for element in node.slice:
            index = element.slice
            for bound in children(index):
                if isinstance(bound, cst.BaseExpression):
                    self.read(self.value(bound, state), bound, state)

    def viewed(self, refs: _Refs, node: cst.Subscript) -> _Refs:
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
        loose = False
        elements = list(node.slice)
        for position, element in enumerate(elements):
            index = element.slice
            if isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis):
                spans += self._behind(elements[position + 1 :])
                break
            span = self._span(index)
            if isinstance(index, cst.Index) and isinstance(index.value, cst.Name):
                if index.value.value == "None":
                    return Part()
                loose = loose or index.value.value in self.spans
            if span != _EVERYTHING:
                spans.append((position, span))
        return Part(tuple(spans), loose) if spans else None

    def _behind(self, elements: Sequence[cst.SubscriptElement]) -> Iterator[tuple[int, Span]]:
        for position, element in enumerate(elements):
            span = self._span(element.slice)
            if span != _EVERYTHING:
                yield position - len(elements), span

    def _span(self, index: cst.BaseSlice) -> Span:
        if isinstance(index, cst.Slice):
            step = self._bound(index.step) if index.step is not None else 1
            if not isinstance(step, int) or step < 1:
                return _SOMETHING
            low = self._bound(index.lower) if index.lower is not None else 0
            high = self._bound(index.upper) if index.upper is not None else ""
            return Span(low, high, step)
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
            return _SOMETHING if shift else span
        bound = self._bound(index.value)
        if isinstance(bound, bool) or not isinstance(bound, int):
            return _SOMETHING
        return Span(bound, bound + 1 if bound != -1 else "")

    # ------------------------------------------------------------------ calls

    def call(self, node: cst.Call, state: State) -> _Refs:
        """What a call does to the memory that it is given."""
        receiver: _Refs = _NONE
        word = ""
        if isinstance(node.func, cst.Attribute):
            receiver, word = self.value(node.func.value, state), node.func.attr.value
        elif isinstance(node.func, cst.Name):
            self.escape(state.env.get(node.func.value, _NONE), state)
        else:
            self.escape(self.value(node.func, state), state)
        if node in self.created:
            if self.created[node].word.endswith("_like"):
                self._arguments(node, state)
            else:
                self.pass_on(node, receiver, state, reads=False)
            return self.allocate(node, state)
        if receiver:
            return self.method(node, receiver, word, state)
        names = self.module.resolve(node.func)
        return self.function(node, names, word, state)

    def allocate(self, node: cst.Call, state: State) -> _Refs:
        """New memory."""
        number = self.numbers.setdefault(node, len(self.numbers))
        if number == len(self.buffers):
            self.buffers.append(self.created[node])
        for name, refs in list(state.env.items()):
            state.env[name] = frozenset(ref for ref in refs if ref.buffer != number)
        buffer = self.created[node]
        memory = Memory(len(self.entered), state.facts)
        state.memories[number] = memory._replace(full=0 in (buffer.size or ()) or _holds_nothing(state.facts))
        return frozenset({Ref(number)})

    def enlarge(self, node: cst.Call, refs: _Refs, state: State) -> None:
        """`x.resize_(n)` of a buffer without elements allocates; of another one it may."""
        for ref in refs:
            if 0 in (self.buffers[ref.buffer].size or ()):
                self.buffers[ref.buffer] = Buffer(node, "resize_", None)
                state.memories[ref.buffer] = Memory(len(self.entered), state.facts)
            else:
                self.write(_unknown(frozenset({ref})), state)

    def pass_on(self, node: cst.Call, skipped: _Refs, state: State, *, reads: bool) -> _Refs:
        """Evaluate the arguments of `node`; those that are memory are read or escape; `out=` is written."""
        everything: _Refs = _NONE
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value == "out":
                self.write(self.outputs(arg.value, state), state)
                continue
            refs = self.value(arg.value, state)
            everything |= refs
            if reads:
                self.read(refs, arg.value, state)
            else:
                self.escape(refs - skipped, state)
        return everything

    def outputs(self, node: cst.BaseExpression, state: State) -> _Refs:
        """What `out=node` writes."""
        if isinstance(node, (cst.Tuple, cst.List)):
            refs = _NONE
            for element in node.elements:
                refs |= self.value(element.value, state)
                self.write(self.value(element.value, state), state)
            return _NONE
        return self.value(node, state)

    def method(self, node: cst.Call, refs: _Refs, word: str, state: State) -> _Refs:
        """`x.word(…)` where `x` is tracked memory."""
        words = self.words
        if word == "resize_":
            self.pass_on(node, _NONE, state, reads=False)
            self.enlarge(node, refs, state)
            return refs
        if word in words["fills"]:
            self.pass_on(node, _NONE, state, reads=True)
            self.write(refs, state)
            return refs
        if word in words["writes-parts"] or (word in words["accumulates"] and self._excludes_self(node)):
            self.pass_on(node, _NONE, state, reads=True)
            self.write(_unknown(refs), state)
            return refs
        if word in words["metadata"]:
            self.pass_on(node, _NONE, state, reads=False)
            return _NONE
        if word in words["views"]:
            self.pass_on(node, _NONE, state, reads=False)
            return refs
        if word in words["part-views"]:
            self.pass_on(node, _NONE, state, reads=False)
            return _parts(refs)
        if word in words["reads"] or word in words["accumulates"] or word.rstrip("_") in words["reads"]:
            if self._ignores_input(node):
                self.pass_on(node, _NONE, state, reads=False)
                self.write(refs, state)
                return refs
            assert isinstance(node.func, cst.Attribute)
            self.read(refs, node.func.value, state)
            self.pass_on(node, _NONE, state, reads=True)
            return _NONE if not word.endswith("_") else refs
        self.escape(refs, state)
        self.pass_on(node, _NONE, state, reads=False)
        return _NONE

    def _ignores_input(self, node: cst.Call) -> bool:
        """`beta=0` of `addmm` and its like: the input is not read, whatever stands in it."""
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value == "beta":
                value = self.module.value(arg.value)
                return not value.known or value.constant == 0
        return False

    def _excludes_self(self, node: cst.Call) -> bool:
        return any(
            arg.keyword is not None and arg.keyword.value == "include_self" and bare(arg.value) == "False"
            for arg in node.args
        )

    def function(self, node: cst.Call, names: Sequence[str], word: str, state: State) -> _Refs:
        """A call whose receiver, if it has one, is not tracked memory."""
        for name in names:
            module, _, last = name.rpartition(".")
            if module == "torch.nn.init":
                return self._initialise(node, state)
            if module in _TORCH:
                return self._torch(node, last, state)
            if module == "numpy":
                return self._numpy(node, last, state)
            if name in self.words["wrappers"]:
                return self._arguments(node, state)
            if name in self.words["looks"]:
                self._arguments(node, state)
                return _NONE
            if name in self.words["prints"]:
                self.pass_on(node, _NONE, state, reads=True)
                return _NONE
        if word.endswith("_") and (word[:-1] in self.words["reads"] or word in self.words["fills"]):
            self.pass_on(node, _NONE, state, reads=True)
            return _NONE
        self.pass_on(node, _NONE, state, reads=False)
        return _NONE

    def _torch(self, node: cst.Call, last: str, state: State) -> _Refs:
        words = self.words
        if last in words["metadata"] or last.endswith("_like"):
            self._arguments(node, state)
            return _NONE
        if last in words["views"]:
            return self._arguments(node, state)
        if last in words["part-views"]:
            return _parts(self._arguments(node, state))
        reads = last in words["reads"] and not self._excludes_self(node)
        if reads and self._ignores_input(node):
            reads = False
        self.pass_on(node, _NONE, state, reads=reads)
        return _NONE

    def _numpy(self, node: cst.Call, last: str, state: State) -> _Refs:
        """NumPy's functions take the array to write as a further positional argument too."""
        if last in self.words["views"]:
            return self._arguments(node, state)
        if last in self.words["metadata"] or last.endswith("_like"):
            self._arguments(node, state)
        elif last in self.words["reads"] and node.args and not node.args[0].star:
            self.read(self.value(node.args[0].value, state), node.args[0].value, state)
            self.pass_on(node, _NONE, state, reads=False)
        else:
            self.pass_on(node, _NONE, state, reads=False)
        return _NONE

    def _arguments(self, node: cst.Call, state: State) -> _Refs:
        refs = _NONE
        for arg in node.args:
            refs |= self.value(arg.value, state)
        return refs

    def _initialise(self, node: cst.Call, state: State) -> _Refs:
        refs = self._arguments(node, state)
        self.write(refs, state)
        return refs


def _holds_nothing(facts: Iterable[tuple[str, bool]]) -> bool:
    """Whether the conditions say that there is nothing to hold: `if x.shape[0] == 0`, `if not x.numel()`."""
    return any(
        (text.endswith(" Equal 0") and truth) or (text.endswith(".numel()") and not truth) for text, truth in facts
    )


def _asked(node: cst.CSTNode, facts: Iterable[tuple[str, bool]]) -> bool:
    """Whether a condition around the read of `x` asks for an attribute of `x`: its type or shape may rule this out."""
    while isinstance(node, (cst.Attribute, cst.Subscript, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return isinstance(node, cst.Name) and any(re.search(rf"\b{node.value}\.", text) for text, _ in facts)


def _parts(refs: _Refs) -> _Refs:
    return frozenset(ref._replace(part=Part()) for ref in refs)


_unknown = _parts


def _leaves_out(spans: Sequence[Span], size: int | str) -> bool:
    """Whether the spans, all exact, evidently miss an element of a dimension of `size`."""
    if isinstance(size, int) and all(_known(span) for span in spans):
        covered: set[int] = set()
        for span in spans:
            covered.update(range(size)[_slice(span)])
        return len(covered) < size
    steps = {span.step for span in spans}
    if steps != {1}:
        return len(steps) == 1 and _residues(spans, steps.pop())
    if all(isinstance(span.low, int) and (span.low > 0 or span.low == -1) for span in spans):
        return True
    return bool(size) and all(_short(span.high, size) for span in spans)


def _known(span: Span) -> bool:
    return isinstance(span.low, int) and (isinstance(span.high, int) or span.high == "")


def _slice(span: Span) -> slice:
    return slice(span.low, span.high if isinstance(span.high, int) else None, span.step)


def _residues(spans: Sequence[Span], step: int) -> bool:
    if not all(isinstance(span.low, int) and span.low >= 0 for span in spans):
        return False
    return len({int(span.low) % step for span in spans}) < step


def _short(high: int | str, size: int | str) -> bool:
    """Whether `high` evidently stops before `size`."""
    if isinstance(high, int):
        return high < 0
    return isinstance(size, str) and high.startswith(f"{size}-") and high[len(size) + 1 :].isdigit()


# ---------------------------------------------------------------------- where memory is allocated


def uninitialized_read(module: Module, rule: Rule) -> Iterator[Found]:
    """Memory that is allocated without a value and used as an input before every element was written."""
    buffers: dict[cst.CSTNode, Buffer] = {}
    for call in _creations(module, rule):
        buffer = _buffer(module, call)
        if buffer is not None:
            buffers[call.node] = buffer
    homes: dict[cst.CSTNode | None, dict[cst.CSTNode, Buffer]] = {}
    for node, buffer in buffers.items():
        homes.setdefault(_home(module, node), {})[node] = buffer
    found: list[Read] = []
    for home, own in homes.items():
        if isinstance(home, cst.Lambda):
            continue
        flow = Reads(module, rule, own, _captured(module, home))
        flow.block(_statements(module, home), State())
        found += [Read(flow.buffers[number], node) for number, node in flow.found.items()]
    for read in found:
        yield _found(module, read)
    yield from _Attributes(module, rule, buffers).found()


def _creations(module: Module, rule: Rule) -> Iterator[Call]:
    if "Tensor(" in module.text:
        idle = module.mentions.allocations.idle
        module.load_where(
            lambda text: (
                "Tensor(" in text
                and not all(idle(match[0], text, match.start()) for match in _TENSOR_OF_SIZE.finditer(text))
            )
        )
    yield from module.calls_to(*rule.words["sized"], *(name for row in rule.calls for name in row.names))
    yield from module.method_calls(*_METHODS)


def _home(module: Module, node: cst.CSTNode) -> cst.CSTNode | None:
    for ancestor in module.ancestors(node):
        if isinstance(ancestor, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            return ancestor
    return None


def _statements(module: Module, home: cst.CSTNode | None) -> list[cst.CSTNode]:
    if home is not None:
        return list(home.body.body)  # type: ignore[attr-defined]
    module.load_statements(every=True)
    return [
        statement
        for unit in module.units
        if unit.piece.kind in ("statements", "table") and unit.piece.owner < 0 and unit.root is not None
        for statement in unit.root.body
    ]


def _captured(module: Module, home: cst.CSTNode | None) -> set[str]:
    """The names of `home` that other functions use too."""
    if home is None:
        return {
            word
            for unit in module.units
            if unit.piece.kind == "function" or unit.piece.owner >= 0
            for word in module.words[unit.index]
        }
    found: set[str] = set()
    stack: list[cst.CSTNode] = [home.body]  # type: ignore[attr-defined]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in (cst.FunctionDef, cst.Lambda, cst.ClassDef):
            found.update(names_in(node))
        elif kind in (cst.Global, cst.Nonlocal):
            found.update(item.name.value for item in node.names)  # type: ignore[attr-defined]
        elif kind not in LEAVES:
            stack.extend(children(node))
    return found


def _buffer(module: Module, call: Call) -> Buffer | None:
    """None where nothing is allocated: no elements, no real device, data given."""
    word = call.attribute or call.names[-1].rpartition(".")[2]
    device = call.argument("device")
    if device is not None and device.constant == "meta":
        return None
    if any(name.startswith("numpy.") for name in call.names):
        return _array(module, call, word)
    if word.endswith("_like") or word in ("empty_strided", "empty_permuted", "new_empty_strided"):
        return Buffer(call.node, word, None)
    sizes = _sizes(module, call)
    if word.endswith("Tensor") and not _evidently_sizes(call, sizes):
        return None
    if word == "new" and not _is_new_tensor(call, sizes):
        return None
    size = tuple(_extent(value) for value in sizes) if sizes is not None else None
    return Buffer(call.node, word, size)


def _array(module: Module, call: Call, word: str) -> Buffer | None:
    """An array of numbers: one of objects holds `None`."""
    dtype = call.keyword_node("dtype")
    given = dtype.value if dtype is not None else call.node.args[1].value if len(call.node.args) > 1 else None
    if given is not None and bare(given).strip("\"'") in ("object", "O", "np.object_", "numpy.object_", "str"):
        return None
    shape = call.keyword_node("shape") or (call.node.args[0] if call.node.args and not call.node.args[0].star else None)
    if word != "empty" or shape is None:
        return Buffer(call.node, word, None, True)
    elements = module.elements(shape.value, call.scope, call.order)
    if elements is not None:
        return Buffer(call.node, word, tuple(_extent(module.value(element)) for element in elements), True)
    value = module.value(shape.value)
    single = value.known or isinstance(value.node, (cst.Call, cst.BinaryOperation, cst.Name))
    return Buffer(call.node, word, (_extent(value),) if single else None, True)


def _is_new_tensor(call: Call, sizes: list[Value] | None) -> bool:
    """Whether `x.new(…)` is the tensor's method, and was given extents."""
    if isinstance(call.receiver, cst.Name) and call.receiver.value in ("self", "cls"):
        return False
    if not sizes or any(arg.keyword is not None for arg in call.node.args):
        return False
    return any(isinstance(size.constant, int) or _EXTENT.search(bare(size.node)) for size in sizes) and not any(
        isinstance(arg.value, (cst.List, cst.Tuple)) for arg in call.node.args
    )


_EXTENT = re.compile(r"\.size\(|\.shape\b|^len\(")


def _sizes(module: Module, call: Call) -> list[Value] | None:
    """The extents, one value each; None where they are not in sight."""
    if any(arg.star for arg in call.node.args):
        return None
    positional = [arg.value for arg in call.node.args if arg.keyword is None]
    named = call.keyword_node("size")
    if named is not None:
        positional = [named.value]
    if len(positional) == 1:
        elements = module.elements(positional[0], call.scope, call.order)
        if elements is not None:
            return [module.value(element) for element in elements]
        value = module.value(positional[0])
        if not value.known and not isinstance(value.node, (cst.Call, cst.BinaryOperation, cst.Name)):
            return None
    return [module.value(node) for node in positional]


def _evidently_sizes(call: Call, sizes: list[Value] | None) -> bool:
    """Whether `torch.Tensor(…)` was given extents, not data."""
    if not sizes or any(arg.keyword is not None for arg in call.node.args):
        return False
    if len(call.node.args) > 1:
        return True
    only = call.node.args[0].value
    if isinstance(sizes[0].constant, int):
        return isinstance(only, (cst.Integer, cst.Name))
    return _SIZE.fullmatch(bare(only)) is not None


_SIZE = re.compile(rf"(?:[\w.]+\.)?{_SIZE_NAME}|len\(.*\)|[\w.]+\.(?:size\(.*\)|shape(?:\[.*\])?)")


def _extent(value: Value) -> int | str:
    return value.constant if isinstance(value.constant, int) else bare(value.node)


def _found(module: Module, read: Read) -> Found:
    call = read.buffer.node
    function = module.code(call.func)
    related = RelatedNode(call, f"`{function}` allocates the memory here and writes nothing into it")
    details = {"call": function, "name": module.code(read.node)}
    return Found(read.node, details, related=(related,), changes=_twin(module, read.buffer))


def _twin(module: Module, buffer: Buffer) -> tuple[Change, ...]:
    """The call that also writes zeros, where it takes the same arguments."""
    twin = _TWINS.get(buffer.word)
    function = buffer.node.func
    if twin is None or any(arg.star == "**" for arg in buffer.node.args):
        return ()
    keywords = {arg.keyword.value for arg in buffer.node.args if arg.keyword is not None}
    if "memory_format" in keywords and not twin.endswith("_like"):
        return ()
    if isinstance(function, cst.Attribute):
        return (Replace(function.attr, twin),)
    root = "numpy" if buffer.array else "torch"
    return (NeedImport(root), Replace(function, f"{{{root}}}.{twin}"))


# ---------------------------------------------------------------------- memory kept in an attribute

_REGISTERS = ("register_buffer", "register_parameter")


class _Attributes:
    """Buffers that a class keeps in an attribute, reads, and writes nowhere in the file."""

    def __init__(self, module: Module, rule: Rule, buffers: Mapping[cst.CSTNode, Buffer]) -> None:
        self.module = module
        self.words = {role: frozenset(words) for role, words in rule.words.items()}
        self.buffers = buffers

    def found(self) -> Iterator[Found]:
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
                yield Found(read, details, "attribute", "warning", related=(related,))

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
            if isinstance(call.func, cst.Attribute) and call.func.attr.value in _REGISTERS:
                first = call.args[0].value
                value = first.evaluated_value if isinstance(first, cst.SimpleString) else ""
                return value if isinstance(value, str) else ""
            return ""
        if isinstance(parent, cst.Assign):
            target = parent.targets[0].target
            if isinstance(target, cst.Name):
                loads = Follower(module).loads_after(target, parent)
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
        """The first read of `.name`; None where there is none, or where something else is done with it."""
        module = self.module
        module.load_where(lambda text: f".{name}" in text, name)
        first: cst.Attribute | None = None
        for unit in module.units:
            for node in attributes_named(unit.root, name) if unit.root is not None else ():
                if isinstance(module.parent(node), (cst.AssignTarget, cst.AnnAssign)):
                    made -= 1
                    continue
                use = self._use(node)
                if use == "other":
                    return None
                if use == "read" and first is None:
                    first = node
        return first if made >= 0 else None

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
            return self._use(node) if word in _WHOLE_VIEWS else "other"
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
            if module not in _TORCH:
                continue
            if last in self.words["reads"]:
                return "read"
            if last in self.words["metadata"] or last.endswith("_like"):
                return "look"
            if last in self.words["views"]:
                return self._use(call)
        return "other"
