"""Fixes of Quart-Trio 0.12 for a long-lived server, as subclasses.

Hypercorn's part is in `appproxy/http/hypercorn_fixes.py`.

1. A request body grows without bound while a handler is slow. Here the reader waits above a high-water mark.
2. Werkzeug compiles two functions for each route at the start, to build URLs that are never used.
3. A body is closed only after its first byte was sent: a client that disconnects earlier leaves the response's source
   open.
4. An empty binary message of a WebSocket arrived as None and broke the handler.
5. Ten messages of a WebSocket were held for a slow handler; here it is one. A stream that only sends drops received
   messages, where the eleventh message hid the end of the connection (`appproxy/http/websocket_bounds.py` has the
   rest). Quart's 60 s limits on bodies and responses are lifted: streams live for hours.
6. A client that disconnected cancelled its request, also between a change and its audit entry. `finish_when_left`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol, cast

import trio
from quart import request as current_request
from quart.routing import QuartRule
from quart.signals import websocket_received
from quart.wrappers.base import BaseRequestWebsocket
from quart.wrappers.response import DataBody
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection, TrioASGIWebsocketConnection
from quart_trio.wrappers.request import TrioBody, TrioRequest
from werkzeug.exceptions import BadHost
from werkzeug.routing import MapAdapter

from coder.appproxy.http.request_bounds import PUBLIC_LIMIT
from coder.coderd.http.server.declarations import own_scope, route_of

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, WebsocketScope
    from quart.ctx import RequestContext, WebsocketContext
    from quart.typing import ResponseTypes

BODY_HIGH_WATER = 1 << 17
"""Bytes of a request body kept before the socket is left unread: no budget counts them yet."""


class BoundedBody(TrioBody):
    """Request body with backpressure on its sender (1)."""

    def __init__(self, expected_content_length: int | None, max_content_length: int | None) -> None:
        super().__init__(expected_content_length, max_content_length)
        self._drained = trio.Event()
        self._whole = False
        self._discarding = False

    async def __anext__(self) -> bytes:
        data = await super().__anext__()
        self._drained.set()
        return data

    def __await__(self) -> Generator[None, None, bytes]:
        # The caller reads the whole body: only max_content_length limits it.
        self._whole = True
        self._drained.set()
        data: bytes = yield from super().__await__()
        return data

    @property
    def is_complete(self) -> bool:
        return self._complete.is_set()

    def append(self, data: bytes) -> None:
        if not self._discarding:
            super().append(data)

    def discard(self) -> None:
        """Drop all further bytes: unread ones would hold up the response."""
        self._whole = self._discarding = True
        self._data.clear()
        self._drained.set()

    async def room(self) -> None:
        """Wait until less than the high-water mark is buffered."""
        while len(self._data) > BODY_HIGH_WATER and not self._whole and self._must_raise is None:
            self._drained = trio.Event()
            await self._drained.wait()


class BoundedRequest(TrioRequest):
    body_class = BoundedBody
    body: BoundedBody
    at_end: AsyncExitStack
    """Resources to close when the request is over: answered, or abandoned before its response began (3)."""
    finishes = False
    """Whether the request goes on when its client disconnects (6)."""
    reads_body = True

    @property
    def is_abandoned(self) -> bool:
        """Return whether a disconnect ends the request: the rest of its body would never arrive."""
        return not self.finishes or (self.reads_body and not self.body.is_complete)


def finish_when_left(*, reads_body: bool) -> None:
    """Let the current request finish although its client disconnects: what it changes has to be recorded."""
    current = cast("BoundedRequest", current_request)
    current.finishes, current.reads_body = True, reads_body


def at_end() -> AsyncExitStack:
    """Return the exit stack of the current request, for resources of a response body that is sent later."""
    return cast("BoundedRequest", current_request).at_end


class ExactWebsocketConnection(TrioASGIWebsocketConnection):
    """Delivers empty binary messages as such (4), and holds few (5)."""

    def __init__(self, app: QuartTrio, scope: WebsocketScope) -> None:
        super().__init__(app, scope)
        self.send_channel, self.receive_channel = trio.open_memory_channel["bytes | str"](1)

    async def handle_messages(self, nursery: trio.Nursery, receive: ASGIReceiveCallable) -> None:  # type: ignore[override]
        while True:
            event = await receive()
            if event["type"] == "websocket.receive":
                if not self.scope.get("coder_message_limit"):
                    continue
                data = event.get("bytes")
                message = data if data is not None else event["text"] or ""
                await websocket_received.send_async(message, _sync_wrapper=self.app.ensure_async)  # type: ignore[arg-type]
                await self.send_channel.send(message)
            elif event["type"] == "websocket.disconnect":
                break
        nursery.cancel_scope.cancel()


class BoundedHTTPConnection(TrioASGIHTTPConnection):
    """Feeds a `BoundedBody` no faster than it is read (1); a complete body is sent in one message."""

    _request: BoundedRequest | None = None

    async def handle_request(  # type: ignore[override]
        self, nursery: trio.Nursery, request: BoundedRequest, send: ASGISendCallable
    ) -> None:
        self._request = request
        try:
            async with AsyncExitStack() as request.at_end:
                await super().handle_request(nursery, request, send)
        finally:
            self._request = None  # the request refers to this connection: only the collector would free the two

    async def _send_response(self, send: ASGISendCallable, response: ResponseTypes) -> None:
        if self._request is not None:
            self._request.body.discard()
        body = getattr(response, "response", None)
        if not isinstance(body, DataBody):
            await super()._send_response(send, response)
            return
        headers = [(name.lower().encode(), value.encode()) for name, value in response.headers.items()]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": body.data, "more_body": False})

    async def handle_messages(  # type: ignore[override]
        self, nursery: trio.Nursery, request: BoundedRequest, receive: ASGIReceiveCallable
    ) -> None:
        while True:
            message = await receive()
            if message["type"] == "http.request":
                request.body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    request.body.set_complete()
                else:
                    await request.body.room()
            elif message["type"] == "http.disconnect":
                break
        if request.is_abandoned:
            nursery.cancel_scope.cancel()


class BuildUrl(Protocol):
    """Function that builds the URL of a rule."""

    def __call__(self, rule: MatchedRule, **values: str) -> tuple[str, str]: ...


class MatchedRule(QuartRule):
    """Route that is only matched. The functions that build its URL are compiled on demand.

    They are never needed; compiling two of them for each of 395 routes was two fifths of the processor time of a
    server's start (0.19 of 0.50 s).
    """

    def _compile_builder(self, append_unknown: bool = True) -> BuildUrl:
        compiled = super()._compile_builder

        def build(rule: MatchedRule, **values: str) -> tuple[str, str]:
            return compiled(append_unknown)(rule, **values)

        return build


class Application(QuartTrio):
    """Quart with the fixes above."""

    url_rule_class = MatchedRule  # type: ignore[assignment]
    asgi_http_class = BoundedHTTPConnection
    asgi_websocket_class = ExactWebsocketConnection
    request_class = BoundedRequest

    def create_url_adapter(self, request: BaseRequestWebsocket | None) -> MapAdapter | None:
        """Refuse an invalid Host header (an empty label, or one of more than 63 letters) before there is a request
        whose error would be a 500. Routes ignore hosts, and applications are matched earlier.
        """
        try:
            return super().create_url_adapter(request)
        except BadHost:
            if request is None:
                raise
            query = request.query_string.decode()
            return self.url_map.bind(
                "localhost", request.root_path, None, request.scheme, request.method, request.path, query
            )

    async def full_dispatch_request(self, request_context: RequestContext | None = None) -> ResponseTypes:
        """Record the route and its flag for the middleware, which sees paths only."""
        if request_context is not None and request_context.request.url_rule is not None:
            current = request_context.request
            scope = own_scope(current)
            scope["coder_route"] = request_context.request.url_rule.rule
            declaration = route_of(self.view_functions.get(current.endpoint or ""))
            scope["coder_compressed"] = declaration is not None and declaration.compressed
        return await super().full_dispatch_request(request_context)

    async def full_dispatch_websocket(self, websocket_context: WebsocketContext | None = None) -> ResponseTypes | None:
        """Do the same for WebSockets."""
        if websocket_context is not None and websocket_context.websocket.url_rule is not None:
            current = websocket_context.websocket
            scope = own_scope(current)
            scope["coder_route"] = websocket_context.websocket.url_rule.rule
            declaration = route_of(self.view_functions.get(current.endpoint or ""))
            scope["coder_message_limit"] = declaration.limit if declaration is not None else PUBLIC_LIMIT
        return await super().full_dispatch_websocket(websocket_context)


def new_application(name: str) -> Application:
    app = Application(name, static_folder=None)
    app.config["RESPONSE_TIMEOUT"] = None
    app.config["BODY_TIMEOUT"] = None
    # Readers count for themselves (`read_bytes` of json.py): one limit for all would be wrong for most.
    app.config["MAX_CONTENT_LENGTH"] = None
    app.config["PROPAGATE_EXCEPTIONS"] = False
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False  # a redirect would lose the body; the middleware merges slashes for the API
    return app
