"""The account page lists the notifications that this server sends, and no others."""

from __future__ import annotations

from uuid import UUID

from coder.domain.notifications import notification_templates
from tests.kit.dashboard.source_modules import evaluate, needs_node

UNKNOWN = "0 Events"
"""A group the dashboard does not order; its name comes first in the alphabet."""


@needs_node
def test_account_page_lists_only_sent_notifications() -> None:
    """Code that sends a notification names its template by a constant; clients alone know a template without one."""
    sent = {value for value in vars(notification_templates).values() if isinstance(value, UUID)}
    groups: dict[str, set[bool]] = {}
    for template in notification_templates.TEMPLATES:
        groups.setdefault(template.group, set()).add(template.id in sent)
    templates = [{"group": group, "name": "n"} for group in [UNKNOWN, *groups]]
    shown = evaluate("notification-groups.ts", "module.byGroup(argument).map(([group]) => group)", templates)
    ordered = shown[: shown.index(UNKNOWN)]
    assert sorted(ordered) == sorted(name for name, some in groups.items() if True in some)
    assert set(groups) - set(shown) == {name for name, some in groups.items() if some == {False}}
