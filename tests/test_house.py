"""The walls of ARCHITECTURE.md: imports run down the floors, those for types too; nothing that lints imports torch."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "torchdet_lint"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_FILES = 14


def name_of(path: Path) -> str:
    """`torchdet_lint/report/text.py` -> `report.text`; the package itself is ``."""
    return ".".join(part for part in path.relative_to(PACKAGE).with_suffix("").parts if part != "__init__")


MODULES = {name_of(path): path for path in FILES}


@cache
def floors() -> dict[str, int]:
    """Package -> floor, by rows of ARCHITECTURE.md: `| 3 | `source/` | … |` and `| 4 | `verifier/launch/` | … |`."""
    found = {}
    for floor, rooms in re.findall(r"^\| (\d+) \| ([^|]+) \|", ARCHITECTURE, re.MULTILINE):
        for room in re.findall(r"`([\w/]+?)(?:\.py|/)`", rooms):
            found[room.replace("/", ".")] = int(floor)
    return found


def package_of(module: str) -> str:
    """The row of the table that a module belongs to: the longest that it begins with."""
    fits = [room for room in floors() if module == room or module.startswith(f"{room}.")]
    return max(fits, key=len, default="")


@cache
def imports(path: Path) -> set[str]:
    """The modules of ours that a file imports, wherever in it, for types too, and the first names of the others'."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole.removeprefix("torchdet_lint.") in MODULES else str(node.module))
    return {
        name.removeprefix("torchdet_lint.") if name.startswith("torchdet_lint.") else name
        for name in found
        if name != "torchdet_lint"
    }


@cache
def graph() -> dict[str, set[str]]:
    """Module -> the modules of ours that it imports."""
    return {module: imports(path) & MODULES.keys() - {module} for module, path in MODULES.items() if module}


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return found


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_every_file_has_its_floor() -> None:
    assert [module for module in MODULES if module and not package_of(module)] == []


def test_every_row_is_there() -> None:
    assert [room for room in floors() if not any(package_of(module) == room for module in MODULES)] == []


def test_no_files_import_each_other() -> None:
    assert circles(graph()) == []


def test_no_packages_import_each_other() -> None:
    packages: dict[str, set[str]] = {}
    for module, used in graph().items():
        mine = package_of(module)
        packages.setdefault(mine, set()).update({package_of(name) for name in used} - {mine})
    assert circles(packages) == []


@pytest.mark.parametrize("module", sorted(filter(None, MODULES)))
def test_imports_run_down(module: str) -> None:
    mine = package_of(module)
    for name in sorted(graph()[module]):
        theirs = package_of(name)
        if theirs != mine and not _speaks_for(module, name):
            assert floors()[theirs] < floors()[mine], (
                f"{module} (floor {floors()[mine]}) imports {name} (floor {floors()[theirs]})"
            )


def _speaks_for(module: str, name: str) -> bool:
    """Whether `module` is the `__init__` of a package that names what is public in it."""
    return MODULES[module].name == "__init__.py" and name.startswith(f"{module}.")


def test_no_folder_is_crowded() -> None:
    crowds = Counter(path.parent for path in FILES if path.name != "__init__.py")
    assert {str(folder): count for folder, count in crowds.items() if count > MOST_FILES} == {}


def exists(dotted: str) -> bool:
    """Whether `engine.run.gather`, `module.Module` or a module of that name, in either half, is there."""
    for start in ("", "verifier."):
        parts = f"{start}{dotted}".split(".")
        for count in range(len(parts), 0, -1):
            path = MODULES.get(".".join(parts[:count]))
            if path is None:
                continue
            body = ast.parse(path.read_text(encoding="utf-8")).body
            for part in parts[count:]:
                node = next((one for one in body if getattr(one, "name", None) == part or _binds(one, part)), None)
                if node is None:
                    break
                body = getattr(node, "body", [])
            else:
                return True
    return False


def _binds(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def test_what_architecture_names_is_there() -> None:
    """The functions on the way of a finding and of a divergence, and the files of "Where do I change"."""
    lives = ARCHITECTURE.partition("## A finding's life")[2].partition("## Where do I change")[0]
    dotted = [name for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", lives) if not name.endswith(".py")]
    assert len(dotted) > 25
    assert [name for name in dotted if not name.startswith("torch.") and not exists(name)] == []
    table = ARCHITECTURE.partition("## Where do I change")[2].partition("\n## ")[0]
    named = [name for name in re.findall(r"`([\w/]+(?:/|\.py|\.toml))`", table) if "TDLnnn" not in name]
    assert len(named) > 15
    folders = ["", "torchdet_lint/", "torchdet_lint/dataflow/", "torchdet_lint/verifier/", "rules/facts/"]
    assert [name for name in named if not any((ROOT / folder / name).exists() for folder in folders)] == []


def test_a_module_says_first_what_comes_in_and_what_goes_out() -> None:
    """`in -> out`, or that it is plain data."""
    docs = {str(path): ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in FILES}
    firsts = {path: doc.split("\n\n")[0] for path, doc in docs.items()}
    assert [
        path for path, first in firsts.items() if not re.search(r" <?-> |plain data", first.replace("\n", " "))
    ] == []


def test_no_two_test_files_share_a_name() -> None:
    """pytest imports a test file by its base name alone, and refuses the second of that name when it collects."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("module", sorted(module for module in MODULES if module and not module.startswith("verifier")))
def test_nothing_that_lints_imports_torch_or_numpy(module: str) -> None:
    assert {name.split(".")[0] for name in imports(MODULES[module])}.isdisjoint({"torch", "numpy"})


@pytest.mark.parametrize("module", sorted(module for module in MODULES if module.startswith("verifier")))
def test_the_runtime_half_shares_the_catalogue_and_nothing_else(module: str) -> None:
    assert {name.split(".")[0] for name in graph()[module]} <= {"catalogue", "finding", "verifier"}


def test_only_the_command_line_knows_the_runtime_half() -> None:
    users = {module for module, used in graph().items() if any(name.startswith("verifier") for name in used)}
    assert {module.split(".")[0] for module in users} <= {"cli", "verifier"}


def test_a_run_imports_what_it_needs(tmp_path: Path) -> None:
    """A run with nothing to parse stays without libcst; no run at all has torch or NumPy."""
    (tmp_path / "plain.py").write_text("import os\n")
    (tmp_path / "torchy.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    heavy = ["libcst", "rich", "pathspec", "torch", "numpy"]
    program = (
        "import sys\nfrom torchdet_lint.__main__ import main\n"
        "sys.argv[1:] = [sys.argv[1], '--no-cache', '--output-file', sys.argv[2]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
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
    paths = [path for path in FILES if "verifier" not in path.parts]
    lines = [line.strip() for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert sum(line.startswith("#") for line in lines) <= 0.07 * len(lines)


@pytest.mark.parametrize("package", ["checks", "dataflow", "fixes", "inference", "module.tree"])
def test_libcst_is_imported_fast(package: str) -> None:
    """Whichever package comes first, in a process of the linter's own; nodes are compared and validated as ever."""
    program = (
        "from torchdet_lint.quick import Process\nProcess.is_own = True\n"
        f"import torchdet_lint.{package}, copy, dataclasses, inspect, pickle, libcst as cst\n"
        "name = cst.Name('a')\n"
        "assert not type(name).__dataclass_params__.frozen and isinstance(name, cst.BaseExpression)\n"
        "assert not isinstance(name, cst.Call) and name != cst.Name('a') and name.deep_equals(cst.Name('a'))\n"
        "assert list(inspect.signature(cst.Name).parameters) == ['value', 'lpar', 'rpar']\n"
        "tree = cst.parse_module('def f(x):\\n    return x\\n')\n"
        "assert pickle.loads(pickle.dumps(tree)).code == copy.deepcopy(tree).code == tree.code\n"
        "assert repr(name).startswith('Name(') and hash(name) == id(name)\n"
        "assert dataclasses.dataclass.__module__ == 'dataclasses'\n"
        "try:\n    cst.Name('')\nexcept cst.CSTValidationError:\n    print('validated')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "validated\n", done.stderr


def test_whoever_imports_the_linter_has_libcst_as_it_is() -> None:
    """Nodes that nobody can assign to, and classes of nodes of one's own."""
    program = (
        "import dataclasses, torchdet_lint.api, libcst as cst\n"
        "torchdet_lint.api.lint('.')\n"
        "assert cst.Name.__dataclass_params__.frozen and type(cst.Name).__name__ == 'ABCMeta'\n"
        "@dataclasses.dataclass(frozen=True)\nclass Own(cst.BaseExpression):\n    value: str = ''\n"
        "print('frozen')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "examples",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "frozen\n", done.stderr
