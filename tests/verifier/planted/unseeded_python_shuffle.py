"""rule: TDL103. Samples shuffled by `random`."""

import random

import torch

torch.manual_seed(0)
samples = list(range(100))
random.shuffle(samples)
print(torch.tensor(samples).cumsum(0).tolist())
