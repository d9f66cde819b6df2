"""What is known of a value, plain data: a tensor or not, its type and device, and whether a gradient flows."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal

import libcst as cst
import msgspec
from msgspec.structs import replace

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from torchdet_lint.catalogue.facts import Tensors

What = Literal["tensor", "other", "unknown"]
Dtype = Literal["integer", "bool", "floating", "unknown"]
Device = Literal["cpu", "cuda", "unknown"]
Gradient = Literal["yes", "no", "unknown"]

_SHAPED = frozenset(("expanded", "flat", "flattened", "repeated", "reshaped", "unsqueezed"))
# Of more classes an object is of none.
_CLASSES = 16
# Before the path of a file and before the name of a class as it stands there.
ELSEWHERE = "\0"
# Behind the name of an attribute that a constructor assigns, and that is no method.
ASSIGNED = "="
# Behind the name of a table, or of a module, and before the key by which something is taken from it: the object that a
# call of that makes. Without a key it is any.
PICKED = "?"
_COUNT = lazy(r"(?:\d+d?)?")


class AbstractValue(msgspec.Struct, frozen=True):
    """What is known of a value.

    `dims` is the number of dimensions, `single` those that evidently have size 1 (-1: the last), `distinct` says that
    no value occurs twice along a dimension, `overlapping` that one may occur in two rows, `rising` that the values
    do not fall, as `arange` and `cumsum` give them; `extent` is the text of `n` for a permutation of 0 to n - 1,
    `step` of the factor that it was multiplied with, and `divided` says that it was divided by a number. `whole`
    says that all are whole numbers, `items` are those of a tuple's elements, `each` that of what iterating gives,
    `entries` those of a dictionary by their keys, as far as these are constants, `instance` the class of an object
    that was made in sight, `among` those where it is one of several, and of one that another file made that file
    and the name there, between `ELSEWHERE`.
    """

    what: What = "unknown"
    dtype: Dtype = "unknown"
    device: Device = "unknown"
    gradient: Gradient = "unknown"
    dims: int | None = None
    single: frozenset[int] = frozenset()
    sparse: bool = False
    distinct: bool = False
    overlapping: bool = False
    rising: bool = False
    extent: str = ""
    step: str = ""
    divided: bool = False
    whole: bool = False
    items: tuple[AbstractValue, ...] = ()
    each: AbstractValue | None = None
    entries: tuple[tuple[str, AbstractValue], ...] = ()
    instance: str = ""
    among: tuple[str, ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of one of which it is an object, as far as they are known."""
        return (self.instance,) if self.instance else self.among

    @property
    def is_tensor(self) -> bool:
        """Whether it is evidently a tensor."""
        return self.what == "tensor"

    @property
    def is_integral(self) -> bool:
        """Whether its type adds up exactly: integers and booleans."""
        return self.dtype in ("integer", "bool")

    @property
    def is_whole(self) -> bool:
        """Whether all of its values are whole numbers, by type or as they were made."""
        return self.whole or self.is_integral

    @property
    def ones(self) -> frozenset[int]:
        """`single`, counted from the front where the number of dimensions is known."""
        return frozenset(size + (self.dims or 0) if size < 0 else size for size in self.single)


UNKNOWN = AbstractValue()
# What is being worked out: in a loop, a name is that and nothing else if all else agrees.
CIRCLE = AbstractValue()
OTHER = AbstractValue(what="other", gradient="no")
TENSOR = AbstractValue(what="tensor")
INTEGER = AbstractValue(what="other", dtype="integer", gradient="no")
FLOAT = AbstractValue(what="other", dtype="floating", gradient="no")
NONE = AbstractValue(what="other", gradient="no", instance="None")
EMPTY = AbstractValue(what="other")
# An array or a table of another library: so are its elements and what its methods give.
FOREIGN = AbstractValue(what="other", gradient="no", instance="numpy")
# An array of NumPy in which no value occurs twice along a dimension.
DISTINCT_ARRAY = AbstractValue(what="other", gradient="no", instance="numpy", distinct=True, overlapping=True)
SIZES = AbstractValue(what="other", gradient="no", each=OTHER)
DATUM = AbstractValue(what="tensor", gradient="no")
# What a loader gives: a tensor, or tensors together.
BATCH = AbstractValue(gradient="no", each=DATUM)
# What a trainer hands to a step: whatever a loader gives.
STEP_BATCH = AbstractValue(gradient="no", each=AbstractValue(gradient="no"))
# What was saved: an object, or what is looked up in a dictionary, or in one of these.
CHECKPOINT = AbstractValue(each=STEP_BATCH)
PARAMETER = AbstractValue(what="tensor", dtype="floating", gradient="yes")


def joined(values: Iterable[AbstractValue]) -> AbstractValue:
    """What holds of a value that is one of `values`. `None` beside something else does not count."""
    every = [value for value in values if value is not NONE]
    if not every:
        return UNKNOWN
    first, rest = every[0], every[1:]
    if not rest:
        return first
    found = first
    for inferred in rest:
        found = AbstractValue(
            what=found.what if found.what == inferred.what else "unknown",
            dtype=found.dtype if found.dtype == inferred.dtype else "unknown",
            device=found.device if found.device == inferred.device else "unknown",
            gradient=either(found.gradient, inferred.gradient),
            dims=found.dims if found.dims == inferred.dims else None,
            single=_both_single(found, inferred),
            sparse=found.sparse and inferred.sparse,
            distinct=found.distinct and inferred.distinct,
            overlapping=found.overlapping or inferred.overlapping,
            rising=found.rising and inferred.rising,
            extent=found.extent if found.extent == inferred.extent else "",
            step=found.step if found.step == inferred.step else "",
            divided=found.divided and inferred.divided,
            whole=found.whole and inferred.whole,
            items=tuple(joined(pair) for pair in zip(found.items, inferred.items, strict=True))
            if len(found.items) == len(inferred.items)
            else (),
            each=joined((found.each, inferred.each)) if found.each and inferred.each else None,
            entries=by_key((*found.entries, *inferred.entries)) if found.entries and inferred.entries else (),
            instance=found.instance if found.instance == inferred.instance else "",
            among=_either_class(found, inferred),
        )
    return found


def by_key(entries: Iterable[tuple[str, AbstractValue]]) -> tuple[tuple[str, AbstractValue], ...]:
    """The `entries` of a dictionary, each key once: any of those that it is given."""
    found: dict[str, list[AbstractValue]] = {}
    for key, value in entries:
        found.setdefault(key, []).append(value)
    return tuple((key, joined(values)) for key, values in found.items())


def text_of(node: cst.CSTNode | None) -> str:
    """The constant text that `node` is; else nothing."""
    text = node.evaluated_value if isinstance(node, cst.SimpleString) else ""
    return text if isinstance(text, str) else ""


def _either_class(left: AbstractValue, right: AbstractValue) -> tuple[str, ...]:
    """The classes of an object that is one of two, where they differ: what nothing is known of may be of any."""
    if left.instance == right.instance and left.among == right.among:
        return left.among
    if not all(one.classes or one.what == "unknown" for one in (left, right)):
        return ()
    found = tuple(dict.fromkeys((*left.classes, *right.classes)))
    return found if len(found) <= _CLASSES else ()


def portable(inferred: AbstractValue, path: str, roots: Collection[str]) -> AbstractValue:
    """`inferred`, in the file at `path`, as another file sees it: without the variables that its function alone
    knows by name, and with the classes of the project by the file that names them so; `roots` are those of libraries.
    """
    if not (
        inferred.items or inferred.each or inferred.extent or inferred.step or inferred.classes or inferred.entries
    ):
        return inferred
    classes = tuple(_portable_class(name, path, roots) for name in inferred.classes)
    return replace(
        inferred,
        items=tuple(portable(item, path, roots) for item in inferred.items),
        each=portable(inferred.each, path, roots) if inferred.each is not None else None,
        entries=tuple((key, portable(value, path, roots)) for key, value in inferred.entries),
        extent="",
        step="",
        instance=classes[0] if inferred.instance else "",
        among=() if inferred.instance else classes,
    )


def _portable_class(name: str, path: str, roots: Collection[str]) -> str:
    known = name.startswith(ELSEWHERE) or name.partition(".")[0] in roots or "." not in name
    return name if known else f"{ELSEWHERE}{path}{ELSEWHERE}{name}"


def _both_single(left: AbstractValue, right: AbstractValue) -> frozenset[int]:
    """The dimensions of size 1 of two values: the last of two is the second of any number."""
    if left.dims == right.dims or not left.single or not right.single:
        return left.single & right.single
    sizes = [
        value.single | {size + value.dims if size < 0 else size - value.dims for size in value.single}
        if value.dims is not None
        else value.single
        for value in (left, right)
    ]
    return sizes[0] & sizes[1]


def either(left: Gradient, right: Gradient) -> Gradient:
    """The gradient of what is computed from two values, or may be either."""
    if "yes" in (left, right):
        return "yes"
    return "no" if left == right == "no" else "unknown"


def unpacked(inferred: AbstractValue, path: Sequence[int]) -> AbstractValue:
    """What stands at `path` in a value that is taken apart, as `a` in `_, (a, _) = value` does at (1, 0)."""
    for index in path:
        if inferred.instance == FOREIGN.instance:
            return FOREIGN
        if index < len(inferred.items):
            inferred = inferred.items[index]
        elif inferred.each is not None:
            inferred = inferred.each
        elif inferred.is_tensor:
            inferred = replace(
                inferred, dims=inferred.dims - 1 if inferred.dims else None, single=frozenset(), items=()
            )
        else:
            return UNKNOWN if inferred.gradient != "yes" else AbstractValue(gradient="yes")
    return inferred


def arithmetic(left: AbstractValue, right: AbstractValue, operator: cst.BaseBinaryOp) -> AbstractValue:
    """What an operator makes of two values."""
    if not left.is_tensor and not right.is_tensor:
        if "yes" in (left.gradient, right.gradient):
            return AbstractValue(gradient="yes")
        if left.what == right.what == "other":
            return FOREIGN if FOREIGN.instance in (left.instance, right.instance) else left if left == right else OTHER
        none = isinstance(operator, cst.FloorDivide) or left.gradient == right.gradient == "no"
        return AbstractValue(gradient="no") if none else UNKNOWN
    tensors = [inferred for inferred in (left, right) if inferred.is_tensor]
    every = [inferred for inferred in (left, right) if inferred.what != "other" or inferred.is_tensor]
    dtype: Dtype = "unknown"
    if "floating" in (left.dtype, right.dtype) or isinstance(operator, cst.Divide):
        dtype = "floating"
    elif len(every) == len(tensors) and all(inferred.is_integral for inferred in tensors):
        dtype = "integer" if any(inferred.dtype == "integer" for inferred in tensors) else "bool"
    dims = None
    if len(tensors) == len(every):
        known = [inferred.dims for inferred in tensors]
        dims = max(value or 0 for value in known) if all(value is not None for value in known) else None
    devices = {inferred.device for inferred in tensors}
    gradient = tensors[0].gradient if len(every) == 1 else either(every[0].gradient, every[-1].gradient)
    if isinstance(operator, cst.MatrixMultiply):
        dims = None
    number = right if left.is_tensor else left
    sized = number.what == "other" and (number.dtype in ("integer", "floating") or number == OTHER)
    return AbstractValue(
        what="tensor",
        dtype=dtype,
        device=devices.pop() if len(devices) == 1 else "unknown",
        gradient="no" if dtype in ("integer", "bool") else gradient,
        dims=dims,
        single=tensors[0].single if sized else frozenset(),
    )


def of_tensor(owner: AbstractValue, name: str) -> AbstractValue:
    """The attribute `name` of a tensor."""
    if name in ("T", "mT", "H", "mH", "real", "imag"):
        return replace(owner, single=frozenset(), items=())
    if name == "data":
        return replace(owner, gradient="no")
    if name == "grad":
        return AbstractValue(what="tensor", dtype="floating", gradient="no", device=owner.device, dims=owner.dims)
    if name == "values":
        return replace(owner, items=())
    if name == "indices":
        return AbstractValue(what="tensor", dtype="integer", gradient="no", device=owner.device)
    return SIZES if name == "shape" else OTHER


def named(inferred: AbstractValue, name: str, facts: Tensors) -> AbstractValue:
    """`inferred`, with what the name says where nothing else told."""
    if inferred.what == "other":
        return inferred
    words = _words(name)
    if inferred.dtype in ("unknown", "integer") and not words.isdisjoint(facts.distinct_words):
        return replace(inferred, dtype="integer", gradient="no", distinct=True)
    told = inferred.gradient == "no" or (inferred.gradient == "yes" and inferred.is_tensor)
    told = told and words.isdisjoint(facts.index_words)
    if not told and inferred.dtype == "unknown" and not words.isdisjoint(facts.integer_words):
        return replace(inferred, dtype="integer", gradient="no")
    if inferred.dtype in ("unknown", "floating") and not inferred.whole and not words.isdisjoint(facts.whole_words):
        inferred = replace(inferred, whole=inferred.gradient != "yes")
    if inferred.gradient != "unknown":
        return inferred
    if not words.isdisjoint(facts.data_words):
        return replace(inferred, gradient="no")
    if inferred.dtype in ("unknown", "floating") and not words.isdisjoint(facts.gradient_words):
        return replace(inferred, gradient="yes")
    return inferred


def stands_for(name: str, words: Iterable[str]) -> bool:
    """Whether `name` ends in one of `words`."""
    return not _words(name).isdisjoint(words)


@functools.lru_cache(maxsize=4096)
def _words(name: str) -> frozenset[str]:
    """The name, its last word, its last two, the name marked as such, and the words before the last, marked; a word
    that says what shape it was given does not count."""
    parts = [part for part in name.lower().rstrip("0123456789_").split("_") if not _COUNT.fullmatch(part)]
    while len(parts) > 1 and parts[-1] in _SHAPED:
        parts.pop()
    whole = name.lower()
    before = (f"{part}_" for part in parts[:-1])
    return frozenset({whole, f"={whole}", *parts[-1:], "_".join(parts[-2:]), *before})
