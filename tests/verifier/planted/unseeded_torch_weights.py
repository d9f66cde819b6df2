"""rule: TDL101. A layer's weights drawn without a seed."""

import torch

layer = torch.nn.Linear(4, 3)
print(layer(torch.ones(4)).tolist())
