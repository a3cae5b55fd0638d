"""A span around each request, when the server traces; see `coder.coderd.services.telemetry.tracing`."""

from __future__ import annotations

from coder.appproxy.http.asgi import Application, Message, Receive, Send
from coder.coderd.http.server.middleware import route_label
from coder.coderd.services.telemetry.tracing import Tracing

_TRACE_CONTEXT = (b"traceparent", b"tracestate")
_FAILED = 500


class Traced:
    """ASGI application inside, with its requests traced."""

    def __init__(self, app: Application, tracing: Tracing) -> None:
        self._app = app
        self._tracing = tracing

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        method = scope.get("method", "GET")
        carried = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _TRACE_CONTEXT}
        with self._tracing.request(method, carried) as span:

            async def watched(message: Message) -> None:
                if message["type"] in {"http.response.start", "websocket.http.response.start"}:
                    status = message["status"]
                    span.set_attribute("http.response.status_code", status)
                    if status >= _FAILED:
                        span.set_attribute("error.type", str(status))
                await send(message)

            try:
                await self._app(scope, receive, watched)
            finally:
                route = scope.get("coder_route")
                if route is not None:
                    span.update_name(f"{method} {route_label(route)}")
                    span.set_attribute("http.route", route_label(route))
                span.set_attribute("coder.request_id", scope.get("coder_request_id", ""))
