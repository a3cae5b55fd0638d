"""Messages of one frame, which are read and written without the general parser: the same results as with it."""

from __future__ import annotations

import os
import random
import socket

import pytest
import trio
import trio.testing
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, Ping, TextMessage

from coder.net.websocket import WebSocketStream
from coder.net.websocket_frames import FrameSplitter, encode_binary

SIZES = (0, 1, 3, 4, 125, 126, 127, 65_535, 65_536, 70_001)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_encoded_frames_are_read_by_parser(size: int, masked: bool) -> None:
    message = os.urandom(size)
    peer = Connection(ConnectionType.SERVER if masked else ConnectionType.CLIENT)
    peer.receive_data(encode_binary(message, masked=masked))
    assert b"".join(event.data for event in peer.events() if isinstance(event, BytesMessage)) == message


def mixed_frames(side: ConnectionType, seed: int) -> tuple[bytes, list[bytes | str]]:
    """Return frames of every kind, and the messages in them."""
    chance, sender = random.Random(seed), Connection(side)
    sent, messages = bytearray(), list[bytes | str]()
    for _ in range(40):
        message = chance.randbytes(chance.choice((0, 1, 5, 125, 126, 300, 65_536)))
        kind = chance.randrange(4)
        if kind == 0:
            sent += sender.send(Ping(payload=b"p"))
        elif kind == 1:
            sent += sender.send(TextMessage(data="text"))
            messages.append("text")
        elif kind == 2:
            sent += sender.send(BytesMessage(data=message[:1], message_finished=False))
            sent += sender.send(Ping(payload=b"between"))
            sent += sender.send(BytesMessage(data=message[1:]))
            messages.append(message)
        else:
            sent += sender.send(BytesMessage(data=message))
            messages.append(message)
    return bytes(sent), messages


@pytest.mark.parametrize("seed", range(6))
async def test_every_kind_of_frame_arrives_in_order(seed: int) -> None:
    """Also in pieces of any size, whatever frame they end in."""
    is_client = bool(seed % 2)
    data, messages = mixed_frames(ConnectionType.SERVER if is_client else ConnectionType.CLIENT, seed)
    left, right = trio.testing.memory_stream_pair()
    receiver, chance = WebSocketStream(right, client=is_client), random.Random(seed)

    async def send() -> None:
        at = 0
        while at < len(data):
            size = chance.choice((1, 2, 7, 1000, 100_000))
            await left.send_all(data[at : at + size])
            at += size

    async def drop_answers() -> None:
        async for _ in left:
            pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        nursery.start_soon(drop_answers)
        assert [await receiver.receive_message() for _ in messages] == messages
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "frame",
    [
        b"\x82\x01x",  # not masked
        b"\x83\x80",  # unknown kind
        b"\xc2\x80",  # reserved bit
        b"\x89\xfe",  # long ping
        b"\x09\x80",  # ping in parts
        b"\x80\x80\0\0\0\0",  # continues nothing
        b"\x82\xfe\0\x01\0\0\0\0x",  # length of one byte in two
        b"\x82\xff\0\0\0\0\0\0\0\x01\0\0\0\0x",  # and in eight
        b"\x82\xff\xff\0\0\0\0\0\0\0\0\0\0\0",
        b"\x02\x80\0\0\0\0\x82\x80\0\0\0\0",  # a message inside of another
    ],
)
async def test_violations_are_refused_at_once(frame: bytes) -> None:
    left, right = trio.testing.memory_stream_pair()
    await left.send_all(frame)
    with pytest.raises(trio.BrokenResourceError, match="1002"), trio.fail_after(60):
        await WebSocketStream(right, client=False).receive_some()


async def test_message_over_limit_is_refused() -> None:
    left, right = trio.testing.memory_stream_pair()
    await left.send_all(encode_binary(bytes(11), masked=True))
    receiver = WebSocketStream(right, client=False, max_message=10)
    assert await receiver.receive_message() is None
    assert receiver.close_code == 1009


def test_plain_frames_spare_parser() -> None:
    frames = FrameSplitter(masked=True)
    frames.receive_untrusted(encode_binary(b"one", masked=True) + encode_binary(b"two", masked=True)[:-1])
    assert frames.next_part() == (True, b"one")
    part = frames.next_part()
    assert part is not None and not part[0]


async def test_full_socket_keeps_order() -> None:
    """What a socket does not take at once goes out before everything later."""
    ours, theirs = socket.socketpair()
    sender = WebSocketStream(trio.SocketStream(trio.socket.from_stdlib_socket(ours)), client=True)
    receiver = WebSocketStream(trio.SocketStream(trio.socket.from_stdlib_socket(theirs)), client=False)
    sent = 0
    while sender.may_send_now:
        sender.send_now(sent.to_bytes(4, "big") * 1000)
        sent += 1
    received: list[bytes | str | None] = []

    async def receive() -> None:
        for _ in range(sent + 1):
            received.append(await receiver.receive_message())

    async with sender, receiver, trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await sender.send_message(b"last")
    assert received == [*(number.to_bytes(4, "big") * 1000 for number in range(sent)), b"last"]


async def test_sending_to_closed_socket_breaks_stream() -> None:
    ours, theirs = socket.socketpair()
    sender = WebSocketStream(trio.SocketStream(trio.socket.from_stdlib_socket(ours)), client=True)
    theirs.close()
    assert not sender.send_now(b"x")
    with pytest.raises(trio.BrokenResourceError):
        await sender.send_rest()
    await sender.aclose()
