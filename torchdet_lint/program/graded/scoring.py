"""A program -> the constructors of the layers that it runs without gradients only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.program.graded.runs import GradedRuns

if TYPE_CHECKING:
    from torchdet_lint.program.effects import Node
    from torchdet_lint.program.entry import Entry

_RUNS = (".forward", ".__call__")
_MAKES = ".__init__"


def scoring(entry: Entry) -> frozenset[tuple[str, str]]:
    """File and name of the constructors of layers of which a program that trains runs no method with gradients: a
    teacher, or a trunk whose features another network is trained on. Only what the program reaches is read for it."""
    graded = set(filter(_runs, entry.reached(graded=True)))
    reached = list(entry.reached())
    files = {node.file for node in reached if _runs(node) and node not in graded}
    if not files:
        return frozenset()
    texts = sorted({node.file for node in reached})
    runs = GradedRuns.of(entry.project, [entry], (), files, texts, alone=True)
    alone = ((path, name) for path in sorted(files) for name in runs.functions(path, entry.project.files))
    return frozenset(one for one in alone if one[1].endswith(_MAKES))


def _runs(node: Node) -> bool:
    """Whether a node is what runs when a layer is applied."""
    return node.name.endswith(_RUNS)
