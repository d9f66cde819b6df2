"""rule: TDL501. A read of what a growing `resize_` left unwritten."""

import hashlib

import torch

x = torch.ones(2).resize_(5_000)
print(hashlib.sha256((x + 1).numpy().tobytes()).hexdigest())
