"""Fixing a text without a run: the changes that a check would ask for, planned and applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.catalogue.rules import Rule
from torchdet_lint.finding import Change, Edit, Fix, Violation
from torchdet_lint.fixes import patch, plan
from torchdet_lint.module.module import Call, Module
from torchdet_lint.source.decoding import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.prefilter.library import Library

RULE = Rule(code="TDL301", name="example", summary="", message="", why="", instead="", fix="safe")

Ask = "Callable[[Call], tuple[Change, ...]]"


def module_of(text: str | bytes, library: Library, path: str = "example.py") -> Module:
    data = text.encode() if isinstance(text, str) else text
    module = Module(decode(path, data), library)
    module.load_all()
    module.loading.awake = True
    return module


def calls(module: Module, name: str) -> list[Call]:
    """The calls of anything that is written `name`, in order."""
    return [call for call in module.calls if module.code(call.node.func).rpartition(".")[2] == name]


def fixes(
    text: str | bytes,
    library: Library,
    name: str,
    ask: Callable[[Call], tuple[Change, ...]],
    *,
    code: str = "TDL301",
    seed: int = 0,
    path: str = "example.py",
) -> tuple[Module, list[Fix]]:
    module = module_of(text, library, path)
    rule = Rule(code=code, name="example", summary="", message="", why="", instead="", fix="safe")
    planner = plan.Planner(module, seed)
    planned = [planner.plan(Violation(call.node, changes=ask(call)), rule) for call in calls(module, name)]
    return module, [one for one in planned if one is not None]


def fixed(
    text: str | bytes, library: Library, name: str, ask: Callable[[Call], tuple[Change, ...]], **options: Any
) -> str:
    """`text` with the changes that `ask` wants for every call of `name`."""
    module, planned = fixes(text, library, name, ask, **options)
    assert planned, f"no call of {name}"
    for one in planned:
        assert not one.withheld, one.withheld
    patched = patch.apply(module.source, planned)
    assert not patched.refused, patched.refused
    assert not patched.waiting
    return patched.data.decode()


def patched(module: Module, edits: Sequence[Edit]) -> str:
    """The text of `module` after `edits`."""
    done = patch.apply(module.source, [Fix("safe", "", tuple(edits))])
    assert not done.refused, done.refused
    return done.data.decode()


def refusal(text: str, library: Library, name: str, ask: Callable[[Call], tuple[Change, ...]]) -> str:
    """Why the fix of the first call of `name` is not made."""
    module, planned = fixes(text, library, name, ask)
    return planned[0].withheld or patch.apply(module.source, planned[:1]).refused.get(0, "")


def statement(text: str) -> cst.BaseStatement:
    return cst.parse_statement(text)
