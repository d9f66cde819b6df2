"""A file that `torchdet-lint probe` wrote -> its measurements: the structs here are at once the schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = "torchdet-lint/probe/1"
IDENTITY = ("name", "driver", "torch", "cuda", "cudnn", "threads")
"""The fields of a machine that its results are valid for, besides the kind of device."""
_WORDS = {"name": "", "driver": "driver ", "torch": "torch ", "cuda": "CUDA ", "cudnn": "cuDNN "}

Outcome = Literal["equal", "differs", "raises", "crashes", "hangs", "out of memory", "unavailable", "not run"]


class MeasuredError(Exception):
    """A file of measurements that cannot be used; the text is one line that names it."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of every table: an unknown key is an error."""


class Machine(_Table, frozen=True, kw_only=True):
    """Where it was measured; results are valid there and nowhere else."""

    device: str
    name: str
    driver: str = ""
    torch: str
    cuda: str = ""
    cudnn: str = ""
    threads: int
    platform: str
    python: str

    @property
    def release(self) -> str:
        """The release of torch without its build, `2.13`."""
        return ".".join(self.torch.partition("+")[0].split(".")[:2])

    @property
    def title(self) -> str:
        """The device and torch in a few words."""
        return f"{self.name}, torch {self.release}"

    @property
    def identity(self) -> dict[str, str | int]:
        """All that the results are valid for, besides the kind of device."""
        return {name: getattr(self, name) for name in IDENTITY}

    @property
    def whole(self) -> str:
        """All that the results are valid for, on one line."""
        return ", ".join(_said(name, value) for name, value in self.identity.items() if value)

    def unlike(self, other: Mapping[str, str | int]) -> str:
        """What of it is not as in `other`, by the names in `IDENTITY`; empty: nothing. What `other` leaves out counts
        for nothing.
        """
        names = [name for name in IDENTITY if name in other and getattr(self, name) != other[name]]
        return "; ".join(f"{_said(name, getattr(self, name))}, not {other[name] or 'none'}" for name in names)

    def fits(self, torch: str) -> bool:
        """Whether it ran that torch: `torch` may leave out the patch release and the build ("2.13", "2.13.0")."""
        public, _, build = torch.partition("+")
        mine, _, own = self.torch.partition("+")
        parts = public.split(".")
        return mine.split(".")[: len(parts)] == parts and build in ("", own)


class Result(_Table, frozen=True, kw_only=True):
    """What `runs` runs of one program with the same inputs showed, in one mode.

    `control` is empty where the condition of the row is met, else it says what was not. Of the runs `differing` had
    other bits than the most frequent result; the rate lies between `low` and `high` (95 % interval). `finds` is the
    lowest rate that so many runs find with 99 %. They ran in `processes` processes; in `processes_differing` of them
    the most frequent result was another than over all. `ulp` and `absolute` are the largest difference, in
    `elements` of `of` elements; `seconds` is the median of a run; `provoked` holds runs and differing runs by
    provocation.
    """

    control: str = ""
    mode: str = "default"
    direction: str = ""
    dtype: str = "float32"
    layout: str = "contiguous"
    outcome: Outcome
    runs: int = 0
    differing: int = 0
    low: float = 0.0
    high: float = 1.0
    finds: float = 1.0
    processes: int = 0
    processes_differing: int = 0
    ulp: int | None = None
    absolute: float = 0.0
    elements: int = 0
    of: int = 0
    seconds: float = 0.0
    warned: bool = False
    note: str = ""
    provoked: dict[str, tuple[int, int]] = {}

    @property
    def met(self) -> bool:
        """Whether the condition of the row was met."""
        return not self.control

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from the other results of its row."""
        return (self.control, self.mode, self.dtype, self.layout)


class Row(_Table, frozen=True, kw_only=True):
    """The results of one row of the catalogue, which `op`, `direction`, `spelling` and `devices` name; `condition` is
    what it said when it was measured.
    """

    op: str
    direction: Literal["forward", "backward"]
    spelling: str
    condition: str = ""
    devices: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, tuple[str, ...]]:
        """What tells it from the other rows."""
        return (self.op, self.direction, self.spelling, self.devices)

    def found(self, mode: str = "default") -> Result | None:
        """The result where the condition is met: of several types and layouts one that differs, else the first."""
        results = [result for result in self.results if result.met and result.mode == mode]
        differing = [result for result in results if result.outcome == "differs"]
        return next(iter(differing or results), None)


class Measurement(_Table, frozen=True, kw_only=True):
    """All that a machine showed. `runs` is how many a result should have, `complete` whether each has them."""

    schema: Literal["torchdet-lint/probe/1"] = "torchdet-lint/probe/1"
    machine: Machine
    date: str
    runs: int
    seconds: float
    complete: bool
    catalogue: str = ""
    version: str = ""
    rows: tuple[Row, ...] = ()


def _said(name: str, value: str | int) -> str:
    """A field in words: "driver 550.54.14", "8 threads"; one that is empty: "no driver"."""
    if name == "threads":
        return f"{value} thread{'s' * (value != 1)}"
    return f"{_WORDS[name]}{value}" if value else f"no {_WORDS[name]}".rstrip()


def encode(measurement: Measurement) -> bytes:
    """The file as indented JSON. Keys that have their default are left out, but for the schema."""
    table = {"schema": SCHEMA, **msgspec.to_builtins(measurement)}
    return msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n"


def read(path: str) -> Measurement:
    """Read a file of measurements. Raises `MeasuredError`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise MeasuredError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from error
    return decode(data, path)


def decode(data: bytes, path: str) -> Measurement:
    """The measurements in `data`, the content of the file `path`. Raises `MeasuredError`."""
    try:
        return msgspec.json.decode(data, type=Measurement)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise MeasuredError(f"{path}: not a file of `torchdet-lint probe`: {error}") from error


def shipped() -> list[tuple[str, Measurement]]:
    """What machines were measured for the catalogue: the files of `rules/facts/measured/`, each with its name.

    Raises `MeasuredError` for a file that breaks the schema.
    """
    import tomli

    from torchdet_lint.catalogue.texts import RULES_DIRECTORY

    found = []
    for path in sorted((RULES_DIRECTORY / "facts" / "measured").glob("*.toml")):
        try:
            table = tomli.loads(path.read_text(encoding="utf-8"))
            found.append((path.name, msgspec.convert(table, Measurement)))
        except (tomli.TOMLDecodeError, msgspec.ValidationError) as error:
            raise MeasuredError(f"{path}: {error}") from error
    return found
