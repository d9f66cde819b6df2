"""`scaling.py [MODULES…]`: what the whole-program half costs as a project grows.

Two shapes, generated: a chain (every module imports and calls the next one), and a dense graph with cycles (every
module imports and calls eight others, back and forth). Each is linted from scratch, one process, no cache; the figure
to watch is the ratio of CPU time from one size to the double.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from pathlib import Path

SIZES = (250, 500, 1000, 2000)
NEIGHBOURS = 8
FILLER = 40

_BODY = """
class Layer{n}:
    def __init__(self, width):
        self.width = width

    def forward(self, x):
        return [value * self.width for value in x]

    def __call__(self, x):
        return self.forward(x)
"""


def filler(number: int) -> str:
    lines = [f"    x = [value + {row} for value in x if value > {number}]" for row in range(FILLER)]
    return f"def work{number}(x):\n" + "\n".join(lines) + "\n    return x\n"


def module(number: int, called: list[int]) -> str:
    imports = "".join(f"from m{other} import step{other}\n" for other in called)
    calls = "".join(f"    x = step{other}(x, depth - 1)\n" for other in called)
    end = "    x = random.sample(x, 1)\n" if number == 0 else ""
    return (
        f"import random\n{imports}\n{_BODY.format(n=number)}\n{filler(number)}\n"
        f"def step{number}(x, depth):\n    x = Layer{number}(2)(work{number}(x))\n{calls}{end}    return x\n"
    )


def chain(folder: Path, size: int) -> None:
    for number in range(size):
        (folder / f"m{number}.py").write_text(module(number, [number - 1] if number else []))
    start(folder, size - 1)


def dense(folder: Path, size: int) -> None:
    for number in range(size):
        called = sorted({(number * 7 + step * step * 31 + 1) % size for step in range(NEIGHBOURS)} - {number})
        (folder / f"m{number}.py").write_text(module(number, called))
    start(folder, size - 1)


def start(folder: Path, last: int) -> None:
    (folder / "main.py").write_text(
        f'from m{last} import step{last}\n\nif __name__ == "__main__":\n    step{last}([1], 3)\n'
    )


def measured(make: object, size: int) -> tuple[float, float]:
    """CPU seconds of the rules of single files and of the project half."""
    from torchdet_lint.config import Settings
    from torchdet_lint.engine import run, whole_program

    with tempfile.TemporaryDirectory() as name:
        make(Path(name), size)  # type: ignore[operator]
        settings = Settings(root=name, jobs=1)
        before = time.process_time()
        gathered = run.gather([name], settings)
        gc.disable()  # as a run of the command line does
        between = time.process_time()
        records, errors = whole_program.conclude(
            gathered.linter, dict(sorted(gathered.records.items())), {}, gathered.contents
        )
        after = time.process_time()
        gc.enable()
        found = [finding.code for record in records.values() for finding in record.findings]
        assert not errors, errors
        assert found == ["TDL103"], found
        return between - before, after - between


def main(sizes: list[int]) -> None:
    for make in (chain, dense):
        last = 0.0
        for size in sizes:
            files, project = min((measured(make, size) for _ in range(3 if size <= 500 else 1)), key=sum)
            ratio = f"  x{project / last:.2f}" if last else ""
            print(
                f"{make.__name__:6} {size:5} modules  files {files:6.2f} s  project {project:6.2f} s{ratio}", flush=True
            )
            last = project


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or list(SIZES))
