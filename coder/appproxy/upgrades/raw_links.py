"""Entry of our own processes: raw streams after an HTTP/1.1 request head.

The listener hands over a connection whose request path is in the table of links. A handler gets an `Upgrade`: the
request, and three ways to answer it. Refusals raised before an answer become the error envelope; after it they only end
the connection. Not here: identification of the caller (`services/access/authentication.py`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Never, Protocol, cast
from urllib.parse import parse_qs, unquote

import h11
import trio

from coder.api.base import codec
from coder.appproxy.http.connection_shares import authenticated_as
from coder.appproxy.http.rate_limits import BYPASS_HEADER, NO_ANSWER, Counted, RateLimits, key_of, user_key
from coder.appproxy.upgrades.handshake import explain_handshake
from coder.base.log import STRANGERS_LINES, get_logger
from coder.domain.access.credentials import Credentials
from coder.domain.access.rate_budgets import Budget, budgets_of
from coder.domain.access.route_scopes import BY_SECRET, Scope, named
from coder.domain.access.signed_in import is_for_signed_in
from coder.net.stream_wrapper import StreamWrapper

if TYPE_CHECKING:
    from coder.appproxy.http.rate_limits import SignedIn
    from coder.net.websocket import WebSocketStream

_log = get_logger("rpc_endpoints", per_minute=STRANGERS_LINES)


@dataclass(frozen=True, slots=True)
class UpgradeRequest:
    """Parsed request head."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    """Lower-case names; repeated headers are joined by a comma."""
    remote_ip: str
    secure: bool = False
    """Whether it used TLS."""

    def first(self, name: str, default: str = "") -> str:
        """Return the first value of a query key."""
        values = self.query.get(name)
        return values[0] if values else default

    def without_fields(self) -> UpgradeRequest:
        """Return what is needed while a link is open: it may last for months, and headers are kilobytes."""
        return replace(self, query={}, headers={})

    @property
    def credentials(self) -> Credentials:
        """Return the caller's credentials."""
        return Credentials.of(self.headers, self.query, self.remote_ip)


UPGRADED = 101
"""Status of a response after which the connection belongs to the handler."""


class HandshakeRefused(Exception):  # noqa: N818 - the caller has heard it already
    """The request was answered with a refusal; the handler has nothing left to do."""


class Upgrade:
    """Request that waits for its answer; exactly one of the three methods may be called.

    `request` has no headers and no query after an answer that opens a link: handlers read them before.
    """

    def __init__(
        self,
        request: UpgradeRequest,
        params: Mapping[str, str],
        stream: trio.abc.HalfCloseableStream,
        trailing: bytes,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.request = request
        self.params = params
        self.answered = False
        self.anonymous = False
        """Set by links without authentication: they get a smaller share of scarce resources."""
        self.on_answer: Callable[[int], None] = lambda _status: None
        """Called with the status of the answer."""
        self.count: Count = _uncounted
        """Counts the request; raises RateLimited, PreconditionRequired."""
        self.counted = Counted()
        self._stream = stream
        self._trailing = trailing
        self._headers = list(headers)

    def add_headers(self, headers: Iterable[tuple[str, str]]) -> None:
        """Add headers to every answer."""
        self._headers += headers

    async def reject(self, status: int, body: object, headers: Sequence[tuple[str, str]] = ()) -> None:
        """Answer with JSON and close the connection. `body` is anything msgspec encodes, or ready bytes."""
        data = body if isinstance(body, bytes) else codec.encode(body)
        fields = [
            ("content-type", "application/json; charset=utf-8"),
            ("content-length", str(len(data))),
            ("connection", "close"),
            *headers,
        ]
        await self._answer(status, fields)
        await self._stream.send_all(data)
        await self._stream.aclose()

    async def accept_websocket(
        self,
        subprotocol: str | None = None,
        max_message: int | None = None,
        *,
        binary_only: bool = False,
        any_origin: bool = False,
    ) -> WebSocketStream:
        """Answer 101 and return the WebSocket. For an invalid handshake, answer and raise HandshakeRefused."""
        from coder.net.websocket import WebSocketStream, accept_key

        await self.require_handshake(any_origin=any_origin)
        key = self.request.headers["sec-websocket-key"]
        fields = [("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-accept", accept_key(key))]
        if subprotocol:
            fields.append(("sec-websocket-protocol", subprotocol))
        await self._answer(101, fields)
        return WebSocketStream(
            self._stream,
            client=False,
            subprotocol=subprotocol or "",
            initial=self._trailing,
            max_message=max_message,
            binary_only=binary_only,
        )

    async def require_handshake(self, *, any_origin: bool = False) -> None:
        """Validate the handshake before work that a refusal would waste. Answers and raises HandshakeRefused."""
        refusal = explain_handshake(self.request.method, self.request.headers, any_origin=any_origin)
        if refusal is not None:
            fields = [("content-type", "text/plain; charset=utf-8"), *refusal.headers]
            await self.answer(refusal.status, refusal.body, fields)
            raise HandshakeRefused(refusal.text)

    async def accept_raw(
        self, headers: Sequence[tuple[str, str]] = (), *, fast: bool = False
    ) -> trio.abc.HalfCloseableStream:
        """Answer 101 with the given headers (`Upgrade` among them) and return the bare byte stream.

        `fast` leaves the response out altogether (DERP fast start: the client does not wait for it).
        """
        if fast:
            self._report_status(101)
        else:
            await self._answer(101, [("connection", "Upgrade"), *headers])
        return ReplayStream(self._stream, self._trailing) if self._trailing else self._stream

    async def answer(self, status: int, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> None:
        """Send any other complete response; close the connection."""
        await self._answer(status, [("content-length", str(len(body))), ("connection", "close"), *headers])
        await self._stream.send_all(body)
        await self._stream.aclose()

    async def _answer(self, status: int, fields: Iterable[tuple[str, str]]) -> None:
        if self.answered:
            raise RuntimeError("the request was answered already")
        reason = _REASONS.get(status, "")
        lines = [f"HTTP/1.1 {status} {reason}"]
        lines += [f"{name}: {value}" for name, value in (*self._headers, *fields)]
        self._report_status(status)  # forgets them
        await self._stream.send_all("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def _report_status(self, status: int) -> None:
        self.answered = True
        self.counted.settle(status)
        self.on_answer(status)
        if status == UPGRADED:
            self.request, self.params, self._headers = self.request.without_fields(), {}, []
            self.forget_count()

    def forget_count(self) -> None:
        """Forget how the request is counted. `draw_on`'s function refers to this upgrade: only the collector would
        free the two."""
        self.count = _uncounted


async def _uncounted(who: SignedIn | str | None, *, guess: bool = False) -> None:
    pass


class Count(Protocol):
    """Counts one request, see `draw_on`."""

    async def __call__(self, who: SignedIn | str | None, *, guess: bool = False) -> None: ...


_REASONS = {
    101: "Switching Protocols",
    200: "OK",
    204: "No Content",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    426: "Upgrade Required",
    428: "Precondition Required",
    429: "Too Many Requests",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

LinkHandler = Callable[[Never, Upgrade], Awaitable[object]]
"""Gets the server's `Context`, at a workspace proxy its world, and runs for as long as the link is open; returning
closes the stream."""


@dataclass(frozen=True, slots=True)
class RpcEndpoint:
    """Path and the callers it accepts."""

    pattern: str
    "`/api/v2/workspaceagents/{id}/coordinate`"
    handler: LinkHandler
    scope: Scope
    """Scope that the handler itself checks: credentials come in more than one form here."""
    refuses: tuple[int, ...] = ()
    """Statuses of refusals besides those of the scope."""
    budgets: tuple[Budget, ...] = ()
    """Budgets of requests per minute. Counted before the handler runs; by the handler if a session or a secret is
    required."""


@dataclass(slots=True)
class EndpointTable:
    """Path patterns and their handlers."""

    routes: list[tuple[re.Pattern[str], RpcEndpoint]] = field(default_factory=list)
    _beginnings: tuple[str, ...] = ()
    """Prefixes of all routes' paths: this is checked for every request of the API."""

    def add(
        self,
        pattern: str,
        handler: LinkHandler,
        *,
        scope: Scope,
        refuses: Sequence[int] = (),
        budgets: Sequence[Budget] = (),
    ) -> None:
        """Add a route. Raises LookupError when no budget is declared and none follows from the pattern."""
        expression = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern)
        endpoint = RpcEndpoint(pattern, handler, scope, tuple(refuses), budgets_of(pattern, budgets))
        self.routes.append((re.compile(expression), endpoint))
        beginning = re.match(r"[\w/-]*", pattern)
        self._beginnings = (*self._beginnings, beginning[0] if beginning else "")

    @property
    def endpoints(self) -> list[RpcEndpoint]:
        """Return all endpoints in the order they were added."""
        return [endpoint for _, endpoint in self.routes]

    def find(self, path: str) -> tuple[RpcEndpoint, dict[str, str]] | None:
        """Return the endpoint that matches `path`, and its parameters, percent-decoded: none of them has a zero byte,
        which no name contains, and which a database refuses."""
        if not path.startswith(self._beginnings):
            return None
        for expression, endpoint in self.routes:
            match = expression.fullmatch(path)
            if match:
                values = {name: unquote(value) for name, value in match.groupdict().items()}
                return None if any("\0" in value for value in values.values()) else (endpoint, values)
        return None


class ReplayStream(StreamWrapper):
    """Stream whose first bytes were read already."""

    def __init__(self, stream: trio.abc.HalfCloseableStream, first: bytes) -> None:
        super().__init__(stream)
        self._first = first

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if self._first:
            await trio.lowlevel.checkpoint()
            take = len(self._first) if max_bytes is None else max_bytes
            data, self._first = self._first[:take], self._first[take:]
            return data
        return await super().receive_some(max_bytes)


def path_of(request: h11.Request) -> str:
    """Return the path of a parsed head, unchanged."""
    return request.target.decode("latin-1").partition("?")[0]


def upgrade_request(request: h11.Request, remote_ip: str, secure: bool) -> UpgradeRequest:
    """Return the value form of a parsed head."""
    path, _, query = request.target.decode("latin-1").partition("?")
    headers: dict[str, str] = {}
    for raw_name, raw_value in request.headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        separator = "; " if name == "cookie" else ", "
        headers[name] = f"{headers[name]}{separator}{value}" if name in headers else value
    return UpgradeRequest(
        request.method.decode("latin-1"), path, parse_qs(query, keep_blank_values=True), headers, remote_ip, secure
    )


Explain = Callable[[BaseException], tuple[int, bytes, list[tuple[str, str]]]]


def draw_on(limits: RateLimits, endpoint: RpcEndpoint, upgrade: Upgrade) -> None:
    """Prepare the count of the request: by the caller once identified, or by the address. A `guess` counts toward the
    refusal budgets, before a user-chosen secret is checked; everything else toward the others."""
    request = upgrade.request

    async def count(who: SignedIn | str | None, *, guess: bool = False) -> None:
        if who is not None and not guess:
            authenticated_as(who if isinstance(who, str) else user_key(who.subject.user_id))
        if not limits.enabled:
            return
        wants_bypass = who is not None and request.headers.get(BYPASS_HEADER.lower()) == "true"
        key, address = key_of(who, request.remote_ip, wants_bypass), request.remote_ip
        budgets = [budget for budget in endpoint.budgets if bool(budget.refused) == guess]
        upgrade.counted = await limits.enter(key, request.path, budgets, route=endpoint.pattern, address=address)
        upgrade.add_headers(upgrade.counted.headers)

    upgrade.count = count


def _handler(handler: LinkHandler) -> Callable[[object, Upgrade], Awaitable[object]]:
    """Return a handler as it is called: with the server or proxy that it was declared for."""
    return cast("Callable[[object, Upgrade], Awaitable[object]]", handler)


async def serve_endpoint(
    ctx: object,
    endpoint: RpcEndpoint,
    upgrade: Upgrade,
    stream: trio.abc.Stream,
    explain: Explain,
    sign_in: LinkHandler | None = None,
) -> None:
    """Run one handler to its end. Never raises except for cancellation; the stream is closed afterwards.

    `sign_in` refuses unauthenticated callers before a wrong method, where only signed-in callers may learn of it.
    """
    try:
        if not named(endpoint.scope) and endpoint.scope not in BY_SECRET:
            await upgrade.count(None)
        if upgrade.request.method != "GET":
            if sign_in is not None and is_for_signed_in(upgrade.request.path):
                await _handler(sign_in)(ctx, upgrade)
            await upgrade.answer(405, b"", [("allow", "GET")])
        else:
            await _handler(endpoint.handler)(ctx, upgrade)
    except (trio.BrokenResourceError, trio.ClosedResourceError, HandshakeRefused):
        pass  # the peer disconnected or was disconnected; links end like this every day
    except Exception as error:
        await _refuse(upgrade, error, explain)
    finally:
        upgrade.counted.settle(NO_ANSWER)
        upgrade.forget_count()
        await trio.aclose_forcefully(stream)


async def _refuse(upgrade: Upgrade, error: Exception, explain: Explain) -> None:
    if upgrade.answered:
        _log.warn("a link ended with an error", path=upgrade.request.path, error=error)
        return
    status, body, headers = explain(error)
    try:
        await upgrade.reject(status, body, headers)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # it disconnected before it was refused
