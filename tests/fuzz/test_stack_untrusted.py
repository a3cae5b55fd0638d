"""Untrusted bytes: parsers return or raise their documented error, the stack returns."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from coder.mesh.core.errors import WireError
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.wire import icmp, ip, tcp, tsmp, udp
from coder.mesh.core.wire.tcp import Options, Segment
from tests.kit.network.scripted_tcp_peer import OURS, PEER, ScriptedTcpPeer
from tests.kit.network.simulated_tcp_link import Link, LinkedStacks, Transfer

PARSERS: list[Callable[[bytes], object]] = [
    ip.parse_untrusted,
    tcp.parse_untrusted,
    tcp.parse_options_untrusted,
    udp.parse_untrusted,
]
PARSERS += [icmp.parse_untrusted, tsmp.parse_untrusted]


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_parsers(data: bytes) -> None:
    for parse in PARSERS:
        try:
            parse(data)
        except WireError:
            pass


OPTIONS = st.builds(
    Options,
    mss=st.none() | st.integers(0, 0xFFFF),
    window_scale=st.none() | st.integers(0, 14),
    sack_permitted=st.booleans(),
    timestamps=st.none() | st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    sack=st.just(()),
    same_stack=st.none() | st.integers(0, 0xFFFF),
)


@given(OPTIONS)
@settings(deadline=None)
def test_options_round_trip(options: Options) -> None:
    encoded = options.encode()
    assert len(encoded) % 4 == 0
    assert tcp.parse_options_untrusted(encoded) == options


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), max_size=4).map(tuple), st.booleans())
@settings(deadline=None)
def test_sack_blocks_round_trip(sack: tuple[tuple[int, int], ...], stamped: bool) -> None:
    options = Options(timestamps=(1, 2) if stamped else None, sack=sack)
    assert tcp.parse_options_untrusted(options.encode()).sack == sack[: 3 if stamped else 4]


NEAR = st.integers(-3000, 70_000)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 255),
            NEAR,
            NEAR,
            st.binary(max_size=30) | st.integers(0, 1400).map(bytes),
            st.integers(0, 0xFFFF),
            st.lists(st.tuples(NEAR, NEAR), max_size=3),
            st.booleans(),
        ),
        max_size=25,
    ),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_arbitrary_segments_leave_stack_consistent(steps: list[tuple], connects: bool) -> None:  # type: ignore[type-arg]
    peer = ScriptedTcpPeer()
    socket = peer.connected() if connects else peer.accepted()
    seq, ack = peer.seq, peer.ack
    for flags, seq_off, ack_off, payload, window, blocks, stamped in steps:
        if socket.connected and socket.error is None and not socket.write_closed:
            socket.write_nowait(b"x" * (window % 5000))
        sack = tuple(((ack + left) % 2**32, (ack + right) % 2**32) for left, right in blocks)
        options = Options(timestamps=(peer.stamp + 1, 0), sack=sack) if stamped else Options(sack=sack)
        peer.send(
            flags,
            payload,
            seq=(seq + seq_off) % 2**32,
            ack=(ack + ack_off) % 2**32,
            window=window,
            options=options,
        )
        peer.advance(0.3)
        flight = socket.recovery.scoreboard
        assert flight.sacked == sum(run.end - run.start for run in flight.runs if run.sacked)
        assert flight.lost == sum(run.end - run.start for run in flight.runs if run.lost)
        assert socket.receiver.rx.unread + socket.receiver.rx.waiting <= socket.host.settings.receive_buffer
        if socket.closed:
            break


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 40), st.booleans()), max_size=30))
@settings(max_examples=200, deadline=None)
def test_arbitrary_fragments_never_break(pieces: list[tuple[bytes, int, bool]]) -> None:
    stack = ScriptedTcpPeer().stack
    for data, offset, more in pieces:
        body = b"\x11\0" + (8 * offset | more).to_bytes(2, "big") + bytes(4) + data
        stack.input_batch([ip.Packet(44, PEER, OURS, body).encode()], 1.0)


@given(st.lists(st.binary(max_size=120), max_size=10), st.booleans())
@settings(max_examples=200, deadline=None)
def test_arbitrary_bytes_never_break_stack(packets: list[bytes], prefixed: bool) -> None:
    peer = ScriptedTcpPeer()
    peer.accepted()
    if prefixed:
        packets = [ip.header(packet[0] if packet else 6, PEER, OURS, len(packet)) + packet[1:] for packet in packets]
    peer.stack.input_batch(packets, peer.now)
    peer.stack.take_output(peer.now)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_bit_flips_never_raise(seed: int) -> None:
    """The tunnel would have rejected them; a broken peer behind it would not."""
    random = Random(seed)
    world = LinkedStacks(seed, Link(delay=0.002), Link(delay=0.002))
    mine, theirs = world.connect()
    transfer = Transfer(mine, theirs, random.randbytes(100_000), random)

    def flip(sender: object, packet: bytes) -> bool:
        if random.random() < 0.05:
            mutated = bytearray(packet)
            mutated[random.randrange(min(len(packet), 80))] ^= 1 << random.randrange(8)
            world.other(sender).input_batch([bytes(mutated)], world.now)  # type: ignore[arg-type]
            return False
        return True

    world.filter = flip
    for _ in range(400):
        try:
            transfer.step()
        except (AssertionError, StackError):  # the bytes have changed, or the connection is closed
            world.settle(0.01)
            continue
        if not world.step():
            break


def test_segment_round_trips() -> None:
    segment = Segment(1, 2, 3, 4, tcp.ACK, 5, Options(timestamps=(6, 7)), b"payload")
    again = tcp.parse_untrusted(segment.encode(9))
    assert (again.source_port, again.port, again.seq, again.ack, again.flags, again.window) == (1, 2, 3, 4, 16, 5)
    assert bytes(again.payload) == b"payload"
    assert again.checksum == 9
