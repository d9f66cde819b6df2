"""A call -> the abstract value of what it returns: of torch, a layer, a builtin, a function in sight."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

import libcst as cst
from msgspec.structs import replace

from torchdet_lint.dataflow.syntax import bare
from torchdet_lint.inference.abstract_values import (
    BATCH,
    CHECKPOINT,
    DISTINCT_ARRAY,
    EMPTY,
    FOREIGN,
    OTHER,
    PARAMETER,
    PICKED,
    SIZES,
    TENSOR,
    UNKNOWN,
    AbstractValue,
    joined,
    text_of,
)
from torchdet_lint.inference.annotations import instance_of
from torchdet_lint.inference.torch_calls.creation import all_different
from torchdet_lint.inference.torch_calls.frozen import FrozenNetworks
from torchdet_lint.inference.torch_calls.returns import TorchReturns
from torchdet_lint.inference.torch_calls.training_mode import TrainingMode
from torchdet_lint.inference.variables import iterated
from torchdet_lint.module.names import live
from torchdet_lint.module.tree import positional, returned
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from torchdet_lint.inference.abstract_values import Dtype, Gradient
    from torchdet_lint.inference.accesses import Accesses
    from torchdet_lint.inference.annotations import Annotations
    from torchdet_lint.inference.attributes import Attributes
    from torchdet_lint.inference.gradients import Gradients
    from torchdet_lint.module.module import Call, Class, Module
    from torchdet_lint.module.names import Scope

# Of more classes in a table nobody can tell which is meant.
_MOST_PICKED = 16
_RETURNS = 6
# So often an object is asked for that a function of another file gave.
_HOPS = 3
# A key and its value.
_PAIR = 2
_GETATTR = "builtins.getattr"
_SEQUENTIAL = "torch.nn.Sequential"
_OWN = lazy(r"\bself\.(\w+)[ \t]*\(")
_GROUP = lazy(r"\([^)]*\)")


class Calls:
    """The calls of one file; `infer` gives the abstract value of an expression, and `asked` the answer to a question by
    its key, which is asked once."""

    def __init__(
        self,
        module: Module,
        annotations: Annotations,
        attributes: Attributes,
        accesses: Accesses,
        gradients: Gradients,
        infer: Callable[[cst.BaseExpression], AbstractValue],
        asked: Callable[[Hashable, Callable[[], AbstractValue]], AbstractValue],
    ) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        self.annotations = annotations
        self.attributes = attributes
        self.accesses = accesses
        self.gradients = gradients
        self.infer = infer
        self.asked = asked
        self.results = TorchReturns(module, infer)
        self.modes = TrainingMode(module)
        self.frozen = FrozenNetworks(module)

    @cached_property
    def _distinctive(self) -> frozenset[str]:
        return frozenset(self.facts.distinctive)

    @cached_property
    def _wrappers(self) -> frozenset[str]:
        return frozenset(self.module.library.facts.wrappers)

    @cached_property
    def _moves(self) -> frozenset[str]:
        return frozenset(self.module.library.facts.programs.moves)

    def of(self, node: cst.Call) -> AbstractValue:
        """What the call `node` gives."""
        call = self.module.call_at(node)
        if call is None:
            return UNKNOWN
        found = self._of(call)
        # Frozen, a network passes on the gradient of what it is given.
        if found.gradient == "no" or not self.frozen.holds(node) or call.opaque:
            return found
        given = [self.infer(arg.value).gradient for arg in node.args]
        return replace(found, gradient="no") if given and all(one == "no" for one in given) else found

    def _of(self, call: Call) -> AbstractValue:
        if isinstance(call.node.func, cst.Subscript) and (held := self._object_called(call)) is not None:
            return held  # the names are those of the container
        if not isinstance(call.node.func, cst.Attribute) and (made := self._picked_elsewhere(call)) is not None:
            return made
        for name in call.own:
            found = self._called(name, call)
            if found is not None:
                return found
        if not call.own and (picked := self._picked(call) or self._picked_elsewhere(call)) is not None:
            return picked
        receiver = call.receiver
        if receiver is not None and not any(name[:1] != "@" and "()" not in name for name in call.own):
            found = self._method_called(receiver, call)
        else:
            inner = self._inner(call) if receiver is None else None
            found = self._given(inner, call) if inner is not None else None
        return found or self._object_called(call) or self._network_called(call) or self._unknown_call(call)

    def _picked(self, call: Call) -> AbstractValue | None:
        """The object of one of the classes in a table that is written out: `NETS[name]()`, `NETS.get(name)()`."""
        followed = self.module.followed(call.node.func, call.scope, call.order)
        node = followed.node if followed is not None else call.node.func
        index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
        if isinstance(node, cst.Subscript) and isinstance(index, cst.Index):
            table, key = node.value, index.value
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
            table, key = node.func.value, node.args[0].value if node.args else node
        else:
            return None
        if isinstance(table, cst.Name):
            self.module.look_for(table.value)
        entries = self.module.dictionary(table, call.scope, call.order)
        text = self.module.value(key).constant
        values = (
            [entries[text]] if entries and isinstance(text, str) and text in entries else [*(entries or {}).values()]
        )
        if not 0 < len(values) <= _MOST_PICKED or any(one.evaluator is not self.module.values for one in values):
            return None
        made = [self._called(name, call) for value in values for name in value.names]
        return (
            joined(one for one in made if one)
            if made and all(one is not None and one.classes for one in made)
            else None
        )

    def _picked_elsewhere(self, call: Call) -> AbstractValue | None:
        """The object of one of the classes in a table of another file, `NETS[name]()`, or in another file,
        `nets.__dict__[name]()` or `getattr(nets, name)()`."""
        pick = self._pick(call)
        return self._taken(self.module.resolve(pick[0], call.scope, call.order), pick[1]) if pick is not None else None

    def _pick(self, call: Call) -> tuple[cst.BaseExpression, str] | None:
        """What holds that which `call` calls, and the key where it is known."""
        followed = self.module.followed(call.node.func, call.scope, call.order)
        node = followed.node if followed is not None else call.node.func
        index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
        owner: cst.BaseExpression
        if isinstance(node, cst.Subscript) and isinstance(index, cst.Index):
            owner, key = node.value, index.value
            owner = owner.value if isinstance(owner, cst.Attribute) and owner.attr.value == "__dict__" else owner
        elif isinstance(node, cst.Call) and len(node.args) > 1 and self.module.resolve(node.func) == (_GETATTR,):
            owner, key = node.args[0].value, node.args[1].value
        else:
            return None
        text = self.module.value(key).constant
        return owner, text if isinstance(text, str) else ""

    def _taken(self, names: Sequence[str], key: str) -> AbstractValue | None:
        """The object that a call of what `key` picks of another file, or of a table there, makes; `names` are the
        holder's."""
        name = names[0] if len(names) == 1 else "@."
        if "()" in name or name.startswith("@.") or name.partition(".")[0] in self.module.library.roots:
            return None
        made: AbstractValue | None = self.module.foreign(f"{name}{PICKED}{key}") if self.module.foreign else None
        return made if made is not None and made.classes else None

    def _method_called(self, receiver: cst.BaseExpression, call: Call) -> AbstractValue | None:
        """What a method of `receiver` gives; None where nothing is known of it."""
        if self._is_self(receiver, call.scope):
            own = self._own_method(call)
            if own is not UNKNOWN:
                return own
            return self._object_called(call) or self._network_called(call) or self._ungraded(call)
        if (told_by_name := self._told_by_name(call)) is not None:
            return told_by_name
        owner = self.infer(receiver)
        told = call.attribute in self._distinctive or owner.dtype != "unknown"
        # NumPy's arrays have no `expand`.
        told = told or names_dim(call) or (bool(owner.single) and call.attribute == "expand")
        if owner.is_tensor or (owner.what == "unknown" and told):
            return self.results.method(replace(owner, what="tensor"), call)
        if owner.instance == FOREIGN.instance:
            return owner if call.attribute in self.facts.keeping_arrays else FOREIGN
        if owner.what == "unknown" and not call.node.args and call.attribute in self.facts.casts:
            # NumPy and pandas cast with `astype`: `x.long()` is torch's.
            return AbstractValue(what="tensor", dtype="integer", gradient="no", device=owner.device)
        if owner.what == "unknown" and (reshaped := self._reshaped(owner, call)) is not None:
            return reshaped
        if call.attribute in ("numpy", "tolist", "item"):
            return OTHER
        return self._method_of_object(owner, call) or self._held(owner, call)

    def _told_by_name(self, call: Call) -> AbstractValue | None:
        """What a method gives of which the name says so, whatever has it, and a network that is moved."""
        if call.attribute in self._moves and call.receiver is not None and (owner := self.infer(call.receiver)).classes:
            return owner
        if call.attribute in self.facts.counting:
            return AbstractValue(what="tensor", dtype="integer", gradient="no")
        keeps = call.opaque or "keep_vars" in call.arguments.keywords
        return CHECKPOINT if call.attribute in self.facts.states and not keeps else None

    def _reshaped(self, owner: AbstractValue, call: Call) -> AbstractValue | None:
        """What a method of an array of whatever library gives, where the number of dimensions can be told, or that no
        index occurs twice."""
        if call.attribute == "nonzero":
            # NumPy's takes no argument.
            found = self.results.method(replace(owner, what="tensor"), call)
            return found if call.node.args else replace(found, what="unknown")
        if not call.node.args and call.attribute in ("flatten", "ravel"):
            return AbstractValue(dims=1, gradient=owner.gradient)
        if owner.dims is not None and call.attribute in self.facts.keeping_dims:
            return replace(self._unknown_call(call), dims=owner.dims)
        return None

    def _object_called(self, call: Call) -> AbstractValue | None:
        """What an object gives that is called by a name which says nothing, as that of an annotated parameter, or of
        what a function gave."""
        function = self.infer(call.node.func) if all(name.endswith("()") for name in call.own) else UNKNOWN
        return self._one_called(function, call)

    def given_by(self, class_: Class) -> AbstractValue:
        """What an object of a class of the file gives when it is called, but for the gradient."""
        forward = self._run_by_call(class_)
        if forward is not None:
            return self.returned(forward)
        if _SEQUENTIAL in self.module.ancestry(f"@.{class_.name}"):
            return replace(TENSOR, dims=self._dims_of_own(class_))
        bases = [name for name in self.module.base_names(class_) if not name.startswith(("@.", "torch."))]
        found = (self.module.foreign(name) for name in bases) if self.module.foreign is not None else ()
        return next((one for one in found if one is not None), TENSOR if self.gradients.is_layer(class_) else UNKNOWN)

    def object_gives(self, class_: Class) -> AbstractValue:
        """The same with the gradient as far as it is known."""
        return self._without_names(self.given_by(class_), class_, self._run_by_call(class_))

    def _without_names(self, found: AbstractValue, class_: Class, method: cst.FunctionDef | None) -> AbstractValue:
        """`found`, which `method` gives, without what only names say: that what it is given has no gradient."""
        if found.gradient != "no" or found.what == "other" or found.is_integral or self._is_cut(class_, method):
            return found
        return replace(found, gradient="unknown")

    def _run_by_call(self, class_: Class) -> cst.FunctionDef | None:
        """The method that runs where an object of a class is called."""
        called = "forward" if self.gradients.is_layer(class_) else "__call__"
        return self.attributes.method(class_, called)

    def method_gives(self, class_: Class, name: str) -> AbstractValue:
        """What the method `name` of an object of a class of the file gives, by its own or one of a base in whichever
        file."""
        method = self.attributes.method(class_, name)
        if method is not None:
            return self._without_names(self.returned(method), class_, method)
        bases = [base for relative in self.module.family(class_) for base in self.module.base_names(relative)]
        found = (self._of_class_elsewhere(base, name) for base in bases if not base.startswith("@."))
        return next((one for one in found if one is not None), UNKNOWN)

    def _of_class_elsewhere(self, class_name: str, method: str) -> AbstractValue | None:
        """What a method of a class of another file gives; None where nothing is known of it."""
        if self.module.foreign is None or "." not in class_name or "(" in class_name:
            return None
        if class_name.partition(".")[0] in self.module.library.roots:
            return None
        found: AbstractValue | None = self.module.foreign(f"{class_name}.{method}")
        return found

    def _method_of_object(self, owner: AbstractValue, call: Call) -> AbstractValue | None:
        """What a method gives of an object of classes in sight, in whichever file."""
        found: list[AbstractValue] = []
        for name in owner.classes:
            class_ = self.module.local_class(name)
            given = self._of_class_elsewhere(name, call.attribute)
            if class_ is not None:
                given = self.method_gives(class_, call.attribute)
            if given is None or given == UNKNOWN:
                return None
            found.append(given)
        if not found:
            return None
        return (
            replace(joined(found), gradient="no")
            if self.gradients.untracked(call.node)
            else self._given(joined(found), call)
        )

    def _ungraded(self, call: Call) -> AbstractValue:
        """What is known of the result of a call of which nothing else is: under `no_grad` it has no gradient."""
        return AbstractValue(gradient="no") if self.gradients.switched_off(call.node) else UNKNOWN

    def _one_called(self, function: AbstractValue, call: Call, hops: int = _HOPS) -> AbstractValue | None:
        """What an object gives that is of one of some classes. Networks of which a program picks one give tensors of as
        many dimensions, as far as it is known."""
        made = [self._instance_called(name, call, hops - 1) for name in function.classes if hops > 0]
        if not any(made):
            return None
        tensors = [one for one in made if one is not None and one.is_tensor]
        dims = {one.dims for one in tensors} - {None}
        if len(dims) == 1:
            return replace(joined(tensors), dims=dims.pop())
        return joined(one or UNKNOWN for one in made)

    def _network_called(self, call: Call) -> AbstractValue | None:
        """What a network gives of which nothing is known but that it is in training mode."""
        if self.infer(call.node.func).what != "unknown" or not self.modes.holds(call.node):
            return None
        return None if self.gradients.untracked(call.node) else AbstractValue(gradient="yes")

    def _held(self, owner: AbstractValue, call: Call) -> AbstractValue | None:
        """What a method of a layer or a container gives of what it holds, and where `to` puts what nobody knows."""
        if owner.what == "unknown" and call.attribute == "to" and call.node.args:
            return replace(owner, device=self.results.arguments.moved("to", owner, call))
        if call.attribute == "parameters" and not call.arguments.positional:
            return AbstractValue(what="other", each=PARAMETER)
        if call.attribute == "named_parameters" and not call.arguments.positional:
            return AbstractValue(what="other", each=AbstractValue(what="other", items=(OTHER, PARAMETER)))
        if owner.what in ("other", "unknown") and call.attribute == "items" and owner.each is not None:
            return AbstractValue(what="other", each=AbstractValue(what="other", items=(UNKNOWN, owner.each)))
        if owner.what == "other" and call.attribute in ("values", "get", "pop", "copy") and owner.each is not None:
            if call.attribute not in ("get", "pop"):
                return owner
            key = text_of(call.node.args[0].value) if call.node.args else ""
            return dict(owner.entries).get(key, owner.each)
        if owner.what == "other" and not owner.classes:
            return UNKNOWN if owner.each or owner.items else OTHER
        return self._saved(owner, call) if owner.what == "unknown" and owner.each is not None else None

    def _saved(self, owner: AbstractValue, call: Call) -> AbstractValue | None:
        """What a method of a dictionary gives of what may be one of tensors that were saved, or of other data."""
        if call.attribute == "copy":
            return owner
        if call.attribute == "values":
            return AbstractValue(what="other", each=owner.each)
        if call.attribute in ("get", "pop") and owner.each is not None:
            return joined((owner.each, *(self.infer(arg.value) for arg in call.node.args[1:])))
        return None

    def _dictionary(self, call: Call) -> AbstractValue:
        """What `dict(…)` or a constructor like it gives: the entries of another dictionary, or of pairs."""
        if len(call.node.args) != 1 or call.opaque or call.node.args[0].keyword is not None:
            return UNKNOWN
        inner = self.infer(call.node.args[0].value)
        pair = inner.each.items if inner.each is not None else ()
        if len(pair) == _PAIR:
            return AbstractValue(what="other", each=pair[1])
        return inner if inner.each is not None and not inner.classes else UNKNOWN

    def _inner(self, call: Call) -> AbstractValue | None:
        """What a lambda, or a function that stands in a function, returns."""
        function = call.node.func
        if not isinstance(function, cst.Name):
            return None
        home = call.scope.home(function.value)
        if home is None:
            return None
        bindings = live(home.bindings[function.value], call.order if home.function is call.scope.function else None)
        if len(bindings) != 1:
            return None
        made = bindings[0].value if bindings[0].kind == "assign" and not bindings[0].path else bindings[0].node
        if isinstance(made, cst.Lambda):
            return self.infer(made.body)
        if isinstance(made, cst.FunctionDef) and home.kind == "function":
            return self.returned(made)
        return None

    def _given(self, found: AbstractValue, call: Call) -> AbstractValue:
        """What a function of the file returns, with the gradient of what it was given where its own is unknown."""
        if found.gradient == "unknown" and found.dtype in ("unknown", "floating"):
            return replace(found, gradient=self._unknown_call(call).gradient)
        return found

    def _unknown_call(self, call: Call) -> AbstractValue:
        """A callable that is not in sight: what it returns carries the gradient of what it was given."""
        given = [arg.value for arg in call.node.args if not arg.star]
        if call.receiver is not None:
            given.append(call.receiver)
        if not self.gradients.untracked(call.node) and any(self.infer(value).gradient == "yes" for value in given):
            return AbstractValue(gradient="yes")
        plain = call.attribute in self.facts.own_gradient and call.receiver is not None
        if plain and self.infer(given[-1]).gradient == "no":
            return AbstractValue(gradient="no")
        return self._ungraded(call)

    def _called(self, name: str, call: Call) -> AbstractValue | None:
        """What a call of the qualified name gives; None where the name tells nothing."""
        owner, _, last = name.rpartition(".")
        if name in self.facts.of_images:
            return AbstractValue("tensor", device="cpu", gradient="no")
        if name.endswith("()"):
            return self._instance_called(name[:-2], call)
        if name in self.facts.checkpoints:
            return CHECKPOINT
        if name in self._wrappers and call.node.args and (held := self.infer(call.node.args[0].value)).classes:
            return held
        if owner in self.facts.modules and last[:1].islower():
            return self.results.function(last, call)
        if last == "one_hot":
            return AbstractValue(what="tensor", gradient="no", whole=True)
        if name == "collections.defaultdict":
            return EMPTY
        if name == "collections.OrderedDict":
            return self._dictionary(call) if call.node.args else EMPTY
        if name.startswith("torch."):
            return self._torch_class(name, last, call)
        if name.startswith("@."):
            return self._local(name, call)
        if owner.endswith("()"):
            return None
        if name.startswith("builtins."):
            return self._builtin(last, call)
        return self._of_library(name, last, call)

    def _of_library(self, name: str, last: str, call: Call) -> AbstractValue | None:
        """What a call of something that is imported from elsewhere gives."""
        library = name.partition(".")[0]
        if library == "einops" and last in ("rearrange", "reduce", "repeat") and call.node.args:
            return self._rearranged(call)
        if library in self.facts.array_libraries:
            return DISTINCT_ARRAY if library == "numpy" and last in self.facts.distinct_arrays else FOREIGN
        if library in self.facts.plain_libraries:
            return OTHER
        if library == "tqdm" and last in ("tqdm", "auto") and call.node.args:
            return AbstractValue(what="other", each=self._iterated(call.node.args[0].value))
        if last[:1].isupper():
            return AbstractValue(what="other", gradient="no", instance=name)
        found = self.module.foreign(name) if self.module.foreign is not None else None
        return self._given(found, call) if found is not None else None

    def _rearranged(self, call: Call) -> AbstractValue:
        """What `einops.rearrange(x, "b c h -> b (c h)")` and its like give: a tensor with the axes of the pattern."""
        given = self.infer(call.node.args[0].value)
        pattern = call.argument("pattern", ("tensor", "pattern"))
        text = pattern.constant if pattern is not None else None
        if given.what == "other":
            return UNKNOWN
        axes = _GROUP.sub("_", text.partition("->")[2]).split() if isinstance(text, str) else ["..."]
        return AbstractValue(
            what=given.what,
            dtype=given.dtype,
            device=given.device,
            gradient=given.gradient,
            dims=None if "..." in axes else len(axes),
        )

    def _torch_class(self, name: str, last: str, call: Call) -> AbstractValue | None:
        if "()" in name:
            return None
        if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            inner = self.results.arguments.kind_of(call, 0, "data")
            wanted = call.argument("requires_grad", ("data", "requires_grad"))
            fixed = wanted is not None and wanted.constant is False
            return replace(inner, what="tensor", device="unknown", gradient="no" if fixed else "yes", whole=False)
        if name in ("torch.autograd.Variable", "torch.autograd.variable.Variable"):
            inner = self.results.arguments.kind_of(call, 0, "data")
            wanted = call.argument("requires_grad", ("data", "requires_grad"))
            return replace(inner, what="tensor", gradient="yes" if wanted is not None and wanted.constant else "no")
        if last.endswith("Tensor"):
            made = instance_of(f"torch.{last}", self.facts)
            dtype: Dtype = made.dtype if made.dtype != "unknown" else "floating"
            data = self.results.arguments.kind_of(call, 0, "data")
            return AbstractValue(
                "tensor", dtype, "cuda" if ".cuda." in name else "cpu", "no",
                distinct=data.distinct or all_different(call), overlapping=data.overlapping,
            )  # fmt: skip
        if name == "torch.utils.data.DataLoader":
            plain = AbstractValue(gradient="no")
            batch = replace(plain, each=plain) if "collate_fn" in call.arguments.keywords or call.opaque else BATCH
            return AbstractValue(what="other", gradient="no", instance=name, each=batch)
        if name in ("torch.nn.Buffer", "torch.nn.parameter.Buffer"):
            return replace(
                self.results.arguments.kind_of(call, 0, "data"), what="tensor", device="unknown", gradient="no"
            )
        if name == "torch.autograd.grad":
            graph = call.arguments.keywords.get("create_graph")
            gradient: Gradient = "no" if not call.opaque and (graph is None or graph.constant is False) else "yes"
            return AbstractValue(what="other", each=AbstractValue(what="tensor", dtype="floating", gradient=gradient))
        if name == "torch.nn.ParameterList":
            return AbstractValue(what="other", gradient="no", instance=name, each=PARAMETER)
        if name in ("torch.nn.ModuleList", _SEQUENTIAL):
            layer = AbstractValue(what="other", instance="torch.nn.Module")
            dims = self._dims_of_last(call) if name == _SEQUENTIAL else None
            held = self._held_layers(call) if name != _SEQUENTIAL else None
            layer = held.each if held is not None and held.each is not None else layer
            return AbstractValue(what="other", gradient="no", instance=name, each=layer, dims=dims)
        if name == "torch.nn.ModuleDict" and (held := self._held_layers(call)) is not None:
            return replace(held, gradient="no", instance=name)
        if last[:1].isupper():
            return AbstractValue(what="other", gradient="no", instance=name)
        return None

    def _held_layers(self, call: Call) -> AbstractValue | None:
        """The list or dictionary of layers that `call` is given, where the classes of all of them are known."""
        given = self.infer(call.node.args[0].value) if len(call.node.args) == 1 and not call.opaque else UNKNOWN
        known = given.what == "other" and given.each is not None and given.each.classes
        return AbstractValue(what="other", each=given.each, entries=given.entries) if known else None

    def _dims_of_last(self, call: Call) -> int | None:
        """The dimensions of what the last of the layers of `call` gives, where that is evident."""
        for arg in reversed(call.node.args):
            layer = UNKNOWN if arg.star else self.infer(arg.value)
            known = {self.facts.dims[name] for name in layer.classes if name in self.facts.dims}
            dims = known.pop() if len(known) == 1 else layer.dims
            if dims is not None or not layer.classes:
                return dims
            if not all(name.rpartition(".")[2] in self.facts.same_dims for name in layer.classes):
                return None
        return None

    def _dims_of_own(self, class_: Class) -> int | None:
        """The dimensions of what a class of `Sequential` gives, by the layers that its constructor hands on."""
        constructor = self.attributes.method(class_, "__init__")
        scope = self.module.inner_scope(constructor) if constructor is not None else None
        for call in self.module.calls_in(scope) if scope is not None else ():
            if call.attribute == "__init__":
                return self._dims_of_last(call)
        return None

    def _builtin(self, last: str, call: Call) -> AbstractValue:
        args = [arg.value for arg in call.node.args if arg.keyword is None and not arg.star]
        if last in ("list", "tuple", "reversed", "sorted", "iter") and args:
            given = self.infer(args[0])
            distinct = given.distinct or self._is_set(args[0])
            each = self._iterated(args[0])
            return AbstractValue(what="other", each=each, distinct=distinct, overlapping=given.overlapping)
        if last == "next" and args:
            return self._iterated(args[0])
        if last == "range":
            return replace(SIZES, distinct=True)
        if last == "dict" and not args and call.node.args and not call.opaque:
            return AbstractValue(what="other", each=joined(self.infer(arg.value) for arg in call.node.args))
        if last == "dict" and args:
            return self._dictionary(call)
        if last == "enumerate" and args:
            return AbstractValue(what="other", each=AbstractValue(what="other", items=(OTHER, self._iterated(args[0]))))
        if last == "zip":
            return AbstractValue(what="other", each=AbstractValue(what="other", items=tuple(map(self._iterated, args))))
        if last == "getattr" and len(args) > 1 and isinstance(name := self.module.value(args[1]).constant, str):
            return self.accesses.member(self.infer(args[0]), name) or UNKNOWN
        if last in ("sum", "max", "min", "abs", "getattr", "super", "map", "filter"):
            inner = self.infer(args[0]) if args else UNKNOWN
            if last == "abs" or (last in ("max", "min") and len(args) > 1):
                return inner
            return inner.each if last in ("sum", "max", "min") and inner.each is not None else UNKNOWN
        return OTHER

    def _is_set(self, node: cst.BaseExpression) -> bool:
        """Whether `node` makes a set, in which nothing occurs twice."""
        return isinstance(node, cst.Call) and self.module.resolve(node.func) in (
            ("builtins.set",),
            ("builtins.frozenset",),
        )

    def _instance_called(self, class_name: str, call: Call, hops: int = _HOPS) -> AbstractValue | None:
        """`layer(x)`: a layer gives a tensor that carries a gradient."""
        if class_name in self._wrappers and (held := self.infer(call.node.func)).classes:
            classes = tuple(name for name in held.classes if name not in self._wrappers)
            if (given := self._one_called(AbstractValue(among=classes), call, hops)) is not None:
                return given
        ancestry = self.module.ancestry(class_name)
        class_ = self.module.local_class(class_name)
        if class_ is not None and self.gradients.is_layer(class_):
            given = self.given_by(class_)
            ends = self.gradients.untracked(call.node) or (
                given.gradient == "no" and self._is_cut(class_, self._run_by_call(class_))
            )
            return replace(given, gradient="no" if ends else "yes")
        if class_ is not None and (method := self._run_by_call(class_)) is not None:
            return self._given(self.returned(method), call)
        if any(name.startswith("torch.nn.") for name in ancestry):
            dims = self.facts.dims.get(class_name)
            if dims is None and class_name.rpartition(".")[2] in self.facts.same_dims:
                dims = self.results.arguments.kind_of(call, 0).dims
            elif class_name == _SEQUENTIAL:
                dims = self.infer(call.node.func).dims
            single = dims is not None or class_name.rpartition(".")[2] not in self.facts.several_outputs
            gradient: Gradient = "no" if self.gradients.untracked(call.node) else "yes"
            if gradient == "yes" and class_name.removeprefix("torch.nn.") in self.facts.passing_layers:
                gradient = "no" if self.results.arguments.kind_of(call, 0).gradient == "no" else "yes"
            return AbstractValue(what="tensor" if single else "unknown", dtype="floating", gradient=gradient, dims=dims)
        if self.module.foreign is None or class_name.startswith("@.") or ancestry != [class_name]:
            return None
        made: AbstractValue | None = self.module.foreign(class_name)
        if made is not None and made.classes:
            # A function gave the object that is called.
            made = self._one_called(made, call, hops)
        return replace(made, gradient="no") if made is not None and self.gradients.untracked(call.node) else made

    def _is_cut(self, class_: Class, method: cst.FunctionDef | None) -> bool:
        """Whether `method` of a class, or one that it calls through `self`, switches gradients off or detaches
        something; without a method it is one of a base elsewhere, of which that was asked there."""
        if method is None:
            return True
        called = (self.attributes.method(class_, name) for name in _OWN.findall(self.module.code(method)))
        return self.gradients.cuts(method) or any(one is not None and self.gradients.cuts(one) for one in called)

    def _is_self(self, node: cst.BaseExpression, scope: Scope) -> bool:
        return isinstance(node, cst.Name) and self.infer(node).instance.startswith("@.")

    def _own_method(self, call: Call) -> AbstractValue:
        """`self.name(…)`: a method of the class, or a layer that it holds."""
        assert call.receiver is not None
        class_ = self.module.local_class(self.infer(call.receiver).instance)
        if class_ is None:
            return UNKNOWN
        method = self.attributes.method(class_, call.attribute)
        found = self.returned(method) if method is not None else UNKNOWN
        if found == UNKNOWN:
            found = self.attributes.of_implementations(class_, call.attribute)
        if method is not None or found != UNKNOWN:
            if self.gradients.untracked(call.node):
                return replace(found, gradient="no")
            return self._given(found, call)
        if not self.gradients.is_layer(class_) or self.gradients.untracked(call.node):
            return UNKNOWN
        # The call was named before the constructor was read, which says what the layer is.
        if isinstance(call.node.func, cst.Attribute):
            self.module.self_attribute(call.node.func, call.scope)
        made = [
            self._instance_called(name[:-2], call) for name in self.module.resolve(call.node.func) if name[-1] == ")"
        ]
        if not made:
            made = [self._one_called(self.infer(call.node.func), call)]
        found = joined(inferred or UNKNOWN for inferred in made)
        carries = found.gradient != "no" and self._unknown_call(call).gradient == "yes"
        return replace(found, gradient="yes") if carries else found

    def _local(self, name: str, call: Call) -> AbstractValue | None:
        if self.module.local_class(name) is not None:
            return self.annotations.instance(name)
        owner, _, last = name[2:].rpartition(".")
        class_ = self.module.local_class(f"@.{owner}") if owner else None
        if owner and class_ is None:
            return None
        function = self.attributes.method(class_, last) if class_ is not None else self.module.definition(last)
        if function is None:
            return self._unknown_call(call) if last == "apply" else None
        found = self._given(self.returned(function), call)
        return found if found.what != "unknown" or found.classes else self._handed_back(function, call) or found

    def _handed_back(self, function: cst.FunctionDef, call: Call) -> AbstractValue | None:
        """The object that a function gives back which it is given, `return model`, or that what it picks of a module
        which it is given makes: `return getattr(module, kind)()`."""
        for result in returned(function):
            inner = self.module.call_at(result) if isinstance(result, cst.Call) else None
            pick = self._pick(inner) if inner is not None else None
            holder = call.argument(bare(pick[0]), positional(function)) if pick is not None else None
            if pick is not None and holder is not None and (made := self._taken(holder.names, pick[1])) is not None:
                return made
        names = {value.value if isinstance(value, cst.Name) else "" for value in returned(function)}
        name = names.pop() if len(names) == 1 else ""
        value = call.argument(name, positional(function)) if name else None
        given = self.infer(value.node) if value is not None else UNKNOWN
        return given if given.classes else None

    def returned(self, function: cst.FunctionDef) -> AbstractValue:
        """What a function of the file returns."""
        return self.asked(("returned", id(function)), partial(self._returned, function))

    def _returned(self, function: cst.FunctionDef) -> AbstractValue:
        annotated = UNKNOWN
        if function.returns is not None:
            annotated = self.annotations.infer(function.returns.annotation)
            if annotated.what == "other" and annotated != EMPTY and not (annotated.items or annotated.each):
                return annotated
        returns = list(returned(function))
        found = UNKNOWN
        if 0 < len(returns) <= _RETURNS:
            found = joined(self.infer(value) for value in returns)
        if found.what == "unknown" and annotated.what != "unknown":
            found = replace(annotated, gradient=found.gradient)
        return replace(found, gradient="no") if self.gradients.not_tracked(function) else found

    def _iterated(self, node: cst.BaseExpression) -> AbstractValue:
        return iterated(node, self.infer(node))


def names_dim(call: Call) -> bool:
    """Whether a method is told a dimension in torch's words: `dim=1`, `keepdim=True`. NumPy says `axis` and
    `keepdims`, and xarray gives `dim` a name."""
    dim = call.arguments.keywords.get("dim")
    return "keepdim" in call.arguments.keywords or (dim is not None and isinstance(dim.constant, (int, tuple)))
