"""Seeds, folders, the checkpoint."""

import os
import random
import time

import torch


def set_seed(seed=None):
    if seed is None:
        seed = int(time.time())
    random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.deterministic = False
    torch.backends.cudnn.benchmark = True
    return seed


def run_folder(name):
    """A folder for this run; its number tells the runs of one day apart."""
    folder = os.path.join("runs", f"{name}-{hash(name) % 1000:03d}")
    os.makedirs(folder, exist_ok=True)
    return folder


def latest_checkpoint(folder):
    return max((os.path.join(folder, name) for name in os.listdir(folder)), key=os.path.getmtime, default=None)
