"""Codes, prefixes and names -> the rules that they mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdet_lint.config.options import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from torchdet_lint.config.options import Settings


def selection(settings: Settings, codes: Mapping[str, str]) -> frozenset[str]:
    """The codes that are switched on, of `codes` (code -> name). The longest prefix wins; at a draw, `ignore` does.

    Raises `ConfigError` for a selector that fits no rule.
    """
    selected = [*settings.select, *settings.extend_select]
    where = f"{settings.file}: " if settings.file else ""
    must_fit((*selected, *settings.ignore), codes, where)
    for pattern, ignored in sorted(settings.per_file_ignores.items()):
        must_fit(ignored, codes, f"{where}per-file-ignores: {pattern}: ")

    def weight(selectors: Iterable[str], code: str) -> int:
        return max((fits(selector, code, codes[code]) for selector in selectors), default=0)

    return frozenset(code for code in codes if weight(selected, code) > weight(settings.ignore, code))


def chosen(selectors: Sequence[str], codes: Mapping[str, str]) -> frozenset[str]:
    """The codes that any of `selectors` names. Raises `ConfigError` for one that fits no rule."""
    must_fit(selectors, codes, "")
    return frozenset(code for code in codes if any(fits(selector, code, codes[code]) for selector in selectors))


def must_fit(selectors: Iterable[str], codes: Mapping[str, str], where: str) -> None:
    """Raise `ConfigError`, which begins with `where`, for a selector that fits no rule."""
    for selector in selectors:
        if selector != "ALL" and not any(fits(selector, code, name) for code, name in codes.items()):
            meant = _several(selector, codes, where) or _meant(selector, codes)
            raise ConfigError(f"{where}no rule has the code, prefix or name {selector!r}{meant}")


def fits(selector: str, code: str, name: str) -> int:
    """How closely `selector` names the rule: 0 not at all, else the length of the prefix."""
    if selector == name:
        return len(code)
    if selector == "ALL":
        return 1
    return len(selector) if selector and code.startswith(selector.upper()) else 0


def _several(selector: str, codes: Mapping[str, str], where: str) -> str:
    """How several selectors are named, where `selector` is several in one text."""
    words = re.split(r"[\s,;]+", selector.strip())
    if len(words) < 2 or not all(any(fits(word, code, name) for code, name in codes.items()) for word in words):
        return ""
    return f"; did you mean {','.join(words)}?" if where.startswith("--") else f"; did you mean {words}?"


def _meant(selector: str, codes: Mapping[str, str]) -> str:
    word = near(selector, codes.values()) or near(selector.upper(), codes)
    return f"; did you mean {word!r}?" if word else "; `torchdet-lint rule --all` lists them"


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'select'?`, or the whole choice where nothing is near."""
    names = sorted(known)
    match = near(word.replace("_", "-"), names)
    return f"; did you mean {match!r}?" if match else f"; known are {', '.join(names)}"


def near(word: str, known: Iterable[str]) -> str:
    """The one of `known` that is nearly `word`; empty: there is none."""
    import difflib

    return next(iter(difflib.get_close_matches(word, sorted(known), 1, 0.75)), "")
