"""A blocking HTTP client for short commands: no trio, whose import costs more than the call."""

from __future__ import annotations

import base64
import http.client
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from coder.net.errors import NetError, error_from_body, proxy_refusal, tls_failure
from coder.net.policy import DialPolicy, common_headers, default_port, proxy_for, tls_context

REQUEST_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    "Lower-case names."
    body: bytes

    def json(self, kind: Any = Any) -> Any:
        import msgspec

        return msgspec.json.decode(self.body, type=kind)


class BlockingClient:
    """Keeps one connection alive between requests."""

    def __init__(self, policy: DialPolicy) -> None:
        self.policy = policy
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        body: bytes | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        expect: tuple[int, ...] = (200, 201, 202, 204, 304),
    ) -> Answer:
        """Raises HttpError for a status not in `expect`, NetError when there is no usable connection."""
        fields = dict(common_headers(self.policy)) | dict(headers)
        if json is not None:
            import msgspec

            body = msgspec.json.encode(json)
            fields["Content-Type"] = "application/json"
        answer = self._exchange(method, self.policy.origin.path.rstrip("/") + path, body, fields)
        if answer.status not in expect:
            raise error_from_body(answer.status, answer.body)
        return answer

    def _exchange(self, method: str, target: str, body: bytes | None, fields: dict[str, str]) -> Answer:
        if proxy_for(self.policy, self.policy.origin.hostname or "", self.policy.origin.scheme).startswith("https:"):
            return self._exchange_patiently(method, target, body, fields)
        fresh = self._connection is None
        connection = self._connection = self._connection or self._open()
        try:
            connection.request(method, target, body=body, headers=fields)
            response = connection.getresponse()
            data = response.read()
        except (http.client.HTTPException, OSError) as error:
            self.close()
            if not fresh and isinstance(error, http.client.RemoteDisconnected | BrokenPipeError | ConnectionResetError):
                # The server closed a kept connection meanwhile; a fresh one decides.
                return self._exchange(method, target, body, fields)
            raise _failure(self.policy, error) from error
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, data)

    def _open(self) -> http.client.HTTPConnection:
        policy, origin = self.policy, self.policy.origin
        host, port = origin.hostname or "", origin.port or default_port(origin.scheme)
        secure = origin.scheme == "https"
        proxy = proxy_for(policy, host, origin.scheme)
        via = urlsplit(proxy) if proxy else None
        at = (via.hostname or "", via.port or default_port(via.scheme)) if via else (host, port)
        connection: http.client.HTTPConnection
        if secure:
            context = tls_context(policy.ca_file, policy.client_cert, policy.client_key, policy.insecure)
            connection = http.client.HTTPSConnection(*at, timeout=REQUEST_TIMEOUT, context=context)
        else:
            connection = http.client.HTTPConnection(*at, timeout=REQUEST_TIMEOUT)
        if via:
            extra = {}
            if via.username is not None:
                pair = f"{unquote(via.username)}:{unquote(via.password or '')}"
                extra["Proxy-Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            connection.set_tunnel(host, port, headers=extra)
        return connection

    def _exchange_patiently(self, method: str, target: str, body: bytes | None, fields: dict[str, str]) -> Answer:
        """Through a proxy that itself speaks TLS: http.client cannot do TLS inside of TLS, our own client can."""
        import trio

        from coder.net.http1 import HttpClient

        common = {name for name, _ in common_headers(self.policy)}
        own = [(name, value) for name, value in fields.items() if name not in common]
        path = target.removeprefix(self.policy.origin.path.rstrip("/"))

        async def once() -> Answer:
            async with HttpClient(self.policy) as client:
                every = tuple(range(200, 600))
                answer = await client.request(method, path, body=body, headers=own, expect=every)
                return Answer(answer.status, dict(answer.headers), answer.body)

        return trio.run(once)


def _failure(policy: DialPolicy, error: Exception) -> NetError:
    host, origin = policy.origin.netloc, policy.origin
    failure = tls_failure(host, error)
    if failure is not None:
        return failure
    if isinstance(error, TimeoutError):
        return NetError("timeout", f"{host} did not answer in time", "Check the network and any firewall between.")
    said = str(error)
    proxy = urlsplit(proxy_for(policy, origin.hostname or "", origin.scheme))
    if proxy.hostname and said.startswith(_TUNNEL_REFUSED):
        return proxy_refusal(proxy.hostname, host, said.removeprefix(_TUNNEL_REFUSED).strip())
    if isinstance(error, OSError):
        if proxy.hostname:
            where = f"{proxy.hostname}:{proxy.port or default_port(proxy.scheme)}"
            return NetError(
                "proxy", f"cannot connect to the proxy {where}", "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY."
            )
        return NetError("unreachable", f"cannot connect to {host}", "Is the server running, and is the URL right?")
    return NetError("protocol", f"{host} did not answer as an HTTP server")


_TUNNEL_REFUSED = "Tunnel connection failed: "
"How http.client begins what it raises then."
