"""The knowledge: `rules/*.toml` and `rules/facts/*.toml`, read into frozen structs that are at once their schema."""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from torchdet_lint.finding import Applicability, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PACKAGE = Path(__file__).parents[1]
_PACKAGED = _PACKAGE / "rules"
RULES_DIRECTORY = _PACKAGED if _PACKAGED.is_dir() else _PACKAGE.parent / "rules"
DOCUMENTATION_URL = "https://github.com/torchdet-lint/torchdet-lint/blob/main/docs/rules/{stem}.md"

_FILE_NAME = re.compile(r"(?P<code>[A-Z]{2,}\d{3})-(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)\.toml")
_EXAMPLES = re.compile(r"^\[\[(?:bad|good)\]\]", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


Scalar = str | int | float | bool | None


class CatalogueError(Exception):
    """A rule file that cannot be read; the text names the file and what is wrong with it."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of every table: an unknown key is an error."""


class Condition(_Table, frozen=True, kw_only=True):
    """What one argument of a call must be.

    `test` reads the argument's value, followed through simple assignments:

    * `absent`: not passed; `missing`: not passed, or evidently `None`; `given`: passed, and not evidently `None`;
    * `in`: evidently one of `values`; `not-in`: evidently none of `values`; `truthy`, `falsy`: evidently so;
    * `possible`: one of `values`, or a value that only the run knows; `unless`: not evidently one of `values`.

    An argument that is not passed has the value `default`. `opaque`: whether the condition holds where `**options`
    that are not in sight may carry the argument (by default it does not).

    Ops have further tests, that ask for what is inferred of a tensor: `tensor`: evidently one; `dims`: evidently one
    with a number of dimensions in `values`; `sparse`: evidently a sparse one; `length`: evidently a sequence with a
    number of elements in `values`; `contains`: a dictionary that holds one of `values`; `repeats`: an index that may
    name one place twice: not evidently a permutation, nor of size 1 along the argument `dim`; `several`: not
    evidently one number; `overlapping`: the stride of windows that may share places, `side-by-side`: of windows that
    evidently do not. There `self` is the tensor that the op works on: the receiver of a method, the first argument
    of a function.
    """

    argument: str
    test: Literal[
        "absent", "missing", "given", "in", "not-in", "truthy", "falsy", "possible", "unless",
        "tensor", "dims", "sparse", "length", "contains", "repeats", "several",
        "overlapping", "side-by-side",
    ]  # fmt: skip
    values: tuple[Scalar | list[Scalar], ...] = ()
    default: Scalar = None
    opaque: bool = False


class Spelling(_Table, frozen=True, kw_only=True):
    """One way to write a callable: its canonical dotted name and its parameters in order (no `self`).

    `parameters` stops at `*` where the rest is keyword-only. A method of a tensor is `torch.Tensor.name`. `forward`
    are the parameters of the call of an instance: with them the op is found where the instance is called.
    """

    name: str
    parameters: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()


class Call(_Table, frozen=True, kw_only=True):
    """A row of a call table: a callable that the rule reports under conditions that all hold.

    `excluding` are classes derived from `names` that see to it themselves; `give` are the arguments of the fix.
    """

    names: tuple[str, ...]
    excluding: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    variant: str = ""
    severity: Severity | None = None
    give: dict[str, str] = {}
    details: dict[str, str] = {}
    evidence: tuple[str, ...] = ()


class Setting(_Table, frozen=True, kw_only=True):
    """A row of a setting table: an attribute or configuration entry and the values that the rule reports."""

    names: tuple[str, ...]
    values: tuple[Scalar, ...]
    possible: bool = False
    replacement: str = ""
    variant: str = ""
    evidence: tuple[str, ...] = ()


class Status(_Table, frozen=True, kw_only=True):
    """What an op does from release `since` on, until the next row: `errors` means that it raises in deterministic mode,
    `switchable` that the mode makes it deterministic, `silent` that nothing does and nothing tells."""

    since: str
    status: Literal["errors", "switchable", "silent", "deterministic", "absent"]
    note: str = ""


class Rewrite(_Table, frozen=True, kw_only=True):
    """Another way to write a call of an op, which is deterministic and gives the same values and gradients.

    In `content`, the new expression, `{name}` stands for the argument `name`, `{*name}` for its elements, `{self}` for
    the tensor that the op works on, `{function}` and `{*}` for what is called and all that is passed, `{torch}` for the
    module. An argument that `content` does not use may not be passed, unless `when` says what it is. In its place
    `arguments` gives single arguments another value. `names` are the last names of the spellings that it is for (none:
    all), `since` the first release of torch in which it helps; `floating` and `integer` name arguments that must not
    evidently be of the other kind of type; with `statement` the result must be of no use to anybody.
    """

    content: str = ""
    arguments: dict[str, str] = {}
    names: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    since: str = "1.7"
    floating: tuple[str, ...] = ()
    integer: tuple[str, ...] = ()
    statement: bool = False
    dense: bool = False


class Op(_Table, frozen=True, kw_only=True):
    """One nondeterministic op: all its spellings, the direction that varies, and where and when it does.

    `when` holds for the call; `dtypes` is `floating` where integer tensors are exact, `evident-floating` where almost
    every tensor is one and only evidence counts. A backward op asks for a tensor that may carry a gradient, with
    `gradient` `evident` for one that evidently does. `exact` says that it raises though its results do not vary.
    `aggregate` marks an op that is everywhere (a convolution): it is listed with the program's missing mode and never
    reported alone; `silent_because` one that no check reports, and why. `unless_within` are context managers, `name` or
    `name(argument)`, under which it does not vary. `rule` is the code that reports it where direction and status do not
    say. `package` is the distribution whose releases the history counts.
    """

    op: str
    spellings: tuple[Spelling, ...]
    rule: str = ""
    package: str = "torch"
    direction: Literal["forward", "backward"]
    devices: tuple[str, ...] = ("cuda",)
    status: tuple[Status, ...]
    when: tuple[Condition, ...] = ()
    dtypes: Literal["any", "floating", "evident-floating"] = "any"
    receiver: Literal["tensor", "distinctive"] = "tensor"
    gradient: Literal["possible", "evident"] = "possible"
    exact: bool = False
    aggregate: bool = False
    silent_because: str = ""
    unless_within: tuple[str, ...] = ()
    condition: str = ""
    instead: str = ""
    rewrites: tuple[Rewrite, ...] = ()
    evidence: tuple[str, ...] = ()


class Example(_Table, frozen=True, kw_only=True):
    """Source that is a test: `# expect: CODE` marks a line that is reported, `# todo: CODE` a known miss.

    `fixed` is the source after `--fix --unsafe-fixes` of this rule alone. `files` are further files of the project. The
    rules about whole programs judge it where it is theirs, has `files`, or says `program = true`: else it is a snippet.
    """

    code: str
    fixed: str = ""
    title: str = ""
    filename: str = "example.py"
    files: dict[str, str] = {}
    program: bool = False
    torch_version: str = ""
    devices: tuple[str, ...] = ()


class Rule(_Table, frozen=True, kw_only=True):
    """All that is said about one rule; its code and name are those of the file.

    `triggers` are words for which a statement is parsed; `marks` are pieces of text, and `patterns` regular
    expressions, for which a file is looked at, its check deciding which statements to parse. `words` are the names
    that the check reads, by the role they play. A rule with `devices` is silent where none of them is configured.
    """

    code: str
    name: str
    summary: str
    message: str
    messages: dict[str, str] = {}
    severity: Severity = "error"
    why: str
    instead: str
    references: tuple[str, ...] = ()
    fix: Applicability | None = None
    fix_title: str = ""
    runtime_fix: str = ""
    runtime_note: str = ""
    scope: Literal["run", "file", "project"] = "file"
    devices: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    words: dict[str, tuple[str, ...]] = {}
    calls: tuple[Call, ...] = ()
    settings: tuple[Setting, ...] = ()
    ops: tuple[Op, ...] = ()
    bad: tuple[Example, ...] = ()
    good: tuple[Example, ...] = ()

    @property
    def stem(self) -> str:
        """The file's name without its suffix, `TDL301-dataloader-worker-seed`."""
        return f"{self.code}-{self.name}"

    @property
    def url(self) -> str:
        """Where the rule's page is."""
        return DOCUMENTATION_URL.format(stem=self.stem)


class Draw(_Table, frozen=True, kw_only=True):
    """A callable that draws from a library's global generator, under conditions that all hold.

    `at` is the moment: the call itself, the constructor of a module, its call in training, or a loader's iteration.
    """

    names: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    library: Literal["python", "numpy", "torch"]
    at: Literal["call", "construction", "forward", "training", "iteration"] = "call"
    when: tuple[Condition, ...] = ()
    evidence: tuple[str, ...] = ()


class Seed(_Table, frozen=True, kw_only=True):
    """A callable that seeds global generators, or turns deterministic mode on; `argument` is the seed's parameter;
    where it is `optional`, nothing is seeded without it.

    `when_mode` are the conditions under which it turns deterministic mode on (`mode` true: always); `switch` says that
    it is the place to turn it off as well, and `give` the arguments with which a trainer that has the switch turns it
    on.
    """

    names: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    argument: str = ""
    optional: bool = False
    seeds: tuple[Literal["python", "numpy", "torch", "cuda"], ...] = ()
    entropy: bool = False
    mode: bool = False
    when_mode: tuple[Condition, ...] = ()
    switch: bool = False
    give: dict[str, str] = {}
    environment: tuple[str, ...] = ()
    note: str = ""
    evidence: tuple[str, ...] = ()


class Runner(_Table, frozen=True, kw_only=True):
    """A callable that runs what it is handed: `arguments` are the parameters that take it.

    Of an object `methods` are run (none: it is called); `itself` says that the object whose method this is runs too.
    `process`: in a process of its own, which `fork` gives a copy of the generators' states and `spawn` does not
    (`first`: before whatever runs there; `rpc`: in a thread of another process);
    `deferred`: not at once. With `workers`, a parameter, the objects run here only where it is evidently 0 or not
    passed. `bare`: called without arguments it runs any function of the file. `trains` and `cuda`: it trains, it may
    run on CUDA; `host`: the conditions, if any, under which it is told to run on the CPU.
    """

    names: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    itself: bool = False
    process: Literal["", "fork", "spawn", "first", "rpc"] = ""
    deferred: bool = False
    workers: str = ""
    bare: bool = False
    trains: bool = False
    cuda: bool = False
    host: tuple[Condition, ...] = ()
    evidence: tuple[str, ...] = ()


class Tensors(_Table, frozen=True, kw_only=True):
    """What the inference of tensors knows; functions and methods are given by their last name.

    A function of `modules` returns one tensor, but for those of `no_tensor`, `indexed` and `several`; a tensor's method
    too, but for those of `scalar`. `integer`, `boolean` and `floating` give the type of a result. The words are the
    last word of a variable's, a class's or a function's name, where nothing else tells.
    """

    modules: tuple[str, ...] = ()
    no_tensor: tuple[str, ...] = ()
    scalar: frozenset[str] = frozenset()
    integer: frozenset[str] = frozenset()
    boolean: frozenset[str] = frozenset()
    floating: frozenset[str] = frozenset()
    creation: tuple[str, ...] = ()
    like: tuple[str, ...] = ()
    indexed: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    distinctive: tuple[str, ...] = ()
    integer_words: tuple[str, ...] = ()
    index_words: tuple[str, ...] = ()
    distinct_words: tuple[str, ...] = ()
    data_words: tuple[str, ...] = ()
    graph_words: tuple[str, ...] = ()
    counting: tuple[str, ...] = ()
    gradient_words: tuple[str, ...] = ()
    untracked_words: tuple[str, ...] = ()
    untracked_bases: tuple[str, ...] = ()
    untracked_functions: tuple[str, ...] = ()
    untracked_methods: tuple[str, ...] = ()
    untracked_steps: tuple[str, ...] = ()
    untracked_parameters: tuple[str, ...] = ()
    search_parameters: tuple[str, ...] = ()
    untracked_files: tuple[str, ...] = ()
    untracked_layers: tuple[str, ...] = ()
    untracked_runs: tuple[str, ...] = ()
    data_classes: tuple[str, ...] = ()
    training_methods: tuple[str, ...] = ()
    attention_words: tuple[str, ...] = ()
    no_grad: tuple[str, ...] = ()
    annotations: dict[str, str] = {}
    dtypes: dict[str, str] = {}
    dims: dict[str, int] = {}


class Facts(_Table, frozen=True, kw_only=True):
    """What several rules share: canonical names, signatures, generators, ops.

    `entropy` says of a callable whose result is another one in every run what it reads: "the clock".
    """

    canonical: dict[str, str] = {}
    signatures: dict[str, tuple[str, ...]] = {}
    bases: dict[str, str] = {}
    ops: tuple[Op, ...] = ()
    tensors: Tensors = Tensors()
    draws: tuple[Draw, ...] = ()
    seeds: tuple[Seed, ...] = ()
    runners: tuple[Runner, ...] = ()
    wrappers: tuple[str, ...] = ()
    fluent: tuple[str, ...] = ()
    modes_off: tuple[str, ...] = ()
    entropy: dict[str, str] = {}
    triggers: tuple[str, ...] = ()


class Catalogue(msgspec.Struct, frozen=True):
    """Every rule by code, the shared facts, and a fingerprint of the text they were read from."""

    rules: dict[str, Rule]
    facts: Facts
    fingerprint: str

    def selected(self, codes: Iterable[str]) -> tuple[Rule, ...]:
        """The rules of `codes`, in the order of their codes."""
        return tuple(self.rules[code] for code in sorted(codes))


def load(*, examples: bool = False, extra: Iterable[Path] = ()) -> Catalogue:
    """Read the shipped catalogue and the user's own rule files `extra`.

    Without `examples` the `[[bad]]` and `[[good]]` tables, which stand last in every file, are not parsed.
    Raises `CatalogueError` for a file that breaks the schema.
    """
    return _load(examples, tuple(extra))


@functools.lru_cache(maxsize=4)
def _load(examples: bool, extra: tuple[Path, ...]) -> Catalogue:
    digest = hashlib.blake2b(digest_size=16)
    rules: dict[str, Rule] = {}
    facts: dict[str, Any] = {}
    for path, text in _texts(extra):
        digest.update(path.name.encode() + b"\0" + text.encode() + b"\0")
        if path.parent.name == "facts":
            _merge(facts, _parse(path, text), path)
            continue
        rule = _rule(path, text, examples=examples)
        if rule.code in rules:
            raise CatalogueError(
                f"{path}: {rule.code} is already the code of {rules[rule.code].stem}.toml; choose another"
            )
        rules[rule.code] = rule
    return Catalogue(dict(sorted(rules.items())), _convert(facts, Facts, Path("rules/facts")), digest.hexdigest())


def fingerprint(extra: Iterable[Path] = ()) -> str:
    """The fingerprint that `load(extra=extra)` would have, without parsing anything."""
    digest = hashlib.blake2b(digest_size=16)
    for path, text in _texts(tuple(extra)):
        digest.update(path.name.encode() + b"\0" + text.encode() + b"\0")
    return digest.hexdigest()


def _texts(extra: tuple[Path, ...]) -> list[tuple[Path, str]]:
    shipped = sorted(RULES_DIRECTORY.glob("*.toml")) + sorted((RULES_DIRECTORY / "facts").glob("*.toml"))
    texts = []
    for path in (*shipped, *extra):
        try:
            texts.append((path, path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise CatalogueError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    return texts


def _rule(path: Path, text: str, *, examples: bool) -> Rule:
    match = _FILE_NAME.fullmatch(path.name)
    if match is None:
        raise CatalogueError(f"{path}: a rule file is named CODE-name.toml, such as TDL301-dataloader-worker-seed.toml")
    if not examples and (first := _EXAMPLES.search(text)):
        text = text[: first.start()]
    table = _parse(path, text)
    for key in ("code", "name"):
        if key in table:
            raise CatalogueError(f"{path}: `{key}` is taken from the file's name; remove the key")
    rule: Rule = _convert({**table, **match.groupdict()}, Rule, path)
    return rule


def _parse(path: Path, text: str) -> dict[str, Any]:
    import tomli

    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise CatalogueError(f"{path}: not valid TOML: {error}") from error


def _merge(facts: dict[str, Any], table: Mapping[str, Any], path: Path) -> None:
    for key, value in table.items():
        if key not in facts:
            facts[key] = value
        elif isinstance(value, list):
            facts[key] = [*facts[key], *value]
        elif isinstance(value, dict):
            facts[key] = {**facts[key], **value}
        else:
            raise CatalogueError(f"{path}: `{key}` must be a table or an array")


def _convert(table: Mapping[str, Any], kind: type[Any], path: Path) -> Any:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise CatalogueError(f"{path}: {error}") from error


def reported_as(op: Op, status: str) -> str:
    """The code that reports `op` where it has `status`: its own, or the one of its direction and status."""
    if op.rule:
        return op.rule
    if op.direction == "backward":
        return "TDL403"
    return "TDL402" if status == "switchable" else "TDL401"


def ops_of(code: str, ops: Iterable[Op], target: tuple[int, int] | None = None) -> list[Op]:
    """Those of `ops` that `code` reports, alone or with the program's mode, in release `target` of torch or in some."""
    found = []
    for op in ops:
        if op.silent_because:
            continue
        known = {row.status for row in op.status} if target is None else {status_at(op, target)}
        if any(reported_as(op, status) == code for status in known - {"absent", "deterministic"}):
            found.append(op)
    return found


def status_at(op: Op, target: tuple[int, int]) -> str:
    """The status of `op` in release `target` of torch; of another package the newest release is meant."""
    return status_in(op.status, target) if op.package == "torch" else op.status[-1].status


def release(text: str) -> tuple[int, int]:
    """`"2.13"`, `"2.13.0+cpu"` -> `(2, 13)`. Raises `ValueError` for anything else."""
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None:
        raise ValueError(f"{text!r} is not a torch release such as 2.13")
    return int(match[1]), int(match[2])


def status_in(history: Iterable[Status], target: tuple[int, int]) -> str:
    """The status of an op in release `target`, from its history; `absent` before the first row."""
    found = "absent"
    for row in history:
        if release(row.since) <= target:
            found = row.status
    return found
