"""The texts of `rules/*.toml` and `rules/facts/*.toml` -> the catalogue; what breaks the schema is refused by name."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.catalogue import compiled
from torchdet_lint.catalogue.facts import Facts
from torchdet_lint.catalogue.rules import Rule
from torchdet_lint.catalogue.texts import CatalogueError, fingerprint, read, shipped
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FILE_NAME = lazy(r"(?P<code>[A-Z]{2,}\d{3})-(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)\.toml")
_EXAMPLES = ("\n[[bad]]", "\n[[good]]")
_PROBE = "\n[ops.probe]\n"


class Catalogue(msgspec.Struct, frozen=True, eq=False):
    """Every rule by code, the shared facts, and a fingerprint of the text they were read from. What is made of one is
    kept for the object, so two are never equal."""

    rules: dict[str, Rule]
    facts: Facts
    fingerprint: str

    def selected(self, codes: Iterable[str]) -> tuple[Rule, ...]:
        """The rules of `codes`, in the order of their codes."""
        return tuple(self.rules[code] for code in sorted(codes))


def load(*, examples: bool = False, probes: bool = False, extra: Iterable[Path] = ()) -> Catalogue:
    """Read the shipped catalogue and the user's own rule files `extra`.

    Without `examples` the `[[bad]]` and `[[good]]` tables, which stand last in every file, are not parsed, nor without
    `probes` the `[ops.probe]` of each op: only `torchdet-lint probe` runs them.
    Raises `CatalogueError` for a file that breaks the schema.
    """
    own = tuple(extra)
    return _load(examples, probes, own, tuple(map(_state, own)))


def _state(path: Path) -> tuple[int, int]:
    """What tells that a file has been written again: an editor's server and `--watch` read the rules more than once."""
    try:
        now = path.stat()
    except OSError:
        return 0, 0
    return now.st_mtime_ns, now.st_size


@functools.lru_cache(maxsize=4)
def _load(examples: bool, probes: bool, extra: tuple[Path, ...], states: tuple[tuple[int, int], ...]) -> Catalogue:
    known = None if examples or probes else compiled.read(compiled.PATH, fingerprint())
    if known is None:
        known = parse(read(shipped()), examples=examples, probes=probes)
    rules = dict(known.rules)
    for path, text in read(extra):
        rule = _rule(path, text, examples=examples)
        _add(rule, path, rules)
        from torchdet_lint.catalogue import holes

        if fault := next(holes.faults(rule), ""):
            raise CatalogueError(f"{path}: {fault}")
    return Catalogue(dict(sorted(rules.items())), known.facts, fingerprint(extra))


def parse(texts: Iterable[tuple[Path, str]], *, examples: bool = False, probes: bool = False) -> compiled.Shipped:
    """The rules and facts in the texts of files that are shipped. Raises `CatalogueError` as `load` does."""
    rules: dict[str, Rule] = {}
    facts: dict[str, Any] = {}
    for path, text in texts:
        if path.parent.name == "facts":
            _merge(facts, _parse(path, text if probes else _without_probes(text)), path)
        else:
            _add(_rule(path, text, examples=examples), path, rules)
    return compiled.Shipped(rules, _convert(facts, Facts, Path("rules/facts")))


def _add(rule: Rule, path: Path, rules: dict[str, Rule]) -> None:
    if rule.code in rules:
        raise CatalogueError(f"{path}: {rule.code} is already the code of {rules[rule.code].stem}.toml; choose another")
    rules[rule.code] = rule


def _rule(path: Path, text: str, *, examples: bool) -> Rule:
    match = _FILE_NAME.fullmatch(path.name)
    if match is None:
        raise CatalogueError(f"{path}: a rule file is named CODE-name.toml, such as TDL301-dataloader-worker-seed.toml")
    table = _parse(path, text if examples else _without_examples(text))
    for key in ("code", "name"):
        if key in table:
            raise CatalogueError(f"{path}: `{key}` is taken from the file's name; remove the key")
    rule: Rule = _convert({**table, **match.groupdict()}, Rule, path)
    return rule


def _without_examples(text: str) -> str:
    """`text` up to the first example."""
    found = [at for at in map(text.find, _EXAMPLES) if at >= 0]
    return text[: min(found) + 1] if found else text


def _without_probes(text: str) -> str:
    """`text` without the table `[ops.probe]` of each op, which ends at an empty line."""
    first, *rest = text.split(_PROBE)
    return "\n".join([first, *(piece[piece.find("\n\n") + 1 :] if "\n\n" in piece else "" for piece in rest)])


def _parse(path: Path, text: str) -> dict[str, Any]:
    import tomli

    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise CatalogueError(f"{path}: not valid TOML: {error}") from error


def _merge(facts: dict[str, Any], table: Mapping[str, Any], path: Path) -> None:
    for key, value in table.items():
        if key not in facts:
            facts[key] = value
        elif isinstance(value, list):
            facts[key] = [*facts[key], *value]
        elif isinstance(value, dict):
            facts[key] = {**facts[key], **value}
        else:
            raise CatalogueError(f"{path}: `{key}` must be a table or an array")


def _convert(table: Mapping[str, Any], kind: type[Any], path: Path) -> Any:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise CatalogueError(f"{path}: {error}{_meant(str(error), kind)}") from error


def _meant(complaint: str, kind: type[Any]) -> str:
    """The key of `kind` that was meant, where `complaint` is about one that there is not and another is near."""
    import difflib

    match = re.search(r"unknown field `(.+?)`(?! - at `\$\.)", complaint)
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    near = difflib.get_close_matches(match[1], known, 1, 0.75) if match is not None else []
    return f"; did you mean `{near[0]}`?" if near else ""
