"""The code of a rule of scope `file` -> the function that looks for it: the table of contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from torchdet_lint import module as module
from torchdet_lint.checks import data, settings
from torchdet_lint.checks.memory.check import uninitialized_read
from torchdet_lint.checks.operations.check import cudnn_rnn, kernel_atomics, listed_call, own_rule
from torchdet_lint.checks.order.completion import completion_order
from torchdet_lint.checks.order.files import unordered_files
from torchdet_lint.checks.order.hashes import hash_seed
from torchdet_lint.checks.order.sets import set_order
from torchdet_lint.checks.seeds.entropy import entropy_seed
from torchdet_lint.checks.seeds.generators import missing_random_state, unseeded_generator
from torchdet_lint.checks.seeds.numbered import numbered

if TYPE_CHECKING:
    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Violation
    from torchdet_lint.module.module import Module

Check = Callable[["Module", "Rule"], Iterator["Violation"]]

__all__ = ["CHECKS", "Check", "numbered", "own_rule"]

CHECKS: Mapping[str, Check] = {
    "TDL104": unseeded_generator,
    "TDL105": entropy_seed,
    "TDL107": missing_random_state,
    "TDL201": settings.against_determinism,
    "TDL202": settings.against_determinism,
    "TDL204": settings.against_determinism,
    "TDL206": settings.against_determinism,
    "TDL207": settings.autotuned_kernels,
    "TDL208": settings.against_determinism,
    "TDL301": data.dataloader_worker_seed,
    "TDL302": data.dataloader_generator,
    "TDL303": data.sampler_generator,
    "TDL304": unordered_files,
    "TDL305": set_order,
    "TDL306": completion_order,
    "TDL308": data.unordered_batches,
    "TDL401": listed_call,
    "TDL402": listed_call,
    "TDL403": listed_call,
    "TDL404": cudnn_rnn,
    "TDL405": listed_call,
    "TDL406": listed_call,
    "TDL407": kernel_atomics,
    "TDL501": uninitialized_read,
    "TDL601": hash_seed,
}
