"""A name as a file's summary has it -> what it stands for in the project: modules, classes, functions, instances."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchdet_lint.program.effects import ITEM, LEVELS, REFERENTS, TOKEN, Referent
from torchdet_lint.program.events import ANY, AT, CHILDREN, KEY, LOADED, LOCATE, NAMED, TOLD, WRITTEN, unplaced
from torchdet_lint.program.launch_configs import called
from torchdet_lint.program.objects.placings import may_be, owner_of
from torchdet_lint.program.syntax.named_texts import DOTTED, KEYED_ITEM, OF_MODULE, spelled, unbound, with_text
from torchdet_lint.regex import lazy
from torchdet_lint.source.modules import namesake

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchdet_lint.program.effects import Kept, Settings
    from torchdet_lint.program.files import ProjectFiles
    from torchdet_lint.program.knowledge import Tables


_NESTED = 60
_FAMILY = 40
_CALLED = ("class", "function")
# Of more things that configurations name under one key nobody can tell which is meant.
_MOST_NAMED = 12
_TAKES = (["get"], ["build"])
# A name with a module that is picked at run time: its package, what its name begins and ends with, and what follows.
_PARTS = lazy(r"\[\w*\*\w*\]")
_PICKED = lazy(r"(\.*(?:\w+\.)*\w+|)\.\[(\w*)\*(\w*)\](.*)")
# A name with a key of a table in it: the table, the key, and what is done with the entry.
_KEYED = lazy(r"([^:]+):([\w-]+)(.*)")


class Lookup:
    """What names stand for, worked out once each."""

    def __init__(
        self,
        files: ProjectFiles,
        facts: Tables,
        kept: Kept | None = None,
        settings: Settings | None = None,
        imported: frozenset[str] | None = None,
    ) -> None:
        """`kept` is what the objects of one program keep, where that is known, `settings` what they are made with,
        `imported` the files that it imports."""
        self.files = files
        self.facts = facts
        self.kept = kept or {}
        self.settings = settings or {}
        self.imported = imported
        self.library = facts.library
        self._evaluated: dict[tuple[str, str, tuple[str, str], str, int], tuple[Referent, ...]] = {}
        self._families: dict[tuple[str, str], list[Referent]] = {}
        self.implemented: dict[Referent, list[Referent]] = {}
        self._open: set[tuple[str, str, tuple[str, str], str, int]] = set()
        self._partial: set[tuple[str, str, tuple[str, str], str, int]] = set()
        self._open_families: set[tuple[str, str]] = set()
        self._cut = False

    def evaluate(
        self, name: str, file: str, owner: tuple[str, str] = ("", ""), within: str = "", level: int = LEVELS
    ) -> tuple[Referent, ...]:
        """What `name`, as a summary of `file` has it, stands for; `within` is the function, `owner` its receiver.

        `level` is how many results of functions and attributes may be looked through on the way."""
        mine = owner if name.startswith("$") else ("", "")
        inside = within if name.startswith("$super") or f"{NAMED}$" in name else ""
        key = (name, file, mine, inside, level)
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
        if level > 0 and not any(map(self._knows, found)):
            found = self._placed(name, file, level) or found
        known = self._evaluated[key] = tuple(dict.fromkeys(found))[:REFERENTS]
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

    def _made(self, name: str, file: str, level: int) -> list[Referent]:
        """What `%path()` and its attributes stand for: results of the `_target_` of a configuration."""
        tokens = TOKEN.findall(name[1:])
        found: list[Referent] = []
        if not tokens:
            # The configuration as a whole, of which nobody tells here what it makes.
            return found
        first, *path = tokens[0].split("/")
        told = self.files.written(file, first, path) if first[0] == WRITTEN else self.files.configured(file, tokens[0])
        for mapping in told:
            target, _ = called(mapping)
            if target:
                found.extend(self.evaluate(self.library.canonical(target), file, level=level))
        return self.follow(found, tokens[1:], level)

    def _evaluate(self, name: str, file: str, owner: tuple[str, str], within: str, level: int) -> list[Referent]:
        if name.startswith(TOLD):
            return list(self.evaluate(name[1:], file, owner, within, level))
        if NAMED in name:
            return self._named(name, file, owner, within, level)
        if name.startswith("%"):
            return self._made(name, file, level)
        if name.startswith(WRITTEN):
            return []
        if name.startswith("?."):
            return [Referent("unknown", file, name[2:])]
        if name.startswith("$"):
            referents, tokens = self._dollar(name, file, owner, within, level)
        elif name.startswith("@."):
            return self._of_module(file, TOKEN.findall(name[2:]), level)
        elif name.startswith("*."):
            tokens = TOKEN.findall(name[2:])
            return self.follow(self._starred(file, tokens[0], level), tokens[1:], level)
        else:
            return self._imported_name(name, file, level)
        return self.follow(referents, tokens, level)

    def _named(self, name: str, file: str, owner: tuple[str, str], within: str, level: int) -> list[Referent]:
        """What a function finds by a text: `find{net/st_gcn/Model}().train`."""
        function, _, last = name.rpartition(NAMED)
        text, _, rest = last.partition("}")
        if text.startswith("$"):
            text = self._by_default(text, file, within)
        if function.endswith("."):
            # An attribute: any where nothing tells which.
            return list(
                self.evaluate(f"{function}{text if text.isidentifier() else '*'}{rest}", file, owner, within, level)
            )
        if function == LOCATE:
            found = self._spelled(text, file, level)
        else:
            found = [
                one
                for referent in (self.evaluate(function, file, owner, within, level) if level > 0 else ())
                for one in self._found_by(referent, text, file, level)
            ]
        return self.follow(found, TOKEN.findall(rest), level)

    def _found_by(self, function: Referent, text: str, file: str, level: int) -> list[Referent]:
        """What a function gives that finds it by its first argument, `text`."""
        if function.kind == "external" and function.name in self.facts.words.locates:
            return self._spelled(text, file, level)
        body = self.files.summary(function.file).body(function.name) if function.kind == "function" else None
        bound = body is not None and bool(body.first and function.owner[1])
        taken = body.parameters[bound : bound + 1] if body is not None else ()
        if text.startswith(OF_MODULE):
            tabled = body is not None and bool(taken) and f"${taken[0]}.*" in body.returns
            return self._defined_in(text[1:].replace("/", "."), file, level) if tabled else []
        found: list[Referent] = []
        for name in body.returns if body is not None and taken else ():
            told = with_text(name, taken[0], text)
            if told != name:
                found.extend(self.evaluate(told, function.file, function.owner, function.name, level - 1))
        return [referent for referent in found if referent.kind not in ("parameter", "unknown")]

    def _defined_in(self, dotted: str, file: str, level: int) -> list[Referent]:
        """The classes of modules that a name in `file` stands for: what they define rather than what they import, and
        functions where there are none."""
        modules = [one for one in self.evaluate(dotted, file, level=level) if one.kind == "module"]
        found = self.follow(modules, ["*"], level)
        own = [one for one in found if one.file in {module.file for module in modules}]
        return [one for one in own if one.kind == "class"] or own or found

    def _by_default(self, text: str, file: str, within: str) -> str:
        """A parameter of the function `within` of which nothing is known: its default, or what its name says."""
        parameter, _, keys = text[1:].partition("/")
        body = self.files.summary(file).body(within) if within and not keys else None
        default = body.defaults.get(parameter) if body is not None else None
        known = isinstance(default, str) and DOTTED.fullmatch(default) is not None
        return spelled(default) if known and isinstance(default, str) else unbound(text)

    def _spelled(self, text: str, file: str, level: int) -> list[Referent]:
        """What a text names in the project or in a library that is known: a constant, or what configurations and
        command lines have under its keys, unless they have too much there."""
        texts = self.files.named_by(text[1:]) if text.startswith("?") else [text.replace("/", ".")]
        found = dict.fromkeys(one for dotted in texts for one in self._in_project(dotted, file, level))
        return list(found) if len(found) <= _MOST_NAMED else []

    def _in_project(self, dotted: str, file: str, level: int) -> list[Referent]:
        full = self.library.canonical(dotted)
        known = full.partition(".")[0] in self.library.roots
        kinds = (*_CALLED, "instance", "module", "external") if known else (*_CALLED, "instance", "module")
        return [one for one in self.evaluate(full, file, level=level) if one.kind in kinds]

    def _placed(self, name: str, file: str, level: int) -> list[Referent]:
        """What `name` stands for of which nothing else is known: an attribute of an object for which a file of the
        program gives that a class or a function, `args.net = nets.Deep`, under whatever name the object goes there."""
        tokens = TOKEN.findall(name.lstrip("@$")) if NAMED not in name else []
        for place in range(len(tokens) - 1, 0, -1):
            placing = self.files.placings.get(tokens[place])
            if placing is None:
                continue
            owner = owner_of(tokens[:place])
            found: dict[Referent, None] = {}
            for path in sorted(path for path, owners in placing.items() if any(may_be(owner, one) for one in owners)):
                self.files.placing.setdefault(file, set()).add(path)
                if self.imported is None or path in self.imported:
                    given = self.files.summary(path).placed(tokens[place])
                    told = (one for full in given for one in self.evaluate(full, path, level=level - 1))
                    found |= dict.fromkeys(one for one in told if one.kind in _CALLED or _is_class(one))
            if found:
                return self.follow(list(found), tokens[place + 1 :], level)
        return []

    def _dollar(
        self, name: str, file: str, owner: tuple[str, str], within: str, level: int
    ) -> tuple[list[Referent], list[str]]:
        tokens = TOKEN.findall(name[1:])
        first = tokens.pop(0)
        if first in ("self", "cls"):
            if not owner[1]:
                return [Referent("unknown", file, TOKEN.findall(unplaced(name[1:]))[-1])], []
            return [Referent("instance" if first == "self" else "class", *owner)], tokens
        if first == "super":
            return self._above(owner, file, within, tokens, level), []
        return [Referent("parameter", file, name[1:])], []

    def _above(self, owner: tuple[str, str], file: str, within: str, tokens: list[str], level: int) -> list[Referent]:
        """`super().method` in the method `within`: the next class after its own in the receiver's order."""
        if not owner[1] or not tokens or tokens[0] == "()":
            return []
        defining = (file, within.rpartition(".")[0])
        family = self.family(owner)
        places = [index for index, class_ in enumerate(family) if (class_.file, class_.name) == defining]
        for class_ in family[places[0] + 1 if places else 0 :]:
            found = self._own_attribute(class_, tokens[0], owner, level)
            if found:
                return self.follow(found, tokens[1:], level)
        return []

    def _keyed(self, keyed: Sequence[str], file: str, level: int) -> list[Referent]:
        """What stands in a table of another file under a key: `nets.NETS:deep()`; where that is not in sight, what the
        table does."""
        path, key, rest = keyed
        place = self.files.locate(path, file)
        if place is not None and len(place.rest) == 1 and self.files.is_source(place.path):
            summary, table = self.files.summary(place.path), place.rest[0]
            starred = (f"{star}{'' if star.endswith('.') else '.'}{table}{KEY}{key}" for star in summary.stars)
            for one in summary.keyed(table, key) or starred:
                found = self.evaluate(one, place.path, level=level)
                if found and all(referent.kind in _CALLED for referent in found):
                    return self.follow(found, TOKEN.findall(rest), level)
        item = f"{path}.[={key}]"
        whole = [item, path] if path.rpartition(".")[2][:1].isupper() else [item]
        return [referent for one in whole for referent in self.evaluate(f"{one}{rest}", file, level=level)]

    def _imported_name(self, name: str, file: str, level: int) -> list[Referent]:
        if KEY in name and (keyed := _KEYED.fullmatch(name)) is not None:
            return self._keyed(keyed.groups(), file, level)
        picked = _PICKED.match(name) if ANY in name else None
        if picked is not None:
            package, begins, ends, rest = picked.groups()
            tokens = TOKEN.findall(rest)
            return self.follow(self._modules(package, file, begins, ends, *tokens[:1]), tokens, level)
        plain, paren, after = name.partition("()")
        if (
            plain.partition(".")[0] in self.library.roots
            and (plain in self.library.known or self.facts.speaks_of(self.library.canonical(plain)))
            and not self.files.modules.shadowed(plain, file)
        ):
            # What the tables say of a framework holds beside its own source too.
            made = self._built(plain, paren, after, level)
            return [*made, Referent("external", "", self.library.canonical(unplaced(name)))]
        place = self.files.locate(plain, file)
        if place is None:
            if name.startswith("."):
                return [Referent("unknown", file, TOKEN.findall(unplaced(name))[-1])]
            if not _is_item(name) and (others := self.files.elsewhere(plain, file)):
                rest = [*(("()",) if paren else ()), *TOKEN.findall(after)]
                return [one for other in others for one in self._of_module(other.path, [*other.rest, *rest], level)]
            made = self._built(plain, paren, after, level)
            return [*made, Referent("external", "", unplaced(name))] if not _is_item(name) else made
        tokens = [*place.rest, *(("()",) if paren else ()), *TOKEN.findall(after)]
        found = [Referent("module", place.path)]
        if not place.rest:
            named = namesake(plain, place.path)
            meant = self._defined(place.path, named[0], level) if named else []
            return self.follow(self._hidden(place.path, level) or meant or found, tokens, level)
        return self._of_module(place.path, tokens, level)

    def registered_with(self, function: str, level: int = LEVELS) -> list[Referent]:
        """Of the classes and functions that the project registers with a library, those that its `function` may make
        something of."""
        owner, _, last = function.rpartition(".")
        package = function.partition(".")[0]
        if package == "torch" or not self.facts.words.builds.search(last):
            return []  # kernels are what is registered with torch itself
        what = owner.rpartition(".")[2] if last == "build" else last.rpartition("_")[2]
        return [
            referent
            for path, name in self._of_program(
                self.files.registered_outside(package, what.lower(), named=last == "build")
            )
            for referent in self.evaluate(name, path, level=level)
            if referent.kind in _CALLED
        ]

    def _of_program(self, registered: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Of what files register, that of the files which the program imports, where these are known: a registry holds
        no more. All of it where that is nothing."""
        mine = [one for one in registered if one[0] in self.imported] if self.imported is not None else registered
        return mine or registered

    def _built(self, plain: str, paren: str, after: str, level: int) -> list[Referent]:
        """What `after` of that stands for which the function `plain` of a library makes, if it is called."""
        made = self.registered_with(plain, level) if paren else []
        return self.follow(made, ["()", *TOKEN.findall(after)], level)

    def _of_module(self, file: str, tokens: list[str], level: int) -> list[Referent]:
        """What `tokens` of the module `file` stand for; an item of one of its dictionaries may be all that any file
        registers there."""
        found = self.follow([Referent("module", file)], tokens, level)
        calls, place = next(((one.name, one.owner) for one in found if one.kind == "item"), (None, ("", "")))
        if calls is None and tokens[1:2] in _TAKES and tokens[2:3] == ["()"]:
            outside = any(referent.kind == "external" and "Registry()" in referent.name for referent in found)
            if not outside and not self.files.is_registry(file, tokens):
                return found
            calls = "".join(tokens[3 if tokens[1] == "get" else 2 :])
            place = ("", "")
        if calls is None:
            return found
        shelf, key = (place[1], "") if place[0] == ITEM else ("", place[1])
        items = [
            referent
            for path, name in self._of_program(self.files.registered(file, tokens, shelf, key))
            for referent in self.evaluate(name, path, level=level)
        ]
        known = [referent for referent in found if referent.kind not in ("item", "unknown")]
        return [*known, *self.follow(items, TOKEN.findall(calls), level)]

    def _hidden(self, file: str, level: int) -> list[Referent]:
        """What the package of the module `file` calls by its name: `from .launch import launch` hides the module."""
        folder, base = os.path.split(file)
        initial = os.path.join(folder, "__init__.py")
        if not base.endswith(".py") or base == "__init__.py" or "__init__.py" not in self.files.modules.listing(folder):
            return []
        return self._defined(initial, base[:-3], level)

    def _defined(self, file: str, name: str, level: int) -> list[Referent]:
        """The functions and classes that the module `file` calls `name`."""
        return [referent for referent in self._member(file, name, level) if referent.kind in _CALLED]

    def follow(self, referents: Sequence[Referent], tokens: Sequence[str], level: int = LEVELS) -> list[Referent]:
        """What attributes and calls, `tokens`, of `referents` stand for."""
        current = list(referents)
        for place, token in enumerate(tokens):
            following: list[Referent] = []
            for referent in current:
                if _PARTS.fullmatch(token):
                    following.extend(self._deeper(referent, token, *tokens[place + 1 : place + 2]))
                elif _is_item(token):
                    known = token.startswith("[=")
                    item = Referent("item", owner=("=", token[2:-1]) if known else ("", ""))
                    following.append(referent if _is_held(referent) or referent.owner[0] == ITEM else item)
                elif token == LOADED:
                    following.extend([referent._replace(kind="loader")] if referent.kind == "instance" else [])
                elif token[0] == AT:
                    following.append(referent)
                elif token == "()":
                    then = tokens[place + 1] if place + 1 < len(tokens) else ""
                    following.extend(self._called(referent, level, then if then.startswith(AT) else ""))
                elif token == "*" and len(current) > 1:
                    # Of modules that a name picks, what they define rather than what they import.
                    held = self._attribute(referent, token, level)
                    own = [one for one in held if one.kind == "class" and one.file == referent.file]
                    following.extend(own or held)
                else:
                    following.extend(self._attribute(referent, token, level))
            if token == "*" and len(current) > 1:
                # Of modules that a name picks too, a class is picked rather than what stands beside it.
                following = [referent for referent in following if referent.kind == "class"] or following
            if token == "*" and tokens[place + 1 : place + 2] not in ([], ["()"]):
                following.extend(module for referent in current for module in self._submodules(referent))
            current = list(dict.fromkeys(following))[:REFERENTS]
        return current

    def _modules(self, package: str, file: str, begins: str, ends: str, then: str = "") -> list[Referent]:
        """The modules of the package `package` whose names begin and end so: where an import of it in `file` leads, or
        in a folder around `file`; of its own folder, if the package has no name. `then` is as in `_within`."""
        if not package:
            return self._within(os.path.dirname(file), begins, ends, then)
        folders = self.files.modules.folders_of(package, file, self.files.locate(package, file))
        return next(filter(None, (self._within(folder, begins, ends, then) for folder in folders)), [])

    def _deeper(self, referent: Referent, token: str, then: str = "") -> list[Referent]:
        """The modules of a package, `referent`, that a part of a name, `[*_net]`, leaves open; `then` is as in
        `_within`."""
        begins, _, ends = token[1:-1].partition(ANY)
        folder = referent.file.removesuffix(f"{os.sep}__init__.py")
        is_package = referent.kind == "module" and not folder.endswith(".py")
        return self._within(folder, begins, ends, then) if is_package else []

    def _within(self, folder: str, begins: str = "", ends: str = "", then: str = "") -> list[Referent]:
        """The modules in a folder whose names begin and end so, packages among them; plain folders too, from which the
        name `then` takes a module."""
        found: list[Referent] = []
        for entry in sorted(self.files.modules.listing(folder)):
            name = entry.removesuffix(".py").removesuffix("/")
            if name in (entry, "__init__") or not (name.startswith(begins) and name.endswith(ends)):
                continue
            path = os.path.join(folder, entry.removesuffix("/"))
            if not entry.endswith("/"):
                found.append(Referent("module", path))
            elif "__init__.py" in self.files.modules.listing(path):
                found.append(Referent("module", os.path.join(path, "__init__.py")))
            elif _PARTS.fullmatch(then) or f"{then}.py" in self.files.modules.listing(path):
                found.append(Referent("module", path))
        return found

    def _submodules(self, referent: Referent) -> list[Referent]:
        """The modules of the package that `referent` is, of which a name at run time picks one."""
        folder, base = os.path.split(referent.file)
        return self._within(folder) if referent.kind == "module" and base == "__init__.py" else []

    def _attribute(self, referent: Referent, name: str, level: int) -> list[Referent]:
        kind = referent.kind
        if kind == "external":
            return [Referent("external", "", self.library.canonical(f"{referent.name}.{name}"))]
        if kind == "module":
            return self._member(referent.file, name, level)
        if kind == "function":
            inner = f"{referent.name}.{name}"
            summary = self.files.summary(referent.file)
            if summary.body(inner) is not None:
                return [Referent("function", referent.file, inner, referent.owner)]
            if summary.class_summary(inner) is not None:
                return [Referent("class", referent.file, inner)]
            return [Referent("unknown", referent.file, name)]
        if kind in ("class", "instance") and KEY in name:
            return [Referent("item", owner=(ITEM, name))]
        if kind in ("class", "instance"):
            return self.class_attribute(referent, name, level)
        if kind == "loader" and name == "dataset":
            return [referent._replace(kind="instance")]
        if kind == "item":
            return [referent._replace(name=f"{referent.name}.{name}")]
        return [Referent("unknown", referent.file, name)]

    def _member(self, file: str, name: str, level: int) -> list[Referent]:
        """What `name` is in the module `file`: a definition, an import, a value or a submodule."""
        found: list[Referent]
        if name.endswith("*") and self.files.is_source(file):
            picked = [one for one in self.files.summary(file).defined if one.startswith(name[:-1])]
            found = [
                referent for one in picked for referent in self._member(file, one, level) if referent.kind in _CALLED
            ]
            for module in self.files.summary(file).stars:
                place = self.files.locate(module, file)
                if len(found) >= REFERENTS or level <= 0:
                    break
                if place is not None and not place.rest and place.path != file:
                    found += [one for one in self._member(place.path, name, level - 1) if one.kind in _CALLED]
            return list(dict.fromkeys(found))
        if self.files.is_source(file):
            summary = self.files.summary(file)
            found = self._bound(file, name, level)
            if found:
                return found
            if summary.stands_for(name):
                return [Referent("unknown", file, name)]
        starred = self._starred(file, name, level)
        if starred:
            return starred
        if not self.files.is_source(file) or file.endswith("__init__.py"):
            folder = os.path.dirname(file) if self.files.is_source(file) else file
            names = self.files.modules.listing(folder)
            if f"{name}.py" in names:
                return [Referent("module", os.path.join(folder, f"{name}.py"))]
            if f"{name}/" in names:
                inside = os.path.join(folder, name)
                initial = os.path.join(inside, "__init__.py")
                return [Referent("module", initial if "__init__.py" in self.files.modules.listing(inside) else inside)]
        return [Referent("unknown", file, name)]

    def _bound(self, file: str, name: str, level: int) -> list[Referent]:
        """What the file itself calls `name`; what that is only said to be, where nothing is known of it."""
        summary, found = self.files.summary(file), list[Referent]()
        for full in summary.stands_for(name):
            if full == f"@.{name}" or full.startswith(f"@.{name}'"):
                local = full[2:]
                found.append(Referent("class" if summary.class_summary(local) is not None else "function", file, local))
            elif self.counts(full, found):
                found.extend(self.evaluate(full, file, level=level))
        return found

    def _starred(self, file: str, name: str, level: int) -> list[Referent]:
        if not self.files.is_source(file):
            return []
        for module in self.files.summary(file).stars:
            place = self.files.locate(module, file)
            if place is None:
                if full := self.library.starred(module, name):
                    return [Referent("external", "", full)]
            elif not place.rest and place.path != file:
                found = self.evaluate(f"{module}{'' if module.endswith('.') else '.'}{name}", file, level=level)
                if found and found[0].kind != "unknown":
                    return list(found)
        return []

    def class_attribute(self, referent: Referent, name: str, level: int = LEVELS) -> list[Referent]:
        """What the attribute `name` of a class or an instance stands for."""
        me = (referent.file, referent.name)
        if name.endswith("*"):
            return [*self._picked(me, name[:-1]), *self._given_by_text(me, name, level)]
        kept = self.kept.get((referent.file, referent.name, name))
        if kept is not None:
            # What an annotation says of it is less.
            return list(kept)
        for class_ in self.family(me):
            found = self._own_attribute(class_, name, me, level, as_class=referent.kind == "class")
            if found:
                return found
        if referent.kind == "instance" and self._returns_itself(me, name):
            return [Referent("fluent", *me)]
        return [Referent("unknown", referent.file, name)]

    def _returns_itself(self, me: tuple[str, str], method: str) -> bool:
        """Whether a method that the class `me` has from a library returns its object."""
        bases = (one.name for one in self.family(me) if one.kind == "external")
        return method in self.facts.fluent or any(f"{base}.{method}" in self.facts.fluent for base in bases)

    def _picked(self, me: tuple[str, str], prefix: str) -> list[Referent]:
        """The methods of the class `me` whose names begin with `prefix`, of which a name at run time picks one; none
        where it begins with nothing."""
        found: dict[str, Referent] = {}
        for class_ in self.family(me) if prefix else ():
            own = self.files.summary(class_.file).class_summary(class_.name) if class_.kind == "class" else None
            methods = own.methods.items() if own is not None else ()
            for name, full in sorted(methods):
                if name.startswith(prefix):
                    found.setdefault(name, Referent("function", class_.file, full, me))
        return list(found.values())

    def _given_by_text(self, me: tuple[str, str], name: str, level: int) -> list[Referent]:
        """What attributes whose names a text spells stand for: `getattr(self, f"conv{place}")`."""
        classes = [class_ for class_ in self.family(me) if class_.kind == "class"]
        found = [one for class_ in classes for one in self._own_attribute(class_, name, me, level)]
        return [one for one in found if one.kind == "instance"] if name == CHILDREN else found

    def property_called(self, referent: Referent, name: str, *, assigned: bool = False) -> list[Referent]:
        """The function that reading the attribute `name` of an object of a class of the project runs, or assigning it,
        if one does."""
        me = (referent.file, referent.name)
        for class_ in self.family(me) if referent.kind == "instance" else ():
            own = self.files.summary(class_.file).class_summary(class_.name) if class_.kind == "class" else None
            if own is not None and name in own.methods:
                runs = own.setters if assigned else own.methods if name in own.properties else {}
                return [Referent("function", class_.file, runs[name], me)] if name in runs else []
        return []

    def _own_attribute(
        self, class_: Referent, name: str, owner: tuple[str, str], level: int, *, as_class: bool = False
    ) -> list[Referent]:
        """What the class `class_` itself gives to its instances under `name`."""
        if class_.kind == "external":
            if name == "__init__":
                return [Referent("external", "", class_.name, owner)]
            full = f"{class_.name}.{name}" if as_class else f"{class_.name}().{name}"
            return [Referent("external", "", full, owner)] if self.facts.speaks_of(full) else []
        summary = self.files.summary(class_.file)
        own = summary.class_summary(class_.name)
        if own is None:
            return []
        if name in own.methods:
            if name in own.properties and not as_class:
                return self._called(Referent("function", class_.file, own.methods[name], owner), level)
            return [Referent("function", class_.file, own.methods[name], owner)]
        if level <= 0:
            return []
        found: list[Referent] = []
        for full in summary.attribute(class_.name, name):
            referents = self.evaluate(full, class_.file, owner, class_.name + ".", level - 1)
            found.extend(referent for referent in referents if referent.kind != "parameter")
        return found

    def _called(self, referent: Referent, level: int, place: str = "") -> list[Referent]:
        if referent.kind == "external":
            return [Referent("external", "", f"{referent.name}()")] if referent.name.count("()") < 4 else []
        if referent.kind in ("class", "fluent"):
            return [Referent("instance", referent.file, referent.name)]
        if referent.kind == "item":
            return [referent._replace(name=f"{referent.name}()")]
        if referent.kind == "instance":
            return self._given_by(referent, level, place)
        if referent.kind == "function":
            return self._returned(referent, level, place)
        return []

    def _returned(self, function: Referent, level: int, place: str) -> list[Referent]:
        """What a function of the project returns, at a `place` among others; its object where nobody can tell and its
        name says so."""
        body = self.files.summary(function.file).body(function.name)
        found: list[Referent] = []
        for name in body.given_at(place) if body is not None and level > 0 else ():
            if self.counts(name, found):
                given = self.evaluate(name, function.file, function.owner, function.name, level - 1)
                found.extend(result for result in given if result.kind not in ("parameter", "unknown"))
        last = function.name.rpartition(".")[2]
        fluent = last in self.facts.fluent and not any(map(self._knows, found))
        makes = body is not None and level > 0 and body.first == "class" and self.facts.hints.maker.match(last)
        alone = not place or body is None or not body.rows
        if alone and function.owner[1] and (fluent or (not found and makes)):
            return [Referent("instance", *function.owner)]
        return found

    def _given_by(self, instance: Referent, level: int, place: str) -> list[Referent]:
        """What a call of an object of the project gives: what its `__call__` returns, or the `forward` of a module."""
        for name in ("__call__", "forward"):
            methods = [one for one in self.class_attribute(instance, name, level) if one.kind == "function"]
            if methods:
                return self._called(methods[0], level, place)
        return []

    def family(self, class_: tuple[str, str]) -> list[Referent]:
        """A class of the project and what it derives from, nearest first: classes, and names of libraries' classes. As
        in Python, what several bases share comes behind all of them."""
        known = self._families.get(class_)
        if known is not None:
            return known
        found = [Referent("class", *class_)]
        if class_ in self._open_families or len(self._open_families) > _NESTED:
            self._cut = True
            return found
        before, self._cut = self._cut, False
        self._open_families.add(class_)
        own = self.files.summary(class_[0]).class_summary(class_[1])
        later: list[Referent] = []
        for base in own.bases if own is not None else ():
            for referent in self.evaluate(base, class_[0]):
                if referent.kind == "class":
                    later.extend(self.family((referent.file, referent.name)))
                elif referent.kind == "external":
                    later.extend(Referent("external", "", name) for name in self.library.ancestors(referent.name))
        self._open_families.discard(class_)
        classes = [one for one in later if one.kind == "class"]
        for referent in (
            *reversed(dict.fromkeys(reversed(classes))),
            *[one for one in later if one.kind == "external"],
        ):
            if referent not in found and len(found) < _FAMILY:
                found.append(referent)
        if not self._cut:
            self._families[class_] = found
        self._cut |= before
        return found

    def counts(self, name: str, found: Iterable[Referent]) -> bool:
        """Whether `name` adds to `found`: what something is only said to be does where nothing is known of it."""
        return not (name.startswith(TOLD) and any(map(self._knows, found)))

    def _knows(self, referent: Referent) -> bool:
        """Whether anything is known of what `referent` does."""
        if referent.kind == "external":
            return self.facts.speaks_of(referent.name)
        return referent.kind not in ("unknown", "parameter")

    def derives(self, class_: tuple[str, str], names: frozenset[str]) -> bool:
        """Whether a class of the project derives from any of the library classes `names`."""
        return bool(class_[1]) and any(
            referent.kind == "external" and referent.name in names for referent in self.family(class_)
        )


def _is_class(referent: Referent) -> bool:
    """Whether a name of a library is evidently one of a class."""
    return referent.kind == "external" and referent.name.rpartition(".")[2][:1].isupper()


def _is_item(name: str) -> bool:
    """Whether a name speaks of an item of a table."""
    return ITEM in name or KEYED_ITEM.search(name) is not None


def _is_held(referent: Referent) -> bool:
    """Whether what a name stands for that is indexed is held by a display of it: a class, a function, a module."""
    outside = referent.kind == "external" and not referent.name.endswith(")")
    return referent.kind in (*_CALLED, "module") or (outside and referent.name.rpartition(".")[2][:1].isupper())
