"""Programs that are Python and hard to read: each is linted, or one clear line says what was not, and nothing else."""

from __future__ import annotations

import ast

import pytest

from torchdet_lint.catalogue import loading
from torchdet_lint.checks import CHECKS
from torchdet_lint.config.options import Settings
from torchdet_lint.engine import repair, run
from torchdet_lint.engine.linter import Linter
from torchdet_lint.prefilter import patterns
from torchdet_lint.prefilter.library import Library
from torchdet_lint.program.graded.runs import Naming
from torchdet_lint.program.summary import Summary
from torchdet_lint.program.syntax.hollow import Hollow
from torchdet_lint.program.syntax.vocabulary import Vocabulary
from torchdet_lint.source.lines import split_lines

BENCHMARK = "torch.backends.cudnn.benchmark = True\n"
SETTING = f"\ndef setting():\n    {BENCHMARK}"


def lint(text: str | bytes, name: str = "example.py"):
    linter = Linter(Settings(root=".", select=("ALL",)))
    return run.examine(linter, {name: text.encode() if isinstance(text, str) else text})


def branches(count: int) -> str:
    return "if x == -1: pass\n" + "".join(f"elif x == {i}: y{i} = torch.rand(1)\n" for i in range(count))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\nx = torch.rand(1) \\\n\n", {(2, "TDL101")}),
        ("from torch.utils.data import DataLoader\nx = DataLoader(d, num_workers=2) \\\n\n", {(2, "TDL301")}),
        ('import torch\nwarn("""Not\n\n    Parts(..., names={names}), but names.""")\n' + BENCHMARK, {(5, "TDL201")}),
        (" \\\nimport torch\n" + BENCHMARK, {(2, "TDL001")}),
        ("import torch; x = 0\n" + branches(350), {(3, "TDL101")}),
        ("import torch; x = 0\n" + branches(1400), {(3, "TDL101")}),
        ('import torch\nx = torch.load("a" ' + '"a" ' * 4000 + ")\n" + BENCHMARK, {(2, "TDL001")}),
        ("import torch\ndef f(x: " + "list[" * 190 + "int" + "]" * 190 + "): pass\n" + SETTING, {(5, "TDL201")}),
        (
            "import torch\ndef f(x: " + " | ".join(f"T{i}" for i in range(700)) + "): pass\n" + SETTING,
            {(5, "TDL201")},
        ),
        (
            "import glob, torch\nclass C:\n    def load(self):\n        from lm.tasks import M\n        names = []\n"
            '        for e in glob.glob("*"):\n            names.append(e)\n        self.tasks = names\n' + BENCHMARK,
            {(9, "TDL201")},
        ),
        (
            "import torch\ndef f(y, x):\n    s = set()\n    for x in [y]:\n        for y in [x]:\n"
            "            s.add(x)\n    return torch.tensor(list(s))\n" + BENCHMARK,
            {(8, "TDL201")},
        ),
    ],
    ids=[
        "backslash",
        "backslash-loader",
        "ellipsis-before-a-set",
        "backslash-indented",
        "elif-350",
        "elif-1400",
        "strings",
        "annotation",
        "union",
        "import-parts",
        "loops",
    ],
)
def test_what_is_hard_to_read_is_linted(text: str, expected: set[tuple[int, str]]) -> None:
    findings, complaints = lint(text)
    assert complaints == []
    assert expected <= {(finding.location.row, finding.code) for finding in findings}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("def f0(x):\n    return {}\n", "def f{}(x):\n    return f{}(x)\n"),
        ("def _f0(x):\n    return {}\n", "def _f{}(x):\n    return _f{}(x)\n"),
        (
            "class A:\n    def _f0(self, x):\n        return {}\n",
            "    def _f{}(self, x):\n        return self._f{}(x)\n",
        ),
    ],
    ids=["functions", "private-functions", "private-methods"],
)
def test_functions_may_call_each_other_in_a_long_chain(first: str, then: str) -> None:
    op = "torch.nn.functional.interpolate(x, scale_factor=2, mode='bilinear')"
    chain = "\n".join([first.format(op), *(then.format(number, number - 1) for number in range(1, 1000))])
    findings, complaints = lint(f"import torch\n\n{chain}")
    assert complaints == []
    assert [finding.code for finding in findings] == ["TDL403"]


def test_what_the_far_end_of_a_long_chain_of_callers_says_counts() -> None:
    op = "torch.nn.functional.interpolate(x, scale_factor=2, mode='bilinear')"
    chain = "\n".join(f"def f{number}(x):\n    return f{number - 1}(x)\n" for number in range(1, 200))
    text = f"import torch\n\ndef f0(x):\n    return {op}\n\n{chain}\n"
    assert [finding.code for finding in lint(f"{text}f199(torch.rand(3))\n")[0]] == ["TDL403", "TDL101"]
    assert [finding.code for finding in lint(f"{text}with torch.no_grad():\n    f199(torch.rand(3))\n")[0]] == [
        "TDL101"
    ]


@pytest.mark.parametrize(
    "row",
    [
        "y = x" + " and x" * 10_000,
        "y = x" + " and x or x" * 10_000,
        "import " + ".".join(["a"] * 10_000),
        "from " + ".".join(["a"] * 10_000) + " import b",
        "y = [x" + " for x in z" * 10_000 + "]",
        "y: 'x" + " and x" * 10_000 + "' = 1",
        "y: 'x" + " | x" * 10_000 + "' = 1",
    ],
    ids=["and", "and-or", "import", "from", "comprehension", "annotation", "annotation-union"],
)
def test_a_chain_that_libcst_would_die_of_is_left_to_it(row: str) -> None:
    text = f"import torch\ndef f(x):\n    {row}\n    return torch.rand(1).to(y)\n{SETTING}"
    findings, complaints = lint(text)
    assert complaints == []
    assert "TDL201" in {finding.code for finding in findings}


def test_imports_that_libcst_would_die_of_are_left_to_it() -> None:
    findings, complaints = lint(f"import torch\nimport {'.'.join(['a'] * 10_000)}\nx = torch.rand(1)\n{SETTING}")
    assert complaints == []
    assert {"TDL001", "TDL101", "TDL201"} <= {finding.code for finding in findings}


@pytest.mark.parametrize("bracket", ["[{}]", "C({})", "({},)", "{{1: {}}}"])
def test_patterns_that_libcst_would_not_end_with_are_left_to_it(bracket: str) -> None:
    pattern = "a"
    for _ in range(30):
        pattern = bracket.format(pattern)
    text = f"import torch\ndef f(x):\n    match x:\n        case {pattern}: {BENCHMARK}{SETTING}"
    findings, complaints = lint(text)
    assert complaints == []
    assert [(one.location.row, one.code) for one in findings] == [(2, "TDL001"), (7, "TDL201")]
    assert "match" in findings[0].message


@pytest.mark.parametrize("pattern", ["C(a=D(b=[1, 2, *_]))", '{"a": {"b": [x, (y, z)]}}', "(((a)))"])
def test_patterns_of_everyday_are_read(pattern: str) -> None:
    assert not patterns.explode(f"match x:\n    case {pattern}:\n        f((((((((((((((1))))))))))))))\n")


def test_a_rule_that_fails_leaves_what_it_and_the_others_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = CHECKS["TDL201"]

    def failing(module, rule):
        yield from real(module, rule)
        raise ZeroDivisionError("of no account")

    monkeypatch.setitem(CHECKS, "TDL201", failing)
    findings, complaints = lint("import torch\n" + BENCHMARK)
    assert [one.code for one in findings] == ["TDL201"]
    assert len(complaints) == 1
    assert "ZeroDivisionError" in complaints[0]


def test_a_declaration_of_the_encoding_may_stand_behind_a_long_line() -> None:
    text = f"#{'x' * 450}\n# coding: latin-1\nimport torch\nx = 'é'\n{BENCHMARK}".encode("latin-1")
    assert [one.code for one in lint(text)[0]] == ["TDL201"]


def test_a_mark_of_utf8_goes_with_a_declaration_of_the_mark() -> None:
    text = b"\xef\xbb\xbf# coding: utf-8-sig\nimport torch\n" + BENCHMARK.encode()
    assert [one.code for one in lint(text)[0]] == ["TDL201"]
    settings = Settings(root=".", select=("TDL201",))
    repaired = repair.repair([], settings, texts={"example.py": text})
    assert repaired.texts["example.py"] == text.replace(b"True", b"False")


@pytest.mark.parametrize(("encoding", "bytes_"), [("cp932", b"\x87\x90"), ("utf-7", b"+AGE-"), ("idna", 70 * b"a")])
def test_bytes_that_an_encoding_would_write_another_way_are_not_touched(encoding: str, bytes_: bytes) -> None:
    text = f"# coding: {encoding}\nimport torch\n".encode() + b"x = '" + bytes_ + b"'\n" + BENCHMARK.encode()
    repaired = repair.repair([], Settings(root=".", select=("TDL201",)), texts={"example.py": text})
    assert not repaired.changes
    assert [one.code for one in repaired.result.findings] == ["TDL201"]


def test_a_fix_that_the_encoding_cannot_write_is_refused() -> None:
    """A part of a name of a domain, which is what `idna` writes, has 63 characters at most."""
    text = f"# coding: idna\nimport torch\n{BENCHMARK}#{45 * 'a'}.\n".encode()
    repaired = repair.repair([], Settings(root=".", select=("TDL201",)), texts={"example.py": text})
    assert not repaired.changes
    assert [one.code for one in repaired.result.findings] == ["TDL201"]


HYDRA = """import hydra


def run(cfg):
    app = hydra.utils.instantiate(cfg, _recursive_=False)
    app.fit()


@hydra.main(config_path="conf", config_name="app", version_base=None)
def main(cfg):
    run(cfg)


if __name__ == "__main__":
    main()
"""


def test_the_whole_configuration_is_what_hydra_makes(project) -> None:
    result = run.run([str(project(app_DOT_py=HYDRA))], Settings(root=".", jobs=1))
    assert result.errors == ()


def test_what_has_no_name_is_looked_for_nowhere() -> None:
    text = "def f(x=1):\n    return f(x)\n"
    summary = Summary(lambda: Hollow(split_lines(text)), lambda: text, Vocabulary.of(Library(loading.load())))
    assert Naming(ast.parse(text).body, {"", "f"}, summary).rows == {"f": [2]}
