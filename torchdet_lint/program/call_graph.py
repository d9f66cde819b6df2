"""The files together: what an entry point reaches, and what it draws, seeds and switches on the way.

A node is one function as it runs for one receiver class; its effects are worked out once, from its own events and the
effects of what it calls, components of the call graph at a time: the cost is that of the reached functions. Nothing
here recurses over calls, so chains may be as long as they like.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.outline import Outline, outline
from torchdet_lint.program.effects import LEVELS, THINGS, TOKEN, Effects, Node, Step, Thing, combine
from torchdet_lint.program.events import MODULE, Memo
from torchdet_lint.program.knowledge import Tables
from torchdet_lint.program.launch_configs import Configs
from torchdet_lint.program.scopes import Hollow
from torchdet_lint.program.summary import Shelf, Summary
from torchdet_lint.program.transfer import Expansion, optimised
from torchdet_lint.source.lines import split_lines
from torchdet_lint.source.modules import ModuleMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.program.events import Body


_TEXTS = 64
_NESTED = 60
_FAMILY = 40
_MAKER = re.compile(r"from_|create|build|load|make")
_SOURCES = (".py", ".pyw", ".ipynb")


class Project:
    """The modules below `root`, read when something in them is reached. Paths are absolute."""

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
        self.modules = places or ModuleMap(root, given)
        self.facts = Tables(library)
        self.configs = Configs(root, self.modules.listing, self.text)
        self.seed_functions = frozenset(seed_functions)
        self.memos: dict[str, Memo] = {}
        self._read = read
        self._texts: dict[str, str] = {}
        self._shelf = Shelf()
        self._summaries: dict[str, Summary] = {}
        self._outlines = dict(outlines or {})
        self._modules = modules or {}
        self._evaluated: dict[tuple[str, str, tuple[str, str], str, int], tuple[Thing, ...]] = {}
        self._families: dict[tuple[str, str], list[Thing]] = {}
        self._open: set[tuple[str, str, tuple[str, str], str, int]] = set()
        self._partial: set[tuple[str, str, tuple[str, str], str, int]] = set()
        self._open_families: set[tuple[str, str]] = set()
        self._cut = False
        self._steps: dict[Node, list[Step]] = {}
        self._effects: dict[Node, Effects] = {}
        self._optimised: dict[tuple[str, str], frozenset[str]] = {}

    # ------------------------------------------------------------------ files

    def text(self, file: str) -> str:
        """The text of a file; empty where it cannot be read."""
        known = self._texts.get(file)
        if known is None:
            if len(self._texts) >= _TEXTS:
                del self._texts[next(iter(self._texts))]
            known = self._texts[file] = self._read(file) or ""
        return known

    def outline(self, file: str) -> Outline:
        """What `file` imports, and whether it is started or does work."""
        if file not in self._outlines:
            self._outlines[file] = outline(self.text(file))
        return self._outlines[file]

    def summary(self, file: str) -> Summary:
        """The functions of `file`."""
        if file not in self._summaries:
            self._summaries[file] = Summary(
                lambda: self._hollow(file),
                self.facts.wrappers,
                self.library.canonical,
                self._memo(file),
                self._shelf,
            )
        return self._summaries[file]

    def _memo(self, file: str) -> Memo | None:
        known = self.memos.get(file)
        body = self._modules.get(file)
        return Memo({MODULE: body}, {}, {}, {}) if known is None and body is not None else known

    def _hollow(self, file: str) -> Hollow:
        known = self._outlines.get(file)
        return Hollow(split_lines(self.text(file)), known.bodies if known is not None else ())

    @property
    def summaries(self) -> dict[str, Summary]:
        """The summaries made so far."""
        return self._summaries

    def imported(self, file: str) -> set[str]:
        """The files of the project that `file` names in its imports, packages around them included."""
        found: set[str] = set()
        for dotted in self.outline(file).imports:
            found.update(self._files_of(dotted, file))
        return found

    def _files_of(self, dotted: str, file: str) -> list[str]:
        """The files that importing `dotted` runs: the module and the packages that it is in."""
        place = self.modules.locate(dotted, file)
        if place is None:
            return []
        own = (place.path,) if place.path.endswith(".py") else ()
        return [path for path in (*self.modules.packages(place.path), *own) if path != file]

    # ------------------------------------------------------------------ names

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

    def optimised(self, file: str, name: str, body: Body) -> frozenset[str]:
        """Whose parameters an optimizer gets in the function `name` of `file`."""
        if (file, name) not in self._optimised:
            self._optimised[file, name] = optimised(body)
        return self._optimised[file, name]

    def _forget(self) -> None:
        """Drop what was worked out while an answer it depends on was still open, or out of reach."""
        for partial in self._partial:
            del self._evaluated[partial]
        self._partial.clear()
        self._cut = False

    def configured(self, file: str, path: str) -> list[dict[str, Any]]:
        """What the configurations of the programs in `file` have at `path`: mappings."""
        if "hydra" not in self.text(file):
            return []
        return self.configs.at(file, self.summary(file).configs, path.split("/"))

    def _made(self, name: str, file: str, level: int) -> list[Thing]:
        """What `%path()` and its attributes stand for: results of the `_target_` of a configuration."""
        tokens = TOKEN.findall(name[1:])
        found: list[Thing] = []
        for mapping in self.configured(file, tokens[0]):
            target = mapping.get("_target_")
            if isinstance(target, str):
                found.extend(self.evaluate(self.library.canonical(target), file, level=level))
        return self._follow(found, tokens[1:], level)

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
            return self._follow(self._starred(file, tokens[0], level), tokens[1:], level)
        else:
            return self._imported_name(name, file, level)
        return self._follow(things, tokens, level)

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
                return self._follow(found, tokens[1:], level)
        return []

    def _imported_name(self, name: str, file: str, level: int) -> list[Thing]:
        plain, paren, after = name.partition("()")
        place = self.modules.locate(plain, file)
        if place is None:
            if name.startswith("."):
                return [Thing("unknown", file, TOKEN.findall(name)[-1])]
            return [Thing("external", "", name)]
        tokens = [*place.rest, *(("()",) if paren else ()), *TOKEN.findall(after)]
        found = [Thing("module", place.path)]
        if not place.rest and not name.startswith("."):
            found = self._hidden(place.path, level) or found
        return self._follow(found, tokens, level)

    def _hidden(self, file: str, level: int) -> list[Thing]:
        """What the package of the module `file` calls by its name: `from .launch import launch` hides the module."""
        folder, base = os.path.split(file)
        initial = os.path.join(folder, "__init__.py")
        if not base.endswith(".py") or base == "__init__.py" or "__init__.py" not in self.modules.listing(folder):
            return []
        return [thing for thing in self._member(initial, base[:-3], level) if thing.kind in ("function", "class")]

    def _follow(self, things: Sequence[Thing], tokens: Sequence[str], level: int) -> list[Thing]:
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
            if self.summary(thing.file).body(inner) is not None:
                return [Thing("function", thing.file, inner, thing.owner)]
            return [Thing("unknown", thing.file, name)]
        if kind in ("class", "instance"):
            return self._class_attribute(thing, name, level)
        return [Thing("unknown", thing.file, name)]

    def _member(self, file: str, name: str, level: int) -> list[Thing]:
        """What `name` is in the module `file`: a definition, an import, a value or a submodule."""
        if file.endswith(_SOURCES):
            summary = self.summary(file)
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
            names = self.modules.listing(folder)
            if f"{name}.py" in names:
                return [Thing("module", os.path.join(folder, f"{name}.py"))]
            if f"{name}/" in names:
                inside = os.path.join(folder, name)
                initial = os.path.join(inside, "__init__.py")
                return [Thing("module", initial if "__init__.py" in self.modules.listing(inside) else inside)]
        return [Thing("unknown", file, name)]

    def _starred(self, file: str, name: str, level: int) -> list[Thing]:
        if not file.endswith(_SOURCES):
            return []
        for module in self.summary(file).stars:
            place = self.modules.locate(module, file)
            if place is None:
                full = self.library.canonical(f"{module}.{name}")
                if full in self.library.known:
                    return [Thing("external", "", full)]
            elif not place.rest and place.path != file:
                found = self.evaluate(f"{module}{'' if module.endswith('.') else '.'}{name}", file, level=level)
                if found and found[0].kind != "unknown":
                    return list(found)
        return []

    def _class_attribute(self, thing: Thing, name: str, level: int = LEVELS) -> list[Thing]:
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
        summary = self.summary(kind.file)
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
            body = self.summary(thing.file).body(thing.name)
            if body is None or level <= 0:
                return []
            found: list[Thing] = []
            for name in body.returns:
                found.extend(self.evaluate(name, thing.file, thing.owner, thing.name, level - 1))
            found = [result for result in found if result.kind not in ("parameter", "unknown")]
            if not found and body.first == "class" and thing.owner[1] and _MAKER.match(thing.name.rpartition(".")[2]):
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
        own = self.summary(kind[0]).kind(kind[1])
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

    # ------------------------------------------------------------------ steps

    def steps(self, node: Node) -> list[Step]:
        """What `node` does, in order."""
        known = self._steps.get(node)
        if known is None:
            known = self._steps[node] = Expansion(self, node).run()
        return known

    # ------------------------------------------------------------------ effects

    def effects(self, node: Node) -> Effects:
        """The effects of running `node`, with all that it calls."""
        if node not in self._effects:
            self._settle(node)
        return self._effects[node]

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
                if callee in self._effects:
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
                if key.startswith(("draw:", "seed:", "flag:")):
                    everything.setdefault(key, ref)
        for node in members:
            for key, ref in everything.items():
                self._effects[node].setdefault(key, ref)

    def _combined(self, node: Node) -> Effects:
        found: Effects = {}
        arms: dict[str, tuple[int, ...]] = {}
        for step in self.steps(node):
            combine(found, arms, step, self._effects.get(step.node, {}) if step.node is not None else {})
        return found
