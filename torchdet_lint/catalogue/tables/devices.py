"""`rules/facts/devices.toml` -> names and texts that say what a program runs on, compiled to patterns."""

from __future__ import annotations

import functools
import re

from torchdet_lint.catalogue.conditions import Table


class Devices(Table, frozen=True, kw_only=True, dict=True):
    """Regular expressions and names; what each list is for stands in the file."""

    words: tuple[str, ...] = ()
    cpu: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    starting: frozenset[str] = frozenset()
    visible: str = ""
    hidden: str = "(?!)"
    needing: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    draws_there: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    everywhere: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    types: frozenset[str] = frozenset()

    @functools.cached_property
    def speaks_of_devices(self) -> re.Pattern[str]:
        """Text that may name a device: search."""
        return re.compile("|".join(self.words), re.IGNORECASE)

    @functools.cached_property
    def names_cpu(self) -> re.Pattern[str]:
        """Text that names the CPU: search."""
        return re.compile("|".join(self.cpu))

    @functools.cached_property
    def names_another(self) -> re.Pattern[str]:
        """Text that names a device that may be CUDA: search."""
        return re.compile("|".join(self.elsewhere), re.IGNORECASE)

    def names_only_cpu(self, text: str) -> bool:
        """Whether nothing in the text of a file names a device but the CPU and MPS."""
        if not self.speaks_of_devices.search(text):
            return True
        return bool(self.names_cpu.search(text)) and not self.names_another.search(text)

    @functools.cached_property
    def moves_all(self) -> re.Pattern[str]:
        """Text that may decide on which device torch makes all tensors: search."""
        return re.compile("|".join(self.everywhere))

    @functools.cached_property
    def names_cuda(self) -> re.Pattern[str]:
        """A text that names a device of CUDA: fullmatch."""
        return re.compile("|".join(self.texts))

    @functools.cached_property
    def chooses_cuda(self) -> re.Pattern[str]:
        """An option of a command line with which a device of CUDA may be chosen: match."""
        return re.compile(rf"-{{1,2}}(?:no[-_])?(?:use[-_])?(?:{'|'.join(self.options)})\b")

    @functools.cached_property
    def hides_all(self) -> re.Pattern[str]:
        """A value of the variable `visible` with which no GPU is seen: fullmatch."""
        return re.compile(self.hidden)

    @functools.cached_property
    def names_switch(self) -> re.Pattern[str]:
        """The name of a constant that says whether CUDA is used: search."""
        return re.compile("|".join(self.switches), re.IGNORECASE)
