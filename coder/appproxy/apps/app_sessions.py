"""Sessions in applications, counted in memory: users, applications, requests and times.

A session is one user's use of one application by one access method; a pause of a minute ends it. An open stream (a
WebSocket, a download) is use for as long as it lasts. The caller sends the reports: the server to its database
(`services/apps/app_usage.py`), a workspace proxy to its server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from coder.api.proxies.proxies import AppStat
from coder.appproxy.apps.app_tickets import Ticket
from coder.base.ids import new_uuid

REPORT_EVERY = 30.0
"""Seconds between two reports, as upstream's."""
PAUSE = timedelta(minutes=1)
"""Silence that ends a session."""

_Key = tuple[UUID, UUID, UUID, str, str]


@dataclass(slots=True)
class _Session:
    id: UUID
    started_at: datetime
    ended_at: datetime
    requests: int = 0
    open: int = 0
    reported: bool = False


class AppSessions:
    """Sessions of one process."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._sessions: dict[_Key, _Session] = {}

    def __len__(self) -> int:
        """Return the number of sessions in use, or recently so."""
        now = self._now()
        return sum(1 for session in self._sessions.values() if session.open or now - session.ended_at <= PAUSE)

    @contextmanager
    def counted(self, ticket: Ticket) -> Iterator[None]:
        """Count one request for as long as it lasts."""
        request = ticket.request
        key = (ticket.user_id, ticket.workspace_id, ticket.agent_id, request.access_method, request.app_slug_or_port)
        now = self._now()
        session = self._sessions.get(key)
        if session is None or (not session.open and now - session.ended_at > PAUSE):
            if session is not None and not session.reported:
                self._sessions[(*key[:4], f"{key[4]}\0{session.id}")] = session  # reported with the next turn
            session = self._sessions[key] = _Session(new_uuid(), now, now)
        session.requests += 1
        session.open += 1
        session.reported = False
        try:
            yield
        finally:
            session.open -= 1
            session.ended_at = self._now()
            session.reported = False

    async def report(self, write: Callable[[list[AppStat]], Awaitable[None]]) -> None:
        """Pass new sessions to `write`, whose failure keeps them new, and drop ended ones."""
        now = self._now()
        news: list[tuple[_Key, _Session]] = []
        for key, session in self._sessions.items():
            if session.open:
                session.ended_at, session.reported = now, False
            if not session.reported:
                news.append((key, session))
        if news:
            rows = [_row(key, session) for key, session in news]
            for _, session in news:
                session.reported = True
            try:
                await write(rows)
            except BaseException:
                for _, session in news:
                    session.reported = False
                raise
        over = [
            key
            for key, session in self._sessions.items()
            if session.reported and not session.open and (now - session.ended_at > PAUSE or "\0" in key[4])
        ]
        for key in over:
            del self._sessions[key]


def _row(key: _Key, session: _Session) -> AppStat:
    return AppStat(
        session_id=session.id,
        user_id=key[0],
        workspace_id=key[1],
        agent_id=key[2],
        access_method=key[3],
        slug_or_port=key[4].partition("\0")[0],
        session_started_at=session.started_at,
        session_ended_at=session.ended_at,
        requests=session.requests,
    )
