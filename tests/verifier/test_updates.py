"""An optimizer's update of all parameters: one record of all that it reads and writes, or a record for each op."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from recordings import recorded, records  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

from torchdet_lint.verifier import trace  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.ops.dispatch import OpMode  # noqa: E402
from torchdet_lint.verifier.recording.recorder import Recorder  # noqa: E402

UPDATES = f"{trace.UPDATE}."
OPTIMIZERS = {
    "Adadelta": {},
    "Adagrad": {},
    "Adam": {"amsgrad": True},
    "Adamax": {},
    "AdamW": {"weight_decay": 0.1},
    "ASGD": {},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": {"momentum": 0.5, "centered": True},
    "Rprop": {},
    "SGD": {"momentum": 0.5, "weight_decay": 0.1, "maximize": True},
}


def updates(path):
    return [(site, record) for site, record in records(path) if site.op.startswith(UPDATES)]


def weights(count=3):
    return [torch.nn.Parameter(torch.arange(1.0, 3 + number)) for number in range(count)]


def trained(optimizer, parameters, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        sum(parameter.square().sum() for parameter in parameters).backward()
        optimizer.step()
    return parameters


def tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_update_is_one_record_of_all_that_it_writes(tmp_path, monkeypatch, name, foreach):
    kind, options = getattr(torch.optim, name), {**OPTIMIZERS[name], "foreach": foreach}
    expected = trained(kind(parameters := weights(), 0.01, **options), parameters)
    changed = []
    homes = {importlib.import_module(f"torch.optim.{home}") for home in ("adam", name.lower())}
    for home in homes:
        for function in {"adam", name.lower()} & vars(home).keys():
            original = getattr(home, function)

            def update(*args, original=original, **kwargs):
                before = {id(tensor): tensor.detach().clone() for tensor in tensors([args, list(kwargs.values())])}
                original(*args, **kwargs)
                after = list(tensors([args, list(kwargs.values())]))
                changed.append(sum(id(one) not in before or not one.equal(before[id(one)]) for one in after))

            monkeypatch.setattr(home, function, update)
    found = weights()
    path = recorded(tmp_path, lambda: trained(kind(found, 0.01, **options), found))
    assert all(one.equal(two) for one, two in zip(expected, found, strict=True))
    rows = updates(path)
    assert len(rows) == len(changed) == 3
    assert all(len(record.digests) >= count > 0 for (_, record), count in zip(rows, changed, strict=True))
    assert {(site.phase, site.function) for site, _ in rows} == {("optimizer", "trained")}


def learnt(rate):
    def body():
        parameters = weights()
        optimizer = torch.optim.Adam(parameters, rate)
        trained(optimizer, parameters, 1)
        return sum(parameter.sum() for parameter in parameters).item()

    return body


def test_what_follows_from_an_update_of_other_numbers_is_no_cause(tmp_path):
    paths = [recorded(tmp_path, learnt(rate), f"{rate}") for rate in (0.1, 0.2)]
    found = [item for item in compare(*paths).divergences if item.kind == "cause"]
    assert [item.site.op for item in found] == ["optim.adam"]


def test_an_update_that_gives_other_values_for_equal_ones_is_the_cause(tmp_path, monkeypatch):
    home = importlib.import_module("torch.optim.adam")
    original, paths = home.adam, []
    for add in (0, 1):

        def update(params, *args, add=add, **kwargs):
            original(params, *args, **kwargs)
            params[0].add_(add)

        monkeypatch.setattr(home, "adam", update)
        paths.append(recorded(tmp_path, learnt(0.1), f"{add}"))
    found = [item for item in compare(*paths).divergences if item.kind == "cause"]
    assert [(item.site.op, item.source) for item in found] == [("optim.update", "op")]


def _shared():
    parameters = weights()
    for parameter in parameters:
        parameter.share_memory_()
    trained(torch.optim.SGD(parameters, 0.1), parameters)


def _never_written():
    parameters = [torch.nn.Parameter(torch.empty(4))]
    parameters[0].data[:2] = 0
    optimizer = torch.optim.SGD(parameters, 0.1)
    parameters[0].grad = torch.ones(4)
    optimizer.step()


def _beside_a_thread():
    thread = threading.Thread(target=lambda: torch.ones(2))
    thread.start()
    thread.join()
    trained(torch.optim.SGD(parameters := weights(), 0.1), parameters)


POOLED = """
import concurrent.futures
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    pool.submit(len, "").result()
"""


def _after_a_pool(file=__file__):
    exec(compile(POOLED, file, "exec"), {})
    trained(torch.optim.SGD(parameters := weights(), 0.1), parameters)


def _in_a_mode():
    with OpMode(lambda function, args, kwargs: function(*args, **kwargs)):
        trained(torch.optim.SGD(parameters := weights(), 0.1), parameters)


def _fused():
    trained(torch.optim.SGD(parameters := weights(), 0.1, fused=True), parameters)


def _differentiable():
    parameters = [torch.ones(2, requires_grad=True).mul(2)]
    optimizer = torch.optim.SGD(parameters, 0.1, differentiable=True)
    parameters[0].grad = torch.ones(2)
    with torch.no_grad():
        optimizer.step()


class Tagged(torch.Tensor):
    """A tensor of the program's own kind."""


def _own_kind():
    parameters = [torch.nn.Parameter(torch.ones(2).as_subclass(Tagged))]
    parameters[0].grad = torch.ones(2)
    torch.optim.SGD(parameters, 0.1).step()


OP_BY_OP = [_shared, _never_written, _beside_a_thread, _after_a_pool, _in_a_mode, _fused, _differentiable, _own_kind]


@pytest.mark.parametrize("body", OP_BY_OP)
def test_the_ops_of_an_update_are_recorded_where_more_may_happen_between_them(tmp_path, body):
    path = recorded(tmp_path, body)
    assert not updates(path)
    assert any(site.op.startswith(("aten.add_", "aten.add.", "aten._fused")) for site, _ in records(path))


def test_what_the_compiler_starts_in_some_runs_alone_changes_no_record(tmp_path):
    compiler = Path(torch.__file__).parent / "_inductor" / "async_compile.py"
    assert updates(recorded(tmp_path, lambda: _after_a_pool(str(compiler))))


def test_the_workers_of_a_loader_change_nothing_between_the_ops_of_an_update(tmp_path):
    def body():
        parameters = weights()
        optimizer = torch.optim.SGD(parameters, 0.1)
        for batch in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 3)), num_workers=1):
            sum((one.sum() * batch[0].sum()) for one in parameters).backward()
            optimizer.step()
            optimizer.zero_grad()

    assert len(updates(recorded(tmp_path, body))) == 4


def test_what_an_update_wrote_before_it_failed_is_recorded(tmp_path, monkeypatch):
    home = importlib.import_module("torch.optim.sgd")

    def update(params, *_, **__):
        params[0].mul_(3)
        raise ValueError("stop")

    monkeypatch.setattr(home, "sgd", update)

    def body():
        parameters = weights()
        parameters[0].grad = torch.ones_like(parameters[0])
        with pytest.raises(ValueError, match="stop"):
            torch.optim.SGD(parameters, 0.1).step()
        assert parameters[0].mul(2)[0] == 6

    ((_, record),) = updates(recorded(tmp_path, body))
    assert len(record.digests) == 1


def test_a_function_mode_of_the_programs_sees_what_it_would_see(tmp_path):
    class Seen(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.names.append(getattr(function, "__name__", ""))
            return function(*args, **(kwargs or {}))

    def body():
        with Seen() as seen:
            trained(torch.optim.SGD(parameters := weights(), 0.1), parameters, 1)
        return seen.names

    names = []
    recorded(tmp_path, lambda: names.extend(body()))
    assert names == body()


def test_an_update_that_is_compiled_stays_compiled(tmp_path):
    def graphs():
        torch._dynamo.reset()
        found = []

        def backend(graph, _inputs):
            found.append([node.target for node in graph.graph.nodes])
            return graph.forward

        optimizer = torch.optim.SGD(parameters := weights(), 0.1)
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        torch.compile(optimizer.step, backend=backend)()
        return found

    plain, under = graphs(), []
    recorded(tmp_path, lambda: under.extend(graphs()))
    assert len(plain) == len(under) > 0
    assert [len(graph) for graph in plain] == [len(graph) for graph in under]


def test_an_address_that_was_numpys_before_says_nothing_of_the_memory_there_now(tmp_path):
    """Which addresses come again differs from run to run."""
    paths = []
    for name in "ab":
        paths.append(tmp_path / f"{name}.tdtrace")
        with Recorder(paths[-1]) as recorder:
            parameters = weights()
            for parameter in parameters if name == "b" else ():
                recorder._run.foreign.add(parameter.data_ptr())
            trained(torch.optim.SGD(parameters, lr=0.1), parameters)
            scale = torch.ones(3).mul_(2)
            recorder._run.foreign.update([scale.data_ptr()] * (name == "b"))
            scale.add_(1).sum()
    assert [len(updates(path)) for path in paths] == [3, 3]
    assert compare(*paths).identical
    flags = [[record.flags for _, record in records(path)] for path in paths]
    assert flags[0] == flags[1]
