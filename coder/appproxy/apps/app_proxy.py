"""The proxy of applications: matching requests, admission of visitors, and refusals.

The HTTP server calls `takes` for every request head and hands matching ones to `serve`, which returns the connection
afterwards: under a path, applications and dashboard share connections. `forwarding.py` forwards bytes,
`appproxy/apps/app_pages.py` has the pages, the `AppAuthorizer` decides.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from email.utils import format_datetime
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import h11
import trio

from coder.api.base.refusals import BadGateway, RateLimited
from coder.appproxy.apps import app_pages as pages
from coder.appproxy.apps.app_refusals import AppRefusedError, app_port
from coder.appproxy.apps.app_tickets import Ticket
from coder.appproxy.apps.app_visitor import Visitor
from coder.appproxy.apps.forwarding import BadUpstreamAnswerError, UpstreamRequest, forward
from coder.appproxy.apps.proxy_request import ProxyRequest
from coder.appproxy.apps.upstream import Target
from coder.appproxy.http.connection_shares import authenticated_as
from coder.appproxy.http.rate_limits import user_key
from coder.base.log import STRANGERS_LINES, get_logger
from coder.domain.access.credentials import SIGNED_OUT, Credentials
from coder.domain.access.origins import HIDDEN, hides_foreign_origin
from coder.domain.access.policy import NIL
from coder.domain.access.session_cookies import HOST_PREFIX
from coder.domain.apps import app_headers
from coder.domain.apps.app_addresses import AppRequest, HostPattern, label_user, parse_app_label, parse_app_path
from coder.domain.foundation.signed_tokens import TokenRefused
from coder.domain.foundation.web_addresses import canonical_host, host_of_origin, split_untrusted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coder.appproxy.apps.authorizer import AppAuthorizer
    from coder.domain.apps.app_headers import Headers

_log = get_logger("apps", per_minute=STRANGERS_LINES)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Admitted visitor and its ticket."""

    ticket: Ticket
    shown: Credentials
    """Credentials of the caller; its token is not passed to the application."""
    cookies: Headers = ()


class AppProxy:
    """Serves requests for applications on raw connections."""

    def __init__(self, authorizer: AppAuthorizer) -> None:
        self._authorizer = authorizer
        self._settings = authorizer.settings
        self._dashboard = authorizer.settings.dashboard_url
        access = urlsplit(authorizer.settings.own_url)
        self._scheme = access.scheme
        self._own_host = canonical_host(access.netloc, access.scheme)
        self._dashboard_host = host_of_origin(self._dashboard)
        wildcard = authorizer.settings.wildcard
        self._hosts = HostPattern(wildcard) if wildcard else None
        self.on_served: Callable[[ProxyRequest, bool], None] = lambda _proxied, _by_host: None
        """Called for each answered request, with whether a host named its application."""

    # ---- matching

    def takes(self, head: h11.Request) -> bool:
        """Return whether this request is an application's. Cheap: it is called for every request of the server whose
        address has not too many parameters."""
        if self._hosts is not None and self._label(head) is not None:
            return True
        if b"/apps/" not in head.target or not head.target.startswith((b"/@", b"/%40")):
            return False
        return parse_app_path(head.target.decode("latin-1").partition("?")[0]) is not None

    def _label(self, head: h11.Request) -> str | None:
        """Return the label at the wildcard's star in the request's host, if it can be an application's."""
        host = next((value.decode("latin-1") for name, value in head.headers if name == b"host"), "")
        if self._hosts is None or not host or canonical_host(host, self._scheme) == self._own_host:
            return None
        label = self._hosts.label_of(host)
        # A host without the separator may be the dashboard under another name.
        return label if label and "--" in label else None

    # ---- serving

    async def serve(
        self,
        head: h11.Request,
        stream: trio.abc.Stream,
        trailing: bytes,
        *,
        remote_ip: str,
        secure: bool,
        ours: Sequence[tuple[str, str]],
    ) -> bytes | None:
        """Serve one request. Returns the following bytes of the connection, or None after closing it."""
        proxied = ProxyRequest(
            head, stream, trailing, remote_ip=remote_ip, scheme="https" if secure else self._scheme, ours=ours
        )
        label, leftover = self._label(head), None
        try:
            await self._serve(proxied, label)
            leftover = proxied.leftover()
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError) as error:
            _log.debug("an application's connection ended", path=proxied.path, error=error)
        except Exception as error:
            _log.error("an application's request failed", path=proxied.path, error=error)
            await self._apologize(proxied)
        finally:
            if proxied.answered:  # a client that disconnected before has no status
                self.on_served(proxied, label is not None)
            if leftover is None:
                with trio.CancelScope(shield=True):
                    await _close(stream)
        return leftover

    async def _apologize(self, proxied: ProxyRequest) -> None:
        if proxied.answered:
            return
        try:
            await proxied.show(pages.internal(self._dashboard))
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError):
            pass  # the visitor disconnected, or half of another response is sent already

    async def _serve(self, proxied: ProxyRequest, label: str | None) -> None:
        try:
            await self._serve_application(proxied, label)
        except RateLimited as error:
            headers = [(name.lower().encode(), value.encode()) for name, value in error.headers]
            await proxied.show(pages.too_many(error.message, self._dashboard), headers)

    async def _serve_application(self, proxied: ProxyRequest, label: str | None) -> None:
        if label is None:
            path = parse_app_path(proxied.path)
            if path is None:  # `takes` matched it before
                raise LookupError(proxied.path)
            request, rest = path
            if self._settings.is_away and await self._takes_key(proxied, app_headers.PATH_SESSION_COOKIE):
                return
        else:
            named = parse_app_label(label)
            if named is None:
                await proxied.show(pages.bad_host(self._dashboard))
                return
            request, rest = named, proxied.path
            if await self._takes_key(proxied, session_cookie(proxied.host)):
                return
            if await self._answers_preflight(proxied, request):
                return
        try:
            entry = await self._enter(proxied, request)
        except AppRefusedError as error:
            await self._refuse(proxied, request, error)
            return
        await self._proxy(proxied, entry, rest)

    async def _proxy(self, proxied: ProxyRequest, entry: _Entry, rest: str) -> None:
        ticket, request = entry.ticket, entry.ticket.request
        if self._is_forged(proxied, ticket):
            await proxied.show(pages.foreign_origin(self._dashboard))
            return
        app = split_untrusted(ticket.app_url)
        if not rest:
            await proxied.redirect(307, f"{proxied.path}/{proxied.full_query}", entry.cookies)
            return
        if rest == "/" and not proxied.query and app.query:
            await proxied.redirect(307, f"{proxied.path}?{app.query}", entry.cookies)
            return
        app_query = app_headers.stripped_query(proxied.query, entry.shown.token)
        has_query = app_query or (proxied.has_query and not proxied.query)  # `/q?` is not `/q`
        upstream_request = UpstreamRequest(
            place=Target(ticket.agent_id, app_port(ticket.app_url), app.scheme == "https"),
            target=app.path.rstrip("/") + rest + (f"?{app_query}" if has_query else ""),
            headers=app_headers.to_app(
                proxied.headers,
                remote_ip=proxied.remote_ip,
                scheme=proxied.scheme,
                dashboard_origin=request.access_method == "path",
                credential=entry.shown.token,
            ),
            base_path=request.base_path,
            cors=self._cors(proxied, ticket),
            extra=entry.cookies,
        )
        visitor = Visitor(entry.shown, ticket.user_id, ticket.key_id)
        if ticket.user_id != NIL:
            authenticated_as(user_key(ticket.user_id))
        with self._authorizer.stay(visitor, ticket) as scope:
            try:
                await forward(self._authorizer.pool, proxied, upstream_request, self._authorizer.stopping)
            except BadGateway:
                await proxied.show(await self._explain(ticket, visitor, upstream_request.place.port), entry.cookies)
            except BadUpstreamAnswerError:
                await proxied.show(pages.broken_answer(self._dashboard), entry.cookies)
        if scope.cancelled_caught:
            proxied.gone = True

    async def _explain(self, ticket: Ticket, visitor: Visitor, port: int) -> pages.ErrorPage:
        """Return the page for an unreachable application. A ticket may be older than the stop of its workspace: check
        again."""
        try:
            await self._authorizer.recheck_access(ticket, visitor)
        except AppRefusedError as error:
            return pages.refused(error, self._dashboard)
        return pages.unreachable(port, self._dashboard)

    def _cors(self, proxied: ProxyRequest, ticket: Ticket) -> Headers | None:
        if ticket.cors_behavior == "passthru":
            return None
        origin = app_headers.first(proxied.headers, b"origin")
        return app_headers.cors_answer(origin, allowed=self._same_owner(origin, ticket.request))

    def _is_forged(self, proxied: ProxyRequest, ticket: Ticket) -> bool:
        """Return whether another site's page uses the visitor's cookies.

        Applications below one wildcard are one site to a browser, so that SameSite does not separate them, and an
        unreadable response still has its effect. Readable WebSockets are the worst case.
        """
        if proxied.method in {"GET", "HEAD", "OPTIONS"} and not proxied.is_upgrade:
            return False
        origin = app_headers.first(proxied.headers, b"origin")
        if not origin or ticket.cors_behavior == "passthru" or ticket.user_id == NIL:
            return False
        if not app_headers.carries_ours(proxied.headers):
            return False  # a program that sends an origin also sends its token explicitly
        if origin == HIDDEN and not proxied.is_upgrade:
            return hides_foreign_origin(app_headers.first(proxied.headers, b"sec-fetch-site"))
        own = {canonical_host(proxied.host, split_untrusted(origin).scheme), self._dashboard_host}
        return host_of_origin(origin) not in own and not self._same_owner(origin, ticket.request)

    def _same_owner(self, origin: str, request: AppRequest) -> bool:
        """Return whether a page of this origin is an application of the same owner."""
        if not origin or self._hosts is None or request.access_method != "subdomain":
            return False
        return label_user(self._hosts, origin).lower() == request.username_or_id.lower()

    async def _answers_preflight(self, proxied: ProxyRequest, request: AppRequest) -> bool:
        """Respond to a preflight: browsers send it before a request to another origin, without any cookie."""
        origin = app_headers.first(proxied.headers, b"origin")
        query = app_headers.first(proxied.headers, b"access-control-request-method")
        if proxied.method != "OPTIONS" or not origin or not query:
            return False
        if await self._authorizer.cors_of(request, proxied.remote_ip) == "passthru":
            return False
        requested_headers = app_headers.joined(proxied.headers, b"access-control-request-headers")
        allowed = self._same_owner(origin, request)
        await proxied.answer(
            204, app_headers.cors_answer(origin, allowed=allowed, wanted_headers=requested_headers, preflight=True), b""
        )
        return True

    # ---- admission

    async def _enter(self, proxied: ProxyRequest, request: AppRequest) -> _Entry:
        """Admit the visitor. Raises AppRefusedError."""
        if request.access_method == "path" and self._settings.disable_path_apps:
            raise AppRefusedError("path_apps_off")
        cookies = _cookies(proxied.headers)
        shown = self._credentials(proxied, request, cookies)
        tickets = [value for name, value in cookies if name == app_headers.SIGNED_TOKEN_COOKIE]
        ticket = await self._authorizer.read_ticket(tickets, request)
        # A stream outlives its ticket, so the visitor needs the right now. Public applications need none.
        outlives = proxied.is_upgrade and ticket is not None and ticket.user_id != NIL
        if ticket is not None and (
            not outlives or await self._authorizer.still_admits(ticket, Visitor(shown, ticket.user_id, ticket.key_id))
        ):
            return _Entry(ticket, shown)
        let_in = await self._authorizer.admit(request, shown, app_headers.first(proxied.headers, b"user-agent"))
        name, expires = app_headers.SIGNED_TOKEN_COOKIE, format_datetime(let_in.expires_at, usegmt=True)
        cookie = f"{name}={let_in.token}; Path={request.base_path}; Expires={expires}; HttpOnly"
        return _Entry(let_in.ticket, shown, [(b"set-cookie", (cookie + self._cookie_tail(proxied)).encode())])

    def _credentials(
        self, proxied: ProxyRequest, request: AppRequest, cookies: Sequence[tuple[str, str]]
    ) -> Credentials:
        if request.access_method == "path":
            fallback = app_headers.PATH_SESSION_COOKIE
        else:
            fallback = session_cookie(proxied.host)
            own = next((value for name, value in cookies if name == fallback and value), "")
            if own:
                return Credentials(own, True, proxied.remote_ip)
        headers = {
            name.decode("latin-1"): app_headers.joined(proxied.headers, name, "; ") for name, _ in proxied.headers
        }
        result = Credentials.of(headers, parse_qs(proxied.query), proxied.remote_ip)
        if not result.token:
            token = next((value for name, value in cookies if name == fallback), "")
            return Credentials(token, True, proxied.remote_ip)
        return result

    def _cookie_tail(self, proxied: ProxyRequest) -> str:
        settings = self._settings
        secure = settings.secure_cookie or settings.prefixed_cookies or proxied.scheme == "https"
        lax = "None" if self._settings.samesite == "none" else "Lax"
        return ("; Secure" if secure else "") + f"; SameSite={lax}"

    # ---- refusals

    async def _refuse(self, proxied: ProxyRequest, request: AppRequest, error: AppRefusedError) -> None:
        if error.reason != "sign_in":
            await proxied.show(pages.refused(error, self._dashboard))
        elif proxied.is_upgrade:
            await proxied.show(pages.signed_out())
        elif request.access_method == "path" and not self._settings.is_away:
            await proxied.redirect(303, sign_in_address(self._dashboard, proxied.path + proxied.full_query))
        else:
            by_path = request.access_method == "path"
            address = (self._settings.own_url if by_path else f"{proxied.scheme}://{proxied.host}") + proxied.target
            query = urlencode({"redirect_uri": address}, quote_via=quote)
            await proxied.redirect(303, f"{self._dashboard}/api/v2/applications/auth-redirect?{query}")

    async def _takes_key(self, proxied: ProxyRequest, cookie_name: str) -> bool:
        """Convert the sealed key of a visitor who returns from signing in to this host's cookie."""
        if app_headers.API_KEY_QUERY not in proxied.query or proxied.method not in {"GET", "HEAD"}:
            return False
        sealed = parse_qs(proxied.query).get(app_headers.API_KEY_QUERY, [""])[0]
        if not sealed:
            return False
        query = app_headers.stripped_query(proxied.query)
        # With two slashes in front it would be the address of another host.
        clean = "/" + proxied.path.lstrip("/\\") + (f"?{query}" if query else "")
        try:
            token = await self._authorizer.unseal(sealed)
        except TokenRefused:
            # Expired or forged: without it the visitor has to sign in again.
            await proxied.redirect(303, clean)
            return True
        lifetime = int(self._settings.session_duration.total_seconds())
        name = HOST_PREFIX * self._settings.prefixed_cookies + cookie_name
        cookie = f"{name}={token}; Path=/; Max-Age={lifetime}; HttpOnly"
        await proxied.redirect(303, clean, [(b"set-cookie", (cookie + self._cookie_tail(proxied)).encode())])
        return True


def session_cookie(host: str) -> str:
    """Return the name of the cookie with a visitor's session on one application's host.

    Source: docs/protocol/agent-services.md#applications.
    """
    name = host.rpartition(":")[0] or host
    return f"{app_headers.SUBDOMAIN_SESSION_COOKIE}_{hashlib.sha256(name.lower().encode()).hexdigest()[:32]}"


def sign_in_address(access_url: str, back: str) -> str:
    """Return the dashboard's sign-in page, which leads back."""
    return f"{access_url}/login?{urlencode({'message': SIGNED_OUT, 'redirect': back})}"


def _cookies(headers: Headers) -> list[tuple[str, str]]:
    pairs = (part.partition("=") for part in app_headers.joined(headers, b"cookie", "; ").split(";"))
    return [(name.strip(), value.strip().strip('"')) for name, _, value in pairs]


async def _close(stream: trio.abc.Stream) -> None:
    """Close cleanly, so that a reset does not lose the response; bounded in time."""
    with trio.move_on_after(2):
        try:
            if isinstance(stream, trio.abc.HalfCloseableStream):
                await stream.send_eof()
                while await stream.receive_some(65536):
                    pass
            await stream.aclose()
            return
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            pass  # a clean close is no longer possible
    await trio.aclose_forcefully(stream)
