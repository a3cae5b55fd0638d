"""How many things one person may keep: rows cost little one by one, and nobody else is asked before they are made.

Ours, far above what people need: upstream keeps as many as somebody makes. What has limits of its own where it is made:
WireGuard clients, browsers that get notifications, uploads (`services/templates/files.py`), shared ports, the inbox.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from coder.coderd.services.foundation.errors import Conflict
from coder.coderd.store.people.object_counts import count_objects

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class ObjectLimit:
    """Of one user."""

    most: int
    most_bytes: int = 0
    "0: their size does not matter."


LIMITS = {
    "tokens": ObjectLimit(1000),
    "sessions": ObjectLimit(1000),
    "secrets": ObjectLimit(200, 1 << 20),  # all of them go into the manifest of each agent
    "skills": ObjectLimit(200, 4 << 20),
}


async def check_limit(tx: Tx, kind: str, user_id: UUID) -> None:
    """After something was made or changed: the caller's transaction is lost. Raises Conflict."""
    limit = LIMITS[kind]
    count, total = await count_objects(tx, kind, user_id)
    if count > limit.most:
        raise Conflict(f"A user has at most {limit.most} {kind}.", "Delete some first, also those that are over.")
    if limit.most_bytes and total > limit.most_bytes:
        said = f"The {kind} of a user have at most {limit.most_bytes >> 10} KiB together."
        raise Conflict(said, "Delete some first, or make them shorter.")
