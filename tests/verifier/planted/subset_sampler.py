"""rule: TDL303. A `SubsetRandomSampler` without a generator."""

import torch

print(list(torch.utils.data.SubsetRandomSampler(range(50))))
