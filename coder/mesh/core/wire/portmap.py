"""Port mapping messages: PCP and its older form NAT-PMP, requests and answers.

Lives here: the messages in both directions (the router's side is for tests and costs little). Does not live here: which
router to ask, and when (paths/portmapping.py).
Obeys RFC 6887 (PCP: sections 7, 11.1) and RFC 6886 (NAT-PMP: section 3). Only what an IPv4 UDP port needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from struct import Struct

from coder.mesh.core.errors import WireError

PORT = 5351
"""Port of routers (RFC 6887 section 19.1)."""
NONCE_SIZE = 12
PCP, NAT_PMP = 2, 0
"""Versions, the first byte of every message."""
# Larger datagrams are dropped unread, whatever their content.
MAX_SIZE = 1100
"""RFC 6887 section 7: no PCP message is larger."""

SUCCESS, UNSUPPORTED_VERSION, NOT_AUTHORIZED = 0, 1, 2
"""Results that mean the same in both protocols."""

_MAP, _ANSWER = 1, 0x80
# The IANA's number of the protocol (RFC 6887 section 11.1).
_UDP = 17
# RFC 6887 sections 7.1 and 11.1: version, opcode, reserved, lifetime, client address; nonce, protocol, three reserved
# bytes, internal and suggested port, suggested address. An answer has the result where the request has nothing, and the
# epoch and twelve bytes where it has the client (section 7.2).
_PCP_REQUEST = Struct("!BBHL16s12sB3xHH16s")
_PCP_ANSWER = Struct("!BBxBLL12x12sB3xHH16s")
# RFC 6886 sections 3.2 and 3.3. Opcode 1 is UDP here; PCP gives the protocol's number instead.
_PMP_REQUEST = Struct("!BBHHHL")
_PMP_ADDRESS = Struct("!BBHL4s")
_PMP_ANSWER = Struct("!BBHLHHL")
_PMP_ADDRESS_REQUEST = bytes((NAT_PMP, 0))
_MAPPED = bytes(10) + b"\xff\xff"


@dataclass(frozen=True, slots=True)
class PcpMap:
    """Request to map a UDP port, renew the mapping, or (lifetime 0) release it."""

    nonce: bytes
    client: str
    """Our IPv4 address as we know it; a router that sees another address refuses."""
    port: int
    lifetime: int
    """Seconds."""
    suggested_port: int = 0
    suggested_ip: str = "0.0.0.0"

    def encode(self) -> bytes:
        """Return 60 bytes."""
        client, suggested = _mapped(self.client), _mapped(self.suggested_ip)
        return _PCP_REQUEST.pack(
            PCP, _MAP, 0, self.lifetime, client, self.nonce, _UDP, self.port, self.suggested_port, suggested
        )


@dataclass(frozen=True, slots=True)
class PcpMapped:
    """Answer of the router to `PcpMap`."""

    result: int
    lifetime: int
    """Seconds the mapping lives, or how long not to ask again after a refusal."""
    epoch: int
    """Seconds since the router's mapping state began."""
    nonce: bytes
    port: int
    external: tuple[str, int]

    def encode(self) -> bytes:
        """Return 60 bytes."""
        ip, port = self.external
        return _PCP_ANSWER.pack(
            PCP, _MAP | _ANSWER, self.result, self.lifetime, self.epoch, self.nonce, _UDP, self.port, port, _mapped(ip)
        )


@dataclass(frozen=True, slots=True)
class PmpAddressRequest:
    """NAT-PMP: request of the external address."""

    def encode(self) -> bytes:
        """Return 2 bytes."""
        return _PMP_ADDRESS_REQUEST


@dataclass(frozen=True, slots=True)
class PmpMap:
    """NAT-PMP: as `PcpMap`."""

    port: int
    lifetime: int
    suggested_port: int = 0

    def encode(self) -> bytes:
        """Return 12 bytes."""
        return _PMP_REQUEST.pack(NAT_PMP, _MAP, 0, self.port, self.suggested_port, self.lifetime)


@dataclass(frozen=True, slots=True)
class PmpAddress:
    """NAT-PMP: the external address."""

    result: int
    epoch: int
    ip: str

    def encode(self) -> bytes:
        """Return 12 bytes."""
        return _PMP_ADDRESS.pack(NAT_PMP, _ANSWER, self.result, self.epoch, IPv4Address(self.ip).packed)


@dataclass(frozen=True, slots=True)
class PmpMapped:
    """NAT-PMP: the mapping."""

    result: int
    epoch: int
    port: int
    external_port: int
    lifetime: int

    def encode(self) -> bytes:
        """Return 16 bytes."""
        return _PMP_ANSWER.pack(
            NAT_PMP, _MAP | _ANSWER, self.result, self.epoch, self.port, self.external_port, self.lifetime
        )


@dataclass(frozen=True, slots=True)
class Refused:
    """An error answer without further data: the router speaks another version, or the request was malformed."""

    version: int
    """The version the router speaks."""
    result: int

    def encode(self) -> bytes:
        """Return a header."""
        return Struct("!BBH").pack(self.version, _MAP | _ANSWER, self.result) + bytes(20 if self.version == PCP else 4)


Request = PcpMap | PmpMap | PmpAddressRequest
Answer = PcpMapped | PmpAddress | PmpMapped | Refused


def parse_answer_untrusted(datagram: bytes) -> Answer:
    """Parse a message of a router. Raises WireError for anything that is no answer."""
    # Four bytes have the result in both protocols; later fields are checked where they are read.
    if len(datagram) < 4 or len(datagram) > MAX_SIZE:
        raise WireError("bad_length")
    version, opcode = datagram[0], datagram[1]
    if not opcode & _ANSWER:
        raise WireError("no_answer")
    # A router without PCP answers in its own version (RFC 6887 section 9), so the version of the answer decides how it
    # is parsed, not that of the request.
    if version == PCP:
        return _parse_pcp(datagram, opcode)
    if version != NAT_PMP:
        raise WireError("unknown_version")
    if opcode == _ANSWER and len(datagram) >= _PMP_ADDRESS.size:
        _, _, result, epoch, ip = _PMP_ADDRESS.unpack_from(datagram)
        return PmpAddress(result, epoch, str(IPv4Address(ip)))
    if opcode == _MAP | _ANSWER and len(datagram) >= _PMP_ANSWER.size:
        _, _, result, epoch, port, external, lifetime = _PMP_ANSWER.unpack_from(datagram)
        return PmpMapped(result, epoch, port, external, lifetime)
    # An error needs nothing behind the result, so nothing more is required.
    result = int.from_bytes(datagram[2:4], "big")
    # Successful and yet too short for its type: nothing of it can be used.
    if result == SUCCESS:
        raise WireError("short_message")
    return Refused(NAT_PMP, result)


def _parse_pcp(datagram: bytes, opcode: int) -> Answer:
    result = datagram[3]
    if opcode == _MAP | _ANSWER and len(datagram) >= _PCP_ANSWER.size:
        _, _, result, lifetime, epoch, nonce, protocol, port, external, ip = _PCP_ANSWER.unpack_from(datagram)
        # PCP carries IPv4 addresses as IPv4-mapped ones (RFC 6887 section 5); a mapping to IPv6 was not requested.
        if protocol == _UDP and ip.startswith(_MAPPED):
            return PcpMapped(result, lifetime, epoch, nonce, port, (str(IPv4Address(ip[12:])), external))
    if result == SUCCESS:
        raise WireError("not_about_us")
    return Refused(PCP, result)


def parse_request_untrusted(datagram: bytes) -> Request:
    """Parse a request; the router's half of these protocols.

    Raises WireError for messages this module does not write.
    """
    if len(datagram) > MAX_SIZE:
        raise WireError("bad_length")
    if datagram == _PMP_ADDRESS_REQUEST:
        return PmpAddressRequest()
    if len(datagram) == _PMP_REQUEST.size and datagram[:2] == bytes((NAT_PMP, _MAP)):
        _, _, _, port, suggested, lifetime = _PMP_REQUEST.unpack(datagram)
        return PmpMap(port, lifetime, suggested)
    if len(datagram) >= _PCP_REQUEST.size and datagram[:2] == bytes((PCP, _MAP)):
        _, _, _, lifetime, client, nonce, protocol, port, suggested, ip = _PCP_REQUEST.unpack_from(datagram)
        if protocol == _UDP and client.startswith(_MAPPED) and ip.startswith(_MAPPED):
            client, ip = str(IPv4Address(client[12:])), str(IPv4Address(ip[12:]))
            return PcpMap(nonce, client, port, lifetime, suggested, ip)
    raise WireError("unknown_request")


def _mapped(ip: str) -> bytes:
    return _MAPPED + IPv4Address(ip).packed
