"""A file gets its new content whole, or keeps the old one, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from torchdet_lint.cli.main import main
from torchdet_lint.engine import repair
from torchdet_lint.source import writing


def test_mode_is_kept(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o750)
    writing.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o7777 == 0o750
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.py"]


def test_symbolic_link_goes_on_pointing_to_the_file(tmp_path):
    (tmp_path / "below").mkdir()
    path = tmp_path / "below" / "a.py"
    path.write_bytes(b"old")
    link = tmp_path / "link.py"
    link.symlink_to("below/a.py")
    writing.replace(str(link), b"old", b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_file_with_two_names_is_fixed_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("x = 1  # noqa: TDL201\n")
    Path("b.py").symlink_to("a.py")
    assert main(["--isolated", "--no-cache", "--fix", "."]) == 0
    assert Path("a.py").read_text() == "x = 1\n"
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_owner_is_kept(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    writing.replace(str(path), b"old", b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_file_that_changed_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"newer")
    with pytest.raises(writing.WriteError, match=r"a\.py: not written: the file changed"):
        writing.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"newer"
    assert len(list(tmp_path.iterdir())) == 1


def test_read_only_file_is_left_alone(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(writing.WriteError, match="read-only"):
        writing.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"old"


def test_full_disk_leaves_the_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    write = os.write

    def half(handle, content):
        if len(content) > 2:
            return write(handle, content[:2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(writing.WriteError, match=r"a\.py: not written: no space left on device"):
        writing.replace(str(path), b"old", b"new content")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.py"]


@pytest.mark.parametrize(
    ("name", "short"), [("a.py", "a.py"), (84 * "\u5b57" + ".py", 60 * "\u5b57")], ids=["plain", "long"]
)
def test_what_a_killed_run_left_is_swept_away(tmp_path, name, short):
    """A name of 255 bytes leaves no room for an ending: that of the temporary file has a part of it."""
    path = tmp_path / name
    path.write_bytes(b"old")
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    dead = tmp_path / f".{short}.{process.pid}-0123456789abcdef.torchdet-tmp"
    alive = tmp_path / f".{short}.{os.getppid()}-0123456789abcdef.torchdet-tmp"
    other = tmp_path / f".b.py.{process.pid}-0123456789abcdef.torchdet-tmp"
    for left in (dead, alive, other):
        left.write_bytes(b"half")
    writing.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"new"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([alive.name, other.name, name])


def test_what_another_run_has_fixed_already_is_no_error(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"new")
    writing.replace(str(path), b"old", b"new")
    assert path.read_bytes() == b"new"


def test_what_was_left_of_a_file_of_our_own_is_swept_away(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    dead = tmp_path / f"a.json.{process.pid}-0123456789abcdef.part"
    alive = tmp_path / f"a.json.{os.getppid()}-0123456789abcdef.part"
    other = tmp_path / f"b.json.{process.pid}-0123456789abcdef.part"
    for left in (dead, alive, other):
        left.write_bytes(b"half")
    writing.put(str(tmp_path / "a.json"), b"new")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([alive.name, other.name, "a.json"])


def test_read_only_file_is_one_line_and_status_2(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "b.py"):
        Path(name).write_text("x = 1  # noqa: TDL201\n")
    Path("a.py").chmod(0o444)
    assert main(["--isolated", "--no-cache", "--fix", "."]) == 2
    out, err = capsys.readouterr()
    assert err == "torchdet-lint: error: a.py: not written: the file is read-only\n"
    assert "a.py:1:8: TDL002" in out
    assert "Fixed 1 finding:" in out
    assert Path("a.py").read_text() == "x = 1  # noqa: TDL201\n"
    assert Path("b.py").read_text() == "x = 1\n"


LIMITED = """\
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
from torchdet_lint.cli.main import main
sys.exit(main(["--isolated", "--no-cache", "--fix", "."]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is one of POSIX")
def test_file_that_the_system_does_not_let_grow_is_one_line_and_status_2(tmp_path):
    """As on a full disk, a write ends halfway: of two files the small one is written, the other one stays."""
    large = "x = 1  # noqa: TDL201\n" + "y = 1\n" * 2000
    (tmp_path / "a.py").write_text(large)
    (tmp_path / "b.py").write_text("x = 1  # noqa: TDL201\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(writing.__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "torchdet-lint: error: a.py: not written: file too large\n")
    assert (tmp_path / "a.py").read_text() == large
    assert (tmp_path / "b.py").read_text() == "x = 1\n"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.py", "b.py"]


FILES, KILLS = 12, 220


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes it forks")
def test_killed_at_any_moment_every_file_is_whole(tmp_path):
    """Processes that write a tree of files are killed at random moments; no file is ever half old, half new."""
    chooser = random.Random(0)
    states = [word * 3000 for word in (b"old ", b"new ")]
    for number in range(FILES):
        (tmp_path / f"file{number}.py").write_bytes(states[0])
    interrupted = 0
    duration = 0.0
    attempts = 0
    while interrupted < KILLS and attempts < 6 * KILLS:
        attempts += 1
        child = os.fork()
        if child == 0:
            os.chdir(tmp_path)
            flip = {}
            for path in sorted(tmp_path.glob("*.py")):
                data = path.read_bytes()
                flip[str(path)] = _change(data, states[0] if data == states[1] else states[1])
            os._exit(bool(repair.write(flip)))
        if not duration:
            start = time.perf_counter()
            os.waitpid(child, 0)
            duration = time.perf_counter() - start
            continue
        time.sleep(chooser.random() * min(duration, 0.1))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        interrupted += killed
        duration *= 1.05 if killed else 0.8  # how long a run takes changes with what else the machine does
        for path in tmp_path.glob("*.py"):
            assert path.read_bytes() in states
    assert interrupted == KILLS
    assert repair.write({str(path): _change(path.read_bytes(), b"last") for path in tmp_path.glob("*.py")}) == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"file{number}.py" for number in range(FILES))


def _change(old, new):
    return repair.Change(old, new, Counter())
