"""rule: TDL102. Rows in an order of NumPy's."""

import numpy as np
import torch

torch.manual_seed(0)
rows = torch.arange(100)[torch.from_numpy(np.random.permutation(100))]
print(rows.tolist())
