"""Configuration: what is found, what is refused, and in which words."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest

from torchdet_lint import config
from torchdet_lint.cli.main import main
from torchdet_lint.config import ConfigError, Options, Settings, keys

CODES = {"TDL101": "unseeded-torch", "TDL201": "cudnn-benchmark", "TDL202": "cudnn-nondeterministic", "ACME001": "own"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def settings(root: Path, text: str, **flags: object) -> Settings:
    (root / "pyproject.toml").write_text(text)
    return config.merge(config.find([str(root)]), Options(**flags))  # type: ignore[arg-type]


def test_nothing_is_configured(root: Path) -> None:
    found = config.find([str(root)])
    assert found == config.Configuration(str(root))
    resolved = config.merge(found, Options())
    assert (resolved.select, resolved.torch, resolved.min_severity) == (("TDL",), config.NEWEST_TORCH, "warning")
    assert resolved.cache_dir == str(root / ".torchdet_cache")


def test_the_nearest_file_wins_and_paths_are_relative_to_it(root: Path) -> None:
    (root / "pyproject.toml").write_text("[tool.torchdet-lint]\nselect = ['TDL1']\n")
    inner = root / "pkg/deep"
    inner.mkdir(parents=True)
    (root / "pkg/torchdet-lint.toml").write_text("select = ['TDL2']\nbaseline = 'known.json'\n")
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    near = config.merge(config.find([str(inner)]), Options())
    assert (near.select, near.baseline, near.root) == (("TDL2",), str(root / "pkg/known.json"), str(root / "pkg"))
    assert config.find([str(inner), str(root)]).options.select == ("TDL1",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("selekt = ['TDL1']", "[tool.torchdet-lint] unknown key 'selekt'; did you mean 'select'?"),
        ("torch_version = '2.1'", "unknown key 'torch_version'; did you mean 'torch-version'?"),
        ("zzz = 1", "unknown key 'zzz'; known are baseline, cache-dir,"),
        ("jobs = 'two'", "[tool.torchdet-lint] jobs: expected a whole number, got text"),
        ("select = 'TDL1'", "select: expected a list, got text"),
        ("select = [1]", "select: expected text, got a whole number (at [0])"),
        ("output-format = 'xml'", "output-format: 'xml' is none of full, concise, grouped, json"),
        ("min-severity = 'low'", "min-severity: 'low' is none of error, warning, note"),
        ("devices = []", "devices: none is named"),
        ("per-file-ignores = {'a.py' = 'TDL1'}", "per-file-ignores: expected a list, got text"),
        ("torch-version = 'new'", "torch-version: 'new' is not a release such as '2.13'"),
        ("devices = ['gpu']", "devices: 'gpu' is none of cpu, cuda, mps, xpu"),
        ("seed = -1", "seed: -1 is not between"),
        ("jobs = -1", "jobs: -1 is negative"),
        ("rule-files = ['none/*.toml']", "rule-files: nothing matches 'none/*.toml'"),
    ],
)
def test_a_wrong_key_is_named_with_its_file(root: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings(root, f"[tool.torchdet-lint]\n{text}\n")
    assert str(caught.value).startswith(f"{root / 'pyproject.toml'}: ")
    assert complaint in str(caught.value)


@pytest.mark.parametrize("name", ["torchdet_lint", "torchdetlint", "TorchDet-Lint"])
def test_a_table_of_a_misspelt_name_is_not_passed_over(root: Path, name: str) -> None:
    (root / "pyproject.toml").write_text(f"[tool.{name}]\nselect = ['TDL1']\n")
    (error,) = config.find([str(root)]).errors
    assert error.endswith(f"pyproject.toml: unknown table [tool.{name}]; did you mean [tool.torchdet-lint]?")


def test_a_byte_order_mark_is_no_error(root: Path) -> None:
    assert settings(root, "\ufeff[tool.torchdet-lint]\nseed = 3\n").seed == 3


def test_a_file_that_is_no_toml_is_a_complaint_and_no_end(root: Path) -> None:
    (root / "pyproject.toml").write_text("[tool\n")
    found = config.find([str(root)])
    assert len(found.errors) == 1
    assert found.errors[0].startswith(f"{root / 'pyproject.toml'}: not valid TOML: ")
    with pytest.raises(ConfigError, match="not valid TOML"):
        config.explicit(str(root / "pyproject.toml"))
    with pytest.raises(ConfigError, match="no such configuration file"):
        config.explicit(str(root / "none.toml"))


def test_flags_win(root: Path) -> None:
    text = "[tool.torchdet-lint]\nselect = ['TDL1']\nignore = ['TDL101']\njobs = 3\n"
    text += "exclude = ['a']\nextend-exclude = ['b']\n"
    kept = settings(root, text, ignore=("TDL2",))
    assert (kept.select, kept.ignore, kept.jobs, kept.exclude) == (("TDL1",), ("TDL101", "TDL2"), 3, ("a", "b"))
    assert not kept.default_excludes
    replaced = settings(root, text, select=("TDL2",), jobs=1)
    assert (replaced.select, replaced.ignore, replaced.jobs) == (("TDL2",), (), 1)


@pytest.mark.parametrize(
    ("select", "extend", "ignore", "chosen"),
    [
        (("TDL",), (), (), "TDL101 TDL201 TDL202"),
        (("ALL",), (), (), "ACME001 TDL101 TDL201 TDL202"),
        (("TDL2",), (), (), "TDL201 TDL202"),
        (("TDL",), (), ("TDL2",), "TDL101"),
        (("TDL", "TDL201"), (), ("TDL2",), "TDL101 TDL201"),
        (("TDL2",), (), ("TDL2",), ""),
        (("tdl1",), ("ACME",), (), "ACME001 TDL101"),
        (("cudnn-benchmark",), (), ("TDL",), "TDL201"),
    ],
)
def test_the_longest_prefix_wins(
    select: tuple[str, ...], extend: tuple[str, ...], ignore: tuple[str, ...], chosen: str
) -> None:
    settings = Settings(root="", select=select, extend_select=extend, ignore=ignore)
    assert " ".join(sorted(config.selection(settings, CODES))) == chosen


def test_a_file_that_ignores_what_is_no_rule_is_named() -> None:
    with pytest.raises(ConfigError, match=r"per-file-ignores: a\.py: no rule has the code, prefix or name 'TDL9'"):
        config.selection(Settings(root="", per_file_ignores={"a.py": ("TDL201", "TDL9")}), CODES)


def test_a_selector_that_fits_no_rule_is_named() -> None:
    with pytest.raises(ConfigError, match="'TDL9'"):
        config.selection(Settings(root="", ignore=("TDL9",)), CODES)
    with pytest.raises(ConfigError, match="did you mean 'TDL201'"):
        config.selection(Settings(root="", select=("TDL2O1",)), CODES)


@pytest.mark.parametrize(
    ("specifier", "release"),
    [
        (">=2.0", (2, 15)),
        ("==2.1.0", (2, 1)),
        ("==2.1.*", (2, 1)),
        (">=1.9,<2.0", (1, 13)),
        (">=2.0,<2.4", (2, 3)),
        (">=2.0,<2.4.1", (2, 4)),
        ("<=2.2", (2, 2)),
        ("~=2.1", (2, 15)),
        ("~=2.1.0", (2, 1)),
        ("!=2.15,>=2", (2, 14)),
        ("!=2.15.1", (2, 15)),
        ("==9.0", None),
        ("==1.0.1", (1, 0)),
        ("==0.4.1", (0, 4)),
        ("<1.2", (1, 1)),
        ("==1.5.0a0+3bbb36e", (1, 5)),
    ],
)
def test_the_newest_release_that_a_requirement_allows(specifier: str, release: tuple[int, int] | None) -> None:
    assert config.newest_allowed(specifier) == release


@pytest.mark.parametrize(
    ("name", "text", "required"),
    [
        ("pyproject.toml", "[project]\ndependencies = ['numpy<2.1', 'torch>=2.0,<2.4']\n", ((2, 3), (2, 0))),
        ("pyproject.toml", "[tool.poetry.dependencies]\ntorch = '^1.12'\n", ((1, 13), (1, 12))),
        ("pyproject.toml", "[project]\ndependencies = ['torchvision==0.1', 'pytorch-x==1.2', 'torch']\n", None),
        ("requirements.txt", "# torch==1.0\ntorch-scatter==2.0\ntorch == 2.2.1+cu118  # pinned\n", ((2, 2), (2, 2))),
        ("requirements-dev.txt", "torch[opt]>=1.8; python_version<'3.9'\n", ((2, 15), (1, 8))),
        ("requirements.txt", "pytorch-lightning==1.5\npytorch==1.10\n", ((1, 10), (1, 10))),
        (
            "requirements.txt",
            "# conda list --export\npytorch-mutex=1.0=cuda\npytorch=1.10.0=py3.8_cuda\n",
            ((1, 10), (1, 10)),
        ),
        ("requirements.txt", "pytorch_lightning==1.5\npytorch-metric-learning>=1.0\npytorch3d==2.0\n", None),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch<2.1\n", ((2, 0), None)),
        ("setup.py", "setup(install_requires=['torch>=1.10,<=2.5'])\n", ((2, 5), (1, 10))),
        (
            "environment.yml",
            "dependencies:\n  - pytorch-lightning=1.2\n  - pytorch=1.3.1=py37_cuda\n",
            ((1, 3), (1, 3)),
        ),
        ("environment.yaml", "dependencies:\n  - pytorch::pytorch>=1.9,<2.1\n", ((2, 0), (1, 9))),
        ("environment-gpu.yml", "dependencies:\n  - pip:\n    - torch==2.1.0+cu118\n", ((2, 1), (2, 1))),
        ("environment.yml", "dependencies:\n  - torchvision=0.9\n  - pytorch-cuda=11.7\n", None),
        ("conda_environment.yaml", "dependencies:\n  - pytorch=1.12.1\n", ((1, 12), (1, 12))),
        ("env.yml", "dependencies:\n  - pytorch=1.11\n", ((1, 11), (1, 11))),
        ("conda-env-gpu.yml", "dependencies:\n  - pip:\n    - torch==2.1.0\n", ((2, 1), (2, 1))),
        ("envelope.yml", "dependencies:\n  - pytorch=1.11\n", None),
        ("cog.yaml", 'build:\n  python_packages:\n    - "torch==1.8.0"\n', ((1, 8), (1, 8))),
        ("environment/psp_env.yaml", "dependencies:\n  - pip:\n    - torch==1.6.0\n", ((1, 6), (1, 6))),
        ("envs/gpu.yml", "dependencies:\n  - pytorch=1.11\n", ((1, 11), (1, 11))),
        ("requirements/base.txt", "numpy\ntorch>=1.4,<2.4\n", ((2, 3), (1, 4))),
        ("requirements/docs.txt", "torch==1.9\n", None),
        ("env/requirements.txt", "torch==1.9\n", ((1, 9), (1, 9))),
        ("configs/model.yaml", "dependencies:\n  - pytorch=1.11\n", None),
    ],
)
def test_the_target_is_what_the_project_requires(
    root: Path, name: str, text: str, required: tuple[tuple[int, int], tuple[int, int] | None] | None
) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text(text)
    assert config.required_torch(root) == required
    assert config.find([str(root)]).torch == required


@pytest.mark.parametrize(
    ("start", "files", "top"),
    [
        ("work/scripts", ["work/lib/__init__.py"], "work"),
        ("work/pack/sub", ["work/pack/__init__.py", "work/pack/sub/__init__.py"], "work"),
        ("other/pack/sub", ["other/pack/__init__.py", "other/pack/sub/__init__.py"], "other"),
        ("work/scripts", ["work/one/setup.py", "work/two/setup.py"], "work/scripts"),
        ("other/scripts", [], "other/scripts"),
    ],
)
def test_a_project_without_a_mark_starts_where_one_works_or_above_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, files: list[str], top: str
) -> None:
    for name in (*files, f"{start}/train.py", "work/notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    monkeypatch.chdir(tmp_path / "work")
    given = str(tmp_path / start / "train.py")
    assert config.isolated([given]).root == str(tmp_path / top)
    assert config.find([given]).root == str(tmp_path / top)


@pytest.mark.parametrize("key", ["exclude", "extend-exclude", "entry-points"])
def test_what_is_no_pattern_is_named(tmp_path: Path, key: str) -> None:
    (tmp_path / "torchdet-lint.toml").write_text(f"{key} = ['*.py', '!']\n")
    with pytest.raises(config.ConfigError, match=rf"torchdet-lint.toml: {key}: '!' is not a pattern"):
        config.merge(config.find([str(tmp_path)]), config.Options())


def test_a_file_that_is_no_pattern_is_named(tmp_path: Path) -> None:
    with pytest.raises(config.ConfigError, match=r"per-file-ignores: '\[z-a\]' is not a pattern"):
        config.merge(config.isolated([str(tmp_path)]), config.Options(per_file_ignores={"[z-a]": ("TDL2",)}))


@pytest.mark.parametrize("pattern", ["", " ", "#old", "[", "a/[!", r"\[[x"])
def test_a_pattern_that_fits_nothing_at_all_is_named(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(config.ConfigError, match="is not a pattern"):
        config.merge(config.isolated([str(tmp_path)]), config.Options(exclude=(pattern,)))


@pytest.mark.parametrize(
    ("pattern", "top"),
    [
        ("./sub", "/sub"), ("./sub/", "/sub/"), ("!./sub/*.py", "!/sub/*.py"), ("./", "/*"), ("{root}/sub", "/sub"),
        ("./sub/../a.py", "/a.py"), ("/scripts", "/scripts"), ("sub/*", "sub/*"), (r"\[x", r"\[x"), ("[]a]", "[]a]"),
    ],
)  # fmt: skip
def test_a_path_is_a_pattern_too(root: Path, pattern: str, top: str) -> None:
    given = pattern.format(root=root)
    found = config.Configuration(str(root), "pyproject.toml", config.Options(exclude=(given,), entry_points=(given,)))
    settings = config.merge(found, config.Options())
    assert (settings.exclude, settings.entry_points) == ((top,), (top,))


def test_a_path_in_a_flag_begins_at_the_working_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    flags = config.Options(exclude=("./a.py", "../b.py"), per_file_ignores={"./*.py": ("TDL1",)})
    settings = config.merge(config.Configuration(str(root)), flags)
    assert settings.exclude == ("/sub/a.py", "/b.py")
    assert settings.per_file_ignores == {"/sub/*.py": ("TDL1",)}
    with pytest.raises(config.ConfigError, match=r"^exclude: '\.\./\.\./x' leads out of the project"):
        config.merge(config.Configuration(str(root)), config.Options(exclude=("../../x",)))


@pytest.mark.parametrize("name", ["a b", "", "seed()", "mylib:seed", "mylib..seed"])
def test_what_is_no_name_of_a_function_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(config.ConfigError, match=r"seed-functions: .* is not the name of a function"):
        config.merge(config.isolated([str(tmp_path)]), config.Options(seed_functions=(name,)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--select", "TDL101 TDL102"], "did you mean TDL101,TDL102?"),
        (["--ignore", "TDL101;unseeded-numpy"], "did you mean TDL101,unseeded-numpy?"),
        (["--select", "TDL101 NOPE"], "`torchdet-lint rule --all` lists them"),
    ],
)
def test_several_rules_in_one_text_are_parted(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main([*arguments, str(root)]) == 2
    assert capsys.readouterr().err.endswith(f"; {said}\n")


def test_several_rules_in_one_text_of_a_file_are_parted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "torchdet-lint.toml").write_text('select = ["TDL1 TDL2"]\n')
    assert main([str(root)]) == 2
    assert capsys.readouterr().err.endswith("; did you mean ['TDL1', 'TDL2']?\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('entry-points = ["nope.py", "train.py"]\n', "entry-points: nothing matches 'nope.py'"),
        ("select = []\n", "no rule is selected"),
        ('ignore = ["TDL"]\n', "no rule is selected"),
        ('entry-points = ["*.py"]\n', ""),
        ('select = []\nextend-select = ["TDL1"]\n', ""),
    ],
)
def test_a_setting_that_does_nothing_is_warned_of(
    root: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (root / "train.py").write_text("x = 1\n")
    (root / "torchdet-lint.toml").write_text(text)
    assert main([str(root)]) == 0
    expected = f"torchdet-lint: warning: {root}/torchdet-lint.toml: {said}\n" if said else ""
    assert capsys.readouterr().err == expected


def test_an_entry_point_elsewhere_in_the_project_is_no_mistake(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "scripts").mkdir()
    (root / "scripts/train.py").write_text("x = 1\n")
    (root / "other.py").write_text("x = 1\n")
    (root / "torchdet-lint.toml").write_text('entry-points = ["scripts/train.py", "train.py"]\nexclude = ["scripts"]\n')
    assert main([str(root / "other.py")]) == 0
    assert capsys.readouterr().err == ""


def test_a_file_of_its_own_has_the_keys_at_the_top(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "torchdet-lint.toml").write_text("[tool.torchdet-lint]\nseed = 1\n")
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith("unknown key 'tool'; the keys stand at the top of this file\n")


def test_every_key_is_explained() -> None:
    assert list(keys.KEYS) == [field.encode_name for field in msgspec.structs.fields(config.Options)]


def test_the_schema_takes_what_the_reader_takes() -> None:
    whole = keys.schema()
    jsonschema.Draft7Validator.check_schema(whole)
    check = jsonschema.Draft7Validator(whole).is_valid
    good = {"select": ["TDL"], "per-file-ignores": {"*.py": ["TDL1"]}, "fix": True, "output-format": "json", "jobs": 2}
    assert check(good)
    msgspec.convert(good, config.Options)
    for bad in ({"selct": []}, {"select": "TDL"}, {"output-format": "html"}, {"jobs": "2"}, {"fix": None}):
        assert not check(bad)


def test_the_command_explains_a_key(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    Path("torchdet-lint.toml").write_text("seed = 7\n")
    assert main(["config", "seed", "fail-on"]) == 0
    assert capsys.readouterr().out == (
        "seed: the seed that fixes write\n  type: a whole number\n  default: 0\n  here: 7 (torchdet-lint.toml)\n\n"
        "fail-on: exit with 1 for findings of this severity and worse\n"
        '  type: "error" | "note" | "warning"\n  default: "warning"\n'
    )
    assert main(["config"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(keys.KEYS)
    assert main(["config", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == keys.schema()
    assert main(["config", "sed"]) == 2
    assert capsys.readouterr().err == "torchdet-lint: error: config: unknown key 'sed'; did you mean 'seed'?\n"


def test_what_the_project_says_itself_comes_before_its_folders_and_a_virtual_environment_says_nothing(
    root: Path,
) -> None:
    for folder, release in (("environment", "1.9"), ("env", "1.8")):
        (root / folder).mkdir()
        (root / folder / "environment.yml").write_text(f"dependencies:\n  - pytorch={release}\n")
    (root / "env" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    required = config.required_torch(root)
    assert required is not None
    assert required.newest == (1, 9)
    (root / "environment" / "environment.yml").unlink()
    assert config.required_torch(root) is None
    (root / "requirements.txt").write_text("torch==2.1\n")
    required = config.required_torch(root)
    assert required is not None
    assert required.newest == (2, 1)
