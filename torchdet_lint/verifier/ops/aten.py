"""An op of aten, as a dispatcher sees it -> the op of the catalogue that it is: name, phase and arguments decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.catalogue import runtime

if TYPE_CHECKING:
    from collections.abc import Mapping

_TABLES = runtime.dispatch()
BACKWARD: Mapping[str, str] = _TABLES.backward
"""Op of aten in the backward pass -> op of the catalogue."""
PACKAGES: Mapping[str, str] = _TABLES.packages
"""Op of another package in the backward pass, with its namespace -> op of the catalogue."""
COMPOSED_BACKWARD: Mapping[tuple[str, str], str] = {
    (backward, forward): op for backward, ops in _TABLES.composed.items() for forward, op in ops.items()
}
"""(op of aten in the backward pass, op of aten in the forward pass) -> op of the catalogue."""
FORWARD: Mapping[str, str] = _TABLES.forward
"""Op of aten in the forward pass -> op of the catalogue."""

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


def gradient_of(op: str) -> str:
    """The op of the catalogue whose gradient an op (`aten.max_pool3d_with_indices_backward`) computes, where its name
    alone tells; else empty.
    """
    if op.startswith("aten."):
        return BACKWARD.get(base_name(op), "")
    return PACKAGES.get(".".join(op.split(".")[:2]), "")


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
        return _bincount(values.get("weights"))
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


def _bincount(weights: Any) -> str:
    """The row for the weights that `bincount` is given, if any."""
    if weights is None:
        return "torch.bincount(no weights)"
    return "torch.bincount" if weights.is_floating_point() else "torch.bincount(integer weights)"


def switchable_ops() -> tuple[str, ...]:
    """Every aten op (`aten::name`, in place and not) that deterministic mode may be needed for."""
    names = {*BACKWARD, *FORWARD, *CONDITIONAL, *(pair[0] for pair in COMPOSED_BACKWARD), "_index_put_impl"}
    return tuple(sorted(f"aten::{name}{mark}" for name in names for mark in ("", "_")))
