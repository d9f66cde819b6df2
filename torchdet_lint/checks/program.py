"""The rules about whole programs: what an entry point draws without seeding it first, and in which mode it trains.

A check is given one entry point and yields faults by file and row; the texts are the rule files'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.finding import NeedHelper, SeedFunction, SetArgument, Severity, Withhold
from torchdet_lint.program.effects import STARTED, TRAINING, Effects, Node, Ref, Step, combine, lent
from torchdet_lint.program.events import GUARD, MODULE
from torchdet_lint.program.seeders import seeding_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Change
    from torchdet_lint.module.module import Target
    from torchdet_lint.program.call_graph import Project

_CHANNELS = {
    "torch": ("torch", "weights", "dropout"),
    "numpy": ("numpy", "numpy_training"),
    "python": ("python", "python_training"),
}
_WORKSPACE_UNTIL = (2, 10)


class Story(NamedTuple):
    """A place that belongs to a fault, and what is said of it."""

    ref: Ref
    message: str


class Fault(NamedTuple):
    """What a check found: the place (the whole statement, or the call at `ref`), and the words of the message.

    In `changes` a place of the same file stands for the node there: a `Ref`."""

    ref: Ref
    details: dict[str, str]
    variant: str = ""
    severity: Severity | None = None
    related: tuple[Story, ...] = ()
    changes: tuple[Change, ...] = ()
    at_call: bool = False


class Entry(NamedTuple):
    """An entry point: its file, and the effects of running it. `shown` gives a path as the user is shown it, `line`
    a row of a file in words; `seeders` are files and names of functions that speak of seeds."""

    project: Project
    file: str
    target: Target
    shown: Callable[[str], str]
    line: Callable[[str, int], str]
    seeders: Callable[[], Iterable[tuple[str, str]]] = tuple

    @property
    def node(self) -> Node:
        """What runs when the file is started."""
        return Node(self.file, STARTED)

    @property
    def effects(self) -> Effects:
        """Its effects."""
        return self.project.effects(self.node)

    @property
    def imported_again(self) -> Effects:
        """The effects of importing its file: what a spawned process does before it runs its target."""
        return self.project.effects(Node(self.file, MODULE))

    def steps(self) -> Iterator[tuple[Step, Effects]]:
        """The steps of the entry point's own file, each with the effects of what it calls."""
        for step in self.project.steps(self.node):
            if step.node is not None:
                yield step, lent(self.project.effects(step.node), step.lends)
            else:
                alone: Effects = {}
                combine(alone, {}, step, {})
                yield step, alone

    def leading_to(self, flag: str) -> tuple[Ref, Ref]:
        """The first step of the entry point with the flag, which the program has, and the place that raises it."""
        key = f"flag:{flag}"
        return next((step.ref, effects[key]) for step, effects in self.steps() if key in effects)

    def first_draw(self, library: str) -> tuple[Step, Ref] | None:
        """The first step of the entry point that draws from `library` what changes a result, at once or as a loader
        does, when it is iterated; and the draw."""
        channels = self.draws(library)
        for step, effects in self.steps():
            channel, draw = effects.get(f"begin:{library}", ("", None))
            if channel in channels:
                return step, draw
            for other in channels:
                if f"draw:{other}" in effects:
                    return step, effects[f"draw:{other}"]
        return None

    def leading_to_draw(self, library: str) -> tuple[Step, Ref] | None:
        """The step of the entry point that leads to the first draw: the first one that draws at once, if one does."""
        channels = self.draws(library)
        for step, effects in self.steps():
            if step.kind in ("later", "process"):
                continue
            for channel in channels:
                if f"first:{channel}" in effects:
                    begin, draw = effects.get(f"begin:{library}", ("", None))
                    return step, draw if begin in channels else effects[f"first:{channel}"]
        return self.first_draw(library)

    def seeds(self, libraries: tuple[str, ...]) -> NeedHelper:
        """What seeds `libraries` before the first draw from any of them, by a function of the project if it has one."""
        function = seeding_function(self.project, self.file, libraries, self.seeders(), mode=self.has("mode"))
        firsts = [found[0] for library in libraries if (found := self.first_draw(library)) is not None]
        first = min(firsts, key=self.project.steps(self.node).index, default=None)
        above = first.ref if first is not None and GUARD not in first.branch else None
        return NeedHelper("seeds", libraries, function, above)

    def has(self, flag: str) -> bool:
        """Whether the program has the flag."""
        return f"flag:{flag}" in self.effects

    @property
    def seeds_torch(self) -> bool:
        """Whether torch's generator is seeded, as far as anyone can see."""
        return "seed:torch" in self.effects or self.has("perhaps")

    def draws(self, library: str) -> list[str]:
        """The draws from `library` that change a result: weights do not where they are loaded and nothing trains, and
        dropout and its like do not draw in evaluation."""
        found = []
        for channel in _CHANNELS[library]:
            if f"draw:{channel}" not in self.effects:
                continue
            if channel == "weights" and self.has("loads") and not self.has("trains"):
                continue
            if channel in TRAINING and not self.has("trains"):
                continue
            found.append(channel)
        return found


def unseeded_torch(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """A draw from torch's generator and no seed of it."""
    yield from _unseeded(entry, "torch")


def unseeded_numpy(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """A draw from NumPy's global generator and no seed of it."""
    yield from _unseeded(entry, "numpy")


def unseeded_python(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """A draw from `random` and no seed of it."""
    yield from _unseeded(entry, "python")


def _unseeded(entry: Entry, library: str) -> Iterator[Fault]:
    found = entry.leading_to_draw(library)
    if found is None or f"seed:{library}" in entry.effects or entry.has("perhaps"):
        return
    here, draw = found[0].ref, found[1]
    missing = tuple(
        name for name in ("python", "numpy", "torch") if entry.draws(name) and f"seed:{name}" not in entry.effects
    )
    variant = "cuda-only" if library == "torch" and "seed:cuda" in entry.effects else ""
    details = {"draw": draw.what, "place": _place(entry, draw, here)}
    yield Fault(
        here,
        details,
        variant,
        related=(Story(draw, f"`{draw.what}` draws here"),),
        changes=(entry.seeds(missing),),
    )


def _place(entry: Entry, what: Ref, here: Ref) -> str:
    """Where `what` happens, in words: nothing where it is on the line of the finding itself."""
    if what.file == here.file:
        near = what.row == here.row or what.statement == here.statement
        return "" if near else f" ({entry.line(what.file, what.row)})"
    return f" ({entry.shown(what.file)}:{what.row})"


def late_seed(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """A seed that runs after its generator was drawn from."""
    done: set[Ref] = set()
    if entry.has("perhaps"):
        return
    for library, channels in _CHANNELS.items():
        for channel in channels:
            pair = entry.effects.get(f"late:{channel}")
            if pair is None or channel not in entry.draws(library):
                continue
            draw, seed = pair
            if seed in done:
                continue
            done.add(seed)
            details = {"seed": seed.what, "draw": draw.what, "place": _place(entry, draw, seed)}
            changes = (_earlier_seed(entry, library, seed),)
            story = Story(draw, f"`{draw.what}` draws before the seed")
            yield Fault(seed, details, related=(story,), changes=changes, at_call=True)


def _earlier_seed(entry: Entry, library: str, seed: Ref) -> Change:
    """A seed above what draws first, where the program and the late seed are one file."""
    if seed.file != entry.file:
        return Withhold(f"the program starts in {entry.shown(entry.file)}, and has to be seeded there")
    return entry.seeds((library,))


def unseeded_process(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """A process whose target draws and never seeds, nor anything that runs there before it."""
    steps = [step for node in reached(entry) for step in entry.project.steps(node) if step.kind == "process"]
    before = {
        key for step in steps if step.channel == "first" and step.node for key in entry.project.effects(step.node)
    }
    if steps:
        before |= entry.imported_again.keys()
    for step in steps:
        if step.node is not None and step.channel != "first":
            inner = entry.project.effects(step.node)
            if "flag:perhaps" in inner or "flag:perhaps" in before:
                continue
            for library in ("torch", "numpy", "python"):
                channels = [
                    one
                    for one in _CHANNELS[library]
                    if f"draw:{one}" in inner and (one not in TRAINING or "flag:trains" in inner)
                ]
                if f"seed:{library}" in inner or f"seed:{library}" in before or not channels:
                    continue
                draw = inner[f"draw:{channels[0]}"]
                details = {
                    "target": step.node.name.rpartition(".")[2],
                    "draw": draw.what,
                    "place": _place(entry, draw, step.ref),
                }
                here = step.node.file == step.ref.file and "." not in step.node.name
                there = "a method" if step.node.file == step.ref.file else f"defined in {entry.shown(step.node.file)}"
                seeded = _in_target(entry, step.node.name, library, step.ref) if here else None
                seeded = seeded or Withhold(f"the target is {there}")
                copied = step.channel == "fork" and f"seed:{library}" in entry.effects
                yield Fault(
                    step.ref, details, "fork" if copied else "", "warning" if copied else None,
                    (Story(draw, f"`{draw.what}` draws here, in the new process"),), (seeded,), at_call=True,
                )  # fmt: skip
                break


def _in_target(entry: Entry, name: str, library: str, here: Ref) -> Change:
    """A seed in the function `name`, that which the program was given if it was given one."""
    given = entry.effects.get(f"seed:{library}")
    if given is not None and given.file != here.file:
        place = f"{entry.shown(given.file)}:{given.row}"
        return Withhold(f"the program is seeded in {place}, and the target has to be given that seed")
    return SeedFunction(name, (library,), given)


def missing_mode(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """Training on CUDA, and deterministic mode nowhere."""
    if "cuda" not in entry.target.devices or not (entry.has("trains") and entry.has("cuda")):
        return
    if entry.has("mode") or entry.has("relaxed") or entry.has("host"):
        return
    here, training = entry.leading_to("trains")
    layers = _everywhere(entry)
    details = {"place": _place(entry, training, here), "layers": f"; {_counted(layers)}" if layers else ""}
    stories = [Story(ref, f"`{ref.what}` takes a deterministic kernel in that mode alone") for ref in layers]
    yield Fault(here, details, related=(Story(training, "trains here"), *stories), changes=_switched(entry))


def _everywhere(entry: Entry) -> list[Ref]:
    """The ops that are too many to be reported one by one, convolutions, that the entry point reaches."""
    places = {
        step.ref
        for node in reached(entry)
        for step in entry.project.steps(node)
        if (step.kind, step.channel) == ("flag", "everywhere")
    }
    return sorted({(ref.file, ref.row, ref.column): ref for ref in sorted(places)}.values())


def _counted(places: list[Ref]) -> str:
    what = "convolution" if len(places) == 1 else "convolutions"
    return f"{len(places)} {what} of it {'depends' if len(places) == 1 else 'depend'} on that mode"


def _switched(entry: Entry) -> tuple[Change, ...]:
    """Deterministic mode turned on: by the switches of the trainers that have one, else by torch's own call."""
    switches: dict[tuple[Ref, str], str] = {}
    for node in reached(entry):
        for step in entry.project.steps(node):
            if (step.kind, step.channel) == ("flag", "switch"):
                for row in entry.project.facts.seeds[step.ref.what]:
                    switches |= {(step.ref, name): value for name, value in row.give.items()}
    for ref, name in switches:
        if ref.file != entry.file:
            return (Withhold(f"`{name}` of the trainer made in {entry.shown(ref.file)}:{ref.row} is to be turned on"),)
    if switches:
        return tuple(SetArgument(ref, name, value) for (ref, name), value in switches.items())
    return _in_processes(entry) or (NeedHelper("deterministic"),)


def _in_processes(entry: Entry) -> tuple[Change, ...]:
    """The mode turned on where new processes train, which do not take it from the one that starts them; and in that
    one, if it trains something else."""
    trained: set[Ref] = set()
    changes: dict[Change, None] = {}
    for node in reached(entry):
        for step in entry.project.steps(node):
            target = step.node
            if step.kind != "process" or step.channel == "first" or target is None:
                continue
            training = entry.project.effects(target).get("flag:trains")
            if training is None:
                continue
            trained.add(training)
            if target.file != entry.file or "." in target.name:
                return (Withhold(f"`{target.name}`, which new processes run, has to turn the mode on"),)
            changes[SeedFunction(target.name, ("deterministic",))] = None
    if changes and entry.effects["flag:trains"] not in trained:
        changes[NeedHelper("deterministic")] = None
    return tuple(changes)


def missing_workspace(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """Deterministic mode on CUDA without the workspace that cuBLAS needed for it up to torch 2.9."""
    if entry.target.torch >= _WORKSPACE_UNTIL or "cuda" not in entry.target.devices:
        return
    if not (entry.has("mode") and entry.has("cuda")):
        return
    mode: Ref = entry.effects["flag:mode"]
    late = entry.effects.get("late:cublas")
    if late is not None:
        first, setting = late
        details = {"place": _place(entry, first, setting)}
        here = setting.file == first.file == entry.file
        start = Withhold(f"the program starts in {entry.shown(entry.file)}, and it has to be set there")
        changes = (NeedHelper("cublas") if here else start,)
        story = Story(first, "CUDA is first used here")
        yield Fault(setting, details, "late", related=(story,), changes=changes, at_call=True)
    elif "seed:cublas" not in entry.effects:
        yield Fault(
            entry.leading_to("mode")[0],
            {"place": ""},
            related=(Story(mode, "deterministic mode is turned on here"),),
            changes=(NeedHelper("cublas"),),
        )


def racing_updates(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """Parameters that several processes, or threads of an RPC server, update without a lock."""
    nodes = list(reached(entry))
    shared: Ref | None = entry.effects.get("flag:shares")
    for node in nodes:
        for step in entry.project.steps(node):
            if step.node is None:
                continue
            inner = entry.project.effects(step.node)
            if step.kind == "process" and shared is not None and "flag:steps" in inner and "flag:locked" not in inner:
                update: Ref = inner["flag:steps"]
                details = {"target": step.node.name.rpartition(".")[2], "place": _place(entry, update, step.ref)}
                related = (
                    Story(shared, "the parameters are shared here"),
                    Story(update, "updated here without a lock"),
                )
                yield Fault(step.ref, details, related=related, at_call=True)
            elif step.channel == "rpc":
                for key in ("flag:update", "flag:steps"):
                    if key in inner:
                        update = inner[key]
                        details = {"target": step.node.name.rpartition(".")[2], "place": ""}
                        yield Fault(update, details, "rpc", related=(Story(step.ref, "called by RPC here"),))
                        break


def reached(entry: Entry) -> Iterator[Node]:
    """The nodes that the entry point reaches, in a fixed order."""
    seen = {entry.node}
    queue = [entry.node]
    while queue:
        node = queue.pop()
        yield node
        for step in entry.project.steps(node):
            if step.node is not None and step.node not in seen:
                seen.add(step.node)
                queue.append(step.node)
