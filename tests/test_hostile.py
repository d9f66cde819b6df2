"""Input that is made to crash the linter, to keep it busy for ever or to fill the memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from torchdet_lint import reading
from torchdet_lint.cli.main import main
from torchdet_lint.config.releases import newest_allowed, required_torch
from torchdet_lint.program import launch_configs
from torchdet_lint.source.decoding import decode
from torchdet_lint.source.lines import comments, logical_rows

ROOT = Path(__file__).parents[1]
FAULTY = "import torch\nimport helper\n\nif __name__ == '__main__':\n    torch.rand(2)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "p/.git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "p")
    Path("train.py").write_text(FAULTY)
    return tmp_path / "p"


def findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    status = main([*(arguments or (".",)), "--no-cache", "--output-format", "json"])
    out, err = capsys.readouterr()
    return status, [finding["code"] for finding in json.loads(out)], err


def seconds(work: object) -> float:
    before = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - before


def within_reason(work: object) -> bool:
    """Costs at most what twenty flat lists of 20 kB cost, on the machine and under the load at hand."""
    flat = "a: [" + "1, " * 7_000 + "1]\n"
    return seconds(work) < 20 * seconds(lambda: launch_configs.parsed(flat))


SPECIAL = (".gitignore", "requirements.txt", "helper.py", "conf/config.yaml", "setup.cfg")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
@pytest.mark.parametrize("kind", ["device", "pipe"])
@pytest.mark.parametrize("name", SPECIAL)
def test_links_to_devices_and_pipes_are_not_read(
    capsys: pytest.CaptureFixture[str], folder: Path, name: str, kind: str
) -> None:
    (folder / "conf").mkdir()
    path = folder / name
    path.symlink_to("/dev/zero") if kind == "device" else os.mkfifo(path)
    if name.startswith("conf"):
        Path("train.py").write_text(
            "import hydra, torch\n@hydra.main(config_path='conf', config_name='config')\n"
            "def main(cfg):\n    torch.rand(2)\n    hydra.utils.instantiate(cfg.trainer)\n"
            "if __name__ == '__main__':\n    main()\n"
        )
    assert findings(capsys)[:2] == (1, ["TDL101"])


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
@pytest.mark.parametrize("arguments", [["/dev/zero"], [".", "--baseline", "/dev/zero"], [".", "--config", "/dev/zero"]])
def test_a_device_that_is_named_is_one_clear_line(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main([*arguments, "--no-cache"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "/dev/zero" in line
    assert line.endswith("not a regular file")


def test_a_file_of_any_size_is_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "huge.py").open("wb") as stream:
        stream.truncate(reading.LARGEST + 1)
    status, codes, err = findings(capsys)
    assert (status, codes) == (2, ["TDL101"])
    assert err == "torchdet-lint: error: huge.py: larger than 256 megabytes\n"


def test_reading_stops_where_a_file_grows_or_lies_about_its_size(folder: Path) -> None:
    assert reading.read("/proc/self/status", 1 << 20) if Path("/proc/self/status").exists() else True
    (folder / "some").write_bytes(b"x" * 100)
    assert reading.read("some", 100) == b"x" * 100
    with pytest.raises(OSError, match="larger"):
        reading.read("some", 99)


BOMBS = {
    "merge keys": "a: &a {k: 1}\n" + "".join(
        f"{new}: &{new}\n  <<: [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
    ),
    "itself": "a: &a {b: *a}\n",
    "digits": f"a: {'9' * 50_000}\n",
    "depth": "[" * 20_000,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_yaml_that_unfolds_is_left_alone(name: str) -> None:
    assert within_reason(lambda: launch_configs.parsed(BOMBS[name]))
    assert launch_configs.parsed(BOMBS[name]) is None


def test_yaml_with_aliases_and_merge_keys_is_read() -> None:
    text = "base: &base {a: 1, b: [1, 2]}\nother:\n  <<: *base\n  c: *base\n"
    assert launch_configs.parsed(text) == {
        "base": {"a": 1, "b": [1, 2]},
        "other": {"a": 1, "b": [1, 2], "c": {"a": 1, "b": [1, 2]}},
    }


def test_aliases_that_unfold_in_two_files() -> None:
    text = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{l: *a{n - 1}, r: *a{n - 1}}}\n" for n in range(1, 40))
    texts = {"/c/config.yaml": f"defaults: [one]\n{text}", "/c/one.yaml": text}
    composer = launch_configs._Composer("/c", lambda path: texts.get(path, ""))
    assert within_reason(lambda: composer.whole("config"))


def test_defaults_that_name_themselves_and_each_other() -> None:
    texts = {
        "/c/config.yaml": "defaults: [config, config, config, config, config, one, one]\na: 1\n",
        "/c/one.yaml": "defaults: [two, two, two, two, two]\nb: 2\n",
        "/c/two.yaml": "defaults: [one, three, three, three, three, config]\nc: 3\n",
        "/c/three.yaml": "d: 4\n",
    }
    composer = launch_configs._Composer("/c", lambda path: texts.get(path, ""))
    assert within_reason(lambda: composer.whole("config"))
    found = launch_configs._Composer("/c", lambda path: texts.get(path, "")).whole("config")
    assert {key: found[key] for key in "abcd"} == {"a": 1, "b": 2, "c": 3, "d": 4}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "torch\n" + "\n" * 200_000),
        ("requirements.txt", "torch" + " " * 200_000 + "x"),
        ("requirements.txt", "torch[" * 40_000),
        ("pyproject.toml", "#torch\n" + "\n" * 200_000),
        ("pyproject.toml", "# torch '\n" * 40_000),
        ("setup.py", "'torch" * 40_000),
    ],
)
def test_requirements_are_read_in_a_straight_line(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    assert within_reason(lambda: required_torch(folder))


def test_requirements_of_one_line_do_not_reach_into_the_next(folder: Path) -> None:
    (folder / "requirements.txt").write_text("torch >= 1.7\nnumpy<2\n")
    assert required_torch(folder) == (newest_allowed(">=1.7"), (1, 7))
    assert newest_allowed(">=1.7") != newest_allowed(">=1.7,<2")


@pytest.mark.parametrize("line", ['\\"""', '"""', "\\'''", '"\\', "\"'", "'''\"\"\""])
def test_quotes_that_nothing_ends_are_read_in_a_straight_line(line: str) -> None:
    text = "!ls\n" + f"{line}\n" * 30_000
    assert within_reason(lambda: logical_rows(text))
    assert within_reason(lambda: list(comments(text.replace("\n", " "))))


def test_rows_after_quotes_that_nothing_ends() -> None:
    assert logical_rows('!echo """\nx = 1\n"""\n') == {0, 3}
    assert logical_rows('!echo """\nx = 1\n') == {0, 1, 2}
    assert logical_rows("!echo don't (\nx = 1\n") == {0, 1, 2}
    assert list(comments('x = \'a # b\'  # c\n"""# d\n"""')) == [(13, "# c")]


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ({"pyproject.toml": f"[project]\nx = {'9' * 5000}\n"}, ["."], "pyproject.toml: not valid TOML: "),
        ({"requirements.txt": f"torch>=2.{'9' * 5000}\n"}, ["."], ""),
        ({}, [".", "--torch-version", f"2.{'9' * 5000}"], "torch-version: "),
        ({"pyproject.toml": f"[tool.torchdet-lint]\ntorch-version = '2.{'9' * 5000}'\n"}, ["."], "torch-version: "),
        ({"pyproject.toml": "[tool.torchdet-lint]\nrule-files = ['../../../**/*.toml']\n"}, ["."], "rule-files: "),
        ({"pyproject.toml": "[tool.torchdet-lint]\nrule-files = ['/etc/*.toml']\n"}, ["."], "rule-files: "),
    ],
)
def test_configurations_that_are_made_to_crash(
    capsys: pytest.CaptureFixture[str], files: dict[str, str], arguments: list[str], said: str
) -> None:
    for name, text in files.items():
        Path(name).write_text(text)
    status = main([*arguments, "--no-cache", "-q"])
    err = capsys.readouterr().err
    assert status == (2 if said else 1)
    assert said in err
    assert len(err.splitlines()) == (1 if said else 0)
    assert len(err) < 6000


@pytest.mark.parametrize("name", ["execution_count", "nbformat"])
def test_a_notebook_with_a_number_of_5000_digits(capsys: pytest.CaptureFixture[str], name: str) -> None:
    cell = f'{{"cell_type": "code", "{name}": {"9" * 5000}, "metadata": {{}}, "outputs": [], "source": ["x = 1\\n"]}}'
    Path("n.ipynb").write_text(f'{{"cells": [{cell}], "metadata": {{"n": {"9" * 5000}}}, "nbformat": 4}}')
    assert findings(capsys) == (1, ["TDL101"], "")


@pytest.mark.parametrize("style", ["full", "concise", "sarif", "gitlab", "junit", "github", "json"])
def test_half_a_surrogate_pair_in_a_notebook(tmp_path: Path, style: str) -> None:
    Path("train.py").unlink()
    Path("n.ipynb").write_text('{"cells": [{"cell_type": "code", "source": "x = 1  # noqa: TDL201 \\ud800\\n"}]}')
    for more in ([], ["--output-file", str(tmp_path / "out")], ["--color", "always"]):
        assert main(["n.ipynb", "--no-cache", "--output-format", style, *more]) == 1


def test_a_name_that_is_no_text_for_standard_input() -> None:
    command = [sys.executable, "-m", "torchdet_lint", "--stdin-filename", b"\xff.py", "-"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, input=b"import torch\n", capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"torchdet-lint: error: --stdin-filename: the name is not UTF-8 text\n"


def test_folders_of_any_depth(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    try:
        for _ in range(1500):
            os.mkdir("d", dir_fd=here)
            inner = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
    finally:
        os.close(here)
    status, codes, err = findings(capsys)
    subprocess.run(["rm", "-rf", "d"], check=True)  # which `shutil.rmtree`, and so pytest, cannot
    assert codes == ["TDL101"]
    assert (status, err.count("\n")) in ((1, 0), (2, 1))  # the system sets a limit to the length of a path


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use stays there")
@pytest.mark.parametrize("arguments", [[], ["train.py"], ["rule", "TDL101"], ["baseline"]])
def test_a_working_directory_that_is_gone(tmp_path: Path, arguments: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = f"import os, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); sys.path.insert(0, {str(ROOT)!r}); "
    program += f"from torchdet_lint.cli.main import main; sys.exit(main({arguments!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "torchdet-lint: error: the working directory is no longer there\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals there")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("jobs", ["2", "3"])
def test_workers_end_with_their_parent(folder: Path, sent: signal.Signals, jobs: str) -> None:
    """Whoever reads what they write sees its end: `timeout 10 torchdet-lint --jobs 2 . | tee log` returns."""
    for number in range(60):
        (folder / f"f{number}.py").write_text(
            "import torch\n" + "".join(f"x{row} = torch.rand({row})\n" for row in range(2000))
        )
    command = [sys.executable, "-m", "torchdet_lint", ".", "--no-cache", "--jobs", jobs]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as parent:
        children = []
        until = time.monotonic() + 60
        while len(children) < int(jobs) and time.monotonic() < until:
            time.sleep(0.05)
            children = psutil.Process(parent.pid).children()
        assert len(children) == int(jobs)
        parent.send_signal(sent)
        parent.communicate(timeout=20)
        _, alive = psutil.wait_procs(children, timeout=20)
        assert not alive


def test_cells_of_a_notebook_keep_their_bytes() -> None:
    raw = b'{"cells": [{"cell_type": "code", "source": ["!echo \\"\\"\\"\\n", "%time x\\n"]}]}'
    assert decode("n.ipynb", raw).text == '# !echo """\n# %time x\n'


def test_names_in_messages_act_on_nothing(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "\x1b[2J\n::error::x.py").write_text("x = (\n")
    (folder / "a\x1b[2J\n::error::x.py").symlink_to("/dev/zero")
    for style in ("full", "concise", "grouped"):
        main([".", "nowhere\x1b\n::error::x", "--no-cache", "-v", "--output-format", style])
        out, err = capsys.readouterr()
        assert "\x1b" not in out + err
        assert [line for line in (out + err).splitlines() if line.startswith("::")] == []


def test_baseline_writes_only_what_it_may(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    Path("script.py").write_text("x = 1\n")
    Path("link.json").symlink_to(precious)
    Path("out").symlink_to(tmp_path)
    for name in ("../precious", "link.json", "out/precious", str(precious), "script.py"):
        Path("pyproject.toml").write_text(f"[tool.torchdet-lint]\nbaseline = {name!r}\n")
        assert main(["baseline", "-q"]) == 2
        assert "name the file with --output-file" in capsys.readouterr().err
    Path("pyproject.toml").unlink()
    Path(".torchdet-baseline.json").symlink_to(precious)
    assert main(["baseline", "-q"]) == 2
    assert (precious.read_text(), Path("script.py").read_text()) == ("mine", "x = 1\n")
    Path(".torchdet-baseline.json").unlink()
    assert main(["baseline", "-q"]) == 0
    assert main(["baseline", "-q"]) == 0
    assert main(["baseline", "-q", "--output-file", "link.json"]) == 2
    assert precious.read_text() == "mine"
    precious.write_text("")
    assert main(["baseline", "-q", "--output-file", "link.json"]) == 0
    assert "findings" in precious.read_text()
    assert Path("link.json").is_symlink()
