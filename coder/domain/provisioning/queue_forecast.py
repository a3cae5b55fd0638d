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
from coder.domain.provisioning.queue import Wanted, fits, order
from coder.domain.provisioning.queue_reasons import Daemon

ENOUGH = 3
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
        values = self.by_kind.get(kind) or [one for many in self.by_kind.values() for one in many]
        return quantile(sorted(values), share) if values else 0.0


def forecast(
    job: Wanted,
    waiting: Sequence[Wanted],
    daemons: Sequence[Daemon],
    history: History,
    now: datetime,
    *,
    strict: bool = False,
) -> Forecast | NoForecast:
    """Return the range in which `job` (an item of `waiting`) should start."""
    here = [one for one in daemons if not one.key_revoked and not is_stale(one.last_seen_at, now)]
    mine = [one for one in here if fits(job, one.offer, strict=strict)]
    if not mine:
        known = any(fits(job, one.offer, strict=strict) for one in daemons if not one.key_revoked)
        return NoForecast(
            "every provisioner that may run it is offline" if known else "there is no provisioner that may ever run it"
        )
    if starts_now(job, waiting, here, strict=strict):
        return Forecast(now, now, history.samples)
    if history.samples < ENOUGH:
        return NoForecast(f"only {history.samples} jobs have finished lately; {ENOUGH} are needed for a forecast")
    earliest = _play(job, waiting, here, history, QUICK, now, strict=strict)
    latest = _play(job, waiting, here, history, SLOW, now, strict=strict)
    return Forecast(earliest, max(earliest, latest), history.samples)


def starts_now(job: Wanted, waiting: Sequence[Wanted], here: Sequence[Daemon], *, strict: bool = False) -> bool:
    """Return whether an idle daemon remains for the job, however the jobs before it are assigned."""
    mine = [one for one in here if one.job_id is None and fits(job, one.offer, strict=strict)]
    ranked = order(waiting)
    before = ranked[: next((at for at, one in enumerate(ranked) if one.job_id == job.job_id), len(ranked))]
    rivals = sum(1 for one in before if any(fits(one, daemon.offer, strict=strict) for daemon in mine))
    return len(mine) > rivals


def _play(
    job: Wanted,
    waiting: Sequence[Wanted],
    daemons: Sequence[Daemon],
    history: History,
    share: float,
    now: datetime,
    *,
    strict: bool,
) -> datetime:
    """Simulate the queue with each job's quantile; return the time at which `job` is acquired."""
    free = {one.id: now + _rest(one, history, share, now) for one in daemons}
    for one in order(waiting):
        takers = [daemon for daemon in daemons if fits(one, daemon.offer, strict=strict)]
        if not takers:
            continue
        taker = min(takers, key=lambda daemon: free[daemon.id])
        if one.job_id == job.job_id:
            return free[taker.id]
        free[taker.id] += timedelta(seconds=history.duration(one.job_id, share))
    return min((free[one.id] for one in daemons if fits(job, one.offer, strict=strict)), default=now)


def _rest(daemon: Daemon, history: History, share: float, now: datetime) -> timedelta:
    if daemon.job_id is None:
        return timedelta()
    spent = (now - daemon.job_started_at).total_seconds() if daemon.job_started_at else 0.0
    return timedelta(seconds=max(0.0, history.duration(daemon.job_id, share) - spent))
