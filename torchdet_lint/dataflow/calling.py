"""A call that takes or gives the value -> the uses of the parameter that it binds, and of what callers do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.dataflow.syntax import last_word, unpacked
from torchdet_lint.dataflow.uses import Trace, Trail, Use
from torchdet_lint.dataflow.variables import Variables
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.module import Module


class Calling(Variables):
    """Follows a value into what a call runs, in whichever file, and back to it."""

    def __init__(self, module: Module, trail: Trail | None = None) -> None:
        super().__init__(module, trail)
        self.trail.followers.append(self)
        self._beside: dict[int, Calling] = {}

    def beside(self, module: Module) -> Calling:
        """Who follows the same value through the file `module`."""
        if module is self.module:
            return self
        if id(module) not in self._beside:
            other = self._beside[id(module)] = type(self)(module, self.trail)
            other._beside[id(self.module)] = self
        return self._beside[id(module)]

    def handed(self, node: cst.BaseExpression, call: cst.Call, arg: cst.Arg, names: Sequence[str]) -> Iterator[Use]:
        """The uses of the parameter that `arg` binds, in whichever file; out of sight, only that it goes there."""
        callee = self.edges.callee(call, names)
        if callee is None:
            if self.trail.is_set:
                yield Use(call, "called", node)
            else:
                yield Use(call, "handed" if self._is_out_of_sight(call, names) else "called")
            return
        name = callee.parameter(call, arg)
        function = callee.function
        other = self.beside(callee.module)
        if not name or (function is not None and id(function) in self.trail.entered):
            yield Use(call, "called")
        elif function is None:
            assert callee.class_ is not None
            yield from self._from(other, other.field_uses(callee.class_, name), call, node)
        else:
            before = self.trail.entered
            self.trail.entered = {**before, id(function): (call, self)}
            uses = other.loads(cst.Name(name), function, callee.module.inner_scope(function), None)
            found = list(self._from(other, uses, call, node))
            self.trail.entered = before
            kept = any(use.kind not in ("stored", "measured") for use in found)
            yield from found if kept or not last_word(call.func).endswith("Dataset") else [Use(call, "gathered")]

    def _from(self, other: Trace, uses: Iterator[Use], call: cst.Call, node: cst.BaseExpression) -> Iterator[Use]:
        """`uses` that `other` found, told of this file: where `call` leads to another one."""
        for use in uses:
            told = self.here(use, call, other.module)
            yield told._replace(origin=node) if told.file and told.origin is not None else told

    def goes_out_of_sight(self, call: cst.Call, torch: bool = False) -> bool:
        """Whether an argument of `call` goes to code that is not in sight, with `torch` to that of torch."""
        names = self.module.resolve(call.func)
        if torch and not any(name.startswith("torch.") for name in names):
            return False
        return (
            self.kind_of_call(names, last_word(call.func)) == "called"
            and self.edges.callee(call, names) is None
            and self._is_out_of_sight(call, names)
        )

    def _is_out_of_sight(self, call: cst.Call, names: Sequence[str]) -> bool:
        """Whether `call` calls a function or class of another library, or one that is not known."""
        roots = {name.partition(".")[0] for name in names}
        if not names:
            return isinstance(call.func, cst.Name)
        return "()" not in names[0] and roots.isdisjoint(STANDARD) and roots.isdisjoint(("builtins", "@"))

    def returned(self, node: Any, parent: cst.CSTNode, position: int = -1) -> Iterator[Use]:
        """Followed to the callers in the file; where there are none, the caller is out of sight. `position`: in the
        tuple that is returned."""
        kind = "yielded" if isinstance(parent, (cst.Yield, cst.From)) else "returned"
        function = self.module.enclosing_function(parent)
        entered = self.trail.entered.get(id(function)) if function is not None else None
        if entered is not None:
            call, follower = entered
            for use in follower.answered(call, node, position):
                yield use._replace(module=use.module or follower.module)
            return
        callers = self.edges.callers(function) if function is not None else []
        if all(any(one is function for one in self.module.ancestors(call)) for call in callers):
            yield Use(node, "other" if self.trail.is_set else kind)
        for call in callers:
            yield from self.answered(call, node, position)

    def answered(self, call: cst.Call, node: cst.CSTNode, position: int) -> Iterator[Use]:
        """The uses of what `call` gives, which is `node`, or in it at `position`."""
        if position >= 0 and (target := unpacked(self.module.parent(call), position)) is not None:
            yield from self.stored(target, self.module.parent(call))  # type: ignore[arg-type]
        elif isinstance(node, (cst.Tuple, cst.Dict, cst.DictComp)):
            yield Use(node, "other")
        else:
            yield from self.of(call)
