"""An entry point -> the steps of each function that it reaches, and the effects of running them.

A node is one function as it runs for one receiver class; its effects are worked out once, from its own events and the
effects of what it calls, components of the call graph at a time: the cost is that of the reached functions. Nothing
here recurses over calls, so chains may be as long as they like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.program.effects import (
    Choices,
    Effects,
    Kept,
    Made,
    Node,
    Settings,
    Step,
    combine,
    draws_unseeded,
    handed,
)
from torchdet_lint.program.files import ProjectFiles
from torchdet_lint.program.imported import Imports
from torchdet_lint.program.kept_objects import KeptObjects, Notes, notes_of
from torchdet_lint.program.knowledge import tables_of
from torchdet_lint.program.lookup import Lookup
from torchdet_lint.program.object_settings import ObjectSettings
from torchdet_lint.program.objects.unused_loaders import Trees, UnusedLoaders
from torchdet_lint.program.transfer.narrowing import Narrowing
from torchdet_lint.program.transfer.transfer import Transfer
from torchdet_lint.program.transfer.wanted import Wanted
from torchdet_lint.source.modules import ModuleMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.prefilter.outline import Outline
    from torchdet_lint.program.events import Body

_PROGRAM_ROUNDS = 3
_REACHED = 20_000


class NodeSet:
    """Some of the nodes that `numbers` counts, a bit for each: thousands of programs reach most of a project each."""

    def __init__(self, numbers: dict[Node, int], nodes: Iterable[Node] = ()) -> None:
        self._numbers = numbers
        among = [numbers.setdefault(node, len(numbers)) for node in nodes]
        bits = bytearray(max(among, default=-1) // 8 + 1)
        for number in among:
            bits[number >> 3] |= 1 << (number & 7)
        self._bits = bytes(bits)

    def __contains__(self, node: Node) -> bool:
        number = self._numbers.get(node)
        return (
            number is not None and number >> 3 < len(self._bits) and bool(self._bits[number >> 3] >> (number & 7) & 1)
        )


class Project:
    """The files below `root` together: what each function does, with all that it calls. Paths are absolute."""

    def __init__(
        self,
        library: Library,
        root: str,
        read: Callable[[str], str | None],
        seed_functions: Iterable[str] = (),
        given: Iterable[str] = (),
        outlines: Mapping[str, Outline] | None = None,
        modules: Mapping[str, Body] | None = None,
        places: ModuleMap | None = None,
    ) -> None:
        """`read` gives the text of a file, or None; `seed_functions` are the user's own seeding functions; `given` are
        files that are not on disk; `outlines`, and `modules` of what files do at top level, are those known
        already; so is what `places` has listed."""
        self.library = library
        self.facts = tables_of(library, tuple(seed_functions))
        self.files = ProjectFiles(library, root, read, outlines or {}, modules or {}, places or ModuleMap(root, given))
        self.lookup = Lookup(self.files, self.facts)
        self.narrowing = Narrowing(self.lookup, Wanted(self.lookup))
        self.imports = Imports(self.files, self.facts.words)
        self._steps: dict[Node, list[Step]] = {}
        self._effects: dict[Node, Effects] = {}
        self._notes: dict[Node, Notes] = {}
        self._unused: dict[Node, frozenset[Made]] = {}
        self._trees = Trees(self.files)
        self._base: Project | None = None
        self._numbers: dict[Node, int] = {}
        self._shared = self._alike = NodeSet(self._numbers)

    def steps(self, node: Node) -> list[Step]:
        """What `node` does, in order."""
        project, known = self, self._steps.get(node)
        while known is None and project._base is not None and node in project._shared:
            project = project._base
            known = project._steps.get(node)
        if known is None:
            transfer = Transfer(project.lookup, node, project.narrowing, project._unused.get(node, ()))
            known = project._steps[node] = transfer.run()
            notes = notes_of(transfer.constructors, transfer.factories, transfer.asks, transfer.decides, transfer.loads)
            transfer.release()
            if notes is not None:
                project._notes[node] = notes
        return known

    def of_program(self, start: Node) -> Project:
        """The project as the program that runs `start` has it: what its constructors are given is what the attributes
        are that keep it. It is the project itself where that says nothing new."""
        project = self._importing(start)
        for _ in range(_PROGRAM_ROUNDS):
            reached, notes = project._noted(start)
            objects = KeptObjects(project.lookup, notes, project.narrowing)
            asking = objects.asking()
            kept = objects.of(asking) if asking else {}
            if kept.keys() <= project.lookup.kept.keys():
                return project._with_settings(reached, notes)._without_unused_loaders(start)
            again = {
                node
                for node, attributes in asking.items()
                if any((node.owner[0], node.owner[1], attribute) in kept for attribute in attributes)
            }
            project = project._with(project.lookup.kept | kept, {}, again, reached)
        return project._with_settings(*project._noted(start))._without_unused_loaders(start)

    def _importing(self, start: Node) -> Project:
        """The project in which registries hold what is registered in the files that the program `start` imports: the
        project itself where that is all that it may reach."""
        reached = self._reached(start)
        registering = self.files.registering.intersection(
            step.node.file for node in reached for step in self.steps(node) if step.node is not None
        )
        placing = {node: self.files.placing[node.file] for node in reached if node.file in self.files.placing}
        wanted = registering.union(*placing.values())
        imported = self.imports.of(start.file, reached) if wanted else None
        if imported is None or wanted <= imported:
            return self
        again = {
            node
            for node in reached
            if any(step.node is not None and step.node.file in registering - imported for step in self.steps(node))
            or not placing.get(node, set()) <= imported
        }
        return self._with({}, {}, again, reached, imported=imported)

    def _noted(self, start: Node) -> tuple[list[Node], dict[Node, Notes]]:
        """The nodes that `start` reaches, and the notes on those that have some."""
        reached = self._reached(start)
        return reached, {node: told for node in reached if (told := self._notes_of(node)) is not None}

    def _with_settings(self, reached: list[Node], notes: dict[Node, Notes]) -> Project:
        """The project with the constants that the objects of a program are made with, which runs the `reached` nodes,
        where they rule out something that has an effect."""
        deciding = [node for node, told in notes.items() if told.decides]
        if not deciding:
            return self
        files = frozenset(node.file for node in reached)
        settings = ObjectSettings(self.lookup, notes, files).of()
        again = {
            node
            for node in deciding
            if any((*node.owner, name) in settings for name in notes[node].decides) and self._has_effects(node)
        }
        return self._with(self.lookup.kept, settings, again, reached) if again else self

    def _without_unused_loaders(self, start: Node) -> Project:
        """The project in which loaders draw nothing that the program makes and never goes through."""
        if not any(draws_unseeded(key, self.effects(start)) for key in self.effects(start)):
            return self
        reached, notes = self._noted(start)
        if len(reached) >= _REACHED:
            return self
        loaders = UnusedLoaders(self.lookup, self._trees, reached, self.steps)
        unused: dict[Node, frozenset[Made]] = {}
        for node in (node for node, told in notes.items() if told.loads):
            steps = self.with_effects(node)
            drawing = {step.ref[1:3] for step, inner in steps if any(key.startswith("draw:") for key in inner)}
            made = [one for one in notes[node].loads if one.told in drawing]
            found = frozenset(one for one in made if loaders.is_unused(node, one))
            if found:
                unused[node] = found
        return self._with(self.lookup.kept, self.lookup.settings, {*unused}, reached, unused=unused) if unused else self

    def _has_effects(self, node: Node) -> bool:
        """Whether a step of `node` that stands on a branch, calls something or puts it on a device has an effect."""
        return any(
            step.branch or step.node is not None or step.channel == "cuda" or step.kind == "draw"
            for step in self.steps(node)
            if step.node is None or self.effects(step.node)
        )

    def home(self, node: Node) -> Project:
        """The project in which `node`, and all that it reaches, was the same first."""
        project = self
        while project._base is not None and node in project._alike:
            project = project._base
        return project

    def _notes_of(self, node: Node) -> Notes | None:
        return self._first_with_steps(node)._notes.get(node)

    def _first_with_steps(self, node: Node) -> Project:
        """The project in which the steps of `node` were the same first."""
        project = self
        while project._base is not None and node in project._shared:
            project = project._base
        return project

    def _with(
        self,
        kept: Kept,
        settings: Settings,
        again: set[Node],
        reached: list[Node],
        *,
        imported: frozenset[str] | None = None,
        unused: dict[Node, frozenset[Made]] | None = None,
    ) -> Project:
        """The project with what is `kept`, the `settings` and the `unused` loaders, the steps of `again` among the
        `reached` nodes still to be worked out, and the effects of what leads there; `imported` are the files whose
        registrations count."""
        other = object.__new__(Project)
        other.library, other.facts, other.files = self.library, self.facts, self.files
        other.lookup = Lookup(self.files, self.facts, kept, settings, imported or self.lookup.imported)
        other.narrowing = self.narrowing.by(other.lookup)
        other.imports = self.imports
        other._steps, other._notes, other._effects = {}, {}, {}
        other._unused, other._trees = unused or {}, self._trees
        other._base, other._numbers = self, self._numbers
        other._shared = NodeSet(self._numbers, (node for node in reached if node not in again))
        leading = self._leading_to(again, reached)
        other._alike = NodeSet(self._numbers, (node for node in reached if node not in leading))
        return other

    def _leading_to(self, wanted: set[Node], nodes: list[Node]) -> set[Node]:
        """Those of `nodes` from which a step leads, through any number of others, to one of `wanted` or out of them."""
        among = set(nodes)
        callers: dict[Node, list[Node]] = {}
        found = set(wanted)
        for node in nodes:
            for step in self.steps(node):
                if step.node is not None:
                    callers.setdefault(step.node, []).append(node)
                    if step.node not in among:
                        found.add(step.node)
        queue = list(found)
        while queue:
            for caller in callers.get(queue.pop(), ()):
                if caller not in found:
                    found.add(caller)
                    queue.append(caller)
        return found

    def _reached(self, start: Node) -> list[Node]:
        """The nodes that `start` reaches, in a fixed order; of very many, only so many."""
        found = {start: None}
        queue = [start]
        while queue and len(found) < _REACHED:
            for step in self.steps(queue.pop()):
                if step.node is not None and step.node not in found:
                    found[step.node] = None
                    queue.append(step.node)
        return list(found)

    def effects(self, node: Node) -> Effects:
        """The effects of running `node`, with all that it calls."""
        project, known = self, self._effects.get(node)
        while known is None and project._base is not None and node in project._alike:
            project = project._base
            known = project._effects.get(node)
        if known is None:
            project._settle(node)
            known = project._effects[node]
        return known

    def _settle(self, start: Node) -> None:
        """Tarjan's algorithm without recursion: components come out with all that they call settled."""
        numbers: dict[Node, int] = {}
        low: dict[Node, int] = {}
        path: list[Node] = []
        on_path: set[Node] = set()
        work: list[tuple[Node, Iterator[Node]]] = []

        def enter(node: Node) -> None:
            numbers[node] = low[node] = len(numbers)
            path.append(node)
            on_path.add(node)
            work.append((node, iter([step.node for step in self.steps(node) if step.node is not None])))

        enter(start)
        while work:
            node, callees = work[-1]
            for callee in callees:
                if callee in self._effects or callee in self._alike:
                    continue
                if callee not in numbers:
                    enter(callee)
                    break
                if callee in on_path:
                    low[node] = min(low[node], numbers[callee])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == numbers[node]:
                    members: list[Node] = []
                    while True:
                        member = path.pop()
                        on_path.discard(member)
                        members.append(member)
                        if member == node:
                            break
                    self._conclude(members)

    def _conclude(self, members: list[Node]) -> None:
        """Effects of one component: a call back into it adds nothing to what comes first, only to what there is."""
        if len(members) == 1:
            self._effects[members[0]] = self._combined(members[0])
            return
        for _ in range(2):
            for node in members:
                self._effects[node] = self._combined(node)
        everything: Effects = {}
        for node in reversed(members):
            for key, ref in self._effects[node].items():
                if key.startswith(("draw:", "own:", "seed:", "apart:", "flag:")):
                    everything.setdefault(key, ref)
        for node in members:
            for key, ref in everything.items():
                self._effects[node].setdefault(key, ref)

    def _combined(self, node: Node) -> Effects:
        found: Effects = {}
        arms: dict[str, tuple[int, ...]] = {}
        for step, inner in self._with_effects(node, self._settled):
            if inner:
                combine(found, arms, step, inner)
        return found

    def with_effects(self, node: Node) -> Iterator[tuple[Step, Effects]]:
        """The steps of `node`, each with its effects."""
        return self._with_effects(node, self.effects)

    def _with_effects(self, node: Node, known: Callable[[Node], Effects]) -> Iterator[tuple[Step, Effects]]:
        """The steps of `node` with their effects, as far as those of what they call are `known`."""
        steps = [(step, handed(known(step.node) if step.node is not None else {}, step)) for step in self.steps(node)]
        choices = Choices(steps)
        for step, inner in steps:
            yield step, choices.of(step, inner)

    def _settled(self, node: Node) -> Effects:
        """The effects of `node` as far as they are known."""
        known = self._effects.get(node)
        if known is None:
            known = self.effects(node) if node in self._alike else {}
        return known
