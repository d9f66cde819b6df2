"""A line of text -> the same line without what differs in every run: times, durations, dates, addresses, ids."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdet_lint.catalogue import runtime

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBER = r"[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?"
_WHOLE = r"(?<!\d)(?<!\d\.)"
"""Before a number that is not what follows a decimal point."""
_MONTHS = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAYS = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_WORDS = runtime.surroundings()
_TIMED = "|".join(_WORDS.timed)
_UNITS = "|".join(_WORDS.units)
_NAMED = rf"(?<![A-Za-z])(?:run|step)?(?:{_TIMED})(?![A-Za-z])"
_KEY = rf"(?<![A-Za-z])(?:{'|'.join(_WORDS.timed_keys)})(?![\w/])"
TIMED_NAME = re.compile(f"{_NAMED}|{_KEY}", re.IGNORECASE)
"""A key or the name of a column under which a time, a duration or a speed stands."""
_MEASURED = r"\d+\.\d{5,}(?:[eE][-+]?\d+)?(?![\w.])"
_MEASURED_KEY = rf"(?:{'|'.join(_WORDS.measured_keys)})"
_STAMP = re.compile(
    r"(?<![\d.])(?:19|20)\d\d([-_])(?:0\d|1[0-2])\1(?:[0-2]\d|3[01])(?:[-_T](?:[01]\d|2[0-3])[-_:]\d\d(?:[-_:]\d\d)?)?(?!\d)"
)
"""A date, and maybe a time of day, as they stand in names: `run2026_11_23_22_55_01`."""
_SHAPES = [
    # A progress bar is drawn over what stood there.
    (re.compile(r"^.*\r(?=.)"), ""),
    (_STAMP, "<date>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b", re.IGNORECASE), "<address>"),
    (re.compile(r"(?:/private)?(?:/var)?/tmp/[^\s'\",;:)\]]*|\btmp[a-z0-9_]{8}\b"), "<temporary>"),
    (re.compile(r"\b[WIEF]\d{4}(?= \d{1,2}:\d{2})"), "<date>"),
    (re.compile(rf"(?:\b{_DAYS},?\s+)?\b{_MONTHS}\.?[ -]\s?\d{{1,2}}\b(?:,?[ -]\d{{4}}\b)?"), "<date>"),
    (re.compile(r"\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?=\D|$)|\b\d{1,2}[/.]\d{1,2}[/.]\d{4}\b"), "<date>"),
    (
        re.compile(
            rf"{_WHOLE}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[T_-]?\d{{4,6}})?(?:[.,]\d+)?(?!\d)"
        ),
        "<date>",
    ),
    (re.compile(r"\b\d{1,2}[:-]\d{2}[:-]\d{2}(?:[.,]\d+)?\b|\b\d{1,3}:\d{2}(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(rf"{_WHOLE}\b1[6-9]\d{{8}}(?:\d{{3}}|\d{{6}}|\d{{9}})?(?:\.\d+)?\b"), "<time>"),
    (re.compile(r"\b(?:\d+h ?)?\d+m ?\d+(?:\.\d+)?s\b"), "<time>"),
    (re.compile(rf"(?<![\w.]){_NUMBER}\s?(?:{_UNITS})(?![\w])"), "<time>"),
    (
        re.compile(rf"({_NAMED}[\w./()\[\] -]{{0,16}}?[\s|:=\"']{{1,40}}){_NUMBER}", re.IGNORECASE),
        r"\1<time>",
    ),
    (re.compile(rf"([\"']{_MEASURED_KEY}[\"']\s*:\s*){_MEASURED}"), r"\1<time>"),
    (re.compile(rf"({_KEY}[\"']?\s*[:=|]\s*){_NUMBER}", re.IGNORECASE), r"\1<time>"),
]


BARE = re.compile(r"(?:^|(?<=\|)|(?<=^[(\[])|(?<=[^\w(\[][(\[]))\s*[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\s*(?=[)\]|]|$)")
"""A number that stands alone in its line, in its column, or in brackets that follow no name."""
_LEAST_RULE = 8
_RULE = re.compile(rf"([-=_*#~])\1{{{_LEAST_RULE - 1},}}")
_PADDING = re.compile(r"[ \t]{2,}")


def masked(line: str) -> str:
    """`line` with what tells of the clock, the machine's memory and random names replaced by what it is."""
    if _RULE.fullmatch(line.strip()):
        # A table is as wide as what stands in it.
        return line.strip()[:_LEAST_RULE]
    plain = line
    for shape, name in _SHAPES:
        plain = shape.sub(name, plain)
    return (line if plain == line else _PADDING.sub(" ", plain)).rstrip()


def is_timed(column: str, cells: Iterable[str]) -> bool:
    """Whether a column of a table tells times or speeds, by its name, and where that says too little by its cells."""
    if TIMED_NAME.search(column):
        return True
    return bool(re.fullmatch(_MEASURED_KEY, column)) and all(re.fullmatch(_MEASURED, cell) for cell in cells)


def masked_name(path: str) -> str:
    """The name of a file or folder without the date, the time, the process and the machine in it."""
    if "events.out.tfevents" in path:
        path = re.sub(r"tfevents\.\d+\.[^/]*", "tfevents", path)
    path = re.sub(rf"(?<![A-Za-z]){_MONTHS}\d{{2}}_[\d-]+_[^/]*|(?<!\d)\d{{8}}_\d{{4,6}}(?!\d)", "<date>", path)
    return masked(_STAMP.sub("<date>", path).replace("_", " _ ")).replace(" _ ", "_")
