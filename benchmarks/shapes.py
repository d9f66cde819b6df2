"""`shapes.py [NAME…]`: how the work for a program grows with it, for every shape of program that somebody thought of.

Each shape is a program of n parts that are alike. It is linted, linted and fixed, and reported at n, 2n, 4n and 8n
parts, each in a process of its own, and the time is compared with the size of the text. A shape fails where time grows
faster than size to the power of 1.2, unless libcst's parser alone grows as fast (one very long expression), or where a
megabyte takes more than five seconds and more than so many times what libcst takes to parse it. Start-up and the
reading of the catalogue are taken off. `tests/test_shapes.py` counts calls in place of seconds.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from multiprocessing.connection import Connection

EXPONENT = 1.2
SECONDS_A_MEGABYTE = 5.0
# A megabyte of short lines with a finding in each is 20,000 findings and more, and libcst alone takes 3 to 11 s to
# parse it. Where the five seconds are not held, the limit is a multiple of that floor. A fix lints at least twice,
# before and after.
TIMES_THE_FLOOR = {"lint": 10.0, "fix": 20.0, "report": 3.0}
MODES = tuple(TIMES_THE_FLOOR)
# Less time than this is noise: a shape that is linted so fast is not judged by its growth.
NOISE = 0.05
LIMIT = 60


class Shape(NamedTuple):
    """A program of n parts: its files by name, and an n at which it is some kilobytes."""

    make: Callable[[int], Mapping[str, str]]
    parts: int


class Time(NamedTuple):
    """What a shape of `size` bytes took, and libcst to parse it; `peak` is the memory of the process, in megabytes."""

    parts: int
    size: int
    seconds: float
    parsing: float
    peak: int

    @property
    def a_megabyte(self) -> float:
        """Seconds for a megabyte."""
        return self.seconds / self.size * 1e6

    @property
    def times_the_floor(self) -> float:
        """How many times what libcst takes."""
        return self.seconds / max(self.parsing, 1e-4)


class Taken(NamedTuple):
    """What one process took."""

    seconds: float
    parsing: float
    peak: int


SHAPES: dict[str, Shape] = {}


def shape(parts: int) -> Callable[[Callable[[int], str | Mapping[str, str]]], Callable[[int], str | Mapping[str, str]]]:
    """Enter a function that makes the text of a program of n parts, or its files."""

    def enter(make: Callable[[int], str | Mapping[str, str]]) -> Callable[[int], str | Mapping[str, str]]:
        def files(n: int) -> Mapping[str, str]:
            made = make(n)
            return {"example.py": made} if isinstance(made, str) else made

        SHAPES[make.__name__.strip("_").replace("_", "-")] = Shape(files, parts)
        return make

    return enter


def lines(n: int, row: str, head: str = "import torch\n", tail: str = "") -> str:
    """`row` n times, `{i}` being its number, after `head`."""
    return head + "".join(row.replace("{i}", str(i)) + "\n" for i in range(n)) + tail


def block(n: int, row: str, define: str = "def f(x, y, *args):", head: str = "import torch\n", tail: str = "") -> str:
    """`row` n times in the body of a function."""
    return lines(n, f"    {row}", f"{head}{define}\n", tail)


def notebook(cells: Sequence[str]) -> str:
    """A notebook of code cells."""
    made = [
        {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": source}
        for source in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


HEAD = "import os, glob, random\nimport numpy as np\nimport torch\nfrom torch.utils.data import DataLoader\n"
UPSAMPLED = "torch.nn.functional.interpolate(x, scale_factor=2, mode='bilinear')"
LOADER = "DataLoader(data, shuffle=True, num_workers=4)"


@shape(500)
def _simple_lines(n: int) -> str:
    return lines(n, "x{i} = {i}", HEAD)


@shape(500)
def _one_name(n: int) -> str:
    return lines(n, "x = {i}", HEAD)


@shape(300)
def _draws(n: int) -> str:
    return lines(n, "x = torch.rand(1)", HEAD)


@shape(300)
def _draws_apart(n: int) -> str:
    return lines(n, "x{i} = torch.rand(1)", HEAD)


@shape(150)
def _settings(n: int) -> str:
    return lines(n, "torch.backends.cudnn.benchmark = True", HEAD)


@shape(150)
def _settings_in_pairs(n: int) -> str:
    return lines(n, "torch.backends.cudnn.benchmark = True; torch.backends.cudnn.benchmark = True", HEAD)


@shape(300)
def _settings_off(n: int) -> str:
    return lines(n, "torch.backends.cudnn.benchmark = False", HEAD)


@shape(120)
def _loops_through_each_other(n: int) -> str:
    row = "for x in y:\n        s.add((x, y))\n    for y in x:\n        s.add(y)"
    return block(n, row, "def f(x, y, s=set()):", tail="    return torch.tensor(list(s))\n")


@shape(400)
def _parameters_kept_by_a_data_set(n: int) -> str:
    parameters = ", ".join(f"p{i}=None" for i in range(n))
    kept = lines(n, "        self.a{i} = p{i}", f"class Rows:\n    def __init__(self, {parameters}):\n")
    draws = "    def __getitem__(self, i):\n        return np.random.rand(2)\n"
    return f"{HEAD}{kept}{draws}DataLoader(Rows(p0=1), num_workers=2)\n"


@shape(400)
def _settled_flags(n: int) -> str:
    return block(n, "f{i} = True\n    if f{i}:\n        y{i} = torch.rand(1)", "def main():", tail="main()\n")


@shape(150)
def _setattr_settings(n: int) -> str:
    return lines(n, 'setattr(torch.backends.cudnn, "benchmark", True)', HEAD)


@shape(150)
def _index_add(n: int) -> str:
    return lines(n, 'x{i} = torch.zeros(3, device="cuda").index_add(0, i, s)', HEAD)


@shape(150)
def _rebinding_index_add(n: int) -> str:
    return lines(n, "x = x.index_add(0, i, s)", HEAD)


@shape(150)
def _scatter_in_place(n: int) -> str:
    return lines(n, "x.scatter_add_(0, i, s)", HEAD)


@shape(150)
def _cumsum(n: int) -> str:
    return lines(n, "y = x.float().cuda().cumsum(0)", HEAD)


@shape(150)
def _interpolate(n: int) -> str:
    return lines(n, 'y = torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear")', HEAD)


@shape(150)
def _hash_calls(n: int) -> str:
    return lines(n, 'k{i} = hash("a{i}") % 7', HEAD)


@shape(300)
def _imports(n: int) -> str:
    return lines(n, "import a{i}", HEAD)


@shape(300)
def _from_imports(n: int) -> str:
    return lines(n, "from a{i} import b{i}", HEAD)


@shape(150)
def _stars(n: int) -> str:
    return lines(n, "from a{i} import *", HEAD)


@shape(300)
def _aliases(n: int) -> str:
    return lines(n, "a{i} = torch", HEAD)


@shape(200)
def _chained_aliases(n: int) -> str:
    return lines(n, "a{i} = torch if {i} == 0 else a0", HEAD)


@shape(150)
def _seeds_by_time(n: int) -> str:
    return lines(n, "torch.manual_seed(int(time.time()))", HEAD)


@shape(300)
def _seed_calls(n: int) -> str:
    return lines(n, "torch.manual_seed({i})", HEAD)


@shape(150)
def _generators(n: int) -> str:
    return lines(n, "g{i} = torch.Generator()", HEAD)


@shape(150)
def _numpy_rng(n: int) -> str:
    return lines(n, "r{i} = np.random.default_rng()", HEAD)


@shape(150)
def _random_instances(n: int) -> str:
    return lines(n, "r{i} = random.Random()", HEAD)


@shape(150)
def _used_noqa(n: int) -> str:
    return lines(n, "torch.backends.cudnn.benchmark = True  # noqa: TDL201", HEAD)


@shape(150)
def _noqa_for_the_file(n: int) -> str:
    return lines(n, "# torchdet: noqa: TDL2", HEAD) + lines(n, "torch.backends.cudnn.benchmark = True", "")


@shape(300)
def _unused_noqa(n: int) -> str:
    return lines(n, "x{i} = {i}  # noqa: TDL402", HEAD)


@shape(1000)
def _comments(n: int) -> str:
    return lines(n, "# torch.rand(1) {i}", HEAD)


@shape(3000)
def _blank_lines(n: int) -> str:
    return lines(n, "", HEAD)


@shape(300)
def _docstrings(n: int) -> str:
    return lines(n, '"""torch.rand {i}"""', HEAD)


@shape(300)
def _strings(n: int) -> str:
    return lines(n, 's{i} = "torch.utils.data.DataLoader({i})"', HEAD)


@shape(200)
def _f_strings(n: int) -> str:
    return lines(n, 's{i} = f"{torch.rand(1)} and {x!r:>10}"', HEAD)


@shape(200)
def _devices_that_are_overwritten(n: int) -> str:
    return lines(n, 'd{i} = torch.device("cuda")\nd{i} = torch.device("cpu")\nx{i} = torch.rand(1).to(d{i})', HEAD)


@shape(300)
def _subscript_stores(n: int) -> str:
    return lines(n, 'd["k{i}"] = torch.rand(1)', HEAD)


@shape(300)
def _attribute_stores(n: int) -> str:
    return lines(n, "config.a{i} = {i}", HEAD)


@shape(300)
def _one_attribute_store(n: int) -> str:
    return lines(n, "config.a = torch", HEAD)


@shape(300)
def _augmented(n: int) -> str:
    return lines(n, "x += torch.rand(1)", HEAD)


@shape(300)
def _deletions(n: int) -> str:
    return lines(n, "x = torch.rand(1); del x", HEAD)


@shape(300)
def _asserts(n: int) -> str:
    return lines(n, "assert torch.rand(1) < 2", HEAD)


@shape(200)
def _lambdas(n: int) -> str:
    return lines(n, "f{i} = lambda x, y=torch.rand(1): x.index_add(0, y, y)", HEAD)


@shape(200)
def _walrus(n: int) -> str:
    return lines(n, "(x := torch.rand(1))", HEAD)


@shape(200)
def _comprehensions(n: int) -> str:
    return lines(n, "x = [torch.rand(y) for y in range({i}) if y]", HEAD)


@shape(150)
def _set_comprehensions(n: int) -> str:
    return lines(n, "x = [y for y in {z for z in w}]", HEAD)


@shape(150)
def _listdirs(n: int) -> str:
    return lines(n, "x{i} = os.listdir(p)", HEAD)


@shape(150)
def _listdir_loops(n: int) -> str:
    return lines(n, "for x in os.listdir(p): out.append(x)", HEAD)


@shape(150)
def _globs_one_name(n: int) -> str:
    return lines(n, "x = glob.glob(p)", HEAD)


@shape(150)
def _set_loops(n: int) -> str:
    return lines(n, 'for x in {"a", "b"}: out.append(x)', HEAD)


@shape(150)
def _set_names(n: int) -> str:
    return lines(n, "s = set(out)\nfor x in s: out.append(x)", HEAD)


@shape(150)
def _set_pops(n: int) -> str:
    return block(n, "s{i} = {a.lower() for a in y}; args.append(s{i}.pop())")


@shape(150)
def _set_unpackings(n: int) -> str:
    return block(n, "s = {a.lower() for a in y}; a{i}, b{i} = s; args.append(a{i})")


@shape(150)
def _options_that_name_classes(n: int) -> str:
    row = 'parser.add_argument("--kind{i}", default="K{i}")\nclass K{i}: pass\neval(args.kind{i})().train()'
    head = "import argparse\nimport torch\nparser = argparse.ArgumentParser()\nargs = parser.parse_args()\n"
    return lines(n, row, head)


@shape(100)
def _loaders_of_picked_classes(n: int) -> Mapping[str, str]:
    row = "DataLoader(data, num_workers=2, collate_fn=getattr(kinds, name).collate{i})"
    head = "import kinds\nfrom torch.utils.data import DataLoader\ndata = []\n"
    classes = lines(n, "class K{i}:\n    collate{i} = list", "")
    return {"example.py": lines(n, row, head), "kinds.py": classes}


@shape(200)
def _dict_updates(n: int) -> str:
    return lines(n, "d.update(a{i}={i})", HEAD)


@shape(150)
def _star_arguments(n: int) -> str:
    return lines(n, "DataLoader(data, *a, **k)", HEAD)


@shape(120)
def _dictionary_arguments(n: int) -> str:
    return lines(n, "k = dict(num_workers=4, shuffle=True)\nDataLoader(data, **k)", HEAD)


@shape(120)
def _loaders(n: int) -> str:
    return lines(n, "l{i} = DataLoader(data, shuffle=True, num_workers=4)", HEAD)


@shape(120)
def _partials(n: int) -> str:
    return lines(n, "p{i} = functools.partial(torch.utils.data.DataLoader, num_workers=2)\np{i}(data)", HEAD)


@shape(200)
def _getattrs(n: int) -> str:
    return lines(n, 'x{i} = getattr(torch, "rand")(1)', HEAD)


@shape(150)
def _environ(n: int) -> str:
    return lines(n, 'os.environ["PYTHONHASHSEED"] = "{i}"', HEAD)


@shape(100)
def _pools(n: int) -> str:
    return lines(n, "with Pool(4) as p{i}: out = list(p{i}.imap_unordered(f, xs))", HEAD)


@shape(150)
def _compile_calls(n: int) -> str:
    return lines(n, 'm{i} = torch.compile(m, mode="max-autotune")', HEAD)


@shape(150)
def _empties(n: int) -> str:
    return lines(n, "x{i} = torch.empty(3)\ny{i} = x{i} + 1", HEAD)


@shape(200)
def _sorted_listdirs(n: int) -> str:
    return lines(n, "x{i} = sorted(os.listdir(p))", HEAD)


@shape(300)
def _type_annotations(n: int) -> str:
    return lines(n, "x{i}: torch.Tensor = torch.rand(1)", HEAD)


@shape(200)
def _conversions(n: int) -> str:
    return lines(n, 'x = x.to("cuda").float().cpu()', HEAD)


@shape(200)
def _globals_read(n: int) -> str:
    return lines(n, "use(x{i}, torch.rand(1))", HEAD)


@shape(100)
def _asyncs(n: int) -> str:
    return lines(n, "async def f{i}(x): await x; return torch.rand(1)", HEAD)


@shape(200)
def _functions(n: int) -> str:
    return lines(n, "def f{i}(x): return x", HEAD)


@shape(100)
def _functions_with_findings(n: int) -> str:
    return lines(n, "def f{i}(x): torch.backends.cudnn.benchmark = True", HEAD)


@shape(100)
def _functions_that_return_loaders(n: int) -> str:
    return lines(n, "def f{i}(data): return DataLoader(data, shuffle=True, num_workers=4)", HEAD)


@shape(200)
def _functions_that_call_the_next(n: int) -> str:
    return lines(n, "def f{i}(x): return f{i}x(x) if x else torch.rand(1)", HEAD)


@shape(150)
def _one_function_name(n: int) -> str:
    return lines(n, "def f(x): return torch.rand(1)", HEAD)


@shape(100)
def _functions_with_index_add(n: int) -> str:
    return lines(n, "def f{i}(x, i, s): return x.cuda().index_add(0, i, s)", HEAD)


@shape(100)
def _functions_with_sets(n: int) -> str:
    return lines(n, "def f{i}(xs):\n    s = set(xs)\n    return [x for x in s]", HEAD)


@shape(150)
def _decorated_functions(n: int) -> str:
    return lines(n, "@torch.no_grad()\ndef f{i}(x): return torch.rand(1)", HEAD)


@shape(150)
def _classes(n: int) -> str:
    return lines(n, "class C{i}: a = {i}", HEAD)


@shape(80)
def _classes_with_findings(n: int) -> str:
    return lines(n, "class C{i}:\n    def f(self): torch.backends.cudnn.benchmark = True", HEAD)


@shape(60)
def _modules(n: int) -> str:
    return lines(
        n,
        "class C{i}(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.w = torch.nn.Parameter(torch.empty(3))\n"
        "    def forward(self, x): return x.index_add(0, self.i, x) + self.w",
        HEAD,
    )


@shape(60)
def _derived_classes(n: int) -> str:
    return lines(n, "class C{i}x(C{i}):\n    def forward(self, x): return self.step(x) + torch.rand(1)", HEAD)


@shape(60)
def _datasets(n: int) -> str:
    return lines(
        n,
        "class D{i}(torch.utils.data.Dataset):\n"
        "    def __init__(self, p): self.files = os.listdir(p)\n"
        "    def __getitem__(self, i): return self.files[i]\n"
        "    def __len__(self): return len(self.files)",
        HEAD,
    )


@shape(60)
def _trainers(n: int) -> str:
    return lines(n, "t{i} = Trainer(max_epochs=1, benchmark=True)", HEAD + "from lightning.pytorch import Trainer\n")


@shape(80)
def _properties(n: int) -> str:
    return lines(n, "class C{i}:\n    @property\n    def g(self): return torch.rand(1)", HEAD)


@shape(60)
def _main_guards(n: int) -> str:
    return lines(n, 'if __name__ == "__main__":\n    torch.rand({i})', HEAD)


@shape(60)
def _chain_of_bases(n: int) -> str:
    return (
        HEAD
        + "class C0(torch.nn.Module): pass\n"
        + "".join(
            f"class C{i + 1}(C{i}):\n    def forward(self, x): return self.a{i} + torch.rand(1)\n" for i in range(n)
        )
    )


@shape(150)
def _chain_of_functions(n: int) -> str:
    return (
        HEAD
        + "".join(f"def f{i}(x): return f{i + 1}(x)\n" for i in range(n))
        + f"def f{n}(x): return torch.rand(1)\nf0(1)\n"
    )


@shape(200)
def _chain_of_names(n: int) -> str:
    return HEAD + "x0 = torch.rand(1)\n" + "".join(f"x{i + 1} = x{i}\n" for i in range(n))


@shape(150)
def _chain_of_attributes(n: int) -> str:
    return (
        HEAD
        + "class C:\n    def f(self):\n        self.a0 = torch.rand(1)\n"
        + "".join(f"        self.a{i + 1} = self.a{i}\n" for i in range(n))
    )


@shape(200)
def _body_draws(n: int) -> str:
    return block(n, "x = torch.rand(1)", head=HEAD)


@shape(200)
def _body_names(n: int) -> str:
    return block(n, "x{i} = torch.rand(1)", head=HEAD)


@shape(100)
def _body_index_add(n: int) -> str:
    return block(n, "x = x.index_add(0, y, y)", head=HEAD)


@shape(100)
def _body_settings(n: int) -> str:
    return block(n, "torch.backends.cudnn.benchmark = True", head=HEAD)


@shape(80)
def _body_empties(n: int) -> str:
    return block(n, "x{i} = torch.empty(3); y += x{i}.sum()", head=HEAD)


@shape(60)
def _body_empties_filled_in_loops(n: int) -> str:
    return block(n, "x{i} = torch.empty(3)\n    for j in range(3): x{i}[j] = j", head=HEAD)


@shape(60)
def _body_empties_left_early(n: int) -> str:
    row = "x{i} = torch.empty(3)\n    for j in range(3):\n        x{i}[j] = j\n        if y: break"
    return block(n, row, head=HEAD)


@shape(80)
def _body_resizes(n: int) -> str:
    return block(n, "if x.numel() < {i}: x.resize_({i})\n    x[:{i}] = y", head=HEAD)


@shape(80)
def _branches_of_a_kernel(n: int) -> str:
    head = "import triton\nimport triton.language as tl\n"
    row = "if S > {i} + 1: tl.atomic_add(x, tl.load(y))"
    return block(n, row, "@triton.jit\ndef f(x, y, S: tl.constexpr):", head, "f[(1,)](1, 2, S=1)\n")


@shape(80)
def _body_listdirs(n: int) -> str:
    return block(n, "x{i} = os.listdir(y)", head=HEAD)


@shape(60)
def _body_listdirs_one_list(n: int) -> str:
    return block(n, "for z in os.listdir(y): x.append(z)", head=HEAD)


@shape(60)
def _body_sets(n: int) -> str:
    return block(n, "s{i} = set(y)\n    for z in s{i}: x.append(z)", head=HEAD)


@shape(60)
def _body_one_set(n: int) -> str:
    return block(n, "for z in s: x.append(z)", head=HEAD)


@shape(100)
def _body_items(n: int) -> str:
    return block(n, "d['k'] = torch.rand(1)", head=HEAD)


@shape(100)
def _body_items_apart(n: int) -> str:
    return block(n, "d['k{i}'] = torch.empty(3)", head=HEAD)


@shape(100)
def _body_ifs(n: int) -> str:
    return block(n, "if y: x = torch.rand(1)", head=HEAD)


@shape(60)
def _body_ops_under_ifs(n: int) -> str:
    return block(n, f"if y == {{i}}: x = {UPSAMPLED}", head=HEAD)


@shape(60)
def _private_functions_with_ops(n: int) -> str:
    row = "def _f{i}(x, y):\n    x = x.index_add(0, y, UPSAMPLED)\n    return _f0(_g{i}(x, y), y)"
    row += "\n\ndef _g{i}(x, y):\n    return _f{i}(x, y)\n"
    return lines(n, row.replace("UPSAMPLED", UPSAMPLED), HEAD)


@shape(60)
def _private_functions_in_a_chain(n: int) -> str:
    functions = (f"def _f{i}(x):\n    x = {UPSAMPLED}\n    return _f{i + 1}(x)\n\n" for i in range(n))
    return HEAD + "".join(functions)


@shape(100)
def _body_if_else(n: int) -> str:
    return block(n, "if y: x = x.index_add(0, y, y)\n    else: x = x + 1", head=HEAD)


@shape(80)
def _body_tries(n: int) -> str:
    return block(n, "try: x = torch.rand(1)\n    except E: x.index_add_(0, y, y)", head=HEAD)


@shape(20)
def _body_whiles(n: int) -> str:
    return block(n, "while x: x = x.index_add(0, y, y)", head=HEAD)


@shape(60)
def _body_fors(n: int) -> str:
    return block(n, "for x in y: x = x.index_add(0, y, y)", head=HEAD)


@shape(100)
def _body_withs(n: int) -> str:
    return block(n, "with torch.no_grad() as z: x = torch.rand(1)", head=HEAD)


@shape(100)
def _body_returns(n: int) -> str:
    return block(n, "if y: return x.index_add(0, y, y)", head=HEAD)


@shape(80)
def _body_lambdas(n: int) -> str:
    return block(n, "g{i} = lambda z: z.index_add(0, x, y)", head=HEAD)


@shape(60)
def _body_functions(n: int) -> str:
    return block(n, "def g{i}(z): return z.index_add(0, x, y)", head=HEAD)


@shape(100)
def _body_calls_of_itself(n: int) -> str:
    return block(n, "x = f(x, y)", head=HEAD)


@shape(80)
def _body_globals(n: int) -> str:
    return block(n, "global a{i}; a{i} = torch.rand(1)", head=HEAD)


@shape(60)
def _body_loaders(n: int) -> str:
    return block(n, "l{i} = DataLoader(data, shuffle=True, num_workers=4)", head=HEAD)


@shape(60)
def _body_zips(n: int) -> str:
    return block(n, "for a, b in zip(set(x), y): args.append(a)", head=HEAD)


@shape(40)
def _body_matches(n: int) -> str:
    return block(n, "match y:\n        case [a, b]: x = a.index_add(0, y, b)", head=HEAD)


@shape(60)
def _body_string_sums(n: int) -> str:
    return block(n, 'x = x + str(y) + "a{i}"', head=HEAD)


@shape(100)
def _body_yields(n: int) -> str:
    return block(n, "yield x.index_add(0, y, y)", head=HEAD)


@shape(60)
def _methods_with_self_x(n: int) -> str:
    return lines(
        n,
        "    def f{i}(self):\n        self.x = torch.rand(1)\n        return self.x.index_add(0, self.x, self.x)",
        HEAD + "class C:\n",
    )


@shape(60)
def _methods_with_own_attribute(n: int) -> str:
    return lines(
        n,
        "    def f{i}(self):\n        self.a{i} = torch.empty(3)\n        return self.a{i} + 1",
        HEAD + "class C(torch.nn.Module):\n",
    )


@shape(100)
def _self_a_in_one_method(n: int) -> str:
    return lines(n, "        self.a = self.a.index_add(0, x, x)", HEAD + "class C:\n    def f(self, x):\n")


@shape(100)
def _attributes_in_one_method(n: int) -> str:
    return lines(
        n,
        "        self.a{i} = torch.empty(3)",
        HEAD + "class C(torch.nn.Module):\n    def __init__(self, x):\n",
        "    def forward(self):\n        return self.a0\n",
    )


@shape(60)
def _buffers(n: int) -> str:
    return lines(
        n,
        '        self.register_buffer("b{i}", torch.empty(3))',
        HEAD + "class C(torch.nn.Module):\n    def __init__(self, x):\n",
        "    def forward(self):\n        return self.b0\n",
    )


@shape(80)
def _layers(n: int) -> str:
    return lines(
        n,
        '        self.l{i} = torch.nn.Upsample(scale_factor=2, mode="bilinear")',
        HEAD + "class C(torch.nn.Module):\n    def __init__(self):\n",
        "    def forward(self, x):\n" + "".join(f"        x = self.l{i}(x)\n" for i in range(n)) + "        return x\n",
    )


@shape(40)
def _match_cases_that_bind(n: int) -> str:
    return lines(n, "        case [a{i}, b{i}]: x = a{i}.index_add(0, x, x)", HEAD + "def f(x):\n    match x:\n")


@shape(100)
def _match_constants(n: int) -> str:
    return lines(n, "        case {i}: x = torch.rand(1)", HEAD + "def f(x):\n    match x:\n")


@shape(60)
def _elif_chain(n: int) -> str:
    return HEAD + "def f(x):\n    if x == -1: pass\n" + "".join(f"    elif x == {i}: torch.rand(1)\n" for i in range(n))


@shape(60)
def _elif_chain_at_top(n: int) -> str:
    return HEAD + "if x == -1: pass\n" + "".join(f"elif x == {i}: y{i} = torch.rand(1)\n" for i in range(n))


@shape(60)
def _except_handlers(n: int) -> str:
    return HEAD + "def f(x):\n    try: pass\n" + "".join(f"    except E{i}: x = torch.rand(1)\n" for i in range(n))


@shape(150)
def _parameters(n: int) -> str:
    return HEAD + "def f(" + ", ".join(f"a{i}=torch.rand({i})" for i in range(n)) + "): pass\n"


@shape(150)
def _annotated_parameters(n: int) -> str:
    return (
        HEAD
        + "def f("
        + ", ".join(f"a{i}: torch.Tensor" for i in range(n))
        + "):\n    return a0.index_add(0, a0, a0)\n"
    )


@shape(150)
def _arguments(n: int) -> str:
    return HEAD + "x = f(" + ", ".join(f"torch.rand({i})" for i in range(n)) + ")\n"


@shape(150)
def _keywords(n: int) -> str:
    return HEAD + "x = DataLoader(data, " + ", ".join(f"a{i}={i}" for i in range(n)) + ")\n"


@shape(300)
def _list_display(n: int) -> str:
    return HEAD + "x = [" + ", ".join(f"torch.rand({i})" for i in range(n)) + "]\n"


@shape(300)
def _rows_of_a_list(n: int) -> str:
    return HEAD + "x = [\n" + "".join(f"    [{i}, 2, 3],\n" for i in range(n)) + "]\ntorch.rand(x)\n"


@shape(150)
def _dictionary_of_empties(n: int) -> str:
    return HEAD + "x = {" + ", ".join(f'"k{i}": torch.empty(3)' for i in range(n)) + "}\n"


@shape(300)
def _set_display(n: int) -> str:
    return HEAD + "for y in {" + ", ".join(f'"k{i}"' for i in range(n)) + "}: out.append(y)\n"


@shape(60)
def _statements_on_one_line(n: int) -> str:
    return HEAD + "; ".join(["torch.backends.cudnn.benchmark = True"] * n) + "\n"


@shape(150)
def _targets(n: int) -> str:
    return HEAD + " = ".join(f"a{i}" for i in range(n)) + " = torch.rand(1)\n"


@shape(150)
def _unpacking(n: int) -> str:
    return HEAD + ", ".join(f"a{i}" for i in range(n)) + " = torch.rand(3)\n"


@shape(150)
def _unpacking_pairs(n: int) -> str:
    return HEAD + ", ".join(f"a{i}" for i in range(n)) + " = " + ", ".join(["torch.rand(1)"] * n) + "\n"


@shape(150)
def _binary_chain(n: int) -> str:
    return HEAD + "x = " + " + ".join(["torch.rand(1)"] * n) + "\n"


@shape(150)
def _seed_of_a_sum(n: int) -> str:
    return HEAD + "torch.manual_seed(" + " + ".join(["n"] * n) + ")\n"


@shape(20)
def _string_sum(n: int) -> str:
    return HEAD + "def f(a, b):\n    return a" + " + str(b)" * n + "\n"


@shape(100)
def _or_chain(n: int) -> str:
    return HEAD + "x = " + " or ".join(["torch.rand(1)"] * n) + "\n"


@shape(150)
def _comparison_chain(n: int) -> str:
    return HEAD + "x = " + " < ".join(["torch.rand(1)"] * n) + "\n"


@shape(20)
def _union_of_sets(n: int) -> str:
    return HEAD + "for x in " + " | ".join(f'{{"a{i}"}}' for i in range(n)) + ": out.append(x)\n"


@shape(40)
def _conditional_chain(n: int) -> str:
    return HEAD + "x = " + "".join(f"torch.rand(1) if a{i} else " for i in range(n)) + "None\n"


@shape(30)
def _chained_calls(n: int) -> str:
    return HEAD + "x = y" + ".add(1)" * n + "\n"


@shape(30)
def _chained_draws(n: int) -> str:
    return HEAD + "x = torch.rand(1)" + ".index_add(0, i, s)" * n + "\n"


@shape(100)
def _chained_attributes(n: int) -> str:
    return HEAD + "x = torch" + ".a" * n + "\n"


@shape(60)
def _chained_subscripts(n: int) -> str:
    return HEAD + "x = torch.rand(1)" + "[0]" * n + "\n"


@shape(100)
def _implicit_concatenation(n: int) -> str:
    return HEAD + "x = torch.load(" + " ".join(['"a"'] * n) + ")\n"


@shape(60)
def _union_annotation(n: int) -> str:
    return HEAD + "def f(x: " + " | ".join(f"T{i}" for i in range(n)) + "): return x.index_add(0, x, x)\n"


@shape(40)
def _for_clauses(n: int) -> str:
    return HEAD + "x = [torch.rand(1) " + " ".join(f"for a{i} in b{i}" for i in range(n)) + "]\n"


@shape(80)
def _if_clauses(n: int) -> str:
    return HEAD + "x = [torch.rand(1) for a in b " + " ".join(f"if c{i}" for i in range(n)) + "]\n"


@shape(1000)
def _long_name(n: int) -> str:
    return HEAD + "x" * n + " = torch.rand(1)\n"


@shape(10000)
def _long_string(n: int) -> str:
    return HEAD + 'x = "' + "torch " * n + '"\ntorch.rand(x)\n'


@shape(1000)
def _long_docstring(n: int) -> str:
    return '"""' + "torch.rand(1) DataLoader\n" * n + '"""\n' + HEAD + "torch.rand(1)\n"


@shape(10000)
def _long_comment(n: int) -> str:
    return HEAD + "#" + " torch.rand" * n + "\ntorch.rand(1)\n"


@shape(200)
def _backslashes(n: int) -> str:
    return HEAD + "x = torch.rand(1)" + " \\\n + 1" * n + "\n"


@shape(300)
def _all_list(n: int) -> str:
    return HEAD + "__all__ = [" + ", ".join(f'"a{i}"' for i in range(n)) + "]\ntorch.rand(1)\n"


@shape(60)
def _decorators(n: int) -> str:
    return HEAD + "".join(f"@d{i}(torch.rand)\n" for i in range(n)) + "def f(x): return torch.rand(1)\n"


@shape(60)
def _with_items(n: int) -> str:
    return (
        HEAD
        + "def f(x):\n    with "
        + ", ".join(f"torch.no_grad() as a{i}" for i in range(n))
        + ":\n        torch.rand(1)\n"
    )


@shape(150)
def _global_names(n: int) -> str:
    return HEAD + "def f():\n    global " + ", ".join(f"a{i}" for i in range(n)) + "\n    a0 = torch.rand(1)\n"


@shape(60)
def _nested_functions_side_by_side(n: int) -> str:
    return lines(n, "    def g{i}():\n        nonlocal x\n        x = x.index_add(0, x, x)", HEAD + "def f(x):\n")


@shape(100)
def _dispatch_table(n: int) -> str:
    return (
        HEAD
        + "".join(f"def f{i}(): return torch.rand(1)\n" for i in range(n))
        + "T = {"
        + ", ".join(f'"k{i}": f{i}' for i in range(n))
        + '}\nT["k0"]()\n'
    )


@shape(100)
def _calls_of_every_function(n: int) -> str:
    return (
        HEAD + "".join(f"def f{i}(): return torch.rand(1)\n" for i in range(n)) + "".join(f"f{i}()\n" for i in range(n))
    )


def _handed_on(n: int, first: str, values: Sequence[str], test: str) -> str:
    """Functions that call each other twice with another argument more, which the last one asks for."""
    lines = ["import random"]
    for i in range(n):
        names, taken = (", ".join(f"a{k}{default}" for k in range(i + 1)) for default in ("", first))
        lines += [f"def f{i}({taken}):", *(f"    f{i + 1}({names}, {value})" for value in values)]
    lines += [f"def f{n}({', '.join(f'a{k}{first}' for k in range(n + 1))}):"]
    lines += [f"    if a{k}{test}: random.random()" for k in range(n + 1)]
    return "\n".join([*lines, "if __name__ == '__main__':", f"    f0({values[0]})", ""])


@shape(10)
def _switches_handed_on(n: int) -> str:
    return _handed_on(n, "=False", ("True", "False"), "")


@shape(10)
def _texts_handed_on(n: int) -> str:
    return _handed_on(n, "", ("'x'", "'y'"), " == 'x'")


@shape(150)
def _calls_of_one_function(n: int) -> str:
    return HEAD + "def f(x): return torch.rand(x)\n" + "f(1)\n" * n


@shape(100)
def _instances_of_one_class(n: int) -> str:
    return (
        HEAD
        + "class C:\n    def f(self): return torch.rand(1)\n"
        + "".join(f"c{i} = C()\nc{i}.f()\n" for i in range(n))
    )


@shape(100)
def _layers_in_sequential(n: int) -> str:
    return HEAD + "m = torch.nn.Sequential(" + ", ".join(["torch.nn.Linear(1, 1)"] * n) + ")\nm(x)\n"


@shape(80)
def _overloads(n: int) -> str:
    return HEAD + "class C:\n" + "    def f(self, x): return torch.rand(1)\n" * n + "C().f(1)\n"


@shape(40)
def _notebook_cells(n: int) -> Mapping[str, str]:
    return {"example.ipynb": notebook([HEAD] + [LOADER + "\n"] * n)}


@shape(80)
def _notebook_plain_cells(n: int) -> Mapping[str, str]:
    return {"example.ipynb": notebook(["import torch\n"] + [f"x{i} = {i}\n" for i in range(n)])}


@shape(80)
def _notebook_one_cell(n: int) -> Mapping[str, str]:
    return {"example.ipynb": notebook([HEAD + (LOADER + "\n") * n])}


@shape(100)
def _notebook_magics(n: int) -> Mapping[str, str]:
    return {"example.ipynb": notebook(["import torch\n"] + ["!ls\n%time torch.rand(1)\n"] * n)}


@shape(100)
def _notebook_quotes(n: int) -> Mapping[str, str]:
    return {"example.ipynb": notebook(["import torch\n!ls\n" + '\\"""\n' * n])}


@shape(60)
def _notebook_settings(n: int) -> Mapping[str, str]:
    return {"example.ipynb": notebook(["import torch\n"] + ["torch.backends.cudnn.benchmark = True\n"] * n)}


FINDER = """
import importlib

def import_class(name):
    module, cls = name.rsplit(".", 1)
    return getattr(importlib.import_module(module), cls)

def build(config):
    return import_class(config["target"])(**config["params"])
"""


@shape(60)
def _files_that_texts_name(n: int) -> dict[str, str]:
    nets = {f"net{i}.py": HEAD + f"class Net{i}:\n    def __init__(self): self.w = torch.rand(1)\n" for i in range(n)}
    made = lines(n, '    import_class("net{i}.Net{i}")()', "from finder import import_class\ndef main():\n")
    return {"finder.py": FINDER, "main.py": f'{made}if __name__ == "__main__":\n    main()\n'} | nets


@shape(60)
def _parts_of_configurations(n: int) -> dict[str, str]:
    nets = {f"net{i}.py": HEAD + f"class Net{i}:\n    def __init__(self): self.w = torch.rand(1)\n" for i in range(n)}
    told = {f"conf/part{i}.yaml": f"part{i}:\n  target: net{i}.Net{i}\n  params: {{}}\n" for i in range(n)}
    made = lines(n, "    build(config.part{i})", "from finder import build\ndef main(config):\n")
    return {"finder.py": FINDER, "main.py": f'{made}if __name__ == "__main__":\n    main(1)\n'} | nets | told


@shape(60)
def _trainers_of_other_files(n: int) -> dict[str, str]:
    kinds = "from lightning.pytorch import Trainer\n" + lines(
        n, "class T{i}(Trainer):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)"
    )
    options = lines(n, 'O{i} = {"deterministic": False}')
    made = "import kinds, options\n" + lines(
        n, "a{i} = kinds.T{i}(deterministic=False)\nb{i} = kinds.T{i}(**options.O{i})"
    )
    return {"kinds.py": kinds, "options.py": options, "main.py": made}


@shape(30)
def _files_alone(n: int) -> Mapping[str, str]:
    return {f"m{i}.py": HEAD + "torch.rand(1)\n" for i in range(n)}


@shape(30)
def _files_in_a_chain(n: int) -> Mapping[str, str]:
    return {f"m{i}.py": HEAD + f"from m{i + 1} import f as g\ndef f(): return g()\n" for i in range(n)} | {
        f"m{n}.py": HEAD + "def f(): return torch.rand(1)\n",
        "main.py": 'from m0 import f\nif __name__ == "__main__":\n    f()\n',
    }


@shape(30)
def _files_from_one(n: int) -> Mapping[str, str]:
    return {f"m{i}.py": HEAD + "def f(): return torch.rand(1)\n" for i in range(n)} | {
        "main.py": "".join(f"from m{i} import f as f{i}\n" for i in range(n))
        + 'if __name__ == "__main__":\n'
        + "".join(f"    f{i}()\n" for i in range(n))
    }


# Python's parser takes a hundred blocks in each other and two hundred brackets.


def nested(n: int, row: str, core: str, head: str = "") -> str:
    """`row` n times, each in the block of the one before, and `core` in the innermost."""
    made = "".join("    " * i + row.replace("{i}", str(i)) + "\n" for i in range(n))
    return HEAD + head + made + "    " * n + core + "\n"


GRADED = """
def train(model, optimizer, x, y):
    model(x).sum().backward()
    optimizer.step()
    with torch.no_grad():
"""
TRAINED = """
if __name__ == "__main__":
    model = torch.nn.Linear(3, 3).cuda()
    train(model, torch.optim.SGD(model.parameters(), lr=1), torch.ones(1, 3).cuda(), torch.ones(1, 3).cuda())
"""


@shape(40)
def _files_without_gradients(n: int) -> Mapping[str, str]:
    """Functions that a training program runs without gradients, each in a file of its own, and files that name all of
    them where gradients are off."""
    score = "import torch.nn.functional as F\n\ndef score_{i}(x, y):\n    return F.grid_sample(x, y)\n"
    train = lines(n, "from score_{i} import score_{i}", "import torch\n") + lines(
        n, "        score_{i}(x, y)", GRADED, TRAINED
    )
    shown = "import torch\nfrom score_{i} import score_{i}\n\n@torch.no_grad()\ndef show(x, y):\n    score_{i}(x, y)\n"
    files = {f"score_{i}.py": score.replace("{i}", str(i)) for i in range(n)}
    files |= {f"show_{i}.py": shown.replace("{i}", str(i)) for i in range(n)}
    return files | {"train.py": train}


REGISTRY = """MODELS = {}

def register(function):
    MODELS[function.__name__] = function
    return function

@register
def make():
    return 1
"""


@shape(60)
def _functions_that_nothing_names(n: int) -> str:
    row = "def spare_{i}(x, y):\n    return x.cuda().index_add_(0, y, x), 'spare'\n"
    return lines(n, row, HEAD, "\nif __name__ == '__main__':\n    print(torch.ones(3))\n")


@shape(60)
def _sets_in_lists_that_are_saved(n: int) -> str:
    row = "def keep_{i}(xs, path):\n    rows = []\n    for x in xs:\n        row = {}\n"
    row += "        row['names'] = list(set(x))\n        rows.append(row)\n    json.dump(rows, open(path, 'w'))\n"
    return lines(n, row, "import json\n")


@shape(60)
def _sets_that_methods_fill(n: int) -> str:
    row = "class Rows_{i}:\n    def __init__(self):\n        self.nodes = set()\n"
    row += "    def add(self, left, right):\n        self.nodes.add(left)\n        self.nodes.add(right)\n"
    row += "    def read(self, path):\n        for line in open(path):\n            self.add(*line.split())\n"
    return lines(n, row + "        return list(self.nodes)\n", "import json\n")


@shape(60)
def _sets_in_a_dictionary(n: int) -> str:
    row = "    'k{i}': {'names': {'a{i}', 'b{i}'}, 'sizes': [1, 2]},"
    read = "def read_{i}():\n    chosen = ALL['k{i}']\n    return list(chosen['names']), list(chosen['sizes'])\n"
    return lines(n, row, "ALL = {\n") + "}\n" + lines(n, read, "")


@shape(40)
def _losses_of_layers(n: int) -> str:
    row = "class Loss_{i}(torch.nn.Module):\n    def forward(self, x, y):\n"
    row += "        return torch.nn.functional.cross_entropy(x, y)\n"
    used = "        self.loss_{i} = Loss_{i}()\n"
    called = "        self.loss_{i}(torch.nn.functional.interpolate(x, size=(8, 8), mode='bilinear'), y)\n"
    made = "class All(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    return lines(n, row, HEAD) + lines(n, used, made) + lines(n, called, "    def forward(self, x, y):\n")


@shape(40)
def _files_of_registries(n: int) -> Mapping[str, str]:
    """Registries, each in a file of its own, and a program that picks a function from each."""
    picks = lines(
        n, "    models_{i}[name]()", "\ndef main(name):\n", '\nif __name__ == "__main__":\n    main("make")\n'
    )
    main = lines(n, "from registry_{i} import MODELS as models_{i}", "import torch\n") + picks
    return {f"registry_{i}.py": REGISTRY for i in range(n)} | {"main.py": main}


@shape(10)
def _nested_functions(n: int) -> str:
    return nested(n, "def f{i}(x):", "return torch.rand(1)")


@shape(10)
def _nested_functions_with_nonlocal(n: int) -> str:
    rows = "".join("    " * i + f"def f{i}():\n" + "    " * (i + 1) + "nonlocal x\n" for i in range(1, n))
    ends = "".join("    " * i + "x = x.index_add(0, x, x)\n" for i in range(n, 0, -1))
    return HEAD + "def f0(x):\n" + rows + ends


@shape(10)
def _nested_classes(n: int) -> str:
    return nested(n, "class C{i}:", "a = torch.rand(1)")


@shape(10)
def _nested_ifs(n: int) -> str:
    return nested(n, "if a{i}:", "x = torch.rand(1)")


@shape(5)
def _nested_fors(n: int) -> str:
    return nested(n, "for a{i} in b{i}:", "x = x.index_add(0, a0, a1)")


@shape(5)
def _nested_fors_in_a_function(n: int) -> str:
    made = "".join("    " * (i + 1) + f"for a{i} in os.listdir(x):\n" for i in range(n))
    return HEAD + "def f(x, out):\n" + made + "    " * (n + 1) + "out.append(a0)\n"


@shape(4)
def _nested_whiles(n: int) -> str:
    return nested(n, "while x:", "x = x.index_add(0, x, x)")


@shape(10)
def _nested_withs(n: int) -> str:
    return nested(n, "with torch.no_grad() as a{i}:", "x = torch.rand(1)")


@shape(5)
def _nested_tries(n: int) -> str:
    made = "".join("    " * i + "try:\n" for i in range(n)) + "    " * n + "x = torch.rand(1)\n"
    ends = "".join("    " * i + "except E:\n" + "    " * (i + 1) + "x = torch.empty(3)\n" for i in range(n - 1, -1, -1))
    return HEAD + made + ends


@shape(10)
def _nested_calls(n: int) -> str:
    return HEAD + "x = " + "f(" * n + "torch.rand(1)" + ")" * n + "\n"


@shape(10)
def _nested_library_calls(n: int) -> str:
    return HEAD + "x = " + "torch.cumsum(" * n + "x.cuda()" + ", 0)" * n + "\n"


@shape(10)
def _nested_parentheses(n: int) -> str:
    return HEAD + "x = " + "(" * n + "torch.rand(1)" + ")" * n + "\n"


@shape(10)
def _nested_lists(n: int) -> str:
    return HEAD + "x = " + "[" * n + "torch.rand(1)" + "]" * n + "\n"


@shape(10)
def _nested_dictionaries(n: int) -> str:
    return HEAD + "x = " + "{'a': " * n + "torch.rand(1)" + "}" * n + "\nDataLoader(data, **x)\n"


@shape(10)
def _nested_comprehensions(n: int) -> str:
    return HEAD + "x = " + "[" * n + "torch.rand(1)" + " for a in b]" * n + "\n"


@shape(10)
def _nested_lambdas(n: int) -> str:
    return HEAD + "x = " + "lambda a: (" * n + "torch.rand(1)" + ")" * n + "\n"


@shape(10)
def _nested_conditionals(n: int) -> str:
    return HEAD + "x = " + "(torch.rand(1) if a else " * n + "None" + ")" * n + "\n"


@shape(10)
def _nested_subscripts(n: int) -> str:
    return HEAD + "x = " + "a[" * n + "torch.rand(1)" + "]" * n + "\n"


@shape(10)
def _nested_sets(n: int) -> str:
    return HEAD + "for x in " + "set(" * n + "y" + ")" * n + ": out.append(x)\n"


@shape(10)
def _nested_annotations(n: int) -> str:
    return HEAD + "def f(x: " + "list[" * n + "torch.Tensor" + "]" * n + "): return x.index_add(0, x, x)\n"


@shape(10)
def _nested_not(n: int) -> str:
    return HEAD + "x = " + "not " * n + "torch.rand(1)\n"


@shape(10)
def _nested_minus(n: int) -> str:
    return HEAD + "x = " + "-" * n + "torch.rand(1)\n"


@shape(10)
def _nested_awaits(n: int) -> str:
    return HEAD + "async def f(x):\n    return " + "await (" * n + "x" + ")" * n + "\ntorch.rand(1)\n"


@shape(3)
def _nested_patterns(n: int) -> str:
    return HEAD + "def f(x):\n    match x:\n        case " + "[" * n + "a" + "]" * n + ": torch.rand(1)\n"


@shape(3)
def _nested_class_patterns(n: int) -> str:
    return HEAD + "def f(x):\n    match x:\n        case " + "C(" * n + "a" + ")" * n + ": torch.rand(1)\n"


# What each run of a program does.


def work(mode: str, files: Mapping[str, str]) -> Callable[[], object]:
    """What is measured of a mode, ready to be called."""
    from torchdet_lint import report
    from torchdet_lint.config.options import Settings
    from torchdet_lint.engine import repair, run
    from torchdet_lint.source.snippets import Snippets

    texts = {name: text.encode() for name, text in files.items()}
    settings = Settings(root=".", select=("ALL",), min_severity="note", unsafe_fixes=True, jobs=1)

    def lint() -> object:
        return run.conclude(run.gather([], settings, texts=texts), texts)

    def fix() -> object:
        return repair.repair([], settings, texts=texts)

    if mode != "report":
        return lint if mode == "lint" else fix
    result = run.conclude(run.gather([], settings, texts=texts), texts)

    def write() -> object:
        asked = report.Report(result, Snippets(texts))
        return [sum(map(len, report.writer(name)(asked))) for name in ("full", "json", "sarif", "github", "grouped")]

    return write


def measured(mode: str, files: Mapping[str, str], limit: int = LIMIT) -> Taken | None:
    """What a mode takes in a process of its own; None: longer than `limit`."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(mode, files, limit, sending))
    process.start()
    sending.close()
    answer: Taken | None = None
    try:
        answer = receiving.recv()
    except EOFError:  # the limit of CPU time has ended it
        answer = None
    process.join()
    return answer


def _measure(mode: str, files: Mapping[str, str], limit: int, sending: Connection) -> None:
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + limit, used + limit))
    run = work(mode, files)
    gc.disable()
    before = time.process_time()
    run()
    taken = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sending.send(Taken(taken, _parsing(files), peak))


def _parsing(files: Mapping[str, str]) -> float:
    """Seconds that libcst takes for the files; nothing for what it is not asked to parse."""
    import libcst

    from torchdet_lint.prefilter import chains, patterns

    texts = [text for name, file in files.items() for text in _sources(name, file)]
    before = time.process_time()
    for text in texts:
        if not chains.too_long(text) and not patterns.explode(text):
            with contextlib.suppress(libcst.ParserSyntaxError, RecursionError):
                libcst.parse_module(text)
    return time.process_time() - before


def _sources(name: str, text: str) -> list[str]:
    """The Python in a file: its text, or the cells of a notebook as one."""
    if name.endswith(".py"):
        return [text]
    if not name.endswith(".ipynb"):
        return []
    return ["\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")]


def series(
    make: Shape, mode: str, floor: float, limit: int = LIMIT, factors: Sequence[int] = (1, 2, 4, 8)
) -> list[Time]:
    """The times at n, 2n, 4n and 8n parts less `floor`; shorter where one takes too long."""
    found: list[Time] = []
    for factor in factors:
        files = make.make(make.parts * factor)
        taken = measured(mode, files, limit)
        if taken is None:
            found.append(Time(make.parts * factor, _size(files), math.inf, 0.0, 0))
            break
        seconds = max(taken.seconds - floor, 1e-4)
        found.append(Time(make.parts * factor, _size(files), seconds, taken.parsing, taken.peak))
    return found


def _size(files: Mapping[str, str]) -> int:
    return sum(len(text.encode()) for text in files.values())


def exponent(times: Sequence[Time]) -> float:
    """The power of its size with which the time for a program grows, by the two longest times that are no noise."""
    if math.isinf(times[-1].seconds):
        return math.inf
    return _power([(one.size, one.seconds) for one in times if one.seconds >= NOISE])


def is_libcsts(mode: str, times: Sequence[Time]) -> bool:
    """Whether libcst's parser alone grows like the program, and takes most of the time."""
    parsing = _power([(one.size, one.parsing) for one in times if one.parsing >= NOISE / 10])
    return parsing > exponent(times) - 0.1 and times[-1].times_the_floor <= TIMES_THE_FLOOR[mode] / 4


def _power(taken: Sequence[tuple[int, float]]) -> float:
    if len(taken) < 2:
        return 0.0
    first, last = taken[-3] if len(taken) > 2 else taken[-2], taken[-1]
    return math.log(last[1] / first[1]) / math.log(last[0] / first[0])


def faults(mode: str, times: Sequence[Time]) -> Iterator[str]:
    """What is wrong with the times of a shape in a mode."""
    last, power = times[-1], exponent(times)
    if math.isinf(last.seconds):
        yield f"more than {LIMIT} s for {last.parts} parts"
    elif power > EXPONENT and not is_libcsts(mode, times):
        yield f"grows with size to the power of {power:.2f}"
    elif last.seconds <= NOISE or last.size <= 10_000:
        return
    elif last.a_megabyte > SECONDS_A_MEGABYTE and last.times_the_floor > TIMES_THE_FLOOR[mode]:
        yield f"{last.a_megabyte:.1f} s for a megabyte"


def settled(make: Shape, mode: str, floor: float) -> list[Time]:
    """`series`, and where that fails the shortest times of up to three: other work on the machine makes times longer,
    never shorter."""
    times = series(make, mode, floor)
    for _ in range(2):
        if not any(faults(mode, times)) or math.isinf(times[-1].seconds):
            break
        again = series(make, mode, floor)
        times = [min(pair, key=lambda one: one.seconds) for pair in zip(times, again, strict=False)]
    return times


def main(arguments: Sequence[str]) -> int:
    """Print a row for each shape and mode; 1 where one fails."""
    with tempfile.TemporaryDirectory() as nowhere:
        # The files around a text are searched for what uses it.
        os.chdir(nowhere)
        return _printed(arguments)


def _printed(arguments: Sequence[str]) -> int:
    chosen = {name: SHAPES[name] for name in arguments} if arguments else SHAPES
    wrong = 0
    for mode in MODES:
        work(mode, {"example.py": HEAD + "torch.rand(1)\n"})()
        taken = [measured(mode, {"example.py": HEAD + "x = 1\n"}) for _ in range(3)]
        floor = min(one.seconds for one in taken if one is not None)
        print(f"{mode}: {floor:.3f} s for a program of one line")
        for name, make in chosen.items():
            times = settled(make, mode, floor)
            said = "; ".join(faults(mode, times))
            wrong += bool(said)
            row = "  ".join(f"{one.seconds:7.3f}" for one in times)
            size = f"{times[-1].size // 1000:5} kB {max(one.peak for one in times):5} MB"
            grown = f"^{exponent(times):4.2f} {times[-1].times_the_floor:5.1f} x libcst"
            print(f"  {name:34} {row:34} {size}  {grown}  {said}", flush=True)
    print(f"{len(chosen)} shapes, {wrong} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
