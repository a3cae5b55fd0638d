"""Delays between a node's attempts to reach its relay."""

from __future__ import annotations

from coder.mesh.drivers.derp_connection import (
    LATE_RETRY_DELAY,
    MAX_RETRY_DELAY,
    MIN_RETRY_DELAY,
    RetryDelays,
    requested_delay,
)
from coder.mesh.errors import RelayError


def _delays(seconds: float, count: int) -> list[float]:
    """Return the delays after failed attempts of so many seconds each."""
    delays = RetryDelays()
    return [delays.after(seconds, was_connected=False) for _ in range(count)]


def test_restarting_relay_is_dialled_often() -> None:
    assert _delays(0.0, 1)[0] <= MIN_RETRY_DELAY
    delays, since = _delays(0.0, 20), 0.0
    for delay in delays:
        since += delay
        assert delay <= max(MAX_RETRY_DELAY, since / 4)


def test_absent_relay_is_dialled_rarely() -> None:
    assert _delays(0.0, 100)[-1] >= LATE_RETRY_DELAY / 2


def test_request_of_relay_wins() -> None:
    delays = RetryDelays()
    assert delays.after(0.0, was_connected=True, requested=30.0) == 30.0
    error = ExceptionGroup("", [OSError(), RelayError("", retry_after=7.0)])
    assert (requested_delay(error), requested_delay(OSError())) == (7.0, 0.0)


def test_overloaded_relay_is_dialled_rarely() -> None:
    assert _delays(10.0, 4)[-1] >= LATE_RETRY_DELAY / 2


def test_connection_that_lived_ends_the_delays() -> None:
    delays = RetryDelays()
    for _ in range(10):
        delays.after(10.0, was_connected=False)
    assert delays.after(3600.0, was_connected=True) <= MIN_RETRY_DELAY
