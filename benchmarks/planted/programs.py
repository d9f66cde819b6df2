"""A seed -> sixty programs of one to three causes each, and which lines each cause stands on."""

from __future__ import annotations

import random
import re
import textwrap
from typing import NamedTuple

from causes import CAUSES, Cause

_MODULES = """asyncio concurrent.futures datetime glob hashlib math multiprocessing.pool os pathlib random secrets
    tempfile threading time uuid""".split()
_SEEDS = {"torch": "torch.manual_seed(0)", "numpy": "np.random.seed(0)", "python": "random.seed(0)"}
_RARELY = '''
def rarely():
    """One run of ten, which a file outside of the program's folder counts."""
    with open(os.environ["PLANTED_RUNS"], "a+") as counter:
        counter.write(".")
        return counter.tell() % 10 == 7
'''
_PLAIN = """
{seeds}
model = torch.nn.Linear(4, 2)
values = [{parts}]
print(hashlib.sha256(torch.cat(values).detach().numpy().tobytes()).hexdigest())
print(model(torch.ones(4)).sum().item())
"""
_GUARDED = """
def main():
    {seeds_inside}
    model = torch.nn.Linear(4, 2)
    values = [{parts}]
    print(hashlib.sha256(torch.cat(values).detach().numpy().tobytes()).hexdigest())
    print(model(torch.ones(4)).sum().item())


if __name__ == "__main__":
    main()
"""
_TRAINED = """
{seeds}
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for step in range(3):
    optimizer.zero_grad()
    signal = torch.cat([{parts}]).detach()
    loss = (model(torch.linspace(0, 1, 4)) * signal.sin().mean()).sum()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
"""
FRAMES = {"plain": _PLAIN, "guarded": _GUARDED, "trained": _TRAINED}


class Planted(NamedTuple):
    """A program: its text, its causes, and the lines (from, to) of each."""

    name: str
    text: str
    causes: tuple[Cause, ...]
    spans: tuple[tuple[range, ...], ...]


def planted(seed: int = 0) -> list[Planted]:
    """Each cause alone, then two, then three in one program; sixty in all, each frame in turn."""
    chance = random.Random(seed)
    chosen: list[tuple[Cause, ...]] = [(cause,) for cause in CAUSES]
    often = [cause for cause in CAUSES if not cause.rare]
    while len(chosen) < 60:
        several = chance.sample(often, 2 if len(chosen) < 50 else 3)
        if len({cause.unseeded for cause in several if cause.unseeded}) == sum(bool(c.unseeded) for c in several):
            chosen.append(tuple(several))
    frames = list(FRAMES)
    return [_written(causes, frames[number % len(frames)]) for number, causes in enumerate(chosen)]


def _written(causes: tuple[Cause, ...], frame: str) -> Planted:
    functions = [f"def part_{number}():\n" + textwrap.indent(cause.body, "    ") for number, cause in enumerate(causes)]
    left_out = {cause.unseeded for cause in causes}
    seeds = [line for name, line in _SEEDS.items() if name not in left_out]
    body = FRAMES[frame].format(
        seeds="\n".join(seeds),
        seeds_inside="\n    ".join(seeds),
        parts=", ".join(f"part_{number}()" for number in range(len(causes))),
    )
    rest = "\n\n\n".join([*([_RARELY.strip()] if "rarely()" in "".join(functions) else []), *functions])
    below = rest + "\n\n" + body
    modules = [name for name in _MODULES if re.search(rf"\b{re.escape(name)}\.", below)]
    head = "\n".join([*(f"import {name}" for name in modules), "", "import numpy as np", "import torch"])
    text = f"{head}\n\n\n{below.strip()}\n"
    return Planted("+".join(cause.name for cause in causes) + f"-{frame}", text, causes, _spans(text, causes))


def _spans(text: str, causes: tuple[Cause, ...]) -> tuple[tuple[range, ...], ...]:
    """The lines of each cause's function; that of the weights belongs to an unseeded torch too."""
    lines = text.splitlines()
    found = []
    for number, cause in enumerate(causes):
        begin = lines.index(f"def part_{number}():") + 1
        end = next(n for n, line in enumerate(lines[begin:], begin + 1) if line and not line.startswith(" "))
        own = [range(begin, end)]
        if cause.unseeded == "torch":
            own += [range(n, n + 1) for n, line in enumerate(lines, 1) if "torch.nn.Linear" in line]
        found.append(tuple(own))
    return tuple(found)
