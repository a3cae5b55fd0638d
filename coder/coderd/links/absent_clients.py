"""Clients whose stream was lost without a goodbye.

Their tunnels go on for as long as agents hear from them: a server that is away, or out of a client's reach, costs
nobody a connection. But the right to a tunnel may end meanwhile, and then nothing is left that could be cut. So whoever
is lost is watched on: the session, and the permission to enter what it had tunnels to. When either goes, and at the
latest after an hour, its agents are told to forget it. In memory only: a server that is started anew watches nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.log import get_logger
from coder.coderd.services.authentication import Caller
from coder.coderd.services.open_sessions import OpenSession, OpenSessions, SessionEndedError

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

LOOK_EVERY = 60.0
"""Seconds between looks at permissions; the end of a session is heard of at once."""
PATIENCE = 3600.0
"""Seconds after which a client that did not come back loses its tunnels."""
MOST = 4096
"""Watched at once; beyond it the one that is away longest loses its tunnels."""

_log = get_logger("links")


class AbsentClients:
    """Those of one server process. Made once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._watched: dict[UUID, tuple[trio.CancelScope, list[UUID]]] = {}

    def watch(
        self, peer: UUID, caller: Caller, agents: Iterable[UUID], is_shut_out: Callable[[], Awaitable[bool]]
    ) -> None:
        """A client of `caller` was lost and had tunnels to `agents`."""
        self.returned(peer)
        if len(self._watched) >= MOST:
            oldest = next(iter(self._watched))
            _, left = self._watched[oldest]
            self.returned(oldest)
            self._ctx.coordinator.revoke(oldest, left)
        scope = trio.CancelScope()
        self._watched[peer] = scope, list(agents)
        self._ctx.nursery.start_soon(self._watch, peer, scope, caller, is_shut_out)

    def returned(self, peer: UUID) -> None:
        """It is served again; whoever serves it watches it."""
        watched = self._watched.pop(peer, None)
        if watched is not None:
            watched[0].cancel()

    async def _watch(
        self, peer: UUID, scope: trio.CancelScope, caller: Caller, is_shut_out: Callable[[], Awaitable[bool]]
    ) -> None:
        with scope:
            with trio.move_on_after(PATIENCE):
                await self._until_shut_out(caller, is_shut_out)
            _, agents = self._watched.pop(peer)
            self._ctx.coordinator.revoke(peer, agents)

    async def _until_shut_out(self, caller: Caller, is_shut_out: Callable[[], Awaitable[bool]]) -> None:
        sessions: OpenSessions = self._ctx.part(OpenSessions)
        with sessions.opened(caller) as opened:
            try:
                await opened.run(self._keep_looking, sessions, opened, is_shut_out)
            except SessionEndedError:
                return

    async def _keep_looking(
        self, sessions: OpenSessions, opened: OpenSession, is_shut_out: Callable[[], Awaitable[bool]]
    ) -> None:
        """The first look is now: the session may have ended before notices of it could be heard."""
        while True:
            try:
                await sessions.confirm(opened)
                if await is_shut_out():
                    opened.end()
            except Exception as error:
                # A database that is away for a moment ends nothing.
                _log.warn("the permissions of a client that is away could not be looked at", error=error)
            await trio.sleep(LOOK_EVERY)
