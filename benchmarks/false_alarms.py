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
    "checkpoints": training(
        """
        import csv, os, time
        model = torch.nn.Linear(4, 1)
        data = torch.randn(16, 4)
        table = csv.writer(open("log.csv", "w", newline=""))
        def kept(loss):
            os.makedirs("kept", exist_ok=True)
            torch.save({"model": model.state_dict(), "loss": loss.detach()}, "kept/last.pt")
            table.writerow([f"{loss.item():.6f}"])
            model.load_state_dict(torch.load("kept/last.pt")["model"])
            return loss
        """,
        "kept(model(data).square().mean())",
        "SGD",
    ),
    "pickles": training(
        """
        import copy, pickle
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        data = torch.randn(16, 4)
        def kept(loss):
            with open("best.pkl", "wb") as out:
                pickle.dump({"model": copy.deepcopy(model), "loss": loss.item()}, out)
            torch.save(model.state_dict(), "last.pth.tar", _use_new_zipfile_serialization=False)
            return loss
        """,
        "kept(model(data).square().mean())",
    ),
    "folder": training(
        """
        import glob, os
        import numpy as np
        os.makedirs("parts", exist_ok=True)
        for number in range(12):
            np.save(f"parts/{number:02}.npy", np.random.default_rng(number).normal(size=4).astype("float32"))
        data = torch.from_numpy(np.stack([np.load(path) for path in sorted(glob.glob("parts/*.npy"))]))
        model = torch.nn.Linear(4, 1)
        """,
        "model(data).square().mean()",
    ),
    "autocast": training(
        """
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
        data = torch.randn(32, 8)
        def half(data):
            with torch.autocast("cpu", torch.bfloat16):
                return model(data).float().square().mean()
        """,
        "half(data)",
        "AdamW",
    ),
    "recompute": training(
        """
        from torch.utils.checkpoint import checkpoint
        inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.3), torch.nn.Tanh())
        model = torch.nn.Sequential(inner, torch.nn.Linear(8, 1))
        data = torch.randn(16, 8)
        """,
        "model[1](checkpoint(inner, data, use_reentrant=False)).square().mean()",
    ),
    "sparse": training(
        """
        model = torch.nn.Embedding(40, 8, sparse=True)
        rows = torch.randint(40, (2, 60))
        graph = torch.sparse_coo_tensor(rows, torch.rand(60), (40, 40)).coalesce()
        """,
        "torch.sparse.mm(graph, model(torch.arange(40))).square().mean()",
        "SparseAdam",
    ),
    "complex": training(
        "model = torch.nn.Linear(8, 8, dtype=torch.complex64)\ndata = torch.fft.fft(torch.randn(6, 8))",
        "torch.fft.ifft(model(data)).abs().square().mean()",
        "SGD",
    ),
    "jagged": training(
        """
        model = torch.nn.Linear(8, 4)
        data = torch.nested.nested_tensor([torch.randn(n, 8) for n in (3, 1, 5)], layout=torch.jagged)
        """,
        "torch.cat(model(data).relu().unbind()).square().mean()",
    ),
    "graph": training(
        """
        model = torch.nn.ModuleList([torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)])
        nodes, (source, target) = torch.randn(30, 8), torch.randint(30, (2, 120))
        def spread(layer, nodes):
            return torch.zeros(30, layer.out_features).index_add(0, target, layer(nodes)[source])
        """,
        "spread(model[1], spread(model[0], nodes).relu()).square().mean()",
    ),
    "samples": training(
        """
        import random
        import numpy as np
        random.seed(0); np.random.seed(0)
        class Samples(torch.utils.data.IterableDataset):
            def __iter__(self):
                info = torch.utils.data.get_worker_info()
                draws = np.random.default_rng([info.seed % 2**32, info.id])
                for _ in range(8):
                    yield torch.from_numpy(draws.normal(size=4)).float()
        loader = torch.utils.data.DataLoader(Samples(), 4, num_workers=2, persistent_workers=True, prefetch_factor=3)
        model = torch.nn.Linear(4, 1)
        """,
        "sum(model(batch).square().mean() for batch in loader)",
    ),
    "functions": training(
        """
        from torch.func import functional_call, grad, vmap
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        data = torch.randn(16, 4)
        def potential(x):
            return model(x).sum()
        """,
        "vmap(grad(potential))(data).square().mean()",
    ),
    "policy": training(
        """
        class World:
            def reset(self):
                self.state = torch.zeros(4)
                return self.state
            def step(self, action):
                self.state = (self.state + (action - 0.5) * torch.tensor([0.1, 0.2, 0.3, 0.4])).clamp(-1, 1)
                return self.state, -self.state.abs().sum().item()
        world, model = World(), torch.nn.Linear(4, 2)
        def played():
            state, terms = world.reset(), []
            for _ in range(10):
                chosen = torch.distributions.Categorical(logits=model(state))
                action = chosen.sample()
                state, reward = world.step(action)
                terms.append(-chosen.log_prob(action) * reward)
            return torch.stack(terms).sum()
        """,
        "played()",
    ),
    "processes": training(
        """
        import multiprocessing
        import numpy as np
        def rolled(seed):
            return np.random.default_rng(seed).normal(size=4).astype("float32")
        pool = multiprocessing.get_context("fork").Pool(2)
        model = torch.nn.Linear(4, 1)
        def rows():
            return torch.from_numpy(np.stack(pool.map(rolled, range(6))))
        """,
        "model(rows()).square().mean()",
    ),
    "shared": training(
        """
        import torch.multiprocessing
        def fill(rows):
            for number, row in enumerate(rows):
                row[0].fill_(number)
                row[1] = torch.arange(4.0).cos()
        rows = [torch.empty(2, 4).share_memory_() for _ in range(6)]
        filler = torch.multiprocessing.get_context("fork").Process(target=fill, args=(rows,))
        filler.start()
        filler.join()
        model = torch.nn.Linear(4, 1).share_memory()
        """,
        "model(torch.stack(rows)).square().mean()",
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
