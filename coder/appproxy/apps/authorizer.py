"""Interface between the proxy of applications and its process: admission, and usage.

The server decides with its database (`services/apps/local_authorizer.py`); a workspace proxy queries its server
(`coder/wsproxy/authorizer.py`). The proxy itself knows neither. `services/apps/app_access.py` applies share levels.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import trio

from coder.api.base.refusals import RateLimited
from coder.appproxy.apps.app_tickets import Ticket
from coder.appproxy.apps.app_visitor import Visitor
from coder.appproxy.http.rate_limits import PATIENCE, address_key
from coder.domain.access.credentials import Credentials
from coder.domain.access.rate_budgets import ADMISSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coder.appproxy.apps.upstream import AppPool
    from coder.appproxy.http.rate_limits import RateLimits
    from coder.appproxy.settings import AppCookieSettings
    from coder.domain.apps.app_addresses import AppRequest


@dataclass(frozen=True, slots=True)
class AppProxySettings:
    """Settings of the proxy."""

    dashboard_url: str
    """Address of the sign-in page and the target of links back, without a slash at the end."""
    own_url: str
    """Address of this process itself; differs from the dashboard's at a proxy."""
    wildcard: str = ""
    disable_path_apps: bool = False
    secure_cookie: bool = False
    samesite: str = "lax"
    session_duration: timedelta = timedelta(hours=24)
    prefixed_cookies: bool = False

    @property
    def is_away(self) -> bool:
        """Return whether users sign in under another address."""
        return self.dashboard_url != self.own_url

    @classmethod
    def of(cls, config: AppCookieSettings, *, dashboard_url: str, own_url: str) -> AppProxySettings:
        return cls(
            dashboard_url=dashboard_url,
            own_url=own_url,
            wildcard=config.wildcard_access_url,
            disable_path_apps=config.disable_path_apps,
            secure_cookie=config.secure_auth_cookie,
            samesite=config.samesite_auth_cookie,
            session_duration=config.session_duration,
            prefixed_cookies=config.host_prefix_cookie,
        )


@dataclass(frozen=True, slots=True)
class AppAdmission:
    """Admission of a visitor."""

    ticket: Ticket
    token: str
    """Ticket as it is signed."""
    expires_at: datetime


def count_admission(limits: RateLimits, address: str, question: str) -> None:
    """Count an unknown visitor's admission before it costs a query of a database or a server. Raises RateLimited."""
    limits.count(address_key(address), "", (ADMISSIONS,), route=question)


class KnownVisitors:
    """Limit for queries of known visitors: so many of each at one time, and further ones wait.

    A program that sends its token with each request causes a query each time: it is never refused for its rate, and
    leaves capacity to others.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._turns: dict[str, _Turns] = {}

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn. Raises RateLimited after PATIENCE."""
        turns = self._turns.setdefault(who, _Turns(trio.Semaphore(self._at_once)))
        turns.users += 1
        try:
            with trio.move_on_after(PATIENCE) as scope:
                await turns.free.acquire()
            if scope.cancelled_caught:
                raise RateLimited("Too many of your requests wait for admission.", headers=[("Retry-After", "1")])
            try:
                yield
            finally:
                turns.free.release()
        finally:
            turns.users -= 1
            if not turns.users:
                del self._turns[who]


@dataclass(slots=True)
class _Turns:
    free: trio.Semaphore
    users: int = 0


class AppAuthorizer(Protocol):
    """Decides and caches for the proxy. A visitor's queries are bounded: for known visitors by concurrency
    (`KnownVisitors`), for others per minute, each query by itself."""

    @property
    def settings(self) -> AppProxySettings: ...
    @property
    def pool(self) -> AppPool: ...
    @property
    def stopping(self) -> trio.Event: ...

    async def read_ticket(self, tokens: Sequence[str], request: AppRequest) -> Ticket | None:
        """Return the first valid ticket for exactly this application among a client's tokens."""
        ...

    async def admit(self, request: AppRequest, shown: Credentials, user_agent: str) -> AppAdmission:
        """Admit a visitor. Raises AppRefusedError, RateLimited."""
        ...

    async def unseal(self, sealed: str) -> str:
        """Return the API key a visitor brings from signing in. Raises TokenRefused."""
        ...

    async def recheck_access(self, ticket: Ticket, visitor: Visitor) -> None:
        """Check that a ticket's application is still available. Raises AppRefusedError, RateLimited."""
        ...

    async def still_admits(self, ticket: Ticket, visitor: Visitor) -> bool:
        """Return whether a signed-in visitor with a ticket would get access now."""
        ...

    async def cors_of(self, request: AppRequest, remote_ip: str) -> str:
        """Return the CORS behaviour of a workspace's template. Raises RateLimited."""
        ...

    def stay(self, visitor: Visitor, ticket: Ticket) -> AbstractContextManager[trio.CancelScope]:
        """Count a request for as long as it lasts; its scope is cancelled when the visitor's access ends."""
        ...
