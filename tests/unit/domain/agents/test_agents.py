from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coder.domain.agents.agents import agent_health, agent_status, environment_of, status_changes_at

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def facts(**changed: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "created_at": T0,
        "first_connected_at": None,
        "last_connected_at": None,
        "disconnected_at": None,
        "connection_timeout_seconds": 120,
    }
    return {**plain, **changed}


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def test_never_connected_turns_into_timeout() -> None:
    assert agent_status(at(119.9), **facts()) == "connecting"
    assert agent_status(at(120), **facts()) == "timeout", "it changes at the reported moment"
    assert agent_status(at(1e6), **facts(connection_timeout_seconds=0)) == "connecting"
    assert status_changes_at(**facts()) == at(120)


def test_silence_disconnects_after_thirty_seconds() -> None:
    seen = facts(first_connected_at=at(1), last_connected_at=at(10))
    assert agent_status(at(39.9), **seen) == "connected"
    assert agent_status(at(40), **seen) == "disconnected"
    assert status_changes_at(**seen) == at(40)


def test_closed_connection_disconnects_and_reconnects() -> None:
    closed = facts(first_connected_at=at(1), last_connected_at=at(10), disconnected_at=at(11))
    assert agent_status(at(11), **closed) == "disconnected"
    assert status_changes_at(**closed) is None
    again = {**closed, "last_connected_at": at(12)}
    assert agent_status(at(12), **again) == "connected"


@pytest.mark.parametrize(
    ("status", "lifecycle", "reason"),
    [
        ("connecting", "created", "agent has not yet connected"),
        ("timeout", "created", "agent is taking too long to connect"),
        ("connected", "starting", ""),
        ("connected", "ready", ""),
        ("connected", "start_timeout", ""),
        ("connected", "start_error", "agent startup script exited with an error"),
        ("disconnected", "ready", "agent has lost connection"),
        ("disconnected", "start_error", "agent has lost connection"),
        ("connected", "shutting_down", "agent is shutting down"),
        ("connected", "off", "agent is shutting down"),
        ("disconnected", "off", "agent is not running"),
    ],
)
def test_health_in_the_documented_order(status: str, lifecycle: str, reason: str) -> None:
    health = agent_health(status, lifecycle)
    assert (health.healthy, health.reason) == (reason == "", reason)


def test_environment_merging() -> None:
    extra = [("PATH", "/a", ""), ("PATH", ":/b", "append"), ("PATH", "/c:", "prepend"), ("X", "1", ""), ("X", "2", "")]
    assert environment_of({"X": "own"}, extra) == {"PATH": "/c:/a:/b", "X": "own"}
    with pytest.raises(ValueError, match="duplicate environment variable 'X'"):
        environment_of({}, [("X", "1", ""), ("X", "2", "error")])
