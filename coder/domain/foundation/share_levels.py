"""Share levels of a workspace's ports and applications."""

from __future__ import annotations

from typing import Literal, TypeVar

Level = TypeVar("Level", bound=str)

ShareLevel = Literal["owner", "organization", "authenticated", "public"]
SHARE_LEVELS: tuple[ShareLevel, ...] = ("owner", "organization", "authenticated", "public")
"""Levels from the narrowest to the widest."""


def is_shared_too_widely(level: str, max_level: str) -> bool:
    """Return whether a template's limit forbids this level. Both are items of SHARE_LEVELS."""
    return SHARE_LEVELS.index(level) > SHARE_LEVELS.index(max_level)


def wider_levels(limit: str) -> tuple[str, ...]:
    """Return the levels that a template's limit forbids."""
    return SHARE_LEVELS[SHARE_LEVELS.index(limit) + 1 :]


def shared_at_most(level: Level, limit: Level) -> Level:
    """Return the level, or the template's limit if that is narrower."""
    return limit if is_shared_too_widely(level, limit) else level
