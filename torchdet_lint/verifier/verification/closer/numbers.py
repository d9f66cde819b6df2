"""Two tensors of one make, as bytes -> how many values differ, and by how much."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

_WORDS = {
    torch.float32: torch.int32,
    torch.float64: torch.int64,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


class Size(NamedTuple):
    """How two tensors differ: values in all, those whose bits differ, the largest absolute and relative difference and
    in units in the last place, the position of the largest with both values; how many pairs are not both finite.
    """

    elements: int
    differing: int
    largest: float
    relative: float
    ulp: int
    place: tuple[int, ...]
    a: float
    b: float
    not_finite: int


def compare(dtype: str, shape: list[int], a: bytes, b: bytes) -> Size:
    """Compare two tensors of `dtype` (`float32`) and `shape`, given by their elements in order."""
    kind: torch.dtype = getattr(torch, dtype)
    elements = math.prod(shape)
    if not elements:
        return Size(0, 0, 0.0, 0.0, 0, (), 0.0, 0.0, 0)
    one, two = (torch.frombuffer(bytearray(data), dtype=kind) for data in (a, b))
    unlike = (one.view(torch.uint8) != two.view(torch.uint8)).reshape(elements, -1).any(1)
    places = unlike.nonzero().flatten()
    if not len(places):
        return Size(elements, 0, 0.0, 0.0, 0, (), 0.0, 0.0, 0)
    x, y = (torch.view_as_real(t[places]).double().norm(dim=-1) if kind.is_complex else t[places] for t in (one, two))
    wide = (x.double(), y.double())
    gap = (wide[0] - wide[1]).abs()
    finite = gap.isfinite()
    scale = torch.maximum(wide[0].abs(), wide[1].abs())
    at = int(torch.where(finite, gap, -1.0).argmax()) if finite.any() else 0
    ulp = int(_ulps(x[finite], y[finite]).max()) if kind in _WORDS and finite.any() else 0
    return Size(
        elements,
        len(places),
        float(gap[finite].max()) if finite.any() else 0.0,
        float((gap / scale.clamp_min(1e-300))[finite].max()) if finite.any() else 0.0,
        ulp,
        _unravelled(int(places[at]), shape),
        float(wide[0][at]),
        float(wide[1][at]),
        int((~finite).sum()),
    )


def _ulps(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The distance in representable numbers."""

    def ordered(values: torch.Tensor) -> torch.Tensor:
        words = values.contiguous().view(_WORDS[values.dtype])
        least = torch.iinfo(words.dtype).min
        wide = words.long()
        return torch.where(wide < 0, least - wide, wide)

    one, two = ordered(x), ordered(y)
    # Of numbers far apart on both sides of zero the distance does not fit.
    far = (one.double() - two.double()).abs() >= 2.0**62
    return torch.where(far, torch.full_like(one, 2**62), (one - two).abs())


def _unravelled(flat: int, shape: list[int]) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        index.append(place)
    return tuple(reversed(index))
