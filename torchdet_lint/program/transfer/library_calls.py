"""A call of what the tables know -> what it draws from, seeds and switches."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.program.effects import IN_TRAINING, ITEMS, STARTED, TRANSFORMED
from torchdet_lint.program.events import GENERATOR, MODULE, PLAIN, Argument
from torchdet_lint.program.transfer.passing import constant_in, parameter_of
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torchdet_lint.catalogue.conditions import Condition
    from torchdet_lint.catalogue.facts import Draw, Runner, Seed
    from torchdet_lint.program.events import Event
    from torchdet_lint.program.transfer.recorder import Recorder

_TORCHS_SEED = "torch.initial_seed"
# What a class method gives is an object of the class: `Pipeline.from_pretrained()`, of which the object is what draws.
_OBJECT = lazy(r"(?<=\.)([A-Z]\w*)\.[a-z]\w*\(\)")
# What a function gives back beside the model has no such method: the one that draws goes by the method alone.
_BESIDE = lazy(r"\.\w*(?:Tokenizer|Processor|Extractor|Config)\w*\.(?=generate$)")


class LibraryCalls:
    """The effects of calls of a library's functions, recorded."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.facts = recorder.facts

    def draw_or_borrow(self, draw: Draw, full: str, event: Event) -> None:
        """A draw from the global generator, or from one that is a parameter of this function."""
        if event.idle or (draw.at == "construction" and full.endswith("()")):  # the object that was made is called
            return
        if draw.idle_with and _is_given_one_of(draw.idle_with, event):
            return
        if draw.at == "iteration" and self._is_a_transform_of_another_file(full):
            return
        event = _with_constants(event, self._settings(event, draw.when, draw.parameters))
        if self.facts.meets(event, draw.when, draw.parameters):
            self.draw(draw, full)
            return
        argument = event.keywords.get("generator")
        lender = parameter_of(argument) if argument is not None else None
        if lender is not None and draw.library == "torch":
            rest = {key: value for key, value in event.keywords.items() if key != "generator"}
            if self.facts.meets(msgspec.structs.replace(event, keywords=rest), draw.when, draw.parameters):
                self.recorder.add("borrow", _told(full), lender)

    def _is_a_transform_of_another_file(self, full: str) -> bool:
        """Whether what is made is a transform that a file which the program imports keeps at its top level: it draws
        where it is applied, if it is."""
        return self.recorder.node.name == MODULE and not full.endswith("()") and is_of_transforms(full)

    def _settings(
        self, event: Event, conditions: Iterable[Condition], parameters: tuple[str, ...]
    ) -> dict[str, Argument]:
        """The constants that parameters and attributes of `self`, which the call hands on, are known to be, by the
        arguments of which `conditions` speak."""
        known: dict[str, Argument] = {}
        for condition in conditions:
            given = self.facts.argument(event, condition.argument, parameters)
            if given is not None and not given.known and any(name.startswith("$") for name in given.names):
                value = self.recorder.constant_here(given)
                if isinstance(value, PLAIN):
                    known[condition.argument] = Argument(given.names, known=True, value=value)
        return known

    def iterated(self, full: str, event: Event) -> None:
        """What a loader draws when it is iterated."""
        for draw in self.facts.draws_iterated(full, event):
            self.recorder.add("draw", full, draw.library)

    def draw(self, draw: Draw, full: str) -> None:
        """A draw from a global generator."""
        what = _told(full)
        channel: str = draw.library
        initialises = draw.at == "construction" or (self.recorder.initialises and draw.at == "call")
        if channel == "torch" and (initialises or full.startswith("torch.nn.init.")):
            channel = "weights"
        elif full in self.facts.estimators and channel == "numpy":
            channel = "estimator"
        elif draw.own:
            channel = draw.own
        elif draw.at == "item":
            channel = ITEMS
        elif draw.at == "training" or in_training(self.recorder.event):
            channel = IN_TRAINING[channel]
        elif channel == "torch" and draw.at == "iteration" and self._is_kept(full):
            channel = TRANSFORMED
        elif channel == "torch" and _is_on_cuda(self.recorder.event):
            channel = "on_cuda"
        alongside = channel == "torch" and self._is_alongside(full, self.recorder.event)
        self.recorder.add("draw", what, channel, now=draw.at in ("call", "construction"), alongside=alongside)

    def _is_alongside(self, full: str, event: Event) -> bool:
        """Whether a function draws on the device of a tensor: of the one that it is given, or of `device=x.device`."""
        device = event.keywords.get("device")
        if device is None:
            return full in self.facts.devices.draws_there
        return bool(device.names) and all(map(self.recorder.is_device_of_tensor, device.names))

    def _is_kept(self, full: str) -> bool:
        """Whether a transform is made here, or handed on to who applies it."""
        return is_of_transforms(full) and (not full.endswith("()") or self.recorder.hands_transforms)

    def seed(self, seed: Seed, full: str, event: Event) -> None:
        """A seed, and the modes that come with it."""
        what = full.replace("()", "")
        settings = self._settings(event, (*seed.when_mode, *seed.when_lenient), seed.parameters)
        event = _with_constants(event, settings)
        value = self.facts.argument(event, seed.argument, seed.parameters)
        is_none = value is not None and value.known and value.value is None
        left_out = (seed.optional and (is_none or (value is None and not event.opaque))) or (seed.defaulted and is_none)
        for channel in () if left_out or (seed.lazy and event.bare) else seed.seeds:
            self.recorder.add("seed", what, channel)
        if seed.mode or (seed.when_mode and self.facts.meets(event, seed.when_mode, seed.parameters)):
            self.recorder.add("flag", what, "mode")
            if seed.when_lenient and self.facts.meets(event, seed.when_lenient, seed.parameters):
                self.recorder.add("flag", what, "lenient")
            self.recorder.environment(seed.environment)
        elif seed.switch and self._told(event, seed):
            if not any(self._is_left_off(settings.get(condition.argument)) for condition in seed.when_mode):
                self.recorder.add("flag", what, "relaxed")
        else:
            self.recorder.environment(seed.environment if not seed.when_mode else ())
            if seed.give and not event.opaque:
                self.recorder.add("flag", full, "switch")

    def _told(self, event: Event, seed: Seed) -> bool:
        """Whether a switch was given at all: what it is set against is TDL204's and TDL208's business."""
        switches = [condition.argument for condition in seed.when_mode]
        if any(self.facts.given(event, switch, seed.parameters) for switch in switches):
            return True
        return event.opaque and (not event.composed or self._named(switches))

    def _is_left_off(self, setting: Argument | None) -> bool:
        """Whether `setting` is a parameter of this function that is off here, and is so by its default: nobody has
        turned anything."""
        parameter = parameter_of(setting) if setting is not None and not setting.value else None
        body = self.recorder.files.summary(self.recorder.node.file).body(self.recorder.node.name)
        return parameter is not None and body is not None and not body.defaults.get(parameter, True)

    def _named(self, switches: list[str]) -> bool:
        """Whether one of `switches` is spoken of in the file that calls."""
        text = self.recorder.files.text(self.recorder.node.file)
        return any(switch in text for switch in switches)

    def switches(self, name: str, event: Event) -> None:
        """What the name of a library's function says of CUDA, of convolutions, of the mode and of who looks on."""
        devices = self.facts.devices
        module = next((module for module in devices.modules if name.startswith(f"{module}.")), None)
        if module is not None and not name[len(module) + 1 :].startswith(devices.queries):
            enabled = event.keywords.get("enabled", event.positional[0] if event.positional else None)
            if enabled is None or not enabled.known or enabled.value is not False:
                self.recorder.add("flag", channel="cuda")
        if name in devices.starting:
            self.recorder.add("flag", name, "started")
        if name in devices.needing or (name in devices.told and _is_told_cuda(event)):
            self.recorder.add("flag", name, "on_cuda")
        if name.startswith("torch.") and _is_on_cuda(event):
            self.recorder.add("draw", name, "cublas")
        if name.startswith(self.facts.words.serves):
            self.recorder.add("flag", name, "serves")
        if name.startswith(self.facts.words.measures):
            self.recorder.add("flag", name, "measures")
        if name in self.facts.words.joins:
            self.recorder.add("flag", name, "joins")
        if name in self.facts.words.starts and self._starts_afresh(event):
            self.recorder.add("flag", name, "afresh")
        if self._is_network(name) and not event.frozen:
            self.recorder.add("flag", name, "everywhere")
        if name in self.facts.modes_off:
            self.recorder.add("flag", name, "relaxed")

    def _starts_afresh(self, event: Event) -> bool:
        """Whether processes are to be started without the states of the generators."""
        given = self.facts.argument(event, "method", ("method",))
        return given is not None and given.known and given.value in self.facts.words.afresh

    def _is_network(self, name: str) -> bool:
        """Whether the name of a library's function makes a network that has convolutions."""
        hints = self.facts.hints
        if not name.startswith(hints.networks) or name.startswith(hints.no_networks):
            return False
        if hints.beside_networks.search(name.rpartition(".")[2]):
            return False
        return not any(part in name for part in ("()", "eight", "._", ".*."))

    def in_workers(self, event: Event, runner: Runner, given: Mapping[str, Any] | None = None) -> bool:
        """Whether a loader runs its dataset in worker processes, which torch seeds from its own generator; `given` are
        the constants of the function around it, this one if there are none."""
        value = self.facts.argument(event, runner.workers, runner.parameters)
        if value is None:
            return False
        if value.known:
            return bool(value.value)
        known = self.recorder.given if given is None else given
        return bool(constant_in(known, value))

    def seeds_workers(self, event: Event) -> bool:
        """Whether a loader has a generator of its own, which is the same in every run: it seeds the workers."""
        given = event.keywords.get("generator")
        if given is None or self._asks_for_torchs_seed:
            return False
        if given.known:
            return bool(given.value == GENERATOR)
        # One that is made where a parameter is None is one name with that.
        found = [one for name in given.names for one in self.recorder.stands_for(name) if one.kind != "parameter"]
        made = bool(found) and all(one.kind == "external" and self.facts.is_generator(one.name) for one in found)
        return made or self.recorder.constant_here(given) == GENERATOR

    @functools.cached_property
    def _asks_for_torchs_seed(self) -> bool:
        """Whether the function, or its file at top level, asks for the seed of torch, which a generator may follow."""
        summary, name = self.recorder.files.summary(self.recorder.node.file), self.recorder.node.name
        bodies = [summary.body(one) for one in dict.fromkeys((MODULE, MODULE if name == STARTED else name))]
        events = (event for body in bodies if body is not None for event in body.events)
        return any(_TORCHS_SEED in event.names for event in events)


def _with_constants(event: Event, known: dict[str, Argument]) -> Event:
    """The call with the constants `known` of some of its arguments."""
    return msgspec.structs.replace(event, keywords={**event.keywords, **known}) if known else event


def _is_given_one_of(classes: tuple[str, ...], event: Event) -> bool:
    """Whether an argument of `event` is evidently an object of one of `classes`."""
    made = {f"{class_}()" for class_ in classes}
    return any(one.names and made.issuperset(one.names) for one in (*event.positional, *event.keywords.values()))


def is_of_transforms(name: str) -> bool:
    """Whether a library's `name` is one of its transforms, or an object of one."""
    return ".transforms." in name


def _is_told_cuda(event: Event) -> bool:
    """Whether a trainer is told to use CUDA."""
    told = event.keywords.get("accelerator")
    return told is not None and told.known and told.value in ("cuda", "gpu")


def _is_on_cuda(event: Event) -> bool:
    """Whether a call is told to make its result on CUDA."""
    device = event.keywords.get("device")
    return device is not None and device.known and str(device.value).startswith("cuda")


def _told(full: str) -> str:
    """The name under which a message tells of `full`: an object goes by its class, however it was made."""
    told = _OBJECT.sub(r"\1", full).replace("()", "")
    beside = _BESIDE.search(told)
    return told[beside.end() :] if beside is not None else told


def in_training(event: Event) -> bool:
    """Whether a call stands under `if self.training`, or is told whether it is so."""
    return event.trained or any(
        name.rpartition(".")[2] in ("training", "$training")
        for argument in (*event.positional, *event.keywords.values())
        for name in argument.names
    )
