"""rule: TDL105. A seed taken from the system's random bytes, over several lines."""

import os

import torch

torch.manual_seed(
    int.from_bytes(
        os.urandom(4),
        "little",
    )
)
print(torch.rand(5).tolist())
