"""Nodes of `ast` -> what they are at a glance."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.syntax import children, defaults_of, walk
from torchdet_lint.program.events import ANY
from torchdet_lint.program.launch_configs import HIDDEN, UNKNOWN
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LITERALS = (ast.List, ast.ListComp, ast.Tuple, ast.Set, ast.SetComp, ast.GeneratorExp)
PASSED_ON = frozenset({"enumerate", "iter", "list", "reversed", "sorted", "tqdm", "tuple"})
ASKS_OF_TEXT = frozenset({"startswith", "endswith", "hasattr", "getattr", "print"})
# Methods of a layer that give it another one, under a name.
_INSTALLS = frozenset({"add_module", "register_module"})
SIZES = frozenset({"numel", "nelement", "size", "shape", "dim", "ndim", "dtype", "requires_grad"})
# Functions of which the result is a text, a size or a type.
_SHOWN = frozenset({"len", "type", "str", "repr", "tuple", "list", "format", "join"})
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
"""The statements that never run on into the one below them."""
# Functions with which a program says why it ends.
_COMPLAINS = frozenset({"critical", "error", "exception", "fatal", "info", "print", "print_help", "warn", "warning"})
# What Python calls the file that it starts, and `multiprocessing` calls it in a process that it spawns.
_STARTED = ("__main__", "__mp_main__")
# A key of a table that a name may have behind it.
_KEY = lazy(r"[\w-]+")
_SPECIAL = lazy(r"__\w+__")
# The pattern of a part of the name of a module: what it begins with, what nobody knows, and what it ends with.
_PART = lazy(r"(\w*)\.\*(?:\w*\.\*)*(\w*)")
# The beginning of a text that names a device.
_DEVICE = lazy(r"(?:cpu|cuda|gpu|mps|xpu)\b")
TRY: Any = (ast.Try, ast.TryStar) if hasattr(ast, "TryStar") else ast.Try


def names_no_module(test: ast.expr) -> bool:
    """Whether `test` is `__name__ == "__main2__"`: somebody's way to switch a main guard off."""
    match test:
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value=str() as name)]):
            return _SPECIAL.fullmatch(name) is not None and name not in _STARTED
    return False


def is_type_checking(test: ast.expr) -> bool:
    """Whether `test` is `TYPE_CHECKING`."""
    return last_word(test) == "TYPE_CHECKING"


def last_word(node: ast.AST) -> str:
    """`c` of `a.b.c`, of `c` and of a call of either."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def device_in(node: ast.expr) -> ast.expr | None:
    """`x` of `torch.device(x)`; None for all else."""
    if isinstance(node, ast.Call) and last_word(node.func) == "device" and len(node.args) == 1 and not node.keywords:
        return node.args[0]
    return None


def names_a_device(node: ast.expr) -> bool:
    """Whether `node` is a text, or a device or a choice made of texts."""
    if isinstance(node, ast.IfExp):
        return names_a_device(node.body) and names_a_device(node.orelse)
    inner = device_in(node)
    return (
        names_a_device(inner) if inner is not None else isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def overwritten(body: Sequence[ast.stmt], is_harmless: Callable[[str], bool]) -> frozenset[ast.stmt]:
    """The statements of a block that only choose a device, `device = "cuda" if … else "cpu"`, and that a later one of
    the block overwrites before anything reads it. Of what is called in between, the first word has to be `is_harmless`:
    it reads no name of the file."""
    unread: dict[str, dict[str, ast.stmt]] = {}
    found: list[ast.stmt] = []
    for node in body:
        name, value = _given_one(node)
        chooses = value is not None and _is_choice_of_device(value)
        if not (unread or chooses):
            continue
        parts = list(_run_by(node if value is None else value))
        if not all(is_harmless(_first_word(part.func)) for part in parts if isinstance(part, ast.Call)):
            unread.clear()
            continue
        for part in parts:
            if isinstance(part, ast.Name):
                unread.pop(part.id, None)
        first = name.partition(".")[0]
        before = unread.get(first, {}).pop(name, None)
        found += [before] if before is not None else []
        if chooses:
            unread.setdefault(first, {})[name] = node
    return frozenset(found)


def _given_one(node: ast.stmt) -> tuple[str, ast.expr | None]:
    """The one name, or attribute of a name, that a statement assigns, and the value; None where it does no such
    thing."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target, value = node.target, node.value
    else:
        return "", None
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return f"{target.value.id}.{target.attr}", value
    return (target.id, value) if isinstance(target, ast.Name) else ("", None)


def _is_choice_of_device(value: ast.expr) -> bool:
    """Whether `value` is a text that names a device, or a device or a choice made of such."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, ast.IfExp):
            left += [one.body, one.orelse]
        elif (inner := device_in(one)) is not None:
            left.append(inner)
        else:
            first = one.values[0] if isinstance(one, ast.JoinedStr) and one.values else one
            text = first.value if isinstance(first, ast.Constant) else None
            if not isinstance(text, str) or _DEVICE.match(text) is None:
                return False
    return True


def _run_by(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement that run where it stands: of a function its decorators and defaults."""
    stack = [node]
    while stack:
        part = stack.pop()
        yield part
        if isinstance(part, FUNCTIONS):
            stack += [*part.decorator_list, *(default for _, default in defaults_of(part.args))]
        else:
            stack.extend(children(part))


def _first_word(node: ast.expr) -> str:
    """`a` of `a.b.c`; nothing where something else stands before the first dot."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_device_of(value: ast.expr | None, name: str) -> bool:
    """Whether `value` is `torch.device(name)`: the same device as the parameter `name`."""
    device = device_in(value) if value is not None else None
    return isinstance(device, ast.Name) and device.id == name


def is_computed(shown: ast.expr) -> bool:
    """Whether what is shown holds a value that was worked out, and not only text, sizes and types."""
    stack: list[ast.AST] = [shown]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            return True
        if isinstance(node, ast.Call) and last_word(node.func) in _SHOWN:
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            of_values = last_word(node.func) not in ("len", "type")
            stack.extend((owner,) if owner is not None else ())
            stack.extend(node.args if of_values else ())
        elif not (isinstance(node, ast.Attribute) and node.attr in SIZES):
            stack.extend(children(node))
    return False


def tail_of(node: ast.expr) -> str:
    """`b.c` of `a.b.c`: the last two words of what is called."""
    last = last_word(node)
    before = last_word(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{last}" if before and last else last


def asks_for_training(test: ast.expr) -> bool:
    """Whether `test` holds in training only: `self.training`, `training and p > 0`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(asks_for_training(value) for value in test.values)
    return isinstance(test, (ast.Attribute, ast.Name)) and last_word(test) == "training"


def leaves_evaluation(node: ast.stmt) -> bool:
    """Whether what follows `node` in its block runs in training only: `if not self.training: return x`."""
    return isinstance(node, ast.If) and leaves_early(node.body) and holds_in_evaluation(node.test)


def holds_in_evaluation(test: ast.expr) -> bool:
    """Whether `test` holds wherever nothing is trained: `not self.training`, `p == 0 or not self.training`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return any(holds_in_evaluation(value) for value in test.values)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and asks_for_training(test.operand)


def trained_arms(node: ast.IfExp) -> tuple[ast.expr, ...]:
    """The arms of a choice that run in training only."""
    if asks_for_training(node.test):
        return (node.body,)
    return (node.orelse,) if holds_in_evaluation(node.test) else ()


def pattern_of(node: ast.expr) -> str:
    """A regular expression of the texts that `node` may be: an f-string, a sum, a format, parts that are joined;
    anything if it is unknown."""
    if isinstance(node, ast.Constant):
        return re.escape(str(node.value))
    if isinstance(node, ast.JoinedStr):
        return "".join(pattern_of(value) for value in node.values) + "$"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return pattern_of(node.left) + pattern_of(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        return ".*".join(map(re.escape, re.split(r"%[^a-zA-Z%]*[a-zA-Z]", str(node.left.value))))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        template = node.func.value.value if isinstance(node.func.value, ast.Constant) else "{}"
        return ".*".join(map(re.escape, re.split(r"\{[^{}]*\}", str(template))))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        joint, parts = node.func.value, node.args[0] if node.args else None
        if isinstance(joint, ast.Constant) and isinstance(parts, (ast.List, ast.Tuple)):
            return re.escape(str(joint.value)).join(map(pattern_of, parts.elts))
    return ".*"


def without_constants(nodes: Iterable[ast.expr]) -> list[ast.AST]:
    """Those of `nodes` that are neither constants nor written out of constants alone."""
    return [
        node
        for node in nodes
        if not isinstance(node, ast.Constant)
        and not (
            isinstance(node, (ast.Tuple, ast.List, ast.Set))
            and all(isinstance(element, ast.Constant) for element in node.elts)
        )
    ]


def is_property(node: ast.FunctionDef) -> bool:
    """Whether a method runs where it is read as an attribute."""
    return any(last_word(decorator) in ("property", "cached_property") for decorator in node.decorator_list)


def accessor(node: ast.FunctionDef) -> str:
    """`setter`, where a method runs as the property of its name is assigned, `deleter`, or nothing."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "deleter"):
            return decorator.attr
    return ""


def modules_of(text: ast.expr) -> str:
    """The modules of which a text picks one at run time: `models.[*]` of `"models." + name`, `f"models.{name}"` and
    `"models.{}".format(name)`, `models.[*_net]` of `f"models.{name}_net"`, `.[*]` of `"." + name`, `models.[*].[*]` of
    `f"models.{kind}.{name}"`."""
    first, *parts = pattern_of(text).replace("$", "").split(r"\.")
    gaps = [_PART.fullmatch(part) for part in parts]
    names = [first, *(part for part, gap in zip(parts, gaps, strict=True) if gap is None)]
    if not any(gaps) or not all(name.isidentifier() or not name for name in names):
        return ""
    spelled = (f"[{gap[1]}{ANY}{gap[2]}]" if gap else part for part, gap in zip(parts, gaps, strict=True))
    return ".".join((first, *spelled))


def is_off(node: ast.Call) -> bool:
    """Whether `node` makes an autocast that is turned off."""
    return last_word(node.func) == "autocast" and any(
        word.arg == "enabled" and isinstance(word.value, ast.Constant) and word.value.value is False
        for word in node.keywords
    )


def starts_empty(node: ast.expr | None) -> bool:
    """Whether `node` is `{}`, `dict()` or an empty dictionary of another class."""
    if isinstance(node, ast.Call):
        return not (node.args or node.keywords) and last_word(node) in ("dict", "OrderedDict")
    return isinstance(node, ast.Dict) and not node.keys


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def key_of(node: ast.expr) -> str:
    """The key of a table that a name can have behind it, or nothing."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) and _KEY.fullmatch(value) is not None else ""


def class_named(annotation: ast.expr | None) -> ast.Name | ast.Attribute | None:
    """The class that an annotation names, in quotes too; None where it names none by itself."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError):
            return None
    return annotation if isinstance(annotation, (ast.Name, ast.Attribute)) else None


def object_of(annotation: ast.expr | None) -> ast.expr | None:
    """The call that makes an object of the class that an annotation names."""
    named = class_named(annotation)
    return ast.copy_location(ast.Call(named, [], []), named) if named is not None else None


def class_asserted(test: ast.expr) -> tuple[ast.expr, ast.expr | None]:
    """What `isinstance(x, Net)` and `issubclass(x, Net)` are asked of, and what it then is; None for all else."""
    if not (isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and len(test.args) == 2):
        return test, None
    if test.func.id == "issubclass":
        return test.args[0], test.args[1] if isinstance(test.args[1], (ast.Name, ast.Attribute)) else None
    return test.args[0], object_of(test.args[1]) if test.func.id == "isinstance" else None


def is_error(body: Sequence[ast.stmt]) -> bool:
    """Whether a block ends in an error."""
    return isinstance(body[-1], ast.Raise)


def keeps_all(node: ast.stmt, me: str) -> bool:
    """Whether a statement of a method may make attributes of `me` of all its parameters: it hands `locals()` to what
    has to do with `me`, or to a function of the project or of another library alone."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not (
        isinstance(call, ast.Call) and any(isinstance(one, ast.Call) and _is(one.func, "locals") for one in call.args)
    ):
        return False
    if isinstance(call.func, ast.Name):
        return call.func.id not in BUILTINS
    return any(_is(inner, me) for inner in walk(call))


def is_item(node: ast.expr, name: str) -> bool:
    """Whether `node` is an item of what is called `name`."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name


def added_to(node: ast.AugAssign | ast.Expr) -> tuple[ast.expr | None, ast.expr | None]:
    """The container that a statement adds to, and what it adds as a list."""
    if isinstance(node, ast.AugAssign):
        return (node.target, node.value) if isinstance(node.value, LITERALS) else (None, None)
    call = node.value
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
        return None, None
    if call.func.attr in ("append", "insert"):
        return call.func.value, ast.List([call.args[-1]], ast.Load())
    if call.func.attr == "extend":
        given = call.args[0]
        return call.func.value, given if isinstance(given, LITERALS) else ast.List([ast.Starred(given)], ast.Load())
    return None, None


def installed(node: ast.stmt) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """The object to which a statement gives an attribute by a text, the text, and what it gives: `setattr(self, name,
    layer)`, `self.add_module(name, layer)`."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[owner, text, given])):
            return owner, text, given
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=attr), args=[text, given])):
            return (owner, text, given) if attr in _INSTALLS else None
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Attribute(value=owner, attr="_modules"), slice=text)], value=given
        ):
            return owner, text, given
    return None


def held_layers(node: ast.Call) -> ast.expr | None:
    """The layer whose own layers a call gives: `self` of `self.children()` and `self._modules.values()`."""
    match node.func:
        case ast.Attribute(value=owner, attr="children" | "named_children"):
            return owner
        case ast.Attribute(value=ast.Attribute(value=owner, attr="_modules"), attr="values" | "items"):
            return owner
    return None


def handed_above(node: ast.stmt) -> Sequence[ast.expr]:
    """What a statement hands to the constructor above: `super().__init__(Conv(), Noise())`."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"))):
            return node.value.args if isinstance(node.value, ast.Call) else ()
    return ()


def entered(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The containers in which an assignment makes an entry of what a call gives, and the entry as a list."""
    for target in node.targets if isinstance(node.value, ast.Call) else ():
        if isinstance(target, ast.Subscript):
            yield target.value, ast.List([node.value], ast.Load())


def leaves_early(body: list[ast.stmt]) -> bool:
    """Whether a block never runs on into what follows it."""
    last = body[-1]
    if isinstance(last, LEAVING):
        return True
    return (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and last_word(last.value) in ("exit", "_exit", "quit")
    )


def goes_on(body: list[ast.stmt]) -> bool:
    """Whether a block that leaves ends one turn of a loop, or the program with a complaint: a run that succeeds has
    passed what follows it."""
    *before, last = body
    if isinstance(last, (ast.Raise, ast.Continue, ast.Break)):
        return True
    return not isinstance(last, ast.Return) and bool(before) and all(map(_complains, before))


def _complains(node: ast.stmt) -> bool:
    """Whether a statement says why the program ends."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and last_word(node.value) in _COMPLAINS


def fails_without(node: ast.If | ast.Assert) -> ast.Call | None:
    """The call that has to give True for the program to go on: `assert ready()`, `if not ready(): raise …`."""
    test = node.test
    if isinstance(node, ast.If):
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and leaves_early(node.body)):
            return None
        test = test.operand
        if isinstance(node.body[-1], (ast.Continue, ast.Break)) or not goes_on(node.body):
            return None
    return test if isinstance(test, ast.Call) else None


def statements_in(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a scope in order, those of its blocks included, those of inner scopes not."""
    stack = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        inner: list[ast.stmt] = []
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            for child in getattr(node, name, ()):
                if isinstance(child, ast.stmt):
                    inner.append(child)
                else:
                    inner.extend(getattr(child, "body", ()))
        stack.extend(reversed(inner))


def placed(body: list[ast.stmt], attribute: str) -> Iterator[ast.expr]:
    """The values that statements give to an attribute of that name of any object but `self`: `args.net = Net`."""
    for statement in (one for one in statements_in(body) if isinstance(one, ast.Assign)):
        for target in statement.targets:
            if isinstance(target, ast.Attribute) and target.attr == attribute and last_word(target.value) != "self":
                yield statement.value


# The function that runs the factories of a class's fields.
FACTORIES = "default_factory"
_EMPTY = frozenset({"dict", "list", "set", "tuple"})


# Arguments that a loader, or the data set that it goes through, calls for each row or batch.
_RUN_ON_ROWS = frozenset({"collate_fn", "transform", "transforms", "target_transform"})


def handed_lambdas(statement: ast.stmt) -> Iterator[ast.Lambda]:
    """The lambdas that calls in a statement, apart from its blocks, hand to a loader, a data set or a transform."""
    parts = [getattr(statement, field, None) for field in ("value", "iter")]
    for node in (one for part in parts if isinstance(part, ast.expr) for one in walk(part)):
        if isinstance(node, ast.Call):
            given = [word.value for word in node.keywords if word.arg in _RUN_ON_ROWS]
            given += node.args[:1] if last_word(node.func) == "Lambda" else []
            yield from (one for one in given if isinstance(one, ast.Lambda))


def defined_by(node: ast.Lambda, name: str) -> ast.FunctionDef:
    """The function `name` that does what the lambda `node` does."""
    body = ast.copy_location(ast.Return(node.body), node)
    return ast.copy_location(ast.FunctionDef(name=name, args=node.args, body=[body], decorator_list=[]), node)


def _made_by_fields(node: ast.ClassDef) -> Iterator[tuple[ast.AnnAssign, ast.Name, ast.expr]]:
    """The fields of a data class that have a factory, their names, and these."""
    for field in node.body:
        value, target = getattr(field, "value", None), getattr(field, "target", None)
        if isinstance(field, ast.AnnAssign) and isinstance(value, ast.Call) and isinstance(target, ast.Name):
            for word in value.keywords:
                if word.arg in ("default_factory", "factory") and last_word(word.value) not in _EMPTY:
                    yield field, target, word.value


def factory_lambdas(node: ast.ClassDef) -> list[ast.Lambda]:
    """The lambdas among the factories of a data class's fields."""
    return [made for _, _, made in _made_by_fields(node) if isinstance(made, ast.Lambda)]


def factories(node: ast.ClassDef) -> ast.FunctionDef | None:
    """What the fields of a data class run where an object is made: `tag: str = field(default_factory=new_tag)`."""
    body: list[ast.stmt] = []
    for field, target, factory in _made_by_fields(node):
        made = factory.body if isinstance(factory, ast.Lambda) else ast.Call(factory, [], [])
        kept = ast.Attribute(ast.Name("self", ast.Load()), target.id, ast.Store())
        assigned = ast.copy_location(ast.Assign([kept], ast.copy_location(made, factory)), field)
        body.append(ast.fix_missing_locations(assigned))
    if not body:
        return None
    args = ast.arguments([], [ast.arg("self")], None, [], [], None, [])
    function = ast.FunctionDef(name=FACTORIES, args=args, body=body, decorator_list=[])
    return ast.fix_missing_locations(ast.copy_location(function, body[0]))


class Part(ast.Call):
    """A call of which the part at a place is meant."""

    whole: ast.Call
    place: int


def _part(call: ast.Call, place: int) -> Part:
    one = ast.copy_location(Part(call.func, call.args, call.keywords), call)
    one.whole, one.place = call, place
    return one


def paired(targets: Sequence[ast.expr], value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment assigns, each with what it gets: of a tuple its parts, each with its part of a call, or with
    one of what else is unpacked."""
    for target in targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        if not parts:
            yield target, value
        elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(parts):
            yield from zip(parts, value.elts, strict=True)
        else:
            shifted = any(isinstance(part, ast.Starred) for part in parts)
            for place, part in enumerate(parts):
                if isinstance(value, ast.Call):
                    yield part, value if shifted else _part(value, place)
                else:
                    yield part, ast.Starred(value)


def looped_over(target: ast.expr, over: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names that stand for one of a container in a loop over it, each with the container."""
    call = over if isinstance(over, ast.Call) and over.args else None
    word = last_word(call) if call is not None else ""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    if call is None or word not in (*PASSED_ON, "zip"):
        if len(parts) == 2 and goes_through_table(over) and last_word(over) in ("items", "named_children"):
            target = parts[1]
        if isinstance(target, ast.Name):
            yield target.id, over
    elif word == "enumerate":
        yield from looped_over(parts[1], call.args[0]) if len(parts) == 2 else ()
    elif word == "zip":
        for part, one in zip(parts, call.args, strict=False):
            yield from looped_over(part, one)
    else:
        yield from looped_over(target, call.args[0])


def goes_through_table(over: ast.expr) -> bool:
    """Whether `over` gives what a dictionary, or a layer, holds: `table.values()`, `net.children()`."""
    is_method = isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and not over.args
    return is_method and last_word(over) in ("items", "values", "children", "named_children")


def parameters_of(args: ast.arguments) -> list[ast.arg]:
    """The parameters of a function, stars last."""
    stars = [star for star in (args.vararg, args.kwarg) if star is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *stars]


def required_of(args: ast.arguments) -> tuple[str, ...]:
    """The parameters of a function that have no default."""
    by_place = [*args.posonlyargs, *args.args]
    by_name = (one for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default is None)
    return tuple(one.arg for one in (*by_place[: len(by_place) - len(args.defaults)], *by_name))


def configuration_of(node: ast.Call) -> ast.expr | None:
    """The part of a configuration that Hydra's `instantiate` is given: its first argument, `config`."""
    named = (word.value for word in node.keywords if word.arg == "config")
    return node.args[0] if node.args else next(named, None)


def as_text(node: ast.expr) -> ast.expr:
    """`x` of `str(x)`; anything else as it is."""
    match node:
        case ast.Call(func=ast.Name(id="str"), args=[inner], keywords=[]):
            return inner
    return node


def as_table(node: ast.expr) -> ast.expr:
    """`dict(a=A, b=B)` as the display that it amounts to; anything else as it is."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "dict" or node.args:
        return node
    keys: list[ast.expr | None] = [ast.Constant(word.arg) for word in node.keywords if word.arg is not None]
    if not keys or len(keys) < len(node.keywords):
        return node
    return ast.copy_location(ast.Dict(keys, [word.value for word in node.keywords]), node)


def as_data(node: ast.Dict) -> dict[str, Any]:
    """A dictionary that is written out, as the YAML that says the same gives it; what is no constant is `UNKNOWN`."""
    found: dict[str, Any] = {}
    left: list[tuple[ast.Dict, dict[str, Any]]] = [(node, found)]
    while left:
        table, into = left.pop()
        for key, value in zip(table.keys, table.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                into[HIDDEN] = True
            elif isinstance(value, ast.Dict):
                inner: dict[str, Any] = {}
                into[key.value] = inner
                left.append((value, inner))
            else:
                into[key.value] = value.value if isinstance(value, ast.Constant) else UNKNOWN
    return found


def functions_in(statements: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """The functions and methods of a file by their qualified names."""
    for node in statements:
        if isinstance(node, FUNCTIONS):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions_in(node.body, f"{prefix}{node.name}.")


def entries_returned(body: list[ast.stmt], key: str) -> Iterator[ast.expr]:
    """What stands under `key` in the dictionaries that a function with this `body` returns: written out, by a name too,
    or assigned there."""
    statements = list(statements_in(body))
    returned = [one.value for one in statements if isinstance(one, ast.Return)]
    names = {value.id for value in returned if isinstance(value, ast.Name)}
    shown: list[ast.expr | None] = [*returned]
    given = [one for one in statements if isinstance(one, ast.Assign)]
    for target, value in [(target, one.value) for one in given for target in one.targets]:
        if isinstance(target, ast.Name) and target.id in names:
            shown.append(value)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id in names:
            yield from [value] if key_of(target.slice) == key else []
    for table in shown:
        if isinstance(table, ast.Dict):
            pairs = zip(table.keys, table.values, strict=True)
            yield from (entry for name, entry in pairs if name is not None and key_of(name) == key)
        elif isinstance(table, ast.Call) and last_word(table.func) == "dict":
            yield from (word.value for word in table.keywords if word.arg == key)
