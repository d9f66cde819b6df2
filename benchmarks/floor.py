"""`floor.py libcst|ast TREE`: parse every Python file of a tree and do nothing with it."""

from __future__ import annotations

import ast
import sys
import warnings
from pathlib import Path


def main(parser: str, tree: str) -> None:
    warnings.simplefilter("ignore")
    if parser == "libcst":
        import libcst

        parse = libcst.parse_module
    else:
        parse = ast.parse
    lines = failed = 0
    for path in sorted(Path(tree).rglob("*.py")):
        data = path.read_bytes()
        lines += data.count(b"\n")
        try:
            parse(data)
        except Exception:
            failed += 1
    print(lines, failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
