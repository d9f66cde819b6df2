"""The statements of a function -> its events, in the order in which they run."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.main_guard import asks_for_main
from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import children, defaults_of, walk
from torchdet_lint.program.events import CUDNN, FAILS, GUARD, MODELS, OWN, Argument, Test
from torchdet_lint.program.syntax.conditions import (
    asked_as_device,
    decided,
    device_asked,
    drawn_in_vain,
    is_of_run,
    loader_asked,
    on_by_default,
    passed_on,
    stood_in_for,
    switch_in,
    switched,
    tested,
)
from torchdet_lint.program.syntax.expressions import Expressions
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.scopes import asks_for_method, bound_above, constant
from torchdet_lint.program.syntax.shapes import (
    FUNCTIONS,
    LEAVING,
    TRY,
    as_text,
    asks_for_training,
    fails_without,
    goes_on,
    holds_in_evaluation,
    is_type_checking,
    last_word,
    leaves_early,
    leaves_evaluation,
    names_a_device,
    overwritten,
)
from torchdet_lint.program.syntax.training.descent import may_step, steps
from torchdet_lint.program.syntax.training.downloads import downloading
from torchdet_lint.program.syntax.training.loaded import DataUses
from torchdet_lint.program.syntax.training.reloaded import reloaded
from torchdet_lint.program.syntax.training.untrained import (
    applies,
    frozen,
    inspected,
    loads_weights,
    read_inside,
    scored,
    traced,
    trunks,
    unapplied,
    uses_weight,
)
from torchdet_lint.program.syntax.unbound import FirstBound, Picked, before_failure, table_of
from torchdet_lint.program.syntax.unkept.filled_tables import filled
from torchdet_lint.program.syntax.unkept.unused_draws import only_asserts, only_counts, redrawn, waited
from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import without_prose

if TYPE_CHECKING:
    from torchdet_lint.program.events import Event, Names
    from torchdet_lint.program.syntax.names import Resolver
    from torchdet_lint.program.syntax.scopes import Scope
    from torchdet_lint.program.syntax.unkept.naming import Naming
    from torchdet_lint.program.syntax.unkept.times import Times


_LONG = 20
_READS = lazy(r"\.(?:weight|bias|state_dict|parameters)\b")
_LOADS = lazy(r"\bload[ \t]*\(")
# Of a function that loads weights into more models it is not asked what becomes of each.
_MODELS = 20
_LOOKS = lazy(r"print[ \t]*\(\s*\w+\s*\)|parameters\(\)|\.(?:shape|size\(\))\s*\)")
_FUNCTION = lazy(r"(?:torch\.|\$)[a-z]\w*")
_DATA_SETS = frozenset({"torch.utils.data.Dataset", "torch.utils.data.IterableDataset"})
_TAKE_DATA = ("torch.nn.functional.", "torch.utils.data.")
# A call of a function that may count the numbers of a model which is made for it.
_COUNTING = lazy(r"\b\w*(?:size|count|num|param)\w*[ \t]*\(\s*\w[\w.]*\(")
# Of a name that is bound more often it is not asked which bindings stand above a call.
_BOUNDS = 16
_COLLATES = "collate_fn"
# So many arms of a chain of `elif` are told apart.
_ARMS = 64


class Extractor(Expressions):
    """The events of one body in the order in which they run."""

    def __init__(self, names: Resolver, scope: Scope, times: Times, naming: Naming) -> None:
        super().__init__(names, scope, times, naming)
        # What is returned, and its parts with the arms that pick them.
        self.returns: list[tuple[ast.expr, list[tuple[ast.expr, tuple[int, ...]]]]] = []
        self.arms = 0
        self.tests: list[Test] = []
        # What parts of expressions ask, which is not what a function is split by first.
        self.asked_inside: list[Test] = []
        self.handed: dict[Test, None] = {}
        # The arms in which functions and named lambdas are defined, by their places.
        self.defined: dict[tuple[int, int], tuple[int, ...]] = {}
        # What names that arms bind stand for in each, and that of which a call is recorded.
        self.picked = Picked(scope)
        self._picked: Names = ()
        # What names stand for in this block that other blocks import from elsewhere.
        self.imported: dict[str, str] = {}
        # Whether what stands in the last rows that were looked at draws idly, or colours.
        self._rows = 0, 0
        self._idle = self._coloured = False
        self.picks = self.words.draws_nothing_lasting.search(scope.name.rpartition(".")[2]) is not None
        text, inside = self._text(), isinstance(scope.node, FUNCTIONS)
        # Of a file, what its functions do is looked at apart, where somebody asks for them.
        body = [one for one in scope.node.body if inside or not isinstance(one, (*FUNCTIONS, ast.ClassDef))]
        may_trace = self.words.may_trace.search(text) is not None
        looks = may_trace or _LOOKS.search(text) is not None
        self.inspected = self._unread(inspected(body, self._traces)) if looks else frozenset()
        freezes = "requires_grad" in text
        self.frozen = frozen(body) if inside and freezes else frozenset()
        self.below_downloads = downloading(body) if "download" in text else frozenset()
        self.unread = self.inspected
        if _READS.search(text) is not None:
            self.unread |= self._unread(unapplied(body))
        self.waited = self._unread(waited(body, self.words.tells)) if "sleep" in text else frozenset()
        if "rand" in text and "range" in text:
            self.waited |= self._unread(filled(body))
        self.tries = inside and "assert" in text and only_asserts(scope.node)
        self.counts = "parameters()" in text or _COUNTING.search(text) is not None
        redraws = "seed" in text and any(word in text for word in self.words.redraws)
        self.redrawn = redrawn(scope, self.words.redraws) if redraws else frozenset()
        found = reloaded(body, self._wraps) if 0 < text.count("load_state_dict") <= _MODELS else {}
        left = self._unread(frozenset(one.name for one in found.values()))
        self.reloading = {statement: one for statement, one in found.items() if one.name in left}
        switches = any(word in text for word in names.switch_words)
        self.scored = self._unread(scored(body, lambda node: self.switched(node, None))) if switches else frozenset()
        self.trunks = trunks(body) if freezes and "unfreeze" not in text else frozenset()
        if _LOADS.search(text) is not None:
            uses = DataUses(body, self._loads, self._takes_data, names.of_tensors)
            if uses.loads:
                self.data = uses.of_data(frozenset() if inside else self._read_inside, kept=self._is_of_a_data_set())
        self.steps = steps(body) if may_step(text) else {}
        self.traced = (
            self._unread(traced(body, self._traces_or_applies)) if may_trace or self.inspected else frozenset()
        )

    # Statements nest at most a hundred deep, which is the parser's own limit; expressions are walked with a stack.

    def _traces(self, call: ast.Call) -> bool:
        """Whether a call looks at a model with an input of which only the size counts."""
        names = self.names.resolve(call.func, self.scope)
        summarizes = any(name.rpartition(".")[2] in self.words.summarizes for name in names)
        return summarizes or not self.words.traces.isdisjoint(names)

    def _traces_or_applies(self, call: ast.Call) -> bool:
        """The same, or whether it applies a model that is only looked at."""
        return self._traces(call) or (isinstance(call.func, ast.Name) and call.func.id in self.inspected)

    def _wraps(self, call: ast.Call) -> bool:
        """Whether a call gives back the model that it is given, with the same weights."""
        return any(name in self.words.shares for name in self.names.resolve(call.func, self.scope))

    def _loads(self, call: ast.Call) -> bool:
        """Whether a call reads what was saved."""
        return not self.words.reads.isdisjoint(self.names.resolve(call.func, self.scope))

    def _is_of_a_data_set(self) -> bool:
        """Whether the function is a method of a data set."""
        method = self.scope.method
        class_ = method.outer if method is self.scope and method is not None else None
        around = class_.outer if class_ is not None else None
        if class_ is None or around is None:
            return False
        return any(not _DATA_SETS.isdisjoint(self.names.resolve(base, around)) for base in class_.node.bases)

    def _takes_data(self, call: ast.Call) -> bool | None:
        """Whether a call evidently takes data, and None where it may take anything but does nothing to a model: an
        object that is called, a parameter, a function of torch."""
        names = self.names.resolve(call.func, self.scope)
        if names and all(map(_takes_tensors, names)):
            return True
        return None if names and all(map(_gives_a_value, names)) else False

    def _text(self) -> str:
        """The text of the function, or of what the file does at top level."""
        node, lines = self.scope.node, self.names.scopes.hollow.lines
        if isinstance(node, FUNCTIONS):
            return "".join(lines[node.lineno - 1 : node.body[-1].end_lineno])
        parts: list[str] = []
        row = 0
        for one in node.body:
            if not isinstance(one, (*FUNCTIONS, ast.ClassDef)):
                # Several statements may stand in one row.
                parts += lines[max(row, one.lineno - 1) : one.end_lineno]
                row = one.end_lineno or one.lineno
        return "".join(parts)

    def _unread(self, names: frozenset[str]) -> frozenset[str]:
        """Those of `names` that, at top level, no function of the file reads."""
        return names - self._read_inside if names and not isinstance(self.scope.node, FUNCTIONS) else names

    @functools.cached_property
    def _read_inside(self) -> set[str]:
        """The names that functions of the file read of its top level."""
        nodes = [node for one in parsed_body("".join(self.names.scopes.hollow.lines)) for node in walk(one)]
        return read_inside(node for node in nodes if isinstance(node, FUNCTIONS))

    def call(self, node: ast.Call, branch: tuple[int, ...], deferred: bool) -> None:
        """Record a call, and the parameters that it hands on to where they decide."""
        recorded = len(self.events)
        for names, arms in self._picked_by_arms(node.func) or [((), ())]:
            self._picked = names
            within = (*branch, *(arm for arm in arms if arm not in branch and -arm not in branch))
            super().call(node, within, deferred or self._is_bound_below(node.func))
        self._by_option(node, recorded)
        self._by_collation(node, recorded)
        self._by_switch(node, recorded)
        for event in self.events[recorded:] if self.scope.kind == "function" else ():
            given = (*event.positional, *event.keywords.values())
            for names in (event.names, *(argument.names for argument in given)):
                if len(names) > 1 and (own := stood_in_for(names, self.scope)):
                    self.handed[Test(own, OWN)] = None
        self.handed.update(dict.fromkeys(passed_on(node, self.scope)))
        self.tests.extend(loader_asked(node, self.scope))
        self.tests.extend(device_asked(node, self.scope))

    def _by_option(self, node: ast.Call, recorded: int) -> None:
        """Put the calls of a loader since `recorded` into the arms of `shuffle=not options.serial`, or into those that
        bind `shuffle=shuffle`."""
        shuffle = next((word.value for word in node.keywords if word.arg == "shuffle"), None)
        if shuffle is None or self.scope.kind != "function":
            return
        arm, events = self.arms + 1, self.events[recorded:]
        if any("shuffle" not in one.keywords for one in events):
            return
        picked = self.picked.values(shuffle, self._split)
        values = [(self.arguments.argument(value), arms) for value, arms in picked]
        asked = switched(shuffle, self.names, self.scope, -arm, arm)
        if asked is not None:
            self.arms = arm
            self.asked_inside.append(asked)
            values = [(Argument((), known=True, value=told), (one,)) for told, one in ((True, arm), (False, -arm))]
        if not values:
            return
        del self.events[recorded:]
        for event in events:
            for value, arms in values:
                if not any(-one in event.branch for one in arms):
                    more = (one for one in arms if one not in event.branch)
                    keywords = {**event.keywords, "shuffle": value}
                    self.events.append(replace(event, keywords=keywords, branch=(*event.branch, *more)))

    def _by_switch(self, node: ast.Call, recorded: int) -> None:
        """Put the calls since `recorded` into the arms that bind an argument to one switch of a configuration or to
        another: `shuffle = cfg.TRAIN.SHUFFLE if training else cfg.VAL.SHUFFLE`."""
        given = [*enumerate(node.args), *((word.arg, word.value) for word in node.keywords)]
        picked = (
            (place, values)
            for place, value in given
            if (values := self.picked.values(value, self._split)) and any(switch_in(one) for one, _ in values)
        )
        place, values = next(picked, (None, []))
        events = self.events[recorded:] if values and self.scope.kind == "function" else []
        del self.events[len(self.events) - len(events) :]
        for event in events:
            for value, arms in values:
                if not any(-one in event.branch for one in arms):
                    more = (one for one in arms if one not in event.branch)
                    passed = _with_argument(event, place, self.arguments.argument(value))
                    self.events.append(replace(passed, branch=(*event.branch, *more)))

    def _by_loading(self, test: ast.expr, recorded: int) -> None:
        """Put the calls since `recorded`, of which one makes a model, into the arms of the `if` that replaces its
        weights, or not: `if pretrained: model.load_state_dict(…)`."""
        arm, events = self.arms + 1, self.events[recorded:]
        asked = list(tested(test, self.names, self.scope, -arm, arm)) if self.scope.kind == "function" else []
        del self.events[recorded:]
        for event in events:
            drawn = replace(event, reloaded=(), evaluated=False)
            if asked and event.reloaded:
                self.events.append(replace(event, branch=(*event.branch, arm)))
                drawn = replace(drawn, branch=(*event.branch, -arm))
            self.events.append(drawn)
        if asked:
            self.arms = arm
            self.asked_inside.extend(asked)

    def _by_collation(self, node: ast.Call, recorded: int) -> None:
        """Put the calls of a loader since `recorded` into the arms of `collate_fn=joined if quad else stacked`."""
        picked = next((word.value for word in node.keywords if word.arg == _COLLATES), None)
        events = self.events[recorded:]
        if not isinstance(picked, ast.IfExp) or self.scope.kind != "function":
            return
        if any(_COLLATES not in one.keywords for one in events) or len(split := self._split(picked)) == 1:
            return
        del self.events[recorded:]
        for event in events:
            for part, arms in split:
                keywords = {**event.keywords, _COLLATES: self.arguments.argument(part)}
                self.events.append(replace(event, keywords=keywords, branch=(*event.branch, *arms)))

    def _picked_by_arms(self, function: ast.expr) -> list[tuple[Names, tuple[int, ...]]]:
        """What is called, by the arms of the function that bind its name: `layer = Conv if deep else Linear`; or by the
        keys of the table that it comes out of."""
        if self.scope.kind != "function":
            return []
        if by_key := self._picked_by_key(function):
            return by_key
        values = [
            (self.names.resolve(one, self.scope), arms) for one, arms in self.picked.values(function, self._split)
        ]
        return values if all(names and not any(map(_is_given, names)) for names, _ in values) else []

    def _picked_by_key(self, function: ast.expr) -> list[tuple[Names, tuple[int, ...]]]:
        """The entries of a table as the arms of `if key == "a": … elif key == "b": … else: …` would give them."""
        table = table_of(function, self.scope)
        entries = [(key, self.names.resolve(value, table.scope)) for key, value in table.entries] if table else []
        if table is None or not all(names and not any(map(_is_given, names)) for _, names in entries):
            return []
        found: list[tuple[Names, tuple[int, ...]]] = []
        tests: list[Test] = []
        others: tuple[int, ...] = ()
        for arm, (key, names) in enumerate(entries[:-1], self.arms + 1):
            asks = ast.Compare(table.key, [ast.Eq()], [key])
            tests += tested(asks, self.names, self.scope, -arm, arm)
            found.append((names, (*others, arm)))
            others = (*others, -arm)
        if len(tests) < len(found):
            return []
        self.asked_inside.extend(tests)
        self.arms += len(found)
        return [*found, (entries[-1][1], others)]

    def _split(self, node: ast.IfExp) -> list[tuple[ast.expr, tuple[int, ...]]]:
        """The values of `a if flag else b` with their arms, where `flag` is asked of a parameter."""
        arm = self.arms + 1
        asked = list(tested(node.test, self.names, self.scope, -arm, arm))
        if not asked:
            return [(node, ())]
        self.arms = arm
        self.asked_inside.extend(asked)
        return [(node.body, (arm,)), (node.orelse, (-arm,))]

    def _is_bound_below(self, function: ast.expr) -> bool:
        """Whether the file binds what is called only further below: a cell that somebody ran out of order."""
        name = dotted_name(function).partition(".")[0] if self.scope.kind == "module" else ""
        return bool(name) and self._first_bound.is_below(name, self.statement)

    @functools.cached_property
    def _first_bound(self) -> FirstBound:
        """The statements of the file that first bind names."""
        return FirstBound(self.names.scopes.tree.body, "".join(self.names.scopes.hollow.lines))

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Record a function. Of CUDA its defaults speak where it is called, and not where it is defined; the calls of a
        method decide for themselves."""
        self.statement = node.lineno
        for _, default in defaults_of(node.args) if self.scope.method is not self.scope else ():
            if names_a_device(default):
                self.expression(default, ())
        self.block(node.body, ())

    def block(self, body: list[ast.stmt], branch: tuple[int, ...]) -> None:
        """Record statements in their order; those after an arm that leaves are in the other arm."""
        trained, imported = self.trained, self.imported
        without = overwritten(body, self.scope.is_of_others)
        for node in body:
            if node in without:
                continue
            self.statement = node.lineno
            after = self.one(node, branch)
            if after:
                branch = (*branch, after)
            self.trained += leaves_evaluation(node)
            if isinstance(node, LEAVING) and self.scope.kind == "function":
                break
        self.trained = trained
        if self.imported is not imported:
            # What an arm imports is open below it.
            self.imported = {name: origin for name, origin in imported.items() if self.imported.get(name) == origin}

    def _handed_over(self, node: ast.FunctionDef | ast.AsyncFunctionDef, branch: tuple[int, ...]) -> None:
        """Record that a decorator hands the function `node` to an object of a library, which will run it."""
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and last_word(decorator.func) in self.words.hands_over:
                names = tuple(f"{name}()" for name in self.called(decorator.func) if name[0] not in "@.$?")
                if names:
                    given = self.names.resolve(ast.Name(node.name, ast.Load()), self.scope)
                    self.add("call", decorator, branch, names, (Argument(given),))

    def called(self, function: ast.expr) -> Names:
        """The names of what is called; one that several arms import is what its own arm does."""
        if self._picked:
            return self._picked
        origin = self.imported.get(function.id) if isinstance(function, ast.Name) else None
        if origin is None:
            return self._bound_above(function) or super().called(function) or self._captured(function)
        return (origin if origin.startswith(".") else self.names.canonical(origin),)

    def _bound_above(self, function: ast.expr) -> Names:
        """The names of what is called by a name, or of a method of that, where the name is given something else only
        further below, in no loop with the call."""
        owner = function.value if isinstance(function, ast.Attribute) else function
        bounds = self.scope.bindings.get(owner.id, ()) if isinstance(owner, ast.Name) else ()
        if len(bounds) < 2 or len(bounds) > _BOUNDS or not isinstance(owner, ast.Name):
            return ()
        above = bound_above(owner, bounds, self.scope) or ()
        if len(above) in (0, len(bounds)) or self._may_be_set_elsewhere(owner.id):
            return ()
        names = tuple(dict.fromkeys(self.names.resolve_name(owner.id, self.scope, bounds=above)))
        if isinstance(function, ast.Attribute):
            return tuple(dict.fromkeys(self.names.attribute(function.attr, names)))
        return names

    def _may_be_set_elsewhere(self, name: str) -> bool:
        """Whether functions below may give the name another value."""
        if self.scope.kind == "module":
            return "global " in self.names.scopes.hollow.text
        return name in self.scope.lent

    def _captured(self, function: ast.expr) -> Names:
        """The parameter of the function around this one that is called, as its own would be."""
        home = self.scope.home(function.id) if isinstance(function, ast.Name) else None
        if home is None or home is self.scope or home.kind != "function" or not isinstance(function, ast.Name):
            return ()
        kinds = {one.kind for one in home.bindings[function.id]}
        return (f"${function.id}",) if "parameter" in kinds and kinds <= {"parameter", "default"} else ()

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note what the names stand for from here to the end of the block, where several imports bind them."""
        for name, origin in skeleton.imported(node):
            bindings = self.scope.bindings.get(name, ())
            if len(bindings) > 1 and all(bound.kind == "import" for bound in bindings):
                self.imported = {**self.imported, name: origin}

    def one(self, node: ast.stmt, branch: tuple[int, ...]) -> int:
        """Record one statement; the arm in which the rest of the block stands, or 0."""
        if isinstance(node, ast.If):
            return self.conditional(node, branch)
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self.expression(node.iter, branch)
            self.iteration(node.iter, branch)
            if loads_weights(node):
                self.add("tell", node, branch, ("loads",))
            self.block(node.body, branch)
            self.block(node.orelse, branch)
        elif isinstance(node, ast.While):
            self.loops += 1
            self.expression(node.test, branch)
            if decided(node.test, self.names, self.scope) is not False:
                self.block(node.body, branch)
            self.loops -= 1
            self.block(node.orelse, branch)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            self.context(node, branch)
        elif isinstance(node, ast.Match):
            self.expression(node.subject, branch)
            self.sometimes += 1
            for case in node.cases:
                self.block(case.body, branch)
            self.sometimes -= 1
        elif isinstance(node, TRY):
            self.block(node.body, branch)
            self.sometimes += 1
            for handler in node.handlers:
                self.block(handler.body, branch)
            self.sometimes -= 1
            self.block(node.orelse, branch)
            self.block(node.finalbody, branch)
        else:
            self.flat(node, branch)
        return 0

    def flat(self, node: ast.stmt, branch: tuple[int, ...]) -> None:
        """Record a definition, an import or a simple statement."""
        made = node.value if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) else node
        if branch and isinstance(made, (*FUNCTIONS, ast.Lambda)):
            self.defined[made.lineno, made.col_offset] = branch
        if isinstance(node, FUNCTIONS):
            self.muted = True
            for decorator in node.decorator_list:
                self.expression(decorator, branch)
            self.muted = False
            for decorator in node.decorator_list if self.scope.kind == "module" else ():
                if isinstance(decorator, ast.Attribute) and decorator.attr in self.words.starts_itself:
                    self.add("call", decorator, (*branch, GUARD), self.called(decorator))
            self._handed_over(node, branch)
            for _, default in defaults_of(node.args):
                if not names_a_device(default):
                    self.expression(default, branch)
        elif isinstance(node, ast.ClassDef):
            for expression in (*node.decorator_list, *node.bases):
                self.expression(expression, branch)
            self.block([statement for statement in node.body if not isinstance(statement, FUNCTIONS)], branch)
        elif isinstance(node, ast.Import):
            self._import(node)
            self.add("import", node, branch, tuple(alias.name for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            self._import(node)
            module = "." * node.level + (node.module or "")
            joint = "" if module.endswith(".") else "."
            names = [f"{module}{joint}{alias.name}" for alias in node.names if alias.name != "*"]
            self.add("import", node, branch, (module, *names))
        else:
            self.simple(node, branch)

    def chosen(self, node: ast.IfExp | ast.BinOp | ast.BoolOp | ast.Compare) -> list[tuple[ast.expr, tuple[int, ...]]]:
        """`f() if flag else g()`, `flag and f()`, and `f() * scale`, of which `f` changes nothing where the factor is
        nought, nor in `f() < rate`."""
        if isinstance(node, ast.BoolOp):
            return self._short_cut(node)
        if isinstance(node, ast.Compare):
            return self._by_chance(node)
        arm = self.arms + 1
        always: list[tuple[ast.expr, tuple[int, ...]]] = []
        if isinstance(node, ast.IfExp):
            test, always = node.test, [(node.test, ())]
            if (holds := decided(test, self.names, self.scope)) is not None:
                return [*always, (node.body if holds else node.orelse, ())]
            split = [(node.body, (arm,)), (node.orelse, (-arm,))]
        else:
            test, one = (node.left, node.right) if isinstance(node.left, ast.Name) else (node.right, node.left)
            split = [(one, (arm,))]
            if not (isinstance(node.op, ast.Mult) and isinstance(test, ast.Name)):
                return []
        asked = list(tested(test, self.names, self.scope, -arm, arm)) if self.scope.kind == "function" else []
        parts = [part for part, _ in split]
        if not asked or not (self._are_made(parts) or any(self._matters(one) for part in parts for one in walk(part))):
            return []
        self.arms = arm
        self.asked_inside.extend(asked)
        return [*always, *split]

    def _are_made(self, parts: list[ast.expr]) -> bool:
        """Whether `parts` are names, and one of them stands for what a call has made."""
        return all(isinstance(part, ast.Name) for part in parts) and any(
            "()" in name for part in parts for name in self.names.resolve(part, self.scope)
        )

    def _by_chance(self, node: ast.Compare) -> list[tuple[ast.expr, tuple[int, ...]]]:
        """The random number of `random.random() < rate`, which decides nothing where the rate is 0 or 1."""
        arm = self.arms + 1
        told = drawn_in_vain(node, self.names, self.scope, arm) if self.scope.kind == "function" else None
        if told is None:
            return []
        drawn, asked = told
        self.arms = arm
        self.asked_inside.extend(asked)
        return [(drawn, (arm,))]

    def _short_cut(self, node: ast.BoolOp) -> list[tuple[ast.expr, tuple[int, ...]]]:
        """The operands of `a and b`, `a or b`: each runs only where those before it leave it open."""
        arms: tuple[int, ...] = ()
        split: list[tuple[ast.expr, tuple[int, ...]]] = []
        for place, part in enumerate(node.values):
            split.append((part, arms))
            arm = self.arms + 1
            asked = list(tested(part, self.names, self.scope, -arm, arm)) if self.scope.kind == "function" else []
            if asked and any(self._matters(inner) for rest in node.values[place + 1 :] for inner in walk(rest)):
                self.arms = arm
                self.asked_inside.extend(asked)
                arms = (*arms, arm if isinstance(node.op, ast.And) else -arm)
        return split if arms else []

    def _matters(self, node: ast.AST) -> bool:
        """Whether `node` is a call, or a text that speaks of CUDA."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return bool(self.devices.names_cuda.fullmatch(node.value) or self.devices.chooses_cuda.match(node.value))
        return isinstance(node, ast.Call)

    def condition(self, test: ast.expr, branch: tuple[int, ...]) -> None:
        """Record a test: what follows `and` runs only where what stands before it holds."""
        if not isinstance(test, ast.BoolOp) or self.scope.kind != "function":
            self.expression(test, branch)
            return
        for part in test.values:
            self.expression(part, branch)
            arm = self.arms + 1
            asked = list(tested(part, self.names, self.scope, -arm, arm))
            if asked:
                self.arms = arm
                self.tests.extend(asked)
                branch = (*branch, arm if isinstance(test.op, ast.And) else -arm)

    def conditional(self, node: ast.If, branch: tuple[int, ...]) -> int:
        """Record an `if`; the arm in which the rest of the block stands, or 0."""
        trained = self.trained
        first = self._arms_of(node, branch)
        self.trained = trained
        return first

    def _arms_of(self, node: ast.If, branch: tuple[int, ...]) -> int:
        """The same; what runs in training only goes on doing so in the arms below."""
        first = 0
        number = -1
        while True:
            number += 1
            guards = self.scope.kind == "module" and asks_for_main(node.test)
            holds = decided(node.test, self.names, self.scope)
            arm, checking = GUARD, is_type_checking(node.test) or holds is False
            if not checking:
                trained = asks_for_training(node.test)
                self.trained += trained
                self.condition(node.test, branch)
                if not guards:
                    arm = self._arm(node)
                    asked = tested(node.test, self.names, self.scope, -arm, arm)
                    self.tests.extend(one for one in asked if self.scope.kind == "function" or is_of_run(one))
                body = before_failure(node.body, self.scope) if guards else node.body
                self.block(body, branch if holds or asks_for_method(node.test, self.scope) else (*branch, arm))
                self.trained -= 0 if guards else trained
                if (needed := fails_without(node)) is not None:
                    self.need(needed, branch)
                if number < _ARMS:
                    branch = (*branch, -arm)
            if number == 0 and not checking and not guards:
                if leaves_early(node.body):
                    first = -arm
                elif node.orelse and leaves_early(node.orelse):
                    first = arm
            elif not (first or checking or guards) and any(
                one and leaves_early(one) and not goes_on(one) for one in (node.body, node.orelse)
            ):
                self.arms += 1
                first = self.arms
            if holds:
                return first
            self.trained += holds_in_evaluation(node.test)
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                self.block(node.orelse, branch)
                return first
            node = node.orelse[0]
            self.statement = node.lineno

    def _arm(self, node: ast.If) -> int:
        """The arm in which the body of an `if` stands, its opposite that of all else: below `-FAILS` for the one that
        runs in every run that does not fail."""
        self.arms += 1
        if leaves_early(node.body) and goes_on(node.body):
            return FAILS + self.arms
        if node.orelse and leaves_early(node.orelse) and goes_on(node.orelse):
            return -FAILS - self.arms
        return self.arms

    def variable(
        self, key: ast.expr, value: ast.expr | None, node: ast.AST, branch: tuple[int, ...], *, default: bool = False
    ) -> None:
        """The same, with the parameter that says which GPUs are seen."""
        recorded = len(self.events)
        super().variable(key, value, node, branch, default=default)
        if value is not None and any(event.positional for event in self.events[recorded:]):
            self.tests.extend(asked_as_device(as_text(value), self.scope))

    def need(self, call: ast.Call, branch: tuple[int, ...]) -> None:
        """Record that the program fails where `call` gives False, if that asks for CUDA."""
        if "torch.cuda.is_available" in self.names.resolve(call.func, self.scope):
            self.add("cuda", call, branch, ("needed",))

    def context(self, node: ast.With | ast.AsyncWith, branch: tuple[int, ...]) -> None:
        """Record a `with`, whose body may hold a lock, or run without gradients."""
        locked = any("lock" in ast.unparse(item.context_expr).lower() for item in node.items)
        for item in node.items:
            self.expression(item.context_expr, branch)
            names = self.names.resolve(item.context_expr, self.scope)
            mine = tuple(f"{name}.__enter__" for name in names if _may_be_own(name))
            if mine:
                self.add("call", item.context_expr, branch, mine)
        outer = self.graded
        for item in node.items:
            self.graded = self.switched(item.context_expr, self.graded)
        weightless = any(self._makes_no_weights(item.context_expr) for item in node.items)
        self.locks += locked
        self.weightless += weightless
        self.block(node.body, branch)
        self.locks -= locked
        self.weightless -= weightless
        self.graded = outer

    def _makes_no_weights(self, node: ast.expr) -> bool:
        """Whether a context manager has models made without memory, so that nothing is drawn."""
        if not isinstance(node, ast.Call):
            return False
        names = self.names.resolve(node.func, self.scope)
        given = node.args[0] if node.args else None
        meta = isinstance(given, ast.Constant) and given.value == "meta" and "torch.device" in names
        bare = (constant(word.value, self.scope) for word in node.keywords if word.arg == "empty_init")
        return meta or (True,) in bare or not self.words.without_memory.isdisjoint(names)

    def switched(self, node: ast.expr, graded: bool | None) -> bool | None:
        """Whether gradients are on in the context manager `node`, where `graded` says it of what is around."""
        function = node.func if isinstance(node, ast.Call) else node
        names = self.names.resolve(function, self.scope)
        given = [*node.args, *(word.value for word in node.keywords)] if isinstance(node, ast.Call) else []
        wanted = constant(given[0], self.scope) if given else None
        if not self.names.no_grad.isdisjoint(names):
            return wanted == (False,)
        if not self.names.enable_grad.isdisjoint(names):
            return True
        if wanted in ((True,), (False,)) and not self.names.set_grad.isdisjoint(names):
            return wanted == (True,)
        return graded

    def simple(self, node: ast.stmt, branch: tuple[int, ...]) -> None:
        """Record a simple statement."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        self.picked.note(node, branch)
        last = min(node.end_lineno or node.lineno, node.lineno + _LONG)
        if (node.lineno, last) != self._rows:
            self._rows = node.lineno, last
            text = "".join(self.names.scopes.hollow.lines[node.lineno - 1 : last]).lower()
            idly = self.words.draws_idly
            self._idle = self.picks or bool(idly.search(text) and idly.search(without_prose(text)))
            self._coloured = self.words.makes_colours.search(text) is not None and self.names.draws_pictures
        self.idle = self._idle or self.weightless > 0 or self._makes(node, self.traced | self.waited)
        self.passing = self.tries or self._makes(node, self.redrawn)
        counted = self.counts and only_counts(node, self._is_counting)
        self.sized = self.weightless > 0 or self._makes(node, self.inspected) or counted
        frozen_here = self.trunks if self._adapts(node) else self.frozen
        self.without_gradient = self._makes(node, frozen_here) or self._makes(node, self.scored)
        self.unapplied = self._makes(node, self.unread)
        self.kept = self._kept(node)
        value = node.value if node in self.reloading and isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        self.reloaded = self.names.resolve(value, self.scope) if value is not None else ()
        self.evaluated = value is not None and self.reloading[node].evaluated
        self.downloads = node in self.below_downloads
        self.trained += self._coloured
        recorded = len(self.events)
        self.effects(node, branch)
        if value is not None and (test := self.reloading[node].test) is not None:
            self._by_loading(test, recorded)
        self.trained -= self._coloured
        self.idle = self.sized = self.without_gradient = self.unapplied = self.passing = False
        self.kept, self.reloaded, self.evaluated = "", (), False

    def _kept(self, node: ast.stmt) -> str:
        """The name of the attribute of `self` in which a statement keeps an embedding, where the file reads no more of
        it than its weights: `self.words`, of `F.linear(x, self.words.weight)`."""
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(), attr=name)], value=ast.Call(func=function)):
                if last_word(function) == "Embedding":
                    text = "".join(self.names.scopes.hollow.lines)
                    return name if uses_weight(text, name) and not applies(text, name) else ""
        return ""

    def _adapts(self, node: ast.stmt) -> bool:
        """Whether a statement makes a model of a library, through which gradients may flow although it is frozen."""
        if not (self.trunks or self.frozen) or not isinstance(node, ast.Assign):
            return False
        called = [one.func for one in walk(node.value) if isinstance(one, ast.Call)]
        return any(name.startswith(MODELS) for one in called for name in self.names.resolve(one, self.scope))

    def _is_counting(self, call: ast.Call) -> bool:
        """Whether a call of a function of the file only counts the numbers of the model that it is given."""
        made = call.args[0] if len(call.args) == 1 and not call.keywords else None
        home = self.scope.home(call.func.id) if isinstance(call.func, ast.Name) else None
        bounds = home.bindings[call.func.id] if home is not None and isinstance(call.func, ast.Name) else ()
        if not isinstance(made, ast.Call) or len(bounds) != 1 or bounds[0].kind != "def":
            return False
        function = self.names.scopes.function(bounds[0].target)
        node = function.node if function is not None and function.kind == "function" else None
        return node is not None and [one.arg for one in node.args.args] == list(inspected(node.body, self._traces))

    def _makes(self, node: ast.stmt, among: frozenset[str]) -> bool:
        """Whether a statement binds nothing but names that are `among` these."""
        targets = node.targets if among and isinstance(node, ast.Assign) else list[ast.expr]()
        if among and isinstance(node, ast.AugAssign):
            targets = [node.target]
        return bool(targets) and all(ast.unparse(one) in among for one in targets)

    def effects(self, node: ast.stmt, branch: tuple[int, ...]) -> None:
        """Record what a simple statement calls, returns and assigns."""
        value = getattr(node, "value", None)
        self.bare = value if isinstance(node, ast.Expr) and isinstance(value, ast.Call) else None
        # A lambda that is returned does not run here, nor does one that has a name.
        named = isinstance(node, (ast.Return, ast.Assign)) and isinstance(value, ast.Lambda)
        if isinstance(value, ast.expr) and not named:
            self.expression(value, branch)
        if id(node) in self.steps:
            self.add("update", node, branch, ("step", self.steps[id(node)]))
        if isinstance(node, ast.Return) and node.value is not None:
            self.returned(node.value, branch)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self.assignment(target, node.value, branch)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assignment(node.target, node.value, branch)
        elif isinstance(node, ast.AugAssign):
            if last_word(node.target) in ("grad", "data") or (
                isinstance(node.target, ast.Attribute) and node.target.attr == "grad"
            ):
                self.add("update", node, branch, ("grad",))
        elif isinstance(node, (ast.Assert, ast.Raise, ast.Delete)):
            for target in node.targets if isinstance(node, ast.Delete) else ():
                self.unset(target, branch)
            if isinstance(node, ast.Assert) and (needed := fails_without(node)) is not None:
                self.need(needed, branch)
            for child in children(node):
                if isinstance(child, ast.expr):
                    self.expression(child, branch)

    def returned(self, value: ast.expr, branch: tuple[int, ...]) -> None:
        """Note what a function returns, part by part where arms pick what that is."""
        picked: list[tuple[ast.expr, tuple[int, ...]]] = []
        if self.scope.kind == "function":
            picked = self.picked.values(value, self._split)
            if not picked and isinstance(value, ast.IfExp) and isinstance(value.body, ast.Name):
                picked = self._split(value)
        self.returns.append((value, [(one, (*branch, *arms)) for one, arms in picked or [(value, ())]]))

    def unset(self, target: ast.expr, branch: tuple[int, ...]) -> None:
        """Record that an environment variable is deleted."""
        if isinstance(target, ast.Subscript) and "os.environ" in self.names.resolve(target.value, self.scope):
            self.variable(target.slice, None, target, branch)

    def assignment(self, target: ast.expr, value: ast.expr, branch: tuple[int, ...]) -> None:
        """Record that an attribute, an environment variable or a gradient is assigned."""
        if isinstance(target, ast.Attribute):
            names = tuple(name for name in self.names.resolve(target, self.scope) if not name.startswith("$"))
            if names:
                on = CUDNN.endswith(f".{target.attr}") and on_by_default(value, self.names, self.scope)
                given = Argument((), True, value=True) if on else self.arguments.argument(value)
                self.add("set", target, branch, names, (given,))
        elif isinstance(target, ast.Subscript):
            self.expression(target.value, branch)
            if "os.environ" in self.names.resolve(target.value, self.scope):
                self.variable(target.slice, value, target, branch)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self.assignment(element, element, branch)


def _with_argument(event: Event, place: int | str | None, value: Argument) -> Event:
    """The call `event` with another argument at a place, or under a name."""
    if isinstance(place, int) and place < len(event.positional):
        before, after = event.positional[:place], event.positional[place + 1 :]
        return replace(event, positional=(*before, value, *after))
    return replace(event, keywords={**event.keywords, place: value}) if isinstance(place, str) else event


def _may_be_own(name: str) -> bool:
    """Whether a name may stand for an object of one of the project's classes."""
    return name.startswith(("@", "$", ".")) or ("()" in name and not name.startswith("torch."))


def _takes_tensors(name: str) -> bool:
    """Whether what goes by a name is called with tensors that are no weights: a function of `torch.nn`, a data set, or
    an object that a class makes."""
    made = name.removesuffix("()")
    return name.startswith(_TAKE_DATA) or (made != name and made.rpartition(".")[2][:1].isupper())


def _gives_a_value(name: str) -> bool:
    """Whether what goes by a name works something out of what it is given: a function of torch, or a parameter that is
    called."""
    return _takes_tensors(name) or _FUNCTION.fullmatch(name) is not None


def _is_given(name: str) -> bool:
    """Whether a name stands for what the caller passes, or for what nobody knows."""
    return name.startswith(("$", "?"))
