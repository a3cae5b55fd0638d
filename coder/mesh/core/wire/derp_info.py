"""Infos of a relay and its client about themselves: JSON in a box that only the other can open.

Lives here: the two infos, sealing and opening them. The frames that carry them are in derp.py.
Obeys docs/protocol/derp.md; tests/data/wire/derp.json.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.core.errors import CryptoError, WireError
from coder.mesh.core.wire.derp import SealedClientInfo, SealedServerInfo

# Sent and not compared: unknown frame types are skipped, so either side may be newer (docs/protocol/derp.md#frames).
PROTOCOL_VERSION = 2
_Json: TypeAlias = "bool | int | float | str | list[_Json] | dict[str, _Json] | None"
_JsonObject: TypeAlias = dict[str, _Json]


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """A client's info about itself."""

    version: int = PROTOCOL_VERSION
    can_ack_pings: bool = True
    is_prober: bool = False
    mesh_key: str = ""
    # Inside the box, so that no observer on the path learns it; compared in constant time by the driver
    # (drivers/derp_server.py).
    "Hex; only relays of one mesh have it. A secret."

    def encode(self) -> bytes:
        """Return the JSON inside the box; defaults left out."""
        # The names are the wire's, in two styles: one in lower case among two in upper case. A reader that does not
        # find its own spelling treats the field as absent.
        fields: dict[str, str | int] = {"version": self.version}
        if self.mesh_key:
            fields["meshKey"] = self.mesh_key
        if self.can_ack_pings:
            fields["CanAckPings"] = True
        if self.is_prober:
            fields["IsProber"] = True
        return json.dumps(fields, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A relay's info about itself."""

    version: int = PROTOCOL_VERSION
    rate_bytes_per_second: int = 0
    # A promise of the relay about itself: a faster sender is slowed down by unread bytes, without a message.
    "0: no limit."
    # Bytes of a burst before the rate limit applies.
    rate_burst_bytes: int = 0

    def encode(self) -> bytes:
        """Return the JSON inside the box; zeros left out."""
        fields = {"version": self.version}
        if self.rate_bytes_per_second:
            fields["TokenBucketBytesPerSecond"] = self.rate_bytes_per_second
        if self.rate_burst_bytes:
            fields["TokenBucketBytesBurst"] = self.rate_burst_bytes
        return json.dumps(fields, separators=(",", ":")).encode()


def seal_client_info(box: SharedBox, key: PublicKey, nonce: bytes, info: ClientInfo) -> SealedClientInfo:
    """Seal an info with `box`, between the client's node key and the server's key; nonce 24 random bytes."""
    # The key precedes the box in the clear: without it the relay could not derive the shared key that opens it.
    return SealedClientInfo(key, nonce, box.seal(nonce, info.encode()))


def seal_server_info(box: SharedBox, nonce: bytes, info: ServerInfo) -> SealedServerInfo:
    """Seal an info with `box`, between the server's key and the client's node key; nonce 24 random bytes."""
    # No key in front: the client got it in the first frame, and a second one could only contradict it.
    return SealedServerInfo(nonce, box.seal(nonce, info.encode()))


def open_client_info_untrusted(box: SharedBox, sealed: SealedClientInfo) -> ClientInfo:
    """Return the info. Raises WireError when forged or no JSON object of the known fields."""
    fields = _open_json(box, sealed.nonce, sealed.box)
    return ClientInfo(
        version=_integer(fields, "version"),
        # A promise is not guessed: anything but a plain true is none.
        can_ack_pings=fields.get("CanAckPings") is True,
        # From a monitor; our relay serves it like any client.
        is_prober=fields.get("IsProber") is True,
        mesh_key=_mesh_key(fields),
    )


def open_server_info_untrusted(box: SharedBox, sealed: SealedServerInfo) -> ServerInfo:
    """Return the info. Raises WireError when forged or no JSON object of the known fields."""
    fields = _open_json(box, sealed.nonce, sealed.box)
    return ServerInfo(
        version=_integer(fields, "version"),
        rate_bytes_per_second=_integer(fields, "TokenBucketBytesPerSecond"),
        rate_burst_bytes=_integer(fields, "TokenBucketBytesBurst"),
    )


def _open_json(box: SharedBox, nonce: bytes, sealed: bytes) -> _JsonObject:
    try:
        # Opening it is the proof: only the owner of the private key can have sealed it.
        fields = json.loads(box.open_untrusted(nonce, sealed))
    except CryptoError as error:
        raise WireError("forged") from error
    # RecursionError: brackets nested a hundred thousand deep are a short text, and Python's reader raises it.
    except (ValueError, RecursionError) as error:
        raise WireError("bad_info") from error
    if not isinstance(fields, dict):
        raise WireError("bad_info")
    return fields


def _integer(fields: _JsonObject, name: str) -> int:
    value = fields.get(name, 0)
    # True is an int to Python and no number in JSON.
    if not isinstance(value, int) or isinstance(value, bool):
        raise WireError("bad_info")
    return value


def _mesh_key(fields: _JsonObject) -> str:
    value = fields.get("meshKey") or ""
    # JSON can contain an invalid text (a lone surrogate), and such a string cannot be compared as bytes.
    if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
        raise WireError("bad_info")
    return value
