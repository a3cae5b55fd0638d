"""Daemons of all organizations, as the rules of the queue judge them (`domain/provisioning/queue_reasons.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coder.coderd.services.provisioning.jobs import as_offer
from coder.coderd.store.provisioning import queue_forecast_queries as store
from coder.coderd.store.provisioning.daemon_health import list_health
from coder.coderd.store.provisioning.queue_forecast_queries import RunningJob
from coder.domain.provisioning.provisioners import RESERVED_KEYS
from coder.domain.provisioning.queue_reasons import (
    Daemon,
)

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


async def load_daemons(tx: Tx, running: Sequence[RunningJob]) -> list[Daemon]:
    """Return every daemon with its offer, its latest sign of life and its job of `running`."""
    rows, health = await store.list_all_daemons(tx), await list_health(tx)
    keys = await store.list_key_ids(tx)
    work = {item.worker_id: item for item in reversed(running)}
    return [
        Daemon(
            id=row.id,
            name=row.name,
            offer=as_offer(row),
            last_seen_at=row.last_seen_at,
            job_id=work[row.id].job_id if row.id in work else None,
            job_started_at=work[row.id].started_at if row.id in work else None,
            key_revoked=row.key_id not in RESERVED_KEYS and row.key_id not in keys,
            unreachable_since=health[row.id].unreachable_since if row.id in health else None,
        )
        for row in rows
    ]
