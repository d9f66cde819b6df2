"""A file gets the same findings wherever and with whatever else it is linted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchdet_lint import api
from torchdet_lint.cli.main import main

MAIN = (
    "import torch\nfrom seeding import seed\nfrom model import Net\n\n"
    "if __name__ == '__main__':\n    {seed}\n    Net()(torch.rand(2))\n"
)
MODEL = (
    "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.up = torch.nn.Upsample(scale_factor=2, mode='bilinear')\n\n"
    "    def forward(self, x):\n        return torch.bincount(x, weights=x), self.up(x)\n"
)  # fmt: skip
SEEDING = "import torch\n\n\ndef seed():\n    torch.manual_seed(0)\n    torch.use_deterministic_algorithms(True)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(**texts: str) -> None:
    for name, text in texts.items():
        path = Path(name.replace("__", "/").replace("_DOT_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    main([*arguments, "--output-format", "json"])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def codes(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, str]]:
    return [(finding["filename"], finding["code"]) for finding in findings(capsys, *arguments)]


PROJECT = {
    "deterministic": MAIN.format(seed="seed()"),
    "seeded": MAIN.format(seed="torch.manual_seed(3)"),
    "unseeded": MAIN.format(seed="pass"),
}


@pytest.mark.parametrize("cache", [[], ["--no-cache"]])
@pytest.mark.parametrize("kind", sorted(PROJECT))
@pytest.mark.parametrize("layout", ["flat", "scripts"])
def test_a_file_alone_gets_the_findings_of_the_project(
    capsys: pytest.CaptureFixture[str], kind: str, layout: str, cache: list[str]
) -> None:
    main_name = "train_DOT_py" if layout == "flat" else "scripts__train_DOT_py"
    home = "" if layout == "flat" else "src__"
    put(**{main_name: PROJECT[kind], f"{home}model_DOT_py": MODEL, f"{home}seeding_DOT_py": SEEDING,
           "other_DOT_py": "import random\nrandom.random()\n"})  # fmt: skip
    whole = findings(capsys, ".", *cache)
    names = sorted(str(path) for path in Path().rglob("*.py"))
    for name in names:
        alone = findings(capsys, name, *cache)
        assert alone == [finding for finding in whole if finding["filename"] == name]
    for named in ([n for n in names if "train" not in n], names[1:]):
        some = findings(capsys, *named, *cache)
        assert some == [finding for finding in whole if finding["filename"] in named]


def test_an_entry_point_that_loses_its_seed_is_found_by_what_seeded_it(capsys: pytest.CaptureFixture[str]) -> None:
    put(train_DOT_py=PROJECT["unseeded"], seeding_DOT_py=SEEDING, model_DOT_py=MODEL)
    assert ("train.py", "TDL101") in codes(capsys, "train.py", "seeding.py")


def test_what_is_excluded_is_no_part_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    put(old__train_DOT_py=PROJECT["deterministic"], model_DOT_py=MODEL, seeding_DOT_py=SEEDING,
        pyproject_DOT_toml="[tool.torchdet-lint]\nexclude = ['old']\n")  # fmt: skip
    assert codes(capsys, "model.py") == [item for item in codes(capsys, ".") if item[0] == "model.py"]


def test_without_a_project_only_what_is_imported_is_read(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".git").rmdir()
    put(train_DOT_py=PROJECT["deterministic"], model_DOT_py=MODEL, seeding_DOT_py=SEEDING)
    monkeypatch.setattr("torchdet_lint.engine.run.walked", lambda *_: pytest.fail("walked"))
    assert ("model.py", "TDL403") in codes(capsys, "model.py", "--no-cache")


# ------------------------------------------------------------------------------------------- the nearest configuration

BOTH = "import torch\n\ntorch.backends.cudnn.benchmark = True\ntorch.backends.cudnn.deterministic = False\n"


@pytest.mark.parametrize("paths", [["."], ["a", "b"], ["a/x.py", "b/x.py", "x.py"], ["a/x.py", "b", "."]])
def test_the_nearest_configuration_holds_for_each_file(capsys: pytest.CaptureFixture[str], paths: list[str]) -> None:
    put(a__x_DOT_py=BOTH, b__x_DOT_py=BOTH, b__c__x_DOT_py=BOTH, x_DOT_py=BOTH,
        a__pyproject_DOT_toml="[tool.torchdet-lint]\nignore = ['TDL201']\n",
        b__pyproject_DOT_toml="[project]\nname = 'b'\n[tool.torchdet-lint]\nignore = ['TDL202']\n")  # fmt: skip
    Path("b/c/torchdet-lint.toml").write_text("min-severity = 'error'\nignore = ['TDL']\n")
    whole = codes(capsys, *paths)
    expected = {("a/x.py", "TDL202"), ("b/x.py", "TDL201")}
    if "x.py" in paths or "." in paths:
        expected |= {("x.py", "TDL202"), ("x.py", "TDL201")}
    assert set(whole) == expected
    assert len(whole) == len(expected)
    for name in ("a/x.py", "b/x.py", "b/c/x.py"):
        assert codes(capsys, name) == [item for item in whole if item[0] == name]


SHUFFLED = (
    "import torch\nfrom torch.utils.data import DataLoader\n\n"
    "torch.manual_seed(0)\nbatches = list(DataLoader([1], shuffle=True))\n"
)


def test_before_torch_1_6_the_sampler_will_take_the_generator(capsys: pytest.CaptureFixture[str]) -> None:
    sampled = SHUFFLED.replace("shuffle=True", "sampler=torch.utils.data.RandomSampler([1])")
    put(x_DOT_py=sampled, requirements_DOT_txt="torch==1.5\n")
    (found,) = (one for one in findings(capsys, ".") if one["code"] == "TDL302")
    assert found["help"].startswith("Pass `generator=torch.Generator().manual_seed(seed)` to the sampler once")


def test_the_nearest_requirement_on_torch_holds_for_each_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Each experiment of a project may have an environment of its own."""
    put(a__b__x_DOT_py=SHUFFLED, c__x_DOT_py=SHUFFLED, x_DOT_py=SHUFFLED,
        a__environment_DOT_yml="dependencies:\n- pytorch=1.4.0\n", c__requirements_DOT_txt="torch>=1.7\n")  # fmt: skip

    def helps(*arguments: str) -> dict[str, str]:
        return {one["filename"]: one["help"] for one in findings(capsys, *arguments)}

    whole = helps(".")
    assert whole.keys() == {"a/b/x.py", "c/x.py", "x.py"}
    assert whole["a/b/x.py"].startswith("Pass `generator=torch.Generator().manual_seed(seed)` once the project")
    assert whole["c/x.py"] == whole["x.py"] == "Pass `generator=torch.Generator().manual_seed(seed)`."
    for name in whole:
        assert helps(name) == {name: whole[name]}
    assert helps("a/b/x.py", "--torch-version", "2.4") == {"a/b/x.py": whole["x.py"]}
    assert helps("a/b/x.py", "--isolated") == {"a/b/x.py": whole["x.py"]}
    (found,) = api.lint_source(SHUFFLED, "a/b/x.py")
    assert found.help == whole["a/b/x.py"]
    assert [one.help for one in api.lint("a")] == [whole["a/b/x.py"]]


def test_flags_win_over_every_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    put(a__x_DOT_py=BOTH, a__pyproject_DOT_toml="[tool.torchdet-lint]\nignore = ['TDL201']\n", x_DOT_py=BOTH)
    assert set(codes(capsys, ".", "--select", "TDL201")) == {("a/x.py", "TDL201"), ("x.py", "TDL201")}
    assert set(codes(capsys, ".", "--isolated", "--select", "TDL201")) == {("a/x.py", "TDL201"), ("x.py", "TDL201")}


def test_files_of_several_projects_are_fixed_by_their_own_settings() -> None:
    put(a__x_DOT_py=BOTH, x_DOT_py=BOTH)
    Path("a/torchdet-lint.toml").write_text("ignore = ['TDL201']\n")
    main([".", "--fix", "-q"])
    assert "benchmark = True" in Path("a/x.py").read_text()
    assert "benchmark = True" not in Path("x.py").read_text()
    assert "deterministic = False" not in Path("a/x.py").read_text()


def test_a_configuration_inside_leaves_out_what_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    put(a__old__x_DOT_py=BOTH, a__new__x_DOT_py=BOTH)
    Path("a/torchdet-lint.toml").write_text("extend-exclude = ['old']\n")
    assert {name for name, _ in codes(capsys, ".")} == {"a/new/x.py"}


# ---------------------------------------------------------------------------------------------------------- exclusion


def test_named_files_are_left_out_by_force(capsys: pytest.CaptureFixture[str]) -> None:
    put(pyproject_DOT_toml="[tool.torchdet-lint]\nexclude = ['notes', 'one.py']\n", notes__deep__x_DOT_py=BOTH,
        one_DOT_py=BOTH, two_DOT_py=BOTH, gone__x_DOT_py=BOTH)  # fmt: skip
    Path(".gitignore").write_text("gone/\n")
    named = ["notes/deep/x.py", "one.py", "two.py", "gone/x.py"]
    assert {name for name, _ in codes(capsys, *named)} == set(named)
    assert {name for name, _ in codes(capsys, "--force-exclude", *named)} == {"two.py"}
    assert main(["--force-exclude", "one.py"]) == 0
    assert capsys.readouterr().err == ""
    Path("pyproject.toml").write_text("[tool.torchdet-lint]\nexclude = ['one.py']\nforce-exclude = true\n")
    assert {name for name, _ in codes(capsys, *named)} == {"notes/deep/x.py", "two.py"}
    assert {name for name, _ in codes(capsys, "--no-force-exclude", *named)} == set(named)
    before = Path("one.py").read_text()
    main(["--fix", "-q", "one.py"])
    assert Path("one.py").read_text() == before


def test_usual_folders_are_left_out_by_force(capsys: pytest.CaptureFixture[str]) -> None:
    put(venv__x_DOT_py=BOTH)
    assert codes(capsys, "venv/x.py", "--force-exclude") == []


def test_show_files(capsys: pytest.CaptureFixture[str]) -> None:
    put(b_DOT_py="", a__x_DOT_py="", notes_DOT_txt="")
    assert main(["--show-files"]) == 0
    assert capsys.readouterr().out == "a/x.py\nb.py\n"
    assert main(["--show-files", "b.py", "nowhere.py"]) == 2


def test_show_settings(capsys: pytest.CaptureFixture[str]) -> None:
    put(pyproject_DOT_toml="[tool.torchdet-lint]\nseed = 3\n")
    assert main(["--show-settings", "--devices", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "seed: 3" in lines
    assert "devices: cpu" in lines


def test_hooks_leave_out_what_is_excluded() -> None:
    text = (Path(__file__).parents[1] / ".pre-commit-hooks.yaml").read_text()
    import yaml

    hooks = {hook["id"]: hook for hook in yaml.safe_load(text)}
    assert set(hooks) == {"torchdet-lint", "torchdet-lint-fix", "torchdet-lint-project"}
    for name in ("torchdet-lint", "torchdet-lint-fix"):
        assert "--force-exclude" in hooks[name]["entry"]
    assert hooks["torchdet-lint-project"]["pass_filenames"] is False
