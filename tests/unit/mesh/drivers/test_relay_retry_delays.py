"""Delays between a node's attempts to reach its relay."""

from __future__ import annotations

from coder.mesh.drivers.derp_connection import (
    LATE_RETRY_DELAY,
    MAX_RETRY_DELAY,
    MIN_RETRY_DELAY,
    RETURN_WINDOW,
    RetryDelays,
)


def _delays(seconds: float, count: int) -> list[float]:
    """Return the delays after failed attempts of so many seconds each."""
    delays = RetryDelays()
    return [delays.after(seconds, was_connected=False) for _ in range(count)]


def test_restarting_relay_is_dialled_often() -> None:
    assert _delays(0.0, 1)[0] <= MIN_RETRY_DELAY
    assert max(_delays(0.0, 20)) <= MAX_RETRY_DELAY


def test_absent_relay_is_dialled_rarely() -> None:
    assert _delays(0.0, round(4 * RETURN_WINDOW / MIN_RETRY_DELAY))[-1] >= LATE_RETRY_DELAY / 2


def test_overloaded_relay_is_dialled_rarely() -> None:
    assert _delays(10.0, 4)[-1] >= LATE_RETRY_DELAY / 2


def test_connection_that_lived_ends_the_delays() -> None:
    delays = RetryDelays()
    for _ in range(10):
        delays.after(10.0, was_connected=False)
    assert delays.after(3600.0, was_connected=True) <= MIN_RETRY_DELAY
