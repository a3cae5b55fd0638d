"""An app that speaks for a task, as agentapi does: GET status, POST message, GET messages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import h11
import trio

SAID_AT = "2026-01-02T03:04:05Z"


@dataclass
class FakeApp:
    """What it was told, and how it answers."""

    port: int = 0
    status: str = "stable"
    messages: list[dict[str, Any]] = field(default_factory=list)
    broken: bool = False
    "Answers with words instead of JSON."

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        if (method, path) == ("GET", "/status"):
            return 200, {"status": self.status}
        if (method, path) == ("GET", "/messages"):
            return 200, {"messages": self.messages}
        if (method, path) == ("POST", "/message"):
            sent = json.loads(body)
            assert sent["type"] == "user"
            self.say("user", sent["content"])
            return 200, {"ok": True}
        return 404, {"message": f"no {method} {path}"}

    def say(self, role: str, content: str) -> None:
        self.messages.append({"id": len(self.messages), "role": role, "content": content, "time": SAID_AT})


@asynccontextmanager
async def fake_app() -> AsyncIterator[FakeApp]:
    """The app on a loopback port of its own."""
    app = FakeApp()

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            connection = h11.Connection(h11.SERVER)
            request, body = None, b""
            while not isinstance(event := connection.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    connection.receive_data(await stream.receive_some())
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += event.data
                else:
                    return
            assert request is not None
            status, said = app.answer(request.method.decode(), request.target.decode(), body)
            content = b"out of order" if app.broken else json.dumps(said).encode()
            headers = [("Content-Length", str(len(content))), ("Connection", "close")]
            parts = (h11.Response(status_code=status, headers=headers), h11.Data(data=content), h11.EndOfMessage())
            await stream.send_all(b"".join(connection.send(part) or b"" for part in parts))

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            lambda task_status: trio.serve_tcp(serve, 0, host="127.0.0.1", task_status=task_status)
        )
        app.port = listeners[0].socket.getsockname()[1]
        yield app
        nursery.cancel_scope.cancel()
