"""An expression that makes an object of the text which names it -> the text, as a name of the program has it.

In a name, braces hold what is known of such a text (`events.NAMED`): `@.import_class{net/st_gcn/Model}` is what
`import_class("net.st_gcn.Model")` gives, `{$name}` the text that a parameter of the function is, `{$config/target}` an
entry of it, and `{?model/target}` what configurations and command lines have under `model.target`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.syntax.scopes import DEPTH, NAMES, followed
from torchdet_lint.program.syntax.shapes import goes_through_table, parameters_of
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.program.events import Names
    from torchdet_lint.program.syntax.scopes import Scope

DOTTED = lazy(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+")
# A name, or what stands in something that has one.
NAME = lazy(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
"""A text that may name something of a module: `net.st_gcn.Model`, `net.st_gcn:Model`."""
OF_PARAMETER = "{$"
"""What begins a text that a parameter is, in a name."""
OF_MODULE = "!"
"""What begins the name of a module that a function makes a table of, in braces: `@.classes_of{!nets}`."""
KEYED_ITEM = lazy(r"\[([=$])([\w-]+)\]")
"""In a name: an item of what stands before it by its key, a text, `[=train]`, or what a parameter is, `[$name]`."""
BY_PARAMETER = "[$"
_PARAMETER = lazy(r"\{\$(\w+)")
_SPLITS = frozenset({"split", "rsplit", "partition", "rpartition"})
_TRIMS = frozenset({"lower", "replace", "strip"})
_IMPORTS = frozenset({"builtins.__import__", "importlib.import_module"})
_RELOADS = frozenset({"importlib.reload", "imp.reload"})
# So many keys lead to an entry of a configuration, and to one of an entry that a function is given.
_KEYS = 3
_MOST_KEYS = 5

Place = tuple[ast.expr, "Scope"]


def spelled(text: str) -> str:
    """A text that names something, as braces hold it."""
    return text.replace(":", ".").replace(".", "/")


def with_text(name: str, parameter: str, text: str) -> str:
    """`name` with what is known of the text that `parameter` is: nothing of an entry of a constant."""
    entries = text.startswith(("?", "$"))
    pattern = rf"\{{\${re.escape(parameter)}(?={'[/}]' if entries else '}'})"
    return re.sub(pattern, lambda _: f"{{{text}", name) if f"{{${parameter}" in name else name


def longer(text: str, keys: Sequence[str]) -> str:
    """The keys of a `text` with more of them: the last few, for a function may call itself for a part of a part."""
    parts = [*text[1:].split("/"), *keys]
    return f"?{'/'.join(parts[-_MOST_KEYS:])}"


def taken_as_text(name: str) -> Iterator[str]:
    """The parameters of the function around of which `name` says that they are texts, or have some."""
    return (match[1] for match in _PARAMETER.finditer(name))


def names_attribute(name: str, parameter: str) -> bool:
    """Whether `name` says that a parameter names an attribute of something: `getattr(hub, name)`."""
    return f".{OF_PARAMETER}{parameter}}}" in name


def unbound(text: str) -> str:
    """The keys of a parameter of which nothing is known, or of an entry of it: the names say what it is."""
    parameter, slash, keys = text[1:].partition("/")
    return f"?{parameter}~{slash}{keys}"


def texts(node: ast.expr, scope: Scope, *, evaluated: bool = False) -> list[str]:
    """The constants that name something which `node` may be: one that it is, that one of two arms, a table or a loop
    over one gives. They name it in full, unless the text is `evaluated` where it stands."""
    form = NAME if evaluated else DOTTED
    found: list[str] = []
    left: list[Place] = [(node, scope)]
    for _ in range(4 * NAMES):
        if not left:
            break
        one, where = left.pop()
        if isinstance(one, ast.Constant):
            found += [one.value] if isinstance(one.value, str) and form.fullmatch(one.value) else []
        elif isinstance(one, ast.IfExp):
            left += [(one.orelse, where), (one.body, where)]
        elif isinstance(one, ast.BoolOp):
            left += [(value, where) for value in one.values]
        elif isinstance(one, ast.Name):
            left += [(value, home) for value, home in reversed(list(_bound(one, where)))]
        elif (table := _table(one)) is not None:
            left += reversed(_entries(*table, where))
    return list(dict.fromkeys(found))


def _bound(node: ast.Name, scope: Scope) -> Iterator[Place]:
    """What a name is given in each place, and what of a loop over a display; nothing where it is given something
    else."""
    home = scope.home(node.id)
    bounds = home.bindings[node.id] if home is not None else []
    if home is None or any(bound.kind not in ("value", "element") or bound.value is None for bound in bounds):
        return
    for bound in bounds:
        value = bound.value
        if bound.kind == "element" and value is not None:
            if isinstance(value, ast.Call) and goes_through_table(value) and isinstance(value.func, ast.Attribute):
                value = value.func.value
            shown, where = followed(value, home)
            elements = shown.values if isinstance(shown, ast.Dict) else getattr(shown, "elts", ())
            yield from ((one, where) for one in elements[: 2 * NAMES])
        elif value is not None and not (isinstance(value, ast.Name) and value.id == node.id):
            yield value, home


def _table(node: ast.expr) -> tuple[ast.expr, ast.expr, Sequence[ast.expr]] | None:
    """The table, the key and what there is otherwise in `table[key]` and `table.get(key, other)`."""
    match node:
        case ast.Subscript(value=holder, slice=key):
            return holder, key, ()
        case ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[key, *others]):
            return holder, key, others
    return None


def _entries(holder: ast.expr, key: ast.expr, others: Sequence[ast.expr], scope: Scope) -> list[Place]:
    """The entries of a dictionary that is written out which a key may pick."""
    shown, where = followed(holder, scope)
    if not isinstance(shown, ast.Dict):
        return []
    pairs = list(zip(shown.keys, shown.values, strict=True))[: 2 * NAMES]
    if isinstance(key, ast.Constant):
        pairs = [(one, value) for one, value in pairs if isinstance(one, ast.Constant) and one.value == key.value]
    return [*((value, where) for _, value in pairs), *((other, scope) for other in others)]


def sources(node: ast.expr, scope: Scope, *, parameters: bool) -> list[str]:
    """What braces hold of a text `node`: constants, an entry of a configuration, and, if `parameters` are wanted, one
    of the function and an entry of it."""
    found = [spelled(text) for text in texts(node, scope)]
    if found:
        return found[:NAMES]
    node, scope = followed(node, scope)
    keys: list[str] = []
    inner = node
    while len(keys) < _KEYS and (entry := _entry(inner)) is not None:
        inner, key = entry
        keys.insert(0, key)
    if not isinstance(inner, ast.Name):
        return [f"?{'/'.join(keys)}"] if keys and isinstance(inner, (ast.Call, ast.Attribute)) else []
    own = scope.bindings.get(inner.id, ()) if scope.kind == "function" else ()
    if not any(bound.kind == "parameter" for bound in own):
        return [f"?{'/'.join(keys)}"] if keys else []
    if scope.first and parameters_of(scope.node.args)[0].arg == inner.id:
        # The first attribute may hold the whole: `self.arg.model`.
        return [f"?{keys[0]}~/{'/'.join(keys[1:])}" if keys[1:] else f"?{keys[0]}"] if keys else []
    if parameters:
        return [f"${'/'.join((inner.id, *keys))}"]
    return [f"?{'/'.join(keys)}"] if keys else []


def _entry(node: ast.expr) -> tuple[ast.expr, str] | None:
    """What holds an entry, and the key, of `args.model`, `config["model"]` and `config.get("model")`."""
    if isinstance(node, ast.Attribute):
        return node.value, node.attr
    table = _table(node)
    key = table[1].value if table is not None and isinstance(table[1], ast.Constant) else None
    return (table[0], key) if table is not None and isinstance(key, str) and key.isidentifier() else None


class Named:
    """Finds the texts that imports take apart. `resolve` is a `Resolver`'s."""

    def __init__(self, resolve: Callable[[ast.expr, Scope, int], Names]) -> None:
        self.resolve = resolve

    def text_of(self, node: ast.Call, scope: Scope, depth: int) -> Place | None:
        """The text that names what a call of `getattr`, or of `reduce` with that, gives: of `getattr(module, name)`,
        where `module` is imported by a part of the text of which `name` is another."""
        owner, part = node.args[0], node.args[1]
        if len(node.args) > 2 and self._is(owner, scope, depth, "builtins.getattr"):
            owner = node.args[2]
        whole = _whole(part, scope)
        if whole is None or not whole[1]:
            return None
        imported = self._imported(owner, scope, depth)
        return whole[0] if imported is not None and _alike(imported, whole[0]) else None

    def _is(self, node: ast.expr, scope: Scope, depth: int, *names: str) -> bool:
        return not {*names}.isdisjoint(self.resolve(node, scope, depth - 1))

    def _imported(self, node: ast.expr, scope: Scope, depth: int) -> Place | None:
        """The text by a part of which the module `node` is imported."""
        if isinstance(node, ast.Name):
            home = scope.home(node.id)
            values = [bound.value for bound in home.bindings[node.id]] if home is not None else []
            found = [
                self._imported(value, home or scope, depth - 1)
                for value in values
                if value is not None and depth > 0 and not _goes_on(value, node.id)
            ]
            return found[0] if len(found) == 1 else None
        if isinstance(node, ast.Subscript) and self._is(node.value, scope, depth, "sys.modules"):
            whole = _whole(node.slice, scope)
            return whole[0] if whole is not None else None
        if not isinstance(node, ast.Call) or not node.args:
            return None
        if self._is(node.func, scope, depth, *_RELOADS):
            return self._imported(node.args[0], scope, depth - 1) if depth > 0 else None
        whole = _whole(node.args[0], scope) if self._is(node.func, scope, depth, *_IMPORTS) else None
        return whole[0] if whole is not None else None


def _goes_on(value: ast.expr, name: str) -> bool:
    """Whether `value` is `getattr(name, …)`: the next part below what the name stands for."""
    match value:
        case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=owner), *_]):
            return owner == name
    return False


def _whole(node: ast.expr, scope: Scope) -> tuple[Place, bool] | None:
    """The text of which `node` is a part, or is itself, and whether it is a part."""
    parted = False
    for _ in range(DEPTH):
        match node:
            case ast.Name(id=name):
                home = scope.home(name)
                bounds = home.bindings[name] if home is not None else []
                if home is None or any(bound.kind == "parameter" for bound in bounds):
                    break
                value = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "value" else None
                if value is None:
                    value = _looped(name, home)
                if value is None:
                    break
                node, scope = value, home
            case ast.Call(func=ast.Attribute(value=ast.Constant(value="."), attr="join"), args=[parts]):
                node = parts
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _SPLITS | _TRIMS:
                parted = parted or method in _SPLITS
                node = inner
            case ast.Subscript(value=inner, slice=key) if not isinstance(getattr(key, "value", None), str):
                parted = parted or isinstance(key, ast.Slice)
                node = inner
            case _:
                break
    return (node, scope), parted


def _looped(name: str, scope: Scope) -> ast.expr | None:
    """What a loop of `scope` goes through with the variable `name`."""
    loops = (one for one in walk(scope.node) if isinstance(one, ast.For) and scope.kind == "function")
    found = [one.iter for one in loops if isinstance(one.target, ast.Name) and one.target.id == name]
    return found[0] if len(found) == 1 else None


def _alike(one: Place, other: Place) -> bool:
    """Whether two expressions are the same, where they stand."""
    return one[1] is other[1] and ast.dump(one[0]) == ast.dump(other[0])
