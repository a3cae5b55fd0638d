"""Counts of the middleware."""

from __future__ import annotations

from typing import Any

import trio

from coder.coderd.http.server.middleware import Middleware
from tests.kit.server.server_in_process import running_coderd

ROUTE = "/api/v2/counted"
FAMILY = "coderd_api_requests_processed_total"


async def test_client_gone_before_answer_has_no_status() -> None:
    async def answer(scope: Any, _receive: Any, send: Any) -> None:
        scope["coder_route"] = ROUTE
        if scope["path"] == "/answered":
            await send({"type": "http.response.start", "status": 204, "headers": []})
        else:
            await trio.sleep_forever()

    async def receive() -> dict[str, Any]:
        return {}

    async def send(_message: dict[str, Any]) -> None:
        pass

    async with running_coderd() as world:
        middleware = Middleware(answer, world.ctx)
        for path in ("/left", "/answered"):
            scope: dict[str, Any] = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
            async with trio.open_nursery() as nursery:
                nursery.start_soon(middleware, scope, receive, send)
                await trio.sleep(0)
                nursery.cancel_scope.cancel()
        lines = world.ctx.services.metrics[FAMILY].lines()
        assert [line for line in lines if ROUTE in line] == [f'{FAMILY}{{code="204",method="GET",path="{ROUTE}"}} 1']
