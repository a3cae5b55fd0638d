"""UDP, ICMPv6 and TSMP."""

from typing import Any

import pytest

from coder.mesh.core.errors import WireError
from coder.mesh.core.stack import fragments
from coder.mesh.core.stack.datagrams import UdpDatagram
from coder.mesh.core.stack.events import EchoReply, TooBig, TsmpAnswer, Unreachable
from coder.mesh.core.stack.interface import Stack, TcpSettings
from coder.mesh.core.wire import icmp, ip, tcp, udp
from tests.kit.network.simulated_tcp_link import A, B, Link, LinkedStacks, Transfer

ROUTER = bytes.fromhex("fd7a" + 27 * "0" + "9")


def has_valid_checksum(packet: bytes) -> bool:
    parsed = ip.parse_untrusted(packet)
    pseudo = ip.ones_sum(parsed.source + parsed.destination) + len(parsed.payload) + parsed.protocol
    return (pseudo + ip.ones_sum(parsed.payload)) % 0xFFFF == 0


def test_datagrams_in_both_directions() -> None:
    world = LinkedStacks()
    packets = []
    world.filter = lambda _sender, packet: packets.append(packet) or True
    server = world.b.udp_bind(53)
    client = world.a.udp_bind()
    readable: list[Any] = []
    server.on_event = readable.append
    client.send_nowait(b"question", B, 53)
    world.settle()
    assert readable == [server]
    question = server.receive_nowait()
    assert question == UdpDatagram(A, client.port, B, 53, b"question")
    server.send_nowait(b"", A, question.source_port)
    world.settle()
    empty = client.receive_nowait()
    assert empty is not None and empty.payload == b""
    assert client.receive_nowait() is None
    assert all(map(has_valid_checksum, packets))
    client.close()
    world.b.udp_send(B, 53, A, client.port, b"late")
    events: list[Any] = []
    world.b.set_event_hook(events.append)
    world.settle()
    assert events == [Unreachable(A, client.port)]


def test_fallback_gets_unbound_datagrams() -> None:
    world = LinkedStacks()
    received: list[Any] = []
    world.b.set_udp_fallback(received.append)
    world.a.udp_bind(9000).send_nowait(b"x" * 1400, B, 1234)
    world.settle()
    assert received == [UdpDatagram(A, 9000, B, 1234, b"x" * 1400)]


def test_large_datagrams_reassemble() -> None:
    world = LinkedStacks(9, Link(reorder=0.5), Link())
    sizes = []
    world.filter = lambda _sender, packet: sizes.append(len(packet)) or True
    server = world.b.udp_bind(53)
    payloads = [bytes([n]) * (1400 + 900 * n) for n in range(20)]
    for payload in payloads:
        world.a.udp_send(A, 1, B, 53, payload)
    world.settle()
    received: list[Any] = []
    while (datagram := server.receive_nowait()) is not None:
        received.append(datagram.payload)
    assert sorted(received) == payloads
    assert max(sizes) <= 1280


def test_overlapping_fragments_are_dropped() -> None:
    world = LinkedStacks()
    server = world.b.udp_bind(53)
    packet = udp.Datagram(1, 53, bytes(3000)).encode(A, B)
    first, second, third = fragments.split(packet, 1280, 7)
    overlap = third[:42] + (8 | 1).to_bytes(2, "big") + third[44:48] + bytes(16)
    overlap = overlap[:4] + (24).to_bytes(2, "big") + overlap[6:]
    world.b.input_batch([first, overlap, second, third], world.now)
    assert not server.readable
    for number in range(1000):
        world.b.input_batch([fragments.split(packet, 1280, number)[0]], world.now)
    assert len(world.b._demux._assembler.waiting) == 64
    world.b.input_batch(fragments.split(packet, 1280, 5000), world.now)
    assert server.readable


@pytest.mark.parametrize("size", [1241, 1248, 1360, 1373, 2464, 2736, 3000, 65_535])
@pytest.mark.parametrize("narrow", [256, 1278, 1280])
def test_fragment_is_split_into_fragments(size: int, narrow: int) -> None:
    packet = ip.Packet(ip.PROTOCOL_UDP, A, B, bytes(n % 251 for n in range(size))).encode()
    wide = fragments.split(packet, 1420, 7)
    cut = [piece for part in wide for piece in fragments.split(part, narrow, 8)]
    assembler = fragments.Assembler()
    *halves, whole = (assembler.add(ip.parse_untrusted(piece), 0.0) for piece in reversed(cut))
    assert whole is not None and whole.encode() == packet and not any(halves)
    for piece in cut:
        assert len(piece) <= narrow and piece[6] == fragments.PROTOCOL and piece[40] == ip.PROTOCOL_UDP
        assert piece[44:48] == (7 if len(wide) > 1 else 8).to_bytes(4, "big")
    places = [int.from_bytes(piece[42:44], "big") for piece in cut]
    assert [offset_field & 1 for offset_field in places] == [1] * (len(cut) - 1) + [0]
    assert all((len(piece) - 48) % 8 == 0 for piece in cut[:-1])


def piece(offset: int, data: bytes, *, more: bool) -> ip.Packet:
    """Return a fragment of the UDP datagram with number 7."""
    head = bytes((ip.PROTOCOL_UDP, 0)) + (offset | more).to_bytes(2, "big") + (7).to_bytes(4, "big")
    return ip.Packet(fragments.PROTOCOL, A, B, head + data)


def test_tiny_fragments_are_dropped() -> None:
    """Each would be compared with all before it: seconds of work for 64 KiB."""
    assembler = fragments.Assembler()
    with pytest.raises(WireError, match="too many fragments"):
        for offset in range(0, 65_528, 8):
            assembler.add(piece(offset, bytes(8), more=True), 0.0)
    assert not assembler.waiting


@pytest.mark.parametrize("offset", [16, 24])
def test_data_behind_last_fragment_rejected(offset: int) -> None:
    assembler = fragments.Assembler()
    assert assembler.add(piece(offset, bytes(8), more=True), 0.0) is None
    with pytest.raises(WireError, match="bad fragment"):
        assembler.add(piece(8, bytes(8), more=False), 0.0)
    assert not assembler.waiting


def test_fragment_header_copies_original_header() -> None:
    packet = bytearray(ip.Packet(ip.PROTOCOL_UDP, A, B, bytes(3000)).encode())
    packet[:4], packet[7] = bytes.fromhex("60300000"), 9  # congestion experienced, some hops gone
    for part in fragments.split(bytes(packet), 1420, 7):
        for piece in fragments.split(part, 1280, 8):
            assert piece[:4] == packet[:4] and piece[7] == 9


@pytest.mark.parametrize(("offset_field", "size"), [(1, 1405), (0xFFF8, 1404)])
def test_malformed_fragment_is_not_split(offset_field: int, size: int) -> None:
    body = bytes([17, 0]) + offset_field.to_bytes(2, "big") + bytes(size)
    with pytest.raises(WireError, match="bad fragment"):
        fragments.split(ip.Packet(fragments.PROTOCOL, A, B, body).encode(), 1280, 1)


def test_slow_reader_loses_datagrams() -> None:
    stack = Stack([A], bytes)
    socket = stack.udp_bind(1)
    for _ in range(3000):
        socket.arrived(UdpDatagram(B, 1, A, 1, b"x" * 1000))
    assert socket.dropped > 1900
    assert len(socket.queue) <= 1024


def test_ping_is_answered_and_reported() -> None:
    world = LinkedStacks()
    events: list[Any] = []
    world.a.set_event_hook(events.append)
    world.a.icmp_echo(B, 7, 1, b"payload")
    world.a.tsmp_ping(B, b"8 bytes!")
    world.settle()
    assert sorted(events, key=repr) == [EchoReply(B, 7, 1, b"payload"), TsmpAnswer(B, b"8 bytes!")]


def too_big(packet: bytes, mtu: int, from_: Any = B) -> bytes:
    """Return an error about a packet of A's."""
    return icmp.Message(icmp.TOO_BIG, 0, mtu, packet[:1000]).encode(from_, A)


def test_datagrams_shrink_to_router_mtu() -> None:
    stack = Stack([A], bytes, mtu=1420)
    events: list[Any] = []
    stack.set_event_hook(events.append)
    socket = stack.udp_bind(5)

    def sizes() -> list[int]:
        socket.send_nowait(bytes(1300), B, 6)
        return [len(packet) for _, packets in stack.take_output(1.0) for packet in packets]

    assert sizes() == [1348]
    packet = udp.Datagram(5, 6, bytes(1300)).encode(A, B)
    stack.input_batch([too_big(packet, 1280)], 1.0)
    assert events == [TooBig(B, 1280)]
    assert len(sizes()) == 2 and max(sizes()) <= 1280
    for invalid_mtu in (60, 1279):
        stack.input_batch([too_big(packet, invalid_mtu)], 1.0)
        assert max(sizes()) > 1000, "RFC 8201 section 4: discarded"
    foreign = udp.Datagram(5, 6, bytes(1300)).encode(ROUTER, B)
    events.clear()
    stack.input_batch([too_big(foreign, 1280)], 1.0)
    assert not events, "we did not send it"
    stack.on_timer(700.0)
    assert sizes() == [1348]


def test_errors_of_third_peers_ignored() -> None:
    """A peer must neither narrow the path to another one nor end a conversation with it."""
    world = LinkedStacks(mtu=1420)
    events: list[Any] = []
    world.a.set_event_hook(events.append)
    mine, _ = world.connect()
    before = mine.mss
    mine.write_nowait(bytes(2000))
    packet = next(p for _, packets in world.a.take_output(world.now) for p in packets if len(p) > 1300)
    datagram = udp.Datagram(5, 6, bytes(1300)).encode(A, B)
    for quoted in (packet, datagram):
        world.a.input_batch([too_big(quoted, 1280, ROUTER)], world.now)
        unreachable = icmp.Message(icmp.UNREACHABLE, icmp.CODE_PORT_UNREACHABLE, 0, quoted[:1000])
        world.a.input_batch([unreachable.encode(ROUTER, A)], world.now)
    assert (mine.mss, mine.error, events) == (before, None, [])
    syn_sent = world.a.tcp_connect(B, 9, world.now)
    syn = world.a.take_output(world.now)[0][1][-1]
    world.a.input_batch([icmp.Message(icmp.UNREACHABLE, 4, 0, syn).encode(ROUTER, A)], world.now)
    assert syn_sent.error is None
    world.a.input_batch([too_big(packet, 1280)], world.now)
    assert mine.mss < before


def test_transfer_shrinks_to_router_mtu() -> None:
    world = LinkedStacks(mtu=1420, settings=TcpSettings(skip_checksums=False))
    mine, theirs = world.connect()
    transfer = Transfer(mine, theirs, bytes(300_000), world.random)

    def route(sender: Stack, packet: bytes) -> bool:
        if sender is world.a and len(packet) > 1300:
            world.a.input_batch([too_big(packet, 1300)], world.now)
            return False
        return True

    world.filter = route
    world.on_step = transfer.step
    world.run(lambda: transfer.done)
    assert mine.mss == 1300 - 40 - 20 - 12
    assert mine.stats.timeouts == 0


def test_errors_about_unsent_packets_ignored() -> None:
    """RFC 5927: an attacker off the path cannot quote an outstanding sequence number."""
    world = LinkedStacks(mtu=1420)
    mine, _ = world.connect()
    before = mine.mss
    fake = tcp.Segment(mine.local_port, mine.remote_port, mine.sender.snd_una + 70_000, 0, tcp.ACK, 1).encode()
    packet = ip.header(ip.PROTOCOL_TCP, A, B, len(fake)) + fake
    world.a.input_batch([too_big(packet, 1280)], world.now)
    assert mine.mss == before
    unreachable = icmp.Message(icmp.UNREACHABLE, icmp.CODE_PORT_UNREACHABLE, 0, packet).encode(B, A)
    world.a.input_batch([unreachable], world.now)
    assert mine.error is None


@pytest.mark.parametrize(("code", "refused"), [(0, False), (1, True), (3, False), (4, True)])
def test_undeliverable_syn_fails(code: int, refused: bool) -> None:
    stack = Stack([A], bytes)
    socket = stack.tcp_connect(B, 80, 1.0)
    [(_, [syn])] = stack.take_output(1.0)
    stack.input_batch([icmp.Message(icmp.UNREACHABLE, code, 0, syn).encode(B, A)], 1.1)
    assert (socket.error is not None and socket.error.code == "refused") == refused


def test_sent_errors_are_limited() -> None:
    stack = Stack([A], bytes)
    packet = udp.Datagram(1, 4444, b"").encode(B, A)
    stack.input_batch([packet] * 500, 1.0)
    assert sum(len(packets) for _, packets in stack.take_output(1.0)) == 100
    stack.input_batch([packet], 2.5)
    assert sum(len(packets) for _, packets in stack.take_output(2.5)) == 1


def test_packets_to_others_are_ignored() -> None:
    stack = Stack([A], bytes)
    stack.input_batch([icmp.Message(icmp.ECHO_REQUEST, 0, 1, b"").encode(A, B)], 1.0)
    assert stack.take_output(1.0) == []
    stack.add_address(B)
    stack.input_batch([icmp.Message(icmp.ECHO_REQUEST, 0, 1, b"").encode(A, B)], 1.0)
    assert len(stack.take_output(1.0)) == 1
