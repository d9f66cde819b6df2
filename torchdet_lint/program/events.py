"""What a body does, plain data: the whole-program half reads nothing else of a file, and the cache keeps it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

MODULE = ""
# Arms are counted from 1; that of the main guard, and those of calls that may be of several functions.
GUARD = 1_000_000
CHOICE = 2_000_000
# Below the negative of this: what runs in every run that does not fail, below `if …: raise …`.
FAILS = 3_000_000
Names = tuple[str, ...]
PASSED = "passed"
HANDED = "handed"
INDIRECT = (PASSED, HANDED)
# A test that asks only on which device something is put.
DEVICE = "device"
# The switch of the convolutions.
CUDNN = "torch.backends.cudnn.deterministic"
LOADER = "torch.utils.data.DataLoader"
# Its argument that says how many processes load.
WORKERS = "num_workers"
# In a name: the loader of a data set.
LOADED = "[in]"
# In a name: any of what stands before it; `[*]` is any module of a package, `[*_net]` any whose name ends so.
ANY = "*"
MODULES = f"[{ANY}]"
# In a name: what stands before it in a table, under the key behind it.
KEY = ":"
# Before what something is only said to be, which counts where it stands for nothing else that is known.
TOLD = "|"
# In a name: each layer that the object before it holds.
CHILDREN = "**"
# Before a name: the dictionary that stands at that row and column of the file, of which Hydra makes an object.
WRITTEN = "="
# The argument that holds what a process is started with.
STARTED_WITH = "args"
# What a call is given by `**`, among its keywords; and what a function takes so.
REST = "**"
# In a name, behind a function and before a closing brace: what is known of the text by which it finds what it gives.
NAMED = "{"
# In a name, behind a call: the place in the tuple that the call gives, `@.build()#1`.
AT = "#"
# The name of what finds that itself.
LOCATE = "pydoc.locate"
# The kind of a test of a parameter that is such a text: no arm depends on it.
SPELLS = "spells"
# The same of one by which something is taken from a registry.
KEYS = "keys"
# What makes whole models of images.
MODELS = ("torchvision.models.", "timm.create_model")
PLAIN = (str, int, float, bool, type(None))
# Classes of which it is known whether a constant is one of them.
BUILT_IN = frozenset(("bool", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"))
# Before the name of a parameter: what is off where that is, `self.mirror = train and …`; what is that unless it is
# nothing, `self.rng = rng or numpy.random`; what is true where that is None, `self.whole = length is None`, or is not;
# what is None where that is off, `self.erase = Erase(p) if p > 0 else None`, or is empty where that is None.
OFF_WITH = "&"
ELSE = "|"
NONE = "~"
SOME = "^"
NOTHING = "!"
EMPTY = "[]"
# Before a parameter and a method of texts: another spelling of it, `self.mode = mode.lower()`.
SPELT = "aA"
# Before `x.device`: the device that a tensor or a model is on, which nobody chose here.
WHERE = "<where>"
# The value of a parameter that is given a generator of its own, whichever; a test that asks for no more than that.
GENERATOR = "<generator>"
# The same where it is given a function in sight, or an object, in place of the one that stands for it by default.
GIVEN = "<given>"
OWN = "own"
# The same where it is given something that is evidently not None: that answers only the test for None.
PRESENT = "<present>"
# What a parameter becomes: a list of it alone; a list of what is made of each of it, `[f(x) for x in p]`.
LISTED = "<listed>"
EACH = "<each>"
# Behind the name of a parameter: what each element of the list that it is given is, where all of them are the same.
EACH_OF = "[each]"
# The same: how many elements that list has.
LENGTH = "[len]"
OF_LISTS = (EACH_OF, LENGTH)
# The length of a list that a function hands on as long as it was given it.
AS_GIVEN = -2
# A place in a name, and what a name has of which a table or a text decides what it stands for.
PLACED = lazy(r"#\d+")
_FOUND = lazy(r"[\[{:]|(?!^)\*")
# How a number is compared with another one.
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


class Rebinding(msgspec.Struct, frozen=True, array_like=True):
    """What a parameter becomes where a test of it holds (`then`), and where it does not (`otherwise`): a constant,
    `LISTED` or `EACH` in a 1-tuple, nothing else where it keeps its value, or None where nobody knows. The test is of
    that `kind`, with that `value`; of no kind where it asks something else."""

    kind: str
    value: Any
    then: tuple[Any, ...] | None
    otherwise: tuple[Any, ...] | None


class Argument(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """An argument: the names it stands for, and its value where that is a constant (`known`). It is `unsure` whether a
    dictionary that is unpacked, and of which not all is in sight, passes it; one that is `present` is evidently not
    None, whatever it is. Of a loader that is made in sight, `loader` is what iterating it does; of one that is a
    parameter, `rebound` says what became of it before. What a loader is given was `made` at that row and column, where
    one call in the same body makes it. A list that is written out has that `length` for good, and a parameter the one
    that it came with (`AS_GIVEN`); -1 where nobody knows. What a process is started with is told of each of its
    `elements`, and what a dictionary holds, that is written out, of its `entries`."""

    names: Names = ()
    known: bool = False
    value: Any = None
    unsure: bool = False
    present: bool = False
    loader: Event | None = None
    rebound: tuple[Rebinding, ...] = ()
    made: tuple[int, ...] = ()
    length: int = -1
    elements: tuple[Argument, ...] = ()
    entries: tuple[tuple[str, Argument], ...] = ()


class Event(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One thing that a body does.

    `kind`: `call` (of `names`), `import`, `set` (an attribute `names` is given `positional[0]`), `env` (the variable
    `names[0]` is set to `positional[0]`, of which nothing is known where not every run does so; by `names[1]` only
    where it is not set), `cuda` (a text speaks of the device: `names[0]` is `evident` or `possible`; or the program
    fails without: `needed`), `update` (`p.grad += …`: `grad`; `p -= p.grad`: `step`, and how the gradient came), `tell`
    (a value is printed, `names[0]` is `tells`, or a loop waits for somebody: `serves`), `read` (an attribute `names` of
    what may be an object of the project, not called), `iterate` (a loader that a call of `names` with these arguments
    makes is iterated, the parameter behind `[in]`, or what a call of something of the project gives). Rows count from
    1, columns from 0 in bytes, as `ast` has them; `statement` is the row of the statement. `branch` holds the arms of
    `if`s around it: `n` and `-n` exclude each other. `deferred` events run later or in another order (a lambda),
    `locked` ones stand in a `with …lock…:`, `idle` ones in a statement whose draw changes no result, `trained` ones run
    only `if self.training`, or make colours, `ungraded` ones stand in a `with torch.no_grad()`, `regraded` ones in a
    `with torch.enable_grad()`, `sized` ones make a model of which only the parameters are counted, `frozen` ones a
    module that gets no gradient, `unapplied` ones a model of which only the weights are read; what a `composed` call
    hands on by `**` is put together in the file; the result of a `bare` call is used for nothing; one that runs
    `partly` stands in a part of a conditional
    expression, `and` or `or`, or is compared. A layer that is `kept` is so under that name, of which the file reads
    only weights. One that reads `data` loads that, and no weights. What a `passing` one draws reaches no result unless
    it is drawn again. One that `downloads` stands below a question for that. What is
    drawn for the weights of `reloaded`, the model that is made, is replaced before anything reads it;
    one that is `evaluated` too draws nothing in training.
    """

    kind: str
    row: int
    column: int
    statement: int
    names: Names = ()
    positional: tuple[Argument, ...] = ()
    keywords: dict[str, Argument] = {}
    opaque: bool = False
    branch: tuple[int, ...] = ()
    deferred: bool = False
    locked: bool = False
    idle: bool = False
    trained: bool = False
    bare: bool = False
    ungraded: bool = False
    sized: bool = False
    frozen: bool = False
    partly: bool = False
    unapplied: bool = False
    kept: str = ""
    composed: bool = False
    regraded: bool = False
    data: bool = False
    passing: bool = False
    downloads: bool = False
    reloaded: Names = ()
    evaluated: bool = False


class Test(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A condition on a parameter, on an attribute of `self` (`self.train`), or on an option of the command line, by
    the parameter that holds it (`args.model`) or by the name of what does (`@.parsed().model`), or on each element of
    the list that a parameter is given (`flags[each]`), or on how many there are (`flags[len]`): that it is true
    (`kind` `true`), equal to `value` (`equal`), one of it (`among`), of a class of it (`is`), a text with it
    (`holds`), or less or greater (`COMPARED`); the arms of `if`s that do not run where it holds, and where it does
    not (0: none). One of a kind of `INDIRECT` is not asked here, but given to another function, which may ask:
    `passed` where it is off by default or goes to the constructor above, else `handed`. Of a `device` something is
    put on it: no arm depends on it. Of an `own` one methods are called, or those of a global generator that stands
    in for it. `rebound` is what became of the parameter before it is asked."""

    parameter: str
    kind: str
    value: Any = None
    dead: int = 0
    dead_otherwise: int = 0
    rebound: tuple[Rebinding, ...] = ()

    @property
    def asks_for_none(self) -> bool:
        """Whether the condition is that the parameter is None."""
        return self.kind == "equal" and self.value is None

    def rules_out(self, value: Any) -> int:
        """The arm that does not run where the parameter is `value`, or one of several, or 0."""
        if isinstance(value, tuple):
            arms = {self.rules_out(one) for one in value}
            return arms.pop() if len(arms) == 1 else 0
        known = become(value, self.rebound)
        told = holds(self.kind, self.value, known[0]) if known is not None else None
        return 0 if told is None else (self.dead if told else self.dead_otherwise)


def holds(kind: str, asked: Any, value: Any) -> bool | None:
    """Whether a test of that `kind`, which has `asked` in it, holds of what is `value`; None: nobody knows."""
    if value == PRESENT:
        return False if kind == "equal" and asked is None else None
    if kind == "true":
        return bool(value)
    if kind == "equal":
        return bool(value is asked or value == asked)
    if kind == "among":
        return value in asked
    if kind == "holds" and isinstance(value, (str, list)):
        return asked in value
    if kind == "is" and isinstance(value, (*PLAIN, list)) and value not in (GENERATOR, GIVEN):
        return any(one.__name__ in asked for one in type(value).__mro__)
    if kind in COMPARED and isinstance(value, (int, float)):
        return COMPARED[kind](value, asked)
    return None


def become(value: Any, rebound: tuple[Rebinding, ...]) -> tuple[Any] | None:
    """What a parameter that is `value` becomes, in a 1-tuple; None: nobody knows."""
    for one in rebound:
        told = holds(one.kind, one.value, value) if one.kind else None
        made = one.then if told else one.otherwise
        if told is None or made is None:
            return None
        if made == (EACH,) and value not in ([], ""):
            return None
        value = [value] if made == (LISTED,) else [] if made == (EACH,) else made[0] if made else value
    return (value,)


def at_place(name: str, place: str) -> str:
    """The name of what stands at a `place`, `#1`, of that which a call of a function gives; any other name as it is."""
    return f"{name}{place}" if name.endswith("()") and not _FOUND.search(name) else name


def unplaced(name: str) -> str:
    """A name without the places in what calls give."""
    return PLACED.sub("", name) if AT in name else name


def is_result(name: str) -> bool:
    """Whether a name stands for what a call gives, or for a part of it."""
    return unplaced(name).endswith("()")


class Body(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a function does. `uses` are the parameters that it calls or calls methods of; `first` is what its first
    parameter is: `self`, `class` or nothing. `inner` are the functions defined in it, by qualified name. A `lazy` one
    is a generator, a context manager or a coroutine: a call alone runs nothing of it. `tests` are what constant
    arguments rule out, then those of `INDIRECT` kinds, then what only parts of expressions ask, `defaults` the constant
    defaults of the parameters that they ask, or of all of a constructor. `arms` are those in which `inner` functions
    are defined. `required` parameters have no default, the first `placed` ones may be passed by place, and `stars` are
    those of `*args` and `**kwargs`. `loops` are the parameters that it goes through, or hands on to functions. What is
    `returned` only in arms has these under its name. Of one that returns tuples that are written out, `rows` has the
    names of all else that it returns, and then those at each place. Where it returns one dictionary that it writes
    out, it has these `entries`; of one that returns a loader which it makes, alone or at one of the places, `loaders`
    has what iterating that does under the place, `""` or `#1`."""

    row: int
    events: tuple[Event, ...] = ()
    returns: Names = ()
    parameters: Names = ()
    uses: Names = ()
    first: str = ""
    decorators: tuple[Names, ...] = ()
    inner: Names = ()
    lazy: bool = False
    tests: tuple[Test, ...] = ()
    defaults: dict[str, Any] = {}
    arms: dict[str, tuple[int, ...]] = {}
    required: Names = ()
    stars: str = ""
    placed: int = 0
    loops: Names = ()
    returned: dict[str, tuple[tuple[int, ...], ...]] = {}
    rows: tuple[Names, ...] = ()
    entries: tuple[tuple[str, Argument], ...] = ()
    loaders: dict[str, Event] = {}

    def given_at(self, place: str) -> Names:
        """The names of what stands at a `place` of what it returns: of all of that, where there is none."""
        if not place:
            return self.returns
        whole, *parts = self.rows or (self.returns,)
        at = int(place[1:])
        return (*(parts[at] if at < len(parts) else ()), *(at_place(name, place) for name in whole))

    def is_decorated_with(self, names: Collection[str]) -> bool:
        """Whether one of its decorators, called or not, is one of `names`."""
        return any(name.removesuffix("()") in names for found in self.decorators for name in found)


class ClassSummary(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A class: the names of its bases, its methods by name, which of them are properties, and what runs where these
    are assigned."""

    bases: Names = ()
    methods: dict[str, str] = {}
    properties: Names = ()
    setters: dict[str, str] = {}


class Memo(msgspec.Struct, array_like=True):
    """All that was asked of one file so far: it is what the cache keeps of it."""

    bodies: dict[str, Body | None] = {}
    classes: dict[str, ClassSummary | None] = {}
    globals: dict[str, Names] = {}
    attributes: dict[str, Names] = {}
    stars: Names | None = None
    dispatch: dict[str, Names] | None = None
    configs: tuple[tuple[str, str], ...] | None = None
    defined: Names | None = None
    registers: dict[str, Names] | None = None
    registered: tuple[tuple[str, str, Names], ...] | None = None
    settings: dict[str, Argument | None] = {}
    assigned: dict[str, int] | None = None
    options: dict[str, tuple[Any, ...]] | None = None
    placed: dict[str, Names] = {}
