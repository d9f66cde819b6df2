"""A test -> the same test run twice, or seeded: the marker `deterministic`, `assert_deterministic`, `--torchdet`.

Loaded in every pytest run of an environment that has torchdet-lint: it imports nothing of torch's until it is used.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ASYNC = (
    "deterministic: an async test cannot be called again and again here; write a test that runs the coroutine itself "
    "(asyncio.run), or use the fixture assert_deterministic with such a function"
)
_STRESS = (
    "the order of files and of completion, addresses and fresh memory are opposite from call to call; the hash seed is "
    "that of this process, so that the order of a set of strings is the same in all of them"
)
_NOTHING = "deterministic: the test ran no op of torch, so that nothing was compared"
_HELP = "seed every test with this number and run it with deterministic algorithms"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--torchdet[=SEED]`."""
    group = parser.getgroup("torchdet-lint")
    group.addoption("--torchdet", nargs="?", type=_seed, const=0, default=None, metavar="SEED", help=_HELP)


def _seed(text: str) -> int:
    """The seed that is asked for. Raises `argparse.ArgumentTypeError` for what is evidently no number."""
    if not text.lstrip("-").isdecimal():
        told = f"{text} is no seed; a test goes before the option, or behind --torchdet=0"
        raise argparse.ArgumentTypeError(told)
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers",
        "deterministic(runs=2, stress=False, seed=0, restore=True): run the test `runs` times from the same generator "
        "states and compare every op of torch bit for bit; with `stress` under opposite orders and memory.",
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say so where every test is seeded."""
    seed = config.getoption("--torchdet")
    return None if seed is None else f"torchdet-lint: every test from seed {seed}, deterministic algorithms on"


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Wrap the call of a test that is marked, or of every test under `--torchdet`."""
    marker = pyfuncitem.get_closest_marker("deterministic")
    seed = pyfuncitem.config.getoption("--torchdet")
    original = pyfuncitem.obj
    if marker is not None:
        settings, wrong = _settings(marker)
        if settings is None:
            pytest.fail(wrong, pytrace=False)
        pyfuncitem.obj = _repeated(original, settings)
    try:
        with _seeded(seed):
            yield
    finally:
        pyfuncitem.obj = original


@contextlib.contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    if seed is None or "torch" not in sys.modules:
        yield
        return
    from torchdet_lint.verifier.remedies.determinism import deterministic

    with deterministic(seed):
        yield


def _settings(marker: pytest.Mark) -> tuple[_Settings | None, str]:
    """What the marker asks for; None, and why in one line, for words that it does not know."""
    known = list(inspect.signature(_Settings).parameters)
    strange = [*map(repr, marker.args), *(name for name in marker.kwargs if name not in known)]
    if strange:
        return None, f"deterministic({', '.join(strange)}): it takes {', '.join(known)}, each with its name"
    try:
        return _Settings(**marker.kwargs), ""
    except pytest.UsageError as error:
        return None, str(error)


class _Settings:
    def __init__(self, runs: int = 2, stress: bool = False, seed: int | None = None, restore: bool = True) -> None:
        if runs < 2:
            raise pytest.UsageError("deterministic(runs=…): one run alone shows nothing; give at least 2")
        self.runs, self.stress, self.seed, self.restore = runs, stress, seed, restore


def _repeated(function: Callable[..., Any], settings: _Settings) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            pytest.fail(_ASYNC, pytrace=False)
        compare(function, args, kwargs, settings)

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


class _Call:
    """The function, under the sides of a stress pair in turn; it looks like the function to whom asks for its file."""

    def __init__(self, function: Callable[..., Any], settings: _Settings) -> None:
        self.function, self.settings, self.number = function, settings, 0
        self.__code__ = getattr(function, "__code__", _Call.__call__.__code__)
        self.__qualname__ = getattr(function, "__qualname__", "function")

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        from torchdet_lint.verifier.patching.events import Reporter
        from torchdet_lint.verifier.remedies import stress

        side = "AB"[self.number % 2] if self.settings.stress else ""
        self.number += 1
        if self.settings.seed is not None:
            seed_everything(self.settings.seed)
        context = stress.install(side, (), Reporter(quiet=True), running=True) if side else None
        try:
            self.function(*args, **kwargs)
        finally:
            if context is not None:
                context.patches.undo()


def compare(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], settings: _Settings) -> None:
    """Call `function` several times and fail the test with the report where an op differs."""
    __tracebackhide__ = True
    import msgspec

    from torchdet_lint.verifier.verification.text import text
    from torchdet_lint.verifier.verification.verify import verify_function

    report = verify_function(_Call(function, settings), *args, runs=settings.runs, restore=settings.restore, **kwargs)
    if settings.stress:
        notes = (_STRESS, *(note for note in report.not_covered if "--mode stress" not in note))
        report = msgspec.structs.replace(report, mode="stress", not_covered=notes)
    if not report.ok:
        pytest.fail(text(report), pytrace=False)
    if not report.spread.compared:
        pytest.fail(_NOTHING, pytrace=False)


@pytest.fixture
def assert_deterministic() -> Callable[..., None]:
    """`assert_deterministic(function, *args, runs=2, stress=False, **kwargs)`: fails with the report if calls differ.

    The generators stand at the same states before each call. What else a call changes, such as a model's weights, the
    function must make afresh.
    """

    def check(function: Callable[..., Any], *args: Any, runs: int = 2, stress: bool = False, **kwargs: Any) -> None:
        __tracebackhide__ = True
        compare(function, args, kwargs, _Settings(runs, stress))

    return check


def seed_everything(seed: int) -> None:
    """Seed `random`, and NumPy and torch where they are imported: the seeder that pytest-randomly calls."""
    import random

    random.seed(seed)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def seed_torch(seed: int) -> None:
    """Seed torch where it is imported; pytest-randomly itself knows `random` and NumPy."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
