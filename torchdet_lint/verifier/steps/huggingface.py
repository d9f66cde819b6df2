"""A Trainer of Hugging Face's -> a file of steps: a `TrainerCallback`. Imports transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback  # type: ignore[import-not-found,unused-ignore]

from torchdet_lint.verifier.steps.checkpoints import EVERY, Opening

if TYPE_CHECKING:
    import os


class TrainerSteps(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """`Trainer(callbacks=[TrainerSteps("run.tdsteps")])` writes digests of each optimizer step into the file: batch,
    loss, gradients, and at every `every`-th the model, the optimizer, the scheduler, and `others` by name, as
    `Checkpoints` does. The Trainer shows a callback neither batch nor loss: they are what the model is called with,
    and the `loss` that it returns.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = EVERY, **others: Any) -> None:
        self._opening = Opening(path, every, others)
        self._hooks: list[Any] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Begin the file."""
        self._end()
        model, optimizer = objects.get("model"), objects.get("optimizer")
        scheduler = objects.get("lr_scheduler")
        inner = getattr(optimizer, "optimizer", optimizer)
        self._opening.open(model=model, optimizer=inner, first=state.global_step, scheduler=scheduler)
        if isinstance(model, torch.nn.Module):
            self._hooks.append(model.register_forward_hook(self._called, with_kwargs=True))

    @torch.compiler.disable  # type: ignore[untyped-decorator,unused-ignore]
    def _called(self, model: Any, arguments: Any, named: Any, output: Any) -> None:
        checkpoints = self._opening.checkpoints
        if checkpoints is None or not model.training:
            return
        loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
        batch = {**{str(number): value for number, value in enumerate(arguments)}, **named}
        checkpoints.add(loss, batch)

    def on_step_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """End a step."""
        if self._opening.checkpoints is not None:
            self._opening.checkpoints.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **objects: Any) -> None:
        """Close the file."""
        self._end()

    def _end(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._opening.close()
