"""The rules about how whole programs train: an entry point -> missing deterministic mode, and updates that race."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from torchdet_lint.catalogue.ops import status_at
from torchdet_lint.finding import NeedHelper, SeedFunction, SetArgument, Withhold
from torchdet_lint.program.entry import Fault, Story
from torchdet_lint.program.graded.scoring import scoring

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Change
    from torchdet_lint.program.effects import Ref
    from torchdet_lint.program.entry import Entry

_NAMED = 2
_CONVOLUTION = "torch.nn.Conv2d"
_MODE_SINCE = (1, 8)
_WORKSPACE_SINCE = (1, 7)
_CONVOLUTIONS = "torch.nn.Conv"
_WORKSPACE_UNTIL = (2, 10)
# A class method that makes an object of the class.
_MAKES = ".from_pretrained"
# What these make, by the last part of their names or in full.
_NETWORKS = {"create_model": "what timm.create_model makes", "torchvision.models": "a model of torchvision.models"}


def missing_mode(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """Training on CUDA, and deterministic mode nowhere."""
    if "cuda" not in entry.target.devices or not (entry.trains and entry.has("cuda")):
        return
    if entry.has("mode") or entry.has("relaxed") or (entry.has("host") and not entry.has("accelerated")):
        return
    here, training = entry.training
    places, failing = _everywhere(entry)
    reported = entry.reached_ops()
    raising = sorted({ref for ops in reported for ref in ops.raising} | set(failing))
    details = {
        "place": entry.place(training, here),
        "ops": _counted(entry, places, [name for ops in reported for name in ops.switchable]),
        "raises": _raising(entry, raising, here),
    }
    details["trains"] = "trains" if entry.has("on_cuda") else "may train"
    details["mode"] = f"torch.{'use_deterministic_algorithms' if _has_mode(entry) else 'set_deterministic'}(True)"
    if not _has_mode(entry):
        details["help"] = "older"
    stories = [Story(ref, f"`{ref.shown}` may raise in that mode") for ref in raising]
    stories += [Story(ref, f"{_subject(entry, ref)} nondeterministic without that mode") for ref in places]
    varies = bool(places or failing) or any(ops.varies for ops in reported)
    yield Fault(
        here,
        details,
        "ops" if details["ops"] else "",
        None if varies else "warning",
        (Story(training, "trains here"), *stories),
        _switched(entry),
    )


def _raising(entry: Entry, ops: list[Ref], here: Ref) -> str:
    """What the message says of the ops that may raise in deterministic mode: the first few, with their lines."""
    if not ops:
        return ""
    named = [f"`{ref.shown}`{entry.place(ref, here)}" for ref in ops[:_NAMED]]
    named += [f"{len(ops) - _NAMED} more"] if len(ops) > _NAMED else []
    return f"; {_listed(named)} may raise in that mode"


def _listed(names: list[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _everywhere(entry: Entry) -> tuple[list[Ref], list[Ref]]:
    """The ops that the entry point reaches which vary on the configured devices without the mode, and which are too
    many to be reported one by one: convolutions, embeddings; layers of message passing where no sparse adjacency is
    made. First those that take another kernel in the mode, then those that raise. What is made only where gradients are
    off is there to score, and does not count unless all is made so; nor does what is made for its weights alone, nor
    the gradient of a layer that runs without gradients only."""
    found: dict[str, set[Ref]] = {"switchable": set(), "errors": set()}
    scored = scoring(entry)
    for graded in (True, False):
        made = _made(entry, frozenset(), graded=graded)
        differentiated = _made(entry, scored, graded=graded) if scored else made
        for status, places in found.items():
            if not places:
                places.update(ref for ref in differentiated if _varies(entry, ref.what, status))
                others = made - differentiated
                places.update(ref for ref in others if _varies(entry, ref.what, status, forward=True))
    switchable, failing = (
        sorted({(ref.file, ref.row, ref.column): ref for ref in sorted(places)}.values()) for places in found.values()
    )
    return switchable, failing


def _made(entry: Entry, without: Set[tuple[str, str]], *, graded: bool) -> set[Ref]:
    """The ops that the entry point reaches, other than by functions it is `without`; `graded` ones where gradients are
    not off."""
    by_segments, messages = entry.has("segments"), entry.project.facts.messages
    return {
        step.ref
        for node in entry.reached(graded=graded, applied=True, without=without)
        for step in entry.project.steps(node)
        if (step.kind, step.channel) == ("flag", "everywhere")
        and not (graded and step.ungraded)
        and not step.unapplied
        and not (by_segments and step.ref.what in messages)
    }


def _varies(entry: Entry, name: str, status: str, *, forward: bool = False) -> bool:
    """Whether an op of that name has that `status` in the target release on the configured devices: in deterministic
    mode it takes another kernel, or raises; `forward` where that is not for its gradient alone. A convolution takes
    that kernel too where `cudnn.deterministic` is on, that nothing else reads."""
    return any(
        status_at(op, entry.target.torch) == status
        and not (forward and op.direction == "backward")
        and not set(entry.target.devices).isdisjoint(op.devices)
        and not (op.op.startswith(_CONVOLUTIONS) and entry.has("cudnn"))
        for op, _ in entry.project.facts.everywhere.get(name, entry.project.facts.everywhere[_CONVOLUTION])
    )


def _counted(entry: Entry, places: list[Ref], reported: list[str]) -> str:
    """`3 × Conv2d, 1 × Embedding, 1 × scatter_add, the convolutions of resnet18`; those that are `reported` where they
    stand are counted too."""
    ops, networks = Counter(name.rpartition(".")[2] for name in reported), Counter[str]()
    for ref in places:
        name = ref.shown.removesuffix(_MAKES)
        counts = networks if _is_network(entry, ref) else ops
        counts[name if name in _NETWORKS else name.rpartition(".")[2]] += 1
    told = [f"{count} × {name}" for name, count in _by_number(ops)]
    made = [f"{f'{n} × ' if n > 1 else ''}{_NETWORKS.get(name, name)}" for name, n in _by_number(networks)]
    return ", ".join([*told, *([f"the convolutions of {_listed(made)}"] if made else [])])


def _by_number(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def _is_network(entry: Entry, ref: Ref) -> bool:
    """Whether what is called is no op itself, but makes a network that has convolutions."""
    return ref.what not in entry.project.facts.everywhere


def _subject(entry: Entry, ref: Ref) -> str:
    """The op, or the convolutions of the network, that a message speaks of, with the verb."""
    return f"the convolutions of `{ref.shown}` are" if _is_network(entry, ref) else f"`{ref.shown}` is"


def _switched(entry: Entry) -> tuple[Change, ...]:
    """Deterministic mode turned on: by the switches of the trainers that have one, else by torch's own call."""
    switches: dict[tuple[Ref, str], str] = {}
    for node in entry.reached():
        for step in entry.project.steps(node):
            if (step.kind, step.channel) == ("flag", "switch"):
                for row in entry.project.facts.seeds[step.ref.what]:
                    switches |= {(step.ref, name): value for name, value in row.give.items()}
    for ref, name in switches:
        if ref.file != entry.file:
            return (Withhold(f"`{name}` of the trainer made in {entry.shown(ref.file)}:{ref.row} is to be turned on"),)
    if switches:
        return tuple(SetArgument(ref, name, value) for (ref, name), value in switches.items())
    if not _has_mode(entry):
        return (Withhold("torch 1.7 has it as `torch.set_deterministic`, and releases before that have no such mode"),)
    wanted = _needs_workspace(entry) and "seed:cublas" not in entry.effects
    workspace = (NeedHelper("cublas"),) if wanted else ()
    return (*workspace, *(_in_processes(entry) or (NeedHelper("deterministic"),)))


def _in_processes(entry: Entry) -> tuple[Change, ...]:
    """The mode turned on where new processes train, which do not take it from the one that starts them; and in that
    one, if it trains something else."""
    trained: set[Ref] = set()
    changes: dict[Change, None] = {}
    for node in entry.reached():
        for step in entry.project.steps(node):
            if step.kind != "process" or step.channel == "first" or step.node is None or step.process is None:
                continue
            training = entry.project.effects(step.node).get("flag:trains")
            if training is None:
                continue
            trained.add(training)
            target = step.process.target
            if target.file != entry.file or "." in target.name:
                return (Withhold(f"`{target.name}`, which new processes run, has to turn the mode on"),)
            changes[SeedFunction(target.name, ("deterministic",))] = None
    if changes and entry.effects["flag:trains"] not in trained:
        changes[NeedHelper("deterministic")] = None
    return tuple(changes)


def _has_mode(entry: Entry) -> bool:
    """Whether the target release has the mode under its present name."""
    return entry.target.torch >= _MODE_SINCE


def _needs_workspace(entry: Entry) -> bool:
    """Whether the target release raises in deterministic mode without the variable."""
    return _WORKSPACE_SINCE <= entry.target.release < _WORKSPACE_UNTIL


def missing_workspace(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """Deterministic mode on CUDA without the workspace that cuBLAS needed for it up to torch 2.9."""
    if not _needs_workspace(entry) or "cuda" not in entry.target.devices:
        return
    if not (entry.has("mode") and entry.has("cuda")):
        return
    mode: Ref = entry.effects["flag:mode"]
    late = entry.effects.get("late:cublas")
    if late is not None:
        first, setting = late
        details = {"place": entry.place(first, setting)}
        here = setting.file == first.file == entry.file
        start = Withhold(f"the program starts in {entry.shown(entry.file)}, and it has to be set there")
        changes = (NeedHelper("cublas") if here else start,)
        story = Story(first, "CUDA is first used here")
        yield Fault(setting, details, "late", related=(story,), changes=changes, at_call=True)
    elif "seed:cublas" not in entry.effects:
        yield Fault(
            entry.leading_to("mode")[0],
            {"place": ""},
            related=(Story(mode, "deterministic mode is turned on here"),),
            changes=(NeedHelper("cublas"),),
        )


def racing_updates(entry: Entry, rule: Rule) -> Iterator[Fault]:
    """Parameters that several processes, or threads of an RPC server, update without a lock."""
    nodes = list(entry.reached())
    shared: Ref | None = entry.effects.get("flag:shares")
    # What a function that is called by RPC calls by RPC in turn is what updates.
    by_rpc: dict[Ref, tuple[str, Ref]] = {}
    for node in nodes:
        for step in entry.project.steps(node):
            if step.node is None or (step.kind != "process" and step.channel != "rpc"):
                continue
            inner = entry.project.effects(step.node)
            if step.kind == "process" and shared is not None and "flag:steps" in inner and "flag:locked" not in inner:
                update: Ref = inner["flag:steps"]
                details = {"target": step.node.name.rpartition(".")[2], "place": entry.place(update, step.ref)}
                related = (
                    Story(shared, "the parameters are shared here"),
                    Story(update, "updated here without a lock"),
                )
                yield Fault(step.ref, details, related=related, at_call=True)
            elif step.channel == "rpc" and (updated := inner.get("flag:update") or inner.get("flag:steps")):
                by_rpc[updated] = (step.node.name.rpartition(".")[2], step.ref)
    for update, (target, call) in by_rpc.items():
        yield Fault(update, {"target": target, "place": ""}, "rpc", related=(Story(call, "called by RPC here"),))
