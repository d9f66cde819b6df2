"""rule: TDL206. Deterministic mode with the fill turned off, and a read of unwritten memory."""

import torch

torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = False
print(torch.empty(100_000).nan_to_num(-1.0)[::10_000].tolist())
