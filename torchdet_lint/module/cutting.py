"""The text of a file -> its skeleton, cut once for the file itself and for those whose values go to it."""

from __future__ import annotations

from collections import OrderedDict

import libcst as cst

from torchdet_lint.prefilter import chains, patterns, skeleton
from torchdet_lint.prefilter.skeleton import Skeleton, SyntaxFault

# Of so much text the skeletons are kept: it is a few megabytes.
_MOST = 2_000_000


def cut(text: str) -> Skeleton:
    """The skeleton of `text`: newer syntax than the running Python's is libcst's to judge; depth and NUL bytes are not.
    Raises `SyntaxFault` where it is not Python."""
    try:
        return skeleton.cut(text)
    except SyntaxFault as fault:
        if fault.reason.startswith(("too ", "source code")) or "\0" in text or len(text) > 1_000_000:
            raise
        if chains.too_long(text) or patterns.explode(text):
            raise
        try:
            same = cst.parse_module(text).code == text
        except Exception:  # whatever libcst says, Python's own reason is the better one
            raise fault from None
        if not same:
            # It passes over an indented backslash, for one: what stands below would be found in the wrong rows.
            raise
        return skeleton.whole(text)


class Cuts:
    """Skeletons by their text: files of one folder share their neighbours, are neighbours themselves, and are looked at
    again where a program is told of. What was used longest ago goes first.

    A tree is handed out once, for whoever has it may fill it.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[str, Skeleton] = OrderedDict()
        self._size = 0

    def with_tree(self, text: str) -> Skeleton:
        """The skeleton of `text` with its tree. Raises as `cut` does."""
        known = self._kept.get(text)
        if known is None or known.tree is None:
            known = cut(text)
        self._keep(text, known._replace(tree=None))
        return known

    def alone(self, text: str) -> Skeleton:
        """The skeleton of `text` without its tree. Raises as `cut` does."""
        known = self._kept.get(text) or cut(text)
        self._keep(text, known)
        return known._replace(tree=None)

    def _keep(self, text: str, found: Skeleton) -> None:
        if len(text) > self._most // 4:
            return
        if text not in self._kept:
            self._size += len(text)
        self._kept[text] = found
        self._kept.move_to_end(text)
        while self._size > self._most:
            oldest, _ = self._kept.popitem(last=False)
            self._size -= len(oldest)


CUTS = Cuts()
"""Those of this process."""
