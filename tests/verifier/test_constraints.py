"""The check of a distribution's values: one record of all that it takes, or a record for each op."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from recordings import recorded, records  # noqa: E402
from torch.distributions import Categorical, Normal, constraints  # noqa: E402

from torchdet_lint.verifier import trace  # noqa: E402
from torchdet_lint.verifier.comparison.compare import compare  # noqa: E402
from torchdet_lint.verifier.ops.dispatch import OpMode  # noqa: E402
from torchdet_lint.verifier.trace import Trace  # noqa: E402


def ops(path):
    return [site.op for site, _ in records(path)]


def checks(path):
    return [op for op in ops(path) if op.startswith(f"{trace.CHECK}.")]


def test_a_check_of_a_distribution_is_one_record(tmp_path):
    chances = torch.tensor([0.25, 0.75]).mul(1)

    def body():
        Categorical(chances.mul(1), validate_args=True).log_prob(torch.ones(1, dtype=torch.long).mul(1))

    path = recorded(tmp_path, body)
    assert checks(path) == ["constraints.Simplex", "constraints.IntegerInterval"]
    assert not {"aten.ge.Scalar", "aten.le.Scalar", "aten.bitwise_and.Tensor"} & set(ops(path))
    assert ops(path).count("aten._is_all_true") == 2


def test_what_a_check_gives_is_known_to_what_reads_it(tmp_path):
    def body():
        right = constraints.positive.check(torch.arange(3.0).mul(1))
        assert right.tolist() == [False, True, True]
        right.logical_not()

    path = recorded(tmp_path, body)
    opened = Trace(path)
    flags = [record.flags for record in opened.records(opened.main)]
    assert not flags[-1] & trace.OUTSIDE
    assert checks(path) == ["constraints.GreaterThan"]


def test_the_values_and_the_bounds_that_differ_are_inputs_that_differ(tmp_path):
    def body(value, bound):
        given, bounds = torch.tensor(value).mul(1), torch.tensor(bound).mul(1)
        constraints.greater_than(bounds).check(given)

    a = recorded(tmp_path, lambda: body([1.0, 2.0], [0.0]), "a")
    for name, value, bound in (("b", [1.0, 3.0], [0.0]), ("c", [1.0, 2.0], [1.5])):
        found = compare(a, recorded(tmp_path, lambda value=value, bound=bound: body(value, bound), name))
        assert [item.site.op for item in found.divergences if item.kind == "cause"] == ["aten.lift_fresh"]


def test_a_check_that_fails_raises_as_it_would(tmp_path):
    def body():
        with pytest.raises(ValueError, match="Simplex"):
            Categorical(torch.tensor([-1.0, 3.0]).mul(1), validate_args=True)
        with pytest.raises(ValueError, match="scale"):
            Normal(torch.zeros(2).mul(1), -torch.ones(2).mul(1), validate_args=True)

    body()
    assert "constraints.GreaterThan" in checks(recorded(tmp_path, body))


class Even(constraints.Constraint):
    def check(self, value):
        return value % 2 == 0


class Positive(type(constraints.positive)):
    """A constraint of a program's own, which asks torch's for a part of the answer."""

    def check(self, value):
        return super().check(value) & value.isfinite()


def _own():
    Even().check(torch.ones(2).mul(1))


def _others():
    constraints.stack([Even(), Even()]).check(torch.ones(2).mul(1))


def _in_a_mode():
    with OpMode(lambda function, args, kwargs: function(*args, **kwargs)):
        constraints.positive.check(torch.ones(2).mul(1))


def _never_written():
    constraints.positive.check(torch.empty(4))


@pytest.mark.parametrize("body", [_own, _others, _in_a_mode, _never_written])
def test_the_ops_of_a_check_are_recorded_where_more_may_happen_between_them(tmp_path, body):
    path = recorded(tmp_path, body)
    assert not checks(path)
    assert {"aten.eq.Scalar", "aten.gt.Scalar"} & set(ops(path))


def test_a_part_of_a_check_is_one_record(tmp_path):
    def body():
        Positive(0.0).check(torch.ones(2).mul(1))

    path = recorded(tmp_path, body)
    assert checks(path) == ["constraints.GreaterThan"]
    assert "aten.bitwise_and.Tensor" in ops(path)


def test_what_a_program_draws_from_a_distribution_is_what_it_was(tmp_path):
    def body():
        torch.manual_seed(0)
        return Normal(torch.zeros(3), torch.ones(3)).rsample().tolist()

    values = []
    recorded(tmp_path, lambda: values.append(body()))
    assert values == [body()]
    assert constraints.simplex.check.__func__.__qualname__ == "_Simplex.check"
    assert not hasattr(constraints.simplex.check, "__wrapped__")


@pytest.mark.parametrize("validated", [False, True])
def test_the_compiler_makes_of_a_distribution_what_it_would(tmp_path, validated):
    def graphs():
        torch._dynamo.reset()
        found = []

        def backend(graph, _inputs):
            found.append(len(graph.graph.nodes))
            return graph.forward

        def entropy(chances):
            return Categorical(chances, validate_args=validated).entropy()

        torch.compile(entropy, backend=backend)(torch.tensor([0.25, 0.75]))
        torch.compile(lambda chances: constraints.simplex.check(chances), backend=backend)(torch.tensor([0.25, 0.75]))
        return found

    plain, under = graphs(), []
    recorded(tmp_path, lambda: under.extend(graphs()))
    assert plain == under != []
