"""Changes -> edits -> bytes, and the patch that says the same."""

from torchdet_lint import module as module
