"""An expression -> its abstract value: tensor, dtype, device, rank, gradient, kind of its elements."""
