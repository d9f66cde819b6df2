"""A divergence -> the rule that speaks of it: by the table of ops, the place, the generators' digests.

Where the evidence leaves several rules open they are all named, the likeliest first; where it fits none, none is named.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from torchdet_lint.catalogue import loading, runtime
from torchdet_lint.verifier.comparison.behind import lines_behind
from torchdet_lint.verifier.comparison.deciding import deciding
from torchdet_lint.verifier.ops import aten
from torchdet_lint.verifier.trace import BATCH, GRAPH, KERNEL, REGION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from torchdet_lint.catalogue.ops import Op
    from torchdet_lint.verifier.comparison.deciding import Deciding
    from torchdet_lint.verifier.comparison.outcome import Divergence, Parting
    from torchdet_lint.verifier.trace import Site

_MULTIPROCESSING = re.compile(r"process (?:rank \d+ )?\(?(?:spawn|forkserver)\b")
_DATA_ORDER = ("TDL304", "TDL305", "TDL306", "TDL601", "TDL104", "TDL105", "TDL106")
_PLACES = {"data": ("TDL302", "TDL301", "TDL303"), "split": ("TDL303",)}
OUTSIDE_TORCH = ("TDL305", "TDL304", "TDL306", "TDL601", "TDL102", "TDL104", "TDL103", "TDL105", "TDL107", "TDL106")
"""Rules about what varies in Python and NumPy, the likeliest first."""
GENERATORS = {"numpy": "TDL102", "python": "TDL103"}
"""The rules about global generators."""
WHOSE = {"numpy": "NumPy's", "python": "Python's"}
_OF_THE_SEED = ("TDL101", "TDL102", "TDL103", "TDL105", "TDL106")
"""Rules about what the global generators of torch, NumPy and `random` start from."""
_SWITCHES = ("TDL203", "TDL204", "TDL208")
"""Rules about the switch that makes the ops of TDL402 and TDL403 deterministic."""
_OF_BENCHMARK = ("TDL201", "TDL202")
"""Rules about how cuDNN chooses an algorithm."""
_OF_OPS = ("TDL2", "TDL4")
"""How the codes begin of rules about ops and their switches."""
_STARTS = "multiprocessing/spawn.py"
"""Where a process takes what it was started with."""
PARTED = "the runs take different paths though all values before were equal: "
"""What is known of paths that part, whatever decided."""
_BY_PYTHON = (
    "something in Python decides (the clock, hashes, files, also those that an earlier run left, threads, an unseeded "
    "choice)"
)
_SHARED = "an optimizer met values that this process had not written: its memory is shared with others that write"


class Explanation(msgspec.Struct, frozen=True):
    """Why two runs differ at a place: `rule` is the likeliest code (empty: none fits), `also` the others it may be."""

    sentence: str
    rule: str = ""
    also: tuple[str, ...] = ()


class Finding(msgspec.Struct, frozen=True):
    """What the linter reports on a line."""

    code: str
    message: str
    filename: str
    line: int
    severity: str = "error"

    @property
    def origin(self) -> int:
        """The line that the message names: a finding about a program stands where the program calls it."""
        named = re.search(r"\(line (\d+)\)", self.message)
        return int(named[1]) if named else self.line


def op_rule(op: str, direction: str, devices: Sequence[str] = ("cpu",)) -> str:
    """The rule for an op of aten (`aten.index_put_`) in a direction (`forward`, `backward`); empty if the tables do
    not list it.
    """
    return _listed(op, direction, devices, loading.load().facts.ops)[0]


def _listed(op: str, direction: str, devices: Sequence[str], table: Iterable[Op]) -> tuple[str, str]:
    """The rule for an op of aten by `table`, and what was measured of it.

    Only rows of torch's own ops for one of `devices` count, the last device's first, and none that the tables call
    deterministic.
    """
    base = op.split(".")[1] if "." in op else op
    name = runtime.dispatch().spelled.get(base, base).strip("_").replace("_backward", "")
    gradient = aten.gradient_of(op) if direction == "backward" else ""
    every = tuple(table)
    rows = [row for device in reversed(devices) for row in every if device in row.devices]
    for row in rows:
        if row.direction != direction or row.status[-1].status in ("deterministic", "absent"):
            continue
        spelled = row.op == gradient or any(_is_spelled(one.name, name) for one in row.spellings)
        if " " in row.op or not spelled:
            continue
        switchable = row.status[-1].status == "switchable"
        rule = row.rule or ("TDL403" if direction == "backward" else "TDL402" if switchable else "TDL401")
        return rule, row.measured
    return "", ""


def _is_spelled(spelling: str, name: str) -> bool:
    package, _, last = spelling.rpartition(".")
    return package.partition(".")[0] == "torch" and last.strip("_").lower() == name


def explain(item: Divergence, devices: Sequence[str] = ("cpu",), table: Iterable[Op] = ()) -> Explanation:
    """The explanation of one divergence in a run on `devices`. `table` is the catalogue's table of ops, or what a
    measurement makes of it.
    """
    if item.reason:
        return Explanation(f"expected to differ ({item.reason}), and ops outside of that block differ too")
    if item.source == "op":
        return _op(item, devices, tuple(table) or loading.load().facts.ops)
    return {
        "random": _random,
        "outside": _outside,
        "unwritten": _unwritten,
        "number": _number,
        "order": _order,
        "race": _race,
        "path": _path,
    }.get(item.source, _consequence)(item)


def _random(item: Divergence) -> Explanation:
    evidence, phase = item.evidence, item.site.phase
    if evidence.own_generator and evidence.seeds_equal is False:
        return Explanation(
            "the generator passed to this draw was seeded differently in each run", "TDL105", ("TDL104", "TDL601")
        )
    place = _PLACES.get(phase, ())
    alone = _in_a_process_of_its_own(item)
    if evidence.unseeded and evidence.seeded_later:
        at = f" at {evidence.seeded_at}" if evidence.seeded_at else ""
        others = ("TDL108", "TDL101") if alone else ("TDL101",)
        return Explanation(f"drawn before the program seeded torch{at}", "TDL106", (*others, *place))
    if evidence.unseeded and alone:
        words = "drawn in a process that the program starts, and where nothing seeds torch"
        return Explanation(words, "TDL108", ("TDL101", *place))
    if evidence.unseeded:
        return Explanation("drawn from torch's global generator, which nothing has seeded", "TDL101", place)
    if evidence.seeds_equal is False:
        return Explanation("torch was seeded with another number in each run", "TDL105", ("TDL601", *place))
    named = (*place, "TDL106", "TDL101")
    return Explanation("the generator was seeded alike but drawn from differently before", named[0], named[1:])


def _outside(item: Divergence) -> Explanation:
    states = item.evidence.generators
    if item.evidence.loaded and item.evidence.permuted:
        words = f"what torch.load read at {item.evidence.arrival} is the same in another order: that of files, say"
        return Explanation(words, "TDL304", ("TDL305", "TDL306"))
    if item.evidence.loaded:
        words = f"what torch.load read at {item.evidence.arrival} differed: a file that an earlier run wrote, say"
        return Explanation(words, "", ("TDL304", "TDL105"))
    if item.evidence.received:
        return Explanation("another process of the group sent other values, and none that was recorded has the cause")
    arrival = item.evidence.arrival.rpartition(":")[0]
    if item.evidence.shared and item.site.op != BATCH and (not arrival or arrival.endswith(_STARTS)):
        words = "what it read lies in memory that processes share, and another one had written other values there"
        if item.stream.startswith("process "):
            return Explanation(words, "TDL307")
        return Explanation(words, "", ("TDL307", *_DATA_ORDER[:4]))
    if (item.site.op == BATCH or item.evidence.arrival) and _agree(states):
        return Explanation(
            "a batch from the loader's workers differed though the generators of this process agree: what the workers "
            "read or draw, or the order of arrival",
            "",
            (*_DATA_ORDER[:5], "TDL301", "TDL308"),
        )
    if item.site.op == BATCH or item.evidence.arrival or item.stream == "process":
        return Explanation(
            "a batch from the loader's workers differed: generators of their own, or the order of arrival",
            "TDL301",
            ("TDL308", "TDL104", *_DATA_ORDER[:4]),
        )
    differ = [name for name, state in sorted(states.items()) if state == "differs"]
    idle = [name for name, state in sorted(states.items()) if state in ("idle", "taken")]
    if (differ or idle) and _in_a_process_of_its_own(item):
        words = "data came in from a generator that nothing seeds in a process that the program starts"
        return Explanation(words, "TDL108", ("TDL102", "TDL103", "TDL105"))
    if "numpy" in differ and "python" in differ:
        return Explanation(
            "data came in while NumPy's and Python's generators differed", "TDL102", ("TDL103", "TDL105")
        )
    if "numpy" in differ:
        words = "data came in while NumPy's global generator differed: it is not seeded alike"
        return Explanation(words, "TDL102", ("TDL105", "TDL107"))
    if "python" in differ:
        words = "data came in while Python's global generator differed: it is not seeded alike"
        return Explanation(words, "TDL103", ("TDL105",))
    if item.stream.startswith("process ") and item.site.phase == "optimizer":
        return Explanation(_SHARED, "TDL307")
    earlier = [name for name in idle if name in GENERATORS]
    if earlier:
        whose = " and ".join(WHOSE[name] for name in earlier)
        words = f"data came in from Python or NumPy; {whose} global generator differed, and {_drawn(states, earlier)}"
        return Explanation(
            words,
            "",
            (*(GENERATORS[name] for name in earlier), *_DATA_ORDER, "TDL501"),
        )
    return Explanation(
        "data came in from Python or NumPy while the global generators agreed: the order of files, a set or completed "
        "work, a generator of its own, the clock, or memory of NumPy's that nothing had written",
        "",
        (*_DATA_ORDER, "TDL501"),
    )


def _agree(states: dict[str, str]) -> bool:
    """Whether no global generator differs, torch's among them, of which the seeds of a loader's workers are drawn."""
    return states.get("torch") == "equal" and set(states.values()) <= {"equal", "unused"}


def _drawn(states: dict[str, str], names: list[str]) -> str:
    if any(states[name] == "taken" for name in names):
        return "may have been drawn from for a number that differed before"
    return "was not drawn from since then"


def _in_a_process_of_its_own(item: Divergence) -> bool:
    """Whether multiprocessing started the process where this was, afresh: no seed of its parent reaches it."""
    return _MULTIPROCESSING.match(item.stream) is not None


def _unwritten(item: Divergence) -> Explanation:
    return Explanation("it read memory that nothing had written", "TDL501", ("TDL206",))


def _number(item: Divergence) -> Explanation:
    words = "a Python number given to this op differed"
    others = _possible(item, ("TDL103", "TDL105", "TDL601", "TDL102", "TDL305", "TDL304"))
    return _by_generator(item, words) or Explanation(words + _idle(item), "", others)


def _possible(item: Divergence, codes: tuple[str, ...]) -> tuple[str, ...]:
    """Of some rules those that a global generator which did not differ does not rule out."""
    states = item.evidence.generators
    out = {code for name, code in GENERATORS.items() if states.get(name) in ("equal", "unused")}
    return tuple(code for code in codes if code not in out)


def _idle(item: Divergence) -> str:
    """The generators that differ, of which data came in before."""
    names = [name for name in GENERATORS if item.evidence.generators.get(name) == "idle"]
    whose = " and ".join(WHOSE[name] for name in names)
    return f"; {whose} global generator differs too, and was last drawn from before that" if names else ""


def _by_generator(item: Divergence, words: str) -> Explanation | None:
    """A generator that had been drawn from, and differently, when data next came in."""
    differ = {name for name, state in item.evidence.generators.items() if state == "differs"}
    if "python" in differ:
        return Explanation(f"{words}, and so did Python's global generator", "TDL103", ("TDL105", "TDL102"))
    if "numpy" in differ:
        return Explanation(f"{words}, and so did NumPy's global generator", "TDL102", ("TDL105", "TDL103"))
    return None


def _order(item: Divergence) -> Explanation:
    words = "the same line met other tensors, or in another order"
    if item.evidence.permuted:
        return Explanation("the same line met its tensors in another order", "TDL305", ("TDL306", "TDL304"))
    if _in_an_optimizer_of_a_process(item):
        return Explanation(_SHARED, "TDL307")
    others = _possible(item, ("TDL305", "TDL306", "TDL304", "TDL601", "TDL103", "TDL102"))
    return _by_generator(item, words) or Explanation(words + _idle(item), "", others)


def _in_an_optimizer_of_a_process(item: Divergence) -> bool:
    """Whether an optimizer made a step in a process that is no rank of a group: those share no memory."""
    return item.stream.startswith("process ") and "rank " not in item.stream and item.site.phase == "optimizer"


def _race(item: Divergence) -> Explanation:
    one, two = item.evidence.overtaking
    if one:
        words = f"tasks ran in another order: {one} came first in run A, {two} in run B ({item.evidence.arrival})"
        return Explanation(words, "TDL306")
    if item.task:
        words = f"tasks race: {item.task} read what another task had written, and asyncio ran them in another order"
        return Explanation(words, "TDL306", ("TDL307",))
    if item.stream == "thread":
        return Explanation("work in other threads gave other values", "TDL306", ("TDL307",))
    words = f"threads race: {item.stream} read what another thread had written, and they ran in another order"
    return Explanation(words, "TDL307", ("TDL306",))


def _path(item: Divergence) -> Explanation:
    return Explanation(PARTED + _BY_PYTHON, "", ("TDL103", "TDL601", "TDL305", "TDL304", "TDL306", "TDL105"))


def on_the_way(item: Divergence, partings: Sequence[Parting], root: Path) -> Deciding | None:
    """What stands where the paths part, if that is known."""
    found = next((one for one in partings if one.index == item.index and (one.a or one.b) == item.site), None)
    if item.source != "path" or found is None:
        return None
    sites = (found.a, found.b)
    files = {site.file if site is not None else "" for site in sites}
    home = found.after.file if found.after is not None and found.after.file in files else item.site.file
    if not home or (len(files) > 1 and (found.after is None or home != found.after.file)):
        return None
    after = found.after.line if found.after is not None and found.after.file == home else 0
    a, b = (site.line if site is not None and site.file == home else 0 for site in sites)
    return deciding(root, home, after, (a, b), loading.load().facts.entropy)


def _op(item: Divergence, devices: Sequence[str], table: Sequence[Op]) -> Explanation:
    site = item.site
    if site.op.startswith(REGION):
        of = site.op.removeprefix(REGION).lstrip(".")
        why = f"its {of} adds with atomics" if of else "a kernel of Inductor's may add"
        words = "code that torch.compile compiled read equal values and wrote different ones"
        return Explanation(f"{words}: {why} in another order each time", "TDL203", ("TDL207", "TDL501"))
    if site.op == GRAPH:
        return Explanation(
            "a CUDA graph read equal values and wrote different ones: one of the ops that it captured is not "
            "deterministic",
            "TDL203",
            ("TDL402", "TDL403", "TDL501"),
        )
    if site.op.startswith(f"{KERNEL}."):
        words = f"the Triton kernel {site.op.partition('.')[2]} read equal values and wrote different ones"
        return Explanation(words, "TDL407", ("TDL501",))
    of = site.forward_op or aten.gradient_of(site.op)
    if site.phase == "backward" and of:
        rule, known = _gradient(site, devices, table)
        if rule:
            words = f"the gradient of {of} is not deterministic{_measured(known)}"
            also = _SWITCHES if rule == "TDL403" else ()
            return Explanation(words, rule, (*also, *_OF_BENCHMARK) if _is_convolution(site) else also)
    else:
        rule, known = _listed(site.op, "forward", devices, table)
        if rule:
            also = _SWITCHES if rule == "TDL402" else ()
            return Explanation(f"{site.op} is not deterministic on these inputs{_measured(known)}", rule, also)
        if _is_convolution(site) and "cuda" in devices:
            words = "it read equal values and wrote different ones: cuDNN may have chosen another algorithm for it"
            return Explanation(words, _OF_BENCHMARK[0], _OF_BENCHMARK[1:])
    if _in_an_optimizer_of_a_process(item):
        return Explanation(_SHARED, "TDL307", ("TDL501", "TDL401"))
    return Explanation(
        "it read equal values and wrote different ones, and no table lists the op: memory that was never written, or "
        "that another thread, process or library wrote to",
        "",
        ("TDL501", "TDL307", "TDL401"),
    )


def _gradient(site: Site, devices: Sequence[str], table: Sequence[Op]) -> tuple[str, str]:
    """The rule for what ran at a place of the backward pass, and what was measured of it: by the op whose gradient it
    is, else by its own name.
    """
    found = _listed(site.op, "backward", devices, table)
    if not found[0] and site.forward_op:
        found = _listed(site.forward_op, "backward", devices, table)
    return found if found[0] else _listed(site.op, "forward", devices, table)


def _is_convolution(site: Site) -> bool:
    """Whether cuDNN chooses the algorithm by timing it, where its benchmark is on."""
    return "convolution" in site.op


def _measured(known: str) -> str:
    return f" (measured: {known})" if known else ""


def _consequence(item: Divergence) -> Explanation:
    return Explanation("follows from an earlier difference")


def lint(files: Iterable[Path], *, python: str = sys.executable, measured: str = "") -> tuple[Finding, ...]:
    """What the linter finds in `files`; nothing where it cannot be run. One fresh process, so that no import is
    shared. `measured` is the file of measurements that it judges by; without one it uses none.
    """
    names = sorted({str(path) for path in files if path.is_file()})
    if not names:
        return ()
    by = ["--measured", measured] if measured else ["--no-measured"]
    words = ["--output-format", "json", "--no-cache", "--exit-zero", *by, *names]
    answer = run_linter(words, Path.cwd(), python=python)
    try:
        rows = json.loads(answer or b"[]")
    except ValueError:
        return ()
    found = (_finding(row) for row in rows if isinstance(row, dict) and row.get("code"))
    return tuple(sorted(found, key=lambda finding: (finding.filename, finding.line, finding.code)))


def run_linter(words: Sequence[str], folder: Path, *, python: str = sys.executable) -> bytes:
    """What the linter prints for a command line in `folder`; nothing where it cannot be run."""
    package = str(Path(__file__).parents[3])
    command = [python, "-c", _RUN_LINTER, package, *words]
    try:
        return subprocess.run(command, capture_output=True, timeout=120, check=False, cwd=folder).stdout
    except (OSError, subprocess.SubprocessError):
        return b""


_RUN_LINTER = (
    "import sys; sys.path[0:0] = [sys.argv.pop(1)]; "
    "from torchdet_lint.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


def _finding(row: Mapping[str, Any]) -> Finding:
    line = int((row.get("location") or {}).get("row", 0))
    return Finding(
        str(row["code"]),
        # Another file of the program is named there as it was given: from the root of the file system.
        str(row.get("message", "")).replace(f"{Path.cwd()}{os.sep}", ""),
        str(row.get("filename", "")),
        line,
        str(row.get("severity", "error")),
    )


def standing_on(
    item: Divergence,
    explanation: Explanation,
    findings: Sequence[Finding],
    root: Path,
    others: Sequence[Divergence] = (),
    way: Deciding | None = None,
) -> Finding | None:
    """The linter's finding about a divergence: one on its line (or its forward line), else one in its file whose code
    the explanation names, else the only one about the program's seed. Where no rule is the likeliest, those on which
    what the line uses was made come before others of its function, these before the rest (of which none in the
    functions of the `others` counts), errors before warnings; there is none where several are equally near that have
    different codes. Of paths that part, what the conditions on the `way` may hang on is all that counts.
    """
    site = item.site
    lines = {(_resolved(root, site.file), site.line), (_resolved(root, site.forward_file), site.forward_line)}
    lines |= {(_resolved(root, p[0]), int(p[2])) for p in [item.evidence.arrival.rpartition(":")] if p[0]}
    named = [code for code in (explanation.rule, *explanation.also) if code]
    here = [f for f in findings if (_resolved(Path(), f.filename), f.line) in lines]
    if item.source not in ("op", "unwritten"):
        # What an op does on a device says nothing of data that differed before.
        here = [f for f in here if f.code in named or not f.code.startswith(_OF_OPS)]
    if here:
        return min(here, key=lambda f: named.index(f.code) if f.code in named else len(named))
    near = [f for f in findings if _resolved(Path(), f.filename) == _resolved(root, site.file) and f.code in named]
    if way is not None:
        near = [f for f in near if f.origin in way.behind]
    if explanation.rule:
        return min(near, key=lambda f: named.index(f.code), default=None) or _of_the_program(explanation.rule, findings)
    near = _nearest(near, item, others, root)
    errors = [f for f in near if f.severity == "error"] or near
    if len({f.code for f in errors}) > 1 and item.source != "path" and not item.evidence.arrival:
        return None
    return min(errors, key=lambda f: named.index(f.code), default=None)


def _of_the_program(rule: str, findings: Sequence[Finding]) -> Finding | None:
    """The only error about the seed of the program, in whichever file it stands: what is drawn anywhere hangs on it."""
    found = [f for f in findings if f.code == rule and f.severity == "error"] if rule in _OF_THE_SEED else []
    return found[0] if len(found) == 1 else None


def behind(item: Divergence, findings: Sequence[Finding], root: Path) -> Finding | None:
    """The linter's error about what varies outside torch that stands on the line of a divergence, or where what the
    line uses was made.
    """
    code = (*OUTSIDE_TORCH, "TDL501")
    near = [f for f in findings if f.severity == "error" and f.code in code]
    near = [f for f in near if _resolved(Path(), f.filename) == _resolved(root, item.site.file)]
    made = lines_behind(root / item.site.file, item.site.line)
    lines = {item.site.line, *(made.made if made is not None else ())}
    return min((f for f in near if f.origin in lines), key=lambda f: code.index(f.code), default=None)


def _nearest(findings: list[Finding], item: Divergence, others: Sequence[Divergence], root: Path) -> list[Finding]:
    """Those of some findings in the file of a divergence that are nearest to it."""
    behind = lines_behind(root / item.site.file, item.site.line)
    for near in (behind.made, behind.function) if behind is not None else ():
        if found := [finding for finding in findings if finding.origin in near]:
            return found
    elsewhere = [lines_behind(root / one.site.file, one.site.line) for one in others if one.site.file == item.site.file]
    taken = {line for one in elsewhere if one is not None for line in one.function}
    return [finding for finding in findings if finding.origin not in taken]


def _resolved(root: Path, name: str) -> str:
    return str((root / name.partition("#cell-")[0]).resolve()) if name else ""
