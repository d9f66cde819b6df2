"""rule: TDL306. Results of futures in the order in which they finish."""

from concurrent.futures import ThreadPoolExecutor, as_completed

import torch

with ThreadPoolExecutor(4) as pool:
    done = [future.result() for future in as_completed([pool.submit(pow, number, 2) for number in range(40)])]
print(torch.tensor(done).tolist())
