"""Turns the events of one function into steps: what each call stands for, and what it does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.catalogue.facts import Draw
from torchdet_lint.program.effects import IN_TRAINING, LEVELS, STARTED, THINGS, TOKEN, Node, Ref, Step, Thing
from torchdet_lint.program.events import DEVICE_QUERIES, GUARD, MODULE, Argument, Body, Event
from torchdet_lint.program.knowledge import LOADER, OWN_SEED
from torchdet_lint.program.launch_configs import HIDDEN, UNKNOWN, setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torchdet_lint.catalogue.facts import Draw, Runner, Seed
    from torchdet_lint.program.call_graph import Project

_COMMAND_LINE = "lightning.pytorch.cli.LightningCLI"

_SEEDING = re.compile(
    r"(?:^|_)seed|seed(?:s|ing)?(?:$|_)|seed_?(?:everything|all|worker)|determinis|reproducib|set_?(?:random_)?seed",
    re.IGNORECASE,
)
_MODE_NAME = re.compile(r"determinis|reproducib", re.IGNORECASE)
_NOT_SEEDING = re.compile(
    r"(?:get|worker|add|parse|print|log|with|check|has|is|next|spawn|derive)_\w*seed|initial_seed|seed_?worker",
    re.IGNORECASE,
)
_INITIALISER = re.compile(r"init|reset_param", re.IGNORECASE)
_FLAGS = {
    "backward": "trains",
    "optimize_parameters": "trains",
    "optimizer_step": "trains",
    "cuda": "cuda",
    "share_memory": "shares",
}
_LOADING = re.compile(
    r"(?:load|restore|resume)_(?:state|check|ckpt|weight|model|pretrained|param|net|pkl|from)\w*|from_pretrained|restore"
)
_LIGHTNING = frozenset({"lightning.pytorch.LightningModule"})
_MODULES = frozenset({"torch.nn.Module", "lightning.pytorch.LightningModule"})
_LOADERS = frozenset({LOADER})
_ENVIRONMENT = re.compile(r"env|space|sampler|generator|rng", re.IGNORECASE)
_OPTIMIZER = re.compile(r"torch\.optim\.(?:\w+\.)?[A-Z]\w*$")
_MADE = re.compile(r"([^$?@][\w.]*)\(\)")
_GIVEN_A_MODEL = re.compile(
    r"load|from_|restore|resume|copy|clone|wrap|parallel|ddp|fsdp|ema|prepare|convert|compile|initialize|distribut|freeze"
    r"|reduce|apply|quanti|peft|lora",
    re.IGNORECASE,
)
_TRAINING = re.compile(r"(?:^|_)(?:train|fit)(?:$|_|er$|ing)", re.IGNORECASE)
_DEVICES = frozenset({"device", "gpu", "rank", "local_rank", "gpu_id", "device_id", "cuda"})


class Expansion:
    """Turns the events of one node into steps."""

    def __init__(self, project: Project, node: Node) -> None:
        self.project = project
        self.facts = project.facts
        self.node = node
        self.found: list[Step] = []
        self.event = Event("call", 1, 0, 1)
        self.optimised: frozenset[str] = frozenset()
        last = node.name.rpartition(".")[2]
        self.initialises = bool(_INITIALISER.search(last)) and (
            last not in ("__init__", "init", "setup") or project.derives(node.owner, _MODULES)
        )

    def run(self) -> list[Step]:
        """The steps of the node, in order."""
        node = self.node
        name = MODULE if node.name == STARTED else node.name
        body = self.project.summary(node.file).body(name)
        if body is None:
            return []
        self._decorated(body)
        self.optimised = frozenset(self._models(body))
        without = GUARD if node.name == MODULE else -GUARD
        for event in body.events:
            if without in event.branch:
                continue
            if node.name == MODULE and (event.deferred or (event.branch and event.kind == "call")):
                continue
            self.event = event
            getattr(self, f"on_{event.kind}")(event)
        return self.found

    def add(
        self,
        kind: str,
        what: str = "",
        channel: str = "",
        node: Node | None = None,
        *,
        now: bool = True,
        lends: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Record a step at the event that is being looked at."""
        event = self.event
        ref = Ref(self.node.file, event.row, event.column, event.statement, what)
        weights = node is not None and kind == "call" and self.initialises
        now = now and not event.deferred
        self.found.append(Step(kind, ref, channel, node, now, event.branch, event.locked, weights, lends))

    def _decorated(self, body: Body) -> None:
        """What the wrapper of a decorator of the project does before the function itself."""
        self.event = Event("call", body.row, 0, body.row)
        for names in body.decorators:
            for name in names:
                for thing in self.stands_for(name):
                    if thing.kind == "function":
                        inner = self.project.summary(thing.file).body(thing.name)
                        for wrapper in inner.inner if inner is not None else ():
                            self.add("call", node=Node(thing.file, wrapper, thing.owner))
                    elif thing.kind in ("unknown", "external"):
                        self._perhaps_seeds(thing, Event("call", body.row, 0, body.row))

    # ------------------------------------------------------------------ events

    def on_import(self, event: Event) -> None:
        """An import runs the modules it names."""
        seen: set[str] = set()
        for name in event.names:
            for file in self.project._files_of(name, self.node.file):
                if file not in seen:
                    seen.add(file)
                    self.add("call", node=Node(file, MODULE))

    def on_env(self, event: Event) -> None:
        """Environment variables are set."""
        self.environment(event.names)

    def environment(self, names: Iterable[str]) -> None:
        """What the environment variables `names` switch."""
        if "CUBLAS_WORKSPACE_CONFIG" in names:
            self.add("seed", "CUBLAS_WORKSPACE_CONFIG", "cublas")

    def on_cuda(self, event: Event) -> None:
        """A text speaks of CUDA."""
        self.add("flag", channel="cuda")

    def on_update(self, event: Event) -> None:
        """A gradient is updated in place."""
        self.add("flag", channel="update" if not event.locked else "locked")

    def on_set(self, event: Event) -> None:
        """What an attribute is given is looked up where it is read."""

    def on_call(self, event: Event) -> None:
        """A call, of whatever its names stand for."""
        done: set[Thing] = set()
        for name in event.names:
            for thing in self.stands_for(name):
                if thing not in done:
                    done.add(thing)
                    self.called(thing, event)
                    if name in self.optimised or event.positional or event.keywords:
                        self.out_of_sight(name, thing, event)
        last = event.names[0].rpartition(".")[2].removesuffix("()")
        self.by_last_name(last, event, done)

    def called(self, thing: Thing, event: Event) -> None:
        """A call of `thing`."""
        if thing.kind == "function":
            self.function(thing, event)
        elif thing.kind == "class":
            self.constructed((thing.file, thing.name), event)
        elif thing.kind == "instance":
            self.instance_called(thing, event)
        elif thing.kind == "external":
            self.external(thing.name, event, thing.owner)
        elif thing.kind == "unknown":
            self._perhaps_seeds(thing, event)

    def _models(self, body: Body) -> Iterator[str]:
        """What made the models of which an optimizer gets the parameters, here or in a function that is called here."""
        for name in self.project.optimised(self.node.file, self.node.name, body):
            yield from self._makers(name)
        for event in body.events:
            if event.kind != "call" or not (event.positional or event.keywords):
                continue
            for thing in [thing for name in event.names for thing in self.stands_for(name) if thing.kind == "function"]:
                inner = self.project.summary(thing.file).body(thing.name)
                names = self.project.optimised(thing.file, thing.name, inner) if inner is not None else ()
                given = _given(thing, inner, event) if inner is not None and names else {}
                for parameter in sorted(given.keys() & {name[1:] for name in names}):
                    for name in given[parameter].names:
                        yield from self._makers(name)

    def _makers(self, name: str) -> Iterator[str]:
        names = (name,) if name[:1] not in "$?@" else (thing.name for thing in self.stands_for(name))
        for one in names:
            if (match := _MADE.match(one)) is not None:
                yield match[1]

    def out_of_sight(self, name: str, thing: Thing, event: Event) -> None:
        """A model whose parameters are optimised here was initialised where it was made, and a function that is called
        after training and given the optimizer trains, wherever both are defined."""
        last = name.rpartition(".")[2]
        if thing.kind not in ("unknown", "external") or name.startswith("torch."):
            return
        if name in self.optimised and not _GIVEN_A_MODEL.search(last) and not self.facts.speaks_of(name):
            self.add("draw", name, "weights")
        elif _TRAINING.search(last) and any(
            known.startswith("torch.optim.") and known.endswith("()")
            for argument in (*event.positional, *event.keywords.values())
            for known in argument.names
        ):
            self.add("flag", last, "trains")

    def function(self, thing: Thing, event: Event, *, kind: str = "call") -> None:
        """A call of a function of the project."""
        full = thing.name
        if full in self.project.seed_functions or full.rpartition(".")[2] in self.project.seed_functions:
            self._all_seeded(full)
            return
        self.add(kind, node=Node(thing.file, full, thing.owner), lends=self.lent(thing, event))
        self.passed(thing, event)

    def lent(self, thing: Thing, event: Event) -> tuple[tuple[str, str], ...]:
        """The generators among the parameters of a function that `event` leaves out, or passes on from here."""
        body = self.project.summary(thing.file).body(thing.name)
        if body is None or event.opaque or not any("generator" in name for name in body.parameters):
            return ()
        given = _given(thing, body, event)
        found = []
        for name in body.parameters:
            if "generator" in name:
                argument = given.get(name)
                if argument is None or (argument.known and argument.value is None):
                    found.append((name, ""))
                elif (own := _parameter(argument)) is not None:
                    found.append((name, own))
        return tuple(found)

    def passed(self, thing: Thing, event: Event) -> None:
        """Functions and objects that are handed to a function which calls them."""
        body = self.project.summary(thing.file).body(thing.name)
        if body is None or not body.uses:
            return
        bound = self._bound(thing, body, event)
        if not bound:
            return
        outer = self.event
        for inner in body.events:
            self.event = _at(outer, inner)
            for name in inner.names:
                if name.startswith("$"):
                    self._used(bound, TOKEN.findall(name[1:]))
            if inner.kind == "call":
                for argument in (*inner.positional, *inner.keywords.values()):
                    for use in sorted({name[1:] for name in argument.names} & bound.keys()):
                        self.handed_on(inner, use, bound[use], thing)
        self.event = outer

    def _bound(self, thing: Thing, body: Body, event: Event) -> dict[str, list[Thing]]:
        """What the call `event` passes for those parameters of a function that it calls."""
        given = _given(thing, body, event)
        bound: dict[str, list[Thing]] = {}
        for use in body.uses:
            things = [thing for name in given[use].names for thing in self.stands_for(name)] if use in given else []
            things = [thing for thing in things if thing.kind in ("function", "class", "instance", "external")]
            if things:
                bound[use] = things
        return bound

    def _used(self, bound: dict[str, list[Thing]], tokens: list[str]) -> None:
        """A call of a parameter, or of something of it."""
        for result in self.project._follow(bound.get(tokens[0], []), tokens[1:], LEVELS):
            if result.kind in ("function", "class", "instance"):
                self.called_plainly(result)
            elif result.kind == "external":
                self.external(result.name, self.event, result.owner)

    def stands_for(self, name: str) -> tuple[Thing, ...]:
        """What a name of this node stands for."""
        return self.project.evaluate(name, self.node.file, self.node.owner, self.node.name)

    def handed_on(self, inner: Event, use: str, things: list[Thing], callee: Thing) -> None:
        """A parameter that the callee hands to a runner: `launch(main)` whose body is `mp.spawn(main, …)`."""
        for name in inner.names:
            for target in self.project.evaluate(name, callee.file, callee.owner, callee.name):
                if target.kind != "external":
                    continue
                for runner in self.facts.runners.get(target.name, ()):
                    if any(f"${use}" in argument.names for argument in _handed(runner, inner)):
                        for thing in things:
                            self.run_thing(runner, thing)

    def called_plainly(self, thing: Thing) -> None:
        """A call of which the arguments are not known."""
        if thing.kind == "function":
            self.add("call", node=Node(thing.file, thing.name, thing.owner))
        elif thing.kind == "class":
            self.constructed((thing.file, thing.name), self.event)
        else:
            self.instance_called(thing, self.event)

    def constructed(self, kind: tuple[str, str], event: Event) -> None:
        """An object of the class `kind` of the project is made."""
        if "shuffle" in event.keywords and self.project.derives(kind, _LOADERS):
            asked = {key: value for key, value in event.keywords.items() if key in ("shuffle", "generator")}
            self.external(LOADER, msgspec.structs.replace(event, positional=(), keywords=asked))
        for thing in self.project._class_attribute(Thing("instance", *kind), "__init__"):
            if thing.kind == "function":
                self.function(thing, event)
            elif thing.kind == "external":
                self.external(thing.name, event, kind)
        for thing in self.project._class_attribute(Thing("instance", *kind), "__post_init__"):
            if thing.kind == "function":
                self.add("call", node=Node(thing.file, thing.name, thing.owner))

    def instance_called(self, thing: Thing, event: Event) -> None:
        """An object of the project is called."""
        for name in ("__call__", "forward"):
            for method in self.project._class_attribute(thing, name):
                if method.kind == "function":
                    self.function(method, event)
                    return

    # ------------------------------------------------------------------ libraries

    def external(self, name: str, event: Event, owner: tuple[str, str] = ("", "")) -> None:
        """A call of what the tables know, or may know."""
        facts = self.facts
        known = False
        if "**" in event.keywords:
            event = self.filled(event)
        if name == "hydra.utils.instantiate":
            for mapping in self.mappings(event.positional[:1]):
                self.instantiated(mapping, event)
        for full in facts.spellings(name):
            if full == _COMMAND_LINE:
                self.command_line(event)
                known = True
                continue
            for draw in facts.draws.get(full, ()):
                known = True
                self.draw_or_borrow(draw, name if "*" in full else full, event)
            for seed in facts.seeds.get(full, ()):
                known = True
                self.seed(seed, full, event)
            for runner in facts.runners.get(full, ()):
                known = True
                self.hand_over(runner, event, owner)
            if full in facts.everywhere:
                known = True
                self.add("flag", full, "everywhere")
            if full in self.project.seed_functions:
                self._all_seeded(full)
        if not known and not facts.makes(name):
            self._perhaps_seeds(Thing("external", "", name), event)
        if name.startswith(("torch.cuda.", "torch.accelerator.")) and not name.partition(".")[2].partition(".")[
            2
        ].startswith(DEVICE_QUERIES):
            self.add("flag", channel="cuda")
        if name in facts.modes_off:
            self.add("flag", name, "relaxed")

    # ------------------------------------------------------------------ configurations

    def mappings(self, arguments: Iterable[Argument]) -> list[dict[str, Any]]:
        """What arguments such as `cfg.model` stand for in the configurations of this file's programs."""
        paths = [name.partition(".")[2].replace(".", "/") for argument in arguments for name in argument.names]
        return [mapping for path in paths if path for mapping in self.project.configured(self.node.file, path)]

    def filled(self, event: Event) -> Event:
        """`event` with what `**cfg.trainer` passes, where there is one configuration that says so."""
        found = self.mappings([event.keywords["**"]])
        keywords = {key: value for key, value in event.keywords.items() if key != "**"}
        if len(found) == 1 and HIDDEN not in found[0]:
            return msgspec.structs.replace(event, keywords=_passed(found[0]) | keywords, opaque=False)
        return msgspec.structs.replace(event, keywords=keywords)

    def instantiated(self, value: Any, event: Event, depth: int = 0) -> None:
        """What Hydra makes of a part of a configuration: what is inside first."""
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            if depth < THINGS:
                self.instantiated(inner, event, depth + 1)
        target = value.get("_target_") if isinstance(value, dict) else None
        if not isinstance(target, str) or value.get("_partial_"):
            return
        name = self.facts.library.canonical(target)
        keywords, opaque = _passed(value), HIDDEN in value
        if depth == 0:
            keywords, opaque = keywords | event.keywords, opaque or event.opaque
        elif any(seed.give for full in self.facts.spellings(name) for seed in self.facts.seeds.get(full, ())):
            opaque = True  # its switch cannot be turned at the call
        made = msgspec.structs.replace(event, names=(name,), positional=(), keywords=keywords, opaque=opaque)
        for thing in self.stands_for(name):
            self.called(thing, made)

    def command_line(self, event: Event) -> None:
        """Lightning's command line: what it is given in code, and in the YAML that lies beside it."""
        configurations = self.project.configs.command_lines(self.node.file)
        seeds = [setting(data, "seed_everything") for data in configurations]
        default = event.keywords.get("seed_everything_default")
        unseeded = default is not None and default.known and default.value in (None, False)
        if any(seed is UNKNOWN for seed in seeds or [UNKNOWN]):
            seeds.append(not unseeded)
        if any(seed is not False and seed is not None for seed in seeds):
            for channel in ("python", "numpy", "torch", "cuda"):
                self.add("seed", _COMMAND_LINE, channel)
        modes = [setting(data, "trainer", "deterministic") for data in configurations]
        if any(mode is True for mode in modes):
            self.add("flag", _COMMAND_LINE, "mode")
            self.environment(["CUBLAS_WORKSPACE_CONFIG"])
        elif (
            not configurations
            or event.opaque
            or any(mode is not UNKNOWN for mode in modes)
            or not {"trainer_defaults", "args", "parser_kwargs"}.isdisjoint(event.keywords)
            or "deterministic" in self.project.text(self.node.file)
        ):
            self.add("flag", _COMMAND_LINE, "relaxed")
        else:
            self.add("flag", _COMMAND_LINE, "switch")
        accelerators = [setting(data, "trainer", "accelerator") for data in configurations]
        if accelerators and all(accelerator == "cpu" for accelerator in accelerators):
            self.add("flag", channel="host")
        else:
            self.add("flag", channel="cuda")
        run = event.keywords.get("run")
        if configurations and not (run is not None and run.known and not run.value):
            self.add("flag", channel="trains")
        for runner in self.facts.runners[_COMMAND_LINE]:
            for argument in _handed(runner, event):
                for name in argument.names:
                    for thing in self.stands_for(name):
                        self.run_thing(runner, thing, event)

    def draw_or_borrow(self, draw: Draw, full: str, event: Event) -> None:
        """A draw from the global generator, or from one that is a parameter of this function."""
        if event.idle:
            return
        if self.facts.meets(event, draw.when, draw.parameters):
            self.draw(draw, full)
            return
        argument = event.keywords.get("generator")
        lender = _parameter(argument) if argument is not None else None
        if lender is not None and draw.library == "torch":
            rest = {key: value for key, value in event.keywords.items() if key != "generator"}
            if self.facts.meets(msgspec.structs.replace(event, keywords=rest), draw.when, draw.parameters):
                self.add("borrow", full.replace("()", ""), lender)

    def draw(self, draw: Draw, full: str) -> None:
        """A draw from a global generator."""
        what = full.replace("()", "")
        channel: str = draw.library
        initialises = draw.at == "construction" or (self.initialises and draw.at == "call")
        if channel == "torch" and (initialises or full.startswith("torch.nn.init.")):
            channel = "weights"
        elif draw.at == "training" or _in_training(self.event):
            channel = IN_TRAINING[channel]
        self.add("draw", what, channel, now=draw.at in ("call", "construction"))

    def seed(self, seed: Seed, full: str, event: Event) -> None:
        """A seed, and the modes that come with it."""
        what = full.replace("()", "")
        value = self.facts.argument(event, seed.argument, seed.parameters)
        left_out = not event.opaque if value is None else value.known and value.value is None
        for channel in () if seed.optional and left_out else seed.seeds:
            self.add("seed", what, channel)
        if seed.mode or (seed.when_mode and self.facts.meets(event, seed.when_mode, seed.parameters)):
            self.add("flag", what, "mode")
            self.environment(seed.environment)
        elif seed.switch and self._told(event, seed):
            self.add("flag", what, "relaxed")
        else:
            self.environment(seed.environment if not seed.when_mode else ())
            if seed.give:
                self.add("flag", full, "switch")

    def _told(self, event: Event, seed: Seed) -> bool:
        """Whether a switch was given at all: what it is set against is TDL204's and TDL208's business."""
        return (
            any(self.facts.given(event, condition.argument, seed.parameters) for condition in seed.when_mode)
            or event.opaque
        )

    def hand_over(self, runner: Runner, event: Event, owner: tuple[str, str]) -> None:
        """A runner gets what it runs."""
        if runner.trains:
            self.add("flag", channel="trains")
        if runner.host and self.facts.meets(event, runner.host, runner.parameters):
            self.add("flag", channel="host")
        elif runner.cuda:
            self.add("flag", channel="cuda")
        for argument in _handed(runner, event):
            things = [thing for name in argument.names for thing in self.stands_for(name)]
            for thing in things:
                self.run_thing(runner, thing, event)
            if runner.process == "first" and not argument.known and all(thing.kind != "function" for thing in things):
                self.add("flag", channel="perhaps")
        if runner.bare and not event.positional and not event.keywords:
            body = self.project.summary(self.node.file).body(MODULE)
            for name in body.inner if body is not None else ():
                self.add("call", node=Node(self.node.file, name))
        if runner.itself and owner[1]:
            self.run_thing(runner, Thing("instance", *owner), event)

    def run_thing(self, runner: Runner, thing: Thing, event: Event | None = None) -> None:
        """What a runner runs of `thing`."""
        targets: list[Thing] = []
        if thing.kind == "function":
            targets = [thing]
        elif thing.kind == "class" and not runner.methods:
            self.constructed((thing.file, thing.name), self.event)
        elif thing.kind in ("class", "instance"):
            receiver = Thing("instance", thing.file, thing.name)
            for method in runner.methods or ("__call__", "forward"):
                targets += [
                    found for found in self.project._class_attribute(receiver, method) if found.kind == "function"
                ]
        kind = "process" if runner.process in ("fork", "spawn", "first") else "later" if runner.deferred else "call"
        if runner.workers and event is not None and self._in_workers(event, runner):
            return
        for target in dict.fromkeys(targets):
            self.add(kind, runner.process, runner.process, Node(target.file, target.name, target.owner))

    def _in_workers(self, event: Event, runner: Runner) -> bool:
        """Whether a loader runs its dataset in worker processes, which torch seeds from its own generator."""
        value = self.facts.argument(event, runner.workers, runner.parameters)
        if value is None:
            return False
        return not value.known or bool(value.value)

    # ------------------------------------------------------------------ names alone

    def by_last_name(self, last: str, event: Event, things: set[Thing]) -> None:
        """What a method's name says where its receiver is not known."""
        first = event.names[0]
        self.dispatched(first, last)
        if _LOADING.fullmatch(last) or first in ("torch.load", "torch.jit.load", "pickle.load"):
            self.add("flag", last, "loads")
        if {thing.kind for thing in things} & {"function", "class", "instance"}:
            return
        if last in _FLAGS:
            self.add("flag", last, _FLAGS[last])
        elif last == "to":
            self._moved(event)
        elif last == "fit" and not any(self.facts.speaks_of(thing.name) for thing in things):
            self._fitted(event)
        elif last == "step" and not event.positional:
            self._stepped(first, event)
        elif last in ("apply", "step"):
            for thing in [
                thing for argument in event.positional[:1] for name in argument.names for thing in self.stands_for(name)
            ]:
                if thing.kind == "function":
                    self.add("call", node=Node(thing.file, thing.name, thing.owner))
        elif last in self.facts.tensor_draws:
            self._tensor_draw(last, first, event)
        if last == "cuda":
            self.add("draw", ".cuda()", "cublas")

    def _fitted(self, event: Event) -> None:
        """A trainer that something out of sight has made fits a module of Lightning; its flags are not known."""
        given = [
            thing for argument in event.positional[:1] for name in argument.names for thing in self.stands_for(name)
        ]
        if any(
            thing.kind == "instance" and self.project.derives((thing.file, thing.name), _LIGHTNING) for thing in given
        ):
            self.external("lightning.pytorch.Trainer().fit", event)
            self.add("flag", "fit", "relaxed")

    def _stepped(self, first: str, event: Event) -> None:
        """A step of an optimizer, or of something else that steps."""
        self.add("flag", "step", "locked" if event.locked else "steps")
        if first.startswith("torch.optim.") or "opt" in first.rpartition(".")[0].rpartition(".")[2].lower():
            self.add("flag", "step", "trains")

    def _tensor_draw(self, last: str, first: str, event: Event) -> None:
        """A method that only tensors have, or one of a tensor that a function of torch returns."""
        if event.idle or event.opaque or first in self.facts.draws or "generator" in event.keywords:
            return
        if last.endswith("_") or first.startswith("torch."):
            drawn = "dropout" if _in_training(event) else "torch"
            self.add("draw", f"Tensor.{last}", "weights" if self.initialises else drawn)

    def dispatched(self, first: str, last: str) -> None:
        """What a click group, a typer application or a function that argparse has picked runs."""
        dispatch = self.project.summary(self.node.file).dispatch
        for key in sorted({f".{last}", first} & dispatch.keys()):
            for name in dispatch[key]:
                for thing in self.project.evaluate(name, self.node.file):
                    if thing.kind == "function" and thing.name != self.node.name:
                        self.add("call", node=Node(thing.file, thing.name))

    def _moved(self, event: Event) -> None:
        for argument in (*event.positional[:1], *(value for key, value in event.keywords.items() if key == "device")):
            if argument.known and isinstance(argument.value, str) and argument.value.startswith("cuda"):
                self.add("flag", channel="cuda")
                self.add("draw", ".to('cuda')", "cublas")
            elif any(
                name.rpartition(".")[2].rstrip("()") in _DEVICES
                for name in argument.names
                if name.startswith(("?", "$")) or self.is_out_of_sight(name)
            ):
                self.add("flag", channel="cuda")

    def is_out_of_sight(self, name: str) -> bool:
        """Whether a name is imported from a file that is not there, or from a library that no table knows."""
        things = self.stands_for(name)
        return bool(things) and not self.facts.makes(name) and all(thing.kind == "external" for thing in things)

    def _perhaps_seeds(self, thing: Thing, event: Event) -> None:
        """A function that is not in sight and whose name or arguments speak of a seed silences rather than accuses."""
        tokens = [token for token in TOKEN.findall(thing.name) if token != "()"]
        if not tokens:
            return
        last = tokens[-1]
        root = tokens[0]
        if last in self.project.seed_functions or thing.name in self.project.seed_functions:
            self._all_seeded(thing.name)
            return
        if thing.kind == "external" and root in OWN_SEED:
            return
        told = any("seed" in key.lower() for key in event.keywords) or any(
            "seed" in name.rpartition(".")[2].lower() for argument in event.positional for name in argument.names
        )
        named = _SEEDING.search(last) and not _NOT_SEEDING.search(last)
        if (
            named
            and last == "seed"
            and ((len(tokens) > 1 and _ENVIRONMENT.search(tokens[-2])) or _of_environment(event))
        ):
            return
        if named or (told and not _keeps_to_itself(thing, last)):
            self.add("flag", last, "perhaps")
            if _MODE_NAME.search(last) or any(_MODE_NAME.search(key) for key in event.keywords):
                self.add("flag", last, "relaxed")

    def _all_seeded(self, what: str) -> None:
        for channel in ("python", "numpy", "torch", "cuda"):
            self.add("seed", what, channel)


def optimised(body: Body) -> frozenset[str]:
    """Whose parameters a function takes that makes an optimizer: `$net`, or `models.Net()` of its `.parameters()`."""
    names = [name for event in body.events if event.kind == "call" for name in event.names]
    if not any(map(_OPTIMIZER.match, names)):
        return frozenset()
    return frozenset(name.rpartition(".")[0] for name in names if name.endswith((".parameters", ".named_parameters")))


def _given(thing: Thing, body: Body, event: Event) -> dict[str, Argument]:
    """What the call `event` passes to a function, by parameter."""
    parameters = body.parameters[1:] if body.first and thing.owner[1] else body.parameters
    return dict(zip(parameters, event.positional, strict=False)) | event.keywords


def _parameter(argument: Argument) -> str | None:
    """The parameter of the function around that an argument passes on."""
    first = argument.names[0] if len(argument.names) == 1 else ""
    return first[1:] if first.startswith("$") and first[1:].isidentifier() else None


def _of_environment(event: Event) -> bool:
    return any(_ENVIRONMENT.search(name) for name in event.names)


def _keeps_to_itself(thing: Thing, last: str) -> bool:
    """Whether something that takes a seed is an object or a data function, which have generators of their own."""
    return last in (
        "reset",
        "split",
        "shuffle",
        "train_test_split",
        "sample",
        "add_argument",
        "print",
        "format",
        "info",
        "make",
        "manual_seed",
        "seed",
        "append",
    )


def _at(outer: Event, inner: Event) -> Event:
    """The event `inner` of a callee as it happens at the call `outer`."""
    return Event(
        "call", outer.row, outer.column, outer.statement, inner.names, inner.positional, inner.keywords, inner.opaque,
        outer.branch, outer.deferred or inner.deferred, inner.locked, inner.idle, inner.trained,
    )  # fmt: skip


def _passed(mapping: dict[str, Any]) -> dict[str, Argument]:
    """The arguments that Hydra makes of a mapping, or that `**mapping` passes."""
    plain = {key: value for key, value in mapping.items() if isinstance(key, str) and not key.startswith("_")}
    return {
        key: Argument((), True, value) if value is None or isinstance(value, (bool, int, float, str)) else Argument()
        for key, value in plain.items()
        if key != HIDDEN
    }


def _handed(runner: Runner, event: Event) -> list[Argument]:
    """The arguments of `event` that `runner` runs."""
    found = []
    for name in runner.arguments:
        if name in event.keywords:
            found.append(event.keywords[name])
        elif name in runner.parameters and runner.parameters.index(name) < len(event.positional):
            found.append(event.positional[runner.parameters.index(name)])
    return found


def _in_training(event: Event) -> bool:
    """Whether a call stands under `if self.training`, or is told whether it is so."""
    return event.trained or any(
        name.rpartition(".")[2] in ("training", "$training")
        for argument in (*event.positional, *event.keywords.values())
        for name in argument.names
    )
