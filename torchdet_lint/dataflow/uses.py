"""What is done with an order, plain data: the uses that following a value ends in, and the state of the follower."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchdet_lint.dataflow.call_edges import CallEdges
from torchdet_lint.dataflow.def_use import DefUse
from torchdet_lint.dataflow.syntax import Messages, asks_for, bare, last_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.module.facts import Class
    from torchdet_lint.module.module import Module

# What a text is made of a value by, besides calls, and what gives it a name.
_IN_TEXT = (
    cst.Name, cst.Subscript, cst.Attribute, cst.BinaryOperation, cst.Arg, cst.Call, cst.Tuple, cst.Element,
)  # fmt: skip
_ASSIGNS = (cst.Assign, cst.AugAssign)
KEPT = ("returned", "yielded", "written", "saved")
LETS_GO = ("sorted", "measured", "told")
"""The kinds of uses that leave nothing of an order."""
NO_RESULT = frozenset((*LETS_GO, "printed"))
"""Those, and what is only printed: no result hangs on such an order."""
KEEPING = ("gathered", "saved", "written")


class Use(NamedTuple):
    """One thing that is done with a followed value: the node that does it, and what that is.

    `kind` is `sorted`, `measured` (length, membership, a set, a maximum), `indexed`, `picked` (first or last),
    `first` (the first that fits in a loop), `paired` (an argument of `zip`),
    `numbered` (with a counter), `joined` (into one text), `told` (in a message), `printed`, `written` (to a file),
    `saved`, `summed` (floats, whose sum hangs on the order), `trained` (an optimizer makes a step in each round),
    `dealt` (each element takes random numbers), `initialised` (or what is made for it does), `drawn` (shuffled or
    sampled), `gathered` (into an array, a table or a data set), `returned`, `yielded`,
    `keyed`, `called` (given to code that makes nothing of it, as far as one knows), `handed` (to code out of sight),
    `kept` (in an object, for others to read), `stored`, or `other`. `origin` is where a set was gone through. What is
    done in another file, `file`, has the node that goes there. `module` is that of `node`, where it is not that of who
    asked.
    """

    node: cst.CSTNode
    kind: str
    origin: cst.BaseExpression | None = None
    file: str = ""
    module: Module | None = None


class Trail:
    """What the followers of one value share, one for each file that it goes through.

    `is_set` says whether what is followed is a set, or many of them, `nested` levels inside a list, `listed` whether it
    began as a listing or a list, `joined` whether it is one text by now. `entered` are the functions that it was
    followed into, and the calls that did.
    """

    def __init__(self) -> None:
        self.is_set = False
        self.listed = False
        self.joined = False
        self.nested = 0
        self.seen: set[int | tuple[int, int]] = set()
        self.entered: dict[int, tuple[cst.Call, Trace]] = {}
        self.followers: list[Trace] = []


class Trace:
    """Follows a value through one file: a subclass says what each construct does with it."""

    def __init__(self, module: Module, trail: Trail | None = None) -> None:
        self.module = module
        self.trail = trail or Trail()
        self.orders = module.library.facts.orders
        self.words = self.orders.words
        self.silent = self.words["shown"] | self.words["messages"]
        self.definitions = module.shared(DefUse)
        self.edges = CallEdges(module)

    # What a subclass says.

    def of(self, node: cst.BaseExpression) -> Iterator[Use]:
        """The uses of the value of `node`."""
        raise NotImplementedError

    def named(self, name: cst.Name, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of `name`, bound at or changed by `node`, after it."""
        raise NotImplementedError

    def stored(self, target: cst.BaseExpression, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of what `node` assigns to `target`."""
        raise NotImplementedError

    def returned(self, node: cst.CSTNode, parent: cst.CSTNode, position: int = -1) -> Iterator[Use]:
        """The uses of what `parent` returns or yields; `position`: in the tuple that is returned."""
        raise NotImplementedError

    def answered(self, call: cst.Call, node: cst.CSTNode, position: int) -> Iterator[Use]:
        """The uses of what `call` gives, which is `node`, or in it at `position`."""
        raise NotImplementedError

    def lent(self, name: cst.Name, node: cst.CSTNode) -> Iterator[Use]:
        """The uses of what callers pass for the parameter `name`, which is filled at `node`."""
        raise NotImplementedError

    def reads_in_class(self, class_: Class, word: str) -> list[cst.Attribute]:
        """Where the methods of `class_` read the attribute `word` of an object."""
        raise NotImplementedError

    def reads_of(self, class_: Class, word: str) -> list[cst.Attribute]:
        """Where the file reads the attribute `word` of what is evidently an object of `class_`."""
        raise NotImplementedError

    def is_keyed(self, value: cst.BaseExpression, target: cst.BaseExpression, body: cst.CSTNode | None) -> bool:
        """Whether `value`, collected in a loop of `target` over what is followed, tells itself where it belongs."""
        return False

    # The machinery.

    def is_told(self, node: cst.BaseExpression) -> bool:
        """Whether `node` is part of a message, or of a text that a function makes for messages alone, or is what
        somebody may choose from."""
        messages, text = self.module.shared(Messages), self.words["text"]
        if messages.holds(node) or self._is_offered(node):
            return True
        one: cst.CSTNode | None = node
        while isinstance(one, _IN_TEXT) and not (isinstance(one, cst.Call) and last_word(one.func) not in text):
            one = self.module.parent(one)
        target = one.targets[0].target if isinstance(one, cst.Assign) else getattr(one, "target", None)
        if not isinstance(one, _ASSIGNS) or not isinstance(target, cst.Name) or target is node:
            return False
        if self.module.enclosing_function(one) is None or one.value is node:
            return False
        loads = [
            load
            for load in self.definitions.loads_after(target, one)
            if not isinstance(self.module.parent(load), cst.AugAssign)
        ]
        return bool(loads) and all(map(messages.holds, loads))

    def is_asked_for(self, node: cst.CSTNode) -> bool:
        """Whether of one element, which is `node`, nothing is asked but whether there is one, by its name too."""
        parent = self.module.parent(node)
        if isinstance(parent, cst.IfExp) and parent.test is not node:
            return self.is_asked_for(parent)
        if isinstance(parent, cst.Expr):
            # `next(folder.iterdir())` raises where there is none; one that has a name goes on behind its first.
            return (
                isinstance(node, cst.Call)
                and last_word(node.func) == "next"
                and not isinstance(node.args[0].value, cst.Name)
            )
        if not isinstance(parent, cst.Assign):
            return asks_for(self.module, node)
        target = parent.targets[0].target
        if len(parent.targets) != 1 or not isinstance(target, cst.Name) or self.module.enclosing_function(node) is None:
            return False
        loads = self.definitions.loads_after(target, parent)
        return bool(loads) and all(asks_for(self.module, load) for load in loads)

    def _is_offered(self, node: cst.BaseExpression) -> bool:
        arg = self.module.parent(node)
        call = self.module.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
            return False
        named = arg.keyword is not None and arg.keyword.value not in self.words["choices"]
        return last_word(call.func) in self.words["offers"] and not named

    def iterated(self, node: cst.BaseExpression, uses: Iterator[Use]) -> Iterator[Use]:
        """`uses` of what iterating `node` has made: no longer a set, unless the sets are inside it."""
        before = self.trail.is_set
        alone = before and not self.trail.nested
        self.trail.is_set = before and not alone
        for use in uses:
            yield use._replace(origin=use.origin or node) if alone else use
        self.trail.is_set = before

    def kind_of_call(self, names: Sequence[str], word: str) -> str:
        """What a call of `names`, whose last word is `word`, does with the order of an argument."""
        sorts = self.orders.sorts
        if sorts(word) or any(sorts(name.rpartition(".")[2]) for name in names):
            return "sorted"
        for name in names:
            if name in self.orders.kinds:
                return self.orders.kinds[name]
            if name.startswith("@."):
                return "local"
        if word == "join" and not names:
            return "joined"
        if word in self.words["numbering"] and all(self._is_of_library(name) for name in names):
            return "numbered"
        if word in self.words["saved"]:
            return "saved"
        if word.endswith(("Dataset", "tqdm", "TQDM")):
            return "gathered" if word.endswith("Dataset") else "passes"
        if word in self.words["set-methods"] or word in self.words["set-tests"]:
            return "measured"
        return "written" if word in self.words["written"] else "called"

    def _is_of_library(self, name: str) -> bool:
        return name.partition(".")[0] in self.module.library.roots

    def has_ties(self, call: cst.Call) -> bool:
        """Whether `call` sorts, or takes an extreme, by a key that elements evidently share: how long they are, or how
        often they occur. Those that share one stay in the order in which they came."""
        keys = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "key"]
        if not keys:
            return False
        key = keys[0]
        if not isinstance(key, cst.Lambda):
            return self._is_shared(key)
        value: cst.BaseExpression = key.body
        while isinstance(value, cst.UnaryOperation):
            value = value.expression
        params = [param.name.value for param in key.params.params]
        if isinstance(value, cst.Subscript):
            index = value.slice[0].slice
            element = index.value if isinstance(index, cst.Index) else None
            return element is not None and params == [bare(element)] and self.counts(value.value)
        if not isinstance(value, cst.Call) or not value.args:
            return False
        measured = value.args[0].value
        while isinstance(measured, cst.Subscript):
            measured = measured.value
        return params == [bare(measured)] and self._is_shared(value.func)

    def _is_shared(self, key: cst.BaseExpression) -> bool:
        """Whether the function `key` gives a length or a number of occurrences."""
        if isinstance(key, cst.Attribute):
            word = key.attr.value
            return word == "count" or (word in ("get", "__getitem__") and self.counts(key.value))
        return "builtins.len" in self.module.resolve(key)

    def counts(self, table: cst.BaseExpression) -> bool:
        """Whether `table` is evidently one of how often things occur."""
        names = self.module.resolve(table)
        if "collections.Counter()" in names:
            return True
        made = self.module.followed(table, self.module.scope_of(table), self.module.order_of(table))
        return (
            "collections.defaultdict()" in names
            and made is not None
            and isinstance(made.node, cst.Call)
            and any("builtins.int" in self.module.resolve(arg.value) for arg in made.node.args)
        )
