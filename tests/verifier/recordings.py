"""A body that is run under recording -> the trace of it, and what is in that."""

from __future__ import annotations

from torchdet_lint.verifier.recording.recorder import Recorder
from torchdet_lint.verifier.trace import Trace


def recorded(tmp_path, body, name="a"):
    path = tmp_path / f"{name}.tdtrace"
    with Recorder(path):
        body()
    return path


def records(path):
    opened = Trace(path)
    sites = opened.sites(opened.main)
    return [(sites[record.site], record) for record in opened.records(opened.main)]
