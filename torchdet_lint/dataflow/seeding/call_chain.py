"""A place of a file -> the calls through which a run of that file reaches it, where it does so once."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.prefilter.skeleton import SyntaxFault, dotted_name, imported, parsed, yields
from torchdet_lint.prefilter.syntax import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from torchdet_lint.module.module import Module

Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ANNOTATION = ("annotation", "returns")
# What a file speaks of that makes a pool of processes: the methods of other pools are called the same.
_POOLS = ("multiprocess", "ProcessPool")
# What the workers of a loader run: methods of a data set, and arguments of the loader.
ROWS = frozenset(("__getitem__", "__getitems__"))
_WORKERS = frozenset(("collate_fn", "worker_init_fn"))
# So many functions of the file are looked through for what a process runs.
_CALLERS = 16
# A way of more calls than this is not followed: nobody seeds so far from where a generator is made.
_LONGEST = 16


class Site(NamedTuple):
    """A place on the way to another: the node, and the function that it stands in (None: the file itself)."""

    node: ast.expr
    function: Function | None


class CallChain:
    """The ways through one file. Made once a file, with Python's own parser: what runs when needs all of its text."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.parents: dict[ast.AST, ast.AST] = {}
        self.uses: dict[str, list[ast.Name | ast.Attribute]] = {}
        self.functions: dict[str, list[Function]] = {}
        self.places: dict[tuple[int, int, int | None, int | None], ast.Call] = {}
        self.imported: dict[str, str] = {}
        self.tree: ast.Module | None = None
        self._known_calls: dict[Function, list[ast.Call] | None] = {}
        try:
            self.tree = parsed(module.text)
        except SyntaxFault:
            return
        nodes: list[ast.AST] = [self.tree]
        for node in nodes:
            inner = children(node)
            nodes += inner
            self.parents.update(dict.fromkeys(inner, node))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.uses.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Attribute):
                self.uses.setdefault(f".{node.attr}", []).append(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.setdefault(node.name, []).append(node)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imported.update(imported(node))
            elif isinstance(node, ast.Call):
                place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                self.places.setdefault(place, node)

    def call_at(self, node: cst.CSTNode) -> ast.Call | None:
        """The call that `node`, a call of the libcst tree, is in this tree."""
        start, end = self.module.span(node)
        lines = self.module.skeleton.lines
        column, last = (len(lines[place.row - 1][: place.column - 1].encode()) for place in (start, end))
        return self.places.get((start.row, column, end.row, last))

    def to(self, node: ast.expr) -> tuple[Site, ...] | None:
        """The calls that lead to `node`, the innermost first and beginning with itself; None where it may run more than
        once, where nobody can see what runs it, and where the way is long."""
        chain, ended = self._followed(node)
        return chain if ended == "once" else None

    def repeats(self, node: ast.expr) -> bool:
        """Whether a run evidently may come by `node` more than once: in a loop, or by several calls."""
        return self._followed(node)[1] == "often"

    def _followed(self, node: ast.expr) -> tuple[tuple[Site, ...], str]:
        """The calls that lead to `node`, and how often they do: "once", "often", or "" where that is out of sight."""
        chain: list[Site] = []
        seen: set[ast.AST] = set()
        while len(chain) < _LONGEST:
            function = self._once(node)
            if function is None:
                return (), "often"
            if isinstance(function, ast.Module):
                return (*chain, Site(node, None)), "once"
            chain.append(Site(node, function))
            if function in seen:
                return (), "often"
            seen.add(function)
            calls = self._calls_of(function)
            if calls is None or len(calls) != 1:
                return (), "often" if calls else ""
            node = calls[0]
        return (), ""

    def runs_in_process(self, node: ast.AST) -> bool:
        """Whether `node` stands in a function that another process is handed to run, or in what such a function of the
        file calls."""
        left, seen = [node], set[ast.AST]()
        while left:
            around = self.around(left.pop())
            functions = [one for one in around if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
            for function in functions:
                if function in seen or len(seen) >= _CALLERS:
                    continue
                seen.add(function)
                owner = self.parents[function]
                class_ = owner if isinstance(owner, ast.ClassDef) else None
                if class_ is not None and self._runs_elsewhere(function.name, class_):
                    return True
                uses = self.uses.get(f".{function.name}" if class_ is not None else function.name, ())
                if any(self._is_for_process(use) for use in uses if not self._is_called(use)):
                    return True
                left += [self.parents[use] for use in uses if self._is_called(use)]
        return False

    @functools.cached_property
    def _processes(self) -> dict[str, str]:
        """What runs a function in another process, by the last word of its name, and how, as `Runner` has it."""
        runners = (
            row for row in self.module.library.facts.runners if row.process not in ("", "rpc") and not row.itself
        )
        return {name.rpartition(".")[2]: row.process for row in runners for name in row.names}

    def _is_called(self, use: ast.AST) -> bool:
        parent = self.parents[use]
        return isinstance(parent, ast.Call) and parent.func is use

    def _runs_elsewhere(self, method: str, class_: ast.ClassDef) -> bool:
        """Whether another process, or a worker of a loader, runs a method of whatever object of a class of the file."""
        bases = {dotted_name(base).rpartition(".")[2] for base in class_.bases}
        if method == "__call__":
            return any(self._is_for_process(self.parents[use]) for use in self.uses.get(class_.name, ()))
        if method == "__iter__":
            return any(base.endswith("Dataset") for base in bases)
        return method in ROWS or (method == "run" and "Process" in bases)

    def _is_for_process(self, use: ast.AST) -> bool:
        """Whether a function is handed to what runs it in another process: `pool.map(f, rows)`, `Process(target=f)`."""
        child = use
        while (parent := self.parents.get(child)) is not None and not isinstance(parent, ast.stmt):
            if isinstance(parent, ast.keyword) and parent.arg in _WORKERS:
                return True
            if isinstance(parent, ast.Call) and child is not parent.func:
                word = dotted_name(parent.func).rpartition(".")[2]
                process = self._processes.get(word, "")
                if process and (process != "pool" or any(text in self.module.text for text in _POOLS)):
                    return True
            child = parent
        return False

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """`node` and what holds it, up to the file."""
        around: ast.AST | None = node
        while around is not None:
            yield around
            around = self.parents.get(around)

    def within(self, body: ast.AST) -> Iterator[ast.Call]:
        """The calls in a function or in the file, but for those in the functions that are defined there."""
        queue = children(body)
        while queue:
            node = queue.pop()
            if isinstance(node, ast.Call):
                yield node
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                queue.extend(children(node))

    def _once(self, node: ast.AST) -> Function | ast.Module | None:
        """The function or file around `node`, if one run of it comes by `node` once at most."""
        child = node
        while (parent := self.parents.get(child)) is not None:
            if isinstance(parent, ast.Module):
                return parent
            if isinstance(parent, _LOOPS) and child is not getattr(parent, "iter", None):
                if child not in parent.orelse:
                    return None
            elif isinstance(parent, ast.comprehension):
                if not self._first_iterable(parent, child):
                    return None
                child = parent
                parent = self.parents[parent]
            elif isinstance(parent, (*_COMPREHENSIONS, ast.Lambda)):
                return None
            elif isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in parent.body:
                return parent
            child = parent
        return None

    def _first_iterable(self, generator: ast.comprehension, child: ast.AST) -> bool:
        around = self.parents[generator]
        return isinstance(around, _COMPREHENSIONS) and around.generators[0] is generator and child is generator.iter

    def _calls_of(self, function: Function) -> list[ast.Call] | None:
        """The calls that run `function`; None where something else may run it too."""
        if function not in self._known_calls:
            self._known_calls[function] = self._found_calls(function)
        return self._known_calls[function]

    def _found_calls(self, function: Function) -> list[ast.Call] | None:
        owner = self.parents[function]
        if self.suspends(function) or not all(self._passes_through(one) for one in function.decorator_list):
            return None
        if not isinstance(owner, ast.ClassDef):
            return self._called(function.name) if len(self.functions[function.name]) == 1 else None
        if function.name in ("__init__", "__post_init__"):
            return self._called(owner.name)
        if owner.bases or owner.keywords or function.decorator_list or function.name.startswith("__"):
            return None
        return self._called(f".{function.name}") if len(self.functions[function.name]) == 1 else None

    def _called(self, name: str) -> list[ast.Call] | None:
        found = []
        for use in self.uses.get(name, ()):
            parent = self.parents[use]
            if isinstance(parent, ast.Call) and (parent.func is use or self._starts(parent, use)):
                found.append(parent)
            elif not self._annotates(use):
                return None
        return found

    def _starts(self, call: ast.Call, function: ast.AST) -> bool:
        """Whether `call` runs `function` once, as `fire.Fire(main)` does."""
        starts = self.module.library.facts.conventions.starts
        return call.args[:1] == [function] and self.name_of(call.func) in starts

    def _annotates(self, use: ast.AST) -> bool:
        child = use
        while (parent := self.parents.get(child)) is not None and not isinstance(parent, ast.stmt):
            if isinstance(parent, ast.arg):
                return True
            child = parent
        return any(getattr(parent, field, None) is child for field in _ANNOTATION)

    def suspends(self, function: Function) -> bool:
        """Whether a call of `function` does not run it: it is a generator or a coroutine."""
        return isinstance(function, ast.AsyncFunctionDef) or yields(function)

    def _passes_through(self, decorator: ast.expr) -> bool:
        """Whether what `decorator` makes of a function runs it once a call."""
        name = self.name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
        return name in self.module.library.facts.conventions.once

    def name_of(self, function: ast.expr) -> str:
        """The canonical dotted name of what is called: `torch.manual_seed`; empty where it is no dotted name. A name
        that no import binds stands for itself."""
        root, dot, rest = dotted_name(function).partition(".")
        return self.module.library.canonical(f"{self.imported.get(root, root)}{dot}{rest}") if root else ""
