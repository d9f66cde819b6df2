"""rule: TDL104. A `SeedSequence()` without entropy, spread over two generators."""

import numpy as np
import torch

children = np.random.SeedSequence().spawn(2)
print([torch.from_numpy(np.random.default_rng(child).random(3)).tolist() for child in children])
