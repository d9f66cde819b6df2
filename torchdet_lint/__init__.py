"""Source files and programs -> findings, fixes and evidence of nondeterminism in PyTorch training code.

`lint`, `lint_source` and `fix_source` are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchdet_lint.api import fix_source, lint, lint_source
    from torchdet_lint.finding import Finding

__version__ = "0.1.0"

__all__ = ["Finding", "__version__", "fix_source", "lint", "lint_source"]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name in ("fix_source", "lint", "lint_source"):
        from torchdet_lint import api

        return getattr(api, name)
    if name == "Finding":
        from torchdet_lint.finding import Finding

        return Finding
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
