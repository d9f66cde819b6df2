"""The language server beside clients that check the protocol, with what Visual Studio Code and Neovim can do."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pytest_lsp")

import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled
from pytest_lsp import LanguageClient

from torchdet_lint.config import Options
from torchdet_lint.lsp.analysis import Analysis
from torchdet_lint.lsp.work import TITLE, Dropped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ROOT = pathlib.Path(__file__).parents[1]
SERVER = pytest_lsp.ClientServerConfig(
    server_command=[sys.executable, "-m", "torchdet_lint", "lsp"], server_env={**os.environ, "PYTHONPATH": str(ROOT)}
)
BENCHMARK = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
SWITCHES = "import torch\n" + "".join(
    f"def f{number}():\n    torch.backends.cudnn.benchmark = True\n" for number in range(300)
)
OWN_RULE = """
summary = "acme's scatter adds with atomics."
message = "`{name}` adds in the order in which threads arrive"
severity = "warning"
why = "Sums depend on their order."
instead = "Call `acme.sorted_scatter`."
[[calls]]
names = ["acme.scatter"]
"""

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning"),
]


@contextlib.asynccontextmanager
async def session(folder: Path, editor: str) -> AsyncIterator[LanguageClient]:
    """A client of a server of its own, with the capabilities of `editor`."""
    client: Any = await SERVER.start()
    folders = [types.WorkspaceFolder(folder.as_uri(), folder.name)]
    capabilities = pytest_lsp.client_capabilities(editor)
    await client.initialize_session(types.InitializeParams(capabilities, workspace_folders=folders))
    try:
        yield client
    finally:
        await client.shutdown_session()
        await client.stop()


async def until(condition: Any) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), 60)


def opened(client: LanguageClient, path: Path, text: str) -> str:
    item = types.TextDocumentItem(path.as_uri(), "python", 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    return item.uri


def changed(client: LanguageClient, uri: str, text: str) -> None:
    document = types.VersionedTextDocumentIdentifier(2, uri)
    whole = types.TextDocumentContentChangeWholeDocument(text)
    client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))


def codes(client: LanguageClient, uri: str) -> list[Any] | None:
    return [one.code for one in client.diagnostics[uri]] if uri in client.diagnostics else None


async def fix_all(client: LanguageClient, uri: str) -> types.CodeAction:
    here = types.Range(types.Position(0, 0), types.Position(0, 0))
    context = types.CodeActionContext([], only=[types.CodeActionKind.SourceFixAll])
    params = types.CodeActionParams(types.TextDocumentIdentifier(uri), here, context)
    (action,) = await client.text_document_code_action_async(params) or ()
    assert isinstance(action, types.CodeAction)
    return action


async def test_round_trip(tmp_path: Path) -> None:
    (tmp_path / "ACME001-scatter.toml").write_text(OWN_RULE)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.torchdet-lint]\nrule-files = ["ACME001-scatter.toml"]\nextend-select = ["ACME001"]\n'
    )
    text = f"{BENCHMARK}import acme\nacme.scatter(torch.ones(3))\n"
    async with session(tmp_path, "visual-studio-code") as client:
        uri = opened(client, tmp_path / "a.py", text)
        await until(lambda: codes(client, uri) == ["TDL201", "ACME001"])
        at = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(4, 2))
        hover = await client.text_document_hover_async(at)
        assert hover is not None and isinstance(hover.contents, types.MarkupContent)
        assert "acme's scatter adds" in hover.contents.value
        action = await fix_all(client, uri)
        assert action.edit is None
        resolved = await client.code_action_resolve_async(action)
        assert resolved.edit is not None and resolved.edit.document_changes
        (change,) = resolved.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert change.edits[0].new_text == text.replace("True", "False")
        changed(client, uri, text.replace("True", "False"))
        await until(lambda: codes(client, uri) == ["ACME001"])


async def test_a_newer_edit_drops_the_first_pass_over_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.torchdet-lint]\ncache-dir = ''\n")
    (tmp_path / "base.py").write_text("import torch\n")
    for number in range(3000):
        body = "".join(f"def f{one}(x, i):\n    x.index_add_(0, i, x * {one})\n" for one in range(10))
        (tmp_path / f"user{number}.py").write_text(f"import base\nimport torch\n{body}")
    async with session(tmp_path, "neovim") as client:
        reports = client.progress_reports
        uri = opened(client, tmp_path / "base.py", "import torch\n")
        await until(lambda: any(map(len, reports.values())))
        changed(client, uri, BENCHMARK)
        await until(lambda: uri in client.diagnostics)
        assert codes(client, uri) == ["TDL201"]
        await until(lambda: all(isinstance(told[-1], types.WorkDoneProgressEnd) for told in reports.values()))
        first, second = reports.values()
        assert isinstance(first[0], types.WorkDoneProgressBegin)
        assert (first[0].title, first[0].cancellable) == (TITLE, True)
        assert first[-1].message == "dropped"
        shares = [one.percentage for one in second if isinstance(one, types.WorkDoneProgressReport)]
        assert shares == sorted(shares)
        assert second[-1].message is None
        assert max([0, *(one.percentage or 0 for one in first[1:-1])]) < max(shares)


async def test_a_cancelled_request_ends_its_work(tmp_path: Path) -> None:
    async with session(tmp_path, "visual-studio-code") as client:
        uri = opened(client, tmp_path / "a.py", SWITCHES)
        await until(lambda: uri in client.diagnostics)
        action = await fix_all(client, uri)
        asked = client.protocol.send_request_async(types.CODE_ACTION_RESOLVE, action, msg_id="fixes")
        waiting = asyncio.ensure_future(asked)
        await asyncio.sleep(0)  # which sends it
        client.cancel_request(types.CancelParams("fixes"))
        with pytest.raises(JsonRpcRequestCancelled):
            await asyncio.wait_for(waiting, 60)
        changed(client, uri, BENCHMARK)
        await until(lambda: codes(client, uri) == ["TDL201"])


async def test_dropped_work_stops_in_the_middle_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Wherever it stops: the same findings and fixes afterwards as if it had never begun."""
    (tmp_path / "pyproject.toml").write_text("[tool.torchdet-lint]\ncache-dir = ''\n")
    (tmp_path / "train.py").write_text("import torch\nimport a\na.setup()\ntorch.rand(3)\n")
    path = str(tmp_path / "a.py")
    texts = {path: BENCHMARK.encode() + b"import random\ndef setup():\n    random.seed(0)\n"}

    class Count:
        def __init__(self, last: float) -> None:
            self.left = last

        def go_on(self) -> None:
            self.left -= 1
            if self.left < 0:
                raise Dropped

        def progress(self, done: int, total: int) -> None: ...

    whole = Analysis(Options())
    expected = (whole.findings(path, texts), whole.fixed(path, texts))
    assert [one.code for one in expected[0][0][path]] == ["TDL201", "TDL101"]
    analysis = Analysis(Options())
    stops = 0
    for number in itertools.count(0, 7):
        work: Any = Count(number)
        try:
            analysis.findings(path, texts, work)
            analysis.fixed(path, texts, work)
            break
        except Dropped:
            stops += 1
        assert (analysis.findings(path, texts), analysis.fixed(path, texts)) == expected
        analysis.forget_files()
        for linter in analysis._linters.values():
            linter.known.clear()
    assert stops > 5
