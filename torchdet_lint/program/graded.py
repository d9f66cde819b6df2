"""Programs -> the functions that they run without gradients only: what works out a score beside the training."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from torchdet_lint.program.effects import Node, Step
    from torchdet_lint.program.entry import Entry
    from torchdet_lint.program.events import Body
    from torchdet_lint.program.files import ProjectFiles
    from torchdet_lint.program.summary import Summary

_RUNS = ("forward", "__call__")


class GradedRuns:
    """What some programs run with gradients and what without, followed through their calls."""

    def __init__(
        self,
        graded: Sequence[Entry],
        ungraded: Iterable[Entry],
        files: Collection[str],
        texts: Sequence[str],
        no_grad: Iterable[str],
    ) -> None:
        """`ungraded` are programs without gradients. Only the functions of `files` are asked for; `texts` are the files
        in which something may be named."""
        self._files = frozenset(files)
        self._texts = texts
        self._no_grad = frozenset(no_grad)
        self._switched_off: dict[Node, bool] = {}
        # The functions that run, by file and name: with gradients, the functions that run them without, and where.
        self._graded: set[tuple[str, str]] = set()
        self._runners: dict[tuple[str, str], set[Node]] = {}
        self._makers: dict[tuple[str, str], set[Node]] = {}
        self._sites: dict[tuple[str, str], set[tuple[str, int]]] = {}
        self._called: set[tuple[str, str]] = set()
        # What was followed in which project: programs share most of what they run.
        self._seen: set[tuple[int, Node, bool]] = set()
        for entry in graded:
            self._follow(entry, graded=True)
        self._called.update(self._sites)
        for entry in ungraded:
            self._follow(entry, graded=False)

    def reaches(self, file: str, name: str) -> bool:
        """Whether one of the programs with gradients calls the function `name` of `file`."""
        return (file, name) in self._called

    def functions(self, file: str, project: ProjectFiles) -> list[str]:
        """The functions of `file` that run without gradients alone. A layer does if each function that makes it runs it
        in a `with torch.no_grad()`, and nothing runs it in another way; another object, or a function, if moreover
        nothing else names it where gradients may be on."""
        return sorted(
            name
            for (home, name), runners in self._runners.items()
            if home == file and (home, name) not in self._graded and self._alone(home, name, runners, project)
        )

    def _alone(self, home: str, name: str, runners: set[Node], project: ProjectFiles) -> bool:
        """Whether only `runners` run the function `name` of the file `home`, as far as anyone can see."""
        class_, _, method = name.rpartition(".")
        if class_:
            makers = self._makers.get((home, class_))
            if not makers or not makers <= runners:
                return False
            if method in _RUNS:
                return True
        known = self._sites[home, f"{class_}.__init__" if class_ else name]
        return all(self._named_there(project, path, class_ or name, known) for path in self._texts)

    def _named_there(self, project: ProjectFiles, path: str, name: str, known: set[tuple[str, int]]) -> bool:
        """Whether `name` stands in the file `path` nowhere but in the `known` calls, and where gradients are off."""
        text = project.text(path)
        if name not in text:
            return True
        body = parsed_body(text)
        return all(
            (path, row) in known or self._is_ungraded(project.summary(path), body, row) for row in _rows(name, body)
        )

    def _is_ungraded(self, summary: Summary, statements: Iterable[ast.stmt], row: int) -> bool:
        """Whether a row of a file stands in a function that is decorated with what switches gradients off, or in a
        `with` that does."""
        for name, node in _functions(statements):
            if node.lineno <= row <= (node.end_lineno or row):
                body = summary.body(name)
                calls = [event for event in body.events if event.row == row and event.kind == "call"] if body else []
                return body is not None and (
                    self._decorated(body) or (bool(calls) and all(event.ungraded for event in calls))
                )
        return False

    def _follow(self, entry: Entry, *, graded: bool) -> None:
        """Follow the calls of one program, which runs with gradients if it is `graded`."""
        queue = [(entry.node, graded)]
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
                if called.file in self._files:
                    self._note(step, node, called, with_gradients=with_gradients)
                queue.append((called, with_gradients))

    def _note(self, step: Step, node: Node, called: Node, *, with_gradients: bool) -> None:
        """`node` calls `called`, in `step`."""
        key = (called.file, called.name)
        self._sites.setdefault(key, set()).add((step.ref.file, step.ref.row))
        class_, _, method = called.name.rpartition(".")
        if method == "__init__":
            self._makers.setdefault((called.file, class_), set()).add(node)
        elif with_gradients:
            self._graded.add(key)
        else:
            self._runners.setdefault(key, set()).add(node)

    def _is_switched_off(self, entry: Entry, node: Node) -> bool:
        """Whether a function is decorated with what switches gradients off."""
        known = self._switched_off.get(node)
        if known is None:
            body = entry.project.files.summary(node.file).body(node.name) if node.owner[1] or node.name else None
            known = self._switched_off[node] = body is not None and self._decorated(body)
        return known

    def _decorated(self, body: Body) -> bool:
        return any(name.removesuffix("()") in self._no_grad for names in body.decorators for name in names)


def _rows(name: str, statements: Iterable[ast.stmt]) -> Iterator[int]:
    """The rows of expressions that name something called `name`."""
    for statement in statements:
        for node in ast.walk(statement):
            if (isinstance(node, ast.Name) and node.id == name) or (
                isinstance(node, ast.Attribute) and node.attr == name
            ):
                yield node.lineno


def _functions(statements: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """The functions and methods of a file by their qualified names."""
    for node in statements:
        if isinstance(node, FUNCTIONS):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
