"""One input -> what the program makes of it as a digest, or a `Failure`: what must hold for any input at all.

No exception; findings inside the text; reports that parse and act on no terminal; fixes that keep a program a program,
leave nothing to fix, and change nothing but what they say they change; the same result from a damaged cache as from
none.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import signal
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import msgspec

from torchdet_lint import config, report
from torchdet_lint.catalogue import loading
from torchdet_lint.catalogue.texts import CatalogueError
from torchdet_lint.config import ConfigError, Settings
from torchdet_lint.engine import baseline, repair, run
from torchdet_lint.engine.linter import SYNTAX, Linter
from torchdet_lint.finding import Edit, Fix, Location
from torchdet_lint.fixes import patch
from torchdet_lint.program import launch_configs
from torchdet_lint.report.text import plain
from torchdet_lint.source import suppress
from torchdet_lint.source.decoding import SourceFault, decode
from torchdet_lint.source.lines import split_lines
from torchdet_lint.source.snippets import Snippets
from torchdet_lint.verifier.comparison.compare import compare
from torchdet_lint.verifier.trace import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torchdet_lint.finding import Finding, Result

SECONDS = 20
ASKED = Counter[str]()
"""How often each oracle was asked; `exception` at each input."""
_SETTINGS = Settings(root="", min_severity="note", unsafe_fixes=True)
_LINTER = Linter(_SETTINGS)
_NAMES = {rule.name: code for code, rule in loading.load().rules.items()}
_NEVER = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Input(NamedTuple):
    """Files of one small project, and what is done with them: a name of `JUDGES`."""

    kind: str
    files: dict[str, bytes]

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))

    def encoded(self) -> str:
        """The input as one line of JSON, which is ASCII."""
        texts = {name: data.decode("utf-8", "surrogateescape") for name, data in self.files.items()}
        return json.dumps({"kind": self.kind, "files": texts})

    @classmethod
    def decoded(cls, line: str) -> Input:
        """What `encoded` gave; other keys are passed over."""
        found = json.loads(line)
        return cls(
            found["kind"], {name: text.encode("utf-8", "surrogateescape") for name, text in found["files"].items()}
        )


class Failure(NamedTuple):
    """What did not hold, where in our code it went wrong (where that is known), and the whole story."""

    oracle: str
    place: str
    story: str

    @property
    def key(self) -> tuple[str, str]:
        """What two failures of one cause have in common."""
        return self.oracle, self.place


class Verdict(NamedTuple):
    """A digest of all that the program said (empty: a failure), and the processor time that it took."""

    digest: str
    failure: Failure | None
    seconds: float


class Unmet(BaseException):
    """An oracle that does not hold: no `except Exception` of the program may keep it back."""

    def __init__(self, oracle: str, story: str) -> None:
        super().__init__(story)
        self.oracle = oracle


def judge(one: Input) -> Verdict:
    """What the program makes of `one`. Any exception is a failure, and so is an answer that takes `SECONDS`."""
    before = time.process_time()
    digest, failure = "", None
    ASKED["exception"] += 1
    signal.signal(signal.SIGVTALRM, _late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = JUDGES[one.kind](one.files)
        digest = hashlib.blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    except Unmet as error:
        failure = Failure(error.oracle, re.sub(r"\d+|'[^']*'|`[^`]*`", "_", str(error))[:80], str(error))
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "torchdet_lint" in frame.filename]
        place = f"{type(error).__name__} {Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
        failure = Failure("exception", place, "".join(traceback.format_exception(error, limit=-12)))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return Verdict(digest, failure, time.process_time() - before)


def _late(*_: Any) -> None:
    raise Unmet("time", f"no answer after {SECONDS} s")


def need(held: object, oracle: str, story: str) -> None:
    ASKED[oracle] += 1
    if not held:
        raise Unmet(oracle, story)


# ------------------------------------------------------------------------------------------------------------ sources


def source(files: Mapping[str, bytes]) -> Any:
    """Lint, report in every format, fix, lint and fix again."""
    _LINTER.stand_in(files)
    records = {
        path: _LINTER.record(path, files[path]) for path in sorted(files) if not path.endswith((".yaml", ".yml"))
    }
    gathered = run.Gathered(_LINTER, records, [line for record in records.values() for line in record.errors], {})
    result = run.conclude(gathered, files)
    need(not result.errors, "error", "\n".join(result.errors))
    _inside(result.findings, files)
    said: list[Any] = list(_reported(result, files))
    if any(finding.fix is not None for finding in result.findings):
        for path in records:
            _changes_what_it_says(path, files[path], [one for one in result.findings if one.filename == path])
        said.append(_fixed(gathered, files))
    return said


def _inside(findings: Sequence[Finding], files: Mapping[str, bytes]) -> None:
    rows: dict[tuple[str, int | None], int] = {}
    for path in {finding.filename for finding in findings}:
        try:
            known = decode(path, files[path])
        except SourceFault:
            continue
        rows[path, None] = len(split_lines(known.text))
        rows.update({(path, cell.number): len(split_lines(cell.text)) for cell in known.cells})
    for finding in findings:
        if (finding.filename, None) not in rows:
            continue
        last = rows.get((finding.filename, finding.cell), 1)
        need(1 <= finding.location.row <= max(last, 1) + 1, "place", f"{finding.code} in row {finding.location.row}")
        need(finding.location <= finding.end_location, "place", f"{finding.code} ends before it begins")


def _reported(result: Result, files: Mapping[str, bytes]) -> Iterator[str]:
    number = len(result.findings)
    for name in (*config.FORMATS, "statistics", "json-statistics"):
        lines = list(report.writer(name)(report.Report(result, Snippets(files))))
        text = "\n".join(map(plain, lines))
        text.encode()
        if name in ("json", "json-statistics", "gitlab", "sarif"):
            parsed = json.loads(text)
            need(
                name not in ("json", "gitlab") or len(parsed) == number, "report", f"{name}: {len(parsed)} of {number}"
            )
        elif name == "json-lines":
            need(len([json.loads(line) for line in lines]) == number, "report", f"{name}: not {number} lines")
        elif name == "junit":
            ElementTree.fromstring(text)
        elif name == "concise":
            findings = [line for line in text.split("\n") if re.search(r"\d: [A-Z]+\d+ ", line)]
            need(len(findings) == number, "report", f"concise: {len(findings)} lines of findings for {number} findings")
        bad = _NEVER.search(text)
        need(not bad, "report", f"{name} has the character U+{ord(bad[0]):04X}" if bad else "")
        yield text


def _changes_what_it_says(path: str, data: bytes, findings: Sequence[Finding]) -> None:
    """Outside of the edits, the text before and after one round of fixes is the same, byte for byte."""
    try:
        known = decode(path, data)
    except SourceFault:
        return
    fixes = [finding.fix for finding in findings if finding.fix is not None]
    patched = patch.apply(known, fixes)
    if not patched.applied:
        return
    after = decode(path, patched.data)
    before_texts = {cell.number: cell.text for cell in known.cells} or {None: known.text}
    after_texts = {cell.number: cell.text for cell in after.cells} or {None: after.text}
    need(before_texts.keys() == after_texts.keys(), "fix", "the cells of the notebook are others after it")
    for cell, text in before_texts.items():
        edits = [edit for index in patched.applied for edit in fixes[index].edits if edit.cell == cell]
        need(_only(text, after_texts[cell], edits), "fix", "it changes what no edit names")
    if known.cells:
        need(_without_sources(data) == _without_sources(patched.data), "fix", "it changes more than sources of cells")


def _without_sources(data: bytes) -> Any:
    notebook = json.loads(data, parse_int=str, parse_float=str, parse_constant=str)
    for cell in notebook.get("cells") or [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]:
        if cell.get("cell_type") == "code":
            cell.pop("source", None)
            cell.pop("input", None)
    return notebook


def _only(before: str, after: str, edits: Sequence[Any]) -> bool:
    """Whether the pieces of `before` that lie outside of `edits` follow each other in `after`, from end to end."""
    starts = [0]
    for line in split_lines(before):
        starts.append(starts[-1] + len(line))
    spans = sorted(
        (
            starts[min(edit.location.row, len(starts)) - 1] + edit.location.column - 1,
            starts[min(edit.end_location.row, len(starts)) - 1] + edit.end_location.column - 1,
        )
        for edit in edits
    )
    pieces, at = [], 0
    for start, end in spans:
        pieces.append(before[at:start])
        at = max(at, end)
    if not after.startswith(pieces[0] if pieces else before) or not after.endswith(before[at:]):
        return False
    position = 0
    for piece in [*pieces, before[at:]]:
        position = after.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return True


def _fixed(gathered: run.Gathered, files: Mapping[str, bytes]) -> Any:
    faulty = {path for path, record in gathered.records.items() if any(one.code == SYNTAX for one in record.findings)}
    repaired = repair.mend(gathered._replace(records=dict(gathered.records), errors=[]), files)
    need(not repaired.result.errors, "fix", "\n".join(repaired.result.errors))
    after = {**files, **repaired.texts}
    for path, change in repaired.changes.items():
        need(
            path in faulty or _is_python(change.old, path) <= _is_python(change.new, path), "fix", "no Python any more"
        )
        patch.diff(path, change.old, change.new)
    _LINTER.stand_in(after)
    records = {path: _LINTER.record(path, after[path]) for path in gathered.records}
    again = repair.mend(gathered._replace(records=records, errors=[]), after)
    need(not again.changes, "fix", "a second run changes more")
    need(again.result.findings == repaired.result.findings, "fix", "a second run finds something else")
    return sorted(repaired.texts.items())


def _is_python(data: bytes, path: str) -> bool:
    try:
        ast.parse(decode(path, data).text)
    except (SyntaxError, SourceFault, ValueError, RecursionError, MemoryError):
        return False
    return True


# ------------------------------------------------------------------------------------------- what a source is read with


def text(files: Mapping[str, bytes]) -> Any:
    """Bytes that become text and are written again: the same ones, and in a notebook one cell can be another."""
    ((path, data),) = files.items()
    try:
        known = decode(path, data)
    except SourceFault as fault:
        need(fault.row >= 1 <= fault.column, "place", f"a fault in {fault.row}:{fault.column}")
        return _one_line(fault.reason, path)
    need("".join(split_lines(known.text)) == known.text, "lines", "they are not the text")
    if not path.endswith(".ipynb"):
        need(not known.faithful or known.encoded(known.text) == data, "bytes", "text that nobody changed has others")
        return known.encoding, known.text
    need(known.with_cells({}) == data, "bytes", "a notebook that nobody changed has others")
    for cell in known.cells[:1]:
        again = decode(path, known.with_cells({cell.number: f"{cell.text}\nx = 1\n"}))
        need([one.text for one in again.cells[1:]] == [one.text for one in known.cells[1:]], "cells", "others change")
        need(again.cells[0].text == f"{cell.text}\nx = 1\n", "cells", "the cell is not what was written")
    return known.text, known.cells


def suppressions(files: Mapping[str, bytes]) -> Any:
    """The comments of a text: each has its place in it, and means the same where it is written again."""
    known = files["fuzz.py"].decode("utf-8", "surrogatepass")
    lines = re.split("\r\n|\r|\n", known)
    found = suppress.parse(known, _NAMES)
    for entry in found.entries:
        line = lines[entry.row - 1]
        need(line[entry.begin - 1 : entry.begin] == "#", "place", f"no comment in {entry.row}:{entry.begin}")
        need(1 <= entry.column <= entry.begin < entry.end <= len(line) + 1, "place", f"{entry} in {line!r}")
        need(not line[entry.column - 1 : entry.begin - 1].strip(), "place", f"code would go: {entry} in {line!r}")
        if entry.codes:
            need(entry.without(entry.codes) == "", "codes", f"{entry} keeps something of nothing")
            (again,) = suppress.parse(entry.without(()), _NAMES).entries
            need((again.codes, again.file) == (entry.codes, entry.file), "codes", f"{again} is not {entry}")
    return found


def edits(files: Mapping[str, bytes]) -> Any:
    """Fixes at random places: those that are applied change what they say they change, and leave Python as Python."""
    known = decode("fuzz.py", files["fuzz.py"])
    fixes = [
        Fix("safe", "x", tuple(Edit(content, Location(*begin), Location(*end)) for content, begin, end in told))
        for told in json.loads(files["fixes"])
    ]
    patched = patch.apply(known, fixes)
    need({*patched.applied, *patched.waiting, *patched.refused} == {*range(len(fixes))}, "fix", "one is nowhere")
    if patched.applied:
        after = decode("fuzz.py", patched.data)
        made = [edit for index in patched.applied for edit in fixes[index].edits]
        need(_only(known.text, after.text, made), "fix", "it changes what no edit names")
        need(_is_python(files["fuzz.py"], "x.py") <= _is_python(patched.data, "x.py"), "fix", "no Python any more")
        patch.diff("fuzz.py", files["fuzz.py"], patched.data)
    return patched


# --------------------------------------------------------------------------------------- what else is read from files


def settings(files: Mapping[str, bytes]) -> Any:
    """A configuration and requirements: they hold, or one line says why they do not."""
    with tempfile.TemporaryDirectory() as folder:
        _written(folder, files)
        try:
            found = config.find([folder])
            merged = config.merge(found, config.Options())
            linter = Linter(msgspec.structs.replace(merged, root="", cache_dir="", rule_files=merged.rule_files))
            findings, errors = run.examine(linter, {"train.py": files["train.py"]})
        except (ConfigError, CatalogueError) as error:
            return _one_line(str(error), folder)
        need(not errors, "error", "\n".join(errors))
        return found.torch, [line.replace(folder, "") for line in found.errors], findings


def _written(folder: str, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _one_line(said: str, folder: str) -> str:
    """The message without the names below `folder`, which may hold line ends; the command line shows those."""
    first, *others = said.split(folder)
    said = first + "".join("".join(other.partition(": ")[1:]) for other in others)
    shown = "".join("?" if unicodedata.category(one) == "Cc" and one != "\n" else one for one in said)
    need(shown and "\n" not in shown.strip(), "error", f"not one line: {said!r}")
    return said


def yaml(files: Mapping[str, bytes]) -> Any:
    """A file that a program is configured with: data, or nothing."""
    return [launch_configs.parsed(data.decode("utf-8", "replace")) is None for data in files.values()]


def subtracted(files: Mapping[str, bytes]) -> Any:
    """A baseline: it is subtracted, or one line says why not."""
    with tempfile.TemporaryDirectory() as folder:
        _written(folder, files)
        texts = {str(Path(folder, "train.py")): files["train.py"]}
        findings, errors = run.examine(_LINTER, texts)
        need(not errors, "error", "\n".join(errors))
        try:
            return len(baseline.subtract(str(Path(folder, "baseline.json")), findings, texts))
        except ConfigError as error:
            return _one_line(str(error), folder)


def cached(files: Mapping[str, bytes]) -> Any:
    """A project linted without a cache, and with the cache that `files` say its own cache files turn into.

    `damage` is JSON: what each bytes of the cache become, as pairs of a place (a fraction) and a text.
    """
    with tempfile.TemporaryDirectory() as folder:
        _written(folder, {name: data for name, data in files.items() if name != "damage"})
        known = config.isolated([folder])
        cold = msgspec.structs.replace(config.merge(known, config.Options()), cache_dir="")
        warm = msgspec.structs.replace(cold, cache_dir=str(Path(folder, ".torchdet_cache")))
        expected = run.run([folder], cold)
        run.run([folder], warm)
        for path in sorted(Path(folder, ".torchdet_cache").glob("*.json")):
            data = bytearray(path.read_bytes())
            for place, length, text in json.loads(files["damage"]):
                at = int(place * len(data))
                data[at : at + length] = text.encode("utf-8", "surrogateescape")
            path.write_bytes(data)
        for _ in range(2):
            need(run.run([folder], warm) == expected, "cache", "a damaged cache changes the result")
        return len(expected.findings)


def traces(files: Mapping[str, bytes]) -> Any:
    """Two traces: they are compared, or one line says why not."""
    with tempfile.TemporaryDirectory() as folder:
        _written(folder, files)
        try:
            found = compare(Path(folder, "a.tdtrace"), Path(folder, "b.tdtrace"))
        except TraceError as error:
            return _one_line(str(error), folder)
        return repr(found).replace(folder, "")


JUDGES: dict[str, Callable[[Mapping[str, bytes]], Any]] = {
    "source": source,
    "text": text,
    "suppressions": suppressions,
    "edits": edits,
    "settings": settings,
    "yaml": yaml,
    "baseline": subtracted,
    "cache": cached,
    "trace": traces,
}
