"""A node of libcst's tree -> its children that mean something, without punctuation and whitespace."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

import libcst as cst
from libcst._nodes.internal import CodegenState

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Result = TypeVar("_Result")
_DEEP_STACK = 512 * 1024 * 1024
_DEEP_RECURSION = 200_000
# The trees of so much text are kept, some 20 MB.
_MOST = 400_000

LEAVES = frozenset(
    {cst.Name, cst.Integer, cst.Float, cst.SimpleString, cst.Pass, cst.Break, cst.Continue, cst.Ellipsis}
)
# What stands in an import is not looked up, and nothing is known of it.
IMPORTS = frozenset({cst.Import, cst.ImportFrom})
PLAIN = frozenset({str, bool, type(None), cst.MaybeSentinel})
# What holds statements of the function around it.
_HOLD_STATEMENTS = frozenset({
    cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.IndentedBlock, cst.If, cst.Else, cst.For, cst.While,
    cst.With, cst.Try, cst.TryStar, cst.ExceptHandler, cst.ExceptStarHandler, cst.Finally, cst.Match, cst.MatchCase,
})  # fmt: skip
_NOT_CHILDREN = frozenset(
    """ast async asynchronous asname colon comma dot encoding default_indent equal default_newline footer
    has_trailing_newline header indent indicator keyword leading_lines lines_after_decorators lpar lbrace lbracket
    lines_after_colon operator posonly_ind raw rpar rbrace rbracket relative semicolon star_ind
    trailing_whitespace""".split()
)


def returned(function: cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """What the `return` statements of `function` return, in the order of the source."""
    stack: list[cst.CSTNode] = [function.body]
    while stack:
        node = stack.pop()
        if type(node) is cst.Return:
            if node.value is not None:
                yield node.value
        elif type(node) in _HOLD_STATEMENTS:
            stack.extend(reversed(children(node)))


def positional(function: cst.FunctionDef) -> tuple[str, ...]:
    """The parameters of `function` that a call may pass by position, by name."""
    return tuple(param.name.value for param in (*function.params.posonly_params, *function.params.params))


def named_parameters(params: cst.Parameters) -> tuple[cst.Param, ...]:
    """The parameters that a call may give by place or by name: all but `*args` and `**options`."""
    return (*params.posonly_params, *params.params, *params.kwonly_params)


def is_left_open(function: cst.FunctionDef) -> bool:
    """Whether a method does nothing but leave itself to those that derive from its class: `raise NotImplementedError`,
    `pass`, `...`, below what it says of itself."""
    lines = [line for line in function.body.body if not isinstance(line, cst.BaseCompoundStatement)]
    small = [one for line in lines for one in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])]
    return len(lines) == len(function.body.body) and all(
        isinstance(one, (cst.Pass, cst.Raise))
        or (isinstance(one, cst.Expr) and isinstance(one.value, (cst.Ellipsis, cst.BaseString)))
        for one in small
    )


def is_super(node: cst.CSTNode | None) -> bool:
    """Whether `node` is `super()`."""
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "super"


def parse(text: str) -> cst.Module:
    """`libcst.parse_module` without the validation of every node, a quarter of its cost: its parser makes none that is
    invalid, and validation is there for nodes that people make."""
    global _parsing
    _parsing = True
    try:
        return cst.parse_module(text)
    finally:
        _parsing = False


def _validated(node: cst.CSTNode) -> None:
    if not _parsing:
        node._validate()


_parsing = False
# Once and for all: a class that changes makes Python forget what it knows of every class below it.
cst.CSTNode.__post_init__ = _validated  # type: ignore[assignment,method-assign]


class Spare:
    """Trees that nobody uses any more, by their text: many a file has functions of others. What was used longest ago
    goes first. A tree belongs to one module at a time, since what is known of a node is known by its identity."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[str, cst.Module] = OrderedDict()
        self._size = 0

    def parse(self, text: str) -> cst.Module:
        """A tree of `text` for whoever asks alone. Raises as libcst does."""
        kept = self._kept.pop(text, None)
        if kept is None:
            return parse(text)
        self._size -= len(text)
        return kept

    def give(self, text: str, root: cst.Module) -> None:
        """Take back a tree that nobody knows any more."""
        if text in self._kept or len(text) > self._most:
            return
        self._kept[text] = root
        self._size += len(text)
        while self._size > self._most:
            oldest, _ = self._kept.popitem(last=False)
            self._size -= len(oldest)


SPARE = Spare()
"""Those of this process."""


class Positions:
    """Where the nodes under `root` stand, as libcst's `PositionProvider` has it.

    The provider works out row and column of both ends of every node; here a node's ends are counted in tokens, and
    become row and column when somebody asks for them.
    """

    def __init__(
        self, root: cst.Module, line: cst.SimpleStatementLine | None = None, row: int = 0, indent: str = ""
    ) -> None:
        """`root` is laid out whole, or its statement `line` alone, which starts in `row` after `indent`."""
        state = _Counting(root.default_indent, root.default_newline)
        if indent:
            state.increase_indent(indent)
        (line or root)._codegen(state)
        self._spans = state.spans
        self._offsets = list(itertools.accumulate(map(len, state.tokens), initial=0))
        text = "".join(state.tokens)
        self._rows = [0, *(match.end() for match in _NEWLINE.finditer(text))]
        self._above = 0
        self._by_row: dict[int, list[tuple[cst.CSTNode, int]]] | None = None
        if line is not None:
            self._above = row - self._place(state.spans[id(line)][0])[0]

    def __getitem__(self, node: cst.CSTNode) -> tuple[tuple[int, int], tuple[int, int]]:
        """Row (from 1) and column (from 0) of the start and of the end of `node`."""
        start, end, _ = self._spans[id(node)]
        return self._place(start), self._place(end)

    def starting_in(self, row: int) -> list[tuple[cst.CSTNode, int]]:
        """The nodes that start in `row`, inner ones first, and the columns they start in."""
        if self._by_row is None:
            self._by_row = {}
            for start, _, node in self._spans.values():
                place = self._place(start)
                self._by_row.setdefault(place[0], []).append((node, place[1]))
        return self._by_row.get(row, [])

    def _place(self, token: int) -> tuple[int, int]:
        offset = self._offsets[min(token, len(self._offsets) - 1)]
        row = bisect.bisect_right(self._rows, offset)
        return row + self._above, offset - self._rows[row - 1]


_NEWLINE = lazy(r"\r\n?|\n")


class _Counting(CodegenState):
    """Code generation that notes, for every node, how many tokens there were before and after it."""

    def __init__(self, indent: str, newline: str) -> None:
        super().__init__(indent, newline)
        self.spans: dict[int, tuple[int, int, cst.CSTNode]] = {}
        self.starts: list[int] = []

    def before_codegen(self, node: cst.CSTNode) -> None:
        self.starts.append(len(self.tokens))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self.starts.pop()
        if id(node) not in self.spans:
            self.spans[id(node)] = (start, len(self.tokens), node)

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _Syntactic:
        return _Syntactic(self, node, start_node, end_node)


class _Syntactic:
    """The part of a node that is no whitespace around it, which the node says itself."""

    __slots__ = ("end_node", "node", "start", "start_node", "state")

    def __init__(
        self, state: _Counting, node: cst.CSTNode, start_node: cst.CSTNode | None, end_node: cst.CSTNode | None
    ) -> None:
        self.state = state
        self.node = node
        self.start_node = start_node
        self.end_node = end_node

    def __enter__(self) -> None:
        self.start = len(self.state.tokens)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        spans = self.state.spans
        start = self.start if self.start_node is None else spans[id(self.start_node)][0]
        end = len(self.state.tokens) if self.end_node is None else spans[id(self.end_node)][1]
        spans[id(self.node)] = (start, end, self.node)


def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in dataclasses.fields(kind)
        if not field.name.startswith("whitespace") and field.name not in _NOT_CHILDREN
    )


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes that `node` holds, in source order, without punctuation and whitespace (`node.children` runs a visitor
    and costs ten times as much)."""
    found: list[cst.CSTNode] = []
    for name in FIELDS[type(node)]:
        child = getattr(node, name)
        kind = type(child)
        if kind is tuple or kind is list:
            found.extend(child)
        elif kind not in PLAIN:
            found.append(child)
    return found


class Occurrences:
    """The names and attributes that stand under a node, looked up by their word: a tree is walked once."""

    def __init__(self) -> None:
        self._names: dict[int, dict[str, list[cst.Name]]] = {}
        self._attributes: dict[int, dict[str, list[cst.Attribute]]] = {}

    def names(self, root: cst.CSTNode, word: str) -> list[cst.Name]:
        """The places under `root` where `word` stands as a name, in the order of the source."""
        if id(root) not in self._names:
            self._walk(root)
        return self._names[id(root)].get(word, [])

    def attributes(self, root: cst.CSTNode, word: str) -> list[cst.Attribute]:
        """The places under `root` where an attribute `word` stands, an outer one before an inner one."""
        if id(root) not in self._attributes:
            self._walk(root)
        return self._attributes[id(root)].get(word, [])

    def _walk(self, root: cst.CSTNode) -> None:
        names = self._names[id(root)] = {}
        attributes = self._attributes[id(root)] = {}
        stack = [root]
        while stack:
            node = stack.pop()
            if type(node) is cst.Name:
                names.setdefault(node.value, []).append(node)
                continue
            if type(node) in IMPORTS:
                continue
            if type(node) is cst.Attribute:
                attributes.setdefault(node.attr.value, []).append(node)
            stack.extend(reversed(children(node)))


class _Fields(dict[type, tuple[str, ...]]):
    """Node class -> the fields that hold nodes worth a visit, filled on demand."""

    def __missing__(self, kind: type[cst.CSTNode]) -> tuple[str, ...]:
        found = self[kind] = _fields(kind)
        return found


FIELDS = _Fields()


def code(node: cst.CSTNode) -> str:
    """The source of `node`."""
    return deeply(lambda: cst.Module([]).code_for_node(node))


def deeply(function: Callable[[], _Result]) -> _Result:
    """`function()`, again with a deep stack where libcst's recursion over a long expression exhausts the usual one."""
    try:
        return function()
    except RecursionError:
        found: list[_Result] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                found.append(function())
            except BaseException as error:  # what goes wrong is told where it was asked for
                failed.append(error)

        limit, size = sys.getrecursionlimit(), threading.stack_size(_DEEP_STACK)
        sys.setrecursionlimit(_DEEP_RECURSION)
        try:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)
        if failed:
            raise failed[0] from None
        return found[0]
