"""Switches of torch -> set once torch is imported, and guarded against being turned back."""

from __future__ import annotations

import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any

from torchdet_lint.verifier.patching.patches import after_import

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from torchdet_lint.verifier.remedies.context import Context

CUBLAS_VALUES = (":4096:8", ":16:8")
ATTENTION_VARIABLES: Mapping[str, str] = {"FLASH_ATTENTION_DETERMINISTIC": "1", "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0"}
AUTOTUNE_VARIABLES: Mapping[str, str] = {
    "TORCHINDUCTOR_DETERMINISTIC": "1",
    "TORCHINDUCTOR_MAX_AUTOTUNE": "0",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM": "0",
    "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE": "0",
    "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "0",
}
_ONE_THREAD_METHODS = ("put_", "put", "index_copy_", "index_copy", "index_reduce_", "index_reduce")


def no_cudnn_benchmark(context: Context) -> None:
    """cuDNN chooses its algorithms without timing them, whatever the program sets."""
    _hold_cudnn(context, "benchmark", "TDL201", keep=False)


def deterministic_cudnn(context: Context) -> None:
    """Convolutions take cuDNN's deterministic algorithms, whatever the program sets."""
    _hold_cudnn(context, "deterministic", "TDL202", keep=True)


def _hold_cudnn(context: Context, flag: str, code: str, *, keep: bool) -> None:
    def install(torch: Any) -> None:
        name = f"_set_cudnn_{flag}"
        original = getattr(torch._C, name)
        before = getattr(torch._C, f"_get_cudnn_{flag}")()
        context.patches.on_undo(lambda: original(before))

        @functools.wraps(original)
        def guarded(value: bool) -> None:
            if bool(value) is not keep:
                context.reporter.report(code, f"torch.backends.cudnn.{flag} = {bool(value)} refused")
            original(keep)

        original(keep)
        context.patches.set(torch._C, name, guarded)
        # The property was made from the C function, which it holds.
        held = type(torch.backends.cudnn).__dict__.get(flag)
        if held is not None and hasattr(held, "setter"):
            context.patches.set(held, "setter", guarded)

    after_import(context.patches, "torch", install)


def deterministic_algorithms(context: Context) -> None:
    """Deterministic algorithms wherever torch has them, for good; an op that has none warns and runs."""
    code = min(context.codes & {"TDL203", "TDL204", "TDL208", "TDL402", "TDL403"}, default="TDL204")

    def install(torch: Any) -> None:
        original = torch._C._set_deterministic_algorithms
        use = torch.use_deterministic_algorithms
        enabled, warn_only = torch.are_deterministic_algorithms_enabled(), _warn_only(torch)
        context.patches.on_undo(lambda: original(enabled, warn_only=warn_only))

        @functools.wraps(original)
        def guarded(mode: bool, *, warn_only: bool = False) -> None:
            if not mode:
                context.reporter.report(code, "turning deterministic algorithms off refused")
            original(True, warn_only=warn_only if mode else _warn_only(torch))

        @functools.wraps(use)
        def guarded_use(mode: bool, *, warn_only: bool = False) -> None:
            if mode:
                use(True, warn_only=warn_only)
            else:
                guarded(False)

        original(True, warn_only=not enabled or warn_only)
        context.patches.set(torch._C, "_set_deterministic_algorithms", guarded)
        context.patches.set(torch, "use_deterministic_algorithms", guarded_use)

    after_import(context.patches, "torch", install)


def _warn_only(torch: Any) -> bool:
    return bool(torch.is_deterministic_algorithms_warn_only_enabled())


def fill_uninitialized(context: Context) -> None:
    """In deterministic mode fresh memory is filled, whatever the program sets."""

    def install(torch: Any) -> None:
        original = torch._C._set_deterministic_fill_uninitialized_memory
        before = torch._C._get_deterministic_fill_uninitialized_memory()
        context.patches.on_undo(lambda: original(before))

        @functools.wraps(original)
        def guarded(mode: bool) -> None:
            if not mode:
                context.reporter.report("TDL206", "fill_uninitialized_memory = False refused")
            original(True)

        original(True)
        context.patches.set(torch._C, "_set_deterministic_fill_uninitialized_memory", guarded)

    after_import(context.patches, "torch", install)


def cublas_workspace(context: Context) -> None:
    """`CUBLAS_WORKSPACE_CONFIG` stays what the environment gave it, if the program puts a varying value there."""
    if os.environ.get("CUBLAS_WORKSPACE_CONFIG") not in CUBLAS_VALUES:
        context.patches.set_variable("CUBLAS_WORKSPACE_CONFIG", CUBLAS_VALUES[0])

    def before_use(torch: Any) -> None:
        original = torch.cuda._lazy_init

        @functools.wraps(original)
        def lazy_init() -> None:
            value = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
            if value not in CUBLAS_VALUES:
                context.reporter.report("TDL205", f"CUBLAS_WORKSPACE_CONFIG={value} replaced by {CUBLAS_VALUES[0]}")
                os.environ["CUBLAS_WORKSPACE_CONFIG"] = CUBLAS_VALUES[0]
            original()

        context.patches.set(torch.cuda, "_lazy_init", lazy_init)

    after_import(context.patches, "torch", before_use)


def no_autotuning(context: Context) -> None:
    """No kernel is chosen by timing: `torch.compile` without max-autotune, `triton.autotune` with its first choice."""
    for name, value in AUTOTUNE_VARIABLES.items():
        context.patches.set_variable(name, value)

    def compile_plainly(torch: Any) -> None:
        original = torch.compile

        @functools.wraps(original)
        def compile_(model: Any = None, **kwargs: Any) -> Any:
            mode = kwargs.get("mode") or ""
            if "max-autotune" in mode:
                context.reporter.report("TDL207", f"torch.compile(mode={mode!r}) runs without autotuning")
                kwargs["mode"] = None
            tuned = {"max_autotune", "max_autotune_gemm", "max_autotune_pointwise", "coordinate_descent_tuning"}
            if any((kwargs.get("options") or {}).get(key) for key in tuned):
                context.reporter.report("TDL207", "torch.compile(options=…) runs without autotuning")
                kwargs["options"] = {key: value for key, value in kwargs["options"].items() if key not in tuned}
            return original(model, **kwargs)

        context.patches.set(torch, "compile", compile_)

    def first_config(module: Any) -> None:
        original = module.autotune

        @functools.wraps(original)
        def autotune(configs: Any, *args: Any, **kwargs: Any) -> Any:
            if len(configs) > 1:
                context.reporter.report("TDL207", f"triton.autotune: the first of {len(configs)} configurations taken")
            return original(list(configs)[:1], *args, **kwargs)

        context.patches.replace_everywhere(original, autotune)

    after_import(context.patches, "torch", compile_plainly)
    after_import(context.patches, "triton.runtime.autotuner", first_config)


def math_attention(context: Context) -> None:
    """Attention runs its plain kernel, whose backward repeats; flash-attn is asked for its deterministic one."""
    for name, value in ATTENTION_VARIABLES.items():
        context.patches.set_variable(name, value)

    def install(torch: Any) -> None:
        for name, keep in (("flash", False), ("mem_efficient", False), ("cudnn", False), ("math", True)):
            _hold_attention(context, torch, name, keep=keep)

    def flash(module: Any) -> None:
        for name in sorted(name for name in vars(module) if name.startswith("flash_attn_") and name.endswith("func")):
            original = getattr(module, name)
            context.patches.set(module, name, functools.partial(_deterministic_call, original))

    after_import(context.patches, "torch", install)
    after_import(context.patches, "flash_attn.flash_attn_interface", flash)


def _deterministic_call(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return original(*args, **{**kwargs, "deterministic": True})


def _hold_attention(context: Context, torch: Any, name: str, *, keep: bool) -> None:
    setter_name = f"_set_sdp_use_{name}"
    original = getattr(torch._C, setter_name, None)
    if original is None:
        return
    before = getattr(torch._C, f"_get_{name}_sdp_enabled")()
    context.patches.on_undo(lambda: original(before))

    @functools.wraps(original)
    def guarded(value: bool) -> None:
        if value and not keep:
            context.reporter.report("TDL405", f"turning {name} attention on refused")
        original(keep)

    original(keep)
    context.patches.set(torch._C, setter_name, guarded)


def one_thread_ops(context: Context) -> None:
    """On the CPU the ops that no switch makes deterministic (`put_` and its kin) run on one thread."""

    def install(torch: Any) -> None:
        for name in _ONE_THREAD_METHODS:
            for owner in (torch.Tensor, torch):
                if hasattr(owner, name):
                    context.patches.set(owner, name, _alone(torch, getattr(owner, name)))

    after_import(context.patches, "torch", install)


def _alone(torch: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        with one_thread(torch):
            return original(*args, **kwargs)

    return call


@contextlib.contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """torch's own parallelism switched off inside the block."""
    threads = torch.get_num_threads()
    if threads > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads > 1:
            torch.set_num_threads(threads)


def scoped_mode(ops: Iterable[str]) -> Any:
    """A dispatch mode that turns deterministic algorithms on around the aten ops named in `ops` only, fill off.

    `ops` are names without overload (`aten::index_put_`). It acts in the thread that enters it and in the backward
    passes started there. An op that no switch makes deterministic on the CPU runs on one thread.
    """
    import torch

    from torchdet_lint.verifier.ops.dispatch import OpMode, name_of

    names = frozenset(ops)
    lone = frozenset(f"aten::{name}" for name in _ONE_THREAD_METHODS)

    def scoped(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = name_of(function)
        if name in lone:
            with one_thread(torch):
                return function(*args, **kwargs)
        if name not in names:
            return function(*args, **kwargs)
        enabled, warn_only = torch.are_deterministic_algorithms_enabled(), _warn_only(torch)
        fill = torch._C._get_deterministic_fill_uninitialized_memory()
        torch._C._set_deterministic_fill_uninitialized_memory(False)
        torch._C._set_deterministic_algorithms(True, warn_only=True)
        try:
            return function(*args, **kwargs)
        finally:
            torch._C._set_deterministic_algorithms(enabled, warn_only=warn_only)
            torch._C._set_deterministic_fill_uninitialized_memory(fill)

    return OpMode(scoped)
