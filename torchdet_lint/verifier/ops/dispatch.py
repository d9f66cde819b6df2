"""A function -> a dispatch mode that calls it in the place of every op.

Importing this module imports torch.
"""

from __future__ import annotations

import threading
from types import MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchdet_lint.verifier.ops.plans import takes_tensors, with_tensors
from torchdet_lint.verifier.ops.subclasses import Constructors

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    Direct = Callable[..., Any]


tracing: Callable[[], Any] = getattr(torch._C, "_get_tracing_state", lambda: None)
"""What `torch.jit.trace` has noted so far, in an op that it runs without having noted it; else None."""


_set_tracing: Callable[[Any], None] = getattr(torch._C, "_set_tracing_state", lambda _: None)


def _trace(state: Any, excluded: bool) -> None:
    torch._C._dispatch_tls_set_dispatch_key_excluded(_TRACER, False)
    _set_tracing(state)
    torch._C._dispatch_tls_set_dispatch_key_excluded(_TRACER, excluded)


class _Traced:
    """An op that TorchScript runs as it traces."""

    def __init__(self, function: Any) -> None:
        self._function = function
        # It traces what this is made of, which it would not hear of below a mode.
        self._in_parts = function is torch.ops.aten.convolution.default

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state, excluded = _STATES.now
        _trace(state, excluded and not self._in_parts)
        try:
            return self._function(*args, **kwargs)
        finally:
            _trace(None, excluded)

    @property
    def _op(self) -> Callable[..., Any]:
        return self.__call__

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __str__(self) -> str:
        return str(self._function)


def while_traced(state: Any, function: Any, handle: Callable[[Any], Any]) -> Any:
    """`handle(function)`, of which TorchScript traces what the op does and nothing else."""
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(_TRACER)
    _trace(None, excluded)
    _STATES.now = state, excluded
    try:
        return handle(_TRACED.setdefault(id(function), _Traced(function)))
    finally:
        _STATES.now = None, excluded
        _trace(state, excluded)


class OpMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Hands every op of the thread that enters it, its backward passes included, to `handle(function, args, kwargs)`.

    `torch.compile` compiles as it would without the mode, and ops that take functions pass through it too.
    """

    supports_higher_order_operators = True

    def __init__(self, handle: Handler) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._handle = handle

    def __enter__(self) -> Any:
        entered = super().__enter__()  # type: ignore[no-untyped-call]
        _CONSTRUCTORS.enter()
        return entered

    def __exit__(self, *error: object) -> None:
        _CONSTRUCTORS.leave()
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Asked by torch.compile, which else falls back to eager while the mode is active."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (state := tracing()) is not None:
            return while_traced(state, func, lambda traced: self._handle(traced, args, kwargs or {}))
        try:
            return self._handle(func, args, kwargs or {})
        except RuntimeError:
            schema = getattr(func, "_schema", None)
            mended = with_tensors(takes_tensors(schema), args) if schema is not None else None
            if mended is None:
                raise
        return self._handle(func, mended, kwargs or {})


_STATES = threading.local()
_TRACED: dict[int, _Traced] = {}
_TRACER = torch._C._dispatch_key_parse("Tracer")
_CONSTRUCTORS = Constructors(OpMode)


def direct(handle: Direct) -> OpMode:
    """A mode of which torch calls `handle(mode, function, types, args=(), kwargs=None)` with nothing in between, which
    counts where ops are small.
    """
    mode = OpMode(lambda function, args, kwargs: handle(mode, function, (), args, kwargs))
    mode.__torch_dispatch__ = MethodType(handle, mode)  # type: ignore[method-assign]
    return mode


def name_of(function: Any) -> str:
    """`aten::add` for an op of torch, empty for one without a schema."""
    schema = getattr(function, "_schema", None)
    return str(schema.name) if schema is not None else ""
