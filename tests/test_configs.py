"""What Hydra composes of YAML files, and which of them Lightning's command line takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.program import launch_configs


@pytest.fixture
def over(tmp_path):
    """Configurations over files that are given by path."""

    def make(**files):
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return make


def of(root):
    def listing(folder):
        try:
            return frozenset(entry.name + "/" * entry.is_dir() for entry in os.scandir(folder))
        except OSError:
            return frozenset()

    return launch_configs.Configs(str(root), listing, lambda path: Path(path).read_text())


def composed(root, *path, name="main"):
    found = of(root).at(str(root / "train.py"), [("conf", name)], list(path))
    return found[0] if found else None


def test_defaults_come_before_or_after_the_file_itself(over):
    group = {"conf__net__a": "width: 1\ndepth: 1", "conf__net__b": "width: 2"}
    own = "net:\n  width: 9"
    assert composed(over(conf__main=f"defaults: [net: a]\n{own}", **group), "net") == {"width": 1, "depth": 1}
    assert composed(over(conf__main=f"defaults: [net: a, _self_]\n{own}", **group), "net") == {"width": 9, "depth": 1}
    assert composed(over(conf__main="defaults: [{net: [a, b]}]", **group), "net") == {"width": 2, "depth": 1}
    assert composed(over(conf__main="defaults:\n - net: a\n - override net: b", **group), "net")["width"] == 2


@pytest.mark.parametrize("choice", ["${defaults.0.task}-${defaults.1.size}", "${task}-${size}"])
def test_an_option_is_named_by_others(over, choice):
    root = over(
        conf__main=f"defaults:\n - task: cls\n - size: big\n - net: {choice}",
        conf__task__cls="classes: 3",
        conf__size__big="width: 9",
        **{"conf__net__cls-big": "depth: 5"},
    )
    assert composed(root, "net") == {"depth": 5}
    over(conf__main="defaults:\n - net: ${task}-big")
    assert launch_configs.HIDDEN in composed(root, "net")


def test_packages_and_nested_defaults(over):
    root = over(
        conf__main="defaults:\n - base\n - /net@first: a\n - experiment: x",
        conf__base="name: base",
        conf__net__a="defaults: [common]\nwidth: 1",
        conf__net__common="depth: 3",
        conf__experiment__x="# @package _global_\ndefaults:\n - /net: a\nextra:\n  seed: 4",
    )
    assert composed(root, "first") == {"depth": 3, "width": 1}
    assert composed(root, "net") == {"depth": 3, "width": 1}
    assert composed(root, "extra") == {"seed": 4}


def test_references_are_followed_and_what_only_the_run_knows_is_not_known(over):
    root = over(conf__main="a: 3\nb:\n  c: ${a}\n  d: ${oc.env:X}\n  e: ???\n  f: ${b.f}\n  g: x${a}\n  h: [1, '${a}']")
    part = composed(root, "b")
    assert (part["c"], part["h"]) == (3, [1, 3])
    assert all(part[name] is launch_configs.UNKNOWN for name in "defg")


def test_option_that_is_not_there_hides_what_it_holds(over):
    assert launch_configs.HIDDEN in composed(over(conf__main="defaults: [net: other]\nnet:\n  width: 1"), "net")
    assert composed(over(conf__main="a: 1"), name="other") is None or not composed(over(), name="other")


def test_files_that_name_each_other_come_to_an_end(over):
    root = over(conf__main="defaults: [other]\na: {b: 1}", conf__other="defaults: [main]\nc: 1")
    assert composed(root, "a") == {"b": 1}


@pytest.mark.parametrize(
    "text",
    [
        "a: [1",
        "- 1",
        "",
        "\t",
        "a: !!python/object/apply:os.system [false]",
        "a: 1\n" + "#" * 70_000,
        "[" * 50_000,
        "a: 2001-99-99",
        "a: \x00",
    ],
    ids=range(9),
)
def test_text_that_is_no_configuration_is_nothing(text):
    assert not isinstance(launch_configs.parsed(text), dict)


def test_aliases_cost_little_and_stay_apart(over):
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    root = over(conf__main=f"defaults: [_self_, other]\n{bomb}b: &b {{c: 1}}\nd: *b", conf__other="b: {e: 2}")
    assert composed(root, "b") == {"c": 1, "e": 2}
    assert composed(root, "d") == {"c": 1}


MAIN = "from lightning.pytorch.cli import LightningCLI\nfrom nets import Net\n\nLightningCLI(Net)\n"
NETS = "from lightning.pytorch import LightningModule\n\nclass Net(LightningModule):\n    pass\n"


def test_a_configuration_that_comes_or_changes_is_seen(tmp_path):
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "nets.py").write_text(NETS)
    settings = Settings(root=str(tmp_path), jobs=1, cache_dir=str(tmp_path / ".cache"))

    def found():
        return [finding.code for finding in run.run([str(tmp_path)], settings).findings]

    assert found() == found() == []
    (tmp_path / "fit.yaml").write_text("seed_everything: 1\ntrainer: {}\n")
    assert found() == found() == ["TDL203"]
    (tmp_path / "fit.yaml").write_text("seed_everything: 1\ntrainer: {deterministic: true}\n")
    assert found() == found() == []
    (tmp_path / "fit.yaml").unlink()
    assert found() == []


NAMED = """
import importlib
import torch

def find(path):
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)

def main(cfg):
    model = find(cfg.model)()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.load("rows.pt")).sum().backward()
    optimizer.step()

if __name__ == "__main__":
    main(torch.load("configuration.pt"))
"""


def test_a_text_in_a_configuration_that_comes_or_changes_is_seen(tmp_path):
    (tmp_path / "main.py").write_text(NAMED.replace("find(", "find_class("))
    (tmp_path / "nets.py").write_text("import torch\n\ndef make():\n    return torch.nn.Linear(2, 2)\n")
    settings = Settings(root=str(tmp_path), jobs=1, cache_dir=str(tmp_path / ".cache"))

    def found():
        return [finding.code for finding in run.run([str(tmp_path)], settings).findings]

    assert found() == found() == []
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "small.yaml").write_text("model: nets.other\n")
    assert found() == found() == []
    (tmp_path / "conf" / "small.yaml").write_text("model: nets.make\n")
    assert found() == found() == ["TDL101"]
    (tmp_path / "conf" / "small.yaml").unlink()
    assert found() == []


def test_options_of_another_file_that_a_third_one_changes_are_asked_again(tmp_path):
    (tmp_path / "settings.py").write_text('TRAINER = {"deterministic": False}\n')
    main = "import settings\nfrom lightning.pytorch import Trainer\n\nTrainer(**settings.TRAINER)\n"
    (tmp_path / "main.py").write_text(main)
    settings = Settings(root=str(tmp_path), jobs=1, cache_dir=str(tmp_path / ".cache"))

    def found():
        return [finding.code for finding in run.run([str(tmp_path)], settings).findings]

    assert found() == found() == ["TDL208"]
    (tmp_path / "other.py").write_text(
        "import settings\n\n\ndef change(options):\n    settings.TRAINER.update(options)\n"
    )
    assert found() == found() == []
    (tmp_path / "other.py").write_text("import settings\n\ndef show():\n    return settings.TRAINER.keys()\n")
    assert found() == found() == ["TDL208"]
    (tmp_path / "settings.py").write_text('TRAINER = {"deterministic": True}\n')
    assert found() == []
