"""rule: TDL101. Dropout without a seed."""

import torch

print(torch.nn.functional.dropout(torch.ones(200), 0.5, training=True).tolist())
