"""What was examined op by op in the binaries, sources and documentation of torch, against the table.

A row of the data: op, direction, device, status in 2.13, other spellings, and the history: package, first and last
release of it (empty: all before, all since), and the statuses there, several where it depends on the input.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchdet_lint.catalogue.loading import load
from torchdet_lint.catalogue.ops import Op, Status, release, status_at, status_in

EXAMINED = json.loads((Path(__file__).parent / "data" / "ops-examined.json").read_text(encoding="utf-8"))
OPS = load().facts.ops
RELEASE = (2, 13)
RELEASES = [(1, minor) for minor in range(8, 14)] + [(2, minor) for minor in range(16)]
VARIES = ("errors", "switchable", "silent")
# The table has the same op under another name, or the fact is a rule's.
RENAMED = {
    "torch.Tensor.resize_ (quantized)": "torch.Tensor.resize_(quantized)",
    "in-place op on a self-overlapping tensor": "an in-place op on a self-overlapping tensor",
}
NO_OP = {"torch.backends.cudnn.deterministic": "a switch: the rows of the convolutions name it"}
# One row of the table where several were examined: what its backends do, of which a call shows none.
JOINED = "torch.nn.functional.scaled_dot_product_attention"
# Ops that run another one, and follow it from release to release.
KIN = [
    ("torch.nn.functional.scaled_dot_product_attention", "backward", [
        "torch.nn.TransformerEncoderLayer", "torch.nn.MultiheadAttention(need_weights=False)",
        "torch.nn.functional.multi_head_attention_forward",
    ]),
    ("torch.Tensor.scatter_add_", "forward", [
        "torch_scatter.scatter", "torch_scatter.scatter_add", "torch_sparse.spmm", "torch_geometric.utils.scatter",
        "torch_geometric.nn.global_add_pool", "torch_geometric.utils.softmax", "torch_geometric.nn.MessagePassing",
        "torch_geometric.nn.GCNConv", "torch_geometric.nn.EdgeConv(aggr='add')",
    ]),
    ("torch.gather", "backward", ["torch.take_along_dim", "torch.cummax", "torch.quantile"]),
    ("torch.nn.MaxPool3d(return_indices=True)", "backward", ["torch.nn.functional.max_pool3d_with_indices"]),
    ("torch.nn.ReflectionPad2d", "backward", ["torch.nn.functional.pad(mode='reflect')"]),
    ("torch.nn.ReplicationPad3d", "backward", ["torch.nn.functional.pad(mode='replicate')"]),
]  # fmt: skip
# Several rows of one name, of which the examination had one: the others are another `reduce`.
BY_REDUCTION = ("torch_scatter.scatter", "torch_geometric.utils.scatter")
# Spellings that stand in a row of their own, or that no call of a user's takes.
ELSEWHERE = {
    "torch.convolution": "the layers and functions by dimension call it",
    "torch.lstm": "nn.LSTM calls it",
    "torch.rnn_tanh": "nn.RNN calls it",
    "torch.gru": "nn.GRU calls it",
    "torch.Tensor.__setitem__": "on MPS, where it is index_put_ without accumulate",
    "torch.distributions.Categorical.sample": "it draws along rows",
    "torch.empty_strided": "TDL501 knows every way to get unwritten memory",
    "torch.empty_permuted": "TDL501 knows every way to get unwritten memory",
    "torch.Tensor.new_empty_strided": "TDL501 knows every way to get unwritten memory",
    "torch.Tensor.new": "TDL501 knows every way to get unwritten memory",
    "torch.nn.utils.skip_init": "TDL501 knows every way to get unwritten memory",
    "torch.nn.Module.to_empty": "TDL501 knows every way to get unwritten memory",
    "torch._inductor.config.max_autotune": "TDL207",
    "torch._inductor.config.coordinate_descent_tuning": "TDL207",
    "torch._inductor.config.shape_padding": "TDL207",
    "torch.nn.parallel.DistributedDataParallel": "the order of the sum depends on the cluster",
    "torch.distributed.fsdp.FullyShardedDataParallel": "the order of the sum depends on the cluster",
}
IDS = [f"{op} {direction} {device} {number}" for number, (op, direction, device, *_) in enumerate(EXAMINED)]
SPELLED = {spelling.name for op in OPS for spelling in op.spellings}


Span = tuple[str, str, str, list[str]]


def rows_of(direction: str, device: str) -> list[Op]:
    return [op for op in OPS if op.direction == direction and (device == "any" or device in op.devices)]


@pytest.mark.parametrize(("name", "direction", "device", "status", "aliases", "history"), EXAMINED, ids=IDS)
def test_what_was_examined_is_in_the_table(
    name: str, direction: str, device: str, status: str, aliases: list[str], history: list[Span]
) -> None:
    if name in NO_OP:
        return
    name = RENAMED.get(name, name)
    rows = rows_of(direction, device)
    if status == "deterministic":
        # Its row, if it has one, says so.
        assert not any(op.op == name and status_at(op, RELEASE) in VARIES for op in rows)
        return
    base = name.partition("(")[0]
    mine = [op for op in rows if op.op == name or base in {op.op, *(spelling.name for spelling in op.spellings)}]
    assert status in {status_at(op, RELEASE) for op in mine}
    assert set(aliases) <= SPELLED | ELSEWHERE.keys()


@pytest.mark.parametrize(("name", "direction", "device", "status", "aliases", "history"), EXAMINED, ids=IDS)
def test_the_status_is_right_in_every_release(
    name: str, direction: str, device: str, status: str, aliases: list[str], history: list[Span]
) -> None:
    name = RENAMED.get(name, name)
    base = name.partition("(")[0]
    for package, first, last, statuses in history if name not in NO_OP else ():
        rows = [op for op in rows_of(direction, device) if op.package == package]
        exact = [op for op in rows if op.op == name]
        mine = exact or [op for op in rows if base in {op.op, *(spelling.name for spelling in op.spellings)}]
        for one in _releases(package, first, last):
            have = {status_in(op.status, one) for op in mine}
            if statuses == ["deterministic"]:
                assert not any(status_in(op.status, one) in VARIES for op in exact), one
            elif name == JOINED:
                assert have == {"silent"} if _worst(name, one) == "silent" else have <= set(statuses), one
            else:
                assert have & set(statuses), one
                assert not exact or name in BY_REDUCTION or have <= set(statuses), one


def _worst(name: str, one: tuple[int, int]) -> str:
    """`silent` where anything that was examined under `name` is silent in release `one`."""
    spans = [span for other, *_, history in EXAMINED if other == name for span in history]
    found = [statuses for package, first, last, statuses in spans if one in _releases(package, first, last)]
    return "silent" if ["silent"] in found else ""


@pytest.mark.parametrize(("like", "direction", "names"), KIN)
def test_what_runs_another_op_has_its_history(like: str, direction: str, names: list[str]) -> None:
    def histories(name: str) -> list[tuple[Status, ...]]:
        return [op.status for op in OPS if (op.op, op.direction) == (name, direction)]

    told = [[(row.since, row.status) for row in history] for history in histories(like)]
    assert told.count(told[0]) == len(told)
    for name in names:
        assert told[0] in [[(row.since, row.status) for row in history] for history in histories(name)]


def _releases(package: str, first: str, last: str) -> list[tuple[int, int]]:
    if package != "torch":
        return [release(bound) for bound in (first, last) if bound]
    return [one for one in RELEASES if release(first) <= one <= release(last)]


def test_what_was_examined_is_read_whole() -> None:
    assert len(EXAMINED) == 171
    assert {status for _, _, _, status, *_ in EXAMINED} == {*VARIES, "deterministic"}
    spans = [span for *_, history in EXAMINED for span in history]
    assert sum(len(_releases(package, first, last)) for package, first, last, _ in spans) > 2_400
    assert {package for package, *_ in spans} >= {"torch", "torchvision", "flash-attn", "torch-scatter"}
