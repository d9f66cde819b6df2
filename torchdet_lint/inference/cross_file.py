"""A name of another file -> what a function of that name returns, read off the function alone when a linted file calls
it; and what a name is that a file takes with all the names of another."""

from __future__ import annotations

import ast
import contextlib
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.inference.abstract_values import (
    ASSIGNED,
    ELSEWHERE,
    PICKED,
    UNKNOWN,
    AbstractValue,
    joined,
    portable,
)
from torchdet_lint.inference.annotations import instance_of
from torchdet_lint.inference.infer import Inference
from torchdet_lint.module.module import Module
from torchdet_lint.prefilter import skeleton
from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.triggers import IDENTIFIER
from torchdet_lint.regex import lazy
from torchdet_lint.source.cache import content_hash
from torchdet_lint.source.decoding import Source, SourceFault, decode
from torchdet_lint.source.modules import Relied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchdet_lint.module.module import Target
    from torchdet_lint.prefilter.library import Library
    from torchdet_lint.source.modules import ModuleMap

_DEEP = 5
_FILES = 256
_IMPORT = lazy(
    r"^[ \t]*(?:from[ \t]+[.\w]+[ \t]+import[ \t]*(?:\([^)]*\)|(?:[^\n\\]|\\\n)*)|import[ \t]+[^\n]*)", re.MULTILINE
)
_PLAIN = lazy(r"->\s*([^\W\d]\w*)((?:\.\w+)*)\s*:[^:]*$")
_PROSE = lazy(r"\A\s*[rR]?(?:\"\"\".*?\"\"\"|'''.*?''')[ \t]*\r?\n", re.DOTALL)
_LONG = 2_000
# So much of the constructor of a class, of one method and of what that calls is read.
_LONGEST = 10_000
_METHOD = lazy(r"^([ \t]+)(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
_DECORATES = lazy(r"[ \t]*@")
_OWN = lazy(r"\bself\.(\w+)[ \t]*\(")
_SIGNED = lazy(r":[ \t]*(?:#[^\n]*)?\r?\n")
# Where something else begins at top level.
_NEXT = lazy(r"^[^\s#)\]]", re.MULTILINE)
_STOPPING = lazy(r"\b(?:no_grad|inference_mode)\b")
_RETURN = lazy(r"^[ \t]+return\b.*", re.MULTILINE)
_DETACHING = frozenset({"detach", "numpy", "tolist", "item"})
# The name of a function that takes something from a table, and one of which nobody knows the key. Of so many candidates
# in a file each is asked.
_PICKS = "picked_"
_ANY_ENTRY = f"def {_PICKS}(key):\n    return {{}}[key]()\n"
_CANDIDATES = 40
# Where a table begins at top level, and how its last line ends, or begins.
_TABLE = lazy(r"^([A-Za-z_]\w*)(?:[ \t]*:[^=\n]+)?[ \t]*=[ \t]*(?:\{|dict\()", re.MULTILINE)
_LINE = lazy(r"[^\n]*")
_CLOSES = lazy(r"[})][ \t]*(?:#.*)?$")
_DEFINED = lazy(r"^(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)


class _Text(NamedTuple):
    """A file: its text, its imports and the names of each, what they bind, what it takes whole, the names that it
    defines, and the tables that it writes out, each by its name."""

    text: str
    imports: tuple[tuple[str, frozenset[str]], ...]
    targets: dict[str, str]
    stars: tuple[str, ...]
    defined: frozenset[str]
    tables: dict[str, str]


class CrossFile:
    """The functions that files of one project call of each other. Paths are absolute."""

    def __init__(
        self, library: Library, target: Target, modules: ModuleMap, read: Callable[[str], bytes | None]
    ) -> None:
        self.library = library
        self.target = target
        self.modules = modules
        self._read = read
        self._texts: dict[str, tuple[str, _Text | None]] = {}
        self._known: dict[tuple[str, str], tuple[AbstractValue, frozenset[Relied]]] = {}
        self._asked: list[tuple[str, str]] = []
        self._relied: list[set[Relied]] = [set()]
        self._cut = False
        facts = library.facts.tensors
        self._telling = _DETACHING.union(facts.integer, facts.boolean)

    def relied(self) -> tuple[Relied, ...]:
        """The looks at other files since this was asked last."""
        found, self._relied[0] = self._relied[0], set()
        return tuple(sorted(found))

    def returned(self, name: str, file: str) -> AbstractValue | None:
        """What the function that `file` calls `name` returns, for a layer what an object of it gives when it is called;
        None where nothing is known of it. The name may be that of another file, between `ELSEWHERE`."""
        if name.startswith(ELSEWHERE):
            _, file, name = name.split(ELSEWHERE)
        if name.startswith("@."):
            text = self._text(file)[1]
            found = self._function(file, text, name[2:]) if text is not None else UNKNOWN
        else:
            found = self._called(name, file)
        return None if found == UNKNOWN else found

    def _called(self, name: str, file: str) -> AbstractValue:
        name, picks, key = name.partition(PICKED)
        path, rest, found = self._looked_up(name, file)
        if picks and found is not None and len(rest) < 2:
            return self._function(path, found, f"{''.join(rest)}{PICKED}{key}")
        return self._function(path, found, ".".join(rest)) if found is not None and 0 < len(rest) < 3 else UNKNOWN

    def _looked_up(self, name: str, file: str) -> tuple[str, Sequence[str], _Text | None]:
        """The module that `name` leads to in `file`: its path, what is left of the name, and its text."""
        place = self.modules.locate(name, file)
        path = place.path if place is not None else ""
        content, found = self._text(path) if path.endswith(".py") else ("", None)
        self._relied[-1].add(Relied(file, name, path, content))
        return path, place.rest if place is not None else (), found

    def source_of(self, name: str, file: str) -> tuple[str, str, str] | None:
        """The path and the text of the file in which `file` finds what it calls `name`, and the name there."""
        path, rest, found = self._looked_up(name, file)
        return (path, found.text, rest[0]) if found is not None and len(rest) == 1 else None

    def starred(self, name: str, stars: Sequence[str], file: str) -> str:
        """What `name` is by the modules `stars` that `file` takes whole, where that is something from outside of the
        project; else empty."""
        return self._starred(name, stars, file, set())

    def _starred(self, name: str, stars: Sequence[str], file: str, seen: set[str]) -> str:
        for star in stars:
            if brought := self.library.starred(star, name):
                return brought
            dotted = f"{star}{'.' if star.strip('.') else ''}{name}"
            path, rest, found = self._looked_up(dotted, file)
            if found is None or len(rest) != 1 or path in seen:
                continue
            seen.add(path)
            if name in found.defined:
                return ""
            target = self.library.canonical(found.targets.get(name, ""))
            if target:
                return "" if target.startswith(".") or self._looked_up(target, path)[0] else target
            if inner := self._starred(name, found.stars, path, seen):
                return inner
        return ""

    def _function(self, path: str, text: _Text, name: str) -> AbstractValue:
        key = (path, name)
        if key not in self._known:
            if key in self._asked or len(self._asked) >= _DEEP:
                self._cut = True
                return UNKNOWN
            outer, self._cut = self._cut, False
            self._asked.append(key)
            self._relied.append(set())
            inferred = self._worked_out(path, text, name)
            relied = self._relied.pop()
            self._asked.pop()
            self._relied[-1] |= relied
            # What was cut short depends on who asked first.
            if not self._cut:
                self._known[key] = (inferred, frozenset(relied))
            self._cut |= outer
            return inferred
        inferred, known = self._known[key]
        self._relied[-1] |= known
        return inferred

    def _worked_out(self, path: str, text: _Text, name: str) -> AbstractValue:
        if PICKED in name:
            return self._picked(path, text, *name.split(PICKED))
        top, _, method = name.partition(".")
        if top in text.defined:
            function = _cut_out(text.text, top)
            if function is None:
                return UNKNOWN
            head, body = function
            code = _PROSE.sub("", body)
            if method.endswith(ASSIGNED):
                body = _assigning(body, method.removesuffix(ASSIGNED))
            elif method:
                body = _methods(body, method) or "    ...\n"
            elif "->" in head and not self._says_more(code):
                body = "    ...\n"
                plain = _PLAIN.search(head)
                if plain is not None and not head.startswith("@"):
                    return self._annotated(text, plain[1], plain[2])
            elif len(code) > _LONG:
                body = _methods(body, "forward") or _methods(body, "__call__")
            if not body or (len(code) > _LONG and len(body) > _LONGEST):
                return UNKNOWN
            return self._returned(path, _alone(path, text, top, head + body), top, method)
        rest = name.removeprefix(top)
        if top in text.targets:
            return self._called(f"{self.library.canonical(text.targets[top])}{rest}", path)
        for star in text.stars:
            joint = "." if star.strip(".") else ""
            found = self._called(self.library.canonical(f"{star}{joint}{name}"), path)
            if found is not UNKNOWN:
                return found
        return UNKNOWN

    def _picked(self, path: str, text: _Text, table: str, key: str) -> AbstractValue:
        """The object that a call of what `key` picks makes: of the `table` that a file writes out or imports, or, where
        that is empty, of the file itself."""
        if not table:
            return self._of_file(path, text, key)
        if table in text.tables:
            code = f"def {_PICKS}(key):\n    return {table}[{key!r}]()\n" if key else _ANY_ENTRY.format(table)
            return self._returned(path, _alone(path, text, _PICKS, code), _PICKS, "")
        if table in text.targets:
            return self._called(f"{self.library.canonical(text.targets[table])}{PICKED}{key}", path)
        return UNKNOWN

    def _of_file(self, path: str, text: _Text, key: str) -> AbstractValue:
        """The object that a call of `key` of a file makes; without a key, one of any network that its functions give,
        or of its classes that it makes no object of itself; where it defines nothing, of those that it takes from
        others."""
        if key:
            return self._made(path, text, key)
        taken = [name for name, target in text.targets.items() if target.startswith(".") and name != "*"]
        stars = [self._looked_up(star, path) for star in text.stars if star.startswith(".") and not text.defined]
        functions = [name for name in sorted(text.defined) if name[:1].islower()]
        classes = [name for name in sorted(text.defined) if len(re.findall(rf"\b{name}\b", text.text)) == 1]
        for names in (functions, classes) if text.defined else (taken,):
            found = [self._made(path, text, name) for name in names[:_CANDIDATES]]
            found += [self._of_file(there, inner, "") for there, _, inner in stars if inner is not None]
            networks = [one for one in found if one.classes and not all(map(self._is_of_library, one.classes))]
            if networks and len(found) <= _CANDIDATES:
                return joined(networks)
        return UNKNOWN

    def _is_of_library(self, class_: str) -> bool:
        return class_.partition(".")[0] in self.library.roots

    def _made(self, path: str, text: _Text, name: str) -> AbstractValue:
        """What a call of `name`, as the file has it, gives where that is an object."""
        if not name[:1].isupper():
            return self._function(path, text, name)
        whole = f"@.{name}" if name in text.defined else self.library.canonical(text.targets.get(name, ""))
        return portable(AbstractValue("other", gradient="no", instance=whole), path, self.library.roots)

    def _annotated(self, text: _Text, root: str, rest: str) -> AbstractValue:
        """What the annotation `root.rest` says."""
        known = "" if root in text.defined else f"builtins.{root}" if root in BUILTINS else root
        return instance_of(self.library.canonical(f"{text.targets.get(root, known)}{rest}"), self.library.facts.tensors)

    def _says_more(self, body: str) -> bool:
        """Whether the body may tell more of a result than its annotation: another type, or no gradient."""
        if _STOPPING.search(body):
            return True
        return any(not self._telling.isdisjoint(IDENTIFIER.findall(match[0])) for match in _RETURN.finditer(body))

    def _returned(self, path: str, text: str, name: str, method: str) -> AbstractValue:
        try:
            module = Module(Source(path, text), self.library, self.target)
        except skeleton.SyntaxFault:
            return UNKNOWN
        module.foreign = lambda dotted: self.returned(dotted, path)
        module.ask_for_stars(lambda name, stars: self.starred(name, stars, path))
        class_ = module.local_class(f"@.{name}")
        inference = module.shared(Inference)
        function = module.definition(name) if class_ is None else None
        found = inference.returned(function) if function is not None else UNKNOWN
        if class_ is not None and method.endswith(ASSIGNED):
            found = inference.calls.attributes.attribute(class_, method.removesuffix(ASSIGNED))
        elif class_ is not None:
            found = inference.calls.method_gives(class_, method) if method else inference.calls.object_gives(class_)
        module.release()
        return portable(found, path, self.library.roots)

    def _text(self, path: str) -> tuple[str, _Text | None]:
        """The hash of a file ("": it cannot be read), and the file where there is something in it."""
        if path not in self._texts:
            if len(self._texts) >= _FILES:
                del self._texts[next(iter(self._texts))]
            data = self._read(path)
            text = None
            if data:
                with contextlib.suppress(SourceFault):
                    text = _looked_over(decode(path, data).text)
            self._texts[path] = content_hash(data) if data is not None else "", text
        return self._texts[path]


def _looked_over(text: str) -> _Text:
    defined = list(_DEFINED.finditer(text))
    begin = defined[0].start() if defined else len(text)
    # What stands further in and further down belongs to some function.
    found = [
        match[0].strip()
        for match in _IMPORT.finditer(text)
        if match.start() < begin or text[match.start()] not in " \t"
    ]
    imports: list[tuple[str, frozenset[str]]] = []
    targets: dict[str, str] = {}
    stars: list[str] = []
    for statement, nodes in _parsed(found):
        bound: dict[str, str] = {}
        for node in nodes:
            bound.update(skeleton.imported(node) if isinstance(node, (ast.Import, ast.ImportFrom)) else ())
        if "*" in bound:
            stars.append(bound["*"])
        targets.update(bound)
        imports.append((statement, frozenset(bound)))
    names = frozenset(match[1] for match in defined)
    tables = list(_tables(text))
    once = Counter(name for name, _ in tables)
    known = {name: table for name, table in tables if once[name] == 1}
    return _Text(text, tuple(imports), targets, tuple(stars), names, known)


def _tables(text: str) -> Iterator[tuple[str, str]]:
    """The names and the texts of the tables that are written out at top level, of which the end is evident."""
    for match in _TABLE.finditer(text):
        end = text.find("\n", match.end())
        first = text[match.start() : end if end >= 0 else len(text)]
        if _CLOSES.search(first):
            yield match[1], first
            continue
        for line in _LINE.finditer(text, end + 1, end + 1 + _LONG if end >= 0 else 0):
            if line[0][:1] in ("}", ")"):
                yield match[1], text[match.start() : line.end()]
            if line[0][:1] not in ("", " ", "\t", "#"):
                break


def _parsed(statements: list[str]) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The statements with their trees: together where all of them are one each, else those that are any."""
    try:
        nodes = ast.parse("\n".join(statements)).body
    except SyntaxError:
        nodes = []
    if len(nodes) == len(statements):
        yield from ((statement, [node]) for statement, node in zip(statements, nodes, strict=True))
        return
    for statement in statements:
        with contextlib.suppress(SyntaxError):
            yield statement, ast.parse(statement).body


def _cut_out(text: str, name: str) -> tuple[str, str] | None:
    """The last function or class `name` at top level: decorators and signature, and the body. None where the seam is
    not evident."""
    first = -1
    for match in re.finditer(rf"^(?:def|class)[ \t]+{name}[ \t]*[\[(:]", text, re.MULTILINE):
        first = match.start()
    if first < 0:
        return None
    end = _NEXT.search(text, first + 1)
    last = end.start() if end is not None else len(text)
    body = _SIGNED.search(text, first, last)
    if body is None:
        return None
    first = _decorated(text, first)
    return text[first : body.end()], text[body.end() : last]


def _decorated(text: str, first: int) -> int:
    """Where the decorators of the definition begin that begins at `first`."""
    while (before := text.rfind("\n", 0, max(first - 1, 0)) + 1) < first and _DECORATES.match(text, before, first):
        first = before
    return first


def _methods(body: str, method: str) -> str:
    """Of the body of a class the constructor, `method`, and the methods that this calls itself; nothing where it has
    no such method."""
    first = _METHOD.search(body)
    if first is None:
        return ""
    starts = [match for match in _METHOD.finditer(body) if match[1] == first[1]]
    begins = [_decorated(body, match.start()) for match in starts]
    methods = {
        match[2]: body[begin:end] for match, begin, end in zip(starts, begins, [*begins[1:], len(body)], strict=True)
    }
    if method not in methods:
        return ""
    kept = {"__init__", method, *_OWN.findall(methods[method])}
    return "".join(text for name, text in methods.items() if name in kept)


def _assigning(body: str, attribute: str) -> str:
    """Of the body of a class the constructor and the methods that this calls itself, where one of the class assigns
    `attribute`."""
    if re.search(rf"\bself\.{attribute}[ \t]*(?::[^=\n]*)?=(?!=)", body) is None:
        return "    ...\n"
    return _methods(body, "__init__") or "    ...\n"


def _alone(path: str, text: _Text, name: str, function: str) -> str:
    """`function` with the imports and the tables that it needs, and what else its file defines as if that were
    imported."""
    used = set(IDENTIFIER.findall(function)) - {name}
    tables = [table for one, table in text.tables.items() if one in used]
    used.update(word for table in tables for word in IDENTIFIER.findall(table))
    imports = [statement for statement, bound in text.imports if "*" in bound or not bound.isdisjoint(used)]
    stem = path.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    others = sorted(text.defined & used) if stem != "__init__" else []
    if others:
        imports.append(f"from .{stem} import {', '.join(others)}")
    return "\n".join((*imports, *tables, function))
