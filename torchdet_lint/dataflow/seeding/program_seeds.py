"""A place where a generator is made -> the text of a seed that follows the program's own, and whether that is safe."""

from __future__ import annotations

import ast
import functools
import itertools
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.seeding.call_chain import Site
from torchdet_lint.dataflow.seeding.ordered import Seeding, end_of, root_of, start_of
from torchdet_lint.dataflow.seeding.readable_seeds import ReadableSeeds
from torchdet_lint.dataflow.seeding.seed_calls import NEAREST, SeedCalls
from torchdet_lint.dataflow.seeding.seed_values import REPEATABLE_CALLS, SeedValues
from torchdet_lint.dataflow.seeding.taken_seeds import INITIAL_SEED, TakenSeeds, added
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.finding import NeedHelper, NeedImport, Withhold
from torchdet_lint.prefilter.main_guard import is_main_guard
from torchdet_lint.prefilter.skeleton import dotted_name
from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torchdet_lint.dataflow.seeding.kept_seeds import Kept
    from torchdet_lint.dataflow.seeding.seed_values import Option
    from torchdet_lint.finding import Applicability, Change
    from torchdet_lint.module.module import Module

_IN_PROCESSES = "several processes or workers run this line, and each has to be handed a seed of its own"
_PERMUTATION = "randperm("
_COMMENT = lazy(r"#[^\n]*")
_SEED_OPTION = lazy(r"""\badd_argument[ \t]*\(\s*(?:['"]-\w['"]\s*,\s*)?['"]--\w*seed\b""")
_PYTHON_GLOBALLY = lazy(r"\brandom\.[a-z]+\(|\bfrom\s+random\s+import\s+[a-z]")
# An expression of these has the same value in the next statement.
_REPEATABLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.operator, ast.expr_context)


class GeneratorSeed(NamedTuple):
    """The text of a seed, with `{torch}` and `{seed}` in it, and how safe it is to write it there."""

    text: str
    applicability: Applicability | None
    needs: tuple[Change, ...] = ()


# At a place that may run more than once.
UNSEEN = GeneratorSeed("{seed}", "unsafe")


class ProgramSeeds:
    """What seeds the program that a file is, and the seeds given out to the generators of this file so far."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.conventions = module.library.facts.conventions
        self.calls = module.shared(SeedCalls)
        self.chains = self.calls.chains
        self.taken = TakenSeeds(self.calls)
        self.readable = ReadableSeeds(self.chains, module.text)
        self.values = SeedValues(self.chains.tree, self._is_constant_elsewhere)

    def torch_seeded(self, node: cst.CSTNode) -> bool:
        """Whether `node`, a call, runs once, and torch is seeded on the way to it."""
        chain = self._chain(node)
        return chain is not None and self.calls.seeds_torch(chain)

    def initial_seed(self, node: cst.CSTNode, *, permutes: bool = False, at_once: bool = False) -> GeneratorSeed:
        """The seed of a `torch.Generator` made at `node` that belongs to that call alone, with a hole for its `offset`.
        A call that draws `at_once`, right below a seed of torch, draws the same with that very seed: so two splits
        after one seed go on agreeing. What `permutes` does so first of all: with torch's own seed it would repeat the
        program's first `randperm`."""
        kept = at_once and self.right_below_a_seed(node)
        text = f"{INITIAL_SEED}{{apart{'.kept' if kept else '.permutes' if permutes else ''}}}"
        repeated = kept and _PERMUTATION in self.module.text
        chain = self._chain(node) if not (self._elsewhere or repeated) else None
        safe = chain is not None and self._follows_torch(chain, at_once=at_once)
        return GeneratorSeed(text, None if safe else "unsafe", (NeedImport("torch"),))

    def offset(self, how: str) -> str:
        """What the next generator of the file adds to torch's initial seed. `how`: one that is `kept` adds nothing, one
        that `permutes` never does."""
        if how == "kept" and INITIAL_SEED in self.taken.given:
            return ""
        offset = self.taken.apart(INITIAL_SEED, INITIAL_SEED, int(how == "permutes"))
        return "" if how == "kept" else offset

    def _follows_torch(self, chain: Sequence[Site], *, at_once: bool) -> bool:
        """Whether a generator made at the end of `chain` follows the program's seed of torch."""
        return self.calls.seeds_torch(chain) and (at_once or not self.calls.seeds_torch_again(chain))

    def torch_seeded_only_below(self, node: cst.CSTNode) -> bool:
        """Whether `node`, a call, runs once, and torch is seeded below it and not on the way to it."""
        chain = self._chain(node)
        return chain is not None and not self.calls.seeds_torch(chain) and self.calls.seeds_torch_below(chain)

    def right_below_a_seed(self, node: cst.CSTNode) -> bool:
        """Whether the statement before that of `node` seeds torch."""
        statement = self.module.statement(node)
        block = self.module.parent(statement)
        body = list(getattr(block, "body", ()))
        place = next((at for at, one in enumerate(body) if one is statement), 0)
        before = body[place - 1].body[0] if place and isinstance(body[place - 1], cst.SimpleStatementLine) else None
        call = self.module.call_at(before.value) if isinstance(before, cst.Expr) else None
        if call is None:
            return False
        known = any(
            "torch" in row.seeds and not (row.entropy or row.lazy) and not set(row.names).isdisjoint(call.names)
            for row in self.module.library.facts.seeds
        )
        return known or self.conventions.seeds.fullmatch(last_word(call.node.func)) is not None

    def seed(self, node: cst.CSTNode, library: str = "") -> GeneratorSeed:
        """The seed of a generator that the call `node` makes: the program's own where that is in sight, else the
        configured one. `library` is the one whose global generator would draw the same from the same seed."""
        found = self._programs(node, "python" if library == "python" else "numpy", library)
        if found is not None:
            return self._one_of_many_at(node) if found == UNSEEN else found
        text = "{seed}" + self.taken.apart("{seed}", "0", int(self._is_used_globally(library)))
        own = not (self._speaks_of_seeds_around(node) or self._option_elsewhere)
        return GeneratorSeed(text, None if own and self._is_program and not self._together else "unsafe")

    def beside(self, node: cst.CSTNode, libraries: Sequence[str], elsewhere: Callable[[str], Iterable[int]]) -> str:
        """What the call `node` seeds with, as it is written, where `libraries` may be given it right below, or what
        they may be given of it, as `unlike` has it; torch's initial seed where it is torch's and cannot be written
        twice. Empty where the call runs on a condition that is not about the seed, or another one where it does not."""
        seeding = self._seeding_at(node)
        if seeding is None or seeding.value is None:
            return ""
        suits = all(self.values.suits(seeding, one) for one in libraries)
        repeatable = all(map(_is_repeatable, walk(seeding.value)))
        if seeding.is_constant or not (suits or (self.values.may_be_negative(seeding) and not seeding.asks)):
            repeatable &= suits
        kinds = {type(one) for one in walk(seeding.value)}
        text = ast.unparse(seeding.value)
        if self.readable.perhaps(seeding.call, unless=text if repeatable and ast.Name in kinds else "__name__"):
            return ""
        above = (site.node for site in self.chains.to(seeding.call) or ())
        if any(map(self.calls.seeds_otherwise, (seeding.call, *above))):
            return ""
        if not repeatable:
            return f"{INITIAL_SEED} % 2**32" if "torch" in seeding.libraries else ""
        text = self.readable.quoted(text)
        seed = self.taken.unlike(text, libraries, elsewhere)
        if suits:
            return seed
        return f"({seed}) % 2**32" if ast.BinOp in kinds or seed != text else f"{seed} % 2**32"

    def runs_once(self, node: cst.CSTNode) -> bool:
        """Whether the call `node`, which seeds, runs once in a run."""
        call = self.chains.call_at(node)
        return call is not None and self.chains.to(call) is not None

    def varies(self, node: cst.CSTNode) -> bool:
        """Whether the call `node` seeds with something else than a number that is written there, or in the function of
        the file that it calls."""
        seeding = self._seeding_at(node)
        if seeding is None or seeding.value is not None:
            return seeding is not None and seeding.varies
        called = self.chains.functions.get(self.chains.name_of(seeding.call.func).rpartition(".")[2], ())
        return any(self.calls.within(Site(seeding.call, one)).varies for one in called)

    def attribute_at(self, node: cst.CSTNode) -> str:
        """The attribute that the call `node` seeds with: `seed` of `args.seed`; empty for anything else."""
        seeding = self._seeding_at(node)
        value = seeding.value if seeding is not None else None
        return value.attr if isinstance(value, ast.Attribute) else ""

    def _seeding_at(self, node: cst.CSTNode) -> Seeding | None:
        call = self.chains.call_at(node)
        return self.calls.seeding(call) if call is not None else None

    def below_arguments(self, node: cst.CSTNode, option: Option, values: SeedValues) -> str:
        """The seed that the call `node` parses, as the statement below can read it; empty where it cannot, where the
        call may run more than once or on a condition, and where it may be no seed. `values` are those of the file with
        the option."""
        call = self.chains.call_at(node)
        statement = self.chains.parents.get(call) if call is not None else None
        if call is None or not option.suits or not isinstance(statement, ast.Assign) or self.readable.perhaps(call):
            return ""
        name = values.holder(call, statement)
        return f"{name}.{option.name}" if name and self.chains.to(call) is not None else ""

    def replacement(self, node: cst.CSTNode, generator: str | None) -> GeneratorSeed:
        """The seed in the place of one that differs in every run: `node` makes it, or is the call that asks for it.
        `generator` is the library whose global generator draws what an object with that seed draws; None for a seed of
        a global generator itself."""
        apart = generator is not None
        found = self._programs(node, "", generator or "", apart=apart)
        if found == UNSEEN:
            call = self.chains.call_at(node)
            often = apart or (call is not None and self.chains.repeats(call))
            return self._one_of_many_at(node) if often else found
        if found is None:
            start = int(self._is_used_globally(generator or ""))
            text = "{seed}" + (self.taken.apart("{seed}", "0", start) if apart else self.taken.by_all("{seed}", "0"))
            found = GeneratorSeed(text, "unsafe" if self._together or self._option_elsewhere else None)
        return found

    def _one_of_many_at(self, node: cst.CSTNode) -> GeneratorSeed:
        """The same for `node`, with no fix where other processes run it: each would go on from a copy of the source."""
        call = self.chains.call_at(node)
        if call is None or not self.chains.runs_in_process(call):
            return self.one_of_many
        return self.one_of_many._replace(needs=(Withhold(_IN_PROCESSES),))

    @functools.cached_property
    def one_of_many(self) -> GeneratorSeed:
        """The seed of what is made again and again: the next number of a generator that the file makes once, so that
        all of them go on drawing different numbers."""
        start = self.taken.apart("{seed}", "0", int(self._is_used_globally("python")))
        needs = (NeedHelper("seed_source", seed="{seed}" + start),)
        return GeneratorSeed("{seed_source}.getrandbits(32)", "unsafe", needs)

    def _programs(
        self, node: cst.CSTNode, takes: str, library: str = "", *, apart: bool = True
    ) -> GeneratorSeed | None:
        """A seed that follows the program's own, and that a generator of the library `takes` takes (any: ""); None
        where there is none in sight."""
        chain = self._chain(node)
        if chain is None:
            return UNSEEN

        def made(key: str, libraries: frozenset[str], needs: tuple[Change, ...] = ()) -> GeneratorSeed:
            ranked = self.conventions.numbers_process.search(key.rpartition(".")[2])
            same = library in libraries or self._is_used_globally(library)
            offset = self.taken.apart(key, key, int(same)) if apart else self.taken.by_all(key, key)
            text = added(key, offset)
            if key == INITIAL_SEED:
                # What is added may lead beyond what NumPy takes.
                text = f"({text}) % 2**32" if offset else f"{text} % 2**32"
            return GeneratorSeed(text, "unsafe" if self._together and not ranked else None, needs)

        for site in chain:
            for seeding in self.calls.near(self.calls.within(site).named, site):
                text = self.readable.at(seeding, site, chain[0])
                if text and self.values.suits(seeding, takes):
                    return made(text, seeding.libraries)
        if self.calls.seeds_torch(chain, repeatably=not apart):
            return made(INITIAL_SEED, frozenset(), (NeedImport("torch"),))
        if any(True for site in chain for _ in self.calls.above(self.calls.within(site).named, site)):
            return GeneratorSeed("{seed}", "unsafe")  # the program has a seed, which cannot be read here
        for site in chain:
            for seeding in self.calls.near(self.calls.within(site).constant, site):
                assert isinstance(seeding.value, ast.Constant)
                text = str(seeding.value.value)
                if self.values.suits(seeding, takes):
                    return made(text, seeding.libraries)
        option = self._parsed_option(chain) or self._kept_seed(chain)
        return made(option, frozenset()) if option else None

    def _parsed_option(self, chain: Sequence[Site]) -> str:
        """The seed that the command line is asked for, as the place to which `chain` leads can read it, though nothing
        is seeded with it yet; empty where there is none."""
        option = self.values.option
        for site in chain if option is not None and option.suits else ():
            body = site.function if site.function is not None else self.chains.tree
            for call in self.chains.within(body) if body is not None else ():
                statement = self.chains.parents.get(call)
                name = self.values.holder(call, statement) if isinstance(statement, ast.Assign) else ""
                if name and option is not None:
                    value = ast.Attribute(value=ast.Name(name), attr=option.name)
                    text = self.readable.at(Seeding(call, frozenset(), value), site, chain[0])
                    if text:
                        return text
        return ""

    def _kept_seed(self, chain: Sequence[Site]) -> str:
        """The seed that the file keeps at top level, as the place to which `chain` leads can read it; empty where there
        is none."""
        place = chain[0]
        for one in self.values.kept[:NEAREST] if self.values.option is None else ():
            root = root_of(one.value)
            # A function around the place is called below the statement, where that runs.
            inside = place.function is not None or end_of(one.statement) < start_of(place.node)
            if inside and root is not None and not self.readable.bound_inside(place, root):
                return self.readable.quoted(ast.unparse(one.value))
        return ""

    def kept_above(self, before: cst.CSTNode | None) -> Kept | None:
        """The first seed that the file keeps at top level above the statement `before` there, or above its main guard;
        None where there is none."""
        if before is not None:
            row = self.module.span(before)[0].row
        else:
            body = self.chains.tree.body if self.chains.tree is not None else ()
            row = next((one.lineno for one in body if is_main_guard(one)), 0)
        return next((one for one in self.values.kept if end_of(one.statement)[0] < row), None)

    def text_of(self, kept: Kept) -> str:
        """What reads a seed that the file keeps, as the file would write it."""
        return self.readable.quoted(ast.unparse(kept.value))

    @functools.cached_property
    def _elsewhere(self) -> bool:
        """Whether the file may put tensors on a device of which `torch.Generator()` is none."""
        return any(f"{word}(" in self.module.text for word in self.conventions.devices)

    def _is_used_globally(self, library: str) -> bool:
        """Whether the file, or one that it imports, uses the global generator of `library`, which its program seeds, or
        will after a fix, with the number that a generator of its own would get."""
        return library in self._used_globally

    @functools.cached_property
    def _used_globally(self) -> frozenset[str]:
        uses = {"numpy": self.conventions.uses_numpy_globally, "python": _PYTHON_GLOBALLY}
        texts = [one.text for one in (self.module, *self.calls.other_files.modules)]
        return frozenset(library for library, use in uses.items() if any(map(use.search, texts)))

    @functools.cached_property
    def _option_elsewhere(self) -> bool:
        """Whether a file that this one imports adds an option that is a seed: the program has one, out of sight."""
        return any(_SEED_OPTION.search(one.text) for one in self.calls.other_files.modules)

    @functools.cached_property
    def _together(self) -> bool:
        """Whether several processes run the file: one seed would make all of them draw the same."""
        text = self.module.text
        return any(word in text for word in self.conventions.distributed)

    def _speaks_of_seeds_around(self, node: cst.CSTNode) -> bool:
        """Whether the file speaks of seeds anywhere but in `node` and in comments."""
        start, end = self.module.span(node)
        lines, counts = self.module.skeleton.lines, self._rows_about_seeds
        if counts[start.row - 1] or counts[-1] > counts[end.row]:
            return True
        return self._speaks(lines[start.row - 1][: start.column - 1] + lines[end.row - 1][end.column - 1 :])

    def _speaks(self, line: str) -> bool:
        return self.conventions.speaks_of_seeds.search(_COMMENT.sub("", line)) is not None

    @functools.cached_property
    def _rows_about_seeds(self) -> list[int]:
        """How many of the first n rows speak of seeds."""
        return list(itertools.accumulate(map(self._speaks, self.module.skeleton.lines), initial=0))

    @functools.cached_property
    def _is_program(self) -> bool:
        """Whether a person evidently starts the file: it has a main guard, it is a notebook, or it does work."""
        tree = self.chains.tree
        if self.module.source.cells:
            return True
        return tree is not None and any(
            is_main_guard(statement)
            or isinstance(statement, (ast.For, ast.While, ast.With))
            or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call))
            for statement in tree.body
        )

    def _chain(self, node: cst.CSTNode) -> tuple[Site, ...] | None:
        call = self.chains.call_at(node)
        return self.chains.to(call) if call is not None else None

    def has_several(self, node: cst.CSTNode) -> bool:
        """Whether the file seeds what the call `node` seeds with several numbers, of which a run takes one."""
        seeding = self._seeding_at(node)
        if seeding is None:
            return False
        alike = {text for one, text in self.calls.written if not seeding.libraries.isdisjoint(one.libraries)}
        return len(alike) > 1

    def _is_constant_elsewhere(self, value: ast.expr) -> bool:
        """Whether `value` names a constant of another file of the project that is a seed: `SEED`, `config.SEED`."""
        root, dot, rest = dotted_name(value).partition(".")
        neighbour = self.module.neighbour
        if root not in self.chains.imported or neighbour is None:
            return False
        found = neighbour(f"{self.chains.imported[root]}{dot}{rest}")
        return found is not None and found[0].shared(ProgramSeeds).values.is_constant(found[1])


def _is_repeatable(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return not node.keywords and ast.unparse(node.func) in REPEATABLE_CALLS
    return isinstance(node, _REPEATABLE)
