"""The text of some statements -> whether libcst's parser would exhaust the stack with a chain in it.

Python's parser refuses what is nested too deeply, but holds some chains flat that libcst nests, one link in the other:
the operands of `and` and `or`, the parts of an imported module's name, the clauses of a comprehension.
"""

from __future__ import annotations

import ast

from torchdet_lint.prefilter.skeleton import SyntaxFault, parsed
from torchdet_lint.regex import lazy

# From some 8,000 links on the process dies on a stack of 8 MB.
_MOST = 2000
_LINK = lazy(r"\b(?:and|or|for)\b|\.")


def too_long(text: str) -> bool:
    """Whether a chain in `text` has too many links. Text that is not Python has none."""
    if len(text) < 2 * _MOST or len(_LINK.findall(text)) < _MOST:
        return False
    try:
        tree = parsed(text)
    except SyntaxFault:
        return True
    return any(_links(node) > _MOST for node in ast.walk(tree))


def _links(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values)
    if isinstance(node, ast.Import):
        return max(alias.name.count(".") for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").count(".")
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return len(node.generators)
    return 0
