"""A program that prints times alone keeps nothing of what it draws."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

IMPORTS = """\
import logging
import random
import statistics
import time
import timeit

import numpy as np
import torch
from torch import nn
"""
TIMES = [
    """
def blur(x):
    return x * random.uniform(0.1, 2.0)

def load():
    start = time.time()
    for _ in range(1000):
        blur(1.0)
    return 1000 / (time.time() - start)

if __name__ == "__main__":
    print("fps", load())
""",
    """
def main():
    net = nn.Linear(8, 8).eval()
    x = torch.rand(4, 8)
    times = []
    for i in range(100):
        start = time.perf_counter()
        net(x)
        times.append(time.perf_counter() - start)
        print(f"{i}: {times[-1]:.3f} s")
    print("mean", np.mean(times) * 1000, "ms", statistics.stdev(times))

if __name__ == "__main__":
    main()
""",
    """
N = 100
def main():
    net = nn.Linear(8, 8)
    x = torch.rand(4, 8)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    total = 0
    for _ in range(N):
        net(x)
        total += start.elapsed_time(end)
    end.record()
    print("{} runs: {:.2f} ms".format(N, total / N))

if __name__ == "__main__":
    main()
""",
    """
x = torch.rand(4, 8)
def work():
    return x.sum()

if __name__ == "__main__":
    seconds = timeit.timeit(work, number=100)
    print("took", round(seconds, 3))
""",
    """
def main():
    net = nn.Linear(8, 8)
    total, count = 0.0, 0
    print("warming up", count)
    for i, _ in enumerate(range(10)):
        start = time.monotonic()
        net(torch.rand(4, 8))
        seconds = time.monotonic() - start
        total = total + seconds
        count += 1
        print(i, seconds, flush=True)
    print("mean", total / count)

if __name__ == "__main__":
    main()
""",
]
RESULTS = [
    """
if __name__ == "__main__":
    start = time.time()
    x = torch.rand(4).sum()
    print("took", time.time() - start, x)
""",
    """
if __name__ == "__main__":
    start = time.time()
    x = torch.rand(4)
    print("took", time.time() - start)
    torch.save(x, "x.pt")
""",
    """
if __name__ == "__main__":
    start = time.time()
    x = torch.rand(4)
    print("took", time.time() - start)
    print(x)
""",
    """
import metrics
if __name__ == "__main__":
    start = time.time()
    metrics.report(torch.rand(4))
    print("took", time.time() - start)
""",
    """
if __name__ == "__main__":
    start = time.time()
    logging.getLogger().warning("%s", torch.rand(4))
    print("took", time.time() - start)
""",
    """
def main():
    start = time.time()
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net(torch.rand(2)).sum().backward()
        optimizer.step()
    print("took", time.time() - start)

if __name__ == "__main__":
    main()
""",
    """
def measure(x):
    start = time.time()
    y = x * random.random()
    return y + time.time() - start

if __name__ == "__main__":
    print("took", measure(1.0))
""",
    """
def measure(x):
    start = time.time()
    y = x * random.random()
    return y, time.time() - start

if __name__ == "__main__":
    value, seconds = measure(1.0)
    print(seconds, value)
""",
    """
def measure(start):
    print(time.time() - start)

if __name__ == "__main__":
    measure(random.random())
""",
    """
if __name__ == "__main__":
    print(random.random())
""",
    """
if __name__ == "__main__":
    names = ["a", "b", "c"]
    random.shuffle(names)
    print(names)
    start = time.time()
    print(time.time() - start)
""",
    """
best = 0

def play():
    global best
    best = random.random()

if __name__ == "__main__":
    start = time.time()
    play()
    print(best, time.time() - start)
""",
    """
if __name__ == "__main__":
    start = time.time()
    for i, value in enumerate(random.sample(range(9), 3)):
        print(value, time.time() - start)
""",
    """
if __name__ == "__main__":
    best = 0
    start = time.time()
    while (best := random.random()) < 0.9:
        pass
    print(best, time.time() - start)
""",
    """
if __name__ == "__main__":
    start = time.time()
    a = b = 0
    for _ in range(3):
        a = b + random.random()
        b = a
    print(b, time.time() - start)
""",
]


@pytest.mark.parametrize(
    ("program", "severity"), [(one, "note") for one in TIMES] + [(one, "error") for one in RESULTS]
)
def test_a_benchmark_that_prints_times_alone_holds_notes(tmp_path, program, severity):
    (tmp_path / "main.py").write_text(IMPORTS + program)
    settings = Settings(root=str(tmp_path), jobs=1, cache_dir="", min_severity="note")
    found = run.run([str(tmp_path)], settings).findings
    assert {one.severity for one in found if one.code in ("TDL101", "TDL102", "TDL103")} == {severity}
