"""The calls of ops that vary, and kernels that stand in strings -> what each rule reports of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.catalogue.ops import instead_at, release
from torchdet_lint.checks import table
from torchdet_lint.checks.operations.candidates import Operations
from torchdet_lint.checks.operations.kernels.addresses import own_addresses
from torchdet_lint.checks.operations.kernels.launches import Launches
from torchdet_lint.finding import Violation
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.module.module import Module
    from torchdet_lint.prefilter.library import Operation

_ATOMIC = lazy(r"\b(?:gpuAtomicAdd|fastAtomicAdd|atomicAdd(?:_block|_system)?)\s*\((?!\?)([^;]*);")
_COUNTS = lazy(r",\s*-?\d+[uUlL]*\s*\)\s*$")
_KERNEL = lazy(r"__global__|__device__|extern\s+\"C\"")
_WHEN = {"switchable": "in deterministic mode", "deterministic": "in every mode"}
_PLACES = {
    ("cpu",): "the CPU",
    ("cuda",): "CUDA",
    ("cpu", "cuda"): "the CPU and CUDA",
    ("mps",): "MPS",
    ("xpu",): "XPU",
}


def listed_call(module: Module, rule: Rule) -> Iterator[Violation]:
    """The calls of the ops that `rule` reports in the target release."""
    operations = module.shared(Operations)
    for candidate in operations.found.get(rule.code, ()):
        operation, call, _ = candidate
        op = operation.op
        values_alone = op.values_exact and operations.gives_values_alone(candidate)
        of_gradient = op.values_exact and operations.differs_in_gradient(candidate)
        soft = op.exact or op.softened or values_alone or (of_gradient and operations.is_left_alone(candidate))
        details = {
            "op": operation.spelling.name,
            "device": _PLACES.get(op.devices, "CUDA"),
            "condition": _conditions(op),
            "release": ".".join(map(str, module.target.torch)),
            "instead": _advice(operation, module.target.torch),
            "measured_on": op.machine,
        }
        yield Violation(
            call.node,
            details,
            variant="values" if values_alone else "gradient" if of_gradient else _variant(rule, operation),
            severity="warning" if soft else op.severity,
            changes=operations.changes(candidate),
            switchable=operation.status == "switchable",
            raises=operation.spelling.name if operation.status == "errors" else "",
            strict=op.strict,
            gradient=op.direction == "backward" and rule.code != "TDL404",
            on_device=set(op.devices).isdisjoint({"cpu", *module.target.devices} - {"cuda"}),
        )


def _variant(rule: Rule, operation: Operation) -> str:
    """Which of the messages of `rule` tells of `operation`."""
    if operation.op.exact:
        return "exact"
    of_gradient = f"gradient-{operation.status}"
    if operation.op.direction == "backward" and of_gradient in rule.messages:
        return of_gradient
    return operation.status if operation.status in rule.messages else ""


def _conditions(op: Op) -> str:
    """Where and when it is nondeterministic, and what was measured, in brackets."""
    known = [op.condition, f"measured: {op.measured}" if op.measured else ""]
    said = "; ".join(part for part in known if part)
    return f" ({said})" if said else ""


def _advice(operation: Operation, target: tuple[int, int]) -> str:
    """What to do in release `target` of torch: what the table says, deterministic mode, or a later release."""
    op = operation.op
    if instead := instead_at(op, target):
        return f"{instead}."
    if operation.status == "switchable":
        return "Call `torch.use_deterministic_algorithms(True)`, which switches it to a deterministic kernel."
    later = (row for row in op.status if release(row.since) > target and row.status in _WHEN)
    mended = next(later, None) if operation.status == "errors" and op.package == "torch" else None
    return f"Require torch {mended.since} or later, where it is deterministic {_WHEN[mended.status]}." if mended else ""


def cudnn_rnn(module: Module, rule: Rule) -> Iterator[Violation]:
    """Recurrent layers; the project half drops those of programs that set the variable that cures them."""
    yield from listed_call(module, rule)


def kernel_atomics(module: Module, rule: Rule) -> Iterator[Violation]:
    """Atomic additions in kernels: by call, and in CUDA source that stands in a string."""
    for found in listed_call(module, rule):
        if not own_addresses(module, found.node) and not module.shared(Launches).rule_out(found.node):
            yield found
    for node in module.strings("tomicAdd"):
        text = module.code(node)
        if not _KERNEL.search(text) and isinstance(module.parent(node), cst.Expr):
            continue
        if any(not _COUNTS.search(match[1]) for match in _ATOMIC.finditer(text)):
            name = "atomicAdd"
            yield Violation(node, {"op": name, "device": "CUDA", "condition": "", "instead": ""})


def own_rule(module: Module, rule: Rule) -> Iterator[Violation]:
    """What the tables of a user's own rule mean: calls, assignments and ops; `{name}` is the name that was found."""
    for call, row in table.calls(module, rule):
        details = {"name": next(name for name in call.names if name in row.names), "source": module.code(call.node)}
        yield Violation(call.node, {**details, **row.details}, row.variant, row.severity)
    for assignment, setting in table.assignments(module, rule):
        details = {"name": assignment.names[0], "source": module.code(assignment.node)}
        yield Violation(assignment.node, details, setting.variant)
    for found in listed_call(module, rule):
        yield found._replace(details={**found.details, "name": found.details["op"]})
