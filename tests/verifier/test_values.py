"""What a batch or a state holds: all of its data, in order, however the objects that hold it refer to each other."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from recordings import recorded, records  # noqa: E402

from torchdet_lint.verifier import trace  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.recording.recorder import Recorder  # noqa: E402
from torchdet_lint.verifier.recording.values import leaves  # noqa: E402
from torchdet_lint.verifier.steps.checkpoints import Checkpoints  # noqa: E402
from torchdet_lint.verifier.steps.compare import compare_steps  # noqa: E402


class Graph:
    """As the data of PyTorch Geometric: called, it lists its attributes."""

    def __init__(self, *values):
        self.kind, self.values, self.whole = Graph, values, self

    def __call__(self, *names):
        return iter(names)


@dataclass(slots=True)
class Slotted:
    x: object
    others: list = field(default_factory=list)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"b": 1, "a": [2.5, ("c", b"d")]}, [1, 2.5, "c", b"d"]),
        (Graph(1, Graph(2), 3), [1, 2, 3]),
        (Slotted(1, [Slotted(2), 3]), [1, 2, 3]),
        (np.array(["a", [1, None]], dtype=object), ["a", 1]),
        ([len, Graph, functools.partial(len, [1]), torch.nn.Linear(1, 1), np, lambda: 0, None], []),
        ([1 + 2j, True], [1 + 2j, True]),
    ],
)
def test_data_is_found_in_order(value, found):
    assert list(leaves(value)) == found


def test_objects_that_refer_to_each_other_are_met_once():
    chain = last = Slotted(0)
    for number in range(1, 5_000):
        last.others.append(following := Slotted(number, [last]))
        last = following
    assert list(leaves(chain)) == list(range(5_000))


class Circular(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return Graph(torch.full((2,), float(index)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_batches_whose_objects_refer_to_each_other_are_recorded(tmp_path):
    path = tmp_path / "a.tdtrace"
    with Recorder(path):
        loader = torch.utils.data.DataLoader(Circular(), batch_size=2, num_workers=1, collate_fn=lambda items: items)
        taken = [batch[1].values[0][0].item() for batch in loader]
    assert taken == [1.0, 3.0]
    opened = trace.Trace(path)
    sites = opened.sites(opened.main)
    batches = [one for one in opened.records(opened.main) if sites[one.site].op == trace.BATCH]
    assert [len(one.digests) for one in batches] == [2, 2]
    assert batches[0].digests != batches[1].digests


def test_a_batch_of_another_graph_is_not_called_the_same_batch(tmp_path):
    for name, value in (("a", 1.0), ("b", 2.0)):
        model = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.ones_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with Checkpoints(tmp_path / f"{name}.tdsteps", model=model, optimizer=optimizer) as checkpoints:
            batch = Graph(torch.full((2,), value))
            loss = model(batch.values[0]).sum()
            loss.backward()
            checkpoints.step(loss, batch)
    told = compare_steps(tmp_path / "a.tdsteps", tmp_path / "b.tdsteps")
    assert told.differences[0].group == "batch"
    assert "read different data" in told.meaning


@pytest.mark.parametrize(
    "write",
    [
        lambda x, at: x[0][at].fill_(1.0),
        lambda x, at: x[0].view(2, 3)[:, at].fill_(1.0),
        lambda x, at: x[0].view(2, 3)[:, :2].t()[at].copy_(torch.ones(2)),
    ],
)
def test_the_same_value_at_another_place_of_a_tensor_is_another_input_of_what_reads_it(tmp_path, write):
    def body(at):
        x = torch.zeros(1, 6)
        write(x, at)
        torch.cat((x, x))

    traces = [recorded(tmp_path, functools.partial(body, at), str(at)) for at in (0, 1)]
    one, two = ([record.inputs for site, record in records(path) if site.op == "aten.cat"] for path in traces)
    assert one != two
    assert [item.source for item in compare(*traces).causes] == ["number"]
