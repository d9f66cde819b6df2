"""Files of YAML, JSON and TOML -> the data in them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from torchdet_lint.source.cache import content_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SUFFIXES = (".yaml", ".yml", ".json", ".toml")
_LONGEST = 60_000
_HEAVIEST = 50_000
_MERGE = "tag:yaml.org,2002:merge"


def names(among: Iterable[str]) -> tuple[str, ...]:
    """Those that are of files of data, in order."""
    return tuple(sorted(name for name in among if name.endswith(SUFFIXES)))


def parsed(text: str, suffix: str = ".yaml") -> Any:
    """The data of a file with the `suffix`; None where it is empty, long or broken."""
    if not text.strip() or len(text) > _LONGEST:
        return None
    try:
        return _json(text) if suffix == ".json" else _toml(text) if suffix == ".toml" else _yaml(text)
    except Exception:  # values that look like dates and numbers and are none raise what they like
        return None


def _json(text: str) -> Any:
    import json

    return json.loads(text)


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    import yaml  # type: ignore[import-untyped]

    loader = yaml.SafeLoader(text)  # the one in C crashes on deep nesting
    node = loader.get_single_node()
    _weigh(node, {})
    return loader.construct_document(node)


def _weigh(node: Any, known: dict[int, int]) -> int:
    """How many nodes there are below `node`, were each alias written out.

    Raises `ValueError` where one stands inside itself, or a merge key (`<<`) would write out too many.
    """
    weight = known.get(id(node), 0)
    if weight < 0:
        raise ValueError("an alias inside of what it stands for")
    if weight:
        return weight
    known[id(node)] = -1
    weight = 1
    for part in node.value if isinstance(node.value, list) else ():
        for one in part if isinstance(part, tuple) else (part,):
            weight += _weigh(one, known)
        if isinstance(part, tuple) and part[0].tag == _MERGE and known[id(part[1])] > _HEAVIEST:
            raise ValueError("too much to merge")
    known[id(node)] = weight
    return weight


def state(paths: Iterable[str], content: Callable[[str], str]) -> str:
    """A hash of some files and of their hashes, which `content` tells by path."""
    return content_hash("\0".join(f"{one}\0{content(one)}" for one in paths).encode(errors="surrogatepass"))
