"""Text from sources, file names and configurations -> text that a terminal and a build log show and do not obey."""

from __future__ import annotations

import json

import msgspec

from torchdet_lint.regex import lazy

# Control characters, line and paragraph separators, bidirectional and invisible marks, half surrogates, tags, and the
# code points that are no characters.
_UNSEEN = lazy(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f]"
)
_PLAIN = lazy(r"[\x20-\x7e]*")
_PLAIN_LINES = lazy(r"[\n\x20-\x7e]*")
_MARKUP = lazy(r"##(?=\[|vso\[|teamcity\[)")


def visible(text: str, keep: str = "") -> str:
    """`text` with a visible symbol in place of each character that would act rather than be seen, but those of `keep`.

    The ASCII controls become their pictures (ESC: ␛), bytes that are not UTF-8 become `\\xNN`, and all others the
    replacement character. What build systems take for a command anywhere in a line (`##[group]`) gets a wide number
    sign.
    """
    if not _PLAIN.fullmatch(text):
        text = _UNSEEN.sub(lambda match: match[0] if match[0] in keep else _picture(ord(match[0])), text)
    return _MARKUP.sub("\uff03#", text) if "##" in text else text


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else "\ufffd"


def inert(line: str) -> str:
    """`line` so that GitHub does not take it for a workflow command, which begins with two colons."""
    return line.replace("::", "\uff1a:", 1) if line.lstrip().startswith("::") else line


def json_text(value: object) -> str:
    """`value` as indented JSON that acts on no terminal or log."""
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeEncodeError:  # half a surrogate pair, from the name of a file
        text = json.dumps(value, indent=2, ensure_ascii=False)
    return escaped(text)


def escaped(text: str) -> str:
    """The JSON `text` with an escape in place of each such character; it means the same."""
    if not _PLAIN_LINES.fullmatch(text):
        text = _UNSEEN.sub(lambda match: match[0] if match[0] == "\n" else _escape(ord(match[0])), text)
    return _MARKUP.sub(r"\\u0023#", text) if "##" in text else text


def _escape(code: int) -> str:
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
