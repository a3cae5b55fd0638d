"""Registration of an admitted provisioner daemon, and its heartbeats (docs/protocol/rpc.md#daemons)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast
from uuid import UUID

from coder.api.base.enums import ProvisionerType
from coder.base.ids import new_uuid, random_name
from coder.coderd.services.foundation.object_limits import within_limit
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.daemon_admission import DaemonAdmission
from coder.coderd.services.provisioning.new_jobs import wake_daemons
from coder.coderd.services.provisioning.provisioners import MAX_DAEMON_NAME
from coder.coderd.store.provisioning import provisioners as store
from coder.coderd.store.provisioning.provisioners import DaemonRow
from coder.domain.provisioning.provisioners import STALE_AFTER
from coder.domain.provisioning.queue import DaemonOffer
from coder.domain.provisioning.tags import UNTAGGED, is_untagged

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


@dataclass(frozen=True, slots=True)
class Introduction:
    """A daemon's description of itself."""

    name: str
    provisioners: Sequence[str]
    version: str
    api_version: str


async def register(
    ctx: Context, organization_id: UUID, admission: DaemonAdmission, introduction: Introduction
) -> Worker:
    """Store a connected daemon; equal name, owner, key and user mean the same daemon.

    A daemon with the name of another key's or user's daemon gets a suffix. Raises Conflict for a user with too many
    daemons.
    """
    now = ctx.clock.now()
    name = introduction.name.replace("\x00", "")[:MAX_DAEMON_NAME] or random_name("_")
    daemon = DaemonRow(
        id=new_uuid(),
        organization_id=organization_id,
        key_id=admission.key_id,
        created_at=now,
        last_seen_at=now,
        name=name,
        version=introduction.version,
        api_version=introduction.api_version,
        provisioners=cast("list[ProvisionerType]", sorted(set(introduction.provisioners))),
        tags=admission.tags,
        user_id=admission.user_id,
    )
    link = new_uuid()
    row = await ctx.db.run(_put, daemon, link)
    # A daemon that reconnects gets the same name again, so that it keeps its job.
    suffix = hashlib.sha256(f"{admission.key_id} {admission.user_id}".encode()).hexdigest()[:8]
    while row is None:
        other = f"{name[: MAX_DAEMON_NAME - 9]}-{suffix}"
        row = await ctx.db.run(_put, replace(daemon, name=other), link)
        suffix = secrets.token_hex(4)
    offer = DaemonOffer(row.organization_id, frozenset(row.provisioners), row.tags)
    return Worker(row.id, row.name, offer, admission.user_id, link)


async def _put(tx: Tx, daemon: DaemonRow, link: UUID) -> DaemonRow | None:
    if daemon.user_id is None:
        return await store.upsert_daemon(tx, daemon, link)
    async with within_limit(tx, "provisioners", daemon.user_id, daemon.created_at):
        return await store.upsert_daemon(tx, daemon, link)


class Presence:
    """Presence of a daemon over one link. The daemon may have reconnected over another link meanwhile."""

    def __init__(self, ctx: Context, worker: Worker) -> None:
        self._ctx = ctx
        self._worker = worker

    async def keep(self) -> None:
        """Record a heartbeat: the daemon is still connected."""
        await self._ctx.db.run(store.touch_daemon, self._worker.id, self._worker.link, self._ctx.clock.now())

    async def drain(self) -> None:
        """Record that the daemon takes no further jobs. It stays connected until its running job has ended."""
        await self._ctx.db.run(_drain, self._worker)

    async def end(self) -> None:
        """Mark the daemon offline when the link ends, instead of waiting until its heartbeat is stale."""
        stale = self._ctx.clock.now() - STALE_AFTER - timedelta(seconds=1)
        await self._ctx.db.run(_end, self._worker, stale)


async def _drain(tx: Tx, worker: Worker) -> None:
    await store.mark_daemon_draining(tx, worker.id, worker.link)
    await _pass_on_untagged_jobs(tx, worker)


async def _end(tx: Tx, worker: Worker, last_seen_at: datetime) -> None:
    await store.mark_daemon_disconnected(tx, worker.id, worker.link, last_seen_at)
    await _pass_on_untagged_jobs(tx, worker)


async def _pass_on_untagged_jobs(tx: Tx, worker: Worker) -> None:
    """Wake the tagged daemons, which may take untagged jobs once no untagged daemon is left."""
    if is_untagged(worker.offer.tags):
        for provisioner in sorted(worker.offer.provisioners):
            await wake_daemons(tx, worker.offer.organization_id, provisioner, UNTAGGED)
