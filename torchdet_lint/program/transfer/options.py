"""A call that hands on what the command line gave -> what its options may be, of those that decide on branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.assigned import OPTION
from torchdet_lint.program.transfer.passing import bound_arguments, parameter_of
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torchdet_lint.program.effects import Node, Referent
    from torchdet_lint.program.events import Body, Event
    from torchdet_lint.program.lookup import Lookup
    from torchdet_lint.program.transfer.wanted import Wanted

_PARSER = "argparse.ArgumentParser"
_PARSED = (".parse_args()", ".parse_known_args()")
# So many functions give what another one has parsed, or the parser, back.
_HOPS = 3
# What gives an object attributes by names of the run: a configuration that is laid over the options.
_CHANGES = lazy(
    r"\bsetattr[ \t]*\(\s*(?!self\b)[\w.]+\s*,(?!\s*[\"'])|\bvars[ \t]*\([^()]*\)\s*(?:\.update|\[)"
    r"|=\s*vars[ \t]*\([^()]*\)\s*(?:$|#|\n)"
    r"|(?<!self)\.__dict__\s*(?:\.update|\[)|=\s*\w+\.__dict__\s*(?:$|#|\n)"
)


class Options:
    """What the options of programs may be, by what the file that parses the command line says."""

    def __init__(self, lookup: Lookup, wanted: Wanted) -> None:
        self.lookup = lookup
        self.wanted = wanted
        self._values: dict[tuple[str, ...], tuple[Any, ...]] = {}
        self._parsing: dict[tuple[str, str, int], frozenset[str]] = {}
        self._around: dict[frozenset[str], frozenset[str]] = {}
        self._changing: dict[str, bool] = {}

    def given(
        self, node: Node, here: Mapping[str, Any], callee: Referent, body: Body, event: Event
    ) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """What the options are that a call in `node`, which was given what is `here`, hands on to a function, by its
        parameter: `args.model`."""
        for parameter, argument in bound_arguments(callee, body, event).items():
            own = parameter_of(argument)
            if own is not None and not any(name.startswith(f"{own}.") for name in here):
                continue
            (name,) = argument.names if len(argument.names) == 1 else ("",)
            if own is None and not (name.endswith("()") and self._files(name, node.file)):
                continue
            for attribute in sorted(self.wanted.options(callee, parameter)):
                values = here.get(f"{own}.{attribute}") if own else self.values(name, attribute, node.file, callee.file)
                if values:
                    yield f"{parameter}.{attribute}", values

    def ruled_out(self, file: str, body: Body) -> Iterator[int]:
        """The arms of a function, or of what `file` does at top level, that do not run for what the options may be
        that it parses itself, or has from what does; 0 for none."""
        for test in body.tests:
            if "()" in test.parameter:
                name, _, attribute = test.parameter.rpartition(".")
                yield test.rules_out(self.values(name, attribute, file))

    def values(self, name: str, attribute: str, *files: str) -> tuple[Any, ...]:
        """What an option of the namespace that `name` stands for in the first of `files` may be; nothing where that is
        not known. No file that has to do with it may give it another value."""
        key = name, attribute, *files
        if key not in self._values:
            self._values[key] = self._worked_out(*key)
        return self._values[key]

    def _worked_out(self, name: str, attribute: str, *files: str) -> tuple[Any, ...]:
        parsing = self._files(name, files[0])
        found: list[tuple[Any, ...]] = []
        for file in sorted(parsing):
            options = self.lookup.files.summary(file).options
            found += [options[attribute]] if attribute in options else []
        if not found or not all(found):
            return ()
        around = self._with_imports(parsing | {*files})
        given = (self.lookup.files.assignments(name, around) for name in (attribute, OPTION + attribute))
        if any(map(self._changes, sorted(around))) or any(given):
            return ()
        return tuple(dict.fromkeys(value for values in found for value in values))

    def _files(self, name: str, file: str, hops: int = _HOPS) -> frozenset[str]:
        """The files that make the parser of a command line, and parse it, where `name` stands for that, or for what it
        gave; else none."""
        key = name, file, hops
        if key not in self._parsing:
            self._parsing[key] = frozenset(self._parsed_in(name, file, hops))
        return self._parsing[key]

    def _parsed_in(self, name: str, file: str, hops: int) -> set[str]:
        function, _, rest = name.partition("()")
        if rest and rest not in _PARSED:
            return set()
        if function == _PARSER:
            return {file}
        callees = self.lookup.evaluate(function, file) if hops > 0 else ()
        found = {file}
        for callee in callees:
            body = self.lookup.files.summary(callee.file).body(callee.name) if callee.kind == "function" else None
            inner = [self._files(f"{one}{rest}", callee.file, hops - 1) for one in body.returns] if body else []
            if not inner or not all(inner):
                return set()
            found.update(*inner)
        return found if callees else set()

    def _with_imports(self, files: frozenset[str]) -> frozenset[str]:
        """Files, and those of the project that they import."""
        if files not in self._around:
            self._around[files] = files.union(*(self.lookup.files.imported(file) for file in sorted(files)))
        return self._around[files]

    def _changes(self, file: str) -> bool:
        if file not in self._changing:
            self._changing[file] = _CHANGES.search(self.lookup.files.text(file)) is not None
        return self._changing[file]
