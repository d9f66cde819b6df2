"""The text of a file -> the units in which a set may be gone through."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.prefilter.triggers import IDENTIFIER, places
from torchdet_lint.regex import lazy
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchdet_lint.module.facts import Unit
    from torchdet_lint.module.module import Module


CALLS_SET = lazy(r"set[ \t]*\(|set\.union")
_UPDATES = lazy(r"\.update[ \t]*\(\s*$")
_CALLED = lazy(r"\w+(?:[ \t]*\(|\.union\b)")
_NAMED = lazy(r"([\w.]+(?:, [\w.]+)*)\s*(?::[^=\r\n]+)?=[^=\r\n]*$")
_LOOP = r"\bfor\b(?:(?!\b(?:if|in)\b)[^:\r\n])*\bin\s+(?:(?!sorted)[\w.]+[ \t]*\(\s*)?"
_UNPACKED = r",[ \t]*\*?[\w.]+\)?[ \t]+=[ \t]*"
_MAPPED = r"\bmap[ \t]*\([^(),\r\n]*,\s*"
_COLUMNS = r"\bDict(?:Reader|Writer)[ \t]*\([^(),\r\n]*,\s*(?:fieldnames\s*=\s*)?"
_SORTED = lazy(r"\bsorted[ \t]*\(\s*(?:(?:list|tuple)[ \t]*\(\s*)?$")
# By a length or a number of occurrences, which several elements may share.
_TIED = lazy(r"key\s*=\s*(?:len\b|lambda\b|[\w.]+\.(?:count|get|__getitem__)\b)")
_KEYED = lazy(r"\b(?:sorted|max|min)[ \t]*\(\s*(?:(?:list|tuple)[ \t]*\(\s*)?(?:self\.|cls\.)?$")
_DERIVED = lazy(
    r"(?<![\w.])(\w+)[ \t]*=[ \t]*"
    r"([^=\r\n]*(?:\.(?:intersection|difference|union|symmetric_difference|copy)[ \t]*\(|[-&|^])[^\r\n]*)"
)
_HANDED = lazy(
    r"(?<![\w.])(?:self\.|cls\.)?(?:(\w+)\.)?(\w+)[ \t]*\(\s*(?:[^()\r\n]*,\s*)?(?:\w+\s*=\s*)?(?:list[ \t]*\(\s*)?$"
)
_MADE = lazy(r"[ \t]*(?::[^=\n]+)?=[ \t]*(?:\w+\.)*(\w+)[ \t]*\(")
_GIVEN_BACK = lazy(r"\breturn (?:self\.|cls\.)?$")
# The key under which a dictionary holds what follows; a name that is bound to a display; what is read by a key, and by
# which constant ones.
_KEYED_BY = lazy(r"(?:[\"'](\w+)[\"']\s*(?::|\]\s*=)|[(,]\s*(\w+)[ \t]*=)\s*$")
_TABLE = lazy(r"(\w+)[ \t]*(?::[^=\r\n]{0,80})?=[ \t]*(?:[{\[(]|dict[ \t]*\()")
_READ_BY_KEY = lazy(r"(\w+)(?:\[|\.(?:get|items|pop|values)[ \t]*\()")
_READS_KEY = lazy(r"(?:\[\s*|\.(?:get|pop)[ \t]*\(\s*)[\"'](\w+)[\"']\s*[\]),](?!\s*=(?!=))")
_BEFORE = 100


def iterating(module: Module, display: re.Pattern[str]) -> Callable[[str], bool]:
    """Whether a unit may iterate a set: cheap evidence, so that not every unit with a set is parsed."""
    handed_on = _handed_on(module)
    is_taken, leads_on = _patterns(module.library.facts.orders.words["takers"])
    taken: set[str] = set()
    shared: set[str] = set()
    own: dict[str, set[str]] = {}
    is_read = _entries_read(module.text)
    for unit, text in zip(module.units, module.texts, strict=True):
        if "{" not in text and CALLS_SET.search(text) is None:
            continue
        tied, counted = _TIED.search(text) is not None, "most_common" in text
        for before in _before_sets(text, display):
            keyed = tied and _KEYED.search(before) is not None
            if not keyed and _SORTED.search(before):
                continue
            if (
                keyed
                or (counted and _UPDATES.search(before) is not None)
                or is_taken.search(before)
                or handed_on(before)
                or is_read(before, text)
            ):
                taken.add(text)
            elif given := _NAMED.search(before):
                for owner, _, name in (one.rpartition(".") for one in given[1].split(", ")):
                    alone = not owner and unit.piece.kind == "function"
                    # What is found in text may be an ellipsis.
                    (own.setdefault(text, set()) if alone else shared).update([name] if name else [])
    if not shared and not own:
        return taken.__contains__
    gone_through: set[str] = set()
    for unit, text in zip(module.units, module.texts, strict=True):
        named = shared | own.get(text, set())
        if not any(name in text for name in named):
            continue
        goes_on = (leads_on, _KEYED) if _TIED.search(text) is not None else (leads_on,)
        for name in _with_derived(named, text):
            befores = (text[max(0, start - _BEFORE) : start] for start in places(name, text))
            if _pops(name, text) or any(
                any(pattern.search(before) for pattern in goes_on)
                or handed_on(before)
                or (_GIVEN_BACK.search(before) and _is_called(module, unit))
                for before in befores
            ):
                taken.add(text)
                gone_through.add(name)
    gone_through |= _taken_by_bases(module, shared - gone_through, leads_on)
    if gone_through & shared:
        makes = re.compile(rf"\b(?:{'|'.join(sorted(gone_through & shared))})\s*(?::[^=\n]+)?=[^=]")
        taken.update(filter(makes.search, module.texts))
    return taken.__contains__


def _entries_read(whole: str) -> Callable[[str, str], bool]:
    """Whether what stands behind a part of a text is the entry of a dictionary that something in the file `whole` may
    read."""

    @functools.cache
    def keys() -> frozenset[str]:
        return frozenset(_READS_KEY.findall(whole))

    @functools.cache
    def tables() -> frozenset[str]:
        return frozenset(_READ_BY_KEY.findall(whole))

    @functools.cache
    def holds_read(text: str) -> bool:
        return not tables().isdisjoint(_TABLE.findall(text))

    def is_read(before: str, text: str) -> bool:
        entry = _KEYED_BY.search(before)
        if entry is None or not (entry[1] or "dict" in text):
            return False
        return (entry[1] or entry[2]) in keys() or holds_read(text)

    return is_read


def _pops(name: str, text: str) -> bool:
    """Whether `text` takes elements out of what it calls `name`."""
    return f"{name}.pop" in text and re.search(rf"{re.escape(name)}\.pop[ \t]*\([ \t]*\)", text) is not None


def _is_called(module: Module, unit: Unit) -> bool:
    """Whether `unit` is a function that the file seems to call, or to read as a property."""
    name = unit.piece.name
    return unit.piece.kind == "function" and (
        len(re.findall(rf"{name}[ \t]*\(", module.text)) > 1 or f".{name}" in module.text
    )


def _taken_by_bases(module: Module, names: Iterable[str], leads_on: re.Pattern[str]) -> set[str]:
    """Those of `names` that a class of another file goes through, from which one of this file derives."""
    left = {name for name in names if re.search(rf"\b(?:self|cls)\.{name}\b", module.text)}
    if not left:
        return set()
    edges = CallEdges(module)
    texts = {
        other.text
        for class_ in module.loading.facts.top_classes
        for other, _ in edges.ancestors(module, class_)
        if other is not module
    }
    return {
        name
        for name in left
        for text in texts
        if any(leads_on.search(text[max(0, start - _BEFORE) : start]) for start in places(name, text))
    }


def _before_sets(text: str, display: re.Pattern[str]) -> Iterator[str]:
    """What stands before each call of `set` or `frozenset` and each display of a set in `text`, those in strings left
    out."""
    displayed = (match.start() for match in display.finditer(text)) if "{" in text else ()
    for start in (*places("set", text), *places("frozenset", text), *displayed):
        before = text[max(0, start - _BEFORE) : start]
        line = before.replace("\r", "\n").rpartition("\n")[2]
        if (text[start] == "{" or _CALLED.match(text, start)) and not (line.count('"') % 2 or line.count("'") % 2):
            yield before


@functools.lru_cache(maxsize=4)
def _patterns(takers: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What stands right before a set that is gone through on the spot, and before the name of one."""
    taking = rf"\b(?:{'|'.join(sorted(takers))})[ \t]*\(\s*\(?|\*\(?"
    through = rf"{taking}|{_LOOP}|\w\.extend[ \t]*\(\s*|{_UNPACKED}|{_COLUMNS}"
    return re.compile(rf"(?:{through}|\breturn\s+)$"), re.compile(rf"(?:{through}|{_MAPPED})(?:\w+\.)?$")


def _own_names(module: Module) -> frozenset[str]:
    """The functions, methods and classes of the file, and what it imports from no library: a set may go into them as
    an argument."""
    found = {unit.piece.name for unit in module.units if unit.piece.kind in ("function", "header")}
    libraries = module.library.roots | STANDARD
    for unit in module.units:
        if unit.piece.kind == "imports":
            found.update(name for name, target in unit.piece.binds if target.partition(".")[0] not in libraries)
    return frozenset(found)


def _handed_on(module: Module) -> Callable[[str], bool]:
    """Whether what stands behind a text is an argument of a function, a class or a method of the file, or of what it
    imports from no library: of a module, or of an object that is made of a class."""
    own_names, text = _own_names(module), module.text

    @functools.cache
    def is_own(owner: str) -> bool:
        made = (_MADE.match(text, start + len(owner)) for start in places(owner, text))
        return owner in own_names or any(one is not None and one[1] in own_names for one in made)

    def handed_on(before: str) -> bool:
        call = _HANDED.search(before)
        return call is not None and (call[2] in own_names or (call[1] is not None and is_own(call[1])))

    return handed_on


def _with_derived(names: set[str], text: str) -> set[str]:
    """The sets `names`, and those that `text` makes of them, as `both = left & right`."""
    found = set(names)
    for match in _DERIVED.finditer(text):
        if not found.isdisjoint(IDENTIFIER.findall(match[2])):
            found.add(match[1])
    return found
