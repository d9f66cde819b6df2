"""A thread's dispatcher -> the same one with a tap, which sees the values that go into each record and come out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

import torch

from torchdet_lint.verifier.recording.op.places import current_node
from torchdet_lint.verifier.recording.values import tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.verifier.ops.dispatch import Direct
    from torchdet_lint.verifier.ops.plans import Plan
    from torchdet_lint.verifier.recording.streams import Run, Stream


class Tap(Protocol):
    """What looks at the records of one thread."""

    def due(self) -> bool:
        """Whether the next record is to be looked at; asked before anything that may make one."""

    def before(self, plan: Plan, args: Any, kwargs: Any) -> Any:
        """What is kept of what an op is about to read."""

    def after(self, plan: Plan, args: Any, kwargs: Any, out: Any, kept: Any) -> Any:
        """An op has its record: what it gives to the program."""

    def came(self, value: Any) -> None:
        """A batch that the program takes, or a tensor that NumPy is handed, has its record."""

    def called(self, out: Any, given: Any, values: list[Any], changed: list[Any]) -> Any:
        """A call that has one record: what it gives to the program. `values` are what it made and `changed` of what it
        was `given`.
        """


def written_by(plan: Plan, args: Any, kwargs: Any) -> list[Any]:
    """The arguments that an op writes in place."""
    return [args[at] if at < len(args) else kwargs.get(name) for at, name in plan.written]


def made_by(plan: Plan, args: Any, kwargs: Any, out: Any) -> list[Any]:
    """What an op made and wrote, each once."""
    written = written_by(plan, args, kwargs)
    return [out, *written] if plan.fresh or not written else written


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def tapped(tap: Tap, run: Run, stream: Stream, dispatch: Direct) -> Direct:
    """`dispatch`, with `tap` at the records of `stream`."""
    batch, handed, whole, folded = stream.batch, stream.handed, stream.whole, stream.folded
    inside = False

    def tapped_op(
        mode: Any, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        plan = run.plans.get(id(function)) or run.plan(function)
        if sys._getframe(0).f_back is None and current_node() is None:
            return stream.unseen(plan, args, kwargs)
        if inside or run.captured is not None or not tap.due():
            return dispatch(mode, function, types, args, kwargs)
        number = stream.records
        kept = tap.before(plan, args, kwargs)
        out = dispatch(mode, function, types, args, kwargs)
        return tap.after(plan, args, kwargs, out, kept) if stream.records > number else out

    def tapped_batch(value: Any) -> None:
        due, number = tap.due(), stream.records
        batch(value)
        if due and stream.records > number:
            tap.came(value)

    def tapped_handed(value: torch.Tensor, array: Any) -> None:
        due, number = tap.due(), stream.records
        handed(value, array)
        if due and stream.records > number:
            tap.came(value)

    def tapped_whole(name: str, inputs: Any, function: Callable[[], Any], outputs: Callable[[Any], Any]) -> Any:
        nonlocal inside
        outer, inside = inside, True
        due, number = not outer and tap.due(), stream.records
        try:
            out = whole(name, inputs, function, outputs)
        finally:
            inside = outer
        if due and stream.records > number:
            new, changed = outputs(out)
            return tap.called(out, inputs, [new, *changed], list(changed))
        return out

    def tapped_folded(name: str, given: Sequence[Any], function: Callable[[], Any], **about: bool) -> Any:
        if not tap.due():
            return folded(name, given, function, **about)
        number = stream.records
        tensors = [value for value in tensors_in(given) if isinstance(value, torch.Tensor)]
        versions = [*map(_version, tensors)]
        out = folded(name, given, function, **about)
        if stream.records == number:
            return out
        changed = [value for value, version in zip(tensors, versions, strict=True) if version != _version(value)]
        return tap.called(out, given, [out, *changed], changed)

    stream.batch, stream.handed, stream.whole, stream.folded = tapped_batch, tapped_handed, tapped_whole, tapped_folded
    return tapped_op
