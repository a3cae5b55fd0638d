"""Authorizer of the server's own application proxy: answers from the database, by the policy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import trio

from coder.api.base.refusals import Unauthenticated
from coder.appproxy.apps.authorizer import AppAdmission, AppProxySettings, KnownVisitors, count_admission
from coder.appproxy.apps.upstream import keep_tidy
from coder.coderd.services.access.authentication import Caller, authenticate
from coder.coderd.services.apps import app_access, app_tokens
from coder.coderd.services.apps.app_access import AppContext, HiddenRefusalError, VisibleRefusalError
from coder.domain.access.policy import NIL

if TYPE_CHECKING:
    from uuid import UUID

    from coder.appproxy.apps.app_tickets import Ticket
    from coder.appproxy.apps.app_visitor import Visitor
    from coder.coderd.services.foundation.context import Context
    from coder.domain.access.credentials import Credentials
    from coder.domain.apps.app_addresses import AppRequest


MAX_CONCURRENT = 4
"""Concurrent database requests of one user: each takes a millisecond or two, and other users need connections, too."""


class LocalAppAuthorizer:
    """The server's `authorizer.AppAuthorizer`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.settings = AppProxySettings.of(ctx.config, dashboard_url=ctx.access_url, own_url=ctx.access_url)
        self.stopping = ctx.stopping
        self.pool = ctx.services.edge.app_pool
        self._usage = ctx.services.edge.app_usage
        self._open = ctx.services.edge.open_streams
        self._limits = ctx.services.rate_limits
        self._known = KnownVisitors(MAX_CONCURRENT)

    async def read_ticket(self, tokens: Sequence[str], request: AppRequest) -> Ticket | None:
        return await app_tokens.find_ticket_untrusted(self._ctx, tokens, request)

    async def admit(self, request: AppRequest, shown: Credentials, user_agent: str) -> AppAdmission:
        caller = await self._caller(shown)
        async with self._limit_admissions(caller.user.id if caller else NIL, shown.remote_ip, "admit"):
            return await self._admit(request, caller, shown, user_agent)

    async def _admit(
        self, request: AppRequest, caller: Caller | None, shown: Credentials, user_agent: str
    ) -> AppAdmission:
        subject = caller.subject if caller else None
        try:
            ticket, app_context = await app_access.open_app(self._ctx, request, subject)
        except (VisibleRefusalError, HiddenRefusalError) as error:
            if caller is not None:
                status = 404 if error.reason == "not_found" else 502
                await self._log_request(error.app_context, caller, shown, user_agent, status)
            raise
        await self._log_request(app_context, caller, shown, user_agent, 200)
        token, expires_at = await app_tokens.issue_ticket(self._ctx, ticket)
        return AppAdmission(ticket, token, expires_at)

    @asynccontextmanager
    async def _limit_admissions(self, user_id: UUID, remote_ip: str, question: str) -> AsyncIterator[None]:
        if user_id == NIL:
            count_admission(self._limits, remote_ip, question)
            yield
            return
        async with self._known.turn(str(user_id)):
            yield

    async def _caller(self, shown: Credentials) -> Caller | None:
        if not shown.token:
            return None
        try:
            return await authenticate(self._ctx, shown)
        except Unauthenticated:
            return None

    async def _log_request(
        self, app_context: AppContext, caller: Caller | None, shown: Credentials, user_agent: str, status: int
    ) -> None:
        user_id = caller.user.id if caller else None
        await self._usage.log_request(app_context, user_id, shown.remote_ip, user_agent, status)

    async def unseal(self, sealed: str) -> str:
        return await app_tokens.open_key_untrusted(self._ctx, sealed)

    async def recheck_access(self, ticket: Ticket, visitor: Visitor) -> None:
        async with self._limit_admissions(ticket.user_id, visitor.credentials.remote_ip, "look_again"):
            await app_access.recheck_ticket(self._ctx, ticket)

    async def still_admits(self, ticket: Ticket, visitor: Visitor) -> bool:
        async with self._known.turn(str(ticket.user_id)):
            return await self._open.may_open(visitor, ticket)

    async def cors_of(self, request: AppRequest, remote_ip: str) -> str:
        count_admission(self._limits, remote_ip, "cors_of")
        return await app_access.cors_of(self._ctx, request)

    @contextmanager
    def stay(self, visitor: Visitor, ticket: Ticket) -> Iterator[trio.CancelScope]:
        with self._usage.counted(ticket), self._open.track_app(visitor, ticket) as scope:
            yield scope


async def run(ctx: Context, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Run as a part of the server: close idle connections to applications."""
    task_status.started()
    await keep_tidy(ctx.services.edge.app_pool, ctx.stopping)
