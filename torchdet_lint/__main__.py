"""`python -m torchdet_lint` and the `torchdet-lint` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its exit status."""
    from torchdet_lint.cli import main as command

    sys.exit(command(sys.argv[1:]))


if __name__ == "__main__":
    main()
