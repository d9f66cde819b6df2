"""A program -> what differs between its runs, why, and the fix that matches the rule.

Importing this package imports neither torch nor NumPy; each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchdet_lint.verifier.launch.interventions import Interventions, environment
    from torchdet_lint.verifier.launch.launch import Program
    from torchdet_lint.verifier.recording.auditing import audit
    from torchdet_lint.verifier.recording.recorder import Recorder as record  # noqa: N813
    from torchdet_lint.verifier.recording.watching.expected import expected
    from torchdet_lint.verifier.remedies.determinism import deterministic
    from torchdet_lint.verifier.steps.checkpoints import Checkpoints
    from torchdet_lint.verifier.steps.huggingface import TrainerSteps
    from torchdet_lint.verifier.steps.ignite import IgniteSteps
    from torchdet_lint.verifier.steps.lightning import LightningSteps
    from torchdet_lint.verifier.verification.preflight.gather import preflight
    from torchdet_lint.verifier.verification.verify import compare_traces as compare
    from torchdet_lint.verifier.verification.verify import verify_function as verify
    from torchdet_lint.verifier.verification.verify import verify_program

_HOMES = {
    "Checkpoints": ("steps.checkpoints", "Checkpoints"),
    "IgniteSteps": ("steps.ignite", "IgniteSteps"),
    "Interventions": ("launch.interventions", "Interventions"),
    "LightningSteps": ("steps.lightning", "LightningSteps"),
    "Program": ("launch.launch", "Program"),
    "TrainerSteps": ("steps.huggingface", "TrainerSteps"),
    "audit": ("recording.auditing", "audit"),
    "compare": ("verification.verify", "compare_traces"),
    "deterministic": ("remedies.determinism", "deterministic"),
    "expected": ("recording.watching.expected", "expected"),
    "environment": ("launch.interventions", "environment"),
    "preflight": ("verification.preflight.gather", "preflight"),
    "record": ("recording.recorder", "Recorder"),
    "verify": ("verification.verify", "verify_function"),
    "verify_program": ("verification.verify", "verify_program"),
}

__all__ = [
    "Checkpoints",
    "IgniteSteps",
    "Interventions",
    "LightningSteps",
    "Program",
    "TrainerSteps",
    "audit",
    "compare",
    "deterministic",
    "environment",
    "expected",
    "preflight",
    "record",
    "verify",
    "verify_program",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
