"""`fixes.py [--edits FILE] TREE…`: `--fix --unsafe-fixes` over copies of real trees, and what must hold afterwards.

Every file still compiles; a second run changes nothing; of the syntax tree only statements change that a reported edit
touches; the findings that had a fix are gone, and no file has a new one. Exit status 1 where one does not hold.
`--edits` writes the patch of all trees, to be read by eye.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.config import Settings
from torchdet_lint.engine import repair
from torchdet_lint.fixes import patch
from torchdet_lint.source.decoding import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.finding import Finding, Fix
    from torchdet_lint.source.decoding import Source

_BODIES = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})


class Line(NamedTuple):
    """A statement without the statements in it, and the rows of the text on which that stands."""

    depth: int
    text: str
    first: int
    last: int


def statements(text: str) -> list[Line]:
    """The statements of a file in order."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    return list(_inside(tree, 0))


def _inside(node: ast.AST, depth: int) -> Iterator[Line]:
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        part = getattr(node, name, None)
        for child in part if isinstance(part, list) else ():
            if hasattr(child, "lineno") or isinstance(child, ast.match_case):
                yield _line(child, depth)
                yield from _inside(child, depth + 1)


def _line(node: ast.AST, depth: int) -> Line:
    nested = any(isinstance(getattr(node, name, None), list) for name in ("body", "cases"))
    parts = [type(node).__name__]
    last = first = getattr(node, "lineno", 0)
    for name, value in ast.iter_fields(node):
        if nested and name in _BODIES:
            continue
        for part in value if isinstance(value, list) else [value]:
            parts.append(f"{name}={ast.dump(part) if isinstance(part, ast.AST) else part!r}")
            for inner in ast.walk(part) if isinstance(part, ast.AST) else ():
                last = max(last, getattr(inner, "end_lineno", 0))
                first = min(first, getattr(inner, "lineno", first))
    if not nested:
        last = max(last, getattr(node, "end_lineno", 0))
    return Line(depth, " ".join(parts), first, last)


def stray(source: Source, data: bytes, fixes: Sequence[Fix]) -> list[str]:
    """Changes between the syntax trees of `source` and `data` at rows which no edit of `fixes` touches."""
    rows: set[int] = set()
    starts = {cell.number: cell.first_row for cell in source.cells}
    for fix in fixes:
        for edit in fix.edits:
            base = starts[edit.cell] - 1 if edit.cell is not None else 0
            # What is inserted before a row stands after the row above it.
            rows.update(range(base + edit.location.row - 1, base + edit.end_location.row + 1))
    old, new = statements(source.text), statements(decode(source.path, data).text)
    matcher = difflib.SequenceMatcher(None, [line[:2] for line in old], [line[:2] for line in new], autojunk=False)
    found = []
    for tag, begin, end, _, _ in matcher.get_opcodes():
        if tag == "equal":
            continue
        if tag == "insert":
            above = old[begin - 1].last if begin else 0
            below = old[begin].first if begin < len(old) else sys.maxsize
            touched = any(above - 1 <= row <= below for row in rows)
        else:
            touched = all(not rows.isdisjoint(range(line.first, line.last + 1)) for line in old[begin:end])
        if not touched:
            found.append(f"{source.path}:{old[min(begin, len(old) - 1)].first}: {tag}")
    return found


def compiles(path: str, data: bytes) -> bool:
    """Whether a file, of a notebook its code, compiles."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(decode(path, data).text, path, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def fixable(findings: Sequence[Finding]) -> list[Finding]:
    """Those that a fix goes with."""
    return [finding for finding in findings if finding.fix is not None and finding.fix.edits]


def by_file(findings: Sequence[Finding]) -> Counter[tuple[str, str]]:
    """How many findings of each code each file has."""
    return Counter((finding.filename, finding.code) for finding in findings)


def check(tree: Path, copy: Path, edits: list[bytes]) -> list[str]:
    """Fix a copy of `tree`; what is not as it must be."""
    shutil.copytree(tree, copy, ignore=shutil.ignore_patterns(".git"))
    settings = Settings(root=str(copy), unsafe_fixes=True, jobs=1, min_severity="note", respect_gitignore=False)
    faults: list[str] = []
    apply = patch.apply

    def watched(source: Source, fixes: Sequence[Fix]) -> patch.Patched:
        done = apply(source, fixes)
        faults.extend(stray(source, done.data, [fixes[index] for index in done.applied]))
        return done

    patch.apply = watched  # type: ignore[assignment]
    try:
        before = repair.engine.run([str(copy)], settings)
        repaired = repair.repair([str(copy)], settings)
        faults += repair.write(repaired.changes).values()
        for path, change in sorted(repaired.changes.items()):
            if compiles(path, change.old) and not compiles(path, change.new):
                faults.append(f"{path}: does not compile")
            name = str(Path(tree.name, os.path.relpath(path, copy)))
            edits.append(patch.diff(name, change.old, change.new))
        again = repair.repair([str(copy)], settings)
    finally:
        patch.apply = apply
    faults += [f"{path}: a second run changes it" for path in sorted(again.changes)]
    left = repaired.result.findings
    faults += [
        f"{one.filename}:{one.location.row}: {one.code} is still fixable" for one in fixable(again.result.findings)
    ]
    new = by_file(left) - by_file(before.findings)
    faults += [f"{path}: {number} new {code}" for (path, code), number in sorted(new.items())]
    faults += repaired.result.errors
    fixed = repair.total(repaired.changes)
    print(
        f"{tree.name}: {before.files} files, {len(before.findings)} findings, {len(fixable(before.findings))} fixable; "
        f"{len(repaired.changes)} files changed, {sum(fixed.values())} findings fixed, {len(left)} left, "
        f"{len(faults)} faults\n  " + ", ".join(f"{code} {number}" for (code, _), number in fixed.items()),
        flush=True,
    )
    return [fault.replace(str(copy), tree.name) for fault in faults]


def main(arguments: Sequence[str]) -> int:
    """Check every tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", metavar="FILE")
    parser.add_argument("trees", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    faults: list[str] = []
    edits: list[bytes] = []
    for tree in options.trees:
        with tempfile.TemporaryDirectory() as folder:
            faults += check(tree.resolve(), Path(folder, tree.name), edits)
    print("\n".join(faults))
    if options.edits:
        Path(options.edits).write_bytes(b"".join(edits))
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
