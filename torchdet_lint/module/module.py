"""One file and the facts of one walk over the units of it that matter: calls, assignments, scopes, classes.

Units are parsed when somebody asks; positions are computed for a unit only when something in it is reported.
"""

from __future__ import annotations

import functools
import operator
import re
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import libcst as cst

from torchdet_lint.module import names, tree
from torchdet_lint.module.collect import Walk
from torchdet_lint.module.facts import UNIT, Assigned, Assignment, Call, Class, Unit, Value
from torchdet_lint.module.names import Binding, Scope, live
from torchdet_lint.module.positions import Places, deeply
from torchdet_lint.module.tree import children
from torchdet_lint.module.values import Values
from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.library import BUILTINS, Library
from torchdet_lint.prefilter.mentions import Mentions
from torchdet_lint.prefilter.skeleton import SyntaxFault
from torchdet_lint.prefilter.triggers import IDENTIFIER, words_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.finding import Location
    from torchdet_lint.source.decoding import Source

__all__ = ["Assignment", "Call", "Class", "Module", "SyntaxFault", "Target", "Value"]

_Result = TypeVar("_Result")
_DEPTH = 14
_NAMES = 8
_CHAINED = 3
_HANDS_ON = re.compile(
    r"\s*def\s+__init__\(\s*self\s*,\s*\*(\w+)[^,*()]*,\s*\*\*(\w+)[^,*()]*\)[^\n]*:\n"
    r"(?:.*\n)*?\s*super\([^()]*\)\.__init__\(\s*\*\1\s*,\s*\*\*\2\s*\)"
)
_ALIASES = (cst.Name, cst.Attribute, cst.Call, cst.IfExp, cst.BooleanOperation, cst.Subscript)
_STATEMENTS = frozenset({"statements"})
_EVERY = frozenset({"statements", "imports", "table"})
_ABOVE = re.compile(r"\bsuper\s*\(|\.__init__\b")


class Target(NamedTuple):
    """What the code is judged for: a torch release `(major, minor)` and the devices that it may run on."""

    torch: tuple[int, int] = (2, 15)
    devices: tuple[str, ...] = ("cpu", "cuda")


class _Words(dict[int, frozenset[str]]):
    """The words of texts, split when somebody asks."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self._texts = texts

    def __missing__(self, index: int) -> frozenset[str]:
        found = self[index] = frozenset(words_in(self._texts[index]))
        return found


class Module:
    """One file. Making it parses nothing with libcst; `calls_to` and its like parse the units that the catalogue's
    words stand in. Raises `SyntaxFault` where the text is not Python."""

    def __init__(
        self, source: Source, library: Library, target: Target | None = None, wanted: frozenset[str] | None = None
    ) -> None:
        """`wanted` is `library.triggers.within(source.text)`, where that is known already."""
        self.source = source
        self._wanted = wanted
        self.text = source.text
        self.library = library
        self.target = target or Target()
        self.skipped: list[tuple[int, str]] = []
        try:
            self.skeleton = skeleton.cut(self.text)
        except SyntaxFault as fault:
            self.skeleton = self._second_opinion(fault)
        self.units = [Unit(index, piece) for index, piece in enumerate(self.skeleton.pieces)]
        self.scope = Scope("module", None)
        self._parents: dict[int, cst.CSTNode] = {}
        self._scopes: dict[int, Scope] = {}
        self._roots: dict[int, Unit] = {}
        self._orders: dict[int, int] = {}
        self._calls: list[Call] = []
        self._call_of: dict[int, Call] = {}
        self.set_displays: list[cst.Set | cst.SetComp] = []
        self._assignments: list[Assigned] = []
        self._assigned: dict[str, list[Assigned]] = {}
        self._awake = False
        self._named = 0
        self._by_name: dict[str, list[Call]] = {}
        self._by_attribute: dict[str, list[Call]] = {}
        self._placed = 0
        self._calls_of: dict[Scope, list[Call]] = {}
        self._shared: dict[Any, Any] = {}
        self._functions: dict[int, list[cst.FunctionDef]] = {}
        self._resolved: dict[tuple[str, int], tuple[str, ...]] = {}
        self._bases: dict[int, tuple[str, ...]] = {}
        self.classes: dict[Scope, Class] = {}
        self._top_classes = [Class(piece.name, self.scope, index) for index, piece in enumerate(self.skeleton.classes)]
        self._attributes: dict[tuple[int, str], list[Value]] = {}
        self._attribute_targets: dict[str, list[tuple[cst.Attribute, cst.BaseExpression, Scope, int]]] = {}
        self._declared: dict[str, list[tuple[cst.AnnAssign, Scope]]] = {}
        # What a function of another file returns, by its dotted name, where somebody knows the other files.
        self.foreign: Callable[[str], Any] | None = None
        self.starred: Callable[[str, Sequence[str]], str] | None = None
        self._starred: dict[str, str] = {}
        self._naming = False
        self.values = Values(self, self._calls, self._assignments)
        self.places = Places(self)
        self._tables: dict[str, list[Unit]] = {}
        self._matter: dict[tuple[int, frozenset[str]], bool] = {}
        self._prepare()

    def _second_opinion(self, fault: SyntaxFault) -> skeleton.Skeleton:
        """Newer syntax than the running Python's is libcst's to judge; depth and NUL bytes are not."""
        if fault.reason.startswith(("too ", "source code")) or "\0" in self.text or len(self.text) > 1_000_000:
            raise fault
        try:
            cst.parse_module(self.text)
        except Exception:  # whatever libcst says, Python's own reason is the better one
            raise fault from None
        return skeleton.whole(self.text)

    def _prepare(self) -> None:
        for class_ in self._top_classes:
            known = self.skeleton.classes[class_.index]
            class_.methods.update(known.methods)
            class_.bases = tuple(map(names.made, known.bases or ()))
            self.classes[class_.scope] = class_
        for unit in self.units:
            piece = unit.piece
            order = unit.index * UNIT
            if piece.owner >= 0:
                class_ = self._top_classes[piece.owner]
                class_.units.append(unit)
                unit.scope = class_.scope if unit.inside else None
                if piece.kind == "header":
                    class_.order = order
                    self.scope.bind(piece.name, Binding("class", order))
                elif piece.kind == "function":
                    class_.scope.bind(piece.name, Binding("def", order))
            elif piece.kind == "function":
                self.scope.bind(piece.name, Binding("def", order))
            elif piece.kind == "imports":
                for place, (name, target) in enumerate(piece.binds):
                    if name == "*":
                        self.scope.stars.append(target)
                    else:
                        self.scope.bind(name, Binding("import", order + place, target=target))
            elif piece.kind == "table":
                self._tables.setdefault(piece.name, []).append(unit)
                self.scope.bind(piece.name, Binding("assign", order))
                self.scope.load = self._load_table
        self._header_by_name = {class_.name: class_ for class_ in self._top_classes}

    # ------------------------------------------------------------------ what to parse

    @functools.cached_property
    def mentions(self) -> Mentions:
        """What the words of this file may mean."""
        return Mentions(self.text, self.skeleton, self.library)

    @functools.cached_property
    def texts(self) -> list[str]:
        """The source of every unit without its docstring and the lines that are comments."""
        return [self.skeleton.spoken(unit.piece) for unit in self.units]

    @functools.cached_property
    def words(self) -> Mapping[int, frozenset[str]]:
        """The words of each unit's text, by its index."""
        return _Words(self.texts)

    def load_where(self, wanted: Callable[[str], bool] | None = None, word: str = "") -> None:
        """Parse the units whose text is `wanted` and has the `word`, and with the first of them the statements of the
        file's top level."""
        self._wake()
        for unit in self.units:
            if unit.root is not None or (word and word not in self.words[unit.index]):
                continue
            if wanted is None or wanted(self.texts[unit.index]):
                self.load(unit)
                self.load_statements()

    def _wake(self) -> None:
        """Parse the units that matter: those with a word of the catalogue, or a name that such a unit gave to it."""
        if self._awake:
            return
        self._awake = True
        wanted = set(self.library.triggers.within(self.text) if self._wanted is None else self._wanted)
        if not wanted:
            return
        # Imports and the headers of classes are known without a parse; what else gives a name holds the word itself.
        self._extend(wanted)
        if not any(self._matters(unit, wanted) for unit in self.units):
            return
        self.load_statements()
        self._extend(wanted)
        self.look_for(*wanted)
        self.look_for(*self._attribute_aliases(wanted))

    def _loading(self, wanted: set[str]) -> Iterator[Unit]:
        """Parse the units in which a word of `wanted` may mean what it is wanted for, one after the other, and of the
        classes whose header has one the constructors that call the one above."""
        for unit in self.units:
            if unit.root is not None or not self._matters(unit, wanted):
                continue
            self.load(unit)
            if unit.piece.kind == "header":
                for member in self._top_classes[unit.piece.owner].units:
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
        """The attributes that were made another name of something wanted: `self.loader_class = DataLoader`."""
        found = set()
        for _, target, value, _, _ in self._assignments:
            if isinstance(target, cst.Attribute) and isinstance(value, (cst.Name, cst.Attribute)):
                last = value.value if isinstance(value, cst.Name) else value.attr.value
                if last in wanted and target.attr.value not in wanted:
                    found.add(target.attr.value)
        return found

    def _extend(self, wanted: set[str]) -> None:
        """Add the names that aliases, assignments and subclasses give to what is wanted, until there are no more."""
        aliases: list[tuple[str, frozenset[str]]] = []
        for name, bindings in self.scope.bindings.items():
            for binding in bindings:
                if binding.kind == "import":
                    aliases.append((name, frozenset(binding.target.split("."))))
                elif (
                    binding.kind == "assign" and isinstance(binding.value, _ALIASES) and not self._makes(binding.value)
                ):
                    aliases.append((name, frozenset(IDENTIFIER.findall(self.code(binding.value)))))
        for unit in self.units:
            if unit.piece.kind == "header":
                aliases.append((unit.piece.name, self.words[unit.index]))
        grew = True
        while grew:
            grew = False
            for name, words in aliases:
                if name not in wanted and not words.isdisjoint(wanted):
                    wanted.add(name)
                    grew = True

    @staticmethod
    def _makes(value: cst.BaseExpression) -> bool:
        """Whether `value` is a call that makes an object, not one that only gives a callable another name."""
        return isinstance(value, cst.Call) and names.dotted(value.func).rpartition(".")[2] not in skeleton.RENAMING

    def load_statements(self, *, every: bool = False) -> None:
        """Parse the top-level statements that are no definitions; imports and long tables only with `every`."""
        for unit in self.units:
            if unit.piece.owner < 0 and unit.piece.kind in (_EVERY if every else _STATEMENTS):
                self.load(unit)

    def _load_table(self, name: str) -> None:
        for unit in self._tables.get(name, ()):
            self.load(unit)

    def load_functions(self, wanted: Callable[[str], object]) -> Iterator[Unit]:
        """Parse the top-level functions whose names `wanted` accepts."""
        for unit in self.units:
            if unit.piece.kind == "function" and unit.piece.owner < 0 and wanted(unit.piece.name):
                self.load(unit)
                yield unit

    def load_all(self) -> None:
        """Parse every unit."""
        for unit in self.units:
            self.load(unit)

    def load(self, unit: Unit) -> None:
        """Parse `unit`, unless it is parsed; one that libcst cannot parse counts as empty."""
        if unit.root is not None:
            return
        piece = unit.piece
        try:
            root = tree.parse(self.parsed_text(unit))
        except (cst.ParserSyntaxError, RecursionError) as error:
            unit.root = cst.Module([])
            self.skipped.append((piece.first, str(error).partition("\n")[0]))
            return
        unit.root = root
        self._roots[id(root)] = unit
        if piece.kind not in ("table", "imports"):
            Walk(self, unit).run(root, unit.inside)
            return
        if piece.kind == "table":
            self.load_statements()
        # What was known of the names they bind gives way to what the tree says.
        known = {name: self.scope.bindings[name] for name, _ in piece.binds or ((piece.name, ""),) if name != "*"}
        for bindings in known.values():
            bindings[:] = [one for one in bindings if one.order // UNIT != unit.index]
        stars = list(self.scope.stars)
        Walk(self, unit).run(root, unit.inside)
        self.scope.stars[:] = stars
        for bindings in known.values():
            bindings.sort(key=operator.attrgetter("order"))

    def parsed_text(self, unit: Unit) -> str:
        """What is parsed for `unit`: a member of a class stands in a block."""
        return ("if 1:\n" if unit.inside else "") + self.skeleton.text(unit.piece)

    def look_for(self, *words: str) -> None:
        """Parse the units in which any of `words` stands."""
        deque(self._loading(set(words)), maxlen=0)

    def looking_for(self, word: str) -> Iterator[Unit | None]:
        """None for what is parsed already, then one after the other the units in which `word` stands, parsed as they
        are asked for, and None once more for what somebody else has parsed meanwhile."""
        yield None
        yield from self._loading({word})
        yield None

    def shared(self, make: Callable[[Module], _Result]) -> _Result:
        """What `make` makes of this file, made once: the checks share what they infer."""
        if make not in self._shared:
            self._shared[make] = make(self)
        found: _Result = self._shared[make]
        return found

    def definition(self, name: str, class_: Class | None = None) -> cst.FunctionDef | None:
        """The top-level function `name`, or the method `name` of the top-level class `class_`."""
        owner = class_.index if class_ is not None else -1
        for unit in self.units:
            if unit.piece.kind == "function" and unit.piece.owner == owner and unit.piece.name == name:
                self.load(unit)
                return next((node for node in self._functions.get(unit.index, ()) if node.name.value == name), None)
        return None

    def load_class(self, class_: Class) -> None:
        """Parse the header of `class_` where its bases are not known without."""
        if class_.index >= 0 and self.skeleton.classes[class_.index].bases is not None:
            return
        for unit in class_.units:
            if unit.piece.kind == "header":
                self.load(unit)

    # ------------------------------------------------------------------ the tree

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds `node`; None for the root of a unit."""
        return self._parents.get(id(node))

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around `node`, innermost first, up to the unit's root."""
        current = self._parents.get(id(node))
        while current is not None:
            yield current
            current = self._parents.get(id(current))

    def enclosing_function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The innermost `def` whose body holds `node`."""
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, cst.FunctionDef):
                return ancestor
        return None

    def enclosing_class(self, node: cst.CSTNode) -> Class | None:
        """The innermost class around `node`, methods of it included."""
        scope: Scope | None = self.scope_of(node)
        while scope is not None:
            if scope in self.classes:
                return self.classes[scope]
            scope = scope.outer
        return None

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement that holds `node` (itself, if it is one)."""
        current: cst.CSTNode = node
        for ancestor in (node, *self.ancestors(node)):
            if isinstance(ancestor, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return ancestor
            current = ancestor
        return current

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """The scope in which the names of `node` are looked up."""
        parents, scopes = self._parents, self._scopes
        before, current = node, node
        while True:
            scope = scopes.get(id(current))
            if scope is not None and not (
                isinstance(current, (cst.FunctionDef, cst.ClassDef)) and before is not current.body
            ):
                return scope
            before = current
            outer = parents.get(id(current))
            if outer is None:
                break
            current = outer
        unit = self._roots.get(id(before))
        return (unit.scope if unit is not None else None) or self.scope

    def inner_scope(self, node: cst.CSTNode) -> Scope | None:
        """The scope that a function, lambda, comprehension or class makes."""
        return self._scopes.get(id(node))

    def order_of(self, node: cst.CSTNode) -> int:
        """The place of `node` in the source, comparable with a binding's."""
        parents, orders = self._parents, self._orders
        current: cst.CSTNode | None = node
        while current is not None:
            order = orders.get(id(current))
            if order is not None:
                return order
            current = parents.get(id(current))
        return 0

    def code(self, node: cst.CSTNode) -> str:
        """The source of `node`."""
        return deeply(lambda: cst.Module([]).code_for_node(node))

    def span(self, node: cst.CSTNode) -> tuple[Location, Location]:
        """`Places.span`."""
        return self.places.span(node)

    def unit_of(self, node: cst.CSTNode) -> Unit:
        """The unit that `node` was parsed in."""
        root: cst.CSTNode = node
        while id(root) in self._parents:
            root = self._parents[id(root)]
        return self._roots[id(root)]

    # ------------------------------------------------------------------ names

    def resolve(
        self, node: cst.BaseExpression, scope: Scope | None = None, order: int | None = None
    ) -> tuple[str, ...]:
        """The qualified names that `node` may stand for, sorted; none where that is not evident."""
        if scope is None:
            scope, order = self.scope_of(node), self.order_of(node)
        return tuple(sorted(set(self._resolve(node, scope, order, _DEPTH))))

    def _resolve(self, node: cst.CSTNode, scope: Scope, order: int | None, depth: int) -> list[str]:
        if depth <= 0:
            return []
        if isinstance(node, cst.Name):
            return self._resolve_name(node.value, scope, order, depth)
        if isinstance(node, cst.Attribute):
            return self._resolve_attribute(node, scope, order, depth)
        if isinstance(node, cst.Call):
            return self._resolve_call(node, scope, order, depth)
        if isinstance(node, cst.IfExp):
            return [
                *self._resolve(node.body, scope, order, depth - 1),
                *self._resolve(node.orelse, scope, order, depth - 1),
            ]
        if isinstance(node, cst.BooleanOperation):
            return [
                *self._resolve(node.left, scope, order, depth - 1),
                *self._resolve(node.right, scope, order, depth - 1),
            ]
        if isinstance(node, cst.NamedExpr):
            return self._resolve(node.value, scope, order, depth - 1)
        if isinstance(node, cst.Subscript):
            found = self._resolve(node.value, scope, order, depth - 1)
            items = [self.library.canonical(f"{name}[]") for name in found]
            return [
                *(name for name in found if name.rpartition(".")[2][:1].isupper()),
                *(name for name in items if not name.endswith("[]")),
            ]
        return []

    def _resolve_name(self, name: str, scope: Scope, order: int | None, depth: int) -> list[str]:
        home = scope.home(name)
        if home is None:
            return self._unbound(name, scope)
        seen_from_here = home.function is scope.function
        found: list[str] = []
        for binding in live(home.bindings[name], order if seen_from_here else None):
            if binding.kind == "import":
                found.append(self.library.canonical(binding.target))
            elif binding.kind in ("def", "class"):
                found.append(self._local_name(home, name))
            elif binding.kind in ("assign", "with") and binding.value is not None and not binding.path:
                found.extend(self._resolve_once(name, binding.value, home, binding.order, depth))
        return found

    def _resolve_once(
        self, name: str, value: cst.BaseExpression, scope: Scope, order: int | None, depth: int
    ) -> tuple[str, ...]:
        """What the value bound to `name` at `order` stands for; worked out once, cycles cut."""
        key = (name, order or 0)
        known = self._resolved.get(key)
        if known is None:
            self._resolved[key] = ()
            known = self._resolved[key] = tuple(sorted(set(self._resolve(value, scope, order, depth - 1))))[:_NAMES]
        return known

    def _local_name(self, home: Scope, name: str) -> str:
        parts = [name]
        scope: Scope | None = home
        while scope is not None:
            if scope.name:
                parts.append(scope.name)
            scope = scope.outer
        return "@." + ".".join(reversed(parts))

    def _unbound(self, name: str, scope: Scope) -> list[str]:
        stars = scope.module.stars
        if name in BUILTINS:
            return [] if name in ("None", "True", "False") else [f"builtins.{name}"]
        found = []
        for module in stars:
            full = self.library.canonical(f"{module}.{name}")
            if full in self.library.known:
                found.append(full)
        if stars and not found and self.starred is not None:
            if name not in self._starred:
                self._starred[name] = self.starred(name, stars)
            found = [self._starred[name]] if self._starred[name] else []
        return found

    def _resolve_attribute(self, node: cst.Attribute, scope: Scope, order: int | None, depth: int) -> list[str]:
        attribute = node.attr.value
        values = self.self_attribute(node, scope)
        if values:
            found: list[str] = []
            for value in values:
                found.extend(self._resolve_once(f".{attribute}", value.node, value.scope, value.order, depth))
            return found
        if (
            isinstance(node.value, cst.Call)
            and isinstance(node.value.func, cst.Name)
            and node.value.func.value == "super"
        ):
            class_ = self.enclosing_class_of_scope(scope)
            if class_ is None:
                return []
            return [f"{base}.{attribute}" for base in self.base_names(class_)]
        names_ = self._resolve(node.value, scope, order, depth - 1)
        return [self.library.canonical(f"{name}.{attribute}") for name in names_]

    def _resolve_call(self, node: cst.Call, scope: Scope, order: int | None, depth: int) -> list[str]:
        functions = self._resolve(node.func, scope, order, depth - 1)
        found: list[str] = []
        for function in functions:
            if function == "builtins.getattr" and len(node.args) >= 2:
                attribute = self.constant(node.args[1].value, scope, order)
                if attribute is not None and isinstance(attribute[0], str):
                    base = self._resolve(node.args[0].value, scope, order, depth - 1)
                    found.extend(self.library.canonical(f"{name}.{attribute[0]}") for name in base)
            elif function in ("importlib.import_module", "builtins.__import__") and node.args:
                module = self.constant(node.args[0].value, scope, order)
                if module is not None and isinstance(module[0], str):
                    found.append(self.library.canonical(module[0]))
            elif function == "functools.partial":
                if node.args:
                    found.extend(self._resolve(node.args[0].value, scope, order, depth - 1))
            elif function.count("()") < _CHAINED:
                found.append(f"{function}()")
        return found

    def self_attribute(self, node: cst.Attribute, scope: Scope) -> list[Value]:
        """The values that the methods of the class give to `self.name`; none where it is not such an attribute."""
        if not isinstance(node.value, cst.Name):
            return []
        function: Scope | None = scope.function
        while function is not None and not (
            function.outer is not None
            and function.outer.kind == "class"
            and self._first_parameter(function) == node.value.value
        ):
            function = function.outer
        if function is None or function.outer is None:
            return []
        class_ = self.classes.get(function.outer)
        return self.attribute_values(class_, node.attr.value) if class_ is not None else []

    def _first_parameter(self, function: Scope) -> str:
        node = function.node
        if not isinstance(node, cst.FunctionDef):
            return ""
        parameters = (*node.params.posonly_params, *node.params.params)
        return parameters[0].name.value if parameters else ""

    def attribute_values(self, class_: Class, name: str) -> list[Value]:
        """What is assigned to attribute `name` in the body and methods of `class_` and of its bases in the file."""
        key = (id(class_), name)
        known = self._attributes.get(key)
        if known is None:
            known = []
            for relative in self.family(class_):
                known = self._own_attribute_values(relative, name)
                if known:
                    break
            if not self._naming:
                self._attributes[key] = known
        return known

    def _own_attribute_values(self, class_: Class, name: str) -> list[Value]:
        if not self._naming:
            assigned = ""
            for unit in class_.units:
                if unit.root is None and name in self.words[unit.index]:
                    assigned = assigned or rf"{name}\s*(?::[^=\n]*)?=(?!=)"
                    dot = r"\." if unit.piece.kind == "function" else r"(?<![\w.])"
                    if re.search(dot + assigned, self.texts[unit.index]):
                        self.load(unit)
        values = [
            Value(self, binding.value, class_.scope, binding.order)
            for binding in class_.scope.bindings.get(name, ())
            if binding.kind == "assign" and binding.value is not None
        ]
        for target, value, scope, order in self._attribute_targets.get(name, ()):
            if (
                isinstance(target.value, cst.Name)
                and scope.function.outer is class_.scope
                and self._first_parameter(scope.function) == target.value.value
            ):
                values.append(Value(self, value, scope, order))
        return values

    def declared(self, class_: Class, name: str) -> Iterator[cst.BaseExpression]:
        """The annotations of attribute `name` in the body and methods of `class_` and of its bases in the file."""
        written = re.compile(rf"\b{name}\s*:")
        for relative in self.family(class_):
            for unit in relative.units:
                if (
                    unit.root is None
                    and name in self.words[unit.index]
                    and written.search(self.skeleton.text(unit.piece))
                ):
                    self.load(unit)
            for node, scope in list(self._declared.get(name, ())):
                if isinstance(node.target, cst.Name):
                    mine = scope is relative.scope
                else:
                    mine = scope.function.outer is relative.scope and self._first_parameter(
                        scope.function
                    ) == names.dotted(node.target).removesuffix(f".{name}")
                if mine:
                    yield node.annotation.annotation

    def fields(self, class_: Class) -> list[tuple[str, cst.BaseExpression]]:
        """The names that the body of `class_` itself annotates, in their order, and the annotations."""
        for unit in class_.units:
            if unit.piece.kind == "statements":
                self.load(unit)
        found = [
            (self.order_of(node), name, node.annotation.annotation)
            for name, there in self._declared.items()
            for node, scope in there
            if scope is class_.scope
        ]
        return [(name, annotation) for _, name, annotation in sorted(found, key=operator.itemgetter(0))]

    def enclosing_class_of_scope(self, scope: Scope | None) -> Class | None:
        """The innermost class whose body or method `scope` is in."""
        while scope is not None:
            if scope in self.classes:
                return self.classes[scope]
            scope = scope.outer
        return None

    def local_class(self, name: str) -> Class | None:
        """The top-level class behind the qualified name `@.Name`."""
        return self._header_by_name.get(name[2:]) if name.startswith("@.") else None

    def base_names(self, class_: Class) -> tuple[str, ...]:
        """The qualified names of the bases of `class_`, as written in its header."""
        known = self._bases.get(id(class_))
        if known is None:
            self.load_class(class_)
            found: list[str] = []
            for base in class_.bases:
                found.extend(self._resolve(base, class_.outer, class_.order, _DEPTH - 2))
            known = tuple(dict.fromkeys(found))
            if self._awake:
                self._bases[id(class_)] = known
        return known

    def family(self, class_: Class) -> Iterator[Class]:
        """`class_` and the classes of the file that it derives from."""
        queue, seen = [class_], set[int]()
        while queue:
            current = queue.pop(0)
            if id(current) in seen:
                continue
            seen.add(id(current))
            yield current
            for name in self.base_names(current):
                base = self.local_class(name)
                if base is not None:
                    queue.append(base)

    def ancestry(self, name: str) -> list[str]:
        """`name` and every class it derives from, in this file and in the libraries that the catalogue knows."""
        class_ = self.local_class(name)
        if class_ is None:
            return list(self.library.ancestors(name))
        found = [name]
        for relative in self.family(class_):
            for base in self.base_names(relative):
                found.extend(self.library.ancestors(base))
        return list(dict.fromkeys(found))

    # ------------------------------------------------------------------ values

    def value(self, node: cst.BaseExpression) -> Value:
        """`node` as a value, looked up where it stands."""
        return Value(self, node, self.scope_of(node), self.order_of(node))

    def constant(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> tuple[object] | None:
        """`Values.constant`."""
        return self.values.constant(node, scope, order)

    def elements(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> list[cst.BaseExpression] | None:
        """`Values.elements`."""
        return self.values.elements(node, scope, order)

    def followed(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> Value | None:
        """`Values.followed`."""
        return self.values.followed(node, scope, order)

    def dictionary(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> dict[str, Value] | None:
        """`Values.dictionary`."""
        return self.values.dictionary(node, scope, order)

    def holds(self, call: Call, condition: Condition, parameters: Sequence[str] = ()) -> bool:
        """`Values.holds`."""
        return self.values.holds(call, condition, parameters)

    def meets(self, call: Call, conditions: Sequence[Condition], parameters: Sequence[str] = ()) -> bool:
        """Whether `call` meets all of `conditions`."""
        return all(self.values.holds(call, condition, parameters) for condition in conditions)

    # ------------------------------------------------------------------ facts

    @property
    def calls(self) -> list[Call]:
        """The calls of the units that matter, in the order of the source."""
        self._wake()
        self._name_calls()
        return self._calls

    def call_at(self, node: cst.CSTNode) -> Call | None:
        """The fact about the call `node`."""
        self._name_calls()
        return self._call_of.get(id(node))

    def calls_to(self, *wanted: str) -> Iterator[Call]:
        """Calls of what any of the qualified names stands for, through aliases, `partial` and subclasses."""
        if not self._awake:
            self._wake()
        if self._named < len(self._calls):
            self._name_calls()
        if self._by_name.keys().isdisjoint(wanted):
            return
        found = {id(call): call for name in wanted for call in self._by_name.get(name, ())}
        yield from sorted(found.values(), key=lambda call: call.order)

    def calls_any(self, wanted: frozenset[str]) -> bool:
        """Whether `calls_to` would find anything."""
        self._wake()
        self._name_calls()
        return not self._by_name.keys().isdisjoint(wanted)

    def method_calls(self, *wanted: str) -> Iterator[Call]:
        """Calls `x.name(…)` in which `x` is a value, not a module or a class."""
        self._wake()
        self._name_calls()
        for name in sorted(wanted):
            for call in self._by_attribute.get(name, ()):
                if all("()" in known or known.startswith((".", "@.")) for known in call.own):
                    yield call

    def _name_calls(self) -> None:
        """Resolve the callees of the calls that came since the last time; no unit is parsed for that alone."""
        naming, self._naming = self._naming, True
        while self._named < len(self._calls):
            call = self._calls[self._named]
            self._named += 1
            self._name_call(call)
        self._naming = naming

    def release(self) -> None:
        """Let go of everything: the facts refer to each other, and only a collection would find them otherwise."""
        self.__dict__.clear()

    def _name_call(self, call: Call) -> None:
        function = call.node.func
        call.own = self.resolve(function, call.scope, call.order)
        if "functools.partial" in call.own and len(call.node.args) > 0 and not call.node.args[0].star:
            call.partial = self._partial_behind(call.node.args[0].value, call)
            return
        call.partial = self._partial_behind(function, call)
        wide: list[str] = []
        for name in call.own:
            if name.endswith(".__init__"):
                name = name.removesuffix(".__init__")
            elif (class_ := self.local_class(name)) is not None and self._decides(class_):
                wide.append(name)
                continue
            wide.extend(self.ancestry(name))
        call.names = tuple(dict.fromkeys(wide))
        for name in call.names:
            self._by_name.setdefault(name, []).append(call)
        if call.attribute:
            self._by_attribute.setdefault(call.attribute, []).append(call)

    def _decides(self, class_: Class) -> bool:
        """Whether its own `__init__`, or one of a base in the file, decides what reaches the library's: one that hands
        on `*args` and `**kwargs` untouched does not."""
        for relative in self.family(class_):
            if "__init__" in relative.methods:
                texts = [self.skeleton.text(unit.piece) for unit in relative.units if unit.piece.name == "__init__"]
                passed = _HANDS_ON.match(texts[0]) if len(texts) == 1 else None
                if passed is None or len(re.findall(rf"\b{passed[2]}\b", texts[0])) != 2:
                    return True
        return False

    def _partial_behind(self, function: cst.BaseExpression, call: Call) -> Call | None:
        if "partial" not in self.text:
            return None
        if isinstance(function, cst.Call):
            inner: cst.CSTNode = function
        else:
            value = self.followed(function, call.scope, call.order)
            if value is None:
                return None
            inner = value.node
        if not isinstance(inner, cst.Call) or inner is call.node:
            return None
        made = self._call_of.get(id(inner))
        if made is None or "functools.partial" not in self.resolve(inner.func, made.scope, made.order):
            return None
        return made

    def assignments_written(self, target: str) -> Iterator[Assignment]:
        """Assignments whose target is an attribute written as `target`, whatever it stands for: `args.seed`."""
        self._wake()
        last = target.rpartition(".")[2]
        for statement, node, value, scope, order in list(self._assigned.get(last, ())):
            if names.dotted(node) == target:
                yield Assignment(statement, node, Value(self, value, scope, order), scope, order, ())

    def assignments_to(self, *wanted: str) -> Iterator[Assignment]:
        """Assignments whose target is any of the qualified attribute names, `setattr` with a literal name included."""
        self._wake()
        last = {name.rpartition(".")[2] for name in wanted}
        for word in sorted(last & self._assigned.keys()):
            for statement, target, value, scope, order in list(self._assigned[word]):
                found = tuple(name for name in self.resolve(target, scope, order) if name in wanted)
                if found:
                    yield Assignment(statement, target, Value(self, value, scope, order), scope, order, found)
        for call in list(self.calls_to("builtins.setattr")):
            args = call.node.args
            attribute = self.constant(args[1].value, call.scope, call.order) if len(args) == 3 else None
            if attribute is not None and attribute[0] in last:
                bases = self.resolve(args[0].value, call.scope, call.order)
                full = [self.library.canonical(f"{base}.{attribute[0]}") for base in bases]
                found = tuple(name for name in full if name in wanted)
                if found:
                    value_ = Value(self, args[2].value, call.scope, call.order)
                    yield Assignment(call.node, None, value_, call.scope, call.order, found)

    def calls_in(self, scope: Scope) -> list[Call]:
        """The calls that stand in the function, class or module scope `scope` itself, comprehensions included."""
        while self._placed < len(self._calls):
            call = self._calls[self._placed]
            self._placed += 1
            self._calls_of.setdefault(call.scope.function, []).append(call)
        return self._calls_of.get(scope, [])

    def assignments_in(self, scope: Scope) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
        """Target and value of the assignments that stand in `scope` itself."""
        for _, target, value, where, _ in list(self._assignments):
            if where.function is scope:
                yield target, value

    def imports(self, package: str) -> bool:
        """Whether the file imports `package`, or something of it."""
        if package not in self.text:
            return False
        return re.search(rf"^[ \t]*(?:import|from)\s+{re.escape(package)}\b", self.text, re.MULTILINE) is not None

    def strings(self, word: str) -> Iterator[cst.BaseExpression]:
        """The string literals in which `word` stands, in the order of the source."""
        for unit in self.units:
            if word not in self.skeleton.text(unit.piece):
                continue
            self.load(unit)
            stack: list[cst.CSTNode] = [unit.root] if unit.root is not None else []
            while stack:
                node = stack.pop()
                if isinstance(node, (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)):
                    if word in self.code(node):
                        yield node
                else:
                    stack.extend(reversed(children(node)))

    def registrations(self, class_: Class, name: str) -> Iterator[Call]:
        """The calls `self.register_buffer("name", …)` and `register_parameter` in the methods of `class_`."""
        for relative in self.family(class_):
            for unit in relative.units:
                words = self.words[unit.index]
                if name in words and ("register_buffer" in words or "register_parameter" in words):
                    self.load(unit)
            for call in list(self._calls):
                if call.attribute not in ("register_buffer", "register_parameter") or not call.node.args:
                    continue
                if call.scope.function.outer is not relative.scope:
                    continue
                literal = call.node.args[0].value
                if isinstance(literal, cst.SimpleString) and literal.evaluated_value == name:
                    yield call
