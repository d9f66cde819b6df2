"""What the two readers of Python call each call of the rules' examples, and why they differ (`readers.CAUSES`)."""

from __future__ import annotations

import collections
import functools

import pytest
import readers
import rulebook

from torchdet_lint.catalogue import loading
from torchdet_lint.prefilter.library import Library
from torchdet_lint.prefilter.skeleton import SyntaxFault


@functools.cache
def library() -> Library:
    return Library(loading.load())


@functools.cache
def differences() -> tuple[int, dict[str, list[tuple[str, readers.Pair]]]]:
    """How many calls there are, and those that are named differently, by cause."""
    calls, found = 0, collections.defaultdict(list)
    for case in rulebook.cases():
        texts = {case.example.filename: case.example.code, **case.example.files}
        for name, text in texts.items():
            if not name.endswith(".py"):
                continue
            try:
                for pair in readers.pairs(name, text.encode(), library()):
                    calls += 1
                    if pair.exact != pair.following:
                        found[pair.cause].append((case.identity, pair))
            except SyntaxFault:
                assert case.code == "TDL001"
    return calls, found


def test_every_difference_has_a_cause() -> None:
    calls, found = differences()
    assert calls > 4000
    assert found.pop("", []) == []
    assert found.keys() <= readers.CAUSES.keys()


def test_most_calls_have_the_same_name() -> None:
    """Where neither a caller nor a configuration has a part in it, nineteen of twenty calls at least."""
    calls, found = differences()
    own = sum(len(pairs) for cause, pairs in found.items() if cause not in ("caller", "configuration", "star"))
    assert own < 0.05 * calls


@pytest.mark.parametrize(
    ("text", "exact", "following", "cause"),
    [
        ("def f(x):\n    x.add(1)\n", (), ("$x.add",), "caller"),
        ("import hub\n\ndef f(x):\n    getattr(hub, x)()\n", (), ("hub.{$x}",), "caller"),
        ("from lib import *\ngo()\n", (), ("*.go",), "star"),
        ("import a, b\nif a.x:\n    y = a\nelse:\n    y = b\ny = a\ny.go()\n", ("a.go",), ("a.go", "b.go"), "path"),
        ("import torch\nm = torch.ones(1).cuda()\nm.go()\n", ("torch.ones().cuda().go",),
         ("torch.ones().go",), "move"),
        ("import a\nfor x in [a.b()]:\n    pass\nx.go()\n", (), ("a.b().go",), "content"),
        ("import a\na.b().c().d().e().go()\n", (), ("a.b().c().d().e().go",), "depth"),
        ("import torch\ntorch.cuda.default_generators[0].seed()\n", ("torch.Generator().seed",), (), "item"),
        ("import a\ngetattr(a, x)()\n", (), ("a.*",), "attribute"),
        ("import torch\ntorch.compile(torch.nn.Linear(1, 1))(x)\n", ("torch.compile()",), ("torch.nn.Linear()",),
         "move"),
        ("import torch\ny = torch.nn.Parameter()[x].view(2)\ny.permute(1, 0)\n",
         ("torch.nn.Parameter().view().permute",), (), "item"),
        ("def f(): ...\ndef f():\n    def g(): ...\n    g()\n", ("@.f.g",), ("@.f'.g",), "again"),
        ("import a\nx = None\ndef f():\n    global x\n    x = a.b()\nx.go()\n", ("a.b().go",), (), "global"),
        ("import collections\nx = collections.OrderedDict()\ny = x[z]\nw = getattr(y, 'v', None)\nw.go()\n",
         ("collections.OrderedDict().v.go",), ("@.x.[].v.go",), "item"),
        ("{'a': str(x)}.get(x)\n", (), ("builtins.str().get",), "content"),
        ("class A:\n    class B:\n        pass\n    b = B()\n", ("@.A.B",), (), "class"),
        ("import a\nif (x := a.b()) is not None:\n    x.go()\n", ("a.b().go",), (), "expression"),
        ("vars(x).items()\n", ("builtins.vars().items",), (), "dictionary"),
        ("import ray, nets\nnets.Net.options().remote()\n", ("nets.Net.options().remote",), ("nets.Net",), "actor"),
    ],
)  # fmt: skip
def test_causes(text: str, exact: tuple[str, ...], following: tuple[str, ...], cause: str) -> None:
    last = list(readers.pairs("example.py", text.encode(), library()))
    assert (exact, following, cause) in [(one.exact, one.following, one.cause) for one in last]


def test_what_is_named_on_the_way_is_named_by_itself_too() -> None:
    """A long way to a name leaves nothing behind that hides it from whoever asks directly."""
    rows = "".join(f"x{i + 1} = F.relu(x{i})\n" for i in range(20))
    text = f"import torch.nn.functional as F\nx0 = F.relu(y)\n{rows}"
    found = [
        one.following
        for one in readers.pairs(
            "example.py", f"def f(y):\n{text}x20.go()\n".replace("\n", "\n    ").encode(), library()
        )
        if one.written == "F.relu"
    ]
    assert set(found) == {("torch.nn.functional.relu",)}
