"""The statements of a function -> order of execution, reaching definitions, uses of a value."""

from torchdet_lint import module as module
