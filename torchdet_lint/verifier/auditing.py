"""`audit()`: what one run shows without a second one: unseeded draws, reads of unwritten memory, relaxed switches."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching import Patches, Reporter, after_import, shown, user_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from torchdet_lint.verifier.recorder import Recorder

# torch seeds an unseeded generator with some 60 random bits, and a person's seed is small: one in 2**20 is mistaken.
_UNSEEDED_FROM = 2**40
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


@dataclasses.dataclass(frozen=True)
class AuditFinding:
    """What one run showed: the rule, the place, and how often.

    `certain` is False for `random`: a seed set before the audit began would excuse it, and leaves no trace.
    """

    code: str
    message: str
    file: str
    line: int
    count: int
    certain: bool = True

    def __str__(self) -> str:
        times = "" if self.count == 1 else f" ({self.count} times)"
        return f"{self.file}:{self.line}: {self.code} {self.message}{times}"


class audit:  # noqa: N801
    """Watch a block of code: afterwards `findings` lists, by place, what makes its results vary from run to run.

    Unseeded draws of torch, NumPy and `random`, generators of torch included; reads of tensors that nothing wrote,
    where none of their elements was (`verify --mode stress` sees the rest); switches that the block turned against
    determinism. It changes no result. Slower than the plain block by the recorder's factor.

    `with audit() as found: train()`, then `found.findings`, or iterate over `found`.
    """

    def __init__(self) -> None:
        self.findings: tuple[AuditFinding, ...] = ()
        self._patches = Patches()
        self._reporter = Reporter(quiet=True)
        self._draws: collections.Counter[tuple[str, str, str, int, bool]] = collections.Counter()
        self._seeded: set[str] = set()
        self._recorder: Recorder | None = None
        self._roots: tuple[Path, ...] = ()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __iter__(self) -> Iterator[AuditFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __enter__(self) -> audit:
        import torch

        from torchdet_lint.verifier.recorder import Recorder

        if self._folder is not None:
            raise RuntimeError("this audit() has been used; make another one")
        self._folder = tempfile.TemporaryDirectory(prefix="torchdet-")
        self._torch_unseeded = torch.initial_seed() >= _UNSEEDED_FROM
        self._watch_generators()
        self._watch_switches(torch)
        self._roots = (Path(sys._getframe(1).f_code.co_filename).resolve().parent, Path.cwd())
        self._recorder = Recorder(self._trace, roots=self._roots)
        self._recorder.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._recorder is not None
        assert self._folder is not None
        self._recorder.__exit__(kind, error, trace)
        self._patches.undo()
        found = [*self._recorded(), *self._drawn(), *self._relaxed()]
        self.findings = tuple(sorted(found, key=lambda item: (item.file, item.line, item.code, item.message)))
        self._folder.cleanup()

    @property
    def _trace(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "audit.tdtrace"

    def _recorded(self) -> Iterator[AuditFinding]:
        from torchdet_lint.verifier import trace

        recorded = trace.Trace(self._trace)
        counts: collections.Counter[tuple[str, str, str, int]] = collections.Counter()
        for stream in recorded.streams:
            sites = recorded.sites(stream)
            for record in recorded.records(stream):
                site = sites[record.site]
                if record.flags & trace.UNWRITTEN:
                    counts["TDL501", f"{site.op} reads memory that nothing has written", site.file, site.line] += 1
                if record.flags & trace.RANDOM and self._never_seeded(record.seed or 0):
                    counts["TDL101", f"{site.op} draws, and nothing has seeded torch", site.file, site.line] += 1
        for (code, message, file, line), count in counts.items():
            yield AuditFinding(code, message, file, line, count)

    def _never_seeded(self, seed: int) -> bool:
        return self._torch_unseeded and seed >= _UNSEEDED_FROM

    def _drawn(self) -> Iterator[AuditFinding]:
        for (code, message, file, line, certain), count in self._draws.items():
            yield AuditFinding(code, message, shown(file, self._roots), line, count, certain)

    def _relaxed(self) -> Iterator[AuditFinding]:
        for event in self._reporter.events:
            yield AuditFinding(event.code, event.text, shown(event.file, self._roots), event.line, 1)

    def _watch_generators(self) -> None:
        import random

        self._watch(random, ("seed", "setstate"), _PYTHON_DRAWS, "TDL103", "random", certain=False)
        after_import(self._patches, "numpy.random", self._watch_numpy)

    def _watch_numpy(self, numpy: Any) -> None:
        # NumPy forgets the entropy it began with as soon as it is seeded.
        if getattr(numpy.mtrand._rand._bit_generator, "seed_seq", None) is not None:
            self._watch(numpy, ("seed", "set_state"), _NUMPY_DRAWS, "TDL102", "NumPy", certain=True)

    def _watch(self, module: Any, seeds: Any, draws: Any, code: str, name: str, *, certain: bool) -> None:
        for seed in seeds:
            original = getattr(module, seed)
            self._patches.replace_everywhere(original, self._seeding(original, name))
        for draw in draws:
            original = getattr(module, draw, None)
            if original is not None:
                message = f"{module.__name__}.{draw} draws, and nothing has seeded {name}"
                self._patches.replace_everywhere(original, self._drawing(original, code, message, name, certain))

    def _seeding(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def seed(*args: Any, **kwargs: Any) -> Any:
            if (args and args[0] is not None) or kwargs:
                self._seeded.add(name)
            return original(*args, **kwargs)

        return seed

    def _drawing(
        self, original: Callable[..., Any], code: str, message: str, name: str, certain: bool
    ) -> Callable[..., Any]:
        @functools.wraps(original)
        def draw(*args: Any, **kwargs: Any) -> Any:
            if name not in self._seeded:
                file, line = user_line()
                self._draws[code, message, file, line, certain] += 1
            return original(*args, **kwargs)

        return draw

    def _watch_switches(self, torch: Any) -> None:
        def watch(owner: Any, name: str, code: str, what: str, bad: Callable[[Any], bool]) -> Callable[..., Any]:
            original = getattr(owner, name)

            @functools.wraps(original)
            def switched(value: Any, *args: Any, **kwargs: Any) -> Any:
                if bad(value) or kwargs.get("warn_only"):
                    self._reporter.report(code, what)
                return original(value, *args, **kwargs)

            self._patches.set(owner, name, switched)
            return switched

        cudnn = type(torch.backends.cudnn).__dict__
        for flag, code, wrong in (("benchmark", "TDL201", True), ("deterministic", "TDL202", False)):
            what = f"torch.backends.cudnn.{flag} = {wrong}"
            setter = watch(torch._C, f"_set_cudnn_{flag}", code, what, functools.partial(operator.eq, wrong))
            if hasattr(cudnn.get(flag), "setter"):
                self._patches.set(cudnn[flag], "setter", setter)
        mode = "deterministic algorithms are turned off, or only warn"
        watch(torch._C, "_set_deterministic_algorithms", "TDL204", mode, lambda value: not value)
        fill = "torch.utils.deterministic.fill_uninitialized_memory = False"
        watch(torch._C, "_set_deterministic_fill_uninitialized_memory", "TDL206", fill, lambda value: not value)
