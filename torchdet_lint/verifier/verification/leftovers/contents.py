"""Two files that a program wrote -> in a few words, what differs between their contents; nothing where that is equal.

What tells of the clock is no content: the time stamps of archives and event files, and in texts and tables what
`masking` takes out. Nothing is unpickled: an archive of torch's is compared member by member.
"""

from __future__ import annotations

import csv
import filecmp
import functools
import gzip
import io
import itertools
import json
import re
import struct
import tarfile
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Any

from torchdet_lint.verifier.verification.leftovers import pickled
from torchdet_lint.verifier.verification.leftovers.masking import TIMED_NAME, is_timed, masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_CHUNK = 1 << 20
_MOST_TEXT = 64 << 20
_MOST_MEMBER = 8 << 20
_SERIALIZED = re.compile(r'(":serialized:": )"[^"]*"')
"""What stable-baselines3 has pickled into its settings: episodes with the time that each took, say. Parameters and the
states of optimizers have files of their own beside it."""
_PICKLES = (".pkl", ".pickle")
_VOLATILE = (
    ".db",
    ".sqlite",
    ".sqlite3",
    ".pdf",
    ".svg",
    ".prof",
    ".lock",
    ".wandb",
    ".pyc",
    "-wal",
    "-shm",
    "-journal",
)
"""How files are called into which their libraries write times or names of their own: their bytes say nothing."""


def is_volatile(path: Path) -> bool:
    """Whether it says nothing of a file that its bytes differ."""
    return path.name.lower().endswith(_VOLATILE)


def difference(a: Path, b: Path) -> str:
    """What differs between two files, in a few words; empty where their contents are equal."""
    if filecmp.cmp(a, b, shallow=False):
        return ""
    try:
        return _by_format(a, b)
    except (OSError, ValueError, EOFError, struct.error, zlib.error, zipfile.BadZipFile, tarfile.TarError, csv.Error):
        return _bytes(a, b)


def _by_format(a: Path, b: Path) -> str:
    if "tfevents" in a.name:
        return _first(_events(a), _events(b), "event")
    if zipfile.is_zipfile(a) and zipfile.is_zipfile(b):
        return _members(_zipped(a), _zipped(b), functools.partial(_within, a, b))
    if a.suffix == ".safetensors":
        return _members(_safetensors(a), _safetensors(b))
    if a.suffix in (".gz", ".tgz") or tarfile.is_tarfile(a):
        return _packed(a, b)
    if max(path.stat().st_size for path in (a, b)) <= pickled.MOST and (a.suffix in _PICKLES or _is_saved(a, b)):
        return pickled.difference(a.read_bytes(), b.read_bytes())
    texts = [_text(path) for path in (a, b)]
    if texts[0] is None or texts[1] is None:
        return _bytes(a, b)
    if a.suffix in (".csv", ".tsv"):
        return _first(_rows(texts[0], a.suffix), _rows(texts[1], a.suffix), "row")
    return lines(texts[0].splitlines(), texts[1].splitlines())


def members(path: Path) -> dict[str, str]:
    """What an archive holds, by name: sizes and digests; of any other file one entry without a name. Nothing is
    unpickled. Raises `OSError`.
    """
    try:
        if zipfile.is_zipfile(path):
            # The folder in an archive of torch's is called after the file.
            inner = {name.partition("/")[2] or name: told for name, told in _zipped(path).items()}
            return {name: f"{size} bytes, {digest:016x}" for name, (size, digest) in inner.items()}
        if path.suffix == ".safetensors":
            return {name: str(told) for name, told in _safetensors(path).items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, zipfile.BadZipFile, zlib.error):
        pass
    with path.open("rb") as opened:
        size, digest = _digest(opened)
    return {"": f"{size} bytes, {digest:016x}"}


def lines(a: Iterable[str], b: Iterable[str]) -> str:
    """What differs first between two texts, line by line, the clock left out."""
    return _first((masked(line) for line in a), (masked(line) for line in b), "line")


def _first(a: Iterable[Any], b: Iterable[Any], what: str) -> str:
    for number, (one, two) in enumerate(itertools.zip_longest(a, b), 1):
        if one != two:
            return f"{what} {number}: {pickled.both_or_end(one, two)}"
    return ""


def _is_saved(*paths: Path) -> bool:
    """Whether torch wrote each of some files in its old format."""
    for path in paths:
        with path.open("rb") as opened:
            if opened.read(len(pickled.SAVED)) != pickled.SAVED:
                return False
    return True


def _members(a: dict[str, Any], b: dict[str, Any], within: Callable[[str], str] = lambda _: _DIFFERS) -> str:
    """Named parts; each is compared as a whole, and then by `within`."""
    for name in sorted({*a, *b}):
        if name not in a or name not in b:
            return f"{name} is in one of them only"
        if a[name] != b[name] and (told := within(name)):
            return f"{name}{told}"
    return ""


_DIFFERS = " differs"


def _within(a: Path, b: Path, name: str) -> str:
    """What differs in a member of two zip archives; empty where it is a text, or a pickle, that tells the same."""
    found = []
    for path in (a, b):
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(name).file_size > _MOST_MEMBER:
                return _DIFFERS
            found.append(archive.read(name))
    try:
        if name.endswith(_PICKLES) and max(map(len, found)) <= pickled.MOST:
            told = pickled.difference(*found)
            return told and f": {told}"
        texts = [_SERIALIZED.sub(r"\1", data.decode("utf-8")).splitlines() for data in found]
    except ValueError:
        return _DIFFERS
    return _DIFFERS if lines(*texts) else ""


def _zipped(path: Path) -> dict[str, tuple[int, int]]:
    """Member -> size and digest of what is in it; torch's number of the act of saving is left out."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".data/serialization_id"):
                with archive.open(member) as opened:
                    found[member.filename] = _digest(opened)
    return found


def _digest(opened: IO[bytes] | gzip.GzipFile) -> tuple[int, int]:
    size, digest = hashed(opened)
    return size, int.from_bytes(digest, "little")


def hashed(opened: IO[bytes] | gzip.GzipFile) -> tuple[int, bytes]:
    """The size and a digest of what an open file holds from here on."""
    import hashlib

    digest, size = hashlib.blake2b(digest_size=8), 0
    while chunk := opened.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.digest()


def _safetensors(path: Path) -> dict[str, Any]:
    with path.open("rb") as opened:
        length = int(struct.unpack("<Q", opened.read(8))[0])
        if length > path.stat().st_size:
            raise ValueError("no safetensors file")
        header = json.loads(opened.read(length))
        begin = 8 + length
        found: dict[str, Any] = {"__metadata__": header.pop("__metadata__", {})}
        for name, entry in sorted(header.items()):
            start, end = entry["data_offsets"]
            opened.seek(begin + start)
            part = io.BytesIO(opened.read(end - start))
            found[name] = (entry["dtype"], entry["shape"], _digest(part))
    return found


def _packed(a: Path, b: Path) -> str:
    if tarfile.is_tarfile(a) and tarfile.is_tarfile(b):
        return _members(_tarred(a), _tarred(b))
    with gzip.open(a) as one, gzip.open(b) as two:
        return "" if _digest(one) == _digest(two) else "what is packed in it differs"


def _tarred(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            opened = archive.extractfile(member) if member.isfile() else None
            found[member.name] = _digest(opened) if opened is not None else member.type
    return found


def _events(path: Path) -> Iterator[str]:
    """The events of a TensorBoard file without their time, and without scalars that are times or speeds by name."""
    size = path.stat().st_size
    with path.open("rb") as opened:
        while head := opened.read(12):
            length = int(struct.unpack("<Q", head[:8])[0])
            if length > size - opened.tell():
                raise ValueError("cut off")
            event = opened.read(length)
            opened.read(4)
            if told := _told(event):
                yield told


_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE = _TAG = 1
_SCALAR = 2
"""Numbers of fields in TensorBoard's messages `Event`, `Summary` and `Value`."""


def _told(event: bytes) -> str:
    """A message `Event` as text; empty where it only tells of the session or of the clock."""
    step, values, rest = 0, [], []
    for field, value in _fields(event):
        if field == _STEP and isinstance(value, int):
            step = value
        elif field == _SUMMARY and isinstance(value, bytes):
            if b"hparams" in value:
                return ""
            values += [_value(one) for number, one in _fields(value) if number == _VALUE and isinstance(one, bytes)]
        elif field != _WALL_TIME:
            rest.append(f"{field} {value!r}")
    return f"step {step}: {', '.join(kept)}" if (kept := [*filter(None, values), *rest]) else ""


def _value(message: bytes) -> str:
    """A message `Value` as text; empty where its name is that of a time or a speed."""
    fields = _fields(message)
    tag = next(
        (one.decode("utf-8", "replace") for field, one in fields if field == _TAG and isinstance(one, bytes)), ""
    )
    if TIMED_NAME.search(tag):
        return ""
    told = [
        f"{struct.unpack('<f', one)[0]:.9g}" if field == _SCALAR and len(one) == 4 else _digest(io.BytesIO(one))
        for field, one in _fields(message)
        if field != _TAG and isinstance(one, bytes)
    ]
    return " ".join([tag, *map(str, told)])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message of protocol buffers: number, and an integer or bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        field, kind = key >> 3, key & 7
        if kind == 0:
            number, at = _varint(message, at)
            yield field, number
            continue
        if kind == 2:
            length, at = _varint(message, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError("no event")
        if at + length > len(message):
            raise ValueError("cut off")
        yield field, message[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise ValueError("cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _text(path: Path) -> str | None:
    """The text of a file; None where it is none, or is too long to look at."""
    if path.stat().st_size > _MOST_TEXT:
        return None
    data = path.read_bytes()
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _rows(text: str, suffix: str) -> Iterator[tuple[str, ...]]:
    """The rows of a table without the columns of times and speeds."""
    header, *rows = [*csv.reader(io.StringIO(text), delimiter="\t" if suffix == ".tsv" else ",")] or [[]]
    columns = [(name, [row[number] for row in rows if number < len(row)]) for number, name in enumerate(header)]
    dropped = {number for number, column in enumerate(columns) if is_timed(*column)}
    yield tuple(header)
    for row in rows:
        yield tuple(masked(cell) for number, cell in enumerate(row) if number not in dropped)


def _bytes(a: Path, b: Path) -> str:
    sizes = [path.stat().st_size for path in (a, b)]
    if sizes[0] != sizes[1]:
        return f"{sizes[0]} bytes | {sizes[1]} bytes"
    at = 0
    with a.open("rb") as one, b.open("rb") as two:
        while (left := one.read(_CHUNK)) and left == (right := two.read(_CHUNK)):
            at += len(left)
        at += next((n for n, (x, y) in enumerate(zip(left, right, strict=False)) if x != y), 0)
    return f"byte {at} differs"
