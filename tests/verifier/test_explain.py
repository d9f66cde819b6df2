"""From an op to the rule that speaks of it."""

from __future__ import annotations

import importlib

import msgspec
import pytest
import torch

from torchdet_lint.catalogue import runtime
from torchdet_lint.verifier.comparison.behind import lines_behind
from torchdet_lint.verifier.comparison.explain import Explanation, Finding, explain, lint, op_rule, standing_on
from torchdet_lint.verifier.comparison.outcome import Comparison, Divergence, Evidence
from torchdet_lint.verifier.ops.plans import Plan
from torchdet_lint.verifier.trace import BATCH, Site
from torchdet_lint.verifier.verification import report


@pytest.mark.parametrize("op", ["add.Tensor", "add_.Tensor", "sub.Tensor", "softmax.int", "_softmax"])
@pytest.mark.parametrize("devices", [("cpu",), ("cpu", "cuda")])
def test_a_row_for_a_function_of_another_package_says_nothing_of_torchs(op, devices):
    assert op_rule(f"aten.{op}", "forward", devices) == ""


@pytest.mark.parametrize("op", ["mm", "addmm", "convolution", "expand"])
def test_what_varies_on_a_gpu_alone_explains_nothing_on_a_cpu(op):
    assert op_rule(f"aten.{op}", "forward") == ""


def test_an_op_that_varies_on_the_device_is_named():
    assert op_rule("aten.index_put_", "forward") == "TDL402"
    assert op_rule("aten.index_add_", "forward") == ""
    assert op_rule("aten.index_add_", "forward", ("cpu", "cuda")) == "TDL402"


def gradient(op, forward_op=""):
    evidence = Evidence(inputs_equal=True, numbers_equal=True)
    return Divergence(Site(op, "backward", "t.py", 3, "", forward_op, "t.py", 2), 0, "cause", "op", evidence)


@pytest.mark.parametrize(
    ("op", "forward_op", "rule"),
    [
        ("aten.upsample_bilinear2d_backward", "aten.upsample_bilinear2d", "TDL403"),
        ("aten.upsample_bicubic2d_backward", "", "TDL403"),
        ("aten.reflection_pad2d_backward", "aten.reflection_pad2d", "TDL403"),
        ("aten.replication_pad3d_backward", "aten.replication_pad3d", "TDL403"),
        ("aten._scaled_dot_product_flash_attention_backward", "aten._scaled_dot_product_flash_attention", "TDL405"),
        ("aten._cudnn_rnn_backward", "aten._cudnn_rnn", "TDL404"),
        ("torchvision._roi_align_backward", "torchvision.roi_align", "TDL406"),
        ("torchvision._deform_conv2d_backward", "", "TDL406"),
        ("aten.native_layer_norm_backward", "aten.native_layer_norm", ""),
    ],
)
def test_the_gradient_of_an_op_on_a_gpu_is_named_by_the_op_that_runs(op, forward_op, rule):
    assert explain(gradient(op, forward_op), ("cpu", "cuda")).rule == rule


def test_a_convolution_on_a_gpu_may_have_been_given_another_algorithm():
    backward = explain(gradient("aten.convolution_backward", "aten.convolution"), ("cpu", "cuda"))
    assert (backward.rule, backward.also[-2:]) == ("TDL403", ("TDL201", "TDL202"))
    forward = Divergence(Site("aten.convolution", "forward", "t.py", 3, ""), 0, "cause", "op", Evidence(True, True))
    assert explain(forward, ("cpu", "cuda")).rule == "TDL201"
    assert explain(forward, ("cpu",)).rule == ""


@pytest.mark.parametrize("name", runtime.dispatch().drawless)
def test_ops_that_draw_nothing_carry_torchs_tag_of_a_random_op(name):
    op = getattr(torch.ops.aten, name).default
    assert torch.Tag.nondeterministic_seeded in op.tags
    assert not Plan(op, 0).random


@pytest.mark.parametrize(("name", "argument"), runtime.dispatch().filled.items())
def test_arguments_that_are_filled_are_arguments(name, argument):
    importlib.import_module("torch.distributed.fsdp")
    op = getattr(torch.ops.fsdp, name).default
    assert op._schema.arguments[Plan(op, 0).overwrites].name == argument


@pytest.mark.parametrize("name", runtime.dispatch().scratch)
def test_scratch_outputs_are_outputs(name):
    importlib.import_module("torch.distributed.fsdp")
    op = getattr(torch.ops.fsdp if hasattr(torch.ops.fsdp, name) else torch.ops.aten, name).default
    outputs = len(op._schema.returns) + len(Plan(op, 0).written)
    assert max(runtime.dispatch().scratch[name]) < outputs


PROGRAM = """import random

import numpy as np
import torch


def words():
    order = list(range(9))
    random.shuffle(order)
    return order


def noise():
    rng = np.random.default_rng()
    kept = [rng.random()]
    seen = {"a", "b"}
    for name in seen:
        print(name)
    return torch.tensor(kept)


values = words()
print(torch.tensor(values), noise())
"""


@pytest.mark.parametrize(
    ("line", "function", "made"),
    [
        (18, {*range(14, 20)}, {16, 17, 18}),
        (19, {*range(14, 20)}, {14, 15, 19}),
        (22, set(), {*range(7, 11), 22}),
        (2, None, None),
    ],
)
def test_what_stands_behind_a_line(tmp_path, line, function, made):
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    behind = lines_behind(path, line)
    assert (behind and (behind.function, behind.made)) == (None if function is None else (function, made))


def entered(line):
    evidence = Evidence(inputs_equal=True, numbers_equal=True)
    return Divergence(Site("aten.lift_fresh", "forward", "train.py", line, ""), 0, "cause", "outside", evidence)


@pytest.mark.parametrize(
    ("entry", "reported", "others", "expected"),
    [
        # Data that came in is laid to what made it, whatever else the file has, and whichever rule is named first.
        (19, [("TDL305", 9), ("TDL104", 14)], [], "TDL104"),
        (19, [("TDL305", 16), ("TDL104", 14)], [], "TDL104"),
        (19, [("TDL305", 9)], [], "TDL305"),
        # What stands in the function of another cause is that one's.
        (19, [("TDL305", 9)], [10], None),
        # Two that are equally near: none is named.
        (19, [("TDL305", 15), ("TDL104", 14)], [], None),
        # One that stands at the call names the line that it means.
        (19, [("TDL305", "22 (line 9)")], [10], None),
        (19, [("TDL305", "22 (line 14)"), ("TDL104", 9)], [], "TDL305"),
        # What stands on the line itself, unless it is about ops and their switches.
        (19, [("TDL305", 9), ("TDL302", 19)], [], "TDL302"),
        (19, [("TDL305", 9), ("TDL203", 19), ("TDL402", 19)], [], "TDL305"),
        (19, [("TDL203", 19)], [], None),
    ],
)
def test_of_the_linters_findings_the_nearest_is_named(tmp_path, entry, reported, others, expected):
    (tmp_path / "train.py").write_text(PROGRAM)
    rows = [(code, *str(row).partition(" ")[::2]) for code, row in reported]
    findings = [Finding(code, words, str(tmp_path / "train.py"), int(line)) for code, line, words in rows]
    why = Explanation("", "", ("TDL305", "TDL104"))
    found = standing_on(entered(entry), why, findings, tmp_path, [entered(other) for other in others])
    assert (found and found.code) == expected


@pytest.mark.parametrize("rule", ["TDL101", "TDL102", "TDL103"])
def test_the_only_finding_about_a_global_generator_is_named_wherever_it_stands(tmp_path, rule):
    """What a function of another file makes a tensor of may be drawn in the file that the program starts with."""
    (tmp_path / "train.py").write_text(PROGRAM)
    found = [Finding(rule, "", str(tmp_path / "main.py"), line) for line in (3, 5)]
    why = Explanation("", rule, ())
    assert standing_on(entered(19), why, [found[0], Finding("TDL304", "", "main.py", 9)], tmp_path) == found[0]
    assert standing_on(entered(19), why, found, tmp_path) is None


def test_another_file_is_named_from_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text("import torch\n\n\ndef made():\n    return torch.nn.Linear(2, 2)\n")
    program = tmp_path / "train.py"
    program.write_text("import torch\n\nfrom model import made\n\nmodel = made()\n"
                       "torch.optim.SGD(model.parameters(), 0.1).step()\n")  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (told,) = [finding for finding in lint([program, tmp_path / "model.py"]) if finding.code == "TDL101"]
    assert "(model.py:5)" in told.message


def test_numbers_that_pick_other_tensors_may_come_from_a_hash():
    item = entered(7)
    met = msgspec.structs.replace(item, source="order", evidence=Evidence(inputs_equal=False, numbers_equal=True))
    assert "TDL601" in explain(met).also


LOADER = """import torch
def main():
    for batch in torch.utils.data.DataLoader(Rows(), num_workers=2):
        print(batch)
class Rows:
    def __getitem__(self, index):
        rng = make()
        return torch.tensor(rng.random())
"""


def test_a_batch_and_what_the_workers_made_it_of_are_one_cause(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(LOADER)
    finding = Finding("TDL104", "said", str(tmp_path / "train.py"), 7)
    monkeypatch.setattr(report.explain, "lint", lambda *_, **__: (finding,))
    evidence = Evidence(inputs_equal=True, numbers_equal=True, generators={"torch": "equal"})
    batch = Divergence(Site(BATCH, "forward", "train.py", 3, "main"), 0, "cause", "outside", evidence)
    made = Divergence(
        Site("aten.lift_fresh", "forward", "train.py", 8, "__getitem__"),
        0,
        "cause",
        "outside",
        evidence,
        stream="process",
    )
    compared = Comparison(
        identical=False, compared=2, a_records=2, b_records=2, differing=2, divergences=(batch, made), partings=(),
        persistence="persistent", environment={},
    )  # fmt: skip
    told = report.report_on("pair", ("train.py",), [], compared, (), tmp_path, lint=True)
    [cause] = told.causes
    assert (cause.rule, cause.op, cause.finding.line) == ("TDL104", BATCH, 7)
    assert [place.rpartition("/")[2] for place in cause.places] == ["train.py:8 in a worker"]
