"""rule: TDL303. A `RandomSampler` without a generator."""

import torch

sampler = torch.utils.data.RandomSampler(range(50), replacement=True, num_samples=60)
print(torch.tensor(list(sampler)).tolist())
