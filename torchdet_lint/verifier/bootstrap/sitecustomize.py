"""A new Python process -> one with the interventions applied; then the user's own sitecustomize runs."""

import os
import sys


def _start(own: str) -> None:
    root = own
    for _ in range(3):
        root = os.path.dirname(root)  # noqa: PTH120
    sys.path.insert(0, root)
    try:
        from torchdet_lint.verifier.launch.start import start_safely
    finally:
        sys.path.remove(root)
    start_safely()


def _hand_over(own: str) -> None:
    """Take this folder off the path of this process (its children inherit it all the same) and import the next one."""
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != own]
    sys.path_importer_cache.pop(own, None)
    this = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if this is not None:
            sys.modules.setdefault("sitecustomize", this)


_own = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120
_start(_own)
_hand_over(_own)
