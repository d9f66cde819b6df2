"""Run B as it goes on -> the same with run A's values where its own differ, each of which gets a mark in the trace.

An op that made something else, though nothing that it read was anything else, goes on with what run A made: in place,
so that views, gradients and other holders of the memory see it. What an op made of other tensors is left where run A
did the same work at another time (the order differs, and the work belongs to its tensors); it is then *astray*, and
what reads it goes on with run A's value. So does what comes from outside. Where a value cannot take the place of
another, or the runs go different ways, run B goes on by itself.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.ops.plans import PICK
from torchdet_lint.verifier.recording.dispatcher import Quiet
from torchdet_lint.verifier.recording.lockstep.listening import (
    NOTHING,
    Listener,
    Made,
    Read,
    made_of,
    taken,
    tensors_of,
)
from torchdet_lint.verifier.recording.lockstep.rows import Kept, Row, Told, record_of, work_of
from torchdet_lint.verifier.recording.op.memory import extent
from torchdet_lint.verifier.recording.values import base_of, bytes_of, tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.verifier.ops.plans import Plan
    from torchdet_lint.verifier.recording.lockstep.rows import Rows
    from torchdet_lint.verifier.recording.streams import Run, Stream
    from torchdet_lint.verifier.trace import Record, Site

_MAPS = Path("/proc/self/maps")


class UnfitError(Exception):
    """Run A's value cannot take the place of run B's; the text says why."""


class Following(Listener):
    """Holds what a thread makes against its rows of run A. What is `astray` is so for all threads of the run."""

    def __init__(self, kept: Rows, astray: set[tuple[int, int]], run: Run, stream: Stream) -> None:
        super().__init__(run, stream)
        self._rows = kept.of(stream.name)
        self._works = kept.works
        self._alike: set[tuple[int, int]] = set()
        self._astray = astray
        self._mark("followed", cause=False, at=0)

    def after(self, plan: Plan, args: Any, kwargs: Any, out: Any, kept: Read) -> Any:
        """What an op gives to the program: its own, or what it gave in run A."""
        made = self.made(plan, args, kwargs, out)
        return self._go_on(out, made, kept, picked_of=args[0] if plan.kind == PICK else None)

    def came(self, value: Any) -> None:
        """A batch, or what NumPy is handed."""
        self._go_on(value, taken(value), NOTHING, taken_whole=True)

    def called(self, out: Any, given: Any, values: list[Any], changed: list[Any]) -> Any:
        """What a call gives to the program."""
        del changed
        return self._go_on(out, made_of(tensors_in(values)), Read(tensors_of(given), [], {}))

    def _go_on(
        self, out: Any, made: Made, read: Read, *, picked_of: torch.Tensor | None = None, taken_whole: bool = False
    ) -> Any:
        row = self._rows.next()
        if row is None:
            return self._end(out, self._rows.ended)
        mine, theirs = record_of(self.record), record_of(row.record)
        if not self._at_one_place(mine, theirs):
            return self._end(out, f"run A goes another way: to {_told(self._rows.sites[theirs.site])}")
        came = mine.outside and theirs.outside and mine.outside[0] != theirs.outside[0]
        if mine.digests == theirs.digests and not came:
            self._astray.difference_update(map(_place, (*made.tensors, *read.tensors)))
            return out
        cause = self._astray.isdisjoint(map(_place, read.tensors))
        reads_other = came or mine.inputs != theirs.inputs or mine.scalars != theirs.scalars
        if reads_other and work_of(self.stream.rows[mine.site], mine) in self._works:
            self._astray.update(map(_place, made.tensors))
            self._mark("reordered", cause=cause)
            return out
        try:
            out = self._replaced(out, made, read, row, picked_of, taken_whole=taken_whole)
        except UnfitError as error:
            return self._end(out, str(error), cause=cause)
        self._astray.difference_update(map(_place, made.tensors))
        self._mark("replaced", cause=cause)
        return out

    def _at_one_place(self, mine: Record, theirs: Record) -> bool:
        pair = mine.site, theirs.site
        if pair not in self._alike and self.stream.rows[mine.site] == self._rows.sites[theirs.site]:
            self._alike.add(pair)
        return pair in self._alike

    def _replaced(
        self, out: Any, made: Made, read: Read, row: Row, picked_of: torch.Tensor | None, *, taken_whole: bool
    ) -> Any:
        """`out` with run A's values in the place of its own."""
        told = row.told
        if (len(made.tensors), len(made.numbers)) != (len(told.made), len(told.numbers)):
            raise UnfitError("the op made another number of values")
        if taken_whole and [*told.numbers] != made.numbers:
            raise UnfitError("what came is no tensor")
        if picked_of is not None:
            return _picked(picked_of, made.tensors[0], told.made[0])
        tensors = [*made.tensors, *self._leaves(read, told)]
        every = [*zip(tensors, (*told.made, *told.leaves), self._rows.elements(row), strict=False)]
        differing = [(tensor, kept, data) for tensor, kept, data in every if self._differs(tensor, kept, data, read)]
        for tensor, kept, data in differing:
            _put(tensor, kept, data)
            self._own(tensor, kept)
        return _with_numbers(out, iter(told.numbers)) if told.numbers and not taken_whole else out

    def _leaves(self, read: Read, told: Told) -> list[torch.Tensor]:
        """What an op read that none had made, where it is the same part of a memory as in run A: its content is then
        another.
        """
        parts = [(tuple(leaf.shape), leaf.storage_offset()) for leaf in read.leaves if leaf.layout is torch.strided]
        same = parts == [(kept.shape, kept.offset) for kept in told.leaves]
        return read.leaves if same and self._astray.isdisjoint(map(_place, read.leaves)) else []

    def _differs(self, tensor: torch.Tensor, kept: Kept, data: bytes, read: Read) -> bool:
        """Whether a tensor is to be replaced, which is then known to be possible."""
        with Quiet():
            now = bytes_of(tensor)
        here = str(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()) if now is not None else ()
        if here != (kept.dtype, kept.shape, kept.stride):
            raise UnfitError(f"its tensor has another form: {_form(kept.shape, kept.dtype)} | {_form(*here[1::-1])}")
        if now == data and kept.size >= 0:
            return False
        if kept.size < 0:
            raise UnfitError("it is a kind of tensor whose values are not kept")
        base = base_of(tensor)
        if base in read.before and read.before[base] != kept.before:
            raise UnfitError("the op wrote to a tensor that held something else in run A")
        if base in self.run.foreign and base not in self.run.loans and not _is_writable(tensor.data_ptr()):
            raise UnfitError("it came in memory that cannot be written")
        return True

    def _own(self, tensor: torch.Tensor, kept: Kept) -> None:
        """Know of a tensor's memory what run A knew."""
        base = base_of(tensor)
        if base and kept.owner is not None:
            self.run.owners[base] = kept.owner
            if base in self.run.loans:
                self.run.loans.agree(base)

    def _end(self, out: Any, why: str, *, cause: bool = True) -> Any:
        self.listens = False
        self._mark("unfollowed", cause=cause, why=why)
        return out

    def _mark(self, kind: str, *, cause: bool, why: str = "", at: int | None = None) -> None:
        at = self.stream.records - 1 if at is None else at
        self.stream.marks.append(trace.Mark(at, kind, int(cause), 0.0, why))


def _told(site: Site) -> str:
    return site.place or site.op


def _form(shape: tuple[int, ...], dtype: str) -> str:
    return f"{dtype.removeprefix('torch.')}{[*shape]}"


def _place(tensor: torch.Tensor) -> tuple[int, int]:
    """A part of a memory."""
    return base_of(tensor), extent(tensor)


def _picked(whole: torch.Tensor, mine: torch.Tensor, kept: Kept) -> torch.Tensor:
    """The part of a tensor that run A picked."""
    if kept.size < 0 or tuple(mine.shape) != kept.shape:
        raise UnfitError(f"it picked a part of another form: {[*kept.shape]} | {[*mine.shape]}")
    with Quiet():
        part: torch.Tensor = torch.ops.aten.as_strided.default(whole, kept.shape, kept.stride, kept.offset)
    return part


def _put(tensor: torch.Tensor, kept: Kept, data: bytes) -> None:
    """Write elements into the memory of a tensor; autograd hears nothing of it."""
    if not data:
        return
    with Quiet(), torch.no_grad():
        source = torch.frombuffer(bytearray(data), dtype=getattr(torch, kept.dtype.removeprefix("torch.")))
        tensor.data.copy_(source.reshape(kept.shape))


def _with_numbers(value: Any, numbers: Iterator[Any]) -> Any:
    """A value with others in the place of its numbers, in order."""
    if isinstance(value, complex):
        return complex(next(numbers))
    if isinstance(value, (int, float)):
        return next(numbers)
    if isinstance(value, (list, tuple)):
        items = [_with_numbers(item, numbers) for item in value]
        return type(value)(items) if type(value) in (list, tuple) else type(value)(*items)
    if isinstance(value, dict):
        return {key: _with_numbers(item, numbers) for key, item in value.items()}
    return value


def _is_writable(address: int) -> bool:
    """Whether the system lets memory be written; only Linux tells."""
    if not sys.platform.startswith("linux"):
        return False
    for line in _MAPS.read_text(encoding="utf-8").splitlines():
        span, rights, *_ = line.split()
        begin, _, end = span.partition("-")
        if int(begin, 16) <= address < int(end, 16):
            return "w" in rights
    return False
