"""A file -> the sets that it goes through and does not make: parameters and attributes that are annotated as sets,
attributes that a class of another file fills, what functions of other files return, and those that are said to return
one, what is left of the keys of a dictionary, and of a parameter from which a set is taken away."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.checks.order.elements import collection_kind, kind_by_callers, set_kind
from torchdet_lint.dataflow.call_edges import CallEdges, Callee, is_property
from torchdet_lint.dataflow.follower import Follower
from torchdet_lint.dataflow.syntax import MAKES_SET, last_word, names_read
from torchdet_lint.inference.elements.element_kinds import declared, elements_of, is_set
from torchdet_lint.module.names import dotted
from torchdet_lint.module.tree import named_parameters, returned
from torchdet_lint.prefilter.triggers import places
from torchdet_lint.regex import lazy
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from torchdet_lint.dataflow.uses import Use
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module

# A search is quick that begins with a letter, and slow where it begins with what may not stand before one.
_SET = lazy(r"[sS]et\b")
_ANNOTATED = lazy(r"[:|\[]\s*[\"']?(?:\w+\.)?(?:Abstract|[Ff]rozen|Mutable)?\Z")
_LISTS = ("[*", "[ *", "list(", "tuple(", "enumerate(", "join(", "array(", "tensor(", "sample(", "choice(")
_GOES = lazy(
    r"\s*(?:enumerate[ \t]*\(\s*)?"
    r"(?:(?:self\.)?(\w+)\.(\w+)\b(?!\s*[.(\[])|((?:\w+\.)?\w+)[ \t]*\(|(\w+)\b(?!\s*[.(\[]))"
)
_FOR = lazy(r"(?<![^\s(\[{])for\s")
_RESULT = lazy(r"= *((?:\w+\.)?\w+)[ \t]*\(")
_TAKES = lazy(
    r"\bfor\b|\b(?:list|tuple|enumerate|join|array|tensor|sample|choice)[ \t]*\(|[\[(,]\s*\*"
    r"|\.pop[ \t]*\(\s*\)|\bkey\s*="
)
_RETURNED = lazy(
    r"\breturn\b[^\n]*(?:set[ \t]*\(|\{)|->\s*[\"']?(?:\w+\.)?(?:[Ff]rozen)?[sS]et\b|=\s*(?:set[ \t]*\(|\{)"
)
_GIVES_SET = r"->[ \t]*[\"']?(?:\w+\.)?(?:Abstract|[Ff]rozen|Mutable)?[sS]et\b"
_ARROW = lazy(_GIVES_SET)
_RETURNS = lazy(rf"^[ \t]*def (\w+)[ \t]*\([^\n]*\)[ \t]*{_GIVES_SET}", re.MULTILINE)
_VIEWS = lazy(r"\.(?:keys|items)[ \t]*\(\s*\)[ \t]*[-&|^]")
_TAKEN_AWAY = lazy(r"-=?[ \t]*(?:\{|(?:frozen)?set[ \t]*\()")
_MADE = lazy(r"\s*(?:=|:)\s*[\"']?(?:\w+\.)*?(\w+)")
_SAID = lazy(r"\s*:")
_GIVEN = lazy(r"\s*(?::[^=\n]*)?:?=(?!=)")
# So deeply the elements of a collection are looked for.
_DEEP = 4
# So far before its `in` the `for` of a loop stands, and before its `=` a name begins.
_LINE = 100


class GivenSet(NamedTuple):
    """A set that is gone through: what it stands as, the kind of its elements, and its uses."""

    node: cst.BaseExpression
    kind: str
    uses: list[Use]


def given_sets(module: Module) -> Iterator[GivenSet]:
    """The sets that `module` is given."""
    text = module.text
    annotates = _annotates(text)
    if annotates:
        yield from _parameters(module)
    yield from _views(module)
    yield from _differences(module)
    own = frozenset(_RETURNS.findall(text)) if _ARROW.search(text) else frozenset()
    imported = _imported(module)
    inherits = any(name.partition(".")[0] in imported for name in _bases(module))
    words: dict[str, None] = {}
    functions: dict[str, None] = {}
    names: dict[str, None] = {}
    results = _results(text) if imported or own else {}

    @functools.cache
    def made(owner: str) -> bool:
        return _made(owner, text, imported)

    @functools.cache
    def assigned(word: str) -> bool:
        return (
            f".{word} =" in text
            or f".{word}=" in text
            or (f".{word}: " in text and re.search(rf"\.{word}: [^\n=#]+=", text) is not None)
        )

    for owner, word, function, name in _taken(text) if imported or annotates or own else ():
        if name and name in imported:
            names[name] = None
        elif name or function:
            for called in (function,) if function else results.get(name, ()):
                head, _, method = called.partition(".")
                mine = (method if head in ("self", "cls") else called) in own
                if mine or head in imported or (method and not imported.isdisjoint(results.get(head, ()))):
                    functions[called] = None
        elif not assigned(word):
            mine = owner in ("self", "cls")
            if annotates or (inherits if mine else made(owner)):
                words[word] = None
    for word in words:
        yield from _attributes(module, word)
    for name in functions:
        yield from _returned(module, name, imported, results)
    for name in names:
        yield from _constants(module, name)


def _annotates(text: str) -> bool:
    """Whether something is annotated as a set in `text`."""
    return any(
        _ANNOTATED.search(text, max(0, match.start() - _LINE), match.start()) is not None
        for match in _SET.finditer(text)
    )


def _taken(text: str) -> Iterator[tuple[str, str, str, str]]:
    """What is listed or gone through in `text`: the owner and the name of an attribute, or the function called, or a
    name."""
    for lead in (*_LISTS, " in "):
        start = text.find(lead)
        while start >= 0:
            end = start + len(lead)
            match = _GOES.match(text, end)
            if match is not None and (lead != " in " or _loops(text, start)):
                yield match[1] or "", match[2] or "", match[3] or "", match[4] or ""
            start = text.find(lead, end)


def _loops(text: str, end: int) -> bool:
    """Whether the `for` of a loop stands shortly before `end`."""
    start = text.find("for", max(0, end - _LINE), end)
    return start >= 0 and _FOR.search(text, start, end) is not None


def _results(text: str) -> dict[str, set[str]]:
    """Names -> the functions in `text` of which they are given a result."""
    found: dict[str, set[str]] = {}
    for match in _RESULT.finditer(text):
        name = _name_before(text, match.start())
        if name:
            found.setdefault(name, set()).add(match[1])
    return found


def _name_before(text: str, end: int) -> str:
    """The name that stands in `text` before `end` and is no attribute. From behind, it takes few steps to find."""
    before = text[max(0, end - _LINE) : end].rstrip(" ")
    start = len(before)
    while start and (before[start - 1] == "_" or before[start - 1].isalnum()):
        start -= 1
    return "" if before[start - 1 : start] == "." else before[start:]


def _takes_result(text: str, name: str) -> bool:
    """Whether a result of the function `name` is gone through in `text`, at once or by the name that it is given."""
    given = [one for one, functions in _results(text).items() if name in functions]
    return any(function == name or one in given for _, _, function, one in _taken(text))


def _imported(module: Module) -> frozenset[str]:
    """The names that the file imports from no library."""
    libraries = module.library.roots | STANDARD
    return frozenset(
        name
        for unit in module.units
        if unit.piece.kind == "imports"
        for name, target in unit.piece.binds
        if target.partition(".")[0] not in libraries
    )


def _bases(module: Module) -> Iterator[str]:
    """The names of the base classes in the file, as they are written."""
    for class_ in module.skeleton.classes:
        yield from class_.bases or ()


def _made(name: str, text: str, imported: frozenset[str]) -> bool:
    """Whether `name` is made by, or annotated with, something that `text` imports."""
    for start in places(name, text):
        made = _MADE.match(text, start + len(name))
        if made is not None:
            return made[1] in imported or made[0].rpartition("=")[2].strip() in imported
    return False


def _parameters(module: Module) -> Iterator[GivenSet]:
    """Parameters that are annotated as sets. Where nothing is said of the elements, the callers in the file say it."""
    module.load_where(lambda text: _annotates(text) and _TAKES.search(text) is not None)
    for functions in list(module.loading.facts.functions.values()):
        for function in functions:
            for param in named_parameters(function.params):
                if param.annotation is None or not is_set(text := module.code(param.annotation.annotation)):
                    continue
                kind = elements_of(text)
                if kind == "unknown" and CallEdges(module).callers(function):
                    continue
                yield GivenSet(param.name, kind, Follower(module).uses_of_parameter(param.name, function))


def _views(module: Module) -> Iterator[GivenSet]:
    """What is left of the keys or the entries of a dictionary: `a.keys() - b.keys()`."""
    if not _VIEWS.search(module.text):
        return
    module.load_where(lambda text: _VIEWS.search(text) is not None)
    for call in module.calls:
        if call.attribute not in ("keys", "items") or call.node.args:
            continue
        left: cst.CSTNode = call.node
        around = module.parent(left)
        while (
            isinstance(around, cst.BinaryOperation) and isinstance(around.operator, MAKES_SET) and around.left is left
        ):
            left, around = around, module.parent(around)
        if isinstance(left, cst.BinaryOperation):
            kind = collection_kind(module, call.node, _DEEP)
            yield GivenSet(left, kind, Follower(module).uses(left, is_set=True))


def _differences(module: Module) -> Iterator[GivenSet]:
    """What is left of a set that comes from elsewhere: only of a set may another one be taken away, `x - set(y)`."""
    if not _TAKEN_AWAY.search(module.text):
        return
    module.load_where(lambda text: _TAKEN_AWAY.search(text) is not None)
    made = [call.node for call in module.calls_to(*module.library.facts.orders.sets["makes"])]
    for node in sorted((*made, *module.set_displays), key=module.order_of):
        around = module.parent(node)
        if isinstance(around, cst.BinaryOperation) and isinstance(around.operator, cst.Subtract):
            if around.right is node and _comes_from_elsewhere(module, around.left):
                yield GivenSet(around, set_kind(module, around), Follower(module).uses(around, is_set=True))
        elif isinstance(around, cst.AugAssign) and isinstance(around.operator, cst.SubtractAssign):
            name = around.target
            if isinstance(name, cst.Name) and _comes_from_elsewhere(module, name):
                uses = Follower(module).uses_of_name(name, around, is_set=True)
                yield GivenSet(name, collection_kind(module, name, _DEEP), uses)


def _comes_from_elsewhere(module: Module, node: cst.BaseExpression) -> bool:
    """Whether `node` is a parameter, or something of one, of which the file does not say what it is."""
    root: cst.BaseExpression = node
    while isinstance(root, cst.Attribute):
        root = root.value
    home = module.scope_of(root).home(root.value) if isinstance(root, cst.Name) else None
    if home is None or not isinstance(root, cst.Name) or declared(module, node):
        return False
    values = module.self_attribute(node, module.scope_of(node)) if isinstance(node, cst.Attribute) else ()
    return not values and {binding.kind for binding in home.bindings[root.value]} <= {"parameter", "augment"}


def _attributes(module: Module, word: str) -> Iterator[GivenSet]:
    """`x.word`, an attribute that the file assigns nowhere."""
    if _evidently_no_set(module, word):
        return
    module.load_where(lambda text: any(one == word for _, one, *_ in _taken(text)), word)
    for unit in list(module.holding(word)):
        for attribute in module.attributes_under(unit.root, word) if unit.root is not None else ():
            kind = _kind_of_attribute(module, attribute)
            if kind:
                yield GivenSet(attribute, kind, Follower(module).uses(attribute, is_set=True))


def _kind_of_attribute(module: Module, node: cst.Attribute) -> str:
    """What the set holds that an attribute is by its annotation, or by what a class of another file gives to it; empty
    where it is no set in sight."""
    text = declared(module, node)
    if text:
        return elements_of(text) if is_set(text) else ""
    found = Follower(module).class_of(node.value)
    if found is None and isinstance(node.value, cst.Name):
        class_ = module.enclosing_class(node) if node.value.value in ("self", "cls") else None
        found = (module, class_) if class_ is not None else None
    return _kind_above(module, *found, node.attr.value) if found is not None else ""


def _kind_above(module: Module, owner: Module, class_: Class, word: str) -> str:
    """What the set holds that the classes above `class_` of `owner` in files other than `module` give to the attribute
    `word`; empty where it is no set in sight."""
    for other, above in CallEdges(module).ancestors(owner, class_):
        if other is module:
            if word in above.methods or module.attribute_values(above, word):
                return ""
        else:
            values = [one.node for one in other.attribute_values(above, word)]
            if values:
                filled = all(makes_set(other, value) for value in values)
                callers = [one for one in dict.fromkeys((module, owner)) if one is not other]
                return kind_by_callers(callers, other, values[0]) if filled else ""
            if word in above.methods:
                function = other.definition(word, above)
                return kind_given(module, Callee(other, function)) if is_property(function) else ""
    return ""


def _evidently_no_set(module: Module, word: str) -> bool:
    """Whether the attribute `word`, which the file assigns nowhere, is no set by what is known before a method that
    goes through it is parsed: the file annotates nothing of that name, and no class above those that do so fills it."""
    text = module.text
    for start in places(word, text):
        said = _SAID.match(text, start + len(word))
        if said is not None and _SET.search(text, said.end(), said.end() + _LINE):
            return False
    owners: set[int] = set()
    for unit in module.holding(word):
        taken = [owner for owner, one, *_ in _taken(module.texts[unit.index]) if one == word]
        if any(unit.piece.owner < 0 or owner not in ("self", "cls") for owner in taken):
            return False
        owners.update([unit.piece.owner] if taken else [])
    module.loading.wake()
    module.load_statements()
    classes = [module.loading.facts.top_classes[owner] for owner in sorted(owners)]
    return not any(_kind_above(module, module, class_, word) for class_ in classes)


def _returned(
    module: Module, name: str, imported: frozenset[str], results: Mapping[str, Collection[str]]
) -> Iterator[GivenSet]:
    """Calls of `name`, a function or a method of another file that returns a set."""
    if _evidently_returns_none(module, name, imported, results):
        return
    last = name.rpartition(".")[2]
    module.load_where(lambda text: _takes_result(text, name), last)
    for call in module.calls:
        if last_word(call.node.func) != last or module.code(call.node.func) != name:
            continue
        kind = _kind_of_result(module, call)
        if kind:
            yield GivenSet(call.node, kind, Follower(module).uses(call.node, is_set=True))


def _evidently_returns_none(
    module: Module, name: str, imported: frozenset[str], results: Mapping[str, Collection[str]]
) -> bool:
    """Whether no call of `name` returns a set, by what is known before a unit that calls it is parsed: no function of
    the file says so, and what it is, or what makes the object that it is a method of, is imported and bound nowhere
    else."""
    if _ARROW.search(module.text):
        return False
    head, _, method = name.partition(".")
    direct = not method or head in imported
    makers = (head,) if direct else sorted(filter(imported.__contains__, results.get(head, ())))
    others = set[str]() if direct else set(results.get(head, ())).difference(makers)
    if any(_may_be_class(module, one, imported) for one in others) or any(_binds(module, maker) for maker in makers):
        return False
    module.loading.wake()
    module.load_statements()
    edges = CallEdges(module)
    for maker in makers:
        for full in module.resolve(cst.Name(maker), module.scope, None):
            called = full if not method else f"{full}.{method}" if direct else f"{full}().{method}"
            callee = edges.foreign(module.library.canonical(called))
            if full.startswith("@.") or (callee is not None and kind_given(module, callee)):
                return False
    return True


def _may_be_class(module: Module, name: str, imported: Collection[str]) -> bool:
    """Whether `name`, which is called, may be a class of the file or of another one that is not a library's."""
    head, _, last = name.rpartition(".")
    return head in imported or name in module.loading.facts.class_by_name or last.lstrip("_")[:1].isupper()


def _binds(module: Module, name: str) -> bool:
    """Whether something but the imports at top level may bind `name`."""
    for unit in module.holding(name):
        text = module.texts[unit.index]
        if unit.piece.kind == "imports" or name not in module.words[unit.index]:
            continue
        if "import" in module.words[unit.index] or f" as {name}" in text:
            return True
        if any(_GIVEN.match(text, start + len(name)) for start in places(name, text)):
            return True
    return False


def _constants(module: Module, name: str) -> Iterator[GivenSet]:
    """Reads of `name`, which another file binds to a set."""
    kind = _kind_of_constant(module, name)
    if not kind:
        return
    module.load_where(lambda text: any(one == name for *_, one in _taken(text)), name)
    for unit in list(module.holding(name)):
        for read in names_read(unit.root).get(name, ()) if unit.root is not None else ():
            if module.scope_of(read).home(name) is module.scope:
                yield GivenSet(read, kind, Follower(module).uses(read, is_set=True))


def _kind_of_constant(module: Module, name: str) -> str:
    """What the set holds that a name is in the file that it is imported from; empty where it is no set in sight."""
    for full in module.resolve(cst.Name(name), module.scope, None):
        place = module.neighbour(full) if module.neighbour is not None else None
        if place is None or "." in place[1]:
            continue
        other, last = place
        # In a function only what is said to be global binds a name at top level.
        other.load_where(lambda text: "global" in text, last)
        other.load_statements()
        made = other.followed(cst.Name(last), other.scope, None)
        if made is not None and makes_set(other, made.node):
            return set_kind(other, made.node)
    return ""


def _kind_of_result(module: Module, call: Call) -> str:
    """What the set holds that a function of another file returns to `call`, or one that says so; empty where it is no
    set in sight."""
    callee = CallEdges(module).callee(call.node, call.own)
    return kind_given(module, callee) if callee is not None else ""


def kind_given(module: Module, callee: Callee) -> str:
    """What the set holds that `callee` returns; empty where it is no set in sight."""
    if callee.function is None:
        return ""
    other, function = callee.module, callee.function
    if _RETURNED.search(other.text) is None:
        return ""
    if function.returns is not None and is_set(text := other.code(function.returns.annotation)):
        return elements_of(text)
    given = [one for one in returned(function) if dotted(one) != "None"] if other is not module else []
    made = [_followed(other, one) for one in given]
    return set_kind(other, made[0]) if made and all(makes_set(other, one) for one in made) else ""


def _followed(module: Module, node: cst.BaseExpression) -> cst.BaseExpression:
    value = module.followed(node, module.scope_of(node), module.order_of(node))
    return value.node if value is not None else node


def makes_set(module: Module, node: cst.BaseExpression) -> bool:
    """Whether `node` is a call, a display or a comprehension that makes a set."""
    if isinstance(node, (cst.Set, cst.SetComp)):
        return True
    makes = module.library.facts.orders.sets["makes"]
    return isinstance(node, cst.Call) and not makes.isdisjoint(module.resolve(node.func))
