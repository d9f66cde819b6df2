"""A call and what it may be of -> those of them that take what it passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.program.events import ANY
from torchdet_lint.program.syntax.named_texts import OF_PARAMETER
from torchdet_lint.program.transfer.passing import parameters_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchdet_lint.program.effects import Referent
    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.lookup import Lookup


def fitting(lookup: Lookup, found: Mapping[Referent, str], events: Sequence[Event]) -> dict[Referent, str]:
    """Those of `found`, each with the name that stands for it, of which one of `events` may be a call. Where none fits,
    something is misread, and all may be called; but of what a name at run time picks, what is out of sight is."""
    picked = all(ANY in name or f".{OF_PARAMETER}" in name for name in found.values())
    if len(found) < 2 and not picked:
        return dict(found)
    fit = {one: name for one, name in found.items() if any(_fits(lookup, one, event) for event in events)}
    return fit if fit or picked else dict(found)


def _fits(lookup: Lookup, referent: Referent, event: Event) -> bool:
    """Whether `referent` takes what a call passes. Who calls methods of the language itself, such as `__getitem__`,
    passes what they take."""
    called = [referent]
    if referent.kind == "class":
        called = lookup.class_attribute(referent._replace(kind="instance"), "__init__")
    elif referent.kind != "function" or referent.name.endswith("__"):
        return True
    bodies = ((one, lookup.files.summary(one.file).body(one.name)) for one in called if one.kind == "function")
    return all(body is None or accepts(one, body, event) for one, body in bodies)


def accepts(referent: Referent, body: Body, event: Event) -> bool:
    """Whether a function can be called with the arguments of `event`; a decorator may change what it takes."""
    if body.decorators:
        return True
    taken = parameters_of(referent, body)
    by_place = taken[: body.placed - (len(body.parameters) - len(taken))]
    more, rest = body.stars in ("*", "***"), "**" in body.stars
    named = taken[: len(taken) - more - rest]
    keywords = event.keywords.keys() - {"**"}
    # `*args` may be empty.
    given = len(event.positional) - event.opaque
    if (given > len(by_place) and not more) or not (rest or keywords <= {*named}):
        return False
    passed = by_place[: len(event.positional)]
    missing = {*body.required} & {*taken} - {*passed, *keywords}
    return event.opaque or (not missing and (rest or keywords.isdisjoint(passed)))
