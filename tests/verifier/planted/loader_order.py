"""rule: TDL302. A loader that shuffles without a generator."""

import torch

loader = torch.utils.data.DataLoader(torch.arange(64), batch_size=8, shuffle=True)
epochs = [[batch.tolist() for batch in loader] for _ in range(2)]
print(epochs)
assert epochs[0] != epochs[1]
