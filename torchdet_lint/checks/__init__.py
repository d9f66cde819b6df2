"""The table of contents: every code and the function that looks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdet_lint.catalogue import Rule
    from torchdet_lint.finding import Found
    from torchdet_lint.module import Module

Check = Callable[["Module", "Rule"], Iterator["Found"]]

CHECKS: Mapping[str, Check] = {}
