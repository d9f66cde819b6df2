"""rule: TDL501. A buffer of which only a part was written."""

import hashlib

import torch

x = torch.empty(10_000)
x[:9_990] = 1.0
print(hashlib.sha256((x * 2).numpy().tobytes()).hexdigest())
