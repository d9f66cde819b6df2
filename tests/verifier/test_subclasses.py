"""The program's own subclasses of tensors are made while our modes listen as they are made without."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

from torchdet_lint.verifier import deterministic, trace  # noqa: E402
from torchdet_lint.verifier.ops.dispatch import OpMode  # noqa: E402
from torchdet_lint.verifier.recording.recorder import Recorder  # noqa: E402


class Named(torch.Tensor):
    pass


class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


class Deaf(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


class BySuper(torch.Tensor):
    def __new__(cls, value):
        return super().__new__(cls, value)


class BySpelling(torch.Tensor):
    def __new__(cls, value):
        return torch.Tensor.__new__(cls, value)


class ByMaking(torch.Tensor):
    def __new__(cls, value):
        return torch.Tensor._make_subclass(cls, value)


class ByName(torch.Tensor):
    def __new__(cls, value):
        return value.as_subclass(cls)


class Begun(torch.Tensor):
    def __init__(self, value):
        self.note = len(value)


class Wrapping(torch.Tensor):
    @staticmethod
    def __new__(cls, value):
        made = torch.Tensor._make_wrapper_subclass(
            cls, value.size(), dtype=value.dtype, device=value.device, requires_grad=value.requires_grad
        )
        made.value = value
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        bare = [one.value if isinstance(one, cls) else one for one in args]
        out = function(*bare, **(kwargs or {}))
        return cls(out) if isinstance(out, torch.Tensor) else out


KINDS = [Named, Own, Deaf, BySuper, BySpelling, ByMaking, ByName, Begun, Wrapping]


def trained(kind):
    """What a program sees of an object that it makes of an op's result."""
    start = (torch.ones(3) * 2).requires_grad_()
    result = start * 3
    made = kind(result)
    seen = [type(made).__name__, type(made.grad_fn).__name__, made._is_view(), made._version, made.requires_grad]
    again = kind(made.detach() * 2)
    seen += [type(again).__name__, getattr(again, "note", None), float(again.sum())]
    if made.requires_grad:
        (made * result).sum().backward()
    return [*seen, None if start.grad is None else start.grad.sum().item()]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_result_becomes_an_object_of_any_subclass(tmp_path, kind):
    expected = trained(kind)
    with Recorder(tmp_path / "a.tdtrace"):
        assert trained(kind) == expected


def made_of_values():
    storage = torch.ones(2).untyped_storage()
    made = [Named(*given) for given in (([1.0, 2.0],), (2, 3), (), (torch.Size([2]),), (storage,))]
    return [(type(one), one.shape, one._is_view(), one.is_leaf, one.requires_grad_().is_leaf) for one in made]


def test_objects_of_values_sizes_and_storages(tmp_path):
    expected = made_of_values()
    path = tmp_path / "a.tdtrace"
    with Recorder(path):
        assert made_of_values() == expected
    opened = trace.Trace(path)
    assert "aten.lift_fresh" in {site.op for site in opened.sites(opened.main)}


def test_in_threads_and_unpickled(tmp_path):
    made = []
    with Recorder(tmp_path / "a.tdtrace"):
        thread = threading.Thread(target=lambda: made.append(Named(torch.ones(2) * 2)))
        thread.start()
        thread.join()
        made.append(pickle.loads(pickle.dumps(made[0])))
    assert [type(one) for one in made] == [Named, Named]


def test_under_the_modes_of_fixes_and_beside_the_programs_own():
    with deterministic(seed=0, scope="ops"), OpMode(lambda function, args, kwargs: function(*args, **kwargs)):
        assert type(Named(torch.ones(2) * 2)) is Named
    with torch._subclasses.fake_tensor.FakeTensorMode(), pytest.raises(RuntimeError):
        Named(torch.ones(2) * 2)


def test_the_class_is_put_back(tmp_path):
    with Recorder(tmp_path / "a.tdtrace"), OpMode(lambda function, args, kwargs: function(*args, **kwargs)):
        assert "__new__" in vars(torch.Tensor)
    assert "__new__" not in vars(torch.Tensor)
    assert torch.Tensor.__new__ is torch._C.TensorBase.__new__
    assert torch.Tensor([1.0, 2.0]).tolist() == [1.0, 2.0]


def compiled(kind, frames, reset):
    """What compiled code and the code beside it make, with no graph broken."""
    if reset:
        torch._dynamo.reset()
    backend = torch._dynamo.testing.CompileCounter()
    inside = torch.compile(lambda x: (kind(x * 2) + 1).sum(), backend=backend, fullgraph=True)
    beside = torch.compile(lambda x: x * 2, backend=backend, fullgraph=True)
    seen = [float(inside(torch.ones(3))) for _ in range(3)]
    seen += [type(beside(kind(torch.ones(2) * 2))).__name__ for _ in range(3)]
    frames.append(backend.frame_count)
    return seen


@pytest.mark.skipif(not hasattr(torch.compiler, "is_compiling"), reason="this release's compiler makes no subclasses")
@pytest.mark.parametrize("kind", [Named, BySuper, BySpelling], ids=lambda kind: kind.__name__)
def test_compiled_code_makes_them_as_without_a_recorder(tmp_path, kind):
    __import__("torch._dynamo.testing")
    frames = []
    expected = compiled(kind, frames, reset=True)
    with Recorder(tmp_path / "a.tdtrace"):
        assert compiled(kind, frames, reset=True) == expected
        assert compiled(kind, frames, reset=True) == expected
    assert len(set(frames)) == 1


def test_the_compiler_is_imported_while_the_recorder_runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch\n"
        "from torchdet_lint.verifier.recording.recorder import Recorder\n"
        "class Named(torch.Tensor): pass\n"
        "with Recorder(sys.argv[1]):\n"
        "    assert type(Named(torch.ones(2) * 2)) is Named\n"
        "    f = torch.compile(lambda x: Named(x * 2).sum(), backend='eager', fullgraph=True)\n"
        "    assert float(f(torch.ones(3))) == 6.0\n"
        "    assert type(Named(torch.ones(2) * 2)) is Named\n"
    )
    subprocess.run([sys.executable, str(program), str(tmp_path / "a.tdtrace")], check=True)
