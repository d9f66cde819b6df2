"""A call that makes an object, or hands on to the class above -> the constructors that run, in Python's order, and
whether an argument may be added to the call."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from torchdet_lint.dataflow.syntax import bare, last_word
from torchdet_lint.module.tree import is_super
from torchdet_lint.source.modules import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    import libcst as cst

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Call, Module

    Answer = Literal["takes", "refuses", "fills"]

# So many classes are looked at above one, and so many of a file that have several bases.
_MANY = 32
# Classes whose names begin so have no constructor of their own.
_BARE = ("abc.ABC", "builtins.object", "collections.abc.", "sklearn.base.", "typing.")
_INIT = "__init__"


class Above(NamedTuple):
    """One of the classes in whose order Python looks for a method: its name in the file that names it, and where it is
    in sight its file and what that knows of it."""

    name: str
    place: tuple[Module, Class] | None

    @property
    def is_bare(self) -> bool:
        """Whether it is of a library, and has no constructor."""
        return self.name.startswith(_BARE)


class Constructors:
    """The constructors that calls of one file run."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._orders: dict[int, list[Above]] = {}
        self._mixed: list[list[Above]] | None = None

    def answer(self, call: Call, word: str) -> Answer:
        """Whether what `call` runs takes the argument `word` on to what it stands for in a library, refuses it, as far
        as is in sight, or hands on one of its own."""
        orders = list(self._run(call))
        if (
            len(orders) <= 1
            and not is_super(call.receiver)
            and all(one.place is None for order in orders for one in order)
        ):
            return "takes"
        known = [name for name in call.names if name.partition(".")[0] in self.module.library.roots]
        answers = [_answer(self.module, order, word, known) for order in orders]
        if "fills" in answers:
            return "fills"
        return "takes" if answers and all(one == "takes" for one in answers) else "refuses"

    def order(self, class_: Class) -> list[Above]:
        """`class_` of this file and what it derives from, in the order in which Python looks for a method: what several
        derive from comes behind all of them."""
        if id(class_) not in self._orders:
            self._orders[id(class_)] = in_order(self.module, class_)
        return self._orders[id(class_)]

    def _run(self, call: Call) -> Iterator[list[Above]]:
        """For each class that `call` may make an object of, or hand on for, the classes of which the first with a
        constructor runs it."""
        if is_super(call.receiver):
            class_ = self.module.enclosing_class_of_scope(call.scope)
            if class_ is not None:
                yield self.order(class_)[1:]
                yield from self._behind(class_)
            return
        for name in call.own:
            yield _named(self.module, name.removesuffix(f".{_INIT}"))

    def _behind(self, class_: Class) -> Iterator[list[Above]]:
        """What Python looks for behind `class_` where that is one of several bases of another class of the file."""
        if self._mixed is None:
            several = (one for one in self.module.classes.values() if len(one.bases) > 1)
            self._mixed = [self.order(one) for one in itertools.islice(several, _MANY)]
        for order in self._mixed:
            places = [at for at, above in enumerate(order) if above.place is not None and above.place[1] is class_]
            if places and places[0] > 0:
                yield order[places[0] + 1 :]


def in_order(module: Module, class_: Class) -> list[Above]:
    """`class_` of `module` and what it derives from, in the order in which Python looks for a method."""
    found: list[Above] = []
    queue, left = [Above(class_.name, (module, class_))], _MANY
    while queue and left > 0:
        left -= 1
        above = queue.pop()
        found.append(above)
        if above.place is not None:
            home, own = above.place
            bases = [_place(home, name) for name in home.base_names(own)]
            # A base that nobody can name is out of sight.
            unnamed = [Above("", None)] * (len(bases) < len(own.bases))
            queue += reversed([*unnamed, *bases])
    last = {above.place[1].scope if above.place is not None else above.name: above for above in reversed(found)}
    return [*reversed(last.values())]


def _named(module: Module, name: str) -> list[Above]:
    above = _place(module, name)
    return in_order(*above.place) if above.place is not None else [above]


def _place(module: Module, name: str) -> Above:
    """The class that `module` calls `name`, with its file where it is in sight."""
    class_ = module.local_class(name)
    if class_ is not None:
        return Above(name, (module, class_))
    project = module.neighbour is not None and name.partition(".")[0] not in module.library.roots | STANDARD
    found = module.neighbour(name) if module.neighbour is not None and project else None
    own = found[0].local_class(f"@.{found[1]}") if found is not None else None
    return Above(name, (found[0], own) if found is not None and own is not None else None)


def _answer(module: Module, order: Sequence[Above], word: str, targets: Sequence[str]) -> Answer:
    """What the first constructor of `order` does with an argument `word` for one of the library's `targets`."""
    for above in order:
        if above.place is None:
            if above.is_bare:
                continue
            return "refuses" if set(targets).isdisjoint(module.library.ancestors(above.name)) else "takes"
        home, class_ = above.place
        if _INIT not in class_.methods:
            continue
        function = home.definition(_INIT, class_)
        scope = home.inner_scope(function) if function is not None else None
        if function is None or scope is None:
            return "refuses"
        above_that = [call.node for call in home.calls_in(scope) if last_word(call.node.func) == _INIT]
        named = {arg.keyword.value: arg.value for call in above_that for arg in call.args if arg.keyword is not None}
        passed = word in named and bare(named[word]) == word and word in _parameters(function)
        if word in named and not passed and not home.value(named[word]).is_none:
            return "fills"
        if not passed and (word in named or not _passes_options(function, above_that)):
            return "refuses"
    return "refuses"


def _parameters(function: cst.FunctionDef) -> set[str]:
    params = function.params
    return {one.name.value for one in (*params.params, *params.kwonly_params)}


def _passes_options(function: cst.FunctionDef, passing: Sequence[cst.Call]) -> bool:
    """Whether the constructor `function` hands the `**options` that it takes on with each of the calls `passing`."""
    options = function.params.star_kwarg.name.value if function.params.star_kwarg is not None else ""
    starred = [[bare(arg.value) for arg in call.args if arg.star == "**"] for call in passing]
    return options != "" and bool(starred) and all(options in one for one in starred)
