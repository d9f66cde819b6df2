"""rule: TDL306. Results of a pool in the order in which they finish."""

import multiprocessing
from multiprocessing.pool import ThreadPool

import torch

with ThreadPool(4) as pool:
    done = list(pool.imap_unordered(abs, range(-40, 0)))
print(torch.tensor(done).tolist(), multiprocessing.__name__)
