"""A class of the project and the call that makes an object of it -> its attributes, and what a worker runs of it."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from torchdet_lint.dataflow.workers.constants import Constants
from torchdet_lint.dataflow.workers.forwarding import Given, given_by
from torchdet_lint.dataflow.workers.project_file import (
    File,
    below,
    bindings,
    handed_on,
    left_of,
    method,
    own_added,
    own_assignments,
    own_attributes,
    picked_from,
)
from torchdet_lint.dataflow.workers.scopes import Instance, Scope
from torchdet_lint.prefilter.skeleton import SyntaxFault, dotted_name, parsed
from torchdet_lint.prefilter.syntax import defaults_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.module import Module

_DEEP = 2
# So many classes of a module are looked at where one is picked by name.
_MANY = 40
_NOTHING = Given((), {}, whole=False)
_ROW = "__getitem__"
# Base classes that give their objects nothing but what operators call.
_BARE = frozenset(
    ("object", "abc.ABC", "typing.Generic", "torch.utils.data.Dataset", "torch.utils.data.IterableDataset")
)


class Member(NamedTuple):
    """A method that is named with its class: the class, its file, the method, and the file that has the method."""

    class_: ast.ClassDef
    file: File
    function: ast.FunctionDef
    home: File


class Classes:
    """The classes that the file of `module` can name."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.facts = module.library.facts.workers
        self.files: dict[str, File | None] = {}
        self.constants = Constants()
        self._whole: dict[tuple[str, str], str] = {}
        self._given: dict[tuple[str, str, str], list[tuple[ast.expr, File]]] = {}
        # A method is asked once for each object of its class.
        self._own_assignments = functools.cache(own_assignments)
        self._own_added = functools.cache(own_added)
        self._own_attributes = functools.cache(own_attributes)
        self._asked_above = functools.cache(_asked_above)
        self._bindings = functools.cache(_bindings)
        self._names_set = functools.cache(_names_set)

    def instance(
        self, class_: ast.ClassDef, file: File, call: ast.Call | None = None, scope: Scope | None = None
    ) -> Instance:
        """An object of a class, made by `call` in `scope` where that is known."""
        foreign: list[str] = []
        classes = tuple(self._lineage(class_, file, foreign))
        instance = Instance(classes, {}, {}, tuple(foreign), call, {})
        taken: list[tuple[str, tuple[ast.expr, Scope]]] = []
        given = given_by(call, scope) if call is not None and scope is not None else None
        done = False
        for one, home in classes:
            for statement in one.body:
                for name, value in self._bindings(statement):
                    instance.attributes.setdefault(name, []).append((value, Scope(home)))
            if (initial := method(one, "__init__")) is not None and not done:
                bound = given.parameters(initial) if given is not None else {}
                defaults = _defaults(initial, home)
                left_open = frozenset(() if given is not None and given.whole else defaults.keys() - bound.keys())
                above = handed_on(initial)
                inner = Scope(home, initial, instance, {**defaults, **bound}, left_open=left_open)
                dead = self.constants.dead(initial, self.constants.given(inner)) if call is not None else ()
                inner = inner._replace(dead=dead)
                self._attributes(initial, inner, instance, dead)
                given = (given or _NOTHING).above(initial, above, inner) if above is not None else None
                done = above is None
                taken += given.keywords.items() if given is not None else ()
            for member in one.body:
                if isinstance(member, ast.FunctionDef) and member.name != "__init__":
                    self._attributes(member, Scope(home, member, instance), instance)
        if given is not None and not done:
            # No class of the project has a constructor: the base class is given all, or the fields.
            taken += given.keywords.items()
            fields = self._fields(classes)
            given_fields = dict(zip(fields, given.positional, strict=False)) | given.keywords
            instance.attributes.update((name, [given_fields[name]]) for name in fields if name in given_fields)
        # The first by place is where the data are.
        others = given.positional[1:] if given is not None else ()
        named: list[tuple[str, tuple[ast.expr, Scope]]] = [
            (value.id, (value, inner)) for value, inner in others if self._names_what_runs(value)
        ]
        if not done:
            # By place, a base class of a library takes its transform.
            named += [(self.facts.applied[0], bound) for bound in others if isinstance(bound[0], ast.Call)]
        taken += named
        idle = sum(isinstance(value, ast.Constant) for value, _ in others)
        # What a base class of a library is given it keeps under the same name.
        for name, given_above in taken if foreign else ():
            instance.attributes.setdefault(name, [given_above])
        if call is None:
            return instance
        changed = file.set_outside | (scope.file.set_outside if scope is not None else set())
        kept = {name: values for name, values in instance.attributes.items() if name not in changed}
        set_later = any(map(self._runs, changed))
        whole = given is not None and given.whole and len(others) == len(named) + idle and not set_later
        # The scopes in which the attributes stand see them too: `self.transform = transform_for(self.phase)`.
        instance.constants.update(self.constants.attributes(kept))
        return instance._replace(whole=whole)

    def _fields(self, classes: Sequence[tuple[ast.ClassDef, File]]) -> list[str]:
        """The names that the constructor which `dataclass` writes for the first of `classes` takes, by their places."""
        made = [(one, home) for one, home in classes if any(self._writes_fields(by, home) for by in one.decorator_list)]
        names = [
            statement.target.id
            for one, _ in (reversed(made) if made[:1] == [classes[0]] else ())
            for statement in one.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]
        return list(dict.fromkeys(names))

    def _writes_fields(self, decorator: ast.expr, file: File) -> bool:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self.dotted(called, file) == "dataclasses.dataclass"

    def _runs(self, name: str) -> bool:
        """Whether an attribute or parameter of that name may hold what a worker runs."""
        return any(word in name.lower() for word in self.facts.arguments)

    def _names_what_runs(self, node: ast.expr) -> TypeGuard[ast.Name]:
        """Whether an argument is called as the attribute is in which a base class of a library keeps it."""
        return isinstance(node, ast.Name) and self._runs(node.id)

    def _attributes(
        self, function: ast.FunctionDef, scope: Scope, instance: Instance, dead: tuple[ast.AST, ...] = ()
    ) -> None:
        """What a method gives to attributes of `self`, and adds to them, outside of what is `dead`."""
        idle = {id(one) for part in dead for one in walk(part)}
        for name, value in self._own_added(function):
            if id(value) not in idle:
                instance.added.setdefault(name, []).append((value, scope))
        for name, value in self._own_assignments(function):
            if id(value) not in idle:
                instance.attributes.setdefault(name, []).append((left_of(value, idle), scope))

    def _lineage(self, class_: ast.ClassDef, file: File, foreign: list[str]) -> Iterator[tuple[ast.ClassDef, File]]:
        """The class and its base classes of the project; the names of the others are added to `foreign`."""
        yield class_, file
        for base in (one for given in class_.bases for one in self._bases(given, file)):
            name = self.dotted(base, file)
            found = self.definition(name, file)
            if found is not None and found[0] is class_ and isinstance(base, ast.Name) and base.id in file.imports:
                # `class Dataset(Dataset)`: the base is what the name meant before.
                name = self.module.library.canonical(file.imports[base.id])
                found = self.definition(name, file)
            if found is not None and isinstance(found[0], ast.ClassDef) and found[0] is not class_:
                yield from self._lineage(found[0], found[1], foreign)
            else:
                foreign.append(name)

    def _bases(self, base: ast.expr, file: File) -> Iterator[ast.expr]:
        """The base classes that `base` names in `file`: each of a table of which one is picked, `TASKS[task]`."""
        if isinstance(base, ast.Subscript):
            base = base.value
            tables = file.values.get(base.id, ()) if isinstance(base, ast.Name) else ()
            picked = [value for table in tables if isinstance(table, ast.Dict) for value in table.values]
            if picked:
                yield from picked
                return
        yield base

    def lacks(self, class_: ast.ClassDef, file: File, name: str) -> bool:
        """Whether no object of a class has `name`, neither as a method nor as an attribute: all of it is in sight."""
        foreign: list[str] = []
        for one, _ in self._lineage(class_, file, foreign):
            assigned = (own for member in one.body for own in self._names_set(member))
            if any(name == own for own in assigned) or method(one, name) is not None:
                return False
        return _BARE.issuperset(foreign)

    def in_sight(self, instance: Instance) -> bool:
        """Whether it is known of all base classes of an object what their methods draw from."""
        return all(name in self.facts.bases or self.known(name) for name in instance.foreign)

    def run_in_worker(self, instance: Instance, called: str = "") -> list[tuple[ast.FunctionDef, File, str]]:
        """The methods of an object that a worker runs, each with its file and class; `called` is one by name."""
        known: dict[str, list[tuple[int, tuple[ast.FunctionDef, File, str]]]] = {}
        for level, (class_, file) in enumerate(instance.classes):
            for member in class_.body:
                if isinstance(member, ast.FunctionDef):
                    known.setdefault(member.name, []).append((level, (member, file, class_.name)))
        # What is asked of `self` begins at the class of the object, what is asked of `super()` at the next one.
        queue = [(name, 0) for name in known if name == called or (not called and name in self.facts.methods)]
        if called in ("", _ROW) and self._runs_own_row(instance, self.facts.getting):
            queue.append(("get", 0))
        found: dict[int, tuple[ast.FunctionDef, File, str]] = {}
        while queue:
            name, first = queue.pop()
            level, place = next((one for one in known.get(name, ()) if one[0] >= first), (0, None))
            if place is None or id(place[0]) in found:
                continue
            function = place[0]
            found[id(function)] = place
            dead = self.constants.dead(function, instance.constants)
            queue += ((one, 0) for one in (own_attributes(function, dead) if dead else self._own_attributes(function)))
            queue += ((one, level + 1) for one in self._asked_above(function))
        return list(found.values())

    def applied_by_base(self, instance: Instance) -> tuple[str, ...]:
        """The attributes of an object that the row of its base class, of a library, applies."""
        return self.facts.applied if self._runs_own_row(instance, self.facts.applying) else ()

    def _runs_own_row(self, instance: Instance, packages: tuple[str, ...]) -> bool:
        """Whether a base class of an object that one of `packages` has makes its rows, by its own `__getitem__`."""
        if not any(base.startswith(packages) for base in instance.foreign):
            return False
        rows = [row for class_, _ in instance.classes if (row := method(class_, _ROW)) is not None]
        return not rows or any(_calls_above(row) for row in rows)

    def known(self, name: str) -> bool:
        """Whether a package has it that draws from torch alone, if at all."""
        if below(name, self.facts.torch_only):
            return True
        ends = self.facts.preparing if name.partition(".")[0] in self.facts.text_packages else ()
        return any(part.endswith(end) for part in name.split(".")[1:] for end in ends)

    def dotted(self, node: ast.expr, file: File) -> str:
        """The canonical dotted name of an expression in `file`; empty where it is none."""
        root, dot, rest = dotted_name(node).partition(".")
        if not root:
            return self.module.library.canonical(_of_import_call(node))
        whole = root if root in file.definitions else file.imports.get(root, "")
        if not whole:
            own = root == "self" or root in file.values or below(root, self.facts.quiet)
            whole = self._taken_whole(root, file) if file.stars and not own else root
        name = self.module.library.canonical(f"{whole}{dot}{rest}")
        return self._brought(name, file) if dot and root in file.imports and not self.known(name) else name

    def _brought(self, name: str, file: File) -> str:
        """What `name`, `package.transforms.Compose`, is of a library that the module of the project takes whole."""
        told = self.home(name, file)
        if told is None or not told[0].stars or told[1] in told[0].definitions or told[1] in told[0].imports:
            return name
        brought = (self.module.library.canonical(f"{star}.{told[1]}") for star in told[0].stars)
        return next((one for one in brought if self.known(one)), name)

    def _taken_whole(self, root: str, file: File, depth: int = 0) -> str:
        """What `root` means in a module that `file` takes whole and that imports it; `root` where none does."""
        key = (file.path, root)
        if key not in self._whole:
            self._whole[key] = root
            for star in file.stars if depth <= _DEEP else ():
                told = self.home(f"{star}{'' if star.endswith('.') else '.'}{root}", file)
                if told is None or root in told[0].definitions or root in told[0].values:
                    continue
                meant = told[0].imports.get(root) or self._taken_whole(root, told[0], depth + 1)
                if meant != root:
                    self._whole[key] = meant
                    break
        return self._whole[key]

    def made_by(self, call: ast.Call, file: File) -> tuple[ast.ClassDef, File] | None:
        """The class of the project that `call` in `file` makes an object of, and its file."""
        kind, home = self.definition(self.dotted(call.func, file), file) or (None, file)
        return (kind, home) if isinstance(kind, ast.ClassDef) else None

    def makes(self, call: ast.Call, file: File) -> bool:
        """Whether `call` makes an object of a class of the project, or of one that is known."""
        name = self.dotted(call.func, file)
        found = self.definition(name, file)
        return isinstance(found[0], ast.ClassDef) if found is not None else self.known(name)

    def definition(
        self, name: str, file: File, depth: int = 0
    ) -> tuple[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, File] | None:
        """The class or function of the project that `name` is in `file`, and its file."""
        if name in file.definitions:
            return file.definitions[name], file
        if depth > 3:
            return None
        if "." not in name:
            return self._starred(name, file, depth)
        if name.partition(".")[0] in ("torch", "numpy", "self"):
            return None
        told = self.home(name, file)
        if told is None:
            return self._of_module(name, file, depth)
        home, last = told
        if last in home.definitions:
            return home.definitions[last], home
        if last in home.imports:
            return self.definition(home.imports[last], home, depth + 1)
        return self._starred(last, home, depth)

    def _of_module(
        self, name: str, file: File, depth: int
    ) -> tuple[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, File] | None:
        """What `name`, `package.module.function`, is where the package imports the module from elsewhere."""
        owner, _, last = name.rpartition(".")
        told = self.home(owner, file) if "." in owner else None
        imports = told[0].imports if told is not None else {}
        if told is None or told[1] not in imports:
            return None
        return self.definition(f"{imports[told[1]]}.{last}", told[0], depth + 1)

    def of_class(self, name: str, file: File) -> Member | None:
        """The method that `name`, `Vocabulary.load`, is of a class of the project."""
        owner, _, last = name.rpartition(".")
        found = self.definition(owner, file) if owner else None
        if found is None or not isinstance(found[0], ast.ClassDef):
            return None
        for one, home in self._lineage(found[0], found[1], []):
            if (member := method(one, last)) is not None:
                return Member(found[0], found[1], member, home)
        return None

    def _starred(
        self, name: str, file: File, depth: int
    ) -> tuple[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, File] | None:
        """What `name` is of the modules of the project that `file` takes whole."""
        for star in file.stars if not below(name, self.facts.quiet) else ():
            found = self.definition(f"{star}{'' if star.endswith('.') else '.'}{name}", file, depth + 1)
            if found is not None:
                return found
        return None

    def given_by_module(self, call: ast.Call, attribute: str, file: File) -> Iterator[tuple[ast.expr, File]]:
        """What `attribute` may be of the class that `call`, `getattr(module, name)`, takes from a module of the
        project."""
        if (module := picked_from(call)) is not None:
            key = (file.path, self.dotted(module, file), attribute)
            if key not in self._given:
                self._given[key] = list(self._attributes_of(key[1], attribute, file, 0))
            yield from self._given[key]

    def _attributes_of(self, module: str, attribute: str, file: File, depth: int) -> Iterator[tuple[ast.expr, File]]:
        """What the classes of `module` have as `attribute`, those too that it takes whole from others."""
        told = self.home(f"{module}{'' if module.endswith('.') else '.'}{attribute}", file) if module else None
        home = told[0] if told is not None else None
        for class_ in home.definitions.values() if home is not None else ():
            for statement in class_.body if isinstance(class_, ast.ClassDef) else ():
                for name, value in self._bindings(statement):
                    if name == attribute and home is not None:
                        yield value, home
        for star in home.stars if home is not None and depth < _DEEP else ():
            yield from self._attributes_of(star, attribute, home, depth + 1)  # type: ignore[arg-type]

    def data_sets(self, module: str, file: File, depth: int = 0) -> list[tuple[str, File]]:
        """The names of the classes with rows that `module` of the project defines or imports, those too that it takes
        whole from others, each with the file that calls it so."""
        told = self.home(f"{module}{'' if module.endswith('.') else '.'}_", file) if module else None
        if told is None:
            return []
        return self.own_data_sets(told[0], depth)

    def own_data_sets(self, home: File, depth: int = 0) -> list[tuple[str, File]]:
        """The same of the file `home`."""
        found = [(name, home) for name in (*home.definitions, *home.imports) if self._has_rows(name, home)]
        for star in home.stars if depth < _DEEP else ():
            found += self.data_sets(star, home, depth + 1)
        return found[:_MANY]

    def _has_rows(self, name: str, file: File) -> bool:
        """Whether `name` is a class of the project that a loader may go through."""
        meant = name if name in file.definitions else file.imports[name]
        class_, home = self.definition(meant, file) or (None, file)
        if not isinstance(class_, ast.ClassDef):
            return False
        return any(
            method(one, row) for one, _ in self._lineage(class_, home, []) for row in ("__getitem__", "__iter__")
        )

    def home(self, name: str, file: File) -> tuple[File, str] | None:
        """The file of the project in which `file` finds what it calls `name`, and the name there."""
        told = self.module.defined(name, file.path) if self.module.defined is not None else None
        if told is None:
            return None
        path, text, last = told
        if path not in self.files:
            try:
                self.files[path] = File(path, parsed(text))
            except SyntaxFault:
                self.files[path] = None
        home = self.files[path]
        return (home, last) if home is not None else None


def _names_set(member: ast.stmt) -> frozenset[str]:
    """The attributes that a statement in the body of a class gives its objects."""
    own = own_assignments(member) if isinstance(member, ast.FunctionDef) else bindings(member)
    return frozenset(name for name, _ in own)


def _bindings(statement: ast.stmt) -> tuple[tuple[str, ast.expr], ...]:
    return tuple((name, _of_field(value)) for name, value in bindings(statement))


def _of_field(value: ast.expr) -> ast.expr:
    """What the attribute of a data class is by default that is written as a field."""
    match value:
        case ast.Call(func=function, keywords=words) if dotted_name(function).rpartition(".")[2] == "field":
            return next((word.value for word in words if word.arg == "default"), value)
    return value


def _defaults(function: ast.FunctionDef, file: File) -> dict[str, tuple[ast.expr, Scope]]:
    return {name: (value, Scope(file)) for name, value in defaults_of(function.args)}


def keeps_attributes(class_: ast.ClassDef) -> bool:
    """Whether an object may not take a new value for an attribute: a frozen data class, or a setter of its own."""
    frozen = any(
        keyword.arg == "frozen" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for decorator in class_.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
    )
    setter = any(isinstance(one, ast.FunctionDef) and one.name == "__setattr__" for one in class_.body)
    return frozen or setter


def outside_name(attribute: str, class_: str) -> str:
    """What an attribute that the methods of a class call `attribute` is called outside of the class: a private name
    is mangled there."""
    private = attribute.startswith("__") and not attribute.endswith("__")
    return f"_{class_.lstrip('_')}{attribute}" if private else attribute


def _of_import_call(node: ast.expr) -> str:
    """`a.b.c` for `__import__("a").b.c` or `import_module("a.b").c`; the empty string for anything else."""
    if isinstance(node, ast.Attribute):
        owner = _of_import_call(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    match node:
        case ast.Call(func=ast.Name(id="__import__"), args=[ast.Constant(value=str(name))]):
            return name.partition(".")[0]
        case ast.Call(func=function, args=[ast.Constant(value=str(name))]):
            return name if dotted_name(function).rpartition(".")[2] == "import_module" else ""
    return ""


def _calls_above(row: ast.FunctionDef) -> bool:
    """Whether a method calls `super().__getitem__`."""
    return _ROW in _asked_above(row)


def _asked_above(function: ast.FunctionDef) -> list[str]:
    """The methods that `function` asks of `super()`, or of a class by its name: `Base.__getitem__(self, index)`."""
    found = []
    for node in walk(function):
        owner = node.value if isinstance(node, ast.Attribute) else None
        if isinstance(node, ast.Attribute) and isinstance(owner, ast.Call):
            found += [node.attr] if isinstance(owner.func, ast.Name) and owner.func.id == "super" else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            first = node.args[0]
            named = dotted_name(node.func.value).rpartition(".")[2][:1].isupper()
            found += [node.func.attr] if named and isinstance(first, ast.Name) and first.id == "self" else []
    return found
