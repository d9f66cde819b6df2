"""The table of runtime fixes and the rule files agree, and what a fix needs of torch is there."""

from __future__ import annotations

import pathlib

import pytest

from torchdet_lint.catalogue import loading
from torchdet_lint.verifier.ops import aten
from torchdet_lint.verifier.remedies import fixes

RULES = loading.load().rules
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "runtime-fixes.md"


def test_rule_files_and_the_table_name_the_same_fixes():
    named = {code: rule.runtime_fix for code, rule in RULES.items() if rule.runtime_fix}
    assert named == dict(fixes.BY_RULE)
    assert set(fixes.FIXES) == set(fixes.BY_RULE.values())


def test_a_rule_without_a_runtime_fix_says_why():
    silent = [code for code, rule in RULES.items() if not rule.runtime_fix and not rule.runtime_note]
    assert silent == []
    assert {code for code in RULES if code not in fixes.BY_RULE} - {"TDL001", "TDL002"} == set(fixes.UNREACHABLE)
    for code, why in fixes.UNREACHABLE.items():
        assert RULES[code].runtime_note == why


def test_the_limits_in_the_rule_files_are_those_of_the_fixes():
    for code, name in fixes.BY_RULE.items():
        if code != "TDL401":
            assert RULES[code].runtime_note == fixes.FIXES[name].changes, code


def test_the_page_tells_of_every_fix_and_of_every_rule_without_one():
    text = DOCUMENT.read_text()
    assert [name for name in fixes.FIXES if f"`{name}`" not in text] == []
    assert [code for code in (*fixes.BY_RULE, *fixes.UNREACHABLE) if code not in text] == []


def test_each_code_resolves_to_its_fix_once():
    assert [fix.name for fix in fixes.resolve(["TDL402", "TDL203", "TDL101"])] == [
        "seed-torch",
        "deterministic-algorithms",
    ]
    with pytest.raises(fixes.UnfixableError, match="TDL999"):
        fixes.resolve(["TDL999"])


def test_every_op_of_the_tables_is_one_of_torch_and_of_the_catalogue():
    torch = pytest.importorskip("torch")
    names = {
        *aten.BACKWARD,
        *aten.FORWARD,
        *aten.CONDITIONAL,
        *(name for pair in aten.COMPOSED_BACKWARD for name in pair),
    }
    assert [name for name in sorted(names) if not hasattr(torch.ops.aten, name)] == []
    known = {(op.op, op.direction) for op in loading.load().facts.ops}
    named = {(op, "backward") for op in (*aten.BACKWARD.values(), *aten.COMPOSED_BACKWARD.values(), *aten.CALLS)}
    named |= {(op, "forward") for op in aten.FORWARD.values()}
    assert sorted(named - known) == []
    assert "aten::index_put_" in aten.switchable_ops()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.cumsum(torch.rand(5), 0)", "torch.cumsum"),
        ("torch.cumsum(torch.rand(5, 4), 0)", ""),
        ("torch.cumsum(torch.arange(5), 0)", ""),
        ("torch.zeros(3).index_add_(0, i, torch.ones(2))", "torch.Tensor.index_add_"),
        ("i.index_add(0, i, i)", ""),
        ("torch.zeros(3).scatter_(0, i, torch.ones(2))", "torch.Tensor.scatter_"),
        ("torch.zeros(3).scatter_(0, i, 1.0)", ""),
        ("torch.zeros(3).scatter_reduce_(0, i, torch.ones(2), 'mean')", "torch.Tensor.scatter_reduce_(reduce='sum')"),
        ("torch.zeros(3).scatter_reduce_(0, i, torch.ones(2), 'amin')", "torch.Tensor.scatter_reduce_(reduce='amax')"),
        ("torch.zeros(3).put_(i, torch.ones(2))", "torch.Tensor.put_(accumulate=False)"),
        ("torch.zeros(3).index_put_((i,), torch.ones(2), accumulate=True)", "torch.Tensor.index_put_(accumulate=True)"),
        ("torch.bincount(i)", "torch.bincount(no weights)"),
        ("torch.bincount(i, torch.ones(2))", "torch.bincount"),
        ("torch.bincount(i, i)", "torch.bincount(integer weights)"),
        ("torch.median(torch.rand(3, 3), 0)", "torch.median(dim=...)"),
        ("torch.median(torch.rand(3, 3))", ""),
        ("torch.multinomial(torch.ones(3), 5, True)", "torch.multinomial"),
        ("torch.multinomial(torch.ones(2, 3), 5, True)", ""),
        ("torch.bmm(torch.ones(1, 2, 2), torch.ones(1, 2, 2))", ""),
        (
            "torch.nn.functional.embedding_bag(i[None], torch.ones(3, 2, requires_grad=True), mode='max')",
            "torch.nn.EmbeddingBag(mode='max')",
        ),
    ],
)
def test_the_arguments_decide_which_op_of_the_catalogue_it_is(call, expected):
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    found = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            name = aten.base_name(func._schema.name)
            if name in aten.CONDITIONAL:
                parameters = [argument.name for argument in func._schema.arguments]
                values = {**dict(zip(parameters, args, strict=False)), **(kwargs or {})}
                found.append(aten.by_arguments(name, func._schema.overload_name, values))
            return func(*args, **(kwargs or {}))

    i = torch.tensor([0, 0])
    with Watch():
        eval(call, {"torch": torch, "i": i})
    assert found == [expected]
