"""Laws of sub-agents, those that an agent makes for its dev containers: names, slugs, how many, what may be shared.

Source: docs/protocol/agents.md#sub-agents.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from uuid import UUID

MAX_SUB_AGENTS = 32
MAX_APPS = 100
MAX_TEXT = 8192
MAX_NAME = 64
"""Ours: of one agent, applications of one of them, characters of each text and of a name."""
MAX_MADE = 1000
MAX_APPS_MADE = 5000
"""Ours: made during one build, with those that were removed since, whose rows stay: thirty containers made anew every
day for a month."""
# Both stand in names of hosts and in addresses; those of templates, too, which may be longer.
AGENT_NAME = re.compile(r"[a-z0-9](-?[a-z0-9])*", re.IGNORECASE | re.ASCII)
APP_SLUG = re.compile(r"[a-z0-9](-?[a-z0-9])*", re.ASCII)


def explain_name(name: str) -> str:
    """Why an agent cannot be called so; "" when it can."""
    if not name:
        return "agent name is required"
    if len(name) > MAX_NAME:
        return f"agent name may have {MAX_NAME} characters"
    if not AGENT_NAME.fullmatch(name):
        return f"agent name {name!r} does not match regex (?i)^[a-z0-9](-?[a-z0-9])*$"
    return ""


def explain_slug(slug: str) -> str:
    """Why an application cannot have that slug; "" when it can."""
    if not slug:
        return "slug is required"
    if len(slug) > MAX_NAME or not APP_SLUG.fullmatch(slug):
        return f"slug {slug[:MAX_NAME]!r} does not match regex ^[a-z0-9](-?[a-z0-9])*$"
    return ""


def stored_slug(agent_name: str, slug: str) -> str:
    """What an application is found by: copies of a dev container have the same slugs, a workspace has each once."""
    digest = hashlib.sha256(f"{agent_name}/{slug}".encode()).digest()
    return f"{base64.b32hexencode(digest).decode().lower()[:8]}-{slug}"


def explain_total(agents: int, apps: int, more_apps: int) -> str:
    """Why a build that has made so many may make no other with `more_apps`; "" when it may."""
    if agents >= MAX_MADE:
        return f"{MAX_MADE} sub-agents were made since this build, and no more may be: restart the workspace"
    if apps + more_apps > MAX_APPS_MADE:
        return (
            f"{apps} applications of sub-agents were made since this build, and {MAX_APPS_MADE} may be: "
            "restart the workspace"
        )
    return ""


def is_templates(child: UUID, devcontainers: Iterable[Mapping[str, object]]) -> bool:
    """Whether a sub-agent was made by the template, by the dev containers of its build: then its applications are, too,
    and are shared as the template says."""
    return any(item.get("subagent_id") == str(child) for item in devcontainers)
