"""A call that YAML decides on -> what is made of it: Hydra's `instantiate` and Lightning's command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.program.effects import REFERENTS
from torchdet_lint.program.events import WRITTEN, Argument
from torchdet_lint.program.launch_configs import HIDDEN, UNKNOWN, called, setting
from torchdet_lint.program.transfer.passing import bound_arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from torchdet_lint.program.effects import Referent
    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.transfer.recorder import Recorder


COMMAND_LINE = "lightning.pytorch.cli.LightningCLI"


class ConfiguredCalls:
    """What configurations say of calls; what Lightning's command line does is recorded."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.facts = recorder.facts
        self.files = recorder.files

    def mappings(self, arguments: Iterable[Argument]) -> list[dict[str, Any]]:
        """What arguments such as `cfg.model` stand for in the configurations of this file's programs."""
        names = [name for argument in arguments for name in argument.names]
        return [mapping for name in names for mapping in self._at(self.recorder.node.file, name)]

    def _at(self, file: str, name: str) -> list[dict[str, Any]]:
        """What `$cfg.model` stands for in the configurations of the programs in `file`, or a part of a dictionary that
        it writes out, `=12:4.model`."""
        first, _, path = name.partition(".")
        if first.startswith(WRITTEN):
            return self.files.written(file, first, path.split(".") if path else [])
        return self.files.configured(file, path.replace(".", "/")) if path else []

    def handed(self, referent: Referent, body: Body, event: Event) -> Iterator[tuple[Event, list[dict[str, Any]]]]:
        """The calls of Hydra's `instantiate` in the function `referent`, and the parts of this file's configurations
        that `event` passes for them: `build(cfg.model)`. A part that the function's own file knows is told there."""
        first = ("$", WRITTEN) if self.files.configs_of(self.recorder.node.file) else (WRITTEN,)
        passed = {
            parameter: [name for name in argument.names if name.startswith(first)]
            for parameter, argument in bound_arguments(referent, body, event).items()
            if parameter in body.uses
        }
        if not any(passed.values()):
            return
        for inner in self.files.instantiates(referent.file, referent.name, body):
            for own in inner.positional[0].names:
                parameter, dot, rest = own[1:].partition(".")
                if not self._at(referent.file, own):
                    names = tuple(f"{name}{dot}{rest}" for name in passed.get(parameter, ()))
                    yield inner, self.mappings([Argument(names)])

    def filled(self, event: Event) -> Event:
        """`event` with what `**cfg.trainer` passes, where there is one configuration that says so."""
        found = self.mappings([event.keywords["**"]])
        keywords = {key: value for key, value in event.keywords.items() if key != "**"}
        if len(found) == 1 and HIDDEN not in found[0]:
            passed = self._turned(event.names, _passed(found[0]))
            return msgspec.structs.replace(event, keywords=passed | keywords, opaque=False)
        return msgspec.structs.replace(event, keywords=keywords)

    def instantiated(self, value: Any, event: Event, depth: int = 0) -> Iterator[tuple[str, Event]]:
        """What Hydra makes of a part of a configuration, names and the calls of them: what is inside first, unless it
        is written as before Hydra 1.1, which left that alone."""
        target, passed = called(value) if isinstance(value, dict) else ("", {})
        newer = not target or passed is value
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            if depth < REFERENTS and newer:
                yield from self.instantiated(inner, event, depth + 1)
        if not target or (depth > 0 and not newer) or value.get("_partial_"):
            return
        name = self.facts.library.canonical(target)
        keywords, opaque = self._turned([name], _passed(passed)), HIDDEN in passed
        if depth == 0:
            keywords, opaque = keywords | event.keywords, opaque or event.opaque
        elif any(seed.give for full in self.facts.spellings(name) for seed in self.facts.seeds.get(full, ())):
            opaque = True  # its switch cannot be turned at the call
        yield name, msgspec.structs.replace(event, names=(name,), positional=(), keywords=keywords, opaque=opaque)

    def _turned(self, names: Iterable[str], passed: dict[str, Argument]) -> dict[str, Argument]:
        """What a configuration passes to `names`, without the switches of deterministic mode that it leaves off: nobody
        has set these against it in the code, where they are a finding of their own."""
        rows = [row for name in names for full in self.facts.spellings(name) for row in self.facts.seeds.get(full, ())]
        switches = {condition.argument for row in rows if row.switch for condition in row.when_mode}
        return {key: one for key, one in passed.items() if key not in switches or not one.known or one.value}

    def command_line(self, event: Event) -> None:
        """Lightning's command line: what it is given in code, and in the YAML that lies beside it."""
        configurations = self.files.configs.command_lines(self.recorder.node.file)
        seeds = [setting(data, "seed_everything") for data in configurations]
        default = event.keywords.get("seed_everything_default")
        unseeded = default is not None and default.known and default.value in (None, False)
        if any(seed is UNKNOWN for seed in seeds or [UNKNOWN]):
            seeds.append(not unseeded)
        if any(seed is not False and seed is not None for seed in seeds):
            for channel in ("python", "numpy", "torch", "cuda"):
                self.recorder.add("seed", COMMAND_LINE, channel)
        modes = [setting(data, "trainer", "deterministic") for data in configurations]
        if any(mode is True for mode in modes):
            self.recorder.add("flag", COMMAND_LINE, "mode")
            self.recorder.environment(["CUBLAS_WORKSPACE_CONFIG"])
        elif (
            not configurations
            or event.opaque
            or any(mode is not UNKNOWN and mode for mode in modes)
            or not {"trainer_defaults", "args", "parser_kwargs"}.isdisjoint(event.keywords)
            or "deterministic" in self.files.text(self.recorder.node.file)
        ):
            self.recorder.add("flag", COMMAND_LINE, "relaxed")
        else:
            self.recorder.add("flag", COMMAND_LINE, "switch")
        accelerators = [setting(data, "trainer", "accelerator") for data in configurations]
        if accelerators and all(accelerator == "cpu" for accelerator in accelerators):
            self.recorder.add("flag", channel="host")
        else:
            self.recorder.add("flag", channel="cuda")
        run = event.keywords.get("run")
        if configurations and not (run is not None and run.known and not run.value):
            self.recorder.add("flag", channel="trains")
            self.recorder.add("flag", channel="fits")


def _passed(mapping: Mapping[Any, Any]) -> dict[str, Argument]:
    """The arguments that Hydra makes of a mapping, or that `**mapping` passes."""
    plain = {key: value for key, value in mapping.items() if isinstance(key, str) and not key.startswith("_")}
    return {
        key: Argument((), True, value) if value is None or isinstance(value, (bool, int, float, str)) else Argument()
        for key, value in plain.items()
        if key != HIDDEN
    }
