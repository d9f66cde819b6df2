"""The cache: what it keeps, what it forgets, and what happens to a broken one."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from torchdet_lint.cli.main import main
from torchdet_lint.source.cache import Cache

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
FAULTY = "import torch\nx = 1  # noqa: TDL201\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.py").write_text(FAULTY)
    (tmp_path / "b.py").write_text("def f(:\n")
    return tmp_path


def lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main([".", "--output-format", "json", *arguments])
    return capsys.readouterr().out


def cached(project: Path) -> list[Path]:
    return sorted((project / ".torchdet_cache").glob("files-*.json"))


def test_an_entry_counts_for_its_content_only(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.touch()
    cache = Cache(str(tmp_path / "cache"), ["key"])
    cache.put(str(file), "one", b"[1]")
    cache.save()
    again = Cache(str(tmp_path / "cache"), ["key"])
    assert str(file) in again
    assert again.get(str(file), "one") == b"[1]"
    assert again.get(str(file), "two") is None
    assert str(file) not in Cache(str(tmp_path / "cache"), ["another key"])
    file.unlink()
    again.put(str(tmp_path / "gone.py"), "three", b"[]")
    again.save()
    assert str(file) not in Cache(str(tmp_path / "cache"), ["key"])


def test_what_two_runs_found_is_kept_together(tmp_path: Path) -> None:
    folder = str(tmp_path / "cache")
    for name in ("a", "b"):
        (tmp_path / name).touch()
    one, two = Cache(folder, ["key"]), Cache(folder, ["key"])
    one.put(str(tmp_path / "a"), "1", b"1")
    two.put(str(tmp_path / "b"), "2", b"2")
    one.save()
    two.save()
    both = Cache(folder, ["key"])
    assert both.get(str(tmp_path / "a"), "1") == b"1"
    assert both.get(str(tmp_path / "b"), "2") == b"2"
    assert [path.suffix for path in sorted(Path(folder).iterdir())] == ["", ".json"]


def test_warm_is_cold(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cold = lint(capsys)
    (store,) = cached(project)
    before = store.stat().st_mtime_ns
    assert lint(capsys) == cold
    assert store.stat().st_mtime_ns == before
    assert json.loads(store.read_text()).keys() == {str(project / "a.py"), str(project / "b.py")}


def test_warm_reads_no_rule_and_parses_nothing(project: Path) -> None:
    program = (
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from torchdet_lint.cli.main import main\nmain(['a.py', '-q'])\n"
        "print(sorted(set(sys.modules) & {'libcst', 'tomli', 'torchdet_lint.module', 'torchdet_lint.module.names'}))"
    )
    (project / "a.py").write_text("import torch\nx = torch.empty(3)\n")
    outputs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout for _ in "12"
    ]
    assert outputs[1] == "[]\n"
    assert "libcst" in outputs[0], "the cold run parses, or this test shows nothing"


@pytest.mark.parametrize("damage", ["", "{", '{"a": 1}', "[]", "\0\xff"])
def test_a_broken_cache_is_built_anew(project: Path, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    cold = lint(capsys)
    (store,) = cached(project)
    whole = store.read_bytes()
    store.write_text(damage, encoding="latin-1")
    assert lint(capsys) == cold
    assert store.read_bytes() == whole


def test_a_broken_record_is_made_again(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cold = lint(capsys)
    (store,) = cached(project)
    table = json.loads(store.read_text())
    for entry in table.values():
        entry[1] = {"findings": "none"}
    store.write_text(json.dumps(table))
    assert lint(capsys) == cold
    assert '"none"' not in store.read_text()


def test_changes_are_seen(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint(capsys)
    stamp = (project / "a.py").stat()
    (project / "a.py").write_text(FAULTY.replace("TDL201", "TDL202"))
    os.utime(project / "a.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert "TDL202" in lint(capsys)
    assert json.loads(lint(capsys, "--ignore", "TDL0")) == []


def test_no_cache_writes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint(capsys, "--no-cache")
    assert not (project / ".torchdet_cache").exists()


def test_a_cache_that_cannot_be_written_is_no_error(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "file").touch()
    assert json.loads(lint(capsys, "--cache-dir", "file/below"))


def old(path: Path) -> Path:
    """The file `path`, last written two months ago."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}")
    os.utime(path, (time.time() - 60 * 24 * 3600,) * 2)
    return path


def test_a_link_in_place_of_the_folder_is_left_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = [old(project / "precious" / name) for name in ("a.json", "b.part", "files-" + 32 * "0" + ".json")]
    (project / "precious" / ".gitignore").write_bytes(b"# Made by torchdet-lint; safe to delete.\n*\n")
    (project / ".torchdet_cache").symlink_to("precious")
    assert json.loads(lint(capsys))
    assert sorted(path.name for path in (project / "precious").iterdir()) == sorted(
        [".gitignore", *(path.name for path in kept)]
    )


@pytest.mark.parametrize("folder", [".", "data"])
def test_a_folder_of_others_is_left_alone(project: Path, capsys: pytest.CaptureFixture[str], folder: str) -> None:
    kept = [old(project / folder / name) for name in ("a.json", "b.part", "files-" + 32 * "0" + ".json")]
    before = sorted(project.rglob("*"))
    assert json.loads(lint(capsys, "--cache-dir", folder))
    assert sorted(project.rglob("*")) == before
    assert all(path.read_text() == "{}" for path in kept)


def test_it_is_said_why_a_folder_is_not_used(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([".", "--cache-dir", ".", "-v"])
    assert "(not used: holds files that are not the cache's)" in capsys.readouterr().err
    (project / ".torchdet_cache").symlink_to(".")
    main([".", "-v"])
    assert "(not used: a link)" in capsys.readouterr().err


def test_only_its_own_old_files_go(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint(capsys)
    folder = project / ".torchdet_cache"
    name = "files-" + 32 * "0" + ".json"
    gone = [old(folder / name), old(folder / f"{name}.0123456789abcdef.part")]
    kept = [old(folder / other) for other in ("a.json", "b.part", "files-1.json")]
    (project / "a.py").write_text(FAULTY * 2)
    lint(capsys)
    assert [path.exists() for path in (*gone, *kept)] == [False, False, True, True, True]


@pytest.mark.parametrize("value", ["../elsewhere", "out/below", "/nowhere/at/all"])
def test_a_configuration_cannot_point_outside(
    project: Path, capsys: pytest.CaptureFixture[str], value: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (project / "out").symlink_to(tmp_path_factory.mktemp("outside"))
    (project / "torchdet-lint.toml").write_text(f"cache-dir = '{value}'\n")
    assert main(["."]) == 2
    assert "is outside of the project; only --cache-dir may say so" in capsys.readouterr().err
    assert not (project.parent / "elsewhere").exists()
    assert list((project / "out").iterdir()) == []


def test_a_flag_may_point_outside(
    project: Path, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    lint(capsys, "--cache-dir", str(outside))
    assert list(outside.glob("files-*.json"))


def test_links_with_the_cache_s_own_names_lead_nowhere(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cold = lint(capsys)
    victim = project / "victim.txt"
    victim.write_text("precious")
    for store in (project / ".torchdet_cache").iterdir():
        store.unlink()
        store.symlink_to(victim)
    assert lint(capsys) == cold, "the marker is a link: the folder is not the cache's"
    assert victim.read_text() == "precious"
    marker = project / ".torchdet_cache/.gitignore"
    marker.unlink()
    marker.write_bytes(b"# Made by torchdet-lint; safe to delete.\n*\n")
    assert lint(capsys) == cold
    assert victim.read_text() == "precious"
    assert not cached(project)[0].is_symlink()


def test_temporary_files_follow_no_link_and_cannot_be_foreseen(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, int]] = []
    real = os.open

    def noting(path: str, flags: int, *more: int, **others: int) -> int:
        if flags & os.O_CREAT:
            opened.append((str(path), flags))
        return real(path, flags, *more, **others)

    monkeypatch.setattr(os, "open", noting)
    lint(capsys)
    (project / "a.py").write_text(FAULTY * 2)
    lint(capsys, "--fix")
    assert len(opened) > 3
    assert all(flags & os.O_EXCL and flags & os.O_NOFOLLOW for _, flags in opened)
    names = [Path(path).name for path, _ in opened]
    drawn = {match[1] for name in names if (match := re.search(r"([0-9a-f]{16})\.(?:part|torchdet-tmp)$", name))}
    assert len(drawn) == len(names), names
    victim = project / "victim.txt"
    victim.write_text("precious")
    (store,) = cached(project)
    link = store.with_name(f"{store.name}.{os.getpid()}-{16 * '0'}.part")

    def foreseen(count: int) -> bytes:
        link.unlink(missing_ok=True)
        link.symlink_to(victim)
        return bytes(count)

    monkeypatch.setattr(os, "urandom", foreseen)
    (project / "a.py").write_text(FAULTY)
    kept = store.read_bytes()
    assert lint(capsys) == lint(capsys, "--no-cache")
    assert link.is_symlink()
    assert (victim.read_text(), store.read_bytes()) == ("precious", kept)


def test_git_is_told_to_pass_it_over(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint(capsys)
    assert (project / ".torchdet_cache/.gitignore").read_text().endswith("*\n")


def test_runs_side_by_side(project: Path) -> None:
    for number in range(40):
        (project / f"m{number}.py").write_text(f"import torch\nx = {number}  # noqa: TDL201\n")
    command = [sys.executable, "-m", "torchdet_lint", ".", "--output-format", "json-lines"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) for _ in range(4)
    ]
    outputs = [run.communicate() for run in runs]
    assert {error for _, error in outputs} == {b""}
    assert len({output for output, _ in outputs}) == 1
    assert len(cached(project)) == 1
    assert not list((project / ".torchdet_cache").glob("*.part"))


def forge(store: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the records in `store`, and make their checks right again."""
    table = json.loads(store.read_bytes())
    for entry in table.values():
        change(entry)
    cache = Cache(str(store.parent), ["another"])
    for path, (content, record, _) in table.items():
        cache.put(path, content, msgspec.json.encode(record))
    cache.save()
    Path(cache.path).replace(store)


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry[1].__setitem__(1, []),
        lambda entry: entry[1][0][0].update(code="TDL999"),
        lambda entry: entry[1][0][0].update(code="\x1b[2J"),
        lambda entry: entry[1][0][0]["location"].update(row=0),
        lambda entry: entry[1][0][0]["end_location"].update(column=-4),
        lambda entry: entry[1][0][0].update(noqa_row=0),
        lambda entry: entry[1][0][0].update(severity="grave"),
        lambda entry: entry[1][1].__setitem__(0, [0, 1, 1]),
        lambda entry: entry.__setitem__(1, None),
    ],
)
@pytest.mark.parametrize("form", ["full", "json", "sarif"])
def test_a_record_that_no_run_made_is_made_again(
    project: Path, capsys: pytest.CaptureFixture[str], form: str, change: Callable[[Any], object]
) -> None:
    (project / "a.py").write_text("import torch\ntorch.use_deterministic_algorithms(False)\n")
    (project / "b.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    cold = lint(capsys, "--output-format", form)
    (store,) = cached(project)
    whole = store.read_bytes()
    forge(store, lambda entry: None)
    assert json.loads(store.read_bytes()) == json.loads(whole), "forging changes nothing by itself"
    forge(store, change)
    assert lint(capsys, "--output-format", form) == cold
    assert json.loads(store.read_bytes()) == json.loads(whole)


@pytest.mark.parametrize("kind", ["files", "project", "summaries"])
def test_any_damage_is_a_miss(project: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    (project / "a.py").write_text("import torch\nfrom c import f\nif __name__ == '__main__':\n    f(torch.rand(2))\n")
    (project / "c.py").write_text("def f(x):\n    print(x)\n")
    cold = lint(capsys)
    (store,) = (project / ".torchdet_cache").glob(f"{kind}-*.json")
    whole = store.read_bytes()
    chance = random.Random(0)
    for _ in range(20):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        store.write_bytes(damaged)
        assert lint(capsys) == cold
    for damage in (b"[" * 200_000, b'{"a":' * 100_000, whole[: len(whole) // 2], b'{"\xff\xfe": 1}', b"\0" * 1000):
        store.write_bytes(damage)
        assert lint(capsys) == cold
    store.unlink()
    store.mkdir()
    assert lint(capsys) == cold


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_or_a_device_in_its_place_is_a_miss(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cold = lint(capsys)
    (store,) = cached(project)
    store.unlink()
    os.mkfifo(store)
    assert lint(capsys) == cold
    store.unlink()
    store.symlink_to("/dev/zero")
    assert lint(capsys) == cold
