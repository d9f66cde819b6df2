"""`torchdet-lint rule`: codes and names -> all that is known about the rules."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.cli.console import CLEAN, FAILED, UsageError, emit, fail, width_of
from torchdet_lint.cli.options import Parser, asked_for

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.catalogue.rules import Rule


def rule_parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = Parser(
        prog="torchdet-lint rule",
        description="Say all that is known about a rule.",
        epilog="For rules of your own: `rule new ACME001-its-name` writes a file to begin with, `rule test FILE…` "
        "tries the examples of such files.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "rules",
        nargs="*",
        metavar="CODE",
        help="codes, prefixes or names; or words that a rule or its table of operations holds",
    )
    parser.add_argument("--all", action="store_true", help="every rule")
    parser.add_argument("--output-format", choices=("text", "json", "markdown"), default="text", help="(default: text)")
    parser.add_argument(
        "--torch-version", metavar="X.Y", help="show the table of operations as it stands in that release"
    )
    parser.add_argument("--config", metavar="FILE", help="the configuration that names further rule files")
    parser.add_argument("--isolated", action="store_true", help="read no configuration")
    return parser


def rule(given: argparse.Namespace) -> int:
    """Print what is known about the rules that were named; the exit status."""
    from pathlib import Path

    from torchdet_lint import config
    from torchdet_lint.catalogue import explain, loading, ops

    if not given.rules and not given.all:
        raise UsageError("name a rule, or ask for all of them with --all (see `torchdet-lint rule --help`)")
    release = ops.release(given.torch_version) if _release(given.torch_version) else None
    found = asked_for(given, [os.curdir])
    for complaint in found.errors:
        fail(complaint)
    settings = config.merge(found, config.Options())
    known = loading.load(examples=True, extra=[Path(path) for path in settings.rule_files])
    rules = list(known.rules.values())
    if not given.all:
        names = {rule.code: rule.name for rule in rules}
        spoken = (
            _spoken_of(given.rules, rules, lambda code: ops.ops_of(code, known.facts.ops))
            if given.output_format == "text"
            else []
        )
        if spoken:
            emit(map(_line, spoken))
            return FAILED if found.errors else CLEAN
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
        emit(
            [
                explain.as_json(
                    [explain.as_object(rule, reported(rule.code), release) for rule in rules], single=single
                )
                + "\n"
            ]
        )
    elif given.output_format == "markdown":
        emit(map(_line, "\n".join(explain.page(rule, reported(rule.code)) for rule in rules).split("\n")))
    else:
        for number, rule in enumerate(rules):
            emit(["\n" * 2] if number else [])
            width = min(width_of(sys.stdout) or 100, 100)
            emit(map(_line, explain.as_text(rule, reported(rule.code), release, max(width, 40))))
    return FAILED if found.errors else CLEAN


def _spoken_of(words: Sequence[str], rules: Sequence[Rule], ops_of: Callable[[str], Iterable[Op]]) -> list[str]:
    """One line for each rule that speaks of all `words`, where they are no codes, prefixes or names of rules."""
    from torchdet_lint import config

    if any(config.fits(word, rule.code, rule.name) for rule in rules for word in words):
        return []
    lines = []
    for rule in rules:
        mine = [op.op for op in (*rule.ops, *ops_of(rule.code))]
        told = " ".join((rule.name, rule.summary, rule.message, *mine)).lower()
        if all(word.lower() in told for word in words):
            hits = sorted({name for name in mine if any(word.lower() in name.lower() for word in words)})
            listed = f" ({', '.join(hits[:5])})" if hits else ""
            lines.append(f"{rule.code} {rule.name}: {rule.summary}{listed}")
    return lines


def _line(text: str) -> str:
    from torchdet_lint.report.visible import inert, visible

    return "".join(f"{inert(visible(line))}\n" for line in text.split("\n"))


def _release(text: str | None) -> bool:
    if text is None:
        return False
    from torchdet_lint.catalogue import ops

    try:
        ops.release(text)
    except ValueError as error:
        raise UsageError(f"--torch-version: {error}") from error
    return True
