"""What one file yields by itself, plain data: findings, suppressions, and what the whole program goes by; and the files
of a run of which that is known whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.finding import Finding
from torchdet_lint.prefilter.outline import Outline
from torchdet_lint.program.events import Body
from torchdet_lint.source.modules import Relied
from torchdet_lint.source.suppress import Rows, Suppression

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Set


class Record(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """All that one file yields by itself, as it is cached.

    `findings` name the file "", `rows` are theirs in the file's text, `cells` are (number, first row) of a notebook's
    code cells. `errors` are faults of this program, which are never cached. `outline` is what the project half goes by,
    `module` what the file does at top level, where it was parsed. `relied` are the looks at other files that had a part
    in it: it holds as long as they find the same.
    """

    findings: tuple[Finding, ...] = ()
    rows: tuple[Rows, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    cells: tuple[tuple[int, int], ...] = ()
    errors: tuple[str, ...] = ()
    outline: Outline = Outline()
    module: Body | None = None
    relied: tuple[Relied, ...] = ()

    def sound(self, codes: Collection[str]) -> bool:
        """Whether a record that was read from a file may be one that a linter of the rules `codes` has made."""
        return len(self.rows) == len(self.findings) and all(
            finding.sound(codes) and min(rows) > 0 for finding, rows in zip(self.findings, self.rows, strict=True)
        )


Look = Callable[[Sequence[str]], Mapping[str, "Record"]]


class Whole:
    """Records with findings, by absolute path: `named` are those of the files that the user named, `known` moreover
    those that somebody asked for."""

    def __init__(self, records: Mapping[str, Record], context: Set[str], paths: Mapping[str, str], look: Look) -> None:
        """`context` are those of `records` that the user did not name; `paths` are all as `look` takes them, which
        gives whole records."""
        self.named = {path: record for path, record in records.items() if path not in context}
        self.known = dict(self.named)
        self.relied: set[Relied] = set()
        self._left = {path: paths[path] for path in context if path in paths}
        self._look = look

    def ask(self, files: Iterable[str]) -> None:
        """Look at `files` too, as far as they are among the records."""
        asked = {shown: path for path in sorted(files) if (shown := self._left.pop(path, None)) is not None}
        for shown, record in self._look(list(asked)).items() if asked else ():
            self.known[asked[shown]] = record
            self.relied.update(record.relied)
