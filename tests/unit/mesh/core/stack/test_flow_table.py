"""Flows behind a router: which side opens them, which answers enter, expiry and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.mesh.core.stack import flow_table, fragments
from coder.mesh.core.stack.flow_table import MAX_FLOWS, MAX_FRAGMENTS, SHORT_LIFE, TCP_LIFE, FlowTable
from coder.mesh.core.wire import icmp, ip, tcp, udp

INSIDE, OUTSIDE, OTHER = (bytes([0xFD, *bytes(14), last]) for last in (1, 2, 3))


def _tcp(source: bytes, destination: bytes, ports: tuple[int, int], flags: int) -> bytes:
    segment = tcp.Segment(ports[0], ports[1], 1, 0, flags, 100)
    return ip.Packet(ip.PROTOCOL_TCP, source, destination, segment.encode()).encode()


def _udp(source: bytes, destination: bytes, ports: tuple[int, int], payload: bytes = b"") -> bytes:
    return udp.Datagram(ports[0], ports[1], payload).encode(source, destination)


def _icmp(source: bytes, destination: bytes, kind: int, rest: bytes, code: int = 0) -> bytes:
    return ip.Packet(ip.PROTOCOL_ICMP6, source, destination, bytes([kind, code, 0, 0]) + rest).encode()


SENT = {
    "tcp": _tcp(INSIDE, OUTSIDE, (5000, 22), tcp.SYN),
    "tcp in its middle": _tcp(INSIDE, OUTSIDE, (5000, 22), tcp.ACK),
    "udp": _udp(INSIDE, OUTSIDE, (5000, 53)),
    "echo": _icmp(INSIDE, OUTSIDE, icmp.ECHO_REQUEST, b"\0\7\0\1"),
}
ANSWERS = {
    "tcp": _tcp(OUTSIDE, INSIDE, (22, 5000), tcp.SYN | tcp.ACK),
    "tcp in its middle": _tcp(OUTSIDE, INSIDE, (22, 5000), tcp.ACK),
    "udp": _udp(OUTSIDE, INSIDE, (53, 5000)),
    "echo": _icmp(OUTSIDE, INSIDE, icmp.ECHO_REPLY, b"\0\7\0\1"),
}
NOT_ANSWERS = {
    "syn on ports in use": _tcp(OUTSIDE, INSIDE, (22, 5000), tcp.SYN),
    "another port inside": _tcp(OUTSIDE, INSIDE, (22, 5001), tcp.ACK),
    "another port outside": _tcp(OUTSIDE, INSIDE, (23, 5000), tcp.ACK),
    "another host": _tcp(OTHER, INSIDE, (22, 5000), tcp.ACK),
    "udp on tcp's ports": _udp(OUTSIDE, INSIDE, (22, 5000)),
    "udp of another port": _udp(OUTSIDE, INSIDE, (54, 5000)),
    "an echo request": _icmp(OUTSIDE, INSIDE, icmp.ECHO_REQUEST, b"\0\7\0\1"),
    "another echo": _icmp(OUTSIDE, INSIDE, icmp.ECHO_REPLY, b"\0\x08\0\1"),
    "a neighbour's word": _icmp(OUTSIDE, INSIDE, 136, bytes(20)),
    "hop by hop": ip.Packet(0, OUTSIDE, INSIDE, b"\6" + bytes(7) + ANSWERS["tcp"][40:]).encode(),
    "unknown protocol": ip.Packet(132, OUTSIDE, INSIDE, bytes(20)).encode(),
    "short": ip.Packet(ip.PROTOCOL_TCP, OUTSIDE, INSIDE, bytes(13)).encode(),
    "a later fragment": ip.Packet(44, OUTSIDE, INSIDE, b"\x11\0\0\x08" + bytes(12)).encode(),
    "an error about what was not sent": _icmp(
        OUTSIDE, INSIDE, icmp.UNREACHABLE, bytes(4) + _udp(INSIDE, OUTSIDE, (9, 9))
    ),
    "an error about another's packet": _icmp(
        OUTSIDE, INSIDE, icmp.UNREACHABLE, bytes(4) + _udp(OTHER, OUTSIDE, (9, 9))
    ),
    "another host's error": _icmp(OTHER, INSIDE, icmp.UNREACHABLE, bytes(4) + SENT["udp"], 4),
    "another host's packet too big": _icmp(OTHER, INSIDE, icmp.TOO_BIG, b"\0\0\5\0" + SENT["tcp"][:48]),
    "an error about nothing": _icmp(OUTSIDE, INSIDE, icmp.UNREACHABLE, bytes(4)),
}


def _table_with_all_flows() -> FlowTable:
    table = FlowTable()
    for packet in SENT.values():
        table.sent(packet, 0.0)
    return table


@pytest.mark.parametrize("name", SENT)
def test_answers_enter_only_during_flow(name: str) -> None:
    table = FlowTable()
    assert not table.may_enter(ANSWERS[name], 0.0)
    table.sent(SENT[name], 0.0)
    life = TCP_LIFE if name.startswith("tcp") else SHORT_LIFE
    assert table.may_enter(ANSWERS[name], life - 1)
    assert not table.may_enter(ANSWERS[name], life), "answers keep nothing alive"
    assert len(table) == 0
    table.sent(SENT[name], life)
    assert table.may_enter(ANSWERS[name], life + 1)


@pytest.mark.parametrize("name", NOT_ANSWERS)
def test_other_packets_do_not_enter(name: str) -> None:
    assert not _table_with_all_flows().may_enter(NOT_ANSWERS[name], 1.0)


@pytest.mark.parametrize("name", [name for name in SENT if name != "tcp in its middle"])
def test_errors_about_a_flow_enter(name: str) -> None:
    table = FlowTable()
    error = _icmp(OUTSIDE, INSIDE, icmp.UNREACHABLE, bytes(4) + SENT[name][:48], 4)
    assert not table.may_enter(error, 0.0)
    table.sent(SENT[name], 0.0)
    assert table.may_enter(error, 1.0)


def test_fragments_follow_first_fragment() -> None:
    whole = _udp(OUTSIDE, INSIDE, (53, 5000), bytes(3000))
    pieces = fragments.split(whole, 1280, 7)
    table = FlowTable()
    assert not any(table.may_enter(piece, 0.0) for piece in pieces)
    table.sent(SENT["udp"], 0.0)
    assert not table.may_enter(pieces[1], 0.0), "its first has not come"
    assert all(table.may_enter(piece, 0.0) for piece in pieces)
    others = fragments.split(whole, 1280, 8)
    assert not table.may_enter(others[1], 0.0), "of another datagram"


def test_inner_errors_open_no_flow() -> None:
    table = FlowTable()
    table.sent(_icmp(INSIDE, OUTSIDE, icmp.ECHO_REPLY, b"\0\7\0\1"), 0.0)
    table.sent(_icmp(INSIDE, OUTSIDE, icmp.UNREACHABLE, bytes(4) + ANSWERS["udp"]), 0.0)
    table.sent(ip.Packet(132, INSIDE, OUTSIDE, bytes(20)).encode(), 0.0)
    assert len(table) == 0


def test_table_drops_idle_flows() -> None:
    table = FlowTable()
    for port in range(MAX_FLOWS):
        table.sent(_udp(INSIDE, OUTSIDE, (port, 53)), 0.0)
    table.sent(_udp(INSIDE, OUTSIDE, (0, 53)), 1.0)
    table.sent(_udp(INSIDE, OUTSIDE, (MAX_FLOWS, 53)), 1.0)
    assert len(table) == MAX_FLOWS
    assert table.may_enter(_udp(OUTSIDE, INSIDE, (53, 0)), 1.0)
    assert not table.may_enter(_udp(OUTSIDE, INSIDE, (53, 1)), 1.0)
    whole = _udp(OUTSIDE, INSIDE, (53, 0), bytes(3000))
    for number in range(MAX_FRAGMENTS + 9):
        assert table.may_enter(fragments.split(whole, 1280, number)[0], 1.0)
    assert len(table._fragments) == flow_table.MAX_FRAGMENTS


@given(st.binary(max_size=120), st.sampled_from([0, 6, 17, 44, 58, 132]))
def test_any_payload_is_decided(payload: bytes, protocol: int) -> None:
    table = _table_with_all_flows()
    table.sent(ip.Packet(protocol, INSIDE, OUTSIDE, payload).encode(), 0.0)
    assert table.may_enter(ip.Packet(protocol, OTHER, INSIDE, payload).encode(), 0.0) in {True, False}
    assert not FlowTable().may_enter(ip.Packet(protocol, OUTSIDE, INSIDE, payload).encode(), 0.0)
