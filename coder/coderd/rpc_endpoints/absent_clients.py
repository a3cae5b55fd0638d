"""Clients whose stream was lost without a graceful disconnect.

Their tunnels stay up for as long as agents use them: a server that is down, or unreachable for a client, costs no
connection. But permission for a tunnel may end meanwhile, without a stream that could be cut. So lost clients are
watched further: the session, and the permission to enter the agents of their tunnels. When either ends, and at the
latest after an hour, the agents are notified to drop the client; except those to which it requested a new tunnel
meanwhile, whose server is responsible for it. In memory only: a restarted server watches no client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.base.log import get_logger
from coder.coderd.services.access.authentication import Caller
from coder.coderd.services.access.rights_changes import PAUSE
from coder.coderd.services.access.session_revocation import OpenSession, SessionEndedError, SessionRegistry

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

CHECK_INTERVAL = 60.0
"""Seconds between checks of permissions; the end of a session is notified immediately."""
PATIENCE = 3600.0
"""Seconds after which a client that did not reconnect loses its tunnels."""
MAX_WATCHED = 4096
"""Maximum of watched clients; beyond it the longest absent one loses its tunnels."""

IsRevoked = Callable[[Iterable[UUID]], Awaitable[bool]]
"""Returns whether the client may no longer enter one of these agents."""

_log = get_logger("rpc_endpoints")


class AbsentClients:
    """Absent clients of one server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._watched: dict[UUID, tuple[trio.CancelScope, list[UUID]]] = {}

    def watch(self, peer: UUID, caller: Caller, agents: Iterable[UUID], is_revoked: IsRevoked) -> None:
        """Watch a lost client of `caller` with tunnels to `agents`; possibly again, before the last loss was
        settled."""
        all_agents = {*agents, *self._forget(peer)}
        if len(self._watched) >= MAX_WATCHED:
            oldest = next(iter(self._watched))
            self._ctx.services.relay.coordinator.revoke(oldest, self._forget(oldest))
        scope = trio.CancelScope()
        self._watched[peer] = scope, sorted(all_agents)
        self._ctx.nursery.start_soon(self._watch, peer, scope, caller, partial(is_revoked, sorted(all_agents)))

    def _forget(self, peer: UUID) -> list[UUID]:
        """Stop watching; return the agents it was watched for."""
        watched = self._watched.pop(peer, None)
        if watched is None:
            return []
        watched[0].cancel()
        return watched[1]

    async def _watch(
        self, peer: UUID, scope: trio.CancelScope, caller: Caller, is_revoked: Callable[[], Awaitable[bool]]
    ) -> None:
        with scope:
            with trio.move_on_after(PATIENCE):
                await self._until_revoked(caller, is_revoked)
            if self._watched.get(peer, (None,))[0] is scope:  # otherwise it was lost again at this very moment
                self._ctx.services.relay.coordinator.revoke(peer, self._watched.pop(peer)[1])

    async def _until_revoked(self, caller: Caller, is_revoked: Callable[[], Awaitable[bool]]) -> None:
        sessions = self._ctx.services.sessions
        with sessions.opened(caller) as opened:
            try:
                await opened.run(self._keep_checking, sessions, opened, is_revoked)
            except SessionEndedError:
                return

    async def _keep_checking(
        self, sessions: SessionRegistry, opened: OpenSession, is_revoked: Callable[[], Awaitable[bool]]
    ) -> None:
        """Check repeatedly, first now: the session may have ended before its notices could be received."""
        rights = self._ctx.services.rights_changes
        while True:
            changed = rights.next_change()
            try:
                await sessions.confirm(opened)
                if await is_revoked():
                    opened.end()
            except Exception as error:
                # A short outage of the database ends no session.
                _log.warn("the permissions of a disconnected client could not be checked", error=error)
            with trio.move_on_after(CHECK_INTERVAL):
                await trio.sleep(PAUSE)
                await changed.wait()
