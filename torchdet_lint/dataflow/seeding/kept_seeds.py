"""What a file keeps at top level -> the seeds among it: constants, entries of dictionaries, attributes of classes."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import children, walk
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SEED = lazy(
    r"(?:(?:base|exp|experiment|global|init|main|manual|master|np|numpy|rand|random|rng|run|torch)_?)?seed(?:s|_?value)?"
    r"|rand(?:om)?_?state"
)
# What takes a seed as its first argument, by its last word.
_MAKERS = ("default_rng", "Generator", "Random", "RandomState", "SeedSequence", "PRNGKey")
_NAME_SPACES = ("EasyDict", "edict", "Namespace", "SimpleNamespace")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Kept(NamedTuple):
    """A seed: the text that reads it, and the top-level statement below which it can be read."""

    value: ast.expr
    statement: ast.stmt


def key_of(value: ast.expr | None) -> str:
    """What a name, or an attribute or entry of whatever object, is known by; empty for another expression."""
    if isinstance(value, ast.Name):
        return value.id
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        return f"[{value.slice.value!r}]"
    return f".{value.attr}" if isinstance(value, ast.Attribute) else ""


def used_as_seeds(tree: ast.AST | None) -> frozenset[str]:
    """The keys of what the calls of a file are given as seeds."""
    found: set[str] = set()
    for call in (node for node in walk(tree) if isinstance(node, ast.Call)) if tree is not None else ():
        name = dotted_name(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")
        if call.args and (name in _MAKERS or "seed" in name.lower()):
            found.add(key_of(call.args[0]))
        found.update(key_of(one.value) for one in call.keywords if one.arg and SEED.fullmatch(one.arg.lower()))
    return frozenset(found) - {""}


class KeptSeeds:
    """The seeds that a file keeps at top level. Not what is given another value anywhere in the file, nor an attribute
    of a class of which the file makes objects out of sight."""

    def __init__(self, tree: ast.Module, is_seed: Callable[[ast.expr | None], bool]) -> None:
        """`is_seed` says whether an expression is a number that every library takes for a seed."""
        self.tree = tree
        self._is_seed = is_seed
        self._classes: dict[str, ast.ClassDef | None] = {}
        for one in tree.body:
            if isinstance(one, ast.ClassDef):
                self._classes[one.name] = None if one.name in self._classes else one

    @functools.cached_property
    def all(self) -> list[Kept]:
        """The seeds, those first that the file gives something as a seed, then those that are only called so."""
        used, stored = used_as_seeds(self.tree), _stored(self.tree)
        found = [
            one
            for statement in self.tree.body
            for one in self._kept(statement)
            if (key_of(one.value) in used or SEED.fullmatch(_word(one.value))) and _is_bound_once(one, stored)
        ]
        return sorted(found, key=lambda one: (key_of(one.value) not in used, _word(one.value) != "seed"))

    def _kept(self, statement: ast.stmt) -> Iterator[Kept]:
        if isinstance(statement, ast.ClassDef):
            if self._classes[statement.name] is not None and statement.name not in self._bare:
                for name, value in _attributes(statement).items():
                    if self._is_seed(value):
                        yield Kept(ast.Attribute(value=ast.Name(statement.name), attr=name), statement)
            return
        target = _target(statement)
        if target is None or not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            return
        if self._is_seed(statement.value):
            yield Kept(target, statement)
        for entry, value in _entries(statement.value).items():
            if self._is_seed(value):
                yield Kept(ast.Subscript(value=target, slice=ast.Constant(entry)), statement)
        for name, value in self._members(statement.value).items():
            if self._is_seed(value):
                yield Kept(ast.Attribute(value=target, attr=name), statement)

    def _members(self, value: ast.expr) -> dict[str, ast.expr]:
        """The attributes of what a call makes: a name space, or an object of a class that works nothing out."""
        if not isinstance(value, ast.Call):
            return {}
        name = dotted_name(value.func)
        given = {one.arg: one.value for one in value.keywords if one.arg}
        whole = not value.args and len(given) == len(value.keywords)
        if name.rpartition(".")[2] in _NAME_SPACES:
            return given if whole else _entries(value.args[0]) if len(value.args) == 1 and not given else {}
        class_ = self._classes.get(name)
        if class_ is None or not whole or any(isinstance(one, _FUNCTIONS) for one in class_.body):
            return {}
        return {**_attributes(class_), **given}

    @functools.cached_property
    def _bare(self) -> frozenset[str]:
        """The names that are used as more than something that has attributes."""
        nodes = list(walk(self.tree))
        bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in bases)


def names_a_seed(tree: ast.AST) -> bool:
    """Whether a file has a parameter, a variable, an attribute, a field or an entry of a dictionary that is called a
    seed; those of functions that say that they seed aside."""
    queue = [tree]
    while queue:
        node = queue.pop()
        name: object = ""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and "seed" in node.name.lower():
            continue
        if isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, (ast.Attribute, ast.Name, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            name = _word(node)
        elif isinstance(node, ast.Dict):
            names = [one.value for one in node.keys if isinstance(one, ast.Constant)]
            name = next((one for one in names if isinstance(one, str) and SEED.fullmatch(one.lower())), "")
        if isinstance(name, str) and SEED.fullmatch(name.lower()):
            return True
        queue.extend(children(node))
    return False


def _target(statement: ast.stmt) -> ast.Name | None:
    target: ast.expr | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    return ast.Name(target.id) if isinstance(target, ast.Name) else None


def _entries(value: ast.expr) -> dict[str, ast.expr]:
    """The entries of a dictionary that is written out."""
    if isinstance(value, ast.Dict):
        return {
            key.value: one
            for key, one in zip(value.keys, value.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }
    if isinstance(value, ast.Call) and dotted_name(value.func) == "dict" and not value.args:
        return {one.arg: one.value for one in value.keywords if one.arg}
    return {}


def _attributes(class_: ast.ClassDef) -> dict[str, ast.expr]:
    """What the body of a class gives names."""
    found: dict[str, ast.expr] = {}
    for statement in class_.body:
        target = _target(statement)
        if target is not None and isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            found[target.id] = statement.value
    return found


def _stored(tree: ast.Module) -> Mapping[str, int]:
    """How often names of top level, attributes and entries are bound, by their keys; those that a class has aside."""
    found = Counter[str]()
    queue: list[tuple[ast.AST, bool]] = [(tree, True)]
    while queue:
        node, top = queue.pop()
        if isinstance(node, ast.Global):
            found.update(dict.fromkeys(node.names, 2))
        elif isinstance(node, ast.Name) and top and isinstance(node.ctx, ast.Store):
            found[node.id] += 1
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            found[key_of(node)] += 1
        inside = top and not isinstance(node, (*_FUNCTIONS, ast.ClassDef))
        queue.extend((one, inside) for one in children(node))
    return found


def _is_bound_once(one: Kept, stored: Mapping[str, int]) -> bool:
    if isinstance(one.value, ast.Name):
        return stored[one.value.id] == 1
    root = one.value
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    names = stored[root.id] if isinstance(root, ast.Name) else 2
    return stored[key_of(one.value)] == 0 and names == (not isinstance(one.statement, ast.ClassDef))


def _word(value: ast.expr) -> str:
    """The last word of what reads a seed."""
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        return str(value.slice.value).lower()
    return key_of(value).removeprefix(".").lower()
