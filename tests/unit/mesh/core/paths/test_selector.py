"""The path of a peer, driven by events on a simulated clock."""

import itertools

import pytest

from coder.mesh.core.paths.selector import (
    DOUBT,
    TABLE,
    TRUST,
    Measured,
    PathEvent,
    PathState,
    Selector,
    address_points,
    is_better,
)

LAN = ("192.168.1.9", 4000)
WAN = ("203.0.113.9", 4000)
OTHER = ("198.51.100.4", 4000)


def test_relay_carries_data_until_answer() -> None:
    path = Selector()
    assert path.route(0) == (None, True)
    path.on_pong(Measured(WAN, 0.02), 1.0)
    assert path.route(1.0) == (WAN, False)
    assert path.next_wake() == 1.0 + TRUST


def test_trust_ends_in_doubt() -> None:
    path = Selector()
    path.on_pong(Measured(WAN, 0.02), 0.0)
    assert path.route(TRUST) == (WAN, True), "even before the timer ran, an expired address is used with the relay"
    path.on_timer(TRUST)
    assert path.state is PathState.DOUBTFUL
    assert path.route(TRUST) == (WAN, True)
    path.on_timer(TRUST + DOUBT)
    assert path.route(TRUST + DOUBT) == (None, True)
    assert path.next_wake() is None


def test_pong_renews_trust() -> None:
    path = Selector()
    path.on_pong(Measured(WAN, 0.02), 0.0)
    path.on_pong(Measured(WAN, 0.03), 3.0)
    path.on_timer(TRUST)
    assert path.state is PathState.DIRECT
    assert path.best == Measured(WAN, 0.03)


def test_answering_address_wins_in_doubt() -> None:
    path = Selector()
    path.on_pong(Measured(LAN, 0.001), 0.0)
    path.on_pong(Measured(WAN, 0.2), 1.0)
    assert path.route(1.0) == (LAN, False)
    path.on_heartbeat_lost(LAN, 4.0)
    assert path.route(4.0) == (LAN, True)
    path.on_pong(Measured(WAN, 0.2), 4.1)
    assert path.route(4.1) == (WAN, False)


def test_losing_other_address_changes_nothing() -> None:
    path = Selector()
    path.on_pong(Measured(LAN, 0.001), 0.0)
    path.on_heartbeat_lost(WAN, 1.0)
    path.on_sending_failed(WAN, 1.0)
    path.on_withdrawn(WAN, 1.0)
    assert path.route(1.0) == (LAN, False)
    path.on_withdrawn(LAN, 1.0)
    assert path.route(1.0) == (None, True)


@pytest.mark.parametrize(
    ("ip", "points"),
    [
        ("127.0.0.1", 50),
        ("::1", 60),
        ("10.1.2.3", 20),
        ("172.16.0.1", 20),
        ("172.32.0.1", 0),
        ("192.168.0.1", 20),
        ("fd00::1", 30),
        ("2001:db8::1", 10),
        ("203.0.113.9", 0),
    ],
)
def test_address_points(ip: str, points: int) -> None:
    assert address_points(ip) == points


def test_scoring() -> None:
    assert is_better(Measured(LAN, 0.010), Measured(WAN, 0.010))
    assert not is_better(Measured(WAN, 0.010), Measured(LAN, 0.010))
    assert is_better(Measured(WAN, 0.010), Measured(LAN, 0.015)), "33 % faster beats 20 points"
    assert not is_better(Measured(WAN, 0.0100), Measured(OTHER, 0.0101)), "a lead of one percent is noise"
    assert not is_better(Measured(WAN, 0.001), Measured(WAN, 0.010)), "an address does not compete with itself"


def test_table_is_closed() -> None:
    """The table has a row for every event of each state."""
    impossible = {(PathState.RELAYED, event) for event in PathEvent if event is not PathEvent.PONG_FROM_BETTER} | {
        (PathState.DIRECT, PathEvent.DOUBT_ENDED),
        (PathState.DOUBTFUL, PathEvent.TRUST_ENDED),
    }
    assert set(TABLE) == set(itertools.product(PathState, PathEvent)) - impossible
