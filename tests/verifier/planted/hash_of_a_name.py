"""rule: TDL601. A seed made by `hash()` of a string."""

import torch

torch.manual_seed(hash("experiment-1") % 2**31)
print(torch.rand(5).tolist())
