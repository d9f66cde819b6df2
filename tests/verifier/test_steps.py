"""Digests at step boundaries: what differs first is named, files are read as what others wrote, no result changes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torchdet_lint.verifier import Checkpoints, cli  # noqa: E402
from torchdet_lint.verifier.commands.words import USAGE  # noqa: E402
from torchdet_lint.verifier.recording import hashing  # noqa: E402
from torchdet_lint.verifier.steps.compare import compare_steps  # noqa: E402
from torchdet_lint.verifier.steps.format import Definition, Part, Steps, StepsError, StepsWriter  # noqa: E402
from torchdet_lint.verifier.steps.text import text  # noqa: E402

STEPS, AT = 12, 7
"""The fault is planted in the body of the loop number `AT`, from 0: step 8."""


def model():
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Dropout(), torch.nn.Linear(16, 1)
    )


def train(path, fault="", *, every=1, seed=0, steps=STEPS):
    torch.manual_seed(seed)
    net = model()
    optimizer = torch.optim.AdamW(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    with Checkpoints(path, model=net, optimizer=optimizer, every=every, scheduler=scheduler) as checkpoints:
        for number in range(steps):
            here = fault if number == AT else ""
            x = torch.randn(4, 8)
            if here == "drawn":
                x = torch.randn(4, 8)
            if here == "batch":
                x[0, 0] += 1e-3
            loss = net(x).square().mean() + (1e-3 if here == "loss" else 0)
            loss.backward()
            if here == "gradients":
                net[0].weight.grad[0, 0] += 1e-3
            optimizer.step()
            optimizer.zero_grad()
            if here == "parameters":
                net[1].weight.data[0] += 1e-3
            if here == "buffers":
                net[1].running_mean[2] += 1
            if here == "optimizer":
                optimizer.param_groups[0]["lr"] = 0.5
            if here == "states":
                scheduler.last_epoch += 1
            if here == "generators":
                torch.rand(1)
            checkpoints.step(loss, {"x": x, "label": "a text"})
    return path


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def plain(tmp_path_factory, one_thread):
    return train(tmp_path_factory.mktemp("steps") / "a.tdsteps")


FAULTS = {
    "batch": ("x", "read different data"),
    "loss": ("loss", "The forward pass gave another loss"),
    "buffers": ("1.running_mean", "a buffer is not"),
    "gradients": ("0.weight", "the backward pass is nondeterministic"),
    "parameters": ("1.weight", "the optimizer's step is nondeterministic"),
    "optimizer": ("lr (group 0)", "the optimizer's state or options are not"),
    "states": ("scheduler: last_epoch", "what was given by this name"),
    "generators": ("torch", "what uses them next will differ"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_differs_first_is_named(tmp_path, plain, fault):
    report = compare_steps(plain, train(tmp_path / "b.tdsteps", fault))
    name, meaning = FAULTS[fault]
    assert (report.verdict, report.exit_status) == ("diverged", 1)
    assert (report.step, report.compared, report.since) == (AT + 1, STEPS + 1, AT)
    assert (report.differences[0].group, report.differences[0].names) == (fault, (name,))
    assert meaning in report.meaning
    shown = text(report)
    assert f"differ first in step {AT + 1} · {fault} first" in shown
    assert max(map(len, shown.splitlines())) <= 118


def test_a_generator_that_differs_with_the_batch_is_named(tmp_path, plain):
    report = compare_steps(plain, train(tmp_path / "b.tdsteps", "drawn"))
    assert (report.step, report.differences[0].group) == (AT + 1, "batch")
    assert report.meaning.endswith(
        "The generator torch differs in this step too: it is not seeded alike, or was used differently."
    )


def test_equal_runs_are_equal_in_all_steps(tmp_path, plain):
    random.seed(1)  # nothing uses it: how it was seeded is no difference
    report = compare_steps(plain, train(tmp_path / "b.tdsteps"))
    assert report.ok
    assert text(report) == "✓ the runs are equal, bit for bit, in all 13 steps, 0 to 12\n"


def test_other_weights_are_told_before_the_first_step(tmp_path, plain):
    report = compare_steps(plain, train(tmp_path / "b.tdsteps", seed=1))
    assert (report.step, report.differences[0].group, report.differences[0].count) == (0, "parameters", 4)
    assert "The runs begin with different parameters" in report.meaning


def test_between_whole_steps_it_says_when_all_was_compared_last(tmp_path):
    a, b = (train(tmp_path / f"{fault}.tdsteps", fault, every=5) for fault in ("no", "parameters"))
    report = compare_steps(a, b)
    assert (report.step, report.since, report.differences[0].group) == (AT + 2, 5, "loss")
    assert "compared last after step 5" in text(report)
    assert [list(step.digests) for step in Steps(a)][5:7] == [
        ["batch", "loss", "buffers", "gradients", "parameters", "optimizer", "states", "generators"],
        ["batch", "loss", "gradients", "generators"],
    ]


def test_nothing_of_the_run_changes(tmp_path):
    torch.manual_seed(0)
    net, before = model(), (random.getstate(), torch.get_rng_state())
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    kept = {name: value.clone() for name, value in net.state_dict().items()}
    with Checkpoints(tmp_path / "a.tdsteps", model=net, optimizer=optimizer, every=1) as checkpoints:
        checkpoints.step(0.5, (torch.ones(2), [1, "two"]))
    assert (random.getstate(), optimizer._optimizer_step_post_hooks) == (before[0], {})
    assert torch.equal(torch.get_rng_state(), before[1])
    assert all(torch.equal(kept[name], value) for name, value in net.state_dict().items())


def test_gradients_are_those_that_were_applied(tmp_path):
    """With a closure, which clears them at its beginning, and by two optimizers, of which one clears before the end."""

    def run(path, extra):
        torch.manual_seed(0)
        nets = {"g": torch.nn.Linear(2, 1), "d": torch.nn.Linear(2, 1)}
        optimizers = {name: torch.optim.SGD(net.parameters(), 0.1) for name, net in nets.items()}
        x = torch.ones(3, 2)
        with Checkpoints(path, model=nets, optimizer=optimizers, every=100) as checkpoints:

            def closure():
                optimizers["g"].zero_grad()
                loss = nets["g"](x).sum()
                loss.backward()
                nets["g"].weight.grad[0, 1] += extra
                return loss

            optimizers["g"].step(closure)
            optimizers["g"].zero_grad()
            for micro in x:
                loss = nets["d"](micro).sum()
                loss.backward()
                checkpoints.add({"d": loss}, micro)
            optimizers["d"].step()
            checkpoints.step()
        return path

    a, b = run(tmp_path / "a.tdsteps", 0), run(tmp_path / "b.tdsteps", 1e-3)
    report = compare_steps(a, b)
    assert (report.differences[0].group, report.differences[0].names) == ("gradients", ("g.weight",))
    assert report.differences[0].parts == 4
    assert list(Steps(a))[1].losses.keys() == {"d"}


def test_generators_of_ones_own_and_states_by_name(tmp_path):
    import numpy

    def run(path, seed):
        own = {"shuffler": torch.Generator().manual_seed(0), "augment": numpy.random.default_rng(seed)}
        with Checkpoints(path, order=random.Random(0), **own) as checkpoints:
            checkpoints.step()
        return path

    report = compare_steps(run(tmp_path / "a.tdsteps", 0), run(tmp_path / "b.tdsteps", 1))
    assert (report.step, report.differences[0].names) == (0, ("augment",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": 3}, "`model` is a int, which has no named_parameters"),
        ({"optimizer": {"a": 3}}, "`optimizer` is a int, which has no param_groups"),
        ({"ema": 3}, "`ema` has no state_dict\\(\\) and is no random number generator"),
        ({"every": 0}, "`every` must be at least 1"),
    ],
)
def test_what_cannot_be_digested_is_refused(tmp_path, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Checkpoints(tmp_path / "a.tdsteps", **options)


def test_a_file_of_steps_can_be_looked_into(plain, capsys):
    def shown(*words):
        status = cli.main(["show", *words, str(plain)])
        return status, capsys.readouterr().out.splitlines()

    status, lines = shown()
    assert status == 0
    assert lines[0].startswith("program: ")
    assert f"steps: {STEPS + 1}, 0 to {STEPS}; parameters in {STEPS + 1} of them" in lines
    assert "          6 parameters" in lines
    last = list(Steps(plain))[-1]
    assert lines[-1] == f"loss in step {STEPS}: {last.losses['loss']:.9g}"
    digest, _ = last.parts("buffers")["1.running_mean"]
    loss = f"step {STEPS}, loss {last.losses['loss']:.9g}"
    assert shown("--step", str(STEPS), "--op", "running_mean") == (
        0,
        [loss, f"  buffers: 1.running_mean: {digest:08x}"],
    )
    assert shown("--step", "2", "--op", "0.", "--limit", "1")[1][-1] == "… and 5 more (--limit 6 shows them)"
    assert shown("--step", "99") == (0, ["nothing fits"])
    row = json.loads(shown("--output-format", "json", "--step", str(STEPS), "--op", "running_mean")[1][0])
    assert row == {"step": STEPS, "losses": last.losses, "groups": {"buffers": {"1.running_mean": f"{digest:08x}"}}}
    assert shown("--stream", "main")[0] == USAGE


def test_a_rank_has_a_file_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with Checkpoints(tmp_path / "run.tdsteps") as checkpoints:
        checkpoints.step(1.0)
    assert Steps(tmp_path / "run.rank3.tdsteps").header["rank"] == 3


def test_what_cannot_be_written_ends_no_run(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with pytest.warns(UserWarning, match="not all steps were written"), Checkpoints("/dev/full") as checkpoints:
        checkpoints.step(1.0)
    foreign = tmp_path / "model.pt"
    foreign.write_bytes(b"a model")
    with pytest.raises(StepsError, match=r"the file exists, is no file of steps"), Checkpoints(foreign):
        pass
    assert foreign.read_bytes() == b"a model"


def test_a_run_that_goes_on_is_compared_up_to_here(tmp_path, plain):
    part = tmp_path / "b.tdsteps"
    part.write_bytes(plain.read_bytes()[:-400])
    report = compare_steps(plain, part)
    assert report.ok
    assert 0 < report.compared < STEPS + 1
    assert "B did not end in order, or goes on: its steps so far were compared" in report.notes
    longer = compare_steps(plain, train(tmp_path / "c.tdsteps", steps=STEPS + 2))
    assert (longer.verdict, longer.step) == ("diverged", -1)
    assert "B has 2 steps that the other has not (it goes on longer)" in text(longer)


def test_steps_are_paired_by_their_numbers(tmp_path):
    files = []
    for name, first in (("a", 0), ("b", 3)):
        with Checkpoints(tmp_path / f"{name}.tdsteps", first=first) as checkpoints:
            for number in range(first, 6):
                checkpoints.step(float(number))
        files.append(checkpoints.path)
    report = compare_steps(*files)
    assert (report.compared, report.first, report.last) == (4, 3, 6)
    # Step 3 is what B begins with: it has no loss there.
    assert report.ok
    nothing = tmp_path / "c.tdsteps"
    with Checkpoints(nothing, first=9):
        pass
    assert compare_steps(files[0], nothing).exit_status == 3


def test_damage_is_one_line_and_never_more(tmp_path, plain):
    """Each of 300 files with one byte changed is refused in one line, or read as what it says."""
    whole, dice = plain.read_bytes(), random.Random(0)
    path = tmp_path / "b.tdsteps"
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        try:
            assert compare_steps(plain, path).verdict in ("identical", "diverged", "nothing")
        except StepsError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 200


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no file of steps"),
        (b"TDTRACE\n\1\0\0\0", "no file of steps"),
        (b"TDSTEPS\n\2\0\0\0", "version 2; this torchdet-lint reads version 1"),
        (b"TDSTEPS\n\1\0\0\0", "the file is empty"),
    ],
)
def test_what_is_no_file_of_steps_is_said_in_one_line(tmp_path, plain, data, message, capsys):
    (tmp_path / "b.tdsteps").write_bytes(data)
    assert cli.main(["compare", str(plain), str(tmp_path / "b.tdsteps")]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_definition_that_claims_more_than_there_is(tmp_path):
    path = tmp_path / "a.tdsteps"
    definition = Definition((("loss", (Part("loss"),)),), ())
    writer = StepsWriter(path, {"digest": "x", "environment": {}})
    writer.step(1, definition, [1], [], [1])
    writer._writer.block(b"R", 7, b"")
    writer.close(in_order=True)
    with pytest.raises(StepsError, match="a step does not fit its definition"):
        list(Steps(path))


def test_digests_of_another_make_are_not_compared(tmp_path):
    files = []
    for name, kind, digest in (
        ("a", "memory", "x"),
        ("b", "cuda", "x"),
        ("c", "memory", "y"),
        ("d", "unreadable", "x"),
    ):
        writer = StepsWriter(tmp_path / name, {"digest": digest, "environment": {}})
        writer.step(1, Definition((("parameters", (Part("w", kind),)),), ()), [ord(name)], [], [ord(name)])
        writer.close(in_order=True)
        files.append(tmp_path / name)
    report = compare_steps(files[0], files[1])
    assert report.ok
    assert report.notes == ("parameters: digested by memory in A and by cuda in B, which cannot be compared",)
    with pytest.raises(StepsError, match="install xxhash for both"):
        compare_steps(files[0], files[2])
    assert compare_steps(files[3], files[3]).notes == ("parameters: w cannot be read, so nothing is said of it",)


def test_the_command_compares_without_torch(tmp_path, plain):
    other = train(tmp_path / "b.tdsteps", "gradients")
    source = (
        "import sys; sys.modules['torch'] = None\n"
        "from torchdet_lint.cli.main import main\n"
        "a, b = sys.argv[1:]\n"
        "assert main(['compare', a, a]) == 0\n"
        "assert main(['compare', a, b, '--output-format', 'json']) == 1\n"
        "assert main(['compare', a, b, '--tolerance', '0.1']) == 2\n"
        "assert main(['compare', a, b, '--output-format', 'html']) == 2\n"
    )
    command = [sys.executable, "-c", source, str(plain), str(other)]
    root = Path(cli.__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    table = json.loads(done.stdout.splitlines()[1])
    assert (table["schema"], table["step"], table["differences"][0]["group"]) == (
        "torchdet-lint/steps/1",
        8,
        "gradients",
    )
    assert done.stderr.count("\n") == 2


def test_many_digests_at_once_are_those_of_one_by_one(monkeypatch):
    """What a device works out in a few kernels; here by the CPU, and with a small `CHUNK`."""
    monkeypatch.setattr(hashing, "CHUNK", 64)
    hashing._weights.cache_clear()
    torch.manual_seed(0)
    kinds = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int8, torch.bool)
    tensors = [(torch.randn(n) * 9).to(kind) for kind in kinds for n in (0, 1, 7, 63, 64, 65, 200)]
    tensors += [torch.randn(6, 5).t(), torch.randn(8, 8)[::2], torch.tensor(3.0)]

    def alone(tensor):
        flat, seed = hashing._flat(tensor)
        return ((hashing.multilinear(flat) if flat.numel() else 0) ^ seed) & hashing.MASK

    try:
        found = [value & hashing.MASK for value in hashing.many_on_device(tensors).tolist()]
        assert found == [alone(tensor) for tensor in tensors]
        assert len(set(found)) > len(found) - 7
    finally:
        hashing._weights.cache_clear()


class Named(types.SimpleNamespace):
    """What a trainer hands to its callbacks."""


def test_lightning(tmp_path, monkeypatch):
    """In the order in which Lightning's Trainer calls: the loss comes with the outputs, the gradients may be gone."""
    if "lightning" not in sys.modules:
        monkeypatch.setitem(sys.modules, "lightning", types.ModuleType("lightning"))
        monkeypatch.setitem(sys.modules, "lightning.pytorch", Named(Callback=object))
        monkeypatch.delitem(sys.modules, "torchdet_lint.verifier.steps.lightning", raising=False)
    from torchdet_lint.verifier import LightningSteps

    def fit(path, extra):
        torch.manual_seed(0)
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        loop = Named(epoch_loop=Named(total_batch_idx=-1))
        trainer = Named(optimizers=[optimizer], lr_scheduler_configs=[Named(scheduler=scheduler)], fit_loop=loop)
        callback = LightningSteps(path, every=1)
        callback.on_train_start(trainer, net)
        for number in range(3):
            loss = net(torch.ones(2)).sum()
            loss.backward()
            net.bias.grad += extra if number == 1 else 0
            optimizer.step()
            optimizer.zero_grad()
            callback.on_train_batch_end(trainer, net, {"loss": loss.detach()}, [torch.ones(2)], number)
        callback.on_train_end(trainer, net)
        return path

    report = compare_steps(fit(tmp_path / "a.tdsteps", 0), fit(tmp_path / "b.tdsteps", 1))
    assert (report.step, report.differences[0].group, report.compared) == (2, "gradients", 4)
    step = list(Steps(tmp_path / "a.tdsteps"))[-1]
    assert {"scheduler 0: last_epoch", "scheduler 0: _step_count"} <= step.parts("states").keys()
    assert step.losses.keys() == {"loss"}


def test_hugging_face(tmp_path, monkeypatch):
    """A callback of Hugging Face's Trainer sees neither batch nor loss: they are taken where the model is called."""
    if "transformers" not in sys.modules:
        monkeypatch.setitem(sys.modules, "transformers", Named(TrainerCallback=object))
        monkeypatch.delitem(sys.modules, "torchdet_lint.verifier.steps.huggingface", raising=False)
    from torchdet_lint.verifier import TrainerSteps

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, inputs, labels):
            return {"loss": (self.layer(inputs) - labels).square().mean()}

    def fit(path, value):
        torch.manual_seed(0)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        state, callback = Named(global_step=4), TrainerSteps(path, every=1)
        callback.on_train_begin(None, state, None, model=net, optimizer=Named(optimizer=optimizer), lr_scheduler=None)
        for number in range(2):
            for _ in range(2):
                net(inputs=torch.ones(2), labels=torch.tensor(value if number else 1.0))["loss"].backward()
            optimizer.step()
            net.zero_grad()
            net.eval()
            net(inputs=torch.rand(2), labels=torch.tensor(0.0))
            net.train()
            callback.on_step_end(None, state, None)
        callback.on_train_end(None, state, None)
        assert not net._forward_hooks
        return path

    report = compare_steps(fit(tmp_path / "a.tdsteps", 1.0), fit(tmp_path / "b.tdsteps", 2.0))
    assert (report.step, report.first) == (6, 4)
    assert [found.group for found in report.differences[:2]] == ["batch", "loss"]
    assert report.differences[0].names == ("labels",)


def test_ignite(tmp_path, monkeypatch):
    if "ignite" not in sys.modules:
        events = Named(STARTED=0, ITERATION_COMPLETED=1, COMPLETED=2, EXCEPTION_RAISED=3)
        monkeypatch.setitem(sys.modules, "ignite", types.ModuleType("ignite"))
        monkeypatch.setitem(sys.modules, "ignite.engine", Named(Events=events))
        monkeypatch.delitem(sys.modules, "torchdet_lint.verifier.steps.ignite", raising=False)
    from torchdet_lint.verifier import IgniteSteps

    def run(path, fail=False):
        handlers = {}
        engine = Named(add_event_handler=handlers.__setitem__, state=Named(iteration=0, batch=None, output=None))
        net = torch.nn.Linear(2, 1)
        IgniteSteps(path, model=net, every=1).attach(engine)
        started, completed, ended, failed = handlers.values()
        started(engine)
        for number in range(3):
            engine.state = Named(iteration=number + 1, batch=torch.ones(2), output=0.5 + fail)
            completed(engine)
        if fail:
            with pytest.raises(ZeroDivisionError):
                failed(engine, ZeroDivisionError())
        else:
            ended(engine)
        return Steps(path)

    whole, cut = run(tmp_path / "a.tdsteps"), run(tmp_path / "b.tdsteps", fail=True)
    assert [step.losses for step in whole][1:] == [{"loss": 0.5}] * 3
    assert (len(list(cut)), whole.complete, cut.complete) == (4, True, False)
