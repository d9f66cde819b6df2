"""`rules/facts/conventions.toml` and `workers.toml` -> names that say what code does, compiled to patterns."""

from __future__ import annotations

import functools
import re

import msgspec

from torchdet_lint.catalogue.conditions import Table


class Conventions(Table, frozen=True, kw_only=True, dict=True):
    """Regular expressions for names; what each list is for, and what it is matched with, stands in the file."""

    determinism: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    undoing: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    seeding: tuple[str, ...] = ()
    seed_arguments: frozenset[str] = frozenset()
    options: tuple[str, ...] = ()
    seeding_methods: tuple[str, ...] = ()
    seeders: tuple[str, ...] = ()
    seeding_files: tuple[str, ...] = ()
    seeded: tuple[str, ...] = ()
    worker: tuple[str, ...] = ()
    bases: frozenset[str] = frozenset()
    numpy_generators: tuple[str, ...] = ()
    numpy_global: tuple[str, ...] = ()
    same_numbers: dict[str, str] = msgspec.field(default_factory=dict)
    process: tuple[str, ...] = ()
    process_parameters: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    conversions: frozenset[str] = frozenset()
    once: frozenset[str] = frozenset()
    starts: frozenset[str] = frozenset()
    devices: tuple[str, ...] = ()
    distributed: tuple[str, ...] = ()

    @functools.cached_property
    def asks_for_determinism(self) -> re.Pattern[str]:
        """Text that speaks of determinism: search."""
        return _any(self.determinism, re.IGNORECASE)

    @functools.cached_property
    def asks_against_determinism(self) -> re.Pattern[str]:
        """Text that speaks of determinism and means its opposite: search."""
        return _any(self.against, re.IGNORECASE)

    @functools.cached_property
    def undoes_determinism(self) -> re.Pattern[str]:
        """The name of a function that takes determinism back: search."""
        return re.compile(rf"^_*(?:{'|'.join(self.undoing)})_?\w*determin", re.IGNORECASE)

    @functools.cached_property
    def holds_options(self) -> re.Pattern[str]:
        """The name of a variable that holds the options of a program: fullmatch."""
        return _any(self.options, re.IGNORECASE)

    @functools.cached_property
    def leaves(self) -> re.Pattern[str]:
        """The name of a method with which a test or a context ends: fullmatch."""
        return _any(self.leaving)

    @functools.cached_property
    def seeds(self) -> re.Pattern[str]:
        """The name of a function that takes a seed first: fullmatch."""
        return _any(self.seeding)

    @functools.cached_property
    def defines_seeder(self) -> re.Pattern[str]:
        """The definition of a function at top level that seeds, and its name: search."""
        return re.compile(
            rf"^def[ \t]+((?!\w*worker)\w*(?:{'|'.join(self.seeders)})\w*)[ \t]*\(", re.MULTILINE | re.IGNORECASE
        )

    @functools.cached_property
    def seeding_file(self) -> re.Pattern[str]:
        """The name of a file that seeds when it is imported, without its ending: fullmatch."""
        return _any((*self.seeding, *self.seeding_files))

    @functools.cached_property
    def speaks_of_seeds(self) -> re.Pattern[str]:
        """Text that speaks of seeding: search."""
        return _any(self.seeders, re.IGNORECASE)

    @functools.cached_property
    def is_given(self) -> re.Pattern[str]:
        """What stands before a seed that a generator is given, the name of an argument in the first group: search."""
        return re.compile(rf"(?:{'|'.join(self.seeded)})\s*[(=]\s*(?=(\w+\s*=\s*)?)")

    def gives_its_own(self, library: str) -> re.Pattern[str]:
        """What stands before the seed of an object that draws, from the same seed, what the global generator of
        `library` draws: search."""
        classes = [word for word, owner in self.same_numbers.items() if owner == library]
        named = rf"(?<!\w)(?:{'|'.join(classes)})" if classes else r"(?<!torch)(?<!cuda)\.manual_seed"
        return re.compile(rf"{named}\(\s*(?:seed\s*=\s*)?")

    @functools.cached_property
    def makes_numpy_generators(self) -> re.Pattern[str]:
        """Text that makes generators of NumPy: search."""
        return _any(self.numpy_generators)

    @functools.cached_property
    def uses_numpy_globally(self) -> re.Pattern[str]:
        """Text that uses NumPy's global generator: search."""
        return re.compile(rf"\brandom\.(?:{'|'.join(self.numpy_global)})\b")

    @functools.cached_property
    def seeds_worker(self) -> re.Pattern[str]:
        """The name of a function that seeds a worker of a loader: search."""
        return _any(self.worker, re.IGNORECASE)

    @functools.cached_property
    def numbers_process(self) -> re.Pattern[str]:
        """The name of what holds the number of a process: search."""
        return re.compile(rf"(?:^|_)(?:{'|'.join(self.process)})$")

    @functools.cached_property
    def is_process_number(self) -> re.Pattern[str]:
        """The first parameter of a function that processes run, where it is the number of the process: fullmatch."""
        return _any(self.process_parameters)

    @functools.cached_property
    def identifies(self) -> re.Pattern[str]:
        """The name of what tells things apart: search."""
        return re.compile(rf"(?:^|_)(?:{'|'.join(self.identity)})_*$", re.IGNORECASE)


class Owning(Table, frozen=True, kw_only=True):
    """What makes a random transform of a package whose transforms hold generators of their own: words in its name, but
    for `others`; a probability, where `chances` are in its name; with `ranges` an interval or a list of values, but for
    those whose names have a word of `listing`. An argument that is `still` rules it out. Where it is `closed`, all that
    is no such transform draws nothing at all, but for what has a word of `others` or of `running` in its name. The
    generator is at `attribute` of an object, and `cure` says what seeds it in a worker."""

    random: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    chances: tuple[str, ...] = ()
    ranges: bool = False
    listing: tuple[str, ...] = ()
    still: frozenset[str] = frozenset()
    closed: bool = False
    running: tuple[str, ...] = ()
    attribute: str = ""
    cure: str = ""


class Workers(Table, frozen=True, kw_only=True):
    """Names that tell what a worker runs and what that draws; what each list is for stands in the file."""

    generators: frozenset[str] = frozenset()
    spawning: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    telling_apart: frozenset[str] = frozenset()
    bases: frozenset[str] = frozenset()
    applying: tuple[str, ...] = ()
    getting: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()
    wrappers: frozenset[str] = frozenset()
    holding: frozenset[str] = frozenset()
    handing: frozenset[str] = frozenset()
    transforming: frozenset[str] = frozenset()
    augmenting: frozenset[str] = frozenset()
    owning: dict[str, Owning] = msgspec.field(default_factory=dict)
    reseeding: frozenset[str] = frozenset()
    torch_only: frozenset[str] = frozenset()
    reading: frozenset[str] = frozenset()
    sampling: frozenset[str] = frozenset()
    dividing: frozenset[str] = frozenset()
    text_packages: frozenset[str] = frozenset()
    preparing: tuple[str, ...] = ()
    global_only: frozenset[str] = frozenset()
    random: tuple[str, ...] = ()
    quiet: frozenset[str] = frozenset()
    composing: frozenset[str] = frozenset()
    presets: frozenset[str] = frozenset()
    trains: frozenset[str] = frozenset()
    evaluating: frozenset[str] = frozenset()
    fields: tuple[str, ...] = ()
    idle: frozenset[str] = frozenset()
    arguments: tuple[str, ...] = ()


def _any(patterns: tuple[str, ...], flags: int = 0) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), flags)
