"""Requests of one piece: complete GETs without a body, read and answered without the HTTP server's parser.

Most requests arrive as one piece of the stream: a GET, common header characters, nothing after the head. Parsing
those by one expression and writing the response in one step costs a third of Hypercorn's and h11's state machines.
Everything else (other methods, bodies, pipelined or split requests, upgrades, other bytes) goes through them as
before. A request that `simple_head` accepts has exactly one reading, and h11 would return the same one; a test
compares both, and the bytes of both responses.
"""

from __future__ import annotations

import re
from functools import lru_cache
from time import time
from typing import TYPE_CHECKING
from urllib.parse import unquote
from wsgiref.handlers import format_date_time

import h11
from h11._headers import Headers

from coder.appproxy.http.inline_tasks import wait_nothing
from coder.base.log import STRANGERS_LINES, get_logger
from coder.net.blocking_http import HEAD_LINES

if TYPE_CHECKING:
    from hypercorn.typing import ConnectionState

    from coder.appproxy.http.asgi import Application, Message

_log = get_logger("http.server", per_minute=STRANGERS_LINES)

MAX_HEAD = 8 << 10
"""Bytes of a head that is read here; longer ones are rare."""
_HEAD = re.compile(rb"GET (/[!-~]*) HTTP/1\.1\r\n((?:[-!#$%&'*+.^_`|~0-9A-Za-z]+:[\t -~]*\r\n)+)\r\n")
"""RFC 9112 sections 2 and 5 without obs-text and obs-fold. No character can be matched in two ways."""
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"upgrade", b"expect", b"trailer", b"te"})
"""Headers that may announce more than a head."""
_NO_BODY = frozenset({204, 304})
_LINE_ENDS = re.compile(rb"[\r\n\0]")
Reply = tuple[int, list[tuple[bytes, bytes]], bytes]
"""Status, headers, body."""


class NotSimple(Exception):  # noqa: N818 - not an error: a way out
    """Raised by an application that cannot answer such a request at once: the parser has to read it."""


def simple_head(data: bytes) -> h11.Request | None:
    """Return the head of a request of one piece; None when these bytes are anything else."""
    if len(data) > MAX_HEAD or (match := _HEAD.fullmatch(data)) is None:
        return None
    items, hosts, lengths = [], 0, 0
    lines = match[2].split(b"\r\n")
    if len(lines) > HEAD_LINES:
        return None
    del lines[-1]
    for line in lines:
        raw, _, value = line.partition(b":")
        name, value = raw.lower(), value.strip(b" \t")
        if name == b"content-length" and value == b"0":
            lengths += 1  # "no body", which some clients say with every request
        elif name in _FRAMING or (name == b"connection" and value.lower() != b"keep-alive"):
            return None
        hosts += name == b"host"
        items.append((raw, name, value))
    if hosts != 1 or lengths > 1:
        return None
    return h11.Request(method=b"GET", target=match[1], headers=Headers(items), http_version=b"1.1", _parsed=True)


def scope_of(request: h11.Request, client: tuple[str, int], state: ConnectionState, *, secure: bool) -> Message:
    """Return the ASGI scope of a request, as Hypercorn does."""
    path, _, query = request.target.partition(b"?")
    return {
        "type": "http",
        "http_version": "1.1",
        "asgi": {"spec_version": "2.1", "version": "3.0"},
        "method": "GET",
        "scheme": "https" if secure else "http",
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": list(request.headers),
        "client": client,
        "server": None,
        "state": state.copy(),
        "extensions": {},
        "coder_simple": True,
    }


async def reply_of(app: Application, scope: Message) -> Reply:
    """Return the response of an application that answers at once. Raises NotSimple; another error is its response."""
    status, headers, body = 0, list[tuple[bytes, bytes]](), b""

    async def send(message: Message) -> None:
        nonlocal status, headers, body
        if message["type"] == "http.response.start":
            status, headers = message["status"], message["headers"]
        else:
            body += message.get("body", b"")

    try:
        await app(scope, wait_nothing, send)
    except NotSimple:
        raise
    except Exception as error:
        _log.error("a request failed", error=error)
        status = 0
    if status and not _is_framed(status, headers, body):
        _log.error("a response of the fast path has invalid headers or another length", path=scope["path"])
        status = 0
    if not status:
        return 500, [(b"content-length", b"0"), (b"connection", b"close")], b""
    return status, headers, body


def _is_framed(status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> bool:
    """Return whether a client reads the response as one, and nothing behind it, as h11 checks."""
    if _LINE_ENDS.search(b"".join([part for pair in headers for part in pair])):
        return False
    lengths = [value for name, value in headers if name == b"content-length"]
    return status in _NO_BODY or lengths == [b"%d" % len(body)]


def is_last(reply: Reply) -> bool:
    """Return whether the connection ends after a response."""
    return (b"connection", b"close") in reply[1]


def response_bytes(reply: Reply) -> bytes:
    """Return a response of known length as it is sent, like h11."""
    status, headers, body = reply
    lines = [b"HTTP/1.1 %d \r\n" % status]
    lines += [b"%s: %s\r\n" % pair for pair in headers]
    lines.append(b"date: %s\r\n\r\n" % _date(int(time())))
    if status not in _NO_BODY:
        lines.append(body)
    return b"".join(lines)


@lru_cache(maxsize=1)
def _date(seconds: int) -> bytes:
    return format_date_time(seconds).encode("ascii")
