"""Memory taken with `empty` and written in full before it is read, in every usual way."""

import torch

torch.manual_seed(0)
a = torch.empty(1000).normal_()
b = torch.empty_like(a)
b.copy_(a)
c = torch.empty(10, 100)
for row in range(10):
    c[row] = row
d = torch.empty(3, 1000)
torch.stack([a, b, c.reshape(-1)], out=d)
e = torch.nn.init.xavier_uniform_(torch.nn.Parameter(torch.empty(20, 50)))
print(d.sum().item(), e.norm().item(), torch.nn.functional.pad(c[None], (1, 1, 1, 1), mode="circular").sum().item())
