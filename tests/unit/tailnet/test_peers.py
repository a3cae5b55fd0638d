"""Installation, retention and removal of peers: dialogs with the peer table on a manual clock."""

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


def test_destination_installs_and_confirms() -> None:
    peers = Peers("destination")
    assert peers.receive_node(PEER, NODE, 0.0) == [Install(PEER, NODE, keepalive=False), ReportReady(PEER)]
    assert peers.next_wake() is None


def test_source_waits_for_ready() -> None:
    peers = Peers("source")
    assert peers.receive_node(PEER, NODE, 0.0) == []
    assert peers.next_wake() == HANDSHAKE_WAIT
    assert peers.receive_ready(PEER) == [Install(PEER, NODE, keepalive=True)]
    assert peers.next_wake() is None


def test_source_remembers_early_ready() -> None:
    peers = Peers("source")
    assert peers.receive_ready(PEER) == []
    assert peers.receive_node(PEER, NODE, 0.0) == [Install(PEER, NODE, keepalive=True)]


def test_source_installs_after_five_seconds() -> None:
    peers = Peers("source")
    peers.receive_node(PEER, NODE, 0.0)
    newer = replace(NODE, preferred_derp=1, as_of=11.0)
    peers.receive_node(PEER, newer, 3.0)
    assert peers.on_timer(6.0, never) == []
    assert peers.next_wake() == 8.0
    assert peers.on_timer(8.0, never) == [Install(PEER, newer, keepalive=False)]


def test_node_without_home_is_ignored() -> None:
    assert Peers("destination").receive_node(PEER, replace(NODE, preferred_derp=0), 0.0) == []


def test_older_node_is_ignored() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    older = replace(NODE, preferred_derp=2, as_of=9.0)
    assert peers.receive_node(PEER, older, 0.0)[0] == Install(PEER, NODE, keepalive=False)


def test_new_key_replaces_session() -> None:
    peers = Peers("source")
    peers.receive_node(PEER, NODE, 0.0)
    peers.receive_ready(PEER)
    fresh = replace(NODE, public_key=b"n" * 32, as_of=1.0)
    assert peers.receive_node(PEER, fresh, 1.0) == [Remove(NODE.public_key), Install(PEER, fresh, keepalive=True)]


def test_disconnected_peer_is_removed() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    assert peers.receive_disconnected(PEER) == [Remove(NODE.public_key)]
    assert peers.receive_disconnected(PEER) == []
    assert peers.known() == []


def test_lost_peer_stays_while_used() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    peers.receive_lost(PEER, 10.0)
    assert peers.next_wake() == 10.0 + LOST_TIMEOUT
    assert peers.on_timer(910.0, lambda _key: 800.0) == []
    assert peers.next_wake() == 800.0 + LOST_TIMEOUT
    assert peers.on_timer(1700.0, lambda _key: 800.0) == [Remove(NODE.public_key)]


def test_abandoned_peer_is_removed() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    peers.mark_all_lost(100.0)
    now = 100.0
    for _ in range(20):  # five hours without a coordinator: no peer could return
        now = peers.next_wake() or 0.0
        assert peers.on_timer(now, lambda _key, now=now: now - 1.0) == []  # type: ignore[misc]
    back = now
    peers.mark_coordinated(back)
    gone: list[object] = []
    while not gone:
        now = peers.next_wake() or 0.0
        gone = list(peers.on_timer(now, lambda _key, now=now: now - 1.0))  # type: ignore[misc]
    assert gone == [Remove(NODE.public_key)]
    assert ABANDONED_TIMEOUT <= now - back <= 3600.0


def test_returned_peer_is_not_lost() -> None:
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    peers.mark_all_lost(10.0)
    peers.receive_node(PEER, NODE, 11.0)
    assert peers.next_wake() is None
    assert peers.on_timer(2000.0, never) == []


def test_disabled_direct_drops_endpoints() -> None:
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
def test_second_key_owner_is_ignored(role: Literal["source", "destination"], taken: Any) -> None:
    peers = Peers(role)
    peers.receive_node(PEER, NODE, 0.0)
    assert peers.receive_node(THIEF, replace(taken, endpoints=("198.51.100.9:9",)), 1.0) == []
    assert peers.node_of(THIEF) is None
    assert peers.node_of(PEER) == NODE


def test_lost_peer_yields_to_new_id() -> None:
    """Later messages about the old id do not affect the session."""
    peers = Peers("destination")
    peers.receive_node(PEER, NODE, 0.0)
    peers.receive_lost(PEER, 1.0)
    assert peers.receive_node(THIEF, NODE, 2.0) == [Install(THIEF, NODE, keepalive=False), ReportReady(THIEF)]
    assert peers.receive_disconnected(PEER) == []
    assert peers.receive_disconnected(THIEF) == [Remove(NODE.public_key)]
