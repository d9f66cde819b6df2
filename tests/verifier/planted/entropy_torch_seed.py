"""rule: TDL105. `torch.seed()` asks the system for fresh entropy."""

import torch

torch.seed()
print(torch.rand(5).tolist())
