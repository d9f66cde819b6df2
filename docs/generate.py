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
import pictures

from torchdet_lint.catalogue import explain, loading, measured, ops
from torchdet_lint.cli.completion import FOLDER
from torchdet_lint.cli.main import main as command
from torchdet_lint.config import keys

ROOT = Path(__file__).parents[1]
# The package index shows README too, where a relative link leads nowhere.
PAGES = "https://github.com/torchdet-lint/torchdet-lint/blob/main"
OUTPUT = re.compile(r"(<!-- output: (?P<arguments>.*?) -->\n).*?(<!-- /output -->)", re.DOTALL)
REPORT = re.compile(r"<!-- picture -->\n```console\n\$ (?P<command>.*)\n(?P<text>(?:.*\n)*?)```")
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
    texts |= drawn()
    readme = ROOT / "README.md"
    text = TABLE.sub(
        lambda _: explain.table(rules, f"{PAGES}/docs/rules/{{stem}}.md"), readme.read_text(encoding="utf-8")
    )
    texts[readme] = OUTPUT.sub(lambda match: f"{match[1]}{console(match['arguments'])}{match[3]}", text)
    return texts


def drawn() -> dict[Path, str]:
    """The pictures of README: a run of the linter, and the report of the verifier that the tutorial shows."""
    arguments = "examples/birdsong/model.py examples/birdsong/utils.py --select TDL106,TDL201,TDL401"
    os.environ["COLUMNS"], before = str(pictures.WIDTH), os.environ.get("COLUMNS")
    try:
        printed = shown(arguments, "always")
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
    tutorial = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    report = REPORT.search(tutorial)
    if report is None:
        raise ValueError("docs/tutorial.md shows no report that is to be drawn")
    return {
        ROOT / "docs/assets/lint.svg": pictures.of_ansi("lint", "torchdet-lint", printed),
        ROOT / "docs/assets/verify.svg": pictures.of_report("verify", report["command"], report["text"]),
    }


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
`TORCHDET_OUTPUT_FORMAT` and `TORCHDET_CACHE_DIR` win over the file, and flags over these. `NO_COLOR`, `FORCE_COLOR`
and `FORCE_HYPERLINK` decide on colour and links.

| key | type | default | |
|---|---|---|---|
"""
    return head + "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def console(arguments: str) -> str:
    """A block of Markdown with the command and what it prints, run here and now."""
    return f"```console\n$ torchdet-lint {arguments}\n{shown(arguments, 'never')}```\n"


def shown(arguments: str, color: str) -> str:
    """What a run of the linter in the top folder prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        before = Path.cwd()
        os.chdir(ROOT)
        command([*shlex.split(arguments), "--no-cache", "--color", color])
        os.chdir(before)
    return out.getvalue()


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
