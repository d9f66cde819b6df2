"""Main guards are known by the text of a file and by its tree, and both say the same."""

from __future__ import annotations

import ast

import pytest

from torchdet_lint.config import Settings
from torchdet_lint.engine import run
from torchdet_lint.prefilter.main_guard import has_main_guard, is_main_guard

GUARDS = [
    'if __name__ == "__main__":\n    main()\n',
    "if '__main__' == __name__: main()\n",
    'if (__name__ == "__main__"):\n    main()\n',
    'if __name__ == "__main__" and args.train:\n    main()\n',
    'if ready and __name__ == "__main__":\n    main()\n',
    'if __name__ in {"__main__", "__mp_main__"}:\n    main()\n',
]
OTHERS = [
    'if __name__ != "__main__":\n    raise ImportError\n',
    'if not __name__ == "__main__":\n    raise ImportError\n',
    'if __name__ == "__main2__":\n    main()\n',
    "if __name__ in sys.modules:\n    main()\n",
    'if ready:  # or __name__ == "__main__"\n    main()\n',
    'main = "__main__"\n',
]


@pytest.mark.parametrize(("text", "expected"), [(text, text in GUARDS) for text in GUARDS + OTHERS])
def test_text_and_tree_say_whether_a_file_has_a_main_guard(text: str, expected: bool) -> None:
    assert has_main_guard(f"import sys\n\n{text}") is expected
    assert is_main_guard(ast.parse(text).body[0]) is expected


def test_a_long_line_takes_no_long_time() -> None:
    assert not has_main_guard("if x and " * 20_000 + "__name__ in (" * 20_000 + "\n'__main__'\n")


@pytest.mark.parametrize(
    ("define", "call", "runs"),
    [
        ("def main(args, more=1)", "main()", False),
        ("def main(*, args)", "main()", False),
        ("def main(args=None, *, more=1)", "main()", True),
        ("def main(*args)", "main()", True),
        ("def main(args)", "main(1)", True),
        ("def main(args)", "main(*[1])", True),
        ("@command\ndef main(args)", "main()", True),
        ("def main(args)", "main = print\n    main()\n    torch.randn(2)", True),
    ],
)
def test_a_guard_that_cannot_get_further_runs_nothing(tmp_path, define, call, runs):
    (tmp_path / "train.py").write_text(
        "import torch\nfrom commands import command\n\n"
        f'{define}:\n    print(torch.randn(2))\n\nif __name__ == "__main__":\n    {call}\n'
    )
    found = run.run([str(tmp_path)], Settings(root=str(tmp_path), jobs=1, cache_dir="")).findings
    assert ("TDL101" in {one.code for one in found}) is runs
