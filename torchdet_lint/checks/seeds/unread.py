"""An expression that a fix takes away -> the imports of which it was the only reader."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import nodes
from torchdet_lint.finding import Replace
from torchdet_lint.source.lines import split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Module

# So many other files are asked whether they have an import from here.
_OTHERS = 60
# What no other fix of the file may come to need, as it may `random`.
_SPARE = frozenset({"datetime", "secrets", "time", "uuid"})


def imports_only_for(module: Module, node: cst.CSTNode) -> Iterator[Replace]:
    """The removal of each import of the clock and its like that nothing but `node` reads, here, and that no other
    file may have from here."""
    for name in dict.fromkeys(one.value for one in nodes(node) if isinstance(one, cst.Name)):
        statement = _only_import(module, name)
        if statement is None or _lends(module, name):
            continue
        if _times(name, module.text) == _times(name, module.code(statement)) + _times(name, module.code(node)):
            yield Replace(statement, "")


def _lends(module: Module, name: str) -> bool:
    """Whether another file may have `name` from this one: it names it, does not import it by itself, and speaks of this
    file, or takes all that some file has."""
    others = module.naming(name, _OTHERS) if module.naming is not None else []
    stem = Path(module.source.path.removesuffix("/__init__.py")).stem
    speaks = re.compile(rf"\b{re.escape(stem)}\b|\bimport \*")
    imports = re.compile(rf"^[ \t]*(?:import\b[^#\n]*\b{name}\b|from[ \t]+{name}\b)", re.MULTILINE)
    return others is None or any(
        speaks.search(other.text) is not None and imports.search(other.text) is None for other in others
    )


def _only_import(module: Module, name: str) -> cst.CSTNode | None:
    """The statement that imports `name` alone, on a line of its own without a comment among others, where nothing else
    binds it."""
    module.load_where(word=name)
    bound = list(module.scope.bindings.get(name, ()))
    if len(bound) != 1 or bound[0].conditional or bound[0].target.partition(".")[0] not in _SPARE:
        return None
    found = bound[0].node
    alone = isinstance(found, (cst.Import, cst.ImportFrom)) and "," not in module.code(found)
    line = module.parent(found) if found is not None and alone else None
    plain = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and not line.trailing_whitespace.comment
    return found if found is not None and plain and _is_among_lines(module, found) else None


def _is_among_lines(module: Module, node: cst.CSTNode) -> bool:
    """Whether the line of `node` has another one right above or below: without it no two blank lines would meet. In a
    notebook it ends a line of its cell, and not the cell."""
    row = module.span(node)[0].row
    ends_its_cell = module.source.place(row)[0] != module.source.place(row + 1)[0]
    around = ["", *split_lines(module.text), ""][row - 1 : row + 2 : 2]
    return not ends_its_cell and any(line.strip() for line in around)


def _times(name: str, text: str) -> int:
    return len(re.findall(rf"\b{name}\b", text))
