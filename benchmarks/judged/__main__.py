"""`python benchmarks/judged FOLDER [--tree TREE]`: real projects as they were judged, and a checkout -> its recall.

FOLDER holds the projects as folders `owner+name`; TREE is the checkout to be scored, this one by default. What was
judged, and how, stands in the README beside this file.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent


class Label(NamedTuple):
    """A row of the judgement."""

    project: str
    file: str
    role: str
    line: str
    code: str
    severity: str
    kind: str
    reason: str


def findings(tree: Path, folder: Path) -> list[dict[str, object]]:
    """What the checkout `tree` reports of a project."""
    command = [sys.executable, "-m", "torchdet_lint", ".", "--no-cache", "--output-format", "json"]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tree", type=Path, default=HERE.parents[1])
    options = parser.parse_args()
    with (HERE / "judgement.csv").open(newline="") as stream:
        labels = [Label(**row) for row in csv.DictReader(stream)]
    judged: dict[str, dict[str, list[Label]]] = defaultdict(lambda: defaultdict(list))
    for label in labels:
        judged[label.project][label.file].append(label)
    expected, met, severe, alarms, files = Counter[str](), Counter[str](), 0, 0, 0
    for project, by_file in sorted(judged.items()):
        folder = options.folder / project.replace("/", "+")
        if not folder.is_dir():
            print(f"{project} is not there")
            continue
        told: dict[str, list[tuple[str, int, str]]] = defaultdict(list)
        for one in findings(options.tree, folder):
            told[str(one["filename"])].append((str(one["code"]), int(one["location"]["row"]), str(one["severity"])))  # type: ignore[index]
        for file, rows in sorted(by_file.items()):
            files += 1
            left = told[file][:]
            for label in rows:
                match = next((one for one in left if one[0] == label.code and label.line in ("0", str(one[1]))), None)
                if label.kind == "expected":
                    expected[label.code] += 1
                    met[label.code] += match is not None
                    if match is None:
                        print(f"missed  {project} {file}:{label.line} {label.code}: {label.reason}")
                    elif label.severity and match[2] != label.severity:
                        severe += 1
                        print(f"severity {project} {file}:{label.line} {label.code}: {match[2]}, not {label.severity}")
                if match is not None:
                    left.remove(match)
            for code, row, severity in left:
                alarms += 1
                print(f"unforeseen {project} {file}:{row} {code} ({severity})")
    print(
        f"{files} files; found {met.total()} of {expected.total()}, {severe} of another severity; {alarms} unforeseen"
    )
    print(", ".join(f"{code} {met[code]}/{count}" for code, count in sorted(expected.items())))


if __name__ == "__main__":
    main()
