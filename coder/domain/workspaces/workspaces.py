"""Rules of workspaces: time to live, extending, autostart, shared ports, order of the list.

Names are in `foundation/names.py`, build states in `builds.py`. Refusals are values with the API's own words
(recorded).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from coder.domain.foundation.schedules import ScheduleError, WeeklySchedule, parse_weekly
from coder.domain.foundation.search import FieldRefusal

MIN_TTL_MS = 60_000
MAX_TTL_MS = 100 * 365 * 24 * 3600 * 1000
"""A century. Upstream has no limit; beyond this a deadline would overflow the calendar."""
TOO_LONG = "Must be at most a hundred years."
MIN_EXTEND = timedelta(minutes=30)
AUTOMATIC_UPDATES: tuple[Literal["always", "never"], ...] = ("always", "never")
"""Accepted values."""
SHARE_PROTOCOLS = ("http", "https")
LEVEL_REFUSED = "Port sharing level not allowed."
MIN_SHARED_PORT, MAX_SHARED_PORT = 9, 65535
MAX_SHARED_PORTS = 256
"""Ours: maximum shared ports of one workspace."""
_USE = frozenset({"read", "ssh", "application_connect", "start", "stop"})
WORKSPACE_ROLES: dict[str, frozenset[str]] = {
    # Delete is left out: these users could not recreate the workspace.
    "admin": _USE | {"create", "update", "share", "create_agent", "update_agent", "delete_agent"},
    "use": _USE,
}
"""Roles for sharing a workspace, and the actions each grants."""


def explain_ttl(ttl_ms: int | None) -> FieldRefusal | None:
    """Return why a time to live is not acceptable; None when it is. None and 0 both disable autostop."""
    if ttl_ms is None or ttl_ms == 0 or MIN_TTL_MS <= ttl_ms <= MAX_TTL_MS:
        return None
    if ttl_ms > MAX_TTL_MS:
        return FieldRefusal("ttl_ms", "time until shutdown must be at most a hundred years")
    return FieldRefusal("ttl_ms", "time until shutdown must be at least one minute")


def explain_deadline(now: datetime, deadline: datetime, max_deadline: datetime | None) -> str | None:
    """Return why a running workspace's deadline cannot be moved there; None when it can."""
    if deadline < now + MIN_EXTEND:
        return "Cannot extend workspace: new deadline must be at least 30 minutes in the future"
    if max_deadline is not None and deadline > max_deadline:
        return "Cannot extend workspace: new deadline is greater than max allowed deadline"
    return None


def parse_autostart(text: str) -> WeeklySchedule | FieldRefusal:
    """Return a schedule, or why the text is not one."""
    try:
        return parse_weekly(text)
    except ScheduleError as error:
        return FieldRefusal("schedule", str(error))


def next_start(schedule: str | None, now: datetime, *, allowed_days: int = 127) -> datetime | None:
    """Return the next autostart; None without a (readable) schedule or without an allowed day."""
    if not schedule:
        return None
    try:
        return parse_weekly(schedule, stored=True).next_after(now, allowed_days=allowed_days)
    except ScheduleError:
        return None


def subdomain_app_name(slug: str, workspace: str, owner: str) -> str:
    """Return the part of an app's host name before the wildcard domain."""
    return f"{slug}--{workspace}--{owner}"
