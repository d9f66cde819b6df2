"""The text of a file -> whether several processes share the jobs of its loops, each in an order of its own."""

from __future__ import annotations

import ast

from torchdet_lint.prefilter.skeleton import parsed
from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.syntax.shapes import FUNCTIONS, last_word
from torchdet_lint.regex import lazy

_SHUFFLES = frozenset({"permutation", "shuffle"})
_EXISTS = frozenset({"exists", "is_file", "isfile"})
_MAY_SHARE = lazy(r"(?s)\b(?:permutation|shuffle)\b.*\b(?:exists|is_?file)\b|\b(?:exists|is_?file)\b.*\bshuffle\b")


def shares_jobs(text: str) -> bool:
    """Whether a loop goes through a list that is shuffled, and leaves out the jobs of which the result exists: so that
    processes which run it side by side seldom meet at the same one."""
    if _MAY_SHARE.search(text) is None:
        return False
    nodes = list(walk(parsed(text)))
    shuffled = {ast.unparse(node.args[0]) for node in nodes if isinstance(node, ast.Call) and _shuffles(node)}
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if _shuffles(call):
                shuffled.add(name)
    done = frozenset(node.name for node in nodes if isinstance(node, FUNCTIONS) and _returns_where_done(node))
    return any(_goes_through(node, shuffled) and _leaves_out(node, done) for node in nodes if isinstance(node, ast.For))


def _shuffles(call: ast.Call) -> bool:
    return last_word(call.func) in _SHUFFLES and bool(call.args)


def _returns_where_done(node: ast.stmt) -> bool:
    """Whether a function says no more of a job of which the result exists: `if isfile(path): return`."""
    for one in walk(node):
        match one:
            case ast.If(test=test, body=[*_, ast.Return(value=None | ast.Constant())]) if _asks(test, _EXISTS):
                return True
    return False


def _goes_through(loop: ast.For, shuffled: set[str]) -> bool:
    return any(isinstance(one, ast.expr) and ast.unparse(one) in shuffled for one in walk(loop.iter))


def _leaves_out(loop: ast.For, done: frozenset[str]) -> bool:
    """Whether a loop goes on with the next job where the result of one exists, or calls a function that is `done`
    then."""
    for one in walk(loop):
        match one:
            case ast.If(test=test, body=[*_, ast.Continue()]) if _asks(test, _EXISTS | done):
                return True
            case ast.Expr(value=ast.Call(func=function)) if last_word(function) in done:
                return True
    return False


def _asks(test: ast.expr, words: frozenset[str]) -> bool:
    """Whether a condition holds only where a call that goes by one of the `words` says so."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(isinstance(part, ast.Call) and last_word(part.func) in words for part in parts)
