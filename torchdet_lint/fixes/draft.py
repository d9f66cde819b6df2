"""A finding -> its fix while it is made: what its text calls things, and the definitions and imports it needs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.fixes.edits import Editor, Refusal
from torchdet_lint.fixes.imports.placing import Imports
from torchdet_lint.fixes.layout import leaves
from torchdet_lint.module.names import dotted
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from torchdet_lint.catalogue.rules import Rule
    from torchdet_lint.finding import Edit
    from torchdet_lint.fixes.layout import Layout
    from torchdet_lint.module.names import Binding

# A seed beside the configured one is written as the number that it is.
_LATER_SEED = lazy(r"\{seed\} \+ (\d+)")
_HOLE = lazy(r"\{([A-Za-z_][\w.]*)\}((?:\.[A-Za-z_]\w*)*)")
_USUAL_ALIAS = {"numpy": "np", "pandas": "pd"}


class Draft:
    """The fix of a finding at `node`, in row `row`: the imports and helpers that it needs, and the edits that these
    come to elsewhere in the file (`file_edits`)."""

    def __init__(self, layout: Layout, node: cst.CSTNode, rule: Rule, seed: int) -> None:
        self.module = module = layout.module
        self.layout = layout
        self.editor = Editor(layout)
        self.imports = Imports(self.editor)
        self.rule = rule
        self.seed = seed
        self.node = node
        self.row = module.span(node)[0].row
        self.needed: dict[str, str] = {}
        self.named: set[str] = set()
        self.helpers: dict[str, str] = {}
        self.file_edits: list[Edit] = []
        # The rows of imports that move further up.
        self._out: set[int] = set()

    def filled(self, content: str, node: cst.CSTNode, before: int | None = None) -> str:
        """`content` with its holes filled with the names that hold at `node`, or at top level above row `before`."""

        def fill(match: re.Match[str]) -> str:
            name, tail = match[1], match[2]
            if name == "seed":
                return f"{self.seed}{tail}"
            if name in self.helpers:
                return self.helpers[name] + tail
            if name in self.needed:
                return self.name(self.needed[name], tail, node, before)
            return match[0]

        return _HOLE.sub(fill, _LATER_SEED.sub(lambda match: str(self.seed + int(match[1])), content))

    def name(self, wanted: str, tail: str, node: cst.CSTNode, before: int | None) -> str:
        """How the file says `wanted` followed by `tail`; an import is added where it cannot say it yet."""
        self.named.add(wanted)
        above = self._runs_at(node) if before is None else before
        module, _, attribute = wanted.partition(":")
        parts = [part for part in (attribute, *tail.split(".")) if part]
        known = self.bound(module, node, before)
        if known is not None:
            return ".".join([known, *parts])
        for end in range(len(parts), 0, -1):
            known = self.bound(".".join([module, *parts[:end]]), node, before)
            if known is not None:
                return ".".join([known, *parts[end:]])
        root = module.partition(".")[0]
        if root != module and (known := self.bound(root, node, before)) is not None:
            return ".".join([known, *module.split(".")[1:], *parts])
        if attribute:
            if not self.layout.free(attribute):
                raise Refusal(f"the file uses the name `{attribute}` for something else")
            self._import(f"from {module} import {attribute}", above)
            return ".".join(parts)
        return ".".join([self._new_import(module, node, above), *parts])

    def _runs_at(self, node: cst.CSTNode) -> int | None:
        """The row of `node`, where it runs when the module is read; None in a function or a lambda."""
        if any(isinstance(around, (cst.FunctionDef, cst.Lambda)) for around in self.module.ancestors(node)):
            return None
        return self.module.span(node)[0].row

    def _new_import(self, module: str, node: cst.CSTNode, above: int | None) -> str:
        root = module.partition(".")[0]
        self.needs_unconditional(root)
        for alias in (_USUAL_ALIAS.get(module, root), root):
            known = self._only_names(alias, module, node) or self._by_star(alias, module, node)
            if self.layout.free(alias) or known or (alias == root and self.layout.names.only_inside(root)):
                self._import(f"import {module}" if alias == root else f"import {module} as {alias}", above)
                return alias if alias != root else module
        alias = f"{'python' if module == 'random' else 'the'}_{root}"
        if not self.layout.free(alias):
            raise Refusal(f"the file uses the name `{root}` for something else")
        self._import(f"import {module} as {alias}", above)
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

    def bound(self, target: str, node: cst.CSTNode, before: int | None) -> str | None:
        """The name that stands for the module or attribute `target` at `node`, or at top level above row `before`."""
        scope = self.module.scope_of(node) if before is None else self.module.scope
        above = self._runs_at(node) if before is None else before
        names = self.layout.names.of(target)
        usual = _USUAL_ALIAS.get(target, target)
        for name in sorted(names, key=lambda name: (name != usual, name)):
            bindings = self.module.scope.bindings[name]
            if scope.home(name) is not self.module.scope or not all(
                self._means(binding, target) for binding in bindings
            ):
                continue
            if any(binding.kind == "import" and self.above(binding, above) for binding in bindings):
                return name
        return self._bound_inside(target, node) if before is None else None

    def _bound_inside(self, target: str, node: cst.CSTNode) -> str | None:
        """The same in the function around `node`, where an import stands above it."""
        scope = self.module.scope_of(node).function
        if scope is self.module.scope or scope.kind == "class":
            return None
        order = self.module.order_of(node)
        for name, bindings in self.layout.names.imported_inside(scope):
            if all(
                binding.target == target and not binding.conditional and binding.order < order for binding in bindings
            ):
                return name
        return None

    def _means(self, binding: Binding, target: str) -> bool:
        """Whether a binding imports `target`, or stands in for it where it cannot be imported."""
        if binding.kind != "import":
            # `except ImportError: np = None`
            return binding.conditional and binding.value is not None and self.module.value(binding.value).is_none
        return binding.target == target and binding.node is not None and not self._for_types(binding)

    def above(self, binding: Binding, before: int | None) -> bool:
        """Whether an import is made at top level, above row `before`."""
        node = binding.node
        if node is None:  # libcst cannot read the statement
            return False
        return self.module.enclosing_function(node) is None and (
            before is None or self.module.span(node)[0].row < before
        )

    def _for_types(self, binding: Binding) -> bool:
        """Whether an import is made for a type checker only."""
        return binding.node is not None and any(
            isinstance(around, cst.If) and dotted(around.test).rpartition(".")[2] == "TYPE_CHECKING"
            for around in self.module.ancestors(binding.node)
        )

    def needs_unconditional(self, module: str) -> None:
        """A line at top level must not need what the file takes pains to do without."""
        imports = [one for one in self.layout.names.imports_of(module) if not self._for_types(one)]
        if imports and all(binding.conditional for binding in imports):
            raise Refusal(f"the file imports {module} on some condition only")

    def may_be_none(self, module: str) -> bool:
        """Whether `module` is None where the file has failed to import it and goes on, so that a line at top level must
        not need it. There is no such line where the module has no name then."""
        missing = False
        for name, bindings in sorted(self.module.scope.bindings.items()):
            for binding in bindings:
                if binding.kind == "import" and binding.target == module and self._may_be_missing(binding):
                    if all(one.kind == "import" or not self._means(one, module) for one in bindings):
                        raise Refusal(f"the file goes on where `{name}` cannot be imported")
                    missing = True
        return missing

    def _may_be_missing(self, binding: Binding) -> bool:
        """Whether an import stands in a `try` with a handler that neither imports, raises nor calls anything."""
        if binding.node is None:  # libcst cannot read the statement
            return True
        block: cst.CSTNode = binding.node
        for around in self.module.ancestors(binding.node):
            if isinstance(around, (cst.FunctionDef, cst.ClassDef)):
                return False
            if isinstance(around, cst.Try) and block is around.body and not self.module.source.cells:
                return not all(any(map(_cares, leaves(handler))) for handler in around.handlers)
            block = around
        return False

    def _import(self, statement: str, above: int | None) -> None:
        """Add the import `statement`, above the finding and row `above` where these run with the module."""
        limits = [row for row in (above, self.row if self.at_top(self.row) else None) if row is not None]
        limit = min(limits, default=None)
        self.file_edits.append(self.imports.placed(statement, limit))
        if limit is not None and not self.module.source.cells:
            self.file_edits += self._taken_out(statement, limit)

    def _taken_out(self, statement: str, limit: int) -> Iterator[Edit]:
        """Take the import `statement` out below row `limit`, where it has a line of its own: it stands above now."""
        lines = self.layout.lines
        for top in self.layout.top:
            row = top.first
            if top.kind != "import" or row < limit or lines[row - 1].rstrip() != statement:
                continue
            self._out.add(row)
            yield self._without(row)
            above = next(one for one in range(row - 1, -1, -1) if one not in self._out)
            below = next(one for one in range(row + 1, len(lines) + 2) if one not in self._out)
            if below <= len(lines) and not lines[below - 1].strip() and not (above and lines[above - 1].strip()):
                yield self._without(below)

    def _without(self, row: int) -> Edit:
        return self.editor.edit(self.layout.starts[row - 1], self.layout.starts[row], "")

    def at_top(self, row: int) -> bool:
        """Whether what stands in `row` runs when the module is read, not when a function of it is called."""
        top = self.layout.top_row(row)
        return top is not None and top.kind != "definition" and not self.in_function()

    def in_function(self) -> bool:
        """Whether the finding is in a function or a lambda."""
        return any(isinstance(around, (cst.FunctionDef, cst.Lambda)) for around in self.module.ancestors(self.node))

    def definition_row(self) -> int:
        """The row after which a definition goes: after the imports, and above the top-level statement that needs it."""
        top = self.layout.top_row(self.row) if self.at_top(self.row) else None
        return self.layout.below_imports(top.first if top is not None else None)

    def fresh(self, names: Sequence[str]) -> str:
        """The first of `names`, or one like them, that means nothing in the file."""
        for name in itertools.chain(names, (f"{names[0]}_{number}" for number in range(2, 100))):
            if self.layout.free(name):
                return name
        raise Refusal(f"the file uses every name like `{names[0]}`")

    def visible(self, name: str) -> bool:
        """Whether the top-level `name` is what `name` means at the place of the finding, defined before it."""
        if self.module.scope_of(self.node).home(name) is not self.module.scope:
            return False
        if not self.at_top(self.row):
            return True
        return all(binding.order < self.module.order_of(self.node) for binding in self.module.scope.bindings[name])

    def define(self, row: int, content: str, blank: int) -> None:
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
        self.file_edits.append(self.editor.lines_after(row, content + "\n" * max(missing, 0)))


def _cares(leaf: cst.CSTNode) -> bool:
    """Whether a statement of an exception's handler does something about what is missing."""
    return isinstance(leaf, (cst.Import, cst.ImportFrom, cst.Raise)) or (
        isinstance(leaf, cst.Expr) and isinstance(leaf.value, cst.Call)
    )
