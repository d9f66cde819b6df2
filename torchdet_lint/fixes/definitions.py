"""A helper that a fix calls for -> its name in the file: one that is there, or a new definition after the imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchdet_lint.finding import NeedFunction
    from torchdet_lint.fixes.draft import Draft

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


def _known_worker_function(draft: Draft) -> str | None:
    """A function of the file, or one that it imports, that seeds a worker."""
    seeds_worker = draft.module.library.facts.conventions.seeds_worker
    for unit in draft.module.load_functions(seeds_worker.search):
        assert unit.root is not None
        node = unit.root.body[0]
        if not isinstance(node, cst.FunctionDef) or required_parameters(node.params) > 1 or not node.params.params:
            continue
        if "seed" in draft.module.code(node.body) and draft.visible(node.name.value):
            return node.name.value
    for name, bindings in sorted(draft.module.scope.bindings.items()):
        if (
            seeds_worker.search(name)
            and "seed" in name
            and all(binding.kind == "import" and not binding.conditional for binding in bindings)
            and draft.visible(name)
        ):
            return name
    return None


def _define_worker(draft: Draft) -> str:
    row = draft.definition_row()
    name = draft.fresh(_NAMES)
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
    text = draft.module.text
    if not any(
        binding.kind == "import" and binding.target.partition(".")[0] == "numpy"
        for bindings in draft.module.scope.bindings.values()
        for binding in bindings
    ):
        return draft.module.target.torch < (1, 9)
    words = draft.module.library.facts.conventions
    return not words.makes_numpy_generators.search(text) or bool(words.uses_numpy_globally.search(text))


def required_parameters(parameters: cst.Parameters) -> int:
    """How many arguments a function must be given."""
    everything = (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
    return sum(parameter.default is None for parameter in everything)
