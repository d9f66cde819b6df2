"""rule: TDL101. The CUDA generators are seeded, and the CPU's is not."""

import torch

torch.cuda.manual_seed(0)
print(torch.rand(5).tolist())
