"""rule: TDL303. A `WeightedRandomSampler` without a generator, inside a loader."""

import torch

sampler = torch.utils.data.WeightedRandomSampler([1.0] * 50, 60)
loader = torch.utils.data.DataLoader(torch.arange(50), batch_size=10, sampler=sampler)
print([batch.tolist() for batch in loader])
