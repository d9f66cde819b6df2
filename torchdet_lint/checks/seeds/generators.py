"""Generators that a program makes, or that a library makes for it -> those that are given no seed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.checks import table
from torchdet_lint.checks.seeds.fitted import draws_once
from torchdet_lint.checks.seeds.named import NamedAlone
from torchdet_lint.checks.seeds.spared import Spared
from torchdet_lint.checks.seeds.streams import streamed_shuffles
from torchdet_lint.checks.trace import origins
from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.dataflow.handing.constructors import Constructors
from torchdet_lint.dataflow.seeding.call_chain import CallChain
from torchdet_lint.dataflow.seeding.program_seeds import ProgramSeeds
from torchdet_lint.dataflow.syntax import last_word, nodes
from torchdet_lint.finding import RelatedNode, Replace, SetArgument, Violation, Withhold
from torchdet_lint.inference.abstract_values import FOREIGN
from torchdet_lint.inference.infer import Inference
from torchdet_lint.module.names import dotted
from torchdet_lint.module.tree import returned
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Call as Row
    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Change
    from torchdet_lint.module.module import Call, Module, Value

_FACTORY = lazy(r"\b(?:default_)?factory\s*=")
_NOT_TAKEN = Withhold("the constructor that runs takes no such argument, as far as is in sight")
# So many functions of other files are looked through for what a table comes from.
_FUNCTIONS = 2
_SPLIT = "sklearn.model_selection.train_test_split"


class _Part(NamedTuple):
    """A call of whose result a name is given the part at `place`, and where in the order of the file."""

    call: cst.Call
    place: int
    order: int


def unseeded_generator(module: Module, rule: Rule) -> Iterator[Violation]:
    """A generator object that is made without a seed, and is not given one afterwards."""
    for call, row in (*table.calls(module, rule), *streamed_shuffles(module, rule)):
        if any(name.endswith(".__init__") for name in call.own) or _seeded_afterwards(module, call):
            continue
        if _names_things(module, call) or call.node in module.shared(Spared) or call.node in module.shared(NamedAlone):
            continue
        function = module.code(call.node.func)
        argument = row.when[0].argument
        same = module.library.facts.conventions.same_numbers
        library = same.get(call.own[0].rpartition(".")[2], "") if call.own else ""
        seed = module.shared(ProgramSeeds).seed(call.node, library)
        change: Change = SetArgument(call.node, argument, seed.text)
        first = call.node.args[0] if call.node.args else None
        if first is None:
            change = Replace(call.node, f"{function}({seed.text})")
        elif row.variant == "streamed" and first.keyword is None and not first.star:
            change = Replace(first.value, seed.text)
        changes = (*seed.needs, change)
        details = {"call": function, "help": row.variant or "own"}
        yield Violation(call.node, details, row.variant, changes=changes, applicability=seed.applicability)
    for call, row, left in table.left_none(module, rule):
        if not _seeded_afterwards(module, call):
            details = {"call": module.code(call.node.func), "help": row.variant or "own"}
            yield Violation(call.node, details, row.variant, related=(left,), changes=(table.FOR_CALLERS,))
    for made, row in _factories(module, rule):
        yield Violation(made, {"call": module.code(made), "help": row.variant or "own"}, row.variant)


def _factories(module: Module, rule: Rule) -> Iterator[tuple[cst.BaseExpression, Row]]:
    """The generators' classes that are given as the factory of a default: they are called without a seed."""
    if "factory" not in module.text or _FACTORY.search(module.text) is None:
        return
    rows = {name: row for row in rule.calls for name in row.names}
    module.load_where(lambda text: _FACTORY.search(text) is not None)
    for call in module.calls:
        for given in (call.keyword_node("default_factory"), call.keyword_node("factory")):
            names = module.resolve(given.value, call.scope, call.order) if given is not None else ()
            row = next((rows[name] for name in names if name in rows), None)
            if given is not None and row is not None:
                yield given.value, row


def _names_things(module: Module, call: Call) -> bool:
    """Whether all that is drawn from the object that `call` makes, in its function, tells things apart: identifiers,
    names, ports, which two runs must not share."""
    statement = module.parent(call.node)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    if statement is None or not isinstance(target, cst.Name) or module.enclosing_function(call.node) is None:
        return False
    loads = module.shared(DefUse).loads_after(target, statement)
    return bool(loads) and all(_drawn_for_a_name(module, load) for load in loads)


def _drawn_for_a_name(module: Module, load: cst.Name) -> bool:
    statement: cst.CSTNode | None = module.parent(load)
    while isinstance(statement, (cst.Attribute, cst.Call, cst.Arg, cst.FormattedStringExpression, cst.FormattedString)):
        statement = module.parent(statement)
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    return target is not None and (module.library.facts.conventions.identifies.search(last_word(target)) is not None)


def _seeded_afterwards(module: Module, call: Call) -> bool:
    """Whether the object that `call` makes gets a seed or a state where it is kept."""
    statement = module.parent(call.node)
    if isinstance(statement, cst.Assign):
        targets = [target.target for target in statement.targets]
    elif isinstance(statement, cst.AnnAssign):
        targets = [statement.target]
    else:
        return False
    kept = {dotted(target) for target in targets} - {""}
    for method in module.method_calls(*module.library.facts.conventions.seeding_methods):
        if method.receiver is not None and dotted(method.receiver) in kept and method.node.args:
            return True
    return any(True for name in sorted(kept) for _ in module.assignments_written(f"{name}.bit_generator.state"))


def missing_random_state(module: Module, rule: Rule) -> Iterator[Violation]:
    """A call of scikit-learn, pandas, SciPy or imbalanced-learn that draws and is told no generator."""
    if ".sample(" in module.text and not module.imports("pandas"):
        frames = re.compile(rule.patterns[0])
        module.load_where(lambda text: ".sample(" in text and frames.search(text) is not None, "sample")
    pairs = list(table.calls(module, rule))
    for row in rule.calls:
        if row.variant == "sample":
            pairs += [(call, row) for call in module.method_calls("sample") if _is_frame(module, call)]
        elif row.variant in ("rvs", "frozen rvs"):
            pairs += [(call, row) for call in module.calls if call.attribute == "rvs" and _is_distribution(call, row)]
    done = set[cst.CSTNode]()
    left: dict[cst.CSTNode, RelatedNode] = {}
    for call, row, told in table.left_none(module, rule):
        pairs.append((call, row))
        left[call.node] = told
    seeded = bool(pairs) and _seeds_numpy(module)
    for call, row in pairs:
        if call.node in done or not (call.node in left or module.meets(call, row.when, row.parameters)):
            continue
        done.add(call.node)
        argument = row.when[0].argument
        severity = row.severity or ("warning" if seeded else None)
        variant = "own" if row.severity == "error" else "seeded" if seeded else ""
        details = {"call": module.code(call.node.func), "argument": argument}
        by = "" if variant else "numpy"
        if call.node in left:
            withheld = (table.FOR_CALLERS,)
            yield Violation(call.node, details, variant, severity, (left[call.node],), withheld, seeded_by=by)
            continue
        seed = module.shared(ProgramSeeds).seed(call.node, "numpy")
        changes: tuple[Change, ...] = (*seed.needs, SetArgument(call.node, argument, seed.text))
        if module.shared(Constructors).answer(call, argument) != "takes":
            changes = (_NOT_TAKEN,)
        safe = seed.applicability if variant == "own" or draws_once(module, call) else "unsafe"
        yield Violation(call.node, details, variant, severity, changes=changes, applicability=safe, seeded_by=by)


def _seeds_numpy(module: Module) -> bool:
    """Whether the file seeds NumPy's global generator anywhere but in new processes alone."""
    calls = (
        call
        for seed in module.library.facts.seeds
        if "numpy" in seed.seeds and not seed.entropy
        for call in module.calls_to(*seed.names)
        if not seed.argument or call.argument(seed.argument, seed.parameters) is not None
    )
    return any(not _runs_in_process(module, call) for call in calls)


def _runs_in_process(module: Module, call: Call) -> bool:
    chain = module.shared(CallChain)
    node = chain.call_at(call.node)
    return node is not None and chain.runs_in_process(node)


def _is_distribution(call: Call, row: Row) -> bool:
    """Whether `.rvs` is that of SciPy: of a distribution (`norm.rvs`), or of a frozen one (`norm(0, 1).rvs`)."""
    frozen = row.variant == "frozen rvs"
    return any(name.startswith("scipy.stats.") and name.endswith("().rvs") is frozen for name in call.own)


def _is_frame(module: Module, call: Call) -> bool:
    """Whether the receiver of `.sample` evidently comes from pandas."""
    assert call.receiver is not None
    if call.keyword_node("frac") is not None or _picks_rows(module, call.receiver):
        return True
    return _from_pandas(module, module.value_at(call.receiver, call.scope, call.order), _FUNCTIONS)


def _picks_rows(module: Module, node: cst.BaseExpression) -> bool:
    """Whether `node` is `table[table["column"] == value]`, which only a table of pandas understands."""
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    if not isinstance(node, cst.Subscript) or not isinstance(index, cst.Index):
        return False
    table = module.code(node.value)
    columns = [
        one.left for one in nodes(index) if isinstance(one, cst.Comparison) and isinstance(one.left, cst.Subscript)
    ]
    return any(module.code(one.value) == table and _is_named(one) for one in columns)


def _is_named(column: cst.Subscript) -> bool:
    """Whether `column` is picked by a text."""
    index = column.slice[0].slice
    return isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)


def _from_pandas(module: Module, start: Value, depth: int) -> bool:
    """Whether a value evidently comes from pandas, through at most `depth` functions of other files."""
    queue = [start]
    for _ in range(12):
        if not queue:
            return False
        value = queue.pop()
        if isinstance(value.node, cst.Name) and _annotated(module, value.node, value):
            return True
        for origin in origins(module, value):
            node: cst.BaseExpression = origin.node
            queue.extend(_split(module, origin))
            if any(name.startswith("pandas.") for name in module.value_at(node, origin.scope, origin.order).names):
                return True
            if any(_from_pandas(other, result, depth - 1) for other, result in _results(module, origin, depth)):
                return True
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                queue.append(module.value_at(node.func.value, origin.scope, origin.order))
            elif isinstance(node, (cst.Subscript, cst.Attribute)):
                queue.append(module.value_at(node.value, origin.scope, origin.order))
            elif any(name.startswith("numpy.random.") for name in origin.names):
                return False
            elif _is_foreign(module, node):
                return True
    return False


def _split(module: Module, value: Value) -> Iterator[Value]:
    """What a part is a part of, where a split gives the name `value` one: `train, test = train_test_split(table)`."""
    for part in _unpacked(value):
        given = [arg.value for arg in part.call.args if arg.keyword is None and not arg.star]
        if _SPLIT in module.resolve(part.call.func, value.scope, part.order) and 0 <= part.place < 2 * len(given):
            yield module.value_at(given[part.place // 2], value.scope, part.order)


def _unpacked(value: Value) -> Iterator[_Part]:
    """The calls of whose results the name `value` is given a part, and which: `a, b = make()`."""
    home = value.scope.home(value.node.value) if isinstance(value.node, cst.Name) else None
    for one in home.bindings[value.node.value] if home is not None and isinstance(value.node, cst.Name) else ():
        if one.kind == "unpack" and len(one.path) == 1 and isinstance(one.value, cst.Call):
            yield _Part(one.value, one.path[0], one.order)


def _results(module: Module, value: Value, depth: int) -> Iterator[tuple[Module, Value]]:
    """What a function of another file returns, where `value` is a call of it or a name that a part of it is given."""
    node, place = value.node, -1
    if (part := next(_unpacked(value), None)) is not None:
        node, place = part.call, part.place
    if depth <= 0 or module.neighbour is None or not isinstance(node, cst.Call):
        return
    for name in module.resolve(node.func, value.scope, value.order):
        found = module.neighbour(name) if "()" not in name and not name.startswith("@.") else None
        if found is None:
            continue
        other, last = found
        function = other.definition(last)
        for result in returned(function) if function is not None else ():
            elements = result.elements if isinstance(result, cst.Tuple) else ()
            if place < 0 or place < len(elements):
                yield other, other.value(elements[place].value if place >= 0 else result)


def _is_foreign(module: Module, node: cst.BaseExpression) -> bool:
    """Whether `node`, as a function of the project returns it, is an array or a table of another library."""
    return module.shared(Inference).infer(node).instance == FOREIGN.instance


def _annotated(module: Module, name: cst.Name, value: Value) -> bool:
    home = value.scope.home(name.value)
    for binding in home.bindings[name.value] if home is not None else ():
        node = binding.node
        if isinstance(node, cst.Param) and node.annotation is not None:
            return any(full.startswith("pandas.") for full in module.value(node.annotation.annotation).names)
    return False
