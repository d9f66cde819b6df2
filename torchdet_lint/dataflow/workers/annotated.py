"""The annotation of a parameter -> calls that make what it may be given: objects of classes of the project."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from torchdet_lint.dataflow.workers.project_file import once
from torchdet_lint.prefilter.skeleton import dotted_name

if TYPE_CHECKING:
    from torchdet_lint.dataflow.workers.classes import Classes
    from torchdet_lint.dataflow.workers.project_file import File

# Bases of classes from which others are to derive.
_ABSTRACT = frozenset(("ABC", "ABCMeta", "Protocol"))
_PROSE_AND_RAISE = 2
_CHOICES = ("Optional", "Union")


def objects_of(parameter: ast.arg, file: File, classes: Classes) -> list[ast.expr]:
    """A call for each class that the annotation of `parameter` names, whose arguments nobody sees; none where one of
    them is not the project's, or where others are to derive from it."""
    named = _alternatives(parameter.annotation)
    if not all(_is_meant(one, file, classes) for one in named):
        return []
    return [once(one, functools.partial(_made, one)) for one in named]


def _made(class_: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(class_, [ast.Starred(ast.Constant(None))], []), class_)


def _alternatives(annotation: ast.expr | None) -> list[ast.expr]:
    """`Rows` of `Rows | None` and `Optional[Rows]`."""
    match annotation:
        case None | ast.Constant(value=None):
            return []
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*_alternatives(left), *_alternatives(right)]
        case ast.Subscript(value=choice, slice=inner) if dotted_name(choice).rpartition(".")[2] in _CHOICES:
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return [one for part in parts for one in _alternatives(part)]
    return [annotation]


def _is_meant(class_: ast.expr, file: File, classes: Classes) -> bool:
    """Whether `class_` names a class of the project of which there are objects, and no other in its file derives."""
    found = classes.definition(classes.dotted(class_, file), file)
    if found is None or not isinstance(found[0], ast.ClassDef):
        return False
    others = (one for one in found[1].definitions.values() if isinstance(one, ast.ClassDef))
    return not _is_abstract(found[0]) and not any(
        dotted_name(base) == found[0].name for other in others for base in other.bases
    )


def _is_abstract(class_: ast.ClassDef) -> bool:
    """Whether a class leaves a method to those that derive from it."""
    bases = (dotted_name(base).rpartition(".")[2] for base in (*class_.bases, *(one.value for one in class_.keywords)))
    return not _ABSTRACT.isdisjoint(bases) or any(
        isinstance(member, ast.FunctionDef)
        and isinstance(raised := member.body[-1], ast.Raise)
        and len(member.body) <= _PROSE_AND_RAISE
        and "NotImplementedError" in ast.unparse(raised)
        for member in class_.body
    )
