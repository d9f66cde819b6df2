"""Where the runs of a verification are forks: see `forking.py`."""

from __future__ import annotations

import contextlib
import sys

import pytest


@pytest.fixture(scope="session")
def forker():
    if not sys.platform.startswith("linux"):
        yield None
        return
    from forking import Forker

    started = Forker()
    yield started
    started.end()


@pytest.fixture(scope="module")
def in_forks(forker):
    """In this context the runs of a verification are forks; elsewhere than on Linux they are as they always are."""

    from torchdet_lint.verifier.launch import launch

    @contextlib.contextmanager
    def context():
        with pytest.MonkeyPatch.context() as patch:
            if forker is not None:
                patch.setattr(launch, "_start", forker.start)
            yield

    return context


@pytest.fixture
def forks(in_forks):
    """Has the runs of a test be forks."""
    with in_forks():
        yield
