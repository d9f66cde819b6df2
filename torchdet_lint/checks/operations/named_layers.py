"""A class that a text picks from a module, `getattr(nn, kind)` or `nn.__dict__[kind]` -> what it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.call_edges import values_given
from torchdet_lint.dataflow.syntax import option_added
from torchdet_lint.inference.gradients import Gradients
from torchdet_lint.inference.narrowing import Comparisons
from torchdet_lint.module import names
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.module.module import Call, Module
    from torchdet_lint.module.names import Scope

_OFFERS = lazy(r"\bchoices\s*=\s*\[[^\]]*|\bdefault\s*=\s*[\"']\w+[\"']")
_TEXTS = lazy(r"[\"'](\w+)[\"']")
_NN = r"(?:torch\.)?nn\b"
_WAYS = ("getattr", "__dict__", "vars")
_PICKS = lazy(rf"getattr[ \t]*\(\s*{_NN}\s*,|(?<![\w.]){_NN}\.__dict__\s*\[|\bvars[ \t]*\(\s*{_NN}\s*\)\s*\[")
# Arguments that only these classes of a module take: torch 2.13.0, torch/nn/modules/rnn.py.
_RECURRENT = ("torch.nn.LSTM", "torch.nn.RNN", "torch.nn.GRU")
_TOLD = {frozenset(("bidirectional",)): _RECURRENT, frozenset(("num_layers", "batch_first")): _RECURRENT}
_CHANGES = frozenset(("upper", "title", "capitalize"))


class NamedLayers:
    """The layers of torch that one file picks by a text."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.comparisons = module.shared(Comparisons)
        if any(word in module.text for word in _WAYS) and _PICKS.search(module.text):
            module.load_where(lambda text: _PICKS.search(text) is not None)

    def picked(
        self, node: cst.BaseExpression, scope: Scope, order: int | None
    ) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
        """The module, and the text, by which `node` picks something; None where it does not."""
        if isinstance(node, cst.Call) and len(node.args) > 1:
            asks = "builtins.getattr" in self.module.resolve(node.func, scope, order)
            return (node.args[0].value, node.args[1].value) if asks else None
        index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
        if not isinstance(node, cst.Subscript) or not isinstance(index, cst.Index):
            return None
        table = node.value
        if isinstance(table, cst.Attribute) and table.attr.value == "__dict__":
            return table.value, index.value
        whole = isinstance(table, cst.Call) and len(table.args) == 1 and names.dotted(table.func) == "vars"
        return (table.args[0].value, index.value) if isinstance(table, cst.Call) and whole else None

    def may_be(
        self, picked: tuple[cst.BaseExpression, cst.BaseExpression], call: Call, scope: Scope, order: int | None
    ) -> Iterator[str]:
        """The classes that `picked`, which `call` calls, may be: by what is known of the text, and by what only some
        take or give: arguments, or a state."""
        owner, kind = picked
        method = kind.func if isinstance(kind, cst.Call) and isinstance(kind.func, cst.Attribute) else None
        changes = method.attr.value if method is not None and not kind.args else ""  # type: ignore[attr-defined]
        plain = method.value if method is not None and changes else kind
        texts = self._texts(plain, scope, order)
        if changes in _CHANGES:
            texts = [getattr(one, changes)() for one in texts]
        elif changes:
            texts = []
        given = {arg.keyword.value for arg in call.node.args if arg.keyword is not None}
        told = [name for keywords, classes in _TOLD.items() if given >= keywords and not texts for name in classes]
        if not texts and not told and self._hands_state_on(call.node):
            told += _RECURRENT
        for module in self.module.resolve(owner, scope, order):
            yield from (self.module.library.canonical(f"{module}.{one}") for one in texts)
            yield from (name for name in told if name.rpartition(".")[0] == module)

    def _texts(self, kind: cst.BaseExpression, scope: Scope, order: int | None) -> list[str]:
        """The texts that `kind` may be: a constant, one of another file, the default of a parameter or what a caller
        gives it, what a test on the way compares it with, and what an option of the command line offers."""
        known = self.module.constant(kind, scope, order)
        if known is not None:
            return [known[0]] if isinstance(known[0], str) else []
        home = scope.home(kind.value) if isinstance(kind, cst.Name) else None
        found: list[str] = []
        for binding in home.bindings[kind.value] if home is not None and isinstance(kind, cst.Name) else ():
            if isinstance(binding.node, cst.Param):
                found += self._given(binding.node)
        return [*found, *(self.comparisons.texts(kind, scope) or self._offered(kind))]

    def _given(self, parameter: cst.Param) -> list[str]:
        """The texts that a parameter has by default, or that callers give it."""
        if isinstance(parameter.default, cst.SimpleString):
            return [str(parameter.default.raw_value)]
        function = self.module.enclosing_function(parameter)
        if function is None or isinstance(self.module.parent(self.module.parent(parameter) or parameter), cst.Lambda):
            return []
        given = values_given(self.module, parameter, function)
        known = (there.constant(value.node, value.scope, value.order) for there, value in given)
        return [one[0] for one in known if one is not None and isinstance(one[0], str)]

    def _hands_state_on(self, made: cst.Call) -> bool:
        """Whether the layer that `made` makes gives back the state that it takes: `y, state = self.rnn(x, state)`."""
        statement = self.module.parent(made)
        target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
        if not isinstance(target, cst.Attribute):
            return False
        self.module.load_where(word=target.attr.value)
        calls = self.module.shared(Gradients).calls_of(target.attr.value)
        return any(_gives_back(call.node, self.module.parent(call.node)) for call in calls)

    def _offered(self, kind: cst.BaseExpression) -> list[str]:
        """What the option `args.kind` may be, by the choices and the default with which the file adds it."""
        if not isinstance(kind, cst.Attribute):
            return []
        option = option_added(self.module.text, kind.attr.value)
        return [text for told in _OFFERS.findall(option) for text in _TEXTS.findall(told)]


def _gives_back(call: cst.Call, statement: cst.CSTNode | None) -> bool:
    """Whether the second argument of `call` is the second of the two values that `statement` takes from it."""
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    if not isinstance(target, cst.Tuple) or len(target.elements) != 2 or len(call.args) < 2:
        return False
    return target.elements[1].value.deep_equals(call.args[1].value)
