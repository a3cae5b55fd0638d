"""The dashboard explains each rule for a field in plain words."""

from __future__ import annotations

from coder.api.field_rules import rules as field_rules
from coder.api.field_rules.rules import FieldRule
from tests.kit.dashboard.source_modules import evaluate, needs_node

_EXPLAIN = """argument.map((tag) => {
    const detail = `Validation failed for tag "${tag}" with value: ""`;
    return module.validationText(detail, { status: 400, message: "" }) === detail ? tag : null;
}).filter(Boolean)"""


@needs_node
def test_dashboard_explains_every_field_rule() -> None:
    rules = [*vars(field_rules).values(), field_rules.one_of("a"), field_rules.shorter_than(2)]
    tags = sorted({rule.tag for rule in rules if isinstance(rule, FieldRule)})
    assert tags
    assert evaluate("rules.ts", _EXPLAIN, tags) == []
    assert sorted(evaluate("rules.ts", "Object.keys(module.RULES)")) == tags
