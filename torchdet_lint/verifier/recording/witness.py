"""A program that is forecast -> notes: which conditional ops meet their conditions, and what CUDA does otherwise.

The recorder notes op, line and phase of everything; this notes, for each execution of an op whose arguments decide,
which op of the catalogue it is, in the order of execution.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import json
import os
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.ops import aten
from torchdet_lint.verifier.patching.frames import user_line
from torchdet_lint.verifier.patching.patches import after_import

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torchdet_lint.verifier.patching.patches import Patches


def install(patches: Patches, path: Path) -> None:
    """Watch this process's main thread from the import of torch on; `path` is written when it ends."""
    after_import(patches, "torch", lambda torch: _Witness(torch, path).begin(patches))


class _Witness:
    def __init__(self, torch: Any, path: Path) -> None:
        self.torch = torch
        self.path = path
        self.pid = os.getpid()
        self.names: dict[str, int] = {"": 0}
        self.ops: dict[str, list[int]] = collections.defaultdict(list)
        self.calls: collections.Counter[tuple[str, str, int]] = collections.Counter()
        self.parameters: dict[Any, tuple[str, ...]] = {}

    def begin(self, patches: Patches) -> None:
        from torchdet_lint.verifier.ops.dispatch import OpMode

        functional = self.torch.nn.functional
        attention = functional.scaled_dot_product_attention
        patches.set(functional, "scaled_dot_product_attention", self._noting(aten.CALLS[3], attention))
        for name in aten.CALLS[:3]:
            kind = getattr(self.torch.nn, name.rpartition(".")[2])
            patches.set(kind, "forward", self._noting(name, kind.forward))
        mode = OpMode(self._watch)
        mode.__enter__()
        atexit.register(self.write)

    def _noting(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if os.getpid() == self.pid and self._differentiated(args, kwargs):
                file, line = user_line()
                self.calls[name, file, line] += 1
            return original(*args, **kwargs)

        return call

    def _differentiated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if not self.torch.is_grad_enabled():
            return False
        module = args[0] if args and isinstance(args[0], self.torch.nn.Module) else None
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, self.torch.Tensor)]
        tensors += list(module.parameters()) if module is not None else []
        return any(tensor.requires_grad for tensor in tensors)

    def _watch(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if getattr(function, "namespace", "") == "aten":
            self._note(function, args, kwargs)
        return function(*args, **kwargs)

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = aten.base_name(func._schema.name)
        if name not in aten.CONDITIONAL or os.getpid() != self.pid:
            return
        if func not in self.parameters:
            self.parameters[func] = tuple(argument.name for argument in func._schema.arguments)
        values = {**dict(zip(self.parameters[func], args, strict=False)), **kwargs}
        found = aten.by_arguments(name, func._schema.overload_name, values)
        self.ops[_recorded_name(func)].append(self.names.setdefault(found, len(self.names)))

    def write(self) -> None:
        if os.getpid() != self.pid:
            return
        calls = [[*call, count] for call, count in sorted(self.calls.items())]
        # Only a new file is written: anybody may have set the variable that names it.
        with contextlib.suppress(FileExistsError), self.path.open("x", encoding="utf-8") as out:
            json.dump({"names": list(self.names), "ops": self.ops, "calls": calls}, out)


def _recorded_name(func: Any) -> str:
    """The name that the recorder gives the op."""
    overload = func._schema.overload_name
    return str(func._schema.name.replace("::", ".")) + (f".{overload}" if overload else "")
