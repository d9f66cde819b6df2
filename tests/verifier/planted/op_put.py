"""rule: TDL401. `put_` with repeated places: no switch of torch makes it deterministic."""

import hashlib

import torch

torch.manual_seed(0)
torch.set_num_threads(4)
index = torch.randint(0, 500, (400_000,))
for _ in range(20):
    x = torch.zeros(500)
    x.put_(index, torch.arange(400_000.0))
    print(hashlib.sha256(x.numpy().tobytes()).hexdigest())
