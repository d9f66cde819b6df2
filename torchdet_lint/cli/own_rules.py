"""`rule new CODE-name` -> a file to begin with; `rule test FILE…` -> whether the examples of rule files hold."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from torchdet_lint.cli.console import CLEAN, FINDINGS, UsageError, say
from torchdet_lint.cli.options import Parser
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchdet_lint.catalogue.rules import Example

_NAME = lazy(r"(?!TDL)[A-Z]{2,}\d{3}-[a-z0-9]+(?:-[a-z0-9]+)*")
_MARK = lazy(r"#\s*expect:\s*(?P<codes>[A-Z]+\d+(?:\s*,\s*[A-Z]+\d+)*)")
_BEGINNING = '''\
# The file's name is the code and the name of the rule. Add the file to `rule-files`, and the code to `extend-select`.
summary = "acme's fast scatter adds with atomics."
# `{name}` is the name that was found, `{source}` the source of the call.
message = "`{name}` adds in the order in which threads arrive"
severity = "warning"  # or "error", "note"
why = "Floating-point sums depend on their order."
instead = "Call `acme.ops.sorted_scatter`."
# A page about the rule, which reports and editors link to.
# url = "https://acme.example/rules/CODE"

# What is reported: calls by their full names, whatever they are imported as.
[[calls]]
names = ["acme.ops.fast_scatter"]

# Examples are tests: `torchdet-lint rule test` tries them. `# expect:` marks a line that is reported.
[[bad]]
code = """
from acme.ops import fast_scatter
fast_scatter(x, index)  # expect: CODE
"""

[[good]]
code = """
from acme.ops import sorted_scatter
sorted_scatter(x, index)
"""
'''


def new(arguments: Sequence[str]) -> int:
    """Write a rule file to begin with, in the working folder; the exit status."""
    parser = Parser(
        prog="torchdet-lint rule new", description="Write a commented rule file, in the working folder, to begin with."
    )
    parser.add_argument("rule", metavar="CODE-NAME", help="a code of your own and a name: ACME001-fast-scatter")
    name = parser.parse_args(arguments).rule.removesuffix(".toml")
    if not _NAME.fullmatch(name):
        raise UsageError("rule new: name the rule by a code of your own and a name, such as ACME001-fast-scatter")
    try:
        with open(f"{name}.toml", "x", encoding="utf-8") as file:
            file.write(_BEGINNING.replace("CODE", name.partition("-")[0]))
    except FileExistsError as error:
        raise UsageError(f"rule new: {name}.toml is already there") from error
    say(f"Wrote {name}.toml; `torchdet-lint rule test {name}.toml` tries its examples.")
    return CLEAN


def test(arguments: Sequence[str]) -> int:
    """Try the examples of rule files; the exit status."""
    from torchdet_lint.catalogue import loading

    parser = Parser(
        prog="torchdet-lint rule test",
        description="Lint the examples of rule files, and compare what is reported with their marks.",
        epilog="exit status: 0 all hold, 1 some do not, 2 a file cannot be used",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="rule files")
    failed = 0
    for path in parser.parse_args(arguments).files:
        rules = loading.load(examples=True, extra=[Path(path).absolute()]).rules
        code = os.path.basename(path).partition("-")[0]
        examples = [(kind, one) for kind in ("bad", "good") for one in getattr(rules[code], kind)]
        faults = [
            f"{path}: {kind} example {number}{f' ({one.title})' if one.title else ''}: {fault}"
            for number, (kind, one) in enumerate(examples, 1)
            for fault in _faults(path, code, one)
        ]
        if not rules[code].bad:
            faults.append(f"{path}: there is no [[bad]] example: nothing shows that the rule reports anything")
        for fault in faults:
            say(fault)
        failed += bool(faults)
        if not faults:
            say(f"{path}: {len(examples)} example{'s' * (len(examples) != 1)} hold{'s' * (len(examples) == 1)}")
    return FINDINGS if failed else CLEAN


def _faults(path: str, code: str, example: Example) -> Iterator[str]:
    """One line for each row of `example` where the rule says something else than its marks."""
    from torchdet_lint import config
    from torchdet_lint.catalogue import ops
    from torchdet_lint.engine import run
    from torchdet_lint.engine.linter import Linter

    torch, older = config.known(ops.release(example.torch_version) if example.torch_version else config.NEWEST_TORCH)
    settings = config.Settings(
        root="",
        select=(code,),
        rule_files=(os.path.abspath(path),),
        min_severity="note",
        torch=torch,
        older=older,
        devices=example.devices or ("cpu", "cuda"),
    )
    texts = {example.filename: example.code, **example.files}
    findings, errors = run.examine(Linter(settings), {name: text.encode() for name, text in texts.items()})
    yield from errors
    told = {(one.filename, one.location.row) for one in findings if one.code == code}
    wanted = {
        (name, row)
        for name, text in texts.items()
        for row, line in enumerate(text.split("\n"), 1)
        for match in _MARK.finditer(line)
        if code in re.split(r"\s*,\s*", match["codes"])
    }
    for name, row in sorted(told - wanted):
        yield f"{name}:{row}: reported, and not marked `# expect: {code}`"
    for name, row in sorted(wanted - told):
        yield f"{name}:{row}: marked `# expect: {code}`, and not reported"
