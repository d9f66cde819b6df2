"""What the installed torch says of its own operations: documentation, signatures, tags and alerts."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchdet_lint.catalogue.ops import Op

importlib.import_module("torch.nn.attention.flex_attention")


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
    "torch.nn.LPPool3d(stride=kernel_size)": "calls avg_pool3d",
    "torch.nn.AdaptiveAvgPool1d": "runs adaptive_avg_pool2d",
    "torch.nn.AdaptiveMaxPool1d": "runs adaptive_max_pool2d",
    "torch.nn.AdaptiveMaxPool1d(output_size=1)": "runs adaptive_max_pool2d",
    "torch.nn.functional.interpolate(antialias=True)": "kernels of its own, which alert",
    "torch.nn.functional.interpolate(mode='area')": "runs adaptive_avg_pool",
    "torch.nn.functional.interpolate": "some mode that only the run knows",
    "torch.nn.functional.max_pool3d_with_indices": "the docstring names the module",
    "torch.nn.functional.pad(mode='reflect')": "the docstring names the modules",
    "torch.nn.functional.pad(mode='replicate')": "the docstring names the modules",
    "torch.nn.NLLLoss2d": "deprecated, a kind of NLLLoss",
    "torch.nn.Embedding": "documented from 2.14 on",
    "torch.nn.Embedding.from_pretrained(freeze=False)": "makes an Embedding",
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
    "torch_geometric.utils.scatter(reduce='mul')": "another package",
    "torch_geometric.nn.global_add_pool": "another package",
    "torch_geometric.utils.softmax": "another package",
    "torch_geometric.nn.MessagePassing": "another package",
    "torch_geometric.nn.GCNConv": "another package",
    "torch_geometric.nn.EdgeConv(aggr='add')": "another package",
}


VARIES = ("errors", "switchable")
# Ops of ATen that are tagged as random and that no one calls under their own name: what runs them draws in the tables.
REACHED_THROUGH = {
    "gru": "torch.nn.GRU",
    "lstm": "torch.nn.LSTM",
    "rnn_relu": "torch.nn.RNN",
    "rnn_tanh": "torch.nn.RNN",
    "miopen_rnn": "torch.nn.RNN",
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


@functools.cache
def documented() -> tuple[Documented, ...]:
    """The ops that the docstring of `use_deterministic_algorithms` of the installed torch names."""
    text = inspect.cleandoc(torch.use_deterministic_algorithms.__doc__)
    switches, throws, *_ = text.split("act\ndeterministically when")[1].split("will throw a\n:class:")
    throws = throws.split("In addition")[0]
    found = []
    for status, part in (("switchable", switches), ("errors", throws)):
        for bullet in re.split(r"\n\s*\* ", part)[1:]:
            flat = " ".join(bullet.split())
            match = re.match(r":(?:class|func):`([\w.]+)`", flat)
            assert match, bullet
            direction = "backward" if "differentiate" in flat or "requires grad" in flat else "forward"
            if "Conv" in match[1]:
                direction = "backward"
            devices = frozenset(device for device in ("cpu", "cuda", "mps") if device in flat.lower()) or {
                "cpu",
                "cuda",
            }
            modes = re.findall(r"- ``(\w+)``", flat) or [""]
            found.extend(Documented(match[1], mode, status, direction, frozenset(devices)) for mode in modes)
    return tuple(found)


def rows_for(entry: Documented, ops: Iterable[Op]) -> list[Op]:
    """The rows that speak of a documented op, of that direction and one of its devices."""
    spelled = {entry.name, entry.name + "_", entry.name.replace("torch.Tensor.", "torch.")}
    rows = []
    for op in ops:
        if op.package != "torch":
            continue
        names = {op.op.partition("(")[0], *(spelling.name for spelling in op.spellings)}
        if not spelled & names or op.direction != entry.direction or not entry.devices & set(op.devices):
            continue
        if entry.mode and f"mode='{entry.mode}'" not in op.op:
            continue
        rows.append(op)
    return rows


def behind(name: str) -> Any:
    """What the installed torch has under the name. Raises `AttributeError` where it has nothing."""
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def signed(ops: Iterable[Op]) -> list[tuple[str, tuple[str, ...]]]:
    """The spellings of torch that a check reports, with the parameters that the table says."""
    return sorted(
        {
            (spelling.name, spelling.parameters)
            for op in ops
            for spelling in op.spellings
            if spelling.parameters and not op.silent_because and spelling.name.startswith("torch.")
        }
    )


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
    function = behind(name)
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


@functools.cache
def tagged(tag: str) -> frozenset[str]:
    """The ops of ATen of which an overload has the tag."""
    found = set()
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        packet = getattr(torch.ops.aten, name, None) if namespace == "aten" else None
        overload = getattr(packet, schema.overload_name or "default", None)
        if overload is not None and getattr(torch.Tag, tag) in overload.tags:
            found.add(name)
    return frozenset(found)


def spellings_of(name: str) -> list[str]:
    """The public ways to call an op of ATen under its own name."""
    owners = {"torch": torch, "torch.Tensor": torch.Tensor, "torch.nn.functional": torch.nn.functional}
    return [f"{owner}.{name}" for owner, value in owners.items() if callable(getattr(value, name, None))]


def alerts() -> list[str]:
    """What torch's Python sources hand to `alert_not_deterministic`, or look at deterministic mode for."""
    found = set()
    for source in ("_meta_registrations.py", "_decomp/decompositions.py", "nn/functional.py"):
        path = Path(torch.__file__).parent / source
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                if not isinstance(call, ast.Call):
                    continue
                last = ast.unparse(call.func).rpartition(".")[2]
                if last == "alert_not_deterministic" or last == "are_deterministic_algorithms_enabled":
                    found.add(f"{source}: {function.name}: {last}")
    return sorted(found)


@functools.cache
def random_ops() -> dict[str, tuple[str, ...]]:
    """The ops of ATen that are tagged as random, with the public ways to call them under their own names."""
    names = sorted(name for name in tagged("nondeterministic_seeded") if not name.startswith("_"))
    return {name: tuple(spellings_of(name)) for name in names}
