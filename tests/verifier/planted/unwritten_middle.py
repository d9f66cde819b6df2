"""rule: TDL501. A `torch.empty` of a size that luck often hides."""

import hashlib

import torch

x = torch.empty(4_000)
print(hashlib.sha256((x + 1).numpy().tobytes()).hexdigest())
