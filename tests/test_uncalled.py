"""Functions and classes that nothing in a project names are never run: what is found in them is a note."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

MAIN = '''\
import numpy as np


def used(x):
    """Shuffles, as `spare` does."""
    np.random.default_rng().shuffle(x)


def spare(x):
    return spare(np.random.default_rng().permutation(x))


class Spare:
    def __init__(self):
        self.rng = np.random.default_rng()


if __name__ == "__main__":
    used([1, 2])
    """
    spare([1])
    """
    # Spare()
'''
USED, SPARE, KEPT = 6, 10, 15


def notes(project, **files):
    """The rows of notes in `main.py`."""
    folder = project(**{"main_DOT_py": MAIN, **files})
    found = run.run([str(folder)], Settings(root=str(folder), min_severity="note", jobs=1)).findings
    own = [one for one in found if one.filename.endswith("main.py") and one.code == "TDL104"]
    assert {one.location.row for one in own} == {USED, SPARE, KEPT}
    return {one.location.row for one in own if one.severity == "note"}


def test_what_nothing_names_is_a_note(project):
    assert notes(project) == {SPARE, KEPT}


@pytest.mark.parametrize(
    "text",
    [
        "from main import spare\n\n\ndef run():\n    spare([1])\n",
        "import main\n\n\ndef run():\n    main.spare([1])\n",
        "import main\n\n\ndef run(name='spare'):\n    getattr(main, name)([1])\n",
        "from main import *\n\n\ndef run(x):\n    eval(x)\n",
    ],
)
def test_what_another_file_may_run_is_none(project, text):
    assert SPARE not in notes(project, other_DOT_py=text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    used([1, 2])\n", "    used([1, 2])\n    spare([1])\n"),
        ("    used([1, 2])\n", "    used([1, 2])\n    globals()[input()]([1])\n"),
        ("    used([1, 2])\n", "    used([1, 2])\n    TABLE = ['spare']\n"),
        ("def spare(x):\n", "@register\ndef spare(x):\n"),
        ("import numpy as np\n", "import numpy as np; import fire; fire.Fire()\n"),
    ],
)
def test_what_its_own_file_may_run_is_none(project, old, new):
    folder = project(main_DOT_py=MAIN.replace(old, new))
    found = run.run([str(folder)], Settings(root=str(folder), min_severity="note", jobs=1)).findings
    lines = folder.joinpath("main.py").read_text().splitlines()
    (spare,) = (one for one in found if "permutation" in lines[one.location.row - 1])
    assert (spare.code, spare.severity) == ("TDL104", "error")


NETS = '''\
import numpy as np


class Kept:
    def __init__(self):
        self.rng = np.random.default_rng()


class Tried:
    def __init__(self):
        self.rng = np.random.default_rng()


class Part:
    def __init__(self):
        self.rng = np.random.default_rng()


class Whole:
    """Holds a Part."""

    def __init__(self):
        self.part = Part()
        self.rng = np.random.default_rng()


if __name__ == "__main__":
    print("Tried", Kept().rng, Tried().rng, Whole().rng)
'''
TRAIN = "from nets import Kept\n\nif __name__ == '__main__':\n    Kept().rng.random()\n"


@pytest.mark.parametrize(
    ("old", "new", "tried"),
    [
        ("", "", {11, 16, 24}),
        ("import numpy as np\n", "import numpy as np\n# Tried, Part\n", {12, 17, 25}),
        ("\n\nclass Tried", "        Tried()\n\n\nclass Tried", {17, 25}),
        ("\n\nif __name__", "\n\nNETS = {'tried': Tried}\n\nif __name__", {16, 24}),
        ("\n\nif __name__", "\n\nNETS = ['Tried']\n\nif __name__", {16, 24}),
        ("\n\nif __name__", "\n\ndef make():\n    return Whole()\n\n\nif __name__", {11}),
    ],
)
def test_what_only_a_self_test_of_its_file_makes_is_a_note(project, old, new, tried):
    folder = project(nets_DOT_py=NETS.replace(old, new, 1), train_DOT_py=TRAIN)
    (folder / ".git").mkdir()
    found = run.run([str(folder)], Settings(root=str(folder), min_severity="note", jobs=1)).findings
    own = [one for one in found if one.code == "TDL104" and one.filename.endswith("nets.py")]
    assert len(own) == 4
    assert {one.location.row for one in own if one.severity == "note"} == tried


@pytest.mark.parametrize(
    "files",
    [
        {"other_DOT_py": "from nets import Tried\n\nprint(Tried())\n"},
        {"setup_DOT_py": "from setuptools import setup\n\nsetup(name='x')\n"},
    ],
)
def test_what_another_file_may_make_is_no_part_of_a_self_test(project, files):
    folder = project(nets_DOT_py=NETS, train_DOT_py=TRAIN, **files)
    (folder / ".git").mkdir()
    found = run.run([str(folder)], Settings(root=str(folder), min_severity="note", jobs=1)).findings
    (one,) = (one for one in found if one.location.row == 11 and one.filename.endswith("nets.py"))
    assert one.severity == "error"


def test_a_module_of_a_project_that_nobody_installs(project):
    """Of a package all may be imported, from wherever."""
    module = MAIN.partition("if __name__")[0]
    files = {
        "main_DOT_py": module,
        "train_DOT_py": "from main import used\n\nif __name__ == '__main__':\n    used([1])\n",
    }
    assert notes(project, **files) == set()
    (project() / ".git").mkdir()
    assert notes(project, **files) == {SPARE, KEPT}
    assert notes(project, **files, setup_DOT_py="from setuptools import setup\n\nsetup(name='x')\n") == set()


@pytest.mark.parametrize(
    ("imports", "picks", "found"),
    [
        ("from main import used", "eval(x)", {SPARE, KEPT}),
        ("from main import used", "globals()[x]()", {SPARE, KEPT}),
        ("from main import *", "eval(x)", set()),
        ("import sys, main\nfrom main import used", "eval('main.' + x)", set()),
        ("import sys, main\nfrom main import used", "globals()[x]()", {SPARE, KEPT}),
        ("import sys\nfrom main import used", "vars(sys.modules[x])[x]()", set()),
    ],
)
def test_what_a_file_picks_of_its_own_names_is_none_that_it_does_not_name(project, imports, picks, found):
    module = MAIN.partition("if __name__")[0]
    train = f"{imports}\n\ndef run(x):\n    {picks}\n\nif __name__ == '__main__':\n    used([1])\n"
    (project() / ".git").mkdir()
    assert notes(project, main_DOT_py=module, train_DOT_py=train) == found


@pytest.mark.parametrize(
    "name", ["README", "README.md", "Readme.rst", "LICENSE", "requirements.txt", "environment.yml"]
)
def test_a_project_starts_where_its_readme_lies(project, name):
    module = MAIN.partition("if __name__")[0]
    train = "from main import used\n\nif __name__ == '__main__':\n    used([1])\n"
    (project() / name).write_text("")
    assert notes(project, main_DOT_py=module, train_DOT_py=train) == {SPARE, KEPT}


LAYER = """\
import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 3, 3)

    def forward(self, x):
        return F.interpolate(self.conv(x), scale_factor=2, mode="bilinear")

    def smooth(self, x):
        return F.interpolate(self.conv(x), scale_factor=2, mode="bicubic")
"""
FITS = """\
import torch
from net import Net

if __name__ == "__main__":
    torch.manual_seed(0)
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.rand(1, 3, 8, 8).cuda()).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        ("", "", "note"),
        ("(torch.nn.Module)", "(Base)", "error"),
        ('return F.interpolate(self.conv(x), scale_factor=2, mode="bilinear")', "return self.smooth(x)", "error"),
        ("def smooth", "def reset_parameters", "error"),
    ],
)
def test_a_method_of_a_layer_that_nothing_names_is_not_in_reach(project, old, new, severity):
    net = LAYER.replace(old, new).replace("class Net(Base)", "from bases import Base\n\n\nclass Net(Base)")
    folder = project(net_DOT_py=net, fit_DOT_py=FITS)
    (folder / "README.md").write_text("")
    found = run.run([str(folder)], Settings(root=str(folder), min_severity="note", jobs=1)).findings
    (bicubic,) = (one for one in found if "bicubic" in one.message and one.code == "TDL403")
    (mode,) = (one.message for one in found if one.code == "TDL203")
    assert bicubic.severity == severity
    assert severity == "error" or "may raise" not in mode
