"""Which seeding function of the project a fix calls, and how it imports it."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import repair

SEEDER = """\
import random
import numpy as np
import torch


def set_seed(seed, quiet=True):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
"""
MAIN = """\
import torch


def main():
    torch.save(torch.rand(3), "drawn.pt")


if __name__ == "__main__":
    main()
"""


def fixed(folder, files, entry="main.py"):
    """`entry` after `--fix` of a project of `files`."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    paths = [str(folder / name) for name in files]
    repaired = repair.repair(paths, Settings(root=str(folder), select=("TDL101", "TDL102", "TDL103"), jobs=1))
    assert not repaired.result.errors
    assert not repaired.result.findings
    assert set(repaired.texts) == {str(folder / entry)}
    return repaired.texts[str(folder / entry)].decode()


@pytest.mark.parametrize(
    ("head", "path", "line"),
    [
        ("", "seeding.py", "from seeding import set_seed"),
        ("", "tools/seeding.py", "from tools.seeding import set_seed"),
        ("from tools.other import f\n", "tools/seeding.py", "from tools.seeding import set_seed"),
        ("from seeding import set_seed\n", "seeding.py", ""),
        ("import seeding\n", "seeding.py", ""),
    ],
)
def test_function_of_another_file_is_imported_and_called(head, path, line, tmp_path):
    files = {"main.py": head + MAIN, path: SEEDER, "tools/__init__.py": "", "tools/other.py": "def f(): pass\n"}
    text = fixed(tmp_path, files)
    assert "manual_seed" not in text
    assert text.count("import set_seed") == (head != "import seeding\n")
    assert ("seeding.set_seed(0)\n    main()" if head == "import seeding\n" else "    set_seed(0)\n    main()") in text
    assert line in text


def test_name_under_which_a_package_has_it_is_kept(tmp_path):
    files = {
        "main.py": "from tools import set_seed, other\n" + MAIN,
        "tools/__init__.py": "from .seeding import set_seed\nfrom . import other\n",
        "tools/other.py": "",
        "tools/seeding.py": SEEDER,
    }
    assert fixed(tmp_path, files) == files["main.py"].replace("    main()\n", "    set_seed(0)\n    main()\n")


@pytest.mark.parametrize(
    ("outer", "inner", "module"),
    [
        ("", "from .seeding import set_seed\n", "lab.tools"),
        ("from lab.tools import *\n", "from .seeding import *\n", "lab"),
        ("from .tools.seeding import set_seed\n", "", "lab"),
        ("def set_seed(seed):\n    pass\n", "", "lab.tools.seeding"),
        ("", "from . import seeding\n", "lab.tools.seeding"),
    ],
    ids=["package", "stars", "outermost", "another", "module"],
)
def test_function_is_imported_from_the_package_that_publishes_it(outer, inner, module, tmp_path):
    files = {
        "main.py": "from lab.tools.net import WIDTH\n" + MAIN,
        "lab/__init__.py": outer,
        "lab/tools/net.py": "WIDTH = 3\n",
        "lab/tools/__init__.py": inner,
        "lab/tools/seeding.py": SEEDER,
    }
    assert f"from {module} import set_seed\n" in fixed(tmp_path, files)


@pytest.mark.parametrize("package", [".", "lab."], ids=["relative", "absolute"])
def test_module_beside_a_script_in_a_package_is_named_as_its_imports_name_others(tmp_path, package):
    files = {
        "lab/__init__.py": "",
        "lab/net.py": "WIDTH = 3\n",
        "lab/seeding.py": SEEDER,
        "lab/train.py": f"from {package}net import WIDTH\n" + MAIN,
    }
    assert f"from {package}seeding import set_seed\n" in fixed(tmp_path, files, "lab/train.py")


@pytest.mark.parametrize(
    "seeder",
    [
        SEEDER.replace("    torch.manual_seed(seed)\n", ""),
        SEEDER + "    torch.use_deterministic_algorithms(True)\n",
        SEEDER + "    print(torch.rand(1))\n",
        SEEDER.replace("quiet=True", "quiet"),
        SEEDER.replace("(seed, quiet=True)", "(value=3)"),
        SEEDER + "\n\nprint('ready')\n",
        SEEDER + "\n\nimport main\n",
        SEEDER.replace("def set_seed", "class A:\n    pass\n\n\ndef seed_worker"),
    ],
    ids=["numpy only", "mode", "draws", "needs more", "no seed", "works", "circle", "worker"],
)
def test_function_that_does_not_fit_is_not_called(seeder, tmp_path):
    text = fixed(tmp_path, {"main.py": MAIN, "seeding.py": seeder})
    assert "    torch.manual_seed(0)\n    main()\n" in text


def test_function_of_a_file_that_the_program_imports_anyway_may_stand_beside_work(tmp_path):
    files = {"main.py": "import seeding\n" + MAIN, "seeding.py": SEEDER + "\n\nprint('ready')\n"}
    assert "    seeding.set_seed(0)\n    main()\n" in fixed(tmp_path, files)


def test_function_that_is_called_as_the_hole_of_a_seed(tmp_path):
    text = fixed(tmp_path, {"main.py": MAIN, "seeding.py": SEEDER.replace("def set_seed(seed,", "def seed(seed,")})
    assert "from seeding import seed\n" in text
    assert "    seed(0)\n    main()" in text


def test_nothing_is_imported_above_a_change_of_the_path(tmp_path):
    head = "import os\nimport sys\n\nsys.path.append(os.path.dirname(os.path.dirname(__file__)))\nimport tools.other\n"
    files = {"scripts/main.py": head + MAIN, "tools/seeding.py": SEEDER, "tools/__init__.py": "", "tools/other.py": ""}
    text = fixed(tmp_path, files, "scripts/main.py")
    assert "set_seed" not in text
    assert "    torch.manual_seed(0)\n    main()" in text


def test_function_of_another_program_is_not_called(tmp_path):
    other = f'{SEEDER}\n\nif __name__ == "__main__":\n    set_seed(0)\n    print(random.random())\n'
    text = fixed(tmp_path, {"main.py": MAIN, "other.py": other})
    assert "set_seed" not in text
    assert "    torch.manual_seed(0)\n    main()" in text


@pytest.mark.parametrize(("head", "called"), [("", False), ("from tasks.one import run\n", True)])
def test_packages_that_do_something_are_not_imported_for_a_function_in_them(head, called, tmp_path):
    files = {
        "main.py": head + MAIN,
        "tasks/__init__.py": '"""Tasks."""\n',
        "tasks/one/__init__.py": "import heavy\n",
        "tasks/one/run.py": "def f(): pass\n",
        "tasks/one/seeding.py": SEEDER,
    }
    text = fixed(tmp_path, files)
    assert ("from tasks.one.seeding import set_seed" in text) == called
    assert ("    set_seed(0)\n" in text) == called


def test_function_out_of_reach_is_not_called(tmp_path):
    text = fixed(tmp_path, {"scripts/main.py": MAIN, "lib/seeding.py": SEEDER}, "scripts/main.py")
    assert "    torch.manual_seed(0)\n    main()\n" in text


def test_name_that_means_something_else_is_left_alone(tmp_path):
    text = fixed(
        tmp_path, {"main.py": MAIN.replace("def main():", "set_seed = 3\n\n\ndef main():"), "seeding.py": SEEDER}
    )
    assert "    torch.manual_seed(0)\n    main()\n" in text
    assert "import set_seed" not in text


def test_test_modules_are_not_imported(tmp_path):
    text = fixed(tmp_path, {"main.py": MAIN, "test_seeding.py": SEEDER})
    assert "test_seeding" not in text


@pytest.mark.parametrize(
    ("head", "called"),
    [
        ("from models import Net\n", False),  # beside it in its folder, and found from there alone
        ("from tasks.models import Net\n", True),
        ("from .models import Net\n", True),
        ("import easydict\n", False),  # which the program does without
        ("import os\n", True),
    ],
)
def test_function_whose_file_imports_what_the_program_cannot_is_not_called(head, called, tmp_path):
    files = {"main.py": MAIN, "tasks/seeding.py": head + SEEDER, "tasks/models.py": "class Net: pass\n"}
    text = fixed(tmp_path, files)
    assert ("from tasks.seeding import set_seed" in text) == called
    assert ("    set_seed(0)\n" in text) == called
