"""Bounds on what a coordinator may fill: remembered peers."""

from __future__ import annotations

from uuid import UUID

import pytest

from coder.tailnet import peers as peers_module
from coder.tailnet.peers import PeerNode, Peers


def node(number: int) -> PeerNode:
    return PeerNode(bytes(31) + bytes([number]), bytes(31) + bytes([number]), 1, (), ())


def test_peers_beyond_limit_are_ignored_until_others_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_module, "MAX_PEERS", 3)
    peers = Peers("destination")
    for number in range(1, 6):
        peers.receive_node(UUID(int=number), node(number), 0.0)
        peers.receive_ready(UUID(int=100 + number))
    assert [peer.int for peer in peers.known()] == [1, 101, 2]
    assert peers.receive_node(UUID(int=1), node(9), 1.0) != []
    peers.receive_disconnected(UUID(int=2))
    assert peers.receive_node(UUID(int=5), node(5), 2.0) != []
