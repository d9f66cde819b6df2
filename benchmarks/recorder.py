"""What recording costs: the same training step plain, recorded, and under torch's own DebugMode with hashes and
stacks.

    python benchmarks/recorder.py [--rounds 7] [--memory]

Prints ratios to the plain step: the minimum of the CPU time of one thread over interleaved rounds, so that other work
on the machine does not count. `--memory` prints how much more memory 20 and 200 recorded steps need than plain ones.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from torchdet_lint.verifier.recorder import Recorder

Step = Callable[[], object]


class Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU(),
            nn.Conv2d(out, out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        same = stride == 1 and channels == out
        self.skip = nn.Identity() if same else nn.Conv2d(channels, out, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.skip(x))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary: int = 512, width: int = 256, layers: int = 4, length: int = 128) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Attention(width, 8) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.tokens(ids) + self.places(torch.arange(ids.shape[1]))))


def mlp() -> Step:
    model = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(32, 32), nn.Tanh())))
    return _training(model, torch.randn(16, 32), torch.randn(16, 32), nn.MSELoss())


def resnet() -> Step:
    blocks = [Block(32, 32, 1), Block(32, 64, 2), Block(64, 64, 1), Block(64, 128, 2), Block(128, 128, 1)]
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    return _training(model, torch.randn(16, 3, 32, 32), torch.randint(10, (16,)), nn.CrossEntropyLoss())


def gpt() -> Step:
    ids = torch.randint(512, (4, 129))

    def loss(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())

    return _training(GPT(), ids[:, :-1], ids[:, 1:], loss)


def _training(model: nn.Module, x: torch.Tensor, y: torch.Tensor, loss: Callable[..., torch.Tensor]) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        return value.item()

    return step


MODELS: dict[str, Callable[[], Step]] = {"mlp": mlp, "resnet": resnet, "gpt": gpt}


@contextlib.contextmanager
def recorded() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, Recorder(Path(folder) / "a.tdtrace", roots=[Path(__file__).parent]):
        yield


@contextlib.contextmanager
def debug_mode() -> Iterator[None]:
    from torch.utils._debug_mode import DebugMode

    with DebugMode(record_stack_trace=True), DebugMode.log_tensor_hashes():
        yield


def cost(name: str, rounds: int) -> dict[str, float]:
    """Seconds of CPU a step: plain, recorded, under DebugMode."""
    torch.manual_seed(0)
    step = MODELS[name]()
    repeats = 60 if name == "mlp" else 3
    ways: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
        "plain": contextlib.nullcontext,
        "recorder": recorded,
        "DebugMode": debug_mode,
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for way, context in ways.items():
            with context():
                step()
                begin = time.thread_time()
                for _ in range(repeats):
                    step()
                best[way] = min(best[way], (time.thread_time() - begin) / repeats)
    return best


def _peak(name: str, steps: int, recording: bool, queue: multiprocessing.queues.Queue[int]) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    step = MODELS[name]()
    with recorded() if recording else contextlib.nullcontext():
        for _ in range(steps):
            step()
    queue.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def memory(name: str, steps: int) -> float:
    """MB that recording adds to the peak of a fresh process over `steps` steps (the least of three differences)."""
    context = multiprocessing.get_context("spawn")
    peaks = []
    for recording in (False, True) * 3:
        queue = context.Queue()
        process = context.Process(target=_peak, args=(name, steps, recording, queue))
        process.start()
        peaks.append(queue.get())
        process.join()
    return min(b - a for a, b in zip(peaks[::2], peaks[1::2], strict=True)) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.models:
        if options.memory:
            print(f"{name:8}", *(f"{memory(name, steps):+.1f} MB at {steps} steps" for steps in (20, 200)), flush=True)
            continue
        seconds = cost(name, options.rounds)
        plain = seconds["plain"]
        print(
            f"{name:8} plain step {plain * 1e3:7.2f} ms   recorder x{seconds['recorder'] / plain:.2f}"
            f"   DebugMode x{seconds['DebugMode'] / plain:.2f}"
            f"   DebugMode / recorder {seconds['DebugMode'] / seconds['recorder']:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
