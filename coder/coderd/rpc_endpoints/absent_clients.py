"""Clients whose stream was lost without a goodbye.

Their tunnels go on for as long as agents hear from them: a server that is away, or out of a client's reach, costs
nobody a connection. But the right to a tunnel may end meanwhile, and then nothing is left that could be cut. So whoever
is lost is watched on: the session, and the permission to enter what it had tunnels to. When either goes, and at the
latest after an hour, its agents are told to forget it; not those to which it asked for a tunnel anew meanwhile, for
then whoever serves it answers for it. In memory only: a server that is started anew watches nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.log import get_logger
from coder.coderd.services.access.authentication import Caller
from coder.coderd.services.access.rights_changes import PAUSE, RightsChanges
from coder.coderd.services.access.session_revocation import OpenSession, SessionEndedError, SessionRegistry
from coder.coderd.services.network.coordinator import Coordinator

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

LOOK_EVERY = 60.0
"""Seconds between looks at permissions; the end of a session is heard of at once."""
PATIENCE = 3600.0
"""Seconds after which a client that did not come back loses its tunnels."""
MOST = 4096
"""Watched at once; beyond it the one that is away longest loses its tunnels."""

IsShutOut = Callable[[Iterable[UUID]], Awaitable[bool]]
"""May the client no longer enter one of these agents?"""

_log = get_logger("rpc_endpoints")


class AbsentClients:
    """Those of one server process. Made once, see `Context.part`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._watched: dict[UUID, tuple[trio.CancelScope, list[UUID]]] = {}

    def watch(self, peer: UUID, caller: Caller, agents: Iterable[UUID], is_shut_out: IsShutOut) -> None:
        """A client of `caller` was lost and had tunnels to `agents`; again, perhaps, before the last was settled."""
        all_agents = {*agents, *self._forget(peer)}
        if len(self._watched) >= MOST:
            oldest = next(iter(self._watched))
            self._ctx.part(Coordinator).revoke(oldest, self._forget(oldest))
        scope = trio.CancelScope()
        self._watched[peer] = scope, sorted(all_agents)
        self._ctx.nursery.start_soon(self._watch, peer, scope, caller, partial(is_shut_out, sorted(all_agents)))

    def _forget(self, peer: UUID) -> list[UUID]:
        """Watches it no longer; the agents it was watched for."""
        watched = self._watched.pop(peer, None)
        if watched is None:
            return []
        watched[0].cancel()
        return watched[1]

    async def _watch(
        self, peer: UUID, scope: trio.CancelScope, caller: Caller, is_shut_out: Callable[[], Awaitable[bool]]
    ) -> None:
        with scope:
            with trio.move_on_after(PATIENCE):
                await self._until_shut_out(caller, is_shut_out)
            if self._watched.get(peer, (None,))[0] is scope:  # else it was lost again in this very moment
                self._ctx.part(Coordinator).revoke(peer, self._watched.pop(peer)[1])

    async def _until_shut_out(self, caller: Caller, is_shut_out: Callable[[], Awaitable[bool]]) -> None:
        sessions = self._ctx.part(SessionRegistry)
        with sessions.opened(caller) as opened:
            try:
                await opened.run(self._keep_looking, sessions, opened, is_shut_out)
            except SessionEndedError:
                return

    async def _keep_looking(
        self, sessions: SessionRegistry, opened: OpenSession, is_shut_out: Callable[[], Awaitable[bool]]
    ) -> None:
        """The first look is now: the session may have ended before notices of it could be heard."""
        rights = self._ctx.part(RightsChanges)
        while True:
            changed = rights.next_change()
            try:
                await sessions.confirm(opened)
                if await is_shut_out():
                    opened.end()
            except Exception as error:
                # A database that is away for a moment ends nothing.
                _log.warn("the permissions of a client that is away could not be looked at", error=error)
            with trio.move_on_after(LOOK_EVERY):
                await trio.sleep(PAUSE)
                await changed.wait()
