"""Connections to applications when the browser disconnects. Forwarding is in `test_apps.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import h11
import trio
import trio.testing

from coder.appproxy.apps.forwarding import UpstreamRequest, forward
from coder.appproxy.apps.proxy_request import ProxyRequest
from coder.appproxy.apps.upstream import AppPool, Target
from coder.mesh.core.wire.tcp import FIN, RST, Segment
from coder.mesh.drivers.streams import TcpStream
from coder.tailnet.agent_dialer import AgentStream
from tests.kit.network.scripted_tcp_peer import ScriptedTcpPeer

PLACE = Target(uuid4(), 8080, tls=False)
HALF = b"x" * 1000
"""Half of a body of two thousand bytes."""


class Exchange:
    """Request in flight to an application whose machine is a peer."""

    def __init__(self, size: int) -> None:
        self.peer = ScriptedTcpPeer()
        socket = self.peer.connected()
        self.peer.send(window=500)  # scaled, unlike the window of a SYN
        self.closed = 0
        self.browser, far_end = trio.testing.memory_stream_pair()
        stream = AgentStream(TcpStream(socket, lambda: None), self._count)

        async def dial(_agent: object, _port: int) -> AgentStream:
            return stream

        self._pool = AppPool(cast("Any", SimpleNamespace(agent_dialer=SimpleNamespace(dial=dial))))
        headers = [(b"host", b"apps.test"), (b"content-length", str(size).encode())]
        head = h11.Request(method="POST", target="/", headers=headers)
        self._proxied = ProxyRequest(head, far_end, HALF, remote_ip="127.0.0.1", scheme="http", ours=())
        self._asked = UpstreamRequest(PLACE, "/", headers, "/", None, [])

    def _count(self) -> None:
        self.closed += 1

    async def leave(self, *, acknowledged: bool) -> list[Segment]:
        """Disconnect the browser in the middle; return the segments sent to the machine from then on."""
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                await forward(self._pool, self._proxied, self._asked, trio.Event())

            nursery.start_soon(run)
            await trio.testing.wait_all_tasks_blocked()
            sent = self.peer.collect()
            assert sum(len(segment.payload) for segment in sent) >= len(HALF)
            if acknowledged:
                self.peer.ack += sum(len(segment.payload) for segment in sent)
                self.peer.send()
            await self.browser.aclose()
        assert self._proxied.gone
        assert self.closed == 1
        return self.peer.collect()


async def test_half_a_request_is_reset() -> None:
    for acknowledged in (False, True):
        exchange = Exchange(2 * len(HALF))
        (last,) = await exchange.leave(acknowledged=acknowledged)
        assert last.flags & RST
        assert not exchange.peer.stack.connections


async def test_complete_request_is_delivered() -> None:
    exchange = Exchange(len(HALF))
    (last,) = await exchange.leave(acknowledged=False)
    assert last.flags & FIN
    assert not last.flags & RST


async def test_abandoned_response_is_reset() -> None:
    exchange = Exchange(len(HALF))
    (last,) = await exchange.leave(acknowledged=True)
    assert last.flags & RST
