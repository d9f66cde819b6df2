"""A fault of a program, by file and row -> a finding in that file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.dataflow.seeding.program_seeds import ProgramSeeds
from torchdet_lint.dataflow.seeding.seed_values import SeedValues
from torchdet_lint.dataflow.seeding.taken_seeds import NUMBER, numbers_given
from torchdet_lint.engine.outcome import token
from torchdet_lint.finding import Location, NeedHelper, Related, SeedFunction, SetArgument, Violation, Withhold
from torchdet_lint.module.cells import legible
from torchdet_lint.module.module import Module, SyntaxFault
from torchdet_lint.prefilter.skeleton import parsed
from torchdet_lint.regex import lazy
from torchdet_lint.source.decoding import SourceFault, decode
from torchdet_lint.source.lines import split_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torchdet_lint.engine.linter import Linter
    from torchdet_lint.finding import Applicability, Cause, Change, Finding
    from torchdet_lint.program.entry import Fault, Story
    from torchdet_lint.source.suppress import Rows

_PLACES = 40
# An option that is a seed, by the names that parsed options and configurations go by.
_OPTION = lazy(r"\b(?:args?|cfg|conf(?:ig)?|flags|FLAGS|hparams|opts?|options|params)\.(?:\w+_)?seed\b")


class Reporter:
    """Makes findings of faults: one where two entry points share the place, none outside the linted files."""

    def __init__(
        self, linter: Linter, paths: Mapping[str, str], data: Callable[[str], bytes], text: Callable[[str], str]
    ) -> None:
        """`paths` are the linted files as the user names them; `data` and `text` give what is in a file."""
        self.linter = linter
        self.paths = paths
        self.found: dict[str, dict[tuple[int, int, str], tuple[Finding, Rows]]] = {}
        self._data = data
        self._text = text
        self._modules: dict[str, Module | None] = {}
        self._known_numbers: dict[tuple[str, str], frozenset[int]] = {}
        self._known_values: dict[str, SeedValues | None] = {}

    def report(self, fault: Fault, code: str, cause: Cause | None = None) -> None:
        """Make `fault` a finding, with its `cause`: once where two entry points share the place, never outside the
        linted files."""
        path = fault.ref.file
        if path not in self.paths:
            return
        key = (fault.ref.row, fault.ref.column, code)
        if key in self.found.get(path, {}):
            return
        module = self._module(path)
        if module is None:
            return
        row = fault.ref.row if fault.at_call else fault.ref.statement
        node = module.places.node_at(row, fault.ref.column if fault.at_call else None)
        rule = self.linter.catalogue.rules[code]
        changes = tuple(self._at_nodes(change, module) for change in fault.changes)
        safe: Applicability | None = "unsafe" if any(map(self._is_unsafe, changes)) else None
        one = Violation(node, fault.details, fault.variant, fault.severity, changes=changes, applicability=safe)
        finding, rows = self.linter.finding(module, rule, one)
        related = tuple(
            self._related(story.ref.file, story.ref.row, story.ref.column, story.message)
            for story in _bounded(fault.related)
        )
        self.found.setdefault(path, {})[key] = (msgspec.structs.replace(finding, related=related, cause=cause), rows)

    def _module(self, path: str) -> Module | None:
        if path not in self._modules:
            self._modules[path] = None
            try:
                source = legible(decode(self.paths[path], self._data(path)))[0]
                module = Module(source, self.linter.library, self.linter.target)
                self.linter.connect(module, path)
                self._modules[path] = module
            except (OSError, SourceFault, SyntaxFault):
                pass
        return self._modules[path]

    def _related(self, path: str, row: int, column: int, message: str) -> Related:
        text = self._text(path)
        lines = split_lines(text)
        line = lines[row - 1] if row <= len(lines) else ""
        characters = len(line.encode()[:column].decode(errors="replace"))
        cell, own = self._placed(path, row)
        return Related(token(path), Location(own, characters + 1), message, cell)

    def _placed(self, path: str, row: int) -> tuple[int | None, int]:
        """The cell of a row of a file, if it has cells, and the row in it."""
        if not path.endswith(".ipynb"):
            return None, row
        return decode(path, self._data(path)).place(row)

    def line(self, path: str, row: int) -> str:
        """A row of a file in words."""
        cell, row = self._placed(path, row)
        return f"line {row}" if cell is None else f"cell {cell}, line {row}"

    # ------------------------------------------------------------------ the places of changes

    def _at_nodes(self, change: Change, module: Module) -> Change:
        """`change` with nodes of `module` where it names places."""
        if isinstance(change, NeedHelper):
            return self._seeds_at_nodes(change, module)
        if isinstance(change, SeedFunction) and change.given is not None:
            return change._replace(given=module.places.node_at(change.given.row, change.given.column))
        if isinstance(change, SetArgument):
            ref = change.call
            calls = module.calls_at(ref.row, ref.column)
            named = [call for call in calls if ref.what in call.names] or calls
            if len(named) != 1:
                return Withhold(f"the call in line {ref.row} that takes `{change.name}` is not evident")
            return change._replace(call=named[0].node)
        return change

    def _seeds_at_nodes(self, change: NeedHelper, module: Module) -> NeedHelper:
        if change.before is not None:
            change = change._replace(before=module.places.node_at(change.before.statement))
        if change.name != "seeds":
            return change
        seeds = module.shared(ProgramSeeds)

        def elsewhere(library: str) -> Iterator[int]:
            return (number for path in change.files for number in self._numbers(path, library))

        values = self._values(change.options) if change.options else None
        option = values.option if values is not None else None
        if change.beside is not None:
            node = module.places.node_at(change.beside.row, change.beside.column)
            read = seeds.attribute_at(node) if values is not None else ""
            option = (values.option_called(read) if values is not None and read else None) or option
            once, varies, parses = seeds.runs_once(node), seeds.varies(node), option is not None
            seed = seeds.beside(node, change.libraries, elsewhere) if once or (varies and parses) else ""
            if option is not None and (seed.isdecimal() or (option.suits and not option.is_used(module.text))):
                seed = ""
            unlike = (varies and (not seed if once else parses)) or (not seed and seeds.has_several(node))
            change = change._replace(beside=node if seed else None, seed=seed, unlike=unlike)
        if not change.seed and change.parsed is not None and values is not None and option is not None:
            node = module.places.node_at(change.parsed.row, change.parsed.column)
            seed = seeds.below_arguments(node, option, values)
            seed = seeds.taken.unlike(seed, change.libraries, elsewhere) if seed else ""
            change = change._replace(beside=node if seed else None, seed=seed, unlike=change.unlike and not seed)
        if not change.seed and option is None and (seeds.values.kept or seeds.values.names_a_seed):
            change = change._replace(unlike=True)
            kept = seeds.kept_above(change.before)
            if kept is not None:
                seed = seeds.taken.unlike(seeds.text_of(kept), change.libraries, elsewhere)
                below = module.places.node_at(kept.statement.lineno) if change.before is not None else None
                change = change._replace(seed=seed, below=below, unlike=False)
        return change if change.seed else change._replace(seed=seeds.taken.unlike(NUMBER, change.libraries, elsewhere))

    def _is_unsafe(self, change: Change) -> bool:
        """Whether `change` seeds with a number though the program has a seed, or may; or several processes alike."""
        if not isinstance(change, NeedHelper):
            return False
        values = self._values(change.options) if change.options and change.beside is None else None
        return (
            change.joined
            or change.unlike
            or (change.beside is None and any(map(self._names_a_seed, change.files)))
            or (values is not None and (values.option is not None or values.names_at_run_time))
        )

    def _names_a_seed(self, path: str) -> bool:
        """Whether a file names an option that is a seed: the program has one, though nothing is seeded with it yet."""
        return _OPTION.search(self._text(path)) is not None

    def _numbers(self, path: str, library: str) -> frozenset[int]:
        """The numbers that a file gives objects which draw as the global generator of `library` does."""
        key = path, library
        if key not in self._known_numbers:
            conventions = self.linter.library.facts.conventions
            self._known_numbers[key] = numbers_given(conventions, library, self._text(path))
        return self._known_numbers[key]

    def _values(self, path: str) -> SeedValues | None:
        if path not in self._known_values:
            try:
                self._known_values[path] = SeedValues(parsed(self._text(path)))
            except SyntaxFault:
                self._known_values[path] = None
        return self._known_values[path]


def _bounded(stories: Sequence[Story]) -> Sequence[Story]:
    """The first of `stories`; the last of them says how many are left out."""
    left = len(stories) - _PLACES
    if left <= 0:
        return stories
    last = stories[_PLACES - 1]
    return [*stories[: _PLACES - 1], last._replace(message=f"{last.message}; {left} more places are not listed")]
