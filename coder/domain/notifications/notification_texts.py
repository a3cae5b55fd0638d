"""Notification texts: a template rendered for one recipient.

Words may hold `{{base_url}}`, `{{.UserName}}`, `{{.UserUsername}}`, `{{.UserEmail}}`, `{{.Labels.x}}`, each with `|
urlquery`, and `{{if .Labels.x}} … {{end}}` without nesting: the part of Go's template language our templates use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote_plus
from uuid import UUID

from coder.domain.notifications.message_template import MessageTemplate
from coder.domain.notifications.notification_templates import TEMPLATES

BY_ID: dict[UUID, MessageTemplate] = {template.id: template for template in TEMPLATES}

_CONDITION = re.compile(r"\{\{\s*if\s+(\S+?)\s*\}\}(.*?)\{\{\s*end\s*\}\}", re.DOTALL)
_VALUE = re.compile(r"\{\{\s*([.\w]+)\s*(\|\s*urlquery\s*)?\}\}")
_ICONS = {
    "Workspace Events": "DEFAULT_ICON_WORKSPACE",
    "User Events": "DEFAULT_ICON_ACCOUNT",
    "Template Events": "DEFAULT_ICON_TEMPLATE",
}


@dataclass(frozen=True, slots=True)
class Reader:
    """Recipient of a message."""

    id: UUID
    name: str
    username: str
    email: str


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """Message rendered for one recipient."""

    title: str
    body: str
    "Markdown."
    icon: str
    actions: list[dict[str, str]]


def render(template: MessageTemplate, reader: Reader, labels: Mapping[str, str], base_url: str) -> RenderedMessage:
    """Render the template; unknown fields are empty."""
    values = {
        "base_url": base_url,
        ".UserName": reader.name,
        ".UserUsername": reader.username,
        ".UserEmail": reader.email,
        **{f".Labels.{key}": value for key, value in labels.items()},
    }
    links: list[dict[str, str]] = [] if "{{$" in template.actions else json.loads(template.actions)
    return RenderedMessage(
        title=fill(template.title, values),
        body=fill(template.body, values),
        icon=_ICONS.get(template.group, "DEFAULT_ICON_OTHER"),
        actions=[{"label": link["label"], "url": fill(link["url"], values)} for link in links],
    )


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill in a text. A label's own braces are never read as a template: values are inserted last, in one pass."""
    chosen = _CONDITION.sub(lambda result: result.group(2) if values.get(result.group(1)) else "", text)

    def value(found: re.Match[str]) -> str:
        plain = values.get(found.group(1), "")
        return quote_plus(plain) if found.group(2) else plain

    return _VALUE.sub(value, chosen)


METHODS = ("smtp", "webhook")
"""Delivery methods besides the inbox."""
MAX_TITLE, MAX_TEXT = 120, 2000
"""Maximum characters of a custom message."""


def explain_method(method: str) -> str:
    """Return why a template's method is invalid; empty when it is valid or empty, which means the deployment's."""
    if not method or method in METHODS:
        return ""
    return f'"{method}" is not a valid method; smtp, webhook, inbox are the available options'


def explain_custom(title: str, message: str) -> str:
    """Return why a custom message is refused; empty when it is valid."""
    if not title or not message:
        return "provide a non-empty 'content.title' and 'content.message'"
    for name, text, longest in (("title", title, MAX_TITLE), ("message", message, MAX_TEXT)):
        if len(text) > longest:
            return f"'content.{name}' must be less than {longest} characters"
    return ""
