"""TDL601: calls of `hash()` -> those of text that feed a seed, a bucket, a name or an order."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.order.elements import collection_kind, scalar_kind
from torchdet_lint.checks.order.objects import parameter_annotation
from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.dataflow.syntax import bare, last_word, parameter_behind
from torchdet_lint.finding import Violation
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.module.module import Module


_FILE_TEXT = lazy(r"/|\.\w{1,5}$")
_TEXT = lazy(r"(?:name|text|key|path|string|word|label|url)s?$|^(?:str|repr)$")
_BUCKETS = (cst.Modulo, cst.BitAnd, cst.FloorDivide, cst.RightShift)
_SUMS = (cst.Add, cst.Subtract)
_RECKONED: dict[type[cst.BaseBinaryOp], Callable[[int, int], int]] = {
    cst.Add: operator.add,
    cst.LeftShift: operator.lshift,
    cst.Power: operator.pow,
    cst.Subtract: operator.sub,
}
_BITS = 128
_RECKONING = (cst.Add, cst.Divide, cst.FloorDivide, cst.Power, cst.Subtract)
_INDEXED = frozenset({"torch.utils.data.Dataset"})
_USES = {
    "seed": "a seed is made from it",
    "bucket": "a number that is computed from it differs too",
    "file": "a file is named after it",
    "order": "an order is made from it",
}


def hash_seed(module: Module, rule: Rule) -> Iterator[Violation]:
    """`hash()` of what may hold text, feeding a seed, a bucket, a name or an order."""
    uses = _HashUses(module, rule)
    for call in list(module.calls_to("builtins.hash")):
        if len(call.node.args) != 1 or _is_number(module, call.node.args[0].value, 4):
            continue
        function = module.enclosing_function(call.node)
        if function is not None and function.name.value == "__hash__":
            continue
        use = uses.use(call.node, 6)
        if use:
            variant = "" if _holds_text(module, call.node.args[0].value) else "unsure"
            yield Violation(call.node, {"use": _USES[use], "call": module.code(call.node)}, variant)
    patterns = [re.compile(text) for text in rule.patterns]
    if any(pattern.search(module.text) for pattern in patterns):
        module.load_where(lambda text: any(pattern.search(text) for pattern in patterns))
        for call in list(module.calls_to("builtins.id")):
            if uses.use(call.node, 6) == "order":
                yield Violation(call.node, {"use": _USES["order"], "call": module.code(call.node)}, "address")
    for call in list(module.calls):
        key = call.keyword_node("key")
        if key is None or not isinstance(key.value, cst.Name) or last_word(call.node.func) not in uses.words["rankers"]:
            continue
        names = module.resolve(key.value)
        if "builtins.id" in names:
            yield Violation(key.value, {"use": _USES["order"], "call": "id"}, "address")
        elif "builtins.hash" in names and not _ranks_numbers(module, call.node):
            yield Violation(key.value, {"use": _USES["order"]})


def _ranks_numbers(module: Module, call: cst.Call) -> bool:
    """Whether what `call` ranks is evidently numbers: `max(sizes, key=hash)`, `sizes.sort(key=hash)`."""
    given = [arg.value for arg in call.args if arg.keyword is None]
    ranked = given[0] if given else call.func.value if isinstance(call.func, cst.Attribute) else None
    return ranked is not None and collection_kind(module, ranked, 4) == "number"


def _has_tuples(node: cst.BaseExpression) -> bool:
    """Whether `node` is a tuple, or gives some: of what stands in them the first decides their order."""
    return isinstance(node.elt if isinstance(node, (cst.GeneratorExp, cst.ListComp)) else node, cst.Tuple)


def _is_wide_mask(module: Module, node: cst.BinaryOperation) -> bool:
    """Whether `hash(x) & mask` only makes the number unsigned, as far as one can see: no bucket has 32 bits."""
    if not isinstance(node.operator, cst.BitAnd):
        return False
    mask = _number(module, node.right, 4)
    return mask is None or mask >= 1 << 31


def _number(module: Module, node: cst.BaseExpression, depth: int) -> int | None:
    """The whole number that `node` is, also reckoned, or as a parameter unless a call gives another: `2**20 - 1`."""
    constant = module.value(node).constant
    if isinstance(constant, int) or depth <= 0:
        return constant if isinstance(constant, int) else None
    if isinstance(node, cst.BinaryOperation):
        reckon = _RECKONED.get(type(node.operator))
        left, right = (_number(module, side, depth - 1) for side in (node.left, node.right))
        small = left is not None and right is not None and 0 <= right <= _BITS and abs(left) <= _BITS
        if reckon is None or left is None or right is None or not (small or isinstance(node.operator, _SUMS)):
            return None
        return reckon(left, right)
    value = module.followed(node, module.scope_of(node), module.order_of(node))
    default = value.node if value is not None and value.node is not node else None
    if default is None and (parameter := parameter_behind(node, module.scope_of(node))) is not None:
        default = parameter.default
    return _number(module, default, depth - 1) if default is not None else None


def _is_number(module: Module, node: cst.BaseExpression, depth: int) -> bool:
    """Whether the value is evidently a number or made of numbers: their hashes are not salted."""
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_is_number(module, element.value, depth) for element in node.elements)
    if isinstance(node, cst.Call) and last_word(node.func) in ("tuple", "frozenset", "list", "sorted") and node.args:
        return _is_number(module, node.args[0].value, depth)
    if isinstance(node, (cst.GeneratorExp, cst.ListComp)):
        return _is_number(module, node.elt, depth)
    if isinstance(node, cst.BinaryOperation):
        sides = (node.left, node.right)
        # Only a number is added to a number.
        enough = any if isinstance(node.operator, _RECKONING) else all
        return enough(_is_number(module, side, depth) for side in sides)
    if isinstance(node, cst.IfExp):
        return _is_number(module, node.body, depth) and _is_number(module, node.orelse, depth)
    if isinstance(node, cst.Name) and node.value in ("None", "True", "False"):
        return True
    if isinstance(node, cst.Subscript):
        # Of a graph of networkx these give what a node or an edge has.
        view = isinstance(node.value, cst.Attribute) and node.value.attr.value in ("edges", "nodes")
        return not view and _is_number(module, node.value, depth)
    if isinstance(node, cst.Attribute) and node.attr.value in ("shape", "device_index"):
        return True
    if isinstance(node, cst.Name) and (_counts(module, node) or _is_index(module, node)):
        return True
    if isinstance(node, cst.Name) and (annotation := parameter_annotation(module, node)):
        return _is_numeric(annotation)
    if isinstance(node, cst.Call) and (annotation := _returned_annotation(module, node)):
        return _is_numeric(annotation)
    if scalar_kind(module, node) == "number" or collection_kind(module, node, 0) == "number":
        return True
    value = module.followed(node, module.scope_of(node), module.order_of(node)) if depth > 0 else None
    return value is not None and value.node is not node and _is_number(module, value.node, depth - 1)


def _holds_text(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the value is evidently text or made of text, as far as what it is made of or is called says."""
    if isinstance(node, cst.Tuple):
        return any(_holds_text(module, element.value) for element in node.elements)
    return scalar_kind(module, node) == "text" or _TEXT.search(last_word(node)) is not None


def _counts(module: Module, node: cst.Name) -> bool:
    """Whether `node` is what a loop over `range` or `enumerate` counts with."""
    home = module.scope_of(node).home(node.value)
    bindings = home.bindings[node.value] if home is not None else []
    return bool(bindings) and all(
        binding.kind == "loop"
        and isinstance(binding.value, cst.Call)
        and (last_word(binding.value.func), binding.path) in (("range", ()), ("enumerate", (0,)))
        for binding in bindings
    )


def _is_index(module: Module, node: cst.Name) -> bool:
    """Whether `node` is what a data set of torch is asked for, by a sampler that numbers the samples."""
    home = module.scope_of(node).home(node.value)
    function = home.node if home is not None else None
    if home is None or not isinstance(function, cst.FunctionDef) or function.name.value != "__getitem__":
        return False
    class_ = module.enclosing_class(function)
    return (
        class_ is not None
        and [binding.kind for binding in home.bindings[node.value]] == ["parameter"]
        and not _INDEXED.isdisjoint(module.ancestry(f"@.{class_.name}"))
    )


def _is_numeric(annotation: str) -> bool:
    """Whether an annotation, `None` aside, says number or numbers."""
    annotation = annotation.removesuffix("|None").removeprefix("typing.")
    if annotation.startswith("Optional["):
        annotation = annotation[len("Optional[") : -1]
    return _NUMERIC.fullmatch(annotation) is not None


_NUMERIC = lazy(r"(?:(?:[lL]ist|[tT]uple|Sequence)\[)?(?:int|float|bool)(?:,\.\.\.|,int)*\]?")


def _returned_annotation(module: Module, node: cst.Call) -> str:
    """What the function or method of the file that `node` calls says that it returns, or nothing."""
    word = last_word(node.func)
    own = isinstance(node.func, cst.Attribute) and bare(node.func.value) in ("self", "cls")
    if not own and not isinstance(node.func, cst.Name):
        return ""
    found = re.search(
        rf"^[ \t]*(?:async )?def {re.escape(word)}[ \t]*\((?:[^()]|\([^()]*\))*\)\s*->\s*([^:\n]+):",
        module.text,
        re.MULTILINE,
    )
    return "".join(found[1].split()) if found is not None else ""


class _HashUses:
    """What the value of a hash decides."""

    def __init__(self, module: Module, rule: Rule) -> None:
        self.module = module
        self.words = {role: frozenset(words) for role, words in rule.words.items()}

    def use(self, node: cst.BaseExpression, depth: int) -> str:
        """What the value of `node` decides: a key of `_USES`, or nothing."""
        parent = self.module.parent(node)
        if parent is None or depth <= 0:
            return ""
        if isinstance(parent, cst.BinaryOperation):
            if isinstance(parent.operator, _BUCKETS) and node is parent.left:
                return self._seeded(parent, depth) or ("" if _is_wide_mask(self.module, parent) else "bucket")
            if isinstance(parent.operator, cst.Divide) and isinstance(node, cst.FormattedString):
                return "file"
            return self.use(parent, depth - 1)
        if isinstance(parent, cst.Arg):
            return self._argument(node, parent, depth)
        if isinstance(parent, cst.Element):
            whole = self.module.parent(parent)
            return self.use(whole, depth - 1) if isinstance(whole, (cst.List, cst.Tuple)) else ""
        if isinstance(parent, (cst.UnaryOperation, cst.IfExp, cst.BooleanOperation, cst.GeneratorExp, cst.ListComp)):
            return self.use(parent, depth - 1)
        if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
            operators = parent.comparisons if isinstance(parent, cst.Comparison) else (parent,)
            return "bucket" if isinstance(operators[0].operator, (cst.LessThan, cst.GreaterThan)) else ""
        if isinstance(parent, cst.FormattedStringExpression):
            return self._text(parent, depth)
        if isinstance(parent, (cst.AssignTarget, cst.Assign, cst.AnnAssign)):
            return self._assigned(parent, depth)
        if isinstance(parent, cst.Lambda):
            arg = self.module.parent(parent)
            return (
                "order" if isinstance(arg, cst.Arg) and arg.keyword is not None and arg.keyword.value == "key" else ""
            )
        if isinstance(parent, cst.Return):
            function = self.module.enclosing_function(parent)
            return "seed" if function is not None and "seed" in function.name.value else ""
        return ""

    def _seeded(self, node: cst.BaseExpression, depth: int) -> str:
        found = self.use(node, depth - 1)
        return found if found == "seed" else ""

    def _argument(self, node: cst.BaseExpression, arg: cst.Arg, depth: int) -> str:
        call = self.module.parent(arg)
        if not isinstance(call, cst.Call):
            return ""
        if arg.keyword is not None and ("seed" in arg.keyword.value or arg.keyword.value == "random_state"):
            return "seed"
        word = last_word(call.func)
        if "seed" in word or word in self.words["seeders"]:
            return "seed"
        if word in self.words["rankers"] and _has_tuples(node):
            return "order"
        names = self.module.resolve(call.func)
        if not self.words["unchanged"].isdisjoint(names):
            return self.use(call, depth - 1)
        if not self.words["files"].isdisjoint(names) and isinstance(
            node, (cst.FormattedString, cst.BinaryOperation, cst.Call)
        ):
            return "file"
        return ""

    def _text(self, part: cst.FormattedStringExpression, depth: int) -> str:
        text = self.module.parent(part)
        assert isinstance(text, cst.FormattedString)
        if any(isinstance(one, cst.FormattedStringText) and _FILE_TEXT.search(one.value) for one in text.parts):
            return "file"
        return self.use(text, depth - 1)

    def _assigned(self, node: cst.CSTNode, depth: int) -> str:
        targets = (
            [one.target for one in node.targets] if isinstance(node, cst.Assign) else [node.target]  # type: ignore[attr-defined]
        )
        for target in targets:
            word = last_word(target)
            if "seed" in word:
                return "seed"
            if not isinstance(target, cst.Name):
                continue
            for load in self.module.shared(DefUse).loads_after(target, node):
                found = self.use(load, depth - 1)
                if found:
                    return found
        return ""
