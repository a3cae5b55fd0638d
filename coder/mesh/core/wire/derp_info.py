"""What a relay and its client say of themselves: JSON in a box that only the other can open.

Lives here: the two infos, sealing and opening them. The frames that carry them are in derp.py.
Obeys docs/protocol/derp.md; tests/data/wire/derp.json.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.wire.derp import SealedClientInfo, SealedServerInfo

# Told and not compared: a type that is not known is skipped, so either side may be ahead of the other
# (docs/protocol/derp.md#frames).
PROTOCOL_VERSION = 2


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """What a client says of itself."""

    version: int = PROTOCOL_VERSION
    can_ack_pings: bool = True
    is_prober: bool = False
    mesh_key: str = ""
    # Inside the box, so that nobody on the way learns it; compared in constant time by the driver
    # (drivers/derp_server.py).
    "Hex; only relays of one mesh have it. A secret."

    def encode(self) -> bytes:
        """The JSON inside the box; defaults left out."""
        # The names are the wire's, of two manners: one in lower case beside two in upper case. A reader that does not
        # find its own spelling takes the field as absent.
        fields: dict[str, object] = {"version": self.version}
        if self.mesh_key:
            fields["meshKey"] = self.mesh_key
        if self.can_ack_pings:
            fields["CanAckPings"] = True
        if self.is_prober:
            fields["IsProber"] = True
        return json.dumps(fields, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a relay says of itself."""

    version: int = PROTOCOL_VERSION
    rate_bytes_per_second: int = 0
    # A promise of the relay about itself: who sends more than this is slowed down by unread bytes, not told.
    "0: no limit."
    # How much may come at once before the rate holds.
    rate_burst_bytes: int = 0

    def encode(self) -> bytes:
        """The JSON inside the box; zeros left out."""
        fields = {"version": self.version}
        if self.rate_bytes_per_second:
            fields["TokenBucketBytesPerSecond"] = self.rate_bytes_per_second
        if self.rate_burst_bytes:
            fields["TokenBucketBytesBurst"] = self.rate_burst_bytes
        return json.dumps(fields, separators=(",", ":")).encode()


def seal_client_info(box: SharedBox, key: PublicKey, nonce: bytes, info: ClientInfo) -> SealedClientInfo:
    """`box` is between the client's node key and the server's key; nonce 24 random bytes."""
    # The key goes in front of the box in the clear: without it the relay could not make the shared key that opens it.
    return SealedClientInfo(key, nonce, box.seal(nonce, info.encode()))


def seal_server_info(box: SharedBox, nonce: bytes, info: ServerInfo) -> SealedServerInfo:
    """`box` is between the server's key and the client's node key; nonce 24 random bytes."""
    # No key in front: the client has had it in the first frame, and a second one could only contradict it.
    return SealedServerInfo(nonce, box.seal(nonce, info.encode()))


def open_client_info_untrusted(box: SharedBox, sealed: SealedClientInfo) -> ClientInfo:
    """WireError when forged or no JSON object of the known fields."""
    fields = _open_json(box, sealed.nonce, sealed.box)
    return ClientInfo(
        version=_integer(fields, "version"),
        # A promise is not guessed at: anything but a plain true is none.
        can_ack_pings=fields.get("CanAckPings") is True,
        # Of a monitor; a relay of ours serves it like anybody.
        is_prober=fields.get("IsProber") is True,
        mesh_key=_mesh_key(fields),
    )


def open_server_info_untrusted(box: SharedBox, sealed: SealedServerInfo) -> ServerInfo:
    """WireError when forged or no JSON object of the known fields."""
    fields = _open_json(box, sealed.nonce, sealed.box)
    return ServerInfo(
        version=_integer(fields, "version"),
        rate_bytes_per_second=_integer(fields, "TokenBucketBytesPerSecond"),
        rate_burst_bytes=_integer(fields, "TokenBucketBytesBurst"),
    )


def _open_json(box: SharedBox, nonce: bytes, sealed: bytes) -> dict[str, object]:
    try:
        # That it opens is the proof: only who has the private half of the key can have sealed it.
        fields = json.loads(box.open_untrusted(nonce, sealed))
    except CryptoError as error:
        raise WireError("forged") from error
    # RecursionError: brackets nested a hundred thousand deep are a short text, and Python's reader gives up by it.
    except (ValueError, RecursionError) as error:
        raise WireError("bad_info") from error
    if not isinstance(fields, dict):
        raise WireError("bad_info")
    return fields


def _integer(fields: dict[str, object], name: str) -> int:
    value = fields.get(name, 0)
    # True is an int to Python and no number in JSON.
    if not isinstance(value, int) or isinstance(value, bool):
        raise WireError("bad_info")
    return value


def _mesh_key(fields: dict[str, object]) -> str:
    value = fields.get("meshKey") or ""
    # JSON can spell what is no text at all (a lone surrogate), and such a string cannot be compared as bytes.
    if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
        raise WireError("bad_info")
    return value
