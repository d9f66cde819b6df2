"""rule: TDL104. A bit generator without a seed."""

import numpy as np
import torch

rng = np.random.Generator(np.random.PCG64())
print(torch.from_numpy(rng.random(5)).tolist())
