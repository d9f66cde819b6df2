"""rule: TDL501. A read of what `Tensor.new_empty` left unwritten."""

import hashlib

import torch

x = torch.ones(2).new_empty(5_000)
print(hashlib.sha256((x + 1).numpy().tobytes()).hexdigest())
