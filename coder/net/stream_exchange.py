"""An HTTP request on a stream to a peer of the overlay: an agent, a provisioner daemon."""

from __future__ import annotations

from dataclasses import dataclass

import h11
import trio

from coder.net.bounded_http import BoundedHttp
from coder.net.errors import NetError

_MAX_ANSWER = 4 << 20


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """Answer of the peer."""

    status: int
    body: bytes
    kind: str = ""
    "Content-Type of the answer."


async def exchange(
    stream: trio.abc.Stream, method: str, path: str, *, host: str = "agent", content: bytes = b""
) -> StreamAnswer:
    """Send a request on a stream of its own; `content` is JSON.

    Raises NetError, h11.RemoteProtocolError, trio.BrokenResourceError.
    """
    connection = BoundedHttp(h11.CLIENT)
    headers = [("Host", host), ("Connection", "close")]
    if content:
        headers += [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
    sent = connection.send(h11.Request(method=method, target=path, headers=headers)) or b""
    sent += (connection.send(h11.Data(data=content)) or b"") if content else b""
    await stream.send_all(sent + (connection.send(h11.EndOfMessage()) or b""))
    status, body, kind = 0, bytearray(), ""
    while True:
        event = await connection.read_event(stream)
        if isinstance(event, h11.Response):
            status = event.status_code
            kind = dict(event.headers).get(b"content-type", b"").decode("latin-1")
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > _MAX_ANSWER:
                raise NetError("protocol", "the peer's answer is too large")
        elif isinstance(event, h11.EndOfMessage):
            return StreamAnswer(status, bytes(body), kind)
        elif not isinstance(event, h11.InformationalResponse):
            raise NetError("protocol", "the peer ended the connection without an answer")
