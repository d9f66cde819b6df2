"""A method of a class -> the calls of it in the class, also where a table or a text picks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.syntax import bare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module


def calls_of_method(module: Module, name: str, class_: Class) -> Iterator[Call]:
    """The calls in `class_` of its method `name`: `self.name(x)`, one of a table, `{"a": self.name}[kind](x)`, and one
    that a text names, `getattr(self, f"loss_{kind}")(x)`."""
    module.look_for(name)
    yield from (call for call in module.method_calls(name) if module.enclosing_class(call.node) is class_)
    for unit in module.holding(name):
        if unit.piece.owner == class_.index and name in module.words[unit.index]:
            module.load(unit)
            for attribute in module.attributes_under(unit.root, name) if unit.root is not None else ():
                entry = module.parent(attribute)
                if isinstance(entry, cst.DictElement) and entry.value is attribute and bare(attribute.value) == "self":
                    yield from _of_table(module, module.parent(entry))
    module.look_for("getattr")
    for asked in module.calls_to("builtins.getattr"):
        call = module.parent(asked.node)
        if isinstance(call, cst.Call) and call.func is asked.node and module.enclosing_class(asked.node) is class_:
            found = module.call_at(call)
            if found is not None and _may_spell(asked, name):
                yield found


def _of_table(module: Module, table: cst.CSTNode | None) -> Iterator[Call]:
    """The calls of what is taken of `table`, there or under the name that it is given."""
    holder = module.parent(table) if table is not None else None
    target = holder.targets[0].target if isinstance(holder, cst.Assign) and len(holder.targets) == 1 else None
    function = module.scope_of(table).function if isinstance(table, cst.Dict) else None
    for call in module.calls_in(function) if function is not None else ():
        taken = call.node.func.value if isinstance(call.node.func, cst.Subscript) else None
        if taken is not None and (taken is table or (isinstance(target, cst.Name) and bare(taken) == target.value)):
            yield call


def _may_spell(asked: Call, name: str) -> bool:
    """Whether `getattr(self, text)` may be the method `name`: by the text that its own begins with."""
    given = [argument.value for argument in asked.node.args[:2]]
    if len(given) < 2 or bare(given[0]) != "self" or not isinstance(given[1], cst.FormattedString):
        return False
    first = given[1].parts[0] if given[1].parts else None
    return isinstance(first, cst.FormattedStringText) and name.startswith(first.value)
