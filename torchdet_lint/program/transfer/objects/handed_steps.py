"""A call of something out of sight -> the functions of the project that it is given, or has, and that take a training
step: whoever gets them is there to run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.program.effects import STARTED, Node, Referent
from torchdet_lint.program.events import MODULE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.transfer.name_hints import NameHints
    from torchdet_lint.program.transfer.recorder import Recorder

_STEP = frozenset({"backward", "step"})
_TORCH = ("torch.", "builtins.")


class HandedSteps:
    """What takes the steps of one function's runners; `recorder` notes that they run."""

    def __init__(self, recorder: Recorder, hints: NameHints) -> None:
        self.recorder = recorder
        self.hints = hints

    def given(self, name: str, referent: Referent, event: Event) -> None:
        """A call of something out of sight that is given functions: those that train run."""
        if not self._is_of_nobody(name, referent) or not (event.positional or event.keywords):
            return
        self._run(one for one in self._handed([event]) if one.kind == "function")

    def fitted(self, last: str, first: str) -> None:
        """A method that trains by its name: of an object of a class out of sight, which was given objects of the
        project, or of one that derives from such a class."""
        if not self.hints.hints.training.search(last):
            return
        recorder, owner = self.recorder, first.rpartition(".")[0]
        made = owner.removesuffix("()")
        if made != owner and not made.startswith(_TORCH) and self.hints.is_out_of_sight(made):
            node = recorder.node
            body = recorder.files.summary(node.file).body(MODULE if node.name == STARTED else node.name)
            makers = [one for one in body.events if one.kind == "call" and made in one.names] if body else []
            self._run(self._steps_of(self._handed(makers)))
        elif owner and self._is_of_a_base_out_of_sight(first, owner):
            self._run(self._steps_of(recorder.stands_for(owner)))

    def _is_of_nobody(self, name: str, referent: Referent) -> bool:
        """Whether what is called is out of sight, and no table speaks of it."""
        facts = self.recorder.facts
        known = name.startswith(_TORCH) or facts.makes(name) or facts.speaks_of(name) or facts.speaks_of(referent.name)
        return referent.kind == "external" and not known

    def _is_of_a_base_out_of_sight(self, method: str, owner: str) -> bool:
        """Whether nobody knows the method but a class out of sight, from which that of the object `owner` derives."""
        family = (
            base
            for one in self.recorder.stands_for(owner)
            if one.kind == "instance"
            for base in self.recorder.lookup.family((one.file, one.name))
        )
        unknown = all(one.kind in ("external", "unknown", "fluent") for one in self.recorder.stands_for(method))
        return unknown and any(one.kind == "external" and not one.name.startswith(_TORCH) for one in family)

    def _handed(self, events: Iterable[Event]) -> Iterator[Referent]:
        for event in events:
            for argument in (*event.positional, *event.keywords.values()):
                for name in argument.names:
                    yield from self.recorder.stands_for(name)

    def _steps_of(self, objects: Iterable[Referent]) -> Iterator[Referent]:
        """The methods of objects of the project, of their own class or of one above it."""
        files, lookup = self.recorder.files, self.recorder.lookup
        for one in dict.fromkeys(objects):
            family = lookup.family((one.file, one.name)) if one.kind == "instance" else ()
            summaries = [files.summary(kind.file).class_summary(kind.name) for kind in family if kind.kind == "class"]
            for method in dict.fromkeys(name for class_ in summaries if class_ for name in sorted(class_.methods)):
                yield from lookup.class_attribute(one, method)[:1]

    def _run(self, functions: Iterable[Referent]) -> None:
        for one in dict.fromkeys(functions):
            body = self.recorder.files.summary(one.file).body(one.name) if one.kind == "function" else None
            if body is not None and _takes_a_step(body):
                self.recorder.add("later", node=Node(one.file, one.name, one.owner))


def _takes_a_step(body: Body) -> bool:
    """Whether a function computes gradients and steps an optimizer by them."""
    called = {name.rpartition(".")[2] for event in body.events if event.kind == "call" for name in event.names}
    return called >= _STEP
