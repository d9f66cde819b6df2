"""Names: scopes, what binds a name in them, and which dotted names of which libraries an expression stands for.

The only room that knows scopes and aliases. A *qualified name* is a dotted string: `torch.nn.LSTM` (canonical, see
`Library.canonical`), `builtins.hash`, `@.helper` for a definition of the same file, `.data.load` for a relative
import, and `torch.Generator().seed` for an attribute of what a call returned.
"""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

import libcst as cst

from torchdet_lint.catalogue import reported_as, status_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchdet_lint.catalogue import Catalogue, Condition, Draw, Op, Runner, Seed, Spelling

BUILTINS = frozenset(dir(builtins))
IDENTIFIER = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"""["']([\w+-]+)["']""")

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

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.facts = catalogue.facts
        self._canonical: dict[str, str] = {}
        self.signatures = self.facts.signatures
        self.bases = self.facts.bases
        self._operations: dict[tuple[int, int], dict[str, list[Operation]]] = {}
        self.known = frozenset(self._known_names())
        self.triggers = self._triggers()

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
            yield from _op_names(rule.ops)
        yield from _op_names(self.facts.ops)
        rows: tuple[Draw | Seed | Runner, ...] = (*self.facts.draws, *self.facts.seeds, *self.facts.runners)
        for draw in rows:
            yield from draw.names
        yield from self.facts.signatures
        yield from self.facts.bases
        yield from self.facts.canonical
        yield from self.facts.tensor_functions

    def _triggers(self) -> dict[str, tuple[_Need, ...]]:
        """Word -> what else must stand in the file for it to mean anything: of any one need a word of each set."""
        aliases: dict[str, set[str]] = {}
        for alias, target in self.facts.canonical.items():
            aliases.setdefault(_root(target), set()).add(_root(alias))
        for derived, base in self.facts.bases.items():
            aliases.setdefault(_root(base), set()).add(_root(derived))
        free = set(self.facts.triggers)
        rows: list[tuple[str, _Need]] = [(name, ()) for name in self.facts.bases]
        ops = [*self.facts.ops]
        for rule in self.catalogue.rules.values():
            if rule.scope != "project":
                free.update(rule.triggers)
                rows.extend((name, ()) for call in rule.calls for name in call.names)
                rows.extend((name, ()) for setting in rule.settings for name in setting.names)
                ops.extend(rule.ops)
        rows.extend((name, _values_of(op)) for op in ops for name in _op_names((op,)))
        found: dict[str, dict[_Need, None]] = {}
        for name, need in rows:
            word = name.rstrip("()").rpartition(".")[2]
            root = _root(name)
            if root == "builtins":
                free.add(word)
            elif word not in free:
                full = (frozenset({root, *aliases.get(root, ())}), *need)
                found.setdefault(word, {})[full] = None
        return {word: tuple(needs) for word, needs in found.items() if word not in free} | dict.fromkeys(free, ((),))

    def triggers_in(self, text: str) -> frozenset[str]:
        """The words of a file's `text` for which a rule wants the statement that holds them parsed."""
        present = set(IDENTIFIER.findall(text))
        candidates = present & self.triggers.keys()
        if any(len(need) > 1 for word in candidates for need in self.triggers[word]):
            present.update(f"'{word}'" for word in _QUOTED.findall(text))
        return frozenset(
            word
            for word in candidates
            if any(all(not present.isdisjoint(some) for some in need) for need in self.triggers[word])
        )


_Need = tuple[frozenset[str], ...]


def _values_of(op: Op) -> _Need:
    """For each argument that must be one of a few texts, and is none of them by default, these texts in quotes."""
    need: list[frozenset[str]] = []
    for condition in op.when:
        values = [value for value in condition.values if isinstance(value, str)]
        if condition.test == "in" and len(values) == len(condition.values) and condition.default not in values:
            need.append(frozenset(f"'{value}'" for value in values))
    return tuple(need)


def _op_names(ops: Iterable[Op]) -> Iterator[str]:
    for op in ops:
        if not (op.aggregate or op.silent_because):
            for spelling in op.spellings:
                yield spelling.name


def _root(name: str) -> str:
    return name.partition(".")[0]


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
