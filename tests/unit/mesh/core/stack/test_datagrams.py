"""UDP, ICMPv6 and TSMP."""

from coder.mesh.core.stack.datagrams import UdpDatagram
from coder.mesh.core.stack.interface import Stack
from coder.mesh.core.stack.notices import EchoReply, TooBig, TsmpPong, Unreachable
from coder.mesh.core.wire import icmp, ip
from tests.kit.tcpnet import A, B, World


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
