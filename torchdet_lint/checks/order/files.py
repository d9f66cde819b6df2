"""TDL304: listings of files -> those whose order reaches a result."""

from __future__ import annotations

import itertools
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import libcst as cst

from torchdet_lint.checks.order.objects import parameter_annotation
from torchdet_lint.checks.order.results import first_ordered, severity_of, telling
from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.dataflow.follower import Follower
from torchdet_lint.dataflow.syntax import bare, last_word, nodes
from torchdet_lint.dataflow.uses import NO_RESULT
from torchdet_lint.finding import Change, RelatedNode, Replace, Violation
from torchdet_lint.module.names import live
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.dataflow.uses import Use
    from torchdet_lint.finding import Applicability
    from torchdet_lint.module.module import Call, Module


_ENTRIES = "os.scandir"
_WALK = "os.walk"
# What a walk gives of a folder besides its path.
_FOLDERS = ("[1]", "[-2]")
_LISTS = (*_FOLDERS, "[2]", "[-1]")
# So many callers of a function are asked for the path that they give.
_CALLERS = 20
# A fix that sorts more listings than this at once is too long to read.
_PAIRED = 40
_WILDCARD = lazy(r"[*?[]")
# What gives the paths of a listing in whatever order.
_KEEP_PATHS = frozenset({"list", "reversed", "set", "sorted", "tqdm", "tuple"})


def unordered_files(module: Module, rule: Rule) -> Iterator[Violation]:
    """A listing of files whose order reaches a result. What `setup.py` lists is compiled, linked and installed."""
    if PurePath(module.source.path).name == "setup.py":
        return
    files = module.library.facts.orders.files
    names = tuple(name for row in rule.calls for name in row.names)
    calls = {id(call.node): call for call in module.calls_to(*names)}
    for call in module.method_calls(*sorted(files["methods"])):
        if _is_path(module, call):
            calls.setdefault(id(call.node), call)
    every = sorted(calls.values(), key=lambda call: call.order)
    uses = {id(call): _uses(module, call) for call in every if _WALK not in call.names}
    zips = _zips(module, every, uses)
    listings = [
        _Listing(call, _listed(module, call, uses[id(call)], zips) if id(call) in uses else _walked(module, call))
        for call in every
    ]
    pairs: dict[object, list[_Listing]] = {}
    for listing in listings:
        pairs.setdefault(_folder(module, listing.call), []).append(listing)
        pairs.setdefault(module.enclosing_function(listing.call.node), []).append(listing)
    for listing in listings:
        if listing.found is not None:
            yield _together(module, listing.call, listing.found, pairs)


class _Listing(NamedTuple):
    """A listing of files, and what is to be reported of it."""

    call: Call
    found: Violation | None


def _zips(module: Module, every: Sequence[Call], uses: Mapping[int, Sequence[Use]]) -> dict[int, cst.Call]:
    """The call of `zip` that pairs the files of a listing with those of another one, by the listing: what belongs
    together there hangs on both orders."""
    zips: dict[int, cst.Call] = {}
    among: dict[int, dict[str, list[Call]]] = {}
    for call in every:
        for use in uses.get(id(call), ()):
            zipped = module.parent(use.node) if use.kind == "paired" and not use.file else None
            if isinstance(zipped, cst.Call) and isinstance(use.node, cst.Arg):
                told = _told_apart(module, call, zipped, use.node)
                zips[id(zipped)] = zipped
                among.setdefault(id(zipped), {}).setdefault(told, []).append(call)
    return {
        id(call): zips[zipped]
        for zipped, listings in among.items()
        for calls in listings.values()
        for call in calls
        if len(listings.keys() - {""}) > 1
    }


def _told_apart(module: Module, call: Call, zipped: cst.Call, arg: cst.Arg) -> str:
    """The text of the listing `call`, or of the call of the function that makes it, of which `arg` takes the files;
    empty where that is something else."""
    function = module.enclosing_function(call.node)
    if function is module.enclosing_function(zipped):
        return bare(call.node)
    value = module.followed(arg.value, module.scope_of(arg), module.order_of(arg))
    made = value.node if value is not None else arg.value
    own = isinstance(made, cst.Call) and function is not None and last_word(made.func) == function.name.value
    return bare(made) if own else ""


def _together(module: Module, call: Call, found: Violation, pairs: Mapping[object, Sequence[_Listing]]) -> Violation:
    """`found` with a fix that sorts, with the listing, all that are paired with it as long as none is sorted: those of
    the same folder, and those of the same function."""
    if not found.changes:
        return found
    folder, function = _folder(module, call), module.enclosing_function(call.node)
    changes = list(found.changes)
    safe = found.applicability is None
    paired = {id(one.call): one for one in (*pairs[folder], *pairs[function])}
    if len(paired) > _PAIRED:
        return found._replace(applicability="unsafe")
    for other, reported in sorted(paired.values(), key=lambda one: one.call.order):
        same = _folder(module, other) == folder
        if other is call:
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


def _folder(module: Module, call: Call) -> str:
    """The text of what is listed."""
    files = module.library.facts.orders.files
    if call.attribute in files["methods"] and not files["functions"] & set(call.names) and call.receiver is not None:
        node: cst.CSTNode = call.receiver
    else:
        node = call.node.args[0].value if call.node.args else call.node
    if isinstance(node, cst.Call) and last_word(node.func) == "Path" and len(node.args) == 1:
        node = node.args[0].value
    if isinstance(node, cst.Name):
        value = module.followed(node, call.scope, call.order)
        return bare(value.node if value is not None and value.scope is call.scope else node)
    return bare(node)


def _may_keep_order(module: Module, call: Call) -> bool:
    """Whether the order of a listing that is not reported may be in something all the same."""
    loop = module.parent(call.node)
    uses = Follower(module).uses(call.node)
    if isinstance(loop, cst.For) and not uses:
        return re.search(r"\]\s*=[^=]", module.code(loop.body)) is not None
    return _only_first(module, call.node) or not all(use.kind in NO_RESULT for use in uses)


def _is_path(module: Module, call: Call) -> bool:
    """`iterdir` and `rglob` are pathlib's alone; `glob` also belongs to fsspec and its like, which sort."""
    assert call.receiver is not None
    files = module.library.facts.orders.files
    if _names(module, call, _first_of_path(module, call, call.receiver)) & files["archives"]:
        return False
    if call.attribute in files["own-methods"]:
        return True
    receiver = call.receiver
    if isinstance(receiver, cst.BinaryOperation) and isinstance(receiver.operator, cst.Divide):
        return True
    if _names(module, call, receiver) & files["paths"]:
        return True
    if isinstance(receiver, cst.Name) and (
        "Path" in parameter_annotation(module, receiver) or _is_listed_path(module, call, receiver)
    ):
        return True
    value = module.followed(receiver, call.scope, call.order)
    if value is not None and value.node is not receiver and isinstance(value.node, cst.BinaryOperation):
        return isinstance(value.node.operator, cst.Divide)
    return module.library.facts.orders.endings["paths"].search(last_word(receiver)) is not None


def _is_listed_path(module: Module, call: Call, name: cst.Name) -> bool:
    """Whether `name` is what a loop gets of a listing of paths: `for folder in sorted(root.iterdir())`."""
    home = call.scope.home(name.value)
    if home is None:
        return False
    found = live(home.bindings[name.value], call.order if home.function is call.scope.function else None)
    listed = [_listing_in(module, one.value) for one in found if one.kind == "loop" and not one.path]
    known = [one for one in listed if one is not None and _is_path(module, one)]
    return bool(found) and len(known) == len(found)


def _listing_in(module: Module, over: cst.BaseExpression | None) -> Call | None:
    """The call of a method of a path that a loop goes through, as it comes or put in order."""
    while isinstance(over, cst.Call) and isinstance(over.func, cst.Name) and over.args:
        over = over.args[0].value if over.func.value in _KEEP_PATHS else None
    made = module.call_at(over) if isinstance(over, cst.Call) else None
    methods = module.library.facts.orders.files["methods"]
    return made if made is not None and made.attribute in methods and made.receiver is not None else None


def _names(module: Module, call: Call, path: cst.BaseExpression) -> set[str]:
    """The names of the classes that `path`, which `call` lists, may be of."""
    return {name.partition("()")[0] for name in module.resolve(path, call.scope, call.order)}


def _first_of_path(module: Module, call: Call, path: cst.BaseExpression) -> cst.BaseExpression:
    """`root` of `root / "train" / name`, also where that has a name."""
    value = module.followed(path, call.scope, call.order)
    path = value.node if value is not None else path
    while isinstance(path, cst.BinaryOperation) and isinstance(path.operator, cst.Divide):
        path = path.left
    return path


def _uses(module: Module, call: Call) -> list[Use]:
    """What is done with a listing, unless it is one of one file."""
    if _is_one_file(module, call):
        return []
    uses = Follower(module).uses(call.node)
    function = module.enclosing_function(call.node)
    if function is not None and function.name.value.startswith("test"):
        # A test takes the one file that it has made itself.
        uses = [use for use in uses if use.kind not in ("picked", "first")]
    return uses


def _is_last(use: Use) -> bool:
    """Whether the last file is taken, which is likely to be meant as the newest: `paths[-1]`."""
    taken = use.node if use.kind == "picked" else None
    index = taken.slice[0].slice if isinstance(taken, cst.Subscript) and len(taken.slice) == 1 else None
    return isinstance(index, cst.Index) and bare(index.value) == "-1"


def _listed(module: Module, call: Call, uses: Sequence[Use], zips: Mapping[int, cst.Call]) -> Violation | None:
    node = call.node
    use = first_ordered(uses)
    if use is not None:
        related = telling(use)
    elif id(call) in zips:
        related = (RelatedNode(zips[id(call)], "its files are paired with those of another listing here"),)
    else:
        return None
    changes, safe = _sorting(module, call)
    details = {"call": module.code(node.func), "help": "entries" if _ENTRIES in call.names else "listing"}
    if use is not None and _is_last(use):
        # By name, the last of `epoch_9` and `epoch_10` is the ninth.
        safe, details["help"] = False, "last"
    elif use is not None and use.kind in ("picked", "first") and _goes_down(module, call):
        safe, details["help"] = False, "down"
    applicability: Applicability | None = None if safe else "unsafe"
    return Violation(node, details, "", severity_of(use), related=related, changes=changes, applicability=applicability)


def _goes_down(module: Module, call: Call) -> bool:
    """Whether `call` lists a folder and then those in it: the files of the top come first there, whatever their
    names."""
    if call.attribute == "rglob":
        return True
    pattern = call.node.args[0].value if call.node.args else None
    return pattern is not None and any("**" in piece for piece in _pieces(module, pattern, call))


def _is_one_file(module: Module, call: Call) -> bool:
    """Whether `call` looks for a path without a wildcard, in a folder: it finds one file or none."""
    functions = module.library.facts.orders.files["functions"]
    if not call.node.args or not (functions & set(call.names) or call.attribute == "glob"):
        return False
    paths = [list(_pieces(module, node, site)) for node, site in _given(module, call.node.args[0].value, call)]
    return bool(paths) and all(
        pieces and pieces[-1] and not any(_WILDCARD.search(piece) for piece in pieces) for pieces in paths
    )


def _given(module: Module, node: cst.BaseExpression, call: Call) -> Iterator[tuple[cst.BaseExpression, Call]]:
    """What `node` is and the call that says so: where it is a parameter, what each caller in the file gives for it."""
    home = call.scope.home(node.value) if isinstance(node, cst.Name) else None
    bound = home.bindings[node.value] if home is not None and isinstance(node, cst.Name) else []
    function = home.function.node if home is not None else None
    if not isinstance(function, cst.FunctionDef) or [binding.kind for binding in bound] != ["parameter"]:
        yield node, call
        return
    edges = CallEdges(module)
    callers = edges.callers(function)
    if not 0 < len(callers) <= _CALLERS:
        yield node, call
        return
    for site in callers:
        caller = module.call_at(site)
        callee = edges.callee(site, caller.own) if caller is not None else None
        given = [arg for arg in site.args if callee is not None and callee.parameter(site, arg) == bare(node)]
        if caller is None or not given:
            yield node, call
            return
        yield given[0].value, caller


def _pieces(module: Module, node: cst.BaseExpression, call: Call, depth: int = 4) -> Iterator[str]:
    """The texts of which a path is put together, in their order; empty for what nobody can see."""
    value = module.followed(node, call.scope, call.order) if depth else None
    if value is not None and value.known:
        yield str(value.constant)
        return
    made = node if value is None else value.node
    if isinstance(made, cst.BinaryOperation):
        parts: list[cst.BaseExpression] = [made.left, made.right]
    elif isinstance(made, cst.FormattedString):
        for part in made.parts:
            if isinstance(part, cst.FormattedStringText):
                yield part.value
            else:
                assert isinstance(part, cst.FormattedStringExpression)
                yield from _pieces(module, part.expression, call, depth - 1)
        return
    elif isinstance(made, cst.Call) and last_word(made.func) in ("join", "str", "Path"):
        parts = [arg.value for arg in made.args]
    else:
        yield ""
        return
    for one in parts:
        yield from _pieces(module, one, call, depth - 1)


def _sorting(module: Module, call: Call) -> tuple[tuple[Change, ...], bool]:
    """How to sort a listing where it is made, and whether that is all the same to what takes it."""
    node = call.node
    if isinstance(module.parent(node), cst.WithItem):
        return (), False
    if _WALK in call.names:
        return _sorting_walk(module, node), True
    key = ", key=lambda entry: entry.name" if _ENTRIES in call.names else ""
    text = f"sorted({module.code(node)}{key})"
    if _only_first(module, node):
        return (Replace(node, f"iter({text})"),), True
    outer = _consumer(module, node)
    change = None
    if not key and isinstance(outer, cst.Call) and bare(outer.func) == "list" and len(outer.args) == 1:
        change = Replace(outer.func, "sorted")
    # A list has no `next`, and is not lazy: only what is gone through on the spot is surely the same.
    lazy = outer is None and not module.library.facts.orders.files["lists"] & set(call.names)
    return (change or Replace(node, f"iter({text})" if lazy and "next(" in module.text else text),), not lazy


def _sorting_walk(module: Module, node: cst.Call) -> tuple[Change, ...]:
    """How to sort a walk and the files of each folder, in a comprehension that goes through these and no more."""
    loop = module.parent(node)
    inner = loop.inner_for_in if isinstance(loop, cst.CompFor) else None
    if not isinstance(loop, cst.CompFor) or inner is None or not isinstance(loop.target, cst.Tuple):
        return ()
    names = [element.value.value for element in loop.target.elements if isinstance(element.value, cst.Name)]
    text = "".join(module.code(node) for node in itertools.islice(module.ancestors(loop), 1))
    uses = [len(re.findall(rf"\b{re.escape(name)}\b", text)) for name in names[1:]]
    if len(names) != 3 or uses != [1, 2] or bare(inner.iter) != names[2]:
        return ()
    return Replace(node, f"sorted({module.code(node)})"), Replace(inner.iter, f"sorted({names[2]})")


def _consumer(module: Module, node: cst.CSTNode) -> cst.CSTNode | None:
    """The loop, comprehension or call that goes through `node` right where it stands."""
    parent = module.parent(node)
    if isinstance(parent, (cst.For, cst.CompFor)):
        return parent if parent.iter is node else None
    call = module.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and last_word(call.func) in module.library.facts.orders.words["goes-through"]:
        return call
    return parent if isinstance(parent, (cst.StarredElement, cst.Arg)) and getattr(parent, "star", "*") == "*" else None


def _walked(module: Module, call: Call) -> Violation | None:
    """`os.walk` is in order where the folders are sorted in place and the files before they are used."""
    node = call.node
    loop = module.parent(node)
    follower = Follower(module)
    if _only_first(module, node):
        return _first_folder(module, call)
    if (sorting := _sorted_loop(module, loop)) is not None:
        return _walked_by_path(module, call, sorting)
    if not (isinstance(loop, cst.For) and isinstance(loop.target, cst.Tuple) and len(loop.target.elements) == 3):
        return _listed(module, call, _uses(module, call), {})
    _, folders, files = (element.value for element in loop.target.elements)
    body = module.code(loop.body)
    if _takes_one_folder(loop):
        lists = [one for one in (folders, files) if isinstance(one, cst.Name) and not _sorts(body, one.value)]
        use = first_ordered([use for one in lists for use in follower.uses_in(one, loop)])
        details = {"call": module.code(node.func)}
        return _found(node, details, use) if use is not None else None
    use = first_ordered(follower.uses(node))
    if use is None and isinstance(files, cst.Name):
        use = first_ordered(follower.uses_in(files, loop))
    if use is None:
        return None
    in_order = not isinstance(files, cst.Name) or _sorts(body, files.value) or _only_sorted(body, files.value)
    if in_order and isinstance(folders, cst.Name) and _sorts(body, folders.value):
        return None
    return _found(node, {"call": module.code(node.func)}, use, "walk")


def _found(
    node: cst.CSTNode, details: dict[str, str], use: Use, variant: str = "", changes: tuple[Change, ...] = ()
) -> Violation:
    """The walk `node`, of which `use` takes the order."""
    details["help"] = "walk"
    return Violation(node, details, variant, severity_of(use), related=telling(use), changes=changes)


def _sorted_loop(module: Module, arg: cst.CSTNode | None) -> cst.For | None:
    """The loop over `sorted(os.walk(…))` of which `arg` is the argument: it goes through the folders by their paths."""
    call = module.parent(arg) if isinstance(arg, cst.Arg) else None
    loop = module.parent(call) if isinstance(call, cst.Call) and call.args[0] is arg else None
    sorts = isinstance(call, cst.Call) and module.library.facts.orders.sorts(last_word(call.func))
    return loop if sorts and isinstance(loop, cst.For) and isinstance(loop.target, cst.Tuple) else None


def _walked_by_path(module: Module, call: Call, loop: cst.For) -> Violation | None:
    """What `loop` goes through by path still lists the files of each folder, and the folders in it, in no order."""
    assert isinstance(loop.target, cst.Tuple)
    body, follower = module.code(loop.body), Follower(module)
    for element, variant in zip(loop.target.elements[1:], ("folders", ""), strict=False):
        name = element.value
        if isinstance(name, cst.Name) and not (_sorts(body, name.value) or _only_sorted(body, name.value)):
            use = first_ordered(follower.uses_in(name, loop))
            if use is not None:
                reads = [one for one in nodes(loop.body) if isinstance(one, cst.Name) and one.value == name.value]
                inner = module.parent(reads[0]) if len(reads) == 1 else None
                gone_through = isinstance(inner, (cst.For, cst.CompFor)) and inner.iter is reads[0]
                changes = (Replace(reads[0], f"sorted({name.value})"),) if gone_through else ()
                details = {"call": module.code(call.node.func)}
                return _found(call.node, details, use, variant, changes)
    return None


def _takes_one_folder(loop: cst.For) -> bool:
    """Whether the body of a loop over `os.walk(…)` leaves it at its end, with the first folder: that is the top."""
    last = loop.body.body[-1]
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    goes_on = any(isinstance(one, cst.Continue) for one in nodes(loop.body))
    return isinstance(small, (cst.Break, cst.Return)) and not goes_on


def _first_folder(module: Module, call: Call) -> Violation | None:
    """`next(os.walk(…))` lists one folder: what reaches a result is the order of its folders or of its files."""
    taken: Any = module.parent(module.parent(call.node) or call.node)
    above = module.parent(taken)
    follower = Follower(module)
    details = {"call": module.code(call.node.func)}
    if isinstance(above, cst.Subscript) and bare(above).endswith(_LISTS):
        use = first_ordered(follower.uses(above))
        change = Replace(above, f"sorted({module.code(above)})")
        if use is None:
            return None
        return _found(call.node, details, use, _kept(above), (change,))
    target = above.targets[0].target if isinstance(above, cst.Assign) else None
    if not isinstance(above, cst.Assign):
        return None
    if isinstance(target, cst.Name):
        reads = (module.parent(load) for load in module.shared(DefUse).loads_after(target, above))
        for one in reads:
            if (
                isinstance(one, cst.Subscript)
                and bare(one).endswith(_LISTS)
                and (use := first_ordered(follower.uses(one)))
            ):
                return _found(call.node, details, use, _kept(one))
        return None
    if not isinstance(target, cst.Tuple) or len(target.elements) != 3:
        return None
    for element, message in zip(target.elements[1:], ("folders", ""), strict=True):
        uses = follower.uses_of_name(element.value, above) if isinstance(element.value, cst.Name) else []
        if (use := first_ordered(uses)) is not None:
            return _found(call.node, details, use, message)
    return None


def _kept(part: cst.Subscript) -> str:
    """The message of which of the two lists is taken of what `next(os.walk(…))` gives."""
    return "folders" if bare(part).endswith(_FOLDERS) else ""


def _only_first(module: Module, node: cst.CSTNode) -> bool:
    arg = module.parent(node)
    call = module.parent(arg) if isinstance(arg, cst.Arg) else None
    return isinstance(call, cst.Call) and last_word(call.func) == "next"


def _sorts(body: str, name: str) -> bool:
    return (
        re.search(rf"\b{name}\.sort[ \t]*\(|\b{name}\[:\]\s*=\s*[\w.]*sort|\b{name}\s*=\s*[\w.]*sort", body) is not None
    )


def _only_sorted(body: str, name: str) -> bool:
    reads = re.findall(rf"(\w*)\(?\b{name}\b", body)
    return all("sort" in before or before == "len" for before in reads)
