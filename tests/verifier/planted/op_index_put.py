"""rule: TDL402. `index_put_(accumulate=True)` on four threads."""

import hashlib

import torch

torch.manual_seed(0)
torch.set_num_threads(4)
index = torch.randint(0, 20_000, (100_000,))
values = torch.randn(100_000)
for _ in range(10):
    x = torch.zeros(20_000).index_put_((index,), values, accumulate=True)
    print(hashlib.sha256(x.numpy().tobytes()).hexdigest())
