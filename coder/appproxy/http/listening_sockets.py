"""Listening sockets of a server or a workspace proxy: plain and TLS, with every configured certificate."""

from __future__ import annotations

import errno
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

from coder.appproxy.settings import ListenerSettings
from coder.base.errors import CoderError
from coder.domain.network.tls_ciphers import cipher_list

ClientStream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
ClientListener = trio.SocketListener | trio.SSLListener[trio.SocketStream]
BACKLOG = 4096
"""Connections that may wait to be accepted; Linux allows as many as net.core.somaxconn, 4,096 by default."""


async def open_listeners(config: ListenerSettings) -> list[tuple[str, ClientListener]]:
    """Bind every configured address; return pairs of URL and listener, plain HTTP first.

    Raises CoderError `address_in_use` / `bad_address` / `bad_certificate`.
    """
    opened: list[tuple[str, ClientListener]] = []
    context = tls_context(config) if config.tls_enable else None  # before a socket that a bad file would leave open
    if config.http_address:
        opened += [(url, listener) for url, listener in await _bind(config.http_address, "http")]
    if context is not None:
        for url, listener in await _bind(config.tls_address, "https"):
            opened.append((url, trio.SSLListener(listener, context, https_compatible=True)))
    return opened


async def _bind(address: str, scheme: str) -> list[tuple[str, trio.SocketListener]]:
    host, port = split_address(address)
    try:
        listeners = await trio.open_tcp_listeners(port, host=host or None, backlog=BACKLOG)
    except OSError as error:
        raise _cannot_listen(address, error) from error
    if host == "" and port == 0 and len(listeners) > 1:
        for extra in listeners[1:]:
            await extra.aclose()
        listeners = listeners[:1]
    return [(f"{scheme}://{display_address(listener.socket.getsockname())}", listener) for listener in listeners]


def bind_sockets(address: str) -> list[socket.socket]:
    """Return listening sockets like those of `open_listeners`, without an event loop: for a process that forks those
    that accept. Raises CoderError `address_in_use` / `bad_address`."""
    host, port = split_address(address)
    opened: list[socket.socket] = []
    try:
        for family, kind, number, _, where in socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            try:
                listening = socket.socket(family, kind, number)
            except OSError as error:
                if error.errno == errno.EAFNOSUPPORT:
                    continue  # a system without IPv6
                raise
            opened.append(listening)
            if sys.platform != "win32":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind(where)
            listening.listen(BACKLOG)
            listening.setblocking(False)
            if host == "" and port == 0:
                break
    except OSError as error:
        for listening in opened:
            listening.close()
        raise _cannot_listen(address, error) from error
    return opened


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of `host:port`. Raises CoderError `bad_address`."""
    host, _, port_text = address.rpartition(":")
    if not port_text.isdigit():
        raise CoderError("bad_address", f"{address!r} is not host:port", "Write it like 127.0.0.1:3000.")
    return host.strip("[]"), int(port_text)


def _cannot_listen(address: str, error: OSError) -> CoderError:
    if error.errno in {errno.EACCES, errno.EPERM}:
        way = "Ports below 1024 need root or CAP_NET_BIND_SERVICE. Choose another --http-address."
    elif isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        way = "This machine has no such address. Write it like 127.0.0.1:3000 or 0.0.0.0:3000."
    else:
        way = "Is another server running there? Choose another --http-address."
    return CoderError("address_in_use", f"cannot listen on {address}", way)


def display_address(name: Sequence[str | int]) -> str:
    """Return `host:port` of a socket's address."""
    host = f"[{name[0]}]" if ":" in str(name[0]) else name[0]
    return f"{host}:{name[1]}"


_VERSIONS = {"tls10": ssl.TLSVersion.TLSv1, "tls11": ssl.TLSVersion.TLSv1_1, "tls12": ssl.TLSVersion.TLSv1_2}


def tls_context(config: ListenerSettings) -> ssl.SSLContext:
    """Return server-side TLS with every configured certificate, chosen by server name. Raises CoderError."""
    contexts = []
    for certificate, key in zip(config.tls_cert_file, config.tls_key_file, strict=True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = _VERSIONS.get(config.tls_min_version, ssl.TLSVersion.TLSv1_3)
        context.set_alpn_protocols(["http/1.1"])
        _choose_ciphers(context, config)
        try:
            context.load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise CoderError(
                "bad_certificate",
                f"the TLS certificate {certificate} with key {key} cannot be loaded",
                "Check that both are PEM files of one pair.",
            ) from error
        _ask_clients(context, config)
        contexts.append((_names(Path(certificate)), context))
    first = contexts[0][1]
    if len(contexts) > 1:
        first.sni_callback = _chooser(contexts)
    return first


def _choose_ciphers(context: ssl.SSLContext, config: ListenerSettings) -> None:
    """Set the offered suites of TLS 1.2. Raises CoderError."""
    if not config.tls_ciphers:
        return
    try:
        if config.tls_min_version == "tls13":
            raise ValueError("suites can be chosen for TLS 1.2 only, and --tls-min-version is tls13")
        context.set_ciphers(cipher_list(config.tls_ciphers, allow_weak=config.tls_allow_insecure_ciphers))
    except (ValueError, ssl.SSLError) as error:
        # An SSLError is an OSError, and OpenSSL's words ("no cipher match") explain nothing.
        why = "the installed OpenSSL has none of them" if isinstance(error, ssl.SSLError) else str(error)
        raise CoderError(
            "bad_ciphers",
            f"the cipher suites of --tls-ciphers cannot be used: {why}",
            "Name suites as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, or leave the option away.",
        ) from error


def _ask_clients(context: ssl.SSLContext, config: ListenerSettings) -> None:
    """Set whether clients may or must present a certificate of the configured authority."""
    if not config.tls_client_ca_file:
        return
    required = config.tls_client_auth in {"require-any", "require-and-verify"}
    if required or config.tls_client_auth == "verify-if-given":
        try:
            context.load_verify_locations(config.tls_client_ca_file)
        except (OSError, ssl.SSLError) as error:
            raise CoderError(
                "bad_certificate",
                f"no authority can be read from {config.tls_client_ca_file}",
                "--tls-client-ca-file requires a PEM file.",
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL


def _chooser(contexts: list[tuple[set[str], ssl.SSLContext]]) -> Callable[[ssl.SSLObject, str, ssl.SSLContext], None]:
    def choose(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        server_name = (name or "").lower()
        wildcard = "*." + server_name.partition(".")[2]
        for names, context in contexts:
            if server_name in names or wildcard in names:
                connection.context = context
                return

    return choose


def _names(path: Path) -> set[str]:
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {name.lower() for name in extension.value.get_values_for_type(x509.DNSName)}
