"""TSMP: the reachability ping inside the tunnel, next header 99.

Lives here: the three messages in both directions. Does not live here: when to ping (core/endpoint.py).
Obeys: docs/protocol/tsmp.md; the recorded packets of tests/data/wire/tsmp.json.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import ip

TOKEN_SIZE = 8
# A letter and eight bytes of token.
MIN_SIZE = 9
_PING = ord("p")
_PONG = ord("o")
_REJECT = ord("!")
_REJECT_BODY = Struct("!xBcHH")


class TsmpPing(NamedTuple):
    """Request to answer with the same token."""

    token: bytes

    def encode(self, source: bytes, destination: bytes) -> bytes:
        """Return the whole IPv6 packet."""
        return ip.header(ip.PROTOCOL_TSMP, source, destination, MIN_SIZE) + b"p" + self.token


class TsmpPong(NamedTuple):
    """The answer to a ping."""

    token: bytes
    peer_api_port: int = 0

    def encode(self, source: bytes, destination: bytes) -> bytes:
        """Return the whole IPv6 packet."""
        body = b"o" + self.token + self.peer_api_port.to_bytes(2, "big")
        return ip.header(ip.PROTOCOL_TSMP, source, destination, len(body)) + body


class Reject(NamedTuple):
    """Refusal of a flow by the peer's filter; our nodes never send it."""

    protocol: int
    reason: str
    "A: access list; S: shields up."
    source_port: int
    port: int


Message = TsmpPing | TsmpPong | Reject


def parse_untrusted(payload: bytes) -> Message:
    """Parse an IPv6 payload. Raises WireError for unknown kinds and short messages."""
    # The shortest message is a rejection, seven bytes; pings have nine.
    if len(payload) < 7:
        raise WireError("short_message")
    kind = payload[0]
    if kind == _REJECT:
        protocol, reason, source_port, port = _REJECT_BODY.unpack_from(payload)
        # Latin-1 has a letter for every byte: an unknown reason is shown, not refused.
        return Reject(protocol, reason.decode("latin-1"), source_port, port)
    if len(payload) < MIN_SIZE:
        raise WireError("short_message")
    token = bytes(payload[1:MIN_SIZE])
    if kind == _PING:
        return TsmpPing(token)
    if kind == _PONG:
        # A pong may end behind its token: the slice is empty then, which counts as port 0.
        return TsmpPong(token, int.from_bytes(payload[MIN_SIZE : MIN_SIZE + 2], "big"))
    raise WireError("unknown_type")
