"""Switches of torch and of the frameworks around it -> those that are set against determinism."""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.catalogue.conditions import matches
from torchdet_lint.checks import table
from torchdet_lint.checks.kept_defaults import default_of, keeps, keeps_attribute
from torchdet_lint.checks.trace import origins
from torchdet_lint.dataflow.handing.handing_on import HandingOn
from torchdet_lint.dataflow.syntax import last_word, nodes, option_added
from torchdet_lint.finding import RelatedNode, Replace, SetArgument, Violation
from torchdet_lint.inference.narrowing import tests_around
from torchdet_lint.module.tree import children
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from torchdet_lint.catalogue.rules import Call as Row
    from torchdet_lint.catalogue.rules import Rule, Setting
    from torchdet_lint.finding import Applicability, Severity
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Assignment, Call, Module, Value
    from torchdet_lint.module.names import Scope

_DISPLAYED = lazy(r"""["'](\w+)["']\s*:\s*([\w.]+)""")
_TUNED_BY_DEFAULT = lazy(r"""\bdefault\s*=\s*["'](max-autotune[\w-]*)["']""")
_INDUCTOR_FOLLOWS_THE_MODE = (2, 10)
# What asks for a setting in other words: who wants convolutions to be timed wants all algorithms.
_SPEEDS = {"deterministic": ("benchmark",)}
_SAID_BY_CALLS = "every call in sight gives this value"


def against_determinism(module: Module, rule: Rule) -> Iterator[Violation]:
    """An assignment or an argument that a row lists, where no option of the program's own decides it."""
    for assignment, setting in table.assignments(module, rule):
        given = assignment.value
        if _restores(module, given, setting.names[0]) or module.shared(_Around).set_right(assignment, setting):
            continue
        if not given.known and _stays_right(module, given, setting):
            continue
        by_calls = table.gives_wrong(module, given, setting)
        if not table.may_be_asked_for(module, assignment.node, () if by_calls else _unknown([given])):
            continue
        details = {"setting": setting.names[0].rpartition(".")[2], "value": given.source}
        option = _option_asking(module, assignment, details["setting"])
        alone = not (isinstance(assignment.node, cst.Assign) and len(assignment.node.targets) > 1)
        # What a walrus in the value binds is read elsewhere.
        alone = alone and not isinstance(assignment.node, cst.AugAssign) and ":=" not in module.code(given.node)
        alone = alone and not _is_for_several(assignment)
        change = (Replace(given.node, setting.replacement),) if alone else ()
        variant = "" if given.known or by_calls else "unknown"
        if given.known and option and "unknown" in rule.messages:
            variant, details["value"] = "unknown", option
        chosen = by_calls or option or module.shared(_Around).set_otherwise(assignment, setting)
        asked: Applicability | None = "unsafe" if chosen else None
        related = (RelatedNode(given.node, _SAID_BY_CALLS),) if by_calls else ()
        yield Violation(assignment.node, details, variant, changes=change, applicability=asked, related=related)
    for call, row in itertools.chain(table.calls(module, rule, by_callers=True), _handed_on(module, rule)):
        passed = [call.argument(condition.argument, row.parameters) for condition in row.when]
        values = [value for value in passed if value is not None]
        by_calls = not module.meets(call, row.when, row.parameters)
        unknown = () if by_calls else _unknown(values)
        if not table.may_be_asked_for(module, call.node, unknown) or _puts_back(module, call):
            continue
        wanted = {**_set_right_too(module, rule, call), **row.give}
        changes = tuple(SetArgument(call.node, name, text) for name, text in wanted.items())
        details = {"call": module.code(call.node.func), "value": values[0].source if values else "", **row.details}
        said: dict[str, Any] = {"related": (RelatedNode(call.node, _SAID_BY_CALLS),), "applicability": "unsafe"}
        unsure = f"{row.variant}-unknown"
        variant = unsure if unknown and unsure in rule.messages else row.variant
        yield Violation(call.node, details, variant, row.severity, changes=changes, **(said if by_calls else {}))


def _handed_on(module: Module, rule: Rule) -> Iterator[tuple[Call, Row]]:
    """The calls of classes and functions of the project that hand an argument on to a class of a row, or derive from
    it, each with that row."""
    rows = [row for row in rule.calls if all(_is_class(name) for name in row.names)]
    handing = module.shared(HandingOn)
    for word in sorted({condition.argument for row in rows for condition in row.when}):
        asking = [row for row in rows if any(condition.argument == word for condition in row.when)]
        for call in handing.passing(word, frozenset(name for row in asking for name in row.names)):
            for row in asking:
                if not set(row.names).isdisjoint(call.names) and module.meets(call, row.when, row.parameters):
                    yield call, row
                    break


def _is_class(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    return last[:1].isupper() and not owner.endswith("()")


def _set_right_too(module: Module, rule: Rule, call: Call) -> dict[str, str]:
    """What other rows of `rule` give the arguments that `call` is passed, where those are wrong as well."""
    rows = [
        row
        for row in rule.calls
        if not set(row.names).isdisjoint(call.names)
        and all(call.argument(condition.argument, row.parameters) is not None for condition in row.when)
        and module.meets(call, row.when, row.parameters)
    ]
    return {name: text for row in rows for name, text in row.give.items()}


def _is_for_several(assignment: Assignment) -> bool:
    """Whether what is assigned goes to each setting that a loop names: `setattr(cudnn, name, True)`."""
    node, given = assignment.node, assignment.value
    if not isinstance(node, cst.Call) or given.node is not node.args[2].value:
        return False
    return given.evaluator.constant(node.args[1].value, assignment.scope, assignment.order) is None


class _Around:
    """What else a file does with settings."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._right: dict[tuple[str, ...], dict[Scope, int]] = {}
        self._chosen: dict[tuple[str, ...], set[tuple[int, bool]]] = {}
        self._passed: dict[str, list[cst.BaseExpression]] | None = None
        self._kept: dict[str, frozenset[str]] = {}

    def set_right(self, assignment: Assignment, setting: Setting) -> bool:
        """Whether an option that asks for determinism sets it right afterwards, in the same function."""
        if setting.names not in self._right:
            last = self._right[setting.names] = {}
            for other in self.module.assignments_to(*setting.names):
                value = other.value
                right = value.known and not any(matches(value.constant, wrong) for wrong in setting.values)
                if right and table.asked_for(self.module, other.node):
                    last[other.scope] = max(other.order, last.get(other.scope, 0))
        return self._right[setting.names].get(assignment.scope, 0) > assignment.order

    def set_otherwise(self, assignment: Assignment, setting: Setting) -> bool:
        """Whether another branch of an `if` around `assignment` sets it right: the program chooses there."""
        if setting.names not in self._chosen:
            arms = self._chosen[setting.names] = set()
            for other in self.module.assignments_to(*setting.names):
                if other.value.known and not any(matches(other.value.constant, wrong) for wrong in setting.values):
                    arms.update((id(test), holds) for test, holds in tests_around(self.module, other.node))
        arms = self._chosen[setting.names]
        return any((id(test), not holds) in arms for test, holds in tests_around(self.module, assignment.node))

    def kept_as(self, name: str) -> frozenset[str]:
        """The qualified names of what calls pass by the keyword `name`."""
        if self._passed is None:
            self._passed = {}
            for call in self.module.calls:
                for arg in call.node.args:
                    if arg.keyword is not None:
                        self._passed.setdefault(arg.keyword.value, []).append(arg.value)
        if name not in self._kept:
            passed = self._passed.get(name, ())
            self._kept[name] = frozenset(full for one in passed for full in self.module.resolve(one))
        return self._kept[name]

    @functools.cached_property
    def displayed(self) -> frozenset[tuple[str, str]]:
        """The keys of entries that are dotted names, with each word of these: `"benchmark": cudnn.benchmark`."""
        return frozenset(
            (key, word) for key, dotted in _DISPLAYED.findall(self.module.text) for word in dotted.split(".")
        )


def _restores(module: Module, value: Value, setting: str) -> bool:
    """Whether `value` is what the setting was before: read from it, or kept under that name by another call."""
    if setting in value.names:
        return True
    node = value.node
    name = node.attr.value if isinstance(node, cst.Attribute) else node.value if isinstance(node, cst.Name) else ""
    if not name:
        return False
    around = module.shared(_Around)
    if (name, setting.rpartition(".")[2]) in around.displayed:
        return True
    return setting in around.kept_as(name)


def _stays_right(module: Module, value: Value, setting: Setting) -> bool:
    """Whether `value` is a parameter, or an attribute of one, that each call in sight, of which there is one, leaves at
    a default that is right, or gives what is evidently right."""

    def is_right(constant: object) -> bool:
        return not any(matches(constant, wrong) for wrong in setting.values)

    return keeps(module, value, lambda given: given.known and is_right(given.constant)) or keeps_attribute(
        module, value, is_right
    )


def _puts_back(module: Module, call: Call) -> bool:
    """Whether what another call of the same has switched is put back: where a test or a context is left, in a
    `finally`, or as the last that a test does."""
    inside = False
    statement = module.statement(call.node)
    for around in module.ancestors(call.node):
        inside = inside or isinstance(around, cst.Finally)
        if isinstance(around, cst.FunctionDef):
            if module.library.facts.conventions.leaves.fullmatch(around.name.value):
                return True
            ends = around.name.value.startswith("test") and _only_tells_below(around, statement)
            return (inside or ends) and any(
                other.scope is call.scope and other.order < call.order for other in module.calls_to(*call.names)
            )
    return False


def _only_tells_below(test: cst.FunctionDef, statement: cst.CSTNode) -> bool:
    """Whether `statement` is the last of `test`, but for those that only print or assert what is there by then."""
    body = list(test.body.body)
    place = next((at for at, one in enumerate(body) if one is statement), None)
    return place is not None and all(
        isinstance(line, cst.SimpleStatementLine) and all(map(_only_tells, line.body)) for line in body[place + 1 :]
    )


def _only_tells(statement: cst.BaseSmallStatement) -> bool:
    call = statement.value if isinstance(statement, cst.Expr) else None
    shown = [statement.test] if isinstance(statement, cst.Assert) else []
    if isinstance(call, cst.Call) and last_word(call.func) == "print":
        shown = [arg.value for arg in call.args]
    return bool(shown) and not any(isinstance(node, cst.Call) for one in shown for node in nodes(one))


def _option_asking(module: Module, assignment: Assignment, setting: str) -> str:
    """The option of the program that asks for the setting by its name, as it is written: what is assigned runs only
    where it does, or is its value, `args.cudnn_benchmark`, or an option that nothing else in the file reads."""
    given = assignment.value
    if not given.known and (setting in given.source.lower() or _is_read_once(module, given.node)):
        return given.source
    tests = (" ".join(module.code(test).split()) for test, holds in tests_around(module, assignment.node) if holds)
    return next((test for test in tests if any(word in test for word in (setting, *_SPEEDS.get(setting, ())))), "")


def _is_read_once(module: Module, node: cst.BaseExpression) -> bool:
    """Whether `node` is an attribute, `args.fast`, that stands nowhere else in the file."""
    if not isinstance(node, cst.Attribute):
        return False
    return len(re.findall(rf"\.{node.attr.value}\b", module.text)) == 1


def _unknown(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(value for value in values if not value.known)


def autotuned_kernels(module: Module, rule: Rule) -> Iterator[Violation]:
    """Kernels that are chosen by timing them, where Inductor's deterministic option does not forbid it."""
    compiling = [*module.method_calls("compile"), *_decorators(module)]
    patching: list[Call] = []
    for call, row in table.calls(module, rule):
        if row.variant != "triton":
            (patching if row.variant else compiling).append(call)
        elif (configs := call.argument("configs", row.parameters)) is not None and (
            _several(module, configs) and _sums(module, call, rule.words["sums"])
        ):
            yield Violation(call.node, {}, row.variant)
    if not _inductor_is_deterministic(module):
        follows = _follows_the_mode(module)
        for violation in _inductors_own(module, rule, compiling, patching):
            yield violation._replace(switchable=follows)


def _inductors_own(
    module: Module, rule: Rule, compiling: Iterable[Call], patching: Iterable[Call]
) -> Iterator[Violation]:
    """What lets Inductor choose by timing."""
    for call in compiling:
        yield from _compiled(module, rule, call)
    for call in patching:
        yield from _tuned(rule, call, _patched(module, call))
    yield from _defaults(module)
    yield from _options(module, rule)


def _decorators(module: Module) -> Iterator[Call]:
    """The decorators `partial(torch.compile, …)`, as the calls of it that they amount to."""
    for call in module.calls if "partial" in module.text and "compile" in module.text else ():
        given = call.arguments.positional if "functools.partial" in call.own else ()
        if isinstance(module.parent(call.node), cst.Decorator) and given and "torch.compile" in given[0].names:
            yield call.amounting_to(given[0].names, given[1:], call.arguments.keywords, opaque=call.opaque)


def _defaults(module: Module) -> Iterator[Violation]:
    """A field of a class, in a file that makes dataclasses, whose default is a mode that autotunes."""
    for node in module.strings("max-autotune") if "max-autotune" in module.text else ():
        field = module.parent(node)
        if not isinstance(field, cst.AnnAssign) or field.value is not node or not module.imports("dataclasses"):
            continue
        mode = module.value(node).constant
        holder = module.enclosing_class(node) if module.enclosing_function(node) is None else None
        if holder is not None and isinstance(mode, str) and mode.startswith("max-autotune"):
            off = _off_by_default(module, holder)
            details = {"mode": mode, "field": module.code(field.target), "switch": off}
            severity: Severity | None = "note" if off else None
            yield Violation(node, details, "off" if off else "default", severity)


def _off_by_default(module: Module, holder: Class) -> str:
    """The field of a class that says whether anything is compiled, if it says no by default."""
    module.load_where(lambda text: "compile" in text, "compile")
    for name, bindings in sorted(holder.scope.bindings.items()):
        given = [one.value for one in bindings if one.kind == "assign" and one.value is not None]
        if "compile" in name and given and all(module.value(value).constant is False for value in given):
            return name
    return ""


def _options(module: Module, rule: Rule) -> Iterator[Violation]:
    """Inductor's own options, set by assignment."""
    for assignment, setting in table.assignments(module, rule):
        if table.may_be_asked_for(module, assignment.node, ()):
            name = setting.names[0].rpartition(".")[2]
            change = Replace(assignment.value.node, setting.replacement)
            yield Violation(assignment.node, {"option": name}, "option", changes=(change,))


def _compiled(module: Module, rule: Rule, call: Call) -> Iterator[Violation]:
    """`torch.compile` with a mode or options that autotune."""
    mode = call.argument("mode")
    given = list(origins(module, mode)) if mode is not None else []
    tuned = [str(one.constant) for one in given if _autotunes(one)]
    if tuned:
        change = SetArgument(call.node, "mode", '"default"')
        yield Violation(call.node, {"mode": tuned[0]}, changes=(change,))
    for one in given:
        if default := _default_of_option(module, one) or _default_of_parameter(module, one):
            details = {"mode": default, "field": one.source, "switch": ""}
            yield Violation(call.node, details, "default")
            return
    options = call.argument("options")
    yield from _tuned(rule, call, _entries(module, options) if options is not None else {})


def _default_of_option(module: Module, value: Value) -> str:
    """The mode that autotunes which the option `args.mode` has by default, where the file adds that option."""
    if not isinstance(value.node, cst.Attribute):
        return ""
    default = _TUNED_BY_DEFAULT.search(option_added(module.text, value.node.attr.value))
    return default[1] if default is not None else ""


def _default_of_parameter(module: Module, value: Value) -> str:
    """The mode that autotunes which a parameter has by default, where every call in sight leaves it."""
    default = default_of(module, value)
    kept = default is not None and _autotunes(default) and keeps(module, value, _autotunes)
    return str(default.constant) if kept and default is not None else ""


def _autotunes(mode: Value) -> bool:
    return isinstance(mode.constant, str) and mode.constant.startswith("max-autotune")


def _entries(module: Module, options: Value) -> Mapping[str, Value]:
    """The entries of a dictionary; none where it is not in sight."""
    return module.dictionary(options.node, options.scope, options.order) or {}


def _patched(module: Module, call: Call) -> Mapping[str, Value]:
    """The options that a `torch._inductor.config.patch` sets: of a dictionary, of a name and its value, by keywords."""
    given = call.arguments.positional
    name = given[0].constant if given else None
    if isinstance(name, str):
        return {name: given[1]} if len(given) > 1 else {}
    return {**(_entries(module, given[0]) if given else {}), **call.arguments.keywords}


def _tuned(rule: Rule, call: Call, entries: Mapping[str, Value]) -> Iterator[Violation]:
    """The first option among `entries` that lets Inductor tune kernels."""
    for setting in rule.settings:
        name = setting.names[0].removeprefix("torch._inductor.config.")
        entry = entries.get(name)
        if entry is not None and entry.constant is True and "deterministic" not in entries:
            yield Violation(call.node, {"option": name}, "option")
            return


def _follows_the_mode(module: Module) -> bool:
    """Whether deterministic mode turns on Inductor's own option, in the target release."""
    return module.target.torch >= _INDUCTOR_FOLLOWS_THE_MODE


def _inductor_is_deterministic(module: Module) -> bool:
    if any(a.value.constant is True for a in module.assignments_to("torch._inductor.config.deterministic")):
        return True
    if not _follows_the_mode(module):
        return False
    modes = (call.argument("mode") for call in module.calls_to("torch.use_deterministic_algorithms"))
    return any(mode is not None and mode.constant is True for mode in modes)


def _sums(module: Module, call: Call, sums: tuple[str, ...]) -> bool:
    """Whether the kernel that is tuned may add up: by a call of `sums` or of a function that is not in sight, or into a
    variable in a loop; nothing is known of one that stores nothing. Elsewhere another block size changes no result."""
    function = module.parent(module.parent(call.node) or call.node)
    if not isinstance(function, cst.FunctionDef):
        return True
    stack: list[tuple[cst.CSTNode, bool]] = [(function.body, False)]
    stores = False
    while stack:
        node, looped = stack.pop()
        if looped and isinstance(node, (cst.Assign, cst.AugAssign)):
            return True
        if isinstance(node, cst.Call):
            for name in module.resolve(node.func) or ("",):
                library, _, last = name.rpartition(".")
                if not library.startswith(("triton", "builtins")) or last in sums:
                    return True
                stores = stores or last == "store"
        looped = looped or isinstance(node, (cst.For, cst.While))
        stack.extend((child, looped) for child in children(node))
    return not stores


def _several(module: Module, configs: Value) -> bool:
    """Whether a list of configurations may hold more than one; only a literal shows that it does not."""
    for origin in origins(module, configs):
        node = origin.node
        if not isinstance(node, (cst.List, cst.Tuple)) or len(node.elements) > 1:
            return True
        if any(isinstance(element, cst.StarredElement) for element in node.elements):
            return True
    return False
