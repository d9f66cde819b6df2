from __future__ import annotations

import pytest

from torchdet_lint.verifier import trace
from torchdet_lint.verifier.comparison.compare import compare
from torchdet_lint.verifier.trace import Record, Site, Trace, TraceError, Writer, listing


def write(path, words=((0, 1, 2, 3), (1, 1, 2, 4, 5)), close=True):
    writer = Writer(path)
    writer.json(b"H", 0, {"hash": "xxh3-64", "environment": {}})
    number = writer.stream("main", "main")
    writer.json(b"D", number, [Site("aten.a", "forward", "m.py", 1, "f"), Site("aten.b", "backward", "m.py", 2, "f")])
    for site, scalars, inputs, *digests in words:
        writer.block(b"R", number, trace.words([site | len(digests) << 32, scalars, inputs, *digests]))
    if close:
        writer.json(b"F", number, {"records": len(words)})
    writer.close()
    return path


def test_what_is_written_is_read(tmp_path):
    opened = Trace(write(tmp_path / "a.tdtrace"))
    assert opened.header["hash"] == "xxh3-64"
    assert opened.main.complete
    assert opened.main.records == 2
    assert [site.op for site in opened.sites(opened.main)] == ["aten.a", "aten.b"]
    assert list(opened.records(opened.main)) == [
        Record(0, 0, 1, 2, (3,), None, None, None),
        Record(1, 0, 1, 2, (4, 5), None, None, None),
    ]


def test_steps_that_nobody_made_are_told_so(tmp_path):
    opened = Trace(write(tmp_path / "a.tdtrace"))
    (told,) = listing.records(opened, listing.Asked(step=3))
    assert told.startswith("no optimizer of torch made a step there; main: 2 ops")


def test_extra_words_follow_the_flags(tmp_path):
    flags = trace.RANDOM | trace.OUTSIDE | trace.ARRIVED
    payload = trace.words([1 << 32 | flags << 48, 0, 0, 9, 77, 10, 11, 12, 13, 5])
    assert list(trace.decode(payload)) == [Record(0, flags, 0, 0, (9,), 77, (10, 11, 12, 13), 5)]


@pytest.mark.parametrize("cut", [1, 20, 60, 300])
def test_a_truncated_file_is_read_up_to_the_cut(tmp_path, cut):
    whole = write(tmp_path / "a.tdtrace", words=[(0, 1, 2, 3)] * 20)
    data = whole.read_bytes()
    whole.write_bytes(data[:-cut])
    opened = Trace(whole)
    assert opened.truncated
    assert len(list(opened.records(opened.main))) <= 20


def test_what_was_cut_off_is_no_difference(tmp_path):
    whole = write(tmp_path / "a.tdtrace", words=[(0, 1, 2, 3)] * 20)
    part = write(tmp_path / "b.tdtrace", words=[(0, 1, 2, 3)] * 20)
    part.write_bytes(part.read_bytes()[:-300])
    found = compare(whole, part)
    assert found.identical
    assert 0 < found.compared < 20
    assert found.notes == ("b.tdtrace ends in the middle of a record: what the run did after that",)
    assert compare(part, whole).compared == found.compared


def test_a_trace_without_a_whole_op_cannot_be_compared(tmp_path):
    whole, part = write(tmp_path / "a.tdtrace"), write(tmp_path / "b.tdtrace", words=[(0, 1, 2, 3)])
    part.write_bytes(part.read_bytes()[:-60])
    with pytest.raises(TraceError, match="cut off before its first op"):
        compare(whole, part)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a trace of torchdet-lint"),
        (b"PK\x03\x04 something else entirely", "not a trace of torchdet-lint"),
        (trace.MAGIC + b"\x63\0\0\0", "trace version 99; this torchdet-lint reads version 1"),
        (trace.MAGIC + b"\x01\0\0\0", "the run ended before it began to record"),
        (trace.MAGIC + b"\x01\0\0\0" + b"?" * 16, "damaged|the run ended"),
    ],
)
def test_a_foreign_file_gives_one_line(tmp_path, content, says):
    path = tmp_path / "x.tdtrace"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=says) as raised:
        Trace(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_changed_byte_is_noticed(tmp_path):
    path = write(tmp_path / "a.tdtrace")
    data = bytearray(path.read_bytes())
    position = data.rindex(trace.words([0 | 1 << 32, 1, 2, 3]))
    data[position + 24] ^= 1
    path.write_bytes(data)
    opened = Trace(path)
    with pytest.raises(TraceError, match="damaged"):
        list(opened.records(opened.main))


def test_a_missing_file_gives_one_line(tmp_path):
    with pytest.raises(TraceError, match="No such file"):
        Trace(tmp_path / "none.tdtrace")


def test_a_full_disk_does_not_reach_the_program():
    try:
        writer = Writer("/dev/full")
    except TraceError:
        pytest.skip("no /dev/full here")
    writer.json(b"N", 0, {})
    assert "No space left" in writer.failure


def test_children_are_gathered_behind_the_last_whole_block(tmp_path):
    path = write(tmp_path / "a.tdtrace")
    path.write_bytes(path.read_bytes() + b"R\0\0\0half a block")
    part = write(trace.part_of(path, 42), close=False)
    trace.gather(path)
    opened = Trace(path)
    assert not part.exists()
    assert [stream.kind for stream in opened.streams] == ["main", "process"]
    assert len(list(opened.records(opened.streams[1]))) == 2
