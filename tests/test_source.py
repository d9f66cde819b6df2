"""Bytes -> text, notebooks -> cells and back, folders -> files."""

from __future__ import annotations

import codecs
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from torchdet_lint.source.decoding import SourceFault, decode
from torchdet_lint.source.discovery import Exclusion, discover
from torchdet_lint.source.lines import comments, split_lines

if TYPE_CHECKING:
    from pathlib import Path


# ------------------------------------------------------------------------------------------------------------- decoding


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"x = 1\n", "x = 1\n", "utf-8"),
        (b"", "", "utf-8"),
        ("# é\r\ny = 2\r".encode(), "# é\r\ny = 2\r", "utf-8"),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "# -*- coding: latin-1 -*-\nx = 'é'\n", "iso8859-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n'\x80'\n", None, "cp1252"),
        (b"x = 1\n# coding: latin-1\n", None, "utf-8"),
        (b"\n\n# coding: nonsense\n", None, "utf-8"),
        (b"x = 1\x0c\ny = 2\n", "x = 1\x0c\ny = 2\n", "utf-8"),
    ],
)
def test_text_and_encoding(data: bytes, text: str | None, encoding: str) -> None:
    source = decode("a.py", data)
    assert source.encoding == encoding
    assert source.text == (data.decode(encoding) if text is None else text)
    assert source.encoded(source.text) == data


def test_a_byte_order_mark_is_kept_for_writing() -> None:
    data = codecs.BOM_UTF8 + b"x = 1\n"
    source = decode("a.py", data)
    assert (source.text, source.bom) == ("x = 1\n", True)
    assert source.encoded(source.text) == data


@pytest.mark.parametrize(
    ("data", "row", "column", "words"),
    [
        (b"x = 1\ny = '\xff'\n", 2, 6, "byte 0xff is not utf-8"),
        (b"x = 1\n\0", 2, 1, "NUL"),
        (b"# coding: nonsense\n", 1, 1, "unknown encoding 'nonsense'"),
        (b"# coding: base64\n", 1, 1, "not a text encoding"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1, 1, "UTF-8 mark"),
        (codecs.BOM_UTF16_LE + "x = 1\n".encode("utf-16-le"), 1, 1, "UTF-16"),
    ],
)
def test_no_text(data: bytes, row: int, column: int, words: str) -> None:
    with pytest.raises(SourceFault, match=words) as caught:
        decode("a.py", data)
    assert (caught.value.row, caught.value.column) == (row, column)


def test_lines_end_where_python_ends_them() -> None:
    assert split_lines("a\x0cb\r\nc\rd\n\x85e\u2028f") == ["a\x0cb\r\n", "c\r", "d\n", "\x85e\u2028f"]


def test_comments_are_no_strings() -> None:
    text = 'x = \'# no\'  # one\n"""\n# no\n"""\ny = \'it\\\'s # no\'  # two\n'
    assert [comment for _, comment in comments(text)] == ["# one", "# two"]
    assert all(text.startswith(comment, offset) for offset, comment in comments(text))


# ------------------------------------------------------------------------------------------------------------ notebooks


def notebook(*cells: tuple[str, Any], **metadata: Any) -> str:
    table = {
        "cells": [{"cell_type": kind, "metadata": {}, "source": source} for kind, source in cells],
        "metadata": metadata,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(table, indent=1)


def test_cells_are_joined_and_rows_lead_back() -> None:
    raw = notebook(
        ("markdown", "# hi"), ("code", ["a = 1\n", "b = 2"]), ("code", ""), ("raw", "x"), ("code", "c = 3\n")
    )
    source = decode("n.ipynb", raw.encode())
    assert source.text == "a = 1\nb = 2\n\nc = 3\n"
    assert [source.place(row) for row in (1, 2, 3, 4)] == [(2, 1), (2, 2), (3, 1), (5, 1)]
    assert [source.row(*source.place(row)) for row in (1, 2, 3, 4)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("%matplotlib inline\nx = 1", "# %matplotlib inline\nx = 1"),
        ("!pip install torch \\\n  numpy\nx = 1", "# !pip install torch \\\n#   numpy\nx = 1"),
        ("if x:\n    !ls\n    y = 1", "if x:\n    pass  # !ls\n    y = 1"),
        ("%%bash\necho hi\n\nls", "# %%bash\n# echo hi\n\n# ls"),
        ("%%time\nx = 1", "# %%time\nx = 1"),
        ("files = !ls\nx = 1", "# files = !ls\nx = 1"),
        ("t = %timeit -o f()\n", "# t = %timeit -o f()\n"),
        ("torch.seed?\n", "# torch.seed?\n"),
        ("x = (a\n% b)\n", "x = (a\n% b)\n"),
        ('s = """\n!not\n%s\n""" % 3\n', 's = """\n!not\n%s\n""" % 3\n'),
        ("y = x != 3\n", "y = x != 3\n"),
        ("x = 7 % 2\n", "x = 7 % 2\n"),
        ("pip install torch\nx = 1", "# pip install torch\nx = 1"),
        ("cd data/\nls -la\ncd ..", "# cd data/\n# ls -la\n# cd .."),
        (
            "matplotlib inline\nload_ext autoreload\nautoreload 2",
            "# matplotlib inline\n# load_ext autoreload\n# autoreload 2",
        ),
        (
            "run = 3\ncd in x\nls.sort()\nrm(x)\nif x:\n    cat - 1",
            "run = 3\ncd in x\nls.sort()\nrm(x)\nif x:\n    cat - 1",
        ),
        ("mkdir = f(\npip , ls if x else 3)\n", "mkdir = f(\npip , ls if x else 3)\n"),
        ("x = 7 \\\n% 2\n", "x = 7 \\\n% 2\n"),
    ],
)
def test_magics_become_comments_and_rows_stay(cell: str, code: str) -> None:
    text = decode("n.ipynb", notebook(("code", cell)).encode()).text
    assert text.rstrip("\n") == code.rstrip("\n")
    assert text.count("\n") == len(split_lines(cell))


def test_another_language_has_no_cells() -> None:
    raw = notebook(("code", "x <- 1"), kernelspec={"language": "R", "name": "ir"})
    assert decode("n.ipynb", raw.encode()).text == ""


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("{", "not valid JSON"),
        ("{} x", "not valid JSON"),
        ('{"cells": ' + "[" * 100_000, "nested too deeply"),
        ("[]", "not a notebook of format 4"),
        ('{"cells": 3}', "not a notebook of format 4"),
        ('{"cells": [{"cell_type": "code", "source": 3}]}', "not a notebook of format 4: a cell's `source`"),
        (
            '{"nbformat": 3, "worksheets": [{"cells": []}]}',
            "not a notebook of format 4: it has `worksheets`, as format 3",
        ),
        ("{}", "not a notebook of format 4: it has no `cells`"),
    ],
    ids=["open", "two", "deep", "array", "number", "source", "old", "empty"],
)
def test_what_is_no_notebook_is_a_fault(raw: str, said: str) -> None:
    with pytest.raises(SourceFault, match=said):
        decode("n.ipynb", raw.encode())


def test_writing_a_cell_keeps_the_rest_byte_for_byte() -> None:
    raw = (
        '{ "nbformat":4,\n"cells" : [ {"source": ["x = \\u00e9\\n",\n      "y = 1\\n" ,\n "z = 2"],'
        '"cell_type":"code"},\n'
        '  {"cell_type": "code", "source": "q = 1", "outputs": [1.0,   2e3]}\t]  }\n\n'
    )
    source = decode("n.ipynb", raw.encode())
    assert source.with_cells({1: source.cells[0].text}).decode() == raw
    changed = source.with_cells({1: "x = é\ny = 11\nz = 2", 2: "q = 2"}).decode()
    assert changed == raw.replace('"y = 1\\n"', '"y = 11\\n"').replace('"q = 1"', '"q = 2"')
    grown = source.with_cells({1: "x = é\nnew = 0\ny = 1\nz = 2"}).decode()
    assert json.loads(grown)["cells"][0]["source"] == ["x = é\n", "new = 0\n", "y = 1\n", "z = 2"]
    assert grown.endswith(raw[raw.index("]") :])


# ------------------------------------------------------------------------------------------------------------ discovery


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def found(*paths: str, **options: Any) -> list[str]:
    files, errors = discover(paths, Exclusion(**options))
    assert errors == []
    return [file.path.replace(os.sep, "/") for file in files]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git/info").mkdir(parents=True)
    return tmp_path


def test_which_files(tree: Path) -> None:
    make(tree, "b.py", "a/c.ipynb", "a/d.pyi", "a/e.txt", "node_modules/x.py", ".venv/y.py", "build.py", "a/z.pyw")
    assert found(".") == ["a/c.ipynb", "a/d.pyi", "a/z.pyw", "b.py", "build.py"]
    assert found("b.py", "a/e.txt", "./b.py", "node_modules/x.py") == ["a/e.txt", "b.py", "node_modules/x.py"]
    assert found("a", str(tree / "a")) == [str(tree / "a/c.ipynb"), str(tree / "a/d.pyi"), str(tree / "a/z.pyw"),
                                           "a/c.ipynb", "a/d.pyi", "a/z.pyw"]  # fmt: skip


def test_gitignore_as_git_reads_it(tree: Path) -> None:
    make(
        tree,
        "a.py",
        "gen/a.py",
        "gen/keep.py",
        "sub/a.py",
        "sub/b.py",
        "sub/deep/a.py",
        "only/top.py",
        "sub/only/in.py",
        "x.py",
    )
    (tree / ".gitignore").write_text("# comment\n/gen/*\n!/gen/keep.py\n/only\n")
    (tree / "sub/.gitignore").write_text("a.py\n!deep/a.py\n")
    (tree / ".git/info/exclude").write_text("x.py\n")
    assert found(".") == ["a.py", "gen/keep.py", "sub/b.py", "sub/deep/a.py", "sub/only/in.py"]
    assert found("sub") == ["sub/b.py", "sub/deep/a.py", "sub/only/in.py"]
    assert found(".", gitignore=False)[:2] == ["a.py", "gen/a.py"]
    assert found("x.py", "gen/a.py") == ["gen/a.py", "x.py"]


def test_exclude_is_relative_to_the_project(tree: Path) -> None:
    make(tree, "a.py", "old/b.py", "new/old/c.py", "new/d_gen.py")
    assert found(".", root=str(tree), patterns=("/old", "*_gen.py")) == ["a.py", "new/old/c.py"]
    assert found("new", root=str(tree), patterns=("old/",)) == ["new/d_gen.py"]


def test_links_loops_and_odd_names(tree: Path) -> None:
    make(tree, "real/a.py", "x.py/inside.py")
    (tree / "loop").symlink_to(tree)
    (tree / "link.py").symlink_to(tree / "real/a.py")
    (tree / "broken.py").symlink_to(tree / "gone.py")
    os.mkfifo(tree / "pipe.py")
    assert found(".") == ["real/a.py", "x.py/inside.py"]
    assert found(".", "link.py") == ["real/a.py", "x.py/inside.py"]
    (tree / "again.py").symlink_to(tree / "link.py")
    assert found("link.py", "again.py") == ["again.py"]


def test_a_path_that_is_not_there_is_one_line(tree: Path) -> None:
    make(tree, "a.py")
    (tree / "self.py").symlink_to(tree / "self.py")
    files, errors = discover(["gone.py", "a.py", "self.py"], Exclusion())
    assert [file.path for file in files] == ["a.py"]
    assert errors == ["gone.py: no such file or directory", "self.py: too many levels of symbolic links"]


def test_a_cell_that_is_indented_as_a_whole() -> None:
    """IPython takes the indentation of the first line from every line."""
    lines = ["\n", "    import torch\n", "    if x:\n", "        y = 1\n", "  \n", "z = 2"]
    raw = json.dumps({"cells": [{"cell_type": "code", "source": ["a = 0"]}, {"cell_type": "code", "source": lines}]})
    source = decode("n.ipynb", raw.encode())
    assert source.text == "a = 0\n\nimport torch\nif x:\n    y = 1\n  \nz = 2\n"
    assert [source.shift(row) for row in (1, 2, 3, 5)] == [0, 4, 4, 4]


@pytest.mark.parametrize("line", ["!", "\\", "[z-a]"])
def test_a_line_that_is_no_pattern_ignores_nothing(tree: Path, line: str) -> None:
    make(tree, "a.py", "only.py")
    (tree / ".gitignore").write_text(f"{line}\n/only.py\n")
    assert found(".") == ["a.py"]
