"""Calls of workspace proxies about their visitors: signing keys, tickets for applications, statistics of use.

A proxy has no database: its decisions rest on the answers to these calls.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
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
from coder.domain.access.credentials import Credentials
from coder.domain.access.policy import Subject
from coder.domain.apps.app_addresses import ACCESS_METHODS, AppRequest
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_FEATURES = (TICKET_FEATURE, KEY_FEATURE)
_MAX_STATS = 5000
_MAX_AGE = timedelta(days=1)


async def crypto_keys(ctx: Context, feature: str) -> list[CryptoKey]:
    """Return the keys of a feature. Raises Invalid for a feature that proxies do not use."""
    if feature not in _FEATURES:
        problem = f'Query param "feature" must be one of [{", ".join(_FEATURES)}]' if feature else "It is required."
        raise Invalid("Invalid query parameters.", validations=[("feature", problem)])
    keys = ctx.services.signing_keys
    return [
        CryptoKey(
            feature=feature,
            secret=item.key.secret.hex(),
            deletes_at=item.deletes_at or ZERO_TIME,
            sequence=int(item.key.id),
            starts_at=item.starts_at,
        )
        for item in await keys.describe(feature)
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


async def issue_signed_token(ctx: Context, body: IssueTokenRequest) -> str:
    """Return a ticket for the application that a visitor requested. Raises the refusal in the words for the proxy."""
    try:
        return await open_for_visitor(ctx, body)
    except AppRefusedError as error:
        kind, text = _REFUSED[error.reason]
        # The proxy shows the page that this server would have shown.
        raise kind(text, error.detail, to_fields(error)) from error


async def open_for_visitor(ctx: Context, body: IssueTokenRequest) -> str:
    """Return a ticket for the application that a visitor requested. Raises AppRefusedError, Invalid."""
    app_request = body.app_request
    subject: Subject | None = None
    request = _request_of(app_request)
    if body.session_token:
        try:
            subject = (await authenticate(ctx, Credentials(body.session_token))).subject
        except Unauthenticated as error:
            raise AppRefusedError("sign_in") from error
    if app_request.access_method == "terminal":
        return await _terminal_token(ctx, subject, request)
    ticket, _ = await open_app(ctx, request, subject)
    token, _ = await app_tokens.issue_ticket(ctx, ticket)
    return token


def _request_of(app_request: SignedAppRequest) -> AppRequest:
    """Return the request for an application. Raises Invalid for an unknown method of access."""
    if (method := app_request.access_method) not in ACCESS_METHODS:
        raise Invalid("Validation failed.", validations=[("app_request.access_method", "It is unknown.")])
    return AppRequest(
        method,
        app_request.base_path,
        app_request.username_or_id,
        app_request.workspace_name_or_id,
        app_request.agent_name_or_id,
        app_request.app_slug_or_port,
        app_request.app_prefix,
    )


async def may_stay(ctx: Context, body: MayStayRequest) -> bool:
    """Return whether a visitor with only a ticket would still be admitted. Raises Invalid."""
    ticket = Ticket(
        _request_of(body.app_request), body.workspace_id, body.agent_id, "", body.user_id, key_id=body.key_id
    )
    return await ctx.services.edge.open_streams.may_stay(ticket)


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
    """Store usage of applications that passed through a proxy. Raises Invalid."""
    if len(stats) > _MAX_STATS:
        raise Invalid("Too many statistics.", f"At most {_MAX_STATS} in one request.")
    now = ctx.clock.now()
    rows = []
    for stat in stats:
        if stat.session_started_at > stat.session_ended_at or stat.requests < 0:
            message = "A session must not end before it starts, and its number of requests must not be negative."
            raise Invalid("Validation failed.", validations=[("stats", message)])
        if now - stat.session_ended_at > _MAX_AGE or stat.session_started_at - now > timedelta(minutes=5):
            continue  # a wrong clock would distort reports permanently
        rows.append(app_usage.row_of(stat))
    if rows:
        await app_usage.write_sessions(ctx, rows)
