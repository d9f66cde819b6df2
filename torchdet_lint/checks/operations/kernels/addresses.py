"""A call of a Triton kernel that adds atomically -> whether each program evidently adds to addresses of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import bare
from torchdet_lint.module.tree import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Module

_PROGRAM = "triton.language.program_id"
_PROGRAMS = "triton.language.num_programs"
_RANGE = "triton.language.arange"
_RANGES = frozenset(("builtins.range", "triton.language.range", "triton.language.static_range"))


def own_addresses(module: Module, node: cst.CSTNode) -> bool:
    """Whether no other program, and no other lane, adds where the call `node` does: its pointer is a parameter plus
    `program_id * N + arange(0, N)`, or plus `program_id` alone, and the programs of the kernel stand on one axis. What
    one program adds to one address, round by round of a loop, it adds in order. A loop may stand for `arange`, or go
    through every so many rows: `for row in range(program_id(0), n, num_programs(0))`."""
    call = node if isinstance(node, cst.Call) else None
    function = module.enclosing_function(node)
    if call is None or not call.args or function is None or function.params is None:
        return False
    loops = any(isinstance(ancestor, (cst.For, cst.While)) for ancestor in module.ancestors(node))
    axes = module.shared(_Axes).of(function)
    parameters = {param.name.value for param in (*function.params.params, *function.params.kwonly_params)}
    terms = list(_terms(module, call.args[0].value))
    bases = [term for term in terms if isinstance(term, cst.Name) and term.value in parameters]
    rest = [term for term in terms if term not in bases]
    if len(axes) != 1 or len(bases) != 1 or (loops and not _is_steady(module, bases[0])):
        return False
    if len(rest) == 1:
        return _is_program(module, rest[0])
    ranges = [size for term in rest if (size := _range(module, term)) is not None]
    blocks = [size for term in rest if (size := _block(module, term)) is not None]
    return len(rest) == 2 and len(ranges) == len(blocks) == 1 and ranges == blocks


class _Axes:
    """The axes on which the programs of the kernels in one file stand."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._known: dict[int, frozenset[str]] = {}

    def of(self, function: cst.FunctionDef) -> frozenset[str]:
        """The calls in `function` that ask for the number of the program, as they are written."""
        if id(function) not in self._known:
            asking = (one for one in _calls(function) if _PROGRAM in self.module.resolve(one.func))
            self._known[id(function)] = frozenset(map(self.module.code, asking))
        return self._known[id(function)]


def _calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, cst.Call):
            yield current
        stack.extend(children(current))


def _followed(module: Module, node: cst.BaseExpression) -> cst.BaseExpression:
    """What a name that is bound once stands for."""
    value = module.followed(node, module.scope_of(node), module.order_of(node))
    return value.node if value is not None else node


def _terms(module: Module, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The terms of a sum, through the names that stand for sums."""
    node = _followed(module, node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        yield from _terms(module, node.left)
        yield from _terms(module, node.right)
    else:
        yield node


def _is_steady(module: Module, node: cst.BaseExpression) -> bool:
    """Whether nothing binds the parameter `node` again."""
    home = module.scope_of(node).home(node.value) if isinstance(node, cst.Name) else None
    return home is not None and isinstance(node, cst.Name) and len(home.bindings[node.value]) == 1


def _is_program(module: Module, node: cst.BaseExpression) -> bool:
    """Whether `node` is the number of the program, or of one of the rows that fall to it."""
    followed = _followed(module, node)
    if isinstance(followed, cst.Name):
        return _is_row(module, followed)
    return isinstance(followed, cst.Call) and _PROGRAM in module.resolve(followed.func)


def _is_row(module: Module, name: cst.Name) -> bool:
    """Whether `name` is what a loop over `range(program_id(0), n, num_programs(0))` goes through, and nothing else."""
    args = _counted(module, name)
    first, step = (_followed(module, args[0]), _followed(module, args[2])) if len(args) == 3 else (None, None)
    if not isinstance(first, cst.Call) or not isinstance(step, cst.Call):
        return False
    one = _PROGRAM in module.resolve(first.func) and _PROGRAMS in module.resolve(step.func)
    return one and [bare(arg.value) for arg in first.args] == [bare(arg.value) for arg in step.args]


def _counted(module: Module, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a loop gives `range`, or its kin of Triton, of which `node` is the variable, and nothing else; else
    nothing."""
    home = module.scope_of(node).home(node.value) if isinstance(node, cst.Name) else None
    bindings = home.bindings[node.value] if home is not None and isinstance(node, cst.Name) else []
    made = bindings[0].value if len(bindings) == 1 and bindings[0].kind == "loop" else None
    counts = isinstance(made, cst.Call) and not _RANGES.isdisjoint(module.resolve(made.func))
    return [arg.value for arg in made.args if arg.keyword is None] if isinstance(made, cst.Call) and counts else []


def _block(module: Module, node: cst.BaseExpression) -> str | None:
    """`N` of `program_id * N`."""
    node = _followed(module, node)
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Multiply):
        return None
    for program, size in ((node.left, node.right), (node.right, node.left)):
        if _is_program(module, program):
            return module.code(size)
    return None


def _range(module: Module, node: cst.BaseExpression) -> str | None:
    """`N` of `arange(0, N)`, and of what a loop over `range(N)` goes through."""
    node = _followed(module, node)
    args = _counted(module, node)
    if isinstance(node, cst.Call) and _RANGE in module.resolve(node.func) and len(node.args) == 2:
        args = [arg.value for arg in node.args]
    if len(args) == 1:
        return module.code(args[0])
    return module.code(args[1]) if len(args) == 2 and module.value(args[0]).constant == 0 else None
