"""A name as a file's summary has it -> what it stands for in the project: modules, classes, functions, instances."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchdet_lint.program.effects import LEVELS, THINGS, TOKEN, Thing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.program.files import ProjectFiles
    from torchdet_lint.program.knowledge import Tables


_NESTED = 60
_FAMILY = 40
_CALLED = ("class", "function")
_SOURCES = (".py", ".pyw", ".ipynb")


class Lookup:
    """What names stand for, worked out once each."""

    def __init__(self, files: ProjectFiles, facts: Tables) -> None:
        self.files = files
        self.facts = facts
        self.library = facts.library
        self._evaluated: dict[tuple[str, str, tuple[str, str], str, int], tuple[Thing, ...]] = {}
        self._families: dict[tuple[str, str], list[Thing]] = {}
        self._open: set[tuple[str, str, tuple[str, str], str, int]] = set()
        self._partial: set[tuple[str, str, tuple[str, str], str, int]] = set()
        self._open_families: set[tuple[str, str]] = set()
        self._cut = False

    def evaluate(
        self, name: str, file: str, owner: tuple[str, str] = ("", ""), within: str = "", level: int = LEVELS
    ) -> tuple[Thing, ...]:
        """What `name`, as a summary of `file` has it, stands for; `within` is the function, `owner` its receiver.

        `level` is how many results of functions and attributes may be looked through on the way."""
        mine = owner if name.startswith("$") else ("", "")
        key = (name, file, mine, within if name.startswith("$super") else "", level)
        known = self._evaluated.get(key)
        if known is not None:
            self._cut |= key in self._partial
            return known
        if len(self._open) > _NESTED:
            self._cut = True
            return ()
        before, self._cut = self._cut, False
        self._evaluated[key] = ()
        self._open.add(key)
        self._partial.add(key)
        found = self._evaluate(name, file, owner, within, level)
        known = self._evaluated[key] = tuple(dict.fromkeys(found))[:THINGS]
        self._open.discard(key)
        if not self._cut:
            self._partial.discard(key)
        self._cut |= before
        if not self._open:
            self._partial.discard(key)
            self._forget()
        return known

    def _forget(self) -> None:
        """Drop what was worked out while an answer it depends on was still open, or out of reach."""
        for partial in self._partial:
            del self._evaluated[partial]
        self._partial.clear()
        self._cut = False

    def _made(self, name: str, file: str, level: int) -> list[Thing]:
        """What `%path()` and its attributes stand for: results of the `_target_` of a configuration."""
        tokens = TOKEN.findall(name[1:])
        found: list[Thing] = []
        for mapping in self.files.configured(file, tokens[0]):
            target = mapping.get("_target_")
            if isinstance(target, str):
                found.extend(self.evaluate(self.library.canonical(target), file, level=level))
        return self.follow(found, tokens[1:], level)

    def _evaluate(self, name: str, file: str, owner: tuple[str, str], within: str, level: int) -> list[Thing]:
        if name.startswith("%"):
            return self._made(name, file, level)
        if name.startswith("?."):
            return [Thing("unknown", file, name[2:])]
        if name.startswith("$"):
            things, tokens = self._dollar(name, file, owner, within, level)
        elif name.startswith("@."):
            things, tokens = [Thing("module", file)], TOKEN.findall(name[2:])
        elif name.startswith("*."):
            tokens = TOKEN.findall(name[2:])
            return self.follow(self._starred(file, tokens[0], level), tokens[1:], level)
        else:
            return self._imported_name(name, file, level)
        return self.follow(things, tokens, level)

    def _dollar(
        self, name: str, file: str, owner: tuple[str, str], within: str, level: int
    ) -> tuple[list[Thing], list[str]]:
        tokens = TOKEN.findall(name[1:])
        first = tokens.pop(0)
        if first in ("self", "cls"):
            if not owner[1]:
                return [Thing("unknown", file, tokens[-1] if tokens else first)], []
            return [Thing("instance" if first == "self" else "class", *owner)], tokens
        if first == "super":
            return self._above(owner, file, within, tokens, level), []
        return [Thing("parameter", file, name[1:])], []

    def _above(self, owner: tuple[str, str], file: str, within: str, tokens: list[str], level: int) -> list[Thing]:
        """`super().method` in the method `within`: the next class after its own in the receiver's order."""
        if not owner[1] or not tokens or tokens[0] == "()":
            return []
        defining = (file, within.rpartition(".")[0])
        family = self.family(owner)
        places = [index for index, kind in enumerate(family) if (kind.file, kind.name) == defining]
        for kind in family[places[0] + 1 if places else 0 :]:
            found = self._own_attribute(kind, tokens[0], owner, level)
            if found:
                return self.follow(found, tokens[1:], level)
        return []

    def _imported_name(self, name: str, file: str, level: int) -> list[Thing]:
        plain, paren, after = name.partition("()")
        if plain.partition(".")[0] in self.library.roots and (
            plain in self.library.known or self.facts.speaks_of(self.library.canonical(plain))
        ):
            # What the tables say of a framework holds beside its own source too.
            return [Thing("external", "", self.library.canonical(name))]
        place = self.files.modules.locate(plain, file)
        if place is None:
            if name.startswith("."):
                return [Thing("unknown", file, TOKEN.findall(name)[-1])]
            return [Thing("external", "", name)]
        tokens = [*place.rest, *(("()",) if paren else ()), *TOKEN.findall(after)]
        found = [Thing("module", place.path)]
        if not place.rest and not name.startswith("."):
            found = self._hidden(place.path, level) or found
        return self.follow(found, tokens, level)

    def _hidden(self, file: str, level: int) -> list[Thing]:
        """What the package of the module `file` calls by its name: `from .launch import launch` hides the module."""
        folder, base = os.path.split(file)
        initial = os.path.join(folder, "__init__.py")
        if not base.endswith(".py") or base == "__init__.py" or "__init__.py" not in self.files.modules.listing(folder):
            return []
        return [thing for thing in self._member(initial, base[:-3], level) if thing.kind in ("function", "class")]

    def follow(self, things: Sequence[Thing], tokens: Sequence[str], level: int = LEVELS) -> list[Thing]:
        """What attributes and calls, `tokens`, of `things` stand for."""
        current = list(things)
        for token in tokens:
            following: list[Thing] = []
            for thing in current:
                following.extend(self._called(thing, level) if token == "()" else self._attribute(thing, token, level))
            current = list(dict.fromkeys(following))[:THINGS]
        return current

    def _attribute(self, thing: Thing, name: str, level: int) -> list[Thing]:
        kind = thing.kind
        if kind == "external":
            return [Thing("external", "", self.library.canonical(f"{thing.name}.{name}"))]
        if kind == "module":
            return self._member(thing.file, name, level)
        if kind == "function":
            inner = f"{thing.name}.{name}"
            if self.files.summary(thing.file).body(inner) is not None:
                return [Thing("function", thing.file, inner, thing.owner)]
            return [Thing("unknown", thing.file, name)]
        if kind in ("class", "instance"):
            return self.class_attribute(thing, name, level)
        return [Thing("unknown", thing.file, name)]

    def _member(self, file: str, name: str, level: int) -> list[Thing]:
        """What `name` is in the module `file`: a definition, an import, a value or a submodule."""
        if name == "*" and file.endswith(_SOURCES):
            picked = self.files.summary(file).defined
            return [thing for one in picked for thing in self._member(file, one, level) if thing.kind in _CALLED]
        if file.endswith(_SOURCES):
            summary = self.files.summary(file)
            found: list[Thing] = []
            for full in summary.stands_for(name):
                if full == f"@.{name}" or full.startswith(f"@.{name}'"):
                    local = full[2:]
                    found.append(Thing("class" if summary.kind(local) is not None else "function", file, local))
                else:
                    found.extend(self.evaluate(full, file, level=level))
            if found:
                return found
            if summary.stands_for(name):
                return [Thing("unknown", file, name)]
        starred = self._starred(file, name, level)
        if starred:
            return starred
        if not file.endswith(_SOURCES) or file.endswith("__init__.py"):
            folder = os.path.dirname(file) if file.endswith(_SOURCES) else file
            names = self.files.modules.listing(folder)
            if f"{name}.py" in names:
                return [Thing("module", os.path.join(folder, f"{name}.py"))]
            if f"{name}/" in names:
                inside = os.path.join(folder, name)
                initial = os.path.join(inside, "__init__.py")
                return [Thing("module", initial if "__init__.py" in self.files.modules.listing(inside) else inside)]
        return [Thing("unknown", file, name)]

    def _starred(self, file: str, name: str, level: int) -> list[Thing]:
        if not file.endswith(_SOURCES):
            return []
        for module in self.files.summary(file).stars:
            place = self.files.modules.locate(module, file)
            if place is None:
                full = self.library.canonical(f"{module}.{name}")
                if full in self.library.known:
                    return [Thing("external", "", full)]
            elif not place.rest and place.path != file:
                found = self.evaluate(f"{module}{'' if module.endswith('.') else '.'}{name}", file, level=level)
                if found and found[0].kind != "unknown":
                    return list(found)
        return []

    def class_attribute(self, thing: Thing, name: str, level: int = LEVELS) -> list[Thing]:
        """What the attribute `name` of a class or an instance stands for."""
        me = (thing.file, thing.name)
        for kind in self.family(me):
            found = self._own_attribute(kind, name, me, level, as_class=thing.kind == "class")
            if found:
                return found
        if thing.kind == "instance" and name in self.facts.fluent:
            return [Thing("fluent", *me)]
        return [Thing("unknown", thing.file, name)]

    def _own_attribute(
        self, kind: Thing, name: str, owner: tuple[str, str], level: int, *, as_class: bool = False
    ) -> list[Thing]:
        """What the class `kind` itself gives to its instances under `name`."""
        if kind.kind == "external":
            if name == "__init__":
                return [Thing("external", "", kind.name)]
            full = f"{kind.name}.{name}" if as_class else f"{kind.name}().{name}"
            return [Thing("external", "", full, owner)] if self.facts.speaks_of(full) else []
        summary = self.files.summary(kind.file)
        own = summary.kind(kind.name)
        if own is None:
            return []
        if name in own.methods:
            if name in own.properties and not as_class:
                return self._called(Thing("function", kind.file, own.methods[name], owner), level)
            return [Thing("function", kind.file, own.methods[name], owner)]
        if level <= 0:
            return []
        found: list[Thing] = []
        for full in summary.attribute(kind.name, name):
            things = self.evaluate(full, kind.file, owner, kind.name + ".", level - 1)
            found.extend(thing for thing in things if thing.kind != "parameter")
        return found

    def _called(self, thing: Thing, level: int) -> list[Thing]:
        if thing.kind == "external":
            return [Thing("external", "", f"{thing.name}()")] if thing.name.count("()") < 4 else []
        if thing.kind in ("class", "fluent"):
            return [Thing("instance", thing.file, thing.name)]
        if thing.kind == "function":
            if thing.name.rpartition(".")[2] in self.facts.fluent and thing.owner[1]:
                return [Thing("instance", *thing.owner)]
            body = self.files.summary(thing.file).body(thing.name)
            if body is None or level <= 0:
                return []
            found: list[Thing] = []
            for name in body.returns:
                found.extend(self.evaluate(name, thing.file, thing.owner, thing.name, level - 1))
            found = [result for result in found if result.kind not in ("parameter", "unknown")]
            if (
                not found
                and body.first == "class"
                and thing.owner[1]
                and self.facts.hints.maker.match(thing.name.rpartition(".")[2])
            ):
                found = [Thing("instance", *thing.owner)]
            return found
        return []

    def family(self, kind: tuple[str, str]) -> list[Thing]:
        """A class of the project and what it derives from, nearest first: classes, and names of libraries' classes."""
        known = self._families.get(kind)
        if known is not None:
            return known
        found = [Thing("class", *kind)]
        if kind in self._open_families or len(self._open_families) > _NESTED:
            self._cut = True
            return found
        before, self._cut = self._cut, False
        self._open_families.add(kind)
        own = self.files.summary(kind[0]).kind(kind[1])
        later: list[Thing] = []
        for base in own.bases if own is not None else ():
            for thing in self.evaluate(base, kind[0]):
                if thing.kind == "class":
                    later.extend(self.family((thing.file, thing.name)))
                elif thing.kind == "external":
                    later.extend(Thing("external", "", name) for name in self.library.ancestors(thing.name))
        self._open_families.discard(kind)
        for thing in (
            *[one for one in later if one.kind == "class"],
            *[one for one in later if one.kind == "external"],
        ):
            if thing not in found and len(found) < _FAMILY:
                found.append(thing)
        if not self._cut:
            self._families[kind] = found
        self._cut |= before
        return found

    def derives(self, kind: tuple[str, str], names: frozenset[str]) -> bool:
        """Whether a class of the project derives from any of the library classes `names`."""
        return bool(kind[1]) and any(thing.kind == "external" and thing.name in names for thing in self.family(kind))
