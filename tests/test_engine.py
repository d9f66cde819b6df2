"""Every input that a file system can hold: a finding or one clear line, and the other files are linted all the same."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from typing import Any

import pytest

from torchdet_lint.cli.main import main
from torchdet_lint.config import Settings
from torchdet_lint.engine import linter, run
from torchdet_lint.engine.linter import Linter, first_sentence


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "ok.py").write_text("import torch\nx = 1  # noqa: TDL201\n")
    return tmp_path


def lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    status = main([*(arguments or (".",)), "--output-format", "json", "--no-cache"])
    out, err = capsys.readouterr()
    return status, json.loads(out), err


def others(findings: list[dict[str, Any]]) -> list[tuple[str, int, int, str]]:
    """The findings outside ok.py, whose own finding must be there whatever happens."""
    assert [finding["code"] for finding in findings if finding["filename"] == "ok.py"] == ["TDL002"]
    return [
        (finding["filename"], finding["location"]["row"], finding["location"]["column"], finding["message"])
        for finding in findings
        if finding["filename"] != "ok.py"
    ]


@pytest.mark.parametrize(
    ("data", "row", "column", "reason"),
    [
        (b"import torch\nx = (\n", 2, 5, "'(' was never closed"),
        (b"print 'two'\n", 1, 1, "Missing parentheses"),
        (b"import torch\n<<<<<<< HEAD\n", 2, 1, "invalid syntax"),
        (b"import torch\nx = '\xff'\n", 2, 6, "byte 0xff is not utf-8"),
        (b"import torch\nx = 1\0\n", 2, 6, "NUL"),
        (b"# coding: nonsense\n", 1, 1, "unknown encoding"),
        (b"import torch\nif x:\npass\n", 3, 1, "expected an indented block"),
        (b"import torch\nx = " + b"(" * 500 + b")" * 500 + b"\n", 2, 205, "too many nested parentheses"),
        (b"import torch\nx = " + b"-" * 100_000 + b"1\n", 1, 1, "too deeply nested"),
        (b"import torch\nx = " + b"f(" * 150 + b")" * 149, None, None, "'(' was never closed"),
        (b"".join(b" " * row + b"if x:\n" for row in range(500)), 101, 1, "too many levels of indentation"),
        (b"x = 1\n" * 20_000 + b"x = \n", 20_001, None, "invalid syntax"),
    ],
)
def test_what_is_no_python_is_a_finding(
    capsys: pytest.CaptureFixture[str], data: bytes, row: int | None, column: int | None, reason: str
) -> None:
    Path("bad.py").write_bytes(data)
    status, findings, err = lint(capsys)
    ((filename, found_row, found_column, message),) = others(findings)
    assert (status, filename, err) == (1, "bad.py", "")
    assert message.startswith("Cannot be parsed: ")
    assert reason in message
    assert row in (None, found_row)
    assert column in (None, found_column)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (("a = 1\n", "b = 2\n\nfor x in y:\n"), "'for' statement on line 3"),
        (("a = 1\n", "def f():\n", "b = 2\n"), "function definition on line 1"),
        (("a = 1\n", "b = 2\nc = 'it\n"), "unterminated string literal (detected at line 2)"),
    ],
)
def test_what_is_no_python_in_a_notebook_is_counted_in_its_cell(capsys, cells, reason):
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    Path("bad.ipynb").write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    _, findings, _ = lint(capsys)
    ((_, _, _, message),) = others(findings)
    assert message.endswith(reason)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\xef\xbb\xbfimport torch\n",
        b"import torch\r\nx = 1\r\n",
        b"import torch\rx = 1\r",
        b"\x0cimport torch\n\x0c\ndef f():\n    pass\n",
        b"# -*- coding: latin-1 -*-\nimport torch\n# \xe9\n",
        b"import torch  # no newline",
        b"import torch\nx = '\\d'\n",
        b"import torch\nx = 1" + b" + 1" * 300 + b"\n",
        b"import torch\nx = torch" + b".a" * 300 + b"\n",
        b"import torch\n" + b"def f(:\n".replace(b"(:", b"():") + b"    '''" + b"x" * 100_000 + b"'''\n",
    ],
)
def test_what_is_python_is_none(capsys: pytest.CaptureFixture[str], data: bytes) -> None:
    Path("good.py").write_bytes(data)
    status, findings, err = lint(capsys)
    assert (others(findings), status, err) == ([], 1, "")


def test_a_file_of_five_megabytes(capsys: pytest.CaptureFixture[str]) -> None:
    Path("big.py").write_text("import torch\n" + f"value = [1]  # a row {'that says what it is for ' * 30}\n" * 7_000)
    assert Path("big.py").stat().st_size > 5_000_000
    status, findings, err = lint(capsys)
    assert (others(findings), status, err) == ([], 1, "")


def test_folders_and_links_with_names_of_files(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.py").mkdir()
    Path("x.py/y.py").write_text("x = (\n")
    Path("loop").symlink_to(".")
    Path("gone.py").symlink_to("nowhere.py")
    status, findings, err = lint(capsys)
    assert (status, [row[:2] for row in others(findings)], err) == (1, [("x.py/y.py", 1)], "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_must_not_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("secret.py").write_text("x = 1\n")
    Path("secret.py").chmod(0)
    status, findings, err = lint(capsys)
    assert (status, others(findings), err) == (2, [], "torchdet-lint: error: secret.py: permission denied\n")


def test_a_file_that_cannot_be_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read any file, so that the refusal is made here."""
    Path("secret.py").write_text("x = 1\n")
    really = linter.read

    def refuse(path: str) -> bytes:
        if path == "secret.py":
            raise PermissionError(13, "Permission denied")
        return really(path)

    monkeypatch.setattr(linter, "read", refuse)
    status, findings, err = lint(capsys)
    assert (status, others(findings), err) == (2, [], "torchdet-lint: error: secret.py: permission denied\n")


def test_paths_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    Path("self.py").symlink_to("self.py")
    status, findings, err = lint(capsys, "ok.py", "nowhere.py", "self.py", "nul\0.py")
    assert (status, others(findings)) == (2, [])
    assert [line.partition("error: ")[2] for line in err.splitlines()] == [
        "nowhere.py: no such file or directory",
        "nul␀.py: a path cannot hold a NUL byte",
        "self.py: too many levels of symbolic links",
    ]


def test_a_pyproject_that_does_not_parse(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text("[project\nname = 1\n")
    status, findings, err = lint(capsys)
    assert (status, others(findings), len(err.splitlines())) == (2, [], 1)
    assert "pyproject.toml: not valid TOML: " in err


def test_notebooks(capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.ipynb").write_text("{")
    cells = [
        {"cell_type": "markdown", "source": ["text"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch"]},
        {"cell_type": "code", "source": ["x = 1\n", "y = 2  # noqa: TDL201"]},
    ]
    Path("n.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    Path("syntax.ipynb").write_text(json.dumps({"cells": [*cells, {"cell_type": "code", "source": "a\nx = ("}]}))
    status, findings, err = lint(capsys)
    assert (status, err) == (1, "")
    rows = [
        (finding["filename"], finding["cell"], finding["location"]["row"], finding["code"])
        for finding in findings
        if finding["filename"] != "ok.py"
    ]
    assert rows == [
        ("broken.ipynb", None, 1, "TDL001"),
        ("n.ipynb", 3, 2, "TDL002"),
        ("syntax.ipynb", 3, 2, "TDL002"),
        ("syntax.ipynb", 4, 2, "TDL001"),
    ]


UNFINISHED = {
    "one": (["model = # TODO: a network"], "invalid syntax"),
    "two": (["model = # TODO", "1 epoch of 3"], "invalid syntax (nor can 1 other cell)"),
    "three": (
        ["def step(x):\n    # TODO", "(", "loss ="],
        "expected an indented block after function definition on line 1 (nor can 2 other cells)",
    ),
}


@pytest.mark.parametrize(("cells", "told"), UNFINISHED.values(), ids=UNFINISHED)
def test_the_cells_beside_one_that_is_not_python_are_linted_and_fixed(
    cells: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole notebook is a program all the same, and nothing is changed in the cells that do not parse."""
    sources = ["import torch\n\nx = torch.randn(3)", *cells, "torch.backends.cudnn.benchmark = True"]
    made = [{"cell_type": "code", "source": source} for source in sources]
    Path("n.ipynb").write_text(json.dumps({"cells": made, "metadata": {}}))
    _, findings, err = lint(capsys)
    assert err == ""
    found = [(one["filename"], one["cell"], one["location"]["row"], one["code"]) for one in findings[:3]]
    assert found == [
        ("n.ipynb", 1, 3, "TDL101"),
        ("n.ipynb", 2, cells[0].count("\n") + 1, "TDL001"),
        ("n.ipynb", len(sources), 1, "TDL201"),
    ]
    assert findings[1]["message"] == f"Cannot be parsed: {told}"
    main(["check", "--fix", "-q", "n.ipynb"])
    capsys.readouterr()
    after = ["".join(cell["source"]) for cell in json.loads(Path("n.ipynb").read_text())["cells"]]
    assert after[-1] == "torch.backends.cudnn.benchmark = False"
    assert "torch.manual_seed(0)" in after[0]
    assert after[1:-1] == cells


def test_a_check_that_fails_costs_no_other_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError("by\nzero")

    from torchdet_lint import checks

    Path("ok.py").write_text("import torch\nx = torch.empty  # noqa: TDL201\n")
    code = min(checks.CHECKS)
    monkeypatch.setattr(checks, "CHECKS", {**checks.CHECKS, code: broken})
    status, findings, err = lint(capsys)
    assert (status, others(findings)) == (2, [])
    assert err == f"torchdet-lint: error: ok.py: {code} failed on this file, please report it: ZeroDivisionError: by\n"


def test_skip_file_silences_everything_but_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    Path("skipped.py").write_text("# torchdet: skip-file\nimport torch\nx = 1  # noqa: TDL201\n")
    Path("faulty.py").write_text("# torchdet: skip-file\nimport torch\nx = (\n")
    _, findings, _ = lint(capsys)
    assert [row[0] for row in others(findings)] == ["faulty.py"]


def test_a_name_that_is_not_utf_8_is_told_and_the_rest_islinted(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        Path(os.fsdecode(b"\xff.py")).write_text("import torch\n")
    except (OSError, UnicodeError):
        pytest.skip("this file system takes only UTF-8")
    status, findings, err = lint(capsys)
    assert (status, others(findings)) == (2, [])
    assert err.endswith(": the path is not UTF-8 text; rename it\n")


def test_per_file_ignores_take_names_and_lower_case(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("x = (\n")
    Path("b.py").write_text("x = (\n")
    Path("pyproject.toml").write_text(
        "[tool.torchdet-lint.per-file-ignores]\n'a.py' = ['syntax-error']\n'b.py' = ['tdl001']\n"
    )
    assert others(lint(capsys)[1]) == []


def test_a_rule_for_cuda_is_silent_on_the_cpu_and_so_is_its_suppression(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.benchmark = False  # noqa: TDL201"]
    Path("a.py").write_text("import torch\n" + "\n".join(lines) + "\n")
    rows = [(finding["code"], finding["location"]["row"]) for finding in lint(capsys, "a.py")[1]]
    assert rows == [("TDL201", 2), ("TDL002", 3)]
    assert lint(capsys, "a.py", "--devices", "cpu")[1] == []


def test_per_file_ignores_and_severity(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text(
        "[tool.torchdet-lint.per-file-ignores]\n'sub/*.py' = ['TDL0']\n'ok.py' = ['TDL2']\n"
    )
    Path("sub").mkdir()
    Path("sub/a.py").write_text("x = (\n")
    status, findings, _ = lint(capsys)
    assert (status, others(findings)) == (1, [])
    assert lint(capsys, ".", "--min-severity", "error")[:2] == (0, [])


@pytest.mark.parametrize(
    ("code", "reported"),
    [("TDL999", True), ("TDL001", True), ("TDL", True), ("TDL002", False), ("E501", False), ("ACME001", False)],
)
def test_whose_suppressions_are_judged(code: str, reported: bool) -> None:
    """A prefix that means TDL002 too would have to be judged by itself."""
    linter = Linter(Settings(root=""))
    findings, _ = run.examine(linter, {"a.py": f"import torch  # noqa: {code}\n".encode()})
    assert [finding.code for finding in findings] == (["TDL002"] if reported else [])


def test_a_suppression_of_a_rule_that_is_not_run_is_not_judged() -> None:
    linter = Linter(Settings(root="", select=("TDL002",)))
    assert run.examine(linter, {"a.py": b"import torch  # noqa: TDL001\n"})[0] == []


def test_first_sentence() -> None:
    assert first_sentence("Pass `x=1.5`, e.g. so.\nThen go. More.") == "Pass `x=1.5`, e.g. so."


OWN = """
summary = "Own."
message = "`{name}` varies"
why = "It does."
instead = "Use another."
"""
OWN_OP = (
    OWN
    + """
[[ops]]
op = "acme.fast_sum"
package = "acme"
direction = "forward"
spellings = [{ name = "acme.fast_sum", parameters = ["x", "exact"] }]
when = [{ argument = "exact", test = "falsy" }]
status = [{ since = "1.0", status = "silent" }]
"""
)
OWN_TABLES = (
    OWN
    + """
[[calls]]
names = ["acme.roll"]

[[settings]]
names = ["acme.flags.fast"]
values = [true]
"""
)


def test_a_rule_of_ones_own_needs_no_code(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "ACME001-fast-sum.toml").write_text(OWN_OP)
    (project / "ACME002-own-tables.toml").write_text(OWN_TABLES)
    (project / "torchdet-lint.toml").write_text('rule-files = ["ACME*.toml"]\nextend-select = ["ACME"]\n')
    (project / "own.py").write_text(
        "import acme as a\na.fast_sum(3)\na.fast_sum(3, exact=True)\na.roll()\na.flags.fast = True\n"
        "a.flags.fast = False\na.fast_sum(4)  # noqa: ACME001\n"
    )
    found = [(finding["code"], finding["location"]["row"], finding["message"]) for finding in lint(capsys, "own.py")[1]]
    assert found == [
        ("ACME001", 2, "`acme.fast_sum` varies"),
        ("ACME002", 4, "`acme.roll` varies"),
        ("ACME002", 5, "`acme.flags.fast` varies"),
    ]


def test_no_fix_parses_a_long_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchdet_lint.module import tree

    parsed: list[str] = []
    parse = tree.parse
    monkeypatch.setattr(tree, "parse", lambda text: parsed.append(text) or parse(text))
    table = "TABLE = [\n" + "    12345,\n" * 50 + "]\n"
    text = (
        f"import torch\n{table}torch.backends.cudnn.benchmark = True\ntorch.utils.data.DataLoader(x, num_workers=2)\n"
    )
    findings, _ = run.examine(Linter(Settings(root="", select=("TDL2", "TDL301"))), {"a.py": text.encode()})
    assert [(finding.code, bool(finding.fix and finding.fix.edits)) for finding in findings] == [
        ("TDL201", True),
        ("TDL301", True),
    ]
    assert parsed
    assert not any("12345" in part for part in parsed)


def test_findings_of_an_indented_cell(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["    import torch\n", "    torch.backends.cudnn.benchmark = True\n", "    x = 1  # noqa: TDL201\n"]
    Path("n.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": lines}]}))
    _, findings, _ = lint(capsys, "n.ipynb")
    found = {finding["code"]: finding for finding in findings}
    assert found.keys() == {"TDL201", "TDL002"}
    assert found["TDL201"]["location"] == {"row": 2, "column": 5}
    assert found["TDL201"]["fix"] is None
    assert found["TDL201"]["help"].endswith("No fix: its cell is indented as a whole.")
    assert found["TDL002"]["location"] == {"row": 3, "column": 12}
    main(["n.ipynb", "--fix", "-q", "--no-cache"])
    after = json.loads(Path("n.ipynb").read_text())["cells"][0]["source"]
    assert after == [*lines[:2], "    x = 1\n"]
    main(["n.ipynb", "--no-cache"])
    assert "2 |     torch.backends.cudnn.benchmark = True\n  |     ^^^^" in capsys.readouterr().out


def test_codes_that_a_file_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    settings = "import torch\ntorch.backends.cudnn.benchmark = True\ntorch.backends.cudnn.deterministic = False\n"
    Path("a.py").write_text(f"# torchdet: noqa: TDL201, TDL301\n{settings}")
    _, findings, _ = lint(capsys, "a.py")
    assert [(finding["code"], finding["location"]["row"]) for finding in findings] == [("TDL002", 1), ("TDL202", 4)]
    assert "TDL301" in findings[0]["message"]
    main(["a.py", "--fix", "-q", "--no-cache", "--select", "TDL0,TDL201,TDL301"])
    assert Path("a.py").read_text() == f"# torchdet: noqa: TDL201\n{settings}"


def test_no_tree_of_a_file_outlives_its_record(tmp_path: Path) -> None:
    """The collector is off while files are linted: what refers to itself stays until all of them are done."""
    import libcst as cst

    source = (
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self, size):\n        super().__init__()\n"
        "        self.kept = torch.empty(size)\n\n"
        "    def forward(self, x, index):\n"
        "        return torch.zeros(9, device='cuda').index_add(0, index, x) + self.kept\n"
    )
    linter = Linter(Settings(root=str(tmp_path)))
    linter.record("first.py", source.encode())
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(one, cst.CSTNode) for one in gc.get_objects())
        for number in range(3):
            assert linter.record(f"net{number}.py", source.encode()).findings
        after = sum(isinstance(one, cst.CSTNode) for one in gc.get_objects())
    finally:
        gc.enable()
    assert after == before
