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


_NOT_IN_SIGHT = Given((), {}, whole=False)
_ONCE = 2


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
            rest = _rest(keyword.value, rests) if rests is not None else _written(keyword.value, scope)
            keywords |= rest.keywords
            whole &= rest.whole
    return Given(tuple(positional), keywords, whole)


def _rest(starred: ast.expr, rests: Mapping[str, Given] | None) -> Given:
    found = rests.get(starred.id) if rests is not None and isinstance(starred, ast.Name) else None
    return found if found is not None else _NOT_IN_SIGHT


def _written(starred: ast.expr, scope: Scope) -> Given:
    """What a dictionary holds that the function around writes down once and changes nowhere: `common = {"size": 3}`."""
    function = scope.function if scope.function is not None else scope.file.tree
    if not isinstance(starred, ast.Name):
        return _NOT_IN_SIGHT
    made: list[ast.expr] = []
    for node in walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == starred.id:
                made.append(value)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name == starred.id:
                made.append(node)
            case (
                ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del())
                | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update" | "setdefault" | "pop" | "clear"))
            ) if name == starred.id:
                return _NOT_IN_SIGHT
    # The statement and the name that it binds.
    display = made[0] if len(made) == _ONCE else None
    match display:
        case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
            named = {str(getattr(key, "value", "")): (value, scope) for key, value in zip(keys, values, strict=True)}
            return Given((), named, whole=True)
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=words) if all(word.arg for word in words):
            return Given((), {str(word.arg): (word.value, scope) for word in words}, whole=True)
    return _NOT_IN_SIGHT


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
