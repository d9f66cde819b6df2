"""What a file brings about in another one is told of it when it is linted alone, at the function that does."""

from __future__ import annotations

from pathlib import Path

import pytest

import torchdet_lint
from torchdet_lint.cli.main import main

SEEDING = """\
import random
import torch

def everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)
"""
WITHOUT = SEEDING.replace("    torch.manual_seed(seed)\n", "")
TRAIN = """\
import random
import torch
from seeding import everything

if __name__ == "__main__":
    everything(1)
    print(random.random(), torch.rand(3))
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    Path("seeding.py").write_text(WITHOUT)
    Path("train.py").write_text(TRAIN)
    Path("other.py").write_text(TRAIN.replace("everything(1)", "torch.manual_seed(0)\n    random.seed(0)"))


def found(*paths: str) -> list[tuple[str, int, str]]:
    return [(one.filename, one.location.row, one.code) for one in torchdet_lint.lint(paths)]


def test_a_removed_seed_is_told_of_the_function_that_lost_it() -> None:
    assert found(".") == [("train.py", 7, "TDL101")]
    assert found("seeding.py") == [("seeding.py", 4, "TDL101")]
    assert found("seeding.py", "train.py") == found(".")
    (one,) = torchdet_lint.lint(["seeding.py"])
    assert one.message.startswith("`everything` does not seed torch: train.py:7 calls it")
    assert [(other.filename, other.location.row) for other in one.related] == [("train.py", 7)]
    assert (one.location.column, one.end_location.column) == (1, 15)
    Path("seeding.py").write_text(SEEDING)
    assert found("seeding.py") == found(".") == []


def test_two_programs_are_one_finding() -> None:
    Path("again.py").write_text(TRAIN)
    (one,) = torchdet_lint.lint(["seeding.py"])
    assert [(other.filename, other.location.row) for other in one.related] == [("again.py", 7), ("train.py", 7)]


def test_from_the_cache_too(capsys: pytest.CaptureFixture[str]) -> None:
    for paths in (["seeding.py"], ["seeding.py"], ["."], ["seeding.py"]):
        assert main([*paths, "--output-format", "concise", "--quiet"]) == 1
        out = capsys.readouterr().out
        assert out.startswith("train.py:7:" if paths == ["."] else "seeding.py:4:1: TDL101 ")


def test_a_function_that_seeds_nothing_any_more_is_known_by_its_name() -> None:
    Path("seeding.py").write_text("def seed_everything(seed):\n    pass\n")
    Path("train.py").write_text(TRAIN.replace("everything", "seed_everything"))
    assert found("seeding.py") == [("seeding.py", 1, "TDL101"), ("seeding.py", 1, "TDL103")]


TRAINING = """\
import torch
from seeding import everything

if __name__ == "__main__":
    everything(1)
    net = torch.nn.Conv2d(3, 3, 3).cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net(torch.ones(1, 3, 8, 8).cuda()).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("left", ["    torch.manual_seed(seed)\n", "    pass\n"])
def test_a_removed_deterministic_mode_is_told_of_the_function_that_lost_it(left: str) -> None:
    name = "everything" if "seed" in left else "make_deterministic"
    Path("train.py").write_text(TRAINING.replace("everything", name))
    switch = f"import torch\n\ndef {name}(seed):\n{left}    torch.use_deterministic_algorithms(True)\n"
    Path("seeding.py").write_text(switch)
    assert "TDL203" not in {code for *_, code in [*found("seeding.py"), *found(".")]}
    Path("seeding.py").write_text(switch.replace("    torch.use_deterministic_algorithms(True)\n", ""))
    (one,) = [one for one in torchdet_lint.lint(["seeding.py"]) if one.code == "TDL203"]
    assert (one.location.row, one.message.split(":")[:2]) == (
        3, [f"`{name}` does not turn deterministic mode on", " train.py"]
    )  # fmt: skip
    assert [one[0] for one in found(".") if one[2] == "TDL203"] == ["train.py"]


SEEDED = "import random\nimport torch\n\nrandom.seed(0)\ntorch.manual_seed(0)\n"
IMPORTING = TRAIN.replace("from seeding import everything", "import seeding").replace("everything(1)", "seeding")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (SEEDED.replace("torch.manual_seed(0)\n", ""), (4, 1, 15)),
        (SEEDED.replace("random.seed(0)\ntorch.manual_seed(0)", "if torch:\n    random.seed(  # all\n 0)"), (5, 5, 24)),
        ("import torch\ntorch.use_deterministic_algorithms(True)\n", (2, 1, 41)),
        ('"""Seeds."""\n\nimport torch\n\nSEED = 0\n', (3, 1, 13)),
        ("", (1, 1, 1)),
    ],
)
def test_a_seed_removed_at_the_top_level_is_told_where_it_was(text: str, place: tuple[int, int, int]) -> None:
    Path("train.py").write_text(IMPORTING)
    Path("seeding.py").write_text(SEEDED)
    assert found("seeding.py") == found(".") == []
    Path("seeding.py").write_text(text)
    whole = found(".")
    assert ("train.py", 7, "TDL101") in whole
    (one,) = [one for one in torchdet_lint.lint(["seeding.py"]) if one.code == "TDL101"]
    assert (one.location.row, one.location.column, one.end_location.column) == place
    assert one.message.startswith("The top level of this file does not seed torch: train.py:7 imports it, uses")
    assert [(other.filename, other.location.row) for other in one.related] == [("train.py", 7)]
    assert found("seeding.py", "train.py") == whole


def test_a_mode_removed_at_the_top_level_is_told_at_the_seed_beside_it() -> None:
    training = TRAINING.replace("from seeding import everything", "import common").replace("    everything(1)\n", "")
    Path("train.py").write_text(training)
    Path("common.py").write_text("import torch\ntorch.manual_seed(0)\ntorch.use_deterministic_algorithms(True)\n")
    assert "TDL203" not in {code for *_, code in [*found("common.py"), *found(".")]}
    Path("common.py").write_text("import torch\ntorch.manual_seed(0)\n")
    (one,) = [one for one in torchdet_lint.lint(["common.py"]) if one.code == "TDL203"]
    assert (one.location.row, one.message.partition(",")[0]) == (
        2, "The top level of this file does not turn deterministic mode on: train.py:7 imports it"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("common", "import torch\n\nLAYERS = 3\n"),
        ("common", "import random\n\ndef shuffled(rows):\n    random.seed(0)\n    random.shuffle(rows)\n"),
        ("seeding", "import torch\n\ndef generator(seed):\n    return torch.Generator().manual_seed(seed)\n"),
        ("seeds", "SEEDS = [1, 2, 3]\n"),
    ],
)
def test_a_file_without_a_trace_of_seeding_is_not_to_blame(name: str, text: str) -> None:
    """Whether such a file seeded before it was changed is not in what is there to read: the whole run tells."""
    Path("seeding.py").unlink()
    Path("train.py").write_text(IMPORTING.replace("seeding", name))
    Path(f"{name}.py").write_text(f"import torch\ntorch.manual_seed(0)\n{text}")
    assert ("train.py", 7, "TDL101") not in found(".")
    Path(f"{name}.py").write_text(text)
    assert found(f"{name}.py") == []
    assert ("train.py", 7, "TDL101") in found(".")


def test_a_function_that_no_such_program_calls_is_not_to_blame() -> None:
    Path("train.py").write_text(TRAIN.replace("    everything(1)\n", ""))
    assert found("seeding.py") == []


def test_what_is_accepted_there_is_not_told_here() -> None:
    for comment in ("  # noqa: TDL101", ""):
        Path("train.py").write_text(TRAIN.replace("rand(3))", f"rand(3)){comment}"))
        assert found("seeding.py") == ([] if comment else [("seeding.py", 4, "TDL101")])
    Path("seeding.py").write_text(WITHOUT.replace("(seed):", "(seed):  # noqa: TDL101"))
    assert found("seeding.py") == []
    Path("seeding.py").write_text(WITHOUT)
    assert main(["baseline", "-q"]) == 0
    assert main(["seeding.py", "--baseline", ".torchdet-baseline.json"]) == 0
    assert main(["seeding.py"]) == 1


@pytest.mark.parametrize(
    ("call", "severity", "same"),
    [
        ("torch.bincount(labels)", "warning", True),
        ("torch.bincount(labels, weights=scores.long())", "warning", True),
        ("torch.bincount(labels, weights=scores)", "error", False),
    ],
)
def test_an_exact_op_that_raises_is_a_warning(call, severity, same):
    """Before torch 2.1 `bincount` raised without weights too, though it counts the same in every run; and whole numbers
    add up to the same in every release."""
    text = f"import torch\n\ndef sizes(labels, scores):\n    return {call}\n"
    (finding,) = torchdet_lint.lint_source(text, select=["TDL401"], torch_version="2.0")
    assert (finding.severity, "the same in every run" in finding.message) == (severity, same)
