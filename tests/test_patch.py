"""Fixes put into a text: which go together, which wait, which are refused; and the patch that says the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from torchdet_lint.finding import Edit, Fix, Location
from torchdet_lint.fixes import patch
from torchdet_lint.source.decoding import decode


def edit(row, column, end_row, end_column, content, cell=None):
    return Edit(content, Location(row, column), Location(end_row, end_column), cell)


def fix(*edits):
    return Fix("safe", "", edits)


def applied(text, *fixes, path="a.py"):
    return patch.apply(decode(path, text if isinstance(text, bytes) else text.encode()), fixes)


def test_same_edit_of_two_fixes_is_made_once():
    helper = edit(1, 1, 1, 1, "import random\n")
    done = applied("f(1)\nf(2)\n", fix(helper, edit(1, 3, 1, 4, "a")), fix(helper, edit(2, 3, 2, 4, "b")))
    assert done.data == b"import random\nf(a)\nf(b)\n"
    assert done.applied == (0, 1)


def test_overlapping_fix_waits_as_a_whole():
    done = applied("f(12)\ng\n", fix(edit(1, 3, 1, 5, "a")), fix(edit(1, 4, 1, 5, "b"), edit(2, 1, 2, 2, "h")))
    assert done.data == b"f(a)\ng\n"
    assert (done.applied, done.waiting) == ((0,), (1,))


def test_insertion_beside_a_replacement_waits():
    done = applied("f(12)\n", fix(edit(1, 3, 1, 5, "a")), fix(edit(1, 5, 1, 5, ", b")))
    assert (done.data, done.waiting) == (b"f(a)\n", (1,))


def test_insertions_at_one_place_are_in_the_order_of_the_fixes():
    done = applied("f(1)\n", fix(edit(1, 4, 1, 4, ", a")), fix(edit(1, 4, 1, 4, ", b")))
    assert done.data == b"f(1, a, b)\n"


def test_lines_at_one_place_are_imports_then_seeds_then_definitions():
    blocks = [
        "\n\ndef g():\n    pass\n",
        "\ntorch.manual_seed(0)\n",
        "import torch\n",
        "\nrandom.seed(0)\n",
        "\nx = 1\n",
    ]
    done = applied("# a\nf()\n", *(fix(edit(2, 1, 2, 1, block)) for block in blocks))
    assert done.data.decode() == (
        "# a\nimport torch\n\nrandom.seed(0)\ntorch.manual_seed(0)\n\nx = 1\n\n\ndef g():\n    pass\nf()\n"
    )


def test_fix_that_breaks_the_syntax_is_refused_and_the_others_are_made():
    done = applied("f(1)\ng(1)\n", fix(edit(1, 3, 1, 4, "a b")), fix(edit(2, 3, 2, 4, "c")))
    assert done.data == b"f(1)\ng(c)\n"
    assert done.refused == {0: "the result would not parse"}


def test_fix_that_parses_alone_waits_for_one_that_breaks_the_same_line():
    done = applied("f(1)\n", fix(edit(1, 4, 1, 4, ",\n  a=2,\n")), fix(edit(1, 4, 1, 4, ",\n  b=3,\n")))
    assert (done.data, done.applied) == (b"f(1,\n  a=2,\n)\n", (0,))
    assert (done.waiting, done.refused) == ((1,), {})


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 and newer read this f-string")
def test_fix_keeps_to_the_syntax_that_the_running_python_reads():
    newer = 'f"{"a"}"'
    assert applied("f(1)\n", fix(edit(1, 3, 1, 4, newer))).refused == {0: "the result would not parse"}
    assert applied(f"f(1)\ng({newer})\n", fix(edit(1, 3, 1, 4, "2"))).data.decode() == f"f(2)\ng({newer})\n"


def test_fix_that_drops_a_comment_is_refused():
    done = applied("f(1)  # why\n", fix(edit(1, 3, 1, 12, "2)")))
    assert done.data == b"f(1)  # why\n"
    assert done.refused == {0: "it would drop the comment `# why`"}


def test_fix_that_takes_out_a_comment_may_do_that():
    assert applied("f(1)  # noqa: A1\n", fix(edit(1, 5, 1, 17, ""))).data == b"f(1)\n"


def test_edit_outside_the_file_is_refused():
    assert applied("f(1)\n", fix(edit(4, 1, 4, 1, "x"))).refused == {0: "its edits do not fit the file"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_everything_else_stays_byte_for_byte(end, mark):
    text = f"# caf\u00e9{end}\fx = '\u2028' + f(1){end}\ty{end}".replace("\ty", "if x:\n\ty".replace("\n", end))
    done = applied(mark + text.encode(), fix(edit(2, 14, 2, 15, "a")))
    assert done.data == mark + text.replace("f(1)", "f(a)").encode()


def test_declared_encoding_is_kept():
    text = "# -*- coding: latin-1 -*-\nx = '\u00e9'; f(1)\n"
    done = applied(text.encode("latin-1"), fix(edit(2, 12, 2, 13, "a")))
    assert done.data == text.replace("f(1)", "f(a)").encode("latin-1")


NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# Title\n", "caf\u00e9"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch"], "outputs": [], "metadata": {}},
        {"cell_type": "code", "source": "x = f(1)\n!ls", "outputs": [{"text": "1 \u2192 2"}], "metadata": {}},
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("plain", [True, False])
def test_notebook_is_edited_in_its_cells(indent, plain):
    raw = json.dumps(NOTEBOOK, indent=indent, ensure_ascii=plain).encode()
    lines = edit(2, len("import torch") + 1, 2, len("import torch") + 1, "\nimport random", 2)
    done = applied(raw, fix(lines, edit(1, 7, 1, 8, "2", 3)), path="a.ipynb")
    expected = json.loads(raw)
    expected["cells"][1]["source"] = ["%matplotlib inline\n", "import torch\n", "import random"]
    expected["cells"][2]["source"] = "x = f(2)\n!ls"
    assert json.loads(done.data) == expected
    removed = [line for line in raw.splitlines() if line not in done.data.splitlines()]
    assert indent is None or len(removed) == 2


@pytest.mark.parametrize(
    "name", ["a.py", "with space.py", "caf\u00e9.py", 'quo"te\\.py', "tab\there.py", "below/deeper/a.py"]
)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\nb\n", b"a\nc\n"),
        (b"a\nb", b"a\nc"),
        (b"a\nb", b"a\nb\n"),
        (b"a\nb\n", b"a\nb"),
        (b"a\r\nb\r\n", b"a\r\nc\r\nd\r\n"),
        (b"a\rb\r", b"a\rc\r"),
        (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfc\nb\n"),
        (b"\xe9\nb\x0cc\xe2\x80\xa8\nd\n", b"\xe9\nb\x0ce\xe2\x80\xa8\nd\n"),
        (b"", b"a\n"),
        (b"\n".join(b"%d" % number for number in range(99)), b"\n".join(b"%d" % (number // 9) for number in range(99))),
    ],
)
def test_patch_is_taken_by_git(name, old, new, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(old)
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"], input=patch.diff(name, old, new), check=True, capture_output=True
    )
    assert path.read_bytes() == new


def test_patch_is_relative_to_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a.py").write_bytes(b"a\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path / "below")
    for path in ("a.py", str(tmp_path / "below" / "a.py")):
        Path("a.py").write_bytes(b"a\n")
        subprocess.run(["git", "apply"], input=patch.diff(path, b"a\n", b"b\n"), check=True, capture_output=True)
        assert Path("a.py").read_bytes() == b"b\n"


def test_nothing_changed_is_an_empty_patch():
    assert patch.diff("a.py", b"a", b"a") == b""
