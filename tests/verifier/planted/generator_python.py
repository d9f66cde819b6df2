"""rule: TDL104. `random.Random()` without a seed."""

import random

import torch

rng = random.Random()
print(torch.tensor([rng.random() for _ in range(5)]).tolist())
