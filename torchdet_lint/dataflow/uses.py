"""Where a value goes inside one file, and what is made of its order there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.interpreter import bare, names_in
from torchdet_lint.module.names import dotted
from torchdet_lint.module.tree import LEAVES, attributes_named, children

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.module.module import Module
    from torchdet_lint.module.names import Binding, Scope


class Use(NamedTuple):
    """One thing that is done with a followed value: the node that does it, and what that is.

    `kind` is `sorted`, `measured` (length, membership, a set, a maximum), `indexed`, `picked` (first or last),
    `numbered` (with a counter), `joined` (into one text), `told` (in a message), `printed`, `written` (to a file),
    `saved`, `drawn` (shuffled or sampled), `gathered` (into an array, a table or a data set), `returned`, `yielded`,
    `keyed`, `called` (given to code out of sight), `stored`, or `other`. `origin` is where a set was gone through.
    """

    node: cst.CSTNode
    kind: str
    origin: cst.BaseExpression | None = None


_SORTERS = re.compile(r"sort", re.IGNORECASE)
_MEASURES = frozenset(
    """builtins.len builtins.set builtins.frozenset builtins.sum builtins.any builtins.all builtins.max builtins.min
    builtins.bool builtins.isinstance builtins.type builtins.id collections.Counter heapq.nlargest heapq.nsmallest
    numpy.unique math.fsum collections.deque().remove numpy.sort numpy.max numpy.min numpy.any numpy.all""".split()
)
PASSES = frozenset(
    """builtins.list builtins.tuple builtins.iter builtins.map builtins.filter builtins.zip builtins.reversed
    itertools.chain itertools.chain.from_iterable itertools.islice itertools.product itertools.tee tqdm.tqdm
    tqdm.auto.tqdm tqdm.notebook.tqdm tqdm.trange tqdm.rich.tqdm rich.progress.track collections.deque""".split()
)
COPIES = frozenset("copy.copy copy.deepcopy typing.cast".split())
_SAVES = frozenset(
    "save savez save_pretrained dump dumps collate to_csv to_json to_parquet concat write_text writelines".split()
)
_SHOWS = frozenset("print set_description set_postfix update write_line".split())
MESSAGES = frozenset(
    """debug info warn warning warning_once warning_advice error exception critical log log_once rank_zero_warn
    rank_zero_info info_once warning_cache fail deprecate""".split()
)
_GATHERS = frozenset(
    """numpy.array numpy.asarray numpy.stack numpy.concatenate numpy.hstack numpy.vstack torch.tensor torch.as_tensor
    torch.stack torch.cat torch.concat torch.vstack torch.hstack pandas.DataFrame pandas.DataFrame.from_dict
    pandas.DataFrame.from_records pandas.Series pandas.concat pandas.Index torch.LongTensor torch.FloatTensor
    torch.Tensor""".split()
)
_DRAWS = frozenset(
    """random.shuffle random.choice random.choices random.sample numpy.random.shuffle numpy.random.permutation
    numpy.random.choice sklearn.model_selection.train_test_split torch.utils.data.random_split""".split()
)
_NEUTRAL = frozenset(
    """append extend insert remove clear add discard update count copy close difference_update
    intersection_update""".split()
)
SET_METHODS = frozenset("union intersection difference symmetric_difference copy".split())
_GROWS = frozenset({"append", "extend", "insert", "appendleft", "extendleft"})
_FILE_WRITES = frozenset({"write", "writelines", "writerow", "writerows"})
_KEPT = ("returned", "yielded", "written", "saved")
_OUTER = frozenset({"numbered", "joined", "drawn"})
_BINDERS = (cst.AssignTarget, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr)
_SETS = re.compile(r"[sS]et\b|Iterable|Collection|Sized|Container")
_STEPS = 60


class Follower:
    """Follows a value through names, attributes, copies, comprehensions, loops that collect, and functions of the file
    to the uses that are made of its order."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._names: dict[int, dict[str, list[cst.Name]]] = {}
        self._seen: set[int] = set()
        self._set = False
        self._nested = 0
        self._entered: dict[int, cst.Call] = {}

    def uses(self, node: cst.BaseExpression, *, is_set: bool = False) -> list[Use]:
        """Every use of the value of `node` that is in sight, each once.

        A set (`is_set`) has no order until something iterates it: it may be returned or passed on.
        """
        return self._collect(is_set, lambda: self._of(node))

    def uses_of_name(self, name: cst.Name, node: cst.CSTNode, *, is_set: bool = False) -> list[Use]:
        """The same of what `node` binds to `name`."""
        return self._collect(is_set, lambda: self._named(name, node))

    def uses_in(self, name: cst.Name, loop: cst.For) -> list[Use]:
        """The same of what `loop` binds to `name` in every round."""
        return self._collect(
            False, lambda: (use for load in names_read(loop.body).get(name.value, ()) for use in self._of(load))
        )

    def _collect(self, is_set: bool, uses: Callable[[], Iterator[Use]]) -> list[Use]:
        self._seen = set()
        self._set, self._nested = is_set, 0
        return list(dict.fromkeys(uses()))

    def _of(self, node: cst.BaseExpression) -> Iterator[Use]:
        if id(node) in self._seen or len(self._seen) > _STEPS:
            return
        self._seen.add(id(node))
        parent = self.module.parent(node)
        assert parent is not None
        if self._is_told(node):
            yield Use(node, "told")
            return
        handler = self._HANDLERS.get(type(parent))
        if handler is not None:
            yield from handler(self, node, parent)
        elif isinstance(parent, (cst.Expr, cst.Assert, cst.Del)):
            yield Use(node, "measured")
        else:
            yield Use(node, "other")

    def _is_told(self, node: cst.CSTNode) -> bool:
        """Whether `node` is part of a message: of an exception, a warning, a line of the log."""
        for ancestor in self.module.ancestors(node):
            if isinstance(ancestor, (cst.Raise, cst.Assert, cst.FormattedStringExpression)):
                return True
            if isinstance(ancestor, cst.Call) and last_word(ancestor.func) in MESSAGES:
                return True
            if isinstance(ancestor, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
                return False
        return False

    def _iterated(self, node: cst.BaseExpression, uses: Iterator[Use]) -> Iterator[Use]:
        """`uses` of what iterating `node` has made: no longer a set, unless the sets are inside it."""
        before = self._set
        self._set = before and self._nested > 0
        for use in uses:
            yield use._replace(origin=use.origin or node) if before and not self._nested else use
        self._set = before

    # Each handler is told the value and what holds it.

    def _through(self, node: Any, parent: Any) -> Iterator[Use]:
        yield from self._of(parent)

    def _element(self, node: Any, parent: Any) -> Iterator[Use]:
        """Inside a display: `[*x]` goes on, `(x, y)` only to a `return`."""
        display = self.module.parent(parent)
        if isinstance(parent, cst.StarredElement):
            if isinstance(display, cst.Set):
                yield Use(node, "measured")
            else:
                yield from self._iterated(node, self._of(display))  # type: ignore[arg-type]
            return
        above = self.module.parent(display) if isinstance(display, cst.Tuple) else None
        if isinstance(above, cst.Return) and isinstance(display, cst.Tuple):
            yield from self._returned(display, above, list(display.elements).index(parent))
        elif isinstance(above, cst.Yield):
            yield from self._of(display)  # type: ignore[arg-type]
        elif isinstance(above, cst.Assign) and (target := opposite(above, parent)) is not None:
            yield from self._stored(target, above)
        else:
            yield Use(node, "other")

    def _entry(self, node: Any, parent: Any) -> Iterator[Use]:
        """A value of a dictionary: `{"names": x}`, `{key: x for …}`."""
        table: Any = parent if isinstance(parent, cst.DictComp) else self.module.parent(parent)
        above = self.module.parent(table)
        call = self.module.parent(above) if isinstance(above, cst.Arg) else None
        if node is not parent.value:
            yield Use(node, "keyed")
        elif isinstance(above, (cst.Return, cst.Yield)):
            yield from self._of(table)
        elif isinstance(call, cst.Call) and not self._set:
            kind = self._kind_of_call(self.module.resolve(call.func), last_word(call.func))
            yield Use(call, kind if kind in ("gathered", "saved", "written") else "other")
        elif isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Name):
            for load in self.loads_after(above.targets[0].target, above):
                taken = self.module.parent(load)
                if isinstance(taken, cst.Subscript) and load is taken.value:
                    yield from self._of(taken)
        else:
            yield Use(node, "other")

    def _binary(self, node: Any, parent: cst.BinaryOperation) -> Iterator[Use]:
        sets = (cst.BitOr, cst.BitAnd, cst.BitXor, cst.Subtract)
        removed = isinstance(parent.operator, cst.Subtract) and node is parent.right
        if isinstance(parent.operator, (cst.Add, cst.Multiply)) or (
            self._set and not removed and isinstance(parent.operator, sets)
        ):
            yield from self._of(parent)
        else:
            yield Use(node, "measured")

    def _comparison(self, node: Any, parent: Any) -> Iterator[Use]:
        yield Use(node, "measured")

    def _choice(self, node: cst.BaseExpression, parent: cst.IfExp) -> Iterator[Use]:
        if node is parent.test:
            yield Use(node, "measured")
        else:
            yield from self._of(parent)

    def _argument(self, node: Any, arg: cst.Arg) -> Iterator[Use]:
        call = self.module.parent(arg)
        if not isinstance(call, cst.Call):
            yield Use(node, "other")
            return
        names = self.module.resolve(call.func)
        word = last_word(call.func)
        kind = self._kind_of_call(names, word)
        if self._set and kind in ("saved", "gathered", "written"):
            kind = "called"
        if self._nested and kind in _OUTER:
            yield Use(call, "other")
            return
        if kind == "passes" and word == "zip" and not self._nested and any(_counts(other.value) for other in call.args):
            yield Use(call, "numbered", node if self._set else None)
        elif kind == "passes":
            yield from self._iterated(node, self._of(call))
        elif kind == "copies":
            yield from self._of(call)
        elif kind == "numbered" and isinstance(loop := self.module.parent(call), cst.For) and not _uses_number(loop):
            yield from self._iterated(node, self.collected(loop))
        elif kind == "joined":
            uses = list(self._iterated(node, self._of(call)))
            kept = any(use.kind in _KEPT for use in uses)
            yield Use(call, "joined" if kept else "told", node)
        elif arg.star:
            yield Use(call, "called")
        elif kind == "local":
            yield from self._parameter(call, arg, names[0])
        elif word in _GROWS and isinstance(call.func, cst.Attribute):
            grown = self._grown(call.func.value, call) if word.startswith("ext") else iter((Use(node, "stored"),))
            yield from self._iterated(node, grown)
        else:
            yield Use(call, kind, node if self._set else None)

    def _kind_of_call(self, names: Sequence[str], word: str) -> str:
        if _SORTERS.search(word) or any(_SORTERS.search(name.rpartition(".")[2]) for name in names):
            return "sorted"
        for name in names:
            for kind, table in _KINDS:
                if name in table:
                    return kind
            if name.startswith("@."):
                return "local"
        if word == "join" and not names:
            return "joined"
        if word in _SAVES:
            return "saved"
        if word.endswith(("Dataset", "tqdm", "TQDM")):
            return "gathered" if word.endswith("Dataset") else "passes"
        if word in SET_METHODS or word in ("issubset", "issuperset", "isdisjoint"):
            return "measured"
        if word in _FILE_WRITES:
            return "written"
        return "called"

    def _parameter(self, call: cst.Call, arg: cst.Arg, name: str) -> Iterator[Use]:
        """The uses of the parameter of a function of the file that `arg` binds."""
        function = self._function(name)
        if function is None:
            word = name.rpartition(".")[2]
            yield Use(call, "gathered" if word.endswith("Dataset") else "called")
            return
        parameters = [*function.params.posonly_params, *function.params.params]
        bound: cst.Param | None = None
        if arg.keyword is not None:
            every = (*parameters, *function.params.kwonly_params)
            wanted = [one for one in every if one.name.value == arg.keyword.value]
            bound = wanted[0] if wanted else None
        elif not any(one.star for one in call.args):
            index = list(call.args).index(arg)
            bound = parameters[index] if index < len(parameters) else None
        if bound is None:
            yield Use(call, "called")
            return
        before = self._entered
        self._entered = {**before, id(function): call}
        yield from self._loads(bound.name, function, self.module.inner_scope(function), None)
        self._entered = before

    def _function(self, name: str) -> cst.FunctionDef | None:
        if name.count(".") != 1:
            return None
        for binding in self.module.scope.bindings.get(name[2:], ()):
            if binding.kind == "def":
                return self._definition(name[2:])
        return None

    def _definition(self, word: str) -> cst.FunctionDef | None:
        self.module.load_where(lambda text: f"def {word}(" in text, word)
        for unit in self.module.units:
            if unit.piece.name == word and unit.piece.owner < 0 and unit.root is not None:
                for statement in unit.root.body:
                    if isinstance(statement, cst.FunctionDef):
                        return statement
        return None

    def _attribute(self, node: Any, parent: cst.Attribute) -> Iterator[Use]:
        """A method of it."""
        word, call = parent.attr.value, self.module.parent(parent)
        if not isinstance(call, cst.Call) or call.func is not parent:
            yield Use(node, "other")
        elif word == "sort":
            yield Use(call, "sorted")
        elif self._set and word in SET_METHODS:
            yield from self._of(call)
        elif self._set:
            yield Use(call, "measured" if word in _NEUTRAL else "other")
        elif word in _NEUTRAL:
            yield Use(call, "measured")
        elif word in ("index", "pop") and not self._nested:
            yield Use(call, "other" if word == "pop" and self._is_work(parent) else "indexed")
        else:
            yield Use(call, "other")

    def _is_work(self, taken: cst.Attribute) -> bool:
        """Whether `name.pop` takes from a list of work to be done: `while name:`, and what is found joins it."""
        name = dotted(taken.value)
        for around in self.module.ancestors(taken):
            if isinstance(around, cst.While):
                tested = self.module.code(around.test) in (name, f"len({name})", f"len({name}) > 0")
                return (
                    tested
                    and re.search(rf"\b{name}\.(?:append|extend|add|update)\(", self.module.code(around.body))
                    is not None
                )
        return False

    def _one_of(self, node: Any, parent: cst.BaseExpression) -> Iterator[Use]:
        """An element of a list or generator that a comprehension makes."""
        self._nested += 1
        yield from self._of(parent)
        self._nested -= 1

    def _each(self, target: cst.BaseAssignTargetExpression, root: cst.CSTNode) -> Iterator[Use]:
        """What is done under `root` with every one of many such values, which goes by the name `target` there."""
        self._nested -= 1
        for load in names_read(root).get(target.value, ()) if isinstance(target, cst.Name) else ():
            yield from self._of(load)
        self._nested += 1

    def _subscript(self, node: Any, parent: cst.Subscript) -> Iterator[Use]:
        changed = (cst.AssignTarget, cst.AugAssign, cst.Del)
        if node is not parent.value or isinstance(self.module.parent(parent), changed):
            yield Use(node, "measured")
            return
        index = parent.slice[0].slice
        if self._nested and isinstance(index, cst.Index):
            self._nested -= 1
            yield from self._of(parent)
            self._nested += 1
            return
        if self._nested:
            yield from self._of(parent)
            return
        if isinstance(index, cst.Slice) and index.lower is None and index.upper is None and index.step is None:
            yield from self._of(parent)
        elif isinstance(index, cst.Index) and (loop := self._goes_through(parent, index.value)) is not None:
            yield from self._iterated(node, self.collected(loop))
        else:
            first = isinstance(index, cst.Index) and bare(index.value) in ("0", "-1")
            yield Use(parent, "picked" if first else "indexed")

    def _goes_through(self, node: cst.Subscript, index: cst.BaseExpression) -> cst.For | None:
        """The loop `for i in range(…)` around `node`, `x[i]`, whose `i` does nothing but this and be shown."""
        if not isinstance(index, cst.Name) or not isinstance(node.value, (cst.Name, cst.Attribute)):
            return None
        for loop in self.module.ancestors(node):
            if isinstance(loop, cst.For) and bare(loop.target) == index.value:
                same = isinstance(loop.iter, cst.Call) and last_word(loop.iter.func) == "range"
                return loop if same and not _uses_index(loop, index.value, bare(node)) else None
        return None

    def _index(self, node: Any, parent: Any) -> Iterator[Use]:
        yield Use(node, "keyed")

    def _comprehension_part(self, node: Any, part: cst.CompFor) -> Iterator[Use]:
        comprehension: cst.CSTNode = part
        while isinstance(comprehension, cst.CompFor):
            above = self.module.parent(comprehension)
            assert above is not None
            comprehension = above
        if self._nested:
            yield from self._each(part.target, comprehension)
        elif isinstance(comprehension, cst.SetComp):
            yield Use(node, "measured")
        elif isinstance(comprehension, cst.DictComp):
            yield Use(node, "keyed")
        else:
            assert isinstance(comprehension, (cst.ListComp, cst.GeneratorExp))
            yield from self._iterated(node, self._of(comprehension))

    def _loop(self, node: Any, loop: cst.For) -> Iterator[Use]:
        if self._nested:
            yield from self._each(loop.target, loop.body)
            return
        yield from self._iterated(node, self.collected(loop))

    def _returned(self, node: Any, parent: cst.CSTNode, position: int = -1) -> Iterator[Use]:
        """Followed to the callers in the file; where there are none, the caller is out of sight. `position`: in the
        tuple that is returned."""
        kind = "yielded" if isinstance(parent, (cst.Yield, cst.From)) else "returned"
        function = self.module.enclosing_function(parent)
        callers = self._callers(function) if function is not None else []
        if all(any(one is function for one in self.module.ancestors(call)) for call in callers):
            yield Use(node, "other" if self._set else kind)
        for call in callers:
            if position >= 0 and (target := _unpacked(self.module.parent(call), position)) is not None:
                yield from self._stored(target, self.module.parent(call))  # type: ignore[arg-type]
            elif isinstance(node, (cst.Tuple, cst.Dict, cst.DictComp)):
                yield Use(node, "other")
            else:
                yield from self._of(call)

    def _callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls of a top-level function, or of a method through `self`, in the file; of one that the value was
        followed into, that call."""
        if id(function) in self._entered:
            return [self._entered[id(function)]]
        name = function.name.value
        self.module.load_where(lambda text: re.search(rf"\b{name}\s*\(", text) is not None, name)
        found = []
        for call in self.module.calls:
            own = isinstance(call.receiver, cst.Name) and call.receiver.value in ("self", "cls")
            local = any(one.startswith("@.") and one.endswith(f".{name}") for one in call.own)
            if local or (call.attribute == name and own):
                found.append(call.node)
        return found

    def _assigned(self, node: cst.BaseExpression, parent: cst.CSTNode) -> Iterator[Use]:
        if isinstance(parent, cst.Assign):
            targets: list[cst.BaseExpression] = [target.target for target in parent.targets]
        elif isinstance(parent, (cst.AnnAssign, cst.NamedExpr)):
            targets = [parent.target]
        else:
            assert isinstance(parent, cst.AugAssign)
            yield from self._grown(parent.target, parent)
            return
        if isinstance(parent, cst.NamedExpr):
            yield from self._of(parent)
        for target in targets:
            if isinstance(target, (cst.Tuple, cst.List)):
                only = len(target.elements) == 1
                yield Use(parent, "measured" if only else "other" if self._set or self._nested else "indexed")
            else:
                yield from self._stored(target, parent)

    def _with(self, node: Any, parent: cst.WithItem) -> Iterator[Use]:
        if parent.asname is not None:
            yield from self._stored(parent.asname.name, parent)
        else:
            yield Use(node, "other")

    def _stored(self, target: cst.BaseExpression, node: cst.CSTNode) -> Iterator[Use]:
        if isinstance(target, cst.Name):
            yield from self._named(target, node)
        elif isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
            yield from self._attribute_uses(target)
        else:
            yield Use(node, "stored")

    def _grown(self, target: cst.BaseExpression, node: cst.CSTNode) -> Iterator[Use]:
        """A list that takes in the value: its later uses."""
        yield from self._stored(target, node)

    # ------------------------------------------------------------------ names

    def _named(self, name: cst.Name, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of `name`, bound at or changed by `node`, after it."""
        scope = self.module.scope_of(node)
        home = scope.home(name.value)
        if home is None:
            yield Use(node, "other")
            return
        root = home.function.node
        yield from self._loads(name, root if isinstance(root, cst.FunctionDef) else None, home, node)

    def loads_after(self, name: cst.Name, node: cst.CSTNode) -> list[cst.Name]:
        """Where `name`, bound at `node`, is read afterwards, in the order of the source."""
        home = self.module.scope_of(node).home(name.value)
        if home is None:
            return []
        root = home.function.node
        return self._live_loads(name, root if isinstance(root, cst.FunctionDef) else None, home, node)

    def _live_loads(
        self, name: cst.Name, function: cst.FunctionDef | None, home: Scope | None, node: cst.CSTNode | None
    ) -> list[cst.Name]:
        module = self.module
        start = module.order_of(node) if node is not None else -1
        killers = [
            (binding.order, self._reach(binding.node, binding.value, node))
            for binding in (home.bindings.get(name.value, ()) if home is not None else ())
            if binding.order > start
            and binding.node is not None
            and binding.node is not node
            and binding.kind in ("assign", "unpack", "loop")
        ]
        found = []
        for load in sorted(self._loads_in(function, name.value), key=module.order_of):
            order = module.order_of(load)
            around = list(module.ancestors(load))
            if node is not None and (order <= start or node in around):
                continue
            if not any(killed < order and (block is None or block in around) for killed, block in killers):
                found.append(load)
        return found

    def _reach(
        self, binder: cst.CSTNode, value: cst.BaseExpression | None, node: cst.CSTNode | None
    ) -> cst.CSTNode | None:
        """The block in which a later binding hides the value; None: everywhere after it, as where whatever binds the
        value at `node` comes by there too. `if sort: x = sorted(x)` gives
        the user the choice, unless the value was itself bound in a branch of that `if`."""
        module = self.module
        block = module.parent(module.statement(binder))
        if node is not None and any(around is block for around in module.ancestors(node)):
            return None
        if isinstance(value, cst.Call) and _SORTERS.search(last_word(value.func)):
            choice = next((one for one in module.ancestors(binder) if isinstance(one, cst.If)), None)
            if choice is not None and (node is None or choice not in module.ancestors(node)):
                return None
        return block

    def _loads(
        self, name: cst.Name, function: cst.FunctionDef | None, home: Scope | None, node: cst.CSTNode | None
    ) -> Iterator[Use]:
        loads = self._live_loads(name, function, home, node)
        counted = [where for load in loads if (where := self._counted_one(load)) is not False]
        for load in loads:
            if isinstance(node, (cst.For, cst.While)) and self._grows(load):
                continue
            if self._set and self._is_no_set(load):
                continue
            alone = bool(counted) and (True in counted or any(one in counted for one in self.module.ancestors(load)))
            for use in self._of(load):
                if not (alone and use.kind in ("picked", "returned")):
                    yield use
                if use.kind == "sorted" and self._in_place(use.node, load):
                    return

    def _counted_one(self, load: cst.Name) -> cst.BaseSuite | bool:
        """Where there is but one, as `load` stands in `len(x) == 1`, `len(x) > 1` or their like: in the branch of an
        `if`, or everywhere, where somebody is told of more."""
        call = self.module.parent(self.module.parent(load) or load)
        if not isinstance(call, cst.Call) or last_word(call.func) != "len":
            return False
        around = self.module.parent(call)
        if isinstance(around, cst.Arg):
            check = self.module.parent(around)
            return isinstance(check, cst.Call) and any(bare(arg.value) == "1" for arg in check.args)
        if not isinstance(around, cst.Comparison) or bare(around.comparisons[0].comparator) != "1":
            return False
        choice = self.module.parent(around)
        branch = isinstance(choice, cst.If) and isinstance(around.comparisons[0].operator, cst.Equal)
        return choice.body if branch else True  # type: ignore[union-attr]

    def _is_no_set(self, load: cst.Name) -> bool:
        """Whether `load` stands where an `isinstance` says that it is something else than a set."""
        below: cst.CSTNode = load
        for around in self.module.ancestors(load):
            if isinstance(around, cst.If) and below is around.body:
                text = bare(around.test)
                if text.startswith(f"isinstance({load.value},") and not _SETS.search(text):
                    return True
            below = around
        return False

    def _in_place(self, node: cst.CSTNode, load: cst.Name) -> bool:
        return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.value is load

    def _grows(self, load: cst.Name) -> bool:
        parent = self.module.parent(load)
        return isinstance(parent, cst.Attribute) and parent.attr.value in _GROWS

    def _loads_in(self, function: cst.FunctionDef | None, word: str) -> list[cst.Name]:
        """The places in `function` (None: the whole file) where the name is read, in the order of the source."""
        if function is None:
            self.module.load_where(word=word)
            roots: list[cst.CSTNode] = [unit.root for unit in self.module.units if unit.root is not None]
            return [load for root in roots for load in names_read(root).get(word, ())]
        key = id(function)
        if key not in self._names:
            self._names[key] = names_read(function)
        return self._names[key].get(word, [])

    def _attribute_uses(self, target: cst.Attribute) -> Iterator[Use]:
        """The uses of an attribute in the methods of its class; none after it is sorted in place anywhere."""
        module, word = self.module, target.attr.value
        class_ = module.enclosing_class(target)
        if class_ is None:
            yield Use(target, "stored")
            return
        texts = {module.texts[unit.index] for unit in class_.units if word in module.words[unit.index]}
        module.load_where(lambda text: text in texts)
        roots: list[cst.CSTNode] = [unit.root for unit in class_.units if unit.root is not None]
        if not roots and class_.node is not None:
            roots = [class_.node]
        found: list[Use] = []
        for root in roots:
            for attribute in attributes_named(root, word):
                if attribute is target or not isinstance(attribute.value, cst.Name):
                    continue
                if isinstance(module.parent(attribute), (cst.AssignTarget, cst.AnnAssign)):
                    continue
                found += self._of(attribute)
        if any(use.kind == "sorted" and self._stays_sorted(use.node, target) for use in found):
            yield Use(target, "sorted")
        else:
            yield from found or [Use(target, "stored")]

    def _stays_sorted(self, node: cst.CSTNode, target: cst.Attribute) -> bool:
        """`self.x.sort()` or `self.x = sorted(self.x)`."""
        parent = self.module.parent(node)
        if isinstance(parent, cst.Assign):
            return bare(parent.targets[0].target) == bare(target)
        return isinstance(node, cst.Call) and last_word(node.func) == "sort"

    # ------------------------------------------------------------------ loops

    def collected(self, loop: cst.For) -> Iterator[Use]:
        """What the body of a loop over the value makes of its order."""
        bound = set(names_in(loop.target)) | _bound_in(loop.body)
        for node in _nodes(loop.body):
            if isinstance(node, cst.Yield):
                yield from self._returned(node.value if node.value is not None else node, node)
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                owner = node.func.value
                outside = not isinstance(owner, cst.Name) or owner.value not in bound
                word = node.func.attr.value
                if word in _GROWS and outside:
                    yield from self._grown_in_loop(owner, loop)
                elif word in _FILE_WRITES and _opened_outside(owner, bound, loop):
                    yield Use(node, "written")
                elif word == "setdefault" and len(node.args) == 2 and _is_length(node.args[1].value, owner):
                    yield Use(node, "numbered")
            elif isinstance(node, cst.Call) and bare(node.func) == "print":
                files = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "file"]
                if files and not bare(files[0]).startswith("sys.") and _opened_outside(files[0], bound, loop):
                    yield Use(node, "written")
            elif isinstance(node, cst.AugAssign) and self._adds_elements(node):
                yield from self._grown_in_loop(node.target, loop)
            elif isinstance(node, cst.AugAssign) and self._adds(node, cst.SimpleString):
                if any(use.kind in _KEPT for use in self._grown_in_loop(node.target, loop)):
                    yield Use(node, "joined")
            elif isinstance(node, cst.Assign):
                yield from self._numbered(node, loop)

    def _adds_elements(self, node: cst.AugAssign) -> bool:
        """Whether `x += y` makes a list longer: `y` is a display, or `x` began as one."""
        if isinstance(node.operator, cst.AddAssign) and isinstance(node.value, (cst.List, cst.ListComp)):
            return True
        return self._adds(node, cst.List, cst.ListComp)

    def _adds(self, node: cst.AugAssign, *kinds: type[cst.BaseExpression]) -> bool:
        """Whether it is `x += y`, and `x` is a name that began as one of `kinds`."""
        if not isinstance(node.operator, cst.AddAssign) or not isinstance(node.target, cst.Name):
            return False
        home = self.module.scope_of(node).home(node.target.value)
        bindings = home.bindings[node.target.value] if home is not None else ()
        return any(isinstance(bound_value(binding), kinds) for binding in bindings)

    def _grown_in_loop(self, owner: cst.BaseExpression, loop: cst.For) -> Iterator[Use]:
        if isinstance(owner, cst.Name):
            outer = _outermost(self.module, loop, owner.value)
            yield from self._named(owner, outer)
        elif isinstance(owner, cst.Attribute) and isinstance(owner.value, cst.Name) and owner.value.value == "self":
            yield from self._attribute_uses(owner)
        elif isinstance(owner, cst.Subscript) and not self._set:
            yield from self._table_uses(owner, loop)
        else:
            yield Use(loop, "stored")

    def _table_uses(self, owner: cst.Subscript, loop: cst.For) -> Iterator[Use]:
        """The uses of a table of lists, `table["name"].append(x)`, behind the loop that fills it; none where something
        in the function sorts."""
        table: cst.BaseExpression = owner
        while isinstance(table, cst.Subscript):
            table = table.value
        function = self.module.enclosing_function(loop)
        home = self.module.scope_of(loop).home(table.value) if isinstance(table, cst.Name) else None
        if not isinstance(table, cst.Name) or home is None or function is None:
            yield Use(loop, "stored")
            return
        made = any(binding.kind == "assign" for binding in home.bindings[table.value])
        if not made or _SORTERS.search(self.module.code(function)):
            yield Use(loop, "stored")
            return
        for load in self.loads_after(table, _outermost(self.module, loop, table.value)):
            parent = self.module.parent(load)
            call = self.module.parent(parent) if isinstance(parent, cst.Arg) else None
            if isinstance(call, cst.Call):
                kind = self._kind_of_call(self.module.resolve(call.func), last_word(call.func))
                yield Use(call, kind if kind in ("gathered", "saved", "written") else "other")
            elif isinstance(parent, cst.Return):
                yield Use(parent, "returned")

    def _numbered(self, node: cst.Assign, loop: cst.For) -> Iterator[Use]:
        """`index[name] = len(index)`: the order becomes a number."""
        target = node.targets[0].target
        if not isinstance(target, cst.Subscript):
            return
        value = node.value
        counter = isinstance(value, cst.Name) and _counted(loop, value.value)
        if counter or _is_length(value, target.value):
            yield Use(node, "numbered")

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
        cst.DictComp: _entry,
        cst.DictElement: _entry,
        cst.For: _loop,
        cst.Return: _returned,
        cst.Yield: _returned,
        cst.From: _returned,
        cst.Assign: _assigned,
        cst.AnnAssign: _assigned,
        cst.AugAssign: _assigned,
        cst.NamedExpr: _assigned,
        cst.WithItem: _with,
        cst.Element: _element,
        cst.StarredElement: _element,
    }


_KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("measured", _MEASURES),
    ("passes", PASSES),
    ("copies", COPIES),
    ("gathered", _GATHERS),
    ("drawn", _DRAWS),
    ("numbered", frozenset({"builtins.enumerate"})),
    ("called", frozenset({"builtins.next"})),
    ("printed", frozenset({"builtins.print"})),
    ("keyed", frozenset({"builtins.dict", "builtins.dict.fromkeys"})),
)


def opposite(node: cst.Assign, element: cst.BaseElement) -> cst.BaseExpression | None:
    """What `element`, of the tuple that is assigned, is assigned to."""
    target, value = node.targets[0].target, node.value
    if not isinstance(target, (cst.Tuple, cst.List)) or not isinstance(value, cst.Tuple):
        return None
    left, right = target.elements, value.elements
    if len(left) != len(right) or any(isinstance(one, cst.StarredElement) for one in (*left, *right)):
        return None
    return left[list(right).index(element)].value


def bound_value(binding: Binding) -> cst.CSTNode | None:
    """What a binding gives the name, unpacked from a display where it stands in one."""
    value: cst.CSTNode | None = binding.value
    for position in binding.path:
        if not isinstance(value, (cst.Tuple, cst.List)) or position >= len(value.elements):
            return None
        value = value.elements[position].value
    return value


def _opened_outside(node: cst.BaseExpression, bound: set[str], loop: cst.For) -> bool:
    """Whether a file that the body of `loop` writes to is one from outside, or a choice of such ones."""
    if isinstance(node, cst.IfExp):
        return _opened_outside(node.body, bound, loop) and _opened_outside(node.orelse, bound, loop)
    if not isinstance(node, cst.Name):
        return bare(node).startswith(("sys.stdout", "sys.stderr", "self."))
    if node.value not in bound:
        return True
    chosen = [
        one.value
        for one in _nodes(loop.body)
        if isinstance(one, cst.Assign) and bare(one.targets[0].target) == node.value
    ]
    return bool(chosen) and all(
        isinstance(one, (cst.Name, cst.IfExp)) and _opened_outside(one, bound - {node.value}, loop) for one in chosen
    )


def _unpacked(parent: cst.CSTNode | None, position: int) -> cst.BaseExpression | None:
    """What `parent`, which assigns a call that returns a tuple, gives the element at `position` to."""
    target = parent.targets[0].target if isinstance(parent, cst.Assign) else None
    if not isinstance(target, (cst.Tuple, cst.List)) or position >= len(target.elements):
        return None
    if any(isinstance(element, cst.StarredElement) for element in target.elements):
        return None
    return target.elements[position].value


def _counts(node: cst.BaseExpression) -> bool:
    """Whether `node` is a `range` or a counter."""
    return isinstance(node, cst.Call) and last_word(node.func) in ("range", "count", "arange")


def _is_length(node: cst.BaseExpression, owner: cst.BaseExpression) -> bool:
    """Whether `node` is `len(owner)`."""
    return isinstance(node, cst.Call) and bare(node) == f"len({bare(owner)})"


def last_word(node: cst.BaseExpression) -> str:
    """`c` of `a.b.c`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


_SCOPES = frozenset({cst.FunctionDef, cst.Lambda, cst.ClassDef})


def _nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of `node` in the order of the source, nested functions left out."""
    stack: list[cst.CSTNode] = [node]
    while stack:
        current = stack.pop()
        yield current
        if type(current) not in _SCOPES or current is node:
            stack.extend(reversed(children(current)))


def _bound_in(body: cst.CSTNode) -> set[str]:
    """The names that a loop's body gives a new value in every round, one that is not made of the old one."""
    found: set[str] = set()
    for node in _nodes(body):
        if type(node) in LEAVES:
            continue
        if isinstance(node, cst.Assign):
            names = {target.target.value for target in node.targets if isinstance(target.target, cst.Name)}
            found.update(names if names.isdisjoint(names_in(node.value)) else ())
        elif isinstance(node, cst.WithItem) and node.asname is not None and isinstance(node.asname.name, cst.Name):
            found.add(node.asname.name.value)
    return found


def _counted(loop: cst.For, name: str) -> bool:
    return any(
        isinstance(node, cst.AugAssign)
        and isinstance(node.target, cst.Name)
        and node.target.value == name
        and isinstance(node.value, cst.Integer)
        for node in _nodes(loop.body)
    )


def _outermost(module: Module, loop: cst.For, name: str) -> cst.CSTNode:
    """The outermost loop around `loop` in which `name` only grows: its uses come after it."""
    found: cst.CSTNode = loop
    for ancestor in module.ancestors(loop):
        if isinstance(ancestor, cst.FunctionDef):
            break
        if isinstance(ancestor, (cst.For, cst.While)):
            if name in _bound_in(ancestor.body):
                break
            found = ancestor
    return found


def _uses_number(loop: cst.For) -> bool:
    """Whether the body of `for number, x in enumerate(…)` does more with the number than to show it."""
    if not isinstance(loop.target, cst.Tuple) or not isinstance(loop.target.elements[0].value, cst.Name):
        return True
    number = loop.target.elements[0].value.value
    stack: list[cst.CSTNode] = [loop.body]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Name) and node.value == number:
            return True
        stack.extend(_parts_that_count(node, number))
    return False


def _uses_index(loop: cst.For, number: str, element: str) -> bool:
    """Whether the body of `for number in range(…)` does more with the number than to take the `element` `x[number]`."""
    stack: list[cst.CSTNode] = [loop.body]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Name) and node.value == number:
            return True
        if not (isinstance(node, cst.Subscript) and bare(node) == element):
            stack.extend(_parts_that_count(node, number))
    return False


def _parts_that_count(node: cst.CSTNode, number: str) -> Sequence[cst.CSTNode]:
    """The children of `node` in which `number` would decide more than what is shown and when."""
    if isinstance(node, cst.Call) and last_word(node.func) in _SHOWS | MESSAGES:
        return ()
    if isinstance(node, (cst.If, cst.While)):
        return (node.body,) if node.orelse is None else (node.body, node.orelse)
    if isinstance(node, cst.For) and number in names_in(node.target):
        return (node.iter,)
    return children(node)


def names_read(root: cst.CSTNode) -> dict[str, list[cst.Name]]:
    """The names that are read under `root`, in the order of the source."""
    found: dict[str, list[cst.Name]] = {}
    stack: list[cst.CSTNode] = [root]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is cst.Name:
            found.setdefault(node.value, []).append(node)  # type: ignore[attr-defined,arg-type]
        elif kind in LEAVES:
            continue
        elif kind is cst.Attribute or kind is cst.Arg:
            stack.append(node.value)  # type: ignore[attr-defined]
        elif kind in _BINDERS:
            for child in children(node):
                if not (child is getattr(node, "target", None) and isinstance(child, (cst.Name, cst.Tuple))):
                    stack.append(child)
        else:
            stack.extend(reversed(children(node)))
    return found
