"""Run A as it goes on -> a file of what it makes at each record, for run B to go on with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.recording.dispatcher import Quiet
from torchdet_lint.verifier.recording.lockstep.listening import NOTHING, Listener, Made, Read, made_of, taken
from torchdet_lint.verifier.recording.lockstep.rows import Told, record_of
from torchdet_lint.verifier.recording.values import bytes_of, tensors_in

if TYPE_CHECKING:
    from torchdet_lint.verifier.ops.plans import Plan
    from torchdet_lint.verifier.recording.lockstep.rows import Writer
    from torchdet_lint.verifier.recording.streams import Run, Stream


class Keeping(Listener):
    """Writes down what a thread makes."""

    def __init__(self, writer: Writer, run: Run, stream: Stream) -> None:
        super().__init__(run, stream)
        self._writer = writer
        self._sites: set[int] = set()

    def after(self, plan: Plan, args: Any, kwargs: Any, out: Any, kept: Read) -> Any:
        """Keep what an op made."""
        self._keep(self.made(plan, args, kwargs, out), kept)
        return out

    def came(self, value: Any) -> None:
        """Keep a batch, or what NumPy is handed."""
        self._keep(taken(value), NOTHING)

    def called(self, out: Any, given: Any, values: list[Any], changed: list[Any]) -> Any:
        """Keep what a call made."""
        del given, changed
        self._keep(made_of(tensors_in(values)), NOTHING)
        return out

    def _keep(self, made: Made, read: Read) -> None:
        record = self.record
        number = record_of(record).site
        site = None if number in self._sites else self.stream.rows[number]
        self._sites.add(number)
        with Quiet():
            elements = [*map(bytes_of, (*made.tensors, *read.leaves))]
            rows = [
                self.told(tensor, -1 if data is None else len(data), read.before)
                for tensor, data in zip((*made.tensors, *read.leaves), elements, strict=True)
            ]
        count = len(made.tensors)
        told = Told(site, tuple(rows[:count]), tuple(rows[count:]), tuple(made.numbers))
        try:
            self.listens = self._writer.write(
                self.stream.name, record, told, [data for data in elements if data is not None]
            )
        except OSError:
            # A disk that is full: run B follows up to here.
            self.listens = False
