"""rule: TDL106. The weights are drawn before the seed."""

import torch

layer = torch.nn.Linear(4, 3)
torch.manual_seed(0)
print(layer(torch.rand(4)).tolist())
