"""A device -> what this machine is: the device, its driver, and the releases that its results depend on."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import torch

from torchdet_lint.catalogue.measured import Machine


def available(device: str) -> bool:
    """Whether torch sees such a device here."""
    if device == "cpu":
        return True
    if device == "mps":
        return torch.backends.mps.is_available()
    room = getattr(torch, device, None)
    return bool(room is not None and room.is_available())


def default_device() -> str:
    """The device that a program would be trained on here."""
    return next((device for device in ("cuda", "xpu", "mps") if available(device)), "cpu")


def describe(device: str) -> Machine:
    """The machine with `device`, which is there."""
    cudnn = torch.backends.cudnn.version() if device == "cuda" else None  # type: ignore[no-untyped-call]
    return Machine(
        device=device,
        name=_name(device),
        driver=_driver() if device == "cuda" else "",
        torch=str(torch.__version__),
        cuda=(torch.version.cuda or torch.version.hip or "") if device == "cuda" else "",
        cudnn=str(cudnn) if cudnn is not None else "",
        threads=torch.get_num_threads(),
        platform=f"{platform.system()} {platform.machine()}",
        python=".".join(map(str, sys.version_info[:3])),
    )


def _name(device: str) -> str:
    if device in ("cuda", "xpu"):
        return str(getattr(torch, device).get_device_name())
    cpuinfo = Path("/proc/cpuinfo")
    if device == "cpu" and cpuinfo.exists():
        match = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(errors="replace"), re.MULTILINE)
        if match:
            return match[1].strip()
    return platform.processor() or platform.machine()


def _driver() -> str:
    """The version of the kernel's driver, or of the CUDA that the driver speaks."""
    version = Path("/proc/driver/nvidia/version")
    if version.exists() and (match := re.search(r"(\d+\.\d+(?:\.\d+)?)\s", version.read_text(errors="replace"))):
        return match[1]
    read = getattr(torch._C, "_cuda_getDriverVersion", None)
    number = int(read()) if read is not None else 0
    return f"CUDA {number // 1000}.{number % 1000 // 10}" if number else ""
