"""The parsers of all commands -> completion scripts for bash, zsh and fish (by shtab, which only this needs)."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

import shtab

from torchdet_lint.cli.config import config_parser
from torchdet_lint.cli.options import check_parser
from torchdet_lint.cli.rule import rule_parser
from torchdet_lint.config import keys
from torchdet_lint.verifier.commands import options
from torchdet_lint.verifier.probe import command as probe
from torchdet_lint.verifier.verification import forecast

if TYPE_CHECKING:
    from collections.abc import Iterable

SHELLS = ("bash", "zsh", "fish")
_LISTS_OF_CODES = {"select", "ignore", "extend_select", "extend_ignore"}
_PATHS = {"a", "b", "output_file", "paths"}


def scripts(codes: Iterable[str]) -> dict[str, str]:
    """Shell -> script, which offers commands, options, their choices, files, the keys of the configuration, and the
    rules' `codes`."""
    return {shell: _adapted(shell, shtab.complete(_root(sorted(codes), shell), shell)) for shell in SHELLS}


def _root(codes: list[str], shell: str) -> argparse.ArgumentParser:
    """One parser of all commands. The names of some that are there without their options are its own."""
    root = argparse.ArgumentParser(prog="torchdet-lint", add_help=False)
    commands = root.add_subparsers()
    known: dict[str, tuple[str, argparse.ArgumentParser]] = {
        "check": ("find nondeterminism (the default)", check_parser("check")),
        "rule": ("say all that is known about a rule", rule_parser()),
        "config": ("say what the configuration's keys mean", config_parser()),
        "baseline": ("write the present findings to a file that later runs subtract", check_parser("baseline")),
        "lsp": ("serve an editor", argparse.ArgumentParser()),
        "completion": ("print a completion script", _shell_parser()),
        "verify": ("run a program twice and say where and why the runs differ", options.verify_parser()),
        "run": ("run a program with the runtime fixes", options.run_parser()),
        "record": ("record every op of a run into a trace", options.record_parser()),
        "compare": ("compare two traces", options.compare_parser()),
        "show": ("look into a trace", options.show_parser()),
        "forecast": ("list what would differ on another device", forecast.parser()),
        "preflight": ("write what a run on this machine will depend on", options.preflight_parser()),
        "probe": ("measure the ops on this machine", probe.parser()),
    }
    for name, (about, parser) in known.items():
        _complete(parser, codes)
        if name in ("verify", "run", "record", "forecast"):
            _programs(parser)
        commands.add_parser(name, parents=[parser], add_help=False, help=about, description=about)
    checked = known["check"][1]
    if shell == "zsh":
        # There the place of a command must not be that of a path too; `_adapted` puts it back.
        _without_positional(checked, "paths")
    root._add_container_actions(checked)
    return root


def _without_positional(parser: argparse.ArgumentParser, name: str) -> None:
    for action in list(parser._actions):
        if action.dest == name and not action.option_strings:
            parser._remove_action(action)
            parser._positionals._group_actions.remove(action)


def _shell_parser() -> argparse.ArgumentParser:
    from torchdet_lint.cli.completion import completion_parser

    return completion_parser()


def _programs(parser: argparse.ArgumentParser) -> None:
    """A program is a file, whatever argparse makes of it and of its words."""
    _without_positional(parser, "program")
    action: Any = parser.add_argument("program", nargs="*", help="the program and its words")
    action.complete = shtab.FILE


def _complete(parser: argparse.ArgumentParser, codes: list[str]) -> None:
    for action in parser._actions:
        told: Any = action
        if action.metavar in ("FILE", "FOLDER", "FILE.tdtrace") or action.dest in _PATHS:
            told.complete = shtab.FILE
        elif action.dest in _LISTS_OF_CODES:
            action.choices = codes
        elif action.dest == "rules":
            action.choices = ["new", "test", *codes]
        elif action.dest == "keys":
            action.choices = list(keys.KEYS)
        elif action.nargs == "?" and action.option_strings:
            # Its value goes with `=`: the next word is a path.
            action.nargs = 0


def _adapted(shell: str, script: str) -> str:
    """The script with a path where a command may stand: `torchdet-lint src`."""
    name = "_shtab_torchdet_lint"
    for before, after in {
        "bash": [("complete -o bashdefault -F", "complete -o bashdefault -o default -F")],
        "zsh": [
            (f"': :{name}_commands' '*:::", f"': :{name}_commands_or_files' '*:::"),
            (f"\n{name}() {{\n", f"\n{name}_commands_or_files() {{\n  {name}_commands\n  _files\n}}\n\n{name}() {{\n"),
            ("      esac\n  esac\n}", f"        *) _arguments -C -s ${name}_check_options ;;\n      esac\n  esac\n}}"),
        ],
        "fish": [(f"'{name}_using; and test ${name}_npos -ge 1'", f"'{name}_using; and test ${name}_npos -ge 0'")],
    }[shell]:
        if script.count(before) != 1:
            raise ValueError(f"shtab writes {shell} in another way: {before!r}")
        script = script.replace(before, after)
    return re.sub(r"[ \t]+$", "", script, flags=re.MULTILINE)
