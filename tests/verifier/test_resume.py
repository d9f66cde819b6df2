"""A run that is resumed is held against one that is not: what its checkpoint forgot is named, and nothing else.

The runs are forks of this process, which has torch already; one slow test starts them as a user does.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import traceback
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torchdet_lint.verifier import Program, cli  # noqa: E402
from torchdet_lint.verifier.launch.launch import ChildResult  # noqa: E402
from torchdet_lint.verifier.patching.inheritance import RESUME  # noqa: E402
from torchdet_lint.verifier.patching.patches import Patches  # noqa: E402
from torchdet_lint.verifier.steps import resuming  # noqa: E402
from torchdet_lint.verifier.verification.outcome import VerifyError  # noqa: E402
from torchdet_lint.verifier.verification.resume import check  # noqa: E402
from torchdet_lint.verifier.verification.resume.text import text  # noqa: E402

if not hasattr(os, "fork"):
    pytest.skip("needs os.fork", allow_module_level=True)

TRAIN = """
import argparse
import io
import pathlib
import random

import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--resume", default="")
parser.add_argument("--forget", default="")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--to", default="last.pt")
options = parser.parse_args()
forget = options.forget.split(",")

torch.manual_seed(0)
random.seed(0)
x = torch.randn(64, 8)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle="fixed" not in forget)
validation = DataLoader(TensorDataset(x.flip(0), x), batch_size=16)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 1))
average = torch.optim.swa_utils.AveragedModel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)
kept = {"model": model, "average": average, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
start = 0
if options.resume:
    state = torch.load(options.resume)
    for name, thing in kept.items():
        if name in state:
            thing.load_state_dict(state[name])
    if "generator" in state:
        torch.set_rng_state(state["generator"])
    start = state["epoch"]


def save(epoch):
    state = {name: thing.state_dict() for name, thing in kept.items() if name not in forget}
    if "generator" not in forget:
        state["generator"] = torch.get_rng_state()
    # As Lightning saves: into memory, and from there to a file.
    target = io.BytesIO() if "memory" in forget else options.to
    torch.save({**state, "epoch": epoch}, target)
    if "memory" in forget and "disk" not in forget:
        pathlib.Path(options.to).write_bytes(target.getvalue())


for epoch in range(start, options.epochs):
    for number, (inputs, targets) in enumerate(loader):
        optimizer.zero_grad()
        def closure():
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            return loss

        if "closure" in forget:
            optimizer.step(closure)
        else:
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        average.update_parameters(model)
        if "position" in forget and number == 2:
            save(epoch)
    scheduler.step()
    for inputs, _ in validation:
        pass
    if "position" not in forget:
        save(epoch + 1)
    if "crash" in forget:
        raise ZeroDivisionError("as planted")
"""


def forked(program, *, environment, stderr, **_):
    """`run_child` by a fork of this process."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.dup2(stderr.fileno(), 2)
            os.chdir(program.directory)
            sys.argv[:] = [program.target, *program.arguments]
            resuming.install(Patches(), environment[RESUME])
            runpy.run_path(program.target, run_name="__main__")
            status = 0
        except BaseException:
            traceback.print_exc(file=open(2, "w", closefd=False))  # noqa: SIM115
        finally:
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return ChildResult("failed" if code else "finished", code, 0.0)


@pytest.fixture(scope="module", autouse=True)
def imported():
    """What a first step imports, once for all forks."""
    layer = torch.nn.Linear(1, 1)
    torch.optim.AdamW(layer.parameters()).zero_grad()
    torch.optim.swa_utils.AveragedModel(layer)
    importlib.import_module("torch._dynamo")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(check.launch, "run_child", forked)
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    torch.set_num_threads(before)


def checked(*words, least=7, resume_with="--resume last.pt"):
    return check.check_resume(Program("script", "train.py", words), least, resume_with)


def lost(report):
    """Group -> the names of what was not restored, up to the colon."""
    return {one.group: sorted({name.partition(":")[0] for name in one.names}) for one in report.forgotten}


def test_a_whole_checkpoint_resumes_as_if_nothing_had_been():
    report = checked()
    assert (report.verdict, report.saved, report.compared, report.unsteady) == ("identical", 8, 8, 0)
    assert report.not_covered == ()
    assert text(report).startswith(
        "✓ resumed after step 8, the run is the uninterrupted one, bit for bit, in steps 9 to 16"
    )
    assert not Path("last.pt").exists()


@pytest.mark.parametrize(
    ("forget", "expected"),
    [
        ("scheduler", {"states": ["StepLR"]}),
        ("memory,scaler", {"states": ["GradScaler"]}),
        ("average", {"states": ["AveragedModel"]}),
        ("generator", {"generators": ["torch"], "batch": ["0", "1"]}),
        ("position,fixed,generator", {"generators": ["torch"], "batch": ["0", "1"]}),
    ],
)
def test_what_the_checkpoint_forgot_is_named(forget, expected):
    report = checked("--forget", forget)
    assert report.exit_status == 1
    assert lost(report) == expected
    assert "not saved, or not loaded:" in text(report)
    assert ("position in the data" in text(report)) == ("batch" in expected)
    assert max(map(len, text(report).splitlines())) <= 118


def test_an_optimizer_with_a_closure_has_its_loss_and_gradients_compared():
    report = checked("--forget", "closure,scaler")
    assert (report.verdict, report.not_covered) == ("identical", ())
    report = checked("--forget", "closure,scaler,generator")
    assert lost(report) == {"generators": ["torch"], "batch": ["0", "1"]}
    assert {"loss", "gradients"} <= {one.group for one in report.differences}
    assert report.losses["loss"][0] != report.losses["loss"][1]


def test_buffers_of_a_second_model_that_is_trained_are_of_the_forward_pass():
    models = [torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)) for _ in range(2)]
    average = torch.optim.swa_utils.AveragedModel(models[0])
    first, _second = (torch.optim.SGD(model.parameters(), lr=0.1) for model in models)
    told = {(group, name) for group, name, _ in resuming.census(first)}
    for name in ("1.running_mean", "1.running_var", "1.num_batches_tracked"):
        assert {("buffers", name), ("buffers", f"Sequential: {name}")} <= told
    assert ("states", "Sequential: 0.weight") in told
    assert any(group == "states" and name.startswith("AveragedModel") for group, name in told)
    assert average.n_averaged == 0


def test_a_lost_optimizer_and_a_lost_model():
    report = checked("--forget", "optimizer")
    assert lost(report).keys() == {"optimizer"}
    assert report.step == 9
    report = checked("--forget", "model")
    assert lost(report).keys() == {"parameters"}


def test_a_generator_that_nothing_uses_is_no_loss():
    report = checked("--forget", "fixed,generator")
    assert report.ok
    assert report.without_effect == ("torch",)
    assert "without effect in these steps: the generator torch" in text(report)


def test_words_stand_where_the_command_has_their_place():
    report = checked("{resume}", "--forget", "scaler")
    assert report.exit_status == 1
    assert (report.program[-3:], report.resumed_with) == (("{resume}", "--forget", "scaler"), ("--resume", "last.pt"))


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (("--forget", "memory,disk"), {}, "saved nothing by torch.save or safetensors after steps 7 to 14"),
        ((), {"resume_with": ""}, "the resumed run loads nothing"),
        (("--epochs", "2"), {}, "made no step of an optimizer: let the program make twice as many steps"),
        (("--to", "/tmp/../dev/null"), {}, "outside of its working folder"),
        (("--forget", "crash"), {}, r"ended with exit status 1: ZeroDivisionError: as planted \(train.py:76\)$"),
        ((), {"resume_with": "--resume '"}, "No closing quotation"),
    ],
)
def test_what_cannot_be_established_is_one_line(words, options, message):
    with pytest.raises(VerifyError, match=message) as caught:
        checked(*words, **options)
    assert "\n" not in str(caught.value)


def test_a_program_that_differs_without_a_resume(folder):
    (folder / "train.py").write_text(TRAIN.replace("torch.manual_seed(0)", "torch.seed()"))
    report = checked()
    assert (report.exit_status, report.unsteady) == (1, 1)
    assert "✗ not established: two runs that are not resumed differ already in step 1" in text(report)


def test_the_command(capsys):
    words = ["--resume-with", "--resume last.pt", "python", "train.py", "--forget", "scaler"]
    assert cli.main(["verify", "--resume", "step=7", "--output-format", "json", *words]) == 1
    table = json.loads(capsys.readouterr().out)
    assert (table["schema"], table["saved"], table["forgotten"][0]["group"]) == ("torchdet-lint/resume/1", 8, "states")
    for more, message in (
        (["--resume", "N"], "write step=N"),
        (["--resume", "step=0"], "write step=N"),
        (["--resume", "5", "--in-place"], "and not --in-place"),
        (["--resume", "5", "--output-format", "html"], "has no --output-format html"),
        (["--resume-with", "x"], "--resume-with needs --resume step=N"),
    ):
        assert cli.main(["verify", *more, "train.py"]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1


def test_each_run_reads_what_verify_reads(folder, monkeypatch):
    (folder / "words").write_text("3\n")
    seen = []

    def run(_, *, stdin, **others):
        seen.append(stdin.read())
        others["tick"]()
        return ChildResult("failed", 2, 0.0)

    monkeypatch.setattr(check.launch, "run_child", run)
    told = []
    with (
        (folder / "words").open() as words,
        pytest.raises(VerifyError, match=r"the saving run ended with exit status 2$"),
    ):
        monkeypatch.setattr(sys, "stdin", words)
        check.check_resume(Program("script", "train.py"), 7, progress=lambda *how: told.append(how))
    assert seen == [b"3\n"]
    assert told == [("1 of 3, saving", 0, 0)]


@pytest.mark.slow
def test_in_processes_of_its_own(folder, monkeypatch, capfd):
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    command = ["verify", "--resume", "step=7", "--resume-with", "--resume last.pt", "python", "train.py"]
    assert cli.main([*command, "--forget", "scaler"]) == 1
    assert "GradScaler" in capfd.readouterr().out
