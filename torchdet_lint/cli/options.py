"""The command line's options -> the settings of a run."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any, NoReturn

from torchdet_lint import __version__
from torchdet_lint.cli.console import UsageError, emit

SEVERITIES = ("error", "warning", "note")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torchdet_lint.config import Configuration, Options, Settings

_FORMATS = ("full", "concise", "grouped", "json", "json-lines", "sarif", "github", "gitlab", "junit")


_COMMANDS = """\
further commands (each with --help):
  rule [CODE|WORDS]     what a rule means; rule new, rule test: your own rules
  config [KEY]          what the keys of [tool.torchdet-lint] mean
  baseline              write the findings to a file, to see only new ones
  lsp                   serve an editor
  completion SHELL      complete commands and options in bash, zsh or fish
  verify PROGRAM        run it twice, and say where and why the runs differ
  run PROGRAM           run it with the fixes applied while it runs
  record, compare       a trace of one run; what differs between two
  show TRACE            what is in a trace
  forecast PROGRAM      run it on the CPU, and list what would differ on a GPU
  preflight             what a run here will depend on, to compare two machines
  probe                 measure which operations are nondeterministic here

exit status: 0 nothing to report, 1 findings, 2 the run failed"""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help in which no option is broken at a hyphen."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are a `UsageError`."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does it, but that the reason of --add-noqa is never the path that follows."""
        given = sys.argv[1:] if args is None else args
        return super().parse_known_args(["--add-noqa=" if one == "--add-noqa" else one for one in given], namespace)

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError`."""
        unknown = message.partition("unrecognized arguments: ")[2].split(" ")[0]
        if unknown.startswith("-"):
            from torchdet_lint.config.selectors import near

            flag = near(unknown.partition("=")[0], self._option_string_actions)
            message = f"no option `{unknown}`" + (f"; did you mean `{flag}`?" if flag else "")
        raise UsageError(f"{message} (see `{self.prog} --help`)")


def check_parser(command: str) -> argparse.ArgumentParser:
    """The options of the command `check` or `baseline`."""
    parser = Parser(
        prog="torchdet-lint" if command == "check" else f"torchdet-lint {command}",
        usage="torchdet-lint [check] [options] [PATH ...]"
        if command == "check"
        else f"torchdet-lint {command} [options] [PATH ...]",
        description="Find nondeterminism in PyTorch code."
        if command == "check"
        else "Write the present findings to a file that later runs subtract.",
        epilog=_COMMANDS if command == "check" else None,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="files and folders (default: the current folder; -: stdin)"
        if command == "check"
        else "files and folders (default: the current folder)",
    )
    _add_rules(parser.add_argument_group("rules"))
    files = parser.add_argument_group("files")
    _add_files(files)
    if command == "check":
        files.add_argument("--stdin-filename", metavar="NAME", help="the name of what `-` reads from standard input")
        files.add_argument("--watch", action="store_true", help="run again whenever a file of the project changes")
        _add_fixes(parser.add_argument_group("fixes"))
        _add_output(parser.add_argument_group("output"))
    else:
        parser.add_argument(
            "--output-file",
            type=_report_file,
            metavar="FILE",
            help="the baseline file (default: the configured one, else .torchdet-baseline.json)",
        )
    _add_ways(parser.add_argument_group("how to run"))
    parser.add_argument("--version", action="version", version=f"torchdet-lint {__version__}")
    return parser


def _add_rules(rules: argparse._ArgumentGroup) -> None:
    rules.add_argument(
        "--select", metavar="CODES", action="append", help="the rules to run, by code or prefix, comma-separated"
    )
    rules.add_argument("--ignore", metavar="CODES", action="append", help="rules to leave out; the longest prefix wins")
    rules.add_argument(
        "--extend-select", metavar="CODES", action="append", help="rules to run in addition to the selected ones"
    )
    rules.add_argument("--extend-ignore", metavar="CODES", action="append", help="the same as --ignore, as in ruff")
    rules.add_argument(
        "--per-file-ignores", metavar="GLOB:CODES", action="append", help="rules to leave out in the files that match"
    )
    rules.add_argument("--min-severity", choices=SEVERITIES, help="report this and worse (default: warning)")
    rules.add_argument("--torch-version", metavar="X.Y", help="the torch release the code is judged for")
    rules.add_argument(
        "--devices", metavar="LIST", help="the devices it runs on: cpu, cuda, mps, xpu (default: cpu,cuda)"
    )
    rules.add_argument("--entry-points", metavar="GLOBS", action="append", help="the files that people start")
    rules.add_argument(
        "--seed-functions", metavar="NAMES", action="append", help="functions of yours that seed everything"
    )
    rules.add_argument("--rule-files", metavar="GLOBS", action="append", help="files with rules of your own")
    _switch(rules, "--deterministic-algorithms", "the programs are run in deterministic mode by other means")
    known = rules.add_mutually_exclusive_group()
    known.add_argument("--baseline", metavar="FILE", help="subtract the findings in this file")
    known.add_argument("--no-baseline", action="store_true", help="subtract none")
    rules.add_argument("--ignore-noqa", action="store_true", help="report what `# noqa` comments suppress too")
    judged = rules.add_mutually_exclusive_group()
    judged.add_argument("--measured", metavar="FILE", help="judge ops by what `torchdet-lint probe` wrote there")
    judged.add_argument("--no-measured", action="store_const", dest="measured", const="", help="by the tables alone")


def _add_files(files: argparse._ArgumentGroup) -> None:
    files.add_argument(
        "--exclude", metavar="GLOBS", action="append", help="what to leave out, in place of the usual folders"
    )
    files.add_argument("--extend-exclude", metavar="GLOBS", action="append", help="what to leave out in addition")
    _switch(files, "--force-exclude", "leave it out where it is named too, as pre-commit names files")
    _switch(files, "--respect-gitignore", "leave out what git ignores (default); --no-respect-gitignore undoes it")


def _add_fixes(fixing: argparse._ArgumentGroup) -> None:
    _switch(fixing, "--fix", "write the safe fixes; --no-fix undoes the key `fix`")
    _switch(fixing, "--unsafe-fixes", "with --fix or --diff: the unsafe ones too")
    fixing.add_argument("--seed", type=int, metavar="N", help="the seed that fixes write (default: 0)")
    fixing.add_argument(
        "--add-noqa",
        nargs="?",
        const="",
        metavar="=REASON",
        help="suppress what is found by `# noqa` comments, for this reason",
    )
    fixing.add_argument("--diff", action="store_true", help="print the fixes as a patch and write nothing")


def _add_output(output: argparse._ArgumentGroup) -> None:
    output.add_argument("--output-format", choices=_FORMATS, metavar="FORMAT", help=f"one of {', '.join(_FORMATS)}")
    output.add_argument("--output-file", type=_report_file, metavar="FILE", help="write the findings there")
    output.add_argument(
        "--evidence", metavar="FILE", help="say of each finding what this report of `verify --lint` saw (JSON)"
    )
    output.add_argument(
        "--statistics",
        action="store_true",
        help="count the findings by rule, as text or json",
    )
    output.add_argument("--show-files", action="store_true", help="list the files that would be linted")
    output.add_argument("--show-settings", action="store_true", help="print the settings that hold")
    output.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        help="exit with 1 for findings of this severity and worse (default: warning)",
    )
    output.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    output.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit with 1 if something was fixed")


def _add_ways(how: argparse._ArgumentGroup) -> None:
    how.add_argument("--config", metavar="FILE", help="this pyproject.toml or torchdet-lint.toml and no other")
    how.add_argument("--isolated", action="store_true", help="read no configuration")
    how.add_argument("--jobs", "-j", type=int, metavar="N", help="worker processes (default: one for each processor)")
    how.add_argument("--no-cache", action="store_true", help="neither read nor write the cache")
    how.add_argument(
        "--cache-dir", metavar="FOLDER", help="where the cache is (default: .torchdet_cache in the project)"
    )
    how.add_argument("--quiet", "-q", action="store_true", help="findings only, no summary")
    how.add_argument("--verbose", "-v", action="store_true", help="say what is done, on standard error")
    how.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="(default: auto, on a terminal)"
    )


def _report_file(name: str) -> str:
    """The name of a file that a report may be written to. Raises `argparse.ArgumentTypeError`."""
    from torchdet_lint.finding import why_no_report

    if why := why_no_report(name):
        raise argparse.ArgumentTypeError(f"{name}: {why}")
    return name


def _switch(group: argparse._ArgumentGroup, flag: str, text: str) -> None:
    """A flag and its opposite, which undoes the configuration's key of that name."""
    either = group.add_mutually_exclusive_group()
    either.add_argument(flag, action="store_true", default=None, help=text)
    name = flag.removeprefix("--")
    either.add_argument(f"--no-{name}", dest=name.replace("-", "_"), action="store_false", help=argparse.SUPPRESS)


def _per_file(values: Iterable[str] | None) -> dict[str, tuple[str, ...]] | None:
    if values is None:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for value in values:
        pattern, colon, codes = value.rpartition(":")
        if not (pattern and colon and codes):
            raise UsageError(f"--per-file-ignores: {value!r} is not of the form GLOB:CODES")
        found[pattern] = (*found.get(pattern, ()), *(_listed([codes]) or ()))
    return found


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
        ignore=_listed([*(given.ignore or ()), *(given.extend_ignore or ())]) or None,
        per_file_ignores=_per_file(given.per_file_ignores),
        seed=getattr(given, "seed", None),
        fail_on=getattr(given, "fail_on", None),
        force_exclude=given.force_exclude,
        extend_select=_listed(given.extend_select),
        min_severity=given.min_severity,
        torch_version=given.torch_version,
        devices=_listed([given.devices]) if given.devices is not None else None,
        baseline=given.baseline,
        measured=given.measured,
        entry_points=_listed(given.entry_points),
        seed_functions=_listed(given.seed_functions),
        rule_files=_listed(given.rule_files),
        deterministic_algorithms=given.deterministic_algorithms,
        exclude=_listed(given.exclude),
        extend_exclude=_listed(given.extend_exclude),
        respect_gitignore=given.respect_gitignore,
        fix=getattr(given, "fix", None),
        unsafe_fixes=getattr(given, "unsafe_fixes", None),
        output_format=getattr(given, "output_format", None),
        cache_dir=given.cache_dir,
        jobs=given.jobs,
    )


def settings_of(given: argparse.Namespace, paths: Sequence[str]) -> tuple[Settings, tuple[str, ...]]:
    """What holds for a run over `paths`, and complaints about configurations that were passed over."""
    if given.isolated and given.config:
        raise UsageError("--isolated and --config contradict each other")
    _from_environment(given)
    found = asked_for(given, paths)
    return _merged(given, found), found.errors


def _from_environment(given: argparse.Namespace) -> None:
    """Take what the environment says where no flag does; it wins over the configuration."""
    given.cache_dir = given.cache_dir or os.environ.get("TORCHDET_CACHE_DIR") or None
    wanted = os.environ.get("TORCHDET_OUTPUT_FORMAT")
    if wanted and hasattr(given, "output_format") and given.output_format is None:
        if wanted not in _FORMATS:
            raise UsageError(f"TORCHDET_OUTPUT_FORMAT: {wanted!r} is none of {', '.join(_FORMATS)}")
        given.output_format = wanted


def asked_for(given: argparse.Namespace, paths: Sequence[str]) -> Configuration:
    """The configuration for `paths`: none (`--isolated`), the one that is named (`--config`), or the one found."""
    from torchdet_lint import config

    if given.isolated:
        return config.isolated(paths)
    return config.explicit(given.config) if given.config else config.find(paths)


def nearest_of(given: argparse.Namespace, paths: Sequence[str]) -> Callable[[str], Settings | None]:
    """Gives the settings for the files of a folder where a configuration lies between it and what `paths` share."""
    from torchdet_lint import config

    top = config.top_of(paths)
    known: dict[str, config.Configuration | None] = {}
    merged: dict[str, Settings] = {}

    def nearest(folder: str) -> Settings | None:
        found = config.nested(folder, top, known)
        if found is None or not found.file:
            return None
        if found.file not in merged:
            merged[found.file] = _merged(given, found)
        return merged[found.file]

    return nearest


def _merged(given: argparse.Namespace, found: Configuration) -> Settings:
    import msgspec

    from torchdet_lint import config
    from torchdet_lint.engine.linter import rule_names

    flags = _flags(given)
    settings = config.merge(found, flags)
    names = rule_names(settings.rule_files)
    config.must_fit(flags.select or (), names, "--select: ")
    config.must_fit(flags.ignore or (), names, "--ignore: ")
    config.must_fit(flags.extend_select or (), names, "--extend-select: ")
    for pattern, codes in (flags.per_file_ignores or {}).items():
        config.must_fit(codes, names, f"--per-file-ignores: {pattern}: ")
    notes = settings.notes
    if not config.selection(settings, names):
        notes += (f"{found.file}: no rule is selected" if found.file else "no rule is selected",)
    emit((f"torchdet-lint: warning: {note}\n" for note in notes), sys.stderr)
    if given.no_cache:
        settings = msgspec.structs.replace(settings, cache_dir="")
    if given.no_baseline:
        settings = msgspec.structs.replace(settings, baseline="")
    if given.ignore_noqa:
        settings = msgspec.structs.replace(settings, ignore_noqa=True)
    return settings
