"""The order in which work completes, turned round."""

from __future__ import annotations

import multiprocessing.pool

import pytest

from torchdet_lint.verifier.patching.events import Reporter
from torchdet_lint.verifier.remedies import stress


@pytest.fixture
def other_side():
    context = stress.install("B", ("TDL501",), Reporter(quiet=True))
    yield
    context.patches.undo()


@pytest.mark.usefixtures("other_side")
@pytest.mark.parametrize("chunks", [1, 10])
def test_results_of_a_pool_come_the_other_way_round_and_all_of_them(chunks):
    with multiprocessing.pool.ThreadPool(1) as pool:
        results = list(pool.imap_unordered(str, range(100), chunksize=chunks))
    assert sorted(results, key=int) == [str(n) for n in range(100)]
    assert results != [str(n) for n in range(100)]


@pytest.mark.usefixtures("other_side")
def test_what_a_task_raises_in_a_pool_of_chunks_is_raised():
    with multiprocessing.pool.ThreadPool(1) as pool, pytest.raises(ZeroDivisionError):
        list(pool.imap_unordered(lambda n: 1 // n, [1, 0, 2], chunksize=2))
