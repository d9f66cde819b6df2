"""A Trainer of Lightning's -> a file of steps: a `Callback`. Imports Lightning."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.steps.checkpoints import EVERY, Opening

if TYPE_CHECKING:
    import os

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback  # type: ignore[import-not-found,unused-ignore]
else:
    from lightning.pytorch import Callback  # type: ignore[import-not-found,no-redef,unused-ignore]


class LightningSteps(Callback):  # type: ignore[misc,unused-ignore]
    """`Trainer(callbacks=[LightningSteps("run.tdsteps")])` writes digests of each training batch into the file: batch,
    loss, gradients, and at every `every`-th the module, its optimizers and schedulers, and `others` by name, as
    `Checkpoints` does. A step is a batch; its number counts those of the checkpoint that the run resumed from too.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = EVERY, **others: Any) -> None:
        super().__init__()
        self._opening = Opening(path, every, others)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin the file: the optimizers are there by now."""
        optimizers = {f"optimizer {n}": one for n, one in enumerate(trainer.optimizers)}
        schedulers = {f"scheduler {n}": one.scheduler for n, one in enumerate(trainer.lr_scheduler_configs)}
        scaler = getattr(getattr(trainer, "precision_plugin", None), "scaler", None)
        done = trainer.fit_loop.epoch_loop.total_batch_idx + 1
        found = {"model": pl_module, "optimizer": optimizers, "first": done, "scaler": scaler, **schedulers}
        self._opening.open(**found)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """End a step."""
        checkpoints = self._opening.checkpoints
        if checkpoints is not None:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            checkpoints.step(loss, batch)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Close the file of a run that ends early."""
        self._opening.close(exception)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Close the file."""
        self._opening.close()
