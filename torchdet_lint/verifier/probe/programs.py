"""A row of the catalogue -> the programs that are run: plain data, and their Python text."""

from __future__ import annotations

import ast
import hashlib
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.catalogue.probes import Control, Probe

Direction = Literal["forward", "backward"]


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One call with its inputs, each an expression of Python; `threads` 0 leaves the number of threads as it is."""

    inputs: tuple[tuple[str, str], ...]
    call: str
    direction: Direction
    constant: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    dtype: str = "float32"
    layout: str = "contiguous"
    threads: int = 0

    @property
    def text(self) -> str:
        """The program as Python: names that are bound to the inputs, and `call()`, which computes."""
        modules = [name for name in self.needs if name != "compiler"]
        lines = [*(f"import {name}" for name in modules), *(f"{name} = {value}" for name, value in self.inputs)]
        return "\n".join([*lines, "", "", "def call():", f"    return {self.call}", ""])

    @property
    def digest(self) -> str:
        """The same for programs that compute the same in the same way."""
        return hashlib.blake2b(msgspec.json.encode(self), digest_size=8).hexdigest()


def of_row(op: Op, *, dtype: str = "float32", layout: str = "contiguous") -> Program:
    """The program that meets the condition of a row with a probe."""
    assert op.probe is not None
    return _program(op.probe, op.direction, op.probe.inputs, op.probe.call, dtype=dtype, layout=layout)


def of_control(op: Op, control: Control, *, dtype: str = "float32") -> Program:
    """The program that does not meet the condition of a row with a probe."""
    assert op.probe is not None
    return _program(
        op.probe,
        control.direction or op.direction,
        {**op.probe.inputs, **control.inputs},
        control.call or op.probe.call,
        dtype=control.dtype or dtype,
        threads=control.threads,
    )


def _program(
    probe: Probe,
    direction: Direction,
    inputs: dict[str, str],
    call: str,
    *,
    dtype: str,
    layout: str = "contiguous",
    threads: int = 0,
) -> Program:
    wanted = _names(call)
    for name in reversed(list(inputs)):
        if name in wanted:
            wanted |= _names(inputs[name])
    kept = tuple((name, value) for name, value in inputs.items() if name in wanted)
    text = " ".join([call, *(value for _, value in kept)])
    needs = tuple(name for name in probe.needs if (name if name != "compiler" else "torch.compile(") in text)
    constant = tuple(name for name in probe.constant if name in wanted)
    return Program(
        inputs=kept,
        call=call,
        direction=direction,
        constant=constant,
        needs=needs,
        dtype=dtype,
        layout=layout,
        threads=threads,
    )


def _names(expression: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}
