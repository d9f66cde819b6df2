"""A text, or a statement of Python's own tree -> whether it has, or is, a main guard: `if __name__ == "__main__":`."""

from __future__ import annotations

import ast
import re

from torchdet_lint.regex import lazy

_GUARD = lazy(
    r"(?:^|(?<=\r))\f?if[ \t(]+(?:[^\r\n#]{1,200}?\b(?:and|or)[ \t(]+)?"
    r"(?:__name__\s*==\s*['\"]__main__['\"]|['\"]__main__['\"]\s*==\s*__name__"
    r"|__name__\s+in\s*[({\[][^\r\n#]{0,200}?['\"]__main__['\"])",
    re.MULTILINE,
)


def has_main_guard(text: str) -> bool:
    """Whether a statement at top level of a file is a main guard."""
    return "__main__" in text and _GUARD.search(text) is not None


def is_main_guard(node: ast.AST) -> bool:
    """Whether a statement is `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and asks_for_main(node.test)


def asks_for_main(test: ast.expr) -> bool:
    """Whether `test` is `__name__ == "__main__"`, one of several names, or that and more."""
    match test:
        case ast.BoolOp(values=values):
            return any(map(asks_for_main, values))
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[other]):
            return _is_main(other)
        case ast.Compare(left=other, ops=[ast.Eq()], comparators=[ast.Name(id="__name__")]):
            return _is_main(other)
        case ast.Compare(
            left=ast.Name(id="__name__"), ops=[ast.In()], comparators=[ast.Tuple() | ast.List() | ast.Set() as names]
        ):
            return any(map(_is_main, names.elts))
    return False


def _is_main(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "__main__"
