"""Delays between an agent's attempts."""

from __future__ import annotations

import pytest

from coder.agent import reconnect_delays
from coder.agent.reconnect_delays import LAST_DELAY, RETURN_DELAY, RETURN_WINDOW, ReconnectDelays


def _delays_of_outage(seconds: float) -> list[tuple[float, float]]:
    """Return time and delay of each attempt after a connection of an hour was lost."""
    delays, now = ReconnectDelays(), 3600.0
    results = [(now, delays.after(0.0, now, was_served=True))]
    while results[-1][0] < 3600 + seconds:
        now += results[-1][1]
        results.append((now, delays.after(now, now, was_served=False)))
    return results


def test_delays_grow_when_outage_lasts() -> None:
    results = _delays_of_outage(300)
    early = [delay for at, delay in results if at < 3600 + RETURN_WINDOW]
    late = [delay for at, delay in results if at > 3600 + RETURN_WINDOW]
    assert max(early) <= RETURN_DELAY < min(late)
    assert max(late) <= LAST_DELAY * (1 + reconnect_delays.JITTER)


def test_agents_lost_together_spread() -> None:
    third = {round(_delays_of_outage(10)[5][0], 3) for _ in range(20)}
    assert len(third) > 15


@pytest.mark.parametrize(("requested", "least"), [(0.0, 0.0), (30.0, 30.0)])
def test_server_request_wins(requested: float, least: float) -> None:
    assert ReconnectDelays().after(0.0, 1.0, was_served=True, requested=requested) >= least


def test_overloaded_server_is_dialled_less_often() -> None:
    """Attempts that time out after the loss of a server, beside attempts that a restarting server refuses at once."""

    def tenth_delay(seconds: float) -> float:
        delays, now = ReconnectDelays(), 3600.0
        delay = delays.after(0.0, now, was_served=True)
        for _ in range(9):
            now += delay
            delay, now = delays.after(now, now + seconds, was_served=False), now + seconds
        return delay

    assert tenth_delay(0.0) <= RETURN_DELAY < LAST_DELAY * (1 - reconnect_delays.JITTER) <= tenth_delay(5.0)
