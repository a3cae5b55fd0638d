"""One dial policy for API, RPC and relay: where to connect, through which proxy, with which TLS and headers.

Proxies follow the usual environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, upper or lower case). Only
`CONNECT` through plain-HTTP or HTTPS proxies is spoken; credentials in the proxy URL become Basic authorization
(RFC 7617).
"""

from __future__ import annotations

import base64
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from urllib.parse import SplitResult, unquote, urlsplit

import trio

from coder.base.config import process_environment
from coder.base.secret import Secret
from coder.net.errors import NetError

CONNECT_TIMEOUT = 10.0
"Seconds for TCP, proxy and TLS together; upstream's relay dialler uses the same."


@dataclass(frozen=True, slots=True)
class DialPolicy:
    """Everything that decides how a server is reached."""

    url: str
    "Base URL, scheme http or https."
    token: Secret | None = None
    "Session or agent token; sent as `token_header`."
    token_header: str = "Coder-Session-Token"  # noqa: S105 - a header name
    headers: tuple[tuple[str, str], ...] = ()
    "Extra headers of the user, sent on every request including upgrades."
    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    insecure: bool = False
    proxies: Mapping[str, str] = field(default_factory=lambda: environment_proxies(process_environment()))
    "`http`, `https`, `no` -> value; empty mapping means never a proxy."
    timeout: float = CONNECT_TIMEOUT

    def with_token(self, token: Secret | None) -> DialPolicy:
        return replace(self, token=token)

    def request_headers(self) -> list[tuple[str, str]]:
        found = list(self.headers)
        if self.token:
            found.append((self.token_header, self.token.reveal()))
        return found

    @property
    def origin(self) -> SplitResult:
        return urlsplit(self.url)


def environment_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Proxy settings of an environment; lower-case names win, as in curl."""
    found: dict[str, str] = {}
    for key, names in (
        ("http", ("http_proxy",)),  # HTTP_PROXY upper-case is unsafe under CGI; we are never a CGI, so read it below
        ("https", ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")),
        ("no", ("no_proxy", "NO_PROXY")),
    ):
        for name in names if key != "http" else ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            if env.get(name):
                found[key] = env[name]
                break
    return found


def proxy_for(policy: DialPolicy, host: str, scheme: str) -> str:
    """The proxy URL for a host, or an empty string. Loopback hosts never go through a proxy."""
    proxy = policy.proxies.get(scheme, "")
    if not proxy or _is_loopback(host) or _bypassed(host, policy.proxies.get("no", "")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bypassed(host: str, no_proxy: str) -> bool:
    for raw in no_proxy.split(","):
        entry = raw.strip().lower()
        if entry == "*":
            return True
        if not entry:
            continue
        if "/" in entry:
            try:
                if ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                continue
        bare = entry.lstrip(".").split(":")[0]
        if host.lower() == bare or host.lower().endswith(f".{bare}"):
            return True
    return False


def default_port(scheme: str) -> int:
    return 443 if scheme in {"https", "wss"} else 80


async def connect(policy: DialPolicy, url: str | None = None) -> trio.abc.HalfCloseableStream:
    """A TCP or TLS stream to the host of `url` (default: the policy's). Raises NetError within `policy.timeout`."""
    target = urlsplit(url or policy.url)
    host = target.hostname or ""
    port = target.port or default_port(target.scheme)
    secure = target.scheme in {"https", "wss"}
    with trio.move_on_after(policy.timeout):
        stream = await _reach(policy, host, port, "https" if secure else "http")
        if not secure:
            return stream  # type: ignore[return-value]
        return await _secure(policy, stream, host)  # type: ignore[return-value]
    raise NetError(
        "timeout",
        f"{host}:{port} did not answer within {policy.timeout:g} s",
        "Check the URL, the network and any firewall or proxy between.",
    )


async def _reach(policy: DialPolicy, host: str, port: int, scheme: str) -> trio.abc.Stream:
    proxy = proxy_for(policy, host, scheme)
    if not proxy:
        return await _tcp(host, port)
    parts = urlsplit(proxy)
    stream: trio.abc.Stream = await _tcp(parts.hostname or "", parts.port or default_port(parts.scheme))
    if parts.scheme == "https":
        stream = await _secure(policy, stream, parts.hostname or "")
    try:
        await _tunnel(stream, host, port, parts)
    except BaseException:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(stream)
        raise
    return stream


async def _tcp(host: str, port: int) -> trio.SocketStream:
    try:
        stream = await trio.open_tcp_stream(host, port, happy_eyeballs_delay=0.1)
    except OSError as error:
        raise NetError(
            "unreachable", f"cannot connect to {host}:{port}", "Is the server running, and is the URL right?"
        ) from error
    return stream


async def _tunnel(stream: trio.abc.Stream, host: str, port: int, proxy: SplitResult) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.username is not None:
        pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        request += f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"
    await stream.send_all(request.encode() + b"\r\n")
    head = b""
    while b"\r\n\r\n" not in head:
        # Byte-wise reads would be slow and bigger ones could eat the peer's first bytes; after CONNECT the peer
        # speaks only when spoken to (TLS client hello, HTTP request), so a larger read is safe.
        chunk = await stream.receive_some(4096)
        if not chunk or len(head) > 16384:
            raise NetError("proxy", f"the proxy {proxy.hostname} closed the connection")
        head += chunk
    status = head.split(b"\r\n", 1)[0].split(b" ")
    if len(status) < 2 or status[1] != b"200":
        said = head.split(b"\r\n", 1)[0].decode("latin-1")
        hint = "Put user and password into the proxy URL." if b"407" in status else "Check HTTPS_PROXY and NO_PROXY."
        raise NetError("proxy", f"the proxy {proxy.hostname} refused the connection to {target} ({said})", hint)


async def _secure(policy: DialPolicy, stream: trio.abc.Stream, host: str) -> trio.SSLStream[trio.abc.Stream]:
    context = _context(policy.ca_file, policy.client_cert, policy.client_key, policy.insecure)
    tls = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
    try:
        await tls.do_handshake()
    except (trio.BrokenResourceError, ssl.SSLError) as error:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(tls)
        cause = error.__cause__ or error
        raise NetError(
            "tls",
            f"no secure connection to {host}",
            "Is this an HTTPS address? For a private authority set SSL_CERT_FILE to its certificate.",
        ) from cause
    except BaseException:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(tls)
        raise
    return tls


@lru_cache(maxsize=8)
def _context(ca_file: str, cert: str, key: str, insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file or None)
    if ca_file:
        context.load_default_certs()
    # WebSockets and upgrades live on HTTP/1.1 only.
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert:
        context.load_cert_chain(cert, key or None)
    return context
