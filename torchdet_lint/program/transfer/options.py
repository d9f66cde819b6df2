"""A call that hands on what the command line gave -> what its options may be, of those that decide on branches."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from torchdet_lint.prefilter.assigned import OPTION
from torchdet_lint.prefilter.main_guard import is_main_guard
from torchdet_lint.prefilter.syntax import walk
from torchdet_lint.program.effects import STARTED
from torchdet_lint.program.events import MODULE, PLACED, is_result
from torchdet_lint.program.syntax.hollow import parsed_body
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
        self._constants: dict[str, dict[str, list[tuple[int, Any]]]] = {}

    def given(
        self, node: Node, here: Mapping[str, Any], callee: Referent, body: Body, event: Event
    ) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """What the options are that a call in `node`, which was given what is `here`, hands on to a function, by its
        parameter: `args.model`."""
        arguments = (*event.positional, *event.keywords.values())
        if not any("." in name for name in here) and not any(
            one.names[:1] and is_result(one.names[0]) for one in arguments
        ):
            return
        for parameter, argument in bound_arguments(callee, body, event).items():
            own = parameter_of(argument)
            if own is not None and not any(name.startswith(f"{own}.") for name in here):
                continue
            (name,) = argument.names if len(argument.names) == 1 else ("",)
            if own is None and not is_result(name):
                continue
            for attribute in sorted(self.wanted.options(callee, parameter)):
                if own:
                    values = here.get(f"{own}.{attribute}")
                else:
                    values = self._set(node, event, attribute, callee.file) or (
                        self.values(name, attribute, node.file, callee.file) if self._files(name, node.file) else ()
                    )
                if values:
                    yield f"{parameter}.{attribute}", values

    def _set(self, node: Node, event: Event, attribute: str, file: str) -> tuple[Any, ...]:
        """The constant that `node`, at top level of a program, gives the attribute of an object above the call `event`
        of a function of `file`, where nothing else that has to do with it sets an attribute of that name."""
        if node.name not in (MODULE, STARTED):
            return ()
        told = self._told(node.file).get(attribute, ())
        if len(told) != 1 or told[0][0] >= event.row:
            return ()
        around = sorted(self.with_imports(frozenset({node.file, file})))
        if any(map(self.changes, around)) or sum(self._stores(one, attribute) for one in around) != 1:
            return ()
        return (told[0][1],)

    def _stores(self, file: str, attribute: str) -> int:
        """How often `file` evidently sets an attribute of that name, of whatever objects."""
        files = self.lookup.files
        if not any(files.assignments(name, frozenset({file})) for name in (attribute, OPTION + attribute)):
            return 0
        text = files.text(file)
        return len(re.findall(rf"setattr[ \t]*\([^\n]*[\"']{attribute}[\"']", text)) + sum(
            isinstance(node, ast.Attribute) and node.attr == attribute and not isinstance(node.ctx, ast.Load)
            for statement in parsed_body(text)
            for node in walk(statement)
        )

    def _told(self, file: str) -> dict[str, list[tuple[int, Any]]]:
        """The constants that the statements at top level of `file`, and of its main guard, assign to attributes, by
        their names, with the rows: `options.serial = True`."""
        if file not in self._constants:
            found: dict[str, list[tuple[int, Any]]] = {}
            for one in parsed_body(self.lookup.files.text(file)):
                for statement in one.body if isinstance(one, ast.If) and is_main_guard(one) else (one,):
                    value = statement.value if isinstance(statement, ast.Assign) else None
                    for target in statement.targets if isinstance(statement, ast.Assign) else ():
                        if isinstance(target, ast.Attribute) and isinstance(value, ast.Constant):
                            found.setdefault(target.attr, []).append((statement.lineno, value.value))
            self._constants[file] = found
        return self._constants[file]

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
        around = self.with_imports(parsing | {*files})
        given = (self.lookup.files.assignments(name, around) for name in (attribute, OPTION + attribute))
        if any(map(self.changes, sorted(around))) or any(given):
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
        place = told[0] if (told := PLACED.match(rest)) is not None else ""
        rest = rest[len(place) :]
        if rest and rest not in _PARSED:
            return set()
        if function == _PARSER:
            return {file}
        callees = self.lookup.evaluate(function, file) if hops > 0 else ()
        found = {file}
        for callee in callees:
            body = self.lookup.files.summary(callee.file).body(callee.name) if callee.kind == "function" else None
            inner = [self._files(f"{one}{rest}", callee.file, hops - 1) for one in body.given_at(place)] if body else []
            if not inner or not all(inner):
                return set()
            found.update(*inner)
        return found if callees else set()

    def with_imports(self, files: frozenset[str]) -> frozenset[str]:
        """Files, and those of the project that they import."""
        if files not in self._around:
            self._around[files] = files.union(*(self.lookup.files.imported(file) for file in sorted(files)))
        return self._around[files]

    def changes(self, file: str) -> bool:
        """Whether a file may give objects attributes by names that only the run knows."""
        if file not in self._changing:
            self._changing[file] = _CHANGES.search(self.lookup.files.text(file)) is not None
        return self._changing[file]
