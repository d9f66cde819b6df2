"""The steps of a run <-> a `.tdsteps` file: the format, its writer and its reader, which needs no torch.

A file is the magic, the version, and blocks as a trace has them: a header of 16 bytes (kind, number, length and crc32
of the payload, little-endian) and the payload. `H` is the run, as JSON. `D` is a definition, as JSON: its `number`
counts from 0, and it lists the groups of a step in their order, with the name and the kind (`memory`, or the device
that made the digest) of each part and, in a run of several ranks, which of them hold the same; and the names of the
losses. `R` is one step, of the definition that is its number: the step and one digest a group in words of 64 bits, the
losses as 64-bit floats, and 32 bits of the digest of each part, in order. `F` ends a run that ended in order. Nothing
in it is pickled.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import zlib
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.verifier.trace.format import BLOCK, PROLOGUE, TraceError, words
from torchdet_lint.verifier.trace.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAGIC = b"TDSTEPS\n"
VERSION = 1
SUFFIX = ".tdsteps"
BATCH, LOSS, BUFFERS, GRADIENTS = "batch", "loss", "buffers", "gradients"
SYNCED = "buffers at the forward pass"
PARAMETERS, OPTIMIZER, STATES, GENERATORS = "parameters", "optimizer", "states", "generators"
GROUPS = (BATCH, SYNCED, LOSS, BUFFERS, GRADIENTS, PARAMETERS, OPTIMIZER, STATES, GENERATORS)
"""What a step is made of, in the order in which a training step makes it."""
MEMORY, UNREADABLE = "memory", "unreadable"
"""What made the digest of a part: the CPU, which read its memory, or nothing could; else the name of a device."""
SHARDED, LOCAL = "sharded", "local"
"""Of a part: that each rank has its own piece of it; with the number of a group of ranks, that each has its own value
where the program asked for that.
"""
_WORD = struct.Struct("<Q")
_MOST_JSON = 32 << 20
_MOST_PARTS = 1 << 22
_MOST_DEFINITIONS = 4096


class StepsError(TraceError):
    """A file of steps that cannot be written or read; the text is one line."""


class Part(NamedTuple):
    """One thing of a group: a parameter, a generator; `kind` says what made its digest, `replica` which ranks hold the
    same: a number in the header's `replicas`, after `LOCAL` where they need not, `SHARDED`, or empty (not known).
    """

    name: str
    kind: str = MEMORY
    replica: str = ""


class Definition(NamedTuple):
    """What the steps of one make hold: the parts of each group, and the names of the losses."""

    groups: tuple[tuple[str, tuple[Part, ...]], ...]
    losses: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many bytes a step of this definition takes."""
        return 8 * (1 + len(self.groups) + len(self.losses)) + 4 * sum(len(parts) for _, parts in self.groups)


class Step(NamedTuple):
    """One step as it stands in the file; what is in it is taken apart when it is asked for."""

    number: int
    definition: Definition
    payload: bytes

    @property
    def digests(self) -> dict[str, int]:
        """The digest of each group."""
        names = [name for name, _ in self.definition.groups]
        return dict(zip(names, struct.unpack_from(f"<{len(names)}Q", self.payload, 8), strict=True))

    @property
    def losses(self) -> dict[str, float]:
        """The losses, by name."""
        names = self.definition.losses
        start = 8 * (1 + len(self.definition.groups))
        return dict(zip(names, struct.unpack_from(f"<{len(names)}d", self.payload, start), strict=True))

    def parts(self, group: str) -> dict[str, tuple[int, str]]:
        """The parts of a group: name -> digest and what made it."""
        start = 8 * (1 + len(self.definition.groups) + len(self.definition.losses))
        for name, parts in self.definition.groups:
            if name == group:
                digests = struct.unpack_from(f"<{len(parts)}I", self.payload, start)
                return {part.name: (digest, part.kind) for part, digest in zip(parts, digests, strict=True)}
            start += 4 * len(parts)
        return {}


class StepsWriter:
    """Appends steps to a file. Raises `StepsError` where it cannot be opened; `failure` says why later steps are not
    written (a full disk, say).
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        try:
            self._writer = Writer(path, MAGIC, VERSION)
        except TraceError as error:
            raise StepsError(
                str(error).replace("the trace cannot", "the steps cannot").replace("no trace", "no file of steps")
            ) from error
        self._definitions: dict[Definition, int] = {}
        self._steps = 0
        self._writer.json(b"H", 0, dict(header))

    @property
    def failure(self) -> str:
        """Why no more is written; empty as long as all is well."""
        return self._writer.failure

    def step(
        self, number: int, definition: Definition, digests: list[int], losses: list[float], parts: list[int]
    ) -> None:
        """Append a step: `digests` by group, `losses` and `parts` as the definition has them."""
        known = self._definitions.get(definition)
        if known is None:
            known = self._definitions[definition] = len(self._definitions)
            groups = [[name, [part[: 2 + bool(part.replica)] for part in parts]] for name, parts in definition.groups]
            self._writer.json(b"D", known, {"groups": groups, "losses": definition.losses})
        short = array("I", [part & 0xFFFFFFFF for part in parts])
        if sys.byteorder == "big":
            short.byteswap()
        numbers = struct.pack(f"<{len(losses)}d", *losses)
        self._writer.block(b"R", known, words([number, *digests]) + numbers + short.tobytes())
        self._steps += 1

    def close(self, *, in_order: bool) -> None:
        """End the file; `in_order` where the run went to its end."""
        if in_order:
            self._writer.json(b"F", 0, {"steps": self._steps})
        self._writer.close()


def is_steps(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of steps, by its first bytes. False for one that cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class Steps:
    """A file of steps opened for reading, one step at a time. Raises `StepsError`, in one line, for a file that is
    none, is of another version, or is damaged. One that ends within a block is read up to there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.complete = False
        self.header = self._first()

    def _first(self) -> dict[str, Any]:
        for kind, _, payload in self._blocks():
            header = self._told(payload)
            if kind != b"H" or not isinstance(header, dict) or not _is_header(header):
                raise self._damaged("it does not begin with a run")
            return header
        raise StepsError(f"{self.path}: the file is empty: the run ended before its first step")

    def _damaged(self, why: str) -> StepsError:
        return StepsError(f"{self.path}: damaged: {why}")

    def _blocks(self) -> Iterator[tuple[bytes, int, bytes]]:
        try:
            with self.path.open("rb") as file:
                prologue = file.read(PROLOGUE.size)
                if len(prologue) < PROLOGUE.size or prologue[:8] != MAGIC:
                    raise StepsError(f"{self.path}: no file of steps of torchdet-lint")
                version = PROLOGUE.unpack(prologue)[1]
                if version != VERSION:
                    raise StepsError(f"{self.path}: version {version}; this torchdet-lint reads version {VERSION}")
                left = os.fstat(file.fileno()).st_size - PROLOGUE.size
                while len(header := file.read(BLOCK.size)) == BLOCK.size:
                    kind, number, length, crc = BLOCK.unpack(header)
                    left -= BLOCK.size
                    if length > left:
                        return
                    if length > _MOST_JSON:
                        raise self._damaged("a block is larger than any step")
                    payload = file.read(length)
                    left -= length
                    if zlib.crc32(payload) != crc:
                        raise self._damaged("a checksum does not match")
                    yield kind, number, payload
        except OSError as error:
            raise StepsError(f"{self.path}: cannot be read: {error.strerror}") from error

    def _told(self, payload: bytes) -> Any:
        try:
            return json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise self._damaged("a block is not JSON") from error

    def _definition(self, payload: bytes) -> Definition:
        told = self._told(payload)
        try:
            groups = tuple(
                (str(name), tuple(Part(*map(str, part)) for part in parts)) for name, parts in told["groups"]
            )
            definition = Definition(groups, tuple(map(str, told["losses"])))
        except (TypeError, KeyError, ValueError) as error:
            raise self._damaged("a definition does not hold what it should") from error
        if sum(len(parts) for _, parts in groups) > _MOST_PARTS or len(dict(groups)) != len(groups):
            raise self._damaged("a definition does not hold what it should")
        return definition

    def __iter__(self) -> Iterator[Step]:
        """The steps, in order; `complete` says afterwards whether the run ended in order."""
        definitions: dict[int, Definition] = {}
        sizes: dict[int, int] = {}
        last = -1
        for kind, number, payload in self._blocks():
            if kind == b"D":
                if len(definitions) >= _MOST_DEFINITIONS:
                    raise self._damaged("it has too many definitions")
                definitions[number] = self._definition(payload)
                sizes[number] = definitions[number].size
            elif kind == b"R":
                definition = definitions.get(number)
                if definition is None or len(payload) != sizes[number]:
                    raise self._damaged("a step does not fit its definition")
                (step,) = _WORD.unpack_from(payload)
                if step <= last:
                    raise self._damaged("its steps are not in order")
                last = step
                yield Step(step, definition, payload)
            elif kind == b"F":
                self.complete = True
            elif kind != b"H":
                raise self._damaged("a block of an unknown kind")


def _is_header(header: dict[str, Any]) -> bool:
    environment = header.get("environment", {})
    return (
        isinstance(environment, dict)
        and isinstance(environment.get("variables", {}), dict)
        and isinstance(header.get("digest"), str)
        and all(type(header.get(name, 0)) is int for name in ("rank", "world", "every"))
        and _are_groups(header.get("replicas", []))
    )


def _are_groups(value: Any) -> bool:
    """Whether it lists groups of ranks."""
    return isinstance(value, list) and all(
        isinstance(group, list) and all(type(rank) is int for rank in group) for group in value
    )
