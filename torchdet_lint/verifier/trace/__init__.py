"""What a run did <-> a trace file: the format, the writer, the reader, and the streams of child processes."""

from __future__ import annotations

from torchdet_lint.verifier.trace.format import (
    ARRIVED,
    BATCH,
    DRAWN_FROM_OWN,
    MAGIC,
    NUMPY_USED,
    OUTSIDE,
    PYTHON_USED,
    RANDOM,
    SCRATCH,
    SUFFIX,
    TORCH_USED,
    UNSEEDED,
    UNWRITTEN,
    VERSION,
    Record,
    Site,
    Stream,
    TraceError,
    decode,
    decode_heads,
    part_of,
    parts_of,
    unpack,
    words,
)
from torchdet_lint.verifier.trace.gather import gather
from torchdet_lint.verifier.trace.reader import Trace
from torchdet_lint.verifier.trace.writer import Writer, unwritable

__all__ = [
    "ARRIVED",
    "BATCH",
    "DRAWN_FROM_OWN",
    "MAGIC",
    "NUMPY_USED",
    "OUTSIDE",
    "PYTHON_USED",
    "RANDOM",
    "SCRATCH",
    "SUFFIX",
    "TORCH_USED",
    "UNSEEDED",
    "UNWRITTEN",
    "VERSION",
    "Record",
    "Site",
    "Stream",
    "Trace",
    "TraceError",
    "Writer",
    "decode",
    "decode_heads",
    "gather",
    "part_of",
    "parts_of",
    "unpack",
    "unwritable",
    "words",
]
