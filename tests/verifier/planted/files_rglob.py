"""rule: TDL304. Files in the order of `Path.rglob`."""

import pathlib
import tempfile

import torch

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    for number in range(20):
        pathlib.Path(folder, f"{number}.txt").touch()
    names = [path.name for path in pathlib.Path(folder).rglob("*.txt")]
order = torch.tensor([int(name.split(".")[0]) for name in names])
print((order * torch.rand(20)).tolist())
