"""What one file yields by itself, plain data: findings, suppressions, and what the whole program goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.finding import Finding
from torchdet_lint.prefilter.outline import Outline
from torchdet_lint.program.events import Body
from torchdet_lint.source.modules import Relied
from torchdet_lint.source.suppress import Rows, Suppression

if TYPE_CHECKING:
    from collections.abc import Collection


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
