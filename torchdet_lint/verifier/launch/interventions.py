"""What is changed about a run from outside (fixes, stress, seed) -> the environment that tells a child process."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING, Literal

from torchdet_lint.verifier.patching.inheritance import EVENTS, INTERVENTIONS, with_bootstrap

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

EAGER = {"TORCHDYNAMO_DISABLE": "1"}
"""The variables with which torch.compile compiles nothing, in whichever process."""


@dataclasses.dataclass(frozen=True)
class Interventions:
    """What a run is subjected to.

    `fixes` are rule codes (`TDL101`), `stress` the side of a stress pair (`""`: none), `seed` the number that the
    seeding fixes start from, and that the user's report repeats. `strict`: an unseeded draw raises. `tick`: the clock
    that the program's own code reads goes on by so many seconds a reading; 0 leaves it real.
    """

    fixes: tuple[str, ...] = ()
    stress: Literal["", "A", "B"] = ""
    seed: int = 0
    strict: bool = False
    tick: float = 0.0

    def __bool__(self) -> bool:
        """Whether anything is changed at all."""
        return bool(self.fixes or self.stress or self.strict or self.tick)


def environment(
    interventions: Interventions, base_env: Mapping[str, str] | None = None, *, events: Path | None = None
) -> dict[str, str]:
    """The complete environment of a child process that runs under `interventions`.

    `base_env` is the user's (by default this process's). Without interventions it comes back as it is. With them the
    child, and every Python process below it, starts with the bootstrap folder first on `PYTHONPATH`. Guards append
    what they refused to `events`, one JSON object a line; without it they say so on standard error.

    Raises `ValueError` for a code that has no runtime fix.
    """
    result = dict(os.environ if base_env is None else base_env)
    if not interventions:
        return result
    from torchdet_lint.verifier.remedies import fixes, stress

    result.update(stress.environment(interventions.stress, result))
    result.update(fixes.environment(interventions.fixes, interventions.seed, result))
    result[INTERVENTIONS] = json.dumps(dataclasses.asdict(interventions), separators=(",", ":"))
    if events is not None:
        result[EVENTS] = str(events)
    return with_bootstrap({}, result)


def from_environment(env: Mapping[str, str]) -> Interventions:
    """The interventions that `environment` wrote into `env`; none where there is nothing that can be read."""
    try:
        table = json.loads(env.get(INTERVENTIONS, "{}"))
        return Interventions(
            tuple(table.get("fixes", ())),
            table.get("stress", ""),
            int(table.get("seed", 0)),
            bool(table.get("strict", False)),
            float(table.get("tick", 0.0)),
        )
    except (ValueError, TypeError, AttributeError) as error:
        print(f"torchdet-lint: {INTERVENTIONS} cannot be read ({error}); nothing is applied", file=sys.stderr)
        return Interventions()
