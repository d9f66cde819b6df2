"""rule: TDL308. A loader that hands batches over as they arrive, and workers of varying speed."""

import time

import torch


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        time.sleep(time.perf_counter_ns() // 1000 % 8 / 1000)
        return index


torch.manual_seed(0)
loader = torch.utils.data.DataLoader(Slow(), batch_size=2, num_workers=3, in_order=False)
print([batch.tolist() for batch in loader])
