"""rule: TDL105. A seed taken from the clock by a function of its own."""

import time

import torch


def make_seed():
    now = time.time()
    return int(now * 1e6) % 2**31


torch.manual_seed(make_seed())
print(torch.rand(5).tolist())
