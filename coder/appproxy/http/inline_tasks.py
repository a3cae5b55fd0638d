"""Task group for immediate responses: it runs the application inside the connection's own task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

import trio
from hypercorn.config import Config
from hypercorn.typing import AppWrapper, ASGIReceiveEvent, ASGISendEvent, Scope

from coder.base.log import STRANGERS_LINES, get_logger

_log = get_logger("http.server", per_minute=STRANGERS_LINES)


class _InlineTaskGroup:
    """Replacement of a task group: runs the application where the request's last byte was read (7)."""

    async def spawn_app(
        self,
        app: AppWrapper,
        _config: Config,
        scope: Scope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        async def put(message: ASGIReceiveEvent) -> None:
            if message["type"] != "http.request" or message["more_body"]:
                return  # these requests have no body to read
            try:
                await app(scope, wait_nothing, send, _unused, _unused)
            except Exception as error:
                _log.error("a request failed", error=error)
            await send(None)

        return put


def _unused() -> NoReturn:
    raise AssertionError("an ASGI application needs no threads")


async def wait_nothing() -> NoReturn:
    """Receive for a request without a body that is answered at once."""
    await trio.sleep_forever()


AT_ONCE = _InlineTaskGroup()
