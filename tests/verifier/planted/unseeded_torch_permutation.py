"""rule: TDL101. An order drawn without a seed."""

import torch

print(torch.randperm(100).tolist())
