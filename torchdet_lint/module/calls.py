"""The calls of a file -> what each calls, through aliases, `partial` and subclasses, and what it passes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.catalogue.conditions import condition_holds
from torchdet_lint.module import names
from torchdet_lint.module.tree import is_super
from torchdet_lint.module.values import Value
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.module.facts import Class, Unit
    from torchdet_lint.module.mappings.dictionaries import Dictionaries
    from torchdet_lint.module.names import Scope

_HANDS_ON = lazy(
    r"\s*def\s+__init__[ \t]*\(\s*self\s*,\s*\*(\w+)[^,*()]*,\s*\*\*(\w+)[^,*()]*\)[^\n]*:\n"
    r"(?:.*\n)*?\s*super[ \t]*\([^()]*\)\.__init__[ \t]*\(\s*\*\1\s*,\s*\*\*\2\s*\)"
)


class Assignment(NamedTuple):
    """`target = value`: one target of an assignment statement, or the `setattr` call that does the same."""

    node: cst.CSTNode
    target: cst.BaseExpression | None
    value: Value
    scope: Scope
    order: int
    names: tuple[str, ...]


class Call:
    """One call, with the qualified names of what is called (base classes of a class included) and its arguments."""

    __slots__ = ("_arguments", "attribute", "evaluator", "names", "node", "order", "own", "partial", "scope", "unit")

    def __init__(self, evaluator: Dictionaries, node: cst.Call, scope: Scope, unit: Unit, order: int) -> None:
        self.evaluator = evaluator
        self.node = node
        self.scope = scope
        self.unit = unit
        self.order = order
        function = node.func
        self.attribute = function.attr.value if isinstance(function, cst.Attribute) else ""
        self.own: tuple[str, ...] = ()
        self.names: tuple[str, ...] = ()
        self.partial: Call | None = None
        self._arguments: _Arguments | None = None

    @property
    def receiver(self) -> cst.BaseExpression | None:
        """`x` of `x.name(…)`."""
        function = self.node.func
        return function.value if isinstance(function, cst.Attribute) else None

    @property
    def arguments(self) -> _Arguments:
        """The arguments as they are bound, dictionaries in sight unpacked."""
        if self._arguments is None:
            self._arguments = _bind(self)
        return self._arguments

    @property
    def opaque(self) -> bool:
        """Whether `*args` or `**kwargs` that are not in sight may pass further arguments."""
        return self.arguments.opaque

    @property
    def parameters(self) -> tuple[str, ...] | None:
        """The parameters of the callee in order, or None where the catalogue does not know them."""
        signatures = self.evaluator.library.signatures
        inherits = bool(self.own) and self.own[0].startswith("@.")
        for name in (*self.own, *(self.names if inherits else ())):
            found = signatures.get(name.removesuffix(".__init__"))
            if found is not None:
                return found
        return None

    def argument(self, name: str, parameters: Sequence[str] | None = None) -> Value | None:
        """The value passed for `name`, by keyword or by its place in the callee's real signature; None: not passed."""
        arguments = self.arguments
        found = arguments.keywords.get(name)
        if found is not None:
            return found
        parameters = parameters or self.parameters
        if parameters is None or name not in parameters:
            return None
        position = parameters.index(name)
        if "*" in parameters[:position]:
            return None
        return arguments.positional[position] if position < len(arguments.positional) else None

    @property
    def bound(self) -> dict[str, Value]:
        """The arguments by the names of the parameters, as far as the catalogue knows these."""
        return dict(zip(self.parameters or (), self.arguments.positional, strict=False)) | self.arguments.keywords

    def amounting_to(
        self, names: tuple[str, ...], positional: tuple[Value, ...], keywords: dict[str, Value], opaque: bool
    ) -> Call:
        """The call of `names`, with these arguments, that this one hands on to."""
        made = Call(self.evaluator, self.node, self.scope, self.unit, self.order)
        made.own, made.names, made.attribute = names[:1], names, self.attribute
        made._arguments = _Arguments(positional, keywords, opaque)
        return made

    def keyword_node(self, name: str) -> cst.Arg | None:
        """The `name=value` of this very call, if it is written there."""
        for arg in self.node.args:
            if arg.keyword is not None and arg.keyword.value == name:
                return arg
        return None


class _Arguments(NamedTuple):
    positional: tuple[Value, ...]
    keywords: dict[str, Value]
    opaque: bool


def _bind(call: Call) -> _Arguments:
    """Positional and keyword arguments of `call`; those that a `partial` has bound come first."""
    evaluator, positional, keywords, opaque = call.evaluator, list[Value](), dict[str, Value](), False
    values = evaluator.values
    args = call.node.args
    if call.partial is not None:
        bound = call.partial.arguments
        positional = list(bound.positional[1:])
        keywords = dict(bound.keywords)
        opaque = bound.opaque
        if "functools.partial" in call.own:
            positional.insert(0, Value(values, args[0].value, call.scope, call.order))
            args = args[1:]
    if len(call.own) and call.own[0].endswith(".__init__") and not is_super(call.receiver):
        args = args[1:]
    starred = False
    for arg in args:
        if arg.star == "*":
            elements = values.elements(arg.value, call.scope, call.order)
            if elements is None:
                opaque = starred = True
            elif not starred:
                positional.extend(Value(values, element, call.scope, call.order) for element in elements)
        elif arg.star == "**":
            entries = evaluator.dictionary(arg.value, call.scope, call.order)
            if entries is None:
                opaque = True
            else:
                keywords.update(entries)
        elif arg.keyword is not None:
            keywords[arg.keyword.value] = Value(values, arg.value, call.scope, call.order)
        elif not starred:
            positional.append(Value(values, arg.value, call.scope, call.order))
    return _Arguments(tuple(positional), keywords, opaque)


class Calls:
    """The calls and assignments of one file by what they call and set."""

    def __init__(self, dictionaries: Dictionaries) -> None:
        self.dictionaries = dictionaries
        self.values = dictionaries.values
        self.resolver = self.values.resolver
        self.loading = self.resolver.loading
        self.facts = self.resolver.facts
        self.library = self.resolver.library
        self._calls: list[Call] = []
        self._call_of: dict[int, Call] = {}
        self._named = 0
        self._placed = 0
        self._assigned = 0
        self._by_name: dict[str, list[Call]] = {}
        self._by_attribute: dict[str, list[Call]] = {}
        self._calls_of: dict[Scope, list[Call]] = {}
        self._assigned_in: dict[Scope, list[tuple[cst.BaseExpression, cst.BaseExpression]]] = {}
        self._partials = "partial" in self.facts.text

    def every(self) -> list[Call]:
        """The calls of the units that matter, in the order of the source."""
        self.loading.wake()
        self._name_calls()
        return self._calls

    def taken(self) -> list[Call]:
        """The calls of the units that are parsed so far."""
        self._take()
        return self._calls

    def call_at(self, node: cst.CSTNode) -> Call | None:
        """The fact about the call `node`."""
        self._name_calls()
        return self._call_of.get(id(node))

    def calls_to(self, *wanted: str) -> Iterator[Call]:
        """Calls of what any of the qualified names stands for, through aliases, `partial` and subclasses."""
        if not self.loading.awake:
            self.loading.wake()
        if self._named < len(self.facts.calls):
            self._name_calls()
        if self._by_name.keys().isdisjoint(wanted):
            return
        found = {id(call): call for name in wanted for call in self._by_name.get(name, ())}
        yield from sorted(found.values(), key=lambda call: call.order)

    def calls_any(self, wanted: frozenset[str]) -> bool:
        """Whether `calls_to` would find anything."""
        self.loading.wake()
        self._name_calls()
        return not self._by_name.keys().isdisjoint(wanted)

    def method_calls(self, *wanted: str) -> Iterator[Call]:
        """Calls `x.name(…)` in which `x` is a value, not a module or a class."""
        self.loading.wake()
        self._name_calls()
        for name in sorted(wanted):
            for call in self._by_attribute.get(name, ()):
                if all("()" in known or known.startswith((".", "@.")) for known in call.own):
                    yield call

    def _take(self) -> None:
        """Make the calls of the units that were parsed since the last time."""
        sites, calls = self.facts.calls, self._calls
        while len(calls) < len(sites):
            call = Call(self.dictionaries, *sites[len(calls)])
            calls.append(call)
            self._call_of[id(call.node)] = call

    def _name_calls(self) -> None:
        """Resolve the callees of the calls that came since the last time; no unit is parsed for that alone."""
        naming, self.resolver.naming = self.resolver.naming, True
        while self._named < len(self.facts.calls):
            self._take()
            call = self._calls[self._named]
            self._named += 1
            self._name_call(call)
        self.resolver.naming = naming

    def _name_call(self, call: Call) -> None:
        function = call.node.func
        call.own = self.resolver.resolve(function, call.scope, call.order)
        if "functools.partial" in call.own and len(call.node.args) > 0 and not call.node.args[0].star:
            call.partial = self._partial_behind(call.node.args[0].value, call)
            return
        call.partial = self._partial_behind(function, call)
        wide: list[str] = []
        for name in call.own:
            name = name.removesuffix(".__init__")
            class_ = self.resolver.local_class(name)
            decided = class_ is not None and self._decides(class_)
            wide.extend([name] if decided else self.resolver.ancestry(name))
        call.names = tuple(dict.fromkeys(wide))
        for name in call.names:
            self._by_name.setdefault(name, []).append(call)
        if call.attribute:
            self._by_attribute.setdefault(call.attribute, []).append(call)

    def _decides(self, class_: Class) -> bool:
        """Whether its own `__init__`, or one of a base in the file, decides what reaches the library's: one that hands
        on `*args` and `**kwargs` untouched does not."""
        for relative in self.resolver.family(class_):
            if "__init__" in relative.methods:
                texts = [
                    self.facts.skeleton.text(unit.piece) for unit in relative.units if unit.piece.name == "__init__"
                ]
                passed = _HANDS_ON.match(texts[0]) if len(texts) == 1 else None
                if passed is None or len(re.findall(rf"\b{passed[2]}\b", texts[0])) != 2:
                    return True
        return False

    def _partial_behind(self, function: cst.BaseExpression, call: Call) -> Call | None:
        if not self._partials:
            return None
        if isinstance(function, cst.Call):
            inner: cst.CSTNode = function
        else:
            value = self.values.followed(function, call.scope, call.order)
            if value is None:
                return None
            inner = value.node
        if not isinstance(inner, cst.Call) or inner is call.node:
            return None
        self._take()
        made = self._call_of.get(id(inner))
        if made is None or "functools.partial" not in self.resolver.resolve(inner.func, made.scope, made.order):
            return None
        return made

    def assignments_written(self, target: str) -> Iterator[Assignment]:
        """Assignments whose target is the member `target` (see `names.member`), whatever it stands for: `args.seed`."""
        self.loading.wake()
        last = target.rpartition(".")[2]
        for statement, node, value, scope, order in [
            *self.facts.assigned.get(last, ()), *self.facts.entered.get(target, ())
        ]:  # fmt: skip
            if names.member(node) == target:
                yield Assignment(statement, node, Value(self.values, value, scope, order), scope, order, ())

    def assignments_called(self, attribute: str) -> Iterator[Assignment]:
        """Assignments to an attribute of this name, of whatever object: `args.seed`, `options.seed`."""
        self.loading.wake()
        for statement, node, value, scope, order in list(self.facts.assigned.get(attribute, ())):
            if isinstance(node, cst.Attribute):
                yield Assignment(statement, node, Value(self.values, value, scope, order), scope, order, ())

    def assignments_to(self, *wanted: str) -> Iterator[Assignment]:
        """Assignments whose target is any of the qualified attribute names, `setattr` with a literal name included, and
        with one that goes through the constants of a loop."""
        self.loading.wake()
        last = {name.rpartition(".")[2] for name in wanted}
        for word in sorted(last & self.facts.assigned.keys()):
            for statement, target, value, scope, order in list(self.facts.assigned[word]):
                found = tuple(name for name in self.resolver.resolve(target, scope, order) if name in wanted)
                if found:
                    yield Assignment(statement, target, Value(self.values, value, scope, order), scope, order, found)
        for call in list(self.calls_to("builtins.setattr")):
            if len(call.node.args) != 3:
                continue
            base, key, given = (argument.value for argument in call.node.args)
            attribute = self.values.constant(key, call.scope, call.order)
            settings: Iterable[tuple[object, Value]] = (
                [(attribute[0], Value(self.values, given, call.scope, call.order))]
                if attribute is not None
                else self.values.looped_with(key, given, call.scope, call.order)
            )
            for name, value_ in settings:
                if name not in last:
                    continue
                bases = self.resolver.resolve(base, call.scope, call.order)
                full = [self.library.canonical(f"{one}.{name}") for one in bases]
                found = tuple(one for one in full if one in wanted)
                if found:
                    yield Assignment(call.node, None, value_, call.scope, call.order, found)

    def calls_in(self, scope: Scope) -> list[Call]:
        """The calls that stand in the function, class or module scope `scope` itself, comprehensions included."""
        self._take()
        while self._placed < len(self._calls):
            call = self._calls[self._placed]
            self._placed += 1
            self._calls_of.setdefault(call.scope.function, []).append(call)
        return self._calls_of.get(scope, [])

    def assignments_in(self, scope: Scope) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
        """Target and value of the assignments that stand in `scope` itself."""
        assignments = self.facts.assignments
        while self._assigned < len(assignments):
            _, target, value, where, _ = assignments[self._assigned]
            self._assigned += 1
            self._assigned_in.setdefault(where.function, []).append((target, value))
        yield from list(self._assigned_in.get(scope, ()))

    def holds(self, call: Call, condition: Condition, parameters: Sequence[str] = ()) -> bool:
        """Whether an argument of `call` meets `condition`."""
        value = call.argument(condition.argument, parameters or None)
        if value is None:
            return condition_holds(condition, passed=False, opaque=call.opaque, known=False, value=None)
        values = [value.constant] if value.known else self.values.looped(value.node, value.scope, value.order)
        if values:
            return any(condition_holds(condition, passed=True, opaque=False, known=True, value=one) for one in values)
        return condition_holds(condition, passed=True, opaque=False, known=False, value=None)

    def meets(self, call: Call, conditions: Sequence[Condition], parameters: Sequence[str] = ()) -> bool:
        """Whether `call` meets all of `conditions`."""
        return all(self.holds(call, condition, parameters) for condition in conditions)
