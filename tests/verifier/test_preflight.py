"""Two machines before a run: what differs between them is named by its part, and nothing of this process changes."""

from __future__ import annotations

import json
import random

import pytest

torch = pytest.importorskip("torch")

from torchdet_lint.verifier import cli, preflight  # noqa: E402
from torchdet_lint.verifier.verification.outcome import VerifyError  # noqa: E402
from torchdet_lint.verifier.verification.preflight.compare import compare_preflight, text  # noqa: E402


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A file of this machine, with weights and data."""
    folder = tmp_path_factory.mktemp("preflight")
    (folder / "data/inner").mkdir(parents=True)
    (folder / "data/1.txt").write_text("one")
    (folder / "data/inner/2.txt").write_text("two")
    torch.save({"w": torch.ones(3)}, folder / "w.pt")
    words = ["--weights", str(folder / "w.pt"), "--data", str(folder / "data"), "--contents"]
    assert cli.main(["preflight", "-o", str(folder / "a.json"), *words]) == 0
    return folder / "a.json"


def changed(machine, tmp_path, part, name, value):
    table = json.loads(machine.read_text())
    if value is None:
        del table[part][name]
    else:
        table[part][name] = value
    (tmp_path / "b.json").write_text(json.dumps(table))
    return tmp_path / "b.json"


def test_a_machine_is_equal_to_itself(machine, capsys):
    assert cli.main(["verify", "--preflight", str(machine), str(machine)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("✓ nothing differs on which results depend")
    assert all(word in told for word in ("weights (", "data (3)", "draws (9)", "ops (8)"))


@pytest.mark.parametrize(
    ("part", "name", "value", "said"),
    [
        ("machine", "threads", "96", "Floating-point results may differ"),
        ("packages", "torch", "1.0", "Other releases"),
        ("flags", "cudnn.benchmark", "unknown", "Set these in the program"),
        ("variables", "OMP_NUM_THREADS", "77", "Set these alike"),
        ("weights", "w.pt: data/0", "12 bytes, 00", "other weights"),
        ("data", "data/inner/2.txt", None, "other data"),
        ("draws", "torch.randn on cpu", "0", "The same seed gives other random numbers"),
        ("ops", "matmul on cpu", "0", "The same op on the same input"),
    ],
)
def test_what_differs_is_named_by_its_part(machine, tmp_path, part, name, value, said):
    report = compare_preflight(machine, changed(machine, tmp_path, part, name, value))
    assert (report.exit_status, [one.name for one in report.parts if one.differing]) == (1, [part])
    (found,) = (one for one in report.parts if one.differing)
    assert found.differing.keys() == {name}
    shown = text(report)
    assert f"  {name}: " in shown
    assert said in shown
    assert max(map(len, shown.splitlines())) <= 118


def test_what_is_aside_does_not_count(machine, tmp_path):
    report = compare_preflight(machine, changed(machine, tmp_path, "aside", "platform", "Plan 9\x1b[2J"))
    assert report.ok
    assert "aside: platform: " in text(report)
    assert "\x1b" not in text(report)


def test_listed_and_digested_data_are_compared_by_size(machine, tmp_path):
    folder = machine.parent / "data"
    preflight(tmp_path / "b.json", weights=[machine.parent / "w.pt"], data=[folder], generators=False)
    report = compare_preflight(machine, tmp_path / "b.json")
    assert report.ok
    assert "contents of the data" in report.not_compared
    assert "differ" not in text(report).splitlines()[1]


def test_a_part_that_one_machine_was_not_asked_for_is_not_compared(machine, tmp_path):
    whole = json.loads(machine.read_text())
    without = tmp_path / "b.json"
    without.write_text(json.dumps({**whole, "weights": {}, "data": {}, "variables": {}}))
    one, other = compare_preflight(machine, without), compare_preflight(without, without)
    has = f"({machine.name} has them)"
    assert one.not_compared == (f"weights {has}", f"data {has}", "generators")
    assert not [part.name for part in one.parts if part.differing and part.name != "variables"]
    assert f"not compared, since the files do not both have them: weights {has}, " in text(one)
    assert (other.ok, other.not_compared) == (True, ("weights", "data", "generators"))
    assert "variables (0)" in text(other)


def test_in_a_program_the_flags_and_generators_are_its_own(tmp_path):
    torch.manual_seed(3)
    random.seed(3)
    net = torch.nn.Linear(2, 1)
    before = (random.getstate(), torch.get_rng_state())
    torch.backends.cudnn.benchmark = True
    try:
        one = preflight(model=net)
    finally:
        torch.backends.cudnn.benchmark = False
    assert (random.getstate(), torch.equal(torch.get_rng_state(), before[1])) == (before[0], True)
    assert (one.flags["cudnn.benchmark"], one.weights.keys()) == ("True", {"weight", "bias"})
    torch.manual_seed(4)
    two = preflight(model=net)
    assert one.generators["torch"] != two.generators["torch"]
    assert (one.generators["python"], one.draws, one.weights) == (two.generators["python"], two.draws, two.weights)


def test_errors_are_one_line(machine, tmp_path, capsys):
    other = tmp_path / "x.json"
    other.write_text("[" * 100_000)
    whole = json.loads(machine.read_text())
    later = tmp_path / "y.json"
    later.write_text(json.dumps({**whole, "schema": "torchdet-lint/preflight/9"}))
    (tmp_path / "data").mkdir()
    commands = [
        (["verify", "--preflight", str(machine), str(other)], "no file of `torchdet-lint preflight`"),
        (["verify", "--preflight", str(machine), str(later)], "this torchdet-lint reads torchdet-lint/preflight/1"),
        (["verify", "--preflight", str(machine), str(tmp_path)], "no such file"),
        (["verify", "--preflight", str(machine)], "expected 2 arguments"),
        (["verify", "--preflight", str(machine), str(machine), "train.py"], "runs no program, and train.py is given"),
        (["verify", "--preflight", str(machine), str(machine), "--output-format", "html"], "no --output-format html"),
        (["preflight", "-o", str(other), "--data", str(tmp_path / "none")], "no such folder of data"),
        (["preflight", "-o", str(other), "--weights", "none.pt"], "no such file of weights"),
        (["preflight", "-o", str(tmp_path), "--seed", "1"], "is a folder"),
        (
            ["preflight", "-o", str(other), "--data", str(tmp_path / "data"), "--data", str(machine.parent / "data")],
            "two paths of data are called data",
        ),
    ]
    for words, message in commands:
        assert cli.main(words) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
    with pytest.raises(VerifyError, match="`model` is a int"):
        preflight(model=3)


def test_many_files_are_listed_by_folder(tmp_path, monkeypatch):
    from torchdet_lint.verifier.verification.preflight import gather

    monkeypatch.setattr(gather, "MOST_ROWS", 3)
    for number in range(5):
        (tmp_path / "data" / str(number % 2)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / str(number % 2) / f"{number}.txt").write_text("x" * number)
    rows, order = {}, {}
    gather._listed(tmp_path / "data", False, rows, order)
    assert {name: told for name, told in rows.items() if "/" in name} == {"data/0/": "3 files", "data/1/": "2 files"}
    assert rows["data"].startswith("5 files, 10 bytes, ")
    assert order.keys() == {"order of the files in data"}
