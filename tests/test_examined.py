"""What was examined op by op in the binaries, sources and documentation of torch 2.13, against the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchdet_lint.catalogue import load, status_at

EXAMINED = json.loads((Path(__file__).parent / "data" / "ops-examined-2.13.json").read_text(encoding="utf-8"))
OPS = load().facts.ops
RELEASE = (2, 13)
VARIES = ("errors", "switchable", "silent")
# The table has the same op under another name, or the fact is a rule's.
RENAMED = {
    "torch.Tensor.resize_ (quantized)": "torch.Tensor.resize_(quantized)",
    "in-place op on a self-overlapping tensor": "an in-place op on a self-overlapping tensor",
}
NO_OP = {"torch.backends.cudnn.deterministic": "a switch: the rows of the convolutions name it"}
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


@pytest.mark.parametrize(("name", "direction", "device", "status", "aliases"), EXAMINED, ids=IDS)
def test_what_was_examined_is_in_the_table(
    name: str, direction: str, device: str, status: str, aliases: list[str]
) -> None:
    if name in NO_OP:
        return
    name = RENAMED.get(name, name)
    rows = [op for op in OPS if op.direction == direction and (device == "any" or device in op.devices)]
    if status == "deterministic":
        # Its row, if it has one, says so.
        assert not any(op.op == name and status_at(op, RELEASE) in VARIES for op in rows)
        return
    base = name.partition("(")[0]
    mine = [op for op in rows if op.op == name or base in {op.op, *(spelling.name for spelling in op.spellings)}]
    assert status in {status_at(op, RELEASE) for op in mine}
    assert set(aliases) <= SPELLED | ELSEWHERE.keys()


def test_what_was_examined_is_read_whole() -> None:
    assert len(EXAMINED) == 171
    assert {status for *_, status, _ in EXAMINED} == {*VARIES, "deterministic"}
