"""The command line from outside: what it prints, and the status it leaves with."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchdet_lint import __version__
from torchdet_lint.cli.main import main

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()


def test_version_imports_no_parser() -> None:
    program = (
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from torchdet_lint.cli.main import main\nmain(['--version'])\n"
        "print(sorted(set(sys.modules) & {'libcst', 'torch', 'rich', 'pathspec', 'msgspec'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"torchdet-lint {__version__}", "[]"]


def test_clean_file_is_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("import torch\ntorch.manual_seed(0)\n")
    assert main(["a.py"]) == 0
    assert capsys.readouterr().out == "No nondeterminism found in 1 file.\n"


def test_syntax_error_is_a_finding_and_the_rest_is_linted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("def f(:\n")
    Path("b.py").write_text("import torch\ntorch.manual_seed(0)  # noqa: TDL201\n")
    assert main([".", "--output-format", "concise", "--quiet"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[:2] for line in lines] == [["a.py:1:7:", "TDL001"], ["b.py:2:23:", "TDL002"]]


def test_a_path_that_is_not_there_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("x = 1\n")
    assert main(["nowhere.py", "a.py"]) == 2
    out, err = capsys.readouterr()
    assert err == "torchdet-lint: error: nowhere.py: no such file or directory\n"
    assert out == ""


def test_statistics_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    assert main(["a.py", "--statistics", "--output-format", "json"]) == 1
    row = {"code": "TDL201", "name": "cudnn-benchmark", "count": 1, "fixable": True, "fixable_count": 1}
    assert json.loads(capsys.readouterr().out) == [row]


def test_a_choice_of_no_rule_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--select", ""]) == 2
    assert capsys.readouterr().err == "torchdet-lint: error: --select: no rule is named\n"


@pytest.mark.parametrize("name", ["TDL001", "tdl001", "syntax-error"])
def test_one_rule_as_json_has_every_key_whatever_its_spelling(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", name, "--output-format", "json"]) == 0
    rule = json.loads(capsys.readouterr().out)
    assert (rule["code"], rule["severity"], rule["scope"], rule["fix"]) == ("TDL001", "error", "run", None)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("arguments", [["a.py"], ["rule", "--all"], ["a.py", "--output-format", "json"]])
def test_output_that_cannot_be_written_is_one_line_and_status_2(arguments: list[str]) -> None:
    Path("a.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "torchdet_lint", *arguments],
            stdout=full, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    line = "torchdet-lint: error: standard output: no space left on device\n"
    assert (done.returncode, done.stderr) == (2, line)


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["a.py"], 1),
        (["a.py", "--exit-zero", "--output-format", "json"], 0),
        (["a.py", "--diff", "--quiet"], 1),
        (["a.py", "--exit-zero", "--color", "always"], 0),
        (["a.py", "--show-files"], 0),
        (["--show-settings"], 0),
        (["rule", "--all"], 0),
        (["nowhere.py"], 2),
    ],
)
@pytest.mark.parametrize("both", [False, True])
def test_a_pipe_that_nobody_reads_ends_the_run_quietly(arguments: list[str], status: int, both: bool) -> None:
    Path("a.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "torchdet_lint", *arguments],
        stdout=write, stderr=write if both else subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.close(write)
    assert done.returncode == status
    if not both and status != 2:
        assert done.stderr == ""


def test_a_fault_of_our_own_is_not_taken_for_findings() -> None:
    program = (
        "import sys\nsys.argv = ['torchdet-lint', '.']\n"
        "from torchdet_lint import __main__\nfrom torchdet_lint.cli import main\n"
        "def broken(arguments):\n    raise KeyError('ours')\nmain.main = broken\n__main__.main()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr.endswith("KeyError: 'ours'\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek", "."], "no command `chek`; did you mean `check`?"),
        (["explain", "TDL302"], "no command `explain`; did you mean `rule`?"),
        (["--selct", "TDL1"], "no option `--selct`; did you mean `--select`? (see `torchdet-lint --help`)"),
        (["--frobnicate"], "no option `--frobnicate` (see `torchdet-lint --help`)"),
        (["--select", "TDL41"], "--select: no rule has the code, prefix or name 'TDL41'; did you mean 'TDL401'?"),
        (
            ["--ignore", "E501"],
            "--ignore: no rule has the code, prefix or name 'E501'; `torchdet-lint rule --all` lists them",
        ),
        (
            ["--per-file-ignores", "x:hash-sed"],
            "--per-file-ignores: x: no rule has the code, prefix or name 'hash-sed'; did you mean 'hash-seed'?",
        ),
        (["--per-file-ignores", "a.py"], "--per-file-ignores: 'a.py' is not of the form GLOB:CODES"),
        (["nowhere"], "nowhere: no such file or directory"),
    ],
)
def test_the_culprit_is_named(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    Path("pyproject.toml").write_text("[tool.torchdet-lint]\nseed = 1\n")
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"torchdet-lint: error: {said}\n")


def test_a_file_that_is_called_like_a_command_is_linted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("chek").write_text("x = 1\n")
    assert main(["chek"]) == 0
    assert "1 file" in capsys.readouterr().out


def test_no_file_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    Path("rules").mkdir()
    assert main(["rules"]) == 0
    assert capsys.readouterr() == ("", "torchdet-lint: warning: no Python file or notebook found in rules\n")


def test_fail_on() -> None:
    Path("a.py").write_text("import torch\nx = 1  # noqa: TDL201\ntorch.use_deterministic_algorithms(False)\n")

    def status(*arguments: str) -> int:
        return main(["a.py", "--no-cache", "-q", *arguments])

    severities = {"TDL002,TDL201": "warning", "TDL204": "error"}
    for code, severity in severities.items():
        assert status("--select", code) == 1
        assert status("--select", code, "--fail-on", "error") == (1 if severity == "error" else 0)
        assert status("--select", code, "--fail-on", "note") == 1
    Path("pyproject.toml").write_text("[tool.torchdet-lint]\nfail-on = 'error'\n")
    assert status("--select", "TDL002,TDL201") == 0
    assert status("--select", "TDL002,TDL201", "--fail-on", "warning") == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], ["TDL402", "TDL203"]),
        (["--select", "TDL203"], ["TDL203"]),
        (["--select", "TDL203,TDL402"], ["TDL402", "TDL203"]),
        (["--select", "TDL002,TDL203"], ["TDL203"]),
        (["--ignore", "TDL4"], ["TDL203"]),
    ],
)
def test_a_severity_does_not_depend_on_the_rules_beside(
    options: list[str], told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for comment in ("", "  # noqa: TDL402"):
        Path("a.py").write_text(
            "import torch\ntorch.manual_seed(0)\nx = torch.randn(8, requires_grad=True, device='cuda')\n"
            "optimizer = torch.optim.SGD([x], lr=0.1)\nindex = torch.randint(4, (8,), device='cuda')\n"
            f"torch.zeros(4, device='cuda').index_add(0, index, x).sum().backward(){comment}\noptimizer.step()\n"
        )
        for _ in ("cold", "warm"):
            assert main(["a.py", "-q", "--output-format", "json", *options]) == 1
            found = json.loads(capsys.readouterr().out)
            assert [one["code"] for one in found] == [one for one in told if not comment or one != "TDL402"]
            assert {one["severity"] for one in found} == {"error"}
            assert found[-1]["message"].endswith("without it: 1 × index_add")


def test_flags_undo_keys(capsys: pytest.CaptureFixture[str]) -> None:
    text = "import torch\ntorch.backends.cudnn.benchmark = True\n"
    Path("a.py").write_text(text)
    Path("pyproject.toml").write_text(
        "[tool.torchdet-lint]\nfix = true\nunsafe-fixes = true\nbaseline = 'b.json'\nrespect-gitignore = false\n"
    )
    assert main(["baseline", "-q"]) == 0
    assert main(["a.py", "-q", "--no-fix", "--no-unsafe-fixes"]) == 0
    assert main(["a.py", "-q", "--no-fix", "--no-baseline"]) == 1
    assert Path("a.py").read_text() == text
    assert main(["a.py", "-q", "--no-fix", "--no-baseline", "--per-file-ignores", "a.*:TDL2"]) == 0
    assert main(["a.py", "-q", "--no-fix", "--no-baseline", "--extend-ignore", "cudnn-benchmark"]) == 0
    Path("b.py").write_text("import numpy as np\nrng = np.random.default_rng()\n")
    main(["b.py", "-q", "--fix", "--seed", "7"])
    assert "default_rng(7)" in Path("b.py").read_text()
    Path(".gitignore").write_text("a.py\nb.py\n")
    capsys.readouterr()
    main([".", "--show-files", "--respect-gitignore"])
    assert capsys.readouterr().out == ""
    main([".", "--show-files"])
    assert capsys.readouterr().out == "a.py\nb.py\n"


def test_keys_that_only_a_configuration_had_are_flags(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("import torch\nfrom lab import prepare\nprepare()\nprint(torch.rand(3))\n")
    Path("lib.py").write_text("import torch\nx = torch.rand(3)\n")
    Path("b.py").write_text("import torch\ntorch.manual_seed(0)\nimport lib\nlib.x\n")
    Path("net.py").write_text(
        "import torch\ntorch.manual_seed(0)\nnet = torch.nn.Conv2d(3, 3, 3).cuda()\n"
        "optimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
        "net(torch.ones(1, 3, 8, 8).cuda()).sum().backward()\noptimizer.step()\n"
    )
    Path("rules").mkdir()
    Path("rules/ACME001-prepare.toml").write_text(
        "summary = 's'\nmessage = '`{name}`'\nseverity = 'error'\nwhy = 'w'\ninstead = 'i'\n"
        "[[calls]]\nnames = ['lab.prepare']\n"
    )

    def found(*arguments: str) -> list[str]:
        main([*arguments, "--no-cache", "-q", "--output-format", "concise"])
        return [line.split(":")[0] + line.split()[1] for line in capsys.readouterr().out.splitlines()]

    assert found("a.py", "--select", "TDL101") == ["a.pyTDL101"]
    assert found("a.py", "--select", "TDL101", "--seed-functions", "lab.prepare") == []
    assert found("b.py", "lib.py", "--select", "TDL101") == []
    assert found("b.py", "lib.py", "--select", "TDL101", "--entry-points", "lib.py") == ["lib.pyTDL101"]
    assert found("a.py", "--select", "ACME", "--rule-files", "rules/*.toml") == ["a.pyACME001"]
    assert found("net.py", "--select", "TDL203") == ["net.pyTDL203"]
    assert found("net.py", "--select", "TDL203", "--deterministic-algorithms") == []
    assert main(["a.py", "--rule-files", "none/*.toml"]) == 2
    assert capsys.readouterr().err == "torchdet-lint: error: --rule-files: nothing matches 'none/*.toml'\n"


def test_a_baseline_is_not_replaced_by_what_could_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    assert main(["baseline", "-q"]) == 0
    before = Path(".torchdet-baseline.json").read_bytes()
    Path("empty").mkdir()
    for paths in (["nowhere"], ["a.py", "nowhere"], ["empty"]):
        assert main(["baseline", *paths]) == 2
        assert Path(".torchdet-baseline.json").read_bytes() == before
    assert "no Python file or notebook found in empty" in capsys.readouterr().err


def test_noqa_can_be_ignored() -> None:
    Path("a.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True  # noqa: TDL201\n")
    assert main(["a.py", "-q"]) == 0
    assert main(["a.py", "-q", "--ignore-noqa"]) == 1


def test_rules_are_found_by_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", "bincount"]) == 0
    out = capsys.readouterr().out
    assert "TDL401 nondeterministic-op: " in out
    assert "torch.bincount" in out
    assert len(out.splitlines()) <= 3
    assert main(["rule", "DataLoader"]) == 0
    assert "TDL301 dataloader-worker-seed: " in capsys.readouterr().out
    assert main(["rule", "TDL4O1"]) == 2
    assert "did you mean 'TDL401'?" in capsys.readouterr().err
    assert main(["rule", "TDL401"]) == 0
    assert "What to do instead:" in capsys.readouterr().out


def test_help_of_the_verifier_needs_no_torch(tmp_path: Path) -> None:
    """Nor does a command that needs torch say so in any other way than all errors are said."""
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import importlib.util; find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest)\n"
        "from torchdet_lint.cli.main import main\n"
        "for command in ('run', 'verify', 'record', 'compare', 'forecast', 'probe'):\n"
        "    try:\n        status = main([command, '--help'])\n"
        "    except SystemExit as leave:\n        status = leave.code\n"
        "    assert status == 0, command\n"
        "sys.exit(main(['verify', 'x.py']))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == (
        "torchdet-lint: error: verify needs torch: install it with `pip install 'torchdet-lint[verify]'`\n"
    )
    assert done.returncode == 2
    assert done.stdout.count("usage: torchdet-lint ") == 6
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(("release", "known"), [("1.2", False), ("1.7", True), ("2.15", True), ("9.9", False)])
def test_a_release_that_no_table_knows_is_told(release: str, known: bool, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("x = 1\n")
    assert main(["a.py", "-q", "--torch-version", release]) == 0
    note = f"torchdet-lint: warning: torch-version: the tables of operations know torch 1.7 to 2.15, not {release}\n"
    assert capsys.readouterr().err == ("" if known else note)


def test_statistics_are_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text("x = 1\n")
    assert main(["a.py", "--statistics", "--output-format", "sarif"]) == 2
    assert "--statistics: there are none as sarif" in capsys.readouterr().err
    assert main(["a.py", "--statistics", "--output-format", "json"]) == 0


FIXABLE = "import torch\ntorch.backends.cudnn.benchmark = True  # \x1b[2J\n"


def test_a_patch_in_colour_acts_on_no_terminal(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("a.py").write_text(FIXABLE)
    assert main(["a.py", "--diff", "--color", "always"]) == 1
    coloured = capsysbinary.readouterr().out
    assert b"\x1b[31m-torch.backends" in coloured
    assert b"\x1b[32m+torch.backends" in coloured
    assert b"\x1b[2J" not in coloured
    assert main(["a.py", "--diff"]) == 1
    assert b"\x1b[2J" in capsysbinary.readouterr().out


def test_a_patch_goes_to_the_file_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.py").write_text(FIXABLE)
    assert main(["a.py", "--diff", "-q", "--output-file", "fix.patch"]) == 1
    assert capsys.readouterr().out == ""
    subprocess.run(["git", "apply", "fix.patch"], check=True)
    assert "benchmark = False" in Path("a.py").read_text()


COMMANDS = "check baseline rule config lsp completion run verify record compare show forecast probe".split()


@pytest.mark.parametrize("command", [*COMMANDS, "rule new", "rule test"])
def test_help_fits_80_columns_and_says_what_each_option_does(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    try:
        assert main([*command.split(), "--help"]) == 0
    except SystemExit as leave:
        assert leave.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        option = re.fullmatch(r"  (-[^ ].*|[A-Z]+)", line)
        assert option is None or re.search(r"\S  +\S", line) or after.startswith(" " * 10), f"{line!r} says nothing"


def test_every_command_is_in_the_first_help(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(re.search(rf"^  (\w+, )*{command}\b", out, re.MULTILINE) for command in COMMANDS[1:])


def test_the_environment_chooses_where_no_flag_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Path("a.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    Path("torchdet-lint.toml").write_text("output-format = 'full'\n")
    monkeypatch.setenv("TORCHDET_OUTPUT_FORMAT", "json-lines")
    monkeypatch.setenv("TORCHDET_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert main(["a.py"]) == 1
    assert json.loads(capsys.readouterr().out)["code"] == "TDL201"
    assert (tmp_path / "elsewhere").is_dir()
    assert not Path(".torchdet_cache").exists()
    assert main(["a.py", "--output-format", "concise", "-q"]) == 1
    assert capsys.readouterr().out.startswith("a.py:2:1: TDL201 ")
    monkeypatch.setenv("TORCHDET_OUTPUT_FORMAT", "xml")
    assert main(["a.py"]) == 2
    assert "TORCHDET_OUTPUT_FORMAT: 'xml' is none of full, concise" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["-"], ["script"]])
def test_a_program_of_any_name_is_one(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "import torch\nif __name__ == '__main__':\n    print(torch.rand(3))\n"
    Path("script").write_text(program)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(program.encode())))
    assert main([*arguments, "--output-format", "concise", "-q"]) == 1
    assert [line.split(" ")[:2] for line in capsys.readouterr().out.splitlines()] == [
        [f"{arguments[0]}:3:5:", "TDL101"]
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.py", "--output-file", "a.py"],
        ["a.py", "--diff", "--output-file", "a.py"],
        ["baseline", "--output-file", "a.py"],
        ["baseline", "--baseline", "a.py"],
        ["baseline", "--output-file", "notes.txt"],
        ["verify", "--output-file", "a.py", "a.py"],
        ["forecast", "--output-file", "a.py", "a.py"],
        ["preflight", "--output", "a.py"],
    ],
    ids=" ".join,
)
def test_no_report_goes_over_a_program(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = "import torch\ntorch.backends.cudnn.benchmark = True\n"
    for name in ("a.py", "notes.txt"):
        Path(name).write_text(text)
    try:
        status = main(arguments)
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert "not written over" in capsys.readouterr().err
    assert [Path(name).read_text() for name in ("a.py", "notes.txt")] == [text, text]


@pytest.mark.parametrize("words", [[""], ["--fix", ""], [".", ""]])
def test_an_empty_name_is_not_the_current_folder(words, tmp_path, monkeypatch, capsys):
    text = "import torch\nprint(torch.rand(2))\n"
    (tmp_path / "a.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--no-cache"]) == 2
    assert capsys.readouterr().err == "torchdet-lint: error: '': no such file or directory\n"
    assert (tmp_path / "a.py").read_text() == text


@pytest.mark.parametrize(("required", "changed"), [("1.1.0", False), ("1.6.0", True), ("2.4", True)])
def test_no_loader_gets_a_generator_of_a_release_that_has_none(tmp_path: Path, required: str, changed: bool) -> None:
    program = tmp_path / "train.py"
    text = """
import torch
from torch.utils.data import DataLoader, RandomSampler

torch.manual_seed(0)
for row in DataLoader(range(9), shuffle=True):
    print(row)
for row in DataLoader(range(9), sampler=RandomSampler(range(9))):
    print(row)
"""
    program.write_text(text)
    (tmp_path / "requirements.txt").write_text(f"torch=={required}\n")
    command = [sys.executable, "-m", "torchdet_lint", ".", "--no-cache", "--select", "TDL302,TDL303", "--fix"]
    subprocess.run(command, cwd=tmp_path, check=False, capture_output=True)
    assert ("generator=" in program.read_text()) is changed
