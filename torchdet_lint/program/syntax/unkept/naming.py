"""The text of a file -> the calls in it of which the result only names something: a file, a folder, a port, a run."""

from __future__ import annotations

import ast
import enum
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.prefilter.syntax import beginning
from torchdet_lint.program.syntax.shapes import FUNCTIONS, last_word, parameters_of
from torchdet_lint.program.syntax.unkept.readings import Readings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.catalogue.tables.naming import NamingWords
    from torchdet_lint.program.syntax.unkept.readings import Place

# So many names, functions and expressions are followed, one within the other, and so many uses of all of them.
_DEEP = 40
_USES = 400
_CREATING = frozenset("wax+")
_TEXTS = frozenset({"format", "hex", "hexdigest", "join"})
_NUMBERS = frozenset({"abs", "int", "round"})
# Of argparse: what adds an option, and which of its arguments is what that has where nothing is given.
_ADDS_OPTION = "add_argument"
_DEFAULT = "default"
_KEPT_AS = "dest"
_PARTS = frozenset({"name", "parent", "stem"})
_PLAIN_DECORATORS = frozenset({"staticmethod", "classmethod"})
_CONTAINERS = (
    ast.List, ast.Tuple, ast.Starred, ast.GeneratorExp, ast.ListComp, ast.BinOp, ast.UnaryOp, ast.Slice,
)  # fmt: skip


class Use(enum.Enum):
    """What is done with a value: a folder or a file is made whose name it is, or is a part of, one is opened that may
    have been there before, or it is shown. A name that is a `PART` makes more than one file."""

    FOLDER = enum.auto()
    FILE = enum.auto()
    PART = enum.auto()
    READ = enum.auto()
    READ_PART = enum.auto()
    SHOWN = enum.auto()
    OTHER = enum.auto()


_NAMES = frozenset({Use.FOLDER, Use.FILE, Use.PART})


class _Way(NamedTuple):
    """How a value comes to a use: `text` is made of it, and it is the `whole` of that."""

    depth: int
    text: bool
    whole: bool

    def on(self, *, text: bool = False, whole: bool = True) -> _Way:
        """One step further, at which a text may be made of the value, or more be added to it."""
        return _Way(self.depth - 1, self.text or text, self.whole and whole)


class Naming:
    """The values of one file that only name something."""

    def __init__(self, text: Callable[[], str], words: NamingWords) -> None:
        self.tree = Readings(text)
        self.words = words
        self._known: dict[Place, bool] = {}
        self._beginnings: dict[ast.expr, str] = {}
        self._open: set[tuple[ast.AST | None, str]] = set()
        self._left = _USES

    def draws_a_name(self, call: ast.Call) -> bool:
        """Whether `call` draws a number, or a generator, and only names something with it."""
        return last_word(call.func) in self.words.draws and self.only_names(call)

    def only_names(self, call: ast.Call) -> bool:
        """Whether all that becomes of the result of `call` is that something is named so."""
        key = call.lineno, call.col_offset, call.end_lineno, call.end_col_offset
        if key not in self._known:
            node = self.tree.places.get(key)
            self._open.clear()
            self._left = _USES
            used = self._used(node, _Way(_DEEP, text=False, whole=True)) if node is not None else {Use.OTHER}
            self._known[key] = bool(used & _NAMES) and used <= _NAMES | {Use.SHOWN}
        return self._known[key]

    def release(self) -> None:
        """Let go of the tree, of which the parts refer to each other."""
        vars(self.tree).clear()
        vars(self).clear()

    def at(self, start: tuple[int, int], end: tuple[int, int]) -> ast.Call | None:
        """The call from `start` to `end`, rows and columns as `ast` counts them."""
        return self.tree.places.get((*start, *end))

    def _used(self, node: ast.AST, way: _Way) -> set[Use]:
        """What is done with the value of the expression `node`."""
        around = self.tree.parents.get(node)
        self._left -= 1
        if way.depth <= 0 or self._left < 0:
            return {Use.OTHER}
        match around:
            case ast.Call():
                return self._given(around, _index(around.args, node), way) if node is not around.func else {Use.OTHER}
            case ast.keyword(arg=str(name)):
                call = self.tree.parents[around]
                return self._given(call, name, way) if isinstance(call, ast.Call) else {Use.OTHER}
            case ast.Attribute():
                return self._method(around, way)
            case ast.Assign(targets=targets):
                return self._assigned(around, targets, way)
            case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
                return self._assigned(around, [target], way)
            case ast.NamedExpr(target=target):
                return self._assigned(around, [target], way) | (self._used(around, way.on()) - {Use.SHOWN})
            case ast.Return():
                return self._returned(around, way)
            case ast.Expr():
                return {Use.SHOWN}
        return self._held(node, around, way) if around is not None else {Use.OTHER}

    def _held(self, node: ast.AST, around: ast.AST, way: _Way) -> set[Use]:
        """What is done with the expression `around`, which is made of the value of `node`."""
        if isinstance(around, (ast.JoinedStr, ast.BinOp)) and self._beginning(around).startswith(self.words.addresses):
            return {Use.PART}
        match around:
            case ast.JoinedStr(values=values):
                return self._used(around, way.on(text=True, whole=len(values) == 1))
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
                return self._used(around, way.on(text=True, whole=False))
            case ast.Tuple() if (started := self._started(around)) is not None:
                call, first = started
                return self._target(call, _index(around.elts, node) + first, way)
            case ast.Subscript(value=value):
                return self._used(around, way.on(whole=node is value))
            case ast.IfExp(test=test) if node is test:
                return {Use.OTHER}
            case ast.FormattedValue() | ast.IfExp() | ast.Await() | ast.BoolOp():
                return self._used(around, way.on())
        return self._used(around, way.on(whole=False)) if isinstance(around, _CONTAINERS) else {Use.OTHER}

    def _beginning(self, text: ast.expr) -> str:
        """What `text` begins with; of a long sum, that is worked out once for all of its parts."""
        sums: list[ast.expr] = []
        while text not in self._beginnings and isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add):
            sums.append(text)
            text = text.left
        told = self._beginnings[text] if text in self._beginnings else beginning(text)
        self._beginnings.update(dict.fromkeys(sums, told))
        return told

    def _given(self, call: ast.Call, place: int | str, way: _Way) -> set[Use]:
        """What a call does with the argument at `place`, or of that name."""
        words, word, written = self.words, last_word(call.func), ast.unparse(call.func)
        if isinstance(place, str) and self._is_place(place, way):
            return {Use.PART}
        if _takes(words.named, written, word, place):
            return {Use.PART}
        function = self._own(call)
        if function is not None and isinstance(call.func, ast.Name):
            return self._passed(function, call, place, way)
        if word == words.opens:
            return self._opened(call, 1, way) if place in (0, "file") else {Use.OTHER}
        if _takes(words.writes, written, word, place):
            return _made(Use.FILE, way) if way.text else {Use.OTHER}
        if word in words.folders:
            return _made(Use.FOLDER, way) if way.text else {Use.OTHER}
        if word in words.asks or written in words.asks:
            return {Use.SHOWN}
        if word == _ADDS_OPTION and place == _DEFAULT:
            return self._option(call, way)
        if function is not None:
            return self._passed(function, call, place, way)
        if words.saves.match(word) is not None and way.text:
            return {Use.PART}
        if word in words.reads:
            return {Use.READ if way.whole else Use.READ_PART}
        if word in words.spells or word in words.draws:
            only = len(call.args) == 1 and not call.keywords
            made = not isinstance(call.func, ast.Attribute) or only
            return self._used(call, way.on(text=word not in _NUMBERS, whole=made and only))
        return {Use.OTHER}

    def _option(self, call: ast.Call, way: _Way) -> set[Use]:
        """What is done with an option of the command line, of which a value is the default."""
        texts = (one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str))
        name = max(texts, key=len, default="").lstrip("-").replace("-", "_")
        if not name or any(word.arg == _KEPT_AS for word in call.keywords):
            return {Use.OTHER}
        return {Use.PART} if self._is_place(name, way) else self._kept(None, f".{name}", way.on())

    def _started(self, given: ast.Tuple) -> tuple[ast.Call, int] | None:
        """The call that starts a process with the arguments `given`, and how many it puts before them."""
        around = self.tree.parents.get(given)
        call = self.tree.parents.get(around) if isinstance(around, ast.keyword) and around.arg == "args" else around
        if not isinstance(call, ast.Call) or (call is around and call.args[1:2] != [given]):
            return None
        first = self.words.starts.get(last_word(call.func))
        return (call, first) if first is not None else None

    def _target(self, call: ast.Call, place: int, way: _Way) -> set[Use]:
        """What the function that a new process runs does with its argument at `place`."""
        named = next((word.value for word in call.keywords if word.arg in ("target", "fn")), None)
        target = named or (call.args[0] if call.args else None)
        defined = self.tree.defined.get(last_word(target), []) if target is not None else []
        if len(defined) != 1 or isinstance(defined[0], ast.ClassDef):
            return {Use.OTHER}
        return self._passed(defined[0], ast.Call(ast.Name(defined[0].name), [], []), place, way)

    def _opened(self, call: ast.Call, place: int, way: _Way) -> set[Use]:
        """What is done with the name of a file that is opened, by the mode."""
        named = next((word.value for word in call.keywords if word.arg == "mode"), None)
        mode = call.args[place] if len(call.args) > place else named
        if mode is None:
            return {Use.READ if way.whole else Use.READ_PART}
        if not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
            return {Use.OTHER}
        if not _CREATING.isdisjoint(mode.value):
            return _made(Use.FILE, way) if way.text else {Use.OTHER}
        return {Use.READ if way.whole else Use.READ_PART}

    def _method(self, node: ast.Attribute, way: _Way) -> set[Use]:
        """What the attribute or the method `node` of a value does with it."""
        call, words = self.tree.parents.get(node), self.words
        if not isinstance(call, ast.Call) or call.func is not node:
            return self._used(node, way.on(whole=False)) if node.attr in _PARTS else {Use.OTHER}
        if node.attr in words.folders:
            return _made(Use.FOLDER, way)
        if node.attr in words.written:
            return _made(Use.FILE, way)
        if node.attr == words.opens:
            return self._opened(call, 0, way)
        if node.attr in words.asks:
            return {Use.SHOWN}
        if node.attr in words.reads:
            return {Use.READ if way.whole else Use.READ_PART}
        if node.attr in words.spells or node.attr in words.draws:
            return self._used(call, way.on(text=node.attr in _TEXTS, whole=not call.args))
        return {Use.OTHER}

    def _assigned(self, node: ast.AST, targets: Sequence[ast.expr], way: _Way) -> set[Use]:
        """What is done with a value that `node` gives names."""
        found = set[Use]()
        for target in targets:
            match target:
                case ast.Name(id=name):
                    found |= self._kept(self.tree.home(node, name), name, way.on())
                case ast.Attribute() | ast.Subscript() if self._is_place(_key(target), way):
                    found.add(Use.PART)
                case ast.Attribute(attr=name):
                    found |= self._kept(node, f".{name}", way.on())
                case _:
                    return {Use.OTHER}
        return found

    def _is_place(self, name: str, way: _Way) -> bool:
        """Whether an argument or an attribute `name` says where something goes, or tells runs apart."""
        place = way.text and self.words.is_place.search(name.lower()) is not None
        return place or self.words.is_mark.search(name.lower()) is not None

    def _kept(self, home: ast.AST | None, name: str, way: _Way) -> set[Use]:
        """What is done with what `name` holds, or the attribute `.name`."""
        attribute = name.startswith(".")
        key = (None if attribute else home, name)
        if key in self._open:
            return set()
        self._open.add(key)
        loads: list[ast.expr] = []
        if attribute:
            loads += self.tree.attributes.get(name[1:], [])
        else:
            loads += [one for one in self.tree.loads.get(name, []) if self.tree.home(one, name) is home]
        found = set[Use]()
        for load in loads:
            found |= self._used(load, _Way(way.depth - 1, text=way.text, whole=True))
            if Use.OTHER in found:
                return {Use.OTHER}
        return _settled(found, way)

    def _returned(self, node: ast.Return, way: _Way) -> set[Use]:
        """What is done with what a function returns, by all that call it."""
        function = self.tree.function(node)
        if not isinstance(function, FUNCTIONS) or len(self.tree.defined[function.name]) > 1:
            return {Use.OTHER}
        if any(last_word(one) not in _PLAIN_DECORATORS for one in function.decorator_list):
            return {Use.OTHER}
        key = (function, "")
        if key in self._open:
            return set()
        self._open.add(key)
        method = isinstance(self.tree.parents.get(function), ast.ClassDef)
        found = set[Use]()
        for one in (self.tree.attributes if method else self.tree.loads).get(function.name, []):
            call = self.tree.parents.get(one)
            if not isinstance(call, ast.Call) or call.func is not one:
                return {Use.OTHER}
            found |= self._used(call, way.on())
        return found or {Use.OTHER}

    def _own(self, call: ast.Call) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function of the file that a call runs, a constructor among them."""
        defined = self.tree.defined.get(last_word(call.func), [])
        if len(defined) != 1 or not isinstance(call.func, (ast.Name, ast.Attribute)):
            return None
        found = defined[0]
        if isinstance(found, ast.ClassDef):
            made = (one for one in found.body if isinstance(one, FUNCTIONS) and one.name == "__init__")
            return next(made, None)
        return found

    def _passed(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, place: int | str, way: _Way
    ) -> set[Use]:
        """What a function of the file does with an argument."""
        names = [one.arg for one in parameters_of(function.args)]
        method = isinstance(self.tree.parents.get(function), ast.ClassDef)
        static = any(last_word(one) == "staticmethod" for one in function.decorator_list)
        starred = any(isinstance(one, ast.Starred) for one in call.args) or any(not one.arg for one in call.keywords)
        if starred or (isinstance(place, str) and place not in names):
            return {Use.OTHER}
        if isinstance(place, int):
            positional = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
            place += method and not static
            if place >= len(positional):
                return {Use.OTHER}
            place = positional[place]
        return self._kept(function, place, way.on()) or {Use.SHOWN}


def _index(among: Sequence[ast.expr], node: ast.AST) -> int:
    """The place of `node` among expressions."""
    return next(place for place, one in enumerate(among) if one is node)


def _takes(table: dict[str, tuple[str, ...]], written: str, word: str, place: int | str) -> bool:
    """Whether the row of `table` for a function has the argument at `place`; that of its longest name counts."""
    full = next((row for row in (written, ".".join(written.split(".")[-2:]), word) if row in table), None)
    return full is not None and str(place) in table[full]


def _key(target: ast.expr) -> str:
    """The name of an attribute, or the text by which an entry is looked up."""
    match target:
        case ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
    return ""


def _made(use: Use, way: _Way) -> set[Use]:
    """What is made under a name, where all of that is in sight, or only a part."""
    return {use if way.whole else Use.PART}


def _settled(used: set[Use], way: _Way) -> set[Use]:
    """What is done with what a name holds: what the program itself has made there, it may read again."""
    if way.text and Use.FOLDER in used:
        used = used - {Use.READ, Use.READ_PART}
    if way.text and Use.FILE in used:
        used = used - {Use.READ}
    if not way.whole:
        used = {Use.PART if one in _NAMES else Use.READ_PART if one is Use.READ else one for one in used}
    return used
