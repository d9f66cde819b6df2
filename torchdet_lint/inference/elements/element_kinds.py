"""An annotation -> what it says of a value and of the elements of a collection: `number`, `text`, `identity` (an object
that hashes by its address) or `unknown`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module.names import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchdet_lint.module.module import Module

# In a path: whichever part.
EACH = -1
_UNKNOWN = "unknown"
# What a question says of itself where it leads back to it.
CIRCLE = "circle"
_SINGLE = {
    **dict.fromkeys("bool complex float int".split(), "number"),
    **dict.fromkeys("Decimal Fraction Integral Number Rational Real".split(), "number"),
    **dict.fromkeys("bool_ floating integer intp longlong number signedinteger unsignedinteger".split(), "number"),
    **{f"{name}{bits}": "number" for name in ("float", "int", "uint") for bits in (8, 16, 32, 64, 128)},
    **dict.fromkeys(("bytes", "str"), "text"),
    **dict.fromkeys(("Callable", "Module", "Parameter", "Tensor", "Type", "type"), "identity"),
}
_COLLECTIONS = frozenset(
    "AbstractSet Collection Deque FrozenSet Generator Iterable Iterator KeysView List MutableSequence MutableSet "
    "Sequence Set ValuesView deque frozenset list set".split()
)
# An array that does not say what it holds is one of numbers.
_ARRAYS = frozenset(("NDArray", "ndarray"))
_TEXTS = frozenset(("bytes_", "object_", "str_"))
_SETS = frozenset("AbstractSet FrozenSet MutableSet Set frozenset set".split())
_TABLES = frozenset("DefaultDict Dict Mapping MutableMapping OrderedDict defaultdict dict".split())


def single(module: Module, node: cst.BaseExpression) -> str:
    """What the annotation of a name or attribute says of it."""
    return _single(_parsed(declared(module, node)))


def elements(module: Module, node: cst.BaseExpression, path: Sequence[int] = ()) -> str:
    """What the annotation of a name or attribute says of the elements that one goes through, or of what stands at
    `path` in each of them."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and not node.args:
        word = node.func.attr.value
        table = _given(_parsed(declared(module, node.func.value))) if word in ("keys", "values", "items") else None
        if not _is_table(table):
            return _UNKNOWN
        key, value = _arguments(table)
        if word == "items":
            return _part((key, value)[path[0]], path[1:]) if path and path[0] in (0, 1) else _UNKNOWN
        return _part(key if word == "keys" else value, path)
    return _elements(_parsed(declared(module, node)), path)


def elements_of(annotation: str) -> str:
    """What an annotation, as text, says of the elements of what it stands at."""
    return _elements(_parsed(annotation))


def declared(module: Module, node: cst.BaseExpression) -> str:
    """The annotation of the one thing that `node`, a name or an attribute of `self`, stands for."""
    found: list[cst.BaseExpression] = []
    if isinstance(node, cst.Name):
        home = module.scope_of(node).home(node.value)
        bindings = home.bindings[node.value] if home is not None else []
        if len(bindings) == 1 and isinstance(there := bindings[0].node, (cst.Param, cst.AnnAssign)):
            found = [there.annotation.annotation] if there.annotation is not None else []
            if isinstance(there, cst.Param) and there.star == "**":
                return f"dict[str, {module.code(found[0]) if found else 'object'}]"
            if found and isinstance(there, cst.Param) and there.star == "*":
                return f"tuple[{module.code(found[0])}, ...]"
    elif isinstance(node, cst.Attribute) and dotted(node.value) in ("self", "cls"):
        class_ = module.enclosing_class(node)
        found = list(module.declared(class_, node.attr.value)) if class_ is not None else []
    return module.code(found[0]) if len(found) == 1 else ""


def is_set(annotation: str) -> bool:
    """Whether an annotation, as text, says that it stands at a set, or at a set or None."""
    return _type(_given(_parsed(annotation))) in _SETS


def of_types(names: Iterable[str]) -> str:
    """What a value is that is of one of the types `names`."""
    return agreed(_SINGLE.get(name.rpartition(".")[2], _UNKNOWN) for name in names)


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body if text else None
    except (SyntaxError, ValueError):
        return None


def _word(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _type(node: ast.expr | None) -> str:
    """The type that an annotation names, with or without what it holds: `list` of `list[int]`."""
    return _word(node.value if isinstance(node, ast.Subscript) else node)


def _arguments(node: ast.expr | None) -> list[ast.expr]:
    if not isinstance(node, ast.Subscript):
        return []
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_table(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Subscript) and _word(node.value) in _TABLES and len(_arguments(node)) == 2


def agreed(kinds: Iterable[str]) -> str:
    """The kind that all are; `unknown` where they differ, and for none."""
    found = set(kinds)
    if len(found) > 1:
        found.discard(CIRCLE)
    return found.pop() if len(found) == 1 else _UNKNOWN


def of_tuple(kinds: Iterable[str]) -> str:
    """What a tuple is as an element, by the kinds of what stands in it: with a text among these, it sorts as a text."""
    found = set(kinds)
    told = bool(found) and found <= {"number", "text"}
    return ("text" if "text" in found else "number") if told else _UNKNOWN


def _single(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _single(_parsed(node.value))
    if isinstance(node, ast.BinOp):
        return agreed((_single(node.left), _single(node.right)))
    if isinstance(node, ast.Subscript):
        word = _word(node.value)
        if word in ("Tuple", "tuple"):
            return of_tuple(_single(part) for part in _arguments(node) if not _is_ellipsis(part))
        return _SINGLE.get(word, _UNKNOWN)
    return _SINGLE.get(_word(node), _UNKNOWN)


def _elements(node: ast.expr | None, path: Sequence[int] = ()) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _elements(_parsed(node.value), path)
    if isinstance(node, ast.BinOp):
        return agreed(_elements(side, path) for side in (node.left, node.right) if not _is_none(side))
    if _word(node) == "Tensor":
        return "identity"
    node = _given(node)
    word, parts = _word(node.value) if isinstance(node, ast.Subscript) else "", _arguments(node)
    if _type(node) in _ARRAYS:
        return "text" if parts and _word(parts[-1]) in _TEXTS else "number"
    if word in ("Optional", "Union"):
        return agreed(_elements(part, path) for part in parts if not _is_none(part))
    if word in ("Tuple", "tuple"):
        return agreed(_part(part, path) for part in parts if not _is_ellipsis(part))
    return _part(parts[0], path) if word in _COLLECTIONS or _is_table(node) else _UNKNOWN


def _part(node: ast.expr | None, path: Sequence[int]) -> str:
    """What an annotation says of what stands at `path` in the thing it stands at."""
    if not path:
        return _single(node)
    node = _given(node)
    parts = _arguments(node)
    is_tuple = isinstance(node, ast.Subscript) and _word(node.value) in ("Tuple", "tuple")
    if path[0] == EACH or not is_tuple or any(map(_is_ellipsis, parts)):
        return _elements(node, path[1:])
    return _part(parts[path[0]], path[1:]) if path[0] < len(parts) else _UNKNOWN


def _given(node: ast.expr | None) -> ast.expr | None:
    """`X` of `X | None`, `Optional[X]` and `"X"`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _given(_parsed(node.value))
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    if isinstance(node, ast.Subscript) and _word(node.value) in ("Optional", "Union"):
        sides = _arguments(node)
    left = [side for side in sides if not _is_none(side)]
    return _given(left[0]) if len(left) == 1 else node


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
