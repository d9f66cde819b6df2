"""rule: TDL403. The gradient of `x[index]` on four threads."""

import hashlib

import torch

torch.manual_seed(0)
torch.set_num_threads(4)
x = torch.randn(20_000, requires_grad=True)
index = torch.randint(0, 20_000, (100_000,))
weight = torch.randn(100_000)
for _ in range(10):
    x.grad = None
    (x[index] * weight).sum().backward()
    print(hashlib.sha256(x.grad.numpy().tobytes()).hexdigest())
