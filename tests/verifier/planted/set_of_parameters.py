"""rule: TDL305. Parameters in the order of a set: by address, which the hash seed does not touch."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(size + 1, size + 1) for size in range(24)])
shared = set(model.parameters())
total = torch.zeros(())
for parameter in shared:
    total = total * 0.5 + parameter.sum()
    print(tuple(parameter.shape), total.item())
