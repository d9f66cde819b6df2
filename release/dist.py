"""The checkout -> `dist/`: sdist and wheel, built twice and compared byte for byte, and their hashes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(source: Path, target: Path, *kinds: str) -> dict[str, bytes]:
    """Build `source` into `target`; the files by name."""
    wanted = [word for kind in kinds for word in ("-t", kind)]
    # The umask of whoever builds must not show in the files.
    before = os.umask(0o022)
    try:
        command = [sys.executable, "-m", "hatchling", "build", *wanted, "-d", str(target)]
        subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    finally:
        os.umask(before)
    return {path.name: path.read_bytes() for path in sorted(target.iterdir())}


def twice(folder: Path) -> dict[str, bytes]:
    """sdist and wheel, by name: of the checkout, and the wheel of the unpacked sdist, which has to be the same.

    Raises `ValueError` where two builds differ.
    """
    first = build(ROOT, folder / "first", "sdist", "wheel")
    (sdist,) = (name for name in first if name.endswith(".tar.gz"))
    with tarfile.open(folder / "first" / sdist) as archive:
        archive.extractall(folder, filter="data")
    second = build(folder / sdist.removesuffix(".tar.gz"), folder / "second", "sdist", "wheel")
    if different := sorted(name for name in {*first, *second} if first.get(name) != second.get(name)):
        raise ValueError(f"two builds differ: {', '.join(different)}")
    return first


def main() -> int:
    """Write `dist/` and print the hashes."""
    with tempfile.TemporaryDirectory() as folder:
        built = twice(Path(folder))
    (ROOT / "dist").mkdir(exist_ok=True)
    for name, data in built.items():
        (ROOT / "dist" / name).write_bytes(data)
        print(hashlib.sha256(data).hexdigest(), name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
