"""Compression of JSON responses, for routes that declare `compressed`.

The length of a compressed response tells how much of its text repeats. Where a page of another origin can choose a part
of it, many requests recover a secret beside that part (BREACH, 2013). So a response is compressed only if no other
origin can make a browser request it, and if its text contains no session token. Routes whose answers are credentials
never declare `compressed`: a test compares all declarations with the fields of their types.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import trio

from coder.appproxy.http.asgi import Message, Send
from coder.domain.access.build_tokens import find_tokens

LEAST = 1024
"""Bytes of the smallest body that is compressed: below, headers and the packet cost more than the text."""
_AT_ONCE = 128 << 10
"""Bytes compressed on the event loop, in about a millisecond; zlib releases the interpreter in a thread."""
_LEVEL = 4
_GZIP = 16 + zlib.MAX_WBITS
_JSON = b"application/json"
_OWN_SITES = (b"same-origin", b"none")


def accepts(accepted: str, coding: str) -> bool:
    """Return whether an Accept-Encoding header allows this coding (RFC 9110, 12.5.3)."""
    qualities = dict[str, bool]()
    for item in accepted.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        qualities[name] = not any(_is_zero(parameter) for parameter in parameters)
    return qualities.get(coding, qualities.get("*", False))


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip() == "q" and not value.strip().strip("0.")


class CompressedSend:
    """ASGI send function of a request that compresses the response if the view's route allows it.

    `scope["coder_compressed"]` is the declaration, set when the route is known.
    """

    def __init__(self, scope: Message, send: Send, *, secure: bool) -> None:
        self._scope = scope
        self._send = send
        self._secure = secure
        self._start: Message | None = None
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start" and self._scope.get("coder_compressed") and _is_long_json(message):
            message["headers"] = [*message["headers"], (b"vary", b"Accept-Encoding")]
            if self._is_allowed():
                self._start = message
                return
        elif kind == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._finish(self._start)
            return
        await self._send(message)

    def _is_allowed(self) -> bool:
        """Return whether the client decodes gzip and no other origin caused the request.

        Browsers send Sec-Fetch-Site, except to unencrypted addresses, where every relay can read the text anyway.
        """
        headers = {name.lower(): value for name, value in self._scope["headers"]}
        site = headers.get(b"sec-fetch-site")
        if site is None and self._secure and b"cookie" in headers:
            return False
        return site in (None, *_OWN_SITES) and accepts(headers.get(b"accept-encoding", b"").decode("latin-1"), "gzip")

    async def _finish(self, start: Message) -> None:
        self._start, body = None, bytes(self._body)
        if not find_tokens(body.decode("utf-8", "replace")):
            body = _gzip(body) if len(body) <= _AT_ONCE else await trio.to_thread.run_sync(_gzip, body)
            start["headers"] = [*_without(start["headers"], b"content-length"), (b"content-encoding", b"gzip")]
            start["headers"].append((b"content-length", b"%d" % len(body)))
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def _is_long_json(start: Message) -> bool:
    headers = {name.lower(): value for name, value in start.get("headers", ())}
    return (
        start["status"] == 200
        and headers.get(b"content-type", b"").startswith(_JSON)
        and int(headers.get(b"content-length", b"0")) >= LEAST
        and b"content-encoding" not in headers
    )


def _without(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[tuple[bytes, bytes]]:
    return [pair for pair in headers if pair[0].lower() != name]


def _gzip(body: bytes) -> bytes:
    coder = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return coder.compress(body) + coder.flush()
