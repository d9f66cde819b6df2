"""rule: TDL104. `default_rng()` without a seed."""

import numpy as np
import torch

rng = np.random.default_rng()
print(torch.from_numpy(rng.normal(size=5)).tolist())
