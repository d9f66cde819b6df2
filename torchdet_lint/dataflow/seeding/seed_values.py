"""What a program seeds with -> whether a generator of another library takes it too."""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.dataflow.seeding.kept_seeds import SEED, KeptSeeds, key_of, names_a_seed, used_as_seeds
from torchdet_lint.dataflow.seeding.ordered import as_member
from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.dataflow.seeding.kept_seeds import Kept
    from torchdet_lint.dataflow.seeding.ordered import Seeding

# NumPy's generators take no seed outside of this; torch takes negative ones too, and `random` text.
_SEEDS = range(2**32)
_MODULI = tuple(f"2 ** {bits}" for bits in range(8, 33))
# Whole numbers of Python between two others, and what such may lie below.
_PICKED = ("random.randint", "random.randrange")
_ENDS = (*_MODULI, *(f"{end} - 1" for end in _MODULI))
_DEEP = 4
_OTHER = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.JoinedStr)
_TEXT = lazy(r"\b(?:environ|getenv|argv|input)\b")
# `argparse`, and what decorates a function for `click`, which hands it over as an argument.
_SEVERAL = ("parse_known_args", "parse_known_intermixed_args", "parse_args_into_dataclasses")
_ADDING = ("add_argument", "option")
# These give the same again, where they are called twice.
REPEATABLE_CALLS = ("int", "os.environ.get", "os.getenv")


class Option(NamedTuple):
    """An option of the command line: the attribute that it becomes, and whether what is parsed evidently has it, and
    every library takes it for a seed."""

    name: str
    suits: bool

    def is_used(self, text: str) -> bool:
        """Whether a file with that text reads the attribute."""
        return re.search(rf"\.{self.name}\b(?!\s*\()", text) is not None


class SeedValues:
    """The values that the names of one file are given, as far as they say what may be a seed."""

    def __init__(self, tree: ast.Module | None, elsewhere: Callable[[ast.expr], bool] | None = None) -> None:
        """`elsewhere` says whether a name, or an attribute of one, is a whole number that another file has."""
        self.tree = tree
        self._is_natural_elsewhere = elsewhere
        self._known_natural: dict[tuple[str, int], bool] = {}
        self._known_number: dict[str, bool] = {}

    def suits(self, seeding: Seeding, library: str) -> bool:
        """Whether a generator of `library` takes what `seeding` is given; "" where that is any library."""
        value = seeding.value
        if value is None or self._is_natural(value, _DEEP):
            return value is not None
        if library != "python" and "numpy" not in seeding.libraries:
            return False
        return self._may_be_number(key_of(value))

    def may_be_negative(self, seeding: Seeding) -> bool:
        """Whether what torch is seeded with is a whole number, as far as anybody sees; NumPy refuses a negative one."""
        value = seeding.value
        if value is None or "torch" not in seeding.libraries or _TEXT.search(ast.unparse(value)) is not None:
            return False
        return self._may_be_number(key_of(value))

    @functools.cached_property
    def option(self) -> Option | None:
        """The first option of the file that is called a seed, those before the others that it uses as one too; else
        one that it only uses so. What parses it is in sight where the file parses once."""
        used = used_as_seeds(self.tree)
        found: tuple[int, Option] | None = None
        for call, option in self._options:
            seeds = f".{option.name}" in used
            called = _is_called_a_seed(call, option)
            rank = 2 * called + seeds
            natural = self._is_natural(_option(call)[1], 0)
            if (called or (seeds and natural)) and (found is None or rank > found[0]):
                found = rank, option
        return found[1] if found is not None else None

    def option_called(self, name: str) -> Option | None:
        """The one option of the file that is called a seed, and becomes the attribute `name`."""
        named = [(call, option) for call, option in self._options if option.name == name]
        found = [option for call, option in named if _is_called_a_seed(call, option)]
        return found[0] if len(found) == 1 else None

    @functools.cached_property
    def _options(self) -> list[tuple[ast.Call, Option]]:
        """The calls that add options, and these."""
        methods = self._methods
        parsers = [name for _, name in methods if name.startswith("parse_")]
        divided = any(name == "add_subparsers" for _, name in methods)
        found = []
        for call in (call for call, name in methods if name in _ADDING):
            name, default = _option(call)
            given = {one.arg for one in call.keywords}
            kept = not given.isdisjoint(("default", "required")) and "nargs" not in given
            alone = not name.endswith("seeds")
            suits = alone and len(parsers) == 1 and not divided and kept and self._is_natural(default, 0)
            found.append((call, Option(name, suits)))
        return found

    @functools.cached_property
    def kept(self) -> list[Kept]:
        """The seeds that the file keeps at top level, those first that it uses as seeds."""
        return KeptSeeds(self.tree, self._is_written).all if self.tree is not None else []

    @functools.cached_property
    def names_a_seed(self) -> bool:
        """Whether something in the file is called a seed, wherever that can be read."""
        return self.tree is not None and names_a_seed(self.tree)

    def _is_written(self, value: ast.expr | None) -> bool:
        """Whether `value` is evidently a whole number that every library takes, the same in every run of a command."""
        calls = (one for one in walk(value) if isinstance(one, ast.Call)) if value is not None else ()
        return self._is_natural(value, 0) and all(ast.unparse(one.func) in REPEATABLE_CALLS for one in calls)

    @functools.cached_property
    def names_at_run_time(self) -> bool:
        """Whether the file adds options whose names only the run knows: one of them may be a seed."""
        named = (call.args[0] for call, name in self._methods if name == "add_argument" and call.args)
        return any(isinstance(name, (ast.JoinedStr, ast.BinOp)) for name in named)

    @functools.cached_property
    def _methods(self) -> list[tuple[ast.Call, str]]:
        """The calls of methods in the file, each with the method's name."""
        calls = (node for node in walk(self.tree) if isinstance(node, ast.Call)) if self.tree is not None else ()
        return [(call, call.func.attr) for call in calls if isinstance(call.func, ast.Attribute)]

    def parsed_by(self, call: ast.Call) -> str:
        """What `call` gives that holds the options of the file: "object", "tuple" where that is the first of several,
        else ""."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name.startswith("parse_"):
            return "tuple" if name in _SEVERAL else "object"
        body = self.tree.body if self.tree is not None else ()
        functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
        found = {self._returned(node) for node in functions}
        return found.pop() if len(found) == 1 else ""

    def holder(self, call: ast.Call, statement: ast.Assign) -> str:
        """The name that `statement` gives the options of the file, which `call` parses; empty where it does not."""
        target = statement.targets[0]
        first = target.elts[0] if isinstance(target, ast.Tuple) else target
        fits = self.parsed_by(call) == ("tuple" if isinstance(target, ast.Tuple) else "object")
        return first.id if isinstance(first, ast.Name) and fits else ""

    def _returned(self, function: ast.FunctionDef) -> str:
        bound: dict[str, set[str]] = {}
        for node in walk(function):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                parsed = _parsed(node.value) if isinstance(node, ast.Assign) else ""
                first = target.elts[0] if isinstance(target, ast.Tuple) else target
                if isinstance(first, ast.Name):
                    fits = (parsed == "tuple") is isinstance(target, ast.Tuple)
                    bound.setdefault(first.id, set()).add(parsed if fits else "")
        found = set()
        for node in walk(function):
            if isinstance(node, ast.Return):
                several = isinstance(node.value, ast.Tuple)
                value = node.value.elts[0] if isinstance(node.value, ast.Tuple) else node.value
                if isinstance(value, ast.Name):
                    known = bound.get(value.id, {""})
                    found.add("" if "" in known else "tuple" if several else "object")
                else:
                    found.add("" if several or value is None else _parsed(value))
        return found.pop() if len(found) == 1 else ""

    def _is_natural(self, value: ast.expr | None, depth: int) -> bool:
        """Whether `value` is evidently a whole number that every library takes for a seed."""
        if isinstance(value, ast.Constant):
            return isinstance(value.value, int) and value.value in _SEEDS
        if isinstance(value, ast.BinOp):
            if isinstance(value.op, ast.Mod):
                return ast.unparse(value.right) in _MODULI
            parts = (value.left, value.right)
            return isinstance(value.op, ast.Add) and all(self._is_natural(one, depth) for one in parts)
        if isinstance(value, ast.Call):
            if ast.unparse(value.func) in _PICKED and value.args and not value.keywords:
                return all(ast.unparse(one) in _ENDS or self._is_natural(one, 0) for one in value.args)
            return isinstance(value.func, ast.Name) and value.func.id == "int"
        if depth > 0 and self._only_natural(key_of(value), depth - 1):
            return True
        told = self._is_natural_elsewhere if value is not None and key_of(value) not in self._names else None
        return depth > 0 and told is not None and value is not None and told(value)

    def is_constant(self, name: str) -> bool:
        """Whether the file gives `name` nothing but whole numbers that every library takes for a seed."""
        return self._only_natural(name, 1)

    def _only_natural(self, key: str, depth: int) -> bool:
        """Whether what has the `key` is given in the file, and only natural numbers."""
        if (key, depth) not in self._known_natural:
            given = self._names.get(key, [])
            self._known_natural[key, depth] = bool(given) and all(self._is_natural(one, depth) for one in given)
        return self._known_natural[key, depth]

    def _may_be_number(self, key: str) -> bool:
        """Whether nothing that what has the `key` is given in the file is evidently no number."""
        if key not in self._known_number:
            self._known_number[key] = not any(_is_no_number(one) for one in self._names.get(key, []))
        return self._known_number[key]

    @functools.cached_property
    def _names(self) -> dict[str, list[ast.expr | None]]:
        """What the names of the file are given, by their keys; None for what is out of sight."""
        found: dict[str, list[ast.expr | None]] = {}
        known: dict[ast.AST, ast.expr | None] = {}
        for node in walk(self.tree) if self.tree is not None else ():
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    known[target] = node.value
            elif isinstance(node, ast.NamedExpr):
                known[node.target] = node.value
            elif isinstance(node, ast.Call) and dotted_name(node.func).endswith("add_argument"):
                option, default = _option(node)
                found.setdefault(f".{option}", []).append(default)
            elif isinstance(node, ast.arg):
                whole = isinstance(node.annotation, ast.Name) and node.annotation.id == "int"
                found.setdefault(node.arg, []).append(ast.Constant(0) if whole else None)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.setdefault(node.id, []).append(known.get(node))
            elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                found.setdefault(key_of(as_member(node)), []).append(known.get(node))
        return found


def _is_no_number(value: ast.expr | None) -> bool:
    text = isinstance(value, ast.Constant) and isinstance(value.value, (str, bytes))
    return text or isinstance(value, _OTHER)


def _parsed(value: ast.expr) -> str:
    """What `value` is of a call that parses the command line: see `SeedValues.parsed_by`."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)):
        return ""
    name = value.func.attr
    return "tuple" if name in _SEVERAL else "object" if name.startswith("parse_") else ""


def _flags(call: ast.Call) -> list[str]:
    """The names by which the command line knows an option: the long ones, if there are any."""
    names = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    long = [name for name in names if name.startswith("--")] or names
    return [name.lstrip("-").replace("-", "_") for name in long]


def _is_called_a_seed(call: ast.Call, option: Option) -> bool:
    return any(SEED.fullmatch(known.lower()) for known in (option.name, *_flags(call)))


def _option(call: ast.Call) -> tuple[str, ast.expr | None]:
    """The attribute that an option of the command line becomes, and its default where that is a whole number."""
    given = {one.arg: one.value for one in call.keywords}
    kind, default, dest = given.get("type"), given.get("default", ast.Constant(0)), given.get("dest")
    whole = isinstance(kind, ast.Name) and kind.id == "int"
    name = dest.value if isinstance(dest, ast.Constant) else next(iter(_flags(call)), "")
    return str(name), default if whole else None
