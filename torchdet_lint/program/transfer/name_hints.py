"""A call of something out of sight -> what its name alone says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.program.effects import STARTED, TOKEN, TRAINING_FLAGS, Referent
from torchdet_lint.program.events import MODULE, NAMED, WHERE
from torchdet_lint.program.transfer.library_calls import in_training
from torchdet_lint.program.transfer.passing import bound_arguments
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.transfer.recorder import Recorder


_MADE = lazy(r"([^$?@][\w.]*)\(\)")
_OPTIMIZER = lazy(r"(?i:(?:^|[._])opt(?:im(?:izers?)?)?$)|(?:Optimi[sz]er|Adam|SGD|Muon)\w*\(\)$")
# An argument that tells a trainer where to train.
_DEVICE = lazy("device|accelerator|cuda|cpu")


class NameHints:
    """What names say where nothing else is known, recorded."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.facts = recorder.facts
        self.hints = recorder.facts.hints
        self.optimised: frozenset[str] = frozenset()

    def by_last_name(self, last: str, event: Event) -> bool:
        """What the name of a method says; whether it says anything."""
        first = event.names[0]
        if last in self.hints.methods:
            flag = self.hints.methods[last]
            self.recorder.add("flag", last, flag)
            if flag in TRAINING_FLAGS:
                self.recorder.add("flag", last, "trains")
            if last == "cuda":
                self.recorder.add("draw", ".cuda()", "cublas")
        elif self.hints.writing.match(last) and not first.startswith(
            (*self.facts.words.serves, *self.facts.words.measures)
        ):
            if not self._downloads(event):
                self.recorder.add("flag", last, "writes")
        elif last == "train" and _switches_off(event):
            self.recorder.add("flag", last, "evaluates")
        elif last == "to":
            self.moved(event)
        elif last == "step" and (not _given(event) or _of_an_optimizer(first, event)):
            self.stepped(event, of_an_optimizer=_of_an_optimizer(first, event))
            return not _given(event)
        elif last.startswith("step_") and _of_an_optimizer(first, event):
            self.stepped(event, of_an_optimizer=True)
        elif last in self.facts.tensor_draws:
            self._tensor_draw(last, first, event)
        elif last in self.facts.words.samples:
            told = event.keywords.get(self.facts.words.samples[last])
            if told is not None and told.known and told.value is True and not self.facts.speaks_of(first):
                self.recorder.add("draw", last, "torch")
        else:
            return False
        return True

    def models(self, body: Body) -> Iterator[str]:
        """What made the models of which an optimizer gets the parameters, here or in a function that is called here."""
        own = self.recorder.files.optimised(self.recorder.node.file, self.recorder.node.name, body)
        for name in self._not_found_by_text(sorted(own)):
            yield from self._makers(name)
        for event in body.events:
            if event.kind != "call" or not (event.positional or event.keywords):
                continue
            for referent in [
                referent
                for name in event.names
                for referent in self.recorder.stands_for(name)
                if referent.kind == "function"
            ]:
                inner = self.recorder.files.summary(referent.file).body(referent.name)
                names = self.recorder.files.optimised(referent.file, referent.name, inner) if inner is not None else ()
                given = bound_arguments(referent, inner, event) if inner is not None and names else {}
                for parameter in sorted(given.keys() & {name[1:] for name in names}):
                    for name in self._not_found_by_text(given[parameter].names):
                        yield from self._makers(name)

    def _not_found_by_text(self, names: Sequence[str]) -> list[str]:
        """`names` without those of functions that find what they give by a text which says what that is."""
        told = {name.partition(NAMED)[0] for name in names if NAMED in name and self.recorder.stands_for(name)}
        return [name for name in names if name.partition("(")[0] not in told]

    def _makers(self, name: str) -> Iterator[str]:
        names = (name,) if name[:1] not in "$?@" else (referent.name for referent in self.recorder.stands_for(name))
        for one in names:
            if (match := _MADE.match(one)) is not None:
                yield match[1]

    def out_of_sight(self, name: str, referent: Referent, event: Event) -> None:
        """A model whose parameters are optimised here was initialised where it was made, and a function that is called
        after training and given the optimizer trains, wherever both are defined."""
        if not (name in self.optimised or event.positional or event.keywords):
            return
        last = name.rpartition(".")[2]
        if referent.kind not in ("unknown", "external") or name.startswith("torch."):
            return
        if name in self.optimised and not self.hints.given_a_model.search(last) and not self.facts.speaks_of(name):
            self.recorder.add("draw", name, "weights")
        elif self.hints.training.search(last) and self._is_given_an_optimizer(event):
            self.recorder.add("flag", last, "trains")
            self.recorder.add("flag", last, "fits")

    def trains(self, last: str, first: str, event: Event) -> None:
        """A method that trains, of a trainer out of sight that was made here and given an optimizer: where it is not
        told where, such trainers take CUDA."""
        made = first.removesuffix(f"().{last}")
        if made == first or made.startswith("torch.") or not self.hints.training.search(last):
            return
        if not self.is_out_of_sight(made) or self.facts.speaks_of(first):
            return
        node = self.recorder.node
        body = self.recorder.files.summary(node.file).body(MODULE if node.name == STARTED else node.name)
        makers = [one for one in body.events if one.kind == "call" and made in one.names] if body is not None else []
        if not any(map(self._is_given_an_optimizer, makers)):
            return
        self.recorder.add("flag", last, "trains")
        self.recorder.add("flag", last, "fits")
        if not any(_DEVICE.search(key) or key == "**" for one in (event, *makers) for key in one.keywords):
            self.recorder.add("flag", channel="cuda")

    def _is_given_an_optimizer(self, event: Event) -> bool:
        """Whether one of the arguments of a call is an optimizer, of torch or of a library whose names say so."""
        return any(
            self.hints.optimizers.search(known)
            for argument in (*event.positional, *event.keywords.values())
            for known in argument.names
        )

    def is_called_an_optimizer(self, name: str) -> bool:
        """Whether a name says that it stands for an optimizer, of whatever base: `self.optimizer`, `FusedAdam()`."""
        return _OPTIMIZER.search(name) is not None

    def stepped(self, event: Event, *, of_an_optimizer: bool) -> None:
        """A step of an optimizer, or of something else that steps."""
        done = "stepped" if _given(event) else "locked" if event.locked else "steps"
        self.recorder.add("flag", "step", done)
        if of_an_optimizer:
            self.recorder.add("flag", "step", "trains")

    def _tensor_draw(self, last: str, first: str, event: Event) -> None:
        """A method that only tensors have, or one of a tensor that a function of torch returns."""
        if event.idle or event.opaque or first in self.facts.draws or "generator" in event.keywords:
            return
        of_an_object = first[0] == "$" or "()" in first
        if last.endswith("_") or first.startswith("torch.") or (of_an_object and last in self.facts.own_tensor_draws):
            drawn = "dropout" if in_training(event) else "torch"
            channel = "weights" if self.recorder.initialises else drawn
            self.recorder.add("draw", f"Tensor.{last}", channel, alongside=not first.startswith("torch."))

    def moved(self, event: Event, *, named: bool = False) -> None:
        """A device that `.to(…)` or `torch.device(…)` is given: CUDA, or whatever an option says; a device that is only
        `named` is not used yet. What a method `to` of the project hands on is seen where that is called."""
        hands_on = self.recorder.node.name.endswith(".to")
        for argument in (*event.positional[:1], *(value for key, value in event.keywords.items() if key == "device")):
            value = argument.value if argument.known else self.recorder.constant_here(argument)
            if isinstance(value, str) and value.startswith("cuda"):
                self.recorder.add("flag", channel="cuda")
                if not named:
                    self.recorder.add("draw", ".to('cuda')", "cublas")
                elif not event.partly:
                    self.recorder.add("flag", channel="on_cuda")
            elif not (value is None or isinstance(value, str)) and any(
                self.recorder.chooses_device(name) and not self._tells_where(name)
                for name in argument.names
                if (name.startswith(("?", "$")) and not (hands_on and name[1:].isidentifier()))
                or self.is_out_of_sight(name)
            ):
                self.recorder.add("flag", channel="cuda")

    def _tells_where(self, name: str) -> bool:
        """Whether `name` is an attribute of the object that tells where it is: a property of the project, one of a
        library's class, for no class in sight gives it a value, or one that is given the device of a tensor."""
        attribute, lookup, owner = name.removeprefix("$self."), self.recorder.lookup, self.recorder.node.owner
        if attribute == name or not attribute.isidentifier() or not owner[1]:
            return False
        if lookup.property_called(Referent("instance", *owner), attribute):
            return True
        family = lookup.family(owner)
        told = [
            lookup.files.summary(kind.file).setting(kind.name, attribute) for kind in family if kind.kind == "class"
        ]
        given = [one for one in told if one is not None]
        if given:
            return all(
                one.names[:1] == (WHERE,) and not any(map(self.recorder.chooses_device, one.names[1:])) for one in given
            )
        bases = [kind.name for kind in family if kind.kind == "external"]
        return any(not base.startswith(("torch.nn.", "builtins.")) for base in bases)

    def is_out_of_sight(self, name: str) -> bool:
        """Whether a name is imported from a file that is not there, or from a library that no table knows. A device
        that a file makes is in sight."""
        referents = self.recorder.stands_for(name)
        return (
            bool(referents)
            and not self.facts.makes(name)
            and all(referent.kind == "external" and referent.name != "torch.device()" for referent in referents)
        )

    def _downloads(self, event: Event) -> bool:
        """Whether what is written is downloaded, by what is asked around it or by the name of the function."""
        return event.downloads or self.hints.downloading.search(self.recorder.node.name.rpartition(".")[2]) is not None

    def perhaps_seeds(self, referent: Referent, event: Event) -> None:
        """A function that is not in sight and whose own name speaks of a seed silences rather than accuses."""
        tokens = [token for token in TOKEN.findall(referent.name) if token != "()"]
        if not tokens:
            return
        last = tokens[-1]
        root = tokens[0]
        if last in self.facts.seed_functions or referent.name in self.facts.seed_functions:
            self.recorder.seeded(referent.name)
            return
        if referent.kind == "external" and root in self.hints.complete:
            return
        named = self.hints.seeds.search(last) and not self.hints.seeds_not.search(last)
        if (
            named
            and last == "seed"
            and (
                (len(tokens) > 1 and self.hints.seeds_itself.search(tokens[-2]))
                or any(self.hints.seeds_itself.search(name) for name in event.names)
            )
        ):
            return
        if named and not self._is_of_complete_libraries(event):
            self.recorder.add("flag", last, "perhaps")
            if self.hints.mode.search(last) or any(self.hints.mode.search(key) for key in event.keywords):
                self.recorder.add("flag", last, "relaxed")

    def configured(self, event: Event) -> None:
        """What makes the calls that a text names, `event`, seeds perhaps where the text is not in sight, or says so."""
        text = event.positional[0].value if event.positional and event.positional[0].known else None
        if not isinstance(text, str) or self.hints.seeds.search(text):
            self.recorder.add("flag", "seed", "perhaps")

    def _is_of_complete_libraries(self, event: Event) -> bool:
        """Whether a method is called that a class of the project can only have from libraries of which all that seeds
        is in the tables."""
        lookup = self.recorder.lookup
        owners = {owner for name in event.names for owner in self.recorder.stands_for(name.rpartition(".")[0])}
        bases = [
            base.name
            for owner in owners
            if owner.kind in ("class", "instance")
            for base in lookup.family((owner.file, owner.name))
            if base.kind == "external"
        ]
        return bool(bases) and all(base.partition(".")[0] in self.hints.complete for base in bases)


def _switches_off(event: Event) -> bool:
    """Whether `net.train(False)` puts a network into evaluation mode, or `net.train(mode=training)` may."""
    mode = event.keywords.get("mode", event.positional[0] if event.positional else None)
    if mode is None or not mode.known:
        return "mode" in event.keywords
    return mode.value is False


def _given(event: Event) -> bool:
    """Whether a step is given something, as that of an environment is: an optimizer's takes a closure at most."""
    return bool(event.positional or event.opaque or event.keywords.keys() - {"closure"})


def _of_an_optimizer(first: str, event: Event) -> bool:
    """Whether a step is that of an optimizer, or is given one: `scaler.step(optimizer)`."""
    names = [first.rpartition(".")[0], *(name for argument in event.positional for name in argument.names)]
    return any(name.startswith("torch.optim.") or "opt" in name.rpartition(".")[2].lower() for name in names)
