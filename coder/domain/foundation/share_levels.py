"""How widely something of a workspace is shared: its ports, its applications."""

from __future__ import annotations

SHARE_LEVELS = ("owner", "organization", "authenticated", "public")
"""From the narrowest to the widest."""


def is_shared_too_widely(level: str, max_level: str) -> bool:
    """Whether a template does not let its workspaces share as widely. Both are of SHARE_LEVELS."""
    return SHARE_LEVELS.index(level) > SHARE_LEVELS.index(max_level)


def shared_at_most(level: str, limit: str) -> str:
    """The level, or the template's limit where that is narrower."""
    return limit if is_shared_too_widely(level, limit) else level
