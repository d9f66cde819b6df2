"""The nine formats, on findings made for it."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema
import pytest
import xmlschema

from torchdet_lint import lint_source, report
from torchdet_lint.cli import console
from torchdet_lint.cli.main import main
from torchdet_lint.config import FORMATS
from torchdet_lint.config.options import Settings
from torchdet_lint.engine.run import conclude, gather
from torchdet_lint.finding import Edit, Finding, Fix, Location, Related, Result
from torchdet_lint.report import Report, machine, text
from torchdet_lint.report.text import styled
from torchdet_lint.report.visible import escaped, inert, json_text, visible
from torchdet_lint.source.snippets import Snippets

ROOT = Path(__file__).parents[1]
SCHEMA = Path(__file__).parent / "data/sarif-schema-2.1.0.json"
TRAIN = "import torch\n\nloader = load(\n\tdata,  # wörter 数据\n\tnum_workers=4)\n"
NOTEBOOK = json.dumps({"cells": [{"cell_type": "code", "source": ["a = 1\n", "b = torch.seed()\n", "c = 1"]}]})

FIX = Fix("safe", "Say `x`", (Edit("x < y", Location(3, 10), Location(3, 14)),))
RELATED = (Related("data.py", Location(7, 1), "drawn here"),)
MESSAGE = '50% of <this> & "that", über: it\nall'
LONG = ("a b/train.py", Location(3, 10), Location(5, 16), "TDL002", "unused-suppression", "error")
SHORT = ("a b/train.py", Location(4, 9), Location(4, 15), "TDL001", "syntax-error", "warning")
CELL = ("n.ipynb", Location(2, 5), Location(2, 17), "TDL001", "syntax-error", "note")
FINDINGS = (
    Finding(*LONG, MESSAGE, "Do it.", 5, None, FIX, RELATED),
    Finding(*SHORT, "wörter", "Mend it.", 4),
    Finding(*CELL, "seed", "Mend it.", 2, 1),
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI_PROJECT_DIR", raising=False)
    Path("a b").mkdir()
    Path("a b/train.py").write_text(TRAIN)
    Path("n.ipynb").write_text(NOTEBOOK)


def written(name: str, findings: tuple[Finding, ...] = FINDINGS, snippets: Snippets | None = None, **more: bool) -> str:
    wanted = Report(Result(findings, 9, ()), snippets or Snippets(), **more)
    return "\n".join(text.plain(line) for line in report.writer(name)(wanted)) + "\n"


def test_full() -> None:
    assert (
        written("full", FINDINGS[1:])
        == """\
a b/train.py:4:9: TDL001 [syntax-error] wörter
  |
3 | loader = load(
4 |     data,  # wörter 数据
  |            ^^^^^^
  = help: Mend it.

n.ipynb:cell 1:2:5: TDL001 [syntax-error] seed
  |
1 | a = 1
2 | b = torch.seed()
  |     ^^^^^^^^^^^^
  = help: Mend it.

Found 1 warning, 1 note in 2 of 9 files.
"""
    )


def test_full_over_several_lines() -> None:
    lines = written("full", FINDINGS[:1]).splitlines()
    assert lines[1:10] == [
        "  |",
        "2 |",
        "3 | loader = load(",
        "  |          ^^^^^",
        "4 |     data,  # wörter 数据",
        "5 |     num_workers=4)",
        "  |     ^^^^^^^^^^^^^^",
        "  = see: data.py:7:1: drawn here",
        "  = help: Do it.",
    ]


def _edit(row: int, column: int, end: int, content: str, cell: int | None = None) -> Edit:
    return Edit(content, Location(row, column), Location(row, end), cell)


@pytest.mark.parametrize(
    ("name", "cell", "edits", "shown"),
    [
        ("a.py", None, [_edit(2, 5, 7, "zeros")], ["    2 - y = fx(1)", "    2 + y = zeros(1)"]),
        (
            "a.py",
            None,
            [_edit(2, 7, 7, "3, "), _edit(2, 5, 6, "g"), _edit(1, 1, 1, "import os\n\n")],
            ["    1 + import os", "    2 - y = fx(1)", "    2 + y = gx3, (1)"],
        ),
        (
            "a.py",
            None,
            [Edit("", Location(1, 1), Location(3, 1)), _edit(3, 4, 4, "0\nw = 1")],
            [
                "    1 - x = 1",
                "    2 - y = fx(1)",
                "    3 - z = 2",
                "    1 + z =0",
                "      … 1 more, which --diff shows",
            ],
        ),
        ("n.ipynb", 1, [_edit(2, 1, 1, "seed(0)\n", 1)], ["    2 + seed(0)"]),
        ("n.ipynb", 2, [_edit(2, 1, 1, "seed(0)\n", 1)], ["    cell 1:2 + seed(0)"]),
        ("none.py", None, [_edit(1, 1, 1, "seed(0)\n")], []),
    ],
    ids=["replaced", "several", "many", "cell", "another cell", "no file"],
)
def test_full_shows_what_the_fix_changes(name: str, cell: int | None, edits: list[Edit], shown: list[str]) -> None:
    Path("a.py").write_text("x = 1\ny = fx(1)\nz = 2\n")
    fix = Fix("safe", "Mend it", tuple(edits))
    finding = Finding(name, Location(1, 1), Location(1, 2), "TDL001", "n", "error", "m", "Mend it.", 1, cell, fix)
    lines = written("full", (finding,), quiet=True).splitlines()
    assert lines[lines.index("  = help: Mend it.") + 1 :] == [*(["  = fix:"] if shown else []), *shown, ""]


def test_carets_stand_under_wide_characters() -> None:
    Path("wide.py").write_text("x = '数据', y\n")
    finding = Finding("wide.py", Location(1, 11), Location(1, 12), "TDL001", "n", "error", "m", "h", 1)
    lines = written("full", (finding,)).splitlines()
    assert lines[2:4] == ["1 | x = '数据', y", f"  | {' ' * 12}^"]


def test_full_without_the_file() -> None:
    Path("n.ipynb").unlink()
    assert written("full", FINDINGS[2:]).startswith(
        "n.ipynb:cell 1:2:5: TDL001 [syntax-error] seed\n  = help: Mend it.\n"
    )


def test_concise_and_grouped() -> None:
    assert written("concise", FINDINGS[1:], quiet=True) == (
        "a b/train.py:4:9: TDL001 wörter\nn.ipynb:cell 1:2:5: TDL001 seed\n"
    )
    assert written("grouped", FINDINGS[1:], quiet=True) == (
        "a b/train.py:\n  4:9 TDL001 wörter\n\nn.ipynb:\n  cell 1:2:5 TDL001 seed\n\n"
    )


def test_statistics() -> None:
    wanted = Report(Result(FINDINGS, 9, ()), Snippets())
    assert [text.plain(line) for line in text.statistics(wanted)] == [
        "2  TDL001  [ ] syntax-error",
        "1  TDL002  [*] unused-suppression",
        "[*] fixable with --fix or --unsafe-fixes, [-] some of them",
    ]


def test_json() -> None:
    array = json.loads(written("json"))
    assert array == [json.loads(line) for line in written("json-lines").splitlines()]
    assert array[0] == {
        "code": "TDL002",
        "name": "unused-suppression",
        "message": FINDINGS[0].message,
        "filename": "a b/train.py",
        "location": {"row": 3, "column": 10},
        "end_location": {"row": 5, "column": 16},
        "cell": None,
        "fix": {
            "applicability": "safe",
            "message": "Say `x`",
            "edits": [
                {"content": "x < y", "location": {"row": 3, "column": 10}, "end_location": {"row": 3, "column": 14}}
            ],
        },
        "url": array[0]["url"],
        "noqa_row": 5,
        "severity": "error",
        "help": "Do it.",
        "related": [
            {"filename": "data.py", "location": {"row": 7, "column": 1}, "message": "drawn here", "cell": None}
        ],
    }
    assert array[0]["url"].endswith("/TDL002-unused-suppression.md")
    assert (array[2]["cell"], array[2]["fix"]) == (1, None)


def test_sarif_is_valid_and_complete() -> None:
    log = json.loads(written("sarif"))
    jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TDL001", "TDL002"]
    for result, finding in zip(run["results"], FINDINGS, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == finding.code
        assert (result["level"], result["message"]["text"]) == (finding.severity, finding.message)
    first, _, cell = run["results"]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/train.py"},
        "region": {"startLine": 3, "startColumn": 10, "endLine": 5, "endColumn": 16},
    }
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 3, "startColumn": 10, "endLine": 3, "endColumn": 14},
            "insertedContent": {"text": "x < y"},
        }
    ]
    assert cell["locations"][0]["logicalLocations"][0]["name"] == "cell 1"
    jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate(json.loads(written("sarif", ())))


def test_the_schema_can_refuse() -> None:
    log = json.loads(written("sarif"))
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(json.loads(SCHEMA.read_text())).validate(log)


def test_github() -> None:
    message = '50%25 of <this> & "that", über: it%0Aall'
    assert written("github").splitlines() == [
        "::error title=TDL002 (unused-suppression),file=a b/train.py,line=3,endLine=5::TDL002 " + message,
        "::warning title=TDL001 (syntax-error),file=a b/train.py,line=4,endLine=4,col=9,endColumn=15::TDL001 wörter",
        "::notice title=TDL001 (syntax-error),file=n.ipynb::cell 1, line 2: TDL001 seed",
    ]


def test_gitlab_has_one_print_a_finding() -> None:
    issues = json.loads(written("gitlab", (*FINDINGS, *FINDINGS[:1])))
    assert len({issue["fingerprint"] for issue in issues}) == 4
    assert [issue["severity"] for issue in issues] == ["major", "minor", "info", "major"]
    assert issues[0]["location"] == {
        "path": "a b/train.py",
        "positions": {"begin": {"line": 3, "column": 10}, "end": {"line": 5, "column": 16}},
    }


def test_junit_says_what_was_said() -> None:
    suites = ET.fromstring(written("junit"))
    assert (suites.get("tests"), suites.get("failures")) == ("3", "3")
    assert [suite.get("name") for suite in suites] == ["a b/train.py", "n.ipynb"]
    failure = suites[0][0][0]
    assert failure.get("message") == FINDINGS[0].message
    assert [case.get("classname") for suite in suites for case in suite] == ["a b/train.py", "a b/train.py", "n.ipynb"]
    assert failure.text == "line 3, column 10: Do it."
    assert ET.fromstring(written("junit", ())).get("failures") == "0"


@pytest.mark.parametrize("findings", [FINDINGS, ()])
def test_junit_is_what_its_readers_take(findings: tuple[Finding, ...]) -> None:
    data = Path(__file__).parent / "data"
    xmlschema.XMLSchema(data / "jenkins-junit-10.xsd").validate(written("junit", findings))
    schema = xmlschema.XMLSchema(data / "junit.xsd")
    schema.validate(written("junit", findings))
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        schema.validate(written("junit", findings).replace("<testcase ", '<testcase line="3" ', 1))


@pytest.mark.parametrize("findings", [FINDINGS, ()])
def test_gitlab_is_a_code_quality_report(findings: tuple[Finding, ...]) -> None:
    """The keys that GitLab's page on code quality lists, and no others."""
    line = {"type": "integer", "minimum": 1}
    place = {"type": "object", "properties": {"line": line, "column": line}, "required": ["line"]}
    positions = {"type": "object", "properties": {"begin": place, "end": place}, "required": ["begin"]}
    path = {"type": "string", "pattern": "^(?!\\./|/)"}
    location = {
        "type": "object",
        "properties": {"path": path, "positions": positions},
        "required": ["path", "positions"],
    }
    properties = {
        "description": {"type": "string"},
        "check_name": {"type": "string"},
        "fingerprint": {"type": "string", "minLength": 1},
        "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
        "location": location,
    }
    issue = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    jsonschema.validate(json.loads(written("gitlab", findings)), {"type": "array", "items": issue})


@pytest.mark.parametrize("name", ["json", "json-lines", "sarif", "github", "gitlab", "junit"])
def test_a_notebook_cell_is_named_in_every_machine_format(name: str) -> None:
    two = tuple(Finding("n.ipynb", *CELL[1:], "seed", "Mend it.", 2, cell) for cell in (3, 5))
    told = written(name, two)
    for cell in (3, 5):
        assert f'"cell": {cell}' in told or f"cell {cell}, line 2" in told


@pytest.mark.parametrize("name", sorted(set(FORMATS)))
def test_every_format_survives_strange_characters(name: str) -> None:
    Path("odd.py").write_text("x = '\x01bold\x02\x1b[31m\x00'\n", encoding="utf-8")
    finding = Finding("odd.py", Location(1, 1), Location(1, 90), "TDL001", "n", "error", "\x1b[31m ]]> \x0b", "h", 1)
    out = written(name, (finding,))
    if name == "junit":
        ET.fromstring(out)
    elif name in ("json", "sarif", "gitlab"):
        json.loads(out)
    assert "TDL001" in out


def run(*arguments: str, terminal: bool = False) -> str:
    command = [sys.executable, "-m", "torchdet_lint", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "40"}
    environment.pop("NO_COLOR", None)
    if not terminal:
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False).stdout
    parent, child = pty.openpty()
    with subprocess.Popen(command, stdout=child, stderr=child, env=environment) as process:
        os.close(child)
        out = b""
        while True:
            try:
                piece = os.read(parent, 4096)
            except OSError:
                break
            if not piece:
                break
            out += piece
        process.wait()
    os.close(parent)
    return out.decode()


def test_colour_on_a_terminal_only() -> None:
    Path("bad.py").write_text("x = (  # " + "long " * 5 + "\n")
    plain = run("bad.py", "--no-cache", "-q", "--quiet")
    assert "\x1b" not in plain
    painted = run("bad.py", "--no-cache", "-q", "--quiet", terminal=True)
    page = "https://github.com/torchdet-lint/torchdet-lint/blob/main/docs/rules/TDL001-syntax-error.md"
    assert f"\x1b[1;31m\x1b]8;;{page}\x1b\\TDL001\x1b]8;;\x1b\\\x1b[0m" in painted
    painted = re.sub(r"\x1b\]8;;.*?\x1b\\", "", painted)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted).replace("\r\n", "\n") == plain, (
        "only colour differs where no line is too long"
    )
    assert "\x1b" in run("bad.py", "--no-cache", "-q", "--color", "always")
    assert "\x1b" not in run("bad.py", "--no-cache", "-q", "--color", "never", terminal=True)


@pytest.mark.parametrize(
    ("variables", "coloured", "linked"),
    [
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, True, False),
        ({"CLICOLOR_FORCE": "1", "FORCE_HYPERLINK": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True, False),
    ],
)
def test_the_environment_asks_for_colour_and_links(
    variables: dict[str, str], coloured: bool, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "FORCE_HYPERLINK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    console.paint([styled("TDL001", "bold red", "https://example.org/a")], "auto", stream)
    assert ("\x1b[1;31m" in stream.getvalue()) == coloured
    assert ("\x1b]8;;https://example.org/a\x1b\\TDL001\x1b]8;;\x1b\\" in stream.getvalue()) == linked
    assert "TDL001" in stream.getvalue()


ACTING = "\x1b[2J\x9b\x07\u202e\u2066\u2028\r\n::stop-commands::x\n##[group]\ufffe\udcff\x85"
FORBIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]|##\\["
)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_nothing_in_names_and_sources_acts_on_a_terminal_or_a_log(name: str) -> None:
    """One finding in a file of such a name, with such a source, message, help and related place."""
    path = f"::{ACTING}.py"
    source = f"x = '{ACTING[:-2]}'\n".encode()
    place = Location(1, 1)
    related = (Related(path, place, ACTING),)
    fix = Fix("safe", ACTING, (Edit(ACTING, place, place),))
    finding = Finding(path, place, Location(1, 4), "TDL001", "n", "error", ACTING, ACTING, 1, None, fix, related)
    out = written(name, (finding,), Snippets({path: source}))
    assert FORBIDDEN.findall(out) == []
    commands = [line for line in out.splitlines() if line.lstrip().startswith("::")]
    assert len(commands) == (1 if name == "github" else 0)
    if name in ("json", "json-lines"):
        (told,) = [json.loads(out)] if name == "json-lines" else json.loads(out)
        assert (told["filename"], told["message"]) == (path, ACTING)
    elif name == "junit":
        ET.fromstring(out)
    elif name in ("sarif", "gitlab"):
        json.loads(out)


def test_what_acts_is_shown() -> None:
    assert visible("a\x1b[31m\x7f\udcff\u202e é 漢 👩\u200d🔬") == "a\u241b[31m\u2421\\xff\ufffd é 漢 👩\u200d🔬"
    assert visible("##[group] ##vso[x] ## [a]") == "\uff03#[group] \uff03#vso[x] ## [a]"
    assert visible("a\tb\n", "\t") == "a\tb\u240a"
    assert inert(" ::error::x::") == " \uff1a:error::x::"
    assert json.loads(escaped(json.dumps("\U000e0041\x7f\u202eé", ensure_ascii=False))) == "\U000e0041\x7f\u202eé"


def test_places_in_notebooks_name_the_cell_in_every_format() -> None:
    related = (Related("n.ipynb", Location(1, 1), "drawn here", 3),)
    place = Location(2, 5)
    finding = Finding("n.ipynb", place, place, "TDL001", "n", "error", "m", "h", 2, 4, None, related)
    assert "n.ipynb:cell 4:2:5" in written("full", (finding,))
    assert "= see: n.ipynb:cell 3:1:1: drawn here" in written("full", (finding,))
    (told,) = json.loads(written("json", (finding,)))
    assert (told["cell"], told["related"][0]["cell"]) == (4, 3)
    (result,) = json.loads(written("sarif", (finding,)))["runs"][0]["results"]
    (other,) = result["relatedLocations"]
    assert "region" not in other["physicalLocation"]
    assert other["logicalLocations"] == [{"name": "cell 3", "fullyQualifiedName": "cell 3, line 1"}]
    (issue,) = json.loads(written("gitlab", (finding,)))
    assert issue["description"] == "TDL001: cell 4, line 2: m"
    assert "cell 4, line 2: " in written("github", (finding,))


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": ""}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
    ],
)
def test_variables_that_ask_for_colour(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variables: dict[str, str], coloured: bool
) -> None:
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    Path("bad.py").write_text("x = (\n")
    main(["bad.py", "--no-cache"])
    assert ("\x1b" in capsys.readouterr().out) == coloured


@pytest.mark.parametrize("before", [0, 30, 70, 400])
def test_lines_are_clipped_to_the_terminal_around_the_fault(before: int) -> None:
    line = f"{'x = 1; ' * (before // 7)}torch.backends.cudnn.benchmark = True; {'y = 2; ' * 60}"
    texts = {"a.py": f"import torch\n{line}\n".encode()}
    findings = lint_source(texts["a.py"], "a.py", isolated=True, select=["TDL201"])
    result = Result(tuple(findings), 1, ())
    whole = [text.plain(one) for one in report.writer("full")(report.Report(result, Snippets(texts)))]
    clipped = [text.plain(one) for one in report.writer("full")(report.Report(result, Snippets(texts), width=80))]
    assert any(line.rstrip() in one for one in whole)
    excerpt = [one for one in clipped if " | " in one]
    assert max(map(len, excerpt)) <= 80
    (shown,) = (one for one in excerpt if one.startswith("2 |"))
    (caret,) = (one for one in excerpt if "^" in one)
    assert shown[caret.index("^") :].startswith("torch.backends")
    assert "…" in shown


def test_of_a_very_long_line_only_what_is_shown_is_made_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"a.py": f"import torch\n{'torch.backends.cudnn.benchmark = True; ' * 400}\n".encode()}
    findings = lint_source(texts["a.py"], "a.py", isolated=True, select=["TDL201"])
    assert len(findings) == 400
    lengths: list[int] = []
    monkeypatch.setattr(text, "visible", lambda line, keep="": lengths.append(len(line)) or visible(line, keep))
    text._shown.cache_clear()
    made = report.writer("full")(report.Report(Result(tuple(findings), 1, ()), Snippets(texts), width=80))
    shown = list(map(text.plain, made))
    assert sum(one.startswith("2 |") for one in shown) == 400
    assert max(lengths) < 2000


def test_of_a_very_long_line_the_edit_shows_what_stands_around_it() -> None:
    line = f"{'x = 1; ' * 400}torch.backends.cudnn.benchmark = True; {'y = 2; ' * 400}"
    texts = {"a.py": f"import torch\n{line}\n".encode()}
    findings = lint_source(texts["a.py"], "a.py", isolated=True, select=["TDL201"])
    shown = report.writer("full")(report.Report(Result(tuple(findings), 1, ()), Snippets(texts)))
    taken, put = (one for one in map(text.plain, shown) if one.startswith(("    2 - …", "    2 + …")))
    assert "benchmark = True; y" in taken
    assert "benchmark = False; y" in put
    assert len(taken) == len(put) < 1100


def test_json_is_written_as_pythons_own() -> None:
    told = {
        "text": "".join(map(chr, [*range(0x20, 0x7F), 0xE4, 0x1F600])),
        "nothing": [[], {}, (), None, True, 0],
        'a "\\/ key': [{"in": [1, {"a": ["b"]}]}],
    }
    assert json_text(told) == json.dumps(told, indent=2, ensure_ascii=False)
    for odd in [*map(chr, range(0x20)), "\x7f", "\u2028", "\udc80"]:
        assert json.loads(json_text([odd])) == [odd]
        assert json_text([odd]).isascii()


def test_gitlab_tells_equal_lines_apart_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b"torch.backends.cudnn.benchmark = True\n"
    texts = {"a.py": b"import torch\n" + line * 40}
    settings = Settings(root=".", select=("TDL201",), jobs=1)
    result = conclude(gather([], settings, texts=texts), texts)
    made: list[tuple[str, ...]] = []
    real = machine._fingerprint
    monkeypatch.setattr(machine, "_fingerprint", lambda *parts: made.append(parts) or real(*parts))
    issues = json.loads("\n".join(machine.gitlab(Report(result, Snippets(texts)))))
    assert len({issue["fingerprint"] for issue in issues}) == 40
    assert len(made) < 80
