"""rule: TDL105. A seed taken from a random UUID."""

import uuid

import torch

seed = uuid.uuid4().int % 2**31
torch.manual_seed(seed)
print(torch.rand(5).tolist())
