"""This machine, weights and data -> `Preflight`: tables of names and values, to be held against another machine's."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import os
import random
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch

import torchdet_lint
from torchdet_lint.verifier.probe.measuring.machine import default_device, describe
from torchdet_lint.verifier.recording import hashing
from torchdet_lint.verifier.recording.environment import environment
from torchdet_lint.verifier.recording.generators import kept
from torchdet_lint.verifier.verification.leftovers.contents import hashed, members
from torchdet_lint.verifier.verification.outcome import VerifyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SCHEMA = "torchdet-lint/preflight/1"
Table = dict[str, str]
MOST_ROWS = 20_000
_MOST_FILES = 5_000_000


class Preflight(msgspec.Struct, frozen=True):
    """What a run on a machine will depend on: for each part a table of names and values, in the order in which they
    are told. `aside` holds what results do not depend on, as far as is known; with `contents` the files of the data are
    digested, not only listed.
    """

    machine: Table
    packages: Table
    flags: Table
    variables: Table
    weights: Table
    data: Table
    generators: Table
    draws: Table
    ops: Table
    aside: Table
    contents: bool = False
    program: tuple[str, ...] = ()
    schema: str = SCHEMA
    version: str = torchdet_lint.__version__


PARTS = ("machine", "packages", "flags", "variables", "weights", "data", "generators", "draws", "ops")


def preflight(
    path: str | os.PathLike[str] | None = None,
    *,
    weights: Sequence[str | os.PathLike[str]] = (),
    data: Sequence[str | os.PathLike[str]] = (),
    contents: bool = False,
    model: Any = None,
    seed: int = 0,
    generators: bool = True,
) -> Preflight:
    """What a run that begins now will depend on, written to the file `path` as JSON if one is given.

    Flags stand as the program has set them. `weights` are files, `data` folders, of which names and sizes are listed,
    with `contents` digests too; `model` is a module whose parameters and buffers count as weights. The draws are those
    of generators made here with `seed`; with `generators` the states of the global ones are part of it. It changes
    none of them. Raises `VerifyError`, in one line.
    """
    before = kept()
    try:
        found = _gathered(weights, data, contents, model, seed, generators)
    finally:
        before.restore()
    if path is not None:
        try:
            Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
        except OSError as error:
            raise VerifyError(f"{path}: cannot be written: {error.strerror}") from error
    return found


def _gathered(weights: Any, data: Any, contents: bool, model: Any, seed: int, generators: bool) -> Preflight:
    device = default_device()
    here, told = describe("cpu"), environment()
    machine = {
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        "torch": here.torch,
        "processor": here.name,
        "vector instructions": _vectors(),
        "threads": str(torch.get_num_threads()),
        "system": here.platform,
    }
    if device != "cpu":
        there = describe(device)
        machine |= {"device": there.name, "driver": there.driver, "cuda": there.cuda, "cudnn": there.cudnn}
    states: Table = {}
    if generators:
        from torchdet_lint.verifier.steps.digests import global_generators

        states = {name: f"{digest:016x}" for name, digest in global_generators().items()}
    compute, others = _packages()
    rows: Table = {}
    order: Table = {}
    _need_names("data", data)
    for folder in data:
        _listed(Path(folder), contents, rows, order)
    aside = {"python": here.python, "platform": str(told["platform"]), **order, **others}
    return Preflight(
        machine=machine,
        packages=compute,
        flags=_flags(),
        variables={name: str(value) for name, value in told["variables"].items()},
        weights={**_weights(weights), **_module(model)},
        data=rows,
        generators=states,
        draws=_draws(seed, device),
        ops=_ops(device),
        aside=aside,
        contents=contents,
        program=tuple(sys.argv),
    )


def _vectors() -> str:
    """What vector instructions the kernels of torch use; empty where a release does not say."""
    tell = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", None)
    return str(tell()) if tell is not None else ""


def _packages() -> tuple[Table, Table]:
    """The installed packages, by whether results may depend on them."""
    from torchdet_lint.catalogue import runtime

    decisive = re.compile("|".join(runtime.surroundings().libraries))
    found: tuple[Table, Table] = ({}, {})
    for distribution in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", str(distribution.metadata["Name"] or "")).lower()
        if name:
            found[not decisive.fullmatch(name)].setdefault(name, distribution.version)
    return dict(sorted(found[0].items())), dict(sorted(found[1].items()))


def _flags() -> Table:
    backends, memory = torch.backends, getattr(torch.utils, "deterministic", None)
    values: dict[str, Any] = {
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "they only warn": torch.is_deterministic_algorithms_warn_only_enabled(),
        "uninitialized memory is filled": getattr(memory, "fill_uninitialized_memory", ""),
        "default dtype": torch.get_default_dtype(),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "cudnn.enabled": backends.cudnn.enabled,
        "cudnn.benchmark": backends.cudnn.benchmark,
        "cudnn.deterministic": backends.cudnn.deterministic,
        "cudnn.allow_tf32": backends.cudnn.allow_tf32,
        "cuda.matmul.allow_tf32": backends.cuda.matmul.allow_tf32,
        "mkldnn.enabled": backends.mkldnn.enabled,  # type: ignore[attr-defined,unused-ignore]
        "gradients are on": torch.is_grad_enabled(),
    }
    return {name: str(value) for name, value in values.items()}


def _weights(paths: Sequence[str | os.PathLike[str]]) -> Table:
    """The members of each file, by digest; of a file that is no archive, the whole. Nothing is unpickled."""
    found: Table = {}
    _need_names("weights", paths)
    for one in map(Path, paths):
        if not one.is_file():
            raise VerifyError(f"{one}: no such file of weights")
        try:
            for member, digest in members(one).items():
                found[f"{one.name}: {member}" if member else one.name] = digest
        except OSError as error:
            raise VerifyError(f"{one}: cannot be read: {error.strerror}") from error
    return found


def _need_names(what: str, paths: Sequence[str | os.PathLike[str]]) -> None:
    """Raise `VerifyError` where two paths have one name: by it they are told, since machines differ in their paths."""
    names = [Path(path).name for path in paths]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise VerifyError(f"two paths of {what} are called {twice[0]}")


def _module(model: Any) -> Table:
    if model is None:
        return {}
    if not isinstance(model, torch.nn.Module):
        raise VerifyError(f"preflight: `model` is a {type(model).__name__}, and no torch.nn.Module")
    pairs = (*model.named_parameters(), *model.named_buffers())
    return {name: f"{hashing.general(tensor):016x}" for name, tensor in pairs}


def _listed(folder: Path, contents: bool, rows: Table, order: Table) -> None:
    """Put the files of a folder into `rows`, by name, and the order in which the system lists them into `order`."""
    if not folder.is_dir():
        raise VerifyError(f"{folder}: no such folder of data")
    whole, listing, sizes = hashlib.blake2b(digest_size=8), hashlib.blake2b(digest_size=8), 0
    found: Table = {}
    count = 0
    by_folder: collections.Counter[str] = collections.Counter()
    waiting = [""]
    try:
        while waiting:
            inside = waiting.pop()
            with os.scandir(folder / inside) as entries:
                listed = list(entries)
            listing.update(b"\0".join(os.fsencode(entry.name) for entry in listed))
            for entry in sorted(listed, key=lambda entry: entry.name):
                name = f"{inside}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                elif entry.is_file():
                    count += 1
                    size = entry.stat().st_size
                    row = f"{size} bytes" + (f", {_digest(Path(entry.path))}" if contents else "")
                    sizes += size
                    by_folder[inside] += 1
                    whole.update(f"{name}\0{row}\0".encode("utf-8", "surrogateescape"))
                    if count <= MOST_ROWS:
                        found[f"{folder.name}/{name}"] = row
            waiting.sort(reverse=True)
            if count > _MOST_FILES:
                raise VerifyError(f"{folder}: holds more than {_MOST_FILES} files")
    except OSError as error:
        raise VerifyError(f"{error.filename or folder}: cannot be read: {error.strerror}") from error
    rows[folder.name] = f"{count} files, {sizes} bytes, {whole.hexdigest()}"
    rows |= found if count <= MOST_ROWS else {f"{folder.name}/{name}": f"{n} files" for name, n in by_folder.items()}
    order[f"order of the files in {folder.name}"] = listing.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashed(opened)[1].hex()


def _draws(seed: int, device: str) -> Table:
    """The first draws of generators that are seeded alike everywhere."""
    own = random.Random(seed)
    order = list(range(100))
    own.shuffle(order)
    found = {"random": _told([own.random() for _ in range(8)]), "random.shuffle": _told(order)}
    with contextlib.suppress(ImportError):
        import numpy

        old, new = numpy.random.RandomState(seed), numpy.random.default_rng(seed)
        found["numpy.random.RandomState"] = _told(old.standard_normal(64).tolist())
        found["numpy.random.default_rng"] = _told(new.standard_normal(64).tolist())
    for there in dict.fromkeys(("cpu", device)):
        generator = torch.Generator(there).manual_seed(seed)
        samples: dict[str, Callable[[], torch.Tensor]] = {
            "rand": lambda: torch.rand(64, generator=generator, device=there),  # noqa: B023
            "randn": lambda: torch.randn(64, generator=generator, device=there),  # noqa: B023
            "randn of 10": lambda: torch.randn(10, generator=generator, device=there),  # noqa: B023
            "randperm": lambda: torch.randperm(100, generator=generator, device=there),  # noqa: B023
            "bernoulli": lambda: torch.full((64,), 0.5, device=there).bernoulli(generator=generator),  # noqa: B023
        }
        for name, sample in samples.items():
            found[f"torch.{name} on {there}"] = _told(sample().tolist())
    return found


def _ops(device: str) -> Table:
    """Ops of torch on inputs that are the same everywhere: their bits tell kernels apart."""
    found = {}
    for there in dict.fromkeys(("cpu", device)):
        x = ((torch.arange(256 * 256, dtype=torch.float64) * 7919 % 10007) / 10007 - 0.5).to(there, torch.float32)
        square, image = x.view(256, 256), x.view(4, 16, 32, 32)
        results = {
            "sum": x.sum(),
            "exp": x.exp(),
            "softmax": square.softmax(-1),
            "matmul": square @ square,
            "matmul in float64": square.double() @ square.double(),
            "conv2d": torch.nn.functional.conv2d(image, x[: 8 * 16 * 9].view(8, 16, 3, 3), padding=1),
            "layer_norm": torch.nn.functional.layer_norm(square, (256,)),
            "cumsum": square.cumsum(0),
        }
        for name, result in results.items():
            found[f"{name} on {there}"] = _told(result.flatten().tolist())
    return found


def _told(values: Sequence[float]) -> str:
    """A digest of numbers, and the first two of them."""
    text = " ".join(value.hex() if isinstance(value, float) else str(value) for value in values)
    first = ", ".join(f"{value:.6g}" for value in values[:2])
    return f"{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()} ({first}{', …' * (len(values) > 2)})"
