"""A place where a set is gone through -> all places whose orders fit together, which must go on doing so."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import libcst as cst

from torchdet_lint.checks.order.set_candidates import CALLS_SET
from torchdet_lint.checks.order.set_shapes import copied, is_given_set, shape, source_of
from torchdet_lint.dataflow.def_use import Reads
from torchdet_lint.dataflow.reaching_definitions import reaching
from torchdet_lint.dataflow.syntax import bare, bound_value, last_word, names_in, opposite
from torchdet_lint.module.tree import children

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Binding, Scope

_OPERATORS = (cst.BitOr, cst.BitAnd, cst.BitXor, cst.Subtract)
_TESTS = (
    cst.Comparison, cst.ComparisonTarget, cst.If, cst.While, cst.Assert, cst.CompIf, cst.Expr, cst.Del,
    cst.FormattedStringExpression, cst.Index,
)  # fmt: skip
_SORTABLE = ("text", "number")
_UNSORTABLE = ("unsortable", "identity")
# Where more than so many expressions fit together, or one cannot be sorted, each is sorted alone, which is not safe.
_STEPS = 40


class Forms:
    """The expressions of a file that make sets, by the text that those share that are made in the same way."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._parsed = 0
        self._look_for = functools.lru_cache(maxsize=None)(self._load)
        self._by_form: dict[str, dict[int, list[cst.BaseExpression]]] = {}

    def like(
        self, form: str, words: frozenset[str], sets_in: Callable[[cst.CSTNode], list[cst.BaseExpression]]
    ) -> list[tuple[int, cst.BaseExpression]]:
        """The sets of that form and the numbers of their units, in the order of the source; `words` stand in them."""
        self._look_for(words)
        while self._parsed < len(self.module.parsed):
            unit = self.module.parsed[self._parsed]
            self._parsed += 1
            assert unit.root is not None
            for node in sets_in(unit.root):
                self._by_form.setdefault(shape(node), {}).setdefault(unit.index, []).append(node)
        return [(index, node) for index, found in sorted(self._by_form.get(form, {}).items()) for node in found]

    def _load(self, words: frozenset[str]) -> None:
        self.module.load_where(
            lambda text: all(word in text for word in words) and ("{" in text or CALLS_SET.search(text) is not None)
        )


class Agreement:
    """The places where a set, and every other one that is made of the same, is gone through.

    Two loops over an unchanged set go in one order, as do loops over two sets made the same way: what one collects
    fits what the other does. `places` are those in sight; `complete` says that there can be no other one, `sure` that
    moreover all that the sets hold is text, or all numbers.
    """

    def __init__(
        self,
        module: Module,
        held: Callable[[cst.BaseExpression], str],
        kind: Callable[[cst.BaseExpression], str],
        scalar: Callable[[cst.BaseExpression], str],
    ) -> None:
        self.module = module
        orders = module.library.facts.orders
        self._sets, self._words, self._copies = orders.sets, orders.words, orders.consumers["copies"]
        self._held, self._kind, self._scalar = held, kind, scalar

    def of(self, origin: cst.BaseExpression) -> tuple[list[cst.BaseExpression], bool]:
        """`places` and `sure` for the set that is gone through at `origin`."""
        self.places: list[cst.BaseExpression] = []
        self.sure, self.complete = True, False
        self._kinds: set[str] = set()
        self._seen: set[object] = set()
        self._many = False
        if isinstance(origin, cst.Name):
            home = self.module.scope_of(origin).home(origin.value)
            known = home is not None and self._name(home, origin.value, origin)
        elif isinstance(origin, cst.Attribute):
            self._own_attribute(origin)
            known, self.sure = True, False
        else:
            known = self._is_set(origin)
            if known:
                self._made(origin)
        known = known and not self._many and self._kinds.isdisjoint(_UNSORTABLE)
        self.complete = known and self.sure and len(self._seen) <= _STEPS
        if not known or len(self._seen) > _STEPS or not any(place is origin for place in self.places):
            return [origin], False
        inside = [place for place in self.places if any(one in self.places for one in self.module.ancestors(place))]
        sure = self.sure and not inside and len(self._kinds) == 1 and self._kinds <= set(_SORTABLE)
        places = [place for place in self.places if not any(place is one for one in inside)]
        return sorted(places, key=self.module.order_of), sure

    # ------------------------------------------------------------------ what is a set

    def _is_set(self, node: cst.BaseExpression, depth: int = 6) -> bool:
        if isinstance(node, (cst.Set, cst.SetComp)):
            return True
        if depth <= 0:
            return False
        if isinstance(node, cst.BinaryOperation):
            sides = (node.left, node.right)
            return isinstance(node.operator, _OPERATORS) and any(self._is_set(side, depth - 1) for side in sides)
        if isinstance(node, cst.Call):
            if isinstance(node.func, cst.Attribute) and node.func.attr.value in self._words["set-methods"]:
                return self._is_set(node.func.value, depth - 1)
            return not self._sets["makes"].isdisjoint(self.module.resolve(node.func))
        if isinstance(node, cst.Name):
            values = self._values(self.module.scope_of(node).home(node.value), node.value)
            return bool(values) and all(self._is_set(value, depth - 1) for value in values)
        return False

    def _values(self, home: Scope | None, word: str) -> list[cst.BaseExpression]:
        """What is assigned to a name; nothing where it gets a value in another way too, or very many."""
        found: list[cst.BaseExpression] = []
        bound: list[Binding] = home.bindings.get(word, []) if home is not None else []
        self._many = self._many or len(bound) > _STEPS
        for binding in () if self._many else bound:
            if binding.kind == "augment":
                continue
            value = bound_value(binding) if binding.kind in ("assign", "unpack") else None
            if not isinstance(value, cst.BaseExpression):
                return []
            found.append(value)
        return found

    def _elements(self, node: cst.BaseExpression, depth: int = 6) -> set[str]:
        """The kinds of what a set holds."""
        if depth <= 0:
            return {"unknown"}
        if isinstance(node, cst.BinaryOperation):
            found = self._elements(node.left, depth - 1)
            both = isinstance(node.operator, (cst.BitOr, cst.BitXor))
            return found | self._elements(node.right, depth - 1) if both else found
        if (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and node.func.attr.value in self._words["set-methods"]
        ):
            found = self._elements(node.func.value, depth - 1)
            if node.func.attr.value in ("union", "symmetric_difference"):
                given = ({"unknown"} if arg.star else self._elements(arg.value, depth - 1) for arg in node.args)
                found = found.union(*given)
            return found
        if isinstance(node, cst.Name) and self._is_set(node):
            values = self._values(self.module.scope_of(node).home(node.value), node.value)
            return set().union(*(self._elements(value, depth - 1) for value in values))
        if isinstance(node, cst.Set):
            return {
                self._scalar(one.value) if isinstance(one, cst.Element) else self._kind(one.value)
                for one in node.elements
            }
        source = source_of(node)
        if isinstance(source, cst.Name) and self._is_set(source):
            return self._elements(source, depth - 1)
        if self._is_set(node):
            kind = self._held(node)
            empty = isinstance(node, cst.Call) and not node.args
            return set() if empty and kind == "nothing" else {kind}
        return {self._kind(node)}

    # ------------------------------------------------------------------ the same set, or one like it

    def _made(self, node: cst.BaseExpression) -> None:
        """A set that is made at `node`, and all that are made as it is."""
        form = shape(node)
        if ("shape", form) in self._seen:
            return
        self._seen.add(("shape", form))
        self._kinds |= self._elements(node)
        self._visit(node)
        self._copied_from(node)
        if isinstance(node, cst.Call) and not node.args and not isinstance(node.func, cst.Attribute):
            return
        words = {word for word in names_in(node) if word not in ("set", "frozenset")}
        forms = self.module.shared(Forms)
        alike = forms.like(form, frozenset(words), self._sets_in)
        self._many = self._many or len(alike) > _STEPS
        for index, twin in () if self._many else alike:
            if twin is not node and words <= self.module.words[index]:
                self._kinds |= self._elements(twin)
                self._visit(twin)

    def _copied_from(self, node: cst.BaseExpression) -> None:
        """A set that is made of one goes in its order."""
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "copy":
            source: cst.BaseExpression | None = node.func.value
        else:
            source = source_of(node)
        if not isinstance(source, cst.Name):
            return
        home = self.module.scope_of(source).home(source.value)
        if home is not None and self._is_set(source):
            self._name(home, source.value, source)
        elif any(is_given_set(binding.node) for binding in (home.bindings[source.value] if home is not None else ())):
            self.sure = False

    def _sets_in(self, root: cst.CSTNode) -> list[cst.BaseExpression]:
        """The outermost expressions under `root` that make sets."""
        found: list[cst.BaseExpression] = []
        stack = [root]
        while stack:
            node = stack.pop()
            made = isinstance(node, (cst.Set, cst.SetComp, cst.BinaryOperation)) or (
                isinstance(node, cst.Call) and last_word(node.func) in self._words["set-methods"] | {"set", "frozenset"}
            )
            if made and self._is_set(node):  # type: ignore[arg-type]
                found.append(node)  # type: ignore[arg-type]
            stack.extend(children(node))
        return found

    def _name(self, home: Scope, word: str, at: cst.BaseExpression) -> bool:
        """A name that only ever stands for sets, or does so where it is read, or given one, at `at`; False for another
        one."""
        if (home, word) in self._seen:
            return True
        values, loads = self._values(home, word), self._loads(home, word)
        if not self._many and not (values and all(self._is_set(value) for value in values)):
            values, loads = self._since(home, word, at, loads)
        if self._many or not values or not all(self._is_set(value) for value in values):
            self.sure = False
            return False
        self._seen.add((home, word))
        if home is self.module.scope and not word.startswith("_") and not self.module.source.cells:
            # Another file may import it; but of what only runs with its file, one that does is in sight.
            inside = any(self.module.enclosing_function(one) is not None for one in loads)
            alone = not inside and self.module.readers is not None and not self.module.readers(word)
            self.sure = self.sure and alone
        for value in values:
            if isinstance(value, cst.Name):
                above = self.module.scope_of(value).home(value.value)
                assert above is not None
                self._name(above, value.value, value)
            else:
                self._made(value)
        for one in loads:
            self._visit(one)
        return True

    def _since(
        self, home: Scope, word: str, at: cst.BaseExpression, loads: list[cst.Name]
    ) -> tuple[list[cst.BaseExpression], list[cst.Name]]:
        """The one value that a name has at `at`, where it is read or given that value, though it has others too (`words
        = set(words)`), and where it is read with that value; nothing where one of `loads` may see that or another."""
        bound: list[Binding] = home.bindings.get(word, [])
        seen = {id(one): self._reaching(bound, one) for one in loads}
        held = seen.get(id(at)) or [one for one in bound if bound_value(one) is at]
        value = bound_value(held[0]) if len(held) == 1 and held[0].kind == "assign" else None
        with_it = [one for one in loads if value is not None and held[0] in seen[id(one)]]
        if not isinstance(value, cst.BaseExpression) or any(len(seen[id(one)]) > 1 for one in with_it):
            return [], []
        return [value], with_it

    def _reaching(self, bound: list[Binding], load: cst.Name) -> list[Binding]:
        """Those of what is bound to a name that may hold at `load`: of what stands below only what a loop around both
        comes back with."""
        order, loops = self.module.order_of(load), self._loops(load)
        found = reaching(self.module, bound, load, order)
        return [one for one in found if one.order < order or (one.node is not None and loops & self._loops(one.node))]

    def _loops(self, node: cst.CSTNode) -> set[int]:
        return {id(one) for one in self.module.ancestors(node) if isinstance(one, (cst.For, cst.While))}

    def _loads(self, home: Scope, word: str) -> list[cst.Name]:
        module, function = self.module, home.function.node
        loads = module.shared(Reads).of(function if isinstance(function, cst.FunctionDef) else None, word)
        return [load for load in loads if module.scope_of(load).home(word) is home]

    def _own_attribute(self, attribute: cst.Attribute) -> None:
        """The loops over an attribute in its class; other files may have more of them."""
        module, class_ = self.module, self.module.enclosing_class(attribute)
        if class_ is None:
            self._visit(attribute)
            return
        word = attribute.attr.value
        units = [unit for unit in module.holding(word) if unit.piece.owner == class_.index >= 0]
        for unit in units:
            if word in module.words[unit.index]:
                module.load(unit)
        roots: list[cst.CSTNode] = [unit.root for unit in units if unit.root is not None]
        for root in roots or ([class_.node] if class_.node is not None else []):
            for one in module.attributes_under(root, word):
                if bare(one) == bare(attribute):
                    self._visit(one)

    # ------------------------------------------------------------------ what is done with it

    def _visit(self, node: cst.BaseExpression) -> None:
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        parent: Any = self.module.parent(node)
        handler = self._HANDLERS.get(type(parent))
        if len(self._seen) > _STEPS:
            self.sure = False
        elif handler is not None:
            handler(self, node, parent)
        elif not isinstance(parent, _TESTS):
            self.sure = False

    def _loop(self, node: cst.BaseExpression, loop: cst.For) -> None:
        self.places.append(node)

    def _operand(self, node: cst.BaseExpression, parent: cst.BinaryOperation) -> None:
        if not isinstance(parent.operator, _OPERATORS):
            self.sure = False

    def _condition(self, node: cst.BaseExpression, parent: cst.CSTNode) -> None:
        above: cst.CSTNode | None = parent
        while isinstance(above, (cst.BooleanOperation, cst.UnaryOperation)):
            above = self.module.parent(above)
        if not isinstance(above, _TESTS):
            self.sure = False

    def _spread(self, node: cst.BaseExpression, parent: cst.StarredElement) -> None:
        display = self.module.parent(parent)
        if not isinstance(display, cst.Set):
            self.places.append(node)
        elif len(display.elements) == 1:
            self._visit(display)

    def _augmented(self, node: cst.BaseExpression, parent: cst.AugAssign) -> None:
        if not isinstance(parent.operator, _AUGMENTS):
            self.sure = False
        elif node is parent.target and isinstance(parent.operator, (cst.BitOrAssign, cst.BitXorAssign)):
            self._kinds |= self._elements(parent.value)

    def _comprehension(self, node: cst.BaseExpression, part: cst.CompFor) -> None:
        whole: Any = part
        while isinstance(whole, cst.CompFor):
            whole = self.module.parent(whole)
        if isinstance(whole, cst.SetComp) or self._is_measured(whole):
            if copied(whole) is node:
                copy: Any = whole if isinstance(whole, cst.SetComp) else self._call_with(whole)
                if self._is_set(copy):
                    self._visit(copy)
        else:
            self.places.append(node)

    def _is_measured(self, node: cst.CSTNode) -> bool:
        """Whether `node` is given to a call that makes nothing of its order."""
        call = self._call_with(node)
        if call is None or len(call.args) != 1:
            return False
        names, sets = set(self.module.resolve(call.func)), self._sets
        return bool(names & (sets["makes"] | sets["keyed"] | sets["measured"] - {"builtins.print"} | {"builtins.sum"}))

    def _call_with(self, node: cst.CSTNode) -> cst.Call | None:
        arg = self.module.parent(node)
        call = self.module.parent(arg) if isinstance(arg, cst.Arg) else None
        return call if isinstance(call, cst.Call) else None

    def _argument(self, node: cst.BaseExpression, arg: cst.Arg) -> None:
        call = self.module.parent(arg)
        if not isinstance(call, cst.Call):
            self.sure = False
            return
        names, word = set(self.module.resolve(call.func)), last_word(call.func)
        method = isinstance(call.func, cst.Attribute)
        taken = bool(names & (self._sets["taken"] | {"builtins.sum"})) or word.endswith(("tqdm", "TQDM"))
        taken = taken or (bool(names & self._sets["keyed"]) and len(call.args) > 1)
        taken = taken or (method and (word in ("extend", "writelines") or (word == "join" and not names)))
        measured = bool(names & (self._sets["measured"] | self._sets["keyed"])) or word in self._words["messages"]
        if arg.star or (taken and arg.keyword is None):
            self.places.append(node)
        elif arg.keyword is not None:
            self.sure = False
        elif names & (self._sets["makes"] | self._copies):
            self._visit(call)
        elif not measured and not (method and (word in self._sets["methods"] or word in self._sets["growing"])):
            self.sure = False

    def _method(self, node: cst.BaseExpression, attribute: cst.Attribute) -> None:
        word, call = attribute.attr.value, self.module.parent(attribute)
        if not isinstance(call, cst.Call) or call.func is not attribute:
            self.sure = False
        elif word == "copy":
            self._visit(call)
        elif word == "add":
            self._kinds |= {self._scalar(arg.value) for arg in call.args}
        elif word in self._sets["growing"]:
            self._kinds |= set().union(*(self._elements(arg.value) for arg in call.args))
        elif word not in self._sets["methods"]:
            self.sure = False

    def _assigned(self, node: cst.BaseExpression, parent: Any) -> None:
        targets: list[cst.BaseExpression | None]
        if isinstance(parent, cst.Element):
            statement = self.module.parent(self.module.parent(parent) or parent)
            targets = [opposite(statement, parent)] if isinstance(statement, cst.Assign) else [None]
        else:
            targets = [parent.target] if isinstance(parent, cst.AnnAssign) else [one.target for one in parent.targets]
        for target in targets:
            home = self.module.scope_of(target).home(target.value) if isinstance(target, cst.Name) else None
            if home is None or not isinstance(target, cst.Name) or not self._name(home, target.value, node):
                self.sure = False

    _HANDLERS: dict[type, Any] = {  # noqa: RUF012
        cst.For: _loop,
        cst.CompFor: _comprehension,
        cst.StarredElement: _spread,
        cst.Arg: _argument,
        cst.Attribute: _method,
        cst.Assign: _assigned,
        cst.AnnAssign: _assigned,
        cst.Element: _assigned,
        cst.AugAssign: _augmented,
        cst.BinaryOperation: _operand,
        cst.BooleanOperation: _condition,
        cst.UnaryOperation: _condition,
    }


_AUGMENTS = (cst.BitOrAssign, cst.BitAndAssign, cst.BitXorAssign, cst.SubtractAssign)
