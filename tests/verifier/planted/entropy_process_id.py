"""rule: TDL105. A seed taken from the process id."""

import os

import torch

seed = os.getpid()
torch.manual_seed(seed)
print(torch.rand(5).tolist())
