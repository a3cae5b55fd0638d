"""Events of an agent's flight recorder: changes of a machine between two samples.

Durations come from the clock that includes sleep and is never set, never from the wall clock: setting the clock must
not be mistaken for sleep, nor the reverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from coder.base.json_types import JsonObject

STOOD_STILL = 5.0
"""Ours: seconds a sample may be late. The server closes the connection of an agent that was silent for 12 s, the agent
its own after 10. A suspension that outlasts either makes the next sample so late, wherever between two samples it
began: unnoticed, the server's close would look like a proxy's."""
CLOCK_JUMP = 5.0
"""Ours: seconds by which the wall clock moved against the other clock."""

Ended = Literal["stopped", "upgraded", "died"]
"""Ways a process ended: cleanly, by replacing itself with another program, or without a record."""
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
class Sample:
    """A sample of a machine at one moment. Values the system cannot report are empty or None."""

    wall: float
    "Seconds since 1970."
    running: float
    """Seconds on a clock that includes sleep and is never set."""
    awake: float
    """Seconds on a clock that stops while the machine sleeps."""
    boot_id: str = ""
    oom_kills: int | None = None
    addresses: tuple[str, ...] = ()
    """Addresses that are not loopback."""


@dataclass(frozen=True, slots=True)
class FlightEvent:
    """An event that may explain a disconnect."""

    at: float
    kind: str
    data: JsonObject


def between(before: Sample, after: Sample, planned: float) -> list[FlightEvent]:
    """Return the events between two samples of one process, `planned` seconds apart."""
    results: list[FlightEvent] = []
    took = after.running - before.running
    if took - planned >= STOOD_STILL:
        asleep = max(took - (after.awake - before.awake), 0.0)
        data: JsonObject = {"seconds": round(took, 1), "machine_slept": asleep >= (took - planned) / 2}
        results.append(FlightEvent(after.wall, "stood_still", data))
    jump = (after.wall - before.wall) - took
    if abs(jump) >= CLOCK_JUMP:
        results.append(FlightEvent(after.wall, "clock_jumped", {"seconds": round(jump, 1)}))
    if after.addresses != before.addresses:
        changed = {"before": ", ".join(before.addresses), "after": ", ".join(after.addresses)}
        results.append(FlightEvent(after.wall, "network_changed", dict(changed)))
    return results


def started(last: Sample | None, now: Sample, ended: Ended) -> FlightEvent:
    """Return the first event of a process; `last` is the previous process's last sample."""
    if last is None:
        return FlightEvent(now.wall, "started", {"previous": "none"})
    same_boot = not last.boot_id or not now.boot_id or last.boot_id == now.boot_id
    data: JsonObject = {
        "previous": ended,
        "same_boot": same_boot,
        "last_alive": last.wall,
    }
    if same_boot and last.oom_kills is not None and now.oom_kills is not None:
        data["oom_kills"] = now.oom_kills - last.oom_kills
    return FlightEvent(now.wall, "started", data)
