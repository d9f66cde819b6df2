"""A loop over an order -> the uses of what its body collects, numbers and writes in that order."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.dataflow.loops import (
    Dealing,
    Rounds,
    fills_further,
    gives_numbers,
    is_first_fitting,
    is_length,
    opened_outside,
    outermost,
    sets_the_first_apart,
    shows_progress,
    stops_at_number,
    sum_of_floats,
    takes_in,
    writes_on,
)
from torchdet_lint.dataflow.reaching_definitions import reaching
from torchdet_lint.dataflow.syntax import bare, bound_value, last_word, names_in, names_read, nodes
from torchdet_lint.dataflow.uses import KEEPING, KEPT, LETS_GO, Trace, Use
from torchdet_lint.module.names import live, member
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.module import Module


# What makes a dictionary without entries, and what goes through one.
# How something goes to a file.
_TO_FILES = ("saved", "written")
# Beside a call in what was seen: it was asked for what it keeps.
_WHOLE = -2
# Beside a table there: an entry of it was looked for, so deep.
_ENTRY = -2
# So many statements that assign to one entry are looked at.
_ENTRIES = 40
_EMPTY = frozenset({"dict", "OrderedDict", "defaultdict"})
_VIEWS = frozenset({"items", "keys", "values"})
_THROUGH = frozenset({"list", "tuple", "enumerate"})
# What a set is an instance of.
_LIKE_SETS = lazy(r"[sS]et\b|Iterable|Collection|Sized|Container")
# Where what gives random numbers lies.
_NUMBERS = ("random.", "numpy.random.", "torch.rand")


Key = tuple[object, ...] | None
Path = tuple[Key, ...]
"""Keys of dictionaries that hold each other, each constant in a tuple; None for one that is not in sight, and an empty
tuple for any place in a list."""


class _Asked:
    """The keys by which dictionaries are read in one file, by the identity of what is read there."""

    def __init__(self, module: Module) -> None:
        self.keys: dict[int, Key] = {}


class Collecting(Trace):
    """What the body of a loop makes of the order that it goes in."""

    def collected(self, loop: cst.For | cst.While, target: cst.BaseExpression) -> Iterator[Use]:
        """What the body of a loop over the value, whose elements go by `target`, makes of its order."""
        bound = set(names_in(target)) | self.module.shared(Rounds).bound(loop.body)
        yield from self.dealt(loop.body)
        for node in nodes(loop.body):
            if isinstance(node, cst.If) and sets_the_first_apart(self.module, node, loop):
                yield Use(node, "first")
            elif isinstance(node, cst.Yield):
                value = node.value.item if isinstance(node.value, cst.From) else node.value
                if value is None or not self.is_keyed(value, target, loop.body):
                    # The order is that of the generator, whatever one round of the loop gives.
                    yield from self.returned(node, node)
            elif isinstance(node, cst.If) and stops_at_number(self.module, node, loop):
                yield Use(node, "indexed")
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                yield from self._method(node, node.func, loop, target, bound)
            elif isinstance(node, cst.Call) and bare(node.func) == "print":
                files = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "file"]
                if files and not bare(files[0]).startswith("sys.") and opened_outside(files[0], bound, loop):
                    yield Use(node, "written")
            elif isinstance(node, cst.Call) and self._counts_on(node, bare(node.func), loop, target):
                yield Use(node, "numbered")
            elif isinstance(node, (cst.Return, cst.Assign)) and is_first_fitting(self.module, node, loop, target):
                yield Use(node, "first")
            elif isinstance(node, cst.AugAssign):
                yield from self._added_in_loop(node, loop, target)
            elif isinstance(node, cst.Assign):
                yield from self._assigned_in_loop(node, loop, target, bound)

    def dealt(self, root: cst.CSTNode) -> Iterator[Use]:
        """Random numbers that each round, or element, takes under `root`, or what it makes with such."""
        call = self.module.shared(Dealing).first(root)
        if call is not None:
            numbers = any(name.startswith(_NUMBERS) for name in self.module.resolve(call.func))
            yield Use(call, "dealt" if numbers else "initialised")

    def _added_in_loop(
        self, node: cst.AugAssign, loop: cst.For | cst.While, target: cst.BaseExpression
    ) -> Iterator[Use]:
        """What `x += y` in the body makes of the order: a longer list or text, a sum of floats, a number of times."""
        if self._adds_elements(node):
            yield from self._grown_in_loop(node.target, loop)
        elif self._is_summed(node, loop, target):
            yield Use(node, "summed")
        elif self._adds(node, cst.SimpleString):
            if any(use.kind in KEPT for use in self._grown_in_loop(node.target, loop)):
                yield Use(node, "joined")
        elif isinstance(counter := _entry_of(node.target), cst.Name) and self.counts(counter):
            yield from self.told_most_common(counter, loop)

    def _assigned_in_loop(
        self, node: cst.Assign, loop: cst.For | cst.While, target: cst.BaseExpression, bound: set[str]
    ) -> Iterator[Use]:
        """What an assignment in the body makes of the order: a number, an entry of a dictionary, a longer list."""
        yield from self._numbered(node, loop)
        grown = node.targets[0].target
        if self._is_summed(node, loop, target):
            yield Use(node, "summed")
        if isinstance(grown, cst.Subscript) and not bound.isdisjoint(names_in(grown)):
            if bound.isdisjoint(names_in(grown.value)) and fills_further(self.module, grown, loop):
                yield Use(node, "gathered")
            yield from self._written_out(grown.value, loop)
        elif isinstance(grown, cst.Subscript) and self._is_next_free(grown, node.value, loop, bound):
            yield Use(node, "numbered")
        if isinstance(grown, (cst.Name, cst.Attribute)) and takes_in(node.value, bare(grown)):
            yield from self._grown_in_loop(grown, loop)

    def _is_next_free(
        self, place: cst.Subscript, value: cst.BaseExpression, loop: cst.For | cst.While, bound: set[str]
    ) -> bool:
        """Whether each round of `loop` puts something of its own at the next place of a table: `x[i] = y`, `i += 1`."""
        counters = self.module.shared(Rounds).counting_on(loop.body)
        index = place.slice[0].slice
        counted = isinstance(index, cst.Index) and isinstance(index.value, cst.Name) and index.value.value in counters
        return counted and not bound.isdisjoint(names_in(value))

    def _method(
        self, node: cst.Call, method: cst.Attribute, loop: cst.For | cst.While, target: cst.BaseExpression,
        bound: set[str],
    ) -> Iterator[Use]:  # fmt: skip
        """What the call of a method in the body makes of the order: it takes in an element, or writes it."""
        owner, word = method.value, method.attr.value
        if word in self.words["grows"]:
            outside = (
                not isinstance(owner, cst.Name)
                or owner.value not in bound
                or self.module.shared(Rounds).starts_anew(loop, owner.value)
            )
            if node.args and self.is_keyed(node.args[-1].value, target, loop.body):
                return
            for grown in [owner] if outside else self._other_names(owner, loop, bound):
                yield from self._grown_in_loop(grown, loop)
        elif word in self.words["written"] and opened_outside(owner, bound, loop) and not self._is_imported(owner):
            if not shows_progress(node, bound, loop):
                yield Use(node, "written")
        elif self._counts_on(node, word, loop, target) or (
            word == "setdefault" and len(node.args) == 2 and is_length(node.args[1].value, owner)
        ):
            yield Use(node, "numbered")
        elif word == "step" and bound.isdisjoint(names_in(owner)) and self._is_optimizer(node, owner):
            yield Use(node, "trained")
        elif not bound.isdisjoint(name for arg in node.args for name in names_in(arg.value)):
            if bare(owner) == "self":
                yield from self.filled_by(node, word)
            callee = self.edges.callee(node, self.module.resolve(method))
            if callee is None or callee.function is None:
                return
            if gives_numbers(callee.function):
                yield Use(node, "numbered")
            elif self._is_kept_open(owner, bound) and writes_on(callee.function, self.words["written"]):
                yield Use(node, "written")

    @staticmethod
    def _is_kept_open(owner: cst.BaseExpression, bound: set[str]) -> bool:
        """Whether an object is one for all rounds of a loop, which has the names `bound`."""
        return isinstance(owner, cst.Name) and owner.value not in bound

    def _counts_on(self, write: cst.Call, word: str, loop: cst.For | cst.While, target: cst.BaseExpression) -> bool:
        """Whether `write` writes a number that counts on from round to round of `loop` to a file of the round, or makes
        a file with that number in its name; `target` is no such number, but what takes the elements."""
        if word not in self.words["written"] and word not in self.words["makes-files"]:
            return False
        rounds = self.module.shared(Rounds)
        counting = rounds.counting_on(loop.body).difference(names_in(target))
        changes = rounds.changes(loop.body) if counting else {}
        named = {name for arg in write.args for name in names_in(arg.value)} if counting else set()
        texts = [changes.get(name) for name in named]
        named.update(name for node in texts if isinstance(node, cst.Assign) for name in names_in(node.value))
        return not named.isdisjoint(counting)

    def filled_by(self, call: cst.Call, method: str) -> Iterator[Use]:
        """What `call` of a method of the same class, which a loop gives its elements, puts into lists of the object."""
        class_ = self.module.enclosing_class(call)
        known = class_ is not None and method in class_.methods
        function = self.module.definition(method, class_) if known else None
        for node in nodes(function.body) if function is not None else ():
            grown: cst.BaseExpression | None = None
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
                grown = node.func.value if node.func.attr.value in self.words["grows"] else None
            elif isinstance(node, cst.AugAssign) and self._adds_elements(node):
                grown = node.target
            if isinstance(grown, cst.Attribute) and bare(grown.value) == "self":
                yield from self.stored(grown, node)

    def _is_optimizer(self, step: cst.Call, owner: cst.BaseExpression) -> bool:
        """Whether `owner`, of which `step` is called, is an optimizer of torch's, or out of sight and called one."""
        names = [name for name in self.module.resolve(step.func) if name.endswith("().step")]
        if names:
            return any(name.startswith("torch.optim.") and "lr_scheduler" not in name for name in names)
        return not self.words["optimizers"].isdisjoint(last_word(owner).lower().split("_"))

    @staticmethod
    def _other_names(owner: cst.BaseExpression, loop: cst.For | cst.While, bound: set[str]) -> list[cst.Name]:
        """The lists from before `loop` for which `owner` stands in its body: `files = train if first else test`."""
        found: dict[str, cst.Name] = {}
        for node in nodes(loop.body):
            binds = isinstance(node, cst.Assign) and bare(node.targets[0].target) == bare(owner)
            values = [node.value] if isinstance(node, cst.Assign) and binds else []
            while values:
                value = values.pop()
                if isinstance(value, cst.IfExp):
                    values += [value.body, value.orelse]
                elif isinstance(value, cst.Name) and value.value not in bound:
                    found.setdefault(value.value, value)
        return list(found.values())

    def _is_imported(self, node: cst.BaseExpression) -> bool:
        """Whether `node` is a module, whose functions write to the files that they are told."""
        home = self.module.scope_of(node).home(node.value) if isinstance(node, cst.Name) else None
        return home is not None and any(binding.kind == "import" for binding in home.bindings[bare(node)])

    def _adds_elements(self, node: cst.AugAssign) -> bool:
        """Whether `x += y` makes a list longer: `y` is a display, or `x` began as one."""
        if isinstance(node.operator, cst.AddAssign) and isinstance(node.value, (cst.List, cst.ListComp)):
            return True
        return self._adds(node, cst.List, cst.ListComp)

    def _adds(self, node: cst.AugAssign, *kinds: type[cst.BaseExpression]) -> bool:
        """Whether it is `x += y`, and `x` is a name that began as one of `kinds`, or as `list()` where they hold it."""
        if not isinstance(node.operator, cst.AddAssign) or not isinstance(node.target, cst.Name):
            return False
        home = self.module.scope_of(node).home(node.target.value)
        bindings = home.bindings[node.target.value] if home is not None else ()
        made = [bound_value(binding) for binding in bindings]
        return any(
            isinstance(one, kinds) or (cst.List in kinds and isinstance(one, cst.Call) and bare(one.func) == "list")
            for one in made
        )

    def _is_summed(
        self, node: cst.Assign | cst.AugAssign, loop: cst.For | cst.While, target: cst.BaseExpression
    ) -> bool:
        """Whether `node` adds to floats that rounds of `loop` share."""
        total = sum_of_floats(self.module, node, loop, target)
        return total is not None and (not isinstance(total, cst.Subscript) or self.comes_again(total, target, loop))

    def comes_again(self, entry: cst.Subscript, target: cst.BaseExpression, loop: cst.For | cst.While) -> bool:
        """Whether rounds of `loop` evidently share the key of `entry`: it is the same in all of them."""
        bound = set(names_in(target)) | self.module.shared(Rounds).bound(loop.body)
        return bound.isdisjoint(name for element in entry.slice for name in names_in(element))

    def _grown_in_loop(self, owner: cst.BaseExpression, loop: cst.For | cst.While) -> Iterator[Use]:
        if isinstance(owner, cst.Name):
            if self.module.shared(Rounds).starts_anew(loop, owner.value):
                yield from self._within(owner, loop)
            outer = outermost(self.module, loop, owner.value)
            yield from self.named(owner, outer)
            yield from self.lent(owner, loop)
        elif isinstance(owner, cst.Attribute):
            yield from self.stored(owner, loop)
        elif _entry_of(owner) is not None and not self.trail.is_set:
            yield from self.table_uses(owner, loop)
        else:
            yield Use(loop, "stored")

    def _within(self, owner: cst.Name, loop: cst.For | cst.While) -> Iterator[Use]:
        """The uses of the list `owner` in the body of `loop`, which fills it and empties it."""
        for load in self.module.shared(Reads).of(loop.body, owner.value):
            if not self.definitions.grows(load):
                yield from self.of(load)

    def table_uses(self, owner: cst.BaseExpression, loop: cst.CSTNode) -> Iterator[Use]:
        """The uses of a table of lists, `table["name"].append(x)` or `table["name"] = x`, behind `loop` that fills it,
        or in the class of which it is an attribute; none where something in the function sorts, or in the file where it
        stands in none."""
        table, path = owner, list[Key]()
        while (whole := _entry_of(table)) is not None:
            path.insert(0, self._key_of_entry(table))
            table = whole
        function = self.module.enclosing_function(loop)
        class_ = self.module.enclosing_class(loop)
        if isinstance(table, cst.Attribute) and bare(table.value) == "self" and class_ is not None:
            reads = self.reads_in_class(class_, table.attr.value)
            yield from self.of_entries([one for one in reads if not self.module.contains(loop, one)])
            return
        home = self.module.scope_of(loop).home(table.value) if isinstance(table, cst.Name) else None
        if not isinstance(table, cst.Name) or home is None:
            yield Use(loop, "stored")
            return
        made = any(binding.kind == "assign" for binding in home.bindings[table.value])
        sorts = self.orders.sorts(self.module.text)
        if not made or (sorts and (function is None or self._sorts_beside(function, loop))):
            yield Use(loop, "stored")
            return
        loads = self.definitions.loads_after(table, outermost(self.module, loop, table.value))
        for load in loads:
            parent = self.module.parent(load)
            call = self.module.parent(parent) if isinstance(parent, cst.Arg) else None
            if isinstance(call, cst.Call):
                kind = self.kind_of_call(self.module.resolve(call.func), last_word(call.func))
                yield Use(call, kind if kind in KEEPING else "other")
            elif isinstance(parent, cst.Return) and self._is_kept(load, parent):
                yield Use(parent, "returned")
        yield from self.of_entries(loads, tuple(path))

    def _key_of_entry(self, entry: cst.BaseExpression) -> Key:
        """The key under which `entry` stands in its table, where that is a constant in sight."""
        if isinstance(entry, cst.Call):
            return self.key_of(entry.args[0].value) if entry.args else None
        index = entry.slice[0].slice if isinstance(entry, cst.Subscript) else None
        return self.key_of(index.value) if isinstance(index, cst.Index) else None

    def _sorts_beside(self, function: cst.FunctionDef, loop: cst.CSTNode) -> bool:
        """Whether anything in `function` is sorted but what the loops around `loop` go through."""
        text = self.module.code(function)
        for around in self.module.ancestors(loop) if self.orders.sorts(text) else ():
            if isinstance(around, cst.For):
                text = text.replace(self.module.code(around.iter), "", 1)
        return self.orders.sorts(text)

    def _is_kept(self, table: cst.BaseExpression, parent: cst.Return) -> bool:
        """Whether a caller in sight does anything with the table that is returned, or none is in sight."""
        return any(use.kind not in LETS_GO for use in self.returned(table, parent))

    def _written_out(self, table: cst.BaseExpression, loop: cst.CSTNode) -> Iterator[Use]:
        """Where the dictionary `table`, to which `loop` adds entries, is written to a file as a text behind it, or gone
        through where it began without any."""
        if isinstance(table, cst.Name) and not self.trail.nested:
            began = self._began_empty(table, loop)
            for load in self.definitions.loads_after(table, outermost(self.module, loop, table.value)):
                yield from self.in_its_order(load) if began else self.as_text(load)

    def _began_empty(self, table: cst.Name, loop: cst.CSTNode) -> bool:
        """Whether the name `table` is bound to nothing but dictionaries without entries."""
        home = self.module.scope_of(loop).home(table.value)
        made = [bound_value(binding) for binding in (home.bindings[table.value] if home is not None else ())]
        return bool(made) and all(
            (isinstance(one, cst.Dict) and not one.elements)
            or (isinstance(one, cst.Call) and last_word(one.func) in _EMPTY and len(one.args) < 2)
            for one in made
        )

    def told_most_common(self, counter: cst.BaseExpression, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of `counter.most_common()` behind `node`, which counts: what was counted equally often comes in the
        order in which it was counted first."""
        reads: Sequence[cst.BaseExpression] = ()
        if "most_common" in self.module.text and isinstance(counter, cst.Name):
            reads = self.definitions.loads_after(counter, outermost(self.module, node, counter.value))
        for read in reads:
            method = self.module.parent(read)
            call = self.module.parent(method) if isinstance(method, cst.Attribute) else None
            if isinstance(method, cst.Attribute) and method.attr.value == "most_common" and isinstance(call, cst.Call):
                yield from self.of(call)

    def in_its_order(self, table: cst.BaseExpression) -> Iterator[Use]:
        """The uses of the order of a dictionary: it is written as a text, or something goes through it."""
        yield from self.as_text(table)
        above = self.module.parent(table)
        call = self.module.parent(above) if isinstance(above, (cst.Attribute, cst.Arg)) else None
        if not (self.trail.listed and self.keeps_tables()):
            return
        if isinstance(above, cst.Attribute) and isinstance(call, cst.Call) and above.attr.value in _VIEWS:
            if call.func is above:
                yield from self.of(call)
        elif self.goes_through(table):
            yield from self.of(table)

    def goes_through(self, table: cst.BaseExpression) -> bool:
        """Whether a loop, or a call that makes a sequence, goes through `table` right where it stands."""
        above = self.module.parent(table)
        call = self.module.parent(above) if isinstance(above, cst.Arg) else None
        return isinstance(above, (cst.For, cst.CompFor)) or (
            isinstance(call, cst.Call) and last_word(call.func) in _THROUGH and call.args[0] is above
        )

    def keeps_tables(self) -> bool:
        """Whether the entries of a dictionary are in an order that counts."""
        return True

    def as_text(self, table: cst.BaseExpression) -> Iterator[Use]:
        """Where a dictionary is written to a file as a text that has its entries in their order."""
        arg = self.module.parent(table)
        call = self.module.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(call, cst.Call) or call.args[0] is not arg:
            return
        sorting = [bare(one.value) for one in call.args if one.keyword is not None and one.keyword.value == "sort_keys"]
        names = self.module.resolve(call.func)
        if sorting not in ([], ["False"]) or self.orders.texts["whole"].isdisjoint(names):
            return
        if self.orders.texts["files"].isdisjoint(names):
            yield from (use for use in self.of(call) if use.kind in KEPT)
        else:
            yield Use(call, "written")

    def of_entries(self, tables: Sequence[cst.BaseExpression], path: Path = (None,)) -> Iterator[Use]:
        """The uses of what stands at `path` in a dictionary that is read at `tables`, by key or as something goes
        through it; none where these are sorted, or a sorted list takes the place of a set."""
        is_set = self.trail.is_set
        asked = [table for table in tables if not (path[0] and self._is_asked_for_other(table, path[0]))]
        found = [use for table in asked for use in self.entries(table, path)]
        if not any(use.kind == "sorted" and (not is_set or self._is_put_back(use)) for use in found):
            yield from found

    def _is_put_back(self, use: Use) -> bool:
        """Whether what `use` sorts becomes an entry of a dictionary: `table[key] = sorted(table[key])`."""
        above = (use.module or self.module).parent(use.node)
        return isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Subscript)

    def entries(self, table: cst.BaseExpression, path: Path) -> Iterator[Use]:
        """The uses of `table[key]`, of `table.get(key)`, and of what a loop over `table.values()` or `table.items()`
        gets."""
        if (id(table), _ENTRY - len(path)) in self.trail.seen:
            return
        self.trail.seen.add((id(table), _ENTRY - len(path)))
        above = self.module.parent(table)
        call = self.module.parent(above) if isinstance(above, (cst.Attribute, cst.Arg)) else None
        if isinstance(above, cst.Subscript) and table is above.value:
            if not (path[0] and (self._is_asked_for_other(table, path[0]) or self._is_given_anew(above))):
                yield from self.reached(above, path[1:])
        elif isinstance(above, cst.Arg) and isinstance(call, cst.Call):
            yield from self.entries_in(call, above, path)
        elif isinstance(above, cst.Attribute) and isinstance(call, cst.Call):
            yield from self._asked_for(call, above.attr.value, path)
        elif self.trail.is_set and above is not None:
            yield from self._renamed(table, above, path)

    def reached(self, node: cst.BaseExpression, path: Path) -> Iterator[Use]:
        """The uses of what stands at `path` in the value of `node`; of that itself where the path is at its end."""
        if not path:
            yield from self.of(node)
            return
        above = self.module.parent(node)
        if isinstance(above, cst.Assign):
            yield from self._renamed(node, above, path)
        else:
            yield from self.entries(node, path)

    def _renamed(self, table: cst.BaseExpression, above: cst.CSTNode, path: Path) -> Iterator[Use]:
        """The same of a table that `above` gives another name, goes through as a list of tables, or returns."""
        if isinstance(above, (cst.Assign, cst.AnnAssign)) and above.value is table:
            target = above.targets[0].target if isinstance(above, cst.Assign) else above.target
            yield from self.of_entries(self.table_reads(target, above), path)
        elif isinstance(above, (cst.For, cst.CompFor)) and above.iter is table and path[0] == ():
            yield from self._each_entry(above, above.target, path[1:])
        elif isinstance(above, cst.Return) and (function := self.module.enclosing_function(above)) is not None:
            for call in self.edges.callers(function):
                yield from self.reached(call, path)

    def table_reads(self, target: cst.BaseExpression, node: cst.CSTNode) -> Sequence[cst.BaseExpression]:
        """Where a dictionary that `node` binds to `target` is read: a name, or an attribute of the object or class."""
        class_ = self.module.enclosing_class(node)
        home = self.module.scope_of(node).home(target.value) if isinstance(target, cst.Name) else None
        if isinstance(target, cst.Name) and home is not None and home.kind != "class":
            return self.definitions.loads_after(target, outermost(self.module, node, target.value))
        own = isinstance(target, cst.Attribute) and bare(target.value) in ("self", "cls")
        if class_ is None or not (own or home is not None):
            return ()
        return [one for one in self.reads_in_class(class_, last_word(target)) if one is not target]

    def entries_in(self, call: cst.Call, arg: cst.Arg, path: Path) -> Iterator[Use]:
        """The uses of what stands at `path` in a dictionary that `call` is given as `arg`."""
        yield from self.kept_whole(call)

    def _asked_for(self, call: cst.Call, method: str, path: Path) -> Iterator[Use]:
        """The same of a dictionary of which `call` calls `method`."""
        loop = self.module.parent(call)
        if method == "get" or (method == "pop" and self.trail.is_set and call.args):
            key = self.key_of(call.args[0].value) if call.args and path[0] else None
            if key in (None, path[0]):
                yield from self.reached(call, path[1:])
        elif method == "copy" and self.trail.is_set:
            yield from self.reached(call, path)
        elif method in ("values", "items") and isinstance(loop, (cst.For, cst.CompFor)) and path[0] != ():
            target: cst.CSTNode = loop.target
            if method == "items":
                pair = isinstance(target, cst.Tuple) and len(target.elements) == 2
                target = target.elements[1].value if pair and isinstance(target, cst.Tuple) else loop
            yield from self._each_entry(loop, target, path[1:])

    def _each_entry(self, loop: cst.For | cst.CompFor, target: cst.CSTNode, path: Path) -> Iterator[Use]:
        """The uses of what stands at `path` in each of what `loop` goes through, which goes by `target` there."""
        root = loop.body if isinstance(loop, cst.For) else self.module.parent(loop)
        for load in self.reads_of_round(target, root) if root is not None else ():
            if not (self.trail.is_set and self.is_no_set(load)):
                yield from self.reached(load, path)

    def reads_of_round(self, target: cst.CSTNode, root: cst.CSTNode) -> Iterator[cst.Name]:
        """Where `root`, the body of a loop or a comprehension, reads the name `target` as each round has it: not behind
        a statement that gives it another value."""
        for load in names_read(root).get(target.value, ()) if isinstance(target, cst.Name) else ():
            home = self.module.scope_of(load).home(load.value)
            bindings = home.bindings[load.value] if home is not None else []
            order = self.module.order_of(load)
            seen = bindings if len(bindings) < 2 else reaching(self.module, live(bindings, order), load, order)
            if not seen or any(binding.kind == "loop" for binding in seen):
                yield load

    def is_no_set(self, load: cst.Name) -> bool:
        """Whether `load` stands where an `isinstance` says that it is something else than a set."""
        below: cst.CSTNode = load
        for around in self.module.ancestors(load):
            if isinstance(around, cst.If) and below is around.body:
                text = bare(around.test)
                if text.startswith(f"isinstance({load.value},") and not _LIKE_SETS.search(text):
                    return True
            below = around
        return False

    def key_of(self, node: cst.BaseExpression) -> Key:
        """The key that `node` is, where it is a constant in sight."""
        return self.module.constant(node, self.module.scope_of(node), self.module.order_of(node))

    def _is_asked_for_other(self, table: cst.BaseExpression, key: Key) -> bool:
        """Whether `table` is read for the entry under another constant than `key`."""
        known = self.module.shared(_Asked).keys
        if id(table) not in known:
            entry = self.module.parent(table)
            index = entry.slice[0].slice if isinstance(entry, cst.Subscript) and entry.value is table else None
            known[id(table)] = self.key_of(index.value) if isinstance(index, cst.Index) else None
        return known[id(table)] not in (None, key)

    def _is_given_anew(self, entry: cst.Subscript) -> bool:
        """Whether the last statement before it that assigns to `entry`, written the same, in its function, gives it
        another value than the one that is followed."""
        module = self.module
        given = module.loading.facts.entered.get(member(entry), ())
        function, order = module.scope_of(entry).function, module.order_of(entry)
        values = [
            (at, value) for _, _, value, scope, at in given[:_ENTRIES] if scope.function is function and at < order
        ]
        return bool(values) and id(max(values, key=operator.itemgetter(0))[1]) not in self.trail.seen

    def kept_whole(self, call: cst.Call) -> Iterator[Use]:
        """Where what `call` is given goes to a file, or the list does that it is put into: `rows.append(row)`."""
        kind = self.kind_of_call(self.module.resolve(call.func), last_word(call.func))
        if kind in _TO_FILES:
            yield Use(call, kind)
        rows = call.func.value if isinstance(call.func, cst.Attribute) and call.func.attr.value == "append" else None
        if not isinstance(rows, cst.Name) or (id(call), _WHOLE) in self.trail.seen:
            return
        self.trail.seen.add((id(call), _WHOLE))
        for load in self.definitions.loads_after(rows, outermost(self.module, call, rows.value)):
            arg = self.module.parent(load)
            taker = self.module.parent(arg) if isinstance(arg, cst.Arg) else None
            if isinstance(taker, cst.Call):
                yield from self.kept_whole(taker)

    def _numbered(self, node: cst.Assign, loop: cst.For | cst.While) -> Iterator[Use]:
        """`index[name] = len(index)`: the order becomes a number."""
        target = node.targets[0].target
        if not isinstance(target, cst.Subscript):
            return
        value = node.value
        counter = isinstance(value, cst.Name) and value.value in self.module.shared(Rounds).counters(loop.body)
        if counter or is_length(value, target.value):
            yield Use(node, "numbered")


def _entry_of(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The table of which `node` is an entry: `table[key]`, `table.setdefault(key, [])`."""
    if isinstance(node, cst.Subscript):
        return node.value
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "setdefault":
        return node.func.value
    return None
