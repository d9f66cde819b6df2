"""Generators -> seeded ones: the global ones, those made without a seed, those seeded from entropy."""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.frames import user_frame
from torchdet_lint.verifier.patching.patches import after_import
from torchdet_lint.verifier.remedies.context import after_fork, is_multiprocessing_child

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType

    from torchdet_lint.verifier.patching.patches import Patches
    from torchdet_lint.verifier.remedies.context import Context

_NUMPY_LIMIT = 2**32
_WRAPPERS = ("random", "secrets", "uuid")
# Seeds each worker of a loader, from a number that need not come from a seed.
_WORKER_LOOP = "torch.utils.data._utils.worker"
_HANDED_DOWN = "_torchdet_seeds"
_SEED_MAKER = re.compile(
    r"_*((make|get|new|generate|gen|random|fresh|create|choose|pick|draw|set|init|fix)_(\w+_)?)?seed(s|ing)?"
    r"(_(everything|all|worker|rng))?",
    re.IGNORECASE,
)
# A network may be called a generator, and a loss is an entropy.
_SPEAKS_OF_A_SEED = re.compile(
    r"seed|rng|random_?state|\b(?:torch|np|numpy|random)\s*\.\s*Generator\b|[(,]\s*generator\s*=(?!=)|\bentropy\s*=(?!=)",
    re.IGNORECASE,
)


def seed_python(context: Context) -> None:
    """Seed `random` before the program starts."""
    if is_multiprocessing_child():
        return
    import random

    state = random.getstate()
    context.patches.on_undo(lambda: random.setstate(state))
    _seed_unnoticed(context, random.seed, context.seed)
    _follow_first(context, "python", random.seed)
    # Python seeds `random` from the system in every forked child.
    after_fork(context, lambda path: random.seed(context.derive("fork", path)))


def seed_numpy(context: Context) -> None:
    """Seed NumPy's global generator right after it is imported."""
    if is_multiprocessing_child():
        return

    def seed(module: ModuleType) -> None:
        state = module.get_state()
        context.patches.on_undo(lambda: module.set_state(state))
        _seed_unnoticed(context, module.seed, context.seed % _NUMPY_LIMIT)
        _follow_first(context, "numpy", lambda number: module.seed(number % _NUMPY_LIMIT))

    after_import(context.patches, "numpy.random", seed)


def seed_torch(context: Context) -> None:
    """Seed torch's global generators, of every device, right after torch is imported."""
    if is_multiprocessing_child():
        return

    def seed(torch: Any) -> None:
        _restore_torch_later(context, torch)
        _seed_unnoticed(context, torch.manual_seed, context.seed)
        _follow_first(context, "torch", torch.manual_seed)

    after_import(context.patches, "torch", seed)


def _follow_first(context: Context, library: str, reseed: Callable[[int], object]) -> None:
    """Seed `library` anew when the program seeds another one for the first time, so that another seed of the program
    gives other numbers here too. One that the program seeds again later keeps going on."""

    def follow() -> None:
        stop()
        if library not in context.program_seeds:
            _seed_unnoticed(context, reseed, context.derive("follows", library))

    def stop() -> None:
        if follow in context.on_seed:
            context.on_seed.remove(follow)

    context.on_seed.append(follow)
    context.patches.on_undo(stop)


def _seed_unnoticed(context: Context, seed: Callable[[int], object], number: int) -> None:
    """Call `seed`, which is not the program that seeds."""
    context.seeds_itself = True
    try:
        seed(number)
    finally:
        context.seeds_itself = False


def _restore_torch_later(context: Context, torch: Any) -> None:
    state = torch.get_rng_state()
    context.patches.on_undo(lambda: torch.set_rng_state(state))
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states = torch.cuda.get_rng_state_all()
        context.patches.on_undo(lambda: torch.cuda.set_rng_state_all(states))


def follow_program(context: Context) -> None:
    """Note each seed that the program gives `random`, NumPy or torch, so that what is derived differs with it.

    A process that is started by multiprocessing goes on from the seeds of the process that starts it.
    """
    import random

    _note_seeds(context, "python", random.seed, (random,))
    after_import(context.patches, "numpy.random", lambda module: _note_seeds(context, "numpy", module.seed, (module,)))
    after_import(
        context.patches,
        "torch",
        lambda torch: _note_seeds(context, "torch", torch.manual_seed, (torch, torch.random), "manual_seed"),
    )

    def hand_down(module: ModuleType) -> None:
        start, bootstrap = module.BaseProcess.start, module.BaseProcess._bootstrap

        @functools.wraps(start)
        def started(process: Any) -> None:
            setattr(process, _HANDED_DOWN, dict(context.program_seeds))
            start(process)

        @functools.wraps(bootstrap)
        def entered(process: Any, *args: Any, **kwargs: Any) -> Any:
            context.program_seeds.update(getattr(process, _HANDED_DOWN, {}))
            return bootstrap(process, *args, **kwargs)

        context.patches.set(module.BaseProcess, "start", started)
        context.patches.set(module.BaseProcess, "_bootstrap", entered)

    after_import(context.patches, "multiprocessing.process", hand_down)


def _note_seeds(
    context: Context, library: str, original: Callable[..., Any], owners: tuple[Any, ...], name: str = "seed"
) -> None:
    """Let `original`, which is `name` of `owners` and seeds `library`, note the seed that it is given."""

    @functools.wraps(original)
    def seed(*args: Any, **kwargs: Any) -> Any:
        given = [value for value in (*args[:1], *kwargs.values()) if value is not None]
        if given and not context.seeds_itself and sys._getframe(1).f_globals.get("__name__") != _WORKER_LOOP:
            context.program_seeds[library] = repr(given[0])
            for follow in tuple(context.on_seed):
                follow()
        return original(*args, **kwargs)

    for owner in owners:
        context.patches.set(owner, name, seed)


def seed_processes(context: Context) -> None:
    """Seed `random`, NumPy and torch in every multiprocessing child, by its place in the tree."""

    def patch(module: ModuleType) -> None:
        original = module.BaseProcess._bootstrap

        @functools.wraps(original)
        def bootstrap(process: Any, *args: Any, **kwargs: Any) -> Any:
            _seed_all(context, context.derive("process", tuple(process._identity), os.environ.get("RANK", "")))
            return original(process, *args, **kwargs)

        context.patches.set(module.BaseProcess, "_bootstrap", bootstrap)

    after_import(context.patches, "multiprocessing.process", patch)


def _seed_all(context: Context, seed: int) -> None:
    import random

    random.seed(seed)
    after_import(context.patches, "numpy.random", lambda module: module.seed(seed % _NUMPY_LIMIT))
    after_import(context.patches, "torch", lambda torch: torch.manual_seed(seed))


def seed_generators(context: Context) -> None:
    """Give generator objects that were made without a seed the next number of a sequence, in order of making."""
    import random

    original = random.Random.seed

    @functools.wraps(original)
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        # tempfile's names only have to be free, and stay unpredictable to others.
        if a is None and _caller_name(sys._getframe(1)) != "tempfile":
            a = context.next("random.Random")
        original(self, a, version)

    context.patches.set(random.Random, "seed", seed)

    def patch(module: ModuleType) -> None:
        def randbits(bits: int) -> int:
            words = [context.next("numpy.SeedSequence") for _ in range(-(-bits // 63))]
            return sum(word << (63 * index) for index, word in enumerate(words)) & ((1 << bits) - 1)

        context.patches.set(module, "randbits", randbits)

    after_import(context.patches, "numpy.random.bit_generator", patch)


def _caller_name(frame: FrameType) -> str:
    found: FrameType | None = frame
    while found is not None and found.f_globals.get("__name__") == "random":
        found = found.f_back
    return str(found.f_globals.get("__name__")) if found is not None else ""


def fixed_entropy(context: Context) -> None:
    """Replace what asks for fresh entropy, and the clock and its like where the statement that reads them makes a seed.

    Everywhere else the clock, the process id and the operating system's random bytes stay real: a frozen clock hangs
    loops, and predictable bytes break keys.
    """

    def sequence(kind: str) -> int:
        context.reporter.report("TDL105", f"{kind} replaced by a number that repeats")
        return context.next(kind)

    _repeat_python(context, sequence)
    after_import(context.patches, "numpy.random", lambda module: _repeat_numpy(context.patches, module, sequence))
    after_import(context.patches, "torch", lambda torch: _repeat_torch(context.patches, torch, sequence))


def _repeat_python(context: Context, sequence: Callable[[str], int]) -> None:
    """The clock, the process and the operating system where they make a seed, and a seed that is left to Python."""
    import random
    import secrets
    import time
    import uuid

    patches, seed_from = context.patches, random.seed

    def python_seed(a: Any = None, version: int = 2) -> None:
        seed_from(sequence("random.seed()") if a is None else a, version)

    patches.set(random, "seed", python_seed)
    _repeat_system_random(context, random, secrets)

    start = 1_000_000_000
    sources: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
        (time, "time", lambda: float(start + sequence("time.time()") % start)),
        (
            time,
            "time_ns",
            lambda: (start + sequence("time.time_ns()") % start) * 10**9 + sequence("time.time_ns()") % 997,
        ),
        (time, "perf_counter", lambda: float(sequence("time.perf_counter()") % start)),
        (time, "perf_counter_ns", lambda: sequence("time.perf_counter_ns()") % 10**15),
        (time, "monotonic", lambda: float(sequence("time.monotonic()") % start)),
        (time, "monotonic_ns", lambda: sequence("time.monotonic_ns()") % 10**15),
        (os, "getpid", lambda: 2 + sequence("os.getpid()") % 32_000),
        (os, "urandom", lambda size: _bytes(sequence("os.urandom()"), size)),
        (uuid, "uuid1", lambda *_: uuid.UUID(bytes=_bytes(sequence("uuid.uuid1()"), 16), version=1)),
        (uuid, "uuid4", lambda: uuid.UUID(bytes=_bytes(sequence("uuid.uuid4()"), 16), version=4)),
        (secrets, "randbits", lambda bits: _bits(sequence("secrets.randbits()"), bits)),
        (secrets, "randbelow", lambda bound: sequence("secrets.randbelow()") % bound),
        (secrets, "token_bytes", lambda size=32: _bytes(sequence("secrets.token_bytes()"), size or 32)),
        (secrets, "token_hex", lambda size=32: _bytes(sequence("secrets.token_hex()"), size or 32).hex()),
    )
    for owner, name, repeat in sources:
        patches.set(owner, name, _in_seeds_only(getattr(owner, name), repeat))
    for name in ("randint", "randrange", "getrandbits"):

        def draw(*args: Any, name: str = name, **kwargs: Any) -> Any:
            return getattr(random.Random(sequence(f"random.{name}()")), name)(*args, **kwargs)

        patches.set(random, name, _in_seeds_only(getattr(random, name), draw))


def _repeat_numpy(patches: Patches, module: Any, sequence: Callable[[str], int]) -> None:
    original = module.seed

    def randint(*args: Any, **kwargs: Any) -> Any:
        return module.RandomState(sequence("numpy.random.randint()") % _NUMPY_LIMIT).randint(*args, **kwargs)

    def seed(seed: Any = None) -> None:
        original(sequence("numpy.random.seed()") % _NUMPY_LIMIT if seed is None else seed)

    patches.set(module, "randint", _in_seeds_only(module.randint, randint))
    patches.set(module, "seed", seed)


def _repeat_torch(patches: Patches, torch: Any, sequence: Callable[[str], int]) -> None:
    def seed() -> int:
        number = sequence("torch.seed()")
        torch.manual_seed(number)
        return number

    def cuda_seed() -> None:
        torch.cuda.manual_seed_all(sequence("torch.cuda.seed()"))

    patches.set(torch, "seed", seed)
    patches.set(torch.random, "seed", seed)
    for name in ("seed", "seed_all"):
        patches.set(torch.cuda, name, cuda_seed)
        patches.set(torch.cuda.random, name, cuda_seed)


def _bits(seed: int, bits: int) -> int:
    import random

    return random.Random(seed).getrandbits(bits)


def _bytes(seed: int, size: int) -> bytes:
    import random

    generator = random.Random(seed)
    return bytes(generator.getrandbits(8) for _ in range(size))


def _repeat_system_random(context: Context, random: Any, secrets: Any) -> None:
    """A `SystemRandom` of the program repeats; the one behind `secrets` stays."""
    kind = random.SystemRandom
    streams: dict[int, Any] = {}

    def stream(self: Any) -> Any:
        if self is secrets._sysrand:
            return None
        if id(self) not in streams:
            context.reporter.report("TDL105", "random.SystemRandom replaced by a generator that repeats")
            streams[id(self)] = (random.Random(context.next("random.SystemRandom")), self)
        return streams[id(self)][0]

    def repeating(name: str) -> Callable[..., Any]:
        original = getattr(kind, name)

        def method(self: Any, *args: Any) -> Any:
            twin = stream(self)
            return original(self, *args) if twin is None else getattr(twin, name)(*args)

        return method

    for name in ("random", "getrandbits", "randbytes"):
        context.patches.set(kind, name, repeating(name))


def _in_seeds_only(original: Callable[..., Any], repeat: Callable[..., Any]) -> Callable[..., Any]:
    """`original`, and `repeat` where the user's statement makes a seed."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") in _WRAPPERS:
            frame = frame.f_back
        if user_frame(frame) is frame and _makes_a_seed(
            frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name
        ):
            return repeat(*args, **kwargs)
        return original(*args, **kwargs)

    return call


@functools.lru_cache(maxsize=4096)
def _makes_a_seed(file: str, line: int, function: str) -> bool:
    return bool(_SEED_MAKER.fullmatch(function) or _SPEAKS_OF_A_SEED.search(_statement(file, line)))


def _statement(file: str, line: int) -> str:
    """The source of the smallest statement at `line`; of a compound one, its header."""
    import linecache

    lines = linecache.getlines(file)
    spans = _spans(file, "".join(lines))
    holding = [span for span in spans if span[0] <= line <= span[1]]
    first, last = min(holding, key=lambda span: span[1] - span[0], default=(line, line))
    return "".join(lines[first - 1 : last])


@functools.lru_cache(maxsize=256)
def _spans(file: str, text: str) -> tuple[tuple[int, int], ...]:
    del file
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else (node.end_lineno or node.lineno)
            found.append((node.lineno, max(node.lineno, last)))
    return tuple(found)
