"""What programs do to those who watch them: each ends with a true verdict or one clear line, and leaves no process."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
psutil = pytest.importorskip("psutil")

from torchdet_lint.verifier import Program, cli, record, verify_program  # noqa: E402

if not hasattr(os, "fork"):
    pytest.skip("needs os.fork", allow_module_level=True)

STEADY = "import os, sys, signal, time, torch\ntorch.manual_seed(0)\nprint(torch.rand(3))\n"
PROGRAMS = {
    "crashes in Python": (STEADY + "1 / 0", 3, "run A ended with exit status 1: ZeroDivisionError"),
    "crashes in C": (STEADY + "import ctypes; ctypes.string_at(0)", 3, "run A was ended by SIGSEGV"),
    "crashes only in run B": (
        STEADY
        + "p = os.path.join(sys.path[0], 'seen')\nif os.path.exists(p): raise SystemExit(9)\nopen(p, 'w').close()",
        1,
        "run B ended with exit status 9",
    ),
    "hangs": (STEADY + "while True: time.sleep(9)", 3, "run A did not end within 5 s"),
    "hangs and refuses to end": (
        STEADY + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(9)",
        3,
        "run A did not end within 5 s",
    ),
    "is killed": (STEADY + "os.kill(os.getpid(), 9)", 3, "run A was ended by SIGKILL"),
    "forks a child that stays, and a daemon": (
        STEADY
        + "if not os.fork():\n    time.sleep(600)\n"
        + "if not os.fork():\n    os.setsid()\n    if not os.fork(): time.sleep(600)\n    os._exit(0)",
        0,
        "processes that the program left behind were ended",
    ),
    "closes every descriptor": (STEADY + "os.closerange(3, 256); torch.rand(2)", 2, "the trace could not be written"),
    "leaves by os._exit, unseeded": (
        "import os, torch\nx = torch.rand(9).sum()\nos._exit(0)",
        1,
        "1 TDL101 unseeded-torch program.py:2",
    ),
    "re-seeds itself": (STEADY + "torch.seed(); torch.rand(3)", 1, "1 TDL105 entropy-seed program.py:4"),
    "replaces os._exit and hooks": (
        STEADY + "os._exit = None; sys.excepthook = None; import atexit; atexit._clear()",
        0,
        "the recording ends early",
    ),
}
ABORTED = """
import atexit, os, pathlib, sys
def end():
    if os.path.exists(seen := os.environ["SEEN"]) < times:
        pathlib.Path(seen).touch()
        os.write(2, b"terminate called without an active exception\\n")
        os.abort()
times = 1
atexit.register(end)
"""
HABITS = (
    STEADY
    + """
import io
if not (pid := os.fork()):
    torch.rand(2)
    os.abort()
os.waitpid(pid, 0)
torch.manual_seed(5)
torch.rand(3)
sys.stdout.buffer.write(bytes(range(256)))
kept, sys.stdout = sys.stdout, io.StringIO()
print(1)
kept.close()
os.close(1)
os.close(2)
"""
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that(tmp_path, capfd, name):
    source, status, says = PROGRAMS[name]
    script = tmp_path / "program.py"
    script.write_text(source)
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    assert cli.main(["verify", "--no-lint", "--timeout", "5" if "within" in says else "240", str(script)]) == status
    out, err = capfd.readouterr()
    assert says in " ".join((out + err).split())
    if status in (2, 3):
        assert len((out + err).splitlines()) == 1
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before
    assert not _running(script)


def test_an_abort_as_python_ends_is_no_difference(tmp_path, monkeypatch, capfd):
    """What is registered before torch is imported runs after the recorder has closed the trace."""
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    script = tmp_path / "here" / "program.py"
    script.parent.mkdir()
    monkeypatch.chdir(script.parent)
    for source, status, says in (
        (ABORTED + STEADY, 0, "run A was made twice: the first time a process was aborted after its last op"),
        (ABORTED.replace("times = 1", "times = 2") + STEADY, 3, "run A was ended by SIGABRT: terminate called"),
        (STEADY + ABORTED + "end()", 3, "run A was ended by SIGABRT: terminate called"),
    ):
        (tmp_path / "seen").unlink(missing_ok=True)
        script.write_text(source)
        assert cli.main(["verify", "--no-lint", "--no-values", str(script)]) == status
        assert says in " ".join(capfd.readouterr().out.split())


@pytest.mark.usefixtures("forks")
def test_bad_habits_beside_a_link_to_itself_are_no_obstacle(tmp_path, monkeypatch, capsys):
    """A child that crashes, the same seed again, binary output, another `sys.stdout`, closed streams."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "program.py").write_text(HABITS)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["verify", "--no-lint", "program.py"]) == 0
    assert "are equal, bit for bit" in " ".join(capsys.readouterr().out.split())


def _running(script: Path) -> list[int]:
    """Processes that still have the script on their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(script) in entry.read_bytes() and int(entry.parent.name) != os.getpid():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_FSIZE")
@pytest.mark.usefixtures("forks")
def test_a_disk_that_fills_up_leaves_the_program_alone(tmp_path, capfd):
    source = "import resource, torch\nresource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))\n"
    script = tmp_path / "program.py"
    script.write_text(source + "for n in range(2000): torch.ones(2)\nprint('ended well')\n")
    assert cli.main(["record", "-o", str(tmp_path / "a.tdtrace"), str(script)]) == 2
    out, err = capfd.readouterr()
    assert out == "ended well\n"
    assert err.count("\n") == 1
    assert "the trace could not be written" in err


@pytest.mark.usefixtures("forks")
def test_a_reason_that_a_full_disk_swallowed_still_fails_the_recording(tmp_path):
    path = tmp_path / "a.tdtrace"
    source = "import os, sys, torch\nopen(sys.argv[1] + '.error', 'w').close()\n"
    (tmp_path / "program.py").write_text(source)
    assert cli.main(["record", "-o", str(path), str(tmp_path / "program.py"), str(path)]) == 2


@pytest.mark.parametrize("command", [["verify"], ["verify", "--fix"], ["run"], ["record", "-o", "a.tdtrace"]])
def test_a_request_to_end_ends_the_program_too(tmp_path, command):
    script = tmp_path / "program.py"
    ready = tmp_path / "ready"
    script.write_text(f"import time\nopen({str(ready)!r}, 'w')\nwhile True: time.sleep(1)\n")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-m", "torchdet_lint", *command, str(script)]
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    # Without a recording to keep its streams aside for, the program says by itself that it was interrupted.
    assert len(said.splitlines()) <= (1 if "verify" in command else 5)
    assert "torchdet_lint" not in said
    assert not _running(script)
    assert not list(tmp_path.glob("torchdet-*"))


def test_a_list_of_which_only_the_head_is_read_is_no_error(tmp_path):
    trace = tmp_path / "a.tdtrace"
    with record(trace):
        for _ in range(4000):
            torch.ones(2).mul(1)
    listing = f"{sys.executable} -m torchdet_lint show --op mul --limit 4000 {trace} | head -1"
    told = subprocess.run(["bash", "-o", "pipefail", "-c", listing], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout


def test_a_run_that_failed_on_a_full_disk_is_told_so(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("raise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path)
    usage = shutil.disk_usage(tmp_path)
    told = verify_program(Program("script", "train.py", ())).failure
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4096))
    full = verify_program(Program("script", "train.py", ())).failure
    assert "no space" not in told
    assert re.fullmatch(rf"{re.escape(told)}; no space is left in \S+, where a verification keeps its files .*", full)
