from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from torchdet_lint.catalogue import compiled, loading, ops, runtime, texts
from torchdet_lint.catalogue.texts import CatalogueError
from torchdet_lint.prefilter.triggers import IDENTIFIER, words_in

if TYPE_CHECKING:
    from pathlib import Path


def rule_file(tmp_path: Path, text: str, name: str = "ACME001-own-op.toml") -> Path:
    path = tmp_path / name
    path.write_text('summary = "s"\nmessage = "m"\nwhy = "w"\ninstead = "i"\n' + text)
    return path


def test_code_and_name_come_from_the_file_name(tmp_path):
    rule = loading.load(extra=[rule_file(tmp_path, "")]).rules["ACME001"]
    assert (rule.code, rule.name, rule.stem) == ("ACME001", "own-op", "ACME001-own-op")


@pytest.mark.parametrize(
    ("text", "name", "complaint"),
    [
        ("sumary = 1\n", "ACME001-own-op.toml", "`sumary`; did you mean `summary`?"),
        ("severity = 'fatal'\n", "ACME001-own-op.toml", "severity"),
        ("code = 'X'\n", "ACME001-own-op.toml", "taken from the file's name"),
        ("", "acme.toml", "CODE-name.toml"),
        ("= 3\n", "ACME001-own-op.toml", "not valid TOML"),
    ],
)
def test_a_broken_rule_file_is_named_with_its_fault(tmp_path, text, name, complaint):
    path = rule_file(tmp_path, text, name)
    with pytest.raises(CatalogueError) as caught:
        loading.load(extra=[path])
    assert str(path) in str(caught.value)
    assert complaint in str(caught.value)


CALLS = "[[calls]]\nnames = ['acme.f']\n"


@pytest.mark.parametrize(
    ("message", "rest", "complaint"),
    [
        ("{nam} adds", CALLS, "message: nothing is known for {nam}; there are {name}, {source}"),
        ("{name.x} adds", CALLS, "message: nothing is known for {name.x}"),
        ("{} adds", CALLS, "message: nothing is known for {}"),
        ("{name adds", CALLS, "message: expected '}' before end of string; write {{ and }} for braces"),
        ("m", f"{CALLS}variant = 'other'\n", "[[calls]]: no message is called 'other'"),
        ("m", "[messages]\nx = '{a}'\n[[settings]]\nnames = ['a.b']\nvalues = [true]\nvariant = 'x'\n", "messages.x: "),
    ],
)
def test_holes_that_nothing_fills_are_told_before_a_run(tmp_path, message, rest, complaint):
    path = tmp_path / "ACME001-own-op.toml"
    path.write_text(f'summary = "s"\nmessage = "{message}"\nwhy = "w"\ninstead = "i"\n{rest}')
    with pytest.raises(CatalogueError) as caught:
        loading.load(extra=[path])
    assert str(caught.value).startswith(f"{path}: {complaint}")


def test_holes_that_are_filled(tmp_path):
    path = tmp_path / "ACME001-own-op.toml"
    path.write_text(
        'summary = "s"\nmessage = "{name} in {{ {source} }}: {kind}"\nwhy = "w"\ninstead = "i"\n'
        f"{CALLS}details = {{kind = 'slow'}}\n"
    )
    assert "ACME001" in loading.load(extra=[path]).rules


def test_a_missing_rule_file_is_named(tmp_path):
    with pytest.raises(CatalogueError, match="nowhere"):
        loading.load(extra=[tmp_path / "nowhere.toml"])


def test_a_code_is_given_once(tmp_path):
    first, second = rule_file(tmp_path, ""), rule_file(tmp_path, "", "ACME001-other.toml")
    with pytest.raises(CatalogueError, match="already the code"):
        loading.load(extra=[first, second])


def test_examples_are_read_only_when_asked_for(tmp_path):
    path = rule_file(tmp_path, "[[bad]]\ncode = 'x'\n")
    assert loading.load(extra=[path]).rules["ACME001"].bad == ()
    assert len(loading.load(examples=True, extra=[path]).rules["ACME001"].bad) == 1


def test_the_fingerprint_follows_the_text(tmp_path):
    path = rule_file(tmp_path, "")
    before = texts.fingerprint([path])
    assert before == loading.load(extra=[path]).fingerprint
    rule_file(tmp_path, "# a remark\n")
    assert texts.fingerprint([path]) != before


@pytest.mark.parametrize(("text", "expected"), [("2.13", (2, 13)), ("2.13.0+cpu", (2, 13)), ("1.8", (1, 8))])
def test_release(text, expected):
    assert ops.release(text) == expected


def test_release_refuses_other_text():
    with pytest.raises(ValueError, match="newest"):
        ops.release("newest")


def test_status_in_takes_the_last_row_that_has_begun():
    rows = (
        ops.Status(since="1.8", status="errors"),
        ops.Status(since="2.10", status="deterministic"),
    )
    releases = [(1, 7), (1, 8), (2, 9), (2, 10), (2, 15)]
    statuses = ["absent", "errors", "errors", "deterministic", "deterministic"]
    assert [ops.status_in(rows, release) for release in releases] == statuses


def test_the_prefilter_finds_every_identifier():
    text = "a.b_c(d1, 'é', 名=3)\n\tüber[x-1] # 2e5\udc80 z"
    assert set(IDENTIFIER.findall(text)) - {"e5"} <= words_in(text.replace("\udc80", " "))
    assert "z" in words_in(text)


def test_what_the_recorder_knows_needs_no_package_but_a_parser_of_toml():
    """It runs inside the user's program, and in the Python of another environment where the program starts one."""
    program = (
        "import sys; from torchdet_lint.catalogue import runtime; runtime.dispatch(); runtime.surroundings()\n"
        "print(*sorted({'msgspec', 'libcst', 'torch', 'yaml', 'rich'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_table_of_the_recorder_with_another_key_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "facts" / "runtime"
    folder.mkdir(parents=True)
    (folder / "surroundings.toml").write_text("[surroundings]\nvariables = []\ntimed = []\nunit = []\n")
    monkeypatch.setattr(runtime, "RULES_DIRECTORY", tmp_path)
    with pytest.raises(
        CatalogueError, match="the keys must be variables, libraries, timed, timed_keys, measured_keys, units"
    ):
        runtime.surroundings.__wrapped__()


def test_what_a_build_keeps_is_what_the_texts_say(tmp_path: Path) -> None:
    shipped = texts.read(texts.shipped())
    fingerprint = texts.fingerprint_of(shipped)
    path, again = tmp_path / "once", tmp_path / "again"
    compiled.write(path, loading.parse(shipped), fingerprint)
    compiled.write(again, loading.parse(shipped), fingerprint)
    assert path.read_bytes() == again.read_bytes()
    assert compiled.read(path, fingerprint) == loading.parse(shipped)


def test_what_a_build_keeps_of_other_texts_or_broken_does_not_count(tmp_path: Path) -> None:
    shipped = texts.read(texts.shipped())
    fingerprint = texts.fingerprint_of(shipped)
    path = tmp_path / "kept"
    compiled.write(path, loading.parse(shipped), fingerprint)
    assert compiled.read(path, fingerprint[::-1]) is None
    path.write_bytes(path.read_bytes()[:-1])
    assert compiled.read(path, fingerprint) is None
    assert compiled.read(tmp_path / "nowhere", fingerprint) is None


def test_a_start_reads_what_the_build_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = texts.read(texts.shipped())
    path = tmp_path / "kept"
    only = {"TDL101": loading.load().rules["TDL101"]}
    compiled.write(path, compiled.Shipped(only, loading.load().facts), texts.fingerprint_of(shipped))
    monkeypatch.setattr(compiled, "PATH", path)
    loading._load.cache_clear()
    try:
        assert loading.load().rules.keys() == only.keys()
        assert len(loading.load(examples=True).rules) > 5
        assert loading.load(extra=[rule_file(tmp_path, "")]).rules.keys() == {"ACME001", "TDL101"}
    finally:
        loading._load.cache_clear()
