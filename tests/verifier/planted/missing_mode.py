"""rule: TDL203. A training step with an indexed gather, deterministic algorithms never turned on."""

import hashlib

import torch

torch.manual_seed(0)
torch.set_num_threads(4)
table = torch.nn.Parameter(torch.randn(20_000))
optimizer = torch.optim.SGD([table], lr=0.1)
index, weight = torch.randint(0, 20_000, (100_000,)), torch.randn(100_000)
for _ in range(10):
    optimizer.zero_grad()
    (table[index] * weight).sum().backward()
    optimizer.step()
    print(hashlib.sha256(table.detach().numpy().tobytes()).hexdigest())
