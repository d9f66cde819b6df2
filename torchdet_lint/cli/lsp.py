"""`torchdet-lint lsp` -> the language server, which alone needs pygls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.cli.console import CLEAN, fail
from torchdet_lint.cli.options import Parser

if TYPE_CHECKING:
    from collections.abc import Sequence


def lsp(arguments: Sequence[str]) -> int:
    """Serve an editor until it leaves; the exit status."""
    Parser(prog="torchdet-lint lsp", description="Serve an editor over standard input and output.").parse_args(
        arguments
    )
    try:
        from torchdet_lint.lsp.server import serve
    except ModuleNotFoundError as error:
        return fail(f"`torchdet-lint lsp` needs {error.name}: install it with `pip install 'torchdet-lint[lsp]'`")
    serve()
    return CLEAN
