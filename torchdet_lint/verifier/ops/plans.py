"""The schema of an op -> how the op is recorded, worked out once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.catalogue import runtime

if TYPE_CHECKING:
    from collections.abc import Callable

VIEW, PICK, SET, RESIZE, EMPTY, COLLECTIVE, LIFT, VALUE = range(8)
"""What an op does: hands out another view of its input, or one at a place that Python's numbers say; binds a storage (a
batch or a checkpoint arrives); may grow into memory that nothing has written; hands out such memory; begins to exchange
values with other processes, which may go on after it returns; takes a value in from Python, NumPy or another process;
computes."""

MADE, CHANGED, NUMBER = 1, 2, 3
_TABLES = runtime.dispatch()


class Plan:
    """What the recorder does with one op.

    `written` are the arguments that the op writes in place, as (position, name); `fresh` is 1 where it returns
    exactly one new tensor, 0 where it returns nothing new, 2 otherwise; `overwrites` is the position of an argument
    that it writes and reads nothing of, -1 where there is none; `binds` says that the tensor which it returns is made
    of those that it is given; `outs` are the keywords that it writes and reads nothing of. `form` says what is all that
    it gives: `MADE` one new tensor, `CHANGED` its first argument, `NUMBER` a number of Python's; 0 where it gives or
    does more than that.
    `generator` is the position of an argument that is one, -1 where there is none.
    """

    __slots__ = (
        "binds",
        "call",
        "form",
        "fresh",
        "function",
        "generator",
        "index",
        "kind",
        "name",
        "outs",
        "overwrites",
        "random",
        "scratch",
        "tensors",
        "written",
    )

    def __init__(self, function: Any, index: int) -> None:
        self.function = function
        self.index = index
        self.call: Callable[..., Any] = getattr(function, "_op", function)
        schema = getattr(function, "_schema", None)
        self.written: tuple[tuple[int, str], ...] = ()
        self.name, self.kind, self.fresh = str(function), VALUE, 2
        self.random = self.binds = False
        self.overwrites = -1
        self.scratch: tuple[int, ...] = ()
        self.outs: frozenset[str] = frozenset()
        self.tensors: tuple[bool, ...] = ()
        self.form = 0
        self.generator = -1
        if schema is None:
            return
        self.name = schema.name.replace("::", ".") + (f".{schema.overload_name}" if schema.overload_name else "")
        namespace, _, base = schema.name.partition("::")
        self.written = _written(schema, base)
        self.binds = base in _TABLES.binds
        self.fresh = 0 if self.binds else _fresh(schema)
        self.scratch = _TABLES.scratch.get(base, ())
        self.tensors = takes_tensors(schema)
        self.random = torch.Tag.nondeterministic_seeded in function.tags and base not in _TABLES.drawless
        self.overwrites = _overwritten(schema, base, self.written)
        self.outs = frozenset(name for _, name in self.written if _is_out(schema, name))
        self.generator = next((at for at, one in enumerate(schema.arguments) if "Generator" in str(one.type)), -1)
        self.kind = _kind(namespace, base, schema, bool(self.written))
        if self.kind == VALUE and not self.written:
            number = [str(one.type) for one in schema.returns] == ["number"]
            self.form = MADE if self.fresh == 1 else NUMBER if number else 0
        elif self.kind == VALUE and not self.fresh and [at for at, _ in self.written] == [0]:
            self.form = CHANGED

    def inputs_of(self, kwargs: dict[str, Any]) -> list[Any]:
        """The values among `kwargs` that the op reads."""
        return [value for name, value in kwargs.items() if name not in self.outs]

    def read_of(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments that the op reads."""
        return args if self.overwrites < 0 else args[: self.overwrites] + args[self.overwrites + 1 :]

    def mended(self, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """What the op can be called with in the place of `args`, which it refused; None where that is not known."""
        return with_tensors(self.tensors, args)

    @property
    def base(self) -> str:
        """The op's name without namespace and overload."""
        return self.name.split(".")[1] if "." in self.name else self.name


def takes_tensors(schema: Any) -> tuple[bool, ...]:
    """Which of the arguments of an op are one tensor each."""
    return tuple(str(argument.type) == "Tensor" for argument in schema.arguments)


def with_tensors(tensors: tuple[bool, ...], args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """`args` with a tensor where torch hands a mode a Python number for one, as TorchScript's printer does."""
    strange = [is_tensor and isinstance(a, (int, float)) for is_tensor, a in zip(tensors, args, strict=False)]
    if not any(strange):
        return None
    return tuple(torch.tensor(a) if odd else a for odd, a in zip(strange, args, strict=False))


def _kind(namespace: str, base: str, schema: Any, writes: bool) -> int:
    if base == "set_":
        return SET
    if base in _TABLES.resizing:
        return RESIZE
    if base in _TABLES.empty:
        return EMPTY
    if base in _TABLES.lifts:
        return LIFT
    if namespace in _TABLES.collectives:
        return COLLECTIVE
    if base in _TABLES.views or namespace in _TABLES.silent:
        return VIEW
    if base in _TABLES.picks:
        return PICK
    returns = schema.returns
    aliases = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    return VIEW if aliases and not writes else VALUE


def _written(schema: Any, base: str) -> tuple[tuple[int, str], ...]:
    undeclared = _TABLES.undeclared_writes.get(base, ())
    return tuple(
        (position, argument.name)
        for position, argument in enumerate(schema.arguments)
        if (argument.alias_info is not None and argument.alias_info.is_write) or argument.name in undeclared
    )


def _overwritten(schema: Any, base: str, written: tuple[tuple[int, str], ...]) -> int:
    """The position of an argument that an op writes and reads nothing of, -1 where there is none."""
    if base in _TABLES.overwrites:
        return 0 if written[:1] and written[0][0] == 0 else -1
    names = [argument.name for argument in schema.arguments]
    filled = _TABLES.filled.get(base, "")
    return names.index(filled) if filled in names else -1


def _is_out(schema: Any, name: str) -> bool:
    return any(argument.name == name and argument.is_out for argument in schema.arguments)


def _fresh(schema: Any) -> int:
    fresh = [r for r in schema.returns if r.alias_info is None]
    if not fresh:
        return 0
    return 1 if len(schema.returns) == 1 and str(schema.returns[0].type) == "Tensor" else 2
