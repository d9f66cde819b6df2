"""The language server, spoken to by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import os
import pathlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

if TYPE_CHECKING:
    from pathlib import Path

BENCHMARK = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"


class Client(LanguageClient):
    """A client that keeps what it is told."""

    def __init__(self) -> None:
        super().__init__("tests", "1")
        self.diagnostics: dict[str, list[types.Diagnostic]] = {}
        self.versions: dict[str, int | None] = {}
        self.messages: list[str] = []
        self.news = asyncio.Event()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri] = list(params.diagnostics)
            self.versions[params.uri] = params.version
            self.news.set()

        @self.feature(types.WINDOW_SHOW_MESSAGE)
        def shown(params: types.ShowMessageParams) -> None:
            self.messages.append(params.message)
            self.news.set()

    async def until(self, condition: Any) -> None:
        """Wait until `condition` holds."""

        async def wait() -> None:
            while not condition():
                await self.news.wait()
                self.news.clear()

        await asyncio.wait_for(wait(), 60)

    def open(self, path: Path, text: str, version: int = 1) -> str:
        """Open a buffer; its URI."""
        uri = path.as_uri()
        self.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", version, text))
        )
        return uri

    def change(self, uri: str, text: str, version: int) -> None:
        """Replace the text of a buffer."""
        self.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(uri=uri, version=version),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def codes(self, uri: str) -> list[Any]:
        """The codes that are shown in a document."""
        return [one.code for one in self.diagnostics.get(uri, [])]


def session(folder: Path, conversation: Any, options: Any = None) -> None:
    """Run `conversation(client)` with a server of its own whose workspace is `folder`."""

    async def run() -> None:
        client = Client()
        await client.start_io(sys.executable, "-m", "torchdet_lint", "lsp")
        await client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(), root_uri=folder.as_uri(), initialization_options=options
            )
        )
        client.initialized(types.InitializedParams())
        try:
            await conversation(client)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await asyncio.wait_for(client.stop(), 30)

    asyncio.run(run())


async def actions(client: Client, uri: str, row: int, only: Any = None) -> list[types.CodeAction]:
    place = types.Range(types.Position(row, 0), types.Position(row, 200))
    context = types.CodeActionContext([], only=only)
    found = await client.text_document_code_action_async(
        types.CodeActionParams(types.TextDocumentIdentifier(uri), place, context)
    )
    return [one for one in found or [] if isinstance(one, types.CodeAction)]


def edited(text: str, action: types.CodeAction) -> str:
    """The text after the edits of a code action (ASCII only)."""
    lines = text.splitlines(keepends=True)

    def offset(at: types.Position) -> int:
        return sum(map(len, lines[: at.line])) + at.character

    assert action.edit is not None and action.edit.document_changes
    (change,) = action.edit.document_changes
    assert isinstance(change, types.TextDocumentEdit)
    for one in sorted(change.edits, key=lambda one: offset(one.range.start), reverse=True):
        text = text[: offset(one.range.start)] + one.new_text + text[offset(one.range.end) :]
    return text


def test_diagnostics_follow_the_buffer(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", BENCHMARK)
        await client.until(lambda: client.codes(uri) == ["TDL201"])
        (shown,) = client.diagnostics[uri]
        assert (shown.range.start.line, shown.range.start.character, shown.source) == (2, 0, "torchdet-lint")
        assert shown.severity == types.DiagnosticSeverity.Error
        assert shown.code_description is not None and "TDL201" in shown.code_description.href
        client.change(uri, "import torch\n", 2)
        await client.until(lambda: client.versions.get(uri) == 2)
        assert client.codes(uri) == []

    session(tmp_path, conversation)


def test_columns_are_those_of_the_client(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", 'import torch\nx = "𝄞"; torch.backends.cudnn.benchmark = True\n')
        await client.until(lambda: client.codes(uri) == ["TDL201"])
        assert client.diagnostics[uri][0].range.start.character == 10  # UTF-16: the clef counts twice

    session(tmp_path, conversation)


def test_quick_fixes_and_suppression(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", BENCHMARK)
        await client.until(lambda: client.codes(uri) == ["TDL201"])
        fix, suppress = await actions(client, uri, 2, [types.CodeActionKind.QuickFix])
        assert fix.is_preferred
        assert edited(BENCHMARK, fix) == BENCHMARK.replace("True", "False")
        assert edited(BENCHMARK, suppress) == BENCHMARK.replace("True", "True  # noqa: TDL201")
        (everything,) = await actions(client, uri, 0, ["source.fixAll"])
        assert edited(BENCHMARK, everything) == BENCHMARK.replace("True", "False")

    session(tmp_path, conversation)


def test_a_second_code_joins_a_suppression(tmp_path: Path) -> None:
    text = BENCHMARK.replace("True", "True  # noqa: E501")

    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", text)
        await client.until(lambda: client.codes(uri) == ["TDL201"])
        suppress = (await actions(client, uri, 2))[1]
        assert edited(text, suppress) == text.replace("E501", "E501, TDL201")

    session(tmp_path, conversation)


def test_unsafe_fixes_are_marked(tmp_path: Path) -> None:
    text = "import torch\ntorch.use_deterministic_algorithms(False)\n"

    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", text)
        await client.until(lambda: client.codes(uri) == ["TDL204"])
        fix = (await actions(client, uri, 1))[0]
        assert fix.title.endswith("(unsafe)")
        assert not fix.is_preferred
        assert await actions(client, uri, 1, ["source.fixAll"]) == []

    session(tmp_path, conversation)


def test_hover_is_the_rule(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", BENCHMARK)
        await client.until(lambda: client.codes(uri) == ["TDL201"])
        where = types.TextDocumentIdentifier(uri)
        hover = await client.text_document_hover_async(types.HoverParams(where, types.Position(2, 5)))
        assert hover is not None and isinstance(hover.contents, types.MarkupContent)
        assert "cudnn-benchmark" in hover.contents.value and "**Instead:**" in hover.contents.value
        assert await client.text_document_hover_async(types.HoverParams(where, types.Position(0, 0))) is None

    session(tmp_path, conversation)


def test_unsaved_buffers_count_across_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "helper.py").write_text("import torch\ndef setup():\n    torch.manual_seed(0)\n")
    program = 'import torch\nfrom helper import setup\nif __name__ == "__main__":\n    setup()\n    torch.rand(3)\n'
    (tmp_path / "train.py").write_text(program)

    async def conversation(client: Client) -> None:
        train = client.open(tmp_path / "train.py", program)
        await client.until(lambda: train in client.diagnostics)
        assert client.codes(train) == []
        helper = client.open(tmp_path / "helper.py", "import torch\ndef setup():\n    pass\n")
        await client.until(lambda: client.codes(train) == ["TDL101"])
        (shown,) = client.diagnostics[train]
        assert shown.related_information and shown.related_information[0].location.uri == train
        client.change(helper, "import torch\ndef setup():\n    torch.manual_seed(1)\n", 2)
        await client.until(lambda: client.codes(train) == [])

    session(tmp_path, conversation)


def test_a_buffer_alone_has_the_findings_that_it_has_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    helper = "import random\nimport torch\ndef setup():\n    random.seed(0)\n    torch.manual_seed(0)\n"
    program = 'import torch\nfrom helper import setup\nif __name__ == "__main__":\n    setup()\n    torch.rand(3)\n'
    (tmp_path / "helper.py").write_text(helper)
    (tmp_path / "train.py").write_text(program)
    (tmp_path / "net.py").write_text("import torch\nlayer = torch.nn.Upsample(scale_factor=2, mode='bilinear')\n")
    mode = program.replace("    setup()", "    setup()\n    torch.use_deterministic_algorithms(True)\n    import net")
    (tmp_path / "deterministic.py").write_text(mode)

    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "helper.py", helper)
        await client.until(lambda: uri in client.diagnostics)
        assert client.codes(uri) == []
        client.change(uri, helper.replace("    torch.manual_seed(0)\n", ""), 2)
        await client.until(lambda: client.codes(uri) == ["TDL101"])
        (shown,) = client.diagnostics[uri]
        assert shown.range.start.line == 2
        assert " train.py:" in shown.message or " deterministic.py:" in shown.message
        assert shown.related_information
        assert shown.related_information[0].location.uri in {
            (tmp_path / name).as_uri() for name in ("train.py", "deterministic.py")
        }
        net = client.open(tmp_path / "net.py", (tmp_path / "net.py").read_text())
        await client.until(lambda: net in client.diagnostics)
        assert client.codes(net) == []

    session(tmp_path, conversation)


def test_notebook_cells(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        path = tmp_path / "a.ipynb"
        texts = ["import torch\n", "# notes", "torch.backends.cudnn.benchmark = True"]
        kinds = [types.NotebookCellKind.Code, types.NotebookCellKind.Markup, types.NotebookCellKind.Code]
        uris = [f"vscode-notebook-cell:{path}#{number}" for number in range(3)]
        cells = [types.NotebookCell(kind, uri) for kind, uri in zip(kinds, uris, strict=True)]
        client.notebook_document_did_open(
            types.DidOpenNotebookDocumentParams(
                types.NotebookDocument(path.as_uri(), "jupyter-notebook", 1, cells),
                [types.TextDocumentItem(uri, "python", 1, text) for uri, text in zip(uris, texts, strict=True)],
            )
        )
        await client.until(lambda: client.codes(uris[2]) == ["TDL201"])
        assert client.codes(uris[0]) == []
        fix = (await actions(client, uris[2], 0))[0]
        assert edited(texts[2], fix) == "torch.backends.cudnn.benchmark = False"
        (everything,) = await actions(client, uris[2], 0, ["source.fixAll"])
        assert edited(texts[2], everything) == "torch.backends.cudnn.benchmark = False"

    session(tmp_path, conversation)


def test_configuration(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.torchdet-lint]\nignore = ["TDL201"]\n')

    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", BENCHMARK)
        await client.until(lambda: uri in client.diagnostics)
        assert client.codes(uri) == []
        (tmp_path / "pyproject.toml").write_text("[tool.torchdet-lint]\n")
        changed = types.FileEvent((tmp_path / "pyproject.toml").as_uri(), types.FileChangeType.Changed)
        client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([changed]))
        await client.until(lambda: client.codes(uri) == ["TDL201"])
        (tmp_path / "pyproject.toml").write_text("[tool.torchdet-lint]\nselekt = []\n")
        client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([changed]))
        await client.until(lambda: client.messages)
        assert "selekt" in client.messages[0]

    session(tmp_path, conversation)


def test_options_of_the_client(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", BENCHMARK)
        await client.until(lambda: uri in client.diagnostics)
        assert client.codes(uri) == []

    session(tmp_path, conversation, {"settings": {"select": ["TDL3"]}})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"select": "TDL3"}, "select: expected a list, got text"),
        ({"settings": {"selct": []}}, "unknown key 'selct'; did you mean 'select'?"),
        ({"settings": []}, "must be a table"),
    ],
)
def test_wrong_options_of_the_client_are_told_as_those_of_a_file(tmp_path: Path, options: Any, said: str) -> None:
    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", BENCHMARK)
        await client.until(lambda: uri in client.diagnostics)
        assert client.codes(uri) == ["TDL201"]
        assert client.messages[0].startswith("torchdet-lint: the client's settings")
        assert client.messages[0].endswith(said)

    session(tmp_path, conversation, options)


def test_excluded_files_are_silent(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.torchdet-lint]\nextend-exclude = ["old"]\n')
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.py").write_text(BENCHMARK)

    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "old" / "a.py", BENCHMARK)
        await client.until(lambda: uri in client.diagnostics)
        assert client.codes(uri) == []

    session(tmp_path, conversation)


def test_a_file_that_does_not_parse_is_a_finding(tmp_path: Path) -> None:
    async def conversation(client: Client) -> None:
        uri = client.open(tmp_path / "a.py", "def f(:\n")
        await client.until(lambda: client.codes(uri) == ["TDL001"])

    session(tmp_path, conversation)


NEOVIM = """
vim.cmd('edit a.py')
local id = vim.lsp.start_client({ cmd = { PYTHON, '-m', 'torchdet_lint', 'lsp' }, root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(0, id)
vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 50)
for _, one in ipairs(vim.diagnostic.get(0)) do print('shown', one.lnum, one.code) end
local place = vim.lsp.util.make_given_range_params({3, 0}, {3, 10})
place.context = { diagnostics = {} }
for _, reply in pairs(vim.lsp.buf_request_sync(0, 'textDocument/codeAction', place, 60000)) do
  print('action', reply.result[1].title)
  vim.lsp.util.apply_workspace_edit(reply.result[1].edit, 'utf-16')
end
vim.wait(60000, function() return #vim.diagnostic.get(0) == 0 end, 50)
print('left', #vim.diagnostic.get(0))
vim.cmd('wqall!')
"""


@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed")
def test_neovim_shows_a_finding_and_applies_its_fix(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "a.py").write_text(BENCHMARK)
    (tmp_path / "session.lua").write_text(f"local PYTHON = '{sys.executable}'\n{NEOVIM}")
    command = ["nvim", "--headless", "--clean", "-c", "luafile session.lua"]
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[1])}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=True
    )
    said = done.stderr.split("\n")
    assert [line.strip() for line in said if line.startswith("shown")] == ["shown 2 TDL201"]
    assert "left 0" in done.stderr
    assert (tmp_path / "a.py").read_text() == BENCHMARK.replace("True", "False")
