"""What the proxy of applications asks of the process it stands in: who may come in, and what is noted of it.

The server answers from its database (`services/apps/local_authorizer.py`); a workspace proxy asks
its server (`coder/wsproxy/authorizer.py`). The proxy itself knows neither. What a share level allows is
decided in `services/apps/app_access.py`.
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
    """What the proxy goes by."""

    dashboard_url: str
    "Where people sign in and pages lead back to, without a slash at the end."
    own_url: str
    "Where this process is reached itself; another address than the dashboard's at a proxy."
    wildcard: str = ""
    disable_path_apps: bool = False
    secure_cookie: bool = False
    samesite: str = "lax"
    session_duration: timedelta = timedelta(hours=24)
    prefixed_cookies: bool = False

    @property
    def is_away(self) -> bool:
        """Whether people sign in elsewhere than under this address."""
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
    """Somebody was let in."""

    ticket: Ticket
    token: str
    "The ticket as it is signed."
    expires_at: datetime


def count_admission(limits: RateLimits, address: str, question: str) -> None:
    """Before a visitor nobody knows makes us ask a database or a server. Raises RateLimited."""
    limits.count(address_key(address), "", (ADMISSIONS,), route=question)


class KnownVisitors:
    """What those make us ask who are known: so many questions of each at one time, and more of them wait.

    A program that shows its token with each request asks each time: it is never refused for being quick, and leaves
    the others their part.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._turns: dict[str, _Turns] = {}

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        """Raises RateLimited after PATIENCE."""
        turns = self._turns.setdefault(who, _Turns(trio.Semaphore(self._at_once)))
        turns.users += 1
        try:
            with trio.move_on_after(PATIENCE) as waited:
                await turns.free.acquire()
            if waited.cancelled_caught:
                raise RateLimited("Too many of your requests wait to be let in.", headers=[("Retry-After", "1")])
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
    """Decides and remembers for the proxy. What a visitor makes it ask is bounded: of those somebody knows in number
    at one time (`KnownVisitors`), of others in number a minute, each question by itself."""

    @property
    def settings(self) -> AppProxySettings: ...
    @property
    def pool(self) -> AppPool: ...
    @property
    def stopping(self) -> trio.Event: ...

    async def read_ticket(self, tokens: Sequence[str], request: AppRequest) -> Ticket | None:
        """The first valid ticket for just this application among what a client shows."""
        ...

    async def admit(self, request: AppRequest, shown: Credentials, user_agent: str) -> AppAdmission:
        """Lets somebody in. Raises AppRefusedError, RateLimited."""
        ...

    async def unseal(self, sealed: str) -> str:
        """The API key a visitor brings from signing in. Raises TokenRefused."""
        ...

    async def look_again(self, ticket: Ticket, visitor: Visitor) -> None:
        """Whether what a ticket was given for is still there. Raises AppRefusedError, RateLimited."""
        ...

    async def cors_of(self, request: AppRequest, remote_ip: str) -> str:
        """What a workspace's template says about pages of other origins. Raises RateLimited."""
        ...

    def stay(self, visitor: Visitor, ticket: Ticket) -> AbstractContextManager[trio.CancelScope]:
        """Counts a request for as long as it lasts; its scope is cancelled when the visitor may stay no longer."""
        ...
