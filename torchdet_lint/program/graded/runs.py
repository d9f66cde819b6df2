"""Programs -> the functions that they run without gradients only: what works out a score beside the training."""

from __future__ import annotations

import ast
import bisect
import operator
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.prefilter.triggers import words_in
from torchdet_lint.program.effects import STARTED, WORKER
from torchdet_lint.program.events import MODULE
from torchdet_lint.program.graded.handed_out import HandedOut
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import functions_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from torchdet_lint.program.call_graph import Project
    from torchdet_lint.program.effects import Node, Step
    from torchdet_lint.program.entry import Entry
    from torchdet_lint.program.events import Body
    from torchdet_lint.program.files import ProjectFiles
    from torchdet_lint.program.summary import Summary

_MADE = "()"
_RUNS = ("forward", "__call__")
_OF_LAYERS = tuple(f".{name}" for name in (*_RUNS, "__init__"))


class GradedRuns:
    """What some programs run with gradients and what without, followed through their calls."""

    def __init__(
        self,
        graded: Sequence[Entry],
        ungraded: Iterable[Entry],
        files: Collection[str],
        texts: Sequence[str],
        no_grad: Iterable[str],
        enable_grad: Iterable[str],
        keeping: Iterable[str],
        settled: Iterable[str],
        training: Iterable[str],
        alone: bool = False,
    ) -> None:
        """`ungraded` are programs without gradients. Only the functions of `files` are asked for; `texts` are the files
        in which something may be named; `no_grad` and `enable_grad` switch gradients off and on, `keeping` are the
        names of what gives back the layer that it is given, or whose method it is, `settled` the methods that run
        nothing of a layer, and `training` the functions and methods of libraries that train. Of a program that is
        asked about `alone`, what a function makes and runs itself is followed too."""
        self._files = frozenset(files)
        self._texts = texts
        self._no_grad = frozenset(no_grad)
        self._enable_grad = frozenset(enable_grad)
        self._keeping = frozenset(name.rpartition(".")[2] for name in keeping)
        self._settled = frozenset(settled)
        self._training = frozenset(training)
        self._trainers = frozenset(name.partition(_MADE)[0] for name in self._training)
        self._only = graded[0].file if alone else ""
        self._switched: dict[Node, bool | None] = {}
        # By file and name: what runs with gradients, what runs without and what runs it, what makes classes, the calls.
        self._graded: set[tuple[str, str]] = set()
        self._runners: dict[str, dict[str, set[Node]]] = {}
        self._makers: dict[tuple[str, str], set[Node]] = {}
        self._sites: dict[tuple[str, str], set[tuple[str, int]]] = {}
        # By file and row: what is called there.
        self._calls: dict[tuple[str, int], set[tuple[str, str]]] = {}
        self._handed_out: HandedOut | None = None
        # By what runs it, what runs without gradients only because that does.
        self._heirs: dict[tuple[str, str], set[tuple[str, str]]] = {}
        self._lonely: set[tuple[str, str]] | None = None
        self._called: set[tuple[str, str]] = set()
        # What was followed in which project: programs share most of what they run.
        self._seen: set[tuple[int, Node, bool]] = set()
        self._namings: Namings | None = None
        for entry in graded:
            self._follow(entry, graded=True)
        self._called.update(self._sites)
        for entry in ungraded:
            self._follow(entry, graded=False)
        self._keep_holders()
        # The classes of which a method runs with gradients.
        self._graded_classes = {(path, name.rpartition(".")[0]) for path, name in self._graded}

    @classmethod
    def of(
        cls,
        project: Project,
        graded: Sequence[Entry],
        ungraded: Iterable[Entry],
        files: Collection[str],
        texts: Sequence[str],
        *,
        alone: bool = False,
    ) -> GradedRuns:
        """The same, with what the tables know of gradients."""
        facts, tensors = project.facts.library.facts, project.facts.library.facts.tensors
        keeping = (*facts.wrappers, *facts.fluent)
        settled = (*facts.devices.settled, *facts.devices.read)
        training = (name for name, rows in project.facts.runners.items() if any(row.trains for row in rows))
        off, on = tensors.no_grad, tensors.enable_grad
        return cls(graded, ungraded, files, texts, off, on, keeping, settled, training, alone)

    def _keep_holders(self) -> None:
        """Of other files, leave only the layers that make the layers of the files that are asked for, or those of such
        layers in turn."""
        others = {file: self._runners.pop(file) for file in sorted(self._runners.keys() - self._files)}
        queue = [(file, name) for file, functions in self._runners.items() for name in functions]
        while queue:
            file, name = queue.pop()
            for maker in self._makers.get((file, name.rpartition(".")[0]), ()):
                class_, _, method = maker.name.rpartition(".")
                for run in _RUNS if method == "__init__" else ():
                    if (runners := others.get(maker.file, {}).pop(f"{class_}.{run}", None)) is not None:
                        self._runners.setdefault(maker.file, {})[f"{class_}.{run}"] = runners
                        queue.append((maker.file, f"{class_}.{run}"))

    def reaches(self, file: str, name: str) -> bool:
        """Whether one of the programs with gradients calls the function `name` of `file`."""
        return (file, name) in self._called

    def functions(self, file: str, project: ProjectFiles) -> list[str]:
        """The functions of `file` that run without gradients alone. A layer does if each function that makes it runs it
        in a `with torch.no_grad()`, or gives it to what only does so, or keeps it in an attribute of which that is
        true, and nothing runs it in another way; another object, or a function, if moreover nothing else names it where
        gradients may be on. What runs it, with no such block, has to be alone too. The layers that such a layer makes
        run in it."""
        if self._lonely is None:
            self._lonely = self._all_alone(project)
        alone = {name for name in self._runners.get(file, {}) if (file, name) in self._lonely}
        return sorted(alone | {made for name in alone if (made := self._maker_of_layers(file, name))})

    def _maker_of_layers(self, file: str, name: str) -> str:
        """The constructor of the layer whose `forward` is `name`, where no method of that layer runs with gradients."""
        class_, _, method = name.rpartition(".")
        graded = (file, class_) in self._graded_classes
        return f"{class_}.__init__" if class_ and method in _RUNS and not graded else ""

    def _all_alone(self, project: ProjectFiles) -> set[tuple[str, str]]:
        alone = {
            (file, name)
            for file, functions in self._runners.items()
            for name, runners in functions.items()
            if (file, name) not in self._graded and self._alone(file, name, runners, project)
        }
        queue = [key for key in self._heirs if key not in alone and key[1] in self._runners.get(key[0], {})]
        while queue:
            heirs = self._heirs.get(queue.pop(), set()) & alone
            alone -= heirs
            queue += heirs
        return alone

    def _alone(self, home: str, name: str, runners: set[Node], project: ProjectFiles) -> bool:
        """Whether only `runners` run the function `name` of the file `home`, as far as anyone can see."""
        class_, _, method = name.rpartition(".")
        if class_:
            makers = self._makers.get((home, class_))
            if not makers:
                return method in _RUNS and self._made_by(class_, {(one.file, one.name) for one in runners}, project)
            if method in _RUNS:
                if any(self._trains(maker, (home, class_), project) for maker in makers & runners):
                    return False
                others = makers if self._only else makers - runners
                left = [maker for maker in others if not self._is_layer_alone(maker)]
                return all(self._is_followed(maker, class_, project) for maker in left)
            if not makers <= runners:
                return False
        known = self._sites[home, f"{class_}.__init__" if class_ else name]
        return all(
            (path, row) in known or self._is_ungraded(naming, row)
            for path, naming in self._named(class_ or name, project)
            for row in naming.rows.get(class_ or name, ())
        )

    def _trains(self, maker: Node, made: tuple[str, str], project: ProjectFiles) -> bool:
        """Whether a function that makes layers of a class gives one to a trainer of a library, and lets that train."""
        body = project.summary(maker.file).body(MODULE if maker.name == STARTED else maker.name)
        calls = [event for event in body.events if event.kind == "call"] if body is not None else []
        called = {name for event in calls for name in event.names}
        if self._training.isdisjoint(called):
            return False
        started = {name.partition(_MADE)[0] for name in called & self._training}
        rows = {row for path, row in self._sites.get((made[0], f"{made[1]}.__init__"), ()) if path == maker.file}
        objects = {f"{name}()" for event in calls if event.row in rows for name in event.names}
        return any(
            not objects.isdisjoint(argument.names)
            for event in calls
            if any(name in self._training or (name in self._trainers and name in started) for name in event.names)
            for argument in (*event.positional, *event.keywords.values())
        )

    def _made_by(self, class_: str, runners: Collection[tuple[str, str]], project: ProjectFiles) -> bool:
        """Whether a class without a constructor, whose layers are made in no call that is told, is named by the
        functions `runners` alone."""
        return all(
            (path, naming.name(row)) in runners
            for path, naming in self._named(class_, project)
            for row in naming.rows.get(class_, ())
        )

    def _is_layer_alone(self, maker: Node) -> bool:
        """Whether `maker` is the constructor of a layer that nothing runs with gradients: what it makes is run by the
        layer's methods, and alone as long as these are."""
        class_, _, method = maker.name.rpartition(".")
        run = {f"{class_}.{name}" for name in _RUNS} & self._runners.get(maker.file, {}).keys()
        return method == "__init__" and bool(run) and all((maker.file, name) not in self._graded for name in run)

    def _is_followed(self, maker: Node, class_: str, project: ProjectFiles) -> bool:
        """Whether a function that makes layers of a class and does not run them only gives them to what runs them, or
        keeps them for its object to run."""
        if self._handed_out is None:
            self._handed_out = HandedOut(self._calls, self._keeping, self._settled, project, self._only)
        if not self._handed_out.only_applied(maker.file, maker.name, class_):
            return False
        keeper = maker.name.rpartition(".")[0]
        if keeper:
            kept = [f".{name}" for name in sorted(self._handed_out.kept)]
            others = (path for path, _ in self._named(keeper, project) if path != maker.file)
            return not any(name in project.text(path) for path in others for name in kept)
        return all(
            (maker.file, maker.name) in self._calls.get((path, row), ())
            for path, naming in self._named(maker.name, project)
            for row in naming.rows.get(maker.name, ())
        )

    def _named(self, name: str, project: ProjectFiles) -> Iterator[tuple[str, Naming]]:
        """The files that name something that may run, or make, what runs without gradients."""
        if self._namings is None:
            self._namings = Namings(self._asked_for(), self._texts, project)
        return self._namings.of(name)

    def _asked_for(self) -> frozenset[str]:
        """The names by which something may be run that runs without gradients, and not with them."""
        run = [
            (file, name.rpartition(".")[0] or name)
            for file, functions in self._runners.items()
            for name in functions
            if (file, name) not in self._graded
        ]
        made = (maker.name for key in run for maker in self._makers.get(key, ()))
        makers = (name.rpartition(".")[0] or name for name in made)
        return frozenset((*(name for _, name in run), *makers))

    def _is_ungraded(self, naming: Naming, row: int) -> bool:
        """Whether a row of a file stands in a function that is decorated with what switches gradients off, or in a
        `with` that does."""
        body = naming.function(row)
        return body is not None and (
            body.is_decorated_with(self._no_grad) or naming.is_call_without_gradients(body, row)
        )

    def _follow(self, entry: Entry, *, graded: bool) -> None:
        """Follow the calls of one program, which runs with gradients if it is `graded`."""
        differentiates = graded
        queue = [(entry.node, graded)]
        queued = set(queue)
        while queue:
            node, graded = queue.pop()
            key = (id(entry.project.home(node)), node, graded)
            if key in self._seen:
                continue
            self._seen.add(key)
            for step in entry.project.steps(node):
                called = step.node
                if called is None or step.kind == WORKER:
                    continue
                self._calls.setdefault((step.ref.file, step.ref.row), set()).add((called.file, called.name))
                decorated = self._decorated_so(entry, called)
                with_gradients = (graded or step.regraded) and not step.ungraded if decorated is None else decorated
                with_gradients = with_gradients and differentiates
                layer = called.name.endswith(_OF_LAYERS)
                if (called.file in self._files or layer) and called.name not in (MODULE, STARTED):
                    self._note(step, node, called, with_gradients=with_gradients)
                    if not (graded or step.ungraded or with_gradients or decorated is False):
                        self._heirs.setdefault((node.file, node.name), set()).add((called.file, called.name))
                following = called, with_gradients
                if following not in queued:
                    queued.add(following)
                    queue.append(following)

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
            self._runners.setdefault(called.file, {}).setdefault(called.name, set()).add(node)

    def _decorated_so(self, entry: Entry, node: Node) -> bool | None:
        """Whether a function is decorated with what switches gradients on, or off; None where it is with neither."""
        if node not in self._switched:
            body = entry.project.files.summary(node.file).body(node.name) if node.owner[1] or node.name else None
            on = body is not None and body.is_decorated_with(self._enable_grad)
            off = body is not None and body.is_decorated_with(self._no_grad)
            self._switched[node] = on if on or off else None
        return self._switched[node]


class Naming:
    """Where the expressions of one file name something: by name, the rows."""

    def __init__(self, statements: Sequence[ast.stmt], names: Collection[str], summary: Summary) -> None:
        self.rows: dict[str, list[int]] = {}
        self._summary = summary
        self._functions = sorted((node.lineno, node.end_lineno or 0, name) for name, node in functions_in(statements))
        self._ungraded: dict[int, dict[int, bool]] = {}
        for statement in statements:
            for node in walk(statement):
                name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
                if name and name in names:
                    self.rows.setdefault(name, []).append(node.lineno)  # type: ignore[attr-defined]

    def name(self, row: int) -> str:
        """The name of the function at top level or the method in which a row stands; empty where that is none."""
        at = bisect.bisect(self._functions, row, key=operator.itemgetter(0)) - 1
        return self._functions[at][2] if at >= 0 and row <= self._functions[at][1] else ""

    def function(self, row: int) -> Body | None:
        """The function at top level or the method in which a row stands."""
        name = self.name(row)
        return self._summary.body(name) if name else None

    def is_call_without_gradients(self, body: Body, row: int) -> bool:
        """Whether there are calls in a row of `body`, and gradients are off around each of them."""
        calls = self._ungraded.get(body.row)
        if calls is None:
            calls = self._ungraded[body.row] = {}
            for event in body.events:
                if event.kind == "call":
                    calls[event.row] = calls.get(event.row, True) and event.ungraded
        return calls.get(row, False)


class Namings:
    """Where files name any of some names. Each file is read once, and parsed where it holds one of them."""

    def __init__(self, names: frozenset[str], paths: Iterable[str], project: ProjectFiles) -> None:
        self._names = names
        self._project = project
        self._unread = iter(paths)
        self._files: dict[str, list[str]] = {}
        self._known: dict[str, Naming] = {}

    def of(self, name: str) -> Iterator[tuple[str, Naming]]:
        """The files in which the word `name` stands, read no further than is asked for."""
        files = self._files.setdefault(name, [])
        index = 0
        while index < len(files) or self._read_on():
            if index < len(files):
                yield files[index], self._naming(files[index])
                index += 1

    def _read_on(self) -> bool:
        path = next(self._unread, None)
        if path is not None:
            for word in words_in(self._project.text(path)) & self._names:
                self._files.setdefault(word, []).append(path)
        return path is not None

    def _naming(self, path: str) -> Naming:
        if path not in self._known:
            statements = parsed_body(self._project.text(path))
            self._known[path] = Naming(statements, self._names, self._project.summary(path))
        return self._known[path]
