"""`run --strict`: a draw from a global generator that the program has not seeded -> an exception with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from torchdet_lint.verifier.patching.frames import is_users, user_line
from torchdet_lint.verifier.patching.patches import after_import
from torchdet_lint.verifier.recording import draws

if TYPE_CHECKING:
    from torchdet_lint.verifier.patching.patches import Patches

SEEDS = ("TDL101", "TDL102", "TDL103", "TDL106", "TDL107", "TDL108")
"""Rules whose fixes seed for the program: under `--strict` it is to seed by itself."""


class UnseededDrawError(RuntimeError):
    """A draw that no seed of the program's stands behind."""


def install(patches: Patches) -> None:
    """Make unseeded draws of this process's code raise: `random` and NumPy in every thread, torch in the main one."""
    draws.watch(patches, _refuse)
    after_import(patches, "torch", lambda torch: _watch_torch(patches, torch))


def _refuse(code: str, message: str, file: str, line: int) -> None:
    # What the standard library draws for itself (a back-off, a file name) is no result.
    if is_users(file):
        _raise(code, message, file, line)


def _raise(code: str, message: str, file: str, line: int) -> NoReturn:
    raise UnseededDrawError(f"{file}:{line}: {code} {message}")


def _watch_torch(patches: Patches, torch: Any) -> None:
    from torchdet_lint.verifier.ops.dispatch import OpMode

    first = torch.initial_seed()
    own = torch.Tag.nondeterministic_seeded

    def handle(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if torch.default_generator.initial_seed() == first and own in getattr(function, "tags", ()):
            generators = [kwargs.get("generator"), *(value for value in args if isinstance(value, torch.Generator))]
            if all(generator is None or generator is torch.default_generator for generator in generators):
                file, line = user_line()
                _raise("TDL101", f"{function} draws, and nothing has seeded torch", file, line)
        return function(*args, **kwargs)

    mode = OpMode(handle)
    mode.__enter__()
    patches.on_undo(lambda: mode.__exit__(None, None, None))
