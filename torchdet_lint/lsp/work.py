"""One piece of work of the linting thread -> its progress in the client, and its end where nobody wants it any more."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

TITLE = "torchdet-lint: reading the project"


class Dropped(BaseException):
    """Nobody wants the work any more. No `Exception`, so that no rule is taken for broken."""


class Work:
    """How far the thread has come, and whether to go on.

    `go_on` and `progress` are called by the thread, `drop` and `show` by the event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._dropped = threading.Event()
        self._share = (0, 0)
        self._news = asyncio.Event()
        self._ended = asyncio.Event()

    def drop(self) -> None:
        """Let the thread stop at the next file or rule."""
        self._dropped.set()

    def go_on(self) -> None:
        """Raise `Dropped` where the work was dropped."""
        if self._dropped.is_set():
            raise Dropped

    def progress(self, done: int, total: int) -> None:
        """`done` of `total` files of the project have been read."""
        self._share = (done, total)
        self._loop.call_soon_threadsafe(self._news.set)

    def end(self) -> None:
        """The thread is done."""
        self._ended.set()
        self._news.set()

    async def show(self, server: LanguageServer) -> None:
        """Show the client how far the thread is, from the first file of the project on that has to be read."""
        await self._news.wait()
        window = server.client_capabilities.window
        if self._ended.is_set() or window is None or not window.work_done_progress:
            return
        token = str(uuid.uuid4())
        await server.work_done_progress.create_async(token)
        server.work_done_progress.begin(token, types.WorkDoneProgressBegin(TITLE, cancellable=True, percentage=0))
        server.work_done_progress.tokens[token].add_done_callback(lambda _: self.drop())
        told = 0
        while not self._ended.is_set():
            done, total = self._share
            percentage = 100 * done // total
            if percentage > told:
                told = percentage
                report = types.WorkDoneProgressReport(message=f"{done} of {total} files", percentage=percentage)
                server.work_done_progress.report(token, report)
            self._news.clear()
            await self._news.wait()
        end = types.WorkDoneProgressEnd(message="dropped") if self._dropped.is_set() else types.WorkDoneProgressEnd()
        server.work_done_progress.end(token, end)
