"""Reconciliation of prebuilt workspaces: the desired number for a preset, and the builds to reach it.

A preset has a number, and optional schedules with other numbers: cron lines whose minute is `*` denote time ranges (`*
8-18 * * 1-5`), in the preset's own zone. Expired prebuilds are replaced; a preset whose builds keep failing is paused
until the template has a new version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from coder.base.json_types import Json
from coder.domain.foundation.schedules import cron_matches

AT_ONCE = 5
"""Builds queued for one preset in one turn."""


@dataclass(frozen=True, slots=True)
class Prebuilt:
    """Unclaimed prebuilt workspace."""

    id: UUID
    created_at: datetime
    is_running: bool
    """Whether its start succeeded."""
    is_busy: bool
    """Whether a build is pending or running."""
    has_failed: bool
    is_outdated: bool = False
    """Whether an administrator requested new ones since its creation."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Consecutive failed builds of a preset, and the resulting limits."""

    count: int = 0
    last_at: datetime | None = None
    limit: int = 3
    """Consecutive failures after which builds stop until there is a new version; 0 for no limit."""
    backoff: timedelta = timedelta()
    """Wait before the next build, added per failure."""
    lookback: timedelta = timedelta(hours=1)
    """Age after which a failure is ignored."""

    @property
    def at_limit(self) -> bool:
        return 0 < self.limit <= self.count

    def waits(self, now: datetime) -> bool:
        """Return whether it is too early for a retry."""
        if self.last_at is None or not self.count or now - self.last_at > self.lookback:
            return False
        return now < self.last_at + self.count * self.backoff


NO_FAILURES = Failures()


@dataclass(frozen=True, slots=True)
class Plan:
    create: int = 0
    delete: tuple[UUID, ...] = ()


def desired_instances(base: int | None, schedules: Sequence[Mapping[str, Json]], zone: str, now: datetime) -> int:
    """Return the number of the first schedule that matches `now`, else the preset's own."""
    if not schedules:
        return base or 0
    try:
        local = now.astimezone(ZoneInfo(zone or "UTC"))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        local = now
    for schedule in schedules:
        if cron_matches(str(schedule.get("cron") or schedule.get("cron_expression") or ""), local):
            instances = schedule.get("instances", 0)
            return int(instances) if isinstance(instances, int | float | str) else 0
    return base or 0


def plan(
    existing: Sequence[Prebuilt],
    desired: int,
    now: datetime,
    *,
    expire_after_seconds: int = 0,
    failures: Failures = NO_FAILURES,
) -> Plan:
    """Return the plan for this turn."""
    lifetime = timedelta(seconds=expire_after_seconds)
    expired = [
        item
        for item in existing
        if item.is_running and (item.is_outdated or (lifetime and now - item.created_at > lifetime))
    ]
    expired_ids = {item.id for item in expired}
    living = [item for item in existing if item.id not in expired_ids and not item.has_failed]
    surplus = sorted((item for item in living if item.is_running), key=lambda item: item.created_at)
    too_many = max(len(living) - desired, 0)
    delete = [*expired, *surplus[:too_many]]
    missing = max(desired - len(living), 0)
    if failures.at_limit or failures.waits(now):
        missing = 0
    return Plan(min(missing, AT_ONCE), tuple(item.id for item in delete if not item.is_busy))
