"""rule: TDL103. A number of `random`'s that chooses what is read; no number of it becomes data."""

import random

import torch

torch.manual_seed(0)
table = torch.randn(500, 3)
total = 0.0
for step in range(4):
    row = table[random.randrange(500)].clone()
    total += (row * torch.tensor(float(step))).sum().item()
print(total)
