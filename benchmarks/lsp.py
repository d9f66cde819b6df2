"""CPU from an edit to its diagnostics in the language server, as a ratio of one libcst parse of the same file, and CPU
for what the server does once they are sent.

`python benchmarks/lsp.py [FILES]`: a file of 500 lines alone, and in a project of FILES (default 2000) modules. One
of five functions holds a finding.
"""

from __future__ import annotations

import gc
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

EDITS = 40
LINES = 500


def module(number: int) -> str:
    return (
        "import torch\nfrom torch import nn\n\n\n"
        f"class Layer{number}(nn.Module):\n    def __init__(self, width: int) -> None:\n        super().__init__()\n"
        "        self.inner = nn.Linear(width, width)\n\n"
        "    def forward(self, x):\n        return self.inner(x).relu()\n"
    )


def edited(lines: int) -> str:
    ops = ["y = y + x.sum()", "y.index_add_(0, index, x)", "y = y * 2", "y = y.relu()", "y = y - index.sum()"]
    body = "\n".join(
        f"def step{number}(x, index):\n    y = x.new_zeros({number})\n    {ops[number % 5]}\n    return y\n"
        for number in range(lines // 5)
    )
    imports = "import torch\nfrom package.module0 import Layer0\n\n"
    return f'{imports}{body}\nif __name__ == "__main__":\n    model = Layer0(4)\n    torch.rand(3)\n'


class Measured(NamedTuple):
    """Milliseconds of CPU: of each edit to its diagnostics, of what follows them, and of one parse."""

    edits: list[float]
    after: list[float]
    parse: float


def cost(job: Callable[[], object]) -> float:
    begin = time.process_time()
    job()
    return (time.process_time() - begin) * 1000


def measured(files: int) -> Measured:
    """The costs of edits in a project of so many modules."""
    import libcst

    from torchdet_lint.config import Options
    from torchdet_lint.lsp.analysis import Analysis

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "pyproject.toml").write_text("")
        (root / "package").mkdir()
        (root / "package" / "__init__.py").write_text("")
        for number in range(max(files, 1)):
            (root / "package" / f"module{number}.py").write_text(module(number))
        text = edited(LINES)
        path = str(root / "train.py")
        Path(path).write_text(text)
        analysis = Analysis(Options())
        analysis.findings(path, {path: text.encode()})
        gc.disable()  # as the server does
        analysis.tidy()
        edits, after = [], []
        for number in range(EDITS):
            now = text.replace("new_zeros(7)", f"new_zeros(7 + {number})").encode()
            edits.append(cost(lambda now=now: analysis.findings(path, {path: now})))
            after.append(cost(analysis.tidy))
        gc.enable()
        return Measured(edits, after, cost(lambda: libcst.parse_module(text)))


def main() -> None:
    """Print the figures of a file alone and in a project."""
    import resource

    files = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for label, count in (("alone", 0), (f"with {files} files", files)):
        found = measured(count)
        p95 = statistics.quantiles(found.edits, n=20)[-1]
        print(
            f"{label}: p95 {p95:.0f} ms, median {statistics.median(found.edits):.0f} ms of CPU an edit "
            f"({p95 / found.parse:.1f} times one libcst parse), {statistics.median(found.after):.0f} ms after it"
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
