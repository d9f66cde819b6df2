"""A place -> whether no gradient flows there: under `no_grad`, in evaluation, in data sets, in what these call."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.inference.chains import ChainedQuestion
from torchdet_lint.module import names
from torchdet_lint.prefilter.triggers import places
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torchdet_lint.module.module import Call, Class, Module

_CAMEL = lazy(r"[A-Z][a-z0-9]*|[a-z0-9]+")
_ASKED = lazy(r"\bin self\.parameters\(\):\s+\w+\.requires_grad\s*=\s*([A-Za-z]\w*)\b")
_SWITCHES_ON = lazy(r"\b(?:enable_grad|set_grad_enabled|inference_mode[ \t]*\([^)])")
_CUTS = lazy(r"\b(?:no_grad|inference_mode|set_grad_enabled|detach)\b")
_FORMULA = lazy(r"(?:^|_)(?:backward|bwd|vjp)(?:_|$)")
_DATA = lazy(r"data|data_?sets?|data_?loaders?|data_?loading", re.IGNORECASE)
_NAME = lazy(r"\b[^\W\d]\w*")
_DATA_UTILITIES = lazy(r"data(?:_?set)?_?utils?|augment(?:ation)?s?", re.IGNORECASE)


class Gradients:
    """Whether a gradient can flow through the places of one file."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.facts = module.library.facts.tensors
        self._not_tracked = ChainedQuestion(self._evidently_not_tracked)
        self._only_called_untracked = ChainedQuestion(self._called_untracked_alone)
        self._calls_by_name: dict[str, list[Call]] = {}
        self._calls_taken = 0
        self._evaluating: dict[int, int | None] = {}
        self._untracked_classes: dict[Class, bool] = {}
        # A function is asked about more than once, and its source costs more than a look at it.
        self._source = cache(module.code)

    def is_layer(self, class_: Class) -> bool:
        """Whether a class of the file is a layer: it derives from `torch.nn.Module`, or it has a `forward`."""
        ancestry = self.module.ancestry(f"@.{class_.name}")
        if not set(ancestry).isdisjoint(self.facts.untracked_bases):
            return False
        return "torch.nn.Module" in ancestry or any(
            "forward" in member.methods for member in self.module.family(class_)
        )

    def _after_training(self, block: cst.IndentedBlock, statement: cst.CSTNode) -> bool:
        """Whether `statement` stands in `block` behind an `if self.training:` that leaves the function."""
        if id(block) not in self._evaluating:
            leaving = next(filter(self._leaves_in_training, block.body), None)
            self._evaluating[id(block)] = self.module.order_of(leaving) if leaving is not None else None
        after = self._evaluating[id(block)]
        return after is not None and self.module.order_of(statement) > after

    def untracked(self, node: cst.CSTNode) -> bool:
        """Whether no gradient can flow through `node`: under `no_grad`, in a data set, in an autograd function."""
        tracked = self._tracked_by_blocks(node)
        if tracked is not None:
            return not tracked
        if self._for_export or self._switched_off(node) or self._becomes_data(node) or self._transforms(node):
            return True
        class_ = self.module.enclosing_class(node)
        return class_ is not None and self._untracked_class(class_)

    def switched_on(self, node: cst.CSTNode) -> bool:
        """Whether the nearest thing around `node` that decides on gradients switches them on: `torch.enable_grad()`."""
        return self._speaks_of_switching_on and self._tracked_by_blocks(node) is True

    def switched_off(self, node: cst.CSTNode) -> bool:
        """Whether the nearest `with` or decorator around `node` that switches gradients switches them off."""
        if not self._speaks_of_no_grad:
            return False
        around: Any
        for around, _ in self.module.deciding(node):
            switched: bool | None = None
            if type(around) is cst.With:
                switched = self._switched_by_items(around)
            elif type(around) is cst.FunctionDef:
                switched = self._switched_by_decorator(around)
            if switched is not None:
                return not switched
        return False

    def cuts(self, function: cst.FunctionDef) -> bool:
        """Whether `function` switches gradients off somewhere, or detaches something."""
        return self._stands_in(function, lambda text: _CUTS.search(text) is not None)

    @cached_property
    def _speaks_of_switching_on(self) -> bool:
        return _SWITCHES_ON.search(self.module.text) is not None

    def _tracked_by_blocks(self, node: cst.CSTNode) -> bool | None:
        """Whether gradients flow by the nearest `with`, branch or function around `node` that decides it; None where
        none does."""
        around: Any
        for around, inner in self.module.deciding(node):
            # An abstract class asks slowly whether a node of another class is of it.
            kind = type(around)
            if kind is cst.With:
                if (switched := self._switched_by_items(around)) is not None:
                    return switched
            elif kind is cst.If or kind is cst.IfExp:
                if inner is not around.test and self._only_evaluated(around.test)[inner is not around.body]:
                    return False
            elif kind is cst.IndentedBlock:
                if self._after_training(around, inner):
                    return False
            elif kind is cst.FunctionDef:
                if self.not_tracked(around):
                    return False
                if self._speaks_of_switching_on and self._switched_by_decorator(around):
                    return True
        return None

    def _switched_by_items(self, node: cst.With) -> bool | None:
        """Whether a `with` switches gradients on or off; None where it does neither."""
        switched = (self._switches(item.item) for item in reversed(node.items))
        return next((one for one in switched if one is not None), None)

    def _switched_by_decorator(self, function: cst.FunctionDef) -> bool | None:
        """Whether a decorator switches gradients on or off; None where none does either."""
        switched = (self._switches(item.decorator) for item in reversed(function.decorators))
        return next((one for one in switched if one is not None), None)

    def _becomes_data(self, node: cst.CSTNode) -> bool:
        """Whether a call gives what becomes the data of a parameter, without its history: `weight.data = f(weight)`."""
        statement = self.module.parent(node)
        return isinstance(statement, cst.Assign) and all(
            isinstance(one.target, cst.Attribute) and one.target.attr.value == "data" for one in statement.targets
        )

    def _transforms(self, node: cst.CSTNode) -> bool:
        """Whether `node` stands in a lambda that a transform of torchvision is given: what a data set holds."""
        if not self._may_transform:
            return False
        for around in self.module.ancestors(node):
            call = self.module.parent(self.module.parent(around) or around) if isinstance(around, cst.Lambda) else None
            if isinstance(call, cst.Call) and any(
                name.startswith("torchvision.transforms.") for name in self.module.resolve(call.func)
            ):
                return True
        return False

    @cached_property
    def _asks_for_gradients(self) -> bool:
        text = self.module.text
        return "requires_grad" in text and "self.parameters():" in text and _ASKED.search(text) is not None

    @cached_property
    def _may_transform(self) -> bool:
        return "transforms" in self.module.text and "lambda" in self.module.text

    @cached_property
    def _for_export(self) -> bool:
        """Whether the file's name says that it makes data ready, converts or shows models, or only runs them."""
        path = PurePath(self.module.source.path)
        if path.stem in self.facts.untracked_folders or path.parent.name in self.facts.untracked_folders:
            return True
        words = path.stem.strip("_").split("_")
        if words[-1] in ("preprocess", "preprocessing", "preprocessor"):
            return True
        return words[0] in self.facts.untracked_files or (len(words) > 1 and words[0] == "pipeline")

    @cached_property
    def _switch_statements(self) -> list[Call]:
        """The statements that switch gradients on or off for what follows."""
        if "set_grad_enabled" not in self.module.text:
            return []
        self.module.look_for("set_grad_enabled")
        calls = self.module.calls_to(*self.facts.gradient_switches)
        return [call for call in calls if isinstance(self.module.parent(call.node), cst.Expr)]

    def _switched_off(self, node: cst.CSTNode) -> bool:
        """Whether a statement `torch.set_grad_enabled(False)` evidently holds at `node`: the last one before it in its
        function, or one that runs as the file is imported where none switches gradients on."""
        if not self._switch_statements:
            return False
        order, scope = self.module.order_of(node), self.module.scope_of(node)
        own = [call for call in self._switch_statements if call.scope.function is scope.function]
        before = [call for call in own if call.order < order]
        if before:
            last = max(before, key=lambda call: call.order)
            block = self.module.parent(self.module.statement(last.node))
            around = any(ancestor is block for ancestor in self.module.ancestors(node))
            return (
                around and self._stops(last.node) and all(self._stops(call.node) for call in own if call.order > order)
            )
        return all(map(self._stops, (call.node for call in self._switch_statements))) and any(
            isinstance(self.module.parent(self.module.statement(call.node)), cst.Module)
            for call in self._switch_statements
        )

    @cached_property
    def _among_data(self) -> bool:
        """Whether the file's folder or its name says that it is about data sets."""
        path = PurePath(self.module.source.path)
        return _DATA.fullmatch(path.parent.name) is not None or _DATA_UTILITIES.fullmatch(path.stem) is not None

    def not_tracked(self, function: cst.FunctionDef) -> bool:
        """Whether a function is decorated so, or its name, its parameters or all its callers in the file say so."""
        return self._not_tracked(function)

    def _evidently_not_tracked(self, function: cst.FunctionDef) -> bool:
        if (switched := self._switched_by_decorator(function)) is not None:
            return not switched
        # What a search for sequences calls, though it is a method of the layer.
        if function.name.value.endswith(self.facts.untracked_methods):
            return True
        parameters = {param.name.value for param in (*function.params.params, *function.params.kwonly_params)}
        if not parameters.isdisjoint(self.facts.search_parameters):
            return True
        # What computes a gradient has none of its own, unless the second is asked for.
        first = function.params.params[0].name.value if function.params.params else ""
        if first == "ctx" and _FORMULA.search(function.name.value):
            return True
        scope = self.module.inner_scope(function)
        class_ = self.module.enclosing_class_of_scope(scope.outer if scope is not None else None)
        if class_ is not None:
            if function.name.value in self.facts.untracked_steps:
                return "lightning.pytorch.LightningModule" in self.module.ancestry(f"@.{class_.name}")
            if not self.is_layer(class_) and self._untracked_name(function) and not self._serves_a_loss(function):
                return True
            return self._only_runs(function, class_)
        if self._untracked_name(function) and not self._serves_a_loss(function):
            return True
        if scope is None or scope.outer is not self.module.scope:
            return False
        if self._among_data and not self.for_every_device(function, parameters):
            return True
        name = function.name.value
        callers: list[cst.CSTNode] = []

        def holds(node: cst.CSTNode) -> bool:
            callers.append(node)
            return self.untracked(node)

        if not self._everywhere(name, lambda: list(self.module.calls_to(f"@.{name}")), holds):
            return False
        return not self.for_every_device(function, parameters) or not all(map(self.in_data_set, callers))

    def for_every_device(self, function: cst.FunctionDef, parameters: set[str]) -> bool:
        """Whether a function of data sets, which are on the CPU, was written for every device: it is for the losses of
        a training loop too."""
        if not parameters:
            return False
        wanted = [f"{name}.device" for name in sorted(parameters)]
        return self._stands_in(function, lambda text: any(True for one in wanted for _ in places(one, text)))

    def _stands_in(self, function: cst.FunctionDef, found: Callable[[str], bool]) -> bool:
        """Whether a word is `found` in the source of `function`, which costs more to make than a look at the file."""
        return found(self.module.text) and found(self._source(function))

    def _everywhere(self, name: str, calls: Callable[[], list[Call]], holds: Callable[[cst.CSTNode], bool]) -> int:
        """How many of `calls` the file has, the places with `name` parsed; 0 as soon as one is found for which `holds`
        is not true."""
        seen: set[int] = set()
        for _ in self.module.looking_for(name):
            for call in calls():
                if id(call) not in seen:
                    seen.add(id(call))
                    if not holds(call.node):
                        return 0
        return len(seen)

    def in_data_set(self, node: cst.CSTNode) -> bool:
        """Whether a method of a data set holds `node`, by the names of its class and the base classes."""
        class_ = self.module.enclosing_class(node)
        return class_ is not None and not _words(self._family_names(class_)).isdisjoint(self.facts.data_classes)

    def _only_runs(self, function: cst.FunctionDef, class_: Class) -> bool:
        """Whether a method predicts or tests, beside one of its class that trains and that does not call it."""
        name = function.name.value
        words = name.strip("_").split("_")
        runs = self.facts.untracked_runs
        if words[0] not in runs and words[-1] not in runs:
            return False
        if self._stands_in(function, lambda text: ".training" in text):
            return False
        if not any(
            word in member.methods for member in self.module.family(class_) for word in self.facts.training_methods
        ):
            return False

        def calls() -> list[Call]:
            return [
                call
                for call in self.module.calls
                if call.attribute == name and self._may_be_of(class_, call) and not self._inside(function, call)
            ]

        return all(all(self.untracked(call.node) for call in calls()) for _ in self.module.looking_for(name))

    def _inside(self, function: cst.FunctionDef, call: Call) -> bool:
        return any(ancestor is function for ancestor in self.module.ancestors(call.node))

    def _may_be_of(self, class_: Class, call: Call) -> bool:
        """Whether `call` may be one of a method of `class_`: of `self`, only in a class that is akin to it."""
        if not isinstance(call.receiver, cst.Name) or call.receiver.value not in ("self", "cls"):
            return True
        other = self.module.enclosing_class(call.node)
        return other is None or class_ in self.module.family(other) or other in self.module.family(class_)

    def held_untracked(self, node: cst.CSTNode) -> bool:
        """Whether `node` makes a module, or a part of one, that an attribute of `self` holds, which the file does
        nothing with but call it where no gradient flows."""
        statement = self.module.parent(node)
        while isinstance(statement, (cst.Arg, cst.Call)):
            statement = self.module.parent(statement)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Attribute) or names.dotted(target) != f"self.{target.attr.value}":
            return False
        if not (self._speaks_of_no_grad or ".training" in self.module.text):
            return False
        calls = self.held_calls(target)
        return bool(calls) and all(self.untracked(call.node) or self.called_untracked(call.node) for call in calls)

    def held_calls(self, target: cst.Attribute) -> list[Call]:
        """The calls of the module that `target`, an attribute of `self`, holds; none where something else is done with
        it, too."""
        held = target.attr.value
        uses = self._attributes[held] - 1
        if not uses:
            return []
        self.module.load_where(word=held)
        calls = [call for call in self.calls_of(held) if names.dotted(call.node.func) == f"self.{held}"]
        return calls if len(calls) == uses else []

    @cached_property
    def _attributes(self) -> Counter[str]:
        """How often the file has `.name`, by the name."""
        return Counter(re.findall(r"\.(\w+)", self.module.text))

    @cached_property
    def _speaks_of_no_grad(self) -> bool:
        return any(name.rpartition(".")[2] in self.module.text for name in self.facts.no_grad)

    def called_untracked(self, node: cst.CSTNode) -> bool:
        """Whether `node` stands in a private function, or in a method of a layer that only predicts, that is nowhere in
        the file but called, each time where no gradient flows, or in the `forward` of a layer that is nowhere made but
        for calls of that kind."""
        function = self.module.enclosing_function(node)
        while function is not None and (outer := self.module.enclosing_function(function)) is not None:
            function = outer
        return function is not None and not self.switched_on(node) and self._only_called_untracked(function)

    def _called_untracked_alone(self, function: cst.FunctionDef) -> bool:
        name = function.name.value
        if name == "forward":
            return self._of_untracked_layer(function)
        if not (name.startswith("_") and not name.endswith("__")) and not self._serves_untracked(function):
            return False
        callers = self._everywhere(
            name,
            lambda: self.calls_of(name),
            lambda call: self.untracked(call) or self.called_untracked(call),
        )
        return 0 < callers == self._rows_with[name]

    def _serves_untracked(self, method: cst.FunctionDef) -> bool:
        """Whether `method` is one of a layer of which `forward` is decorated with what switches gradients off."""
        class_ = self.module.enclosing_class(method)
        if class_ is None or "forward" not in class_.methods or method.name.value.startswith("__"):
            return False
        forward = self.module.definition("forward", class_)
        return forward is not None and any(self._stops(item.decorator) for item in forward.decorators)

    def _of_untracked_layer(self, forward: cst.FunctionDef) -> bool:
        """Whether the class of `forward` is named nowhere but where objects make one for themselves, which they only
        call where no gradient flows."""
        class_ = self.module.enclosing_class(forward)
        if class_ is None or not self._speaks_of_no_grad:
            return False
        reads = self.module.shared(Reads).of(None, class_.name)
        if class_.node is None or class_.node.decorators:
            return False
        around = [self.module.parent(read) for read in reads if read is not class_.node.name]
        makers = [node for node in around if not self._names_its_base(node)]
        if not makers or not all(isinstance(node, cst.Call) and self.held_untracked(node) for node in makers):
            return False
        return self.module.readers is not None and not self.module.readers(class_.name)

    def _names_its_base(self, node: cst.CSTNode | None) -> bool:
        """Whether `node` is an argument of `super(Class, self)`."""
        call = self.module.parent(node) if isinstance(node, cst.Arg) else None
        return isinstance(call, cst.Call) and names.dotted(call.func) == "super"

    def calls_of(self, name: str) -> list[Call]:
        """The calls of functions and methods called `name`, as far as they are parsed."""
        calls = self.module.calls
        for index in range(self._calls_taken, len(calls)):
            last = names.dotted(calls[index].node.func).rpartition(".")[2]
            self._calls_by_name.setdefault(last, []).append(calls[index])
        self._calls_taken = len(calls)
        return self._calls_by_name.get(name, [])

    @cached_property
    def _rows_with(self) -> Counter[str]:
        """How many rows of the file contain a name, without its definition and comments."""
        rows = Counter[str]()
        for line in self.module.text.split("\n"):
            code = line.partition("#")[0]
            rows.update({match[0] for match in _NAME.finditer(code) if not code[: match.start()].endswith("def ")})
        return rows

    def runs_on_data(self, node: cst.CSTNode) -> bool:
        """Whether `node` stands in a function of the top level that nothing of the file names, and of the files around
        only methods of data sets, which call it."""
        function = self.module.enclosing_function(node)
        if function is None or self.module.readers is None or self.module.scope_of(function) is not self.module.scope:
            return False
        name = function.name.value
        if self._rows_with[name]:
            return False
        reads = self.module.readers(name)
        return bool(reads) and all(
            isinstance(call := there.parent(read), cst.Call)
            and call.func is read
            and there.shared(Gradients).in_data_set(read)
            for there, read in reads
        )

    def _untracked_name(self, function: cst.FunctionDef) -> bool:
        name = function.name.value
        words = name.strip("_").split("_")
        if name in self.facts.untracked_functions or words[0] in self.facts.untracked_functions:
            return True
        if words[-1] in ("postprocess", "preprocess"):
            return True
        parameters = {param.name.value for param in function.params.params}
        return not parameters.isdisjoint(self.facts.untracked_parameters)

    def _serves_a_loss(self, function: cst.FunctionDef) -> bool:
        """Whether a loss is worked out, where gradients flow, with what a call of `function` gives or has filled."""
        name = function.name.value
        self.module.look_for(name)
        return any(
            self._goes_into_a_loss(call) and not self._inside(function, call) and not self.untracked(call.node)
            for call in self.calls_of(name)
        )

    def _goes_into_a_loss(self, call: Call) -> bool:
        statement = self.module.parent(call.node)
        if isinstance(statement, cst.Assign):
            made = [names.dotted(target.target) for target in statement.targets]
        elif isinstance(statement, cst.Expr):
            made = [names.dotted(arg.value) for arg in call.node.args]
        else:
            return False
        return any(
            after.order > call.order
            and any(word in names.dotted(after.node.func).rpartition(".")[2] for word in ("loss", "criterion"))
            and any(arg_name and arg_name in made for arg_name in (names.dotted(arg.value) for arg in after.node.args))
            for after in self.module.calls_in(call.scope)
        )

    def _family_names(self, class_: Class) -> list[str]:
        bases = [name for relative in self.module.family(class_) for name in self.module.base_names(relative)]
        return [class_.name, *bases]

    def _untracked_class(self, class_: Class) -> bool:
        if class_ not in self._untracked_classes:
            self._untracked_classes[class_] = self._is_untracked(class_)
        return self._untracked_classes[class_]

    def _is_untracked(self, class_: Class) -> bool:
        layer = self.is_layer(class_)
        every = self._family_names(class_)
        if not set(every).isdisjoint(self.facts.untracked_bases):
            return True
        if any(part in name for name in every for part in self.facts.untracked_layers):
            return True
        if layer and self._measures(class_):
            return True
        words = _words(every)
        return (
            not layer
            and words.isdisjoint(self.facts.attention_words)
            and not words.isdisjoint(self.facts.untracked_words)
        )

    def _measures(self, class_: Class) -> bool:
        """Whether a layer has weights that get a gradient only if its maker asks for it, and is no part of a loss: the
        networks that scores are worked out with."""
        if not self._asks_for_gradients or "__init__" not in class_.methods:
            return False
        constructor = self.module.definition("__init__", class_)
        asked = _ASKED.search(self._source(constructor)) if constructor is not None else None
        parameters = (*constructor.params.params, *constructor.params.kwonly_params) if constructor is not None else ()
        return asked is not None and any(
            one.name.value == asked[1] and isinstance(one.default, cst.Name) and one.default.value == "False"
            for one in parameters
        )

    def _only_evaluated(self, test: cst.BaseExpression) -> tuple[bool, bool]:
        """Whether what runs where `test` holds, and where it does not, runs in evaluation only: `not self.training`."""
        if isinstance(test, cst.Attribute) and test.attr.value == "training":
            return (False, True)
        if self._decodes(test):
            return (True, False)
        if isinstance(test, cst.Call) and names.dotted(test.func).rpartition(".")[2] == "is_grad_enabled":
            return (False, True)
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            holds, fails = self._only_evaluated(test.expression)
            return (fails, holds)
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            wanted = test.comparisons[0].comparator
            if isinstance(wanted, cst.Name) and wanted.value == "None" and self._decodes(test.left):
                given = isinstance(test.comparisons[0].operator, (cst.IsNot, cst.NotEqual))
                return (given, not given)
            same = isinstance(test.comparisons[0].operator, (cst.Is, cst.Equal))
            if same and isinstance(wanted, cst.SimpleString) and names.dotted(test.left).endswith(("mode", "phase")):
                return (wanted.evaluated_value in self.facts.evaluated, False)
            if same and isinstance(wanted, cst.Name) and wanted.value in ("True", "False"):
                holds, fails = self._only_evaluated(test.left)
                return (holds, fails) if wanted.value == "True" else (fails, holds)
        if isinstance(test, cst.BooleanOperation):
            left, right = self._only_evaluated(test.left), self._only_evaluated(test.right)
            both = isinstance(test.operator, cst.And)
            return ((left[0] or right[0], left[1] and right[1]), (left[0] and right[0], left[1] or right[1]))[not both]
        return (False, False)

    def _leaves_in_training(self, statement: cst.CSTNode) -> bool:
        """Whether `statement` is an `if self.training:` that leaves the function."""
        if not (isinstance(statement, cst.If) and self._only_evaluated(statement.test)[1]):
            return False
        last = statement.body.body[-1]
        small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
        return isinstance(small, (cst.Return, cst.Raise))

    def _decodes(self, test: cst.BaseExpression) -> bool:
        """Whether a value is there, or true, only where a model decodes token by token."""
        node = test.func if isinstance(test, cst.Call) else test
        return names.dotted(node).rpartition(".")[2] in self.facts.decoding

    def _stops(self, node: cst.BaseExpression) -> bool:
        """Whether `node` is `torch.no_grad()` or one of its kin."""
        return self._switches(node) is False

    def _switches(self, node: cst.BaseExpression) -> bool | None:
        """Whether `node` switches gradients on, as `torch.enable_grad()` does, or off; None where it does neither, or
        what it is given is out of sight."""
        function = node.func if isinstance(node, cst.Call) else node
        resolved = self.module.resolve(function)
        given = node.args[0].value if isinstance(node, cst.Call) and node.args else None
        if any(name in self.facts.no_grad or name.endswith("_inference_mode") for name in resolved):
            return given is not None and self.module.value(given).constant is False
        if not self.facts.enable_grad.isdisjoint(resolved):
            return True
        if given is not None and any(name.endswith("set_grad_enabled") for name in resolved):
            switched = self.module.value(given).constant
            return switched if isinstance(switched, bool) else None
        return None


def _words(names_: Iterable[str]) -> set[str]:
    return {word for name in names_ for word in _CAMEL.findall(name.rpartition(".")[2])}
