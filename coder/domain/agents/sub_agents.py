"""Laws of sub-agents, those that an agent makes for its dev containers: names, slugs, how many, what may be shared.

Source: docs/protocol/agents.md#sub-agents.
"""

from __future__ import annotations

import base64
import hashlib
import re

from coder.domain.workspaces.workspaces import SHARE_LEVELS

MAX_SUB_AGENTS = 32
MAX_APPS = 100
MAX_TEXT = 8192
MAX_NAME = 64
"""Ours: of one agent, applications of one of them, characters of each text and of a name."""
_NAME = re.compile(r"[a-z0-9](-?[a-z0-9])*", re.IGNORECASE | re.ASCII)
_SLUG = re.compile(r"[a-z0-9](-?[a-z0-9])*", re.ASCII)


def explain_name(name: str) -> str:
    """Why an agent cannot be called so; "" when it can."""
    if not name:
        return "agent name is required"
    if len(name) > MAX_NAME:
        return f"agent name may have {MAX_NAME} characters"
    if not _NAME.fullmatch(name):
        return f"agent name {name!r} does not match regex (?i)^[a-z0-9](-?[a-z0-9])*$"
    return ""


def explain_slug(slug: str) -> str:
    """Why an application cannot have that slug; "" when it can."""
    if not slug:
        return "slug is required"
    if len(slug) > MAX_NAME or not _SLUG.fullmatch(slug):
        return f"slug {slug[:MAX_NAME]!r} does not match regex ^[a-z0-9](-?[a-z0-9])*$"
    return ""


def stored_slug(agent_name: str, slug: str) -> str:
    """What an application is found by: copies of a dev container have the same slugs, a workspace has each once."""
    digest = hashlib.sha256(f"{agent_name}/{slug}".encode()).digest()
    return f"{base64.b32hexencode(digest).decode().lower()[:8]}-{slug}"


def shared_at_most(level: str, limit: str) -> str:
    """The level, or the template's limit where that is narrower."""
    return min(level, limit, key=SHARE_LEVELS.index)
