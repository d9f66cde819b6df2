"""One file -> what its nodes are and mean, parsed on demand: the face of the rooms of this package.

Units are parsed when somebody asks; positions are computed for a unit only when something in it is reported.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import libcst as cst

from torchdet_lint.module.calls import Assignment, Call, Calls
from torchdet_lint.module.cutting import CUTS
from torchdet_lint.module.declarations import Declarations
from torchdet_lint.module.facts import Class, Facts
from torchdet_lint.module.loading import Loading
from torchdet_lint.module.mappings.data_files import DataFiles
from torchdet_lint.module.mappings.dictionaries import Dictionaries
from torchdet_lint.module.places.positions import Places
from torchdet_lint.module.relations import Relations
from torchdet_lint.module.tree import Occurrences, code
from torchdet_lint.module.values import Value, Values
from torchdet_lint.prefilter.skeleton import SyntaxFault
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torchdet_lint.module.names import Scope
    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.prefilter.mentions import Mentions
    from torchdet_lint.source.decoding import Source

__all__ = ["Assignment", "Call", "Class", "Module", "SyntaxFault", "Target", "Value"]

_Result = TypeVar("_Result")


class Target(NamedTuple):
    """What the code is judged for: a torch release `(major, minor)` and the devices that it may run on; `older` is the
    release that the project requires where the tables know none that is so old, `oldest` the oldest that it allows,
    where it names one."""

    torch: tuple[int, int] = (2, 15)
    devices: tuple[str, ...] = ("cpu", "cuda")
    older: tuple[int, int] | None = None
    oldest: tuple[int, int] | None = None

    @property
    def release(self) -> tuple[int, int]:
        """The release of torch that the project really requires."""
        return self.older or self.torch

    @property
    def seeds_numpy_in_workers(self) -> bool:
        """Whether torch seeds NumPy in the workers of a loader, as it does since 1.9."""
        return self.torch >= (1, 9)


class Module:
    """One file. Making it parses nothing with libcst; `calls_to` and its like parse the units that the catalogue's
    words stand in. Raises `SyntaxFault` where the text is not Python.

    Most of what it answers is the answer of a room: of `Loading` what is parsed, of `Relations` how nodes stand to each
    other, of `Resolver` what names stand for, of `Values` and `Dictionaries` what expressions are, of `Calls` and
    `Declarations` what is called and declared, of `Places` where it stands.
    """

    def __init__(
        self, source: Source, library: Library, target: Target | None = None, wanted: frozenset[str] | None = None,
        *, with_tree: bool = False,
    ) -> None:  # fmt: skip
        """`wanted` is `library.triggers.within(source.text)`, where that is known already; the skeleton has its tree
        `with_tree`, as what a file does at top level is asked for."""
        self.source = source
        self.text = source.text
        self.library = library
        self.target = target or Target()
        self.code = code
        # What a function of another file returns, by its dotted name, where somebody knows the other files.
        self.foreign: Callable[[str], Any] | None = None
        # The module of another file that defines a dotted name, and the name there, where somebody knows the others.
        self.neighbour: Callable[[str], tuple[Module, str] | None] | None = None
        # The classes of files beside this one that derive from one of its own, where somebody knows the others.
        self.heirs: Callable[[str], list[tuple[Module, Class]]] | None = None
        # The calls of one of its functions or classes in files around this one, where somebody knows the others.
        self.callers: Callable[[str], list[tuple[Module, Call]]] | None = None
        # The calls of any method of a name in files around this one, where somebody knows the others.
        self.methods: Callable[[str], list[Call]] | None = None
        # The calls of a method of objects of one of its classes in files around it, where somebody knows the others.
        self.methods_of: Callable[[str, str], list[tuple[Module, Call]]] | None = None
        # Where files around this one read what it binds to a name at top level, where somebody knows the others.
        self.readers: Callable[[str], list[tuple[Module, cst.Name | cst.Attribute]]] | None = None
        # The files around this one in which a name stands, at most so many, where somebody knows the others; None where
        # there are more, or nobody can tell.
        self.naming: Callable[[str, int], list[Module] | None] | None = None
        # Whether one of the files around this one, or it, has all of some words, where somebody knows the others.
        self.speaking: Callable[..., bool] | None = None
        # Whether a file changes the dictionary that another one binds to a name: neither that one nor this.
        self.changed: Callable[[str, str], bool] | None = None
        # Whether another file calls or decorates with a function of this one.
        self.registers: Callable[[str], bool] | None = None
        # The sources of what files around this one give to options of a name, where somebody knows the others; None
        # where nobody can tell.
        self.option: Callable[[str], frozenset[str] | None] | None = None
        # Whether the package of this name is the project's own, where somebody knows the project.
        self.own: Callable[[str], bool] | None = None
        # The modules of the project whose dotted names in a file begin with a text.
        self.modules_beginning_with: Callable[[str, str], list[str]] | None = None
        # Where the project defines what a file calls by a dotted name: path, text, and the name there.
        self.defined: Callable[[str, str], tuple[str, str, str] | None] | None = None
        self._shared: dict[Any, Any] = {}
        occurrences = Occurrences()
        self.names_under = occurrences.names
        self.attributes_under = occurrences.attributes

        facts = Facts(self.text, (CUTS.with_tree if with_tree else CUTS.alone)(self.text))
        self.skeleton = facts.skeleton
        self.units = facts.units
        self.scope = facts.scope
        self.set_displays = facts.set_displays
        self.classes = facts.classes

        loading = self.loading = Loading(facts, library, wanted)
        self.skipped = loading.skipped
        self.parsed = loading.parsed
        self.words = loading.words
        self.load = loading.load
        self.load_all = loading.load_all
        self.load_where = loading.load_where
        self.load_statements = loading.load_statements
        self.load_functions = loading.load_functions
        self.look_for = loading.look_for
        self.looking_for = loading.looking_for
        self.definition = loading.definition
        self.strings = loading.strings
        self.holding = loading.holding

        relations = self.relations = Relations(facts)
        self.parent = relations.parent
        self.ancestors = relations.ancestors
        self.contains = relations.contains
        self.deciding = relations.deciding
        self.is_dead = relations.is_dead
        self.statement = relations.statement
        self.block = relations.block
        self.enclosing_function = relations.enclosing_function
        self.enclosing_class = relations.enclosing_class
        self.enclosing_class_of_scope = relations.enclosing_class_of_scope
        self.scope_of = relations.scope_of
        self.inner_scope = relations.inner_scope
        self.order_of = relations.order_of
        self.unit_of = relations.unit_of
        self.is_mine = relations.is_mine

        values = self.values = Values(loading, relations)
        values.elsewhere = self._constant_of
        self.constant = values.constant
        self.elements = values.elements
        self.followed = values.followed

        resolver = self.resolver = values.resolver
        self.resolve = resolver.resolve
        self.attribute_values = resolver.attribute_values
        self.local_class = resolver.local_class
        self.base_names = resolver.base_names
        self.family = resolver.family
        self.ancestry = resolver.ancestry

        data = self.data = DataFiles(values, source.path)
        dictionaries = self.dictionaries = Dictionaries(values, self._function, data)
        dictionaries.elsewhere = self._dictionary_of
        self.dictionary = dictionaries.dictionary

        calls = self.every_call = Calls(dictionaries)
        self.call_at = calls.call_at
        self.calls_to = calls.calls_to
        self.calls_any = calls.calls_any
        self.calls_in = calls.calls_in
        self.method_calls = calls.method_calls
        self.assignments_to = calls.assignments_to
        self.assignments_written = calls.assignments_written
        self.assignments_called = calls.assignments_called
        self.assignments_in = calls.assignments_in
        self.holds = calls.holds
        self.meets = calls.meets

        declarations = self.declarations = Declarations(calls)
        self.declared = declarations.declared
        self.fields = declarations.fields
        self.registrations = declarations.registrations

        self.places = Places(loading, relations)
        self.span = self.places.span

    @property
    def mentions(self) -> Mentions:
        """What the words of this file may mean."""
        return self.loading.mentions

    @property
    def texts(self) -> list[str]:
        """The source of every unit without its docstring and the lines that are comments."""
        return self.loading.texts

    @property
    def calls(self) -> list[Call]:
        """The calls of the units that matter, in the order of the source."""
        return self.every_call.every()

    def function(self, name: str) -> tuple[Module, cst.FunctionDef] | None:
        """The top-level function that a resolved name means, in whichever file, and that file."""
        told = (self, name[2:]) if name.startswith("@.") else self.neighbour(name) if self.neighbour else None
        node = told[0].definition(told[1]) if told is not None else None
        return (told[0], node) if told is not None and node is not None else None

    def _constant_of(self, name: str) -> tuple[object] | None:
        """The constant that another file of the project gives to a dotted name: at top level, or in a class there."""
        found = self._bound_elsewhere(name)
        return found[0].constant(found[1], found[0].scope, None) if found is not None else None

    def _dictionary_of(self, name: str, depth: int) -> dict[str, Value] | None:
        """The entries of the dictionary that another file of the project gives to a dotted name, and no third one
        changes."""
        found = self._bound_elsewhere(name)
        if found is None or self.changed is None:
            return None
        other, node = found
        entries = other.dictionary(node, other.scope, None, depth)
        return None if not entries or self.changed(code(node), other.source.path) else entries

    def _bound_elsewhere(self, name: str) -> tuple[Module, cst.Name | cst.Attribute] | None:
        """The file of the project that binds a dotted name, at top level or in a class there, and what it is there."""
        if self.neighbour is None or name.partition(".")[0] in self.library.roots | STANDARD:
            return None
        found = self.neighbour(name)
        if found is None or found[1].count(".") > 1:
            return None
        other, last = found
        owner, _, attribute = last.rpartition(".")
        other.load_where(None, owner or last)
        name_node = cst.Name(owner or last)
        return other, cst.Attribute(name_node, cst.Name(attribute)) if owner else name_node

    def _function(self, name: str) -> tuple[Dictionaries, cst.FunctionDef] | None:
        found = self.function(name)
        return (found[0].dictionaries, found[1]) if found is not None else None

    def ask_for_stars(self, starred: Callable[[str, Sequence[str]], str]) -> None:
        """Let `starred` say what a name means that may come from one of the modules taken whole."""
        self.resolver.starred = starred

    def ask_for_shadows(self, shadowed: Callable[[str], bool]) -> None:
        """Let `shadowed` say whether a module of the project hides the one of the standard library that is meant."""
        self.resolver.shadowed = shadowed

    def shared(self, make: Callable[[Module], _Result]) -> _Result:
        """What `make` makes of this file, made once: the checks share what they infer."""
        if make not in self._shared:
            self._shared[make] = make(self)
        found: _Result = self._shared[make]
        return found

    def value(self, node: cst.BaseExpression) -> Value:
        """`node` as a value, looked up where it stands."""
        return Value(self.values, node, self.scope_of(node), self.order_of(node))

    def value_at(self, node: cst.BaseExpression, scope: Scope, order: int | None) -> Value:
        """`node` as a value, looked up in `scope` at `order`."""
        return Value(self.values, node, scope, order)

    def self_attribute(self, node: cst.Attribute, scope: Scope) -> list[Value]:
        """The values that the methods of the class give to `self.name`; none where it is not such an attribute."""
        return [Value(self.values, *given) for given in self.resolver.self_attribute(node, scope)]

    def calls_at(self, row: int, column: int) -> list[Call]:
        """The calls that start at `row` and `column` (as `Places.node_at` counts), the inner before the outer."""
        found = map(self.call_at, self.places.calls_at(row, column))
        return [call for call in found if call is not None]

    def imports(self, package: str) -> bool:
        """Whether the file imports `package`, or something of it."""
        if package not in self.text:
            return False
        return re.search(rf"^[ \t]*(?:import|from)\s+{re.escape(package)}\b", self.text, re.MULTILINE) is not None

    def release(self) -> None:
        """Let go of everything: the facts refer to each other, and what is inferred of them to itself; only a
        collection would find them otherwise, and it is off."""
        rooms = (
            self.loading.facts, self.loading, self.relations, self.values, self.resolver, self.data, self.dictionaries,
            self.every_call, self.declarations, self.places, self,
        )  # fmt: skip
        self.loading.release()
        for room in (*self._shared.values(), *rooms):
            getattr(room, "__dict__", {}).clear()
