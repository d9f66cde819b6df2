"""One run -> what it shows without a second (`audit()`): unseeded draws, reads of unwritten memory, switches."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.events import Reporter
from torchdet_lint.verifier.patching.frames import shown
from torchdet_lint.verifier.patching.patches import Patches
from torchdet_lint.verifier.recording import draws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from torchdet_lint.verifier.recording.recorder import Recorder

# torch seeds an unseeded generator with some 60 random bits, and a person's seed is small: one in 2**20 is mistaken.
_UNSEEDED_FROM = 2**40


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

    Unseeded draws of torch, NumPy and `random`, generators of torch included; generators of NumPy's made without a
    seed; reads of tensors that nothing wrote, where none of their elements was (`verify --mode stress` sees the rest);
    switches that the block turned against determinism. It changes no result. Slower than the plain block by the
    recorder's factor.

    `with audit() as found: train()`, then `found.findings`, or iterate over `found`.
    """

    def __init__(self) -> None:
        self.findings: tuple[AuditFinding, ...] = ()
        self._patches = Patches()
        self._reporter = Reporter(quiet=True)
        self._draws: collections.Counter[tuple[str, str, str, int, bool]] = collections.Counter()
        self._recorder: Recorder | None = None
        self._roots: tuple[Path, ...] = ()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __iter__(self) -> Iterator[AuditFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __enter__(self) -> audit:
        import torch

        from torchdet_lint.verifier.recording.recorder import Recorder

        if self._folder is not None:
            raise RuntimeError("this audit() has been used; make another one")
        self._folder = tempfile.TemporaryDirectory(prefix="torchdet-")
        self._torch_unseeded = torch.initial_seed() >= _UNSEEDED_FROM
        draws.watch(self._patches, self._drew)
        draws.watch_generators(self._patches, self._drew)
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

    def _drew(self, code: str, message: str, file: str, line: int) -> None:
        # What seeded `random` before the audit began leaves no trace.
        self._draws[code, message, file, line, code != "TDL103"] += 1

    def _drawn(self) -> Iterator[AuditFinding]:
        for (code, message, file, line, certain), count in self._draws.items():
            yield AuditFinding(code, message, shown(file, self._roots), line, count, certain)

    def _relaxed(self) -> Iterator[AuditFinding]:
        for event in self._reporter.events:
            yield AuditFinding(event.code, event.text, shown(event.file, self._roots), event.line, 1)

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
