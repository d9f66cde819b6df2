"""A report -> the screen or a file, in the format that is asked for, and its exit status."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.commands import terminal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from torchdet_lint.verifier.verification.report import Report


def put(report: Any, text: Callable[..., str], options: argparse.Namespace) -> int:
    """Print a report, or write it where it is asked for, as JSON or as the lines that `text` makes of it."""
    if options.output_format == "json":
        import msgspec

        lines = msgspec.json.encode(report).decode() + "\n"
    else:
        lines = text(report, colour=options.output_file is None and terminal.coloured(options.color))
    _write(lines, text, report, options)
    status: int = report.exit_status
    return status


def deliver(report: Report, options: argparse.Namespace) -> int:
    """Print the report of a verification, or write it where it is asked for, in any of its formats."""
    from torchdet_lint.verifier.verification import machine
    from torchdet_lint.verifier.verification.text import text as on_screen

    if options.output_format == "json":
        text = report.to_json().decode() + "\n"
    elif options.output_format == "html":
        from torchdet_lint.verifier.verification.page.page import html

        text = html(report, report.picture)
    elif options.output_format == "text":
        text = on_screen(report, colour=options.output_file is None and terminal.coloured(options.color))
    else:
        text = {"github": machine.github, "junit": machine.junit, "sarif": machine.sarif}[options.output_format](report)
    _write(text, on_screen, report, options)
    return report.exit_status


def _write(text: str, on_screen: Callable[..., str], report: Any, options: argparse.Namespace) -> None:
    """Print `text`, or write it where it is asked for and print the verdict, the first line `on_screen`."""
    if options.output_file is None:
        sys.stdout.write(text)
        return
    options.output_file.write_text(text, encoding="utf-8")
    if options.output_file.is_file():
        verdict = on_screen(report, colour=terminal.coloured(options.color)).partition("\n")[0]
        sys.stdout.write(f"{verdict}\n")
