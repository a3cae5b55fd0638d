"""Authentication for blueprints: a view gets the caller by `caller()` and `subject()`.

`@route(…, scope=…)` (route.py) puts `authenticated` around every view that is not declared PUBLIC. The fast path
(fast_path.py) calls the same services without Quart: changes here must be repeated there. The CSRF check is here
because it depends on the kind of authentication: only requests that rely on a cookie can be forged by another site.
"""

from __future__ import annotations

import functools
import hmac
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from quart import current_app, g, has_websocket_context, request, websocket

from coder.api.base.refusals import Conflict, Forbidden, NotFound, Refusal, Unauthenticated
from coder.appproxy.http.connection_shares import authenticated_as
from coder.appproxy.http.rate_limits import BYPASS_HEADER, Counted, key_of, user_key
from coder.coderd.http.server.declarations import own_scope, route_of
from coder.coderd.http.server.query import read_arguments
from coder.coderd.services.access import authentication
from coder.coderd.services.access.authentication import Caller
from coder.coderd.services.access.authorization import explain_narrowing
from coder.coderd.services.access.session_revocation import CLOSE_CODE, SessionEndedError
from coder.domain.access.credentials import SESSION_COOKIE, Credentials
from coder.domain.access.origins import near_origin
from coder.domain.access.policy import Subject
from coder.domain.access.rate_budgets import API, Budget
from coder.domain.access.route_scopes import Unscoped

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

P = ParamSpec("P")
T = TypeVar("T")

CSRF_COOKIE = "csrf_token"
CSRF_HEADER = "X-CSRF-TOKEN"
_WITHOUT_CSRF = frozenset({"/api/v2/csp/reports"})
"""Paths that browsers post to by themselves."""
_SAFE = {"GET", "HEAD", "OPTIONS", "TRACE"}


def context() -> Context:
    """Return the server's context."""
    ctx: Context = current_app.config["CODER_CONTEXT"]
    return ctx


def credentials() -> Credentials:
    """Return the credentials of the current request (or WebSocket)."""
    current = websocket if has_websocket_context() else request
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in current.scope["headers"]}
    return Credentials.of(headers, read_arguments(current.query_string), remote_ip())


def remote_ip() -> str:
    """Return the client's address; the listener applied a trusted proxy's header."""
    current = websocket if has_websocket_context() else request
    return current.headers.get("Remote-Addr", "") or ""


def user_agent() -> str:
    """Return the client's User-Agent."""
    current = websocket if has_websocket_context() else request
    return current.headers.get("User-Agent", "") or ""


def known_as(account: str) -> None:
    """Set the account for the bytes of callers that authenticate without a user's key."""
    g.account = account
    authenticated_as(account)


def account() -> str:
    """Return the account that this request's bytes count for; empty until it is authenticated."""
    if "caller" in g:
        return str(g.caller.subject.user_id)
    named: str = g.get("account", "")
    return named


def authenticated(view: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T | None]]:
    """Let only requests with a valid token through."""

    @functools.wraps(view)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T | None:
        token = credentials()
        if token.from_cookie and not has_websocket_context():
            check_csrf()
        try:
            g.caller = await authentication.authenticate(context(), token)
        except Unauthenticated as error:
            await count_request(None)
            error.headers = (*error.headers, ("WWW-Authenticate", challenge(context())))
            raise
        authenticated_as(user_key(g.caller.subject.user_id))
        await count_request(g.caller)
        try:
            if has_websocket_context():
                return await while_signed_in(g.caller, functools.partial(view, *args, **kwargs))
            return await view(*args, **kwargs)
        except (Forbidden, NotFound) as refusal:
            explain_narrowing(g.caller.subject, refusal)
            raise

    guarded.counts_itself = True  # type: ignore[attr-defined]
    return guarded


async def recheck_caller() -> None:
    """Check the caller again after the wait for a body, which may take minutes: a request must not keep a right.

    Raises Unauthenticated when the key has ended meanwhile, Conflict when the caller's rights have changed: the view
    may have checked them before it read the body. Requests without a user's key have no such rights.
    """
    who = current_caller()
    if who is None:
        return
    key, user = await authentication.recognize(context(), who.credentials)
    if authentication.subject_of(context(), user, key) != who.subject:
        raise Conflict("Your permissions changed while the request was being received.", "Send the request again.")


async def while_signed_in(who: Caller, view: Callable[[], Awaitable[T]]) -> T | None:
    """Run the view of a WebSocket until it ends, or until the caller's key is revoked or its rights change."""
    sessions = context().services.sessions
    with sessions.opened(who, by_rights=True) as opened:
        await sessions.confirm(opened)
        try:
            return await opened.run(view)
        except SessionEndedError:
            await websocket.close(CLOSE_CODE, opened.reason)
            return None


async def count_request(who: Caller | str | None) -> None:
    """Count the request. Raises RateLimited; otherwise the middleware adds the headers with the remaining number, and
    settles the reservation.

    `who`: see `key_of`.
    """
    current = websocket if has_websocket_context() else request
    limits = context().services.rate_limits
    route = current.url_rule.rule if current.url_rule is not None else ""
    known: dict[tuple[str, str], tuple[Budget, ...]] = current_app.config["CODER_BUDGETS"]
    budgets = known[route, current.endpoint or ""] if route else _budgets_of_no_route(current.path)
    if any(limits.limit_of(budget) for budget in budgets):
        key = key_of(who, remote_ip(), current.headers.get(BYPASS_HEADER) == "true")
        counted = await limits.enter(key, current.path, budgets, route=route, address=remote_ip())
        scope = own_scope(current)
        earlier: Counted | None = scope.get("coder_counted")
        if earlier is not None:
            counted.lent += earlier.lent
        scope["coder_counted"] = counted


def let_in() -> None:
    """Mark the request's credentials as valid: a slow response must not count as a wrong guess."""
    counted: Counted | None = own_scope(request).get("coder_counted")
    if counted is not None:
        counted.settle(200)


def _budgets_of_no_route(path: str) -> tuple[Budget, ...]:
    return (API,) if path.startswith("/api/") else ()


async def check_public_change() -> None:
    """Check a change by a public view, such as a login, that carries a session's cookie: upstream checks every one."""
    view = current_app.view_functions.get(request.endpoint or "")
    if getattr(view, "counts_itself", False) or request.path in _WITHOUT_CSRF:
        return
    if request.path.startswith("/api/") and request.cookies.get(SESSION_COOKIE):
        check_csrf()


async def count_public_request() -> None:
    """Count a request of a view without authentication: by address, or by the user of a session if it has one."""
    current = websocket if has_websocket_context() else request
    view = current_app.view_functions.get(current.endpoint or "")
    if getattr(view, "counts_itself", False):
        return
    declaration = route_of(view)
    # For other requests the session is needed only to bypass the limit.
    requests_bypass = current.headers.get(BYPASS_HEADER) == "true" or (
        declaration is not None and (declaration.asks_itself or declaration.scope is Unscoped.OPTIONAL)
    )
    await count_request(await optional_caller() if requests_bypass else None)


async def optional_caller() -> Caller | None:
    """Return the caller of a public view, if authenticated."""
    try:
        return await authentication.authenticate(context(), credentials())
    except Unauthenticated:
        return None


def current_caller() -> Caller | None:
    """Return the caller of this request; None for agents and anonymous requests."""
    who: Caller | None = g.get("caller")
    return who


def caller() -> Caller:
    """Return the authenticated caller of this request."""
    who: Caller = g.caller
    return who


def subject() -> Subject:
    return caller().subject


class CsrfMismatch(Refusal):
    """CSRF refusal as plain text, like upstream's middleware."""

    kind = "csrf"


def check_csrf() -> None:
    """Raise CsrfMismatch when a cookie-authenticated change carries no matching token."""
    if request.method in _SAFE:
        return
    # Another site can make the browser send the cookie, but cannot read it.
    token = credentials().token.encode()
    for sent_token in (request.headers.get("Coder-Session-Token", ""), request.args.get("coder_session_token", "")):
        if hmac.compare_digest(sent_token.encode(), token):
            return
    check_origin()
    cookie = request.cookies.get(CSRF_COOKIE, "")
    sent = request.headers.get(CSRF_HEADER, "")
    if not cookie or not hmac.compare_digest(cookie.encode(), sent.encode()):
        raise CsrfMismatch(
            "Something is wrong with your CSRF token. Please refresh the page. If this error persists, try "
            "clearing your cookies."
        )


def check_origin() -> None:
    """Raise CsrfMismatch for a change that a page near the dashboard sent, according to the browser.

    Applications of workspaces may be served below the dashboard's own domain. To a browser that is the same site: its
    pages' requests carry the session's cookie, and a page there can set the other cookie freely. The same holds for a
    page that hides its origin, unless the browser reports it as ours. Pages of other sites can do neither; the token
    detects them, as in upstream.
    """
    named = {name: request.headers.get(name, "") for name in ("origin", "host", "sec-fetch-site")}
    if near_origin(named, context().access_url):
        raise CsrfMismatch(
            "The request comes from a page on a neighbouring domain of the dashboard, or from one that "
            "hides its origin (CSRF). Use the dashboard itself; behind a reverse proxy, set the access URL to the "
            "address users open."
        )


def challenge(ctx: Context) -> str:
    """Return the challenge for a refused caller."""
    # Upstream says "expired" for every fault; clients check the body.
    return (
        'Bearer realm="coder", error="invalid_token", error_description="The access token has expired", '
        f'resource_metadata="{ctx.access_url}/.well-known/oauth-protected-resource"'
    )
