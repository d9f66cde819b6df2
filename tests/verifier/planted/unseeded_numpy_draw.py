"""rule: TDL102. Data drawn from NumPy's global generator, which nobody seeded."""

import numpy as np
import torch

torch.manual_seed(0)
print((torch.from_numpy(np.random.rand(5)) * 2).tolist())
