"""The death of the process that started it -> the end of a program and all below it. Never imported: `processes` does.

It is told on standard input when the program has ended. Where that is closed and nothing was told, its parent is gone,
however it died.
"""

import sys


def main(program: int, whole: bool) -> None:
    """Wait, and end `program` if nobody else is left to do so."""
    if sys.stdin.buffer.read(1):
        return
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[3]))
    from torchdet_lint.verifier.launch.processes import end_orphan

    end_orphan(program, whole=whole)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "1")
