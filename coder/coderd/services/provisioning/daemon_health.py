"""Health of an organization's provisioner daemons and of their machines, as users read it.

A daemon that joined the overlay (`daemon_mesh.py`) is asked every half minute on its own address, over this server's
node (`daemon_health_checks.py`). A daemon that does not join (an older one) is judged by the heartbeat of its link
alone. Built-in daemons share the server's process: their machine is measured here.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from coder.api.provisioning.provisioners import DaemonHost, DaemonSlots, ProvisionerDaemonHealth
from coder.base.host import HostLoad, HostWatch
from coder.coderd.services.provisioning.daemon_health_checks import HealthReport
from coder.coderd.services.provisioning.job_lists import lists_daemon, require_queue
from coder.coderd.store.provisioning import daemon_health as store
from coder.coderd.store.provisioning import provisioners as daemon_store
from coder.coderd.store.provisioning.daemon_health import HealthRow
from coder.coderd.store.provisioning.provisioners import DaemonJob, DaemonRow
from coder.domain.access.policy import Subject
from coder.domain.provisioning.provisioners import BUILT_IN_KEY, daemon_status, is_stale

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx


async def list_health(ctx: Context, subject: Subject, organization_id: UUID) -> list[ProvisionerDaemonHealth]:
    """Return the health of every daemon of an organization, oldest first. Raises NotFound without permission."""
    require_queue(subject, organization_id)
    rows, jobs, measured = await ctx.db.read(_load, organization_id)
    now = ctx.clock.now()
    own_host: HostWatch = ctx.services.api.own_host.watch
    daemons = []
    for row in rows:
        if not lists_daemon(subject, row.id):
            continue
        online = not is_stale(row.last_seen_at, now)
        busy = online and any(job.worker_id == row.id and job.status in {"running", "canceling"} for job in jobs)
        status = daemon_status(row.last_seen_at, busy=busy, now=now)
        health = ProvisionerDaemonHealth(
            row.id,
            row.name,
            status,
            "heartbeat",
            online,
            row.version,
            DaemonSlots(1, int(busy)),
            answered_at=row.last_seen_at,
        )
        if row.key_id == BUILT_IN_KEY and online:
            health.source, health.host, health.measured_at = "process", _own_host(own_host.look()), now
        elif row.id in measured:
            _add_measured(health, measured[row.id], online=online)
        daemons.append(health)
    return daemons


async def _load(tx: Tx, organization_id: UUID) -> tuple[list[DaemonRow], list[DaemonJob], dict[UUID, HealthRow]]:
    rows = await daemon_store.list_daemons(tx, organization_id)
    ids = [row.id for row in rows]
    return rows, await daemon_store.list_daemon_jobs(tx, ids), await store.list_health(tx, ids)


def _add_measured(health: ProvisionerDaemonHealth, row: HealthRow, *, online: bool) -> None:
    health.source = "mesh"
    health.reachable = online and row.unreachable_since is None
    health.measured_at, health.answered_at = row.measured_at, row.answered_at
    health.unreachable_since, health.problem = row.unreachable_since, row.problem
    health.latency_ms = None if row.latency is None else round(row.latency * 1000, 3)
    if row.report:
        report = msgspec.convert(row.report, HealthReport)
        health.version, health.slots, health.host = report.version, report.slots, report.host


class OwnHost:
    """Watch of this server's machine."""

    def __init__(self, ctx: Context) -> None:
        self.watch = HostWatch(Path(str(ctx.config.cache_dir) or "/").expanduser())


def _own_host(load: HostLoad) -> DaemonHost:
    return msgspec.convert(load, DaemonHost, from_attributes=True)
