"""An expression -> what the elements of the collection that it gives are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.checks.order.entries import Entries
from torchdet_lint.checks.order.fillings import MANY, ONE, Fillings, relatives
from torchdet_lint.checks.order.objects import object_kind
from torchdet_lint.dataflow.call_edges import CallEdges, Given, Sites, calls_here, given_for, taking
from torchdet_lint.dataflow.reaching_definitions import reaching
from torchdet_lint.dataflow.syntax import bare, bound_value, last_word, opposite
from torchdet_lint.inference.elements import element_kinds
from torchdet_lint.inference.elements.element_kinds import CIRCLE, EACH, agreed, of_tuple
from torchdet_lint.inference.elements.questions import Questions
from torchdet_lint.inference.infer import Inference
from torchdet_lint.inference.narrowing import Comparisons
from torchdet_lint.module.names import dotted, live
from torchdet_lint.module.tree import returned
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.module.module import Call, Module
    from torchdet_lint.module.names import Binding

_DEEP = 4
_TEXT_TYPE = lazy(r"\b(?:str_?|unicode_?|[\"'][<>|]?[SU]\d*[\"'])(?!\w)")
_NUMBER_TYPE = lazy(r"\b(?:u?int|float|double|long|bool)(?:\d+|_|p)?(?!\w)")
# The name of what maps one thing to another: `id_to_name`, `id2name`.
_MAPPING = lazy(r"(\w*?[^\W\d_])(?:_to_|_2_|2)\w+")
# What stands between the words of a column's name: `user id`, `userId`.
_WORDS = lazy(r"\W+|(?<=[a-z])(?=[A-Z])")
# Operators that a list and a number have no use for.
_RECKONING = (cst.Add, cst.Divide, cst.FloorDivide, cst.Power, cst.Subtract)
# Variables that are made of each other are looked through so far.
_CHAIN = 12


def set_kind(module: Module, node: cst.BaseExpression) -> str:
    """What the set holds: `number`, `text`, `unsortable`, `identity` (hashed by address), `label`,
    `unknown`, or `nothing`, which stands for one element too."""
    if _holds_one(node):
        return "nothing"
    statement = module.parent(node)
    if not _begins_empty(node):
        kind = collection_kind(module, node.args[0].value if isinstance(node, cst.Call) else node, _DEEP)
        named = [one.target for one in statement.targets] if isinstance(statement, cst.Assign) else []
        places = kind == "unknown" and any(_means(module, "places", one) for one in named)
        return "number" if places else kind
    if isinstance(statement, cst.Element):
        display = module.parent(statement)
        above = module.parent(display) if display is not None else None
        target = opposite(above, statement) if isinstance(above, cst.Assign) else None
        return _grown_kind(module, [target]) if target is not None else "nothing"
    targets = [one.target for one in statement.targets] if isinstance(statement, cst.Assign) else []
    if isinstance(statement, cst.AnnAssign):
        told = element_kinds.elements_of(module.code(statement.annotation.annotation))
        if told != "unknown":
            return told
        targets = [statement.target]
    return _grown_kind(module, targets)


def kind_by_callers(callers: Sequence[Module], module: Module, node: cst.BaseExpression) -> str:
    """What the set holds that `module` makes by `node` for an attribute; where nothing there tells, by what the files
    `callers` pass to the methods that fill it."""
    kind, statement = set_kind(module, node), module.parent(node)
    if kind not in ("unknown", "number") or not _begins_empty(node) or not isinstance(statement, cst.Assign):
        return kind
    target = statement.targets[0].target
    if not {*_put_in(module, target), *_taken_in(module, target)} <= {"unknown"}:
        return kind
    kinds = set[str]()
    for call in module.shared(Fillings).of(target, ONE):
        given = call.node.args[-1].value if call.node.args else None
        method = taking(module, given) if isinstance(given, cst.Name) else None
        if not isinstance(given, cst.Name) or method is None:
            return kind
        sites = [site for caller in callers for site in caller.shared(Sites).of(method)]
        kinds.update(map(_of_row, shown) if (shown := given_for(given, method, sites)) else ("unknown",))
    return _together(kinds) if kinds and "unknown" not in kinds else kind


def _holds_one(node: cst.BaseExpression) -> bool:
    """Whether the set that `node` makes holds one element: `{x}`, `set([x])`."""
    if isinstance(node, cst.Call) and len(node.args) == 1:
        node = node.args[0].value
    if not isinstance(node, (cst.Set, cst.List, cst.Tuple)) or len(node.elements) != 1:
        return False
    return isinstance(node.elements[0], cst.Element)


def _begins_empty(node: cst.BaseExpression) -> bool:
    """Whether `node`, which makes a set, puts nothing into it: `set()`, `set([])`."""
    if not isinstance(node, cst.Call):
        return False
    given = node.args[0].value if len(node.args) == 1 and not node.args[0].star else None
    return not node.args or (isinstance(given, (cst.List, cst.Tuple)) and not given.elements)


def _grown_kind(module: Module, targets: Sequence[cst.BaseExpression]) -> str:
    """What is put into a set that begins empty and goes by the names `targets`."""
    if not targets:
        return "nothing"
    kinds = {kind for target in targets for kind in (*_put_in(module, target), *_taken_in(module, target))}
    if kinds <= {"unknown"} and any(_means(module, "numbers", target) for target in targets):
        return "number"
    if not kinds and all(isinstance(target, cst.Name) and _stays_empty(module, target) for target in targets):
        return "nothing"
    if kinds == {"number", "unknown"}:
        # What stands beside numbers is one.
        return "number"
    return _together(kinds)


def _together(kinds: set[str]) -> str:
    """What the elements of one collection are, of which some are of each of `kinds`: text and numbers cannot be
    sorted."""
    mixed = "unsortable" in kinds and "identity" not in kinds
    return "unsortable" if mixed or {"text", "number"} <= kinds else agreed(kinds)


def _element(module: Module, node: cst.BaseExpression) -> str:
    """What `node` is as one element of several: None cannot be sorted with others."""
    return "unsortable" if isinstance(node, cst.Name) and node.value == "None" else scalar_kind(module, node)


def _put_in(module: Module, target: cst.BaseExpression) -> set[str]:
    """The kinds of what methods put into the collection `target`."""
    fillings = module.shared(Fillings)
    kinds = {_element(module, call.node.args[-1].value) for call in fillings.of(target, ONE) if call.node.args}
    return kinds | {
        collection_kind(module, arg.value, _DEEP) for call in fillings.of(target, MANY) for arg in call.node.args
    }


def _taken_in(module: Module, target: cst.BaseExpression) -> set[str]:
    """The kinds of what `target |= x` adds to a set."""
    if isinstance(target, cst.Attribute):
        added = _added_to_attribute(module, target)
    else:
        home = module.scope_of(target).home(target.value) if isinstance(target, cst.Name) else None
        added = [binding.node for binding in (home.bindings[last_word(target)] if home is not None else ())]
    return {
        collection_kind(module, one.value, _DEEP)
        for one in added
        if isinstance(one, cst.AugAssign) and isinstance(one.operator, cst.BitOrAssign)
    }


def _added_to_attribute(module: Module, target: cst.Attribute) -> list[cst.CSTNode | None]:
    """The statements that change what is written as `target` is, `self.names |= found` among them."""
    word, text = target.attr.value, bare(target)
    if f".{word} |=" not in module.text:
        return []
    module.load_where(lambda unit: f".{word} |=" in unit, word)
    roots = [unit.root for unit in module.holding(word) if unit.root is not None]
    changed = [one for root in roots for one in module.attributes_under(root, word) if bare(one) == text]
    own = relatives(module, module.enclosing_class(target))
    return [module.parent(one) for one in changed if module.enclosing_class(one) in own]


def _stays_empty(module: Module, name: cst.Name) -> bool:
    """Whether nothing is put into a function's local set: no method is called on it, and no call is given it."""
    function = module.enclosing_function(name)
    if function is None:
        return False
    word = name.value
    grown = rf"\b{word}(?:\.\w|\s*[|^]=)|\belse\s+{word}\b|\({word}\s+if\b|[(,=*]\s*{word}\s*[,)]|\bnonlocal\b"
    return re.search(grown, module.code(function)) is None


def collection_kind(module: Module, node: cst.BaseExpression, depth: int, *, by_name: bool = True) -> str:
    """What the elements of `node` are; where nothing else tells, what its name says, unless `by_name` is false."""
    if isinstance(node, (cst.List, cst.Tuple, cst.Set)) and node.elements:
        return _together({_element(module, element.value) for element in node.elements})
    if isinstance(node, (cst.GeneratorExp, cst.ListComp, cst.SetComp)):
        return scalar_kind(module, node.elt)
    if isinstance(node, (cst.BinaryOperation, cst.Comparison)):
        return _kind_of_operation(module, node, depth, by_name=by_name)
    if isinstance(node, cst.Subscript):
        if isinstance(node.value, cst.Call) and last_word(node.value.func) in _calls(module, "places"):
            return _kind_of_call(module, node.value, depth, by_name=by_name)
        index = node.slice[0].slice
        key = (
            index.value.evaluated_value
            if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)
            else ""
        )
        numbers = module.library.facts.orders.endings["numbers"]
        counted = by_name and isinstance(key, str) and numbers.search(_WORDS.sub("_", key).lower()) is not None
        if counted or (isinstance(index, cst.Slice) and len(node.slice) > 1):
            return "text" if _is_text_array(module, node.value) else "number"
        if isinstance(index, cst.Slice):
            return collection_kind(module, node.value, depth - 1, by_name=by_name) if depth > 0 else "unknown"
        if key and depth > 0 and (columns := module.shared(Entries).at(node)):
            return _together({collection_kind(module, one, depth - 1, by_name=by_name) for one in columns})
        held = module.shared(_Variables).entry(node.value)
        if held == "unknown" and depth > 0 and isinstance(index, cst.Index) and _means(module, "numbers", index.value):
            held = collection_kind(module, node.value, depth - 1, by_name=by_name)
        return held
    if isinstance(node, cst.Call):
        return _kind_of_call(module, node, depth, by_name=by_name)
    if isinstance(node, (cst.Name, cst.Attribute)):
        told = element_kinds.elements(module, node)
        if told == "unknown" and depth > 0:
            told = _bound_kind(module, node, depth - 1, by_name=by_name)
        if told != "unknown" or not by_name:
            return told
        kind = "number" if _means(module, "numbers", node) else "label" if _means(module, "labels", node) else "unknown"
        return "unknown" if kind != "unknown" and _holds_slices(module, node) else kind
    return "unknown"


def _kind_of_operation(module: Module, node: cst.BinaryOperation | cst.Comparison, depth: int, *, by_name: bool) -> str:
    if isinstance(node, cst.Comparison):
        return _kind_of_mask(module, node)
    left = collection_kind(module, node.left, depth, by_name=by_name)
    if left in ("unknown", "label", CIRCLE) and _is_arithmetic(module, node):
        return "number"
    if left not in ("unknown", CIRCLE) or (left == CIRCLE and isinstance(node.operator, (cst.BitAnd, cst.Subtract))):
        return left
    right = collection_kind(module, node.right, depth, by_name=by_name)
    return agreed((left, right)) if CIRCLE in (left, right) else right if right == "number" else left


def _is_arithmetic(module: Module, node: cst.BinaryOperation) -> bool:
    """Whether `node` reckons with an array and one number, `x - x.min()`, and is no difference of sets."""
    number = node.right
    if isinstance(number, cst.Call):
        # Those of Python give any element: `names - min(groups, key=len)`.
        given = isinstance(number.func, cst.Attribute) and last_word(number.func) in _calls(module, "number")
        return given and isinstance(node.operator, (cst.Divide, cst.FloorDivide, cst.Subtract))
    return isinstance(number, (cst.Integer, cst.Float)) and isinstance(node.operator, _RECKONING)


def _is_text_array(module: Module, node: cst.BaseExpression) -> bool:
    """Whether `node` is an array that is made with a type of text: `np.genfromtxt(path, dtype=np.dtype(str))`."""
    value = module.followed(node, module.scope_of(node), module.order_of(node)) if isinstance(node, cst.Name) else None
    made = module.call_at(value.node) if value is not None else None
    given = made.arguments.keywords.get("dtype") if made is not None else None
    return given is not None and _TEXT_TYPE.search(given.source) is not None


def _bound_kind(module: Module, node: cst.Name | cst.Attribute, depth: int, *, by_name: bool) -> str:
    """What the elements are of what a name stands for: a value, one element of a loop, what callers pass."""
    value = module.followed(node, module.scope_of(node), module.order_of(node))
    if value is not None and value.node is not node and not _is_empty(value.node):
        kind = collection_kind(module, value.node, depth, by_name=by_name)
        return kind if kind != "unknown" else module.shared(_Added).kind(node)
    if (filled := module.shared(_Variables).filled(node)) != "unknown" or not isinstance(node, cst.Name):
        return filled
    held = _variable(module, node, (EACH,))
    held = held if held != "unknown" else _passed(module, node, depth)
    return held if held != "unknown" else module.shared(_Added).kind(node)


class _Added:
    """What is added to the lists of one file, of which nothing else is known: looked at once for each."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._kinds: dict[tuple[int, str], str] = {}
        self._slices: dict[tuple[int, str], bool] = {}

    def kind(self, node: cst.Name | cst.Attribute) -> str:
        """What the elements of `node` are, by those that are added."""
        key = self._key(node)
        if key not in self._kinds:
            self._kinds[key] = "unknown"  # where the answer depends on itself
            kinds = _put_in(self.module, node) - {"unknown"}
            self._kinds[key] = kinds.pop() if len(kinds) == 1 and kinds <= {"number", "text"} else "unknown"
        return self._kinds[key]

    def slices(self, node: cst.BaseExpression) -> bool:
        """Whether a slice is appended to `node`."""
        key = self._key(node)
        if key not in self._slices:
            calls = self.module.shared(Fillings).of(node, ("append",))
            self._slices[key] = any(_is_slice(arg.value) for call in calls for arg in call.node.args)
        return self._slices[key]

    def _key(self, node: cst.BaseExpression) -> tuple[int, str]:
        if isinstance(node, cst.Name):
            return id(self.module.scope_of(node).home(node.value)), node.value
        return id(self.module.enclosing_class(node)), bare(node)


def _holds_slices(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the list `node` is made of slices, or one is appended to it: they are no numbers."""
    value = module.followed(node, module.scope_of(node), module.order_of(node)) if isinstance(node, cst.Name) else None
    made = value.node if value is not None else None
    if isinstance(made, (cst.GeneratorExp, cst.ListComp, cst.SetComp)) and _is_slice(made.elt):
        return True
    return module.shared(_Added).slices(node)


def _is_slice(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Subscript) and isinstance(node.slice[0].slice, cst.Slice)


def _passed(module: Module, node: cst.Name, depth: int) -> str:
    """What the elements are of what all calls in the file pass to a function as its parameter `node`."""
    function = taking(module, node)
    if function is None:
        return "unknown"
    return _agreed(node, function, calls_here(module, function), depth)


def passed_elsewhere(module: Module, made: cst.BaseExpression) -> str:
    """What the elements are of the set `made` of a parameter, by what this file and those around it pass."""
    node = made.args[0].value if isinstance(made, cst.Call) and len(made.args) == 1 else made
    while isinstance(node, cst.BinaryOperation):
        node = node.left
    return module.shared(_Variables).passed(node)


def _agreed(node: cst.Name, function: cst.FunctionDef, calls: Sequence[tuple[Module, Call]], depth: int) -> str:
    """What the elements are of what all `calls` of `function`, each with its file, pass for its parameter `node`."""
    kinds = {
        _handed(one.module, one.node, depth) if not one.path else _of_row(one, (EACH,))
        for one in given_for(node, function, calls)
    }
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _of_row(given: Given, path: tuple[int, ...] = ()) -> str:
    """What stands at `path` in what is given, which stands in a row that is unpacked."""
    module, node, whole = given.module, given.node, (*given.path, *path)
    told = _variable(module, node, whole) if whole and isinstance(node, cst.Name) else "unknown"
    return told if told != "unknown" else _part_of(module, node, whole, _DEEP)


def _handed(module: Module, node: cst.BaseExpression, depth: int) -> str:
    """What the elements are of the argument `node`: where it is a parameter of its function, by those who call that."""
    kind = collection_kind(module, node, depth)
    return kind if kind not in ("unknown", "label") else module.shared(_Variables).passed(node)


def _kind_of_call(module: Module, node: cst.Call, depth: int, *, by_name: bool) -> str:
    told = element_kinds.elements(module, node)
    if told != "unknown":
        return told
    word = last_word(node.func)
    facts = module.library.facts.orders
    known = facts.elements
    if word in known["numbers"]:
        return _kind_of_column(module, node, depth, by_name=by_name)
    if word in facts.words["casts"] and len(node.args) == 1:
        kind = module.code(node.args[0].value)
        return "text" if _TEXT_TYPE.search(kind) else "number" if _NUMBER_TYPE.search(kind) else "unknown"
    if word in known["graph"] and (module.imports("networkx") or any(map(module.text.count, known["makes_graph"]))):
        return "number"
    if word in known["places"]:
        # A tensor is gone through as tensors, which hash by their address.
        of_torch = any(name.startswith("torch.") for name in module.resolve(node.func))
        return "identity" if of_torch else "number"
    if word in known["moves"] and isinstance(node.func, cst.Attribute) and not node.args:
        return "identity"
    if word in known["texts"]:
        return "text"
    if word in known["identities"]:
        return "identity"
    if word in facts.words["set-methods"] and isinstance(node.func, cst.Attribute) and node.args and depth > 0:
        return _kind_of_method(module, node.func.value, [arg.value for arg in node.args], word, depth - 1)
    if word in known["copies"] and node.args and depth > 0:
        return collection_kind(module, node.args[0].value, depth - 1, by_name=by_name)
    if word in known["picks"] and depth > 0 and len(node.args) > (word == "choice") and node.args[0].keyword is None:
        kind = collection_kind(module, node.args[0].value, depth - 1, by_name=False)
        below = kind == "unknown" and word in known["below"] and scalar_kind(module, node.args[0].value) == "number"
        return "number" if below else kind
    if depth > 0 and (word in known["combined"] or word == "map"):
        found = _part_of_call(module, node, (EACH,), depth - 1)
        return found if found == "number" else "unknown"
    named = _keys_by_name(node) if word == "keys" else "" if word == "values" else word
    if by_name and facts.endings["numbers"].search(named):
        return "number"
    return _kind_given_back(module, node, depth, by_name=by_name) if depth > 0 else "unknown"


def _kind_of_column(module: Module, node: cst.Call, depth: int, *, by_name: bool) -> str:
    """What the elements are of what an array or a tensor gives: numbers, but for a column of a table of pandas, which
    holds anything: `table["job"].values.tolist()`."""
    inside, called, taken = node.func, True, False
    while isinstance(inside, (cst.Attribute, cst.Call)):
        taken = taken or (isinstance(inside, cst.Attribute) and inside.attr.value == "values" and not called)
        called = isinstance(inside, cst.Call)
        inside = inside.func if isinstance(inside, cst.Call) else inside.value
    index = inside.slice[0].slice if taken and isinstance(inside, cst.Subscript) else None
    if not (isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)):
        return "number"
    kind = collection_kind(module, inside, depth, by_name=by_name)
    name = str(index.value.evaluated_value)
    is_label = kind == "unknown" and module.library.facts.orders.endings["labels"].search(name) is not None
    return "label" if is_label else kind


def _kind_of_method(
    module: Module, owner: cst.BaseExpression, others: Sequence[cst.BaseExpression], word: str, depth: int
) -> str:
    """What the elements are of a set that a method makes of the set `owner` and of `others`."""
    kind = collection_kind(module, owner, depth, by_name=False)
    if kind != "number" or word in ("difference", "intersection"):
        return kind
    return _together({kind, *(collection_kind(module, one, depth, by_name=False) for one in others)})


def _keys_by_name(node: cst.Call) -> str:
    """What the name of a table says of its keys: `point_id` of `point_id_to_place.keys()`."""
    table: cst.CSTNode = node.func.value if isinstance(node.func, cst.Attribute) else node.func
    while isinstance(table, cst.Subscript):
        table = table.value
    told = _MAPPING.fullmatch(last_word(table)) if isinstance(table, cst.BaseExpression) else None
    return told[1] if told is not None else ""


def _kind_given_back(module: Module, node: cst.Call, depth: int, *, by_name: bool) -> str:
    """What the elements are of all that a function of the project returns, in whichever file."""
    callee = CallEdges(module).callee(node, module.resolve(node.func))
    if callee is None or callee.function is None:
        return "unknown"
    made = list(returned(callee.function))
    kinds = {collection_kind(callee.module, one, depth - 1, by_name=by_name) for one in made}
    return _together(kinds) if made else "unknown"


def scalar_kind(module: Module, node: cst.BaseExpression) -> str:
    """What `node` is as an element."""
    if isinstance(node, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)):
        return "text"
    if isinstance(node, (cst.Integer, cst.Float)) or (isinstance(node, cst.Name) and node.value in ("True", "False")):
        return "number"
    if isinstance(node, cst.Call):
        return _made_by_call(module, node)
    if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Call):
        return "text" if last_word(node.value.func) in _calls(module, "texts") else "unknown"
    if isinstance(node, cst.Tuple):
        return of_tuple(scalar_kind(module, element.value) for element in node.elements)
    if isinstance(node, cst.BinaryOperation):
        kinds = {scalar_kind(module, node.left), scalar_kind(module, node.right)}
        return "text" if "text" in kinds else "number" if "number" in kinds else "unknown"
    if isinstance(node, (cst.Comparison, cst.UnaryOperation)):
        return _kind_of_test(module, node)
    if isinstance(node, (cst.Name, cst.Attribute)) and (told := _told(module, node)) != "unknown":
        return told
    if isinstance(node, cst.Name) and (held := module.shared(_Variables).single(node)) != "unknown":
        return held
    if isinstance(node, cst.Name) and len(node.value) == 1 and node.value in "ijkn":
        return "number"
    if isinstance(node, cst.Attribute) and module.shared(_Fields).are_numbers(node.attr.value):
        return "number"
    named = isinstance(node, (cst.Name, cst.Attribute)) and _means(module, "numbers", node)
    return "number" if named else "unknown"


class _Fields:
    """What a file gives the attributes of its objects, of which the class is not known where they are read: looked at
    once for each name."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._numbers: dict[str, bool] = {}

    def are_numbers(self, name: str) -> bool:
        """Whether attributes called `name` are given something, and nothing but numbers; one that may be unpacked into
        is given anything."""
        if name not in self._numbers:
            self._numbers[name] = False  # where the answer depends on itself
            self.module.load_where(word=name)
            given = [one.value.node for one in self.module.assignments_called(name)]
            told = re.findall(rf"(?m)^[ \t]+{name}[ \t]*:([^=#\n]+)", self.module.text)
            elsewise = rf"\.{name}[ \t]*,[^=\n]*=|,[^=\n]*\.{name}[ \t]*=(?!=)|\bsetattr\([^\n]*[\"']{name}[\"']"
            numbers = all(_NUMBER_TYPE.fullmatch(one.strip()) for one in told)
            numbers = numbers and re.search(elsewise, self.module.text) is None
            self._numbers[name] = bool(given or told) and numbers and all(map(self._is_number, given))
        return self._numbers[name]

    def _is_number(self, node: cst.BaseExpression) -> bool:
        return scalar_kind(self.module, node) == "number"


def _made_by_call(module: Module, node: cst.Call) -> str:
    """What a call makes, as an element."""
    word = last_word(node.func)
    if word in _calls(module, "number"):
        return "number"
    if word in _calls(module, "text"):
        return "text"
    if any(name in _calls(module, "reckoned") or name.startswith("math.") for name in module.resolve(node.func)):
        return "number"
    if word == "choice" and node.args:
        drawn = node.args[0].value
        kind = _variable(module, drawn, (EACH,)) if isinstance(drawn, cst.Name) else "unknown"
        return kind if kind != "unknown" else collection_kind(module, drawn, _DEEP)
    if word in ("tuple", "frozenset") and node.args:
        kind = collection_kind(module, node.args[0].value, 2)
        return "unsortable" if word == "frozenset" and kind != "number" else kind
    kind = object_kind(module, node)
    return _one_given_back(module, node) if kind == "unknown" else kind


def _one_given_back(module: Module, node: cst.Call) -> str:
    """What a function of the project gives back, as an element: text that may be something else cannot be sorted."""
    callee = CallEdges(module).callee(node, module.resolve(node.func))
    asking = module.shared(_Asking).functions
    if callee is None or callee.function is None or callee.function in asking or len(asking) >= _DEEP:
        return "unknown"
    asking.append(callee.function)
    kinds = {scalar_kind(callee.module, one) for one in returned(callee.function)}
    asking.pop()
    if kinds in ({"text"}, {"number"}):
        return kinds.pop()
    return "unsortable" if "text" in kinds else "unknown"


class _Asking:
    """The functions that are being asked what they give back, one for the other."""

    def __init__(self, module: Module) -> None:
        self.functions: list[cst.FunctionDef] = []


def _kind_of_test(module: Module, node: cst.Comparison | cst.UnaryOperation) -> str:
    """What a comparison is as an element, or what stands behind a sign."""
    if isinstance(node, cst.UnaryOperation):
        return "number" if isinstance(node.operator, cst.Not) else scalar_kind(module, node.expression)
    # A tensor is compared to another one of truth values.
    asked = isinstance(node.comparisons[0].operator, (cst.In, cst.Is, cst.IsNot, cst.NotIn))
    return "identity" if not asked and module.shared(Inference).infer(node.left).is_tensor else "number"


def _kind_of_mask(module: Module, node: cst.Comparison) -> str:
    """What the elements of a comparison are: only arrays and tensors are compared element by element."""
    array = module.shared(Inference).infer(node.left)
    return "identity" if array.is_tensor else "number" if array.what == "other" else "unknown"


def _told(module: Module, node: cst.Name | cst.Attribute) -> str:
    """What the annotation of `node` says of it, or a test of its type."""
    told = element_kinds.single(module, node)
    if told != "unknown":
        return told
    return element_kinds.of_types(module.shared(Comparisons).types(node, module.scope_of(node)))


def _means(module: Module, role: str, node: cst.BaseExpression) -> bool:
    """Whether the last word of a name says that it stands for `role`."""
    return module.library.facts.orders.endings[role].search(last_word(node)) is not None


def _calls(module: Module, role: str) -> frozenset[str]:
    return module.library.facts.orders.elements[role]


def _is_empty(node: cst.BaseExpression) -> bool:
    """Whether `node` makes an empty list."""
    if isinstance(node, cst.Call):
        return not node.args and last_word(node.func) in ("list", "deque")
    return isinstance(node, cst.List) and not node.elements


def _copies(module: Module, value: cst.BaseExpression, name: str) -> bool:
    """Whether `value` is a copy of the collection `name`: `list(set(name))`."""
    while isinstance(value, cst.Call) and value.args and last_word(value.func) in _calls(module, "copies"):
        value = value.args[0].value
    return bare(value) == name


class _Variables:
    """What variables hold, each worked out once: they may be made of each other."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._settled = Questions(_CHAIN).settled

    def of(self, node: cst.Name, path: tuple[int, ...]) -> str:
        """What stands at `path` in the variable `node`, by the bindings that reach it."""
        scope = self.module.scope_of(node)
        home = scope.home(node.value)
        bindings = home.bindings[node.value] if home is not None else []
        if home is not None and home.function is scope.function:
            order = self.module.order_of(node)
            bindings = reaching(self.module, live(bindings, order), node, order)
        else:
            bindings = live(bindings, None)
        return self._settled(
            (tuple(map(id, bindings)), path),
            lambda: agreed(self._bound(binding, path) for binding in bindings),
        )

    def single(self, node: cst.Name) -> str:
        """What the variable `node` is: what it is bound to, or what all calls of the file pass as a parameter."""
        held = self.of(node, ())
        function = taking(self.module, node) if held == "unknown" else None
        if function is None:
            return held
        return self._settled((id(function), node.value, ""), lambda: self._single(node, function))

    def _single(self, node: cst.Name, function: cst.FunctionDef) -> str:
        calls = calls_here(self.module, function)
        return agreed(_of_row(one) for one in given_for(node, function, calls))

    def filled(self, node: cst.Name | cst.Attribute) -> str:
        """What the elements are of the list that `node` stands for, by what it is made of and what is put into it."""
        home = self.module.scope_of(node).home(node.value) if isinstance(node, cst.Name) else None
        owner = home if home is not None else self.module.enclosing_class(node)
        return self._settled((id(owner), bare(node)), lambda: self._filled(node))

    def entry(self, table: cst.BaseExpression) -> str:
        """What the elements are of the collections that the entries of `table` are."""
        if not isinstance(table, (cst.Name, cst.Attribute)):
            return "unknown"
        home = self.module.scope_of(table).home(table.value) if isinstance(table, cst.Name) else None
        return self._settled((id(home), bare(table), EACH), lambda: self._entry(table))

    def passed(self, node: cst.BaseExpression) -> str:
        """What the elements are of the parameter `node` by what all calls of its function pass, in whichever file."""
        function = taking(self.module, node) if isinstance(node, cst.Name) else None
        if not isinstance(node, cst.Name) or function is None or self.module.callers is None:
            return "unknown"
        return self._settled((id(function), node.value), lambda: self._passed(node, function))

    def _passed(self, node: cst.Name, function: cst.FunctionDef) -> str:
        own = calls_here(self.module, function)
        assert self.module.callers is not None
        class_ = self.module.enclosing_class(function)
        called = function.name.value if class_ is None else class_.name
        local = isinstance(self.module.scope_of(function).node, cst.FunctionDef)
        open_ = not local and (class_ is None or function.name.value == "__init__")
        elsewhere = self.module.callers(called) if open_ else []
        return _agreed(node, function, [*own, *elsewhere], _DEEP)

    def _entry(self, table: cst.BaseExpression) -> str:
        whole, single = self.module.shared(Entries).of(table)
        kinds = {collection_kind(self.module, one, _DEEP, by_name=False) for one in whole if not _is_empty(one)}
        return _together(kinds | {scalar_kind(self.module, one) for one in single})

    def _bound(self, binding: Binding, path: tuple[int, ...]) -> str:
        if binding.value is None or binding.kind not in ("assign", "unpack", "loop"):
            return "unknown"
        part_of = _part_kind if binding.kind == "loop" else _part_of
        return part_of(self.module, binding.value, (*binding.path, *path), _DEEP)

    def _filled(self, node: cst.Name | cst.Attribute) -> str:
        values = self._values(node)
        branches = isinstance(node, cst.Attribute) and len(values) > 1
        if not branches and not any(_is_empty(value) for value in values):
            return "unknown"
        others = [one for one in values if not _is_empty(one) and not _copies(self.module, one, bare(node))]
        kinds = {collection_kind(self.module, one, _DEEP, by_name=False) for one in others}
        return _together(kinds | _put_in(self.module, node))

    def _values(self, node: cst.Name | cst.Attribute) -> list[cst.BaseExpression]:
        """What is assigned to `node`, and added to it by `+=`; nothing where something else binds it."""
        if isinstance(node, cst.Attribute):
            class_ = self.module.enclosing_class(node)
            word = node.attr.value
            if class_ is None or dotted(node.value) != "self" or f".{word} +=" in self.module.text:
                return []
            return [value.node for value in self.module.attribute_values(class_, word)]
        home = self.module.scope_of(node).home(node.value)
        bindings = home.bindings[node.value] if home is not None else ()
        added = (binding.node for binding in bindings if binding.kind == "augment")
        found = [bound_value(binding) for binding in bindings if binding.kind == "assign"]
        found += [
            one.value for one in added if isinstance(one, cst.AugAssign) and isinstance(one.operator, cst.AddAssign)
        ]
        values = [one for one in found if isinstance(one, cst.BaseExpression)]
        return values if len(values) == len(bindings) else []


def _variable(module: Module, node: cst.Name, path: tuple[int, ...]) -> str:
    """What stands at `path` in a variable."""
    return module.shared(_Variables).of(node, path)


def each_kind(module: Module, node: cst.BaseExpression) -> str:
    """What the elements are of the collections that the elements of `node` are."""
    return _part_kind(module, node, (EACH,), _DEEP)


def _part_kind(module: Module, node: cst.BaseExpression, path: tuple[int, ...], depth: int) -> str:
    """What stands at `path` in each element of `node`."""
    if not path:
        return collection_kind(module, node, depth, by_name=False)
    told = element_kinds.elements(module, node, path)
    if told != "unknown" or depth == 0:
        return told
    if isinstance(node, (cst.List, cst.Tuple, cst.Set)):
        return agreed(_part_of(module, element.value, path, depth - 1) for element in node.elements)
    if isinstance(node, (cst.GeneratorExp, cst.ListComp, cst.SetComp)):
        return _part_of(module, node.elt, path, depth - 1)
    if isinstance(node, cst.Call):
        return _part_of_call(module, node, path, depth - 1)
    if isinstance(node, (cst.Name, cst.Attribute)):
        value = module.followed(node, module.scope_of(node), module.order_of(node))
        if value is not None and value.node is not node:
            return _part_kind(module, value.node, path, depth - 1)
        return _variable(module, node, (EACH, *path)) if isinstance(node, cst.Name) else "unknown"
    return "unknown"


def _part_of(module: Module, node: cst.BaseExpression, path: tuple[int, ...], depth: int) -> str:
    """What stands at `path` in `node`."""
    if not path:
        return scalar_kind(module, node)
    if isinstance(node, (cst.List, cst.Tuple)):
        parts = [element.value for element in node.elements]
        chosen = parts if path[0] == EACH else parts[path[0] : path[0] + 1]
        return agreed(_part_of(module, part, path[1:], depth) for part in chosen)
    if isinstance(node, cst.Call) and last_word(node.func) in _calls(module, "copies") and node.args:
        node = node.args[0].value
    return _part_kind(module, node, path[1:], depth)


def _part_of_call(module: Module, node: cst.Call, path: tuple[int, ...], depth: int) -> str:
    """What stands at `path` in each element of what a call gives."""
    word, given = last_word(node.func), [arg.value for arg in node.args]
    first, rest = path[0], path[1:]
    if word in _calls(module, "numbers"):
        return "number"
    if word in _calls(module, "named") and not rest and first in (0, 1):
        return "text" if first == 0 else "identity"
    if word == "enumerate" and given and first in (0, 1):
        return "number" if first == 0 else _part_kind(module, given[0], rest, depth)
    if word in _calls(module, "combined"):
        chosen = given[first : first + 1] if word == "zip" and first != EACH else given
        return agreed(_part_kind(module, one, rest, depth) for one in chosen if not isinstance(one, cst.Integer))
    if word in _calls(module, "copies") and given:
        return _part_kind(module, given[0], path, depth)
    if word == "map" and len(given) == 2 and _copies_each(module, given[0]):
        return _part_kind(module, given[1], path, depth)
    if word == "map" and not rest and given and last_word(given[0]) in _calls(module, "number"):
        return "number"
    return "unknown"


def _copies_each(module: Module, function: cst.BaseExpression) -> bool:
    """Whether `function` makes a collection of the same elements: `set`, or `lambda row: set(row)`."""
    if isinstance(function, cst.Lambda):
        made, parameters = function.body, function.params.params
        if not isinstance(made, cst.Call) or len(parameters) != 1 or len(made.args) != 1:
            return False
        function = made.func if bare(made.args[0].value) == parameters[0].name.value else function
    return last_word(function) in _calls(module, "copies")
