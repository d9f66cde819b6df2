"""Fixes of orders, run: what fitted together before a fix fits after it, each fix applied alone too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torchdet_lint.cli.main import main
from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.engine.linter import Linter
from torchdet_lint.fixes import patch
from torchdet_lint.source.decoding import decode

if TYPE_CHECKING:
    from torchdet_lint.finding import Finding

CODES = ("TDL304", "TDL305")
SEEDS = range(8)
WORDS = "WORDS = ['alpha', 'be', 'gamma', 'delta-delta', 'eps', 'zet', 'et', 'theta!']\n"
# Every program asserts what holds under any order of the sets; what follows `# then:` is run, but not linted.
SAFE = {
    "zip with what a loop over it made": """
def rows(xs: list[str], table):
    names = set(xs)
    found = [table[name] for name in names]
    for name, row in zip(names, found):
        assert table[name] == row
    return found
# then:
rows(WORDS, {word: word * 2 for word in WORDS})
""",
    "a list of it beside a list made in a loop": """
def longest(xs: list[str]):
    names = set(xs)
    rows = [len(name) for name in names]
    best = max(range(len(rows)), key=rows.__getitem__)
    return list(names)[best]
# then:
assert longest(WORDS) == "delta-delta"
""",
    "another name": """
def rows(xs: list[str]):
    names = set(xs)
    again = names
    found = []
    for name in names:
        found.append(len(name))
    for number, name in enumerate(again):
        assert found[number] == len(name)
# then:
rows(WORDS)
""",
    "two sets made of the same": """
def rows(xs: list[str]):
    found = [len(name) for name in set(xs)]
    for name, length in zip(frozenset(xs), found):
        assert len(name) == length
    return list({name for name in xs}), found
# then:
rows(WORDS)
""",
    "two functions": """
def names(words: list[str]):
    return list(set(words))
def lengths(words: list[str]):
    return [len(word) for word in set(words)]
# then:
assert list(map(len, names(WORDS))) == lengths(WORDS)
""",
    "a copy": """
def rows(xs: list[str]):
    names = set(xs)
    other = names.copy()
    table = {name: number for number, name in enumerate(names)}
    for number, name in enumerate(frozenset(other)):
        assert table[name] == number
# then:
rows(WORDS)
""",
    "a set of a set": """
def rows(xs: list[str]):
    names = set(xs)
    lengths = [len(name) for name in names]
    return lengths, list(set(names))
# then:
lengths, names = rows(WORDS)
assert lengths == list(map(len, names))
""",
    "the keys of a dictionary": """
def rows(xs: list[str]):
    names = set(xs)
    table = {name: len(name) for name in names}
    found = list(names)
    assert list(table) == found == list(dict.fromkeys(names))
    return found
# then:
rows(WORDS)
""",
    "a module's own set": """
_NAMES = {"alpha", "be", "gamma", "delta-delta", "eps", "zet"}
def listed():
    return list(_NAMES)
def lengths():
    return [len(name) for name in _NAMES]
# then:
assert list(map(len, listed())) == lengths()
""",
    "a closure": """
def rows(xs: list[str]):
    names = set(xs)
    def lengths():
        return [len(name) for name in names]
    return list(names), lengths()
# then:
found, lengths = rows(WORDS)
assert list(map(len, found)) == lengths
""",
    "a tie": """
def rows(xs: list[str]):
    names = set(xs)
    found = list(names)
    assert max(names, key=lambda name: name == "") == found[0] == next(iter(names))
    return found
# then:
rows(WORDS)
""",
    "set operations": """
def rows(xs: list[str], ys: list[str]):
    both = set(xs) & set(ys)
    found = [len(name) for name in both]
    for name, length in zip(set(xs) & set(ys), found):
        assert len(name) == length
    return found
# then:
rows(WORDS, WORDS[1:])
""",
    "tested, grown, gone through once": """
def rows(xs: list[str]):
    names = set(xs)
    names.add("last")
    assert "last" in names and len(names) == 9
    return list(names)
# then:
assert sorted(rows(WORDS)) == sorted([*WORDS, "last"])
""",
    "a folder listed twice": """
import os
def names(root):
    return [name for name in os.listdir(root)]
def sizes(root):
    return [len(name) for name in os.listdir(root)]
# then:
assert list(map(len, names("."))) == sizes(".")
""",
    "two folders side by side": """
import os
def pairs(left, right):
    found = []
    for a, b in zip(os.listdir(left), os.listdir(right)):
        found.append((a, b))
    return found
# then:
assert all(a == b for a, b in pairs(".", "."))
""",
    "files under a key, beside files in a list": """
import os
def table(root):
    numbers = {}
    for name in os.listdir(root):
        numbers[name] = len(name)
    return numbers, list(os.listdir(root))
# then:
numbers, names = table(".")
assert list(numbers) == names
""",
    "a list before": """
def rows(xs: list[str]):
    names = []
    for x in xs:
        names.append(x.strip())
    first = names[0]
    names = set(names)
    found = [name for name in names]
    lengths = list(map(len, names))
    names = list(names)
    return first, found, lengths, names
# then:
first, found, lengths, names = rows(WORDS)
assert first == WORDS[0] and found == names and lengths == list(map(len, found))
""",
    "at top level": """
names = [word.strip() for word in WORDS]
names = set(names)
with open("names.txt", "w") as file:
    for name in names:
        file.write(name)
# then:
""",
}
# Sets that may be gone through out of sight, or hold what cannot be sorted: what is in sight is kept together.
UNSAFE = {
    "an attribute": """
class Names:
    def __init__(self, xs: list[str]):
        self.names = set(xs)
    def listed(self):
        return list(self.names)
    def lengths(self):
        return [len(name) for name in self.names]
# then:
names = Names(WORDS)
assert list(map(len, names.listed())) == names.lengths()
""",
    "a list in one branch": """
def rows(xs: list[str], flag):
    names = list(xs)
    if flag:
        names = set(names)
    return [len(name) for name in names]
# then:
assert rows(WORDS, False) == list(map(len, WORDS))
""",
    "a name that can be imported": """
NAMES = {"alpha", "be", "gamma", "delta-delta", "eps", "zet"}
def listed():
    return list(NAMES)
def lengths():
    return [len(name) for name in NAMES]
# then:
assert list(map(len, listed())) == lengths()
""",
    "returned beside its list": """
def rows(xs: list[str]):
    names = set(xs)
    return list(names), names
# then:
found, names = rows(WORDS)
""",
    "given to a function": """
def show(names):
    return [len(name) for name in names]
def rows(xs: list[str]):
    names = set(xs)
    return list(names), show(names)
# then:
found, lengths = rows(WORDS)
""",
    "what does not sort is added": """
def rows(xs: list[str], other):
    names = set(xs)
    names.add(other)
    return list(names)
# then:
""",
    "only one side is text": """
def rows(xs: list[str], other):
    return list(set(xs) | set(other))
# then:
""",
    "made of a set that is given": """
def rows(xs: set[str]):
    return [len(x) for x in xs], list(set(xs))
""",
    "taken out": """
def rows(xs: list[str]):
    names = set(xs)
    found = list(names)
    assert names.pop() == found[0]
    return found
# then:
""",
}
RUNNER = """\
import json, sys, traceback
for name, text in json.load(open(sys.argv[1])):
    try:
        exec(compile(text, name, "exec"), {"__name__": "program"})
    except Exception:
        print(name)
        traceback.print_exc()
"""


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def linted(program: str) -> tuple[str, str]:
    """What of a program is linted, and what is run after it."""
    text, _, then = program.partition("# then:\n")
    return WORDS + text, then


def fixes(text: str) -> list[Finding]:
    linter = Linter(Settings(root=str(Path.cwd()), select=CODES, min_severity="note", unsafe_fixes=True))
    findings, errors = run.examine(linter, {"program.py": text.encode()})
    assert errors == []
    return [finding for finding in findings if finding.fix is not None and finding.fix.edits]


def versions(name: str, program: str, *options: str) -> list[tuple[str, str]]:
    """The program as it is, with all of its fixes, and with each of them alone."""
    text, then = linted(program)
    Path("program.py").write_text(text)
    main(["--isolated", "--no-cache", "--select", ",".join(CODES), "--fix", "--quiet", *options, "program.py"])
    found = [(f"{name}: before", text + then), (f"{name}: all", Path("program.py").read_text() + then)]
    for number, finding in enumerate(fixes(text)):
        patched = patch.apply(decode("program.py", text.encode()), [finding.fix])
        assert patched.applied == (0,)
        found.append((f"{name}: {number}", patched.data.decode() + then))
    return found


def failures(programs: list[tuple[str, str]], folder: Path) -> dict[int, str]:
    """What fails under which hash seed, each in a process of its own."""
    (folder / "programs.json").write_text(json.dumps(programs))
    failed = {}
    for seed in SEEDS:
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, "-c", RUNNER, str(folder / "programs.json")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)
        if done.returncode or done.stdout:
            failed[seed] = done.stdout + done.stderr
    return failed


@pytest.mark.parametrize("name", SAFE)
def test_safe_fixes_are_safe(name):
    found = fixes(linted(SAFE[name])[0])
    assert found
    assert {finding.fix.applicability for finding in found} == {"safe"}


@pytest.mark.parametrize("name", UNSAFE)
def test_what_may_be_gone_through_out_of_sight_is_unsafe(name):
    found = fixes(linted(UNSAFE[name])[0])
    assert found
    assert {finding.fix.applicability for finding in found} == {"unsafe"}


def test_what_fits_together_goes_on_fitting(tmp_path):
    """Before, after all fixes and after any one of them, under every hash seed."""
    programs = [one for name, text in SAFE.items() for one in versions(name, text)]
    for name in ("an attribute", "a name that can be imported"):
        programs += versions(name, UNSAFE[name], "--unsafe-fixes")
    assert sum(text != before for (_, text), (_, before) in zip(programs[1:], programs, strict=False)) > len(SAFE)
    assert failures(programs, tmp_path) == {}


def test_safe_fixes_leave_no_set_order():
    """What a fixed program makes of its sets is the same under every hash seed."""
    text, then = linted(SAFE["a closure"])
    Path("program.py").write_text(text)
    assert main(["--isolated", "--no-cache", "--select", "TDL305", "--fix", "--quiet", "program.py"]) == 0
    Path("program.py").write_text(Path("program.py").read_text() + then + "print(found, lengths)\n")
    printed = {
        subprocess.run(
            [sys.executable, "program.py"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            timeout=60,
        ).stdout
        for seed in SEEDS
    }
    assert len(printed) == 1


@pytest.mark.parametrize(
    ("taken", "what"),
    [
        ("next(os.walk(root))[1]", "folders"),
        ("next(os.walk(root))[-2]", "folders"),
        ("next(os.walk(root))[2]", "files"),
        ("next(os.walk(root))[-1]", "files"),
        ("folders\n    _, folders, files = next(os.walk(root))\n    found = folders", "folders"),
        ("folders\n    _, folders, files = next(os.walk(root))\n    found = files", "files"),
        ("all\n    parts = next(os.walk(root))\n    found = parts[1]", "folders"),
        ("all\n    parts = next(os.walk(root))\n    found = parts[2]", "files"),
    ],
)
def test_a_walk_that_is_left_with_its_first_folder_lists_what_is_taken_of_it(tmp_path, taken, what):
    text = f"import os\n\ndef listed(root):\n    found = {taken}\n    return [name.upper() for name in found]\n"
    (tmp_path / "main.py").write_text(text)
    result = run.run([str(tmp_path)], Settings(root=str(tmp_path), jobs=1, select=("TDL304",)))
    assert [finding.message.partition(" in no")[0] for finding in result.findings] == [f"`os.walk` returns {what}"]
