"""The table of ops against the installed torch: its documentation, its signatures, and its own shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchdet_lint.catalogue import explain
from torchdet_lint.catalogue.loading import load
from torchdet_lint.catalogue.measured import shipped
from torchdet_lint.catalogue.ops import Op, instead_at, ops_of, release, status_in

torch = pytest.importorskip("torch")
torchfacts = pytest.importorskip("torchfacts")

OPS = load().facts.ops
TORCH_OPS = [op for op in OPS if op.package == "torch"]
INSTALLED = release(torch.__version__)
NEWEST = (2, 15)


def test_the_docstring_still_reads_as_expected() -> None:
    names = {entry.name for entry in torchfacts.documented()}
    assert {"torch.nn.Conv1d", "torch.bincount", "torch.nn.functional.interpolate", "torch.Tensor.resize_"} <= names
    assert len(torchfacts.documented()) > 50


@pytest.mark.parametrize("entry", torchfacts.documented(), ids=lambda entry: entry.key)
def test_every_documented_op_has_a_row_that_agrees(entry: torchfacts.Documented) -> None:
    rows = torchfacts.rows_for(entry, OPS)
    assert rows, f"the docstring names {entry.key}; rules/facts/ops.toml has no row for it"
    agrees = any(status_in(op.status, INSTALLED) == entry.status for op in rows)
    if entry.key in torchfacts.WRONG_DOCUMENTS:
        assert not agrees, f"{entry.key} is listed as contradicted, and the table agrees with it"
    else:
        assert agrees, f"{entry.key}: the rows say {[status_in(op.status, INSTALLED) for op in rows]}"


def test_every_exception_is_still_documented() -> None:
    assert torchfacts.WRONG_DOCUMENTS.keys() <= {entry.key for entry in torchfacts.documented()}


@pytest.mark.parametrize("op", TORCH_OPS, ids=lambda op: f"{op.op} {op.direction} {'+'.join(op.devices)}")
def test_every_row_that_raises_or_switches_is_documented_or_known_not_to_be(op: Op) -> None:
    if status_in(op.status, INSTALLED) not in ("errors", "switchable") or op.devices == ("mps",):
        return
    named = any(op in torchfacts.rows_for(entry, OPS) for entry in torchfacts.documented())
    if op.op in torchfacts.NOT_DOCUMENTED:
        assert not named, f"{op.op} is documented now: take it out of NOT_DOCUMENTED"
    else:
        assert named, f"{op.op} is not in the docstring and not in NOT_DOCUMENTED"


@pytest.mark.parametrize(
    ("name", "parameters"),
    torchfacts.signed(OPS),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_parameter_has_its_real_name_and_place(name: str, parameters: tuple[str, ...]) -> None:
    real = torchfacts.real_parameters(name)
    assert any(known[: len(parameters)] == parameters for known in real), f"{parameters} is none of {real}"


def test_every_spelling_of_torch_gives_its_parameters() -> None:
    """Both directions: no row of torch leaves its signature unsaid, but those that no check reports."""
    said = {name for name, _ in torchfacts.signed(OPS)}
    for op in OPS:
        for spelling in op.spellings:
            if spelling.name.startswith("torch.") and not (op.silent_because or op.aggregate):
                assert spelling.name in said, f"{op.op}: {spelling.name} says no parameters"


@pytest.mark.parametrize("op", TORCH_OPS, ids=lambda op: op.op)
def test_every_spelling_exists(op: Op) -> None:
    for spelling in op.spellings:
        if not spelling.name.startswith("torch."):
            continue
        value = torchfacts.behind(spelling.name)
        if spelling.forward:
            assert torchfacts.python_parameters(value.forward)[: len(spelling.forward)] == spelling.forward


@pytest.mark.parametrize("op", OPS, ids=lambda op: f"{op.op} {op.direction} {'+'.join(op.devices)}")
def test_every_row_is_sound(op: Op) -> None:
    assert op.evidence, "no row without evidence"
    since = [release(row.since) for row in op.status]
    assert since == sorted(set(since)), "the history runs from old to new, one row a release"
    assert all(
        before.status != after.status or after.note for before, after in zip(op.status, op.status[1:], strict=False)
    )
    if op.package == "torch":
        assert all((1, 7) <= row <= NEWEST for row in since)
    assert len({spelling.name for spelling in op.spellings}) == len(op.spellings)
    for condition in op.when:
        takes = [
            spelling for spelling in op.spellings if condition.argument in (*spelling.parameters, *spelling.forward)
        ]
        assert takes or condition.argument == "self", f"no spelling takes {condition.argument!r}"
        needs = condition.test in (
            "in",
            "not-in",
            "possible",
            "unless",
            "dims",
            "length",
            "contains",
            "from",
            "not-from",
        )
        assert bool(condition.values) == needs


def test_no_two_rows_report_one_call_under_one_code() -> None:
    """The same spelling in two rows needs conditions, a device or a direction that keep them apart."""
    seen: dict[tuple[str, str, str, tuple[str, ...], str], str] = {}
    for op in OPS:
        for spelling in op.spellings:
            if op.silent_because:
                continue
            key = (spelling.name, op.direction, op.package, op.devices, repr(op.when))
            if status_in(op.status, NEWEST) == "deterministic":
                continue
            assert key not in seen, f"{op.op} and {seen[key]} both report {spelling.name}"
            seen[key] = op.op


def test_releases_change_what_an_op_is() -> None:
    def status(name: str, target: tuple[int, int]) -> str:
        return next(status_in(op.status, target) for op in OPS if op.op == name)

    assert status("torch.nn.ReflectionPad2d", (2, 6)) == "errors"
    assert status("torch.nn.ReflectionPad2d", (2, 7)) == "switchable"
    assert status("torch.Tensor.scatter_add_", (1, 9)) == "errors"
    assert status("torch.kthvalue", (2, 9)) == "errors"
    assert status("torch.kthvalue", (2, 10)) == "deterministic"
    assert status("torch.Tensor.index_reduce_", (1, 11)) == "absent"


def test_spellings_are_complete_for_in_place_and_functional_forms() -> None:
    """A row that knows `torch.x` or `x_` knows the other spellings that torch has of it."""
    for op in TORCH_OPS:
        if op.silent_because:
            continue
        names = {spelling.name for spelling in op.spellings}
        for spelling in op.spellings:
            bare = spelling.name.removeprefix("torch.Tensor.").removeprefix("torch.").rstrip("_")
            if "." in bare or not (spelling.name.startswith("torch.Tensor.") or f"torch.{bare}" in torchfacts.stubs()):
                continue
            every = {f"torch.{bare}", f"torch.Tensor.{bare}", f"torch.Tensor.{bare}_"} & torchfacts.stubs().keys()
            assert every <= names, f"{op.op} lacks {sorted(every - names)}"


def test_an_op_changes_its_rule_with_the_release() -> None:
    def codes(name: str, target: tuple[int, int]) -> set[str]:
        every = ("TDL401", "TDL402", "TDL403", "TDL404", "TDL405", "TDL406", "TDL407")
        return {code for code in every if any(op.op == name for op in ops_of(code, OPS, target))}

    assert codes("torch.Tensor.scatter_add_", (1, 12)) == {"TDL401"}
    assert codes("torch.Tensor.scatter_add_", (1, 13)) == {"TDL402"}
    assert codes("torch.kthvalue", (2, 12)) == set()
    assert codes("torch.nn.LSTM", (2, 13)) == {"TDL404"}
    assert codes("torch.empty", (2, 13)) == set()


def test_the_matrix_in_the_documentation_is_fresh() -> None:
    page = Path(__file__).parents[1] / "docs" / "ops.md"
    assert page.read_text(encoding="utf-8") == explain.matrix(OPS, measurements=shipped()), "run `make docs`"


def test_an_operation_is_told_once() -> None:
    """Rows that differ only in how the operation is called are one for the reader."""
    rule = load().rules["TDL401"]
    told = [line for line in explain.as_text(rule, OPS, width=1000) if line.startswith("  torch.")]
    assert len(told) == len(set(told)) > 100
    assert sum("torch.nn.NLLLoss (" in line for line in told) == 1


def test_the_types_of_devices_are_those_of_torch() -> None:
    with pytest.raises(RuntimeError, match="Expected one of") as raised:
        torch.device("none")
    listed = str(raised.value).partition("Expected one of ")[2].partition(" device type")[0]
    assert set(listed.split(", ")) <= load().facts.devices.types


@pytest.mark.parametrize(("target", "says"), [((2, 2), "sdp_kernel("), ((2, 3), "use_deterministic_algorithms(True)")])
def test_what_to_do_depends_on_the_release(target, says):
    op = next(op for op in OPS if op.op == "torch.nn.functional.scaled_dot_product_attention")
    assert says in instead_at(op, target)
    assert ("without warn_only" in instead_at(op, target)) is (status_in(op.status, target) == "switchable")
