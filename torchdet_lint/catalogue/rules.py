"""One file of `rules/` -> a struct: all that is said about a rule, its tables of calls and settings, its examples."""

from __future__ import annotations

from typing import Literal

import msgspec

from torchdet_lint.catalogue.conditions import Condition, Scalar, Table
from torchdet_lint.catalogue.ops import Op
from torchdet_lint.finding import Applicability, Severity, page_of


class Call(Table, frozen=True, kw_only=True):
    """A row of a call table: a callable that the rule reports under conditions that all hold.

    `excluding` are classes derived from `names` that see to it themselves; `give` are the arguments of the fix.
    """

    names: tuple[str, ...]
    excluding: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    when: tuple[Condition, ...] = ()
    variant: str = ""
    severity: Severity | None = None
    give: dict[str, str] = msgspec.field(default_factory=dict)
    details: dict[str, str] = msgspec.field(default_factory=dict)
    evidence: tuple[str, ...] = ()


class Setting(Table, frozen=True, kw_only=True):
    """A row of a setting table: an attribute or configuration entry and the values that the rule reports."""

    names: tuple[str, ...]
    values: tuple[Scalar, ...]
    possible: bool = False
    replacement: str = ""
    variant: str = ""
    evidence: tuple[str, ...] = ()


class Example(Table, frozen=True, kw_only=True):
    """Source that is a test: `# expect: CODE` marks a line that is reported, `# todo: CODE` a known miss.

    `fixed` is the source after `--fix --unsafe-fixes` of this rule alone. `files` are further files of the project. The
    rules about whole programs judge it where it is theirs, has `files`, or says `program = true`: else it is a snippet.
    """

    code: str
    fixed: str = ""
    title: str = ""
    filename: str = "example.py"
    files: dict[str, str] = msgspec.field(default_factory=dict)
    program: bool = False
    torch_version: str = ""
    devices: tuple[str, ...] = ()


class Rule(Table, frozen=True, kw_only=True):
    """All that is said about one rule; its code and name are those of the file.

    `helps` are what to do instead for those of `messages` for which `instead` is not the advice, under the same names,
    or where a check says so, by its detail `help`; they are filled in as messages are.
    `triggers` are words for which a statement is parsed; `marks` are pieces of text, and `patterns` regular
    expressions, for which a file is looked at, its check deciding which statements to parse. `words` are the names
    that the check reads, by the role they play. A rule with `devices` is silent where none of them is configured.
    `fix_safety` says when the fix is safe, when it is not, and why. `evidence` is what the sentences of `why` were
    checked against. `url` is the page of a rule of one's own.
    """

    code: str
    name: str
    summary: str
    message: str
    messages: dict[str, str] = msgspec.field(default_factory=dict)
    helps: dict[str, str] = msgspec.field(default_factory=dict)
    severity: Severity = "error"
    why: str
    instead: str
    references: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    url: str = ""
    fix: Applicability | None = None
    fix_title: str = ""
    fix_safety: str = ""
    runtime_fix: str = ""
    runtime_note: str = ""
    scope: Literal["run", "file", "project"] = "file"
    devices: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    words: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
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
    def page(self) -> str:
        """The address of the rule's page; empty for a rule of one's own that names none."""
        return self.url or page_of(self.code, self.name)
