"""What is inferred of an expression: the kind of the argument of `probe(…)` in a small program."""

from __future__ import annotations

import functools

import pytest

from torchdet_lint.catalogue import loading
from torchdet_lint.inference.abstract_values import AbstractValue, joined
from torchdet_lint.inference.infer import Inference
from torchdet_lint.module.module import Module
from torchdet_lint.prefilter.library import Library
from torchdet_lint.source.decoding import decode

LAYER = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.weight = nn.Parameter(torch.zeros(3))
        self.register_buffer("table", torch.arange(10))
        self.blocks = nn.ModuleList([nn.Linear(2, 2)])

    def forward(self, x, mask, pixel_values, labels=None, size: int = 3):
        probe({})
"""
FUNCTION = """
import numpy as np
import pandas as pd
import torch
from torch import Tensor

def function(x: Tensor, index: torch.LongTensor, array: np.ndarray, unknown, n=3):
{}
"""


@functools.cache
def library() -> Library:
    return Library(loading.load())


def probed(text: str) -> AbstractValue:
    module = Module(decode("example.py", text.encode()), library())
    module.load_all()
    call = next(call for call in module.calls if module.code(call.node.func) == "probe")
    return module.shared(Inference).infer(call.node.args[0].value)


def in_layer(expression: str) -> AbstractValue:
    return probed(LAYER.format(expression))


def in_function(*lines: str) -> AbstractValue:
    return probed(FUNCTION.format("\n".join(f"    {line}" for line in lines)))


@pytest.mark.parametrize(
    ("expression", "what", "dtype", "gradient"),
    [
        ("x", "tensor", "unknown", "yes"),
        ("mask", "tensor", "unknown", "yes"),
        ("pixel_values", "tensor", "unknown", "no"),
        ("size", "other", "unknown", "no"),
        ("self.conv(x)", "tensor", "floating", "yes"),
        ("self.weight * 2", "tensor", "floating", "yes"),
        ("self.table", "tensor", "integer", "no"),
        ("self.blocks[0](x)", "tensor", "floating", "yes"),
        ("F.softmax(x, -1)", "tensor", "floating", "yes"),
        ("x.argmax(-1)", "tensor", "integer", "no"),
        ("x > 0", "tensor", "bool", "no"),
        ("x.detach() + 1", "tensor", "unknown", "no"),
        ("x.shape[0]", "other", "unknown", "no"),
        ("x.size(0)", "other", "unknown", "no"),
        ("x.numpy()", "other", "unknown", "no"),
        ("[y for y in x][0]", "tensor", "unknown", "yes"),
        ("torch.topk(x, 2).indices", "tensor", "integer", "no"),
        ("x.long().float()", "tensor", "floating", "no"),
        ("torch.where(x > 0)[0]", "tensor", "integer", "no"),
        ("torch.arange(3).to(size).view(labels)", "tensor", "unknown", "no"),
        ("x.detach().expand(labels, size)", "tensor", "unknown", "no"),
        ("torch.arange(3) / self.config.size", "tensor", "floating", "no"),
    ],
)
def test_in_a_layer(expression: str, what: str, dtype: str, gradient: str) -> None:
    inferred = in_layer(expression)
    assert (inferred.what, inferred.dtype, inferred.gradient) == (what, dtype, gradient)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("probe(array.cumsum())", "other"),
        ("probe(np.zeros(3))", "other"),
        ("probe(pd.read_csv('a').median())", "other"),
        ("probe([1, 2])", "other"),
        ("probe(n)", "other"),
        ("probe(unknown)", "unknown"),
        ("probe(unknown.unsqueeze(0))", "tensor"),
        ("probe(x.view(2, 3).T @ x)", "tensor"),
        ("probe(torch.is_tensor(x))", "other"),
    ],
)
def test_what_is_a_tensor(line: str, what: str) -> None:
    assert in_function(line).what == what


@pytest.mark.parametrize(
    ("expression", "device"),
    [
        ("torch.zeros(3)", "cpu"),
        ("torch.zeros(3, device=x.device)", "unknown"),
        ("torch.zeros(3, device='cuda')", "cuda"),
        ("torch.zeros(3, device=torch.device('cpu'))", "cpu"),
        ("torch.zeros(3).to(unknown)", "unknown"),
        ("torch.zeros(3).to(torch.float64)", "cpu"),
        ("x.cpu().float()", "cpu"),
        ("torch.from_numpy(array)", "cpu"),
        ("torch.zeros_like(x)", "unknown"),
    ],
)
def test_the_device(expression: str, device: str) -> None:
    assert in_function(f"probe({expression})").device == device


@pytest.mark.parametrize(
    ("expression", "dims"),
    [
        ("x.flatten()", 1),
        ("x.view(-1)", 1),
        ("x.view(2, 3, -1)", 3),
        ("x.reshape((2, 3))", 2),
        ("torch.zeros(2, 3).unsqueeze(0)", 3),
        ("torch.zeros(2, 3)[0]", 1),
        ("torch.zeros(2, 3)[:, None]", 3),
        ("torch.randperm(4)", 1),
        ("torch.nn.functional.interpolate(x, 3, mode='bilinear')", 4),
        ("torch.tensor([[1.0, 2.0]])", 2),
        ("x", None),
    ],
)
def test_the_number_of_dimensions(expression: str, dims: int | None) -> None:
    assert in_function(f"probe({expression})").dims == dims


@pytest.mark.parametrize(
    ("expression", "single"),
    [
        ("index.unsqueeze(1)", {1}),
        ("index[:, None]", {1}),
        ("index[..., None]", {-1}),
        ("index.view(-1, 1)", {-1}),
        ("index.unsqueeze(-1).unsqueeze(-1)", {-1, -2}),
        ("index[:, None].expand(-1, -1, 4)", {1}),
        ("index.expand(-1, 1, 4)", {1}),
        ("x.argmax(dim=1, keepdim=True)", {1}),
        ("index[..., None, None, None].unsqueeze(-1).expand(3)", set()),
        ("index", set()),
    ],
)
def test_the_dimensions_of_size_1(expression: str, single: set[int]) -> None:
    assert set(in_function(f"probe({expression})").single) == single


@pytest.mark.parametrize(
    ("expression", "distinct"),
    [
        ("torch.randperm(4)", True),
        ("torch.argsort(x)[:3]", True),
        ("x.sort()[1]", True),
        ("torch.arange(4).to(x.device).unsqueeze(0)", True),
        ("torch.arange(4)[index]", False),
        ("torch.argsort(x) % 2", False),
        ("index", False),
    ],
)
def test_what_names_no_place_twice(expression: str, distinct: bool) -> None:
    assert in_function(f"probe({expression})").distinct is distinct


def test_the_last_sure_assignment_counts() -> None:
    assert in_function("if n:", "    x = x.long()", "    probe(x)").dtype == "integer"
    assert in_function("y = x.float()", "if n:", "    y = x.long()", "probe(y)").dtype == "unknown"
    assert in_function("y = x.float()", "y = x.long()", "probe(y)").dtype == "integer"


def test_nothing_is_differentiated_without_gradients() -> None:
    assert in_function("with torch.no_grad():", "    probe(torch.nn.Parameter(x) * 2)").gradient == "yes"
    assert in_function("with torch.no_grad():", "    probe(torch.nn.Parameter(x).exp())").gradient == "no"
    assert in_function("with torch.enable_grad():", "    probe(torch.nn.Parameter(x).exp())").gradient == "yes"


def test_functions_of_the_file_are_followed() -> None:
    text = "import torch\ndef ids(x):\n    return torch.argmax(x, -1)\ndef loop(x):\n    return loop(x)\n"
    assert probed(text + "def use(x):\n    probe(ids(x))\n").dtype == "integer"
    assert probed(text + "def use(x):\n    probe(loop(x))\n").what == "unknown"


def test_joining_forgets_what_differs_and_overlooks_none() -> None:
    left = AbstractValue("tensor", "floating", "cpu", "yes", 2)
    right = AbstractValue("tensor", "integer", "cpu", "no", 2)
    assert joined([left, right]) == AbstractValue("tensor", "unknown", "cpu", "yes", 2)
    assert joined([in_function("probe(None)"), left]) == left
    assert joined([]) == AbstractValue()


@pytest.mark.parametrize(
    ("expression", "single"),
    [
        ("x[..., :1, :]", {-2}),
        ("x[:, -1:]", {1}),
        ("x[0:1]", {0}),
        ("x[:n]", set()),
        ("index[:, None][..., None]", {1, -1}),
        ("index.unsqueeze(1)[0]", {0}),
        ("index.unsqueeze(-1)[..., 0, :]", {-1}),
        ("torch.zeros_like(x[..., :1])", {-1}),
        ("index.unsqueeze(-1).unsqueeze(-1).expand((-1,) * (n + 1) + (8,))", {-2}),
        ("index.unsqueeze(-1).expand((n,) * 2 + (8,))", set()),
        ("unknown.argmax(dim=-1, keepdim=True)", {-1}),
        ("torch.clamp(index.unsqueeze(-1), min=0)", {-1}),
    ],
)
def test_the_dimensions_of_size_1_through_indices(expression: str, single: set[int]) -> None:
    assert set(in_function(f"probe({expression})").single) == single


def test_a_choice_whose_branches_all_assign_hides_what_stood_before() -> None:
    both = ("y = x.float()", "if n:", "    y = x.long()", "elif x:", "    y = x.int()", "else:", "    y = x.argmax()")
    assert in_function(*both, "probe(y)").dtype == "integer"
    assert in_function(*both[:-2], "probe(y)").dtype == "unknown"


def test_elements_of_a_range_are_distinct() -> None:
    assert in_function("probe(torch.tensor([i for i in range(n) if i != 2]))").distinct
    assert not in_function("probe(torch.tensor([i // 2 for i in range(n)]))").distinct
    assert not in_function("probe(torch.tensor([i for i in array]))").distinct


@pytest.mark.parametrize(
    ("lines", "gradient"),
    [
        (("if not self.training:", "    probe(x.exp())"), "no"),
        (("if self.training is False:", "    probe(x.exp())"), "no"),
        (("if self.training is True:", "    pass", "else:", "    probe(x.exp())"), "no"),
        (("if self.training == True:", "    probe(x.exp())"), "yes"),
        (("if self.training is not True:", "    pass", "else:", "    probe(x.exp())"), "yes"),
        (("if n is True:", "    pass", "else:", "    probe(x.exp())"), "yes"),
        (("if self.training:", "    probe(x.exp())"), "yes"),
        (("if self.training:", "    pass", "else:", "    probe(x.exp())"), "no"),
        (("if self.training and n:", "    pass", "else:", "    probe(x.exp())"), "yes"),
        (("if self.training or n:", "    pass", "else:", "    probe(x.exp())"), "no"),
        (("if n and not self.training:", "    probe(x.exp())"), "no"),
        (("if n or not self.training:", "    probe(x.exp())"), "yes"),
        (("if self.training:", "    return x", "probe(x.exp())"), "no"),
        (("if self.training:", "    x = 2 * x", "probe(x.exp())"), "yes"),
        (("y = 0 if self.training else probe(x.exp())",), "no"),
    ],
)
def test_nothing_is_differentiated_in_evaluation(lines: tuple[str, ...], gradient: str) -> None:
    body = "\n".join(f"        {line}" for line in lines)
    start = LAYER.replace("        probe({})\n", "").replace("size: int = 3", "n=None")
    assert probed(f"{start}{body}\n").gradient == gradient


LOOPS = "import torch\nfrom torch.utils.data import DataLoader\nfrom tqdm import tqdm\n"


@pytest.mark.parametrize(
    ("body", "what", "gradient"),
    [
        ("for x, y in train_loader: probe(x)", "tensor", "no"),
        ("for step, (x, y) in enumerate(train_loader): probe(y)", "tensor", "no"),
        ("for step, (x, y) in enumerate(train_loader): probe(step)", "other", "no"),
        ("for batch in DataLoader(data, 2): probe(batch['image'])", "tensor", "no"),
        ("for batch in DataLoader(data, 2): probe(batch)", "unknown", "no"),
        ("for x, y in tqdm(DataLoader(data, 2)): probe(x)", "tensor", "no"),
        ("for x, y in DataLoader(data, collate_fn=pack): probe(x)", "unknown", "no"),
        ("probe(next(iter(DataLoader(data)))[0])", "tensor", "no"),
        ("for x, y in data: probe(x)", "unknown", "unknown"),
        ("for i in range(3): probe(i)", "other", "no"),
        ("for p in data.parameters(): probe(p)", "tensor", "yes"),
        ("for p in data.parameters(): probe(p.grad)", "tensor", "no"),
        ("for name, p in data.named_parameters(): probe(p)", "tensor", "yes"),
    ],
)
def test_loops(body: str, what: str, gradient: str) -> None:
    inferred = probed(f"{LOOPS}def function(data, train_loader):\n    {body}\n")
    assert (inferred.what, inferred.gradient) == (what, gradient)


@pytest.mark.parametrize(
    ("lines", "what", "dtype"),
    [
        (("a, b = x, x.argmax()", "probe(b)"), "tensor", "integer"),
        (("(a, b), c = (x, x.argmax()), 2", "probe(b)"), "tensor", "integer"),
        (("(a, b), c = (x, x.argmax()), 2", "probe(c)"), "other", "integer"),
        (("values, places = x.max(1)", "probe(places)"), "tensor", "integer"),
        (("a, b = x.float().chunk(2)", "probe(b)"), "tensor", "floating"),
        (("rows, columns = x.shape", "probe(columns)"), "other", "unknown"),
        (("rows, columns = x.size()", "probe(rows)"), "other", "unknown"),
        (("a, b = unknown", "probe(a)"), "unknown", "unknown"),
    ],
)
def test_tuples(lines: tuple[str, ...], what: str, dtype: str) -> None:
    inferred = in_function(*lines)
    assert (inferred.what, inferred.dtype) == (what, dtype)


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (("d = {'a': x, 'b': x + 1}", "probe(d['b'])"), "tensor"),
        (("d = dict(a=x, b=x + 1)", "probe(d['a'])"), "tensor"),
        (("d = {k: x for k in unknown}", "probe(d['a'])"), "tensor"),
        (("d = {}", "d['a'] = x + 1", "probe(d['a'])"), "tensor"),
        (("d = []", "d.append(x)", "probe(d[0])"), "tensor"),
        (("d = []", "d.append(x)", "d.append(n)", "probe(d[0])"), "unknown"),
        (("d = {'a': x}", "for key, value in d.items():", "    probe(value)"), "tensor"),
        (("d = {'a': x}", "for key, value in d.items():", "    probe(key)"), "unknown"),
        (("d = {'a': x}", "for value in d.values():", "    probe(value)"), "tensor"),
        (("d = {'a': x}", "probe(d.get('a'))"), "tensor"),
        (("d = {'a': x}", "probe(d)"), "other"),
        (("d = {'a': n}", "probe(d['a'])"), "other"),
    ],
)
def test_dictionaries_and_lists_of_tensors(lines: tuple[str, ...], what: str) -> None:
    assert in_function(*lines).what == what


@pytest.mark.parametrize(
    ("annotation", "what", "dtype"),
    [
        ("torch.Tensor", "tensor", "unknown"),
        ("'torch.Tensor'", "tensor", "unknown"),
        ("Optional[torch.Tensor]", "tensor", "unknown"),
        ("torch.Tensor | None", "tensor", "unknown"),
        ("torch.BoolTensor", "tensor", "bool"),
        ("List[torch.Tensor]", "other", "unknown"),
        ("float", "other", "unknown"),
        ("np.ndarray", "other", "unknown"),
        ("pd.DataFrame", "other", "unknown"),
        ("Thing", "unknown", "unknown"),
    ],
)
def test_annotations(annotation: str, what: str, dtype: str) -> None:
    head = "import numpy as np\nimport pandas as pd\nimport torch\nfrom typing import List, Optional\n"
    inferred = probed(f"{head}def function(value: {annotation}):\n    probe(value)\n")
    assert (inferred.what, inferred.dtype) == (what, dtype)


@pytest.mark.parametrize(
    ("annotation", "use", "what"),
    [
        ("List[torch.Tensor]", "value[0]", "tensor"),
        ("Dict[str, torch.Tensor]", "value['a']", "tensor"),
        ("Tuple[torch.Tensor, int]", "value[0]", "tensor"),
        ("Tuple[torch.Tensor, int]", "value[1]", "other"),
    ],
)
def test_what_an_annotated_container_holds(annotation: str, use: str, what: str) -> None:
    head = "import torch\nfrom typing import Dict, List, Tuple\n"
    assert probed(f"{head}def function(value: {annotation}):\n    probe({use})\n").what == what


@pytest.mark.parametrize(
    ("made", "use", "what"),
    [
        ("return torch.arange(a)", "made(3)", "tensor"),
        ("return torch.arange(a), 2", "made(3)[0]", "tensor"),
        ("return torch.arange(a), 2", "made(3)[1]", "other"),
        ("return {'a': torch.arange(a)}", "made(3)['a']", "tensor"),
        ("return np.arange(a)", "made(3)", "other"),
        ("return [torch.arange(a)]", "made(3)", "other"),
        ("return a.thing", "made(3)", "unknown"),
    ],
)
def test_what_a_function_returns(made: str, use: str, what: str) -> None:
    assert (
        probed(f"import numpy as np\nimport torch\ndef made(a):\n    {made}\ndef use():\n    probe({use})\n").what
        == what
    )
    method = f"class Thing:\n    def made(self, a):\n        {made}\n    def use(self):\n        probe(self.{use})\n"
    assert probed(f"import numpy as np\nimport torch\n{method}").what == what


@pytest.mark.parametrize(
    ("setting", "what", "gradient"),
    [
        ("self.t = torch.arange(3)", "tensor", "no"),
        ("self.t = nn.Parameter(torch.zeros(3))", "tensor", "yes"),
        ("self.t = nn.Buffer(torch.zeros(3))", "tensor", "no"),
        ("self.register_buffer('t', torch.zeros(3))", "tensor", "no"),
        ("self.register_parameter('t', nn.Parameter(torch.zeros(3)))", "tensor", "yes"),
        ("self.t = size", "other", "no"),
        ("self.t = np.zeros(3)", "other", "no"),
        ("self.t = unknown", "unknown", "unknown"),
    ],
)
def test_attributes_set_in_the_constructor(setting: str, what: str, gradient: str) -> None:
    head = "import numpy as np\nimport torch\nfrom torch import nn\nclass Base(nn.Module):\n"
    text = f"{head}    def __init__(self, unknown, size: int):\n        {setting}\n"
    for use in (
        "    def use(self):\n        probe(self.t)\n",
        "class Net(Base):\n    def use(self):\n        probe(self.t)\n",
    ):
        inferred = probed(text + use)
        assert (inferred.what, inferred.gradient) == (what, gradient)


def test_the_elements_of_a_parameter_list() -> None:
    head = "from torch import nn\nclass Net(nn.Module):\n    def __init__(self):\n"
    init = "        self.t = nn.ParameterList(made())\n"
    inferred = probed(f"{head}{init}    def forward(self, x):\n        for p in self.t:\n            probe(p)\n")
    assert (inferred.what, inferred.gradient) == ("tensor", "yes")


@pytest.mark.parametrize(
    ("parameter", "what"),
    [("x", "tensor"), ("*, x", "tensor"), ("x=True", "other"), ("x: int", "other"), ("x=None", "unknown")],
)
def test_the_arguments_of_forward(parameter: str, what: str) -> None:
    layer = f"from torch import nn\nclass Net(nn.Module):\n    def forward(self, {parameter}):\n        probe(x)\n"
    assert probed(layer).what == what
    assert probed(layer.replace("forward", "prepare").replace("nn.Module", "object")).what in ("unknown", "other")


@pytest.mark.parametrize(
    "expression",
    [
        "np.zeros(3) * 2",
        "(array + 1)[0]",
        "np.load('a')['x'].reshape(2)",
        "array.T.cumsum(0)",
        "pd.read_csv('a')['x'].cumsum()",
        "pd.read_csv('a').x.median()",
        "[1, 2] + [3]",
        "[i for i in array]",
        "sorted(unknown)",
        "len(unknown) * 2",
        "float(unknown)",
        "x.item()",
        "x.tolist()",
        "'a'.join(unknown)",
    ],
)
def test_what_is_evidently_no_tensor(expression: str) -> None:
    assert in_function(f"probe({expression})").what == "other"


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("(x > 0).cumsum(0)", "integer"),
        ("torch.cumsum(x != 1, dim=1)", "integer"),
        ("x.ne(0).long().cumsum(-1)", "integer"),
        ("index.cumsum(0)", "integer"),
        ("x.float().cumsum(0)", "floating"),
        ("x.cumsum(0)", "unknown"),
        ("(x > 0) & (x < 3)", "bool"),
        ("~(x > 0)", "bool"),
        ("torch.isnan(x)", "bool"),
        ("x.float()[x > 0]", "floating"),
    ],
)
def test_integers_and_masks(expression: str, dtype: str) -> None:
    assert in_function(f"probe({expression})").dtype == dtype


@pytest.mark.parametrize(
    ("lines", "device"),
    [
        (("y = x.cpu()", "probe(y * 2)"), "cpu"),
        (("y = x.to('cpu')", "probe(y.float())"), "cpu"),
        (("y = x.to(device='cpu', dtype=torch.float)", "probe(y)"), "cpu"),
        (("y = x.cpu()", "probe(y[x > 0])"), "cpu"),
        (("y = x.cpu().cuda()", "probe(y)"), "cuda"),
        (("probe(x * 2)",), "unknown"),
    ],
)
def test_what_is_moved_to_the_cpu(lines: tuple[str, ...], device: str) -> None:
    assert in_function(*lines).device == device


@pytest.mark.parametrize(
    ("decorator", "manager", "gradient"),
    [
        ("", "if True", "yes"),
        ("@torch.no_grad()", "if True", "no"),
        ("@torch.inference_mode()", "if True", "no"),
        ("", "with torch.no_grad()", "no"),
        ("", "with torch.inference_mode()", "no"),
        ("", "with torch.set_grad_enabled(False)", "no"),
        ("", "with torch.set_grad_enabled(True)", "yes"),
    ],
)
def test_what_stops_the_gradient(decorator: str, manager: str, gradient: str) -> None:
    text = f"import torch\n{decorator}\ndef function(x: torch.nn.Parameter):\n    {manager}:\n        probe(x.exp())\n"
    assert probed(text).gradient == gradient


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (("x += 1", "probe(x)"), "tensor"),
        (("total = 0", "total += n", "probe(total)"), "other"),
        (("total = 0", "total += x", "probe(total)"), "unknown"),
        (("array += 1", "probe(array)"), "other"),
    ],
)
def test_what_is_added_to(lines: tuple[str, ...], what: str) -> None:
    assert in_function(*lines).what == what


@pytest.mark.parametrize(
    ("test", "single"),
    [
        ("index.dim() == x.dim() - 1", {-1}),
        ("index.ndim != x.ndim", {-1}),
        ("index.dim() == 2", set()),
        ("x.dim() == unknown.dim()", set()),
        ("n", set()),
    ],
)
def test_the_dimension_that_is_lacking(test: str, single: set[int]) -> None:
    lines = (f"if {test}:", "    index = index.unsqueeze(-1)")
    assert set(in_function(*lines, "probe(index)").single) == single
    assert not in_function(*lines, "else:", "    index = index.long()", "probe(index)").single
    assert not in_function(*lines[:1], "    index = x.squeeze(-1)", "probe(index)").single


CLASSES = """
import functools
import numpy as np
import torch
from dataclasses import dataclass, field
from torch import LongTensor, Tensor, nn
from typing import NamedTuple, Optional, TypedDict

class Pair(NamedTuple):
    features: Tensor
    index: LongTensor

class Entry(TypedDict):
    index: LongTensor

class Mine(torch.Tensor):
    pass

class Chain(NamedTuple):
    rest: "Chain"

@dataclass
class Batch:
    features: Tensor
    index: LongTensor
    array: np.ndarray
    weights: Optional[Tensor] = None
    parts: list = field(default_factory=list)
    size: int = 3

class Store:
    declared: Tensor

    def __init__(self, source):
        self.given: Tensor = source.read()
        self.bare: LongTensor

    @property
    def annotated(self) -> Tensor:
        return self._annotated

    @property
    def places(self):
        return torch.arange(3)

    @functools.cached_property
    def once(self):
        return torch.zeros(3) > 0

    def method(self):
        return torch.zeros(3)

    def _use(self):
        probe({})
"""


@pytest.mark.parametrize(
    ("expression", "what", "dtype"),
    [
        ("self.declared", "tensor", "unknown"),
        ("self.given", "tensor", "unknown"),
        ("self.bare", "tensor", "integer"),
        ("self.annotated", "tensor", "unknown"),
        ("self.places", "tensor", "integer"),
        ("self.once", "tensor", "bool"),
        ("self.method", "unknown", "unknown"),
        ("self.method()", "tensor", "floating"),
        ("Store(1).places", "tensor", "integer"),
        ("getattr(self, 'places')", "tensor", "integer"),
        ("Batch(1, 2, 3).features", "tensor", "unknown"),
        ("Batch(1, 2, 3).index", "tensor", "integer"),
        ("Batch(1, 2, 3).array", "other", "unknown"),
        ("Batch(1, 2, 3).weights", "tensor", "unknown"),
        ("Batch(1, 2, 3).size", "other", "integer"),
        ("Batch(1, 2, 3).parts", "other", "unknown"),
        ("Batch(1, 2, 3).parts[0]", "unknown", "unknown"),
        ("Batch(1, 2, 3)", "other", "unknown"),
        ("Pair(1, 2)[1]", "tensor", "integer"),
        ("Pair(1, 2).index", "tensor", "integer"),
        ("Chain(1).rest", "unknown", "unknown"),
        ("Mine(1)", "tensor", "unknown"),
    ],
)
def test_what_a_class_declares(expression: str, what: str, dtype: str) -> None:
    inferred = probed(CLASSES.format(expression))
    assert (inferred.what, inferred.dtype) == (what, dtype)


@pytest.mark.parametrize(
    ("parameter", "lines", "dtype"),
    [
        ("batch: Batch", ("probe(batch.index)",), "integer"),
        ("batch: 'torch.LongTensor'", ("probe(batch)",), "integer"),
        ("batch: list[Batch]", ("for one in batch:", "    probe(one.index)"), "integer"),
        ("batch: Pair", ("features, index = batch", "probe(index)"), "integer"),
        ("batch: Entry", ("probe(batch['index'])",), "integer"),
        ("batch: Mine", ("probe(batch)",), "unknown"),
    ],
)
def test_parameters_of_classes_of_the_file(parameter: str, lines: tuple[str, ...], dtype: str) -> None:
    body = "\n".join(f"    {line}" for line in lines)
    inferred = probed(f"{CLASSES.format(0).replace('probe(0)', 'pass')}\ndef use({parameter}):\n{body}\n")
    assert (inferred.what, inferred.dtype) == ("tensor", dtype)


@pytest.mark.parametrize(
    ("lines", "what", "dtype"),
    [
        (("made = lambda a: torch.arange(a)", "probe(made(3))"), "tensor", "integer"),
        (("made = lambda a: np.arange(a)", "probe(made(3))"), "other", "unknown"),
        (("made = lambda a: a", "probe(made(3))"), "unknown", "unknown"),
        (("made = lambda a: x", "made = unknown", "probe(made(3))"), "unknown", "unknown"),
        (("def made(a):", "    return torch.arange(a)", "probe(made(3))"), "tensor", "integer"),
        (("def made(a) -> Tensor:", "    return a", "probe(made(3))"), "tensor", "unknown"),
        (("probe(getattr(torch, 'arange')(3))",), "tensor", "integer"),
        (("probe(getattr(x, 'shape'))",), "other", "unknown"),
        (("probe(getattr(x, unknown))",), "unknown", "unknown"),
        (("d = {'a': x, 'b': 3, 'c': index}", "probe(d['c'])"), "tensor", "integer"),
        (("d = {'a': x, 'b': 3}", "d.update(unknown)", "probe(d['b'])"), "unknown", "unknown"),
    ],
)
def test_lambdas_inner_functions_and_literal_names(lines: tuple[str, ...], what: str, dtype: str) -> None:
    inferred = in_function(*lines)
    assert (inferred.what, inferred.dtype) == (what, dtype)


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (("assert isinstance(unknown, Tensor)", "probe(unknown)"), "tensor"),
        (("assert torch.is_tensor(unknown)", "probe(unknown)"), "tensor"),
        (("probe(unknown)", "assert isinstance(unknown, Tensor)"), "unknown"),
        (("assert isinstance(unknown, Tensor)", "unknown = thing(n)", "probe(unknown)"), "unknown"),
        (("if isinstance(unknown, Tensor) and n:", "    probe(unknown)"), "tensor"),
        (("if isinstance(unknown, Tensor) or n:", "    probe(unknown)"), "unknown"),
        (("if isinstance(unknown, Tensor):", "    pass", "probe(unknown)"), "unknown"),
        (("if isinstance(unknown, Tensor):", "    pass", "else:", "    probe(unknown)"), "unknown"),
        (("if isinstance(unknown, np.ndarray):", "    probe(unknown)"), "other"),
        (("if isinstance(unknown, (list, tuple)):", "    probe(unknown)"), "other"),
        (("if isinstance(unknown, (list, tuple)):", "    probe(unknown[0])"), "unknown"),
        (("if isinstance(unknown, (list, Tensor)):", "    probe(unknown)"), "unknown"),
        (("if not isinstance(unknown, Tensor):", "    raise TypeError", "probe(unknown)"), "tensor"),
        (("if not isinstance(unknown, Tensor):", "    print(n)", "probe(unknown)"), "unknown"),
        (("if not torch.is_tensor(unknown):", "    unknown = torch.as_tensor(unknown)", "probe(unknown)"), "tensor"),
        (("if not torch.is_tensor(unknown):", "    other = torch.as_tensor(unknown)", "probe(unknown)"), "unknown"),
        (("if not torch.is_tensor(unknown) and n:", "    return", "probe(unknown)"), "unknown"),
        (("y = unknown if torch.is_tensor(unknown) else torch.tensor(unknown)", "probe(y)"), "tensor"),
        (("if isinstance(unknown, Tensor) and probe(unknown):", "    pass"), "tensor"),
    ],
)
def test_what_tests_of_types_make_sure_of(lines: tuple[str, ...], what: str) -> None:
    assert in_function(*lines).what == what


@pytest.mark.parametrize(
    ("lines", "what", "dtype"),
    [
        (("for i in range(n):", "    x = x.sqrt()", "probe(x)"), "tensor", "unknown"),
        (("y = x", "for i in range(n):", "    y = y.cumsum(i)", "probe(y)"), "tensor", "unknown"),
        (("y = index", "for i in range(n):", "    z = probe(y)", "    y = y + 1"), "tensor", "integer"),
        (("y = index", "for i in range(n):", "    probe(y)", "    y = y / 2"), "tensor", "unknown"),
        (("y = index", "for i in range(n):", "    probe(y)", "    y = unknown.thing()"), "unknown", "unknown"),
        (("y = 0", "for i in range(n):", "    y = y + x", "probe(y)"), "unknown", "unknown"),
        (("while n:", "    z = z + 1", "probe(z)"), "unknown", "unknown"),
    ],
)
def test_what_a_loop_makes_of_a_name(lines: tuple[str, ...], what: str, dtype: str) -> None:
    inferred = in_function(*lines)
    assert (inferred.what, inferred.dtype) == (what, dtype)


@pytest.mark.parametrize(
    ("name", "lines", "what", "gradient"),
    [
        ("training_step", ("probe(batch)",), "unknown", "no"),
        ("training_step", ("x, y = batch", "probe(x)"), "unknown", "no"),
        ("validation_step", ("x, y = batch", "probe(x.unsqueeze(0))"), "tensor", "no"),
        ("test_step", ("probe(batch['x'].permute(1, 0))",), "tensor", "no"),
        ("predict_step", ("probe(self.layer(batch))",), "tensor", "no"),
        ("training_step", ("probe(self.layer(batch))",), "tensor", "yes"),
        ("other_step", ("x, y = batch", "probe(x)"), "unknown", "unknown"),
    ],
)
def test_the_batch_of_a_step(name: str, lines: tuple[str, ...], what: str, gradient: str) -> None:
    head = "import lightning as L\nfrom torch import nn\nclass Net(L.LightningModule):\n    def __init__(self):\n"
    body = "\n".join(f"        {line}" for line in lines)
    text = f"{head}        self.layer = nn.Linear(2, 2)\n    def {name}(self, batch, batch_idx):\n{body}\n"
    inferred = probed(text)
    assert (inferred.what, inferred.gradient) == (what, gradient)


def test_what_an_autograd_function_takes_as_a_whole() -> None:
    head = "import torch\nclass Scale(torch.autograd.Function):\n    @staticmethod\n"
    use = "def use(y):\n    return Scale.apply(y, 2)\n"
    assert probed(f"{head}    def forward(ctx, *args):\n        probe(args)\n{use}").what == "other"
    assert probed(f"{head}    def forward(ctx, x, *, scale=2):\n        probe(scale)\n{use}").what == "other"
