"""Calls of workspace proxies about their visitors: signing keys, tickets for applications, statistics of use.

A proxy has no database: its decisions rest on the answers to these calls.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from uuid import UUID

from coder.api.base.refusals import BadGateway, Invalid, NotFound, Unauthenticated
from coder.api.proxies.proxies import (
    AppStat,
    CryptoKey,
    IssueTokenRequest,
    MayStayRequest,
    SignedAppRequest,
)
from coder.appproxy.apps.app_refusals import AppRefusedError, to_fields
from coder.appproxy.apps.app_tickets import KEY_FEATURE, TICKET_FEATURE, Ticket
from coder.coderd.services.access.authentication import authenticate
from coder.coderd.services.apps import app_tokens, app_usage
from coder.coderd.services.apps.app_access import open_app
from coder.coderd.services.apps.app_streams import OpenVisits
from coder.coderd.services.foundation.signing_keys import SigningKeys
from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import Subject
from coder.domain.apps.app_addresses import AppRequest
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_FEATURES = (TICKET_FEATURE, KEY_FEATURE)
_MAX_STATS = 5000
_MAX_AGE = timedelta(days=1)


async def crypto_keys(ctx: Context, feature: str) -> list[CryptoKey]:
    """Keys of one feature. Raises Invalid for those that are none of a proxy's business."""
    if feature not in _FEATURES:
        said = f'Query param "feature" must be one of [{", ".join(_FEATURES)}]' if feature else "It is required."
        raise Invalid("Invalid query parameters.", validations=[("feature", said)])
    keys = ctx.part(SigningKeys)
    return [
        CryptoKey(
            feature=feature,
            secret=found.key.secret.hex(),
            deletes_at=found.deletes_at or ZERO_TIME,
            sequence=int(found.key.id),
            starts_at=found.starts_at,
        )
        for found in await keys.describe(feature)
    ]


_REFUSED = {
    "sign_in": (Unauthenticated, "You are signed out or your session has expired. Please sign in again to continue."),
    "not_found": (NotFound, "Application not found."),
    "path_apps_off": (Invalid, "Path-based applications are disabled."),
    "port_by_path": (Invalid, "Ports cannot be opened under a path."),
    "reserved_port": (Invalid, "Ports below 9 are never proxied."),
    "not_web": (Invalid, "This application is not a page."),
    "workspace_offline": (Invalid, "The workspace is not running."),
    "workspace_dormant": (Invalid, "The workspace is dormant."),
    "agent_offline": (BadGateway, "The workspace's agent is not connected."),
}


async def issue_signed_token(ctx: Context, said: IssueTokenRequest) -> str:
    """A ticket for what a proxy's visitor asked for. Raises what explains to the proxy why not."""
    try:
        return await open_for_visitor(ctx, said)
    except AppRefusedError as error:
        kind, words = _REFUSED[error.reason]
        # The proxy shows the page we would have shown.
        raise kind(words, error.detail, to_fields(error)) from error


async def open_for_visitor(ctx: Context, said: IssueTokenRequest) -> str:
    """A ticket for what a proxy's visitor asked for. Raises AppRefusedError, Invalid."""
    asked = said.app_request
    subject: Subject | None = None
    request = _request_of(asked)
    if said.session_token:
        try:
            subject = (await authenticate(ctx, Credentials(said.session_token))).subject
        except Unauthenticated as error:
            raise AppRefusedError("sign_in") from error
    if asked.access_method == "terminal":
        return await _terminal_token(ctx, subject, request)
    ticket, _ = await open_app(ctx, request, subject)
    token, _ = await app_tokens.issue_ticket(ctx, ticket)
    return token


def _request_of(asked: SignedAppRequest) -> AppRequest:
    """Raises Invalid."""
    if asked.access_method not in {"path", "subdomain", "terminal"}:
        raise Invalid("Validation failed.", validations=[("app_request.access_method", "It is unknown.")])
    return AppRequest(
        cast("Any", asked.access_method),
        asked.base_path,
        asked.username_or_id,
        asked.workspace_name_or_id,
        asked.agent_name_or_id,
        asked.app_slug_or_port,
        asked.app_prefix,
    )


async def may_stay(ctx: Context, said: MayStayRequest) -> bool:
    """Whether who came in by a ticket alone would be let in now. Raises Invalid."""
    ticket = Ticket(_request_of(said.app_request), said.workspace_id, said.agent_id, "", said.user_id)
    return await ctx.part(OpenVisits).may_stay(ticket)


async def _terminal_token(ctx: Context, subject: Subject | None, request: AppRequest) -> str:
    from coder.coderd.services.apps.session_handover import issue_terminal_token

    if subject is None:
        raise AppRefusedError("sign_in")
    try:
        agent_id = UUID(request.agent_name_or_id)
    except ValueError:
        raise AppRefusedError("not_found") from None
    access = urlsplit(ctx.access_url)
    scheme = "wss" if access.scheme == "https" else "ws"
    url = f"{scheme}://{access.netloc}/api/v2/workspaceagents/{agent_id}/pty"
    return await issue_terminal_token(ctx, subject, url, agent_id)


async def report_stats(ctx: Context, stats: list[AppStat]) -> None:
    """Use of applications that passed through a proxy. Raises Invalid."""
    if len(stats) > _MAX_STATS:
        raise Invalid("Too many statistics.", f"At most {_MAX_STATS} at once.")
    now = ctx.clock.now()
    rows = []
    for stat in stats:
        if stat.session_started_at > stat.session_ended_at or stat.requests < 0:
            raise Invalid("Validation failed.", validations=[("stats", "A session ends after it began.")])
        if now - stat.session_ended_at > _MAX_AGE or stat.session_started_at - now > timedelta(minutes=5):
            continue  # a clock that is far off would spoil reports for good
        rows.append(app_usage.row_of(stat))
    if rows:
        await app_usage.write_sessions(ctx, rows)
