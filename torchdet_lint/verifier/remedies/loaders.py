"""Data loaders, samplers and splits -> the same with a generator of their own, and with batches in order."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.patches import after_import

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.verifier.remedies.context import Context

_SAMPLERS = ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")


def worker_seeds(context: Context) -> None:
    """A loader with workers takes their base seed from a generator of its own.

    Since torch 1.9 that number seeds `random`, NumPy and torch in every worker, anew in every epoch.
    """

    def after(torch: Any, loader: Any) -> None:
        if loader.num_workers and loader.generator is None:
            loader.generator = _generator(context, torch, "worker seeds")

    _wrap_loader(context, after=after)


def loader_generator(context: Context) -> None:
    """A loader that shuffles, or whose random sampler has no generator, gets a generator of its own."""

    def before(torch: Any, arguments: dict[str, Any]) -> None:
        if arguments.get("generator") is None and arguments.get("shuffle"):
            arguments["generator"] = _generator(context, torch, "loader")

    def after(torch: Any, loader: Any) -> None:
        for owner in (loader, getattr(loader, "batch_sampler", None)):
            sampler: Any = getattr(owner, "sampler", None)
            if type(sampler).__name__ in _SAMPLERS and getattr(sampler, "generator", 0) is None:
                sampler.generator = _generator(context, torch, "loader's sampler")

    _wrap_loader(context, before=before, after=after)


def ordered_batches(context: Context) -> None:
    """A loader hands batches over in the order of its sampler, also with `in_order=False`."""

    def before(torch: Any, arguments: dict[str, Any]) -> None:
        del torch
        if not arguments.get("in_order", True):
            arguments["in_order"] = True
            context.reporter.report("TDL308", "DataLoader(in_order=False) replaced by in_order=True")

    _wrap_loader(context, before=before)


def _wrap_loader(
    context: Context,
    *,
    before: Callable[[Any, dict[str, Any]], object] | None = None,
    after: Callable[[Any, Any], object] | None = None,
) -> None:
    def patch(torch: Any) -> None:
        loader = torch.utils.data.DataLoader
        original = loader.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            if before is not None:
                try:
                    bound = signature.bind(self, *args, **kwargs)
                except TypeError:
                    original(self, *args, **kwargs)
                    return
                before(torch, bound.arguments)
                args, kwargs = bound.args[1:], bound.kwargs
            original(self, *args, **kwargs)
            if after is not None:
                after(torch, self)

        context.patches.set(loader, "__init__", __init__)

    after_import(context.patches, "torch", patch)


def sampler_generator(context: Context) -> None:
    """A random sampler or split that was given no generator gets one of its own."""

    def patch(torch: Any) -> None:
        data = torch.utils.data
        inside_loader = inspect.unwrap(data.DataLoader.__init__).__code__
        for name in _SAMPLERS:
            _wrap_sampler(context, torch, getattr(data, name), inside_loader)
        original = data.random_split

        @functools.wraps(original)
        def random_split(dataset: Any, lengths: Any, generator: Any = None) -> Any:
            if (generator is None or generator is torch.default_generator) and not _freshly_seeded(context, torch):
                generator = _generator(context, torch, "split")
            return original(dataset, lengths, generator)

        context.patches.replace_everywhere(original, random_split)

    after_import(context.patches, "torch", patch)


def _freshly_seeded(context: Context, torch: Any) -> bool:
    """Whether the program has seeded torch and drawn nothing since: what is drawn now repeats, and two splits after one
    seed agree."""
    if "torch" not in context.program_seeds:
        return False
    fresh = torch.Generator().manual_seed(torch.initial_seed())
    return bool(torch.equal(fresh.get_state(), torch.get_rng_state()))


def _wrap_sampler(context: Context, torch: Any, sampler: Any, inside_loader: Any) -> None:
    original = sampler.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        # The sampler that a shuffling loader makes is the loader's business.
        if self.generator is None and sys._getframe(1).f_code is not inside_loader:
            self.generator = _generator(context, torch, "sampler")

    context.patches.set(sampler, "__init__", __init__)


def _generator(context: Context, torch: Any, kind: str) -> Any:
    """A generator of its own, which follows a seed that the program sets after this and before the first use."""
    place = context.place(kind)
    generator = torch.Generator()
    reference = weakref.ref(generator, lambda _: context.on_seed.remove(follow))
    unused: Any = None

    def follow() -> None:
        nonlocal unused
        found = reference()
        if found is not None and (unused is None or torch.equal(found.get_state(), unused)):
            found.manual_seed(context.derive(*place))
            unused = found.get_state()

    follow()
    context.on_seed.append(follow)
    return generator
