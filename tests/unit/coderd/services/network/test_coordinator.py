"""Coordinate streams around the pure coordinator: ends, floods and malformed requests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio
import trio.testing

from coder.coderd.rpc_endpoints.coordination import ClientConnection
from coder.coderd.services.network.coordinator import MAILBOX, Coordinator, PeerChecks, node_from_proto
from coder.domain.network.coordination_rules import FullAccess
from coder.mesh.core.paths.derpmap import DerpMap
from coder.net.websocket import WebSocketStream
from coder.rpc.calls import ServerCall
from coder.rpc.proto import tailnet_pb2
from coder.rpc.session import open_session

Request, Response = tailnet_pb2.CoordinateRequest, tailnet_pb2.CoordinateResponse
ONE, TWO = UUID(int=1), UUID(int=2)


class ScriptedCall(ServerCall[tailnet_pb2.CoordinateResponse, tailnet_pb2.CoordinateRequest]):
    """A ServerCall whose caller is the test; a `stuck` caller does not read."""

    def __init__(self, *, stuck: bool = False) -> None:
        self.requests, self._incoming_requests = trio.open_memory_channel[Any](1000)
        self.sent: list[Any] = []
        self.closed = trio.Event()
        self._stuck = stuck

    def __aiter__(self) -> Any:
        return self._incoming_requests

    async def send(self, message: Any) -> None:
        await (trio.sleep_forever() if self._stuck else trio.lowlevel.checkpoint())
        self.sent.append(message)

    async def close(self) -> None:
        self.closed.set()


@pytest.fixture
def coordinator() -> Coordinator:
    services = SimpleNamespace(relay_map=SimpleNamespace(current=DerpMap()))
    ctx: Any = SimpleNamespace(services=services)
    this_replica: Any = SimpleNamespace(id=uuid4())
    return Coordinator(ctx, this_replica)


def update_self(number: int) -> Any:
    return Request(update_self=Request.UpdateSelf(node=tailnet_pb2.Node(id=number, preferred_derp=1)))


def tunnel(peer: UUID) -> Any:
    return Request(add_tunnel=Request.Tunnel(id=peer.bytes))


async def test_second_stream_replaces_first(coordinator: Coordinator) -> None:
    first, second = ScriptedCall(), ScriptedCall()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.serve, first, ONE, FullAccess())
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(coordinator.serve, second, ONE, FullAccess())
        await first.closed.wait()
        assert [answer.error for answer in first.sent] == ["peer ID overwritten by new connection"]
        assert not second.closed.is_set()
        nursery.cancel_scope.cancel()


async def test_stuck_peer_is_dropped(coordinator: Coordinator) -> None:
    stuck, flooding = ScriptedCall(stuck=True), ScriptedCall()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.serve, stuck, ONE, FullAccess())
        nursery.start_soon(coordinator.serve, flooding, TWO, FullAccess())
        await stuck.requests.send(update_self(1))
        await stuck.requests.send(tunnel(TWO))
        await flooding.requests.send(tunnel(ONE))
        for number in range(MAILBOX + 10):
            await flooding.requests.send(update_self(number))
            await trio.testing.wait_all_tasks_blocked()
        kinds = [update.kind for answer in flooding.sent for update in answer.peer_updates]
        assert kinds == [1, 2]
        nursery.cancel_scope.cancel()


async def test_invalid_ids_close_stream(coordinator: Coordinator) -> None:
    call = ScriptedCall()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.serve, call, ONE, FullAccess())
        await call.requests.send(Request(add_tunnel=Request.Tunnel(id=b"short")))
        await call.closed.wait()
    assert call.sent[0].error.startswith("unable to convert bytes to UUID: ")


async def test_refused_tunnel_closes_stream(coordinator: Coordinator) -> None:
    async def refuse(_agent_id: UUID) -> str:
        return "not yours"

    call = ScriptedCall()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.serve, call, ONE, FullAccess(), PeerChecks(refuse))
        await call.requests.send(tunnel(TWO))
        await call.closed.wait()
    assert call.sent[0].error == "authorization: not yours"


async def test_goodbye_ends_stream_cleanly(coordinator: Coordinator) -> None:
    call = ScriptedCall()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.serve, call, ONE, FullAccess())
        await call.requests.send(Request(disconnect=Request.Disconnect()))
        await call.closed.wait()
    assert call.sent == []


async def test_stop_notifies_peers(coordinator: Coordinator) -> None:
    call = ScriptedCall()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(coordinator.serve, call, ONE, FullAccess())
        await trio.testing.wait_all_tasks_blocked()
        coordinator.close()
        await call.closed.wait()
    assert [answer.error for answer in call.sent] == ["coordinator closed"]


async def test_unanswered_ping_disconnects_client(autojump_clock: trio.testing.MockClock) -> None:
    left, _right = trio.testing.memory_stream_pair()
    websocket = WebSocketStream(left, client=False)
    link = ClientConnection(websocket)
    async with open_session(websocket, "server") as session, trio.open_nursery() as nursery:
        nursery.start_soon(link.keep_pinging, session)
        await session.wait_closed()
        assert trio.current_time() == pytest.approx(30)
        assert (link.code, link.reason) == (1001, "liveness probe failed")
        nursery.cancel_scope.cancel()


def test_websocket_reason_is_truncated() -> None:
    """A node is sent to every peer; only users read the reason for WebSocket."""
    node = tailnet_pb2.Node(id=1, derp_forced_websocket={1: "short", 2: "<p>" * 100_000})
    sent = tailnet_pb2.Node.FromString(node_from_proto(node).body)
    assert sent.derp_forced_websocket[1] == "short"
    assert sent.derp_forced_websocket[2] == ("<p>" * 100_000)[:256]
    assert len(node.derp_forced_websocket[2]) == 300_000, "the input is not modified"
