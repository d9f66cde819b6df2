"""The `[ops.probe]` of a row -> how its op is run to see whether it varies: inputs and calls, as Python text."""

from __future__ import annotations

from typing import Literal

import msgspec

from torchdet_lint.catalogue.conditions import Table


class Control(Table, frozen=True, kw_only=True):
    """A call that does not meet a row's condition: what is other than in the row's probe, and `what` in words.

    `inputs` replace inputs of the same names, `threads` is the number of threads that it runs with.
    """

    what: str
    inputs: dict[str, str] = msgspec.field(default_factory=dict)
    call: str = ""
    direction: Literal["", "forward", "backward"] = ""
    dtype: str = ""
    threads: int = 0
    mode: str = ""


class Probe(Table, frozen=True, kw_only=True):
    """Inputs that meet a row's condition, and the call of the op, in Python.

    The expressions may use `torch`, `F`, earlier inputs, and what `torchdet_lint.verifier.probe.measuring.inputs` makes
    (`normal(2, 3)`, `repeated(100, many)`). Of a backward op the gradients of all floating-point inputs, but for those
    in `constant`, and of the parameters of modules are compared. `dtypes` and `layouts` are measured besides float32
    and contiguous. `needs` are packages, or `compiler`; `mode` is the one in which the condition holds. `reason` says
    why the op cannot be measured on the CPU; without a `call` it cannot be measured anywhere.
    """

    inputs: dict[str, str] = msgspec.field(default_factory=dict)
    call: str = ""
    constant: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    layouts: tuple[Literal["channels_last"], ...] = ()
    needs: tuple[str, ...] = ()
    mode: str = ""
    controls: tuple[Control, ...] = ()
    reason: str = ""
