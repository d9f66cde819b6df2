"""Loaders and samplers: which generator orders the data and seeds the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks import table
from torchdet_lint.checks.trace import origins
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.finding import DropArgument, Found, NeedHelper, SetArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.module.module import Call, Module

_WORKERS_SEED_NUMPY = (1, 9)


def dataloader_worker_seed(module: Module, rule: Rule) -> Iterator[Found]:
    """Workers, or a number of them that only the run knows, and no function that seeds them."""
    for call, _ in table.calls(module, rule):
        workers = call.argument("num_workers")
        assert workers is not None
        variant = "before-1.9" if module.target.torch < _WORKERS_SEED_NUMPY else ""
        changes = (NeedHelper("seed_worker"), SetArgument(call.node, "worker_init_fn", "{seed_worker}"))
        yield Found(call.node, {"workers": workers.source}, variant, changes=changes)


def dataloader_generator(module: Module, rule: Rule) -> Iterator[Found]:
    """A loader that shuffles, or may, or that takes a random sampler, and no generator."""
    for call, _ in table.calls(module, rule):
        shuffle = call.argument("shuffle")
        if shuffle is not None and not (shuffle.known and not shuffle.constant) and not _is_ordered(module, call):
            variant = "" if shuffle.known else "unknown"
        elif _takes_random_sampler(module, rule, call):
            variant = "sampler"
        else:
            continue
        changes = (NeedHelper("generator"), SetArgument(call.node, "generator", "{generator}"))
        yield Found(call.node, {"shuffle": shuffle.source if shuffle else ""}, variant, changes=changes)


def _is_ordered(module: Module, call: Call) -> bool:
    """Whether `call` is evidently given a sampler, beside which torch takes no `shuffle`."""
    value = call.argument("sampler") or call.argument("batch_sampler")
    made = [origin.node for origin in origins(module, value)] if value is not None else []
    return bool(made) and all(isinstance(node, cst.Call) and last_word(node.func).endswith("Sampler") for node in made)


def _takes_random_sampler(module: Module, rule: Rule, call: Call) -> bool:
    """Whether the order that `call` is given, straight or in batches, comes from a sampler without a generator."""
    for made in _made(module, call, "batch_sampler"):
        if "torch.utils.data.BatchSampler" in made.names and _takes_random_sampler(module, rule, made):
            return True
    samplers = rule.words["samplers"]
    for made in _made(module, call, "sampler"):
        if not set(made.names).isdisjoint(samplers) and not made.opaque:
            generator = made.argument("generator")
            if generator is None or generator.is_none:
                return True
    return False


def _made(module: Module, call: Call, argument: str) -> Iterator[Call]:
    """The calls that may have made an argument."""
    value = call.argument(argument)
    for origin in origins(module, value) if value is not None else ():
        made = module.call_at(origin.node)
        if made is not None:
            yield made


def sampler_generator(module: Module, rule: Rule) -> Iterator[Found]:
    """A random sampler or split that is given no generator."""
    for call, row in table.calls(module, rule):
        changes = (NeedHelper("generator"), SetArgument(call.node, "generator", "{generator}"))
        yield Found(call.node, {"call": call.names[-1].rpartition(".")[2]}, row.variant, changes=changes)


def unordered_batches(module: Module, rule: Rule) -> Iterator[Found]:
    """Workers whose batches come in the order in which they are ready."""
    for call, row in table.calls(module, rule):
        name = row.when[0].argument
        argument = call.keyword_node(name)
        changes = (DropArgument(call.node, argument),) if argument is not None else ()
        yield Found(call.node, {"argument": name}, changes=changes)
