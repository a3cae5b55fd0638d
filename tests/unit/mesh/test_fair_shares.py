"""Tables that all peers share: a peer that fills one keeps no other peer out."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
import trio

from coder.mesh.core.stack import flow_table, fragments
from coder.mesh.core.stack.flow_table import FlowTable
from coder.mesh.core.stack.interface import Stack
from coder.mesh.core.stack.settings import TcpSettings
from coder.mesh.core.wire import ip, tcp, udp
from coder.mesh.core.wire.tcp import SYN, Options, Segment
from coder.mesh.drivers import overlay
from coder.mesh.drivers.overlay import Overlay, UdpFlow
from coder.mesh.fair_shares import FairShares

HOST = bytes.fromhex("fd7a115ca1e000000000000000000001")
FLOODER = bytes.fromhex("fd7a115ca1e000000000000000000066")
HONEST = bytes.fromhex("fd7a115ca1e000000000000000000009")
Enter = Callable[[bytes, int], bool]
"""(peer, number of its entry): makes an entry, and returns whether the table has it."""


def _stack() -> Stack:
    return Stack([HOST], Random(7).randbytes, settings=TcpSettings(max_held_syns=128))


def _connects(stack: Stack, peer: bytes, number: int) -> None:
    syn = Segment(1000 + number, 22, 1, 0, SYN, 1000, Options(mss=1220), b"")
    stack.input_batch([ip.Packet(ip.PROTOCOL_TCP, peer, HOST, syn.encode()).encode()], 1000.0)


def half_open_connections() -> tuple[int, Enter]:
    stack = _stack()
    stack.tcp_listen(22)

    def enter(peer: bytes, number: int) -> bool:
        _connects(stack, peer, number)
        return any(s.remote == peer and s.remote_port == 1000 + number for s in stack.connections)

    return 128, enter


def connections_that_wait_for_accept() -> tuple[int, Enter]:
    stack = _stack()
    listener = stack.tcp_listen(22)

    def enter(peer: bytes, number: int) -> bool:
        _connects(stack, peer, number)
        for _, packets in stack.take_output(1000.0):
            for packet in packets:
                answer = tcp.parse_untrusted(ip.parse_untrusted(packet).payload)
                if answer.flags & SYN:
                    done = Segment(answer.port, 22, 2, answer.seq + 1, tcp.ACK, 1000, Options(), b"")
                    stack.input_batch([ip.Packet(ip.PROTOCOL_TCP, peer, HOST, done.encode()).encode()], 1000.0)
        return any(s.remote == peer and s.remote_port == 1000 + number for s in listener.queue)

    return 128, enter


def forwarded_connections() -> tuple[int, Enter]:
    """Of those a fallback accepts: each holds a descriptor from the SYN on, whether its handshake finishes or not."""
    stack = Stack([HOST], Random(7).randbytes, settings=TcpSettings(max_connections=128))
    accepted: list[object] = []
    stack.set_tcp_fallback(lambda pending: accepted.append(pending.accept()))

    def enter(peer: bytes, number: int) -> bool:
        _connects(stack, peer, number)
        assert len(stack.connections) <= 128
        return any(s.remote == peer and s.remote_port == 1000 + number for s in stack.connections)

    return 128, enter


def held_syns() -> tuple[int, Enter]:
    stack = _stack()
    stack.set_tcp_fallback(lambda _: None)

    def enter(peer: bytes, number: int) -> bool:
        _connects(stack, peer, number)
        return any(p.source == peer and p.source_port == 1000 + number for p in stack._demux.held.values())

    return 128, enter


def fragmented_datagrams() -> tuple[int, Enter]:
    assembler = fragments.Assembler()

    def enter(peer: bytes, number: int) -> bool:
        whole = udp.Datagram(1, 53, bytes(2000)).encode(peer, HOST)
        assembler.add(ip.parse_untrusted(fragments.split(whole, 1280, number)[0]), 1000.0)
        return any(p.source == peer for p in assembler.waiting.values())

    return fragments._MAX_PACKETS, enter


def fragments_through_the_gateway() -> tuple[int, Enter]:
    flows = FlowTable()

    def enter(peer: bytes, number: int) -> bool:
        flows.sent(udp.Datagram(53, 9, b"question").encode(HOST, peer), 1000.0)
        whole = udp.Datagram(9, 53, bytes(2000)).encode(peer, HOST)
        first, second = fragments.split(whole, 1280, number)
        assert flows.may_enter(first, 1000.0)
        return flows.may_enter(second, 1000.0)

    return flow_table.MAX_FRAGMENTS, enter


TABLES = [
    half_open_connections,
    connections_that_wait_for_accept,
    forwarded_connections,
    held_syns,
    fragmented_datagrams,
    fragments_through_the_gateway,
]


@pytest.mark.parametrize("table", TABLES)
def test_flooder_leaves_room_for_others(table: Callable[[], tuple[int, Enter]]) -> None:
    limit, enter = table()
    for number in range(limit + 10):
        enter(FLOODER, number)
    for number in range(limit // 2 - 1):
        assert enter(HONEST, 10_000 + number), number
    for number in range(20_000, 20_000 + limit):
        enter(FLOODER, number)
    assert enter(HONEST, 30_000)


async def test_flooder_leaves_room_for_flows(autojump_clock: object) -> None:
    """A flow that gives way ends its task as well."""
    stack, served = _stack(), set[tuple[bytes, int, int]]()

    async def forward(flow: UdpFlow) -> None:
        served.add(flow.key)
        try:
            await trio.sleep_forever()
        finally:
            served.remove(flow.key)

    async with trio.open_nursery() as nursery:
        view = Overlay(stack, lambda: None, nursery)
        view.set_udp_forward(forward)
        for peer, count in ((FLOODER, overlay.MAX_FLOWS + 10), (HONEST, 1)):
            for number in range(count):
                packet = udp.Datagram(1000 + number, 53, b"x").encode(peer, HOST)
                stack.input_batch([packet], 1000.0)
            await trio.testing.wait_all_tasks_blocked()
        assert (HONEST, 1000, 53) in served
        assert served == view._flows.keys()
        assert len(served) == overlay.MAX_FLOWS
        nursery.cancel_scope.cancel()


def test_full_table_evicts_largest_share() -> None:
    shares: FairShares[int] = FairShares(4)
    for peer, entry in ((b"a", 1), (b"a", 2), (b"a", 3), (b"b", 4)):
        shares.add(peer, entry)
    assert shares.is_full
    assert shares.evictable_for(b"a") is None, "its own share is the largest"
    assert shares.evictable_for(b"b") == 1
    shares.discard(b"a", 1)
    shares.add(b"b", 5)
    assert shares.evictable_for(b"b") is None, "equal shares would evict each other in turn"
    assert shares.evictable_for(b"c") == 2
    assert (shares.oldest_of(b"b"), shares.oldest_of(b"c"), len(shares)) == (4, None, 4)


def test_removed_peer_leaves_nothing() -> None:
    stack = _stack()
    whole = udp.Datagram(1, 53, bytes(2000)).encode(FLOODER, HOST)
    stack.input_batch(fragments.split(whole, 1280, 1)[:1], 1000.0)
    assert stack._demux._assembler.waiting
    stack.reset_peer(FLOODER, 1000.0)
    assert not stack._demux._assembler.waiting
    stack.input_batch(fragments.split(whole, 1280, 2)[:1], 1000.0)
    assert stack.next_wake() == 1060.0
    stack.on_timer(1060.0)
    assert not stack._demux._assembler.waiting
    assert stack.next_wake() is None
