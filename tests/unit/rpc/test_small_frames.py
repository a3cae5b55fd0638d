"""Tiny frames of yamux and dRPC: other tasks run meanwhile, and the queued answers are bounded."""

from __future__ import annotations

import pytest
import trio

from coder.rpc import drpc, yamux
from coder.rpc.mux import _FRAMES_PER_YIELD, open_mux
from coder.rpc.serving import serve_calls
from tests.kit.event_loop_probes import counted_turns, peer_says

COUNT = 20_000


def frame(kind: yamux.FrameType, flags: yamux.Flag, stream: int, length: int = 0) -> bytes:
    return yamux.encode_frame(yamux.YamuxFrame(kind, flags, stream, length))


NONE = yamux.Flag(0)
OPENED = frame(yamux.FrameType.WINDOW_UPDATE, yamux.Flag.SYN, 1)
RESET = frame(yamux.FrameType.WINDOW_UPDATE, yamux.Flag.RST, 1)
PING = frame(yamux.FrameType.PING, yamux.Flag.SYN, 0, 7)
FLOODS = {
    "credit": OPENED + frame(yamux.FrameType.WINDOW_UPDATE, NONE, 1, 1) * COUNT,
    "empty data": OPENED + frame(yamux.FrameType.DATA, NONE, 1) * COUNT,
    "unknown stream": frame(yamux.FrameType.DATA, NONE, 99) * COUNT,
    "pongs": frame(yamux.FrameType.PING, yamux.Flag.ACK, 0, 7) * COUNT,
    "opened and reset": (OPENED + RESET) * (COUNT // 2),
}


@pytest.mark.parametrize("kind", FLOODS)
async def test_frames_yield_to_others(kind: str) -> None:
    async with counted_turns() as turns, open_mux(peer_says(FLOODS[kind]), client=False) as mux:
        await mux.wait_closed()
    assert mux.reason == "the connection was closed by the peer"
    assert turns.count > COUNT / _FRAMES_PER_YIELD / 8  # a chunk of a read is seven hundred frames


async def test_reader_joins_small_frames() -> None:
    """Otherwise it would move the rest of a window, some hundred thousand frames, for each of them."""
    data = b"".join(frame(yamux.FrameType.DATA, NONE, 1, 1) + bytes([number % 251]) for number in range(COUNT))
    async with open_mux(peer_says(OPENED + data), client=False) as mux:
        stream = await mux.accept()
        await mux.wait_closed()
        reads = [await stream.receive_some(3000)]
        while len(reads[-1]) == 3000:
            reads.append(await stream.receive_some(3000))
        assert b"".join(reads) == bytes(number % 251 for number in range(COUNT))
        assert mux._unread == 0


def test_unread_answers_are_bounded() -> None:
    """Otherwise they would stay in memory as long as a peer requests, at twelve bytes each."""
    machine = yamux.Yamux(client=False)
    with pytest.raises(yamux.YamuxError, match="without reading the answers"):
        machine.receive_untrusted(PING * COUNT)
    assert machine.output_size < 2 * yamux.MAX_ANSWERS * yamux.HEADER_SIZE
    taken = yamux.Yamux(client=False)
    for _ in range(100):  # a peer that reads them may continue
        taken.receive_untrusted(PING * 1000)
        while taken.take_output(1 << 16):
            pass


async def test_reset_streams_count_as_untaken() -> None:
    """Streams beyond the backlog are reset; the session continues for others."""
    theirs = (OPENED + RESET) * (2 * yamux.BACKLOG) + frame(yamux.FrameType.WINDOW_UPDATE, yamux.Flag.SYN, 3)
    async with open_mux(peer_says(theirs), client=False) as mux:
        await mux.wait_closed()
        taken = []
        with pytest.raises(trio.EndOfChannel):
            while True:
                taken.append(await mux.accept())
        assert len(taken) == yamux.BACKLOG


def packet(kind: drpc.PacketKind, message: int, *, done: bool) -> bytes:
    return bytes((kind << 1 | done, 1)) + drpc._varint(message) + b"\x00"


CALL = drpc.encode_packet(drpc.DrpcPacket(drpc.PacketKind.INVOKE, 1, 1, b"/unknown"))
PACKETS = {
    "messages": b"".join(packet(drpc.PacketKind.MESSAGE, number, done=True) for number in range(2, COUNT)),
    "one that does not end": packet(drpc.PacketKind.MESSAGE, 2, done=False) * (5 * COUNT),
}


@pytest.mark.parametrize("kind", PACKETS)
async def test_packets_yield_to_others(kind: str) -> None:
    async with counted_turns() as turns:
        await serve_calls(peer_says(CALL + PACKETS[kind]), {})
    assert turns.count > len(PACKETS[kind]) / 8192 - 1
