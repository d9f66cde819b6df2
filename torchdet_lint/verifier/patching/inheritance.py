"""The environment of a process -> that of one below it, which starts in the bootstrap and is told what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

BOOTSTRAP = Path(__file__).parents[1] / "bootstrap"
INTERVENTIONS = "TORCHDET_INTERVENTIONS"
"""The interventions, as JSON."""
EVENTS = "TORCHDET_EVENTS"
"""The file to which guards append what they refused."""
RECORD = "TORCHDET_RECORD"
"""What a process below a recorded program is told: the same JSON as the program's own."""
WITNESS = "TORCHDET_WITNESS"
"""The file into which a program that is forecast writes what it noted."""

LINES = "TORCHDET_LINES"
"""Lines of source that are asked about, and the file into which a process writes those that it reaches, as JSON."""

RESUME = "TORCHDET_RESUME"
"""What a run of a resume check notes, and when it ends, as JSON."""


def with_bootstrap(variables: Mapping[str, str], base_env: Mapping[str, str] | None = None) -> dict[str, str]:
    """`base_env` (by default this process's) with `variables`, for a child that starts in the bootstrap."""
    result = {**(os.environ if base_env is None else base_env), **variables}
    result["PYTHONPATH"] = os.pathsep.join(
        [str(BOOTSTRAP), *(entry for entry in result.get("PYTHONPATH", "").split(os.pathsep) if entry)]
    )
    return result
