"""UDP, ICMPv6 and TSMP."""

from coder.mesh.core.stack import fragments
from coder.mesh.core.stack.datagrams import UdpDatagram
from coder.mesh.core.stack.interface import Stack
from coder.mesh.core.stack.notices import EchoReply, TooBig, TsmpPong, Unreachable
from coder.mesh.core.wire import icmp, ip, udp
from tests.kit.tcpnet import A, B, Link, World


def valid(packet: bytes) -> bool:
    parsed = ip.parse_untrusted(packet)
    pseudo = ip.ones_sum(parsed.source + parsed.destination) + len(parsed.payload) + parsed.protocol
    return (pseudo + ip.ones_sum(parsed.payload)) % 0xFFFF == 0


def test_datagrams_both_ways():
    world = World()
    packets = []
    world.filter = lambda _sender, packet: packets.append(packet) or True
    server = world.b.udp_bind(53)
    client = world.a.udp_bind()
    heard = []
    server.on_event = heard.append
    client.send_nowait(b"question", B, 53)
    world.settle()
    assert heard == [server]
    question = server.receive_nowait()
    assert question == UdpDatagram(A, client.port, B, 53, b"question")
    server.send_nowait(b"", A, question.source_port)
    world.settle()
    assert client.receive_nowait().payload == b""
    assert client.receive_nowait() is None
    assert all(map(valid, packets))
    client.close()
    world.b.udp_send(B, 53, A, client.port, b"late")
    notices = []
    world.b.on_notice = notices.append
    world.settle()
    assert notices == [Unreachable(A, client.port)]


def test_fallback_gets_datagrams_for_all_other_ports():
    world = World()
    got = []
    world.b.set_udp_fallback(got.append)
    world.a.udp_bind(9000).send_nowait(b"x" * 1400, B, 1234)
    world.settle()
    assert got == [UdpDatagram(A, 9000, B, 1234, b"x" * 1400)]


def test_large_datagrams_travel_in_fragments_in_any_order():
    world = World(9, Link(reorder=0.5), Link())
    sizes = []
    world.filter = lambda _sender, packet: sizes.append(len(packet)) or True
    server = world.b.udp_bind(53)
    payloads = [bytes([n]) * (1400 + 900 * n) for n in range(20)]
    for payload in payloads:
        world.a.udp_send(A, 1, B, 53, payload)
    world.settle()
    got = []
    while (datagram := server.receive_nowait()) is not None:
        got.append(datagram.payload)
    assert sorted(got) == payloads
    assert max(sizes) <= 1280


def test_fragments_that_overlap_or_never_end_are_dropped():
    world = World()
    server = world.b.udp_bind(53)
    packet = udp.Datagram(1, 53, bytes(3000)).encode(A, B)
    first, second, third = fragments.split(packet, 1280, 7)
    evil = third[:42] + (8 | 1).to_bytes(2, "big") + third[44:48] + bytes(16)
    evil = evil[:4] + (24).to_bytes(2, "big") + evil[6:]
    world.b.input_batch([first, evil, second, third], world.now)
    assert not server.readable
    for number in range(1000):
        world.b.input_batch([fragments.split(packet, 1280, number)[0]], world.now)
    assert len(world.b.assembler._partials) <= 65
    world.b.input_batch(fragments.split(packet, 1280, 5000), world.now)
    assert server.readable


def test_slow_readers_lose_datagrams_not_memory():
    stack = Stack([A], bytes)
    socket = stack.udp_bind(1)
    for _ in range(3000):
        socket.arrived(UdpDatagram(B, 1, A, 1, b"x" * 1000))
    assert socket.dropped > 1900
    assert len(socket.queue) <= 1024


def test_ping_is_answered_and_reported():
    world = World()
    notices = []
    world.a.on_notice = notices.append
    world.a.icmp_echo(B, 7, 1, b"payload")
    world.a.tsmp_ping(B, b"8 bytes!")
    world.settle()
    assert sorted(notices, key=repr) == [EchoReply(B, 7, 1, b"payload"), TsmpPong(B, b"8 bytes!")]


def test_packet_too_big_is_reported():
    stack = Stack([A], bytes)
    notices = []
    stack.on_notice = notices.append
    original = ip.header(ip.PROTOCOL_TCP, A, B, 20) + bytes(20)
    stack.input_batch([icmp.Message(icmp.TOO_BIG, 0, 1280, original).encode(B, A)], 1.0)
    assert notices == [TooBig(B, 1280)]


def test_packets_to_others_are_ignored():
    stack = Stack([A], bytes)
    stack.input_batch([icmp.Message(icmp.ECHO_REQUEST, 0, 1, b"").encode(A, B)], 1.0)
    assert stack.take_output(1.0) == []
    stack.add_address(B)
    stack.input_batch([icmp.Message(icmp.ECHO_REQUEST, 0, 1, b"").encode(A, B)], 1.0)
    assert len(stack.take_output(1.0)) == 1
