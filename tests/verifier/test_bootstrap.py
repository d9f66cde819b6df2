"""The bootstrap: every Python process below a verified one is reached, and nothing is imported early."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchdet_lint.verifier import Interventions, environment
from torchdet_lint.verifier.launch.interventions import from_environment
from torchdet_lint.verifier.patching.events import Event, Reporter, read_events
from torchdet_lint.verifier.patching.inheritance import BOOTSTRAP, EVENTS, INTERVENTIONS
from torchdet_lint.verifier.patching.patches import Patches, after_import
from torchdet_lint.verifier.remedies import fixes, memory

SEEDS = Interventions(("TDL102", "TDL103", "TDL104", "TDL108"))


def run(folder, source, interventions=SEEDS, *flags, env=None, check=True):
    program = folder / "program.py"
    program.write_text(source)
    done = subprocess.run(
        [sys.executable, *flags, str(program)],
        env=environment(interventions, env, events=folder / "events"),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def test_no_intervention_leaves_the_environment_as_it_is():
    base = {"PATH": "x", "PYTHONPATH": "y"}
    assert environment(Interventions(), base) == base
    assert not Interventions()


def test_the_environment_tells_the_child_and_keeps_the_users_path():
    asked = Interventions(("TDL205", "TDL601"), "A", 7)
    env = environment(asked, {"PYTHONPATH": "y", "CUBLAS_WORKSPACE_CONFIG": ":16:8"}, events=Path("e"))
    assert from_environment(env) == asked
    assert env["PYTHONPATH"].split(":")[:2] == [str(BOOTSTRAP), "y"]
    assert env["PYTHONHASHSEED"] == "0"
    assert env["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
    assert env[EVENTS] == "e"
    assert environment(asked, {"CUBLAS_WORKSPACE_CONFIG": ":1:1"})["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_a_code_without_a_runtime_fix_is_refused_with_its_reason():
    with pytest.raises(ValueError, match="TDL407: the atomics are inside"):
        environment(Interventions(("TDL407",)), {})


def test_stress_sides_are_opposite_and_a_fix_holds_against_them():
    a, b = (environment(Interventions((), side), {}) for side in "AB")
    assert a["PYTHONHASHSEED"] != b["PYTHONHASHSEED"]
    if sys.platform.startswith("linux") and "MALLOC_PERTURB_" in a:
        assert int(a["MALLOC_PERTURB_"]) ^ int(b["MALLOC_PERTURB_"]) == 255
    a, b = (environment(Interventions(("TDL501", "TDL601"), side), {}) for side in "AB")
    assert {key: a[key] for key in ("PYTHONHASHSEED", "MALLOC_PERTURB_")} == {
        key: b[key] for key in ("PYTHONHASHSEED", "MALLOC_PERTURB_")
    }


AGAIN = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
for size in (24, 76, 500):
    places = [libc.malloc(size) for _ in range(7)]
    for place in places:
        ctypes.memset(place, 7, size)
        libc.free(place)
    again = [libc.malloc(size) for _ in range(7)]
    assert set(again) & set(places)
    print(*sorted({byte for place in again for byte in ctypes.string_at(place, size)}))
print(os.environ["GLIBC_TUNABLES"])
"""


@pytest.mark.skipif(not memory.has_heap_byte(), reason="the C library fills no memory")
@pytest.mark.parametrize(("asked", "byte"), [(Interventions((), "B"), 0x55), (Interventions(("TDL501",)), 0)])
def test_a_small_block_that_was_in_use_before_is_filled_too(asked, byte):
    env = environment(asked, {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.arena_max=1"})
    done = subprocess.run([sys.executable, "-c", AGAIN], env=env, capture_output=True, text=True, check=True)
    tunables = "glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0"
    assert done.stdout.split() == [*[str(byte)] * 3, tunables]
    assert environment(asked, env)["GLIBC_TUNABLES"] == tunables


def test_what_the_child_cannot_read_is_told_in_one_line_and_nothing_is_applied(capsys):
    assert from_environment({INTERVENTIONS: "{"}) == Interventions()
    assert capsys.readouterr().err.count("\n") == 1


def test_nothing_is_imported_early_and_the_path_is_the_users(tmp_path):
    source = """
import sys
early = [name for name in ("torch", "numpy", "msgspec", "torchdet_lint.catalogue.loading") if name in sys.modules]
print(early, [entry for entry in sys.path if "torchdet_lint" in entry or entry.endswith("bootstrap")])
"""
    every = Interventions(fixes.every_code(), "B")
    assert run(tmp_path, source, every).stdout.split("\n")[0] == "[] []"


def test_the_users_own_sitecustomize_runs_too(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("marker = 'the user\\'s'")
    source = "import sitecustomize, sys; print(sitecustomize.marker, sitecustomize.__file__ == sys.argv[0])"
    done = run(tmp_path, source, env={"PYTHONPATH": str(tmp_path / "site")})
    assert done.stdout == "the user's False\n"


def test_an_error_in_the_users_sitecustomize_is_reported_as_python_does(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import nowhere_to_be_found")
    done = run(tmp_path, "print('ran')", env={"PYTHONPATH": str(tmp_path)})
    assert done.stdout == "ran\n"
    assert "nowhere_to_be_found" in done.stderr


TREE = """
import multiprocessing, os, random, subprocess, sys

def work(queue):
    import numpy
    queue.put((random.random(), numpy.random.rand(), numpy.random.default_rng().random()))

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        for _ in range(2):
            queue = context.SimpleQueue()
            process = context.Process(target=work, args=(queue,))
            process.start()
            print(method, queue.get(), flush=True)
            process.join()
    code = "import random, numpy; print('subprocess', random.random(), numpy.random.rand())"
    subprocess.run([sys.executable, "-c", code], check=True)
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(random.random()).encode())
        os._exit(0)
    os.wait()
    print("os.fork", os.read(read, 100))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="fork")
def test_every_way_to_start_a_process_is_reached_and_no_two_children_draw_the_same(tmp_path):
    first, second = run(tmp_path, TREE).stdout, run(tmp_path, TREE).stdout
    assert first == second
    lines = first.splitlines()
    assert [line.split()[0] for line in lines] == [
        "fork", "fork", "spawn", "spawn", "forkserver", "forkserver", "subprocess", "os.fork",
    ]  # fmt: skip
    drawn = [line.split(" ", 1)[1] for line in lines]
    assert len(set(drawn[:2])) == len(set(drawn[2:4])) == len(set(drawn[4:6])) == 2
    assert run(tmp_path, TREE, Interventions(SEEDS.fixes, seed=1)).stdout != first


def test_the_path_file_reaches_an_isolated_interpreter(tmp_path):
    """`python -I` ignores PYTHONPATH: the .pth file that an installation puts beside the package still starts it."""
    line = (BOOTSTRAP / "torchdet_lint.pth").read_text()
    prelude = f"import sys; sys.path.append({str(Path(fixes.__file__).parents[2])!r}); exec({line!r})\n"
    source = prelude + "import random; print(random.random())"
    assert run(tmp_path, source, SEEDS, "-I").stdout == run(tmp_path, source, SEEDS, "-I").stdout
    assert "random.seed" not in run(tmp_path, source, SEEDS, "-I", env={}).stderr


def test_an_intervention_that_cannot_be_applied_ends_the_process_with_one_line(tmp_path):
    env = environment(SEEDS)
    env[INTERVENTIONS] = json.dumps({"fixes": ["TDL999"]})
    done = subprocess.run([sys.executable, "-c", "print(1)"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("torchdet-lint: the interventions could not be applied")


def test_a_refused_relaxation_is_told_with_the_line_of_the_program(tmp_path):
    source = "import torch\n\ntorch.backends.cudnn.benchmark = True\nprint(torch.backends.cudnn.benchmark)\n"
    pytest.importorskip("torch")
    assert run(tmp_path, source, Interventions(("TDL201",))).stdout == "False\n"
    (event,) = read_events(tmp_path / "events")
    assert (event.code, Path(event.file).name, event.line) == ("TDL201", "program.py", 3)


def test_events_are_told_once_a_place_and_read_back_even_if_cut_short(tmp_path, capsys):
    path = tmp_path / "events"
    reporter = Reporter(str(path))
    for _ in range(3):
        reporter.report("TDL201", "refused")
    reporter.report("TDL202", "refused")
    with path.open("a") as stream:
        stream.write('{"code": "TDL2')
    assert [event.code for event in read_events(path)] == ["TDL201", "TDL202"]
    assert read_events(tmp_path / "none") == ()
    Reporter().report("TDL206", "refused")
    assert "TDL206 refused" in capsys.readouterr().err
    assert isinstance(reporter.events[0], Event)


def test_a_hook_waits_for_its_import_and_leaves_with_its_patches(tmp_path, monkeypatch):
    for name in ("waited_for_one", "waited_for_two"):
        (tmp_path / f"{name}.py").write_text("value = 1")
    monkeypatch.syspath_prepend(tmp_path)
    patches, seen = Patches(), []
    after_import(patches, "waited_for_one", lambda module: seen.append(module.value))
    after_import(patches, "json", lambda module: seen.append(module.__name__))
    assert seen == ["json"]
    import waited_for_one

    assert seen == ["json", 1]
    assert waited_for_one.__spec__.loader.exec_module.__self__ is waited_for_one.__spec__.loader
    after_import(patches, "waited_for_two", lambda module: seen.append(module))
    patches.undo()
    import waited_for_two  # noqa: F401

    assert seen == ["json", 1]


def test_undo_tries_every_step_and_raises_the_first_error():
    patches, done = Patches(), []
    patches.on_undo(lambda: done.append(1))
    patches.on_undo(lambda: 1 / 0)
    patches.on_undo(lambda: done.append(2))
    with pytest.raises(ZeroDivisionError):
        patches.undo()
    assert done == [2, 1]
