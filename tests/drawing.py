"""The installed libraries -> which of their public callables draw from which global generator, found by running them.

Each library is swept in a process and a folder of its own: its public functions are called with small arguments, its
classes are made and used, and the states of the generators of Python, NumPy and torch are compared before and after.
`python tests/drawing.py LIBRARY` sweeps one of them.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import inspect
import io
import random
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# By the distribution's name: the modules whose public names are called.
LIBRARIES = {
    "numpy": ("numpy", "numpy.random", "numpy.linalg", "numpy.fft"),
    "scipy": (
        "scipy.cluster.hierarchy", "scipy.cluster.vq", "scipy.integrate", "scipy.interpolate", "scipy.linalg",
        "scipy.linalg.interpolative", "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse",
        "scipy.sparse.csgraph", "scipy.sparse.linalg", "scipy.spatial", "scipy.spatial.transform", "scipy.stats",
        "scipy.stats.qmc", "scipy.stats.sampling",
    ),
    "scikit-learn": (
        "sklearn.calibration", "sklearn.cluster", "sklearn.compose", "sklearn.covariance",
        "sklearn.cross_decomposition", "sklearn.datasets", "sklearn.decomposition", "sklearn.discriminant_analysis",
        "sklearn.dummy", "sklearn.ensemble",
        "sklearn.feature_extraction.image", "sklearn.feature_selection", "sklearn.gaussian_process", "sklearn.impute",
        "sklearn.inspection", "sklearn.isotonic", "sklearn.kernel_approximation", "sklearn.kernel_ridge",
        "sklearn.linear_model", "sklearn.manifold", "sklearn.metrics", "sklearn.mixture", "sklearn.model_selection",
        "sklearn.multiclass", "sklearn.multioutput", "sklearn.naive_bayes", "sklearn.neighbors",
        "sklearn.neural_network", "sklearn.preprocessing", "sklearn.random_projection", "sklearn.semi_supervised",
        "sklearn.svm", "sklearn.tree", "sklearn.utils", "sklearn.utils.random",
    ),
    "pandas": ("pandas", "pandas.DataFrame", "pandas.Series"),
    "imbalanced-learn": ("imblearn.combine", "imblearn.ensemble", "imblearn.over_sampling", "imblearn.under_sampling"),
    "torchvision": ("torchvision.transforms", "torchvision.transforms.v2", "torchvision.ops", "torchvision.utils"),
    "torchaudio": ("torchaudio.functional", "torchaudio.transforms"),
    "torch-geometric": (
        "torch_geometric.nn.inits", "torch_geometric.datasets.graph_generator", "torch_geometric.sampler",
        "torch_geometric.transforms", "torch_geometric.utils",
    ),
    "dgl": ("dgl", "dgl.sampling", "dgl.transforms"),
    "gymnasium": ("gymnasium.spaces",),
    "transformers": ("transformers.data.data_collator", "transformers.trainer_pt_utils"),
    "lightning": ("lightning.pytorch.utilities", "lightning.pytorch.demos.boring_classes"),
    "accelerate": ("accelerate.utils",),
    "albumentations": ("albumentations",),
    "imgaug": ("imgaug.augmenters", "imgaug.parameters"),
    "monai": ("monai.transforms", "monai.data", "monai.losses"),
    "kornia": ("kornia.augmentation", "kornia.geometry.ransac", "kornia.utils"),
}  # fmt: skip
# What is not called: it seeds, starts, fetches, shows or changes files.
LEFT_OUT = re.compile(
    r"(?i)seed|determinis|set_state|rng_state|synchronize_rng|set_option|fetch|download|load_svmlight|openml|load_files"
    r"|clear_data|save|write|remove|delete|launch|spawn|install|show|plot|display|deprecat|test|clear_|notebook|debug"
    r"|memmap|fromfile|tofile|to_(?:sql|clipboard|csv|excel|pickle|hdf|parquet|feather|stata)|read_|wait_for|patch_"
)
# What draws and needs no row, and why.
EXPLAINED = {
    **dict.fromkeys(
        (
            "sklearn.calibration.LinearSVC().fit", "sklearn.svm.NuSVR().fit", "sklearn.svm.OneClassSVM().fit",
            "sklearn.svm.SVR().fit",
        ),
        "hands its solver a seed; a row of TDL107 says of which classes of sklearn.svm that changes the result",
    ),
    **dict.fromkeys(
        (
            "sklearn.covariance.GraphicalLasso().fit", "sklearn.covariance.GraphicalLassoCV().fit",
            "sklearn.covariance.graphical_lasso", "sklearn.linear_model.enet_path", "sklearn.linear_model.lasso_path",
        ),
        "hands its solver a seed, which goes through the features in turn and does not use it",
    ),
    **dict.fromkeys(
        (
            "sklearn.decomposition.DictionaryLearning().fit",
            "sklearn.decomposition.DictionaryLearning().fit_transform", "sklearn.decomposition.dict_learning",
        ),
        "uses what it draws only for an atom that nothing else uses",
    ),
    **{
        f"kornia.augmentation.{kind}Augmentation{size}()()": "an abstract base class"
        for kind in ("", "Geometric", "Intensity", "Mix", "RigidAffine")
        for size in ("Base2D", "Base3D", "BaseV2")
    },
    **{
        f"lightning.pytorch.demos.boring_classes.{name}": "one of Lightning's own demos"
        for name in (
            "BoringDataModule", "BoringModel", "DemoModel", "ManualOptimBoringModel", "Net", "RandomDataset",
            "RandomDictDataset",
        )
    },
    "scipy.interpolate.BarycentricInterpolator": "draws the order of its products, which changes their rounding alone",
    "scipy.linalg.logm": "draws only to estimate norms, by which it picks an approximation",
    "transformers.trainer_pt_utils.LayerWiseDummyOptimizer": "draws a tensor that stands for no parameter",
    "pandas.Series.sample": "TDL107 has `sample` of whatever comes from pandas under the name of a DataFrame's",
}  # fmt: skip
MARK = "drawing"
USES = (
    "fit", "fit_resample", "fit_transform", "split", "transform", "predict", "sample", "rvs", "draw_samples",
    "randomize",
)  # fmt: skip
SECONDS = 2
# A library that crashes the process is gone on with behind the name that did it, so many times.
CRASHES = 25


class TooLong(BaseException):
    """A call went on for too long; no handler of a library may catch it."""


def _arguments() -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """Values by the name of a parameter, and what the others are given, one set after the other."""
    values = np.random.default_rng(0)
    table, labels = values.normal(size=(30, 4)), np.arange(30) % 2
    picture = values.integers(0, 255, (32, 32, 3), dtype=np.uint8)
    pictures = torch.from_numpy(values.normal(size=(2, 3, 32, 32))).float().abs().clamp(0, 1)
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    named: dict[str, Any] = {
        "X": table, "x": table, "y": labels, "X_train": table, "estimator": None, "n": 3, "size": 3, "k": 2, "p": 0.5,
        "n_clusters": 2, "n_components": 2, "n_samples": 5, "image": picture, "img": pictures[0], "edge_index": edges,
        "num_nodes": 4, "n_population": 9, "shape": (3, 3), "m": 3, "density": 0.5, "func": np.sum, "bounds": [(-1, 1)],
        "x0": [0.5], "obs": table[:, :2], "data": table, "k_or_guess": 2, "eps": 0.5, "A": np.eye(6), "low": 0,
        "high": 2,
        "height": 8, "width": 8, "prob": 1.0, "probability": 1.0, "nvec": [2, 3], "num_edges": 2, "num_val": 1,
        "spatial_size": 8, "roi_size": 8, "mask_input": pictures, "sigma": 1.0, "kernel_size": 3, "degrees": 10,
    }  # fmt: skip
    others: list[tuple[Any, ...]] = [
        (table, labels, table), (3, 2, 2), (pictures[0], pictures[0], 2), (pictures, pictures, 2), (picture, picture),
        (edges, 4, 4), (0.5, 0.5), ([1, 2, 3], [1, 2]), (np.eye(6), 2), (np.sum, [(-1, 1)], 3), ((8, 8), 2),
    ]  # fmt: skip
    return named, others


def _states() -> dict[str, bytes]:
    return {
        "python": repr(random.getstate()).encode(),
        "numpy": repr([np.asarray(part).tobytes() for part in np.random.get_state()]).encode(),
        "torch": torch.get_rng_state().numpy().tobytes(),
    }


def _start(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def changed(call: Callable[[], object]) -> tuple[set[str], object]:
    """The generators that `call` draws from, and what it gives; what only seeds ends in one state from any start."""
    found: list[dict[str, bytes]] = []
    given: object = None
    drawn: set[str] = set()
    for seed in (1, 2):
        _start(seed)
        before = _states()
        with contextlib.suppress(Exception, SystemExit, TooLong), _limited():
            given = call()
        found.append(_states())
        drawn = {name for name, state in found[-1].items() if state != before[name]}
        if not drawn:
            break
    return {name for name in drawn if found[0][name] != found[-1][name]}, given


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def tries(function: Any) -> Iterator[Callable[[], object]]:
    """Calls of `function` with small arguments."""
    named, others = _arguments()
    try:
        every = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        every = None
    if every is None or any(one.kind is one.VAR_POSITIONAL for one in every):
        for count in (1, 2, 0):
            for values in others[: len(others) if count else 1]:
                yield lambda values=values[:count]: function(*values)
        return
    parameters = [one for one in every if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    for values in others if parameters else others[:1]:
        left = iter(values)
        keywords = {}
        positional = []
        for one in parameters:
            value = named.get(one.name) if one.name in named else next(left, 1)
            if one.kind is one.KEYWORD_ONLY:
                keywords[one.name] = value
            else:
                positional.append(value)
        yield lambda positional=tuple(positional), keywords=keywords: function(*positional, **keywords)
    if parameters:
        for values in others:
            count = len(parameters)
            yield lambda values=values, count=count: function(*values[:count])


def drawn_by(function: Any) -> tuple[set[str], list[object]]:
    """What the calls of `function` draw from, and a few of the things that they give."""
    drawn, given = set[str](), []
    for call in tries(function):
        some, result = changed(call)
        drawn |= some
        if result is not None:
            given.append(result)
        if drawn or len(given) == 3:
            break
    return drawn, given


def sweep(library: str, after: str = "") -> Iterator[tuple[str, str]]:
    """What is being tried, `try`, what could not be imported, `missing`, and what draws, by the generators; `Class`
    where it is made, `Class().method` where that is called. Only what comes `after` that name."""
    for module in LIBRARIES[library]:
        with contextlib.suppress(Exception, SystemExit):
            _owner(module)  # a call that is cut off must not leave one of them imported by half
    for module in LIBRARIES[library]:
        try:
            names = list(_public(module))
        except (Exception, SystemExit) as error:
            yield module, f"missing {type(error).__name__}: {error}".splitlines()[0]
            continue
        for name, value in names:
            full = f"{module}.{name}"
            if after:
                after = after if full != after else ""
                continue
            yield full, "try"
            drawn, made = drawn_by(value)
            if drawn:
                yield full, " ".join(sorted(drawn))
            yield from ((one, " ".join(sorted(drawn))) for one, drawn in _used(full, value, made))


def _used(full: str, value: Any, made: list[object]) -> Iterator[tuple[str, set[str]]]:
    """What objects of a class draw from, and a distribution that is a global object."""
    own = inspect.isclass(value)
    objects = made if own else [value] if hasattr(value, "rvs") else []
    for word in (*USES, "__call__") if own else ("rvs",):
        for one in objects:
            method = getattr(one, word, None)
            drawn = drawn_by(method)[0] if callable(method) else set()
            if drawn:
                yield f"{full}{'()' if own else ''}" + ("()" if word == "__call__" else f".{word}"), drawn
                break


def _public(module: str) -> Iterator[tuple[str, Any]]:
    """The callables that a module, or an object of a class, makes public, in order."""
    owner = _owner(module)
    for name in sorted(getattr(owner, "__all__", None) or dir(owner)):
        with contextlib.suppress(Exception):
            value = getattr(owner, name)
            own = str(getattr(value, "__module__", module)).partition(".")[0] == module.partition(".")[0]
            if callable(value) and own and not name.startswith("_") and LEFT_OUT.search(name) is None:
                yield name, value


def _owner(module: str) -> Any:
    """A module, or an object of a class."""
    outer, _, last = module.rpartition(".")
    owner: Any = importlib.import_module(outer if last[0].isupper() else module)
    return getattr(owner, last)(np.arange(30) % 2) if last[0].isupper() else owner


def version(library: str) -> str:
    """The installed version of a library; empty where it is not installed."""
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return ""


class Measured(NamedTuple):
    """What was found of a library: the generators by the name of what draws from them, how many names were tried, the
    modules that could not be imported and why, and the names that crashed."""

    draws: dict[str, list[str]]
    tried: int
    missing: list[str]
    crashed: list[str]


def measured(library: str) -> Measured:
    """What the public callables of an installed library draw from."""
    found = Measured({}, 0, [], [])
    last = ""
    for _ in range(CRASHES):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(Path(__file__).resolve()), library, last]
            run = subprocess.run(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
            )
        for line in run.stdout.splitlines():
            mark, _, rest = line.partition("\x1f")
            name, _, told = rest.partition("\x1f")
            if mark != MARK:
                continue
            if told == "try":
                last, found = name, found._replace(tried=found.tried + 1)
            elif told.startswith("missing "):
                found.missing.append(f"{name} ({told.removeprefix('missing ')})")
            else:
                found.draws[name] = told.split()
        if run.returncode == 0:
            break
        found.crashed.append(last or f"the import, with exit status {run.returncode}")
        if not last:
            break
    return found._replace(missing=sorted(set(found.missing)))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, told in sweep(sys.argv[1], *sys.argv[2:3]):
        print(MARK, name, told, sep="\x1f", flush=True)
