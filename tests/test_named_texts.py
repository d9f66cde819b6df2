"""What a text names in full, and who makes an object of it: what a program then draws and trains with."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.program.launch_configs import dotted_texts


def lint(folder):
    return run.run([str(folder)], Settings(root=str(folder), jobs=1, cache_dir="")).findings


NETS = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.layer = nn.Conv2d(3, width, 3)

    def forward(self, x):
        return self.layer(x)

class Table:
    def __init__(self, width=3):
        self.rows = width

def make(width=3):
    return Model(width)
"""
PARTS = """
def import_class(name):
    components = name.split(".")
    mod = __import__(components[0])
    for comp in components[1:]:
        mod = getattr(mod, comp)
    return mod
"""
HELPERS = {
    "parts": PARTS,
    "modules": """
import sys

def import_class(import_str):
    mod_str, _sep, class_str = import_str.rpartition(".")
    __import__(mod_str)
    try:
        return getattr(sys.modules[mod_str], class_str)
    except AttributeError:
        raise ImportError(import_str)
""",
    "importlib": """
import importlib

def import_class(string, reload=False):
    module, cls = string.rsplit(".", 1)
    if reload:
        module_imp = importlib.import_module(module)
        importlib.reload(module_imp)
    return getattr(importlib.import_module(module, package=None), cls)
""",
    "slices": """
from importlib import import_module

def import_class(path):
    at = path.rfind(".")
    module = import_module(path[:at])
    return getattr(module, path[at + 1 :])
""",
    "reduce": """
from functools import reduce

def import_class(path):
    parts = path.split(".")
    return reduce(getattr, parts[1:], __import__(parts[0]))
""",
    "pydoc": """
from pydoc import locate

def import_class(path):
    found = locate(path)
    if found is None:
        raise ImportError(path)
    return found
""",
    "pkgutil": "from pkgutil import resolve_name as import_class\n",
    "handed on": PARTS
    + """
class Tools:
    @staticmethod
    def find(path):
        return import_class(path)

def load_object(path):
    return Tools.find(path)
""",
    "other text": """
import importlib

def import_class(name, module="nets"):
    return getattr(importlib.import_module("library." + module), name.rsplit(".", 1)[1])
""",
}
TRAINS = """
import sys
import torch
from tools import FIND

PATHS = {"model": "nets.Model", "table": "nets.Table"}

def build(path="nets.Model", **options):
    return FIND(path)(**options)

def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.load("rows.pt").cuda()).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    MAKE
    train(model.cuda())
"""


def trains(folder, helper, make):
    find = "load_object" if helper == "handed on" else "import_class"
    (folder / "nets.py").write_text(NETS)
    (folder / "tools.py").write_text(HELPERS[helper])
    (folder / "main.py").write_text(TRAINS.replace("FIND", find).replace("MAKE", make.replace("FIND", find)))


@pytest.mark.parametrize("helper", HELPERS)
def test_a_class_that_a_text_names_is_the_one_that_a_function_imports_for_it(tmp_path, helper):
    trains(tmp_path, helper, 'model = FIND("nets.Model")(4)')
    told = {one.code: one for one in lint(tmp_path)}
    if helper == "other text":
        assert "TDL101" not in told
    else:
        assert "nets.py:8) uses torch's global random number generator" in told["TDL101"].message
        assert "1 × Conv2d" in told["TDL203"].message


@pytest.mark.parametrize(
    ("make", "draws"),
    [
        ('model = FIND("nets.Model")()', True),
        ('model = FIND("nets.make")(4)', True),
        ('model = FIND("nets.Table")()', False),
        ('model = FIND("nets:Model")()', True),
        ('name = "nets.Model"\n    model = FIND(name)()', True),
        ('model = FIND("nets.Model" if sys.argv[1:] else "nets.Table")()', True),
        ('model = FIND(PATHS["model"])()', True),
        ('model = FIND(PATHS["table"])()', False),
        ("model = FIND(PATHS[sys.argv[1]])()", True),
        ('for kind in ("nets.Table", "nets.Model"):\n        model = FIND(kind)()', True),
        ("made = {}\n    made[sys.argv[1]] = FIND(PATHS['model'])\n    model = made[sys.argv[1]]()", True),
        ("model = build()", True),
        ('model = build("nets.Model")', True),
        ('model = build("nets.Table")', False),
        ('model = build(path="nets.Table")', False),
        ('model = FIND("other.Model")()', False),
        ("model = FIND(sys.argv[1])()", False),
    ],
)
def test_the_text_is_a_constant_by_whatever_way(tmp_path, make, draws):
    trains(tmp_path, "parts", make)
    assert ("TDL101" in {one.code for one in lint(tmp_path)}) == draws


PROCESSOR = """
import argparse
import torch
import yaml
from tools import import_class

class Processor:
    def __init__(self, arg):
        self.arg = arg
        self.load_model()

    def load_model(self):
        Model = import_class(self.arg.model)
        self.model = Model(**self.arg.model_args).cuda()

    def start(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.model(torch.load("rows.pt").cuda()).sum().backward()
        optimizer.step()

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default=None)
    parser.add_argument("--model", default=DEFAULT, help="what is trained")
    p = parser.parse_args()
    if p.config is not None:
        with open(p.config) as f:
            parser.set_defaults(**yaml.safe_load(f))
    arg = parser.parse_args()
    processor = Processor(arg)
    processor.start()
"""


@pytest.mark.parametrize(
    ("default", "written", "draws"),
    [
        ("None", "model: nets.Model\nmodel_args:\n  width: 3\n", True),
        ("None", "feeder: nets.Table\nmodel: 'nets.Model'  # the second\n", True),
        ("None", "model: nets.Table\n", False),
        ("None", "other: nets.Model\n", False),
        ("None", "eval:\n  model: nets.Model\n", False),
        ("None", "# model: nets.Model\nmodel: resnet\n", False),
        ('"nets.Model"', "", True),
        ("None", "- model: nets.Model\n", True),
        ('"nets.Table"', "", False),
    ],
)
def test_the_text_is_what_configurations_and_defaults_of_the_command_line_say(tmp_path, default, written, draws):
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "tools.py").write_text(PARTS)
    (tmp_path / "main.py").write_text(PROCESSOR.replace("DEFAULT", default))
    (tmp_path / "config" / "kinetics").mkdir(parents=True)
    (tmp_path / "config" / "kinetics" / "train.yaml").write_text(written)
    assert ("TDL101" in {one.code for one in lint(tmp_path)}) == draws


GROUPS = """
import torch
from omegaconf import OmegaConf
from pydoc import locate

SETTINGS = {"kind": "nets.Table", "size": 3}

def run(cfg):
    model = locate(cfg.PART)(3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.load("rows.pt").cuda()).sum().backward()
    optimizer.step()

def main(cfg):
    run(cfg)

if __name__ == "__main__":
    main(OmegaConf.load("all.yaml"))
"""


@pytest.mark.parametrize(("part", "draws"), [("net.kind", True), ("other.kind", False), ("size", False)])
def test_the_folder_of_a_configuration_may_be_a_key(tmp_path, part, draws):
    (tmp_path / "nets.py").write_text(NETS)
    (tmp_path / "main.py").write_text(GROUPS.replace("PART", part))
    (tmp_path / "conf" / "net").mkdir(parents=True)
    (tmp_path / "conf" / "net" / "small.yaml").write_text("kind: nets.Model\nsize: 3\n")
    messages = [one.message for one in lint(tmp_path) if one.code == "TDL101"]
    assert any("Conv2d" in message for message in messages) == draws


def test_of_too_much_under_one_key_nothing_is_known(tmp_path):
    (tmp_path / "nets.py").write_text(NETS + "".join(f"\nclass Model{one}(Model): pass\n" for one in range(20)))
    (tmp_path / "tools.py").write_text(PARTS)
    (tmp_path / "main.py").write_text(PROCESSOR.replace("DEFAULT", "None"))
    for one in range(20):
        (tmp_path / f"train_{one}.yaml").write_text(f"model: nets.Model{one}\n")
    assert "TDL101" not in {one.code for one in lint(tmp_path)}


LATENT = {
    "ldm/__init__.py": "",
    "ldm/util.py": """
import importlib

def instantiate_from_config(config):
    if not "target" in config:
        raise KeyError("Expected key `target` to instantiate.")
    return get_obj_from_str(config["target"])(**config.get("params", dict()))

def get_obj_from_str(string, reload=False):
    module, cls = string.rsplit(".", 1)
    return getattr(importlib.import_module(module, package=None), cls)
""",
    "ldm/ddpm.py": """
import pytorch_lightning as pl
import torch
from ldm.util import instantiate_from_config

class Wrapper(pl.LightningModule):
    def __init__(self, diff_model_config):
        super().__init__()
        self.diffusion_model = instantiate_from_config(diff_model_config)

class LatentDiffusion(pl.LightningModule):
    def __init__(self, unet_config, first_stage_config):
        super().__init__()
        self.model = Wrapper(unet_config)
        self.instantiate_first_stage(first_stage_config)

    def instantiate_first_stage(self, config):
        model = instantiate_from_config(config)
        self.first_stage_model = model.eval()

    def training_step(self, batch, index):
        return self.model(batch).sum()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)
""",
    "ldm/nets.py": NETS,
    "configs/autoencoder/small.yaml": "model:\n  target: ldm.nets.make\n",
    "configs/latent/small.yaml": """
model:
  base_learning_rate: 1.0e-06
  target: ldm.ddpm.LatentDiffusion
  params:
    unet_config:
      target: UNET
      params: {width: 3}
    first_stage_config:
      target: FIRST
data:
  - target: ldm.data.Rows
""",
    "main.py": """
import sys
import torch
from ldm.util import instantiate_from_config
from omegaconf import OmegaConf
from pytorch_lightning import Trainer

if __name__ == "__main__":
    config = OmegaConf.merge(*[OmegaConf.load(one) for one in sys.argv[1:]])
    model = instantiate_from_config(config.MODEL)
    trainer = Trainer(accelerator="gpu")
    trainer.fit(model, torch.load("rows.pt"))
""",
}


@pytest.mark.parametrize(
    ("unet", "first", "model", "counted"),
    [
        ("ldm.nets.Model", "ldm.nets.Table", "model", "1 × Conv2d"),
        ("ldm.nets.Table", "ldm.nets.Model", "model", "1 × Conv2d"),
        ("torch.nn.Embedding", "ldm.nets.Model", "model", "1 × Conv2d"),
        ("ldm.nets.Table", "ldm.nets.Table", "model", "1 × Conv2d"),
        ("ldm.nets.Model", "ldm.nets.Table", "other", ""),
    ],
)
def test_parts_of_a_configuration_name_what_they_make(tmp_path, unet, first, model, counted):
    for name, text in LATENT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace("UNET", unet).replace("FIRST", first).replace("MODEL", model))
    told = {one.code: one.message for one in lint(tmp_path)}
    assert (counted in told["TDL203"]) if counted else ("Conv2d" not in told.get("TDL203", ""))


NESTED = """
import torch
from ldm.util import get_obj_from_str

def build_from_cfg(cfg):
    part = build_from_cfg(cfg.child) if cfg.child else None
    return get_obj_from_str(cfg.target)(part)

def main(cfg):
    model = build_from_cfg(cfg.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.load("rows.pt")).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main(torch.load("configuration.pt"))
"""


def test_a_function_that_calls_itself_for_parts_of_parts_comes_to_an_end(tmp_path):
    for name, text in {**LATENT, "main.py": NESTED}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "conf.yaml").write_text("model:\n  target: ldm.nets.Table\n  child:\n    target: ldm.nets.Model\n")
    assert "TDL101" in {one.code for one in lint(tmp_path)}


ROUND = """
import importlib
import sys

def walk(model, path):
    for part in path.split("."):
        model = getattr(model, part, model)
        path = getattr(path, part, importlib.import_module(path))
CHAIN
    return getattr(importlib.import_module(path), model)

walk(sys, "a.b")
"""


def test_names_that_stand_for_what_they_have_come_to_an_end(tmp_path):
    chain = "\n".join(f"    x{one} = getattr(x{one + 1}, path, x{one})" for one in range(40))
    (tmp_path / "main.py").write_text(ROUND.replace("CHAIN", f"{chain}\n    x40 = getattr(x0, path, model)"))
    found = run.run([str(tmp_path)], Settings(root=str(tmp_path), jobs=1, cache_dir=""))
    assert (found.findings, found.errors) == ((), ())


def test_the_texts_of_a_file_have_the_keys_that_lead_to_them():
    text = (
        "# target: no.Net\nmodel:\n  target: nets.Model\n  params:\n    list:\n      - target: 'nets:First'\n"
        '        name: "plain"\n      - other: nets.Second  # last\n"seed": 1.5\nname: nets.Third\nversion: 1.2.3\n'
        "path: runs/net.pt\nflow: {target: nets.No}\n"
    )
    assert list(dotted_texts(text)) == [
        (("model", "target"), "nets.Model"),
        (("model", "params", "list", "target"), "nets:First"),
        (("model", "params", "list", "other"), "nets.Second"),
        (("name",), "nets.Third"),
    ]
