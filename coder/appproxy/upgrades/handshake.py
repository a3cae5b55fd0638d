"""Checks of WebSocket handshakes: their order and their words are those of upstream's library.

Refusals are a line of plain text followed by the JSON envelope, as recorded (tests/data/wire/http_examples.json).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from coder.api.base import codec
from coder.domain.foundation.web_addresses import canonical_host, host_of_origin, split_untrusted

ACCEPT_FAILED = "Failed to accept websocket."
"""Message of most routes; the server lists the others (`UpgradeRefusal`)."""
_VIOLATION = "WebSocket protocol violation: "


@dataclass(frozen=True, slots=True)
class HandshakeRefusal:
    status: int
    text: str
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def body(self) -> bytes:
        return self.body_with(ACCEPT_FAILED)

    def body_with(self, message: str, prefix: str = "") -> bytes:
        """Return the body with a route's own message; `prefix` begins the detail."""
        detail = f"{prefix}failed to accept WebSocket connection: {self.text}"
        return self.text.encode() + b"\n" + codec.encode({"message": message, "detail": detail}) + b"\n"


def explain_handshake(method: str, headers: Mapping[str, str], *, any_origin: bool) -> HandshakeRefusal | None:
    """Return why the request is refused; None when it is a valid handshake. Header names in lower case."""
    upgrade = (("upgrade", "websocket"),)
    connection, protocol = headers.get("connection", ""), headers.get("upgrade", "")
    if not _has_token(connection, "upgrade"):
        text = f"{_VIOLATION}Connection header {_quote(connection)} does not contain Upgrade"
        return HandshakeRefusal(426, text, upgrade)
    if not _has_token(protocol, "websocket"):
        text = f"{_VIOLATION}Upgrade header {_quote(protocol)} does not contain websocket"
        return HandshakeRefusal(426, text, upgrade)
    if method != "GET":
        return HandshakeRefusal(405, f"{_VIOLATION}handshake request method is not GET but {_quote(method)}")
    version = headers.get("sec-websocket-version", "")
    if version != "13":
        text = f"unsupported WebSocket protocol version (only 13 is supported): {_quote(version)}"
        return HandshakeRefusal(400, text, (("sec-websocket-version", "13"),))
    return _explain_key(headers.get("sec-websocket-key")) or (None if any_origin else _explain_origin(headers))


def _explain_key(key: str | None) -> HandshakeRefusal | None:
    if key is None:
        return HandshakeRefusal(400, f"{_VIOLATION}missing Sec-WebSocket-Key")
    try:
        if len(base64.b64decode(key, validate=True)) == 16:
            return None
    except binascii.Error:
        pass  # refused below, like one of another length
    text = f"{_VIOLATION}invalid Sec-WebSocket-Key {_quote(key)}, must be a 16 byte base64 encoded string"
    return HandshakeRefusal(400, text)


def _explain_origin(headers: Mapping[str, str]) -> HandshakeRefusal | None:
    """Refuse pages of other sites, which may not use the visitor's cookies here; programs send no Origin."""
    origin = headers.get("origin", "")
    if not origin:
        return None
    found, host = split_untrusted(origin), headers.get("host", "")
    if host_of_origin(origin) == canonical_host(host, found.scheme):
        return None
    return HandshakeRefusal(403, f"request Origin {_quote(found.netloc)} is not authorized for Host {_quote(host)}")


def _has_token(header: str, token: str) -> bool:
    return token in {part.strip().lower() for part in header.split(",")}


def _quote(text: str) -> str:
    return codec.encode(text).decode()
