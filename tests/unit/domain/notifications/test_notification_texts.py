"""Texts of notifications: filled in once, and in every template."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from coder.domain.notifications.notification_templates import TEMPLATES, WORKSPACE_DORMANT
from coder.domain.notifications.notification_texts import Reader, fill, render


def test_words_are_filled_in_once() -> None:
    values = {".Labels.name": "{{.UserEmail}}", ".UserEmail": "secret", "base_url": "https://x"}
    assert fill("{{base_url}}/{{ .Labels.name | urlquery }}", values) == "https://x/%7B%7B.UserEmail%7D%7D"
    assert fill("a{{if .Labels.none}}b{{end}}c{{if .Labels.name}}d{{end}}", values) == "acd"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_every_template_renders(template: Any) -> None:
    message = render(template, Reader(UUID(int=1), "", "maria", "m@b.c"), {"custom_title": "x"}, "https://x")
    assert message.title and "{{" not in message.title + message.body + json.dumps(message.actions)


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ("48", "Dormant workspaces may be deleted after 48 hours of inactivity. To keep"),
        ("", "request of Ana.\n\nTo keep"),
    ],
)
def test_dormant_text_names_hours_only_if_known(hours: str, expected: str) -> None:
    labels = {"name": "api-dev", "reason": "a request of Ana", "dormancyHours": hours}
    template = next(item for item in TEMPLATES if item.id == WORKSPACE_DORMANT)
    assert expected in render(template, Reader(UUID(int=1), "", "maria", "m@b.c"), labels, "https://x").body
