"""rule: TDL105. `random.SystemRandom` draws from the system, always."""

import random

import torch

dice = random.SystemRandom()
print(torch.tensor([dice.random() for _ in range(5)]).tolist(), dice.sample(range(100), 5))
