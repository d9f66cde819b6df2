"""Write what is generated: a page a rule, their list, README's table and outputs, completions. `--check` compares."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sys
from pathlib import Path

import completions

from torchdet_lint.catalogue import explain, loading, measured, ops
from torchdet_lint.cli.completion import FOLDER
from torchdet_lint.cli.main import main as command
from torchdet_lint.config import keys

ROOT = Path(__file__).parents[1]
OUTPUT = re.compile(r"(<!-- output: (?P<arguments>.*?) -->\n).*?(<!-- /output -->)", re.DOTALL)
TABLE = re.compile(r"(?<=<!-- rules -->\n).*?(?=<!-- /rules -->)", re.DOTALL)


def generated() -> dict[Path, str]:
    """Path -> text of every generated file."""
    known = loading.load(examples=True)
    rules = list(known.rules.values())
    texts = {
        ROOT / "docs/rules" / f"{rule.stem}.md": explain.page(rule, ops.ops_of(rule.code, known.facts.ops))
        for rule in rules
    }
    texts[ROOT / "docs/rules/README.md"] = "# The rules\n\n" + explain.table(rules, "{stem}.md")
    texts[ROOT / "docs/ops.md"] = explain.matrix(known.facts.ops, measurements=measured.shipped())
    texts[ROOT / "docs/torchdet-lint.schema.json"] = json.dumps(keys.schema(), indent=2) + "\n"
    texts[ROOT / "docs/configuration.md"] = reference()
    for shell, script in completions.scripts(known.rules).items():
        texts[FOLDER / f"torchdet-lint.{shell}"] = script
    readme = ROOT / "README.md"
    text = TABLE.sub(lambda _: explain.table(rules), readme.read_text(encoding="utf-8"))
    texts[readme] = OUTPUT.sub(lambda match: f"{match[1]}{console(match['arguments'])}{match[3]}", text)
    return texts


def reference() -> str:
    """The page of the configuration's keys."""
    types = keys.types()
    rows = [
        f"| `{key}` | {_cell(keys.told(types[key]))} | {_cell(known.default)} | {known.meaning} |"
        for key, known in keys.KEYS.items()
    ]
    head = """# The configuration

`[tool.torchdet-lint]` in `pyproject.toml`, or the same keys at the top of a `torchdet-lint.toml`; the file nearest to
each source holds. `torchdet-lint config KEY` says the same in a terminal, with the value that holds there, and
`torchdet-lint config --schema` prints the JSON schema, which is [torchdet-lint.schema.json](torchdet-lint.schema.json).

| key | type | default | |
|---|---|---|---|
"""
    return head + "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def console(arguments: str) -> str:
    """A block of Markdown with the command and what it prints, run here and now."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        before = Path.cwd()
        os.chdir(ROOT)
        command([*shlex.split(arguments), "--no-cache", "--color", "never"])
        os.chdir(before)
    return f"```console\n$ torchdet-lint {arguments}\n{out.getvalue()}```\n"


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` name those that are not as they should be."""
    texts = generated()
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    stale += [path for path in sorted((ROOT / "docs/rules").glob("*.md")) if path not in texts]
    if arguments == ["--check"]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what rules/ says; run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    (ROOT / "docs/rules").mkdir(exist_ok=True)
    for path in stale:
        if path in texts:
            path.write_text(texts[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
