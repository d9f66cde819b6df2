"""Which op of the catalogue an aten op is, seen from a dispatcher: name, phase and arguments decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# aten op -> op of rules/facts/ops.toml, where the name alone decides. Ops that end in `_backward` run in the backward
# pass; a CPU takes the same ones as CUDA except where said.
BACKWARD: Mapping[str, str] = {
    "_adaptive_avg_pool2d_backward": "torch.nn.AdaptiveAvgPool2d",
    "_adaptive_avg_pool3d_backward": "torch.nn.AdaptiveAvgPool3d",
    "_ctc_loss_backward": "torch.nn.CTCLoss",
    "_upsample_bicubic2d_aa_backward": "torch.nn.functional.interpolate(antialias=True)",
    "_upsample_bilinear2d_aa_backward": "torch.nn.functional.interpolate(antialias=True)",
    "adaptive_max_pool2d_backward": "torch.nn.AdaptiveMaxPool2d",
    "adaptive_max_pool3d_backward": "torch.nn.AdaptiveMaxPool3d",
    "avg_pool3d_backward": "torch.nn.AvgPool3d",
    "convolution_backward": "torch.nn.Conv2d",
    "embedding_dense_backward": "torch.nn.Embedding",
    "fractional_max_pool2d_backward": "torch.nn.FractionalMaxPool2d",
    "fractional_max_pool3d_backward": "torch.nn.FractionalMaxPool3d",
    "grid_sampler_2d_backward": "torch.nn.functional.grid_sample",
    "grid_sampler_3d_backward": "torch.nn.functional.grid_sample",
    "max_pool3d_with_indices_backward": "torch.nn.MaxPool3d",
    "reflection_pad1d_backward": "torch.nn.ReflectionPad1d",
    "reflection_pad2d_backward": "torch.nn.ReflectionPad2d",
    "reflection_pad3d_backward": "torch.nn.ReflectionPad3d",
    "replication_pad1d_backward": "torch.nn.ReplicationPad1d",
    "replication_pad2d_backward": "torch.nn.ReplicationPad2d",
    "replication_pad3d_backward": "torch.nn.ReplicationPad3d",
    "upsample_bicubic2d_backward": "torch.nn.functional.interpolate(mode='bicubic')",
    "upsample_bilinear2d_backward": "torch.nn.functional.interpolate(mode='bilinear')",
    "upsample_linear1d_backward": "torch.nn.functional.interpolate(mode='linear')",
    "upsample_trilinear3d_backward": "torch.nn.functional.interpolate(mode='trilinear')",
}

# (aten op in the backward pass, aten op of the forward pass) -> op of the catalogue.
COMPOSED_BACKWARD: Mapping[tuple[str, str], str] = {
    ("index_add", "index_select"): "torch.index_select",
    ("index_put", "index"): "torch.Tensor.__getitem__",
    ("put", "take"): "torch.take",
    ("scatter_add", "cummax"): "torch.cummax",
    ("scatter_add", "cummin"): "torch.cummax",
    ("scatter_add", "gather"): "torch.gather",
}

FORWARD: Mapping[str, str] = {
    "_sparse_addmm": "torch.sparse.mm",
    "index_copy": "torch.Tensor.index_copy_",
    "index_reduce": "torch.Tensor.index_reduce_",
    "kthvalue": "torch.kthvalue",
    "max_unpool2d": "torch.nn.MaxUnpool2d",
    "max_unpool3d": "torch.nn.MaxUnpool3d",
    "nll_loss2d_forward": "torch.nn.NLLLoss",
    "topk": "torch.topk",
}

# The arguments decide: what `by_arguments` answers.
CONDITIONAL = frozenset(
    {
        "_embedding_bag",
        "bincount",
        "bmm",
        "cumprod",
        "cumsum",
        "histc",
        "index_add",
        "index_put",
        "logcumsumexp",
        "median",
        "multinomial",
        "nanmedian",
        "put",
        "scatter",
        "scatter_add",
        "scatter_reduce",
    }
)

# Called above the dispatcher, where a CPU takes another path than CUDA does.
CALLS = (
    "torch.nn.RNN",
    "torch.nn.LSTM",
    "torch.nn.GRU",
    "torch.nn.functional.scaled_dot_product_attention",
)

_SCANS = {"cumsum": "torch.cumsum", "cumprod": "torch.cumprod", "logcumsumexp": "torch.logcumsumexp"}
_REDUCES = {"sum": "sum", "mean": "sum", "prod": "prod", "amax": "amax", "amin": "amax"}
_MOST_EMBEDDING_BAG_MODES = 2


def base_name(op: str) -> str:
    """`aten.index_put_.default`, `aten::index_put_` -> `index_put`: no namespace, no overload, no in-place mark."""
    name = op.replace("::", ".").split(".")[1]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def by_arguments(name: str, overload: str, values: Mapping[str, Any]) -> str:
    """The op of the catalogue that a conditional aten op is, or an empty text where it varies nowhere.

    `values` are the call's arguments by their names in the schema.
    """
    tensor = values.get("self", values.get("input"))
    floating = bool(tensor is not None and (tensor.is_floating_point() or tensor.is_complex()))
    if name in _SCANS:
        dim = values["dim"]
        one_row = tensor.dim() == 0 or tensor.numel() == tensor.size(dim)
        return _SCANS[name] if floating and one_row else ""
    if name == "index_put":
        return f"torch.Tensor.index_put_(accumulate={bool(values.get('accumulate'))})"
    if name == "put":
        accumulate = bool(values.get("accumulate"))
        return f"torch.Tensor.put_(accumulate={accumulate})" if floating or not accumulate else ""
    if name in ("index_add", "scatter_add"):
        return f"torch.Tensor.{name}_" if floating else ""
    if name == "scatter":
        how = values.get("reduce")
        if how is None:
            return "torch.Tensor.scatter_" if "src" in values else ""
        return f"torch.Tensor.scatter_(reduce='{how}')" if floating and "src" in values else ""
    if name == "scatter_reduce":
        return f"torch.Tensor.scatter_reduce_(reduce='{_REDUCES[values['reduce']]}')" if floating else ""
    if name in ("median", "nanmedian"):
        return "torch.median(dim=...)" if overload.startswith("dim") else ""
    if name == "bincount":
        return "torch.bincount" if values.get("weights") is not None else "torch.bincount(no weights)"
    if name == "histc":
        return "torch.histc" if floating else ""
    if name == "multinomial":
        return "torch.multinomial" if values.get("replacement") and tensor.dim() == 1 else ""
    if name == "bmm":
        return "torch.bmm" if tensor.is_sparse else ""
    if name == "_embedding_bag":
        modes = ("torch.nn.EmbeddingBag", "torch.nn.EmbeddingBag", "torch.nn.EmbeddingBag(mode='max')")
        return modes[min(int(values.get("mode", 0)), _MOST_EMBEDDING_BAG_MODES)]
    return ""


def switchable_ops() -> tuple[str, ...]:
    """Every aten op (`aten::name`, in place and not) that deterministic mode may be needed for."""
    names = {*BACKWARD, *FORWARD, *CONDITIONAL, *(pair[0] for pair in COMPOSED_BACKWARD), "_index_put_impl"}
    return tuple(sorted(f"aten::{name}{mark}" for name in names for mark in ("", "_")))
