"""Words and names that somebody looks for -> the units in which they may mean something, parsed with libcst."""

from __future__ import annotations

import functools
import operator
from collections import deque
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.module import names
from torchdet_lint.module.collect import collect
from torchdet_lint.module.facts import UNIT
from torchdet_lint.module.tree import SPARE, children, code
from torchdet_lint.prefilter import chains, patterns, skeleton
from torchdet_lint.prefilter.mentions import Mentions
from torchdet_lint.prefilter.tabs import untabbed
from torchdet_lint.prefilter.triggers import IDENTIFIER, words_in
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from torchdet_lint.module.facts import Class, Facts, Unit
    from torchdet_lint.prefilter.library import Library

_NAMES = (cst.Name, cst.Attribute)
_ALIASES = (*_NAMES, cst.Call, cst.IfExp, cst.BooleanOperation, cst.Subscript)
_EVERY = frozenset({"statements", "imports", "table"})
_INDEXED_AFTER = 32
_TOO_DEEP = "a statement is too deeply nested for libcst"
_ABOVE = lazy(r"\bsuper\s*\(|\.__init__\b")


class _Words(dict[int, frozenset[str]]):
    """The words of texts, split when somebody asks."""

    def __init__(self, loading: Loading) -> None:
        super().__init__()
        self._loading = loading

    def __missing__(self, index: int) -> frozenset[str]:
        found = self[index] = frozenset(words_in(self._loading.texts[index]))
        return found


class Loading:
    """The units of one file, each parsed when somebody asks for what may stand in it, and at most once."""

    def __init__(self, facts: Facts, library: Library, wanted: frozenset[str] | None) -> None:
        """`wanted` is `library.triggers.within(facts.text)`, where that is known already."""
        self.facts = facts
        self.library = library
        self._wanted = wanted
        self.awake = False
        self.skipped: list[tuple[int, str]] = []
        self.parsed: list[Unit] = []
        self._trees: list[tuple[str, cst.Module]] = []
        self.words = _Words(self)
        self._matter: dict[tuple[int, frozenset[str]], bool] = {}
        self._statements = [unit for unit in facts.units if unit.piece.owner < 0 and unit.piece.kind == "statements"]
        self._statements.reverse()
        self._asked = 0
        if facts.tables:
            facts.scope.load = self._load_table

    @functools.cached_property
    def mentions(self) -> Mentions:
        """What the words of this file may mean."""
        return Mentions(self.facts.text, self.facts.skeleton, self.library)

    @functools.cached_property
    def texts(self) -> list[str]:
        """The source of every unit without its docstring and the lines that are comments."""
        return [self.facts.skeleton.spoken(unit.piece) for unit in self.facts.units]

    def load_where(self, wanted: Callable[[str], bool] | None = None, word: str = "") -> None:
        """Parse the units whose text is `wanted` and has the `word`, and with the first of them the statements of the
        file's top level."""
        self.wake()
        for unit in self.holding(word) if word else self.facts.units:
            if unit.root is not None or (word and word not in self.words[unit.index]):
                continue
            if wanted is None or wanted(self.texts[unit.index]):
                self.load(unit)
                self.load_statements()

    def holding(self, word: str) -> Sequence[Unit]:
        """The units that may hold `word`: all of them, until it was asked so often that an index pays."""
        self._asked += 1
        return self.facts.units if self._asked < _INDEXED_AFTER else self._by_word.get(word, ())

    @functools.cached_property
    def _by_word(self) -> dict[str, list[Unit]]:
        found: dict[str, list[Unit]] = {}
        for unit in self.facts.units:
            for word in self.words[unit.index]:
                found.setdefault(word, []).append(unit)
        return found

    def wake(self) -> None:
        """Parse the units that matter: those with a word of the catalogue, or a name that such a unit gave to it."""
        if self.awake:
            return
        self.awake = True
        wanted = set(self.library.triggers.within(self.facts.text) if self._wanted is None else self._wanted)
        if not wanted:
            return
        # Imports and the headers of classes are known without a parse; what else gives a name holds the word itself.
        self._extend(wanted)
        if not any(self._matters(unit, wanted) for unit in self.facts.units):
            return
        self.load_statements()
        self._extend(wanted)
        self.look_for(*wanted)
        self.look_for(*self._attribute_aliases(wanted))

    def _loading(self, wanted: set[str]) -> Iterator[Unit]:
        """Parse the units in which a word of `wanted` may mean what it is wanted for, one after the other, and of the
        classes whose header has one the constructors that call the one above."""
        for unit in self.holding(*wanted) if len(wanted) == 1 else self.facts.units:
            if unit.root is not None or not self._matters(unit, wanted):
                continue
            self.load(unit)
            if unit.piece.kind == "header":
                for member in self.facts.top_classes[unit.piece.owner].units:
                    if member.piece.name == "__init__" and _ABOVE.search(self.texts[member.index]):
                        self.load(member)
            yield unit

    def _matters(self, unit: Unit, wanted: set[str]) -> bool:
        text = self.texts[unit.index]
        if unit.piece.kind == "imports" or not any(word in text for word in wanted):
            return False
        words = self.words[unit.index]
        hits = words & wanted
        if not hits:
            return False
        known = self._matter.get((unit.index, hits))
        if known is None:
            known = self.mentions.any(hits, text, words, header=unit.piece.kind == "header")
            self._matter[unit.index, hits] = known
        return known

    def _attribute_aliases(self, wanted: set[str]) -> set[str]:
        """The attributes that were made another name of something wanted: `self.loader_class = DataLoader`, or
        `cell = nn.LSTM` in a class."""
        found = set[str]()
        for _, target, value, scope, _ in self.facts.assignments:
            own = isinstance(target, cst.Name) and scope.kind == "class"
            name = names.dotted(target).rpartition(".")[2] if own or isinstance(target, cst.Attribute) else ""
            if name and name not in wanted:
                held: list[cst.BaseExpression | None] = [value]
                if isinstance(value, cst.Dict):
                    held = [element.value for element in value.elements]
                elif isinstance(value, cst.IfExp):
                    held = [value.body, value.orelse]
                elif isinstance(value, cst.BooleanOperation):
                    held = [value.left, value.right]
                lasts = {names.dotted(one).rpartition(".")[2] for one in held if isinstance(one, _NAMES)}
                found.update((name,) if not lasts.isdisjoint(wanted) else ())
        return found

    def _extend(self, wanted: set[str]) -> None:
        """Add the names that aliases, assignments and subclasses give to what is wanted, until there are no more."""
        aliases: list[tuple[str, Collection[str]]] = []
        for name, bindings in self.facts.scope.bindings.items():
            for binding in bindings:
                if binding.kind == "import":
                    aliases.append((name, binding.target.split(".")))
                elif binding.kind == "assign" and isinstance(binding.value, cst.Dict):
                    held = [element.value for element in binding.value.elements]
                    aliases += [(name, names.dotted(one).split(".")) for one in held if isinstance(one, _NAMES)]
                elif (
                    binding.kind == "assign" and isinstance(binding.value, _ALIASES) and not self._makes(binding.value)
                ):
                    aliases.append((name, IDENTIFIER.findall(code(binding.value))))
        for unit in self.facts.units:
            if unit.piece.kind == "header":
                aliases.append((unit.piece.name, self.words[unit.index]))
        named_by: dict[str, list[str]] = {}
        for name, words in aliases:
            for word in words:
                named_by.setdefault(word, []).append(name)
        queue = [word for word in named_by if word in wanted]
        while queue:
            for name in named_by.get(queue.pop(), ()):
                if name not in wanted:
                    wanted.add(name)
                    queue.append(name)

    @staticmethod
    def _makes(value: cst.BaseExpression) -> bool:
        """Whether `value` is a call that makes an object, not one that only gives a callable another name."""
        return isinstance(value, cst.Call) and names.dotted(value.func).rpartition(".")[2] not in skeleton.RENAMING

    def load_statements(self, *, every: bool = False) -> None:
        """Parse the top-level statements that are no definitions; imports and long tables only with `every`."""
        if every:
            for unit in self.facts.units:
                if unit.piece.owner < 0 and unit.piece.kind in _EVERY:
                    self.load(unit)
        while self._statements:
            self.load(self._statements.pop())

    def _load_table(self, name: str) -> None:
        for unit in self.facts.tables.get(name, ()):
            self.load(unit)

    def load_functions(self, wanted: Callable[[str], object]) -> Iterator[tuple[Unit, cst.FunctionDef]]:
        """Parse the top-level functions whose names `wanted` accepts; those that libcst cannot parse are left out."""
        for unit in self.facts.units:
            if unit.piece.kind == "function" and unit.piece.owner < 0 and wanted(unit.piece.name):
                self.load(unit)
                node = unit.root.body[0] if unit.root is not None and unit.root.body else None
                if isinstance(node, cst.FunctionDef):
                    yield unit, node

    def load_all(self) -> None:
        """Parse every unit."""
        for unit in self.facts.units:
            self.load(unit)

    def load(self, unit: Unit) -> None:
        """Parse `unit`, unless it is parsed; one that libcst cannot parse counts as empty."""
        if unit.root is not None:
            return
        piece = unit.piece
        root, reason = self._parse(unit)
        if root is None:
            unit.root = cst.Module([])
            self.facts.roots[id(unit.root)] = unit
            self.skipped.append((piece.first, reason))
            return
        unit.root = root
        self.facts.roots[id(root)] = unit
        self.parsed.append(unit)
        if piece.kind not in ("table", "imports"):
            collect(self.facts, unit, root)
            return
        if piece.kind == "table":
            self.load_statements()
        # What was known of the names they bind gives way to what the tree says.
        known = {name: self.facts.scope.bindings[name] for name, _ in piece.binds or ((piece.name, ""),) if name != "*"}
        for bindings in known.values():
            bindings[:] = [one for one in bindings if one.order // UNIT != unit.index]
        stars = list(self.facts.scope.stars)
        collect(self.facts, unit, root)
        self.facts.scope.stars[:] = stars
        for bindings in known.values():
            bindings.sort(key=operator.attrgetter("order"))

    def _parse(self, unit: Unit) -> tuple[cst.Module | None, str]:
        """The tree of `unit`, or why there is none."""
        text = self.parsed_text(unit)
        if patterns.explode(text):
            return None, "a pattern of a `match` is nested so deeply that libcst would not come to an end"
        if chains.too_long(text):
            return None, _TOO_DEEP
        try:
            try:
                root = SPARE.parse(text)
            except cst.ParserSyntaxError:
                # Python counts a tab as one column, and as eight, and wants both to fit; libcst does not.
                if text == (text := untabbed(text)):
                    raise
                root = SPARE.parse(text)
        except (RecursionError, MemoryError):
            return None, _TOO_DEEP
        except cst.ParserSyntaxError as error:
            return None, f"libcst cannot read this statement: {error.message}".partition("\n")[0]
        except Exception as error:
            # libcst gives up on some programs with errors of its own.
            return None, f"libcst cannot read this statement: {type(error).__name__}"
        self._trees.append((text, root))
        return root, ""

    def release(self) -> None:
        """Give the trees to those who come next; nobody may look at them here any more."""
        for text, root in self._trees:
            SPARE.give(text, root)

    def parsed_text(self, unit: Unit) -> str:
        """What is parsed for `unit`: a member of a class stands in a block. A row that says that it goes on, at the end
        of the file, goes on."""
        text = self.facts.skeleton.text(unit.piece)
        end = "\n" if text.endswith(("\\\n", "\\\r\n", "\\\r")) else ""
        return ("if 1:\n" if unit.inside else "") + text + end

    def look_for(self, *words: str) -> None:
        """Parse the units in which any of `words` stands."""
        deque(self._loading(set(words)), maxlen=0)

    def looking_for(self, word: str) -> Iterator[Unit | None]:
        """None for what is parsed already, then one after the other the units in which `word` stands, parsed as they
        are asked for, and None once more for what somebody else has parsed meanwhile."""
        yield None
        yield from self._loading({word})
        yield None

    def definition(self, name: str, class_: Class | None = None) -> cst.FunctionDef | None:
        """The top-level function `name`, or the method `name` of the top-level class `class_`."""
        unit = self._definitions.get((class_.index if class_ is not None else -1, name))
        if unit is None:
            return None
        self.load(unit)
        found = self.facts.functions.get(unit.index, ())
        return next((node for node in found if node.name.value == name), None)

    def text_of(self, name: str) -> str:
        """The text of the top-level function `name`; empty where there is none."""
        unit = self._definitions.get((-1, name))
        return self.texts[unit.index] if unit is not None else ""

    @functools.cached_property
    def _definitions(self) -> dict[tuple[int, str], Unit]:
        """The first definition of each function and method at top level, by the class it stands in and its name."""
        found: dict[tuple[int, str], Unit] = {}
        for unit in self.facts.units:
            if unit.piece.kind == "function":
                found.setdefault((unit.piece.owner, unit.piece.name), unit)
        return found

    def load_class(self, class_: Class) -> None:
        """Parse the header of `class_` where its bases are not known without."""
        if class_.index >= 0 and self.facts.skeleton.classes[class_.index].bases is not None:
            return
        for unit in class_.units:
            if unit.piece.kind == "header":
                self.load(unit)

    def strings(self, word: str) -> Iterator[cst.BaseExpression]:
        """The string literals in which `word` stands, in the order of the source."""
        for unit in self.facts.units:
            if word not in self.facts.skeleton.text(unit.piece):
                continue
            self.load(unit)
            stack: list[cst.CSTNode] = [unit.root] if unit.root is not None else []
            while stack:
                node = stack.pop()
                if isinstance(node, (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)):
                    if word in code(node):
                        yield node
                else:
                    stack.extend(reversed(children(node)))
