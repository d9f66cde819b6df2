"""Where a file makes a fresh value -> the option, the field or the entry that has it unless another one is given."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.module.names import dotted

if TYPE_CHECKING:
    from torchdet_lint.module.module import Call, Module

_OPTIONS = frozenset({"add_argument", "add_option", "option"})
_DEFAULTS = frozenset({"default", "default_factory", "factory"})


class FreshDefaults:
    """The calls of one file that are different in every run, draws from global generators among them, by the name under
    which an object holds what they give: `add_argument("--seed", default=int(time.time()))`, `{"seed": os.getpid()}`,
    `seed: int = time.time_ns()`."""

    def __init__(self, module: Module) -> None:
        self.module = module
        facts = module.library.facts
        drawn = (name for draw in facts.draws if draw.at == "call" for name in draw.names)
        self._entropy = facts.entropy
        self._names = (*facts.entropy, *drawn)
        self._fresh = _calls_of(self._names)
        self._any = self._fresh.search(module.text) is not None
        self._known: dict[str, list[Call]] = {}

    def of(self, node: cst.CSTNode) -> list[Call]:
        """What `options.seed`, `options["seed"]` or `options.get("seed")` is by default."""
        name = ""
        if isinstance(node, cst.Attribute):
            name = node.attr.value
        elif isinstance(node, cst.Subscript) and isinstance(node.slice[0].slice, cst.Index):
            name = _text(node.slice[0].slice.value)
        elif isinstance(node, cst.Call) and node.args and dotted(node.func).endswith(".get"):
            name = _text(node.args[0].value)
        if not name or not self._any:
            return []
        if name not in self._known:
            found = self._made(name)
            self._known[name] = found if found and not self._is_given(name, found) else []
        return self._known[name]

    def _made(self, name: str) -> list[Call]:
        """The calls of which something is made that goes by `name`."""
        written = (name, name.replace("_", "-"))
        self.module.load_where(
            lambda text: any(one in text for one in written) and self._fresh.search(text) is not None
        )
        calls = [call for call in self.module.calls_to(*self._names) if self._held_as(call.node) == name]
        # Numbers are drawn for many an object and entry that has a seed.
        return [call for call in calls if call.own[0] in self._entropy or self._is_default(call.node)]

    def _is_default(self, node: cst.CSTNode) -> bool:
        """Whether `node` is the default of an option or a field, or bears the name that an option's default has."""
        holder = self._holder(node)
        if isinstance(holder, cst.Arg):
            return holder.keyword is not None and holder.keyword.value in _DEFAULTS
        return isinstance(holder, (cst.Assign, cst.AnnAssign))

    def _is_given(self, name: str, found: list[Call]) -> bool:
        """Whether a class of the file is made with another value for its field `name`."""
        classes = {f"@.{class_.name}" for class_ in self.module.classes.values()}
        return any(
            arg.keyword is not None
            and arg.keyword.value == name
            and not any(self.module.contains(arg, one.node) for one in found)
            for call in self.module.calls
            if not classes.isdisjoint(call.own)
            for arg in call.node.args
        )

    def _held_as(self, node: cst.CSTNode) -> str:
        """The name of what is made of `node`: of the option that it is the default of, of a field, of an entry."""
        holder = self._holder(node)
        if isinstance(holder, cst.Arg):
            return self._keyword(holder)
        if isinstance(holder, cst.DictElement):
            return _text(holder.key)
        return self._field(holder) if isinstance(holder, (cst.Assign, cst.AnnAssign)) else ""

    def _holder(self, node: cst.CSTNode) -> cst.CSTNode:
        """What holds the expression around `node`: a named argument, an entry, a statement."""
        return next(
            around
            for around in self.module.ancestors(node)
            if not isinstance(around, cst.BaseExpression) and getattr(around, "keyword", True) is not None
        )

    def _keyword(self, arg: cst.Arg) -> str:
        """What the argument `arg` of a call becomes."""
        call = self.module.parent(arg)
        assert isinstance(call, cst.Call) and arg.keyword is not None
        keyword, function = arg.keyword.value, dotted(call.func).rpartition(".")[2]
        if keyword in _DEFAULTS:
            if function not in _OPTIONS:
                return self._held_as(call)
            given = [one.value for one in call.args if one.keyword is not None and one.keyword.value == "dest"]
            texts = [_text(value) for value in given or [one.value for one in call.args if one.keyword is None]]
            return max(texts, key=len, default="").lstrip("-").replace("-", "_")
        return keyword

    def _field(self, statement: cst.Assign | cst.AnnAssign) -> str:
        """The field that `statement` declares in the body of a class, or the option whose default it names."""
        target = statement.target if isinstance(statement, cst.AnnAssign) else statement.targets[0].target
        if not isinstance(target, cst.Name):
            return ""
        in_class = self.module.enclosing_class(statement) is not None
        if in_class and self.module.enclosing_function(statement) is None:
            return target.value
        home = self.module.scope_of(statement).home(target.value)
        if home is None or len(home.bindings[target.value]) != 1:
            return ""
        for load in self.module.shared(Reads).of(None, target.value):
            arg = self.module.parent(load)
            if not isinstance(arg, cst.Arg) or arg.keyword is None or arg.keyword.value != "default":
                continue
            if self.module.scope_of(load).home(target.value) is home:
                return self._keyword(arg)
        return ""


@functools.lru_cache(maxsize=8)
def _calls_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """What finds a call of one of the functions `names` in a text."""
    return re.compile(rf"\b(?:{'|'.join(sorted({name.rpartition('.')[2] for name in names}))})\s*\(")


def _text(node: cst.BaseExpression) -> str:
    return str(node.evaluated_value) if isinstance(node, cst.SimpleString) else ""
