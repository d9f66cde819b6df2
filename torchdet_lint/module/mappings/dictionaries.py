"""A dictionary in sight -> the entries that it may hold, those that statements after it add included."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import libcst as cst

from torchdet_lint.module import names
from torchdet_lint.module.names import live
from torchdet_lint.module.tree import code, returned
from torchdet_lint.module.values import Value
from torchdet_lint.prefilter.triggers import places
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.module.facts import Assigned, CallSite, Class
    from torchdet_lint.module.mappings.data_files import DataFiles
    from torchdet_lint.module.names import Scope
    from torchdet_lint.module.values import Values

_DEPTH = 14
# What changes a dictionary, behind its name; and an entry of it, which `del` takes away.
_CHANGES = lazy(r"\s*(?:\[[^\]\n]*\]\s*[-+|*/]?=[^=]|\.(?:update|setdefault|pop|clear|popitem)\s*\(|\s\|=)")
_ENTRY = lazy(r"\s*\[")
_DELETES = lazy(r"\bdel\s+\Z")
_FAR = 100
_ANY_CHANGED = lazy(
    r"(?<![\w.])([^\W\d]\w*)(?=\s*(?:\[[^\]\n]*\]\s*[-+|*/]?=[^=]|\.(?:update|setdefault|pop|clear|popitem)\s*\(|\s\|=))"
    r"|\bdel\s+(\w+)\s*\["
)
# Nobody passes so many arguments by a dictionary.
_MANY = 200
_CHANGING = frozenset({"update", "setdefault", "pop"})
_COPIES = frozenset({"copy.copy", "copy.deepcopy"})


class _Change(NamedTuple):
    """A statement that puts `entries` into a dictionary (None: not in sight), always or only perhaps; `missing` where
    it leaves those alone that are there, `dropped` the key that it takes out."""

    order: int
    perhaps: bool
    entries: dict[str, Value] | None
    missing: bool = False
    dropped: str = ""

    def applied(self, to: dict[str, Value]) -> dict[str, Value] | None:
        """The entries that are there then; None: not in sight."""
        if self.entries is None:
            return None
        if self.missing:
            return self.entries | to
        if self.perhaps:
            return _either([to, self.entries])
        return {key: value for key, value in (to | self.entries).items() if key != self.dropped}


class Dictionaries:
    """The dictionaries of one file."""

    def __init__(
        self,
        values: Values,
        defined: Callable[[str], tuple[Dictionaries, cst.FunctionDef] | None],
        data: DataFiles,
    ) -> None:
        """`defined` finds a function of the project by its resolved name, and the dictionaries of its file; `data` has
        those in files of data."""
        self.values = values
        self.data = data
        values.entry = self.entry
        values.dictionary = self.dictionary
        self.defined = defined
        # The entries of what another file binds to a dotted name, with the depth that is left, where somebody knows
        # the other files.
        self.elsewhere: Callable[[str, int], dict[str, Value] | None] | None = None
        self.library = values.resolver.library
        self.relations = values.resolver.relations
        self._facts = values.resolver.facts
        self._written: dict[str, Counter[str]] = {}
        self._attributes_changed: dict[str, bool] = {}
        self._updates: dict[str, list[CallSite]] = {}
        self._items: dict[str, list[Assigned]] = {}
        self._indexed = 0, 0
        self._changed: dict[tuple[str, Scope, int], tuple[int, list[_Change]]] = {}

    def entry(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> Value | None:
        """What `table["name"]` picks from a dictionary in sight, `table.get("name", …)` too, and `options.name` from an
        object that has the entries of one for attributes; None where that is not evident."""
        if isinstance(node, cst.Attribute):
            fields = self._fields(node.value, scope, order, _DEPTH)
            return fields.get(node.attr.value) if fields else None
        picked = _picked(node)
        if picked is None:
            return None
        table, index, other = picked
        key = self.values.constant(index, scope, order)
        entries = self.dictionary(table, scope, order) if key is not None else None
        if entries is None or key is None:
            return None
        missing = Value(self.values, other, scope, order) if other is not None else None
        return entries.get(str(key[0]), missing)

    def _fields(self, node: cst.BaseExpression, scope: Scope, order: int | None, depth: int) -> dict[str, Value] | None:
        """The entries that an object has for attributes, where it is made of a dictionary in sight, or is one of its
        entries."""
        value = self.values.followed(node, scope, order) if depth > 0 and self.data.makes_fields else None
        if value is None:
            return None
        if isinstance(value.node, cst.Attribute):
            outer = self._fields(value.node.value, value.scope, value.order, depth - 1) or {}
            inner = outer.get(value.node.attr.value)
            return self._inside(inner, depth - 1) if inner is not None else None
        if not isinstance(value.node, cst.Call) or not self.data.has_fields(value):
            return None
        return self.dictionary(node, scope, order, depth - 1)

    def dictionary(
        self, node: cst.BaseExpression, scope: Scope, order: int | None, depth: int = _DEPTH
    ) -> dict[str, Value] | None:
        """The entries that a dictionary in sight may hold; None where something out of sight has a part in it.

        An entry that only one branch gives, or that an `update` adds, counts; of two values the one that is not
        evidently false.
        """
        if depth <= 0:
            return None
        if isinstance(node, cst.IfExp):
            return _either([self.dictionary(part, scope, order, depth - 1) for part in (node.body, node.orelse)])
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
            left = self.dictionary(node.left, scope, order, depth - 1)
            right = self.dictionary(node.right, scope, order, depth - 1) if left is not None else None
            return left | right if left is not None and right is not None else None
        if isinstance(node, cst.Name):
            return self._named_dictionary(node.value, scope, order, depth)
        if isinstance(node, cst.Attribute) and (class_ := self.values.resolver.class_of(node.value, scope)) is not None:
            return self._kept_dictionary(node, class_, depth)
        changed = isinstance(node, cst.Attribute) and self._is_changed(names.dotted(node))
        value = None if changed else self.values.followed(node, scope, order)
        if value is None:
            return None
        node, scope, order = value.node, value.scope, value.order
        if isinstance(node, cst.Dict):
            return self._literal_dictionary(node, scope, order, depth)
        if isinstance(node, cst.BinaryOperation):
            return self.dictionary(node, scope, order, depth - 1)
        if isinstance(node, cst.Call):
            return self._made_dictionary(node, scope, order, depth)
        inner = self.entry(node, scope, order) if isinstance(node, (cst.Attribute, cst.Subscript)) else None
        if inner is not None:
            return self._inside(inner, depth - 4)
        return self._attribute_dictionary(node, scope, order, depth) if isinstance(node, cst.Attribute) else None

    def _inside(self, entry: Value, depth: int) -> dict[str, Value] | None:
        """The entries of a dictionary that is an entry of another one, in whichever file that stands."""
        find = entry.evaluator.dictionary
        return find(entry.node, entry.scope, entry.order, depth) if find is not None else None

    def _attribute_dictionary(
        self, node: cst.Attribute, scope: Scope, order: int | None, depth: int
    ) -> dict[str, Value] | None:
        """The entries of `settings.OPTIONS`, which another file binds, and of `Config.OPTIONS`, which a class does."""
        values = self.values.class_attribute(node, scope, order)
        if values:
            given = values[0]
            return self.dictionary(given.node, given.scope, given.order, depth - 1) if len(values) == 1 else None
        found = self.values.resolver.resolve(node, scope, order)
        return self._dictionary_elsewhere(found[0], depth) if len(found) == 1 else None

    def _dictionary_elsewhere(self, name: str, depth: int) -> dict[str, Value] | None:
        known = self.elsewhere is not None and "()" not in name and not name.startswith("@.")
        return self.elsewhere(name, depth - 1) if known and self.elsewhere is not None else None

    def _kept_dictionary(self, node: cst.Attribute, class_: Class, depth: int) -> dict[str, Value] | None:
        """The entries of a dictionary that objects of `class_` keep in an attribute, those that any method adds
        included."""
        resolver, dotted = self.values.resolver, names.dotted(node)
        values = resolver.attribute_values(class_, node.attr.value)
        made = [self.dictionary(value.node, value.scope, value.order, depth - 1) for value in values]
        found = _either(made) if made else None
        unknown = self.changes_in(class_, dotted) if found else 0
        related = self._related(class_) if unknown else []
        for unit in (unit for one in related for unit in one.units):
            resolver.loading.load(unit)
        self._index()
        for change in self._kept_changes(dotted, {one.scope for one in related}, depth):
            unknown -= 1
            if change.entries is None or change.dropped:
                return None
            found = _either([found, change.entries])
        return None if unknown else found

    def changes_in(self, class_: Class, dotted: str) -> int:
        """How many statements of `class_`, and of those of the file that share its objects, change the dictionary
        `self.options`."""
        if not self._is_changed(dotted):
            return 0
        pieces = [unit.piece for one in self._related(class_) for unit in one.units]
        text = "".join(map(self._facts.skeleton.text, pieces)) if pieces else self._facts.text
        return sum(1 for _ in _places_changed(dotted, text))

    def _related(self, class_: Class) -> list[Class]:
        """`class_`, and the classes of the file that it derives from or that derive from it."""
        family = self.values.resolver.family
        heirs = [one for one in self._facts.classes.values() if any(base is class_ for base in family(one))]
        return [*family(class_), *(one for one in heirs if one is not class_)]

    def _kept_changes(self, dotted: str, classes: set[Scope], depth: int) -> Iterator[_Change]:
        """How methods of `classes` change the dictionary `self.options`."""
        for call, scope, _, order in self._updates.get(dotted, ()):
            if scope.function.outer in classes:
                yield self._method_change(call, scope, order, depth) or _Change(order, True, None)
        for _, target, value, scope, order in self._items.get(dotted, ()):
            if isinstance(target, cst.Subscript) and scope.function.outer in classes:
                key = self._key(target, scope, order)
                yield _Change(order, True, {key: Value(self.values, value, scope, order)} if key is not None else None)

    def _key(self, target: cst.Subscript, scope: Scope, order: int) -> str | None:
        """The key that an assignment to an entry names, where that is a text in sight."""
        index = target.slice[0].slice if len(target.slice) == 1 else None
        key = self.values.constant(index.value, scope, order) if isinstance(index, cst.Index) else None
        return key[0] if key is not None and isinstance(key[0], str) else None

    def _is_changed(self, attribute: str) -> bool:
        """Whether the file changes the dictionary `self.options` somewhere."""
        known = self._attributes_changed.get(attribute)
        if known is None:
            known = self._attributes_changed[attribute] = _changes(attribute, self._facts.text)
        return known

    def _made_dictionary(self, call: cst.Call, scope: Scope, order: int | None, depth: int) -> dict[str, Value] | None:
        """The entries of `dict(…)` and of a copy."""
        if not call.args and isinstance(call.func, cst.Attribute) and call.func.attr.value == "copy":
            return self.dictionary(call.func.value, scope, order, depth - 1)
        function = self.values.resolver.resolve(call.func, scope, order)
        if function == ("builtins.dict",):
            return self._keywords(call, scope, order, depth)
        if len(function) == 1 and function[0] in _COPIES and len(call.args) == 1 and not call.args[0].star:
            return self.dictionary(call.args[0].value, scope, order, depth - 1)
        if len(function) == 1 and (read := self.data.read(call, function[0], scope, order)) is not None:
            return self._literal_dictionary(read, scope, order, depth)
        if self.data.has_fields(Value(self.values, call, scope, order)):
            whole = call.args[0] if len(call.args) == 1 else None
            if whole is not None and whole.keyword is None and not whole.star:
                return self.dictionary(whole.value, scope, order, depth - 1)
            return self._keywords(call, scope, order, depth)
        return self._returned_dictionary(function, depth) if len(function) == 1 else None

    def _returned_dictionary(self, function: Sequence[str], depth: int) -> dict[str, Value] | None:
        """The entries of what a function of the project returns."""
        found = self.defined(function[0])
        if found is None:
            return None
        there, node = found
        made = [
            there.dictionary(value, there.relations.scope_of(value), there.relations.order_of(value), depth - 1)
            for value in returned(node)
        ]
        return _either(made) if made else None

    def _literal_dictionary(
        self, node: cst.Dict, scope: Scope, order: int | None, depth: int
    ) -> dict[str, Value] | None:
        found: dict[str, Value] = {}
        if len(node.elements) > _MANY:
            return None
        for element in node.elements:
            if isinstance(element, cst.StarredDictElement):
                inner = self.dictionary(element.value, scope, order, depth - 1)
                if inner is None:
                    return None
                found.update(inner)
                continue
            assert isinstance(element, cst.DictElement)
            key = self.values.constant(element.key, scope, order)
            if key is None or not isinstance(key[0], str):
                return None
            found[key[0]] = Value(self.values, element.value, scope, order)
        return found

    def _keywords(self, call: cst.Call, scope: Scope, order: int | None, depth: int) -> dict[str, Value] | None:
        """The entries that `dict(…)` or `.update(…)` makes of its arguments."""
        found: dict[str, Value] = {}
        for arg in call.args:
            if arg.keyword is not None:
                found[arg.keyword.value] = Value(self.values, arg.value, scope, order)
            elif arg.star != "*" and (inner := self.dictionary(arg.value, scope, order, depth - 1)) is not None:
                found.update(inner)
            else:
                return None
        return found

    def _named_dictionary(self, name: str, scope: Scope, order: int | None, depth: int) -> dict[str, Value] | None:
        home = scope.home(name)
        if home is None:
            return None
        here = order if home.function is scope.function else None
        bindings = live(home.bindings[name], here)
        if len(bindings) == 1 and bindings[0].kind == "import":
            found = self._dictionary_elsewhere(bindings[0].target, depth)
            return self.changed(name, home, self._facts.text, here, found, depth) if found is not None else None
        if any(binding.kind != "assign" or binding.value is None or binding.path for binding in bindings):
            return None
        made = [
            self.dictionary(binding.value, home, binding.order, depth - 1)
            for binding in bindings
            if binding.value is not None
        ]
        found = _either(made)
        if found is None:
            return None
        first = bindings[0].node
        local = first if home.outer is not None else None
        text = self._facts.text if local is None else self._facts.skeleton.text(self.relations.unit_of(local).piece)
        return self.changed(name, home, text, here, found, depth)

    def changed(
        self, name: str, home: Scope, text: str, order: int | None, entries: dict[str, Value], depth: int = _DEPTH
    ) -> dict[str, Value] | None:
        """What is at `order` in the dictionary `name` of `home`, which held `entries` at first, by the statements of
        `text`; None where something out of sight has a part in it."""
        unknown = self._written_changes(text)[name]
        if unknown > _MANY:
            return None
        found: dict[str, Value] | None = entries
        changes = self._changes(name, home, depth) if unknown else []
        if unknown > len(changes):
            held = {*entries, *(key for change in changes for key in change.entries or ())}
            unknown -= sum(key not in held for key in _deleted(name, text))
        for change in changes:
            unknown -= 1
            when = change.entries is None or (not change.dropped if order is None else change.order < order)
            found = change.applied(found) if found is not None and when else found
        return None if unknown else found

    def _written_changes(self, text: str) -> Counter[str]:
        """How many statements of `text` change the dictionary of each name."""
        if text not in self._written:
            self._written[text] = Counter(one or other for one, other in _ANY_CHANGED.findall(text))
        return self._written[text]

    def _index(self) -> None:
        """Sort the calls and assignments that came since the last time under the dictionary that they change."""
        calls, assignments = self._facts.calls, self._facts.assignments
        for site in itertools.islice(calls, self._indexed[0], None):
            function: Any = site[0].func
            changes = isinstance(function, cst.Attribute) and function.attr.value in _CHANGING
            if changes and isinstance(function.value, (cst.Name, cst.Attribute)):
                self._updates.setdefault(names.dotted(function.value), []).append(site)
        for one in itertools.islice(assignments, self._indexed[1], None):
            target = one[1]
            if isinstance(target, cst.Subscript) and isinstance(target.value, (cst.Name, cst.Attribute)):
                self._items.setdefault(names.dotted(target.value), []).append(one)
        self._indexed = len(calls), len(assignments)

    def _changes(self, name: str, home: Scope, depth: int) -> list[_Change]:
        """How the statements in sight change the dictionary `name` after it was made, in their order."""
        self._index()
        number = len(self._updates.get(name, ())) + len(self._items.get(name, ()))
        known = self._changed.get((name, home, depth))
        if known is None or known[0] != number:
            known = self._changed[name, home, depth] = number, self._found_changes(name, home, depth)
        return known[1]

    def _found_changes(self, name: str, home: Scope, depth: int) -> list[_Change]:
        found: list[_Change] = []
        for call, scope, _, order in self._updates.get(name, ()):
            if scope.home(name) is home:
                change = self._method_change(call, scope, order, depth) if scope.function is home else None
                found.append(change if change is not None else _Change(order, True, None))
        for statement, target, value, scope, order in self._items.get(name, ()):
            if isinstance(target, cst.Subscript) and scope.home(name) is home:
                key = self._key(target, scope, order) if scope.function is home else None
                entry = {key: Value(self.values, value, scope, order)} if key is not None else None
                missing = entry is not None and self._is_missing(statement, name, next(iter(entry)))
                found.append(_Change(order, self._is_conditional(statement), entry, missing))
        return sorted(found, key=lambda change: change.order)

    def _method_change(self, call: cst.Call, scope: Scope, order: int, depth: int) -> _Change | None:
        """What `update`, `setdefault` or `pop` changes; None where that is not in sight."""
        assert isinstance(call.func, cst.Attribute)
        perhaps = self._is_conditional(call)
        if call.func.attr.value == "update":
            return _Change(order, perhaps, self._keywords(call, scope, order, depth - 4))
        key = self.values.constant(call.args[0].value, scope, order) if call.args and not call.args[0].star else None
        if key is None or not isinstance(key[0], str):
            return None
        if call.func.attr.value == "pop":
            return _Change(order, perhaps, {}, dropped=key[0])
        if len(call.args) != 2:
            return None
        return _Change(order, perhaps, {key[0]: Value(self.values, call.args[1].value, scope, order)}, missing=True)

    def _is_missing(self, statement: cst.CSTNode, name: str, key: str) -> bool:
        """Whether `statement` runs only where the dictionary `name` has no `key`."""
        inner = statement
        for ancestor in self.relations.ancestors(statement):
            if isinstance(ancestor, cst.FunctionDef):
                break
            if isinstance(ancestor, cst.If):
                asked = re.fullmatch(r"""["'](\w+)["'] not in (\w+)""", code(ancestor.test))
                return inner is ancestor.body and asked is not None and asked.groups() == (key, name)
            inner = ancestor
        return False

    def _is_conditional(self, node: cst.CSTNode) -> bool:
        for ancestor in self.relations.ancestors(node):
            if isinstance(ancestor, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
                return False
            if isinstance(ancestor, (cst.If, cst.Try, cst.For, cst.While, cst.Match, cst.IfExp)):
                return True
        return False


def _picked(
    node: cst.BaseExpression,
) -> tuple[cst.BaseExpression, cst.BaseExpression, cst.BaseExpression | None] | None:
    """The table of `table["name"]` and of `table.get("name", other)`, the name, and what there is instead."""
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice if len(node.slice) == 1 else None
        named = isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)
        return (node.value, index.value, None) if named and isinstance(index, cst.Index) else None
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.func.attr.value != "get":
        return None
    given = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
    if not 1 <= len(given) == len(node.args) <= 2 or not isinstance(given[0], cst.SimpleString):
        return None
    return node.func.value, given[0], given[1] if len(given) > 1 else cst.Name("None")


def _either(dictionaries: Sequence[dict[str, Value] | None]) -> dict[str, Value] | None:
    """All entries of dictionaries of which one is meant; of two values the one that is not evidently false."""
    found: dict[str, Value] = {}
    for dictionary in dictionaries:
        if dictionary is None:
            return None
        for key, value in dictionary.items():
            if key not in found or not (value.known and not value.constant):
                found[key] = value
    return found


def _deleted(name: str, text: str) -> list[str]:
    """The keys that statements of `text` take out of the dictionary `name`: `del options["collate_fn"]`."""
    return re.findall(rf"""\bdel\s+{re.escape(name)}\s*\[\s*["'](\w+)["']\s*\]""", text)


def _changes(name: str, text: str) -> bool:
    """Whether `text` changes the dictionary that it calls by the dotted `name`."""
    return any(True for _ in _places_changed(name, text))


def _places_changed(name: str, text: str) -> Iterator[int]:
    """Where `text` changes the dictionary that it calls by the dotted `name`."""
    for start in places(name, text):
        end = start + len(name)
        if (text[start - 1 : start] != "." and _CHANGES.match(text, end)) or (
            _ENTRY.match(text, end) and _DELETES.search(text, max(0, start - _FAR), start)
        ):
            yield start
