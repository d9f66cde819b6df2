"""rule: TDL501. A read of what `torch.empty` left unwritten."""

import hashlib

import torch

x = torch.empty(100_000)
print(hashlib.sha256((x + 1).numpy().tobytes()).hexdigest())
