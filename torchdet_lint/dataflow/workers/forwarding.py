"""What a constructor is given -> what it gives the constructor of its base class."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.prefilter.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchdet_lint.dataflow.workers.scopes import Scope


class Given(NamedTuple):
    """The arguments of a call and where each of them stands: those by place, up to a starred expression, and those by
    name; whether these are all."""

    positional: tuple[tuple[ast.expr, Scope], ...]
    keywords: dict[str, tuple[ast.expr, Scope]]
    whole: bool

    def parameters(self, function: ast.FunctionDef) -> dict[str, tuple[ast.expr, Scope]]:
        """What the parameters of the constructor `function` are given."""
        return dict(zip(_by_place(function), self.positional, strict=False)) | self.keywords

    def above(self, function: ast.FunctionDef, call: ast.Call, scope: Scope) -> Given:
        """What the constructor `function`, which is given this, gives by `call` in `scope`: `super().__init__(*args,
        **kwargs)` gives the rest of it."""
        named = _by_place(function)
        known = {*named, *(one.arg for one in function.args.kwonlyargs)}
        others = {name: bound for name, bound in self.keywords.items() if name not in known}
        rests: dict[str, Given] = {}
        if function.args.vararg is not None and _only_hands_on(function, function.args.vararg.arg):
            rests[function.args.vararg.arg] = Given(self.positional[len(named) :], {}, self.whole)
        if function.args.kwarg is not None and _only_hands_on(function, function.args.kwarg.arg):
            rests[function.args.kwarg.arg] = Given((), others, self.whole)
        return given_by(call, scope, rests)


def given_by(call: ast.Call, scope: Scope, rests: Mapping[str, Given] | None = None) -> Given:
    """What `call` in `scope` gives; `rests` is what starred names stand for."""
    positional: list[tuple[ast.expr, Scope]] = []
    keywords: dict[str, tuple[ast.expr, Scope]] = {}
    whole = True
    for argument in call.args:
        if not isinstance(argument, ast.Starred):
            positional.append((argument, scope))
            continue
        rest = _rest(argument.value, rests)
        positional += rest.positional
        if not rest.whole:
            whole = False
            break
    for keyword in call.keywords:
        if keyword.arg is not None:
            keywords[keyword.arg] = (keyword.value, scope)
        else:
            rest = _rest(keyword.value, rests)
            keywords |= rest.keywords
            whole &= rest.whole
    return Given(tuple(positional), keywords, whole)


def _rest(starred: ast.expr, rests: Mapping[str, Given] | None) -> Given:
    found = rests.get(starred.id) if rests is not None and isinstance(starred, ast.Name) else None
    return found if found is not None else Given((), {}, whole=False)


def _only_hands_on(function: ast.FunctionDef, parameter: str) -> bool:
    """Whether `function` does nothing with a starred parameter but give it to calls as it came."""
    handed = {id(value) for node in walk(function) if isinstance(node, ast.Call) for value in _starred(node)}
    return all(id(node) in handed for node in walk(function) if isinstance(node, ast.Name) and node.id == parameter)


def _starred(call: ast.Call) -> Iterator[ast.expr]:
    yield from (one.value for one in call.args if isinstance(one, ast.Starred))
    yield from (one.value for one in call.keywords if one.arg is None)


def _by_place(function: ast.FunctionDef) -> list[str]:
    """The parameters of a constructor that are given by place, but for the object itself."""
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)][1:]
