"""The HTTP API of an agent that has a container engine beside it: one dev container, which may be rebuilt and removed.

Stands in for ours where no engine is to be looked after; shapes are those of types.schema.json.

with MonkeyPatch.context() as patch:
    patch.setattr(http_api, "HttpApi", ContainerApi)
"""

from __future__ import annotations

import json
from typing import Any

import h11
import trio

from coder.net.websocket import WebSocketStream, accept_key

DEVCONTAINER = "7d3c5b1e-2222-4333-8444-0123456789ab"
LIST = {
    "devcontainers": [
        {
            "id": DEVCONTAINER,
            "name": "project",
            "workspace_folder": "/home/coder/project",
            "status": "running",
            "dirty": False,
        }
    ],
    "containers": [
        {
            "id": "0123456789ab",
            "name": "project-1",
            "image": "debian",
            "created_at": "2026-01-02T03:04:05Z",
            "labels": {},
            "running": True,
            "ports": [{"port": 80, "network": "tcp", "host_ip": "127.0.0.1", "host_port": 8080}],
            "status": "running",
            "volumes": {},
        }
    ],
    "warnings": [],
}


class ContainerApi:
    """In the place of `coder.agent.network.http_api.HttpApi`."""

    def __init__(self, _state: object) -> None:
        pass

    async def serve(self, stream: trio.abc.HalfCloseableStream) -> None:
        """One request; a watch lasts until the other end leaves."""
        async with stream:
            connection = h11.Connection(h11.SERVER)
            while not isinstance(event := connection.next_event(), h11.Request):
                if event is not h11.NEED_DATA:
                    return
                connection.receive_data(bytes(await stream.receive_some(65536)))
            method, path = event.method.decode(), event.target.decode().partition("?")[0]
            if path.endswith("/watch"):
                await _watch(connection, event, stream)
                return
            status, body = _answer(method, path)
            data = b"" if body is None else json.dumps(body).encode()
            headers = [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]
            out = connection.send(h11.Response(status_code=status, headers=headers if data else [])) or b""
            out += connection.send(h11.Data(data=data)) or b""
            await stream.send_all(out + (connection.send(h11.EndOfMessage()) or b""))


def _answer(method: str, path: str) -> tuple[int, Any]:
    if (method, path) == ("GET", "/api/v0/containers"):
        return 200, LIST
    if DEVCONTAINER not in path:
        return 404, {"message": "Devcontainer not found."}
    if (method, path.rpartition("/")[2]) == ("POST", "recreate"):
        return 202, {"message": "Devcontainer recreation initiated", "detail": "It takes a while."}
    return 204, None


async def _watch(connection: h11.Connection, request: h11.Request, stream: trio.abc.HalfCloseableStream) -> None:
    key = dict(request.headers)[b"sec-websocket-key"].decode()
    headers = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Accept", accept_key(key))]
    while not isinstance(connection.next_event(), h11.EndOfMessage):
        pass
    await stream.send_all(connection.send(h11.InformationalResponse(status_code=101, headers=headers)) or b"")
    socket = WebSocketStream(stream, client=False)
    await socket.send_message(json.dumps(LIST))
    await socket.receive_message()
