"""The files together: what an entry point reaches, and what it draws, seeds and switches on the way.

A node is one function as it runs for one receiver class; its effects are worked out once, from its own events and the
effects of what it calls, components of the call graph at a time: the cost is that of the reached functions. Nothing
here recurses over calls, so chains may be as long as they like.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from torchdet_lint.catalogue import Draw
from torchdet_lint.configs import HIDDEN, UNKNOWN, Configs, setting
from torchdet_lint.events import DEVICE_QUERIES, GUARD, MODULE, Argument, Body, Event, Memo
from torchdet_lint.modules import ModuleMap
from torchdet_lint.names import condition_holds
from torchdet_lint.outline import Outline, outline
from torchdet_lint.summary import Shelf, Summary
from torchdet_lint.syntax import Hollow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from torchdet_lint.catalogue import Condition, Runner, Seed
    from torchdet_lint.names import Library

STARTED = "<started>"
_COMMAND_LINE = "lightning.pytorch.cli.LightningCLI"

_TEXTS = 64
_LEVELS = 4
_THINGS = 12
_NESTED = 60
_FAMILY = 40
_SEEDING = re.compile(
    r"(?:^|_)seed|seed(?:s|ing)?(?:$|_)|seed_?(?:everything|all|worker)|determinis|reproducib|set_?(?:random_)?seed",
    re.IGNORECASE,
)
_MODE_NAME = re.compile(r"determinis|reproducib", re.IGNORECASE)
_NOT_SEEDING = re.compile(
    r"(?:get|worker|add|parse|print|log|with|check|has|is|next|spawn|derive)_\w*seed|initial_seed|seed_?worker",
    re.IGNORECASE,
)
_MAKER = re.compile(r"from_|create|build|load|make")
_INITIALISER = re.compile(r"init|reset_param", re.IGNORECASE)
_FLAGS = {
    "backward": "trains",
    "optimize_parameters": "trains",
    "optimizer_step": "trains",
    "cuda": "cuda",
    "share_memory": "shares",
}
_LOADING = re.compile(
    r"(?:load|restore|resume)_(?:state|check|ckpt|weight|model|pretrained|param|net|pkl|from)\w*|from_pretrained|restore"
)
_LIGHTNING = frozenset({"lightning.pytorch.LightningModule"})
_MODULES = frozenset({"torch.nn.Module", "lightning.pytorch.LightningModule"})
_SOURCES = (".py", ".pyw", ".ipynb")
_LOADER = "torch.utils.data.DataLoader"
_LOADERS = frozenset({_LOADER})
_OWN_SEED = frozenset(
    {
        "gym",
        "gymnasium",
        "numpy",
        "random",
        "torch",
        "sklearn",
        "pandas",
        "scipy",
        "jax",
        "cupy",
        "dgl",
        "tensorflow",
        "builtins",
        "argparse",
    }
)
_ENVIRONMENT = re.compile(r"env|space|sampler|generator|rng", re.IGNORECASE)
_DEVICES = frozenset({"device", "gpu", "rank", "local_rank", "gpu_id", "device_id", "cuda"})
_TOKEN = re.compile(r"\(\)|[^.()]+")


class Thing(NamedTuple):
    """What a name may stand for. `kind` is `module`, `function`, `class`, `instance` (of a class of the project),
    `fluent` (a method that returns its instance), `external` (`name` is the qualified name), `parameter` (`name` is
    what follows the `$`) or `unknown`.

    `owner` is the class for which a method runs: its file and name.
    """

    kind: str
    file: str = ""
    name: str = ""
    owner: tuple[str, str] = ("", "")


class Node(NamedTuple):
    """A function for one receiver class; `name` is `MODULE` for an imported file, `STARTED` for one that is run."""

    file: str
    name: str
    owner: tuple[str, str] = ("", "")


class Ref(NamedTuple):
    """A place in the project: row and column as `ast` counts them, the row of its statement, and what happens there."""

    file: str
    row: int
    column: int
    statement: int
    what: str


class Step(NamedTuple):
    """One effect of an event: `draw`, `seed` or `flag` (of `channel`), or `call`, `later` or `process` (of `node`).

    Channels of draws are `python`, `numpy`, `torch`, `weights` (torch, initialisation), `dropout`, `numpy_training` and
    `python_training` (in training only) and `cublas` (the first use of CUDA); `now` is false for what draws later than
    here. What a step draws that `initialises` are weights. A `borrow` draws from the parameter `channel` of the
    function; `lends` says of such parameters of the function called what they get: nothing, or a parameter here.
    """

    kind: str
    ref: Ref
    channel: str = ""
    node: Node | None = None
    now: bool = True
    branch: tuple[int, ...] = ()
    locked: bool = False
    initialises: bool = False
    lends: tuple[tuple[str, str], ...] = ()


Effects = dict[str, Any]
"""`draw:c` (there is one), `first:c` (before any seed), `borrow:p` (from the parameter p), `seed:c`, `flag:f` -> Ref;
`late:c` -> (draw, seed); `begin:g` -> (channel, draw), the first draw of a generator."""

_IN_TRAINING = {"torch": "dropout", "numpy": "numpy_training", "python": "python_training"}
TRAINING = frozenset(_IN_TRAINING.values())
_GENERATOR = {
    "python": "python",
    "numpy": "numpy",
    "torch": "torch",
    "weights": "torch",
    "dropout": "torch",
    "numpy_training": "numpy",
    "python_training": "python",
    "cublas": "cublas",
    "cuda": "cuda",
}


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
    ) -> None:
        """`read` gives the text of a file, or None; `seed_functions` are the user's own seeding functions; `given` are
        files that are not on disk; `outlines` are those known already."""
        self.library = library
        self.modules = ModuleMap(root, given)
        self.facts = _Facts(library)
        self.configs = Configs(root, self.modules.listing, self.text)
        self.seed_functions = frozenset(seed_functions)
        self.memos: dict[str, Memo] = {}
        self._read = read
        self._texts: dict[str, str] = {}
        self._shelf = Shelf()
        self._summaries: dict[str, Summary] = {}
        self._outlines = dict(outlines or {})
        self._evaluated: dict[tuple[str, str, tuple[str, str], str, int], tuple[Thing, ...]] = {}
        self._families: dict[tuple[str, str], list[Thing]] = {}
        self._open: set[tuple[str, str, tuple[str, str], str, int]] = set()
        self._partial: set[tuple[str, str, tuple[str, str], str, int]] = set()
        self._open_families: set[tuple[str, str]] = set()
        self._cut = False
        self._steps: dict[Node, list[Step]] = {}
        self._effects: dict[Node, Effects] = {}

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
                self.memos.get(file),
                self._shelf,
            )
        return self._summaries[file]

    def _hollow(self, file: str) -> Hollow:
        known = self._outlines.get(file)
        return Hollow(self.text(file), known.bodies if known is not None else ())

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
        found = [place.path] if place.path.endswith(".py") and place.path != file else []
        folder = os.path.dirname(place.path) if place.path.endswith("__init__.py") else place.path
        folder = os.path.dirname(folder)
        while len(folder) > len(self.modules.root) and "__init__.py" in self.modules.listing(folder):
            package = os.path.join(folder, "__init__.py")
            if package != file:
                found.append(package)
            folder = os.path.dirname(folder)
        return list(reversed(found))

    # ------------------------------------------------------------------ names

    def evaluate(
        self, name: str, file: str, owner: tuple[str, str] = ("", ""), within: str = "", level: int = _LEVELS
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
        known = self._evaluated[key] = tuple(dict.fromkeys(found))[:_THINGS]
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

    def configured(self, file: str, path: str) -> list[dict[str, Any]]:
        """What the configurations of the programs in `file` have at `path`: mappings."""
        if "hydra" not in self.text(file):
            return []
        return self.configs.at(file, self.summary(file).configs, path.split("/"))

    def _made(self, name: str, file: str, level: int) -> list[Thing]:
        """What `%path()` and its attributes stand for: results of the `_target_` of a configuration."""
        tokens = _TOKEN.findall(name[1:])
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
            things, tokens = [Thing("module", file)], _TOKEN.findall(name[2:])
        elif name.startswith("*."):
            tokens = _TOKEN.findall(name[2:])
            return self._follow(self._starred(file, tokens[0], level), tokens[1:], level)
        else:
            return self._imported_name(name, file, level)
        return self._follow(things, tokens, level)

    def _dollar(
        self, name: str, file: str, owner: tuple[str, str], within: str, level: int
    ) -> tuple[list[Thing], list[str]]:
        tokens = _TOKEN.findall(name[1:])
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
                return [Thing("unknown", file, _TOKEN.findall(name)[-1])]
            return [Thing("external", "", name)]
        tokens = [*place.rest, *(("()",) if paren else ()), *_TOKEN.findall(after)]
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
            current = list(dict.fromkeys(following))[:_THINGS]
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

    def _class_attribute(self, thing: Thing, name: str, level: int = _LEVELS) -> list[Thing]:
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
            known = self._steps[node] = _Expansion(self, node).run()
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


def combine(found: Effects, arms: dict[str, tuple[int, ...]], step: Step, inner: Effects) -> None:
    """Add to `found` what `step` does, `inner` being the effects of the node it calls; `arms` remembers in which arm of
    which `if` the first draws stand."""
    inner = inner if step.node is not None else _own(step)
    inner = lent(inner, step.lends)
    if step.initialises and "first:torch" in inner:
        inner = _as_weights(inner)
    ordered = step.kind not in ("later", "process")
    for key, ref in inner.items():
        kind, _, channel = key.partition(":")
        if kind in ("draw", "flag", "begin") or (kind == "borrow" and (step.node is None or step.lends)):
            found.setdefault(key, ref)
        elif ordered and kind in ("first", "late") and key not in found and f"seed:{_GENERATOR[channel]}" not in found:
            found[key] = ref
            if kind == "first":
                arms[channel] = step.branch
    for key in [key for key in inner if key.startswith("seed:")]:
        if ordered and key not in found:
            _judge(found, arms, step, key[5:], inner)
        found.setdefault(key, inner[key])


def _own(step: Step) -> Effects:
    """The effects of a step that calls nothing."""
    found: Effects = {f"{step.kind}:{step.channel}": step.ref}
    if step.kind == "draw":
        found[f"begin:{_GENERATOR[step.channel]}"] = (step.channel, step.ref)
        if step.now:
            found[f"first:{step.channel}"] = step.ref
    return found


def lent(inner: Effects, lends: tuple[tuple[str, str], ...]) -> Effects:
    """The effects of a function with its generators filled in: what is given none draws from the global one."""
    if not lends:
        return inner
    changed = {key: ref for key, ref in inner.items() if not key.startswith("borrow:")}
    for parameter, given in lends:
        ref = inner.get(f"borrow:{parameter}")
        if ref is None:
            continue
        if given:
            changed[f"borrow:{given}"] = ref
        else:
            changed.setdefault("draw:torch", ref)
            changed.setdefault("begin:torch", ("torch", ref))
            if "seed:torch" not in changed:
                changed.setdefault("first:torch", ref)
    return changed


def _as_weights(inner: Effects) -> Effects:
    """The effects of what an initialiser calls: its first draw from torch makes weights."""
    changed = dict(inner)
    first = changed.pop("first:torch")
    changed.setdefault("first:weights", first)
    if changed.get("draw:torch") == first:
        changed.setdefault("draw:weights", changed.pop("draw:torch"))
    if changed.get("begin:torch") == ("torch", first):
        changed["begin:torch"] = ("weights", first)
    if "late:torch" in changed:
        changed.setdefault("late:weights", changed.pop("late:torch"))
    return changed


def _judge(found: Effects, arms: dict[str, tuple[int, ...]], step: Step, generator: str, inner: Effects) -> None:
    """Whether the first seed of `generator`, which `step` reaches, comes after draws from it."""
    for channel, home in _GENERATOR.items():
        first = found.get(f"first:{channel}")
        if home != generator or first is None or f"first:{channel}" in inner:
            continue
        if not _exclusive(arms.get(channel, ()), step.branch):
            found.setdefault(f"late:{channel}", (first, inner[f"seed:{generator}"]))


def _exclusive(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return any(-arm in other for arm in one)


class _Expansion:
    """Turns the events of one node into steps."""

    def __init__(self, project: Project, node: Node) -> None:
        self.project = project
        self.facts = project.facts
        self.node = node
        self.found: list[Step] = []
        self.event = Event("call", 1, 0, 1)
        last = node.name.rpartition(".")[2]
        self.initialises = bool(_INITIALISER.search(last)) and (
            last not in ("__init__", "init", "setup") or project.derives(node.owner, _MODULES)
        )

    def run(self) -> list[Step]:
        node = self.node
        name = MODULE if node.name == STARTED else node.name
        body = self.project.summary(node.file).body(name)
        if body is None:
            return []
        self._decorated(body)
        without = GUARD if node.name == MODULE else -GUARD
        for event in body.events:
            if without in event.branch:
                continue
            if node.name == MODULE and (event.deferred or (event.branch and event.kind == "call")):
                continue
            self.event = event
            getattr(self, f"on_{event.kind}")(event)
        return self.found

    def add(
        self,
        kind: str,
        what: str = "",
        channel: str = "",
        node: Node | None = None,
        *,
        now: bool = True,
        lends: tuple[tuple[str, str], ...] = (),
    ) -> None:
        event = self.event
        ref = Ref(self.node.file, event.row, event.column, event.statement, what)
        weights = node is not None and kind == "call" and self.initialises
        now = now and not event.deferred
        self.found.append(Step(kind, ref, channel, node, now, event.branch, event.locked, weights, lends))

    def _decorated(self, body: Body) -> None:
        """What the wrapper of a decorator of the project does before the function itself."""
        self.event = Event("call", body.row, 0, body.row)
        for names in body.decorators:
            for name in names:
                for thing in self.stands_for(name):
                    if thing.kind == "function":
                        inner = self.project.summary(thing.file).body(thing.name)
                        for wrapper in inner.inner if inner is not None else ():
                            self.add("call", node=Node(thing.file, wrapper, thing.owner))
                    elif thing.kind in ("unknown", "external"):
                        self._perhaps_seeds(thing, Event("call", body.row, 0, body.row))

    # ------------------------------------------------------------------ events

    def on_import(self, event: Event) -> None:
        seen: set[str] = set()
        for name in event.names:
            for file in self.project._files_of(name, self.node.file):
                if file not in seen:
                    seen.add(file)
                    self.add("call", node=Node(file, MODULE))

    def on_env(self, event: Event) -> None:
        self.environment(event.names)

    def environment(self, names: Iterable[str]) -> None:
        if "CUBLAS_WORKSPACE_CONFIG" in names:
            self.add("seed", "CUBLAS_WORKSPACE_CONFIG", "cublas")

    def on_cuda(self, event: Event) -> None:
        self.add("flag", channel="cuda")

    def on_update(self, event: Event) -> None:
        self.add("flag", channel="update" if not event.locked else "locked")

    def on_set(self, event: Event) -> None:
        pass

    def on_call(self, event: Event) -> None:
        done: set[Thing] = set()
        for name in event.names:
            for thing in self.stands_for(name):
                if thing not in done:
                    done.add(thing)
                    self.called(thing, event)
        last = event.names[0].rpartition(".")[2].removesuffix("()")
        self.by_last_name(last, event, done)

    def called(self, thing: Thing, event: Event) -> None:
        if thing.kind == "function":
            self.function(thing, event)
        elif thing.kind == "class":
            self.constructed((thing.file, thing.name), event)
        elif thing.kind == "instance":
            self.instance_called(thing, event)
        elif thing.kind == "external":
            self.external(thing.name, event, thing.owner)
        elif thing.kind == "unknown":
            self._perhaps_seeds(thing, event)

    def function(self, thing: Thing, event: Event, *, kind: str = "call") -> None:
        full = thing.name
        if full in self.project.seed_functions or full.rpartition(".")[2] in self.project.seed_functions:
            self._all_seeded(full)
            return
        self.add(kind, node=Node(thing.file, full, thing.owner), lends=self.lent(thing, event))
        self.passed(thing, event)

    def lent(self, thing: Thing, event: Event) -> tuple[tuple[str, str], ...]:
        """The generators among the parameters of a function that `event` leaves out, or passes on from here."""
        body = self.project.summary(thing.file).body(thing.name)
        if body is None or event.opaque or not any("generator" in name for name in body.parameters):
            return ()
        given = _given(thing, body, event)
        found = []
        for name in body.parameters:
            if "generator" in name:
                argument = given.get(name)
                if argument is None or (argument.known and argument.value is None):
                    found.append((name, ""))
                elif (own := _parameter(argument)) is not None:
                    found.append((name, own))
        return tuple(found)

    def passed(self, thing: Thing, event: Event) -> None:
        """Functions and objects that are handed to a function which calls them."""
        body = self.project.summary(thing.file).body(thing.name)
        if body is None or not body.uses:
            return
        bound = self._bound(thing, body, event)
        if not bound:
            return
        outer = self.event
        for inner in body.events:
            self.event = _at(outer, inner)
            for name in inner.names:
                if name.startswith("$"):
                    self._used(bound, _TOKEN.findall(name[1:]))
            if inner.kind == "call":
                for argument in (*inner.positional, *inner.keywords.values()):
                    for use in sorted({name[1:] for name in argument.names} & bound.keys()):
                        self.handed_on(inner, use, bound[use], thing)
        self.event = outer

    def _bound(self, thing: Thing, body: Body, event: Event) -> dict[str, list[Thing]]:
        """What the call `event` passes for those parameters of a function that it calls."""
        given = _given(thing, body, event)
        bound: dict[str, list[Thing]] = {}
        for use in body.uses:
            things = [thing for name in given[use].names for thing in self.stands_for(name)] if use in given else []
            things = [thing for thing in things if thing.kind in ("function", "class", "instance", "external")]
            if things:
                bound[use] = things
        return bound

    def _used(self, bound: dict[str, list[Thing]], tokens: list[str]) -> None:
        """A call of a parameter, or of something of it."""
        for result in self.project._follow(bound.get(tokens[0], []), tokens[1:], _LEVELS):
            if result.kind in ("function", "class", "instance"):
                self.called_plainly(result)
            elif result.kind == "external":
                self.external(result.name, self.event, result.owner)

    def stands_for(self, name: str) -> tuple[Thing, ...]:
        """What a name of this node stands for."""
        return self.project.evaluate(name, self.node.file, self.node.owner, self.node.name)

    def handed_on(self, inner: Event, use: str, things: list[Thing], callee: Thing) -> None:
        """A parameter that the callee hands to a runner: `launch(main)` whose body is `mp.spawn(main, …)`."""
        for name in inner.names:
            for target in self.project.evaluate(name, callee.file, callee.owner, callee.name):
                if target.kind != "external":
                    continue
                for runner in self.facts.runners.get(target.name, ()):
                    if any(f"${use}" in argument.names for argument in _handed(runner, inner)):
                        for thing in things:
                            self.run_thing(runner, thing)

    def called_plainly(self, thing: Thing) -> None:
        """A call of which the arguments are not known."""
        if thing.kind == "function":
            self.add("call", node=Node(thing.file, thing.name, thing.owner))
        elif thing.kind == "class":
            self.constructed((thing.file, thing.name), self.event)
        else:
            self.instance_called(thing, self.event)

    def constructed(self, kind: tuple[str, str], event: Event) -> None:
        if "shuffle" in event.keywords and self.project.derives(kind, _LOADERS):
            asked = {key: value for key, value in event.keywords.items() if key in ("shuffle", "generator")}
            self.external(_LOADER, msgspec.structs.replace(event, positional=(), keywords=asked))
        for thing in self.project._class_attribute(Thing("instance", *kind), "__init__"):
            if thing.kind == "function":
                self.function(thing, event)
            elif thing.kind == "external":
                self.external(thing.name, event, kind)
        for thing in self.project._class_attribute(Thing("instance", *kind), "__post_init__"):
            if thing.kind == "function":
                self.add("call", node=Node(thing.file, thing.name, thing.owner))

    def instance_called(self, thing: Thing, event: Event) -> None:
        for name in ("__call__", "forward"):
            for method in self.project._class_attribute(thing, name):
                if method.kind == "function":
                    self.function(method, event)
                    return

    # ------------------------------------------------------------------ libraries

    def external(self, name: str, event: Event, owner: tuple[str, str] = ("", "")) -> None:
        facts = self.facts
        known = False
        if "**" in event.keywords:
            event = self.filled(event)
        if name == "hydra.utils.instantiate":
            for mapping in self.mappings(event.positional[:1]):
                self.instantiated(mapping, event)
        for full in facts.spellings(name):
            if full == _COMMAND_LINE:
                self.command_line(event)
                known = True
                continue
            for draw in facts.draws.get(full, ()):
                known = True
                self.draw_or_borrow(draw, name if "*" in full else full, event)
            for seed in facts.seeds.get(full, ()):
                known = True
                self.seed(seed, full, event)
            for runner in facts.runners.get(full, ()):
                known = True
                self.hand_over(runner, event, owner)
            if full in facts.everywhere:
                known = True
                self.add("flag", full, "everywhere")
            if full in self.project.seed_functions:
                self._all_seeded(full)
        if not known and not facts.makes(name):
            self._perhaps_seeds(Thing("external", "", name), event)
        if name.startswith(("torch.cuda.", "torch.accelerator.")) and not name.partition(".")[2].partition(".")[
            2
        ].startswith(DEVICE_QUERIES):
            self.add("flag", channel="cuda")
        if name in facts.modes_off:
            self.add("flag", name, "relaxed")

    # ------------------------------------------------------------------ configurations

    def mappings(self, arguments: Iterable[Argument]) -> list[dict[str, Any]]:
        """What arguments such as `cfg.model` stand for in the configurations of this file's programs."""
        paths = [name.partition(".")[2].replace(".", "/") for argument in arguments for name in argument.names]
        return [mapping for path in paths if path for mapping in self.project.configured(self.node.file, path)]

    def filled(self, event: Event) -> Event:
        """`event` with what `**cfg.trainer` passes, where there is one configuration that says so."""
        found = self.mappings([event.keywords["**"]])
        keywords = {key: value for key, value in event.keywords.items() if key != "**"}
        if len(found) == 1 and HIDDEN not in found[0]:
            return msgspec.structs.replace(event, keywords=_passed(found[0]) | keywords, opaque=False)
        return msgspec.structs.replace(event, keywords=keywords)

    def instantiated(self, value: Any, event: Event, depth: int = 0) -> None:
        """What Hydra makes of a part of a configuration: what is inside first."""
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            if depth < _THINGS:
                self.instantiated(inner, event, depth + 1)
        target = value.get("_target_") if isinstance(value, dict) else None
        if not isinstance(target, str) or value.get("_partial_"):
            return
        name = self.facts.library.canonical(target)
        keywords, opaque = _passed(value), HIDDEN in value
        if depth == 0:
            keywords, opaque = keywords | event.keywords, opaque or event.opaque
        elif any(seed.give for full in self.facts.spellings(name) for seed in self.facts.seeds.get(full, ())):
            opaque = True  # its switch cannot be turned at the call
        made = msgspec.structs.replace(event, names=(name,), positional=(), keywords=keywords, opaque=opaque)
        for thing in self.stands_for(name):
            self.called(thing, made)

    def command_line(self, event: Event) -> None:
        """Lightning's command line: what it is given in code, and in the YAML that lies beside it."""
        configurations = self.project.configs.command_lines(self.node.file)
        seeds = [setting(data, "seed_everything") for data in configurations]
        default = event.keywords.get("seed_everything_default")
        unseeded = default is not None and default.known and default.value in (None, False)
        if any(seed is UNKNOWN for seed in seeds or [UNKNOWN]):
            seeds.append(not unseeded)
        if any(seed is not False and seed is not None for seed in seeds):
            for channel in ("python", "numpy", "torch", "cuda"):
                self.add("seed", _COMMAND_LINE, channel)
        modes = [setting(data, "trainer", "deterministic") for data in configurations]
        if any(mode is True for mode in modes):
            self.add("flag", _COMMAND_LINE, "mode")
            self.environment(["CUBLAS_WORKSPACE_CONFIG"])
        elif (
            not configurations
            or event.opaque
            or any(mode is not UNKNOWN for mode in modes)
            or not {"trainer_defaults", "args", "parser_kwargs"}.isdisjoint(event.keywords)
            or "deterministic" in self.project.text(self.node.file)
        ):
            self.add("flag", _COMMAND_LINE, "relaxed")
        else:
            self.add("flag", _COMMAND_LINE, "switch")
        accelerators = [setting(data, "trainer", "accelerator") for data in configurations]
        if accelerators and all(accelerator == "cpu" for accelerator in accelerators):
            self.add("flag", channel="host")
        else:
            self.add("flag", channel="cuda")
        run = event.keywords.get("run")
        if configurations and not (run is not None and run.known and not run.value):
            self.add("flag", channel="trains")
        for runner in self.facts.runners[_COMMAND_LINE]:
            for argument in _handed(runner, event):
                for name in argument.names:
                    for thing in self.stands_for(name):
                        self.run_thing(runner, thing, event)

    def draw_or_borrow(self, draw: Draw, full: str, event: Event) -> None:
        """A draw from the global generator, or from one that is a parameter of this function."""
        if event.idle:
            return
        if self.facts.meets(event, draw.when, draw.parameters):
            self.draw(draw, full)
            return
        argument = event.keywords.get("generator")
        lender = _parameter(argument) if argument is not None else None
        if lender is not None and draw.library == "torch":
            rest = {key: value for key, value in event.keywords.items() if key != "generator"}
            if self.facts.meets(msgspec.structs.replace(event, keywords=rest), draw.when, draw.parameters):
                self.add("borrow", full.replace("()", ""), lender)

    def draw(self, draw: Draw, full: str) -> None:
        what = full.replace("()", "")
        channel: str = draw.library
        initialises = draw.at == "construction" or (self.initialises and draw.at == "call")
        if channel == "torch" and (initialises or full.startswith("torch.nn.init.")):
            channel = "weights"
        elif draw.at == "training" or _in_training(self.event):
            channel = _IN_TRAINING[channel]
        self.add("draw", what, channel, now=draw.at in ("call", "construction"))

    def seed(self, seed: Seed, full: str, event: Event) -> None:
        what = full.replace("()", "")
        value = self.facts.argument(event, seed.argument, seed.parameters)
        left_out = not event.opaque if value is None else value.known and value.value is None
        for channel in () if seed.optional and left_out else seed.seeds:
            self.add("seed", what, channel)
        if seed.mode or (seed.when_mode and self.facts.meets(event, seed.when_mode, seed.parameters)):
            self.add("flag", what, "mode")
            self.environment(seed.environment)
        elif seed.switch and self._told(event, seed):
            self.add("flag", what, "relaxed")
        else:
            self.environment(seed.environment if not seed.when_mode else ())
            if seed.give:
                self.add("flag", full, "switch")

    def _told(self, event: Event, seed: Seed) -> bool:
        """Whether a switch was given at all: what it is set against is TDL204's and TDL208's business."""
        return (
            any(self.facts.given(event, condition.argument, seed.parameters) for condition in seed.when_mode)
            or event.opaque
        )

    def hand_over(self, runner: Runner, event: Event, owner: tuple[str, str]) -> None:
        if runner.trains:
            self.add("flag", channel="trains")
        if runner.host and self.facts.meets(event, runner.host, runner.parameters):
            self.add("flag", channel="host")
        elif runner.cuda:
            self.add("flag", channel="cuda")
        for argument in _handed(runner, event):
            things = [thing for name in argument.names for thing in self.stands_for(name)]
            for thing in things:
                self.run_thing(runner, thing, event)
            if runner.process == "first" and not argument.known and all(thing.kind != "function" for thing in things):
                self.add("flag", channel="perhaps")
        if runner.bare and not event.positional and not event.keywords:
            body = self.project.summary(self.node.file).body(MODULE)
            for name in body.inner if body is not None else ():
                self.add("call", node=Node(self.node.file, name))
        if runner.itself and owner[1]:
            self.run_thing(runner, Thing("instance", *owner), event)

    def run_thing(self, runner: Runner, thing: Thing, event: Event | None = None) -> None:
        targets: list[Thing] = []
        if thing.kind == "function":
            targets = [thing]
        elif thing.kind == "class" and not runner.methods:
            self.constructed((thing.file, thing.name), self.event)
        elif thing.kind in ("class", "instance"):
            receiver = Thing("instance", thing.file, thing.name)
            for method in runner.methods or ("__call__", "forward"):
                targets += [
                    found for found in self.project._class_attribute(receiver, method) if found.kind == "function"
                ]
        kind = "process" if runner.process in ("fork", "spawn", "first") else "later" if runner.deferred else "call"
        if runner.workers and event is not None and self._in_workers(event, runner):
            return
        for target in dict.fromkeys(targets):
            self.add(kind, runner.process, runner.process, Node(target.file, target.name, target.owner))

    def _in_workers(self, event: Event, runner: Runner) -> bool:
        """Whether a loader runs its dataset in worker processes, which torch seeds from its own generator."""
        value = self.facts.argument(event, runner.workers, runner.parameters)
        if value is None:
            return False
        return not value.known or bool(value.value)

    # ------------------------------------------------------------------ names alone

    def by_last_name(self, last: str, event: Event, things: set[Thing]) -> None:
        """What a method's name says where its receiver is not known."""
        first = event.names[0]
        self.dispatched(first, last)
        if _LOADING.fullmatch(last) or first in ("torch.load", "torch.jit.load", "pickle.load"):
            self.add("flag", last, "loads")
        if {thing.kind for thing in things} & {"function", "class", "instance"}:
            return
        if last in _FLAGS:
            self.add("flag", last, _FLAGS[last])
        elif last == "to":
            self._moved(event)
        elif last == "fit" and not any(self.facts.speaks_of(thing.name) for thing in things):
            self._fitted(event)
        elif last == "step" and not event.positional:
            self._stepped(first, event)
        elif last in ("apply", "step"):
            for thing in [
                thing for argument in event.positional[:1] for name in argument.names for thing in self.stands_for(name)
            ]:
                if thing.kind == "function":
                    self.add("call", node=Node(thing.file, thing.name, thing.owner))
        elif last in self.facts.tensor_draws:
            self._tensor_draw(last, first, event)
        if last == "cuda":
            self.add("draw", ".cuda()", "cublas")

    def _fitted(self, event: Event) -> None:
        """A trainer that something out of sight has made fits a module of Lightning; its flags are not known."""
        given = [
            thing for argument in event.positional[:1] for name in argument.names for thing in self.stands_for(name)
        ]
        if any(
            thing.kind == "instance" and self.project.derives((thing.file, thing.name), _LIGHTNING) for thing in given
        ):
            self.external("lightning.pytorch.Trainer().fit", event)
            self.add("flag", "fit", "relaxed")

    def _stepped(self, first: str, event: Event) -> None:
        """A step of an optimizer, or of something else that steps."""
        self.add("flag", "step", "locked" if event.locked else "steps")
        if first.startswith("torch.optim.") or "opt" in first.rpartition(".")[0].rpartition(".")[2].lower():
            self.add("flag", "step", "trains")

    def _tensor_draw(self, last: str, first: str, event: Event) -> None:
        """A method that only tensors have, or one of a tensor that a function of torch returns."""
        if event.idle or event.opaque or first in self.facts.draws or "generator" in event.keywords:
            return
        if last.endswith("_") or first.startswith("torch."):
            drawn = "dropout" if _in_training(event) else "torch"
            self.add("draw", f"Tensor.{last}", "weights" if self.initialises else drawn)

    def dispatched(self, first: str, last: str) -> None:
        """What a click group, a typer application or a function that argparse has picked runs."""
        dispatch = self.project.summary(self.node.file).dispatch
        for key in sorted({f".{last}", first} & dispatch.keys()):
            for name in dispatch[key]:
                for thing in self.project.evaluate(name, self.node.file):
                    if thing.kind == "function" and thing.name != self.node.name:
                        self.add("call", node=Node(thing.file, thing.name))

    def _moved(self, event: Event) -> None:
        for argument in (*event.positional[:1], *(value for key, value in event.keywords.items() if key == "device")):
            if argument.known and isinstance(argument.value, str) and argument.value.startswith("cuda"):
                self.add("flag", channel="cuda")
                self.add("draw", ".to('cuda')", "cublas")
            elif any(
                name.rpartition(".")[2].rstrip("()") in _DEVICES
                for name in argument.names
                if name.startswith(("?", "$"))
            ):
                self.add("flag", channel="cuda")

    def _perhaps_seeds(self, thing: Thing, event: Event) -> None:
        """A function that is not in sight and whose name or arguments speak of a seed silences rather than accuses."""
        tokens = [token for token in _TOKEN.findall(thing.name) if token != "()"]
        if not tokens:
            return
        last = tokens[-1]
        root = tokens[0]
        if last in self.project.seed_functions or thing.name in self.project.seed_functions:
            self._all_seeded(thing.name)
            return
        if thing.kind == "external" and root in _OWN_SEED:
            return
        told = any("seed" in key.lower() for key in event.keywords) or any(
            "seed" in name.rpartition(".")[2].lower() for argument in event.positional for name in argument.names
        )
        named = _SEEDING.search(last) and not _NOT_SEEDING.search(last)
        if (
            named
            and last == "seed"
            and ((len(tokens) > 1 and _ENVIRONMENT.search(tokens[-2])) or _of_environment(event))
        ):
            return
        if named or (told and not _keeps_to_itself(thing, last)):
            self.add("flag", last, "perhaps")
            if _MODE_NAME.search(last) or any(_MODE_NAME.search(key) for key in event.keywords):
                self.add("flag", last, "relaxed")

    def _all_seeded(self, what: str) -> None:
        for channel in ("python", "numpy", "torch", "cuda"):
            self.add("seed", what, channel)


def _given(thing: Thing, body: Body, event: Event) -> dict[str, Argument]:
    """What the call `event` passes to a function, by parameter."""
    parameters = body.parameters[1:] if body.first and thing.owner[1] else body.parameters
    return dict(zip(parameters, event.positional, strict=False)) | event.keywords


def _parameter(argument: Argument) -> str | None:
    """The parameter of the function around that an argument passes on."""
    first = argument.names[0] if len(argument.names) == 1 else ""
    return first[1:] if first.startswith("$") and first[1:].isidentifier() else None


def _of_environment(event: Event) -> bool:
    return any(_ENVIRONMENT.search(name) for name in event.names)


def _keeps_to_itself(thing: Thing, last: str) -> bool:
    """Whether something that takes a seed is an object or a data function, which have generators of their own."""
    return last in (
        "reset",
        "split",
        "shuffle",
        "train_test_split",
        "sample",
        "add_argument",
        "print",
        "format",
        "info",
        "make",
        "manual_seed",
        "seed",
        "append",
    )


def _at(outer: Event, inner: Event) -> Event:
    """The event `inner` of a callee as it happens at the call `outer`."""
    return Event(
        "call", outer.row, outer.column, outer.statement, inner.names, inner.positional, inner.keywords, inner.opaque,
        outer.branch, outer.deferred or inner.deferred, inner.locked, inner.idle, inner.trained,
    )  # fmt: skip


def _passed(mapping: dict[str, Any]) -> dict[str, Argument]:
    """The arguments that Hydra makes of a mapping, or that `**mapping` passes."""
    plain = {key: value for key, value in mapping.items() if isinstance(key, str) and not key.startswith("_")}
    return {
        key: Argument((), True, value) if value is None or isinstance(value, (bool, int, float, str)) else Argument()
        for key, value in plain.items()
        if key != HIDDEN
    }


def _handed(runner: Runner, event: Event) -> list[Argument]:
    """The arguments of `event` that `runner` runs."""
    found = []
    for name in runner.arguments:
        if name in event.keywords:
            found.append(event.keywords[name])
        elif name in runner.parameters and runner.parameters.index(name) < len(event.positional):
            found.append(event.positional[runner.parameters.index(name)])
    return found


def _estimators(library: Library) -> Iterator[Draw]:
    """What draws from NumPy's generator for it is given no `random_state`: an object later, a function at once."""
    rule = library.catalogue.rules.get("TDL107")
    for row in rule.calls if rule is not None else ():
        if row.variant or row.severity is not None:
            continue
        for name in row.names:
            at: Literal["call", "iteration"] = "iteration" if name.rpartition(".")[2][0].isupper() else "call"
            yield Draw(names=(name,), parameters=row.parameters, library="numpy", at=at, when=row.when)


def _in_training(event: Event) -> bool:
    """Whether a call stands under `if self.training`, or is told whether it is so."""
    return event.trained or any(
        name.rpartition(".")[2] in ("training", "$training")
        for argument in (*event.positional, *event.keywords.values())
        for name in argument.names
    )


def _matches(name: str, prefix: str, suffix: str) -> bool:
    """Whether `name` is one word between `prefix` and `suffix`."""
    return (
        name.startswith(prefix)
        and name.endswith(suffix)
        and len(name) > len(prefix) + len(suffix)
        and "." not in name[len(prefix) : len(name) - len(suffix)]
    )


class _Facts:
    """The catalogue's tables by name."""

    def __init__(self, library: Library) -> None:
        self.library = library
        facts = library.facts
        self.draws: dict[str, list[Draw]] = {}
        self.seeds: dict[str, list[Seed]] = {}
        self.runners: dict[str, list[Runner]] = {}
        for draw in (*facts.draws, *_estimators(library)):
            for name in draw.names:
                self.draws.setdefault(name, []).append(draw)
        for seed in facts.seeds:
            for name in seed.names:
                self.seeds.setdefault(name, []).append(seed)
        for runner in facts.runners:
            for name in runner.names:
                self.runners.setdefault(name, []).append(runner)
        self.wrappers = frozenset(facts.wrappers)
        self.fluent = frozenset(facts.fluent)
        self.modes_off = frozenset(facts.modes_off)
        self.tensor_draws = frozenset(
            name.rpartition(".")[2] for name in self.draws if name.startswith("torch.Tensor.")
        )
        self._patterns = tuple(sorted((*name.split("*", 1), name) for name in self.draws if "*" in name))
        self.everywhere = frozenset(spelling.name for op in facts.ops if op.aggregate for spelling in op.spellings)
        self._known = self.draws.keys() | self.seeds.keys() | self.runners.keys() | self.everywhere
        self._spellings: dict[str, tuple[str, ...]] = {}

    def speaks_of(self, name: str) -> bool:
        """Whether a table has a row for `name`."""
        return name in self._known or any(one in self._known for one in self.spellings(name))

    def makes(self, name: str) -> bool:
        """Whether `name` is of a library whose functions are all known."""
        return name.partition(".")[0] in _OWN_SEED

    def spellings(self, name: str) -> tuple[str, ...]:
        """The names of `name` in the tables: its own, and those that it has in the library classes it derives from."""
        known = self._spellings.get(name)
        if known is None:
            base, call, method = name.rpartition("().")
            if call:
                found = [f"{one}().{method}" for one in self.library.ancestors(base)]
            else:
                found = list(self.library.ancestors(name))
                if name.endswith(".*"):
                    found.append(name)
            found += [pattern for prefix, suffix, pattern in self._patterns if _matches(name, prefix, suffix)]
            known = self._spellings[name] = tuple(dict.fromkeys(found))
        return known

    def argument(self, event: Event, name: str, parameters: Sequence[str]) -> Argument | None:
        """What is passed for `name`, by keyword or by place."""
        if name in event.keywords:
            return event.keywords[name]
        if name in parameters:
            place = parameters.index(name)
            if place < len(event.positional):
                return event.positional[place]
        return None

    def given(self, event: Event, name: str, parameters: Sequence[str]) -> bool:
        """Whether anything is passed for `name`."""
        return self.argument(event, name, parameters) is not None

    def meets(self, event: Event, conditions: Sequence[Condition], parameters: Sequence[str]) -> bool:
        """Whether the arguments of `event` meet all of `conditions`."""
        for condition in conditions:
            value = self.argument(event, condition.argument, parameters)
            if not condition_holds(
                condition, passed=value is not None, opaque=event.opaque, known=value is not None and value.known,
                value=value.value if value is not None else None,
            ):  # fmt: skip
                return False
        return True
