"""The dashboard says each rule for a field in plain words."""

from __future__ import annotations

import re
from pathlib import Path

from coder.api.field_rules import rules as field_rules
from coder.api.field_rules.rules import FieldRule
from tests.kit.paths import ROOT

_WORDS = ROOT / "coder/dashboard/src/ui/forms/rules.ts"


def _told(path: Path) -> set[str]:
    table = path.read_text().split("RULES", 1)[1].split("};", 1)[0]
    return set(re.findall(r"^  (\w+):", table, re.MULTILINE))


def test_every_rule_has_words() -> None:
    rules = [*vars(field_rules).values(), field_rules.one_of("a"), field_rules.shorter_than(2)]
    assert _told(_WORDS) == {rule.tag for rule in rules if isinstance(rule, FieldRule)}
