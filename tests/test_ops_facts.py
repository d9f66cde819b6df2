"""The table of ops against the installed torch: its documentation, its signatures, and its own shape."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from torchdet_lint import explain
from torchdet_lint.catalogue import Op, load, ops_of, release, status_in

torch = pytest.importorskip("torch")
importlib.import_module("torch.nn.attention.flex_attention")

OPS = load().facts.ops
TORCH_OPS = [op for op in OPS if op.package == "torch"]
INSTALLED = release(torch.__version__)
NEWEST = (2, 15)

# What `torch.use_deterministic_algorithms` says and the binaries contradict, in 2.13; each with the evidence.
WRONG_DOCUMENTS = {
    "torch.cumsum throws": "no alert in the binary since 2.6; the docstring was mended in 2.14",
    "torch.nn.ReflectionPad2d throws": "the alert went in 2.7, and a deterministic kernel came",
    "torch.nn.functional.interpolate(bilinear) throws": "F.interpolate swaps in a decomposition since 2.1",
    "torch.nn.functional.interpolate(trilinear) throws": "F.interpolate swaps in a decomposition since 2.9",
}
# Ops that raise or switch in 2.13 and that the docstring does not name.
NOT_DOCUMENTED = {
    "torch.nn.LPPool3d": "calls avg_pool3d",
    "torch.nn.AdaptiveAvgPool1d": "runs adaptive_avg_pool2d",
    "torch.nn.AdaptiveMaxPool1d": "runs adaptive_max_pool2d",
    "torch.nn.AdaptiveMaxPool1d(output_size=1)": "runs adaptive_max_pool2d",
    "torch.nn.functional.interpolate(antialias=True)": "kernels of its own, which alert",
    "torch.nn.functional.interpolate(mode='area')": "runs adaptive_avg_pool",
    "torch.nn.functional.interpolate": "some mode that only the run knows",
    "torch.nn.functional.max_pool3d_with_indices": "the docstring names the module",
    "torch.nn.functional.pad(mode='reflect')": "the docstring names the modules",
    "torch.nn.functional.pad(mode='replicate')": "the docstring names the modules",
    "torch.nn.Embedding": "documented from 2.14 on",
    "torch.nn.MaxPool2d under torch.compile": "inductor's decomposition",
    "torch.Tensor.__setitem__": "runs index_put",
    "torch.take_along_dim": "its gradient is a scatter_add",
    "torch.take": "its gradient runs put_",
    "torch.cummax": "its gradient is a scatter_add",
    "torch.quantile": "its gradient is a scatter_add",
    "torch.Tensor.as_strided": "its gradient is an index_add_",
    "torch.Tensor.index_reduce_": "alerts for every reduce",
    "torch.multinomial": "runs cumsum",
    "torch.nn.functional.scaled_dot_product_attention": "switches in the C++ of each backend",
    "torch.nn.TransformerEncoderLayer": "runs scaled_dot_product_attention",
    "torch.nn.MultiheadAttention(need_weights=False)": "runs scaled_dot_product_attention",
    "torch.nn.functional.multi_head_attention_forward": "runs scaled_dot_product_attention",
    "torch.nn.attention.flex_attention.flex_attention": "raises in inductor's template",
    "torch.empty": "named in the docstring of fill_uninitialized_memory",
    "torch.compile of accumulating writes": "inductor's lowering",
    "torch.compile autotuning": "named in the paragraph on inductor",
    "torch_scatter.scatter": "another package",
    "torch_scatter.scatter_add": "another package",
    "torch_sparse.spmm": "another package",
    "torch_geometric.utils.scatter": "another package",
    "torch_geometric.nn.global_add_pool": "another package",
    "torch_geometric.nn.MessagePassing": "another package",
}


class Documented(NamedTuple):
    """One bullet of the docstring: the name, the mode of interpolate, and what it is said to do."""

    name: str
    mode: str
    status: str
    direction: str
    devices: frozenset[str]

    @property
    def key(self) -> str:
        mode = f"({self.mode})" if self.mode else ""
        return f"{self.name}{mode} {'throws' if self.status == 'errors' else 'switches'}"


def documented() -> list[Documented]:
    """The ops that the docstring of `use_deterministic_algorithms` of the installed torch names."""
    text = torch.use_deterministic_algorithms.__doc__
    switches, throws, *_ = text.split("act\n    deterministically when")[1].split("will throw a\n    :class:")
    throws = throws.split("In addition")[0]
    found = []
    for status, part in (("switchable", switches), ("errors", throws)):
        for bullet in re.split(r"\n\s+\* ", part)[1:]:
            flat = " ".join(bullet.split())
            match = re.match(r":(?:class|func):`([\w.]+)`", flat)
            assert match, bullet
            direction = "backward" if "differentiate" in flat or "requires grad" in flat else "forward"
            if "Conv" in match[1]:
                direction = "backward"
            devices = frozenset(device for device in ("cpu", "cuda") if device in flat.lower()) or {"cpu", "cuda"}
            modes = re.findall(r"- ``(\w+)``", flat) or [""]
            found.extend(Documented(match[1], mode, status, direction, frozenset(devices)) for mode in modes)
    return found


def rows_for(entry: Documented) -> list[Op]:
    """The rows that speak of a documented op, of that direction and one of its devices."""
    spelled = {entry.name, entry.name + "_", entry.name.replace("torch.Tensor.", "torch.")}
    rows = []
    for op in TORCH_OPS:
        names = {op.op.partition("(")[0], *(spelling.name for spelling in op.spellings)}
        if not spelled & names or op.direction != entry.direction or not entry.devices & set(op.devices):
            continue
        if entry.mode and f"mode='{entry.mode}'" not in op.op:
            continue
        rows.append(op)
    return rows


def test_the_docstring_still_reads_as_expected() -> None:
    names = {entry.name for entry in documented()}
    assert {"torch.nn.Conv1d", "torch.bincount", "torch.nn.functional.interpolate", "torch.Tensor.resize_"} <= names
    assert len(documented()) > 50


@pytest.mark.parametrize("entry", documented(), ids=lambda entry: entry.key)
def test_every_documented_op_has_a_row_that_agrees(entry: Documented) -> None:
    rows = rows_for(entry)
    assert rows, f"the docstring names {entry.key}; rules/facts/ops.toml has no row for it"
    agrees = any(status_in(op.status, INSTALLED) == entry.status for op in rows)
    if entry.key in WRONG_DOCUMENTS:
        assert not agrees, f"{entry.key} is listed as contradicted, and the table agrees with it"
    else:
        assert agrees, f"{entry.key}: the rows say {[status_in(op.status, INSTALLED) for op in rows]}"


def test_every_exception_is_still_documented() -> None:
    assert WRONG_DOCUMENTS.keys() <= {entry.key for entry in documented()}


@pytest.mark.parametrize("op", TORCH_OPS, ids=lambda op: f"{op.op} {op.direction} {'+'.join(op.devices)}")
def test_every_row_that_raises_or_switches_is_documented_or_known_not_to_be(op: Op) -> None:
    if status_in(op.status, INSTALLED) not in ("errors", "switchable") or op.devices == ("mps",):
        return
    named = any(op in rows_for(entry) for entry in documented())
    if op.op in NOT_DOCUMENTED:
        assert not named, f"{op.op} is documented now: take it out of NOT_DOCUMENTED"
    else:
        assert named, f"{op.op} is not in the docstring and not in NOT_DOCUMENTED"


@functools.cache
def stubs() -> dict[str, list[ast.FunctionDef]]:
    """The overloads of torch's built-in functions and tensor methods, from the stubs that torch ships."""
    base = Path(torch.__file__).parent / "_C"
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in ast.parse((base / "_VariableFunctions.pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(f"torch.{node.name}", []).append(node)
    for node in ast.parse((base / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name in ("TensorBase", "_TensorBase"):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    found.setdefault(f"torch.Tensor.{method.name}", []).append(method)
    return found


def stub_parameters(node: ast.FunctionDef) -> tuple[str, ...]:
    arguments = node.args
    found = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg is not None:
        found.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        found.append("*")
    found.extend(argument.arg for argument in arguments.kwonlyargs)
    return tuple(name for name in found if name != "self")


def python_parameters(function: Any) -> tuple[str, ...]:
    found: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and not any(known.startswith("*") for known in found):
            found.append("*")
        found.append(f"*{name}" if parameter.kind is parameter.VAR_POSITIONAL else name)
    return tuple(name for name in found if name != "self")


def real_parameters(name: str) -> list[tuple[str, ...]]:
    """The parameter lists under which the installed torch takes `name`."""
    if name in stubs():
        return [stub_parameters(node) for node in stubs()[name]]
    function: Any = torch
    for part in name.split(".")[1:]:
        function = getattr(function, part)
    if name in ("torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU"):
        base = python_parameters(torch.nn.RNNBase)[1:]
        if name == "torch.nn.RNN":
            return [(*base[:3], "nonlinearity", *(name for name in base[3:] if name != "proj_size"))]
        return [base if name == "torch.nn.LSTM" else tuple(name for name in base if name != "proj_size")]
    if name == "torch.nn.NLLLoss2d":
        return [python_parameters(torch.nn.NLLLoss)]
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    dispatched = [cell for cell in cells if inspect.isfunction(cell)]
    if dispatched:
        return [python_parameters(choice) for choice in dispatched]
    try:
        return [python_parameters(function)]
    except ValueError:
        text = re.match(r"\s*\w+\((.*?)\) ->", function.__doc__, re.DOTALL)
        assert text, name
        return [tuple(part.partition("=")[0].strip() for part in text[1].split(","))]


SPELLINGS = sorted(
    {
        (spelling.name, spelling.parameters)
        for op in TORCH_OPS
        for spelling in op.spellings
        if spelling.parameters and not op.silent_because
    }
)


@pytest.mark.parametrize(("name", "parameters"), SPELLINGS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_parameter_has_its_real_name_and_place(name: str, parameters: tuple[str, ...]) -> None:
    if not name.startswith("torch."):
        pytest.skip("another package, which is not installed here")
    real = real_parameters(name)
    assert any(known[: len(parameters)] == parameters for known in real), f"{parameters} is none of {real}"


@pytest.mark.parametrize("op", TORCH_OPS, ids=lambda op: op.op)
def test_every_spelling_exists(op: Op) -> None:
    for spelling in op.spellings:
        value: Any = torch
        if not spelling.name.startswith("torch."):
            continue
        for part in spelling.name.split(".")[1:]:
            value = getattr(value, part)
        if spelling.forward:
            assert python_parameters(value.forward)[: len(spelling.forward)] == spelling.forward


@pytest.mark.parametrize("op", OPS, ids=lambda op: f"{op.op} {op.direction} {'+'.join(op.devices)}")
def test_every_row_is_sound(op: Op) -> None:
    assert op.evidence, "no row without evidence"
    since = [release(row.since) for row in op.status]
    assert since == sorted(set(since)), "the history runs from old to new, one row a release"
    assert all(
        before.status != after.status or after.note for before, after in zip(op.status, op.status[1:], strict=False)
    )
    if op.package == "torch":
        assert all((1, 7) <= row <= NEWEST for row in since)
    assert len({spelling.name for spelling in op.spellings}) == len(op.spellings)
    for condition in op.when:
        takes = [
            spelling for spelling in op.spellings if condition.argument in (*spelling.parameters, *spelling.forward)
        ]
        assert takes or condition.argument == "self", f"no spelling takes {condition.argument!r}"
        needs = condition.test in ("in", "not-in", "possible", "unless", "dims", "length", "contains")
        assert bool(condition.values) == needs


def test_no_two_rows_report_one_call_under_one_code() -> None:
    """The same spelling in two rows needs conditions, a device or a direction that keep them apart."""
    seen: dict[tuple[str, str, str, tuple[str, ...], str], str] = {}
    for op in OPS:
        for spelling in op.spellings:
            if op.silent_because:
                continue
            key = (spelling.name, op.direction, op.package, op.devices, repr(op.when))
            if status_in(op.status, NEWEST) == "deterministic":
                continue
            assert key not in seen, f"{op.op} and {seen[key]} both report {spelling.name}"
            seen[key] = op.op


def test_releases_change_what_an_op_is() -> None:
    def status(name: str, target: tuple[int, int]) -> str:
        return next(status_in(op.status, target) for op in OPS if op.op == name)

    assert status("torch.nn.ReflectionPad2d", (2, 6)) == "errors"
    assert status("torch.nn.ReflectionPad2d", (2, 7)) == "switchable"
    assert status("torch.Tensor.scatter_add_", (1, 9)) == "errors"
    assert status("torch.kthvalue", (2, 9)) == "errors"
    assert status("torch.kthvalue", (2, 10)) == "deterministic"
    assert status("torch.Tensor.index_reduce_", (1, 11)) == "absent"


def test_spellings_are_complete_for_in_place_and_functional_forms() -> None:
    """A row that knows `torch.x` or `x_` knows the other spellings that torch has of it."""
    for op in TORCH_OPS:
        if op.silent_because:
            continue
        names = {spelling.name for spelling in op.spellings}
        for spelling in op.spellings:
            bare = spelling.name.removeprefix("torch.Tensor.").removeprefix("torch.").rstrip("_")
            if "." in bare or not (spelling.name.startswith("torch.Tensor.") or f"torch.{bare}" in stubs()):
                continue
            every = {f"torch.{bare}", f"torch.Tensor.{bare}", f"torch.Tensor.{bare}_"} & stubs().keys()
            assert every <= names, f"{op.op} lacks {sorted(every - names)}"


def test_an_op_changes_its_rule_with_the_release() -> None:
    def codes(name: str, target: tuple[int, int]) -> set[str]:
        every = ("TDL401", "TDL402", "TDL403", "TDL404", "TDL405", "TDL406", "TDL407")
        return {code for code in every if any(op.op == name for op in ops_of(code, OPS, target))}

    assert codes("torch.Tensor.scatter_add_", (1, 12)) == {"TDL401"}
    assert codes("torch.Tensor.scatter_add_", (1, 13)) == {"TDL402"}
    assert codes("torch.kthvalue", (2, 12)) == set()
    assert codes("torch.nn.LSTM", (2, 13)) == {"TDL404"}
    assert codes("torch.empty", (2, 13)) == set()


def test_the_matrix_in_the_documentation_is_fresh() -> None:
    page = Path(__file__).parents[1] / "docs" / "ops.md"
    assert page.read_text(encoding="utf-8") == explain.matrix(OPS), "run `make docs`"
