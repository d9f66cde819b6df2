"""The name of an option, and the text of a file -> what the file gives to options of that name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator

# So much text in front of a keyword is looked through for the call that it belongs to.
_FAR = 2_000
_NEAR = 20
_COMMENT = lazy(r"#[^\n]*")
_INSIDE = lazy(r"(?<=[\[(])[ \t]+|[ \t]+(?=[\])])")
_VALUE = r"([^\n,)}\]]*)"
_KEYED = lazy(rf"[\"']\s*(?:\]\s*=(?!=)|:)\s*{_VALUE}")
_GET = lazy(r"\.get[ \t]*\(\s*\Z")
_READ = lazy(r"[\"']\s*\]")
_ASSIGNED = lazy(rf"\s*(?::[^=\n,()]*)?=(?!=)\s*{_VALUE}")
_CHANGED = lazy(r"\s*(?:[-+*/%@&|^]|//|\*\*|<<|>>)=")
# A function takes a parameter, or a loader is given an argument: no object keeps either under the name.
_NOT_KEPT = lazy(r"(?:\bdef\s+\w+|oader)\s*\Z")


def given_in_code(word: str, text: str) -> Iterator[str]:
    """The source of each value that Python code gives to an attribute, a field, a variable or a key `word`, or a call
    to an argument; empty where `word` stands in a text of which nobody can tell what it gives."""
    code = _INSIDE.sub("", _COMMENT.sub("", text))
    plain, dashed = re.escape(word), re.escape(word.replace("_", "-"))
    for found in re.finditer(rf"(?P<option>--(?:{plain}|{dashed})\b)|(?<!\w){plain}(?!\w)", code):
        at, end = found.span()
        if found["option"]:
            yield ""
        elif code[at - 1 : at] in ('"', "'") and code[end : end + 1] in ('"', "'"):
            keyed = _KEYED.match(code, end)
            value = keyed[1].strip() if keyed is not None else ""
            read = keyed is None and code[at - 2 : at - 1] == "[" and _READ.match(code, end) is not None
            got = _GET.search(code[max(at - _NEAR, 0) : at - 1]) is not None
            if not (read or got or value.endswith((f"['{word}'", f'["{word}"', f".{word}"))):
                yield value
        elif (assigned := _ASSIGNED.match(code, end)) is not None:
            value = assigned[1].strip()
            if not value.endswith(f".{word}") and _NOT_KEPT.search(_in_front(code, at)) is None:
                yield value
        elif _CHANGED.match(code, end) is not None:
            yield ""


def given_in_data(word: str, text: str) -> Iterator[str]:
    """The source of each value that a file of YAML, JSON or TOML gives to a key `word`."""
    code = _COMMENT.sub("", text)
    for found in re.finditer(rf"(?<!\w){re.escape(word)}[\"']?\s*[:=]\s*{_VALUE}", code):
        yield found[1].strip()


def _in_front(code: str, at: int) -> str:
    """What stands in front of the parenthesis around the place `at`; empty where there is none nearby."""
    depth, begin = 0, max(at - _FAR, 0)
    for index in range(at - 1, begin - 1, -1):
        if code[index] in ")]}":
            depth += 1
        elif code[index] in "([{":
            if depth == 0:
                return code[max(index - 80, 0) : index] if code[index] == "(" else ""
            depth -= 1
    return ""
