"""A loop -> what its counter is good for, what its body binds in every round and adds up, and what it writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.dataflow.syntax import bare, bound_in, bound_value, last_word, names_in, nodes
from torchdet_lint.module.tree import children
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from torchdet_lint.module.module import Module


_STEPS = 6
_SCREEN = ("sys.stdout.", "sys.stderr.")
# A text that begins or ends by going back to the start of the line, in whatever way it is put together.
_OVERWRITTEN = lazy(r"""^\(*[bfru]*['"]+\\r|^\(*[bfru]*(['"])[^'"\n]*\\r\1""")
# Functions that work something out to be shown.
_WORKS_OUT = frozenset(
    {"abs", "float", "format", "int", "join", "len", "ljust", "max", "min", "rjust", "round", "str", "time"}
)


# What asks whether a path is there, and what makes a folder.
_EXISTS = frozenset({"exists", "is_dir", "is_file", "isdir", "isfile"})
_MAKES_FOLDERS = frozenset({"mkdir", "makedirs"})

# What makes floats unless it is told a type: with a shape, and with a value.
_ZEROS = frozenset({"zeros", "ones"})
_TENSORS = frozenset({"tensor", "as_tensor"})
_NUMBERS = ("torch.", "numpy.")

# Arguments by which a draw takes its numbers elsewhere, or makes none, and still one after the other.
_ANYWAY = frozenset({"generator", "device"})


class Rounds:
    """The names that the bodies of one file's loops give a new value in every round, and the lists that they clear."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._bound: dict[int, frozenset[str]] = {}
        self._cleared: dict[int, dict[str, list[cst.CSTNode]]] = {}
        self._changes: dict[int, dict[str, cst.Assign | cst.AugAssign]] = {}
        self._counters: dict[int, frozenset[str]] = {}
        self._counting_on: dict[int, frozenset[str]] = {}
        self._anew: dict[tuple[int, str], bool] = {}
        self._first_given: dict[int, dict[str, int]] = {}
        self._last_read: dict[int, dict[str, int]] = {}

    def bound(self, body: cst.CSTNode) -> frozenset[str]:
        """Those of one `body`."""
        if id(body) not in self._bound:
            self._bound[id(body)] = frozenset(bound_in(body))
        return self._bound[id(body)]

    def cleared(self, body: cst.CSTNode) -> Mapping[str, Sequence[cst.CSTNode]]:
        """The names that a call of `clear` empties in one `body`, and where."""
        if id(body) not in self._cleared:
            found = self._cleared[id(body)] = {}
            for node in nodes(body):
                taken = node.func if isinstance(node, cst.Call) else None
                if isinstance(taken, cst.Attribute) and taken.attr.value == "clear":
                    found.setdefault(bare(taken.value), []).append(node)
        return self._cleared[id(body)]

    def changes(self, body: cst.CSTNode) -> Mapping[str, cst.Assign | cst.AugAssign]:
        """What is assigned in one `body`, as it is written, and the first statement that does so."""
        if id(body) not in self._changes:
            found = self._changes[id(body)] = {}
            for node in nodes(body):
                if isinstance(node, (cst.Assign, cst.AugAssign)):
                    target = node.target if isinstance(node, cst.AugAssign) else node.targets[0].target
                    found.setdefault(bare(target), node)
        return self._changes[id(body)]

    def first_given(self, body: cst.CSTNode) -> Mapping[str, int]:
        """Where the names that one `body` assigns are assigned first, by the order of the source."""
        if id(body) not in self._first_given:
            found = self._first_given[id(body)] = {}
            for node in nodes(body):
                if isinstance(node, cst.Assign):
                    found.setdefault(bare(node.targets[0].target), self.module.order_of(node))
        return self._first_given[id(body)]

    def last_read(self, body: cst.CSTNode) -> Mapping[str, int]:
        """Where the names that stand in one `body` stand last."""
        if id(body) not in self._last_read:
            self._last_read[id(body)] = {
                node.value: self.module.order_of(node) for node in nodes(body) if isinstance(node, cst.Name)
            }
        return self._last_read[id(body)]

    def counters(self, body: cst.CSTNode) -> frozenset[str]:
        """The names with which one `body` counts."""
        if id(body) not in self._counters:
            self._counters[id(body)] = frozenset(
                node.target.value
                for node in nodes(body)
                if isinstance(node, cst.AugAssign)
                and isinstance(node.target, cst.Name)
                and isinstance(node.value, cst.Integer)
            )
        return self._counters[id(body)]

    def counting_on(self, body: cst.CSTNode) -> frozenset[str]:
        """Those of the `counters` that one `body` gives no number anew."""
        if id(body) not in self._counting_on:
            assigned = {
                bare(target.target) for node in nodes(body) if isinstance(node, cst.Assign) for target in node.targets
            }
            self._counting_on[id(body)] = self.counters(body) - assigned
        return self._counting_on[id(body)]

    def starts_anew(self, loop: cst.For | cst.While, name: str) -> bool:
        """Whether `name`, a list from before `loop`, is emptied in some of its rounds and grows on in the others."""
        key = (id(loop), name)
        if key not in self._anew:
            self._anew[key] = self._is_emptied(loop, name)
        return self._anew[key]

    def _is_emptied(self, loop: cst.For | cst.While, name: str) -> bool:
        module = self.module
        home = module.scope_of(loop).home(name)
        emptied = list(self.cleared(loop.body).get(name, ()))
        if home is not None and name in self.bound(loop.body):
            before, within = module.shared(DefUse).rebound_in(home, name, loop)
            if not before:
                return False
            emptied += within
        return bool(emptied) and all(module.parent(module.statement(node)) is not loop.body for node in emptied)


class Dealing:
    """What of one file takes numbers from a global generator, whatever the arguments."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._draws = frozenset(
            name
            for draw in module.library.facts.draws
            if draw.at in ("call", "construction") and all(test.argument in _ANYWAY for test in draw.when)
            for name in draw.names
        )
        self._words = frozenset(name.rpartition(".")[2] for name in self._draws)

    def first(self, root: cst.CSTNode) -> cst.Call | None:
        """The first such call under `root`; none where something there seeds, or a wait may take the number."""
        found: cst.Call | None = None
        for node in nodes(root):
            word = last_word(node.func) if isinstance(node, cst.Call) else ""
            if "seed" in word or word == "sleep":
                return None
            if found is None and isinstance(node, cst.Call) and word in self._words:
                found = node if not self._draws.isdisjoint(self.module.resolve(node.func)) else None
        return found


def opened_outside(node: cst.BaseExpression, bound: set[str], loop: cst.For | cst.While) -> bool:
    """Whether a file that the body of `loop` writes to is one from outside, or a choice of such ones."""
    if isinstance(node, cst.IfExp):
        return opened_outside(node.body, bound, loop) and opened_outside(node.orelse, bound, loop)
    if not isinstance(node, cst.Name):
        return bare(node).startswith(("sys.stdout", "sys.stderr", "self."))
    if node.value not in bound:
        return True
    chosen = [
        one.value
        for one in nodes(loop.body)
        if isinstance(one, cst.Assign) and bare(one.targets[0].target) == node.value
    ]
    return bool(chosen) and all(
        isinstance(one, (cst.Name, cst.IfExp)) and opened_outside(one, bound - {node.value}, loop) for one in chosen
    )


def shows_progress(write: cst.Call, bound: Collection[str], loop: cst.For | cst.While) -> bool:
    """Whether `write` writes to the screen what the next round writes over, or what hangs on no element: of what the
    rounds of `loop` have `bound`, only their number."""
    if not bare(write.func).startswith(_SCREEN):
        return False
    if any(_OVERWRITTEN.match(bare(arg.value)) for arg in write.args):
        return True
    number: set[str] = set()
    if isinstance(loop, cst.For) and isinstance(loop.iter, cst.Call):
        one = loop.target.elements[0].value if isinstance(loop.target, cst.Tuple) else loop.target
        number = set(names_in(one)) if last_word(loop.iter.func) in ("enumerate", "range") else number
    return all((set(names_in(arg)) - number).isdisjoint(bound) for arg in write.args)


def counts(node: cst.BaseExpression) -> bool:
    """Whether `node` is a `range` or a counter."""
    return isinstance(node, cst.Call) and last_word(node.func) in ("range", "count", "arange")


def is_length(node: cst.BaseExpression, owner: cst.BaseExpression) -> bool:
    """Whether `node` is `len(owner)`."""
    return isinstance(node, cst.Call) and bare(node) == f"len({bare(owner)})"


def gives_numbers(function: cst.FunctionDef) -> bool:
    """Whether a method gives what it puts into a table of its object the next number: `self.ids[word] = len(self.ids)`,
    or a number that it counts on."""
    within = list(nodes(function.body))
    counted = {
        bare(node.target)
        for node in within
        if isinstance(node, cst.AugAssign)
        and isinstance(node.operator, cst.AddAssign)
        and isinstance(node.target, cst.Attribute)
        and isinstance(node.value, cst.Integer)
    }
    return any(
        bare(value) in counted or any(isinstance(one, cst.Call) and _counts_own(one) for one in nodes(value))
        for node in within
        if (value := _put_under(node)) is not None
    )


def writes_on(function: cst.FunctionDef, writes: Collection[str]) -> bool:
    """Whether a method writes to a file that its object keeps open, by a method that is one of `writes`."""
    calls = (node.func for node in nodes(function.body) if isinstance(node, cst.Call))
    return any(
        isinstance(called, cst.Attribute) and called.attr.value in writes and bare(called.value).startswith("self.")
        for called in calls
    )


def _put_under(node: cst.CSTNode) -> cst.BaseExpression | None:
    """What `table[key] = value` or `table.setdefault(key, value)` puts into the table."""
    if isinstance(node, cst.Assign):
        return node.value if isinstance(node.targets[0].target, cst.Subscript) else None
    sets = isinstance(node, cst.Call) and len(node.args) == 2 and last_word(node.func) == "setdefault"
    return node.args[1].value if sets and isinstance(node, cst.Call) else None


def _counts_own(call: cst.Call) -> bool:
    return last_word(call.func) == "len" and len(call.args) == 1 and bare(call.args[0].value).startswith("self.")


def outermost(module: Module, loop: cst.CSTNode, name: str) -> cst.CSTNode:
    """The outermost loop around `loop` in which `name` only grows: its uses come after it."""
    found: cst.CSTNode = loop
    rounds = module.shared(Rounds)
    for ancestor in module.ancestors(loop):
        if isinstance(ancestor, cst.FunctionDef):
            break
        if isinstance(ancestor, (cst.For, cst.While)):
            if name in rounds.bound(ancestor.body) or name in rounds.cleared(ancestor.body):
                break
            found = ancestor
    return found


def displays(module: Module, loop: cst.For | cst.FunctionDef | cst.Lambda, silent: Collection[str]) -> set[str]:
    """The functions of the file that the body of `loop` calls and that only show something: a bar of progress."""
    called = {
        node.func.value for node in nodes(loop.body) if isinstance(node, cst.Call) and isinstance(node.func, cst.Name)
    }
    return {name for name in called if (one := module.definition(name)) is not None and _only_shows(one, silent)}


def _only_shows(function: cst.FunctionDef, silent: Collection[str]) -> bool:
    """Whether a function writes to the screen, changes nothing and gives nothing back."""
    shown = False
    for node in nodes(function.body):
        if isinstance(node, (cst.Yield, cst.Global, cst.Nonlocal)) or (isinstance(node, cst.Return) and node.value):
            return False
        if isinstance(node, (cst.AssignTarget, cst.AugAssign)) and not isinstance(node.target, cst.Name):
            return False
        if isinstance(node, cst.Call):
            screen = bare(node.func).startswith(_SCREEN) or last_word(node.func) in silent
            if not screen and last_word(node.func) not in _WORKS_OUT:
                return False
            shown = shown or screen
    return shown


def uses_number(loop: cst.For, silent: Collection[str], module: Module, over: cst.BaseExpression | None) -> bool:
    """Whether the body of `for number, x in enumerate(…)` does more with the number than to show it, and to take what
    stands there in lists that go along with `over`, where that is a list."""
    if not isinstance(loop.target, cst.Tuple) or not isinstance(loop.target.elements[0].value, cst.Name):
        return True
    return _uses([loop.body], loop.target.elements[0].value.value, silent, module, over)


def uses_name(parts: Sequence[cst.CSTNode], number: str, silent: Collection[str], module: Module) -> bool:
    """Whether the statements or expressions `parts` do more with the name `number` than to show it."""
    return _uses(parts, number, silent, module, None)


def counts_to_the_end(module: Module, loop: cst.While, number: str) -> bool:
    """Whether a loop that counts with `number` is one to, or from, the end of a list: no number that is written down
    ends it before."""
    test = loop.test
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    sides = (test.left, test.comparisons[0].comparator)
    others = [one for one in sides if bare(one) != number]
    if len(others) != 1 or bare(others[0]) in ("0", "-1"):
        return len(others) == 1
    value = module.followed(others[0], module.scope_of(loop), module.order_of(loop))
    return not isinstance(value.node if value is not None else others[0], cst.Integer)


def uses_index(
    loop: cst.For | cst.While | cst.ListComp | cst.GeneratorExp, number: str, silent: Collection[str], module: Module,
    over: cst.BaseExpression,
) -> bool:  # fmt: skip
    """Whether the body of `for number in range(…)` does more with the number than to take `over[number]` and what
    stands there in lists that go along."""
    inside = (
        [loop.body] if isinstance(loop, (cst.For, cst.While)) else [loop.elt, *(one.test for one in loop.for_in.ifs)]
    )
    return _uses(inside, number, silent, module, over)


def _uses(
    inside: Sequence[cst.CSTNode], number: str, silent: Collection[str], module: Module, over: cst.BaseExpression | None
) -> bool:
    """Whether what is `inside` a loop does more with `number` than to show it, and to take an element with it of
    `over`, or of a list that goes along."""
    along: dict[str, bool] = {bare(over): True} if over is not None else {}
    stack = list(inside)
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Name) and node.value == number:
            return True
        taken = taken_at(node, number) if over is not None else None
        if over is not None and taken is not None:
            owner = bare(taken)
            if owner not in along:
                along[owner] = goes_along(module, taken, over)
            if along[owner]:
                continue
        stack.extend(_parts_that_count(node, number, silent))
    return False


def taken_at(node: cst.CSTNode, number: str) -> cst.Name | cst.Attribute | None:
    """What `node`, `x[number]`, takes an element of."""
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, (cst.Name, cst.Attribute)):
        return None
    index = node.slice[0].slice if len(node.slice) == 1 else None
    at = index.value if isinstance(index, cst.Index) else None
    return node.value if isinstance(at, cst.Name) and at.value == number else None


def goes_along(module: Module, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two lists hold, at each place, what was made of the same element: both are comprehensions over one
    list or set, or one is a comprehension over the other."""
    return not set(_made_over(module, one)).isdisjoint(_made_over(module, other))


def _made_over(module: Module, node: cst.BaseExpression) -> list[int]:
    """What a list that a comprehension makes goes through, what that was made over, and so on."""
    found: list[int] = []
    scope, order = module.scope_of(node), module.order_of(node)
    while isinstance(node, cst.Name) and len(found) < _STEPS:
        value = module.followed(node, scope, order)
        if value is None:
            break
        found.append(id(value.node))
        if not isinstance(value.node, cst.ListComp) or value.node.for_in.ifs or value.node.for_in.inner_for_in:
            break
        node, scope, order = value.node.for_in.iter, value.scope, value.order if value.order is not None else order
    return found


def _parts_that_count(node: cst.CSTNode, number: str, silent: Collection[str]) -> Sequence[cst.CSTNode]:
    """The children of `node` in which `number` would decide more than what is shown and when."""
    if isinstance(node, cst.Call) and (last_word(node.func) in silent or bare(node.func).startswith(_SCREEN)):
        return ()
    if isinstance(node, cst.AugAssign) and bare(node.target) == number:
        return (node.value,)
    if isinstance(node, cst.Raise):
        return ()  # whoever fails tells only where
    if isinstance(node, cst.Assert):
        return (node.test,)
    if isinstance(node, (cst.If, cst.While)):
        return (node.body,) if node.orelse is None else (node.body, node.orelse)
    if isinstance(node, cst.For) and number in names_in(node.target):
        return (node.iter,)
    return children(node)


def takes_in(value: cst.BaseExpression, name: str) -> bool:
    """Whether `value` is `name` with more elements: `[x, *name]`, `name + [x]`."""
    if isinstance(value, (cst.List, cst.Tuple)):
        own = [isinstance(one, cst.StarredElement) and bare(one.value) == name for one in value.elements]
        return any(own) and not all(own)
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        sides = (value.left, value.right)
        other = [side for side in sides if bare(side) != name]
        return len(other) == 1 and isinstance(other[0], (cst.List, cst.Tuple, cst.ListComp))
    return False


def fills_further(module: Module, part: cst.Subscript, loop: cst.For | cst.While) -> bool:
    """Whether each round of `loop` writes `part`, `table[start:end]`, where the one before it stopped: `start` moves
    on, or is how long the table is by then."""
    index = part.slice[0].slice
    if not isinstance(index, cst.Slice) or index.lower is None:
        return False
    start = bare(index.lower)
    change = module.shared(Rounds).changes(loop.body).get(start)
    if not isinstance(change, cst.Assign):
        return change is not None and isinstance(change.operator, cst.AddAssign)
    value = change.value
    end = bare(index.upper) if index.upper is not None else start
    measured = (isinstance(value, cst.Call) and bare(value.func) == "len") or (
        isinstance(value, cst.Subscript) and last_word(value.value) == "shape"
    )
    return bare(value) == end or (measured and not set(names_in(part.value)).isdisjoint(names_in(value)))


def is_first_fitting(
    module: Module, node: cst.Return | cst.Assign, loop: cst.For | cst.While, target: cst.BaseExpression
) -> bool:
    """Whether `node`, in the body of `loop`, returns an element, which goes by `target`, or keeps it and leaves the
    loop, though others may fit too: no test before it asks for one that is equal to something."""
    elements = set(names_in(target))
    if node.value is None or elements.isdisjoint(names_in(node.value)):
        return False
    if isinstance(node, cst.Assign) and not _then_breaks(module, node):
        return False
    inner: cst.CSTNode = node
    for around in module.ancestors(node):
        if around is loop:
            return True
        asked = nodes(around.test) if isinstance(around, cst.If) and inner is around.body else ()
        if any(_asks_for_one(one, elements) for one in asked):
            return False
        if isinstance(around, (cst.For, cst.While)) and isinstance(node, cst.Assign):
            return False
        inner = around
    return False


def stops_at_number(module: Module, node: cst.If, loop: cst.For | cst.While) -> bool:
    """Whether `node` leaves `loop`, and no other one, at a number of rounds: `if done == most: break`."""
    if not isinstance(node.test, cst.Comparison) or len(node.test.comparisons) != 1 or not _breaks(node.body):
        return False
    target = node.test.comparisons[0]
    if not isinstance(target.operator, (cst.Equal, cst.GreaterThan, cst.GreaterThanEqual)):
        return False
    return _loop_around(module, node) is loop and bare(node.test.left) in module.shared(Rounds).counting_on(loop.body)


def _loop_around(module: Module, node: cst.CSTNode) -> cst.CSTNode | None:
    return next((one for one in module.ancestors(node) if isinstance(one, (cst.For, cst.While))), None)


def sets_the_first_apart(module: Module, node: cst.If, loop: cst.For | cst.While) -> bool:
    """Whether `node`, in the body of `loop`, gives a name of the round another value for the first element of a kind:
    `if not os.path.isdir(folder): os.mkdir(folder); folder = other`."""
    asked = _asked_to_be_there(node.test)
    if not asked or node.orelse is not None or _loop_around(module, node) is not loop:
        return False
    noted = any(isinstance(one, cst.Call) and not asked.isdisjoint(_notes(one)) for one in nodes(node.body))
    given = {bare(one.targets[0].target) for one in nodes(node.body) if isinstance(one, cst.Assign)}
    if not noted or not given:
        return False
    rounds, order = module.shared(Rounds), module.order_of
    last = max(map(order, nodes(node.body)))
    first_given, last_read = rounds.first_given(loop.body), rounds.last_read(loop.body)
    return any(first_given.get(name, last) < order(node) and last_read.get(name, 0) > last for name in given)


def _notes(call: cst.Call) -> Iterator[str]:
    """What `call` puts there: the folder that it makes, by its path, or what it adds to, as `seen.add`."""
    if last_word(call.func) in _MAKES_FOLDERS:
        yield from (bare(arg.value) for arg in call.args[:1])
        yield bare(call.func.value) if isinstance(call.func, cst.Attribute) else ""
    else:
        yield bare(call.func)


def _asked_to_be_there(test: cst.BaseExpression) -> set[str]:
    """What `test` asks to be missing: `not os.path.isdir(folder)`, `key not in seen`; and how a key is put there."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        call = test.expression
        if isinstance(call, cst.Call) and last_word(call.func) in _EXISTS:
            if call.args:
                return {bare(call.args[0].value)}
            return {bare(call.func.value)} if isinstance(call.func, cst.Attribute) else set()
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        if isinstance(target.operator, cst.NotIn):
            owner = bare(target.comparator)
            return {f"{owner}.add", f"{owner}.append"}
    return set()


def _then_breaks(module: Module, node: cst.Assign) -> bool:
    """Whether a `break` ends the block in which `node` stands."""
    line = module.parent(node)
    return _breaks(module.parent(line) if isinstance(line, cst.SimpleStatementLine) else line)


def _breaks(block: cst.CSTNode | None) -> bool:
    """Whether `block` ends with a `break`."""
    last = block.body[-1] if isinstance(block, (cst.IndentedBlock, cst.SimpleStatementSuite)) else None
    return isinstance(last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last, cst.Break)


def _asks_for_one(node: cst.CSTNode, elements: set[str]) -> bool:
    """Whether `node` is a comparison that often holds for one of the `elements` only: `== name`, `in files`,
    `path.startswith(folder)`; `"best" in name` is none."""
    if isinstance(node, cst.Call):
        begins = last_word(node.func) in ("startswith", "endswith")
        return begins and any(not elements.isdisjoint(names_in(arg)) for arg in node.args)
    if not isinstance(node, cst.Comparison):
        return False
    operators = [one.operator for one in node.comparisons]
    among = not isinstance(node.left, (cst.SimpleString, cst.FormattedString))
    return any(isinstance(one, (cst.Equal, cst.Is)) or (among and isinstance(one, cst.In)) for one in operators)


def sum_of_floats(
    module: Module, node: cst.Assign | cst.AugAssign, loop: cst.For | cst.While, target: cst.BaseExpression
) -> cst.BaseExpression | None:
    """The `x` of `x += y` or `x = x + y` in the body of `loop` that began before it as a float, or a tensor of them;
    `y` is another one in each round, and no evident number of things."""
    found = _total_and_term(node)
    if found is None:
        return None
    total, term = found
    varying = {*names_in(target), *module.shared(Rounds).bound(loop.body)} - {bare(total)}
    if varying.isdisjoint(names_in(term)) or _is_count(module, term):
        return None
    if isinstance(total, cst.Subscript):
        began = _from_default(total, node) or _holds_floats(module, total.value, loop)
    elif isinstance(total, cst.Name):
        began = not _begins_in(total, loop) and any(_is_float(module, one) for one in _bindings(module, total))
    elif isinstance(total, cst.Attribute):
        values = module.self_attribute(total, module.scope_of(total))
        began = not _begins_in(total, loop) and any(_is_float(module, value.node) for value in values)
    else:
        began = False
    return total if began else None


def _is_count(module: Module, term: cst.BaseExpression) -> bool:
    """Whether `term` evidently counts: `len(x)`, `np.bincount(x)`, `(x == y).sum()`."""
    if not isinstance(term, cst.Call):
        return last_word(term) in module.library.facts.orders.words["counted"]
    if isinstance(term.func, cst.Attribute) and isinstance(term.func.value, cst.Comparison):
        return True
    given = any(arg.keyword is not None and arg.keyword.value == "weights" for arg in term.args)
    return not given and last_word(term.func) in module.library.facts.orders.words["counted"]


def _total_and_term(node: cst.Assign | cst.AugAssign) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """`x` and `y` of `x += y`, `x = x + y`, `x = y + x` and `x[key] = x.get(key, 0.0) + y`."""
    if isinstance(node, cst.AugAssign):
        return (node.target, node.value) if isinstance(node.operator, cst.AddAssign) else None
    total, value = node.targets[0].target, node.value
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
        return None
    if bare(value.left) == bare(total) or _from_default(total, node):
        return total, value.right
    return (total, value.left) if bare(value.right) == bare(total) else None


def _from_default(total: cst.BaseExpression, node: cst.Assign | cst.AugAssign) -> bool:
    """Whether it is `total[key] = total.get(key, 0.0) + y`."""
    before = node.value.left if isinstance(node.value, cst.BinaryOperation) else None
    if not isinstance(before, cst.Call) or len(before.args) != 2 or not isinstance(total, cst.Subscript):
        return False
    return bare(before.func) == f"{bare(total.value)}.get" and isinstance(before.args[1].value, cst.Float)


def _begins_in(total: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
    """Whether a round of `loop` gives `total` its first value: each has a sum of its own."""
    return any(
        isinstance(node, cst.Assign)
        and any(bare(one.target) == bare(total) for one in node.targets)
        and _total_and_term(node) is None
        for node in nodes(loop.body)
    )


def _bindings(module: Module, name: cst.Name) -> list[cst.CSTNode | None]:
    home = module.scope_of(name).home(name.value)
    return [bound_value(binding) for binding in home.bindings[name.value]] if home is not None else []


def _is_float(module: Module, value: cst.CSTNode | None) -> bool:
    """Whether `value` is a float, or a tensor or array of them: `torch.zeros(3)`, `torch.tensor(0.0)`."""
    if isinstance(value, cst.Float):
        return True
    if not isinstance(value, cst.Call) or not value.args:
        return False
    word, first = last_word(value.func), value.args[0].value
    if word not in _ZEROS and not (word in _TENSORS and isinstance(first, cst.Float)):
        return False
    typed = [arg.value for arg in value.args if arg.keyword is not None and arg.keyword.value == "dtype"]
    if any("float" not in bare(one) for one in typed):
        return False
    return any(name.startswith(_NUMBERS) for name in module.resolve(value.func))


def _holds_floats(module: Module, table: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
    """Whether what stands in `table` evidently began as floats."""
    if not isinstance(table, cst.Name):
        return False
    if any(isinstance(one, cst.BaseExpression) and _is_of_floats(one) for one in _bindings(module, table)):
        return True
    return any(
        (isinstance(node, cst.Assign) and isinstance(node.value, cst.Float) and _is_in(node.targets[0].target, table))
        or (isinstance(node, cst.Call) and _starts_with_float(node, table))
        for node in nodes(loop.body)
    )


def _is_of_floats(value: cst.BaseExpression) -> bool:
    """Whether `value` is a table of floats: `{"a": 0.0}`, `[0.0] * 3`, `defaultdict(float)`, `np.zeros(3)`."""
    if isinstance(value, cst.BinaryOperation):
        return _is_of_floats(value.left)
    if isinstance(value, (cst.DictComp, cst.ListComp)):
        return isinstance(value.value if isinstance(value, cst.DictComp) else value.elt, cst.Float)
    if isinstance(value, (cst.Dict, cst.List)):
        return any(isinstance(one.value, cst.Float) for one in value.elements)
    if not isinstance(value, cst.Call) or not value.args:
        return False
    word, last = last_word(value.func), value.args[-1].value
    if word == "zeros":
        return all(arg.keyword is None or arg.keyword.value != "dtype" for arg in value.args) and len(value.args) < 2
    if word == "defaultdict":
        last = last.body if isinstance(last, cst.Lambda) else last
    return word in ("defaultdict", "fromkeys") and (isinstance(last, cst.Float) or bare(last) == "float")


def _is_in(node: cst.BaseExpression, table: cst.Name) -> bool:
    return isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name) and node.value.value == table.value


def _starts_with_float(node: cst.Call, table: cst.Name) -> bool:
    """Whether `node` is `table.setdefault(key, 0.0)`."""
    called = bare(node.func) == f"{table.value}.setdefault" and len(node.args) == 2
    return called and isinstance(node.args[1].value, cst.Float)
