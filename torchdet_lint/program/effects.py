"""The steps of a function, in order -> what running it does to the generators and the modes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.program.events import FAILS, GUARD
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STARTED = "<started>"
# What a step does that runs the target of a process, where another one tells of it: this one, what it is handed.
BESIDE = "beside"
# What workers draw from copies of the program's own generator of NumPy, where torch does not seed that there (before
# 1.9); and the same in training only.
COPIED = "numpy_copied"
COPIED_IN_TRAINING = "numpy_copied_training"
# What a step does that runs in a new process for the target of that, which is given it.
HANDED = "handed"
# What a step does that is left to the workers of a loader: they draw from torch's generator what its state decides
# here, when the loader is iterated, and do nothing else to the program.
WORKER = "worker"
# A process of a launcher that runs its target in this one where one is enough.
LAUNCHED = "launch"
# Kinds of effects: a draw of this process itself, and a seed of a process that it starts.
OWN = "own"
APART = "apart"
# This process itself trains.
OWN_TRAINING = f"{OWN}:trains"
LEVELS = 4
REFERENTS = 32
TOKEN = lazy(r"\(\)|[^.()]+")
ITEM = "[]"
# What a registry makes an object of what is registered with.
BUILT = ("]()", ".build()")


class Referent(NamedTuple):
    """What a name may stand for. `kind` is `module`, `function`, `class`, `instance` (of a class of the project),
    `fluent` (a method that returns its instance), `loader` (of an instance, its data set), `item` (of a dictionary that
    others fill: `name` holds the calls of it, the second part of `owner` which of several dictionaries it is),
    `external` (`name` is the qualified name), `parameter` (`name` is what follows the `$`) or `unknown`.

    `owner` is the class for which a method runs: its file and name.
    """

    kind: str
    file: str = ""
    name: str = ""
    owner: tuple[str, str] = ("", "")


Kept = dict[tuple[str, str, str], tuple[Referent, ...]]
"""File and name of the class of an object, and one of its attributes -> what that may be."""
Settings = dict[tuple[str, str, str], tuple[Any, ...]]
"""The same, and one of its attributes that is given constants only -> these."""


class Node(NamedTuple):
    """A function for one receiver class and for what its call decides on branches: parameters and their constants;
    `name` is `MODULE` for an imported file, `STARTED` for one that is run."""

    file: str
    name: str
    owner: tuple[str, str] = ("", "")
    given: tuple[tuple[str, Any], ...] = ()


class Ref(NamedTuple):
    """A place in the project: row and column as `ast` counts them, the row of its statement, and what happens there."""

    file: str
    row: int
    column: int
    statement: int
    what: str

    @property
    def shown(self) -> str:
        """`what` as messages name it: the models of a library that a name picks go by the name of their module."""
        return self.what.removesuffix(".*")


class Choice(NamedTuple):
    """One of the things of which a name at run time picks what is called: the number of the call in its function, which
    of them it is, how many there are, whether they are all that implement one method, of which any may be meant or
    none, and whether they are of modules of one name, of which nobody knows which the program imports."""

    call: int
    one: int
    of: int
    any: bool = False
    alike: bool = False


class Process(NamedTuple):
    """A new process: the function that it runs, and where it is started."""

    target: Node
    start: Ref


class Made(NamedTuple):
    """A call that makes a loader, or a transform for one: row, column, and the last word of what is called. Where a
    function makes it of what it is given, the call stands `within` that, which is called at the place `call`."""

    row: int
    column: int
    word: str
    within: Node | None = None
    call: tuple[int, int] = (0, 0)

    @property
    def told(self) -> tuple[int, int]:
        """The place in the function that is told of what the loader draws."""
        return self.call if self.within is not None else (self.row, self.column)


class Step(NamedTuple):
    """One effect of an event: `draw`, `seed` or `flag` (of `channel`), or `call`, `later`, `process` or `worker` (of
    `node`).

    Channels of draws are `python`, `numpy`, `torch`, `on_cuda` (torch, evidently there), `weights` (torch,
    initialisation), `dropout`, `numpy_training` and `python_training` (in training only), `python_items` and
    `torch_items` (where items of a data set are made), `base_seed` (torch's, for the workers of a loader, which draw)
    and `base_seed_training` (which draw in training only), `estimator`
    (NumPy's, for want of a generator that was passed), `imgaug` (NumPy's, for the seed of imgaug's own generator) and
    `cublas` (the first use of CUDA); `now` is false for what draws later than here. What a step draws that
    `initialises` are weights. A `borrow` draws from the parameter `channel` of the function; `lends` says of such
    parameters of the function called what they get: nothing, or a parameter here. An `ungraded` one stands in a `with
    torch.no_grad()`, a `regraded` one in a `with torch.enable_grad()`, a `sized` one makes a model of which only the
    parameters are counted, a `trained` one runs in training only, an `unapplied` one makes a model of which only the
    weights are read. What a `passing` one draws may come before a seed. A step of a `choice` happens if that is made.
    A method of an object that the target of a process is given runs `within` that process. A draw `alongside` a tensor
    is from the generator of the device on which that is. What a `reloaded` one draws for weights is replaced,
    and what an `evaluated` one makes draws nothing in training.
    """

    kind: str
    ref: Ref
    channel: str = ""
    node: Node | None = None
    now: bool = True
    branch: tuple[int, ...] = ()
    locked: bool = False
    initialises: bool = False
    lends: tuple[tuple[str, str], ...] = ()
    ungraded: bool = False
    sized: bool = False
    trained: bool = False
    choice: Choice | None = None
    unapplied: bool = False
    regraded: bool = False
    passing: bool = False
    within: Process | None = None
    alongside: bool = False
    reloaded: bool = False
    evaluated: bool = False

    @property
    def apart(self) -> bool:
        """Whether what a step does happens in a new process, and in no case in this one."""
        return self.kind == "process" and self.channel != LAUNCHED

    @property
    def runs_here(self) -> bool:
        """Whether what a step does happens in this process, and in its turn."""
        return self.kind not in ("later", "process", WORKER)

    @property
    def process(self) -> Process | None:
        """The process that a step starts, or in which it runs a method: what it runs, and where it is started."""
        return self.within if self.within is not None or self.node is None else Process(self.node, self.ref)


Effects = dict[str, Any]
"""`draw:c` (there is one), `own:c` (one that no new process makes), `first:c` (before any seed), `borrow:p` (from the
parameter p), `seed:c`, `apart:c` (a seed of new processes), `some:c` (one of what may be picked), `flag:f` -> Ref;
`late:c` -> (draw, seed), and `unsure:c` where a branch may pass by that draw, as `branch:c` says of `first:c`;
`begin:g` -> (channel, draw), the first draw of a generator that is not dropout's, which draws only when it runs;
`SEEDED_BY_SOME` -> classes that may be picked, each with a generator that it seeds."""

IN_TRAINING = {"torch": "dropout", "numpy": "numpy_training", "python": "python_training"}
# What transforms draw from `random` when an item of a data set is made.
ITEMS = "python_items"
# What transforms draw from torch's generator when an item of a data set is made.
TRANSFORMED = "torch_items"
# What a loader draws from torch's generator for its workers: each seeds `random` and NumPy with it too.
BASE_SEED = "base_seed"
# The same where the workers draw in training only.
BASE_SEED_IN_TRAINING = "base_seed_training"
# What a step does that is left to the workers of a loader with a generator of its own: that seeds them.
SEEDED = "seeded"
TRAINING = frozenset({*IN_TRAINING.values(), BASE_SEED_IN_TRAINING, COPIED_IN_TRAINING})
# The generators that somebody may seed.
_SEEDED = frozenset({"python", "numpy", "torch", "cuda", "imgaug"})
STEPS = ("steps", "locked", "stepped")
TRAINING_FLAGS = frozenset({"backward", "fits"})
_TRAINS = TRAINING_FLAGS | {*STEPS, "trains", "cuda", "on_cuda"}
# The backward pass whose gradients the step of an optimizer uses; and one that is still to be followed by a step.
DESCENT = "flag:descends"
_PENDING = "pending:backward"
# What an update of a tensor by its gradient, `w -= rate * w.grad`, is called, which is no optimizer's.
BY_HAND = "by hand"
SEEDED_BY_SOME = "seeded by some"
# CUDA is used whatever the options say: on no branch.
ON_CUDA = "flag:on_cuda"
# A method is called by its name, which follows, of what nobody knows.
NAMED_CALL = "flag:calls "
# The program hides all GPUs, in every run, before CUDA starts; and it may let some be seen.
HIDDEN = "flag:hidden"
VISIBLE = "flag:visible"
_KEPT = frozenset({"draw", "flag", "begin", "some", APART})
_STARTS = ("flag:cuda", "flag:started")
_DRAWS = frozenset({"draw", OWN, "first", "begin", "borrow", "late", "branch", "unsure"})
_GENERATOR = {
    "python": "python",
    "numpy": "numpy",
    "torch": "torch",
    "weights": "torch",
    "dropout": "torch",
    "on_cuda": "torch",
    BASE_SEED: "torch",
    BASE_SEED_IN_TRAINING: "torch",
    TRANSFORMED: "torch",
    "numpy_training": "numpy",
    COPIED: "numpy",
    COPIED_IN_TRAINING: "numpy",
    "estimator": "numpy",
    "imgaug": "numpy",
    "python_training": "python",
    ITEMS: "python",
    "cublas": "cublas",
    "cuda": "cuda",
}

_OF_NUMPY = ("numpy", "numpy_training")
_SEEDED_THERE = ("numpy", "numpy_training", "python", "python_training", ITEMS)


def trains(effects: Effects) -> bool:
    """Whether something trains: what trains by itself, or gradients and a step with them."""
    return "flag:fits" in effects or ("flag:backward" in effects and any(f"flag:{one}" in effects for one in STEPS))


def combine(found: Effects, arms: dict[str, tuple[int, ...]], step: Step, inner: Effects) -> None:
    """Add to `found` what `step` does, whose effects are `inner`; `arms` remembers in which arm of which `if` the first
    draws stand."""
    if SEEDED_BY_SOME in found and step.node is not None:
        inner = _below_own_seeds(inner, {kind for owner, kind in found[SEEDED_BY_SOME] if owner == step.node.owner})
    if SEEDED_BY_SOME in inner:
        found[SEEDED_BY_SOME] = found.get(SEEDED_BY_SOME, frozenset()) | inner[SEEDED_BY_SOME]
    if step.initialises and "first:torch" in inner:
        inner = _as_weights(inner)
    _descend(found, arms, step, inner)
    ordered = step.now and step.runs_here
    sure = {key for key in (ON_CUDA, HIDDEN) if ordered and key in inner and _in_every_run(arms, step.branch, key)}
    if HIDDEN in sure and not found.keys().isdisjoint(_STARTS):
        sure.discard(HIDDEN)
    if HIDDEN in sure and VISIBLE not in inner and inner[HIDDEN].what != "default":
        found.pop(VISIBLE, None)
    fresh = [key for key in inner if key not in found and (key in sure or key not in (ON_CUDA, HIDDEN))]
    for key in fresh:
        ref, (kind, _, channel) = inner[key], key.partition(":")
        if kind in _KEPT or (kind == "borrow" and (step.node is None or step.lends)):
            found.setdefault(key, ref)
        elif kind == OWN and not step.apart:
            found[key] = ref
        elif ordered and kind in ("first", "late") and f"seed:{_GENERATOR[channel]}" not in found:
            found[key] = ref
            if kind == "first":
                arms[channel] = step.branch
            passed = {"first": "branch", "late": "unsure"}[kind] + f":{channel}"
            if passed in inner or (kind == "first" and _left_open(step.branch)):
                # None: by the `if`s of this function alone, which may hold the seed too.
                found[passed] = ref if passed in inner else None
    seeds = [key for key in fresh if key.startswith("seed:")]
    if ordered and _cuda_is_seeded_instead(found, arms, step, inner):
        found.setdefault("some:torch", found.pop("seed:torch", inner.get("seed:torch")))
        seeds = [key for key in seeds if key != "seed:torch"]
    _combine_seeds(found, arms, step, inner, seeds)


def _descend(found: Effects, arms: dict[str, tuple[int, ...]], step: Step, inner: Effects) -> None:
    """Note in `found` which backward pass the step of an optimizer follows, where what comes next is `step`, with the
    effects `inner`: one whose gradients nothing has cleared that runs wherever it does. `arms` remembers where."""
    if DESCENT in found or DESCENT in inner:
        return
    pass_ = inner.get("flag:backward")
    if "flag:clears" in inner and pass_ is None and set(step.branch) <= set(arms.get(_PENDING, ())):
        found.pop(_PENDING, None)
    steps = (inner.get(f"flag:{one}") for one in STEPS)
    if any(one is not None and one.what != BY_HAND for one in steps):
        before = found.get(_PENDING, pass_)
        found |= {DESCENT: before} if before is not None else {}
    elif pass_ is not None and _PENDING not in found:
        found[_PENDING], arms[_PENDING] = pass_, step.branch


def _combine_seeds(
    found: Effects, arms: dict[str, tuple[int, ...]], step: Step, inner: Effects, fresh: Iterable[str]
) -> None:
    """Add to `found` the seeds `fresh` of a step: what a new process seeds is seeded there alone."""
    for key in fresh:
        generator = key[5:]
        if step.apart and generator in _SEEDED:
            found.setdefault(f"{APART}:{generator}", inner[key])
            continue
        if step.kind == "process" and any(f"first:{channel}" in found for channel in channels_of(generator)):
            continue
        if step.now and step.runs_here:
            _judge(found, arms, step, generator, inner)
        found.setdefault(key, inner[key])


def _cuda_is_seeded_instead(found: Effects, arms: dict[str, tuple[int, ...]], step: Step, inner: Effects) -> bool:
    """Whether one arm of an `if` seeds torch, as nothing else does, and with `step`, whose effects are `inner`, the
    other one CUDA alone. `arms` remembers in which arms torch and CUDA are seeded."""
    branch = _left_open(step.branch)
    for key in ("seed:torch", "seed:cuda"):
        if key in inner:
            arms[f"{key}{branch}"] = branch
    if not branch or inner.keys().isdisjoint(("seed:torch", "seed:cuda")):
        return False
    other = (*branch[:-1], -branch[-1])
    torch = {arm for key, arm in arms.items() if key.startswith("seed:torch")}
    cuda = {arm for key, arm in arms.items() if key.startswith("seed:cuda")}
    return len(torch) == 1 and torch <= {branch, other} and not ({branch, other} - torch).isdisjoint(cuda)


def _left_open(branch: tuple[int, ...]) -> tuple[int, ...]:
    """`branch` without the arms that every run takes that does not fail."""
    return tuple(arm for arm in branch if arm >= -FAILS)


def _in_every_run(arms: dict[str, tuple[int, ...]], branch: tuple[int, ...], key: str) -> bool:
    """Whether every run that does not fail does what `key` says, as is done in `branch`: it is on none, or the other
    arm of each `if` around it does so too. `arms` remembers which did."""
    branch = tuple(arm for arm in _left_open(branch) if arm != GUARD)
    while branch:
        *around, arm = branch
        arms[f"{key}{branch}"] = branch
        if f"{key}{(*around, -arm)}" not in arms:
            return False
        branch = tuple(around)
    return True


def _below_own_seeds(inner: Effects, generators: set[str]) -> Effects:
    """The effects of a method of an object that has seeded `generators`, should it be the one that is picked."""
    gone = {f"begin:{generator}" for generator in generators}
    for channel in [channel for generator in generators for channel in channels_of(generator)]:
        gone |= {f"{kind}:{channel}" for kind in _DRAWS}
    return {key: ref for key, ref in inner.items() if key not in gone}


def draws_unseeded(key: str, effects: Effects) -> bool:
    """Whether an effect is a draw from a generator that `effects` seed nowhere."""
    kind, _, channel = key.partition(":")
    return kind == "draw" and f"seed:{_GENERATOR.get(channel, channel)}" not in effects


def channels_of(generator: str) -> list[str]:
    """The channels that draw from `generator`."""
    return [channel for channel, home in _GENERATOR.items() if home == generator]


def _own(step: Step) -> Effects:
    """The effects of a step that calls nothing."""
    found: Effects = {f"{step.kind}:{step.channel}": step.ref}
    if step.kind == "draw":
        found[f"{OWN}:{step.channel}"] = step.ref
        if step.channel != "dropout":
            found[f"begin:{_GENERATOR[step.channel]}"] = (step.channel, step.ref)
        if step.now:
            found[f"first:{step.channel}"] = step.ref
    elif step.channel == "trains":
        found[OWN_TRAINING] = step.ref
    return found


def handed(inner: Effects, step: Step) -> Effects:
    """The effects of `step`: what becomes one of the effects of the function that it calls, `inner`."""
    if step.reloaded:
        gone = {"weights", *(TRAINING if step.evaluated else ())}
        return _without(handed(inner, step._replace(reloaded=False)), gone)
    if step.passing:
        return _passing(handed(inner, step._replace(passing=False)))
    if step.node is None:
        return {} if step.sized and step.kind == "draw" else lent(_own(step), step.lends)
    if step.kind == WORKER:
        return _copied(inner, step) | _of_workers(inner, step)
    if step.sized:
        inner = {key: ref for key, ref in inner.items() if key.partition(":")[0] not in _DRAWS}
    inner = lent(inner, step.lends)
    return _in_training(inner) if step.trained else inner


def _copied(inner: Effects, step: Step) -> Effects:
    """What workers draw from their copies of the program's generator of NumPy, where nothing of the program's seeds
    them."""
    drawn = [one for one in _OF_NUMPY if step.ref.what and f"draw:{one}" in inner and "seed:numpy" not in inner]
    if not drawn:
        return {}
    channel = COPIED_IN_TRAINING if TRAINING.issuperset(drawn) else COPIED
    draw = inner[f"draw:{drawn[0]}"]
    return {f"draw:{channel}": draw, f"{OWN}:{channel}": draw, "begin:numpy": (channel, draw)}


def _of_workers(inner: Effects, step: Step) -> Effects:
    """What a loader draws from torch's generator, for the seeds of its workers."""
    if step.channel == SEEDED:
        return {}
    drawn = inner.get("draw:torch", inner.get(f"draw:{TRANSFORMED}"))
    if step.lends:
        return {f"borrow:{step.lends[0][1]}": drawn} if drawn is not None else {}
    if drawn is not None and not ("seed:torch" in inner and "first:torch" not in inner):
        return {"draw:torch": drawn, f"{OWN}:torch": drawn, "begin:torch": ("torch", drawn)}
    # A function of the program's own that workers start with may seed what torch has.
    drawn_from = _SEEDED_THERE if step.ref.what else ()
    seeded = [one for one in drawn_from if f"draw:{one}" in inner and f"seed:{_GENERATOR[one]}" not in inner]
    channel = BASE_SEED_IN_TRAINING if TRAINING.issuperset(seeded) else BASE_SEED
    drawing = {f"draw:{channel}": step.ref, f"{OWN}:{channel}": step.ref, "begin:torch": (channel, step.ref)}
    return drawing if seeded else {}


def _without(inner: Effects, channels: set[str]) -> Effects:
    """The effects without what is drawn by `channels`."""
    gone = {f"{kind}:{channel}" for kind in _DRAWS for channel in channels}
    gone |= {f"begin:{one}" for one in _SEEDED if inner.get(f"begin:{one}", ("",))[0] in channels}
    return {key: ref for key, ref in inner.items() if key not in gone}


def _passing(inner: Effects) -> Effects:
    """The effects of what may draw before a seed: its numbers reach no result."""
    channels = [channel for channel, generator in _GENERATOR.items() if generator in _SEEDED]
    gone = {f"{kind}:{channel}" for channel in channels for kind in ("first", "late", "branch", "unsure")}
    return {key: ref for key, ref in inner.items() if key not in gone}


def lent(inner: Effects, lends: tuple[tuple[str, str], ...]) -> Effects:
    """The effects of a function with its generators filled in: what is given none draws from the global one."""
    if not lends:
        return inner
    changed = {key: ref for key, ref in inner.items() if not key.startswith("borrow:")}
    for parameter, given in lends:
        ref = inner.get(f"borrow:{parameter}")
        if ref is None:
            continue
        if given:
            changed[f"borrow:{given}"] = ref
        else:
            changed.setdefault("draw:torch", ref)
            changed.setdefault(f"{OWN}:torch", ref)
            changed.setdefault("begin:torch", ("torch", ref))
            if "seed:torch" not in changed:
                changed.setdefault("first:torch", ref)
    return changed


def _in_training(inner: Effects) -> Effects:
    """The effects of what is called in training only: what it draws besides weights is drawn as dropout draws."""
    changed = dict(inner)
    for channel, trained in (*IN_TRAINING.items(), (TRANSFORMED, IN_TRAINING["torch"])):
        for kind in ("draw", OWN, "first", "late", "branch", "unsure"):
            if f"{kind}:{channel}" in changed:
                changed.setdefault(f"{kind}:{trained}", changed.pop(f"{kind}:{channel}"))
        begins, draw = changed.get(f"begin:{channel}", ("", None))
        if channel == "torch" and begins in (channel, TRANSFORMED):
            del changed["begin:torch"]
        elif begins == channel:
            changed[f"begin:{channel}"] = (trained, draw)
    return changed


def _as_weights(inner: Effects) -> Effects:
    """The effects of what an initialiser calls: its first draw from torch makes weights."""
    changed = dict(inner)
    first = changed.pop("first:torch")
    changed.setdefault("first:weights", first)
    for kind in ("draw", OWN):
        if changed.get(f"{kind}:torch") == first:
            changed.setdefault(f"{kind}:weights", changed.pop(f"{kind}:torch"))
    if changed.get("begin:torch") == ("torch", first):
        changed["begin:torch"] = ("weights", first)
    for kind in ("late", "branch", "unsure"):
        if f"{kind}:torch" in changed:
            changed.setdefault(f"{kind}:weights", changed.pop(f"{kind}:torch"))
    return changed


def _judge(found: Effects, arms: dict[str, tuple[int, ...]], step: Step, generator: str, inner: Effects) -> None:
    """Whether the first seed of `generator`, which `step` reaches, comes after draws from it."""
    for channel, home in _GENERATOR.items():
        first = found.get(f"first:{channel}")
        if home != generator or first is None or f"first:{channel}" in inner:
            continue
        around = arms.get(channel, ())
        if not _exclusive(around, step.branch) and f"late:{channel}" not in found:
            found[f"late:{channel}"] = (first, inner[f"seed:{generator}"])
            branch = f"branch:{channel}"
            if branch in found and (found[branch] is not None or not set(_left_open(around)) <= set(step.branch)):
                found[f"unsure:{channel}"] = first


def _exclusive(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return any(-arm in other for arm in one)


class Choices:
    """The choices among the steps of one function: a generator is seeded by one if it is, whatever is picked, and drawn
    from before a seed if half of what may be picked does so."""

    def __init__(self, steps: Iterable[tuple[Step, Effects]]) -> None:
        """`steps` are those of the function, with their effects; only those of a choice count."""
        seeds: dict[int, dict[int, set[str]]] = {}
        draws: dict[int, dict[int, set[str]]] = {}
        told: dict[int, dict[int, set[str]]] = {}
        of: dict[int, int] = {}
        for step, inner in steps:
            if step.choice is not None:
                call, one, of[call] = step.choice[:3]
                seeded = {key[5:] for key in inner if key.startswith("seed:")} & _SEEDED
                seeds.setdefault(call, {}).setdefault(one, set()).update(seeded)
                drawn = {_GENERATOR.get(key[6:], "") for key in inner if key.startswith("first:")}
                draws.setdefault(call, {}).setdefault(one, set()).update(drawn)
                if step.choice.alike:
                    told.setdefault(call, {}).setdefault(one, set()).update(key for key in inner if _is_told(key))
        self._by_some = _by_fewer(seeds, of, 1)
        self._drawn_by_few = _by_fewer(draws, of, 2)
        self._told_by_some = _by_fewer(told, of, 1)

    def of(self, step: Step, inner: Effects) -> Effects:
        """What of the effects of a step, `inner`, counts: what seeds only if it is picked does so for itself alone, and
        what is drawn below that is seeded. What few draw is not drawn before a seed, and where any implementation may
        be meant, not at all."""
        if step.choice is None:
            return inner
        counted = self._seeded(step, inner)
        if some := self._told_by_some.get(step.choice[:2]):
            counted = _less(counted, some)
        few = self._drawn_by_few.get(step.choice[:2])
        if not few:
            return counted
        left_out = {f"first:{channel}" for channel, generator in _GENERATOR.items() if generator in few}
        if step.choice.any:
            channels = [channel for channel, generator in _GENERATOR.items() if generator in few & _SEEDED]
            left_out |= {f"{kind}:{channel}" for kind in ("draw", OWN) for channel in channels}
            left_out |= {f"begin:{generator}" for generator in few}
        return {key: ref for key, ref in counted.items() if key not in left_out}

    def _seeded(self, step: Step, inner: Effects) -> Effects:
        """What counts of the seeds among the effects of a step of a choice."""
        generators = self._by_some.get(step.choice[:2]) if step.choice is not None else None
        if not generators:
            return inner
        # Another step of the same choice may be what seeds.
        names = (f"seed:{generator}" for generator in sorted(generators))
        seeds = {name: inner[name] for name in names if name in inner}
        changed = {key: ref for key, ref in inner.items() if key not in seeds}
        for key, ref in seeds.items():
            changed.setdefault(f"some:{key[5:]}", ref)
            for channel in channels_of(key[5:]):
                if f"first:{channel}" not in inner:
                    changed.pop(f"draw:{channel}", None)
                    changed.pop(f"{OWN}:{channel}", None)
                    if changed.get(f"begin:{key[5:]}", ("",))[0] == channel:
                        del changed[f"begin:{key[5:]}"]
        if step.node is not None and step.node.owner[1]:
            mine = {(step.node.owner, generator) for generator in generators}
            changed[SEEDED_BY_SOME] = changed.get(SEEDED_BY_SOME, frozenset()) | mine
        return changed


def _less(inner: Effects, gone: set[str]) -> Effects:
    """The effects `inner` without those that are `gone`, and without all that is told of the draws among them."""
    channels = {key[5:] for key in gone if key.startswith("draw:")}
    return {key: ref for key, ref in _without(inner, channels).items() if key not in gone}


def _is_told(key: str) -> bool:
    """Whether an effect counts only where all of several modules of one name have it: a draw, or that it trains."""
    kind, _, what = key.partition(":")
    return kind == "draw" or (kind == "flag" and what in _TRAINS)


def _by_fewer(
    found: Mapping[int, Mapping[int, set[str]]], of: Mapping[int, int], share: int
) -> dict[tuple[int, int], set[str]]:
    """What fewer than one in `share` of the things of which one is picked do: by the call and which of them it is."""
    told: dict[tuple[int, int], set[str]] = {}
    for call, among in found.items():
        counts = Counter(name for done in among.values() for name in done)
        few = {name for name, count in counts.items() if share * count < of[call]}
        told |= {(call, one): done & few for one, done in among.items() if done & few}
    return told
