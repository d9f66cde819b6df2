"""A constructor under a decorator that calls it with what a class method makes of a configuration -> what it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdet_lint.program.events import Argument, Event

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdet_lint.program.effects import Node, Referent
    from torchdet_lint.program.events import Body
    from torchdet_lint.program.lookup import Lookup

_CONSTRUCTOR = ".__init__"
_OF_CLASS = "$cls."


def configured(lookup: Lookup, node: Node, body: Body) -> Iterator[tuple[Referent, bool, Event]]:
    """The class methods that make the arguments of the constructor `node`, which has this `body`; whether a library's
    decorator calls them; and the call of the constructor with what they give."""
    if not body.decorators or not node.name.endswith(_CONSTRUCTOR) or not node.owner[1]:
        return
    for decorator in (name for names in body.decorators for name in names):
        for referent in lookup.evaluate(decorator, node.file, node.owner, node.name):
            outside = referent.kind == "external"
            for name in dict.fromkeys(_called(lookup, referent)):
                for maker in lookup.evaluate(name, node.file, node.owner, node.name):
                    if maker.kind == "function" and maker.owner == node.owner:
                        yield maker, outside, _call(lookup, node, body, maker)


def _called(lookup: Lookup, decorator: Referent) -> Iterator[str]:
    """The methods of the class, `$cls.from_config`, that the wrapper of a decorator calls or hands on."""
    if decorator.kind == "external":
        method = lookup.facts.words.configured_by.get(decorator.name.removesuffix("()"))
        if method is not None:
            yield f"{_OF_CLASS}{method}"
    if decorator.kind != "function":
        return
    summary = lookup.files.summary(decorator.file)
    outer = summary.body(decorator.name)
    for wrapper in outer.inner if outer is not None else ():
        inner = summary.body(wrapper)
        for event in inner.events if inner is not None else ():
            given = (name for one in (*event.positional, *event.keywords.values()) for name in one.names)
            yield from (name for name in (*event.names, *given) if name.startswith(_OF_CLASS) and "(" not in name)


def _call(lookup: Lookup, node: Node, body: Body, maker: Referent) -> Event:
    """The call of the constructor `node` with the entries of what `maker` gives, as far as its own file says them."""
    summary = lookup.files.summary(maker.file)
    entries = {name: summary.entry(maker.name, name) for name in body.parameters[1:] if maker.file == node.file}
    keywords = {
        parameter: Argument(told)
        for parameter, names in entries.items()
        if (told := tuple(name for name in names if name[0] != "$" or name.startswith(_OF_CLASS)))
    }
    return Event("call", body.row, 0, body.row, keywords=keywords, opaque=True)
