"""Resources that a view opened for its response are closed with the request, however that ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from quart import Response

from coder.coderd.http.server.quart_fixes import Application, at_end, new_application

SCOPE = {
    "type": "http",
    "http_version": "1.1",
    "asgi": {"version": "3.0"},
    "method": "GET",
    "scheme": "http",
    "path": "/",
    "raw_path": b"/",
    "query_string": b"",
    "root_path": "",
    "headers": [(b"host", b"here")],
    "client": ("127.0.0.1", 1),
    "server": ("127.0.0.1", 2),
    "extensions": {},
    "state": {},
}


def streaming_application(closed: list[str]) -> Application:
    app = new_application("test")

    @app.get("/")
    async def view() -> Response:
        async def source() -> AsyncIterator[bytes]:
            try:
                yield b"first"
                yield b"second"
            finally:
                closed.append("source")

        values = source()
        at_end().push_async_callback(values.aclose)  # type: ignore[attr-defined]
        first = await anext(values)

        async def body() -> AsyncIterator[bytes]:
            yield first
            async for value in values:
                yield value

        return Response(body())

    return app


@pytest.mark.parametrize("leaves_at", ["nowhere", "http.response.start", "http.response.body"])
async def test_response_source_is_closed_on_disconnect(leaves_at: str) -> None:
    closed: list[str] = []
    sent: list[str] = []
    gone = trio.Event()
    first = True

    async def receive() -> dict[str, Any]:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message["type"])
        if message["type"] == leaves_at:
            gone.set()
            await trio.sleep_forever()

    with trio.fail_after(60):
        await streaming_application(closed)(SCOPE, receive, send)  # type: ignore[arg-type]
    assert closed == ["source"]
    assert sent[-1] == (leaves_at if leaves_at != "nowhere" else "http.response.body")
