"""Explanation of a pending job: every daemon, the queue, the forecast and the remedy.

The rules are `domain/provisioning/queue_reasons.py` and `domain/provisioning/queue_forecast.py`; the JSON is
`job_reasons.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.base.refusals import NotFound
from coder.coderd.services.provisioning.jobs import load_queue_positions, requirements_of
from coder.coderd.services.provisioning.queue_daemons import load_daemons
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import provisioners as daemon_store
from coder.coderd.store.provisioning import queue_forecast_queries as store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.provisioning.queue_forecast_queries import RunningJob
from coder.domain.provisioning.provisioners import is_stale
from coder.domain.provisioning.queue import NO_POSITION, JobRequirements, QueuePosition
from coder.domain.provisioning.queue_forecast import Forecast, History, NoForecast, forecast, starts_now
from coder.domain.provisioning.queue_reasons import (
    TEMPORARY_REASONS,
    Reason,
    Remedy,
    Verdict,
    explain_waiting,
    find_remedy,
    judge,
    tag_rule,
)

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx


HISTORY = timedelta(days=30)
HISTORY_JOBS = 500
"""Latest jobs within `HISTORY` that a forecast is based on."""


@dataclass(frozen=True, slots=True)
class WaitExplanation:
    """Reasons why a job is pending, with its position, expected start and remedy."""

    job: JobRow
    verdict: Verdict
    position: QueuePosition
    reasons: list[Reason]
    start: Forecast | NoForecast
    remedy: Remedy | None
    worker_name: str


async def load_waiting(tx: Tx, job_id: UUID, now: datetime, strict: bool) -> WaitExplanation:
    """Return why a job is pending; one transaction reads everything, so that the answer is consistent."""
    job = await system_jobs.get_job(tx, job_id)
    if job is None:
        raise NotFound
    if job.status != "pending":
        names = await daemon_store.get_daemon_names(tx, [job.worker_id] if job.worker_id else [])
        no_forecast = NoForecast("the job does not wait")
        name = names.get(job.worker_id, "") if job.worker_id else ""
        return WaitExplanation(job, "not_waiting", NO_POSITION, [], no_forecast, None, name)
    requirements = requirements_of(job)
    running = await store.list_running(tx)
    daemons = await load_daemons(tx, running)
    rule = tag_rule(daemons, now, strict=strict)
    reasons = explain_waiting(requirements, daemons, now, rule=rule)
    waiting = await job_store.list_waiting(tx, [job.organization_id])
    unreachable = {reason.daemon.id for reason in reasons if reason.code == "unreachable"}
    online = [
        daemon
        for daemon in daemons
        if not (daemon.key_revoked or is_stale(daemon.last_seen_at, now) or daemon.id in unreachable)
    ]
    position = (await load_queue_positions(tx, [job], now, strict=strict)).get(job.id, NO_POSITION)
    history = await _history(tx, job, waiting, running, now)
    hopeless = not any(reason.code in TEMPORARY_REASONS - {"offline", "unreachable"} for reason in reasons)
    return WaitExplanation(
        job=job,
        verdict=judge(reasons, starts_now=starts_now(requirements, waiting, online, rule=rule)),
        position=position,
        reasons=reasons,
        start=forecast(requirements, waiting, daemons, history, now, rule=rule),
        remedy=find_remedy(requirements, reasons) if hopeless else None,
        worker_name="",
    )


async def _history(
    tx: Tx, job: JobRow, waiting: Sequence[JobRequirements], running: Sequence[RunningJob], now: datetime
) -> History:
    by_job = await store.list_waiting_types(tx, [item.job_id for item in waiting])
    by_job |= {item.job_id: item.type for item in running}
    by_kind: dict[str, list[float]] = {}
    for kind, seconds in await store.list_durations(tx, job.organization_id, now - HISTORY, HISTORY_JOBS):
        by_kind.setdefault(kind, []).append(seconds)
    return History(by_job, by_kind)
