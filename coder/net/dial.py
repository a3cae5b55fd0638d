"""Streams to a server under a dial policy: TCP, through a proxy when configured, TLS for https.

Through plain-HTTP or HTTPS proxies: `CONNECT`, or for plain HTTP the absolute form of requests (`policy.forwarding`).
Credentials in the proxy URL become Basic authorization (RFC 7617).
"""

from __future__ import annotations

import ssl
from urllib.parse import SplitResult, urlsplit

import trio

from coder.net.errors import NetError, proxy_refusal, tls_failure
from coder.net.policy import DialPolicy, default_port, proxy_for, proxy_login, tls_context

__all__ = ["DialPolicy", "connect"]


async def connect(
    policy: DialPolicy, url: str | None = None, *, forwarded: bool = False
) -> trio.abc.HalfCloseableStream:
    """Open a TCP or TLS stream to the host of `url` (default: the policy's).

    `forwarded`: a stream for plain HTTP leads to the proxy, if there is one; requests then are those of
    `policy.forwarding`. Raises NetError within `policy.timeout`.
    """
    target = urlsplit(url or policy.url)
    host = target.hostname or ""
    port = target.port or default_port(target.scheme)
    secure = target.scheme in {"https", "wss"}
    with trio.move_on_after(policy.timeout):
        stream = await _reach(policy, host, port, "https" if secure else "http", tunnel=secure or not forwarded)
        if not secure:
            return stream  # type: ignore[return-value]
        return await _secure(policy, stream, host, policy.certificate_name)  # type: ignore[return-value]
    raise NetError(
        "timeout",
        f"{host}:{port} did not answer within {policy.timeout:g} s",
        "Check the URL, the network and any firewall or proxy between.",
    )


async def _reach(policy: DialPolicy, host: str, port: int, scheme: str, *, tunnel: bool) -> trio.abc.Stream:
    proxy = proxy_for(policy, host, scheme)
    if not proxy:
        return await (
            _tcp_by_family(policy, host, port) if any(policy.by_family) else _tcp(policy.address or host, port)
        )
    parts = urlsplit(proxy)
    try:
        stream: trio.abc.Stream = await _tcp(parts.hostname or "", parts.port or default_port(parts.scheme))
    except NetError as error:
        where = f"{parts.hostname}:{parts.port or default_port(parts.scheme)}"
        hint = "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY."
        raise NetError("proxy", f"cannot connect to the proxy {where}", hint) from error
    if parts.scheme == "https":
        stream = await _secure(policy, stream, parts.hostname or "")
    if not tunnel:
        return stream
    try:
        await _tunnel(stream, policy.address or host, port, parts)
    except BaseException:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(stream)
        raise
    return stream


async def _tcp_by_family(policy: DialPolicy, host: str, port: int) -> trio.SocketStream:
    """Connect by both families at the same time, each at its own address: the first connection wins."""
    targets = [
        (host, source) if not address else (address, None)
        for address, source in zip(policy.by_family, ("0.0.0.0", "::"), strict=True)
        if address != "none"
    ]
    if not targets:
        raise NetError(
            "unreachable", f"{host} can be reached neither by IPv4 nor by IPv6", "The relay map says `none` for both."
        )
    streams: list[trio.SocketStream] = []
    failures: list[NetError] = []

    async def attempt(address: str, source: str | None) -> None:
        try:
            streams.append(await _tcp(address, port, source))
            nursery.cancel_scope.cancel()
        except NetError as error:
            failures.append(error)

    try:
        async with trio.open_nursery() as nursery:
            for address, source in targets:
                nursery.start_soon(attempt, address, source)
        if not streams:
            raise failures[0]
        return streams.pop()
    finally:
        for stream in streams:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)


async def _tcp(host: str, port: int, source: str | None = None) -> trio.SocketStream:
    """Connect from the local address `source`; that of any interface means: by this family only."""
    try:
        stream = await trio.open_tcp_stream(host, port, happy_eyeballs_delay=0.1, local_address=source)
    except (OSError, ValueError) as error:  # a zero byte in the host, a label of 64 letters
        raise NetError(
            "unreachable", f"cannot connect to {host}:{port}", "Is the server running, and is the URL right?"
        ) from error
    return stream


async def _tunnel(stream: trio.abc.Stream, host: str, port: int, proxy: SplitResult) -> None:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    for name, value in proxy_login(proxy.geturl()):
        request += f"{name}: {value}\r\n"
    await stream.send_all(request.encode() + b"\r\n")
    head = b""
    while b"\r\n\r\n" not in head:
        # Byte-wise reads would be slow and larger ones could take the peer's first bytes. After CONNECT the peer sends
        # only after a request (TLS client hello, HTTP request), so a larger read is safe.
        chunk = await stream.receive_some(4096)
        if not chunk or len(head) > 16384:
            raise NetError("proxy", f"the proxy {proxy.hostname} closed the connection")
        head += chunk
    status = head.split(b"\r\n", 1)[0].split(b" ")
    if len(status) < 2 or status[1] != b"200":
        status_line = head.split(b"\r\n", 1)[0].decode("latin-1")
        raise proxy_refusal(proxy.hostname or "", target, status_line)


async def _secure(
    policy: DialPolicy, stream: trio.abc.Stream, host: str, certificate_name: str = ""
) -> trio.SSLStream[trio.abc.Stream]:
    check_name = not policy.insecure and not certificate_name
    try:
        context = tls_context(policy.ca_file, policy.client_cert, policy.client_key, policy.insecure, check_name)
    except NetError:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(stream)
        raise
    tls = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
    try:
        await tls.do_handshake()
        if certificate_name and not policy.insecure:
            _check_name(tls, host, certificate_name)
    except (trio.BrokenResourceError, ssl.SSLError) as error:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(tls)
        failure = tls_failure(host, error)
        if failure is None:
            failure = NetError("tls", f"{host} ended the TLS handshake", "Is this an HTTPS address and port?")
        raise failure from (error.__cause__ or error)
    except BaseException:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(tls)
        raise
    return tls


def _check_name(tls: trio.SSLStream[trio.abc.Stream], host: str, name: str) -> None:
    """Check that the certificate, trusted already, is for this DNS name (RFC 9525 section 6.3). Raises NetError.

    OpenSSL would compare, but only with the requested server name, which here is another.
    """
    dns_names = [value.lower() for kind, value in tls.getpeercert().get("subjectAltName", ()) if kind == "DNS"]
    parent = name.lower().partition(".")[2]
    if name.lower() not in dns_names and not ("." in parent and f"*.{parent}" in dns_names):
        raise NetError(
            "tls", f"the certificate of {host} is not for {name}", "The relay map names another: `CertName`."
        )
