"""Rules of agents: connection status and health derived from stored rows (docs/protocol/agents.md#presence).

Neither is stored: both change with time alone, so every read computes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

CONNECTION_UPDATE_FREQUENCY = timedelta(seconds=15)
"""Interval at which an open connection writes `last_connected_at`."""

INACTIVE_DISCONNECT_TIMEOUT = timedelta(seconds=30)
"""Silence after which an agent counts as disconnected: twice the update frequency."""

MAX_LOGS_LENGTH = 1 << 20
"""Bytes of output kept per agent; one more byte closes the agent's log for good."""
MAX_LOG_SOURCES = 256
MAX_SOURCE_TEXT = 1024
"""Ours: log sources of one agent, including those of its scripts, and characters of a name or an icon. Every view of an
agent lists all of them."""
MIN_LINE_BYTES = 1
"""Ours: minimum size a line counts for, so that the number of empty lines is bounded. A larger minimum would be
visible: the sum is an agent's `logs_length`, as recorded."""

AgentStatus = Literal["connecting", "connected", "disconnected", "timeout"]
STATUSES: tuple[AgentStatus, ...] = get_args(AgentStatus)
LIFECYCLES = (
    "created",
    "starting",
    "start_timeout",
    "start_error",
    "ready",
    "shutting_down",
    "shutdown_timeout",
    "shutdown_error",
    "off",
)

_SHUTTING_DOWN = frozenset({"shutting_down", "shutdown_timeout", "shutdown_error", "off"})


@dataclass(frozen=True, slots=True)
class AgentHealth:
    healthy: bool
    reason: str = ""
    "Empty when healthy."


HEALTHY = AgentHealth(True)


def agent_status(
    now: datetime,
    *,
    created_at: datetime,
    first_connected_at: datetime | None,
    last_connected_at: datetime | None,
    disconnected_at: datetime | None,
    connection_timeout_seconds: int,
    inactive_timeout: timedelta = INACTIVE_DISCONNECT_TIMEOUT,
) -> AgentStatus:
    """Return the agent's status, an item of STATUSES."""
    if first_connected_at is None or last_connected_at is None:
        elapsed = now - created_at
        expired = connection_timeout_seconds > 0 and elapsed >= timedelta(seconds=connection_timeout_seconds)
        return "timeout" if expired else "connecting"
    if disconnected_at is not None and disconnected_at > last_connected_at:
        return "disconnected"
    return "disconnected" if now - last_connected_at >= inactive_timeout else "connected"


def status_changes_at(
    *,
    created_at: datetime,
    first_connected_at: datetime | None,
    last_connected_at: datetime | None,
    disconnected_at: datetime | None,
    connection_timeout_seconds: int,
    inactive_timeout: timedelta = INACTIVE_DISCONNECT_TIMEOUT,
) -> datetime | None:
    """Return when the status will change without a write: the time a watcher has to wake up at."""
    if first_connected_at is None or last_connected_at is None:
        seconds = connection_timeout_seconds
        return created_at + timedelta(seconds=seconds) if seconds > 0 else None
    if disconnected_at is not None and disconnected_at > last_connected_at:
        return None
    return last_connected_at + inactive_timeout


def agent_health(status: str, lifecycle: str) -> AgentHealth:
    """Return the agent's health. Evaluated in this order; a start timeout of the scripts leaves an agent healthy."""
    if status != "connected" and lifecycle == "off":
        return AgentHealth(False, "agent is not running")
    if status == "timeout":
        return AgentHealth(False, "agent is taking too long to connect")
    if status == "disconnected":
        return AgentHealth(False, "agent has lost connection")
    if lifecycle == "start_error":
        return AgentHealth(False, "agent startup script exited with an error")
    if lifecycle in _SHUTTING_DOWN:
        return AgentHealth(False, "agent is shutting down")
    if status == "connecting":
        return AgentHealth(False, "agent has not yet connected")
    return HEALTHY


def search_statuses(value: str) -> tuple[str, ...]:
    """Return the agent statuses that match a `healthy:` search: `true` connected, `false` disconnected or timed out."""
    return ("connected",) if value == "true" else ("disconnected", "timeout")


def environment_of(agent_env: dict[str, str], extra: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return an agent's environment: `extra` as (name, value, merge strategy) in order, then the agent's own.

    Strategies: `replace` (or empty), `append`, `prepend`, `error`. Raises ValueError for a conflict under `error`.
    """
    merged: dict[str, str] = {}
    for name, value, strategy in extra:
        if name not in merged or strategy in {"", "replace"}:
            merged[name] = value
        elif strategy == "append":
            merged[name] += value
        elif strategy == "prepend":
            merged[name] = value + merged[name]
        else:
            raise ValueError(f"duplicate environment variable {name!r}")
    return {**merged, **agent_env}


# Never listed: the agent's own services, and ports that speak no HTTP (docs/protocol/agents.md#limits).
HIDDEN_PORTS = frozenset(
    {*range(9), 20, 21, 22, 23, 25, 53, 110, 143, 179, 389, 465, 587, 636, 989, 990, 993, 995}
    | {3306, 3389, 5432, 27017, 27018, 27019, 28017}
)
