"""A call of an op -> the deterministic way to write it, where the table has one and the code shows that it fits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.catalogue.ops import release
from torchdet_lint.finding import NeedImport, Replace, SetArgument
from torchdet_lint.module.names import dotted
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.catalogue.ops import Rewrite
    from torchdet_lint.finding import Change
    from torchdet_lint.inference.infer import Inference
    from torchdet_lint.module.module import Call, Module
    from torchdet_lint.prefilter.library import Operation

_HOLE = lazy(r"\{(\*?\w*)\}([.\[]?)")
_SPARSE = lazy(r"sparse|coalesce", re.IGNORECASE)
_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
_OPERANDS = (*_ATOMS, cst.BinaryOperation, cst.UnaryOperation, cst.Comparison, cst.BooleanOperation, cst.IfExp)
_LITERALS = (cst.Integer, cst.Float, cst.SimpleString)


class Rewriting:
    """What the rewrites of an op come to for one call; `holds` says whether the call meets a condition."""

    def __init__(
        self, module: Module, inference: Inference, operation: Operation, call: Call, holds: Callable[[Condition], bool]
    ) -> None:
        self.module = module
        self.inference = inference
        self.operation = operation
        self.call = call
        self.holds = holds
        self.passed = self._passed()

    def _passed(self) -> dict[str, cst.BaseExpression]:
        """What the call itself writes, by parameter and in its order; `self` is the tensor that the op works on. Empty
        where an argument is out of sight, or is none of the op's."""
        parameters = self.operation.spelling.forward or self.operation.spelling.parameters
        places = parameters[: parameters.index("*")] if "*" in parameters else parameters
        found: dict[str, cst.BaseExpression] = {}
        if self.operation.method and self.call.receiver is not None:
            found["self"] = self.call.receiver
        for position, arg in enumerate(self.call.node.args):
            name = arg.keyword.value if arg.keyword is not None else (*places, "")[min(position, len(places))]
            if arg.star or name not in parameters or name in found:
                return {}
            found["self" if name == parameters[0] and not self.operation.method else name] = arg.value
        return found if self.call.partial is None else {}

    def changes(self) -> tuple[Change, ...]:
        """The changes of the first rewrite that fits, or none."""
        for rewrite in self.operation.op.rewrites:
            found = self._changes(rewrite) if self._fits(rewrite) else ()
            if found:
                return found
        return ()

    def _fits(self, rewrite: Rewrite) -> bool:
        name = self.operation.spelling.name.rpartition(".")[2]
        subject = self.passed.get("self")
        if subject is None or (rewrite.names and name not in rewrite.names):
            return False
        if release(rewrite.since) > self.module.target.torch:
            return False
        if rewrite.statement and not isinstance(self.module.parent(self.call.node), cst.Expr):
            return False
        if rewrite.dense and _SPARSE.search(self.module.text):
            return False
        # A method whose name ends so is torch's; one called `index_select` may be that of a sparse matrix.
        if self.operation.method and not name.endswith("_") and not self.inference.infer(subject).is_tensor:
            return False
        takes = {"self", *self.operation.spelling.parameters, *self.operation.spelling.forward}
        return all(
            condition.argument in takes and self.holds(condition) and self._in_sight(condition)
            for condition in rewrite.when
        )

    def _in_sight(self, condition: Condition) -> bool:
        """Whether a value that decides stands in the call itself: a name may mean another in a derived class."""
        node = self.passed.get(condition.argument)
        return condition.test == "dims" or node is None or _is_literal(node)

    def _changes(self, rewrite: Rewrite) -> tuple[Change, ...]:
        node = self.call.node
        if not rewrite.content:
            texts = {name: self._filled(content) for name, content in rewrite.arguments.items()}
            return tuple(
                Replace(self.passed[name], text) if name in self.passed else SetArgument(node, name, text)
                for name, text in texts.items()
                if text is not None and None not in texts.values()
            )
        holes = [match[1].lstrip("*") for match in _HOLE.finditer(rewrite.content)]
        known = {*holes, *(condition.argument for condition in rewrite.when)}
        text = self._filled(rewrite.content) if "" in known or self.passed.keys() <= known else None
        if text is None:
            return ()
        need = (NeedImport("torch"),) if "torch" in holes else ()
        return (*need, Replace(node, "(" * len(node.lpar) + text + ")" * len(node.rpar)))

    def _filled(self, content: str) -> str | None:
        """`content` with its holes filled; None where an argument is not passed, or would be worked out twice, or in
        another order than before."""
        order = [match[1].lstrip("*") for match in _HOLE.finditer(content)]
        order = [name for name in order if name not in ("", "torch", "function")]
        if not set(order) <= self.passed.keys():
            return None
        worked = [list(self.passed).index(name) for name in order if not _is_plain(self.passed[name])]
        if sorted(set(worked)) != worked:
            return None
        texts = [self._text(match[1], atom=bool(match[2])) for match in _HOLE.finditer(content)]
        if any(text is None for text in texts):
            return None
        filled = iter(texts)
        return _HOLE.sub(lambda match: f"{next(filled)}{match[2]}", content)

    def _text(self, hole: str, *, atom: bool) -> str | None:
        """What stands in place of a hole, in parentheses where an attribute or an index follows and it needs them."""
        code = self.module.code
        if hole == "torch":
            return "{torch}"
        if hole == "function":
            text = code(self.call.node.func)
        elif hole == "*":
            text = ", ".join(code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in self.call.node.args)
        else:
            node = self.passed[hole.lstrip("*")]
            if not (node.lpar or isinstance(node, (*_OPERANDS, *_LITERALS, cst.List, cst.Tuple))):
                return None
            text = code(node)
            if hole.startswith("*"):
                elements = node.elements if isinstance(node, (cst.List, cst.Tuple)) else None
                text = f"*{text}" if elements is None else ", ".join(code(element.value) for element in elements)
            elif atom and not (node.lpar or isinstance(node, _ATOMS)):
                text = f"({text})"
        # The planner would take a brace of the file's own for a hole.
        return None if "{" in text else text


def _is_plain(node: cst.BaseExpression) -> bool:
    """Whether working it out twice, or sooner, makes no difference."""
    return bool(dotted(node)) or _is_literal(node)


def _is_literal(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return _is_literal(node.expression)
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(_is_literal(element.value) for element in node.elements)
    return isinstance(node, _LITERALS) or (isinstance(node, cst.Name) and node.value in ("True", "False", "None"))
