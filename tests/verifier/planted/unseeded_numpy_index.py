"""rule: TDL102. A number of NumPy's that says how much is read; no number of it becomes data."""

import numpy
import torch

torch.manual_seed(0)
table = torch.randn(5000)
total = [(table[: numpy.random.randint(5000)].sum() * torch.tensor(2.0)).item() for _ in range(4)]
print(total)
