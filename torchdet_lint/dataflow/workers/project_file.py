"""A file of the project, by Python's parser -> its imports, its definitions, and what its names are bound to."""

from __future__ import annotations

import ast
import functools
from collections import deque
from typing import TYPE_CHECKING, TypeGuard

from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.skeleton import dotted_name, imported
from torchdet_lint.prefilter.syntax import beginning, statements, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class File:
    """A file of the project: what its top-level names are, and the attributes that it sets of anything but `self`.
    `path` is empty for the file that is linted."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree
        self.imports: dict[str, str] = {}
        self.stars: list[str] = []
        self.definitions: dict[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.values: dict[str, list[ast.expr]] = {}
        self.set_outside: set[str] = set()
        made: list[tuple[str, str]] = []
        for node in every_statement(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for name, origin in imported(node):
                    if name == "*":
                        self.stars.append(origin)
                    else:
                        self.imports[name] = origin
            for target, value in assigned(node):
                if isinstance(target, ast.Attribute) and not _is_own(target):
                    self.set_outside.add(target.attr)
                elif isinstance(target, ast.Name) and isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
                    made.append((target.id, value.func.id))
        for statement in statements(tree.body):
            if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                self.definitions[statement.name] = statement
            for name, value in bindings(statement):
                self.values.setdefault(name, []).append(value)
        for name, maker in made:
            definition = self.definitions.get(maker)
            if isinstance(definition, ast.FunctionDef) and (module := module_given(definition)):
                self.imports.setdefault(name, module)

    def lacks(self, name: str) -> bool:
        """Whether nothing in the file binds `name`, wherever: to read it raises."""
        return not self.stars and name not in self._bound and "exec" not in self._bound

    @functools.cached_property
    def _bound(self) -> frozenset[str]:
        """Every name that something in the file binds, and those of builtins; `exec` where the file may bind others."""
        found = {*BUILTINS - {"exec"}, *self.imports, *self.definitions}
        for node in walk(self.tree):
            match node:
                case ast.Name(id="exec") | ast.Attribute(value=ast.Call(func=ast.Name(id="globals" | "vars"))):
                    found.add("exec")
                case ast.Subscript(value=ast.Call(func=ast.Name(id="globals" | "vars")), ctx=ast.Store()):
                    found.add("exec")
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    found.add(name)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found.add(name)
                case ast.Import() | ast.ImportFrom():
                    found.update(name for name, _ in imported(node))
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    found.add(name)
        return frozenset(found)


def module_given(function: ast.FunctionDef) -> str:
    """The first of the modules that `function` imports and gives; empty where it may give anything else."""
    nodes = list(every_statement(function))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    given = [dotted_name(node.value) for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    return given[0] if modules and given and modules.issuperset(given) else ""


def below(name: str, names: frozenset[str]) -> bool:
    """Whether `name` is one of `names` or an attribute of one."""
    while name:
        if name in names:
            return True
        name = name.rpartition(".")[0]
    return False


def every_statement(root: ast.AST) -> Iterator[ast.AST]:
    """`root`, and every statement, handler and case below it, in the order of `ast.walk`, without the expressions."""
    queue = deque([root])
    while queue:
        node = queue.popleft()
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            below = getattr(node, field, ())
            if isinstance(below, list):
                queue.extend(below)
        yield node


def assigned(statement: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets that a statement gives a value; one of several that are unpacked gets its part, a
    `Part` of what a call gives, or the whole."""
    if isinstance(statement, ast.Assign):
        value, targets = statement.value, statement.targets
        if isinstance(value, ast.NamedExpr):
            targets, value = [*targets, value.target], value.value
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
                if isinstance(value, ast.Call):
                    parts = [once(one, functools.partial(Part, value, place)) for place, one in enumerate(target.elts)]
                parts = parts if len(parts) == len(target.elts) else [value] * len(target.elts)
                yield from zip(target.elts, parts, strict=True)
            else:
                yield target, _display_of(value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield statement.target, _display_of(statement.value)
    elif isinstance(statement, ast.Expr):
        match statement.value:
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str() as name), value]):
                yield once(statement.value, functools.partial(ast.Attribute, owner, name)), value


def _display_of(value: ast.expr) -> ast.expr:
    """`{k: v for …}` for `dict((k, v) for …)`; any other value as it is."""
    match value:
        case ast.Call(
            func=ast.Name(id="dict"),
            args=[ast.GeneratorExp(elt=ast.Tuple(elts=[key, made])) | ast.ListComp(elt=ast.Tuple(elts=[key, made]))],
            keywords=[],
        ):
            generators = value.args[0].generators  # type: ignore[attr-defined]
            return once(value, lambda: ast.copy_location(ast.DictComp(key, made, generators), value))
    return value


def once(target: ast.expr, make: Callable[[], ast.expr]) -> ast.expr:
    """What is made for `target`, once: who follows values knows them by their identity."""
    known: dict[str, ast.expr] = vars(target)
    if "given" not in known:
        known["given"] = make()
    return known["given"]


def branches(node: ast.expr) -> list[ast.expr]:
    """What a choice may give: `a if x else b if y else c`, `a or b`."""
    found: list[ast.expr] = []
    stack: list[ast.expr] = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, ast.IfExp):
            stack += [one.orelse, one.body]
        elif isinstance(one, ast.BoolOp):
            stack += reversed(one.values)
        else:
            found.append(one)
    return found


def left_of(value: ast.expr, idle: Collection[int]) -> ast.expr:
    """What `value` is where the nodes with the ids `idle` do not run: of a choice, what is left of it."""
    while isinstance(value, ast.IfExp) and (id(value.body) in idle or id(value.orelse) in idle):
        value = value.orelse if id(value.body) in idle else value.body
    return value


class Part(ast.expr):
    """What stands at `place` in what the call `over` gives."""

    def __init__(self, over: ast.Call, place: int) -> None:
        super().__init__()
        self.over = over
        self.place = place


class Element(ast.expr):
    """Any element of what `over` is, or of each of these elements what stands at `places`, the outermost first; with
    `picked` any entry of a dictionary too."""

    def __init__(self, over: ast.expr, places: tuple[int, ...] = (), *, picked: bool = False) -> None:
        super().__init__()
        self.over = over
        self.places = places
        self.picked = picked


def bound_elements(loop: ast.For | ast.AsyncFor | ast.comprehension) -> Iterator[tuple[str, ast.expr]]:
    """The names that a loop gives one element after the other."""
    if isinstance(loop.target, ast.Name):
        yield loop.target.id, once(loop.target, functools.partial(Element, loop.iter))
    paired = isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call)
    for place, target in enumerate(loop.target.elts) if paired and isinstance(loop.target, ast.Tuple) else ():
        if isinstance(target, ast.Name):
            yield target.id, once(target, functools.partial(Element, loop.iter, (place,)))


def bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement gives a value."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        yield from bound_elements(statement)
    for target, value in assigned(statement):
        if isinstance(target, ast.Name):
            yield target.id, value


def added(statement: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The lists and dictionaries to which a statement adds something, and what it adds."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Subscript):
                yield target.value, statement.value
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        yield statement.target, statement.value
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function, args = statement.value.func, statement.value.args
        if isinstance(function, ast.Attribute) and function.attr in ("append", "extend", "insert") and args:
            yield function.value, args[-1]


def puts_argument(function: ast.FunctionDef, table: str) -> bool:
    """Whether `function`, or one that it defines, puts its first argument into the dictionary `table`: a decorator that
    registers what it stands above."""
    for inner in every_statement(function):
        first = inner.args.args[:1] if isinstance(inner, ast.FunctionDef) else []
        for statement in every_statement(inner) if first else ():
            for to, value in added(statement):
                names = [one.id for one in (to, value) if isinstance(one, ast.Name)]
                if names == [table, first[0].arg]:
                    return True
    return False


def own_added(function: ast.FunctionDef) -> list[tuple[str, ast.expr]]:
    """What a method adds to lists and dictionaries that attributes of `self` hold: their names and the values."""
    pairs = (pair for node in every_statement(function) for pair in added(node))
    return [(target.attr, value) for target, value in pairs if _is_own(target)]


def method(class_: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    """The method `name` that the class itself defines."""
    return next((one for one in class_.body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def own_assignments(function: ast.FunctionDef) -> list[tuple[str, ast.expr]]:
    """What a method assigns to attributes of `self`: their names and the values."""
    pairs = (pair for node in every_statement(function) for pair in assigned(node))
    return [(target.attr, value) for target, value in pairs if _is_own(target)]


def picked_from(node: ast.expr) -> ast.expr | None:
    """What `getattr(module, name)` takes something from."""
    picks = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr"
    return node.args[0] if picks and isinstance(node, ast.Call) and len(node.args) == 2 else None


def contents_of(node: ast.expr) -> ast.expr | None:
    """The module of which `vars(module)` or `module.__dict__` gives all names."""
    match node:
        case ast.Attribute(value=module, attr="__dict__") | ast.Call(func=ast.Name(id="vars"), args=[module]):
            return module
    return None


def members_of(node: ast.expr) -> ast.expr | None:
    """The module of which `vars(module).items()`, its values, or `inspect.getmembers(module)` give what it holds."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="items" | "values")):
            return contents_of(owner)
        case ast.Call(args=[module, *_]) if dotted_name(node.func).rpartition(".")[2] == "getmembers":
            return module
    return None


def evaluated_from(node: ast.expr) -> str | None:
    """The module from which `eval("dataset." + kind)` takes something; empty for `eval(kind)` and `globals()[kind]`,
    which take something of the file itself; None for another expression."""
    match node:
        case ast.Subscript(value=ast.Call(func=ast.Name(id="globals"))):
            return ""
        case ast.Call(func=ast.Name(id="eval"), args=[text]) if not isinstance(text, ast.Constant):
            told = beginning(text)
            return told.rpartition(".")[0] if all(map(str.isidentifier, f"{told}_".split("."))) else None
    return None


def text_imported(node: ast.expr, place: int = 0) -> ast.expr | None:
    """The argument at `place` of a call of `import_module`."""
    if isinstance(node, ast.Call) and dotted_name(node.func).rpartition(".")[2] in ("import_module", "__import__"):
        return node.args[place] if place < len(node.args) else None
    return None


def own_attributes(function: ast.FunctionDef, dead: tuple[ast.AST, ...] = ()) -> list[str]:
    """The attributes of `self` that a method names, outside of what is `dead`."""
    idle = {id(one) for part in dead for one in walk(part)}
    return [node.attr for node in walk(function) if id(node) not in idle and _is_own(node)]


def _is_own(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def passed(function: Function, call: ast.Call, *, bound: bool) -> dict[str, ast.expr]:
    """What `call` gives the parameters of `function`, of which a `bound` one has the first already."""
    parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)][1 if bound else 0 :]
    found: dict[str, ast.expr] = {}
    for name, argument in zip(parameters, call.args, strict=False):
        if isinstance(argument, ast.Starred):
            break
        found[name] = argument
    found.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None})
    return found


def way_to(node: ast.expr, function: ast.FunctionDef) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
    """The blocks of `function` around `node`, from its body inwards, each with the statement that holds `node`."""
    block: list[ast.stmt] = function.body
    while (around := next((one for one in block if spans([one], node)), None)) is not None:
        yield block, around
        inside = [getattr(around, name, None) for name in ("body", "orelse", "finalbody")]
        block = next((one for one in inside if isinstance(one, list) and one and spans(one, node)), [])


def spans(block: list[ast.stmt], node: ast.expr) -> bool:
    """Whether `node` stands in the lines of `block`."""
    return block[0].lineno <= node.lineno <= (block[-1].end_lineno or 0)


def handed_on(function: ast.FunctionDef) -> ast.Call | None:
    """The call by which a constructor calls the one of its base class."""
    for node in walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "__init__"
            and isinstance(node.func.value, ast.Call)
            and isinstance(node.func.value.func, ast.Name)
            and node.func.value.func.id == "super"
        ):
            return node
    return None
