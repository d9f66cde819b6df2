"""A graph that Inductor compiled -> what a call of it is called in the trace.

Where a kernel of it adds with atomics, the name says of which op: such sums depend on the order of threads.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from torchdet_lint.verifier import trace

_KERNEL = re.compile(r"^(\w+) = async_compile\.", re.MULTILINE)
_ADDS = re.compile(r"\batomic_add\w*[<(]")
_SCATTERS = re.compile(r"embedding_dense_backward|index_(?:add|put|reduce)|scatter_(?:add|reduce)|scatter")
_LONGEST = 40


def called(graph: Any) -> str:
    """The op that stands for a call of what Inductor compiled."""
    source = getattr(graph, "source_code", "")
    return _called(source) if isinstance(source, str) else trace.REGION


@functools.lru_cache(maxsize=256)
def _called(source: str) -> str:
    _, *parts = _KERNEL.split(source)
    adding = [name for name, body in zip(parts[::2], parts[1::2], strict=True) if _ADDS.search(body)]
    ops = [found[0] if (found := _SCATTERS.search(name)) else name[:_LONGEST] for name in adding]
    return ".".join([trace.REGION, *ops[:1]])
