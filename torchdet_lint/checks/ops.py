"""The nondeterministic operations: one check over the table of ops, and one over kernels that stand in strings."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.catalogue.conditions import condition_holds, matches
from torchdet_lint.checks import table
from torchdet_lint.checks.rewrites import Rewriting
from torchdet_lint.finding import Found
from torchdet_lint.inference.abstract_values import OTHER, UNKNOWN, Kind
from torchdet_lint.inference.devices import asks_for_cuda
from torchdet_lint.inference.gradient_paths import GradientPaths
from torchdet_lint.inference.gradients import Gradients
from torchdet_lint.inference.infer import Inference
from torchdet_lint.inference.narrowing import tests_around
from torchdet_lint.module import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Change
    from torchdet_lint.module.module import Call, Module, Value
    from torchdet_lint.prefilter.library import Operation

_TRAINS = re.compile(r"\.backward\(")
_STEPS = re.compile(r"\.step\(")
_ENTRY = re.compile(r"^if\s+__name__\s*==|^(?:for|while)\s", re.MULTILINE)
_ACCELERATED = re.compile(r"cuda|\.to\(|device|accelerat|trainer|gpu|mps|lightning|deepspeed|xla|fabric", re.IGNORECASE)
_TOGETHER = ("index", "indices", "src", "source", "values", "weights", "repeats", "batch", "grid")
_OPERANDS = ("src", "source", "values", "weights", "value", "val")
_ATOMIC = re.compile(r"\b(?:gpuAtomicAdd|fastAtomicAdd|atomicAdd(?:_block|_system)?)\s*\((?!\?)([^;]*);")
_COUNTS = re.compile(r",\s*-?\d+[uUlL]*\s*\)\s*$")
_KERNEL = re.compile(r"__global__|__device__|extern\s+\"C\"")
_SIZES = re.compile(r"\w\.(?:shape|size\(\))(?:\[[-\d:]+\])?$|\w\.size\(-?\d+\)$")
_INFERRED = frozenset(
    {"tensor", "dims", "sparse", "length", "contains", "repeats", "several", "overlapping", "side-by-side"}
)
_PLACES = {("cpu",): "the CPU", ("cuda",): "CUDA", ("cpu", "cuda"): "the CPU and CUDA", ("mps",): "MPS"}


class _Candidate(NamedTuple):
    """A call that spells an op, and the call that made the instance where an instance is called."""

    operation: Operation
    call: Call
    made: Call | None


class Operations:
    """The ops that a file calls, by the code that reports them: worked out once for all rules."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.inference = module.shared(Inference)
        self.gradients = module.shared(Gradients)
        self.found: dict[str, list[_Candidate]] = {}
        index = module.library.operations(module.target.torch)
        self._look_for_instances(module.library.instances(module.target.torch))
        taken: set[tuple[int, str]] = set()
        for call in list(module.calls):
            for candidate in self._candidates(call, index):
                key = (id(call.node), candidate.operation.code)
                if key not in taken and self._reported(candidate):
                    taken.add(key)
                    self.found.setdefault(candidate.operation.code, []).append(candidate)

    def _look_for_instances(self, names: frozenset[str]) -> None:
        """Parse what may call an instance: the units with the variable or attribute that it was assigned to."""
        words: set[str] = set()
        for call in list(self.module.calls_to(*names)) if self.module.calls_any(names) else ():
            parent = self.module.parent(call.node)
            targets = [target.target for target in parent.targets] if isinstance(parent, cst.Assign) else []
            for target in targets:
                if isinstance(target, cst.Name):
                    words.add(target.value)
                elif isinstance(target, cst.Attribute):
                    words.add(target.attr.value)
        if words:
            self.module.look_for(*sorted(words))

    def _candidates(self, call: Call, index: dict[str, list[Operation]]) -> Iterator[_Candidate]:
        for name in call.names:
            for operation in index.get(name, ()):
                made = None
                if operation.spelling.forward:
                    made = self._made(call)
                    if made is None:
                        continue
                yield _Candidate(operation, call, made)
        if all("()" in known or known.startswith((".", "@.")) for known in call.own):
            for operation in index.get(f".{call.attribute}", ()):
                yield _Candidate(operation, call, None)

    def _made(self, call: Call) -> Call | None:
        """The call that made the instance that `call` calls."""
        value = self.module.followed(call.node.func, call.scope, call.order)
        return self.module.call_at(value.node) if value is not None else None

    # ------------------------------------------------------------------ what counts

    def _reported(self, candidate: _Candidate) -> bool:
        operation, call, _ = candidate
        op = operation.op
        # What the call itself shows comes first, and what asks other functions last: most candidates fall on the way.
        plain = [condition for condition in op.when if condition.test not in _INFERRED]
        if not all(self._holds(candidate, condition, UNKNOWN) for condition in plain):
            return False
        if op.direction == "backward" and self.gradients.untracked(call.node):
            return False
        kind = self.subject(candidate)
        if operation.method and not self._receives(operation, kind):
            return False
        if not self._on_device(candidate, kind):
            return False
        if op.dtypes != "any" and (not self._floating(candidate, kind) or self._exact_branch(call.node)):
            return False
        if not all(self._holds(candidate, condition, kind) for condition in op.when if condition not in plain):
            return False
        if op.direction == "backward" and not self._differentiated(candidate, kind):
            return False
        if op.unless_within and self._within(call.node, op.unless_within):
            return False
        return op.direction == "forward" or not self._ends(candidate)

    def _ends(self, candidate: _Candidate) -> bool:
        """Whether the gradient of an op comes to nothing, by what calls it and by where its result goes."""
        operation, call, made = candidate
        if self._is_class(operation) and made is None:
            return False
        return self.gradients.called_untracked(call.node) or GradientPaths(self.module, self.inference).ends(call.node)

    def changes(self, candidate: _Candidate) -> tuple[Change, ...]:
        """What makes the call deterministic, where the table has a rewrite and the code shows that it fits."""
        operation, call, _ = candidate
        if not operation.op.rewrites:
            return ()
        kind = self.subject(candidate)
        rewriting = Rewriting(
            self.module, self.inference, operation, call, lambda condition: self._holds(candidate, condition, kind)
        )
        return rewriting.changes()

    def subject(self, candidate: _Candidate) -> Kind:
        """The tensor that the op works on: the receiver of a method, the first argument of a function."""
        operation, call, made = candidate
        if operation.method:
            return self.inference.kind(call.receiver) if call.receiver is not None else UNKNOWN
        if self._is_class(operation) and made is None:
            return UNKNOWN
        parameters = operation.spelling.forward or operation.spelling.parameters
        value = call.argument(parameters[0], parameters) if parameters else None
        return self.inference.kind(value.node) if value is not None else UNKNOWN

    @staticmethod
    def _is_class(operation: Operation) -> bool:
        return operation.spelling.name.rpartition(".")[2][:1].isupper()

    def _receives(self, operation: Operation, kind: Kind) -> bool:
        owner = operation.spelling.name.rpartition(".")[0]
        if owner != "torch.Tensor":
            if kind.instance or kind.is_tensor:
                return kind.instance == owner
            return self.module.imports(owner.partition(".")[0])
        if kind.what == "other" or kind.instance:
            return False
        return operation.op.receiver == "distinctive" or kind.is_tensor or kind.gradient == "yes"

    def _within(self, node: cst.CSTNode, managers: Sequence[str]) -> bool:
        """Whether `node` stands in a `with` of one of `managers`, each written `name` or `name(argument)`."""
        for ancestor in self.module.ancestors(node):
            for item in ancestor.items if isinstance(ancestor, cst.With) else ():
                function, arguments = item.item, list[str]()
                if isinstance(function, cst.Call):
                    for arg in function.args:
                        parts = arg.value.elements if isinstance(arg.value, (cst.List, cst.Tuple)) else (arg,)
                        arguments += [name for part in parts for name in self.module.resolve(part.value)]
                    function = function.func
                for name in self.module.resolve(function):
                    if name in managers or (arguments and {f"{name}({known})" for known in arguments} <= set(managers)):
                        return True
        return False

    def _on_device(self, candidate: _Candidate, kind: Kind) -> bool:
        """Whether the op varies on a device that the code may run on and the tensor may be on."""
        wanted = set(candidate.operation.op.devices) & set(self.module.target.devices)
        if candidate.operation.op.devices == ("cpu",):
            return bool(wanted) and (kind.device == "cpu" or self.module.target.devices == ("cpu",))
        if "cpu" in wanted:
            return True
        if kind.device == "cpu" or self._on_cpu or self._guarded(candidate.call.node):
            return False
        return bool(wanted) and not self._beside_the_cpu(candidate)

    def _beside_the_cpu(self, candidate: _Candidate) -> bool:
        """Whether an argument that must be where the tensor is, is evidently on the CPU."""
        parameters = candidate.operation.spelling.forward or candidate.operation.spelling.parameters
        given = [candidate.call.argument(name, parameters) for name in _TOGETHER if name in parameters]
        kinds = [self.inference.kind(value.node) for value in given if value is not None]
        return any(kind.is_tensor and kind.device == "cpu" and kind.dims != 0 for kind in kinds)

    def _guarded(self, node: cst.CSTNode) -> bool:
        """Whether `node` runs only where a test, or the name of the function, says that the device is not CUDA."""
        if any(
            isinstance(ancestor, cst.FunctionDef) and ancestor.name.value.endswith("_cpu")
            for ancestor in self.module.ancestors(node)
        ):
            return True
        return any(
            asks_for_cuda(self.module, test) not in (None, holds) for test, holds in tests_around(self.module, node)
        )

    def _exact_branch(self, node: cst.CSTNode) -> bool:
        """Whether `node` runs only where a test says that the type is not a floating one."""
        for test, holds in tests_around(self.module, node):
            while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
                test, holds = test.expression, not holds
            asked = names.dotted(test.func if isinstance(test, cst.Call) else test).rpartition(".")[2]
            if asked == "is_floating_point" and not holds:
                return True
        return False

    @functools.cached_property
    def _on_cpu(self) -> bool:
        """Whether the file evidently trains on the CPU: it is started, it trains, and nothing names a device."""
        text = self.module.text
        return bool(
            _TRAINS.search(text) and _STEPS.search(text) and _ENTRY.search(text) and not _ACCELERATED.search(text)
        )

    def _differentiated(self, candidate: _Candidate, kind: Kind) -> bool:
        """Whether a gradient may flow through what the op is given, where one may flow at all."""
        operation, call, made = candidate
        if self._is_class(operation) and made is None:
            return True
        if operation.op.gradient == "evident":
            return kind.gradient == "yes" and not kind.is_integral
        if kind.gradient != "no" and not kind.is_integral:
            return True
        others = [self.inference.kind(value.node) for value in call.arguments.positional[1:]]
        return any(other.gradient == "yes" for other in others)

    def _floating(self, candidate: _Candidate, kind: Kind) -> bool:
        """Whether the tensors may be, or evidently are, of a floating type that does not add up exactly."""
        operation, call, _ = candidate
        if operation.op.dtypes == "evident-floating":
            return kind.dtype == "floating" and not kind.whole
        if kind.is_integral:
            return False
        given = [call.argument(name, operation.spelling.parameters) for name in _OPERANDS]
        operands = [self.inference.kind(value.node) for value in given if value is not None]
        if any(operand.is_whole for operand in operands):
            return False
        return bool(operands) or operation.method or not kind.whole

    def _holds(self, candidate: _Candidate, condition: Condition, kind: Kind) -> bool:
        operation, call, made = candidate
        parameters: Sequence[str] = operation.spelling.forward or operation.spelling.parameters
        if made is not None and condition.argument not in parameters:
            call, parameters = made, operation.spelling.parameters
        if condition.test in _INFERRED:
            value = call.argument(condition.argument, parameters)
            if condition.argument != "self":
                kind = self.inference.kind(value.node) if value is not None else OTHER
            return self._inferred(condition, kind, value, call, parameters)
        value = call.argument(condition.argument, parameters)
        if value is not None and not value.known:
            if condition.test == "not-in" and self._is_extent(value):
                return True
            default = self._by_default(value)
            if default is not None:
                return condition_holds(condition, passed=True, opaque=False, known=True, value=default)
        return self.module.holds(call, condition, parameters)

    def _is_extent(self, value: Value) -> bool:
        """Whether it is the extent of a tensor, as `y.shape[-2:]`: nobody writes that for a constant."""
        elements = self.module.elements(value.node, value.scope, value.order)
        if elements is not None:
            return any(self._is_size(element, value) for element in elements)
        return self._is_size(value.node, value)

    def _is_size(self, node: cst.BaseExpression, value: Value) -> bool:
        followed = self.module.followed(node, value.scope, value.order)
        node = followed.node if followed is not None else node
        home = value.scope.home(node.value) if isinstance(node, cst.Name) else None
        bindings = home.bindings[node.value] if home is not None and isinstance(node, cst.Name) else []
        sources = [binding.value for binding in bindings] if bindings else [node]
        return all(source is not None and _SIZES.search(self.module.code(source)) is not None for source in sources)

    def _by_default(self, value: Value) -> str | int | None:
        """The text or number that a parameter has where the caller says nothing, as `mode="reflect"`."""
        followed = self.module.followed(value.node, value.scope, value.order) or value
        if isinstance(followed.node, cst.Attribute):
            assigned = self.module.self_attribute(followed.node, followed.scope)
            followed = assigned[0] if len(assigned) == 1 else followed
        home = followed.scope.home(followed.node.value) if isinstance(followed.node, cst.Name) else None
        if home is None or not isinstance(followed.node, cst.Name):
            return None
        bindings = home.bindings[followed.node.value]
        node = bindings[0].node
        if len(bindings) > 1 or not isinstance(node, cst.Param):
            return None
        if not isinstance(node.default, (cst.SimpleString, cst.Integer)):
            return None
        default = node.default.evaluated_value
        return default if isinstance(default, (str, int)) else None

    def _inferred(
        self, condition: Condition, kind: Kind, value: Value | None, call: Call, parameters: Sequence[str]
    ) -> bool:
        if condition.test == "tensor":
            return kind.is_tensor
        if condition.test == "dims":
            return kind.dims in condition.values
        if condition.test == "sparse":
            return kind.sparse
        if condition.test == "repeats":
            return not (kind.distinct or self._single(kind, call, parameters) or self._squeezed(call, parameters))
        if condition.test in ("overlapping", "side-by-side"):
            return self._overlap(value, call, parameters) is (condition.test == "overlapping")
        if condition.test == "several":
            return kind.what != "other" or bool(kind.items or kind.each)
        if value is None:
            return False
        if condition.test == "length":
            elements = self.module.elements(value.node, value.scope, value.order)
            return elements is not None and len(elements) in condition.values
        entries = self.module.dictionary(value.node, value.scope, value.order)
        return entries is not None and any(entry.constant in condition.values for entry in entries.values())

    def _squeezed(self, call: Call, parameters: Sequence[str]) -> bool:
        """Whether what was picked along a dimension is squeezed there, so that one was picked of each row."""
        attribute = self.module.parent(call.node)
        outer = self.module.parent(attribute) if isinstance(attribute, (cst.Attribute, cst.Arg)) else None
        squeeze = self.module.call_at(outer) if isinstance(outer, cst.Call) else None
        dimension = call.argument("dim", parameters)
        if squeeze is None or squeeze.attribute != "squeeze" or dimension is None or not dimension.known:
            return False
        at = squeeze.argument("dim", ("dim",) if isinstance(attribute, cst.Attribute) else ("input", "dim"))
        return at is not None and matches(at.constant, dimension.constant)

    def _overlap(self, stride: Value | None, call: Call, parameters: Sequence[str]) -> bool:
        """Whether the windows of a pooling may overlap: the stride is another than their size, or they have gaps."""
        size, gaps = call.argument("kernel_size", parameters), call.argument("dilation", parameters)
        if call.opaque or size is None or (gaps is not None and not matches(gaps.constant, 1)):
            return True
        if stride is None or (stride.known and stride.constant is None):
            return False
        if self.module.code(stride.node) == self.module.code(size.node):
            return False
        return not (stride.known and size.known and matches(stride.constant, size.constant))

    @staticmethod
    def _single(kind: Kind, call: Call, parameters: Sequence[str]) -> bool:
        """Whether an index evidently has size 1 along the dimension that it indexes."""
        dimension = call.argument("dim", parameters)
        at = dimension.constant if dimension is not None else None
        if not isinstance(at, int):
            return False
        if kind.dims is None and any((size < 0) != (at < 0) for size in kind.single):
            return True
        dims = kind.dims or 0
        return not kind.single.isdisjoint({at, at - dims, at + dims})


def listed_call(module: Module, rule: Rule) -> Iterator[Found]:
    """The calls of the ops that `rule` reports in the target release."""
    operations = module.shared(Operations)
    for candidate in operations.found.get(rule.code, ()):
        operation, call, _ = candidate
        op = operation.op
        details = {
            "op": operation.spelling.name,
            "device": _PLACES.get(op.devices, "CUDA"),
            "condition": f" ({op.condition})" if op.condition else "",
            "release": ".".join(map(str, module.target.torch)),
            "instead": op.instead or _advice(operation),
        }
        yield Found(
            call.node,
            details,
            variant="exact" if op.exact else operation.status if operation.status in rule.messages else "",
            severity="warning" if op.exact else None,
            changes=operations.changes(candidate),
            switchable=operation.status == "switchable",
            raises=operation.status == "errors",
        )


def _advice(operation: Operation) -> str:
    if operation.status == "switchable":
        return "torch.use_deterministic_algorithms(True) switches it to a deterministic kernel."
    return ""


def cudnn_rnn(module: Module, rule: Rule) -> Iterator[Found]:
    """Recurrent layers, unless the file sets the variable that cures them."""
    if "CUBLAS_WORKSPACE_CONFIG" not in module.text:
        yield from listed_call(module, rule)


def kernel_atomics(module: Module, rule: Rule) -> Iterator[Found]:
    """Atomic additions in kernels: by call, and in CUDA source that stands in a string."""
    yield from listed_call(module, rule)
    for node in module.strings("tomicAdd"):
        text = module.code(node)
        if not _KERNEL.search(text) and isinstance(module.parent(node), cst.Expr):
            continue
        if any(not _COUNTS.search(match[1]) for match in _ATOMIC.finditer(text)):
            name = "atomicAdd"
            yield Found(node, {"op": name, "device": "CUDA", "condition": "", "instead": ""})


def own_rule(module: Module, rule: Rule) -> Iterator[Found]:
    """What the tables of a user's own rule mean: calls, assignments and ops; `{name}` is the name that was found."""
    for call, row in table.calls(module, rule):
        details = {"name": next(name for name in call.names if name in row.names), "source": module.code(call.node)}
        yield Found(call.node, {**details, **row.details}, row.variant, row.severity)
    for assignment, setting in table.assignments(module, rule):
        details = {"name": assignment.names[0], "source": module.code(assignment.node)}
        yield Found(assignment.node, details, setting.variant)
    for found in listed_call(module, rule):
        yield found._replace(details={**found.details, "name": found.details["op"]})
