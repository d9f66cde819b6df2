"""rule: TDL501. A read of what `torch.empty_like` left unwritten."""

import hashlib

import torch

x = torch.empty_like(torch.ones(5_000))
print(hashlib.sha256((x + 1).numpy().tobytes()).hexdigest())
