"""A helper that a fix calls for -> its name in the file: one that is there, or a new definition after the imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchdet_lint.finding import NeedFunction
    from torchdet_lint.fixes.draft import Draft

# The function that seeds what every worker has, among those that are made for a file.
_WORKER = ("seed_worker",)
_SOURCES = ("seed_source", "seed_generator")
_NAMES = ("seed_worker", "seed_data_worker", "seed_loader_worker")


def worker_function(draft: Draft) -> str:
    """The name of a function that seeds the workers of a loader."""
    return _known_worker_function(draft) or _define_worker(draft)


def function(draft: Draft, need: NeedFunction) -> str:
    """The name of the function that `need` asks for: defined for another finding of this file, or for this one."""
    known = draft.layout.functions
    if need.body not in known:
        taken = known.values()
        known[need.body] = draft.fresh([name for name in _NAMES if name not in taken])
    name = known[need.body]
    row = draft.definition_row()
    body = "".join(f"{draft.layout.indent}{line}\n" for line in need.body)
    types = (f"{need.parameter}: int", " -> None") if draft.layout.annotated else (need.parameter, "")
    draft.define(row, f"\n\ndef {name}({types[0]}){types[1]}:\n{draft.filled(body, draft.node, row + 1)}", 2)
    return name


def seed_source(draft: Draft, seed: str) -> str:
    """The name of a generator, made once for the whole file, that gives seeds to what is made again and again."""
    known = draft.layout.functions
    key = ("seed_source", seed)
    if key not in known:
        known[key] = draft.fresh(_SOURCES)
    name = known[key]
    row = draft.definition_row()
    draft.needed["random"] = "random"
    content = draft.filled(f"{name} = {{random}}.Random({seed})\n", draft.node, row + 1)
    draft.define(row, f"\n{content}", 1)
    return name


def _known_worker_function(draft: Draft) -> str | None:
    """A function of the file, or one that it imports, that seeds a worker."""
    seeds_worker = draft.module.library.facts.conventions.seeds_worker
    known = draft.layout.names
    candidates = (*known.worker_functions(seeds_worker), *known.worker_imports(seeds_worker))
    return next((name for name in candidates if draft.visible(name)), None)


def _define_worker(draft: Draft) -> str:
    row = draft.definition_row()
    known = draft.layout.functions
    if _WORKER not in known:
        taken = known.values()
        known[_WORKER] = draft.fresh([name for name in _NAMES if name not in taken])
    name = known[_WORKER]
    draft.needed |= {"torch": "torch", "random": "random"}
    lines = ["{random}.seed(worker_seed)"]
    if _uses_numpy(draft):
        draft.needed["numpy"] = "numpy"
        lines.append("{numpy}.random.seed(worker_seed)")
    lines.insert(0, "worker_seed = {torch}.initial_seed() % 2**32")
    head = f"def {name}(worker_id: int) -> None:" if draft.layout.annotated else f"def {name}(worker_id):"
    body = "".join(f"{draft.layout.indent}{line}\n" for line in lines)
    draft.define(row, f"\n\n{head}\n{draft.filled(body, draft.node, row + 1)}", 2)
    return name


def _uses_numpy(draft: Draft) -> bool:
    if not draft.layout.names.imports_of("numpy"):
        return draft.module.target.torch < (1, 9)
    return draft.layout.uses_numpys_seed
