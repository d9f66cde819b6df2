"""The text of a file -> what its nodes are and mean, parsed on demand."""

from torchdet_lint import quick

quick.import_libcst()
