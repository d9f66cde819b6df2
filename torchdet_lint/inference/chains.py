"""A question about a function that leads to the same question about others -> its answer, however long the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import libcst as cst

_DEEP = 24


class _TooDeepError(Exception):
    """A function has to be asked about before those that lead to it."""

    def __init__(self, question: ChainedQuestion, function: cst.FunctionDef) -> None:
        super().__init__(function.name.value)
        self.question = question
        self.function = function


class ChainedQuestion:
    """Asks `answer` about functions, each at most once to the end. It may ask about others in turn: a few of them on
    the way, from within each other, and where a chain is longer, its far end first."""

    def __init__(self, answer: Callable[[cst.FunctionDef], bool]) -> None:
        self._answer = answer
        self._known: dict[int, bool] = {}
        self._depth = 0

    def __call__(self, function: cst.FunctionDef) -> bool:
        """The answer; False where the question is how it came to be asked."""
        if id(function) not in self._known:
            if self._depth >= _DEEP:
                raise _TooDeepError(self, function)
            self._ask(function)
        return self._known[id(function)]

    def _ask(self, function: cst.FunctionDef) -> None:
        outer, pending = self._depth, [function]
        while pending:
            self._known[id(pending[-1])] = False
            self._depth = outer + 1
            try:
                self._known[id(pending[-1])] = self._answer(pending[-1])
                pending.pop()
            except _TooDeepError as error:
                if outer or error.question is not self:
                    for one in pending:
                        del self._known[id(one)]
                    raise
                pending.append(error.function)
            finally:
                self._depth = outer
