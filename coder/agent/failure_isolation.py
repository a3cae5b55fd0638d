"""Failure isolation for every listener of the agent: a defect in one connection must not end the agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from coder.base.log import get_logger

log = get_logger("agent")

StreamT = TypeVar("StreamT", bound=trio.abc.AsyncResource)


def isolate_failures(serve: Callable[[StreamT], Awaitable[None]]) -> Callable[[StreamT], Awaitable[None]]:
    """Return `serve` as a listener's handler: an exception closes its connection and is logged."""

    async def handle(stream: StreamT) -> None:
        try:
            await serve(stream)
        except Exception as error:
            log.error("a connection failed", error=error)
            await trio.aclose_forcefully(stream)

    return handle
