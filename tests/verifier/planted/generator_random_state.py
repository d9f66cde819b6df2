"""rule: TDL104. `RandomState()` without a seed."""

import numpy as np
import torch

state = np.random.RandomState()
print(torch.from_numpy(state.rand(5)).tolist())
