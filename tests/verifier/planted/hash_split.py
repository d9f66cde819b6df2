"""rule: TDL601. A split into train and test by `hash()` of the file's name."""

import torch

names = [f"sample-{number}" for number in range(100)]
print(torch.tensor([number for number, name in enumerate(names) if hash(name) % 10 == 0]).tolist())
