"""A file -> what its functions do, in order, as plain data: the whole-program half reads nothing else of a file.

A summary is made from `ast`, one function at a time and only when that function is reached: a program of a thousand
files costs what the functions it runs cost, a tenth of what libcst would ask. Names follow `names.py` (`torch.rand`,
`@.helper`, `.data.load`, `torch.Generator().seed`); what only the caller knows starts with `$`: `$self.step`,
`$super.fit`, `$model()` for the parameter `model` called. `%model/net()` is what Hydra makes of its configuration's
`model.net`. `@.MODELS.[]` is an item of a dictionary, `$self.items.[]` of an attribute that starts empty. Braces hold
what is known of a text that names something: `@.import_class{net/gcn/Model}` (`named_texts.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.assigned import assigned
from torchdet_lint.prefilter.choices import options_of
from torchdet_lint.program.events import KEY, MODULE, Argument, Body, ClassSummary, Memo, Names
from torchdet_lint.program.syntax.file import File
from torchdet_lint.program.syntax.hollow import Hollow, parsed_body
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchdet_lint.prefilter.skeleton import Skeleton
    from torchdet_lint.program.syntax.vocabulary import Vocabulary

_CAPACITY = 1_000_000
# What gives options other values than a command line does.
_SETS_ASIDE = lazy(r"\bset_defaults\b|\bnamespace\s*=")
_STAR = lazy(r"import[\s\\]*\*")


class Shelf:
    """The syntax trees that are held: the ones used last, of files of so much text (a tree is forty times its text)."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        """`capacity` is in characters."""
        self._capacity = capacity
        self._held: dict[Summary, int] = {}
        self._total = 0

    def hold(self, summary: Summary, size: int) -> None:
        """`summary` is used, `size` characters of its file are parsed; what was used first is let go to make room."""
        self._total += size - self._held.pop(summary, 0)
        self._held[summary] = size
        while self._total > self._capacity and len(self._held) > 1:
            oldest = next(iter(self._held))
            self._total -= self._held.pop(oldest)
            oldest.close()


def module_body(skeleton: Skeleton, vocabulary: Vocabulary) -> Body | None:
    """`Summary.body(MODULE)` of a file that was cut: it is parsed already."""
    hollow = Hollow(skeleton.lines, skeleton.bodies, skeleton.tree)
    opened = File(hollow, vocabulary)
    found = opened.body(MODULE)
    opened.release()
    return found


class Summary:
    """One file, summarised on demand. The text is parsed when something is asked that `memo` does not know."""

    def __init__(
        self,
        hollow: Callable[[], Hollow],
        text: Callable[[], str],
        vocabulary: Vocabulary,
        memo: Memo | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        """`hollow` and `text` read the file; `memo` is what is known of it, `shelf` holds the trees."""
        self.memo = memo or Memo({}, {}, {}, {})
        self.grown = False
        self._hollow = hollow
        self._written = text
        self._vocabulary = vocabulary
        self._shelf = shelf or Shelf()
        self._opened: File | None = None

    @property
    def _file(self) -> File:
        self.grown = True
        opened = self._opened
        if opened is None:
            opened = self._opened = File(self._hollow(), self._vocabulary)
        self._shelf.hold(self, opened.size)
        return opened

    def close(self) -> None:
        """Let the syntax tree go; what was asked so far stays."""
        if self._opened is not None:
            self._opened.release()
        self._opened = None

    def body(self, name: str) -> Body | None:
        """The function with the qualified name `name` (`MODULE`: the file itself), or None."""
        known = self.memo.bodies
        if name not in known:
            known[name] = self._file.body(name)
        return known[name]

    def class_summary(self, name: str) -> ClassSummary | None:
        """The class with the qualified name `name`, or None."""
        known = self.memo.classes
        if name not in known:
            known[name] = self._file.class_summary(name)
        return known[name]

    def stands_for(self, name: str) -> Names:
        """The names that the global `name` stands for: `@.name` for a definition; none where it has none in sight."""
        known = self.memo.globals
        if name not in known:
            known[name] = self._file.stands_for(name) if self._may_bind(name) else ()
        return known[name]

    def keyed(self, name: str, key: str) -> Names:
        """The names of what the table `name` of the file holds under the key `key`: none if that is not in sight."""
        known = self.memo.globals
        both = f"{name}{KEY}{key}"
        if both not in known:
            known[both] = self._file.names.keyed(name, key) if self._may_bind(name) else ()
        return known[both]

    def entry(self, function: str, key: str) -> Names:
        """The names of what stands under `key` in the dictionary that a function of the file returns."""
        known = self.memo.globals
        both = f"{function}(){KEY}{key}"
        if both not in known:
            known[both] = self._file.entry(function, key)
        return known[both]

    def _may_bind(self, name: str) -> bool:
        """Whether the word `name` stands in the file, or letters that Python may read as such: of the files that a
        package takes everything from most are asked in vain, and need no parse."""
        text = self._written()
        return name in text or not text.isascii()

    def attribute(self, class_: str, name: str) -> Names:
        """The names of what is assigned to the attribute `name` in the body and methods of the class `class_`."""
        key = f"{class_}.{name}"
        known = self.memo.attributes
        if key not in known:
            known[key] = self._file.attribute(class_, name)
        return known[key]

    def setting(self, class_: str, name: str) -> Argument | None:
        """What methods of the class `class_` give to the attribute `name`: known where the constructor alone does."""
        key = f"{class_}.{name}"
        known = self.memo.settings
        if key not in known:
            known[key] = self._file.setting(class_, name)
        return known[key]

    def field(self, class_: str, name: str) -> Argument | None:
        """The constant that the body of the class `class_` alone gives to the attribute `name`."""
        key = f"{class_}:{name}"
        known = self.memo.settings
        if key not in known:
            known[key] = self._file.field(class_, name)
        return known[key]

    @property
    def assigned(self) -> dict[str, int]:
        """How often the file assigns to attributes of each name, but for what `setting` sees."""
        if self.memo.assigned is None:
            self.grown = True
            self.memo.assigned = assigned(self._hollow().lines)
        return self.memo.assigned

    def written(self, place: str) -> dict[str, Any]:
        """The dictionary that stands at `place`, a row and a column, as data: what is no constant is not known."""
        return self._file.written(place)

    @property
    def defined(self) -> Names:
        """The names of the functions and classes of the module, and of what it imports by name: what
        `getattr(module, name)` may pick."""
        if self.memo.defined is None:
            self.memo.defined = self._file.defined()
        return self.memo.defined

    @property
    def options(self) -> dict[str, tuple[Any, ...]]:
        """What the options of the file's command line may be, as `options_of` has them; nothing where none has choices,
        or defaults are set aside."""
        if self.memo.options is None:
            self.grown = True
            text = self._written()
            some = "choices" in text and "add_argument" in text and _SETS_ASIDE.search(text) is None
            self.memo.options = options_of(parsed_body(text)) if some else {}
        return self.memo.options

    def placed(self, attribute: str) -> Names:
        """The names of what statements of the file give to an attribute of that name, of any object but `self`."""
        known = self.memo.placed
        if attribute not in known:
            known[attribute] = self._file.placed(attribute)
        return known[attribute]

    @property
    def stars(self) -> Names:
        """The modules of `from … import *`."""
        if self.memo.stars is None:
            some = _STAR.search(self._written()) is not None
            self.memo.stars = tuple(self._file.scopes.stars) if some else ()
        return self.memo.stars

    @property
    def dispatch(self) -> dict[str, Names]:
        """Functions that the name of a call decides: `@app.command()` by the names of `app`, `set_defaults(func=run)`
        by `.func`."""
        if self.memo.dispatch is None:
            self.grown = True
            text = self._written()
            words = self._vocabulary.programs
            some = words.calls_register.search(text) or words.decorates_command.search(text)
            self.memo.dispatch = self._file.dispatch() if some else {}
        return self.memo.dispatch

    @property
    def registers(self) -> dict[str, Names]:
        """Dictionaries of the module that start empty, and the functions of the file that put into them what they
        decorate, with the key behind it (`register:0=name`, the text that it is given; `register:__name__`, what the
        decorated is called; `register:0=name|__name__`); `mapping:models`, and the methods that put something there."""
        if self.memo.registers is None:
            self.memo.registers = self._file.registers()
        return self.memo.registers

    @property
    def registered(self) -> tuple[tuple[str, str, Names], ...]:
        """What decorates, and what it decorates at the top level of the module: `.registry.MODELS.register` and
        `@.Net`; so is what a call alone is given. Then what the decorator is given, by place or name: `0=train`,
        `name=train`, or `0` for what is no text."""
        if self.memo.registered is None:
            self.memo.registered = tuple(self._file.registered())
        return self.memo.registered

    @property
    def configs(self) -> tuple[tuple[str, str], ...]:
        """Folder and name of the configurations that `hydra.main` is told; a file and no name before Hydra 1.0."""
        if self.memo.configs is None:
            self.memo.configs = tuple(self._file.configs())
        return self.memo.configs
