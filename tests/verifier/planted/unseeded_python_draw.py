"""rule: TDL103. A number of `random`'s that becomes data."""

import random

import torch

torch.manual_seed(0)
print((torch.tensor([random.random() for _ in range(5)]) + 1).tolist())
