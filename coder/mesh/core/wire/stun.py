"""STUN binding requests and responses: a client's address as a server sees it.

Lives here: the two messages in both directions, and telling STUN from other datagrams.
Does not live here: which servers to ask, and when (paths/).
Obeys: RFC 8489 sections 5 and 14 (as far as a binding needs); the request as recorded in stun.json.
"""

from __future__ import annotations

from binascii import crc32
from dataclasses import dataclass
from struct import Struct

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire.address import UdpAddress, endpoint_of_bytes

TX_ID_SIZE = 12
_COOKIE = b"\x21\x12\xa4\x42"
# RFC 8489 section 5: type, length without this header, cookie, transaction.
_HEADER = Struct("!HH4s12s")
_ATTRIBUTE = Struct("!HH")
_REQUEST = 0x0001
_RESPONSE = 0x0101
_MAPPED = 0x0001
_CHANGE_REQUEST = 0x0003
_XOR_MAPPED = 0x0020
_XOR_MAPPED_OLD = 0x8020  # used by servers written to drafts of RFC 5389
_SOFTWARE = 0x8022
_FINGERPRINT = 0x8028
# "STUN" in ASCII: RFC 8489 section 14.7 requires the CRC to differ from that of a protocol which carries its own.
_FINGERPRINT_XOR = 0x5354554E
_FINGERPRINT_SIZE = 8
_SOFTWARE_VALUE = b"tailnode"  # genuine servers of this family answer no other value
# RFC 8489 section 14.1: 1 is IPv4, 2 IPv6.
_FAMILY_SIZES = {1: 4, 2: 16}
_MAX_ATTRIBUTES = 32
"""Ours: attributes of a message; servers send five or six."""


@dataclass(frozen=True, slots=True)
class BindingRequest:
    """Request of the sender's address."""

    tx_id: bytes
    "12 bytes, random."

    def encode(self) -> bytes:
        """Return 40 bytes: SOFTWARE and FINGERPRINT included."""
        software = _ATTRIBUTE.pack(_SOFTWARE, len(_SOFTWARE_VALUE)) + _SOFTWARE_VALUE
        head = _HEADER.pack(_REQUEST, len(software) + _FINGERPRINT_SIZE, _COOKIE, self.tx_id) + software
        return head + _fingerprint(head)


@dataclass(frozen=True, slots=True)
class BindingResponse:
    """The client's address as the server saw it."""

    tx_id: bytes
    "Transaction of the request."
    source: UdpAddress

    def encode(self) -> bytes:
        """Return 32 or 44 bytes with one XOR-MAPPED-ADDRESS."""
        packed = self.source.ip.packed
        mask = (_COOKIE + self.tx_id)[: len(packed)]
        masked = bytes(a ^ b for a, b in zip(packed, mask, strict=True))
        family = 1 if len(packed) == 4 else 2
        # RFC 8489 section 14.2: the port with the upper half of the cookie, the address with cookie and transaction.
        # Routers that rewrite addresses in payloads do not recognise it so.
        port = self.source.port ^ int.from_bytes(_COOKIE[:2], "big")
        value = bytes((0, family)) + port.to_bytes(2, "big") + masked
        attribute = _ATTRIBUTE.pack(_XOR_MAPPED, len(value)) + value
        return _HEADER.pack(_RESPONSE, len(attribute), _COOKIE, self.tx_id) + attribute


def is_stun(datagram: bytes) -> bool:
    """Return whether a datagram of a shared socket is STUN (RFC 8489 section 5): top bits zero, then the magic
    cookie."""
    return len(datagram) >= _HEADER.size and datagram[0] & 0xC0 == 0 and datagram[4:8] == _COOKIE


def parse_request_untrusted(datagram: bytes) -> BindingRequest:
    """Parse a request in our own form. Raises WireError for any other, so that the server is no open reflector."""
    kind, length, tx_id = _head(datagram)
    if kind != _REQUEST:
        raise WireError("not_a_request")
    body = datagram[_HEADER.size : _HEADER.size + length]
    if len(body) != length:
        raise WireError("bad_attributes")
    software = False
    last = 0
    for kind, _, value in _attributes(body):
        software = software or (kind == _SOFTWARE and value == _SOFTWARE_VALUE)
        last = kind
    # Only our own form is answered here; a public server uses `answer_any_untrusted`.
    if not software:
        raise WireError("foreign_software")
    # RFC 8489 section 14.7: it has to be the last attribute, as it covers all before it.
    if last != _FINGERPRINT:
        raise WireError("no_fingerprint")
    covered = datagram[: _HEADER.size + length - _FINGERPRINT_SIZE]
    if _fingerprint(covered) != body[-_FINGERPRINT_SIZE:]:
        raise WireError("bad_fingerprint")
    return BindingRequest(tx_id)


def answer_any_untrusted(datagram: bytes, source: UdpAddress) -> bytes:
    """Return the answer to any binding request, also of RFC 3489 (no cookie). Raises WireError when there is none.

    Larger than the smallest requests by up to 48 bytes: a caller must limit the rate.
    """
    if len(datagram) < _HEADER.size:
        raise WireError("not_stun")
    kind, length, cookie, tx_id = _HEADER.unpack_from(datagram)
    if kind != _REQUEST:
        raise WireError("not_a_request")
    body = datagram[_HEADER.size :]
    if len(body) != length:
        raise WireError("bad_attributes")
    for kind, _, value in _attributes(body):
        # RFC 3489 let clients ask for an answer from another address or port, which RFC 5389 dropped.
        if kind == _CHANGE_REQUEST and any(value):
            raise WireError("cannot_change_address", "there is no second address to answer from")
    answer = _address_attribute(_MAPPED, source, bytes(16))
    # An RFC 3489 client has sixteen bytes of transaction where the cookie is now, and knows the plain address only. A
    # newer client gets both, as some still read the old attribute.
    if cookie == _COOKIE:
        answer = _address_attribute(_XOR_MAPPED, source, _COOKIE + tx_id) + answer
    return _HEADER.pack(_RESPONSE, len(answer), cookie, tx_id) + answer


def _address_attribute(kind: int, source: UdpAddress, mask: bytes) -> bytes:
    packed = source.ip.packed
    port = source.port ^ int.from_bytes(mask[:2], "big")
    masked = bytes(a ^ b for a, b in zip(packed, mask, strict=False))
    value = bytes((0, 1 if len(packed) == 4 else 2)) + port.to_bytes(2, "big") + masked
    return _ATTRIBUTE.pack(kind, len(value)) + value


def parse_response_untrusted(datagram: bytes) -> BindingResponse:
    """Return the first XOR-MAPPED-ADDRESS, else the first MAPPED-ADDRESS. Raises WireError without either."""
    kind, length, tx_id = _head(datagram)
    if kind != _RESPONSE:
        raise WireError("not_a_response")
    body = datagram[_HEADER.size : _HEADER.size + length]
    if len(body) != length:
        raise WireError("bad_attributes")
    # Attributes of other types are skipped, also of the range that RFC 8489 section 6.3.3 would fail the exchange for:
    # only the address is needed, and its transaction number proves the answer.
    plain: UdpAddress | None = None
    for kind, _, value in _attributes(body):
        # The masked one has priority whatever the order: routers rewrite the plain one (RFC 8489 section 14.2 mentions
        # them).
        if kind in (_XOR_MAPPED, _XOR_MAPPED_OLD):
            return BindingResponse(tx_id, _mapped(value, _COOKIE + tx_id))
        if kind == _MAPPED and plain is None:
            plain = _mapped(value, bytes(16))
    if plain is None:
        raise WireError("bad_attributes")
    return BindingResponse(tx_id, plain)


def _head(datagram: bytes) -> tuple[int, int, bytes]:
    if not is_stun(datagram):
        raise WireError("not_stun")
    kind, length, _, tx_id = _HEADER.unpack_from(datagram)
    return kind, length, tx_id


def _attributes(body: bytes) -> list[tuple[int, int, bytes]]:
    """Return (type, offset, value) of each attribute; values are padded to four bytes."""
    attributes: list[tuple[int, int, bytes]] = []
    at = 0
    while at < len(body):
        # Before any of them is known to be wanted: a stranger's datagram holds 16,000, which take 8 ms.
        if len(attributes) >= _MAX_ATTRIBUTES or len(body) - at < _ATTRIBUTE.size:
            raise WireError("bad_attributes")
        kind, size = _ATTRIBUTE.unpack_from(body, at)
        value = body[at + _ATTRIBUTE.size : at + _ATTRIBUTE.size + size]
        if len(value) != size:
            raise WireError("bad_attributes")
        attributes.append((kind, at, value))
        # RFC 8489 section 14: padded to four bytes; the length field does not count the padding.
        at += _ATTRIBUTE.size + size + (-size & 3)
    return attributes


def _mapped(value: bytes, mask: bytes) -> UdpAddress:
    if len(value) < 4:
        raise WireError("bad_attributes")
    size = _FAMILY_SIZES.get(value[1])
    if size is None or len(value) < 4 + size:
        raise WireError("bad_attributes")
    port = int.from_bytes(value[2:4], "big") ^ int.from_bytes(mask[:2], "big")
    return endpoint_of_bytes(bytes(a ^ b for a, b in zip(value[4 : 4 + size], mask, strict=False)), port)


def _fingerprint(covered: bytes) -> bytes:
    return _ATTRIBUTE.pack(_FINGERPRINT, 4) + (crc32(covered) ^ _FINGERPRINT_XOR).to_bytes(4, "big")
