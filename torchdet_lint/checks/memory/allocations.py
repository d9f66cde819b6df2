"""Calls that allocate -> buffers, with their sizes where those are in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.memory.counts import is_count, is_data, tensor_of_count
from torchdet_lint.checks.memory.domain import Buffer
from torchdet_lint.checks.memory.resizing import beginning, kept
from torchdet_lint.checks.memory.subscripts import extent
from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.module.module import Call, Module, Value

_SPREADING = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)
_LEGACY = lazy(r"Tensor[ \t]*\(")
_EXTENT = lazy(r"\.size[ \t]*\(|\.shape\b|^len[ \t]*\(")


def allocations(module: Module, rule: Rule) -> dict[cst.CSTNode, Buffer]:
    """The buffers that the file allocates, by the calls that do."""
    found: dict[cst.CSTNode, Buffer] = {}
    for call in _creations(module, rule):
        buffer = _buffer(module, call)
        if buffer is not None:
            found[call.node] = buffer
    return found


def _creations(module: Module, rule: Rule) -> Iterator[Call]:
    if _LEGACY.search(module.text):
        idle = module.mentions.allocations.idle
        patterns = (module.library.facts.memory.makes_tensor_of_size, tensor_of_count(module))

        def may_read(text: str) -> bool:
            made = (match for one in patterns if one is not None for match in one.finditer(text))
            return _LEGACY.search(text) is not None and not all(idle(one[0], text, one.start()) for one in made)

        module.load_where(may_read)
    yield from module.calls_to(*rule.words["sized"], *(name for row in rule.calls for name in row.names))
    yield from module.method_calls(*rule.words["methods"])
    if "resize_" in module.text:
        yield from module.method_calls("resize_")


def _enlarged(module: Module, call: Call) -> Buffer | None:
    """What `x.resize_(…)` gives where it evidently makes `x` larger; None for any other call of that name."""
    args = [arg.value for arg in call.node.args if arg.keyword is None and not arg.star]
    if not isinstance(call.receiver, cst.Name) or not args or len(args) != len(call.node.args):
        return None
    elements = module.elements(args[0], call.scope, call.order) if len(args) == 1 else None
    nodes = elements or args
    sizes = [module.value(node) for node in nodes]
    made = module.followed(call.receiver, call.scope, call.order)
    before = module.call_at(made.node) if made is not None else None
    if before is not None and not module.library.facts.memory.filled.isdisjoint(before.names):
        old, new = _elements(_sizes(module, before)), _elements(sizes)
        if old is not None and new is not None and 0 < old < new:
            head = beginning(old) if len(sizes) == 1 else None
            return _of_sizes(module, call, "resize_", sizes)._replace(head=head)
    head = kept(module, call, nodes)
    return _of_sizes(module, call, "resize_", sizes)._replace(head=head) if head is not None else None


def _elements(sizes: list[Value] | None) -> int | None:
    """The product of extents that are in sight."""
    total = 1
    for size in sizes or ():
        if not isinstance(size.constant, int):
            return None
        total *= size.constant
    return total if sizes else None


def _buffer(module: Module, call: Call) -> Buffer | None:
    """None where nothing is allocated: no elements, no real device, data given; or where all become NaN at once."""
    if _becomes_nan(module, call):
        return None
    word = call.attribute or call.names[-1].rpartition(".")[2]
    if word == "resize_":
        return _enlarged(module, call)
    device = call.argument("device")
    if device is not None and device.constant == "meta":
        return None
    if any(name.startswith("numpy.") for name in call.names):
        return _array(module, call, word)
    if word.endswith("_like"):
        return Buffer(call.node, word, None, like=_model(module, call))
    sizes = _sizes(module, call)
    if word in module.library.facts.memory.strided:
        given = call.argument("size", ("size",))
        elements = module.elements(given.node, call.scope, call.order) if given is not None else None
        sizes = [module.value(element) for element in elements] if elements is not None else None
    if word.endswith("Tensor") and not _evidently_sizes(module, call, sizes):
        return None
    if word == "new" and not _is_new_tensor(call, sizes):
        return None
    return _of_sizes(module, call, word, sizes)


def _model(module: Module, call: Call) -> str:
    """The name of the tensor whose shape the result has, where that is bound once."""
    node = call.node.args[0].value if call.node.args else None
    home = call.scope.home(node.value) if isinstance(node, cst.Name) else None
    return node.value if isinstance(node, cst.Name) and home is not None and len(home.bindings[node.value]) == 1 else ""


def _of_sizes(module: Module, call: Call, word: str, sizes: list[Value] | None, *, array: bool = False) -> Buffer:
    if sizes is None:
        return Buffer(call.node, word, None, array)
    extents = tuple(extent(module, value.node) for value in sizes)
    return Buffer(call.node, word, tuple(_extent(value) for value in sizes), array, extents)


def _becomes_nan(module: Module, call: Call) -> bool:
    """Whether a number that is none is multiplied with what was allocated, or added to it: `np.empty(n) * np.nan`."""
    operation = module.parent(call.node)
    if not isinstance(operation, cst.BinaryOperation) or not isinstance(operation.operator, _SPREADING):
        return False
    other = operation.left if operation.right is call.node else operation.right
    if isinstance(other, cst.Call):
        text = other.args[0].value if len(other.args) == 1 and last_word(other.func) == "float" else None
        return isinstance(text, cst.SimpleString) and str(text.evaluated_value).lower() == "nan"
    return not module.library.facts.memory.not_a_number.isdisjoint(module.resolve(other, call.scope, call.order))


def _array(module: Module, call: Call, word: str) -> Buffer | None:
    """An array of numbers: one of objects holds `None`."""
    dtype = call.keyword_node("dtype")
    given = dtype.value if dtype is not None else call.node.args[1].value if len(call.node.args) > 1 else None
    if given is not None and bare(given).strip("\"'") in module.library.facts.memory.objects:
        return None
    shape = call.keyword_node("shape") or (call.node.args[0] if call.node.args and not call.node.args[0].star else None)
    if word != "empty" or shape is None:
        return Buffer(call.node, word, None, True)
    elements = module.elements(shape.value, call.scope, call.order)
    if elements is not None:
        sizes = [module.value(element) for element in elements]
    else:
        value = module.value(shape.value)
        single = value.known or isinstance(value.node, (cst.Call, cst.BinaryOperation, cst.Name))
        sizes = [value] if single else []
    return _of_sizes(module, call, word, sizes or None, array=True)


def _is_new_tensor(call: Call, sizes: list[Value] | None) -> bool:
    """Whether `x.new(…)` is the tensor's method, and was given extents."""
    if isinstance(call.receiver, cst.Name) and call.receiver.value in ("self", "cls"):
        return False
    if not sizes or any(arg.keyword is not None for arg in call.node.args):
        return False
    return any(isinstance(size.constant, int) or _EXTENT.search(bare(size.node)) for size in sizes) and not any(
        isinstance(arg.value, (cst.List, cst.Tuple)) for arg in call.node.args
    )


def _sizes(module: Module, call: Call) -> list[Value] | None:
    """The extents, one value each; None where they are not in sight."""
    if any(arg.star for arg in call.node.args):
        return None
    positional = [arg.value for arg in call.node.args if arg.keyword is None]
    named = call.keyword_node("size")
    if named is not None:
        positional = [named.value]
    if len(positional) == 1:
        elements = module.elements(positional[0], call.scope, call.order)
        if elements is not None:
            return [module.value(element) for element in elements]
        value = module.value(positional[0])
        single = value.known or isinstance(value.node, (cst.Call, cst.BinaryOperation, cst.Name))
        if not single and not is_count(module, positional[0]):
            return None
    return [module.value(node) for node in positional]


def _evidently_sizes(module: Module, call: Call, sizes: list[Value] | None) -> bool:
    """Whether `torch.Tensor(…)` was given extents, not data."""
    if not sizes or any(arg.keyword is not None for arg in call.node.args):
        return False
    if len(call.node.args) > 1:
        return True
    only = call.node.args[0].value
    if module.elements(only, call.scope, call.order) is not None:
        return False
    if isinstance(sizes[0].constant, int):
        return isinstance(only, (cst.Integer, cst.Name))
    asked = isinstance(only, (cst.Name, cst.Attribute)) and is_data(module, call.node, only)
    if is_count(module, only):
        return not asked
    made = module.followed(only, call.scope, call.order) if isinstance(only, cst.Name) else None
    counts = module.library.facts.memory.counts
    if made is not None and isinstance(made.node, cst.Call) and last_word(made.node.func) not in counts:
        return False
    return module.library.facts.memory.is_extent.fullmatch(bare(only)) is not None and not asked


def _extent(value: Value) -> int | str:
    return value.constant if isinstance(value.constant, int) else bare(value.node)
