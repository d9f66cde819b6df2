"""rule: TDL105. A seed taken from the clock."""

import time

import torch

torch.manual_seed(time.time_ns() % 2**31)
print(torch.rand(5).tolist())
