"""rule: TDL105. `numpy.random.seed(None)` asks the system for fresh entropy."""

import numpy as np
import torch

np.random.seed(None)
print(torch.from_numpy(np.random.rand(5)).tolist())
