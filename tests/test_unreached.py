"""What the constants that all calls of a project pass, or leave, rule out: findings about ops in the arms behind."""

from __future__ import annotations

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run

LAYERS = """\
import torch
from torch import nn

class Recurrent(nn.Module):
    def __init__(self, size, kind="lstm", deep=False):
        super(Recurrent, self).__init__()
        self.kind = kind
        if self.kind == "lstm":
            self.net = nn.LSTM(size, size)
        elif kind == "rnn":
            self.net = nn.RNN(size, size)

    def forward(self, x, index):
        if self.kind != "added":
            return self.net(x)[0]
        return torch.zeros(4).cuda().scatter_add_(0, index, x)

def summed(x, index, reduce=False):
    if reduce:
        return x
    return torch.zeros(4).cuda().scatter_add_(0, index, x)
"""
MAIN = """\
import sys
from layers import Recurrent, summed

def build(kind):
    {made}
    return kind

if __name__ == "__main__":
    net = Recurrent(4).cuda()
    print(net, build, summed(net, net{given}))
"""
LSTM, RNN, ADDED, SUMMED = 9, 11, 16, 21


def rows(project, **files):
    project(**files)
    folder = project()
    result = run.run([str(folder)], Settings(root=str(folder), jobs=1, select=("TDL4",)))
    assert result.errors == ()
    return [one.location.row for one in result.findings if one.filename.endswith("layers.py")]


def main(made="pass", given=""):
    return MAIN.format(made=made, given=given)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("pass", [LSTM, SUMMED]),
        ("Recurrent(4, 'lstm')", [LSTM, SUMMED]),
        ("Recurrent(4, kind='rnn')", [LSTM, RNN, SUMMED]),
        ("Recurrent(4, 'added')", [LSTM, ADDED, SUMMED]),
        ("Recurrent(4, kind)", [LSTM, RNN, ADDED, SUMMED]),
        ("Recurrent(4, *kind)", [LSTM, RNN, ADDED, SUMMED]),
        ("Recurrent(4, **kind)", [LSTM, RNN, ADDED, SUMMED]),
        ("Recurrent(4, deep=kind)", [LSTM, SUMMED]),
        ("kind(Recurrent)", [LSTM, RNN, ADDED, SUMMED]),
        ("kind['Recurrent']", [LSTM, RNN, ADDED, SUMMED]),
        ("kind.kind = 'rnn'", [LSTM, ADDED, SUMMED]),
        ("class More(Recurrent): pass", [LSTM, RNN, ADDED, SUMMED]),
        ("Recurrent(Recurrent(4))", [LSTM, SUMMED]),
        ("lambda: Recurrent(4, 'rnn')", [LSTM, RNN, SUMMED]),
    ],
)
def test_what_all_calls_give_a_constructor(project, made, found):
    assert rows(project, layers_DOT_py=LAYERS, main_DOT_py=main(made)) == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("", True),
        (", False", True),
        (", reduce=True", False),
        (", reduce=sys.argv", True),
        (", True) or map(summed", True),
    ],
)
def test_what_all_calls_give_a_function(project, given, found):
    assert (SUMMED in rows(project, layers_DOT_py=LAYERS, main_DOT_py=main(given=given))) is found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Recurrent", "@torch.jit.script\nclass Recurrent"),
        ("self.kind = kind\n", "self.kind = kind\n        setattr(self, deep, size)\n"),
        ("from layers import Recurrent,", "from layers import Recurrent as Recurrent,"),
        ("import sys\n", "import sys\nimport importlib\nimportlib.import_module(sys.argv)\n"),
        ("import sys\n", "import sys\nimport layers\ngetattr(layers, sys.argv)(4, 'rnn')\n"),
        ("import sys\n", "import sys\nimport layers\nlayers.__dict__[sys.argv](4, 'rnn')\n"),
        ("import sys\n", "import sys\nfrom layers import *\nglobals()[sys.argv](4, 'rnn')\n"),
        ("import sys\n", "import sys\nfrom layers import *\neval(sys.argv)(4, 'rnn')\n"),
    ],
)
def test_where_an_object_may_be_made_otherwise_nothing_is_known(project, old, new):
    more = new.count("\n") - old.count("\n")
    layers = LAYERS.replace(old, new)
    found = rows(project, layers_DOT_py=layers, main_DOT_py=main().replace(old, new))
    assert ADDED + (more if layers != LAYERS else 0) in found


def test_what_is_picked_from_other_modules_says_nothing(project):
    text = main().replace(
        "import sys\n",
        "import sys\nfrom torch import nn\ngetattr(nn, sys.argv)(4); getattr(sys, 'path')\nnn.Linear(2, 2).eval()\n",
    )
    assert rows(project, layers_DOT_py=LAYERS, main_DOT_py=text) == [LSTM, SUMMED]


def test_of_a_library_nothing_is_known(project):
    assert RNN in rows(
        project, layers_DOT_py=LAYERS, other_DOT_py="from layers import Recurrent\n\ndef f():\n    Recurrent(4)\n"
    )


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("", []),
        (", 2", [7]),
        (", up=2", [7]),
    ],
)
def test_an_arm_of_an_expression_has_rows_of_its_own(project, given, found):
    head = (
        "import torch\nfrom torch import nn\n\nclass Head(nn.Module):\n"
        "    def __init__(self, size, up=1):\n        super().__init__()\n"
        "        self.up = nn.UpsamplingBilinear2d(scale_factor=up) if up > 1 else nn.Identity(nn.Identity())\n\n"
        "    def forward(self, x):\n        return self.up(x)\n"
    )
    made = f'from layers import Head\n\nif __name__ == "__main__":\n    print(Head(4{given}).cuda())\n'
    assert rows(project, layers_DOT_py=head, main_DOT_py=made) == found


@pytest.mark.parametrize(("other", "found"), [("kind", []), ("kind.lower()", [14])])
def test_a_name_that_is_the_parameter_in_every_arm_is_the_parameter(project, other, found):
    head = (
        "import torch\nfrom torch import nn\n\nclass Head(nn.Module):\n"
        "    def __init__(self, size, kind='avg'):\n        super().__init__()\n"
        "        if size > 3:\n            many = size * 2\n            pool = kind\n"
        f"        else:\n            many = 3\n            pool = {other}\n"
        "        if pool == 'max':\n            self.pool = nn.AdaptiveMaxPool2d(many)\n"
        "        else:\n            self.pool = nn.Identity()\n\n"
        "    def forward(self, x):\n        return self.pool(x)\n"
    )
    made = 'from layers import Head\n\nif __name__ == "__main__":\n    print(Head(4).cuda(), Head(2, "avg"))\n'
    assert rows(project, layers_DOT_py=head, main_DOT_py=made) == found


SCALED = """\
import torch
from torch import nn
import torch.nn.functional as F

class Up(nn.Module):
    def __init__(self, size, scale=1):
        super().__init__()
        self.scale = scale
        self.conv = nn.Linear(size, size)

    def forward(self, x, mask=None):
        if TEST:
            x = F.interpolate(x, scale_factor=2, mode="bilinear")
        return self.conv(x)

class Net(nn.Module):
    def __init__(self, scale=1):
        super().__init__()
        self.scale = scale
        self.up = Up(3, GIVEN)
        MORE

    def grown(self):
        return Up(3, self.scale)

    def forward(self, x):
        return self.up(x)
"""
BUILT = 'from layers import *\n\nif __name__ == "__main__":\n    print(MADE.cuda())\n'
BUILDER = "\ndef build(scale=1):\n    return Net(scale)\n"
SCALED_UP = 13


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("self.scale > 1", False),
        ("1 < self.scale", False),
        ("2 <= self.scale", False),
        ("1 != self.scale", False),
        ("1 == self.scale", True),
        ("0 < self.scale", True),
        ("self.scale", True),
        ("None is not x", True),
    ],
)
def test_what_a_constructor_hands_on_comes_from_who_calls_that(project, test, found):
    layers = SCALED.replace("TEST", test).replace("GIVEN", "scale").replace("MORE", "pass")
    assert (SCALED_UP in rows(project, layers_DOT_py=layers, main_DOT_py=BUILT.replace("MADE", "Net()"))) is found


@pytest.mark.parametrize(
    ("given", "more", "made", "found"),
    [
        ("scale", "pass", "Net(1)", False),
        ("scale", "pass", "Net(2)", True),
        ("scale=scale", "pass", "build()", False),
        ("scale", "pass", "build(2)", True),
        ("self.scale", "pass", "Net(1)", False),
        ("self.scale", "pass", "Net(scale=2)", True),
        ("scale", "self.more = [Up(3, scale=scale) for _ in range(2)]", "Net()", False),
        ("scale", "self.more = Up(3, scale * 2)", "Net()", True),
        ("scale", "scale = scale * 2", "Net()", True),
        ("scale", "self.scale = 2", "Net()", True),
        ("scale", "self.more = Net", "Net()", True),
    ],
)
def test_a_value_is_handed_on_through_constructors(project, given, more, made, found):
    layers = SCALED.replace("TEST", "self.scale > 1").replace("GIVEN", given).replace("MORE", more)
    layers += BUILDER if "build" in made else ""
    assert (SCALED_UP in rows(project, layers_DOT_py=layers, main_DOT_py=BUILT.replace("MADE", made))) is found


@pytest.mark.parametrize("decorated", ["class Net", "def build"])
def test_what_a_decorator_makes_is_given_whatever_that_gives(project, decorated):
    layers = SCALED.replace("TEST", "self.scale > 1").replace("GIVEN", "scale").replace("MORE", "pass") + BUILDER
    layers = layers.replace(decorated, f"@torch.jit.ignore\n{decorated}")
    assert rows(project, layers_DOT_py=layers, main_DOT_py=BUILT.replace("MADE", "build()")) == [SCALED_UP]


@pytest.mark.parametrize(
    ("named", "given", "found"),
    [
        ("y = mask", "", False),
        ("y = mask", ", None", False),
        ("y = mask", ", x", True),
        ("y = mask if x.requires_grad else None", "", False),
        ("y = None if x.requires_grad else mask", ", mask=None", False),
        ("y = mask if x.requires_grad else None", ", x", True),
        ("y = mask if x.requires_grad else x", "", True),
        ("y = mask if x.requires_grad else 1", "", True),
        ("y = mask[0] if mask is not None else None", "", False),
        ("y = mask; mask = x", "", True),
    ],
)
def test_a_parameter_that_is_none_by_all_calls_is_none_under_another_name(project, named, given, found):
    text = (
        "import torch\nimport torch.nn.functional as F\n\n"
        f"def grown(x, mask=None):\n    {named}\n    if y is not None:\n"
        '        x = F.interpolate(x, scale_factor=2, mode="bilinear")\n    return x\n'
    )
    main = f'from layers import *\n\nif __name__ == "__main__":\n    print([grown(x.cuda(){given}) for x in "ab"])\n'
    assert (rows(project, layers_DOT_py=text, main_DOT_py=main) == [7]) is found


UP = SCALED[: SCALED.index("class Net")].replace("TEST", "self.scale > 1").replace("scale=1", "scale")


@pytest.mark.parametrize(
    ("heirs", "made", "found"),
    [
        ("class More(Up):\n    def __init__(self, size):\n        super().__init__(size, 1)", "More(3)", False),
        (
            "class More(Up):\n    def __init__(self, size):\n        super(More, self).__init__(size, 1)",
            "More(3)",
            False,
        ),
        ("class More(Up):\n    def __init__(self, size):\n        super().__init__(size, 2)", "More(3)", True),
        ("class More(Up):\n    def __init__(self, size):\n        Up.__init__(self, size, 1)", "More(3)", True),
        ("class More(Up):\n    def __init__(self, size):\n        self.size = size", "More(3)", True),
        ("class More(Up):\n    def grown(self):\n        return self.scale", "More(3, 1)", False),
        ("class More(Up):\n    def grown(self):\n        return self.scale", "More(3, 2)", True),
        ("class More(Up):\n    scale = 2", "More(3, 1)", True),
        ("class More(Up):\n    def grown(self):\n        self.scale = 2", "More(3, 1)", True),
        ("class More(Up):\n    pass\n\nclass Most(More):\n    pass", "Most(3, 1), More(3, 1)", False),
        ("class More(Up):\n    pass\n\nclass Most(More):\n    scale = 2", "Most(3, 1)", True),
        ("class More(Up):\n    pass\n\nclass Most(nn.Module, More):\n    scale = 2", "Up(3, 1), More(3, 1)", True),
        ("class More(nn.Identity, Up):\n    pass", "Up(3, 1)", True),
        ("@print\nclass More(Up):\n    pass", "Up(3, 1)", True),
        (
            "class A(Up):\n    pass\n\nclass B(A):\n    pass\n\nclass C(B):\n    pass\n\nclass D(C):\n    pass",
            "D(3, 1)",
            True,
        ),
    ],
)
def test_what_derives_from_a_class_makes_its_objects_too(project, heirs, made, found):
    main = f'from layers import *\n\nif __name__ == "__main__":\n    print([one.cuda() for one in [{made}]])\n'
    assert (SCALED_UP in rows(project, layers_DOT_py=f"{UP}\n{heirs}\n", main_DOT_py=main)) is found
