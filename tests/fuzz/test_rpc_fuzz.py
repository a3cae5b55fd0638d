"""Untrusted bytes meet the framing: one error type each, however the bytes are cut."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coder.rpc import drpc, yamux

frames = st.builds(
    lambda kind, flags, stream, body: yamux.encode_frame(yamux.YamuxFrame(kind, flags, stream, len(body), body)),
    st.just(yamux.FrameType.DATA),
    st.integers(0, 15).map(yamux.Flag),
    st.integers(0, 9),
    st.binary(max_size=40),
) | st.builds(
    lambda kind, flags, stream, length: yamux.encode_frame(yamux.YamuxFrame(kind, flags, stream, length)),
    st.sampled_from([yamux.FrameType.WINDOW_UPDATE, yamux.FrameType.PING, yamux.FrameType.GO_AWAY]),
    st.integers(0, 15).map(yamux.Flag),
    st.integers(0, 9),
    st.integers(0, 2**32 - 1),
)
packets = st.builds(
    drpc.DrpcPacket, st.sampled_from(drpc.PacketKind), st.integers(1, 4), st.integers(1, 9), st.binary(max_size=30)
)


def split_at(data: bytes, sizes: list[int]) -> list[bytes]:
    parts = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    return [*parts, data]


@given(st.lists(frames | st.binary(max_size=30)), st.lists(st.integers(0, 20)))
@settings(max_examples=300, deadline=None)
def test_yamux_raises_only_its_error(parts: list[bytes], sizes: list[int]) -> None:
    machine = yamux.Yamux(client=False)
    machine.open_stream()
    try:
        for chunk in split_at(b"".join(parts), sizes):
            for event in machine.receive_untrusted(chunk):
                if isinstance(event, yamux.StreamOpened):
                    machine.accept(event.stream)
                elif isinstance(event, yamux.DataReceived):
                    machine.consumed(event.stream, len(event.data))
    except yamux.YamuxError:
        pass
    machine.take_output(1 << 20)


@given(st.lists(packets.map(drpc.encode_packet) | st.binary(max_size=30)), st.lists(st.integers(0, 20)))
@settings(max_examples=300, deadline=None)
def test_drpc_raises_only_its_error(parts: list[bytes], sizes: list[int]) -> None:
    call = drpc.IncomingCall()
    try:
        for chunk in split_at(b"".join(parts), sizes):
            list(call.receive_untrusted(chunk))
    except drpc.DrpcError:
        pass


@given(st.lists(st.binary(max_size=200_000), max_size=4), st.lists(st.integers(0, 70_000)))
@settings(max_examples=60, deadline=None)
def test_packets_reassemble_from_any_split(bodies: list[bytes], sizes: list[int]) -> None:
    sent = [drpc.DrpcPacket(drpc.PacketKind.MESSAGE, 1, number + 1, body) for number, body in enumerate(bodies)]
    reader = drpc.PacketReader()
    received: list[Any] = []
    for chunk in split_at(b"".join(map(drpc.encode_packet, sent)), sizes):
        received += reader.receive_untrusted(chunk)
    assert received == sent
