"""Limits on the objects that one user may keep. Each row costs little, and no other check bounds their number.

These limits are ours and far above normal use: upstream has none. The following objects are limited where they are
created: WireGuard clients, browsers with push subscriptions, uploads (`services/templates/files.py`), shared ports, the
inbox.
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
    """Limit of one user for one kind of object."""

    max_count: int
    max_bytes: int = 0
    "Bytes of all objects together; 0 for no limit."
    remedy: str = "Delete some first."


_JOBS_END = "Wait until a pending or running job has ended, or cancel one."
LIMITS = {
    "tokens": ObjectLimit(1000),
    "secrets": ObjectLimit(200, 1 << 20),  # all of them are part of each agent's manifest
    "skills": ObjectLimit(200, 4 << 20),
    # Unfinished jobs. A workspace has at most one unfinished build.
    "unfinished dry runs": ObjectLimit(32, remedy=_JOBS_END),
    "unfinished imports": ObjectLimit(256, remedy=_JOBS_END),
    # Started with a user's session. Each one is considered for every job of the organization.
    "provisioners": ObjectLimit(256, remedy="Stop some first, or give them a provisioner key."),
}


MAX_SESSIONS = 1000
"""Sessions of a user. A further login never fails: it ends the session that was used longest ago."""


@asynccontextmanager
async def within_limit(tx: Tx, kind: str, user_id: UUID, now: datetime) -> AsyncIterator[None]:
    """Wrap the creation or change of an object of the user. Raises Conflict, which rolls back the caller's transaction.

    A user who exceeded a limit before it was introduced may still change objects, unless the total grows.
    """
    limit = LIMITS[kind]
    count_before, total_before = await count_objects(tx, kind, user_id)
    yield
    count, total = await count_objects(tx, kind, user_id)
    if count > max(limit.max_count, count_before) and await forget_expired(tx, kind, user_id, now):
        count, total = await count_objects(tx, kind, user_id)
    if count > max(limit.max_count, count_before):
        raise Conflict(f"A user has at most {limit.max_count} {kind}.", limit.remedy)
    if limit.max_bytes and total > max(limit.max_bytes, total_before):
        message = f"The {kind} of a user have at most {limit.max_bytes >> 10} KiB together."
        raise Conflict(message, "Delete some first, or make them shorter.")
