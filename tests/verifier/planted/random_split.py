"""rule: TDL303. `random_split` without a generator."""

import torch
from torch.utils.data import random_split

train, test = random_split(range(100), [80, 20])
print(list(train), list(test))
