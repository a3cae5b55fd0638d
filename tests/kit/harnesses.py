"""One harness for every `*_untrusted` function: how to call it with bytes, what it may raise, what a genuine input is.

Lives here: the table. tests/fuzz/test_every_parser.py feeds it, and fails for a parser that has no line here.
Keys are `path:name` as in the source.
"""

from __future__ import annotations

import base64
import json
import struct
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from coder.base.errors import CoderError
from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.box import open_untrusted as open_box
from coder.mesh.core.crypto.cookie import CookieJar
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
from coder.rpc import drpc, yamux

Call = Callable[[bytes], object]


@dataclass(frozen=True)
class Harness:
    """How to feed one function."""

    call: Call
    errors: tuple[type[Exception], ...] = ()
    """What it may raise; nothing else, and nothing at all when empty."""
    seeds: Sequence[bytes] = (b"",)
    """Genuine inputs, from which the fuzzer makes damaged ones."""


OURS, THEIRS = PrivateKey(bytes(range(32))), PrivateKey(bytes(range(32, 64)))
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


def _text(parse: Callable[[str], object]) -> Call:
    return lambda data: parse(data.decode("utf-8", "surrogateescape"))


# -- the mesh -------------------------------------------------------------------------------------------------------


def _noise() -> tuple[Any, Any, Any]:
    """(fields of an initiation, what its sender remembers, what its receiver heard)."""
    shared = OURS.exchange(THEIRS.public)
    fields, initiated = write_initiation(OURS.public, THEIRS.public, shared, PrivateKey(bytes(32)), bytes(12))
    return fields, initiated, read_initiation_untrusted(THEIRS, fields.ephemeral, fields.static)


FIELDS, INITIATED, HEARD = _noise()
HANDSHAKER = Handshaker(THEIRS, OURS.public, NO_PSK, bytes)
JAR = CookieJar(THEIRS.public)
JAR.sign(b"message", 0.0)


def _response(data: bytes) -> wireguard.HandshakeResponse:
    return wireguard.HandshakeResponse(1, HANDSHAKER.pending_index or 0, *_cut(data, 32, 16))


def _initiation(data: bytes) -> wireguard.Initiation:
    return wireguard.Initiation(1, *_cut(data, 32, 48, 28))


def _accept_response(data: bytes) -> object:
    HANDSHAKER.initiate(7, 1.8e9, 0.0)
    return HANDSHAKER.accept_response_untrusted(_response(data))


def _tunnel_call(name: str) -> Call:
    from tests.kit.wireguard_pair import Pair

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
    from tests.kit.wireguard_pair import Pair

    pair = Pair()
    pair.a.device.receive_untrusted(data, ("192.0.2.1", 1), 0.0)
    return pair.a.device.receive_batch_untrusted(memoryview(data), len(data), 48, ("192.0.2.1", 1), 0.0)


def _signed_message(data: bytes) -> object:
    from coder.coderd.services.agents.signed_message import open_untrusted

    return open_untrusted(data)


def _certificate(data: bytes) -> object:
    from coder.coderd.services.agents.signed_message import certificate_untrusted

    return certificate_untrusted(data)


def _message_refused() -> type[Exception]:
    from coder.coderd.services.agents.signed_message import MessageRefused

    return MessageRefused


def _signed_sample() -> bytes:
    """Somebody's signature of a few words."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import pkcs7

    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "metadata.azure.com")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
        .not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1)).sign(key, hashes.SHA256())
    )  # fmt: skip
    builder = pkcs7.PKCS7SignatureBuilder().set_data(b"{}").add_signer(certificate, key, hashes.SHA256())
    return builder.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary])


def _sample_certificate() -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs7

    return pkcs7.load_der_pkcs7_certificates(_signed_sample())[0].public_bytes(Encoding.DER)


def _refuses(data: bytes) -> object:
    from tests.kit.wireguard_pair import Pair

    return Pair().a.device.refuses_untrusted(data, 0, len(data))


def _quietly(data: bytes) -> object:
    from tests.kit.wireguard_pair import Pair

    pair = Pair()
    return pair.a.device.open_quietly_untrusted(memoryview(data), len(data), 48, ("192.0.2.1", 1), 0.0, [])


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
        self._asked: dict[bytes, object] = {}


class _Listening:
    """What a netcheck needs to take a STUN message."""

    class _round:  # noqa: N801 - the attribute's name
        on_answer_untrusted = staticmethod(_stun_round)


def _netcheck(data: bytes) -> None:
    from coder.mesh.drivers.netcheck import Netcheck

    Netcheck.on_stun_untrusted(_Listening(), data)  # type: ignore[arg-type]


INFO = derp.SealedClientInfo(OURS.public, NONCE, BOX.seal(NONCE, b'{"version":2}'))


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
    "core/crypto/cookie.py:CookieJar.accept_reply_untrusted": Harness(
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
    "core/tunnel/device.py:Device.open_quietly_untrusted": Harness(_quietly, (), [bytes((4, 0, 0, 0)) + bytes(92)]),
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
    "core/wire/stun.py:answer_anybody_untrusted": Harness(
        lambda data: stun.answer_anybody_untrusted(data, address.UdpAddress("192.0.2.1", 9)),
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

# -- RPC and coordination ---------------------------------------------------------------------------------------------


def _yamux(data: bytes) -> None:
    machine = yamux.Yamux(client=False)
    machine.receive_untrusted(data)


def _drpc(data: bytes) -> None:
    list(drpc.IncomingCall().receive_untrusted(data))


def _node(data: bytes) -> object:
    from coder.rpc.proto import tailnet_pb2
    from coder.tailnet.node_messages import node_from_proto_untrusted

    key, disco_text = data[:34], data[34:].decode("utf-8", "replace")
    return node_from_proto_untrusted(tailnet_pb2.Node(key=key, disco=disco_text))


def _coordinate(data: bytes) -> object:
    from coder.coderd.services.network.coordinator import request_from_proto_untrusted
    from coder.rpc.proto import tailnet_pb2

    request = tailnet_pb2.CoordinateRequest()
    request.add_tunnel.id = data
    return request_from_proto_untrusted(request)


def _raw_uuid(data: bytes) -> object:
    from coder.coderd.services.network.coordinator import _uuid_untrusted

    return _uuid_untrusted(data)


FRAME = yamux.encode_frame(yamux.YamuxFrame(yamux.FrameType.DATA, yamux.Flag(1), 1, 4, b"data"))
CALL = drpc.encode_packet(drpc.DrpcPacket(drpc.PacketKind.INVOKE, 1, 1, b"/name"))

LINKS = {
    "rpc/drpc.py:PacketReader.receive_untrusted": Harness(
        lambda d: list(drpc.PacketReader().receive_untrusted(d)), (drpc.DrpcError,), [CALL]
    ),
    "rpc/drpc.py:IncomingCall.receive_untrusted": Harness(_drpc, (drpc.DrpcError,), [CALL]),
    "rpc/yamux.py:YamuxFrameReader.receive_untrusted": Harness(
        lambda d: list(yamux.YamuxFrameReader().receive_untrusted(d)), (yamux.YamuxError,), [FRAME]
    ),
    "rpc/yamux.py:Yamux.receive_untrusted": Harness(_yamux, (yamux.YamuxError,), [FRAME]),
    "tailnet/node_messages.py:node_from_proto_untrusted": Harness(
        _node, (), [OURS.public.binary + b"discokey:" + bytes(OURS.public).hex().encode()]
    ),
    "coderd/services/network/coordinator.py:request_from_proto_untrusted": Harness(
        _coordinate, (ValueError,), [bytes(16)]
    ),
    "coderd/services/network/coordinator.py:_uuid_untrusted": Harness(_raw_uuid, (ValueError,), [bytes(16)]),
}

# -- the server and the provisioner ----------------------------------------------------------------------------------


def _slot(data: bytes) -> object:
    from coder.agent.reports.flight_file import _slot_untrusted

    return _slot_untrusted(data)


def _slot_bytes() -> bytes:
    """A slot as a flight recorder writes it: checksum, number, length, document."""
    body = b'{"events":[]}'
    rest = struct.pack(">QI", 1, len(body)) + body
    return struct.pack(">I", zlib.crc32(rest)) + rest


def _flight_look(data: bytes) -> object:
    from coder.agent.reports.flight_recorder import _look_untrusted

    return _look_untrusted(_document(data))


def _flight_event(data: bytes) -> object:
    from coder.agent.reports.flight_recorder import _event_untrusted

    return _event_untrusted(_document(data))


def _document(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _agent_uuid(data: bytes) -> object:
    from coder.coderd.services.agents.agent_reports import uuid_untrusted

    return uuid_untrusted(data)


def _agent_address(text: str) -> object:
    from coder.coderd.services.agents.agent_reports import address_untrusted

    return address_untrusted(text)


def _safe_name(text: str) -> object:
    from coder.coderd.services.templates import archives

    try:
        return archives.safe_name_untrusted(text)
    except archives.ArchiveError:
        return None


def _token(name: str) -> Call:
    def call(text: str) -> object:
        from coder.coderd.services.foundation import signed_tokens

        try:
            return getattr(signed_tokens, name)(text)
        except signed_tokens.TokenRefused:
            return None

    return _text(call)


def _without_waiting(read: Callable[[Any], Any], *refusals: type[Exception]) -> object:
    """Without a database: the key is the part's answer, and the coroutine of `read(context)` never waits."""
    from coder.coderd.services.foundation.signed_tokens import SigningKey

    class Keys:
        async def find(self, _feature: str, _id: str) -> SigningKey:
            return SigningKey("1", bytes(32))

    class Context:
        class clock:  # noqa: N801 - the attribute's name
            now = staticmethod(lambda: datetime(2030, 1, 1, tzinfo=UTC))

        def part(self, _kind: object) -> Keys:
            return Keys()

    try:
        read(Context()).send(None)
    except StopIteration as done:
        return done.value
    except refusals:
        return None
    raise AssertionError("it waited")


def _node_keys(data: bytes) -> object:
    from coder.coderd.services.network.node_keys import keys_of_untrusted

    return keys_of_untrusted(data)


def _resume(text: str) -> object:
    from uuid import UUID

    from coder.coderd.services.foundation.errors import Unauthenticated
    from coder.coderd.services.network import resume_tokens

    caller = resume_tokens.ResumeBinding(UUID(int=1), "session")
    return _without_waiting(lambda ctx: resume_tokens.read_untrusted(ctx, text, caller), Unauthenticated)


def _ticket(text: str) -> object:
    from coder.coderd.services.apps import app_tokens
    from coder.coderd.services.foundation.signed_tokens import TokenRefused

    return _without_waiting(lambda ctx: app_tokens.read_ticket_untrusted(ctx, text), TokenRefused)


def _tickets(text: str) -> object:
    from coder.coderd.services.apps import app_tokens

    wanted: Any = None
    return _without_waiting(lambda ctx: app_tokens.find_ticket_untrusted(ctx, text.split(" "), wanted))


def _terminal_ticket(text: str) -> object:
    from uuid import UUID

    from coder.coderd.services.apps import applications

    return _without_waiting(lambda ctx: applications.opens_terminal(ctx, text, UUID(int=1)))


def _sealed_key(text: str) -> object:
    from coder.coderd.services.apps import app_tokens
    from coder.coderd.services.foundation.signed_tokens import TokenRefused

    return _without_waiting(lambda ctx: app_tokens.open_key_untrusted(ctx, text), TokenRefused)


def _daemon_report(data: bytes) -> object:
    from coder.coderd.services.provisioning import daemon_health

    return daemon_health._read_report_untrusted(data)


def _json_syntax(name: str) -> Call:
    def call(text: str) -> object:
        from coder.domain.hcl import json_syntax

        return getattr(json_syntax, name)(text)

    return _text(call)


def _yaml(text: str) -> object:
    from coder.domain.hcl import yaml_text

    return yaml_text.read_yaml_untrusted(text)


def _template_file(data: bytes) -> object:
    from coder.domain.rendering import sources

    return sources._parse_untrusted(data, "main.tf.json")


def _push_key(text: str) -> object:
    from coder.domain.events import web_push

    return web_push.decode_key_untrusted(text, 16)


def _push_point(data: bytes) -> None:
    from coder.domain.events import web_push

    web_push.check_point_untrusted(data)


def _ciphers(data: bytes) -> object:
    from coder.agent.ssh import negotiation

    return negotiation.encryption_untrusted(data)


def _hcl(name: str) -> Call:
    def call(text: str) -> object:
        from coder.domain.hcl import parser

        return getattr(parser, name)(text)

    return lambda data: call(data.decode("utf-8", "replace"))


def _grpc(data: bytes) -> None:
    from coder.provisionerd.terraform.provider.grpc import GrpcServer

    server = GrpcServer(lambda _path, _body: b"")
    server.take_output()
    server.receive_untrusted(data)
    server.take_output()


def _unpack(data: bytes) -> object:
    from coder.provisionerd.archive import unpack_untrusted

    with tempfile.TemporaryDirectory() as folder:
        return unpack_untrusted(data, Path(folder))


def _template_files(data: bytes) -> object:
    from coder.coderd.services.templates.template_sources import unpack_untrusted

    return unpack_untrusted(data)


@cache
def _tar() -> bytes:
    import io
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("main.tf")
        entry.size = 5
        tar.addfile(entry, io.BytesIO(b"a = 1"))
    return out.getvalue()[:2048]


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _speedtest(data: bytes) -> object:
    from coder.agent.network.speedtest import read_request_untrusted

    return read_request_untrusted(data)


HEAD = _base64(json.dumps({"alg": "HS512", "kid": "1"}).encode())
TOKEN = HEAD + b"." + _base64(b'{"sub":"x","exp":1}') + b"." + _base64(bytes(64))
SEALED = _base64(b'{"alg":"dir","enc":"A256GCM","kid":"1"}') + b".." + b".".join(_base64(bytes(n)) for n in (12, 9, 16))
JSON_HCL = b'{"resource": {"coder_agent": {"main": [{"os": "linux", "//": "x"}]}}, "locals": {"a": "${1 + 2}"}}'
KEXINIT = (
    (200).to_bytes(4, "big")
    + b"\x04\x14"
    + bytes(16)
    + b"".join(
        len(names).to_bytes(4, "big") + names for names in (b"a,b", b"ssh-ed25519", b"aes128-ctr", b"aes256-ctr", b"")
    )
    + bytes(120)
)
HCL = (
    b'resource "a" "b" {\n  x = "${y[0].z}-%{ if a }b%{ endif }"\n  y = { for k, v in m : k => v... if v != null }\n}\n'
)
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))

REST = {
    "agent/reports/flight_file.py:_slot_untrusted": Harness(_slot, (), [_slot_bytes()]),
    "agent/reports/flight_recorder.py:_look_untrusted": Harness(_flight_look, (), [b'{"wall":1}', b"[]"]),
    "agent/reports/flight_recorder.py:_event_untrusted": Harness(
        _flight_event, (), [b'{"at":1,"kind":"lost","data":{}}', b'{"at":"x","kind":1,"data":[1]}']
    ),
    "agent/network/speedtest.py:read_request_untrusted": Harness(
        _speedtest, (), [b'{"version":2,"time":500000000,"direction":0}\n', b"hello\n", b'{"version":[]}']
    ),
    "coderd/services/agents/signed_message.py:certificate_untrusted": Harness(
        _certificate, (_message_refused(),), [_sample_certificate()]
    ),
    "coderd/services/agents/signed_message.py:open_untrusted": Harness(
        _signed_message, (_message_refused(),), [_signed_sample()]
    ),
    "coderd/services/agents/agent_reports.py:uuid_untrusted": Harness(_agent_uuid, (CoderError,), [bytes(16)]),
    "coderd/services/agents/agent_reports.py:address_untrusted": Harness(
        _text(_agent_address), (), [b"192.0.2.1", b"::1"]
    ),
    "coderd/services/templates/archives.py:safe_name_untrusted": Harness(
        _text(_safe_name), (), [b"a/b.tf", b"..\\x", b"C:/x"]
    ),
    "coderd/services/templates/template_sources.py:unpack_untrusted": Harness(_template_files, (), [_tar()]),
    "coderd/services/foundation/signed_tokens.py:header_untrusted": Harness(_token("header_untrusted"), (), [TOKEN]),
    "coderd/services/foundation/signed_tokens.py:_json_untrusted": Harness(_token("_json_untrusted"), (), [HEAD]),
    "coderd/services/network/node_keys.py:keys_of_untrusted": Harness(_node_keys, (), [b"\x0a\x02ab"]),
    "coderd/services/network/resume_tokens.py:read_untrusted": Harness(_text(_resume), (), [TOKEN]),
    "coderd/services/apps/app_tickets.py:read_ticket_untrusted": Harness(_text(_ticket), (), [TOKEN]),
    "coderd/services/apps/app_tickets.py:find_ticket_untrusted": Harness(_text(_tickets), (), [TOKEN + b" " + TOKEN]),
    "coderd/services/apps/app_tickets.py:opens_terminal_untrusted": Harness(_text(_terminal_ticket), (), [TOKEN]),
    "coderd/services/apps/app_tickets.py:open_key_untrusted": Harness(_text(_sealed_key), (), [SEALED]),
    "coderd/services/apps/app_tokens.py:read_ticket_untrusted": Harness(_text(_ticket), (), [TOKEN]),
    "coderd/services/apps/app_tokens.py:find_ticket_untrusted": Harness(_text(_tickets), (), [TOKEN + b" " + TOKEN]),
    "coderd/services/apps/app_tokens.py:open_key_untrusted": Harness(_text(_sealed_key), (), [SEALED]),
    "coderd/services/provisioning/daemon_health.py:_read_report_untrusted": Harness(
        _daemon_report, (ValueError,), [b'{"version":"1"}']
    ),
    "domain/hcl/json_syntax.py:native_syntax_untrusted": Harness(
        _json_syntax("native_syntax_untrusted"), (CoderError,), [JSON_HCL]
    ),
    "domain/hcl/json_syntax.py:native_values_untrusted": Harness(
        _json_syntax("native_values_untrusted"), (CoderError,), [b'{"a": ["${b}", {"c": null}], "d": 1e9}']
    ),
    "domain/hcl/yaml_text.py:read_yaml_untrusted": Harness(
        _text(_yaml), (CoderError,), [b"a: &x [1, yes, 0x1f, 2020-01-01]\nb: {<<: {c: *x}, d: !!str 5}\n"]
    ),
    "domain/rendering/sources.py:_parse_untrusted": Harness(_template_file, (CoderError,), [JSON_HCL]),
    "domain/events/web_push.py:decode_key_untrusted": Harness(
        _text(_push_key), (ValueError,), [b"AAECAwQFBgcICQoLDA0ODw"]
    ),
    "domain/events/web_push.py:check_point_untrusted": Harness(_push_point, (ValueError,), [b"\x04" + bytes(64)]),
    "agent/ssh/negotiation.py:encryption_untrusted": Harness(_ciphers, (), [KEXINIT]),
    "domain/hcl/parser.py:parse_file_untrusted": Harness(_hcl("parse_file_untrusted"), (CoderError,), [HCL]),
    "domain/hcl/parser.py:parse_expression_untrusted": Harness(
        _hcl("parse_expression_untrusted"), (CoderError,), [b'[for x in y : upper("${x}")]', b"a ? b : c[*].d"]
    ),
    "provisionerd/terraform/provider/grpc.py:GrpcServer.receive_untrusted": Harness(_grpc, (CoderError,), [HTTP2]),
    "provisionerd/archive.py:unpack_untrusted": Harness(_unpack, (CoderError,), [_tar()]),
}

HARNESSES = {f"mesh/{key}": harness for key, harness in MESH.items()} | LINKS | REST
