"""Two pickles, or what torch saved in its old format -> the first value that differs between them, the clock left out.
Nothing is unpickled: only the texts and numbers in them are read, in order.
"""

from __future__ import annotations

import io
import itertools
import pickletools
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.verifier.verification.leftovers.masking import TIMED_NAME, masked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MOST = 64 << 20
"""The size of the largest pickle that is looked into, in bytes."""
SAVED = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""What `torch.save` begins with where it writes no archive, and what `pickle` makes of each tensor."""
_MOST_OPCODES = 1 << 20
_FRAMING = frozenset({"PROTO", "FRAME", "STOP"})
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_TEXTS = frozenset({"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"})
_STORAGE = "storage"
_WIDTHS = {
    1: "Untyped Byte Char Bool QInt8 QUInt8 QUInt4x2 QUInt2x4",
    2: "Half BFloat16 Short",
    4: "Float Int QInt32",
    8: "Double Long ComplexFloat",
    16: "ComplexDouble",
}
_WIDTH = {f"{name}Storage": width for width, names in _WIDTHS.items() for name in names.split()}
"""Bytes of one element, by the class of a storage."""
_LONGEST = 60
_BEFORE = 24
"""Letters before the first that differs."""


class _Part(NamedTuple):
    """An opcode and what it holds, with the last text before it."""

    opcode: str
    value: Any
    after: str


def difference(a: bytes, b: bytes) -> str:
    """What differs first, in a few words; empty where the same values stand in both. Raises `ValueError` where one of
    them is no pickle, or one of very many values.
    """
    for one, two in itertools.zip_longest(*map(_everything, (a, b))):
        if one != two:
            if one is None or two is None or one.after != two.after or one.value is None or two.value is None:
                return "other values are in it"
            if one.opcode == two.opcode == _STORAGE:
                return f"{one.after} differs"
            key = f"after {one.after[:_LONGEST]!r}: " if one.after else ""
            return f"{key}{both(one.value, two.value)}"
    return ""


def shown(value: Any) -> str:
    """A value as a report shows it, cut where it is long; quotes are closed."""
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return repr(text) if isinstance(value, str) else text


def both(a: Any, b: Any) -> str:
    """Two values as a report shows them side by side: of long texts the part where they differ."""
    begin = 0
    if isinstance(a, str) and isinstance(b, str) and max(len(a), len(b)) > _LONGEST:
        same = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        begin = max(0, same - _BEFORE) if same > _LONGEST // 2 else 0
    ends = (f"…{end[begin:].lstrip()}" if begin else end for end in (a, b))
    return " | ".join(map(shown, ends))


def both_or_end(a: Any, b: Any) -> str:
    """The same, where one of them may be None: the end of what is compared."""
    if a is None or b is None:
        return " | ".join("its end" if end is None else shown(end) for end in (a, b))
    return both(a, b)


def _everything(data: bytes) -> Iterator[_Part]:
    return _saved(data) if data.startswith(SAVED) else _parts(data)


def _saved(data: bytes) -> Iterator[_Part]:
    """The parts of what torch saved, then its storages. Each is called after an address there, and they stand in the
    order of these: here they are numbered as the rest names them.
    """
    stream = io.BytesIO(data)
    for _ in range(3):
        _texts(stream)
    begin = stream.tell()
    _texts(stream)
    rest = data[begin : stream.tell()]
    keys = _texts(stream)
    found: dict[str, bytes] = {}
    widths: dict[str, int] = {}
    named: dict[str, str] = {}
    for part in _parts(rest, keys, named):
        if part.opcode == _STORAGE and part.value not in widths:
            widths[part.value] = _width(part.after)
        yield part
    for key in keys:
        size = int.from_bytes(stream.read(8), "little") * widths.get(named.get(key, ""), 1)
        if size > len(data):
            raise ValueError("cut off")
        found[key] = stream.read(size)
    for key, name in named.items():
        yield _Part(_STORAGE, found[key], name)


def _width(of: str) -> int:
    name = of.rpartition(" ")[2]
    if name not in _WIDTH:
        raise ValueError(f"{name}: no storage")
    return _WIDTH[name]


def _texts(stream: io.BytesIO) -> list[str]:
    """The texts of the next pickle of several."""
    return [str(value) for opcode, value, _ in pickletools.genops(stream) if opcode.name in _TEXTS]


def _parts(data: bytes, storages: Collection[str] = (), named: dict[str, str] | None = None) -> Iterator[_Part]:
    """The parts of a pickle. Names of `storages` are replaced, and the new ones kept in `named`."""
    memo: dict[int, Any] = {}
    last: Any = None
    key = ""
    called = {} if named is None else named
    for number, (opcode, value, _) in enumerate(pickletools.genops(data)):
        if number > _MOST_OPCODES:
            raise ValueError("too many values")
        name = opcode.name
        if name == "MEMOIZE":
            memo[len(memo)] = last
            continue
        if name in _PUTS:
            memo[_number(value)] = last
            continue
        if name in _FRAMING:
            continue
        # A class that is put together of two texts is known by the second.
        last = memo.get(_number(value)) if name in _GETS else key if name == "STACK_GLOBAL" else value
        if isinstance(last, str) and last in storages:
            yield _Part(_STORAGE, called.setdefault(last, f"storage {len(called)}"), key)
        elif isinstance(last, str):
            text = "\n".join(masked(line) for line in last.splitlines())
            yield _Part(name, text, key)
            key = text
        elif named is None and isinstance(last, bytes) and last.startswith(SAVED):
            yield from _saved(last)
        elif type(last) in (int, float) and TIMED_NAME.search(key):
            yield _Part("", "", key)
        else:
            yield _Part(name, value, key)


def _number(value: Any) -> int:
    return int(value)
