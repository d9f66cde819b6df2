"""What a client sends -> diagnostics, code actions and hovers.

Each edit restarts a short wait, after which a thread lints. Work for a buffer that has changed meanwhile, or that the
client has cancelled, ends at the next rule or file.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from torchdet_lint import __version__, config
from torchdet_lint.catalogue.loading import load
from torchdet_lint.catalogue.texts import CatalogueError
from torchdet_lint.lsp.analysis import Analysis
from torchdet_lint.lsp.translate import SOURCE, Sheet, Translator
from torchdet_lint.lsp.work import Dropped, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torchdet_lint.catalogue.loading import Catalogue
    from torchdet_lint.finding import Finding

WAIT = 0.1
"""Seconds without an edit after which a buffer is linted."""

FIX_ALL = "source.fixAll.torchdet-lint"
FIX_ALL_UNSAFE = "torchdet-lint.fixAllUnsafe"
_CONFIGURATIONS = ("**/*.toml", "**/requirements*.txt")
_SOURCES = ("**/*.py", "**/*.yaml", "**/*.yml")
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook"),
            cells=[types.NotebookCellLanguage(language="python")],
        )
    ]
)


class Server(LanguageServer):
    """The state of one editor session."""

    def __init__(self, wait: float = WAIT) -> None:
        super().__init__(SOURCE, __version__, notebook_document_sync=_NOTEBOOKS)
        self.wait = wait
        self.analysis = Analysis(config.Options())
        self.sheets: dict[str, Sheet] = {}
        self.findings: dict[str, list[Finding]] = {}
        self.waiting: asyncio.Task[None] | None = None
        self.pending: set[str] = set()
        self.told: set[str] = set()
        self.shown: set[asyncio.Task[None]] = set()
        self.linting = ThreadPoolExecutor(1, thread_name_prefix="lint")
        for feature, answer in _FEATURES.items():
            self.feature(feature)(functools.partial(_on_event, answer))
        self.feature(types.INITIALIZE)(_initialize)
        self.feature(types.TEXT_DOCUMENT_CODE_ACTION, _ACTIONS)(_code_actions)
        self.feature(types.CODE_ACTION_RESOLVE)(_resolve)
        self.feature(types.TEXT_DOCUMENT_HOVER)(_hover)
        self.command(FIX_ALL_UNSAFE)(_fix_all_unsafe)

    @functools.cached_property
    def translator(self) -> Translator:
        """Places as the client counts them."""
        return Translator(self.workspace.position_codec, self.catalogue)

    def catalogue(self, path: str) -> Catalogue:
        """The rules that the file `path` is judged by; without the user's own where these cannot be read."""
        try:
            return self.analysis.catalogue(path)
        except (config.ConfigError, CatalogueError):
            return load()

    # ------------------------------------------------------------------ documents

    def sheet(self, path: str, uri: str) -> Sheet:
        """The file `path` as it stands in the editor."""
        notebook = self.workspace.get_notebook_document(notebook_uri=uri)
        if notebook is None:
            document = self.workspace.get_text_document(uri)
            return Sheet(path, (uri,), (list(document.lines),), (document.version,))
        cells = [cell.document for cell in notebook.cells if cell.kind == types.NotebookCellKind.Code]
        documents = [self.workspace.get_text_document(cell) for cell in cells]
        return Sheet(
            path, tuple(cells), tuple(list(document.lines) for document in documents),
            tuple(document.version for document in documents), is_notebook=True,
        )  # fmt: skip

    def owner(self, uri: str) -> str | None:
        """The path of the file that a document belongs to: for a cell that of its notebook."""
        notebook = self.workspace.get_notebook_document(cell_uri=uri)
        path = to_fs_path(notebook.uri if notebook is not None else uri)
        return os.path.abspath(path) if path else None

    def open(self, uri: str) -> None:
        """A file was opened or edited: lint it when the edits pause."""
        path = to_fs_path(uri)
        if not path:
            return
        path = os.path.abspath(path)
        self.sheets[path] = self.sheet(path, uri)
        self.pending.add(path)
        self.schedule()

    def close(self, uri: str) -> None:
        """A file was closed: nothing is said of it any more."""
        path = os.path.abspath(to_fs_path(uri) or "")
        sheet = self.sheets.pop(path, None)
        self.findings.pop(path, None)
        self.pending.discard(path)
        for document in sheet.uris if sheet is not None else ():
            self.publish(document, [], None)
        self.schedule(everything=True)

    # ------------------------------------------------------------------ linting

    def schedule(self, *, everything: bool = False) -> None:
        """Lint what is pending after a pause; a pause that was already running begins anew."""
        if everything:
            self.pending.update(self.sheets)
        if self.waiting is not None:
            self.waiting.cancel()
        self.waiting = asyncio.get_running_loop().create_task(self.lint())

    async def lint(self) -> None:
        """Lint the projects of the pending buffers, and publish what is still true of them."""
        await asyncio.sleep(self.wait)
        while self.pending:
            path = min(self.pending)
            sheets = dict(self.sheets)
            texts = {other: sheet.data() for other, sheet in sheets.items()}
            try:
                found, errors = await self.in_thread(self.analysis.findings, path, texts)
            except Dropped:
                self.pending.clear()
                return
            except (config.ConfigError, CatalogueError) as fault:
                self.pending.discard(path)
                self.complain(str(fault))
                continue
            for error in errors:
                self.complain(error)
            self.pending.difference_update(found)
            self.pending.discard(path)
            for other, findings in found.items():
                if self.sheets.get(other) == sheets.get(other):
                    self.tell(other, findings)
        await asyncio.get_running_loop().run_in_executor(self.linting, self.analysis.tidy)

    async def in_thread(self, job: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """The result of `job(*given, work, **options)`, which the thread does, and gives up where the waiting task is
        cancelled. Raises what the job does; `Dropped` where the user stopped it."""
        loop = asyncio.get_running_loop()
        work = Work(loop)
        showing = loop.create_task(work.show(self))
        self.shown.add(showing)
        showing.add_done_callback(self.shown.discard)
        try:
            return await loop.run_in_executor(self.linting, functools.partial(job, *given, work, **options))
        except asyncio.CancelledError:
            work.drop()
            raise
        finally:
            work.end()

    def tell(self, path: str, findings: list[Finding]) -> None:
        """Publish the findings of one file."""
        self.findings[path] = findings
        sheet = self.sheets.get(path)
        if sheet is None:
            return
        diagnostics = self.translator.diagnostics(sheet, findings, self.sheets)
        for uri, version in zip(sheet.uris, sheet.versions, strict=True):
            self.publish(uri, diagnostics[uri], version)

    def publish(self, uri: str, diagnostics: list[types.Diagnostic], version: int | None) -> None:
        """Send the diagnostics of one document."""
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))

    def complain(self, text: str) -> None:
        """Show a line to the user, once in a session."""
        if text not in self.told:
            self.told.add(text)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"torchdet-lint: {text}"))

    async def fix_all(self, path: str, *, unsafe: bool) -> types.WorkspaceEdit | None:
        """The edit that makes every fix of the file `path`; `None` where there is none."""
        sheet = self.sheets.get(path)
        if sheet is None:
            return None
        texts = {other: one.data() for other, one in self.sheets.items()}
        try:
            new = await self.in_thread(self.analysis.fixed, path, texts, unsafe=unsafe)
        except Dropped:
            return None
        if new == texts[path]:
            return None
        return self.translator.replacement(sheet, _documents(new, sheet))


def _documents(data: bytes, sheet: Sheet) -> list[str]:
    """The texts of the documents of `sheet` in the file content `data`."""
    if not sheet.is_notebook:
        return [data.decode("utf-8", "surrogatepass")]
    cells: list[dict[str, Any]] = msgspec.json.decode(data)["cells"]
    return [cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"]) for cell in cells]


# ----------------------------------------------------------------------------------------------------------- features

_ACTIONS = types.CodeActionOptions(
    code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll], resolve_provider=True
)


def _initialize(ls: Server, params: types.InitializeParams) -> None:
    """Take the client's own options, which win over the configuration: `{"select": ["TDL2"]}`."""
    given = params.initialization_options
    options = given.get("settings", given) if isinstance(given, dict) else {}
    _take(ls, options)


def _take(server: Server, options: Any) -> None:
    try:
        server.analysis = Analysis(config.options_of(options, "the client's settings: "))
    except config.ConfigError as error:
        server.complain(str(error))


def _configuration_changed(server: Server, params: types.DidChangeConfigurationParams) -> None:
    given = params.settings if isinstance(params.settings, dict) else {}
    own = given.get("torchdet-lint", given.get("torchdetLint"))
    if isinstance(own, dict):
        _take(server, own)
    server.analysis.forget()
    server.schedule(everything=True)


def _files_changed(server: Server, params: types.DidChangeWatchedFilesParams) -> None:
    """Read what changed on disk; a file that is open counts as it stands in the editor."""
    paths = {os.path.abspath(to_fs_path(change.uri) or "") for change in params.changes} - server.sheets.keys()
    if any(path.endswith((".toml", ".txt")) for path in paths):
        server.analysis.forget()
    elif paths:
        server.analysis.forget_files()
    if paths:
        server.schedule(everything=True)


def _initialized(server: Server, params: types.InitializedParams) -> None:
    workspace = server.client_capabilities.workspace
    watched = workspace.did_change_watched_files if workspace is not None else None
    if watched is not None and watched.dynamic_registration:
        watchers = [types.FileSystemWatcher(pattern) for pattern in (*_CONFIGURATIONS, *_SOURCES)]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        registration = types.Registration("watch", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        server.client_register_capability(types.RegistrationParams([registration]))


def _saved(server: Server, params: types.DidSaveTextDocumentParams) -> None:
    server.schedule(everything=True)


def _on_event(answer: Any, ls: Server, params: Any) -> None:
    answer(ls, params)


_FEATURES: Mapping[str, Any] = {
    types.INITIALIZED: _initialized,
    types.TEXT_DOCUMENT_DID_OPEN: lambda server, params: server.open(params.text_document.uri),
    types.TEXT_DOCUMENT_DID_CHANGE: lambda server, params: server.open(params.text_document.uri),
    types.TEXT_DOCUMENT_DID_SAVE: _saved,
    types.TEXT_DOCUMENT_DID_CLOSE: lambda server, params: server.close(params.text_document.uri),
    types.NOTEBOOK_DOCUMENT_DID_OPEN: lambda server, params: server.open(params.notebook_document.uri),
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: lambda server, params: server.open(params.notebook_document.uri),
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: lambda server, params: server.close(params.notebook_document.uri),
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: _configuration_changed,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: _files_changed,
}


async def _code_actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    uri = params.text_document.uri
    path = ls.owner(uri)
    sheet = ls.sheets.get(path or "")
    if path is None or sheet is None:
        return []
    only = params.context.only
    found: list[types.CodeAction] = []
    if _asked(only, types.CodeActionKind.QuickFix.value):
        found += ls.translator.actions(sheet, uri, ls.findings.get(path, []), params.range)
    if _asked(only, FIX_ALL):
        safe = [one for one in ls.findings.get(path, []) if one.fix and one.fix.applicability == "safe"]
        action = types.CodeAction("torchdet-lint: Make all safe fixes", kind=FIX_ALL, data={"path": path})
        if safe and not _resolves(ls):
            action.edit = await ls.fix_all(path, unsafe=False)
        if safe and (action.edit or _resolves(ls)):
            found.append(action)
    return found


def _resolves(ls: Server) -> bool:
    """Whether the client asks for the edit of an action once the user has picked it, not whenever the cursor moves."""
    document = ls.client_capabilities.text_document
    support = document.code_action.resolve_support if document and document.code_action else None
    return support is not None and "edit" in support.properties


async def _resolve(ls: Server, action: types.CodeAction) -> types.CodeAction:
    """The action `action` with its edit."""
    path = action.data.get("path") if isinstance(action.data, dict) else None
    if action.edit is None and isinstance(path, str):
        action.edit = await ls.fix_all(path, unsafe=False)
    return action


def _asked(only: Any, kind: str) -> bool:
    """Whether the client asks for actions of `kind`: for all, for it, or for a kind above it."""
    return not only or any(kind == asked or kind.startswith(f"{asked}.") for asked in map(_plain, only))


def _plain(kind: Any) -> str:
    return str(getattr(kind, "value", kind))


def _hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    uri = params.text_document.uri
    path = ls.owner(uri)
    sheet = ls.sheets.get(path or "")
    if path is None or sheet is None:
        return None
    return ls.translator.hover(sheet, uri, ls.findings.get(path, []), params.position)


async def _fix_all_unsafe(ls: Server, uri: str) -> None:
    """The command `torchdet-lint.fixAllUnsafe`: every fix of the document `uri`, unsafe ones too."""
    path = ls.owner(uri)
    edit = await ls.fix_all(path, unsafe=True) if path is not None else None
    if edit is not None:
        await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, "torchdet-lint: Make all fixes"))


def serve() -> None:
    """Speak with a client over standard input and output until it leaves."""
    # `Analysis.tidy` collects when nobody waits.
    gc.disable()
    Server().start_io()
