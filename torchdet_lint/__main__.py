"""`python -m torchdet_lint` and the `torchdet-lint` command -> the command line."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line and leave with its exit status."""
    from torchdet_lint.cli.console import FAILED
    from torchdet_lint.cli.main import RUNTIME
    from torchdet_lint.cli.main import main as command
    from torchdet_lint.quick import Process

    if sys.argv[1:2] and sys.argv[1] in RUNTIME:
        sys.exit(command(sys.argv[1:]))
    Process.is_own = True
    gc.disable()  # a lint frees its data as it goes: the collector would only look at what is still used
    try:
        status = command(sys.argv[1:])
    except Exception:
        import traceback

        traceback.print_exc()
        status = FAILED
    gc.freeze()  # and the last look of all, on the way out, finds nothing to look at
    sys.exit(status)


if __name__ == "__main__":
    main()
