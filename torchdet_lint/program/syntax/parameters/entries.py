"""A dictionary that is written out -> what stands under its keys, where nothing in sight of it changes that."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchdet_lint.program.events import PLAIN, Argument
from torchdet_lint.program.syntax.scopes import constant
from torchdet_lint.program.syntax.shapes import last_word
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from torchdet_lint.program.syntax.names import Resolver
    from torchdet_lint.program.syntax.scopes import Scope

# A larger table is no configuration.
_MOST = 60
_TEXT = r"[\"'](\w+)[\"']"
# Behind a key, to the end of the line: something is put there.
_PUT = lazy(r"\]\s*(?:[-+*/%|&]|//|\*\*)?=(?!=)")


def entries_of(node: ast.expr, names: Resolver, scope: Scope) -> tuple[tuple[str, Argument], ...]:
    """The entries of the dictionary that `node` is, or the name of one that is bound once: constants, and parameters
    of the function around. What is put into it later is left out; none where nobody can tell what that is."""
    display, where = node, scope
    if isinstance(node, ast.Name):
        home = scope.home(node.id)
        values = [bound for bound in home.bindings[node.id] if bound.kind != "part"] if home is not None else []
        if home is None or len(values) != 1 or values[0].kind != "value" or values[0].value is None:
            return ()
        display, where = values[0].value, home
    pairs = _pairs(display, names, where)
    changed = _changed(node.id, names, where) if pairs and isinstance(node, ast.Name) else frozenset[str]()
    if pairs is None or changed is None or len(pairs) > _MOST:
        return ()
    found: dict[str, Argument] = {}
    for key, value in pairs:
        known = constant(value, where)
        own = names.resolve(value, where) if known is None and where is scope else ()
        if known is not None and isinstance(known[0], PLAIN):
            found[key] = Argument((), True, known[0])
        elif len(own) == 1 and own[0].startswith("$"):
            found[key] = Argument(own)
        else:
            found.pop(key, None)
    return tuple((key, one) for key, one in found.items() if key not in changed)


def entry_in(node: ast.expr) -> tuple[ast.expr, str] | None:
    """What may be a dictionary, and the key: of `config["encoder"]`, and of `config.get("encoder")`."""
    match node:
        case ast.Subscript(value=owner, slice=ast.Constant(value=str() as key)):
            return (owner, key) if key.isidentifier() else None
        case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant(value=str() as key), *_]):
            return (owner, key) if key.isidentifier() else None
    return None


def _pairs(display: ast.expr, names: Resolver, where: Scope) -> list[tuple[str, ast.expr]] | None:
    """Keys and values of a dictionary of which all are written out; None: it is none."""
    if isinstance(display, ast.Dict):
        keys = [one.value if isinstance(one, ast.Constant) else None for one in display.keys]
        texts = [one for one in keys if isinstance(one, str)]
        return list(zip(texts, display.values, strict=True)) if len(texts) == len(keys) else None
    if not isinstance(display, ast.Call) or display.args or last_word(display.func) != "dict":
        return None
    words = [(word.arg, word.value) for word in display.keywords if word.arg is not None]
    whole = len(words) == len(display.keywords) and names.resolve(display.func, where) == ("builtins.dict",)
    return words if whole else None


def _changed(name: str, names: Resolver, where: Scope) -> frozenset[str] | None:
    """The keys under which the text of a function, or of a file, puts something into the dictionary that it calls
    `name`; None where it changes it otherwise."""
    lines = names.scopes.hollow.lines
    if where.kind == "function":
        around = where.node
        # A body that was filled in later ends below its function.
        lines = lines[around.lineno - 1 : max(around.end_lineno or 0, around.body[-1].end_lineno or 0)]
    text = "\n".join(lines)
    word = re.escape(name)
    if re.search(rf"\b{word}\.(?!get\b|items\b|keys\b|values\b|copy\b)\w+\s*\(|\bdel\s+{word}\b", text) is not None:
        return None
    keys: set[str] = set()
    for put in re.finditer(rf"\b{word}\[(?:\s*{_TEXT}\s*\])?(.*)", text):
        if _PUT.search(f"]{put[2]}" if put[1] is not None else put[2]) is not None:
            if put[1] is None:
                return None
            keys.add(put[1])
    return frozenset(keys)
