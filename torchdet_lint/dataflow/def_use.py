"""A name and what binds it -> the reads that the binding reaches."""

from __future__ import annotations

import bisect
import operator
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.reaching_definitions import block_of
from torchdet_lint.dataflow.syntax import bare, last_word, names_read
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Binding, Scope

# Functions that hold a number against another one: `assertEqual(len(x), 1)`.
_COMPARES = lazy(r"(?i)assert|equal|expect|check|(?:^|_)eq(?:_|$)")
# At most so many reads of one value are looked at.
_MOST = 150
_order = operator.attrgetter("order")


class Sorted(NamedTuple):
    """Reads of a name in the order of the source, and their orders."""

    loads: list[cst.Name]
    orders: list[int]


class Reads:
    """The names that a file reads, looked up by word."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._names: dict[int, dict[str, list[cst.Name]]] = {}
        self._everywhere: dict[str, dict[int, list[cst.Name]]] = {}
        self._listed: dict[str, list[cst.Name]] = {}
        self._parsed = 0

    def of(self, root: cst.CSTNode | None, word: str) -> list[cst.Name]:
        """The places under `root` (None: the whole file) where the name is read, in the order of the source."""
        if root is not None:
            if id(root) not in self._names:
                self._names[id(root)] = names_read(root)
            return self._names[id(root)].get(word, [])
        self.module.load_where(word=word)
        if self._parsed < len(self.module.parsed):
            for unit in self.module.parsed[self._parsed :]:
                assert unit.root is not None
                for name, loads in names_read(unit.root).items():
                    self._everywhere.setdefault(name, {})[unit.index] = loads
            self._parsed = len(self.module.parsed)
            self._listed.clear()
        if word not in self._listed:
            by_unit = self._everywhere.get(word, {})
            self._listed[word] = [load for _, loads in sorted(by_unit.items()) for load in loads]
        return self._listed[word]


class DefUse:
    """The reads of a file's names."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.orders = module.library.facts.orders
        # With the number of reads that there were.
        self._sorted: dict[tuple[int, str, bool], tuple[int, Sorted]] = {}
        self._split: dict[tuple[str, int, bool], tuple[Sorted, Sorted, list[cst.Name]]] = {}
        self._bound: dict[tuple[Scope, str], tuple[int, list[Binding]]] = {}
        self._counted: dict[int, cst.BaseSuite | bool] = {}
        # With the reads and the number of bindings that there were, and what was asked, which so stays what it is.
        self._seen: dict[tuple[int, str, int, int, bool], tuple[Sorted, int, list[cst.Name], object]] = {}

    def loads_after(self, name: cst.Name, node: cst.CSTNode) -> list[cst.Name]:
        """Where `name`, bound at `node`, is read afterwards, in the order of the source."""
        home = self.module.scope_of(node).home(name.value)
        if home is None:
            return []
        root = home.function.node
        return self.live_loads(name, root if isinstance(root, cst.FunctionDef) else None, home, node)

    def live_loads(
        self,
        name: cst.Name,
        function: cst.FunctionDef | None,
        home: Scope | None,
        node: cst.CSTNode | None,
        *,
        growing: bool = True,
    ) -> list[cst.Name]:
        """The reads of `name` in `function` (None: the whole file) that see what `node` binds (None: a parameter);
        with `growing`, those too that only add an element to it."""
        reads = self._sorted_reads(function, name.value, growing)
        key = (id(function), name.value, id(home), id(node), growing)
        bindings = len(home.bindings.get(name.value) or ()) if home is not None else 0
        known = self._seen.get(key)
        if known is None or known[0] is not reads or known[1] != bindings:
            found = self._found(reads, name, function, home, node, growing=growing)
            known = self._seen[key] = reads, bindings, found, (function, home, node)
        return list(known[2])

    def _found(
        self,
        reads: Sorted,
        name: cst.Name,
        function: cst.FunctionDef | None,
        home: Scope | None,
        node: cst.CSTNode | None,
        *,
        growing: bool,
    ) -> list[cst.Name]:
        module = self.module
        if node is None:
            found, _ = self._straight(reads, 0, name.value, home, None)
            return found
        start = module.order_of(node)
        if function is not None:
            found, _ = self._straight(reads, bisect.bisect_right(reads.orders, start), name.value, home, node)
            return found
        # A function may run at any time: it sees what a global is at last.
        at_once, later = self._by_function(name.value, reads, module.enclosing_function(node), growing)
        first = bisect.bisect_right(at_once.orders, start)
        found, hidden = self._straight(at_once, first, name.value, home, node)
        if hidden is not None:
            found += [load for load in later if self._is_seen(load, name.value, home, node, hidden)]
        return found

    def _by_function(
        self, word: str, reads: Sorted, here: cst.FunctionDef | None, growing: bool
    ) -> tuple[Sorted, list[cst.Name]]:
        """The reads of a global that run when the file does, or that the function `here` does, and those of others."""
        known = self._split.get((word, id(here), growing))
        if known is None or known[0] is not reads:
            functions = [self.module.enclosing_function(load) for load in reads.loads]
            own = [at for at, inner in enumerate(functions) if inner is None or inner is here]
            at_once = Sorted([reads.loads[at] for at in own], [reads.orders[at] for at in own])
            later = [load for load, inner in zip(reads.loads, functions, strict=True) if inner not in (None, here)]
            known = self._split[word, id(here), growing] = reads, at_once, later[:_MOST]
        return known[1], known[2]

    def _straight(
        self, reads: Sorted, first: int, word: str, home: Scope | None, node: cst.CSTNode | None
    ) -> tuple[list[cst.Name], set[int] | None]:
        """Those of `reads` from the `first` on that see what `node` binds, and the blocks in which other values hide
        it: None, where one does so everywhere after it."""
        killers = self._killers(home, word) if home is not None else []
        at = bisect.bisect_right(killers, self.module.order_of(node) if node is not None else -1, key=_order)
        hidden: set[int] = set()
        found: list[cst.Name] = []
        for load, order in zip(reads.loads[first : first + _MOST], reads.orders[first : first + _MOST], strict=True):
            while at < len(killers) and killers[at].order < order:
                binding, at = killers[at], at + 1
                if binding.node is None or binding.node is node:
                    continue
                block = self._reach(binding.node, binding.value, node, len(killers))
                if block is None or self._hides_all(block, hidden, node):
                    return found, None
            if self._is_seen(load, word, home, node, hidden):
                found.append(load)
        for binding in killers[at : at + _MOST] if home is not None and home.kind == "module" else ():
            if binding.node is None or binding.node is node:
                continue
            if self._reach(binding.node, binding.value, node, len(killers)) is None:
                return found, None
        return found, hidden

    def _hides_all(self, block: cst.CSTNode, hidden: set[int], node: cst.CSTNode | None) -> bool:
        """Whether what `node` binds is seen nowhere below once it is hidden in `block` too, which is added to `hidden`:
        what each arm of an `if` hides is hidden after that."""
        module = self.module
        while True:
            hidden.add(id(block))
            choice = module.parent(block)
            while isinstance(choice, (cst.Else, cst.If)) and _is_arm(choice, module.parent(choice)):
                choice = module.parent(choice)
            if not isinstance(choice, cst.If) or not all(id(arm) in hidden for arm in _arms(choice)):
                return False
            outer = module.parent(choice)
            if outer is None or (node is not None and module.contains(outer, node)):
                return True
            block = outer

    def _is_seen(
        self, load: cst.Name, word: str, home: Scope | None, node: cst.CSTNode | None, hidden: set[int]
    ) -> bool:
        """Whether `load` reads the name of `home`, outside of the blocks `hidden` and of `node` itself."""
        if home is not None and self.module.scope_of(load).home(word) is not home:
            return False
        if node is not None and self.module.contains(node, load):
            return False
        return not hidden or hidden.isdisjoint(id(outer) for outer, _ in self.module.deciding(load))

    def _sorted_reads(self, function: cst.FunctionDef | None, word: str, growing: bool) -> Sorted:
        """The reads of a name, in the order of the source."""
        loads = self.loads_in(function, word)
        number, known = self._sorted.get((id(function), word, growing), (-1, Sorted([], [])))
        if number != len(loads):
            kept = loads if growing else [load for load in loads if not self.grows(load)]
            pairs = sorted(((self.module.order_of(load), load) for load in kept), key=operator.itemgetter(0))
            known = Sorted([load for _, load in pairs], [order for order, _ in pairs])
            self._sorted[id(function), word, growing] = len(loads), known
        return known

    def grows(self, load: cst.Name) -> bool:
        """Whether a read only adds an element: `name.append`."""
        parent = self.module.parent(load)
        return isinstance(parent, cst.Attribute) and parent.attr.value in self.orders.words["grows"]

    def _killers(self, home: Scope, word: str) -> list[Binding]:
        """What gives a name in `home` another value, in the order of the source."""
        bindings: list[Binding] = home.bindings.get(word) or []
        known = self._bound.get((home, word))
        if known is None or known[0] != len(bindings):
            kept = [one for one in bindings if one.node is not None and one.kind in ("assign", "unpack", "loop")]
            known = self._bound[home, word] = len(bindings), sorted(kept, key=_order)
        return known[1]

    def rebound_in(self, home: Scope, word: str, loop: cst.For | cst.While) -> tuple[bool, list[cst.CSTNode]]:
        """Whether something before `loop` gives a name of `home` a value, and what in its body gives it another."""
        killers = self._killers(home, word)
        first = bisect.bisect_right(killers, self.module.order_of(loop), key=_order)
        found = [one.node for one in killers[first : first + _MOST] if one.node is not None]
        return first > 0, [node for node in found if self.module.contains(loop.body, node)]

    def _reach(
        self, binder: cst.CSTNode, value: cst.BaseExpression | None, node: cst.CSTNode | None, among: int
    ) -> cst.CSTNode | None:
        """The block in which a later binding, `among` others, hides the value; None: everywhere after it, as where
        whatever binds the value at `node` comes by there too. `if sort: x = sorted(x)` gives the user the choice,
        unless the value was itself bound in a branch of that `if`."""
        module = self.module
        block = block_of(module, binder, among)
        if block is not None and node is not None and module.contains(block, node):
            return None
        if isinstance(value, cst.Call) and self.orders.sorts(last_word(value.func)):
            choice = next((one for one in module.ancestors(binder) if isinstance(one, cst.If)), None)
            if choice is not None and (node is None or not module.contains(choice, node)):
                return None
        return block

    def loads_in(self, function: cst.FunctionDef | None, word: str) -> list[cst.Name]:
        """The places in `function` (None: the whole file) where the name is read, in the order of the source."""
        return self.module.shared(Reads).of(function, word)

    def counted_one(self, load: cst.Name) -> cst.BaseSuite | bool:
        """Where there is but one, as `load` stands in `len(x) == 1`, `len(x) > 1` or their like: in the branch of an
        `if`, or everywhere, where somebody is told of more."""
        if id(load) not in self._counted:
            self._counted[id(load)] = self._counted_one(load)
        return self._counted[id(load)]

    def _counted_one(self, load: cst.Name) -> cst.BaseSuite | bool:
        call = self.module.parent(self.module.parent(load) or load)
        if not isinstance(call, cst.Call) or last_word(call.func) != "len":
            return False
        around = self.module.parent(call)
        if isinstance(around, cst.Arg):
            check = self.module.parent(around)
            if not isinstance(check, cst.Call) or _COMPARES.search(last_word(check.func)) is None:
                return False
            return any(bare(arg.value) == "1" for arg in check.args[:2])
        if not isinstance(around, cst.Comparison) or bare(around.comparisons[0].comparator) != "1":
            return False
        choice = self.module.parent(around)
        branch = isinstance(choice, cst.If) and isinstance(around.comparisons[0].operator, cst.Equal)
        return choice.body if branch else True  # type: ignore[union-attr]


def _is_arm(arm: cst.CSTNode, choice: cst.CSTNode | None) -> bool:
    return isinstance(choice, cst.If) and choice.orelse is arm


def _arms(choice: cst.If) -> list[cst.CSTNode | None]:
    """The blocks of an `if`, of its `elif`s and of its `else`: None where it has none."""
    found: list[cst.CSTNode | None] = []
    arm: cst.If | cst.Else | None = choice
    while isinstance(arm, cst.If):
        found.append(arm.body)
        arm = arm.orelse
    return [*found, arm.body if arm is not None else None]
