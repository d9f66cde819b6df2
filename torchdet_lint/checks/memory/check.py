"""TDL501: memory that is allocated without a value and read -> findings with the call that writes zeros."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.memory.allocations import allocations
from torchdet_lint.checks.memory.attributes import AttributeReads
from torchdet_lint.checks.memory.domain import Buffer, Read, State
from torchdet_lint.checks.memory.interpreter import Reads, free_names
from torchdet_lint.finding import Change, NeedImport, RelatedNode, Replace, Violation
from torchdet_lint.module.tree import LEAVES, children, deeply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.module.module import Module


def uninitialized_read(module: Module, rule: Rule) -> Iterator[Violation]:
    """Memory that is allocated without a value and used as an input before every element was written."""
    buffers = allocations(module, rule)
    homes: dict[cst.CSTNode | None, dict[cst.CSTNode, Buffer]] = {}
    for node, buffer in buffers.items():
        homes.setdefault(_home(module, node), {})[node] = buffer
    found: list[Read] = []
    for home, own in homes.items():
        if isinstance(home, cst.Lambda):
            continue
        found += deeply(functools.partial(_reads, module, rule, home, own))
    for read in found:
        yield _found(module, read)
    yield from AttributeReads(module, rule, buffers).found()


def _reads(module: Module, rule: Rule, home: cst.CSTNode | None, own: dict[cst.CSTNode, Buffer]) -> list[Read]:
    """The reads of the buffers of the function `home`, or of the file's top level, that come before a value."""
    flow = Reads(module, rule, own, _captured(module, home))
    flow.block(_statements(module, home), State())
    return [Read(flow.buffers[number], node) for number, node in flow.found.items()]


def _home(module: Module, node: cst.CSTNode) -> cst.CSTNode | None:
    for ancestor in module.ancestors(node):
        if isinstance(ancestor, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            return ancestor
    return None


def _statements(module: Module, home: cst.CSTNode | None) -> list[cst.CSTNode]:
    if home is not None:
        return list(home.body.body)  # type: ignore[attr-defined]
    module.load_statements(every=True)
    return [
        statement
        for unit in module.units
        if unit.piece.kind in ("statements", "table") and unit.piece.owner < 0 and unit.root is not None
        for statement in unit.root.body
    ]


def _captured(module: Module, home: cst.CSTNode | None) -> set[str]:
    """The names of `home` that other functions use too."""
    if home is None:
        return _used_in_functions(module)
    found: set[str] = set()
    stack: list[cst.CSTNode] = [home.body]  # type: ignore[attr-defined]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in (cst.FunctionDef, cst.Lambda, cst.ClassDef):
            found.update(free_names(module, node))
        elif kind in (cst.Global, cst.Nonlocal):
            found.update(item.name.value for item in node.names)  # type: ignore[attr-defined]
        elif kind not in LEAVES:
            stack.extend(children(node))
    return found


def _used_in_functions(module: Module) -> set[str]:
    """The globals of the file that its functions and methods use, without those that a local name hides."""
    known = module.scope.bindings.keys()
    found: set[str] = set()
    for unit in module.units:
        inside = unit.piece.kind == "function" or unit.piece.owner >= 0
        if inside and not known.isdisjoint(module.words[unit.index]):
            module.load(unit)
            assert unit.root is not None
            found.update(free_names(module, unit.root))
    return found


def _found(module: Module, read: Read) -> Violation:
    call = read.buffer.node
    function = module.code(call.func)
    related = RelatedNode(call, f"`{function}` allocates the memory here and writes nothing into it")
    details = {"call": function, "name": module.code(read.node)}
    return Violation(read.node, details, related=(related,), changes=_twin(module, read.buffer))


def _twin(module: Module, buffer: Buffer) -> tuple[Change, ...]:
    """The call that also writes zeros, where it takes the same arguments."""
    twin = module.library.facts.memory.zeroed.get(buffer.word)
    function = buffer.node.func
    if twin is None or any(arg.star == "**" for arg in buffer.node.args):
        return ()
    keywords = {arg.keyword.value for arg in buffer.node.args if arg.keyword is not None}
    if "memory_format" in keywords and not twin.endswith("_like"):
        return ()
    if isinstance(function, cst.Attribute):
        return (Replace(function.attr, twin),)
    root = "numpy" if buffer.array else "torch"
    return (NeedImport(root), Replace(function, f"{{{root}}}.{twin}"))
