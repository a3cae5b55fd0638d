"""Forecast of a pending job's start: a range, from two simulations of the queue with recent durations.

The fast simulation uses the lower quartile of each kind's durations, the slow one the upper decile. With too little
history the result is a reason instead of a range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from coder.domain.provisioning.provisioners import is_stale
from coder.domain.provisioning.queue import DEFAULT_RULE, JobRequirements, TagRule, fits, order
from coder.domain.provisioning.queue_reasons import Daemon

MIN_FINISHED_JOBS = 3
"""Minimum of finished jobs for a forecast."""
QUICK, SLOW = 0.25, 0.9


@dataclass(frozen=True, slots=True)
class Forecast:
    """Range in which the job should start."""

    earliest: datetime
    latest: datetime
    samples: int
    """Number of finished jobs it is based on."""


@dataclass(frozen=True, slots=True)
class NoForecast:
    """Reason for the absence of a forecast."""

    reason: str


def quantile(sorted_values: Sequence[float], share: float) -> float:
    """Return a quantile by linear interpolation. `sorted_values` must not be empty."""
    at = share * (len(sorted_values) - 1)
    below = int(at)
    above = min(below + 1, len(sorted_values) - 1)
    return sorted_values[below] + (sorted_values[above] - sorted_values[below]) * (at - below)


@dataclass(frozen=True, slots=True)
class History:
    """Durations of finished jobs in seconds."""

    by_job: Mapping[UUID, str]
    """Kind of each pending or running job."""
    by_kind: Mapping[str, Sequence[float]]

    @property
    def samples(self) -> int:
        return sum(len(values) for values in self.by_kind.values())

    def duration(self, job_id: UUID | None, share: float) -> float:
        kind = self.by_job.get(job_id, "") if job_id is not None else ""
        values = self.by_kind.get(kind) or [item for many in self.by_kind.values() for item in many]
        return quantile(sorted(values), share) if values else 0.0


def forecast(
    job: JobRequirements,
    waiting: Sequence[JobRequirements],
    daemons: Sequence[Daemon],
    history: History,
    now: datetime,
    *,
    rule: TagRule = DEFAULT_RULE,
) -> Forecast | NoForecast:
    """Return the range in which `job` (an item of `waiting`) should start."""
    online = [daemon for daemon in daemons if not daemon.key_revoked and not is_stale(daemon.last_seen_at, now)]
    eligible = [item for item in online if fits(job, item.offer, rule=rule)]
    if not eligible:
        known = any(fits(job, daemon.offer, rule=rule) for daemon in daemons if not daemon.key_revoked)
        return NoForecast(
            "every provisioner that may run it is offline" if known else "there is no provisioner that may ever run it"
        )
    if starts_now(job, waiting, online, rule=rule):
        return Forecast(now, now, history.samples)
    if history.samples < MIN_FINISHED_JOBS:
        return NoForecast(
            f"only {history.samples} jobs have finished lately; {MIN_FINISHED_JOBS} are needed for a forecast"
        )
    earliest = _simulate_queue(job, waiting, online, history, QUICK, now, rule=rule)
    latest = _simulate_queue(job, waiting, online, history, SLOW, now, rule=rule)
    return Forecast(earliest, max(earliest, latest), history.samples)


def starts_now(
    job: JobRequirements, waiting: Sequence[JobRequirements], online: Sequence[Daemon], *, rule: TagRule = DEFAULT_RULE
) -> bool:
    """Return whether an idle daemon remains for the job, however the jobs before it are assigned."""
    eligible = [item for item in online if item.job_id is None and fits(job, item.offer, rule=rule)]
    ranked = order(waiting)
    before = ranked[: next((at for at, item in enumerate(ranked) if item.job_id == job.job_id), len(ranked))]
    rivals = sum(1 for item in before if any(fits(item, daemon.offer, rule=rule) for daemon in eligible))
    return len(eligible) > rivals


def _simulate_queue(
    job: JobRequirements,
    waiting: Sequence[JobRequirements],
    daemons: Sequence[Daemon],
    history: History,
    share: float,
    now: datetime,
    *,
    rule: TagRule,
) -> datetime:
    """Simulate the queue with each job's quantile; return the time at which `job` is acquired."""
    free = {daemon.id: now + _remaining_time(daemon, history, share, now) for daemon in daemons}
    for item in order(waiting):
        eligible = [daemon for daemon in daemons if fits(item, daemon.offer, rule=rule)]
        if not eligible:
            continue
        chosen = min(eligible, key=lambda daemon: free[daemon.id])
        if item.job_id == job.job_id:
            return free[chosen.id]
        free[chosen.id] += timedelta(seconds=history.duration(item.job_id, share))
    return min((free[daemon.id] for daemon in daemons if fits(job, daemon.offer, rule=rule)), default=now)


def _remaining_time(daemon: Daemon, history: History, share: float, now: datetime) -> timedelta:
    if daemon.job_id is None:
        return timedelta()
    spent = (now - daemon.job_started_at).total_seconds() if daemon.job_started_at else 0.0
    return timedelta(seconds=max(0.0, history.duration(daemon.job_id, share) - spent))
