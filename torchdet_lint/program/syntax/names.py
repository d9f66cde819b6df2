"""An expression and the scope it stands in -> the names that it may stand for."""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING

from torchdet_lint.prefilter.library import BUILTINS
from torchdet_lint.prefilter.syntax import beginning, walk
from torchdet_lint.program.events import (
    AT,
    CHILDREN,
    KEY,
    LOADED,
    LOADER,
    LOCATE,
    MODULES,
    NAMED,
    TOLD,
    WRITTEN,
    at_place,
)
from torchdet_lint.program.syntax.named_texts import OF_MODULE, OF_PARAMETER, Named, sources, spelled, texts
from torchdet_lint.program.syntax.registries import Registries
from torchdet_lint.program.syntax.scopes import DEPTH, NAMES, constant, followed
from torchdet_lint.program.syntax.shapes import (
    LITERALS,
    PASSED_ON,
    Part,
    added_to,
    as_table,
    class_named,
    configuration_of,
    device_in,
    goes_through_table,
    handed_above,
    held_layers,
    installed,
    is_device_of,
    is_property,
    keeps_all,
    key_of,
    last_word,
    modules_of,
    overwritten,
    paired,
    parameters_of,
    pattern_of,
    starts_empty,
    statements_in,
)
from torchdet_lint.regex import lazy
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torchdet_lint.program.events import Names
    from torchdet_lint.program.syntax.scopes import Bound, Scope, Scopes
    from torchdet_lint.program.syntax.vocabulary import Vocabulary


_LONGEST = 200
_NAMESPACES = frozenset({"builtins.globals", "builtins.locals", "builtins.vars"})
_OPTION = lazy(
    r"\.add_argument[ \t]*\([^()]{0,80}[\"']--([\w-]+)[\"'][^()]{0,200}\bdefault[ \t]{0,9}="
    r"[ \t]{0,9}[\"']([^\W\d]\w*)[\"']"
)
_INSTANTIATES = "instantiate"
_ENTRIES = ("items", "values")
# What makes a table of pairs that are written out.
_TABLES = frozenset({"builtins.dict", "collections.OrderedDict"})
_OF_PAIRS = (ast.ListComp, ast.GeneratorExp, ast.List, ast.Tuple)
# What takes something from a module by a part of a text.
_TAKES_PARTS = frozenset({"builtins.getattr", "functools.reduce"})
_RETURNS_MADE = lazy(r"\breturn\s+(?:\w+\.)*(?:instantiate|call)[ \t]*\(\s*(\w+)\s*[,)]")
_DEDENTED = lazy(r"(?m)^(?=[^\s#)])")
# The pattern of a text: a path, what nobody knows, an attribute of that, and a call.
_GAP = lazy(r"((?:\w+\\\.)*)(?:\.\*)+((?:\\\.\w+)?)((?:\\\(.*)?)\$*")
# A module, or something of one, by its name.
_MODULE = lazy(r"\.*\w+(?:\.\w+)*")
# A name of a function that is called, no class's and no object's.
_FUNCTION = lazy(r"[@.\w]*?(?:^|\.)[a-z_]\w*\(\)$")


def _made_of(function: str, text: str) -> tuple[int, str] | None:
    """The parameter that a function at top level of `text` gives back an object of, by Hydra, and its place."""
    head = re.search(rf"(?m)^def[ \t]+{function}[ \t]*\(([^()]*)\)[^\n]*:", text)
    if head is None:
        return None
    body = _DEDENTED.split(text[head.end() :], maxsplit=1)[0]
    made = _RETURNS_MADE.search(body)
    parameters = [part.partition(":")[0].partition("=")[0].strip() for part in head[1].split(",")]
    return (parameters.index(made[1]), made[1]) if made is not None and made[1] in parameters else None


class Resolver(Registries):
    """What the names of one file stand for."""

    def __init__(self, scopes: Scopes, vocabulary: Vocabulary) -> None:
        super().__init__(scopes, vocabulary.roots)
        self.words, self.devices, self.canonical = vocabulary.programs, vocabulary.devices, vocabulary.canonical
        self.wrappers, self.of_tensors = vocabulary.wrappers, vocabulary.of_tensors
        self.no_grad, self.enable_grad, self.set_grad = vocabulary.no_grad, vocabulary.enable_grad, vocabulary.set_grad
        # The last words of what switches gradients off.
        self.switch_words = sorted({name.rpartition(".")[2] for name in (*self.no_grad, *self.set_grad)})
        self.applying, self.applied, self.holding = vocabulary.applying, vocabulary.applied, vocabulary.holding
        self._moves = tuple(f".{word}" for word in self.words.moves)
        self._resolved: dict[tuple[object, ...], Names] = {}
        self._shallow: dict[tuple[tuple[object, ...], int], Names] = {}
        self._cut = 0
        self._texts = Named(self.resolve)
        self._others = vocabulary.roots | STANDARD | {"builtins"}
        self._elements: dict[tuple[object, Scope], Names] = {}
        self._properties: dict[str, frozenset[str]] = {}
        self._self_values: dict[str, dict[str, list[tuple[ast.expr, Scope]]]] = {}

    @functools.cached_property
    def makes_loaders(self) -> bool:
        """Whether the file may make a loader."""
        return any("Loader(" in line for line in self.scopes.hollow.lines)

    @functools.cached_property
    def draws_pictures(self) -> bool:
        """Whether the file draws pictures."""
        return self.words.draws_pictures.search("".join(self.scopes.hollow.lines)) is not None

    @functools.cached_property
    def _holds_targets(self) -> bool:
        """Whether the file writes out what Hydra may make objects of."""
        return any(f"{quote}_target_{quote}" in line for line in self.scopes.hollow.lines for quote in "'\"")

    @functools.cached_property
    def _has_actors(self) -> bool:
        """Whether the file imports Ray."""
        return any(bound.target == "ray" for bound in self.scopes.module.bindings.get("ray", ()))

    def resolve(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Names:
        """The names that `node` may stand for."""
        if depth <= 0:
            self._cut += 1
            return ()
        key: tuple[object, ...] = (node, scope)
        if isinstance(node, ast.Name):
            # All reads of a name in one scope stand for the same.
            home = scope.home(node.id)
            key = (node.id, home, home is scope)
        known = self._resolved.get(key)
        if known is None and (known := self._shallow.get((key, depth))) is not None:
            self._cut += 1
        if known is None:
            before = self._cut
            found = self._resolve(node, scope, depth)
            known = tuple(dict.fromkeys(name for name in found if len(name) < _LONGEST))[:NAMES]
            if self._cut == before:
                self._resolved[key] = known
            else:
                # Who asks here first has more to see than who came by on the way from somewhere else.
                self._shallow[key, depth] = known
        return known

    def _resolve(self, node: ast.expr, scope: Scope, depth: int) -> Iterable[str]:
        if isinstance(node, ast.Name):
            return self.resolve_name(node.id, scope, depth)
        if isinstance(node, ast.Attribute):
            return self.attribute(node.attr, self.resolve(node.value, scope, depth - 1))
        if isinstance(node, ast.Call):
            return self._result(node, scope, depth)
        if isinstance(node, ast.IfExp):
            return (*self.resolve(node.body, scope, depth - 1), *self.resolve(node.orelse, scope, depth - 1))
        if isinstance(node, ast.BoolOp):
            return [name for value in node.values for name in self.resolve(value, scope, depth - 1)]
        if isinstance(node, (ast.NamedExpr, ast.Await)):
            return self.resolve(node.value, scope, depth - 1)
        if isinstance(node, ast.Subscript):
            return self._resolve_subscript(node, scope, depth)
        if isinstance(node, (ast.Dict, ast.Tuple, ast.List)):
            return self._display(node, scope, depth)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp)):
            return self.resolve(node.value if isinstance(node, ast.DictComp) else node.elt, scope, depth - 1)
        if isinstance(node, ast.Starred):
            return self.held(node.value, scope, depth)
        if isinstance(node, ast.Lambda):
            return [f"@.{self.scopes.lambdas[node]}"] if node in self.scopes.lambdas else ()
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            literals = [side for side in sides if isinstance(side, LITERALS)]
            if isinstance(node.op, ast.Mult) or (isinstance(node.op, ast.Add) and literals):
                joined = literals if isinstance(node.op, ast.Mult) else sides
                return [name for side in joined for name in self.resolve(side, scope, depth - 1)]
            return self.elements(node, scope, depth - 1)
        return ()

    def _display(self, node: ast.Dict | ast.Tuple | ast.List, scope: Scope, depth: int) -> Iterable[str]:
        """What is in a display; of one that Hydra makes an object of, where it stands."""
        if isinstance(node, ast.Dict) and self._holds_targets and any(map(_is_target, walk(node))):
            return [f"{WRITTEN}{node.lineno}:{node.col_offset}"]
        elements = node.values if isinstance(node, ast.Dict) else node.elts
        return (
            [name for value in elements if value is not None for name in self.resolve(value, scope, depth - 1)]
            if len(elements) <= 4 * NAMES
            else ()
        )

    def elements(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Names:
        """The names of what is in the container `node`, as far as it is filled in sight."""
        home = scope.home(node.id) if isinstance(node, ast.Name) else None
        key: tuple[object, Scope] = (node, scope)
        if home is not None and isinstance(node, ast.Name):
            key = (node.id, home)
        known = self._elements.get(key)
        if known is None and depth > 0:
            self._elements[key] = ()
            known = self._elements[key] = tuple(dict.fromkeys(self._find_elements(node, scope, depth)))[:NAMES]
        return known or ()

    def _find_elements(self, node: ast.expr, scope: Scope, depth: int) -> Iterable[str]:
        if isinstance(node, LITERALS):
            return self.resolve(node, scope, depth - 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            return [name for side in (node.left, node.right) for name in self.elements(side, scope, depth - 1)]
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in PASSED_ON and node.args:
                return self.elements(node.args[0], scope, depth - 1)
            if (holder := held_layers(node)) is not None:
                return [f"{name}.{CHILDREN}" for name in self.resolve(holder, scope, depth - 1) if name == "$self"]
            if isinstance(node.func, ast.Attribute) and goes_through_table(node):
                return self._values(node.func.value, scope, depth)
            functions = self.resolve(node.func, scope, depth - 1)
            if not self.words.containers.isdisjoint(functions):
                return [name for arg in node.args for name in self.resolve(arg, scope, depth - 1)]
            if any(self.gives_several(f"{function}()") for function in functions):
                return self._given_back(functions[0], node, scope, depth)
        values: Iterable[tuple[ast.expr, Scope]] = ()
        if isinstance(node, ast.Name):
            home = scope.home(node.id)
            bounds = home.bindings[node.id] if home is not None else []
            values = [
                (bound.value, home)
                for bound in bounds
                if home is not None and bound.value is not None and bound.kind in ("value", "part")
            ]
        elif isinstance(node, ast.Attribute):
            return self._kept_elements(node, scope, depth)
        return [name for value, where in values for name in self.elements(value, where, depth - 1)]

    def _kept_elements(self, node: ast.Attribute, scope: Scope, depth: int) -> list[str]:
        """The names of what is in the attribute `node` of `self`. What another method was given to put there is in the
        attribute, whatever that method calls it."""
        kept = self.kept(node, scope, depth)
        whole = f"$self.{node.attr}"
        found = [
            whole if where is not scope and _is_parameter(name) else name
            for value, where in kept
            for name in self.elements(value, where, depth - 1)
        ]
        # A list of objects in sight stands for these alone, and for all of them.
        return [*found, whole] if found and all(isinstance(value, LITERALS) for value, _ in kept) else found

    def _values(self, node: ast.expr, scope: Scope, depth: int) -> Iterable[str]:
        """The names of what the dictionary `node` holds."""
        tables = [followed(node, scope)]
        if isinstance(node, ast.Attribute) and not isinstance(tables[0][0], ast.Dict):
            tables = list(self.kept(node, scope, depth))
        found = [
            name
            for table, where in tables
            if isinstance(table, ast.Dict)
            for name in self.resolve(table, where, depth - 1)
        ]
        # Of what a module holds: `modules[name].__dict__`.
        named = [name for name in self.resolve(node, scope, depth - 1) if name.endswith(".*")]
        return [*found, *named] or (*self.registered(node, scope), *self.elements(node, scope, depth - 1))

    def kept(self, node: ast.Attribute, scope: Scope, depth: int = DEPTH) -> Sequence[tuple[ast.expr, Scope]]:
        """What the methods of the class around give to the attribute `node` of `self`."""
        method = scope.method
        if method is None or method.outer is None or not isinstance(node.value, ast.Name):
            return ()
        own = "$self" in self.resolve(node.value, scope, depth - 1)
        return self.values_of(method.outer).get(node.attr, ()) if own else ()

    def attribute(self, attribute: str, owners: Names) -> list[str]:
        """The names of an attribute of what stands for `owners`."""
        if attribute == "__dict__":
            return [f"{name}.*" for name in owners]
        if attribute == "remote" and self._has_actors:
            # Ray makes an actor, or has one run a method: `Trainer.options(num_gpus=1).remote(config)`.
            return [name.removesuffix(".options()") for name in owners]
        return _class_of(owners) if attribute == "__class__" else [self._joined(name, attribute) for name in owners]

    def _joined(self, name: str, attribute: str) -> str:
        if name.endswith("."):
            return name + attribute
        full = f"{name}.{attribute}"
        if name.startswith(TOLD):
            return f"{TOLD}{self._joined(name[1:], attribute)}"
        return full if name.startswith(("@", ".", "$", WRITTEN)) else self.canonical(full)

    def resolve_name(
        self, name: str, scope: Scope, depth: int = DEPTH, bounds: Sequence[Bound] | None = None
    ) -> list[str]:
        """The names that `name` may stand for in `scope`; of what binds it, only `bounds` count if they are given."""
        home = scope.home(name)
        if home is None:
            if name in BUILTINS:
                return [f"builtins.{name}"]
            return [f"*.{name}"] if self.scopes.stars and name not in scope.passing else []
        found: list[str] = []
        for bound in home.bindings[name] if bounds is None else bounds:
            if bound.kind == "import":
                found.append(bound.target if bound.target.startswith(".") else self.canonical(bound.target))
            elif bound.kind in ("def", "class"):
                found.append(f"@.{bound.target}")
            elif bound.kind == "parameter":
                found.extend(self._resolve_parameter(name, bound, home, scope, depth))
            elif bound.kind == "element" and bound.value is not None:
                found.extend(self.held(bound.value, home, depth))
            elif bound.kind == "default" and bound.value is not None and device_in(bound.value) is not None:
                continue  # the parameter says more
            elif bound.kind == "value" and len(found) == 1 and is_device_of(bound.value, name):
                continue
            elif bound.value is not None and bound.kind in ("value", "default", "part"):
                outer = home if bound.kind != "default" else home.outer or home
                found.extend(self._part(bound.value, bound.place, outer, depth - 1))
                found.extend(self.told(bound.told, home, depth - 1) if bound.told is not None else ())
        return found

    def _part(self, value: ast.expr, place: int, scope: Scope, depth: int) -> Names:
        """The names of what stands at a `place` of that which a call gives; of all of `value` where there is none."""
        names = self.resolve(value, scope, depth)
        if place < 0 or not isinstance(value, ast.Call):
            return names
        called = {f"{one}()" for one in self.resolve(value.func, scope, depth - 1) if self._is_of_project(one)}
        return tuple(at_place(name, f"{AT}{place}") if name in called else name for name in names)

    def _is_of_project(self, name: str) -> bool:
        """Whether `name` may be of a function of the project that a name or `self` leads to."""
        return name.startswith(("@.", ".", "*.", "$self.", "$cls.")) or (
            name[0].isidentifier() and name.partition(".")[0] not in self._others
        )

    def told(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Iterator[str]:
        """The names of what something is only said to be."""
        for name in self.resolve(node, scope, depth):
            if not name.startswith(("builtins.", "typing.", "$", TOLD)):
                yield f"{TOLD}{name}"

    def held(self, container: ast.expr, scope: Scope, depth: int = DEPTH) -> Names:
        """The names of what is in `container`, as far as it is filled in sight; of one that a caller gives, what the
        container stands for, as a display stands for what is in it."""
        whole = container
        if isinstance(whole, ast.Call) and isinstance(whole.func, ast.Attribute) and whole.func.attr in _ENTRIES:
            whole = whole.func.value
        given = (name for name in self.resolve(whole, scope, depth - 1) if name.startswith("$") and "(" not in name)
        return self.elements(container, scope, depth - 1) or tuple(given)

    def _resolve_parameter(self, name: str, bound: Bound, home: Scope, scope: Scope, depth: int) -> list[str]:
        first = home.first
        if first and parameters_of(home.node.args)[0].arg == name:
            return ["$self" if first == "self" else "$cls"]
        found = [f"${name}"] if home is scope else []
        annotation = class_named(bound.value)
        if annotation is not None and home.outer is not None:
            found.extend(
                f"{kind}()"
                for kind in self.resolve(annotation, home.outer, depth - 1)
                if not kind.startswith("builtins.")
            )
        return found

    def _result(self, node: ast.Call, scope: Scope, depth: int) -> Iterable[str]:
        """The names of what a call gives, or of a part of it."""
        if isinstance(node, Part):
            return self._part(node.whole, node.place, scope, depth)
        return self._resolve_call(node, scope, depth)

    def _resolve_call(self, node: ast.Call, scope: Scope, depth: int) -> list[str]:
        found = self._taken(node.func, node.args, scope, depth) if isinstance(node.func, ast.Attribute) else []
        for function in self.resolve(node.func, scope, depth - 1):
            if function == "builtins.super":
                found.append("$super")
            elif function == "builtins.type" and len(node.args) == 1:
                found.extend(_class_of(self.resolve(node.args[0], scope, depth - 1)))
            elif function in _TAKES_PARTS and len(node.args) >= 2:
                found.extend(self._taken_by_text(function, node, scope, depth))
            elif function in ("importlib.import_module", "builtins.__import__"):
                module = constant(node.args[0], scope) if node.args else None
                if module is not None and isinstance(module[0], str):
                    found.append(self.canonical(module[0]))
                elif module is None and node.args and (picked := modules_of(followed(node.args[0], scope)[0])):
                    anchor = constant(node.args[1], scope) if picked[0] == "." and len(node.args) > 1 else None
                    found.append(f"{anchor[0]}{picked}" if anchor is not None else picked)
            elif function == "builtins.eval" and node.args:
                found.extend(self._evaluated(node.args[0], scope, depth))
            elif function in self.words.instantiates:
                part = configuration_of(node)
                paths = self.path(part, scope, depth - 1) if part is not None else ()
                parts = (path if path[0] == WRITTEN else path.partition(".")[2] for path in paths)
                found.extend(f"%{part.replace('.', '/')}()" for part in parts)
            elif function in self.wrappers:
                found.extend(self._wrapped(node, scope, depth))
            elif (whole := self._whole(function)) is not None:
                found.append(whole)
            elif function.endswith(self._moves) and ")" in function and function[0] not in f"@.$*{TOLD}":
                found.append(function[: function.rindex(".")])
            elif function not in _NAMESPACES and function.count("()") < 4:
                streamed = f"{function}()" in self.words.alike and self._streams(node, scope)
                found.append(f"{function}.streamed()" if streamed else f"{function}()")
                found.extend(self._by_text(function, node, scope))
                found.extend(f"{made}()" for made in self.from_registry(node, function, scope, depth))
                found.extend(self._given_back(function, node, scope, depth - 1))
                found.extend(self._configured(function, node, scope, depth - 1))
        return found

    def _taken_by_text(self, function: str, node: ast.Call, scope: Scope, depth: int) -> Iterator[str]:
        """What `getattr`, or `reduce` with that, takes of something, of a module by parts of a text in full."""
        if (place := self._texts.text_of(node, scope, depth)) is not None:
            yield from (f"{LOCATE}{NAMED}{text}}}" for text in sources(*place, parameters=True))
        elif function == "builtins.getattr" and self._is_own_module(node.args[0], scope, depth):
            yield from self._named_here(node.args[1], scope, depth)
        elif function == "builtins.getattr":
            last = self._spells(node.args[1], scope)
            named = _text_of_parameter(node.args[1], scope) if last == "*" else ""
            for name in self.resolve(node.args[0], scope, depth - 1):
                # A caller may say which method of an object of the class is meant, or which function of a module.
                of_object = name.startswith("$self") or (name.endswith("()") and name[0] in "@.")
                of_module = _MODULE.fullmatch(name) is not None and name.partition(".")[0] not in self.roots
                yield self._joined(name, named if named and (of_object or of_module) else last)
        else:
            yield f"{function}()"

    def _by_text(self, function: str, node: ast.Call, scope: Scope) -> Iterator[str]:
        """What a function gives for the text that it is given, which may name that: `import_class("net.gcn.Model")`."""
        last = function.rpartition(".")[2].partition(NAMED)[0]
        if not node.args or function.count(NAMED) > 1 or not last.islower() or last[0] == "$":
            return
        if function in self.words.locates:
            function, wanted = LOCATE, True
        elif function[0] not in "@.$" and function.partition(".")[0] in self._others:
            return
        else:
            wanted = self.words.finds_by_text.search(last) is not None
        known = sources(node.args[0], scope, parameters=wanted)
        if not wanted and self.words.makes_by_text.match(last) is None:
            known = [text for text in known if text[0] != "?"]
        yield from (f"{function}{NAMED}{text}}}" for text in known)

    def from_registry(self, node: ast.Call, function: str, scope: Scope, depth: int = DEPTH) -> Iterator[str]:
        """What a function of the project that builds takes of a registry which it is given and makes an object of:
        `@.NETS.get()` of `build_from_cfg(cfg, NETS)`."""
        if function[0] not in "@." or self.words.builds.search(function.rpartition(".")[2]) is None:
            return
        for argument in (*node.args, *(word.value for word in node.keywords)):
            if isinstance(argument, (ast.Name, ast.Attribute)):
                names = self.dictionary(argument, scope, depth - 1)
                yield from (f"{name}.get()" for name in names if name[0] in "@.")

    def built_here(self, function: ast.expr, scope: Scope) -> Iterator[str]:
        """A method of a registry of this file that builds what is registered there, by the name of that: `@.NETS.build`
        of `NETS.build(cfg)`."""
        if isinstance(function, ast.Attribute) and self.words.builds.search(function.attr) is not None:
            yield from (name for name in self.dictionary(function, scope) if name.startswith("@."))

    def _configured(self, function: str, node: ast.Call, scope: Scope, depth: int) -> Iterator[str]:
        """What Hydra makes of the part of a configuration that a function of the file is given for it: `make(cfg.net)`
        of `def make(cfg): return instantiate(cfg)`."""
        text = self.scopes.hollow.text
        name = function[2:] if function.startswith("@.") and _INSTANTIATES in text else ""
        if not name.isidentifier() or (made := _made_of(name, text)) is None:
            return
        place, parameter = made
        given = [word.value for word in node.keywords if word.arg == parameter] or node.args[place : place + 1]
        for path in (path for one in given for path in self.path(one, scope, depth)):
            if part := path.partition(".")[2]:
                yield f"%{part.replace('.', '/')}()"

    def _whole(self, function: str) -> str | None:
        """What a method gives that makes another data set of a data set of a library: the same; None for all else."""
        owner, _, method = function.rpartition(".")
        return owner if owner in self.words.alike and not method.startswith("to_") else None

    @staticmethod
    def _streams(node: ast.Call, scope: Scope) -> bool:
        """Whether a call may give a data set that is read as it goes, which draws from a generator of its own."""
        given = [constant(word.value, scope) for word in node.keywords if word.arg == "streaming"]
        return any(known is None or bool(known[0]) for known in given)

    def _given_back(self, function: str, node: ast.Call, scope: Scope, depth: int) -> Iterator[str]:
        """What of the arguments of a call stands behind what it gives: all of a container, the data of a loader."""
        if function == LOADER:
            data = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "dataset")]
            names = [name for one in data for name in self.resolve(one, scope, depth)]
            yield from (f"{name}.{LOADED}" for name in names if name[0] in "@.$" or "()" in name)
        elif function.startswith(self.applying):
            # By place, the first is where the data are.
            applied = [*node.args[1:], *(word.value for word in node.keywords if word.arg in self.applied)]
            yield from (name for one in applied for name in self.resolve(one, scope, depth) if name[0] in "@.$")
        last = function.rpartition(".")[2]
        given = node.args[:1] if self.words.moves_what.search(last) else []
        if last in self.words.falls_back and len(node.args) == 2 and not node.keywords:
            given = node.args
        if function in self.holding:
            given = [*node.args[:1], *(word.value for word in node.keywords if word.arg in ("dataset", "datasets"))]
        elif function in _TABLES and node.args and isinstance(node.args[0], _OF_PAIRS):
            given = node.args[:1]
        for argument in node.args if function in self.words.containers else given:
            yield from self.resolve(argument, scope, depth)

    def gives_several(self, name: str) -> bool:
        """Whether `name` stands for several data sets, into which a function of a library splits one."""
        function = name.removesuffix("()")
        return function != name and function in self.holding and function.rpartition(".")[2].islower()

    def _evaluated(self, node: ast.expr, scope: Scope, depth: int) -> Iterator[str]:
        """What the text `node` stands for where it is evaluated: any class, of a name that only the run knows."""
        named = (text.partition(".") for text in (*texts(node, scope, evaluated=True), *self._spelled(node, scope)))
        picked = [
            *(
                self._joined(one, last) if last else one
                for name, _, last in dict.fromkeys(named)
                for one in self.resolve_name(name, self.scopes.module, depth - 1)
            ),
            *self._spelled_path(node, scope, depth - 1),
        ]
        yield from picked
        if not picked and isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            yield from self._any_of("[A-Z]", scope, depth)

    def _spelled(self, node: ast.expr, scope: Scope) -> Names:
        """The names of the module that the text `node` may spell: a constant of a table, one with a gap in it, or what
        an option of the command line is by default."""
        if isinstance(node, ast.Attribute):
            return self._defaults.get(node.attr, ())
        table = followed(node.value, scope)[0] if isinstance(node, ast.Subscript) else node
        values = table.values if isinstance(table, ast.Dict) else [node]
        patterns = [pattern_of(followed(value, scope)[0]) for value in values[: 4 * NAMES]]
        return tuple(name for one in patterns if one.strip(".*$") for name in self.defined(f"(?:{one})$"))

    def spelled_calls(self, node: ast.Call, scope: Scope) -> Names:
        """What a text that is evaluated calls: `eval(f"{name}()")`."""
        names = self._spelled_path(node.args[0], scope, DEPTH) if node.args else ()
        return tuple(name.removesuffix("()") for name in names if name.endswith("()"))

    def _spelled_path(self, node: ast.expr, scope: Scope, depth: int) -> Iterator[str]:
        """What a text with a gap spells: `f"{name}()"` calls something of the module, `"models." + name` is something
        of `models`, and `"models." + name + ".build"` a function of a module of that package."""
        spelled = _GAP.fullmatch(pattern_of(followed(node, scope)[0]))
        if spelled is None:
            return
        path, last, called = (part.replace("\\", "") for part in spelled.groups())
        after = "()" if called else ""
        if not path:
            picked = self.defined(".") if called and not last else ()
            others = (name for name in picked if name != scope.name)
            yield from (f"{one}()" for name in others for one in self.resolve_name(name, self.scopes.module, depth))
            return
        first, _, rest = path[:-1].partition(".")
        for owner in self.resolve_name(first, self.scopes.module, depth):
            package = self._joined(owner, rest) if rest else owner
            yield (f"{package}.{MODULES}{last}" if last else self._joined(package, "*")) + after

    @functools.cached_property
    def _defaults(self) -> dict[str, Names]:
        """The names that options of the file's command line have by default."""
        options = _OPTION.findall("".join(self.scopes.hollow.lines))
        return {option.replace("-", "_"): (name,) for option, name in options}

    def _taken(self, function: ast.Attribute, args: list[ast.expr], scope: Scope, depth: int) -> list[str]:
        """What a method gives that takes something out of its object, a registry or a module."""
        found: list[str] = []
        if function.attr == "__getattribute__" and args and (asked := constant(args[0], scope)):
            found.extend(self._joined(name, str(asked[0])) for name in self.resolve(function.value, scope, depth - 1))
        if function.attr == "get":
            table, where = followed(function.value, scope)
            if isinstance(table, ast.Dict) and args:
                found.extend(self._picked(args[0], table, where, depth))
                found.extend(name for default in args[1:] for name in self.resolve(default, scope, depth - 1))
            filled = [name for name in self.dictionary(function.value, scope, depth) if name.startswith("@.")]
            plain = len(args) == 1 and bool(filled) and "." not in filled[0][2:] and self._holds_all(filled[0][2:])
            item = self._item(args[0], scope) if plain else "[]"
            found.extend(self.registered(function.value, scope, decorated=item == "[]"))
            if item != "[]":
                return [*found, *(f"{name}.{item}" for name in filled)]
            found.extend(f"{name}.[]" for name in self.dictionary(function.value, scope, depth) if name.startswith("$"))
            found.extend(f"{name}.[]" for name in self.shelves(function.value, scope))
        found.extend(f"{name}()" for name in self.dictionary(function, scope, depth) if name.startswith("@"))
        return found

    def _holds_all(self, name: str) -> bool:
        """Whether a name of the module is a dictionary that starts empty, or a registry, of which `get` takes an entry
        by its key."""
        made = [bound.value for bound in self.scopes.module.bindings[name]]
        return self.fills(name) or any(
            isinstance(value, ast.Call) and "egistr" in last_word(value.func) for value in made
        )

    def path(self, node: ast.expr, scope: Scope, depth: int = DEPTH) -> Names:
        """`$cfg.model.net` of `cfg.model["net"]`, where `cfg` is a parameter."""
        parts: list[str] = []
        while True:
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                parts.append(str(node.slice.value))
            else:
                break
            node = node.value
        names = self.resolve(node, scope, depth)
        return tuple(
            ".".join([name, *reversed(parts)]) for name in names if name[0] in f"${WRITTEN}" and "." not in name
        )

    def _wrapped(self, node: ast.Call, scope: Scope, depth: int) -> Iterator[str]:
        """The names of what a wrapper is given."""
        given = node.args[:1] or [word.value for word in node.keywords if word.arg in ("module", "model")]
        for value in given:
            yield from self.resolve(value, scope, depth - 1)

    def defined(self, pattern: str) -> Names:
        """The names that the module gives to functions and classes, and then to what it imports: those that match
        `pattern`."""
        wanted = re.compile(pattern)
        matching = {name: bounds for name, bounds in self.scopes.module.bindings.items() if wanted.match(name)}
        found = [
            name
            for kinds in (("def", "class"), ("import",))
            for name, bounds in matching.items()
            if any(bound.kind in kinds for bound in bounds)
        ]
        return tuple(dict.fromkeys(found))

    def _picked(self, key: ast.expr, table: ast.expr, where: Scope, depth: int) -> list[str]:
        """What `key` may pick from the display `table`, which stands in `where`: by its value, where that is known."""
        elements = table.values if isinstance(table, ast.Dict) else getattr(table, "elts", [])
        if isinstance(table, ast.Dict) and isinstance(key, ast.Constant):
            picked = [
                v
                for k, v in zip(table.keys, table.values, strict=True)
                if isinstance(k, ast.Constant) and k.value == key.value
            ]
            elements = picked or elements
        return [
            name
            for element in elements[: 4 * NAMES]
            if element is not None
            for name in self.resolve(element, where, depth - 1)
        ]

    def _resolve_subscript(self, node: ast.Subscript, scope: Scope, depth: int) -> list[str]:
        if isinstance(node.value, ast.Call) and self._names_here(node.value, scope, depth):
            return list(self._named_here(node.slice, scope, depth))
        if isinstance(node.value, ast.Attribute) and node.value.attr in ("_modules", "__dict__"):
            owners = self.resolve(node.value.value, scope, depth - 1)
            return [self._joined(name, self._spells(node.slice, scope)) for name in owners]
        value = followed(node.value, scope)
        if isinstance(value[0], (ast.Dict, ast.List, ast.Tuple)) and not starts_empty(value[0]):
            return self._picked(node.slice, *value, depth)
        kept = self.kept(node.value, scope, depth) if isinstance(node.value, ast.Attribute) else ()
        if kept and all(isinstance(table, ast.Dict) and table.values for table, _ in kept):
            return [name for table, where in kept for name in self._picked(node.slice, table, where, depth)]
        found = self.resolve(node.value, scope, depth - 1)
        tables = list(self.dictionary(node.value, scope, depth))
        key, place = key_of(node.slice), _place_of(node.slice)
        keyed = [name for name in tables if key and name[0] not in "@$"]
        item, filled_here = self._item(node.slice, scope), any(name.startswith("@.") for name in tables)
        return [
            *(f"{name}{KEY}{key}" if name in keyed else f"{name}.{item}" for name in tables),
            *(f"{name}.[]" for name in self.shelves(node.value, scope)),
            *self._table_of_module(value[0], value[1], depth),
            # A dictionary of the class, which may stand in a base of it.
            *(
                f"{name}.[]"
                for name in found
                if not kept and name.startswith(("$self.", "$cls.")) and name.count(".") == 1
            ),
            *self.registered(node.value, scope, decorated=item == "[]" or not filled_here),
            *self.elements(node.value, scope, depth - 1),
            *(
                at_place(name, f"{AT}{place}") if place is not None else name
                for name in found
                if name.endswith(".*")
                or (name not in keyed and name.rpartition(".")[2][:1].isupper() and not name.endswith(")"))
                or self._gives_a_table(name)
                or name in self.words.alike
            ),
        ]

    def _table_of_module(self, table: ast.expr, scope: Scope, depth: int) -> Iterator[str]:
        """What a table holds that a function of the project makes of a module which it is given."""
        module = table.args[0] if isinstance(table, ast.Call) and table.args else None
        if isinstance(table, ast.Call) and isinstance(module, (ast.Name, ast.Attribute)):
            names = [one for one in self.resolve(module, scope, depth - 1) if _MODULE.fullmatch(one) is not None]
            for function in self.resolve(table.func, scope, depth - 1) if names else ():
                if _FUNCTION.match(f"{function}()") and function.partition(".")[0] not in self._others:
                    yield from (f"{function}{NAMED}{OF_MODULE}{spelled(one)}}}" for one in names)

    def _item(self, key: ast.expr, scope: Scope) -> str:
        """An item of a table by its `key`, `[=train]`, or by that which a parameter is, `[$name]`; else any."""
        if isinstance(key, ast.Name) and scope.kind == "function" and key.id not in scope.lent:
            bounds = scope.bindings.get(key.id, ())
            is_given = bool(bounds) and all(bound.kind in ("parameter", "default") for bound in bounds)
            return f"[${key.id}]" if is_given else "[]"
        text = key_of(key)
        return f"[={text}]" if text else "[]"

    def _names_here(self, call: ast.Call, scope: Scope, depth: int) -> bool:
        """Whether `call` gives the names of the module: `globals()`, and at top level `locals()` and `vars()`."""
        names = self.resolve(call.func, scope, depth - 1)
        if scope.kind == "module" and not call.args:
            return not _NAMESPACES.isdisjoint(names)
        return "builtins.globals" in names

    def _is_own_module(self, node: ast.expr, scope: Scope, depth: int) -> bool:
        """Whether `node` is the module itself: `sys.modules[__name__]`."""
        held, where = followed(node, scope)
        if not isinstance(held, ast.Subscript) or not isinstance(held.slice, ast.Name) or held.slice.id != "__name__":
            return False
        return "sys.modules" in self.resolve(held.value, where, depth - 1)

    def _named_here(self, text: ast.expr, scope: Scope, depth: int) -> Iterator[str]:
        """What of the module goes by a text: `globals()[text]`."""
        known = constant(text, scope)
        yield from self._any_of(pattern_of(text) if known is None else f"{re.escape(str(known[0]))}$", scope, depth)
        yield from (self._joined(star, self._spells(text, scope)) for star in self.scopes.stars)

    def _any_of(self, pattern: str, scope: Scope, depth: int) -> Iterator[str]:
        """What the names of the module that match `pattern` stand for, but for the function around and for modules."""
        for name in self.defined(pattern):
            for one in self.resolve_name(name, self.scopes.module, depth - 1) if name != scope.name else ():
                if one.startswith(("@", ".", "$")) or "." in one:
                    yield one

    def keyed(self, name: str, key: str) -> Names:
        """The names of what stands under `key` in the table that the module calls `name`: none if it is no table, or
        has no such key."""
        table, where = followed(ast.Name(name), self.scopes.module)
        if isinstance(table, ast.Dict):
            picked = [v for k, v in zip(table.keys, table.values, strict=True) if getattr(k, "value", None) == key]
            return tuple(one for value in picked for one in self.resolve(value, where))
        bounds = self.scopes.module.bindings.get(name, ())
        imported = [bound.target for bound in bounds if bound.kind == "import"]
        return tuple(f"{target}{KEY}{key}" for target in imported) if len(imported) == len(bounds) else ()

    def _gives_a_table(self, name: str) -> bool:
        """Whether a name may be of a function of the project, called: what it returns stands for all that is in it."""
        return name.endswith("()") and name.partition(".")[0] not in self.roots and _FUNCTION.match(name) is not None

    def properties(self, scope: Scope | None) -> frozenset[str]:
        """The properties of the class `scope`."""
        if scope is None:
            return frozenset()
        known = self._properties.get(scope.name)
        if known is None:
            known = self._properties[scope.name] = frozenset(
                name
                for name, bounds in scope.bindings.items()
                for bound in bounds
                if bound.kind == "def" and is_property(self.scopes.by_name[bound.target].node)
            )
        return known

    def values_of(self, scope: Scope) -> dict[str, list[tuple[ast.expr, Scope]]]:
        """Attribute -> the values that the class `scope` gives to it in its methods."""
        if scope.name not in self._self_values:
            self._self_values[scope.name] = self._assigned(scope)
        return self._self_values[scope.name]

    def _assigned(self, scope: Scope) -> dict[str, list[tuple[ast.expr, Scope]]]:
        """Attribute -> the values that the methods of a class give to it through their first parameter."""
        found: dict[str, list[tuple[ast.expr, Scope]]] = {}
        for bounds in list(scope.bindings.values()):
            for bound in bounds:
                if bound.kind != "def":
                    continue
                method = self.scopes.function(bound.target)
                if method is None or method.first != "self":
                    continue
                me = parameters_of(method.node.args)[0].arg
                without = overwritten(method.node.body, method.is_of_others)
                for statement in (one for one in statements_in(method.node.body) if one not in without):
                    for attribute, given in self._gives(statement, me, method):
                        found.setdefault(attribute, []).append((given, method))
                    if keeps_all(statement, me):
                        for one in parameters_of(method.node.args)[1:]:
                            given = ast.copy_location(ast.Name(one.arg, ast.Load()), statement)
                            found.setdefault(one.arg, []).append((given, method))
        return found

    def _gives(self, statement: ast.stmt, me: str, method: Scope) -> Iterator[tuple[str, ast.expr]]:
        """What attributes a statement gives to `me`, with their values; those of `super()` are what the constructor
        above is handed."""
        yield from (("super()", layer) for layer in handed_above(statement))
        if (by_text := installed(statement)) is not None:
            owner, text, value = by_text
            if isinstance(owner, ast.Name) and owner.id == me:
                yield self._spells(text, method), value
            return
        given: tuple[Sequence[ast.expr | None], ast.expr | None] = ((), None)
        if isinstance(statement, ast.Assign):
            given = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign):
            given = [statement.target], statement.value
        elif isinstance(statement, (ast.AugAssign, ast.Expr)):
            container, part = added_to(statement)
            given = [container], part
        targets, made = given
        if made is None:
            return
        for target, one in paired([target for target in targets if target is not None], made):
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == me:
                yield target.attr, as_table(one)

    @staticmethod
    def _spells(text: ast.expr, scope: Scope) -> str:
        """The attribute that a text names, `run_*` where it only begins so."""
        known = constant(text, scope)
        begins = beginning(text)
        return str(known[0]) if known is not None else f"{begins if begins.isidentifier() else ''}*"


def _text_of_parameter(text: ast.expr, scope: Scope) -> str:
    """`{$name}` where `text` is the parameter `name` of the function, which nothing there binds again; else empty."""
    bounds = scope.bindings.get(text.id, ()) if isinstance(text, ast.Name) and scope.kind == "function" else ()
    given = bool(bounds) and all(bound.kind in ("parameter", "default") for bound in bounds)
    return f"{OF_PARAMETER}{text.id}}}" if isinstance(text, ast.Name) and given else ""


def _place_of(key: ast.expr) -> int | None:
    """The place in a tuple that `key` evidently is."""
    known = key.value if isinstance(key, ast.Constant) else None
    return known if isinstance(known, int) and not isinstance(known, bool) else None


def _is_parameter(name: str) -> bool:
    """Whether `name` stands for a parameter of a function, and for nothing of it."""
    return name[0] == "$" and name[1:].isidentifier() and name not in ("$self", "$cls", "$super")


def _class_of(names: Names) -> list[str]:
    """The class of what is `self` of `names`."""
    return ["$cls" for name in names if name == "$self"]


def _is_target(node: ast.AST) -> bool:
    """Whether `node` is a dictionary that names what Hydra makes of it."""
    return isinstance(node, ast.Dict) and any(
        isinstance(key, ast.Constant) and key.value == "_target_" for key in node.keys
    )
