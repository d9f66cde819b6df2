"""rule: TDL305. Labels numbered in the order of a set of strings."""

import torch

labels = {name: number for number, name in enumerate({"cat", "dog", "horse", "cow", "sheep", "goat", "pig", "hen"})}
print(torch.tensor([labels[name] for name in ("cat", "dog", "horse", "cow", "sheep", "goat")]).tolist())
