"""What recording costs: the same training step plain, recorded, under a dispatch mode that does nothing, and under
torch's own DebugMode with stacks and hashes: of outputs alone, its default, and of inputs and outputs, which is what a
recording knows of each op.

    python benchmarks/recorder.py [--rounds 7] [--memory] [--no-debug-mode] [MODEL …]

Prints ratios to the plain step: the minimum of the CPU time of one thread over interleaved rounds, so that other work
on the machine does not count. "Cheaper in all" compares whole steps, "in what is added" what is added to the plain
step. The ratio of whole steps to a DebugMode depends on how much a model computes for each byte it writes, since
DebugMode reads every byte several times; hence two ResNets. `--memory` prints how much more memory 20 and 200
recorded steps need than plain ones.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import math
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from torchdet_lint.verifier.ops.dispatch import OpMode
from torchdet_lint.verifier.recording.recorder import Recorder

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


class Basic(nn.Module):
    """The block of He et al. (2015) for CIFAR: the way past it is padded with zeros."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.stride, self.more = (1, 0) if channels == out else (2, (out - channels) // 2)
        self.conv1 = nn.Conv2d(channels, out, 3, self.stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm2(self.conv2(torch.relu(self.norm1(self.conv1(x)))))
        if self.more:
            x = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more, self.more))
        return torch.relu(y + x)


def resnet20() -> Step:
    """ResNet-20 for CIFAR as published."""
    widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        *(Basic(channels, out) for channels, out in itertools.pairwise(widths)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    return _training(model, torch.randn(16, 3, 32, 32), torch.randint(10, (16,)), nn.CrossEntropyLoss())


def resnet_channels_last() -> Step:
    return resnet(torch.channels_last)


def resnet(memory_format: torch.memory_format = torch.contiguous_format) -> Step:
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
    model = model.to(memory_format=memory_format)
    images = torch.randn(16, 3, 32, 32).to(memory_format=memory_format)
    return _training(model, images, torch.randint(10, (16,)), nn.CrossEntropyLoss())


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


def rl() -> Step:
    """REINFORCE on a pole that falls: one observation, one small network and one `item()` a step of the world."""
    policy = nn.Sequential(nn.Linear(4, 128), nn.Dropout(0.6), nn.ReLU(), nn.Linear(128, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

    def world(state: np.ndarray, action: int) -> np.ndarray:
        _, speed, angle, turning = state
        push = 10.0 if action else -10.0
        swing = (push + 0.05 * turning * turning * math.sin(angle)) / 1.1
        bend = (9.8 * math.sin(angle) - math.cos(angle) * swing) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        pull = swing - 0.05 * bend * math.cos(angle) / 1.1
        change = np.array([speed, pull, turning, bend])
        return np.clip(state + 0.02 * change, -3, 3)

    def step() -> float:
        state, logs, rewards = np.array([0.01, -0.02, 0.03, 0.04]), [], []
        for _ in range(20):
            chances = torch.softmax(policy(torch.from_numpy(state).float().unsqueeze(0)), dim=1)
            chosen = torch.distributions.Categorical(chances)
            action = chosen.sample()
            logs.append(chosen.log_prob(action))
            state = world(state, action.item())
            rewards.append(1.0)
        returns = torch.tensor([sum(0.99**n for n in range(len(rewards) - at)) for at in range(len(rewards))])
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = torch.cat([-log * value for log, value in zip(logs, returns, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def images() -> Step:
    """A pass over 64 images of 64×64 in batches of 16: cropped and flipped at random, made a tensor, normalized."""
    noise = np.random.default_rng(0)
    pixels = [noise.integers(0, 256, (64, 64, 3), dtype=np.uint8) for _ in range(64)]
    mean, std = torch.tensor([0.5, 0.5, 0.5]).view(3, 1, 1), torch.tensor([0.2, 0.2, 0.2]).view(3, 1, 1)

    class Images(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
        def __len__(self) -> int:
            return len(pixels)

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            top, left = (int(torch.randint(0, 9, (1,))) for _ in range(2))
            image = pixels[index][top : top + 56, left : left + 56]
            if torch.rand(1) < 0.5:
                image = image[:, ::-1]
            tensor = torch.from_numpy(image.copy()).permute(2, 0, 1).contiguous().float().div(255)
            return tensor.sub_(mean).div_(std), index % 10

    order = torch.Generator().manual_seed(0)
    loader = torch.utils.data.DataLoader(Images(), batch_size=16, shuffle=True, generator=order)

    def step() -> int:
        return sum(len(batch) for batch, _ in loader)

    return step


MODELS: dict[str, Callable[[], Step]] = {
    "mlp": mlp,
    "rl": rl,
    "images": images,
    "resnet": resnet,
    "resnet-channels-last": resnet_channels_last,
    "resnet20": resnet20,
    "gpt": gpt,
}


@contextlib.contextmanager
def recorded() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, Recorder(Path(folder) / "a.tdtrace", roots=[Path(__file__).parent]):
        yield


@contextlib.contextmanager
def debug_mode(hash_inputs: bool) -> Iterator[None]:
    from torch.utils._debug_mode import DebugMode

    with DebugMode(record_stack_trace=True), DebugMode.log_tensor_hashes(hash_inputs=hash_inputs):
        yield


def nothing() -> OpMode:
    return OpMode(lambda function, args, kwargs: function(*args, **kwargs))


WAYS: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
    "plain": contextlib.nullcontext,
    "mode": nothing,
    "recorder": recorded,
    "outputs": functools.partial(debug_mode, False),
    "both": functools.partial(debug_mode, True),
}


def cost(name: str, rounds: int) -> dict[str, float]:
    """Seconds of CPU a step, each of the `WAYS`."""
    torch.manual_seed(0)
    step = MODELS[name]()
    repeats = {"mlp": 60, "rl": 5}.get(name, 3)
    best = dict.fromkeys(WAYS, float("inf"))
    for _ in range(rounds):
        for way, context in WAYS.items():
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
    parser.add_argument("--no-debug-mode", action="store_true", help="leave torch's DebugMode out")
    parser.add_argument("models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    if options.no_debug_mode:
        del WAYS["outputs"], WAYS["both"]
    torch.set_num_threads(1)
    if not options.memory:
        print(f"{'':32}{'times the plain step':^40}{'cheaper than DebugMode':^40}")
        print(f"{'':32}{'mode':>10}{'recorder':>10}{'DebugMode':>10}{'+ inputs':>10}", end=" ")
        print(*(f"{word:>9}" for word in ("in all", "in added", "+ inputs", "in added")))
    for name in options.models:
        if options.memory:
            print(f"{name:20}", *(f"{memory(name, steps):+.1f} MB at {steps} steps" for steps in (20, 200)), flush=True)
            continue
        seconds = cost(name, options.rounds)
        plain, recorder = seconds["plain"], seconds["recorder"]
        times = f"{name:20} {plain * 1e3:8.2f} ms" + "".join(f"{seconds[way] / plain:10.2f}" for way in list(WAYS)[1:])
        debug = [way for way in ("outputs", "both") if way in seconds]
        ratios = (seconds[way] / recorder for way in debug)
        added = ((seconds[way] - plain) / (recorder - plain) for way in debug)
        print(times, *(f"{ratio:9.1f}" for pair in zip(ratios, added, strict=True) for ratio in pair), flush=True)


if __name__ == "__main__":
    # The models stay on the CPU; only the recorder looks at CUDA, where there is one.
    main()
