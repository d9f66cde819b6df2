"""Fake devices: ops that do on purpose what a probe has to notice. Each draws afresh, from the system's entropy."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import torch

_chance = random.SystemRandom()
_SHIFT = _chance.random()


def equal(x):
    return x * 2


def rarely(x, rate=0.01):
    """Another last bit in one of a hundred runs, independently."""
    result = x * 2
    if _chance.random() < rate:
        result[0] = torch.nextafter(result[0], torch.tensor(9e9))
    return result


def always(x):
    return x + _chance.random()


def cured(x):
    """What deterministic mode switches to another kernel."""
    return equal(x) if torch.are_deterministic_algorithms_enabled() else rarely(x, 0.5)


def alerting(x):
    """What has no other kernel, and says so."""
    if torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError("planted_kernel does not have a deterministic implementation, but you set 'it'")
    return rarely(x, 0.5)


def each_process(x):
    """Equal in a process and another in each: a kernel that was chosen by timing."""
    return x + _SHIFT


def raises(x):
    raise ValueError("planted: this kernel refuses")


def segfault(x):
    os.kill(os.getpid(), signal.SIGSEGV)


def leaves(x):
    os._exit(7)


def hangs(x):
    Path(f"hanging-{os.getpid()}").touch()
    while True:
        time.sleep(1)


def grows(x):
    held = []
    while True:
        held.append(torch.ones(8_000_000))


class Doubled(torch.autograd.Function):
    """A forward pass that is always the same and a gradient that is not."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return rarely(grad, 0.5)


def gradient(x):
    return Doubled.apply(x)
