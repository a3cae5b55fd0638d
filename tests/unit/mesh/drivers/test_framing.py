"""Read buffer of a relay connection behind TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trio
import trio.testing

from coder.mesh.drivers.framing import READ_SIZE, RECORD_SIZE, FrameBuffer
from tests.kit.stand_ins.certificates import Authority

Secure = trio.SSLStream[trio.StapledStream[trio.testing.MemorySendStream, trio.testing.MemoryReceiveStream]]


@pytest.fixture
async def ends(tmp_path: Path) -> tuple[Secure, Secure]:
    """Two ends of a TLS connection in memory."""
    authority = Authority(tmp_path)
    near, far = trio.testing.memory_stream_pair()
    server = trio.SSLStream(far, authority.server_context("relay.test"), server_side=True, https_compatible=True)
    context = ssl.create_default_context(cafile=authority.file)
    client = trio.SSLStream(near, context, server_hostname="relay.test", https_compatible=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(server.do_handshake)
        await client.do_handshake()
    return client, server


async def test_one_read_takes_all_records(ends: tuple[Secure, Secure]) -> None:
    client, server = ends
    sent = bytes(range(256)) * 400
    await client.send_all(sent)
    inbox = FrameBuffer(server, b"x")
    assert len(sent) > 6 * RECORD_SIZE and await inbox.more()
    assert bytes(inbox.buffer) == b"x" + sent


async def test_read_keeps_to_limit(ends: tuple[Secure, Secure]) -> None:
    client, server = ends
    await client.send_all(bytes(3 * RECORD_SIZE))
    inbox = FrameBuffer(server, b"")
    sizes = []
    while len(inbox.buffer) < 3 * RECORD_SIZE:
        before = len(inbox.buffer)
        assert await inbox.more(20_000)
        sizes.append(len(inbox.buffer) - before)
    assert sizes == [20_000, 20_000, 9_152]


async def test_end_follows_last_record(ends: tuple[Secure, Secure]) -> None:
    client, server = ends
    inbox = FrameBuffer(server, b"")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.send_all, b"last")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(client.aclose)
        await trio.testing.wait_all_tasks_blocked()
        assert await inbox.more(READ_SIZE) and inbox.buffer == b"last"
        assert not await inbox.more(READ_SIZE)


async def test_broken_record_ends_stream(ends: tuple[Secure, Secure]) -> None:
    client, server = ends
    await client.send_all(b"whole")
    await client.transport_stream.send_all(b"\x17\x03\x03\x00\x20" + bytes(32))
    inbox = FrameBuffer(server, b"")
    assert await inbox.more() and inbox.buffer == b"whole"
    assert not await inbox.more()
