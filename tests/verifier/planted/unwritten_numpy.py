"""rule: TDL501. A read of what `numpy.empty` left unwritten: the same heap."""

import hashlib

import numpy
import torch

x = torch.from_numpy(numpy.empty(300_000))
print(hashlib.sha256((x + 1).numpy().tobytes()).hexdigest())
