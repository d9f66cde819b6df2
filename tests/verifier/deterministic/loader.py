"""A seeded loader with two workers of varying speed, augmentation in the workers, two epochs."""

import random
import time

import numpy as np
import torch


def seed_worker(_):
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    np.random.seed(seed)


class Jittery(torch.utils.data.Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        time.sleep(time.perf_counter_ns() // 1000 % 3 / 1000)
        return torch.tensor([index + random.random(), np.random.rand()]) + torch.rand(2)


random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
loader = torch.utils.data.DataLoader(
    Jittery(),
    batch_size=4,
    shuffle=True,
    num_workers=2,
    worker_init_fn=seed_worker,
    generator=torch.Generator().manual_seed(0),
)
weight = torch.zeros(2)
for _ in range(2):
    for batch in loader:
        weight += batch.mean(0) * 0.1
        print(weight.tolist())
