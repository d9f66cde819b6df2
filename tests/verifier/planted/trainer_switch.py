"""rule: TDL208. A trainer that was told to run without determinism, as Lightning's is."""

import hashlib

import torch


class Trainer:
    def __init__(self, deterministic):
        torch.use_deterministic_algorithms(deterministic)

    def fit(self, table, index, weight):
        for _ in range(10):
            table.grad = None
            (table[index] * weight).sum().backward()
            yield table.grad


torch.manual_seed(0)
torch.set_num_threads(4)
trainer = Trainer(deterministic=False)
table, index, weight = (
    torch.randn(20_000, requires_grad=True),
    torch.randint(0, 20_000, (100_000,)),
    torch.randn(100_000),
)
for gradient in trainer.fit(table, index, weight):
    print(hashlib.sha256(gradient.numpy().tobytes()).hexdigest())
