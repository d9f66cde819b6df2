"""A function -> a dispatch mode that calls it in the place of every op.

Importing this module imports torch.
"""

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any

from torch.utils._python_dispatch import TorchDispatchMode

from torchdet_lint.verifier.ops.subclasses import Constructors

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    Direct = Callable[..., Any]


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
        return self._handle(func, args, kwargs or {})


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
