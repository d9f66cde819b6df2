"""Files of a project -> the rows in arms that all calls in them rule out, by the constants that they pass or leave."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from torchdet_lint.prefilter.assigned import ANY
from torchdet_lint.program.effects import Referent
from torchdet_lint.program.events import MODULE, PLAIN, PRESENT, Body
from torchdet_lint.program.graded.runs import Namings
from torchdet_lint.program.switches import SWITCH
from torchdet_lint.program.syntax.hollow import parsed_body
from torchdet_lint.program.syntax.shapes import functions_in, last_word
from torchdet_lint.program.transfer.passing import (
    bound_arguments,
    is_present,
    parameter_in,
    parameter_of,
    parameters_of,
    passed_constant,
    remade,
    setting_of,
)
from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torchdet_lint.program.events import Event
    from torchdet_lint.program.files import ProjectFiles
    from torchdet_lint.program.graded.runs import Naming


# Without a group: from the file's own names, or from whatever module.
_PICKS = lazy(
    r"\bgetattr[ \t]*\(\s*([\w.]+)\s*,\s*[^\"'\s]|\b([\w.]+)\.__dict__\s*\[(?!\s*[\"'])|\bglobals\(\)\s*\[(?!\s*[\"'])"
    r"|(?<![\w.])eval[ \t]*\(|\bsys\.modules\["
)
_MODULES = "sys.modules"
# So many calls in turn pass a value on.
_HOPS = 3
_ABOVE = ".__init__"
_STARS = lazy(r"import[ \t]*\(?[ \t]*\*")
# A row, and a column from 0.
Place = tuple[int, int]


class _Asking(NamedTuple):
    """A function of a file that asks for constants, the `maker` that takes them, what stands for that, and the calls in
    the function by the rows that are asked for. The maker is the constructor, of a method, or the function itself;
    `word` is what is called, and empty for what a file does at top level."""

    path: str
    body: Body
    word: str
    maker: Body
    referent: Referent
    calls: dict[int, list[Event]]


class _Site(NamedTuple):
    """A call, and the function at top level or the method in which it stands; the name is empty where that is none."""

    event: Event
    path: str
    function: str


class Unreached:
    """The rows of files that no call in the `texts` of a project leads to, of those of the calls that are asked for by
    their `places`, row and column from 0."""

    def __init__(self, places: Mapping[str, Sequence[Place]], texts: Sequence[str], project: ProjectFiles) -> None:
        self._project = project
        self._texts = texts
        asking = [one for path in places for one in self._functions(path, places[path])]
        if asking and picks_by_name(texts, project):
            asking = []
        self._asked = frozenset(one.word for one in asking) - {""}
        self._namings = Namings(self._asked, texts, project)
        # A call may pass what the function around it is given, or the object: those who call that are asked, by word.
        self._outer: dict[str, Namings] = {}
        self._called: dict[tuple[str, str], list[_Site] | None] = {}
        self.rows: dict[str, tuple[int, ...]] = {}
        for one in asking:
            dead = set(self._ruled_out(one)) - {0}
            found = [
                row for row, events in one.calls.items() if all(not dead.isdisjoint(event.branch) for event in events)
            ]
            if found:
                self.rows[one.path] = tuple(sorted({*self.rows.get(one.path, ()), *found}))

    def _functions(self, path: str, places: Sequence[Place]) -> Iterator[_Asking]:
        """The functions of a file that ask for constants, and what it does at top level, in which a call stands in a
        row of `places` and in an arm."""
        rows = {row for row, _ in places}
        statements = parsed_body(self._project.text(path)) if rows else []
        decorated = _decorated(statements)
        summary = self._project.summary(path)
        functions = [
            (name, {row for row in rows if node.lineno <= row <= (node.end_lineno or node.lineno)})
            for name, node in functions_in(statements)
        ]
        outside = rows.difference(*(inside for _, inside in functions))
        for name, inside in [*functions, (MODULE, outside)]:
            class_ = name.rpartition(".")[0]
            body = summary.body(name) if inside and class_ not in decorated else None
            maker = summary.body(f"{class_}.__init__") if class_ and body is not None else body
            if body is None or maker is None or not body.tests or (not class_ and body.decorators):
                continue
            calls: dict[int, list[Event]] = {}
            for event in body.events:
                for row in inside & {event.row, event.statement} if event.kind == "call" else ():
                    calls.setdefault(row, []).append(event)
            calls = {row: _at(events, row, places) for row, events in calls.items()}
            calls = {row: events for row, events in calls.items() if all(event.branch for event in events)}
            if calls:
                owner = (path, class_) if class_ else ("", "")
                referent = Referent("function", path, f"{class_}.__init__" if class_ else name, owner)
                yield _Asking(path, body, class_ or name, maker, referent, calls)

    def _ruled_out(self, asking: _Asking) -> Iterator[int]:
        """The arms of a function that do not run, whoever calls it."""
        for test in asking.body.tests:
            values: list[Any] = []
            if SWITCH.search(test.parameter) is not None:
                told = self._project.switches.of(test.parameter)
                values = [] if told is None else [told]
            elif test.parameter.startswith("self."):
                values = self._kept(asking, test.parameter[5:])
            elif asking.body is asking.maker and (test.dead or test.dead_otherwise):
                values = self._passed(asking, test.parameter)
            arms = {test.rules_out(value) for value in values}
            if len(arms) == 1:
                yield arms.pop()

    def _kept(self, asking: _Asking, attribute: str, hops: int = _HOPS) -> list[Any]:
        """What an attribute may be that the constructor alone assigns; nothing where that is not known."""
        summary = self._project.summary(asking.path)
        told = summary.setting(asking.word, attribute)
        if told is None or ANY in summary.assigned:
            return []
        values = [told.value] if told.known else self._passed(asking, parameter_in(told) or "", hops)
        values = [remade(value, told.rebound) for value in values]
        known = all(isinstance(one, PLAIN) for one in values) and not self._is_given_below(asking.word, attribute)
        return values if known and not self._project.assignments(attribute, frozenset(self._texts)) else []

    def _is_given_below(self, word: str, attribute: str, hops: int = _HOPS) -> bool:
        """Whether a class that derives from the one called `word` gives the attribute another value."""
        files = (path for path, _ in self._namings_of(word).of(word))
        heirs = [(path, one.name) for path in files for one in self._deriving(path, word)]
        return any(
            hops == 0
            or self._project.summary(path).setting(heir, attribute) is not None
            or self._is_given_below(heir, attribute, hops - 1)
            for path, heir in heirs
        )

    def _heirs_in(self, path: str, word: str) -> dict[int, str]:
        """The classes at top level of a file that derive from the one called `word`, and from no other, by the rows in
        which they say so."""
        return {one.bases[0].lineno: one.name for one in self._deriving(path, word) if len(one.bases) == 1}

    def _deriving(self, path: str, word: str) -> Iterator[ast.ClassDef]:
        """The classes at top level of a file that derive from the one called `word`."""
        for one in parsed_body(self._project.text(path)):
            if isinstance(one, ast.ClassDef) and any(last_word(base) == word for base in one.bases):
                yield one

    def _passed(self, asking: _Asking, parameter: str, hops: int = _HOPS) -> list[Any]:
        """The constants that all calls pass for a parameter, or leave to its default; none where one is not known."""
        calls = self._calls(asking) if parameter in parameters_of(asking.referent, asking.maker) else None
        values: list[Any] = []
        for site in calls or ():
            found = self._passed_at(site, asking, parameter, hops)
            if not found:
                return []
            values += found
        return values

    def _passed_at(self, site: _Site, asking: _Asking, parameter: str, hops: int) -> list[Any]:
        """The constant that a call passes for a parameter, or those that its function is given for what it passes, or
        that the object around it keeps."""
        arguments = bound_arguments(asking.referent, asking.maker, site.event)
        value = passed_constant(parameter, arguments, site.event, asking.maker)
        if isinstance(value, PLAIN):
            return [value]
        argument = arguments.get(parameter)
        if is_present(argument):
            return [PRESENT]
        if argument is None or hops == 0:
            return []
        kept, own = setting_of(argument), parameter_of(argument)
        around = self._around(site, by_class=kept is not None)
        if around is None or around.word == asking.word:
            return []
        return self._kept(around, kept[5:], hops - 1) if kept is not None else self._passed(around, own or "", hops - 1)

    def _around(self, site: _Site, *, by_class: bool) -> _Asking | None:
        """The function around a call, as one whose callers are asked, or the constructor of the object, `by_class`."""
        class_, _, name = site.function.rpartition(".")
        by_class = by_class or name == "__init__"
        function = f"{class_}.__init__" if by_class else site.function
        body = self._project.summary(site.path).body(function) if name and (class_ or not by_class) else None
        if body is None or (body.decorators and not class_):
            return None
        if by_class and class_ in _decorated(parsed_body(self._project.text(site.path))):
            return None
        referent = Referent("function", site.path, function, (site.path, class_) if class_ else ("", ""))
        return _Asking(site.path, body, class_ if by_class else name, body, referent, {})

    def _namings_of(self, word: str) -> Namings:
        """Where files name `word`."""
        if word in self._asked:
            return self._namings
        if word not in self._outer:
            self._outer[word] = Namings(frozenset({word}), self._texts, self._project)
        return self._outer[word]

    def _calls(self, asking: _Asking) -> list[_Site] | None:
        """The calls of the function, or those that make an object of the class; None where one of the files may do
        something else with it: hand it on, derive from it, or name it in a text."""
        key = asking.path, asking.word
        if key not in self._called:
            found: list[_Site] | None = []
            for path, naming in self._namings_of(asking.word).of(asking.word):
                calls = self._calls_in(path, naming, asking.word)
                found = found + calls if found is not None and calls is not None else None
            self._called[key] = found
        return self._called[key]

    def _calls_in(self, path: str, naming: Naming, word: str) -> list[_Site] | None:
        text = self._project.text(path)
        if any(other in text for other in (f'"{word}"', f"'{word}'", f"{word} as ")):
            return None
        found: list[_Site] = []
        lines = split_lines(text)
        heirs = self._heirs_in(path, word)
        for row, times in Counter(naming.rows.get(word, ())).items():
            if row in heirs and times == 1:
                above = self._from_heir(path, heirs[row])
                if above is None:
                    return None
                found += above
                continue
            body = naming.function(row) or self._project.summary(path).body(MODULE)
            calls = [event for event in body.events if _calls(event, row, word)] if body is not None else []
            if len(calls) + lines[row - 1].count(f"super({word},") != times:
                return None
            found += (_Site(event, path, naming.name(row)) for event in calls)
        return found

    def _from_heir(self, path: str, heir: str) -> list[_Site] | None:
        """The calls of the constructor above by that of a class which derives from one, or those that make an object of
        it, where it has none of its own; None where these are not known."""
        body = self._project.summary(path).body(f"{heir}.__init__")
        if heir in _decorated(parsed_body(self._project.text(path))):
            return None
        if body is None:
            return self._calls(_Asking(path, Body(0), heir, Body(0), Referent("class", path, heir), {}))
        calls = [event for event in body.events if any(name.endswith(_ABOVE) for name in event.names)]
        return [_Site(calls[0], path, f"{heir}.__init__")] if len(calls) == 1 else None


def picks_by_name(texts: Sequence[str], project: ProjectFiles, home: str = "") -> bool:
    """Whether a file takes something by a name that it works out, from a module of the project or from its own names:
    that may be what is called, with whatever it is given there. What `home` alone names is none of another file's own
    names, unless that takes in all that a module has; but `eval` may spell it out where the module is imported,
    `eval("nets." + name)`."""
    spelt = "|".join(map(re.escape, PurePath(home).with_suffix("").parts[-2:])) if home else ""
    modules = {part for path in texts for part in PurePath(path).with_suffix("").parts[-2:]}
    for path in texts:
        text = project.text(path)
        own = home in ("", path) or _STARS.search(text) is not None
        evaluates = spelt != "" and re.search(rf"\bimport[ \t]+[\w., \t]{{0,200}}\b(?:{spelt})\b", text) is not None
        for match in _PICKS.finditer(text):
            named = match[1] or match[2]
            if named is None and (own or match[0].startswith((_MODULES, "eval") if evaluates else _MODULES)):
                return True
            if named is not None and named.rpartition(".")[2] in modules:
                return True
    return False


def _decorated(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """The classes at top level that have decorators: these may make objects of them."""
    return frozenset(one.name for one in statements if isinstance(one, ast.ClassDef) and one.decorator_list)


def _at(events: list[Event], row: int, places: Sequence[Place]) -> list[Event]:
    """The calls in a row that stand at `places`; all of them where one of the places is that of something else."""
    asked = {column for first, column in places if first == row}
    found = [event for event in events if event.row == row and event.column in asked]
    return found if {event.column for event in found} == asked else events


def _calls(event: Event, row: int, word: str) -> bool:
    """Whether `event` is a call, in `row`, of what is called `word`."""
    return event.kind == "call" and event.row == row and any(one.rpartition(".")[2] == word for one in event.names)
