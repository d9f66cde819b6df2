"""The command line: options in, findings out, and the exit status that says what happened."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from torchdet_lint import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torchdet_lint.config import Options, Settings
    from torchdet_lint.finding import Result

CLEAN, FINDINGS, FAILED, INTERRUPTED = 0, 1, 2, 130

RUNTIME = ("run", "verify", "record", "compare", "forecast")
_FORMATS = ("full", "concise", "grouped", "json", "json-lines", "sarif", "github", "gitlab", "junit")
_PROGRESS_AFTER = 1.5
_UNWRITTEN = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


class UsageError(Exception):
    """An option that cannot be used; shown as one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see `{self.prog} --help`)")


def main(arguments: Sequence[str]) -> int:
    """Run `torchdet-lint` with `arguments`; returns the exit status."""
    try:
        return _dispatch(list(arguments))
    except UsageError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITTEN:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail(f"standard output: {(error.strerror or str(error)).lower()}")


def _dispatch(arguments: list[str]) -> int:
    command = arguments[0] if arguments else "check"
    rest = arguments[1:]
    if command in RUNTIME:
        return _runtime(arguments)
    if command == "lsp":
        return _lsp(rest)
    if command == "rule":
        return _guarded(lambda: _rule(_rule_parser().parse_args(rest)))
    if command == "baseline":
        return _guarded(lambda: _baseline(_check_parser("baseline").parse_args(rest)))
    if command == "check":
        arguments = rest
    return _guarded(lambda: _check(_check_parser("check").parse_args(arguments)))


def _guarded(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else CLEAN
    except UsageError:
        raise
    except Exception as error:
        from torchdet_lint.catalogue.texts import CatalogueError
        from torchdet_lint.config import ConfigError

        if isinstance(error, (ConfigError, CatalogueError)):
            return _fail(str(error))
        raise


def _fail(message: str) -> int:
    _emit([f"torchdet-lint: error: {message}\n"], sys.stderr)
    return FAILED


def _runtime(arguments: list[str]) -> int:
    """The verifier, which alone needs torch."""
    try:
        from torchdet_lint.verifier import cli  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError as error:
        return _fail(
            f"`torchdet-lint {arguments[0]}` needs {error.name}: install it with `pip install 'torchdet-lint[verify]'`"
        )
    status: int = cli.main(arguments)
    return status


def _lsp(arguments: list[str]) -> int:
    """The language server, which alone needs pygls."""
    parser = _Parser(prog="torchdet-lint lsp", description="Serve an editor over standard input and output.")
    parser.parse_args(arguments)
    try:
        from torchdet_lint.lsp.server import serve
    except ModuleNotFoundError as error:
        return _fail(f"`torchdet-lint lsp` needs {error.name}: install it with `pip install 'torchdet-lint[lsp]'`")
    serve()
    return CLEAN


# ------------------------------------------------------------------------------------------------------------ options


def _check_parser(command: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="torchdet-lint" if command == "check" else f"torchdet-lint {command}",
        description="Find nondeterminism in PyTorch code."
        if command == "check"
        else "Write the present findings to a file that later runs subtract.",
        epilog="Further commands: rule [CODE…|--all], baseline, run, verify, record, compare, forecast. "
        "Exit status: 0 nothing to report, 1 findings, 2 the run failed."
        if command == "check"
        else None,
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files and folders (default: the current folder; -: stdin)"
    )
    rules = parser.add_argument_group("rules")
    rules.add_argument(
        "--select", metavar="CODES", action="append", help="the rules to run, by code or prefix, comma-separated"
    )
    rules.add_argument("--ignore", metavar="CODES", action="append", help="rules to leave out; the longest prefix wins")
    rules.add_argument(
        "--extend-select", metavar="CODES", action="append", help="rules to run besides the selected ones"
    )
    rules.add_argument(
        "--min-severity", choices=("error", "warning", "note"), help="report this and worse (default: warning)"
    )
    rules.add_argument("--torch-version", metavar="X.Y", help="the torch release the code is judged for")
    rules.add_argument(
        "--devices", metavar="LIST", help="the devices it runs on: cpu, cuda, mps, xpu (default: cpu,cuda)"
    )
    rules.add_argument("--baseline", metavar="FILE", help="subtract the findings in this file")
    files = parser.add_argument_group("files")
    files.add_argument(
        "--exclude", metavar="GLOBS", action="append", help="what to leave out, in place of the usual folders"
    )
    files.add_argument("--extend-exclude", metavar="GLOBS", action="append", help="what to leave out besides")
    files.add_argument("--no-respect-gitignore", action="store_true", help="lint what git ignores too")
    files.add_argument("--stdin-filename", metavar="NAME", help="the name of what `-` reads from standard input")
    if command == "check":
        fixing = parser.add_argument_group("fixes")
        fixing.add_argument("--fix", action="store_true", default=None, help="write the safe fixes")
        fixing.add_argument(
            "--unsafe-fixes", action="store_true", default=None, help="with --fix or --diff: the unsafe ones too"
        )
        fixing.add_argument("--diff", action="store_true", help="print the fixes as a patch and write nothing")
        output = parser.add_argument_group("output")
        output.add_argument("--output-format", choices=_FORMATS, metavar="FORMAT", help=f"one of {', '.join(_FORMATS)}")
        output.add_argument("--output-file", metavar="FILE", help="write the findings there")
        output.add_argument(
            "--statistics",
            action="store_true",
            help="count the findings by rule, as text or json",
        )
        output.add_argument("--exit-zero", action="store_true", help="leave with 0 even where there are findings")
        output.add_argument(
            "--exit-non-zero-on-fix", action="store_true", help="leave with 1 where something was fixed"
        )
    else:
        parser.add_argument(
            "--output-file",
            metavar="FILE",
            help="the baseline file (default: the configured one, else .torchdet-baseline.json)",
        )
    how = parser.add_argument_group("how to run")
    how.add_argument("--config", metavar="FILE", help="this pyproject.toml or torchdet-lint.toml and no other")
    how.add_argument("--isolated", action="store_true", help="read no configuration")
    how.add_argument("--jobs", "-j", type=int, metavar="N", help="worker processes (default: one for each processor)")
    how.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")
    how.add_argument(
        "--cache-dir", metavar="FOLDER", help="where the cache is (default: .torchdet_cache in the project)"
    )
    how.add_argument("--quiet", "-q", action="store_true", help="findings only, no summary")
    how.add_argument("--verbose", "-v", action="store_true", help="say what is done, on standard error")
    how.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colour in the output")
    parser.add_argument("--version", action="version", version=f"torchdet-lint {__version__}")
    return parser


def _rule_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="torchdet-lint rule", description="Say all that is known about a rule.", allow_abbrev=False)
    parser.add_argument("rules", nargs="*", metavar="CODE", help="codes, prefixes or names")
    parser.add_argument("--all", action="store_true", help="every rule")
    parser.add_argument("--output-format", choices=("text", "json", "markdown"), default="text")
    parser.add_argument(
        "--torch-version", metavar="X.Y", help="show the table of operations as it stands in that release"
    )
    parser.add_argument("--config", metavar="FILE", help="the configuration that names further rule files")
    parser.add_argument("--isolated", action="store_true", help="read no configuration")
    return parser


def _listed(values: Iterable[str] | None) -> tuple[str, ...] | None:
    if values is None:
        return None
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _flags(given: argparse.Namespace) -> Options:
    from torchdet_lint.config import Options

    select = _listed(given.select)
    if select == ():
        raise UsageError("--select: no rule is named")
    return Options(
        select=select,
        ignore=_listed(given.ignore),
        extend_select=_listed(given.extend_select),
        min_severity=given.min_severity,
        torch_version=given.torch_version,
        devices=_listed([given.devices]) if given.devices is not None else None,
        baseline=given.baseline,
        exclude=_listed(given.exclude),
        extend_exclude=_listed(given.extend_exclude),
        respect_gitignore=False if given.no_respect_gitignore else None,
        fix=getattr(given, "fix", None),
        unsafe_fixes=getattr(given, "unsafe_fixes", None),
        output_format=getattr(given, "output_format", None),
        cache_dir=given.cache_dir,
        jobs=given.jobs,
    )


def _settings(given: argparse.Namespace, paths: Sequence[str]) -> tuple[Settings, tuple[str, ...]]:
    import msgspec

    from torchdet_lint import config

    if given.isolated and given.config:
        raise UsageError("--isolated and --config contradict each other")
    if given.isolated:
        found = config.isolated(paths)
    elif given.config:
        found = config.explicit(given.config)
    else:
        found = config.find(paths)
    settings = config.merge(found, _flags(given))
    if given.no_cache:
        settings = msgspec.structs.replace(settings, cache_dir="")
    return settings, found.errors


# ------------------------------------------------------------------------------------------------------------- check


def _check(given: argparse.Namespace) -> int:
    from torchdet_lint.engine import run
    from torchdet_lint.source.snippets import Snippets

    paths = given.paths or ([] if given.stdin_filename else [os.curdir])
    stdin = _stdin(given, paths)
    settings, complaints = _settings(given, [stdin[0]] if stdin else paths)
    for complaint in complaints:
        _fail(complaint)
    if given.verbose:
        _verbose(settings)
    texts = dict([stdin]) if stdin else {}
    if stdin:
        paths = []
    if settings.fix or given.diff:
        return max(_fixed(given, paths, settings, texts), FAILED if complaints else CLEAN)
    with _Progress(quiet=given.quiet) as progress:
        result = run.run(paths, settings, texts=texts, progress=progress.step)
    for error in result.errors:
        _fail(error)
    _write(given, settings, result, Snippets(texts))
    if complaints or result.errors:
        return FAILED
    return FINDINGS if result.findings and not given.exit_zero else CLEAN


def _stdin(given: argparse.Namespace, paths: Sequence[str]) -> tuple[str, bytes] | None:
    if "-" not in paths and given.stdin_filename is None:
        return None
    if list(paths) not in ([], ["-"]):
        raise UsageError("`-` and --stdin-filename read standard input; name no other path with them")
    return given.stdin_filename or "-", sys.stdin.buffer.read()


def _verbose(settings: Settings) -> None:
    print(f"configuration: {settings.file or 'none'} (project {settings.root})", file=sys.stderr)
    print(f"target: torch {settings.torch[0]}.{settings.torch[1]} on {', '.join(settings.devices)}", file=sys.stderr)
    from torchdet_lint.source.cache import refusal

    refused = refusal(settings.cache_dir) if settings.cache_dir else ""
    print(f"cache: {settings.cache_dir or 'none'}{f' (not used: {refused})' if refused else ''}", file=sys.stderr)


def _write(given: argparse.Namespace, settings: Settings, result: Result, snippets: Any, stream: Any = None) -> None:
    """Report `result` to the file that was asked for, else to `stream` (default: standard output)."""
    from torchdet_lint import report
    from torchdet_lint.report import text

    wanted = report.Report(result, snippets, given.quiet, settings.rule_files, getattr(given, "fixed", None))
    name: str = settings.output_format
    if given.statistics:
        name = "json-statistics" if name == "json" else "statistics"
    writer = report.writer(name)
    lines = writer(wanted)
    if given.output_file:
        try:
            with open(given.output_file, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{text.plain(line)}\n" for line in lines)
        except OSError as error:
            raise UsageError(f"--output-file: {given.output_file}: {(error.strerror or str(error)).lower()}") from error
        return
    _print(lines, given.color, stream or sys.stdout)


def _print(lines: Iterable[str], color: str, stream: Any) -> None:
    from torchdet_lint.report import text

    painted = color == "always" or (color == "auto" and stream.isatty() and "NO_COLOR" not in os.environ)
    if not painted:
        _emit((f"{text.plain(line)}\n" for line in lines), stream)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text.assemble(*text.spans(line)), soft_wrap=True)


def _emit(lines: Iterable[str], stream: Any = None) -> None:
    """Write to `stream` (default: standard output); what its encoding lacks becomes an escape, never a crash."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "utf-8"
    for line in lines:
        try:
            stream.write(line)
        except UnicodeEncodeError:
            stream.write(line.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


class _Progress:
    """A bar on standard error, on a terminal, once a run has taken more than a moment."""

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> _Progress:
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


# --------------------------------------------------------------------------------------------------- further commands


def _fixed(given: argparse.Namespace, paths: Sequence[str], settings: Settings, texts: dict[str, bytes]) -> int:
    """`--fix` and `--diff`; the exit status is ruff's: a patch that is not empty is something to report."""
    from torchdet_lint.engine import repair
    from torchdet_lint.fixes import patch
    from torchdet_lint.source.snippets import Snippets

    with _Progress(quiet=given.quiet) as progress:
        repaired = repair.repair(paths, settings, texts=texts, progress=progress.step)
    errors = list(repaired.result.errors)
    if given.diff:
        for path, change in repaired.changes.items():
            _flush(patch.diff(path, change.old, change.new))
    elif texts:
        _flush(b"".join(repaired.texts.get(name, data) for name, data in texts.items()))
    else:
        unwritten = repair.write(repaired.changes)
        errors += unwritten.values()
        repaired = repaired.without(unwritten)
    changes = repaired.changes
    given.fixed = repair.total(changes)
    if not given.diff:
        _write(given, settings, repaired.result, Snippets(repaired.texts), sys.stderr if texts else sys.stdout)
    elif not given.quiet:
        number = sum(given.fixed.values())
        print(f"Would fix {number} finding{'s' * (number != 1)}." if number else "Nothing to fix.", file=sys.stderr)
    for error in errors:
        _fail(error)
    if errors:
        return FAILED
    if given.exit_zero and not (given.exit_non_zero_on_fix and changes):
        return CLEAN
    if given.diff:
        return FINDINGS if changes else CLEAN
    return FINDINGS if repaired.result.findings or (given.exit_non_zero_on_fix and changes) else CLEAN


def _flush(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _baseline(given: argparse.Namespace) -> int:
    import msgspec

    from torchdet_lint.engine import baseline, run

    paths = given.paths or [os.curdir]
    settings, complaints = _settings(given, paths)
    target = os.path.abspath(given.output_file) if given.output_file else settings.baseline
    target = target or os.path.join(settings.root, ".torchdet-baseline.json")
    result = run.run(paths, msgspec.structs.replace(settings, baseline=""))
    for error in (*complaints, *result.errors):
        _fail(error)
    try:
        number = baseline.write(target, result.findings)
    except OSError as error:
        return _fail(f"baseline: {target}: {(error.strerror or str(error)).lower()}")
    if not given.quiet:
        print(f"Wrote {number} finding{'s' * (number != 1)} to {os.path.relpath(target)}.")
        if settings.baseline != target:
            print(f"`--baseline {os.path.relpath(target)}`, or `baseline` in the configuration, subtracts them.")
    return FAILED if complaints or result.errors else CLEAN


def _rule(given: argparse.Namespace) -> int:
    from pathlib import Path

    from torchdet_lint import config
    from torchdet_lint.catalogue import explain, loading, ops

    if not given.rules and not given.all:
        raise UsageError("name a rule, or ask for all of them with --all (see `torchdet-lint rule --help`)")
    release = ops.release(given.torch_version) if _release(given.torch_version) else None
    if given.isolated:
        found = config.isolated([os.curdir])
    else:
        found = config.explicit(given.config) if given.config else config.find([os.curdir])
    for complaint in found.errors:
        _fail(complaint)
    settings = config.merge(found, config.Options())
    known = loading.load(examples=True, extra=[Path(path) for path in settings.rule_files])
    rules = list(known.rules.values())
    if not given.all:
        names = {rule.code: rule.name for rule in rules}
        codes = config.chosen(given.rules, names)
        rules = [rule for rule in rules if rule.code in codes]

    def reported(code: str) -> list[Any]:
        return ops.ops_of(code, known.facts.ops, release)

    if given.output_format == "json":
        single = (
            len(given.rules) == 1
            and len(rules) == 1
            and given.rules[0].upper() in (rules[0].code, rules[0].name.upper())
        )
        _emit(
            [
                explain.as_json(
                    [explain.as_object(rule, reported(rule.code), release) for rule in rules], single=single
                )
                + "\n"
            ]
        )
    elif given.output_format == "markdown":
        _emit("\n".join(explain.page(rule, reported(rule.code)) for rule in rules))
    else:
        for number, rule in enumerate(rules):
            _emit(["\n" * 2] if number else [])
            _emit(f"{line}\n" for line in explain.as_text(rule, reported(rule.code), release))
    return FAILED if found.errors else CLEAN


def _release(text: str | None) -> bool:
    if text is None:
        return False
    from torchdet_lint.catalogue import ops

    try:
        ops.release(text)
    except ValueError as error:
        raise UsageError(f"--torch-version: {error}") from error
    return True
