"""Lines and bytes -> the terminal, a pipe or a file; one shape for an error, and a bar for what takes long."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CLEAN, FINDINGS, FAILED, INTERRUPTED = 0, 1, 2, 130
_PROGRESS_AFTER = 1.5


class UsageError(Exception):
    """An option that cannot be used; shown as one line."""


class Unread(BrokenPipeError):
    """Whoever reads the output has had enough; `status` is what the run ends with all the same."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


@contextlib.contextmanager
def ending(status: int) -> Iterator[None]:
    """What is written here is all that is left to do of a run that ends with `status`. Raises `Unread`."""
    try:
        yield
    except BrokenPipeError as error:
        raise Unread(status) from error


def hang_up(stream: Any) -> None:
    """Drop what is still written to `stream`: nobody reads it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fail(message: str) -> int:
    """Say on standard error what went wrong; returns the exit status for that."""
    try:
        say(f"torchdet-lint: error: {message}", sys.stderr)
    except BrokenPipeError:
        hang_up(sys.stderr)
    return FAILED


def say(line: str, stream: Any = None) -> None:
    """Write one line to `stream` (default: standard output), whatever names and texts of others are in it."""
    from torchdet_lint.report.visible import inert, visible

    emit([f"{inert(visible(line))}\n"], stream)


def paint(lines: Iterable[str], color: str, stream: Any) -> None:
    """Write the lines of a report to `stream`, with their styles where `color` asks for it."""
    from torchdet_lint.report import text

    if not wants_colour(color, stream):
        emit((f"{text.plain(line)}\n" for line in lines), stream)
        return
    from rich.console import Console
    from rich.text import Text

    class Plain(Console):
        """A console that leaves to others what follows where nobody reads it."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Plain(file=stream, force_terminal=True, highlight=False, soft_wrap=True)
    links = wants_links(stream) and not console.legacy_windows
    for line in lines:
        pieces = [
            (f"\x1b]8;;{link}\x1b\\{piece}\x1b]8;;\x1b\\" if link and links else piece, style)
            for piece, style, link in text.spans(line)
        ]
        console.print(Text.assemble(*pieces), soft_wrap=True)


def patch_lines(patch: bytes) -> Iterator[str]:
    """The lines of a patch with their styles, for people: what acts on a terminal is shown as symbols."""
    from torchdet_lint.report.text import styled
    from torchdet_lint.report.visible import visible

    styles = {"+++": "bold", "---": "bold", "@@ ": "cyan"}
    for line in patch.decode("utf-8", "replace").split("\n")[:-1]:
        style = styles.get(line[:3]) or {"+": "green", "-": "red"}.get(line[:1], "")
        shown = visible(line, "\t")
        yield styled(shown, style) if style else shown


def wants_colour(color: str, stream: Any) -> bool:
    """Whether `color` (auto, always, never) asks for colour on `stream`."""
    return color == "always" or (color == "auto" and _coloured(stream))


def wants_links(stream: Any) -> bool:
    """Whether codes are links on `stream`: on a terminal that knows escapes, or as `FORCE_HYPERLINK` says."""
    forced = os.environ.get("FORCE_HYPERLINK")
    if forced:
        return forced != "0"
    return bool(stream.isatty()) and os.environ.get("TERM", "") not in ("dumb", "linux")


def width_of(stream: Any) -> int:
    """How wide the terminal `stream` is; 0 for anything else."""
    import shutil

    return shutil.get_terminal_size((0, 0)).columns if stream.isatty() else 0


def _coloured(stream: Any) -> bool:
    """What the environment and the terminal ask for. A variable that is empty asks for nothing."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE") or "0"
    return forced != "0" or bool(stream.isatty())


def emit(lines: Iterable[str], stream: Any = None) -> None:
    """Write to `stream` (default: standard output); what its encoding lacks becomes an escape, never a crash."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    for line in lines:
        try:
            stream.write(line)
        except UnicodeEncodeError:
            stream.write(line.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def flush(data: bytes) -> None:
    """Write bytes to standard output as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


class Progress:
    """A bar on standard error, on a terminal, once a run has taken more than a moment."""

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        import time

        self._start = time.monotonic()
        return self

    def step(self, done: int, total: int) -> None:
        """`done` of `total` files are linted."""
        if not self._shown:
            return
        if self._bar is None:
            import time

            if time.monotonic() - self._start < _PROGRESS_AFTER:
                return
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("linting", total=total)
        self._bar.update(self._task, completed=done)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
