from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torchdet_lint.verifier import Interventions, cli  # noqa: E402
from torchdet_lint.verifier.comparison.losses import Loss, Losses  # noqa: E402
from torchdet_lint.verifier.comparison.picture import Picture  # noqa: E402
from torchdet_lint.verifier.launch.launch import Program, run_child  # noqa: E402
from torchdet_lint.verifier.trace import Trace, most_steps  # noqa: E402
from torchdet_lint.verifier.verification import machine, outcome, verify  # noqa: E402
from torchdet_lint.verifier.verification.options import VerifyOptions  # noqa: E402
from torchdet_lint.verifier.verification.outcome import Diverged, FixOutcome  # noqa: E402
from torchdet_lint.verifier.verification.repair import verify_fixed  # noqa: E402
from torchdet_lint.verifier.verification.report import Report  # noqa: E402
from torchdet_lint.verifier.verification.text import LINES  # noqa: E402
from torchdet_lint.verifier.verification.text import text as on_screen  # noqa: E402

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "verifier-json.md"
THREE_CAUSES = """
import random
import numpy as np
import torch

torch.manual_seed(0)
data = torch.tensor(np.random.rand(8))
scale = torch.tensor([random.random()])
weight = torch.rand(8, requires_grad=True)
((data + weight) ** 2).sum().backward()
noise = weight.grad * scale
torch.manual_seed(torch.seed())
print(noise + torch.rand(8))
"""
AWKWARD = """
import io, os, random, sys
import torch

random.seed(1)
torch.manual_seed(0)
sys.stdout.buffer.write(bytes(range(256)))
sys.stdout.flush()
kept, sys.stdout = sys.stdout, io.StringIO()
print(torch.rand(3))
torch.manual_seed(3)
if not os.fork():
    torch.rand(5).sum()
    os._exit(0)
os.wait()
x = torch.rand(4, requires_grad=True)
torch.compile(lambda x: (x * random.random()).sum(), backend="eager")(x).backward()
assert sys.stdin.read() == ""
os._exit(0)
"""


def write(folder, source, name="program.py"):
    path = folder / name
    path.write_text(source)
    return path


@pytest.fixture(scope="module")
def diverged(tmp_path_factory):
    script = write(tmp_path_factory.mktemp("diverged"), THREE_CAUSES)
    return verify.verify_program(Program("script", str(script)), lint=False)


@pytest.fixture(scope="module")
def identical(tmp_path_factory, in_forks):
    folder = tmp_path_factory.mktemp("identical")
    script = write(folder, AWKWARD)
    with in_forks():
        return verify.verify_program(Program("script", str(script)), keep=folder / "kept"), folder / "kept"


def test_every_cause_is_found_with_its_line_and_rule(diverged):
    assert diverged.verdict == "diverged"
    assert diverged.exit_status == 1
    assert [(cause.rule, cause.line) for cause in diverged.causes] == [("TDL102", 7), ("TDL103", 8), ("TDL105", 13)]
    assert all(cause.file == "program.py" for cause in diverged.causes)
    assert diverged.first is diverged.causes[0]
    assert diverged.spread.consequences >= 3


def test_a_report_can_be_raised(diverged):
    with pytest.raises(Diverged, match="TDL102"):
        diverged.raise_if_diverged()


def test_a_program_with_awkward_habits_is_recorded_and_equal(identical):
    outcome, kept = identical
    assert (outcome.verdict, outcome.failure, outcome.causes) == ("identical", "", ())
    opened = Trace(kept / "A.tdtrace")
    assert opened.main.complete
    assert "process" in [stream.kind for stream in opened.streams]
    assert (kept / "A.out").read_bytes() == bytes(range(256))
    outcome.raise_if_diverged()


def test_a_clean_verdict_says_what_was_not_tried(identical):
    assert "--mode stress varies" in on_screen(identical[0])


def test_the_text_fits_a_screen(diverged, identical):
    for one in (diverged, identical[0]):
        text = on_screen(one)
        assert 1 <= len(text.splitlines()) <= LINES
        assert "\x1b[" not in text
        assert "\x1b[" in on_screen(one, colour=True)


def test_a_cured_program_is_told_with_its_price(diverged):
    import msgspec

    fix = FixOutcome(True, ("TDL102",), ("TDL101", "TDL102"), 1.25, "torchdet-lint --fix --select TDL102 program.py")
    text = on_screen(msgspec.structs.replace(diverged, verdict="identical", fix=fix))
    assert text.startswith("✓ with the fixes of TDL102 the runs are equal; without them 3 root causes")
    assert "fix TDL102: 1.25 times the CPU time of a plain run" in text
    assert "write it into the source: torchdet-lint --fix --select TDL102 program.py" in text
    assert "try the fixes" not in text
    assert len(text.splitlines()) <= LINES
    free = msgspec.structs.replace(fix, ratio=1.05, command="", notes=("by hand: TDL102: Seed it.",))
    text = on_screen(msgspec.structs.replace(diverged, verdict="identical", fix=free))
    assert "CPU time" not in text
    assert "no edit of the linter's makes the runs equal\n  by hand: TDL102: Seed it." in text


def test_many_causes_still_fit(diverged):
    import msgspec

    many = msgspec.structs.replace(diverged, causes=diverged.causes * 20)
    text = on_screen(many)
    assert len(text.splitlines()) <= LINES
    assert "more (--output-format json lists all)" in text


def test_the_json_is_documented(diverged):
    import msgspec

    table = json.loads(diverged.to_json())
    assert table["schema"] == "torchdet-lint/verify/1"
    page = DOCUMENTATION.read_text()
    names = "Outcome RunSummary Cause Spread FixOutcome Attempt Held Left Judged Tolerance Values".split()
    structs = [*(getattr(outcome, name) for name in names), Loss, Losses]
    missing = [f for struct in structs for f in struct.__struct_fields__ if f"`{f}`" not in page]
    assert not missing
    # All but the picture, which is for the page.
    plain = msgspec.structs.replace(diverged, picture=Picture())
    assert msgspec.json.decode(diverged.to_json(), type=Report) == plain


def test_the_other_formats_parse(diverged):
    lines = machine.github(diverged).splitlines()
    assert lines[0].startswith("::error file=program.py,line=7,title=TDL102")
    suite = xml.etree.ElementTree.fromstring(machine.junit(diverged))
    assert suite.get("failures") == "1"
    results = json.loads(machine.sarif(diverged))["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["TDL102", "TDL103", "TDL105"]


def run(*words, capsys):
    status = cli.main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise SystemExit(4)", "run A ended with exit status 4"),
        ("1/0", "run A ended with exit status 1: ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", "run A was ended by SIGKILL"),
        ("while True: pass", "run A did not end within 1 s"),
    ],
)
def test_a_program_that_fails_is_told_in_one_line(tmp_path, capsys, source, says):
    timeout = 1 if "within" in says else 240
    status, out, _ = run("verify", "--timeout", timeout, write(tmp_path, source), capsys=capsys)
    assert status == 3
    assert says in out
    assert len(out.splitlines()) == 1


@pytest.mark.usefixtures("forks")
def test_what_an_environment_makes_of_an_action_that_numpy_was_handed_is_no_cause_of_its_own(tmp_path, capsys):
    source = """
    import numpy as np, torch
    np.random.seed(0)
    policy, state = torch.nn.Linear(4, 64), np.zeros(4, dtype="float32")
    for step in range(6):
        action = policy(torch.as_tensor(state)).detach().numpy().argmax()
        state = np.cos(action + np.random.random(4)).astype("float32")
    """
    status, out, _ = run("verify", "--no-values", write(tmp_path, textwrap.dedent(source)), capsys=capsys)
    assert status == 1
    assert "1 root cause" in out
    assert "1 TDL101 unseeded-torch   program.py:4" in out


@pytest.mark.usefixtures("forks")
def test_what_is_redacted_tells_of_the_program_and_not_of_the_machine(tmp_path, capsys):
    source = """
    import subprocess, sys
    import torch

    torch.manual_seed(0)
    subprocess.run([sys.executable, "-c", "import torch; torch.ones(3)", "secret-word"], check=True)
    exec(compile("import torch; torch.ones(5)", "/home/someone/other.py", "exec"))
    print(torch.rand(3).sum().item())
    """
    script = write(tmp_path, textwrap.dedent(source))
    whole, bare = tmp_path / "whole.tdtrace", tmp_path / "bare.tdtrace"
    assert run("record", "-o", whole, script, "secret-argument", capsys=capsys)[0] == 0
    assert run("record", "--redact", "-o", bare, script, "secret-argument", capsys=capsys)[0] == 0
    for told in (b"secret", b"someone", b"torch.rand(3)", str(tmp_path).encode()):
        assert told not in bare.read_bytes()
    assert b"secret-argument" in whole.read_bytes()
    assert run("compare", whole, bare, "--no-lint", capsys=capsys)[0] == 0
    assert Trace(bare).header["program"] == ["…/program.py"]


@pytest.mark.usefixtures("forks")
def test_one_factor_at_a_time_names_the_one_that_makes_a_cause_go(tmp_path, capsys):
    """Thirty runs: forks, in which words hash as those of a new process do, by its seed, or at random."""
    source = """
    import hashlib, os, threading
    import torch

    seed = os.environ.get("PYTHONHASHSEED") or threading.get_native_id()

    class Word(str):
        def __hash__(self):
            return int(hashlib.md5(f"{self} {seed}".encode()).hexdigest()[:8], 16)

    torch.manual_seed(0)
    words = {word: n for n, word in enumerate(set(map(Word, "a b c d e f g h".split())))}
    ids = torch.tensor([words[Word(word)] for word in "abcdefgh"])
    print((ids * torch.arange(8)).sum().item())
    """
    script = write(tmp_path, textwrap.dedent(source))
    out = tmp_path / "report.json"
    words = ("verify", "--diagnose", "--no-values", "--no-lint", "--output-format", "json", "-o", out, script)
    assert run(*words, capsys=capsys)[0] == 1
    (cause,) = json.loads(out.read_text())["causes"]
    assert cause["rule"] in cause["gone_with"]
    assert {"TDL601"} <= set(cause["gone_with"]) <= {"TDL305", "TDL601"}
    assert {"TDL304", "TDL306"} <= set(cause["left_with"])
    assert run("verify", "--diagnose", "--fix", script, capsys=capsys)[0] == 2


COMPILED = """
import random
import torch

torch.manual_seed(0)

@torch.compile(backend="eager")
def noisy(x):
    return (x * 2).sum() + scale

x, scale = torch.ones(4), torch.tensor(random.random())
print(noisy(x).item(), torch.compiler.is_compiling(), torch._dynamo.utils.counters["frames"]["total"])
"""


def test_nothing_is_compiled_where_that_is_asked_for(tmp_path, capsys):
    script = write(tmp_path, COMPILED)
    out = tmp_path / "kept"
    words = ("verify", "--compile=eager", "--no-values", "--no-lint", "--keep", out, script)
    status, told, _ = run(*words, capsys=capsys)
    assert status == 1
    assert (out / "A.out").read_text().endswith(" False 0\n")
    assert "what it would have compiled ran op by op (--compile=eager)" in told
    assert f"torchdet-lint verify --fix --compile=eager {script}" in told


TASKS = """
import asyncio
import os
import random
import torch

torch.manual_seed(0)
order, w = [], torch.randn(4)

async def fetch(n):
    await asyncio.sleep({delay})
    order.append(w * n)

async def everything():
    await asyncio.gather(*(fetch(n) for n in range(6)))

asyncio.run(everything())
print(torch.stack(order).mul(torch.arange(6.0)[:, None]).sum().item())
"""


@pytest.mark.parametrize(
    ("delay", "rule", "read"),
    [
        ("random.random() / 5", "TDL103", "Python's global generator"),
        ("os.urandom(1)[0] / 2000", "TDL306", "the operating system"),
    ],
)
@pytest.mark.usefixtures("forks")
def test_tasks_that_end_in_another_order_are_no_threads_that_race(tmp_path, delay, rule, read):
    script = write(tmp_path, TASKS.replace("{delay}", delay))
    report = verify.verify_program(Program("script", str(script)), lint=False)
    (cause,) = report.causes
    assert (cause.rule, cause.op, cause.line) == (rule, "aten.stack", 18)
    assert "TDL307" not in cause.also
    assert "came first in run A" in cause.message
    assert cause.message.endswith(f"(program.py:12); that may hang on {read} (program.py:11)")


@pytest.mark.parametrize("loading", ["torch.cat([*map(torch.load, names)])", "torch.cat([sum(map(weigh, names))])"])
@pytest.mark.usefixtures("forks")
def test_files_that_are_loaded_in_another_order_are_no_other_files(tmp_path, loading):
    source = f"""
    import itertools, os
    import torch

    count = itertools.count(1)

    def weigh(name):
        return torch.load(name) * next(count)

    os.makedirs("parts")
    for n in range(5):
        torch.save(torch.full((2,), float(n)), f"parts/{{n}}.pt")
    names = [f"parts/{{name}}" for name in os.listdir("parts")]
    print({loading}.mul(torch.arange(1.0, 1 + {loading}.numel())).sum().item())
    """
    script = write(tmp_path, textwrap.dedent(source))
    report = verify.verify_program(Program("script", str(script)), lint=False, mode="stress")
    first = report.causes[0]
    assert (first.rule, first.source) == ("TDL304", "outside")
    assert "is the same in another order" in first.message


@pytest.mark.usefixtures("forks")
def test_a_generator_without_a_seed_is_one_cause_wherever_its_numbers_come_in(tmp_path):
    source = """
    import numpy as np, torch
    torch.manual_seed(0)
    generator = np.random.default_rng()
    state = torch.from_numpy(generator.random(4))
    x = torch.tensor(generator.random(4)) + state
    print(x.sum().item())
    """
    script = write(tmp_path, textwrap.dedent(source))
    report = verify.verify_program(Program("script", str(script)), lint=False)
    (cause,) = report.causes
    assert (cause.rule, cause.line, cause.places) == ("TDL104", 5, ("program.py:6",))
    assert cause.message.endswith("NumPy made a generator without a seed at program.py:4")


@pytest.mark.usefixtures("forks")
def test_a_seed_that_comes_after_the_draws_of_a_process_is_a_late_one(tmp_path):
    source = """
    import torch
    import torch.multiprocessing as mp

    def work(rank):
        model = torch.nn.Linear(3, 3)
        torch.manual_seed(rank)
        print(model(torch.rand(2, 3)).sum().item())

    if __name__ == "__main__":
        mp.spawn(work, nprocs=1)
    """
    script = write(tmp_path, textwrap.dedent(source))
    report = verify.verify_program(Program("script", str(script)), lint=False)
    (cause,) = report.causes
    assert (cause.rule, cause.line, cause.also[:1]) == ("TDL106", 6, ("TDL108",))
    assert cause.message == "drawn before the program seeded torch at program.py:7"


@pytest.mark.parametrize("source", ["print(1)", "import torch\nprint('Unable to locate 2 GPUs')"])
def test_a_program_that_runs_no_op_of_torch_is_told_to_have_run_none(tmp_path, capsys, in_forks, source):
    with in_forks() if "torch" in source else contextlib.nullcontext():
        status, out, _ = run("verify", write(tmp_path, source), capsys=capsys)
    assert status == 0
    assert out.splitlines()[1].startswith("no op of torch ran: compared is what the program printed and wrote")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["verify"], "which program"),
        (["verify", "nowhere.py"], "no such file"),
        (["verify", "--runs", "1", __file__], "--runs must be at least 2"),
        (["verify", "--timeout", "-3", __file__], "invalid number of seconds above 0 value: '-3'"),
        (["verify", "--mode", "luck", __file__], "invalid choice"),
        (["verify", "--frobnicate", __file__], "unrecognized arguments"),
        (["verify", "--fix=TDL999", __file__], "TDL999"),
        (["verify", "--replay", "20", __file__], "--replay takes its value with an equals sign: --replay=20"),
        (["run", "--fix", "TDL101,TDL102", __file__], "--fix=TDL101,TDL102"),
        (["record", __file__], "required"),
        (["record", "-o", "/nonexistent/a.tdtrace", __file__], "no such folder"),
        (["record", "-o", str(Path(__file__).parent), __file__], "a folder"),
        (["record", "-o", __file__, __file__], "is no trace of torchdet-lint, and is not written over"),
        (["verify", "-o", "/nonexistent/report.html", __file__], "report.html: no such folder"),
        (["verify", "-o", str(Path(__file__).parent), __file__], "is a folder"),
        (["compare", __file__, __file__], "not a trace of torchdet-lint"),
        (["compare", "only-one"], "a second file is needed"),
        (["nonsense"], "which of"),
        ([], "which of"),
    ],
)
def test_usage_errors_are_one_line(capsys, words, says):
    status, out, err = run(*words, capsys=capsys)
    assert status == 2
    assert says in err
    assert out == ""
    assert len(err.strip().splitlines()) == 1


def test_the_help_shows_how_an_option_takes_a_value_that_it_may_go_without(capsys):
    with pytest.raises(SystemExit):
        run("verify", "--help", capsys=capsys)
    out = capsys.readouterr().out
    assert "  --replay[=N] " in out
    assert "  --fix[=CODES] " in out
    assert "  --runs N " in out


def test_torch_that_is_missing_names_the_extra(capsys, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    status, _, err = run("verify", __file__, capsys=capsys)
    assert status == 2
    assert "torchdet-lint[verify]" in err


@pytest.mark.usefixtures("forks")
def test_two_recordings_are_compared(tmp_path, capsys):
    script = write(tmp_path, "import sys, torch\ntorch.manual_seed(int(sys.argv[1]))\nprint(torch.rand(3))\n")
    a, b = tmp_path / "a.tdtrace", tmp_path / "b.tdtrace"
    assert run("record", "-o", a, script, "1", capsys=capsys)[0] == 0
    assert run("record", "-o", b, script, "2", capsys=capsys)[0] == 0
    assert run("compare", a, a, capsys=capsys)[0] == 0
    status, out, _ = run("compare", "--output-format", "json", a, b, capsys=capsys)
    assert status == 1
    report = tmp_path / "report.json"
    status, verdict, err = run("compare", "--output-format", "json", "-o", report, a, b, capsys=capsys)
    assert (status, err, report.read_text()) == (1, "", out)
    assert verdict == "✗ 2 runs diverged · 1 root cause · 1 of 1 op differs\n"
    assert run("compare", "-o", "/dev/null", a, b, capsys=capsys)[1] == ""
    assert json.loads(out)["causes"][0]["rule"] == "TDL105"
    b.write_bytes(b.read_bytes()[:40])
    status, _, err = run("compare", a, b, capsys=capsys)
    assert status == 2
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(("own", "rule"), [("", ""), ("random.random()\n", "TDL103")])
@pytest.mark.usefixtures("forks")
def test_what_a_library_draws_as_it_is_imported_explains_no_data(tmp_path, capsys, own, rule):
    library = tmp_path / "site-packages" / "styled.py"
    library.parent.mkdir()
    library.write_text("from random import getrandbits\nNUMBER = getrandbits(24)\n")
    source = (
        f"import os, random, sys, torch\nsys.path.append({str(library.parent)!r})\nimport styled\n"
        f"assert styled.NUMBER >= 0\n{own}torch.tensor(list(os.urandom(8)))\n"
    )
    words = ["verify", "--no-values", "--no-lint", "--output-format", "json"]
    status, out, _ = run(*words, write(tmp_path, source), capsys=capsys)
    assert status == 1
    assert [cause["rule"] for cause in json.loads(out)["causes"]] == [rule]


@pytest.mark.usefixtures("forks")
def test_a_generator_that_a_library_makes_without_a_seed_is_told(tmp_path, capsys):
    library = tmp_path / "site-packages" / "games.py"
    library.parent.mkdir()
    library.write_text(
        "import numpy as np\nIDLE = np.random.default_rng()\n"
        "def state(seed=None):\n    return np.random.default_rng(seed).random(3)\n"
    )
    source = (
        f"import sys, torch\nsys.path.append({str(library.parent)!r})\nimport games\n"
        "games.state(1)\ntorch.tensor(games.state({seed}))\n"
    )
    words = ["verify", "--no-values", "--no-lint", "--output-format", "json"]
    status, out, _ = run(*words, write(tmp_path, source.replace("{seed}", "")), capsys=capsys)
    [cause] = json.loads(out)["causes"]
    assert (status, cause["rule"]) == (1, "TDL104")
    assert "TDL304" in cause["also"]
    assert cause["message"].endswith("agreed; NumPy made a generator without a seed at program.py:5")
    assert run(*words, write(tmp_path, source.replace("{seed}", "2")), capsys=capsys)[0] == 0


@pytest.mark.usefixtures("forks")
def test_a_module_of_a_package_has_its_places_and_its_findings(tmp_path, capsys, monkeypatch):
    """The seed is taken in the file that is run, and what is drawn from it in another one."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "noise.py").write_text("import torch\n\ndef noise():\n    return torch.rand(3)\n")
    imports = "import os\nimport torch\nfrom package.noise import noise\n"
    seed = "torch.manual_seed(int.from_bytes(os.urandom(4), 'little'))"
    (package / "train.py").write_text(f"{imports}\nif __name__ == '__main__':\n    {seed}\n    noise()\n")
    monkeypatch.chdir(tmp_path)
    words = ["verify", "--no-values", "--output-format", "json", "-m", "package.train"]
    status, out, _ = run(*words, capsys=capsys)
    [cause] = json.loads(out)["causes"]
    assert (status, cause["rule"], cause["file"], cause["line"]) == (1, "TDL105", "package/noise.py", 4)
    found = cause["finding"]
    assert (found["filename"], found["line"], found["code"]) == ("package/train.py", 6, "TDL105")


@pytest.mark.usefixtures("forks")
def test_a_disk_that_fills_up_is_one_line_and_no_verdict(tmp_path, capsys):
    source = (
        "import resource, torch\nresource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))\n"
        "for n in range(2000): torch.ones(2)\n"
    )
    status, out, err = run("verify", write(tmp_path, source), capsys=capsys)
    assert (status, out) == (2, "")
    assert "the trace could not be written" in err
    assert len(err.splitlines()) == 1


def test_run_hands_on_arguments_and_exit_status(tmp_path, capfd):
    script = write(tmp_path, "import sys; print(sys.argv[1:]); sys.exit(5)")
    assert cli.main(["run", "--fix=TDL103", str(script), "--runs", "-x"]) == 5
    assert capfd.readouterr().out.strip() == "['--runs', '-x']"


def test_results_of_a_plain_and_a_recorded_run_are_equal(tmp_path):
    script = write(
        tmp_path,
        """
import random, sys
import numpy as np
import torch
torch.manual_seed(0); random.seed(0); np.random.seed(0)
model = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    x = torch.from_numpy(np.random.rand(2, 5, 16).astype("float32"))
    model(x).pow(2).mean().backward()
    optimizer.step(); optimizer.zero_grad()
model.eval()
print([p.sum().item().hex() for p in model.parameters()], model(x).sum().item(), random.random(), np.random.rand())
print(torch.rand(1).item(), torch.cumprod(torch.rand(5, requires_grad=True), 0).sum())
""",
    )
    plain = subprocess.run([sys.executable, str(script)], capture_output=True, check=True)
    recorded = subprocess.run(
        [sys.executable, "-m", "torchdet_lint", "record", "-o", str(tmp_path / "a.tdtrace"), str(script)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(DOCUMENTATION.parents[1]), os.environ["PYTHONPATH"]])},
    )
    assert recorded.stdout == plain.stdout


def test_a_function_is_verified_in_this_process():
    def steady():
        return torch.rand(3).sum()

    state = [0]

    def drifting():
        state[0] += 1
        return torch.rand(3) * state[0]

    assert verify.verify_function(steady).ok
    outcome = verify.verify_function(drifting, runs=3)
    assert outcome.verdict == "diverged"
    assert outcome.first.source == "number"


TRAINS = """
import atexit
import torch

torch.backends.cudnn.benchmark = True
model = torch.nn.Linear(3, 2)
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.AdamW(model.parameters())]
atexit.register(print, "ended in order")
for step in range(30):
    model(torch.ones(4, 3)).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
    print(step)
"""


@pytest.mark.usefixtures("forks")
def test_each_run_ends_after_the_steps_asked_for_and_the_report_says_so(tmp_path):
    program = Program("script", str(write(tmp_path, "import torch\ntorch.manual_seed(0)\n" + TRAINS)))
    outcome = verify.verify_program(program, steps=3, keep=tmp_path / "kept", lint=False)
    assert outcome.verdict == "identical"
    assert "the program was ended after 3 optimizer steps" in outcome.not_covered
    assert any(line.startswith("2 runs under the same conditions") for line in outcome.not_covered)
    assert (tmp_path / "kept" / "A.out").read_text() == "0\n1\nended in order\n"


LASTS = """
import time
import torch
generator = torch.Generator()
generator.manual_seed(time.time_ns())
weight = torch.ones(8, requires_grad=True)
for step in range(6_000):
    (weight * torch.rand(8, generator=generator)).sum().backward()
    if step == 5_000:
        time.sleep(6)  # However busy the machine is, what has been written is looked at before the last step.
open("left.txt", "w").write("the end")
"""


@pytest.mark.usefixtures("forks")
def test_a_run_whose_losses_differ_for_good_is_ended_and_the_report_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lasts.py").write_text(LASTS)
    assert cli.main(["verify", "--early-end", "--no-values", "--output-format", "json", "lasts.py"]) == 1
    table = json.loads(capsys.readouterr().out)
    assert [run["status"] for run in table["runs"]] == ["finished", "early"]
    assert table["runs"][1]["records"] < table["runs"][0]["records"]
    assert [cause["rule"] for cause in table["causes"]] == ["TDL105"]
    assert (table["left"], table["compared_files"], table["crash"]) == ([], 0, "")
    assert sum("run B was ended after" in line for line in table["not_covered"]) == 1


@pytest.mark.usefixtures("forks")
def test_a_program_that_ends_before_the_steps_asked_for_ends_by_itself(tmp_path):
    script, trace = write(tmp_path, "import torch\n" + TRAINS), tmp_path / "a.tdtrace"
    with (tmp_path / "out").open("wb") as out:
        assert run_child(Program("script", str(script)), trace=trace, steps=31, stdout=out, timeout=200).ok
    assert (tmp_path / "out").read_text().splitlines()[-2:] == ["29", "ended in order"]
    assert not any("steps" in note for note in Trace(trace).notes)
    assert most_steps(mark for stream in Trace(trace).streams for mark in Trace(trace).marks(stream)) == 30


WAITS = """
import multiprocessing
import torch

def work(queue):
    queue.put(torch.rand(4).sum().item())

context = multiprocessing.get_context("fork")
queue = context.Queue()
context.Process(target=work, args=(queue,)).start()
print(queue.get())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.usefixtures("forks")
def test_a_process_that_waits_for_the_one_that_was_looked_at_holds_nothing_up(tmp_path):
    begin = time.monotonic()
    program = Program("script", str(write(tmp_path, WAITS)))
    (found,) = verify.verify_program(program, values=True, lint=False, timeout=150).values
    assert (found.op, found.elements, found.differing) == ("aten.rand", 4, 4)
    assert time.monotonic() - begin < 150


@pytest.mark.usefixtures("forks")
def test_a_listed_op_of_equal_runs_is_repeated_where_that_is_asked_for(tmp_path, capsys):
    source = """import torch
torch.set_num_threads(1)
# What hands out memory is no op to repeat, and takes no other's place.
kept = [
    torch.empty(3).fill_(1),
    torch.empty(4).fill_(1),
    torch.empty_like(torch.ones(2)).fill_(1),
    torch.ones(2).new_empty(3).fill_(1),
]
table, index = torch.zeros(4), torch.tensor([0, 0, 1])
for step in range(3):
    table.put_(index, torch.ones(3), accumulate=True)
print(table.sum().item())
"""
    script = write(tmp_path, source)
    status, out, _ = run("verify", "--no-lint", "--replay=7", script, capsys=capsys)
    assert status == 0
    told = "put_; repeated 7 times on the same inputs, all gave the same (a rate below"
    assert told in " ".join(out.split())
    assert " ".join(out.split()).count("equal here, and listed") == 1


SEEDED = "import torch\ntorch.manual_seed(0)\n"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (SEEDED + TRAINS.replace("30", "2"), "no optimizer made more than 2"),
        ("import torch\ntorch.zeros(2) + 1", "no optimizer of torch made a step"),
    ],
)
@pytest.mark.usefixtures("forks")
def test_steps_that_no_optimizer_makes_are_said_to_end_nothing(tmp_path, source, says):
    program = Program("script", str(write(tmp_path, source)))
    outcome = verify.verify_program(program, steps=3, lint=False)
    assert outcome.ok
    assert outcome.not_covered[0] == f"--steps 3 ended nothing: {says}, and the program ran to its own end"


@pytest.mark.usefixtures("forks")
def test_a_rank_without_its_launcher_is_told_how_to_verify_it(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    script = write(tmp_path, "import torch.distributed as dist\ndist.init_process_group('gloo')")
    status, out, _ = run("verify", script, capsys=capsys)
    assert status == 3
    assert f"verify it under its launcher: verify -- torchrun --nproc-per-node 2 {script}" in out


@pytest.mark.usefixtures("forks")
def test_the_smallest_set_of_fixes_is_told_with_its_price_and_the_command_for_the_source(tmp_path, monkeypatch):
    """And what the program does against the fixes, with its line."""
    # No optimizer: importing what one needs takes longer than all else of the dozen runs.
    source = (
        "\nimport torch\n\nlayer = torch.nn.Linear(4, 3)\ntorch.manual_seed(0)\n"
        "print(layer(torch.rand(4)).tolist())\ntorch.backends.cudnn.benchmark = True\n"
    )
    monkeypatch.chdir(tmp_path)
    program = Program("script", write(tmp_path, source).name)
    report = verify_fixed(program, VerifyOptions(interventions=Interventions(("TDL106", "TDL201")), timeout=240))
    assert report.verdict == "identical"
    assert (report.fix.cured, report.fix.fixes, report.fix.edited_runs) == (True, ("TDL106",), 4)
    assert report.fix.ratio > 0
    assert "torchdet-lint --fix" in report.fix.command
    told = on_screen(report)
    assert told.startswith("✓ with the fixes of TDL106 the runs are equal")
    assert "held: program.py:7 TDL201 torch.backends.cudnn.benchmark = True refused" in told
    assert "the edited source: equal in 4 of 4 runs" in told


@pytest.mark.usefixtures("forks")
def test_a_fix_has_no_price_where_plain_runs_do_another_amount_of_work(tmp_path):
    (tmp_path / "p.py").write_text(
        "import torch\nx = torch.randn(1)\nfor _ in range(int(abs(x.item()) * 1e4)):\n    x = x.sin()\n"
    )
    report = verify_fixed(
        Program("script", str(tmp_path / "p.py")), VerifyOptions(interventions=Interventions(("TDL101",)), timeout=240)
    )
    assert report.fix.cured
    assert report.fix.ratio == 0
    assert "CPU time" not in on_screen(report)


@pytest.mark.usefixtures("forks")
def test_an_edit_that_cures_is_told_where_no_fix_at_run_time_does(tmp_path, monkeypatch):
    """A seed from a date: the runs cannot be given another one, the source can."""
    source = (
        "\nimport datetime\nimport random\n\nimport torch\n\n"
        "rng = random.Random(datetime.datetime.now().microsecond)\nprint(torch.tensor([rng.random()]).mul(2).item())\n"
    )
    monkeypatch.chdir(tmp_path)
    program = Program("script", write(tmp_path, source).name)
    report = verify_fixed(program, VerifyOptions(interventions=Interventions(("TDL105",)), timeout=240))
    assert (report.verdict, report.fix.cured, report.fix.edited_runs) == ("diverged", False, 4)
    assert report.fix.command == "torchdet-lint --fix --select TDL105 program.py"
    assert [cause.rule for cause in report.causes] == ["TDL105"]
    told = on_screen(report)
    assert "the runs still differ with the fixes of TDL105; they are equal once the source is edited" in told
    assert "write it into the source: torchdet-lint --fix --select TDL105 program.py" in told


def test_steps_must_not_be_negative(capsys):
    assert run("verify", "--steps", "-1", __file__, capsys=capsys)[0] == 2
