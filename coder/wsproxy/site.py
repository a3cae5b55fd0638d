"""Other routes of a proxy: health, build information, and redirects to the server.

A small ASGI application for the listener. Pages of the dashboard redirect to the server; its API is not served.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import uuid4

from coder.api.base import codec
from coder.api.base.errors import Response as Envelope
from coder.api.site.build_info import BuildInfoResponse
from coder.api.site.health import ProxyHealthReport
from coder.appproxy.http.asgi import Message, Receive, Send
from coder.appproxy.http.overload import HEADER as OVERLOAD_HEADER
from coder.appproxy.http.request_bounds import TOO_MANY_PARAMETERS, has_too_many
from coder.base.version import BUILD_VERSION, PROVISIONER_API_VERSION
from coder.domain.access.policy import NIL
from coder.wsproxy.metrics import ELSEWHERE
from coder.wsproxy.world import ProxyWorld

Fields = Sequence[tuple[str, str]]

_PLAIN: Fields = (("content-type", "text/plain; charset=utf-8"),)
_JSON: Fields = (("content-type", "application/json; charset=utf-8"),)
_ANY_ORIGIN: Fields = (
    ("access-control-allow-origin", "*"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "*"),
    ("access-control-allow-credentials", "false"),
)


def response_headers(world: ProxyWorld) -> list[tuple[str, str]]:
    """Return the headers of every answer of this process."""
    headers = [
        ("x-content-type-options", "nosniff"),
        ("x-coder-build-version", BUILD_VERSION),
        ("x-coder-request-id", str(uuid4())),
    ]
    server = world.config.server
    if server.strict_transport_security > 0:
        parts = (f"max-age={server.strict_transport_security}", *server.strict_transport_security_options)
        headers.append(("strict-transport-security", "; ".join(parts)))
    return headers


class ProxySite:
    """ASGI application of a proxy."""

    def __init__(self, world: ProxyWorld) -> None:
        self._world = world
        self._routes: dict[str, Callable[[str], tuple[Fields, bytes]]] = {
            "/healthz": lambda _: (_PLAIN, b"OK"),
            "/livez": lambda _: (_PLAIN, b"OK"),
            "/healthz-report": lambda _: (_JSON, codec.encode(self.report())),
            "/latency-check": lambda address: ((*_PLAIN, *_ANY_ORIGIN, *self._signs(address)), b"OK"),
            "/derp/latency-check": lambda _: (_PLAIN, b""),
            "/api/v2/buildinfo": lambda _: ((*_JSON, *_ANY_ORIGIN), codec.encode(self.build_info())),
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()  # the handshake comes first, since a close is not possible before it (middleware.py)
            await send({"type": "websocket.close", "code": 1008})  # a close before the accept answers 403
        elif scope["type"] == "http":
            if has_too_many(scope["query_string"]):
                status, fields, body = 414, _JSON, TOO_MANY_PARAMETERS
            else:
                query = scope["query_string"].decode("latin-1")
                client = scope.get("client")
                address = client[0] if client else ""
                status, fields, body = self.answer(scope["method"], scope["path"], query, address)
            path = scope["path"] if scope["path"] in self._routes else ELSEWHERE
            self._world.metrics.count(status, scope["method"], path)
            headers = [*response_headers(self._world), *fields, ("content-length", str(len(body)))]
            raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers]
            await send({"type": "http.response.start", "status": status, "headers": raw})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def answer(self, method: str, path: str, query: str, address: str = "") -> tuple[int, Fields, bytes]:
        """Return status, headers and body for a request of a client's address."""
        route = self._routes.get(path)
        if path == "/readyz" and method in {"GET", "HEAD"}:
            faults = self.report().errors
            return (503, _PLAIN, "\n".join(faults).encode()) if faults else (200, _PLAIN, b"OK")
        if route is not None and method in {"GET", "HEAD"}:
            return (200, *route(address))
        if route is not None and path == "/latency-check" and method == "OPTIONS":
            return 204, _ANY_ORIGIN, b""
        if route is not None:
            return 405, (*_PLAIN, ("allow", "GET")), b""
        dashboard = self._world.primary.url
        if path.startswith(("/api/", "/derp")) or method not in {"GET", "HEAD"} or self._world.config.derp_only:
            detail = f"This is a workspace proxy of {dashboard}. Its API and dashboard are there."
            return 404, _JSON, codec.encode(Envelope(message="Route not found.", detail=detail))
        # Other paths are the dashboard's.
        return 307, (("location", dashboard + _as_sent(path) + (f"?{query}" if query else "")),), b""

    def _signs(self, address: str) -> Fields:
        return (OVERLOAD_HEADER,) if self._world.overload.is_set(address) else ()

    def report(self) -> ProxyHealthReport:
        """Return the health of this process, for its server."""
        errors, warnings = [self._world.registration.unhealthy_reason()], list[str]()
        dialer = self._world.agent_dialer
        if dialer is not None and not dialer.controller.is_coordinated:
            warnings.append("not connected to the server's coordinator: new connections to workspaces are delayed")
        return ProxyHealthReport(errors=[error for error in errors if error], warnings=warnings)

    def build_info(self) -> BuildInfoResponse:
        primary = self._world.registration.primary_info
        return BuildInfoResponse(
            external_url="https://github.com/coder/coder",
            version=BUILD_VERSION,
            dashboard_url=self._world.primary.url,
            telemetry=False,
            workspace_proxy=True,
            agent_api_version="1.0",
            provisioner_api_version=PROVISIONER_API_VERSION,
            upgrade_message="",
            deployment_id=primary.deployment_id if primary else NIL,
        )


def _as_sent(path: str) -> str:
    from urllib.parse import quote

    return quote(path, safe="/:@!$&'()*+,;=~-._")
