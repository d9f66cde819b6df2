"""Calls that ask for a fresh seed, the clock and its like -> those that become a seed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.checks import table
from torchdet_lint.checks.seeds.fresh_defaults import FreshDefaults
from torchdet_lint.checks.seeds.named import NamedAlone
from torchdet_lint.checks.seeds.spared import Spared, asks_for_none
from torchdet_lint.checks.seeds.unread import imports_only_for
from torchdet_lint.checks.seeds.uses import Uses
from torchdet_lint.checks.trace import assigned, inside, kept_by_objects
from torchdet_lint.dataflow.seeding.call_chain import ROWS
from torchdet_lint.dataflow.seeding.program_seeds import GeneratorSeed, ProgramSeeds
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.finding import ELSEWHERE, NeedImport, RelatedNode, Replace, SetArgument, Violation, Withhold
from torchdet_lint.module.names import dotted, member
from torchdet_lint.module.tree import children, positional, returned
from torchdet_lint.prefilter.main_guard import has_main_guard
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.catalogue.facts import Draw
    from torchdet_lint.catalogue.rules import Call as Row
    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Applicability, Change
    from torchdet_lint.module.module import Call, Module, Value

_ANY = "any"
_OBJECT = "an object"
_WORKER_ARGUMENT = "worker_init_fn"
_WORKER_SEED = "{torch}.initial_seed() % 2**32"
# So many functions are asked for what they return as a seed.
_FUNCTIONS = 16
_SEED_OPTION = lazy(r"\.(\w*[sS]eed)[ \t]*=(?!=)")
_OPTION = Withhold("the option is read in other files, and its default is theirs to know")
_SAME_ROWS = Withhold("with one seed every row would take the same random numbers")
_ROOTS = {"random": "python", "numpy": "numpy", "torch": "torch"}


def entropy_seed(module: Module, rule: Rule) -> Iterator[Violation]:
    """A seed that differs in every run: a call that asks for one, or the clock and its like on the way to a seed."""
    reported = set[cst.CSTNode]()
    for call, row in table.calls(module, rule):
        if any(name.endswith(".__init__") for name in call.own) or call.node in module.shared(Spared):
            continue
        if call.node in module.shared(NamedAlone):
            continue
        reported.add(call.node)
        option = _without(module, call.node) if not row.variant else ""
        details = {"call": module.code(call.node.func), "option": option}
        if row.give and call.node.args and not any(arg.star for arg in call.node.args):
            written = module.code(call.node)
            changes = _with_its_seed(module, call, row)
            yield Violation(
                call.node, {**details, "written": written}, "refused", changes=changes, applicability="unsafe"
            )
            continue
        changes, safe = _reseeded(module, call, row)
        if changes and _is_of_a_row(module, call.node):
            changes, details = (_SAME_ROWS,), {**details, "help": "row"}
        if option:
            yield Violation(call.node, details, "optional", "note", changes=changes, applicability="unsafe")
            continue
        yield Violation(call.node, details, row.variant or "fresh", changes=changes, applicability=safe)
    for call, row, left in table.left_none(module, rule):
        reported.add(call.node)
        details = {"call": module.code(call.node.func)}
        yield Violation(call.node, details, row.variant or "fresh", related=(left,), changes=(table.FOR_CALLERS,))
    patterns = [re.compile(text) for text in rule.patterns]
    if any(pattern.search(module.text) for pattern in patterns):
        module.load_where(lambda text: any(pattern.search(text) for pattern in patterns))
    sinks = list(_sinks(module))
    uses = Uses(module, [sink.value.node for sink in sinks])
    ways = [way for sink in sinks for way in _entropy(module, sink, uses)]
    told: set[tuple[int, str]] = set()
    for way in ways:
        sink, source, what, _ = way
        same = id(sink.call), module.code(source.node)
        if source.node in reported or same in told or _stands_in(module, source, sink, ways):
            continue
        reported.add(source.node)
        told.add(same)
        details = {"source": module.code(source.node), "what": what}
        related = (RelatedNode(sink.call.node, "it becomes the seed here"),)
        same_source = [one for one in ways if one.source.node is source.node]
        changes, safe = _all_mended(module, same_source)
        if changes and _is_of_a_row(module, sink.call.node):
            changes, details = (_SAME_ROWS,), {**details, "help": "row" if sink.libraries else "own"}
        by = "" if what or _runs_first(module, source) else _ROOTS[source.own[0].partition(".")[0]]
        fed = {library for one in same_source for library in one.sink.libraries}
        # It is seeded from this very draw, or by a method of an object, which may be how the program seeds itself.
        by = "" if fed & {by, _ANY} else f"{by}{ELSEWHERE}" if by and _OBJECT in fed else by
        variant = "" if what else "draw"
        yield Violation(
            source.node, details, variant, related=related, changes=changes, applicability=safe, seeded_by=by
        )
    for call, what, kept in _fresh_options(module):
        if call.node not in reported:
            details = {"source": module.code(call.node), "what": what}
            related = (RelatedNode(kept, "the program's seed is kept here"),)
            yield Violation(call.node, details, "" if what else "draw", related=related, changes=(_OPTION,))


def _runs_first(module: Module, call: Call) -> bool:
    """Whether `call` runs when the file is loaded, before what its main guard calls has seeded anything."""
    if call.scope.function is not module.scope or not has_main_guard(module.text):
        return False
    return not any(isinstance(around, cst.If) for around in module.ancestors(call.node))


def _fresh_options(module: Module) -> Iterator[tuple[Call, str, cst.CSTNode]]:
    """What is different in every run of that which an option called a seed is given, what that is (empty: a draw, from
    a generator that the file never seeds), and where: `args.seed = random.randint(1, 1000)`. Another file may well seed
    the program with it."""
    draws, clock = _draws(module), module.library.facts.entropy
    holds = module.library.facts.conventions.holds_options
    for attribute in dict.fromkeys(_SEED_OPTION.findall(module.text)):
        for assignment in module.assignments_called(attribute):
            owner = assignment.target.value if isinstance(assignment.target, cst.Attribute) else None
            if not isinstance(owner, cst.Name) or holds.fullmatch(owner.value) is None:
                continue
            for node in inside(assignment.value.node):
                call = module.call_at(node)
                name = call.own[0] if call is not None and len(call.own) == 1 else ""
                if call is None or name not in draws.keys() | clock.keys():
                    continue
                drawn = draws.get(name)
                if drawn is None or (
                    module.meets(call, drawn.when, drawn.parameters) and not _seeds_any(module, drawn.library)
                ):
                    yield call, clock.get(name, ""), assignment.node


def _seeds_any(module: Module, library: str) -> bool:
    """Whether the file seeds the global generator of `library`."""
    names = {name for seed in module.library.facts.seeds if library in seed.seeds for name in seed.names}
    return any(not names.isdisjoint(call.names) for call in module.calls)


def _stands_in(module: Module, source: Call, sink: _Sink, ways: Sequence[_Way]) -> bool:
    """Whether `source` is read where another source of the same seed cannot be: in the handler of its exception."""
    others = {one.source.node for one in ways if one.sink.call is sink.call}
    inner: cst.CSTNode = source.node
    for around in module.ancestors(source.node):
        if isinstance(around, cst.Try) and isinstance(inner, cst.ExceptHandler):
            return any(around.body in module.ancestors(other) for other in others)
        inner = around
    return False


def _without(module: Module, node: cst.CSTNode) -> str:
    """The seed for want of which `node` runs: whoever gives one takes the other branch, and gets a run that repeats."""
    inner = node
    for around in module.ancestors(node):
        if isinstance(around, (cst.FunctionDef, cst.ClassDef)):
            return ""
        if isinstance(around, (cst.If, cst.IfExp)) and around.orelse is not None:
            option, missing = asks_for_none(around.test)
            if option and inner is (around.body if missing else around.orelse):
                name = module.code(option)
                if "seed" in name.lower():
                    return name
        inner = around
    return ""


def _all_mended(module: Module, ways: Sequence[_Way]) -> tuple[tuple[Change, ...], Applicability | None]:
    """A seed in all places where what one source gives becomes nothing but seeds, and whether that is safe."""
    changes: dict[Change, None] = {}
    applicability: Applicability | None = None
    for way in {id(way.place): way for way in reversed(ways)}.values():
        found, safe = _mended(module, way)
        changes |= dict.fromkeys(found)
        applicability = applicability or safe
    return tuple(changes), applicability


def _mended(module: Module, way: _Way) -> tuple[tuple[Change, ...], Applicability | None]:
    """A seed in the place of what the place of `way` makes of it, and whether that is safe."""
    sink, value, place = way.sink, way.sink.value.node, way.place
    whole = _whole(module, place, value)
    worker = _worker_function(module, place)
    if worker is not None:
        # One seed for every epoch would repeat the augmentation; torch gives the worker one that it can repeat.
        if sink.call.node in module.ancestors(value) and _names_in(value, whole) <= _first_parameter(worker):
            return (NeedImport("torch"), Replace(value, _WORKER_SEED), *imports_only_for(module, value)), None
        seed_there = Replace(whole, "{torch}.initial_seed() % 2**31")
        return (NeedImport("torch"), seed_there, *imports_only_for(module, whole)), None
    called: cst.CSTNode = way.source.node
    if module.enclosing_function(called) is not module.enclosing_function(place):
        called = next(one for one in (place, *module.ancestors(place), called) if module.call_at(one) is not None)
    seed = module.shared(ProgramSeeds).replacement(called, None if sink.libraries else _generator(sink.call))
    unread = tuple(imports_only_for(module, whole))
    kept = _other_summand(module, whole)
    if kept is not None and seed.text == "{seed}" and "seed" in module.code(kept).lower():
        return (Replace(module.parent(whole), module.code(kept)), *unread), seed.applicability
    other = _other_branch(module, whole) if seed.text == "{seed}" else None
    if other is not None:
        return (Replace(module.parent(whole), module.code(other)), *unread), seed.applicability
    return (*seed.needs, Replace(whole, seed.text), *unread), seed.applicability


def _other_branch(module: Module, node: cst.CSTNode) -> cst.Integer | None:
    """The number that stands in the other branch of a choice of which `node` is one: `7 if debug else time.time()`."""
    parent = module.parent(node)
    if not isinstance(parent, cst.IfExp) or node is parent.test:
        return None
    other = parent.orelse if node is parent.body else parent.body
    return other if isinstance(other, cst.Integer) else None


def _worker_function(module: Module, node: cst.CSTNode) -> cst.FunctionDef | cst.Lambda | None:
    """The function around `node` that seeds a worker of a loader, by its name or because a loader is given it."""
    for around in module.ancestors(node):
        if isinstance(around, cst.Lambda):
            argument = module.parent(around)
            keyword = argument.keyword if isinstance(argument, cst.Arg) else None
            return around if keyword is not None and keyword.value == _WORKER_ARGUMENT else None
        if isinstance(around, cst.FunctionDef):
            name = around.name.value
            passed = re.search(rf"\b{_WORKER_ARGUMENT}\s*=\s*(?:[\w.]*partial\s*\(\s*)?(?:\w+\.)*{name}\b", module.text)
            named = module.library.facts.conventions.seeds_worker.search(name)
            return around if passed or named else None
    return None


def _first_parameter(function: cst.FunctionDef | cst.Lambda) -> set[str]:
    return {parameter.name.value for parameter in function.params.params[:1]}


def _names_in(value: cst.CSTNode, without: cst.CSTNode) -> set[str]:
    """The names that `value` reads outside of its part `without`, but for those of builtins and modules."""
    if value is without:
        return set()
    if isinstance(value, cst.Call):
        return {name for arg in value.args for name in _names_in(arg.value, without)}
    if isinstance(value, cst.Name):
        return {value.value}
    return {name for part in children(value) for name in _names_in(part, without)}


def _other_summand(module: Module, node: cst.CSTNode) -> cst.BaseExpression | None:
    """What is added to `node`."""
    parent = module.parent(node)
    if not isinstance(parent, cst.BinaryOperation) or not isinstance(parent.operator, cst.Add):
        return None
    return parent.right if parent.left is node else parent.left


def _is_of_a_row(module: Module, node: cst.CSTNode) -> bool:
    """Whether `node` stands where a data set gives one of its rows."""
    function = module.enclosing_function(node)
    return function is not None and function.name.value in ROWS


def _reseeded(module: Module, call: Call, row: Row) -> tuple[tuple[Change, ...], Applicability | None]:
    """The same call with a seed, and whether that is safe; where it has another name, only if nobody uses what the call
    returns."""
    function = row.give.get("function", "")
    if (not row.when and not function) or (function and not isinstance(module.parent(call.node), cst.Expr)):
        return (), None
    found = GeneratorSeed(_WORKER_SEED, None, (NeedImport("torch"),))
    if _worker_function(module, call.node) is None:
        known = {name for seed in module.library.facts.seeds if seed.seeds for name in seed.names}
        own = None if known.intersection(call.names) else _generator(call)
        found = module.shared(ProgramSeeds).replacement(call.node, own)
    seed, safe, needs = found
    if "{torch}" in function:
        return (NeedImport("torch"), Replace(call.node, f"{function}({seed})")), safe
    if function:
        written = f"{module.code(call.node.func).rpartition('.')[0]}.{function}({seed})"
        return (*needs, Replace(call.node, written)), safe
    args = call.node.args
    if not args:
        return (*needs, Replace(call.node, f"{module.code(call.node.func)}({seed})")), safe
    if len(args) == 1 and not args[0].star and args[0].keyword is None:
        return (*needs, Replace(args[0].value, seed)), safe
    return (*needs, SetArgument(call.node, row.when[0].argument, seed)), safe


def _with_its_seed(module: Module, call: Call, row: Row) -> tuple[Change, ...]:
    """The call that takes the seed in place of one that takes none, as `torch.seed(7)`."""
    if len(call.node.args) != 1 or not isinstance(module.parent(call.node), cst.Expr):
        return ()
    function = row.give["function"]
    if "{torch}" in function:
        return (NeedImport("torch"), Replace(call.node.func, function))
    return (Replace(call.node.func, f"{module.code(call.node.func).rpartition('.')[0]}.{function}"),)


def _generator(call: Call) -> str:
    """The library whose global generator draws the same as the object of its own that `call` seeds."""
    return "torch" if any(name.startswith("torch.Generator") for name in call.own) else ""


class _Sink(NamedTuple):
    """A call that takes `value` for a seed, and the libraries whose global generators it seeds (none: another
    generator; `_ANY`: perhaps any)."""

    call: Call
    value: Value
    libraries: tuple[str, ...]


class _Step(NamedTuple):
    """A value on the way to a seed, the call by which the way leaves the file of the seed, and the place where it came
    out of what is used for other things too."""

    module: Module
    value: Value
    left_by: Call | None = None
    place: cst.CSTNode | None = None


class _Way(NamedTuple):
    """A call that makes the value of `sink` another one in every run, what it reads (empty: a generator), and the place
    behind which its value becomes nothing but seeds: the call itself where it is used for nothing else."""

    sink: _Sink
    source: Call
    what: str
    place: cst.CSTNode


def _sinks(module: Module) -> Iterator[_Sink]:
    seen = set[int]()
    for seed in module.library.facts.seeds if module.calls_any(module.library.seeding) else ():
        if not seed.argument:
            continue
        for call in module.calls_to(*seed.names):
            value = call.argument(seed.argument, seed.parameters)
            if value is not None and id(value.node) not in seen:
                seen.add(id(value.node))
                yield _Sink(call, value, seed.seeds)
    for call in module.method_calls("manual_seed", "seed"):
        for arg in call.node.args[:1]:
            if not arg.star and arg.keyword is None and id(arg.value) not in seen:
                seen.add(id(arg.value))
                yield _Sink(call, module.value_at(arg.value, call.scope, call.order), ())
    conventions = module.library.facts.conventions
    for call in list(module.calls):
        for place, arg in enumerate(call.node.args):
            named = arg.keyword is not None and arg.keyword.value in conventions.seed_arguments
            first = place == 0 and arg.keyword is None and not arg.star and _seeds_by_its_name(module, call)
            if (named or first) and id(arg.value) not in seen:
                seen.add(id(arg.value))
                value = module.value_at(arg.value, call.scope, call.order)
                known = any(name[:1] not in "@." for name in call.names)
                unknown = _OBJECT if _is_of_an_object(module, call) else _ANY
                yield _Sink(call, value, _seeded_in(module, call) if known else (unknown,))


def _seeds_by_its_name(module: Module, call: Call) -> bool:
    """Whether a function of the program's other files evidently takes a seed first: `set_seed(…)`."""
    function = call.node.func
    name = function.value if isinstance(function, cst.Name) else call.attribute
    return module.library.facts.conventions.seeds.fullmatch(name) is not None


def _seeded_in(module: Module, call: Call) -> tuple[str, ...]:
    """The libraries whose global generators the function of the program that is called seeds itself."""
    found = module.function(call.own[0]) if len(call.own) == 1 else None
    if found is None:
        return ()
    there, function = found
    rows = {name: seed.seeds for seed in module.library.facts.seeds for name in seed.names}
    inner = (one for one in there.calls if there.enclosing_function(one.node) is function)
    return tuple(dict.fromkeys(library for one in inner for name in one.names for library in rows.get(name, ())))


def _is_of_an_object(module: Module, call: Call) -> bool:
    """Whether it is a method of an object that the function was given or made, which seeds that: `rows.set_seed(…)`."""
    receiver = call.receiver
    if not isinstance(receiver, cst.Name) or receiver.value in ("self", "cls") or module.resolve(receiver):
        return False
    home = call.scope.home(receiver.value)
    return home is not None and home.kind == "function"


def _entropy(module: Module, sink: _Sink, uses: Uses) -> Iterator[_Way]:
    """What makes the value of `sink` another one in every run. Of a function of another file, it is the call of that
    function."""
    spared = module.shared(Spared)
    queue: list[_Step] = [_Step(module, sink.value)] if sink.value.node not in spared else []
    seen, spread, entered = set[int](), set[int](), set[int]()
    draws = _draws(module)
    while queue:
        step = queue.pop(0)
        there, value, left_by, place = step
        stack: list[cst.CSTNode] = [value.node]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            call = there.call_at(node)
            if call is not None:
                name = call.own[0] if len(call.own) == 1 else ""
                what = module.library.facts.entropy.get(name)
                if what is not None:
                    source = left_by or call
                    if there is not module or node not in spared:
                        yield _Way(sink, source, what, place or source.node)
                elif name in draws:
                    if there is module and node not in spared and _is_fresh_draw(module, call, sink):
                        yield _Way(sink, call, "", place or call.node)
                else:
                    if there is module:
                        yield from (_Way(sink, *one, place or one[0].node) for one in _by_default(module, node, sink))
                    stack.extend(_passed_on(there, call, name))
                    found = there.function(name) if name and len(entered) < _FUNCTIONS else None
                    if found is not None and id(found[1]) not in entered and not _takes_seed(call, found[1]):
                        entered.add(id(found[1]))
                        leaves = left_by or (call if found[0] is not module else None)
                        kept = place or uses.shared(there, node)
                        queue += [_Step(found[0], found[0].value(one), leaves, kept) for one in returned(found[1])]
            elif isinstance(node, cst.Name) or (isinstance(node, (cst.Attribute, cst.Subscript)) and member(node)):
                here = there.value_at(node, value.scope, value.order)
                bound = assigned(there, here) or kept_by_objects(there, here)
                queue += [
                    _Step(there, one, left_by, place or uses.shared(there, node))
                    for one in bound
                    if there is not module or one.node not in spared
                ]
                if not bound and there is module:
                    yield from (_Way(sink, *one, place or one[0].node) for one in _by_default(module, node, sink))
            elif id(node) not in spread and not (isinstance(node, cst.Subscript) and dotted(node.value)):
                parts = [part for part in inside(node) if part is not node]
                spread.update(map(id, parts))
                stack.extend(parts)


def _by_default(module: Module, node: cst.CSTNode, sink: _Sink) -> Iterator[tuple[Call, str]]:
    """What an option, a field or an entry is where nothing in sight gives it another value."""
    for call in module.shared(FreshDefaults).of(node) if not isinstance(node, cst.Name) else ():
        what = module.library.facts.entropy.get(call.own[0], "")
        if what or _is_fresh_draw(module, call, sink):
            yield call, what


def _is_fresh_draw(module: Module, call: Call, sink: _Sink) -> bool:
    """Whether `call` draws a number that becomes the seed of `sink`, and nothing has seeded its generator."""
    drawn = _draws(module).get(call.own[0]) if len(call.own) == 1 else None
    met = drawn is not None and module.meets(call, drawn.when, drawn.parameters)
    return met and _unseeded(module, call, sink)


def _takes_seed(call: Call, function: cst.FunctionDef) -> bool:
    """Whether `call` passes `function` a seed, which it may well return."""
    parameters = positional(function)
    seeds = [parameter for parameter in parameters if "seed" in parameter.lower()]
    given = [call.argument(parameter, parameters) for parameter in seeds]
    return call.opaque or any(value is not None and not value.is_none for value in given)


def _passed_on(module: Module, call: Call, name: str) -> Iterator[cst.CSTNode]:
    """The parts of a call that its result is made of: `int(x)`, `x.item()`, `os.getenv("SEED", x)`."""
    if call.receiver is not None and not dotted(call.receiver):
        yield call.receiver
    if name == "os.getenv" or call.attribute == "get":
        yield from (arg.value for arg in call.node.args[1:])
    elif not name or name.partition(".")[0] in module.library.facts.conventions.conversions:
        yield from (arg.value for arg in call.node.args)


class _Draws:
    """The rows of the calls that draw from global generators, by name."""

    def __init__(self, module: Module) -> None:
        rows = (draw for draw in module.library.facts.draws if draw.at == "call")
        self.rows = {name: draw for draw in rows for name in draw.names}


def _draws(module: Module) -> dict[str, Draw]:
    return module.shared(_Draws).rows


def _unseeded(module: Module, draw: Call, sink: _Sink) -> bool:
    """Whether nothing in sight seeds what `draw` draws from before it runs.

    A file that is only imported may well be called after its caller seeded; there only a seed that goes back to the
    generator that it came from tells that a fresh one was meant.
    """
    library = _ROOTS[draw.own[0].partition(".")[0]]
    here = draw.scope.function
    function = module.enclosing_function(draw.node)
    if function is not None and ("worker" in function.name.value or _numbered(module, draw)):
        return False
    if not (here is module.scope or library in sink.libraries or has_main_guard(module.text)):
        return False
    known = {name: seed for seed in module.library.facts.seeds for name in seed.names}
    helper = module.function(sink.call.own[0]) if len(sink.call.own) == 1 else None
    for call in module.calls:
        rows = [known[name] for name in call.names if name in known]
        mine = module.function(call.own[0]) if not rows and len(call.own) == 1 else None
        if rows:
            seeds = any(library in row.seeds for row in rows)
        elif mine is not None and mine[1] is function is module.enclosing_function(sink.call.node):
            # Of what else it seeds, its own calls tell.
            continue
        else:
            callee = module.code(call.node.func).rpartition(".")[2].lower()
            seeds = "seed" in callee or "determin" in callee
        where = call.scope.function
        elsewhere = where is not here and where is not sink.call.scope.function
        elsewhere &= helper is None or module.enclosing_function(call.node) is not helper[1]
        if seeds and call is not sink.call and (elsewhere or (where is here and call.order < draw.order)):
            return False
    return True


def _numbered(module: Module, draw: Call) -> bool:
    """Whether the draw is mixed with the number of a process, which goes on from what its parent has seeded."""
    node: cst.CSTNode = draw.node
    while isinstance(parent := module.parent(node), (cst.BinaryOperation, cst.Attribute, cst.Call)):
        if isinstance(parent, cst.BinaryOperation):
            other = parent.right if parent.left is node else parent.left
            if module.library.facts.conventions.numbers_process.search(last_word(other)):
                return True
        node = parent
    return False


def _whole(module: Module, node: cst.CSTNode, value: cst.CSTNode) -> cst.CSTNode:
    """The largest expression around `node`, up to `value`, that is made of it and of literals alone."""
    best = node
    while best is not value and (wider := _wider(module, best)) is not None:
        best = wider
    return best


def _wider(module: Module, node: cst.CSTNode) -> cst.CSTNode | None:
    parent = module.parent(node)
    if isinstance(parent, cst.Arg):
        if parent.keyword is not None:
            return None
        call = module.parent(parent)
        assert isinstance(call, cst.Call)
        conversions = module.library.facts.conventions.conversions
        converts = any(name.partition(".")[0] in conversions for name in module.resolve(call.func))
        others = [arg.value for arg in call.args if arg is not parent]
        return call if converts and all(_literal(module, other) for other in others) else None
    if isinstance(parent, cst.BinaryOperation):
        other = parent.right if parent.left is node else parent.left
        return parent if _literal(module, other) else None
    return parent if isinstance(parent, (cst.Attribute, cst.Call, cst.Subscript, cst.UnaryOperation)) else None


def _literal(module: Module, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return _literal(module, node.left) and _literal(module, node.right)
    return module.value(node).known
