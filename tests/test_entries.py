"""What a dictionary holds that a call hands on rules out arms, where it is written out in sight."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

MODELS = """\
import torch
from torch import nn

class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        return self.net(x)

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)

    def forward(self, x):
        return self.net(x)

class Model(nn.Module):
    def __init__(self, SIGNATURE):
        super().__init__()
        BEFORE
        if TEST:
            self.model = Convolved()
        else:
            self.model = Plain()

    def forward(self, x):
        return self.model(x)

def generated(encoder, size=4):
    made = {"encoder": encoder, "size": size, "depth": 2}
    if encoder == "cnn":
        made["filters"] = 3
    return made

def built(config):
    return Model(config)

def unpacked(**config):
    return Model(**config)
"""
MAIN = """\
import sys
import torch
from models import *

if __name__ == "__main__":
    config = CONFIG
    MORE
    net = MADE.cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net(torch.randn(2, 3, 4, 4)).sum().backward()
    optimizer.step()
"""
PLAIN = '{"encoder": "plain", "size": 4, "deep": False}'


def convolves(project, config=PLAIN, more="pass", made="Model(config)", models=MODELS, **parts):
    parts = {"SIGNATURE": "config", "BEFORE": "pass", "TEST": 'config["encoder"] == "cnn"'} | parts
    for name, text in parts.items():
        models = models.replace(name, text)
    main = MAIN.replace("CONFIG", config).replace("MORE", more).replace("MADE", made)
    project(models_DOT_py=models, main_DOT_py=main)
    folder = project()
    found = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL203",))).findings
    (message,) = (one.message for one in found)
    return "Conv2d" in message


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ('config["encoder"] == "cnn"', False),
        ('config["encoder"] != "cnn"', True),
        ('config["encoder"] in ("cnn", "rnn")', False),
        ('config.get("encoder") == "cnn"', False),
        ('config.get("encoder", "cnn") == "cnn"', False),
        ('config["size"] > 4', False),
        ('4 < config["size"]', False),
        ('config["size"] > 3', True),
        ('config["deep"]', False),
        ('not config["deep"]', True),
        ('config["other"] == "cnn"', True),
        ('config[size] == "cnn"', True),
        ('config["encoder"].lower() == "cnn"', True),
        ('config["encoder"][0] == "c"', True),
    ],
)
def test_an_entry_decides(project, test, found):
    assert convolves(project, TEST=test) is found


@pytest.mark.parametrize(
    ("config", "more", "made", "found"),
    [
        ('{"encoder": "cnn"}', "pass", "Model(config)", True),
        ('dict(encoder="plain")', "pass", "Model(config)", False),
        ('dict(PLAIN, encoder="plain")', "pass", "Model(config)", True),
        ('{**PLAIN, "encoder": "plain"}', "pass", "Model(config)", True),
        ('{"encoder": sys.argv[1]}', "pass", "Model(config)", True),
        ("{}", "pass", 'Model({"encoder": "plain"})', False),
        (PLAIN, "pass", "built(config)", False),
        (PLAIN, "pass", "built(config=config)", False),
        (PLAIN, 'config["other"] = sys.argv[1]', "Model(config)", False),
        (PLAIN, 'config["encoder"] = sys.argv[1]', "Model(config)", True),
        (PLAIN, "config[sys.argv[1]] = 3", "Model(config)", True),
        (PLAIN, "config.update(size=3)", "Model(config)", True),
        (PLAIN, 'print(config["encoder"] == "cnn", config.items())', "Model(config)", False),
        (PLAIN, "config = dict(encoder='cnn')", "Model(config)", True),
        ('generated("plain")', "pass", "Model(config)", False),
        ('generated(encoder="plain", size=3)', "pass", "built(config)", False),
        ('generated("cnn")', "pass", "Model(config)", True),
        ("generated(sys.argv[1])", "pass", "Model(config)", True),
        ('generated("plain")', 'generated("cnn")', "Model(config)", True),
    ],
)
def test_a_dictionary_is_known_where_all_of_it_is_in_sight(project, config, more, made, found):
    assert convolves(project, config, more, made) is found


@pytest.mark.parametrize(
    ("config", "made", "found"),
    [
        (PLAIN, "Model(**config)", False),
        (PLAIN, "unpacked(**config)", False),
        ("{}", 'Model(encoder="plain")', False),
        ("{}", 'unpacked(encoder="plain", size=3)', False),
        ("{}", 'Model(encoder="cnn")', True),
        ("{}", "Model(encoder=sys.argv[1])", True),
        ('generated("plain")', "Model(**config)", False),
        ('generated("plain")', "unpacked(**config)", False),
        ('generated("cnn")', "unpacked(**config)", True),
        ("vars(sys)", "Model(**config)", True),
    ],
)
def test_what_is_unpacked_is_known_too(project, config, made, found):
    assert convolves(project, config, made=made, SIGNATURE="**config") is found


@pytest.mark.parametrize(
    ("before", "test", "found"),
    [
        ('encoder = config["encoder"]', 'encoder == "cnn"', False),
        ('encoder = config.get("encoder")', 'encoder == "cnn"', False),
        ('deep = config["deep"]', "deep", False),
        ('encoder = config["encoder"]; encoder = str(size)', 'encoder == "cnn"', True),
        ("config = dict(config)", 'config["encoder"] == "cnn"', True),
        ('config["encoder"] = str(size)', 'config["encoder"] == "cnn"', True),
        ('size["encoder"] = 3', 'config["encoder"] == "cnn"', True),
    ],
)
def test_an_entry_that_is_read_first(project, before, test, found):
    assert convolves(project, BEFORE=before, TEST=test) is found


@pytest.mark.parametrize(("config", "found"), [(PLAIN, False), ('{"encoder": "cnn"}', True), ("vars(sys)", True)])
@pytest.mark.parametrize("key", ['config["encoder"]', 'encoder=config["encoder"]'])
def test_an_entry_that_is_handed_on_is_a_constant(project, config, key, found):
    assert convolves(project, config, made=f"Model({key})", SIGNATURE="encoder", TEST='encoder == "cnn"') is found


KEPT = """\
        self.config = config
        self.model = Plain()

    def grown(self):
        if ASKED:
            return Convolved()

    def forward(self, x):
        return self.model(x) + self.grown()(x)
"""
SETTINGS = """

class Settings:
    def __init__(self, size=3):
        self.deep = False
        self.encoder = "plain"
"""


@pytest.mark.parametrize(
    ("asked", "config", "more", "found"),
    [
        ('self.config["encoder"] == "cnn"', PLAIN, "pass", False),
        ('self.config["encoder"] != "cnn"', PLAIN, "pass", True),
        ('self.config.get("deep")', PLAIN, "pass", False),
        ('self.config["deep"]', 'generated("plain")', "pass", True),
        ("self.config.deep", "Settings()", "pass", False),
        ("not self.config.deep", "Settings()", "pass", True),
        ('self.config.encoder == "cnn"', "Settings()", "pass", False),
        ("self.config.deep", "Settings()", "config.deep = True", True),
        ("self.config.deep", "vars(sys)", "pass", True),
        ("self.config.deep", "Settings()", "Model(sys)", True),
        ("self.other.deep", "Settings()", "pass", True),
        ("self.config.deep", "Settings()", "sys.config = 3", True),
    ],
)
def test_what_an_object_keeps_decides_in_its_methods(project, asked, config, more, found):
    begin, end = MODELS.index("        BEFORE"), MODELS.index("def generated")
    models = MODELS[:begin] + KEPT.replace("ASKED", asked) + SETTINGS + "\n" + MODELS[end:]
    assert convolves(project, config, more, models=models) is found
