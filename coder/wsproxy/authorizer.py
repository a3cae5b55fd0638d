"""Authorization of a workspace proxy's app requests: the server decides admission, and this module verifies its
tickets.

Open streams are checked again every minute, as the server checks its own, by requesting another ticket. For a visitor
with only a ticket, the proxy sends the ticket's content; an upstream server does not answer that, so the stream stays
open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import chain
from typing import TypeGuard
from uuid import UUID

import trio

from coder.api.proxies.proxies import IssueTokenRequest, MayStayRequest, SignedAppRequest
from coder.appproxy.apps import app_tickets
from coder.appproxy.apps.app_refusals import AppRefusedError, Reason, from_fields
from coder.appproxy.apps.app_sessions import REPORT_EVERY, AppSessions
from coder.appproxy.apps.app_tickets import Ticket
from coder.appproxy.apps.app_visitor import Visitor
from coder.appproxy.apps.authorizer import AppAdmission, KnownVisitors, count_admission
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import NIL
from coder.domain.apps.app_addresses import AppRequest
from coder.domain.foundation.signed_tokens import TokenRefused
from coder.net.errors import HttpError, NetError
from coder.wsproxy.primary import is_token_refused
from coder.wsproxy.world import ProxyWorld

CHECK_INTERVAL = 60.0
"""Seconds between checks of open streams: the lifetime of a ticket."""
MAX_KNOWN_TOKENS = 4096
"""Maximum number of known tokens, 16 bytes each."""
MAX_CONCURRENT_CHECKS = 8
"""Concurrent requests of a check: a hundred visitors take about a dozen round trips to a distant server."""
AT_ONCE = 32
"""Concurrent requests of one visitor to a distant server: a hundred per second with a third of a second latency."""
_OUTSIDE = frozenset({"sign_in", "not_found", "path_apps_off", "port_by_path"})
"""Rejections that concern the visitor; others concern the application, whose streams end without a check."""

_PAGES: dict[int, Reason] = {400: "workspace_offline", 404: "not_found", 502: "agent_offline"}
"""Meaning of statuses with an HTML page: upstream answers every proxy with the page for its visitor."""

_log = get_logger("apps")


class RemoteAppAuthorizer:
    """Implementation of `AppAuthorizer` (`appproxy/apps/authorizer.py`)."""

    def __init__(self, world: ProxyWorld) -> None:
        self._world = world
        self.settings = world.settings
        self.stopping = world.stopping
        self.pool = world.pool
        self._sessions = AppSessions(world.clock.now)
        self._open: dict[trio.CancelScope, tuple[float, Visitor, Ticket]] = {}
        self._known: dict[bytes, None] = {}
        "Digests of tokens that the server accepted, the oldest first."
        self._visitors = KnownVisitors(AT_ONCE)

    # ---- admission

    async def read_ticket(self, tokens: Sequence[str], request: AppRequest) -> Ticket | None:
        return await app_tickets.find_ticket_untrusted(self._world.keys, self._world.clock.now(), tokens, request)

    async def admit(self, request: AppRequest, credentials: Credentials, user_agent: str = "") -> AppAdmission:
        async with self._limited(credentials, "admit"):
            return await self._ask(request, credentials)

    @asynccontextmanager
    async def _limited(self, credentials: Credentials, question: str) -> AsyncIterator[None]:
        """Limit requests by address, unless the token is known: invented tokens must not count as separate users."""
        digest = _digest(credentials.token)
        if digest not in self._known:
            count_admission(self._world.limits, credentials.remote_ip, question)
            yield
            return
        async with self._visitors.turn(digest.hex()):
            yield

    def _remember_token(self, token: str, is_known: bool) -> None:
        self._known.pop(_digest(token), None)
        if is_known:
            self._known[_digest(token)] = None
            if len(self._known) > MAX_KNOWN_TOKENS:
                del self._known[next(iter(self._known))]

    async def _ask(self, request: AppRequest, credentials: Credentials) -> AppAdmission:
        body = IssueTokenRequest(
            app_request=SignedAppRequest(**asdict(request)),
            session_token=credentials.token,
            path_app_base_url=self.settings.own_url,
            app_hostname=self.settings.wildcard,
        )
        try:
            token = await self._world.primary.issue_ticket(body)
        except CoderError as error:
            refusal = self._refusal(error)
            if refusal.reason == "sign_in":
                self._remember_token(credentials.token, False)
            raise refusal from error
        try:
            ticket, ends = await app_tickets.read_ticket_untrusted(self._world.keys, self._world.clock.now(), token)
        except TokenRefused as error:
            _log.warn("a ticket of the server could not be verified", error=error)
            raise AppRefusedError("primary_away", "The server's keys are unavailable, or the clocks differ.") from error
        if ticket.user_id != NIL:
            self._remember_token(credentials.token, True)
        return AppAdmission(ticket, token, datetime.fromtimestamp(ends, UTC))

    def _refusal(self, error: CoderError) -> AppRefusedError:
        if is_token_refused(error):
            self._world.registration.check_now()
            return AppRefusedError("primary_away", "The server no longer accepts this proxy.")
        if not isinstance(error, HttpError):
            _log.warn("the server could not be asked about a visitor", reason=str(error))
            return AppRefusedError("primary_away", "The server cannot be reached.")
        fields = {str(item.get("field")): str(item.get("detail")) for item in error.validations}
        refusal = from_fields(fields)
        if refusal is not None:
            return refusal
        if error.status in {303, 307, 401}:  # the session expired; some servers redirect to their login page
            return AppRefusedError("sign_in")
        if error.is_enveloped and error.status in {403, 404}:
            return AppRefusedError("not_found")
        if _is_page(error) and error.status in _PAGES:
            return AppRefusedError(_PAGES[error.status])
        _log.warn("the server gave no decision on a visitor", status=error.status, reason=str(error))
        return AppRefusedError("primary_away", f"The server answered with status {error.status}.")

    async def unseal(self, sealed: str) -> str:
        return await app_tickets.open_key_untrusted(self._world.keys, self._world.clock.now(), sealed)

    async def recheck_access(self, ticket: Ticket, visitor: Visitor) -> None:
        if visitor.credentials.token or ticket.user_id == NIL:
            async with self._limited(visitor.credentials, "look_again"):
                await self._ask(ticket.request, visitor.credentials)

    async def still_admits(self, ticket: Ticket, visitor: Visitor) -> bool:
        """Return whether a visitor would get access now; also while the server is unreachable."""
        try:
            async with self._visitors.turn(str(ticket.user_id)):
                return await self._may_stay(visitor, ticket)
        except NetError as error:
            _log.debug("the server is unreachable; a ticket admits without a check", reason=str(error))
            return True

    async def cors_of(self, request: AppRequest, remote_ip: str) -> str:
        count_admission(self._world.limits, remote_ip, "cors_of")
        # Browsers send preflight requests without cookies, so the server answers for public applications only.
        try:
            return (await self._ask(request, Credentials())).ticket.cors_behavior
        except AppRefusedError:
            return "simple"

    # ---- open streams

    @property
    def sessions(self) -> int:
        """Number of app sessions, one per user, app and access method."""
        return len(self._sessions)

    @property
    def open_streams(self) -> int:
        """Number of open app requests and terminals."""
        return len(self._open)

    @contextmanager
    def stay(self, visitor: Visitor, ticket: Ticket) -> Iterator[trio.CancelScope]:
        with self._sessions.counted(ticket), self.watched(visitor, ticket) as scope:
            yield scope

    @contextmanager
    def watched(self, visitor: Visitor, ticket: Ticket) -> Iterator[trio.CancelScope]:
        """Yield a scope that is cancelled when the visitor loses permission."""
        with trio.CancelScope() as scope:
            self._open[scope] = (trio.current_time(), visitor, ticket)
            try:
                yield scope
            finally:
                del self._open[scope]

    async def keep_checking(self) -> None:
        while True:
            await trio.sleep(CHECK_INTERVAL)
            await self.judge(CHECK_INTERVAL)

    async def judge(self, older_than: float = 0.0) -> None:
        """Check streams that are open for at least `older_than` seconds, unless the server is unreachable."""
        since = trio.current_time() - older_than
        groups: dict[tuple[Visitor, AppRequest, UUID], list[trio.CancelScope]] = {}
        tickets = dict[tuple[Visitor, AppRequest, UUID], Ticket]()
        for scope, (opened_at, visitor, ticket) in self._open.items():
            if opened_at <= since:
                key = (visitor, ticket.request, ticket.workspace_id)
                groups.setdefault(key, []).append(scope)
                tickets[key] = ticket
        remaining, pending = iter(groups.items()), list[list[trio.CancelScope]]()
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                for key, scopes in remaining:
                    pending.append(scopes)
                    try:
                        may_stay = await self._may_stay(key[0], tickets[key])
                    except NetError as error:
                        _log.debug("the server is unreachable; open streams are checked later", reason=str(error))
                        self._move_last(pending)
                        nursery.cancel_scope.cancel()
                        return
                    pending.remove(scopes)
                    for scope in scopes if not may_stay else ():
                        scope.cancel()

            for _ in range(min(MAX_CONCURRENT_CHECKS, len(groups))):
                nursery.start_soon(ask)

    def _move_last(self, pending: list[list[trio.CancelScope]]) -> None:
        """Move streams to the end of the next check, so that failing requests do not block the other checks."""
        for scope in chain.from_iterable(pending):
            if scope in self._open:
                self._open[scope] = self._open.pop(scope)

    async def _may_stay(self, visitor: Visitor, ticket: Ticket) -> bool:
        """Return whether the visitor still has permission. Raise the error if the server is unreachable."""
        if not visitor.credentials.token and visitor.user_id != NIL:
            return await self._may_stay_by_ticket(ticket)
        try:
            current = (await self._ask(ticket.request, visitor.credentials)).ticket
        except AppRefusedError as refused:
            if _is_away(refused.__cause__):
                raise refused.__cause__ from None
            return refused.reason not in _OUTSIDE
        # Names can be reused: permission for the current workspace of this name is not permission for the former one.
        return current.workspace_id == ticket.workspace_id

    async def _may_stay_by_ticket(self, ticket: Ticket) -> bool:
        app_request = SignedAppRequest(**asdict(ticket.request))
        body = MayStayRequest(app_request, ticket.user_id, ticket.workspace_id, ticket.agent_id, ticket.key_id)
        try:
            return await self._world.primary.may_stay(body)
        except CoderError as error:
            if _is_away(error):
                raise
            if is_token_refused(error):
                self._world.registration.check_now()
            # Keep the visitor: the server is upstream's, or failed.
            _log.debug("the server gave no decision on an open stream", reason=str(error))
            return True

    # ---- reports

    async def keep_reporting(self) -> None:
        """Report usage to the server periodically and once at the end."""
        while not self.stopping.is_set():
            with trio.move_on_after(REPORT_EVERY):
                await self.stopping.wait()
            await self.report()

    async def report(self) -> None:
        try:
            await self._sessions.report(self._world.primary.report_stats)
        except CoderError as error:
            # The sessions are kept and reported next time.
            _log.warn("app usage could not be reported", reason=error.message)


def _digest(token: str) -> bytes:
    return blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _is_away(error: BaseException | None) -> TypeGuard[NetError]:
    """Return whether the server did not answer; an invalid answer affects only its request."""
    return isinstance(error, NetError) and error.code != "protocol"


def _is_page(error: HttpError) -> bool:
    """Return whether the body is HTML; the message of an answer in another format than the API's has its first
    bytes."""
    return not error.is_enveloped and "<!doctype html" in error.message.lower()
