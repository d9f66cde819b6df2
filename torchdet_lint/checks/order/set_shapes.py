"""An expression that makes a set -> a text that two sets made of the same in the same way share."""

from __future__ import annotations

import libcst as cst

from torchdet_lint.dataflow.syntax import bare, last_word


def copied(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x` of `n for n in x`."""
    if not isinstance(node, (cst.SetComp, cst.GeneratorExp, cst.ListComp)):
        return None
    part = node.for_in
    plain = not part.ifs and part.inner_for_in is None and bare(node.elt) == bare(part.target)
    return part.iter if plain else None


def shape(node: cst.BaseExpression) -> str:
    """A text that is the same for two sets that are made of the same in the same way."""
    if isinstance(node, cst.BinaryOperation):
        operator = type(node.operator).__name__
        return f"({shape(node.left)} {operator} {shape(node.right)})"
    source = source_of(node)
    if source is None:
        return f"set({_each(node)})" if isinstance(node, cst.SetComp) else bare(node)
    return f"set({_each(source)})"


def _each(node: cst.BaseExpression) -> str:
    if isinstance(node, (cst.GeneratorExp, cst.ListComp, cst.SetComp)):
        return f"{bare(node.elt)} {bare(node.for_in)}"
    return bare(node)


def source_of(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What a set is made of, lists and sets in between left out; None for a display or a comprehension."""
    inner: cst.BaseExpression | None = None
    if isinstance(node, cst.Call) and last_word(node.func) in _COLLECTORS and len(node.args) == 1:
        inner = node.args[0].value
    elif isinstance(node, cst.Set) and len(node.elements) == 1 and isinstance(node.elements[0], cst.StarredElement):
        inner = node.elements[0].value
    else:
        inner = copied(node)
    return inner if inner is None else source_of(inner) or inner


_COLLECTORS = frozenset({"list", "tuple", "set", "frozenset", "iter"})


def is_given_set(node: cst.CSTNode | None) -> bool:
    """Whether `node` is a parameter that is annotated as a set."""
    return (
        isinstance(node, cst.Param)
        and node.annotation is not None
        and "set[" in bare(node.annotation.annotation).lower() + "["
    )
