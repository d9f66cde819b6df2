"""Programs -> the layers that they run without gradients only: what works out a score beside the training."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchdet_lint.program.effects import Node
    from torchdet_lint.program.entry import Entry

_RUNS = ("forward", "__call__")


class GradedRuns:
    """What is run with gradients and what without, followed through the calls of some programs."""

    def __init__(self, entries: Iterable[Entry], no_grad: Iterable[str]) -> None:
        self._no_grad = frozenset(no_grad)
        self._switched_off: dict[Node, bool] = {}
        # The methods that run, by file and name: with gradients, and the functions that run them without.
        self._graded: set[tuple[str, str]] = set()
        self._runners: dict[tuple[str, str], set[Node]] = {}
        self._makers: dict[tuple[str, str], set[Node]] = {}
        self._called: set[tuple[str, str]] = set()
        # What was followed in which project: programs share most of what they run.
        self._seen: set[tuple[int, Node, bool]] = set()
        for entry in entries:
            self._follow(entry)

    def reaches(self, file: str, name: str) -> bool:
        """Whether one of the programs calls the function `name` of `file`."""
        return (file, name) in self._called

    def layers(self, file: str) -> list[str]:
        """The methods of the layers of `file` that run without gradients alone: each function that makes the layer runs
        it in a `with torch.no_grad()`, and nothing runs it in another way."""
        return sorted(
            name
            for (home, name), runners in self._runners.items()
            if home == file
            and (home, name) not in self._graded
            and (makers := self._makers.get((home, name.rpartition(".")[0])))
            and makers <= runners
        )

    def _follow(self, entry: Entry) -> None:
        """Follow the calls of one program."""
        queue = [(entry.node, True)]
        project = id(entry.project)
        while queue:
            node, graded = queue.pop()
            if (project, node, graded) in self._seen:
                continue
            self._seen.add((project, node, graded))
            for step in entry.project.steps(node):
                called = step.node
                if called is None:
                    continue
                with_gradients = graded and not step.ungraded and not self._is_switched_off(entry, called)
                self._note(node, called, with_gradients)
                queue.append((called, with_gradients))

    def _note(self, node: Node, called: Node, with_gradients: bool) -> None:
        """`node` calls `called`."""
        self._called.add((called.file, called.name))
        class_, _, method = called.name.rpartition(".")
        if method == "__init__":
            self._makers.setdefault((called.file, class_), set()).add(node)
        elif method in _RUNS:
            if with_gradients:
                self._graded.add((called.file, called.name))
            else:
                self._runners.setdefault((called.file, called.name), set()).add(node)

    def _is_switched_off(self, entry: Entry, node: Node) -> bool:
        """Whether a function is decorated with what switches gradients off."""
        known = self._switched_off.get(node)
        if known is None:
            body = entry.project.files.summary(node.file).body(node.name) if node.owner[1] or node.name else None
            known = self._switched_off[node] = body is not None and any(
                name.removesuffix("()") in self._no_grad for names in body.decorators for name in names
            )
        return known
