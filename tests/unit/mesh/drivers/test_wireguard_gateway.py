"""The gateway for plain WireGuard clients: a client of the kit, and an agent with a mesh node."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.stack import fragments
from coder.mesh.core.wire import icmp, ip, rewrite, tcp, udp
from coder.mesh.drivers.wireguard_gateway import GatewayClient, WireguardGateway, open_gateway
from tests.attacks.peers.gateway import MISSING, WITNESS, GatewayPlace
from tests.kit.network.overlay_pair import Pair, address, introduce, node_pair
from tests.kit.network.wireguard_devices import ALIAS, ELSEWHERE, PHONE, STABLE, Phone, echo

AT_ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"Timeout for busy machines."


@dataclass
class World:
    pair: Pair
    gateway: WireguardGateway
    phone: Phone
    wanted: list[bytes]

    def admit(self, *clients: GatewayClient) -> None:
        """Admit a client as the server does: the table, then the agent's view of the node's addresses."""
        self.gateway.set_clients(clients)
        introduce(self.pair.two, self.pair.one)


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    with trio.fail_after(60):
        async with node_pair(direct=False) as pair, trio.open_nursery() as nursery:
            wanted: list[bytes] = []
            async with open_gateway(
                pair.one, PrivateKey.generate(os.urandom), "127.0.0.1", 0, wanted.append
            ) as gateway:
                phone = Phone(gateway)
                await nursery.start(phone.run)
                yield World(pair, gateway, phone, wanted)
            nursery.cancel_scope.cancel()


def has_valid_checksum(packet: bytes) -> bool:
    """Return whether the checksum behind the IPv6 header is right: with it in place, the sum is zero."""
    zero_sum = ip.ones_sum(packet[8:40]) + len(packet) - 40 + packet[6] + ip.ones_sum(packet[40:])
    return zero_sum % 0xFFFF == 0


async def test_agent_answers_at_both_addresses() -> None:
    async with world() as it:
        it.admit(it.phone.config())
        for destination in (address(2).packed, STABLE):
            await it.phone.send(echo(destination, b"hello"))
            answer = await it.phone.packets.receive()
            assert answer[8:24] == destination and answer[24:40] == PHONE
            assert has_valid_checksum(answer)
            assert icmp.parse_untrusted(answer[40:]) == icmp.Message(icmp.ECHO_REPLY, 0, 1, b"hello")
        status = it.gateway.status(it.phone.key.public)
        assert status is not None and status.last_handshake is not None
        assert status.endpoint.startswith("127.0.0.1:") and status.rx_bytes > 0


@pytest.mark.parametrize("mtu", [1280, 1420])
async def test_datagrams_and_errors_are_translated(mtu: int) -> None:
    """Also where the agent may send larger packets than the client takes: on a direct path."""
    async with world() as it, trio.open_nursery() as nursery:
        it.admit(it.phone.config())
        port = it.pair.two.udp_bind(9)

        async def answer() -> None:
            datagram = await port.receive()
            assert datagram.source == ALIAS
            it.pair.two._stack.set_mtu_to(ALIAS, mtu)
            it.pair.two._overlay.send_udp(datagram.destination, 9, datagram.source, datagram.source_port, b"x" * 3000)

        nursery.start_soon(answer)
        await it.phone.send(udp.Datagram(5, 9, b"question").encode(PHONE, STABLE))
        assembler, whole = fragments.Assembler(), None
        while whole is None:
            packet = await it.phone.packets.receive()
            assert len(packet) <= 1280
            whole = assembler.add(ip.parse_untrusted(packet), 0.0)
        assert (whole.source, whole.destination) == (STABLE, PHONE)
        assert has_valid_checksum(whole.encode()) and udp.parse_untrusted(whole.payload).payload == b"x" * 3000
        nobody_there = udp.Datagram(5, 10, b"anyone?").encode(PHONE, STABLE)
        await it.phone.send(nobody_there)
        error = await it.phone.packets.receive()
        assert has_valid_checksum(error) and error[40:42] == bytes([icmp.UNREACHABLE, icmp.CODE_PORT_UNREACHABLE])
        assert error[48 + 8 : 48 + 40] == nobody_there[8:40]


async def test_invalid_fragment_is_dropped() -> None:
    async with world() as it:
        it.admit(it.phone.config())
        begun = udp.Datagram(0, 0, b"").encode(PHONE, address(2).packed)
        it.gateway._clients[it.phone.key.public].flows.sent(begun, trio.current_time())
        odd = ip.Packet(fragments.PROTOCOL, address(2).packed, PHONE, b"\x11\x00\x00\x01" + bytes(1405)).encode()
        far = ip.Packet(fragments.PROTOCOL, address(2).packed, PHONE, b"\x11\x00\xff\xf8" + bytes(1404)).encode()
        assert it.gateway._route([odd, far]) == []
        assert it.gateway.stats.malformed == 2


async def test_ipv6_endpoint_in_brackets() -> None:
    async with world() as it:
        it.admit(it.phone.config())
        it.gateway._clients[it.phone.key.public].tunnel.source = ("2001:db8::1", 51820)
        status = it.gateway.status(it.phone.key.public)
        assert status is not None and status.endpoint == "[2001:db8::1]:51820"


async def test_forbidden_peer_is_refused() -> None:
    async with world() as it:
        it.admit(it.phone.config())
        await it.phone.send(echo(ELSEWHERE, b"let me in"))
        refusal = await it.phone.packets.receive()
        assert refusal[40:42] == bytes([icmp.UNREACHABLE, rewrite.CODE_PROHIBITED])
        it.admit(replace(it.phone.config(), peers=frozenset(), stable={}))
        await it.phone.send(echo(address(2).packed, b"not any more"))
        assert (await it.phone.packets.receive())[40:42] == bytes([icmp.UNREACHABLE, rewrite.CODE_PROHIBITED])
        assert it.gateway.stats.refused == 2 and not it.wanted


async def test_agent_cannot_reach_forbidden_client() -> None:
    async with world() as it:
        it.admit(it.phone.config())
        await it.phone.send(echo(address(2).packed, b"first"))
        await it.phone.packets.receive()
        it.admit(replace(it.phone.config(), peers=frozenset(), stable={}))
        refused = it.gateway.stats.refused
        for destination in (PHONE, ALIAS):
            it.pair.two.send_packets(destination, [echo(destination, b"boo", address(2).packed)])
        it.pair.two.kick()
        while it.gateway.stats.refused < refused + 2:
            await trio.sleep(0.001)


async def test_agent_opens_no_flow() -> None:
    """Neither to a port of its own choice nor to the source port of another flow of the client."""
    async with world() as it:
        it.admit(it.phone.config())
        await it.phone.send(udp.Datagram(5, 10, b"anyone?").encode(PHONE, STABLE))
        await it.phone.packets.receive()
        here = address(2).packed
        for destination in (PHONE, ALIAS):
            unsolicited = it.gateway.stats.unsolicited
            tries = [
                echo(destination, b"boo", here),
                udp.Datagram(10, 7, b"boo").encode(here, destination),
                udp.Datagram(11, 5, b"boo").encode(here, destination),
                ip.Packet(ip.PROTOCOL_TCP, here, destination, tcp.Segment(22, 22, 1, 0, tcp.SYN, 9).encode()).encode(),
            ]
            it.pair.two.send_packets(destination, tries)
            it.pair.two.kick()
            while it.gateway.stats.unsolicited < unsolicited + len(tries):
                await trio.sleep(0.001)
        with pytest.raises(trio.WouldBlock):
            it.phone.packets.receive_nowait()


async def test_removed_client_is_cut_off() -> None:
    async with world() as it:
        it.admit(it.phone.config())
        await it.phone.send(echo(address(2).packed, b"first"))
        await it.phone.packets.receive()
        it.admit()
        stranger = Phone(it.gateway, own=ELSEWHERE)
        async with trio.open_nursery() as nursery:
            await nursery.start(stranger.run)
            it.admit(stranger.config())
            await it.phone.send(echo(address(2).packed, b"gone"))
            await stranger.send(echo(address(2).packed, b"mine", ELSEWHERE))
            await stranger.packets.receive()  # so the gateway has processed the other's datagram
            nursery.cancel_scope.cancel()
        assert it.phone.packets.statistics().current_buffer_used == 0
        assert it.gateway.status(it.phone.key.public) is None


async def test_packets_wait_for_missing_peer() -> None:
    async with world() as it:
        it.admit(it.phone.config())
        key = it.pair.two.self_info.public_key
        it.pair.one.remove_peer(key)
        await it.phone.send(echo(STABLE, b"patience"))
        while not it.wanted:
            await trio.sleep(0.001)
        assert it.wanted == [address(2).packed]
        introduce(it.pair.one, it.pair.two)
        it.gateway.peer_ready(address(2).packed)
        assert icmp.parse_untrusted((await it.phone.packets.receive())[40:]).body == b"patience"


async def test_oversized_packets_get_mtu() -> None:
    async with world() as it:
        it.admit(it.phone.config())
        await it.phone.send(echo(STABLE, b"x" * 1400))
        answer = await it.phone.packets.receive()
        assert icmp.parse_untrusted(answer[40:]).type == icmp.TOO_BIG
        assert icmp.parse_untrusted(answer[40:]).parameter == 1280


def test_only_syn_packets_are_clamped() -> None:
    for before in (b"", b"\x01", b"\x01\x01\x01"):  # the option at even and odd offsets
        options = before + b"\x02\x04\x05\xb4"
        options += bytes(-len(options) % 4)
        header = (1).to_bytes(2, "big") + (22).to_bytes(2, "big") + bytes(8)
        header += bytes([(20 + len(options)) // 4 << 4, tcp.SYN]) + b"\xff\xff" + bytes(4) + options
        check = ip.checksum(ip.PROTOCOL_TCP, PHONE, STABLE, header)
        segment = header[:16] + check.to_bytes(2, "big") + header[18:]
        syn = ip.header(ip.PROTOCOL_TCP, PHONE, STABLE, len(segment)) + segment
        assert has_valid_checksum(syn)
        clamped = rewrite.clamp_mss(syn, 1280)
        assert has_valid_checksum(clamped) and len(clamped) == len(syn)
        assert clamped[60 + len(before) + 2 : 60 + len(before) + 4] == (1220).to_bytes(2, "big")
        assert rewrite.clamp_mss(clamped, 1280) is clamped
    other = echo(STABLE, b"x")
    assert rewrite.clamp_mss(other, 1280) is other


def test_readdressing_twice_restores_packet() -> None:
    old, new = PHONE + STABLE, ALIAS + ELSEWHERE
    packet = udp.Datagram(1, 2, b"some bytes").encode(PHONE, STABLE)
    there = rewrite.readdress(packet, ALIAS, ELSEWHERE, rewrite.difference(old, new))
    assert there != packet and has_valid_checksum(there)
    assert rewrite.readdress(there, PHONE, STABLE, rewrite.difference(new, old)) == packet
    later = ip.Packet(44, PHONE, STABLE, b"\x11\x00\x00\x80" + bytes(4) + b"payload").encode()
    assert rewrite.readdress(later, ALIAS, ELSEWHERE, 77)[40:] == later[40:]


@pytest.mark.parametrize(
    ("kind", "may"), [(1, False), (2, False), (127, False), (128, True), (137, False), (138, True)]
)
def test_errors_get_no_error(kind: int, may: bool) -> None:
    """RFC 4443 section 2.4, e.1 and e.2."""
    assert rewrite.may_answer(icmp.Message(kind, 0, 0, b"").encode(PHONE, STABLE)) is may


@AT_ANY_SPEED
@given(st.integers(0, 255), st.binary(max_size=120), st.binary(max_size=20))
def test_no_client_packet_breaks_router(protocol: int, payload: bytes, padding: bytes) -> None:
    packet = ip.Packet(protocol, PHONE, STABLE, payload).encode()
    assert rewrite.trimmed(packet + padding) == packet
    assert rewrite.trimmed(packet[:-1]) == b""
    added = rewrite.difference(PHONE + STABLE, ALIAS + ELSEWHERE)
    moved = rewrite.readdress(rewrite.clamp_mss(packet, 1280), ALIAS, ELSEWHERE, added)
    assert len(moved) == len(packet) and moved[8:40] == ALIAS + ELSEWHERE
    if rewrite.may_answer(packet):
        assert has_valid_checksum(rewrite.prohibited(packet)) and has_valid_checksum(rewrite.too_big(packet, 1280))


@AT_ANY_SPEED
@given(st.binary(max_size=200))
def test_arbitrary_bytes_trim_to_packet(data: bytes) -> None:
    packet = rewrite.trimmed(data)
    assert not packet or len(packet) == 40 + int.from_bytes(packet[4:6], "big")


async def test_flood_leaves_staged_packets_of_others() -> None:
    """While a peer is not installed yet, its packets wait; a client that floods loses only its own."""
    place = GatewayPlace()
    request = icmp.Message(icmp.ECHO_REQUEST, 0, 5, b"hello").encode(place.witness.overlay, MISSING)
    for datagram in place.witness.tunnel.seal([request], 0.0):
        place.gateway._on_batch(bytearray(datagram), len(datagram), len(datagram), WITNESS)
    flood = icmp.Message(icmp.ECHO_REQUEST, 0, 5, b"flood").encode(place.device.overlay, MISSING)
    place.attack.inner(*[flood] * 500)
    waiting = [packet for _, _, packet in place.gateway._staged[MISSING]]
    assert len(waiting) == 64
    assert waiting.count(request) == 1
