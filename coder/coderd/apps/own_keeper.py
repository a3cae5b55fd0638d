"""The server's own answers to its door of applications: from the database, by the policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coder.coderd.apps.keeper import Admission, DoorSettings
from coder.coderd.apps.upstream import AppPool
from coder.coderd.services import app_access, app_tokens
from coder.coderd.services.app_access import AppScene, HiddenAtError, RefusedAtError
from coder.coderd.services.app_usage import AppUsage
from coder.coderd.services.app_visits import OpenVisits
from coder.coderd.services.authentication import Caller, authenticate
from coder.coderd.services.errors import Unauthenticated

if TYPE_CHECKING:
    import trio

    from coder.coderd.services.app_tickets import Ticket
    from coder.coderd.services.app_visitor import Visitor
    from coder.coderd.services.context import Context
    from coder.coderd.services.credentials import Credentials
    from coder.domain.app_addresses import AppRequest


class OwnKeeper:
    """See `keeper.Keeper`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.settings = DoorSettings.of(ctx.config, dashboard_url=ctx.access_url, own_url=ctx.access_url)
        self.stopping = ctx.stopping
        self.pool: AppPool = ctx.part(AppPool)
        self._usage: AppUsage = ctx.part(AppUsage)
        self._open: OpenVisits = ctx.part(OpenVisits)

    async def recognize(self, tokens: Sequence[str], request: AppRequest) -> Ticket | None:
        return await app_tokens.find_ticket_untrusted(self._ctx, tokens, request)

    async def admit(self, request: AppRequest, shown: Credentials, user_agent: str) -> Admission:
        caller = await self._caller(shown)
        subject = caller.subject if caller else None
        try:
            ticket, scene = await app_access.open_app(self._ctx, request, subject)
        except (RefusedAtError, HiddenAtError) as error:
            if caller is not None:
                status = 404 if error.reason == "not_found" else 502
                await self._log_visit(error.scene, caller, shown, user_agent, status)
            raise
        await self._log_visit(scene, caller, shown, user_agent, 200)
        token, expires_at = await app_tokens.issue_ticket(self._ctx, ticket)
        return Admission(ticket, token, expires_at)

    async def _caller(self, shown: Credentials) -> Caller | None:
        if not shown.token:
            return None
        try:
            return await authenticate(self._ctx, shown)
        except Unauthenticated:
            return None

    async def _log_visit(
        self, scene: AppScene, caller: Caller | None, shown: Credentials, user_agent: str, status: int
    ) -> None:
        user_id = caller.user.id if caller else None
        await self._usage.log_visit(scene, user_id, shown.remote_ip, user_agent, status)

    async def unseal(self, sealed: str) -> str:
        return await app_tokens.open_key_untrusted(self._ctx, sealed)

    async def look_again(self, ticket: Ticket, visitor: Visitor) -> None:
        await app_access.look_again(self._ctx, ticket)

    async def cors_of(self, request: AppRequest) -> str:
        return await app_access.cors_of(self._ctx, request)

    @contextmanager
    def stay(self, visitor: Visitor, ticket: Ticket) -> Iterator[trio.CancelScope]:
        with self._usage.counted(ticket), self._open.in_app(visitor, ticket) as scope:
            yield scope
