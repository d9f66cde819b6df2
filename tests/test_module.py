from __future__ import annotations

import ast
import textwrap

import libcst as cst
import pytest

from torchdet_lint import api
from torchdet_lint.catalogue import loading
from torchdet_lint.catalogue.conditions import Condition, condition_holds, matches
from torchdet_lint.catalogue.facts import Facts
from torchdet_lint.catalogue.loading import Catalogue
from torchdet_lint.catalogue.rules import Call, Rule, Setting
from torchdet_lint.module.module import Module, SyntaxFault
from torchdet_lint.prefilter.library import Library
from torchdet_lint.prefilter.tabs import untabbed
from torchdet_lint.source.decoding import Source

DATALOADER = "torch.utils.data.DataLoader"


def make_library() -> Library:
    rule = Rule(
        code="ACME001",
        name="loader",
        summary="",
        message="",
        why="",
        instead="",
        calls=(Call(names=(DATALOADER, "torch.seed", "random.Random", "torch.Generator", "torch.Generator().seed")),),
        settings=(Setting(names=("torch.backends.cudnn.benchmark",), values=(True,)),),
    )
    facts = Facts(
        canonical={
            "torch.utils.data.dataloader.DataLoader": DATALOADER,
            "pytorch_lightning": "lightning.pytorch",
        },
        signatures={DATALOADER: ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")},
        bases={"torch_geometric.loader.DataLoader": DATALOADER},
    )
    return Library(Catalogue({"ACME001": rule}, facts, ""))


LIBRARY = make_library()
SHIPPED = Library(loading.load())


def parse(text: str) -> Module:
    return Module(Source("example.py", textwrap.dedent(text)), LIBRARY)


def loaders(text: str) -> list[int]:
    module = parse(text)
    return [module.span(call.node)[0].row for call in module.calls_to(DATALOADER)]


@pytest.mark.parametrize(
    "text",
    [
        "from torch.utils.data import DataLoader\nDataLoader(d)",
        "from torch.utils.data import DataLoader as DL\nDL(d)",
        "import torch.utils.data\ntorch.utils.data.DataLoader(d)",
        "import torch\ntorch.utils.data.DataLoader(d)",
        "import torch.utils.data as tud\ntud.DataLoader(d)",
        "from torch.utils import data\ndata.DataLoader(d)",
        "from torch.utils.data.dataloader import DataLoader\nDataLoader(d)",
        "from torch.utils.data import *\nDataLoader(d)",
        "import torch\nmake = torch.utils.data.DataLoader\nmake(d)",
        "import torch\na = torch.utils\nb = a.data\nb.DataLoader(d)",
        "import torch\ngetattr(torch.utils.data, 'DataLoader')(d)",
        "import importlib\nimportlib.import_module('torch.utils.data').DataLoader(d)",
        "from torch.utils.data import DataLoader\nfrom functools import partial\npartial(DataLoader, batch_size=2)(d)",
        "try:\n    from x import DataLoader\nexcept E:\n    from torch.utils.data import DataLoader\nDataLoader(d)",
        "from torch.utils.data import DataLoader\nDataLoader[int](d)",
        "from torch.utils.data import DataLoader\nmake = DataLoader if fast else None\nmake(d)",
        "from torch.utils.data import DataLoader\nif (make := DataLoader):\n    make(d)",
        "from torch_geometric.loader import DataLoader\nDataLoader(d)",
        "from torch.utils.data import DataLoader, random_split\nmake, cut = DataLoader, random_split\nmake(d)",
        "from torch.utils.data import DataLoader\nclass Mine(DataLoader): pass\nMine(d)",
        "from torch.utils.data import DataLoader\nclass A(DataLoader):\n    x = 1\nclass B(A):\n    y = 2\nB(d)",
        "from torch.utils.data import DataLoader\nfor d in ds:\n    [lambda: DataLoader(d) for _ in d]",
    ],
)
def test_every_spelling_is_found(text):
    assert loaders(text) == [len(text.split("\n"))]


@pytest.mark.parametrize(
    "text",
    [
        "from mine import DataLoader\nDataLoader(d)",
        "from .data import DataLoader\nDataLoader(d)",
        "class DataLoader: pass\nimport torch\nDataLoader(d)",
        "from torch.utils.data import DataLoader\nfrom mine import DataLoader\nDataLoader(d)",
        "from torch.utils.data import DataLoader\ndef f(DataLoader):\n    DataLoader(d)",
        "from torch.utils.data import DataLoader\nfor DataLoader in kinds:\n    DataLoader(d)",
        "from torch.utils.data import DataLoader\nwith kinds() as DataLoader:\n    DataLoader(d)",
        "from torch.utils.data import DataLoader\n[DataLoader(d) for DataLoader in kinds]",
        "from torch.utils.data import DataLoader\ndef f():\n    DataLoader = make()\n    DataLoader(d)",
        "from torch.utils.data import DataLoader\nclass Mine(DataLoader):\n    def __init__(self): pass\nMine(d)",
        "from torch.utils.data import DataLoader\nfrom x import cut\nDataLoader, cut = cut, DataLoader\nDataLoader(d)",
        "DataLoader(d)",
        "import torch\nx.DataLoader(d)",
    ],
)
def test_another_thing_of_the_same_name_is_not(text):
    assert loaders(text) == []


def test_the_last_binding_on_every_path_counts():
    assert loaders("from mine import DataLoader\nfrom torch.utils.data import DataLoader\nDataLoader(d)") == [3]


def test_the_name_of_a_class_body_is_not_seen_in_its_methods():
    text = """\
    from torch.utils.data import DataLoader
    class A:
        DataLoader = make()
        def f(self):
            return DataLoader(d)
    """
    assert loaders(text) == [5]


def test_a_subclass_with_a_constructor_is_judged_in_it():
    text = """\
    from torch.utils.data import DataLoader
    class Mine(DataLoader):
        def __init__(self, data, **kwargs):
            super().__init__(data, 4, num_workers=3, **kwargs)
    Mine(d)
    """
    module = parse(text)
    (call,) = module.calls_to(DATALOADER)
    assert module.span(call.node)[0].row == 4
    assert call.argument("batch_size").constant == 4
    assert call.argument("num_workers").constant == 3
    assert call.opaque


def test_a_named_base_constructor_takes_self_first():
    text = """\
    from torch.utils.data import DataLoader
    class Mine(DataLoader):
        def __init__(self, data):
            DataLoader.__init__(self, data, 4)
    """
    (call,) = parse(text).calls_to(DATALOADER)
    assert call.argument("batch_size").constant == 4


def test_an_attribute_of_self_is_followed():
    text = """\
    from torch.utils.data import DataLoader
    class A:
        def __init__(self):
            self.make = DataLoader
            self.workers = 5
        def f(self):
            return self.make(d, num_workers=self.workers)
    """
    (call,) = parse(text).calls_to(DATALOADER)
    assert call.argument("num_workers").constant == 5


def argument(text: str, name: str = "num_workers"):
    (call,) = parse("from torch.utils.data import DataLoader\n" + textwrap.dedent(text)).calls_to(DATALOADER)
    value = call.argument(name)
    if value is None:
        return "opaque" if call.opaque else "absent"
    return value.constant if value.known else "unknown"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DataLoader(d)", "absent"),
        ("DataLoader(d, num_workers=4)", 4),
        ("DataLoader(d, 1, True, None, None, 4)", 4),
        ("DataLoader(d, *rest)", "opaque"),
        ("DataLoader(*[d, 1, True, None, None, 4])", 4),
        ("w = 0\nDataLoader(d, num_workers=w)", 0),
        ("w = 4\nw = 0\nDataLoader(d, num_workers=w)", 0),
        ("w = 0\nif fast:\n    w = 4\nDataLoader(d, num_workers=w)", "unknown"),
        ("w = 0\nif fast:\n    w = 0\nDataLoader(d, num_workers=w)", 0),
        ("w = 0\nw += 1\nDataLoader(d, num_workers=w)", "unknown"),
        ("w = 0\ndef f():\n    return DataLoader(d, num_workers=w)", 0),
        ("w = 0\ndef g():\n    global w\n    w = 4\ndef f():\n    return DataLoader(d, num_workers=w)", "unknown"),
        ("def f(w=0):\n    return DataLoader(d, num_workers=w)", "unknown"),
        ("for w in range(3):\n    DataLoader(d, num_workers=w)", "unknown"),
        ("w, x = 0, 1\nDataLoader(d, num_workers=w)", 0),
        ("w, x = 0, 4\nw, x = x, w\nDataLoader(d, num_workers=w)", 4),
        ("w, x = y, 0\nDataLoader(d, num_workers=w)", "unknown"),
        ("class C:\n    w = 0\ndef f():\n    return DataLoader(d, num_workers=C.w)", 0),
        ("class C:\n    w: int = 0\ndef f(a):\n    C.w = a.w\n    return DataLoader(d, num_workers=C.w)", "unknown"),
        ("class C:\n    w = 0\nsetattr(C, a, b)\nDataLoader(d, num_workers=C.w)", "unknown"),
        ("class C:\n    w = 0\ndef f(C):\n    return DataLoader(d, num_workers=C.w)", "unknown"),
        ("class C:\n    w: int = 0\nDataLoader(d, num_workers=C().w)", "unknown"),
        ("w = 0\nwhile True:\n    DataLoader(d, num_workers=w)\n    w = 4", "unknown"),
        ("DataLoader(d, num_workers=0 if debug else 0)", 0),
        ("DataLoader(d, num_workers=0 if debug else 4)", "unknown"),
        ("DataLoader(d, num_workers=-1)", -1),
        ("DataLoader(d, num_workers=not True)", False),
        ("o = dict(num_workers=2)\nDataLoader(d, **o)", 2),
        ("o = {'num_workers': 2}\nDataLoader(d, **o)", 2),
        ("DataLoader(d, **{'num_workers': 2})", 2),
        ("o = {'num_workers': 2}\np = {**o, 'shuffle': True}\nDataLoader(d, **p)", 2),
        ("o = {}\no['num_workers'] = 2\nDataLoader(d, **o)", 2),
        ("o = {}\no.update(num_workers=2)\nDataLoader(d, **o)", 2),
        ("o = {'num_workers': 2} if c else {}\nDataLoader(d, **o)", 2),
        ("o = {'num_workers': 2}\nif c:\n    o['num_workers'] = 0\nDataLoader(d, **o)", 2),
        ("o = {'num_workers': 2}\no['num_workers'] = 0\nDataLoader(d, **o)", 0),
        ("o = {'num_workers': 2}\no.pop('num_workers')\nDataLoader(d, **o)", "absent"),
        ("o = {'num_workers': 2}\nif c:\n    o.pop('num_workers')\nDataLoader(d, **o)", 2),
        ("o = {'num_workers': 2}\no.pop(c)\nDataLoader(d, **o)", "opaque"),
        ("o = {'num_workers': 2}\no.popitem()\nDataLoader(d, **o)", "opaque"),
        ("o = {'num_workers': 2}\no.setdefault('num_workers', 3)\nDataLoader(d, **o)", 2),
        ("o = {}\no.setdefault('num_workers', 3)\nDataLoader(d, **o)", 3),
        ("o = {}\nif 'num_workers' not in o:\n    o['num_workers'] = 3\nDataLoader(d, **o)", 3),
        ("o = {'num_workers': 2}\nif 'num_workers' not in o:\n    o['num_workers'] = 3\nDataLoader(d, **o)", 2),
        ("o = {'num_workers': 2}\ndel o['num_workers']\nDataLoader(d, **o)", "opaque"),
        ("o = {'num_workers': 2}\np = o.copy()\nDataLoader(d, **p)", 2),
        ("import copy\no = {'num_workers': 2}\nDataLoader(d, **copy.deepcopy(o))", 2),
        ("o = {'num_workers': 2}\nDataLoader(d, **(o | {'num_workers': 3}))", 3),
        ("o = {'num_workers': 2}\np = o | {'shuffle': True}\nDataLoader(d, **p)", 2),
        ("o = {'num_workers': 2}\nDataLoader(d, **(o | x))", "opaque"),
        ("DataLoader(d, **x.copy())", "opaque"),
        ("o = {'num_workers': 2}\no |= x\nDataLoader(d, **o)", "opaque"),
        ("o = {'num_workers': 2}\no[c] = x\nDataLoader(d, **o)", "opaque"),
        ("o = {}\no.update(x)\nDataLoader(d, **o)", "opaque"),
        ("o = {'a': 1}\nwhile True:\n    o = {**o, 'b': 2}\nDataLoader(d, **o)", "opaque"),
        ("o = {key: 1}\nDataLoader(d, **o)", "opaque"),
        ("def f(**o):\n    DataLoader(d, **o)", "opaque"),
        ("from functools import partial\nm = partial(DataLoader, num_workers=3)\nm(d)", 3),
        ("from functools import partial\nm = partial(DataLoader, num_workers=3)\nm(d, num_workers=1)", 1),
        ("from functools import partial\nm = partial(DataLoader, d, 1, True)\nm(None, None, 7)", 7),
        ("from functools import partial\nm = partial(partial(DataLoader, num_workers=3), d, 1)\nm(None)", 3),
        ("from functools import partial\np = partial(DataLoader, d, 1)\nm = partial(p, True, None)\nm(None, 7)", 7),
    ],
)
def test_arguments_are_followed_to_their_values(text, expected):
    found = argument(text)
    assert found == expected
    assert type(found) is type(expected)


def test_assignments_are_found_in_every_spelling():
    text = """\
    import torch
    import torch.backends.cudnn as cudnn
    from torch.backends import cudnn as c
    torch.backends.cudnn.benchmark = True
    cudnn.benchmark = False
    c.benchmark = flag
    setattr(torch.backends.cudnn, "benchmark", True)
    other.benchmark = True
    cudnn.enabled = True
    """
    module = parse(text)
    found = [
        (module.span(assignment.node)[0].row, assignment.value.known and assignment.value.constant)
        for assignment in module.assignments_to("torch.backends.cudnn.benchmark")
    ]
    assert sorted(found) == [(4, True), (5, False), (6, False), (7, True)]


def test_the_attribute_of_a_result_is_named_after_its_maker():
    text = "import torch\ng = torch.Generator()\ndef f():\n    g.seed()\n"
    module = parse(text)
    (call,) = module.method_calls("seed")
    assert call.own == ("torch.Generator().seed",)


def test_only_what_matters_is_parsed():
    text = """\
    from torch.utils.data import DataLoader

    def f():
        return 1

    def g():
        return DataLoader(d)
    """
    module = parse(text)
    assert [unit.root is not None for unit in module.units] == [False, False, False]
    list(module.calls_to(DATALOADER))
    assert [unit.root is not None for unit in module.units] == [False, False, True]


def test_nothing_is_parsed_where_no_word_matters():
    module = parse("import numpy\ndef DataLoader(): pass\nDataLoader()\n")
    assert module.calls == []
    assert [unit.root for unit in module.units] == [None, None, None]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_positions_are_those_of_the_file(newline):
    lines = [
        "from torch.utils.data import DataLoader",
        "class A:",
        "    'döc'",
        "    def f(self):",
        "        é = 'ß'; return DataLoader(",
        "            self.d)",
    ]
    module = parse(newline.join(lines))
    (call,) = module.calls_to(DATALOADER)
    start, end = module.span(call.node)
    assert (start.row, start.column, end.row, end.column) == (5, 25, 6, 20)
    assert module.places.noqa_rows(call.node) == (5, 6)


def test_scopes_of_any_node():
    module = parse("from torch.utils.data import DataLoader\ndef f(a=DataLoader(1)):\n    b = DataLoader(a)\n")
    outer, inner = module.calls_to(DATALOADER)
    assert module.scope_of(outer.node).kind == "module"
    assert module.scope_of(inner.node).kind == "function"
    function = module.enclosing_function(inner.node)
    assert isinstance(function, cst.FunctionDef)
    assert function.name.value == "f"
    assert isinstance(module.statement(inner.node), cst.SimpleStatementLine)


def test_what_libcst_alone_understands_is_parsed_whole(monkeypatch):
    from torchdet_lint.prefilter import skeleton

    def refuse(text):
        raise SyntaxFault(1, 1, "invalid syntax")

    monkeypatch.setattr(skeleton, "cut", refuse)
    assert loaders("from torch.utils.data import DataLoader\nDataLoader(d)") == [2]


def test_what_nobody_understands_is_a_fault():
    with pytest.raises(SyntaxFault):
        parse("def f(:\n")


def test_a_long_chain_of_bindings_costs_little():
    steps = "\n".join(f"    x = self.layer{i}(x).view(1).relu()" for i in range(300))
    module = parse(f"from torch.utils.data import DataLoader\ndef f(self, x):\n{steps}\n    return DataLoader(x)\n")
    (call,) = module.calls_to(DATALOADER)
    assert call.names == (DATALOADER,)


def test_a_deep_expression_does_not_exhaust_the_stack():
    text = "from torch.utils.data import DataLoader\nx = " + " + ".join(["DataLoader(d)"] * 900) + "\n"
    assert len(loaders(text)) == 900


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [(True, 1, False), (1, True, False), (0, False, False), (1, 1.0, True), ((1, 1), [1, 1], True), (None, None, True),
     ((1,), (1, 1), False), ("a", "a", True)],
)  # fmt: skip
def test_matches(value, wanted, expected):
    assert matches(value, wanted) is expected


ABSENT = {"passed": False, "opaque": False, "known": False, "value": None}
HIDDEN = {**ABSENT, "opaque": True}
UNKNOWN = {"passed": True, "opaque": False, "known": False, "value": None}
NONE = {**UNKNOWN, "known": True}
FOUR = {**NONE, "value": 4}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("absent", [True, False, False, False, False]),
        ("missing", [True, False, False, True, False]),
        ("given", [False, False, True, False, True]),
        ("in", [False, False, False, False, True]),
        ("not-in", [True, False, False, True, False]),
        ("truthy", [False, False, False, False, True]),
        ("falsy", [True, False, False, True, False]),
        ("possible", [False, False, True, False, True]),
    ],
)
def test_conditions(test, expected):
    condition = Condition(argument="x", test=test, values=(4,))
    states = [ABSENT, HIDDEN, UNKNOWN, NONE, FOUR]
    assert [condition_holds(condition, **state) for state in states] == expected


def test_a_default_stands_for_what_is_not_passed():
    assert condition_holds(Condition(argument="x", test="in", values=(4,), default=4), **ABSENT)
    assert condition_holds(Condition(argument="x", test="truthy", opaque=True), **HIDDEN)


def test_triggers_need_the_word_of_their_library():
    assert LIBRARY.triggers.within("DataLoader torch") == {"DataLoader"}
    assert LIBRARY.triggers.within("DataLoader torch_geometric") == {"DataLoader"}
    assert LIBRARY.triggers.within("DataLoader mine") == frozenset()
    assert LIBRARY.canonical("pytorch_lightning.Trainer") == "lightning.pytorch.Trainer"


def test_a_long_table_is_parsed_when_its_name_is_looked_up():
    rows = "".join(f"    o{n}={n},\n" for n in range(9))
    made = parse(
        "from torch.utils.data import DataLoader\noptions = None\n"
        f"options = dict(\n{rows})\nDataLoader(data)\nf(**options)\n"
    )
    assert list(made.calls_to("torch.utils.data.DataLoader"))
    table = next(unit for unit in made.units if unit.piece.kind == "table")
    assert table.root is None
    assert made.dictionary(cst.Name("options"), made.scope, None) is not None
    assert table.root is not None
    assert [binding.value is None for binding in made.scope.bindings["options"]] == [False, False]


def test_what_imports_bind_stays_when_they_are_parsed():
    made = parse("import torch\nimport torch.utils.data as d\ntorch = d\nfrom x import *\nd.DataLoader(a)\n")
    before = {name: [(one.kind, one.target) for one in found] for name, found in made.scope.bindings.items()}
    made.load_statements(every=True)
    after = {name: [(one.kind, one.target) for one in found] for name, found in made.scope.bindings.items()}
    assert before == {"torch": [("import", "torch")], "d": [("import", "torch.utils.data")]}
    assert after == before | {"torch": [("import", "torch"), ("assign", "")]}
    assert all(one.node is not None for found in made.scope.bindings.values() for one in found)
    assert made.scope.stars == ["x"]


@pytest.mark.parametrize(
    ("imports", "line", "parsed"),
    [
        ("from torch.utils.data import DataLoader", "return DataLoader(d)", True),
        ("import torch", "return torch.utils.data.DataLoader(d)", True),
        ("import torch.utils.data as data", "return data.DataLoader(d)", True),
        ("import torch.utils", "data = torch.utils.data\n    return data.DataLoader(d)", True),
        ("import torch", "from mine import DataLoader\n    return DataLoader(d)", True),
        ("import torch, torch.utils.data", "return getattr(torch.utils.data, 'DataLoader')(d)", True),
        ("import torch", "return import_module('torch.utils.data').DataLoader(d)", True),
        ("from torch.utils.data import *", "return DataLoader(d)", True),
        ("try:\n    import torch.utils.data as data\nexcept ImportError:\n    pass", "return data.DataLoader(d)", True),
        ("import torch\nif torch:\n    from torch.utils.data import DataLoader", "return DataLoader(d)", True),
        ("import torch\ndata = torch.utils.data", "return data.DataLoader(d)", True),
        (
            "import torch\nfrom mine import data",
            "from torch.utils import (\n        data)\n    return data.DataLoader(d)",
            True,
        ),
        ("import torch.utils.data", "f(torch.utils.data.DataLoader)", True),
        ("import torch, mine", "import other\n    return mine.DataLoader(d)", False),
        ("from torch.utils.data import DataLoader", "raise E('no DataLoader given')", False),
        ("from torch.utils.data import DataLoader", "raise E('give a DataLoader')", False),
        ("from torch.utils.data import DataLoader", "raise E('DataLoader is needed')", False),
        ("from torch.utils.data import DataLoader", "raise E('fast-DataLoader is needed')", False),
        ("from torch.utils.data import DataLoader", "return DataLoader if d else None", True),
        ("import torch, mine", "return mine.DataLoader(d)", False),
        ("import torch\nfrom mine import DataLoader", "return DataLoader(d)", False),
        ("import torch", "return self.DataLoader(d)", False),
        ("import torch", "return d.DataLoader", False),
        ("import torch", "return f(kind='DataLoader')", False),
        ("import torch", "return f(DataLoader=d)", False),
        ("import torch", "'''A DataLoader\n    of DataLoader'''", False),
        ("import torch", "# DataLoader(d)\n    return d", False),
        ("import torch\ndef DataLoader(): pass", "return DataLoader(d)", False),
    ],
)
def test_a_word_counts_by_the_name_that_it_ends(imports: str, line: str, parsed: bool) -> None:
    module = parse(f"{imports}\ndef g(self, d):\n    {line}\n")
    found = list(module.calls_to(DATALOADER))
    unit = next(unit for unit in module.units if unit.piece.name == "g")
    assert (unit.root is not None) is parsed
    assert parsed or not found


@pytest.mark.parametrize(
    ("signature", "parsed"),
    [
        ("def g(d: DataLoader, n: int = 1) -> Iterator[data.DataLoader]:", False),
        ("def g(d: 'DataLoader | None' = None):", False),
        ("def g(d: type = DataLoader):", True),
        ("def g(d=DataLoader(x)):", True),
        ("@made(DataLoader)\ndef g():", True),
        ("async def g(\n    d: DataLoader,\n):", False),
    ],
)
def test_a_class_that_annotates_a_parameter_is_not_made_there(signature: str, parsed: bool) -> None:
    module = parse(
        f"from torch.utils import data\nfrom torch.utils.data import DataLoader\n{signature}\n    return 1\n"
    )
    list(module.calls_to(DATALOADER))
    assert (module.units[-1].root is not None) is parsed


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("x.bincount(0, i, s)", True),
        ("x.bincount (0, i, s)", True),
        ("x.bincount = f", False),
        ("f(x).bincount(0, i, s)", True),
        ("self.a[0]\\\n        .bincount(0, i, s)", True),
        ("mine.bincount(0, i, s)", True),
        ("torch.Tensor.bincount(x, 0, i, s)", True),
        ("np.bincount(x, 0, i, s)", False),
        ("bincount(x, 0, i, s)", False),
    ],
)
def test_a_method_counts_on_whatever_may_be_its_object(line: str, parsed: bool) -> None:
    text = f"import torch\nimport mine\nimport numpy as np\ndef g(self, x, i, s):\n    {line}\n"
    module = Module(Source("example.py", text), SHIPPED)
    assert [call for call in module.calls if call.attribute == "bincount"] or not parsed
    assert (module.units[-1].root is not None) is parsed


MIXED = '''\
import torch


def f(n):
    """Rows
\twith a tab, and \x0c one that goes on."""
    for step in range(n):
\t    x = torch.empty(n)
\t    if step:
\t\t    print(x + 1)
    return n
'''


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_indented_by_spaces_and_tabs_are_read_as_python_reads_them(end):
    """libcst takes no row that begins with a tab in a block of spaces."""
    text = MIXED.replace("\n", end)
    ast.parse(text)
    with pytest.raises(cst.ParserSyntaxError):
        cst.parse_module(text)
    (finding,) = api.lint_source(text, isolated=True)
    assert (finding.code, finding.location.row, finding.location.column) == ("TDL501", 10, 13)
    assert api.fix_source(text, isolated=True) == text.replace("torch.empty(n)", "torch.zeros(n)")
    assert untabbed(text) == text.replace("\t", " ").replace(" with a tab", "\twith a tab")
    assert untabbed("if 1:\n        x\n\ty\n") == "if 1:\n        x\n\ty\n"
