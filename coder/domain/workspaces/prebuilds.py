"""How many prebuilt workspaces a preset should have, and what brings it there.

A preset names a number, and perhaps times with another: cron lines whose minute is `*` stand for stretches of time
(`* 8-18 * * 1-5`), in the preset's own zone. What is too old is replaced; what keeps failing is left alone until the
template has a new version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from coder.domain.foundation.schedules import cron_matches

AT_ONCE = 5
"""Builds queued for one preset in one turn."""


@dataclass(frozen=True, slots=True)
class Prebuilt:
    """One unclaimed workspace."""

    id: UUID
    created_at: datetime
    is_running: bool
    "Its start ended well."
    is_busy: bool
    "A build waits or runs."
    has_failed: bool
    is_outdated: bool = False
    "An administrator asked for new ones since it was made."


@dataclass(frozen=True, slots=True)
class Failures:
    """How builds of a preset failed last, in a row, and what that keeps from being built."""

    count: int = 0
    last_at: datetime | None = None
    limit: int = 3
    "So many in a row, and nothing more is built until there is a new version; 0 for no limit."
    backoff: timedelta = timedelta()
    "What each of them adds to the wait before the next build."
    lookback: timedelta = timedelta(hours=1)
    "Failures longer ago keep nobody waiting."

    @property
    def at_limit(self) -> bool:
        return 0 < self.limit <= self.count

    def waits(self, now: datetime) -> bool:
        """Whether it is too early for another try."""
        if self.last_at is None or not self.count or now - self.last_at > self.lookback:
            return False
        return now < self.last_at + self.count * self.backoff


NO_FAILURES = Failures()


@dataclass(frozen=True, slots=True)
class Plan:
    create: int = 0
    delete: tuple[UUID, ...] = ()


def desired_instances(base: int | None, schedules: Sequence[dict[str, Any]], zone: str, now: datetime) -> int:
    """The number of the first schedule that `now` falls into, else the preset's own."""
    if not schedules:
        return base or 0
    try:
        local = now.astimezone(ZoneInfo(zone or "UTC"))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        local = now
    for schedule in schedules:
        if cron_matches(str(schedule.get("cron") or schedule.get("cron_expression") or ""), local):
            return int(schedule.get("instances", 0))
    return base or 0


def plan(
    existing: Sequence[Prebuilt],
    desired: int,
    now: datetime,
    *,
    expire_after_seconds: int = 0,
    failures: Failures = NO_FAILURES,
) -> Plan:
    """What to do in this turn."""
    lifetime = timedelta(seconds=expire_after_seconds)
    expired = [
        one
        for one in existing
        if one.is_running and (one.is_outdated or (lifetime and now - one.created_at > lifetime))
    ]
    gone = {one.id for one in expired}
    living = [one for one in existing if one.id not in gone and not one.has_failed]
    surplus = sorted((one for one in living if one.is_running), key=lambda one: one.created_at)
    too_many = max(len(living) - desired, 0)
    delete = [*expired, *surplus[:too_many]]
    missing = max(desired - len(living), 0)
    if failures.at_limit or failures.waits(now):
        missing = 0
    return Plan(min(missing, AT_ONCE), tuple(one.id for one in delete if not one.is_busy))
