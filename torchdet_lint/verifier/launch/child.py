"""JSON, the only argument -> the program, run and recorded as it says. Never imported: `launch.py` starts it.

It becomes the user's program: the arguments, `sys.path[0]`, `__main__` and exit status are those that `python` gives.
Nothing that the program might import or configure is imported before it: the recorder starts when torch is imported.
"""

import sys

del sys.path[0]

import importlib.util  # noqa: E402
import json  # noqa: E402
import types  # noqa: E402
from pathlib import Path  # noqa: E402


def main() -> None:
    """Run the program; what it raises comes out, with this file's frames taken off the traceback."""
    control = json.loads(sys.argv[1])
    kind, target = control["kind"], control["target"]
    sys.argv[:] = [target, *control["arguments"]]
    if kind == "module":
        sys.path.insert(0, str(Path.cwd()))
        roots = [sys.path[0], *_package_folder(target)]
    else:
        whole = Path(target).is_dir() or target.endswith((".zip", ".pyz"))
        folder = str(Path(target).absolute() if whole else Path(target).resolve().parent)
        kind = "folder" if whole else kind
        sys.path.insert(0, folder)
        roots = [folder, str(Path.cwd())]
    if control["trace"]:
        _find_own_package()
        from torchdet_lint.verifier.recording import onset

        order = {**control, "roots": [*roots, *control["roots"]]}
        onset.begin(order)
        onset.begin_below(order)
    try:
        {"module": _module, "notebook": _notebook, "script": _script, "folder": _folder}[kind](target)
    except BaseException as error:
        _show_without_this_file(error)
        raise


def _new_main(**more: object) -> types.ModuleType:
    module = types.ModuleType("__main__")
    annotations: dict[str, object] = {"__annotations__": {}} if sys.version_info < (3, 14) else {}
    module.__dict__.update(__builtins__=__builtins__, **annotations, **more)
    sys.modules["__main__"] = module
    return module


def _script(target: str) -> None:
    path = str(Path(target).absolute())
    source = Path(path).read_bytes()
    module = _new_main(__file__=path, __cached__=None)
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)


def _folder(_: str) -> None:
    import runpy

    _new_main()
    runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]


def _module(name: str) -> None:
    import runpy

    _new_main()
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]


def _notebook(target: str) -> None:
    """The code cells, one after the other, in one module; what is IPython's own is left out, and `await` may stand
    outside of functions.
    """
    import ast
    import linecache

    cells = json.loads(Path(target).read_text(encoding="utf-8"))["cells"]
    module = _new_main()
    module.__dict__["display"] = print
    for number, cell in enumerate(cells, 1):
        if cell.get("cell_type") != "code":
            continue
        source = _python_of("".join(cell["source"]))
        name = f"{target}#cell-{number}"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        code = compile(source, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        waits = eval(code, module.__dict__)
        if waits is not None:
            import asyncio

            asyncio.run(waits)


def _python_of(source: str) -> str:
    import re

    of_ipython = re.compile(r"\s*(?:[%!?]|[A-Za-z_][\w.,\s\[\]]*=\s*(?:%[A-Za-z]|!(?!=))|[A-Za-z_][\w.]*\?{1,2}\s*$)")
    first, *rest = source.lstrip().split("\n")
    if first.startswith("%%"):
        if not re.match(r"%%(?:capture|prun|pypy|python3?|time|timeit)\b", first):
            return ""
        source = "\n".join(["pass", *rest])
    lines = []
    for line in source.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(f"{indent}pass" if of_ipython.match(line) else line)
    return "\n".join(lines) + "\n"


def _package_folder(name: str) -> list[str]:
    """The folder of the top-level package of a module that is run, where that is no part of the working folder."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        return []
    folders = [Path(folder).resolve() for folder in (spec.submodule_search_locations if spec is not None else ()) or ()]
    here = Path.cwd().resolve()
    return [str(f) for f in folders if {"site-packages", "dist-packages"} & {*f.parts} or not f.is_relative_to(here)]


def _find_own_package() -> None:
    """Make `torchdet_lint` importable without a change of `sys.path` that the program could see."""
    if "torchdet_lint" in sys.modules:
        return
    folder = Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location(
        "torchdet_lint", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["torchdet_lint"] = module
        spec.loader.exec_module(module)


def _show_without_this_file(error: BaseException) -> None:
    shown = sys.excepthook

    def hook(kind, value, traceback):  # type: ignore[no-untyped-def]
        while traceback is not None and (
            traceback.tb_frame.f_code.co_filename == __file__ or "runpy" in traceback.tb_frame.f_code.co_filename
        ):
            traceback = traceback.tb_next
        shown(kind, value.with_traceback(traceback), traceback)

    sys.excepthook = hook


if __name__ == "__main__":
    main()
