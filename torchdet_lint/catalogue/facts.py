"""The files of `rules/facts/` -> one struct: names, signatures, generators, runners, tensors, ops."""

from __future__ import annotations

from typing import Literal

import msgspec

from torchdet_lint.catalogue.conditions import Condition, Table
from torchdet_lint.catalogue.ops import Op
from torchdet_lint.catalogue.tables.conventions import Conventions, Workers
from torchdet_lint.catalogue.tables.devices import Devices
from torchdet_lint.catalogue.tables.hints import Hints
from torchdet_lint.catalogue.tables.memory import Memory
from torchdet_lint.catalogue.tables.orders import Orders
from torchdet_lint.catalogue.tables.programs import Programs


class Draw(Table, frozen=True, kw_only=True):
    """A callable that draws from a library's global generator, under conditions that all hold.

    `at` is the moment: the call itself, the constructor of a module, its call in training, a loader's iteration, or
    whenever an item of a data set is made. Of the names that a pattern of `names` fits, those that are `excluding` draw
    nothing. With `own` it draws the seed of a package's own generator, once, and
    not where the program seeds that itself. Given an object of one of the classes `idle_with` it draws nothing, or
    nothing that is left in the result.
    """

    names: tuple[str, ...]
    excluding: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    library: Literal["python", "numpy", "torch"]
    at: Literal["call", "construction", "forward", "training", "iteration", "item"] = "call"
    own: Literal["", "imgaug"] = ""
    when: tuple[Condition, ...] = ()
    idle_with: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


class Seed(Table, frozen=True, kw_only=True):
    """A callable that seeds global generators, or turns deterministic mode on; `argument` is the seed's parameter;
    where it is `optional`, nothing is seeded without it; where it is `defaulted`, it seeds without it, and nothing with
    None. What is `lazy` is a context manager: it seeds where it is entered, and not where it is only called.

    `when_mode` are the conditions under which it turns deterministic mode on (`mode` true: always), `when_lenient`
    those under which an op without a deterministic kernel only warns in it; `switch` says that it is the place to turn
    it off as well, and `give` the arguments with which a trainer that has the switch turns it on.
    """

    names: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    argument: str = ""
    optional: bool = False
    defaulted: bool = False
    lazy: bool = False
    seeds: tuple[Literal["python", "numpy", "torch", "cuda", "imgaug"], ...] = ()
    entropy: bool = False
    mode: bool = False
    when_mode: tuple[Condition, ...] = ()
    when_lenient: tuple[Condition, ...] = ()
    switch: bool = False
    give: dict[str, str] = msgspec.field(default_factory=dict)
    environment: tuple[str, ...] = ()
    note: str = ""
    evidence: tuple[str, ...] = ()


class Runner(Table, frozen=True, kw_only=True):
    """A callable that runs what it is handed: `arguments` are the parameters that take it.

    Of an object `methods` are run (none: it is called); `itself` says that the object whose method this is runs too.
    `process`: in a process of its own, which `fork` gives a copy of the generators' states and `spawn` does not
    (`launch`: as `spawn`, or in this one where one process is enough; `first`: before whatever runs there; `rpc`: in a
    thread of another process);
    `args`: what that passes it is given in this argument too, behind the `number` of the process, or `alone`;
    `deferred`: not at once. With `workers`, a parameter, the objects run here only where it is evidently 0 or not
    passed. `bare`: called without arguments it runs any function of the file,
    and of a class any method. `trains`, `steps` and `cuda`: it trains,
    it steps with the gradients that what it runs works out, it may run on CUDA; `host`: the conditions, if any, under
    which it is told to run on the CPU. `ungraded`: what it runs has no gradients; `graded`: the object's own methods
    run only where there are some.
    """

    names: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    itself: bool = False
    process: Literal["", "fork", "pool", "spawn", "launch", "first", "rpc"] = ""
    args: Literal["", "alone", "number"] = ""
    deferred: bool = False
    workers: str = ""
    bare: bool = False
    trains: bool = False
    steps: bool = False
    cuda: bool = False
    host: tuple[Condition, ...] = ()
    ungraded: bool = False
    graded: bool = False
    evidence: tuple[str, ...] = ()


class Tensors(Table, frozen=True, kw_only=True):
    """What the inference of tensors knows; functions and methods are given by their last name.

    A function of `modules` returns one tensor, but for those of `no_tensor`, `indexed` and `several`; a tensor's method
    too, but for those of `scalar`. `integer`, `boolean` and `floating` give the type of a result. The words are the
    last word of a variable's, a class's or a function's name, where nothing else tells.
    """

    modules: tuple[str, ...] = ()
    no_tensor: tuple[str, ...] = ()
    scalar: frozenset[str] = frozenset()
    integer: frozenset[str] = frozenset()
    boolean: frozenset[str] = frozenset()
    floating: frozenset[str] = frozenset()
    creation: tuple[str, ...] = ()
    sparse_values: dict[str, int] = msgspec.field(default_factory=dict)
    like: tuple[str, ...] = ()
    indexed: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    distinctive: tuple[str, ...] = ()
    namesakes: tuple[str, ...] = ()
    keeping_dims: tuple[str, ...] = ()
    reshaping: tuple[str, ...] = ()
    folding: tuple[str, ...] = ()
    taking: tuple[str, ...] = ()
    rearranging: frozenset[str] = frozenset()
    taking_at: dict[str, tuple[int, str]] = msgspec.field(default_factory=dict)
    integer_words: tuple[str, ...] = ()
    index_words: tuple[str, ...] = ()
    distinct_words: tuple[str, ...] = ()
    data_words: tuple[str, ...] = ()
    graph_words: tuple[str, ...] = ()
    counting: tuple[str, ...] = ()
    gradient_words: tuple[str, ...] = ()
    untracked_words: tuple[str, ...] = ()
    untracked_bases: tuple[str, ...] = ()
    untracked_functions: tuple[str, ...] = ()
    untracked_methods: tuple[str, ...] = ()
    untracked_steps: tuple[str, ...] = ()
    untracked_parameters: tuple[str, ...] = ()
    search_parameters: tuple[str, ...] = ()
    untracked_files: tuple[str, ...] = ()
    untracked_folders: tuple[str, ...] = ()
    untracked_layers: tuple[str, ...] = ()
    untracked_runs: tuple[str, ...] = ()
    data_classes: tuple[str, ...] = ()
    training_methods: tuple[str, ...] = ()
    attention_words: tuple[str, ...] = ()
    no_grad: tuple[str, ...] = ()
    enable_grad: frozenset[str] = frozenset()
    gradient_switches: tuple[str, ...] = ()
    differentiates: frozenset[str] = frozenset()
    evaluated: frozenset[str] = frozenset()
    decoding: frozenset[str] = frozenset()
    casts: frozenset[str] = frozenset()
    input_words: tuple[str, ...] = ()
    whole_words: tuple[str, ...] = ()
    without_gradient: frozenset[str] = frozenset()
    facts_of_tensors: frozenset[str] = frozenset()
    of_sparse: frozenset[str] = frozenset()
    keeping_values: frozenset[str] = frozenset()
    choosing: frozenset[str] = frozenset()
    rounding: frozenset[str] = frozenset()
    own_gradient: frozenset[str] = frozenset()
    passing_layers: frozenset[str] = frozenset()
    steps: frozenset[str] = frozenset()
    settings: frozenset[str] = frozenset()
    joining: frozenset[str] = frozenset()
    adopting: frozenset[str] = frozenset()
    of_images: frozenset[str] = frozenset()
    looking_up: frozenset[str] = frozenset()
    ones_and_zeros: frozenset[str] = frozenset()
    floating_by_default: frozenset[str] = frozenset()
    vectors: frozenset[str] = frozenset()
    always_indexed: frozenset[str] = frozenset()
    distinct_indices: frozenset[str] = frozenset()
    retyping: frozenset[str] = frozenset()
    adding_up: frozenset[str] = frozenset()
    reducing: frozenset[str] = frozenset()
    flattening: frozenset[str] = frozenset()
    resampling: frozenset[str] = frozenset()
    keeping_sizes: frozenset[str] = frozenset()
    keeping_sparse: frozenset[str] = frozenset()
    floating_casts: frozenset[str] = frozenset()
    finding_places: frozenset[str] = frozenset()
    distinct_arrays: frozenset[str] = frozenset()
    keeping_arrays: frozenset[str] = frozenset()
    array_libraries: frozenset[str] = frozenset()
    plain_libraries: frozenset[str] = frozenset()
    checkpoints: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    same_dims: frozenset[str] = frozenset()
    several_outputs: frozenset[str] = frozenset()
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    dtypes: dict[str, str] = msgspec.field(default_factory=dict)
    shaped: dict[str, str] = msgspec.field(default_factory=dict)
    modes: dict[str, int] = msgspec.field(default_factory=dict)
    dims: dict[str, int] = msgspec.field(default_factory=dict)


class Facts(Table, frozen=True, kw_only=True):
    """What several rules share: canonical names, signatures, generators, ops.

    `entropy` says of a callable whose result differs in every run what it reads: "the clock".
    """

    canonical: dict[str, str] = msgspec.field(default_factory=dict)
    signatures: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    bases: dict[str, str] = msgspec.field(default_factory=dict)
    ops: tuple[Op, ...] = ()
    tensors: Tensors = Tensors()
    orders: Orders = Orders()
    draws: tuple[Draw, ...] = ()
    seeds: tuple[Seed, ...] = ()
    runners: tuple[Runner, ...] = ()
    wrappers: tuple[str, ...] = ()
    fluent: tuple[str, ...] = ()
    modes_off: tuple[str, ...] = ()
    programs: Programs = Programs()
    devices: Devices = Devices()
    entropy: dict[str, str] = msgspec.field(default_factory=dict)
    conventions: Conventions = Conventions()
    workers: Workers = Workers()
    memory: Memory = Memory()
    hints: Hints = Hints()
    triggers: tuple[str, ...] = ()
