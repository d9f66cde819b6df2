"""A call that hands on a dictionary -> what stands there under the keys by which branches decide."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from torchdet_lint.program.events import PLAIN, REST
from torchdet_lint.program.transfer.passing import (
    NOTHING_GIVEN,
    UNKNOWN,
    bound_arguments,
    constant_in,
    parameter_of,
    passed_constant,
    starred,
)
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torchdet_lint.program.effects import Node, Referent
    from torchdet_lint.program.events import Argument, Body, Event
    from torchdet_lint.program.lookup import Lookup
    from torchdet_lint.program.transfer.options import Options
    from torchdet_lint.program.transfer.wanted import Wanted

    Calling = Callable[[str, Node], tuple[list[Event], list[Event]]]

# What lays options of a run over a dictionary.
_OVERLAID = lazy(r"\.update[ \t]*\(\s*(?:vars\b|\*\*|\w*(?:arg|opt|conf|cfg|overr|flag|param|sweep)\w*\b)")


class Entries:
    """What dictionaries hold that calls hand on, where they are written out in sight."""

    def __init__(self, lookup: Lookup, wanted: Wanted, options: Options) -> None:
        self.lookup = lookup
        self.wanted = wanted
        self.options = options
        self._put: dict[tuple[str, str], bool] = {}

    def given(
        self, node: Node, here: Mapping[str, Any], callee: Referent, body: Body, event: Event, calling: Calling
    ) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """The entries that a call in `node`, which was given what is `here`, hands on to a function, by the parameter
        that holds them: `config.encoder`. `calling` gives the calls of a name in a node and around it."""
        for parameter, argument in bound_arguments(callee, body, event).items():
            held = argument.entries or (argument.names and parameter_of(argument) is None)
            for key in sorted(self.wanted.options(callee, parameter)) if held else ():
                value = self._entry(argument, key, node, here, calling, callee.file)
                if value is not UNKNOWN:
                    yield f"{parameter}.{key}", (value,)
        own = starred(body)[-1] if REST in body.stars else ""
        for key in sorted(self.wanted.options(callee, own) - {*body.parameters}):
            named, rest = event.keywords.get(key), event.keywords.get(REST)
            value = UNKNOWN
            if named is not None and not named.unsure:
                value = named.value if named.known else constant_in(here, named)
            elif rest is not None:
                value = self._entry(rest, key, node, here, calling, callee.file)
            if isinstance(value, PLAIN):
                yield f"{own}.{key}", (value,)

    def _entry(
        self, argument: Argument, key: str, node: Node, here: Mapping[str, Any], calling: Calling, file: str
    ) -> Any:
        """What stands under `key` in the dictionary that an argument is; `UNKNOWN` where that is not in sight, or a
        file that has to do with it may put something else there."""
        if (own := parameter_of(argument)) is not None:
            passed = here.get(f"{own}.{key}", ())
            return passed[0] if isinstance(passed, tuple) and len(passed) == 1 else UNKNOWN
        found = dict(argument.entries).get(key)
        files = {node.file, file}
        if found is not None:
            values = [found.value if found.known else constant_in(here, found)]
        else:
            values = []
            name = argument.names[0] if len(argument.names) == 1 else ""
            for maker in self._makers(name, node):
                files.add(maker.file)
                mine, others = calling(name.removesuffix("()"), node)
                values += [self._returned(maker, key, one, here) for one in mine]
                values += [self._returned(maker, key, one, NOTHING_GIVEN) for one in others]
        value = values[0] if values else UNKNOWN
        if not isinstance(value, PLAIN) or any(type(one) is not type(value) or one != value for one in values):
            return UNKNOWN
        around = sorted(self.options.with_imports(frozenset(files)))
        return UNKNOWN if any(self._is_put(one, key) for one in around) else value

    def _makers(self, name: str, node: Node) -> list[Referent]:
        """The function of the project that gives what `name` stands for, alone."""
        function = name.removesuffix("()")
        if not name.endswith("()") or function[:1] in "$?%=|":
            return []
        found = self.lookup.evaluate(function, node.file, node.owner, node.name)
        return list(found) if len(found) == 1 and found[0].kind == "function" else []

    def _returned(self, maker: Referent, key: str, event: Event, here: Mapping[str, Any]) -> Any:
        """What stands under `key` in the dictionary that the call `event` of a function gives."""
        body = self.lookup.files.summary(maker.file).body(maker.name)
        found = dict(body.entries).get(key) if body is not None else None
        if body is None or found is None:
            return UNKNOWN
        if found.known:
            return found.value
        arguments = bound_arguments(maker, body, event)
        passed = arguments.get(parameter := parameter_of(found) or "")
        if passed is not None and not passed.known:
            return constant_in(here, passed)
        return passed_constant(parameter, arguments, event, body)

    def _is_put(self, file: str, key: str) -> bool:
        """Whether a file may put something under `key` into a dictionary: by that key, or by words of a run."""
        if (file, key) not in self._put:
            text = self.lookup.files.text(file)
            put = re.search(rf"\[\s*[\"']{key}[\"']\s*\]\s*=(?!=)", text) is not None
            self._put[file, key] = put or _OVERLAID.search(text) is not None
        return self._put[file, key]
