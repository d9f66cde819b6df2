"""rule: TDL501. A read of what `torch.empty_strided` left unwritten."""

import hashlib

import torch

x = torch.empty_strided((50, 100), (100, 1)).reshape(-1)
print(hashlib.sha256((x + 1).numpy().tobytes()).hexdigest())
