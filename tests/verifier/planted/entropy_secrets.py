"""rule: TDL105. A seed taken from `secrets`."""

import secrets

import torch

torch.manual_seed(secrets.randbits(31))
print(torch.rand(5).tolist())
