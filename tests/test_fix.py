"""What a fix makes of a file: where its imports, helpers and arguments go, and when it is not made."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import fixing
import pytest

from torchdet_lint import api
from torchdet_lint.catalogue import loading
from torchdet_lint.finding import DropArgument, InsertBefore, NeedHelper, NeedImport, Replace, SeedFunction, SetArgument
from torchdet_lint.fixes.edits import Editor
from torchdet_lint.fixes.imports.placing import Imports
from torchdet_lint.fixes.layout import Layout
from torchdet_lint.prefilter.library import Library
from torchdet_lint.source.modules import ModuleMap

ALL = ("python", "numpy", "torch")


@pytest.fixture(scope="module")
def library():
    return Library(loading.load())


def worker(call):
    return NeedHelper("seed_worker"), SetArgument(call.node, "worker_init_fn", "{seed_worker}")


def torch_seed(call):
    return (NeedHelper("seeds", ("torch",)),)


def seeds(call):
    return (NeedHelper("seeds", ALL),)


def argument(call):
    return (SetArgument(call.node, "seed", "{seed}"),)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(seed=0)"),
        ("f( )", "f(seed=0)"),
        ("f(a)", "f(a, seed=0)"),
        ("f(a,)", "f(a, seed=0,)"),
        ("f((a))", "f((a), seed=0)"),
        ("f(a, *b)", "f(a, *b, seed=0)"),
        ("f(a, **{'x': 1})", "f(a, seed=0, **{'x': 1})"),
        ("f(**{'x': 1})", "f(**{'x': 1}, seed=0)"),
        ("f(seed=None)", "f(seed=0)"),
        ("f(a, seed=(None), b=1)", "f(a, seed=(0), b=1)"),
        ("f(f(1), 2)", "f(f(1, seed=0), 2, seed=0)"),
        ("x = (f(a))", "x = (f(a, seed=0))"),
        ("f(\n    a,\n    b,\n)", "f(\n    a,\n    b,\n    seed=0,\n)"),
        ("f(\n    a,\n    b\n)", "f(\n    a,\n    b,\n    seed=0\n)"),
        ("f(\n    a,\n    b,  # why\n)", "f(\n    a,\n    b,  # why\n    seed=0,\n)"),
        ("f(\n    a,\n    b  # why\n)", "f(\n    a,\n    b,  # why\n    seed=0,\n)"),
        ("f(\n    a, b,\n)", "f(\n    a, b, seed=0,\n)"),
        ("f(a,\n  b)", "f(a,\n  b,\n  seed=0)"),
        ("f(\n    a)", "f(\n    a,\n    seed=0)"),
        ("if x: f(a); g()", "if x: f(a, seed=0); g()"),
        ("@f(a)\ndef g(): pass", "@f(a, seed=0)\ndef g(): pass"),
        ("x = f(a)  # type: ignore # noqa: E1", "x = f(a, seed=0)  # type: ignore # noqa: E1"),
        ("f(a, # one\n  b) # two", "f(a, # one\n  b, seed=0) # two"),
        ("f(\n    a,\n    b=1)  # about b", "f(\n    a,\n    seed=0,\n    b=1)  # about b"),
        ("f([\n    a], b=1)  # about b", "f([\n    a], b=1, seed=0)  # about b"),
        ("f(a\\\n , b)", "f(a\\\n , b, seed=0)"),
    ],
)
def test_argument_is_added_in_the_manner_of_the_call(before, after, library):
    assert fixing.fixed(before + "\n", library, "f", argument) == after + "\n"


def test_long_line_of_a_broken_call_is_broken_again(library):
    before = f"f(a,\n  b, {'c' * 90})\n"
    assert fixing.fixed(before, library, "f", argument) == f"f(a,\n  b, {'c' * 90},\n  seed=0)\n"


def test_wide_line_of_a_broken_call_is_broken_before_its_options(library):
    before = f"f(\n    a, {'c' * 90}, **o\n)\n".replace("**o", "**{}")
    after = f"f(\n    a, {'c' * 90},\n    seed=0,\n    **{{}}\n)\n"
    assert fixing.fixed(before, library, "f", argument) == after


LONG = f"'{'c' * 90}'"
WIDE, WIDER = "w" * 56, "w" * 70
NARROW = "".join(f"x{number} = {number}\n" for number in range(50))
ALONE = "print(\n    1\n)\n"


@pytest.mark.parametrize(
    ("above", "before", "after"),
    [
        ("", f"f({LONG}, b)", f"f({LONG}, b,\n  seed=0)"),
        ("", f"f({LONG}, b)  # why", f"f({LONG}, b,  # why\n  seed=0)"),
        ("", f"f( ({LONG}), b, )  # noqa: E501", f"f( ({LONG}), b,  # noqa: E501\n   seed=0)"),
        ("", f"if f({LONG}, b): g()  # why", f"if f({LONG}, b, seed=0): g()  # why"),
        ("", f"if f({LONG}, **{{}}): pass", f"if f({LONG},\n     seed=0, **{{}}): pass"),
        ("", f'print(f"{{f({LONG}, b)}}")', f'print(f"{{f({LONG}, b, seed=0)}}")'),
        (NARROW, f"{WIDE} = f(a, b, c)", f"{WIDE} = f(a, b, c, seed=0)"),
        (NARROW, f"{WIDE} = f(a, b, c, d)", f"{WIDE} = f(a, b, c, d,\n{' ' * 61}seed=0)"),
        (NARROW, f"{WIDER} = f(a)", f"{WIDER} = f(\n    a, seed=0)"),
        (NARROW, f"with {WIDER}(f(a)):\n    a", f"with {WIDER}(f(\n        a, seed=0)):\n    a"),
        (NARROW, f"if a:\n\t{WIDE}(f(a, b, c, d))", f"if a:\n\t{WIDE}(f(\n\t\ta, b, c, d, seed=0))"),
        (ALONE, f"f({LONG}, b)  # why", f"f(\n    {LONG},\n    b,\n    seed=0,\n)  # why"),
        (ALONE, f"value = f({'c' * 84})", f"value = f(\n    {'c' * 84}, seed=0\n)"),
        (ALONE, f"f({LONG}, b)  # noqa", f"f({LONG}, b, seed=0)  # noqa"),
        (ALONE, f"f({LONG}, b, c, **{{}})", f"f(\n    {LONG},\n    b,\n    c,\n    seed=0,\n    **{{}},\n)"),
    ],
)
def test_line_that_would_grow_too_wide_is_broken_as_the_file_breaks_its_calls(above, before, after, library):
    assert fixing.fixed(f"{above}{before}\n", library, "f", argument) == f"{above}{after}\n"


def test_positional_argument_is_replaced_in_place(library):
    text = "import numpy as np\nnp.random.default_rng(None)\n"
    assert fixing.fixed(text, library, "default_rng", argument).endswith("default_rng(0)\n")


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("f(x for x in y)", "generator expression"),
        ("f(**options)", "`**` may pass `seed`"),
        ("f(  # why\n)", "# why"),
        ("options = {'seed': None}\nf(**options)\ng(**options)", "somewhere else"),
        ("options = {'seed': None}\nf(**options)\nprint(options)", "somewhere else"),
        ("options = {'seed': None}\nother = options\nf(**other)", "somewhere else"),
    ],
)
def test_argument_that_cannot_be_added(before, reason, library):
    assert reason in fixing.refusal(before + "\n", library, "f", argument)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, **{'seed': None})", "f(a, **{'seed': 0})"),
        ("f(a, **dict(seed=None, b=1))", "f(a, **dict(seed=0, b=1))"),
        ("o = {'seed': None}\nf(**o)", "o = {'seed': 0}\nf(**o)"),
        ("o = {'b': 1}\nf(**o)", "o = {'b': 1}\nf(**o, seed=0)"),
        ("o = {'b': 1}\nf(a, **o)", "o = {'b': 1}\nf(a, seed=0, **o)"),
        ("o = dict(b=1, seed=None)\nf(**o)\nf(a, **o)", "o = dict(b=1, seed=0)\nf(**o)\nf(a, **o)"),
        ("o = {}\no['seed'] = None\nf(**o)", "o = {}\no['seed'] = 0\nf(**o)"),
        ("o = {}\no.update(seed=None)\nf(**o)", "o = {}\no.update(seed=0)\nf(**o)"),
        ("o = {}\nif c:\n    o['seed'] = None\nf(**o)", "o = {}\nif c:\n    o['seed'] = 0\nf(**o)"),
        ("o = {'seed': None} if c else {}\nf(**o)", "o = {'seed': 0} if c else {}\nf(**o)"),
        (
            "def g():\n    o: dict = {'seed': None,  # why\n    }\n    return f(**o)",
            "def g():\n    o: dict = {'seed': 0,  # why\n    }\n    return f(**o)",
        ),
    ],
)
def test_dictionary_in_sight_is_edited_where_it_holds_the_argument(before, after, library):
    assert fixing.fixed(before + "\n", library, "f", argument) == after + "\n"


def test_helper_stands_above_the_dictionary_that_needs_it(library):
    text = "import torch\noptions = {'worker_init_fn': None}\nimport os\nf(d, **options)\n"
    fixed = fixing.fixed(text, library, "f", worker)
    assert "random.seed(worker_seed)\n\n\noptions = {'worker_init_fn': seed_worker}\nimport os\n" in fixed
    assert fixed.endswith("f(d, **options)\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, b=1)", "f(a)"),
        ("f(b=1)", "f()"),
        ("f(b=1,)", "f()"),
        ("f(b=1, c=2)", "f(c=2)"),
        ("f(a, b=1, c=2)", "f(a, c=2)"),
        ("f(a, b=1,)", "f(a,)"),
        ("f(\n    a,\n    b=1,\n    c=2,\n)", "f(\n    a,\n    c=2,\n)"),
        ("f(\n    a,\n    c=2,\n    b=1,\n)", "f(\n    a,\n    c=2,\n)"),
        ("f(\n    a,\n    b=1\n)", "f(\n    a\n)"),
        ("f(\n    b=1,\n    a=2,  # kept\n)", "f(\n    a=2,  # kept\n)"),
    ],
)
def test_argument_is_dropped_with_its_comma(before, after, library):
    def ask(call):
        return (DropArgument(call.node, call.keyword_node("b")),)

    assert fixing.fixed(before + "\n", library, "f", ask) == after + "\n"


def test_argument_with_a_comment_is_not_dropped(library):
    def ask(call):
        return (DropArgument(call.node, call.keyword_node("b")),)

    assert "# one" in fixing.refusal("f(\n    a,  # one\n    b=1,\n)\n", library, "f", ask)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a()\nf()\nb()\n", "a()\nb()\n"),
        ("if x:\n    f()\n", "if x:\n    pass\n"),
        ("if x: f()\n", "if x: pass\n"),
        ("a(); f(); b()\n", "a(); b()\n"),
        ("a(); f()\n", "a()\n"),
        ("f(); b()\n", "b()\n"),
    ],
)
def test_statement_is_removed(before, after, library):
    def ask(call):
        return (Replace(call.evaluator.relations.parent(call.node), ""),)

    assert fixing.fixed(before, library, "f", ask) == after


def test_statement_with_a_comment_is_not_removed(library):
    def ask(call):
        return (Replace(call.evaluator.relations.statement(call.node), ""),)

    assert "# why" in fixing.refusal("f()  # why\n", library, "f", ask) or fixing.fixed(
        "f()  # why\n", library, "f", ask
    ).count("# why")


IMPORTS = [
    pytest.param("import numpy as np\nf()\n", "import numpy as np\nnp.random.seed(0)\nf()\n", id="alias"),
    pytest.param("import numpy\nf()\n", "import numpy\nnumpy.random.seed(0)\nf()\n", id="plain"),
    pytest.param("from numpy import random\nf()\n", "from numpy import random\nrandom.seed(0)\nf()\n", id="part"),
    pytest.param("from numpy.random import seed\nf()\n", "from numpy.random import seed\nseed(0)\nf()\n", id="name"),
    pytest.param("import numpy.linalg\nf()\n", "import numpy.linalg\nnumpy.random.seed(0)\nf()\n", id="submodule"),
    pytest.param("f()\n", "import numpy as np\n\nnp.random.seed(0)\nf()\n", id="none"),
    pytest.param(
        '"""Doc."""\nf()\n', '"""Doc."""\n\nimport numpy as np\n\nnp.random.seed(0)\nf()\n', id="after the docstring"
    ),
    pytest.param(
        "from __future__ import annotations\n\nf()\n",
        "from __future__ import annotations\n\nimport numpy as np\n\nnp.random.seed(0)\nf()\n",
        id="after __future__",
    ),
    pytest.param(
        "import os\nimport torch\nf()\n",
        "import os\nimport numpy as np\nimport torch\nnp.random.seed(0)\nf()\n",
        id="sorted",
    ),
    pytest.param(
        "import os\nnp = 1\nf()\n", "import os\n\nimport numpy\nnp = 1\nnumpy.random.seed(0)\nf()\n", id="taken"
    ),
    pytest.param(
        "import os\nif TYPE_CHECKING:\n    import numpy as np\nf()\n",
        "import os\n\nimport numpy as np\nif TYPE_CHECKING:\n    import numpy as np\nnp.random.seed(0)\nf()\n",
        id="for types only",
    ),
    pytest.param(
        "import torch\n\nfrom .model import Net\nf()\n",
        "import numpy as np\nimport torch\n\nfrom .model import Net\nnp.random.seed(0)\nf()\n",
        id="own section",
    ),
    pytest.param(
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\nf()\n",
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n\nimport numpy as np\n\nnp.random.seed(0)\nf()\n",
        id="after the first comments",
    ),
    pytest.param(
        "import torch\nf()\nfrom .model import Net\n",
        "import numpy as np\nimport torch\nnp.random.seed(0)\nf()\nfrom .model import Net\n",
        id="beside its like",
    ),
    pytest.param(
        "import os\n\nfrom .model import Net\nf()\n",
        "import os\n\nimport numpy as np\n\nfrom .model import Net\nnp.random.seed(0)\nf()\n",
        id="a section of its own",
    ),
    pytest.param(
        "import os\nfrom .model import Net\nf()\n",
        "import os\nimport numpy as np\nfrom .model import Net\nnp.random.seed(0)\nf()\n",
        id="sections that nothing parts",
    ),
    pytest.param(
        "from a import b\nimport zebra\nf()\n",
        "from a import b\nimport numpy as np\nimport zebra\nnp.random.seed(0)\nf()\n",
        id="sorted by module",
    ),
    pytest.param(
        "import matplotlib\n\n# about torch\nimport torch\nf()\n".replace("\n\n", "\n"),
        "import matplotlib\nimport numpy as np\n# about torch\nimport torch\nnp.random.seed(0)\nf()\n",
        id="above the comment on the next",
    ),
    pytest.param(
        "# Libraries\nimport torch\nf()\n",
        "# Libraries\nimport numpy as np\nimport torch\nnp.random.seed(0)\nf()\n",
        id="below the comment on the group",
    ),
    pytest.param(
        '"""Doc."""\nfrom __future__ import annotations\n\n__all__ = ["g"]\n__version__ = "1"\n\nf()\n',
        '"""Doc."""\nfrom __future__ import annotations\n\n__all__ = ["g"]\n__version__ = "1"\n\nimport numpy as np\n\n'
        "np.random.seed(0)\nf()\n",
        id="after the names of the module",
    ),
    pytest.param(
        '"""Doc."""\n\n__all__ = ["g"]\n\nimport os\n\nimport torch\nf()\n',
        '"""Doc."""\n\n__all__ = ["g"]\n\nimport os\n\nimport numpy as np\nimport torch\nnp.random.seed(0)\nf()\n',
        id="among the imports after the names of the module",
    ),
    pytest.param(
        "import os\n\ntry:\n    import a\nexcept ImportError:\n    raise\nfrom .b import c\nf()\n",
        "import os\n\ntry:\n    import a\nexcept ImportError:\n    raise\n\nimport numpy as np\n\nfrom .b import c\n"
        "np.random.seed(0)\nf()\n",
        id="parted on both sides",
    ),
    pytest.param(
        "import os; import sys\nf()\n",
        "import os; import sys\n\nimport numpy as np\n\nnp.random.seed(0)\nf()\n",
        id="semicolon",
    ),
    pytest.param(
        "import os\n\n\ndef g():\n    import numpy as np\n    f()\n",
        "import os\n\n\ndef g():\n    import numpy as np\n    np.random.seed(0)\n    f()\n",
        id="inside a function",
    ),
    pytest.param(
        "import numpy as np\n\n\ndef g(np):\n    f()\n",
        "import numpy\nimport numpy as np\n\n\ndef g(np):\n    numpy.random.seed(0)\n    f()\n",
        id="shadowed",
    ),
]


@pytest.mark.parametrize(("before", "after"), IMPORTS)
def test_import_goes_where_imports_are_and_reuses_what_is_there(before, after, library):
    def ask(call):
        return NeedImport("numpy"), InsertBefore(call.node, "{numpy}.random.seed({seed})")

    assert fixing.fixed(before, library, "f", ask) == after


def test_import_keeps_the_sections_of_the_project(library):
    text = "import os\n\nfrom mine import g\n\nf()\n"
    module = fixing.module_of(text, library)
    module.own = {"mine"}.__contains__
    edit = Imports(Editor(Layout(module))).placed("import torch", None)
    assert fixing.patched(module, [edit]) == "import os\n\nimport torch\n\nfrom mine import g\n\nf()\n"
    edit = Imports(Editor(Layout(module))).placed("from mine.seeds import h", None)
    assert fixing.patched(module, [edit]) == "import os\n\nfrom mine import g\nfrom mine.seeds import h\n\nf()\n"


HEADS = [
    "import os\n\nimport torch\n\nfrom mine.nets import Net\n\nfrom .data import load\n",
    "from mine.nets import Net\n",
    "import abc\nfrom pathlib import Path\n\nimport mine\n",
    "import io\n\ntry:\n    import a\nexcept ImportError:\n    raise\n\nfrom .b import c\n",
    "from a import b\n",
    "import sys\n\nimport zarr\n\n# about yaml\nfrom yaml import load\n\nfrom mine import Net\n",
    '"""Doc."""\n\nfrom __future__ import annotations\n\n__all__ = ["x"]\n\nfrom typing import Any\n\nimport mine\n',
    '"""Doc."""\n\n__version__ = "1"\n\nimport sys\n\nfrom mine import x\n',
]


def test_sorted_imports_stay_sorted(library, tmp_path):
    """As ruff sees it, whichever import is put among them."""
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    (tmp_path / "mine").mkdir()
    for name in ("__init__", "nets", "seeds"):
        (tmp_path / "mine" / f"{name}.py").write_text("")
    (tmp_path / "ruff.toml").write_text("[lint]\nselect = ['I001']\n")
    places = ModuleMap(str(tmp_path))

    def own(package, file):
        place = places.locate(package, file)
        return place is not None and places.own(place.path, file)

    for number, head in enumerate(HEADS):
        path = tmp_path / f"before_{number}.py"
        path.write_text(f"{head}\nprint(1)\n")
        for statement in (
            "import os.path",
            "import random",
            "import numpy as np",
            "import torch",
            "from mine.seeds import y",
        ):
            if f"{statement}\n" in head:
                continue
            module = fixing.module_of(path.read_text(), library, str(path))
            module.own = functools.partial(own, file=str(path))
            edit = Imports(Editor(Layout(module))).placed(statement, None)
            name = f"after_{number}_{statement.split()[1].partition('.')[0]}.py"
            (tmp_path / name).write_text(fixing.patched(module, [edit]))
    done = subprocess.run([ruff, "check", "--no-cache", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_import_of_a_name(library):
    def ask(call):
        return NeedImport("project.seeding:set_seed"), InsertBefore(call.node, "{set_seed}({seed})")

    before = "import torch\nfrom project.model import Net\n\nf()\n"
    assert fixing.fixed(before, library, "f", ask, seed=7) == dedent(
        """\
        import torch
        from project.model import Net
        from project.seeding import set_seed

        set_seed(7)
        f()
        """
    )


LONG = ", ".join(f"a_long_name_{number}" for number in range(1, 6))


@pytest.mark.parametrize(
    ("before", "after", "tidy"),
    [
        ("from p import make", "from p import make, set_seed", True),
        ("from p import NAME, Net, train  # noqa", "from p import NAME, Net, set_seed, train  # noqa", True),
        ("from p import train, Net", "from p import train, Net, set_seed", False),
        ("from p import (make, train)", "from p import (make, set_seed, train)", False),
        ("from p import (make,)", "from p import (make, set_seed,)", False),
        ("from p import make, \\\n    train", "from p import make, \\\n    set_seed, train", False),
        ("from p import (\n    make,\n    train,\n)", "from p import (\n    make,\n    set_seed,\n    train,\n)", True),
        ("from p import (\n    train,\n)", "from p import (\n    set_seed,\n    train,\n)", True),
        ("from p import (\n    make,  # a\n)", "from p import (\n    make,  # a\n    set_seed,\n)", True),
        ("from p import (\n    make  # a\n)", "from p import (\n    make,  # a\n    set_seed\n)", False),
        ("from p import (\n    make,\n    # b\n    train,\n)",
         "from p import (\n    make,\n    set_seed,\n    # b\n    train,\n)", True),
        ("from p import (make,\n               train)",
         "from p import (make,\n               set_seed,\n               train)", False),
        ("from p import (train,\n               zip_up)",
         "from p import (set_seed,\n               train,\n               zip_up)", False),
        ("from p import (\n    make, net,\n    train)", "from p import (\n    make, net,\n    set_seed, train)", False),
        ("from p import (\n    make\n    , train\n)", "from p import (\n    make\n    , set_seed, train\n)", False),
        (f"from p import {LONG}",
         f"from p import (\n    {LONG.replace(', ', f',{chr(10)}    ')},\n    set_seed,\n)", True),
        (f"from p import {LONG}  # noqa",
         f"from p import (  # noqa\n    {LONG.replace(', ', f',{chr(10)}    ')},\n    set_seed,\n)", True),
        (f"from p import (\n    {LONG}, b)", f"from p import (\n    {LONG}, b,\n    set_seed)", False),
        ("from p import make as m", "from p import make as m\nfrom p import set_seed", True),
        ("from p import *", "from p import *\nfrom p import set_seed", False),
        ("from p import make\nfrom p import train",
         "from p import make\nfrom p import set_seed\nfrom p import train", False),
        ("from p import zoo as z", "from p import set_seed\nfrom p import zoo as z", True),
        ("from p import make; import q", "from p import make; import q\nfrom p import set_seed", False),
        ("from .p import make", "from p import set_seed\n\nfrom .p import make", False),
    ],
)  # fmt: skip
def test_name_goes_to_those_that_the_file_takes_of_the_module_already(before, after, tidy, library, tmp_path):
    def ask(call):
        return NeedImport("p:set_seed"), InsertBefore(call.node, "{set_seed}({seed})")

    tail = "def f():\n    pass\n\n\nf()\n"
    text = fixing.fixed(f"{before}\n\n\n{tail}", library, "f", ask)
    assert text == f"{after}\n\n\n{tail[:-4]}set_seed(0)\nf()\n"
    ruff = Path(sys.executable).with_name("ruff")
    if tidy and ruff.exists():
        path = tmp_path / "main.py"
        for content in (f"{before}\n\n\n{tail}", text):
            path.write_text(content)
            command = [ruff, "check", "--isolated", "--select", "I", "--no-cache", path]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout


def test_seeds_stand_below_the_names_of_the_module(library):
    text = 'import torch\n\n__all__ = ["g"]\n__version__: str = "1"\n\n\ndef g():\n    pass\n\n\nf()\n'
    new = fixing.fixed(text, library, "f", seeds)
    assert new.partition("torch.manual_seed(0)")[0].endswith(
        '__version__: str = "1"\n\nrandom.seed(0)\nnp.random.seed(0)\n'
    )


def test_insertion_goes_above_the_comment_and_the_decorator(library):
    def ask(call):
        return (InsertBefore(call.node, "first()\nsecond()"),)

    before = "a = 1\n\n# about g\n@f\n@f()\ndef g():\n    pass\n"
    assert (
        fixing.fixed(before, library, "f", ask)
        == "a = 1\n\nfirst()\nsecond()\n# about g\n@f\n@f()\ndef g():\n    pass\n"
    )


def test_insertion_before_an_elif_goes_before_the_if(library):
    def ask(call):
        return (InsertBefore(call.node, "first()"),)

    before = "def g():\n\tif a:\n\t\tpass\n\telif f():\n\t\tpass\n"
    assert fixing.fixed(before, library, "f", ask) == "def g():\n\tfirst()\n\tif a:\n\t\tpass\n\telif f():\n\t\tpass\n"


LOADER = dedent(
    """\
    import torch
    from torch.utils.data import DataLoader


    def load(data):
        train = DataLoader(data, num_workers=2)
        return train, DataLoader(data, num_workers=4)
    """
)


def test_helpers_are_defined_once(library):
    assert fixing.fixed(LOADER, library, "DataLoader", worker) == dedent(
        """\
        import random

        import torch
        from torch.utils.data import DataLoader


        def seed_worker(worker_id):
            worker_seed = torch.initial_seed() % 2**32
            random.seed(worker_seed)


        def load(data):
            train = DataLoader(data, num_workers=2, worker_init_fn=seed_worker)
            return train, DataLoader(data, num_workers=4, worker_init_fn=seed_worker)
        """
    )


@pytest.mark.parametrize(
    "existing",
    [
        "def seed_worker(worker_id):\n    random.seed(worker_id)\n",
        "def init_worker(number):\n    seed = 3\n    np.random.seed(seed + number)\n",
        "from project import seed_worker\n",
    ],
)
def test_worker_function_of_the_file_is_used(existing, library):
    name = "init_worker" if "init_worker" in existing else "seed_worker"
    text = f"from torch.utils.data import DataLoader\n{existing}\n\ndef load(d): return DataLoader(d, num_workers=2)\n"
    assert fixing.fixed(text, library, "DataLoader", worker) == text.replace(
        "num_workers=2", f"num_workers=2, worker_init_fn={name}"
    )


@pytest.mark.parametrize("existing", ["seed_worker = Net()\n", "def g(seed_worker): pass\n"])
def test_helper_takes_a_name_that_is_free(existing, library):
    text = f"import torch\n{existing}x = f(d)\n"
    assert "x = f(d, worker_init_fn=seed_data_worker)" in fixing.fixed(text, library, "f", worker)


def test_program_is_not_seeded_where_torch_is_optional(library):
    text = "try:\n    import torch\nexcept ImportError:\n    HAS_TORCH = False\n\nf()\n"
    assert "cannot be imported" in fixing.refusal(text, library, "f", seeds)


def test_program_that_goes_on_without_torch_is_seeded_with_it_only(library):
    text = "try:\n    import torch\nexcept ImportError:\n    torch = None\n\nf()\n"
    assert "\nif torch is not None:\n    torch.manual_seed(0)\n" in fixing.fixed(text, library, "f", seeds)


def test_helper_stands_above_the_statement_that_needs_it(library):
    text = "import torch\nloader = f(d)\nimport os\n"
    fixed = fixing.fixed(text, library, "f", worker)
    assert fixed.index("def seed_worker") < fixed.index("loader = ")


def test_worker_function_leaves_numpy_alone_where_only_generators_are_used(library):
    text = "import numpy as np\nimport torch\nrng = np.random.default_rng(0)\nf(d)\n"
    assert "np.random.seed" not in fixing.fixed(text, library, "f", worker)


def test_seeds_stand_at_the_start_of_the_main_guard(library):
    text = "import torch\n\ndef main():\n    pass\n\n\nif __name__ == '__main__':  # go\n    # run it\n    main()\n"
    fixed = fixing.fixed(text, library, "main", seeds)
    assert (
        "# go\n    random.seed(0)\n    np.random.seed(0)\n    torch.manual_seed(0)\n    # run it\n    main()\n" in fixed
    )
    assert fixed.startswith("import random\n\nimport numpy as np\nimport torch\n")


def test_seeds_in_a_main_guard_of_one_line(library):
    text = "import torch\n\nif __name__ == '__main__': main()\n"
    assert (
        "'__main__':\n    random.seed(0)\n    np.random.seed(0)\n    torch.manual_seed(0)\n    main()\n"
        in fixing.fixed(text, library, "main", seeds)
    )


def test_seeds_in_a_main_guard_stand_below_the_import_that_they_need(library):
    text = "if __name__ == '__main__':\n    names = dir()\n\n    import torch\n    import json\n\n    f()\n"
    fixed = fixing.fixed(text, library, "f", torch_seed)
    assert fixed.endswith("    import torch\n    import json\n\n    torch.manual_seed(0)\n    f()\n")
    text = "if __name__ == '__main__':\n    f()\n    import torch\n"
    _, (planned,) = fixing.fixes(text, library, "f", torch_seed)
    assert planned.withheld == "the file imports torch on some condition only"


def test_seeds_stand_after_the_imports_where_the_draw_is_outside_the_guard(library):
    text = "import torch\n\nnet = f()\n\nif __name__ == '__main__':\n    main()\n"
    fixed = fixing.fixed(text, library, "f", seeds)
    assert "import torch\n\nrandom.seed(0)\nnp.random.seed(0)\ntorch.manual_seed(0)\n\nnet = f()\n" in fixed


@pytest.mark.parametrize(
    "head", ["import random\nimport numpy as np\nimport torch\n", "from transformers import set_seed\n"]
)
def test_seeding_function_at_hand_is_called(head, library):
    own = (
        ""
        if "set_seed" in head
        else ("\n\ndef set_seed(seed):\n    random.seed(seed)\n    np.random.seed(seed)\n    torch.manual_seed(seed)\n")
    )
    text = f"{head}{own}\n\nif __name__ == '__main__':\n    main()\n"
    ask = (NeedHelper("seeds", ALL, own=("set_seed",) if own else ()),)
    assert fixing.fixed(text, library, "main", lambda _: ask, seed=3) == text.replace(
        "    main()", "    set_seed(3)\n    main()"
    )


@pytest.mark.parametrize(
    ("before", "holds"),
    [
        (
            "import torch\nclass A:\n    a = f(d)\n    def g(self, seed_worker): return f(d)\n",
            "a = f(d, worker_init_fn=seed_data_worker)",
        ),
        ("def g(torch): return f(torch)\n", "worker_seed = the_torch.initial_seed()"),
        ("import torch\nx = [f(a) for a in b]; import os\n", "\n\nx = [f(a, worker_init_fn=seed_worker) for"),
        ('"""d"""; import torch\nf(a)\n', "\n\ndef seed_worker(worker_id):"),
        ("import torch\n# %%\nf(a)\n", "random.seed(worker_seed)\n\n\n# %%\n"),
        ("from torch import initial_seed\nf(a)\n", "worker_seed = initial_seed()"),
        ("\ufeffimport torch\r\nf(a)\r\n", "\r\n\r\n\r\ndef seed_worker(worker_id):\r\n    worker_seed = torch"),
    ],
)
def test_helper_fits_the_file(before, holds, library):
    assert holds in fixing.fixed(before, library, "f", worker)


@pytest.mark.parametrize(
    ("head", "line"),
    [("def work(rank):", "torch.manual_seed(rank)"), ("def work(data):\n    '''Doc.'''", "torch.manual_seed(0)")],
)
def test_target_of_a_process_is_seeded(head, line, library):
    def ask(call):
        return (SeedFunction("work", ("torch",)),)

    text = f"import torch\n{head}\n    pass\nf(work)\n"
    assert fixing.fixed(text, library, "f", ask) == text.replace("    pass", f"    {line}\n    pass")


@pytest.mark.parametrize(
    ("head", "seed", "line"),
    [
        ("def work(rank):", "f(7)", "torch.manual_seed(7 + rank)"),
        ("def work(rank, seed):", "f(seed * 2)", "torch.manual_seed((seed * 2) + rank)"),
        ("def work(args):", "f(args.seed)", "torch.manual_seed(args.seed)"),
    ],
)
def test_target_of_a_process_is_given_the_seed_of_the_program(head, seed, line, library):
    def ask(call):
        return (SeedFunction("work", ("torch",), call.node),)

    text = f"import torch\n{head}\n    pass\n{seed}\n"
    assert fixing.fixed(text, library, "f", ask) == text.replace("    pass", f"    {line}\n    pass")


@pytest.mark.parametrize(
    "seed", ["f(args.seed)", "f(*seeds)", "if rank:\n    pass\nelse:\n    f(0)", "if on:\n    f(0)"]
)
def test_target_of_a_process_that_does_not_know_the_seed(seed, library):
    def ask(call):
        return (SeedFunction("work", ("torch",), call.node),)

    text = f"import torch\ndef work(rank):\n    pass\n{seed}\n"
    assert "has to be given that seed" in fixing.refusal(text, library, "f", ask)


def test_target_of_a_process_that_is_no_plain_function(library):
    def ask(call):
        return (SeedFunction("work", ("torch",)),)

    assert "not a plain function" in fixing.refusal("def work(): pass\nf(work)\n", library, "f", ask)


def test_import_is_not_made_sure_of_where_the_file_does_without(library):
    text = "import os\n\ndef g():\n    f()\n\nif has_torch():\n    import torch\n    import torch.nn\n"
    assert "condition" in fixing.refusal(text, library, "f", worker)


@pytest.mark.parametrize(
    ("value", "others", "applicability"),
    [
        ("args.fast", "", "unsafe"),
        ("args.fast", "print(args.fast)", "safe"),
        ("config.CUDNN.BENCHMARK", "print(config.CUDNN.BENCHMARK)", "unsafe"),
        ("args.fast and args.cuda", "", "safe"),
        ("len(args.gpus) > 1", "", "safe"),
        ("True", "", "safe"),
    ],
)
def test_an_option_that_only_turns_benchmark_mode_on_is_not_left_without_effect(value, others, applicability):
    text = f"import torch\n\ndef setup(args, config):\n    torch.backends.cudnn.benchmark = {value}\n    {others}\n"
    (finding,) = [one for one in api.lint_source(text) if one.code == "TDL201"]
    assert finding.fix.applicability == applicability


@pytest.mark.parametrize(
    ("other", "applicability"),
    [("cudnn.benchmark, cudnn.deterministic = False, True", "unsafe"), ("print(seed)", "safe")],
)
def test_a_choice_of_the_program_between_two_modes_is_left_to_it(other, applicability):
    text = (
        "import torch.backends.cudnn as cudnn\n\ndef setup(seed):\n    if seed == 0:\n"
        f"        {other}\n    else:\n        cudnn.benchmark, cudnn.deterministic = True, False\n"
    )
    found = [one for one in api.lint_source(text) if one.code in ("TDL201", "TDL202")]
    assert [one.fix.applicability for one in found] == [applicability] * 2


@pytest.mark.parametrize(("place", "applicability"), [("[-1]", "unsafe"), ("[0]", "safe")])
def test_the_last_file_is_not_taken_by_name_unasked(place, applicability):
    text = f'import glob\n\npaths = glob.glob("runs/epoch_*.pt")\nprint(open(paths{place}).read())\n'
    (finding,) = [one for one in api.lint_source(text) if one.code == "TDL304"]
    assert finding.fix.applicability == applicability
    assert ("epoch_10" in finding.help) == (applicability == "unsafe")


def test_benchmark_mode_that_an_option_turns_on_may_be_on():
    switch = "torch.backends.cudnn.benchmark = True"
    text = f"import torch\n\ndef setup(args):\n    if args.cudnn_benchmark:\n        {switch}\n"
    (finding,) = [one for one in api.lint_source(text) if one.code == "TDL201"]
    assert "may be on" in finding.message
    assert finding.message.endswith("(`args.cudnn_benchmark`)")


@pytest.mark.parametrize(("requirement", "applicability"), [("torch>=1.4", "unsafe"), ("torch>=1.6", "safe")])
def test_argument_that_a_release_the_project_allows_does_not_take_is_unsafe(requirement, applicability, tmp_path):
    (tmp_path / "requirements.txt").write_text(f"{requirement}\n")
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(
        "import torch\nfrom torch.utils.data import DataLoader, RandomSampler\n\ntorch.manual_seed(1)\n"
        "print(list(DataLoader([1, 2], shuffle=True)), list(RandomSampler([1, 2])))\n"
    )
    found = api.lint(tmp_path, select=["TDL302", "TDL303"], cache_dir="")
    assert [(one.code, one.fix.applicability) for one in found] == [
        ("TDL302", applicability),
        ("TDL303", applicability),
    ]


def test_safe_generators_take_the_first_seeds(tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\nfrom torch.utils.data import DataLoader, RandomSampler\n\n\n"
        "torch.manual_seed(0)\n"
        "for _ in range(3):\n    print(list(DataLoader([1, 2], shuffle=True)))\n"
        "print(list(DataLoader([1, 2], shuffle=True)))\n"
        "print(list(RandomSampler([1, 2])))\n"
    )
    found = api.lint(tmp_path, select=["TDL302", "TDL303"], cache_dir="")
    edits = {one.location.row: one.fix.edits[-1].content for one in found}
    seeds = {row: text.partition("initial_seed()")[2].partition(")")[0] for row, text in edits.items()}
    assert seeds == {7: " + 2", 8: "", 9: " + 1"}


@pytest.mark.parametrize(("read", "written"), [("random_seed", "random_seed % 2**32"), ("seed", "seed % 2**32")])
def test_the_option_that_the_program_seeds_with_is_the_seed(tmp_path, read, written):
    (tmp_path / "options.py").write_text(
        "import argparse\n\n\ndef parse_args():\n    parser = argparse.ArgumentParser()\n"
        '    parser.add_argument("--seed", type=int, default=1)\n'
        '    parser.add_argument("--random_seed", type=int, default=2)\n    return parser.parse_args()\n'
    )
    (tmp_path / "train.py").write_text(
        "import numpy as np\nimport options\nimport torch\n\n\ndef main():\n    args = options.parse_args()\n"
        f"    torch.manual_seed(args.{read})\n    print(np.random.rand(), torch.rand(1))\n\n\nmain()\n"
    )
    (found,) = api.lint(tmp_path, select=["TDL102"], cache_dir="")
    assert f"np.random.seed(args.{written})" in found.fix.edits[-1].content
    assert found.fix.applicability == "safe"


@pytest.mark.parametrize(("seed", "applicability"), [("args.seed", "unsafe"), ("0", "safe")])
def test_a_constant_is_not_safe_beside_a_seed_that_a_function_is_given(tmp_path, seed, applicability):
    (tmp_path / "train.py").write_text(
        "import random\nimport hydra\nimport torch\n\n\ndef make(args):\n"
        f"    torch.manual_seed({seed})\n    return torch.nn.Linear(2, 2)\n\n\n"
        '@hydra.main(config_path="conf", config_name="config")\ndef main(args):\n'
        '    print(make(args).weight, random.random())\n\n\nif __name__ == "__main__":\n    main()\n'
    )
    (found,) = api.lint(tmp_path, select=["TDL103"], cache_dir="")
    assert found.fix.applicability == applicability


@pytest.mark.parametrize(
    ("above", "indent"),
    [
        ('"""The backbone\n\nAuthors:\n  * Ada 1843\n"""\n', "    "),
        ("# Authors:\n  # Ada\n", "    "),
        ("def first():\n  return 1\n", "  "),
    ],
)
def test_a_helper_is_indented_as_the_code_of_the_file_is(library, above, indent):
    text = f"{above}from torch.utils.data import DataLoader\n\nloader = DataLoader(data, num_workers=2)\n"
    fixed = fixing.fixed(text, library, "DataLoader", worker)
    assert f"def seed_worker(worker_id):\n{indent}worker_seed" in fixed


@pytest.mark.parametrize(
    ("below", "left"),
    [
        ("import os\nimport numpy as np\nimport torch\n", "import os\n"),
        ("import os\n\nimport torch\nimport numpy as np\n\nimport sys\n", "import os\n\nimport sys\n"),
        ("import numpy as np  # for the noise\nimport torch\n", "import numpy as np  # for the noise\n"),
    ],
)
def test_an_import_that_goes_above_the_seeds_does_not_stay_below_them(tmp_path, below, left):
    (tmp_path / "lib.py").write_text("import numpy as np\n\nNOISE = np.random.rand(3)\n")
    text = f"from lib import NOISE\n{below}\nprint(NOISE, np.random.rand(3), torch.rand(1))\n"
    (tmp_path / "train.py").write_text(text)
    fixed = api.fix_source(text, str(tmp_path / "train.py"), select=["TDL101", "TDL102"])
    assert fixed == (
        "import numpy as np\nimport torch\n\nnp.random.seed(0)\ntorch.manual_seed(0)\n\n"
        f"from lib import NOISE\n{left}\nprint(NOISE, np.random.rand(3), torch.rand(1))\n"
    )
