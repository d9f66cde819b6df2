"""A call and the scope it stands in -> what it passes, by place and by name."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.program.events import REST, STARTED_WITH, Argument, Event, is_result
from torchdet_lint.program.syntax.conditions import decided
from torchdet_lint.program.syntax.parameters.entries import entries_of, entry_in
from torchdet_lint.program.syntax.parameters.lengths import length_of
from torchdet_lint.program.syntax.parameters.rebinding import OPEN, remade
from torchdet_lint.program.syntax.scopes import DEPTH, constant, followed, is_one_of_texts
from torchdet_lint.program.syntax.shapes import (
    PASSED_ON,
    asks_for_training,
    device_in,
    last_word,
    parameters_of,
    tail_of,
)
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.program.syntax.names import Resolver
    from torchdet_lint.program.syntax.scopes import Scope


# A class method that makes an object of its class with the options of a command line.
_OF_OPTIONS = "from_argparse_args"
# What is never None, and the calls of which that is so: of tensors and arrays, of types, of classes.
_SOMETHING = (
    ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr,
    ast.Lambda, ast.BinOp,
)  # fmt: skip
_GIVES_SOMETHING = lazy(
    r"(?:torch|numpy)\.[a-z]\w*(?:\(\)\.(?!get\b)\w+)*|builtins\.(?:dict|float|int|len|list|range|set|sorted|str|tuple)|(?:.*[.:])?[A-Z]\w*"
)
# How the names end of what makes loaders.
_LOADERS = "Loader"
_PARSER = "argparse.ArgumentParser()"
# What stands behind a dictionary that is changed.
_CHANGES = ("[", ".update", ".setdefault")


class Arguments:
    """What the calls of one body pass."""

    def __init__(self, names: Resolver, scope: Scope) -> None:
        self.names = names
        self.scope = scope
        self._joined: dict[tuple[Scope, str], dict[str, Argument]] = {}
        # Whether the arguments of a loader are looked at, which a name may lead back to.
        self._in_loader = False

    def argument(self, node: ast.expr) -> Argument:
        """An argument as a caller needs to know it."""
        known = constant(node, self.scope)
        known = self._chosen(node) if known is None else known
        if known is None and (entry := entry_in(node)) is not None:
            held = dict(entries_of(entry[0], self.names, self.scope)).get(entry[1])
            if held is not None:
                return held
        if known is not None:
            return Argument((), True, known[0], length=length_of(node, self.scope))
        if isinstance(node, (ast.BoolOp, ast.IfExp)) and asks_for_training(
            node.test if isinstance(node, ast.IfExp) else node
        ):
            return Argument(("?.training",))
        names = self.names.resolve(node, self.scope)
        if isinstance(node, ast.Subscript):
            names = names or self.names.path(node, self.scope)
        tail = tail_of(node) if not names and not is_one_of_texts(node, self.scope) else ""
        present, loader = self._is_something(node), self.loader(node)
        told = remade(node, self.scope) if len(names) == 1 and names[0][0] == "$" else None
        rebound = told[1] if told is not None and names == (f"${told[0]}",) else OPEN if told is not None else ()
        shown = names or ((f"?.{tail}",) if tail else ())
        length = length_of(node, self.scope)
        entries = entries_of(node, self.names, self.scope)
        return Argument(shown, present=present, loader=loader, rebound=rebound, length=length, entries=entries)

    def _loaded(self, node: ast.expr) -> Argument:
        """An argument of a loader, with the call that makes it in the same body."""
        found = self.argument(node)
        made, where = followed(node, self.scope) if found.names else (node, self.scope)
        if not isinstance(made, ast.Call) or where is not self.scope:
            return found
        return replace(found, made=(made.lineno, made.col_offset))

    def loader(self, node: ast.expr) -> Event | None:
        """What iterating `node` does, where that is a loader made in sight, or an attribute that is given one alone."""
        if self._in_loader:
            return None
        made, where = self._kept(*followed(node, self.scope))
        for _ in range(DEPTH):  # a name may lead back to itself: `files = sorted(files)`
            if not (isinstance(made, ast.Call) and made.args and last_word(made.func) in PASSED_ON):
                break
            made, where = self._kept(*followed(made.args[0], where))
        if not isinstance(made, ast.Call) or not last_word(made.func).endswith(_LOADERS):
            return None
        names = self.names.resolve(made.func, where)
        if not names:
            return None
        arguments = self if where is self.scope else Arguments(self.names, where)
        arguments._in_loader = True
        given = arguments.of(made)
        arguments._in_loader = False
        return Event("iterate", made.lineno, made.col_offset, made.lineno, names, *given)

    def _kept(self, node: ast.expr, scope: Scope) -> tuple[ast.expr, Scope]:
        """The one value that the class of a method gives to an attribute of its object, and where; `node` itself where
        it is none."""
        method = scope.method if isinstance(node, ast.Attribute) else None
        class_ = method.outer if method is not None and method.first == "self" else None
        if class_ is None or method is None or class_.kind != "class" or not isinstance(node, ast.Attribute):
            return node, scope
        if dotted_name(node.value) != parameters_of(method.node.args)[0].arg or not self.names.makes_loaders:
            return node, scope
        values = self.names.values_of(class_).get(node.attr, ())
        return followed(*values[0]) if len(values) == 1 else (node, scope)

    def _is_something(self, node: ast.expr) -> bool:
        """Whether `node` is evidently not None: written out, computed, a slice, or an object that is made for it."""
        made, where = followed(node, self.scope)
        if isinstance(made, ast.Subscript):
            parts = made.slice.elts if isinstance(made.slice, ast.Tuple) else [made.slice]
            return any(isinstance(part, ast.Slice) for part in parts)
        if not isinstance(made, ast.Call):
            return isinstance(made, _SOMETHING)
        names = self.names.resolve(made.func, where)
        return bool(names) and all(_GIVES_SOMETHING.fullmatch(name) for name in names)

    def _chosen(self, node: ast.expr) -> tuple[object] | None:
        """The constant that a choice of a device comes to where the file decides it, in a 1-tuple, or None."""
        made, where = followed(node, self.scope)
        choice = device_in(made) or made
        if not isinstance(choice, ast.IfExp) or (holds := decided(choice.test, self.names, where)) is None:
            return None
        return constant(choice.body if holds else choice.orelse, where)

    def of(self, node: ast.Call) -> tuple[tuple[Argument, ...], dict[str, Argument], bool]:
        """What a call is given by place and by name, and whether there may be more."""
        opaque = any(isinstance(arg, ast.Starred) for arg in node.args) or last_word(node.func) == _OF_OPTIONS
        given = (self._rest(arg) if isinstance(arg, ast.Starred) else arg for arg in node.args)
        argument = self._loaded if last_word(node.func).endswith(_LOADERS) else self.argument
        positional = tuple(argument(arg) for arg in given if arg is not None)
        keywords = {word.arg: argument(word.value) for word in node.keywords if word.arg is not None}
        if STARTED_WITH in keywords:
            shown = next(word.value for word in node.keywords if word.arg == STARTED_WITH)
            keywords[STARTED_WITH] = replace(keywords[STARTED_WITH], elements=self._elements(shown))
        for word in node.keywords:
            if word.arg in self.names.words.configures:
                keywords = self.configured(word.value, self.names.words.configures[word.arg]) | keywords
            if word.arg is None:
                unpacked, whole = self.unpacked(word.value)
                if not whole:
                    unpacked = {name: replace(one, unsure=True) for name, one in unpacked.items()}
                keywords = unpacked | keywords
                opaque = opaque or not whole
                if not whole and (rest := self._handed_on(word.value)) is not None:
                    keywords[REST] = rest
        return positional, keywords, opaque

    def _handed_on(self, node: ast.expr) -> Argument | None:
        """What `**node` passes on: a parameter, a part of one, what a function gives, or what is written out, of which
        some may change."""
        names = self.names.path(node, self.scope)
        given = self.names.resolve(node, self.scope) if not names else ()
        names = names or (given if len(given) == 1 and is_result(given[0]) and given[0][0] not in "$?" else ())
        entries = entries_of(node, self.names, self.scope)
        return Argument(names, unsure=self._is_changed(node), entries=entries) if names or entries else None

    def _elements(self, node: ast.expr) -> tuple[Argument, ...]:
        """The arguments that a display holds, if it shows all of them."""
        display, where = followed(node, self.scope)
        whole = isinstance(display, (ast.List, ast.Tuple)) and length_of(node, self.scope) >= 0
        elements = display.elts if isinstance(display, (ast.List, ast.Tuple)) and whole and where is self.scope else []
        return tuple(self.argument(one) for one in elements)

    def composed(self, node: ast.Call) -> bool:
        """Whether what a call hands on by `**` is put together in this file: dictionaries that it fills key by key, and
        options that it parses."""
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            return False
        return all(self._is_composed(word.value) for word in node.keywords if word.arg is None)

    def _is_changed(self, node: ast.expr) -> bool:
        """Whether the function may change the dictionary that it calls by the name `node`."""
        if not isinstance(node, ast.Name) or self.scope.kind != "function":
            return True
        around = self.scope.node
        # A body that was filled in later ends below its function.
        end = max(around.end_lineno or 0, around.body[-1].end_lineno or 0)
        changes = re.compile(rf"\b{re.escape(node.id)}(?:\[|\.(?:update|setdefault|pop)\b)")
        return any(map(changes.search, self.names.scopes.hollow.lines[around.lineno - 1 : end]))

    def _is_composed(self, node: ast.expr) -> bool:
        made, where = followed(node, self.scope)
        home = self.scope.home(made.id) if isinstance(made, ast.Name) else None
        if home is not None and isinstance(made, ast.Name):
            filled = [bound for bound in home.bindings[made.id] if bound.kind != "part"]
            made, where = (filled[0].value or made) if len(filled) == 1 else made, home
        if (options := options_in(made)) is not None:
            parsed, where = followed(options, where)
            function = parsed.func if isinstance(parsed, ast.Call) else parsed
            return any(name.startswith(_PARSER) for name in self.names.resolve(function, where))
        pairs = self.pairs(made, where)
        if pairs is None or not all(isinstance(key, ast.Constant) for key, _ in pairs):
            return False
        changed = re.compile(rf"\b{re.escape(dotted_name(node) or '{')}(?:\.update|\.setdefault|\[(?!['\"]))")
        return not any(map(changed.search, self.names.scopes.hollow.lines))

    def _rest(self, node: ast.Starred) -> ast.Name | None:
        """`args` of `*args`, where the function takes it so and hands it on; None for all else."""
        rest = node.value if isinstance(node.value, ast.Name) and self.scope.kind == "function" else None
        own = self.scope.node.args.vararg if rest is not None else None
        return rest if own is not None and rest is not None and own.arg == rest.id else None

    def configured(self, node: ast.expr, class_: str) -> dict[str, Argument]:
        """What an object of `class_` that is made in sight holds for the call that it is passed to."""
        made, where = followed(node, self.scope)
        if not isinstance(made, ast.Call) or class_ not in self.names.resolve(made.func, where):
            return {}
        given = {word.arg: constant(word.value, where) for word in made.keywords if word.arg is not None}
        return {name: Argument((), True, known[0]) for name, known in given.items() if known is not None}

    def unpacked(self, node: ast.expr) -> tuple[dict[str, Argument], bool]:
        """What `**node` passes, and whether that is all."""
        literal, where = followed(node, self.scope)
        if isinstance(literal, ast.Attribute) and len(kept := self.names.kept(literal, where)) == 1:
            literal, where = kept[0]
        arms = [literal.body, literal.orelse] if isinstance(literal, ast.IfExp) else [literal]
        written = [self.pairs(arm, where) for arm in arms]
        told = [pairs for pairs in written if pairs is not None]
        if len(told) < len(arms):
            return self.joined(node), False
        changed = isinstance(node, (ast.Name, ast.Attribute)) and any(
            f"{dotted_name(node)}{change}" in self.names.scopes.hollow.text for change in _CHANGES
        )
        whole = all(isinstance(key, ast.Constant) for pairs in told for key, _ in pairs) and not any(
            isinstance(arm, ast.Call) and arm.args for arm in arms
        )
        return _of_either([self._items(pairs, where) for pairs in told]), not changed and whole

    def _items(self, pairs: list[tuple[ast.expr | None, ast.expr]], where: Scope) -> dict[str, Argument]:
        found: dict[str, Argument] = {}
        for key, value in pairs:
            if isinstance(key, ast.Constant):
                known = constant(value, where)
                names = () if known else self.names.resolve(value, where)
                found[str(key.value)] = Argument(names, True, known[0]) if known else Argument(names)
        return found

    def pairs(self, literal: ast.expr, where: Scope) -> list[tuple[ast.expr | None, ast.expr]] | None:
        """Keys and values of a dictionary that is written out; None: it is none."""
        if isinstance(literal, ast.Dict):
            return list(self._entries(literal, where))
        if isinstance(literal, ast.Call) and self.names.resolve(literal.func, where) == ("builtins.dict",):
            return [(ast.Constant(word.arg) if word.arg else None, word.value) for word in literal.keywords]
        return None

    def _entries(self, literal: ast.Dict, where: Scope) -> Iterator[tuple[ast.expr | None, ast.expr]]:
        """The keys and values of a display, with those of a plain dictionary that is unpacked into it."""
        for key, value in zip(literal.keys, literal.values, strict=True):
            inner = followed(value, where)[0] if key is None else None
            if isinstance(inner, ast.Dict) and all(
                isinstance(one, ast.Constant) for one in (*inner.keys, *inner.values)
            ):
                yield from zip(inner.keys, inner.values, strict=True)
            else:
                yield key, value

    def joined(self, node: ast.expr) -> dict[str, Argument]:
        """What the dictionaries hold that `node` may be: `if options is None: options = dict(…)`, `options or {…}`."""
        home = self.scope.home(node.id) if isinstance(node, ast.Name) else None
        if home is None or not isinstance(node, ast.Name):
            return self._held([node], self.scope)
        key = home, node.id
        if key not in self._joined:
            values = [bound.value for bound in home.bindings[node.id] if bound.kind == "value"]
            self._joined[key] = self._held([value for value in values if value is not None] or [node], home)
        return dict(self._joined[key])

    def _held(self, values: list[ast.expr], where: Scope) -> dict[str, Argument]:
        found: dict[str, Argument] = {}
        for value in values:
            for one in value.values if isinstance(value, ast.BoolOp) else [value]:
                for key, item in self.pairs(one, where) or ():
                    if isinstance(key, ast.Constant):
                        found.setdefault(str(key.value), self.argument(item))
        return found


def options_in(node: ast.expr) -> ast.expr | None:
    """`args` of `vars(args)` and of `args.__dict__`."""
    if isinstance(node, ast.Call) and last_word(node.func) == "vars" and len(node.args) == 1:
        return node.args[0]
    return node.value if isinstance(node, ast.Attribute) and node.attr == "__dict__" else None


def _of_either(arms: list[dict[str, Argument]]) -> dict[str, Argument]:
    """What is passed where a condition picks one of `arms`: of what they do not agree on, nothing is known."""
    first, *others = arms
    return {
        key: first[key] if key in first and all(arm.get(key) == first[key] for arm in others) else Argument()
        for key in dict.fromkeys(key for arm in arms for key in arm)
    }
