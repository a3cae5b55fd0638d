"""Provider as a separate process, started by terraform: `coder terraform-provider`.

This form is for terraform run by hand and for debugging; a provisioner serves the provider in process (`serving.py`).
Implements go-plugin's protocol: a magic cookie, one handshake line on stdout, mutual TLS with certificates created for
this run, and a shutdown call.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import ssl
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trio

from coder.base.errors import CoderError
from coder.base.threads import run_trio
from coder.provisionerd.terraform.provider.serving import serve_stream

_COOKIE = ("TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2")
"Cookie that terraform sets for its child processes; not a secret."
_FIRST_CONNECTION = 60.0
"Seconds terraform has to connect; after that the process ends."


def serve_plugin(environment: Mapping[str, str]) -> int:
    """Serve terraform until it disconnects. Raises CoderError `not_a_command` when a user runs the command."""
    if environment.get(_COOKIE[0]) != _COOKIE[1]:
        raise CoderError(
            "not_a_command",
            "this command is a plugin and is started by terraform",
            "Write a mirror for terraform with `coder terraform-provider --mirror DIR`.",
        )
    # A terminal sends the interrupt to the whole group; terraform still needs the provider to save its state.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_trio(_serve, dict(environment))
    return 0


async def _serve(environment: Mapping[str, str]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="coder-tf-"))
    try:
        context, certificate = _tls(environment.get("PLUGIN_CLIENT_CERT", ""), folder)
        with trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            path = str(folder / "p")
            await listener.bind(path)
            listener.listen(16)
            sys.stdout.write(f"1|5|unix|{path}|grpc|{certificate}\n")
            sys.stdout.flush()
            await _accept(listener, context, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _accept(
    listener: trio.socket.SocketType, context: ssl.SSLContext | None, environment: Mapping[str, str]
) -> None:
    """Serve connections; return when the last one has ended, so that a killed terraform leaves no process behind."""
    open_connections = 0

    async def serve(stream: trio.abc.Stream) -> None:
        nonlocal open_connections
        try:
            async with stream:
                await serve_stream(stream, environment)
        except trio.BrokenResourceError:
            pass  # the handshake failed, or terraform exited
        open_connections -= 1
        if open_connections == 0:
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.deadline = trio.current_time() + _FIRST_CONNECTION
        while True:
            connection, _address = await listener.accept()
            nursery.cancel_scope.deadline = float("inf")
            open_connections += 1
            stream: trio.abc.Stream = trio.SocketStream(connection)
            if context is not None:
                stream = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
            nursery.start_soon(serve, stream)


def _tls(client_certificate: str, folder: Path) -> tuple[ssl.SSLContext | None, str]:
    """Return (context that accepts only this terraform, our certificate for the handshake line)."""
    if not client_certificate:
        return None, ""
    pem, key, der = _make_certificate()
    files = folder / "cert.pem", folder / "key.pem"
    for path, data in zip(files, (pem, key), strict=True):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(*files)
    context.load_verify_locations(cadata=client_certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])
    return context, base64.b64encode(der).decode().rstrip("=")


def _make_certificate() -> tuple[bytes, bytes, bytes]:
    """Return a self-signed certificate for localhost: (PEM, key PEM, DER)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        private,
        certificate.public_bytes(serialization.Encoding.DER),
    )
