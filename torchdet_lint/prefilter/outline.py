"""The text of a file -> what the whole run knows of it, without parsing, at a thousandth of the cost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from torchdet_lint.prefilter.main_guard import has_main_guard
from torchdet_lint.regex import lazy
from torchdet_lint.source.import_paths import added_paths

if TYPE_CHECKING:
    from torchdet_lint.catalogue.tables.conventions import Conventions

_IMPORTS = lazy(
    r"[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)"
    r"|import[ \t]+(?P<plain>[^\n#]*))"
)
# What a module sets up for whoever imports it: what is shown, how, and where modules are looked for.
_SET_UP = (
    r"(?:warnings|matplotlib|mpl|plt|pd|pandas|np|numpy|torch|sys\.path|logging|sns|seaborn|cv2)\."
    r"(?:filterwarnings|simplefilter|use|switch_backend|set_option|set_printoptions|append|insert|basicConfig"
    r"|set_style|set_theme|setNumThreads)\b"
)
_WORK = lazy(
    r"^\f?(?![ \t\f]|def\b|class\b|from\b|import\b|async def\b|@|#|\"|'"
    r"|(?:if|try)\b[^\n]*:\n[ \t]+(?:from|import|get_ipython)\b"
    rf"|\w+[ \t]*=[ \t]*(?:lambda|logging\.getLogger)\b|{_SET_UP})"
    r"(?:(?:for|while|with|async|if|try)\b|[^\n#]*\w[ \t]*\()",
    re.MULTILINE,
)


class Outline(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What the whole run knows of every file without summarising it: the modules it imports (absolute or with leading
    dots, one entry for every name it takes from one), whether it has a main guard, whether it does work at top level,
    its functions whose names speak of seeds, the rows of its functions' bodies (as `Skeleton` has them; empty where
    it was not parsed), and the folders that it adds to `sys.path`, as it writes them."""

    imports: tuple[str, ...] = ()
    guard: bool = False
    works: bool = False
    seeders: tuple[str, ...] = ()
    bodies: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()


def imports(text: str) -> tuple[str, ...]:
    """The modules that a file imports, read off its text: see `Outline`."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    found: set[str] = set()
    at = -1
    while (at := text.find("import", at + 1)) >= 0:
        match = _IMPORTS.match(text, text.rfind("\n", 0, at) + 1)
        if match is None:
            continue
        at = max(at, match.end() - 1)
        if match["plain"]:
            found.update(part.split(" as ")[0].strip() for part in match["plain"].split(","))
            continue
        module = match["module"]
        joint = "" if module.endswith(".") else "."
        for part in re.split(r"[,\n]", match["names"].strip("()")):
            name = part.partition("#")[0].strip().partition(" ")[0]
            if name:
                found.add(module if name == "*" else f"{module}{joint}{name}")
    return tuple(sorted(found))


def outline(text: str, conventions: Conventions, bodies: tuple[int, ...] = ()) -> Outline:
    """The outline of a file, read off its text. `works` is true where anything at top level may be a call."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    speaks = any(word in text for word in conventions.seeders)
    seeders = tuple(conventions.defines_seeder.findall(text)) if speaks else ()
    return Outline(imports(text), has_main_guard(text), _works(text), seeders, bodies, tuple(added_paths(text)))


def _works(text: str) -> bool:
    return _WORK.search(text) is not None
