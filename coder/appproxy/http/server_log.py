"""Hypercorn's own messages in our log."""

from __future__ import annotations

from hypercorn.config import Config
from hypercorn.logging import Logger as HypercornLogger

from coder.base.log import STRANGERS_LINES, get_logger

_log = get_logger("http.server", per_minute=STRANGERS_LINES)


class ServerLog(HypercornLogger):
    """Sends Hypercorn's own messages to our log."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)

    async def error(self, message: str, *args: object, **kwargs: object) -> None:
        _log.error(message % args if args else message)

    async def exception(self, message: str, *args: object, **kwargs: object) -> None:
        import sys

        error = sys.exc_info()[1]
        _log.error(message % args if args else message, error=error or "unknown")

    async def info(self, message: str, *args: object, **kwargs: object) -> None:
        _log.debug(message % args if args else message)
