"""Connections that outlive their request, and the keys they were opened with.

A key is checked when a connection opens. When the key is deleted or expires, or its user is suspended or deleted, its
connections are closed on every replica: a notice reports that something ended, the key is read again, and an invalid
key closes its connections. Notices are hints only; a regular check catches missed ones. A read that fails is retried: a
short database outage closes no connection.

A stream was also opened by rights, and checks the policy with the rights of that moment. So it is closed when they
change: a client that still has the rights reconnects and is checked again. Tunnels and daemons stay open and recheck by
themselves (`close_when_revoked` in `rpc_endpoints/coordination.py`, `rpc_endpoints/provisioners.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple
from uuid import UUID

import trio

from coder.base.log import get_logger
from coder.coderd.services.access.authentication import Caller
from coder.coderd.services.access.rights_changes import PAUSE
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.access.keys import ENDED
from coder.coderd.store.engine.listening import RESYNC
from coder.domain.access.policy import NIL

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CHECK_INTERVAL = 30.0
"""Seconds between checks of expired keys. A key slides when used, so its expiry alone does not decide."""
RETRY = 1.0
"""Seconds until a failed read of a key is retried."""
CLOSE_CODE = 1008
CLOSE_REASON = "signed out"
RIGHTS_CHANGED = "rights changed"
"""Close code of a WebSocket in that case: policy violation, with the reason."""

_log = get_logger("session_revocation")


class SessionEndedError(Exception):
    """The key of the connection is no longer valid."""


class OpenSession:
    """An open connection. Every wait on its behalf goes through `run`."""

    def __init__(self, key_id: str, user_id: UUID, expires_at: datetime) -> None:
        self.key_id = key_id
        self.user_id = user_id
        self.expires_at = expires_at
        self.ended = False
        self.reason = CLOSE_REASON
        self.rights: key_store.Rights | None = None
        "Rights the connection was opened by; None where another check covers them."
        self.build_roles: str | None = None
        "Roles that the key carries, if a build got it."
        self._scopes: set[trio.CancelScope] = set()

    async def run(self, function: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Return the result of `function(*args)`. Raises SessionEndedError as soon as the session ends."""
        if self.ended:
            raise SessionEndedError
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await function(*args)
            finally:
                self._scopes.discard(scope)
        raise SessionEndedError

    def end(self, reason: str = CLOSE_REASON) -> None:
        self.ended, self.reason = True, reason
        for scope in self._scopes:
            scope.cancel()


class SessionRegistry:
    """Sessions of one server process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._open: set[OpenSession] = set()
        self._listening = trio.Event()
        self._pending: set[OpenSession] = set()
        "Sessions to check: a notice named them, or their last check failed."
        self._has_pending = trio.Event()

    def start(self, nursery: trio.Nursery) -> None:
        """Listen for ended sessions and check the open ones, until cancelled."""
        nursery.start_soon(self._listen)
        nursery.start_soon(self._check_pending)
        nursery.start_soon(self._check_expired_regularly)
        nursery.start_soon(self._check_rights_on_change)

    @contextmanager
    def opened(self, caller: Caller | None, *, by_rights: bool = False) -> Iterator[OpenSession]:
        """Yield a session that ends with the caller's key, and with `by_rights` also when the caller's rights change.

        Call `confirm` inside, before sending anything. Without a caller (an agent, the server itself) the session never
        ends on its own.
        """
        if caller is None:
            yield OpenSession("", NIL, datetime.max)
            return
        session = OpenSession(caller.key.id, caller.user.id, caller.key.expires_at)
        session.rights = caller.user.rights if by_rights else None
        session.build_roles = caller.key.build_roles
        self._open.add(session)
        try:
            yield session
        finally:
            self._open.discard(session)
            self._pending.discard(session)

    async def confirm(self, session: OpenSession) -> None:
        """Check the key again: it may have ended between authentication and the first notice this session could get."""
        if session in self._open:
            await self._listening.wait()
            await self.look(session)

    async def look(self, session: OpenSession) -> None:
        """End the session if its key is no longer valid."""
        caller = await self._ctx.db.read(key_store.find_caller, session.key_id)
        now = self._ctx.clock.now()
        if caller is None or caller[0].expires_at <= now or caller[1].deleted or caller[1].status == "suspended":
            session.end()
        elif session.build_roles != caller[0].build_roles or session.rights not in (None, caller[1].rights):
            session.end(RIGHTS_CHANGED)
        else:
            session.expires_at = caller[0].expires_at

    async def check_expired(self) -> None:
        """Check keys that had expired when they were last read; most of them have slid."""
        now = self._ctx.clock.now()
        for session in [session for session in self._open if session.expires_at <= now]:
            await self._try_check(session)

    async def _check_expired_regularly(self) -> None:
        while True:
            await trio.sleep(CHECK_INTERVAL)
            await self.check_expired()

    async def check_rights(self) -> None:
        """Check the rights of all streams in one read."""
        streams = [session for session in self._open if session.rights is not None]
        if not streams:
            return
        rights = await self._ctx.db.read(key_store.find_rights, {session.user_id for session in streams})
        for session in streams:
            if rights.get(session.user_id) != session.rights:
                session.end(RIGHTS_CHANGED)

    async def _check_rights_on_change(self) -> None:
        changes = self._ctx.services.rights_changes
        while True:
            changed = changes.next_change()
            try:
                await self.check_rights()
            except Exception as error:
                _log.warn("rights could not be read; retrying", error=error)
                changed = trio.Event()
                changed.set()
            await trio.sleep(PAUSE)
            with trio.move_on_after(CHECK_INTERVAL):
                await changed.wait()

    async def _try_check(self, session: OpenSession) -> bool:
        try:
            await self.look(session)
        except Exception as error:
            # An error of the database must not affect other sessions.
            _log.warn("the key of a session could not be read; retrying", key=session.key_id, error=error)
            return False
        return True

    async def _check_pending(self) -> None:
        while True:
            with trio.move_on_after(RETRY if self._pending else float("inf")):
                await self._has_pending.wait()
            self._has_pending = trio.Event()
            for session in list(self._pending):
                self._pending.discard(session)  # before the check: a notice during the check counts
                if session in self._open and not await self._try_check(session) and session in self._open:
                    self._pending.add(session)

    async def _listen(self) -> None:
        async with self._ctx.db.listen(ENDED) as notices:
            self._listening.set()
            async for _channel, payload in notices:
                kind, _, identity = payload.partition(" ")
                for session in list(self._open):
                    own_identity = {"key": session.key_id, "user": str(session.user_id)}.get(kind)
                    if payload == RESYNC or own_identity == identity:
                        self._pending.add(session)
                        self._has_pending.set()
