"""Harnesses of the mesh."""

from __future__ import annotations

from typing import Any

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.box import open_untrusted as open_box
from coder.mesh.core.crypto.handshake_cookie import CookieJar
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.crypto.noise import (
    NO_PSK,
    read_initiation_untrusted,
    read_response_untrusted,
    read_timestamp_untrusted,
    write_initiation,
)
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.tunnel.handshake import Handshaker
from coder.mesh.core.wire import (
    address,
    derp,
    derp_info,
    derp_reader,
    disco,
    icmp,
    ip,
    ip4,
    portmap,
    stun,
    tcp,
    tsmp,
    udp,
    wireguard,
)
from tests.kit.harnesses.parts import OURS, THEIRS, Call, Harness, _text

BOX = SharedBox(OURS, THEIRS.public)


NONCE = bytes(24)


TX = bytes(12)


A, B = bytes.fromhex("fd7a" + 28 * "1"), bytes.fromhex("fd7a" + 28 * "2")


def _cut(data: bytes, *sizes: int) -> Any:
    """Fixed-size fields out of any bytes: what is missing is zero."""
    fields, at = [], 0
    for size in sizes:
        fields.append(data[at : at + size].ljust(size, b"\0"))
        at += size
    return fields


def _noise() -> tuple[Any, Any, Any]:
    """(fields of an initiation, what its sender remembers, what its receiver heard)."""
    shared = OURS.exchange(THEIRS.public)
    fields, initiated = write_initiation(OURS.public, THEIRS.public, shared, PrivateKey(bytes(32)), bytes(12))
    return fields, initiated, read_initiation_untrusted(THEIRS, fields.ephemeral, fields.static)


FIELDS, INITIATED, HEARD = _noise()


HANDSHAKER = Handshaker(THEIRS, OURS.public, NO_PSK, bytes)


JAR = CookieJar(THEIRS.public)


def _response(data: bytes) -> wireguard.HandshakeResponse:
    return wireguard.HandshakeResponse(1, HANDSHAKER.pending_index or 0, *_cut(data, 32, 16))


def _initiation(data: bytes) -> wireguard.Initiation:
    return wireguard.Initiation(1, *_cut(data, 32, 48, 28))


def _accept_response(data: bytes) -> object:
    HANDSHAKER.initiate(7, 1.8e9, 0.0)
    return HANDSHAKER.accept_response_untrusted(_response(data))


def _tunnel_call(name: str) -> Call:
    from tests.kit.network.wireguard_devices import Pair

    pair = Pair()

    def call(data: bytes) -> object:
        pair.a.tunnel.start_handshake(pair.now)
        if name == "initiation":
            message = _initiation(data)
            return pair.a.tunnel.accept_initiation_untrusted(HEARD, message, ("192.0.2.1", 1), pair.now, [])
        if name == "response":
            return pair.a.tunnel.accept_response_untrusted(_response(data), ("192.0.2.1", 1), pair.now, [])
        return pair.a.tunnel.accept_cookie_untrusted(wireguard.CookieReply(1, *_cut(data, 24, 32)), pair.now)

    return call


def _device(data: bytes) -> object:
    from tests.kit.network.wireguard_devices import Pair

    pair = Pair()
    pair.a.device.receive_untrusted(data, ("192.0.2.1", 1), 0.0)
    return pair.a.device.receive_batch_untrusted(memoryview(data), len(data), 48, ("192.0.2.1", 1), 0.0)


def _refuses(data: bytes) -> object:
    from tests.kit.network.wireguard_devices import Pair

    return Pair().a.device.refuses_untrusted(data, 0, len(data))


def _quietly(data: bytes) -> object:
    from tests.kit.network.wireguard_devices import Pair

    pair = Pair()
    return pair.a.device.open_fast_untrusted(memoryview(data), len(data), 48, ("192.0.2.1", 1), 0.0, [])


def _frames(data: bytes) -> None:
    for kind, body in derp_reader.FrameReader().feed_untrusted(data):
        derp_reader.parse_untrusted(kind, body)


def _client_info(data: bytes) -> None:
    """Read, and used as the relay uses it."""
    sealed = derp.SealedClientInfo(OURS.public, NONCE, BOX.seal(NONCE, data))
    derp_info.open_client_info_untrusted(BOX, sealed).mesh_key.encode()


def _stun_round(data: bytes) -> object:
    from coder.mesh.drivers.stun import StunRound

    return StunRound.on_answer_untrusted(_Asked(), data)  # type: ignore[arg-type]


class _Asked:
    """What a round of questions needs to take an answer; nothing was asked."""

    def __init__(self) -> None:
        self._outstanding: dict[bytes, object] = {}


class _Listening:
    """What a netcheck needs to take a STUN message."""

    class _round:  # noqa: N801 - the attribute's name
        on_answer_untrusted = staticmethod(_stun_round)


def _netcheck(data: bytes) -> None:
    from coder.mesh.drivers.netcheck import Netcheck

    Netcheck.on_stun_untrusted(_Listening(), data)  # type: ignore[arg-type]


def _port_mapping(data: bytes) -> object:
    from coder.mesh.core.paths.portmapping import PortMapping

    mapping = PortMapping(bytes)
    mapping.want("192.0.2.1", 9, 0.0)
    return mapping.on_answer_untrusted(data, 0.0)


PORT_WANTED = portmap.PcpMap(TX, "192.0.2.1", 9, 60).encode()


PORT_MAPPED = portmap.PcpMapped(0, 60, 1, TX, 9, ("192.0.2.1", 9)).encode()


RESPONSE = stun.BindingResponse(TX, address.UdpAddress("192.0.2.1", 9)).encode()


SEGMENT = tcp.Segment(1, 2, 3, 4, tcp.ACK, 5, tcp.Options(1220, 7, True, (1, 2), ((3, 4),)), b"data").encode()


PACKET = ip.header(6, A, B, len(SEGMENT)) + SEGMENT


DATAGRAM = udp.Datagram(1, 2, b"data").encode(A, B)[ip.HEADER_SIZE :]


ECHO = icmp.Message(icmp.ECHO_REQUEST, 0, 1, b"data").body_bytes()


QUOTE = (
    ip4._header(1, b"\x0a\0\0\1", b"\x0a\0\0\2", 56, 0, 0) + icmp.Message(3, 4, 1280, b"\x45" + bytes(47)).body_bytes()
)


PING = disco.DiscoPing(TX, OURS.public, 44)


MESH = {
    "core/crypto/box.py:SharedBox.open_untrusted": Harness(
        lambda d: BOX.open_untrusted(d[:24], d[24:]), (CryptoError,), [NONCE + BOX.seal(NONCE, b"text")]
    ),
    "core/crypto/box.py:open_untrusted": Harness(
        lambda d: open_box(OURS, THEIRS.public, d[:24], d[24:]), (CryptoError,), [NONCE + BOX.seal(NONCE, b"text")]
    ),
    "core/crypto/handshake_cookie.py:CookieJar.accept_reply_untrusted": Harness(
        lambda d: JAR.accept_reply_untrusted(*_cut(d, 24, 32), 0.0),  # type: ignore[call-arg]
        (CryptoError,),
        [bytes(56)],
    ),
    "core/crypto/keys.py:PublicKey.from_binary_untrusted": Harness(
        PublicKey.from_binary_untrusted, (CryptoError,), [OURS.public.binary]
    ),
    "core/crypto/noise.py:read_initiation_untrusted": Harness(
        lambda d: read_initiation_untrusted(THEIRS, *_cut(d, 32, 48)),
        (CryptoError,),
        [FIELDS.ephemeral + FIELDS.static],
    ),
    "core/crypto/noise.py:read_timestamp_untrusted": Harness(
        lambda d: read_timestamp_untrusted(HEARD, THEIRS.exchange(OURS.public), d), (CryptoError,), [FIELDS.timestamp]
    ),
    "core/crypto/noise.py:read_response_untrusted": Harness(
        lambda d: read_response_untrusted(INITIATED, OURS, *_cut(d, 32, 16), NO_PSK),  # type: ignore[call-arg]
        (CryptoError,),
        [bytes(48)],
    ),
    "core/tunnel/device.py:Device.receive_untrusted": Harness(_device, (), [bytes((1, 0, 0, 0)) + bytes(144)]),
    "core/tunnel/device.py:Device.refuses_untrusted": Harness(_refuses, (), [bytes(148), bytes(92)]),
    "core/tunnel/device.py:Device.open_fast_untrusted": Harness(_quietly, (), [bytes((4, 0, 0, 0)) + bytes(92)]),
    "core/tunnel/device.py:Device.receive_batch_untrusted": Harness(_device, (), [bytes((4, 0, 0, 0)) + bytes(92)]),
    "core/tunnel/handshake.py:Handshaker.accept_initiation_untrusted": Harness(
        lambda d: HANDSHAKER.accept_initiation_untrusted(HEARD, _initiation(d), 0.0),
        (CryptoError,),
        [FIELDS.ephemeral + FIELDS.static + FIELDS.timestamp],
    ),
    "core/tunnel/handshake.py:Handshaker.accept_response_untrusted": Harness(
        _accept_response, (CryptoError,), [bytes(48)]
    ),
    "core/tunnel/peer.py:Tunnel.accept_initiation_untrusted": Harness(
        _tunnel_call("initiation"), (CryptoError,), [FIELDS.ephemeral + FIELDS.static + FIELDS.timestamp]
    ),
    "core/tunnel/peer.py:Tunnel.accept_response_untrusted": Harness(
        _tunnel_call("response"), (CryptoError,), [bytes(48)]
    ),
    "core/tunnel/peer.py:Tunnel.accept_cookie_untrusted": Harness(_tunnel_call("cookie"), (CryptoError,), [bytes(56)]),
    "core/wire/address.py:parse_endpoint_untrusted": Harness(
        _text(address.parse_endpoint_untrusted), (WireError,), [b"192.0.2.1:80", b"[2001:db8::1]:80"]
    ),
    "core/wire/derp_reader.py:FrameReader.feed_untrusted": Harness(
        _frames, (WireError,), [derp.encode_send_packet(OURS.public, b"data"), derp.DerpPong(bytes(8)).encode()]
    ),
    "core/wire/derp_reader.py:parse_untrusted": Harness(
        lambda d: derp_reader.parse_untrusted(d[0] if d else 0, d[1:]), (WireError,), [b"\x08" + bytes(33)]
    ),
    "core/wire/derp_info.py:open_client_info_untrusted": Harness(
        _client_info,
        (WireError,),
        [b'{"version":2,"CanAckPings":true}', b'{"version":2,"meshKey":"ab"}', b'{"meshKey":"\\ud800"}'],
    ),
    "core/wire/derp_info.py:open_server_info_untrusted": Harness(
        lambda d: derp_info.open_server_info_untrusted(BOX, derp.SealedServerInfo(NONCE, BOX.seal(NONCE, d))),
        (WireError,),
        [b'{"version":2,"TokenBucketBytesPerSecond":1}'],
    ),
    "core/wire/disco.py:sender_untrusted": Harness(
        disco.sender_untrusted, (WireError,), [disco.seal(BOX, OURS.public, NONCE, PING)]
    ),
    "core/wire/disco.py:open_untrusted": Harness(
        lambda d: disco.open_untrusted(BOX, d), (WireError,), [disco.seal(BOX, OURS.public, NONCE, PING)]
    ),
    "core/wire/disco.py:parse_untrusted": Harness(
        disco.parse_untrusted,
        (WireError,),
        [PING.encode(), disco.CallMeMaybe((address.UdpAddress("::1", 1),)).encode()],
    ),
    "core/wire/icmp.py:parse_untrusted": Harness(icmp.parse_untrusted, (WireError,), [ECHO]),
    "core/wire/ip.py:parse_untrusted": Harness(ip.parse_untrusted, (WireError,), [PACKET]),
    "core/wire/ip4.py:to_ipv6_untrusted": Harness(ip4.to_ipv6_untrusted, (WireError,), [QUOTE]),
    "core/wire/portmap.py:parse_answer_untrusted": Harness(
        portmap.parse_answer_untrusted, (WireError,), [PORT_MAPPED, portmap.PmpAddress(0, 1, "192.0.2.1").encode()]
    ),
    "core/wire/portmap.py:parse_request_untrusted": Harness(
        portmap.parse_request_untrusted, (WireError,), [portmap.PmpMap(9, 60).encode(), PORT_WANTED]
    ),
    "core/paths/portmapping.py:PortMapping.on_answer_untrusted": Harness(_port_mapping, (WireError,), [PORT_MAPPED]),
    "core/wire/stun.py:parse_request_untrusted": Harness(
        stun.parse_request_untrusted, (WireError,), [stun.BindingRequest(TX).encode()]
    ),
    "core/wire/stun.py:answer_any_untrusted": Harness(
        lambda data: stun.answer_any_untrusted(data, address.UdpAddress("192.0.2.1", 9)),
        (WireError,),
        [stun.BindingRequest(TX).encode()],
    ),
    "core/wire/stun.py:parse_response_untrusted": Harness(stun.parse_response_untrusted, (WireError,), [RESPONSE]),
    "core/wire/tcp.py:parse_untrusted": Harness(tcp.parse_untrusted, (WireError,), [SEGMENT]),
    "core/wire/tcp.py:parse_options_untrusted": Harness(tcp.parse_options_untrusted, (WireError,), [SEGMENT[20:48]]),
    "core/wire/tsmp.py:parse_untrusted": Harness(
        tsmp.parse_untrusted, (WireError,), [b"p" + bytes(8), b"!" + bytes(8)]
    ),
    "core/wire/udp.py:parse_untrusted": Harness(udp.parse_untrusted, (WireError,), [DATAGRAM]),
    "core/wire/wireguard.py:parse_untrusted": Harness(
        wireguard.parse_untrusted, (WireError,), [bytes((1, 0, 0, 0)) + bytes(144), bytes((4, 0, 0, 0)) + bytes(28)]
    ),
    "drivers/netcheck.py:Netcheck.on_stun_untrusted": Harness(_netcheck, (), [RESPONSE]),
    "drivers/stun.py:StunRound.on_answer_untrusted": Harness(_stun_round, (WireError,), [RESPONSE]),
}
