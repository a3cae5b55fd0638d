"""Replies that a peer does not read: the transport stops reading, and goes on when the peer reads."""

from __future__ import annotations

import asyncio

import pytest
import trio
import trio.testing

from coder.net import ssh_transport
from coder.net.ssh_transport import StreamTransport

REPLY = 1000


class Answering(asyncio.Protocol):
    """Answers each piece with a reply, as SSH answers requests, whether writing is paused or not."""

    def __init__(self, transport: StreamTransport) -> None:
        self.transport, self.requests = transport, 0

    def data_received(self, data: bytes) -> None:
        self.requests += 1
        self.transport.write(bytes(REPLY))


async def test_unread_replies_pause_reading(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_transport, "MAX_UNSENT", 10 * REPLY)
    monkeypatch.setattr(ssh_transport, "HIGH_WATER", 5 * REPLY)
    ours, theirs = trio.testing.lockstep_stream_pair()
    transport = StreamTransport(theirs)
    protocol = Answering(transport)
    transport.attach(protocol)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(transport.pump)
        with trio.move_on_after(60):
            for _ in range(100):
                await ours.send_all(b"x")
        assert 10 <= protocol.requests <= 12 and transport.get_write_buffer_size() <= 12 * REPLY
        before = protocol.requests
        while protocol.requests == before:  # the request that was not read above
            await ours.receive_some()
        nursery.cancel_scope.cancel()
