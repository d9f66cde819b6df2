"""What the installed torch says of its ops, beside what the tables say: `make evidence`, for a new release of torch.

Writes `tests/data/torch-RELEASE.json` and prints, line by line, what changed since the release before and where the
tables of `rules/facts` are not what this torch says. Then it runs what the installed libraries make public, keeps in
`tests/data/draws.json` what draws from which global generator, and prints what the tables do not have; a library that
is not installed is named as not checked. Leaves with 1 where the tables lack or contradict something.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import drawing
import torch
import torchfacts

from torchdet_lint.catalogue.loading import load
from torchdet_lint.catalogue.ops import release, status_in
from torchdet_lint.prefilter.library import Library
from torchdet_lint.program.knowledge import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parent / "data"
DRAWS = DATA / "draws.json"
INSTALLED = release(torch.__version__)


def path_of(target: tuple[int, int]) -> Path:
    return DATA / f"torch-{target[0]}.{target[1]}.json"


def gathered() -> dict[str, Any]:
    """All that is read from the installed torch, sorted."""
    facts = load().facts
    return {
        "torch": ".".join(map(str, INSTALLED)),
        "documented": sorted(
            f"{entry.key}, {entry.direction}, {'+'.join(sorted(entry.devices))}" for entry in torchfacts.documented()
        ),
        "random": {name: list(ways) for name, ways in torchfacts.random_ops().items()},
        "varying": sorted(torchfacts.tagged("nondeterministic_bitwise")),
        "alerts": torchfacts.alerts(),
        "signatures": {name: signatures(name) for name in sorted({name for name, _ in torchfacts.signed(facts.ops)})},
    }


def signatures(name: str) -> list[str]:
    try:
        return sorted({", ".join(parameters) for parameters in torchfacts.real_parameters(name)})
    except AttributeError:
        return []


def changes(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """What a release has that the one before it had not, and the other way round."""
    for key in ("documented", "random", "varying", "alerts", "signatures"):
        old, new = set(_lines(key, before[key])), set(_lines(key, now[key]))
        yield from (f"- {line}" for line in sorted(old - new))
        yield from (f"+ {line}" for line in sorted(new - old))


def _lines(key: str, entries: dict[str, Any] | list[str]) -> Iterator[str]:
    for entry in entries:
        yield f"{key}: {entry}: {entries[entry]}" if isinstance(entries, dict) else f"{key}: {entry}"


def differences() -> Iterator[str]:
    """Where the tables are not what the installed torch says."""
    facts = load().facts
    for entry in torchfacts.documented():
        rows = torchfacts.rows_for(entry, facts.ops)
        agrees = any(status_in(op.status, INSTALLED) == entry.status for op in rows)
        if agrees is (entry.key in torchfacts.WRONG_DOCUMENTS):
            said = sorted({status_in(op.status, INSTALLED) for op in rows})
            yield f"ops.toml: the documentation says {entry.key} ({entry.direction}), the rows {said or 'nothing'}"
    for op in facts.ops:
        if op.package != "torch" or op.devices == ("mps",) or status_in(op.status, INSTALLED) not in torchfacts.VARIES:
            continue
        named = any(op in torchfacts.rows_for(entry, facts.ops) for entry in torchfacts.documented())
        if named is (op.op in torchfacts.NOT_DOCUMENTED):
            yield f"ops.toml: {op.op} ({op.direction}) is {'' if named else 'not '}documented in this release"
    for name, parameters in torchfacts.signed(facts.ops):
        real = signatures(name)
        if not any(f"{known}, ".startswith(f"{', '.join(parameters)}, ") for known in real):
            yield f"ops.toml: {name}({', '.join(parameters)}) is {' or '.join(real) or 'not there'}"
    listed = {name for row in facts.draws for name in row.names}
    for name, ways in torchfacts.random_ops().items():
        if name not in torchfacts.REACHED_THROUGH:
            yield from (f"generators.toml: {way} draws, and is not listed" for way in ways if way not in listed)


def swept() -> Iterator[str]:
    """Run the installed libraries, keep what draws, and say what was not checked."""
    kept: dict[str, Any] = json.loads(DRAWS.read_text(encoding="utf-8")) if DRAWS.is_file() else {}
    for library in drawing.LIBRARIES:
        if not drawing.version(library):
            yield f"{library}: not installed, not checked"
            continue
        found = drawing.measured(library)
        kept[library] = {"version": drawing.version(library), "tried": found.tried, "draws": found.draws}
        yield f"{library} {drawing.version(library)}: {found.tried} names run, {len(found.draws)} draw"
        yield from (f"{library}: not checked: {module}" for module in found.missing)
        yield from (f"{library}: not checked, it crashes: {name}" for name in found.crashed)
    DRAWS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def unlisted() -> Iterator[str]:
    """What was found to draw, and what of it the tables do not have: by its own name, or as an object of its class."""
    library = Library(load())
    tables = Tables(library)
    kept = json.loads(DRAWS.read_text(encoding="utf-8"))
    for one in kept.values():
        for name, generators in sorted(one["draws"].items()):
            known = {row for full in _listed_as(name) for row in _rows(tables, library.canonical(full))}
            for generator in generators:
                if generator not in known and name not in drawing.EXPLAINED:
                    yield f"generators.toml: {name} draws from {generator}, and is not listed"


def _listed_as(name: str) -> tuple[str, ...]:
    """The names under which a row may have `name`: an estimator draws where it is fitted, and its class is listed; the
    row of one distribution of SciPy is that of all (`checks.seeds.generators`)."""
    distribution = name.startswith("scipy.stats.") and name.endswith(".rvs")
    row = ("scipy.stats.norm().rvs" if "()" in name else "scipy.stats.norm.rvs",) if distribution else ()
    return name, name.partition("()")[0], name.removesuffix(".rvs"), *row


def _rows(tables: Tables, name: str) -> Iterator[str]:
    """The generators that the tables, those of TDL107 too, have for `name`."""
    for full in tables.spellings(name):
        yield from (draw.library for draw in tables.draws.get(full, ()))
        if any(full in row.names for row in tables.library.catalogue.rules["TDL107"].calls):
            yield "numpy"


def main() -> int:
    """Write the evidence of the installed torch and say what it means for the tables."""
    now = gathered()
    older = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(DATA.glob("torch-*.json"))]
    older = sorted((one for one in older if release(one["torch"]) < INSTALLED), key=lambda one: release(one["torch"]))
    path_of(INSTALLED).write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{path_of(INSTALLED).relative_to(DATA.parents[1])}: torch {now['torch']}")
    if older:
        print(f"Since torch {older[-1]['torch']}:")
        print("\n".join(changes(older[-1], now)) or "nothing")
    found = list(differences())
    print("\n".join(found) or "The tables say what this torch says.")
    print("\n".join(swept()))
    lacking = list(unlisted())
    print("\n".join(lacking) or "The tables have all that was found to draw.")
    found += lacking
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
