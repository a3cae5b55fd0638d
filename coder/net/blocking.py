"""A blocking HTTP client for short commands: no trio, whose import costs more than the call."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, TypeVar, overload
from urllib.parse import urlsplit

from coder.base.json_types import Json
from coder.net.blocking_http import (
    MAX_BODY,
    BadAnswerError,
    DisconnectedError,
    HttpConnection,
    TooLargeError,
    TunnelRefusedError,
    UnsentError,
)
from coder.net.errors import NetError, not_an_answer, proxy_refusal, refused_request, tls_failure
from coder.net.kept_connections import IDEMPOTENT
from coder.net.policy import (
    DialPolicy,
    common_headers,
    default_port,
    forwarding,
    is_proxy_login,
    proxy_for,
    proxy_login,
    refused_forwarding,
    tls_context,
)
from coder.net.request_log import REQUESTS

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")

REQUEST_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: dict[str, str]
    "Lower-case names."
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


class BlockingClient:
    """Keeps one connection alive between requests."""

    def __init__(self, policy: DialPolicy) -> None:
        self.policy = policy
        self._connection: HttpConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        body: bytes | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        expect: tuple[int, ...] = (200, 201, 202, 204, 304),
        limit: int = MAX_BODY,
    ) -> HttpAnswer:
        """Send a request; return its whole answer, of at most `limit` bytes.

        Raises HttpError for a status not in `expect`, NetError for a larger answer and without a usable connection.
        """
        fields = dict(common_headers(self.policy)) | dict(headers)
        if json is not None:
            import msgspec

            body = msgspec.json.encode(json)
            fields["Content-Type"] = "application/json"
        began, status = monotonic(), 0
        try:
            answer = self._exchange(method, self.policy.origin.path.rstrip("/") + path, body, fields, limit)
            status = answer.status
            REQUESTS.record_answer(answer.headers)
        finally:
            REQUESTS.note(method, self.policy.url.rstrip("/") + path, status, monotonic() - began)
        if status not in expect:
            raise refused_request(method, path, status, answer.body)
        return answer

    def _exchange(self, method: str, target: str, body: bytes | None, fields: dict[str, str], limit: int) -> HttpAnswer:
        if proxy_for(self.policy, self.policy.origin.hostname or "", self.policy.origin.scheme).startswith("https:"):
            return self._exchange_by_tls_proxy(method, target, body, fields, limit)
        if self._connection is not None and not self._connection.is_usable:
            self.close()
        is_fresh = self._connection is None
        prefix, extra = forwarding(self.policy)
        try:
            connection = self._connection = self._connection or self._open()
            sent = fields | dict(extra)
            status, headers, data, is_kept = connection.exchange(method, prefix + target, sent, body, limit)
        except TooLargeError:
            self.close()
            raise _too_large(self.policy, target, limit) from None
        except (BadAnswerError, TunnelRefusedError, OSError) as error:
            self.close()
            is_repeatable = method in IDEMPOTENT and isinstance(error, DisconnectedError | ConnectionResetError)
            if not is_fresh and (is_repeatable or isinstance(error, UnsentError)):
                # The server closed a kept connection while a request was on its way; a fresh one decides.
                return self._exchange(method, target, body, fields, limit)
            failure = _failure(self.policy, f'{method.title()} "{_masked_url(self.policy, target)}"', error)
            raise failure from (None if failure.code == "unreachable" else error)  # its message says everything
        if not is_kept:
            self.close()
        if prefix and is_proxy_login(status, headers):
            self.close()
            raise refused_forwarding(self.policy)
        return HttpAnswer(status, headers, data)

    def _open(self) -> HttpConnection:
        policy, origin = self.policy, self.policy.origin
        host, port = origin.hostname or "", origin.port or default_port(origin.scheme)
        proxy = proxy_for(policy, host, origin.scheme)
        via = urlsplit(proxy) if proxy else None
        address, tunnel = (host, port), None
        if via:
            address = (via.hostname or "", via.port or default_port(via.scheme))
            host_text = f"[{host}]" if ":" in host else host
            tunnel = (f"{host_text}:{port}", dict(proxy_login(proxy))) if origin.scheme == "https" else None
        if origin.scheme != "https":
            return HttpConnection(address, timeout=REQUEST_TIMEOUT, tunnel=tunnel)

        def tls() -> ssl.SSLContext:
            return tls_context(policy.ca_file, policy.client_cert, policy.client_key, policy.insecure)

        tls()  # unusable files are reported before dialling
        return HttpConnection(address, timeout=REQUEST_TIMEOUT, tls=tls, tunnel=tunnel, server_name=host)

    def _exchange_by_tls_proxy(
        self, method: str, target: str, body: bytes | None, fields: dict[str, str], limit: int
    ) -> HttpAnswer:
        """Send through a proxy that itself uses TLS: this client cannot do TLS inside of TLS, the other one can. Time
        limits are per step here, too: a program of 50 MB takes minutes on a slow line."""
        import trio

        from coder.base.threads import run_trio
        from coder.net.http1 import HttpClient

        common = {name for name, _ in common_headers(self.policy)}
        own_headers = [(name, value) for name, value in fields.items() if name not in common]
        path = target.removeprefix(self.policy.origin.path.rstrip("/"))

        async def once() -> HttpAnswer:
            content = bytearray()
            async with (
                HttpClient(self.policy) as client,
                client.stream(method, path, body=body, headers=own_headers, head_timeout=REQUEST_TIMEOUT) as answer,
                aclosing(answer.chunks()) as chunks,
            ):
                while True:
                    with trio.move_on_after(REQUEST_TIMEOUT) as scope:
                        chunk = await anext(chunks, None)
                    if scope.cancelled_caught:
                        raise NetError("timeout", f"{self.policy.origin.hostname} did not answer in time")
                    if chunk is None:
                        break
                    if len(content) + len(chunk) > limit:
                        raise _too_large(self.policy, target, limit)
                    content += chunk
            return HttpAnswer(answer.status, dict(answer.headers), bytes(content))

        return run_trio(once)


def _too_large(policy: DialPolicy, target: str, limit: int) -> NetError:
    return NetError("protocol", f"the answer of {_masked_url(policy, target)} is larger than {limit} bytes")


def _masked_url(policy: DialPolicy, target: str) -> str:
    """Return the URL without a login or other secrets in it."""
    from coder.net.masking import masked

    return masked(f"{policy.origin.scheme}://{policy.origin.netloc.rpartition('@')[2]}{target}")


def _failure(policy: DialPolicy, shown_address: str, error: Exception) -> NetError:
    host, origin = policy.origin.netloc.rpartition("@")[2], policy.origin
    failure = tls_failure(host, error)
    if failure is not None:
        return failure
    if isinstance(error, TimeoutError):
        return NetError("timeout", f"{host} did not answer in time", "Check the network and any firewall between.")
    proxy = urlsplit(proxy_for(policy, origin.hostname or "", origin.scheme))
    if isinstance(error, TunnelRefusedError):
        return proxy_refusal(proxy.hostname or "", host, str(error))
    if isinstance(error, OSError):
        if proxy.hostname:
            where = f"{proxy.hostname}:{proxy.port or default_port(proxy.scheme)}"
            return NetError(
                "proxy", f"cannot connect to the proxy {where}", "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY."
            )
        message = (
            f"{shown_address}: {_dial_error(origin.hostname or '', origin.port or default_port(origin.scheme), error)}"
        )
        return NetError("unreachable", message, "Is the server running, and is the URL right?")
    return NetError("protocol", f"{host} did not answer as an HTTP server")


def _dial_error(host: str, port: int, error: OSError) -> str:
    """Describe a failed connection in the words of Go's net package, which scripts match."""
    import os
    import socket

    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: no such host"
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"dial tcp {address}: connect: {reason}"
