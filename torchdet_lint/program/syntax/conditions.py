"""The test of an `if` -> what it asks of parameters and attributes of `self`, and which arm each answer rules out."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import combined, respelling, walk
from torchdet_lint.program.events import (
    BUILT_IN,
    DEVICE,
    EACH_OF,
    ELSE,
    EMPTY,
    HANDED,
    NONE,
    NOTHING,
    OFF_WITH,
    PASSED,
    PLAIN,
    SOME,
    SPELT,
    STARTED_WITH,
    WHERE,
    WORKERS,
    Argument,
    Test,
    is_result,
)
from torchdet_lint.program.switches import SWITCH
from torchdet_lint.program.syntax.parameters.chances import Chance, chance
from torchdet_lint.program.syntax.parameters.entries import entry_in
from torchdet_lint.program.syntax.parameters.lengths import length_tested
from torchdet_lint.program.syntax.parameters.rebinding import OPEN, compared, remade
from torchdet_lint.program.syntax.scopes import Bound, bound_above, constant, followed
from torchdet_lint.program.syntax.shapes import (
    device_in,
    is_device_of,
    last_word,
    names_no_module,
    parameters_of,
    statements_in,
)
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.program.events import Names, Rebinding
    from torchdet_lint.program.syntax.names import Resolver
    from torchdet_lint.program.syntax.scopes import Scope

_OTHER = Bound("value")
# What a flag sets, by its action; where that is its default too, the option does nothing.
_FLAGS = {"store_true": True, "store_false": False}
# What gives a number, and no None.
_NUMBERS = frozenset(("float", "int", "len", "round"))
# A name for a test may stand for another one, so often.
_DEEP = 3
# Classes of libraries of which no constant is.
_NO_CONSTANTS = frozenset(("torch.Tensor", "torch.nn.Module", "numpy.ndarray"))
_TWO = 2
_OTHER_WAY_ROUND: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq,
    ast.Is: ast.Is, ast.IsNot: ast.IsNot,
}  # fmt: skip
# Calls nest in what an option is given: `type=lambda x: bool(strtobool(x))`.
_ADDED = lazy(r"\.add_argument[ \t]*\((?:[^()]|\((?:[^()]|\([^()]{0,80}\)){0,200}\)){0,400}\)")
_FLAG = lazy(r"[\"']-{0,2}([A-Za-z][\w-]*)[\"']")
_ON = lazy(r"\bdefault\s{0,9}=\s{0,9}True\b")


def decided(test: ast.expr, names: Resolver, scope: Scope) -> bool | None:
    """Whether `test` holds, where a constant decides it, or those that a function gives its own names, or the file, or
    a class of it, gives one that says whether CUDA is used; else None."""
    return combined(test, lambda part: _told(part, names, scope))


def _told(test: ast.expr, names: Resolver, scope: Scope) -> bool | None:
    if names_no_module(test):
        return False
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, (ast.Name, ast.Attribute)):
        value = _settled(test, names, scope)
        return None if value is None else bool(value[0])
    if (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.left, (ast.Name, ast.Attribute))
        and isinstance(test.comparators[0], ast.Constant)
        and (value := _settled(test.left, names, scope)) is not None
    ):
        if isinstance(test.ops[0], (ast.Is, ast.Eq)):
            return bool(value[0] == test.comparators[0].value)
        if isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
            return bool(value[0] != test.comparators[0].value)
    return None


def _settled(node: ast.Name | ast.Attribute, names: Resolver, scope: Scope) -> tuple[object] | None:
    """The constant that a name of the function `scope` is from its one binding on, in a 1-tuple, or None; or a switch
    of the file, or of a class of it, that is named after CUDA. What else these set is there to be changed."""
    if isinstance(node, ast.Attribute):
        if not names.devices.names_switch.search(node.attr):
            return None
        fixed = _fixed_option(node, scope)
        return names.scopes.settled_field(node.value, node.attr, scope) if fixed is None else (fixed,)
    if node.id not in scope.bindings or scope.kind != "function":
        return names.scopes.settled(node.id, scope) if names.devices.names_switch.search(node.id) else None
    bounds = scope.bindings.get(node.id, ())
    if len(bounds) != 1 or bounds[0].kind != "value" or not isinstance(bounds[0].value, ast.Constant):
        return None
    return None if node.id in scope.lent else constant(node, scope)


def _fixed_option(node: ast.expr, scope: Scope, depth: int = _DEEP) -> bool | None:
    """Whether `node`, of what `parse_args()` gave, is on in every run: a flag that is so by default, or what is made of
    such flags, once; None where a run may choose."""
    owner = node.value if isinstance(node, ast.Attribute) else None
    made, home = followed(owner, scope) if owner is not None else (None, scope)
    if not (isinstance(owner, ast.Name) and isinstance(made, ast.Call) and last_word(made.func) == "parse_args"):
        return None
    name = f"{owner.id}.{node.attr}" if isinstance(node, ast.Attribute) else ""
    given: list[ast.expr] = []
    for statement in statements_in(home.node.body):
        match statement:
            case ast.Assign(targets=[ast.Attribute() as target], value=value) if ast.unparse(target) == name:
                given.append(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="add_argument")) as call) if _names(call, name):
                given.append(call)
    if len(given) != 1 or depth == 0:
        return None
    if isinstance(given[0], ast.Call):
        return always(given[0])
    return combined(given[0], lambda part: _fixed_option(part, home, depth - 1))


def _names(call: ast.Call, name: str) -> bool:
    """Whether an option is kept as the attribute `name`."""
    told = [word.value for word in call.keywords if word.arg == "dest"] or call.args
    texts = [one.value for one in told if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return name.rpartition(".")[2] in (text.lstrip("-").replace("-", "_") for text in texts)


def always(call: ast.Call) -> bool | None:
    """What a flag of the command line is in every run, if it is by default what it sets."""
    words = {word.arg: getattr(word.value, "value", None) for word in call.keywords}
    sets = _FLAGS.get(str(words.get("action")))
    return sets if sets is not None and words.get("default", not sets) is sets else None


def on_by_default(node: ast.expr, names: Resolver, scope: Scope) -> bool:
    """Whether `node` is an option that is on unless somebody turns it off: a flag of `argparse` of this file, or a
    field of a class of this file of which the command line makes the object, `args = tyro.cli(Args)`."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    made, home = followed(node.value, scope)
    for part in (made.func, *made.args) if isinstance(made, ast.Call) else ():
        around = home.home(part.id) if isinstance(part, ast.Name) else None
        bounds = around.bindings[part.id] if around is not None and isinstance(part, ast.Name) else ()
        class_ = names.scopes.by_name.get(bounds[0].target) if len(bounds) == 1 and bounds[0].kind == "class" else None
        fields = class_.bindings.get(node.attr, ()) if class_ is not None else ()
        if class_ is not None and len(fields) == 1 and fields[0].value is not None:
            return constant(fields[0].value, class_) == (True,)
    return node.attr in _flags(names)


def _flags(names: Resolver) -> set[str]:
    """The flags of the file's command line that are on by default, by the names of the attributes."""
    added = (call.group() for call in _ADDED.finditer("".join(names.scopes.hollow.lines)))
    calls = [call for call in added if _ON.search(call)]
    return {flag.replace("-", "_") for call in calls for flag in _FLAG.findall(call.partition("help")[0])}


def tested(
    test: ast.expr, names: Resolver, scope: Scope, dead: int, dead_otherwise: int, depth: int = _DEEP
) -> Iterator[Test]:
    """What `test` asks of parameters that keep their values, of attributes of `self`, and of options: `dead` is the arm
    that does not run where it holds."""
    if isinstance(test, ast.Name) and depth > 0 and (made := _made_up(test, scope)) is not None:
        yield from tested(made, names, scope, dead, dead_otherwise, depth - 1)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from tested(test.operand, names, scope, dead_otherwise, dead, depth)
    elif isinstance(test, ast.BoolOp):
        both = isinstance(test.op, ast.And)
        for value in test.values:
            yield from tested(value, names, scope, 0 if both else dead, dead_otherwise if both else 0, depth)
    elif isinstance(test, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        if dead or dead_otherwise:
            yield from _alone_tested(test, names, scope, dead, dead_otherwise)
    elif isinstance(test, ast.Compare) and (lengths := [*length_tested(test, scope, dead, dead_otherwise)]):
        yield from lengths
    elif (told_by := chance(test, names, scope)) is not None:
        yield from _chance_tested(told_by, scope, dead, dead_otherwise)
    elif isinstance(test, ast.Compare) and (turned := _turned(test)) is not None:
        yield from tested(turned, names, scope, dead, dead_otherwise, depth)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and (told := _compares(test, names, scope))[0]:
        asked, rebound = told
        known = constant(test.comparators[0], scope)
        kind, holds = (compared(test.ops[0], known[0]) if known is not None else None) or ("", True)
        if known is not None and kind:
            first, second = (dead, dead_otherwise)[:: 1 if holds else -1]
            yield Test(asked, kind, known[0], first, second, rebound)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.In, ast.NotIn)):
        part, (asked, rebound) = test.left, _asked_there(test.comparators[0], scope)
        if asked and isinstance(part, ast.Constant) and isinstance(part.value, str):
            first, second = (dead, dead_otherwise)[:: 1 if isinstance(test.ops[0], ast.In) else -1]
            yield Test(asked, "holds", part.value, first, second, rebound)


def _turned(test: ast.Compare) -> ast.Compare | None:
    """A comparison of a constant with something, the other way round: `x > 1` for `1 < x`."""
    other = _OTHER_WAY_ROUND.get(type(test.ops[0])) if len(test.ops) == 1 else None
    if other is None or not isinstance(test.left, ast.Constant) or isinstance(test.comparators[0], ast.Constant):
        return None
    return ast.copy_location(ast.Compare(test.comparators[0], [other()], [test.left]), test)


def _alone_tested(
    test: ast.Name | ast.Attribute | ast.Call | ast.Subscript,
    names: Resolver,
    scope: Scope,
    dead: int,
    dead_otherwise: int,
) -> Iterator[Test]:
    """What a test asks that compares nothing: `if flag:`, `if isinstance(rate, float):`, `if len(styles):`."""
    yield from length_tested(test, scope, dead, dead_otherwise)
    if entry := _entry(test, scope):
        yield Test(entry, "true", None, dead, dead_otherwise)
    elif not isinstance(test, ast.Call):
        asked, rebound = _asked_there(test, scope)
        if not asked and isinstance(test, ast.Attribute):
            asked = switch_in(test) or _option(test, names, scope)
        if asked:
            yield Test(asked, "true", None, dead, dead_otherwise, rebound)
    elif (kinds := _kinds_asked(test, names, scope)) and (asked := _asked(test.args[0], scope)):
        yield Test(asked, "is", kinds, dead, dead_otherwise)


def _chance_tested(told: Chance, scope: Scope, dead: int, dead_otherwise: int) -> Iterator[Test]:
    """What a comparison with a random number asks of a parameter: with one of 0 or 1 it always comes out the same."""
    asked, rebound = _asked_there(told.bound, scope)
    never, always = (dead_otherwise, dead)[:: 1 if told.less else -1]
    for kind, value, arm in (("Gt", 0, never), ("Lt", 1, always)):
        if asked and arm:
            yield Test(asked, kind, value, 0, arm, rebound)


def drawn_in_vain(test: ast.expr, names: Resolver, scope: Scope, arm: int) -> tuple[ast.expr, list[Test]] | None:
    """The random number that a comparison draws, and the tests of a parameter with which its value decides nothing:
    it stands in `arm` then, which does not run."""
    told = chance(test, names, scope)
    if told is None or not (asked := list(_chance_tested(told, scope, arm, arm))):
        return None
    return told.drawn, asked


def _kinds_asked(test: ast.Call, names: Resolver, scope: Scope) -> list[str]:
    """The names of the classes in `isinstance(x, (int, float))`, where it is known of all whether a constant is of
    them; else none."""
    if not (isinstance(test.func, ast.Name) and test.func.id == "isinstance" and len(test.args) == _TWO):
        return []
    kinds = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
    resolved = [name.removeprefix("builtins.") for kind in kinds for name in names.resolve(kind, scope)]
    told = [name for name in resolved if name in BUILT_IN or name in _NO_CONSTANTS]
    return told if len(told) == len(kinds) and scope.home("isinstance") is None else []


def _compares(test: ast.Compare, names: Resolver, scope: Scope) -> tuple[str, tuple[Rebinding, ...]]:
    """What a comparison asks: a parameter, and what became of it, an attribute of `self`, an option that it compares
    with texts, an entry of one, or a switch of a configuration that it compares with something else."""
    told = _asked_there(test.left, scope)
    if told[0]:
        return told
    if entry := _entry(test.left, scope):
        return entry, ()
    other = test.comparators[0]
    parts = other.elts if isinstance(other, (ast.List, ast.Tuple)) else [other]
    texts = bool(parts) and all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in parts)
    return (_option(test.left, names, scope) if texts else switch_in(test.left)), ()


def switch_in(node: ast.expr) -> str:
    """The name of a switch of a configuration that `node` is, `cfg.VAL.SHUFFLE`, or nothing."""
    return name if SWITCH.search(name := dotted_name(node)) is not None else ""


def is_of_run(test: Test) -> bool:
    """Whether a test asks for an option of what a call gives, or for a switch of a configuration: no function has to be
    given that."""
    return "()" in test.parameter or SWITCH.search(test.parameter) is not None


def _option(node: ast.expr, names: Resolver, scope: Scope) -> str:
    """`args.model`, by a name of its own too, where `args` is a parameter that is given no other value; or
    `@.parsed().model` where it stands for what a call gives; or nothing."""
    if isinstance(node, ast.Name):
        bounds = scope.bindings.get(node.id, ())
        value = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "value" else None
        node = value if value is not None and node.id not in scope.lent else node
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
        return ""
    holder = node.value.id
    if holder in scope.bindings and _is_constant(holder, scope):
        own = parameters_of(scope.node.args)[0].arg if scope.first else ""
        return f"{holder}.{node.attr}" if holder != own else ""
    found = names.resolve(node.value, scope)
    return f"{found[0]}.{node.attr}" if len(found) == 1 and is_result(found[0]) else ""


def _entry(node: ast.expr, scope: Scope) -> str:
    """`config.encoder` for `config["encoder"]`, by a name of its own too, where `config` is a parameter that is given
    no other value; `self.config.encoder` for `self.config["encoder"]`, and as it stands; or nothing."""
    if isinstance(node, ast.Name):
        bounds = scope.bindings.get(node.id, ())
        value = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "value" else None
        node = value if value is not None and node.id not in scope.lent else node
    told = (node.value, node.attr) if isinstance(node, ast.Attribute) else entry_in(node)
    owner = told[0] if told is not None else None
    if told is None or not isinstance(owner, (ast.Name, ast.Attribute)) or SWITCH.search(dotted_name(node)) is not None:
        return ""
    if isinstance(owner, ast.Attribute):
        asked = _asked(owner, scope)
        return f"{asked}.{told[1]}" if asked else ""
    held = not isinstance(node, ast.Attribute) and owner.id in scope.bindings and _is_constant(owner.id, scope)
    return f"{owner.id}.{told[1]}" if held else ""


def switched(flag: ast.expr, names: Resolver, scope: Scope, dead: int, dead_otherwise: int) -> Test | None:
    """What `flag`, `not options.serial`, asks of an option: `dead` is the arm that does not run where it holds."""
    if isinstance(flag, ast.UnaryOp) and isinstance(flag.op, ast.Not):
        return switched(flag.operand, names, scope, dead_otherwise, dead)
    option = _option(flag, names, scope) if isinstance(flag, ast.Attribute) else ""
    return Test(option, "true", None, dead, dead_otherwise) if option else None


def _made_up(node: ast.Name, scope: Scope) -> ast.expr | None:
    """The test that `node` stands for, `mirror = self.train and …`, or the parameter, `shuffle = is_train`, where it is
    bound once."""
    bounds = scope.bindings.get(node.id, ())
    value = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "value" else None
    told = isinstance(value, (ast.BoolOp, ast.Compare, ast.Name, ast.UnaryOp))
    return value if told and node.id not in scope.lent else None


def _asked(node: ast.expr, scope: Scope) -> str:
    """The parameter that `node` is, or the attribute of `self` (`self.train`), by a name of its own too; or nothing."""
    if isinstance(node, ast.Name):
        if _is_constant(node.id, scope) or _is_as_given(node, scope):
            return node.id
        if (own := _always_given(node, scope)) is not None:
            return own.id
        if listed := _element_of(node, scope):
            return f"{listed}{EACH_OF}"
        bounds = scope.bindings.get(node.id, ())
        value = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "value" else None
        node = value if value is not None and node.id not in scope.lent else node
        if isinstance(node, ast.Name) and node.id in scope.bindings and _is_constant(node.id, scope):
            return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and scope.first == "self":
        me = parameters_of(scope.node.args)[0].arg
        return f"self.{node.attr}" if node.value.id == me and _is_constant(me, scope) else ""
    return ""


def _asked_there(node: ast.expr, scope: Scope) -> tuple[str, tuple[Rebinding, ...]]:
    """The same, or the parameter that `node` is made of, and what became of it."""
    asked = _asked(node, scope)
    return (asked, ()) if asked else _made_of(node, scope)


def _made_of(node: ast.expr, scope: Scope) -> tuple[str, tuple[Rebinding, ...]]:
    """The parameter that `node` is made of, and what became of it, where that is known; else nothing."""
    own, rebound = remade(node, scope) or ("", ())
    return ("", ()) if rebound == OPEN else (own, rebound)


def _element_of(node: ast.Name, scope: Scope) -> str:
    """The parameter that holds a list of which a name is each element in turn: `for flag in flags`, `for x, flag in
    zip(xs, flags)`."""
    bounds = scope.bindings.get(node.id, ())
    over = bounds[0].value if len(bounds) == 1 and bounds[0].kind == "element" and node.id not in scope.lent else None
    own = over.id if isinstance(over, ast.Name) else ""
    return own if own in scope.bindings and _is_constant(own, scope) else ""


def _always_given(node: ast.Name, scope: Scope) -> ast.Name | None:
    """The parameter that a name is given in each of several places, and nothing else."""
    bounds = scope.bindings.get(node.id, ())
    given = [bound.value for bound in bounds if bound.kind == "value"]
    first = given[0] if len(bounds) > 1 and len(given) == len(bounds) and node.id not in scope.lent else None
    if not isinstance(first, ast.Name) or not all(isinstance(one, ast.Name) and one.id == first.id for one in given):
        return None
    return first if first.id in scope.bindings and _is_constant(first.id, scope) else None


def passed_on(call: ast.Call, scope: Scope) -> Iterator[Test]:
    """The parameters that a call hands on as they came: there they may decide."""
    function = call.func
    above = (
        isinstance(function, ast.Attribute)
        and function.attr == "__init__"
        and isinstance(function.value, ast.Call)
        and isinstance(function.value.func, ast.Name)
        and function.value.func.id == "super"
    )
    started = [one.value.elts for one in call.keywords if one.arg == STARTED_WITH and isinstance(one.value, ast.Tuple)]
    for value in (*call.args, *(keyword.value for keyword in call.keywords), *itertools.chain.from_iterable(started)):
        own = value.id if isinstance(value, ast.Name) and _is_constant(value.id, scope) else ""
        own = own or _made_of(value, scope)[0]
        if own:
            bounds = scope.bindings[own]
            usual = any(bound.kind == "default" and isinstance(bound.value, ast.Constant) for bound in bounds)
            yield Test(own, PASSED if above or usual else HANDED)


def loader_asked(call: ast.Call, scope: Scope) -> Iterator[Test]:
    """The parameters that a call hands on as its number of workers: none of them, and what they would run runs here; or
    as its `shuffle`."""
    for keyword in call.keywords:
        if keyword.arg in (WORKERS, "shuffle") and (asked := _asked_there(keyword.value, scope)[0]):
            yield Test(asked, "true")


def device_asked(call: ast.Call, scope: Scope) -> Iterator[Test]:
    """The parameters, and attributes of `self`, that a call puts something on: `model.to(device)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
        given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
    else:
        device = device_in(call)
        given = [device] if device is not None else []
    for node in given:
        yield from asked_as_device(node, scope)


def asked_as_device(node: ast.expr, scope: Scope) -> Iterator[Test]:
    """The parameter, or attribute of `self`, that `node` is, which says where something is put."""
    asked = _asked_there(node, scope)[0] if isinstance(node, (ast.Name, ast.Attribute)) else ""
    if asked:
        yield Test(asked, DEVICE)


def setting(names: Resolver, class_: Scope, attribute: str, *, made_up: bool = True) -> Argument | None:
    """What `self.attribute` is given, None for nothing. It is known where `__init__` alone gives it something, once: a
    constant, or a parameter that still has the value it came with."""
    values = names.values_of(class_).get(attribute, ())
    if not values and attribute not in class_.bindings:
        return None
    if made_up and attribute not in class_.bindings and (holders := _devices_of(values)):
        return Argument((WHERE, *holders))
    value, where = values[0] if len(values) == 1 and attribute not in class_.bindings else (None, class_)
    if made_up and values and attribute not in class_.bindings and (own := _nothing_with(values, attribute)):
        return Argument((NOTHING, own))
    if made_up and values and attribute not in class_.bindings and (own := _empty_without(values, attribute)):
        return Argument((NOTHING, own, EMPTY))
    if made_up and len(values) > 1 and attribute not in class_.bindings and (own := _turned_off(values)):
        return Argument((OFF_WITH, own))
    if value is None and made_up and attribute not in class_.bindings:
        value, where = _picked_value(values, attribute)
    if value is None or where.node.name != "__init__":
        return Argument()
    value = device_in(value) or value
    if made_up and isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And):
        first = _handed(value.values[0], where, names, class_)
        return Argument((OFF_WITH, first)) if first else Argument()
    if isinstance(value, ast.Name) and _is_constant(value.id, where) and value.id in where.bindings:
        return Argument((f"${value.id}",))
    if made_up and (made := _made_of(value, where))[0]:
        return Argument((f"${made[0]}",), rebound=made[1])
    if made_up and (told := respelling(value)) is not None:
        source, method = told
        plain = isinstance(source, ast.Name) and _is_constant(source.id, where) and source.id in where.bindings
        return Argument((SPELT, f"${source.id}", method)) if isinstance(source, ast.Name) and plain else Argument()
    if own := _unless_none(value, where):
        return Argument((ELSE, f"${own}"))
    if (asked := _none_asked(value, where)) is not None and (first := _none_with(asked[0], where, names, class_)):
        return Argument((NONE if asked[1] else SOME, first))
    known = constant(value, where)
    return Argument((), True, known[0]) if known is not None and isinstance(known[0], PLAIN) else Argument()


def _devices_of(values: Sequence[tuple[ast.expr, Scope]]) -> list[str]:
    """The last words of what an attribute is given, where all of it is some `x.device`: that, for each; else none."""
    found = []
    for value, _ in values:
        if not (isinstance(value, ast.Attribute) and value.attr == "device"):
            return []
        holder = value.value
        while isinstance(holder, (ast.Call, ast.Subscript)):
            holder = holder.func if isinstance(holder, ast.Call) else holder.value
        found.append(f"{last_word(holder)}.device")
    return found


def _turned_off(values: Sequence[tuple[ast.expr, Scope]]) -> str:
    """The parameter of the constructor, as `$shuffle`, that an attribute is given there, where all else that it is
    given is False."""
    given = [(value, where) for value, where in values if constant(value, where) != (False,)]
    value, where = given[0] if len(given) == 1 else (None, None)
    if not isinstance(value, ast.Name) or where is None or where.node.name != "__init__":
        return ""
    return f"${value.id}" if _is_constant(value.id, where) and value.id in where.bindings else ""


def _unless_none(value: ast.expr, where: Scope) -> str:
    """The parameter that `value` is unless it is nothing: `rng or random`, `random if rng is None else rng`, or a name
    that is given another value too."""
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or):
        value = value.values[0]
    elif isinstance(value, ast.IfExp):
        asked = {one.id for one in walk(value.test) if isinstance(one, ast.Name)}
        sides = [one for one in (value.body, value.orelse) if isinstance(one, ast.Name) and one.id in asked]
        value = sides[0] if len(sides) == 1 else value
    name = value.id if isinstance(value, ast.Name) else ""
    return name if any(bound.kind == "parameter" for bound in where.bindings.get(name, ())) else ""


def _none_asked(test: ast.expr, where: Scope) -> tuple[ast.expr, bool] | None:
    """What `test` asks, whether it is None, or whether it is not."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Is, ast.IsNot)):
        return None
    is_none = isinstance(test.ops[0], ast.Is)
    return (test.left, is_none) if constant(test.comparators[0], where) == (None,) else None


def _none_with(node: ast.expr, where: Scope, names: Resolver, class_: Scope) -> str:
    """The parameter of a constructor, as `$length`, where `node` is None where that is, and only there: the parameter
    itself, or an attribute of `self` that the constructor made of it, `None if length is None else int(length)`."""
    own = node.attr if isinstance(node, ast.Attribute) and _asked(node, where) else ""
    if not own or own in class_.bindings:
        return _handed(node, where, names, class_)
    made = [value for value, home in names.values_of(class_).get(own, ()) if home is where]
    picked = _given_by_arms(where, own) if len(made) == 2 else None
    if len(made) == 1 and isinstance(made[0], ast.IfExp):
        picked = (made[0].test, made[0].body, made[0].orelse)
    if picked is None:
        return _handed(made[0], where, names, class_) if len(made) == 1 else ""
    test, *arms = picked
    asked = _none_asked(test, where)
    if asked is None:
        return ""
    none, some = arms if asked[1] else reversed(arms)
    is_number = isinstance(some, ast.BinOp) or (
        isinstance(some, ast.Call) and isinstance(some.func, ast.Name) and some.func.id in _NUMBERS
    )
    return _handed(asked[0], where, names, class_) if is_number and constant(none, where) == (None,) else ""


def _picked_value(values: Sequence[tuple[ast.expr, Scope]], attribute: str) -> tuple[ast.expr | None, Scope]:
    """The one value that `self.attribute` is given where a constructor picks it by an `if`, and where."""
    where = values[0][1]
    same = len(values) == _TWO and where.node.name == "__init__" and values[1][1] is where
    picked = _given_by_arms(where, attribute) if same else None
    return (ast.copy_location(ast.IfExp(*picked), picked[0]) if picked is not None else None), where


def _given_by_arms(where: Scope, attribute: str) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """The test of the `if` of a constructor that gives `self.attribute` one value or another, and the values."""
    for node in where.node.body:
        arms = (node.body, node.orelse) if isinstance(node, ast.If) else ()
        given = [
            one.value
            for arm in arms
            for one in arm
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == f"self.{attribute}"
        ]
        if isinstance(node, ast.If) and len(given) == len(arms):
            return node.test, given[0], given[1]
    return None


def _nothing_with(values: Sequence[tuple[ast.expr, Scope]], attribute: str) -> str:
    """The parameter of the constructor, as `$p`, without which it gives the attribute None, in whichever form:
    `self.erase = Erase(p) if p > 0 else None`."""
    where = values[0][1]
    if where.node.name != "__init__" or any(home is not where for _, home in values) or len(values) > 2:
        return ""
    first = values[0][0]
    picked = _given_by_arms(where, attribute) or _given_later(where, attribute) if len(values) == 2 else None
    if len(values) == 1 and isinstance(first, ast.IfExp):
        picked = first.test, first.body, first.orelse
    if picked is None or constant(picked[2], where) != (None,):
        return ""
    test = picked[0]
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Gt):
        test = test.left if constant(test.comparators[0], where) in ((0,), (0.0,)) else test
    return (
        f"${test.id}"
        if isinstance(test, ast.Name) and _is_constant(test.id, where) and test.id in where.bindings
        else ""
    )


def _empty_without(values: Sequence[tuple[ast.expr, Scope]], attribute: str) -> str:
    """The parameter of the constructor, as `$kinds`, where that is None the attribute is an empty list, and only there:
    `self.kinds = [] if kinds is None else kinds["all"]`."""
    first, where = values[0]
    if where.node.name != "__init__" or any(home is not where for _, home in values):
        return ""
    picked = _given_by_arms(where, attribute) if len(values) == _TWO else None
    if len(values) == 1 and isinstance(first, ast.IfExp):
        picked = first.test, first.body, first.orelse
    asked = _none_asked(picked[0], where) if picked is not None else None
    if picked is None or asked is None or not isinstance(asked[0], ast.Name):
        return ""
    empty, name = picked[1 if asked[1] else 2], asked[0].id
    known = isinstance(empty, (ast.List, ast.Tuple)) and not empty.elts
    return f"${name}" if known and name in where.bindings and _is_constant(name, where) else ""


def _given_later(where: Scope, attribute: str) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """The test of the `if` of a constructor that gives `self.attribute` a value in place of the one that it was given
    above, and the two values."""
    above: ast.expr | None = None
    for node in where.node.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == f"self.{attribute}":
            above = node.value
        for one in node.body if isinstance(node, ast.If) else ():
            if above is not None and isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == f"self.{attribute}":
                return node.test, one.value, above
    return None


def stood_in_for(names: Names, scope: Scope) -> str:
    """The parameter of the function `scope` of which `names` are, or a module's that stands in for it: `$rng.normal`,
    `numpy.random.normal`."""
    own = next((name[1:].partition(".")[0] for name in names if name[0] == "$"), "")
    others = any(name[0] not in "$@" and "(" not in name for name in names)
    return own if others and scope.kind == "function" and own in scope.bindings else ""


def _handed(node: ast.expr, where: Scope, names: Resolver, class_: Scope) -> str:
    """The parameter of a constructor, as `$train`, that `node` is, or the attribute of `self` that keeps it."""
    if isinstance(node, ast.Name):
        return f"${node.id}" if node.id in where.bindings and _is_constant(node.id, where) else ""
    asked = _asked(node, where).removeprefix("self.") if isinstance(node, ast.Attribute) else ""
    told = setting(names, class_, asked, made_up=False) if asked else None
    return told.names[0] if told is not None and len(told.names) == 1 else ""


def _is_as_given(node: ast.Name, scope: Scope) -> bool:
    """Whether a parameter still has the value that it came with where it is asked, though it is given another one
    further below: `if seed is None: seed = …`."""
    bounds = scope.bindings.get(node.id, ())
    if not any(bound.kind == "parameter" for bound in bounds) or node.id in scope.lent:
        return False
    above = bound_above(node, bounds, scope)
    return above is not None and all(bound.kind in ("parameter", "default") for bound in above)


def _is_constant(name: str, scope: Scope) -> bool:
    """Whether `name` is a parameter here that is given no other value."""
    return all(
        bound.kind in ("parameter", "default") or (bound.kind == "value" and is_device_of(bound.value, name))
        for bound in scope.bindings.get(name, (_OTHER,))
    )
