"""What the table of ops advises, tried: the other way computes the same, and the settings that it names exist."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

import pytest

from torchdet_lint.api import lint_source
from torchdet_lint.catalogue.loading import load
from torchdet_lint.catalogue.ops import status_at
from torchdet_lint.config import NEWEST_TORCH

torch = pytest.importorskip("torch")
F: Any = importlib.import_module("torch.nn.functional")

ROWS = [op for op in load().facts.ops if not op.silent_because]

# An op of x, which has the shape (2, 4, 8, 8), and what the table says instead.
SAME = {
    "torch.nn.AvgPool3d": [("F.avg_pool3d(x, (1, 2, 4))", "x.view(2, 4, 4, 2, 2, 4).mean((3, 5))")],
    "torch.nn.LPPool3d": [
        ("F.lp_pool3d(x, 2, (1, 2, 4))", "x.view(2, 4, 4, 2, 2, 4).pow(2).sum((3, 5)).sqrt()"),
    ],
    "torch.nn.AdaptiveAvgPool1d": [
        ("F.adaptive_avg_pool1d(x[0], 1)", "x[0].mean(-1, keepdim=True)"),
        ("F.adaptive_avg_pool1d(x[0], 4)", "F.avg_pool1d(x[0], 2)"),
    ],
    "torch.nn.AdaptiveAvgPool2d": [
        ("F.adaptive_avg_pool2d(x, 1)", "x.mean((-2, -1), keepdim=True)"),
        ("F.adaptive_avg_pool2d(x, (4, 2))", "F.avg_pool2d(x, (2, 4))"),
    ],
    "torch.nn.AdaptiveAvgPool3d": [("F.adaptive_avg_pool3d(x, 1)", "x.mean((1, 2, 3), keepdim=True)")],
    "torch.nn.AdaptiveMaxPool1d": [
        ("F.adaptive_max_pool1d(x[0], 1)", "x[0].amax(dim=-1, keepdim=True)"),
        ("F.adaptive_max_pool1d(x[0], 4)", "F.max_pool1d(x[0], 2)"),
    ],
    "torch.nn.AdaptiveMaxPool2d": [
        ("F.adaptive_max_pool2d(x, 1)", "x.amax(dim=(-2, -1), keepdim=True)"),
        ("F.adaptive_max_pool2d(x, (4, 2))", "F.max_pool2d(x, (2, 4))"),
    ],
    "torch.nn.AdaptiveMaxPool3d": [("F.adaptive_max_pool3d(x, (2, 4, 2))", "F.max_pool3d(x, (2, 2, 4))")],
    "torch.nn.MaxPool3d": [("F.max_pool3d(x, 2)", "F.max_pool3d(x, 2, return_indices=True)[0]")],
    "torch.nn.MaxUnpool1d": [
        ("F.max_unpool1d(*lines, 2)", "x.new_zeros(4, 8, 8).scatter(-1, lines[1], lines[0])"),
    ],
    "torch.nn.MaxUnpool2d": [
        (
            "F.max_unpool2d(*planes, 2)",
            "x.new_zeros(2, 4, 64).scatter(-1, planes[1].flatten(2), planes[0].flatten(2)).view(2, 4, 8, 8)",
        ),
    ],
    "torch.nn.MaxUnpool3d": [
        (
            "F.max_unpool3d(*(part[None] for part in volumes), 2)[0]",
            "x.new_zeros(2, 256).scatter(-1, volumes[1].flatten(1), volumes[0].flatten(1)).view(2, 4, 8, 8)",
        ),
    ],
    "torch.nn.functional.interpolate(mode='linear')": [
        (
            "F.interpolate(x[0], 5, mode='linear')",
            "F.interpolate(x[0].unsqueeze(2), (1, 5), mode='bilinear').squeeze(2)",
        ),
    ],
    "torch.nn.functional.interpolate(mode='area')": [
        ("F.interpolate(x, (4, 2), mode='area')", "F.avg_pool2d(x, (2, 4))"),
    ],
    "torch.nn.functional.grid_sample": [
        (
            "F.grid_sample(x, F.affine_grid(identity, (2, 4, 5, 6)), 'bilinear', 'border')",
            "F.interpolate(x, (5, 6), mode='bilinear')",
        ),
    ],
    "torch.nn.ReflectionPad1d": [
        ("F.pad(x[0], (2, 1), 'reflect')", "F.pad(x[0].unsqueeze(-2), (2, 1, 0, 0), 'reflect').squeeze(-2)"),
    ],
    "torch.nn.ReflectionPad3d": [
        (
            "F.pad(x[None], (1, 1, 2, 2, 1, 1), 'reflect')[0]",
            "F.pad(F.pad(x, (1, 1, 2, 2), 'reflect').transpose(1, 2), (0, 0, 1, 1), 'reflect').transpose(1, 2)",
        ),
    ],
    "torch.nn.NLLLoss": [
        (
            "F.cross_entropy(x, labels)",
            "F.cross_entropy(x.flatten(2).transpose(1, 2).flatten(0, 1), labels.flatten())",
        ),
        ("F.cross_entropy(x, labels)", "F.cross_entropy(x, labels, reduction='none').mean()"),
    ],
    "torch.nn.NLLLoss2d": [
        (
            "torch.nn.NLLLoss2d()(x.log_softmax(1), labels)",
            "torch.nn.NLLLoss()(x.log_softmax(1).flatten(2).transpose(1, 2).flatten(0, 1), labels.flatten())",
        ),
        (
            "torch.nn.NLLLoss2d()(x.log_softmax(1), labels)",
            "torch.nn.NLLLoss2d(reduction='none')(x.log_softmax(1), labels).mean()",
        ),
    ],
    "torch.Tensor.put_(accumulate=False)": [
        (
            "x.clone().put_(unique, x[0, 0, 0, :4])",
            "x.clone().view(-1).index_put_((unique,), x[0, 0, 0, :4]).view_as(x)",
        ),
    ],
    "torch.Tensor.put_(accumulate=True)": [
        (
            "x.clone().put_(index, x[0, 0, 0, :4], accumulate=True)",
            "x.clone().view(-1).index_put_((index,), x[0, 0, 0, :4], accumulate=True).view_as(x)",
        ),
    ],
    "torch.take": [("torch.take(x, index)", "x.flatten()[index]")],
    "torch.Tensor.scatter_(reduce='add')": [
        ("fixed.scatter(0, index, fixed[:4], reduce='add')", "fixed.scatter_add(0, index, fixed[:4])"),
    ],
    "torch.Tensor.scatter_(reduce='multiply')": [
        (
            "positive.detach().scatter(0, index, positive[:4].detach(), reduce='multiply')",
            "positive.detach().log().scatter_add(0, index, positive[:4].detach().log()).exp()",
        ),
    ],
    "torch.Tensor.scatter_reduce_(reduce='prod')": [
        (
            "positive.scatter_reduce(0, index, positive[:4], reduce='prod')",
            "positive.log().scatter_add(0, index, positive[:4].log()).exp()",
        ),
    ],
    "torch.repeat_interleave": [("x.repeat_interleave(torch.tensor([3, 3]), 0)", "x.repeat_interleave(3, 0)")],
    "torch.Tensor.index_reduce_": [
        (
            f"x.index_reduce(2, index, x[:, :, 4:], '{reduce}')",
            f"x.scatter_reduce(2, index.view(4, 1).expand(2, 4, 4, 8), x[:, :, 4:], '{reduce}')",
        )
        for reduce in ("amax", "amin", "prod", "mean")
    ],
    "torch.cumprod": [("positive.cumprod(0)", "positive.log().cumsum(0).exp()")],
    "torch.median(dim=...)": [
        ("x.median(dim=1).values", "x.sort(dim=1).values[:, 1]"),
        ("x.median(dim=1).values", "x.kthvalue(2, dim=1).values"),
        ("row.median(dim=0).values", "row.median()"),
    ],
    "torch.kthvalue": [("x.kthvalue(3, -1).values", "x.sort(-1).values[..., 2]")],
    "torch.histc": [
        (
            "torch.histc(fixed, 8, 0, 64)",
            "torch.bincount(torch.bucketize(inside, torch.arange(8, 64, 8), right=True), minlength=8).to(x)",
        ),
    ],
    "torch.bincount": [
        (
            "torch.bincount(index, fixed[:4])",
            "torch.zeros(3).to(x).index_put_((index,), fixed[:4], accumulate=True)",
        ),
    ],
    "torch.bincount(integer weights)": [
        (
            "torch.bincount(index, unique)",
            "torch.zeros(3, dtype=torch.float64).index_put_((index,), unique.double(), accumulate=True)",
        ),
    ],
}
# Another op, that computes something else, or a switch: the words of the advice that torch must know.
NAMED = {
    "torch.nn.FractionalMaxPool2d": ["torch.nn.MaxPool2d"],
    "torch.nn.FractionalMaxPool3d": ["torch.nn.MaxPool3d"],
    "torch.nn.functional.interpolate(mode='bicubic')": ["torch.nn.functional.interpolate(mode='bilinear')"],
    "torch.nn.functional.interpolate(antialias=True)": ["torch.nn.functional.interpolate(mode='bilinear')"],
    "torch.nn.EmbeddingBag(mode='max')": ["torch.nn.EmbeddingBag"],
    "torch.Tensor.__getitem__": ["torch.index_select"],
}
MODE = re.compile(
    r"use_deterministic_algorithms|unique|CUBLAS_WORKSPACE_CONFIG|on the CPU|sdpa_kernel|BACKEND='TRITON'"
)


def values() -> dict[str, Any]:
    torch.manual_seed(0)
    x = (torch.randperm(512) - 200).double().view(2, 4, 8, 8).requires_grad_()
    return {
        "torch": torch,
        "F": F,
        "x": x,
        "row": x.flatten()[:8],
        "fixed": x.flatten().detach(),
        "inside": x[(x >= 0) & (x <= 64)].detach(),
        "positive": x[0, 0, 0].abs() / 100 + 0.5,
        "index": torch.tensor([0, 2, 2, 1]),
        "unique": torch.tensor([3, 0, 2, 1]),
        "labels": torch.randint(4, (2, 8, 8)),
        "identity": torch.eye(2, 3).double().expand(2, 2, 3),
        "lines": F.max_pool1d(x[0], 2, return_indices=True),
        "planes": F.max_pool2d(x, 2, return_indices=True),
        "volumes": F.max_pool3d(x, 2, return_indices=True),
    }


@pytest.mark.parametrize(("op", "advised"), [(op, pair) for op, pairs in SAME.items() for pair in pairs])
def test_the_other_way_computes_the_same(op: str, advised: tuple[str, str]) -> None:
    results, gradients = [], []
    for expression in advised:
        known = values()
        result = eval(expression, known)
        results.append(result)
        # Each place counts otherwise, so that a gradient in the wrong place shows.
        total = (result * torch.arange(1, result.numel() + 1).view(result.shape)).sum()
        gradients.append(torch.autograd.grad(total, known["x"])[0] if total.requires_grad else None)
    torch.testing.assert_close(results[1], results[0])
    if None not in (gradients[0], gradients[1]):
        torch.testing.assert_close(gradients[1], gradients[0])


@pytest.mark.parametrize("op", [op for op in ROWS if op.instead], ids=lambda op: f"{op.op} {'+'.join(op.devices)}")
def test_every_advice_is_tried(op: Any) -> None:
    if op.package != "torch" or op.op.partition(".")[0] != "torch":
        pytest.skip("another package, which is not installed here")
    if op.devices == ("mps",):
        assert op.instead == "Run it on the CPU"
        return
    name = re.sub(r"\((?:output_size|stride)=.*", "", op.op)
    assert name in {*SAME, *NAMED} or MODE.search(op.instead), op.instead


@pytest.mark.parametrize(("op", "wanted"), NAMED.items())
def test_an_op_that_is_named_is_deterministic_or_switchable(op: str, wanted: list[str]) -> None:
    assert any(row.op == op for row in ROWS)
    for name in wanted:
        rows = [row for row in ROWS if row.op == name and "cuda" in row.devices]
        assert all(status_at(row, NEWEST_TORCH) in ("switchable", "deterministic", "errors") for row in rows)
        value: Any = torch
        for part in name.partition("(")[0].split(".")[1:]:
            value = getattr(value, part)
        assert callable(value)


def test_the_switches_exist() -> None:
    assert callable(torch.use_deterministic_algorithms)
    assert torch.backends.cudnn.deterministic in (True, False)
    attention = importlib.import_module("torch.nn.attention")
    query = torch.rand(1, 2, 3, 4, requires_grad=True)
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        only = F.scaled_dot_product_attention(query, query, query)
    torch.testing.assert_close(only, F.scaled_dot_product_attention(query, query, query))
    advice = {op.instead for op in ROWS if "CUBLAS_WORKSPACE_CONFIG" in op.instead}
    assert advice == {"Call os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8') before CUDA starts"}
    assert callable(os.environ.setdefault)


@pytest.mark.parametrize("op", ROWS, ids=lambda op: f"{op.op} {op.direction} {'+'.join(op.devices)}")
def test_what_no_switch_cures_has_an_advice(op: Any) -> None:
    if status_at(op, NEWEST_TORCH) in ("errors", "silent"):
        assert op.instead, f"{op.op}: say what to do instead"


@pytest.mark.parametrize(
    ("release", "told"),
    [
        ("1.8", "Require torch 2.1 or later, where it is deterministic in deterministic mode."),
        ("2.0", "Require torch 2.1 or later, where it is deterministic in deterministic mode."),
        ("2.1", "Call `torch.use_deterministic_algorithms(True)`, which switches it to a deterministic kernel."),
    ],
)
def test_the_release_in_which_an_op_is_mended_is_named(release: str, told: str) -> None:
    text = (
        "import torch.nn.functional as F\n\n\ndef up(x, weight):\n    weight.requires_grad_()\n"
        "    return F.interpolate((x @ weight).cuda(), scale_factor=2, mode='bilinear')\n"
    )
    (finding,) = lint_source(text, select=["TDL403"], torch_version=release)
    assert finding.help == told


@pytest.mark.parametrize("release", ["2.0", "2.8", "2.13"])
def test_the_release_is_named_of_each_mode_that_may_be_meant(release: str) -> None:
    text = (
        "import torch.nn.functional as F\nfrom torch import nn\n\n\nclass Up(nn.Module):\n"
        "    def __init__(self, mode):\n        super().__init__()\n        self.mode = mode\n\n"
        "    def forward(self, x):\n"
        "        return F.interpolate(x, scale_factor=2, mode=self.mode, align_corners=False)\n\n\n"
        "net = nn.Sequential(nn.Conv3d(1, 1, 3), Up('trilinear'))\n"
    )
    (finding,) = lint_source(text, select=["TDL403"], torch_version=release)
    assert re.search(r"mode='bilinear'.*mode='trilinear'.* torch 2\.9 ", finding.help)


@pytest.mark.parametrize(
    ("release", "call", "told"),
    [
        ("1.7", "nn.global_add_pool(x, batch)", "Require torch 1.13 or later"),
        ("1.12", "utils.scatter(x, batch)", "Require torch 1.13 or later"),
        ("1.12", "utils.softmax(x, batch)", "Require torch 1.13 or later"),
        ("2.1", "nn.global_mean_pool(x, batch)", "torch_geometric.utils.segment with the `ptr` of the batch."),
        ("2.1", "utils.scatter(x, batch)", "Use torch_geometric.utils.segment over sorted indices."),
        ("2.1", "utils.softmax(x, batch)", "pass the `ptr` of the groups."),
    ],
)
def test_each_kind_of_op_of_pyg_has_its_own_advice_for_the_release(release: str, call: str, told: str) -> None:
    text = f"from torch_geometric import nn, utils\n\n\ndef pool(x, batch):\n    return {call}\n"
    (finding,) = lint_source(text, select=["TDL406"], torch_version=release)
    assert told in finding.help
    assert ("`ptr`" in finding.help) == ("`ptr`" in told)
