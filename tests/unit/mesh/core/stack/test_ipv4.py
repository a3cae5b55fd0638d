"""IPv4 inside the tunnel: the same host with other headers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.mesh.core.errors import WireError
from coder.mesh.core.paths.selector import PathState
from coder.mesh.core.stack.events import EchoReply, TooBig, Unreachable
from coder.mesh.core.stack.interface import Stack, TcpSettings
from coder.mesh.core.wire import icmp, ip, ip4, udp
from tests.kit.network.simulated_endpoints import SimulatedNetwork as Network
from tests.kit.network.simulated_endpoints import acquainted, state
from tests.kit.network.simulated_tcp_link import PORT, Link, LinkedStacks, Transfer
from tests.kit.network.wireguard_devices import Pair

A4, B4 = bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))
A, B = ip4.address16(A4), ip4.address16(B4)


def world(**options: object) -> LinkedStacks:
    made = LinkedStacks(addresses=(A4, B4), **options)  # type: ignore[arg-type]
    made.filter = lambda _sender, packet: is_valid_ipv4(packet)
    return made


def is_valid_ipv4(packet: bytes) -> bool:
    """Check that the packets are IPv4 with right lengths and checksums."""
    assert packet[0] == 0x45
    assert ip.ones_sum(packet[:20]) == 0
    size = int.from_bytes(packet[2:4], "big")
    assert size <= len(packet)
    payload = packet[20:size]
    if int.from_bytes(packet[6:8], "big") & 0x3FFF:
        return True  # a fragment
    if packet[9] == ip4.PROTOCOL_ICMP:
        assert ip.ones_sum(payload) == 0
    elif packet[9] in (ip.PROTOCOL_UDP, ip.PROTOCOL_TCP):
        pseudo = packet[12:20] + packet[9].to_bytes(2, "big") + len(payload).to_bytes(2, "big")
        assert ip.ones_sum(pseudo + payload + bytes(len(payload) & 1)) == 0
    return True


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_tcp_in_both_directions(loss: float) -> None:
    random = Random(4)
    net = world(there=Link(loss=loss), back=Link(loss=loss), settings=TcpSettings(skip_checksums=False))
    mine, theirs = net.connect()
    transfers = [
        Transfer(mine, theirs, random.randbytes(300_000), random),
        Transfer(theirs, mine, random.randbytes(200_000), random),
    ]

    def step() -> None:
        for transfer in transfers:
            transfer.step()

    net.on_step = step
    net.run(lambda: all(t.done for t in transfers))
    net.on_step = lambda: None
    net.run(lambda: mine.closed and theirs.closed)
    assert mine.error is None and theirs.error is None


def test_closed_port_is_refused() -> None:
    net = world()
    socket = net.a.tcp_connect(B4, 81, net.now)
    net.run(lambda: socket.closed)
    assert socket.error is not None and socket.error.code == "refused"


def test_datagrams_small_and_in_fragments() -> None:
    net = world()
    mine, theirs = net.a.udp_bind(0), net.b.udp_bind(PORT)
    for size in (0, 1, 1000, 1252, 1253, 9000, 65_000):
        mine.send_nowait(b"x" * size, B, PORT)
        net.run(lambda: theirs.readable)
        arrived = theirs.receive_nowait()
        assert arrived is not None
        assert (arrived.source, arrived.payload) == (A, b"x" * size)
        theirs.send_nowait(b"y" * size, arrived.source, arrived.source_port)
        net.run(lambda: mine.readable)
        assert mine.receive_nowait().payload == b"y" * size  # type: ignore[union-attr]


def test_echo_and_port_unreachable() -> None:
    net = world()
    events: list[object] = []
    net.a.set_event_hook(events.append)
    net.a.icmp_echo(B4, 7, 1, b"payload")
    net.settle(0.1)
    net.a.udp_bind(9).send_nowait(b"hello?", B, 4444)
    net.settle(0.1)
    assert events == [EchoReply(B, 7, 1, b"payload"), Unreachable(B, 4444)]


def test_large_echo_answered_in_fragments() -> None:
    net = world()
    events: list[Any] = []
    net.a.set_event_hook(events.append)
    net.a.icmp_echo(B4, 7, 2, bytes(5000))
    net.settle(0.1)
    assert [len(n.payload) for n in events] == [5000]


def test_router_answers_too_big() -> None:
    net = world()
    events: list[object] = []
    net.a.set_event_hook(events.append)
    quoted = ip4._header(17, A4, B4, 1300, 0x4000, 0) + bytes(28)
    body = icmp.Message(3, 4, 1000, quoted).body_bytes()
    net.a.input_batch([ip4._header(1, B4, A4, len(body), 0, 0) + body], net.now)
    assert events == [TooBig(B, 1020)], "as large as the same packet would be with IPv6 headers"


def test_host_answers_in_request_family() -> None:
    stack = Stack([bytes.fromhex("fd00" + 28 * "0"), B4], Random(1).randbytes)
    socket = stack.udp_bind(5)
    socket.send_nowait(b"", A4, 6)
    socket.send_nowait(b"", bytes.fromhex("fd00" + 27 * "0" + "1"), 6)
    firsts = {to: packets[0][0] >> 4 for to, packets in stack.take_output(0.0)}
    assert sorted(firsts.values()) == [4, 6]
    assert firsts[A] == 4


def test_host_without_ipv4_ignores_ipv4() -> None:
    stack = Stack([bytes.fromhex("fd00" + 28 * "0")], Random(1).randbytes)
    request = icmp.Message(icmp.ECHO_REQUEST, 0, 1, b"").encode(A, B)
    stack.input_batch([ip4.from_ipv6(request)], 0.0)
    assert stack.take_output(0.0) == []


def test_oversized_fragments_are_rejected() -> None:
    """The reassembled packet would be answered by an error too long for any IPv4 header."""
    stack = Stack([B4], Random(1).randbytes)
    head = bytes((0, 5, 0, 6, 0xFF, 0xFF, 0, 0))
    body = head + bytes(0xFFFF - len(head))
    last = 65_528
    for at in range(0, len(body), 1024):
        part = body[at : at + 1024] if at + 1024 < last else body[at:]
        if at >= last:
            break
        more = 0x2000 if at + len(part) < len(body) else 0
        packet = ip4._header(17, A4, B4, len(part), at >> 3 | more, 9) + part
        stack.input_batch([packet], 1.0)
    assert stack.take_output(1.0) == []
    with pytest.raises(WireError, match="long packet"):
        ip4.to_ipv6_untrusted(ip4._header(17, A4, B4, 7, last >> 3, 9) + bytes(7))


@pytest.mark.parametrize(("largest", "destination"), [(65_507, A), (65_527, bytes.fromhex("fd00" + 27 * "0" + "1"))])
def test_too_long_datagram_is_lost(largest: int, destination: bytes) -> None:
    stack = Stack([bytes.fromhex("fd00" + 28 * "0"), B4], Random(1).randbytes)
    socket = stack.udp_bind(5)
    socket.send_nowait(bytes(largest + 1), destination, 6)
    assert stack.take_output(0.0) == []
    socket.send_nowait(bytes(largest), destination, 6)
    [(_, packets)] = stack.take_output(0.0)
    assert sum(map(len, packets)) > largest


def test_tunnel_accepts_allowed_ipv4_sources() -> None:
    pair = Pair()
    for side, address in ((pair.a, A), (pair.b, B)):
        side.peer.device.set_allowed(side.peer.tunnel, [address, side.address])
    assert pair.a.device.tunnel_to(B) is pair.a.tunnel
    genuine = ip4.from_ipv6(udp.Datagram(1, 2, b"hi").encode(A, B))
    forged = ip4.from_ipv6(udp.Datagram(1, 2, b"hi").encode(ip4.address16(bytes((10, 0, 0, 7))), B))
    short = b"\x45" + bytes(10)
    pair.carry(pair.a, pair.a.tunnel.seal([genuine, forged, short], pair.now))
    assert [packet[: len(genuine)] for packet in pair.b.inbox] == [genuine]


@given(st.binary(max_size=120), st.integers(0, 15), st.sampled_from([1, 6, 17, 44]), st.integers(0, 0xFFFF))
def test_arbitrary_bytes_translate_or_raise(data: bytes, ihl: int, protocol: int, fragment_field: int) -> None:
    head = bytes((0x40 | ihl, 0)) + (20 + len(data)).to_bytes(2, "big") + bytes(2) + fragment_field.to_bytes(2, "big")
    stack = Stack([B4], Random(1).randbytes)
    for packet in (data, head + bytes((64, protocol, 0, 0)) + A4 + B4 + data):
        try:
            six = ip4.to_ipv6_untrusted(packet)
        except WireError:
            continue
        finally:
            stack.input_batch([packet], 1.0)
            stack.take_output(1.0)
        assert ip.parse_untrusted(six).source.startswith(ip4.MAPPED)


@given(st.binary(max_size=200), st.sampled_from([6, 17, 99]))
def test_translation_round_trips(payload: bytes, protocol: int) -> None:
    packet = ip.header(protocol, A, B, len(payload)) + payload
    assert ip4.to_ipv6_untrusted(ip4.from_ipv6(packet) + b"padding") == packet


@given(st.sampled_from([icmp.ECHO_REQUEST, icmp.ECHO_REPLY]), st.integers(0, 2**32 - 1), st.binary(max_size=50))
def test_echoes_round_trip(kind: int, parameter: int, body: bytes) -> None:
    packet = icmp.Message(kind, 0, parameter, body).encode(A, B)
    again = ip.parse_untrusted(ip4.to_ipv6_untrusted(ip4.from_ipv6(packet)))
    assert icmp.parse_untrusted(again.payload) == icmp.Message(kind, 0, parameter, body)


def test_ipv4_over_tunnel() -> None:
    net = Network()
    one, two = acquainted(net, real=True)
    for machine, own in ((one, A4), (two, B4)):
        machine.tcp.add_address(own)
    one.endpoint.set_peer(two.config(allowed_ips=(two.overlay, B)), net.now)
    two.endpoint.set_peer(one.config(allowed_ips=(one.overlay, A)), net.now)
    listener = two.tcp.tcp_listen(80)
    socket = one.tcp.tcp_connect(B4, 80, net.now)
    one.endpoint.flush(net.now)
    data = Random(1).randbytes(200_000)
    written, read, accepted = 0, b"", None
    while len(read) < len(data):
        net.run(net.now + 0.05)
        assert net.now < 30
        accepted = accepted or listener.accept_nowait()
        if accepted is not None:
            read += accepted.read_nowait(1 << 20)
        if socket.connected:
            written += socket.write_nowait(data[written : written + 50_000])
        for machine in (one, two):
            machine.endpoint.flush(net.now)
    assert read == data
    assert state(one, two) is PathState.DIRECT


def test_mapped_addresses_refused_in_ipv6_packets() -> None:
    """The answer to a full IPv6 packet would be too long for any IPv4 header."""
    pair = Pair()
    pair.b.device.set_allowed(pair.b.tunnel, [A, pair.a.address])
    echo = icmp.Message(icmp.ECHO_REQUEST, 0, 1, b"x").encode(A, pair.b.address)
    pair.carry(pair.a, pair.a.tunnel.seal([echo, pair.packet(pair.a, b"genuine")], pair.now))
    assert [packet[40:47] for packet in pair.b.inbox] == [b"genuine"]
