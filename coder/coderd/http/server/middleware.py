"""Middleware around the application: common headers, the request log, the client's address.

Plain ASGI, because Quart's hooks cost a good part of a small request. Headers: request id, build version, nosniff,
Vary, and the CSRF cookie for browsers.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import Counter
from collections.abc import Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from coder.appproxy.http.asgi import Message, Receive, Send
from coder.appproxy.http.client_address import TrustedProxies
from coder.appproxy.http.rate_limits import NO_ANSWER
from coder.appproxy.http.request_bounds import TOO_MANY_PARAMETERS, has_too_many
from coder.appproxy.metrics.open_links import UPGRADED
from coder.base.log import get_logger
from coder.base.version import BUILD_VERSION
from coder.coderd.http.server.compression import CompressedSend
from coder.coderd.http.server.fast_path import FastPath
from coder.coderd.services.telemetry.database_metrics import CURRENT_REQUEST
from coder.coderd.services.telemetry.metrics import Metrics
from coder.domain.access.origins import foreign_origin
from coder.domain.foundation.web_addresses import canonical_host
from coder.net.masking import masked_path, shortened

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_log = get_logger("http.request")

_CONSTANT = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-coder-build-version", BUILD_VERSION.encode()),
)
_VARY = ((b"vary", b"Origin"), (b"vary", b"Cookie"))
_ROUTE_ARGUMENT = re.compile(r"<(?:[^:>]*:)?([^>]*)>")
_ANY_HOST = ("/healthz", "/livez", "/readyz", "/derp", "/latency-check", "/api/v2/replicas")
"""Paths that load balancers, relays and other replicas request under any host name."""
_QUIET = ("/healthz", "/livez", "/readyz", "/latency-check", "/derp/latency-check", "/bin/", "/assets/", "/icon/")


@cache  # bounded by the server's number of routes
def route_label(route: str) -> str:
    """Return a route in the form of upstream's router: `/users/{user}`."""
    return _ROUTE_ARGUMENT.sub(r"{\1}", route)


def response_headers() -> list[tuple[str, str]]:
    """Return the constant headers with a fresh request id, for endpoints that respond without this middleware."""
    return [
        *((name.decode(), value.decode()) for name, value in _CONSTANT),
        ("x-coder-request-id", str(uuid4())),
    ]


class Middleware:
    """ASGI application that the listener serves."""

    def __init__(self, app: Any, ctx: Context) -> None:
        self.app = FastPath(app, ctx)
        self.ctx = ctx
        self._proxies = TrustedProxies(ctx.config)
        self._cookie_tail = _cookie_tail(ctx)
        access = urlsplit(ctx.access_url)
        self._access_scheme = access.scheme
        self._access_host = canonical_host(access.netloc, access.scheme) if ctx.config.redirect_to_access_url else ""
        self._metrics = ctx.services.metrics
        self._metrics.at_scrape.append(self._set_open_metrics)
        self._open: dict[str, Message] = {}
        """Requests in progress, by request id."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope.get("method") == "OPTIONS" and _header(scope["headers"], b"access-control-request-method"):
            await _preflight(send, scope["headers"] if self.ctx.config.dangerous_allow_cors_requests else None)
            return
        if has_too_many(scope["query_string"]):
            await _refuse_parameters(receive, send, scope["type"])
            return
        if self._access_host and scope["type"] == "http" and self._is_foreign_host(scope):
            await _redirect(send, self.ctx.access_url, scope)
            return
        if scope["type"] == "websocket" and self._foreign(scope):
            await _refuse_websocket(receive, send)
            return
        if "//" in scope["path"] and scope["path"].startswith("/api/"):
            scope["path"] = re.sub("/+", "/", scope["path"])
        started = time.perf_counter()
        request_id = str(uuid4())
        scope["coder_request_id"] = request_id
        CURRENT_REQUEST.set(scope)
        headers = scope["headers"]
        fresh = "" if b"csrf_token=" in _header(headers, b"cookie") else _csrf()
        scope["coder_csrf"] = fresh  # the page itself must know the token that its response sets
        if self.ctx.config.proxy_trusted_origins:
            self._apply_proxy(scope)
        extra = [*_CONSTANT, (b"x-coder-request-id", request_id.encode())]
        if self.ctx.config.dangerous_allow_cors_requests and _header(headers, b"origin"):
            # Without credentials: a browser then sends no cookie, whatever the page requests.
            extra.append((b"access-control-allow-origin", b"*"))
        status = 0
        self._open[request_id] = scope
        scope["coder_probed"] = partial(self._count_probe, scope)

        async def framed(message: Message) -> None:
            nonlocal status
            kind = message["type"]
            if kind in {"http.response.start", "websocket.http.response.start"}:
                status = message["status"]
                answer_headers = list(message.get("headers", ()))
                names = {name.lower() for name, _ in answer_headers}
                answer_headers += [pair for pair in extra if pair[0] not in names]
                if counted := scope.get("coder_counted"):
                    counted.settle(status)
                    answer_headers += [(name.encode(), value.encode()) for name, value in counted.headers]
                answer_headers += _VARY
                if fresh:
                    answer_headers.append((b"set-cookie", f"csrf_token={fresh}{self._cookie_tail}".encode()))
                message["headers"] = answer_headers
            elif kind == "websocket.accept":
                status = UPGRADED
                if counted := scope.get("coder_counted"):
                    counted.settle(status)
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        try:
            sender = CompressedSend(scope, framed, secure=self._access_scheme == "https")
            await self.app(scope, receive, sender)
        finally:
            if counted := scope.get("coder_counted"):
                counted.settle(NO_ANSWER)
            del self._open[request_id]
            self._record(scope, status, time.perf_counter() - started, request_id)

    def _is_foreign_host(self, scope: Message) -> bool:
        """Return whether the request used another host than the access URL's. Probes of machines may do that."""
        if scope["path"].startswith(_ANY_HOST):
            return False
        host = _header(scope["headers"], b"host").decode("latin-1")
        return canonical_host(host, self._access_scheme) != self._access_host

    def _foreign(self, scope: Message) -> bool:
        named = {name: _header(scope["headers"], name.encode()).decode("latin-1") for name in ("origin", "host")}
        return foreign_origin(named, self.ctx.access_url)

    def _record(self, scope: Message, status: int, took: float, request_id: str) -> None:
        self._count(scope, status, took)
        failed = status >= 500
        if not _log.tells("warn" if failed else "debug") or (not failed and scope["path"].startswith(_QUIET)):
            return
        write = _log.warn if failed else _log.debug
        write(
            scope.get("method", "GET"),
            path=_logged_path(scope),
            status=status,
            took_ms=round(took * 1000, 2),
            remote=(scope.get("client") or ("",))[0],
            request_id=request_id,
        )

    def _count(self, scope: Message, status: int, took: float) -> None:
        route = scope.get("coder_route")
        if route is None or not status:  # a client that disconnected before the response has no status
            return
        # A route becomes a label, never a path from a client.
        path, method = route_label(route), scope.get("method", "GET")
        self._metrics["coderd_api_requests_processed_total"].add(str(status), method, path)
        if status == UPGRADED:
            self._metrics["coderd_api_websocket_durations_seconds"].observe(took, path)
        else:
            self._metrics["coderd_api_request_latencies_seconds"].observe(took, method, path)

    def _count_probe(self, scope: Message, result: str) -> None:
        """Count a ping of a WebSocket as answered, or as unanswered when the next was due."""
        if "coder_route" in scope:
            self._metrics["coderd_api_websocket_probes_total"].add(route_label(scope["coder_route"]), result)

    def _set_open_metrics(self, metrics: Metrics) -> None:
        """Set the metrics of requests in progress, by route."""
        requests: Counter[tuple[str, str]] = Counter()
        sockets: Counter[str] = Counter()
        for scope in self._open.values():
            route = scope.get("coder_route")
            if route is None:
                continue
            path = route_label(route)
            if scope["type"] == "websocket":
                sockets[path] += 1
            else:
                requests[scope.get("method", "GET"), path] += 1
        metrics["coderd_api_concurrent_requests"].replace(requests.items())
        sockets.update(metrics.links.by_route())
        metrics["coderd_api_concurrent_websockets"].replace(((path,), count) for path, count in sockets.items())

    def _apply_proxy(self, scope: Message) -> None:
        client = scope.get("client")
        if client:
            scope["client"] = (self._proxies.address(client[0], scope["headers"]), client[1])


def _logged_path(scope: Message) -> str:
    """Return the path as received, percent-encoded, so that no control character reaches the log; secrets are masked
    for any route and encoding."""
    path = masked_path(scope["path"])
    if path != scope["path"]:
        return shortened(quote(path, safe="/*"))
    return shortened(scope.get("raw_path", b"").decode("latin-1").partition("?")[0])


async def _refuse_websocket(receive: Receive, send: Send) -> None:
    await _refuse(receive, send, "websocket", 403, b'{"message":"The origin of the request is not this server."}')


async def _refuse_parameters(receive: Receive, send: Send, kind: str) -> None:
    await _refuse(receive, send, kind, 414, TOO_MANY_PARAMETERS)


async def _refuse(receive: Receive, send: Send, kind: str, status: int, body: bytes) -> None:
    """Refuse a request before it is parsed; `kind` is that of the scope."""
    if kind == "websocket":
        # Receives the connect event first. Otherwise there is no room for the disconnect event, which is sent during
        # the refusal: the connection would wait until the server stops (websocket_bounds.py keeps one message).
        await receive()
    start = "websocket.http.response" if kind == "websocket" else "http.response"
    headers = [(b"content-type", b"application/json; charset=utf-8"), (b"content-length", b"%d" % len(body))]
    await send({"type": f"{start}.start", "status": status, "headers": [*headers, *_CONSTANT]})
    await send({"type": f"{start}.body", "body": body})


async def _redirect(send: Send, access_url: str, scope: Message) -> None:
    path = scope.get("raw_path", b"").decode("latin-1").partition("?")[0] or "/"
    query = scope.get("query_string", b"").decode("latin-1")
    location = f"{access_url}{path}" + (f"?{query}" if query else "")
    headers = [(b"location", location.encode("latin-1")), (b"content-length", b"0"), *_CONSTANT]
    await send({"type": "http.response.start", "status": 307, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _preflight(send: Send, invited: Iterable[tuple[bytes, bytes]] | None = None) -> None:
    """Respond to a preflight: no other origin is allowed, unless the request's headers are passed; then all of them
    are."""
    names = (b"Origin", b"Access-Control-Request-Method", b"Access-Control-Request-Headers")
    headers = [(b"vary", name) for name in names] + [(b"content-length", b"0")]
    headers += [_CONSTANT[1], (b"x-coder-request-id", str(uuid4()).encode())]
    if invited is not None:
        headers += [(b"access-control-allow-origin", b"*"), (b"access-control-allow-methods", b"*")]
        requested_headers = _header(invited, b"access-control-request-headers")
        headers += [(b"access-control-allow-headers", requested_headers)] if requested_headers else []
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    for key, value in headers:
        if key == name or key.lower() == name:
            return value
    return b""


def _csrf() -> str:
    return secrets.token_urlsafe(32)


def _cookie_tail(ctx: Context) -> str:
    secure = "; Secure" if ctx.config.secure_auth_cookie or ctx.access_url.startswith("https://") else ""
    same_site = "None" if ctx.config.samesite_auth_cookie == "none" else "Lax"
    return f"; Path=/; HttpOnly{secure}; SameSite={same_site}"
