"""Loaders and samplers -> those that get no generator, or whose workers get no seed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks import table
from torchdet_lint.checks.trace import origins
from torchdet_lint.dataflow.seeding.call_chain import CallChain
from torchdet_lint.dataflow.seeding.program_seeds import ProgramSeeds
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.dataflow.workers.objects import Handed, WorkerObjects
from torchdet_lint.finding import DropArgument, Found, NeedFunction, NeedHelper, NeedImport, SetArgument, Withhold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.dataflow.workers.objects import Owned
    from torchdet_lint.finding import Applicability, Change, Severity
    from torchdet_lint.module.module import Call, Module

_WORKERS_SEED_NUMPY = (1, 9)


def dataloader_worker_seed(module: Module, rule: Rule) -> Iterator[Found]:
    """Workers, or a number of them that only the run knows, and no function that seeds them."""
    for call, _ in table.calls(module, rule):
        workers = call.argument("num_workers")
        assert workers is not None
        variant = "before-1.9" if module.target.torch < _WORKERS_SEED_NUMPY else ""
        handed = _handed(module, call)
        drawn = bool(handed.draws) or not handed.in_sight
        details = {"workers": workers.source}
        severity: Severity | None = None
        if handed.owned:
            variant, severity = "owned" if handed.owned[0].owner else "shared", "error"
            details |= {"owner": handed.owned[0].owner, "generator": handed.owned[0].name}
            details["place"] = _place(module, handed.owned[0])
        elif variant:
            severity = None if drawn else "note"
            severity = "error" if handed.draws & {"numpy", "python"} else severity
        elif handed.in_sight:
            variant, severity = "drawn" if drawn else "nothing", "note"
        idle = handed.in_sight and not handed.owned and module.target.torch >= _WORKERS_SEED_NUMPY
        changes, safe = ((), None) if idle else _seeded_workers(module, call, handed.owned)
        yield Found(
            call.node, details, variant, severity, changes=changes, applicability=safe, draws=bool(handed.draws)
        )


def _handed(module: Module, call: Call) -> Handed:
    """What `call` hands its workers."""
    made = module.shared(CallChain).call_at(call.node)
    return module.shared(WorkerObjects).handed(made) if made is not None else Handed(False, (), frozenset())


def _place(module: Module, owned: Owned) -> str:
    """Where the generator is made, in words."""
    if owned.path:
        return f"{owned.path.replace(os.sep, '/').rpartition('/')[2]}:{owned.row}"
    cell, row = module.source.place(owned.row)
    return f"line {row}" if cell is None else f"cell {cell}, line {row}"


def _seeded_workers(
    module: Module, call: Call, owned: Sequence[Owned]
) -> tuple[tuple[Change, ...], Applicability | None]:
    """A function that seeds what every worker has a copy of, and whether passing it is safe."""
    reason = "the data set does not lead to the generator" if not all(one.way for one in owned) else ""
    reason = "workers that are spawned cannot import a function of a notebook" if module.source.cells else reason
    if reason:
        return (Withhold(reason),), None
    if not owned:
        changes = (NeedHelper("seed_worker"), SetArgument(call.node, "worker_init_fn", "{seed_worker}"))
        return changes, "unsafe"
    needs: dict[Change, None] = {NeedImport("torch"): None}
    lines = ["worker_seed = {torch}.initial_seed() % 2**32", "dataset = {torch}.utils.data.get_worker_info().dataset"]
    for number, one in enumerate(sorted(owned)):
        package, _, rest = one.maker.partition(".")
        needs[NeedImport(package)] = None
        seed = f"worker_seed + {number}" if number else "worker_seed"
        made = f"{{{package}}}.{rest}"
        lines.append(
            f"{one.way} = {made}().manual_seed({seed})" if package == "torch" else f"{one.way} = {made}({seed})"
        )
    helper = NeedFunction("seed_worker", "worker_id", tuple(lines))
    seeded = (*needs, helper, SetArgument(call.node, "worker_init_fn", "{seed_worker}"))
    return seeded, None if module.shared(ProgramSeeds).torch_seeded(call.node) else "unsafe"


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
        changes, safe = _own_generator(module, call)
        details = {"shuffle": shuffle.source if shuffle else ""}
        yield Found(call.node, details, variant, changes=changes, applicability=safe)


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
        changes, safe = _own_generator(module, call)
        details = {"call": call.names[-1].rpartition(".")[2]}
        yield Found(call.node, details, row.variant, changes=changes, applicability=safe)


def _own_generator(module: Module, call: Call) -> tuple[tuple[Change, ...], Applicability | None]:
    """A generator for `call` alone that follows torch's seed, and whether passing it is safe."""
    seed = module.shared(ProgramSeeds).initial_seed(call.node)
    generator = f"{{torch}}.Generator().manual_seed({seed.text})"
    return (*seed.needs, SetArgument(call.node, "generator", generator)), seed.applicability


def unordered_batches(module: Module, rule: Rule) -> Iterator[Found]:
    """Workers whose batches come in the order in which they are ready."""
    for call, row in table.calls(module, rule):
        name = row.when[0].argument
        argument = call.keyword_node(name)
        changes = (DropArgument(call.node, argument),) if argument is not None else ()
        yield Found(call.node, {"argument": name}, changes=changes)
