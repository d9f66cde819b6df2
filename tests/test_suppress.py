"""`# noqa` in all its forms."""

from __future__ import annotations

import pytest

from torchdet_lint.source.suppress import Rows, Suppression, parse, split


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("# noqa", ()),
        ("#noqa", ()),
        ("# NOQA", ()),
        ("# noqa: TDL301", ("TDL301",)),
        ("# noqa:TDL301,TDL302", ("TDL301", "TDL302")),
        ("# noqa : tdl301, E501 S1", ("TDL301", "E501", "S1")),
        ("# type: ignore  # noqa: TDL3", ("TDL3",)),
        ("# noqa: TDL301 because the loader has no workers", ("TDL301",)),
        ("# noqa TDL301", ()),
    ],
)
def test_forms(comment: str, codes: tuple[str, ...]) -> None:
    entries = parse(f"x = 1\ny = 2  {comment}\n").entries
    assert [(entry.row, entry.codes) for entry in entries] == [(2, codes)]


NAMES = {"cudnn-benchmark": "TDL201"}


@pytest.mark.parametrize(
    ("comment", "codes", "fault"),
    [
        ("# noqa: cudnn-benchmark", ("TDL201",), ""),
        ("# noqa: E501, Cudnn-Benchmark, TDL3", ("E501", "TDL201", "TDL3"), ""),
        ("# noqa: TDL201. It is fast", ("TDL201",), ""),
        ("# noqa: blah-blah", (), "other"),
        ("# noqa:", (), "other"),
        ("# noqa: cudnn-benchmarks", (), "other"),
        ("# noqa: TDL", (), "ours"),
        ("# noqa: see torchdet-lint", (), "ours"),
        ("# torchdet: noqa", (), "ours"),
        ("# torchdet: skip-file: everything", (), "ours"),
        ("# torchdet: ignore", (), "ours"),
        ("# torchdet: noqa: cudnn-benchmark", ("TDL201",), ""),
    ],
)
def test_names_and_what_means_nothing(comment: str, codes: tuple[str, ...], fault: str) -> None:
    (entry,) = parse(f"x = 1  {comment}\n", NAMES).entries
    assert (entry.codes, entry.fault) == (codes, fault)
    assert bool(fault) is (entry.hits("TDL201", Rows(1, 1, 1)) is None)


@pytest.mark.parametrize("text", ["x = '# noqa'", "# flake8: noqa", "# noqa-later", "# ruff: noqa: E501", "# not noqa"])
def test_what_is_none(text: str) -> None:
    assert parse(text + "\n").entries == ()


def test_skip_file() -> None:
    assert parse("import x\n# torchdet: skip-file\n").skip
    assert not parse("'''\n# torchdet: skip-file\n'''\n").skip


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("x = 1  # noqa: TDL1", "x = 1"),
        ("x = 1  # type: ignore  # noqa: TDL1", "x = 1  # type: ignore"),
        ("x = 1  # noqa: TDL1  # type: ignore", "x = 1  # type: ignore"),
        ("x = 1  # noqa: TDL1 for a reason", "x = 1"),
        ("é = 'ü'\t# noqa: TDL1  ", "é = 'ü'  "),
    ],
)
def test_what_goes_with_it(line: str, left: str) -> None:
    (entry,) = parse(f"first\r\n{line}\r\nlast").entries
    assert line[: entry.column - 1] + line[entry.end - 1 :] == left


def test_one_code_of_several_goes() -> None:
    assert Suppression(1, 1, 9, ("TDL1", "E501", "TDL2")).without({"TDL2", "TDL1"}) == "# noqa: E501"
    assert Suppression(1, 1, 9, ("TDL1",)).without({"TDL1"}) == ""


@pytest.mark.parametrize(
    ("codes", "row", "silenced"),
    [
        (("TDL301",), 2, True),
        (("TDL3",), 2, True),
        (("TDL302", "TDL301"), 3, True),
        (("TDL301",), 6, True),
        (("TDL301",), 1, False),
        (("TDL301",), 5, False),
        (("E501",), 2, False),
        ((), 2, True),
        ((), 3, False),
        ((), 6, True),
    ],
)
def test_where_it_counts(codes: tuple[str, ...], row: int, silenced: bool) -> None:
    """A call on the rows 2 to 4 of a statement that ends on row 6."""
    entry = Suppression(row, 1, 9, codes)
    kept, used = split([("TDL301", Rows(2, 4, 6))], [entry])
    assert kept == [not silenced]
    assert bool(used[0]) == silenced


def test_codes_for_a_whole_file() -> None:
    (entry,) = parse("import torch\n\nx = 1\n# torchdet: noqa: TDL4, tdl501\n").entries
    assert (entry.file, entry.codes, entry.row) == (True, ("TDL4", "TDL501"), 4)
    assert entry.hits("TDL404", Rows(1, 1, 1)) == "TDL4"
    assert entry.hits("TDL201", Rows(4, 4, 4)) is None
    assert entry.without({"TDL4"}) == "# torchdet: noqa: TDL501"
    assert entry.without({"TDL4", "TDL501"}) == ""
    assert parse("# torchdet: skip-file: TDL201\n") == parse("# torchdet: skip-file: TDL201\n")._replace(skip=False)
    assert parse("# torchdet: skip-file: TDL201\n").entries[0].file
    assert parse("x = '# torchdet: noqa: TDL404'\n").entries == ()
