"""The words that configurations, requirements, rule files and YAML are made of."""

from __future__ import annotations

KEYS = """
    select ignore extend-select per-file-ignores exclude extend-exclude respect-gitignore output-format fix
    seed measured unsafe-fixes torch-version devices entry-points seed-functions
    rule-files deterministic-algorithms baseline cache-dir jobs min-severity fail-on force-exclude selct lint
""".split()
VALUES = [
    "true",
    "false",
    "0",
    "1",
    "-1",
    "4294967296",
    "1e9",
    "nan",
    "inf",
    "[]",
    "{}",
    "''",
    "'x'",
    "['x']",
    "['']",
    "[1]",
    "['TDL']",
    "['TDL3', 'TDL201']",
    "['ALL']",
    "'TDL'",
    "'2.4'",
    "'1.7'",
    "'99.9'",
    "'2'",
    "'2.x'",
    "['cuda']",
    "['tpu']",
    "{'*.py' = ['TDL3']}",
    "{'[' = ['TDL']}",
    "{'' = ['TDL1']}",
    "['*.py']",
    "['[']",
    "['**/x']",
    "['!']",
    "'error'",
    "'note'",
    "'json'",
    "'html'",
    "'../x'",
    "'/x'",
    "'.'",
    "['train:main']",
    "['train.py']",
    "['**/*.toml']",
    "['../*.toml']",
    "['\\u0000']",
    "1979-05-27",
    "'''\nx\n'''",
    "'" + "9" * 5000 + "'",
    "9" * 5000,
    "[[[[[[]]]]]]",
    "'\\ud7ff'",
    "['TDL2', 'TDL2']",
]
REQUIREMENTS = [
    "torch",
    "torch==2.4",
    "torch>=1.7,<2",
    "torch ~= 2.1",
    "torch[x] >= 2 ; python_version < '3'",
    "-r other.txt",
    "torch @ x",
    "install_requires=['torch>=1.13']",
    "install_requires =\n    torch<2.1",
    "dependencies = ['torch<=2.3']",
    "  - pytorch=1.12",
    "pytorch::pytorch>=2.0",
    "torch>2." + "9" * 40,
    "torch!=2.0",
    "torch>=",
    "torch===2.0+cu118",
    "#torch<2",
    "torchvision<1",
]
RULE = """
summary = "Adds with atomics."
message = "`{name}` adds in whatever order the threads come"
why = "Floating-point sums depend on their order."
instead = "Call acme.sorted_scatter."
severity = "warning"

[[calls]]
names = ["acme.fast_scatter", "torch.rand"]

[[settings]]
name = "torch.backends.cudnn.benchmark"
values = [true]

[[bad]]
code = "import acme"
"""
YAML = [
    "trainer:",
    "  deterministic: true",
    "  _target_: lightning.Trainer",
    "seed_everything: 42",
    "defaults: [base, _self_]",
    "a: &a {b: 1}",
    "b: *a",
    "<<: *a",
    "c: {<<: [*a, *a]}",
    "d: [*a, *a]",
    "x: ${a.b}",
    "? x : y",
    "- 1",
    "--- # x",
    "...",
    "!!python/object:x",
    "k: !!binary aGVsbG8=",
    "k: 1e400",
    "k: 0o17",
    "k: 2001-01-01",
    "k: |\n  text",
    "k: >-\n  text",
    "'k': \"v\\x41\"",
    "[1, 2",
    "{a: b",
    "# @package _global_",
    "%YAML 1.1",
    "<<: {a: 1}",
    "k: {? [a, b] : c}",
    "\tk: v",
    "k: 0b" + "1" * 50,
    "k: 1:30:00",
    "k: .nan",
    '{"a": [1, -1, null, true, 1.5, "x"]}',
    "null",
    "[]",
    "{}",
    '"\\ud800"',
    "[" * 40,
    "18446744073709551616",
]
