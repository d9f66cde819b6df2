"""What a file gives to options of a name, by its text."""

from __future__ import annotations

import pytest

from torchdet_lint.prefilter.option_values import given_in_code, given_in_data


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("cfg.num_workers = 0\n", ["0"]),
        ("cfg.LOADER.num_workers = 4  # each\n", ["4"]),
        ("class Options:\n    num_workers: int = 0\n", ["0"]),
        ("class Options:\n    num_workers: Optional[int] = None\n", ["None"]),
        ("cfg = CN(dict(num_workers=2, size=4))\n", ["2"]),
        ('cfg = {"num_workers": 0, "size": 4}\n', ["0"]),
        ('cfg["num_workers"] = 8\n', ["8"]),
        ('setattr(cfg, "num_workers", 4)\n', [""]),
        ('parser.add_argument("--num_workers", type=int, default=0)\n', [""]),
        ('parser.add_argument("--num-workers", type=int, default=0)\n', [""]),
        ('run(["train.py", "--num_workers=4"])\n', [""]),
        ("cfg.num_workers += 1\n", [""]),
        ("cfg.num_workers = 0 if debug else 4\n", ["0 if debug else 4"]),
        # What reads it, and what keeps nothing under the name.
        ("print(cfg.num_workers, cfg['num_workers'])\n", []),
        ("if cfg.num_workers == 0:\n    pass\n", []),
        ("other.num_workers = cfg.num_workers\n", []),
        ("loader = DataLoader(\n    rows(4), num_workers=4)\n", []),
        ("def loader(rows, num_workers=4):\n    pass\n", []),
        ("# num_workers = 4\n", []),
        ("cfg.num_workers_of_tests = 4\ncfg.my_num_workers = 3\n", []),
    ],
)
def test_what_code_gives_an_option(text: str, given: list[str]) -> None:
    assert list(given_in_code("num_workers", text)) == given


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("loader:\n  num_workers: 4  # each\n", ["4"]),
        ('{"num_workers": 0, "size": 3}', ["0"]),
        ("num_workers = 2\n", ["2"]),
        ("num_workers_of_tests: 2\n# num_workers: 4\n", []),
    ],
)
def test_what_data_give_an_option(text: str, given: list[str]) -> None:
    assert list(given_in_data("num_workers", text)) == given


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ('loader = {"num_workers": config["num_workers"], "size": 4}\n', []),
        ("loader = {'num_workers': self.config['num_workers']}\n", []),
        ('loader = {"num_workers": args.num_workers}\n', []),
        ('workers = config.get("num_workers", 0)\n', []),
        ('workers = config.get( "num_workers")\n', []),
        ('loader = {"num_workers": config["workers"]}\n', ['config["workers"']),
        ('config.setdefault("num_workers", 4)\n', [""]),
        ('config["num_workers"] = 4\n', ["4"]),
    ],
)
def test_what_only_reads_a_key_gives_nothing(text: str, given: list[str]) -> None:
    assert list(given_in_code("num_workers", text)) == given
