"""Socket of a relay's client: whole records, ends, and a socket that is full."""

from __future__ import annotations

import socket
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from coder.mesh.drivers.framing import MANY_RECORDS, READ_SIZE, RECORD_SIZE, FrameBuffer, RelayLink
from coder.mesh.drivers.pipe import pipe_pair
from tests.kit.stand_ins.certificates import Authority

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="trio's own streams are used there")
Secure = trio.SSLStream[trio.SocketStream]


def socket_pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    near, far = trio.socket.socketpair()
    for each in (near, far):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
    return trio.SocketStream(near), trio.SocketStream(far)


@pytest.fixture
async def plain() -> AsyncIterator[tuple[trio.SocketStream, trio.SocketStream]]:
    near, far = socket_pair()
    async with near, far:
        yield near, far


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[tuple[Secure, Secure]]:
    """Client and server of a TLS connection over sockets."""
    authority = Authority(tmp_path)
    near, far = socket_pair()
    server = trio.SSLStream(far, authority.server_context("relay.test"), server_side=True, https_compatible=True)
    context = ssl.create_default_context(cafile=authority.file)
    client = trio.SSLStream(near, context, server_hostname="relay.test", https_compatible=True)
    async with client, server:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.do_handshake)
            await client.do_handshake()
        await server.send_all(b"welcome")  # session tickets go with the first bytes
        assert await client.receive_some() == b"welcome"
        yield client, server


def link_of(stream: trio.abc.Stream) -> RelayLink:
    link = RelayLink.of(stream)
    assert link is not None
    return link


async def test_tls_read_takes_all_records(secure: tuple[Secure, Secure]) -> None:
    client, server = secure
    sent, buffer = bytes(range(256)) * 400, bytearray(b"x")
    await client.send_all(sent)
    assert await link_of(server).read_into(buffer, READ_SIZE)
    assert bytes(buffer) == b"x" + sent


async def test_tls_read_starts_with_what_the_stream_holds(secure: tuple[Secure, Secure]) -> None:
    client, server = secure
    sent, buffer = bytes(range(256)) * 200, bytearray()
    await client.send_all(sent)
    buffer += await server.receive_some(10)
    link = link_of(server)
    while len(buffer) < len(sent):
        assert await link.read_into(buffer, READ_SIZE)
    assert bytes(buffer) == sent


async def test_tls_read_waits_for_whole_record(secure: tuple[Secure, Secure]) -> None:
    client, server = secure
    buffer = bytearray()
    client._ssl_object.write(b"first")
    first = client._outgoing.read()
    client._ssl_object.write(b"second")
    second = client._outgoing.read()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(link_of(server).read_into, buffer, READ_SIZE)
        await client.transport_stream.send_all(first[:7])
        await trio.testing.wait_all_tasks_blocked()
        assert not buffer
        await client.transport_stream.send_all(first[7:] + second[:9])
    assert buffer == b"first"


async def test_read_keeps_to_limit(secure: tuple[Secure, Secure], plain: tuple[trio.SocketStream, ...]) -> None:
    for near, far in (secure, plain):
        sent = bytes(3 * RECORD_SIZE)
        await near.send_all(sent)
        link, buffer = link_of(far), bytearray()
        while len(buffer) < len(sent):
            before = len(buffer)
            assert await link.read_into(buffer, 20_000)
            assert len(buffer) - before < 20_000 + RECORD_SIZE
        assert buffer == sent


async def test_many_small_records_are_several_reads(secure: tuple[Secure, Secure]) -> None:
    """Nothing more arrives: the rest is read without waiting for the socket."""
    client, server = secure
    inbox, sizes = FrameBuffer(server, b""), list[int]()
    inbox.link = link_of(server)
    for _ in range(2 * MANY_RECORDS + 7):
        client._ssl_object.write(b"x")
    await client.transport_stream.send_all(client._outgoing.read())
    with trio.fail_after(60):
        while sum(sizes) < 2 * MANY_RECORDS + 7:
            assert await inbox.more()
            sizes.append(len(inbox.buffer))
            inbox.buffer.clear()
            assert inbox.take_records() >= sizes[-1]
    assert max(sizes) <= MANY_RECORDS


async def test_end_follows_last_record(secure: tuple[Secure, Secure]) -> None:
    client, server = secure
    link, buffer = link_of(server), bytearray()
    await client.send_all(b"last")
    client._ssl_object.write(b"")
    with pytest.raises(ssl.SSLWantReadError):
        client._ssl_object.unwrap()
    await client.transport_stream.send_all(client._outgoing.read())
    assert await link.read_into(buffer, READ_SIZE) and buffer == b"last"
    assert not await link.read_into(buffer, READ_SIZE)


async def test_broken_record_ends_stream(secure: tuple[Secure, Secure]) -> None:
    client, server = secure
    link, buffer = link_of(server), bytearray()
    await client.send_all(b"whole")
    await client.transport_stream.send_all(b"\x17\x03\x03\x00\x20" + bytes(32))
    assert await link.read_into(buffer, READ_SIZE) and buffer == b"whole"
    assert not await link.read_into(buffer, READ_SIZE)


async def test_closed_socket_ends_stream(plain: tuple[trio.SocketStream, trio.SocketStream]) -> None:
    near, far = plain
    await near.aclose()
    assert not await link_of(far).read_into(bytearray(), READ_SIZE)
    with pytest.raises(OSError):
        link_of(far).write_now(b"not read")


async def test_full_socket_is_drained_in_order(
    secure: tuple[Secure, Secure], plain: tuple[trio.SocketStream, ...]
) -> None:
    for near, far in (plain, secure):
        link, sent = link_of(far), b""
        for number in range(1000):
            sent += (piece := number.to_bytes(4, "big") * 20_000)
            if not link.write_now(piece):
                break
        assert link.is_full
        received = bytearray()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.drain)
            while len(received) < len(sent):
                received += await near.receive_some(1 << 16)
        assert received == sent and not link.is_full
        assert link.write_now(b"more") and await near.receive_some(10) == b"more"


async def test_other_streams_have_no_link(tmp_path: Path) -> None:
    memory, _ = pipe_pair()
    assert RelayLink.of(memory) is None
    context = Authority(tmp_path).server_context("relay.test")
    assert RelayLink.of(trio.SSLStream(memory, context, server_side=True)) is None
