"""A place where a generator is made → the text of a seed that follows the program's own, and whether that is safe."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.dataflow.seeding.call_chain import CallChain
from torchdet_lint.finding import NeedImport

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from torchdet_lint.dataflow.seeding.call_chain import Function, Site
    from torchdet_lint.finding import Applicability, Change
    from torchdet_lint.module.module import Module

INITIAL_SEED = "{torch}.initial_seed()"
_SPEAKS_OF_SEEDS = re.compile(r"seed|determinis|reproduc", re.IGNORECASE)
_COMMENT = re.compile(r"#[^\n]*")
# A generator that has been given the seed already, and what was added to it.
_OFFSET = (
    r"(?:rng|[Rr]andom\w*|Sequence|PCG\w+|MT19937|Philox|random_state|manual_seed)\s*[(=]\s*(?:\w+\s*=\s*)?"
    r"{0}(?:\s*%\s*2\s*\*\*\s*32)?(?:\s*\+\s*(\d+))?"
)
_DEEP = 3


class Seeding(NamedTuple):
    """A call that seeds `libraries`; `value` is what it is given, where that is in sight."""

    call: ast.Call
    libraries: frozenset[str]
    value: ast.expr | None


class GeneratorSeed(NamedTuple):
    """The text of a seed, with `{torch}` and `{seed}` in it, and how safe it is to write it there."""

    text: str
    applicability: Applicability | None
    needs: tuple[Change, ...] = ()


class ProgramSeeds:
    """What seeds the program that a file is, and the seeds given out to the generators of this file so far."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.chains = module.shared(CallChain)
        self.given: dict[str, int] = {}
        self._rows = {name: row for row in module.library.facts.seeds for name in row.names}

    def torch_seeded(self, node: cst.CSTNode) -> bool:
        """Whether `node`, a call, runs once, and torch is seeded on the way to it."""
        chain = self._chain(node)
        return chain is not None and any(
            "torch" in seeding.libraries for site in chain for seeding in self._before(site)
        )

    def initial_seed(self, node: cst.CSTNode) -> GeneratorSeed:
        """The seed of a `torch.Generator` made at `node` that belongs to that call alone."""
        text = INITIAL_SEED + self._apart(INITIAL_SEED, INITIAL_SEED)
        elsewhere = any(f"{word}(" in self.module.text for word in self.module.library.facts.conventions.devices)
        safe = not elsewhere and self.torch_seeded(node)
        return GeneratorSeed(text, None if safe else "unsafe", (NeedImport("torch"),))

    def seed(self, node: cst.CSTNode, library: str = "") -> GeneratorSeed:
        """The seed of a generator that the call `node` makes: the program's own where that is in sight, else the
        configured one. `library` is the one whose global generator would draw the same from the same seed."""
        found = self._programs(node, library)
        if found is not None:
            return found
        text = "{seed}" + self._apart("{seed}", "0")
        own = _SPEAKS_OF_SEEDS.search(_COMMENT.sub("", self._around(node))) is None
        return GeneratorSeed(text, None if own and self._is_program() and not self._together else "unsafe")

    def replacement(self, node: cst.CSTNode) -> GeneratorSeed:
        """The seed in the place of one that differs in every run: `node` makes it, or is the call that asks for it."""
        found = self._programs(node, "", apart=False)
        return found or GeneratorSeed("{seed}", "unsafe" if self._together else None)

    def _programs(self, node: cst.CSTNode, library: str, *, apart: bool = True) -> GeneratorSeed | None:
        """A seed that follows the program's own; None where there is none in sight."""
        chain = self._chain(node)
        if chain is None:
            return GeneratorSeed("{seed}", "unsafe")

        def made(text: str, key: str, libraries: frozenset[str], needs: tuple[Change, ...] = ()) -> GeneratorSeed:
            ranked = self.module.library.facts.conventions.numbers_process.search(text.rpartition(".")[2])
            offset = self._apart(key, key, int(library in libraries)) if apart else ""
            return GeneratorSeed(text + offset, "unsafe" if self._together and not ranked else None, needs)

        seedings = [(seeding, site) for site in chain for seeding in self._around_site(site)]
        for seeding, site in seedings:
            text = self._readable(seeding, site, chain[0])
            if text:
                return made(text, text, seeding.libraries)
        earlier = [seeding for site in chain for seeding in self._before(site)]
        if any("torch" in seeding.libraries for seeding in earlier):
            return made(f"{INITIAL_SEED} % 2**32", INITIAL_SEED, frozenset(), (NeedImport("torch"),))
        for seeding, _ in seedings:
            if isinstance(seeding.value, ast.Constant) and isinstance(seeding.value.value, int):
                text = str(seeding.value.value)
                return made(text, text, seeding.libraries)
        return None

    @property
    def _together(self) -> bool:
        """Whether several processes run the file: one seed would make all of them draw the same."""
        text = self.module.text
        return any(word in text for word in self.module.library.facts.conventions.distributed)

    def _around(self, node: cst.CSTNode) -> str:
        """The text of the file without `node`."""
        start, end = self.module.span(node)
        lines = self.module.skeleton.lines
        return "".join(
            [*lines[: start.row - 1], lines[start.row - 1][: start.column - 1], lines[end.row - 1][end.column - 1 :],
             *lines[end.row :]]
        )  # fmt: skip

    def _is_program(self) -> bool:
        """Whether a person evidently starts the file: it has a main guard, it is a notebook, or it does work."""
        tree = self.chains.tree
        if self.module.source.cells:
            return True
        return tree is not None and any(
            (isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test))
            or isinstance(statement, (ast.For, ast.While, ast.With))
            or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call))
            for statement in tree.body
        )

    def _chain(self, node: cst.CSTNode) -> tuple[Site, ...] | None:
        call = self.chains.call_at(node)
        return self.chains.to(call) if call is not None else None

    def _apart(self, key: str, written: str, start: int = 0) -> str:
        """What is added to a seed so that no two generators of the file draw the same numbers."""
        if key not in self.given:
            pattern = _OFFSET.format(re.escape(written.replace("{torch}", "torch")))
            known = [int(match[1] or 0) + 1 for match in re.finditer(pattern, self.module.text)]
            self.given[key] = max(known, default=start)
        number = max(self.given[key], start)
        self.given[key] = number + 1
        return f" + {number}" if number else ""

    # -------------------------------------------------------------------------------------------------- what seeds

    def _before(self, site: Site) -> Iterator[Seeding]:
        """What is seeded above a place, in the same function."""
        for call in self.chains.before(site):
            seeding = self.seeding(call)
            if seeding is not None:
                yield seeding

    def _around_site(self, site: Site) -> Iterator[Seeding]:
        """What is seeded in the function of a place: above it, then below."""
        yield from self._before(site)
        place = (site.node.lineno, site.node.col_offset)
        body = site.function if site.function is not None else self.chains.tree
        below = [call for call in self.chains.within(body) if (call.lineno, call.col_offset) > place] if body else []
        for call in sorted(below, key=lambda call: (call.lineno, call.col_offset)):
            seeding = self.seeding(call)
            if seeding is not None:
                yield seeding

    def seeding(self, call: ast.Call, depth: int = 0) -> Seeding | None:
        """What a call seeds: a function of the catalogue, of this file, or one that says so by its name."""
        name = self.chains.name_of(call.func)
        row = self._rows.get(name)
        first = call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None
        if row is not None:
            if not row.seeds or row.entropy:
                return None
            value = next((one.value for one in call.keywords if one.arg == row.argument), first)
            if value is None and (row.optional or row.argument):
                return None
            return Seeding(call, frozenset(row.seeds), value)
        last = name.rpartition(".")[2]
        local = self.chains.functions.get(name if isinstance(call.func, ast.Name) else last, [])
        if local:
            libraries = frozenset(library for one in local for library in self.seeded_by(one, depth + 1))
            return Seeding(call, libraries, self._passed(call, local[0])) if libraries else None
        if last and first is not None and self.module.library.facts.conventions.seeds.fullmatch(last):
            return Seeding(call, frozenset(("python", "numpy", "torch")), first)
        return None

    def seeded_by(self, function: Function, depth: int = 0) -> frozenset[str]:
        """The libraries whose global generators a function of the file seeds and leaves seeded."""
        if depth > _DEEP or self.chains.suspends(function) or self._manages(function):
            return frozenset()
        found: set[str] = set()
        for call in self.chains.within(function):
            seeding = self.seeding(call, depth + 1)
            if seeding is not None:
                found |= seeding.libraries
        return frozenset(found)

    def _manages(self, function: Function) -> bool:
        """Whether `function` is decorated as a context manager, which does nothing when it is called bare."""
        return any("contextmanager" in ast.unparse(one) for one in function.decorator_list)

    def _passed(self, call: ast.Call, function: Function) -> ast.expr | None:
        """What `call` gives for the parameter of `function` that holds the seed."""
        parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        for place, name in enumerate(parameters):
            if "seed" in name.lower():
                named = next((one.value for one in call.keywords if one.arg == name), None)
                return named or (call.args[place] if place < len(call.args) else None)
        return None

    # ------------------------------------------------------------------------------------------------ what is seen

    def _readable(self, seeding: Seeding, site: Site, place: Site) -> str:
        """The seed that `seeding` is given, as `place` can read it; empty where it cannot, where that is a literal, and
        where it may be `None`."""
        value = seeding.value
        inner = value
        while isinstance(inner, ast.Attribute):
            inner = inner.value
        if value is None or not isinstance(inner, ast.Name) or self._perhaps(seeding.call):
            return ""
        here = site.function is place.function
        if not here and (site.function is not None or self._bound_inside(place, inner.id)):
            return ""
        text = ast.unparse(value)
        return text if self._bound_before(text, inner.id, site, seeding.call) else ""

    def _perhaps(self, call: ast.Call) -> bool:
        """Whether `call` runs on some condition other than the main guard."""
        around: ast.AST | None = self.chains.parents.get(call)
        while around is not None and not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(around, ast.If) and "__name__" not in ast.unparse(around.test):
                return True
            around = self.chains.parents.get(around)
        return False

    def _bound_before(self, text: str, root: str, site: Site, seeding: ast.Call) -> bool:
        """Whether `text`, whose first name is `root`, is bound above `site`, and there is what it is at `seeding`."""
        function = site.function
        stores = list(self._stores(function, text, root)) if function is not None else []
        known = function is not None and any(
            node.arg == root for node in ast.walk(function.args) if isinstance(node, ast.arg)
        )
        if not stores and not known:
            assert self.chains.tree is not None
            stores = list(self._stores(self.chains.tree, text, root))
            if function is not None:
                return bool(stores)
        place, other = _start(site.node), _start(seeding)
        for statement in stores:
            if _start(statement) <= place <= _end(statement) or min(place, other) < _start(statement) < max(
                place, other
            ):
                return False
            known = known or _end(statement) < place
        return known

    def _stores(self, body: ast.AST, text: str, root: str) -> Iterator[ast.stmt]:
        """The statements of `body` that give `root`, or the attribute `text` of it, a value."""
        queue = list(ast.iter_child_nodes(body))
        while queue:
            node = queue.pop()
            if _stores(node) and ast.unparse(node) in (text, root):
                yield self._statement(node)
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                queue.extend(ast.iter_child_nodes(node))

    def _statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.chains.parents[node]
        return node

    def _bound_inside(self, place: Site, name: str) -> bool:
        """Whether a function around `place` has a `name` of its own."""
        around: ast.AST | None = place.node
        while around is not None:
            if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
                (isinstance(node, ast.arg) and node.arg == name) or (_stores(node) and ast.unparse(node) == name)
                for node in ast.walk(around)
            ):
                return True
            around = self.chains.parents.get(around)
        return False


def _stores(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)


def _start(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
