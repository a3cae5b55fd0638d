"""When peers are installed, kept and dropped: conversations with the peer table on a hand-moved clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

import pytest

from coder.tailnet.peers import (
    ABANDONED_TIMEOUT,
    HANDSHAKE_WAIT,
    LOST_TIMEOUT,
    Install,
    PeerNode,
    Peers,
    Remove,
    ReportReady,
    without_endpoints,
)

PEER = UUID(int=7)
NODE = PeerNode(b"k" * 32, b"d" * 32, 999, ("fd7a::1/128",), ("192.0.2.1:5",), 10.0)


def never(_key: bytes) -> None:
    return None


def test_a_destination_installs_at_once_and_says_so() -> None:
    peers = Peers("destination")
    assert peers.receive_node(PEER, NODE, 0.0) == [Install(PEER, NODE, keepalive=False), ReportReady(PEER)]
    assert peers.next_wake() is None


def test_a_source_waits_for_the_word_of_the_other_side() -> None:
    peers = Peers("source")
    assert peers.receive_node(PEER, NODE, 0.0) == []
    assert peers.next_wake() == HANDSHAKE_WAIT
    assert peers.receive_ready(PEER) == [Install(PEER, NODE, keepalive=True)]
    assert peers.next_wake() is None


def test_a_source_remembers_a_word_that_came_first() -> None:
    peers = Peers("source")
    assert peers.receive_ready(PEER) == []
    assert peers.receive_node(PEER, NODE, 0.0) == [Install(PEER, NODE, keepalive=True)]


def test_a_source_waits_five_seconds_counted_from_the_last_node() -> None:
    peers = Peers("source")
    peers.receive_node(PEER, NODE, 0.0)
    newer = replace(NODE, preferred_derp=1, as_of=11.0)
    peers.receive_node(PEER, newer, 3.0)
    assert peers.on_timer(6.0, never) == []
    assert peers.next_wake() == 8.0
    assert peers.on_timer(8.0, never) == [Install(PEER, newer, keepalive=False)]


def test_nodes_without_a_home_relay_are_ignored() -> None:
    assert Peers("destination").receive_node(PEER, replace(NODE, preferred_derp=0), 0.0) == []


def test_older_nodes_do_not_replace_newer_ones() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    older = replace(NODE, preferred_derp=2, as_of=9.0)
    assert peers.receive_node(PEER, older, 0.0)[0] == Install(PEER, NODE, keepalive=False)


def test_a_new_key_is_a_new_process() -> None:
    peers = Peers("source")
    peers.receive_node(PEER, NODE, 0.0)
    peers.receive_ready(PEER)
    fresh = replace(NODE, public_key=b"n" * 32, as_of=1.0)
    assert peers.receive_node(PEER, fresh, 1.0) == [Remove(NODE.public_key), Install(PEER, fresh, keepalive=True)]


def test_disconnected_peers_go_at_once() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    assert peers.receive_disconnected(PEER) == [Remove(NODE.public_key)]
    assert peers.receive_disconnected(PEER) == []
    assert peers.known() == []


def test_lost_peers_stay_while_their_tunnel_works() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    peers.receive_lost(PEER, 10.0)
    assert peers.next_wake() == 10.0 + LOST_TIMEOUT
    assert peers.on_timer(910.0, lambda _key: 800.0) == []
    assert peers.next_wake() == 800.0 + LOST_TIMEOUT
    assert peers.on_timer(1700.0, lambda _key: 800.0) == [Remove(NODE.public_key)]


def test_a_lost_peer_that_could_come_back_and_does_not_goes_whatever_its_handshakes() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    peers.lose_all(100.0)
    now = 100.0
    for _ in range(20):  # five hours without a coordinator: nobody could come back
        now = peers.next_wake() or 0.0
        assert peers.on_timer(now, lambda _key, now=now: now - 1.0) == []  # type: ignore[misc]
    back = now
    peers.coordinated(back)
    gone: list[object] = []
    while not gone:
        now = peers.next_wake() or 0.0
        gone = list(peers.on_timer(now, lambda _key, now=now: now - 1.0))  # type: ignore[misc]
    assert gone == [Remove(NODE.public_key)]
    assert ABANDONED_TIMEOUT <= now - back <= 3600.0


def test_a_lost_peer_that_returns_is_not_lost() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    peers.lose_all(10.0)
    peers.receive_node(PEER, NODE, 11.0)
    assert peers.next_wake() is None
    assert peers.on_timer(2000.0, never) == []


def test_endpoints_are_left_out_where_direct_paths_are_off() -> None:
    [action] = without_endpoints([Install(PEER, NODE, keepalive=True)])
    assert isinstance(action, Install)
    assert action.node.endpoints == ()


THIEF = UUID(int=8)
TAKEN = {
    "same key": replace(NODE, disco_key=b"e" * 32),
    "same disco key": replace(NODE, public_key=b"l" * 32),
    "both": NODE,
}


@pytest.mark.parametrize("role", ["source", "destination"])
@pytest.mark.parametrize("taken", TAKEN.values(), ids=TAKEN)
def test_a_second_owner_of_a_key_is_ignored(role: Literal["source", "destination"], taken: Any) -> None:
    peers = Peers(role)
    peers.receive_node(PEER, NODE, 0.0)
    assert peers.receive_node(THIEF, replace(taken, endpoints=("198.51.100.9:9",)), 1.0) == []
    assert peers.node_of(THIEF) is None
    assert peers.node_of(PEER) == NODE


def test_a_lost_peer_gives_way_to_the_same_program_under_a_new_id() -> None:
    """And what is said of the old id later does not touch the session."""
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    peers.receive_lost(PEER, 1.0)
    assert peers.receive_node(THIEF, NODE, 2.0) == [Install(THIEF, NODE, keepalive=False), ReportReady(THIEF)]
    assert peers.receive_disconnected(PEER) == []
    assert peers.receive_disconnected(THIEF) == [Remove(NODE.public_key)]
