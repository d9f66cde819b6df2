"""What a program leaves behind: files by their content, standard output, exit status; and where its runs take place."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import sqlite3
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from torchdet_lint.verifier.verification.leftovers.contents import difference
from torchdet_lint.verifier.verification.leftovers.leftovers import Remains, compare_left
from torchdet_lint.verifier.verification.leftovers.masking import masked, masked_name
from torchdet_lint.verifier.verification.leftovers.scaling import lines_of_times
from torchdet_lint.verifier.verification.workspace import Workspace, scan


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("iter 10: loss 2.3208, time 55.31ms, mfu 0.12%", "iter 10: loss 2.3208, time 61.02ms, mfu 0.11%"),
        ("2026-11-22 04:12:11,123 INFO loss=0.5", "2025-01-02 14:12:11,987 INFO loss=0.5"),
        (
            "{'train_runtime': 3.211, 'train_samples_per_second': 12.3}",
            "{'train_runtime': 4, 'train_samples_per_second': 1}",
        ),
        ("|    time_elapsed      | 3  |", "|    time_elapsed      | 4  |"),
        ("|    fps               | 812 |", "|    fps               | 1799 |"),
        ("|    fps       | 812   |", "|    fps       | 1799  |"),
        ("-----------------", "------------------"),
        ("Epoch 3/10 [00:03<00:00, 12.1it/s, loss=0.45]", "Epoch 3/10 [00:04<00:01, 11.9it/s, loss=0.45]"),
        ("SPS: 1269", "SPS: 1173"),
        ('{"epoch_secs": 0.31, "loss": 1}', '{"epoch_secs": 0.32, "loss": 1}'),
        ("it/s=14.2 step_ms: 3", "it/s=14.3 step_ms: 4"),
        ("| lr 20.00 | ms/batch 3170.76 | loss  3.55", "| lr 20.00 | ms/batch 97.12 | loss  3.55"),
        ("sec/step=1.25", "sec/step=1.5"),
        ("took 3.2 seconds", "took 12 seconds"),
        ("Sun Nov 22 04:07:40 UTC 2026 acc 0.9", "Mon Nov 23 05:00:00 UTC 2026 acc 0.9"),
        ("<Net object at 0x7f3344aa10>", "<Net object at 0x7e0011bb20>"),
        ("saved to /tmp/tmpabcd1234/x.pt", "saved to /tmp/tmpefgh5678/x.pt"),
        ("peak memory 312.4 MB", "peak memory 313 MB"),
        (" 50%|#####     | 1/2\r100%|##########| 2/2 done", "100%|##########| 2/2 done"),
        ("saving run2026_11_23_22_55_01", "saving run2026_11_24_09_05_59"),
        ("exp-2026-11-23_22-55-01/last", "exp-2026-12-01_02-05-01/last"),
        ("run 3f2504e0-4f89-11d3-9a0c-0305e82c3301", "run aaaaaaaa-4f89-11d3-9a0c-0305e82c3301"),
        ("saved ckpt.1763812345, 7,1763812345.25", "saved ckpt.1763899999, 7,1763899999.5"),
        ("log-20261122T0412.txt", "log-20270103T2359.txt"),
    ],
)
def test_what_tells_of_the_clock_and_of_the_machine_is_no_difference(one, two):
    assert masked(one) == masked(two)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("iter 10: loss 2.3208, time 55.31ms", "iter 10: loss 2.3209, time 55.31ms"),
        ("timesteps: 100", "timesteps: 101"),
        ("sometimes 3", "sometimes 4"),
        ("ms/batch 3 | loss 3.55", "ms/batch 3 | loss 3.56"),
        ("loss/step 0.31", "loss/step 0.32"),
        ("---", "----"),
        ('{"dt": 0.01}', '{"dt": 0.02}'),
        ("14 (it/s) loss 0.5", "14 (it/s) loss 0.6"),
        ("3 secs in, loss 0.5", "3 secs in, loss 0.6"),
        ("loss  3", "loss 3"),
        ("accuracy: 97.1%", "accuracy: 97.2%"),
        ("step 12 -3.5e-05", "step 12 -3.6e-05"),
        ("[0.1, 0.2]", "[0.2, 0.1]"),
        ("mean 0.5 (3.1 s)", "mean 0.6 (3.1 s)"),
        ("tokens 2048_11_23", "tokens 2048_11_2"),
        ("sizes 1024_32_16", "sizes 1024_32_17"),
        # Decimals that look like seconds since 1970, or like a date.
        ("loss 0.1828186242896115", "loss 0.1728186242896115"),
        ("mean 97.1763812345", "mean 97.1763812346"),
        ("norm 5648.20261122", "norm 5648.20261123"),
        ("tokens 20489999", "tokens 20489998"),
    ],
)
def test_a_result_that_differs_is_never_masked(one, two):
    assert masked(one) != masked(two)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
@pytest.mark.parametrize(("one", "two", "same"), [("0.0123456", "0.0213457", True), ("0.01", "0.02", False)])
def test_dt_is_a_timing_where_it_is_evidently_measured(tmp_path, suffix, one, two, same):
    paths = [tmp_path / f"{side}{suffix}" for side in "ab"]
    for path, value in zip(paths, (one, two), strict=True):
        path.write_text(f"step,dt\n1,{value}\n" if suffix == ".csv" else f'{{"loss": 1, "dt": {value}}}')
    assert (difference(*paths) == "") is same


@pytest.mark.parametrize(
    "name",
    "it/s its_per_s tok/s samples_per_sec epoch_secs secs elapsed fps throughput step_ms iter_dt train_runtime".split(),
)
@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_a_column_or_key_of_a_timing_is_left_out(tmp_path, name, suffix):
    paths = [tmp_path / f"{side}{suffix}" for side in "ab"]
    for path, seconds in zip(paths, (0.25, 0.5), strict=True):
        table = f"step,loss,{name}\n1,0.125,{seconds}\n" if suffix == ".csv" else json.dumps({name: seconds, "loss": 1})
        path.write_text(table)
    assert difference(*paths) == ""


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("outputs/2026-11-22/04-35-00/m.pt", "outputs/2026-11-23/05-00-01/m.pt", True),
        (
            "runs/Nov22_04-07-40_here/events.out.tfevents.1763784460.a.1.0",
            "runs/Nov22_04-07-59_here/events.out.tfevents.1763784479.a.2.0",
            True,
        ),
        ("run_20261122_040740/x.json", "run_20261122_040811/x.json", True),
        ("run2026_11_22_04_07_40.pt", "run2026_11_22_04_08_11.pt", True),
        ("ckpt-100.pt", "ckpt-200.pt", False),
        ("version_0/metrics.csv", "version_1/metrics.csv", False),
    ],
)
def test_names_are_compared_without_dates(one, two, same):
    assert (masked_name(one) == masked_name(two)) == same


def archive(path, entries, when):
    with zipfile.ZipFile(path, "w") as out:
        for name, data in entries.items():
            out.writestr(zipfile.ZipInfo(name, when), data)


def event(when, step, tag, value):
    name = tag.encode()
    summary = b"\x0a" + bytes([len(name)]) + name + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(summary)]) + summary
    body = b"\x09" + struct.pack("<d", when) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(summary)]) + summary
    return struct.pack("<Q", len(body)) + b"\0\0\0\0" + body + b"\0\0\0\0"


def tensors(path, values, about):
    data = {name: struct.pack(f"<{len(v)}f", *v) for name, v in values.items()}
    header, at = {"__metadata__": about}, 0
    for name, raw in data.items():
        header[name] = {"dtype": "F32", "shape": [len(raw) // 4], "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(data.values()))


def written(folder, kind, when, value):
    """A file of a kind, written at a time, with a value in it."""
    folder.mkdir(exist_ok=True)
    path = folder / f"x{kind}"
    if kind in (".npz", ".pt"):
        extra = {"x/.data/serialization_id": str(when)} if kind == ".pt" else {}
        archive(path, {"x/data/0": bytes([value]), **extra}, (2020 + when, 1, 1, 0, 0, 0))
    elif kind == ".gz":
        with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=when) as out:
            out.write(bytes([value]))
    elif kind == ".tar":
        with tarfile.open(path, "w") as out:
            member = tarfile.TarInfo("a")
            member.size, member.mtime = 1, when
            out.addfile(member, io.BytesIO(bytes([value])))
    elif kind == ".safetensors":
        tensors(path, {"w": [1.0, float(value)]}, {"format": "pt"})
    elif kind == ".tfevents":
        path = folder / f"events.out.tfevents.{when}.host.{when}.0"
        path.write_bytes(event(when, 3, "loss", 0.25 * value) + event(when, 3, "charts/SPS", 100.0 * when))
    elif kind == ".csv":
        path.write_text(f"step,loss,time/fps\n1,0.{value},{when}\n")
    elif kind == ".json":
        path.write_text(json.dumps({"loss": value, "train_runtime": when}))
    elif kind == ".log":
        path.write_text(f"2026-01-0{when} 00:00:00 loss {value}\n")
    return path


KINDS = [".npz", ".pt", ".gz", ".tar", ".tfevents", ".csv", ".json", ".log"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_compared_by_what_is_in_it(tmp_path, kind):
    a = written(tmp_path / "a", kind, 1, 5)
    assert difference(a, written(tmp_path / "b", kind, 2, 5)) == ""
    assert difference(a, written(tmp_path / "c", kind, 1, 6)) != ""
    assert "\n" not in difference(a, written(tmp_path / "c", kind, 2, 6))


def test_a_scalar_that_differs_in_an_event_is_named(tmp_path):
    a, b = (written(tmp_path / name, ".tfevents", 1, value) for name, value in (("a", 5), ("b", 6)))
    assert difference(a, b) == "event 1: 'step 3: loss 1.25' | 'step 3: loss 1.5'"
    for path, name in ((a, b"a"), (b, b"b")):
        # A field of a length that the message has not.
        path.write_bytes(struct.pack("<Q", 3) + b"\0\0\0\0" + b"\x2a\x7f" + name + b"\0\0\0\0")
    assert difference(a, b) == "byte 14 differs"


def test_settings_in_an_archive_are_compared_without_their_times(tmp_path):
    told = '{{"start_time": {when}, "ep_info_buffer": {{":serialized:": "gASV{when}"}}, "n_steps": {steps}}}'

    def settings(name, when, steps, policy=b"\0\1"):
        text = told.format(when=1795450036123456789 + when, steps=steps).encode()
        archive(tmp_path / name, {"data": text, "policy.pth": policy}, (2026, 1, 1, 0, 0, 0))
        return tmp_path / name

    a = settings("a.zip", 1, 128)
    assert difference(a, settings("b.zip", 2, 128)) == ""
    assert difference(a, settings("b.zip", 2, 129)) == "data differs"
    assert difference(a, settings("b.zip", 2, 128, b"\0\2")) == "policy.pth differs"
    assert difference(settings("a.zip", 1, 128, b"\xff"), settings("b.zip", 2, 128, b"\xfe")) == "policy.pth differs"


def saved(path, protocol, **state):
    """An archive as `torch.save` makes one."""
    path.parent.mkdir(exist_ok=True)
    archive(
        path, {f"{path.stem}/data.pkl": pickle.dumps(state, protocol), f"{path.stem}/data/0": b"w"}, (2026,) + (1,) * 5
    )
    return path


@pytest.mark.parametrize("protocol", [2, 4])
def test_what_a_checkpoint_says_of_the_clock_is_no_difference(tmp_path, protocol):
    def state(day, seconds, lr=0.1, tag="a"):
        logs = [{"epoch": 1, "time": seconds}, {"epoch": 2, "time": seconds + 1}]
        return {"name": f"run2026_11_{day}_22_55_01", "logs": logs, "train_runtime": seconds, "lr": lr, "tag": tag}

    def told(**other):
        return difference(a, saved(tmp_path / "b" / "ckpt.pt", protocol, **other))

    a = saved(tmp_path / "a" / "ckpt.pt", protocol, **state(22, 12.5))
    assert told(**state(23, 17.25)) == ""
    assert told(**state(23, 17.25, 0.2)) == "ckpt/data.pkl: after 'lr': 0.1 | 0.2"
    assert told(**state(23, 17.25, tag="b" * 99)) == f"ckpt/data.pkl: after 'tag': 'a' | '{'b' * 59}…'"
    assert told(**state(23, 17.25), more=[1]) == "ckpt/data.pkl: other values are in it"


def weights(upside_down=False):
    """Two tensors at other addresses than those of the last call, in the order of these or against it."""
    kept = [torch.empty(3) for _ in range(40)]
    low, *_, high = sorted(kept, key=lambda tensor: str(tensor.untyped_storage()._cdata))
    one, two = (high, low) if upside_down else (low, high)
    return {
        "one": one.copy_(torch.tensor([1.0, 2.0, 3.0])),
        "two": two.fill_(7),
        "steps": 5,
        "half": one[1:].half(),
    }, kept


def in_the_old_format(value):
    out = io.BytesIO()
    torch.save(value, out, _use_new_zipfile_serialization=False)
    return out.getvalue()


@pytest.mark.parametrize("written", [pickle.dumps, in_the_old_format, lambda value: pickle.dumps([value, 1], 5)])
@pytest.mark.parametrize("name", ["best.pkl", "best.pickle"])
def test_addresses_are_no_content_of_tensors_that_pickle_wrote(tmp_path, written, name):
    """A storage is called after its address in there, and storages stand in that order."""
    (state, kept), (other, kept_too) = weights(), weights(upside_down=True)
    a, b = tmp_path / "a" / name, tmp_path / "b" / name
    for path, value in ((a, state), (b, other)):
        path.parent.mkdir()
        path.write_bytes(written(value))
    assert a.read_bytes() != b.read_bytes()
    assert difference(a, b) == ""
    other["two"][2] = -7
    b.write_bytes(written(other))
    assert difference(a, b) in ("storage 1 differs", "storage 0 differs")
    other["two"][2] = 7
    b.write_bytes(written({**other, "steps": 6}))
    assert difference(a, b) == "after 'steps': 5 | 6"
    assert kept is not kept_too


def test_what_torch_saved_in_its_old_format_is_looked_into_whatever_its_name(tmp_path):
    (state, kept), (other, kept_too) = weights(), weights(upside_down=True)
    a, b = tmp_path / "a.pth.tar", tmp_path / "b.pth.tar"
    a.write_bytes(in_the_old_format(state))
    b.write_bytes(in_the_old_format(other))
    assert difference(a, b) == ""
    b.write_bytes(in_the_old_format({**other, "two": other["two"] + 1}))
    assert difference(a, b) == "storage 1 differs"
    whole = in_the_old_format(other)
    for cut in range(0, len(whole), 7):
        b.write_bytes(whole[:cut])
        assert difference(a, b)
    assert kept is not kept_too


def test_a_difference_is_shown_alike_in_texts_and_in_pickles(tmp_path):
    """What is long is cut, and quotes are closed."""
    found = []
    for name, written in (("a.txt", str.encode), ("a.pkl", pickle.dumps)):
        paths = [tmp_path / f"{side} {name}" for side in "ab"]
        for path, letter in zip(paths, "xy", strict=True):
            path.write_bytes(written(letter * 99))
        found.append(difference(*paths))
    assert found == [f"line 1: '{'x' * 59}…' | '{'y' * 59}…'", f"'{'x' * 59}…' | '{'y' * 59}…'"]


def test_a_pickle_is_read_and_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    a, b = tmp_path / "a.pkl", tmp_path / "b.pkl"
    a.write_bytes(pickle.dumps([Trap(), 1]))
    b.write_bytes(pickle.dumps([Trap(), 2]))
    assert "1 | 2" in difference(a, b)
    assert not (tmp_path / "made").exists()
    b.write_bytes(a.read_bytes()[:-9])
    assert "bytes" in difference(a, b)
    b.write_bytes(b"\xff" + a.read_bytes()[1:])
    assert difference(a, b) == "byte 0 differs"


def test_a_tensor_that_differs_is_named(tmp_path):
    for name, value in (("a", 1), ("b", 2)):
        tensors(tmp_path / f"{name}.safetensors", {"w": [1.0], "bias": [float(value)]}, {})
    assert difference(tmp_path / "a.safetensors", tmp_path / "b.safetensors") == "bias differs"


@pytest.mark.parametrize("data", [b"", b"\x50\x4b\x03\x04broken", b"\x1f\x8bno", b"\xff\xff\xff\xff\xff\xff\xff\x7f{}"])
@pytest.mark.parametrize("name", ["x.safetensors", "x.gz", "x.npz", "events.out.tfevents.1", "x.csv", "x.json"])
def test_a_damaged_file_is_compared_byte_by_byte(tmp_path, name, data):
    for side, more in (("a", b""), ("b", b"\xfe")):
        (tmp_path / side).mkdir()
        (tmp_path / side / name).write_bytes(data + more)
    assert isinstance(difference(tmp_path / "a" / name, tmp_path / "b" / name), str)


def remains(folder, files, printed="", status=0):
    folder.mkdir()
    (folder / "out").write_text(printed)
    for name, written_there in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(written_there)
    return Remains({name: folder / name for name in files}, folder / "out", status)


def test_what_is_left_is_compared_by_name(tmp_path):
    a = remains(tmp_path / "a", {"m.txt": "loss 1", "only.txt": "", "logs/2026-01-01/x.txt": "1"}, "step 1 loss 3\n")
    b = remains(tmp_path / "b", {"m.txt": "loss 2", "logs/2026-01-02/x.txt": "1"}, "step 1 loss 3\n", 1)
    outcome = compare_left(a, b, ordered=True)
    assert [(left.name, left.difference) for left in outcome.differing] == [
        ("exit status", "0 | 1"),
        ("m.txt", "line 1: 'loss 1' | 'loss 2'"),
        ("only.txt", "run A alone wrote it"),
    ]
    assert (outcome.files, outcome.lines) == (2, 1)


@pytest.mark.parametrize("ordered", [True, False])
def test_what_is_equal_only_without_timings_is_counted(tmp_path, ordered):
    files = {"m.csv": "loss,secs\n1,2\n", "n.json": "{}"}
    a = remains(tmp_path / "a", files, "loss 1\neta: 3\nspeed 4\nloss 2, took 1 s\nend\n")
    files["m.csv"] = "loss,secs\n1,3\n"
    b = remains(tmp_path / "b", files, "loss 1\neta: 4\nspeed 5\nloss 2, took 1 s\nend\n")
    outcome = compare_left(a, b, ordered=ordered)
    assert (outcome.differing, outcome.files, outcome.lines) == ((), 2, 2)
    assert (outcome.masked_files, outcome.masked_lines) == (1, 2)


def test_a_file_that_is_not_compared_is_not_counted_among_the_equal_ones(tmp_path):
    files = {"p.pdf": "1", "q.svg": "1", "same.pdf": "1", "m.txt": "1"}
    a = remains(tmp_path / "a", files)
    b = remains(tmp_path / "b", {**files, "p.pdf": "2", "q.svg": "2"})
    outcome = compare_left(a, b, ordered=True)
    assert ([left.name for left in outcome.differing], outcome.certain, outcome.files) == (["p.pdf", "q.svg"], (), 2)


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        (
            "INFO:root:accuracy 0.5\n",
            "INFO:root:accuracy 0.6\n",
            "line 1: 'INFO:root:accuracy 0.5' | 'INFO:root:accuracy 0.6'",
        ),
        ("a\nloss 1\n", "a\n", "line 2: 'loss 1' | its end"),
        ("took 3.1 s, [71] at 0x7f3344aa10\n", "took 3.2 s, [82] at 0x7f3344bb10\n", ""),
        ("a\nb\n", "b\na\n", ""),
        ("[W1129 20:09:23.1 a.cpp:1] port 1 in 3\n", "[W1129 20:09:24.1 a.cpp:1] port 2 in 4\n", ""),
        ("[rank0]:[W1129 20:09:23.1 a.cpp:1] 1\n", "", ""),
        ("/x/torch/nn/a.py:3: UserWarning: 5\n  warn(\n", "/x/torch/nn/a.py:3: UserWarning: 6\n  warn(\n", ""),
        ("/x/my.py:3: UserWarning: 5\n", "/x/my.py:3: UserWarning: 6\n", "line 1: '/x/my.py:3: UserWarning: 5' |"),
        (" 50%|## | 1/2 [00:01, 2it/s]\nend\n", "end\n", ""),
        (" 50%|# | 1/2\r100%|##| 2/2 [00:02, 2it/s, loss=1]\n", "100%|##| 2/2 [00:03, 9it/s, loss=1]\n", ""),
        ("100%|##| 2/2 [00:02, 2it/s, loss=1]\n", "100%|##| 2/2 [00:03, 9it/s, loss=2]\n", "line 1: "),
    ],
)
def test_what_differs_in_standard_error_is_named_and_counts_for_nothing(tmp_path, one, two, told):
    runs = []
    for name, said, process in (("a", one, "71"), ("b", two, "82")):
        run = remains(tmp_path / name, {})
        (tmp_path / name / "err").write_bytes(said.encode())
        runs.append(run._replace(errors=tmp_path / name / "err", processes=frozenset({process})))
    outcome = compare_left(*runs, ordered=True)
    assert outcome.differing == ()
    assert outcome.errors.startswith(told) if told else not outcome.errors


def database(folder, *rows, made="CREATE TABLE runs (id TEXT, value REAL, start_time INTEGER)"):
    folder.mkdir()
    with contextlib.closing(sqlite3.connect(folder / "r.db")) as opened:
        opened.execute(made)
        marks = ",".join("?" * len(rows[0]))
        opened.executemany(f"INSERT INTO runs VALUES ({marks})", rows)
        opened.execute("CREATE VIEW v AS SELECT * FROM runs")
        opened.commit()
    return Remains({"r.db": folder / "r.db"}, folder / "out", 0)


RUN, OTHER = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"


@pytest.mark.parametrize(
    ("rows", "told", "certain"),
    [
        ([(OTHER, 0.5, 2), ("b", 0.25, 2)], "", True),
        ([("b", 0.25, 2), (OTHER, 0.5, 2)], "", True),
        ([(OTHER, 0.5, 2), ("b", 0.75, 2)], "table runs, row 2, value: 0.25 | 0.75", True),
        ([("a", 0.5, 2), ("b", 0.75, 2)], "table runs, row 2, value: 0.25 | 0.75", True),
        ([("a", 0.5, 2), ("b", 0.25, 2)], "table runs, row 1, id: '<id>' | 'a'", False),
        ([(OTHER, 0.5, 2)], "table runs has 2 | 1 rows", True),
    ],
)
def test_databases_are_compared_by_their_tables(tmp_path, rows, told, certain):
    a = database(tmp_path / "a", (RUN, 0.5, 1), ("b", 0.25, 1))
    before = a.files["r.db"].read_bytes()
    outcome = compare_left(a, database(tmp_path / "b", *rows), ordered=True)
    assert [(left.difference, left.certain) for left in outcome.differing] == ([(told, certain)] if told else [])
    assert outcome.files == int(not told or certain)
    assert a.files["r.db"].read_bytes() == before
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["r.db"]


@pytest.mark.parametrize("damage", ["cut", "log"])
def test_a_database_that_cannot_be_read_as_it_is_is_not_compared(tmp_path, damage):
    a, b = (database(tmp_path / name, ("x", value, 1)) for name, value in (("a", 0.5), ("b", 0.75)))
    if damage == "cut":
        a.files["r.db"].write_bytes(a.files["r.db"].read_bytes()[:4000])
    else:
        (tmp_path / "b" / "r.db-wal").write_bytes(b"x")
    outcome = compare_left(a, b, ordered=True)
    assert ([left.certain for left in outcome.differing], outcome.files) == ([False], 0)


def test_lines_of_several_processes_may_come_in_another_order(tmp_path):
    a, b = (remains(tmp_path / name, {}, text) for name, text in (("a", "x 1\ny 2\n"), ("b", "y 2\nx 1\n")))
    assert not compare_left(a, b, ordered=False).certain
    assert compare_left(a, b, ordered=True).certain


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("printed", "equal"),
    [
        (("[71] rank 0\nstep 71\n", "[82] rank 0\nstep 71\n"), True),
        (("[71] rank 0\nloss 3\n", "[82] rank 0\nloss 4\n"), False),
        (("[71] rank 0\n", "[90] rank 0\n"), False),
        (("loss 71.5\n", "loss 82.5\n"), False),
    ],
)
def test_numbers_of_the_runs_processes_are_no_difference(tmp_path, printed, equal, ordered):
    runs = [remains(tmp_path / name, {}, text) for name, text in zip("ab", printed, strict=True)]
    runs = [run._replace(processes=frozenset({number})) for run, number in zip(runs, ("71", "82"), strict=True)]
    assert compare_left(*runs, ordered=ordered).differing == () or not equal
    assert bool(compare_left(*runs, ordered=ordered).certain) != equal


def test_lines_of_several_processes_are_held_against_each_other_whatever_their_order(tmp_path):
    texts = {"a": "[71] one\n[72] two\nloss 3\n", "b": "loss 4\n[82] two\n[81] one\n"}
    a, b = (remains(tmp_path / name, {}, text) for name, text in texts.items())
    a, b = a._replace(processes=frozenset({"71", "72"})), b._replace(processes=frozenset({"81", "82"}))
    (left,) = compare_left(a, b, ordered=False).certain
    assert left.difference == "line 3: 'loss 3' | 'loss 4'"


def test_the_last_line_that_differs_is_told_too(tmp_path):
    a, b = (remains(tmp_path / n, {}, f"seed {n}\nloss 1.{k}\nend\n") for k, n in enumerate("ab"))
    (left,) = compare_left(a, b, ordered=True).differing
    assert left.last == "'loss 1.0' | 'loss 1.1'"


@pytest.mark.parametrize(
    ("one", "two", "hinted"),
    [
        ("12.31\nloss 2\n", "12.62\nloss 2\n", True),
        ("12.31\nloss 2\n", "12.62\nloss 3\n", False),
        ("3 4\n", "3 5\n", False),
        ("20 16% (0.17)\n", "20 16% (0.09)\n", True),
        ("[0.17] loss 1.5\n", "[0.09] loss 1.5\n", True),
        ("epoch 1 | 0.17 | 1.5\n", "epoch 1 | 0.09 | 1.5\n", True),
        ("20 16% (0.17) 1.5\n", "20 16% (0.09) 1.6\n", False),
        ("tensor(0.17)\n", "tensor(0.09)\n", False),
        ("tensor([0.17])\n", "tensor([0.09])\n", False),
    ],
)
def test_a_bare_number_differs_like_a_result_and_the_report_says_what_to_do_if_it_is_a_time(tmp_path, one, two, hinted):
    a, b = (remains(tmp_path / name, {}, text) for name, text in (("a", one), ("b", two)))
    (left,) = compare_left(a, b, ordered=True).certain
    assert bool(left.hint) == hinted


@pytest.mark.usefixtures("forks")
def test_a_program_that_runs_nothing_of_torch_has_no_equal_ops(tmp_path):
    told = text(verified(tmp_path, "import torch, numpy as np\nnp.save('metric.npy', np.random.rand(3))\n"))
    assert "diverged · metric.npy not equal · no op of torch ran\n" in told
    assert "  no op of torch ran; what Python, NumPy or a file made of it differs: metric.npy\n" in told


@pytest.mark.usefixtures("forks")
@pytest.mark.parametrize(("number", "said"), [("torch.rand(1).item()", False), ("os.urandom(3)[0] + 0.5", True)])
def test_what_to_do_about_a_time_is_said_where_no_op_differs(tmp_path, number, said):
    report = verified(tmp_path, f"import os, torch\ntorch.ones(2).sum()\nprint({number})\n")
    assert report.verdict == "diverged"
    assert ("where they tell a time" in text(report)) == said


def test_every_run_begins_in_the_folder_as_it_was(tmp_path):
    original, room = tmp_path / "project", tmp_path / "room"
    (original / "sub").mkdir(parents=True)
    room.mkdir()
    (original / "data.txt").write_text("as it was")
    (original / "sub" / "x.txt").write_text("x")
    (original / "link").symlink_to("data.txt")
    (original / ".venv").mkdir()
    (original / ".venv" / "pyvenv.cfg").write_text("")
    before = {name: (original / name).stat().st_mtime_ns for name in ("data.txt", "sub/x.txt")}
    workspace = Workspace(original, room)
    assert not workspace.in_place
    for side in "AB":
        workspace.begin()
        assert (workspace.folder / "data.txt").read_text() == "as it was"
        assert (workspace.folder / ".venv" / "pyvenv.cfg").exists()
        (workspace.folder / "data.txt").write_text(f"written by {side}")
        (workspace.folder / "new").mkdir()
        (workspace.folder / "new" / "y.txt").write_text(side)
        (workspace.folder / "sub" / "x.txt").unlink()
        left = workspace.end(tmp_path / side)
        assert sorted(left) == ["data.txt", "link", "new/y.txt"] or sorted(left) == ["data.txt", "new/y.txt"]
        assert left["data.txt"].read_text() == f"written by {side}"
    assert (original / "data.txt").read_text() == "as it was"
    assert {name: (original / name).stat().st_mtime_ns for name in before} == before
    assert workspace.turned(f"{original}/out") == f"{workspace.folder}/out"
    assert workspace.turned(f"--out={original}") == f"--out={workspace.folder}"
    assert workspace.turned(f"{original}s/out") == f"{original}s/out"
    (tmp_path / "beside").mkdir()
    for word, there in (
        ("../beside", f"{tmp_path}/beside"),
        ("--data=sub/../../beside", f"--data={tmp_path}/beside"),
        ("lib:../beside", f"lib:{tmp_path}/beside"),
        ("../nowhere", "../nowhere"),
        ("sub/../data.txt", "sub/../data.txt"),
        ("../" + "long" * 1000, "../" + "long" * 1000),
    ):
        assert workspace.turned(word) == there


def test_a_link_to_a_file_outside_is_never_moved(tmp_path):
    original, room, outside = tmp_path / "project", tmp_path / "room", tmp_path / "weights.pt"
    original.mkdir()
    room.mkdir()
    outside.write_text("the user's")
    workspace = Workspace(original, room)
    workspace.begin()
    (workspace.folder / "weights.pt").symlink_to(outside)
    assert workspace.end(tmp_path / "left")["weights.pt"].read_text() == "the user's"
    assert outside.read_text() == "the user's"


def test_a_folder_that_is_too_large_is_not_copied(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("x")
    assert scan(tmp_path, most_files=4) is None
    assert scan(tmp_path, most_bytes=4) is None
    assert scan(tmp_path, 5, 5).size == 5


def test_in_place_what_changed_is_put_aside_and_stays(tmp_path):
    original, room = tmp_path / "project", tmp_path / "room"
    original.mkdir()
    room.mkdir()
    workspace = Workspace(original, room, in_place=True, own=original / "kept")
    workspace.begin()
    (original / "kept").mkdir()
    (original / "kept" / "A.tdtrace").write_text("ours")
    (original / "x.txt").write_text("1")
    assert {name: path.read_text() for name, path in workspace.end(original / "kept" / "A.left").items()} == {
        "x.txt": "1"
    }
    assert (original / "x.txt").exists()
    assert list(room.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "found"),
    [
        ("ModuleNotFoundError: No module named 'nets' (train.py:3)", "nets.py is in ..:"),
        ("ModuleNotFoundError: No module named 'nets.small' (train.py:3)", "nets.py is in ..:"),
        ("ModuleNotFoundError: No module named 'loose' (train.py:3)", f"loose is in {Path('..', '..')}:"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '../data/x.csv'", f"in {Path('..', 'data')}:"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '{above}/data/x.csv'", "x.csv is in"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '{folder}/../data/x.csv'", "x.csv is in"),
        ("ModuleNotFoundError: No module named 'data'", ""),
        ("FileNotFoundError: [Errno 2] No such file or directory: '../data/y.csv'", ""),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'own.csv'", ""),
        ("KeyError: 'nets'", ""),
    ],
)
def test_what_stands_above_the_folder_and_is_missing_in_its_copy_is_named(tmp_path, error, found):
    original, room = tmp_path / "outer" / "project" / "experiment", tmp_path / "room"
    for folder in (original, room, original.parent / "data", tmp_path / "outer" / "loose"):
        folder.mkdir(parents=True)
    for file in ("experiment/own.csv", "nets.py", "data/x.csv", "../loose/one.py"):
        (original.parent / file).write_text("")
    workspace = Workspace(original, room)
    said = workspace.without(error.format(above=workspace.folder.parent, folder=original))
    assert (found in said) if found else not said
    assert not Workspace(original, room, in_place=True).without(error)


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("import os\nif not os.path.isdir('../data'):\n    raise OSError('error downloading')\n", "../data (a.py:2)"),
        ("import os\nopen(os.path.join('..', 'data', name))\n", "../data (a.py:2)"),
        ("import os\nroot = os.path.join(os.path.dirname(__file__), '..', 'data')\n", "../data (a.py:2)"),
        ("from pathlib import Path\nroot = Path('..') / 'data'\n", "../data (a.py:2)"),
        ("text = f'../data/{name}'\n", "../data/ (a.py:1)"),
        ("import sys\nsys.path.append('..')\n", ""),
        ("open('../nowhere')\n", ""),
        ("open('sub/../own.csv')\n", ""),
        ("broken(\n", ""),
    ],
)
def test_a_program_that_fails_is_told_what_its_source_names_above_the_folder(tmp_path, source, path):
    original, room = tmp_path / "code", tmp_path / "room"
    for folder in (original / "sub", room, tmp_path / "data"):
        folder.mkdir(parents=True)
    (original / "own.csv").write_text("")
    (original / "a.py").write_text(source)
    error = f'File "{original}/a.py", line 2, in <module>\nOSError: error downloading\n'
    for words in ({"words": ["a.py"], "error": ""}, {"words": ["-m", "b"], "error": error}):
        said = Workspace(original, room).beside(**words)
        assert (f"from which {path} leads elsewhere" in said) if path else not said
        assert not Workspace(original, room, in_place=True).beside(**words)
    assert not Workspace(original, room).beside(["a.py"], "SyntaxError: invalid syntax")
    assert not Workspace(original, room).beside(["b.py"], "")


torch = pytest.importorskip("torch")

from torchdet_lint.verifier.launch.launch import Program  # noqa: E402
from torchdet_lint.verifier.verification.text import text  # noqa: E402
from torchdet_lint.verifier.verification.verify import verify_program  # noqa: E402


def verified(folder, source, **options):
    (folder / "program.py").write_text(source)
    before = sorted(folder.iterdir())
    report = verify_program(Program("script", "program.py", directory=str(folder)), lint=False, **options)
    assert sorted(folder.iterdir()) == before
    return report


TIMES = """
import time
from time import perf_counter as now
import torch
torch.manual_seed(0)
begun = time.time()
for epoch in range(2):
    started = now()
    time.sleep(0.01)
    print(epoch, torch.rand(1).item(), "|", now() - started, "|", round(64 / (now() - started), 2), flush=True)
print(time.monotonic_ns() * 0 + time.time() - begun)
"""


def test_bare_numbers_that_follow_the_clock_are_times(tmp_path):
    report = verified(tmp_path, TIMES, runs=3, times=True)
    assert (report.verdict, report.left) == ("identical", ()), text(report)
    assert "standard output tells times in 3 lines, the first of which is line 1" in report.not_covered[0]


PROCESSES = """
import multiprocessing, subprocess, sys, threading, time
import torch

def work(rank):
    torch.manual_seed(rank)
    started = time.time()
    time.sleep(0.01)
    print(rank, torch.rand(1).item(), RESULT, "|", time.time() - started, flush=True)

if __name__ == "__main__":
    started = time.perf_counter()
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=(rank,)) for rank in range(2)]
    for process in processes:
        process.start()
    subprocess.run([sys.executable, "timed.py"], check=True)
    for process in processes:
        process.join()
    print(time.perf_counter() - started)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize(
    ("result", "more", "verdict"),
    [
        ("0.5", "", "identical"),
        ("random.SystemRandom().random()", "import random\n", "diverged"),
        ("0.5", "    (thread := threading.Thread(target=work, args=(3,))).start()\n    thread.join()\n", "diverged"),
    ],
)
def test_times_of_several_processes_are_told_from_their_results(tmp_path, result, more, verdict):
    """Not where threads print: the order of their lines is no other's."""
    (tmp_path / "timed.py").write_text("import time\nnow = time.time()\ntime.sleep(0.01)\nprint(time.time() - now)\n")
    source = PROCESSES.replace("RESULT", result)
    source = f"{more}{source}" if more.startswith("import") else f"{source}{more}"
    report = verified(tmp_path, source, times=True)
    assert report.verdict == verdict, text(report)
    if verdict == "identical":
        assert "standard output tells times in 4 lines, the first of which is line 1" in report.not_covered[0]


@pytest.mark.parametrize(
    "number",
    [
        "np.random.RandomState(time.time_ns() % 1000).rand()",
        "np.random.default_rng().random() + 0 * now()",
        "(now() - begun) % 0.001",
    ],
)
def test_a_bare_number_that_does_not_follow_the_clock_is_a_result(tmp_path, number):
    report = verified(tmp_path, f"{TIMES}\nimport numpy as np\nprint({number})\n", times=True)
    assert (report.verdict, [left.name for left in report.left]) == ("diverged", ["standard output"]), text(report)


@pytest.mark.parametrize(
    ("slow", "fast", "lines"),
    [
        ("a\n3.0\n", "a\n6.0\n", {2}),
        ("3\n4\n", "6\n4\n", {1}),
        ("1 loss | 2.5 |\n0.29\n", "1 loss | 5.0 |\n0.57\n", {1, 2}),
        ("8.0\n", "4.0\n", {1}),
        ("3\n", "7\n", set()),
        ("3.0\n0.5\n", "6.0\n0.7\n", set()),
        ("a 3.0\n", "a 6.0\n", set()),
        ("3.0\n", "6.0\n1\n", set()),
    ],
)
def test_lines_tell_times_where_all_that_differs_goes_with_the_clock(tmp_path, slow, fast, lines):
    (tmp_path / "slow").write_text(slow)
    (tmp_path / "fast").write_text(fast)
    assert lines_of_times(tmp_path / "slow", tmp_path / "fast", 2) == lines


PREDICTIONS = """
import json, torch
scores = {name: torch.full((2,), float(ord(name))) for name in "abcdef"}
rows = [(name, scores[name].sum().item()) for name in set(scores)]
json.dump(rows, open("rows.json", "w"))
"""


@pytest.mark.parametrize("ending", ["", "print('done')\n"])
def test_an_order_that_reaches_a_file_diverges_whatever_is_printed(tmp_path, ending):
    report = verified(tmp_path, PREDICTIONS + ending, mode="stress")
    assert report.verdict == "diverged"
    assert [left.name for left in report.left] == ["rows.json"]
    assert "left behind: rows.json" in text(report)


def test_an_order_that_reaches_nothing_has_no_effect(tmp_path):
    report = verified(tmp_path, PREDICTIONS.replace("json.dump(rows", "json.dump(sorted(rows)"), mode="stress")
    assert report.verdict == "identical", text(report)
    assert (report.compared_files, len(report.without_effect) > 0) == (1, True)


@pytest.mark.parametrize(
    ("ending", "left"),
    [
        ("np.save('metric.npy', np.random.rand(3)); print('auc', np.random.rand())", ["metric.npy", "standard output"]),
        ("np.save('metric.npy', np.arange(3)); print('auc', 0.5)", []),
    ],
)
@pytest.mark.parametrize("imports", ["import numpy as np", "import numpy as np, torch; torch.ones(2).sum()"])
def test_what_numpy_alone_computed_is_judged_by_what_is_left(tmp_path, in_forks, imports, ending, left):
    with in_forks() if "torch" in imports else contextlib.nullcontext():
        report = verified(tmp_path, f"{imports}\n{ending}\n")
    assert sorted(one.name for one in report.left) == left
    assert report.exit_status == bool(left)


@pytest.mark.parametrize(
    "source", ["print('no torch here')", "import torch; print('no op')", "import torch\nif 0: main()"]
)
def test_where_nothing_was_compared_nothing_is_called_equal(tmp_path, in_forks, source):
    with in_forks() if "import torch" in source else contextlib.nullcontext():
        report = verified(tmp_path, source)
    assert (report.verdict, report.exit_status, report.ok) == ("nothing", 3, False)
    assert text(report).count("\n") == 1


@pytest.mark.usefixtures("forks")
def test_the_report_says_what_is_equal_but_for_timings(tmp_path):
    source = "import os, torch; print('loss', torch.ones(2).sum().item()); print(f'port {os.getpid()}')"
    report = verified(tmp_path, source)
    first, second, *_ = text(report).splitlines()
    assert first.endswith("are equal, bit for bit, in 3 ops and 1 line of output")
    assert second == "equal but for timings, dates and the like: 1 line"
    report.to_html(tmp_path / "page.html")
    assert f"equal in 3 ops and 1 line of output · {second}" in (tmp_path / "page.html").read_text()
    assert json.loads(report.to_json())["masked_lines"] == 1


@pytest.mark.parametrize(("op", "verdict"), [("ones", "identical"), ("rand", "diverged")])
@pytest.mark.usefixtures("forks")
def test_standard_error_that_differs_stands_under_what_is_not_covered(tmp_path, op, verdict):
    source = f"import os, sys, torch; torch.{op}(2).sum(); sys.stderr.write(f'accuracy {{os.urandom(4).hex()}}\\n')"
    report = verified(tmp_path, source)
    assert report.verdict == verdict
    assert report.not_covered[0].startswith("standard error is not compared, and differs: line 1: 'accuracy ")


@pytest.mark.usefixtures("forks")
def test_where_only_files_differ_that_are_not_compared_nothing_is_called_equal(tmp_path):
    report = verified(tmp_path, "import os, torch; open('p.pdf', 'wb').write(os.urandom(8)); print('done')")
    assert (report.verdict, report.exit_status) == ("nothing", 3)
    assert "p.pdf" in report.failure


@pytest.mark.usefixtures("forks")
def test_a_folder_that_the_program_makes_is_not_there_in_the_next_run(tmp_path):
    report = verified(tmp_path, "import os, torch; os.makedirs('out'); torch.save(torch.ones(3), 'out/x.pt')")
    assert report.verdict == "identical"
    assert report.compared_files == 1


@pytest.mark.usefixtures("forks")
def test_a_program_that_needs_what_stands_above_its_folder_is_told_how_to_start(tmp_path):
    (tmp_path / "nets.py").write_text("")
    (tmp_path / "experiment").mkdir()
    source = (
        "import sys, pathlib, torch\nsys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))\nimport nets\n"
    )
    report = verified(tmp_path / "experiment", source)
    assert report.verdict == "failed"
    assert "and nets.py is in ..: verify from a folder that holds both, or with --in-place" in text(report)


@pytest.mark.usefixtures("forks")
def test_a_module_above_the_folder_that_python_is_not_told_of_is_not_laid_to_the_copy(tmp_path):
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "__init__.py").write_text("")
    (tmp_path / "examples").mkdir()
    report = verified(tmp_path / "examples", "import torch\nimport nets\n")
    assert report.failure.endswith("nets is in .., where Python does not look: verify with PYTHONPATH=..")


@pytest.mark.parametrize(
    ("read", "way"),
    [
        ("open('../data/a.csv')", "verify with --in-place"),
        (
            "open(os.path.abspath('../data/a.csv'))",
            "verify from a folder that holds both, or with --in-place",
        ),
        ("np.genfromtxt('{}{}.csv'.format('../data/', 'a'))", "verify with --in-place"),
    ],
)
@pytest.mark.usefixtures("forks")
def test_a_file_above_the_folder_is_told_in_whichever_words_a_library_misses_it(tmp_path, monkeypatch, read, way):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("1,2\n")
    (tmp_path / "code").mkdir()
    monkeypatch.chdir(tmp_path / "code")
    report = verified(tmp_path / "code", f"import os\nimport numpy as np, torch\n{read}\n")
    assert report.verdict == "failed"
    assert f"and a.csv is in ../data: {way}" in text(report)


@pytest.mark.usefixtures("forks")
def test_a_crash_of_one_run_is_shown_with_its_traceback(tmp_path):
    source = "import os, torch\n\nif os.environ['PYTHONHASHSEED'] == '2':\n    raise KeyError('the second run')\n"
    report = verified(tmp_path, source, mode="stress")
    assert report.verdict == "diverged"
    shown = text(report)
    assert "run B ended with exit status 1" in shown
    assert 'program.py", line 4' in shown
    assert "KeyError: 'the second run'" in shown
