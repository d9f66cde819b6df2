"""Seeds and switches of a program -> the edits at the place where the program, or a process of it, begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchdet_lint.finding import InsertBefore
from torchdet_lint.fixes.bound_names import required_parameters
from torchdet_lint.fixes.commented_seeds import commented_seeds
from torchdet_lint.fixes.edits import Refusal
from torchdet_lint.fixes.statements import inserted
from torchdet_lint.module.names import dotted
from torchdet_lint.module.tree import children
from torchdet_lint.regex import lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchdet_lint.finding import Edit, NeedHelper, SeedFunction
    from torchdet_lint.fixes.draft import Draft
    from torchdet_lint.fixes.layout import Top

LIBRARIES = ("python", "numpy", "torch")

_SEED_LINE = {
    "python": ("random", "{random}.seed({seed})"),
    "numpy": ("numpy", "{numpy}.random.seed({seed})"),
    "torch": ("torch", "{torch}.manual_seed({seed})"),
}
_OWN_LIBRARY = {"TDL101": "torch", "TDL102": "numpy", "TDL103": "python"}
DETERMINISTIC = ("torch", "{torch}.use_deterministic_algorithms(True)")
CUBLAS = ("os", '{os}.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")')
_VALUELESS = ("{random}.seed(", "{numpy}.random.seed(", DETERMINISTIC[1])
# So many statements stand above the seeds of a function.
_NEAR = 4
_GUARD = lazy(r"__name__\s*==|==\s*__name__")


def enter_seeds(draft: Draft, need: NeedHelper) -> None:
    """Seed where the program begins: by a function that does it in sight, else line by line; where it seeds another
    library, beside that."""
    libraries = need.libraries or (_OWN_LIBRARY.get(draft.rule.code, "torch"),)
    if need.beside is not None:
        if not _enter_beside(draft, need):
            row = draft.module.span(need.beside)[0].row
            raise Refusal(f"the seed of line {row} is not a statement by itself, below which the others could follow")
        return
    if _enter_commented(draft, need.before, libraries):
        return
    seed = need.seed or "{seed}"
    function = _seed_function(draft, frozenset(libraries), need) or _project_function(draft, need.function)
    if function:
        enter(draft, [("", f"{function}({seed})")], need.before, need.below)
    else:
        enter(draft, _seed_lines(libraries, seed), need.before, need.below)


def _seed_lines(libraries: Sequence[str], seed: str) -> list[tuple[str, str]]:
    """The statements that give the global generators of `libraries` a seed."""
    lines = [_SEED_LINE[library] for library in LIBRARIES if library in libraries]
    return [(module, text.replace("{seed}", seed)) for module, text in lines]


def _enter_commented(draft: Draft, before: cst.CSTNode | None, libraries: Sequence[str]) -> bool:
    """Take the author's seeds out of their comments, and seed the other libraries below with the same number; whether
    there are any."""
    if "seed(" not in draft.module.text or (before is None and len(libraries) > 1):
        return False
    calls = {library: (module, text.partition("(")[0]) for library, (module, text) in _SEED_LINE.items()}
    found = commented_seeds(draft, {library: calls[library] for library in libraries}, before)
    if not found or any(draft.may_be_none(calls[library][0]) for library in libraries):
        return False
    last = max(found.values())
    if _ends_cell(draft, last.row):
        return False
    draft.file_edits += [one.edit(draft) for one in found.values()]
    others = _present(draft, _seed_lines([library for library in libraries if library not in found], last.seed))
    if others:
        indent = draft.module.text[draft.layout.starts[last.row - 1] : last.start]
        lines = [f"{indent}{draft.filled(text, draft.node, last.row)}\n" for _, text in others]
        draft.file_edits.append(draft.editor.lines_after(last.row, "".join(lines)))
    return True


def _enter_beside(draft: Draft, need: NeedHelper) -> bool:
    """Seed below the statement that seeds another library, and with the same seed; whether there is room for lines."""
    statement = draft.module.statement(need.beside)
    block = draft.module.parent(statement)
    header = ""
    if isinstance(statement, cst.If) and isinstance(statement.body, cst.SimpleStatementSuite) and not statement.orelse:
        # `if args.seed is not None: torch.manual_seed(args.seed)`
        if not _only_seeds(draft, statement.body.body, need.beside):
            return False
        header = draft.module.text[slice(draft.layout.span(statement)[0], draft.layout.span(statement.body.body[0])[0])]
    elif (
        not isinstance(statement, cst.SimpleStatementLine)
        or not isinstance(block, (cst.IndentedBlock, cst.Module))
        or not _only_seeds(draft, statement.body, need.beside)
    ):
        return False
    row = draft.module.span(statement)[1].row
    if "{torch}" in need.seed:
        draft.needed["torch"] = "torch"
    statements = _present(draft, _seed_lines(need.libraries, need.seed))
    lines = [header + draft.filled(text, statement) for _, text in _unshown(draft, row, statements)]
    draft.file_edits.append(draft.editor.lines_after(row, draft.editor.indented("\n".join(lines), statement)))
    return True


def _only_seeds(draft: Draft, line: Sequence[cst.BaseSmallStatement], seed: cst.CSTNode) -> bool:
    """Whether `line` only assigns, or calls `seed` and its like: what else it does may use what is seeded below it."""
    if len(line) == 1 and isinstance(line[0], (cst.Assign, cst.AnnAssign)):
        return True
    place = draft.module.span(seed)[0]
    calls = [one.value for one in line if isinstance(one, cst.Expr) and isinstance(one.value, cst.Call)]
    return len(calls) == len(line) and all(
        draft.module.span(call)[0] == place or "seed" in dotted(call.func) for call in calls
    )


def _project_function(draft: Draft, function: str) -> str:
    """The seeding function of another file, as a hole; empty where its name means something else here."""
    module, _, name = function.partition(":")
    if not name or not (draft.layout.free(name) or draft.bound(f"{module}.{name}", draft.node, None)):
        return ""
    # The hole has a name of its own: `{seed}` is the seed, and a function may be called so.
    draft.needed["project_seeds"] = function
    return "{project_seeds}"


def _seed_function(draft: Draft, libraries: frozenset[str], need: NeedHelper) -> str | None:
    """The function of this file, or of a framework that it imports, that seeds all of `libraries`."""
    conventions = draft.module.library.facts.conventions
    limit = draft.module.span(need.before)[0].row if need.before is not None else None
    rows = {
        name: row
        for row in draft.module.library.facts.seeds
        for name in row.names
        if row.argument in row.parameters[:1] and not (row.optional or row.lazy)
    }
    for name, bindings in sorted(draft.module.scope.bindings.items()):
        for binding in bindings:
            row = rows.get(draft.module.library.canonical(binding.target)) if binding.kind == "import" else None
            if (
                row is not None
                and not binding.conditional
                and len(row.seeds) > 1
                and libraries <= set(row.seeds)
                and (limit is None or draft.above(binding, limit))
            ):
                return name
    if limit is not None:
        return None
    for unit, node in draft.module.load_functions(need.own.__contains__):
        parameters = [*node.params.posonly_params, *node.params.params]
        if conventions.seeds_worker.search(node.name.value) or not _runs_when_called(draft, node):
            continue
        if required_parameters(node.params) > 1 or not parameters or "seed" not in parameters[0].name.value.lower():
            continue
        if libraries <= _seeded_by(draft, node) and _reaches(draft, unit.piece.last):
            return node.name.value
    return None


def _reaches(draft: Draft, last: int) -> bool:
    """Whether a definition that ends at row `last` stands before the place where seeds go."""
    guard = draft.layout.guard
    return guard is not None and guard.first > last and guard.first <= draft.row


def _seeded_by(draft: Draft, function: cst.FunctionDef) -> frozenset[str]:
    """The libraries whose global generators the body of `function` seeds, with a seed that it gives them."""
    seeds = draft.module.library.facts.seeds
    rows = {name: row for row in seeds if not (row.lazy or row.entropy) for name in row.names}
    found: set[str] = set()
    for call in draft.module.calls:
        if draft.module.enclosing_function(call.node) is function:
            for row in (rows[name] for name in call.own if name in rows):
                if call.opaque or not row.argument or call.argument(row.argument, row.parameters) is not None:
                    found.update(row.seeds)
    return frozenset(found)


def enter(
    draft: Draft,
    statements: Sequence[tuple[str, str]],
    before: cst.CSTNode | None = None,
    below: cst.CSTNode | None = None,
) -> None:
    """Insert statements where the program begins, or above the top-level statement that holds `before`, and below that
    which holds `below`."""
    statements = _present(draft, statements)
    if before is not None:
        row = draft.module.span(before)[0].row
        imports = draft.layout.below_imports(row, _import_row(draft, row, statements))
        held = draft.layout.top_row(draft.module.span(below)[0].row) if below is not None else None
        if held is not None and held.last > imports:
            _enter_below(draft, held.last, statements, defined=held.kind == "definition")
        else:
            _enter_below(draft, imports, statements)
        return
    guard = draft.layout.guard
    if guard is not None and (guard.first <= draft.row or draft.in_function()):
        _enter_guard(draft, guard, statements)
        return
    top = draft.layout.top_row(draft.row) if not draft.in_function() else None
    _enter_below(draft, draft.layout.below_imports(top.first if top is not None else None), statements)


def _import_row(draft: Draft, limit: int, statements: Sequence[tuple[str, str]]) -> int | None:
    """The row above `limit` from which on a notebook has imported all modules of `statements`; None in other files."""
    if not draft.module.source.cells:
        return None
    rows = []
    for module, _ in statements:
        found = [
            draft.module.span(binding.node)[0].row
            for name in draft.layout.names.of(module)
            for binding in draft.module.scope.bindings[name]
            if binding.kind == "import" and binding.node is not None and draft.above(binding, limit)
        ]
        rows.append(min(found, default=limit))
    return max(rows) if max(rows) < limit else None


def _present(draft: Draft, statements: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The statements, whose modules are seen to; on a condition where the file goes on without a module."""
    found = []
    for module, text in statements:
        if module:
            draft.needed[module] = module
        if module and draft.may_be_none(module):
            text = f"if {{{module}}} is not None:\n{draft.layout.indent}{text}"
        found.append((module, text))
    return found


def _enter_below(draft: Draft, row: int, statements: Sequence[tuple[str, str]], *, defined: bool = False) -> None:
    """Insert statements after `row`, which ends a definition if it is `defined`."""
    content = _written(draft, _unshown(draft, row, statements), row + 1)
    if row == 0:
        # Where no import stands above, a definition or a statement of another kind follows.
        apart = "\n" if draft.layout.lines and draft.layout.lines[0].strip() else ""
        draft.file_edits.append(draft.editor.lines_before(1, content + apart))
    else:
        draft.define(row, ("\n\n" if defined else "\n") + content, 1)


def _unshown(draft: Draft, row: int, statements: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """The statements as they stand below `row`, where a notebook shows no value of theirs."""
    if not _ends_cell(draft, row) or statements[-1][1].startswith(_VALUELESS):
        return statements
    module, last = statements[-1]
    return [*statements[:-1], (module, f"{last};")]


def _ends_cell(draft: Draft, row: int) -> bool:
    """Whether what goes below `row` is the last of a notebook's cell, which shows its value unless a `;` follows."""
    cell, inside = draft.module.source.place(row)
    held = draft.module.source.cell(cell)
    if held is None:
        return False
    return all(not line.strip() or line.lstrip().startswith("#") for line in draft.layout.lines_of_cell(held)[inside:])


def seeded_function(draft: Draft, change: SeedFunction) -> Edit:
    """Seed at the start of a function, below its docstring."""
    node = next((node for _, node in draft.module.load_functions(change.name.__eq__)), None)
    if node is None or not isinstance(node.body, cst.IndentedBlock):
        raise Refusal(f"`{change.name}` is not a plain function of this file")
    parameters = [*node.params.posonly_params, *node.params.params]
    first = parameters[0].name.value if parameters else ""
    seed, test = str(draft.seed), ""
    if change.given is not None:
        seed, test = _given_seed(draft, change, {one.name.value for one in (*parameters, *node.params.kwonly_params)})
    if draft.module.library.facts.conventions.is_process_number.fullmatch(first):
        seed = f"{seed} + {first}" if seed != "0" else first
    elif change.of_tasks:
        raise Refusal(f"every task that `{change.name}` is given would draw the same numbers")
    held = _seeding_block(draft, node.body, test) if test and "deterministic" not in change.libraries else None
    lines = [f"if {test}:"] if test and held is None else []
    for library in (one for one in LIBRARIES if one in change.libraries):
        module, line = _SEED_LINE[library]
        draft.needed[module] = module
        lines.append((draft.layout.indent if test and held is None else "") + line.replace("{seed}", seed))
    if held is not None:
        return inserted(draft, InsertBefore(held, "\n".join(lines)))
    if "deterministic" in change.libraries:
        draft.needed["torch"] = "torch"
        lines.append(DETERMINISTIC[1])
    return inserted(draft, InsertBefore(node.body.body[0], "\n".join(lines)))


def _seeding_block(draft: Draft, body: cst.IndentedBlock, test: str) -> cst.BaseStatement | None:
    """The first statement under an `if` with this `test` that does nothing but seed, near the start of a function."""
    for one in body.body[:_NEAR]:
        if isinstance(one, cst.If) and one.orelse is None and draft.module.code(one.test) == test:
            lines = one.body.body if isinstance(one.body, cst.IndentedBlock) else ()
            parts = [part for line in lines if isinstance(line, cst.SimpleStatementLine) for part in line.body]
            calls = [part.value for part in parts if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call)]
            if len(calls) == len(lines) == len(parts) and all("seed" in dotted(call.func) for call in calls):
                return lines[0] if isinstance(lines[0], cst.BaseStatement) else None
    return None


def _given_seed(draft: Draft, change: SeedFunction, parameters: set[str]) -> tuple[str, str]:
    """The seed of the process that starts the function, and the test under which it is set: both have to be what
    the function is given by the same name."""
    module, given = draft.module, change.given
    call = module.call_at(given) if isinstance(given, cst.Call) else None
    value = next(iter(call.node.args), None) if call is not None else None
    row = module.span(given)[0].row
    refusal = Refusal(f"line {row} seeds the program, and `{change.name}` has to be given that seed")
    if value is None or value.star or module.enclosing_function(given) is not module.enclosing_function(draft.node):
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


def _written(draft: Draft, statements: Sequence[tuple[str, str]], before: int) -> str:
    return "".join(draft.filled(text, draft.node, before) + "\n" for _, text in statements)


def _enter_guard(draft: Draft, guard: Top, statements: Sequence[tuple[str, str]]) -> None:
    assert isinstance(guard.node, cst.If)
    body = guard.node.body.body
    modules = {module for module, _ in statements if module and module not in draft.helpers}
    rows = {module: row for module in modules if (row := _row_of_import(draft, body, module)) is not None}
    here = {module for module, row in rows.items() if row < draft.row}
    lazily = sorted(module for module in modules - here if _is_imported_lazily(draft, module, guard))
    draft.helpers.update({module: module for module in (*here, *lazily)})
    content = _written(draft, statements, guard.first)
    imports = CUBLAS not in statements or bool(here)
    last = max((rows[module] for module in here), default=0)
    below = [one for one in body if draft.module.span(one)[0].row > last]
    first = next((one for one in below if not _stays_above(draft, one, imports=imports)), body[0])
    if isinstance(guard.node.body, cst.IndentedBlock):
        draft.file_edits += [draft.editor.before(first, f"import {module}\n") for module in lazily]
        draft.file_edits.append(draft.editor.before(first, content))
        return
    content = "".join(f"import {module}\n" for module in lazily) + content
    start = draft.layout.span(first)[0]
    text = draft.module.text
    gap = len(text[:start]) - len(text[:start].rstrip(" \t"))
    indent, newline = draft.layout.indent, draft.layout.newline
    lines = "".join(f"{newline}{indent}{line}" for line in content.split("\n") if line)
    draft.file_edits.append(draft.editor.edit(start - gap, start, f"{lines}{newline}{indent}"))


def _is_imported_lazily(draft: Draft, module: str, guard: Top) -> bool:
    """Whether only functions of the file import `module`: a program that is started does so below its main guard."""
    return draft.bound(module, draft.node, guard.first) is None and draft.layout.names.only_inside(module)


def _row_of_import(draft: Draft, body: Sequence[cst.CSTNode], module: str) -> int | None:
    """The row of the first `import module` of a block."""
    rows = (draft.module.span(statement)[0].row for statement in body if _imports(statement, module))
    return next(rows, None)


def _imports(statement: cst.CSTNode, module: str) -> bool:
    """Whether a statement is `import module`."""
    leaf = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    return isinstance(leaf, cst.Import) and any(one.asname is None and dotted(one.name) == module for one in leaf.names)


def _stays_above(draft: Draft, statement: cst.CSTNode, *, imports: bool) -> bool:
    """Whether `statement` is a text that says how to start the program, or `imports`, above that of the finding."""
    leaf = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    text = isinstance(leaf, cst.Expr) and isinstance(leaf.value, (cst.SimpleString, cst.ConcatenatedString))
    stays = text or (imports and isinstance(leaf, (cst.Import, cst.ImportFrom)))
    return stays and draft.module.span(statement)[0].row < draft.row


def _runs_when_called(draft: Draft, function: cst.FunctionDef) -> bool:
    """Whether a bare call of `function` runs it: it is no coroutine, no generator and no context manager."""
    if function.asynchronous is not None or any(
        "contextmanager" in draft.module.code(decorator) for decorator in function.decorators
    ):
        return False
    queue: list[cst.CSTNode] = [function.body]
    while queue:
        node = queue.pop()
        if isinstance(node, cst.Yield):
            return False
        if not isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            queue.extend(children(node))
    return True


def _free_names(node: cst.CSTNode) -> set[str]:
    """The names that `node` reads; attributes are none."""
    if isinstance(node, cst.Name):
        return {node.value} - {"None", "True", "False"}
    parts = (node.value,) if isinstance(node, cst.Attribute) else children(node)
    return {name for part in parts for name in _free_names(part)}
