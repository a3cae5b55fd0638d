"""Reconnection of a controller, until a failure is final.

Clients, proxies and the server's own node use it; an agent has its own loop, because its connection carries more than
coordination.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import trio

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.net.errors import requested_delay
from coder.rpc.session import Session
from coder.tailnet.controller import Controller

_log = get_logger("tailnet")

Connect = Callable[[str], AbstractAsyncContextManager[Session]]
"""Opens a session to the coordinator with the given resume token (empty: none). Raises CoderError subclasses."""


async def keep_coordinated(
    controller: Controller,
    connect: Connect,
    *,
    is_final: Callable[[Exception], bool] = lambda _error: False,
    is_bad_token: Callable[[Exception], bool] = lambda _error: False,
    is_lost: Callable[[Exception], bool] = lambda _error: False,
    on_session: Callable[[Session], None] = lambda _session: None,
) -> None:
    """Reconnect forever, 50 ms to 10 s apart, varied by half, or later if the server asks for that.

    Raises errors that match `is_final` before the first success, and errors that match `is_lost` at any time.
    """
    backoff = Backoff(0.05, 10.0, jitter=0.5)
    connected_once = False
    while True:
        opened_at: float | None = None
        began, requested = trio.current_time(), 0.0
        try:
            async with connect(controller.resume_token) as session:
                connected_once, opened_at = True, trio.current_time()
                on_session(session)
                await controller.run(session)
        except (CoderError, OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            if is_bad_token(error) and controller.resume_token:
                controller.resume_token = ""
                continue
            if is_lost(error) or (not connected_once and is_final(error)):
                raise
            requested = requested_delay(error)
            _log.debug("coordination ended, reconnecting", error=str(error))
        now, attempt = trio.current_time(), 0.0
        if opened_at is not None:
            backoff.record_connection(now - opened_at)
        elif not requested:
            attempt = now - began
        await trio.sleep(max(backoff.next_delay(attempt), requested))
