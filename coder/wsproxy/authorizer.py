"""A workspace proxy's answers to its `AppProxy`: the server decides who comes in, its tickets are checked here.

What is open is judged again every minute, as the server judges its own, by asking it for another ticket. Whoever came
by a ticket alone has shown nothing to ask with, and stays.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import blake2b

import trio

from coder.api.proxies.proxies import IssueTokenRequest, SignedAppRequest
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.coderd.apps.authorizer import AppAdmission, KnownVisitors, count_admission
from coder.coderd.services.access.credentials import Credentials
from coder.coderd.services.apps import app_tickets
from coder.coderd.services.apps.app_refusals import AppRefusedError, Reason, from_fields
from coder.coderd.services.apps.app_sessions import REPORT_EVERY, AppSessions
from coder.coderd.services.apps.app_tickets import Ticket
from coder.coderd.services.apps.app_visitor import Visitor
from coder.coderd.services.foundation.signed_tokens import TokenRefused
from coder.domain.access.policy import NIL
from coder.domain.apps.app_addresses import AppRequest
from coder.net.errors import HttpError
from coder.wsproxy.primary import is_token_refused
from coder.wsproxy.world import ProxyWorld

JUDGE_EVERY = 60.0
"""Seconds between looks at what is open: the life of a ticket."""
MOST_KNOWN = 4096
"""Tokens, of sixteen bytes each."""
AT_ONCE = 32
"""Questions of one of them to the server, which may be far away: a hundred a second over a third of a second."""
_OUTSIDE = frozenset({"sign_in", "not_found", "path_apps_off", "port_by_path"})
"""Refusals that concern the visitor; others are the application's, whose streams end by themselves."""

_PAGES: dict[int, Reason] = {400: "workspace_offline", 404: "not_found", 502: "agent_offline"}
"""What a server means that answers every proxy with the page for its visitor (the original)."""

_log = get_logger("apps")


class RemoteAppAuthorizer:
    """See `coderd.apps.authorizer.AppAuthorizer`."""

    def __init__(self, world: ProxyWorld) -> None:
        self._world = world
        self.settings = world.settings
        self.stopping = world.stopping
        self.pool = world.pool
        self._sessions = AppSessions(world.clock.now)
        self._open: dict[trio.CancelScope, tuple[float, Visitor, AppRequest]] = {}
        self._known: dict[bytes, None] = {}
        "Digests of tokens that showed somebody to the server, the oldest first."
        self._visitors = KnownVisitors(AT_ONCE)

    # ---- who comes in

    async def read_ticket(self, tokens: Sequence[str], request: AppRequest) -> Ticket | None:
        return await app_tickets.find_ticket_untrusted(self._world.keys, self._world.clock.now(), tokens, request)

    async def admit(self, request: AppRequest, shown: Credentials, user_agent: str = "") -> AppAdmission:
        async with self._turn(shown, "admit"):
            return await self._ask(request, shown)

    @asynccontextmanager
    async def _turn(self, shown: Credentials, question: str) -> AsyncIterator[None]:
        """By the address, unless the token is known: whoever makes tokens up shall not be taken for so many people."""
        digest = _digest(shown.token)
        if digest not in self._known:
            count_admission(self._world.limits, shown.remote_ip, question)
            yield
            return
        async with self._visitors.turn(digest.hex()):
            yield

    def _note(self, token: str, is_known: bool) -> None:
        self._known.pop(_digest(token), None)
        if is_known:
            self._known[_digest(token)] = None
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]

    async def _ask(self, request: AppRequest, shown: Credentials) -> AppAdmission:
        said = IssueTokenRequest(
            app_request=SignedAppRequest(**asdict(request)),
            session_token=shown.token,
            path_app_base_url=self.settings.own_url,
            app_hostname=self.settings.wildcard,
        )
        try:
            token = await self._world.primary.issue_ticket(said)
        except CoderError as error:
            refusal = self._refusal(error)
            if refusal.reason == "sign_in":
                self._note(shown.token, False)
            raise refusal from error
        try:
            ticket, ends = await app_tickets.read_ticket_untrusted(self._world.keys, self._world.clock.now(), token)
        except TokenRefused as error:
            _log.warn("a ticket of the server cannot be checked", error=error)
            raise AppRefusedError("primary_away", "Its keys could not be had, or the clocks disagree.") from error
        if ticket.user_id != NIL:
            self._note(shown.token, True)
        return AppAdmission(ticket, token, datetime.fromtimestamp(ends, UTC))

    def _refusal(self, error: CoderError) -> AppRefusedError:
        if is_token_refused(error):
            self._world.registration.doubt()
            return AppRefusedError("primary_away", "The server does not accept this proxy any more.")
        if not isinstance(error, HttpError):
            _log.warn("the server could not be asked who may come in", reason=str(error))
            return AppRefusedError("primary_away", "The server cannot be reached.")
        fields = {str(item.get("field")): str(item.get("detail")) for item in error.validations}
        told = from_fields(fields)
        if told is not None:
            return told
        if error.status in {303, 307, 401}:  # a session that ended; some servers show the way to their sign-in page
            return AppRefusedError("sign_in")
        if error.is_enveloped and error.status in {403, 404}:
            return AppRefusedError("not_found")
        if _is_page(error) and error.status in _PAGES:
            return AppRefusedError(_PAGES[error.status])
        _log.warn("the server did not say who may come in", status=error.status, reason=str(error))
        return AppRefusedError("primary_away", f"The server answered with status {error.status}.")

    async def unseal(self, sealed: str) -> str:
        return await app_tickets.open_key_untrusted(self._world.keys, self._world.clock.now(), sealed)

    async def look_again(self, ticket: Ticket, visitor: Visitor) -> None:
        if visitor.shown.token or ticket.user_id == NIL:
            async with self._turn(visitor.shown, "look_again"):
                await self._ask(ticket.request, visitor.shown)

    async def cors_of(self, request: AppRequest, remote_ip: str) -> str:
        count_admission(self._world.limits, remote_ip, "cors_of")
        # A browser asks this without cookies: the server tells of public applications only.
        try:
            return (await self._ask(request, Credentials())).ticket.cors_behavior
        except AppRefusedError:
            return "simple"

    # ---- who stays

    @contextmanager
    def stay(self, visitor: Visitor, ticket: Ticket) -> Iterator[trio.CancelScope]:
        with self._sessions.counted(ticket), self.watched(visitor, ticket.request) as scope:
            yield scope

    @contextmanager
    def watched(self, visitor: Visitor, request: AppRequest) -> Iterator[trio.CancelScope]:
        """A scope that is cancelled when the visitor may stay no longer."""
        with trio.CancelScope() as scope:
            self._open[scope] = (trio.current_time(), visitor, request)
            try:
                yield scope
            finally:
                del self._open[scope]

    async def keep_judging(self) -> None:
        while True:
            await trio.sleep(JUDGE_EVERY)
            await self.judge(JUDGE_EVERY)

    async def judge(self, older_than: float = 0.0) -> None:
        """Asks the server about everything that has been open for so many seconds."""
        since, judged = trio.current_time() - older_than, dict[tuple[Visitor, AppRequest], bool]()
        for scope, (began, visitor, request) in list(self._open.items()):
            if began > since:
                continue
            what = (visitor, request)
            if what not in judged:
                judged[what] = await self._may_stay(visitor, request)
            if not judged[what]:
                scope.cancel()

    async def _may_stay(self, visitor: Visitor, request: AppRequest) -> bool:
        if not visitor.shown.token and visitor.user_id != NIL:
            return True
        try:
            await self._ask(request, visitor.shown)
        except AppRefusedError as refused:
            return refused.reason not in _OUTSIDE
        return True

    # ---- what is told

    async def keep_reporting(self) -> None:
        """Tells the server of use, now and then and once more at the end."""
        while not self.stopping.is_set():
            with trio.move_on_after(REPORT_EVERY):
                await self.stopping.wait()
            await self.report()

    async def report(self) -> None:
        try:
            await self._sessions.report(self._world.primary.report_stats)
        except CoderError as error:
            # The sessions stay and are reported next time.
            _log.warn("use of applications could not be reported", reason=error.message)


def _digest(token: str) -> bytes:
    return blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _is_page(error: HttpError) -> bool:
    """Is the body HTML? Its first bytes are in the message of an answer that is not the API's own."""
    return not error.is_enveloped and "<!doctype html" in error.message.lower()
