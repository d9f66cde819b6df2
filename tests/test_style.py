"""What can be tested of docs/style.md: the length of messages, their beginning, and the words they avoid."""

from __future__ import annotations

import re

import pytest

from torchdet_lint.catalogue.loading import load

RULES = load().rules
TEMPLATES = [
    (rule.code, template) for rule in RULES.values() for template in (rule.message, *rule.messages.values()) if template
]
BANNED = re.compile(
    r"varies from run to run|another one in every run|\bcures?\b|\balerts\b|\bby chance\b|that mode alone|hence|"
    r"nobody wrote|uninitialised|initialis|\bcentres?\b|whatever stood in it|no flag of torch",
    re.IGNORECASE,
)
LONGEST = 120
HOLE = re.compile(r"\{\w+\}")
VERB = re.compile(
    r"(?:Add|Allocate|Announce|Append|Balance|Broadcast|Call|Choose|Collect|Compile|Compute|Create|Dequantize|Draw|Fill|Fix|Flatten|"
    r"Give|Keep|Leave|Let|Make|Meet|Name|Pass|Pick|Put|Read|Remove|Repair|Replace|Reshape|Run|Seed|Set|Share|Sort|Sum|Take|Turn|Unsqueeze|"
    r"Use|Write)\b"
)


@pytest.mark.parametrize(("code", "template"), TEMPLATES)
def test_a_message_is_one_short_plain_sentence(code: str, template: str) -> None:
    said = HOLE.sub("", re.sub(r"\([^()]*\)", "", template))
    assert len(said) <= LONGEST, f"{code}: {len(said)} characters: {template}"
    assert re.match(r"[A-Z`{]", template), f"{code}: begins with code or a capital letter: {template}"
    assert not template.endswith("."), f"{code}: no final period: {template}"
    assert not BANNED.search(template), f"{code}: {template}"


@pytest.mark.parametrize("code", RULES)
def test_the_words_of_a_rule_are_those_of_the_style(code: str) -> None:
    rule = RULES[code]
    for text in (rule.summary, rule.why, rule.instead, *rule.helps.values()):
        found = BANNED.search(" ".join(text.split()))
        assert found is None, f"{code}: {found and found[0]!r}"


@pytest.mark.parametrize("code", RULES)
def test_help_begins_with_a_verb(code: str) -> None:
    rule = RULES[code]
    assert [text for text in (rule.instead.strip(), *rule.helps.values()) if not VERB.match(text)] == []
    # The others are those that a check asks for.
    asked = {"down", "entries", "evaluation", "last", "listing", "older", "older-sampler", "own", "processes", "row"}
    assert rule.helps.keys() - rule.messages.keys() <= asked


def test_help_of_operations_begins_with_a_verb() -> None:
    rows = [(op.op, text) for op in load().facts.ops for text in (op.instead, *(row.instead for row in op.status))]
    helps = {text: op for op, text in rows if text}
    assert [op for text, op in helps.items() if not VERB.match(text)] == []
    # One verb, not two: "Use Flatten".
    assert [op for text, op in helps.items() if text.startswith("Use ") and VERB.match(text.removeprefix("Use "))] == []
