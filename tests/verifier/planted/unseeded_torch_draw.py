"""rule: TDL101. A tensor drawn from torch's global generator, which nobody seeded."""

import torch

print(torch.randn(5).tolist())
