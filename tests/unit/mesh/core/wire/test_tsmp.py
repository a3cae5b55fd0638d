"""The recorded pings of genuine nodes, decoded and encoded."""

import json
from ipaddress import IPv6Address

import pytest

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import icmp, ip, tsmp
from tests.kit.paths import DATA

RECORDED = json.loads((DATA / "wire" / "tsmp.json").read_text())
SOURCE = IPv6Address(RECORDED["src"]).packed
DESTINATION = IPv6Address(RECORDED["dst"]).packed
TOKEN = bytes.fromhex(RECORDED["data"])


def packet(name: str) -> ip.Packet:
    return ip.parse_untrusted(bytes.fromhex(RECORDED[name]))


def test_ping_matches_recording() -> None:
    assert tsmp.TsmpPing(TOKEN).encode(SOURCE, DESTINATION).hex() == RECORDED["ping"]
    assert tsmp.parse_untrusted(packet("ping").payload) == tsmp.TsmpPing(TOKEN)


def test_pong_matches_recording() -> None:
    assert tsmp.TsmpPong(TOKEN).encode(DESTINATION, SOURCE).hex() == RECORDED["pong"]
    assert tsmp.parse_untrusted(packet("pong").payload) == tsmp.TsmpPong(TOKEN)


def test_reject_is_understood() -> None:
    fields = RECORDED["reject_fields"]
    assert tsmp.parse_untrusted(packet("reject").payload) == tsmp.Reject(
        fields["proto"], fields["reason"], fields["rejected_src_port"], fields["rejected_dst_port"]
    )


def test_echo_matches_recording() -> None:
    body = bytes.fromhex(RECORDED["icmp6_payload"])
    parameter = int(RECORDED["icmp6_id_seq"], 16)
    request = icmp.Message(icmp.ECHO_REQUEST, 0, parameter, body)
    assert request.encode(SOURCE, DESTINATION).hex() == RECORDED["icmp6_echo_request"]
    reply = icmp.Message(icmp.ECHO_REPLY, 0, parameter, body)
    assert reply.encode(DESTINATION, SOURCE).hex() == RECORDED["icmp6_echo_reply"]
    assert icmp.parse_untrusted(packet("icmp6_echo_request").payload) == request


@pytest.mark.parametrize("payload", [b"", b"p1234567", b"x12345678", b"!123"])
def test_foreign_bytes_are_rejected(payload: bytes) -> None:
    with pytest.raises(WireError):
        tsmp.parse_untrusted(payload)
