"""Rules of sub-agents, which an agent creates for its dev containers: names, slugs, totals and sharing.

Source: docs/protocol/agents.md#sub-agents.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from uuid import UUID

from coder.base.json_types import Json

MAX_SUB_AGENTS = 32
MAX_APPS = 100
MAX_TEXT = 8192
MAX_NAME = 64
"""Ours: sub-agents of one agent, applications of one sub-agent, characters of each text and of a name."""
MAX_MADE = 1000
MAX_APPS_MADE = 5000
"""Ours: created during one build, including removed ones, whose rows stay: thirty containers recreated every day for a
month."""
# Both are parts of host names and addresses. Names from templates are too, and may be longer.
AGENT_NAME = re.compile(r"[a-z0-9](-?[a-z0-9])*", re.IGNORECASE | re.ASCII)
APP_SLUG = re.compile(r"[a-z0-9](-?[a-z0-9])*", re.ASCII)


def explain_name(name: str) -> str:
    """Return why an agent cannot have this name; "" when it can."""
    if not name:
        return "agent name is required"
    if len(name) > MAX_NAME:
        return f"agent name may have {MAX_NAME} characters"
    if not AGENT_NAME.fullmatch(name):
        return f"agent name {name!r} does not match regex (?i)^[a-z0-9](-?[a-z0-9])*$"
    return ""


def explain_slug(slug: str) -> str:
    """Return why an application cannot have this slug; "" when it can."""
    if not slug:
        return "slug is required"
    if len(slug) > MAX_NAME or not APP_SLUG.fullmatch(slug):
        return f"slug {slug[:MAX_NAME]!r} does not match regex ^[a-z0-9](-?[a-z0-9])*$"
    return ""


def stored_slug(agent_name: str, slug: str) -> str:
    """Return the slug an application is stored under: copies of a dev container share slugs, and a slug is unique
    within a workspace."""
    digest = hashlib.sha256(f"{agent_name}/{slug}".encode()).digest()
    return f"{base64.b32hexencode(digest).decode().lower()[:8]}-{slug}"


def explain_total(agents: int, apps: int, more_apps: int) -> str:
    """Return why a build with so many may not create another with `more_apps`; "" when it may."""
    if agents >= MAX_MADE:
        return f"{MAX_MADE} sub-agents were made since this build, and no more may be: restart the workspace"
    if apps + more_apps > MAX_APPS_MADE:
        return (
            f"{apps} applications of sub-agents were made since this build, and {MAX_APPS_MADE} may be: "
            "restart the workspace"
        )
    return ""


def is_from_template(child: UUID, devcontainers: Iterable[Mapping[str, Json]]) -> bool:
    """Return whether the template defined a sub-agent, through the dev containers of its build. Its applications then
    come from the template too, with the template's sharing."""
    return any(item.get("subagent_id") == str(child) for item in devcontainers)
