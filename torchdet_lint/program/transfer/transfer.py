"""The events of one function -> its steps: what each call stands for, and what it does."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.program.effects import (
    BESIDE,
    BUILT,
    BY_HAND,
    HANDED,
    NAMED_CALL,
    SEEDED,
    STARTED,
    TOKEN,
    WORKER,
    Made,
    Node,
    Process,
    Ref,
    Referent,
    Step,
)
from torchdet_lint.program.events import (
    AT,
    CHILDREN,
    CUDNN,
    GENERATOR,
    GIVEN,
    GUARD,
    LOADED,
    LOADER,
    MODULE,
    NAMED,
    REST,
    Argument,
    Body,
    Event,
    Names,
    is_result,
    unplaced,
)
from torchdet_lint.program.switches import SWITCH
from torchdet_lint.program.syntax.shapes import FACTORIES
from torchdet_lint.program.syntax.training.descent import RETURNED
from torchdet_lint.program.transfer.configured_calls import COMMAND_LINE, ConfiguredCalls
from torchdet_lint.program.transfer.configured_constructors import configured
from torchdet_lint.program.transfer.fitting import fitting
from torchdet_lint.program.transfer.implementations import implementations
from torchdet_lint.program.transfer.library_calls import LibraryCalls, is_of_transforms
from torchdet_lint.program.transfer.name_hints import NameHints
from torchdet_lint.program.transfer.objects.handed_steps import HandedSteps
from torchdet_lint.program.transfer.objects.loaders import Loaders, MadeLoader, Own, working
from torchdet_lint.program.transfer.objects.made import made_with
from torchdet_lint.program.transfer.passing import (
    UNKNOWN,
    at_call,
    bound_arguments,
    constants,
    few_options,
    gives_itself,
    handed,
    hands_rest_on,
    is_given,
    known_in,
    lent,
    loaders_lent,
    of_class_above,
    parameter_of,
    rest_of,
    ruled_out,
    started,
    with_rest,
    with_texts,
)
from torchdet_lint.program.transfer.recorder import Recorder
from torchdet_lint.program.transfer.relays import captured, followed, handed_parameters, relayed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set

    from torchdet_lint.catalogue.facts import Runner
    from torchdet_lint.program.lookup import Lookup
    from torchdet_lint.program.transfer.narrowing import Narrowing

_LOADERS = frozenset({LOADER})
# Of these the items are made without gradients.
_DATA = frozenset({"torch.utils.data.Dataset"})
# Layers of which only the weight has a gradient, the input being numbers of rows.
_LOOK_UPS = ("torch.nn.Embedding",)
# What an argument is called that is a transform.
_TRANSFORMS = ("transform", "transforms")
# What the layers and networks of torch are called.
_LAYERS = "torch.nn."
# What goes through a container.
_GONE = ".__iter__"
# So many functions hand a function, a class or an object on before one uses it.
_RELAYS = 3
# So many containers are looked into that stand in one another.
_NESTED = 12


class Transfer(Recorder):
    """The transfer function of one node: its events in, its steps out."""

    def __init__(self, lookup: Lookup, node: Node, narrowing: Narrowing, unused: Collection[Made] = ()) -> None:
        """`unused` are the loaders that nothing goes through."""
        super().__init__(lookup, node)
        self.wanted = narrowing.wanted
        self.libraries = LibraryCalls(self)
        self.configured = ConfiguredCalls(self)
        self.hints = NameHints(self)
        self.steps_handed = HandedSteps(self, self.hints)
        self.narrowing = narrowing
        self.loaders = Loaders(lookup)
        # What constructors of loaders name themselves, by the names that stand for it here.
        self._named_there: dict[str, Own] = {}
        self._finders = lookup.facts.words.locates
        # Constructors that are called, functions that hand on what they are given, and attributes of `self` through
        # which something unknown is called.
        self.constructors: list[tuple[Referent, Event]] = []
        self.factories: list[tuple[Referent, Event]] = []
        self.asks: list[str] = []
        # The loaders that are made, of which some may draw.
        self.loads: list[Made] = []
        self._unused = unused
        # The event of a call that stands in this function itself.
        self._own: Event | None = None
        # The functions that are defined in arms that do not run.
        self._undefined: frozenset[str] = frozenset()
        self._narrowed: dict[str, tuple[Referent, ...]] = {}
        # How what is called here runs, if in a process of its own; and which one, if it is a method of an object.
        self._process: str = ""
        self._within: Process | None = None
        # The classes of the containers whose layers are being called.
        self._around: list[tuple[str, str]] = []
        # What functions were handed at the event at hand: a class may be handed to itself.
        self._handed: set[tuple[str, str, tuple[tuple[str, tuple[Referent, ...]], ...], tuple[tuple[str, Any], ...]]]
        self._handed = set()

    def run(self) -> list[Step]:
        """The steps of the node, in order."""
        node = self.node
        name = MODULE if node.name == STARTED else node.name
        body = self.files.summary(node.file).body(name)
        if body is None:
            return []
        self._decorated(body)
        self.hints.optimised = frozenset(self.hints.models(body))
        without = GUARD if node.name == MODULE else -GUARD
        dead = {without, *self._ruled_out(body)} - {0}
        self._undefined = frozenset(name for name, arms in body.arms.items() if not dead.isdisjoint(arms))
        for event in body.events:
            if not dead.isdisjoint(event.branch):
                continue
            if node.name == MODULE and event.deferred:
                continue
            self.event = event
            self._handed.clear()
            getattr(self, f"on_{event.kind}")(event)
        return self.found

    def release(self) -> None:
        """Let go of what refers back to this, so that nothing waits for the collector, which a lint leaves off."""
        del self.libraries, self.configured, self.hints

    def stands_for(self, name: str) -> tuple[Referent, ...]:
        """What a name of this node stands for, with the constants of its calls."""
        if name in self._named_there:
            return self._named_there[name].found
        if "()" in name:
            if name not in self._narrowed:
                self._narrowed[name] = self.narrowing.narrowed(name, self.node, self.constant_here)
            found = self._narrowed[name]
        else:
            found = super().stands_for(with_texts(name, self.given))
        if self._undefined:
            here = self.node.file
            found = tuple(one for one in found if one.name not in self._undefined or one.file != here)
        return found

    def given_here(self, argument: Argument) -> Any:
        """The same of an attribute of an object that is made here, `config.type`, too."""
        value = super().given_here(argument)
        owner, _, attribute = argument.names[0].rpartition(".") if len(argument.names) == 1 else ("", "", "")
        if value is UNKNOWN and attribute.isidentifier() and (is_result(owner) or owner.startswith("@.")):
            value = self.narrowing.held(owner, attribute, self.node, self.given)
        if value is UNKNOWN and attribute.isupper() and (told := self.files.switches.of(argument.names[0])) is not None:
            value = told
        return value

    def _ruled_out(self, body: Body) -> Iterator[int]:
        """The arms that do not run for the constants of the node, and those that its object is made with."""
        yield from ruled_out(body, {name: value for name, value in self.given.items() if name[:5] != "self."})
        for test in body.tests:
            if test.parameter.startswith("self."):
                values = self.of_self(test.parameter)
                arms = {test.rules_out(value) for value in values}
                if len(arms) == 1:
                    yield arms.pop()
            elif SWITCH.search(test.parameter) is not None:
                told = self.files.switches.of(test.parameter)
                yield test.rules_out(told) if told is not None else 0
        yield from self.narrowing.options.ruled_out(self.node.file, body)

    def _decorated(self, body: Body) -> None:
        """What the wrapper of a decorator of the project does before the function itself; what it is given first is the
        object, if it calls that `self`."""
        self.event = Event("call", body.row, 0, body.row)
        for names in body.decorators:
            for name in names:
                for referent in self.stands_for(name):
                    if referent.kind == "function":
                        inner = self.files.summary(referent.file).body(referent.name)
                        owner = referent.owner if referent.owner[1] else self.node.owner
                        for wrapper in inner.inner if inner is not None else ():
                            self.add("call", node=Node(referent.file, wrapper, owner))
                    elif referent.kind in ("unknown", "external"):
                        self.hints.perhaps_seeds(referent, Event("call", body.row, 0, body.row))
        for maker, outside, event in configured(self.lookup, self.node, body):
            if outside:
                self.called_plainly(maker)
            self.constructors.append((Referent("function", *self.node[:3]), event))

    # ------------------------------------------------------------------ events

    def on_import(self, event: Event) -> None:
        """An import runs the modules it names."""
        seen: set[str] = set()
        for name in event.names:
            for file in self.files.files_of(name, self.node.file):
                if file not in seen:
                    seen.add(file)
                    self.add("call", node=Node(file, MODULE))

    def on_env(self, event: Event) -> None:
        """Environment variables are set: that which hides all GPUs, to a value of the program's own or another one."""
        self.environment(event.names)
        for value in event.positional:
            given = value.value if value.known else self.constant_here(value)
            hides = isinstance(given, (str, int)) and self.facts.devices.hides_all.fullmatch(str(given)) is not None
            self.add("flag", event.names[-1], "hidden" if hides else "visible")

    def on_cuda(self, event: Event) -> None:
        """A text speaks of CUDA, or the program fails without."""
        self.add("flag", channel="cuda")
        if event.names == ("needed",):
            self.add("flag", channel="on_cuda")

    def on_tell(self, event: Event) -> None:
        """A value is printed, or a loop waits for somebody."""
        self.add("flag", channel=event.names[0])

    def on_update(self, event: Event) -> None:
        """A gradient is updated in place, or a tensor by its gradient."""
        if event.names[0] == "step":
            self.add("flag", BY_HAND, "locked" if event.locked else "steps")
            if RETURNED in event.names:
                self.add("flag", channel="backward")
                self.add("flag", channel="trains")
        else:
            self.add("flag", channel="update" if not event.locked else "locked")

    def on_set(self, event: Event) -> None:
        """What an attribute is given is looked up where it is read, but for the switch of the convolutions; of a
        property, what runs is called."""
        value = event.positional[0]
        self._properties(event, assigned=True)
        if value.known and value.value is True and any(map(self._is_of_cudnn, event.names)):
            self.add("flag", channel="cudnn")

    def _is_of_cudnn(self, name: str) -> bool:
        """Whether `name` stands for the switch of the convolutions, by whatever import."""
        last = name.endswith(CUDNN.rpartition(".")[2])
        return last and any(referent.name == CUDNN for referent in self.stands_for(name))

    def on_iterate(self, event: Event) -> None:
        """A loader is iterated: it draws now what it draws at all, and runs what its workers would."""
        for name in event.names:
            if name.startswith(LOADED):
                self.add("borrow", LOADER, name)
                continue
            for made in self._loaders_returned(name):
                for full in self.facts.spellings(made.name):
                    self.libraries.iterated(full, made.event)
            for made in self._loaders_made(name, event):
                self._named_there |= made.own
                for full in self.facts.spellings(made.name):
                    self.libraries.iterated(full, made.event)
                    for runner in self.facts.runners.get(full, ()):
                        self.run_handed(msgspec.structs.replace(runner, deferred=False), made.event)

    def _loaders_made(self, name: str, event: Event) -> Iterator[MadeLoader]:
        """The loaders of libraries that `event` makes, a call of what `name` stands for."""
        for referent in self.stands_for(name):
            if referent.kind == "external":
                yield MadeLoader(referent.name, event, {})
            elif referent.kind == "class" and (made := self.loaders.made(referent[1:3], event)) is not None:
                yield made

    def _loaders_returned(self, name: str) -> Iterator[MadeLoader]:
        """The loaders of libraries that a function of the project makes and returns, where `name` stands for what a
        call of it gives, or for what stands there at a place; of those of which only the caller knows whether they
        shuffle, none."""
        if not is_result(name):
            return
        whole, sign, place = name.partition(AT)
        for referent in self.stands_for(whole.removesuffix("()")):
            body = self.files.summary(referent.file).body(referent.name) if referent.kind == "function" else None
            loader = body.loaders.get(f"{sign}{place}") if body is not None else None
            if loader is None or not all(one.known for one in _shuffles(loader)):
                continue
            for called in loader.names:
                for made in self.lookup.evaluate(called, referent.file, referent.owner, referent.name):
                    if made.kind == "external":
                        yield MadeLoader(made.name, loader, {})

    def on_read(self, event: Event) -> None:
        """An attribute is read, which may be a property."""
        self._properties(event)

    def _properties(self, event: Event, *, assigned: bool = False) -> None:
        for name in event.names:
            owner, _, last = name.rpartition(".")
            for referent in self.stands_for(owner) if owner else ():
                for target in self.lookup.property_called(referent, last, assigned=assigned):
                    self.add("call", node=Node(target.file, target.name, target.owner))

    def on_call(self, event: Event) -> None:
        """A call, of whatever its names stand for: of one of them, where it may be several."""
        if self._is_of_its_own(event):
            return
        self.event = event = self._with_rest(event)
        if event.reloaded and not self._loads_all(event.reloaded):
            self.event = event = msgspec.structs.replace(event, reloaded=())
        found: dict[Referent, str] = {}
        for name in event.names:
            if name.endswith(_GONE):
                self.gone_through.add((f"{name.removesuffix(_GONE)}.", event.branch))
            if self.lookup.counts(name, found):
                for referent in self.stands_for(name):
                    found.setdefault(referent, name)
        if any(NAMED in name for name in found.values()):
            # What the finder itself gives, by whatever text, says less.
            found = {one: name for one, name in found.items() if one.name.removesuffix("()") not in self._finders}
        fits = fitting(self.lookup, found, [event])
        found = self._implemented(fits)
        if not found:
            self.hints.perhaps_seeds(Referent("unknown", self.node.file, event.names[0]), event)
        all_run = len(found) > 1 and self.called_in_turn(event)
        arms_of = [()] * len(found) if all_run else self.alternatives(len(found))
        any_of = found if all_run else self.one_of(found, whichever=len(found) > len(fits))
        for referent, arms in zip(any_of, arms_of, strict=True):
            name = found[referent]
            self.event = one = msgspec.structs.replace(event, branch=event.branch + arms) if arms else event
            if one.unapplied and referent.kind not in ("class", "external"):
                # A function may keep what it gives, and apply it.
                self.event = one = msgspec.structs.replace(one, unapplied=False)
            self._own = one
            self.called(*of_class_above(self.lookup, self.node, name, referent, one))
            self._own = None
            self.hints.out_of_sight(name, referent, one)
            self.steps_handed.given(name, referent, one)
            self.built(name, referent, one)
            if referent.kind == "unknown" and name.startswith("$self."):
                self.asks.append(name)
                if NAMED in name and referent.name.isidentifier():
                    self.add("flag", referent.name, f"{NAMED_CALL}{referent.name}".removeprefix("flag:"))
        self.event = event
        self._transforms(event)
        last = unplaced(event.names[0]).rpartition(".")[2].removesuffix("()")
        self.by_last_name(last, event, set(found))

    def _loads_all(self, names: Names) -> bool:
        """Whether `names` stand for models alone, of which `load_state_dict` is torch's."""
        found = [one for name in names for one in self.stands_for(name)]
        return bool(found) and all(
            one.kind == "external"
            or (
                one.kind == "instance"
                and self.lookup.derives((one.file, one.name), self.facts.words.modules)
                and not any(own.kind == "function" for own in self.lookup.class_attribute(one, "load_state_dict"))
            )
            for one in found
        )

    def _with_rest(self, event: Event) -> Event:
        """`event` with the `**options` of the function around, where these are known."""
        rest = self.given.get(REST) if REST in event.keywords else None
        body = self.files.summary(self.node.file).body(self.node.name) if rest is not None else None
        known = rest is not None and body is not None and hands_rest_on(event, body)
        return with_rest(event, body, rest) if known and body is not None and rest is not None else event

    def _implemented(self, found: dict[Referent, str]) -> dict[Referent, str]:
        """`found` with what implements an abstract method in its place; what a constructor was given may tell more."""
        told: dict[Referent, str] = {}
        for referent, name in found.items():
            implemented = implementations(self.lookup, referent)
            told |= dict.fromkeys(implemented or [referent], name)
            if implemented and name.startswith("$self."):
                self.asks.append(name)
        return told

    def _transforms(self, event: Event) -> None:
        """The transforms of libraries that a call hands on: who gets them applies them."""
        self.hands_transforms = True
        for name in [name for key in _TRANSFORMS if key in event.keywords for name in event.keywords[key].names]:
            for referent in self.stands_for(name):
                if referent.kind == "external" and is_of_transforms(referent.name):
                    made = Made(event.row, event.column, event.names[0].rpartition(".")[2])
                    if not self._is_unused(made):
                        self.external(referent.name, event)
        self.hands_transforms = False

    def _is_of_its_own(self, event: Event) -> bool:
        """Whether a method is called of a parameter that was given a generator, or of an attribute that keeps one, for
        which a global one would stand in."""
        for name in event.names:
            owner, dot, _ = name[1:].rpartition(".") if name[0] == "$" else ("", "", "")
            if (dot and self.given.get(owner) == GENERATOR) or (name[0] == "$" and self.given.get(name[1:]) == GIVEN):
                return True
            if owner.startswith("self.") and owner[5:].isidentifier() and self._may_draw(name):
                return self.of_self(owner) == (GENERATOR,)
        return False

    def _may_draw(self, name: str) -> bool:
        """Whether what `name` stands for draws from a global generator."""
        return any(one.kind == "external" and one.name in self.facts.draws for one in self.stands_for(name))

    def built(self, name: str, referent: Referent, event: Event) -> None:
        """A call of a method of a registry, or of a library, which makes an object of something that is registered."""
        if referent.kind == "external":
            unknown = msgspec.structs.replace(event, positional=(), keywords={}, opaque=True)
            for made in self.one_of(self.lookup.registered_with(referent.name)):
                self.called(made, unknown)
            return
        body = self.files.summary(referent.file).body(referent.name) if referent.kind == "function" else None
        if body is not None and any(result.endswith(BUILT) for result in body.returns):
            for made in self.one_of([one for one in self.stands_for(f"{name}()") if one.kind == "instance"]):
                self.constructed((made.file, made.name), event)

    def called(self, referent: Referent, event: Event) -> None:
        """A call of `referent`."""
        if referent.kind == "function":
            self.function(referent, event)
        elif referent.kind == "class":
            self.constructed((referent.file, referent.name), event)
        elif referent.kind == "instance":
            self.instance_called(referent, event)
        elif referent.kind == "external":
            self.external(referent.name, event, referent.owner)
        elif referent.kind == "unknown":
            self.hints.perhaps_seeds(referent, event)

    def function(self, referent: Referent, event: Event, *, kind: str = "call") -> None:
        """A call of a function of the project."""
        full = referent.name
        if self.facts.is_told_to_seed(full, referent.file) or not self.facts.seed_functions.isdisjoint(event.names):
            self.seeded(full)
            return
        body = self.files.summary(referent.file).body(full)
        if body is not None and body.lazy and event.bare:
            return
        if full.endswith(".__init__") and referent.owner[1]:
            self.constructors.append((referent, event))
        elif body is not None and self.wanted.hands_objects_on(referent, body, event):
            self.factories.append((referent, event))
        given = (
            constants(
                referent,
                body,
                event,
                self.given_here,
                lambda name: self.wanted.decides(referent, name),
                lambda argument: is_given(self.lookup, self.node, argument),
                self.given,
            )
            if body is not None and body.tests
            else ()
        )
        if body is not None:
            given = (*given, *self.narrowing.given(self.node, self.given, referent, body, event))
            given = tuple(one for one in given if one[0][0] != NAMED or self._may_name(one[1]))
            rest = None
            if self.wanted.switches(referent, body):
                rest = rest_of(referent, body, event, self.constant_here)
            elif self.wanted.options_decide(referent, body):
                rest = few_options(referent, body, event, self.constant_here)
            given = (*given, (REST, rest)) if rest is not None else given
        outer = self.event
        if full.endswith(".__getitem__") and self.lookup.derives(referent.owner, _DATA):
            self.event = msgspec.structs.replace(outer, ungraded=True, regraded=False)
        at = len(self.found)
        lends = (*lent(referent, body, event), *loaders_lent(referent, body, event, self._draws))
        self.add(kind, node=Node(referent.file, full, referent.owner, given), lends=lends)
        self.event = outer
        self.passed(referent, event, dict(given))
        # Where in the function it seeds by what it was handed is not known; most do so before they draw.
        self.found[at:] = sorted(self.found[at:], key=lambda step: step.kind != "seed")

    def _draws(self, argument: Argument) -> bool:
        """Whether what is passed is a loader that draws from the global generator when it is iterated."""
        loader = argument.loader
        if loader is not None:
            found = [one for name in loader.names for one in self._loaders_made(name, loader)]
        else:
            found = [one for name in argument.names for one in self._loaders_returned(name)]
        return any(
            self.facts.draws_iterated(full, one.event) for one in found for full in self.facts.spellings(one.name)
        )

    def _may_name(self, text: str) -> bool:
        """Whether what is known of a text, keys of a configuration, may lead to something that is named there."""
        return text[0] != "?" or self.files.leads_to_names(text[1:])

    def passed(self, referent: Referent, event: Event, given: Mapping[str, Any]) -> None:
        """Functions and objects that are handed to a function which calls them; `given` are the constants it gets."""
        body = self.files.summary(referent.file).body(referent.name)
        within = captured(self.lookup, referent, body) if body is not None and body.inner else {}
        if body is None or not (body.uses or within):
            return
        outer = self.event
        for inner, mappings in self.configured.handed(referent, body, event):
            self.event = at_call(outer, inner)
            self._instantiated(mappings, self.event)
        self.event = outer
        bound = self._bound(referent, body, event, {*body.uses, *(use for _, uses in within.values() for use in uses)})
        bound = {use: found for use, found in bound.items() if given.get(use) != GENERATOR}
        self._run(referent, body, bound, given)
        self.event = msgspec.structs.replace(outer, deferred=True)
        for inside, (its_body, uses) in within.items():
            self._run(inside, its_body, {use: bound[use] for use in uses if use in bound}, {})
        self.event = outer

    def _run(
        self,
        referent: Referent,
        body: Body,
        bound: Mapping[str, Sequence[Referent]],
        constant: Mapping[str, Any],
        depth: int = 0,
    ) -> None:
        """What a function calls of the parameters that are `bound`, or hands on to another one, which calls it."""
        outer = self.event
        handed_over = tuple((use, tuple(found)) for use, found in bound.items())
        key = referent.file, referent.name, handed_over, tuple(constant.items())
        if not bound or key in self._handed:
            return
        self._handed.add(key)
        dead = frozenset(ruled_out(body, constant)) - {0}
        tensors = self.facts.library.facts.tensors
        on, off = body.is_decorated_with(tensors.enable_grad), body.is_decorated_with(tensors.no_grad)
        around = msgspec.structs.replace(outer, ungraded=not on, regraded=on) if on or off else outer
        for inner in (one for one in body.events if dead.isdisjoint(one.branch)):
            self.event = at_call(around, inner)
            for name in inner.names:
                if name.startswith("$"):
                    self._used(bound, TOKEN.findall(name[1:]), inner, constant)
            given = handed_parameters(inner, bound) if inner.kind == "call" else ()
            for use in given:
                self.handed_on(inner, use, bound[use], referent, constant)
            if given and depth < _RELAYS:
                for target, its_body, its_bound in relayed(self.lookup, inner, referent, bound):
                    decides = functools.partial(self.wanted.decides, target)
                    passed = constants(target, its_body, inner, known_in(constant), decides, here=constant)
                    self._run(target, its_body, its_bound, dict(passed), depth + 1)
        self.event = outer

    def _bound(self, referent: Referent, body: Body, event: Event, uses: Set[str]) -> dict[str, list[Referent]]:
        """What the call `event` passes for those parameters of a function that it `uses`."""
        given = bound_arguments(referent, body, event)
        bound: dict[str, list[Referent]] = {}
        for use in sorted(uses):
            referents: list[Referent] = []
            names = given[use].names if use in given else ()
            stands_in = any(self.given.get(name[1:]) == GIVEN for name in names)
            for name in () if stands_in else names:
                for one in self.stands_for(name):
                    if one.kind in ("function", "class", "instance", "loader", "external"):
                        referents.append(one)
                    elif one.kind == "unknown" and name.startswith("$self."):
                        self.asks.append(name)
            if referents:
                bound[use] = referents
        return bound

    def _used(
        self, bound: Mapping[str, Sequence[Referent]], tokens: list[str], inner: Event, constant: Mapping[str, Any]
    ) -> None:
        """The call `inner` of a parameter, or of something of it, in a function whose parameters are `constant`."""
        within = self._within
        for result in self.one_of(followed(self.lookup, bound.get(tokens[0], []), tokens[1:])):
            self._within = within if len(tokens) > 1 or result.kind == "instance" else None
            if self._process and result.kind == "instance":
                for method in self._run_by(result)[:1]:
                    self.called_plainly(method)
            elif result.kind in ("function", "class", "instance"):
                body = self.files.summary(result.file).body(result.name) if result.kind == "function" else None
                asks = body is not None and body.tests and inner.kind == "call"
                told = constants(result, body, inner, known_in(constant), lambda _: False) if body and asks else ()
                self.called_plainly(result, told)
            elif result.kind == "external":
                self.external(result.name, self.event, result.owner)
        self._within = within

    def handed_on(
        self, inner: Event, use: str, referents: Sequence[Referent], callee: Referent, constant: Mapping[str, Any]
    ) -> None:
        """A parameter that the callee hands to a runner: `launch(main)` whose body is `mp.spawn(main, …)`."""
        for name in inner.names:
            for target in self.lookup.evaluate(name, callee.file, callee.owner, callee.name):
                if target.kind == "class":
                    self._loader_handed(target, inner, use, referents, constant)
                if target.kind != "external" or self.loaders.tells(callee.owner, callee.name, inner):
                    continue
                if target.name in self.facts.loaders and self._is_unused(self._made_in(callee, constant, inner)):
                    continue
                for runner in self.facts.runners.get(target.name, ()):
                    if runner.workers and self.libraries.in_workers(inner, runner, constant):
                        continue
                    if any(f"${use}" in argument.names for argument in handed(runner, inner)):
                        outer = self.event
                        for referent in self.one_of(referents):
                            self.event = self.sometimes(outer) if len(referents) > 1 else outer
                            self.run_referent(runner, referent)
                        self.event = outer
                    if runner.process:
                        self._beside(runner, inner, use, referents, callee, constant)

    def _made_in(self, callee: Referent, constant: Mapping[str, Any], inner: Event) -> Made:
        """The loader that the call `inner` makes in a function which is called here with these constants."""
        within = Node(callee.file, callee.name, callee.owner, tuple(constant.items()))
        word = inner.names[0].rpartition(".")[2]
        return Made(inner.row, inner.column, word, within, (self.event.row, self.event.column))

    def _loader_handed(
        self, class_: Referent, inner: Event, use: str, referents: Sequence[Referent], constant: Mapping[str, Any]
    ) -> None:
        """A parameter that the callee hands to a loader of the project: `Loader(data, num_workers=4)`."""
        made = self.loaders.made((class_.file, class_.name), inner)
        for full in self.facts.spellings(made.name) if made is not None else ():
            for runner in self.facts.runners.get(full, ()):
                if made is None or not any(f"${use}" in argument.names for argument in handed(runner, made.event)):
                    continue
                event = None
                if runner.workers and self.libraries.in_workers(made.event, runner, constant):
                    event = working(made.event, runner, constant)
                for referent in self.one_of(referents):
                    self.run_referent(msgspec.structs.replace(runner, deferred=event is None), referent, event)

    def _beside(
        self,
        runner: Runner,
        inner: Event,
        use: str,
        referents: Sequence[Referent],
        callee: Referent,
        constant: Mapping[str, Any],
    ) -> None:
        """A parameter that the callee hands to the target of a process: `mp.spawn(run, args=(main, …))`."""
        argument = self.facts.argument(inner, "args", runner.parameters)
        if argument is None or f"${use}" not in argument.names:
            return
        names = [name for one in handed(runner, inner) for name in one.names]
        for target in (
            one for name in names for one in self.lookup.evaluate(name, callee.file, callee.owner, callee.name)
        ):
            if target.kind == "function":
                given = self._started_with(runner, target, inner, known_in(constant), constant)
                self.add("process", BESIDE, runner.process, Node(target.file, target.name, target.owner, given))
                self.in_process(runner, target, referents, inner, callee.file, given)

    def called_plainly(self, referent: Referent, given: tuple[tuple[str, Any], ...] = ()) -> None:
        """A call of which no more is known than the constants `given`."""
        if referent.kind == "function":
            kind = "process" if self._process else "call"
            node = Node(referent.file, referent.name, referent.owner, given)
            self.add(kind, HANDED if self._process else "", self._process, node, within=self._within)
        elif referent.kind == "class":
            self.constructed((referent.file, referent.name), self.event)
        else:
            self.instance_called(referent, self.event)

    def constructed(self, class_: tuple[str, str], event: Event) -> None:
        """An object of the class `class_` of the project is made."""
        loads = "shuffle" in event.keywords and self.lookup.derives(class_, _LOADERS)
        if loads and not gives_itself(self.lookup, class_, "generator"):
            asked = {key: value for key, value in event.keywords.items() if key in ("shuffle", "generator")}
            for draw in self.facts.draws[LOADER]:
                self.libraries.draw_or_borrow(
                    draw, LOADER, msgspec.structs.replace(event, positional=(), keywords=asked)
                )
        if (made := self.loaders.made(class_, event)) is not None:
            self._loader_made(made, class_)
        for referent in self.lookup.class_attribute(Referent("instance", *class_), "__init__"):
            if referent.kind == "function":
                self.function(referent, event)
            elif referent.kind == "external":
                self.external(referent.name, event, class_)
        for name in (FACTORIES, "__post_init__"):
            for referent in self.lookup.class_attribute(Referent("instance", *class_), name):
                if referent.kind == "function":
                    self.add("call", node=Node(referent.file, referent.name, referent.owner))

    def _loader_made(self, made: MadeLoader, class_: tuple[str, str]) -> None:
        """A loader of the class `class_` of the project is made: what its workers run, and what runs here."""
        if not made.constructors:
            return  # the call is one of the library's
        self._named_there |= made.own
        for runner in (row for full in self.facts.spellings(made.name) for row in self.facts.runners.get(full, ())):
            if runner.workers:
                here = not self.libraries.in_workers(made.event, runner)
                self.hand_over(msgspec.structs.replace(runner, deferred=runner.deferred and here), made.event, class_)

    def instance_called(self, referent: Referent, event: Event) -> None:
        """An object of the project is called."""
        if self.lookup.derives((referent.file, referent.name), self.facts.words.modules):
            self._applied(referent.name)
        for method in self._run_by(referent)[:1]:
            self.function(method, event)
            return
        class_ = referent.file, referent.name
        # A container may hold others of its own class.
        if class_ in self._around or len(self._around) >= _NESTED:
            return
        if self.lookup.derives(class_, self.facts.words.containers):
            self._around.append(class_)
            for layer in self.lookup.class_attribute(referent, CHILDREN):
                self.called_plainly(layer)
            self._around.pop()

    def _applied(self, network: str) -> None:
        """A network is applied, other than by one that holds it."""
        if not self.lookup.derives(self.node.owner, self.facts.words.modules):
            self.add("flag", network, "applies")

    def _run_by(self, referent: Referent) -> list[Referent]:
        """The methods that calling an object of the project may run, nearest first."""
        methods = [one for name in ("__call__", "forward") for one in self.lookup.class_attribute(referent, name)]
        return [method for method in methods if method.kind == "function"]

    # ------------------------------------------------------------------ libraries

    def external(self, name: str, event: Event, owner: tuple[str, str] = ("", "")) -> None:
        """A call of what the tables know, or may know."""
        facts = self.facts
        if REST in event.keywords:
            event = self.configured.filled(event)
        if name in facts.words.instantiates:
            self._instantiated(self.configured.mappings(event.positional[:1]), event)
        if name in facts.words.obeys:
            self.hints.configured(event)
        known = [self.tabled(full, name, event, owner) for full in facts.spellings(name)]
        if not any(known) and not facts.makes(name):
            self.hints.perhaps_seeds(Referent("external", "", name), event)
        self.libraries.switches(name, event)
        if name.startswith(_LAYERS) and name.endswith("()"):
            self._applied(name.removesuffix("()"))
        if name == "torch.device":
            self.hints.moved(event, named=True)
        elif name.startswith(facts.words.segments):
            self.add("flag", channel="segments")

    def _instantiated(self, mappings: list[dict[str, Any]], event: Event) -> None:
        """Hydra makes what parts of a configuration say."""
        for mapping in mappings:
            for made, arguments in self.configured.instantiated(mapping, event):
                for referent in self.stands_for(made):
                    self.called(referent, arguments)

    def tabled(self, full: str, name: str, event: Event, owner: tuple[str, str]) -> bool:
        """What the tables have under `full`, a spelling of `name`; whether they have anything."""
        facts = self.facts
        if full == COMMAND_LINE:
            self.configured.command_line(event)
            for runner in facts.runners[COMMAND_LINE]:
                self.run_handed(runner, event)
            return True
        noted = full in facts.loaders or (full in facts.draws and facts.words.keeps.search(name) is not None)
        made = Made(event.row, event.column, name.rpartition(".")[2])
        if noted and event is self._own and self._is_unused(made):
            return True
        draws, seeds, runners = facts.draws.get(full, ()), facts.seeds.get(full, ()), facts.runners.get(full, ())
        for draw in draws:
            self.libraries.draw_or_borrow(draw, name if "*" in full else full, event)
        for seed in seeds:
            self.libraries.seed(seed, full, event)
        for runner in runners:
            if not (runner.workers and self.loaders.tells(self.node.owner, self.node.name, event)):
                self.hand_over(runner, event, owner)
        looks_up = full.startswith(_LOOK_UPS)
        if not (looks_up and (event.frozen or (event.kept and self._is_unapplied(event.kept)))) and any(
            facts.meets(event, op.when, spelling.parameters) for op, spelling in facts.everywhere.get(full, ())
        ):
            self.add("flag", full, "everywhere")
        if full in facts.seed_functions:
            self.seeded(full)
        return bool(draws or seeds or runners) or full in facts.everywhere

    def _is_unused(self, made: Made) -> bool:
        """Whether nothing goes through a loader, or applies a transform, of which note is taken."""
        if made not in self._unused:
            self.loads.append(made)
        return made in self._unused

    def _is_unapplied(self, attribute: str) -> bool:
        """Whether no file in sight applies a layer that an object of the class here keeps under this name, and nothing
        out of sight may: what the class derives from is in sight, but for plain modules."""
        return all(map(self._is_plain, self.lookup.family(self.node.owner))) and not self.files.applies(attribute)

    def _is_plain(self, kind: Referent) -> bool:
        """Whether all that a class derives from is known, or whether a library's class applies no layer by its name."""
        if kind.kind == "external":
            return kind.name in self.facts.words.modules
        class_ = self.files.summary(kind.file).class_summary(kind.name)
        bases = [self.lookup.evaluate(name, kind.file) for name in class_.bases] if class_ is not None else [()]
        return all({"class", "external"} & {one.kind for one in found} for found in bases)

    def run_handed(self, runner: Runner, event: Event) -> None:
        """What a runner runs of its arguments."""
        for argument in handed(runner, event):
            for name in argument.names:
                for referent in self.stands_for(name):
                    self.run_referent(runner, referent, event, name, argument.made)

    def hand_over(self, runner: Runner, event: Event, owner: tuple[str, str]) -> None:
        """A runner gets what it runs."""
        if runner.trains:
            self.add("flag", channel="trains")
            self.add("flag", channel="fits")
        if runner.steps:
            self.add("flag", "step", "steps")
        if runner.workers:
            working = self.libraries.in_workers(event, runner)
            self.add("flag", channel="workers" if working else "no_workers")
            seeded = working and self.libraries.seeds_workers(event)
            self.add("flag", channel="seeded_workers" if seeded else "other_loaders")
        if runner.host and self.facts.meets(event, runner.host, runner.parameters):
            self.add("flag", channel="host")
        elif runner.cuda:
            self.add("flag", channel="cuda")
            if runner.host:
                self.add("flag", channel="accelerated")
        for argument in handed(runner, event):
            named = [(referent, name) for name in argument.names for referent in self.stands_for(name)]
            self.asks += [name for one, name in named if one.kind == "unknown" and name.startswith("$self.")]
            referents = [referent for referent, _ in named]
            for (referent, name), _ in zip(named, self.one_of(referents), strict=True):
                # Of several functions one runs: a command.
                self.event = self.sometimes(event) if len(named) > 1 and referent.kind == "function" else event
                self.run_referent(runner, referent, self.event, name, argument.made)
            self.event = event
            if (
                runner.process == "first"
                and not argument.known
                and all(referent.kind != "function" for referent in referents)
            ):
                self.add("flag", channel="perhaps")
        if runner.bare and not event.positional and not event.keywords:
            body = self.files.summary(self.node.file).body(MODULE)
            for name in body.inner if body is not None else ():
                self.add("call", node=Node(self.node.file, name))
        if runner.itself and owner[1] and not (runner.graded and event.ungraded):
            self.run_referent(runner, Referent("instance", *owner), event)

    def run_referent(
        self,
        runner: Runner,
        referent: Referent,
        event: Event | None = None,
        name: str = "",
        place: tuple[int, ...] = (),
    ) -> None:
        """What a runner runs of `referent`, for which `name` stands here, and which is made at a `place` here."""
        targets: list[Referent] = []
        if referent.kind == "function":
            targets = [referent]
        elif referent.kind == "class" and not runner.methods:
            self.constructed((referent.file, referent.name), msgspec.structs.replace(self.event, opaque=True))
            class_ = self.files.summary(referent.file).class_summary(referent.name) if runner.bare else None
            targets = [
                Referent("function", referent.file, full, (referent.file, referent.name))
                for name, full in (sorted(class_.methods.items()) if class_ is not None else ())
                if not name.startswith("_")
            ]
        elif referent.kind in ("class", "instance"):
            receiver = Referent("instance", referent.file, referent.name)
            for method in runner.methods or ("__call__", "forward"):
                targets += [
                    found for found in self.lookup.class_attribute(receiver, method) if found.kind == "function"
                ]
        process = runner.process not in ("", "rpc")
        how = "process" if process else "later" if runner.deferred else "call"
        what: str = runner.process
        channel: str = runner.process
        lends: tuple[tuple[str, str], ...] = ()
        if runner.workers and event is not None and self.libraries.in_workers(event, runner):
            if runner.deferred and self.node.name in (MODULE, STARTED):
                return  # whoever goes through it says so there
            how, channel = WORKER, SEEDED if self.libraries.seeds_workers(event) else ""
            lender = parameter_of(event.keywords["generator"]) if "generator" in event.keywords else None
            lends = ((lender, lender),) if lender is not None else ()
            started = event.keywords.get("worker_init_fn")
            if started is None or (started.known and started.value is None):
                what = LOADER
        body = self.files.summary(self.node.file).body(MODULE if self.node.name == STARTED else self.node.name)
        outer = self.event
        if runner.workers or runner.ungraded:  # a loader's items are no results of a model
            self.event = msgspec.structs.replace(outer, ungraded=True, regraded=False)
        for target in dict.fromkeys(targets):
            made = self._made_with(body, name, referent, target, place) if referent.kind == "instance" else ()
            if runner.args and event is not None and referent.kind == "function":
                made = self._started_with(runner, target, event, self.given_here, self.given)
            self.add(how, what, channel, Node(target.file, target.name, target.owner, made), lends=lends)
            if how == "process" and event is not None:
                argument = self.facts.argument(event, "args", runner.parameters)
                names = argument.names if argument is not None else ()
                referents = [one for given in names for one in self.stands_for(given)]
                self.in_process(runner, target, referents, self.event, given=made)
        self.event = outer

    def _started_with(
        self,
        runner: Runner,
        target: Referent,
        event: Event,
        in_caller: Callable[[Argument], Any],
        here: Mapping[str, Any],
    ) -> tuple[tuple[str, Any], ...]:
        """The constants that the call `event` starts a process with, `mp.spawn(run, args=("train",))`, in a function
        which was given what is `here`."""
        body = self.files.summary(target.file).body(target.name)
        call = started(runner, event)
        if body is None or call is None:
            return ()
        decides = functools.partial(self.wanted.decides, target)
        return constants(target, body, call, in_caller, decides, here=here)

    def _made_with(
        self, body: Body | None, name: str, referent: Referent, target: Referent, place: tuple[int, ...]
    ) -> tuple[tuple[str, Any], ...]:
        """The constants that an object is made with at a `place`, for which `name` stands here, or in a constructor of
        a loader."""
        own = self._named_there.get(name)
        if own is not None:
            return made_with(self.lookup, own.body, own.name, referent, target, {})
        return made_with(self.lookup, body, name, referent, target, self.given, place)

    def in_process(
        self,
        runner: Runner,
        target: Referent,
        referents: Sequence[Referent],
        start: Event,
        file: str = "",
        given: tuple[tuple[str, Any], ...] = (),
    ) -> None:
        """What the target of a process calls of what it is given beside: `mp.spawn(run, args=(train, 2))`. The process
        starts at the call `start`, in this file or another one, with the constants `given`."""
        body = self.files.summary(target.file).body(target.name)
        handed_over = [one for one in referents if one.kind in ("function", "instance")]
        uses = [use for use in body.uses if use in body.parameters] if body is not None and handed_over else []
        if body is not None and uses:
            place = Ref(file or self.node.file, start.row, start.column, start.statement, "")
            self._process = runner.process
            self._within = Process(Node(target.file, target.name, target.owner, given), place)
            self._run(target, body, dict.fromkeys(uses, handed_over), dict(given))
            self._process, self._within = "", None

    def by_last_name(self, last: str, event: Event, referents: set[Referent]) -> None:
        """What a method's name says where its receiver is not known."""
        first = event.names[0]
        self.dispatched(first, last, referents)
        words = self.facts.words
        told = [value for key, value in event.keywords.items() if key in words.checkpoints]
        named = any(not (value.known and value.value is None) for value in told)
        if named or self.facts.hints.loading.fullmatch(last) or (first in words.reads and not event.data):
            self.add("flag", last, "loads")
            if named or not (referents or {first, last} & words.states):
                self.add("flag", last, "restores")
        if {referent.kind for referent in referents} & {"function", "class", "instance"}:
            if last == "step" and self._steps_an_optimizer(event, referents):
                self.hints.stepped(event, of_an_optimizer=True)
            elif last == "step" and self.hints.is_called_an_optimizer(first.rpartition(".")[0]):
                self.hints.stepped(event, of_an_optimizer=False)
            return
        if last == "step" and self._given_an_optimizer(event):
            self.hints.stepped(event, of_an_optimizer=True)
            return
        self.hints.trains(last, first, event)
        self.steps_handed.fitted(last, first)
        if self.hints.by_last_name(last, event):
            return
        if last == "fit" and not any(self.facts.speaks_of(referent.name) for referent in referents):
            self._fitted(event)
        elif last in ("apply", "step"):
            for referent in [
                referent
                for argument in event.positional[:1]
                for name in argument.names
                for referent in self.stands_for(name)
            ]:
                if referent.kind == "function":
                    self.add("call", node=Node(referent.file, referent.name, referent.owner))

    def _steps_an_optimizer(self, event: Event, referents: set[Referent]) -> bool:
        """Whether a call of a method `step` may be that of an optimizer, the project's own among them."""
        made = (referent.name for referent in referents if referent.kind == "external")
        return any(name.startswith("torch.optim.") for name in (*event.names, *made)) or any(
            referent.kind == "function" and self.lookup.derives(referent.owner, self.facts.words.optimizers)
            for referent in referents
        )

    def _given_an_optimizer(self, event: Event) -> bool:
        """Whether a scaler steps with an optimizer of the project: `scaler.step(optimizer)`."""
        return any(
            referent.kind == "instance"
            and self.lookup.derives((referent.file, referent.name), self.facts.words.optimizers)
            for argument in event.positional[:1]
            for name in argument.names
            if is_result(name)
            for referent in self.stands_for(name)
        )

    def _fitted(self, event: Event) -> None:
        """A trainer that something out of sight has made fits a module of Lightning; its flags are not known."""
        given = [
            referent
            for argument in event.positional[:1]
            for name in argument.names
            for referent in self.stands_for(name)
        ]
        if any(
            referent.kind == "instance" and self.lookup.derives((referent.file, referent.name), self.facts.words.fitted)
            for referent in given
        ):
            self.external(self.facts.words.fits, event)
            self.add("flag", "fit", "relaxed")

    def dispatched(self, first: str, last: str, referents: set[Referent]) -> None:
        """What a click group, a typer application, an experiment of sacred, or a function that argparse has picked
        runs: one command of them."""
        words = self.facts.words
        home, keys = self.node.file, {f".{last}", first}
        if any(referent.kind == "external" and referent.name in words.dispatches for referent in referents):
            # Before it runs a command it seeds, by an option that has no constant default.
            self.add("flag", last, "perhaps")
            owner = first.rpartition(".")[0]
            keys.add(owner)
            place = self.files.locate(owner, home) if ")" not in owner else None
            if place is not None and place.rest:
                home, names = self.files.home(place.path, list(place.rest))
                keys = set(self.files.summary(home).stands_for(names[0]))
        dispatch, event = self.files.summary(home).dispatch, self.event
        here = self.node.file, self.node.name
        for key in sorted(keys & dispatch.keys()):
            commands = [
                referent
                for name in dispatch[key]
                for referent in self.lookup.evaluate(name, home)
                if referent.kind == "function" and (referent.file, referent.name) != here
            ]
            for referent, arms in zip(commands, self.alternatives(len(commands)), strict=True):
                self.event = msgspec.structs.replace(event, branch=event.branch + arms) if arms else event
                self.add("call", node=Node(referent.file, referent.name))
        self.event = event


def _shuffles(loader: Event) -> Iterator[Argument]:
    """What says whether a loader shuffles, by name or by place."""
    yield from loader.positional[2:3]
    yield from (one for key, one in loader.keywords.items() if key == "shuffle")
