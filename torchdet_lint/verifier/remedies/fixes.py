"""The code of a rule -> its runtime fix: what it sets before the interpreter starts, and what it changes inside."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from torchdet_lint.verifier.remedies import loaders, memory, modes, ordering, seeding, turns
from torchdet_lint.verifier.remedies.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from torchdet_lint.verifier.patching.events import Reporter


@dataclasses.dataclass(frozen=True)
class RuntimeFix:
    """One way to take a cause away without touching the source.

    `variables` must be in the environment before the interpreter starts, `keep` lists the values of the user's that
    are as good; `install` changes the running process. `changes` says what the user gives up or must know. What
    `follows` makes numbers of its own that differ with the seed that the program has set.
    """

    name: str
    does: str
    changes: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    follows: bool = False
    keep: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    install: Callable[[Context], None] | None = None


def _seed_everything(context: Context) -> None:
    for install in (seeding.seed_python, seeding.seed_numpy, seeding.seed_torch):
        install(context)


def _seed_numpy_and_generators(context: Context) -> None:
    seeding.seed_numpy(context)
    seeding.seed_generators(context)


def _in_order(context: Context) -> None:
    ordering.completion(context)
    turns.threads(context)


_SEEDED = "a seed that the program sets later wins, and the first one that it gives another library is followed"
_STREAM = "the numbers differ from those of the unfixed program; their distribution does not"
_HASHES = (("PYTHONHASHSEED", "0"),)
_CUBLAS = (("CUBLAS_WORKSPACE_CONFIG", modes.CUBLAS_VALUES[0]),)

_ALL = (
    RuntimeFix(
        "seed-torch",
        "torch.manual_seed right after torch is imported",
        _SEEDED,
        follows=True,
        install=seeding.seed_torch,
    ),
    RuntimeFix(
        "seed-numpy",
        "numpy.random.seed right after NumPy is imported",
        _SEEDED,
        follows=True,
        install=seeding.seed_numpy,
    ),
    RuntimeFix(
        "seed-python", "random.seed before the program starts", _SEEDED, follows=True, install=seeding.seed_python
    ),
    RuntimeFix(
        "seed-generators",
        "generator objects made without a seed get the next number of a fixed sequence",
        "generators that several threads make at once get their numbers in the order of the race",
        follows=True,
        install=seeding.seed_generators,
    ),
    RuntimeFix(
        "fixed-entropy",
        "torch.seed(), random.seed(), numpy.random.seed(None) and SystemRandom repeat; so do the clock, the process "
        "id, os.urandom, uuid and secrets in a statement that makes a seed",
        "datetime.now() and torch.Generator().seed() cannot be reached; elsewhere the clock stays real",
        follows=True,
        install=seeding.fixed_entropy,
    ),
    RuntimeFix(
        "seed-everything",
        "random, NumPy and torch are seeded before the first draw can happen",
        _SEEDED,
        follows=True,
        install=_seed_everything,
    ),
    RuntimeFix(
        "seed-numpy-and-generators",
        "NumPy's global generator, which random_state=None draws from, and unseeded generators are seeded",
        _SEEDED,
        follows=True,
        install=_seed_numpy_and_generators,
    ),
    RuntimeFix(
        "seed-processes",
        "every multiprocessing child seeds random, NumPy and torch by its place in the process tree",
        "which worker of a pool takes which task stays open",
        follows=True,
        install=seeding.seed_processes,
    ),
    RuntimeFix(
        "no-cudnn-benchmark",
        "cudnn.benchmark stays False",
        "convolutions may be slower",
        install=modes.no_cudnn_benchmark,
    ),
    RuntimeFix(
        "deterministic-cudnn",
        "cudnn.deterministic stays True",
        "convolutions may be slower",
        install=modes.deterministic_cudnn,
    ),
    RuntimeFix(
        "deterministic-algorithms",
        "deterministic algorithms are on and stay on; an op that has none warns and runs",
        "slower; most of the cost is the fill of fresh memory",
        install=modes.deterministic_algorithms,
    ),
    RuntimeFix(
        "cublas-workspace",
        "CUBLAS_WORKSPACE_CONFIG=:4096:8 from before CUDA starts",
        "24 MB of GPU memory per stream",
        variables=_CUBLAS,
        keep={"CUBLAS_WORKSPACE_CONFIG": modes.CUBLAS_VALUES},
        install=modes.cublas_workspace,
    ),
    RuntimeFix(
        "fill-uninitialized",
        "in deterministic mode fresh memory stays filled",
        "the fill is most of the cost of deterministic mode",
        install=modes.fill_uninitialized,
    ),
    RuntimeFix(
        "no-autotuning",
        "torch.compile, inductor and triton.autotune take a fixed kernel",
        "kernels may be slower",
        variables=tuple(sorted(modes.AUTOTUNE_VARIABLES.items())),
        install=modes.no_autotuning,
    ),
    RuntimeFix(
        "worker-seeds",
        "a loader with workers takes their base seed from a generator of its own",
        _STREAM,
        follows=True,
        install=loaders.worker_seeds,
    ),
    RuntimeFix(
        "loader-generator",
        "a loader that shuffles takes its order from a generator of its own",
        _STREAM,
        follows=True,
        install=loaders.loader_generator,
    ),
    RuntimeFix(
        "sampler-generator",
        "random samplers and random_split take a generator of their own",
        _STREAM,
        follows=True,
        install=loaders.sampler_generator,
    ),
    RuntimeFix(
        "sorted-files",
        "os.listdir and os.scandir, and with them glob, walk and pathlib, list by name",
        "what C libraries list stays as it is",
        install=ordering.files,
    ),
    RuntimeFix(
        "ordered-sets",
        "PYTHONHASHSEED=0; tensors, modules and objects of the program's own classes hash by first use, not by address",
        "functions, classes and objects of other libraries' classes still hash by address",
        variables=_HASHES,
        install=ordering.address_free_hashes,
    ),
    RuntimeFix(
        "submission-order",
        "as_completed and imap_unordered hand results over in the order of submission; threads of the program's own "
        "run one after the other",
        "a fast task waits for a slow one before it; wait(), queues, Ray, tasks of pools and processes that share "
        "memory cannot be reached",
        install=_in_order,
    ),
    RuntimeFix(
        "ordered-batches", "DataLoader hands batches over in the order of its sampler", install=loaders.ordered_batches
    ),
    RuntimeFix(
        "one-thread-ops",
        "on the CPU put_, index_copy_ and index_reduce_ run on one thread",
        "CUDA has no such switch: there the op stays as it is",
        install=modes.one_thread_ops,
    ),
    RuntimeFix(
        "math-attention",
        "attention runs its plain kernel; flash-attn is asked for its deterministic backward",
        "slower, and the scores are stored: memory grows with the square of the length; xformers cannot be reached",
        variables=tuple(sorted(modes.ATTENTION_VARIABLES.items())),
        install=modes.math_attention,
    ),
    RuntimeFix(
        "zero-fresh-memory",
        "torch.empty and its kin, and on glibc every fresh block of the heap, hold zeros",
        "hides the read of unwritten memory, which stays a mistake in the source; "
        "what NumPy keeps for its small arrays is not reached",
        variables=(("MALLOC_PERTURB_", memory.HEAP_BYTE["zero"]), memory.TUNABLES),
        install=memory.zero_fresh,
    ),
    RuntimeFix("fixed-hash-seed", "PYTHONHASHSEED=0", variables=_HASHES),
)

FIXES: Mapping[str, RuntimeFix] = {fix.name: fix for fix in _ALL}

BY_RULE: Mapping[str, str] = {
    "TDL101": "seed-torch",
    "TDL102": "seed-numpy",
    "TDL103": "seed-python",
    "TDL104": "seed-generators",
    "TDL105": "fixed-entropy",
    "TDL106": "seed-everything",
    "TDL107": "seed-numpy-and-generators",
    "TDL108": "seed-processes",
    "TDL201": "no-cudnn-benchmark",
    "TDL202": "deterministic-cudnn",
    "TDL203": "deterministic-algorithms",
    "TDL204": "deterministic-algorithms",
    "TDL205": "cublas-workspace",
    "TDL206": "fill-uninitialized",
    "TDL207": "no-autotuning",
    "TDL208": "deterministic-algorithms",
    "TDL301": "worker-seeds",
    "TDL302": "loader-generator",
    "TDL303": "sampler-generator",
    "TDL304": "sorted-files",
    "TDL305": "ordered-sets",
    "TDL306": "submission-order",
    "TDL307": "submission-order",
    "TDL308": "ordered-batches",
    "TDL401": "one-thread-ops",
    "TDL402": "deterministic-algorithms",
    "TDL403": "deterministic-algorithms",
    "TDL404": "cublas-workspace",
    "TDL405": "math-attention",
    "TDL501": "zero-fresh-memory",
    "TDL601": "fixed-hash-seed",
}

UNREACHABLE: Mapping[str, str] = {
    "TDL406": "the atomics are inside another library's kernels: call its sorted or segmented variant instead",
    "TDL407": "the atomics are inside the program's own kernel: only its source can change",
}


class UnfixableError(ValueError):
    """A rule code that has no runtime fix; the text says why."""


def resolve(codes: Iterable[str]) -> tuple[RuntimeFix, ...]:
    """The fixes of `codes` in the order of the table, each once. Raises `UnfixableError`."""
    chosen = set()
    for code in codes:
        if code not in BY_RULE:
            raise UnfixableError(f"{code}: {UNREACHABLE.get(code, 'no rule of this code has a runtime fix')}")
        chosen.add(BY_RULE[code])
    return tuple(fix for fix in _ALL if fix.name in chosen)


def every_code() -> tuple[str, ...]:
    """Every rule code that has a runtime fix: what `--fix` without codes means."""
    return tuple(sorted(BY_RULE))


def environment(codes: Iterable[str], seed: int, base_env: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that the fixes of `codes` set before the interpreter starts.

    A value of the user's that serves as well stays. Raises `UnfixableError`.
    """
    del seed
    result: dict[str, str] = {}
    for fix in resolve(codes):
        result.update(pair for pair in fix.variables if base_env.get(pair[0]) not in fix.keep.get(pair[0], ()))
    if memory.TUNABLES[0] in result:
        result[memory.TUNABLES[0]] = memory.with_tunable(base_env.get(memory.TUNABLES[0], ""))
    return result


def install(codes: Iterable[str], seed: int = 0, reporter: Reporter | None = None) -> Context:
    """Apply the fixes of `codes` to this process; `context.patches.undo()` puts everything back."""
    chosen = tuple(codes)
    context = Context(chosen, seed, reporter)
    try:
        if any(fix.follows for fix in resolve(chosen)):
            seeding.follow_program(context)
        for fix in resolve(chosen):
            if fix.install is not None:
                fix.install(context)
    except BaseException:
        context.patches.undo()
        raise
    return context
