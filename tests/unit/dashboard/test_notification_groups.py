"""People are asked about the messages this server sends, and about no others."""

from __future__ import annotations

import re
from uuid import UUID

from coder.domain.events import notification_templates
from tests.kit.paths import ROOT

_GROUPS = ROOT / "coder/dashboard/src/features/notification/notification-groups.ts"


def _listed(name: str) -> list[str]:
    found = re.search(rf"const {name}: readonly string\[\] = \[([^\]]*)\]", _GROUPS.read_text())
    assert found is not None
    return re.findall(r'"([^"]+)"', found[1])


def test_what_is_never_sent_is_not_asked_about() -> None:
    """What sends a message names its template by a constant; a template without one is known to clients alone."""
    sent = {value for value in vars(notification_templates).values() if isinstance(value, UUID)}
    groups: dict[str, set[bool]] = {}
    for template in notification_templates.TEMPLATES:
        groups.setdefault(template.group, set()).add(template.id in sent)
    assert _listed("NEVER_SENT") == sorted(name for name, some in groups.items() if some == {False})
    assert sorted(_listed("FIRST")) == sorted(name for name, some in groups.items() if some == {True})
