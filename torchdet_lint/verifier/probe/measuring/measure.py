"""One program -> the outcomes of its runs in this process, their bits compared."""

from __future__ import annotations

import collections
import importlib.util
import shutil
import statistics
import time
from typing import TYPE_CHECKING, Any

import torch

from torchdet_lint.verifier.probe.batches import Batch, Difference, Task
from torchdet_lint.verifier.probe.measuring import difference
from torchdet_lint.verifier.probe.measuring.inputs import Inputs
from torchdet_lint.verifier.probe.measuring.modes import Provocations, mode
from torchdet_lint.verifier.recording import hashing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.verifier.probe.batches import Ending
    from torchdet_lint.verifier.probe.programs import Program

SEED = 20_240_229
_MOST_COMPARED = 5
_MISSING = ("not implemented for", "not supported", "Could not run", "not compiled with", "not available")

Tensors = list[torch.Tensor]


def measure(task: Task) -> Batch:
    """Run the task; whatever its program raises is the answer and not the end."""
    missing = next((name for name in task.program.needs if not _there(name)), None)
    if missing is not None:
        return Batch(ending="unavailable", note=_wanting(missing))
    threads = torch.get_num_threads()
    if task.program.threads:
        torch.set_num_threads(task.program.threads)
    try:
        return _measured(task)
    except torch.OutOfMemoryError as error:
        return Batch(ending="out of memory", note=_line(error))
    except Exception as error:
        return Batch(ending=_ending(error), note=_line(error))
    finally:
        if task.program.threads:
            torch.set_num_threads(threads)


def _there(name: str) -> bool:
    if name == "compiler":
        return any(shutil.which(compiler) for compiler in ("g++", "clang++", "cl"))
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def _wanting(name: str) -> str:
    return "there is no C++ compiler" if name == "compiler" else f"{name.partition('.')[0]} is not installed"


def _ending(error: Exception) -> Ending:
    text = str(error)
    if isinstance(error, ImportError | NotImplementedError) or any(part in text for part in _MISSING):
        return "unavailable"
    return "out of memory" if "out of memory" in text or "can't allocate memory" in text else "raises"


def _line(error: Exception) -> str:
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first.partition(', but you set')[0]}"[:200]


def _measured(task: Task) -> Batch:
    names = _built(task)
    digest = hashing.hasher()
    fed = [value for name, _ in task.program.inputs for value in _tensors(names[name])]
    fed_digest = _hex(digest, fed)
    provocations = Provocations(task.device, seed=task.salt)
    digests: collections.Counter[tuple[str, str]] = collections.Counter()
    times: list[float] = []
    first: Tensors = []
    widest: Difference | None = None
    compared = 0
    try:
        with mode(task.mode, compiled="compiler" in task.program.needs) as warned:
            run = _runner(task.program, names)
            end = time.monotonic() + task.seconds
            for number in range(task.runs):
                provocation = provocations.names[number % len(provocations.names)]
                with provocations.around(provocation):
                    begin = _now(task.device)
                    result = run()
                    elapsed = _now(task.device) - begin
                if number and provocation == "plain":
                    times.append(elapsed)
                key = _hex(digest, result)
                if not number:
                    first, reference, times = result, key, [elapsed]
                elif key != reference and compared < _MOST_COMPARED:
                    widest = _wider(widest, difference.between(first, result))
                    compared += 1
                digests[provocation, key] += 1
                if number and time.monotonic() >= end:
                    break
    finally:
        provocations.close()
    return Batch(
        ending="ran",
        digests=tuple((*key, count) for key, count in sorted(digests.items())),
        inputs=fed_digest,
        seconds=statistics.median(times[1:] or times),
        difference=widest,
        warned=any("deterministic" in str(warning.message) for warning in warned),
    )


def _built(task: Task) -> dict[str, Any]:
    """The names of the program, its inputs made and its modules on the device."""
    dtype = getattr(torch, task.program.dtype)
    names = Inputs(task.device, dtype, SEED, task.program.layout).namespace()
    torch.manual_seed(SEED)
    exec(compile(task.program.text, "<probe>", "exec"), names)
    for name, _ in task.program.inputs:
        if isinstance(names[name], torch.nn.Module):
            names[name].to(task.device, dtype)
    return names


def _runner(program: Program, names: dict[str, Any]) -> Callable[[], Tensors]:
    """A function that runs the op once and gives the tensors to compare: its results, or its gradients."""
    call: Callable[[], Any] = names["call"]
    if program.direction == "forward":

        def forward() -> Tensors:
            with torch.no_grad():
                return list(_tensors(call()))

        return forward
    leaves = list(_leaves(program, names))

    def outputs() -> Tensors:
        return [tensor for tensor in _tensors(call()) if tensor.requires_grad]

    out = outputs()
    source = torch.Generator().manual_seed(SEED)
    upstream = [torch.randn(tensor.shape, generator=source).to(tensor.device, tensor.dtype) for tensor in out]
    fresh = "compiler" in program.needs

    def backward() -> Tensors:
        grads = torch.autograd.grad(
            outputs() if fresh else out, leaves, upstream, retain_graph=not fresh, allow_unused=True
        )
        return [grad for grad in grads if grad is not None]

    return backward


def _leaves(program: Program, names: dict[str, Any]) -> Iterator[torch.Tensor]:
    for name, _ in program.inputs:
        value = names[name]
        if name in program.constant:
            continue
        if isinstance(value, torch.nn.Module):
            yield from value.parameters()
        elif isinstance(value, torch.Tensor) and value.is_floating_point() and value.layout is torch.strided:
            yield value.requires_grad_()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, torch.nn.Module):
        yield from value.parameters()
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, int | float):
        yield torch.tensor(value)


def _hex(digest: Callable[[torch.Tensor], int], tensors: Sequence[torch.Tensor]) -> str:
    digests = [digest(tensor) for tensor in tensors]
    if hashing.UNHASHABLE in digests:
        raise NotImplementedError("the bits of its result cannot be read")
    return f"{hash(tuple(digests)) & hashing.MASK:016x}"


def _now(device: str) -> float:
    if device != "cpu":
        getattr(torch, device).synchronize()
    return time.perf_counter()


def _wider(a: Difference | None, b: Difference) -> Difference:
    if a is None:
        return b
    ulps = [ulp for ulp in (a.ulp, b.ulp) if ulp is not None]
    return Difference(
        ulp=max(ulps, default=None),
        absolute=max(a.absolute, b.absolute),
        elements=max(a.elements, b.elements),
        of=b.of,
    )
