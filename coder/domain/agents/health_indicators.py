"""Health indicators of a machine: host, agent, path. Each is made of values with a time and a status.

A value that is missing or stale is `unknown`, and an indicator with such a value is never good.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from coder.base.duration import format_duration

Standing = Literal["good", "warning", "bad", "unknown"]
_RANK: dict[Standing, int] = {"good": 0, "unknown": 1, "warning": 2, "bad": 3}
STALE = timedelta(seconds=90)
"""Ours: three times the interval of an agent's readings."""


@dataclass(frozen=True, slots=True)
class Value:
    """A reading with its status."""

    name: str
    text: str
    standing: Standing
    at: datetime | None
    """Time of the reading; None if there was none."""


@dataclass(frozen=True, slots=True)
class HealthIndicator:
    standing: Standing
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """Thresholds from which a number is a warning, and from which it is critical."""

    warning: float
    bad: float


LIMITS = {
    "disk": Limit(90, 97),
    "memory": Limit(90, 97),
    "memory pressure": Limit(10, 40),
    "load": Limit(2, 5),
    "clock": Limit(5, 60),
    "restarts": Limit(2, 10),
    "round trip": Limit(300, 1500),
    "loss": Limit(1, 20),
}
"""Ours: percent of the space; percent of the last ten seconds in which a process waited for memory; runnable processes
per core; seconds of clock offset; new processes in a day; milliseconds to the server; percent of pings without an
answer."""
FRESH_BOOT = timedelta(minutes=10)


def measured(name: str, number: float | None, text: str, at: datetime | None, now: datetime) -> Value:
    """Judge a number by `LIMITS`."""
    return judged(name, _by_limit(LIMITS[name], number), text, at, now)


def judged(name: str, standing: Standing, text: str, at: datetime | None, now: datetime) -> Value:
    """Return a value whose status holds as long as its reading is fresh."""
    if at is None:
        return Value(name, "", "unknown", None)
    return Value(name, text, standing if now - at <= STALE else "unknown", at)


def _by_limit(limit: Limit, number: float | None) -> Standing:
    if number is None:
        return "unknown"
    if number >= limit.bad:
        return "bad"
    return "warning" if number >= limit.warning else "good"


def indicator(values: Iterable[Value]) -> HealthIndicator:
    """Return the indicator with the status of its worst value; unknown without values."""
    result = tuple(values)
    standings: list[Standing] = [value.standing for value in result]
    return HealthIndicator(max(standings, key=_RANK.__getitem__, default="unknown"), result)


@dataclass(frozen=True, slots=True)
class HostReading:
    """Reading an agent reports about its machine; None for values it cannot report."""

    disk_used: int | None = None
    disk_total: int | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    memory_pressure: float | None = None
    load: float | None = None
    cores: int | None = None
    uptime_s: float | None = None
    clock_off_s: float | None = None
    reboot_pending: bool | None = None


def host_indicator(reading: HostReading | None, at: datetime | None, now: datetime) -> HealthIndicator:
    """Judge disk, memory, load, uptime and clock, and pressure and a pending reboot where the system tells them."""
    read = reading or HostReading()
    values = [
        _share("disk", read.disk_used, read.disk_total, at, now),
        _share("memory", read.memory_used, read.memory_total, at, now),
    ]
    if read.memory_pressure is not None:
        values.append(measured("memory pressure", read.memory_pressure, f"{read.memory_pressure:.1f} %", at, now))
    per_core = read.load / read.cores if read.load is not None and read.cores else None
    values.append(measured("load", per_core, "" if per_core is None else f"{per_core:.2f} per core", at, now))
    values.append(_boot(read.uptime_s, at, now))
    if read.reboot_pending is not None:
        words: tuple[Standing, str] = ("warning", "yes") if read.reboot_pending else ("good", "no")
        values.append(judged("pending reboot", *words, at, now))
    off = read.clock_off_s
    values.append(measured("clock", None if off is None else abs(off), "" if off is None else f"{off:+.1f} s", at, now))
    return indicator(values)


def _share(name: str, used: int | None, total: int | None, at: datetime | None, now: datetime) -> Value:
    percent = 100 * used / total if used is not None and total else None
    return measured(name, percent, "" if percent is None else f"{percent:.0f} % of {_size(total or 0)}", at, now)


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def _boot(uptime: float | None, at: datetime | None, now: datetime) -> Value:
    if uptime is None:
        return judged("reboot", "unknown", "", at, now)
    fresh = uptime < FRESH_BOOT.total_seconds()
    passed = format_duration(timedelta(seconds=int(uptime)))
    if uptime >= 3600:  # seconds of hours say nothing
        passed = passed[: passed.index("m") + 1]
    return judged("reboot", "warning" if fresh else "good", f"{passed} ago", at, now)


def agent_indicator(
    *, version: str, server_version: str, connected: bool, last_seen: datetime | None, restarts: int, now: datetime
) -> HealthIndicator:
    """Judge the version against the server's, new processes in the last day, and the time last seen."""
    same = version.partition("+")[0] == server_version.partition("+")[0]
    version_standing: Standing = ("good" if same else "warning") if version else "unknown"
    seen = Value("heartbeat", "", "unknown", None)
    if last_seen is not None:
        seen = Value("heartbeat", "connected" if connected else "gone", "good" if connected else "bad", last_seen)
    return indicator(
        (
            Value("version", version, version_standing, last_seen if version else None),
            measured("restarts", float(restarts), f"{restarts} in 24 h", now if last_seen else None, now),
            seen,
        )
    )


@dataclass(frozen=True, slots=True)
class PathReading:
    """Reading of the path between an agent and its peers."""

    round_trip_ms: float | None = None
    loss_percent: float | None = None
    direct: int | None = None
    """Peers reached directly; None if the agent does not report it."""
    relayed: int | None = None


def path_indicator(
    reading: PathReading | None, at: datetime | None, peers_at: datetime | None, now: datetime, *, connected: bool
) -> HealthIndicator:
    """Judge round trip and loss between agent and server, and whether peers reach the agent directly.

    No peers is a known, good state. A measurement of a closed connection says nothing about the present.
    """
    read = reading or PathReading()
    at, peers_at = (at, peers_at) if connected else (None, None)
    trip, loss = read.round_trip_ms, read.loss_percent
    return indicator(
        (
            _way(read, peers_at, now),
            measured("round trip", trip, "" if trip is None else f"{trip:.0f} ms to the server", at, now),
            measured("loss", loss, "" if loss is None else f"{loss:.0f} %", at, now),
        )
    )


def _way(read: PathReading, at: datetime | None, now: datetime) -> Value:
    if read.direct is None or read.relayed is None:
        return judged("way", "unknown", "", at, now)
    if read.relayed:
        return judged("way", "warning", f"{read.relayed} relayed, {read.direct} direct", at, now)
    return judged("way", "good", f"{read.direct} direct" if read.direct else "no peers connected", at, now)
