"""What digests at step boundaries cost: training steps plain, and under `Checkpoints` with different `every`.

    python benchmarks/steps.py [--rounds 5] [MODEL …]

Prints what the digests take, in percent of the plain step, on average over the steps: of each the minimum of the CPU
time of one thread over interleaved rounds, so that other work on the machine counts little. The models are those of
`recorder.py`. Two files of a hundred thousand steps are compared last.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from pathlib import Path

import torch
from recorder import MODELS

from torchdet_lint.verifier import Checkpoints
from torchdet_lint.verifier.steps.compare import compare_steps
from torchdet_lint.verifier.steps.format import Definition, Part, StepsWriter

STEPS = 6
EVERY = (1, 10, 20, 100)


class Timed(Checkpoints):
    """Knows how much CPU time its own work in the present step took."""

    spent = 0.0

    def gradients(self, optimizer: object = None) -> None:
        begin = time.thread_time()
        super().gradients(optimizer)
        self.spent += time.thread_time() - begin

    def step(self, loss: object = None, batch: object = None) -> None:
        begin = time.thread_time()
        super().step(loss, batch)
        self.spent += time.thread_time() - begin


def cost(name: str, rounds: int, folder: Path) -> tuple[float, float, float]:
    """Seconds of CPU: of a plain step, of the digests of every step, and of those of every `every`-th."""
    torch.manual_seed(0)
    step = MODELS[name]()
    step()
    optimizer = next(one for one in gc.get_objects() if type(one) is torch.optim.AdamW)
    model = torch.nn.ParameterList(one for group in optimizer.param_groups for one in group["params"])
    batch = torch.randint(512, (4, 128))
    best = [float("inf")] * 3
    for _ in range(rounds):
        for _ in range(STEPS):
            begin = time.thread_time()
            step()
            best[0] = min(best[0], time.thread_time() - begin)
        for way, every in ((1, 1 << 30), (2, 1)):
            with Timed(folder / f"{name}.tdsteps", model=model, optimizer=optimizer, every=every) as digests:
                for _ in range(STEPS):
                    loss = step()
                    digests.spent, own = 0.0, digests.spent
                    digests.step(loss, batch)
                    best[way] = min(best[way], own + digests.spent)
                    digests.spent = 0.0
    return best[0], best[1], best[2]


def long_files(folder: Path, steps: int = 100_000) -> tuple[float, float]:
    """Seconds to compare two files of so many steps of a model with 50 parameters, and how many MB each takes."""
    parts = tuple(Part(f"layer.{number}.weight") for number in range(50))
    definition = Definition((("batch", (Part("x"),)), ("loss", (Part("loss"),)), ("gradients", parts)), ("loss",))
    for name in "ab":
        writer = StepsWriter(folder / f"{name}.tdsteps", {"digest": "benchmark", "environment": {}})
        for number in range(steps):
            late = name == "b" and number > steps // 2
            writer.step(number, definition, [number, 1, late], [0.5], [7] * 51 + [late])
        writer.close(in_order=True)
    begin = time.perf_counter()
    assert compare_steps(folder / "a.tdsteps", folder / "b.tdsteps").step == steps // 2 + 1
    return time.perf_counter() - begin, (folder / "a.tdsteps").stat().st_size / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("models", nargs="*", default=["gpt", "resnet", "resnet20", "mlp"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':12}{'plain step':>12}", *(f"{f'every={every}':>12}" for every in EVERY))
        for name in options.models:
            plain, light, whole = cost(name, options.rounds, Path(folder))
            added = ((light + (whole - light) / every) / plain for every in EVERY)
            print(f"{name:12}{plain * 1e3:9.2f} ms", *(f"{part * 100:+11.1f}%" for part in added), flush=True)
        took, size = long_files(Path(folder))
        print(f"two files of 100,000 steps ({size:.0f} MB each) compared in {took:.1f} s")


if __name__ == "__main__":
    main()
