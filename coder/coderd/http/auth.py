"""Who asks, for blueprints: `@authenticated` views find the caller by `caller()` and `subject()`.

A view without the decorator is public. The CSRF check lives here because it depends on how the caller
authenticated: only requests that rely on a cookie can be forged by another site.
"""

from __future__ import annotations

import functools
import hmac
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast
from urllib.parse import parse_qs

from quart import Response, current_app, g, has_websocket_context, request, websocket

from coder.coderd.services import authentication
from coder.coderd.services.authentication import Caller, Credentials
from coder.coderd.services.errors import Invalid, Unauthenticated
from coder.domain.policy import Subject

if TYPE_CHECKING:
    from coder.coderd.services.context import Context

P = ParamSpec("P")
T = TypeVar("T")

CSRF_COOKIE = "csrf_token"
CSRF_HEADER = "X-CSRF-TOKEN"
_SAFE = {"GET", "HEAD", "OPTIONS", "TRACE"}


def context() -> Context:
    """The server's context."""
    return cast("Context", current_app.config["CODER_CONTEXT"])


def credentials() -> Credentials:
    """What the current request (or WebSocket) shows."""
    here = websocket if has_websocket_context() else request
    headers = {name.lower(): value for name, value in here.headers.items()}
    raw = here.query_string.decode("latin-1")
    query = parse_qs(raw, keep_blank_values=True) if raw else {}
    return Credentials.of(headers, query, remote_ip())


def remote_ip() -> str:
    """The client's address; a trusted proxy's header was applied by the listener."""
    here = websocket if has_websocket_context() else request
    return here.headers.get("Remote-Addr", "") or ""


def authenticated(view: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Lets only requests with a valid token through."""

    @functools.wraps(view)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        shown = credentials()
        try:
            g.caller = await authentication.authenticate(context(), shown)
        except Unauthenticated as error:
            error.headers = (*error.headers, ("WWW-Authenticate", _challenge(error)))
            raise
        if shown.from_cookie and not has_websocket_context():
            check_csrf()
        return await view(*args, **kwargs)

    return guarded


async def optional_caller() -> Caller | None:
    """The caller of a public view, if there is a valid one."""
    try:
        return await authentication.authenticate(context(), credentials())
    except Unauthenticated:
        return None


def caller() -> Caller:
    """The authenticated caller of this request."""
    return cast(Caller, g.caller)


def subject() -> Subject:
    return caller().subject


def check_csrf() -> None:
    """Raises Invalid when a cookie-authenticated change carries no matching token."""
    if request.method in _SAFE:
        return
    cookie = request.cookies.get(CSRF_COOKIE, "")
    sent = request.headers.get(CSRF_HEADER, "")
    if not cookie or not hmac.compare_digest(cookie.encode(), sent.encode()):
        raise Invalid(
            "Something is wrong with your CSRF token. Please refresh the page. If this error persists, try "
            "clearing your cookies."
        )


def _challenge(error: Unauthenticated) -> str:
    url = context().access_url
    description = "The access token has expired" if "expired at" in error.detail else "The access token is invalid"
    if "must be provided" in error.detail:
        description = "Authentication is required to access this resource"
    return (
        f'Bearer realm="coder", error="invalid_token", error_description="{description}", '
        f'resource_metadata="{url}/.well-known/oauth-protected-resource"'
    )


ViewResult = Response
