"""rule: TDL301. Workers draw from `random` and NumPy; the base seed comes from torch, which nobody seeded."""

import random

import numpy as np
import torch


class Augmented(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor([index, random.random(), np.random.rand(), torch.rand(()).item()])


random.seed(0)
np.random.seed(0)
values = [batch.tolist() for batch in torch.utils.data.DataLoader(Augmented(), batch_size=2, num_workers=2)]
print(values)
assert values[0][0][1:] != values[1][0][1:]
