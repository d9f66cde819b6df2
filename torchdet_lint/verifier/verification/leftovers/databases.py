"""Two databases of SQLite -> the first value that differs between their tables, the clock and random names left out.

They are opened to be read only, as files that nothing changes, and only tables are read: no view, trigger or function
of theirs is run.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.verifier.verification.leftovers import pickled
from torchdet_lint.verifier.verification.leftovers.masking import TIMED_NAME, masked

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator
    from pathlib import Path

_MAGIC = b"SQLite format 3\0"
_MOST = 64 << 20
"""The size of the largest database that is looked into, in bytes."""
_ID = re.compile(r"\b[0-9a-f]{32}\b", re.IGNORECASE)
_TABLES = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'"

Row = tuple[Any, ...]


class Difference(NamedTuple):
    """What differs, in a few words; not `certain` where it is texts alone, which may be names made at random."""

    told: str
    certain: bool


def is_database(path: Path) -> bool:
    """Whether a file is a database of SQLite."""
    with path.open("rb") as opened:
        return opened.read(len(_MAGIC)) == _MAGIC


def difference(a: Path, b: Path) -> Difference | None:
    """What differs between the tables of two databases. Raises `ValueError` where one cannot be read as it is: it is
    large or damaged, or has changes in a file beside it.
    """
    for path in (a, b):
        beside = (path.with_name(path.name + end) for end in ("-wal", "-journal"))
        if path.stat().st_size > _MOST or any(one.exists() and one.stat().st_size for one in beside):
            raise ValueError(f"{path}: not to be read as it is")
    with _opened(a) as one, _opened(b) as two:
        tables = [dict(each.execute(_TABLES).fetchall()) for each in (one, two)]
        for name in sorted(tables[0].keys() ^ tables[1].keys()):
            return Difference(f"table {name} is in one of them only", certain=True)
        told = [
            found
            for name, made in sorted(tables[0].items())
            if not made.upper().startswith("CREATE VIRTUAL")
            if (found := _of_table(name, one, two)) is not None
        ]
    return next((found for found in told if found.certain), told[0] if told else None)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        import sqlite3
    except ImportError as error:  # a Python that was built without it
        raise ValueError(error) from error
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection
    except sqlite3.Error as error:
        raise ValueError(error) from error
    finally:
        connection.close()


def _of_table(name: str, a: sqlite3.Connection, b: sqlite3.Connection) -> Difference | None:
    """What differs first, numbers before texts, in a table; the order of its rows is no content."""
    columns, ones = _rows(name, a)
    others, twos = _rows(name, b)
    if columns != others:
        return Difference(f"table {name} has other columns", certain=True)
    if len(ones) != len(twos):
        return Difference(f"table {name} has {len(ones)} | {len(twos)} rows", certain=True)
    if sorted(map(repr, ones)) == sorted(map(repr, twos)):
        return None
    unlike = [
        (number, column, one, two)
        for number, pair in enumerate(zip(ones, twos, strict=True), 1)
        for column, one, two in zip(columns, *pair, strict=True)
        if one != two
    ]
    by_number = [pair for pair in unlike if all(isinstance(value, (int, float)) for value in pair[2:])]
    number, column, one, two = (by_number or unlike)[0]
    told = f"table {name}, row {number}, {column}: {pickled.both(one, two)}"
    return Difference(told, certain=bool(by_number))


def _rows(name: str, connection: sqlite3.Connection) -> tuple[list[str], list[Row]]:
    quoted = name.replace('"', '""')
    found = connection.execute(f'SELECT * FROM "{quoted}"')
    columns = [str(about[0]) for about in found.description]
    timed = [bool(TIMED_NAME.search(column)) for column in columns]
    return columns, [
        tuple("" if time else _plain(value) for time, value in zip(timed, row, strict=True)) for row in found
    ]


def _plain(value: Any) -> Any:
    """A value without what tells of the clock; a number that is a time of day or a date becomes a text."""
    if isinstance(value, str):
        return _ID.sub("<id>", masked(value))
    if isinstance(value, (int, float)) and (told := masked(repr(value))) != repr(value):
        return told
    return value
