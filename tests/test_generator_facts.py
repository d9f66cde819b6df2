"""The facts about generators and libraries, against the installed torch, NumPy and standard library."""

from __future__ import annotations

import inspect
import pkgutil
import random
from importlib import import_module

import numpy as np
import pytest
import torch
import torch.nn.utils.parametrizations
import torch.nn.utils.prune
import torch.quasirandom
import torch.utils.data
import torchfacts
from torch.utils._python_dispatch import TorchDispatchMode

from torchdet_lint import api
from torchdet_lint.catalogue import loading

FACTS = loading.load().facts
MODULE_ARGUMENTS = {
    "AdaptiveLogSoftmaxWithLoss": (8, 12, [4]),
    "Bilinear": (2, 3, 4),
    "Conv1d": (2, 3, 3),
    "Conv2d": (2, 3, 3),
    "Conv3d": (2, 3, 3),
    "ConvTranspose1d": (2, 3, 3),
    "ConvTranspose2d": (2, 3, 3),
    "ConvTranspose3d": (2, 3, 3),
    "Embedding": (5, 3),
    "EmbeddingBag": (5, 3),
    "GRU": (3, 4),
    "GRUCell": (3, 4),
    "LSTM": (3, 4),
    "LSTMCell": (3, 4),
    "Linear": (3, 4),
    "LinearCrossEntropyLoss": (3, 4),
    "MultiheadAttention": (4, 2),
    "RNN": (3, 4),
    "RNNBase": ("LSTM", 3, 4),
    "RNNCell": (3, 4),
    "SobolEngine": (2, True),
    "Transformer": (8, 2, 1, 1, 8),
    "TransformerDecoderLayer": (8, 2, 8),
    "TransformerEncoderLayer": (8, 2, 8),
}
TENSOR = torch.full((4, 6), 0.5)
ROIS = torch.full((2, 3, 8, 8), 0.5)
VOLUMES = torch.full((2, 3, 8, 8, 8), 0.5)
ARGUMENTS = {
    "torch._sample_dirichlet": (TENSOR,),
    "torch._standard_gamma": (TENSOR,),
    "torch.bernoulli": (TENSOR,),
    "torch.binomial": (torch.full((3,), 4.0), torch.full((3,), 0.5)),
    "torch.multinomial": (TENSOR, 2),
    "torch.normal": (0.0, 1.0, (3,)),
    "torch.poisson": (TENSOR,),
    "torch.rand": (3,),
    "torch.rand_like": (TENSOR,),
    "torch.randint": (9, (3,)),
    "torch.randint_like": (TENSOR, 9),
    "torch.randn": (3,),
    "torch.randn_like": (TENSOR,),
    "torch.randperm": (9,),
    "torch.lobpcg": (torch.eye(9), 2),
    "torch.pca_lowrank": (TENSOR,),
    "torch.svd_lowrank": (TENSOR, 2),
    "torch.native_dropout": (TENSOR, 0.5, True),
    "torch.nn.functional.gumbel_softmax": (TENSOR,),
    "torch.nn.functional.fractional_max_pool2d": (ROIS, 2, (3, 3)),
    "torch.nn.functional.fractional_max_pool2d_with_indices": (ROIS, 2, (3, 3)),
    "torch.nn.functional.fractional_max_pool3d": (VOLUMES, 2, (3, 3, 3)),
    "torch.nn.functional.fractional_max_pool3d_with_indices": (VOLUMES, 2, (3, 3, 3)),
    "torch.nn.functional.rrelu": (-TENSOR, 0.1, 0.3, True),
    "torch.rrelu": (-TENSOR, 0.1, 0.3, True),
    "torch.nn.functional.scaled_dot_product_attention": (ROIS, ROIS, ROIS, None, 0.5),
    "torch.nn.functional.multi_head_attention_forward": (
        *(TENSOR, TENSOR, TENSOR, 6, 2, torch.ones(18, 6), None, None, None, False, 0.5),
        *(torch.ones(6, 6), None, True),
    ),
    "torch.Tensor.bernoulli": (),
    "torch.Tensor.geometric_": (0.5,),
    "torch.Tensor.multinomial": (2,),
}
# Not by its arguments alone: see `test_what_is_drawn_inside`.
INSIDE = {"torch.func.vmap", "torch.vmap", "torch.testing.make_tensor"}
PYTHON_ARGUMENTS = {
    "betavariate": (1, 1),
    "binomialvariate": (9, 0.5),
    "choice": ([1, 2, 3],),
    "choices": ([1, 2, 3],),
    "expovariate": (1.0,),
    "gammavariate": (1, 1),
    "gauss": (0, 1),
    "getrandbits": (8,),
    "lognormvariate": (0, 1),
    "normalvariate": (0, 1),
    "paretovariate": (1,),
    "randbytes": (4,),
    "randint": (1, 9),
    "random": (),
    "randrange": (9,),
    "sample": ([1, 2, 3], 2),
    "shuffle": ([1, 2, 3],),
    "triangular": (),
    "uniform": (0, 1),
    "vonmisesvariate": (0, 1),
    "weibullvariate": (1, 1),
}
NUMPY_ARGUMENTS = {
    "beta": (1, 1),
    "binomial": (9, 0.5),
    "bytes": (4,),
    "chisquare": (2,),
    "choice": (9,),
    "dirichlet": ([1, 1],),
    "f": (2, 2),
    "gamma": (1,),
    "geometric": (0.5,),
    "hypergeometric": (5, 5, 3),
    "logseries": (0.5,),
    "multinomial": (5, [0.5, 0.5]),
    "multivariate_normal": ([0, 0], [[1, 0], [0, 1]]),
    "negative_binomial": (3, 0.5),
    "noncentral_chisquare": (2, 1),
    "noncentral_f": (2, 2, 1),
    "pareto": (2,),
    "permutation": (9,),
    "power": (2,),
    "randint": (9,),
    "random_integers": (9,),
    "shuffle": ([1, 2, 3],),
    "standard_gamma": (1,),
    "standard_t": (3,),
    "triangular": (0, 1, 2),
    "vonmises": (0, 1),
    "wald": (1, 1),
    "weibull": (1,),
    "zipf": (2,),
}


def find(name):
    """The object behind a qualified name; `Class().method` is the function `Class.method`."""
    found = None
    for part in name.replace("()", "").split("."):
        found = import_module(part) if found is None else getattr(found, part)
    return found


def rows(library, at="call"):
    return [row for row in FACTS.draws if row.library == library and row.at == at]


def named(library, at="call"):
    """The names that the installed packages have; torchvision and its like are not installed."""
    return [
        name
        for row in rows(library, at)
        for name in row.names
        if name.partition(".")[0] == {"python": "random"}.get(library, library)
    ]


def draws(function):
    """Whether `function()` moves torch's global generator."""
    before = torch.get_rng_state()
    function()
    return not torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("name", named("python"))
def test_python_draw(name):
    function = getattr(random, name.removeprefix("random."), None)
    if function is None:
        pytest.skip("comes with Python 3.12")
    before = random.getstate()
    function(*PYTHON_ARGUMENTS[function.__name__])
    assert random.getstate() != before


def test_every_drawing_method_of_random_is_listed():
    state = {"getstate", "seed", "setstate"}
    public = {name for name in random.__all__ if name[0].islower()} - state
    assert {f"random.{name}" for name in public} <= set(named("python"))


def numpy_state():
    _, keys, place, has_gauss, gauss = np.random.get_state()
    return (keys.tobytes(), place, has_gauss, gauss)


@pytest.mark.parametrize("name", named("numpy"))
def test_numpy_draw(name):
    short = name.removeprefix("numpy.random.")
    before = numpy_state()
    getattr(np.random, short)(*NUMPY_ARGUMENTS.get(short, ()))
    assert numpy_state() != before


def test_every_method_of_the_global_random_state_is_listed():
    own = {"seed", "get_state", "set_state", "tomaxint"}
    public = {name for name in dir(np.random.RandomState) if not name.startswith("_")} - own
    assert {f"numpy.random.{name}" for name in public} <= set(named("numpy"))


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_torch_draw(name):
    arguments = ARGUMENTS[name]
    receiver = (TENSOR.clone(),) if name.startswith("torch.Tensor.") else ()
    assert name in named("torch")
    assert draws(lambda: find(name)(*receiver, *arguments))


@pytest.mark.parametrize("name", [name for name in named("torch") if name.endswith("_")])
def test_torch_draw_in_place(name):
    function = find(name)
    if name.startswith("torch.Tensor."):
        arguments = ARGUMENTS.get(name, ())
    elif "dropout" in name:
        arguments = (0.5, True)
    elif "rrelu" in name:
        arguments = (0.1, 0.3, True)
    else:
        arguments = (0.5,) if name == "torch.nn.init.sparse_" else ()
    with torch.no_grad():
        data = -TENSOR if "rrelu" in name else TENSOR.clone()
        assert draws(lambda: function(data, *arguments))


@pytest.mark.parametrize(
    "name", [name for name in named("torch") if "dropout" in name and not name.endswith("_") and "native" not in name]
)
def test_dropout_draws_in_training_only(name):
    function = find(name)
    row = next(row for row in rows("torch") if name in row.names)
    training = row.parameters[2]
    data = torch.ones(2, 3, *([4] * int(name[-2]))) if name[-1] == "d" else TENSOR
    default = next(condition.default for condition in row.when if condition.argument == training)
    assert draws(lambda: function(data, 0.5, True))
    assert not draws(lambda: function(data, 0.5, False))
    for p in next(condition.values for condition in row.when if condition.argument == "p"):
        assert not draws(lambda p=p: function(data, float(p), True))
    if name.startswith("torch.nn.functional."):
        assert inspect.signature(function).parameters[training].default is default


@pytest.mark.parametrize("name", [name for name in named("torch") if ".distributions." in name])
def test_distribution_has_the_method(name):
    class_, _, method = name.rpartition(".")
    assert callable(getattr(find(class_), method))


def test_every_distribution_is_listed():
    found = set()
    for name in torch.distributions.__all__:
        kind = getattr(torch.distributions, name)
        if not (inspect.isclass(kind) and issubclass(kind, torch.distributions.Distribution)):
            continue
        if any("sample" in parent.__dict__ or "rsample" in parent.__dict__ for parent in kind.__mro__[:-3]):
            found.add(f"torch.distributions.{name}().sample")
    assert found <= set(named("torch"))


@pytest.mark.parametrize("name", [name for name in named("torch", "construction") if "hub" not in name])
def test_constructor_draws(name):
    kind = find(name)
    arguments = MODULE_ARGUMENTS.get(kind.__name__) or (torch.nn.Linear(2, 2),)
    assert draws(lambda: kind(*arguments))


def test_every_constructor_that_draws_is_listed():
    """All classes of torch.nn that can be made from a few sizes, measured."""
    tried = {}
    for name in torch.nn.__all__ if hasattr(torch.nn, "__all__") else dir(torch.nn):
        kind = getattr(torch.nn, name)
        if not (inspect.isclass(kind) and issubclass(kind, torch.nn.Module)) or "Lazy" in name:
            continue
        for arguments in (MODULE_ARGUMENTS.get(name, ()), (4,), (4, 2), (4, 4, 2), (4, 4, 4)):
            before = torch.get_rng_state()
            try:
                kind(*arguments)
            except Exception:
                continue
            tried[f"torch.nn.{name}"] = not torch.equal(before, torch.get_rng_state())
            break
    drawing = {name for name, drew in tried.items() if drew}
    assert len(tried) > 120
    assert drawing <= set(named("torch", "construction"))


def test_constructors_on_the_meta_device_draw_nothing():
    for row in rows("torch", "construction"):
        if any(condition.argument == "device" for condition in row.when):
            for name in row.names:
                kind = find(name)
                assert not draws(lambda k=kind: k(*MODULE_ARGUMENTS[k.__name__], device="meta")), name


@pytest.mark.parametrize("name", named("torch", "training"))
def test_module_draws_in_training(name):
    kind = find(name)
    short = kind.__name__
    layer = {"TransformerEncoder": "TransformerEncoderLayer", "TransformerDecoder": "TransformerDecoderLayer"}.get(
        short
    )
    if layer:
        module = kind(getattr(torch.nn, layer)(8, 2, 8), 1)
    elif short in ("GRU", "LSTM", "RNN"):
        module = kind(6, 4, num_layers=2, dropout=0.5)
    elif short == "MultiheadAttention":
        module = kind(6, 2, dropout=0.5)
    else:
        module = kind(*MODULE_ARGUMENTS.get(short, ()))
    data = torch.ones(3, 2, 8) if short.startswith("Transformer") else -torch.ones(3, 2, 6)
    several = {"MultiheadAttention": 3, "Transformer": 2, "TransformerDecoder": 2, "TransformerDecoderLayer": 2}
    arguments = [data] * several.get(short, 1)
    assert draws(lambda: module(*arguments))
    module.eval()
    assert not draws(lambda: module(*arguments))


@pytest.mark.parametrize("name", named("torch", "forward"))
def test_module_draws_when_first_run(name):
    short = find(name).__name__
    if short.startswith("Fractional"):
        module = find(name)(2, output_size=3)
        data = torch.ones(2, 3, 8, 8, 8) if short.endswith("3d") else ROIS
    else:
        arguments = (4,) if short == "LazyLinear" else (4, 3)
        assert not draws(lambda: find(name)(*arguments))
        module = find(name)(*arguments)
        data = torch.ones(2, 3, *([8] * int(short[-2]))) if short[-2:].endswith("d") else TENSOR
    module.eval()
    assert draws(lambda: module(data))


def test_iteration_draws():
    data = list(range(8))
    made = {
        "torch.utils.data.DataLoader": lambda **options: torch.utils.data.DataLoader(data, **options),
        "torch.utils.data.RandomSampler": lambda **options: torch.utils.data.RandomSampler(data, **options),
        "torch.utils.data.SubsetRandomSampler": lambda **options: torch.utils.data.SubsetRandomSampler(data, **options),
        "torch.utils.data.WeightedRandomSampler": lambda **options: torch.utils.data.WeightedRandomSampler(
            data, 4, **options
        ),
    }
    for name, make in made.items():
        assert name in named("torch", "iteration")
        assert draws(lambda make=make: list(make())), name  # a loader that does not shuffle draws a base seed alone
        assert not draws(lambda make=make: list(make(generator=torch.Generator()))), name
    assert not draws(lambda: torch.utils.data.DataLoader(data, shuffle=True, num_workers=2))


def test_random_split_draws():
    assert draws(lambda: torch.utils.data.random_split(range(8), [4, 4]))
    assert not draws(lambda: torch.utils.data.random_split(range(8), [4, 4], generator=torch.Generator()))


@pytest.mark.parametrize("name", [name for row in FACTS.draws for name in row.names if name.startswith("torch.")])
def test_every_name_is_there(name):
    assert callable(find(name))


@pytest.mark.parametrize("name", torchfacts.random_ops())
def test_an_op_with_the_random_tag_is_listed(name):
    """Every op of ATen that torch tags as random, under each name by which it can be called."""
    listed = {known for row in FACTS.draws for known in row.names}
    if name in torchfacts.REACHED_THROUGH:
        assert torchfacts.REACHED_THROUGH[name] in listed
    else:
        assert set(torchfacts.random_ops()[name]) <= listed


def test_the_tags_are_found():
    assert {"rand", "multinomial", "bernoulli_", "scaled_dot_product_attention"} <= torchfacts.random_ops().keys()
    assert torchfacts.REACHED_THROUGH.keys() <= torchfacts.random_ops().keys(), "a name that torch no longer has"
    assert not torchfacts.tagged("nondeterministic_bitwise"), "an op says of itself that its bits vary: give it a row"


class Tags(TorchDispatchMode):
    """Whether an op that is tagged as random was run."""

    drew = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.drew = self.drew or torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **kwargs or {})


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_a_listed_function_runs_an_op_with_the_random_tag(name):
    """The other direction: what the table says of torch's functions is what torch says of them."""
    receiver = (TENSOR.clone(),) if name.startswith("torch.Tensor.") else ()
    with Tags() as tags:
        find(name)(*receiver, *ARGUMENTS[name])
    assert tags.drew


def test_every_listed_function_of_torch_is_called_by_a_test():
    called = {*ARGUMENTS, *(name for name in named("torch") if name.endswith("_") or "dropout" in name)}
    other = ("torch.distributions.", "torch.utils.", "torch.nn.utils.", "torch.nn.init.")
    left = {name for name in named("torch") if name.startswith("torch.") and not name.startswith(other)} - called
    assert left == INSIDE


def test_what_is_drawn_inside():
    for vmap in (torch.vmap, torch.func.vmap):
        assert draws(lambda vmap=vmap: vmap(torch.rand_like, randomness="different")(TENSOR))
        assert draws(lambda vmap=vmap: vmap(torch.rand_like, randomness="same")(TENSOR))
    assert draws(lambda: torch.testing.make_tensor((3,), dtype=torch.float32, device="cpu"))


def parameters(name):
    """The positional parameters of a callable, or None where Python cannot tell."""
    function = find(name)
    try:
        signature = inspect.signature(function)
    except ValueError:
        return None
    found = list(signature.parameters.values())
    if inspect.isfunction(function) and "()" in name:
        found = found[1:]
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in found):
        return None
    return [parameter.name for parameter in found if parameter.kind is not parameter.KEYWORD_ONLY]


def tells_its_parameters(name):
    if name.partition(".")[0] not in ("torch", "numpy", "random") or name == "numpy.random.SeedSequence":
        return False
    return "Generator()" not in name and "default_generator" not in name and parameters(name) is not None


SIGNED = [
    *((name, row.parameters) for row in (*FACTS.draws, *FACTS.seeds) for name in row.names if row.parameters),
    *FACTS.signatures.items(),
]


@pytest.mark.parametrize("name, given", [item for item in SIGNED if tells_its_parameters(item[0])])
def test_parameters_stand_in_this_order(name, given):
    assert parameters(name)[: len(given)] == list(given)


def test_most_signatures_are_checked():
    assert sum(tells_its_parameters(name) for name, _ in SIGNED) > 60


def everything():
    return random.getstate(), numpy_state(), torch.get_rng_state().numpy().tobytes()


@pytest.mark.parametrize(
    "row", [row for row in FACTS.seeds if row.names[0].partition(".")[0] in ("random", "numpy", "torch")]
)
def test_seed_seeds_what_it_says(row):
    for name in row.names:
        if (
            not row.argument
            or row.entropy
            or "Generator()" in name
            or name.startswith(("torch.cuda", "torch.xpu", "torch.m"))
        ):
            continue
        if name == "torch.manual_seed" or not name.startswith("torch.m"):
            function = find(name)
            before = everything()
            function(20261121)
            first = everything()
            changed = {
                library
                for library, old, new in zip(("python", "numpy", "torch"), before, first, strict=True)
                if old != new
            }
            assert changed == set(row.seeds) - {"cuda"}, name
            random.random(), np.random.rand(), torch.rand(1)
            function(20261121)
            for library, old, new in zip(("python", "numpy", "torch"), first, everything(), strict=True):
                assert (old == new) is (library in row.seeds), (name, library)


def test_entropy_is_fresh():
    for row in FACTS.seeds:
        if row.entropy and "torch" in row.seeds:
            for name in row.names:
                assert find(name)() != find(name)()


def test_canonical_names_of_torch_are_the_same_objects():
    for name, target in FACTS.canonical.items():
        if not name.startswith("torch."):
            continue
        if name.endswith("[]"):
            home, _, attribute = name[:-2].rpartition(".")
            declared = str(inspect.get_annotations(import_module(home))[attribute])
            assert f"[{target.removesuffix('()')}]" in declared.replace("torch._C.", "torch."), name
            continue
        module = import_module(name) if _is_module(name) else None
        if module is None:
            one, other = inspect.unwrap(find(name)), inspect.unwrap(find(target))
            assert one is other or (one.__module__, one.__name__) == (other.__module__, other.__name__), name
            continue
        home = find(target)
        public = [
            member
            for member, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", "") == name and not member.startswith("_")
        ]
        shared = [member for member in public if getattr(home, member, None) is getattr(module, member)]
        assert len(shared) * 2 >= len(public), name


def _is_module(name):
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def test_every_public_module_of_torch_nn_and_distributions_has_its_canonical_name():
    for package in (torch.nn.modules, torch.distributions):
        for info in pkgutil.iter_modules(package.__path__):
            home = package.__name__.removesuffix(".modules")
            module = import_module(f"{package.__name__}.{info.name}")
            classes = [
                value
                for value in vars(module).values()
                if inspect.isclass(value) and value.__module__ == module.__name__
            ]
            if classes and all(getattr(import_module(home), kind.__name__, None) is kind for kind in classes):
                names = {module.__name__, *(f"{module.__name__}.{kind.__name__}" for kind in classes)}
                assert names & FACTS.canonical.keys(), module.__name__


# Small graphs, by the function that makes one.
GRAPHS = {
    "barabasi_albert_graph": (9, 2),
    "connected_watts_strogatz_graph": (9, 4, 0.3),
    "erdos_renyi_graph": (9, 0.3),
    "expected_degree_graph": ([2, 2, 2, 2],),
    "geographical_threshold_graph": (9, 10),
    "random_geometric_graph": (9, 0.3),
    "random_k_out_graph": (9, 3, 1.0),
    "random_regular_graph": (3, 8),
    "stochastic_block_model": ([5, 5], [[0.5, 0.1], [0.1, 0.5]]),
    "watts_strogatz_graph": (9, 4, 0.3),
    "waxman_graph": (9,),
}
# The one has been the other since networkx 3.7.
RENAMED_GRAPHS = {"networkx.random_lobster", "networkx.random_lobster_graph"}
GRAPH_ROWS = [row for row in FACTS.draws if row.names[0].startswith("networkx.")]


@pytest.mark.parametrize("row", GRAPH_ROWS, ids=[row.names[0] for row in GRAPH_ROWS])
def test_a_random_graph_draws_where_it_gets_no_seed(row):
    networkx = pytest.importorskip("networkx")
    place = row.parameters.index("seed")
    tried = 0
    for name in row.names:
        make = getattr(networkx, name.removeprefix("networkx."), None)
        if make is None:
            assert name in RENAMED_GRAPHS
            continue
        assert list(inspect.signature(make).parameters)[place] == "seed", name
        given = GRAPHS.get(make.__name__)
        if given is None:
            continue
        before = {"python": random.getstate(), "numpy": str(np.random.get_state())}
        make(*given, seed=3)
        assert before == {"python": random.getstate(), "numpy": str(np.random.get_state())}, name
        make(*given)
        after = {"python": random.getstate(), "numpy": str(np.random.get_state())}
        assert [library for library, state in before.items() if state != after[library]] == [row.library], name
        tried += 1
    assert tried


def test_what_takes_no_seed_is_told_to_raise():
    calls = [f"{name}(7)" for row in FACTS.seeds if row.entropy for name in row.names if "torch" in row.seeds]
    assert calls
    for call in calls:
        with pytest.raises(TypeError):
            find(call.removesuffix("(7)"))(7)
        (one,) = api.lint_source(f"import torch\n{call}\n", select=["TDL105"])
        assert one.message.startswith(f"`{call}` raises a TypeError")
