"""The shipped catalogue <-> `compiled.msgpack`, in which a build keeps it decoded, so that a start parses no TOML.

The file counts only for the texts it was made of, by their fingerprint: who edits a rule in a checkout need not build.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from torchdet_lint.catalogue.facts import Facts
from torchdet_lint.catalogue.rules import Rule
from torchdet_lint.reading import LARGEST_CONFIGURATION
from torchdet_lint.reading import read as bytes_of

PATH = Path(__file__).with_name("compiled.msgpack")
_FINGERPRINT = 32


class Shipped(msgspec.Struct, frozen=True):
    """The rules by code, without examples, and the facts, without probes."""

    rules: dict[str, Rule]
    facts: Facts


def write(path: Path, shipped: Shipped, fingerprint: str) -> None:
    """Keep `shipped`, which was made of texts with `fingerprint`, in the file `path`: the same bytes each time."""
    path.write_bytes(fingerprint.encode() + msgspec.msgpack.encode(shipped, order="deterministic"))


def read(path: Path, fingerprint: str) -> Shipped | None:
    """What `path` keeps, if it was made of texts with `fingerprint`."""
    try:
        data = bytes_of(str(path), LARGEST_CONFIGURATION)
        if data[:_FINGERPRINT] != fingerprint.encode():
            return None
        return msgspec.msgpack.decode(data[_FINGERPRINT:], type=Shipped)
    except (OSError, msgspec.DecodeError):
        return None
