"""A small HTTP/1.1 client on trio and h11: keep-alive, JSON envelopes, streamed bodies, upgrades.

Not here: redirects across hosts (an API client must not carry its token there), cookies, caching.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TypeVar, overload
from urllib.parse import urlsplit

import h11
import trio

from coder.base.json_types import Json
from coder.net import blocking_http
from coder.net.bounded_http import BoundedHttp, HttpEvent
from coder.net.dial import connect
from coder.net.errors import (
    NetError,
    UnansweredUpgrade,
    error_from_body,
    not_an_answer,
    refused_request,
    tls_failure,
)
from coder.net.kept_connections import IDEMPOTENT, is_quiet
from coder.net.masking import masked
from coder.net.policy import DialPolicy, common_headers, forwarding, is_proxy_login, refused_forwarding
from coder.net.request_log import REQUESTS

T = TypeVar("T")
Headers = Iterable[tuple[str, str]]

MAX_BODY = blocking_http.MAX_BODY
"Bytes of a response kept in memory; larger ones must be streamed. For a trusted server; others get a `limit`."
MAX_REFUSAL = 64 << 10
"Bytes of a refusal of an upgrade; the rest is not awaited."
REQUEST_TIMEOUT = 60.0
UPGRADE_TIMEOUT = 15.0
"Seconds for the answer to an upgrade: servers query their database first, but a lost request must be noticed."


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    "Lower-case names; repeated headers joined by a comma."
    body: bytes

    @overload
    def json(self) -> Json: ...
    @overload
    def json(self, kind: type[T]) -> T: ...
    def json(self, kind: type[T] | None = None) -> T | Json:
        """Decode the body. Raises NetError when it is no JSON of that type."""
        import msgspec

        try:
            if kind is not None:
                return msgspec.json.decode(self.body, type=kind)
            document: Json = msgspec.json.decode(self.body)
            return document
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise not_an_answer(self.headers.get("content-type", "")) from error


class _UnsentError(trio.BrokenResourceError):
    """The connection broke before the head of a request was sent."""


class _Connection:
    __slots__ = ("h11", "stream")

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.h11 = BoundedHttp(h11.CLIENT, max_incomplete_event_size=64 << 10)

    @property
    def is_usable(self) -> bool:
        """Whether a kept connection shows no sign of the server's end."""
        stream = self.stream
        while isinstance(stream, trio.SSLStream):
            stream = stream.transport_stream
        if not isinstance(stream, trio.SocketStream):
            return True
        descriptor = stream.socket.fileno()
        return descriptor >= 0 and is_quiet(descriptor)

    async def next_event(self) -> HttpEvent:
        return await self.h11.read_event(self.stream)

    async def send(self, event: h11.Event) -> None:
        data = self.h11.send(event)
        if data:
            await self.stream.send_all(data)


class HttpClient:
    """Client of one server under one dial policy; connections are kept for the next request."""

    def __init__(self, policy: DialPolicy, *, keep: int = 4) -> None:
        self.policy = policy
        self._idle: list[_Connection] = []
        self._keep = keep

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            await trio.aclose_forcefully(connection.stream)

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        body: bytes | None = None,
        headers: Headers = (),
        expect: tuple[int, ...] = (200, 201, 202, 204, 304),
        timeout: float = REQUEST_TIMEOUT,
        limit: int | None = None,
    ) -> HttpResponse:
        """Send a request; return its whole answer, of at most `limit` bytes (MAX_BODY).

        `json` is encoded with msgspec. Raises HttpError for a status not in `expect`, NetError otherwise.
        """
        limit = MAX_BODY if limit is None else limit
        extra = list(headers)
        if json is not None:
            import msgspec

            body = msgspec.json.encode(json)
            extra.append(("Content-Type", "application/json"))
        began, status = trio.current_time(), 0
        try:
            with trio.move_on_after(timeout):
                response = await self._read_whole(method, path, body, extra, limit)
                status = response.status
                if status not in expect:
                    retry_after = response.headers.get("retry-after", "")
                    raise refused_request(method, path, status, response.body, retry_after)
                return response
        finally:
            REQUESTS.note(method, self.policy.url.rstrip("/") + path, status, trio.current_time() - began)
        raise NetError("timeout", f"{method} {masked(path)} was not answered within {timeout:g} s")

    async def _read_whole(
        self, method: str, path: str, body: bytes | None, headers: list[tuple[str, str]], limit: int
    ) -> HttpResponse:
        async with self.stream(method, path, body=body, headers=headers, head_timeout=math.inf) as answer:
            content = await answer.first(limit + 1)
            if len(content) > limit:
                message = f"the answer to {method} {masked(path)} is larger than {limit} bytes"
                raise NetError("protocol", message)
            return HttpResponse(answer.status, answer.headers, content)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Headers = (),
        head_timeout: float = REQUEST_TIMEOUT,
    ) -> AsyncIterator[StreamedResponse]:
        """Yield the answer's head immediately, its body by `chunks()`. The connection is reused when the body was read.

        Raises NetError when no head comes within `head_timeout` seconds of the request; the caller limits the time of a
        body.
        """
        connection, event = await self._exchange(method, path, body, list(headers), head_timeout)
        answer = StreamedResponse(connection, event)
        try:
            yield answer
        except BaseException:
            await _drop(connection)
            raise
        parser = connection.h11
        is_whole = answer.finished and parser.our_state is h11.DONE and parser.their_state is h11.DONE
        if is_whole and not parser.trailing_data[0]:  # the rest would be read as the next request's answer
            parser.start_next_cycle()
            if len(self._idle) < self._keep:
                self._idle.append(connection)
                return
        await _drop(connection)

    async def _exchange(
        self, method: str, path: str, body: bytes | None, headers: list[tuple[str, str]], head_timeout: float
    ) -> tuple[_Connection, h11.Response]:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_usable:
                await _drop(connection)
                continue
            try:
                return connection, await self._send(connection, method, path, body, headers, head_timeout)
            except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError) as error:
                # The server may close a kept connection while a request is on its way; a fresh one decides.
                await _drop(connection)
                if method not in IDEMPOTENT and not isinstance(error, _UnsentError):
                    raise _no_answer(self.policy, error) from error
            except BaseException:
                await _drop(connection)
                raise
        connection = _Connection(await connect(self.policy, forwarded=True))
        try:
            return connection, await self._send(connection, method, path, body, headers, head_timeout)
        except (trio.BrokenResourceError, h11.RemoteProtocolError) as error:
            await _drop(connection)
            raise _no_answer(self.policy, error) from error
        except BaseException:
            await _drop(connection)
            raise

    async def _send(
        self,
        connection: _Connection,
        method: str,
        path: str,
        body: bytes | None,
        headers: list[tuple[str, str]],
        head_timeout: float,
    ) -> h11.Response:
        prefix, extra = forwarding(self.policy)
        fields = request_fields(self.policy, [*headers, *extra])
        if body is not None or method in {"POST", "PUT", "PATCH"}:
            fields.append(("Content-Length", str(len(body or b""))))
        target = prefix + target_of(self.policy, path)
        try:
            await connection.send(h11.Request(method=method, target=target, headers=fields))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise _UnsentError from error
        # A server that refuses a large body answers early, and closes (RFC 9112 section 9.6). Its answer can be read;
        # without an answer the reading fails as the sending did.
        with suppress(trio.BrokenResourceError):
            if body:
                await connection.send(h11.Data(data=body))
            await connection.send(h11.EndOfMessage())
        with trio.move_on_after(head_timeout):
            while True:
                event = await connection.next_event()
                if isinstance(event, h11.Response):
                    names = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
                    if prefix and is_proxy_login(event.status_code, names):
                        raise refused_forwarding(self.policy)
                    return event
                if isinstance(event, h11.ConnectionClosed):
                    raise h11.RemoteProtocolError("closed before a response")
        raise NetError("timeout", f"{method} {masked(path)} was not answered within {head_timeout:g} s")


class StreamedResponse:
    """Head of an answer, with access to its body."""

    def __init__(self, connection: _Connection, head: h11.Response) -> None:
        self._connection = connection
        self.status: int = head.status_code
        self.headers = header_mapping(head)
        REQUESTS.record_answer(self.headers)
        self.finished = False

    async def first(self, size: int) -> bytes:
        """Return the body, or the first `size` bytes of a longer one; in one buffer, as pieces may be single bytes."""
        content = bytearray()
        async with aclosing(self.chunks()) as pieces:
            async for piece in pieces:
                content += piece
                if len(content) >= size:
                    break
        return bytes(content[:size])

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield body pieces as they arrive. Raises NetError when the body is cut off."""
        try:
            while True:
                event = await self._connection.next_event()
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    self.finished = True
                    return
                else:
                    raise NetError("protocol", "the connection closed in the middle of an answer")
        except (h11.RemoteProtocolError, trio.BrokenResourceError) as error:
            raise NetError("protocol", "the connection broke in the middle of an answer") from error


def header_mapping(head: h11.Response | h11.InformationalResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in head.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def request_fields(policy: DialPolicy, headers: Headers) -> list[tuple[str, str]]:
    return common_headers(policy) + list(headers)


def target_of(policy: DialPolicy, path: str) -> str:
    """Return the request target: the base URL's path in front of `path`."""
    return urlsplit(policy.url).path.rstrip("/") + path


async def upgrade(
    policy: DialPolicy, path: str, headers: Headers, timeout: float = UPGRADE_TIMEOUT
) -> tuple[trio.abc.Stream, dict[str, str], bytes]:
    """Send an upgrade request. Return (stream, response headers, bytes already read past the head).

    Raises HttpError when the server answers anything but 101, NetError when no usable answer comes in time.
    """
    prefix, extra = "", list[tuple[str, str]]()
    try:
        connection = _Connection(await connect(policy))
    except NetError as error:
        # The proxy may refuse CONNECT to this port, and forward the request itself.
        prefix, extra = forwarding(policy)
        if error.code != "proxy" or not prefix:
            raise
        connection = _Connection(await connect(policy, forwarded=True))
    with trio.move_on_after(timeout):
        return await _upgraded(policy, connection, prefix + target_of(policy, path), [*headers, *extra])
    raise UnansweredUpgrade("timeout", f"{masked(policy.url)} did not answer an upgrade within {timeout:g} s")


async def _upgraded(
    policy: DialPolicy, connection: _Connection, target: str, headers: Headers
) -> tuple[trio.abc.Stream, dict[str, str], bytes]:
    try:
        fields = request_fields(policy, headers)
        await connection.send(h11.Request(method="GET", target=target, headers=fields))
        await connection.send(h11.EndOfMessage())
        event = await connection.next_event()
        while isinstance(event, h11.InformationalResponse) and event.status_code != 101:
            event = await connection.next_event()
        if isinstance(event, h11.InformationalResponse):
            answered = header_mapping(event)
            REQUESTS.record_answer(answered)
            return connection.stream, answered, connection.h11.trailing_data[0]
        if not isinstance(event, h11.Response):
            raise NetError("protocol", f"{masked(policy.url)} closed the connection instead of upgrading it")
        answer = StreamedResponse(connection, event)
        body = await answer.first(MAX_REFUSAL)
        raise error_from_body(answer.status, body, answer.headers.get("retry-after", ""))
    except (trio.BrokenResourceError, h11.RemoteProtocolError) as error:
        await _drop(connection)
        raise _no_answer(policy, error) from error
    except BaseException:
        await _drop(connection)
        raise


def _no_answer(policy: DialPolicy, error: BaseException) -> NetError:
    # With TLS 1.3 a server rejects a missing client certificate only after the handshake.
    failure = tls_failure(policy.origin.netloc, error)
    return failure or NetError("protocol", f"{masked(policy.url)} did not answer as an HTTP server")


async def _drop(connection: _Connection) -> None:
    with trio.CancelScope(shield=True):
        await trio.aclose_forcefully(connection.stream)
