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
    since_loss = [(at - 3600, delay) for at, delay in results]
    assert max(delay for since, delay in since_loss if since <= 8) <= RETURN_DELAY
    assert all(delay <= max(RETURN_DELAY, since / 4) for since, delay in since_loss if since < RETURN_WINDOW)
    late = [delay for since, delay in since_loss if since > RETURN_WINDOW]
    assert RETURN_DELAY < min(late) <= max(late) <= LAST_DELAY * (1 + reconnect_delays.JITTER)


def test_server_without_room_is_dialled_less_often() -> None:
    """It closes connections in place of an answer, as one that restarts."""

    def attempts(first: float, last: float) -> float:
        outages = [_delays_of_outage(last) for _ in range(50)]
        return sum(first < at - 3600 < last for outage in outages for at, _ in outage) / 50

    assert attempts(40, 60) < attempts(0, 20) / 2


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
