"""The rules about what whole programs seed: an entry point -> draws without a seed, before it, and in new processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.finding import SeedFunction, Withhold
from torchdet_lint.program.effects import APART, BESIDE, HANDED, IN_TRAINING, TRAINING
from torchdet_lint.program.entry import CHANNELS, Fault, Story

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Change
    from torchdet_lint.program.effects import Effects, Node, Process, Ref, Step
    from torchdet_lint.program.entry import Entry

_GENERATORS = {"torch": "torch", "numpy": "NumPy", "python": "`random`"}
_IN_PROCESSES = "only new processes use random numbers, and each has to seed itself (TDL108)"


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
    if found is None or entry.seeded(library):
        return
    here, draw = found[0].ref, found[1]
    missing = tuple(
        name
        for name in ("python", "numpy", "torch")
        if entry.draws(name) and not entry.seeds_draws(name) and entry.seed_reaches(name)
    )
    change: Change = entry.seeds(missing) if library in missing else Withhold(_IN_PROCESSES)
    only_cuda = library == "torch" and "seed:cuda" in entry.effects and "some:torch" not in entry.effects
    variant = "cuda-only" if only_cuda else ""
    details = {"draw": draw.shown, "place": entry.place(draw, here)}
    if library not in missing:
        details["help"] = "processes"
    elif entry.draws(library) == [IN_TRAINING["torch"]] and not entry.trains:
        details["help"] = "evaluation"
    seeds = ((one, entry.effects.get(f"{one}:{library}")) for one in ("some", APART))
    told = next(((one, seed) for one, seed in seeds if seed is not None), None)
    if not variant and told is not None:
        variant, details["seed"] = told[0], entry.place(told[1], here)
    yield Fault(
        here,
        details,
        variant,
        related=(Story(draw, f"`{draw.shown}` uses random numbers here"),),
        changes=(change,),
    )


def late_seed(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """A seed that runs after its generator was drawn from."""
    done: set[Ref] = set()
    if entry.has("perhaps"):
        return
    for library, channels in CHANNELS.items():
        for channel in channels:
            pair = entry.effects.get(f"late:{channel}")
            if pair is None or channel not in entry.draws(library) or not entry.draws_itself(channel):
                continue
            draw, seed = pair
            if seed in done or any(row.entropy for row in entry.project.facts.seeds.get(seed.what, ())):
                continue
            done.add(seed)
            when = " (if the branch of that call runs)" if f"unsure:{channel}" in entry.effects else ""
            details = {"seed": seed.what, "draw": draw.shown, "place": entry.place(draw, seed), "when": when}
            changes = (_earlier_seed(entry, library, seed),)
            story = Story(draw, f"`{draw.shown}` uses random numbers before the seed")
            yield Fault(seed, details, related=(story,), changes=changes, at_call=True)


def _earlier_seed(entry: Entry, library: str, seed: Ref) -> Change:
    """A seed above what draws first, where the program and the late seed are one file."""
    if seed.file != entry.file:
        return Withhold(f"the program starts in {entry.shown(entry.file)}, and has to be seeded there")
    return entry.seeds((library,))


def unseeded_process(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """A process whose target draws and never seeds, nor anything that runs there before it."""
    within = [(node, step) for node in entry.reached() for step in entry.project.steps(node) if step.kind == "process"]
    steps = [step for _, step in within]
    before = {
        key for step in steps if step.channel == "first" and step.node for key in entry.project.effects(step.node)
    }
    imported = entry.imported_again.keys() if steps else set()
    # What is handed to a target runs in its process, after what that seeds; of several targets each has a process.
    beside: dict[tuple[str, int, int], set[str]] = {}
    handed: dict[tuple[str, int, int], set[str]] = {}
    for step in steps:
        ran = entry.project.effects(step.node) if step.node is not None else {}
        seeds = {key for key in ran if key.startswith("seed:")}
        beside.setdefault(step.ref[:3], set()).update(seeds)
        handed.setdefault(step.ref[:3], set()).update(seeds if _is_handed(step) else ())
    for node, step in within:
        if step.node is None or step.channel == "first" or step.ref.what == BESIDE:
            continue
        inner = entry.project.effects(step.node)
        # The initializer of a pool runs in its workers alone.
        above = before if step.channel == "pool" else set[str]()
        if "flag:perhaps" in inner or "flag:perhaps" in above or "flag:perhaps" in imported:
            continue
        seeded = inner.keys() | above | (beside if _is_handed(step) else handed)[step.ref[:3]]
        for library in CHANNELS:
            again = f"seed:{library}" in imported
            if f"seed:{library}" in seeded or (again and _repeats(entry, step, library)):
                continue
            draw = next((inner[f"draw:{one}"] for one in CHANNELS[library] if _draws(inner, one)), None)
            if draw is not None:
                yield _unseeded_target(entry, node, step, library, draw, again=again)
                break


def _is_handed(step: Step) -> bool:
    """Whether a new process runs this for its target, which is given it."""
    return step.within is not None or step.ref.what in (BESIDE, HANDED)


def _draws(inner: Effects, channel: str) -> bool:
    """Whether the effects of a target hold a draw by `channel` that changes a result."""
    if f"draw:{channel}" not in inner or f"seed:{channel}" in inner:
        return False
    trains = "flag:trains" in inner
    return trains or not (channel in TRAINING or (channel == "weights" and "flag:loads" in inner))


def _repeats(entry: Entry, step: Step, library: str) -> bool:
    """Whether a seed at top level of the program, which a spawned process runs again, makes what `step` draws in a new
    process the same in every run: Python seeds `random` anew in every forked one, and of a pool, timing decides which
    process draws for which task."""
    return step.channel != "pool" and (library != "python" or not entry.takes_state(step))


def _unseeded_target(entry: Entry, node: Node, step: Step, library: str, draw: Ref, *, again: bool) -> Fault:
    """What is said of the `draw` in the process that `node` starts by `step`; where a spawned one is seeded `again`,
    as it imports the program."""
    started = step.process
    assert started is not None
    target, start = started
    details = {
        "target": target.name.rpartition(".")[2],
        "library": _GENERATORS[library],
        "draw": draw.shown,
        "place": entry.place(draw, start),
    }
    here = target.file == start.file and "." not in target.name
    nested = _is_nested(entry, target)
    kind = "a function inside another" if nested else "a method"
    there = kind if target.file == start.file else f"defined in {entry.shown(target.file)}"
    given = entry.seed_above(node, library)
    seed = _in_target(entry, started, step.channel, library, given) if here else None
    # Python seeds `random` from the operating system in every forked child.
    forked = step.channel in ("fork", "pool") and entry.takes_state(step)
    copied = forked and given is not None and library != "python"
    variant = ("nested" if nested else step.channel) if copied else ""
    if again and step.channel == "pool" and not forked:
        variant = step.channel
    return Fault(
        start, details, variant, "warning" if copied and step.channel == "fork" else None,
        (Story(draw, f"`{draw.shown}` uses random numbers here, in the new process"),),
        (seed or Withhold(f"the target is {there}"),),
        at_call=True,
    )  # fmt: skip


def _is_nested(entry: Entry, target: Node) -> bool:
    """Whether a function is defined inside another: it cannot be pickled, so that only a fork starts it."""
    outer = target.name.rpartition(".")[0]
    return bool(outer) and entry.project.files.summary(target.file).class_summary(outer) is None


def _in_target(entry: Entry, started: Process, how: str, library: str, given: Ref | None) -> Change:
    """A seed in the function that a process runs: that which starts it was `given`, if it was given one."""
    if given is not None and given.file != started.start.file:
        place = f"{entry.shown(given.file)}:{given.row}"
        return Withhold(f"the program is seeded in {place}, and the target has to be given that seed")
    return SeedFunction(started.target.name, (library,), given, of_tasks=how == "pool")
