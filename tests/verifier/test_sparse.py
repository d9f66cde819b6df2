"""What an op reads of a sparse tensor: the places of its values too, wherever they came from."""

from __future__ import annotations

import io

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

from torchdet_lint.verifier import trace  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.recording.recorder import Recorder  # noqa: E402
from torchdet_lint.verifier.trace import Trace  # noqa: E402

VALUES = torch.tensor([1.0, 2.0, 3.0])
DENSE = torch.arange(16.0).reshape(4, 4)
ENDS = torch.tensor([0, 1, 2, 3, 3])


def coo(columns):
    return torch.sparse_coo_tensor(torch.stack([torch.arange(3), columns]), VALUES, (4, 4))


def csr(columns):
    return torch.sparse_csr_tensor(ENDS, columns, VALUES, (4, 4))


def csc(rows):
    return torch.sparse_csc_tensor(ENDS, rows, VALUES, (4, 4))


PLACES = {coo: torch.Tensor._indices, csr: torch.Tensor.col_indices, csc: torch.Tensor.row_indices}
KINDS = pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.__name__)


def causes(tmp_path, body):
    """The lines and ops of the causes of what differs between `body(0)` and `body(1)`, and how many only follow."""
    for n in (0, 1):
        with Recorder(tmp_path / f"{n}.tdtrace"):
            body(n)
    found = compare(tmp_path / "0.tdtrace", tmp_path / "1.tdtrace").divergences
    here = body.__code__.co_firstlineno
    return [(one.site.op, one.site.line - here) for one in found if one.kind != "consequence"], len(found)


@KINDS
def test_of_two_with_the_same_values_each_has_its_own_places(tmp_path, kind):
    def body(n):
        last = torch.tensor(n)
        mine = kind(torch.stack([last * 0 + 1, last * 0, last + 2]))
        other = kind(torch.tensor([0, 0, 0]))
        other @ DENSE
        mine @ DENSE

    found, differing = causes(tmp_path, body)
    assert found == [("aten.lift_fresh", 1)]
    assert differing > 3


@KINDS
def test_places_that_are_written_in_place(tmp_path, kind):
    def body(n):
        made = kind(torch.tensor([1, 0, 2]))
        PLACES[kind](made)[..., 2:].add_(torch.tensor(n))
        made @ DENSE
        kind(torch.tensor([0, 0, 0])) @ DENSE
        made @ DENSE

    assert causes(tmp_path, body)[0] == [("aten.lift_fresh", 2)]


@KINDS
def test_places_that_an_op_or_an_update_made(tmp_path, kind):
    def body(n):
        made = kind(torch.tensor([1, 0, 2 + n])) + kind(torch.tensor([1, 0, 2]))
        made.mul_(2.0)
        made @ DENSE
        made.clone() @ DENSE

    if kind is not csc:  # of which torch has no sum
        assert causes(tmp_path, body)[0] == [("aten.lift_fresh", 1)]


@KINDS
def test_places_from_a_file(tmp_path, kind):
    def saved(last):
        file = io.BytesIO()
        torch.save(kind(torch.tensor([1, 0, last])), file)
        return file

    files = [saved(2), saved(3)]

    def body(n):
        files[n].seek(0)
        made = torch.load(files[n], weights_only=True)
        made @ DENSE
        made @ DENSE

    ((_, line),), differing = causes(tmp_path, body)
    assert line == 2
    assert differing == 3


def test_a_shape_is_read_too(tmp_path):
    def body(n):
        made = torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.tensor([1.0]), (2, 2 + n))
        made.to_dense()

    assert [line for _, line in causes(tmp_path, body)[0]] == [1]


def test_what_lies_beside_the_values_is_still_known(tmp_path):
    def body(n):
        many = torch.arange(6.0)
        many[3:] += torch.tensor(float(n))
        torch.sparse_coo_tensor(torch.tensor([[0, 1, 2]]), many[:3], (4,)).to_dense()
        many.sum()

    assert causes(tmp_path, body)[0] == [("aten.lift_fresh", 2)]


@KINDS
def test_what_is_made_here_did_not_come_from_outside(tmp_path, kind):
    def body():
        made = kind(torch.arange(3)) if kind is csc else kind(torch.arange(3)) + kind(torch.arange(3))
        made.mul_(2.0)
        return made @ torch.ones(4, 4)

    with Recorder(tmp_path / "a.tdtrace"):
        VALUES.add_(0), ENDS.add_(0)
        body()
    opened = Trace(tmp_path / "a.tdtrace")
    records = list(opened.records(opened.main))
    assert not any(one.flags & trace.OUTSIDE for one in records[2:])


def test_a_gradient_that_is_sparse(tmp_path):
    def body(n):
        torch.manual_seed(0)
        table = torch.nn.Embedding(4, 3, sparse=True)
        table(torch.tensor([1, 2 + n])).sum().backward()
        torch.optim.SGD(table.parameters(), lr=0.5).step()

    found, differing = causes(tmp_path, body)
    assert found == [("aten.lift_fresh", 3)]
    assert differing > 3
