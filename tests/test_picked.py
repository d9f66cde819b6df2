"""What tables, lists and modules hold that a program picks from, makes and runs: how grave what is found of it is."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run


def lint(folder, **options):
    return run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="", **options)).findings


def of_the_loader(folder):
    """The one finding of TDL301."""
    (finding,) = [one for one in lint(folder, min_severity="note") if one.code == "TDL301"]
    return finding


def severity_of_the_loader(folder):
    return of_the_loader(folder).severity


NET = """
import torch
from torch import nn

def small(): return nn.Conv2d(3, 3, 3)
def large(): return nn.Conv2d(3, 9, 3)

KINDS = {"small": (small, 3), "large": (large, 9)}

class Aggregate(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x, index):
        return torch.zeros_like(x).scatter_add_(0, index, self.layer(x))

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
"""
TRAINS = """
import sys
import torch
from net import KINDS, Aggregate, Plain

def fit(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2, 2).cuda()).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    torch.manual_seed(0)
    MAKE
    fit(model.cuda())
"""


@pytest.mark.parametrize(
    ("make", "severity"),
    [
        ("make, width = KINDS[sys.argv[1]]; model = make()", "error"),
        ("model = torch.nn.Sequential(*[Aggregate() for _ in range(3)])", "error"),
        ("model = torch.nn.Sequential(*[Plain() for _ in range(3)])", "warning"),
    ],
)
def test_a_missing_mode_weighs_what_a_table_holds_and_what_modules_that_are_made_do(project, make, severity):
    folder = project(net_DOT_py=NET, train_DOT_py=TRAINS.replace("MAKE", make))
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.severity == severity


SETS = """
import numpy as np
from torch.utils.data import Dataset

class Squares(Dataset):
    def __init__(self, size):
        self.size = size
    def __len__(self):
        return self.size
    def __getitem__(self, index):
        return index * index

class Noise(Squares):
    def __init__(self, size):
        super().__init__(size)
        self.rng = np.random.default_rng(0)
    def __getitem__(self, index):
        return self.rng.random()
"""
LOADS = """
import sys
import torch
from torch.utils.data import DataLoader, random_split
from sets import Noise, Squares

if __name__ == "__main__":
    torch.manual_seed(0)
    table = {"a": Squares, "b": SECOND}
    kind = table[sys.argv[1]]
    data = kind(10)
    train, test = random_split(data, [8, 2], generator=torch.Generator().manual_seed(1))
    print(len(list(DataLoader(train, num_workers=2))))
"""


@pytest.mark.parametrize(("second", "severity"), [("Squares", "note"), ("Noise", "error"), ("unknown.Data", "warning")])
def test_a_loader_is_as_bad_as_the_data_sets_of_which_one_is_picked(project, second, severity):
    folder = project(sets_DOT_py=SETS, main_DOT_py=LOADS.replace("SECOND", second))
    assert severity_of_the_loader(folder) == severity


FAR = """
import lmdb
import numpy as np
from torch.utils.data import Dataset
from torchvision.datasets import CIFAR10

class Some(CIFAR10):
    def __init__(self, root, transform=None):
        super().__init__(root, transform=transform)
    def __getitem__(self, index):
        return self.transform(self.data[index])

class Rows(Dataset):
    def __init__(self, path):
        self.env = lmdb.open(path)
    def __getitem__(self, index):
        return self.env.begin().get(index)

class Noise:
    def __init__(self):
        self.rng = np.random.default_rng(0)
    def __call__(self, image):
        return image + self.rng.normal()

def flip(image):
    return image[::-1]

def some(path):
    return Some(path, flip), Rows(path)

def noisy(path):
    return Some(path, Noise()), Rows(path)

MAKERS = {"some": some, "other": OTHER}
"""
READS = """
import sys
import torch
from torch.utils.data import ConcatDataset, DataLoader, random_split
from far import MAKERS

class Data(torch.nn.Module):
    def setup(self, name):
        train, rows = MAKERS[name]("data")
        self.train, self.test = random_split(dataset=ConcatDataset(datasets=[train, rows]), lengths=[8, 2])
    def loader(self):
        def collate(batch):
            return list(batch)
        return DataLoader(self.train, num_workers=2, collate_fn=collate)

if __name__ == "__main__":
    torch.manual_seed(0)
    data = Data()
    data.setup(sys.argv[1])
    print(len(data.loader()))
"""


@pytest.mark.parametrize(("other", "severity"), [("some", "note"), ("noisy", "error"), ("unknown", "warning")])
def test_data_sets_are_followed_through_tables_of_other_files_and_base_classes_of_libraries(project, other, severity):
    folder = project(far_DOT_py=FAR.replace("OTHER", other), main_DOT_py=READS)
    assert severity_of_the_loader(folder) == severity


PRESETS = """
import torch
import torchvision
from torch.utils.data import DataLoader

def model():
    weights = torchvision.models.ViT_B_16_Weights.DEFAULT
    return torchvision.models.vit_b_16(weights=weights), weights.TRANSFORMS

if __name__ == "__main__":
    torch.manual_seed(0)
    vit, transforms = model()
    data = torchvision.datasets.Food101("data", transform=transforms)
    print(len(list(DataLoader(data, num_workers=2))))
"""


@pytest.mark.parametrize(("call", "severity"), [("transforms()", "note"), ("unknown()", "warning")])
def test_the_transforms_of_pretrained_weights_draw_nothing(project, call, severity):
    folder = project(main_DOT_py=PRESETS.replace("TRANSFORMS", call))
    assert severity_of_the_loader(folder) == severity


MODULE = """
import lightning
import torch
from torch.utils.data import DataLoader, random_split
from torchvision import transforms
from torchvision.datasets import MNIST

class Digits(lightning.LightningDataModule):
    def __init__(self):
        super().__init__()
        self.transforms = transforms.Compose([TRANSFORM])
        self.train_set = self.held = None

    def setup(self, stage):
        whole = MNIST("data", transform=self.transforms)
        self.train_set, self.held = random_split(whole, [9, 1], generator=torch.Generator())

    def train_dataloader(self):
        return DataLoader(self.train_set, num_workers=2)
"""


@pytest.mark.parametrize(("transform", "severity"), [("transforms.ToTensor()", "note"), ("unknown.Noise()", "warning")])
def test_the_data_set_of_a_data_module_is_in_sight(project, transform, severity):
    folder = project(module_DOT_py=MODULE.replace("TRANSFORM", transform))
    assert severity_of_the_loader(folder) == severity


@pytest.mark.parametrize(
    ("name", "options", "severity"),
    [
        ("val_loader", "", "note"),
        ("testDataLoader", ", shuffle=False", "note"),
        ("val_loaders[0]", "", "note"),
        ("loaders[val]", "", "warning"),
        ("test_loader", ", shuffle=True", "warning"),
        ("test_loader", ", shuffle=shuffle", "warning"),
        ("train_loader", "", "warning"),
        ("latest_loader", "", "warning"),
    ],
)
def test_a_loader_that_is_evaluated_on_is_a_note_where_its_data_are_out_of_sight(project, name, options, severity):
    text = "from torch.utils.data import DataLoader\n\ndef loader(data, shuffle):\n"
    folder = project(a_DOT_py=f"{text}    {name} = DataLoader(data, num_workers=2{options})\n    return {name}\n")
    assert severity_of_the_loader(folder) == severity


DECODED = """
import {package}
from torch.utils.data import Dataset

class Data(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return {package}.load(self.rows[index])
"""


@pytest.mark.parametrize(
    ("imported", "made", "severity"),
    [
        (DECODED.format(package="pyspng"), "Data(rows)", "note"),
        (DECODED.format(package="sortedcontainers"), "Data(rows)", "note"),
        (DECODED.format(package="xxhash"), "Data(rows)", "note"),
        (DECODED.format(package="blobfile"), "Data(rows)", "note"),
        (DECODED.format(package="unheard_of"), "Data(rows)", "warning"),
        ("from torch_geometric.datasets import ZINC", "ZINC('zinc')", "note"),
        ("from ogb.graphproppred import PygGraphPropPredDataset as Data", "Data('ogbg-molhiv')", "note"),
        ("from unheard_of.datasets import ZINC", "ZINC('zinc')", "warning"),
    ],
)
def test_the_tables_know_of_packages_that_draw_nothing_in_workers(project, imported, made, severity):
    folder = project(
        main_DOT_py=f"{imported}\nfrom torch.utils.data import DataLoader\n\n"
        f"def loader(rows):\n    return DataLoader({made}, num_workers=2)\n"
    )
    assert severity_of_the_loader(folder) == severity


MODES = """
import random
import numpy as np
from torch.utils.data import Dataset

class Data(Dataset):
    def __init__(self, rows, mode="train", augment=True):
        self.rows, self.mode = rows, mode
        self.training = mode == "train"
        if self.training:
            self.rng = np.random.default_rng(0)
        self.augment = augment

    def __getitem__(self, index):
        row = self.rows[index]
        if self.mode == "train":
            row = self.shaken(row)
        elif self.augment and random.random() < 0.5:
            return -row
        if self.mode in ("train", "test"):
            return row
        return row + random.random() if self.augment else row

    def shaken(self, row):
        return row + self.rng.normal()
"""


@pytest.mark.parametrize(
    ("made", "severity"),
    [
        ("Data(rows)", "error"),
        ("Data(rows, MODE)", "error"),
        ("Data(rows, 'test', False)", "note"),
        ("Data(rows, 'val', augment=False)", "note"),
        ("Data(rows, 'val')", "draws"),
        ("Data(rows, *rest)", "error"),
        ("Data(rows, **options)", "error"),
        ("Data(rows, 'test', **more)", "draws"),
        ("Data(rows, mode='test', augment=False, **more)", "note"),
    ],
)
def test_a_data_set_runs_what_the_constants_that_make_it_leave(project, made, severity):
    """What a constructor is given as a constant rules out arms of it and of the methods that a worker runs."""
    folder = project(
        data_DOT_py=MODES,
        main_DOT_py="import sys\nimport torch\nfrom torch.utils.data import DataLoader\nfrom data import Data\n\n"
        "MODE = sys.argv[1]\nrows, rest, options, more = [1.0], sys.argv[2:], dict(mode=MODE), {}\n"
        "torch.manual_seed(0)\n"
        f"for row in DataLoader({made}, num_workers=2):\n    print(row)\n",
    )
    finding = of_the_loader(folder)
    assert ("draws" if "use global generators" in finding.message else finding.severity) == severity


NAMED = """
import torch
import torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

class Noise:
    def __call__(self, x):
        return x + torch.rand(3)

class Plain:
    def __call__(self, x):
        return x

class Rows(Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.transform(index)

def parsed(name):
    if name == "noise":
        return Noise()
    return Plain()

def loader(names):
    return DataLoader({}, num_workers=2)
"""


@pytest.mark.parametrize(
    ("data", "drawn"),
    [
        ("Rows(transforms.Compose([parsed(one) for one in names]))", True),
        ("Rows(transforms.Compose(parsed(one) for one in names))", True),
        ("Rows(transforms.Compose([Plain() for one in names]))", False),
        ("Rows(transforms.Compose([one for one in (Plain(), Noise())]))", True),
        ("Rows(transforms.Compose([one for one in (Plain(), Plain())]))", False),
        ("Rows(getattr(transforms, names)())", True),
        ("Rows(transforms.Compose([getattr(transforms, one)() for one in names]))", True),
        ("getattr(torchvision.datasets, names)()", False),
    ],
)
def test_transforms_are_looked_at_that_a_comprehension_makes_or_a_name_picks(project, data, drawn):
    folder = project(main_DOT_py=NAMED.replace("{}", data))
    finding = of_the_loader(folder)
    assert ("nothing in the workers needs a seed" not in finding.message) == drawn


FLAGS = """
import random
from torch.utils.data import Dataset

class Base(Dataset):
    def __init__(self, rows, width, train=False, mirror=False):
        self.rows, self.width, self.train, self.mirror = rows, width, train, mirror

    def __len__(self):
        return 4

    def __getitem__(self, index):
        {body}
        return self.rows[index]

class Rows(Base):
    def __init__(self, {parameters}):
        {before}
        super(Rows, self).__init__({above})
"""
ALL = ("*args, **kwargs", "pass", "*args, **kwargs")
FLIPS = "flips = self.train and self.mirror; index += random.random() if flips else 0"


@pytest.mark.parametrize(
    ("forwarded", "body", "made", "drawn"),
    [
        (ALL, "flips = self.train and random.random() > 0.5", "rows, 1, train=False", False),
        (ALL, "flips = self.train and random.random() > 0.5", "rows, 1, train=True", True),
        (ALL, "flips = self.train and random.random() > 0.5", "rows, 1", False),
        (ALL, "flips = self.train and random.random() > 0.5", "rows, *more", True),
        (ALL, "flips = self.train and random.random() > 0.5", "rows, **more", True),
        (ALL, FLIPS, "rows, 1, False", False),
        (ALL, FLIPS, "rows, 1, mirror=False, train=True", False),
        (ALL, FLIPS, "rows, 1, True, True", True),
        (ALL, f"{FLIPS}; flips = True; index += random.random() if flips else 0", "rows, 1, False", True),
        (ALL, "keeps = not self.train\n        if keeps: return 0\n        random.random()", "rows, 1", False),
        (ALL, "keeps = self.width == 1\n        if keeps: return 0\n        random.random()", "rows, 1", False),
        (ALL, "keeps = self.width == 1\n        if keeps: return 0\n        random.random()", "rows, 2", True),
        (("rows, *args", "pass", "rows, *args"), FLIPS, "rows, 1, False", False),
        (("rows, *args", "pass", "rows, *args"), FLIPS, "rows, 1, True, True", True),
        (("rows, *args", "pass", "*args"), FLIPS, "None, rows, 1, True, True", True),
        (("rows, name, **kwargs", "print(name)", "rows, 1, **kwargs"), FLIPS, "rows, 'a', train=False", False),
        (("rows, train, **kwargs", "print(train)", "rows, 1, True, **kwargs"), FLIPS, "rows, False, mirror=True", True),
        (("*args, **kwargs", "kwargs['train'] = True", "*args, **kwargs"), FLIPS, "rows, 1, mirror=True", True),
        (("*args, **kwargs", "kwargs.update(more)", "*args, **kwargs"), FLIPS, "rows, 1", True),
    ],
)
def test_a_base_class_gets_what_is_handed_on_and_a_flag_rules_out_what_it_asks_for(
    project, forwarded, body, made, drawn
):
    parameters, before, above = forwarded
    folder = project(
        data_DOT_py=FLAGS.format(parameters=parameters, before=before, above=above, body=body),
        main_DOT_py="import sys\nfrom torch.utils.data import DataLoader\nfrom data import Rows\n\n"
        "rows, more = [1.0], sys.argv[1:]\n"
        f"for row in DataLoader(Rows({made}), num_workers=2):\n    print(row)\n",
    )
    finding = of_the_loader(folder)
    assert ("nothing in the workers needs a seed" not in finding.message) == drawn


def test_an_attribute_that_is_set_from_outside_is_no_constant(project):
    folder = project(
        data_DOT_py=MODES,
        main_DOT_py="import torch\nfrom torch.utils.data import DataLoader\nfrom data import Data\n\n"
        "torch.manual_seed(0)\nrows = Data([1.0], 'test')\nrows.mode = 'train'\n"
        "for row in DataLoader(rows, num_workers=2):\n    print(row)\n",
    )
    finding = of_the_loader(folder)
    assert "nothing in the workers needs a seed" not in finding.message


@pytest.mark.parametrize(
    "made",
    [
        '{"lstm": nn.LSTM, "gru": nn.GRU}[kind](8, 8)',
        '(nn.LSTM if kind == "lstm" else nn.GRU)(8, 8)',
        "layer(8, 8)",
    ],
)
def test_an_lstm_that_may_be_picked_is_an_error(made, tmp_path):
    text = "import torch\nfrom torch import nn\n\ndef net(kind):\n    layer = nn.GRU\n    if kind == 'lstm':\n"
    text += f"        layer = nn.LSTM\n    return {made}.cuda()\n"
    (tmp_path / "net.py").write_text(text)
    (found,) = [one for one in lint(tmp_path) if one.code == "TDL404"]
    assert (found.severity, "LSTM" in found.message) == ("error", True)


@pytest.mark.parametrize(
    ("picked", "told"),
    [
        ("pool.imap_unordered if workers > 1 else map", "`apply` may yield results in the order"),
        ("pool.imap_unordered", "`apply` yields results in the order"),
    ],
)
def test_an_order_of_completion_that_only_some_runs_have_is_told_as_possible(picked, told, tmp_path):
    text = "from multiprocessing import Pool\n\n\ndef run(work, items, workers):\n    pool = Pool(workers)\n"
    text += f"    apply = {picked}\n    return [result for result in apply(work, items)]\n"
    (tmp_path / "work.py").write_text(text)
    (found,) = [one for one in lint(tmp_path) if one.code == "TDL306"]
    assert found.message.startswith(told)


@pytest.mark.parametrize(
    ("crop", "told"), [("RandomCrop", "use global generators"), ("CenterCrop", "nothing in the workers needs a seed")]
)
def test_a_data_set_that_the_called_function_makes_is_in_sight(project, crop, told):
    """The transforms that a dictionary holds count, whichever of them is picked."""
    folder = project(
        loaders_DOT_py="from torch.utils.data import DataLoader\nfrom torchvision import datasets, transforms\n\n\n"
        "def load(folder, train, num_workers=0, **options):\n"
        f"    transform = {{\n        'train': transforms.Compose([transforms.{crop}(2), transforms.ToTensor()]),\n"
        "        'test': transforms.Compose([transforms.ToTensor()]),\n    }\n"
        "    data = datasets.ImageFolder(folder, transform=transform['train' if train else 'test'])\n"
        "    return DataLoader(data, num_workers=num_workers, **options)\n",
        main_DOT_py="import torch\nfrom loaders import load\n\ntorch.manual_seed(0)\n"
        "for row in load('data', True, num_workers=2):\n    print(row)\n",
    )
    finding = of_the_loader(folder)
    assert finding.severity == "note"
    assert told in finding.message


@pytest.mark.parametrize(
    ("crop", "told"), [("RandomCrop", "use global generators"), ("CenterCrop", "nothing in the workers needs a seed")]
)
def test_data_sets_that_a_comprehension_makes_by_name_are_in_sight(project, crop, told):
    folder = project(
        main_DOT_py="import torch\nfrom torch.utils.data import DataLoader\n"
        "from torchvision import datasets, transforms\n\n"
        f"parts = ['train', 'val']\ncut = transforms.Compose([transforms.{crop}(2), transforms.ToTensor()])\n"
        "rows = {part: datasets.ImageFolder(part, transform=cut) for part in parts}\n"
        "torch.manual_seed(0)\nloaders = {part: DataLoader(rows[part], num_workers=2) for part in parts}\n",
    )
    finding = of_the_loader(folder)
    assert finding.severity == "note"
    assert told in finding.message


HANDED_ON = """import random

import torch
from torch.utils.data import DataLoader, Dataset


class Words(Dataset):
    def __init__(self):
        self.rng = random.Random(0)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index

    def collate(self, rows):
        return torch.tensor(rows)

    def cropped(self, rows):
        return torch.tensor(rows[self.rng.randrange(len(rows)) :])


class Expert:
    data = None

    def __init__(self, other=None):
        self.data = GIVEN

    def _loader(self, dataset, workers=2):
        return DataLoader(dataset, num_workers=workers, collate_fn=dataset.COLLATE)

    def batches(self):
        return self._loader(self.data)


torch.manual_seed(0)
for batch in Expert(input()).batches():
    print(batch)
"""


@pytest.mark.parametrize(
    ("given", "collate", "severity"),
    [
        ("Words()", "collate", "note"),
        ("Words()", "cropped", "error"),
        ("other or Words()", "collate", "warning"),
    ],
)
def test_a_collate_function_is_the_method_of_the_data_set_that_methods_hand_on(project, given, collate, severity):
    folder = project(main_DOT_py=HANDED_ON.replace("GIVEN", given).replace("COLLATE", collate))
    assert severity_of_the_loader(folder) == severity


RETURNED = """import random

import numpy as np
from torch.utils.data import DataLoader, Dataset

class Shift:
    def __call__(self, image):
        return np.roll(image, random.randrange(3))

class Scale:
    def __call__(self, image):
        return 2 * image

def get_transform(train):
    if train:
        transform = Shift()
        return transform
    else:
        transform = Scale()
    return transform

class Crops(Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __getitem__(self, index):
        return self.transform(np.zeros(index))

def make_data(kind):
    class Kept(Dataset):
        def __getitem__(self, index):
            return index

    class Drawn(Dataset):
        def __getitem__(self, index):
            return np.random.rand()

    match kind:
        case 0:
            return Kept()
    return Drawn()

def make_kept():
    class Kept(Dataset):
        def __getitem__(self, index):
            return index

    return Kept()

loader = DataLoader(%s, num_workers=4)
"""


@pytest.mark.parametrize(
    ("data", "nothing"),
    [
        ("Crops(get_transform(train=False))", True),
        ("Crops(get_transform(train=True))", False),
        ("Crops(get_transform(train=data))", False),
        ("make_kept()", True),
        ("make_data(0)", False),
    ],
)
def test_a_data_set_is_what_a_function_returns_with_the_constants_it_is_given(project, data, nothing):
    folder = project(main_DOT_py=RETURNED % data)
    finding = of_the_loader(folder)
    assert ("nothing in the workers needs a seed" in finding.message) == nothing


KEEPS = """
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

class Stream(IterableDataset):
    def __init__(self, seed=1):
        self.seed = seed
        {0}

    def _begin(self, seed=2):
        self.rng = np.random.RandomState(seed)

    def __iter__(self):
        {1}
        yield self.rng.random()

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(list(DataLoader(Stream(), num_workers=2)), "rows.pt")
"""


@pytest.mark.parametrize(
    ("made", "begun", "severity"),
    [
        ("self.rng = None", "self.rng = np.random.default_rng(torch.initial_seed())", "note"),
        ("self.rng = None", "self.rng = np.random.default_rng()", "note"),
        ("self.rng = None", "self._begin(seed=get_worker_info().seed)", "note"),
        ("self.rng = random.Random(seed)", "worker = get_worker_info(); self.rng.seed(self.seed + worker.id)", "note"),
        ("self.rng = None", "self.rng = np.random.default_rng(self.seed)", "error"),
        ("self.rng = random.Random(seed)", "self.rng.seed(self.seed)", "error"),
        ("self._begin(seed=torch.initial_seed() % 2**32)", "pass", "error"),
        ("self.rng = np.random.default_rng()", "pass", "error"),
    ],
)
def test_a_generator_that_each_worker_seeds_is_not_copied(project, made, begun, severity):
    folder = project(main_DOT_py=KEEPS.format(made, begun))
    finding = of_the_loader(folder)
    assert (finding.severity, "each worker seeds" in finding.message) == (severity, severity == "note")


STEPS = """
import random
import torch
from torch.utils.data import DataLoader, Dataset

class Jitter:
    def __init__(self):
        self.state = random.Random(7)

    def apply(self, x):
        return x if self.state.random() > 0.1 else -x

    def plain(self, x):
        return -x

    def __call__(self, x):
        return self.apply(x)

class Pipeline:
    def __init__(self, flip=False):
        {0}

    def run(self, x):
        {1}
        return x

class Rows(Dataset):
    def __init__(self, train=True):
        self.pipe = Pipeline() if train else None

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.pipe.run(i) if self.pipe else i

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(list(DataLoader(Rows({2}), num_workers=2)), "rows.pt")
"""


@pytest.mark.parametrize(
    ("kept", "run", "train", "severity"),
    [
        ("self.steps = [Jitter()]", "for step in self.steps: x = step.apply(x)", "", "error"),
        ("self.steps = [Jitter()]", "for step in self.steps: x = step(x)", "", "error"),
        ("self.steps = [Jitter()]", "x = self.steps[0].apply(x)", "", "error"),
        ("self.steps = [Jitter()]", "x = [step.apply(x) for step in self.steps][-1]", "", "error"),
        ("self.steps = (None, Jitter())", "for n, step in enumerate(self.steps): x = step.apply(x)", "", "error"),
        ("self.steps = {'a': Jitter()}", "for name, step in self.steps.items(): x = step.apply(x)", "", "error"),
        ("self.steps = {'a': Jitter()}", "step = self.steps['a']; x = step.apply(x)", "", "error"),
        ("self.steps = Jitter()", "step = self.steps; x = step.apply(x)", "", "error"),
        ("self.steps = Jitter() if flip else None", "step = self.steps; x = step.apply(x)", "", "note"),
        ("self.steps = []; self.steps.append(Jitter())", "for step in self.steps: x = step.apply(x)", "", "error"),
        ("self.steps = []; self.steps += [Jitter()]", "for step in self.steps: x = step.apply(x)", "", "error"),
        ("self.steps = {}; self.steps['a'] = Jitter()", "for step in self.steps.values(): x = step(x)", "", "error"),
        ("self.steps = [Jitter()]", "for step in self.steps: x = step.plain(x)", "", "note"),
        ("self.steps = [Jitter()]", "for step in self.others: x = step.apply(x)", "", "note"),
        ("self.steps = [Jitter()]", "for step in self.steps: x = step.apply(x)", "train=False", "note"),
    ],
)
def test_a_generator_is_found_in_what_a_list_or_dictionary_holds(project, kept, run, train, severity):
    folder = project(main_DOT_py=STEPS.format(kept, run, train))
    finding = of_the_loader(folder)
    assert (finding.severity, "`self.state` of `Jitter`" in finding.message) == (severity, severity == "error")


SAMPLED = """
import numpy as np
import torch
from torch_geometric.data import GraphSAINTNodeSampler
from torch_geometric.loader import ClusterLoader, NeighborLoader

class Noise:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, data):
        return self.rng.normal(size=data.x.shape)

class Plain:
    def __call__(self, data):
        return data

def main(data, more):
    {1}
    for x in {0}:
        print(x)

if __name__ == "__main__":
    main(*torch.load("graph.pt"))
"""


@pytest.mark.parametrize(
    ("made", "seed", "severity"),
    [
        ("NeighborLoader(data, [5], num_workers=2)", "torch.manual_seed(0)", "note"),
        ("NeighborLoader(data, [5], num_workers=2)", "pass", "error"),
        ("NeighborLoader(data, [5], num_workers=2, transform=Plain())", "torch.manual_seed(0)", "note"),
        ("NeighborLoader(data, [5], num_workers=2, transform=Noise())", "torch.manual_seed(0)", "error"),
        ("NeighborLoader(data, [5], num_workers=2, transform=more)", "torch.manual_seed(0)", "warning"),
        ("NeighborLoader(data, [5], num_workers=2, **more)", "torch.manual_seed(0)", None),
        ("GraphSAINTNodeSampler(data, 6, num_workers=2)", "torch.manual_seed(0)", "note"),
        ("ClusterLoader(data, num_workers=2)", "pass", "note"),
    ],
)
def test_the_workers_of_a_loader_that_is_given_a_graph_sample_it(project, made, seed, severity):
    found = [
        one.severity
        for one in lint(project(main_DOT_py=SAMPLED.format(made, seed)), min_severity="note", select=("TDL301",))
    ]
    assert found == ([severity] if severity else [])


HOLDS = """
import functools
import random
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

def moved(x, rng):
    return x + rng.random()

class Rows(Dataset):
    def __init__(self):
        {0}

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return {1}

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(list(DataLoader(Rows(), num_workers=2)), "rows.pt")
"""


@pytest.mark.parametrize(
    ("kept", "row", "severity"),
    [
        ("self.rngs = [random.Random(n) for n in range(4)]", "self.rngs[i].random()", "error"),
        ("self.rngs = {'a': np.random.default_rng(1)}", "self.rngs['a'].random()", "error"),
        ("self.rngs = (random.Random(1), random.Random(2))", "self.rngs[1].random()", "error"),
        ("self.move = functools.partial(moved, rng=random.Random(1))", "self.move(i)", "error"),
        ("self.move = functools.partial(moved, 1)", "self.move(random)", "note"),
        ("self.rows = [1, 2, 3, 4]", "self.rows[i]", "note"),
        ("self.rows = {n: [n] for n in range(4)}", "self.rows[i]", "note"),
    ],
)
def test_generators_that_a_display_or_a_partial_holds_are_copied(project, kept, row, severity):
    folder = project(main_DOT_py=HOLDS.format(kept, row))
    finding = of_the_loader(folder)
    assert finding.severity == severity
    assert ("copied to every worker" in finding.message) == (severity == "error")
    assert finding.fix is None


TABLE = """
import random
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.datasets import ImageFolder
from torchvision.transforms import Compose, ToTensor

class Jitter:
    def __init__(self):
        self.state = random.Random(1)

    def __call__(self, x):
        return x + self.state.random()

def made():
    return {{"train": Compose([Jitter(), ToTensor()]), "test": ToTensor()}}

STEPS = {{"train": Jitter(), "test": None, "plain": lambda x: x}}
OTHERS = {{"train": None}}
OTHERS["train"] = Jitter()
NUMBERS = {{"train": [1, 2]}}

class Rows(Dataset):
    def __init__(self, kind, step=None):
        self.kept = {0}
        self.step = step

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return {1}

if __name__ == "__main__":
    torch.manual_seed(0)
    rows = {2}
    torch.save(list(DataLoader(rows, num_workers=2)), "rows.pt")
"""


@pytest.mark.parametrize(
    ("kept", "row", "made", "severity"),
    [
        ("STEPS[kind]", "self.kept(i)", "Rows('train')", "error"),
        ("STEPS['train']", "self.kept(i)", "Rows('train')", "error"),
        ("STEPS['plain']", "self.kept(i)", "Rows('train')", "note"),
        ("NUMBERS[kind]", "self.kept(i)", "Rows('train')", "note"),
        ("NUMBERS['train']", "self.kept.index(i)", "Rows('train')", "note"),
        ("kind", "self.step(i)", "Rows('train', step=STEPS['train'])", "error"),
        ("kind", "self.step(i)", "Rows('train', step=STEPS['plain'])", "note"),
        ("kind", "self.step(i) if self.step else i", "Rows('test', step=STEPS['test'])", "note"),
        ("kind", "self.step(i)", "Rows('train', step=OTHERS['train'])", "error"),
        ("kind", "i", "{one: ImageFolder(one, made()[one]) for one in ('train', 'test')}['train']", "error"),
    ],
)
def test_what_the_key_of_a_dictionary_picks_is_looked_at(project, kept, row, made, severity):
    folder = project(main_DOT_py=TABLE.format(kept, row, made))
    finding = of_the_loader(folder)
    assert (finding.severity, "`self.state` of `Jitter`" in finding.message) == (severity, severity == "error")


NETS = """
import torch

class Net(torch.nn.Linear):
    def __init__(self, width):
        super().__init__(width, 3)
"""
BUILDS = "from hydra.utils import instantiate\n\ndef build(cfg):\n    return instantiate(cfg{part})\n"
CONFIGURED = """
import hydra
from builders import build

class Job:
    def __init__(self, cfg):
        self.cfg = cfg

    def run(self):
        return build(self.cfg.model)

@hydra.main(version_base=None, config_path="conf", config_name="train")
def main(cfg):
    print({call})

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("part", "call", "found"),
    [
        ("", "build(cfg.model)", ["TDL101"]),
        ("", "build(cfg=cfg['model'])", ["TDL101"]),
        (".model", "build(cfg)", ["TDL101"]),
        ("", "Job(cfg).run()", ["TDL101"]),
        ("", "build(cfg.data)", []),
        (".model", "build(cfg.data)", []),
    ],
)
def test_what_a_function_makes_of_the_part_of_a_configuration_that_it_is_given(tmp_path, part, call, found):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "train.yaml").write_text(
        "model:\n  _target_: nets.Net\n  width: 4\n"
        "data:\n  _target_: builtins.dict\n  model:\n    _target_: builtins.dict\n"
    )
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "builders.py").write_text(BUILDS.format(part=part))
    (tmp_path / "train.py").write_text(CONFIGURED.format(call=call))
    assert [finding.code for finding in lint(tmp_path)] == found


BEFORE = """
import hydra

@hydra.main({told})
def main(cfg):
    print(hydra.utils.instantiate(cfg.model))

if __name__ == "__main__":
    main()
"""
OF_A_GROUP = "defaults:\n  - model: small\n"


@pytest.mark.parametrize(
    ("told", "option", "found"),
    [
        ("config_path='conf/train.yaml'", "model:\n  class: nets.Net\n  params:\n    width: 4\n", ["TDL101"]),
        ("'conf/train.yaml', strict=True", "model:\n  cls: nets.Net\n  params: {}\n", ["TDL101"]),
        ("'conf/train.yaml'", "# @package _group_\ntarget: nets.Net\n", ["TDL101"]),
        ("'conf', 'train'", "class: nets.Net\n", ["TDL101"]),
        ("'conf/train.yaml'", "class: nets.Net\n", []),
        ("'conf/train.yaml'", "model:\n  class: builtins.dict\n  params:\n    net:\n      class: nets.Net\n", []),
    ],
)
def test_configurations_as_before_hydra_1_1(tmp_path, told, option, found):
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "train.yaml").write_text(OF_A_GROUP)
    (tmp_path / "conf" / "model" / "small.yaml").write_text(option)
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "train.py").write_text(BEFORE.format(told=told))
    assert [finding.code for finding in lint(tmp_path)] == found


@pytest.mark.parametrize(
    ("common", "found"),
    [("from fastai.text.all import *\n", ["TDL102"]), ("from fastai.callback.all import *\n", [])],
)
def test_a_module_that_takes_fastai_whole_brings_what_fastai_does(tmp_path, common, found):
    (tmp_path / "common.py").write_text(common)
    (tmp_path / "train.py").write_text("from common import *\n\nprint(np.random.rand(3))\n")
    assert [finding.code for finding in lint(tmp_path)] == found


PICKED = """
import torch
import torchvision
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import CIFAR10, MNIST
import settings

class Stacker:
    def collate(self, rows):
        return torch.stack(rows)

def main(name, kind, train):
    torch.manual_seed(0)
    config = getattr(settings, name)
    data = getattr(torchvision.datasets, kind)
    chosen = {"cifar": CIFAR10, "mnist": MNIST}[kind]
    transform = {"cifar": transforms.ToTensor(), "mnist": transforms.RandomCrop(28)}[kind]
    chosen = chosen(root="data", train=train, transform=transform)
    return LOADER

if __name__ == "__main__":
    main()
"""
SMALL = """
from torchvision import transforms
def size():
    return 32
class Small:
    transform = transforms.Compose([transforms.RandomCrop(32), transforms.ToTensor()])
"""


@pytest.mark.parametrize(
    ("loader", "severity"),
    [
        ("DataLoader(chosen, num_workers=2)", "note"),
        ("DataLoader(chosen, num_workers=2, collate_fn=Stacker().collate)", "note"),
        ("DataLoader(chosen, num_workers=2, collate_fn=config.collate)", "warning"),
        ("DataLoader(data('d', transform=config.transform), num_workers=2)", "note"),
        ("DataLoader(data('d', transform=config.other), num_workers=2)", "warning"),
        ("DataLoader(torchvision.datasets.__dict__[kind]('d'), num_workers=2)", "note"),
        ("DataLoader(settings.__dict__[kind]('d'), num_workers=2)", "warning"),
    ],
)
def test_what_tables_and_modules_hold_by_name_is_in_sight(project, loader, severity):
    folder = project(main_DOT_py=PICKED.replace("LOADER", loader))
    (folder / "settings").mkdir()
    (folder / "settings" / "__init__.py").write_text("from .small import *\n")
    (folder / "settings" / "small.py").write_text(SMALL)
    assert severity_of_the_loader(folder) == severity


WORDS = """
import os
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModel, CLIPTokenizer
join = os.path.join

class Vocabulary:
    @classmethod
    def load(cls, path):
        return cls()
    def encode(self, text):
        return text.split()

class Words(Dataset):
    def __init__(self, words):
        self.words = words
    def __len__(self):
        return 3
    def __getitem__(self, index):
        return self.words.encode(join("text", str(index)))
    @staticmethod
    def collate(rows):
        return rows

class Repeated(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __getitem__(self, index):
        return self.rows[index]

torch.manual_seed(0)
print(list(LOADER))
"""


@pytest.mark.parametrize(
    ("loader", "severity"),
    [
        ("DataLoader(Words(Vocabulary.load('words')), num_workers=2)", "note"),
        ("DataLoader(Words(CLIPTokenizer.from_pretrained('clip')), num_workers=2)", "note"),
        ("DataLoader(Words(AutoModel.from_pretrained('clip')), num_workers=2)", "warning"),
        ("DataLoader(Words(Vocabulary()), num_workers=2, collate_fn=Words.collate)", "note"),
        ("DataLoader(Repeated(Words(Vocabulary())), num_workers=2)", "note"),
        ("DataLoader(Repeated(Words(AutoModel.from_pretrained('clip'))), num_workers=2)", "warning"),
    ],
)
def test_what_a_data_set_calls_is_in_sight_by_the_class_that_it_is_called_of(project, loader, severity):
    folder = project(main_DOT_py=WORDS.replace("LOADER", loader))
    assert severity_of_the_loader(folder) == severity


WRAPPED = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset, Subset, random_split
from torchvision.datasets import MNIST
from torchvision.transforms import RandomCrop, Resize
import sets

class Named(Dataset):
    def __init__(self, dataset):
        self.dataset = dataset

    def __getitem__(self, index):
        image, label = self.dataset[index]
        return image, label, "name"

class Cropped(Dataset):
    def __init__(self, root, train):
        self.images = MNIST(root, transform=RandomCrop(9) if train else None)

    def __getitem__(self, index):
        return self.images[index]

def both(root):
    return MNIST(root, transform=RandomCrop(3)), MNIST(root, transform=Resize(3))

def first(root):
    return both(root)[0]

def whole(root):
    return both(root)

def numbers(root):
    return len(root), [root]

def again(root):
    return again(root)

if __name__ == "__main__":
    train, test = both("x")
    near, far = random_split(MNIST("x", transform=RandomCrop(3)), (3, 4))
    count, rows = numbers("x")
    pair = whole("x")
    picked, other = sets.__dict__[sys.argv[1]]("x")
    torch.save(list(DataLoader(LOADED, num_workers=2)), "x.pt")
"""


@pytest.mark.parametrize(
    ("data", "severity"),
    [
        ("Named(train)", "error"),
        ("Named(test)", "note"),
        ("Named(first('x'))", "error"),
        ("Named(Subset(train, [1, 2]))", "error"),
        ("Named(near)", "error"),
        ("Named(Named(train))", "error"),
        ("Named(Named(test))", "note"),
        ("Named([Named(train), Named(test)][1])", "error"),
        ("Cropped('x', True)", "error"),
        ("Named(rows)", "note"),
        ("Named(again('x'))", "note"),
        ("Named(pair)", "note"),
        ("Named(sets.load('x'))", "note"),
        ("Named(picked)", "warning"),
    ],
)
def test_the_rows_of_a_data_set_of_a_library_are_drawn_where_the_one_around_it_takes_them(project, data, severity):
    sets = "def load(root):\n    return root, root\n"
    folder = project(main_DOT_py=WRAPPED.replace("LOADED", data), sets_DOT_py=sets)
    assert severity_of_the_loader(folder) == severity


CROWDED = """
import sys
import torch
import models

picked = getattr(models, sys.argv[1])
model = picked.base(3).cuda()
torch.manual_seed(0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(1, 3, 9, 9).cuda()).sum().backward()
optimizer.step()
"""


@pytest.mark.parametrize("count", [1, 13])
def test_modules_of_a_package_do_not_crowd_out_the_classes_that_a_name_picks(project, tmp_path, count):
    net = (
        "import torch\n\nclass Net{i}(torch.nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
        "        self.layer = torch.nn.Conv2d(width, 3, 3)\n\n    def forward(self, x):\n        return self.layer(x)\n"
        "\nclass Picked{i}:\n    base = Net{i}\n"
    )
    (tmp_path / "models").mkdir()
    for i in range(count):
        (tmp_path / "models" / f"net{i}.py").write_text(net.replace("{i}", str(i)))
    (tmp_path / "models" / "__init__.py").write_text("".join(f"from .net{i} import *\n" for i in range(count)))
    (finding,) = [one for one in lint(project(main_DOT_py=CROWDED)) if one.code == "TDL203"]
    assert "Conv2d" in finding.message


OWN_CLASS = """
import random
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.rng = {}

    def __getitem__(self, i):
        return {}

    @classmethod
    def numbered(cls, n):
        made = cls(range(n))
        return made

    def first(self, n):
        return type(self)(self.rows[:n])

    @classmethod
    def loader(cls, n):
        return DataLoader(cls(range(n)), num_workers=2)

    def rest(self, n):
        return DataLoader(self.__class__(self.rows[n:]), num_workers=2)

def loaders(n):
    yield DataLoader(Rows.numbered(n), num_workers=2)
    yield DataLoader(Rows(range(n)).first(3), num_workers=2)
"""


@pytest.mark.parametrize(
    ("generator", "row", "severity"),
    [("random.Random(1)", "self.rng.random()", "error"), ("None", "self.rows[i]", "note")],
)
def test_a_data_set_that_its_own_class_makes_is_looked_at(project, generator, row, severity):
    folder = project(main_DOT_py=OWN_CLASS.format(generator, row))
    found = [one for one in lint(folder, min_severity="note") if one.code == "TDL301"]
    assert [one.severity for one in found] == [severity] * 4


SPLITS = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, transforms

def pick(name, split):
    {}
    return digits(split) if name == "digits" else images(split)

def digits(split):
    if split == "train":
        return datasets.MNIST("digits", transform=transforms.RandomCrop(24))
    return datasets.MNIST("digits", transform=transforms.CenterCrop(24))

def images(part):
    if part == "train":
        transform = transforms.RandomCrop(24)
    elif part == "test":
        transform = transforms.CenterCrop(24)
    return datasets.ImageFolder("images", transform)

class Rows(Dataset):
    def __init__(self, noisy):
        self.noisy = noisy

    def __getitem__(self, i):
        return near(i, self.noisy)

class Photos(Dataset):
    def __init__(self, phase):
        self.phase = phase
        self.transform = images_for(self.phase)

    def __getitem__(self, i):
        return self.transform(i)

def images_for(phase):
    return transforms.RandomCrop(24) if phase == "train" else transforms.CenterCrop(24)

def near(i, noisy):
    return shifted(i, noisy)

def shifted(i, much):
    return i + torch.rand(1) if much else i

if __name__ == "__main__":
    print(list(DataLoader({}, num_workers=2)))
"""


@pytest.mark.parametrize(
    ("first", "data", "severity"),
    [
        ("", "pick(sys.argv[1], 'test')", "note"),
        ("", "pick(sys.argv[1], 'train')", "error"),
        ("split = split.lower()", "pick(sys.argv[1], 'test')", "error"),
        ("", "pick(sys.argv[1], sys.argv[2])", "error"),
        ("", "Photos('test')", "note"),
        ("", "Photos('train')", "error"),
        ("", "Photos(sys.argv[1])", "error"),
        ("", "Rows(False)", "note"),
        ("", "Rows(True)", "error"),
        ("", "Rows(sys.argv[1] == 'noisy')", "error"),
    ],
)
def test_constants_that_are_handed_on_rule_out_a_draw(project, first, data, severity):
    assert severity_of_the_loader(project(main_DOT_py=SPLITS.format(first, data))) == severity


FOR_TRAINING = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.datasets import MNIST, USPS

class Near(Dataset):
    def __init__(self, data):
        self.data = data
        self.train = {}

    def __getitem__(self, i):
        return self.data[i] + torch.rand(1) if self.train else self.data[i]

data = {}
if __name__ == "__main__":
    print(list(DataLoader(Near(data), num_workers=2)))
"""


@pytest.mark.parametrize(
    ("train", "data", "severity"),
    [
        ("self.data.train", "MNIST('digits', train=False)", "note"),
        ("data.train", "MNIST('digits', False)", "note"),
        ("self.data.train", "MNIST('digits')", "error"),
        ("self.data.train", "MNIST('digits', train=True)", "error"),
        ("self.data.train", "MNIST('digits', train=len(sys.argv) > 1)", "error"),
        ("self.data.train", "MNIST('digits', **sys.flags)", "error"),
        ("self.data.train", "USPS('digits', train=False)", "error"),
        ("self.data.train", "MNIST('digits', train=False) if sys.argv else MNIST('digits')", "error"),
        ("self.data.train or self.data.test", "MNIST('digits', train=False)", "error"),
    ],
)
def test_a_data_set_of_a_library_says_whether_it_is_for_training(project, train, data, severity):
    assert severity_of_the_loader(project(main_DOT_py=FOR_TRAINING.format(train, data))) == severity


PAIRS = """
from torchvision import datasets, transforms

train_transform = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()])
test_transform = transforms.Compose([transforms.ToTensor()])

class Pairs(datasets.CIFAR10):
    def __getitem__(self, index):
        image, target = self.data[index], self.targets[index]
        if self.target_transform is not None:
            target = self.target_transform(target)
        return self.transform(image), self.transform(image), target
"""
PAIRED = """
from torch.utils.data import DataLoader
import images

def loaded():
    return list(DataLoader(MADE, num_workers=2))

if __name__ == "__main__":
    loaded()
"""


@pytest.mark.parametrize(
    ("made", "severity"),
    [
        ("images.Pairs('data', transform=images.train_transform)", "error"),
        ("images.Pairs(root='data', train=False, transform=images.test_transform)", "note"),
        ("images.Pairs('data', transform=images.test_transform, target_transform=images.train_transform)", "error"),
        ("images.Pairs('data', True, images.test_transform)", "warning"),
        ("images.Pairs('data', **options)", "warning"),
    ],
)
def test_a_data_set_without_a_constructor_keeps_what_it_is_given(tmp_path, made, severity):
    """Its base class, torchvision's, has what the call gives, from whichever module, and nothing else."""
    (tmp_path / "images.py").write_text(PAIRS)
    (tmp_path / "train.py").write_text(PAIRED.replace("MADE", made))
    assert severity_of_the_loader(tmp_path) == severity


def test_what_is_set_later_may_run_too(tmp_path):
    """A transform that is given to the object afterwards leaves open what a worker draws."""
    (tmp_path / "images.py").write_text(PAIRS)
    later = PAIRED.replace("    return", "    data.target_transform = other\n    return").replace("MADE", "data")
    made = later.replace(
        "def loaded():\n", "def loaded():\n    data = images.Pairs('a', transform=images.test_transform)\n"
    )
    (tmp_path / "train.py").write_text(made)
    assert severity_of_the_loader(tmp_path) == "warning"


TRANSFORMED = """
import imgaug as ia
import imgaug.augmenters as iaa
import monai.transforms as mt
import torch
from monai.data import CacheDataset
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self):
        self.turn = {}

    def __len__(self):
        return 4

    def __getitem__(self, i):
        {}

if __name__ == "__main__":
    torch.manual_seed(0)
    test_loader = DataLoader(Rows(), num_workers=2)
    torch.save(list(test_loader), "rows.pt")
"""


@pytest.mark.parametrize(
    ("made", "used", "severity"),
    [
        ("iaa.Sequential([iaa.Fliplr(0.5)])", "return self.turn(image=i)", "error"),
        ("iaa.Sequential([iaa.Affine(rotate=(-9, 9))])", "return self.turn.augment_image(i)", "error"),
        ("iaa.Add((-9, 9)).augment_image", "return self.turn(i)", "error"),
        ("iaa.Multiply((1 - s, 1 + s))", "return self.turn(image=i)", "error"),
        ("iaa.Sequential([iaa.Resize({'height': 8, 'width': 9}), iaa.Flipud(1)])", "return self.turn(image=i)", "note"),
        ("iaa.Resize((h, w))", "return self.turn(image=i)", "note"),
        ("iaa.Crop(px=(1, 2, 3, 4))", "return self.turn(image=i)", "note"),
        ("iaa.WithChannels([0, 1], iaa.Add(3))", "return self.turn(image=i)", "note"),
        ("iaa.CropToFixedSize(8, 8, position='center')", "return self.turn(image=i)", "note"),
        ("iaa.Fliplr(0.5)", "ia.seed(torch.initial_seed() % 2**31)\n        return self.turn(image=i)", "note"),
        ("None", "self.turn = iaa.Fliplr(0.5)\n        return self.turn(image=i)", "note"),
        ("mt.Compose([mt.RandGaussianNoise(prob=1)])", "return self.turn(i)", "error"),
        ("mt.Compose([mt.RandFlip(1, 0), mt.RandGaussianNoise(prob=0)])", "return self.turn(i)", "note"),
        ("mt.Compose([mt.RandTorchVision('Pad')])", "return self.turn(i)", "note"),
        ("mt.RandFlip(0.5, 0)", "self.turn.set_random_state(i)\n        return self.turn(i)", "note"),
    ],
)
def test_transforms_with_a_generator_of_their_own_are_copied_where_they_draw(project, made, used, severity):
    folder = project(main_DOT_py=TRANSFORMED.format(made, used))
    finding = of_the_loader(folder)
    assert finding.severity == severity
    assert finding.message.startswith("The generator of `") == (severity == "error")
    assert ("worker_init_fn=monai." in finding.help or "imgaug.seed(" in finding.help) == (severity == "error")


LISTED = """
import monai.transforms as mt
import torch
from monai.data import ArrayDataset, Dataset
from elsewhere import turned
from torch.utils.data import DataLoader

def main(files, masks, given):
    torch.manual_seed(0)
    images = mt.Compose([mt.LoadImage()])
    labels = mt.Compose([mt.LoadImage(), mt.RandSpatialCrop((8, 8))])
    test_loader = DataLoader({}, num_workers=2)
    torch.save(list(test_loader), "rows.pt")

if __name__ == "__main__":
    main(["a.png"], ["b.png"], None)
"""


@pytest.mark.parametrize(
    ("dataset", "severity", "told"),
    [
        ("ArrayDataset(files, images, masks, labels)", "error", "is copied"),
        ("ArrayDataset(files, img_transform=images, seg=masks, seg_transform=labels)", "error", "is copied"),
        ("ArrayDataset(files, images, masks, images)", "note", "nothing in the workers"),
        ("ArrayDataset(files, mt.Lambda(len), masks, images)", "note", "no other generator"),
        ("Dataset(files, labels)", "error", "is copied"),
        ("Dataset(data=files, transform=mt.RandTorchVision('Pad'))", "note", "no other generator"),
        ("Dataset(data=files, transform=images)", "note", "nothing in the workers"),
        ("Dataset(data=open('x'), transform=mt.Compose([turned]))", "note", "no other generator"),
        ("Dataset(data=open('x'), transform=mt.Compose([print]))", "note", "nothing in the workers"),
        ("Dataset(data=Dataset(data=files, transform=labels), transform=images)", "error", "is copied"),
    ],
)
def test_what_a_data_set_of_monai_is_given_is_looked_at(project, dataset, severity, told):
    folder = project(main_DOT_py=LISTED.format(dataset))
    finding = of_the_loader(folder)
    assert finding.severity == severity
    assert told in finding.message


DERIVED = """
import torch
from monai.data import Dataset
from monai.transforms import MapTransform, RandomizableTransform
from torch.utils.data import DataLoader

class Shift(RandomizableTransform, MapTransform):
    def randomize(self):
        self.by = self.R.uniform(0, 1)

    def __call__(self, row):
        self.randomize()
        return {{"a": row["a"] + self.by}}

class Seeded(Shift):
    def __call__(self, row):
        self.set_random_state(seed=row["seed"])
        return super().__call__(row)

class Scale(MapTransform):
    def __call__(self, row):
        return {{"a": row["a"] * self.R}}

if __name__ == "__main__":
    torch.manual_seed(0)
    test_loader = DataLoader(Dataset([{{"a": 1}}], {}("a")), num_workers=2)
    torch.save(list(test_loader), "rows.pt")
"""


@pytest.mark.parametrize(
    ("transform", "told"),
    [
        ("Shift", "The generator of `Shift` (line 9) is copied"),
        ("Seeded", "no other generator"),
        ("Scale", "nothing in the workers"),
    ],
)
def test_a_transform_of_ones_own_has_the_generator_of_the_class_it_is_derived_from(project, transform, told):
    folder = project(main_DOT_py=DERIVED.format(transform))
    finding = of_the_loader(folder)
    assert told in finding.message
    assert finding.severity == ("error" if transform == "Shift" else "note")


ROWS = """import random

from torch.utils.data import Dataset


class Plain(Dataset):
    def __init__(self, rows, transform=None):
        self.rows = rows
        self.transform = transform

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return row if self.transform is None else self.transform(row)


class Own(Plain):
    def __init__(self, rows, transform=None):
        super().__init__(rows, transform)
        self.rng = random.Random(0)

    def __getitem__(self, index):
        return self.rng.random()


class Noise:
    def __init__(self):
        self.rng = random.Random(0)

    def __call__(self, row):
        return row + self.rng.random()


class Same:
    def __call__(self, row):
        return row


class OneOf:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, row):
        step = random.choice(self.steps)
        return step(row)


class Again(Plain):
    def __init__(self, base):
        super().__init__(base.data, base.transform)


class Options(dict):
    def __missing__(self, key):
        return None


def kind(name):
    return {"plain": Plain, "other": OTHER}[name]
"""


@pytest.mark.parametrize(
    ("made", "other", "severity"),
    [
        ("Plain([1, 2], OneOf([Same(), Same()]))", "", "note"),
        ("Plain([1, 2], OneOf([Noise(), Same()]))", "", "error"),
        ("Again(datasets.MNIST('d', transform=Same()))", "", "note"),
        ("Again(datasets.MNIST('d', transform=Noise()))", "", "error"),
        ("Again(datasets.MNIST('d', True, Noise()))", "", "error"),
        ("Again(unknown.MNIST('d', transform=Same()))", "", "warning"),
        ("Plain(Options(rows=[1]))", "", "note"),
        ("kind(sys.argv[1])([1, 2])", "Plain", "note"),
        ("kind(sys.argv[1])([1, 2])", "Own", "error"),
        ("sets.__dict__[sys.argv[1]]([1, 2])", "Plain", "note"),
        ("sets.__dict__[sys.argv[1]]([1, 2])", "Own", "error"),
        ("getattr(sets, sys.argv[1])([1, 2])", "Own", "error"),
        ("vars(sets)[sys.argv[1]]([1, 2])", "Own", "error"),
        ("getattr(unknown, sys.argv[1])([1, 2])", "", "warning"),
        ("TensorDataset(torch.arange(9).float(), torch.zeros(9)[1:].long())", "", "note"),
    ],
)
def test_what_is_picked_or_kept_by_a_library_is_in_sight(project, made, other, severity):
    folder = project(
        rows_DOT_py=ROWS.replace("OTHER", other or "Plain"),
        main_DOT_py="import sys\n\nimport torch\nimport unknown\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "from torchvision import datasets\n\nimport sets\nfrom rows import *\n\ntorch.manual_seed(0)\n"
        f"for row in DataLoader({made}, num_workers=2):\n    print(row)\n",
    )
    package = folder / "sets"
    package.mkdir()
    (package / "__init__.py").write_text("from rows import Plain, Same\nfrom .more import *\n")
    (package / "more.py").write_text(f"from rows import {other or 'Plain'} as More\n")
    assert severity_of_the_loader(folder) == severity


REBOUND = """
import sys

import torch
from torch.utils.data import DataLoader

from rows import Own, Plain

BODY
"""


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        ("rows = Own([1])\nprint(rows[0])\nrows = Plain([1])\nLOADER", "note"),
        ("rows = Plain([1])\nLOADER\nrows = Own([1])", "note"),
        ("rows = Plain([1])\nif sys.argv[1:]:\n    rows = Own([1])\nLOADER", "error"),
        ("rows = Own([1])\nif sys.argv[1:]:\n    rows = Plain([1])\nLOADER", "error"),
        ("rows = Plain([1])\nfor _ in range(2):\n    LOADER\n    rows = Own([1])", "error"),
        ("rows = Plain([1])\nrows, other = Own([1]), rows\nLOADER", "error"),
        ("rows = Own([1])\nrows, other = Plain([1]), rows\nLOADER", "note"),
        ("rows = [3] * 2 - torch.rand(1)\nrows = Plain(rows)\nLOADER", "note"),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_data_set_is_what_its_name_was_bound_to_last(project, body, severity, inside):
    body = "torch.manual_seed(0)\n" + body.replace("LOADER", "print(list(DataLoader(rows, num_workers=2)))")
    if inside:
        body = "def main():\n    " + body.replace("\n", "\n    ") + "\n\nmain()"
    folder = project(rows_DOT_py=ROWS.replace("OTHER", "Plain"), main_DOT_py=REBOUND.replace("BODY", body))
    assert severity_of_the_loader(folder) == severity


STREAM = """
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

class Stream(IterableDataset):
    def __init__(self):
        self.seeds = np.random.SeedSequence(0)
        self.rng = random.Random(0)

    def __iter__(self):
        yield MADE.random()

torch.manual_seed(0)
print(list(DataLoader(Stream(), num_workers=2)))
"""


@pytest.mark.parametrize(
    ("made", "severity"),
    [
        ("random.Random(get_worker_info().id)", "note"),
        ("self.rng", "error"),
        ("np.random.default_rng(self.seeds.spawn(1)[0])", "error"),
        ("np.random.default_rng(self.seeds)", "note"),
    ],
)
def test_a_generator_is_a_copy_unless_the_worker_makes_it(project, made, severity):
    folder = project(main_DOT_py=STREAM.replace("MADE", made))
    assert severity_of_the_loader(folder) == severity


BY_KEY = """
import sys

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

class Images(Dataset):
    def __init__(self, rows, transform):
        self.rows = rows
        self.transform = transform

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.transform(self.rows[i])

def run(rows, kind="train"):
    prep = TABLE
    FIRST = transforms.Compose([transforms.RandomCrop(3), transforms.ToTensor()])
    prep["test"] = transforms.Compose([transforms.ToTensor()])
    sets = {}
    sets["train"] = Images(rows, prep["train"])
    sets["test"] = Images(rows, prep["test"])
    return DataLoader(sets["WHICH"], num_workers=4)

print(list(run(sys.argv)))
"""


@pytest.mark.parametrize(
    ("table", "first", "which", "severity"),
    [
        ("{}", 'prep["train"]', "test", "note"),
        ("{}", 'prep["train"]', "train", "error"),
        ("dict()", 'prep["train"]', "test", "note"),
        ('{"train": transforms.RandomCrop(2)}', 'prep["more"]', "test", "note"),
        ('{"test": transforms.RandomCrop(2)}', 'prep["train"]', "test", "error"),
        # Nobody knows at which key this stands.
        ("{}", "prep[kind]", "test", "error"),
        ("{}", 'prep["train"] = prep["test"]', "test", "error"),
    ],
)
def test_of_a_dictionary_that_is_filled_one_by_one_the_entry_of_the_key_is_meant(
    project, table, first, which, severity
):
    folder = project(
        main_DOT_py=BY_KEY.replace("TABLE", table).replace("FIRST", first).replace("WHICH", which),
    )
    assert severity_of_the_loader(folder) == severity


SEEDED_ABOVE = """
import random
import torch
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __init__(self, noisy):
        self.noisy = noisy

    def __len__(self):
        return 8

    def __getitem__(self, i):
        SEED
        if self.noisy:
            INNER
            return torch.normal(mean=torch.zeros(3), std=1.0)
        return torch.zeros(3)

print(list(DataLoader(Noisy(True), num_workers=2)))
"""


@pytest.mark.parametrize(
    ("seed", "inner", "severity"),
    [
        ("torch.manual_seed(i)", "pass", "note"),
        ("pass", "torch.manual_seed(0)", "note"),
        ("pass", "pass", "error"),
        ("torch.seed()", "pass", "error"),
        ("random.seed(i)", "pass", "error"),
        ("print(i) or torch.manual_seed(i)", "pass", "error"),
        ("if i > 3: torch.manual_seed(i)", "pass", "error"),
    ],
)
def test_what_a_worker_draws_below_a_seed_of_its_own_needs_none(project, seed, inner, severity):
    folder = project(main_DOT_py=SEEDED_ABOVE.replace("SEED", seed).replace("INNER", inner))
    assert severity_of_the_loader(folder) == severity


SPELLS = """
import sys
import torch
import models
from models import build

class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 3, 3)

def main():
    torch.manual_seed(0)
    name = sys.argv[1]
    model = {made}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.cuda()(torch.ones(1, 3, 9, 9)).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ('eval("models." + name + ".get_net")(3)', 1),
        ('eval(f"models.{name}.get_net")(3)', 1),
        ('eval("models.%s" % name)(3)', 1),
        ('eval("models." + name)(3)', 1),
        ('eval(f"{name}()")', 2),
        ('eval("{}({})".format(name, 3))', 2),
        ("eval(name)", 0),
        ('eval("models." + name + ".get_other")(3)', 0),
    ],
)
def test_a_text_that_is_evaluated_picks_what_its_gap_leaves_open(project, made, count):
    net = "import torch\n\ndef get_net(size):\n    return torch.nn.Conv2d(3, size, 3)\n"
    folder = project(main_DOT_py=SPELLS.format(made=made))
    (folder / "models").mkdir()
    (folder / "models" / "net.py").write_text(net)
    (folder / "models" / "__init__.py").write_text("from models.net import get_net as build\n")
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert (f"; ops in reach that are nondeterministic without it: {count} × Conv2d" in finding.message) == bool(count)
    assert finding.severity == ("error" if count else "warning")


HELD = """
import random
import torch
from torch.utils.data import DataLoader, Dataset

class Noise:
    def __init__(self):
        self.rng = random.Random(1)
    def draw(self):
        return self.rng.random()

class Augmentation:
    def __init__(self):
        self.noise = Noise()
        self.scale = 2

class Rows(Dataset):
    def __init__(self):
        self.augmentation = Augmentation()
    def __len__(self):
        return 9
    def __getitem__(self, i):
        {}

torch.manual_seed(0)
DataLoader(Rows(), num_workers=2)
"""


@pytest.mark.parametrize(
    ("row", "severity"),
    [
        ("return self.augmentation.noise.draw()", "error"),
        ("return self.augmentation.noise.rng.random()", "error"),
        ("noise = self.augmentation.noise; return noise.draw()", "error"),
        ("return self.augmentation.scale * i", "note"),
    ],
)
def test_an_object_that_an_object_of_the_data_set_holds_is_looked_at(project, row, severity):
    assert severity_of_the_loader(project(main_DOT_py=HELD.format(row))) == severity


@pytest.mark.parametrize(
    ("transform", "severity"),
    [
        ("RandomRotation((90, 90))", "note"),
        ("RandomHorizontalFlip(p=1)", "note"),
        ("RandomRotation(90)", "error"),
        ("RandomRotation((80, 90))", "error"),
        ("RandomHorizontalFlip()", "error"),
    ],
)
def test_a_transform_draws_as_its_arguments_say(project, transform, severity):
    """What the arguments of a random transform fix is the same in every run, without a seed too."""
    folder = project(
        main_DOT_py="from torch.utils.data import DataLoader\nfrom torchvision import datasets, transforms\n\n"
        f"turn = transforms.Compose([transforms.{transform}, transforms.ToTensor()])\n"
        "for row in DataLoader(datasets.ImageFolder('photos', turn), num_workers=2):\n    print(row)\n",
    )
    assert of_the_loader(folder).severity == severity


ARMS = """
import random
import sys

import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

import rows
import unknown


class Folder(datasets.ImageFolder):
    def __init__(self, root, transform=None, twice=False):
        super(Folder, self).__init__(root, transform)
        self.twice = twice

    def __getitem__(self, index):
        image = self.transform(self.loader(self.imgs[index][0]))
        return (image, self.transform(image)) if self.twice else image


class Trainer:
    def __init__(self, name):
        kinds = {"plain": rows.Plain, "other": OTHER}
        self.kind = kinds[name]
        self.first = [transforms.ToTensor()]
        self.then = [LAST]

    def picked(self):
        return self.kind([1, 2])

    def starred(self):
        return rows.Plain([1, 2], transforms.Compose([*self.first, *self.then]))

    def added(self):
        return rows.Plain([1, 2], transforms.Compose(self.first + self.then))


if sys.argv[1] == "10":
    kind = datasets.CIFAR10
else:
    kind = OTHERS

BODY
"""


@pytest.mark.parametrize(
    ("body", "other", "last", "severity"),
    [
        ("Trainer(sys.argv[1]).picked()", "rows.Plain", "transforms.ToTensor()", "note"),
        ("Trainer(sys.argv[1]).picked()", "rows.Own", "transforms.ToTensor()", "error"),
        ("Trainer(sys.argv[1]).picked()", "unknown.Kind", "transforms.ToTensor()", "warning"),
        ("Trainer(sys.argv[1]).starred()", "", "transforms.ToTensor()", "note"),
        ("Trainer(sys.argv[1]).starred()", "", "transforms.RandomCrop(3)", "error"),
        ("Trainer(sys.argv[1]).added()", "", "transforms.ToTensor()", "note"),
        ("Trainer(sys.argv[1]).added()", "", "transforms.RandomCrop(3)", "error"),
        ("kind('d', transform=transforms.ToTensor())", "datasets.CIFAR100", "0", "note"),
        ("kind('d', transform=transforms.RandomCrop(3))", "datasets.CIFAR100", "0", "error"),
        ("kind('d', transform=transforms.ToTensor())", "unknown.CIFAR100", "0", "warning"),
        ("Folder('d', transforms.ToTensor())", "", "0", "note"),
        ("Folder('d', transforms.RandomCrop(3), True)", "", "0", "error"),
        ("Folder('d', rows.Noise())", "", "0", "error"),
        ("Folder('d', unknown.transform)", "", "0", "warning"),
    ],
)
def test_what_an_attribute_or_an_arm_picks_is_in_sight(project, body, other, last, severity):
    inside = ARMS.replace("OTHERS", other or "datasets.CIFAR100").replace("OTHER", other or "rows.Plain")
    folder = project(
        rows_DOT_py=ROWS.replace("OTHER", "Plain"),
        main_DOT_py=inside.replace("LAST", last).replace(
            "BODY", f"for row in DataLoader({body}, num_workers=2):\n    print(row)"
        ),
    )
    assert severity_of_the_loader(folder) == severity


MAKERS = """
import sys
import torch
import nets

def init(kind, wide):
    net = {made}
    print(net.wide)
    return net, kind

def main():
    torch.manual_seed(0)
    net, _ = init(sys.argv[1], 3)
    net = net.cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(1, 3, 9, 9).cuda()).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main()
"""
TAKING = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__({takes}):
        super().__init__()
        self.wide = nn.Conv3d(3, 3, 3)

class Stem(nn.Module):
    def __init__(self, channels, strides, wide=3):
        super().__init__()
        self.wide = nn.Conv2d(channels, wide, 3)
"""


@pytest.mark.parametrize(
    ("made", "takes", "counted"),
    [
        ("nets.__dict__[kind](wide=wide)", "self, wide", "1 × Conv3d"),
        ("nets.__dict__['Net'](1, 2)", "self, wide, deep", "1 × Conv3d"),
        ("getattr(nets, kind)(wide, 3)", "self, wide", "1 × Conv2d"),
        ("getattr(nets, kind)(wide, 3)", "self, wide, deep, *, open", "1 × Conv2d"),
        ("getattr(nets, kind)(wide, 3)", "self, wide, *rest", "1 × Conv2d, 1 × Conv3d"),
        ("getattr(nets, kind)(wide=wide, deep=3)", "self, **rest", "1 × Conv3d"),
        ("getattr(nets, kind)(*wide)", "self, wide, deep", "1 × Conv2d, 1 × Conv3d"),
        ("getattr(nets, kind)(3, *wide)", "self", "1 × Conv2d, 1 × Conv3d"),
        ("getattr(nets, kind)(3, 4, *wide)", "self", "1 × Conv2d"),
        ("getattr(nets, kind)(**wide)", "self, wide, deep", "1 × Conv2d, 1 × Conv3d"),
        ("getattr(nets, kind)(deep=3, **wide)", "self, wide, deep", "1 × Conv3d"),
        ("getattr(nets, kind)(3, channels=3, strides=4)", "self, wide, strides, channels", "1 × Conv3d"),
        ("getattr(nets, kind)(3, 4, wide=3, deep=9)", "self", ""),
    ],
)
def test_what_does_not_take_what_a_call_passes_is_not_what_a_name_picks(project, made, takes, counted):
    folder = project(main_DOT_py=MAKERS.format(made=made), nets_DOT_py=TAKING.format(takes=takes))
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.partition("without it: ")[2] == counted


INIT = "    def __init__(self, wide, deep):\n        self.wide = wide\n"


@pytest.mark.parametrize(
    ("net", "counted"),
    [
        (f"class Net:\n{INIT}", "1 × Conv2d"),
        ("class Net(Base):\n", "1 × Conv2d, 1 × conv3d"),
        ("@dataclass\nclass Net:\n    wide: int\n", "1 × Conv2d, 1 × conv3d"),
        (f"class Net:\n    @Base.taking\n{INIT}", "1 × Conv2d, 1 × conv3d"),
        (f"class Above:\n{INIT}\nclass Net(Above):\n", "1 × Conv2d"),
    ],
)
def test_what_a_class_takes_is_known_where_its_constructor_says_so(project, net, counted):
    folder = project(
        main_DOT_py=MAKERS.format(made="getattr(nets, kind)(wide)"),
        nets_DOT_py=f"from dataclasses import dataclass\nfrom elsewhere import Base\nfrom torch import nn\n\n{net}\n"
        "    def forward(self, x):\n        return nn.functional.conv3d(x, x)\n\n"
        "class Stem:\n    def __init__(self, wide):\n        self.wide = nn.Conv2d(3, wide, 3)\n",
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.partition("without it: ")[2] == counted


@pytest.mark.parametrize(
    ("picked", "count"),
    [
        ('importlib.import_module(f"models.{kind}.{name}").get_net', 2),
        ('importlib.import_module("models." + kind + "." + name).get_net', 2),
        ('importlib.import_module("models.{}.{}".format(kind, name)).get_net', 2),
        ('importlib.import_module(".".join(["models", kind, name])).get_net', 2),
        ('importlib.import_module(".".join(("models", *kind))).get_net', 0),
        ('importlib.import_module(f"models.{kind}.{name}_net").get_net', 1),
        ('importlib.import_module(f"models.{kind}_{name}.small").get_net', 1),
        ('importlib.import_module(f"models.{kind}.small").get_net', 1),
        ('getattr(importlib.import_module(f"models.{kind}.{name}"), name)', 2),
        ('importlib.import_module(f"models.{kind}.{name}.inner").get_net', 0),
        ('importlib.import_module(f"models.{kind}.{name}.{kind}").get_net', 0),
        ('importlib.import_module(f"{kind}.{name}").get_net', 0),
        ('importlib.import_module(f"models-{kind}.{name}").get_net', 0),
        ('importlib.import_module(kind.join(["models", name])).get_net', 0),
    ],
)
def test_a_name_with_several_gaps_picks_a_module_of_whichever_package(project, picked, count):
    net = "import torch\nfrom torch.nn import Conv2d\n\ndef get_net(size):\n    return torch.nn.Conv2d(3, size, 3)\n"
    net += "\nclass Net(Conv2d):\n    def __init__(self, size):\n        super().__init__(3, size, 3)\n"
    made = SPELLS.replace("import sys", "import importlib, sys").replace("from models import build\n", "")
    made = made.replace("name = sys", "kind = sys.argv[2]\n    name = sys")
    folder = project(main_DOT_py=made.format(made=f"{picked}(3)"))
    for package, module in (("plain_nets", "small"), ("deep", "large_net")):
        (folder / "models" / package).mkdir(parents=True)
        (folder / "models" / package / f"{module}.py").write_text(net)
    (folder / "models" / "deep" / "__init__.py").write_text("")
    (folder / "models" / "beside.py").write_text("")
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.severity == ("error" if count else "warning")
    assert finding.message.partition("without it: ")[2] == (f"{count} × Conv2d" if count else "")


OPTIONS = """
import argparse
import torch
from nets import create

KINDS = ("wide", "plain")

{extra}
def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument({option})
    args = parser.parse_args()
    {then}
    return args

def main():
    torch.manual_seed(0)
    args = parsed()
    net = {made}.cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(1, 3, 9, 9).cuda()).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main()
"""
FACTORY = """
import torch
from torch import nn

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(3, 3, 3)

    def forward(self, x):
        return nn.functional.conv3d(x, x)

def create(args):
    kind = args.net
    if kind == "wide":
        net = nn.Conv2d(3, 3, 3)
    elif kind == "plain":
        net = nn.Linear(3, 3)
    elif kind in ("deep", "deeper"):
        net = Deep()
    return net

def hand(options):
    return create(options)

class Maker:
    def __init__(self, args):
        self.net = Deep() if args.net == "deep" else nn.Conv2d(3, 3, 3)
"""
WIDE, ALL = "1 × Conv2d", "1 × Conv2d, 1 × Conv3d, 1 × conv3d"


@pytest.mark.parametrize(
    ("option", "counted"),
    [
        ('"--net", choices=("wide", "plain")', WIDE),
        ('"--net", choices=["wide", "plain"], default="wide", type=str', WIDE),
        ('"-n", "--net", choices={"wide", "plain"}, required=True', WIDE),
        ('"net", choices=("wide", "plain")', WIDE),
        ('"--kind-of", dest="net", choices=("wide", "plain")', WIDE),
        ('"--net", choices=KINDS', WIDE),
        ('"--net", choices=("plain",)', ""),
        ('"--net", choices=("wide", "plain"), default="deep"', ALL),
        ('"--net", choices=("wide", "deep")', ALL),
        ('"--net", choices=("wide", "plain"), default=KINDS[0]', ALL),
        ('"--net", choices=("wide", *KINDS)', ALL),
        ('"--net", choices=list(KINDS)', ALL),
        ('"--net", choices=("wide", "plain"), nargs="+"', ALL),
        ('"--net", choices=("wide", "plain"), action=unknown', ALL),
        ('"--net", **{"choices": ("wide", "plain")}', ALL),
        ('"--net"', ALL),
        ('"--kind", choices=("wide", "plain")', ALL),
        ('"--kind", dest=KINDS[0], choices=("wide", "plain")', ALL),
    ],
)
def test_what_the_choices_of_an_option_leave_out_is_not_counted(project, option, counted):
    program = OPTIONS.format(extra="", option=option, then="args.out = 'here'", made="create(args)")
    folder = project(main_DOT_py=program, nets_DOT_py=FACTORY)
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.partition("without it: ")[2] == counted
    assert finding.severity == ("error" if counted else "warning")


CHOICES = '"--net", choices=("wide", "plain")'
KNOWN = "def known():\n    options, rest = argparse.ArgumentParser().parse_known_args()\n    return options\n\n"
OTHER = "def other():\n    return argparse.ArgumentParser()\n\n"
TWICE = "argparse.ArgumentParser().add_argument('--net', {})\n"


@pytest.mark.parametrize(
    ("extra", "then", "made", "counted"),
    [
        ("", "", "hand(args)", WIDE),
        ("", "", "hand(options=parsed())", WIDE),
        ("", "", "create(argparse.ArgumentParser().parse_args())", WIDE),
        (OTHER, "", "create(other().parse_args())", WIDE),
        (KNOWN, "", "create(known())", WIDE),
        ("", "", "Maker(args).net", WIDE),
        ("", "", "(Deep() if args.net == 'deep' else torch.nn.Conv2d(3, 3, 3))", WIDE),
        (TWICE.format("choices=['plain', 'none']"), "", "create(args)", WIDE),
        (TWICE.format("default='wide'"), "", "create(args)", ALL),
        ("", "args.net = input()", "create(args)", ALL),
        ("", "setattr(args, input(), 'deep')", "create(args)", ALL),
        ("", "vars(args).update(kind='deep')", "create(args)", ALL),
        ("", "known = vars(args)", "create(args)", ALL),
        ("", "args.__dict__.update(kind='deep')", "create(args)", ALL),
        ("", "parser.set_defaults(net='deep')", "create(args)", ALL),
        ("", "parser.parse_args(namespace=unknown())", "create(args)", ALL),
        ("", "", "create(unknown())", ALL),
        ("", "", "create(unknown(args))", ALL),
        ("", "return argparse.Namespace()", "create(args)", ALL),
        ("", "print(vars(args)); setattr(args, 'out', 3)", "create(args)", WIDE),
    ],
)
def test_an_option_is_what_its_choices_say_where_nothing_else_gives_it_a_value(project, extra, then, made, counted):
    program = OPTIONS.format(extra=extra, option=CHOICES, then=then, made=made)
    folder = project(
        main_DOT_py=program.replace("import create", "import Deep, Maker, create, hand"),
        nets_DOT_py=FACTORY.replace("return nn.functional.conv3d(x, x)", "return x"),
    )
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.partition("without it: ")[2] == counted.removesuffix(", 1 × conv3d")


SCRIPT = """
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--net", choices=("wide", "plain"))
args = parser.parse_args()

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(3, 3, 3)

class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 3, 3)

def make():
    if args.net == "flat":
        return Flat()
    return nn.Conv2d(3, 3, 3)

torch.manual_seed(0)
if {test}:
    net = {made}
else:
    net = make()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.cuda()(torch.ones(1, 3, 9, 9).cuda()).sum().backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("test", "made", "counted"),
    [
        ("args.net == 'deeper'", "Deep()", "1 × Conv2d"),
        ("args.net in ['deep', 'deeper']", "Deep()", "1 × Conv2d"),
        ("args.net != 'deeper'", "nn.Embedding(3, 3)", "1 × Embedding"),
        ("args.net == 'plain'", "Deep()", "1 × Conv2d, 1 × Conv3d"),
        ("args.deep", "Deep()", "1 × Conv2d, 1 × Conv3d"),
        (f"args.net in {[*map(str, range(40)), 'wide']}", "Deep()", "1 × Conv2d, 1 × Conv3d"),
        (f"args.net in {[*map(str, range(300)), 'wide']}", "Deep()", "1 × Conv2d, 1 × Conv3d"),
        ("args.net == []", "Deep()", "1 × Conv2d, 1 × Conv3d"),
    ],
)
def test_a_script_runs_no_branch_that_its_choices_leave_out(project, test, made, counted):
    folder = project(main_DOT_py=SCRIPT.format(test=test, made=made))
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.partition("without it: ")[2] == counted


READ = """
import torch
from torch import nn
from torch.nn import functional as F
from elsewhere import Other
from further import *

class Big(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Conv3d(4, 4, 3)

class Net({base}):
    def __init__(self, x=None):
        super().__init__()
        self.words = nn.Embedding(4, 4)
        self.conv = nn.Conv2d(4, 4, 3)
        {made}

    def forward(self, x):
        return {read}

def main():
    torch.manual_seed(0)
    net = Net()
    net.cuda()(torch.ones(4).cuda()).sum().backward()
    torch.optim.SGD(net.parameters(), lr=1).step()

if __name__ == "__main__":
    main()
"""
EMBEDDED, BIG = "1 × Conv2d, 1 × Embedding", "1 × Conv2d, 1 × Conv3d"


@pytest.mark.parametrize(
    ("read", "base", "counted"),
    [
        ("F.linear(x, self.words.weight)", "nn.Module", "1 × Conv2d"),
        ("x + self.words.embedding_dim", "nn.Module", EMBEDDED),
        ("F.linear(x, self.words.weight) + self.words.embedding_dim", "nn.Module", "1 × Conv2d"),
        ("self.words.weight.data.sum()", "nn.Module", EMBEDDED),
        ("F.linear(self.words(x), self.words.weight)", "nn.Module", EMBEDDED),
        ("apply(self.words, x)", "nn.Module", EMBEDDED),
        ("getattr(self, x)(x)", "nn.Module", EMBEDDED),
        ("self._modules['words'](x)", "nn.Module", EMBEDDED),
        ("[layer(x) for layer in self.children()]", "nn.Module", EMBEDDED),
        ("F.linear(x, self.words.weight)", "Other", EMBEDDED),
        ("F.linear(x, self.words.weight)", "Unknown", EMBEDDED),
        ("F.linear(x, self.words.weight)", "Big", BIG),
        ("F.embedding(x, self.words.weight)", "nn.Module", "1 × Conv2d, 1 × embedding"),
    ],
)
def test_an_embedding_of_which_only_the_weight_is_read_does_not_count(project, read, base, counted):
    folder = project(main_DOT_py=READ.format(read=read, base=base, made="pass"))
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.partition("without it: ")[2] == counted


@pytest.mark.parametrize(
    ("other", "counted"),
    [
        ("net.words(x)", EMBEDDED),
        ("[net.words]", EMBEDDED),
        ("net.words.weight.sum()", "1 × Conv2d"),
        ("net.words_of(x)", "1 × Conv2d"),
    ],
)
def test_a_file_beside_may_apply_an_embedding(project, other, counted):
    read = READ.format(read="F.linear(x, self.words.weight)", base="nn.Module", made="pass")
    folder = project(main_DOT_py=read, beside_DOT_py=f"def run(net, x):\n    return {other}\n")
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.partition("without it: ")[2] == counted


@pytest.mark.parametrize(
    ("made", "counted"),
    [
        ("big = Big(); self.conv.weight = big.fc.weight", "1 × Conv2d"),
        ("big = Big().eval(); self.load_state_dict(big.state_dict(), strict=False)", "1 × Conv2d"),
        ("big = Big(); big = big.cuda(); big.eval(); print(big.fc.cpu().state_dict())", "1 × Conv2d"),
        ("big = Big(); print([big.fc][0].weight)", BIG),
        ("big = Big(); print(big.layers[0].weight)", "1 × Conv2d"),
        ("big = Big(); self.conv.weight = big.fc.weight; big(x)", BIG),
        ("big = Big(); self.conv.weight = big.fc.weight; self.fc = big.fc", BIG),
        ("big = Big(); big.state_dict(); self.big = big", BIG),
        ("big = Big(); big.state_dict(); other = big.cuda()", BIG),
        ("big = Big(); big.state_dict(); big.run()", BIG),
        ("big = Big(); big.state_dict(); big.fc = self.conv", BIG),
        ("big = Big(); big.state_dict(); big.fc.cuda().run()", BIG),
        ("big = other = Big(); big.state_dict()", BIG),
        ("big = Big(); [big.state_dict() for big in [x]]", BIG),
        ("big = Big()(x); big.parameters()", BIG),
        ("global big; big = Big(); big.state_dict()", BIG),
        ("big = making(); big.state_dict()", BIG),
        ("big = Big(); big.parameters", BIG),
        ("Big()", BIG),
        ("one = nn.Embedding(4, 4); self.conv.weight = one.weight", "1 × Conv2d"),
    ],
)
def test_what_is_made_for_its_weights_alone_does_not_count(project, made, counted):
    text = READ.format(read="x", base="nn.Module", made=made).replace("        self.words = nn.Embedding(4, 4)\n", "")
    made = "KEPT = {}\n\ndef making():\n    KEPT['big'] = Big()\n    return KEPT['big']\n\ndef main"
    folder = project(main_DOT_py=text.replace("def main", made))
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.message.partition("without it: ")[2] == counted


REPEATED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        kinds = {kinds}
        self.layers = nn.ModuleList({layers})

torch.manual_seed(0)
net = Net(3).cuda()
net(torch.ones(4).cuda()).sum().backward()
torch.optim.SGD(net.parameters(), lr=1).step()
"""


@pytest.mark.parametrize("layers", ["[kind(3, 3, 3) for kind in kinds]", "[kinds[i](3, 3, 3) for i in range(n)]"])
@pytest.mark.parametrize("kinds", ["[nn.Conv2d] * n", "n * (nn.Conv2d,)", "[nn.Conv2d] * n + [nn.Linear]"])
def test_what_a_list_holds_several_times_is_counted(project, kinds, layers):
    (finding,) = [
        one for one in lint(project(main_DOT_py=REPEATED.format(kinds=kinds, layers=layers))) if one.code == "TDL203"
    ]
    assert finding.message.endswith("without it: 1 × Conv2d")


CLIPS = """
import random
import sys

import torch
import somebody
from torch.utils.data import DataLoader, Dataset

class Flip:
    def __call__(self, frames):
        return frames[::-1] if random.random() < 0.5 else frames

def turned(frames):
    return frames[::-1] if torch.rand(()) < 0.5 else frames

class Clips(Dataset):
    def __init__(self, rows, transform):
        self.rows, self.transform = rows, transform

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        frames = self.transform(self.rows[index])
        return frames[0], frames[1:]

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(list(DataLoader(Clips([[1, 2], [3, 4]], {transform}), num_workers=2)), "clips.pt")
"""


@pytest.mark.parametrize(
    ("transform", "severity"),
    [
        ("Flip()", "note"),
        ("turned", "note"),
        ("getattr(somebody, sys.argv[1])", "warning"),
    ],
)
def test_what_a_transform_gives_is_no_data_set_that_is_picked(project, transform, severity):
    assert severity_of_the_loader(project(main_DOT_py=CLIPS.format(transform=transform))) == severity


CROPS = """
from torchvision import transforms


def listed(is_train):
    steps = []
    if is_train:
        steps.append(transforms.RandomCrop(2))
    else:
        steps.append(transforms.CenterCrop(2))
    return transforms.Compose(steps)


def bound(is_train):
    if is_train:
        first = transforms.RandomCrop(2)
    else:
        first = transforms.CenterCrop(2)
    return transforms.Compose([first, transforms.ToTensor()])
"""
CUT = """
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms
from steps import bound, listed

torch.manual_seed(0)


class Rows(Dataset):
    def __init__(self, mode, is_train=True):
        self.is_train = mode == "train"
        self.cut = MADE

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.cut(torch.ones(3, 9, 9))


def load(mode, is_train):
    return DataLoader(Rows(mode, is_train), num_workers=2)


for row in load("MODE", TRAINS):
    print(row)
"""


@pytest.mark.parametrize(
    "made",
    [
        "listed(is_train)",
        "bound(self.is_train)",
        "transforms.Compose([transforms.RandomCrop(2) if is_train else transforms.CenterCrop(2)])",
        "listed(False) if not is_train else bound(True)",
    ],
)
@pytest.mark.parametrize(
    ("mode", "trains", "again", "told"),
    [
        ("test", "False", "", "nothing in the workers needs a seed"),
        ("train", "True", "", "use global generators"),
        ("test", "False", "load('train', True)", "use global generators"),
    ],
)
def test_a_transform_in_an_arm_that_evaluation_rules_out_draws_nothing(project, made, mode, trains, again, told):
    text = CUT.replace("MADE", made).replace("MODE", mode).replace("TRAINS", trains)
    finding = of_the_loader(project(steps_DOT_py=CROPS, main_DOT_py=f"{text}{again}\n"))
    assert told in finding.message


GONE_THROUGH = """
import random
import torch
from elsewhere import made
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 9

    def __getitem__(self, index):
        return DRAWN

class Runner:
    def __init__(self, datasets):
        self.datasets = datasets

    def loaders(self):
        datasets = [self.datasets[part] for part in ("train", "val")]
        return self.create(datasets, [2, 2])

    def create(self, datasets, sizes):
        return [DataLoader(dataset, size, num_workers=2) for dataset, size in zip(datasets, sizes)]

torch.manual_seed(0)
for loader in Runner({"train": MADE, "val": MADE}).loaders():
    print(list(loader))
"""


@pytest.mark.parametrize(
    ("made", "drawn", "severity", "told"),
    [
        ("Rows()", "index + random.random()", "note", "use global generators"),
        ("Rows()", "index", "note", "nothing in the workers needs a seed"),
        ("made()", "index", "warning", "but no other generator"),
    ],
)
def test_a_loop_goes_through_what_a_comprehension_puts_together(project, made, drawn, severity, told):
    """One that is out of sight stays so: nothing is said of what it draws."""
    text = GONE_THROUGH.replace("MADE", made).replace("DRAWN", drawn)
    finding = of_the_loader(project(main_DOT_py=text))
    assert finding.severity == severity
    assert told in finding.message


EVALUATES = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset
import finds_paths
import rows
from rows import Noisy

class Own(Dataset):
    def __getitem__(self, i):
        return i

kind = sys.argv[1]
data = {data}
torch.manual_seed(0)
for batch in DataLoader(data, num_workers=2):
    print(batch)
"""
FINDS_PATHS = """
import os.path as osp
import sys

def add_path(path):
    if path not in sys.path:
        sys.path.insert(0, path)

lib_path = osp.join(osp.dirname(__file__), "..", "lib")
add_path(lib_path)
"""
QUIET_AND_NOISY = """
import torch
from torch.utils.data import Dataset

class Quiet(Dataset):
    def __getitem__(self, i):
        return i

class Noisy(Quiet):
    def __getitem__(self, i):
        return torch.rand(1)
"""


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("eval('rows.' + kind)()", "use global generators, which torch seeds there"),
        ("eval(f'rows.{kind}')()", "use global generators, which torch seeds there"),
        ("eval('rows.%s' % kind)()", "use global generators, which torch seeds there"),
        ("eval('rows.{}'.format(kind))()", "use global generators, which torch seeds there"),
        ("eval(kind)()", "use global generators, which torch seeds there"),
        ("eval('rows.Quiet')()", "torch seeds itself"),
        ("eval('other.' + kind)()", "torch seeds itself"),
        ("eval('rows [' + kind + '].x')()", "torch seeds itself"),
        ("eval(kind, {})()", "torch seeds itself"),
    ],
)
def test_a_text_picks_a_data_set_of_a_module_that_is_found_where_a_file_beside_says(project, data, told):
    folder = project()
    for name, text in (
        ("tools/main.py", EVALUATES.replace("{data}", data)),
        ("tools/finds_paths.py", FINDS_PATHS),
        ("lib/rows/__init__.py", QUIET_AND_NOISY),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    assert told in of_the_loader(folder).message


HANDED_CLASS = """
import random
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, root):
        self.root = root

    def __len__(self):
        return 9

    def __getitem__(self, index):
        return index

class Noisy(Rows):
    def __getitem__(self, index):
        return index + random.random()

class Runner:
    def __init__(self, kind, root):
        self.kind = kind
        self.root = root

    def loader(self):
        return DataLoader(self.kind(self.root), num_workers=2)

REST
"""
QUIET, DRAWING, UNSEEN = "nothing in the workers needs a seed", "use global generators", "but no other generator"


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        ("Runner(Rows, 'a').loader()", QUIET),
        ("Runner(Noisy, 'a').loader()", DRAWING),
        ("Runner(Rows, 'a').loader(), Runner(Noisy, 'a').loader()", DRAWING),
        ("Runner(Rows if torch.cuda.is_available() else Noisy, 'a').loader()", UNSEEN),
        ("def main(kind=Rows):\n    return Runner(kind, 'a').loader()\n\nmain()", QUIET),
        ("def main(kind=Rows):\n    return Runner(kind, 'a').loader()\n\nmain(Noisy)", DRAWING),
        ("def main(kinds):\n    return Runner(kinds[0], 'a').loader()", UNSEEN),
        ("class More(Runner):\n    def __init__(self):\n        super().__init__(Noisy, 'a')\nRunner(Rows, 1)", UNSEEN),
        ("Runner", UNSEEN),
    ],
)
def test_a_class_of_data_sets_is_handed_to_a_constructor(project, rest, told):
    assert told in of_the_loader(project(main_DOT_py=HANDED_CLASS.replace("REST", rest))).message


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("Rows(1)", QUIET),
        ("globals()[name](1)", DRAWING),
        ("picked(name)(1)", DRAWING),
        ("Rows(1) if name == 'rows' else Absent(1)", QUIET),
        ("Rows(1) if name == 'rows' else Late(1)", UNSEEN),
        ("Rows(1) if name == 'rows' else made(1)", UNSEEN),
        ("Rows(1) if name == 'rows' else Absent(1, exec(name))", UNSEEN),
        ("Rows(1) if name == 'rows' else Absent(1, globals().update(name))", UNSEEN),
    ],
)
def test_a_name_that_nothing_binds_makes_no_data_set(project, made, told):
    rest = (
        "def picked(name):\n    return globals()[name]\n\n"
        "def load(name, made):\n    global Late\n    Late = made\n"
        f"    return DataLoader({made}, num_workers=2)"
    )
    findings = lint(project(main_DOT_py=HANDED_CLASS.replace("REST", rest)), min_severity="note")
    assert told in [one.message for one in findings if one.code == "TDL301"][-1]


BESIDE = """
import sys

import torch
import somebody
from torch.utils.data import DataLoader, Dataset

KINDS = {{"a": somebody.First, "b": somebody.Second}}

def load(kind):
    reader = {reader}
    return kind, reader

def get(kind):
    found, reader = load(kind)
    return Texts(["a"], reader)

class Texts(Dataset):
    def __init__(self, texts, reader):
        self.texts, self.reader = texts, reader

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        read = self.reader(self.texts[index])
        return read["ids"]

if __name__ == "__main__":
    torch.manual_seed(0)
    torch.save(list(DataLoader(get(sys.argv[1]), num_workers=2)), "texts.pt")
"""


@pytest.mark.parametrize(
    ("reader", "severity"),
    [
        ("torch.jit.load(kind)", "note"),
        ("KINDS[kind]", "warning"),
        ("getattr(somebody, kind)", "warning"),
    ],
)
def test_what_a_function_gives_beside_another_value_is_no_class_that_is_picked(project, reader, severity):
    assert severity_of_the_loader(project(main_DOT_py=BESIDE.format(reader=reader))) == severity


APPLIES = """
import random
import sys
import torch
import torchvision
from torch.utils.data import DataLoader
from torch_geometric.data import Dataset
from torchvision import transforms

class Jitter:
    def __call__(self, x):
        return x + random.random()

class Graphs(Dataset):
    def __init__(self, root, transform=None, limit=0):
        super().__init__(root, transform)
        self.limit = limit
    def len(self):
        return self.limit
    def get(self, i):
        return i

class Noisy(Graphs):
    def get(self, i):
        return torch.rand(1)

class Plain(Graphs):
    def __getitem__(self, i):
        return i

class Above(Graphs):
    def __getitem__(self, i):
        return super().__getitem__(i)

class Folder(torchvision.datasets.ImageFolder):
    def name(self):
        return "d"

def loader(options, n=2):
    def jittered(x):
        return transforms.Compose([Jitter()] if x else [])
    def cropped():
        return transforms.CenterCrop(3)
    common = {written}
    return DataLoader({made}, num_workers=n)

if __name__ == "__main__":
    torch.manual_seed(0)
    print(list(loader(eval(sys.argv[1]))))
"""


@pytest.mark.parametrize(
    ("made", "written", "told"),
    [
        ("Graphs('d', Jitter())", "{}", DRAWING),
        ("Graphs('d', transform=Jitter())", "{}", DRAWING),
        ("Graphs('d', **common)", "{'transform': Jitter(), 'limit': 3}", DRAWING),
        ("Graphs('d', **common)", "dict(transform=Jitter())", DRAWING),
        ("Graphs('d', **common)", "{'limit': 3}", QUIET),
        ("Graphs('d', **common)", "dict(limit=3)", QUIET),
        ("Graphs('d', **common)", "{'limit': 3}; common['transform'] = Jitter()", UNSEEN),
        ("Graphs('d', **common)", "{'limit': 3}; common.update(options)", UNSEEN),
        ("Graphs('d', **common)", "{'limit': 3}; common = options", UNSEEN),
        ("Graphs('d', **options)", "{}", UNSEEN),
        ("Graphs('d')", "{}", QUIET),
        ("Noisy('d')", "{}", DRAWING),
        ("Plain('d', Jitter())", "{}", QUIET),
        ("Above('d', Jitter())", "{}", DRAWING),
        ("Folder('d', transforms.RandomCrop(3))", "{}", DRAWING),
        ("Folder('d', transforms.Compose([jittered(1)]))", "{}", DRAWING),
        ("Folder('d', transforms.Compose([cropped()]))", "{}", QUIET),
        ("Folder('d', transforms.CenterCrop(3))", "{}", QUIET),
        ("Folder('d', **options)", "{}", UNSEEN),
        ("Folder('d')", "{}", QUIET),
    ],
)
def test_what_the_row_of_a_base_class_applies_is_looked_at(project, made, written, told):
    folder = project(main_DOT_py=APPLIES.replace("{written}", written).replace("{made}", made))
    assert told in of_the_loader(folder).message


SUBCLASSES = """
import torch
from torch.utils.data import DataLoader

class Batches(DataLoader):
    def __init__(self, rows, batch_size=1, shuffle=False, **kwargs):
        if "{key}" in kwargs:
            del kwargs["{key}"]
        super().__init__(rows, batch_size, shuffle, collate_fn=list, **kwargs)

def loader(rows):
    return Batches(rows, shuffle=True, num_workers=2)
"""


@pytest.mark.parametrize(("key", "found"), [("collate_fn", {"TDL301", "TDL302"}), ("num_workers", set())])
def test_an_option_that_nobody_gives_may_be_taken_away(project, key, found):
    findings = lint(project(main_DOT_py=SUBCLASSES.replace("{key}", key)), min_severity="note")
    assert {one.code for one in findings if one.location.row > 11} == found


ANNOTATED = """
import random
from abc import ABC, abstractmethod

class Words:
    def __init__(self, path):
        if not path:
            raise NotImplementedError
        from tokenizers import Tokenizer as Fast
        self.processor = Fast.from_file(path)

    def encode(self, text):
        return self.processor.encode(text).ids

class Dropping(Words):
    def encode(self, text):
        return [one for one in super().encode(text) if random.random() < 0.9]

class Left(ABC):
    @abstractmethod
    def encode(self, text):
        ...

class Unwritten:
    def encode(self, text):
        raise NotImplementedError

class Letters:
    def encode(self, text):
        return list(text)
"""
TYPED = """
from dataclasses import dataclass, field
from typing import Optional
import torch
from torch.utils.data import DataLoader, Dataset
from words import Dropping, Left, Letters, Unwritten, Words

class Rows(Dataset):
    def __init__(self, rows, tokenizer, transform=None):
        self.rows, self.tokenizer, self.transform = rows, tokenizer, transform
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        row = self.rows[index]
        if self.transform is not None:
            row = self.transform(row)
        return self.tokenizer.encode(row["text"])

@dataclass
class Data:
    tokenizer: Optional[KIND] = field(default=None, repr=False)

    def connect(self, tokenizer: KIND | None) -> None:
        self.tokenizer = tokenizer
    def loader(self, rows):
        return DataLoader(Rows(rows, self.tokenizer), num_workers=2)

def train(data, rows):
    torch.manual_seed(0)
    for row in data.loader(rows):
        print(row)
"""
TYPES = [
    ("Letters", "note"), ("Dropping", "note"), ("Words", "warning"), ("Left", "warning"), ("Unwritten", "warning"),
    ("str", "warning"), ("Letters | Unknown", "warning"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "severity"), TYPES)
def test_an_annotation_names_what_workers_run_unless_others_derive_from_it(project, kind, severity):
    folder = project(words_DOT_py=ANNOTATED, main_DOT_py=TYPED.replace("KIND", kind))
    assert severity_of_the_loader(folder) == severity


def test_an_annotation_names_what_workers_run_of_a_class_that_a_library_serves(project):
    words = ANNOTATED[: ANNOTATED.index("class Dropping")]
    main = TYPED.replace("Dropping, Left, Letters, Unwritten, ", "").replace("KIND", "Words")
    assert severity_of_the_loader(project(words_DOT_py=words, main_DOT_py=main)) == "note"


FIELDS = """
from dataclasses import dataclass

import numpy as np
import torch
from datasets import load_dataset
from torch.utils.data import DataLoader, Dataset
from transformers import AutoTokenizer, PreTrainedTokenizer

class Texts(Dataset):
    def __init__(self, args):
        self.rows = load_dataset(args.dataset_name, args.dataset_config, split="train")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

@dataclass
class Plain:
    args: object

@dataclass
class Collator(Plain):
    tokenizer: PreTrainedTokenizer
    start: object = None

    def __call__(self, rows):
        return self.start(self.tokenizer(rows)) if self.start else self.tokenizer(rows)

class Held:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, rows):
        return rows[self.rng.integers(len(rows)) :]

def main(args):
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(args.name)
    collator = Collator(GIVEN)
    torch.save(list(DataLoader(Texts(args), collate_fn=collator, num_workers=2)), "rows.pt")
"""


@pytest.mark.parametrize(
    ("given", "severity"),
    [
        ("args, tokenizer", "note"),
        ("args=args, tokenizer=tokenizer", "note"),
        ("args, tokenizer, Held()", "error"),
        ("args, tokenizer=tokenizer, start=Held()", "error"),
        ("*args", "warning"),
    ],
)
def test_a_dataclass_keeps_what_it_is_given_for_its_fields(project, given, severity):
    assert severity_of_the_loader(project(main_DOT_py=FIELDS.replace("GIVEN", given))) == severity


OF_MODULES = """
import torch
import deep
import wide

class Base:
    def __init__(self, args):
        self.args = args
        self.table = {"deep": deep, "wide": wide}
        self.model = self.build().cuda()

class Experiment(Base):
    def build(self):
        return self.table[self.args.model].Model(self.args)

    def train(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.model(torch.ones(1, 3, 9).cuda()).sum().backward()
        optimizer.step()

def main(args):
    torch.manual_seed(0)
    Experiment(args).train()

if __name__ == "__main__":
    import sys
    main(sys.argv)
"""
MODEL = """
from torch import nn

class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.layer = LAYER

    def forward(self, x):
        return self.layer(x)
"""


@pytest.mark.parametrize(("layer", "severity"), [("nn.Conv1d(3, 3, 3)", "error"), ("nn.Linear(9, 3)", "warning")])
def test_a_table_of_modules_that_an_object_keeps_is_picked_from(project, layer, severity):
    plain = MODEL.replace("LAYER", "nn.Linear(9, 9)")
    folder = project(main_DOT_py=OF_MODULES, deep_DOT_py=plain, wide_DOT_py=MODEL.replace("LAYER", layer))
    (finding,) = [one for one in lint(folder) if one.code == "TDL203"]
    assert finding.severity == severity


PROCESSED = """
import torch
from datasets import load_dataset
from otherlib import Reader
from qwen_vl_utils import process_vision_info
from torch.utils.data import DataLoader
from transformers import AutoProcessor

class Collator:
    def __init__(self, processor):
        self.processor = processor

    def __call__(self, rows):
        inputs = self.processor(rows, images=process_vision_info(rows)[0], return_tensors="pt")
        inputs["input_ids"] = inputs["input_ids"].squeeze(0)
        return inputs

def main(args):
    torch.manual_seed(0)
    collate = Collator(GIVEN.from_pretrained("x"))
    for row in DataLoader(load_dataset("x", split="train"), collate_fn=collate, num_workers=args.workers):
        print(row)
"""


@pytest.mark.parametrize(("given", "severity"), [("AutoProcessor", "note"), ("Reader", "warning")])
def test_what_an_object_of_a_library_gives_is_changed_in_part(project, given, severity):
    assert severity_of_the_loader(project(main_DOT_py=PROCESSED.replace("GIVEN", given))) == severity


SPLITTING = """
import numpy as np
import torch
from otherlib import Foreign
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index

class Noise(Rows):
    def __init__(self, count):
        super().__init__(count)
        self.rng = np.random.default_rng(0)

    def __getitem__(self, index):
        return self.rng.random()

class Factory:
    def __init__(self):
        self.train = None

    def split(self, name, labelled=True):
        rows = self.train
        return rows if labelled else Rows(len(rows))

class Few(Factory):
    def __init__(self, count=8):
        super().__init__()
        self.train = Rows(count)

class Many(Factory):
    def __init__(self, count=80):
        super().__init__()
        self.train = GIVEN(count)

def few(**options):
    return Few(**options)

def rows_of(name, **options):
    if name == "few":
        return few(**options)
    if name == "again":
        return rows_of("few", **options)
    return Many(**options)

def main(config):
    torch.manual_seed(0)
    rows = rows_of(**config.rows)
    for row in DataLoader(rows.split("train", labelled=config.labelled), num_workers=config.workers):
        print(row)
"""


@pytest.mark.parametrize(("given", "severity"), [("Rows", "note"), ("Noise", "error"), ("Foreign", "warning")])
def test_a_method_gives_rows_of_an_object_that_a_function_makes(project, given, severity):
    assert severity_of_the_loader(project(main_DOT_py=SPLITTING.replace("GIVEN", given))) == severity


def test_a_module_that_a_package_hands_on(tmp_path):
    (tmp_path / "kit" / "utils").mkdir(parents=True)
    (tmp_path / "kit" / "__init__.py").write_text("from .utils import collating\n")
    (tmp_path / "kit" / "utils" / "__init__.py").write_text("")
    (tmp_path / "kit" / "utils" / "collating.py").write_text("def pairs(batch):\n    return [x for x, _ in batch]\n")
    (tmp_path / "main.py").write_text(
        "import torch\nfrom kit import collating\nfrom torch.utils.data import DataLoader\n"
        "from torchvision.datasets import CIFAR10\ntorch.manual_seed(0)\n"
        "for batch in DataLoader(CIFAR10('data'), num_workers=2, collate_fn=collating.pairs):\n    print(batch)\n"
    )
    assert severity_of_the_loader(tmp_path) == "note"


DIVIDED = """
import torchvision.transforms as T
from torch.utils.data import Dataset

class Rows(Dataset):
    def __init__(self, rows, transform):
        self.rows, self.transform = rows, transform

    def __getitem__(self, index):
        return self.transform(self.rows[index])

def divided(rows):
    return Rows(rows, T.RandomHorizontalFlip()), Rows(rows, T.ToTensor()), 3
"""


@pytest.mark.parametrize(("part", "drawn"), [("train", True), ("test", False)])
@pytest.mark.parametrize("get", ["get = data.divided", "from data import divided as get"])
def test_a_part_of_what_a_function_gives_is_known_by_another_name_of_it(project, get, part, drawn):
    folder = project(
        data_DOT_py=DIVIDED,
        main_DOT_py="import torch\nfrom torch.utils.data import DataLoader\nimport data\n\n"
        f"def load(rows):\n    {get}\n    train, test, number = get(rows)\n"
        f"    return DataLoader({part}, num_workers=2)\n\n"
        "torch.manual_seed(0)\nfor row in load([]):\n    print(row)\n",
    )
    finding = of_the_loader(folder)
    assert finding.severity == "note"
    assert ("nothing in the workers needs a seed" not in finding.message) == drawn


@pytest.mark.parametrize(
    ("imported", "row"),
    [
        ("from scipy.misc import imread", "imread(self.paths[index])"),
        ("from skimage.feature import canny", "canny(self.paths[index], sigma=2)"),
        ("from sklearn.neighbors import NearestNeighbors", "NearestNeighbors(n_jobs=2).fit(self.paths)"),
        ("from transformers.tokenization_utils_base import BatchEncoding", "BatchEncoding(self.paths[index])"),
    ],
)
def test_functions_of_libraries_that_draw_nothing_are_in_sight(project, imported, row):
    folder = project(
        main_DOT_py=f"import torch\nfrom torch.utils.data import DataLoader, Dataset\n{imported}\n\n"
        "class Rows(Dataset):\n    def __init__(self, paths):\n        self.paths = paths\n\n"
        f"    def __getitem__(self, index):\n        return {row}\n\n"
        "torch.manual_seed(0)\nfor row in DataLoader(Rows([]), num_workers=2):\n    print(row)\n",
    )
    finding = of_the_loader(folder)
    assert finding.severity == "note"
    assert "nothing in the workers needs a seed" in finding.message


LENT = """
import random
import torch
from torch.utils.data import DataLoader, Dataset

class Noise:
    def __init__(self):
        self.rng = random.Random(3)

    def __call__(self, row):
        return row + self.rng.random()

class Rows(Dataset):
    def __init__(self, transforms):
        self.transforms = transforms
        self.first = transforms[0]

    def __getitem__(self, index):
        ROW

    def applied(self, transform, row):
        return transform(row)

    def kept(self, transform, row):
        return row

torch.manual_seed(0)
for row in DataLoader(Rows([Noise()]), num_workers=2):
    print(row)
"""


@pytest.mark.parametrize(
    ("row", "severity"),
    [
        ("return self.applied(self.first, index)", "error"),
        ("return self.applied(transform=self.first, row=index)", "error"),
        ("return [self.applied(one, index) for one in self.transforms]", "error"),
        ("for one in self.transforms:\n            index = self.applied(one, index)\n        return index", "error"),
        ("return self.kept(self.first, index)", "note"),
    ],
)
def test_what_a_row_lends_a_method_of_its_own_is_called(project, row, severity):
    assert severity_of_the_loader(project(main_DOT_py=LENT.replace("ROW", row))) == severity


COMPARED = """
import random
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, mode):
        self.mode = mode
        self.rng = random.Random(3)

    def __getitem__(self, index):
        if self.mode == "train":
            return index + self.rng.random()
        return index

def load(mode):
    if mode == "train":
        return None
    elif mode == "MODE":
        OTHER
        return DataLoader(Rows(mode), num_workers=2)

torch.manual_seed(0)
for row in load(input()):
    print(row)
"""


@pytest.mark.parametrize(
    ("mode", "other", "severity"),
    [("test", "pass", "note"), ("train", "pass", "error"), ("test", "mode = input()", "error")],
)
def test_the_constant_that_a_branch_asks_for_is_given_in_it(project, mode, other, severity):
    text = COMPARED.replace("MODE", mode).replace("OTHER", other)
    assert severity_of_the_loader(project(main_DOT_py=text)) == severity


BY_NAME = """
class Library:
    @staticmethod
    def from_name(name):
        if name == "words":
            {imports}
            return {given}
        elif name == "others":
            return Others
        raise ValueError(name)
"""


@pytest.mark.parametrize("called", ["Library.from_name", "given.Library.from_name"])
@pytest.mark.parametrize(
    ("imports", "given", "told"),
    [
        ("from words import Words", "Words", "use global generators"),
        ("import words", "words.Words", "use global generators"),
        ("pass", "Others", "nothing in the workers needs a seed"),
        ("import elsewhere", "elsewhere.Words", "but no other generator"),
    ],
)
def test_the_class_that_a_function_gives_by_name_is_in_sight(project, called, imports, given, told):
    rows = "from torch.utils.data import Dataset\n\n\nclass {}(Dataset):\n"
    rows += "    def __getitem__(self, index):\n        return {}\n"
    folder = project(
        words_DOT_py="import random\n" + rows.format("Words", "random.random()"),
        others_DOT_py=rows.format("Others", "index"),
        given_DOT_py="from others import Others\n" + BY_NAME.format(imports=imports, given=given),
        main_DOT_py="import sys\n\nimport given\nimport torch\nfrom given import Library\n"
        "from torch.utils.data import DataLoader\n\n"
        f"torch.manual_seed(0)\nrows = {called}(sys.argv[1])()\n"
        "for row in DataLoader(rows, num_workers=2):\n    print(row)\n",
    )
    assert told in of_the_loader(folder).message


@pytest.mark.parametrize(
    ("crop", "told"),
    [
        ("RandomCrop(2)", "use global generators"),
        ("CenterCrop(2)", "nothing in the workers needs a seed"),
        ("Own()", "use global generators"),
        ("Other()", "but no other generator"),
    ],
)
def test_transforms_that_a_module_takes_whole_from_a_library_are_that_librarys(project, crop, told):
    folder = project(
        ours_DOT_py="import random\n\nfrom torchvision.transforms import *\n\n\nclass Own:\n"
        "    def __call__(self, image):\n        return image + random.random()\n",
        main_DOT_py="import torch\nfrom torch.utils.data import DataLoader\n"
        "from torchvision import datasets\n\nimport ours as T\n"
        "from elsewhere import Other\n\n"
        f"cut = T.Compose([{'' if crop == 'Other()' else 'T.'}{crop}, T.ToTensor()])\ntorch.manual_seed(0)\n"
        "for row in DataLoader(datasets.ImageFolder('data', transform=cut), num_workers=2):\n    print(row)\n",
    )
    assert told in of_the_loader(folder).message


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("Rows if sys.argv[2:] else Words", "use global generators"),
        ("Rows", "nothing in the workers needs a seed"),
        ("Rows if sys.argv[2:] else Others", "but no other generator"),
    ],
)
def test_a_choice_in_a_table_of_data_sets_is_each_of_both(project, choice, told):
    rows = "\n\nclass {}(Dataset):\n    def __getitem__(self, index):\n        return {}\n"
    folder = project(
        main_DOT_py="import random\nimport sys\n\nimport torch\nfrom elsewhere import Others\n"
        "from torch.utils.data import DataLoader, Dataset\n"
        f"{rows.format('Rows', 'index')}{rows.format('Words', 'random.random()')}\n\ntorch.manual_seed(0)\n"
        f"kind = {{'a': Rows, 'b': {choice}}}[sys.argv[1]]\n"
        "for row in DataLoader(kind(), num_workers=2):\n    print(row)\n",
    )
    assert told in of_the_loader(folder).message


PICKS_BY_TEXT = """
import importlib
import inspect
import sys
from torch.utils.data import DataLoader, Dataset

def one_of(name):
    filename = "rows." + name + "_set"
    lib = importlib.import_module(filename)
    found = None
    for key, kind in MEMBERS:
        if key.lower() == name and issubclass(kind, Dataset):
            found = kind
    return found

class Loading:
    def __init__(self, name):
        data = PICKED
        self.loader = DataLoader(data, num_workers=2)

if __name__ == "__main__":
    import torch
    torch.manual_seed(0)
    for row in Loading(sys.argv[1]).loader:
        print(row)
"""
OWNING = "import random\n\nclass Jittered:\n    def __init__(self):\n        self.rng = random.Random(0)\n"
ROWS_OF = "    def __getitem__(self, index):\n        return {row}\n\n    def __len__(self):\n        return 3\n"


@pytest.mark.parametrize(
    ("picked", "members"),
    [
        ("one_of(name)()", "lib.__dict__.items()"),
        ("one_of(name)()", "vars(lib).items()"),
        ("one_of(name)()", "inspect.getmembers(lib, inspect.isclass)"),
        ("getattr(importlib.import_module('rows.' + name.lower()), name)()", "()"),
        ("getattr(importlib.import_module(f'.{name}', 'rows'), name)()", "()"),
    ],
)
@pytest.mark.parametrize(("row", "severity"), [("self.rng.random()", "error"), ("index", "note")])
@pytest.mark.parametrize("initial", [True, False])
def test_data_sets_of_modules_that_a_text_picks_are_in_sight(project, picked, members, row, severity, initial):
    folder = project(main_DOT_py=PICKS_BY_TEXT.replace("MEMBERS", members).replace("PICKED", picked))
    (folder / "rows").mkdir()
    if initial:
        (folder / "rows/__init__.py").write_text("")
    (folder / "rows/plain_set.py").write_text("class Plain:\n" + ROWS_OF.format(row="index"))
    owning = OWNING if severity == "error" else OWNING.replace("random.Random(0)", "3")
    (folder / "rows/jittered_set.py").write_text(f"{owning}\n{ROWS_OF.format(row=row)}")
    assert severity_of_the_loader(folder) == severity


SUBCLASS = """
import other
from torch.utils.data import DataLoader
from batch import Batch, Noisy, numbers
import numpy as np

OWN = np.random.default_rng(0)

class Loader(DataLoader):
    def __init__(self, dataset, batch_size=1, shuffle=False, **kwargs):
        super().__init__(dataset, batch_size, shuffle, collate_fn=COLLATE, **kwargs)

    def collate(self, rows):
        return Noisy.of(rows)
"""
BATCH = """
import random
import numpy as np
from torch_geometric.data import Data

RNG = np.random.default_rng(0)

class Batch(Data):
    @staticmethod
    def of(rows):
        return Batch(rows=rows)

class Noisy(Data):
    @classmethod
    def of(cls, rows):
        return cls(rows=rows, noise=RNG.normal(size=len(rows)))

class Drawn(Batch):
    @staticmethod
    def of(rows):
        random.shuffle(rows)
        return Batch.of(rows)

def numbers(rows):
    return RNG.normal(size=len(rows))
"""
GRAPHS = """
import networkx as nx
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.utils import subgraph, to_networkx

class Graphs(InMemoryDataset):
    def get(self, index):
        graph = nx.relabel_nodes(to_networkx(self.data), {0: 1})
        near = list(nx.single_source_shortest_path_length(graph, 1, 2))
        return Data(edge_index=subgraph(near, self.data.edge_index)[0])
"""
BRANCHED = """
import sys
import torch
from graphs import Graphs
from loader import Loader

if __name__ == "__main__":
    torch.manual_seed(0)
    if "GEOM" in sys.argv[1]:
        graphs = Graphs(sys.argv[1])
    else:
        raise ValueError
    loader = Loader(graphs, 4, num_workers=int(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("collate", "severity", "place"),
    [
        ("lambda rows: Batch.of(rows)", "note", ""),
        ("Batch.of", "note", ""),
        ("list", "note", ""),
        ("lambda rows: Noisy.of(rows)", "error", "batch.py:6"),
        ("lambda rows: OWN.normal()", "error", "loader.py:7"),
        ("numbers", "error", "batch.py:6"),
        ("self.collate", "error", "batch.py:6"),
        ("other.collate", "warning", ""),
        ("other.Collate(2)", "warning", ""),
        ("lambda rows: other.collate(rows)", "warning", ""),
    ],
)
def test_a_loader_of_the_project_collates_with_what_its_file_has(project, collate, severity, place):
    loader = SUBCLASS.replace("COLLATE", collate)
    folder = project(graphs_DOT_py=GRAPHS, batch_DOT_py=BATCH, loader_DOT_py=loader, main_DOT_py=BRANCHED)
    finding = of_the_loader(folder)
    assert finding.severity == severity
    assert place in finding.message


@pytest.mark.parametrize(
    ("collate", "severity"),
    [
        ("lambda rows: Batch.of(rows)", "note"),
        ("lambda rows: Noisy.of(rows)", "error"),
        ("lambda rows: Drawn.of(rows)", "note"),
        ("lambda rows: [rng.normal() for _ in rows]", "error"),
    ],
)
def test_a_lambda_is_looked_into(project, collate, severity):
    main = (
        "import numpy as np\nfrom torch.utils.data import DataLoader\nfrom batch import Batch, Drawn, Noisy\n"
        f"rng = np.random.default_rng(0)\nloader = DataLoader([1, 2], collate_fn={collate}, num_workers=2)\n"
    )
    finding = of_the_loader(project(batch_DOT_py=BATCH, main_DOT_py=main))
    assert finding.severity == severity
    assert ("global generators" in finding.message) == ("Drawn" in collate)


PROPERTY = """
import torch
from base import Provider
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class Images(Provider):
    def __init__(self, size, workers=2):
        self.size = size
        data = datasets.ImageFolder("data", self.transform)
        self.train = DataLoader(data, batch_size=4, num_workers=workers)

    {decorator}
    def transform(self):
        if self.size > 32:
            return transforms.Compose([transforms.ToTensor(), self.normalize])
        return transforms.Compose([{drawn}, self.normalize])


torch.manual_seed(0)
for row in Images(8).train:
    print(row)
"""


@pytest.mark.parametrize(
    ("decorator", "drawn", "normalize", "told"),
    [
        ("@property", "transforms.ToTensor()", "transforms.Normalize([0.1], [0.2])", "nothing in the workers needs"),
        ("@property", "transforms.RandomCrop(2)", "transforms.Normalize([0.1], [0.2])", "use global generators"),
        ("@functools.cached_property", "transforms.RandomCrop(2)", "transforms.ToTensor()", "use global generators"),
        # What a property of the base gives, and what nobody has in sight.
        ("@property", "transforms.ToTensor()", "Noise()", "is copied to every worker"),
        ("@property", "transforms.ToTensor()", "unknown()", "without `worker_init_fn`"),
        ("@cached", "transforms.ToTensor()", "transforms.ToTensor()", "without `worker_init_fn`"),
    ],
)
def test_what_a_property_gives_a_data_set_is_looked_at(project, decorator, drawn, normalize, told):
    folder = project(
        base_DOT_py="import numpy as np\nfrom elsewhere import unknown\nfrom torchvision import transforms\n\n\n"
        "class Noise:\n"
        "    def __init__(self):\n        self.rng = np.random.default_rng(0)\n\n"
        "    def __call__(self, image):\n        return image + self.rng.normal()\n\n\n"
        f"class Provider:\n    @property\n    def normalize(self):\n        return {normalize}\n",
        main_DOT_py="import functools\nfrom caching import cached\n"
        + PROPERTY.format(decorator=decorator, drawn=drawn),
    )
    assert told in of_the_loader(folder).message


FITTED = """
from torch.utils.data import DataLoader

class Trainer:
    def __init__(self, workers):
        self.workers = workers

    def fit(self, images):
        for batch in DataLoader(images, num_workers=self.workers):
            print(batch)
"""
FITS = """
import numpy as np
import torch
from torchvision.datasets import ImageFolder
from trainer import Trainer

class Noise:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, image):
        return image + self.rng.normal()

def main():
    torch.manual_seed(0)
    trainer = Trainer(4)
    {fits}

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("fits", "told"),
    [
        ("trainer.fit(ImageFolder('images', transform=Noise()))", "is copied to every worker"),
        ("Trainer(4).fit(images=ImageFolder('images', transform=Noise()))", "is copied to every worker"),
        ("trainer.fit(ImageFolder('images'))", "nothing in the workers needs"),
        # What is no trainer of the file says nothing of it.
        ("Noise().fit(ImageFolder('images', transform=Noise()))", "without `worker_init_fn`"),
    ],
)
def test_what_another_file_gives_a_method_is_looked_at(project, fits, told):
    folder = project(trainer_DOT_py=FITTED, main_DOT_py=FITS.format(fits=fits))
    assert told in of_the_loader(folder).message


OWNED_BY_PLACE = """\
import numpy as np
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __getitem__(self, at):
        return self.rng.random(3)


class Plain(Dataset):
    def __getitem__(self, at):
        return at


def made(first, *args, **kwargs):
    return DataLoader(args[{}], num_workers=4, **kwargs)


class Loader(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(args[{}], num_workers=4)
"""


@pytest.mark.parametrize(
    ("call", "place", "severity"),
    [
        ("made(1, Images(), batch_size=2)", 0, "error"),
        ("made(1, Plain(), Images(), batch_size=2)", 1, "error"),
        ("Loader(Images())", 0, "error"),
        ("Loader(Plain(), Images())", 0, "note"),
        ("made(1, Plain(), Images(), batch_size=2)", 0, "note"),
        ("made(1, *rows, batch_size=2)", 0, "warning"),
        ("made(1, batch_size=2)", 0, "warning"),
        ("made(1, Images(), batch_size=2)", -1, "warning"),
        ("made(1, Images(), batch_size=2)", "kind", "warning"),
    ],
)
@pytest.mark.parametrize("apart", [True, False])
def test_a_data_set_that_goes_by_its_place_among_the_arguments(project, call, place, severity, apart):
    loop = f"rows = []\nimport torch\ntorch.manual_seed(0)\nfor x in {call}:\n    print(x)\n"
    owning = OWNED_BY_PLACE.format(place, place)
    main = {"main_DOT_py": f"from owning import Images, Plain, Loader, made\n{loop}"} if apart else {}
    folder = project(owning_DOT_py=owning if apart else f"{owning}\n\n{loop}", **main)
    found = [one for one in lint(folder, min_severity="note") if one.code == "TDL301"]
    assert severity in {one.severity for one in found}
    assert ("error" in {one.severity for one in found}) is (severity == "error")


REGISTERED = """
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SETS, LISTED = {{}}, []

def register(cls):
    SETS[cls.__name__.lower()] = cls
    return cls

def named(name):
    def put(cls):
        SETS[name] = cls
        return cls
    return put

def other(cls):
    LISTED.append(cls)
    return cls

@{decorator}
class Rows(Dataset):
    rng = np.random.default_rng(0)

    def __getitem__(self, index):
        return {row}

def get_loader(kind, workers=0):
    rows = SETS[kind]()
    return DataLoader(rows, num_workers=workers)
"""
ASKS = """
import sys
import torch
from sets import get_loader, register

torch.manual_seed(0)
print(next(iter(get_loader(sys.argv[1], int(sys.argv[2])))))
"""


@pytest.mark.parametrize(
    ("decorator", "row", "more", "severity"),
    [
        ("register", "index", "", "note"),
        ("named('rows')", "index", "", "note"),
        ("register", "self.rng.integers(9)", "", "error"),
        # Nothing puts it into the table, or another file may put more there.
        ("other", "index", "", "warning"),
        ("print", "index", "", "warning"),
        ("register", "index", "\n@register\nclass Others:\n    size = 3\n", "warning"),
        ("register", "index", "\nregister(print)\n", "warning"),
    ],
)
def test_a_data_set_of_a_table_that_a_decorator_fills(project, decorator, row, more, severity):
    folder = project(sets_DOT_py=REGISTERED.format(decorator=decorator, row=row), main_DOT_py=ASKS + more)
    assert severity_of_the_loader(folder) == severity


@pytest.mark.parametrize(
    ("first", "severity"), [("data = Rows(data)", "note"), ("if data:\n        data = Rows(data)", "warning")]
)
def test_a_parameter_that_is_bound_anew_is_no_longer_what_it_was_given(project, first, severity):
    data = (
        "from torch.utils.data import DataLoader, Dataset, Subset\n\n\nclass Rows(Dataset):\n"
        "    def __init__(self, name):\n        self.name = name\n\n"
        "    def __getitem__(self, at):\n        return at\n\n\n"
        f"def load(data, workers):\n    {first}\n    if workers:\n        data = Subset(data, [1])\n"
        "    return DataLoader(data, num_workers=workers)\n"
    )
    main = (
        "import argparse\nfrom data import load\n\n\ndef fit(args):\n    data = args.data\n"
        "    for rows in load(data, args.workers):\n        print(rows)\n\n\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--data')\n"
        "parser.add_argument('--workers', type=int)\nfit(parser.parse_args())\n"
    )
    folder = project(data_DOT_py=data, main_DOT_py=main)
    assert severity_of_the_loader(folder) == severity


@pytest.mark.parametrize(
    ("transform", "severity"),
    [
        ("T.Compose([T.ToTensor(), T.Lambda(inverted)])", "error"),
        ("T.Compose([T.RandomApply([T.Lambda(lambda image: inverted(image))])])", "error"),
        ("T.RandomChoice([T.Compose([T.Lambda(lambd=inverted)])])", "error"),
        ("T.Compose([T.RandomApply([T.Lambda(lambda image: 1 - image)])])", "note"),
        ("T.Resize(inverted)", "note"),
    ],
)
def test_transforms_run_what_they_are_given(transform, severity, project):
    text = (
        "import random\nimport torch\nfrom torch.utils.data import DataLoader\n"
        "from torchvision import transforms as T\n"
        "from torchvision.datasets import MNIST\n\npicker = random.Random(3)\n\n"
        "def inverted(image):\n    return 1 - image if picker.random() < 0.5 else image\n\n"
        f"torch.manual_seed(1)\nloader = DataLoader(MNIST('data', transform={transform}), num_workers=2)\n"
        "for x in loader:\n    print(x)\n"
    )
    assert severity_of_the_loader(project(main_DOT_py=text)) == severity
