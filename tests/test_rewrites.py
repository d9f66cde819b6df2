"""The rewrites of the table of ops, run: a program of the rule files before and after its fix, values and gradients."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest
import rulebook

from torchdet_lint.catalogue.loading import load
from torchdet_lint.checks.operations import check, rewrites
from torchdet_lint.module.module import Module, Target
from torchdet_lint.prefilter.library import Library
from torchdet_lint.source.decoding import decode

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")

ROWS = [op for op in load().facts.ops if op.rewrites]
SHOWN = [case for case in rulebook.cases() if case.code.startswith("TDL4") and case.example.fixed]
# `torch.bincount` sums weights of half precision in double precision.
WIDENED = {"per_bin"}
# Shows what is left alone, not what is computed.
NOT_RUN = {"left_alone"}
# These have no derivative before the fix: only their values are compared.
VALUES_ONLY = {"per_bin", "scattered"}


def inputs(width: int, dtype: Any) -> dict[str, Any]:
    """An argument for each name that a parameter has in the examples; no value occurs twice in a tensor."""

    def values(*shape: int) -> Any:
        count = torch.Size(shape).numel()
        return ((torch.randperm(count) - count // 2) / 4).to(dtype).view(shape).requires_grad_()

    return {
        "x": values(6, width),
        "embeddings": values(6, width),
        "source": values(6, width),
        "values": values(6),
        "weight": (torch.rand(3) + 0.5).to(dtype),
        "maps": values(2, 3, 8, 6),
        "features": values(2, 3, width, 6),
        "volumes": values(2, 3, 4, width, 4),
        "index": torch.tensor([0, 3, 3, 1, 0, 3]),
        "bins": torch.tensor([2, 0, 2, 7, 2, 0]),
        "counts": torch.tensor([2, 0, 1, 3, 1, 1]),
        "labels": torch.randint(3, (2, 8, 6)),
        "axis": 1,
    }


def executed(code: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(code, namespace)
    return namespace


def parts() -> Iterator[tuple[str, str]]:
    for case in SHOWN:
        if "flash_attn" in case.example.code:
            continue
        for name, part in executed(case.example.code).items():
            if getattr(part, "__module__", "") == "example" and name not in NOT_RUN:
                yield case.identity, name


def flat(found: Any) -> list[Any]:
    return [one for part in found for one in flat(part)] if isinstance(found, (tuple, list)) else [found]


def run(code: str, name: str, width: int, dtype: Any) -> tuple[list[Any], dict[str, Any]]:
    """What the part of the program returns, and the gradients that its inputs get from a sum that tells places."""
    part = executed(code)[name]
    if isinstance(part, type):
        part = part().forward
    torch.manual_seed(0)
    given = {key: value for key, value in inputs(width, dtype).items() if key in inspect.signature(part).parameters}
    # A copy, which may be written to in place.
    passed = {key: value.clone() if torch.is_tensor(value) else value for key, value in given.items()}
    results = flat(part(**passed))
    total = sum(
        (one.double() * torch.arange(1, one.numel() + 1).view(one.shape) / one.numel()).sum() for one in results
    )
    leaves = {key: value for key, value in given.items() if torch.is_tensor(value) and value.requires_grad}
    if name in VALUES_ONLY:
        return results, {}
    gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    return results, dict(zip(leaves, gradients, strict=True))


@pytest.mark.parametrize("width", [5, 6])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize(("identity", "name"), list(parts()))
def test_the_fixed_program_computes_the_same(identity: str, name: str, dtype: str, width: int) -> None:
    if dtype == "bfloat16" and name in WIDENED:
        pytest.skip("the result has another type")
    example = next(case.example for case in SHOWN if case.identity == identity)
    before, gradients = run(example.code, name, width, getattr(torch, dtype))
    after, fixed_gradients = run(example.fixed, name, width, getattr(torch, dtype))
    loose = {"rtol": 0.02, "atol": 0.001} if dtype == "bfloat16" else {}
    torch.testing.assert_close(after, before, **loose)
    assert fixed_gradients.keys() == gradients.keys()
    for key, gradient in gradients.items():
        assert (gradient is None) is (fixed_gradients[key] is None), key
        torch.testing.assert_close(fixed_gradients[key], gradient, **loose)


def test_every_rewrite_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    made: set[tuple[str, str]] = set()
    shown = rewrites.Rewriting._changes

    def recorded(self: rewrites.Rewriting, rewrite: Any) -> Any:
        found = shown(self, rewrite)
        if found:
            made.add((self.operation.op.op, repr(rewrite)))
        return found

    monkeypatch.setattr(rewrites.Rewriting, "_changes", recorded)
    library = Library(load())
    for case in SHOWN:
        module = Module(decode("example.py", case.example.code.encode()), library, Target())
        for code in ("TDL401", "TDL402", "TDL403", "TDL405"):
            list(check.listed_call(module, load().rules[code]))
    assert {(op.op, repr(rewrite)) for op in ROWS for rewrite in op.rewrites} == made
