"""How many things one person may keep: rows cost little one by one, and nobody else is asked before they are made.

Ours, far above what people need: upstream keeps as many as somebody makes. What has limits of its own where it is made:
WireGuard clients, browsers that get notifications, uploads (`services/templates/files.py`), shared ports, the inbox.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import Conflict
from coder.coderd.store.people.object_counts import count_objects, forget_expired

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class ObjectLimit:
    """Of one user."""

    most: int
    most_bytes: int = 0
    "0: their size does not matter."
    remedy: str = "Delete some first."


_JOBS_END = "Wait until one of those that wait or run has ended, or cancel one."
LIMITS = {
    "tokens": ObjectLimit(1000),
    "secrets": ObjectLimit(200, 1 << 20),  # all of them go into the manifest of each agent
    "skills": ObjectLimit(200, 4 << 20),
    # Jobs nobody has finished yet. Of builds each workspace has one.
    "unfinished dry runs": ObjectLimit(32, remedy=_JOBS_END),
    "unfinished imports": ObjectLimit(256, remedy=_JOBS_END),
    # By somebody's sessions; each is looked at for every job of the organization.
    "provisioners": ObjectLimit(256, remedy="Stop some first, or give them a provisioner key."),
}


MOST_SESSIONS = 1000
"""Of one user. Nobody is shut out for having signed in too often: one more ends what was used longest ago."""


@asynccontextmanager
async def within_limit(tx: Tx, kind: str, user_id: UUID, now: datetime) -> AsyncIterator[None]:
    """Around what makes or changes something: the caller's transaction is lost. Raises Conflict.

    Who keeps more, of before there was a limit, may go on changing it as long as it does not become more still.
    """
    limit = LIMITS[kind]
    count_before, total_before = await count_objects(tx, kind, user_id)
    yield
    count, total = await count_objects(tx, kind, user_id)
    if count > max(limit.most, count_before) and await forget_expired(tx, kind, user_id, now):
        count, total = await count_objects(tx, kind, user_id)
    if count > max(limit.most, count_before):
        raise Conflict(f"A user has at most {limit.most} {kind}.", limit.remedy)
    if limit.most_bytes and total > max(limit.most_bytes, total_before):
        said = f"The {kind} of a user have at most {limit.most_bytes >> 10} KiB together."
        raise Conflict(said, "Delete some first, or make them shorter.")
