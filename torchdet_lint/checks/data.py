"""Loaders and samplers -> those that get no generator, or whose workers get no seed."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.checks import table
from torchdet_lint.checks.kept_defaults import is_always_given, is_left_none, is_parameter, keeps
from torchdet_lint.checks.trace import bindings_here, origins
from torchdet_lint.checks.zero_workers import WORKERS, is_zero, stays_zero
from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.handing.constructors import Constructors
from torchdet_lint.dataflow.handing.handing_on import HandingOn
from torchdet_lint.dataflow.seeding.call_chain import CallChain
from torchdet_lint.dataflow.seeding.program_seeds import ProgramSeeds
from torchdet_lint.dataflow.syntax import last_word, nodes
from torchdet_lint.dataflow.workers.objects import Handed, WorkerObjects
from torchdet_lint.dataflow.workers.owning import package_of
from torchdet_lint.finding import DropArgument, NeedFunction, NeedHelper, NeedImport, SetArgument, Violation, Withhold
from torchdet_lint.module.names import dotted
from torchdet_lint.module.tree import positional, returned
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.catalogue.tables.conventions import Owning
    from torchdet_lint.dataflow.workers.bodies import Owned
    from torchdet_lint.finding import Applicability, Change, Severity
    from torchdet_lint.module.module import Call, Module, Value
    from torchdet_lint.module.names import Binding

LOADER = "torch.utils.data.DataLoader"
_GLOBAL = "torch.default_generator"
_OFF = ("False", "0")
_TORCHS_SEED = "initial_seed"
# What draws as a sampler with weights does.
_WEIGHED = "multinomial"
# What a method of a sampler says that goes by the order of its base.
_BASES_ORDER = ("generator", "super(", ".__iter__(")
_WORD = lazy(r"[a-z]+?(?=_|data|loader|$)")
_NOT_TAKEN = Withhold("what makes the loader takes no such argument, as far as is in sight")
_NO_USE = Withhold("the sampler takes the generator (TDL303), and that of a loader does not reach it")
_KEPT = Withhold("the loader has a `worker_init_fn` already, which does not seed it")
_AGAIN = Withhold("each time the loop draws again it would draw the same")
_PICKED = Withhold("callers may pass another class, which may take no such argument")
_TOO_EARLY = Withhold("torch is seeded only below, and a generator that is made here would differ in every run")
_LEFT = Withhold("callers may pass a generator, which none in sight does")
_NO_ARGUMENT = Withhold("the project requires a release of torch before 1.6, which has no such argument")
# Loaders, samplers and `random_split` take a generator since then.
_GENERATORS_SINCE = (1, 6)
_RECEIVED = Withhold("another caller may pass one already")


def dataloader_worker_seed(module: Module, rule: Rule) -> Iterator[Violation]:
    """Workers, or a number of them that only the run knows, and no function that seeds them."""
    for call, withheld, by in _loaders(module, rule, WORKERS, ("worker_init_fn",)):
        workers = call.argument(WORKERS)
        assert workers is not None
        if stays_zero(module, workers) or _starts_workers(module, call):
            continue
        handed = _handed(module, call, by)
        # Before 1.9 torch seeded itself and `random` there, as it does now, and not NumPy.
        unseeded = "numpy" in handed.draws or not handed.in_sight
        variant = "before-1.9" if unseeded and not module.target.seeds_numpy_in_workers else ""
        seeded = handed.in_sight and not handed.owned and not variant
        idle = not handed.in_sight and not (variant and handed.draws) and _evaluates(module, call)
        details = {"workers": workers.source}
        alone = workers.known and workers.constant == 1
        severity: Severity | None = None
        if handed.owned:
            variant, severity = _copied(module, handed.owned[0]), "error"
            if alone and _keeps_worker(call):
                variant, severity = "kept", "note"
            elif alone:
                variant = f"{variant}-alone"
            details |= {"owner": handed.owned[0].owner, "generator": handed.owned[0].name}
            details["place"] = _place(module, handed.owned[0])
        elif variant:
            variant = "alone" if alone else variant
            severity = "error" if "numpy" in handed.draws else "note" if idle else None
        elif handed.in_sight:
            variant, severity = "drawn" if handed.draws else "own" if handed.seeds else "nothing", "note"
        elif idle:
            severity = "note"
        changes, safe = ((), None) if seeded or variant == "kept" else _seeded_workers(module, call, handed.owned)
        started = call.argument("worker_init_fn")
        kept = _KEPT if started is not None and not started.is_none else withheld
        if changes and kept is not None:
            changes, safe = (kept,), None
        # What the workers draw follows from the loader's generator, where it has one, whatever torch is seeded with.
        draws = bool(handed.draws) and not _seeds_workers(module, call)
        yield Violation(call.node, details, variant, severity, changes=changes, applicability=safe, draws=draws)


def _keeps_worker(call: Call) -> bool:
    """Whether the workers of a loader, and what they hold, live on from epoch to epoch."""
    value = call.argument("persistent_workers")
    return value is not None and value.known and bool(value.constant)


def _seeds_workers(module: Module, call: Call) -> bool:
    """Whether a loader is given a generator of its own, from which torch takes the seeds of the workers: not None, nor
    torch's global one, nor one that may follow the seed of that."""
    value = call.argument("generator")
    if value is None or value.is_none or _GLOBAL in value.names:
        return False
    function = module.enclosing_function(call.node)
    around = module.text if function is None or _TORCHS_SEED not in module.text else module.code(function)
    own = value.evaluator is module.values
    return _TORCHS_SEED not in around and not (own and is_left_none(module, value))


def _starts_workers(module: Module, call: Call) -> bool:
    """Whether `call` is given a function that may seed its workers, or options out of sight may hold one."""
    value = call.argument("worker_init_fn")
    if value is None:
        return call.opaque
    # Of what hands its arguments on to a class above, the calls are reported, if they say how many workers there are.
    workers = call.argument(WORKERS)
    above = last_word(call.node.func) == "__init__" and workers is not None and is_parameter(module, workers)
    if value.is_none or (not above and is_left_none(module, value)):
        return False
    node = value.node
    if isinstance(node, cst.Lambda):
        return not _is_idle(module, node.body)
    found = [module.function(name) for name in value.names]
    return not found or not all(one is not None and _is_idle(one[0], one[1].body) for one in found)


def _is_idle(module: Module, body: cst.CSTNode) -> bool:
    """Whether what a worker starts with evidently seeds nothing: it only calls what the tables know for that."""
    idle, other = module.library.facts.workers.idle, (cst.AugAssign, cst.AssignTarget, cst.NamedExpr, cst.Ellipsis)
    for node in nodes(body):
        names = module.resolve(node.func) if isinstance(node, cst.Call) else ()
        if isinstance(node, other) or (isinstance(node, cst.Call) and (not names or not idle.issuperset(names))):
            return False
    return True


def _evaluates(module: Module, call: Call) -> bool:
    """Whether a loader that keeps the order is for validation or testing, by the name that it or its method has."""
    shuffle = call.argument("shuffle")
    if shuffle is not None and not (shuffle.known and not shuffle.constant):
        return False
    function, statement = module.enclosing_function(call.node), module.statement(call.node)
    told = [function.name.value] if function is not None else []
    if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign):
        targets = [target.target for target in statement.body[0].targets]
        told += [last_word(one.value if isinstance(one, cst.Subscript) else one) for one in targets]
    return any(module.library.facts.workers.evaluating.intersection(_WORD.findall(name.lower())) for name in told)


class _Loader(NamedTuple):
    """The call of a loader, why no fix may pass an argument there, and the library's call behind it, with its file."""

    call: Call
    withheld: Withhold | None = None
    by: tuple[Module, cst.Call] | None = None


def _loaders(module: Module, rule: Rule, word: str, added: tuple[str, ...]) -> Iterator[_Loader]:
    """The loaders that a row of the rule means, those of classes and functions of the project that hand the argument
    `word` on, and those that get more from a caller, among them; a fix would pass the arguments `added`."""
    for call, _ in table.calls(module, rule):
        kind = module.value(call.node.func)
        if not is_parameter(module, kind):
            answers = {module.shared(Constructors).answer(call, name) for name in added}
            if "fills" not in answers:
                yield _Loader(call, _NOT_TAKEN if "refuses" in answers else None)
        elif not is_always_given(module, kind, _makes_no_loader):
            yield _Loader(call, _PICKED)
    seen = set[int]()
    handing = module.shared(HandingOn)
    for made in itertools.chain(handing.calls(LOADER, word, added), handing.receiving(LOADER)):
        if (
            word in made.own
            and id(made.call.node) not in seen
            and any(
                set(row.excluding).isdisjoint(made.call.names) and module.meets(made.call, row.when, row.parameters)
                for row in rule.calls
            )
        ):
            seen.add(id(made.call.node))
            taken = None if made.added.issuperset(added) else _NOT_TAKEN
            yield _Loader(made.call, _RECEIVED if made.received else taken, made.by)


def _makes_no_loader(value: Value) -> bool:
    return LOADER not in value.names


def _is_never_asked_for(module: Module, value: Value) -> bool:
    """Whether `value` is off in every call in sight; or a name that is given anything but False only where what is so
    is true."""
    if _is_off(module, value):
        return True
    bound = bindings_here(module, value) if value.evaluator is module.values else []
    given = [one.value for one in bound if one.kind == "assign" and one.value is not None and not one.path]
    on = [node for node in given if not is_zero(module.value(node))]
    return len(given) == len(bound) and bool(on) and all(_never_runs(module, node) for node in on)


def _never_runs(module: Module, node: cst.CSTNode) -> bool:
    """Whether `node` stands in a branch of an `if` that asks what is off in every call in sight."""
    inner = node
    for around in module.ancestors(node):
        if isinstance(around, cst.FunctionDef):
            return False
        asks = isinstance(around, cst.If) and isinstance(around.test, cst.Name) and inner is around.body
        if asks and isinstance(around, cst.If) and _is_off(module, module.value(around.test)):
            return True
        inner = around
    return False


def _is_off(module: Module, value: Value) -> bool:
    """Whether `value` is a parameter that is false in every call in sight: of a method, in all of its name; or what a
    loop takes of such a list, `for rows, train in zip(sets, training)`, in which all is false."""
    if keeps(module, value, is_zero, by_name=True):
        return True
    bound = bindings_here(module, value) if value.evaluator is module.values else []
    over = _gone_through(module, bound[0]) if len(bound) == 1 and bound[0].kind == "loop" else None
    return over is not None and keeps(module, module.value(over), _holds_zeros, by_name=True)


def _gone_through(module: Module, bound: Binding) -> cst.BaseExpression | None:
    """What a loop goes through with a name, alone or beside others that `zip` takes along."""
    if not isinstance(bound.value, cst.Call):
        return bound.value if not bound.path else None
    call = module.call_at(bound.value)
    place = bound.path[0] if len(bound.path) == 1 else -1
    given = call.arguments.positional if call is not None and "builtins.zip" in module.resolve(bound.value.func) else ()
    whole = call is not None and not call.opaque and 0 <= place < len(given)
    return bound.value.args[place].value if whole else None


def _holds_zeros(value: Value) -> bool:
    """Whether `value` is a list that is written out, of nothing but what is evidently 0."""
    elements = value.node.elements if isinstance(value.node, (cst.List, cst.Tuple)) else ()
    return bool(elements) and all(
        isinstance(one, cst.Element) and isinstance(one.value, (cst.Name, cst.Integer)) and one.value.value in _OFF
        for one in elements
    )


def _handed(module: Module, call: Call, by: tuple[Module, cst.Call] | None) -> Handed:
    """What `call` hands its workers: it names the data set, or the library's call behind it does. Of a graph, samples
    are taken there."""
    workers = module.library.facts.workers
    samples = not workers.sampling.isdisjoint(call.own)
    if samples or not workers.dividing.isdisjoint(call.own):
        made = module.shared(CallChain).call_at(call.node) if not call.opaque else None
        told = module.shared(WorkerObjects).sampled(made) if made is not None else Handed(False, (), frozenset())
        return told._replace(draws=told.draws | {"torch"}) if samples else told
    given, node, home = call.argument("dataset"), call.node, module
    if given is not None and all(given.node is not arg.value for arg in node.args) and not call.opaque:
        if by is None:
            return Handed(False, (), frozenset())
        module, node, by = *by, None
    made = module.shared(CallChain).call_at(node)
    handed = module.shared(WorkerObjects).handed(made) if made is not None else Handed(False, (), frozenset())
    handed = _told_from(module, handed, home)
    beside = _collated(*by) if by is not None and by[1] is not node else None
    if by is None or beside is None:
        return handed
    beside = _told_from(by[0], beside, home)
    in_sight = handed.in_sight and beside.in_sight
    return handed._replace(in_sight=in_sight, owned=(*handed.owned, *beside.owned), draws=handed.draws | beside.draws)


def _collated(module: Module, library: cst.Call) -> Handed | None:
    """What the call of the library's loader collates rows with, where that is a lambda, a method, or something that the
    file defines or imports: what is a parameter there is told by who calls."""
    given = [arg.value for arg in library.args if arg.keyword is not None and arg.keyword.value == "collate_fn"]
    made = module.shared(CallChain).call_at(library) if any(_is_own(module, value) for value in given) else None
    return module.shared(WorkerObjects).collated(made) if made is not None else None


def _told_from(module: Module, handed: Handed, home: Module) -> Handed:
    """`handed`, which was found in the file `module`, with the paths that the file `home` tells."""
    if module is home:
        return handed
    owned = (one if one.path else one._replace(path=module.source.path) for one in handed.owned)
    return handed._replace(owned=tuple(owned))


def _is_own(module: Module, node: cst.BaseExpression) -> bool:
    """Whether `node` is a lambda, something of `self`, or of a name at top level, or a call of one."""
    if isinstance(node, cst.Lambda) or dotted(node).startswith("self."):
        return True
    while isinstance(node, (cst.Attribute, cst.Call)):
        node = node.value if isinstance(node, cst.Attribute) else node.func
    return isinstance(node, cst.Name) and module.scope_of(node).home(node.value) is module.scope


def _copied(module: Module, owned: Owned) -> str:
    """Which message says what holds the generator that is copied."""
    if _package(module, owned) is not None:
        return "held"
    return "owned" if owned.owner else "shared"


def _package(module: Module, owned: Owned) -> Owning | None:
    """The package of which the generator is a transform's own."""
    return package_of(owned.maker, module.library.facts.workers.owning)


def _place(module: Module, owned: Owned) -> str:
    """Where the generator is made, in words."""
    if owned.path:
        return f"{owned.path.replace(os.sep, '/').rpartition('/')[2]}:{owned.row}"
    cell, row = module.source.place(owned.row)
    return f"line {row}" if cell is None else f"cell {cell}, line {row}"


def _seeded_workers(
    module: Module, call: Call, owned: Sequence[Owned]
) -> tuple[tuple[Change, ...], Applicability | None]:
    """A function that seeds what every worker has a copy of, and whether passing it is safe."""
    held = [found for one in owned if (found := _package(module, one)) is not None]
    reason = (
        "the generator cannot be reached from the data set, `get_worker_info().dataset`"
        if not all(one.way for one in owned)
        else ""
    )
    # Of several classes that may be meant, each may keep a generator of its own under one name.
    ways = {one.way: one for one in sorted(owned, reverse=True)}
    if any(one.maker != ways[one.way].maker for one in owned):
        reason = "the data set is of one of several classes, which keep different generators under one name"
    reason = held[0].cure if held else reason
    reason = "workers that are spawned cannot import a function of a notebook" if module.source.cells else reason
    if reason:
        return (Withhold(reason),), None
    if not owned:
        changes = (NeedHelper("seed_worker"), SetArgument(call.node, "worker_init_fn", "{seed_worker}"))
        return changes, "unsafe"
    needs: dict[Change, None] = {NeedImport("torch"): None}
    seed, lines = "worker_seed", ["worker_seed = {torch}.initial_seed() % 2**32"]
    if len(ways) > 1 or any(one.maker.startswith("torch.") for one in owned):
        # The worker's own seed is that of its global generator; the next numbers are those of other workers.
        needs[NeedImport("random")] = None
        seed, lines = "seeds.getrandbits(32)", ["seeds = {random}.Random({torch}.initial_seed())"]
    lines.append("dataset = {torch}.utils.data.get_worker_info().dataset")
    for one in sorted(ways.values()):
        package, _, rest = one.maker.partition(".")
        needs[NeedImport(package)] = None
        made = f"{{{package}}}.{rest}"
        lines.append(
            f"{one.way} = {made}().manual_seed({seed})" if package == "torch" else f"{one.way} = {made}({seed})"
        )
    helper = NeedFunction("seed_worker", "worker_id", tuple(lines))
    seeded = (*needs, helper, SetArgument(call.node, "worker_init_fn", "{seed_worker}"))
    repeats = module.shared(ProgramSeeds).torch_seeded(call.node) or _seeds_workers(module, call)
    return seeded, None if repeats else "unsafe"


def dataloader_generator(module: Module, rule: Rule) -> Iterator[Violation]:
    """A loader that shuffles, or may, or that takes a random sampler, and no generator."""
    left = (_Loader(call, _LEFT) for call, *_ in table.left_none(module, rule))
    for call, withheld, _ in itertools.chain(_loaders(module, rule, "shuffle", ("generator",)), left):
        shuffle = call.argument("shuffle")
        asked = shuffle is not None and not ((shuffle.known and not shuffle.constant) or _is_off_here(module, shuffle))
        if shuffle is not None and asked and not (_is_ordered(module, call) or _is_never_asked_for(module, shuffle)):
            variant = "" if shuffle.known else "unknown"
        elif _takes_random_sampler(module, rule, call):
            variant = "sampler"
        else:
            continue
        reason = _NO_USE if variant == "sampler" else withheld
        if reason is None or module.target.release < _GENERATORS_SINCE:
            changes, safe = _own_generator(module, call)
        else:
            changes, safe = (reason,), None
        details = {"shuffle": shuffle.source if shuffle else "", **_help(changes)}
        if variant == "sampler" and "help" in details:
            details["help"] = "older-sampler"
        yield Violation(call.node, details, variant, changes=changes, applicability=safe)


def _is_off_here(module: Module, value: Value) -> bool:
    """Whether a name is given nothing but False on the way to where it is read: in this branch of an `if`."""
    bound = bindings_here(module, value) if value.evaluator is module.values else []
    given = [
        module.value_at(one.value, value.scope, one.order)
        for one in bound
        if one.kind == "assign" and one.value is not None and not one.path
    ]
    return bool(given) and len(given) == len(bound) and all(one.known and not one.constant for one in given)


def _is_ordered(module: Module, call: Call) -> bool:
    """Whether `call` is evidently given a sampler, beside which torch takes no `shuffle`."""
    value = call.argument("sampler") or call.argument("batch_sampler")
    made = [origin.node for origin in origins(module, value)] if value is not None else []
    return bool(made) and all(isinstance(node, cst.Call) and last_word(node.func).endswith("Sampler") for node in made)


def _takes_random_sampler(module: Module, rule: Rule, call: Call) -> bool:
    """Whether the order that `call` is given, straight or in batches, comes from a sampler without a generator."""
    for there, made in _made(module, call, "batch_sampler"):
        if "torch.utils.data.BatchSampler" in made.names and _takes_random_sampler(there, rule, made):
            return True
    samplers = frozenset(rule.words["samplers"])
    for there, made in _made(module, call, "sampler"):
        if not samplers.isdisjoint((*made.names, *_picked_classes(there, made))) and not made.opaque:
            generator = made.argument("generator")
            if generator is None or generator.is_none:
                return True
    return False


def _made(module: Module, call: Call, argument: str) -> Iterator[tuple[Module, Call]]:
    """The calls that may have made an argument, each with its file."""
    value = call.argument(argument)
    for origin in origins(module, value) if value is not None else ():
        made = module.call_at(origin.node)
        if made is not None and not module.is_dead(made.node):
            yield module, made
            yield from _returned(module, made)


def _picked_classes(module: Module, call: Call) -> Iterator[str]:
    """The classes of a table, of this file or another, one of which `call` makes: `SAMPLERS[kind](data)`."""
    picked = module.followed(call.node.func, call.scope, call.order)
    node = picked.node if picked is not None else call.node.func
    index = node.slice[0].slice if isinstance(node, cst.Subscript) else None
    if isinstance(node, cst.Subscript) and isinstance(index, cst.Index):
        entries = module.dictionary(node.value, call.scope, call.order) or {}
        key = module.value(index.value).constant
        for value in [entries[key]] if isinstance(key, str) and key in entries else entries.values():
            yield from value.names


def _returned(module: Module, call: Call) -> Iterator[tuple[Module, Call]]:
    """The calls that may have made what a function or method of the project returns to `call`, each with its file."""
    callee = CallEdges(module).callee(call.node, call.own)
    if callee is None or callee.function is None:
        return
    there, function = callee.module, callee.function
    parameters = positional(function)[callee.bound :]
    for value in returned(function):
        if not _is_ruled_out(there, value, function, call, parameters):
            made = (there.call_at(origin.node) for origin in origins(there, there.value(value)))
            yield from ((there, one) for one in made if one is not None)


def _is_ruled_out(
    module: Module, node: cst.CSTNode, function: cst.FunctionDef, call: Call, parameters: Sequence[str]
) -> bool:
    """Whether `node` stands in a branch of `function` that a constant which `call` passes rules out."""
    inner = node
    for around in itertools.takewhile(lambda one: one is not function, module.ancestors(node)):
        if isinstance(around, cst.If) and isinstance(around.test, cst.Name):
            given = call.argument(around.test.value, parameters)
            if given is not None and given.known and bool(given.constant) is (inner is around.orelse):
                return True
        inner = around
    return False


def sampler_generator(module: Module, rule: Rule) -> Iterator[Violation]:
    """A random sampler or split that is given no generator."""
    left = [(call, row) for call, row, _ in table.left_none(module, rule)]
    for call, row in (*table.calls(module, rule), *left):
        parent = module.parent(call.node)
        if isinstance(parent, cst.Arg) and parent.keyword is not None and parent.keyword.value == "shuffle":
            continue  # torch asks only whether it is true
        if last_word(call.node.func) == "__init__" and _goes_its_own_way(module, call.node):
            continue
        at_once = row.variant == "split"
        seeds = module.shared(ProgramSeeds)
        severity: Severity | None = None
        variant = row.variant
        if at_once and seeds.right_below_a_seed(call.node):
            variant, severity = "below", "note"
        elif at_once and seeds.torch_seeded_only_below(call.node):
            variant, severity = "early", "error"
        # What draws as nothing else of the file does may start from the very seed.
        weighs = not set(call.names).isdisjoint(rule.words["weighs"]) and _WEIGHED not in module.text
        changes, safe = _own_generator(module, call, permutes=not weighs, at_once=at_once)
        if safe == "unsafe" and at_once and _until_it_is_right(module, call.node):
            changes, safe = (_AGAIN,), None
        answer = module.shared(Constructors).answer(call, "generator")
        if answer == "fills":
            continue
        if (call, row) in left:
            changes, safe = (_LEFT,), None
        elif answer == "refuses":
            changes, safe = (_NOT_TAKEN,), None
        yield Violation(
            call.node,
            {"call": call.names[-1].rpartition(".")[2], **_help(changes)},
            variant,
            severity,
            changes=changes,
            applicability=safe,
        )


def _goes_its_own_way(module: Module, node: cst.Call) -> bool:
    """Whether the class of a sampler, whose constructor calls that of the base, goes through the data in a way of its
    own, which asks for no generator."""
    class_ = module.enclosing_class(node)
    function = module.definition("__iter__", class_) if class_ is not None and "__iter__" in class_.methods else None
    told = module.code(function) if function is not None else ""
    return told != "" and not any(word in told for word in _BASES_ORDER)


def _until_it_is_right(module: Module, node: cst.Call) -> bool:
    """Whether a loop around `node`, which seeds nothing, goes on until what it draws is right, and ends then."""
    for around in itertools.takewhile(lambda up: not isinstance(up, cst.FunctionDef), module.ancestors(node)):
        if isinstance(around, (cst.While, cst.For)):
            ends = isinstance(around, cst.While) or any(isinstance(part, cst.Break) for part in nodes(around.body))
            return ends and "seed" not in module.code(around)
    return False


def _own_generator(
    module: Module, call: Call, *, permutes: bool = False, at_once: bool = False
) -> tuple[tuple[Change, ...], Applicability | None]:
    """A generator for `call` alone, which draws `at_once` or later, that follows torch's seed; whether that is safe.
    What `permutes` draws a permutation before all else."""
    seeds = module.shared(ProgramSeeds)
    if module.target.release < _GENERATORS_SINCE:
        return (_NO_ARGUMENT,), None
    if seeds.torch_seeded_only_below(call.node):
        return (_TOO_EARLY,), None
    seed = seeds.initial_seed(call.node, permutes=permutes, at_once=at_once)
    generator = f"{{torch}}.Generator().manual_seed({seed.text})"
    changes = (*seed.needs, SetArgument(call.node, "generator", generator))
    oldest = module.target.oldest
    return changes, "unsafe" if oldest is not None and oldest < _GENERATORS_SINCE else seed.applicability


def _help(changes: tuple[Change, ...]) -> dict[str, str]:
    """The name of what to do instead, where the release that the project requires takes no generator."""
    return {"help": "older"} if changes == (_NO_ARGUMENT,) else {}


def unordered_batches(module: Module, rule: Rule) -> Iterator[Violation]:
    """Workers whose batches come in the order in which they are ready."""
    found = {id(call.node): (call, row.when[0].argument) for call, row in table.calls(module, rule)}
    for call, *_ in _loaders(module, rule, "in_order", ()):
        found.setdefault(id(call.node), (call, "in_order"))
    for call, name in found.values():
        argument = call.keyword_node(name)
        changes = (DropArgument(call.node, argument),) if argument is not None else ()
        yield Violation(call.node, {"argument": name}, changes=changes)
