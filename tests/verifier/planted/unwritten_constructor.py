"""rule: TDL501. A read of what `torch.Tensor(n)` left unwritten."""

import hashlib

import torch

x = torch.Tensor(5_000)
print(hashlib.sha256((x + 1).numpy().tobytes()).hexdigest())
