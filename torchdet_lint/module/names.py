"""Names: scopes, what binds a name in them, and which dotted names of which libraries an expression stands for.

The only room that knows scopes and aliases. A *qualified name* is a dotted string: `torch.nn.LSTM` (canonical, see
`Library.canonical`), `builtins.hash`, `@.helper` for a definition of the same file, `.data.load` for a relative
import, and `torch.Generator().seed` for an attribute of what a call returned.
"""

from __future__ import annotations

import builtins
import functools
from typing import TYPE_CHECKING, Literal, NamedTuple

import libcst as cst

from torchdet_lint.catalogue.schema import reported_as, status_at
from torchdet_lint.prefilter.triggers import Triggers, op_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchdet_lint.catalogue.schema import Catalogue, Condition, Draw, Op, Rule, Runner, Seed, Spelling

BUILTINS = frozenset(dir(builtins))

BindingKind = Literal["import", "assign", "unpack", "augment", "parameter", "loop", "with", "def", "class", "other"]
ScopeKind = Literal["module", "class", "function", "comprehension"]


class Operation(NamedTuple):
    """A spelling of an op, the code that reports it and its status in the target release."""

    code: str
    op: Op
    spelling: Spelling
    status: str
    method: bool


class Library:
    """The catalogue compiled for look-ups: canonical names, signatures, base classes, and the words that matter."""

    def __init__(self, catalogue: Catalogue, triggers: Triggers | None = None) -> None:
        self.catalogue = catalogue
        self.facts = catalogue.facts
        self._canonical: dict[str, str] = {}
        self._meant: dict[str, frozenset[str]] = {}
        self.fills = frozenset(word for rule in catalogue.rules.values() for word in rule.words.get("fills", ()))
        rows = (*self.facts.ops, *(op for rule in catalogue.rules.values() for op in rule.ops))
        self.layers = frozenset(
            spelling.name.rpartition(".")[2] for op in rows for spelling in op.spellings if spelling.forward
        )
        self._words: dict[str, Meant | None] = {}
        self._settings = frozenset(
            name for rule in catalogue.rules.values() for row in rule.settings for name in row.names
        )
        self.signatures = self.facts.signatures
        self.bases = self.facts.bases
        self._operations: dict[tuple[int, int], dict[str, list[Operation]]] = {}
        self.known = frozenset(self._known_names())
        self.roots = frozenset(name.partition(".")[0] for name in self.known)
        self.triggers = triggers or Triggers(catalogue)

    def canonical(self, name: str) -> str:
        """The one spelling under which the catalogue knows `name`: `pytorch_lightning.Trainer` and its like."""
        found = self._canonical.get(name)
        if found is None:
            found = self._canonical[name] = self._canonicalise(name)
        return found

    def _canonicalise(self, name: str) -> str:
        table = self.facts.canonical
        for _ in range(4):
            parts = name.split(".")
            for end in range(len(parts), 0, -1):
                prefix = ".".join(parts[:end])
                if prefix in table:
                    name = ".".join([table[prefix], *parts[end:]])
                    break
            else:
                return name
        return name

    def operations(self, target: tuple[int, int]) -> dict[str, list[Operation]]:
        """The ops that vary in release `target` of torch, by name: a method of a tensor is found under `.name`, an op
        that is found where an instance is called under `name()`."""
        if target not in self._operations:
            found: dict[str, list[Operation]] = {}
            rows = [(op.rule, op) for op in self.facts.ops]
            rows += [(op.rule or code, op) for code, rule in self.catalogue.rules.items() for op in rule.ops]
            for rule, op in rows:
                status = status_at(op, target)
                if op.aggregate or op.silent_because or status in ("absent", "deterministic"):
                    continue
                code = rule or reported_as(op, status)
                for spelling in op.spellings:
                    owner, _, last = spelling.name.rpartition(".")
                    method = owner.rpartition(".")[2][:1].isupper()
                    key = f".{last}" if method else spelling.name + ("()" if spelling.forward else "")
                    found.setdefault(key, []).append(Operation(code, op, spelling, status, method))
            self._operations[target] = found
        return self._operations[target]

    @functools.lru_cache(maxsize=8)  # noqa: B019
    def instances(self, target: tuple[int, int]) -> frozenset[str]:
        """The classes whose instances are called for an op that varies in release `target`."""
        return frozenset(name[:-2] for name in self.operations(target) if name.endswith("()"))

    def meant(self, word: str) -> Meant | None:
        """What the catalogue means by `word`; None for a word that may mean something wherever it stands."""
        if word not in self._words:
            full = self.triggers.names.get(word)
            self._words[word] = None if full is None else Meant.of(full, self.canonical, self._settings)
        return self._words[word]

    @functools.cached_property
    def seeding(self) -> frozenset[str]:
        """The names of everything that seeds a global generator."""
        return frozenset(name for seed in self.facts.seeds for name in seed.names)

    def meant_by(self, rule: Rule) -> frozenset[str]:
        """The names in the rows of calls of `rule`."""
        if rule.code not in self._meant:
            self._meant[rule.code] = frozenset(name for row in rule.calls for name in row.names)
        return self._meant[rule.code]

    def ancestors(self, name: str) -> Iterator[str]:
        """`name` and the library classes it derives from, nearest first."""
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            yield name
            name = self.bases.get(name, "")

    def _known_names(self) -> Iterator[str]:
        for rule in self.catalogue.rules.values():
            for row in rule.calls:
                yield from row.names
            for setting in rule.settings:
                yield from setting.names
            yield from op_names(rule.ops)
        yield from op_names(self.facts.ops)
        rows: tuple[Draw | Seed | Runner, ...] = (*self.facts.draws, *self.facts.seeds, *self.facts.runners)
        for draw in rows:
            yield from draw.names
        yield from self.facts.signatures
        yield from self.facts.bases
        yield from self.facts.canonical


class Meant(NamedTuple):
    """The canonical names that end in one word, whether any is a method (of a class, or of what a call returns), and
    whether any is a setting, which is assigned where the others are called."""

    names: frozenset[str]
    method: bool
    setting: bool

    @classmethod
    def of(cls, names: frozenset[str], canonical: Callable[[str], str], settings: frozenset[str]) -> Meant:
        """Of the names as the catalogue has them."""
        owners = [name.rpartition(".")[0] for name in names]
        method = any("()" in owner or owner.rpartition(".")[2][:1].isupper() for owner in owners)
        return cls(frozenset(map(canonical, names)), method, not settings.isdisjoint(names))


class Binding(NamedTuple):
    """One thing that gives a name its value in a scope.

    `value` is the expression bound (for `unpack` and `loop` the one that is unpacked or iterated), `target` the
    qualified name of an import, `order` its place in the source (comparable inside a file).
    """

    kind: BindingKind
    order: int
    node: cst.CSTNode | None = None
    value: cst.BaseExpression | None = None
    target: str = ""
    conditional: bool = False
    looped: bool = False
    path: tuple[int, ...] = ()


class Scope:
    """A lexical scope; comprehensions and lambdas have their own."""

    __slots__ = ("bindings", "kind", "load", "name", "node", "outer", "outside", "stars")

    def __init__(self, kind: ScopeKind, outer: Scope | None, node: cst.CSTNode | None = None, name: str = "") -> None:
        self.kind = kind
        self.outer = outer
        self.node = node
        self.name = name
        self.bindings: dict[str, list[Binding]] = {}
        self.outside: dict[str, str] = {}
        self.stars: list[str] = []
        self.load: Callable[[str], None] | None = None

    def bind(self, name: str, binding: Binding) -> None:
        """Record that `binding` binds `name` here, or where `global` and `nonlocal` say."""
        scope = self
        where = self.outside.get(name)
        if where == "global":
            while scope.outer is not None:
                scope = scope.outer
            binding = binding._replace(conditional=True, looped=True)
        elif where == "nonlocal" and self.outer is not None:
            scope = self.outer.home(name) or self.outer
            binding = binding._replace(conditional=True, looped=True)
        scope.bindings.setdefault(name, []).append(binding)

    def home(self, name: str) -> Scope | None:
        """The scope whose binding of `name` is seen from here, or None."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if scope.load is not None:
                scope.load(name)
            if name in scope.bindings and (first or scope.kind != "class") and name not in scope.outside:
                return scope
            first = first and scope.kind == "comprehension"
            scope = scope.outer
        return None

    @property
    def function(self) -> Scope:
        """The innermost function, class or module scope: where a statement's names live."""
        scope = self
        while scope.kind == "comprehension" and scope.outer is not None:
            scope = scope.outer
        return scope

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope


def live(bindings: list[Binding], order: int | None) -> list[Binding]:
    """The bindings that may be the one seen at `order` (None: seen later, from another scope).

    What runs on every path hides what stood before it; what stands in a loop may come round again.
    """
    if order is not None:
        earlier = [binding for binding in bindings if binding.order < order or binding.looped]
        bindings = earlier or bindings
    first = 0
    for index, binding in enumerate(bindings):
        if not binding.conditional and (order is None or binding.order < order):
            first = index
    return bindings[first:]


@functools.lru_cache(maxsize=1024)
def made(name: str) -> cst.BaseExpression:
    """The expression that a dotted name is."""
    root, *attributes = name.split(".")
    node: cst.BaseExpression = cst.Name(root)
    for attribute in attributes:
        node = cst.Attribute(node, cst.Name(attribute))
    return node


def dotted(node: cst.BaseExpression) -> str:
    """`a.b.c` for a chain of names, else the empty string."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def matches(value: object, wanted: object) -> bool:
    """Equality in which `True` is not `1` and a tuple equals the list of its elements."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, (tuple, list)) and isinstance(wanted, (tuple, list)):
        return len(value) == len(wanted) and all(map(matches, value, wanted))
    return value == wanted and (value is None) == (wanted is None)


def condition_holds(condition: Condition, *, passed: bool, opaque: bool, known: bool, value: object) -> bool:
    """Whether an argument meets `condition`; an argument that is not passed has the condition's default."""
    test = condition.test
    if not passed:
        if opaque:
            return condition.opaque
        if test in ("absent", "missing", "given"):
            return test != "given"
        known, value = True, condition.default
    if test == "absent":
        return False
    if test == "missing":
        return known and value is None
    if test == "given":
        return not (known and value is None)
    if not known:
        return test in ("possible", "unless")
    if test in ("truthy", "falsy"):
        return bool(value) is (test == "truthy")
    return any(matches(value, wanted) for wanted in condition.values) is (test not in ("not-in", "unless"))
