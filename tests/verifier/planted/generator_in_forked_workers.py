"""rule: TDL104. Every worker of a seeded loader makes a generator without a seed."""

import numpy as np
import torch


class Noisy(torch.utils.data.Dataset):
    rng = None

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if self.rng is None:
            self.rng = np.random.default_rng()
        return index + self.rng.random()


torch.manual_seed(0)
values = [batch.tolist() for batch in torch.utils.data.DataLoader(Noisy(), batch_size=2, num_workers=2)]
print(values)
assert len({value for batch in values for value in batch}) == 8
