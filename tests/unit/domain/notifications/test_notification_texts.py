"""Texts of notifications: filled in once, and in every template."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from coder.domain.notifications.notification_templates import TEMPLATES
from coder.domain.notifications.notification_texts import Reader, fill, render


def test_words_are_filled_in_once() -> None:
    values = {".Labels.name": "{{.UserEmail}}", ".UserEmail": "secret", "base_url": "https://x"}
    assert fill("{{base_url}}/{{ .Labels.name | urlquery }}", values) == "https://x/%7B%7B.UserEmail%7D%7D"
    assert fill("a{{if .Labels.none}}b{{end}}c{{if .Labels.name}}d{{end}}", values) == "acd"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_every_template_renders(template: Any) -> None:
    message = render(template, Reader(UUID(int=1), "", "maria", "m@b.c"), {"custom_title": "x"}, "https://x")
    assert message.title and "{{" not in message.title + message.body + json.dumps(message.actions)
