"""rule: TDL304. Files in the order of `os.scandir`."""

import os
import pathlib
import tempfile

import torch

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    for number in range(20):
        pathlib.Path(folder, f"{number}.txt").touch()
    names = [entry.name for entry in os.scandir(folder)]
order = torch.tensor([int(name.split(".")[0]) for name in names])
print((order * torch.rand(20)).tolist())
