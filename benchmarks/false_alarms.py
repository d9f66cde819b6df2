"""Deterministic programs before the verifier, a thousand runs of them: how many are said to differ, which must be none.

    python benchmarks/false_alarms.py [--runs 1000] [--minutes M] [PART-OF-A-NAME …]

Each program is verified again and again, in turn alike and under stress, four runs at a time. Exits with 1 where a
verdict was anything but equal, and prints what was said.
"""

from __future__ import annotations

import argparse
import collections
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
_RUNS = 4
_TRAIN = """
import torch
torch.manual_seed(0)
{before}
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.01)
for step in range(4):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""


def training(before: str, loss: str, optimizer: str = "Adam") -> str:
    """A program that trains for four steps."""
    return _TRAIN.format(before=textwrap.dedent(before), loss=loss, optimizer=optimizer)


_GROUP = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
{imports}

def work(rank, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    {wrap}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = torch.randn(4, 8, generator=torch.Generator().manual_seed(rank))
    for step in range(3):
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print("loss", loss.item(), flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as room:
        mp.spawn(work, (os.path.join(room, "store"),), nprocs=2)
"""

PROGRAMS = {
    "mlp": training(
        "model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), "
        "torch.nn.Linear(16, 2))\ndata = torch.randn(32, 8)",
        "model(data).square().mean()",
    ),
    "convolutions": training(
        "model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), "
        "torch.nn.Flatten(), torch.nn.LazyLinear(4))\ndata = torch.randn(8, 3, 12, 12)\nmodel(data)",
        "model(data).logsumexp(1).mean()",
        "SGD",
    ),
    "attention": training(
        "model = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)\ndata = torch.randn(4, 6, 16)",
        "model(data).square().mean()",
        "AdamW",
    ),
    "recurrent": training(
        "model = torch.nn.LSTM(8, 8)\ndata = torch.randn(5, 4, 8)", "model(data)[0].square().mean()", "RMSprop"
    ),
    "embedding": training(
        "model = torch.nn.EmbeddingBag(50, 8, mode='sum')\ndata = torch.randint(50, (16, 4))",
        "model(data).square().mean()",
    ),
    "workers": training(
        """
        import numpy as np
        def seeded(number):
            np.random.seed(torch.initial_seed() % 2**32)
        data = torch.utils.data.TensorDataset(torch.arange(64.0).reshape(16, 4))
        loader = torch.utils.data.DataLoader(data, 4, shuffle=True, num_workers=2, worker_init_fn=seeded,
                                             generator=torch.Generator().manual_seed(1))
        model = torch.nn.Linear(4, 1)
        """,
        "sum(model(batch).square().mean() for batch, in loader)",
    ),
    "threads": training(
        """
        import queue, threading
        ready = queue.Queue(2)
        def fill():
            for number in range(40):
                ready.put(torch.full((4,), float(number)).sin())
        threading.Thread(target=fill, daemon=True).start()
        model = torch.nn.Linear(4, 1)
        """,
        "model(ready.get()).square().mean()",
    ),
    "pool": training(
        """
        import concurrent.futures
        pool = concurrent.futures.ThreadPoolExecutor(3)
        model = torch.nn.Linear(4, 1)
        """,
        "model(torch.stack(list(pool.map(lambda n: torch.full((4,), n).cos(), [0.5, 1.5, 2.5, 3.5])))).square().mean()",
    ),
    "tasks": training(
        """
        import asyncio, os
        async def fetch(number):
            await asyncio.sleep(os.getpid() * (number + 3) % 7 / 2000)
            return torch.full((4,), float(number)).sin()
        async def everything():
            return torch.stack(await asyncio.gather(*[fetch(number) for number in range(6)]))
        model = torch.nn.Linear(4, 1)
        """,
        "model(asyncio.run(everything())).square().mean()",
    ),
    "ddp": _GROUP.format(
        imports="from torch.nn.parallel import DistributedDataParallel",
        wrap="model = DistributedDataParallel(model)",
    ),
    "fsdp2": _GROUP.format(
        imports="from torch.distributed.device_mesh import init_device_mesh\n"
        "from torch.distributed.fsdp import fully_shard",
        wrap='fully_shard(model, mesh=init_device_mesh("cpu", (2,)))',
    ),
}


def said(program: Path, mode: str) -> tuple[int, str]:
    """The exit status of one verification, and what it printed."""
    words = ["-m", "torchdet_lint", "verify", "--no-values", "--mode", mode, "--runs", str(_RUNS), program.name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, *words], cwd=program.parent, env=environment, capture_output=True, text=True, check=False
    )
    return answer.returncode, answer.stdout + answer.stderr


def main() -> int:
    """Verify in turn until there were so many runs, or the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only programs with one of these in their names")
    parser.add_argument("--runs", type=int, default=1000, help="how many runs in all (default 1000)")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no verification after that")
    asked = parser.parse_args()
    names = [name for name in PROGRAMS if not asked.names or any(part in name for part in asked.names)]
    end = time.monotonic() + 60 * asked.minutes
    runs: collections.Counter[str] = collections.Counter()
    alarms = 0
    turn = 0
    while sum(runs.values()) < asked.runs and time.monotonic() < end:
        name, mode = names[turn % len(names)], ("pair", "stress")[turn // len(names) % 2]
        turn += 1
        with tempfile.TemporaryDirectory(prefix="false-alarms-") as room:
            program = Path(room, f"{name}.py")
            program.write_text(PROGRAMS[name])
            status, words = said(program, mode)
        runs[name] += _RUNS
        if status:
            alarms += 1
            print(f"{name}, {mode}: exit status {status}\n{words}")
        print(
            f"{sum(runs.values())} runs, {alarms} false alarms", end="\r" if sys.stdout.isatty() else "\n", flush=True
        )
    told = ", ".join(f"{name} {count}" for name, count in runs.items())
    print(f"{sum(runs.values())} runs of {len(runs)} deterministic programs ({told}): {alarms} false alarms")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
