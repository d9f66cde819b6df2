"""Two results -> how far they lie apart, in units in the last place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from torchdet_lint.verifier.probe.batches import Difference

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORDS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}
_LARGEST = 2**63 - 1


def between(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> Difference:
    """The largest difference between two lists of tensors, and how many elements differ at all."""
    ulp: int | None = None
    absolute, elements, total = 0.0, 0, 0
    for left, right in zip(first, second, strict=True):
        left, right = _dense(left), _dense(right)
        if left.shape != right.shape:
            elements, total = elements + right.numel(), total + right.numel()
            continue
        total += left.numel()
        unequal = _words(left) != _words(right)
        count = int(unequal.sum().item())
        if not count:
            continue
        elements += count
        left, right = left[unequal], right[unequal]
        if left.is_floating_point():
            finite = left.isfinite() & right.isfinite()
            left, right = left[finite], right[finite]
            if left.numel():
                ulp = max(ulp or 0, _ulp(left, right))
        if left.numel():
            absolute = max(absolute, float((left.double() - right.double()).abs().max().item()))
    return Difference(ulp=ulp, absolute=absolute, elements=elements, of=total)


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.contiguous()


def _words(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(_WORDS[tensor.dtype]) if tensor.dtype in _WORDS else tensor


def _ulp(left: torch.Tensor, right: torch.Tensor) -> int:
    """The largest number of steps between floating-point neighbours from `left` to `right`."""
    a, b = _ordered(left), _ordered(right)
    same = (a < 0) == (b < 0)
    across = (a.abs().double() + b.abs().double()).clamp(max=float(_LARGEST // 2)).to(torch.int64)
    return int(torch.where(same, (a - b).abs(), across).max().item())


def _ordered(tensor: torch.Tensor) -> torch.Tensor:
    """The bits as whole numbers in the order of the values: sign and magnitude become signed."""
    word = _WORDS[tensor.dtype]
    bits = tensor.view(word).to(torch.int64)
    return torch.where(bits < 0, -(bits & torch.iinfo(word).max), bits)
