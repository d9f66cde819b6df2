"""An expression -> its abstract value: tensor, dtype, device, rank, gradient, kind of its elements."""

from torchdet_lint import module as module
