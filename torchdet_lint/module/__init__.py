"""The text of a file -> what its nodes are and mean, parsed on demand."""

from torchdet_lint.module import quick as quick
