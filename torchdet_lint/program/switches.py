"""A switch of a configuration, `cfg.VAL.SHUFFLE` -> whether it is on, by all that the project gives it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from torchdet_lint.program.launch_configs import UNKNOWN
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from torchdet_lint.program.launch_configs import Configs

# Keys in capitals behind the name of what holds them, as such configurations write them.
SWITCH = lazy(r"(?:\w|\))\.((?:[A-Z][A-Z0-9_]*\.)+[A-Z][A-Z0-9_]*)$")
# What lays words of a command line over a configuration.
_OVERRIDES = lazy(r"\b(?:merge_from_list|merge_from_other_cfg|from_cli|from_dotlist|hydra)\b")


class Switches:
    """The switches that are the same wherever the project sets them, and that no command line sets."""

    def __init__(self, files: Iterable[str], text: Callable[[str], str], configs: Configs) -> None:
        """`text` gives that of one of the linted `files`."""
        self._files = sorted(files)
        self._text = text
        self._configs = configs
        self._known: dict[str, float | None] = {}

    def of(self, name: str) -> float | None:
        """Whether the switch that a name ends in, `$cfg.VAL.SHUFFLE`, is on, or the number that it is; None where
        nobody knows."""
        match = SWITCH.search(name)
        if match is None:
            return None
        if match[1] not in self._known:
            values = [*self._given(match[1].split("."))]
            same = all(type(one) is type(values[0]) and one == values[0] for one in values)
            self._known[match[1]] = values[0] if same and isinstance(values[0], (bool, int, float)) else None
        return self._known[match[1]]

    def _given(self, keys: list[str]) -> Iterator[Any]:
        """All that is given to a switch, what nobody knows among it."""
        word = keys[-1]
        assigned = re.compile(rf"\b{re.escape('.'.join(keys))}[ \t]*=(?!=)[ \t]*([^\n#]*)")
        ways = (
            rf"[\"']{word}[\"']",
            rf"(?<![.\w]){word}[ \t]*=(?!=)",
            rf"(?<=[a-z)\]])\.{word}[ \t]*=(?!=)",
            rf"\.{word}[ \t]*[-+|&^]=",
        )
        otherwise = re.compile("|".join(ways))
        written = False
        for text in map(self._text, self._files):
            if _OVERRIDES.search(text) is not None:
                yield UNKNOWN
            for match in assigned.finditer(text) if word in text else ():
                written = True
                yield _literal(match[1])
            if word in text and otherwise.search(text) is not None:
                yield UNKNOWN
        if not written:
            yield UNKNOWN
        yield from self._configs.given(keys)


def _literal(source: str) -> Any:
    try:
        return ast.literal_eval(source.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return UNKNOWN
