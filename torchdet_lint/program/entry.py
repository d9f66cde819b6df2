"""An entry point -> what it draws, seeds and switches, and by which of its statements; and what a check finds of it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.finding import NeedHelper, Severity
from torchdet_lint.program.effects import (
    APART,
    BASE_SEED,
    BASE_SEED_IN_TRAINING,
    COPIED,
    COPIED_IN_TRAINING,
    DESCENT,
    HIDDEN,
    ITEMS,
    LAUNCHED,
    NAMED_CALL,
    OWN,
    OWN_TRAINING,
    STARTED,
    TRAINING,
    TRANSFORMED,
    VISIBLE,
    WORKER,
    Effects,
    Node,
    Ref,
    Step,
    combine,
    trains,
)
from torchdet_lint.program.events import GUARD, LOADED, MODULE
from torchdet_lint.program.seeding.seeders import Seeders
from torchdet_lint.program.seeding.shared_jobs import shares_jobs
from torchdet_lint.program.transfer.passing import ruled_out
from torchdet_lint.program.unrun.unnamed import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from torchdet_lint.catalogue.facts import Tensors
    from torchdet_lint.finding import Change
    from torchdet_lint.module.module import Target
    from torchdet_lint.program.call_graph import Project
    from torchdet_lint.program.events import Body, Event

_TESTS = f"{os.sep}tests{os.sep}"
# So many calls lead at most from the start of a program to what seeds it.
_DEEP = 8
_ARGUMENTS = "flag:arguments"
_ROW = ".__getitem__"
CHANNELS = {
    "torch": ("torch", "on_cuda", "weights", "dropout", BASE_SEED, BASE_SEED_IN_TRAINING, TRANSFORMED),
    "numpy": ("numpy", "numpy_training", "estimator", "imgaug"),
    "python": ("python", "python_training", ITEMS),
}


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


class Reported(NamedTuple):
    """What is found of the ops of one function: those that raise in deterministic mode, whether one varies, and the
    names of those that vary without the mode alone."""

    raising: Sequence[Ref]
    varies: bool
    switchable: Sequence[str]


class Entry(NamedTuple):
    """An entry point: its file, and the effects of running it. `shown` gives a path as the user is shown it, `line`
    a row of a file in words; `seeders` are files and names of functions that speak of seeds; `varying` gives the rows
    of those functions of a file in which an op is found (0: outside of all), and what of it; `seed` is the
    configured one."""

    project: Project
    file: str
    target: Target
    shown: Callable[[str], str]
    line: Callable[[str, int], str]
    seeders: Callable[[], Iterable[tuple[str, str]]] = tuple
    reported: Callable[[str], Mapping[int, Reported]] = lambda _: {}
    seed: int = 0

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
        return self._steps_of(self.node)

    def _steps_of(self, node: Node) -> Iterator[tuple[Step, Effects]]:
        for step, inner in self.project.with_effects(node):
            if step.node is not None:
                yield step, inner
            else:
                alone: Effects = {}
                combine(alone, {}, step, inner)
                yield step, alone

    def leading_to(self, flag: str) -> tuple[Ref, Ref]:
        """The first step of the entry point with the flag, which the program has, and the place that raises it."""
        key = f"flag:{flag}"
        return next((step.ref, effects[key]) for step, effects in self.steps() if key in effects)

    @property
    def training(self) -> tuple[Ref, Ref]:
        """The first step of the entry point that trains, and the place where the program does: what fits a model, else
        the backward pass that the step of an optimizer follows, else the first one."""
        descent: Ref | None = None if self.has("fits") else self.effects.get(DESCENT)
        for step, effects in self.steps() if descent is not None else ():
            if descent is not None and descent in (effects.get(DESCENT), effects.get("flag:backward")):
                return step.ref, descent
        return self.leading_to("fits" if self.has("fits") else "backward")

    def first_draw(self, library: str, channels: Sequence[str] | None = None) -> tuple[Step, Ref] | None:
        """The first step of the entry point that draws from `library` what changes a result, at once or as a loader
        does, when it is iterated; and the draw."""
        channels = self.draws(library) if channels is None else channels
        for step, effects in self.steps():
            channel, draw = effects.get(f"begin:{library}", ("", None))
            if channel in channels:
                return step, draw
            for other in channels:
                if f"draw:{other}" in effects:
                    return step, effects[f"draw:{other}"]
        return None

    def leading_to_draw(self, library: str) -> tuple[Step, Ref] | None:
        """The step of the entry point that leads to the first draw: the first one that draws at once, if one does.
        What draws for want of a generator is TDL107's business. Where new processes seed `library`, only what the
        program draws itself counts."""
        channels = [channel for channel in self.draws(library) if channel != "estimator"]
        apart = f"{APART}:{library}" in self.effects
        for step, effects in self.steps():
            if step.kind in ("later", "process"):
                continue
            for channel in channels:
                if f"first:{channel}" in effects:
                    begin, draw = effects.get(f"begin:{library}", ("", None))
                    return step, draw if begin in channels and not apart else effects[f"first:{channel}"]
        return self._first_of_its_own(channels) if apart else self.first_draw(library, channels)

    def _first_of_its_own(self, channels: Sequence[str]) -> tuple[Step, Ref] | None:
        """The first step of the entry point that draws by `channels` in its own process, and the draw."""
        keys = [f"{OWN}:{channel}" for channel in channels if self.draws_itself(channel)]
        found = ((step, effects[key]) for step, effects in self.steps() for key in keys if key in effects)
        return next(((step, draw) for step, draw in found if not step.apart), None)

    def seeds(self, libraries: tuple[str, ...]) -> NeedHelper:
        """What seeds `libraries` before the first draw from any of them, by a function of the project if it has one."""
        seeders = Seeders(self.project, libraries, self.seed)
        function = seeders.elsewhere(self.file, self.seeders(), mode=self.has("mode"))
        firsts = [found[0] for library in libraries if (found := self.first_draw(library)) is not None]
        first = min(firsts, key=self.project.steps(self.node).index, default=None)
        above = first.ref if first is not None and GUARD not in first.branch else None
        seeds = {f"seed:{library}" for library in CHANNELS} - {f"seed:{library}" for library in libraries}
        parsed = self.effects.get(_ARGUMENTS)
        options = parsed.file if parsed is not None else self.file if self._reads_arguments else ""
        beside, parsed = self._above_draws(libraries, seeds), self._above_draws(libraries, {_ARGUMENTS})
        again = above is not None or self._runs_on_import({beside, parsed} - {None})
        return NeedHelper(
            "seeds", libraries, function, seeders.within(self.file), above, beside, parsed=parsed, options=options,
            joined=self._draws_elsewise_in_each_process() or (again and self._seeds_processes_alike(libraries)),
            files=tuple(sorted({node.file for node in self.reached()} - {self.file})),
        )  # fmt: skip

    def _draws_elsewise_in_each_process(self) -> bool:
        """Whether several processes may run the program, and draw different numbers for want of a seed: none is set, or
        they shuffle the jobs that they share."""
        if shares_jobs(self.project.files.text(self.file)):
            return True
        seeds = (f"{kind}:{library}" for library in CHANNELS for kind in ("seed", APART))
        return self._is_one_of_several() and self.effects.keys().isdisjoint(seeds)

    def _runs_on_import(self, places: Set[Ref | None]) -> bool:
        """Whether one of the `places` runs when the file of the program is imported."""
        nodes = self.reached({Node(self.file, MODULE)}) if places else ()
        return any(step.ref in places for node in nodes for step in self.project.steps(node))

    def _seeds_processes_alike(self, libraries: tuple[str, ...]) -> bool:
        """Whether new processes draw from one of `libraries` and do not seed it: as they import the program when they
        are spawned, a seed at its top level makes all of them draw the same. Without a main guard none is spawned."""
        if not self.project.files.outline(self.file).guard:
            return False
        steps = [step for node in self.reached() for step in self.project.steps(node) if step.kind == "process"]
        drawn = {
            library: {step.node for step in steps if step.node is not None and self._draws_there(step.node, library)}
            for library in libraries
        }
        return any(drawn[library] - self.seeded_apart(library) for library in libraries)

    def _draws_there(self, node: Node, library: str) -> bool:
        effects = self.project.effects(node)
        return any(f"draw:{channel}" in effects for channel in CHANNELS[library])

    def _is_one_of_several(self) -> bool:
        """Whether the program may be started as several processes: it joins them, or reads which of them it is."""
        distributed = self.project.library.facts.conventions.distributed
        return self.has("joins") or any(word in self.project.files.text(self.file) for word in distributed)

    def _above_draws(self, libraries: tuple[str, ...], wanted: set[str]) -> Ref | None:
        """The first call in the program's own file that has one of the `wanted` effects and is above all draws from
        `libraries`."""
        draws = {f"draw:{channel}" for library in libraries for channel in self.draws(library)}
        node: Node | None = self.node
        for _ in range(_DEEP):
            inner: Node | None = None
            for step, effects in self._steps_of(node) if node is not None and node.file == self.file else ():
                if not draws.isdisjoint(effects):
                    inner = step.node if not wanted.isdisjoint(effects) else None
                    break
                if not wanted.isdisjoint(effects) and step.kind in ("seed", "flag", "call"):
                    return step.ref
            node = inner
        return None

    def above_seed(self, library: str) -> list[Node]:
        """What the program calls before it seeds `library`, from its start down to the call that does."""
        found: list[Node] = []
        node: Node | None = self.node
        for _ in range(_DEEP):
            inner: Node | None = None
            for step, effects in self._steps_of(node) if node is not None else ():
                if f"seed:{library}" in effects or f"{APART}:{library}" in effects:
                    inner = step.node
                    break
                if step.node is not None and step.runs_here:
                    found.append(step.node)
            node = inner
        return found

    def has(self, flag: str) -> bool:
        """Whether the program has the flag; none uses CUDA that hides all GPUs."""
        return f"flag:{flag}" in self.effects and not (flag == "cuda" and self.hides_gpus)

    @property
    def hides_gpus(self) -> bool:
        """Whether every run of the program hides all GPUs before CUDA starts."""
        return HIDDEN in self.effects and VISIBLE not in self.effects

    @property
    def takes_or_writes(self) -> bool:
        """Whether it writes a file or reads arguments."""
        return any(map(self.has, ("writes", "arguments"))) or self._reads_arguments

    @property
    def _reads_arguments(self) -> bool:
        """Whether what runs of its file reads arguments: another function may, for another use of it."""
        reads, text = self.project.facts.hints.arguments, self.project.files.text(self.file)
        return reads.search(text) is not None and reads.search(running(text)) is not None

    @property
    def only_shows(self) -> bool:
        """Whether it only shows something on a screen, or speaks with somebody: it does not train, writes no file, and
        what is shown is not printed too. Or it measures or exports a model, makes no optimizer and no loader, and
        evaluates nothing; or it prints times alone."""
        if self.trains or self.has("writes"):
            return False
        if self.has("measures"):
            names = {name for event in self._calls() for name in event.names}
            works = self.project.library.facts.programs.evaluates
            return not any(
                name.startswith(("torch.optim.", "torch.utils.data.")) or name.rpartition(".")[2] in works
                for name in names
            )
        if self.has("tells"):
            return self.has("serves")
        return self.has("serves") or self.has("shows") or (self.has("times") and self._is_quiet)

    @property
    def _is_quiet(self) -> bool:
        """Whether all that the program calls is in sight, or known to show and keep nothing."""
        files, quiet = self.project.files, self.project.facts.words.quiet
        return all(
            name.startswith(quiet) or not name[0].isalpha() or files.locate(name, node.file) is not None
            for node, body in self._bodies()
            for event in body.events
            if event.kind == "call"
            for name in event.names
        )

    @property
    def trains(self) -> bool:
        """Whether the program trains: something that trains by itself, or gradients and a step with them."""
        return trains(self.effects)

    @property
    def sets_workspace(self) -> bool:
        """Whether the program sets `CUBLAS_WORKSPACE_CONFIG`, and does so before CUDA is evidently used."""
        return "seed:cublas" in self.effects and "late:cublas" not in self.effects

    def seeded(self, library: str) -> bool:
        """Whether the generator of `library` is seeded, as far as anyone can see."""
        return self.seeds_draws(library) or self.has("perhaps") or self._may_be_seeded(library)

    def seeds_draws(self, library: str) -> bool:
        """Whether the program seeds the generator of `library`, or new processes do, which alone draw from it."""
        if f"{APART}:{library}" not in self.effects or f"seed:{library}" in self.effects:
            return f"seed:{library}" in self.effects
        return not any(map(self.draws_itself, self.draws(library)))

    def draws_itself(self, channel: str) -> bool:
        """Whether the program draws by `channel` in its own process, what changes a result there."""
        if OWN_TRAINING not in self.effects and (channel in TRAINING or (channel == "weights" and self.has("loads"))):
            return channel == "dropout" and self._left_in_training and f"{OWN}:dropout" in self.effects
        return f"{OWN}:{channel}" in self.effects

    def _seeds_device(self, generator: str, channel: str) -> bool:
        """Whether a `generator` that is no library's own is seeded, here or where new processes alone draw from it."""
        if f"{APART}:{generator}" in self.effects and f"{OWN}:{channel}" not in self.effects:
            return True
        return f"seed:{generator}" in self.effects

    def _may_be_seeded(self, library: str) -> bool:
        """Whether a method seeds `library` that the program calls by its name, of an object of which nobody knows what
        it is: of a class in the files that it reaches, of which it makes an object somewhere there."""
        named = {key.removeprefix(NAMED_CALL) for key in self.effects if key.startswith(NAMED_CALL)}
        files = sorted({node.file for node in self.reached()}) if named else []
        texts = {file: self.project.files.text(file) for file in files}
        for file, text in texts.items():
            summary = self.project.files.summary(file)
            asked = [method for method in sorted(named) if f"def {method}(" in text]
            for class_ in summary.defined if asked else ():
                own = summary.class_summary(class_)
                seeds = [
                    method
                    for method in asked
                    if own is not None
                    and method in own.methods
                    and f"seed:{library}" in self.project.effects(Node(file, own.methods[method], (file, class_)))
                ]
                if seeds and any(re.search(rf"(?<!class )\b{class_}\(", one) for one in texts.values()):
                    return True
        return False

    def without_gradients(self, tensors: Tensors) -> bool:
        """Whether the program evidently runs without gradients: nothing in it trains, and it only evaluates what it
        makes, or what its file calls last is decorated with a `no_grad`, or gradients are switched off and never on."""
        if any(self.has(flag) for flag in ("backward", "fits", "trains")) or self._differentiates(tensors):
            return False
        main: Node | None = None
        for step in self.project.steps(self.node):
            if step.kind == "call" and step.node is not None and step.node.name != MODULE:
                main = step.node
        body = self.project.files.summary(main.file).body(main.name) if main is not None else None
        if body is not None and body.is_decorated_with(tensors.no_grad):
            return True
        calls = list(self._calls())
        told = [
            _may_switch_on(event) for event in calls if any(name in tensors.gradient_switches for name in event.names)
        ]
        if told and not any(told):
            return True
        return self.has("evaluates") and not any(
            name in tensors.differentiates or name.startswith("torch.optim.") for event in calls for name in event.names
        )

    def _differentiates(self, tensors: Tensors) -> bool:
        """Whether the program works out a gradient where it has switched gradients on."""
        for _, body in self._bodies():
            switched_on = body.is_decorated_with(tensors.enable_grad)
            for event in body.events:
                if (switched_on or event.regraded) and not tensors.differentiates.isdisjoint(event.names):
                    return True
        return False

    def _calls(self) -> Iterator[Event]:
        """The calls that the program reaches."""
        return (event for _, body in self._bodies() for event in body.events if event.kind == "call")

    def _bodies(self) -> Iterator[tuple[Node, Body]]:
        """What the program reaches."""
        for node in self.reached():
            body = self.project.files.summary(node.file).body(MODULE if node.name == STARTED else node.name)
            if body is not None:
                yield node, body

    def draws(self, library: str) -> list[str]:
        """The draws from `library` that change a result: weights do not where they are loaded and nothing trains, and
        dropout and its like do not draw in evaluation. What makes items draws in workers, which torch seeds, where all
        loaders have some, and from the generator of the loader, where all have one. CUDA has a generator of its own,
        which may be seeded alone, and so has imgaug, which only augments what is trained on.
        What stands in for something in tests is none of the program's."""
        found = []
        copied = (COPIED, COPIED_IN_TRAINING) if library == "numpy" and not self.target.seeds_numpy_in_workers else ()
        for channel in (*CHANNELS[library], *copied):
            draw = self.effects.get(f"draw:{channel}")
            if draw is None or (_TESTS in draw.file and _TESTS not in self.file):
                continue
            if channel == "weights" and self.has("loads") and not (self.has("trains") and self._changes_weights):
                continue
            if channel == "on_cuda" and self._seeds_device("cuda", channel):
                continue
            if channel == "torch" and self._draws_where_seeded:
                continue
            if channel in (BASE_SEED, BASE_SEED_IN_TRAINING) and not self.target.seeds_numpy_in_workers:
                continue
            if channel == "imgaug" and (self._seeds_device("imgaug", channel) or not self.has("trains")):
                continue
            if channel == ITEMS and self.has("workers") and not self.has("no_workers"):
                continue
            if channel == TRANSFORMED and self.has("seeded_workers") and not self.has("other_loaders"):
                continue
            if channel in TRAINING and not (self.has("trains") or (channel == "dropout" and self._left_in_training)):
                continue
            found.append(channel)
        return found

    @property
    def _changes_weights(self) -> bool:
        """Whether the program that trains, by what it calls, changes weights: one that only asks for gradients, to
        explain what a model does, takes no step."""
        return trains(self.effects) or not self.has("backward")

    @property
    def _draws_where_seeded(self) -> bool:
        """Whether only CUDA is seeded, where the program puts its tensors, and torch draws only on the devices of such
        tensors."""
        if not self._seeds_device("cuda", "on_cuda") or "seed:torch" in self.effects or not self.has("on_cuda"):
            return False
        return not any(self._draws_anywhere(node, step) for node in self.reached() for step in self.project.steps(node))

    def _draws_anywhere(self, node: Node, step: Step) -> bool:
        """Whether a step of `node` draws from torch's generator, wherever tensors are: rows of a data set are made on
        the CPU, mostly."""
        if step.kind == "draw" and step.channel == "torch":
            return not step.sized and (not step.alongside or node.name.endswith(_ROW))
        called = (
            self.project.effects(step.node) if step.node is not None and (step.kind == WORKER or step.lends) else {}
        )
        if step.kind == WORKER and "draw:torch" in called:
            return True
        return any(f"borrow:{parameter}" in called for parameter, given in step.lends if not given)

    @property
    def _left_in_training(self) -> bool:
        """Whether a module that the program makes and runs is in training mode, as it is made: nothing evaluates, nor
        makes one that may be in evaluation mode, nor only counts its operations. A state that is loaded leaves the mode
        as it is; who only converts it applies nothing."""
        if any(map(self.has, ("evaluates", "restores", "measures"))):
            return False
        return self.has("applies") or not self.has("loads")

    def seed_reaches(self, library: str) -> bool:
        """Whether a seed of `library` in the program itself reaches a draw: a new process takes no state with it that
        is spawned, and none of `random` in any case; and of a pool, timing decides which process draws for which task.
        What a process runs first belongs to it."""
        seen = {self.node}
        queue = [self.node]
        while queue:
            for step in self.project.steps(queue.pop()):
                if step.node is None:
                    # A loader that is lent draws where it is made, too.
                    borrows = step.kind == "borrow" and not step.channel.startswith(LOADED)
                    if borrows or (step.kind == "draw" and step.channel in CHANNELS[library]):
                        return True
                elif step.kind == WORKER and library == "torch":
                    return True
                elif step.node not in seen and not (
                    step.kind == "process"
                    and (
                        library == "python"
                        or step.channel == "pool"
                        or not self.takes_state(step)
                        or self._seeds_itself(step, library)
                    )
                ):
                    seen.add(step.node)
                    queue.append(step.node)
        return False

    def _seeds_itself(self, step: Step, library: str) -> bool:
        """Whether the new process in which `step` runs something seeds `library` there."""
        ran = {step.node, step.process.target if step.process is not None else None}
        return step.apart and any(f"seed:{library}" in self.project.effects(node) for node in ran if node is not None)

    def seeded_apart(self, library: str) -> set[Node]:
        """What new processes run that seed `library`, or of which what they run first does."""
        if f"{APART}:{library}" not in self.effects:
            return set()
        steps = [step for node in self.reached() for step in self.project.steps(node) if step.apart]
        first = any(step.channel == "first" and self._seeds_itself(step, library) for step in steps)
        seeded = (step for step in steps if self._seeds_itself(step, library) or (first and step.channel == "pool"))
        return {step.node for step in seeded if step.node is not None}

    def seed_above(self, node: Node, library: str) -> Ref | None:
        """The seed of `library` in the process that runs `node`: in the program, or in a new process of it."""
        seed: Ref | None = self.effects.get(f"seed:{library}")
        if seed is None and node in self.reached(self.seeded_apart(library)):
            seed = self.effects[f"{APART}:{library}"]
        return seed

    def takes_state(self, step: Step) -> bool:
        """Whether the new process that `step` starts may be forked, with the states of the generators."""
        return step.channel not in ("spawn", LAUNCHED, "first") and not self.has("afresh")

    def place(self, what: Ref, here: Ref) -> str:
        """Where `what` happens, in words: nothing where it is on the line of the finding itself."""
        if what.file == here.file:
            near = what.row == here.row or what.statement == here.statement
            return "" if near else f" ({self.line(what.file, what.row)})"
        if what.file.endswith(".ipynb"):
            return f" ({self.shown(what.file)}, {self.line(what.file, what.row)})"
        return f" ({self.shown(what.file)}:{what.row})"

    def reached_ops(self) -> list[Reported]:
        """For each function that the program reaches in which an op is found: what of it. Whoever makes a module
        runs its methods. What the constants of all calls rule out is none."""
        found: dict[tuple[str, int], dict[Ref, None]] = {}
        varying: set[tuple[str, int]] = set()
        names: dict[tuple[str, int], Sequence[str]] = {}
        for node in self.reached(applied=True):
            functions = self.reported(node.file)
            for row in self._rows(node) if functions else ():
                if row in functions:
                    raising, varies, switchable = functions[row]
                    reached = [ref for ref in raising if self._reaches(node, row, ref)]
                    if reached or not raising:
                        found.setdefault((node.file, row), {}).update(dict.fromkeys(reached))
                        varying |= {(node.file, row)} if varies else set()
                        names[node.file, row] = switchable
        return [Reported(tuple(found[key]), key in varying, names[key]) for key in sorted(found)]

    def _reaches(self, node: Node, row: int, ref: Ref) -> bool:
        """Whether the constants that a function is called with leave `ref`, which stands in the function at `row`."""
        body = self.project.files.summary(node.file).body(node.name) if node.given and row else None
        if body is None or body.row != row:
            return True
        dead = {arm for arm in ruled_out(body, dict(node.given)) if arm}
        calls = [event for event in body.events if event.kind == "call" and event.row == ref.row]
        return not calls or any(dead.isdisjoint(event.branch) for event in calls)

    def _is_switched_off(self, node: Node) -> bool:
        """Whether a function is decorated with what switches gradients off."""
        body = None if node.name in (MODULE, STARTED) else self.project.files.summary(node.file).body(node.name)
        return body is not None and body.is_decorated_with(self.project.facts.library.facts.tensors.no_grad)

    def _rows(self, node: Node) -> Iterator[int]:
        """Where the function of `node` stands, and with the constructor of a module all its methods; 0: the file."""
        summary = self.project.files.summary(node.file)
        names = [node.name]
        if node.name.endswith(".__init__") and self.project.lookup.derives(
            node.owner, self.project.facts.words.modules
        ):
            class_ = summary.class_summary(node.name.rpartition(".")[0])
            names += sorted(class_.methods.values()) if class_ is not None else []
        for name in names:
            body = None if name in (MODULE, STARTED) else summary.body(name)
            yield body.row if body is not None else 0

    def reached(
        self,
        starts: Set[Node] | None = None,
        *,
        graded: bool = False,
        applied: bool = False,
        without: Set[tuple[str, str]] = frozenset(),
    ) -> Iterator[Node]:
        """The nodes that the entry point reaches, or `starts` of it, in a fixed order; `graded` ones where gradients
        are not off, `applied` ones not of models that are made for their weights alone, and none by functions it is
        `without`, which are given by file and name."""
        seen = {self.node} if starts is None else {*starts}
        queue = list(seen)
        while queue:
            node = queue.pop()
            if (node.file, node.name) in without or (graded and self._is_switched_off(node)):
                continue
            yield node
            for step in self.project.steps(node):
                if step.kind == WORKER or step.node is None or step.node in seen:
                    continue
                if not (graded and step.ungraded) and not (applied and step.unapplied):
                    seen.add(step.node)
                    queue.append(step.node)


def _may_switch_on(event: Event) -> bool:
    """Whether a switch of gradients may be given anything but False."""
    value = event.positional[0] if event.positional else None
    return not (value is not None and value.known and value.value is False)
