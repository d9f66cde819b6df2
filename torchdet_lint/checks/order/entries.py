"""A dictionary or list that goes by a name -> what stands in it: the collections that its entries are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.order.fillings import MANY, ONE
from torchdet_lint.dataflow.syntax import bare, last_word

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module


class Entries:
    """The statements of one file that put something into the entries of a table, by the name of that."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._assignments = self._calls = 0
        self._whole: dict[str, list[tuple[cst.BaseExpression, cst.BaseExpression]]] = {}
        self._keyed: dict[str, list[tuple[cst.BaseExpression, cst.BaseExpression]]] = {}
        self._one: dict[str, list[tuple[cst.BaseExpression, cst.BaseExpression]]] = {}

    def of(self, table: cst.BaseExpression) -> tuple[list[cst.BaseExpression], list[cst.BaseExpression]]:
        """The collections that become entries of `table` or are added to one, and what is put into an entry alone."""
        word = last_word(table)
        self.module.load_where(lambda text: f"{word}[" in text or f"{word}.setdefault(" in text, word)
        self._index()
        name = bare(table)
        return self._same(table, self._whole.get(name, [])), self._same(table, self._one.get(name, []))

    def at(self, entry: cst.Subscript) -> list[cst.BaseExpression]:
        """What is assigned to the entry that is written as `entry` is, `table["key"]`."""
        table = entry.value
        word = last_word(table)
        self.module.load_where(lambda text: f"{word}[" in text, word)
        self._index()
        return self._same(table, self._keyed.get(bare(entry), []))

    def _same(
        self, table: cst.BaseExpression, found: list[tuple[cst.BaseExpression, cst.BaseExpression]]
    ) -> list[cst.BaseExpression]:
        """The values of those that mean the same name as `table`."""
        if not isinstance(table, cst.Name):
            return [value for _, value in found]
        home = self.module.scope_of(table).home(table.value)
        return [value for owner, value in found if self.module.scope_of(owner).home(table.value) is home]

    def _index(self) -> None:
        assignments = self.module.loading.facts.assignments
        for _, target, value, _, _ in assignments[self._assignments :]:
            if isinstance(target, cst.Subscript):
                self._whole.setdefault(bare(target.value), []).append((target.value, value))
                self._keyed.setdefault(bare(target), []).append((target.value, value))
        self._assignments = len(assignments)
        calls = self.module.calls
        for call in calls[self._calls :]:
            kept = self._one if call.attribute in ONE else self._whole if call.attribute in MANY else None
            owner = _table_of(call.receiver)
            if kept is not None and owner is not None and call.node.args:
                kept.setdefault(bare(owner), []).append((owner, call.node.args[-1].value))
        self._calls = len(calls)


def _table_of(entry: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """`table` of `table[key]` and of `table.setdefault(key, [])`."""
    if isinstance(entry, cst.Subscript):
        return entry.value
    if isinstance(entry, cst.Call) and isinstance(entry.func, cst.Attribute) and entry.func.attr.value == "setdefault":
        return entry.func.value
    return None
