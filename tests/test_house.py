"""The walls of ARCHITECTURE.md: imports only run down the floors, and nothing that lints imports torch."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "torchdet_lint"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def floors() -> dict[str, int]:
    """Room -> floor, as ARCHITECTURE.md lists them: lines such as `| 3 | `source/` | … |`; the packages of the runtime
    half are `verifier/recording` and so on.
    """
    found = {}
    for floor, rooms in re.findall(r"^\| (\d+) \| ([^|]+) \|", ARCHITECTURE, re.MULTILINE):
        for room in re.findall(r"`([\w/]+)(?:\.py|/)`", rooms):
            found[room] = int(floor)
    return found


def rooms() -> list[Path]:
    return [
        path for path in sorted(PACKAGE.rglob("*.py")) if "verifier" not in path.parts and path.name != "__init__.py"
    ] + [
        PACKAGE / "checks/__init__.py",
        PACKAGE / "report/__init__.py",
    ]


def room_of(module: str) -> str:
    """`torchdet_lint.report.text` -> `report`."""
    return module.split(".")[1]


def imports(path: Path) -> set[str]:
    """The modules that `path` imports, wherever in the file, but for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "torchdet_lint":
                found.update(f"torchdet_lint.{alias.name}" for alias in node.names)
    return found


def test_every_room_has_its_floor() -> None:
    built = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in rooms()}
    assert built <= floors().keys()


@pytest.mark.parametrize("path", rooms(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_down(path: Path) -> None:
    mine = room_of(f"torchdet_lint.{path.relative_to(PACKAGE).parts[0].removesuffix('.py')}")
    known = floors()
    for module in imports(path):
        parts = module.split(".")
        if parts[0] != "torchdet_lint" or len(parts) == 1 or parts[1] in ("__version__", mine):
            continue
        if parts[1] == "verifier":
            assert mine == "cli", f"{path.name} imports the runtime half"
            continue
        assert known[parts[1]] <= known[mine], (
            f"{path.name} (floor {known[mine]}) imports {module} (floor {known[parts[1]]})"
        )


@pytest.mark.parametrize("path", rooms(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_that_lints_imports_torch_or_numpy(path: Path) -> None:
    assert {module.split(".")[0] for module in imports(path)}.isdisjoint({"torch", "numpy"})


def test_the_runtime_half_shares_the_catalogue_and_nothing_else() -> None:
    allowed = {"catalogue", "finding", "verifier", "__version__"}
    for path in sorted((PACKAGE / "verifier").rglob("*.py")):
        for module in imports(path):
            if module.startswith("torchdet_lint."):
                assert module.split(".")[1] in allowed, f"{path.name} imports {module}"


def runtime_files() -> list[Path]:
    return sorted((PACKAGE / "verifier").rglob("*.py"))


def module_of(path: Path) -> str:
    """`torchdet_lint/verifier/trace/__init__.py` -> `torchdet_lint.verifier.trace`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str) -> str:
    """`torchdet_lint.verifier.trace.reader` -> `verifier/trace`; a file that stands beside the packages: `verifier`."""
    parts = module.split(".")[1:3]
    return "/".join(parts) if (PACKAGE / Path(*parts)).is_dir() else parts[0]


def imports_of_runtime(path: Path, modules: set[str]) -> set[str]:
    """The modules of ours that a file imports wherever in it, for types included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(name if name in modules else node.module for name in names)
    return {name for name in found if name.startswith("torchdet_lint.")} - {module_of(path)}


def test_every_package_of_the_runtime_half_has_its_floor() -> None:
    assert {package_of(module_of(path)) for path in runtime_files()} - {"verifier/bootstrap"} <= floors().keys()


@pytest.mark.parametrize("path", runtime_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_of_the_runtime_half_run_down(path: Path) -> None:
    known = floors()
    mine = package_of(module_of(path)).replace("verifier/bootstrap", "verifier")
    for module in imports_of_runtime(path, {module_of(one) for one in runtime_files()}):
        theirs = package_of(module)
        if theirs != mine:
            assert known[theirs] < known[mine], f"{path.name} (floor {known[mine]}) imports {module} ({known[theirs]})"


def test_no_files_of_the_runtime_half_import_each_other_in_a_circle() -> None:
    modules = {module_of(path) for path in runtime_files()}
    left = {module_of(path): imports_of_runtime(path, modules) & modules for path in runtime_files()}
    while free := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert not left


def test_a_run_imports_what_it_needs(tmp_path: Path) -> None:
    """A run with nothing to parse stays without libcst; no run at all has torch or NumPy."""
    (tmp_path / "plain.py").write_text("import os\n")
    (tmp_path / "torchy.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    heavy = ["libcst", "rich", "pathspec", "torch", "numpy"]
    program = (
        "import sys\nfrom torchdet_lint.cli.main import main\n"
        "main([sys.argv[1], '--no-cache', '--output-file', sys.argv[2]])\n"
        f"print(*sorted(set(sys.modules) & set({heavy})))"
    )
    loaded = {}
    for name in ("plain.py", "torchy.py"):
        command = [sys.executable, "-c", program, name, os.devnull]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        loaded[name] = done.stdout.split()
    assert loaded == {"plain.py": [], "torchy.py": ["libcst"]}


def test_comments_say_only_what_code_cannot() -> None:
    """At most 7 % of the lines are comments."""
    lines = [line.strip() for path in rooms() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert sum(line.startswith("#") for line in lines) <= 0.07 * len(lines)
