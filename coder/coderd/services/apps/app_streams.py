"""Streams of applications and terminals that outlive their ticket: access is checked again and again.

A ticket is valid for a minute, and so is the access it gave. Once a minute every open stream is checked as if it
started now, and all of them soon after a change of rights or workspaces. When a session ends, its streams are checked
at once: a user who signed out, was suspended or lost access is disconnected. Tickets are in `app_tokens.py`, access
rules in `app_access.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

import trio

from coder.api.base.refusals import Forbidden, NotFound, Unauthenticated
from coder.appproxy.apps.app_refusals import AppRefusedError
from coder.appproxy.apps.app_tickets import Ticket
from coder.appproxy.apps.app_visitor import Visitor
from coder.base.log import get_logger
from coder.coderd.services.access.authentication import recognize, recognize_key, subject_of
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.services.apps.app_access import open_app
from coder.coderd.services.apps.app_tokens import TICKET_LIFETIME
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.access.keys import ENDED
from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import NIL, Subject

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

CHECK_INTERVAL = TICKET_LIFETIME.total_seconds()
"""Seconds between two checks."""
NOTICE_PAUSE = 1.0
"""Seconds (ours) between two checks because of changes: builds cause some all day."""
NOTICE_PART = 0.05
"""Part of the time that such checks may take; with many streams they become rarer."""
_VISITOR_REFUSALS = frozenset({"sign_in", "not_found", "path_apps_off", "port_by_path"})
"""Refusals that concern the visitor. Other refusals concern the application, whose streams end without our help."""

AccessCheck = Callable[[], Awaitable[bool]]

_log = get_logger("apps")


class OpenStreams:
    """Open streams of one server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._open: dict[trio.CancelScope, tuple[float, tuple[Visitor, Hashable], AccessCheck]] = {}

    def start(self, nursery: trio.Nursery) -> None:
        """Check open streams regularly, after changes and when a session ends, until cancelled."""
        nursery.start_soon(self._check_periodically)
        nursery.start_soon(self._check_after_changes)
        nursery.start_soon(self._watch_session_ends)

    def track_app(self, visitor: Visitor, ticket: Ticket) -> AbstractContextManager[trio.CancelScope]:
        """Open a scope for a stream of an application; it is cancelled when the visitor loses access."""
        return self._track((visitor, (ticket.request, ticket.workspace_id)), lambda: self.may_open(visitor, ticket))

    def track_terminal(self, visitor: Visitor, agent_id: UUID) -> AbstractContextManager[trio.CancelScope]:
        """Open a scope for a terminal of an agent; it is cancelled when the visitor loses access."""
        return self._track((visitor, agent_id), lambda: self.may_use_terminal(visitor, agent_id))

    async def may_stay(self, ticket: Ticket) -> bool:
        """Return whether the ticket's user and key, here or at a workspace proxy, would get access now."""
        visitor = Visitor(Credentials(), ticket.user_id, ticket.key_id)
        if ticket.request.access_method == "terminal":
            return await self.may_use_terminal(visitor, ticket.agent_id)
        return await self.may_open(visitor, ticket)

    async def may_use_terminal(self, visitor: Visitor, agent_id: UUID) -> bool:
        """Return whether the visitor may open a terminal of the agent now."""
        subject = await self._subject(visitor)
        try:
            return subject is not None and await load_agent(self._ctx, subject, agent_id, "ssh") is not None
        except (NotFound, Forbidden):
            return False

    @contextmanager
    def _track(self, key: tuple[Visitor, Hashable], may_stay: AccessCheck) -> Iterator[trio.CancelScope]:
        with trio.CancelScope() as scope:
            self._open[scope] = (trio.current_time(), key, may_stay)
            try:
                yield scope
            finally:
                del self._open[scope]

    async def look(self, older_than: float = 0.0, concerned: Callable[[Visitor], bool] = lambda _: True) -> None:
        """Check the streams that have been open for so many seconds, of the visitors selected."""
        since, allowed = trio.current_time() - older_than, dict[Hashable, bool]()
        for scope, (started_at, key, may_stay) in list(self._open.items()):
            if started_at > since or not concerned(key[0]):
                continue
            try:
                if key not in allowed:
                    allowed[key] = await may_stay()
            except Exception as error:
                # A short database outage ends no stream; the next check is in a minute.
                _log.warn("the access of an open stream could not be checked", error=error)
                continue
            if not allowed[key]:
                scope.cancel()

    async def _check_periodically(self) -> None:
        while True:
            await trio.sleep(CHECK_INTERVAL)
            await self.look(CHECK_INTERVAL)

    async def _check_after_changes(self) -> None:
        changes = self._ctx.services.rights_changes
        changed = changes.next_change()
        while True:
            await changed.wait()
            changed = changes.next_change()  # taken before the checks: a change during them counts
            began = trio.current_time()
            await self.look()
            await trio.sleep(max(NOTICE_PAUSE, (trio.current_time() - began) / NOTICE_PART))

    async def _watch_session_ends(self) -> None:
        """Check a session's streams when it ends, on every replica; after a missed notice the check is up to a minute
        late."""
        cache = self._ctx.services.auth_cache
        async with self._ctx.db.listen(ENDED) as notices:
            async for _channel, payload in notices:
                kind, _, identity = payload.partition(" ")

                def is_concerned(visitor: Visitor, kind: str = kind, identity: str = identity) -> bool:
                    key_id = visitor.credentials.token.partition("-")[0] or visitor.key_id
                    concerned = {"key": key_id, "user": str(visitor.user_id)}.get(kind, identity) == identity
                    if concerned:
                        cache.forget(key_id)  # an earlier request may have cached it
                    return concerned

                await self.look(concerned=is_concerned)

    async def may_open(self, visitor: Visitor, ticket: Ticket) -> bool:
        """Return whether the visitor would get access to the ticket's application, of the same workspace, now."""
        try:
            opened, _ = await open_app(self._ctx, ticket.request, await self._subject(visitor))
        except AppRefusedError as refused:
            return refused.reason not in _VISITOR_REFUSALS
        # Names are reused: access to the workspace that has the name now gives no access to the former one.
        return opened.workspace_id == ticket.workspace_id

    async def _subject(self, visitor: Visitor) -> Subject | None:
        try:
            if visitor.credentials.token:
                key, user = await recognize(self._ctx, visitor.credentials)
                return subject_of(self._ctx, user, key)
            if visitor.key_id:  # a narrow key's ticket gives what the key gives, while the key lasts
                key, user = await recognize_key(self._ctx, visitor.key_id)
                return subject_of(self._ctx, user, key) if user.id == visitor.user_id else None
        except Unauthenticated:
            return None
        if visitor.user_id == NIL:
            return None
        row = await self._ctx.db.read(key_store.find_user_with_roles, visitor.user_id)
        return None if row is None or row.deleted or row.status == "suspended" else subject_of(self._ctx, row)
