"""A node of the tree -> its text, the names that it reads and binds, the values that it pairs, its message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module.tree import IMPORTS, LEAVES, children
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Binding, Scope

_OPPOSITE: dict[type, type] = {cst.IsNot: cst.Is, cst.NotEqual: cst.Equal, cst.NotIn: cst.In}
MAKES_SET = (cst.BitOr, cst.BitAnd, cst.BitXor, cst.Subtract)
"""The operators of sets, which make a set of the keys of dictionaries too."""
_BINDERS = (cst.AssignTarget, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr)
# How the name of a file ends.
_EXTENSION = lazy(r"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_SCOPES = frozenset({cst.FunctionDef, cst.Lambda, cst.ClassDef})


def condition(node: cst.BaseExpression) -> tuple[str, bool]:
    """A condition as positive text and whether `node` asks for it or for its opposite."""
    truth = True
    while isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        node, truth = node.expression, not truth
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        operator = node.comparisons[0].operator
        opposite = _OPPOSITE.get(type(operator))
        right = bare(node.comparisons[0].comparator)
        if opposite is not None:
            return f"{bare(node.left)} {opposite.__name__} {right}", not truth
        return f"{bare(node.left)} {type(operator).__name__} {right}", truth
    return bare(node), truth


def bare(node: cst.CSTNode) -> str:
    """The source of `node` without white space and parentheses around it."""
    text = cst.Module([]).code_for_node(node)
    empty = isinstance(node, cst.Tuple) and not node.elements
    while isinstance(node, cst.BaseExpression) and len(node.lpar) > empty and text.startswith("("):
        node = node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])
        text = cst.Module([]).code_for_node(node)
    return "".join(text.split()) if "'" not in text and '"' not in text else text.strip()


def names_in(node: cst.CSTNode) -> Iterator[str]:
    """Every name that stands in `node`, nested functions included."""
    stack: list[cst.CSTNode] = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Name):
            yield current.value
        stack.extend(children(current))


def last_word(node: cst.BaseExpression) -> str:
    """`c` of `a.b.c`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of `node` in the order of the source, nested functions left out."""
    stack: list[cst.CSTNode] = [node]
    while stack:
        current = stack.pop()
        yield current
        if type(current) not in _SCOPES or current is node:
            stack.extend(reversed(children(current)))


def _targets(node: cst.BaseExpression) -> Iterator[str]:
    """The names that an assignment to `node` binds: `a`, and `a` and `b` of `a, b`."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, (cst.Tuple, cst.List)):
        for element in node.elements:
            yield from _targets(element.value)


def bound_in(body: cst.CSTNode) -> set[str]:
    """The names that a loop's body gives a new value in every round, one that is not made of the old one."""
    found: set[str] = set()
    for node in nodes(body):
        if type(node) in LEAVES:
            continue
        if isinstance(node, cst.Assign):
            names = {name for target in node.targets for name in _targets(target.target)}
            found.update(names if names.isdisjoint(names_in(node.value)) else ())
        elif isinstance(node, cst.WithItem) and node.asname is not None and isinstance(node.asname.name, cst.Name):
            found.add(node.asname.name.value)
    return found


def names_bound(body: cst.CSTNode) -> set[str]:
    """The names and attributes that the statements of `body` give values, by their last words."""
    found: set[str] = set()
    for node in nodes(body):
        targets: list[cst.BaseExpression] = []
        if isinstance(node, cst.Assign):
            targets = [target.target for target in node.targets]
        elif isinstance(node, (cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr)):
            targets = [node.target]
        for target in targets:
            parts = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
            found.update(last_word(part.value) for part in parts)
            found.add(last_word(target))
    return found - {""}


def names_read(root: cst.CSTNode) -> dict[str, list[cst.Name]]:
    """The names that are read under `root`, in the order of the source."""
    found: dict[str, list[cst.Name]] = {}
    stack: list[cst.CSTNode] = [root]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is cst.Name:
            found.setdefault(node.value, []).append(node)  # type: ignore[attr-defined,arg-type]
        elif kind in LEAVES or kind in IMPORTS:
            continue
        elif kind is cst.Attribute or kind is cst.Arg:
            stack.append(node.value)  # type: ignore[attr-defined]
        elif kind in _BINDERS:
            for child in children(node):
                if not (child is getattr(node, "target", None) and isinstance(child, (cst.Name, cst.Tuple))):
                    stack.append(child)
        else:
            stack.extend(reversed(children(node)))
    return found


def opposite(node: cst.Assign, element: cst.BaseElement) -> cst.BaseExpression | None:
    """What `element`, of the tuple that is assigned, is assigned to."""
    target, value = node.targets[0].target, node.value
    if not isinstance(target, (cst.Tuple, cst.List)) or not isinstance(value, cst.Tuple):
        return None
    left, right = target.elements, value.elements
    if len(left) != len(right) or any(isinstance(one, cst.StarredElement) for one in (*left, *right)):
        return None
    return left[list(right).index(element)].value


def bound_value(binding: Binding) -> cst.CSTNode | None:
    """What a binding gives the name, unpacked from a display where it stands in one."""
    value: cst.CSTNode | None = binding.value
    for position in binding.path:
        if not isinstance(value, (cst.Tuple, cst.List)) or position >= len(value.elements):
            return None
        value = value.elements[position].value
    return value


def unpacked(parent: cst.CSTNode | None, position: int) -> cst.BaseExpression | None:
    """What `parent`, which assigns a call that returns a tuple, gives the element at `position` to."""
    target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
    if not isinstance(target, (cst.Tuple, cst.List)) or position >= len(target.elements):
        return None
    if any(isinstance(element, cst.StarredElement) for element in target.elements):
        return None
    return target.elements[position].value


def option_added(text: str, name: str) -> str:
    """How the text of a file adds the option that is read as `args.name`: what follows its name; empty where it does
    not."""
    option = re.search(rf"\.add_argument[ \t]*\([^()]{{0,80}}--{name.replace('_', '[-_]')}[\"']([^()]{{0,400}})", text)
    return option[1] if option is not None else ""


class Messages:
    """What in one file is part of a message: of an exception, a warning, a line of the log."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._words = module.library.facts.orders.words["messages"]
        self._opens = module.library.facts.orders.words["opens"]
        self._known: dict[int, bool] = {}

    def holds(self, node: cst.CSTNode) -> bool:
        """Whether `node` stands in one; so do then all nodes between."""
        passed: list[int] = []
        current: cst.CSTNode | None = node
        found = False
        while current is not None:
            if id(current) in self._known:
                found = self._known[id(current)]
                break
            passed.append(id(current))
            current = self.module.parent(current)
            if (
                isinstance(current, (cst.Raise, cst.Assert))
                or (isinstance(current, cst.FormattedStringExpression) and not self._names_file(current))
                or (isinstance(current, cst.Call) and last_word(current.func) in self._words)
            ):
                found = True
                break
            if isinstance(current, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                break
        self._known.update(dict.fromkeys(passed, found))
        return found

    def _names_file(self, node: cst.FormattedStringExpression) -> bool:
        """Whether `node` is part of the name of a file: of one that ends as such do, or of a path."""
        text = self.module.parent(node)
        last = text.parts[-1] if isinstance(text, cst.FormattedString) else None
        if isinstance(last, cst.FormattedStringText) and _EXTENSION.search(last.value) is not None:
            return True
        around = self.module.parent(text) if text is not None else None
        if isinstance(around, cst.Arg):
            call = self.module.parent(around)
            return isinstance(call, cst.Call) and last_word(call.func) in self._opens
        return isinstance(around, cst.BinaryOperation) and isinstance(around.operator, cst.Divide)


def parameter_behind(node: cst.CSTNode, scope: Scope) -> cst.Param | None:
    """The parameter that a name stands for in `scope`, and nothing else."""
    home = scope.home(node.value) if isinstance(node, cst.Name) else None
    bindings = home.bindings[node.value] if home is not None and isinstance(node, cst.Name) else ()
    found = bindings[0].node if len(bindings) == 1 else None
    return found if isinstance(found, cst.Param) else None


def asks_for(module: Module, node: cst.CSTNode) -> bool:
    """Whether what holds `node` only asks whether there is something: `if node`, `node is not None`, `bool(node)`."""
    parent = module.parent(node)
    if isinstance(parent, (cst.If, cst.While, cst.Assert, cst.IfExp)):
        return parent.test is node
    if isinstance(parent, cst.Comparison):
        others = [one.comparator for one in parent.comparisons]
        return parent.left is node and len(others) == 1 and bare(others[0]) == "None"
    if isinstance(parent, cst.BooleanOperation):
        return asks_for(module, parent)
    call = module.parent(parent) if isinstance(parent, cst.Arg) else None
    return (isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not)) or (
        isinstance(call, cst.Call) and bare(call.func) == "bool"
    )
