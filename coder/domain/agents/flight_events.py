"""What happened to a machine between two looks at it: the events of an agent's flight recorder.

Lengths come from the clock that counts sleep and that nobody sets, never from the wall clock: setting the clock must
not look like sleep, nor the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

STOOD_STILL = 10.0
"""Ours: seconds longer than planned between two looks. The server gives a silent agent up after 12 to 17."""
CLOCK_JUMP = 5.0
"""Ours: seconds the wall clock moved against the other one."""

Ended = Literal["stopped", "upgraded", "died"]
"""How a process ended: as it should, by going on as another program, or without a word."""
KINDS = (
    "started",
    "connected",
    "disconnected",
    "dial_failed",
    "stood_still",
    "clock_jumped",
    "network_changed",
    "stopped",
    "upgraded",
)


@dataclass(frozen=True, slots=True)
class Look:
    """A machine at one moment. What the system cannot tell is empty or None."""

    wall: float
    "Seconds since 1970."
    running: float
    "Seconds on a clock that counts sleep and is never set."
    awake: float
    "Seconds on a clock that stands still while the machine sleeps."
    boot_id: str = ""
    oom_kills: int | None = None
    addresses: tuple[str, ...] = ()
    "Those that are not loopback."


@dataclass(frozen=True, slots=True)
class FlightEvent:
    """Something that may explain a disconnect."""

    at: float
    kind: str
    data: dict[str, Any]


def between(before: Look, after: Look, planned: float) -> list[FlightEvent]:
    """What one process sees when it looks again after `planned` seconds."""
    found: list[FlightEvent] = []
    took = after.running - before.running
    if took - planned >= STOOD_STILL:
        asleep = max(took - (after.awake - before.awake), 0.0)
        data = {"seconds": round(took, 1), "machine_slept": asleep >= (took - planned) / 2}
        found.append(FlightEvent(after.wall, "stood_still", data))
    jump = (after.wall - before.wall) - took
    if abs(jump) >= CLOCK_JUMP:
        found.append(FlightEvent(after.wall, "clock_jumped", {"seconds": round(jump, 1)}))
    if after.addresses != before.addresses:
        changed = {"before": ", ".join(before.addresses), "after": ", ".join(after.addresses)}
        found.append(FlightEvent(after.wall, "network_changed", dict(changed)))
    return found


def started(last: Look | None, now: Look, ended: Ended) -> FlightEvent:
    """The first event of a process; `last` is what the one before it saw last."""
    if last is None:
        return FlightEvent(now.wall, "started", {"previous": "none"})
    same_boot = not last.boot_id or not now.boot_id or last.boot_id == now.boot_id
    data: dict[str, Any] = {
        "previous": ended,
        "same_boot": same_boot,
        "last_alive": last.wall,
    }
    if same_boot and last.oom_kills is not None and now.oom_kills is not None:
        data["oom_kills"] = now.oom_kills - last.oom_kills
    return FlightEvent(now.wall, "started", data)
