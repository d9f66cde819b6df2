"""A call that takes or gives the value, alone or in a display -> the uses of the parameter that it binds, and of what
callers do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.dataflow.call_edges import is_property
from torchdet_lint.dataflow.relatives import Relatives
from torchdet_lint.dataflow.syntax import bare, last_word, unpacked
from torchdet_lint.dataflow.uses import KEEPING, LETS_GO, Trace, Trail, Use
from torchdet_lint.dataflow.variables import Variables
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.dataflow.collecting import Key, Path
    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module


# In so many other files a property may be read.
_READERS = 8


class Calling(Variables):
    """Follows a value into what a call runs, in whichever file, and back to it."""

    def __init__(self, module: Module, trail: Trail | None = None) -> None:
        super().__init__(module, trail)
        self.trail.followers.append(self)
        self._beside: dict[int, Calling] = {}

    def beside(self, module: Module) -> Calling:
        """Who follows the same value through the file `module`."""
        if module is self.module:
            return self
        if id(module) not in self._beside:
            other = self._beside[id(module)] = type(self)(module, self.trail)
            other._beside[id(self.module)] = self
        return self._beside[id(module)]

    def handed(self, node: cst.BaseExpression, call: cst.Call, arg: cst.Arg, names: Sequence[str]) -> Iterator[Use]:
        """The uses of the parameter that `arg` binds, in whichever file; out of sight, only that it goes there."""
        callee = self.edges.callee(call, names)
        if callee is None:
            if self.trail.is_set:
                yield Use(call, "called", node)
            else:
                yield Use(call, "handed" if self._is_out_of_sight(call, names) else "called")
            return
        name = callee.parameter(call, arg)
        function = callee.function
        other = self.beside(callee.module)
        if not name or (function is not None and id(function) in self.trail.entered):
            yield Use(call, "called")
        elif function is None:
            assert callee.class_ is not None
            found = list(self._from(other, other.field_uses(callee.class_, name), call, node))
            open_ = not (self.trail.is_set or self.trail.nested or callee.class_.name.startswith("_"))
            yield from found or [Use(call, "kept" if open_ else "stored")]
        else:
            before = self.trail.entered
            self.trail.entered = {**before, id(function): (call, self)}
            uses = other.loads(cst.Name(name), function, callee.module.inner_scope(function), None)
            found = list(self._from(other, uses, call, node))
            self.trail.entered = before
            kinds = {use.kind for use in found}
            kept = kinds != {"stored"} and kinds != {"stored", "measured"}
            yield from found if kept or not last_word(call.func).endswith("Dataset") else [Use(call, "gathered")]

    def _from(
        self, other: Trace, uses: Iterator[Use], call: cst.Call, node: cst.BaseExpression | None
    ) -> Iterator[Use]:
        """`uses` that `other` found, told of this file: where `call` leads to another one, `node` goes there."""
        for use in uses:
            told = self.here(use, call, other.module)
            taken_there = use.origin is not None and (told.file or not self.module.is_mine(use.origin))
            yield told._replace(origin=node) if taken_there else told

    def goes_out_of_sight(self, call: cst.Call, torch: bool = False) -> bool:
        """Whether an argument of `call` goes to code that is not in sight, with `torch` to that of torch."""
        names = self.module.resolve(call.func)
        if torch and not any(name.startswith("torch.") for name in names):
            return False
        return (
            self.kind_of_call(names, last_word(call.func)) == "called"
            and self.edges.callee(call, names) is None
            and self._is_out_of_sight(call, names)
        )

    def _is_out_of_sight(self, call: cst.Call, names: Sequence[str]) -> bool:
        """Whether `call` calls a function or class of another library, or one that is not known."""
        roots = {name.partition(".")[0] for name in names}
        if not names:
            return isinstance(call.func, cst.Name)
        return "()" not in names[0] and roots.isdisjoint(STANDARD) and roots.isdisjoint(("builtins", "@"))

    def returned(self, node: Any, parent: cst.CSTNode, position: int = -1) -> Iterator[Use]:
        """Followed to the callers in the file; where there are none, the caller is out of sight. `position`: in the
        tuple that is returned."""
        kind = "yielded" if isinstance(parent, (cst.Yield, cst.From)) else "returned"
        function = self.module.enclosing_function(parent)
        entered = self.trail.entered.get(id(function)) if function is not None else None
        if entered is not None:
            call, follower = entered
            for use in follower.answered(call, node, position):
                yield use._replace(module=use.module or follower.module)
            return
        if self.trail.joined and function is not None and self._tells(function):
            yield Use(node, "told")
            return
        if function is not None and (read := self._read_as_property(function)):
            yield from read
            return
        callers = self.edges.callers(function) if function is not None else []
        unseen = all(any(one is function for one in self.module.ancestors(call)) for call in callers)
        if unseen and (function is None or self.trail.is_set or not self._let_go(function, node, position)):
            yield Use(node, "other" if self.trail.is_set else kind)
        for call in callers:
            yield from self.answered(call, node, position)

    def _tells(self, function: cst.FunctionDef) -> bool:
        """Whether the name of `function` says that it gives a text for people: `__repr__`, `error_message`."""
        return not self.words["tells"].isdisjoint(function.name.value.lower().split("_"))

    def _let_go(self, function: cst.FunctionDef, node: cst.CSTNode, position: int) -> bool:
        """Whether other files call `function`, and all of them evidently let the order of what it gives go."""
        module = self.module
        if (class_ := module.enclosing_class(function)) is not None:
            if is_property(function) and position < 0 and self._let_go_where_read(function.name.value):
                return True
            return self._let_go_above(class_, function.name.value, node, position)
        if module.callers is None or module.scope_of(function) is not module.scope:
            return False
        calls = module.callers(function.name.value)
        return bool(calls) and all(self._forgets(self.beside(there), call, node, position) for there, call in calls)

    def _let_go_where_read(self, word: str) -> bool:
        """Whether other files read an attribute that is called as a property, and all of them let the order go."""
        files = self.module.naming(word, _READERS) if self.module.naming is not None else None
        uses: list[Use] = []
        for there in files or ():
            there.load_where(word=word)
            roots = [unit.root for unit in there.holding(word) if unit.root is not None]
            for read in (one for root in roots for one in there.attributes_under(root, word)):
                uses += list(self.beside(there).of(read)) or [Use(read, "other")]
        return bool(uses) and all(use.kind in LETS_GO for use in uses)

    def _let_go_above(self, class_: Class, method: str, node: cst.CSTNode, position: int) -> bool:
        """Whether a base class of another file calls the method, and evidently lets the order of what it gives go:
        `self.files = sorted(self.listed())`."""
        above = [other for other, _ in self.edges.ancestors(self.module, class_) if other is not self.module]
        calls = [(other, call) for other in dict.fromkeys(above) for call in other.shared(Relatives).calls_of(method)]
        uses = [list(self.beside(other).answered(call, node, position)) for other, call in calls]
        return bool(calls) and all(found and all(use.kind in LETS_GO for use in found) for found in uses)

    def _forgets(self, other: Calling, call: Call, node: cst.CSTNode, position: int) -> bool:
        """Whether nothing is left of the order of what `call` in another file gives; one that only binds the function,
        as `partial` does, may lead anywhere."""
        if not set(call.own).intersection(other.module.resolve(call.node.func)):
            return False
        uses = list(other.answered(call.node, node, position))
        return bool(uses) and all(use.kind in LETS_GO for use in uses)

    def _read_as_property(self, function: cst.FunctionDef) -> list[Use]:
        """The uses of what the property `function` gives, where it is read in sight; none where it is no property."""
        class_ = self.module.enclosing_class(function)
        if class_ is None or not is_property(function):
            return []
        return [self.here(use, function, self.module) for use in self.field_uses(class_, function.name.value)]

    def lent(self, name: cst.Name, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of what callers in the file pass for the parameter `name`, which its function fills at `node`."""
        function = self.module.enclosing_function(node)
        home = self.module.scope_of(node).home(name.value)
        bound = home.bindings[name.value] if home is not None else []
        if function is None or [binding.kind for binding in bound] != ["parameter"]:
            return
        for call in self.edges.callers(function):
            callee = self.edges.callee(call, self.module.resolve(call.func))
            if callee is None or callee.function is not function or self.module.contains(function, call):
                continue
            for arg in call.args:
                if callee.parameter(call, arg) == name.value and isinstance(arg.value, (cst.Name, cst.Attribute)):
                    yield from self.grown(arg.value, call)

    def answered(self, call: cst.Call, node: cst.CSTNode, position: int) -> Iterator[Use]:
        """The uses of what `call` gives, which is `node`, or in it at `position`."""
        if position >= 0:
            yield from self._of_tuple(call, position)
        elif isinstance(node, (cst.Dict, cst.DictComp)):
            yield Use(node, "other")
        else:
            yield from self.of(call)

    def _of_tuple(self, node: cst.BaseExpression, position: int) -> Iterator[Use]:
        """The uses of what stands at `position` in the tuple that `node`, a call or a name for it, gives."""
        if (id(node), position) in self.trail.seen:
            return
        self.trail.seen.add((id(node), position))
        parent = self.module.parent(node)
        if (target := unpacked(parent, position)) is not None:
            yield from self.stored(target, parent)  # type: ignore[arg-type]
        elif isinstance(parent, cst.Return):
            yield from self.returned(node, parent, position)
        elif isinstance(parent, cst.Subscript) and _is_at(parent, position):
            yield from self.of(parent)
        elif isinstance(parent, cst.Assign) and isinstance(name := parent.targets[0].target, cst.Name):
            for load in self.definitions.loads_after(name, parent):
                yield from self._of_tuple(load, position)
        elif not isinstance(parent, cst.Subscript):
            yield Use(node, "other")

    # A display or a dictionary that holds the value, and goes somewhere in its turn.

    def in_display(self, node: cst.CSTNode, display: Any) -> Iterator[Use]:
        """A sequence inside a display, `[{"params": x}]`: where the display, or the name it is given, goes out of
        sight, or a list of them is returned, `x` does too. An entry of a dictionary is an option like others, unless
        torch is given it."""
        above = self.module.parent(display)
        option = isinstance(display, cst.Dict)
        while isinstance(above, (cst.Element, cst.DictElement)) and getattr(above, "key", None) is not display:
            display = self.module.parent(above)
            above = self.module.parent(display)
            option |= isinstance(display, cst.Dict)
        holders: list[Any] = [display]
        if (
            isinstance(above, cst.Return)
            and isinstance(display, cst.List)
            and not (self.trail.is_set or self.trail.nested)
        ):
            yield Use(node, "returned")
            return
        if isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Name):
            holders = self.definitions.loads_after(above.targets[0].target, above)
        for holder in holders if not self.trail.is_set else ():
            arg = self.module.parent(holder)
            call = self.module.parent(arg) if isinstance(arg, cst.Arg) else None
            if isinstance(call, cst.Call) and (uses := self._held_by(call, torch=option)):
                yield from uses
                return
        yield Use(node, "other")

    def _held_by(self, call: cst.Call, *, torch: bool) -> list[Use]:
        """What `call` makes of a display that it is given: a list that it is put into holds a text of it, too."""
        if self.trail.joined and isinstance(call.func, cst.Attribute) and call.func.attr.value == "append":
            return list(self.grown(call.func.value, call))
        kind = self.kept_by(call, torch=torch)
        return [Use(call, kind)] if kind else list(self.kept_whole(call))

    def kept_by(self, call: cst.Call, *, torch: bool) -> str:
        """How `call` keeps what stands in a display that it is given, if it does."""
        kind = self.kind_of_call(self.module.resolve(call.func), last_word(call.func))
        if kind in KEEPING or (kind == "numbered" and last_word(call.func) in self.words["numbering"]):
            return kind
        return "handed" if self.goes_out_of_sight(call, torch=torch) else ""

    def entry(self, node: Any, parent: Any) -> Iterator[Use]:
        """A value of a dictionary: `{"names": x}`, `{key: x for …}`."""
        if node is not parent.value:
            yield Use(node, "keyed")
        elif isinstance(parent, cst.DictComp):
            yield from self.in_table(node, parent, None)
        else:
            yield from self.in_table(node, self.module.parent(parent), self.key_of(parent.key))

    def fills_in(self, node: cst.CSTNode, around: cst.CSTNode | None) -> bool:
        """Whether `around` puts the text `node`, or a tuple with it, into another one: `"of %s" % names`."""
        return (
            self.trail.joined
            and isinstance(around, cst.BinaryOperation)
            and isinstance(around.operator, cst.Modulo)
            and around.right is node
        )

    def in_table(self, node: Any, table: Any, key: Key) -> Iterator[Use]:
        """The value under `key` of the dictionary `table`, or of one that is made by `dict(names=x)`."""
        above = self.module.parent(table)
        call = self.module.parent(above) if isinstance(above, cst.Arg) else None
        if self.trail.is_set and not self.trail.nested:
            yield from self._set_in_table(node, table, (key,))
        elif isinstance(above, (cst.Return, cst.Yield)):
            yield from self.of(table)
        elif self.fills_in(table, above):
            yield from self.of(above)  # type: ignore[arg-type]
        elif isinstance(call, cst.Call) and not self.trail.is_set:
            yield from self._held_by(call, torch=True) or (Use(call, "other"),)
        elif isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Name):
            yield from self.of_entries(self.definitions.loads_after(above.targets[0].target, above), (key,))
        else:
            yield from self.in_display(node, table)

    def _set_in_table(self, node: cst.CSTNode, table: Any, path: Path) -> Iterator[Use]:
        """The set at `path` in `table`, which may stand in other displays in its turn."""
        above = self.module.parent(table)
        while isinstance(above, (cst.Element, cst.DictElement, cst.DictComp, cst.Arg)):
            holder = above if isinstance(above, cst.DictComp) else self.module.parent(above)
            if isinstance(above, cst.Arg):
                if not isinstance(holder, cst.Call) or above.keyword is None or bare(holder.func) != "dict":
                    break
                path = ((above.keyword.value,), *path)
            elif isinstance(above, cst.DictElement):
                path = (self.key_of(above.key), *path)
            else:
                path = ((), *path) if isinstance(above, cst.Element) else (None, *path)
            if isinstance(above, (cst.DictElement, cst.DictComp)) and above.value is not table:
                yield Use(node, "other")
                return
            table, above = holder, self.module.parent(holder)  # type: ignore[arg-type]
        found = list(self.reached(table, path))
        yield from found or (Use(node, "other"),)

    def entries_in(self, call: cst.Call, arg: cst.Arg, path: Path) -> Iterator[Use]:
        """The uses of what stands at `path` in a dictionary that `call` is given as `arg`: whole, or unpacked into the
        parameters that go by its keys. A set goes to no file."""
        if not self.trail.is_set:
            yield from self.kept_whole(call)
            return
        names, name = self.module.resolve(call.func), ""
        if names == ("builtins.dict",) or self.kind_of_call(names, last_word(call.func)) == "copies":
            yield from self.reached(call, path)
            return
        callee = self.edges.callee(call, names)
        if callee is not None and arg.star == "**":
            key = path[0][0] if path[0] else None
            named = isinstance(key, str) and key.isidentifier()
            name = callee.parameter(call, cst.Arg(arg.value, keyword=cst.Name(str(key)))) if named else ""
            path = path[1:]
        elif callee is not None and not arg.star:
            name = callee.parameter(call, arg)
        function = callee.function if callee is not None else None
        if callee is None or function is None or not name or id(function) in self.trail.entered:
            return
        other, before = self.beside(callee.module), self.trail.entered
        self.trail.entered = {**before, id(function): (call, self)}
        scope = callee.module.inner_scope(function)
        uses: Iterator[Use]
        if path:
            loads = other.definitions.live_loads(cst.Name(name), function, scope, None)
            uses = (use for load in loads for use in other.reached(load, path))
        else:
            uses = other.loads(cst.Name(name), function, scope, None)
        found = list(self._from(other, uses, call, None))
        self.trail.entered = before
        yield from found


def _is_at(subscript: cst.Subscript, position: int) -> bool:
    """Whether `subscript` takes what stands at `position`."""
    index = subscript.slice[0].slice
    return (
        isinstance(index, cst.Index)
        and isinstance(index.value, cst.Integer)
        and index.value.evaluated_value == position
    )
