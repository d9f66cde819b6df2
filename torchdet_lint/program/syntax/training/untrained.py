"""The statements of a function -> what it makes only to count or to trace with, and what it freezes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import TYPE_CHECKING, TypeGuard

from torchdet_lint.prefilter.main_guard import is_main_guard
from torchdet_lint.prefilter.syntax import children, walk
from torchdet_lint.program.syntax.shapes import FUNCTIONS, SIZES, last_word
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_SHOWS = frozenset({"print", "repr", "str", "type"})
_LOOPS = (ast.For, ast.comprehension)
# Methods that put a model on a device or in a mode, and give it back.
_MOVES = frozenset({"cuda", "cpu", "to", "float", "double", "half", "eval", "train"})
# What gives the weights of a model, and of a layer: tensors, and what is called for them.
_TENSORS = frozenset({"weight", "bias"})
_WEIGHTS = _TENSORS | {"state_dict", "load_state_dict", "parameters", "named_parameters"}
# What stands after a layer that is bound, or of which weights and sizes are read.
_READ = lazy(r"\s*(?::[^=\n]+)?=(?!=)|\.(?:weight|num_embeddings|embedding_dim|padding_idx)\b")
# What gives all layers of an object, by whatever names.
_GOES_THROUGH = lazy(r"\bchildren[ \t]*\(|\b_modules\b|\bgetattr[ \t]*\(\s*\w+\s*,(?!\s*[\"'])")
# What the last layers of models are called, the only ones that are trained where a model is adapted to other data.
_HEADS = frozenset({"classifier", "fc", "head", "heads", "last_linear"})
# How the names of classes end that hold values, which are printed.
_VALUES = ("Tensor", "Variable", "Parameter", "DataFrame", "Series", "Frame", "Result")


def loads_weights(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether `loop` gives every parameter of a model what a table holds under its name: `p.data = weights[name]`, or
    `own[name].copy_(weight)` for what the table holds; a function of the project may add the buffers."""
    if not isinstance(loop.target, ast.Tuple) or len(loop.target.elts) != 2 or not isinstance(loop.iter, ast.Call):
        return False
    name, given = (one.id if isinstance(one, ast.Name) else "" for one in loop.target.elts)
    named = last_word(loop.iter.func).startswith("named_param")
    if not name or not (named or last_word(loop.iter.func) == "items"):
        return False
    for node in (inner for statement in loop.body for inner in walk(statement)):
        for written, value in _written(node):
            own = isinstance(written, ast.Name) and written.id == given
            if (own and _is_under(value, name)) if named else _is_under(written, name):
                return True
    return False


def _written(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The tensor into which `node` writes, `p.data = x` or `p.copy_(x)`, and what."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="data", value=written)], value=value):
            yield written, value
        case ast.Call(func=ast.Attribute(attr="copy_", value=ast.Attribute(attr="data", value=written)), args=[value]):
            yield written, value
        case ast.Call(func=ast.Attribute(attr="copy_", value=written), args=[value]):
            yield written, value


def _is_under(node: ast.expr, name: str) -> bool:
    """Whether `node` takes what a table holds under `name`."""
    return any(
        isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Name) and one.slice.id == name
        for one in walk(node)
    )


def inspected(body: Sequence[ast.stmt], traces: Callable[[ast.Call], bool]) -> frozenset[str]:
    """The names of the models that a function makes only to look at them: it prints or exports them, applies them for
    the shape of what comes out, or loops over parameters of which it takes the sizes."""
    nodes = [node for statement in body for node in walk(statement)]
    loops = [loop for node in nodes if isinstance(loop := node, _LOOPS) and _owner(loop.iter)]
    # The variable of a comprehension is another one outside of it.
    inside = [node for node in nodes if any(loop in getattr(node, "generators", ()) for loop in loops)]
    own, outer = _variables(loops), _variables(loop for loop in loops if isinstance(loop, ast.For))
    parameters = {id(name) for part in inside for name in walk(part) if isinstance(name, ast.Name) and name.id in own}
    parameters |= {id(name) for name in nodes if isinstance(name, ast.Name) and name.id in outer}
    harmless = {id(name) for loop in loops for name in walk(loop.iter)}
    models = {_owner(loop.iter) for loop in loops}
    harmless |= _notes(nodes) - parameters
    sized: set[int] = set()
    outputs: dict[str, list[ast.Name]] = {}
    for node in nodes:
        if isinstance(node, ast.Call):
            if traces(node) or (isinstance(node.func, ast.Name) and node.func.id in _SHOWS):
                harmless.update(map(id, node.args))
        elif isinstance(node, ast.Attribute) and node.attr in SIZES:
            inner = node.value
            sized.add(id(inner.value if isinstance(inner, ast.Attribute) and inner.attr == "data" else inner))
        elif isinstance(node, ast.Expr):
            harmless.add(id(_moved(node.value)))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            harmless.add(id(_moved(node.value)))
            models |= {node.targets[0].id} if _is_model(_moved(node.value)) else set()
            if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
                outputs.setdefault(node.targets[0].id, []).append(node.value.func)
    loads = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    if any(id(name) in parameters and id(name) not in sized | harmless for name in loads):
        return frozenset()
    kept = {name.id for name in loads if id(name) not in sized}
    applied = {id(name) for output in outputs.keys() - kept for name in outputs[output]}
    applied |= {id(node.func) for node in nodes if isinstance(node, ast.Call) and id(node) in sized}
    used = {name.id for name in loads if id(name) not in harmless | applied}
    return frozenset(models & {name.id for name in loads}) - used


def _variables(loops: Iterable[ast.For | ast.comprehension]) -> set[str]:
    return {name.id for loop in loops for name in walk(loop.target) if isinstance(name, ast.Name)}


def _notes(nodes: Sequence[ast.AST]) -> set[int]:
    """The names, by identity, of objects of which an attribute is bound, or read that is bound here: `layer.index =
    index`."""
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    bound = {ast.unparse(node) for node in attributes if isinstance(node.ctx, ast.Store)}
    return {id(node.value) for node in attributes if bound and ast.unparse(node) in bound}


def _moved(value: ast.expr) -> ast.expr:
    """`Net()` of `Net().to(device).eval()`, and `net` of `net.cuda()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
        value = value.func.value
    return value


def _is_model(made: ast.expr) -> bool:
    """Whether an expression evidently makes an object, of which printing shows the parts, and nothing else but its
    parts: `Sequential(Linear(1, 2), ReLU())`."""
    if not isinstance(made, ast.Call):
        return False
    words = [last_word(node.func) for node in walk(made) if isinstance(node, ast.Call)]
    return all(word[:1].isupper() and not word.endswith(_VALUES) for word in words)


def read_inside(functions: Iterable[ast.AST]) -> set[str]:
    """The names that functions read of their file's top level."""
    found: set[str] = set()
    for function in functions:
        names = [node for node in walk(function) if isinstance(node, ast.Name)]
        own = {node.arg for node in walk(function) if isinstance(node, ast.arg)}
        own |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
        found |= {name.id for name in names} - own
    return found


def traced(body: Sequence[ast.stmt], traces: Callable[[ast.Call], bool]) -> frozenset[str]:
    """The names of a function that are handed to nothing but calls that `traces` knows; their sizes may be read."""
    nodes = [node for statement in body for node in walk(statement)]
    given = {
        id(name): name.id
        for node in nodes
        if isinstance(node, ast.Call) and traces(node)
        for argument in (*node.args, *(word.value for word in node.keywords))
        for name in walk(argument)
        if isinstance(name, ast.Name)
    }
    sizes = {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and node.attr in SIZES}
    loads = (node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return frozenset(given.values()) - {name.id for name in loads if id(name) not in sizes | given.keys()}


def unapplied(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The names of what a function makes only for its weights, `w.fc.weight` and `w.state_dict()`, and never applies or
    hands on."""
    return _made_for(body, _reads_weights)


def scored(body: Sequence[ast.stmt], switched: Callable[[ast.expr], bool | None]) -> frozenset[str]:
    """The names of what a function makes and applies without gradients only, in a `with torch.no_grad()`, and never
    hands on; `switched` says whether gradients are on in a context manager: None where that is about something else."""

    def is_harmless(name: ast.Name, around: Mapping[ast.AST, ast.AST]) -> bool:
        return _reads_weights(name, around) or _settles(name, around) or _runs_off(name, around, switched)

    return _made_for(body, is_harmless)


def _made_for(
    body: Sequence[ast.stmt], is_harmless: Callable[[ast.Name, Mapping[ast.AST, ast.AST]], bool]
) -> frozenset[str]:
    """The names of what a function makes and reads only where that `is_harmless`, given what is around each node."""
    nodes = [node for statement in body for node in walk(statement)]
    made = {
        node.targets[0].id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_made(node.value)
    }
    around = {inner: node for node in nodes for inner in children(node)} if made else {}
    loads = [name for name in nodes if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)]
    read = {name.id: True for name in loads if name.id in made}
    for name in loads:
        if name.id in made:
            read[name.id] = read[name.id] and is_harmless(name, around)
    shared = {word for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for word in node.names}
    stored = {node.id for node in nodes if _is_bound_otherwise(node, around)}
    return frozenset(name for name, harmless in read.items() if harmless) - shared - stored


def _settles(name: ast.Name, around: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a read of a model is `model.requires_grad_(…)`, which stands alone."""
    method = around.get(name)
    called = around.get(method) if isinstance(method, ast.Attribute) and method.attr == "requires_grad_" else None
    return isinstance(called, ast.Call) and called.func is method and isinstance(around.get(called), ast.Expr)


def _runs_off(name: ast.Name, around: Mapping[ast.AST, ast.AST], switched: Callable[[ast.expr], bool | None]) -> bool:
    """Whether a read of a model applies it, or calls a method of it, where the nearest `with` about gradients switches
    them off."""
    applied = around.get(name)
    if isinstance(applied, ast.Attribute):
        applied = around.get(method := applied)
        runs = isinstance(applied, ast.Call) and applied.func is method and method.attr not in _MOVES
    else:
        runs = isinstance(applied, ast.Call) and applied.func is name
    inner: ast.AST = name
    outer = around.get(inner)
    while runs and outer is not None and not isinstance(outer, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
        if isinstance(outer, (ast.With, ast.AsyncWith)) and inner in outer.body:
            told = [one for item in outer.items if (one := switched(item.context_expr)) is not None]
            if told:
                return not told[-1]
        inner, outer = outer, around.get(outer)
    return False


def uses_weight(text: str, attribute: str) -> bool:
    """Whether a file works with the weight of a layer that objects keep under a name: it does not only set it."""
    set_ = r"(?!\s*=(?!=)|\.(?:data|requires_grad\w*)\b)"
    return re.search(rf"\.{attribute}\.weight\b{set_}", text) is not None


def applies(text: str, attribute: str) -> bool:
    """Whether a file, with this text, may apply a layer that objects keep under a name, or hand it on: it does more
    with it than to read its weights and sizes and to bind it, or goes through all the layers of an object."""
    if attribute not in text:
        return False
    if _GOES_THROUGH.search(text) is not None or re.search(rf"[\"']{attribute}\b", text) is not None:
        return True
    return any(_READ.match(text, one.end()) is None for one in re.finditer(rf"\.{attribute}\b", text))


def _is_made(value: ast.expr) -> bool:
    """Whether a call makes what a name is given, maybe moved: of a class, or of a method of one."""
    value = _moved(value)
    if not isinstance(value, ast.Call):
        return False
    path = ast.unparse(value.func)
    return all(part.isidentifier() for part in path.split("."))


def _reads_weights(name: ast.Name, around: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a read of a model is one of weights of it, or moves it."""
    node: ast.AST = name
    while True:
        outer = around.get(node)
        if isinstance(outer, ast.Subscript) and outer.value is node:
            node = outer
            continue
        if not isinstance(outer, ast.Attribute):
            # What only moves it stands alone, or gives it its own name again.
            return node is not name and isinstance(node, ast.Call) and _is_kept_as(name.id, node, outer)
        called = around.get(outer)
        calls = isinstance(called, ast.Call) and called.func is outer
        if outer.attr in _WEIGHTS:
            return calls or outer.attr in _TENSORS
        if calls and outer.attr not in _MOVES:
            return False
        node = called if calls and called is not None else outer


def _is_kept_as(name: str, call: ast.Call, outer: ast.AST | None) -> bool:
    """Whether what a call gives is used for nothing, or called `name`."""
    own = isinstance(outer, ast.Assign) and [ast.unparse(one) for one in outer.targets] == [name]
    return own or isinstance(outer, ast.Expr)


def _is_bound_otherwise(node: ast.AST, around: Mapping[ast.AST, ast.AST]) -> TypeGuard[ast.Name]:
    """Whether a name is bound by something else than an assignment to it alone, which makes what it stands for, or
    moves that."""
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Store):
        return False
    outer = around.get(node)
    if not isinstance(outer, ast.Assign) or len(outer.targets) != 1:
        return True
    moved = _moved(outer.value)
    return not (_is_made(outer.value) or (isinstance(moved, ast.Name) and moved.id == node.id))


def frozen(body: Sequence[ast.stmt]) -> frozenset[str]:
    """What a function evidently takes the gradients of for good, as its text has it: `self.embedding`."""
    return frozenset(name for statement in body for name in _frozen_by(statement))


def trunks(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The models of which a function, or a file, trains nothing but a head that it puts there or leaves out, whatever
    its options: no gradient comes to the layers before."""
    nodes = [node for statement in body for node in walk(statement)]
    stored = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    on = (ast.unparse(one) for node in nodes if _is_on(node) for one in node.targets)
    switched = {name for name in on if stored[name] == 1}
    loops = [node for node in _certain(body, switched) if isinstance(node, ast.For) and _frozen_in(node)]
    inside = {id(inner) for loop in loops for inner in walk(loop)}
    if any(_thaws(node) for node in nodes if id(node) not in inside):
        return frozenset()
    assigned = [(ast.unparse(one), node) for node in nodes if isinstance(node, ast.Assign) for one in node.targets]
    headed = {_headed(target) for _, node in assigned for target in node.targets}
    # A name that stands for several models, one after the other, may be frozen as one of them.
    made = Counter(name for name, node in assigned if ast.unparse(_moved(node.value)) != name)
    return frozenset(
        owner
        for loop in loops
        if made[owner := _frozen_in(loop)] == 1 and (owner in headed or any(map(_leaves_head, walk(loop))))
    )


def _is_on(node: ast.AST) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is True


def _certain(body: Sequence[ast.stmt], switched: Set[str]) -> Iterator[ast.stmt]:
    """The statements that run whenever the function does: no option keeps them from it, but for names in `switched`."""
    for statement in body:
        yield statement
        match statement:
            case ast.With(body=inner) | ast.Try(body=inner):
                yield from _certain(inner, switched)
            case ast.If(test=ast.Name(id=name), body=inner) if name in switched:
                yield from _certain(inner, switched)
            case ast.If(body=inner) if is_main_guard(statement):
                yield from _certain(inner, switched)


def _frozen_in(loop: ast.For) -> str:
    """The model of which a loop freezes the parameters, as its text has it: all, or all that do not have the names of
    a head."""
    match loop:
        case ast.For(iter=ast.Call(func=ast.Attribute(value=owner, attr="parameters")), target=ast.Name(id=name)):
            inner: list[ast.stmt] = loop.body
        case ast.For(
            iter=ast.Call(func=ast.Attribute(value=owner, attr="named_parameters")),
            target=ast.Tuple(elts=[ast.Name(), ast.Name(id=name)]),
        ):
            inner = [one for part in loop.body for one in (part.body if _leaves_head(part) else [part])]
        case _:
            return ""
    return ast.unparse(owner) if name in frozen(inner) else ""


def _leaves_head(node: ast.AST) -> TypeGuard[ast.If]:
    """Whether a statement is `if name not in ("fc.weight", "fc.bias"):`, `if "fc" not in name:` or the like."""
    match node:
        case ast.If(test=ast.Compare(ops=[ast.NotIn()]) | ast.UnaryOp(op=ast.Not(), operand=ast.Call())):
            texts = [one.value for one in walk(node.test) if isinstance(one, ast.Constant)]
            return bool(texts) and all(isinstance(text, str) and text.split(".")[0] in _HEADS for text in texts)
    return False


def _headed(target: ast.expr) -> str:
    """`model` of `model.fc` and `model.classifier[6]`, which are assigned."""
    while isinstance(target, ast.Subscript):
        target = target.value
    named = isinstance(target, ast.Attribute) and target.attr in _HEADS
    return ast.unparse(target.value) if named and isinstance(target, ast.Attribute) else ""


def _thaws(node: ast.AST) -> bool:
    """Whether a node lets parameters have gradients."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=value):
            return not (isinstance(value, ast.Constant) and value.value is False)
        case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=args):
            return not (args and isinstance(args[0], ast.Constant) and args[0].value is False)
    return False


def _frozen_by(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=owner, attr="requires_grad")], value=ast.Constant(value=False)):
            yield _module(owner)
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=owner, attr="requires_grad_"), args=[ast.Constant(value=False)])
        ):
            yield _module(owner)
        case ast.Assign(targets=[ast.Attribute(attr="weight") as target], value=ast.Call() as made) if _needs_none(
            made
        ):
            yield _module(target)
        case ast.For(
            iter=ast.Call(func=ast.Attribute(value=owner, attr="parameters")), target=ast.Name(id=name), body=body
        ):
            if name in frozen(body):
                yield ast.unparse(owner)


def _module(node: ast.expr) -> str:
    """`self.embedding` of `self.embedding.weight`."""
    return ast.unparse(node.value if isinstance(node, ast.Attribute) and node.attr == "weight" else node)


def _needs_none(made: ast.Call) -> bool:
    """Whether a call makes a parameter without a gradient."""
    off = any(word.arg == "requires_grad" and getattr(word.value, "value", True) is False for word in made.keywords)
    return off and last_word(made.func) == "Parameter"


def _owner(iterated: ast.expr) -> str:
    """`model` of `model.parameters()`."""
    match iterated:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attribute)) if attribute in _PARAMETERS:
            return name
    return ""
