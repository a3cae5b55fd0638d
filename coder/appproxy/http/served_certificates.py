"""TLS of a server or a workspace proxy: every configured certificate, read again when its files change.

A certificate is renewed by replacing its files, as ACME clients and Kubernetes do. The next handshake then reads them,
so neither a restart nor a signal is required. Connections that are open keep the certificate that they began with.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from coder.appproxy.settings import ListenerSettings
from coder.base.errors import CoderError
from coder.base.files.from_files import FromFiles
from coder.domain.network.tls_ciphers import cipher_list

_VERSIONS = {"tls10": ssl.TLSVersion.TLSv1, "tls11": ssl.TLSVersion.TLSv1_1, "tls12": ssl.TLSVersion.TLSv1_2}


def tls_context(config: ListenerSettings) -> ssl.SSLContext:
    """Return server-side TLS with every configured certificate, chosen by server name. Raises CoderError."""
    return _ServedCertificates(config).first


class _ServedCertificates:
    """Certificates of the configured files. Raises CoderError where they cannot be loaded at first."""

    def __init__(self, config: ListenerSettings) -> None:
        self._config = config
        self._pairs = list(zip(config.tls_cert_file, config.tls_key_file, strict=True))
        self._served = FromFiles("certificates of the server", self._files, self._load)
        self.first = self._served.get()[0][1]
        """The context of new connections, before the client has named a server."""
        self.first.sni_callback = self._choose

    def _files(self) -> list[str]:
        return [*(name for pair in self._pairs for name in pair), self._config.tls_client_ca_file]

    def _load(self) -> list[tuple[set[str], ssl.SSLContext]]:
        """Return names and context of each certificate, in the configured order. Raises CoderError."""
        contexts = [_new_context(self._config, *pair) for pair in self._pairs]
        return [(_names(*pair), context) for pair, context in zip(self._pairs, contexts, strict=True)]

    def _choose(self, connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """Give a new connection its certificate: that of the server name, or the first one. OpenSSL calls this in every
        handshake, also without a name."""
        served = self._served.get()
        server_name = (name or "").lower()
        wildcard = "*." + server_name.partition(".")[2]
        matching = (context for names, context in served if server_name in names or wildcard in names)
        connection.context = next(matching, served[0][1])


def read_expiries(files: Sequence[str]) -> dict[str, datetime]:
    """Return when the certificate of each file expires; without files that cannot be read."""
    from cryptography import x509

    expiries = {}
    for file in files:
        with contextlib.suppress(OSError, ValueError):
            expiries[file] = x509.load_pem_x509_certificate(Path(file).read_bytes()).not_valid_after_utc
    return expiries


def _new_context(config: ListenerSettings, certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS.get(config.tls_min_version, ssl.TLSVersion.TLSv1_3)
    context.set_alpn_protocols(["http/1.1"])
    _choose_ciphers(context, config)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise _cannot_load(certificate, key) from error
    _ask_clients(context, config)
    return context


def _cannot_load(certificate: str, key: str) -> CoderError:
    return CoderError(
        "bad_certificate",
        f"the TLS certificate {certificate} with key {key} cannot be loaded",
        "Check that both are PEM files of one pair.",
    )


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


def _names(certificate: str, key: str) -> set[str]:
    """Return the host names of a certificate, in lower case. Raises CoderError."""
    from cryptography import x509

    try:
        parsed = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
    except (OSError, ValueError) as error:
        raise _cannot_load(certificate, key) from error
    try:
        extension = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {name.lower() for name in extension.value.get_values_for_type(x509.DNSName)}
