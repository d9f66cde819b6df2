"""From the changes that a check asks for to the edits that a file gets: where things go and what they are called."""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.finding import (
    DropArgument,
    Edit,
    Fix,
    InsertBefore,
    Location,
    NeedHelper,
    NeedImport,
    Replace,
    SeedFunction,
    SetArgument,
    Withhold,
)
from torchdet_lint.fixes.layout import Layout, first_row, is_text, line_end
from torchdet_lint.fixes.patch import import_key
from torchdet_lint.module.names import dotted
from torchdet_lint.module.tree import children
from torchdet_lint.source.files import comments, split_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.catalogue.schema import Rule
    from torchdet_lint.finding import Change, Found
    from torchdet_lint.fixes.layout import Top
    from torchdet_lint.module.module import Call, Module
    from torchdet_lint.module.names import Binding

_Key = tuple[int, bool, str]

LIBRARIES = ("python", "numpy", "torch")

_HOLE = re.compile(r"\{([A-Za-z_][\w.]*)\}((?:\.[A-Za-z_]\w*)*)")
_USUAL_ALIAS = {"numpy": "np", "pandas": "pd"}
_SEED_LINE = {
    "python": ("random", "{random}.seed({seed})"),
    "numpy": ("numpy", "{numpy}.random.seed({seed})"),
    "torch": ("torch", "{torch}.manual_seed({seed})"),
}
_OWN_LIBRARY = {"TDL101": "torch", "TDL102": "numpy", "TDL103": "python"}
_DETERMINISTIC = ("torch", "{torch}.use_deterministic_algorithms(True)")
_CUBLAS = ("os", '{os}.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")')
_WORKER_FUNCTION = re.compile(r"(?:seed|init)\w*worker|worker\w*(?:seed|init)", re.IGNORECASE)
_SEED_FUNCTION = re.compile(r"seed|determinis|reproduc", re.IGNORECASE)
_GENERATOR_NAMES = ("generator", "data_generator", "loader_generator", "seeded_generator")
_WORKER_NAMES = ("seed_worker", "seed_data_worker", "seed_loader_worker")
_ONLY_GENERATORS = re.compile(r"\bdefault_rng\b|\brandom\.Generator\b")
_LEGACY_NUMPY = re.compile(
    r"\brandom\.(?:seed|rand|randn|randint|random|random_sample|choice|shuffle|permutation|normal|uniform|get_state|set_state)\b"
)
_NUMBER_OF_PROCESS = re.compile(r"\w*rank|\w*(?:_id|_index|_idx)|index|idx|i|number")
_GUARD = re.compile(r"__name__\s*==|==\s*__name__")
_CELL_MARK = re.compile(r"#\s*(?:%%|In\s*\[)")
_CHANGING = r"^[ \t]*{}(?:\s*:[^=\n]*)?\s*(?:=(?!=)|\[[^\]]*\]\s*=(?!=)|\.update\()"
_WIDE = 100


class Refusal(Exception):
    """A fix that is not made; the text says why and reads on after "No fix: "."""


class Planner:
    """Plans the fixes of one file; `seed` is the configured one."""

    def __init__(self, module: Module, seed: int = 0) -> None:
        self.module = module
        self.seed = seed

    @functools.cached_property
    def layout(self) -> Layout:
        """The file as a whole, looked at when the first fix is planned."""
        return Layout(self.module)

    def plan(self, found: Found, rule: Rule) -> Fix | None:
        """The edits that `found.changes` come to, or why there are none; None where nothing was asked for."""
        if not found.changes:
            return None
        applicability = found.applicability or rule.fix or "unsafe"
        message = rule.fix_title or f"Fix {rule.name}"
        try:
            edits = _Plan(self.layout, found, rule, self.seed).edits()
        except Refusal as refusal:
            return Fix(applicability, message, (), str(refusal))
        return Fix(applicability, message, edits)


class _Plan:
    """The edits of one finding."""

    def __init__(self, layout: Layout, found: Found, rule: Rule, seed: int) -> None:
        self.module = module = layout.module
        self.layout = layout
        self.found = found
        self.rule = rule
        self.seed = seed
        self.node: cst.CSTNode = found.node
        self.row = module.span(self.node)[0].row
        self.needed: dict[str, str] = {}
        self.named: set[str] = set()
        self.helpers: dict[str, str] = {}
        self.file_edits: list[Edit] = []

    def edits(self) -> tuple[Edit, ...]:
        """All edits: imports, helpers, then what happens at the place of the finding."""
        changes = self.found.changes
        for change in changes:
            if isinstance(change, NeedImport):
                self.needed[change.module.rpartition(":")[2]] = change.module
            elif isinstance(change, Withhold):
                raise Refusal(change.reason)
            elif isinstance(change, SetArgument):
                self._look_up(change)
        for change in changes:
            if isinstance(change, NeedHelper):
                self._helper(change)
        local = [edit for change in changes for edit in self._local(change)]
        passed: dict[int, list[SetArgument]] = {}
        for change in changes:
            if isinstance(change, SetArgument):
                passed.setdefault(id(change.call), []).append(change)
        for arguments in passed.values():
            local += self._arguments(arguments)
        for change in changes:
            if isinstance(change, NeedImport) and change.module not in self.named:
                self._name(change.module, "", self.node, None)
        return tuple(dict.fromkeys([*self.file_edits, *local]))

    def _local(self, change: Change) -> list[Edit]:
        """The edits of a change of one place."""
        if isinstance(change, Replace):
            return [self._replace(change)]
        if isinstance(change, DropArgument):
            return [self._drop(change)]
        if isinstance(change, InsertBefore):
            return [self._insert(change)]
        return [self._seeded_function(change)] if isinstance(change, SeedFunction) else []

    # ------------------------------------------------------------------ text

    def filled(self, content: str, node: cst.CSTNode, before: int | None = None) -> str:
        """`content` with its holes filled with the names that hold at `node`, or at top level above row `before`."""

        def fill(match: re.Match[str]) -> str:
            name, tail = match[1], match[2]
            if name == "seed":
                return f"{self.seed}{tail}"
            if name in self.helpers:
                return self.helpers[name] + tail
            if name in self.needed:
                return self._name(self.needed[name], tail, node, before)
            return match[0]

        return _HOLE.sub(fill, content)

    def _name(self, wanted: str, tail: str, node: cst.CSTNode, before: int | None) -> str:
        """How the file says `wanted` followed by `tail`; an import is added where it cannot say it yet."""
        self.named.add(wanted)
        module, _, attribute = wanted.partition(":")
        parts = [part for part in (attribute, *tail.split(".")) if part]
        known = self._bound(module, node, before)
        if known is not None:
            return ".".join([known, *parts])
        for end in range(len(parts), 0, -1):
            known = self._bound(".".join([module, *parts[:end]]), node, before)
            if known is not None:
                return ".".join([known, *parts[end:]])
        root = module.partition(".")[0]
        if root != module and (known := self._bound(root, node, before)) is not None:
            return ".".join([known, *module.split(".")[1:], *parts])
        if attribute:
            if not self.layout.free(attribute):
                raise Refusal(f"the file uses the name `{attribute}` for something else")
            self._import(f"from {module} import {attribute}", before)
            return ".".join(parts)
        return ".".join([self._new_import(module, node, before), *parts])

    def _new_import(self, module: str, node: cst.CSTNode, before: int | None) -> str:
        root = module.partition(".")[0]
        self._unconditional(root)
        for alias in (_USUAL_ALIAS.get(module, root), root):
            if self.layout.free(alias) or self._only_names(alias, module, node) or self._by_star(alias, module, node):
                self._import(f"import {module}" if alias == root else f"import {module} as {alias}", before)
                return alias if alias != root else module
        alias = f"{'python' if module == 'random' else 'the'}_{root}"
        if not self.layout.free(alias):
            raise Refusal(f"the file uses the name `{root}` for something else")
        self._import(f"import {module} as {alias}", before)
        return alias

    def _only_names(self, name: str, module: str, node: cst.CSTNode) -> bool:
        """Whether every binding of `name` at top level is an import of `module`, and `node` sees no other."""
        bindings = self.module.scope.bindings.get(name, ())
        seen = self.module.scope_of(node).home(name) is self.module.scope
        return (
            bool(bindings)
            and seen
            and all(
                binding.kind == "import" and binding.target in (module, module.partition(".")[0])
                for binding in bindings
            )
        )

    def _by_star(self, name: str, module: str, node: cst.CSTNode) -> bool:
        """Whether `name` is `module` already, by way of what the file takes whole of another."""
        if self.module.scope_of(node).home(name) is not None or name in self.module.scope.bindings:
            return False
        return self.module.resolve(cst.Name(name), self.module.scope, None) == (module,)

    def _bound(self, target: str, node: cst.CSTNode, before: int | None) -> str | None:
        """The name that stands for the module or attribute `target` at `node`, or at top level above row `before`."""
        scope = self.module.scope_of(node) if before is None else self.module.scope
        names = [
            name
            for name, bindings in self.module.scope.bindings.items()
            if any(binding.kind == "import" and binding.target == target for binding in bindings)
        ]
        usual = _USUAL_ALIAS.get(target, target)
        for name in sorted(names, key=lambda name: (name != usual, name)):
            bindings = self.module.scope.bindings[name]
            if scope.home(name) is not self.module.scope or not all(
                self._means(binding, target) for binding in bindings
            ):
                continue
            if any(binding.kind == "import" and self._above(binding, before) for binding in bindings):
                return name
        return self._bound_inside(target, node) if before is None else None

    def _bound_inside(self, target: str, node: cst.CSTNode) -> str | None:
        """The same in the function around `node`, where an import stands above it."""
        scope = self.module.scope_of(node).function
        if scope is self.module.scope or scope.kind == "class":
            return None
        order = self.module.order_of(node)
        for name, bindings in sorted(scope.bindings.items()):
            if all(
                binding.kind == "import"
                and binding.target == target
                and not binding.conditional
                and binding.order < order
                for binding in bindings
            ):
                return name
        return None

    def _means(self, binding: Binding, target: str) -> bool:
        """Whether a binding imports `target`, or stands in for it where it cannot be imported."""
        if binding.kind != "import":
            # `except ImportError: np = None`
            return binding.conditional and binding.value is not None and self.module.value(binding.value).is_none
        return binding.target == target and binding.node is not None and not self._for_types(binding)

    def _above(self, binding: Binding, before: int | None) -> bool:
        """Whether an import is made at top level, above row `before`."""
        assert binding.node is not None
        return self.module.enclosing_function(binding.node) is None and (
            before is None or self.module.span(binding.node)[0].row < before
        )

    def _for_types(self, binding: Binding) -> bool:
        """Whether an import is made for a type checker only."""
        return binding.node is not None and any(
            isinstance(around, cst.If) and dotted(around.test).rpartition(".")[2] == "TYPE_CHECKING"
            for around in self.module.ancestors(binding.node)
        )

    # ------------------------------------------------------------------ edits

    def _edit(self, start: int, end: int, content: str) -> Edit:
        """Replace a piece of the text; refused where a comment would go."""
        layout = self.layout
        for _, comment in comments(self.module.text[start:end]):
            if comment not in content:
                raise Refusal(f"it would drop the comment `{_short(comment)}`")
        source = self.module.source
        first, last = layout.location(start), layout.location(end)
        cell, row = source.place(first.row)
        return Edit(content, Location(row, first.column), Location(source.place(last.row)[1], last.column), cell)

    def _lines_after(self, row: int, content: str) -> Edit:
        """Insert whole lines after `row` of the text (0: at its start)."""
        if row == 0:
            return self._lines_before(1, content)
        cell, inside = self.module.source.place(row)
        line = self._raw_line(row)
        newline = line_end(line) or self.layout.newline
        content = content.replace("\n", newline)
        if line_end(line):
            place = Location(inside + 1, 1)
        else:
            place = Location(inside, len(line) + 1)
            content = newline + content[: -len(newline)]
        return Edit(content, place, place, cell)

    def _raw_line(self, row: int) -> str:
        """The line as the file has it: the last one of a cell has no end although the joined text gives it one."""
        cell, inside = self.module.source.place(row)
        for candidate in self.module.source.cells:
            if candidate.number == cell:
                lines = split_lines(candidate.text)
                return lines[inside - 1] if inside <= len(lines) else ""
        return self.layout.lines[row - 1] if row <= len(self.layout.lines) else ""

    def _lines_before(self, row: int, content: str) -> Edit:
        """Insert whole lines before `row` of the text."""
        cell, inside = self.module.source.place(row)
        line = self.layout.lines[row - 1] if row <= len(self.layout.lines) else ""
        place = Location(inside, 1)
        return Edit(content.replace("\n", line_end(line) or self.layout.newline), place, place, cell)

    def _replace(self, change: Replace) -> Edit:
        node = change.node
        start, end = self.layout.span(node)
        if isinstance(node, (cst.BaseSmallStatement, cst.SimpleStatementLine)):
            if not change.content:
                return self._removed(node)
            lead = self.layout.lines[self.layout.location(start).row - 1]
            indent = lead[: len(lead) - len(lead.lstrip(" \t"))]
            content = self.filled(change.content, node).rstrip("\n").replace("\n", self.layout.newline + indent)
            return self._edit(start, end, content)
        return self._edit(start, end, self.filled(change.content, node))

    def _removed(self, node: cst.CSTNode) -> Edit:
        """Take a simple statement out: its line, its part of the line, or `pass` where a block would be left empty."""
        module, layout = self.module, self.layout
        line = node if isinstance(node, cst.SimpleStatementLine) else module.parent(node)
        assert isinstance(line, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
        start, end = layout.span(node)
        if node is not line and len(line.body) > 1:
            index = next(place for place, small in enumerate(line.body) if small is node)
            if index + 1 < len(line.body):
                return self._edit(start, layout.span(line.body[index + 1])[0], "")
            return self._edit(layout.span(line.body[index - 1])[1], end, "")
        block = module.parent(line)
        alone = isinstance(line, cst.SimpleStatementSuite) or (
            isinstance(block, cst.IndentedBlock) and len(block.body) == 1
        )
        if alone:
            return self._edit(start, end, "pass")
        first, last = layout.location(start).row, layout.location(end).row
        return self._edit(layout.starts[first - 1], layout.starts[last], "")

    def _insert(self, change: InsertBefore) -> Edit:
        statement = self._statement(change.node)
        content = self.filled(change.content, change.node)
        block = self.module.parent(statement)
        if (
            isinstance(statement, cst.SimpleStatementLine)
            and is_text(statement.body[0])
            and isinstance(block, (cst.IndentedBlock, cst.Module))
            and block.body[0] is statement
        ):
            return self._lines_after(self.module.span(statement)[1].row, self._indented(content, statement))
        return self._before(statement, content)

    def _statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """The statement around `node` before which a line can be put: an `elif` is none."""
        module = self.module
        statement = module.statement(node)
        parent = module.parent(statement)
        while isinstance(parent, cst.If) and parent.orelse is statement:
            statement, parent = parent, module.parent(parent)
        return statement

    def _before(self, statement: cst.CSTNode, content: str) -> Edit:
        """Insert lines before a statement, and before the comments right above it."""
        row = first_row(self.module, statement, self.module.span(statement)[0].row)
        return self._lines_before(self._above_comments(statement, row), self._indented(content, statement))

    def _indented(self, content: str, statement: cst.CSTNode) -> str:
        row = first_row(self.module, statement, self.module.span(statement)[0].row)
        line = self.layout.lines[row - 1]
        indent = line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]
        return "".join(f"{indent}{part}\n" if part.strip() else "\n" for part in content.rstrip("\n").split("\n"))

    def _above_comments(self, statement: cst.CSTNode, row: int) -> int:
        """The row of the first comment of those that stand right above `statement` and belong to it."""
        unit = self.module.unit_of(statement)
        inside = unit.piece.first < row
        leading = getattr(statement, "leading_lines", ()) if inside else ()
        count = 0
        for empty in reversed(leading):
            if empty.comment is None or _CELL_MARK.match(empty.comment.value):
                break
            count += 1
        if not inside:
            previous = max([self.layout.preamble, *(top.last for top in self.layout.top if top.last < row)])
            while row - 1 - count > previous:
                line = self.layout.lines[row - 2 - count]
                if not line.startswith("#") or _CELL_MARK.match(line):
                    break
                count += 1
        first_of_cell = row - self.module.source.place(row)[1] + 1
        return max(row - count, first_of_cell if self.module.source.cells else 1)

    # ------------------------------------------------------------------ arguments

    def _arguments(self, changes: Sequence[SetArgument]) -> list[Edit]:
        """Set keyword arguments of one call."""
        node = changes[0].call
        call = self.module.call_at(node)
        edits: list[Edit] = []
        new: list[str] = []
        for change in changes:
            value = change.value if change.value not in self.helpers else f"{{{change.value}}}"
            held = self._held(node, call, change.name)
            if held is not None:
                edits.append(self._edit(*self.layout.span(held), self.filled(value, held)))
            else:
                new.append(f"{change.name}={self.filled(value, node)}")
        if new:
            edits += self._appended(node, new)
        return edits

    def _look_up(self, change: SetArgument) -> None:
        """What is needed is needed already where the dictionary is made that holds the argument."""
        held = self._held(change.call, self.module.call_at(change.call), change.name)
        if held is not None and self.module.span(held)[0].row < self.row:
            self.node, self.row = held, self.module.span(held)[0].row

    def _held(self, node: cst.Call, call: Call | None, name: str) -> cst.BaseExpression | None:
        """The value that the call is given for `name`: by keyword, by position, or in a dictionary."""
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value == name:
                return arg.value
        if call is None:
            return None
        value = call.argument(name, self._parameters(call))
        if value is not None:
            if not any(arg.value is value.node and not arg.star for arg in node.args) and not self._unpacked(
                call, value.node
            ):
                raise Refusal(f"`{name}` comes from somewhere else than the call")
            return value.node
        if any(arg.star == "**" for arg in node.args) and call.opaque:
            raise Refusal(f"`**` may pass `{name}` already")
        return None

    def _unpacked(self, call: Call, value: cst.CSTNode) -> bool:
        """Whether `value` stands in a dictionary that only such calls unpack: `f(**{…})`, or a name of this scope."""
        around = list(self.module.ancestors(value))
        if any(arg.star == "**" and arg.value in around for arg in call.node.args):
            return True
        name = self._changed_by(self.module.statement(value))
        home = call.scope.home(name)
        if not _unpacks(call, name) or home is None or self.module.scope_of(value).home(name) is not home:
            return False
        unpacking = [other for other in self.module.calls if _unpacks(other, name)]
        uses = len(re.findall(rf"\b{re.escape(name)}\b", self.module.text))
        changes = len(re.findall(_CHANGING.format(re.escape(name)), self.module.text, re.MULTILINE))
        return uses == changes + len(unpacking) and all(self._alike(other, call) for other in unpacking)

    def _alike(self, one: Call, other: Call) -> bool:
        """Whether two calls are of the same thing."""
        code = self.module.code
        return not set(one.names).isdisjoint(other.names) or code(one.node.func) == code(other.node.func)

    @staticmethod
    def _changed_by(statement: cst.CSTNode) -> str:
        """The name of the dictionary that a statement makes or changes."""
        small = (
            statement.body[0] if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1 else None
        )
        target: cst.CSTNode | None = None
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            target = small.targets[0].target
        elif isinstance(small, cst.AnnAssign):
            target = small.target
        elif (
            isinstance(small, cst.Expr)
            and isinstance(small.value, cst.Call)
            and isinstance(small.value.func, cst.Attribute)
        ):
            target = small.value.func.value
        while isinstance(target, cst.Subscript):
            target = target.value
        return target.value if isinstance(target, cst.Name) else ""

    def _parameters(self, call: Call) -> Sequence[str] | None:
        """The parameters of the callee: what the catalogue says of it anywhere, or what the rule says."""
        if call.parameters is not None:
            return call.parameters
        known = [(row.names, row.parameters) for row in self.rule.calls]
        known += [(row.names, row.parameters) for row in self.module.library.facts.seeds]
        return next((rest for names, rest in known if rest and not set(names).isdisjoint(call.names)), None)

    def _appended(self, node: cst.Call, new: Sequence[str]) -> list[Edit]:
        """Add arguments at the end of a call, in the manner in which it is written."""
        text, layout = self.module.text, self.layout
        if not node.args:
            close = layout.span(node)[1] - 1
            opening = text.rindex("(", layout.span(node.func)[1] - 1, close)
            for _, comment in comments(text[opening:close]):
                raise Refusal(f"the comment `{_short(comment)}` stands where the argument would go")
            return [self._edit(opening, close, f"({', '.join(new)}")]
        if isinstance(node.args[0].value, cst.GeneratorExp) and not node.args[0].value.lpar:
            raise Refusal("the call takes a generator expression without parentheses of its own")
        stars = [arg for arg in node.args if arg.star == "**"]
        if stars and stars[-1] is node.args[-1] and len(node.args) > len(stars):
            return [self._before_stars(node, layout.span(stars[0])[0], new)]
        end = layout.span(node.args[-1])[1]
        comma = _comma_after(text, end)
        return self._after_last(node, end, comma, new)

    def _before_stars(self, node: cst.Call, start: int, new: Sequence[str]) -> Edit:
        """Put arguments before `**options`, which starts at `start`: on lines of their own where that has one, or where
        a call that is broken already would grow too wide."""
        where = self.layout.location(start)
        line = self.layout.lines[where.row - 1]
        lead = line[: where.column - 1]
        newline = line_end(line) or self.layout.newline
        broken = where.row > self.layout.location(self.layout.span(node)[0]).row
        if lead.strip() and broken and len(line.rstrip()) + len(", ".join(new)) + 2 > _WIDE:
            indent = newline + line[: len(line) - len(line.lstrip(" \t"))]
            gap = len(lead) - len(lead.rstrip(" \t"))
            return self._edit(start - gap, start, "".join(f"{indent}{part}," for part in new) + indent)
        separator = " " if lead.strip() else newline + lead
        return self._edit(start, start, "".join(f"{part},{separator}" for part in new))

    def _after_last(self, node: cst.Call, end: int, comma: int, new: Sequence[str]) -> list[Edit]:
        text, layout = self.module.text, self.layout
        where = layout.location(layout.span(node.args[-1])[0])
        line = layout.lines[where.row - 1]
        lead = line[: where.column - 1]
        close = layout.span(node)[1] - 1
        own_line = not lead.strip()
        after = comma + 1 if comma >= 0 else end
        closes_below = "\n" in text[after:close] or "\r" in text[after:close]
        opens = layout.location(layout.span(node)[0]).row
        broken = not own_line and where.row > opens and len(line.rstrip()) + len(", ".join(new)) + 2 > _WIDE
        if broken:
            lead = line[: len(line) - len(line.lstrip(" \t"))]
        if not (own_line or broken):
            joined = ", ".join(new)
            if comma >= 0:
                return [self._edit(after, after, f" {joined},")]
            return [self._edit(end, end, f", {joined}")]
        newline = line_end(line) or layout.newline
        rest = text[after : self._line_stop(after)]
        if closes_below and rest.strip():
            # A comment after the last argument stays with it.
            stop = self._line_stop(after)
            edits = [] if comma >= 0 else [self._edit(end, end, ",")]
            return [*edits, self._edit(stop, stop, "".join(f"{newline}{lead}{part}," for part in new))]
        if comma >= 0:
            return [self._edit(after, after, "".join(f"{newline}{lead}{part}," for part in new))]
        return [self._edit(end, end, "".join(f",{newline}{lead}{part}" for part in new))]

    def _line_stop(self, offset: int) -> int:
        """The end of the line that holds `offset`, without its line end."""
        row = self.layout.location(offset).row
        line = self.layout.lines[row - 1]
        return self.layout.starts[row - 1] + len(line) - len(line_end(line))

    def _drop(self, change: DropArgument) -> Edit:
        args = list(change.call.args)
        index = next(place for place, arg in enumerate(args) if arg is change.argument)
        start, end = self.layout.span(change.argument)
        if index + 1 < len(args):
            if index == 0:
                return self._edit(start, self.layout.span(args[1])[0], "")
            before = self.layout.span(args[index - 1])[1]
            return self._edit(_comma_after(self.module.text, before) + 1, _comma_after(self.module.text, end) + 1, "")
        if index:
            return self._edit(self.layout.span(args[index - 1])[1], end, "")
        comma = _comma_after(self.module.text, end)
        return self._edit(start, comma + 1 if comma >= 0 else end, "")

    # ------------------------------------------------------------------ imports

    def _import(self, statement: str, before: int | None) -> None:
        """Add the import `statement` where the file keeps its imports."""
        layout = self.layout
        run = layout.run
        limit = self.row if self._at_top(self.row) else None
        limit = before if limit is None else limit if before is None else min(before, limit)
        if not run or (limit is not None and run[-1].last >= limit):
            held = [top for top in run if limit is None or top.last < limit]
            row = held[-1].last if held else layout.preamble
            self.file_edits.append(self._spaced_import(row, statement))
            return
        self.file_edits.append(self._among(run, statement))

    def _among(self, run: Sequence[Top], statement: str) -> Edit:
        """Put an import into a block of imports: in its place where its group is sorted, else below its like."""
        mine = import_key(statement)
        keyed = [(top, import_key(self._import_text(top))) for top in run if top.kind == "import"]
        alike = [(top, key) for top, key in keyed if key[0] == mine[0]]
        if alike:
            group = self._group(alike)
            later = [top for top, key in group if key > mine]
            if later and [key for _, key in group] == sorted(key for _, key in group):
                return self._lines_before(later[0].first, f"{statement}\n")
            plain = [top for top, key in group if not key[1]] if not mine[1] else []
            return self._lines_after((plain or [group[-1][0]])[-1].last, f"{statement}\n")
        apart = "\n" if self._parts_sections(keyed) else ""
        below = [top for top, key in keyed if key[0] > mine[0]]
        if below and below[0] is run[0]:
            return self._lines_before(below[0].first, f"{statement}\n{apart}")
        if below:
            return self._lines_after(run[run.index(below[0]) - 1].last, f"{apart}{statement}\n")
        return self._lines_after((keyed[-1][0] if keyed else run[-1]).last, f"{apart}{statement}\n")

    def _parts_sections(self, keyed: Sequence[tuple[Top, _Key]]) -> bool:
        """Whether blank lines part the imports of the standard library, of others, and of the project."""
        return all(
            before[1][0] == after[1][0]
            or any(not line.strip() for line in self.layout.lines[before[0].last : after[0].first - 1])
            for before, after in itertools.pairwise(keyed)
        )

    def _group(self, keyed: Sequence[tuple[Top, _Key]]) -> list[tuple[Top, _Key]]:
        """Imports that no blank line parts: of several such groups the one with torch or NumPy, else the first."""
        groups = [[keyed[0]]]
        for before, after in itertools.pairwise(keyed):
            if any(not line.strip() for line in self.layout.lines[before[0].last : after[0].first - 1]):
                groups.append([])
            groups[-1].append(after)
        return next(
            (group for group in groups if any(key[2].startswith(("torch", "numpy")) for _, key in group)), groups[0]
        )

    def _import_text(self, top: Top) -> str:
        assert isinstance(top.node, cst.SimpleStatementLine)
        return self.module.code(top.node.body[0])

    def _spaced_import(self, row: int, statement: str) -> Edit:
        """An import in a file that has none: a blank line on either side."""
        lines = self.layout.lines
        above = "\n" if 0 < row <= len(lines) and lines[row - 1].strip() else ""
        below = "\n" if row < len(lines) and lines[row].strip() and not self._is_import_row(row + 1) else ""
        if above and self._is_import_row(row):
            above = ""
        return self._lines_after(row, f"{above}{statement}\n{below}")

    def _is_import_row(self, row: int) -> bool:
        top = self.layout.top_row(row)
        return top is not None and top.kind in ("import", "imports")

    # ------------------------------------------------------------------ helpers

    def _at_top(self, row: int) -> bool:
        """Whether what stands in `row` runs when the module is read, not when a function of it is called."""
        top = self.layout.top_row(row)
        return top is not None and top.kind != "definition" and not self._in_function()

    def _in_function(self) -> bool:
        return any(isinstance(around, (cst.FunctionDef, cst.Lambda)) for around in self.module.ancestors(self.node))

    def _helper(self, need: NeedHelper) -> None:
        if need.name == "seed_worker":
            self.helpers["seed_worker"] = self._worker_function() or self._define_worker()
        elif need.name == "generator":
            self.helpers["generator"] = self._seeded_generator() or self._define_generator()
        elif need.name == "seeds":
            self._seeds(need)
        elif need.name == "deterministic":
            self._enter([_DETERMINISTIC])
        elif need.name == "cublas":
            self._enter([_CUBLAS])
        else:
            raise ValueError(f"no helper is called {need.name!r}")

    def _definition_row(self) -> int:
        """The row after which a definition goes: after the imports, and above the top-level statement that needs it."""
        top = self.layout.top_row(self.row) if self._at_top(self.row) else None
        return self.layout.below_imports(top.first if top is not None else None)

    def _fresh(self, names: Sequence[str]) -> str:
        for name in (*names, *(f"{names[0]}_{number}" for number in range(2, 100))):
            if self.layout.free(name):
                return name
        raise Refusal(f"the file uses every name like `{names[0]}`")

    def _visible(self, name: str) -> bool:
        """Whether the top-level `name` is what `name` means at the place of the finding, defined before it."""
        if self.module.scope_of(self.node).home(name) is not self.module.scope:
            return False
        if not self._at_top(self.row):
            return True
        return all(binding.order < self.module.order_of(self.node) for binding in self.module.scope.bindings[name])

    def _worker_function(self) -> str | None:
        """A function of the file, or one that it imports, that seeds a worker."""
        for unit in self.module.load_functions(_WORKER_FUNCTION.search):
            assert unit.root is not None
            node = unit.root.body[0]
            if not isinstance(node, cst.FunctionDef) or _required(node.params) > 1 or not node.params.params:
                continue
            if "seed" in self.module.code(node.body) and self._visible(node.name.value):
                return node.name.value
        for name, bindings in sorted(self.module.scope.bindings.items()):
            if (
                _WORKER_FUNCTION.search(name)
                and "seed" in name
                and all(binding.kind == "import" and not binding.conditional for binding in bindings)
                and self._visible(name)
            ):
                return name
        return None

    def _define_worker(self) -> str:
        row = self._definition_row()
        name = self._fresh(_WORKER_NAMES)
        self.needed |= {"torch": "torch", "random": "random"}
        lines = ["{random}.seed(worker_seed)"]
        if self._uses_numpy():
            self.needed["numpy"] = "numpy"
            lines.append("{numpy}.random.seed(worker_seed)")
        lines.insert(0, "worker_seed = {torch}.initial_seed() % 2**32")
        head = f"def {name}(worker_id: int) -> None:" if self.layout.annotated else f"def {name}(worker_id):"
        body = "".join(f"{self.layout.indent}{line}\n" for line in lines)
        self._define(row, f"\n\n{head}\n{self.filled(body, self.node, row + 1)}", 2)
        return name

    def _uses_numpy(self) -> bool:
        text = self.module.text
        if not any(
            binding.kind == "import" and binding.target.partition(".")[0] == "numpy"
            for bindings in self.module.scope.bindings.values()
            for binding in bindings
        ):
            return self.module.target.torch < (1, 9)
        return not _ONLY_GENERATORS.search(text) or bool(_LEGACY_NUMPY.search(text))

    def _seeded_generator(self) -> str | None:
        """A generator on the CPU that the file makes once, at top level."""
        module = self.module
        for name, bindings in sorted(module.scope.bindings.items()):
            if len(bindings) != 1 or bindings[0].kind != "assign" or bindings[0].path or bindings[0].looped:
                continue
            value = bindings[0].value
            if bindings[0].conditional or not isinstance(value, cst.Call) or not self._visible(name):
                continue
            inner = value.func.value if isinstance(value.func, cst.Attribute) else value
            made = inner if isinstance(inner, cst.Call) else value
            if not made.args and module.resolve(value) in (
                ("torch.Generator()",),
                ("torch.Generator().manual_seed()",),
            ):
                return name
        return None

    def _define_generator(self) -> str:
        row = self._definition_row()
        name = self._fresh(_GENERATOR_NAMES)
        self.needed["torch"] = "torch"
        self._unconditional("torch")
        line = self.filled("{torch}.Generator().manual_seed({seed})", self.node, row + 1)
        self._define(row, f"\n{name} = {line}\n", 1)
        return name

    def _unconditional(self, module: str) -> None:
        """A line at top level must not need what the file takes pains to do without."""
        imports = [
            binding
            for bindings in self.module.scope.bindings.values()
            for binding in bindings
            if binding.kind == "import" and binding.target.partition(".")[0] == module and not self._for_types(binding)
        ]
        if imports and all(binding.conditional for binding in imports):
            raise Refusal(f"the file imports {module} on some condition only")

    def _define(self, row: int, content: str, blank: int) -> None:
        """Insert a definition after `row`, and blank lines where there are too few below."""
        lines = self.layout.lines
        below = 0
        while row + below < len(lines) and not lines[row + below].strip():
            below += 1
        missing = blank - below if row + below < len(lines) else 0
        if row == 0:
            content = content.lstrip("\n")
        if self.module.source.cells and row:
            _, inside = self.module.source.place(row)
            if row < len(lines) and self.module.source.place(row + 1)[1] != inside + 1:
                missing = 0
        self.file_edits.append(self._lines_after(row, content + "\n" * max(missing, 0)))

    # ------------------------------------------------------------------ the entry point

    def _seeds(self, need: NeedHelper) -> None:
        libraries = need.libraries or (_OWN_LIBRARY.get(self.rule.code, "torch"),)
        function = self._seed_function(frozenset(libraries), need.before) or self._project_function(need.function)
        if function:
            self._enter([("", f"{function}({{seed}})")], need.before)
        else:
            self._enter([_SEED_LINE[library] for library in LIBRARIES if library in libraries], need.before)

    def _project_function(self, function: str) -> str:
        """The seeding function of another file, as a hole; empty where its name means something else here."""
        module, _, name = function.partition(":")
        if not name or not (self.layout.free(name) or self._bound(f"{module}.{name}", self.node, None)):
            return ""
        self.needed[name] = function
        return f"{{{name}}}"

    def _seed_function(self, libraries: frozenset[str], before: cst.CSTNode | None) -> str | None:
        """The function of this file, or of a framework that it imports, that seeds all of `libraries`."""
        limit = self.module.span(before)[0].row if before is not None else None
        rows = {
            name: row
            for row in self.module.library.facts.seeds
            for name in row.names
            if row.argument and not row.optional
        }
        for name, bindings in sorted(self.module.scope.bindings.items()):
            for binding in bindings:
                row = rows.get(self.module.library.canonical(binding.target)) if binding.kind == "import" else None
                if (
                    row is not None
                    and not binding.conditional
                    and len(row.seeds) > 1
                    and libraries <= set(row.seeds)
                    and (limit is None or self._above(binding, limit))
                ):
                    return name
        for unit in self.module.load_functions(_SEED_FUNCTION.search):
            assert unit.root is not None
            node = unit.root.body[0]
            if not isinstance(node, cst.FunctionDef) or _WORKER_FUNCTION.search(node.name.value):
                continue
            parameters = [*node.params.posonly_params, *node.params.params]
            if _required(node.params) > 1 or not parameters or "seed" not in parameters[0].name.value.lower():
                continue
            if limit is None and libraries <= self._seeded_by(node) and self._reaches(unit.piece.last):
                return node.name.value
        return None

    def _reaches(self, last: int) -> bool:
        """Whether a definition that ends at row `last` stands before the place where seeds go."""
        guard = self.layout.guard
        return guard is not None and guard.first > last and guard.first <= self.row

    def _seeded_by(self, function: cst.FunctionDef) -> frozenset[str]:
        """The libraries whose global generators the body of `function` seeds."""
        rows = {name: row for row in self.module.library.facts.seeds for name in row.names}
        found: set[str] = set()
        for call in self.module.calls:
            if self.module.enclosing_function(call.node) is function:
                for name in call.own:
                    if name in rows:
                        found.update(rows[name].seeds)
        return frozenset(found)

    def _enter(self, statements: Sequence[tuple[str, str]], before: cst.CSTNode | None = None) -> None:
        """Insert statements where the program begins, or above the top-level statement that holds `before`."""
        for module, _ in statements:
            if module:
                self.needed[module] = module
        if before is not None:
            self._enter_below(self.layout.below_imports(self.module.span(before)[0].row), statements)
            return
        guard = self.layout.guard
        if guard is not None and (guard.first <= self.row or self._in_function()):
            self._enter_guard(guard, statements)
            return
        top = self.layout.top_row(self.row) if not self._in_function() else None
        self._enter_below(self.layout.below_imports(top.first if top is not None else None), statements)

    def _enter_below(self, row: int, statements: Sequence[tuple[str, str]]) -> None:
        content = self._written(statements, row + 1)
        if row == 0:
            self.file_edits.append(self._lines_before(1, content))
        else:
            self._define(row, "\n" + content, 1)

    def _seeded_function(self, change: SeedFunction) -> Edit:
        """Seed at the start of a function, below its docstring."""
        units = list(self.module.load_functions(lambda name: name == change.name))
        node = units[0].root.body[0] if units and units[0].root is not None else None
        if not isinstance(node, cst.FunctionDef) or not isinstance(node.body, cst.IndentedBlock):
            raise Refusal(f"`{change.name}` is not a plain function of this file")
        parameters = [*node.params.posonly_params, *node.params.params]
        first = parameters[0].name.value if parameters else ""
        seed, test = str(self.seed), ""
        if change.given is not None:
            seed, test = self._given_seed(change, {one.name.value for one in (*parameters, *node.params.kwonly_params)})
        if _NUMBER_OF_PROCESS.fullmatch(first):
            seed = f"{seed} + {first}" if seed != "0" else first
        lines = [f"if {test}:"] if test else []
        for library in (one for one in LIBRARIES if one in change.libraries):
            module, line = _SEED_LINE[library]
            self.needed[module] = module
            lines.append((self.layout.indent if test else "") + line.replace("{seed}", seed))
        if "deterministic" in change.libraries:
            self.needed["torch"] = "torch"
            lines.append(_DETERMINISTIC[1])
        return self._insert(InsertBefore(node.body.body[0], "\n".join(lines)))

    def _given_seed(self, change: SeedFunction, parameters: set[str]) -> tuple[str, str]:
        """The seed of the process that starts the function, and the test under which it is set: both have to be what
        the function is given by the same name."""
        module, given = self.module, change.given
        call = module.call_at(given) if isinstance(given, cst.Call) else None
        value = next(iter(call.node.args), None) if call is not None else None
        row = module.span(given)[0].row
        refusal = Refusal(f"line {row} seeds the program, and `{change.name}` has to be given that seed")
        if value is None or value.star or module.enclosing_function(given) is not module.enclosing_function(self.node):
            raise refusal
        tests: list[cst.BaseExpression] = []
        inner: cst.CSTNode = given
        for around in module.ancestors(given):
            if isinstance(around, cst.If) and not _GUARD.search(module.code(around.test)):
                if inner is not around.body:
                    raise refusal
                tests.append(around.test)
            inner = around
        if len(tests) > 1 or not all(parameters.issuperset(_free_names(node)) for node in (value.value, *tests)):
            raise refusal
        seed = module.code(value.value)
        plain = isinstance(value.value, (cst.Integer, cst.Name, cst.Attribute))
        return seed if plain else f"({seed})", module.code(tests[0]) if tests else ""

    def _written(self, statements: Sequence[tuple[str, str]], before: int) -> str:
        return "".join(self.filled(text, self.node, before) + "\n" for _, text in statements)

    def _enter_guard(self, guard: Top, statements: Sequence[tuple[str, str]]) -> None:
        assert isinstance(guard.node, cst.If)
        content = self._written(statements, guard.first)
        first = guard.node.body.body[0]
        if isinstance(guard.node.body, cst.IndentedBlock):
            self.file_edits.append(self._before(first, content))
            return
        start = self.layout.span(first)[0]
        text = self.module.text
        gap = len(text[:start]) - len(text[:start].rstrip(" \t"))
        indent, newline = self.layout.indent, self.layout.newline
        lines = "".join(f"{newline}{indent}{line}" for line in content.split("\n") if line)
        self.file_edits.append(self._edit(start - gap, start, f"{lines}{newline}{indent}"))


def _free_names(node: cst.CSTNode) -> set[str]:
    """The names that `node` reads; attributes are none."""
    if isinstance(node, cst.Name):
        return {node.value} - {"None", "True", "False"}
    parts = (node.value,) if isinstance(node, cst.Attribute) else children(node)
    return {name for part in parts for name in _free_names(part)}


def _unpacks(call: Call, name: str) -> bool:
    """Whether `**name` is among the arguments."""
    return any(
        arg.star == "**" and isinstance(arg.value, cst.Name) and arg.value.value == name for arg in call.node.args
    )


def _required(parameters: cst.Parameters) -> int:
    """How many arguments a function must be given."""
    everything = (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
    return sum(parameter.default is None for parameter in everything)


def _comma_after(text: str, at: int) -> int:
    """The place of the comma that follows an argument ending at `at`, comments skipped; -1 where there is none."""
    while at < len(text):
        character = text[at]
        if character == ",":
            return at
        if character == "#":
            while at < len(text) and text[at] not in "\r\n":
                at += 1
        elif character.isspace() or character == "\\":
            at += 1
        else:
            return -1
    return -1


def _short(comment: str) -> str:
    return comment if len(comment) <= 40 else f"{comment[:37]}..."
