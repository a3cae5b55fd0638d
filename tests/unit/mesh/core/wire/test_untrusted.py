"""Parsers return a value or raise WireError for arbitrary bytes; encoding and parsing round-trip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import derp, derp_info, derp_reader, disco, stun, wireguard
from coder.mesh.core.wire.address import UdpAddress, endpoint, endpoint_of_bytes, parse_endpoint_untrusted

KEY = PrivateKey(bytes(range(32)))
BOX = SharedBox(KEY, KEY.public)
NONCE = bytes(24)

keys = st.binary(min_size=32, max_size=32).map(PublicKey)
ports = st.integers(0, 0xFFFF)
endpoints = st.builds(
    endpoint_of_bytes, st.one_of(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16)), ports
)
tx_ids = st.binary(min_size=12, max_size=12)
kinds = st.one_of(st.sampled_from(sorted(derp_reader._PARSERS)), st.integers(0, 255))


@given(st.binary(max_size=200))
def test_wireguard_parser_survives_anything(data: bytes) -> None:
    try:
        assert wireguard.parse_untrusted(data).encode() == data
    except WireError:
        pass


@given(st.integers(0, 5), st.sampled_from([31, 32, 64, 92, 148]), st.binary(min_size=148, max_size=148))
def test_wireguard_parser_survives_likely_datagrams(kind: int, size: int, body: bytes) -> None:
    test_wireguard_parser_survives_anything.hypothesis.inner_test((bytes((kind, 0, 0, 0)) + body)[:size])  # type: ignore[attr-defined]


@given(st.binary(max_size=100))
def test_disco_parsers_survive_anything(data: bytes) -> None:
    for clear in (data, b"\x01\x01" + data, b"\x02\x01" + data, b"\x03\x00" + data):
        try:
            disco.parse_untrusted(clear)
        except WireError:
            pass
    for packet in (data, disco.MAGIC + data, disco.MAGIC + KEY.public + NONCE + BOX.seal(NONCE, data)):
        try:
            disco.sender_untrusted(packet)
            disco.open_untrusted(BOX, packet)
        except WireError:
            pass


@given(
    st.one_of(
        st.builds(disco.DiscoPing, tx_ids, keys),
        st.builds(disco.DiscoPong, tx_ids, endpoints),
        st.builds(disco.CallMeMaybe, st.lists(endpoints, max_size=5).map(tuple)),
    )
)
def test_disco_messages_round_trip(message: disco.Message) -> None:
    assert disco.open_untrusted(BOX, disco.seal(BOX, KEY.public, NONCE, message)) == message


@given(st.binary(max_size=100), st.sampled_from([0x0001, 0x0101]), tx_ids)
def test_stun_parsers_survive_anything(data: bytes, kind: int, tx_id: bytes) -> None:
    headed = kind.to_bytes(2, "big") + len(data).to_bytes(2, "big") + b"\x21\x12\xa4\x42" + tx_id + data
    for packet in (data, headed):
        for parse in (stun.parse_request_untrusted, stun.parse_response_untrusted):
            try:
                parse(packet)
            except WireError:
                pass


@given(tx_ids, endpoints)
def test_stun_messages_round_trip(tx_id: bytes, source: UdpAddress) -> None:
    request, response = stun.BindingRequest(tx_id), stun.BindingResponse(tx_id, source)
    assert stun.parse_request_untrusted(request.encode()) == request
    assert stun.parse_response_untrusted(response.encode()) == response


@given(kinds, st.binary(max_size=120))
def test_derp_parser_survives_anything(kind: int, body: bytes) -> None:
    try:
        value = derp_reader.parse_untrusted(kind, body)
    except WireError:
        return
    value.encode()


@given(st.binary(max_size=300), st.integers(1, 20))
def test_derp_reader_survives_anything(data: bytes, chunk: int) -> None:
    reader = derp_reader.FrameReader()
    try:
        for at in range(0, len(data), chunk):
            for kind, body in reader.feed_untrusted(data[at : at + chunk]):
                derp_reader.parse_untrusted(kind, body)
    except WireError:
        pass


@given(st.binary(max_size=80), keys)
def test_derp_infos_survive_anything(text: bytes, key: PublicKey) -> None:
    sealed = derp.SealedClientInfo(key, NONCE, BOX.seal(NONCE, text))
    for box in (sealed, derp.SealedClientInfo(key, NONCE, text)):
        try:
            derp_info.open_client_info_untrusted(BOX, box)
        except WireError:
            pass


@pytest.mark.parametrize(
    "text", [rb'{"meshKey":"\ud800"}', rb'{"meshKey":"a\n"}', b'{"meshKey":7}', b'{"meshKey":["a"]}']
)
def test_mesh_key_is_printable_ascii(text: bytes) -> None:
    with pytest.raises(WireError):
        derp_info.open_client_info_untrusted(
            BOX, derp.SealedClientInfo(PublicKey(bytes(range(32))), NONCE, BOX.seal(NONCE, text))
        )


@pytest.mark.parametrize("text", [b"[]", b"{", b'{"version":"2"}', b'{"version":true}', b"\xff", b"[" * 100_000])
def test_malformed_infos_are_rejected(text: bytes) -> None:
    with pytest.raises(WireError):
        derp_info.open_server_info_untrusted(BOX, derp.SealedServerInfo(NONCE, BOX.seal(NONCE, text)))


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (derp.SEND_PACKET, 65_536 + 33),
        (derp.FORWARD_PACKET, 65_536 + 65),
        (0x7F, derp.MAX_FRAME + 1),
        (derp.PING, 1 << 31),
    ],
)
def test_oversized_frame_is_rejected_early(kind: int, size: int) -> None:
    with pytest.raises(WireError):
        derp_reader.FrameReader().feed_untrusted(derp.HEADER.pack(kind, size))


def test_longest_packet_passes() -> None:
    frame = derp.encode_send_packet(KEY.public, bytes(65_536))
    [(kind, body)] = derp_reader.FrameReader().feed_untrusted(frame)
    assert derp_reader.parse_untrusted(kind, body).encode() == frame


@given(st.text(max_size=60))
def test_endpoint_texts_survive_anything(text: str) -> None:
    try:
        parse_endpoint_untrusted(text)
    except WireError:
        pass


@given(endpoints)
def test_endpoints_round_trip(endpoint: UdpAddress) -> None:
    assert parse_endpoint_untrusted(str(endpoint)) == endpoint
    assert endpoint_of_bytes(endpoint.ip16, endpoint.port) == endpoint
    assert len(endpoint.wire) == 18


def test_socket_addresses_in_many_forms() -> None:
    assert endpoint("::ffff:192.0.2.1", 80) == ("192.0.2.1", 80)
    assert endpoint("fe80::1%eth0", 80) == ("fe80::1", 80)
    assert endpoint("2001:DB8:0::1", 80) == ("2001:db8::1", 80)


@pytest.mark.parametrize("text", ["1.2.3.4", "1.2.3.4:65536", "::1:80", "[1.2.3.4]:80", "[::1]:", "1.2.3.4:٣", ":1"])
def test_invalid_endpoint_texts_are_rejected(text: str) -> None:
    with pytest.raises(WireError):
        parse_endpoint_untrusted(text)


def test_call_me_maybe_reads_bounded_list() -> None:
    clear = bytes((3, 0)) + bytes(17) + b"\1"
    message = disco.parse_untrusted(clear + clear[2:] * 3600)
    assert isinstance(message, disco.CallMeMaybe)
    assert len(message.endpoints) == disco.MAX_ENDPOINTS


def test_stun_attributes_bounded() -> None:
    body = b"\x80\x22\0\0" * 31 + b"\0\1\0\x08\0\1\0\7\1\2\3\4"
    head = b"\1\1" + len(body).to_bytes(2, "big") + b"\x21\x12\xa4\x42" + bytes(12)
    assert stun.parse_response_untrusted(head + body).source == ("1.2.3.4", 7)
    body = b"\x80\x22\0\0" + body
    head = b"\1\1" + len(body).to_bytes(2, "big") + b"\x21\x12\xa4\x42" + bytes(12)
    with pytest.raises(WireError):
        stun.parse_response_untrusted(head + body)
