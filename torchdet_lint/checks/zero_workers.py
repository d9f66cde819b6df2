"""The number of workers that a loader is given -> whether it is 0 in all that is in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.dataflow.relatives import annotated_class
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.module.tree import named_parameters, positional
from torchdet_lint.prefilter.option_values import given_in_code

if TYPE_CHECKING:
    from torchdet_lint.module.module import Call, Module, Value

WORKERS = "num_workers"
_FOLLOWED = 4
_ZERO = "0"


def stays_zero(module: Module, workers: Value, depth: int = _FOLLOWED) -> bool:
    """Whether a number of workers is a parameter, or an attribute that is one, which is 0 unless somebody says
    otherwise, and nobody in sight does."""
    node = workers.node
    if workers.known:
        return is_zero(workers)
    if (entry := _entry(node)) is not None:
        return _is_handed(module, entry[0], workers, depth) and _is_left_zero(module, entry[1])
    if isinstance(node, cst.Attribute):
        given = module.self_attribute(node, workers.scope)
        kept = depth > 0 and bool(given) and all(stays_zero(module, one, depth - 1) for one in given)
        return kept or (not given and _is_option_left_zero(module, node, workers))
    read = module.followed(node, workers.scope, workers.order) if isinstance(node, cst.Name) and depth > 0 else None
    if read is not None and isinstance(read.node, cst.Attribute):
        return stays_zero(module, read, depth - 1)
    home = workers.scope.home(node.value) if isinstance(node, cst.Name) else None
    bindings = home.bindings[node.value] if isinstance(node, cst.Name) and home is not None else ()
    return (
        bool(bindings)
        and all(one.kind == "parameter" and _is_given_zero(module, workers) for one in bindings)
        and not _is_given_elsewhere(module, workers, depth)
    )


def _is_option_left_zero(module: Module, node: cst.Attribute, workers: Value) -> bool:
    """Whether `node` is an option of an object of the project, a configuration, say, to which what is in sight gives 0
    and nothing else: no other file, no file of data, no option of the command line."""
    return _is_of_project(module, node.value, workers, _FOLLOWED) and _is_left_zero(module, node.attr.value)


def _is_left_zero(module: Module, word: str) -> bool:
    """Whether all that gives something to an option, or under a key, called `word` gives it 0."""
    given = module.option(word) if module.option is not None else None
    return given is not None and given | set(given_in_code(word, module.text)) == {_ZERO}


def _entry(node: cst.BaseExpression) -> tuple[cst.BaseExpression, str] | None:
    """The dictionary and the key of `config["num_workers"]`, and of `config.get("num_workers", 0)`."""
    owner: cst.BaseExpression | None = None
    key: cst.BaseExpression | None = None
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        owner, key = node.value, node.slice[0].slice.value
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
        owner, key = node.func.value, node.args[0].value if node.args else None
    text = key.evaluated_value if isinstance(key, cst.SimpleString) else None
    return (owner, text) if owner is not None and isinstance(text, str) else None


def _is_handed(module: Module, node: cst.BaseExpression, at: Value, depth: int) -> bool:
    """Whether `node`, at the place of `at`, is a dictionary that a function takes, `**config`, or that is written out,
    or an attribute of `self` that is one."""
    if isinstance(node, cst.Attribute):
        given = module.self_attribute(node, at.scope)
        return depth > 0 and bool(given) and all(_is_handed(module, one.node, one, depth - 1) for one in given)
    home = at.scope.home(node.value) if isinstance(node, cst.Name) else None
    if not isinstance(node, cst.Name) or home is None:
        return isinstance(node, cst.Dict)
    if not isinstance(home.node, cst.FunctionDef):
        return False
    star = home.node.params.star_kwarg
    return star is not None and star.name.value == node.value and len(home.bindings[node.value]) == 1


def _is_of_project(module: Module, node: cst.BaseExpression, at: Value, depth: int) -> bool:
    """Whether `node`, at the place of `at`, is an object or a class of the project, or a part of one: bound at the top
    level of a file, made by a call of what the project defines, or by its annotation."""
    while isinstance(node, cst.Attribute):
        given = module.self_attribute(node, at.scope)
        if given:
            return depth > 0 and all(_is_of_project(module, one.node, one, depth - 1) for one in given)
        node = node.value
    if isinstance(node, cst.Call):
        names = module.resolve(node.func, at.scope, at.order)
        return any(
            name.startswith("@.") or (module.neighbour is not None and module.neighbour(name) is not None)
            for name in names
        )
    home = at.scope.home(node.value) if isinstance(node, cst.Name) else None
    if not isinstance(node, cst.Name) or home is None or depth <= 0:
        return False
    for binding in home.bindings[node.value]:
        if binding.kind == "parameter":
            found = annotated_class(module, node) is not None
        elif binding.kind == "assign" and home is not module.scope:
            value = module.value_at(binding.value, home, binding.order) if binding.value is not None else None
            found = value is not None and not binding.path and _is_of_project(module, value.node, value, depth - 1)
        elif binding.kind == "import":
            found = module.neighbour is not None and module.neighbour(binding.target) is not None
        else:
            found = home is module.scope
        if not found:
            return False
    return True


def is_zero(value: Value) -> bool:
    """Whether `value` is evidently 0."""
    return value.known and value.constant in (0, False)


def _is_given_zero(module: Module, value: Value) -> bool:
    """Whether `value` is a parameter that no call in the file is given anything but 0 for: one with a default of 0, or
    of a function that is only called, and only in the file."""
    taken = _zero_parameter(module, value)
    if taken is None:
        return False
    function, index, default = taken
    own = module.enclosing_class(function)
    name = own.name if own is not None and function.name.value == "__init__" else function.name.value
    module.load_where(lambda text: name in text, name)
    called = [
        call
        for call in module.calls
        if call.attribute == name or any(one.startswith("@.") and one.endswith(f".{name}") for one in call.own)
    ]
    if not all(_passes_zero(call, last_word(value.node), index - (own is not None)) for call in called):
        return False
    return default or (bool(called) and _is_only_called_here(module, function))


def _is_given_elsewhere(module: Module, value: Value, depth: int) -> bool:
    """Whether a call in another file gives the parameter that `value` is anything but 0. One that names it as the
    loader does is itself reported, where the function hands it on."""
    taken = _zero_parameter(module, value)
    if taken is None or module.callers is None or depth <= 0 or not _is_at_top_level(module, taken[0]):
        return False
    function, own = taken[0], module.enclosing_class(taken[0])
    parameter = last_word(value.node)
    for other, call in module.callers(own.name if own is not None else function.name.value):
        passed = call.argument(parameter, positional(function)[own is not None :])
        told = depth == _FOLLOWED and parameter == WORKERS and parameter in call.arguments.keywords
        if passed is not None and not told and not stays_zero(other, passed, depth - 1):
            return True
    return False


def _is_at_top_level(module: Module, function: cst.FunctionDef) -> bool:
    """Whether `function` stands at top level, or is the constructor of a class there."""
    own = module.enclosing_class(function)
    if own is None:
        return module.scope_of(function) is module.scope
    return own.outer is module.scope and function.name.value == "__init__"


def _is_only_called_here(module: Module, function: cst.FunctionDef) -> bool:
    """Whether a function at top level is nothing but called, and no file around takes it."""
    name = function.name.value
    if function.decorators or module.scope_of(function) is not module.scope:
        return False
    reads = [read for read in module.shared(Reads).of(None, name) if read is not function.name]
    calls = [module.parent(read) for read in reads]
    if not all(isinstance(call, cst.Call) and call.func is read for call, read in zip(calls, reads, strict=True)):
        return False
    return module.readers is not None and not module.readers(name)


def _zero_parameter(module: Module, value: Value) -> tuple[cst.FunctionDef, int, bool] | None:
    """The function of which `value` is a parameter, its place there, and whether it has a default, which is 0; None
    where it is none, or has another."""
    node = value.node
    home = value.scope.home(node.value) if isinstance(node, cst.Name) else None
    if not isinstance(node, cst.Name) or home is None or not isinstance(home.node, cst.FunctionDef):
        return None
    function = home.node
    params = named_parameters(function.params)
    index = next((at for at, one in enumerate(params) if one.name.value == node.value), -1)
    default = params[index].default if index >= 0 else None
    if index < 0 or (default is not None and not is_zero(module.value_at(default, home, None))):
        return None
    return function, index, default is not None


def _passes_zero(call: Call, parameter: str, index: int) -> bool:
    """Whether `call` gives the parameter at `index` nothing but 0."""
    passed = call.arguments.keywords.get(parameter)
    if passed is None and index < len(call.arguments.positional):
        passed = call.arguments.positional[index]
    return not call.opaque and (passed is None or is_zero(passed))
