"""Sixty planted programs before the verifier: causes named, causes invented, and whether the printed command cures.

    python benchmarks/planted [--fix] [--seed N] [--minutes M] [-o FILE.json [--resume]] [PART-OF-A-NAME …]

Each program is verified by `torchdet-lint verify --mode stress` in a process of its own, a rare one with `--runs 12`;
with `--fix` also by `--fix`, and the command that is then printed is run on a copy of the program, which must print
the same in four runs after it. It stops after M minutes and says how many programs it got through; with `--resume` it
goes on with those that are not in FILE yet.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge import judge
from programs import planted

if TYPE_CHECKING:
    from programs import Planted

ROOT = Path(__file__).parents[2]


def ran(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of torchdet-lint, or of Python, in a folder."""
    room = folder.parent
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PLANTED_RUNS": str(room / "runs"), "TMPDIR": str(room)}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def report_of(program: Planted, folder: Path, *more: str) -> dict[str, Any]:
    """The verifier's report on a program in `folder`."""
    (folder.parent / "runs").write_text("")
    runs = ["--runs", "12"] if any(cause.rare for cause in program.causes) else []
    words = ["-m", "torchdet_lint", "verify", "--mode", "stress", "--no-values", "--output-format", "json"]
    answer = ran([*words, *runs, *more, "program.py"], folder)
    if answer.returncode not in (0, 1):
        raise SystemExit(f"{program.name}: exit status {answer.returncode}: {answer.stdout}{answer.stderr}")
    report: dict[str, Any] = json.loads(answer.stdout)
    return report


def has_edit(program: Planted, folder: Path) -> bool:
    """Whether the linter offers an edit for every cause, by a rule that is right for it."""
    words = ["-m", "torchdet_lint", "check", "--output-format", "json", "--exit-zero", "--no-cache", "program.py"]
    found = [one for one in json.loads(ran(words, folder).stdout) if one["fix"]]
    return all(any(one["code"] in cause.rules for one in found) for cause in program.causes)


def cures(command: str, folder: Path) -> bool:
    """Whether the program prints the same in four runs once `command` has edited a copy of it."""
    copy = folder.parent / "edited"
    shutil.copytree(folder, copy)
    ran(["-m", *shlex.split(command.replace("torchdet-lint", "torchdet_lint", 1))], copy)
    answers = [ran(["program.py"], copy) for _ in range(4)]
    return len({answer.stdout for answer in answers}) == 1 and not any(answer.returncode for answer in answers)


def tried(program: Planted, *, fix: bool) -> dict[str, Any]:
    """All that is found out about one program."""
    with tempfile.TemporaryDirectory(prefix="planted-") as room:
        folder = Path(room, "program")
        folder.mkdir()
        (folder / "program.py").write_text(program.text)
        row: dict[str, Any] = {"name": program.name, "causes": len(program.causes)}
        row |= dataclasses.asdict(judge(program, report_of(program, folder)))
        if fix:
            report = report_of(program, folder, "--fix")
            done = report["fix"] or {}
            row["with_fix"] = dataclasses.asdict(judge(program, report))
            row |= {"cured": bool(done.get("cured")), "fixes": done.get("fixes", []), "edit": has_edit(program, folder)}
            row["command"] = done.get("command", "")
            row["command_cures"] = bool(row["command"]) and cures(row["command"], folder)
        return row


def summary(rows: list[dict[str, Any]], known: int) -> str:
    """The shares, for a screen."""
    causes = sum(row["causes"] for row in rows)
    lines = [f"{len(rows)} of {known} programs, {causes} causes"]
    for title, told in (("verify", rows), ("verify --fix", [row["with_fix"] for row in rows if "with_fix" in row])):
        if told:
            wrong = sum(len(row["wrong"]) for row in told)
            lines.append(
                f"{title}: diverged {sum(row['verdict'] == 'diverged' for row in told)}, "
                f"named right {sum(row['named'] for row in told)}, no rule named {sum(row['no_rule'] for row in told)} "
                f"(right one among the candidates {sum(row['among'] for row in told)}), named wrong {wrong}, "
                f"not told {sum(len(row['missed']) for row in told)}, invented "
                f"{sum(len(row['invented']) for row in told)}"
            )
    fixed = [row for row in rows if "cured" in row]
    if fixed:
        lines.append(
            f"of {len(fixed)} programs the fixes cured {sum(row['cured'] for row in fixed)}; an edit exists for "
            f"{sum(row['edit'] for row in fixed)}, and the printed command cures "
            f"{sum(row['edit'] and row['command_cures'] for row in fixed)} of these; commands printed in all "
            f"{sum(bool(row['command']) for row in fixed)}, of which do not cure "
            f"{sum(bool(row['command']) and not row['command_cures'] for row in fixed)}"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the programs, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only programs with one of these in their names")
    parser.add_argument("--fix", action="store_true", help="find the fixes too, and try the command that is printed")
    parser.add_argument("--seed", type=int, default=0, help="another choice of programs with two and three causes")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no program after that")
    parser.add_argument("-o", "--output", type=Path, help="write what was found out about each, as JSON")
    parser.add_argument("--resume", action="store_true", help="keep what FILE says of programs, and run the rest")
    asked = parser.parse_args()
    if asked.resume and not asked.output:
        parser.error("--resume needs -o FILE")
    programs = [one for one in planted(asked.seed) if not asked.names or any(name in one.name for name in asked.names)]
    rows: list[dict[str, Any]] = []
    if asked.resume and asked.output.exists():
        rows = json.loads(asked.output.read_text())
    done = {row["name"] for row in rows}
    end = time.monotonic() + 60 * asked.minutes
    for program in programs:
        if program.name in done:
            continue
        if time.monotonic() > end:
            break
        rows.append(tried(program, fix=asked.fix))
        print(json.dumps(rows[-1]), flush=True)
        if asked.output:
            asked.output.write_text(json.dumps(rows, indent=1) + "\n")
    print(summary(rows, len(programs)))


if __name__ == "__main__":
    main()
