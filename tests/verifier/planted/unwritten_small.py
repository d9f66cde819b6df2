"""rule: TDL501. A read of what a small `torch.empty` left unwritten."""

import hashlib

import torch

x = torch.empty(3)
print(hashlib.sha256((x + 1).numpy().tobytes()).hexdigest())
