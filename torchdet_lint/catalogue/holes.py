"""A user's own rule -> what is wrong with its `url` and the `{holes}` of its messages, before they are needed."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.catalogue.rules import Rule

FOUND = frozenset({"name", "source"})
"""What is known of every call and assignment that is found: its name, and the source of it."""


_URL = lazy(r"https?://[!-~]+")

OF_OPS = frozenset({"name", "op", "device", "condition", "release", "instead", "measured_on"})
"""What is known of every operation that is found."""


def faults(rule: Rule) -> Iterator[str]:
    """One line for each message of `rule` that cannot be filled in, each that a row names and there is not, and a `url`
    that is none."""
    if rule.url and not _URL.fullmatch(rule.url):
        yield "url: expected an address that begins with https:// or http://"
    rows = [("calls", row.variant, FOUND | row.details.keys()) for row in rule.calls]
    rows += [("settings", row.variant, FOUND) for row in rule.settings]
    rows += [("ops", "", OF_OPS)] if rule.ops else []
    for table, variant, known in rows:
        if variant and variant not in rule.messages:
            yield f"[[{table}]]: no message is called {variant!r}"
            continue
        where = f"messages.{variant}" if variant else "message"
        text = rule.messages[variant] if variant else rule.message
        try:
            holes = [hole for _, hole, _, _ in string.Formatter().parse(text) if hole is not None]
        except ValueError as error:
            yield f"{where}: {error}; write {{{{ and }}}} for braces"
            continue
        for hole in holes:
            if hole not in known:
                listed = ", ".join(f"{{{name}}}" for name in sorted(known))
                yield f"{where}: nothing is known for {{{hole}}}; there are {listed}"
