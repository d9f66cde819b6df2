"""What passes between rooms, plain data: what a check found, and what the user is told about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Severity = Literal["error", "warning", "note"]
Applicability = Literal["safe", "unsafe"]

WITHHELD = " No fix: "
# Behind a library in `seeded_by`: only a seed counts that stands in another file.
ELSEWHERE = ", elsewhere"
_PAGES = "https://github.com/torchdet-lint/torchdet-lint/blob/main/docs/rules"
_NO_REPORTS = (".ipynb", ".py", ".pyi", ".pyw", ".toml")
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


def why_no_report(path: str) -> str:
    """Why no report is written over the file `path`, a program for a slip of the keyboard; empty where one may be."""
    code = path.endswith(_NO_REPORTS) and Path(path).exists()
    return "a program or a configuration is not written over" if code else ""


def page_of(code: str, name: str) -> str:
    """The address of the page of a shipped rule; empty for any other."""
    return f"{_PAGES}/{code}-{name}.md" if code.startswith("TDL") else ""


class Replace(NamedTuple):
    """Replace the source text of `node` (a libcst node of the file) by `content`; a statement replaced by "" goes.

    In the text of every change `{seed}` stands for the configured seed, `{torch}`, `{numpy}`, `{random}`, `{os}` and
    the like for the name that a module of `NeedImport` has in the file (`{numpy}.random.seed` becomes `np.random.seed`,
    or `seed` where the file says `from numpy.random import seed`), `{seed_worker}` for the name of the helper of
    `NeedHelper`. Other braces stay as they are.
    """

    node: Any
    content: str


class SetArgument(NamedTuple):
    """Give the call `call` the keyword argument `name=value`, in place of the one it has (by position too)."""

    call: Any
    name: str
    value: str


class DropArgument(NamedTuple):
    """Take the argument `argument` (a `libcst.Arg` of `call`) out of the call."""

    call: Any
    argument: Any


class InsertBefore(NamedTuple):
    """Insert the lines `content` before the statement that holds `node`, at its indentation (after it, where it is the
    docstring of a function)."""

    node: Any
    content: str


class NeedImport(NamedTuple):
    """Make the module `module` available; `{module}` in the other changes' text becomes the name it has in the file.

    `package.module:name` asks for `from package.module import name`, and is `{name}` in the text.
    """

    module: str


class NeedHelper(NamedTuple):
    """Make the helper `name` available, once a file however many findings ask for it.

    A definition, after the imports: `seed_worker` (a function of the worker's number), `seed_source` (a generator,
    made with the text `seed`, of the seeds of what is made again and again). Statements of an entry point,
    at the start of its main guard, or after the imports where `Violation.node` stands outside the guard: `seeds` (of
    `libraries`, a subset of `python`, `numpy`, `torch`; none: the one that the rule is about), `deterministic` (turns
    deterministic mode on), `cublas` (the workspace variable).
    `function`, `package.module:name`, is a function of the project that seeds them all when it is called with the
    configured seed, and `own` are the names of those at top level of this file that do; `before` is a node of a
    statement at top level, above which they have to stand. `beside` is a call that seeds other libraries with `seed`, a
    text, and below which they may stand and take the same seed; or, of a program that parses a seed which nothing is
    given, the call that leads there, `parsed`, in the file `options`. `joined` says that several processes run the
    program, and draw different numbers as long as they have no seed; `files` are the others that it reaches. `unlike`
    says that the program's seed is another value than `seed`, or may be. `below` is a node of the top-level statement
    that gives `seed` its value.
    """

    name: str
    libraries: tuple[str, ...] = ()
    function: str = ""
    own: tuple[str, ...] = ()
    before: Any = None
    beside: Any = None
    seed: str = ""
    parsed: Any = None
    options: str = ""
    joined: bool = False
    files: tuple[str, ...] = ()
    unlike: bool = False
    below: Any = None


class NeedFunction(NamedTuple):
    """Make a function `name` of one `parameter` with the lines `body` available, after the imports; `{name}` in the
    other changes is what it is called in the file. One with the same body is defined once."""

    name: str
    parameter: str
    body: tuple[str, ...]


class SeedFunction(NamedTuple):
    """Seed `libraries` at the start of the top-level function `name`, which a new process runs: from the configured
    seed, or as the node `given`, the call that seeds the process that starts it; and from the number of the process,
    where its first parameter is one. Of `libraries`, `deterministic` turns deterministic mode on. `of_tasks`: it runs
    for each task of a pool, which needs a number of its own."""

    name: str
    libraries: tuple[str, ...]
    given: Any = None
    of_tasks: bool = False


class Withhold(NamedTuple):
    """No fix: `reason` says why, and reads on after "No fix: "."""

    reason: str


Change = (
    Replace
    | SetArgument
    | DropArgument
    | InsertBefore
    | NeedImport
    | NeedHelper
    | NeedFunction
    | SeedFunction
    | Withhold
)


class RelatedNode(NamedTuple):
    """Another place in the same file that belongs to the story."""

    node: Any
    message: str


class Violation(NamedTuple):
    """What a check yields: the node at fault and the words that the rule's message has holes for.

    `variant` picks one of the rule's `[messages]` in place of its `message`; `severity` overrides the rule's own.
    `switchable` says that deterministic mode cures it: the project half drops it where every entry point that reaches
    the file is in that mode (with `strict`: without `warn_only`). `raises` is the op's name where it raises in that
    mode. `gradient` says that only a gradient varies: it is dropped where every such entry point runs without any.
    `seeded_by` is the library whose seed in a program that reaches the file changes the finding: `numpy`. `draws` says
    that the workers of a loader evidently draw from a global generator, `on_device` that an op varies nowhere on the
    CPU: it is dropped where the programs that reach the file train there.
    """

    node: Any
    details: Mapping[str, str] = {}
    variant: str = ""
    severity: Severity | None = None
    related: tuple[RelatedNode, ...] = ()
    changes: tuple[Change, ...] = ()
    applicability: Applicability | None = None
    switchable: bool = False
    raises: str = ""
    seeded_by: str = ""
    strict: bool = False
    gradient: bool = False
    draws: bool = False
    on_device: bool = False


class Location(msgspec.Struct, frozen=True, order=True):
    """A place in a file: row and column count from 1, columns in characters."""

    row: int
    column: int


class Edit(msgspec.Struct, frozen=True):
    """Replace the text from `location` up to `end_location` by `content`.

    In a notebook the rows count inside the cell `cell`, whose number is counted as in `Finding`.
    """

    content: str
    location: Location
    end_location: Location
    cell: int | None = None


class Fix(msgspec.Struct, frozen=True):
    """Edits that belong together: all are applied, or none.

    They are complete: the imports and helpers that they need are among them, spelt the same in every fix that needs
    them, so that a file gets each once. `withheld` says why there is no edit although the rule knows a cure.
    """

    applicability: Applicability
    message: str
    edits: tuple[Edit, ...] = ()
    withheld: str = ""


class Related(msgspec.Struct, frozen=True):
    """Another place that belongs to the finding, in this file or another; in a notebook the rows count in `cell`."""

    filename: str
    location: Location
    message: str
    cell: int | None = None


class Cause(msgspec.Struct, frozen=True, order=True):
    """What a file that was given does not do, so that a program lacks it: its `function`, or its top level (""). The
    place is what is marked there."""

    filename: str
    location: Location
    end_location: Location
    function: str = ""


class Evidence(msgspec.Struct, frozen=True):
    """What runs of the program say of a finding: `confirmed`, `not reached` or `not reproduced`, and why."""

    state: str
    why: str


class Finding(msgspec.Struct, frozen=True):
    """One thing that the user is told, complete and ready to print.

    `location` is in the file's own rows; for a notebook `cell` is the number of the cell among all cells, those of
    text too (from 1), and the rows count inside it. `noqa_row` is the row whose `# noqa` comment would silence it.
    `url` is the page that a rule of the user's own names. `cause` is what brings about, in a file that was given, a
    finding in one that was not.
    """

    filename: str
    location: Location
    end_location: Location
    code: str
    name: str
    severity: Severity
    message: str
    help: str
    noqa_row: int
    cell: int | None = None
    fix: Fix | None = None
    related: tuple[Related, ...] = ()
    switchable: bool = False
    raises: str = ""
    seeded_by: str = ""
    strict: bool = False
    gradient: bool = False
    draws: bool = False
    on_device: bool = False
    url: str = ""
    cause: Cause | None = None
    evidence: Evidence | None = None

    def sound(self, codes: Collection[str]) -> bool:
        """Whether a finding that was read from a file may be one of the rules `codes`, at places that there may be."""
        places = [self.location, self.end_location, *(other.location for other in self.related)]
        for edit in self.fix.edits if self.fix is not None else ():
            places += [edit.location, edit.end_location]
        return self.code in codes and self.noqa_row > 0 and all(min(place.row, place.column) > 0 for place in places)

    @property
    def page(self) -> str:
        """The address of the rule's page; empty for a rule of one's own that names none."""
        return self.url or page_of(self.code, self.name)

    @property
    def sort_key(self) -> tuple[str, int, Location, Location, str, str]:
        """The key by which every output is sorted: file, place, code."""
        return (self.filename, self.cell or 0, self.location, self.end_location, self.code, self.message)


class Result(NamedTuple):
    """What a run reports: findings in the order of every output, the number of files read, one line for each thing
    that went wrong, and how many findings the baseline took away."""

    findings: tuple[Finding, ...]
    files: int
    errors: tuple[str, ...]
    known: int = 0
