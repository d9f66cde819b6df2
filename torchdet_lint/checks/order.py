"""Orders that luck decides: of files, of sets, of completion; and `hash()`, which the interpreter salts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.checks.agreement import Agreement
from torchdet_lint.dataflow.interpreter import bare
from torchdet_lint.dataflow.uses import Follower, Use, last_word
from torchdet_lint.finding import Change, Found, RelatedNode, Replace
from torchdet_lint.inference import element_kinds
from torchdet_lint.module.tree import children
from torchdet_lint.prefilter.triggers import IDENTIFIER, places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.catalogue.schema import Rule
    from torchdet_lint.module.module import Call, Module

_ORDERED = (
    "indexed", "picked", "numbered", "joined", "printed", "written", "saved", "drawn", "gathered", "returned",
    "yielded",
)  # fmt: skip
_TOLD = {
    "indexed": "a position in it is used here",
    "picked": "one of them is taken here",
    "saved": "it is saved or collated here",
    "numbered": "numbers are given out in its order here",
    "joined": "it becomes one text here",
    "printed": "it is printed here",
    "written": "it is written here in this order",
    "drawn": "it is drawn from or shuffled here: the same seed picks other elements",
    "gathered": "it becomes an array, a table or a data set here",
    "returned": "it is returned in this order",
    "yielded": "it is yielded in this order",
    "called": "it is passed on in this order",
}


def _telling(use: Use) -> tuple[RelatedNode, ...]:
    return (RelatedNode(use.node, _TOLD[use.kind]),)


# ---------------------------------------------------------------------- files

_PATH_METHODS = ("iterdir", "rglob", "glob")
_ENTRIES = "os.scandir"
_WALK = "os.walk"


def unordered_files(module: Module, rule: Rule) -> Iterator[Found]:
    """A listing of files whose order reaches a result."""
    names = tuple(name for row in rule.calls for name in row.names)
    calls = {id(call.node): call for call in module.calls_to(*names)}
    for call in module.method_calls(*_PATH_METHODS):
        if _is_path(module, call):
            calls.setdefault(id(call.node), call)
    every = sorted(calls.values(), key=lambda call: call.order)
    listings = [
        _Listing(call, _walked(module, call) if _WALK in call.names else _listed(module, call)) for call in every
    ]
    for listing in listings:
        if listing.found is not None:
            yield _together(module, listing.call, listing.found, listings)


class _Listing(NamedTuple):
    """A listing of files, and what is to be reported of it."""

    call: Call
    found: Found | None


def _together(module: Module, call: Call, found: Found, listings: Sequence[_Listing]) -> Found:
    """`found` with a fix that sorts, with the listing, all that are paired with it as long as none is sorted: those of
    the same folder, and those of the same function."""
    if not found.changes:
        return found
    folder, function = _folder(call), module.enclosing_function(call.node)
    changes = list(found.changes)
    safe = found.applicability is None
    for other, reported in listings:
        same = _folder(other) == folder
        if other is call or not (same or module.enclosing_function(other.node) is function):
            continue
        if reported is None and not _may_keep_order(module, other):
            continue
        added, sure = ((), False) if _WALK in other.names else _sorting(module, other)
        safe = safe and (sure or (not added and not same))
        changes += added
    nodes = [change.node for change in changes if isinstance(change, Replace)]
    if any(around is node for one in nodes for around in module.ancestors(one) for node in nodes):
        return found._replace(applicability="unsafe")
    return found._replace(changes=tuple(changes), applicability=None if safe else "unsafe")


def _folder(call: Call) -> str:
    """The text of what is listed."""
    if (
        call.attribute in _PATH_METHODS
        and not {"glob.glob", "glob.iglob"} & set(call.names)
        and call.receiver is not None
    ):
        node: cst.CSTNode = call.receiver
    else:
        node = call.node.args[0].value if call.node.args else call.node
    if isinstance(node, cst.Call) and last_word(node.func) == "Path" and len(node.args) == 1:
        node = node.args[0].value
    return bare(node)


def _may_keep_order(module: Module, call: Call) -> bool:
    """Whether the order of a listing that is not reported may be in something all the same."""
    loop = module.parent(call.node)
    uses = Follower(module).uses(call.node)
    if isinstance(loop, cst.For) and not uses:
        return re.search(r"\]\s*=[^=]", module.code(loop.body)) is not None
    return _only_first(module, call.node) or not all(use.kind in _FORGOTTEN for use in uses)


_FORGOTTEN = ("sorted", "measured", "told", "printed")


def _is_path(module: Module, call: Call) -> bool:
    """`iterdir` and `rglob` are pathlib's alone; `glob` also belongs to fsspec and its like, which sort."""
    assert call.receiver is not None
    if call.attribute in ("iterdir", "rglob"):
        return True
    receiver = call.receiver
    if isinstance(receiver, cst.BinaryOperation) and isinstance(receiver.operator, cst.Divide):
        return True
    names = {name.partition("()")[0] for name in module.resolve(receiver, call.scope, call.order)}
    if names & {"pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath"}:
        return True
    if isinstance(receiver, cst.Name) and "Path" in _annotation(module, receiver):
        return True
    value = module.followed(receiver, call.scope, call.order)
    if value is not None and value.node is not receiver and isinstance(value.node, cst.BinaryOperation):
        return isinstance(value.node.operator, cst.Divide)
    return _PATH_NAMES.search(last_word(receiver)) is not None


_PATH_NAMES = re.compile(r"(?:^|_)(?:path|dir|directory|folder|root|parent|cwd)$")


def _listed(module: Module, call: Call) -> Found | None:
    node = call.node
    uses = Follower(module).uses(node)
    function = module.enclosing_function(node)
    if function is not None and function.name.value.startswith("test"):
        # A test takes the one file that it has made itself.
        uses = [use for use in uses if use.kind != "picked"]
    use = _first_ordered(uses)
    if use is None:
        return None
    changes, safe = _sorting(module, call)
    details = {"call": module.code(node.func)}
    return Found(node, details, related=_telling(use), changes=changes, applicability=None if safe else "unsafe")


def _sorting(module: Module, call: Call) -> tuple[tuple[Change, ...], bool]:
    """How to sort a listing where it is made, and whether that is all the same to what takes it."""
    node = call.node
    if isinstance(module.parent(node), cst.WithItem):
        return (), False
    key = ", key=lambda entry: entry.name" if _ENTRIES in call.names else ""
    change = Replace(node, f"sorted({module.code(node)}{key})")
    outer = _consumer(module, node)
    if not key and isinstance(outer, cst.Call) and bare(outer.func) == "list" and len(outer.args) == 1:
        change = Replace(outer.func, "sorted")
    # A list has no `next`, and is not lazy: only what is gone through on the spot is surely the same.
    lazy = not {"os.listdir", "glob.glob"} & set(call.names)
    return (change,), not lazy or outer is not None


_CONSUMERS = frozenset("list tuple set frozenset enumerate zip map filter join extend array tensor len iter".split())


def _consumer(module: Module, node: cst.CSTNode) -> cst.CSTNode | None:
    """The loop, comprehension or call that goes through `node` right where it stands."""
    parent = module.parent(node)
    if isinstance(parent, (cst.For, cst.CompFor)):
        return parent if parent.iter is node else None
    call = module.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and last_word(call.func) in _CONSUMERS:
        return call
    return parent if isinstance(parent, (cst.StarredElement, cst.Arg)) and getattr(parent, "star", "*") == "*" else None


def _first_ordered(uses: Sequence[Use]) -> Use | None:
    for use in uses:
        if use.kind in _ORDERED:
            return use
    return None


def _walked(module: Module, call: Call) -> Found | None:
    """`os.walk` is in order where the folders are sorted in place and the files before they are used."""
    node = call.node
    loop = module.parent(node)
    follower = Follower(module)
    if not (isinstance(loop, cst.For) and isinstance(loop.target, cst.Tuple) and len(loop.target.elements) == 3):
        return _listed(module, call) if not _only_first(module, node) else None
    _, folders, files = (element.value for element in loop.target.elements)
    use = _first_ordered(follower.uses(node))
    if use is None and isinstance(files, cst.Name):
        use = _first_ordered(follower.uses_in(files, loop))
    body = module.code(loop.body)
    if use is None:
        return None
    in_order = not isinstance(files, cst.Name) or _sorts(body, files.value) or _only_sorted(body, files.value)
    if in_order and isinstance(folders, cst.Name) and _sorts(body, folders.value):
        return None
    return Found(node, {"call": module.code(node.func)}, "walk", related=_telling(use))


def _only_first(module: Module, node: cst.CSTNode) -> bool:
    arg = module.parent(node)
    call = module.parent(arg) if isinstance(arg, cst.Arg) else None
    return isinstance(call, cst.Call) and last_word(call.func) == "next"


def _sorts(body: str, name: str) -> bool:
    return re.search(rf"\b{name}\.sort\(|\b{name}\[:\]\s*=\s*[\w.]*sort|\b{name}\s*=\s*[\w.]*sort", body) is not None


def _only_sorted(body: str, name: str) -> bool:
    reads = re.findall(rf"(\w*)\(?\b{name}\b", body)
    return all("sort" in before or before == "len" for before in reads)


# ---------------------------------------------------------------------- sets

_SET_MAKERS = ("builtins.set", "builtins.frozenset")
_NUMBERS = re.compile(
    r"(?:^|_)(?:idx|idxs|idcs|index|indexes|indices|inds?|ids?|dims?|axes|axis|ranks?|sizes?|lengths?|lens|levels?|epochs?"
    r"|steps?|updates?|iters?|iterations?|years?|nums?|numbers?|counts?|positions?|offsets?|rows|cols|seeds?|ints|integers|ports?|gpus?|devices"
    r"|bins?|strides?|layers?|shapes?|nodes?|edges?|folds?|times?|timesteps?|thresholds?|scores?|values?)(?:_?(?:list|set|array|arr))?$"
)
_LABELS = re.compile(r"(?:^|_)(?:labels?|targets?|classes|y|ys|y_true|y_train|gt)$|label_set$")
_STRONG = ("numbered",)
_ORDERED_SET = (
    "indexed", "numbered", "joined", "written", "saved", "drawn", "gathered", "returned", "yielded",
)  # fmt: skip


def set_order(module: Module, rule: Rule) -> Iterator[Found]:
    """A set iterated into something whose order matters."""
    display = re.compile(rule.patterns[0])
    if "set(" not in module.text and not display.search(module.text):
        return
    module.load_where(_iterating(module, display))
    reported: set[tuple[cst.CSTNode, cst.CSTNode | None]] = set()
    for node in _sets(module):
        kind = _element_kind(module, node)
        if kind in ("number", "nothing"):
            continue
        for use in Follower(module).uses(node, is_set=True):
            if use.kind in (_STRONG if kind == "label" else _ORDERED_SET):
                place = (use.node, use.origin)
                if place not in reported:
                    reported.add(place)
                    yield _set_found(module, node, kind, use)
                break


def _sets(module: Module) -> list[cst.BaseExpression]:
    """The calls, displays and comprehensions that make sets, in the order of the source."""
    found: list[cst.BaseExpression] = [call.node for call in module.calls_to(*_SET_MAKERS)]
    return sorted([*found, *module.set_displays], key=module.order_of)


_CALLED = re.compile(r"\w+\(")
_NAMED = re.compile(r"([\w.]+(?:, [\w.]+)*)\s*(?::[^=\r\n]+)?=[^=\r\n]*$")
_TAKERS = r"\b(?:list|tuple|enumerate|join|iter|array|tensor|LongTensor|zip|map|sample|choice)\(\s*\(?|\*"
_LOOP = r"\bfor\b(?:(?!\b(?:if|in)\b)[^:\r\n])*\bin\s+(?:(?!sorted)[\w.]+\()?"
_SORTED = re.compile(r"\bsorted\(\s*(?:(?:list|tuple)\(\s*)?$")
_TAKEN = re.compile(rf"(?:{_TAKERS}|{_LOOP}|\breturn\s+)$")
_GONE_THROUGH = re.compile(rf"(?:{_TAKERS}|{_LOOP}|\w\.extend\()(?:self\.|cls\.)?$")
_DERIVED = re.compile(
    r"(?<![\w.])(\w+)[ \t]*=[ \t]*"
    r"([^=\r\n]*(?:\.(?:intersection|difference|union|symmetric_difference|copy)\(|[-&|^])[^\r\n]*)"
)
_BEFORE = 100


def _iterating(module: Module, display: re.Pattern[str]) -> Callable[[str], bool]:
    """Whether a unit may iterate a set: cheap evidence, so that not every unit with a set is parsed."""
    taken: set[str] = set()
    shared: set[str] = set()
    own: dict[str, set[str]] = {}
    for unit, text in zip(module.units, module.texts, strict=True):
        if "set(" not in text and "{" not in text:
            continue
        displayed = (match.start() for match in display.finditer(text)) if "{" in text else ()
        for start in (*places("set", text), *places("frozenset", text), *displayed):
            if text[start] != "{" and not _CALLED.match(text, start):
                continue
            before = text[max(0, start - _BEFORE) : start]
            line = before.replace("\r", "\n").rpartition("\n")[2]
            if line.count('"') % 2 or line.count("'") % 2 or _SORTED.search(before):
                continue
            if _TAKEN.search(before):
                taken.add(text)
            elif named := _NAMED.search(before):
                for name in named[1].split(", "):
                    alone = "." not in name and unit.piece.kind == "function"
                    (own.setdefault(text, set()) if alone else shared).add(name.rpartition(".")[2])
    if not shared and not own:
        return taken.__contains__
    gone_through: set[str] = set()
    for text in module.texts:
        for name in _with_derived(shared | own.get(text, set()), text):
            if any(_GONE_THROUGH.search(text, max(0, start - _BEFORE), start) for start in places(name, text)):
                taken.add(text)
                gone_through.add(name)
    if gone_through & shared:
        makes = re.compile(rf"\b(?:{'|'.join(sorted(gone_through & shared))})\s*(?::[^=\n]+)?=[^=]")
        taken.update(filter(makes.search, module.texts))
    return taken.__contains__


def _with_derived(names: set[str], text: str) -> set[str]:
    """The sets `names`, and those that `text` makes of them, as `both = left & right`."""
    found = set(names)
    for match in _DERIVED.finditer(text):
        if not found.isdisjoint(IDENTIFIER.findall(match[2])):
            found.add(match[1])
    return found


def _element_kind(module: Module, node: cst.BaseExpression) -> str:
    """What the set holds: `number`, `text`, `set` (which cannot be sorted), `identity` (hashed by address), `label`,
    `unknown`, or `nothing`, which stands for one element too."""
    if isinstance(node, cst.Set) and len(node.elements) == 1 and isinstance(node.elements[0], cst.Element):
        return "nothing"
    if not isinstance(node, cst.Call):
        return _kind(module, node, 4)
    if node.args:
        return _kind(module, node.args[0].value, 4)
    statement = module.parent(node)
    targets = [one.target for one in statement.targets] if isinstance(statement, cst.Assign) else []
    if isinstance(statement, cst.AnnAssign):
        told = element_kinds.elements_of(module.code(statement.annotation.annotation))
        if told != "unknown":
            return told
        targets = [statement.target]
    if not targets:
        return "nothing"
    kinds: set[str] = set()
    for target in targets:
        if _NUMBERS.search(last_word(target)):
            return "number"
        name = bare(target)
        module.load_where(_holding(f"{last_word(target)}.add("))
        for call in module.method_calls("add"):
            if call.receiver is not None and bare(call.receiver) == name and len(call.node.args) == 1:
                kinds.add(_scalar(module, call.node.args[0].value))
    if not kinds and all(isinstance(target, cst.Name) and _stays_empty(module, target) for target in targets):
        return "nothing"
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _holding(part: str) -> Callable[[str], bool]:
    return lambda text: part in text


def _stays_empty(module: Module, name: cst.Name) -> bool:
    """Whether nothing is put into a function's local set: no method is called on it, and no call is given it."""
    function = module.enclosing_function(name)
    if function is None:
        return False
    grown = rf"\b{name.value}(?:\.\w|\s*[|^]=)|[(,=*]\s*{name.value}\s*[,)]|\bnonlocal\b"
    return re.search(grown, module.code(function)) is None


def _kind(module: Module, node: cst.BaseExpression, depth: int) -> str:
    """What the elements of `node` are."""
    if isinstance(node, (cst.List, cst.Tuple, cst.Set)) and node.elements:
        kinds = {_scalar(module, element.value) for element in node.elements}
        return kinds.pop() if len(kinds) == 1 else "unknown"
    if isinstance(node, (cst.GeneratorExp, cst.ListComp, cst.SetComp)):
        return _scalar(module, node.elt)
    if isinstance(node, cst.BinaryOperation):
        return _kind(module, node.left, depth)
    if isinstance(node, cst.Subscript):
        if isinstance(node.value, cst.Call) and last_word(node.value.func) in _PLACES:
            return _kind_of_call(module, node.value, depth)
        index = node.slice[0].slice
        return "number" if isinstance(index, cst.Slice) and len(node.slice) > 1 else "unknown"
    if isinstance(node, cst.Call):
        return _kind_of_call(module, node, depth)
    if isinstance(node, (cst.Name, cst.Attribute)):
        told = element_kinds.elements(module, node)
        if told != "unknown":
            return told
        if _NUMBERS.search(last_word(node)):
            return "number"
        value = module.followed(node, module.scope_of(node), module.order_of(node))
        found = "unknown"
        if value is not None and value.node is not node and depth > 0:
            found = _kind(module, value.node, depth - 1)
        return "label" if found == "unknown" and _LABELS.search(last_word(node)) else found
    return "unknown"


def _kind_of_call(module: Module, node: cst.Call, depth: int) -> str:
    told = element_kinds.elements(module, node)
    if told != "unknown":
        return told
    word = last_word(node.func)
    if word in ("range", "tolist", "arange", "unique", "numpy", "flatten", "ravel"):
        return "number"
    if word in _PLACES:
        # A tensor is gone through as tensors, which hash by their address.
        of_torch = any(name.startswith("torch.") for name in module.resolve(node.func))
        return "identity" if of_torch else "number"
    if word in _MOVES and isinstance(node.func, cst.Attribute) and not node.args:
        return "identity"
    if word in ("split", "listdir", "splitlines"):
        return "text"
    if word in ("parameters", "modules", "children", "buffers"):
        return "identity"
    if word in ("set", "list", "tuple", "sorted", "frozenset", "chain") and node.args and depth > 0:
        return _kind(module, node.args[0].value, depth - 1)
    if word != "values" and _NUMBERS.search(word):
        return "number"
    return "unknown"


_PLACES = frozenset("where nonzero argwhere flatnonzero argsort".split())
_MOVES = frozenset("cpu cuda detach".split())
_MAKE_NUMBERS = frozenset("int len float item round ord size numel dim min max abs getuid".split())


def _scalar(module: Module, node: cst.BaseExpression) -> str:
    """What `node` is as an element."""
    if isinstance(node, (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)):
        return "text"
    if isinstance(node, (cst.Integer, cst.Float)):
        return "number"
    if isinstance(node, cst.Call):
        word = last_word(node.func)
        if word in _MAKE_NUMBERS:
            return "number"
        if word in ("str", "lower", "upper", "strip", "join", "format", "replace", "basename", "decode", "title"):
            return "text"
        if word in ("tuple", "frozenset") and node.args:
            kind = _kind(module, node.args[0].value, 2)
            return "set" if word == "frozenset" and kind != "number" else kind
    if isinstance(node, cst.Tuple):
        kinds = {_scalar(module, element.value) for element in node.elements}
        return "number" if kinds == {"number"} else "unknown"
    if isinstance(node, cst.BinaryOperation):
        kinds = {_scalar(module, node.left), _scalar(module, node.right)}
        return "text" if "text" in kinds else "number" if "number" in kinds else "unknown"
    if isinstance(node, (cst.Name, cst.Attribute)) and (told := element_kinds.single(module, node)) != "unknown":
        return told
    if isinstance(node, cst.Name) and len(node.value) == 1 and node.value in "ijkn":
        return "number"
    if isinstance(node, (cst.Name, cst.Attribute)) and _NUMBERS.search(last_word(node)):
        return "number"
    if isinstance(node, cst.Name):
        return _looped(module, node)
    return "unknown"


def _looped(module: Module, node: cst.Name) -> str:
    """The kind of a loop's variable."""
    home = module.scope_of(node).home(node.value)
    bindings = home.bindings[node.value] if home is not None else []
    if len(bindings) == 1 and bindings[0].kind == "loop" and bindings[0].value is not None and not bindings[0].path:
        told = element_kinds.elements(module, bindings[0].value)
        if told != "unknown":
            return told
    for binding in bindings:
        if binding.kind != "loop" or not isinstance(binding.value, cst.Call):
            continue
        word = last_word(binding.value.func)
        if word == "range" and not binding.path:
            return "number"
        if word == "enumerate" and binding.path == (0,):
            return "number"
    return "unknown"


def _set_found(module: Module, node: cst.BaseExpression, kind: str, use: Use) -> Found:
    """Sort the set where it is gone through: one that is kept must stay a set."""
    source = module.code(node)
    details = {"set": f"`{source}`" if len(source) < 60 and "\n" not in source else "this set"}
    changes: tuple[Change, ...] = ()
    safe = False
    if kind not in ("identity", "set") and use.origin is not None and not _holds_functions(kind, use.origin):
        agreement = Agreement(
            module,
            lambda made: _element_kind(module, made),
            lambda value: _kind(module, value, 4),
            lambda element: _scalar(module, element),
        )
        places, safe = agreement.of(use.origin)
        changes = tuple(_sorted_at(module, place) for place in places)
    return Found(
        node,
        details,
        "identity" if kind == "identity" else "",
        related=_telling(use),
        changes=changes,
        applicability="safe" if safe else "unsafe",
    )


def _holds_functions(kind: str, origin: cst.BaseExpression) -> bool:
    """Whether a set of unknown elements is named after functions, which cannot be sorted."""
    return kind == "unknown" and _FUNCTIONS.search(last_word(origin)) is not None


_FUNCTIONS = re.compile(r"(?:^|_)(?:functions|funcs|fns|callables|callbacks|hooks)$")


def _sorted_at(module: Module, place: cst.BaseExpression) -> Replace:
    """Sort what is gone through at `place`."""
    parent = module.parent(place)
    call = module.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and bare(call.func) == "list" and len(call.args) == 1 and not call.args[0].star:
        return Replace(call.func, "sorted")
    return Replace(place, f"sorted({module.code(place)})")


# ---------------------------------------------------------------------- completion


def completion_order(module: Module, rule: Rule) -> Iterator[Found]:
    """Results collected in the order in which workers happened to finish."""
    sets = rule.words["sets"]
    names = tuple(name for row in rule.calls for name in row.names if name not in sets)
    calls = {id(call.node): call for call in module.calls_to(*names)}
    for call in module.method_calls(*_UNORDERED):
        calls.setdefault(id(call.node), call)
    for call in sorted(calls.values(), key=lambda call: call.order):
        use = _first_unordered(module, call.node)
        if use is not None:
            yield Found(call.node, {"call": module.code(call.node.func)}, related=_telling(use))
    for call in module.calls_to(*sets):
        use = _first_ordered(_uses_of_done(module, call.node))
        if use is not None:
            yield Found(call.node, {"call": module.code(call.node.func)}, "set", related=_telling(use))


_UNORDERED = ("imap_unordered", "map_unordered")


def _first_unordered(module: Module, node: cst.Call) -> Use | None:
    keys = _has_keys(module, node)
    for use in Follower(module).uses(node):
        if keys and use.kind != "written":
            continue
        direct = isinstance(use.node, cst.Call) and any(arg.value is node for arg in use.node.args)
        if use.kind in _ORDERED or (use.kind == "called" and not direct):
            return use
    return None


def _uses_of_done(module: Module, node: cst.BaseExpression) -> list[Use]:
    """The uses of the set of finished tasks: `done` of `done, pending = wait(…)`, or `wait(…).done`."""
    parent = module.parent(node)
    if isinstance(parent, cst.Await):
        return _uses_of_done(module, parent)
    if isinstance(parent, cst.Attribute) and parent.attr.value == "done":
        return [] if _has_keys(module, parent) else Follower(module).uses(parent, is_set=True)
    if not isinstance(parent, cst.Assign) or not isinstance(target := parent.targets[0].target, cst.Tuple):
        return []
    done = target.elements[0].value
    if not isinstance(done, cst.Name) or _has_keys(module, node, done.value):
        return []
    return Follower(module).uses_of_name(done, parent, is_set=True)


def _has_keys(module: Module, node: cst.BaseExpression, name: str = "") -> bool:
    """Whether the loop over `node`, or over its `name`, looks up which task it was that finished, or takes pairs."""
    for around in module.ancestors(node):
        if isinstance(around, cst.For):
            return _takes_keys(module, around)
        if isinstance(around, cst.CompFor):
            return False
        if isinstance(around, (cst.Assign, cst.AnnAssign)):
            function = module.enclosing_function(around)
            loops = _loops(function) if function is not None else ()
            return any(_takes_keys(module, loop) for loop in loops if not name or bare(loop.iter) == name)
    return False


def _takes_keys(module: Module, loop: cst.For) -> bool:
    if isinstance(loop.target, cst.Tuple):
        counted = isinstance(loop.iter, cst.Call) and last_word(loop.iter.func) == "enumerate"
        return not counted or isinstance(loop.target.elements[-1].value, cst.Tuple)
    code = module.code(loop.body)
    return re.search(rf"\[\s*{re.escape(bare(loop.target))}\s*\]|\.append\(\(", code) is not None


def _loops(root: cst.CSTNode) -> Iterator[cst.For]:
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.For) and isinstance(node.iter, cst.Name):
            yield node
        stack.extend(children(node))


# ---------------------------------------------------------------------- hash()


_SEEDERS = re.compile(r"seed|^(?:default_rng|RandomState|Random|SeedSequence|PRNGKey|Generator|PCG64|MT19937|Philox)$")
_FILES = re.compile(r"path|file|fname|folder|(?:^|_)dir(?:$|_)")
_FILE_TEXT = re.compile(r"/|\.\w{1,5}$")
_FILE_CALLS = frozenset({"os.path.join", "builtins.open", "pathlib.Path", "torch.save", "torch.load"})
_UNCHANGED = frozenset(f"builtins.{word}" for word in ("abs", "int", "str", "float", "hex", "format"))
_BUCKETS = (cst.Modulo, cst.BitAnd, cst.FloorDivide, cst.RightShift)
_USES = {
    "seed": "a seed is made of it",
    "bucket": "a bucket or a split is chosen by it",
    "file": "a file is named after it",
    "order": "an order is made of it",
}


def hash_seed(module: Module, rule: Rule) -> Iterator[Found]:
    """`hash()` of what may hold text, feeding a seed, a bucket, a name or an order."""
    for call in list(module.calls_to("builtins.hash")):
        if len(call.node.args) != 1 or _is_number(module, call.node.args[0].value, 4):
            continue
        function = module.enclosing_function(call.node)
        if function is not None and function.name.value == "__hash__":
            continue
        use = _hash_use(module, call.node, 6)
        if use:
            yield Found(call.node, {"use": _USES[use]})
    for call in list(module.calls):
        key = call.keyword_node("key")
        if key is not None and isinstance(key.value, cst.Name) and "builtins.hash" in module.resolve(key.value):
            yield Found(key.value, {"use": _USES["order"]})


def _is_wide_mask(module: Module, node: cst.BinaryOperation) -> bool:
    """Whether `hash(x) & mask` only makes the number unsigned, as far as one can see: no bucket has 32 bits."""
    if not isinstance(node.operator, cst.BitAnd):
        return False
    mask = module.value(node.right)
    return not (isinstance(mask.constant, int) and mask.constant < 1 << 31)


def _is_number(module: Module, node: cst.BaseExpression, depth: int) -> bool:
    """Whether the value is evidently a number or made of numbers: their hashes are not salted."""
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_is_number(module, element.value, depth) for element in node.elements)
    if isinstance(node, cst.Call) and last_word(node.func) in ("tuple", "frozenset", "list", "sorted") and node.args:
        return _is_number(module, node.args[0].value, depth)
    if isinstance(node, (cst.GeneratorExp, cst.ListComp)):
        return _is_number(module, node.elt, depth)
    if isinstance(node, cst.BinaryOperation):
        return _is_number(module, node.left, depth) and _is_number(module, node.right, depth)
    if isinstance(node, cst.IfExp):
        return _is_number(module, node.body, depth) and _is_number(module, node.orelse, depth)
    if isinstance(node, cst.Name) and node.value in ("None", "True", "False"):
        return True
    if isinstance(node, cst.Subscript):
        return _is_number(module, node.value, depth)
    if isinstance(node, cst.Attribute) and node.attr.value in ("shape", "device_index"):
        return True
    if isinstance(node, cst.Name) and _counts(module, node):
        return True
    if isinstance(node, cst.Name) and (annotation := _annotation(module, node)):
        return _is_numeric(annotation)
    if isinstance(node, cst.Call) and (annotation := _returned_annotation(module, node)):
        return _is_numeric(annotation)
    if _scalar(module, node) == "number" or _kind(module, node, 0) == "number":
        return True
    value = module.followed(node, module.scope_of(node), module.order_of(node)) if depth > 0 else None
    return value is not None and value.node is not node and _is_number(module, value.node, depth - 1)


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


def _is_numeric(annotation: str) -> bool:
    """Whether an annotation, `None` aside, says number or numbers."""
    annotation = annotation.removesuffix("|None").removeprefix("typing.")
    if annotation.startswith("Optional["):
        annotation = annotation[len("Optional[") : -1]
    return _NUMERIC.fullmatch(annotation) is not None


_NUMERIC = re.compile(r"(?:(?:[lL]ist|[tT]uple|Sequence)\[)?(?:int|float|bool)(?:,\.\.\.|,int)*\]?")


def _returned_annotation(module: Module, node: cst.Call) -> str:
    """What the function or method of the file that `node` calls says that it returns, or nothing."""
    word = last_word(node.func)
    own = isinstance(node.func, cst.Attribute) and bare(node.func.value) in ("self", "cls")
    if not own and not isinstance(node.func, cst.Name):
        return ""
    found = re.search(
        rf"^[ \t]*(?:async )?def {re.escape(word)}\((?:[^()]|\([^()]*\))*\)\s*->\s*([^:\n]+):",
        module.text,
        re.MULTILINE,
    )
    return "".join(found[1].split()) if found is not None else ""


def _annotation(module: Module, node: cst.Name) -> str:
    """The annotation of the parameter that `node` is, or nothing."""
    home = module.scope_of(node).home(node.value)
    for binding in home.bindings[node.value] if home is not None else ():
        if isinstance(binding.node, cst.Param) and binding.node.annotation is not None:
            return bare(binding.node.annotation.annotation)
    return ""


def _hash_use(module: Module, node: cst.BaseExpression, depth: int) -> str:
    """What the value of `node` decides: a key of `_USES`, or nothing."""
    parent = module.parent(node)
    if parent is None or depth <= 0:
        return ""
    if isinstance(parent, cst.BinaryOperation):
        if isinstance(parent.operator, _BUCKETS) and node is parent.left:
            return _seeded(module, parent, depth) or ("" if _is_wide_mask(module, parent) else "bucket")
        if isinstance(parent.operator, cst.Divide) and isinstance(node, cst.FormattedString):
            return "file"
        return _hash_use(module, parent, depth - 1)
    if isinstance(parent, cst.Arg):
        return _hash_argument(module, node, parent, depth)
    if isinstance(parent, (cst.UnaryOperation, cst.IfExp, cst.BooleanOperation)):
        return _hash_use(module, parent, depth - 1)
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
        operators = parent.comparisons if isinstance(parent, cst.Comparison) else (parent,)
        return "bucket" if isinstance(operators[0].operator, (cst.LessThan, cst.GreaterThan)) else ""
    if isinstance(parent, cst.FormattedStringExpression):
        return _hash_text(module, parent, depth)
    if isinstance(parent, (cst.AssignTarget, cst.Assign, cst.AnnAssign)):
        return _hash_assigned(module, parent, depth)
    if isinstance(parent, cst.Lambda):
        arg = module.parent(parent)
        return "order" if isinstance(arg, cst.Arg) and arg.keyword is not None and arg.keyword.value == "key" else ""
    if isinstance(parent, cst.Return):
        function = module.enclosing_function(parent)
        return "seed" if function is not None and "seed" in function.name.value else ""
    return ""


def _seeded(module: Module, node: cst.BaseExpression, depth: int) -> str:
    found = _hash_use(module, node, depth - 1)
    return found if found == "seed" else ""


def _hash_argument(module: Module, node: cst.BaseExpression, arg: cst.Arg, depth: int) -> str:
    call = module.parent(arg)
    if not isinstance(call, cst.Call):
        return ""
    if arg.keyword is not None and ("seed" in arg.keyword.value or arg.keyword.value == "random_state"):
        return "seed"
    word = last_word(call.func)
    if _SEEDERS.search(word):
        return "seed"
    names = module.resolve(call.func)
    if not _UNCHANGED.isdisjoint(names):
        return _hash_use(module, call, depth - 1)
    if not _FILE_CALLS.isdisjoint(names) and isinstance(node, (cst.FormattedString, cst.BinaryOperation, cst.Call)):
        return "file"
    return ""


def _hash_text(module: Module, part: cst.FormattedStringExpression, depth: int) -> str:
    text = module.parent(part)
    assert isinstance(text, cst.FormattedString)
    if any(isinstance(one, cst.FormattedStringText) and _FILE_TEXT.search(one.value) for one in text.parts):
        return "file"
    return _hash_use(module, text, depth - 1)


def _hash_assigned(module: Module, node: cst.CSTNode, depth: int) -> str:
    targets = [one.target for one in node.targets] if isinstance(node, cst.Assign) else [node.target]  # type: ignore[attr-defined]
    for target in targets:
        word = last_word(target)
        if "seed" in word:
            return "seed"
        if not isinstance(target, cst.Name):
            continue
        follower = Follower(module)
        for load in follower.loads_after(target, node):
            found = _hash_use(module, load, depth - 1)
            if found:
                return found
    return ""
