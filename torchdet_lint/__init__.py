"""torchdet-lint: finds, fixes and disproves nondeterminism in PyTorch training code."""

__version__ = "0.1.0"
