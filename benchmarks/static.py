"""Time the linter beside its peers and its floor, in one run, on trees of real code; what counts are the ratios.

    python benchmarks/static.py TREE…            unpacked release archives
    python benchmarks/static.py                  download those of torch-geometric, timm and transformers first

Every figure is CPU seconds of the whole process tree, as the kernel counts them, the median of `--repeat` runs; the
contenders take turns, and all of them run from byte code, as an installed package does. TorchFix, which pins an old
libcst, gets an environment of its own in `.venv-torchfix`; it runs once, and is stopped when it has cost a quarter more
than the goal asks for.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent
DEFAULT = ("torch-geometric", "timm", "transformers")
FLOOR_GOAL, PEER_GOAL, WARM_GOAL, JOBS_GOAL, FILE_GOAL, MEMORY_GOAL = 0.5, 20.0, 0.03, 1.7, 1.4, 300.0
PATIENCE = 1.25
FILES_OF_A_TREE = 5


class Cost(NamedTuple):
    cpu: float
    wall: float
    mebibytes: float


def measure(command: list[str], folder: Path, most: float = 0) -> Cost:
    """What one run of `command` costs, its children included; it is stopped at `most` CPU seconds."""
    import resource
    import time

    def limit() -> None:
        if most:
            resource.setrlimit(resource.RLIMIT_CPU, (int(most), int(most)))

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=limit
    ) as child:
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1) and not (most and child.returncode in (-signal.SIGXCPU, -signal.SIGKILL)):
        raise SystemExit(f"{' '.join(command)} left with {child.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


def torchfix() -> list[str]:
    """The command of TorchFix, installed when it is not there."""
    home = ROOT / ".venv-torchfix"
    if not (home / "bin/torchfix").exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin/pip"), "install", "--quiet", "torchfix"], check=True)
    return [str(home / "bin/torchfix")]


def download(name: str, folder: Path) -> Path:
    """The newest source archive of a package, unpacked."""
    place = folder / name
    if not place.is_dir():
        with tempfile.TemporaryDirectory() as scratch:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
            subprocess.run([*pip, "--only-binary", ":all:", "--dest", scratch, name], check=True)
            (archive,) = Path(scratch).iterdir()
            if archive.suffix == ".whl":
                zipfile.ZipFile(archive).extractall(place)
            else:
                with tarfile.open(archive) as stream:
                    stream.extractall(place, filter="data")
    return place


def contenders(tree: Path, peers: bool) -> dict[str, list[str]]:
    us = [sys.executable, "-m", "torchdet_lint", str(tree), "--isolated", "--quiet", "--jobs"]
    found = {
        "ours, cold": [*us, "1", "--cache-dir", "{cache}"],
        "ours, warm": [*us, "1", "--cache-dir", "{cache}"],
        "ours, cold, 2 jobs": [*us, "2", "--no-cache"],
        "libcst.parse_module": [sys.executable, str(HERE / "floor.py"), "libcst", str(tree)],
        "ast.parse": [sys.executable, str(HERE / "floor.py"), "ast", str(tree)],
    }
    ruff = shutil.which("ruff", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if ruff:
        found["ruff --select NPY"] = [ruff, "check", "--isolated", "--no-cache", "--select", "NPY", str(tree)]
    if peers:
        found["torchfix --select ALL"] = [*torchfix(), "--jobs", "1", "--select", "ALL", str(tree)]
    return found


def compare(tree: Path, repeat: int, peers: bool) -> dict[str, Cost]:
    costs: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(repeat):
            cache = str(Path(scratch, f"cache{number}"))
            for name, command in contenders(tree, peers).items():
                if name.startswith("torchfix") and number:
                    continue
                filled = [part.replace("{cache}", cache) for part in command]
                most = PATIENCE * PEER_GOAL * costs["ours, cold"][0].cpu if name.startswith("torchfix") else 0
                costs.setdefault(name, []).append(measure(filled, Path(scratch), most))
    return {name: median(several) for name, several in costs.items()}


def of_500_lines(trees: list[Path]) -> list[Path]:
    """Files of the trees that import torch and have 490 to 510 lines, a few of each tree, spread evenly over it."""
    found: list[Path] = []
    for tree in trees:
        texts = {path: path.read_text("utf-8", "replace") for path in sorted(tree.rglob("*.py"))}
        fitting = [path for path, text in texts.items() if 490 <= text.count("\n") <= 510 and "import torch" in text]
        found += fitting[:: max(1, len(fitting) // FILES_OF_A_TREE)][:FILES_OF_A_TREE]
    return found


def one_file(paths: list[Path], repeat: int) -> tuple[float, list[float]]:
    """Wall seconds of `import libcst`, and of linting each of the files alone, each time in a new process."""
    with tempfile.TemporaryDirectory() as scratch:
        floor: list[float] = []
        ours: dict[Path, list[float]] = {path: [] for path in paths}
        for _ in range(max(repeat, 5)):
            for path, walls in ours.items():
                floor.append(measure([sys.executable, "-c", "import libcst"], Path(scratch)).wall)
                shutil.copy(path, Path(scratch, "one.py"))
                command = [sys.executable, "-m", "torchdet_lint", "one.py", "--no-cache", "--isolated"]
                walls.append(measure(command, Path(scratch)).wall)
    return statistics.median(floor), [statistics.median(walls) for walls in ours.values()]


def named(tree: Path, floor: float) -> float:
    """CPU seconds for a file of `tree`, the project around it, as a share of what libcst takes for the whole."""
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch, tree.name)
        shutil.copytree(tree, project)
        Path(project, "pyproject.toml").touch()
        files = of_500_lines([project])
        command = [sys.executable, "-m", "torchdet_lint", "--no-cache", "--jobs", "1"]
        return max((measure([*command, str(path)], project).cpu for path in files), default=0.0) / floor


def verdict(value: float, goal: float, *, at_most: bool) -> str:
    met = value <= goal if at_most else value >= goal
    return f"{value:8.3f}  goal {'<=' if at_most else '>='} {goal:g}  {'met' if met else 'MISSED'}"


def report(tree: Path, costs: dict[str, Cost]) -> None:
    print(f"\n{tree.name}")
    floor = costs["libcst.parse_module"].cpu
    for name, cost in costs.items():
        share = f"{cost.cpu / floor:8.3f} of the floor"
        print(f"  {name:24} {cost.cpu:8.2f} s CPU {cost.wall:8.2f} s wall {cost.mebibytes:7.0f} MiB {share}")
    cold, warm = costs["ours, cold"], costs["ours, warm"]
    print("  cold / libcst floor      " + verdict(cold.cpu / floor, FLOOR_GOAL, at_most=True))
    print("  warm / cold              " + verdict(warm.cpu / cold.cpu, WARM_GOAL, at_most=True))
    print(
        "  one job / two jobs, wall " + verdict(cold.wall / costs["ours, cold, 2 jobs"].wall, JOBS_GOAL, at_most=False)
    )
    print("  peak memory, MiB         " + verdict(cold.mebibytes, MEMORY_GOAL, at_most=True))
    if peer := costs.get("torchfix --select ALL"):
        print("  torchfix / cold          " + verdict(peer.cpu / cold.cpu, PEER_GOAL, at_most=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true", help="leave TorchFix out (it takes minutes)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    given = parser.parse_args()
    trees = given.trees or [download(name, ROOT / "build" / "benchmark-trees") for name in DEFAULT]
    figures: dict[str, dict[str, Cost]] = {}
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(ROOT / "torchdet_lint")], check=True)
    files = of_500_lines(trees)
    if files:
        floor, ours = one_file(files, given.repeat)
        print(f"one file of 500 lines / import libcst, wall: {len(files)} files, {min(ours) / floor:.3f} to", end=" ")
        print(f"{max(ours) / floor:.3f}, median" + verdict(statistics.median(ours) / floor, FILE_GOAL, at_most=True))
    for tree in trees:
        figures[tree.name] = compare(tree.resolve(), given.repeat, not given.no_peers)
        report(tree, figures[tree.name])
        floor = figures[tree.name]["libcst.parse_module"].cpu
        print(f"  dearest named file, CPU  {named(tree.resolve(), floor):8.3f} of the floor of the whole tree")
    if given.json:
        rows = {tree: {name: cost._asdict() for name, cost in costs.items()} for tree, costs in figures.items()}
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
