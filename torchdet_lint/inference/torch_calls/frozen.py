"""A call of a network -> whether all its parameters are frozen there: it passes on the gradient of what it is given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.module import names
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Module

_FREEZES = lazy(r"\.requires_grad[ \t]*=[ \t]*False\b|\.requires_grad_\([ \t]*(?:requires_grad[ \t]*=[ \t]*)?False\b")
# What may ask for gradients again, of whatever the file has.
_UNFREEZES = lazy(
    r"\.requires_grad[ \t]*=(?!=)(?![ \t]*False\b)|\.requires_grad_\((?![ \t]*(?:requires_grad[ \t]*=[ \t]*)?False\b)"
    r"|[\"']requires_grad[\"']|unfreeze"
)
# What is asked of a network, or done with it, that gives it no other layer.
_KEEPS = frozenset(
    "bfloat16 cpu cuda double eval float half load_state_dict named_parameters parameters requires_grad_ state_dict to "
    "train zero_grad".split()
)
_PARAMETERS = ("parameters", "named_parameters")


class FrozenNetworks:
    """The networks of one file from whose parameters it takes the gradient, all of them and in any case."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._freezes = _FREEZES.search(module.text) is not None and _UNFREEZES.search(module.text) is None
        self._kept: dict[str, bool] = {}

    def holds(self, node: cst.Call) -> bool:
        """Whether what the call `node` calls is such a network: a name that the function around freezes above, or an
        attribute that the constructor of the class freezes."""
        if not self._freezes:
            return False
        function = node.func
        if isinstance(function, cst.Name):
            return self._is_frozen_above(function, node)
        if isinstance(function, cst.Attribute) and isinstance(function.value, cst.Name):
            return self._is_frozen_attribute(function)
        return False

    def _is_frozen_above(self, name: cst.Name, node: cst.Call) -> bool:
        scope = self.module.scope_of(node)
        home = scope.home(name.value)
        bindings = home.bindings[name.value] if home is not None else []
        if home is None or len(bindings) != 1 or bindings[0].kind not in ("assign", "unpack", "parameter"):
            return False
        around = home.node if isinstance(home.node, cst.FunctionDef) else None
        named = self.module.shared(Reads).of(around, name.value)
        reads = [read for read in named if not isinstance(self.module.parent(read), cst.Param)]
        if not all(self._keeps(read) for read in reads):
            return False
        value = bindings[0].value
        if bindings[0].kind == "assign" and value is not None and not bindings[0].path and _is_made_frozen(value):
            return True
        order = self.module.order_of(node)
        return any(
            bindings[0].order <= self.module.order_of(statement) < order and self._is_below(statement, node)
            for statement in map(self.module.statement, reads)
            if _freezes(statement, name.value)
        )

    def _keeps(self, read: cst.Name) -> bool:
        """Whether a place where a network is read calls it, or a method that leaves its layers alone."""
        holder = self.module.parent(read)
        if isinstance(holder, cst.Call):
            return holder.func is read
        return isinstance(holder, cst.Attribute) and holder.value is read and holder.attr.value in _KEEPS

    def _is_below(self, statement: cst.CSTNode, node: cst.CSTNode) -> bool:
        """Whether `node` stands in the block of `statement`, or in one within it: that runs only after this."""
        block = self._block(statement)
        return block is not None and any(around is block for around in self.module.ancestors(node))

    def _block(self, statement: cst.CSTNode) -> cst.CSTNode | None:
        """The block in which a statement stands."""
        for around in self.module.ancestors(statement):
            if isinstance(around, (cst.IndentedBlock, cst.Module)):
                return around
        return None

    def _is_frozen_attribute(self, attribute: cst.Attribute) -> bool:
        class_ = self.module.enclosing_class(attribute)
        own = names.dotted(attribute)
        constructor = self.module.definition("__init__", class_) if class_ is not None else None
        if constructor is None or not self._is_left_alone(attribute.attr.value):
            return False
        return any(_freezes(statement, own) or _makes_frozen(statement, own) for statement in constructor.body.body)

    def _is_left_alone(self, name: str) -> bool:
        """Whether the file gives an attribute one value, and calls nothing but it, or methods that keep its layers."""
        if name not in self._kept:
            uses = re.findall(rf"\.{name}\b(?:\.(\w+)|[ \t]*([(=])(?!=))?", self.module.text)
            given = sum(mark == "=" for _, mark in uses)
            self._kept[name] = given == 1 and all(mark or method in _KEEPS for method, mark in uses)
        return self._kept[name]


def _small(statement: cst.CSTNode) -> Iterator[cst.BaseSmallStatement]:
    if isinstance(statement, cst.SimpleStatementLine):
        yield from statement.body
    elif isinstance(statement, cst.BaseSmallStatement):
        yield statement


def _freezes(statement: cst.CSTNode, name: str) -> bool:
    """Whether a statement takes the gradient from all parameters of the network `name`."""
    if isinstance(statement, cst.For):
        over = statement.iter
        if not isinstance(over, cst.Call) or over.args or not isinstance(over.func, cst.Attribute):
            return False
        if names.dotted(over.func.value) != name or over.func.attr.value not in _PARAMETERS:
            return False
        target: cst.BaseExpression = statement.target
        if isinstance(target, cst.Tuple) and over.func.attr.value == _PARAMETERS[1] and len(target.elements) == 2:
            target = target.elements[1].value
        parameter = names.dotted(target)
        inside = statement.body.body
        return bool(parameter) and any(_fixes(small, parameter) for one in inside for small in _small(one))
    return any(_fixes(small, name, of_network=True) for small in _small(statement))


def _fixes(statement: cst.BaseSmallStatement, name: str, *, of_network: bool = False) -> bool:
    """Whether a statement takes the gradient from `name`, by a method, or by its attribute where that is no network."""
    match statement:
        case cst.Expr(value=cst.Call(func=cst.Attribute() as method, args=[given])):
            return names.dotted(method) == f"{name}.requires_grad_" and _is_false(given.value)
        case cst.Assign(targets=[target], value=value) if not of_network:
            return names.dotted(target.target) == f"{name}.requires_grad" and _is_false(value)
    return False


def _makes_frozen(statement: cst.CSTNode, name: str) -> bool:
    """Whether a statement binds `name` to a network that is frozen as it is made."""
    return any(
        isinstance(small, cst.Assign) and names.dotted(small.targets[0].target) == name and _is_made_frozen(small.value)
        for small in _small(statement)
    )


def _is_made_frozen(value: cst.BaseExpression) -> bool:
    """Whether a network is frozen as it is made: `Net().requires_grad_(False).eval()`."""
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in _KEEPS:
        if value.func.attr.value == "requires_grad_":
            return len(value.args) == 1 and _is_false(value.args[0].value)
        value = value.func.value
    return False


def _is_false(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Name) and value.value == "False"
