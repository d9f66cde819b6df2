"""An Engine of ignite's -> a file of steps: handlers for its events. Imports ignite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ignite.engine import Events  # type: ignore[import-not-found,unused-ignore]

from torchdet_lint.verifier.steps.checkpoints import EVERY, Opening

if TYPE_CHECKING:
    import os
    from collections.abc import Callable


class IgniteSteps:
    """`IgniteSteps("run.tdsteps", model=model, optimizer=optimizer).attach(engine)` writes digests of each iteration
    into the file, as `Checkpoints` does: `engine.state.batch`, the loss, the gradients, and at every `every`-th the
    model, the optimizer, and `others` by name. `output_transform` gives the loss for what the iteration returned; by
    default that is the output itself, its `loss`, or the first of a tuple.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: Any = None,
        optimizer: Any = None,
        every: int = EVERY,
        output_transform: Callable[[Any], Any] | None = None,
        **others: Any,
    ) -> None:
        self._opening = Opening(path, every, {"model": model, "optimizer": optimizer, **others})
        self._loss = output_transform or _loss

    def attach(self, engine: Any) -> None:
        """Write the steps of `engine`."""
        engine.add_event_handler(Events.STARTED, self._started)
        engine.add_event_handler(Events.ITERATION_COMPLETED, self._iterated)
        engine.add_event_handler(Events.COMPLETED, lambda _: self._opening.close())
        engine.add_event_handler(Events.EXCEPTION_RAISED, self._failed)

    def _started(self, engine: Any) -> None:
        self._opening.open(first=engine.state.iteration)

    def _iterated(self, engine: Any) -> None:
        if self._opening.checkpoints is not None:
            self._opening.checkpoints.step(self._loss(engine.state.output), engine.state.batch)

    def _failed(self, engine: Any, error: BaseException) -> None:
        self._opening.close(error)
        raise error


def _loss(output: Any) -> Any:
    if isinstance(output, dict):
        return output.get("loss")
    return output[0] if isinstance(output, (list, tuple)) and output else output
