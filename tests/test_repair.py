"""`--fix` and `--diff` from outside: what is written, what is printed, the status, and that fixed programs repeat."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torchdet_lint.cli.main import main
from torchdet_lint.engine import repair

if TYPE_CHECKING:
    from collections.abc import Iterator

LOADER = """\
import random

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __init__(self):
        self.rng = random.Random(1)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.rng.random()


torch.manual_seed(1)
loader = DataLoader(
    Numbers(),
    shuffle=True,
    num_workers=2,
)
"""
FIXED = """\
import random

import torch
from torch.utils.data import DataLoader, Dataset


def seed_worker(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    dataset = torch.utils.data.get_worker_info().dataset
    dataset.rng = random.Random(worker_seed)


class Numbers(Dataset):
    def __init__(self):
        self.rng = random.Random(1)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.rng.random()


torch.manual_seed(1)
loader = DataLoader(
    Numbers(),
    shuffle=True,
    num_workers=2,
    worker_init_fn=seed_worker,
    generator=torch.Generator().manual_seed(torch.initial_seed()),
)
"""
UNSEEDED = "import random\n\nrng = random.Random()\nprint(rng.random())\n"
RELAXED = "import torch\n\ntorch.use_deterministic_algorithms(False)\n"


@pytest.fixture(autouse=True)
def _project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> int:
    return main(["--isolated", "--no-cache", "--min-severity", "note", *arguments])


def test_fix_writes_and_tells(capsys):
    Path("a.py").write_text(LOADER)
    assert run("--fix", "a.py") == 0
    assert Path("a.py").read_text() == FIXED
    out = capsys.readouterr().out
    assert "Fixed 2 findings:\n  1 × TDL301 dataloader-worker-seed\n  1 × TDL302 dataloader-generator\n" in out


def test_second_run_changes_nothing():
    Path("a.py").write_text(LOADER)
    run("--fix", "--unsafe-fixes", "a.py")
    before = Path("a.py").stat()
    assert run("--fix", "--unsafe-fixes", "a.py") == 0
    assert Path("a.py").stat().st_mtime_ns == before.st_mtime_ns


def test_diff_is_a_patch_and_writes_nothing(capfdbinary):
    Path("a.py").write_text(LOADER)
    Path("b.py").write_text("x = 1\n")
    assert run("--diff", ".") == 1
    out, err = capfdbinary.readouterr()
    assert err == b"Would fix 2 findings.\n"
    assert Path("a.py").read_text() == LOADER
    subprocess.run(["git", "apply", "-"], input=out, check=True)
    assert Path("a.py").read_text() == FIXED
    assert run("--diff", ".") == 0
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize(
    ("text", "options", "status"),
    [
        (LOADER, ["--fix"], 0),
        (LOADER, ["--fix", "--exit-non-zero-on-fix"], 1),
        (LOADER, ["--fix", "--exit-zero"], 0),
        (LOADER, ["--diff"], 1),
        (LOADER, ["--diff", "--exit-zero"], 0),
        ("x = 1\n", ["--fix", "--exit-non-zero-on-fix"], 0),
        ("x = 1\n", ["--diff"], 0),
        (RELAXED, ["--fix"], 1),
        (RELAXED, ["--fix", "--exit-zero"], 0),
        (RELAXED, ["--fix", "--unsafe-fixes"], 0),
        (RELAXED, ["--diff"], 0),
        (RELAXED, ["--diff", "--unsafe-fixes"], 1),
        ("def f(:\n", ["--fix"], 1),
        ("def f(:\n", ["--diff"], 0),
    ],
)
def test_status_is_ruffs(text, options, status):
    Path("a.py").write_text(text)
    assert run("--select", "TDL001,TDL204,TDL3", *options, "a.py") == status


def test_unsafe_fix_waits_to_be_asked_for(capsys):
    Path("a.py").write_text(RELAXED)
    assert run("--select", "TDL204", "--fix", "a.py") == 1
    assert Path("a.py").read_text() == RELAXED
    assert "Left: 1 with an unsafe fix (--unsafe-fixes)." in capsys.readouterr().out
    assert run("--select", "TDL204", "--fix", "--unsafe-fixes", "a.py") == 0
    assert "use_deterministic_algorithms(True)" in Path("a.py").read_text()


def test_fix_that_is_not_made_says_why(capsys):
    options = "options = {'num_workers': 2, 'worker_init_fn': None}\nprint(options)\n"
    Path("a.py").write_text(
        LOADER.replace("torch.manual", f"{options}torch.manual").replace("num_workers=2", "**options")
    )
    assert run("--select", "TDL301", "--fix", "a.py") == 1
    out = capsys.readouterr().out
    assert "No fix: `worker_init_fn` comes from somewhere else than the call." in out
    assert "Left: 1 whose fix was not made (each says why)." in out


MAIN = "\n\nif __name__ == '__main__':\n    main()\n"


@pytest.mark.parametrize(
    ("code", "main", "other", "reason"),
    [
        ("TDL106", "x = torch.rand(3)\n    seed()", "torch.manual_seed(0)", "the program starts in main.py"),
        ("TDL108", "multiprocessing.spawn(seed)", "print(torch.rand(3))", "the target is defined in other.py"),
        ("TDL203", "seed().fit(Net())", "return lightning.Trainer()", "trainer made in other.py:5 is to be turned on"),
    ],
)
def test_fix_whose_place_is_in_another_file_says_so(code, main, other, reason, capsys):
    heads = "import lightning\nimport torch\nfrom torch import multiprocessing\n"
    net = "class Net(lightning.LightningModule):\n    pass\n\n"
    Path("main.py").write_text(f"{heads}from other import seed\n{net}def main():\n    {main}{MAIN}")
    Path("other.py").write_text(f"{heads}def seed(rank=0):\n    {other}\n")
    before = [Path(name).read_text() for name in ("main.py", "other.py")]
    assert run("--select", code, "--fix", "--unsafe-fixes", ".") == 1
    assert f"No fix: {reason}" in " ".join(capsys.readouterr().out.split()).replace("`deterministic` of the ", "")
    assert [Path(name).read_text() for name in ("main.py", "other.py")] == before


def test_finding_that_a_fix_of_another_file_cures_is_not_left(capsys):
    Path("samplers.py").write_text(
        "from torch.utils.data import BatchSampler, RandomSampler\n\n\n"
        "def in_batches(dataset):\n    return BatchSampler(RandomSampler(dataset), 4, drop_last=False)\n"
    )
    Path("train.py").write_text(
        "import torch\nfrom torch.utils.data import DataLoader\n\nfrom samplers import in_batches\n\n"
        "torch.manual_seed(0)\nfor batch in DataLoader(data, batch_sampler=in_batches(data)):\n    print(batch)\n"
    )
    assert run("samplers.py", "train.py", "--output-format", "concise") == 1
    assert "train.py:7:14: TDL302" in capsys.readouterr().out
    assert run("samplers.py", "train.py", "--fix", "--unsafe-fixes", "--output-format", "concise") == 0
    assert "TDL302" not in capsys.readouterr().out


def test_suppressed_findings_are_not_fixed():
    text = LOADER.replace("DataLoader(\n", "DataLoader(  # noqa: TDL301, TDL302\n")
    Path("a.py").write_text(text)
    assert run("--fix", "a.py") == 0
    assert Path("a.py").read_text() == text


def test_seed_of_the_configuration_is_used():
    Path("torchdet-lint.toml").write_text("seed = 42\n")
    Path("a.py").write_text(UNSEEDED)
    assert main(["--no-cache", "--min-severity", "note", "--fix", "a.py"]) == 0
    assert Path("a.py").read_text() == UNSEEDED.replace("Random()", "Random(42)")


@pytest.mark.parametrize("text", [LOADER, "x = 1", LOADER.replace("\n", "\r\n")])
def test_standard_input_is_fixed_to_standard_output(text, monkeypatch, capfdbinary):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    status = run("--stdin-filename", "x.py", "--fix", "-")
    expected = FIXED if "DataLoader" in text else text
    assert capfdbinary.readouterr().out == (expected.replace("\n", "\r\n") if "\r" in text else expected).encode()
    assert status == 0
    assert list(Path().iterdir()) == []


def test_numpy_is_left_alone_where_only_generators_draw():
    """Nothing is written that ruff's NPY002 dislikes."""
    text = (
        "import torch\n\nif __name__ == '__main__':\n    rng = np.random.default_rng()\n"
        "    print(torch.rand(rng.integers(9)))\n"
    )
    Path("a.py").write_text("import numpy as np\n" + text)
    assert run("--fix", "a.py") == 0
    fixed = Path("a.py").read_text()
    assert "rng = np.random.default_rng(0)\n" in fixed
    assert "    torch.manual_seed(0)\n" in fixed
    assert "np.random.seed" not in fixed


def test_notebook_is_fixed_in_its_cells():
    """But for what workers that are spawned would have to import."""
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Café\n"]},
        {
            "cell_type": "code",
            "outputs": [],
            "source": ["%pip install x\n", "import torch\n", "from torch.utils import data"],
        },
        {"cell_type": "code", "outputs": [], "source": "torch.manual_seed(3)"},
        {"cell_type": "code", "outputs": [], "source": "load = data.DataLoader(images, num_workers=2, shuffle=True)"},
    ]
    raw = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False)
    Path("a.ipynb").write_text(raw + "\n", encoding="utf-8")
    assert run("--select", "TDL302", "--fix", "a.ipynb") == 0
    assert run("--select", "TDL301", "--fix", "--unsafe-fixes", "a.ipynb") == 1
    text = Path("a.ipynb").read_text(encoding="utf-8")
    sources = ["".join(cell["source"]) for cell in json.loads(text)["cells"]]
    assert sources[1] == "%pip install x\nimport torch\nfrom torch.utils import data"
    assert sources[3] == (
        "load = data.DataLoader(images, num_workers=2, shuffle=True,\n"
        "                       generator=torch.Generator().manual_seed(torch.initial_seed()))"
    )
    kept = [line for line in raw.splitlines() if "import" not in line and "DataLoader" not in line]
    assert [line for line in text.splitlines() if line in kept] == kept


GUARD = """try:
    import torch
    assert torch.__version__ > "2"
except:
    !pip install torch
    import torch
"""
INSTALLED = "import os\n\nif 'COLAB' in os.environ:\n    !pip install torch\n"


@pytest.mark.parametrize(
    ("cells", "fixed"),
    [
        pytest.param((GUARD, "torch.nn.Linear(2, 3)\n"), {0: ["\n\ntorch.manual_seed(0);\n"]}, id="import or install"),
        pytest.param(
            (INSTALLED, "from torch import nn\nnn.Linear(2, 3)\n"), {1: ["import torch", "torch.manual_seed(0)"]},
            id="an install below the first imports",
        ),
        pytest.param(
            ("import os\n", "!pip install a\n", "import a\n", "from torch import nn\nnn.Linear(2, 3)\n"),
            {3: ["import torch", "torch.manual_seed(0)"]}, id="the imports of the package's own cell",
        ),
        pytest.param(
            ("%time\n# Import torch\nimport torch\n", "import random\ntorch.nn.Linear(2, 3)\nrandom.random()\n"),
            {1: ["torch.manual_seed(0)"]}, id="no import needed",
        ),
        pytest.param(
            ("# Import torch\nimport torch\n", "def f():\n    import random\n    return random.random()\n", "f()\n"),
            {0: ["import random\n\n# Import torch\nimport torch\n"]}, id="a heading",
        ),
        pytest.param(
            ("import os\n", "%pip install numpy\n", "import pandas\n", "pandas.DataFrame(x).sample(2)\n"),
            {3: ["random_state=0"]}, id="nothing to import",
        ),
    ],
)  # fmt: skip
def test_notebook_imports_nothing_before_it_is_installed(cells, fixed):
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    Path("a.ipynb").write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert run("--select", "TDL101,TDL103,TDL107", "--fix", "a.ipynb") == 0
    new = ["".join(cell["source"]) for cell in json.loads(Path("a.ipynb").read_text())["cells"]]
    for index, (old, text) in enumerate(zip(cells, new, strict=True)):
        assert (text != old) == (index in fixed)
        assert all(line in text for line in fixed.get(index, ()))


def test_what_a_cell_shows_last_stays_last(capfdbinary):
    """A cell's last expression is its output: nothing is put after it. The patch is one that git takes."""
    sources = [
        "import torch as t\nt.__version__",
        "a = 1\na",
        "# draw\nx = t.rand(3)\nx",
        "import torch as t\nimport os",
    ]
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in sources]
    Path("a.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    )
    assert run("--select", "TDL101", "--diff", "a.ipynb") == 1
    subprocess.run(["git", "apply", "-"], input=capfdbinary.readouterr().out, check=True)
    fixed = [cell["source"] for cell in json.loads(Path("a.ipynb").read_text())["cells"]]
    assert fixed == ["import torch as t\n\nt.manual_seed(0)\n\nt.__version__", *sources[1:]]
    assert run("--select", "TDL101", "a.ipynb") == 0


@pytest.mark.parametrize(
    ("cell", "fixed"),
    [
        ("import torch", "import torch\n\ntorch.manual_seed(0);"),
        ("import torch\n# all that is needed\n", "import torch\n\ntorch.manual_seed(0);\n\n# all that is needed\n"),
        ("import torch\na = 1", "import torch\n\ntorch.manual_seed(0)\n\na = 1"),
        (
            "import torch\n\n%matplotlib inline\n%load_ext autoreload",
            "import torch\n\n%matplotlib inline\n%load_ext autoreload\n\ntorch.manual_seed(0);",
        ),
        (
            "import torch\n%matplotlib inline\n# rows\na = 1",
            "import torch\n%matplotlib inline\n\ntorch.manual_seed(0)\n\n# rows\na = 1",
        ),
    ],
)
def test_seed_at_the_end_of_a_cell_shows_nothing(cell, fixed):
    """`torch.manual_seed` returns the generator, which a notebook would print."""
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in (cell, "torch.nn.Linear(2, 3)")
    ]
    Path("a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert run("--select", "TDL101", "--fix", "a.ipynb") == 0
    assert json.loads(Path("a.ipynb").read_text())["cells"][0]["source"] == fixed


def _fixed_cells(*texts):
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in texts]
    Path("a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert run("--select", "TDL101,TDL102", "--fix", "a.ipynb") == 0
    return [cell["source"] for cell in json.loads(Path("a.ipynb").read_text())["cells"]]


def test_seed_above_a_definition_stands_apart():
    """In a notebook whose imports follow what it defines."""
    texts = ("def f(x):\n    return x", "from torch import nn\nnn.Linear(2, 3)")
    first = _fixed_cells(*texts)[0]
    assert first == f"import torch\n\ntorch.manual_seed(0)\n\n{texts[0]}"


def test_seed_of_a_notebook_stands_in_the_cell_that_imports_its_library():
    texts = ("import os", "def f(x):\n    return x", "import torch\nimport sys", "import csv", "torch.rand(2)")
    seeded = f"{texts[2]}\n\ntorch.manual_seed(0);"
    assert _fixed_cells(*texts) == [*texts[:2], seeded, *texts[3:]]


def test_seeds_of_a_notebook_stand_below_the_last_import_that_they_need():
    texts = ("import numpy as np", "import torch\n%matplotlib inline", "torch.rand(2), np.random.rand(2)")
    seeded = f"{texts[1]}\n\nnp.random.seed(0)\ntorch.manual_seed(0);"
    assert _fixed_cells(*texts) == [texts[0], seeded, texts[2]]


def test_seed_of_a_notebook_stands_above_what_draws_before_its_library_is_imported():
    texts = ("import numpy as np", "np.random.rand(2)", "import torch", "torch.rand(2)")
    first, *rest = _fixed_cells(*texts)
    assert first == "import numpy as np\nimport torch\n\nnp.random.seed(0)\ntorch.manual_seed(0);"
    assert rest == list(texts[1:])


DRAWS = "import torch\n\n\ndef made():\n    return torch.rand(3)\n"


def test_import_that_the_seeds_of_a_notebook_need_stands_in_their_cell():
    Path("net.py").write_text(DRAWS)
    path = "import sys\nsys.path.append('.')\n\n"
    imports = "import numpy as np\nfrom net import made"
    first, second = _fixed_cells("from os import sep\nsep", f"{path}{imports}\nnp.random.rand(3), made()")
    assert first == "from os import sep\nsep"
    assert second.startswith(path + imports.replace("as np\n", "as np\nimport torch\n"))
    assert "\n\nnp.random.seed(0)\ntorch.manual_seed(0)\n" in second


def test_import_goes_among_those_of_other_packages():
    Path("net.py").write_text(DRAWS)
    path = "import sys\n\nsys.path.append('.')\n\n"
    text = f"{path}import numpy as np\n\nfrom net import made\n\nprint(np.ones(3), made())\n"
    Path("main.py").write_text(text)
    assert run("--select", "TDL101", "--fix", "main.py") == 0
    seeded = text.replace("as np\n", "as np\nimport torch\n").replace("\nprint", "\ntorch.manual_seed(0)\n\nprint")
    assert Path("main.py").read_text() == seeded


def test_seed_that_is_commented_out_at_the_end_of_a_cell_stays():
    """`torch.manual_seed` returns the generator, which a notebook would print."""
    assert _fixed_cells("import torch\n# torch.manual_seed(1)", "torch.rand(2)")[0].startswith("import torch\n\n")
    assert _fixed_cells("import torch\n# torch.manual_seed(1)\nx = 1", "torch.rand(2)")[0].endswith(
        "\ntorch.manual_seed(1)\nx = 1"
    )


def test_file_that_changes_while_it_is_fixed_is_left_alone(monkeypatch, capsys):
    Path("a.py").write_text(LOADER)
    write = repair.write

    def meanwhile(changes):
        Path("a.py").write_text(LOADER + "# mine\n")
        return write(changes)

    monkeypatch.setattr(repair, "write", meanwhile)
    assert run("--fix", "a.py") == 2
    assert capsys.readouterr().err.endswith("a.py: not written: the file changed while it was being linted\n")
    assert Path("a.py").read_text() == LOADER + "# mine\n"


NOISE = """\
import torch

def main():
    model = torch.nn.Linear(4, 1)
    data = torch.randn(16, 4)
    for _ in range(3):
        loss = model(data).square().mean()
        model.zero_grad()
        loss.backward()
        for weight in model.parameters():  # an optimizer imports for seconds
            weight.data -= 0.1 * weight.grad
    print(loss.item())

if __name__ == "__main__": main()
"""
SHUFFLED = """\
# A data set that draws in its workers.
import random
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.tensor([index + random.random(), np.random.rand()])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return torch.nn.functional.dropout(self.layer(x.float()), training=self.training)


def main():
    torch.manual_seed(time.time_ns() % 2**31)
    loader = DataLoader(
        Crops(),
        batch_size=3,
        shuffle=True,
        num_workers=1,  # two are enough for a larger one
    )
    net = Net()
    for batch in loader:
        print(net(batch).sum().item())


if __name__ == "__main__":
    main()
"""
NUMBERS = """\
import numpy as np
import random
from torch.utils.data import random_split
import torch

rng = np.random.default_rng()
order = list(range(20))
random.shuffle(order)
left, right = random_split(order, [10, 10])
names = "ada bob cyd dan eve fay gil".split()
index = {name: number for number, name in enumerate(set(str(name) for name in names))}
print(rng.normal(), order[:4], list(left), index["ada"], index["gil"])
print(np.random.permutation(9), torch.empty(3).uniform_())
"""
PROGRAMS = {"noise": NOISE, "shuffled": SHUFFLED, "draws": NUMBERS}
# torch is imported once for all the programs of a run; each of them is a process of its own.
RUNNER = """\
import os, runpy, sys
import torch, numpy
for name in sys.argv[1:]:
    print(f"== {name}", flush=True)
    child = os.fork()
    if child == 0:
        runpy.run_path(name, run_name="__main__")
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="starts the programs by forking")
def test_fixed_programs_repeat_themselves():
    """Two runs of every original print different numbers, two of the fixed program the same."""
    for name, text in PROGRAMS.items():
        Path(f"{name}.py").write_text(text)
        Path(f"{name}_fixed.py").write_text(text)
        assert main(["--isolated", "--no-cache", "--fix", "--unsafe-fixes", "--quiet", f"{name}_fixed.py"]) == 0
    names = sorted(str(path) for path in Path().glob("*.py"))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", RUNNER, *names],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    first, second = (dict(_sections(process.communicate(timeout=240)[0])) for process in runs)
    assert [process.returncode for process in runs] == [0, 0]
    assert first.keys() == second.keys() == set(names)
    for name in PROGRAMS:
        assert first[f"{name}.py"] != second[f"{name}.py"]
        assert first[f"{name}_fixed.py"] == second[f"{name}_fixed.py"]
        assert len(first[f"{name}_fixed.py"].splitlines()) == len(first[f"{name}.py"].splitlines())


def _sections(output: str) -> Iterator[tuple[str, str]]:
    for section in output.split("== ")[1:]:
        name, _, text = section.partition("\n")
        yield name, text


@pytest.mark.parametrize(
    ("first", "refused"),
    [
        ("%%time\ndef f():\n    pass", ""),
        ("\n%%time\ndef f():\n    pass", "cell 1 of the notebook"),
        ("%%bash\nls", "cell 1 of the notebook"),
    ],
)
def test_nothing_goes_above_what_a_cell_begins_with_by_magic(first, refused, capsys):
    """`%%time` in the second row is an error in IPython, and what stands in a cell of bash is run by bash."""
    rest = ["def g():\n    pass", "from torch.nn import Linear\nprint(Linear(3, 3))"]
    cells = [{"cell_type": "code", "source": text, "metadata": {}, "outputs": []} for text in (first, *rest)]
    Path("n.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert run("--fix", "n.ipynb", "--min-severity", "note") == bool(refused)
    fixed = [cell["source"] for cell in json.loads(Path("n.ipynb").read_text())["cells"]]
    assert fixed[0].startswith(first if refused else "%%time\n\nimport torch\n"), fixed[0]
    assert (fixed == [first, *rest]) is bool(refused)
    assert f"No fix: {refused}" in capsys.readouterr().out or not refused


@pytest.mark.parametrize("line", ["torch.manual_seed(3); main()", "torch.manual_seed(3) if main else main()"])
def test_no_seed_goes_below_a_line_that_draws_too(line, capsys):
    text = f"import numpy as np\nimport torch\n\n\ndef main():\n    return np.random.rand()\n\n\n{line}\n"
    Path("a.py").write_text(text)
    assert run("--fix", "a.py", "--min-severity", "note") == 1
    assert Path("a.py").read_text() == text
    assert "the seed of line 9 is not a statement by itself" in capsys.readouterr().out


NOT_PYTHON = "foo bar\n\ntorch.manual_seed(0)\n\nfoo baz"


@pytest.mark.parametrize(
    ("cells", "fixed"),
    [
        (["foo bar", "y = x.normal_()"], ["foo bar", "import torch\n\ntorch.manual_seed(0)\n\ny = x.normal_()"]),
        ([NOT_PYTHON, "y = x.normal_()"], [NOT_PYTHON, "import torch\n\ntorch.manual_seed(0)\n\ny = x.normal_()"]),
        (
            ["import torch", NOT_PYTHON, "print(torch.rand(3))"],
            ["import torch\n\ntorch.manual_seed(0);", NOT_PYTHON, "print(torch.rand(3))"],
        ),
        (
            ["import torch", "foo bar", "# torch.manual_seed(0)\nprint(torch.rand(3))"],
            ["import torch", "foo bar", "torch.manual_seed(0)\nprint(torch.rand(3))"],
        ),
    ],
)
def test_a_cell_that_is_not_python_stays_as_it_is(cells, fixed):
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in cells]
    Path("a.ipynb").write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert run("--select", "TDL101", "--fix", "a.ipynb") == 0
    assert [cell["source"] for cell in json.loads(Path("a.ipynb").read_text())["cells"]] == fixed


@pytest.mark.parametrize("test", ["seed", "numpy", "not seed is None and numpy"])
@pytest.mark.parametrize("here", [True, False])
def test_a_function_that_seeds_nothing_when_it_is_given_the_seed_is_not_called(test, here):
    function = f"def set_seed(seed=None, numpy=False):\n    if {test}:\n        np.random.seed(seed)\n"
    head = "import numpy as np\n\n"
    Path("seeding.py").write_text(f"{head}\n{function}")
    Path("a.py").write_text(
        f"{head}{function if here else 'import seeding'}\n\nif __name__ == '__main__':\n    print(np.random.rand())\n"
    )
    assert run("--select", "TDL102", "--fix", ".") == 0
    assert Path("a.py").read_text().endswith("\n    np.random.seed(0)\n    print(np.random.rand())\n")


def test_a_function_that_seeds_with_the_number_is_called():
    function = "def set_seed(seed=None):\n    if seed:\n        np.random.seed(seed)\n"
    Path("a.py").write_text(
        f"import numpy as np\n\n\n{function}\n\nif __name__ == '__main__':\n    print(np.random.rand())\n"
    )
    assert run("--select", "TDL102", "--seed", "7", "--fix", ".") == 0
    assert Path("a.py").read_text().endswith("\n    set_seed(7)\n    print(np.random.rand())\n")


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ('["import torch\\nimport os"]', '["import torch\\nimport os\\n\\ntorch.manual_seed(0);"]'),
        (
            '[\n    "import torch"\n   ]',
            '[\n    "import torch\\n",\n    "\\n",\n    "torch.manual_seed(0);"\n   ]',
        ),
        (
            '[\n     "import torch\\n",\n     "import os"\n   ]',
            '[\n     "import torch\\n",\n     "import os\\n",\n     "\\n",\n     "torch.manual_seed(0);"\n   ]',
        ),
        ('["import torch"]', '["import torch\\n", "\\n", "torch.manual_seed(0);"]'),
        ('"import torch"', '"import torch\\n\\ntorch.manual_seed(0);"'),
    ],
)
def test_a_cell_keeps_its_spelling(source, written):
    """A text for each line, as Jupyter writes them, all lines in one, as sphinx-gallery does, and the indentation."""
    cell = '{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": null, "source": SOURCE}'
    second = cell.replace("SOURCE", '"print(torch.rand(3))"')
    whole = f'{{"cells": [{cell}, {second}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}\n'
    Path("a.ipynb").write_text(whole.replace("SOURCE", source))
    assert run("--select", "TDL101", "--fix", "a.ipynb") == 0
    assert Path("a.ipynb").read_text() == whole.replace("SOURCE", written)
