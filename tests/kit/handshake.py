"""Asks for a WebSocket (or a relay's stream) and leaves: what does the server say to the handshake?"""

from __future__ import annotations

import base64
import os
from urllib.parse import urlsplit

import h11
import httpx
import trio


async def handshake(url: str, path: str, token: str, name: str = "Coder-Session-Token") -> httpx.Response:
    """The answer's head (and its body when it is a refusal). Raises trio.TooSlowError after 10 s of silence."""
    parts = urlsplit(url)
    protocol = "DERP" if path.startswith("/derp") else "websocket"
    headers = [
        ("Host", parts.netloc),
        ("Connection", "Upgrade"),
        ("Upgrade", protocol),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", base64.b64encode(os.urandom(16)).decode()),
        (name, token),
    ]
    connection = h11.Connection(h11.CLIENT)
    body = b""
    with trio.fail_after(60):
        async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 80) as stream:
            request = h11.Request(method="GET", target=path, headers=headers)
            await stream.send_all((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
            head: h11.Response | h11.InformationalResponse | None = None
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(bytes(await stream.receive_some()))
                elif isinstance(event, h11.InformationalResponse | h11.Response):
                    head = event
                    if event.status_code == 101:
                        break
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                else:
                    break
    assert head is not None
    return httpx.Response(head.status_code, headers=list(head.headers), content=body)
