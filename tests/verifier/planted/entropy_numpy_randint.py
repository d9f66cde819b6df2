"""rule: TDL105. A seed drawn from NumPy's generator, which nothing has seeded."""

import numpy as np
import torch

torch.manual_seed(np.random.randint(2**31 - 1))
print(torch.rand(3).tolist())
