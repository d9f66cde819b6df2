"""What text alone says of memory that is allocated without a value, held against what the rule says after a parse."""

from __future__ import annotations

import pytest
import rulebook

from torchdet_lint.catalogue import loading
from torchdet_lint.checks import CHECKS
from torchdet_lint.module.module import Module
from torchdet_lint.prefilter.allocations import Allocations
from torchdet_lint.prefilter.library import Library
from torchdet_lint.prefilter.triggers import places
from torchdet_lint.source.decoding import Source

LIBRARY = Library(loading.load())
FILE = """\
from .inits import glorot
import torch.nn.functional as F

class Net:
    def reset_parameters(self):
        glorot(self.weight)
        self.bias.data.fill_(0)
        nn.init.zeros_(self.scale)
        F.relu(self.read)
        getattr(self, "shift")
"""


def idle(line: str) -> bool:
    bound = {"glorot": {".inits.glorot"}, "F": {"torch.nn.functional"}}
    (word,) = (word for word in LIBRARY.facts.memory.allocators if list(places(word, line)))
    return Allocations(FILE, bound, LIBRARY.facts.memory, LIBRARY.fills).idle(word, line, next(places(word, line)))


@pytest.mark.parametrize(
    "line",
    [
        "x = torch.empty(0)",
        "x = torch.empty((2, 0), dtype=torch.long)",
        "x = y.new_empty(y.size(0), 0, 3)",
        "x = torch.empty(3, 4).normal_(0, 1)",
        "x = torch.empty_like(y).zero_() + 1",
        "    return torch.empty(3)  # the caller writes it",
        "    return x.new_empty(3, device=x.device)\n    y = 1",
        "    self.weight = nn.Parameter(torch.empty(3, 4))",
        "    self.weight = nn.Parameter(\n        torch.empty(3, 4), requires_grad=False)",
        "    self.bias: Tensor = torch.empty(3)",
        "    self.register_buffer('scale', torch.empty(3), persistent=False)",
        "    self.shift = torch.empty(3)",
        "    self.bias = nn.Parameter(torch.empty(3)) if bias else None",
        "    self.parts[key] = nn.Parameter(torch.empty(3))",
    ],
)
def test_memory_that_is_evidently_no_input(line: str) -> None:
    assert idle(line)


@pytest.mark.parametrize(
    "line",
    [
        "x = torch.empty(3)",
        "x = torch.empty(n, dtype=0)",
        "x = torch.empty(0).resize_(3)",
        "x = torch.empty(3).clamp_(0)",
        "f = torch.empty",
        "    return torch.empty(3) + 1",
        "    return torch.empty(3), 1",
        "    self.weight = nn.Parameter(torch.empty(3) * 2)",
        "    self.weight = torch.empty(3)[0]",
        "    self.read = torch.empty(3)",
        "    self.other = torch.empty(3)",
        "    self.weight[0] = torch.empty(3) + 1",
        "    weight[0] = torch.empty(3)",
        "    self.bias = torch.empty(3) if torch.empty(1) > 0 and x",
        "x = torch.empty(f('('))",
        "x = torch.empty(3",
    ],
)
def test_memory_that_may_be_an_input(line: str) -> None:
    assert not idle(line)


def test_code_that_initialises_whatever_there_is() -> None:
    for text in ("self.apply(init)", "for p in self.parameters():\n    nn.init.zeros_(p)"):
        assert Allocations(text, {}, LIBRARY.facts.memory, ()).all_initialised
    assert not Allocations("map(f, self.parameters())", {}, LIBRARY.facts.memory, ()).all_initialised


def test_words_are_those_of_the_rule() -> None:
    names = {name for row in loading.load().rules["TDL501"].calls for name in row.names}
    assert {name.rpartition(".")[2] for name in names} >= LIBRARY.facts.memory.allocators


@pytest.mark.parametrize("case", [case for case in rulebook.cases() if case.code != "TDL001"], ids=str)
def test_what_is_left_unparsed_holds_no_finding(case: rulebook.Case) -> None:
    lazy, whole = (Module(Source("example.py", case.example.code), LIBRARY) for _ in range(2))
    whole.load_all()
    assert found_in(lazy) == found_in(whole)


def found_in(module: Module) -> set[tuple[str, int]]:
    return {
        (code, module.span(one.node)[0].row)
        for code, rule in sorted(LIBRARY.catalogue.rules.items())
        if rule.scope == "file" and code in CHECKS
        for one in CHECKS[code](module, rule)
    }


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("import re\n\n\ndef f(text):\n    return re.compile(text)\n", 0),
        ("from regex import models as re\n\n\ndef f(text):\n    return re.compile(text)\n", 1),
        ("import code\n\n\ndef f(text):\n    return code.model.compile(text)\n", 1),
        ("def f(model):\n    return model.compile(mode=None)\n", 1),
    ],
)
def test_a_function_of_the_standard_library_is_no_method_of_torch(text: str, parsed: int) -> None:
    module = Module(Source("example.py", f"import torch\n{text}"), LIBRARY)
    module.loading.wake()
    assert len(module.parsed) == parsed
