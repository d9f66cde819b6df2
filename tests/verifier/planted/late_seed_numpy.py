"""rule: TDL106. Data are drawn before `numpy.random.seed`."""

import numpy as np
import torch

data = np.random.rand(4)
np.random.seed(0)
torch.manual_seed(0)
print((torch.from_numpy(data) + torch.from_numpy(np.random.rand(4))).tolist())
