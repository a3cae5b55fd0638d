"""Numbers and bytes of a user's objects by kind. Counting serializes per user, so that of two concurrent requests the
second counts the objects of the first."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Column, ColumnElement, and_, delete, func, literal, select

from coder.coderd.store.provisioning.provisioners import has_unfinished_job
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.people import api_keys
from coder.coderd.store.tables.provisioners import provisioner_daemons
from coder.coderd.store.tables.user_secrets import user_secrets
from coder.coderd.store.tables.user_skills import user_skills
from coder.domain.provisioning.jobs import JobType
from coder.domain.provisioning.provisioners import STALE_AFTER

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

_SECRET_TEXTS = ("name", "description", "env_name", "file_path", "value")
_SEED = 7308  # seed of these advisory locks: distinct from the numbered locks
_NOTHING: ColumnElement[int] = literal(0)


@dataclass(frozen=True, slots=True)
class _Kind:
    owner: Column[UUID]
    """Owner column; its table is counted."""
    counts: ColumnElement[bool] = field(default_factory=lambda: literal(True))
    size: ColumnElement[int] = field(default_factory=lambda: _NOTHING)
    ends: Column[datetime] | None = None
    """End time of objects that are listed for a while after it, and are deleted first."""
    lasts: timedelta = timedelta(0)
    """Time between that moment and the end."""
    spared: ColumnElement[bool] | None = None
    """Objects that are kept although they have ended."""


def _unfinished(job_type: JobType) -> _Kind:
    jobs = provisioner_jobs.c
    return _Kind(jobs.initiator_id, and_(jobs.type == job_type, jobs.completed_at.is_(None)))


_KINDS: dict[str, _Kind] = {
    "tokens": _Kind(api_keys.c.user_id, api_keys.c.login_type == "token", ends=api_keys.c.expires_at),
    # Every secret is read for an agent's request, whichever it is, so the total is limited.
    "secrets": _Kind(
        user_secrets.c.user_id,
        size=func.octet_length(func.concat(*(user_secrets.c[name] for name in _SECRET_TEXTS))),
    ),
    "skills": _Kind(user_skills.c.user_id, size=func.octet_length(user_skills.c.content)),
    "unfinished dry runs": _unfinished("template_version_dry_run"),
    "unfinished imports": _unfinished("template_version_import"),
    "provisioners": _Kind(
        provisioner_daemons.c.user_id,
        ends=provisioner_daemons.c.last_seen_at,
        lasts=STALE_AFTER,
        spared=has_unfinished_job(),
    ),
}


async def lock_objects(tx: Tx, kind: str, user_id: UUID) -> None:
    """Lock the user's objects of a kind until the transaction ends."""
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{kind} {user_id}", _SEED))))


async def count_objects(tx: Tx, kind: str, user_id: UUID) -> tuple[int, int]:
    """Return (number, bytes), including the transaction's own changes."""
    await lock_objects(tx, kind, user_id)
    which = _KINDS[kind]
    statement = select(func.count(), func.coalesce(func.sum(which.size), 0))
    statement = statement.where(which.owner == user_id, which.counts)
    count, total = (await tx.execute(statement)).one()
    return int(count), int(total)


async def forget_expired(tx: Tx, kind: str, user_id: UUID, now: datetime) -> bool:
    """Delete ended objects of the kind; return whether there were any."""
    which = _KINDS[kind]
    if which.ends is None:
        return False
    over = delete(which.owner.table).where(which.owner == user_id, which.counts, which.ends <= now - which.lasts)
    if which.spared is not None:
        over = over.where(~which.spared)
    return bool((await tx.execute(over)).rowcount)
