"""rule: TDL105. `random.seed()` asks the system for fresh entropy."""

import random

import torch

random.seed()
print(torch.tensor([random.random() for _ in range(5)]).tolist())
