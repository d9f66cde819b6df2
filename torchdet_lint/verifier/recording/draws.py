"""Draws from the global generators of `random` and NumPy -> those that nothing has seeded, told as they happen."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.frames import is_users, user_line
from torchdet_lint.verifier.patching.patches import Patches, after_import

if TYPE_CHECKING:
    from collections.abc import Callable

    Told = Callable[[str, str, str, int], object]

_PYTHON_DRAWS = (
    "betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits lognormvariate "
    "normalvariate paretovariate randbytes randint random randrange sample shuffle triangular uniform "
    "vonmisesvariate weibullvariate"
).split()
_NUMPY_DRAWS = (
    "beta binomial bytes chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric laplace "
    "logistic lognormal logseries multinomial multivariate_normal negative_binomial noncentral_chisquare "
    "noncentral_f normal pareto permutation poisson power rand randint randn random random_integers random_sample "
    "ranf rayleigh sample shuffle standard_cauchy standard_exponential standard_gamma standard_normal standard_t "
    "triangular uniform vonmises wald weibull zipf"
).split()


def watch(patches: Patches, tell: Told) -> None:
    """Call `tell(code, message, file, line)` at every draw that comes before a seed."""
    import random

    seeded: set[str] = set()
    _watch(patches, tell, seeded, random, ("seed", "setstate"), _PYTHON_DRAWS, "TDL103", "random")

    def numpy(module: Any) -> None:
        # NumPy forgets the entropy it began with as soon as it is seeded.
        if getattr(module.mtrand._rand._bit_generator, "seed_seq", None) is not None:
            _watch(patches, tell, seeded, module, ("seed", "set_state"), _NUMPY_DRAWS, "TDL102", "NumPy")

    after_import(patches, "numpy.random", numpy)


def watch_entropy(patches: Patches, tell: Callable[[], object]) -> None:
    """Call `tell` where NumPy makes a generator without a seed once it is imported: an environment of gym's that is
    reset without one, say.
    """

    def numpy(module: Any) -> None:
        sequences = module.bit_generator
        original = getattr(sequences, "randbits", None)
        if original is None:
            return

        @functools.wraps(original)
        def randbits(bits: int) -> Any:
            frame = sys._getframe(1)
            if not _seeds_next(frame.f_code.co_filename, frame.f_lineno or 0):
                tell()
            return original(bits)

        patches.set(sequences, "randbits", randbits)

    after_import(patches, "numpy.random", numpy)


@functools.lru_cache(maxsize=512)
def _seeds_next(file: str, line: int) -> bool:
    """Whether a line makes a `RandomState` and gives it a seed: NumPy makes it without one first, and seeds it then."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return False
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls = [call for call in calls if call.lineno <= line <= (call.end_lineno or 0)]
    made = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] == "RandomState"]
    given = [next(iter([*call.args, *(one.value for one in call.keywords)]), None) for call in made]
    return bool(given) and not any(
        one is None or (isinstance(one, ast.Constant) and one.value is None) for one in given
    )


def watch_generators(patches: Patches, tell: Told) -> None:
    """Call `tell(code, message, file, line)` where the user's code makes a generator of NumPy's without a seed."""

    def numpy(module: Any) -> None:
        original = module.default_rng

        @functools.wraps(original)
        def default_rng(seed: Any = None) -> Any:
            file, line = user_line()
            if seed is None and is_users(file):
                tell("TDL104", "numpy.random.default_rng() makes a generator without a seed", file, line)
            return original(seed)

        patches.replace_everywhere(original, default_rng)

    after_import(patches, "numpy.random", numpy)


def _watch(
    patches: Patches, tell: Told, seeded: set[str], module: Any, seeds: Any, draws: Any, code: str, name: str
) -> None:
    for seed in seeds:
        original = getattr(module, seed)
        patches.replace_everywhere(original, _seeding(original, seeded, name))
    for draw in draws:
        original = getattr(module, draw, None)
        if original is not None:
            message = f"{module.__name__}.{draw} draws, and nothing has seeded {name}"
            patches.replace_everywhere(original, _drawing(original, tell, seeded, code, message, name))


def _seeding(original: Callable[..., Any], seeded: set[str], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def seed(*args: Any, **kwargs: Any) -> Any:
        if (args and args[0] is not None) or kwargs:
            seeded.add(name)
        return original(*args, **kwargs)

    return seed


def _drawing(
    original: Callable[..., Any], tell: Told, seeded: set[str], code: str, message: str, name: str
) -> Callable[..., Any]:
    @functools.wraps(original)
    def draw(*args: Any, **kwargs: Any) -> Any:
        if name not in seeded:
            file, line = user_line()
            tell(code, message, file, line)
        return original(*args, **kwargs)

    return draw
