"""A value -> where it goes inside one file, and what is made of its order there."""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.dataflow.calling import Calling
from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.dataflow.loops import (
    Rounds,
    counts,
    counts_to_the_end,
    displays,
    goes_along,
    uses_index,
    uses_number,
)
from torchdet_lint.dataflow.mapped_numbers import shows_number
from torchdet_lint.dataflow.syntax import MAKES_SET, bare, last_word, opposite
from torchdet_lint.dataflow.uses import KEEPING, KEPT, NO_RESULT, Trail, Use
from torchdet_lint.module.names import dotted, live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.module.module import Module


_OUTER = frozenset({"numbered", "joined", "drawn", "picked"})
_LOOPS = (cst.For, cst.While, cst.CompFor)
_MAKES_LISTS = (cst.ListComp, cst.GeneratorExp)
_STEPS = 120
# What the names begin with of functions and methods that make a text.
_OF_TEXT = ("builtins.str", "string.", "textwrap.")


class _Joined:
    """Whether something is added in a loop of one file to what goes by a name there, by both."""

    def __init__(self, module: Module) -> None:
        self.known: dict[tuple[int, str], bool] = {}


class Follower(Calling):
    """Follows a value through names, attributes, copies, comprehensions, loops that collect, and functions of the file
    to the uses that are made of its order."""

    def uses(self, node: cst.BaseExpression, *, is_set: bool = False) -> list[Use]:
        """Every use of the value of `node` that is in sight, each once.

        A set (`is_set`) has no order until something iterates it: it may be returned or passed on.
        """
        return self._collect(is_set, lambda: self.of(node))

    def uses_of_name(self, name: cst.Name, node: cst.CSTNode, *, is_set: bool = False) -> list[Use]:
        """The same of what `node` binds to `name`."""
        return self._collect(is_set, lambda: self.named(name, node))

    def uses_of_parameter(self, name: cst.Name, function: cst.FunctionDef) -> list[Use]:
        """The same of the set that `function` is given for `name`."""
        return self._collect(True, lambda: self.loads(name, function, self.module.inner_scope(function), None))

    def uses_in(self, name: cst.Name, loop: cst.For) -> list[Use]:
        """The same of what `loop` binds to `name` in every round."""
        return self._collect(
            False, lambda: (use for load in self.reads_of_round(name, loop.body) for use in self.of(load))
        )

    def _collect(self, is_set: bool, uses: Callable[[], Iterator[Use]]) -> list[Use]:
        self.trail, self._beside = Trail(), {}
        self.trail.followers.append(self)
        self.trail.is_set, self.trail.listed = is_set, not is_set
        return list(dict.fromkeys(map(self._unless_asked_for, uses())))

    def _unless_asked_for(self, use: Use) -> Use:
        """`use`, or that nothing of the order is left where somebody only asks whether there is a first element."""
        own = use.kind == "picked" and not use.file and use.module in (None, self.module)
        return use._replace(kind="measured") if own and self.is_asked_for(use.node) else use

    def of(self, node: cst.BaseExpression) -> Iterator[Use]:
        """The uses of the value of `node`: what holds it says."""
        if id(node) in self.trail.seen or len(self.trail.seen) > _STEPS:
            return
        self.trail.seen.add(id(node))
        if self.module.is_dead(node):
            return
        parent = self.module.parent(node)
        assert parent is not None
        if self.is_told(node):
            yield Use(node, "told")
            return
        handler = self._HANDLERS.get(type(parent))
        if handler is not None:
            yield from handler(self, node, parent)
        elif isinstance(parent, (cst.Expr, cst.Assert, cst.Del)):
            yield Use(node, "measured")
        else:
            yield Use(node, "other")

    def _through(self, node: Any, parent: Any) -> Iterator[Use]:
        yield from self.of(parent)

    def _element(self, node: Any, parent: Any) -> Iterator[Use]:
        """Inside a display: `[*x]` goes on, `(x, y)` only to a `return`."""
        display = self.module.parent(parent)
        if isinstance(parent, cst.StarredElement):
            if isinstance(display, cst.Set):
                yield Use(node, "measured")
            else:
                yield from self.iterated(node, self.of(display))  # type: ignore[arg-type]
            return
        above = self.module.parent(display) if isinstance(display, cst.Tuple) else None
        if isinstance(above, cst.Return) and isinstance(display, cst.Tuple):
            yield from self.returned(display, above, list(display.elements).index(parent))
        elif isinstance(above, cst.Yield):
            yield from self.of(display)  # type: ignore[arg-type]
        elif self.fills_in(display, above):  # type: ignore[arg-type]
            yield from self.of(above)  # type: ignore[arg-type]
        elif isinstance(above, cst.Assign) and (target := opposite(above, parent)) is not None:
            yield from self.stored(target, above)
        else:
            yield from self.in_display(node, display)

    def _binary(self, node: Any, parent: cst.BinaryOperation) -> Iterator[Use]:
        removed = isinstance(parent.operator, cst.Subtract) and node is parent.right
        kept = (cst.Add, cst.Multiply, cst.Divide) if self.trail.joined else (cst.Add, cst.Multiply)
        if (
            self.fills_in(node, parent)
            or isinstance(parent.operator, kept)
            or (self.trail.is_set and not removed and isinstance(parent.operator, MAKES_SET))
        ):
            yield from self.of(parent)
        else:
            yield Use(node, "measured")

    def _comparison(self, node: Any, parent: Any) -> Iterator[Use]:
        yield Use(node, "measured")

    def _choice(self, node: cst.BaseExpression, parent: cst.IfExp) -> Iterator[Use]:
        if node is parent.test:
            yield Use(node, "measured")
        else:
            yield from self.of(parent)

    def _argument(self, node: Any, arg: cst.Arg) -> Iterator[Use]:
        call = self.module.parent(arg)
        if not isinstance(call, cst.Call):
            yield Use(node, "other")
            return
        names = self.module.resolve(call.func)
        word = last_word(call.func)
        kind = "measured" if self._is_looked_up(call, arg, names) else self.kind_of_call(names, word)
        lists = kind in KEEPING or word in self.words["numbering"]
        if self.trail.is_set and lists and word not in self.words["takes-sets"]:
            kind = "called"
        some = self._of_many(call, arg, word, kind) if self.trail.nested else self._singly(node, call, word)
        if some is not None:
            yield from some
            return
        if arg.keyword is not None and names == ("builtins.dict",):
            yield from self.in_table(node, call, (arg.keyword.value,))
        elif kind == "passes":
            yield from self._passed_on(node, call, arg, word)
        elif kind == "copies":
            yield from self.of(call)
        elif kind == "numbered" and (beside := self._beside_number(call)) is not None:
            yield from self.iterated(node, beside)
        elif kind == "joined":
            within, self.trail.joined = self.trail.joined, True
            uses = list(self.iterated(node, self.of(call)))
            self.trail.joined = within
            kept = any(use.kind in KEPT or use.kind in _OUTER for use in uses)
            yield Use(call, "joined" if kept else "told", node if self.trail.is_set else None)
        elif arg.star:
            yield Use(call, "called")
        elif word in self.words["maps"] and arg.keyword is None and arg is not call.args[0]:
            yield from self.iterated(node, self.of(call))
        elif kind == "local":
            yield from self.handed(node, call, arg, names)
        elif word in self.words["grows"] and isinstance(call.func, cst.Attribute):
            yield from self._put_in(node, call.func.value, call)
        elif kind == "called":
            yield from self.handed(node, call, arg, names)
        else:
            yield from self._ordered(node, call, arg, kind)

    def _ordered(self, node: cst.BaseExpression, call: cst.Call, arg: cst.Arg, kind: str) -> Iterator[Use]:
        """What `call` makes of the order of `node`. One that sorts, or takes an extreme, by a key that several elements
        share leaves those in the order in which they came."""
        is_set = self.trail.is_set
        if kind == "keyed" and arg is call.args[0] and self.goes_through(call):
            yield from self.iterated(node, self.of(call))
            return
        if kind == "gathered":
            reads = self._reads_of(call)
            if self._is_sorted_next(reads):
                kind = "sorted"
            elif reads and all(map(self._is_measured, reads)):
                kind = "measured"
        if not (kind in ("sorted", "measured") and arg is call.args[0] and self.has_ties(call)):
            yield Use(call, kind, node if is_set else None)
            return
        uses = list(self.iterated(node, self.of(call)))
        if kind == "sorted":
            yield from uses
        elif any(use.kind not in NO_RESULT for use in uses):
            yield Use(call, "indexed", node)

    def _reads_of(self, table: cst.Call) -> list[cst.BaseExpression]:
        """Where `table`, or a copy of it of another type, is read: at once, or in its function by the name that it is
        given."""
        around = self.module.parent(table)
        while isinstance(around, cst.Attribute) and around.attr.value in self.words["casts"]:
            call = self.module.parent(around)
            if not isinstance(call, cst.Call):
                break
            table, around = call, self.module.parent(call)
        target = around.targets[0].target if isinstance(around, cst.Assign) else None
        if not isinstance(target, cst.Name):
            return [table]
        order_of = self.module.order_of
        reads = self.module.shared(Reads).of(self.module.enclosing_function(table), target.value)
        later = reads[bisect.bisect_right(reads, order_of(table), key=order_of) :]
        within = (any(above is table for above in self.module.ancestors(read)) for read in later)
        return list(later[next((at for at, inside in enumerate(within) if not inside), len(later)) :])

    def kept_by(self, call: cst.Call, *, torch: bool) -> str:
        """The same; a table whose rows are sorted at once keeps no order."""
        kind = super().kept_by(call, torch=torch)
        return "sorted" if kind == "gathered" and self._is_sorted_next(self._reads_of(call)) else kind

    def _is_sorted_next(self, reads: Sequence[cst.BaseExpression]) -> bool:
        """Whether the first of `reads` of a table is to sort its rows, or an array's in place or by `x[argsort(x)]`."""
        method = self.module.parent(reads[0]) if reads else None
        if not isinstance(method, cst.Attribute) or method.attr.value == "argsort":
            return bool(reads) and self._is_put_in_order(reads)
        call = self.module.parent(method)
        in_place = isinstance(call, cst.Call) and not call.args and isinstance(self.module.parent(call), cst.Expr)
        return method.attr.value in self.words["sorts-rows"] or (method.attr.value == "sort" and in_place)

    def _is_put_in_order(self, reads: Sequence[cst.BaseExpression]) -> bool:
        """Whether an array is first indexed by the order of its values, `x = x[order]`, or by that of another one which
        was made alike, and goes by the same name from there."""
        module = self.module
        if len(reads) > 1 and self._gives_order(reads[0]):
            reads = reads[1:]
        picked = module.parent(reads[0])
        if not isinstance(picked, cst.Subscript) or picked.value is not reads[0] or len(picked.slice) != 1:
            return False
        index, kept = picked.slice[0].slice, module.parent(picked)
        if not isinstance(index, cst.Index) or not isinstance(kept, cst.Assign):
            return False
        order = module.followed(index.value, module.scope_of(picked), module.order_of(picked))
        call = order.node if order is not None and isinstance(order.node, cst.Call) else None
        if call is None or last_word(call.func) != "argsort" or bare(kept.targets[0].target) != bare(reads[0]):
            return False
        keys = call.args[0].value if call.args else call.func.value if isinstance(call.func, cst.Attribute) else None
        if keys is None or bare(keys) == bare(reads[0]):
            return keys is not None
        maker = self._maker_of(keys, call)
        return maker != "" and maker == self._maker_of(reads[0], call)

    def _gives_order(self, read: cst.BaseExpression) -> bool:
        """Whether `read` stands in `argsort(x)` or `x.argsort()`."""
        parent = self.module.parent(read)
        call = self.module.parent(parent) if isinstance(parent, (cst.Arg, cst.Attribute)) else None
        return isinstance(call, cst.Call) and last_word(call.func) == "argsort"

    def _maker_of(self, array: cst.BaseExpression, before: cst.CSTNode) -> str:
        """The function, as it is written, of the call that a name is bound to there; empty if it is bound otherwise."""
        module = self.module
        home = module.scope_of(before).home(array.value) if isinstance(array, cst.Name) else None
        if home is None or not isinstance(array, cst.Name):
            return ""
        bindings = live(home.bindings[array.value], module.order_of(before))
        made = bindings[0].value if len(bindings) == 1 else None
        return bare(made.func) if isinstance(made, cst.Call) else ""

    def _is_measured(self, read: cst.BaseExpression) -> bool:
        """Whether no more than an extreme, a size or whether it has an element is asked of an array, in a function."""
        if self.module.enclosing_function(read) is None:
            return False
        parent = self.module.parent(read)
        above = self.module.parent(parent) if parent is not None else None
        match parent:
            case cst.Attribute():
                asks = not (isinstance(above, cst.Call) and above.func is parent and above.args)
                return asks and parent.attr.value in self.words["extremes"]
            case cst.Arg() if isinstance(above, cst.Call):
                return self._is_measured_by(above, parent)
            case cst.ComparisonTarget(operator=cst.In() | cst.NotIn()):
                return True
        return False

    def _is_measured_by(self, call: cst.Call, arg: cst.Arg) -> bool:
        """Whether `call` asks no more of an array that it is given. An extreme along some axis has the order of
        another one."""
        names, word = self.module.resolve(call.func), last_word(call.func)
        if self._is_looked_up(call, arg, names):
            return True
        along = word in self.words["extremes"] and len(call.args) > 1
        return self.kind_of_call(names, word) == "measured" and not along

    def _is_looked_up(self, call: cst.Call, arg: cst.Arg, names: Sequence[str]) -> bool:
        """Whether `call` only asks whether other elements are among those of `arg`."""
        return arg is not call.args[0] and not self.module.library.facts.orders.among.isdisjoint(names)

    def _passed_on(self, node: Any, call: cst.Call, arg: cst.Arg, word: str) -> Iterator[Use]:
        """Into another sequence in the same order, which `zip` pairs with others: with numbers it counts."""
        one = word in ("zip", "zip_longest") and not self.trail.nested
        if one and not self.trail.is_set:
            yield Use(arg, "paired")
        if one and word == "zip" and any(counts(other.value) for other in call.args):
            yield Use(call, "numbered", node if self.trail.is_set else None)
        else:
            yield from self.iterated(node, self.of(call))

    def _of_many(self, call: cst.Call, arg: cst.Arg, word: str, kind: str) -> Iterator[Use] | None:
        """What is done with some of many such values: one is chosen, several in a list, all of them one behind the
        other; None where `call` asks for nothing of the kind."""
        joins = word == "sum" and len(call.args) == 2 and isinstance(call.args[1].value, cst.List)
        if joins or word == "from_iterable" or (word == "chain" and arg.star):
            return self._inside(call)
        loop = self.module.parent(call)
        if word == "enumerate" and isinstance(loop, (cst.For, cst.CompFor)) and isinstance(loop.target, cst.Tuple):
            root = loop.body if isinstance(loop, cst.For) else self._comprehension_of(loop)
            return self._each(loop.target.elements[-1].value, root)
        if kind not in _OUTER:
            return None
        if kind == "drawn" and word == "choice":
            return self._inside(call)
        if kind == "drawn" and word in ("sample", "choices"):
            return self.of(call)
        return iter((Use(call, "other"),))

    def _singly(self, node: cst.BaseExpression, call: cst.Call, word: str) -> Iterator[Use] | None:
        """What a call that is told of here makes of the order: a counter, and what takes a joined text for a path."""
        if not self.trail.joined:
            return self._counted(node, call, word)
        if word in self.words["opens-paths"]:
            return iter((Use(call, "saved"),))
        names = self.module.resolve(call.func)
        given = next(arg for arg in call.args if arg.value is node)
        text = word in self.words["fills-in"] and all(name.startswith(_OF_TEXT) for name in names)
        if text and self.edges.annotated(call) is None and not (word == "replace" and given is call.args[0]):
            return self.of(call)
        return self.of(call) if word in self.words["makes-paths"] and names else None

    def _counted(self, node: cst.BaseExpression, call: cst.Call, word: str) -> Iterator[Use] | None:
        """What is done with what a counter counts; None where `call` is no `counter.update(…)`."""
        if word != "update" or not isinstance(call.func, cst.Attribute) or not self.counts(call.func.value):
            return None
        return self.iterated(node, self.told_most_common(call.func.value, call))

    def _inside(self, node: cst.BaseExpression) -> Iterator[Use]:
        """What is done with `node`, which is one of many such values, or all of them one behind the other."""
        self.trail.nested -= 1
        yield from self.of(node)
        self.trail.nested += 1

    def _put_in(self, node: cst.BaseExpression, target: cst.BaseExpression, call: cst.Call) -> Iterator[Use]:
        """What is done with `node`, which `call` makes one of several in the list `target`, or all of it."""
        if last_word(call.func).startswith("ext"):
            yield from self.iterated(node, self.grown(target, call))
            return
        self.trail.nested += 1
        uses = list(self.grown(target, call))
        self.trail.nested -= 1
        yield from uses

    def _beside_number(self, counted: cst.Call) -> Iterator[Use] | None:
        """What is done with the elements of `enumerate(…)`, where the number does nothing but be shown; else None."""
        if (loop := self._only_shown(counted)) is not None:
            return self.collected(loop, loop.target)
        return self.of(counted) if self._is_shown_by_what_is_mapped(counted) else None

    def _only_shown(self, counted: cst.Call) -> cst.For | None:
        """The loop over `enumerate(…)`, or over a progress bar of it, whose number does nothing but be shown."""
        loop = self.module.parent(counted)
        while isinstance(loop, cst.Arg) and isinstance(bar := self.module.parent(loop), cst.Call):
            given = [arg for arg in bar.args if arg.keyword is None]
            if given != [loop] or self.kind_of_call(self.module.resolve(bar.func), last_word(bar.func)) != "passes":
                return None
            loop = self.module.parent(bar)
        if not isinstance(loop, cst.For):
            return None
        silent = self.silent | displays(self.module, loop, self.silent)
        # What goes through a set is sorted in one place, so each of those that fit together is told.
        over = counted.args[0].value if not self.trail.is_set else None
        return None if uses_number(loop, silent, self.module, over) else loop

    def _is_shown_by_what_is_mapped(self, counted: cst.Call) -> bool:
        """Whether a function is mapped over `enumerate(…)` whose number does nothing there but be shown."""
        arg = self.module.parent(counted)
        call = self.module.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(call, cst.Call) or last_word(call.func) not in self.words["maps"]:
            return False
        return len(call.args) > 1 and call.args[1] is arg and shows_number(self.module, self.edges, call, self.silent)

    def _attribute(self, node: Any, parent: cst.Attribute) -> Iterator[Use]:
        """A method of it."""
        word, call = parent.attr.value, self.module.parent(parent)
        if not isinstance(call, cst.Call) or call.func is not parent:
            yield Use(node, "other")
        elif self.trail.joined and word in self.words["keeps-text"]:
            yield from self.of(call)
        elif self.trail.joined and word in self.words["opens-paths"]:
            yield Use(call, "saved")
        elif word == "sort":
            shared = not self.trail.listed and self.has_ties(call)
            yield Use(call, "other" if shared else "sorted")
        elif word == "copy" or (self.trail.is_set and word in self.words["set-methods"]):
            yield from self.of(call)
        elif word == "pop" and not self.trail.nested and (loop := self._emptying(parent)) is not None:
            above = self.module.parent(call)
            target = above.targets[0].target if isinstance(above, cst.Assign) else call
            if id(loop) not in self.trail.seen:
                self.trail.seen.add(id(loop))
                yield from self.iterated(node, self.collected(loop, target))
        elif self.trail.is_set and word == "pop" and self._is_taken_alone(parent, call):
            yield Use(call, "picked", node)
        elif self.trail.is_set:
            yield Use(call, "measured" if word in self.words["neutral"] else "other")
        elif word in self.words["neutral"]:
            yield Use(call, "measured")
        elif word in ("index", "pop") and not self.trail.nested:
            yield Use(call, "other" if word == "pop" and self._is_work(parent) else "indexed")
        else:
            yield Use(call, "other")

    def _is_taken_alone(self, taken: cst.Attribute, call: cst.Call) -> bool:
        """Whether `call`, of `name.pop`, takes one element and what is left of the set is read no more; in a loop there
        are others."""
        function = self.module.enclosing_function(taken)
        if function is None or not isinstance(taken.value, cst.Name) or isinstance(self.module.parent(call), cst.Expr):
            return False
        if any(isinstance(one, _LOOPS) and self.module.contains(function, one) for one in self.module.ancestors(taken)):
            return False
        return self.module.shared(Reads).of(function, taken.value.value)[-1:] == [taken.value]

    def _is_work(self, taken: cst.Attribute) -> bool:
        """Whether `name.pop` takes from a list of work to be done: `while name:`, and what is found joins it."""
        loop = self._until_empty(taken)
        return loop is not None and self._joins(taken, loop)

    def _emptying(self, taken: cst.Attribute) -> cst.While | None:
        """The loop `while name:` around `name.pop` that goes through all of a set, to which nothing is added there."""
        loop = self._until_empty(taken)
        return loop if loop is not None and not self._joins(taken, loop) else None

    def _until_empty(self, taken: cst.Attribute) -> cst.While | None:
        """The `while` around `name.pop` that runs until `name` is empty."""
        name = dotted(taken.value)
        loop = next((around for around in self.module.ancestors(taken) if isinstance(around, cst.While)), None)
        if loop is None or self.module.code(loop.test) not in (name, f"len({name})", f"len({name}) > 0"):
            return None
        return loop

    def _joins(self, taken: cst.Attribute, loop: cst.While) -> bool:
        """Whether something is added in `loop` to what `taken` takes from."""
        key = (id(loop), dotted(taken.value))
        known = self.module.shared(_Joined).known
        if key not in known:
            added = rf"\b{re.escape(key[1])}\s*(?:\.(?:append|extend|add|update)[ \t]*\(|[|+]?=[^=])"
            known[key] = re.search(added, self.module.code(loop.body)) is not None
        return known[key]

    def _one_of(self, node: Any, parent: cst.BaseExpression) -> Iterator[Use]:
        """An element of a list or generator that a comprehension makes."""
        self.trail.nested += 1
        yield from self.of(parent)
        self.trail.nested -= 1

    def _each(self, target: cst.BaseExpression, root: cst.CSTNode) -> Iterator[Use]:
        """What is done under `root` with every one of many such values, which goes by the name `target` there."""
        self.trail.nested -= 1
        for load in self.reads_of_round(target, root):
            yield from self.of(load)
        self.trail.nested += 1

    def _subscript(self, node: Any, parent: cst.Subscript) -> Iterator[Use]:
        above = self.module.parent(parent)
        changed = isinstance(above, (cst.AssignTarget, cst.Del))
        changed = changed or (isinstance(above, cst.AugAssign) and above.target is parent)
        if node is not parent.value or changed:
            yield Use(node, "measured")
            return
        if self.trail.is_set and not self.trail.nested:
            # What has entries by now is something else.
            yield Use(node, "measured")
            return
        index = parent.slice[0].slice
        if self.trail.nested and isinstance(index, cst.Index):
            yield from self._inside(parent)
            return
        if self.trail.nested:
            yield from self.of(parent)
            return
        if isinstance(index, cst.Slice) and index.lower is None and index.upper is None and index.step is None:
            yield from self.of(parent)
        elif isinstance(index, cst.Index) and (loop := self._goes_through(parent, index.value)) is not None:
            number = loop.target if isinstance(loop, cst.For) else index.value
            one_by_one = self.of(loop) if isinstance(loop, _MAKES_LISTS) else self.collected(loop, number)
            yield from self.iterated(node, one_by_one)
        else:
            first = isinstance(index, cst.Index) and bare(index.value) in ("0", "-1")
            yield Use(parent, "picked" if first else "indexed")

    def _goes_through(
        self, node: cst.Subscript, index: cst.BaseExpression
    ) -> cst.For | cst.While | cst.ListComp | cst.GeneratorExp | None:
        """The loop or comprehension `for i in range(…)` around `node`, `x[i]`, or the loop `while i < len(x)` which
        counts with `i`, whose `i` does nothing but this and be shown."""
        if not isinstance(index, cst.Name) or not isinstance(node.value, (cst.Name, cst.Attribute)):
            return None
        for loop in self.module.ancestors(node):
            if isinstance(loop, cst.While) and index.value in self.module.shared(Rounds).counting_on(loop.body):
                only = not uses_index(loop, index.value, self.silent, self.module, node.value)
                return loop if only and counts_to_the_end(self.module, loop, index.value) else None
            if not isinstance(loop, (cst.For, cst.ListComp, cst.GeneratorExp)):
                continue
            part = loop if isinstance(loop, cst.For) else loop.for_in
            if bare(part.target) == index.value:
                nests = isinstance(part, cst.CompFor) and part.inner_for_in is not None
                same = not nests and isinstance(part.iter, cst.Call) and last_word(part.iter.func) == "range"
                only = (
                    same
                    and not self._cuts_off(part.iter)
                    and not uses_index(loop, index.value, self.silent, self.module, node.value)
                )
                return loop if only else None
            if isinstance(part, cst.For) and self._numbers(part, index.value, node.value):
                return part
        return None

    def _cuts_off(self, over: cst.BaseExpression) -> bool:
        """Whether `range(…)` evidently ends before the end of a list may have come: at a number that is written down,
        or at the lesser of two."""
        last = over.args[1 if len(over.args) > 1 else 0].value if isinstance(over, cst.Call) and over.args else None
        if last is None:
            return False
        value = self.module.followed(last, self.module.scope_of(over), self.module.order_of(over))
        end = value.node if value is not None else last
        return isinstance(end, cst.Integer) or (isinstance(end, cst.Call) and last_word(end.func) == "min")

    def _numbers(self, loop: cst.For, number: str, element: cst.BaseExpression) -> bool:
        """Whether it is `for number, x in enumerate(xs)`, where the number does nothing but take what stands there in
        lists that go along with `xs`, as `element` does."""
        call, target = loop.iter, loop.target
        if not isinstance(call, cst.Call) or last_word(call.func) != "enumerate" or len(call.args) != 1:
            return False
        if not isinstance(target, cst.Tuple) or bare(target.elements[0].value) != number:
            return False
        over = call.args[0].value
        along = bare(over) == bare(element) or goes_along(self.module, element, over)
        return along and not uses_number(loop, self.silent, self.module, over)

    def _index(self, node: Any, parent: Any) -> Iterator[Use]:
        """`table[x]`, which takes columns or rows in the order of the list `x`; a tuple is one key."""
        table = self.module.parent(self.module.parent(parent))  # type: ignore[arg-type]
        stored = isinstance(self.module.parent(table), cst.AssignTarget)  # type: ignore[arg-type]
        if self.trail.is_set or self.trail.nested or stored:
            yield Use(node, "keyed")
            return
        value = self.module.followed(node, self.module.scope_of(node), self.module.order_of(node))
        one = value is not None and isinstance(value.node, cst.Call) and bare(value.node.func) == "tuple"
        yield Use(node, "keyed" if one else "gathered")

    def _comprehension_of(self, part: cst.CompFor) -> cst.CSTNode:
        comprehension: cst.CSTNode = part
        while isinstance(comprehension, cst.CompFor):
            above = self.module.parent(comprehension)
            assert above is not None
            comprehension = above
        return comprehension

    def _comprehension_part(self, node: Any, part: cst.CompFor) -> Iterator[Use]:
        comprehension = self._comprehension_of(part)
        if self.trail.nested:
            yield from self._each(part.target, comprehension)
        elif isinstance(comprehension, cst.SetComp):
            yield Use(node, "measured")
        elif isinstance(comprehension, cst.DictComp):
            yield from self.iterated(node, self.dealt(comprehension.value))
            yield from self.iterated(node, self._written(comprehension))
            yield Use(node, "keyed")
        else:
            assert isinstance(comprehension, (cst.ListComp, cst.GeneratorExp))
            if self.is_keyed(comprehension.elt, part.target, None):
                yield Use(node, "keyed")
                return
            yield from self.iterated(node, self.of(comprehension))

    def _written(self, table: cst.DictComp) -> Iterator[Use]:
        """Where a dictionary in this order is written to a file as a text, or gone through: `table`, or the name that
        it goes by."""
        above = self.module.parent(table)
        target = above.targets[0].target if isinstance(above, cst.Assign) else None
        if isinstance(target, cst.Name) and above is not None:
            for load in self.definitions.loads_after(target, above):
                yield from self.in_its_order(load)
        else:
            yield from self.in_its_order(table)

    def _loop(self, node: Any, loop: cst.For) -> Iterator[Use]:
        if self.trail.nested:
            yield from self._each(loop.target, loop.body)
            return
        yield from self.iterated(node, self.collected(loop, loop.target))

    def _assigned(self, node: cst.BaseExpression, parent: cst.CSTNode) -> Iterator[Use]:
        if isinstance(parent, cst.Assign):
            targets: list[cst.BaseExpression] = [target.target for target in parent.targets]
        elif isinstance(parent, (cst.AnnAssign, cst.NamedExpr)):
            targets = [parent.target]
        else:
            assert isinstance(parent, cst.AugAssign)
            if isinstance(parent.operator, cst.SubtractAssign):
                yield Use(node, "measured")
            else:
                yield from self.grown(parent.target, parent)
            return
        if isinstance(parent, cst.NamedExpr):
            yield from self.of(parent)
        for target in targets:
            if isinstance(target, (cst.Tuple, cst.List)) and self.trail.nested:
                self.trail.nested -= 1
                for element in target.elements:
                    yield from self.stored(element.value, parent)
                self.trail.nested += 1
            elif isinstance(target, (cst.Tuple, cst.List)):
                only = len(target.elements) == 1
                origin = node if self.trail.is_set else None
                yield Use(parent, "measured" if only else "picked" if self.trail.is_set else "indexed", origin)
            else:
                yield from self.stored(target, parent)

    def _lambda(self, node: Any, parent: cst.Lambda) -> Iterator[Use]:
        """What a lambda gives that goes by a name: what callers in the file do with it."""
        assign = self.module.parent(parent)
        target = assign.targets[0].target if isinstance(assign, cst.Assign) else None
        loads = self.definitions.loads_after(target, assign) if isinstance(target, cst.Name) and assign else []
        calls = [call for load in loads if isinstance(call := self.module.parent(load), cst.Call) and call.func is load]
        if not calls:
            yield Use(node, "other")
        for call in calls:
            yield from self.of(call)

    def _with(self, node: Any, parent: cst.WithItem) -> Iterator[Use]:
        if parent.asname is not None:
            yield from self.stored(parent.asname.name, parent)
        else:
            yield Use(node, "other")

    _HANDLERS: dict[type, Any] = {  # noqa: RUF012
        cst.Arg: _argument,
        cst.Await: _through,
        cst.FormattedStringExpression: _through,
        cst.FormattedString: _through,
        cst.BooleanOperation: _through,
        cst.IfExp: _choice,
        cst.BinaryOperation: _binary,
        cst.Comparison: _comparison,
        cst.ComparisonTarget: _comparison,
        cst.UnaryOperation: _comparison,
        cst.If: _comparison,
        cst.While: _comparison,
        cst.CompIf: _comparison,
        cst.Attribute: _attribute,
        cst.Subscript: _subscript,
        cst.Index: _index,
        cst.CompFor: _comprehension_part,
        cst.ListComp: _one_of,
        cst.GeneratorExp: _one_of,
        cst.DictComp: Calling.entry,
        cst.DictElement: Calling.entry,
        cst.For: _loop,
        cst.Return: Calling.returned,
        cst.Yield: Calling.returned,
        cst.From: Calling.returned,
        cst.Assign: _assigned,
        cst.AnnAssign: _assigned,
        cst.AugAssign: _assigned,
        cst.NamedExpr: _assigned,
        cst.WithItem: _with,
        cst.Lambda: _lambda,
        cst.Element: _element,
        cst.StarredElement: _element,
    }
