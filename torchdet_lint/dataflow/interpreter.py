"""A function -> what runs before what in it: an interpreter of statements over states that a check defines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import libcst as cst

from torchdet_lint.dataflow.syntax import condition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

S = TypeVar("S")

_NESTED = 4


class _Loop(NamedTuple):
    breaks: list[Any]
    continues: list[Any]


class Flow(Generic[S]):
    """Runs statements over states of type `S` along every path: branches, loops, early exits, `try`, `with`, `match`.

    A subclass says what one expression, one assignment and one branch do to a state, and how two states join. A loop
    is taken to run at least once. `depth` counts the conditions around the statement being run; `entered` has one
    entry for each loop around it: the depth of its body in the loop's first round, -1 when it comes round again.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.entered: list[int] = []
        self._loops: list[_Loop] = []

    # What a subclass says.

    def copy(self, state: S) -> S:
        """An independent copy of `state`."""
        raise NotImplementedError

    def join(self, left: S, right: S) -> S:
        """The state where two paths meet."""
        raise NotImplementedError

    def expression(self, node: cst.BaseExpression, state: S) -> None:
        """`node` is evaluated and its value dropped."""
        raise NotImplementedError

    def test(self, node: cst.BaseExpression, state: S) -> None:
        """`node` is evaluated for its truth."""
        raise NotImplementedError

    def branch(self, text: str, truth: bool, state: S) -> S:
        """`state` where the condition `text` is known to be `truth`."""
        return state

    def merge(self, text: str, positive: S | None, negative: S | None) -> S | None:
        """The state after an `if` of the condition `text`."""
        return self.meet(positive, negative)

    def assign(self, targets: Sequence[cst.BaseExpression], value: cst.BaseExpression, state: S) -> None:
        """`targets = value`."""
        raise NotImplementedError

    def augment(self, node: cst.AugAssign, state: S) -> None:
        """`target += value` and its like."""
        raise NotImplementedError

    def at_end(self, test: cst.BaseExpression, state: S) -> bool:
        """Whether the loop around has done all of its rounds that count where `test` holds."""
        return False

    def broken(self, node: cst.For | cst.While, entry: S, state: S) -> None:
        """`state` leaves the loop `node`, which it came to as `entry`, by a `break`."""

    def iterate(self, node: cst.For, state: S) -> None:
        """The head of `for target in iter`."""
        raise NotImplementedError

    def leave(self, node: cst.BaseExpression, state: S) -> None:
        """`node` is returned or raised."""
        raise NotImplementedError

    def define(self, node: cst.CSTNode, state: S) -> None:
        """A nested function or class is defined."""

    def delete(self, node: cst.BaseExpression, state: S) -> None:
        """`del node`."""

    # The machinery.

    @property
    def loops(self) -> int:
        """The number of loops around the statement being run."""
        return len(self._loops)

    def meet(self, left: S | None, right: S | None) -> S | None:
        """The join of two states of which either may be unreachable."""
        if left is None or right is None:
            return right if left is None else left
        return self.join(left, right)

    def block(self, statements: Sequence[cst.CSTNode], state: S | None) -> S | None:
        """The state after `statements`; None where their end is not reached."""
        for statement in statements:
            if state is None:
                return None
            state = self._statement(statement, state)
        return state

    def _body(self, node: cst.CSTNode, state: S | None) -> S | None:
        return self.block(node.body, state) if state is not None else None  # type: ignore[attr-defined]

    def _statement(self, node: cst.CSTNode, state: S) -> S | None:
        if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            return self.block(node.body, state)
        handler = self._COMPOUND.get(type(node))
        if handler is not None:
            after: S | None = handler(self, node, state)
            return after
        return self._simple(node, state)

    def _simple(self, node: cst.CSTNode, state: S) -> S | None:
        if isinstance(node, cst.Expr):
            self.expression(node.value, state)
        elif isinstance(node, cst.Assign):
            self.assign([target.target for target in node.targets], node.value, state)
        elif isinstance(node, cst.AnnAssign):
            if node.value is not None:
                self.assign([node.target], node.value, state)
        elif isinstance(node, cst.AugAssign):
            self.augment(node, state)
        elif isinstance(node, cst.Assert):
            self.test(node.test, state)
        elif isinstance(node, cst.Del):
            self.delete(node.target, state)
        elif isinstance(node, (cst.Return, cst.Raise)):
            value = node.value if isinstance(node, cst.Return) else node.exc
            if value is not None:
                self.leave(value, state)
            return None
        elif isinstance(node, (cst.Break, cst.Continue)):
            if self._loops:
                loop = self._loops[-1]
                (loop.breaks if isinstance(node, cst.Break) else loop.continues).append(state)
            return None
        return state

    def _if(self, node: cst.If, state: S) -> S | None:
        self.test(node.test, state)
        text, truth = condition(node.test)
        other = self.branch(text, not truth, self.copy(state))
        self.depth += 1
        breaks = self._loops[-1].breaks if self._loops else []
        before = len(breaks)
        taken = self._body(node.body, self.branch(text, truth, state))
        if len(breaks) > before and self.at_end(node.test, state):
            del breaks[before:]
        negative: S | None = other
        if isinstance(node.orelse, cst.If):
            negative = self._if(node.orelse, other)
        elif node.orelse is not None:
            negative = self._body(node.orelse.body, other)
        self.depth -= 1
        return self.merge(text, taken, negative) if truth else self.merge(text, negative, taken)

    def _for(self, node: cst.For, state: S) -> S | None:
        self.expression(node.iter, state)
        return self._rounds(node, lambda current: self.iterate(node, current), state)

    def _while(self, node: cst.While, state: S) -> S | None:
        return self._rounds(node, lambda current: self.test(node.test, current), state)

    def _rounds(self, node: cst.For | cst.While, head: Callable[[S], None], state: S) -> S | None:
        """Two rounds: one as the loop is entered, one as it comes round again."""
        entry = self.copy(state)
        end, loop = self._round(node, head, state, self.depth)
        again = self._every(end, loop.continues)
        if again is not None and self.loops < _NESTED:
            self.depth += 1
            self._round(node, head, self.join(entry, self.copy(again)), -1)
            self.depth -= 1
        for left in loop.breaks:
            self.broken(node, entry, left)
        if isinstance(node.orelse, cst.Else):
            again = self._body(node.orelse.body, again)
        return self._every(again, loop.breaks)

    def _round(
        self, node: cst.For | cst.While, head: Callable[[S], None], state: S, entered: int
    ) -> tuple[S | None, _Loop]:
        self._loops.append(_Loop([], []))
        self.entered.append(entered)
        head(state)
        end = self._body(node.body, state)
        self.entered.pop()
        return end, self._loops.pop()

    def _every(self, state: S | None, others: list[S]) -> S | None:
        for other in others:
            state = self.meet(state, other)
        return state

    def _try(self, node: cst.Try | cst.TryStar, state: S) -> S | None:
        raised = self.copy(state)
        end: S | None = state
        for statement in node.body.body:
            if end is None:
                break
            end = self._statement(statement, end)
            if end is not None:
                raised = self.join(raised, self.copy(end))
        if node.orelse is not None:
            end = self._body(node.orelse.body, end)
        self.depth += 1
        for handler in node.handlers:
            end = self.meet(end, self._body(handler.body, self.copy(raised)))
        self.depth -= 1
        if node.finalbody is None:
            return end
        if end is not None:
            return self._body(node.finalbody.body, end)
        self.depth += 1
        self._body(node.finalbody.body, raised)
        self.depth -= 1
        return None

    def _with(self, node: cst.With, state: S) -> S | None:
        for item in node.items:
            if item.asname is not None:
                self.assign([item.asname.name], item.item, state)
            else:
                self.expression(item.item, state)
        return self._body(node.body, state)

    def _match(self, node: cst.Match, state: S) -> S | None:
        self.test(node.subject, state)
        end: S | None = None
        wild = False
        self.depth += 1
        for case in node.cases:
            wild = wild or (
                isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None and case.guard is None
            )
            end = self.meet(end, self._body(case.body, self.copy(state)))
        self.depth -= 1
        return end if wild else self.meet(end, state)

    def _definition(self, node: cst.FunctionDef | cst.ClassDef, state: S) -> S:
        self.define(node, state)
        return state

    _COMPOUND: dict[type, Any] = {  # noqa: RUF012
        cst.If: _if,
        cst.For: _for,
        cst.While: _while,
        cst.Try: _try,
        cst.TryStar: _try,
        cst.With: _with,
        cst.Match: _match,
        cst.FunctionDef: _definition,
        cst.ClassDef: _definition,
    }
