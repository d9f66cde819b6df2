"""What the user sees of a verification: its places, its progress, and what the runs start from."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from torchdet_lint.verifier.commands import terminal
from torchdet_lint.verifier.comparison.explain import Finding
from torchdet_lint.verifier.comparison.outcome import Comparison, Divergence, Evidence, Parting
from torchdet_lint.verifier.launch import standard
from torchdet_lint.verifier.trace import Site
from torchdet_lint.verifier.verification import machine, report
from torchdet_lint.verifier.verification.workspace import Workspace


@pytest.fixture
def repository(tmp_path, monkeypatch):
    (tmp_path / "sub/inner").mkdir(parents=True)
    for name in ("sub/bad.py", "sub/inner/net.py", "sub/a.ipynb", "top.py"):
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("bad.py", "sub/bad.py"),
        ("inner/net.py", "sub/inner/net.py"),
        ("a.ipynb#cell-3", "sub/a.ipynb#cell-3"),
        ("top.py", "top.py"),
        ("gone.py", "gone.py"),
        ("", ""),
        ("/usr/lib/python3/none.py", "/usr/lib/python3/none.py"),
    ],
)
def test_a_place_is_relative_to_the_working_folder(repository, name, seen):
    assert report.seen_from_here(name, repository / "sub") == seen


def test_from_the_folder_of_the_script_nothing_changes(repository, monkeypatch):
    monkeypatch.chdir(repository / "sub")
    assert report.seen_from_here("bad.py", repository / "sub") == "bad.py"
    assert report.seen_from_here("inner/net.py", repository / "sub") == "inner/net.py"
    assert report.seen_from_here(str(repository / "top.py"), repository / "sub") == str(repository / "top.py")


def outcome(site, *, forward=""):
    where = site._replace(forward_file=forward, forward_line=2) if forward else site
    item = Divergence(where, 0, "cause", "op", Evidence(inputs_equal=True, numbers_equal=True), other=site)
    parting = Parting(1, site, site, site, 1, 2, rejoined=True)
    return Comparison(
        identical=False, compared=2, a_records=2, b_records=2, differing=1, divergences=(item,), partings=(parting,),
        persistence="persistent", environment={},
    )  # fmt: skip


def test_annotations_and_sarif_attach_where_the_linters_do(repository, monkeypatch):
    """`verify sub/bad.py` from the repository's root: the linter says sub/bad.py, and so does the verifier."""
    finding = Finding("TDL402", "said", str(repository / "sub/bad.py"), 7)
    monkeypatch.setattr(report.explain, "lint", lambda *_, **__: (finding,))
    site = Site("aten.index_put_.default", "forward", "bad.py", 7, "main")
    told = report.report_on("pair", ("sub/bad.py",), [], outcome(site), (), repository / "sub", lint=True)
    assert "file=sub/bad.py,line=7," in machine.github(told)
    place = json.loads(machine.sarif(told))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "sub/bad.py"
    assert (told.first.other, told.first.finding.filename) == ("sub/bad.py:7", "sub/bad.py")
    assert told.first.rule == "TDL402"
    (parting,) = told.spread.partings
    assert {parting.a.file, parting.b.file, parting.after.file} == {"sub/bad.py"}


def test_a_gradient_is_told_with_its_forward_line_from_here(repository):
    site = Site("aten.mm", "backward", "inner/net.py", 3, "f", "aten.mm")
    told = report.report_on("pair", (), [], outcome(site, forward="bad.py"), (), repository / "sub", lint=False)
    assert (told.first.file, told.first.forward_file) == ("sub/inner/net.py", "sub/bad.py")


@pytest.mark.parametrize("when", ["before run A", "before run B"])
def test_a_file_that_goes_while_the_folder_is_copied_is_not_there(tmp_path, when):
    """A cache that another program empties meanwhile is no reason to run in the folder itself, nor to fail."""
    folder, room = tmp_path / "project", tmp_path / "room"
    (folder / "cache/inner").mkdir(parents=True)
    room.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    (folder / "cache/inner/missing_stubs").write_text("x")
    (folder / "cache/link").symlink_to("inner/missing_stubs")
    workspace = Workspace(folder, room)
    if when == "before run B":
        workspace.begin()
        assert (workspace.folder / "cache/inner/missing_stubs").exists()
    shutil.rmtree(folder / "cache")
    workspace.begin()
    assert not workspace.in_place
    assert (workspace.folder / "train.py").exists()
    assert not (workspace.folder / "cache/inner/missing_stubs").exists()


def piped(data, *, close=True):
    """A pipe with `data` in it, as standard input."""
    reading, writing = os.pipe()
    os.write(writing, data)
    if close:
        os.close(writing)
    return os.fdopen(reading, "rb"), writing


def test_what_comes_through_a_pipe_is_there_for_every_run(monkeypatch):
    stdin, _ = piped(b"3\n4\n")
    with stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        terminal.keep_piped_input()
        for _ in range(2):
            with standard.standard_input() as given:
                assert given.read() == b"3\n4\n"


def test_a_pipe_that_says_nothing_is_waited_for_no_longer_than_a_moment(monkeypatch):
    stdin, writing = piped(b"", close=False)
    with stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(terminal, "_PATIENCE", 0.01)
        terminal.keep_piped_input()
        with standard.standard_input() as given:
            assert given == subprocess.DEVNULL
    os.close(writing)


def test_a_search_of_many_runs_says_in_a_pipe_how_far_it_is(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: clock[0])
    for many, lines in ((True, ["run 3, 70 s so far", "run 4, 105 s so far"]), (False, [])):
        clock[0] = 100.0
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        with terminal.Progress(many=many) as progress:
            for name, seconds in (("A", 10), ("B", 10), ("A", 50), ("B", 35)):
                clock[0] += seconds
                progress(name, 5, 0)
                progress(name, 9, 0)
        said = sys.stderr.getvalue().splitlines()
        assert said == [f"torchdet-lint verify: {line}" for line in lines]
