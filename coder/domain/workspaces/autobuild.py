"""Automatic actions on workspaces: stop, start, make dormant, delete. One table-like function.

Order and conditions are upstream's (docs/protocol/rest.md#common-rules): autostop, autostart, stop after a failed
start, dormancy, deletion; the first that applies is the step. `now` is the turn's time, truncated to the full minute. A
deadline has passed when `now` equals it: deadlines of builds, dormancy and deletion alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from coder.domain.workspaces.builds import is_active
from coder.domain.workspaces.workspaces import next_start

DELETE_RETRY = timedelta(hours=24)
"""Delay before a failed deletion is retried."""

Reason = Literal["autostop", "autostart", "dormancy", "autodelete"]


@dataclass(frozen=True, slots=True)
class AutobuildCandidate:
    """Inputs of the decision."""

    transition: str
    """Transition of the latest build, which the following three fields describe as well."""
    job_status: str
    job_completed_at: datetime | None
    build_created_at: datetime
    deadline: datetime | None
    owner_status: str
    prebuilt: bool
    """Whether the workspace is an unclaimed prebuild: only the deadline applies to it."""
    autostart_schedule: str | None
    last_used_at: datetime
    dormant_at: datetime | None
    deleting_at: datetime | None
    allow_autostart: bool = True
    autostart_days: int = 127
    failure_ttl_ms: int = 0
    dormant_after_ms: int = 0
    delete_after_ms: int = 0


@dataclass(frozen=True, slots=True)
class AutobuildStep:
    """Automatic step. `transition` None: no build, the workspace only becomes dormant."""

    transition: Literal["start", "stop", "delete"] | None
    reason: Reason
    falls_asleep: bool = False


def next_step(candidate: AutobuildCandidate, now: datetime) -> AutobuildStep | None:
    """Return the step due at `now`, if any."""
    if is_active(candidate.job_status):
        return None
    for due, step in _RULES:
        if due(candidate, now):
            if step.falls_asleep and candidate.transition == "start":
                return AutobuildStep("stop", "dormancy", falls_asleep=True)
            return step
    return None


def _autostops(c: AutobuildCandidate, now: datetime) -> bool:
    if c.job_status == "failed" or c.dormant_at is not None or c.transition != "start":
        return False
    if c.owner_status == "suspended":
        return True
    return c.deadline is not None and c.deadline <= now


def _autostarts(c: AutobuildCandidate, now: datetime) -> bool:
    if c.owner_status != "active" or c.prebuilt or not c.allow_autostart:
        return False
    if c.job_status == "failed" or c.dormant_at is not None or c.transition != "stop":
        return False
    due = next_start(c.autostart_schedule, c.build_created_at, allowed_days=c.autostart_days)
    return due is not None and due <= now


def _failed(c: AutobuildCandidate, now: datetime) -> bool:
    if not c.failure_ttl_ms or c.job_status != "failed" or c.transition != "start" or c.job_completed_at is None:
        return False
    return now - c.job_completed_at >= timedelta(milliseconds=c.failure_ttl_ms)


def _becomes_dormant(c: AutobuildCandidate, now: datetime) -> bool:
    if c.prebuilt or c.dormant_at is not None or not c.dormant_after_ms:
        return False
    return now - c.last_used_at >= timedelta(milliseconds=c.dormant_after_ms)


def _is_deleted(c: AutobuildCandidate, now: datetime) -> bool:
    if c.prebuilt or c.dormant_at is None or c.deleting_at is None or not c.delete_after_ms or now < c.deleting_at:
        return False
    if c.transition == "delete" and c.job_status == "failed" and c.job_completed_at is not None:
        return now - c.job_completed_at >= DELETE_RETRY
    return True


_RULES: tuple[tuple[Callable[[AutobuildCandidate, datetime], bool], AutobuildStep], ...] = (
    (_autostops, AutobuildStep("stop", "autostop")),
    (_autostarts, AutobuildStep("start", "autostart")),
    (_failed, AutobuildStep("stop", "autostop")),
    (_becomes_dormant, AutobuildStep(None, "dormancy", falls_asleep=True)),
    (_is_deleted, AutobuildStep("delete", "autodelete")),
)


def in_words(milliseconds: int) -> str:
    """Return a long time for users: `3 days`, `36 hours`."""
    days, hours = divmod(milliseconds // 3_600_000, 24)
    return f"{days} days" if days > 1 and not hours else f"{milliseconds // 3_600_000} hours"
