"""rule: TDL105. A seed drawn from Python's generator, which nothing has seeded, as GANs print theirs."""

import random

import torch

manual_seed = random.randint(1, 10000)
print("Random Seed: ", manual_seed)
random.seed(manual_seed)
torch.manual_seed(manual_seed)
print(torch.rand(3).tolist(), random.random())
