"""One op of a recorded program -> its tensors in a file, their names, and what the op gives on the same inputs again.

The op is known by its number in the stream, from a recording that was made before. After the last op that is asked for
the process ends at once.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _python_dispatch

from torchdet_lint.verifier.ops.plans import COLLECTIVE, LIFT, SET, VIEW, Plan
from torchdet_lint.verifier.recording import hashing
from torchdet_lint.verifier.recording.lines import OWN
from torchdet_lint.verifier.recording.values import base_of, bytes_of, is_spread, local_of, tensors_in
from torchdet_lint.verifier.recording.watching.taps import made_by, tapped, written_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torchdet_lint.verifier.ops.dispatch import Direct
    from torchdet_lint.verifier.recording.lines import Classifier
    from torchdet_lint.verifier.recording.streams import Run, Stream

MOST_BYTES = 1 << 28
PATIENCE = 5.0
"""Seconds that an op is repeated for at most."""


def watching(order: Mapping[str, Any], run: Run, stream: Stream, dispatch: Direct) -> Direct:
    """`dispatch`, which also looks at the ops that `order` names: `stream`, `targets` (numbers of records), `replay`
    (how often the op is repeated), `folder` (where the files go).
    """
    return tapped(_Look(order, run, stream), run, stream, dispatch)


class _Look:
    """What is asked for, and what was seen so far. `targets` begins with the next number."""

    def __init__(self, order: Mapping[str, Any], run: Run, stream: Stream) -> None:
        self.run, self.stream = run, stream
        self.targets = [*map(int, order["targets"]), 1 << 62]
        self.folder, self.wanted = Path(order["folder"]), order["stream"]
        self.replay = int(order.get("replay", 0))

    def due(self) -> bool:
        """Whether the next record is asked for."""
        return self.stream.records == self.targets[0]

    def _is_mine(self) -> bool:
        name = "main" if self.stream.kind == "main" else f"process {self.run.process_name()}"
        return self.stream.kind != "thread" and name == self.wanted

    def before(self, plan: Plan, args: Any, kwargs: Any) -> Any:
        """A copy of what the op is about to read, where it can be repeated on it."""
        if plan.random or plan.kind in (VIEW, SET, LIFT, COLLECTIVE) or not self._is_mine():
            return None
        if any(map(is_spread, tensors_in((args, kwargs)))):
            # The other processes do not repeat it.
            return None
        return _copied((args, kwargs))

    def after(self, plan: Plan, args: Any, kwargs: Any, out: Any, kept: Any) -> Any:
        """Save what the op wrote, and repeat it."""
        about = self._repeated(plan, kept) if kept is not None else {}
        self.save(made_by(plan, args, kwargs, out), written_by(plan, args, kwargs), about)
        return out

    def came(self, value: Any) -> None:
        """Save what the program takes, or hands to NumPy."""
        self.save([value], [])

    def called(self, out: Any, given: Any, values: list[Any], changed: list[Any]) -> Any:
        """Save what a call made and changed."""
        del given
        self.save(values, changed)
        return out

    def save(self, values: list[Any], written: list[Any], about: Mapping[str, Any] | None = None) -> None:
        """Put tensors into a file, and go on to the next op that is asked for, if there is one."""
        number = self.targets.pop(0)
        if not self._is_mine():
            return
        tensors = [local_of(value) for value in tensors_in(values) if isinstance(value, torch.Tensor)]
        rows, offset = [], 0
        names = _names(tensors, self.run.classifier)
        with _python_dispatch._disable_current_modes(), (self.folder / f"{number}.bin").open("wb") as out:
            for tensor in tensors:
                data = bytes_of(tensor)
                if data is None or offset + len(data) > MOST_BYTES:
                    continue
                row = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
                rows.append({**row, "offset": offset, "bytes": len(data), "name": names.get(base_of(tensor), "")})
                out.write(data)
                offset += len(data)
        table = {"tensors": rows, "in_place": bool(written), **(about or {})}
        whole = self.folder / f"{number}.json"
        whole.with_suffix(".part").write_text(json.dumps(table), encoding="utf-8")
        whole.with_suffix(".part").replace(whole)
        if len(self.targets) == 1:
            sys.stdout.flush()
            os._exit(0)

    def _repeated(self, plan: Plan, kept: Any) -> dict[str, Any]:
        """How often the op gave what it gives most often, and how far one ulp in its inputs moves its outputs."""
        counts: dict[Any, int] = {}
        end = time.monotonic() + PATIENCE
        threads = torch.get_num_threads()
        try:
            with _python_dispatch._disable_current_modes(), torch.no_grad():
                for _ in range(self.replay):
                    digest = tuple(map(hashing.general, _outputs(plan, _copied(kept))))
                    counts[digest] = counts.get(digest, 0) + 1
                    if time.monotonic() > end:
                        break
                torch.set_num_threads(1)
                moved = _one_ulp(plan, kept)
        except Exception:
            return {}
        finally:
            torch.set_num_threads(threads)
        runs = sum(counts.values())
        return {"replayed": runs, "replay_differing": runs - max(counts.values(), default=0), "one_ulp": moved}


def _one_ulp(plan: Plan, kept: Any) -> float:
    """How far the outputs move where each input moves by one ulp. An op that moves as far on the same inputs does not
    tell: then it is one ulp of the largest number that it reads or writes.
    """
    first = _outputs(plan, _copied(kept))
    still = max(_moved(first, _outputs(plan, _copied(kept))) for _ in range(3))
    moved = max(_moved(first, _outputs(plan, _nudged(kept, phase))) for phase in (0, 1, 2))
    if still < moved / 2:
        return moved
    numbers = [tensor for tensor in tensors_in([kept, first]) if isinstance(tensor, torch.Tensor)]
    return max((_ulp_of_largest(tensor) for tensor in numbers), default=0.0)


def _ulp_of_largest(tensor: torch.Tensor) -> float:
    if not tensor.is_floating_point() or tensor.layout is not torch.strided:
        return 0.0
    finite = tensor.detach()[tensor.isfinite()].abs()
    return float(finite.max()) * torch.finfo(tensor.dtype).eps if finite.numel() else 0.0


def _outputs(plan: Plan, kept: Any) -> list[torch.Tensor]:
    args, kwargs = kept
    out = plan.call(*args, **kwargs)
    written = written_by(plan, args, kwargs)
    return [value for value in tensors_in([out, *written]) if isinstance(value, torch.Tensor)]


def _moved(first: list[torch.Tensor], second: list[torch.Tensor]) -> float:
    """The largest absolute difference of numbers that are finite in both."""
    most = 0.0
    for one, two in zip(first, second, strict=True):
        if one.is_floating_point() and one.numel():
            gaps = (one.double() - two.double()).abs()
            most = max(most, float(gaps[gaps.isfinite()].max()) if gaps.isfinite().any() else 0.0)
    return most


def _copied(value: Any) -> Any:
    with _python_dispatch._disable_current_modes():
        return _mapped(value, lambda tensor: tensor.detach().clone())


def _nudged(value: Any, phase: int) -> Any:
    """A copy with every floating-point number moved by one ulp: up, every second one, every third one."""

    def nudged(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point() or tensor.layout is not torch.strided:
            return tensor.detach().clone()
        up = torch.nextafter(tensor.detach(), torch.full_like(tensor, float("inf")))
        if not phase:
            return up
        places = torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape) % (phase + 1) == 0
        return torch.where(places, up, tensor.detach())

    return _mapped(value, nudged)


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)([_mapped(item, change) for item in value])
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return value


def _names(tensors: list[torch.Tensor], kinds: Classifier) -> dict[int, str]:
    """What the memory of tensors is called: a parameter or buffer of a module, what an optimizer keeps for one, else a
    variable of a frame.
    """
    wanted = {base_of(tensor) for tensor in tensors} - {0}
    found: dict[int, str] = {}
    called: dict[int, str] = {}
    objects = gc.get_objects()
    modules = [value for value in objects if issubclass(type(value), torch.nn.Module)]
    inner = {id(child) for module in modules for child in module.children()}
    for module in modules:
        if id(module) in inner:
            continue
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            called.setdefault(id(tensor), name)
            for kind, one in (("", tensor), ("the gradient of ", tensor.grad if tensor.is_leaf else None)):
                if one is not None and (base := base_of(local_of(one))) in wanted:
                    found.setdefault(base, kind + name)
    for optimizer in [value for value in objects if issubclass(type(value), torch.optim.Optimizer)]:
        for parameter, kept in list(optimizer.state.items()):
            for key, tensor in list(kept.items()) if isinstance(kept, dict) else ():
                if isinstance(tensor, torch.Tensor) and (base := base_of(local_of(tensor))) in wanted:
                    found.setdefault(base, f"{key} of {called.get(id(parameter), 'a parameter')}")
    frame: Any = sys._getframe(1)
    while frame is not None and wanted - found.keys():
        own = kinds[frame.f_code.co_filename] == OWN
        for name, value in list(frame.f_locals.items()) if own else ():
            if isinstance(value, torch.Tensor):
                base = base_of(local_of(value))
                if base in wanted:
                    found.setdefault(base, name)
        frame = frame.f_back
    return found
