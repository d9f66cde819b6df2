"""A transform of one image: one record of what it was given and gave, or a record for each op."""

from __future__ import annotations

import sys

import pytest

torch = pytest.importorskip("torch")

from recordings import recorded, records  # noqa: E402

from torchdet_lint.verifier import trace  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.ops.dispatch import OpMode  # noqa: E402

FUNCTIONAL = """
import torch

def to_tensor(image):
    made = torch.tensor(image.pixels, dtype=torch.float32)
    return made.div(255)

def normalize(tensor, mean, std, inplace=False):
    if not inplace:
        tensor = tensor.clone()
    return tensor.sub_(torch.tensor(mean)).div_(torch.tensor(std))
"""
TRANSFORMS = """
import torch

class RandomCrop:
    @staticmethod
    def get_params(image, size):
        return int(torch.randint(0, image.size[0], size=(1,))), size

    def __call__(self, image):
        return self.get_params(image, 3)
"""

SECOND = """
import torch

class RandomCrop(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size, size

    def {name}(self, flat_inputs):
        room = flat_inputs[0].size[0] - self.size[0]
        return dict(top=int(torch.randint(0, room, size=(1,))), noise=torch.rand(2))

    def forward(self, image):
        return self.{name}([image])
"""

SCRIPTED = """
import math
import torch

def normalize(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * math.pi
"""


class Image:
    def __init__(self, pixels):
        self.pixels, self.size = pixels, (len(pixels), 1)


@pytest.fixture
def library(tmp_path, monkeypatch):
    package = tmp_path / "torchvision" / "transforms"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "functional.py").write_text(FUNCTIONAL)
    (package / "transforms.py").write_text(TRANSFORMS)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("torchvision")]:
        monkeypatch.delitem(sys.modules, name)
    yield lambda name: __import__(f"torchvision.transforms.{name}", fromlist=["x"])
    for name in [name for name in sys.modules if name.startswith("torchvision")]:
        del sys.modules[name]


def ops(path):
    return [site.op for site, _ in records(path)]


def only(path, op):
    return [record for site, record in records(path) if site.op == op]


def test_what_is_made_of_an_image_is_one_record_of_what_came_from_outside(tmp_path, library):
    def body(pixels):
        functional = library("functional")
        made = functional.to_tensor(Image(pixels))
        functional.normalize(made, [0.5], [0.2]).mul(2)

    a = recorded(tmp_path, lambda: body([1, 2]), "a")
    assert ops(a) == ["transforms.to_tensor", "transforms.normalize", "aten.mul.Tensor"]
    flags = [record.flags & trace.OUTSIDE for _, record in records(a)]
    assert flags == [trace.OUTSIDE, 0, 0]
    same, other = (
        recorded(tmp_path, lambda given=given: body(given), name) for name, given in (("b", [1, 2]), ("c", [1, 3]))
    )
    assert compare(a, same).identical
    found = compare(a, other)
    assert [item.site.op for item in found.divergences if item.kind == "cause"] == ["transforms.to_tensor"]


def test_what_a_transform_draws_is_told_as_drawn_with_the_size_of_the_image(tmp_path, library):
    def body(seed, pixels):
        torch.manual_seed(seed)
        library("transforms").RandomCrop()(Image(pixels))

    name = "transforms.RandomCrop.get_params"
    first, second, wider = (
        only(recorded(tmp_path, lambda given=given: body(*given), called), name)[0]
        for called, given in (("a", (5, [0] * 900)), ("b", (6, [0] * 900)), ("c", (5, [0] * 901)))
    )
    assert (first.flags & trace.RANDOM, first.seed, second.seed) == (trace.RANDOM, 5, 6)
    assert first.digests != second.digests
    assert (first.scalars == second.scalars, first.scalars == wider.scalars) == (True, False)


@pytest.mark.parametrize("name", ["make_params", "_get_params"])
def test_what_a_transform_of_the_second_kind_draws_hangs_on_its_settings_too(tmp_path, library, name):
    folder = tmp_path / "torchvision" / "transforms" / "v2"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "_geometry.py").write_text(SECOND.format(name=name))

    def body(pixels, size):
        torch.manual_seed(5)
        library("v2._geometry").RandomCrop(size)(Image(pixels))

    called = f"transforms.RandomCrop.{name}"
    first, again, wider, smaller = (
        only(recorded(tmp_path, lambda given=given: body(*given), str(number)), called)[0]
        for number, given in enumerate((([0] * 90, 30), ([0] * 90, 30), ([0] * 91, 30), ([0] * 90, 20)))
    )
    assert (first.flags & trace.RANDOM, first.seed, len(first.digests)) == (trace.RANDOM, 5, 2)
    assert first == again
    assert first.scalars not in (wider.scalars, smaller.scalars)


def test_what_is_written_in_place_is_known_to_what_reads_it(tmp_path, library):
    def body():
        given = torch.ones(3).mul(1)
        library("functional").normalize(given, [0.5], [0.5], inplace=True)
        given.add(1)

    path = recorded(tmp_path, body)
    assert ops(path)[-2:] == ["transforms.normalize", "aten.add.Tensor"]
    assert not any(record.flags for _, record in records(path)[2:])


def test_an_image_with_a_gradient_and_one_that_another_mode_sees_have_a_record_for_each_op(tmp_path, library):
    def body():
        functional = library("functional")
        functional.normalize(torch.ones(3, requires_grad=True), [0.5], [0.5])
        with OpMode(lambda function, args, kwargs: function(*args, **kwargs)):
            functional.normalize(torch.ones(3), [0.5], [0.5])

    path = recorded(tmp_path, body)
    assert "transforms.normalize" not in ops(path)
    assert ops(path).count("aten.sub_.Tensor") == 2


def test_the_library_is_as_before_when_the_recording_ends(tmp_path, library):
    before = vars(library("transforms").RandomCrop)["get_params"], library("functional").to_tensor
    recorded(tmp_path, lambda: library("functional").to_tensor(Image([1])))
    assert (vars(library("transforms").RandomCrop)["get_params"], library("functional").to_tensor) == before


def test_torchscript_reads_a_transform_while_it_is_recorded(tmp_path, library):
    scripted = []

    def body():
        scripted.append(torch.jit.script(library("functional").normalize))

    (tmp_path / "torchvision" / "transforms" / "functional.py").write_text(SCRIPTED)
    recorded(tmp_path, body)
    assert scripted[0](torch.ones(1)).item() == pytest.approx(3.14159, abs=1e-4)
