"""From an op to the rule that speaks of it."""

from __future__ import annotations

import pytest

from torchdet_lint.verifier.comparison.explain import op_rule


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
