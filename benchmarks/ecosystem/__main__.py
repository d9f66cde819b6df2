"""`python benchmarks/ecosystem [NAME…]`: what the rules find in the packages of `packages.txt`, and what has changed.

Each package is downloaded as a wheel, unpacked into `--cache` (nothing of it is run, and nothing comes into the
repository), and linted by itself in a process with a limit of time and memory. Of each rule the number of findings and
a hash of their places are compared with `counts.json`; `--keep` writes them there. Exit status 1 where they differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from torchdet_lint import config  # noqa: E402
from torchdet_lint.engine import run  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

KEPT = HERE / "counts.json"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torchdet-lint-ecosystem"
_LARGEST = 2 << 20
_MEMORY = 4 << 30


def fetched(package: str, cache: Path) -> Path | None:
    """The folder with the Python files of a package, downloaded where it is not there yet; None: there is no wheel."""
    folder = cache / package
    if not folder.is_dir():
        wheels = cache / "wheels" / package
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", str(wheels), package], check=False, stderr=subprocess.DEVNULL)
        found = sorted(wheels.glob("*.whl")) if wheels.is_dir() else []
        if not found:
            return None
        unpack(found[0], folder)
        found[0].unlink()
    return folder


def unpack(wheel: Path, folder: Path) -> None:
    """Write the Python files and notebooks of `wheel` below `folder`, and nothing outside of it."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            target = (folder / member.filename).resolve()
            wanted = member.filename.endswith((".py", ".ipynb")) and member.file_size <= _LARGEST
            if wanted and target.is_relative_to(folder.resolve()):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(member))
    folder.mkdir(parents=True, exist_ok=True)


def counted(folder: Path) -> dict[str, Any]:
    """Of the package in `folder`: its files, and of each rule the number of its findings and a hash of their places."""
    began = time.process_time()
    os.chdir(folder)
    result = run.run(["."], config.Settings(root=str(folder), min_severity="note", jobs=1))
    places: dict[str, list[str]] = {}
    for finding in result.findings:
        place = f"{finding.filename}:{finding.cell}:{finding.location.row}:{finding.location.column} {finding.severity}"
        places.setdefault(finding.code, []).append(place)
    rules = {code: [len(found), _hash(found)] for code, found in sorted(places.items())}
    return {
        "files": result.files,
        "errors": len(result.errors),
        "seconds": round(time.process_time() - began, 1),
        "rules": rules,
    }


def _hash(places: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(sorted(places)).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()


def apart(folder: Path, limit: float) -> dict[str, Any] | None:
    """`counted` in a process of its own; None where it takes longer than `limit` seconds or ends badly."""
    command = [sys.executable, str(HERE), "--count", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def changes(package: str, before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> Iterator[str]:
    """One line for each rule that finds another number of places in the package than `before`, or other places."""
    if before is None:
        yield f"{package}: new: {sum(count for count, _ in now['rules'].values())} findings in {now['files']} files"
        return
    for code in sorted({*before["rules"], *now["rules"]}):
        old, new = (one["rules"].get(code, [0, ""]) for one in (before, now))
        if old[0] != new[0]:
            yield f"{package}: {code}: {old[0]} -> {new[0]}"
        elif old[1] != new[1]:
            yield f"{package}: {code}: {new[0]}, at other places or of another severity"
    for what in ("files", "errors"):
        if before[what] != now[what]:
            yield f"{package}: {what}: {before[what]} -> {now[what]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="packages of the list (default: all)")
    parser.add_argument("--cache", type=Path, default=_CACHE, help="where packages are unpacked (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=600, help="seconds for one package")
    parser.add_argument("--minutes", type=float, default=600, help="begin no package after so many")
    parser.add_argument("--offline", action="store_true", help="only the packages that are unpacked already")
    parser.add_argument("--keep", action="store_true", help="write what is counted to counts.json")
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.count:
        if sys.platform != "win32":
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        print(json.dumps(counted(given.count.resolve())))
        return 0
    listed = (HERE / "packages.txt").read_text(encoding="utf-8").split()
    if unknown := set(given.names).difference(listed, [one.partition("==")[0] for one in listed]):
        parser.error(f"not in packages.txt: {', '.join(sorted(unknown))}")
    wanted = [one for one in listed if not given.names or {one, one.partition("==")[0]} & set(given.names)]
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    until = time.monotonic() + 60 * given.minutes
    told: list[str] = []
    done = 0
    for package in wanted:
        if time.monotonic() > until:
            break
        known = given.cache / package
        folder = (known if known.is_dir() else None) if given.offline else fetched(package, given.cache)
        now = apart(folder, given.limit) if folder is not None else None
        if now is None:
            if not given.offline:
                print(f"{package}: {'no wheel' if folder is None else 'not finished'}", flush=True)
            continue
        done += 1
        lines = list(changes(package, kept.get(package), now))
        told += lines
        print("\n".join(lines or [f"{package}: as before"]), flush=True)
        if given.keep:
            kept[package] = {key: value for key, value in now.items() if key != "seconds"}
            rows = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(kept.items()))
            KEPT.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    print(f"{done} packages linted, {len(told)} changes")
    return int(bool(told) and not given.keep)


if __name__ == "__main__":
    sys.exit(main())
