"""HTTP API of the agent inside the overlay (port 4): identity, listening ports, files, diagnostics.

Minimal by design: one request at a time per connection, h11, JSON replies. Source:
docs/protocol/agent-services.md#http.
"""

from __future__ import annotations

from dataclasses import asdict
from urllib.parse import parse_qs, urlsplit

import h11
import trio

from coder.agent.disk import on_disk
from coder.agent.network import diagnostics
from coder.agent.network.container_routes import (
    CONTAINER_ROUTES,
    WATCH,
    devcontainer_route,
    disabled_reply,
    watch_containers,
)
from coder.agent.network.container_routes import PREFIX as CONTAINER_PREFIX
from coder.agent.network.file_bundle import BUNDLE_ROUTES
from coder.agent.network.file_edits import FILE_ROUTES
from coder.agent.network.git_watch import watch_git
from coder.agent.network.http_messages import HttpReply, HttpRequest, Routes, Stream, json_reply, message_reply
from coder.agent.network.mcp_routes import MCP_ROUTES
from coder.agent.network.ports import listening_ports
from coder.agent.network.process_routes import LONGEST_WAIT, PREFIX, PROCESS_ROUTES, is_long_poll, process_route
from coder.agent.network.upgrade_routes import UPGRADE_ROUTES
from coder.agent.state import AgentState
from coder.base.log import get_logger
from coder.net.bounded_http import BoundedHttp
from coder.net.websocket import WebSocketStream, accept_key

log = get_logger("agent.http")

TIMEOUT = 20.0
"Seconds for a request's head, and for any progress of a body or a reply (ours). A slow line may take longer in total."
CHUNK = 64 << 10
"Bytes of a body or a reply that count as progress (ours)."
MAX_BODY = 64 << 20
MAX_CONNECTIONS = 256
"Concurrent connections of one listener (ours); every user of the machine can connect to `--debug-address`."
MAX_MESSAGE = 64 << 10
"Bytes of a message from a WebSocket client (ours)."


class _RejectedError(Exception):
    """A request is rejected before any route; its connection closes after `reply`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.reply = message_reply(status, message)


class HttpApi:
    """HTTP server for the connections of one listener."""

    def __init__(self, state: AgentState, routes: Routes | None = None) -> None:
        self._state, self._routes = state, ROUTES if routes is None else routes
        # A listener without routes that read a body accepts none, so that no client can fill memory.
        self._max_body = MAX_BODY if any(method not in {"GET", "HEAD"} for method, _ in self._routes) else 0
        self._open = 0

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve requests of one connection until it closes or idles. Never raises for a peer's misbehaviour."""
        if self._open >= MAX_CONNECTIONS:
            await trio.aclose_forcefully(stream)
            return
        self._open += 1
        try:
            await self._serve(stream)
        finally:
            self._open -= 1

    async def _serve(self, stream: trio.abc.Stream) -> None:
        connection = BoundedHttp(h11.SERVER, max_incomplete_event_size=64 << 10)
        async with stream:
            try:
                while True:
                    try:
                        request = await _read_request(connection, stream, self._max_body)
                    except _RejectedError as rejection:
                        await _write_reply(connection, stream, rejection.reply)
                        return
                    if request is None:
                        return
                    if (stream_handler := STREAMS.get(request.path)) is not None and self._routes is ROUTES:
                        if (disabled := _watch_rejection(self._state, request)) is not None:
                            await _write_reply(connection, stream, disabled)
                        else:
                            await _serve_websocket(connection, stream, stream_handler, self._state, request)
                        return
                    reply = await self._answer(request)
                    await _write_reply(connection, stream, reply, head_only=request.method == "HEAD")
                    if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                        return
                    connection.start_next_cycle()
            except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
                return

    async def _answer(self, request: HttpRequest) -> HttpReply:
        handler = self._routes.get((request.method, request.path))
        if self._routes is not ROUTES and handler is None:
            return message_reply(404, "Route not found.")
        if handler is None and request.path.startswith(PREFIX):
            handler = process_route
        if handler is None and request.path.startswith(CONTAINER_PREFIX):
            handler = devcontainer_route
        if handler is None:
            return message_reply(404, "Route not found.")
        try:
            with trio.fail_after(TIMEOUT + (LONGEST_WAIT if is_long_poll(request) or request.path in _SLOW else 0)):
                return await handler(self._state, request)
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
            # Numbers, paths and JSON come from the caller.
            return message_reply(400, "The request could not be parsed.", str(error))
        except OSError as error:
            status = {FileNotFoundError: 404, PermissionError: 403}.get(type(error), 500)
            return message_reply(status, error.strerror or "I/O error")
        except trio.TooSlowError:
            raise
        except Exception as error:
            log.error("a request failed", path=request.path, error=error)
            return message_reply(500, "The agent could not answer.")


async def _hello(_state: AgentState, _request: HttpRequest) -> HttpReply:
    return message_reply(200, "Hello from the agent!")


async def _listening_ports(state: AgentState, _request: HttpRequest) -> HttpReply:
    ports = await on_disk(listening_ports, state.debug_ports)
    return json_reply(200, {"ports": [asdict(port) for port in ports]})


async def _manifest(state: AgentState, _request: HttpRequest) -> HttpReply:
    from google.protobuf.json_format import MessageToDict

    if state.manifest is None:
        return message_reply(404, "no manifest yet")
    fields = MessageToDict(state.manifest, preserving_proto_field_name=True)
    fields["environment_variables"] = dict.fromkeys(state.manifest.environment_variables, "***REDACTED***")
    fields.pop("secrets", None)
    return json_reply(200, fields)


async def _netcheck(state: AgentState, _request: HttpRequest) -> HttpReply:
    status = state.overlay()
    return _NO_OVERLAY if status is None else json_reply(200, diagnostics.netcheck_report(status))


async def _network(state: AgentState, _request: HttpRequest) -> HttpReply:
    status = state.overlay()
    if status is None:
        return _NO_OVERLAY
    return HttpReply(200, diagnostics.network_page(status).encode(), "text/html; charset=utf-8")


async def _metrics(state: AgentState, _request: HttpRequest) -> HttpReply:
    return HttpReply(200, diagnostics.metrics_text(state).encode(), "text/plain; version=0.0.4; charset=utf-8")


async def _logs(state: AgentState, request: HttpRequest) -> HttpReply:
    after = int(request.first("after") or 0)
    if after < 0:
        return message_reply(400, "after must not be negative")
    if state.log_file is None:
        return message_reply(
            404, "The agent's log is not in a file.", "Start it with --log-human FILE to read it here."
        )
    body = await on_disk(diagnostics.log_tail, state.log_file, after)
    return HttpReply(200, body, "text/plain; charset=utf-8")


_SLOW = frozenset({"/api/v0/mcp/call-tool", "/api/v0/mcp/tools", "/api/v0/bundle-files"})
"""Routes that wait for programs or disks of the workspace."""
_NO_OVERLAY = message_reply(503, "The agent has not joined the network yet.", "It joins with its first manifest.")
ROUTES: Routes = {
    ("GET", "/"): _hello,
    ("GET", "/api/v0/listening-ports"): _listening_ports,
    ("GET", "/api/v0/netcheck"): _netcheck,
    **FILE_ROUTES,
    **BUNDLE_ROUTES,
    **MCP_ROUTES,
    **PROCESS_ROUTES,
    **CONTAINER_ROUTES,
    **UPGRADE_ROUTES,
    ("GET", "/debug/logs"): _logs,
    ("GET", "/debug/magicsock"): _network,
    ("GET", "/debug/manifest"): _manifest,
    ("GET", "/debug/prometheus"): _metrics,
}
STREAMS: dict[str, Stream] = {"/api/v0/git/watch": watch_git, WATCH: watch_containers}
"""Paths that accept a WebSocket."""
DEBUG_ROUTES = tuple((key, handler) for key, handler in ROUTES.items() if key[1].startswith("/debug/"))
"""Routes of a listener that every user of the machine can reach: no files."""
METRICS_ROUTES = ((("GET", "/"), _metrics), (("GET", "/metrics"), _metrics))


async def _read_request(connection: BoundedHttp, stream: trio.abc.Stream, max_body: int) -> HttpRequest | None:
    """Read a request; return None at the connection's end.

    Raises trio.TooSlowError after TIMEOUT (without a head, or more of the body), _RejectedError.
    """
    head: h11.Request | None = None
    head_by = trio.current_time() + TIMEOUT
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            with trio.fail_at(head_by if head is None else trio.current_time() + TIMEOUT):
                connection.receive_data(bytes(await stream.receive_some(CHUNK)))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            await connection.rest()
            if len(body) > max_body:
                raise _RejectedError(413, f"The body may have at most {max_body} bytes.")
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            path, query = _target(head.target.decode("latin-1"))
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
            return HttpRequest(head.method.decode(), path, query, bytes(body), headers)
        else:
            return None


def _target(target: str) -> tuple[str, dict[str, list[str]]]:
    """Return path and query of a request. Raises _RejectedError."""
    try:
        parts = urlsplit(target)
        return parts.path if parts.path == "/" else parts.path.rstrip("/"), parse_qs(parts.query)
    except ValueError as error:
        raise _RejectedError(400, "The request's target could not be parsed.") from error


def _watch_rejection(state: AgentState, request: HttpRequest) -> HttpReply | None:
    """Return the rejection of a watch request, sent before the WebSocket opens: a close code could not carry the
    reason."""
    return disabled_reply(state) if request.path == WATCH else None


async def _serve_websocket(
    connection: h11.Connection, stream: trio.abc.Stream, handler: Stream, state: AgentState, request: HttpRequest
) -> None:
    key = request.headers.get("sec-websocket-key", "")
    if request.headers.get("upgrade", "").lower() != "websocket" or not key:
        await _write_reply(
            connection, stream, message_reply(426, "This route is a WebSocket: send an upgrade request.")
        )
        return
    headers = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept_key(key))]
    with trio.fail_after(TIMEOUT):
        await stream.send_all(connection.send(h11.InformationalResponse(status_code=101, headers=headers)) or b"")
    socket = WebSocketStream(stream, client=False, initial=connection.trailing_data[0], max_message=MAX_MESSAGE)
    async with socket:
        await handler(state, request, socket)


async def _write_reply(
    connection: h11.Connection, stream: trio.abc.Stream, reply: HttpReply, *, head_only: bool = False
) -> None:
    """Write chunk by chunk, so that a large body is in memory once. Raises trio.TooSlowError when a chunk makes no
    progress."""
    headers = [("Content-Type", reply.kind), ("Content-Length", str(len(reply.body)))]
    await _send(stream, connection.send(h11.Response(status_code=reply.status, headers=headers)))
    body = b"" if head_only else reply.body
    for start in range(0, len(body), CHUNK):
        await _send(stream, connection.send(h11.Data(data=body[start : start + CHUNK])))
    await _send(stream, connection.send(h11.EndOfMessage()))


async def _send(stream: trio.abc.Stream, data: bytes | None) -> None:
    if data:
        with trio.fail_after(TIMEOUT):
            await stream.send_all(data)
