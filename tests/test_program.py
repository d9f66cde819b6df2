"""The project half on disk: what is read, how long chains may be, what single files left open, notebooks, the cache."""

from __future__ import annotations

import json
import textwrap
from collections import Counter

import pytest

from torchdet_lint.api import lint_source
from torchdet_lint.catalogue import loading
from torchdet_lint.cli.main import main
from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.engine.program_run import ProgramRun


def lint(folder, *names, **options):
    settings = Settings(root=str(folder), jobs=1, **options)
    result = run.run([str(folder / name) for name in names] or [str(folder)], settings)
    assert result.errors == ()
    return result.findings


def codes(findings):
    return [(finding.code, finding.location.row) for finding in findings]


GUARD = "if __name__ == '__main__':\n"
HANDLED = "    try:\n        print(tasks)\n    except ValueError as shuffle:\n        shuffle()\n"


def test_a_chain_of_calls_may_be_long(project):
    files = {"m0_DOT_py": "import random\n\ndef run0():\n    return random.random()\n"}
    for number in range(1, 400):
        files[f"m{number}_DOT_py"] = (
            f"import m{number - 1}\n\ndef run{number}():\n    m{number - 1}.run{number - 1}()\n"
        )
    folder = project(main_DOT_py="from m399 import run399\n\n" + GUARD + "    run399()\n", **files)
    (finding,) = lint(folder)
    assert (finding.code, finding.location.row) == ("TDL103", 4)
    assert finding.related[0].filename.endswith("m0.py")
    assert finding.related[0].location.row == 4


def test_classes_that_a_configuration_gives_to_each_other_come_to_an_end(project):
    """`config.kind` may be any class of the file, and each of them calls `config.kind` with what it was given."""
    part = "class Part{0}:\n    def __init__(self, config: Config):\n        self.part = config.kind(config)\n\n"
    last = "class Last:\n    def __init__(self, config: Config):\n        self.weight = torch.rand(3)\n"
    config = (
        "class Config:\n    def __init__(self, name):\n        self.name = name\n\n    @property\n    def kind(self):\n"
        "        import lit.parts\n\n        return getattr(lit.parts, self.name)\n"
    )
    main = (
        "from lit.parts import Part0\nfrom lit.settings import Config\n\ndef main(name):\n    config = Config(name)\n"
    )
    folder = project(main_DOT_py=f"{main}    Part0(config)\n\n{GUARD}    main(input())\n")
    (folder / "lit").mkdir()
    (folder / "lit/__init__.py").write_text("")
    (folder / "lit/settings.py").write_text(config)
    parts = "".join(part.format(number) for number in range(9))
    (folder / "lit/parts.py").write_text(f"import torch\nfrom lit.settings import Config\n\n{parts}{last}")
    assert codes(lint(folder)) == [("TDL101", 9)]


DRAWS = "    return {} if n else random.random()\n"
CIRCLES = {
    "two files": {
        "a": "import b\n\ndef go(n):\n    return b.go(n)\n",
        "b": "import a, random\n\ndef go(n):\n" + DRAWS.format("a.go(n - 1)"),
    },
    "itself": {"a": "from a import go\nimport random\n\ndef go(n):\n" + DRAWS.format("go(n - 1)")},
    "classes": {
        "a": "from b import Base\n\nclass A(Base):\n  def step(self, n):\n    return super().step(n)\n"
        "\ndef go(n):\n    return A().step(n)\n",
        "b": "import random\n\nclass Base:\n  def step(self, n):\n    from a import go\n" + DRAWS.format("go(n - 1)"),
    },
    "stars": {
        "a": "from b import *\nfrom b import one as go\n",
        "b": "from a import *\nimport random\n\ndef one(n):\n    return two(n)\n\ndef two(n):\n"
        + DRAWS.format("one(n - 1)"),
    },
    "handed on": {
        "a": "import random\n\ndef deep(f, n):\n"
        + DRAWS.format("f(deep, n - 1)")
        + "\ndef go(n):\n    deep(deep, n)\n",
    },
}


@pytest.mark.parametrize("files", CIRCLES.values(), ids=CIRCLES)
def test_circles_of_imports_and_calls_come_to_an_end(files, project):
    sources = {f"{name}_DOT_py": text for name, text in files.items()}
    folder = project(main_DOT_py="import a\n\n" + GUARD + "    a.go(3)\n", **sources)
    assert codes(lint(folder)) == [("TDL103", 4)]


def test_a_function_is_looked_at_once_however_many_ways_lead_to_it(project, monkeypatch):
    """Each level calls the next twice: the ways double, the work does not."""
    from torchdet_lint.program.transfer import transfer as half

    looked = []
    run = half.Transfer.run
    monkeypatch.setattr(half.Transfer, "run", lambda self: looked.append(self.node) or run(self))
    levels = "".join(f"def f{n}():\n    f{n + 1}()\n    f{n + 1}()\n\n" for n in range(300))
    folder = project(main_DOT_py=f"import random\n\n{levels}def f300():\n    random.random()\n\n{GUARD}    f0()\n")
    (finding,) = lint(folder)
    assert finding.code == "TDL103"
    assert len(looked) == len(set(looked)) == 302


def test_a_file_is_read_once_however_many_there_are(project, monkeypatch):
    names = [f"m{number}" for number in range(200)]
    files = {f"{name}_DOT_py": f"import random\n\ndef run_{name}():\n    return random.random()\n" for name in names}
    read: Counter[str] = Counter()
    known = ProgramRun.text

    def text(self, path):
        read[path] += 1
        return known(self, path)

    monkeypatch.setattr(ProgramRun, "text", text)
    calls = "".join(f"from {name} import run_{name}\n" for name in names)
    folder = project(
        main_DOT_py=calls + GUARD + "".join(f"    run_{name}()\n" for name in names),
        other_DOT_py=calls + GUARD + "".join(f"    print(run_{name}())\n" for name in names),
        **files,
    )
    assert {one.code for one in lint(folder)} == {"TDL103"}
    assert max(read.values()) == 1


@pytest.mark.parametrize(
    "passing",
    ["    for one in [shuffle() for shuffle in tasks]:\n        print(one)\n", HANDLED],
    ids=["loop", "handler"],
)
def test_what_a_comprehension_or_a_handler_names_comes_from_no_other_file(passing, project):
    helpers = "import random\n\ndef shuffle():\n    return random.random()\n"
    main = f"from helpers import *\n\ndef main(tasks):\n{passing}\n{GUARD}    main(input())\n"
    assert lint(project(helpers_DOT_py=helpers, main_DOT_py=main)) == ()


def test_linting_one_file_reads_what_it_imports_and_no_more(project, monkeypatch):
    from torchdet_lint.engine import program_run

    folder = project(
        main_DOT_py="import used\n\n" + GUARD + "    used.run()\n",
        used_DOT_py="import random\n\ndef run():\n    random.random()\n",
        unused_DOT_py="import random\nrandom.random()\n",
    )
    seen = []
    read = program_run.read
    monkeypatch.setattr(program_run, "read", lambda path: seen.append(path.rpartition("/")[2]) or read(path))
    assert codes(lint(folder, "main.py")) == [("TDL103", 4)]
    assert set(seen) == {"main.py", "used.py"}


LOADER = """
import torch
from torch.utils.data import DataLoader

def load(data):
    return DataLoader(data, shuffle=True)
"""


@pytest.mark.parametrize(
    ("seed", "severity", "words"),
    [("torch.manual_seed(0)", "warning", "torch is seeded"), ("pass", "error", "every run differs")],
)
def test_a_shuffling_loader_is_as_bad_as_its_programs(project, seed, severity, words):
    main = f"import torch\nfrom data import load\n\n{GUARD}    {seed}\n    list(load(range(3)))\n"
    findings = lint(project(main_DOT_py=main, data_DOT_py=LOADER))
    (finding,) = [finding for finding in findings if finding.code == "TDL302"]
    assert finding.severity == severity
    assert words in finding.message


@pytest.mark.parametrize("seed", ["torch.manual_seed(0)", "make_repeatable()", "helper.seed_all(0)"])
def test_a_seed_on_a_branch_of_an_imported_file_counts(seed, project):
    folder = project(
        helper_DOT_py="import torch\n\ndef seed_all(n):\n    torch.manual_seed(n)\n",
        common_DOT_py=f"import os\nimport torch\nimport helper\n\nif 'SEED' in os.environ:\n    {seed}\n",
        main_DOT_py="import torch\nimport common\n\n" + GUARD + "    print(torch.rand(3))\n",
    )
    assert codes(lint(folder, seed_functions=("make_repeatable",))) == []
    (folder / "common.py").write_text("import os\nimport torch\n\nif 'TRY' in os.environ:\n    torch.rand(1)\n")
    assert codes(lint(folder)) == [("TDL101", 2)]
    (folder / "main.py").write_text("import common\n\n" + GUARD + "    common.run()\n")
    assert codes(lint(folder)) == [("TDL101", 1)]


def test_what_an_imported_file_does_on_a_branch_is_done(project):
    folder = project(
        train_DOT_py="import torch\n\nnet = torch.nn.Linear(3, 3).cuda()\nstep = torch.optim.SGD(net.parameters())\n"
        "if net.weight.is_cuda:\n    net(torch.ones(3, 3).cuda()).sum().backward()\n    step.step()\n",
        tune_DOT_py="import torch\nimport train\n\n" + GUARD + "    torch.manual_seed(0)\n    print(train.net)\n",
    )
    assert ("TDL203", 2) in codes(lint(folder))
    (folder / "train.py").write_text((folder / "train.py").read_text().replace("    step.step()\n", ""))
    assert [one for one in lint(folder) if one.code == "TDL203"] == []


def test_a_file_that_only_calls_something_at_top_level_may_be_imported(project):
    folder = project(data_DOT_py="import logging\n" + LOADER + "\n\nlogger = logging.getLogger(__name__)\n")
    (finding,) = lint(folder)
    assert (finding.code, finding.severity) == ("TDL302", "warning")
    assert "every run differs" not in finding.message
    (folder / "data.py").write_text(LOADER + "\n\nfor batch in load(range(3)):\n    print(batch)\n")
    assert {(finding.code, finding.severity) for finding in lint(folder)} == {("TDL101", "error"), ("TDL302", "error")}


def test_of_a_loader_that_no_program_evidently_makes_nothing_more_is_said(project):
    main = f"import data\n\n{GUARD}    print(data)\n"
    (finding,) = lint(project(main_DOT_py=main, data_DOT_py=LOADER))
    assert (finding.code, finding.severity) == ("TDL302", "warning")
    assert finding.message.endswith("depends on random calls before it")


def test_a_loader_that_only_a_program_without_a_seed_makes_is_as_bad_as_that(project):
    seeded = f"import torch\nimport data\n\n{GUARD}    torch.manual_seed(0)\n    print(data, torch.rand(3))\n"
    unseeded = f"from data import load\n\n{GUARD}    list(load(range(3)))\n"
    folder = project(show_DOT_py=seeded, main_DOT_py=unseeded, data_DOT_py=LOADER)
    (finding,) = [one for one in lint(folder) if one.code == "TDL302"]
    assert finding.severity == "error"
    assert finding.message.endswith("; a program that runs this line never seeds torch, so every run differs")
    (folder / "show.py").write_text(seeded.replace("print(data", "print(list(data.load([]))"))
    (finding,) = [one for one in lint(folder) if one.code == "TDL302"]
    assert finding.severity == "warning"


MODULE_PICKED = """
def transforms_of(newer):
    if newer:
        import torchvision.transforms.v2

        return torchvision.transforms.v2
    import torchvision.transforms

    return {given}

def images(path):
    T = transforms_of(False)
    return torchvision.datasets.ImageFolder(path, T.Compose([T.RandomResizedCrop(8), T.PILToTensor()]))
"""


@pytest.mark.parametrize(
    ("given", "severity"), [("torchvision.transforms", "error"), ("newer", "warning"), ("make(torchvision)", "warning")]
)
def test_what_workers_draw_is_known_of_a_module_that_a_function_picks(given, severity, project):
    loader = "    list(torch.utils.data.DataLoader(images('a'), num_workers=2))\n"
    text = f"import torch\nimport torchvision\n{MODULE_PICKED.format(given=given)}\n{GUARD}{loader}"
    (finding,) = [one for one in lint(project(main_DOT_py=text)) if one.code == "TDL301"]
    assert finding.severity == severity


@pytest.mark.parametrize("imports", ["from nets import *", "from nets import Net", "from nets import Wider as Net", ""])
def test_a_loader_made_before_a_constructor_seeds_torch_gets_no_generator_of_torchs_seed(imports, project):
    net = "class Net:\n    def __init__(self):\n        self.create()\n\n    def create(self):\n        "
    net += "torch.manual_seed(42)\n        self.model = torch.nn.Linear(2, 1)\n\n\nclass Wider(Net):\n    pass\n\n\n"
    here = "" if imports else net
    main = "import torch\nfrom torch.utils.data import DataLoader\n\n" + f"{imports}\n\n{here}{GUARD}"
    main += "    loader = DataLoader(torch.zeros(9, 2), shuffle=True)\n    net = Net()\n"
    main += "    print([net.model(batch) for batch in loader])\n"
    (finding,) = lint(project(main_DOT_py=main, nets_DOT_py=f"import torch\n\n{net}"))
    assert (finding.code, finding.severity, finding.fix) == ("TDL302", "warning", None)


@pytest.mark.parametrize(("guarded", "severity"), [(True, "warning"), (False, "error")])
def test_a_program_that_imports_a_file_does_not_run_its_main_guard(guarded, severity, project):
    loader = "DataLoader(range(8), shuffle=True)"
    top = "" if guarded else f"batches = {loader}\n"
    own = f"    torch.manual_seed(0)\n    torch.save(list({loader if guarded else 'batches'}), 'a.pt')\n"
    data = f"import torch\nfrom torch.utils.data import DataLoader\n\n{top}\ndef load():\n    return []\n\n{GUARD}{own}"
    main = f"import torch\nfrom data import load\n\n{GUARD}    print(load(), torch.rand(3))\n"
    folder = project(main_DOT_py=main, data_DOT_py=data)
    assert [one.severity for one in lint(folder) if one.code == "TDL302"] == [severity]


def test_a_data_set_in_a_module_called_like_a_library_is_in_sight(project):
    data = (
        "from torch.utils.data import Dataset\n\nclass Images(Dataset):\n    def __init__(self, transform=None):\n"
        "        self.transform = transform\n    def __getitem__(self, index):\n        return self.transform(index)\n"
    )
    main = (
        "import torch\nfrom torchvision import transforms\nfrom datasets import *\n\n"
        f"{GUARD}    torch.manual_seed(0)\n    steps = [transforms.ToTensor()]\n"
        "    steps = [transforms.Resize(8)] + steps + [transforms.Grayscale()] if steps else steps\n"
        "    print(list(torch.utils.data.DataLoader(Images(transforms.Compose(steps)), num_workers=2)))\n"
    )
    found = lint(project(main_DOT_py=main, datasets_DOT_py=data), min_severity="note")
    assert [(one.code, one.severity) for one in found] == [("TDL301", "note")]


@pytest.mark.parametrize(
    ("made", "codes"),
    [
        ("MODELS.build({})", ["TDL101"]),
        ("DATASETS.build({})", ["TDL103"]),
        ("build_model({})", ["TDL101"]),
        ("build_all({})", ["TDL101", "TDL103"]),
        ("Config.fromfile({})", []),
    ],
)
def test_a_library_makes_what_the_project_registers_there(made, codes, project):
    parts = (
        "import random\nimport torch\nfrom mmengine.registry import DATASETS, MODELS\n\n"
        "@MODELS.register_module()\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.layer = torch.nn.Linear(2, 2)\n\n"
        "@DATASETS.register_module()\nclass Rows:\n    def __init__(self):\n        self.shift = random.random()\n"
    )
    main = (
        "import parts\nimport torch\nfrom mmengine import Config\nfrom mmengine.registry import DATASETS, MODELS\n"
        f"from mmcls.models import build_all, build_model\n\n{GUARD}    torch.save({made}, 'made')\n"
    )
    found = lint(project(main_DOT_py=main, parts_DOT_py=parts))
    assert [one.code for one in found if one.code in ("TDL101", "TDL103")] == codes


@pytest.mark.parametrize(
    ("takes", "keeps", "row"),
    [
        ("rows", "rows", "self.kept[index]"),
        ("rows, *more", "rows", "self.kept[index]"),
        ("rows, *more, **options", "rows", "self.kept[index]"),
        ("*more", "more", "self.kept[0][index]"),
        ("*more, **options", "more", "self.kept[0][index]"),
    ],
)
@pytest.mark.parametrize(("change", "codes"), [("random.random()", ["TDL103"]), ("1", [])])
def test_rows_of_a_data_set_that_another_one_keeps_run(takes, keeps, row, change, codes, project):
    main = (
        "import random\nimport torch\nfrom torch.utils.data import Dataset\n\n"
        f"class Change:\n    def __call__(self, row):\n        return row * {change}\n\n"
        "class Rows(Dataset):\n    def __init__(self, change):\n        self.change = change\n\n"
        "    def __getitem__(self, index):\n        return self.change(index)\n\n"
        f"class Kept(Dataset):\n    def __init__(self, {takes}):\n        self.kept = {keeps}\n\n"
        f"    def __getitem__(self, index):\n        return {row}\n\n"
        f"{GUARD}    torch.save(Kept(Rows(Change()))[0], 'row')\n"
    )
    assert [one.code for one in lint(project(main_DOT_py=main)) if one.code == "TDL103"] == codes


@pytest.mark.parametrize(("mode", "severity"), [("plain", "note"), ("other", "warning")])
def test_what_an_attribute_holds_that_only_another_mode_gives_does_not_run_in_workers(mode, severity, project):
    text = (
        "import torch\nfrom elsewhere import change\nfrom torch.utils.data import DataLoader, Dataset\n\n"
        "class Rows(Dataset):\n    def __init__(self, mode):\n        self.mode = mode\n"
        '        if mode == "other":\n            self.change = change\n\n    def __len__(self):\n        return 8\n\n'
        "    def __getitem__(self, index):\n        return self.change(index) if self.changes else index\n\n"
        f'{GUARD}    torch.manual_seed(0)\n    print(list(DataLoader(Rows("{mode}"), num_workers=2)))\n'
    )
    (finding,) = [one for one in lint(project(train_DOT_py=text), min_severity="note") if one.code == "TDL301"]
    assert finding.severity == severity


@pytest.mark.parametrize("drawn", ["torch.rand(3)", "torch.empty(3).uniform_()", "self.rows.clone().normal_()"])
def test_workers_of_a_program_without_a_seed_draw_other_numbers_in_every_run(drawn, project):
    loader = (
        "import torch\nfrom torch.utils.data import DataLoader, Dataset\n\nclass Noise(Dataset):\n"
        f"    def __len__(self):\n        return 8\n    def __getitem__(self, index):\n        return {drawn}\n\n"
        "def load():\n    return DataLoader(Noise(), num_workers=2)\n"
    )
    main = f"from data import load\n\n{GUARD}    list(load())\n"
    (finding,) = [one for one in lint(project(main_DOT_py=main, data_DOT_py=loader)) if one.code == "TDL301"]
    assert finding.severity == "error"
    assert finding.message.endswith("seeds torch, so the workers' random numbers differ in every run")


@pytest.mark.parametrize(
    ("generator", "severity"),
    [
        ("torch.Generator().manual_seed(42)", "note"),
        ("torch.Generator()", "note"),
        ("made", "note"),
        ("None", "error"),
        ("torch.default_generator", "error"),
        ("torch.Generator().manual_seed(torch.initial_seed())", "error"),
    ],
)
@pytest.mark.parametrize("drawn", ["torch.rand(3)", "np.random.rand(3)", "random.random()"])
def test_a_loaders_own_generator_seeds_its_workers(drawn, generator, severity, project):
    main = (
        "import random\nimport numpy as np\nimport torch\nfrom torch.utils.data import DataLoader, Dataset\n\n"
        "class Noise(Dataset):\n    def __len__(self):\n        return 8\n\n"
        f"    def __getitem__(self, index):\n        return {drawn}\n\n"
        f"{GUARD}    made = torch.Generator()\n    made.manual_seed(7)\n"
        f"    for row in DataLoader(Noise(), num_workers=2, generator={generator}):\n        print(row)\n"
    )
    found = lint(project(main_DOT_py=main), min_severity="note")
    (finding,) = [one for one in found if one.code == "TDL301"]
    assert finding.severity == severity
    assert ("differ in every run" in finding.message) is (severity == "error")
    seeds = [one.code for one in found if one.code in ("TDL101", "TDL102", "TDL103")]
    assert seeds == ([] if severity == "note" else ["TDL101"])


def test_before_1_9_no_generator_seeds_numpy_in_workers(project):
    main = (
        "import numpy as np\nimport torch\nfrom torch.utils.data import DataLoader, Dataset\n\n"
        "class Noise(Dataset):\n    def __len__(self):\n        return 8\n\n"
        "    def __getitem__(self, index):\n        return np.random.rand(3)\n\n"
        f"{GUARD}    for row in DataLoader(Noise(), num_workers=2, generator=torch.Generator()):\n        print(row)\n"
    )
    found = lint(project(main_DOT_py=main), torch=(1, 8))
    assert [(one.code, one.severity) for one in found if one.code == "TDL301"] == [("TDL301", "error")]


@pytest.mark.parametrize(
    ("torch", "seed", "options", "found"),
    [
        ((1, 8), "torch.manual_seed(0)", "num_workers=2", ["TDL102"]),
        ((1, 8), "torch.manual_seed(0)", "num_workers=2, generator=torch.Generator()", ["TDL102"]),
        ((1, 8), "torch.manual_seed(0)", "num_workers=2, worker_init_fn=start", []),
        ((1, 8), "np.random.seed(0)", "num_workers=2", []),
        ((1, 9), "torch.manual_seed(0)", "num_workers=2", []),
        ((1, 9), "torch.manual_seed(0)", "num_workers=0", ["TDL102"]),
    ],
)
def test_before_1_9_workers_draw_from_copies_of_the_programs_generator_of_numpy(torch, seed, options, found, project):
    main = (
        "import numpy as np\nimport torch\nfrom torch.utils.data import DataLoader, Dataset\n\n"
        "class Noise(Dataset):\n    def __len__(self):\n        return 8\n\n"
        "    def __getitem__(self, index):\n        return np.random.rand(3)\n\n"
        "def start(number):\n    np.random.seed(number)\n\n"
        f"{GUARD}    {seed}\n    for row in DataLoader(Noise(), {options}):\n        print(row)\n"
    )
    codes = [one.code for one in lint(project(main_DOT_py=main), torch=torch)]
    assert [code for code in codes if code in ("TDL101", "TDL102")] == found


@pytest.mark.parametrize(
    ("below", "severity"),
    [
        ("for row in loader:\n    print(row)\n", "error"),
        ("def main():\n    for row in loader:\n        print(row)\n\nmain()\n", "error"),
        ("rows = iter(loader)\n", "error"),
        ("rows = loader\n", "note"),
    ],
)
def test_a_file_without_a_guard_that_only_loops_over_a_loader_is_a_program(below, severity, tmp_path):
    """One that only makes it may be there for files that were not linted, which may seed torch."""
    text = (
        "import random\nfrom torch.utils.data import DataLoader, Dataset\n\nclass Noise(Dataset):\n"
        "    def __len__(self):\n        return 8\n\n    def __getitem__(self, at):\n        return random.random()\n"
        f"\n\nloader = DataLoader(Noise(), num_workers=2)\n{below}"
    )
    (tmp_path / "rows.py").write_text(text)
    (finding,) = [one for one in lint(tmp_path, min_severity="note") if one.code == "TDL301"]
    assert finding.severity == severity


@pytest.mark.parametrize(("train", "told"), [("True", ["error"]), ("False", [])])
def test_workers_draw_nothing_where_the_constants_of_a_call_rule_it_out(project, train, told):
    main = (
        "import random\nfrom torch.utils.data import DataLoader, Dataset\n\n"
        "def read(path, train=True):\n    if train:\n        path = random.random()\n    return path\n\n"
        "class Data(Dataset):\n    def __len__(self):\n        return 8\n    def __getitem__(self, index):\n"
        f"        return read(index, train={train})\n\n{GUARD}    print(list(DataLoader(Data(), num_workers=2)))\n"
    )
    assert [one.severity for one in lint(project(main_DOT_py=main)) if one.code == "TDL301"] == told


OP = "import torch\n\ndef add(x: torch.Tensor, i, y):\n    return x.index_add_(0, i, y)\n"


def test_deterministic_mode_covers_what_only_it_reaches(project):
    on = "import torch\nfrom op import add\n\ntorch.use_deterministic_algorithms(True)\nprint(add)\n"
    folder = project(op_DOT_py=OP, on_DOT_py=on)
    assert codes(lint(folder)) == []
    (folder / "off.py").write_text("from op import add\n\nprint(add)\n")
    assert codes(lint(folder)) == [("TDL402", 4)]


def test_an_op_that_raises_says_so_where_the_mode_is_on(project):
    op = "import torch\n\ndef count(x: torch.Tensor, w: torch.Tensor):\n    return torch.bincount(x, weights=w)\n"
    on = "import torch\nfrom op import count\n\ntorch.use_deterministic_algorithms(True)\nprint(count)\n"
    (finding,) = lint(project(op_DOT_py=op, on_DOT_py=on))
    assert finding.code == "TDL401"
    assert "it will raise" in finding.message


def test_a_notebook_is_one_program(project):
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# words"]},
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": 1,
            "source": ["%run x.py\n", "import torch"],
        },
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": 2,
            "source": ["\n", "def draw():\n", "    return torch.rand(2)"],
        },
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 3, "source": ["x = draw()"]},
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (finding,) = lint(project(work_DOT_ipynb=json.dumps(notebook)))
    assert (finding.code, finding.cell, finding.location.row) == ("TDL101", 4, 1)
    assert "`torch.rand` (cell 3, line 3) uses" in finding.message
    assert finding.related[0].location.row == 3


def test_the_configuration_names_entry_points_and_seeding_functions(project):
    library = "import torch\nfrom laboratory import ready\n\nready()\nx = torch.rand(2)\n"
    folder = project(test_library_DOT_py=library)
    assert codes(lint(folder)) == []
    assert codes(lint(folder, entry_points=("test_library.py",))) == [("TDL101", 5)]
    assert codes(lint(folder, entry_points=("test_library.py",), seed_functions=("ready",))) == []


@pytest.mark.parametrize(
    ("told", "seeded"),
    [
        ("lab.common.ready", True),
        ("common.ready", True),
        ("lab.ready", True),
        ("other.ready", False),
        ("n.ready", False),
    ],
)
def test_a_seeding_function_of_the_project_goes_by_the_name_of_its_module(told, seeded, project):
    folder = project(main_DOT_py="import torch\nfrom lab import ready\n\nready()\ntorch.save(torch.rand(2), 'a.pt')\n")
    (folder / "lab").mkdir()
    (folder / "lab" / "__init__.py").write_text("from lab.common import ready\n")
    (folder / "lab" / "common.py").write_text("def ready():\n    print('ready')\n")
    assert codes(lint(folder, seed_functions=(told,))) == ([] if seeded else [("TDL101", 5)])


def test_warm_is_cold_and_a_changed_import_is_seen(project, tmp_path):
    folder = project(
        main_DOT_py="import used\n\n" + GUARD + "    used.run()\n",
        used_DOT_py="import random\n\ndef run():\n    random.random()\n",
    )
    cache = str(tmp_path / "cache")
    cold = lint(folder, "main.py", cache_dir=cache)
    assert lint(folder, "main.py", cache_dir=cache) == cold
    assert codes(cold) == [("TDL103", 4)]
    (folder / "used.py").write_text("def run():\n    pass\n")
    assert codes(lint(folder, "main.py", cache_dir=cache)) == []


# The switch that convolutions alone read.
CUDNN = "\n    torch.backends.cudnn.deterministic = True"
SPARSE = "\n    graph = torch_geometric.transforms.ToSparseTensor()(torch.load('graph'))"


@pytest.mark.parametrize(
    ("start", "draw", "fixed"),
    [
        ("Process(target=work)", "random.random()", False),
        ("Process(target=work)", "np.random.rand()", True),
        ("Process(target=work)", "torch.rand(1)", True),
        ("torch.multiprocessing.spawn(work, nprocs=2)", "torch.rand(1)", False),
        ("torch.multiprocessing.Pool(2).map(work, [1])", "np.random.rand()", False),
        ("work()", "random.random()", True),
    ],
)
def test_a_seed_that_reaches_no_process_is_no_fix(project, start, draw, fixed):
    """Python seeds `random` anew in a forked process, and a spawned one takes no state along."""
    folder = project(
        main_DOT_py="import random\nfrom multiprocessing import Process\n\nimport numpy as np\n"
        f"import torch\n\ndef work(rank=0):\n    print({draw})\n\n{GUARD}    {start}\n"
    )
    (found,) = [one for one in lint(folder) if one.code in ("TDL101", "TDL102", "TDL103")]
    assert (found.fix is not None, "only new processes" in found.help) == (fixed, not fixed)


@pytest.mark.parametrize(
    ("takes", "fix"), [("image", False), ("rank", True), ("rank, image=None", True), ("image, rank", False)]
)
def test_a_task_of_a_pool_is_seeded_only_with_a_number_of_its_own(project, takes, fix):
    folder = project(
        main_DOT_py="from multiprocessing import Pool\n\nimport numpy as np\n\n"
        f"def work({takes}):\n    return np.random.rand()\n\n{GUARD}    np.random.seed(0)\n"
        "    with Pool(4) as pool:\n        print(pool.map(work, range(8)))\n"
    )
    (found,) = [one for one in lint(folder) if one.code == "TDL108"]
    assert (found.fix is not None, "draw the same numbers" in found.help) == (fix, not fix)


@pytest.mark.parametrize(
    ("layer", "settings", "severity", "words"),
    [
        ("nn.Linear(4, 4)", {}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        ("nn.MaxPool2d(2)", {}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        ("nn.Embedding(4, 4)", {}, "error", "without it: 1 × Embedding"),
        ("nn.Embedding(4, 4, _freeze=True)", {}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        ("nn.Embedding.from_pretrained(torch.ones(4, 4))", {}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        (
            "nn.Sequential(nn.Embedding(4, 4), nn.Embedding.from_pretrained(torch.ones(4, 4), freeze=False))",
            {},
            "error",
            "without it: 2 × Embedding",
        ),
        ("nn.Embedding(4, 4)", {"torch": (2, 10)}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        ("nn.Sequential(nn.Embedding(4, 4), nn.Conv1d(4, 4, 3))", {}, "error", "it: 1 × Conv1d, 1 × Embedding"),
        ("torchvision.models.resnet18()", {}, "error", "without it: the convolutions of resnet18"),
        ("timm.models.vgg11(timm.models.layers.Drop())", {}, "error", "without it: the convolutions of vgg11"),
        (
            "nn.Sequential(timm.models.vision_transformer.Mlp(4), timm.models.vision_transformer.PatchEmbed(4))",
            {},
            "error",
            "without it: the convolutions of PatchEmbed",
        ),
        ("timm.models.vision_transformer.Block(4, 2)", {}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        ("timm.create_model('vgg11')", {}, "error", "without it: the convolutions of what timm.create_model makes"),
        (
            "torchvision.models.__dict__[sorted(torchvision.models.__dict__.keys())[0]]()",
            {},
            "error",
            "without it: the convolutions of a model of torchvision.models",
        ),
        ("torch_geometric.nn.GCNConv(4, 4)", {}, "error", "without it: 1 × GCNConv"),
        (
            "torch_geometric.nn.GCNConv(4, 4)",
            {"torch": (1, 12)},
            "error",
            "(True)`; `torch_geometric.nn.GCNConv` (line 10) may raise in that mode",
        ),
        ("torch_geometric.nn.SAGEConv(4, 4, 'max')", {}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        ("torch_geometric.nn.EdgeConv(nn.ReLU(), 'add')", {}, "error", "without it: 1 × EdgeConv"),
        ("torch_geometric.nn.EdgeConv(nn.ReLU())", {}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        ("torch_geometric.nn.ECConv(4, 4, nn.ReLU())", {}, "error", "without it: 1 × ECConv"),
        (f"torch_geometric.nn.GCNConv(4, 4){SPARSE}", {}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        (f"torch_geometric.nn.MessagePassing(){SPARSE}", {}, "error", "without it: 1 × MessagePassing"),
        ("Scatters()", {}, "error", "without it: 1 × scatter_add_"),
        ("nn.Sequential(nn.Conv2d(4, 4, 3), Scatters(), Scatters())", {}, "error", "1 × Conv2d, 1 × scatter_add_"),
        (f"nn.Conv2d(4, 4, 3){CUDNN}", {}, "warning", "`torch.use_deterministic_algorithms(True)`"),
        (f"nn.Sequential(nn.Conv2d(4, 4, 3), nn.Embedding(4, 4)){CUDNN}", {}, "error", "it: 1 × Embedding"),
    ],
)
def test_a_missing_mode_is_as_bad_as_the_ops_that_need_it(project, layer, settings, severity, words):
    folder = project(
        main_DOT_py="import timm, torch, torch_geometric, torchvision\nfrom torch import nn\n\n"
        "class Scatters(nn.Module):\n"
        "    def forward(self, x, index):\n        return x.new_zeros(4).scatter_add_(0, index, x)\n\n"
        f"{GUARD}    torch.manual_seed(0)\n    net = {layer}\n    net.cuda()(torch.ones(4), 0).sum().backward()\n"
        "    torch.optim.SGD(net.parameters(), lr=1).step()\n"
    )
    (finding,) = [one for one in lint(folder, **settings) if one.code == "TDL203"]
    assert finding.severity == severity
    assert finding.message.endswith(words)


def test_the_switch_of_the_convolutions_is_known_by_a_star_too(project):
    folder = project(
        common_DOT_py="import torch\n",
        main_DOT_py="from common import *\nfrom torch import nn\n\n"
        f"{GUARD}    torch.manual_seed(0)\n    net = nn.Conv2d(4, 4, 3){CUDNN}\n"
        "    net.cuda()(torch.ones(4)).sum().backward()\n"
        "    torch.optim.SGD(net.parameters(), lr=1).step()\n",
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert (finding.severity, "Conv2d" in finding.message) == ("warning", False)


OPTIONS = "import argparse, torch, tyro\nfrom dataclasses import dataclass\nfrom torch import nn\n\n"
FIELDS = "@dataclass\nclass Args:\n    lr: float = 0.1\n    fixed: bool = {}\n\n"
PARSED = "parser = argparse.ArgumentParser()\nparser.add_argument('--lr', default=True)\nparser.add_argument({})\n"


@pytest.mark.parametrize(
    ("options", "made", "severity"),
    [
        (FIELDS.format(True), "tyro.cli(Args)", "warning"),
        (FIELDS.format(False), "tyro.cli(Args)", "error"),
        (FIELDS.format(True), "Args()", "warning"),
        (PARSED.format("'--fixed', type=lambda x: bool(int(x)), default=True"), "parser.parse_args()", "warning"),
        (PARSED.format("'--fixed', type=lambda x: bool(int(x)), default=False"), "parser.parse_args()", "error"),
        (PARSED.format("'--fixed', action='store_true'"), "parser.parse_args()", "error"),
        (PARSED.format("'--fixed-lr', default=True"), "parser.parse_args()", "error"),
        ("", "unknown()", "error"),
    ],
)
def test_convolutions_do_not_count_where_an_option_switches_them_by_default(project, options, made, severity):
    folder = project(
        main_DOT_py=f"{OPTIONS}{options}{GUARD}    torch.manual_seed(0)\n    args = {made}\n"
        "    torch.backends.cudnn.deterministic = args.fixed\n    net = nn.Conv2d(4, 4, 3)\n"
        "    net.cuda()(torch.ones(4)).sum().backward()\n    torch.optim.SGD(net.parameters(), lr=1).step()\n"
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert (finding.severity, "Conv2d" in finding.message) == (severity, severity == "error")


def test_what_others_than_names_switch_is_not_looked_up(project):
    folder = project(
        main_DOT_py=f"{OPTIONS}{GUARD}    torch.manual_seed(0)\n    cfg = unknown()\n"
        "    torch.backends.cudnn.deterministic = cfg.cudnn.fixed\n    net = nn.Conv2d(4, 4, 3)\n"
        "    net.cuda()(torch.ones(4)).sum().backward()\n    torch.optim.SGD(net.parameters(), lr=1).step()\n"
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.severity == "error"


@pytest.mark.parametrize(
    ("freezing", "counted"),
    [
        ("self.words.weight.requires_grad = False", 1),
        ("self.words.weight.requires_grad = True", 2),
        ("self.words.requires_grad_(False)", 1),
        ("self.words.requires_grad_()", 2),
        ("self.words.weight = nn.Parameter(weights, requires_grad=False)", 1),
        ("self.words.weight = nn.Parameter(weights)", 2),
        ("for p in self.words.parameters(): p.requires_grad = False", 1),
        ("for p in self.words.parameters(): p.data.zero_(); q.requires_grad = False", 2),
        ("if weights is None: self.words.requires_grad_(False)", 2),
    ],
)
def test_a_frozen_embedding_does_not_count(project, freezing, counted):
    folder = project(
        main_DOT_py="import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def __init__(self, weights, q):\n"
        f"        self.words = nn.Embedding(4, 4)\n        {freezing}\n        self.tags = nn.Embedding(4, 4)\n\n"
        f"{GUARD}    torch.manual_seed(0)\n    net = Net(None, 1)\n    net.cuda()(torch.ones(4)).sum().backward()\n"
        "    torch.optim.SGD(net.parameters(), lr=1).step()\n"
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.endswith(f"without it: {counted} × Embedding")


TRIED_OUT = """
import random
import torch

def draw():
    return random.random()

def _test_draw():
    assert draw() < 1
    for _ in torch.utils.data.DataLoader([1, 2], shuffle=True):
        pass

if __name__ == "__main__":
    _test_draw()
"""

ANOTHER = "import sys\n\ndef another():\n    print(sys.argv[1])\n\n"

BY_NAME = "import importlib\n\ndef model(args):\n    return importlib.import_module"


@pytest.mark.parametrize(
    ("text", "others", "severities"),
    [
        (TRIED_OUT, "from main import draw\n", {"note"}),
        (TRIED_OUT, "", {"error"}),
        (TRIED_OUT.replace("    _test", "    import sys\n    print(sys.argv)\n    _test"), "import main\n", {"error"}),
        (f"{ANOTHER}{TRIED_OUT}", "import main\n", {"note"}),
        (f"{ANOTHER}{TRIED_OUT}    another()\n", "import main\n", {"error"}),
        (f"{ANOTHER}{TRIED_OUT}    # another()\n", "import main\n", {"note"}),
        (f"{ANOTHER}{TRIED_OUT}    globals()[f'an{1}']()\n", "import main\n", {"error"}),
        (f"{ANOTHER}def outer():\n    another()\n{TRIED_OUT}", "import main\n", {"note"}),
        (f"{ANOTHER}def outer():\n    another()\n{TRIED_OUT}    outer()\n", "import main\n", {"error"}),
        (f"{ANOTHER.replace('def', '@registered' + chr(10) + 'def')}{TRIED_OUT}", "import main\n", {"error"}),
        (f"import sys\n\ndef another(first=sys.argv[0]):\n    pass\n{TRIED_OUT}", "import main\n", {"error"}),
        (f"def outer(then=another):\n    pass\n{ANOTHER}{TRIED_OUT}", "import main\n", {"error"}),
        (f"class Run:\n    def __init__(self):\n        self.a = sys.argv[1]\n{TRIED_OUT}", "import main\n", {"error"}),
        (TRIED_OUT.replace("    _test", "    torch.save(1, 'x')\n    _test"), "import main\n", {"error"}),
        (f"{TRIED_OUT}\nclass Net: ...\n", f"{BY_NAME}(args.model)\n", {"note"}),
        (f"{TRIED_OUT}\nclass Net: ...\n", f"{BY_NAME}('json')\n", {"error"}),
        (TRIED_OUT, f"{BY_NAME}(args.model)\n", {"error"}),
        (f"{TRIED_OUT}    scheduler.step()\n", "import main\n", {"note"}),
        (f"{TRIED_OUT}    loss.backward()\n    optimizer.step()\n", "import main\n", {"error"}),
        (
            f"{TRIED_OUT}\nclass Net: ...\n",
            "import hydra\n\ndef model(cfg):\n    hydra.utils.instantiate(cfg)\n",
            {"note"},
        ),
    ],
)
def test_what_only_tries_a_module_out_is_a_note(project, text, others, severities):
    folder = project(main_DOT_py=text, other_DOT_py=others)
    assert {finding.severity for finding in lint(folder, min_severity="note")} == severities


VIEWER = """
import cv2
import numpy as np
import torch

for batch in torch.utils.data.DataLoader([1, 2], shuffle=True):
    print("one of", len(batch), batch.shape)
    cv2.imshow("batch", batch + np.random.rand(3))
    cv2.waitKey()
"""

TRAINS = """
net = torch.nn.Linear(1, 1)
net(batch).sum().backward()
torch.optim.SGD(net.parameters()).step()
"""

CHAT = """
import random

while True:
    said = input()
    print(random.choice(["yes", "no"]))
"""


MEASURES = """
import argparse

import torch
from thop import profile

from nets import Net

parser = argparse.ArgumentParser()
parser.add_argument("--out")
model = Net(torch.nn.Linear(3, 3))
image = torch.rand(1, 3)
print(profile(model, inputs=(image,)), model(image))
torch.onnx.export(model, image, parser.parse_args().out)
"""


@pytest.mark.parametrize(
    ("text", "severities"),
    [
        (MEASURES, {"note"}),
        (MEASURES.replace("profile(model, inputs=(image,)), ", ""), {"note"}),
        (MEASURES.replace("from thop", "from nets").replace("torch.onnx.export(", "print("), {"error"}),
        (MEASURES + "torch.save(model(image), 'a.pt')\n", {"error"}),
        (MEASURES + "solver = Net(torch.optim.SGD(model.parameters(), 0.1))\n", {"error"}),
        (MEASURES + "loader = torch.utils.data.DataLoader([0, 1], shuffle=True)\n", {"error"}),
        (MEASURES + "print(Net(parser).evaluate(model))\n", {"error"}),
        (VIEWER, {"note"}),
        (VIEWER + "print(batch.mean())\n", {"error"}),
        (VIEWER + "cv2.imwrite('a.png', batch)\n", {"error"}),
        (VIEWER + TRAINS, {"error"}),
        (VIEWER.replace('imshow("batch", ', "resize(").replace("cv2.waitKey()", ""), {"error"}),
        (CHAT, {"note"}),
        (CHAT.replace("while True:", "if True:"), {"error"}),
        (CHAT + "open('said').write(said)\n", {"error"}),
        ("import random\nimport streamlit as st\n\nst.write(random.random())\n", {"note"}),
        ("import gradio as gr\nimport random\n\nfirst = random.random()\ngr.Interface(print).launch()\n", {"note"}),
        ("import accelerate\nimport random\n\nfirst = random.random()\naccelerate.launch(print)\n", {"error"}),
    ],
)
def test_what_is_only_looked_at_is_a_note(project, text, severities):
    folder = project(main_DOT_py=text)
    assert {finding.severity for finding in lint(folder, min_severity="note")} == severities


SHUFFLING = "from torch.utils.data import DataLoader\n\ndef loader(d):\n    return DataLoader(d, shuffle=True)\n"


def test_a_loader_that_only_some_programs_seed_is_not_said_to_repeat(project):
    folder = project(
        data_DOT_py=SHUFFLING,
        train_DOT_py="import torch\nfrom data import loader\n\n" + GUARD
        + "    torch.manual_seed(0)\n    print(list(loader([0, 1])))\n",
    )  # fmt: skip
    told = [one.message for one in lint(folder) if one.code == "TDL302"]
    assert [message.endswith("(repeatable today: torch is seeded)") for message in told] == [True]
    (folder / "score.py").write_text("from data import loader\n\n" + GUARD + "    print(list(loader([0, 1])))\n")
    told = [one.message for one in lint(folder) if one.code == "TDL302"]
    assert [message.endswith("(repeatable only in the programs that seed torch)") for message in told] == [True]


def test_a_loader_is_not_said_to_repeat_today_where_the_seed_may_be_a_random_number(project):
    seeds = "    if args.seed is None:\n        args.seed = random.randint(0, 9)\n    torch.manual_seed(args.seed)\n"
    folder = project(
        data_DOT_py=SHUFFLING,
        train_DOT_py="import argparse\nimport random\nimport torch\nfrom data import loader\n\n" + GUARD
        + "    parser = argparse.ArgumentParser()\n    parser.add_argument('--seed', type=int)\n"
        + "    args = parser.parse_args()\n" + seeds + "    print(list(loader([0, 1])))\n",
    )  # fmt: skip
    told = [one.message for one in lint(folder) if one.code == "TDL302"]
    assert [message.endswith("(repeatable with a fixed seed of torch)") for message in told] == [True]


CFG = "from config import cfg"
ARGPARSE = (
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--seed', type=int, DEFAULT)\n"
    "args = parser.parse_args()"
)
NO_DEFAULT = ARGPARSE.replace(", DEFAULT", "")
DEFAULT_NONE, DEFAULT_3 = (ARGPARSE.replace("DEFAULT", f"default={value}") for value in ("None", "3"))
SEEDED = "torch.manual_seed(OPTION)"
YAML = {"configs/a.yaml": "SEED: 5\n"}
WITHIN = "def seed_all(seed):\n    if seed is not None and seed >= 0:\n        torch.manual_seed(seed)\n"


@pytest.mark.parametrize(
    ("settings", "option", "seeds", "others", "today"),
    [
        (CFG, "cfg.SEED", "if OPTION >= 0:\n    SEEDED", {}, False),
        (CFG, "cfg.SEED", "if OPTION < 0:\n    pass\nelse:\n    SEEDED", {}, False),
        (CFG, "cfg.SEED", "if OPTION != -1 and cfg.FAST:\n    SEEDED", {}, False),
        (CFG, "cfg.SEED", "if OPTION >= 0:\n    seed_all(OPTION)", {}, False),
        (DEFAULT_NONE, "args.seed", "if OPTION is not None:\n    seed_all(OPTION)", {}, False),
        (NO_DEFAULT, "args.seed", "if OPTION:\n    seed_all(OPTION)", {}, False),
        (DEFAULT_3, "args.seed", "if OPTION is not None:\n    seed_all(OPTION)", {}, True),
        (ARGPARSE.replace("DEFAULT", "required=True"), "args.seed", "if OPTION:\n    seed_all(OPTION)", {}, True),
        (CFG, "cfg.SEED", "if OPTION >= 0:\n    SEEDED\ntorch.manual_seed(0)", {}, True),
        (CFG, "cfg.SEED", "if OPTION >= 0:\n    seed_all(OPTION)", YAML, True),
        (CFG, "cfg.SEED", "if OPTION < 0:\n    SEEDED", {}, True),
        (CFG, "cfg.OTHER", "if OPTION >= 0:\n    SEEDED", {}, True),
    ],
)  # fmt: skip
def test_a_seed_that_no_option_in_sight_asks_for_is_not_said_to_be_set_today(
    settings, option, seeds, others, today, project
):
    body = "\n".join(
        [*seeds.replace("SEEDED", SEEDED).replace("OPTION", option).split("\n"), "print(list(loader([0, 1])))"]
    )
    folder = project(
        data_DOT_py=SHUFFLING,
        config_DOT_py="class Config(dict):\n    pass\n\ncfg = Config()\ncfg.SEED = -1\n",
        train_DOT_py=f"import torch\nfrom data import loader\n{settings}\n\n{WITHIN}\n{GUARD}"
        + "".join(f"    {line}\n" for line in body.split("\n")),
    )
    for name, text in others.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (told,) = [one.message for one in lint(folder) if one.code == "TDL302"]
    assert told.endswith("(repeatable today: torch is seeded)" if today else "(repeatable with a fixed seed of torch)")


@pytest.mark.parametrize("named", [(), ("train.py", "data.py")])
def test_a_seed_that_another_file_draws_for_an_option_is_not_said_to_repeat_today(project, named):
    folder = project(
        data_DOT_py=SHUFFLING,
        options_DOT_py="import random\n\ndef completed(args):\n    if args.seed is None:\n"
        "        args.seed = random.randint(0, 9)\n    return args\n",
        train_DOT_py="import argparse\nimport torch\nfrom data import loader\nfrom options import completed\n\n" + GUARD
        + "    args = completed(argparse.ArgumentParser().parse_args())\n    torch.manual_seed(args.seed)\n"
        + "    print(list(loader([0, 1])))\n",
    )  # fmt: skip
    found = lint(folder, *named)
    told = [one.message for one in found if one.code == "TDL302"]
    assert [message.endswith("(repeatable with a fixed seed of torch)") for message in told] == [True]


def test_a_loader_that_no_program_makes_in_sight_is_not_said_to_repeat_today(project):
    folder = project(
        data_DOT_py=SHUFFLING,
        train_DOT_py="import torch\nimport data\n\n" + GUARD
        + "    torch.manual_seed(0)\n    print(torch.rand(3), data)\n",
    )  # fmt: skip
    told = [one.message for one in lint(folder) if one.code == "TDL302"]
    assert [message.endswith("(repeatable in the programs that seed torch)") for message in told] == [True]


SCORED = """
import torch
from torch import nn

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3)
        self.table = nn.Embedding(3, 3)

@torch.no_grad()
def score(net, images):
    return Scorer()(net(images))

def shown(net, images):
    with torch.no_grad():
        return nn.Conv2d(3, 3, 3)(net(images))

torch.manual_seed(0)
net = NET
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for images in torch.load("images"):
    net(images.cuda()).sum().backward()
    optimizer.step()
    print(score(net, images), shown(net, images))
"""


@pytest.mark.parametrize(
    ("net", "counted"),
    [("nn.Conv2d(3, 3, 3).cuda()", "1 × Conv2d"), ("nn.Linear(3, 3).cuda()", "2 × Conv2d, 1 × Embedding")],
)
def test_what_is_made_to_score_is_not_counted_beside_what_trains(project, net, counted):
    folder = project(main_DOT_py=SCORED.replace("NET", net))
    assert [one.message.rpartition(": ")[2] for one in lint(folder) if one.code == "TDL203"] == [counted]


RELAYED = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.first = nn.Conv2d(planes, planes, 3)
        self.second = nn.Conv2d(planes, planes, 1)

class Stage(nn.Module):
    def __init__(self, made, planes):
        super().__init__()
        self.layers = self._layers(planes, make=made)

    def _layers(self, planes, make):
        return nn.Sequential(make(planes))

class Net(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7)
        self.layer = LAYER

    def _layers(self, one, planes):
        return nn.Sequential(one(planes))

    def _idle(self, one, planes):
        return nn.Linear(planes, planes)

def chosen(net):
    net(torch.ones(1).cuda()).sum().backward()
    torch.optim.SGD(net.parameters(), 0.1).step()

if __name__ == "__main__":
    torch.manual_seed(0)
    chosen(Net(Block))
"""


@pytest.mark.parametrize(
    ("layer", "counted"),
    [
        ("self._layers(block, 64)", "3 × Conv2d"),
        ("Stage(block, 64)", "3 × Conv2d"),
        ("self._idle(block, 64)", "1 × Conv2d"),
        ("self._layers(nn.Linear, 64)", "1 × Conv2d"),
        ("unknown(block, 64)", "1 × Conv2d"),
    ],
)
def test_a_class_that_is_handed_on_to_what_makes_it_counts(project, layer, counted):
    folder = project(main_DOT_py=RELAYED.replace("LAYER", layer))
    assert [one.message.rpartition(": ")[2] for one in lint(folder) if one.code == "TDL203"] == [counted]


POOLED = """
import torch
from torch import nn

def pool(dims, size):
    if dims == 2:
        return nn.AvgPool2d(size)
    elif dims == 3:
        return nn.AvgPool3d(size, 1)
    raise ValueError(dims)

class Net(nn.Module):
    def __init__(self, dims=2):
        super().__init__()
        self.down = pool(dims, 2)
        self.embed = nn.Embedding(4, 4)

if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Sequential(MADE).cuda()
    net(torch.ones(1)).sum().backward()
    torch.optim.SGD(net.parameters(), 0.1).step()
"""


@pytest.mark.parametrize(
    ("made", "raises"),
    [("Net()", False), ("Net(2)", False), ("Net(3)", True), ("Net(), Net(3)", True), ("Net(int(input()))", True)],
)
def test_an_op_that_raises_is_named_where_the_constants_of_some_call_lead_to_it(project, made, raises):
    found = lint(project(main_DOT_py=POOLED.replace("MADE", made)), select=("TDL203", "TDL403"))
    (finding,) = [one for one in found if one.code == "TDL203"]
    assert finding.message.endswith("; `torch.nn.AvgPool3d` (line 9) may raise in that mode") == raises
    assert any("may raise in that mode" in place.message for place in finding.related) == raises


SETS = """
import numpy as np
import torch
from sets import load
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, index):
        return self.rng.random()

class Fixed(Dataset):
    def __getitem__(self, index):
        return index

def main(given):
    torch.manual_seed(0)
    sets = {"a": Fixed()}
    sets["b"] = Noisy()
    for data in LOOP:
        print(DataLoader(data, num_workers=2))

if __name__ == "__main__":
    main(load())
"""


@pytest.mark.parametrize(
    ("loop", "severity"),
    [
        ("(Fixed(), Noisy())", "error"),
        ("[Fixed(), Fixed()]", "note"),
        ('{"a": Fixed()}.values()', "note"),
        ("given", "warning"),
        ("given.values()", "warning"),
        ("(Fixed(), given[0])", "warning"),
        ("sets.values()", "error"),
    ],
)
def test_a_loader_in_a_loop_is_as_bad_as_the_data_sets_that_the_loop_goes_through(project, loop, severity):
    found = lint(project(main_DOT_py=SETS.replace("LOOP", loop)), min_severity="note")
    assert [one.severity for one in found if one.code == "TDL301"] == [severity]


NESTED = """
import torch
from torch import nn

def build():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(3, 3)
    return Net()

def main():
    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 3)
    torch.manual_seed(0)
    net = NET.cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net(torch.ones(3)).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("net", "severity", "counted"),
    [
        ("Head()", "error", "it: 1 × Conv2d"),
        ("nn.Sequential(build(), Head())", "error", "it: 1 × Conv2d, 1 × Embedding"),
        ("nn.Linear(3, 3)", "warning", "(True)`"),
    ],
)
def test_a_class_that_a_function_defines_counts_where_an_object_of_it_is_made(project, net, severity, counted):
    (finding,) = [one for one in lint(project(main_DOT_py=NESTED.replace("NET", net))) if one.code == "TDL203"]
    assert finding.severity == severity
    assert finding.message.endswith(counted)


ADAPTED = """
import torch
import torchvision
from torch import nn

torch.manual_seed(0)
model = torchvision.models.resnet18(weights="DEFAULT")
FREEZE
model = model.cuda()
optimizer = torch.optim.SGD(model.fc.parameters(), 0.1)
for _ in range(3):
    model(torch.ones(2, 3, 32, 32).cuda()).sum().backward()
    optimizer.step()
"""
ALL = "for param in model.parameters():\n    param.requires_grad = False\n"
WHERE = "import sys\nif OPTION:\n" + textwrap.indent(ALL, "    ") + "model.fc = nn.Linear(512, 2)"
NAMED = "for name, param in model.named_parameters():\n    if TEST:\n        param.requires_grad = False\n"


@pytest.mark.parametrize(
    ("freeze", "severity"),
    [
        ("", "error"),
        (ALL, "error"),
        (ALL + "model.fc = nn.Linear(512, 2)", "warning"),
        (ALL + "model.classifier[6] = nn.Linear(512, 2)", "warning"),
        (WHERE.replace("OPTION", "len(sys.argv) > 1"), "error"),
        ("fixed = True\n" + WHERE.replace("OPTION", "fixed"), "warning"),
        (ALL + "model.conv1 = nn.Conv2d(1, 64, 7)", "error"),
        (ALL + "model.fc = nn.Linear(512, 2)\nmodel = torchvision.models.resnet18()", "error"),
        ("model = torchvision.models.resnet18()\n" + ALL + "model.fc = nn.Linear(512, 2)", "error"),
        (ALL + "model.fc = nn.Linear(512, 2)\nmodel.layer4.requires_grad_(True)", "error"),
        (ALL + "model.fc = nn.Linear(512, 2)\nmodel.fc.bias.requires_grad_(False)", "warning"),
        (ALL.replace("False", "bool(model)") + "model.fc = nn.Linear(512, 2)", "error"),
        (NAMED.replace("TEST", 'name not in ("fc.weight", "fc.bias")'), "warning"),
        (NAMED.replace("TEST", 'not name.startswith("fc")'), "warning"),
        (NAMED.replace("TEST", '"layer4" not in name'), "error"),
        (NAMED.replace("TEST", '"fc" in name') + "model.fc = nn.Linear(512, 2)", "error"),
    ],
)
def test_a_network_counts_unless_its_head_alone_is_trained(project, freeze, severity):
    (finding,) = [one for one in lint(project(main_DOT_py=ADAPTED.replace("FREEZE", freeze))) if one.code == "TDL203"]
    assert finding.severity == severity
    assert ("resnet18" in finding.message) is (severity == "error")


def test_a_notebook_keeps_what_it_shows(project):
    folder = project()
    cell = {"cell_type": "code", "source": VIEWER, "metadata": {}, "outputs": [], "execution_count": None}
    (folder / "a.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert "error" in {finding.severity for finding in lint(folder)}


def test_a_program_among_the_tests_that_only_tries_something_out_is_a_note(project):
    folder = project()
    for name in ("tests/test_draw.py", "test_draw.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(TRIED_OUT)
    told = lint(folder, min_severity="note")
    found = {(one.filename.endswith("tests/test_draw.py"), one.severity) for one in told}
    assert found == {(True, "note"), (False, "error")}


def test_a_module_of_a_package_that_tries_its_classes_out_is_a_note(project):
    text = "import random\n\nclass Net:\n    pass\n\n" + GUARD + "    print(Net(), random.random())\n"
    folder = project(
        net_DOT_py=text, asked_DOT_py=text + "    input()\n", args_DOT_py="import sys\n" + text + "    sys.argv\n"
    )
    assert {one.severity for one in lint(folder, min_severity="note")} == {"error"}
    (folder / "__init__.py").touch()
    found = {one.filename.rpartition("/")[2]: one.severity for one in lint(folder, min_severity="note")}
    assert found == {"net.py": "note", "asked.py": "note", "args.py": "error"}


def test_what_stands_in_for_something_in_tests_is_not_drawn_by_the_program(project):
    arm = "import random\n\ndef arm():\n    return random.random()\n"
    folder = project(arms_DOT_py=arm)
    (folder / "tests").mkdir()
    (folder / "tests" / "__init__.py").touch()
    (folder / "tests" / "mock.py").write_text(arm)
    both = "from tests.mock import arm as mock\nfrom arms import arm\nimport sys\n\n" + GUARD
    (folder / "main.py").write_text(both + "    print(mock() if sys.argv[1:] else 1)\n")
    (folder / "move.py").write_text(both + "    print(arm())\n")
    assert [one.filename[-7:] for one in lint(folder)] == ["move.py"]


def test_what_a_self_test_shares_with_a_program_is_told_of_the_program(project):
    folder = project(
        lib_DOT_py="import random\n\nvalues = [random.random()]\n\n" + GUARD + "    print(values)\n",
        train_DOT_py="import lib\nimport random\nimport sys\n\n" + GUARD + "    print(sys.argv, random.random())\n",
    )
    assert [(one.code, one.severity, one.filename[-7:]) for one in lint(folder, min_severity="note")] == [
        ("TDL103", "note", "/lib.py"),
        ("TDL103", "error", "rain.py"),
    ]


UPSAMPLE = (
    "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        self.up = nn.Upsample(mode='{}')\n"
)
TRAINING = (
    "import torch\nfrom net import Net\n\n" + GUARD + "    torch.manual_seed(0)\n"
    "    torch.use_deterministic_algorithms(True)\n    net = Net().cuda()\n    net(1).sum().backward()\n"
    "    torch.optim.SGD(net.parameters(), lr=1).step()\n"
)


def test_evaluation_asks_for_no_mode_of_gradients(project):
    folder = project(
        net_DOT_py=UPSAMPLE.format("bilinear"),
        train_DOT_py=TRAINING,
        evaluate_DOT_py="import torch\nfrom net import Net\n\n" + GUARD + "    net = Net().cuda().eval()\n"
        "    net.load_state_dict(torch.load('net.pt'))\n    with torch.no_grad():\n        print(net(1))\n",
    )
    assert codes(lint(folder)) == []
    (folder / "more.py").write_text(TRAINING.replace("    torch.use_deterministic_algorithms(True)\n", ""))
    assert "TDL403" in [finding.code for finding in lint(folder)]


@pytest.mark.parametrize("importing", ["import net\n        net.score(1)", "from net import score\n        score(1)"])
def test_an_import_without_gradients_is_no_function_that_runs(project, importing):
    folder = project(
        net_DOT_py="from torch import nn\nimport torch.nn.functional as F\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.conv = nn.Conv2d(3, 3, 3)\n"
        "    def forward(self, x):\n        return F.interpolate(self.conv(x.cuda()), None, 2, 'bilinear')\n\n"
        "def score(x):\n    return Net()(x)\n",
        train_DOT_py="import torch\n\ndef evaluate():\n    with torch.no_grad():\n        " + importing + "\n\n"
        "def work():\n    layer = torch.nn.Linear(3, 3).cuda()\n    layer(1).sum().backward()\n    evaluate()\n"
        "    torch.optim.SGD(layer.parameters(), lr=1).step()\n\n" + GUARD + "    torch.manual_seed(0)\n    work()\n",
    )
    assert "TDL403" not in [finding.code for finding in lint(folder)]


def test_where_programs_say_nothing_of_files_the_findings_stay(project, monkeypatch, capsys):
    folder = project(net_DOT_py=UPSAMPLE.format("bilinear"), train_DOT_py=TRAINING)
    monkeypatch.setattr("torchdet_lint.engine.settled.Settling.of", lambda *_, **__: 1 // 0)
    assert main([str(folder), "--no-cache", "--isolated", "--output-format", "concise"]) == 2
    told = capsys.readouterr()
    assert "net.py:" in told.out
    assert told.err.count("\n") == 1
    assert "what they say of files failed on these programs, please report it: ZeroDivisionError" in told.err


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        ("import os\nos.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')\n", []),
        ("# CUBLAS_WORKSPACE_CONFIG is not set here\n", ["TDL404"]),
    ],
)
def test_the_workspace_of_recurrent_layers_is_that_of_the_program(project, setting, found):
    layer = "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        self.rnn = nn.LSTM(3, 3)\n"
    folder = project(net_DOT_py=layer, train_DOT_py=setting + TRAINING)
    assert [finding.code for finding in lint(folder)] == found


VARYING = """
import torch
from torch import nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3)
        self.unpool = nn.MaxUnpool2d(2)

    def forward(self, x, index, target):
        y = F.interpolate(self.conv(x), scale_factor=2, mode="bicubic")
        y = F.scaled_dot_product_attention(y, y, y)
        y.new_zeros(3).index_add_(0, index, y.mean((0, 2, 3)))
        return F.cross_entropy(self.conv(y), target) + self.unpool(y, index).sum()
"""
STEPS = """
import torch
from net import Net

def main():
    torch.manual_seed(0)
    net = Net()PLACE
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(1, 3, 8, 8), torch.zeros(3).long(), torch.zeros(1, 16, 16).long()).backward()
    optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("", ["TDL401"]),
        ("  # .cuda()", ["TDL401"]),
        (".to('cpu')", ["TDL401"]),
        (".cuda()", ["TDL203", "TDL401", "TDL402", "TDL403", "TDL405"]),
    ],
)
def test_ops_of_programs_that_train_on_the_cpu_are_those_that_vary_there(project, place, found):
    folder = project(net_DOT_py=VARYING, train_DOT_py=STEPS.replace("PLACE", place))
    findings = [one for one in lint(folder) if one.code.startswith(("TDL203", "TDL4"))]
    assert sorted({one.code for one in findings}) == found
    assert len([one for one in findings if one.code == "TDL401"]) == (2 if place == ".cuda()" else 1)
    (folder / "other.py").write_text(STEPS.replace("PLACE", ".cuda()"))
    assert {"TDL402", "TDL403", "TDL405"} <= {one.code for one in lint(folder)}


@pytest.mark.parametrize(("seed", "found"), [("torch.manual_seed(0)", []), ("pass", ["TDL101", "TDL105"])])
def test_a_seed_that_is_drawn_repeats_where_a_program_seeds(project, seed, found):
    folder = project(
        net_DOT_py="import random\nimport torch\n\nclass Net:\n    def __init__(self):\n"
        "        self.seed = torch.randint(0, 1000, ()).item()\n        self.rng = random.Random(self.seed)\n\n"
        "NET = Net()\nvalue = torch.randint(0, 1000, ()).item()\nrng = random.Random(value)\n",
        train_DOT_py=f"import torch\n{seed}\nfrom net import NET\n\n{GUARD}    print(NET)\n",
    )
    assert sorted({finding.code for finding in lint(folder)}) == found


@pytest.mark.parametrize(("seed", "severity"), [("np.random.seed(0)", "warning"), ("pass", "error")])
def test_an_estimator_without_a_state_is_as_bad_as_its_programs(project, seed, severity):
    folder = project(
        fit_DOT_py="from sklearn.manifold import TSNE\n\ndef fit(x):\n    return TSNE().fit_transform(x)\n",
        train_DOT_py=f"import numpy as np\nfrom fit import fit\n\n{GUARD}    {seed}\n    print(fit([1]))\n",
    )
    assert [(finding.code, finding.severity) for finding in lint(folder)] == [("TDL107", severity)]


@pytest.mark.parametrize(("seed", "severity"), [("np.random.seed(0)", "warning"), ("pass", "error")])
def test_what_no_program_imports_by_name_is_as_bad_as_those_that_train(project, seed, severity):
    train = "    net.backward()\n    torch.optim.SGD(net.parameters(), lr=0.1).step()\n"
    folder = project(
        fit_DOT_py="from sklearn.manifold import TSNE\n\ndef fit(x):\n    return TSNE().fit_transform(x)\n",
        train_DOT_py="import importlib, sys\nimport numpy as np\nimport torch\n\n"
        f"{GUARD}    {seed}\n    net = importlib.import_module(sys.argv[1]).fit()\n{train}",
        show_DOT_py=f"{GUARD}    print('nothing is trained here')\n",
    )
    assert [(one.code, one.severity) for one in lint(folder, select=("TDL107",))] == [("TDL107", severity)]


@pytest.mark.parametrize(("seed", "severity"), [("np.random.seed(0)", "warning"), ("pass", "error")])
def test_what_is_imported_by_a_name_of_the_run_is_as_bad_as_all_programs_where_none_trains(project, seed, severity):
    folder = project(
        fit_DOT_py="from sklearn.manifold import TSNE\n\ndef fit(x):\n    return TSNE().fit_transform(x)\n",
        main_DOT_py="import importlib, sys\nimport numpy as np\n\n"
        f"{GUARD}    {seed}\n    print(importlib.import_module(sys.argv[1]).fit([1]))\n",
    )
    assert [(one.code, one.severity) for one in lint(folder, select=("TDL107",))] == [("TDL107", severity)]


@pytest.mark.parametrize(
    ("start", "found"), [("env = 3\n", ["TDL101"]), ("", []), ("from setting import *\n", ["TDL101"])]
)
def test_a_file_that_needs_names_which_nothing_binds_is_no_program(project, start, found):
    folder = project(
        snippet_DOT_py=f"import torch\n{start}\nnet = torch.nn.Linear(env, 2)\nprint(net(torch.ones(3)))\n"
    )
    assert [finding.code for finding in lint(folder, select=("TDL101",))] == found


@pytest.mark.parametrize(("other", "safe"), [("from envs import Task\n", "unsafe"), ("import os\n", "safe")])
def test_a_constructor_that_other_files_call_is_given_no_constant_seed(project, other, safe):
    """The main guard makes one object; the programs that import the class make as many as they like."""
    folder = project(
        envs_DOT_py="import random\n\nclass Task:\n    def __init__(self):\n        self.rng = random.Random()\n\n"
        f"{GUARD}    print(Task().rng.random())\n",
        main_DOT_py=f"{other}\n{GUARD}    pass\n",
    )
    (finding,) = lint(folder, select=("TDL104",))
    assert finding.fix.applicability == safe


@pytest.mark.parametrize(
    ("uses", "safe"),
    [
        ("TSNE().fit_transform(x)", "safe"),
        ("made = TSNE()\n    print(made.fit_transform(x), made.n_iter_, made.get_params())", "safe"),
        ("made = TSNE()\n    made.fit(x)\n    made.fit(x[1:])", "unsafe"),
        ("made = TSNE()\n    for part in x:\n        print(made.fit_transform(part))", "unsafe"),
        ("made = TSNE()\n    run(made)", "unsafe"),
        ("run(TSNE())", "unsafe"),
        ("folds = KFold(3, shuffle=True)\n    for train, test in folds.split(x):\n        print(train)", "safe"),
        ("folds = KFold(3, shuffle=True)\n    run(x, cv=folds)", "safe"),
        ("run(x, cv=KFold(3, shuffle=True))", "safe"),
        ("folds = KFold(3, shuffle=True)\n    run(x, cv=folds)\n    run(x[1:], cv=folds)", "unsafe"),
        ("train, test = train_test_split(x)", "safe"),
    ],
)
def test_an_object_that_draws_in_several_fits_gets_no_constant_safely(project, uses, safe):
    """With a number as `random_state` each fit would draw the same, where each drew something else."""
    folder = project(
        main_DOT_py="from sklearn.manifold import TSNE\nfrom sklearn.model_selection import KFold, train_test_split\n"
        f"from work import run, x\n\n{GUARD}    {uses}\n"
    )
    (finding,) = lint(folder, select=("TDL107",))
    assert finding.fix.applicability == safe


@pytest.mark.parametrize(
    ("joins", "seeds", "codes_and_fixes"),
    [
        ("", "", {"TDL101": "safe", "TDL102": "safe"}),
        ("dist.init_process_group('nccl')", "", {"TDL101": "unsafe", "TDL102": "unsafe"}),
        ("if WIDE: dist.init_process_group('nccl')", "", {"TDL101": "unsafe", "TDL102": "unsafe"}),
        ("accelerate.Accelerator()", "", {"TDL101": "unsafe", "TDL102": "unsafe"}),
        ("dist.get_rank()", "", {"TDL101": "safe", "TDL102": "safe"}),
        # Who gave all of them one seed goes on to.
        ("dist.init_process_group('nccl')", "torch.manual_seed(1)", {"TDL102": "safe"}),
    ],
)
def test_one_seed_for_several_processes_that_draw_different_numbers_is_unsafe(project, joins, seeds, codes_and_fixes):
    folder = project(
        setup_DOT_py=f"import accelerate\nimport torch.distributed as dist\n\nWIDE = bool(dist)\n\n"
        f"def setup():\n    {joins or 'pass'}\n    return accelerate\n",
        main_DOT_py=f"import numpy as np\nimport torch\nfrom setup import setup\n\n{GUARD}    {seeds or 'pass'}\n"
        "    setup()\n    print(torch.rand(2), np.random.rand(2))\n",
    )
    assert {one.code: one.fix.applicability for one in lint(folder, ignore=("TDL2",))} == codes_and_fixes


@pytest.mark.parametrize(
    ("body", "safe"),
    [
        ("for job in jobs:\n        if isfile(name(job)):\n            continue\n        work(job)", "unsafe"),
        (
            "for job in tqdm(jobs):\n        if ALL and is_done(job):\n            continue\n        work(job)",
            "unsafe",
        ),
        ("for lr in RATES:\n        for job in jobs:\n            tune(job)", "unsafe"),
        ("for job in np.random.permutation(jobs):\n        tune(job)", "unsafe"),
        ("torch.manual_seed(0)\n    for job in jobs:\n        tune(job)", "unsafe"),
        # All of them are done, in an order that may decide: those that are missing are left out, or none is.
        ("for job in jobs:\n        if not isfile(name(job)):\n            continue\n        work(job)", "safe"),
        ("for job in jobs:\n        work(job)\n    if isfile('log'):\n        print(1)", "safe"),
        ("for job in jobs:\n        work(load(job))", "safe"),
        # The list that is shuffled is another one.
        ("for job in [1, 2]:\n        tune(job)", "safe"),
    ],
)
def test_one_seed_for_processes_that_shuffle_the_jobs_they_share_is_unsafe(project, body, safe):
    """With it all of them begin with the same job."""
    folder = project(
        main_DOT_py="import sys\nfrom os.path import isfile\n\nimport numpy as np\nimport torch\n"
        "from tqdm import tqdm\n\n"
        "ALL = len(sys.argv)\nRATES = [0.1, 0.2]\n\n"
        "def name(job):\n    return f'{job}.txt'\n\n"
        "def work(job):\n    open(name(job), 'w').write(str(job ** 2))\n\n"
        "def is_done(job):\n    if isfile(name(job)):\n        return True\n    open(name(job), 'w').close()\n"
        "    return False\n\n"
        "def tune(job):\n    if isfile(name(job)):\n        return\n    work(job)\n\n"
        "def load(job):\n    if isfile(name(job)):\n        return int(open(name(job)).read())\n    return job\n\n"
        f"{GUARD}    jobs = list(range(20))\n    np.random.shuffle(jobs)\n    {body}\n"
    )
    (finding,) = lint(folder, select=("TDL102",))
    assert finding.fix.applicability == safe


@pytest.mark.parametrize(
    ("strategy", "safe"),
    [
        ('"ddp"', "unsafe"),
        ("DDPStrategy(static_graph=True)", "unsafe"),
        ('"auto"', "safe"),
        ('"single_device"', "safe"),
    ],
)
def test_one_seed_for_all_ranks_of_a_trainer_is_unsafe(project, strategy, safe):
    trainer = f"pl.Trainer(strategy={strategy}, deterministic=True)"
    text = (
        f"import pytorch_lightning as pl\nimport torch\nfrom pytorch_lightning.strategies import DDPStrategy\n\n{GUARD}"
    )
    folder = project(main_DOT_py=text + f"    {trainer}.fit(torch.nn.Linear(2, 2))\n")
    (finding,) = [one for one in lint(folder) if one.code == "TDL101"]
    assert finding.fix.applicability == safe


@pytest.mark.parametrize(
    ("line", "safe"),
    [
        ("cfg.seed = cfg.get('seed', 5)", "unsafe"),
        ("print(cfg.data_seed)", "unsafe"),
        ("cfg.steps = 5", "safe"),
        ("model.seed = 5", "safe"),
    ],
)
def test_a_number_is_no_safe_seed_where_another_file_names_one(project, line, safe):
    folder = project(
        args_DOT_py=f"def parsed(cfg, model=None):\n    {line}\n    return cfg\n",
        main_DOT_py=f"import torch\nfrom args import parsed\n\n{GUARD}    parsed({{}})\n    print(torch.rand(2))\n",
    )
    (finding,) = lint(folder)
    assert finding.fix.applicability == safe


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("setup(0)", []),
        ("setup(0, seed=1)", []),
        ("setup(0, 1, True)", ["TDL201"]),
        ("setup(0, fast=args.fast)", ["TDL201"]),
        ("setup(*args)", ["TDL201"]),
        ("setup(**args)", ["TDL201"]),
        ("run(setup)", ["TDL201"]),
        ("pass", ["TDL201"]),
    ],
)
def test_a_switch_that_every_call_leaves_off_is_off(project, call, found):
    folder = project(
        utils_DOT_py="import torch\n\ndef setup(gpu, seed=0, fast=False):\n    torch.backends.cudnn.benchmark = fast\n",
        main_DOT_py=f"import sys\nfrom utils import setup\n\nargs = sys.argv\n{GUARD}    {call}\n",
    )
    assert [finding.code for finding in lint(folder, select=("TDL201",))] == found


def test_a_message_is_one_line(project):
    loop = "for path in (\n        Path('a') / 'b').glob('*'):\n    found.append(path)\n"
    text = f"from pathlib import Path\n\nfound = []\n{loop}print(found)\n"
    (finding,) = lint(project(main_DOT_py=text), select=("TDL304",), min_severity="note")
    assert finding.message.startswith("`( Path('a') / 'b').glob` returns files in no particular order")


def test_a_module_that_is_called_like_its_folder_is_found_from_beside_it(project):
    folder = project(main_DOT_py="import torch\nfrom utils.start import begin\n\n" + GUARD
        + "    begin()\n    print(torch.rand(2))\n")  # fmt: skip
    package = folder / "utils"
    package.mkdir()
    (package / "start.py").write_text("from utils.utils import prepare\n\ndef begin():\n    prepare(0)\n")
    (package / "utils.py").write_text("import torch\n\ndef prepare(number):\n    torch.manual_seed(number)\n")
    assert codes(lint(folder)) == []
    (package / "utils.py").write_text("def prepare(number):\n    print(number)\n")
    assert codes(lint(folder)) == [("TDL101", 6)]


@pytest.mark.parametrize(
    ("imported", "found"),
    [
        ("from main import Work", [("TDL101", 13)]),
        ("from main import load", []),
        ("from other import Work", []),
        ("import main", []),
    ],
)
def test_a_program_that_imports_its_own_class_runs_it(project, imported, found):
    """A module that imports itself means a library of that name, unless it defines what it asks for."""
    work = "class Work:\n    def run(self):\n        print(torch.rand(3))\n\n"
    start = f"def begin():\n    {imported} as made\n    made().run()\n\n"
    assert codes(lint(project(main_DOT_py=f"import torch\n\n{work}{start}\n{GUARD}    begin()\n"))) == found


def test_facts_about_a_framework_hold_beside_its_source(project):
    main_text = "import torch\nimport lightning.pytorch as pl\n\n" + GUARD
    folder = project(main_DOT_py=main_text + "    pl.seed_everything(0)\n    print(torch.rand(2))\n")
    package = folder / "lightning/pytorch"
    package.mkdir(parents=True)
    (folder / "lightning/__init__.py").write_text("")
    (package / "__init__.py").write_text("from .seed import seed_everything\n")
    (package / "seed.py").write_text("def seed_everything(value):\n    BACKEND.start(value)\n")
    assert codes(lint(folder)) == []


def test_a_model_that_a_name_picks_goes_by_its_module(project):
    program = (
        "import sys\nimport torch\nimport torchvision\n\n"
        f"{GUARD}    model = getattr(torchvision.models, sys.argv[1])()\n    torch.save(model, 'model.pt')\n"
    )
    (finding,) = [one for one in lint(project(main_DOT_py=program)) if one.code == "TDL101"]
    assert finding.message.startswith("`torchvision.models` uses torch's global random number generator")
    assert [place.message for place in finding.related] == ["`torchvision.models` uses random numbers here"]


PICKED = (
    "import argparse\nimport importlib\nimport sys\nimport torch\n{imported}\n\ndef main(args):\n"
    "    torch.manual_seed(0)\n    net = {picked}().cuda()\n    net(torch.ones(1, 3, 8, 8).cuda()).sum().backward()\n"
    "    torch.optim.SGD(net.parameters(), lr=1).step()\n\n"
    f"{GUARD}    main(argparse.ArgumentParser().parse_args())\n"
)
NETS = "import torch.nn as nn\n\ndef build():\n    return nn.Conv{}d(3, 3, 3)\n"
ADDED = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))\n"


@pytest.mark.parametrize(
    ("script", "package", "imported", "picked"),
    [
        ("main.py", "nets", "from nets import MAKERS", "MAKERS[args.net]"),
        ("main.py", "nets", "from nets import makers", "makers[args.net]"),
        ("main.py", "nets", "import nets", "nets.makers[args.net]"),
        ("main.py", "nets", "", "importlib.import_module('nets.' + args.net).build"),
        ("tools/main.py", "lib/nets", f"{ADDED}import nets.wide", "eval('nets.' + args.net + '.build')"),
        ("tools/main.py", "lib/nets", ADDED, "importlib.import_module('nets.' + args.net).build"),
    ],
)
def test_of_what_a_name_picks_in_another_file_all_is_counted(project, script, package, imported, picked):
    folder = project()
    for path in (script, f"{package}/wide.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / script).write_text(PICKED.format(imported=imported, picked=picked))
    shared = "from . import wide, deep\n\nmakers = {'wide': wide.build, 'deep': deep.build}\nMAKERS = dict(makers)\n"
    (folder / package / "__init__.py").write_text(shared.replace("dict(makers)", "{0: wide.build, 1: deep.build}"))
    for number, name in enumerate(("wide", "deep"), 1):
        (folder / package / f"{name}.py").write_text(NETS.format(number))
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.endswith("without it: 1 × Conv1d, 1 × Conv2d")


def test_a_package_picks_its_own_modules_by_name(project):
    folder = project()
    (folder / "src/nets").mkdir(parents=True)
    (folder / "src/main.py").write_text(PICKED.format(imported="from nets import Net", picked="Net"))
    made = "importlib.import_module('nets.' + str(len(sys.argv))).build()"
    (folder / "src/nets/__init__.py").write_text(
        "import importlib\nimport sys\nfrom torch import nn\n\nclass Net(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        self.net = {made}\n"
    )
    (folder / "src/nets/wide.py").write_text(NETS.format(2))
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.endswith("without it: 1 × Conv2d")


def test_a_long_table_of_models_is_counted_whole(project):
    makers = "".join(f"def make_{n}():\n    return nn.Conv2d(3, 3, {n})\n\n" for n in range(20))
    table = ", ".join(f"'{n}': make_{n}" for n in range(20))
    folder = project(
        main_DOT_py=PICKED.format(imported="from nets import table", picked="table[args.net]"),
        nets_DOT_py=f"from torch import nn\n\n{makers}table = {{{table}}}\n",
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.endswith("without it: 20 × Conv2d")


NEEDING = """
import argparse, os, sys
import lightning
import torch

def train(net, device):
    net(torch.ones(1, 3, device=device)).sum().backward()
    torch.optim.SGD(net.parameters(), lr=1).step()

{main}
if __name__ == "__main__":
    torch.manual_seed(0)
    main(argparse.ArgumentParser().parse_args())
"""
DEVICE = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'
CHOSEN = f"    device = {DEVICE}\n    train(torch.nn.Linear(3, 3).to(device), device)\n"
ALONE = """
def begin(args):
    if "RANK" in os.environ:
        args.gpu = int(os.environ["LOCAL_RANK"])
    elif {test}:
        {what}
    torch.cuda.set_device(args.gpu)

def main(args):
    begin(args)
    train(torch.nn.Linear(3, 3).to(args.device), args.device)
"""
LIT = """
class Net(lightning.LightningModule):
    def training_step(self, batch, index):
        return batch.sum()

def main(args):
    lightning.Trainer(accelerator={}).fit(Net())
"""


LEAVES = """
def main(args):
    if {test}:
        {what}
        {leaves}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train(torch.nn.Linear(3, 3).to(device), device)
"""
BELOW = """
def main(args):
    net = torch.nn.Linear(3, 3)
    for size in range(3):
        if {test}:
            {leaves}
        train(net.cuda(), "cuda")
"""
ELSE = """
def main(args):
    Cuda = True
    net = torch.nn.Linear(3, 3)
    if {test}:
        net = net.cuda()
    {otherwise}
    train(net, args.device)
"""
NO_GPU = "not torch.cuda.is_available()"


@pytest.mark.parametrize(
    ("main", "says"),
    [
        (f'def main(args):\n    assert torch.cuda.is_available(), "needs a GPU"\n{CHOSEN}', "trains"),
        (f"def main(args):\n    assert args.net\n{CHOSEN}", "may train"),
        (f'def main(args):\n    print(args.device.type == torch.device("cuda").type)\n{CHOSEN}', "may train"),
        (LEAVES.format(test=NO_GPU, what="print('no GPU')", leaves="sys.exit(1)"), "trains"),
        (LEAVES.format(test=NO_GPU, what="print('no GPU')", leaves="return"), "may train"),
        (LEAVES.format(test=NO_GPU, what="args.cpu = True", leaves="sys.exit(1)"), "may train"),
        (LEAVES.format(test="args.size < 1", what="print(args)", leaves="raise ValueError"), "may train"),
        (
            ALONE.format(test='"SLURM_PROCID" in os.environ', what="args.gpu = 0\n    else:\n        return"),
            "may train",
        ),
        (ALONE.format(test="args.alone", what="return"), "may train"),
        (ALONE.format(test="args.alone", what="args.gpu = 0\n    else:\n        raise ValueError"), "trains"),
        (BELOW.format(test="size == 1", leaves="continue"), "trains"),
        (BELOW.format(test="args.size < 1", leaves="raise ValueError"), "trains"),
        (BELOW.format(test="args.cpu", leaves="return train(net, 'cpu')"), "may train"),
        (ELSE.format(test="args.net == 'linear'", otherwise="else:\n        raise ValueError"), "trains"),
        (ELSE.format(test="args.net == 'linear'", otherwise="print(net)"), "may train"),
        (ELSE.format(test="Cuda", otherwise="print(net)"), "trains"),
        (ELSE.format(test="args.one", otherwise="else:\n        net = torch.nn.DataParallel(net).cuda()"), "trains"),
        (
            ELSE.format(test="args.a", otherwise="elif args.b:\n        net.cuda()\n    else:\n        net.cuda()"),
            "trains",
        ),
        (ELSE.format(test="args.a", otherwise="elif args.b:\n        net.cuda()"), "may train"),
        (ELSE.format(test="args.a", otherwise="else:\n        if args.b:\n            net.cuda()"), "may train"),
        (LIT.format("'gpu'"), "trains"),
        (LIT.format("'auto'"), "may train"),
        (LIT.format("args.accelerator"), "may train"),
    ],
)
def test_a_program_trains_on_cuda_where_a_run_without_fails(project, main, says):
    (finding,) = [one for one in lint(project(main_DOT_py=NEEDING.format(main=main))) if one.code == "TDL203"]
    assert finding.message.startswith(f"This program {says} on CUDA")


COMMANDS = """
import torch
import lightning
from jsonargparse import CLI

def train(size: int = 3):
    torch.manual_seed(0)
    net = torch.nn.Linear(size, 3){moved}
    net(torch.ones(1, size){moved}).sum().backward()
    torch.optim.SGD(net.parameters(), lr=1).step()

def convert(size: int = 3):
    lightning.Fabric(accelerator="cpu").print(size)

def learn(size: int = 3):
    train(size)
    lightning.Fabric(accelerator={accelerator}).print(size)

TABLE = {{"train": train, "convert": convert}}

def start(*args, **kwargs):
    return CLI(*args, **kwargs)

"""


@pytest.mark.parametrize(
    ("runs", "moved", "accelerator", "says"),
    [
        ("CLI(train)", ".cuda()", "'cpu'", "trains"),
        ("CLI([train, len])", ".cuda()", "'cpu'", "may train"),
        ("start(train)", ".cuda()", "'cpu'", "trains"),
        ("start([train, learn])", ".cuda()", "'auto'", "may train"),
        ("CLI({'train': train, 'learn': learn})", "", "'auto'", "may train"),
        ("CLI({'convert': convert, 'learn': learn})", "", "'auto'", "may train"),
        ("CLI({'convert': convert, 'learn': learn})", "", "'cpu'", ""),
        ("start({'convert': convert, 'learn': learn})", "", "'gpu'", "may train"),
        ("start(learn)", "", "'gpu'", "trains"),
    ],
)
def test_a_command_line_runs_one_of_the_functions_that_it_is_given(project, runs, moved, accelerator, says):
    text = COMMANDS.format(moved=moved, accelerator=accelerator) + f"{GUARD}    {runs}\n"
    found = [one.message for one in lint(project(main_DOT_py=text)) if one.code == "TDL203"]
    assert [message.partition(" on CUDA")[0] for message in found] == [f"This program {says}"] * bool(says)


def test_of_many_commands_it_is_not_said_which_one_runs(project):
    makers = "".join(f"def make_{n}():\n    return torch.nn.Linear(1, {n})\n\n" for n in range(1, 12))
    table = ", ".join(f"'{n}': make_{n}" for n in range(1, 12))
    folder = project(
        main_DOT_py="import argparse\nimport torch\n\ndef wide():\n    return torch.nn.Linear(1, 9).cuda()\n\n"
        f"{makers}TABLE = {{{table}, 'wide': wide}}\n\ndef main(args):\n    torch.manual_seed(0)\n"
        "    net = TABLE[args.net]()\n    net(torch.ones(1).to(args.device)).sum().backward()\n"
        "    torch.optim.SGD(net.parameters(), lr=1).step()\n\n"
        f"{GUARD}    main(argparse.ArgumentParser().parse_args())\n"
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.startswith("This program may train on CUDA")


def test_of_what_a_dictionary_of_a_base_class_holds_all_is_counted(project):
    folder = project(
        base_DOT_py="from torch import nn\n\nclass Wide(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.conv = nn.Conv1d(3, 3, 3)\n\n"
        "class Base(nn.Module):\n    kinds = {'wide': Wide, 'plain': nn.Conv2d}\n",
        main_DOT_py="import sys\nimport torch\nfrom base import Base\n\nclass Net(Base):\n"
        "    def __init__(self, kind):\n        super().__init__()\n        kind = self.kinds[kind.lower()]\n"
        "        self.part = kind()\n\ndef main(kind):\n    torch.manual_seed(0)\n    net = Net(kind).cuda()\n"
        "    net(torch.ones(1, 3, 8)).sum().backward()\n    torch.optim.SGD(net.parameters(), lr=1).step()\n\n"
        f"{GUARD}    main(sys.argv[1])\n",
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.endswith("without it: 1 × Conv1d, 1 × Conv2d")


ITEMS = """
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

class Filter:
    def __call__(self, x):
        return F.conv1d(x, torch.ones(1, 1, 3))

class Waves({base}):
    def __init__(self):
        self.filter = Filter()
    def __getitem__(self, index):
        return self.filter(torch.ones(1, 1, 8))
    def __len__(self):
        return 4

def loaders():
    waves = Waves()
    return DataLoader(waves, num_workers={workers}), waves

def main():
    torch.manual_seed(0)
    net = torch.nn.Conv2d(1, 1, 1).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=1)
    {loop}:
        net(x.cuda()).sum().backward()
        optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("base", "workers", "loop", "counted"),
    [
        ("Dataset", 2, "for x in DataLoader(Waves(), num_workers=2)", "1 × Conv2d"),
        ("Dataset", 0, "for x in DataLoader(Waves(), num_workers=0)", "1 × Conv2d"),
        ("Dataset", 0, "loader, waves = loaders()\n    for x in loader", "1 × Conv2d"),
        ("Dataset", 0, "for x in Waves()", "1 × Conv2d"),
        ("object", 0, "for x in Waves()", "1 × Conv2d, 1 × conv1d"),
    ],
)
def test_what_makes_items_of_a_data_set_gets_no_gradient(project, base, workers, loop, counted):
    folder = project(main_DOT_py=ITEMS.format(base=base, workers=workers, loop=loop))
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.endswith(f"without it: {counted}")


def test_of_modules_and_names_that_are_picked_the_classes_count(project):
    folder = project(
        main_DOT_py="import importlib\nimport sys\nimport torch\n\n"
        + GUARD
        + "    kind = sys.argv[1]\n    data = getattr(importlib.import_module('data.' + kind.lower()), kind)()\n"
        "    torch.save(data[0], 'item.pt')\n"
    )
    (folder / "data").mkdir()
    (folder / "data/__init__.py").touch()
    (folder / "data/common.py").write_text("import random\n\ndef augment(x=0):\n    return x + random.random()\n")
    (folder / "data/plain.py").write_text("class Plain:\n    def __getitem__(self, index):\n        return index\n")
    assert codes(lint(folder)) == []


def test_what_stands_beside_the_networks_of_a_library_is_no_network(project):
    program = (
        "import segmentation_models_pytorch as smp\nimport timm\nimport torch\n"
        "from timm.models import ByoBlockCfg, is_model_pretrained\n"
        "from torchvision.models.detection import fasterrcnn_resnet50_fpn\n"
        "from torchvision.models.detection.faster_rcnn import FastRCNNPredictor\n\n"
        "def main(data):\n    torch.manual_seed(0)\n    print(is_model_pretrained('a'), ByoBlockCfg('basic', d=1))\n"
        "    print(timm.models.list_models(), timm.models.get_pretrained_cfg('a'))\n"
        "    model, loss_of = smp.Unet('resnet18').to('cuda'), smp.losses.DiceLoss('binary')\n"
        "    other = fasterrcnn_resnet50_fpn()\n    other.roi_heads.box_predictor = FastRCNNPredictor(8, 2)\n"
        "    optimizer = torch.optim.Adam([*model.parameters(), *other.parameters()])\n"
        "    for x, y in data:\n        loss = loss_of(model(x), y) + other(x)\n        loss.backward()\n"
        f"        optimizer.step()\n\n{GUARD}    main([])\n"
    )
    (finding,) = [one for one in lint(project(main_DOT_py=program)) if one.code == "TDL203"]
    assert finding.message.endswith("without it: the convolutions of Unet and fasterrcnn_resnet50_fpn")


def test_convolutions_are_one_fact_about_the_program_with_its_places(project, capsys):
    layers = "".join(f"        self.c{number} = nn.Conv2d(3, 3, {number})\n" for number in range(45))
    folder = project(
        net_DOT_py=f"from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n{layers}",
        main_DOT_py="import torch\nfrom net import Net\n\n" + GUARD + "    torch.manual_seed(0)\n"
        "    Net().cuda()(1).sum().backward()\n    torch.optim.SGD([], lr=1).step()\n",
    )
    (finding,) = lint(folder)
    assert (finding.code, finding.severity) == ("TDL203", "error")
    assert finding.message.endswith("; ops in reach that are nondeterministic without it: 45 × Conv2d")
    places = [place for place in finding.related if place.filename.endswith("net.py")]
    assert [place.location.row for place in places] == [*range(5, 44)]
    assert places[-1].message.endswith("; 6 more places are not listed")
    main([str(folder), "--isolated", "--no-cache"])
    out = capsys.readouterr().out
    assert out.count("= see: ") == 7
    assert "= see: 34 more places, which --output-format json lists" in out
    (folder / "main.py").write_text(
        (folder / "main.py")
        .read_text()
        .replace("    torch.m", "    torch.use_deterministic_algorithms(True)\n    torch.m")
    )
    assert lint(folder) == ()


@pytest.mark.parametrize(("fresh", "severity"), [("torch.empty(3)", "error"), ("torch.zeros(3)", "warning")])
def test_memory_left_unfilled_is_as_bad_as_what_reads_it(project, fresh, severity):
    folder = project(
        main_DOT_py="import torch\n\ntorch.utils.deterministic.fill_uninitialized_memory = False\n\n"
        f"def made():\n    fresh = {fresh}\n    return fresh + 1\n"
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL206"]
    assert finding.severity == severity


TRAINS = """\
import torch
from model import Net

def main():
    torch.manual_seed(0)
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(2, 3).cuda()).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("ops", "said"),
    [
        (1, "`torch.histc` (model.py:5) may raise in that mode"),
        (2, "`torch.histc` (model.py:5) and `torch.histc` (model.py:6) may raise in that mode"),
        (4, "`torch.histc` (model.py:5), `torch.histc` (model.py:6) and 2 more may raise in that mode"),
    ],
)
def test_what_would_raise_in_deterministic_mode_is_named_before_it_is_turned_on(ops, said, project, monkeypatch):
    model = (
        "import torch\n\nclass Net(torch.nn.Linear):\n    def forward(self, x):\n" + "        torch.histc(x)\n" * ops
    )
    rest = "\nclass Other(torch.nn.Linear):\n    def forward(self, x):\n        return torch.histc(x)\n"
    init = "\ndef unused(x):\n    return torch.histc(x)\n"
    folder = project(train_DOT_py=TRAINS, model_DOT_py=model + "        return x\n" + rest + init)
    monkeypatch.chdir(folder)
    found = run.run(["."], Settings(root=str(folder), jobs=1, cache_dir="")).findings
    (finding,) = [one for one in found if one.code == "TDL203"]
    assert finding.message.endswith(said)
    raising = [
        (one.filename, one.location.row) for one in finding.related if one.message.endswith("may raise in that mode")
    ]
    assert raising == [("model.py", 5 + number) for number in range(ops)]


@pytest.mark.parametrize(
    ("op", "severity"),
    [
        ("torch.histc(x)", "warning"),
        ("torch.nn.functional.adaptive_max_pool2d(x, 1)", "warning"),
        ("torch.histc(x) + torch.bincount(x, weights=x)", "error"),
        ("torch.histc(x) + x.new_zeros(3).index_add_(0, x, x)", "error"),
    ],
)
def test_an_op_that_only_raises_in_deterministic_mode_is_none_that_needs_it(op, severity, project):
    model = (
        f"import torch\n\nclass Net(torch.nn.Linear):\n    def forward(self, x: torch.Tensor):\n        return {op}\n"
    )
    folder = project(train_DOT_py=TRAINS, model_DOT_py=model)
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.severity == severity
    assert finding.message.endswith("may raise in that mode")


@pytest.mark.parametrize(("around", "raises"), [("with torch.no_grad()", False), ("if True", True)])
def test_what_only_evaluation_runs_does_not_raise_in_deterministic_mode(around, raises, project):
    folder = project(
        warp_DOT_py="import torch.nn.functional as F\n\ndef warp(x, grid):\n    return F.grid_sample(x, grid)\n",
        train_DOT_py="import torch\nfrom warp import warp\n\ndef main():\n    torch.manual_seed(0)\n"
        "    net = torch.nn.Linear(3, 3).cuda()\n    net(torch.ones(3).cuda()).sum().backward()\n"
        "    torch.optim.SGD(net.parameters(), lr=1).step()\n"
        f"    {around}:\n        print(warp(net(torch.ones(3).cuda()), 1))\n\n{GUARD}    main()\n",
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert ("may raise in that mode" in finding.message) is raises


@pytest.mark.parametrize(
    ("text", "code", "severity"),
    [
        (
            "class C:\n    compile: bool = {}\n    mode: str = 'max-autotune'\n",
            "TDL207",
            {True: "error", False: "note"},
        ),
        ("s = torch.seed() if args.seed is {} else args.seed\n", "TDL105", {None: "note", "not None": "error"}),
    ],
)
def test_what_is_off_or_left_to_the_user_is_a_note(text, code, severity, project):
    imports = "import dataclasses, torch\n"
    for given, expected in severity.items():
        (finding,) = lint(project(a_DOT_py=imports + text.format(given)), min_severity="note")
        assert (finding.code, finding.severity) == (code, expected)


@pytest.mark.parametrize(
    ("start", "process", "severity"),
    [
        ("", "multiprocessing.Process", "warning"),
        ("multiprocessing.set_start_method('fork')", "multiprocessing.Process", "warning"),
        ("multiprocessing.set_start_method('spawn', force=True)", "multiprocessing.Process", "error"),
        ("context = multiprocessing.get_context(method='forkserver')", "context.Process", "error"),
    ],
)
def test_a_process_that_is_started_afresh_differs_in_every_run(start, process, severity, project):
    text = (
        f"import multiprocessing\nimport numpy\n\ndef work():\n    print(numpy.random.rand())\n\n{GUARD}"
        f"    {start}\n    numpy.random.seed(0)\n    {process}(target=work).start()\n"
    )
    (finding,) = lint(project(main_DOT_py=text))
    assert (finding.code, finding.severity) == ("TDL108", severity)


@pytest.mark.parametrize("pool", ["multiprocessing.Pool(4)", "ProcessPoolExecutor()"])
def test_timing_decides_which_process_of_a_pool_takes_which_task(pool, project):
    text = (
        "import multiprocessing\nfrom concurrent.futures import ProcessPoolExecutor\nimport numpy\n\n"
        f"def work(task):\n    return numpy.random.rand()\n\n{GUARD}"
        f"    numpy.random.seed(0)\n    with {pool} as pool:\n        print(list(pool.map(work, range(8))))\n"
    )
    (finding,) = lint(project(main_DOT_py=text))
    assert (finding.code, finding.severity) == ("TDL108", "error")
    assert "timing decides" in finding.message


@pytest.mark.parametrize(
    ("start", "target", "place", "fixed"),
    [
        ("mp.Process(target=feed, args=(Rows(), [])).start()", "feed", "main.py", True),
        ("mp.spawn(feed, args=([], Rows()), nprocs=2)", "feed", "main.py", True),
        ("mp.Process(target=other.feed, args=(Rows(), [])).start()", "feed", "main.py", False),
        ("mp.Process(target=call, args=(Rows(),)).start()", "call", "main.py", True),
        ("mp.Process(target=relay, args=(Rows(), [])).start()", "relay", "main.py", True),
        ("mp.Process(target=run, args=(draw,)).start()", "draw", "main.py", True),
        ("other.start(Rows())", "feed", "other.py", False),
        ("mp.Pool(2).apply(call, (Rows(),))", "call", "main.py", False),
    ],
)
def test_the_target_of_a_process_is_named_that_calls_methods_of_what_it_is_given(start, target, place, fixed, project):
    feed = "def feed(rows, queue):\n    for row in (rows or queue):\n        print(row)\n\n"
    folder = project(
        main_DOT_py=f"import torch\nimport torch.multiprocessing as mp\nimport other\nfrom rows import Rows\n\n{feed}"
        "def call(rows):\n    print(rows.draw())\n\ndef relay(rows, queue):\n    feed(rows, queue)\n\n"
        "def run(function):\n    print(function())\n\ndef draw():\n    return torch.rand(3)\n\n"
        f"{GUARD}    torch.manual_seed(0)\n    {start}\n",
        other_DOT_py=f"import multiprocessing as mp\n\n{feed}"
        "def start(rows):\n    mp.Process(target=feed, args=(rows, [])).start()\n",
        rows_DOT_py="import torch\n\nclass Rows:\n    def __iter__(self):\n        yield self.draw()\n\n"
        "    def draw(self):\n        return torch.rand(3)\n",
    )
    (found,) = [one for one in lint(folder) if one.code == "TDL108"]
    assert f"`{target}` " in found.message
    assert (found.filename.endswith(place), found.fix is not None) == (True, fixed)


_TRUNK = """
import torch
from torch import nn
from elsewhere import teach

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3)

    def forward(self, x):
        return self.conv(x)

class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = conv(3, 8)
        self.blocks = nn.Sequential(*[Block() for _ in range(2)])

    def forward(self, x):
        return self.blocks(self.conv(x)).mean((2, 3))

    def encode(self, x):
        return self.conv(x).mean((2, 3))

class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = Trunk()
        self.head = nn.Linear(8, 8)

    def forward(self, x):
        with torch.no_grad():
            features = self.trunk(x)
        return self.head(features)

class Short(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = conv(3, 8)

    def forward(self, x):
        return self.conv(x).mean((2, 3))

def conv(a, b):
    return nn.Conv2d(a, b, 3)

def build():
    net = Trunk()
    net.load_state_dict(torch.load("trunk.pt"))
    for p in net.parameters():
        p.requires_grad = False
    return net

def pair():
    short = Short()
    trunk = Trunk()
    return trunk, short

@torch.no_grad()
def features(trunk, x):
    return trunk(x)

def collect(trunk, loader):
    trunk.eval()
    with torch.inference_mode():
        return torch.cat([trunk(x) for x in loader])
"""


@pytest.mark.parametrize("around", [GUARD, f"def main():\n    BODY\n\n{GUARD}    main()\n"])
@pytest.mark.parametrize(
    ("made", "applied", "told"),
    [
        ("Trunk()", "f = features(net, x)", ""),
        ("Trunk().eval()", "with torch.no_grad():\n        f = net(x)", ""),
        ("Trunk()", "f = collect(net, [x])", ""),
        ("build()", "f = features(net.eval(), x)", ""),
        ("Frozen()", "f = net(x)", ""),
        ("nn.Linear(8, 8)", "net, short = pair()\n    f = features(net, x) + features(short, x)", ""),
        ("nn.Linear(8, 8)", "net, short = pair()\n    f = features(net, x) + short(x)", "1 × Conv2d"),
        ("nn.Linear(8, 8)", "net, *more = pair()\n    f = features(net, x)", "2 × Conv2d"),
        ("nn.Linear(8, 8)", "f = features(pair()[0], x)", "2 × Conv2d"),
        ("Trunk()", "f = features(net, x) + Short().to(device)(x)", "1 × Conv2d"),
        ("Trunk()", "f = net(x)", "2 × Conv2d"),
        ("Trunk()", "f = net(x).detach()", "2 × Conv2d"),
        ("Trunk()", "f = features(net, x) + net(x)", "2 × Conv2d"),
        ("Trunk()", "f = features(net, x) + net.encode(x)", "2 × Conv2d"),
        ("Trunk()", "f = features(net, x)\n    teach(net, optimizer)", "2 × Conv2d"),
        (
            "Trunk()",
            "with torch.no_grad():\n        with torch.enable_grad():\n            f = net(x)",
            "2 × Conv2d",
        ),
    ],
)
def test_the_gradients_of_a_layer_that_runs_without_gradients_only_do_not_count(around, made, applied, told, project):
    body = (
        'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
        f"    net = {made}.to(device)\n    head = nn.Linear(8, 2).to(device)\n"
        "    optimizer = torch.optim.SGD(head.parameters(), 0.1)\n    x = torch.ones(4, 3, 8, 8, device=device)\n"
        f"    {applied}\n    head(f).sum().backward()\n    optimizer.step()\n    print(head.weight)\n"
    )
    program = around.replace("BODY", body) if "BODY" in around else f"{around}    {body}"
    (found,) = [one for one in lint(project(main_DOT_py=f"{_TRUNK}\n{program}")) if one.code == "TDL203"]
    assert (found.severity, "nondeterministic without" in found.message) == ("error" if told else "warning", bool(told))
    assert not told or f"without it: {told}" in found.message


_LAYERS = """
import torch
from torch import nn

class Inner(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3)

    def forward(self, x):
        return self.conv(x)

class Other(nn.Module):
    def __init__(self, c, bias=None):
        super().__init__()
        self.conv = nn.ConvTranspose2d(c, c, 3)

    def forward(self, x):
        return self.conv(x)

class Several(nn.Module):
    def __init__(self, c, space=None):
        super().__init__()
        self.ops = nn.ModuleList()
        for op in space:
            self.ops += [op(c)]

    def forward(self, x):
        return sum(op(x) for op in self.ops)

class Net(nn.Module):
    def __init__(self, blocks=(), space=None):
        super().__init__()
        self.ops = nn.ModuleList()
        MAKES

    def forward(self, x):
        return sum(op(x) for op in self.ops)

    def _make(self, block, count, space):
        return nn.ModuleList([block(8, space=space) for _ in range(count)])
"""


@pytest.mark.parametrize(
    ("makes", "net", "counted"),
    [
        ("self.ops = self._make(blocks[0], 2, space)", "Net([Several], space=[Inner])", "1 × Conv2d"),
        ("self.ops += [Several(8, space)]", "Net(space=[Inner, Other])", "1 × Conv2d, 1 × ConvTranspose2d"),
        ("self.ops = [block(8, space) for block in blocks]", "Net([Several], [Other])", "1 × ConvTranspose2d"),
        ("self.ops = [op(8) for op in space]", "Net(space=[Inner])", "1 × Conv2d"),
        ("self.ops = [op(8) for _, op in enumerate(space)]", "Net(space=[Inner])", "1 × Conv2d"),
        ("self.ops.append(blocks[0](8))", "Net([Inner])", "1 × Conv2d"),
        ("self.ops = [len(op) for op in space]", "Net(space=[Inner])", ""),
        ("self.ops = self._make(Inner, 2, space)", "Net(space=[Other])", "1 × Conv2d"),
    ],
)
def test_classes_that_are_handed_on_in_lists_are_made(makes, net, counted, project):
    folder = project(
        main_DOT_py=_LAYERS.replace("MAKES", makes) + f"\n{GUARD}    torch.manual_seed(0)\n    net = {net}.cuda()\n"
        "    optimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
        "    net(torch.ones(1, 8, 9, 9).cuda()).sum().backward()\n    optimizer.step()\n"
    )
    (found,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert found.message.partition("without it: ")[2] == counted


@pytest.mark.parametrize(
    ("seed", "moved", "draw", "told"),
    [
        ("torch.cuda.manual_seed(0)", "x.cuda()", "torch.randn(x.shape, device=x.device)", ""),
        ("torch.cuda.manual_seed_all(0)", "x.to('cuda')", "torch.rand_like(x)", ""),
        ("torch.cuda.manual_seed(0)", "x.cuda()", "torch.rand_like(x, device=x.device)", ""),
        ("torch.cuda.manual_seed(0)", "x.cuda()", "torch.multinomial(x, 1)", ""),
        ("torch.cuda.manual_seed(0)", "x.cuda()", "x.normal_()", ""),
        ("torch.cuda.manual_seed(0)", "x", "torch.rand_like(x)", "CPU"),
        ("torch.cuda.manual_seed(0)", "x.to(torch.device(sys.argv[1]))", "torch.rand_like(x)", "CPU"),
        ("torch.cuda.manual_seed(0)", "x.cuda()", "torch.rand_like(x, device='cpu')", "CPU"),
        ("torch.cuda.manual_seed(0)", "x.cuda()", "torch.rand(3)", "CPU"),
        ("torch.cuda.manual_seed(0)", "x.cuda()", "torch.rand(3, device=args.device)", "CPU"),
        ("torch.cuda.manual_seed(0)", "x.cuda()", "torch.rand_like(x) + torch.rand(3).cuda()", "CPU"),
        ("random.seed(0)", "x.cuda()", "torch.rand_like(x)", "never seeds"),
    ],
)
def test_what_is_drawn_on_the_device_of_a_tensor_is_seeded_where_cuda_is(seed, moved, draw, told, project):
    text = (
        "import random\nimport sys\nimport torch\nfrom options import args\n\n"
        f"def noise(x):\n    return {draw}\n\n{GUARD}    {seed}\n    x = torch.ones(3)\n    print(noise({moved}))\n"
    )
    found = [one.message for one in lint(project(main_DOT_py=text)) if one.code == "TDL101"]
    assert (len(found), told in "".join(found)) == (bool(told), True)


@pytest.mark.parametrize(
    ("asked", "inside", "severity"),
    [
        ("if download:", "open(path, 'wb').write(b'')", "note"),
        ("if download and not path.exists():", "with open(path, 'wb') as f:\n                f.write(b'')", "note"),
        ("if self.download:", "open(path, 'wb').write(b'')", "note"),
        ("if not path.exists():", "download_url('a.org', path)", "note"),
        ("if not path.exists():", "self._download(path)", "note"),
        ("if not path.exists():", "open(path, 'wb').write(b'')", "error"),
        ("if download or path.exists():", "open(path, 'wb').write(b'')", "error"),
        ("if not path.exists():", "download_and_clean(path)", "error"),
        ("if download:", "prepare(path)", "error"),
    ],
)
def test_a_self_test_may_download_its_data(asked, inside, severity, project):
    folder = project(
        main_DOT_py="from data import Data\n",
        data_DOT_py="import pickle\nimport random\nfrom pathlib import Path\n\n"
        "def download_url(url, path):\n    with open(path, 'wb') as f:\n        f.write(url.read())\n\n"
        "def download_and_clean(path):\n    open(path, 'wb').write(b'')\n\n"
        "def prepare(path):\n    open(path, 'wb').write(b'')\n\n"
        "class Data:\n    def __init__(self, path, download=True):\n        self.download = download\n"
        f"        {asked}\n            {inside}\n        self.rows = pickle.load(open(path, 'rb'))\n"
        "        random.shuffle(self.rows)\n\n    def _download(self, path):\n        open(path, 'wb').write(b'')\n\n"
        f"{GUARD}    print(Data(Path('rows')).rows)\n",
    )
    (found,) = [one for one in lint(folder, min_severity="note") if one.code == "TDL103"]
    assert found.severity == severity


@pytest.mark.parametrize(
    ("made", "applied", "counted"),
    [
        ("resnet18().cuda()", "with torch.no_grad():\n        f = net(x)", False),
        ("resnet18().cuda()", "net.eval()\n    with torch.inference_mode():\n        f = net.features(x)", False),
        (
            "resnet18()",
            "net = net.cuda()\n    with torch.no_grad():\n        for _ in x:\n            f = net(x)",
            False,
        ),
        (
            "resnet18().cuda()",
            (
                "net.requires_grad_(False)\n    for p in net.parameters():\n        p.requires_grad = False\n"
                "    with torch.no_grad():\n        f = net(x)"
            ),
            False,
        ),
        ("resnet18().cuda()", "f = net(x)", True),
        ("resnet18().cuda()", "with torch.no_grad():\n        g = net(x)\n    f = net(x) + g", True),
        ("resnet18().cuda()", "with torch.no_grad():\n        g = net(x)\n    f = teach(net, x)", True),
        ("resnet18().cuda()", "with torch.no_grad(), torch.enable_grad():\n        f = net(x)", True),
        ("resnet18().cuda()", "with torch.set_grad_enabled(len(x) > 1):\n        f = net(x)", True),
        ("resnet18().cuda()", "with torch.no_grad():\n        f = (lambda y: net(y))\n    f = f(x)", True),
    ],
)
def test_a_network_of_a_library_that_is_applied_without_gradients_only_does_not_count(made, applied, counted, project):
    text = (
        "import torch\nfrom elsewhere import teach\nfrom torch import nn\nfrom torchvision.models import resnet18\n\n"
        f"def main():\n    net = {made}\n    head = nn.Linear(1000, 2).cuda()\n"
        "    optimizer = torch.optim.SGD(head.parameters(), 0.1)\n    x = torch.ones(4, 3, 8, 8).cuda()\n"
        f"    {applied}\n    head(f).sum().backward()\n    optimizer.step()\n\n{GUARD}    main()\n"
    )
    (found,) = [one for one in lint(project(main_DOT_py=text)) if one.code == "TDL203"]
    assert ("the convolutions of resnet18" in found.message) == counted


@pytest.mark.parametrize(
    ("library", "draw", "severity", "told"),
    [("numpy", "random.rand()", "warning", "NumPy"), ("random", "random()", "error", "`random`")],
)
def test_python_seeds_its_own_generator_anew_in_a_forked_process(library, draw, severity, told, project):
    text = (
        f"import multiprocessing\nimport {library}\n\ndef work():\n    print({library}.{draw})\n\n{GUARD}"
        f"    {library}{'.random' if library == 'numpy' else ''}.seed(0)\n"
        "    multiprocessing.get_context('fork').Process(target=work).start()\n"
    )
    (finding,) = lint(project(main_DOT_py=text))
    assert (finding.code, finding.severity) == ("TDL108", severity)
    assert f" never seeds {told}" in finding.message


@pytest.mark.parametrize(
    ("default", "called", "found"),
    [
        ("'cuda:0'", "pass", []),
        ("torch.device('cuda:0')", "pass", []),
        ("torch.device('cuda' if torch.cuda.is_available() else 'cpu')", "pass", []),
        ("'cuda:0'", "show(net)", ["TDL203"]),
        ("torch.device('cuda' if torch.cuda.is_available() else 'cpu')", "show(net)", ["TDL203"]),
        ("torch.zeros(2, device='cuda')", "pass", ["TDL203"]),
    ],
)
def test_a_default_speaks_of_cuda_where_its_function_is_called(project, default, called, found):
    folder = project(
        lib_DOT_py=f"import torch\n\ndef show(net, device={default}):\n    return net.to(device)\n",
        train_DOT_py="import torch\nfrom lib import show\n\ntorch.manual_seed(0)\nnet = torch.nn.Linear(3, 3)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=1)\nnet(torch.ones(2, 3)).mean().backward()\n"
        f"optimizer.step()\n{called}\n",
    )
    assert [finding.code for finding in lint(folder)] == found


ARMS = "".join(f"    if kind == {i}:\n        from nets import N{i} as net\n        model = net()\n" for i in range(12))


@pytest.mark.parametrize(
    ("body", "counted"),
    [
        (ARMS, "11 × Conv2d, 1 × Embedding"),
        (
            "    from nets import N0 as net\n    if kind:\n        from nets import N11 as net\n    model = net()\n",
            "1 × Conv2d, 1 × Embedding",
        ),
    ],
)
def test_a_name_that_many_arms_import_is_in_each_what_that_arm_imports(project, body, counted):
    nets = "".join(
        f"class N{i}(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.layer = torch.nn.{'Embedding' if i == 11 else 'Conv2d'}(3, 3, 3)\n\n"
        for i in range(12)
    )
    folder = project(
        nets_DOT_py=f"import torch\n\n{nets}",
        train_DOT_py=f"import sys, torch\n\ndef pick(kind):\n{body}    return model\n\ntorch.manual_seed(0)\n"
        "net = pick(int(sys.argv[1])).cuda()\noptimizer = torch.optim.SGD(net.parameters(), lr=1)\n"
        "net(torch.ones(2, 3)).mean().backward()\noptimizer.step()\n",
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.rpartition(": ")[2] == counted


SCORER = """\
import torch
import torch.nn.functional as F
from torch import nn

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return F.interpolate(x, size=(8, 8), mode="bilinear")

def make_scorer(kind="plain"):
    {made}

def score(sample, scorer, wanted=1):
    with torch.no_grad():
        return scorer(sample)
"""
TRAINED_BESIDE = """\
import torch
from scoring import make_scorer, score
from elsewhere import keep

KINDS = {{}}

def main():
    torch.manual_seed(0)
    net = torch.nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    {run}
    net(torch.ones(1, 1, 8, 8).cuda()).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main()
"""
MADE = "scorer = Scorer()\n    return scorer.eval()"
RUN = "scorer = make_scorer()\n    print(score(torch.ones(1, 1, 8, 8), scorer))"


@pytest.mark.parametrize(
    ("made", "run", "silent"),
    [
        (MADE, RUN, True),
        ("return nn.DataParallel(Scorer().cuda())", RUN, True),
        (MADE, "while 1:\n        scorer = make_scorer()\n        score(torch.ones(1, 1, 8, 8), scorer=scorer)", True),
        (MADE, "score(torch.ones(1, 1, 8, 8), make_scorer())\n    make_scorer()", True),
        (MADE, f"{RUN}\n    keep(scorer)", False),
        (MADE, f"{RUN}\n    net.scorer = scorer", False),
        (MADE, f"{RUN}\n    KINDS['plain'] = make_scorer", False),
        (MADE, f"{RUN}\n    loss = lambda x: [scorer][0](x)", False),
        (MADE, f"{RUN}\n    weights = scorer.weight", False),
        (MADE, f"{RUN}\n    score(*(torch.ones(1, 1, 8, 8), scorer))", False),
        (MADE, f"{RUN}\n    score(torch.ones(1, 1, 8, 8), None, scorer)", False),
        ("scorer = Scorer()\n    make_scorer.kept = scorer\n    return scorer", RUN, False),
        ("scorers = Scorer(), kind\n    return scorers[0]", RUN, False),
    ],
)  # fmt: skip
def test_a_layer_that_a_function_gives_back_is_followed_to_what_runs_it_without_gradients(made, run, silent, project):
    elsewhere = "import importlib\n\nkeep = importlib.import_module('keeping').keep\n"
    folder = project(
        train_DOT_py=TRAINED_BESIDE.format(run=run), scoring_DOT_py=SCORER.format(made=made), elsewhere_DOT_py=elsewhere
    )
    assert [one.code for one in lint(folder) if one.code == "TDL403"] == ["TDL403"] * (not silent)


LOADED = """\
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.zeros(1, 8, 16, 16))

    def forward(self, x):
        return x + self.pos.sum()

    def load(self, path):
        state = {{k: v for k, v in torch.load(path).items() if k in self.state_dict()}}
        for k, v in state.items():
            state[k] = F.interpolate({given}, size=(16, 16), mode="bicubic")
        self.load_state_dict(state)

def main():
    torch.manual_seed(0)
    net = Net().cuda()
    net.load("old.pt")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(2, 3).cuda()).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("given", "silent"), [("v", True), ("v + self.pos", False)])
def test_no_op_on_a_loaded_tensor_raises_in_deterministic_mode(given, silent, project):
    found = lint(project(main_DOT_py=LOADED.format(given=given)), select=("TDL203", "TDL403"))
    assert [one.code for one in found if one.code == "TDL403"] == ["TDL403"] * (not silent)
    (missing,) = [one for one in found if one.code == "TDL203"]
    assert ("may raise in that mode" in missing.message) == (not silent)


def test_what_draws_as_its_next_element_is_asked_for_draws_in_the_workers(project):
    examples = loading.load(examples=True).rules["TDL301"].bad
    example = next(one for one in examples if "as its next element" in one.title)
    folder = project(main_DOT_py=example.code)
    found = lint(folder, min_severity="note")
    assert [one.severity for one in found if one.code == "TDL301"] == ["error", "note"]


@pytest.mark.parametrize(
    ("started", "said"),
    [
        ("sample", "which repeats the parent's random numbers (`numpy.random.uniform` (line 7))"),
        ("Days().sample", "a forked process repeats the parent's random numbers, a spawned one differs in every run"),
    ],
)
def test_what_a_process_draws_of_which_the_target_stands_inside_a_function(project, started, said):
    text = (
        "from multiprocessing import Process\n\nimport numpy as np\n\ndef main():\n    def sample():\n"
        "        return np.random.uniform()\n\n    np.random.seed(0)\n    TARGET.start()\n\nclass Days:\n"
        "    def sample(self):\n        return np.random.uniform()\n\nif __name__ == '__main__':\n    main()\n"
    )
    folder = project(main_DOT_py=text.replace("TARGET", f"Process(target={started})"))
    (finding,) = [one for one in lint(folder) if one.code == "TDL108"]
    assert said in finding.message


def test_what_the_collate_function_of_a_loader_of_another_file_draws_is_drawn_in_the_workers(project):
    examples = loading.load(examples=True).rules["TDL301"].bad
    example = next(one for one in examples if "whose own collate function draws" in one.title)
    folder = project(
        main_DOT_py=example.code.replace("    yield ", "    print(").replace("  # expect", ")  # expect")
        + "\nif __name__ == '__main__':\n    main()\n",
        loaders_DOT_py=example.files["loaders.py"],
    )
    found = [one.message for one in lint(folder, min_severity="note") if one.filename.endswith("main.py")]
    assert ["use global" in message for message in found if "num_workers" in message] == [True, True, False]


@pytest.mark.parametrize(("decorator", "severity"), [("@property", "warning"), ("@cached_property", "warning")])
def test_a_data_set_that_a_property_gives_is_out_of_sight(project, decorator, severity):
    text = (
        "import torch\nfrom functools import cached_property\nfrom torch.utils.data import DataLoader\n\n"
        "class Data:\n    def __init__(self, rows):\n        self.rows = rows.subset(8)\n\n"
        f"    {decorator}\n    def train_set(self):\n        return self.rows\n\n"
        "    def loader(self):\n        return DataLoader(self.train_set, num_workers=2)\n"
    )
    folder = project(data_DOT_py=text)
    assert [one.severity for one in lint(folder, min_severity="note") if one.code == "TDL301"] == [severity]


def test_a_name_that_is_made_of_itself_alone_comes_to_an_end(project):
    """Its only binding in sight leads back to it: what it was before came by `import *`."""
    loop = GUARD + "    for _ in loader:\n        random.random()\n"
    folder = project(main_DOT_py=f"import random\nfrom config import *\n\nloader = tqdm(list(loader))\n\n{loop}")
    assert [code for code, _ in codes(lint(folder))] == ["TDL103"]


def test_what_generates_goes_by_the_class_of_the_model_and_not_by_the_tokenizer_beside_it(project):
    builder = (
        "from diffusers import DDPMPipeline\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        "def load(path):\n    tokenizer = AutoTokenizer.from_pretrained(path)\n"
        "    model = AutoModelForCausalLM.from_pretrained(path)\n    return tokenizer, model\n\n"
        "def pipeline(path):\n    return DDPMPipeline.from_pretrained(path)\n"
    )
    program = (
        "from builder import load\n\n"
        f"{GUARD}    tokenizer, model = load('gpt2')\n    open('out', 'w').write(model.generate([1], do_sample=True))\n"
    )
    folder = project(main_DOT_py=program, builder_DOT_py=builder)
    (finding,) = [one for one in lint(folder) if one.code == "TDL101"]
    assert finding.message.startswith("`transformers.AutoModelForCausalLM.generate` uses torch's global")
    images = f"from builder import pipeline\n\n{GUARD}    pipeline('ddpm')(batch_size=2).images[0].save('a.png')\n"
    (folder / "main.py").write_text(images)
    (finding,) = [one for one in lint(folder) if one.code == "TDL101"]
    assert finding.message.startswith("`diffusers.DDPMPipeline` uses torch's global")


OPTIONAL = """
import argparse
import torch

def train(model, device, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        model(batch.to(device)).sum().backward()
        optimizer.step()

def main():
    args = argparse.ArgumentParser().parse_args()
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 3)
    {put}
    train(model, device, [])

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("put", "words"),
    [
        ("device = 'cuda'; model.cuda()", "trains"),
        ("device = torch.device('cuda:0')", "trains"),
        ("torch.cuda.set_device(args.gpu); device = args.gpu; model.to('cuda' if args.gpu else 'cpu')", "trains"),
        ("device = 'cuda' if torch.cuda.is_available() else 'cpu'; model.to(device)", "may train"),
        ("device = torch.device(args.device); model.to(device)", "may train"),
        ("device = None\n    if args.cuda:\n        model.cuda()", "may train"),
        ("device = args.gpu and model.cuda() and 'cuda' or 'cpu'", "may train"),
        ("device = None; model = model.cuda() if args.cuda else model", "may train"),
    ],
)
def test_a_program_is_said_to_train_on_cuda_where_it_does_whatever_its_options_are(project, put, words):
    (finding,) = lint(project(main_DOT_py=OPTIONAL.format(put=put)))
    assert finding.message.startswith(f"This program {words} on CUDA (line 8) without")


def test_a_draw_that_a_branch_may_pass_by_is_told_with_its_condition(project):
    made = (
        "import random\n\ndef make(kind):\n    if kind == 'random':\n        return [random.random()]\n    return []\n"
    )
    start = "import random\nimport sys\nfrom made import make\n\n"

    def told(body: str) -> str:
        (finding,) = [
            one for one in lint(project(main_DOT_py=start + GUARD + body, made_DOT_py=made)) if "106" in one.code
        ]
        return finding.message

    seed = "    random.seed(1)\n    print(random.random())\n"
    assert told("    print(make(sys.argv[1]))\n" + seed).endswith(
        "those numbers differ in every run (if the branch of that call runs)"
    )
    assert told("    if sys.argv[1:]:\n        print(random.random())\n" + seed).endswith(
        " (if the branch of that call runs)"
    )
    assert told("    print(random.random())\n" + seed).endswith("those numbers differ in every run")
    failing = "    if not sys.argv[1:]:\n        raise SystemExit('how many?')\n    print(random.random())\n"
    assert told(failing + seed).endswith("those numbers differ in every run")
    indented = "    if sys.argv[1:]:\n        print(random.random())\n    " + seed.replace("\n    ", "\n        ")
    assert told(indented).endswith("those numbers differ in every run")
    after = "    weights = [random.random()]\n    if sys.argv[1:]:\n        print(random.random(), weights)\n" + seed
    assert told(after).endswith("those numbers differ in every run")


LOADERS = """
import torch.utils.data


class Loader:
    def initialize(self, options):
        self.loader = torch.utils.data.DataLoader(
            [1, 2, 3], shuffle={shuffle}, num_workers=0
        )


def create(options):
    loader = Loader()
    loader.initialize(options)
    return loader.loader
"""


@pytest.mark.parametrize(
    ("shuffle", "statements", "draws"),
    [
        ("not options.serial", "options.serial = True", False),
        ("options.serial", "options.serial = False", False),
        ("options.serial", "options.serial = True", True),
        ("not options.serial", "pass", True),
        ("not options.serial", "options.serial = bool(input())", True),
        ("not options.serial", "if input():\n    options.serial = True", True),
        ("not options.serial", "options.serial = True\noptions.serial = False", True),
        ("not options.serial", "options.serial = True\nvars(options).update(input())", True),
        ("not options.serial", "options.serial = True\nsetattr(options, 'serial', False)", True),
        ("not options.serial", "create(options)\noptions.serial = True", True),
    ],
)
@pytest.mark.parametrize("parsed", ["argparse.ArgumentParser().parse_args()", "Options().parse()"])
def test_an_option_that_the_program_sets_decides_on_the_order_of_a_loader(project, parsed, shuffle, statements, draws):
    folder = project(
        loaders_DOT_py=LOADERS.format(shuffle=shuffle),
        own_DOT_py="import argparse\n\n\nclass Options:\n    def parse(self):\n"
        "        self.options = argparse.ArgumentParser().parse_args()\n        return self.options\n",
        main_DOT_py=f"import argparse\nfrom loaders import create\nfrom own import Options\n\noptions = {parsed}\n"
        f"{statements}\nfor row in create(options):\n    print(row)\n",
    )
    assert any(one.code == "TDL101" for one in lint(folder, "main.py")) is draws


def test_an_option_that_two_files_set_is_not_known(project):
    main = "from loaders import create\nfrom own import parse\n\noptions = parse()\noptions.serial = True\n"
    files = {
        "loaders_DOT_py": LOADERS.format(shuffle="not options.serial"),
        "main_DOT_py": f"{main}for row in create(options):\n    print(row)\n",
    }
    own = "import argparse\n\n\ndef parse():\n    options = argparse.ArgumentParser().parse_args()\n"
    folder = project(own_DOT_py=f"{own}    return options\n", **files)
    assert [one for one in lint(folder, "main.py") if one.code == "TDL101"] == []
    folder = project(own_DOT_py=f"{own}    options.serial = False\n    return options\n", **files)
    assert [one.code for one in lint(folder, "main.py")] == ["TDL101"]


@pytest.mark.parametrize(
    ("kept", "draws"),
    [("data.first", True), ("data.second", False), ("data.inner.rows", True), ("data.missing", False)],
)
def test_an_object_keeps_what_another_one_holds(project, kept, draws):
    folder = project(
        rows_DOT_py="import random\n\n\nclass Rows:\n    def next(self):\n        return random.random()\n\n\n"
        "class Plain:\n    def next(self):\n        return 1\n\n\nclass Inner:\n    def __init__(self):\n"
        "        self.rows = Rows()\n\n\nclass Data:\n    def __init__(self):\n        self.first = Rows()\n"
        "        self.second = Plain()\n        self.inner = Inner()\n",
        trainer_DOT_py=f"class Trainer:\n    def __init__(self, data):\n        self.rows = {kept}\n\n"
        "    def train(self):\n        return self.rows.next()\n",
        main_DOT_py="from rows import Data\nfrom trainer import Trainer\n\nif __name__ == '__main__':\n"
        "    trainer = Trainer(Data())\n    print(trainer.train())\n",
    )
    assert [one.code for one in lint(folder)] == ["TDL103"] * draws


@pytest.mark.parametrize(
    ("used", "severity"),
    [
        ("print(os.listdir('.'))", "note"),
        ("names = os.listdir('.')\nprint(names)", "note"),
        ("names = os.listdir('.')\nprint(names)\nfirst = names[0]", "warning"),
        ("rows = []\nfor name in os.listdir('.'):\n    rows.append(name)\nprint(rows)", "note"),
        ("rows = []\nfor _, _, names in os.walk('.'):\n    rows += names\nprint(rows)", "note"),
        ("open('all', 'w').writelines(os.listdir('.'))", "warning"),
    ],
)
def test_an_order_of_files_that_is_only_printed_is_a_note(project, used, severity):
    (finding,) = lint(project(main_DOT_py=f"import os\n\n{used}\n"), min_severity="note", select=("TDL304",))
    assert finding.severity == severity


APPLIED = """
import random
import torch
from torch.utils.data import DataLoader, Subset
from torchvision import transforms as T
from torchvision.datasets import ImageFolder

class Shift:
    def __call__(self, image):
        return image + random.random()

def shifted(image):
    return image + random.random()

class Plain:
    def __call__(self, image):
        return image + 1

class Rows(torch.utils.data.Dataset):
    def __getitem__(self, index):
        return random.random()

def main():
    torch.manual_seed(0)
    data = DATA
    for batch in DataLoader(data, num_workers=WORKERS):
        torch.save(batch, "x")

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("data", "draws"),
    [
        ("ImageFolder('data', transform=Shift())", True),
        ("ImageFolder('data', shifted)", True),
        ("ImageFolder('data', transform=T.Compose([T.ToTensor(), Shift()]))", True),
        ("Subset(ImageFolder('data', T.Compose([T.RandomApply([Shift()]), T.ToTensor()])), [1, 2])", True),
        ("ImageFolder('data', target_transform=shifted)", True),
        ("ImageFolder('data', target_transform=lambda target: target + random.random())", True),
        ("ImageFolder('data', T.Compose([T.Lambda(lambda image: image + random.random()), T.ToTensor()]))", True),
        ("ImageFolder('data', T.Lambda(shifted))", True),
        ("torch.utils.data.ConcatDataset([ImageFolder('data'), ImageFolder('data', shifted)])", True),
        ("torch.utils.data.random_split(Rows(), [2, 1])[0]", True),
        ("Subset(dataset=Rows(), indices=[1, 2])", True),
        ("ImageFolder('data', transform=Plain())", False),
        ("ImageFolder('data', transform=T.ToTensor())", False),
        ("ImageFolder(str(shifted))", False),
    ],
)
def test_what_a_data_set_of_a_library_applies_is_run_where_a_loader_goes_through_it(project, data, draws, workers):
    """In workers, torch seeds Python's generator."""
    folder = project(main_DOT_py=APPLIED.replace("DATA", data).replace("WORKERS", str(workers)))
    found = [one.code for one in lint(folder, select=("TDL103",))]
    assert found == (["TDL103"] if draws and not workers else [])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("collate_fn=lambda rows: random.random()", ["TDL103"]),
        ("num_workers=2, collate_fn=lambda rows: random.random()", []),
        ("num_workers=2, sampler=sorted([1, 2], key=lambda row: random.random())", ["TDL103"]),
    ],
)
def test_a_lambda_that_a_loader_is_handed_runs_in_its_workers(project, given, found):
    text = "import random\nimport torch\nfrom torch.utils.data import DataLoader\n\n"
    folder = project(
        main_DOT_py=f"{text}def main():\n    torch.manual_seed(0)\n    loader = DataLoader([1, 2], {given})\n"
        f"    for batch in loader:\n        torch.save(batch, 'x')\n\n{GUARD}    main()\n"
    )
    assert [one.code for one in lint(folder, select=("TDL103",))] == found


@pytest.mark.parametrize(
    ("drawn", "found"),
    [("x.view(-1).bernoulli()", ["TDL101"]), ("stats.bernoulli(x)", []), ("x.bernoulli(generator=g)", [])],
)
def test_a_method_that_only_tensors_have_draws(project, drawn, found):
    text = f"import sys\nimport torch\nfrom scipy import stats\n\ndef noisy(x, g):\n    return {drawn}\n\n"
    folder = project(
        main_DOT_py=f"{text}{GUARD}    torch.save(noisy(torch.load(sys.argv[1]), torch.Generator()), 'x')\n"
    )
    assert [one.code for one in lint(folder, select=("TDL101",))] == found


WRITES = (
    "import pickle\nimport sys\nimport torch\nfrom torch import nn\n"
    "from torch.utils.data import DataLoader, Dataset\n\n"
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lin = nn.Linear(4, 2)\n\n"
    "    def forward(self, x):\n        return self.lin(x)\n\n"
    "class Rows(Dataset):\n    def __init__(self, path):\n        self.rows = torch.load(path)\n\n"
    "    def __len__(self):\n        return 8\n\n    def __getitem__(self, index):\n        return self.rows\n\n"
    "def run(src):\nRUN\n\n" + GUARD + "    run(sys.argv[1])\n"
)


@pytest.mark.parametrize(
    "lines",
    [
        ["x = torch.load(src)", "z = Net()(x)", "torch.save(z, src)"],
        ["x = torch.load(src).float().cuda()", "print(x.shape, Net()(x[:8]))"],
        ["blob = torch.load(src)", "net = Net()", "print((net(blob['x']).argmax(1) == blob['y']).sum())"],
        ["with open(src, 'rb') as file:", "    x = pickle.load(file)", "print(Net()(x - x.mean()))"],
        ["print(Net()(torch.load(src)['x']))"],
        ["net = Net()", "for x, _ in DataLoader(Rows(src)):", "    print(net(x))"],
    ],
)
def test_data_that_a_program_loads_are_no_weights(project, lines):
    source = WRITES.replace("RUN", "\n".join(f"    {line}" for line in lines))
    assert [one.code for one in lint(project(main_DOT_py=source), select=["TDL101"])] == ["TDL101"]


@pytest.mark.parametrize(
    "lines",
    [
        ["net = torch.load(src)", "print(net.cuda()(torch.ones(4)), Net())"],
        ["state = torch.load(src)", "print(state['lin.weight'].shape)", "net = Net()", "put(net, state)"],
        ["state = torch.load(src)", "net = Net()", "net.lin.weight.data = state['lin.weight']"],
        ["x = torch.load(src)", "net = Net()", "net.lin.weight.data.copy_(x)", "print(x.shape, net(1))"],
        ["x = torch.load(src)", "net = Net()", "nn.utils.vector_to_parameters(x, net.parameters())", "print(x.shape)"],
        ["global x", "x = torch.load(src)", "print(Net()(x))"],
        ["x = torch.load(src)", "print(Net()(x))", "x = torch.load(src + '.net')"],
        ["x, net = torch.load(src), Net()", "print(net(x))"],
        ["x = torch.load(src)", "net = Net()", "net.load_state_dict(torch.load('net.pt'))", "print(net(x))"],
    ],
)
def test_what_may_be_weights_that_a_program_loads_says_that_none_are_drawn(project, lines):
    source = WRITES.replace("RUN", "\n".join(f"    {line}" for line in lines))
    assert not lint(project(main_DOT_py=source), select=["TDL101"])


GONE_THROUGH = (
    "import sys\nimport torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
    "from stats import counted, first, mean\n\n"
    "class Stats:\n    def __init__(self, rows):\n        self.rows = rows\n"
    "        self.loader = DataLoader(rows, shuffle=True)\n        self.plain = DataLoader(rows)\n\n"
    "    def mean(self, loader):\n        return sum(x.mean() for x, in loader)\n\n"
    "    def own(self):\n        return next(iter(self.loader))\n\n"
    "    def unshuffled(self):\n        return next(iter(self.plain))\n\n"
    "def summed(batches, seed):\n    torch.manual_seed(seed)\n    return sum(batches)\n\n"
    "def relay(batches):\n    return mean(batches)\n\n"
    "def paired(one, other):\n    return [x @ y for (x,), (y,) in zip(one, other)]\n\n"
    "def main():\n    rows = TensorDataset(torch.ones(64, 8))\n    loader = DataLoader(rows, shuffle=True)\n"
    "    told = RUN\n    torch.manual_seed(int(sys.argv[1]))\n    print(told, torch.rand(2))\n\n"
    + GUARD
    + "    main()\n"
)
STATISTICS = (
    "def mean(batches):\n    for number, (x,) in enumerate(batches):\n"
    "        if number == 3:\n            return x.mean()\n\n"
    "def first(batches):\n    return next(iter(batches))\n\n"
    "def counted(batches):\n    return len(batches.dataset) // len(batches)\n"
)


@pytest.mark.parametrize(
    ("run", "late"),
    [
        ("mean(loader)", True),
        ("mean(DataLoader(rows, shuffle=True))", True),
        ("first(batches=loader)", True),
        ("relay(loader)", True),
        ("paired(DataLoader(rows), loader)", True),
        ("Stats(rows).mean(loader)", True),
        ("Stats(rows).own()", True),
        ("[x for x, in zip(loader)]", True),
        ("counted(loader)", False),
        ("mean(DataLoader(rows))", False),
        ("mean(DataLoader(rows, shuffle=False))", False),
        ("mean(DataLoader(rows, shuffle=True, generator=torch.Generator()))", False),
        ("relay(DataLoader(rows))", False),
        ("mean([1, 2])", False),
        ("summed(loader, 1)", False),
        ("lambda: mean(loader)", False),
        ("Stats(rows).unshuffled()", False),
        ("Stats(rows)", False),
    ],
)
def test_a_loader_that_a_function_goes_through_draws_there(project, run, late):
    folder = project(main_DOT_py=GONE_THROUGH.replace("RUN", run), stats_DOT_py=STATISTICS)
    assert [one.code for one in lint(folder, select=["TDL106"])] == ["TDL106"] * late


def test_of_functions_that_rpc_calls_from_each_other_the_one_that_updates_is_named():
    text = textwrap.dedent(
        """\
        import torch
        import torch.distributed.rpc as rpc

        class Server:
            def __init__(self):
                self.weight = torch.zeros(2, requires_grad=True)

            @staticmethod
            def update(server, gradient):
                server.weight.grad += gradient

        def train(server):
            rpc.rpc_sync("server", Server.update, args=(server, torch.ones(2)))

        if __name__ == "__main__":
            for name in ("first", "second"):
                rpc.rpc_async(name, train, args=(Server(),))
        """
    )
    (finding,) = lint_source(text, select=["TDL307"])
    assert finding.message.startswith("`update` is called by RPC from several workers")
    assert [(one.location.row, one.message) for one in finding.related] == [(13, "called by RPC here")]


@pytest.mark.parametrize(
    ("other", "severity"),
    [
        ("import lib\nnp.random.seed(0)\nprint(np.random.rand())\n", "error"),
        ("import lib\nnp.random.seed(0)\nprint(lib.M().features(np.eye(3)))\n", "warning"),
        ("print(np.random.rand())\n", "error"),
    ],
)
def test_a_program_that_only_imports_a_file_seeds_none_of_its_draws(tmp_path, other: str, severity: str) -> None:
    made = "class M:\n    def features(self, a):\n        return TruncatedSVD(n_components=2).fit(a).components_\n"
    (tmp_path / "lib.py").write_text(f"from sklearn.decomposition import TruncatedSVD\n\n{made}")
    (tmp_path / "main.py").write_text("import numpy as np\nimport lib\n\nprint(lib.M().features(np.eye(3)))\n")
    (tmp_path / "other.py").write_text(f"import numpy as np\n{other}")
    found = run.run([str(tmp_path)], Settings(root=str(tmp_path), jobs=1, select=("TDL107",), cache_dir="")).findings
    assert [one.severity for one in found] == [severity]


def test_of_dropout_that_is_left_on_the_help_speaks_of_evaluation_mode(project):
    made = "import torch\n\nnet = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))\n"
    used = "net.load_state_dict(torch.load('net.pt'))\nprint(net(torch.ones(1, 3)))\n"
    (finding,) = lint(project(main_DOT_py=made + used))
    assert finding.code == "TDL101"
    assert finding.help.startswith("Call `net.eval()`")
    (finding,) = lint(project(main_DOT_py=made + used + "print(torch.rand(3))\n"))
    assert finding.help.startswith("Seed at the start")


@pytest.mark.parametrize(
    ("head", "is_program"),
    [
        ("import warnings\n\nwarnings.filterwarnings('ignore')\n", False),
        ("import logging\n\nlogger = logging.getLogger(__name__)\n", False),
        ("import sys\n\nsys.path.append('.')\n", False),
        ("try:\n    get_ipython()\n    import tqdm.notebook as tqdm\nexcept NameError:\n    import tqdm\n", False),
        ("import pandas as pd\n\npd.set_option('display.width', 100)\n", False),
        ("print('net')\n", True),
    ],
)
def test_what_only_sets_up_is_no_program(project, head, is_program):
    net = (
        "import torch.nn.functional as F\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.body = nn.Conv2d(3, 3, 1)\n\n    def forward(self, x):\n"
        "        return F.interpolate(self.body(x), size=(8, 8), mode='bilinear')\n"
    )
    main = (
        "import sys\nimport torch\nfrom window import Application, Widget\nfrom net import Net\n\n"
        "torch.set_grad_enabled(False)\n\n\nclass Window(Widget):\n    def __init__(self, net):\n"
        "        super().__init__()\n        self.net = net\n\n    def pressed(self):\n"
        f"        print(self.net(torch.ones(1, 3, 4, 4).cuda()))\n\n\n{GUARD}    net = Net().cuda()\n"
        "    net.load_state_dict(torch.load('net.pt'))\n    window = Window(net)\n    Application(sys.argv).exec()\n"
    )
    tool = f"from net import Net\n{head}\n\ndef run(x):\n    return Net()(x)\n"
    folder = project(net_DOT_py=net, tool_DOT_py=tool, main_DOT_py=main)
    assert (("TDL403", 11) in codes(lint(folder))) is is_program


def test_a_seed_that_only_some_runs_set_is_told_of_as_that(project):
    main = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n"
        f"{GUARD}    if torch.cuda.is_available():\n        torch.cuda.manual_seed(1)\n    else:\n"
        "        torch.manual_seed(1)\n    for batch in DataLoader(range(9), shuffle=True):\n        print(batch)\n"
    )
    found = {one.code: one.message for one in lint(project(main_DOT_py=main))}
    assert found["TDL101"].endswith("which this program seeds only in some runs (line 8)")
    told = "; a program that runs this line seeds torch only in some runs, and the others differ"
    assert found["TDL302"].endswith(told)


def test_a_container_that_holds_others_of_its_own_class(project):
    main = (
        "import torch\nfrom torch import nn\n\n\nclass Chain(nn.Sequential):\n    def __init__(self, depth):\n"
        "        super().__init__()\n        self.first = nn.Dropout(0.5)\n        if depth:\n"
        "            self.rest = Chain(depth - 1)\n\n\n"
        f"{GUARD}    chain = Chain(3)\n    print(chain(torch.ones(3)))\n"
    )
    (finding,) = lint(project(main_DOT_py=main))
    assert (finding.code, finding.location.row) == ("TDL101", 14)
