"""A read of a name -> the bindings that may hold there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module import names
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Binding

_FEW = 6
_SUPPRESSES = lazy(r"(?i)suppress|ignor|raises")
_DIMENSIONS = lazy(r"\.(?:dim\(\)|ndim\b)")


def reaching(module: Module, bindings: list[Binding], node: cst.Name, order: int) -> list[Binding]:
    """`bindings` without those before the last that surely ran before `node`: one in a block around it."""
    if len(bindings) < 2:
        return bindings
    around = {id(outer) for outer, _ in module.deciding(node)}
    bindings = _after_the_last_choice(module, bindings, around, order)
    for index in range(len(bindings) - 1, -1, -1):
        binding = bindings[index]
        if binding.kind == "loop" and binding.order < order and _in_round(module, binding.node, node):
            return [binding, *(other for other in bindings[index + 1 :] if other.order < order)]
        if binding.order < order and binding.kind in ("assign", "unpack") and binding.node is not None:
            block = block_of(module, binding.node, len(bindings))
            if block is not None and _gives_a_dimension(module, binding.value, block, node.value):
                block = module.parent(block)
                block = module.parent(block) if block is not None else None
            if block is not None and id(block) in around and (index or _in_one_round(module, block, node)):
                later = [other for other in bindings[index + 1 :] if other.order < order]
                return [binding, *later]
    return bindings


def block_of(module: Module, node: cst.CSTNode, among: int) -> cst.CSTNode | None:
    """The block that holds the statement of `node`, which binds a name `among` others, and the `with`s around it, which
    run what they hold. Of many none is taken for a branch that stands on the line of its `if`: each could be passed by,
    and all before it would be looked at."""
    if among > _FEW:
        return module.parent(module.statement(node))
    block = module.block(node)
    while block is not None and isinstance(around := module.parent(block), cst.With) and not _suppresses(around):
        block = module.block(around)
    return block


def _suppresses(node: cst.With) -> bool:
    """Whether what a `with` holds may end early and the program go on behind it: `with suppress(OSError):`."""
    made = (item.item.func for item in node.items if isinstance(item.item, cst.Call))
    return any(_SUPPRESSES.search(names.dotted(function)) for function in made)


def _in_round(module: Module, loop: cst.CSTNode | None, node: cst.Name) -> bool:
    """Whether `node` is read in a round of `loop`, and in no loop of it, so that its names are what the round gave
    them."""
    inner: cst.CSTNode = node
    for outer in module.ancestors(node):
        if isinstance(outer, (cst.For, cst.While, cst.FunctionDef, cst.ClassDef)):
            return outer is loop and inner is outer.body
        inner = outer
    return False


def _in_one_round(module: Module, block: cst.CSTNode, node: cst.Name) -> bool:
    """Whether no loop stands between `block` and `node`: what later rounds bind has been bound anew in this one."""
    for outer in module.ancestors(node):
        if outer is block:
            return True
        if isinstance(outer, (cst.For, cst.While)):
            return False
    return False


def _gives_a_dimension(module: Module, value: cst.BaseExpression | None, block: cst.CSTNode, name: str) -> bool:
    """Whether `block` gives `name` the dimension it lacks: `if x.dim() == y.dim() - 1: x = x.unsqueeze(-1)`."""
    choice = module.parent(block)
    if not (isinstance(choice, cst.If) and choice.orelse is None and isinstance(choice.test, cst.Comparison)):
        return False
    if not (isinstance(value, cst.Call) and names.dotted(value.func) == f"{name}.unsqueeze"):
        return False
    test = module.code(choice.test)
    return len(_DIMENSIONS.findall(test)) > 1 and re.search(rf"\b{name}\.(?:dim\(\)|ndim)", test) is not None


def _after_the_last_choice(module: Module, bindings: list[Binding], around: set[int], order: int) -> list[Binding]:
    """`bindings` without those before the last `if` all of whose branches bind the name, in a block around."""
    last: dict[int, int] = {}
    blocks = []
    for index, binding in enumerate(bindings):
        if binding.order < order and binding.kind in ("assign", "unpack") and binding.node is not None:
            block = block_of(module, binding.node, len(bindings))
            if block is not None:
                blocks.append(block)
                last[id(block)] = index
    for block in reversed(blocks):
        choice = choice_of(module, block)
        if choice is None or id(choice) in around or id(module.parent(choice)) not in around:
            continue
        branches = _branches(choice)
        if all(id(branch) in last for branch in branches):
            return bindings[min(last[id(branch)] for branch in branches) :]
    return bindings


def choice_of(module: Module, block: cst.CSTNode) -> cst.If | None:
    """The whole `if`, `elif`, `else` of which `block` is a branch."""
    node = module.parent(block)
    while isinstance(node, (cst.Else, cst.If)):
        outer = module.parent(node)
        if not isinstance(outer, cst.If) or outer.orelse is not node:
            break
        node = outer
    return node if isinstance(node, cst.If) else None


def _branches(choice: cst.If) -> list[cst.CSTNode]:
    """The blocks of an `if`, and of no `else` where it has none."""
    found: list[cst.CSTNode] = [choice.body]
    rest = choice.orelse
    while isinstance(rest, cst.If):
        found.append(rest.body)
        rest = rest.orelse
    return [*found, rest.body if rest is not None else choice]
