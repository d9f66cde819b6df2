"""The fixes of every example of every rule file: what they come to, that they end, and that nothing else moves."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest
import rulebook

from torchdet_lint.catalogue.ops import release
from torchdet_lint.config import NEWEST_TORCH, Settings
from torchdet_lint.engine import repair, run
from torchdet_lint.engine.filtering import UNUSED
from torchdet_lint.engine.linter import SYNTAX, Linter

EVERY = ("ALL",)
CASES = [case for case in rulebook.cases() if case.code != SYNTAX]
SHOWN = [case for case in CASES if case.example.fixed]
VARIANTS = {
    "crlf": lambda text: text.replace(b"\n", b"\r\n"),
    "cr": lambda text: text.replace(b"\n", b"\r"),
    "tabs": lambda text: re.sub(rb"(?m)^(?:    )+", lambda match: b"\t" * (len(match[0]) // 4), text),
    "bom": lambda text: b"\xef\xbb\xbf" + text,
    "no end": lambda text: text.rstrip(b"\n"),
}


@functools.cache
def linter(select: tuple[str, ...], torch_version: str, devices: tuple[str, ...]) -> Linter:
    return Linter(
        Settings(
            root=str(Path.cwd()),
            select=select,
            min_severity="note",
            unsafe_fixes=True,
            torch=release(torch_version) if torch_version else NEWEST_TORCH,
            devices=devices or ("cpu", "cuda"),
        )
    )


def looked_at(case: rulebook.Case, text: bytes, select: tuple[str, ...]) -> tuple[run.Gathered, dict[str, bytes]]:
    """The files of the example, and what is found in each, with `text` for its own one."""
    example = case.example
    texts = {example.filename: text, **{path: content.encode() for path, content in example.files.items()}}
    ready = linter(select, example.torch_version, example.devices)
    ready.stand_in(texts)
    code = {path: data for path, data in sorted(texts.items()) if not path.endswith(".yaml")}
    return run.Gathered(ready, {path: ready.record(path, data) for path, data in code.items()}, [], {}), texts


def mended(case: rulebook.Case, text: bytes, select: tuple[str, ...] = EVERY) -> tuple[bytes, repair.Repaired]:
    """The example's own file after `--fix --unsafe-fixes`."""
    return mended_from(case, *looked_at(case, text, select))


def mended_from(case: rulebook.Case, gathered: run.Gathered, texts: dict[str, bytes]) -> tuple[bytes, repair.Repaired]:
    """The same, where the files were looked at already."""
    repaired = repair.mend(gathered, texts)
    assert repaired.result.errors == ()
    name = case.example.filename
    return repaired.texts.get(name, texts[name]), repaired


def alone(case: rulebook.Case) -> tuple[str, ...]:
    """What to select for the example's own rule; a suppression is unused only where the rule it names was run."""
    return EVERY if case.code == UNUSED else (case.code,)


def plain(code: str) -> bytes:
    """An example without the marks that say what is expected of it."""
    return re.sub(r"[ \t]*" + rulebook.MARK.pattern, "", code).encode()


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.identity)
def test_fixed_is_what_the_rule_file_shows(case):
    assert mended(case, plain(case.example.code), alone(case))[0] == plain(case.example.fixed)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.identity)
def test_fixes_come_to_an_end_and_bring_nothing_new(case):
    text = plain(case.example.code)
    gathered, texts = looked_at(case, text, EVERY)
    before = Counter(finding.code for finding in gathered.records[case.example.filename].findings)
    fixed, repaired = mended_from(case, gathered, texts)
    left = [finding for finding in repaired.result.findings if finding.filename == case.example.filename]
    assert not [finding for finding in left if finding.fix is not None]
    assert Counter(finding.code for finding in left if finding.code in before) <= before
    if fixed != text:
        ast.parse(fixed)
        assert mended(case, fixed)[0] == fixed


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.identity)
def test_the_manner_of_the_file_is_kept(case, variant):
    """The same file in another manner of writing gets the same fix, in that manner."""
    change = VARIANTS[variant]
    fixed, expected = mended(case, change(plain(case.example.code)), alone(case))[0], change(plain(case.example.fixed))
    if variant == "tabs":
        # Nothing is lined up below a parenthesis in a line that tabs indent.
        fixed, expected = (re.sub(rb"(?<=[(,])\s+", b"", text) for text in (fixed, expected))
    assert fixed == expected


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.identity)
def test_form_feeds_stay_where_they_are(case):
    text = re.sub(rb"(?m)^(?=def |class |if )", b"\f", plain(case.example.code))
    fixed, _ = mended(case, text, alone(case))
    assert fixed.replace(b"\f", b"") == plain(case.example.fixed)
    assert [line for line in text.splitlines() if line.startswith(b"\f")] == [
        line for line in fixed.splitlines() if line.startswith(b"\f")
    ]


def test_every_rule_with_a_fix_shows_it():
    shown = {case.code for case in SHOWN}
    promised = {rule.code for rule in linter(EVERY, "", ()).catalogue.rules.values() if rule.fix is not None}
    assert promised - shown == set()
