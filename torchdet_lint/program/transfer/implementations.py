"""An abstract method of an object of which only the base class is known -> the methods that implement it.

A program whose model is annotated with a base class, or picked out of sight, calls what the classes of the project make
of the method; of many only the first are looked into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.program.effects import Referent
from torchdet_lint.regex import lazy
from torchdet_lint.source.lines import split_lines

if TYPE_CHECKING:
    from torchdet_lint.program.lookup import Lookup

# So many implementations are looked into, and so many classes that derive from one another on the way to them.
_MOST = 6
_LEVELS = 3
# So many lines of a method, the text that describes it among them, are read.
_LINES = 60
_HEIRS = lazy(r"(?m)^class[ \t]+(\w+)[ \t]*\(([^)]*)\)")
_ABSTRACT = frozenset({"abc.abstractmethod", "abc.abstractproperty"})
_RAISED = "builtins.NotImplementedError"


def implementations(lookup: Lookup, method: Referent) -> list[Referent]:
    """The methods of the project that implement `method` where that is abstract; none where it is not, or where it is
    called of an object whose own class has another one."""
    if not method.owner[1] or method.kind != "function":
        return []
    if method not in lookup.implemented:
        lookup.implemented[method] = _found(lookup, method)
    return lookup.implemented[method]


def _found(lookup: Lookup, method: Referent) -> list[Referent]:
    name = method.name.rpartition(".")[2]
    if not _is_abstract(lookup, method):
        return []
    if lookup.class_attribute(Referent("instance", *method.owner), name) != [method]:
        return []
    found: list[Referent] = []
    level = [method.owner]
    for _ in range(_LEVELS):
        if len(found) >= _MOST:
            break
        level = list(dict.fromkeys(heir for class_ in level for heir in _heirs(lookup, class_)))
        for heir in level:
            own = lookup.files.summary(heir[0]).class_summary(heir[1])
            if own is not None and name in own.methods:
                found.append(Referent("function", heir[0], own.methods[name], heir))
    return [one for one in found[:_MOST] if not _is_abstract(lookup, one)]


def _heirs(lookup: Lookup, class_: tuple[str, str]) -> list[tuple[str, str]]:
    """The classes of the project that derive from `class_` directly."""
    file, name = class_
    last = name.rpartition(".")[2]
    found = []
    for path in lookup.files.naming(file, last):
        for match in _HEIRS.finditer(lookup.files.text(path)):
            if last in match[2]:
                summary = lookup.files.summary(path).class_summary(match[1])
                bases = summary.bases if summary is not None else ()
                if any(Referent("class", file, name) in lookup.evaluate(base, path) for base in bases):
                    found.append((path, match[1]))
    return found


def _is_abstract(lookup: Lookup, method: Referent) -> bool:
    """Whether all that a method does is to say that others implement it."""
    body = lookup.files.summary(method.file).body(method.name)
    if body is None:
        return False
    if any(not _ABSTRACT.isdisjoint(names) for names in body.decorators):
        return True
    if any(event.kind != "call" or event.names != (_RAISED,) for event in body.events):
        return False
    lines = split_lines(lookup.files.text(method.file))[body.row : body.row + _LINES]
    words = (line.split(None, 2)[:2] for line in lines)
    told = next((one for one in words if one[:1] in (["raise"], ["def"], ["class"], ["async"])), [])
    return " ".join(told).startswith("raise NotImplementedError")
