"""A device -> the names that a row's expressions may use, with the same bits in every process."""

from __future__ import annotations

from typing import Any

import torch

SIZES = {
    "cpu": {"many": 40_000, "few": 1_000, "batch": 2, "wide": 24, "deep": 12},
    "other": {"many": 1_000_000, "few": 1_000, "batch": 8, "wide": 96, "deep": 24},
}
"""The extents that the expressions name: `many` lies above every threshold of the kernels, `few` below."""


class Inputs:
    """Makes tensors for one program, from a seed, on a device and of a floating-point type."""

    def __init__(self, device: str, dtype: torch.dtype, seed: int, layout: str = "contiguous") -> None:
        self._device = device
        self._dtype = dtype
        self._seed = seed
        self._layout = layout
        self._source = torch.Generator().manual_seed(seed)

    def namespace(self) -> dict[str, Any]:
        """What a program's text is run in."""
        makers = {name: getattr(self, name) for name in dir(self) if not name.startswith("_") and name != "namespace"}
        sizes = SIZES["cpu" if self._device == "cpu" else "other"]
        return {"torch": torch, "F": torch.nn.functional, **sizes, **makers}

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal: sums of them depend on their order."""
        return self._floating(torch.randn(shape, generator=self._source))

    def uniform(self, low: float, high: float, *shape: int) -> torch.Tensor:
        """Evenly spread between `low` and `high`."""
        return self._floating(torch.rand(shape, generator=self._source) * (high - low) + low)

    def ties(self, *shape: int) -> torch.Tensor:
        """Numbers from 0 to 9: equal elements everywhere."""
        return self._floating(torch.randint(0, 10, shape, generator=self._source).float())

    def zeros(self, *shape: int) -> torch.Tensor:
        """Zeros."""
        return self._floating(torch.zeros(shape))

    def ones(self, *shape: int) -> torch.Tensor:
        """Ones."""
        return self._floating(torch.ones(shape))

    def sparse(self, *shape: int) -> torch.Tensor:
        """A sparse tensor, a tenth of it filled."""
        values = torch.randn(shape, generator=self._source)
        kept = torch.rand(shape, generator=self._source) < 0.1
        return (values * kept).to(self._dtype).to_sparse().coalesce().to(self._device)

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Whole numbers from `low` up to below `high`."""
        return torch.randint(low, high, shape, generator=self._source).to(self._device)

    def repeated(self, below: int, *shape: int) -> torch.Tensor:
        """Indices below `below`, which name places again and again where there are more of them."""
        return self.integers(0, below, *shape)

    def distinct(self, count: int) -> torch.Tensor:
        """Every index below `count` once, in no order."""
        return torch.randperm(count, generator=self._source).to(self._device)

    def generator(self) -> torch.Generator:
        """A generator on the device that is in the same state at every call."""
        return torch.Generator(self._device).manual_seed(self._seed)

    def _floating(self, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.to(self._dtype).to(self._device)
        if self._layout == "channels_last" and tensor.dim() in (4, 5):
            channels_last = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
            return tensor.contiguous(memory_format=channels_last)
        return tensor
