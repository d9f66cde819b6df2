"""A call that makes a generator -> whether what is drawn from it only names something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.program.syntax.unkept.naming import Naming

if TYPE_CHECKING:
    import libcst as cst

    from torchdet_lint.finding import Location
    from torchdet_lint.module.module import Module


class NamedAlone:
    """The calls of one file of which all that is drawn names files, folders, ports and runs, as two runs have to."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._lines = module.text.splitlines()
        self._naming = Naming(lambda: module.text, module.library.facts.programs.naming)

    def __contains__(self, node: cst.CSTNode) -> bool:
        start, end = self.module.span(node)
        call = self._naming.at(self._place(start), self._place(end))
        return call is not None and self._naming.only_names(call)

    def _place(self, at: Location) -> tuple[int, int]:
        """A row and a column as `ast` counts them, in bytes."""
        line = self._lines[at.row - 1] if at.row <= len(self._lines) else ""
        return at.row, len(line[: at.column - 1].encode())
