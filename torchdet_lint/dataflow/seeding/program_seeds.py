"""A place where a generator is made -> the text of a seed that follows the program's own, and whether that is safe."""

from __future__ import annotations

import ast
import bisect
import functools
import itertools
import re
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

import libcst as cst

from torchdet_lint.dataflow.seeding.call_chain import CallChain
from torchdet_lint.dataflow.seeding.elsewhere import Elsewhere
from torchdet_lint.dataflow.seeding.later_seeds import LaterSeeds
from torchdet_lint.dataflow.seeding.ordered import (
    Seeding,
    Seedings,
    Stores,
    as_member,
    end_of,
    namespaces,
    root_of,
    start_of,
)
from torchdet_lint.dataflow.seeding.seed_values import REPEATABLE_CALLS, SeedValues
from torchdet_lint.dataflow.syntax import last_word
from torchdet_lint.finding import NeedHelper, NeedImport, Withhold
from torchdet_lint.prefilter.main_guard import is_main_guard
from torchdet_lint.prefilter.skeleton import dotted_name, imported
from torchdet_lint.prefilter.syntax import children, walk
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from torchdet_lint.catalogue.tables.conventions import Conventions
    from torchdet_lint.dataflow.seeding.call_chain import Function, Site
    from torchdet_lint.dataflow.seeding.kept_seeds import Kept
    from torchdet_lint.dataflow.seeding.ordered import Ordered
    from torchdet_lint.dataflow.seeding.seed_values import Option
    from torchdet_lint.finding import Applicability, Change
    from torchdet_lint.module.module import Module

NUMBER = "{seed}"
INITIAL_SEED = "{torch}.initial_seed()"
_IN_PROCESSES = "several processes or workers run this line, and each has to be handed a seed of its own"
# No program runs as so many processes.
_RANKS = 10_000
# A generator that is seeded anew for each epoch, or each of whatever is counted.
_COUNTS_ON = lazy(r"(?<!\btorch)(?<!cuda)\.manual_seed\(\s*[\w.]+\s*\+\s*[A-Za-z_]")
_PERMUTATION = "randperm("
_SEEDS = "seed"
_COMMENT = lazy(r"#[^\n]*")
_OFFSET = lazy(r"(?:\s*%\s*2\s*\*\*\s*32)?(?:\s*\+\s*(\d+))?")
_NUMBER = lazy(r"(\d+)(?:\s*\+\s*(\d+))?(?![\w.])")
_NAME = lazy(r"[A-Za-z_]\w*(?=\s*[,)])")
_SEED_OPTION = lazy(r"""\badd_argument[ \t]*\(\s*(?:['"]-\w['"]\s*,\s*)?['"]--\w*seed\b""")
_PYTHON_GLOBALLY = lazy(r"\brandom\.[a-z]+\(|\bfrom\s+random\s+import\s+[a-z]")
_LONGEST_SEED = 80
# NumPy takes no seed from here on.
_SEEDS_END = 2**32
# Of their parts one runs and not the others.
_CHOICES = (ast.If, ast.IfExp, ast.Try, ast.Match)
# An expression of these has the same value in the next statement.
_REPEATABLE = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.BinOp, ast.operator, ast.expr_context)
_DEEP = 3
# So many seedings on either side of a place are looked at for one whose seed it can read.
_NEAREST = 20


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
        self.chains = module.shared(CallChain)
        self.values = SeedValues(self.chains.tree, self._is_constant_elsewhere)
        self.given: dict[str, int] = {}
        self._rows = {name: row for row in module.library.facts.seeds for name in row.names}
        self._known_seedings: dict[ast.AST, Seedings] = {}
        self._known_libraries: dict[tuple[str, int], frozenset[str]] = {}
        self._known_to_ask: dict[Function, bool] = {}
        self._known_stores: dict[ast.AST, dict[str, set[ast.stmt]]] = {}
        self._known_binders: dict[tuple[ast.AST, str, str], Stores] = {}
        self._known_names: dict[ast.AST, set[str]] = {}

    def torch_seeded(self, node: cst.CSTNode) -> bool:
        """Whether `node`, a call, runs once, and torch is seeded on the way to it."""
        chain = self._chain(node)
        return chain is not None and self._seeds_torch(chain)

    def initial_seed(self, node: cst.CSTNode, *, permutes: bool = False, at_once: bool = False) -> GeneratorSeed:
        """The seed of a `torch.Generator` made at `node` that belongs to that call alone. A call that draws `at_once`,
        right below a seed of torch, draws the same with that very seed: so two splits after one seed go on agreeing.
        What `permutes` does so first of all: with torch's own seed it would repeat the program's first `randperm`."""
        kept = at_once and self.right_below_a_seed(node)
        taken = INITIAL_SEED in self.given
        offset = self._apart(INITIAL_SEED, INITIAL_SEED, int(permutes and not kept)) if not (kept and taken) else ""
        text = INITIAL_SEED if kept else INITIAL_SEED + offset
        repeated = kept and _PERMUTATION in self.module.text
        chain = self._chain(node) if not (self._elsewhere or repeated) else None
        safe = chain is not None and self._seeds_torch(chain) and (at_once or not self._seeds_torch_again(chain))
        return GeneratorSeed(text, None if safe else "unsafe", (NeedImport("torch"),))

    def torch_seeded_only_below(self, node: cst.CSTNode) -> bool:
        """Whether `node`, a call, runs once, and torch is seeded below it and not on the way to it."""
        chain = self._chain(node)
        return chain is not None and not self._seeds_torch(chain) and self._seeds_torch_below(chain)

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
        text = "{seed}" + self._apart("{seed}", "0", int(self._is_used_globally(library)))
        own = not (self._speaks_of_seeds_around(node) or self._option_elsewhere)
        return GeneratorSeed(text, None if own and self._is_program and not self._together else "unsafe")

    def unlike(self, text: str, libraries: Sequence[str], elsewhere: Callable[[str], Iterable[int]]) -> str:
        """`text`, a seed for `libraries`, or a number above it, so that no object draws the same that this file, or
        another of the program, gives a seed; `elsewhere` has the numbers of those, by library."""
        number = int(text) if text.isdecimal() else 0 if text == NUMBER else None
        taken: set[int] = set()
        for library in libraries:
            if number is not None:
                numbers = itertools.chain(
                    numbers_given(self.conventions, library, self.module.text), elsewhere(library)
                )
                taken.update(one - number for one in numbers)
                continue
            for match in self.conventions.gives_its_own(library).finditer(self.module.text):
                place = match.end()
                found = _OFFSET.match(self.module.text, place + len(text))
                if self.module.text.startswith(text, place) and found is not None:
                    taken.add(int(found[1] or 0))
        above = next(above for above in itertools.count() if above not in taken)
        return _added(text, f" + {above}" if above else "")

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
        if self._perhaps(seeding.call, unless=text if repeatable and ast.Name in kinds else "__name__"):
            return ""
        above = (site.node for site in self.chains.to(seeding.call) or ())
        if any(map(self._seeds_otherwise, (seeding.call, *above))):
            return ""
        if not repeatable:
            return f"{INITIAL_SEED} % 2**32" if "torch" in seeding.libraries else ""
        text = self._quoted(text)
        seed = self.unlike(text, libraries, elsewhere)
        if suits:
            return seed
        return f"({seed}) % 2**32" if ast.BinOp in kinds or seed != text else f"{seed} % 2**32"

    def runs_once(self, node: cst.CSTNode) -> bool:
        """Whether the call `node`, which seeds, runs once in a run."""
        call = self.chains.call_at(node)
        return call is not None and self.chains.to(call) is not None

    def varies(self, node: cst.CSTNode) -> bool:
        """Whether the call `node` seeds with something else than a number that is written there."""
        seeding = self._seeding_at(node)
        return seeding is not None and seeding.value is not None and not seeding.is_constant

    def _seeding_at(self, node: cst.CSTNode) -> Seeding | None:
        call = self.chains.call_at(node)
        return self.seeding(call) if call is not None else None

    def below_arguments(self, node: cst.CSTNode, option: Option, values: SeedValues) -> str:
        """The seed that the call `node` parses, as the statement below can read it; empty where it cannot, where the
        call may run more than once or on a condition, and where it may be no seed. `values` are those of the file with
        the option."""
        call = self.chains.call_at(node)
        statement = self.chains.parents.get(call) if call is not None else None
        if call is None or not option.suits or not isinstance(statement, ast.Assign) or self._perhaps(call):
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
            text = "{seed}" + (self._apart("{seed}", "0", start) if apart else self._taken_by_all("{seed}", "0"))
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
        start = self._apart("{seed}", "0", int(self._is_used_globally("python")))
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
            offset = self._apart(key, key, int(same)) if apart else self._taken_by_all(key, key)
            text = _added(key, offset)
            if key == INITIAL_SEED:
                # What is added may lead beyond what NumPy takes.
                text = f"({text}) % 2**32" if offset else f"{text} % 2**32"
            return GeneratorSeed(text, "unsafe" if self._together and not ranked else None, needs)

        for site in chain:
            for seeding in self._near(self._seedings(site).named, site):
                text = self._readable(seeding, site, chain[0])
                if text and self.values.suits(seeding, takes):
                    return made(text, seeding.libraries)
        if self._seeds_torch(chain, repeatably=not apart):
            return made(INITIAL_SEED, frozenset(), (NeedImport("torch"),))
        if any(True for site in chain for _ in self._above(self._seedings(site).named, site)):
            return GeneratorSeed("{seed}", "unsafe")  # the program has a seed, which cannot be read here
        for site in chain:
            for seeding in self._near(self._seedings(site).constant, site):
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
                    text = self._readable(Seeding(call, frozenset(), value), site, chain[0])
                    if text:
                        return text
        return ""

    def _kept_seed(self, chain: Sequence[Site]) -> str:
        """The seed that the file keeps at top level, as the place to which `chain` leads can read it; empty where there
        is none."""
        place = chain[0]
        for one in self.values.kept[:_NEAREST] if self.values.option is None else ():
            root = root_of(one.value)
            # A function around the place is called below the statement, where that runs.
            inside = place.function is not None or end_of(one.statement) < start_of(place.node)
            if inside and root is not None and not self._bound_inside(place, root):
                return self._quoted(ast.unparse(one.value))
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
        return self._quoted(ast.unparse(kept.value))

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
        texts = [one.text for one in (self.module, *self._other_files.modules)]
        return frozenset(library for library, use in uses.items() if any(map(use.search, texts)))

    @functools.cached_property
    def _option_elsewhere(self) -> bool:
        """Whether a file that this one imports adds an option that is a seed: the program has one, out of sight."""
        return any(_SEED_OPTION.search(one.text) for one in self._other_files.modules)

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

    def _apart(self, key: str, written: str, start: int = 0) -> str:
        """What is added to a seed so that no two generators of the file draw the same numbers."""
        if written.isdecimal():
            taken = self._first_free(int(written) + max(self.given.get(key, 0), start))
            self._following[taken] = taken + 1
            number = taken - int(written)
            self.given[key] = number + 1
            return f" + {number}" if number else ""
        if key not in self.given:
            text = written.replace("{torch}", "torch")
            known = [int(match[1] or 0) + 1 for at in self._starting_with(text) if (match := self._offset(text, at))]
            known += self._given_torchs_seed if key == INITIAL_SEED else ()
            self.given[key] = max(known, default=start)
        number = max(self.given[key], start)
        self.given[key] = number + 1
        # The next numbers are those of the processes that come next.
        return f" + {number * (_RANKS if self._seeds_by_rank else 1)}" if number else ""

    @functools.cached_property
    def _given_torchs_seed(self) -> list[int]:
        """What has to be added at least to the seed that the file gives torch, for each object that it gives the same
        one: a generator, or a sampler, which counts its epochs on from there."""
        found = [_RANKS] if _COUNTS_ON.search(self.module.text) else []
        for seed in sorted({text for one, text in self._seeds_written if "torch" in one.libraries}):
            text = re.escape(seed)
            for given in re.finditer(
                rf"(?<!\btorch)(?<!cuda)\.manual_seed\(\s*{text}\s*(\)|\+\s*(\w+))", self.module.text
            ):
                added = given[2] or "0"
                found.append(int(added) + 1 if added.isdecimal() else _RANKS)
            if re.search(rf"Sampler\((?:[^()]|\([^()]*\))*\bseed\s*=\s*{text}\s*[,)]", self.module.text):
                found.append(_RANKS)
        return found

    @functools.cached_property
    def _seeds_by_rank(self) -> bool:
        """Whether the file seeds something with the number of a process: `torch.manual_seed(seed + rank)`, or puts it
        into a name that speaks of a seed."""
        nodes = walk(self.chains.tree) if self.chains.tree is not None else ()
        if any(
            isinstance(node, ast.Assign)
            and any(_SEEDS in dotted_name(target).lower() for target in node.targets)
            and self._is_of_process(node.value)
            for node in nodes
        ):
            return True
        return any(
            _SEEDS in name.lower() and any(map(self._is_of_process, use.args))
            for name, uses in self.chains.uses.items()
            for use in (self.chains.parents[one] for one in uses)
            if isinstance(use, ast.Call)
        )

    def _is_of_process(self, node: ast.expr) -> bool:
        words = (
            dotted_name(one).rpartition(".")[2] for one in walk(node) if isinstance(one, (ast.Name, ast.Attribute))
        )
        return any(word and self.conventions.numbers_process.search(word) for word in words)

    def _taken_by_all(self, key: str, written: str) -> str:
        """Nothing, for the global generators share a seed; the objects of the file get others."""
        if key not in self.given:
            self._apart(key, written)
        return ""

    def _offset(self, text: str, at: int) -> re.Match[str] | None:
        found = self.module.text.startswith(text, at)
        return _OFFSET.match(self.module.text, at + len(text)) if found else None

    def _starting_with(self, text: str) -> Iterator[int]:
        """Where the file gives a generator something that starts as `text` does."""
        text = text[:_LONGEST_SEED]
        for at in range(bisect.bisect_left(self._seeds_given, (text, 0)), len(self._seeds_given)):
            given, place = self._seeds_given[at]
            if not given.startswith(text):
                return
            yield place

    def _first_free(self, number: int) -> int:
        """The first number from `number` on that no generator of the file is given."""
        passed = []
        while number in self._following:
            passed.append(number)
            number = self._following[number]
        self._following.update(dict.fromkeys(passed, number))
        return number

    @functools.cached_property
    def _following(self) -> dict[int, int]:
        """The numbers that the file gives generators, and those given out so far: each with one above it, up to which
        all are given."""
        found = (_NUMBER.match(self.module.text, place) for _, place in self._seeds_given)
        numbers = {int(one[1]) + int(one[2] or 0) for one in found if one is not None}
        following: dict[int, int] = {}
        for number in sorted(numbers, reverse=True):
            following[number] = following.get(number + 1, number + 1)
        return following

    @functools.cached_property
    def _seeds_given(self) -> list[tuple[str, int]]:
        """What the file gives generators, the beginning of its text, and where, sorted."""
        text, places = self.module.text, set[int]()
        for match in self.conventions.is_given.finditer(text):
            places |= {match.end(), match.end() + len(match[1] or "")}
        places |= {place + 1 for place in places if text.startswith("(", place)}
        return sorted((text[at : at + _LONGEST_SEED], at) for at in places)

    # -------------------------------------------------------------------------------------------------- what seeds

    def _seedings(self, site: Site) -> Seedings:
        """What is seeded in the function of a place."""
        body = site.function if site.function is not None else self.chains.tree
        assert body is not None
        if body not in self._known_seedings:
            found = [seeding for call in self.chains.within(body) if (seeding := self.seeding(call)) is not None]
            self._known_seedings[body] = Seedings(found)
        return self._known_seedings[body]

    def _seeds_torch(self, chain: Sequence[Site], *, repeatably: bool = False) -> bool:
        """Whether torch is seeded above one of the places, `repeatably`: by something else than a clock and its like,
        which become the configured seed."""
        above = (one for site in chain for one in self._above(self._seedings(site).torch, site))
        return any(not (repeatably and self._is_entropy(one.value)) for one in above)

    def _is_entropy(self, value: ast.expr | None) -> bool:
        """Whether a clock is read, or something like it, to work `value` out."""
        entropy = self.module.library.facts.entropy
        calls = [one for one in walk(value) if isinstance(one, ast.Call)] if value is not None else []
        return any(self.chains.name_of(one.func) in entropy for one in calls)

    def _seeds_torch_again(self, chain: Sequence[Site]) -> bool:
        """Whether torch is seeded below one of the places, perhaps for what is drawn then: a generator of its own would
        not follow that seed."""
        return self._seeds_torch_below(chain) or self._later_seeds.below(chain)

    def _seeds_torch_below(self, chain: Sequence[Site]) -> bool:
        """Whether torch is evidently seeded below one of the places."""
        below = any(True for site in chain for _ in self._seedings(site).torch.below(start_of(site.node)))
        return below or self._later_seeds.evidently_below(chain)

    @functools.cached_property
    def _later_seeds(self) -> LaterSeeds:
        calls = list(self.chains.places.values())
        rows = ((call, self._rows.get(self.chains.name_of(call.func))) for call in calls)
        seeding = [call for call, row in rows if row is not None and "torch" in row.seeds]
        seeding += [call for call in calls if self._other_files.seeds(call, later=False)]
        any_time = any(self._other_files.seeds(call, later=True) for call in calls)
        return LaterSeeds(self.chains, seeding, any_time=any_time)

    @functools.cached_property
    def _other_files(self) -> Elsewhere:
        return Elsewhere(self.module)

    def _above(self, seedings: Ordered, site: Site) -> Iterator[Seeding]:
        """Those of `seedings` that are done above a place, the nearest first."""
        around = set(self.chains.around(site.node))
        return (one for one in seedings.above(start_of(site.node)) if one.call not in around)

    def _near(self, seedings: Ordered, site: Site) -> Iterator[Seeding]:
        """Those of `seedings` next to a place: above it, then below, the nearest first."""
        yield from itertools.islice(self._above(seedings, site), _NEAREST)
        yield from itertools.islice(seedings.below(start_of(site.node)), _NEAREST)

    def seeding(self, call: ast.Call, depth: int = 0) -> Seeding | None:
        """What a call seeds: a function of the catalogue, of this file, or one that says so by its name."""
        found = self._seeding(call, depth)
        return found._replace(value=as_member(found.value)) if found is not None and found.value is not None else found

    def _seeding(self, call: ast.Call, depth: int) -> Seeding | None:
        name = self.chains.name_of(call.func)
        row = self._rows.get(name)
        first = call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else None
        if row is not None:
            if not row.seeds or row.entropy or row.lazy:
                return None
            value = next((one.value for one in call.keywords if one.arg == row.argument), first)
            if value is None and (row.optional or row.argument):
                return None
            return Seeding(call, frozenset(row.seeds), value)
        last = name.rpartition(".")[2]
        function = name if isinstance(call.func, ast.Name) else last
        local = self.chains.functions.get(function, [])
        if local:
            libraries = self._seeded_by(function, depth + 1)
            return Seeding(call, libraries, self._passed(call, local[0]), self._asks(local[0])) if libraries else None
        if last and first is not None and self.conventions.seeds.fullmatch(last):
            return Seeding(call, frozenset(("python", "numpy", "torch")), first, self._asks_elsewhere(name))
        if name and depth < _DEEP and isinstance(self.chains.parents.get(call), ast.Expr):
            libraries = self._seeded_elsewhere(name, depth + 1)
            return Seeding(call, libraries, first, self._asks_elsewhere(name)) if libraries else None
        return None

    def _asks_elsewhere(self, name: str) -> bool:
        """Whether a function of another file of the project asks about its seed."""
        found = self.module.neighbour(name) if self.module.neighbour is not None and "." in name else None
        if found is None:
            return False
        other = found[0].shared(ProgramSeeds)
        return any(map(other._asks, other.chains.functions.get(found[1], ())))

    def _asks(self, function: Function) -> bool:
        """Whether a function of the file asks about its seed."""
        if function not in self._known_to_ask:
            self._known_to_ask[function] = _decides(function)
        return self._known_to_ask[function]

    def _seeded_elsewhere(self, name: str, depth: int) -> frozenset[str]:
        """The libraries that a function of another file of the project seeds and leaves seeded."""
        if (name, depth) not in self._known_libraries:
            found = self.module.neighbour(name) if self.module.neighbour is not None and "." in name else None
            libraries: frozenset[str] = frozenset()
            if found is not None and _SEEDS in found[0].text:
                other = found[0].shared(ProgramSeeds)
                if found[1] in other.chains.functions:
                    libraries = other._seeded_by(found[1], depth)
            self._known_libraries[name, depth] = libraries
        return self._known_libraries[name, depth]

    def _seeded_by(self, name: str, depth: int) -> frozenset[str]:
        """The libraries whose global generators the functions `name` of the file seed and leave seeded."""
        if depth > _DEEP:
            return frozenset()
        if (name, depth) not in self._known_libraries:
            found: set[str] = set()
            for function in self.chains.functions[name]:
                if not self.chains.suspends(function) and not self._manages(function):
                    for call in self.chains.within(function):
                        seeding = self.seeding(call, depth + 1)
                        found |= seeding.libraries if seeding is not None else set()
            self._known_libraries[name, depth] = frozenset(found)
        return self._known_libraries[name, depth]

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
        root = root_of(seeding.value)
        if seeding.value is None or root is None or self._perhaps(seeding.call):
            return ""
        here = site.function is place.function
        if not here and (site.function is not None or self._bound_inside(place, root) or self._is_guarded(root)):
            return ""
        text = ast.unparse(seeding.value)
        return self._quoted(text) if self._bound_before(text, root, site, seeding.call) else ""

    def _quoted(self, text: str) -> str:
        """An expression of the file, in the quotes that the file has there."""
        other, file = text.replace("'", '"'), self.module.text
        return other if text not in file and (other in file or file.count('"') > file.count("'")) else text

    def _perhaps(self, call: ast.Call, unless: str = "") -> bool:
        """Whether `call` runs on some condition other than the main guard, and than one that speaks of `unless`."""
        around: ast.AST | None = self.chains.parents.get(call)
        while around is not None and not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(around, ast.match_case):
                return True
            if isinstance(around, ast.If) and not is_main_guard(around):
                excused = unless and unless in ast.unparse(around.test)
                if not excused:
                    return True
            around = self.chains.parents.get(around)
        return False

    def _seeds_otherwise(self, node: ast.AST) -> bool:
        """Whether something is seeded where `node` does not run: in another arm of a statement around it, or by a
        function of the file that is called there."""
        inner = node
        while (around := self.chains.parents.get(inner)) is not None:
            if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False
            if isinstance(around, _CHOICES) and not is_main_guard(around):
                others = (arm for arm in _arms(around) if not any(inner is one for one in arm))
                if any(map(self._seeds_in, others)):
                    return True
            inner = around
        return False

    def _seeds_in(self, arm: Sequence[ast.AST]) -> bool:
        """Whether a call in `arm` hands something a seed, by what it is called, or a function of the file does that it
        calls."""
        words = [
            dotted_name(node.func).rpartition(".")[2]
            for one in arm
            for node in walk(one)
            if isinstance(node, ast.Call) and (node.args or node.keywords or isinstance(node.func, ast.Name))
        ]
        return any(_SEEDS in word.lower() or word in self._seeding_functions for word in words)

    @functools.cached_property
    def _seeding_functions(self) -> frozenset[str]:
        """The functions of the file that call something which is called after a seed."""
        return frozenset(
            name
            for name, functions in self.chains.functions.items()
            if any(_SEEDS in dotted_name(call.func).lower() for one in functions for call in self.chains.within(one))
        )

    def has_several(self, node: cst.CSTNode) -> bool:
        """Whether the file seeds what the call `node` seeds with several numbers, of which a run takes one."""
        seeding = self._seeding_at(node)
        if seeding is None:
            return False
        alike = {text for one, text in self._seeds_written if not seeding.libraries.isdisjoint(one.libraries)}
        return len(alike) > 1

    @functools.cached_property
    def _seeds_written(self) -> list[tuple[Seeding, str]]:
        """What the calls of the file that speak of a seed seed with, as it is written."""
        calls = (self.seeding(call) for call in self.chains.places.values() if _SEEDS in dotted_name(call.func))
        return [(one, ast.unparse(one.value)) for one in calls if one is not None and one.value is not None]

    def _bound_before(self, text: str, root: str, site: Site, seeding: ast.Call) -> bool:
        """Whether `text`, whose first name is `root`, is bound above `site`, and there is what it is at `seeding`."""
        function = site.function
        stores = self._stores(function, text, root) if function is not None else Stores(())
        known = function is not None and any(
            node.arg == root for node in walk(function.args) if isinstance(node, ast.arg)
        )
        if not stores and not known:
            assert self.chains.tree is not None
            stores = self._stores(self.chains.tree, text, root)
            if function is not None:
                return bool(stores) or root in self._imports_at_top
        place = start_of(site.node)
        if not (stores or known) and root in self._imports_at_top:
            return self._imports_at_top[root] < place
        if stores.between(place, start_of(seeding)) or stores.hold(self.chains.around(site.node)):
            return False
        return known or (stores.first_end is not None and stores.first_end < place)

    @functools.cached_property
    def _imports_at_top(self) -> dict[str, tuple[int, int]]:
        """The names that statements at top level import, each with the place where the first of these starts."""
        found: dict[str, tuple[int, int]] = {}
        for statement in self.chains.tree.body if self.chains.tree is not None else ():
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                for name, _ in imported(statement):
                    found.setdefault(name, start_of(statement))
        return found

    def _is_constant_elsewhere(self, value: ast.expr) -> bool:
        """Whether `value` names a constant of another file of the project that is a seed: `SEED`, `config.SEED`."""
        root, dot, rest = dotted_name(value).partition(".")
        neighbour = self.module.neighbour
        if root not in self.chains.imported or neighbour is None:
            return False
        found = neighbour(f"{self.chains.imported[root]}{dot}{rest}")
        return found is not None and found[0].shared(ProgramSeeds).values.is_constant(found[1])

    def _is_guarded(self, name: str) -> bool:
        """Whether `name` is bound in a main guard alone: where another file imports this one, it is not."""
        assert self.chains.tree is not None

        def is_open(statement: ast.stmt) -> bool:
            return not any(map(is_main_guard, self.chains.around(statement)))

        return not self._stores(self.chains.tree, name, name).any(is_open)

    def _stores(self, body: ast.AST, text: str, root: str) -> Stores:
        """The statements of `body` that give `root`, or the attribute `text` of it, a value."""
        if body not in self._known_stores:
            found: dict[str, set[ast.stmt]] = {}
            queue = children(body)
            spaces = namespaces(body)
            while queue:
                node = queue.pop()
                if _stores(node):
                    found.setdefault(ast.unparse(as_member(node, spaces)), set()).add(self._statement(node))
                if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                    queue.extend(children(node))
            self._known_stores[body] = found
        if (body, text, root) not in self._known_binders:
            known = self._known_stores[body]
            self._known_binders[body, text, root] = Stores(known.get(text, set()) | known.get(root, set()))
        return self._known_binders[body, text, root]

    def _statement(self, node: ast.AST) -> ast.stmt:
        return next(one for one in self.chains.around(node) if isinstance(one, ast.stmt))

    def _bound_inside(self, place: Site, name: str) -> bool:
        """Whether a function around `place` has a `name` of its own."""
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return any(name in self._names_of(one) for one in self.chains.around(place.node) if isinstance(one, functions))

    def _names_of(self, function: Function) -> set[str]:
        """The parameters and the names that are bound in a function, those of functions in it too."""
        if function not in self._known_names:
            nodes = list(walk(function))
            stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            self._known_names[function] = stored | {node.arg for node in nodes if isinstance(node, ast.arg)}
        return self._known_names[function]


def numbers_given(conventions: Conventions, library: str, text: str) -> frozenset[int]:
    """The numbers that a file with that text gives objects which then draw as the global generator of `library` does;
    -1 for what is no number."""
    return frozenset(_number_at(text, match.end()) for match in conventions.gives_its_own(library).finditer(text))


def _number_at(text: str, place: int) -> int:
    """The number that stands at a place of a file, or is what the name there is bound to; -1 for anything else."""
    name = _NAME.match(text, place)
    if name is not None:
        bound = re.search(rf"^{name[0]}[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*(?=\d)", text, re.MULTILINE)
        place = bound.end() if bound is not None else place
    found = _NUMBER.match(text, place)
    return int(found[1]) + int(found[2] or 0) if found is not None else -1


def _arms(node: ast.AST) -> Iterator[Sequence[ast.AST]]:
    """The parts of a statement, or of a conditional expression, of which one runs and not the others."""
    if isinstance(node, ast.If):
        yield [node.test]
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.IfExp):
        yield from ([node.test], [node.body], [node.orelse])
    elif isinstance(node, ast.Try):
        yield [*node.body, *node.orelse]
        yield from ([one] for one in node.handlers)
    elif isinstance(node, ast.Match):
        yield from ([case] for case in node.cases)


def _is_repeatable(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return not node.keywords and ast.unparse(node.func) in REPEATABLE_CALLS
    return isinstance(node, _REPEATABLE)


def _decides(function: Function) -> bool:
    """Whether a function decides something by its first parameter: `if seed is None`, `seed or 0`."""
    taken = [one.arg for one in (*function.args.posonlyargs, *function.args.args) if one.arg not in ("self", "cls")]
    tests = (
        one.values[0] if isinstance(one, ast.BoolOp) else one.test
        for one in walk(function)
        if isinstance(one, (ast.BoolOp, ast.If, ast.IfExp))
    )
    return any(isinstance(part, ast.Name) and part.id in taken[:1] for test in tests for part in walk(test))


def _added(seed: str, offset: str) -> str:
    """A seed and what `_apart` adds to it: the sum where the seed is a number."""
    if not seed.isdecimal() or not offset:
        return seed + offset
    return str((int(seed) + int(offset.removeprefix(" + "))) % _SEEDS_END)


def _stores(node: ast.AST) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        return False
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store)
