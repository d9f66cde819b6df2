"""The state of a path, names and the buffers behind them -> the state after a read, write, allocation or join."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import libcst as cst

from torchdet_lint.checks.memory.domain import Buffer, CutShort, Memory, Ref, Refs, State, lacks, some_part
from torchdet_lint.dataflow.interpreter import Flow
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
# So many views a name may stand for.
_MANY = 16
_WORD = lazy(r"[^\W\d]\w*")
# The text of a condition has no white space around the words that join its parts.
_JOINED = lazy(r"and|i[ns]|not|or")


class Store(Flow[State]):
    """The states of one function's buffers, and the first read of each that was not written."""

    def __init__(self, buffers: Mapping[cst.CSTNode, Buffer]) -> None:
        super().__init__()
        self.created = buffers
        self.buffers: list[Buffer] = []
        self.numbers: dict[cst.CSTNode, int] = {}
        self.found: dict[int, cst.CSTNode] = {}

    # ------------------------------------------------------------------ states

    def copy(self, state: State) -> State:
        """An independent copy."""
        other = State()
        other.env, other.memories, other.facts = dict(state.env), dict(state.memories), state.facts
        other.cut = state.cut
        return other

    def join(self, left: State, right: State) -> State:
        """A buffer that only one path knows is as that path says; of a name that may stand for very many, nothing is
        known."""
        joined = State()
        here, there = left.env, right.env
        both = {name: here[name] | refs for name, refs in _otherwise(there, here)}
        joined.env = here | there | both
        ours, theirs = left.memories, right.memories
        met = {number: self._meeting(ours[number], two) for number, two in _otherwise(theirs, ours)}
        joined.memories = ours | theirs | met
        for name in [name for name, refs in both.items() if len(refs) > _MANY]:
            self.escape(joined.env.pop(name), joined)
        joined.facts = left.facts & right.facts
        joined.cut = left.cut if left.cut is right.cut else _either_cut(left.cut, right.cut)
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
        holds, fails = (text, truth), (text, not truth)
        state.facts |= {holds}
        told = [one for one in state.memories.items() if one[1].born or one[1].guards]
        for number, memory in told:
            if fails in memory.born:
                del state.memories[number]
            elif holds in memory.guards:
                state.memories[number] = memory._replace(full=True)
            elif fails in memory.guards and not memory.parts:
                state.memories[number] = memory._replace(maybe=False)
        return state

    def merge(self, text: str, positive: State | None, negative: State | None) -> State | None:
        """Where one side wrote a buffer, or gave its names another value, remember under which condition."""
        joined = self.meet(positive, negative)
        if joined is not None and (positive is None or negative is None or positive.env != negative.env):
            settle(joined, text)
        if positive is None or negative is None or joined is None:
            return joined
        for number, one in _otherwise(positive.memories, negative.memories):
            if one.full != negative.memories[number].full:
                memory = joined.memories[number]
                joined.memories[number] = memory._replace(guards=memory.guards | {(text, one.full)}, level=self.depth)
        left, right = _held(positive), _held(negative)
        for number in (left ^ right) & joined.memories.keys():
            memory = joined.memories[number]
            joined.memories[number] = memory._replace(guards=memory.guards | {(text, number in right)})
        return joined

    # ------------------------------------------------------------------ reads, writes, escapes

    def read(self, refs: Iterable[Ref], node: cst.CSTNode, state: State) -> None:
        """The elements of `refs` are an input here."""
        for ref in sorted(refs, key=lambda one: one.buffer):
            memory = state.memories.get(ref.buffer)
            if memory is None or ref.buffer in self.found or _asked(node, state.facts - memory.born):
                continue
            if self._unwritten(ref, memory, state) and not self.is_measured(node):
                self.found[ref.buffer] = node
                state.memories[ref.buffer] = memory._replace(full=True)

    def is_measured(self, node: cst.CSTNode) -> bool:
        """Whether nobody asks for more than the shape of what is made with `node`."""
        raise NotImplementedError

    def _unwritten(self, ref: Ref, memory: Memory, state: State) -> bool:
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
        if not self.buffers[ref.buffer].is_whole(ref.part):
            return False
        cut = state.cut.get(ref.buffer)
        return (cut is not None and cut.parts == memory.parts) or lacks(self.buffers[ref.buffer], memory)

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
                if ref.buffer in state.cut:
                    cut = state.cut[ref.buffer]
                    state.cut = {**state.cut, ref.buffer: cut._replace(parts=cut.parts - part)}
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

    def allocate(self, node: cst.Call, state: State) -> Refs:
        """New memory."""
        number = self.numbers.setdefault(node, len(self.numbers))
        if number == len(self.buffers):
            self.buffers.append(self.created[node])
        else:
            for name, refs in list(state.env.items()):
                state.name(name, frozenset(ref for ref in refs if ref.buffer != number))
        buffer = self.created[node]
        memory = Memory(len(self.entered), state.facts)
        if number in state.cut:
            state.cut = {one: cut for one, cut in state.cut.items() if one != number}
        head = frozenset({buffer.head} if buffer.head is not None else ())
        state.memories[number] = memory._replace(
            full=0 in (buffer.size or ()) or _holds_nothing(state.facts), level=self.depth, parts=head, certain=head
        )
        return frozenset({Ref(number)})

    def enlarge(self, node: cst.Call, refs: Refs, state: State) -> None:
        """`x.resize_(n)` of a buffer without elements allocates; of another one it may."""
        for ref in refs:
            if 0 in (self.buffers[ref.buffer].size or ()):
                self.buffers[ref.buffer] = Buffer(node, "resize_", None)
                state.memories[ref.buffer] = Memory(len(self.entered), state.facts)
            else:
                self.write(some_part(frozenset({ref})), state)


def settle(state: State, text: str) -> None:
    """Forget what a `break` cut short where the condition `text` asks for what the loop binds, and decides on more than
    what is said: whoever asks may know how far the loop came."""
    if state.cut:
        words = set(_WORD.findall(text))
        joined = [word for word in words if _JOINED.search(word)]
        state.cut = {number: cut for number, cut in state.cut.items() if not _asks_for(words, joined, cut.names)}


def _asks_for(words: set[str], joined: Collection[str], names: Collection[str]) -> bool:
    return not words.isdisjoint(names) or any(name in word for word in joined for name in names)


def _either_cut(one: dict[int, CutShort], other: dict[int, CutShort]) -> dict[int, CutShort]:
    """What one of two paths, or both, cut short."""
    both = {
        number: CutShort(one[number].parts | cut.parts, one[number].names | cut.names)
        for number, cut in other.items()
        if number in one
    }
    return one | other | both


def _otherwise(one: dict[_Key, _Value], other: dict[_Key, _Value]) -> list[tuple[_Key, _Value]]:
    """The entries of `one` that `other` has too, and not as the same object: of two paths nearly all are the same."""
    return [(key, value) for key, value in one.items() if other.get(key, value) is not value]


def _held(state: State) -> set[int]:
    """The buffers that a name stands for."""
    return {ref.buffer for refs in state.env.values() for ref in refs}


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
