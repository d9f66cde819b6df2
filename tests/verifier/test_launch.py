from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from torchdet_lint.verifier.launch import processes
from torchdet_lint.verifier.launch.launch import LaunchError, Program, run_child

SHOW = """
import json, os, sys
print(json.dumps([sys.argv, sys.path[0], __name__, os.getcwd(), globals().get("__file__"), sys.stdin.read(),
    sorted(vars(sys.modules["__main__"]))]))
"""


def write(folder: Path, name: str, source: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return path


def output(program, folder, **more):
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        result = run_child(program, stdout=out, stderr=err, stdin=subprocess.DEVNULL, **more)
    return result, (folder / "out").read_bytes(), (folder / "err").read_text()


def plainly(words, folder):
    return subprocess.run(
        [sys.executable, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )


@pytest.mark.parametrize(
    "words",
    [
        ["show.py", "a", "--b", "-c=1"],
        ["deep/show.py"],
        ["-m", "show", "--x"],
        ["-m", "package.tool", "1"],
        ["folder"],
    ],
)
def test_a_child_is_what_python_would_run(tmp_path, words):
    for name in ("show.py", "deep/show.py", "package/tool.py", "folder/__main__.py"):
        write(tmp_path, name, SHOW)
    write(tmp_path, "package/__init__.py", "")
    with monkey_directory(tmp_path):
        program = Program.parse(words)
        result, out, _ = output(program, tmp_path)
        assert result.ok
        assert json.loads(out) == json.loads(plainly(words, tmp_path).stdout)


def monkey_directory(path):
    import contextlib

    @contextlib.contextmanager
    def inside():
        before = Path.cwd()
        os.chdir(path)
        try:
            yield
        finally:
            os.chdir(before)

    return inside()


def test_classes_of_the_program_can_be_pickled_in_spawned_processes(tmp_path):
    source = """
import multiprocessing, sys

class Item:
    pass

def work(item):
    sys.exit(7 if type(item).__name__ == "Item" else 1)

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work, args=(Item(),))
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""
    script = write(tmp_path, "spawns.py", source)
    assert output(Program("script", str(script)), tmp_path)[0].returncode == 7


@pytest.mark.parametrize(
    ("source", "status", "code"),
    [
        ("pass", "finished", 0),
        ("import sys; sys.exit(4)", "failed", 4),
        ("import sys; sys.exit('no')", "failed", 1),
        ("1/0", "failed", 1),
        ("import os; os._exit(9)", "failed", 9),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal", -9),
        ("import ctypes; ctypes.string_at(0)", "signal", -11),
        ("def f(:", "failed", 1),
    ],
)
def test_how_it_ended_is_told(tmp_path, source, status, code):
    script = write(tmp_path, "ends.py", source)
    result, _, _ = output(Program("script", str(script)), tmp_path)
    assert (result.status, result.returncode) == (status, code)


def test_the_traceback_is_the_programs_own(tmp_path):
    script = write(tmp_path, "fails.py", "def f():\n    raise KeyError('gone')\n\nf()\n")
    _, _, err = output(Program("script", str(script)), tmp_path)
    assert err == plainly([str(script)], tmp_path).stderr.decode()


def test_binary_output_passes_untouched(tmp_path):
    script = write(tmp_path, "binary.py", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 9)")
    assert output(Program("script", str(script)), tmp_path)[1] == bytes(range(256)) * 9


def test_a_program_that_hangs_is_ended(tmp_path):
    script = write(tmp_path, "hangs.py", "import time\nwhile True: time.sleep(1)")
    result, _, _ = output(Program("script", str(script)), tmp_path, timeout=0.5)
    assert result.status == "timeout"
    assert result.returncode == -signal.SIGTERM


def test_a_program_that_ignores_the_request_is_killed(tmp_path):
    source = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('deaf', 'w')\nwhile True: pass"
    program = Program("script", str(write(tmp_path, "deaf.py", source)), directory=str(tmp_path))
    # A busy machine may need longer to come to the line that ignores it.
    for timeout in (0.5, 5, 50):
        result, _, _ = output(program, tmp_path, timeout=timeout)
        if (tmp_path / "deaf").exists():
            break
    assert result.status == "timeout"
    assert result.returncode == -signal.SIGKILL


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans are adopted on Linux only")
@pytest.mark.parametrize("session", ["", "os.setsid()"])
def test_no_process_is_left_behind(tmp_path, session):
    source = f"""
import os, time
for _ in range(2):
    if not os.fork():
        {session or "pass"}
        if not os.fork():
            time.sleep(300)
        time.sleep(300)
open("pids", "w").write("")
"""
    script = write(tmp_path, "leaves.py", source)
    result, _, _ = output(Program("script", str(script), directory=str(tmp_path)), tmp_path)
    assert result.ok
    assert result.strays == 4
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    assert str(script) not in running


def driven(folder: Path, source: str) -> subprocess.Popen[bytes]:
    """A process that runs a program and prints how it ended, once that program has made the file `ready`."""
    script = write(folder, "waits.py", source)
    driver = (
        "from torchdet_lint.verifier.launch.launch import Program, run_child\n"
        f"result = run_child(Program('script', {str(script)!r}))\n"
        "print(result.status)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", driver],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # A job in the background ignores the signal, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until(lambda: (folder / "ready").exists())
    return process


def until(true):
    deadline = time.monotonic() + 60
    while not true() and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_the_program_too(tmp_path):
    process = driven(tmp_path, "import time\nopen('ready', 'w')\nwhile True: time.sleep(1)")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0].strip() == b"interrupted"
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    assert str(tmp_path / "waits.py") not in running


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_program_whose_verifier_is_killed_ends_in_its_own_way_and_what_it_started_with_it(tmp_path):
    source = """
import os, signal, subprocess, sys, time

def end(*_):
    open("ended", "w")
    sys.exit()

rank = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(90)"])
deaf = os.fork()
if not deaf:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open("ready", "w").write(f"{os.getpid()} {rank.pid}")
    time.sleep(90)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
time.sleep(90)
"""
    process = driven(tmp_path, source)
    until((tmp_path / "ready").read_text)
    left = [int(word) for word in (tmp_path / "ready").read_text().split()]
    process.kill()
    until(lambda: (tmp_path / "ended").exists() and not any(map(is_running, left)))
    assert (tmp_path / "ended").exists()
    assert [pid for pid in left if is_running(pid)] == []


def is_running(pid):
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(told.strip()) and not told.startswith("Z")


@pytest.mark.skipif(os.name != "posix", reason="ps")
def test_children_are_found_without_proc(tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process.pid in processes._children_by_ps(os.getpid())
        process.communicate(b"\n")


def test_addresses_are_the_same_in_every_run_where_the_system_allows_that(tmp_path):
    with processes.fixed_addresses() as allowed:
        pass
    if not allowed:
        pytest.skip("the system does not allow it")
    program = Program("script", str(write(tmp_path, "where.py", "import sys\nprint(id(object()), id(sys))")))
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    told = []
    for fixed in (True, True, False):
        with (tmp_path / "out").open("wb") as out:
            run_child(program, environment=environment, stdout=out, same_addresses=fixed)
        told.append((tmp_path / "out").read_text())
    assert told[0] == told[1] != told[2]


def test_a_notebook_runs_cell_by_cell(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# title"]},
        {
            "cell_type": "code",
            "source": ["%matplotlib inline\n", "!pip list\n", "a = 1\n", "for i in range(2):\n", "    a += i"],
        },
        {"cell_type": "code", "source": ["%%bash\n", "rm -rf something"]},
        {"cell_type": "code", "source": ["import sys\n", "print(a, __name__, sys.argv[1:])"]},
        {"cell_type": "code", "source": "files = !ls\nwhere = %pwd\nimport asyncio\nawait asyncio.sleep(0)\nprint?"},
        {"cell_type": "code", "source": "%%time\nawait asyncio.sleep(0)\nprint('on')"},
        {"cell_type": "code", "source": ["print(undefined)"]},
    ]
    notebook = write(tmp_path, "book.ipynb", json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}))
    result, out, err = output(Program.parse([str(notebook), "x"]), tmp_path)
    assert out.split() == b"2 __main__ ['x'] on".split()
    assert result.returncode == 1
    assert 'book.ipynb#cell-7", line 1' in err


@pytest.mark.parametrize(
    ("words", "says"), [([], "which program"), (["-m"], "-m needs"), (["nowhere.py"], "nowhere.py: no such file")]
)
def test_what_cannot_be_run_is_one_line(words, says):
    with pytest.raises(LaunchError, match=says) as raised:
        Program.parse(words)
    assert "\n" not in str(raised.value)


def test_an_interpreter_that_is_missing_is_one_line(tmp_path):
    script = write(tmp_path, "a.py", "")
    with pytest.raises(LaunchError, match="cannot be started"):
        run_child(Program("script", str(script), python=str(tmp_path / "nopython")))


def test_a_tick_comes_while_it_runs(tmp_path):
    script = write(tmp_path, "sleeps.py", "import time; time.sleep(0.5)")
    ticks: list[int] = []
    output(Program("script", str(script)), tmp_path, tick=lambda: ticks.append(threading.get_ident()))
    assert len(ticks) >= 2


VERSION = ".".join(map(str, sys.version_info[:2]))


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["python", "-u", "x.py", "-v"], ("-u",)),
        ([f"python{VERSION}", "x.py", "-v"], ()),
        (["python3", "-W", "error", "-X", "dev", "-OO", "x.py", "-v"], ("-W", "error", "-X", "dev", "-OO")),
        (["uv", "run", "x.py", "-v"], ()),
        (["--", "uv", "run", "python", "-Wignore", "x.py", "-v"], ("-Wignore",)),
        ([sys.executable, "-B", "x.py", "-v"], ("-B",)),
    ],
)
def test_a_program_may_be_written_after_its_interpreter(tmp_path, monkeypatch, words, flags):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").touch()
    program = Program.parse(words)
    assert (program.kind, program.target, program.arguments, program.flags) == ("script", "x.py", ("-v",), flags)
    assert Program.parse(program.words) == program


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["python2.7", "x.py"], "not the interpreter that runs torchdet-lint"),
        (["python", "-c", "print(1)"], "not a flag"),
        (["python", "-I", "x.py"], "not a flag"),
        (["uv", "run", "--with", "torch", "x.py"], "options of uv"),
    ],
)
def test_what_would_be_another_run_is_refused_in_one_line(tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").touch()
    with pytest.raises(LaunchError, match=told) as raised:
        Program.parse(words)
    assert "\n" not in str(raised.value)


def test_another_interpreters_path_is_never_replaced_by_ours(tmp_path):
    other = tmp_path / "bin" / "python"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    (tmp_path / "x.py").touch()
    with pytest.raises(LaunchError, match="not the interpreter"):
        Program.parse([str(other), str(tmp_path / "x.py")])


@pytest.mark.parametrize(
    ("words", "module", "arguments"),
    [
        (["torchrun", "--nnodes=1", "a.py", "x"], "torch.distributed.run", ("--nnodes=1", "a.py", "x")),
        (["--", "torchrun", "a.py"], "torch.distributed.run", ("a.py",)),
        (["uv", "run", "torchrun", "a.py"], "torch.distributed.run", ("a.py",)),
        ([str(Path(sys.executable).parent / "torchrun"), "a.py"], "torch.distributed.run", ("a.py",)),
        (["accelerate", "launch", "--cpu", "a.py"], "accelerate.commands.launch", ("--cpu", "a.py")),
        (["deepspeed", "--num_gpus=2", "a.py"], "deepspeed.launcher.runner", ("--num_gpus=2", "a.py")),
    ],
)  # fmt: skip
def test_a_launcher_is_run_as_its_module(words, module, arguments):
    program = Program.parse(words)
    assert (program.kind, program.target, program.arguments) == ("module", module, arguments)


@pytest.mark.parametrize(
    ("content", "taken"),
    [("#!/env/bin/python3.11\nimport tune\n", True), ("#!/bin/sh\nexec tune\n", False), ("\x7fELF python", False)],
)
def test_a_command_that_a_package_installed_is_its_script(tmp_path, monkeypatch, content, taken):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tune").write_text(content)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.chdir(tmp_path)
    if not taken:
        with pytest.raises(LaunchError, match="tune: no such file"):
            Program.parse(["tune", "run"])
        return
    program = Program.parse(["tune", "run", "--nproc=2"])
    assert (program.kind, program.target, program.arguments) == ("script", str(folder / "tune"), ("run", "--nproc=2"))
    (tmp_path / "tune").touch()
    assert Program.parse(["tune"]).target == "tune"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [(["accelerate", "config"], "accelerate: no such file"), (["/other/bin/torchrun", "a.py"], "another interpreter")],
)
def test_a_launcher_of_another_environment_is_refused(words, complaint):
    with pytest.raises(LaunchError, match=complaint):
        Program.parse(words)
