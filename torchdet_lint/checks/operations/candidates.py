"""The calls of a file -> those that spell an op of the table and that may vary, by the code that reports them."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.operations.called_elsewhere import (
    held_untracked_elsewhere,
    named_nowhere,
    untracked_elsewhere,
)
from torchdet_lint.checks.operations.conditions import INFERRED, Candidate, Conditions
from torchdet_lint.checks.operations.handed_over import applied_untracked
from torchdet_lint.checks.operations.idle import is_idle
from torchdet_lint.checks.operations.named_layers import NamedLayers
from torchdet_lint.checks.operations.rewrites import Rewriting
from torchdet_lint.checks.operations.unmoved import only_applied, stays_on_cpu
from torchdet_lint.checks.operations.values_alone import takes_values_alone
from torchdet_lint.checks.trace import origins
from torchdet_lint.dataflow.call_edges import CallEdges, is_static
from torchdet_lint.dataflow.relatives import Relatives
from torchdet_lint.inference.abstract_values import UNKNOWN, AbstractValue
from torchdet_lint.inference.calls import names_dim
from torchdet_lint.inference.devices import asks_for_cuda
from torchdet_lint.inference.gradient_paths import GradientPaths
from torchdet_lint.inference.gradients import Gradients
from torchdet_lint.inference.infer import Inference
from torchdet_lint.inference.narrowing import tests_around
from torchdet_lint.module import names
from torchdet_lint.module.tree import positional
from torchdet_lint.prefilter.allocations import closing
from torchdet_lint.prefilter.triggers import places
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.finding import Change
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module, Value
    from torchdet_lint.module.names import Scope
    from torchdet_lint.prefilter.library import Operation

_TRAINS = lazy(r"\.backward[ \t]*\(")
_STEPS = lazy(r"\.step[ \t]*\(")
_ENTRY = lazy(r"^if\s+__name__\s*==|^(?:for|while)\s", re.MULTILINE)
_STARTED = lazy(r"^if\s+__name__\s*==|^(?:for|while|with)\s|^\w[\w.]*[ \t]*\(", re.MULTILINE)
_ASSIGNED = lazy(r"\s*(?::[^=\n]*)?=(?!=)")
_AMONG = lazy(r"\s*[,)\]][^=\n(]*=(?!=)")
_CALL = lazy(r"[ \t]*[\w.]+[ \t]*\(")
# So many classes that derive from one are asked for what they call an attribute.
_HEIRS = 12
# What is bound so often is not one module that goes from device to device.
_MOVES = 6


def _unmet(op: Op, condition: Condition) -> str:
    return f"`{condition.argument}` does not meet the test `{condition.test}` ({op.condition or op.op})"


def _may_give_name(text: str, end: int) -> bool:
    """Whether the attribute before `end` may be assigned something that is evidently no call of which nothing is taken,
    or what `getattr` picks. One that is assigned among others may be given anything."""
    assigned = _ASSIGNED.match(text, end)
    if assigned is None:
        return _AMONG.match(text, end) is not None
    call = _CALL.match(text, assigned.end())
    if call is not None and call[0].strip().startswith("getattr"):
        return True
    after = closing(text, call.end()) if call is not None else -1
    return after < 0 or text[after : after + 1] not in ("\n", "")


class Operations:
    """The ops that a file calls, by the code that reports them: worked out once for all rules."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.inference = module.shared(Inference)
        self.gradients = module.shared(Gradients)
        self.conditions = Conditions(module, self.inference)
        self.found: dict[str, list[Candidate]] = {}
        self._heirs: dict[int, list[Class]] = {}
        self._picks: dict[str, bool] = {}
        index = module.library.operations(module.target.torch)
        self.named = NamedLayers(module)
        instances = module.library.instances(module.target.torch)
        self._instances = instances if module.calls_any(instances) else frozenset[str]()
        self._instances_handed: dict[int, list[Call]] = {}
        self._look_for_instances(instances)
        taken: set[tuple[int, str]] = set()
        for call in list(module.calls):
            for candidate in self.candidates(call, index):
                key = (id(call.node), candidate.operation.code)
                if key not in taken and not self.objection(candidate):
                    taken.add(key)
                    self.found.setdefault(candidate.operation.code, []).append(candidate)

    def _look_for_instances(self, names: frozenset[str]) -> None:
        """Parse what may call an instance: the units with the variable or attribute that it was assigned to."""
        words: set[str] = set()
        shared: set[str] = set()
        for call in list(self.module.calls_to(*names)) if self.module.calls_any(names) else ():
            parent = self.module.parent(call.node)
            # `nn.NLLLoss().to(device)`: an argument has an `Arg` around it.
            while isinstance(parent, (cst.Attribute, cst.Call, cst.IfExp)):
                parent = self.module.parent(parent)
            targets = [target.target for target in parent.targets] if isinstance(parent, cst.Assign) else []
            if isinstance(parent, cst.Param):
                words.add(parent.name.value)
            for target in targets:
                if isinstance(target, cst.Name):
                    shared.add(target.value)
                elif isinstance(target, cst.Attribute):
                    words.add(target.attr.value)
        if words:
            self.module.look_for(*sorted(words))
            # An attribute may be called as a function is: `self.cross_entropy(…)`.
            called = re.compile(rf"\.(?:{'|'.join(sorted(words))})[ \t]*\(")
            self.module.load_where(lambda text: called.search(text) is not None)
        if shared:
            either = "|".join(sorted(shared))
            handed = re.findall(rf"\b(\w+)[ \t]*\((?:[^()\n]*[,=(]\s*)?(?:{either})\s*[,)]", self.module.text)
            functions = "".join(f"|def {name}" for name in sorted(set(handed)))
            named = re.compile(rf"\b(?:{either}{functions})[ \t]*\(")
            self.module.load_where(lambda text: named.search(text) is not None)

    def candidates(self, call: Call, index: dict[str, list[Operation]]) -> Iterator[Candidate]:
        """The ops of `index` that `call` spells, whether or not they are reported."""
        for name in call.names if len(call.names) == 1 else self._picked(call):
            for operation in index.get(name, ()):
                made = None
                if operation.spelling.forward:
                    made = self._made(call) or self._made_among(call, name.removesuffix("()"))
                    if made is None:
                        continue
                yield Candidate(operation, call, made)
        if all("()" in known or known.startswith((".", "@.")) for known in call.own):
            for operation in index.get(f".{call.attribute}", ()):
                yield Candidate(operation, call, None)

    def _picked(self, call: Call) -> list[str]:
        """The classes and functions that `{"gru": nn.GRU}[kind](…)` may call, that a name may be, or that are a
        parameter's default, those first of which most is said."""
        index = self.module.library.operations(self.module.target.torch)

        def mild(name: str) -> bool:
            return any(operation.op.severity is not None for operation in index.get(name, ()))

        return sorted(call.names or self._choices(call), key=mild)

    def _choices(self, call: Call) -> Iterator[str]:
        function = call.node.func
        if isinstance(function, cst.Name):
            yield from self._bound(function.value, call.scope, call)
        elif isinstance(function, cst.Attribute):
            picked = self._may_be_picked(function.attr.value)
            for value in self.module.self_attribute(function, call.scope) if picked else ():
                if isinstance(value.node, cst.Name):
                    yield from self._bound(value.node.value, value.scope, call)
                else:
                    yield from self._picked_from(value, call)
            yield from self._derived(function)
        else:
            yield from self._picked_from(self.module.value_at(function, call.scope, call.order), call)

    def _may_be_picked(self, name: str) -> bool:
        """Whether the file may assign a name, or an entry of something, to an attribute `name`: most are given what a
        call makes, and the methods that do so need no parse."""
        if name not in self._picks:
            text = self.module.text
            self._picks[name] = any(_may_give_name(text, start + len(name)) for start in places(name, text))
        return self._picks[name]

    def _bound(self, name: str, scope: Scope, call: Call) -> Iterator[str]:
        """What `name` of `scope` may be, where it is a parameter with a default, or one that is handed an instance, or
        is picked from a table."""
        home = scope.home(name)
        for binding in home.bindings[name] if home is not None else ():
            if isinstance(binding.node, cst.Param):
                if binding.node.default is not None:
                    yield from self.module.resolve(binding.node.default)
                for made in self._handed(binding.node):
                    yield from (f"{class_}()" for class_ in made.names)
            elif home is not None and isinstance(binding.value, (cst.Call, cst.Subscript)) and not binding.path:
                yield from self._picked_from(self.module.value_at(binding.value, home, binding.order), call)

    def _derived(self, function: cst.Attribute) -> Iterator[str]:
        """What `self.cell` is by the classes that derive from the one around."""
        class_ = self.module.enclosing_class(function) if names.dotted(function.value) == "self" else None
        if class_ is None or function.attr.value in class_.methods:
            return
        if id(class_) not in self._heirs:
            self._heirs[id(class_)] = self.module.shared(Relatives).derived(class_)[:_HEIRS]
        for one in self._heirs[id(class_)]:
            for value in self.module.attribute_values(one, function.attr.value):
                yield from self.module.resolve(value.node, value.scope, value.order)

    def _picked_from(self, value: Value, call: Call) -> Iterator[str]:
        """What `value`, which `call` calls, picks from a module by a text, or from a dictionary."""
        picked = self.named.picked(value.node, value.scope, value.order)
        if picked is not None:
            yield from self.named.may_be(picked, call, value.scope, value.order)
        elif isinstance(value.node, cst.Subscript):
            entries = self.module.dictionary(value.node.value, value.scope, value.order)
            for entry in (entries or {}).values():
                yield from self.module.resolve(entry.node, entry.scope, entry.order)

    def _made(self, call: Call) -> Call | None:
        """The call that made the instance that `call` calls."""
        value = self.module.followed(call.node.func, call.scope, call.order)
        made = value.node if value is not None else self._moved(call)
        return self.module.call_at(made) if made is not None else None

    def _made_among(self, call: Call, class_: str) -> Call | None:
        """The first of the calls that may have made the instance that `call` calls, among those that make a `class_`:
        `a if weighted else b`, or the arms of an `if`."""
        value = self.module.value_at(call.node.func, call.scope, call.order)
        for one in origins(self.module, value):
            node = self._unmoved(one.node)
            made = self.module.call_at(node) if isinstance(node, cst.Call) else None
            if made is not None and class_ in made.names:
                return made
        return next((made for made in self._made_by_default(call) if class_ in made.names), None)

    def _made_by_default(self, call: Call) -> Iterator[Call]:
        """The calls that are the default of the parameter which `call` calls, by its name or as an attribute."""
        function = call.node.func
        scopes = [(function, call.scope)]
        if isinstance(function, cst.Attribute) and self._may_be_picked(function.attr.value):
            scopes = [(value.node, value.scope) for value in self.module.self_attribute(function, call.scope)]
        for node, scope in scopes:
            home = scope.home(node.value) if isinstance(node, cst.Name) else None
            for binding in home.bindings[node.value] if home is not None and isinstance(node, cst.Name) else ():
                default = binding.node.default if isinstance(binding.node, cst.Param) else None
                made = self.module.call_at(default) if isinstance(default, cst.Call) else None
                yield from [made] if made is not None else []

    def _handed(self, parameter: cst.Param) -> list[Call]:
        """The calls that make the instances of ops which the calls of a function in the file hand to `parameter`."""
        known = self._instances_handed.get(id(parameter))
        if known is None:
            known = self._instances_handed[id(parameter)] = list(self._making(parameter)) if self._instances else []
        return known

    def _making(self, parameter: cst.Param) -> Iterator[Call]:
        function = self.module.enclosing_function(parameter)
        skipped = (
            self.module.enclosing_class(parameter) is not None and function is not None and not is_static(function)
        )
        names = positional(function)[skipped:] if function is not None else ()
        for node in CallEdges(self.module).callers(function) if function is not None else ():
            call = self.module.call_at(node)
            given = call.argument(parameter.name.value, names) if call is not None else None
            value = self.module.followed(given.node, given.scope, given.order) if given is not None else None
            made = self._unmoved(value.node) if value is not None else None
            found = self.module.call_at(made) if isinstance(made, cst.Call) else None
            if found is not None and not self._instances.isdisjoint(found.names):
                yield found

    def _unmoved(self, node: cst.CSTNode) -> cst.CSTNode:
        """`Loss()` of `Loss().cuda()`."""
        moves = self.module.library.facts.programs.moves
        while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in moves:
            node = node.func.value
        return node

    def _moved(self, call: Call) -> cst.BaseExpression | None:
        """What makes the instance that `call` calls, where its name is bound once more, to the same on another device:
        `loss = loss.cuda()`."""
        function = call.node.func
        values: list[cst.BaseExpression | None] = []
        if isinstance(function, cst.Attribute):
            values += [value.node for value in self.module.self_attribute(function, call.scope)]
        else:
            home = call.scope.home(function.value) if isinstance(function, cst.Name) else None
            assert home is not None and isinstance(function, cst.Name), "only what is bound more than once comes here"
            bindings = home.bindings[function.value]
            values += [one.value if one.kind == "assign" and not one.path else None for one in bindings[:_MOVES]]
        made = [value for value in values if value is None or not self._is_move(value, names.dotted(function))]
        return made[0] if len(made) == 1 and len(values) < _MOVES else None

    def _is_move(self, value: cst.BaseExpression, name: str) -> bool:
        """Whether `value` is the module `name` on another device."""
        function = value.func if isinstance(value, cst.Call) else None
        return (
            isinstance(function, cst.Attribute)
            and function.attr.value in self.module.library.facts.programs.moves
            and names.dotted(function.value) == name
        )

    # ------------------------------------------------------------------ what counts

    def objection(self, candidate: Candidate) -> str:
        """Why a candidate is not reported; empty where it is.

        What the call itself shows comes first, and what asks other functions last: most candidates fall on the way.
        """
        operation, call, _ = candidate
        op = operation.op
        if self._is_class(operation) and candidate.made is None and is_idle(self.module, call.node):
            return "the module is made and never used"
        plain = [condition for condition in op.when if condition.test not in INFERRED]
        for condition in plain:
            if not self.conditions.hold(candidate, condition, UNKNOWN):
                return f"it asks something else of `{condition.argument}` ({op.condition or condition.test})"
        made = self._is_class(operation)
        if op.direction == "backward" and (
            self.gradients.untracked(call.node)
            or (made and (self.gradients.held_untracked(call.node) or applied_untracked(self.module, call.node)))
        ):
            return "no gradient is recorded here"
        if failing := self.conditions.evidently_failing(candidate):
            return _unmet(op, failing)
        inferred = self.subject(candidate)
        if operation.method and not self._receives(candidate, inferred):
            return "the receiver is not evidently a tensor of that class"
        if not self._on_device(candidate, inferred):
            return "it does not run on a device on which the op is nondeterministic"
        if op.dtypes != "any" and (not self._floating(candidate, inferred) or self._exact_branch(call.node)):
            return "the tensors hold integers or whole numbers, or are not evidently of a floating type"
        for condition in op.when:
            if condition not in plain and not self.conditions.hold(candidate, condition, inferred):
                return _unmet(op, condition)
        if op.direction == "backward" and not self._differentiated(candidate, inferred):
            return "no gradient flows through what it is given"
        if op.unless_within and self._within(call.node, op.unless_within):
            return "a context manager around it selects a deterministic kernel"
        if op.direction == "backward" and self._ends(candidate):
            return "the gradient ends before it reaches a parameter"
        alike = op.values_exact and operation.status == "silent" and self.gives_values_alone(candidate)
        return "only the values are used, which are the same in every run" if alike else ""

    def gives_values_alone(self, candidate: Candidate) -> bool:
        """Whether of the values and indices that an op gives only the values are used, and no gradient goes where the
        indices point."""
        return takes_values_alone(self.module, candidate.call.node) and not self._may_go_back(candidate)

    def _may_go_back(self, candidate: Candidate) -> bool:
        """Whether a gradient may go back through the op."""
        return (
            not self.gradients.untracked(candidate.call.node)
            and self._differentiated(candidate, self.subject(candidate))
            and not self._ends(candidate)
        )

    def differs_in_gradient(self, candidate: Candidate) -> bool:
        """Whether of the values and indices that an op gives only the values are used, so that it is the gradient which
        may differ."""
        return takes_values_alone(self.module, candidate.call.node) and self._may_go_back(candidate)

    def is_left_alone(self, candidate: Candidate) -> bool:
        """Whether an op stands in a function that nobody in sight calls, and what it works on has no evident
        gradient."""
        node = candidate.call.node
        return self.subject(candidate).gradient != "yes" and named_nowhere(self.module, node)

    def _ends(self, candidate: Candidate) -> bool:
        """Whether the gradient of an op comes to nothing, by what calls it and by where its result goes."""
        operation, call, made = candidate
        if self._is_class(operation) and made is None:
            applied = self.module.parent(call.node)
            at_once = isinstance(applied, cst.Call) and applied.func is call.node
            calls = [applied] if isinstance(applied, cst.Call) and at_once else self._applications(call)
            if not calls:
                return held_untracked_elsewhere(self.module, call.node)
            return all(GradientPaths(self.module, self.inference).ends(one) for one in calls)
        return (
            self.gradients.called_untracked(call.node)
            or GradientPaths(self.module, self.inference).ends(call.node)
            or self.gradients.runs_on_data(call.node)
            or untracked_elsewhere(self.module, call.node)
        )

    def changes(self, candidate: Candidate) -> tuple[Change, ...]:
        """What makes the call deterministic, where the table has a rewrite and the code shows that it fits; nothing
        where the call may be that of something else."""
        operation, call, made = candidate
        if not operation.op.rewrites or (made is not None and self._made(call) is not made):
            return ()
        if made is None and not operation.method and len(call.names) != 1:
            return ()
        inferred = self.subject(candidate)
        rewriting = Rewriting(
            self.module,
            self.inference,
            operation,
            call,
            lambda condition: self.conditions.hold(candidate, condition, inferred),
        )
        return rewriting.changes()

    def subject(self, candidate: Candidate) -> AbstractValue:
        """The tensor that the op works on: the receiver of a method, the first argument of a function."""
        operation, call, made = candidate
        if operation.method:
            return self.inference.infer(call.receiver) if call.receiver is not None else UNKNOWN
        if self._is_class(operation) and made is None:
            return UNKNOWN
        parameters = operation.spelling.forward or operation.spelling.parameters
        value = call.argument(parameters[0], parameters) if parameters else None
        return self.inference.infer(value.node) if value is not None else UNKNOWN

    @staticmethod
    def _is_class(operation: Operation) -> bool:
        return operation.spelling.name.rpartition(".")[2][:1].isupper()

    def _receives(self, candidate: Candidate, inferred: AbstractValue) -> bool:
        operation = candidate.operation
        owner = operation.spelling.name.rpartition(".")[0]
        if owner != "torch.Tensor":
            if inferred.instance or inferred.is_tensor:
                told = inferred.is_tensor and self.conditions.given_by_package(candidate)
                return inferred.instance == owner or told
            return self.module.imports(owner.partition(".")[0])
        if self._told_type(candidate):
            return True
        if inferred.what == "other" or inferred.instance or self._of_another_library:
            return False
        if operation.op.receiver == "distinctive" or inferred.is_tensor or inferred.gradient == "yes":
            return True
        return self.module.imports("torch") and (names_dim(candidate.call) or self._gives_indices(candidate.call))

    def _gives_indices(self, call: Call) -> bool:
        """Whether values and indices are taken of what a method gives, as only torch's gives them together."""
        if call.attribute not in self.module.library.facts.tensors.indexed:
            return False
        holder = self.module.parent(call.node)
        if isinstance(holder, cst.Attribute):
            return holder.attr.value == "indices"
        target = holder.targets[0].target if isinstance(holder, cst.Assign) else None
        return isinstance(target, cst.Tuple) and len(target.elements) == 2

    @functools.cached_property
    def _of_another_library(self) -> bool:
        """Whether the tensors of the file are evidently not torch's."""
        namesakes = self.module.library.facts.tensors.namesakes
        return not self.module.imports("torch") and any(self.module.imports(name) for name in namesakes)

    def _within(self, node: cst.CSTNode, managers: Sequence[str]) -> bool:
        """Whether `node` stands in a `with` of one of `managers`, each written `name` or `name(argument)`."""
        for around, _ in self.module.deciding(node):
            for item in around.items if isinstance(around, cst.With) else ():
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

    def _on_device(self, candidate: Candidate, inferred: AbstractValue) -> bool:
        """Whether the op varies on a device that the code may run on and the tensor may be on."""
        wanted = set(candidate.operation.op.devices) & set(self.module.target.devices)
        if candidate.operation.op.devices == ("cpu",):
            return bool(wanted) and (inferred.device == "cpu" or self.module.target.devices == ("cpu",))
        if "cpu" in wanted:
            return True
        node = candidate.call.node
        if (
            inferred.device == "cpu"
            or (self._on_cpu and "mps" not in wanted)
            or self._guarded(node)
            or self._prepares_data(node)
        ):
            return False
        if candidate.operation.code == "TDL404" and self._runs_on_cpu(node):
            return False
        # Layers with weights are those that are told a device.
        weighs = self._is_class(candidate.operation) and "device" in candidate.operation.spelling.parameters
        if weighs and stays_on_cpu(self.module, (candidate.made or candidate.call).node):
            return False
        return bool(wanted) and not self._beside_the_cpu(candidate)

    def _prepares_data(self, node: cst.CSTNode) -> bool:
        """Whether a method of a data set holds `node`, in a file that speaks of no device."""
        class_ = self.module.enclosing_class(node)
        if class_ is None or not self.gradients.in_data_set(node) or self.gradients.is_layer(class_):
            return False
        return not self.module.library.facts.devices.speaks_of_devices.search(self.module.text)

    def _beside_the_cpu(self, candidate: Candidate) -> bool:
        """Whether an argument that must be where the tensor is, is evidently on the CPU."""
        parameters = candidate.operation.spelling.forward or candidate.operation.spelling.parameters
        together = self.module.library.facts.devices.together
        given = [candidate.call.argument(name, parameters) for name in together if name in parameters]
        operands = [self.inference.infer(value.node) for value in given if value is not None]
        return any(operand.is_tensor and operand.device == "cpu" and operand.dims != 0 for operand in operands)

    def _guarded(self, node: cst.CSTNode) -> bool:
        """Whether `node` runs only where a test, or the name of the function, says that the device is not CUDA."""
        if any(
            isinstance(around, cst.FunctionDef) and around.name.value.endswith("_cpu")
            for around, _ in self.module.deciding(node)
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
        """Whether the file evidently trains on the CPU: it is started, it trains, and nothing names another device."""
        text = self.module.text
        return bool(_TRAINS.search(text) and _STEPS.search(text) and _ENTRY.search(text) and self._names_no_device)

    @functools.cached_property
    def _names_no_device(self) -> bool:
        """Whether nothing in the file names a device but the CPU and MPS."""
        return self.module.library.facts.devices.names_only_cpu(self.module.text)

    @functools.cached_property
    def _started(self) -> bool:
        return _STARTED.search(self.module.text) is not None

    def _runs_on_cpu(self, node: cst.CSTNode) -> bool:
        """Whether `node` runs as the file is started, in a file that names no device but the CPU: at top level, or in
        a function without parameters that is called there."""
        if not (self._started and self._names_no_device):
            return False
        function = self.module.enclosing_function(node)
        if function is None:
            return self.module.enclosing_class(node) is None
        plain = not function.params.params and not function.params.kwonly_params
        called = self.module.calls_to(f"@.{function.name.value}") if plain else ()
        return any(call.scope.function is self.module.scope for call in called)

    def _differentiated(self, candidate: Candidate, inferred: AbstractValue) -> bool:
        """Whether a gradient may flow through what the op is given, where one may flow at all."""
        operation, call, made = candidate
        if self._is_class(operation) and (made is None or operation.op.gradient == "own"):
            return operation.op.gradient == "own" or not self._is_given_data(call)
        if operation.op.gradient == "evident":
            return inferred.gradient == "yes" and not inferred.is_integral
        if inferred.gradient != "no" and not inferred.is_integral:
            return True
        others = [self.inference.infer(value.node) for value in call.arguments.positional[1:]]
        return any(other.gradient == "yes" for other in others)

    def _is_given_data(self, made: Call) -> bool:
        """Whether the module that `made` makes is only called with what has no gradient."""
        calls = self._applications(made)
        return bool(calls) and all(
            len(call.args) == 1 and self.inference.infer(call.args[0].value).gradient == "no" for call in calls
        )

    def _applications(self, made: Call) -> list[cst.Call]:
        """The calls of the module that `made` makes, and may move, where a name or an attribute keeps it and it is only
        called; else none."""
        node = made.node
        while (moved := self._moved_at_once(node)) is not None:
            node = moved
        statement = self.module.parent(node)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if isinstance(target, cst.Attribute) and names.dotted(target.value) == "self":
            return [call.node for call in self.gradients.held_calls(target)]
        return only_applied(self.module, node) or []

    def _moved_at_once(self, node: cst.Call) -> cst.Call | None:
        """The call of a method that moves what `node` makes: `Upsample(2).to(device)`."""
        method = self.module.parent(node)
        if not isinstance(method, cst.Attribute) or method.attr.value not in self.module.library.facts.programs.moves:
            return None
        call = self.module.parent(method)
        return call if isinstance(call, cst.Call) and call.func is method else None

    def _floating(self, candidate: Candidate, inferred: AbstractValue) -> bool:
        """Whether the tensors may be, or evidently are, of a floating type that does not add up exactly."""
        operation, call, _ = candidate
        if operation.op.dtypes == "evident-floating":
            # What raises for a type does so for whatever values.
            exact = inferred.is_whole and not operation.op.exact
            return (self._told_type(candidate) or inferred.dtype) == "floating" and not exact
        if inferred.is_integral:
            return False
        names = self.module.library.facts.devices.operands
        given = [call.argument(name, operation.spelling.parameters) for name in names]
        operands = [self.inference.infer(value.node) for value in given if value is not None]
        if any(operand.is_whole for operand in operands):
            return False
        return bool(operands) or operation.method or not inferred.whole

    def _told_type(self, candidate: Candidate) -> str:
        """The sort of torch's type that a call is told to work in, `x.cumsum(0, dtype=torch.float32)`; empty for
        none."""
        parameters = candidate.operation.spelling.parameters
        value = candidate.call.argument("dtype", parameters) if "dtype" in parameters else None
        types = self.module.library.facts.tensors.dtypes
        found = [types.get(name.removeprefix("torch."), "") for name in (value.names if value is not None else ())]
        return found[0] if len(found) == 1 else ""
