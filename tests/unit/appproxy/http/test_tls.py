"""TLS listeners: certificates by server name, links over TLS, bad files."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from coder.appproxy.http.listening_sockets import open_listeners
from coder.appproxy.http.served_certificates import tls_context
from coder.base.errors import CoderError
from coder.base.log import Level
from coder.base.log import also as log_to
from coder.coderd.config.settings import ServerConfig
from coder.domain.network import tls_ciphers
from tests.kit.api.http_clients import http_client
from tests.kit.server.server_in_process import running_coderd


def certificate(folder: Path, *names: str) -> tuple[str, str]:
    """Return a self-signed pair of files for `names`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / f"{names[0]}.pem", folder / f"{names[0]}.key"
    cert_file.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(cert_file), str(key_file)


async def test_https_by_server_name(tmp_path: Path) -> None:
    first, second = certificate(tmp_path, "one.test"), certificate(tmp_path, "two.test", "*.two.test")
    async with running_coderd(
        http_address="",
        tls_enable=True,
        tls_address="127.0.0.1:0",
        tls_cert_file=(first[0], second[0]),
        tls_key_file=(first[1], second[1]),
    ) as world:
        port = int(world.url.rsplit(":", 1)[1])
        assert world.url.startswith("https://")
        for name, trusted in (("one.test", first[0]), ("two.test", second[0]), ("a.two.test", second[0])):
            context = ssl.create_default_context(cafile=trusted)
            stream = trio.SSLStream(
                await trio.open_tcp_stream("127.0.0.1", port), context, server_hostname=name, https_compatible=True
            )
            async with stream:
                await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                data = b""
                while piece := await stream.receive_some(4096):
                    data += piece
            assert data.endswith(b"OK")
        with pytest.raises(httpx.HTTPError):
            async with http_client() as client:
                await client.get(f"http://127.0.0.1:{port}/healthz")
        context = ssl.create_default_context(cafile=first[0])
        context.check_hostname = False
        async with http_client(verify=context) as client:
            assert (await client.get(f"https://127.0.0.1:{port}/healthz")).text == "OK"


def test_mismatched_key_pair_is_refused(tmp_path: Path) -> None:
    first, second = certificate(tmp_path, "one.test"), certificate(tmp_path, "two.test")
    for cert, key in ((first[0], second[1]), (first[0], "/nonexistent")):
        with pytest.raises(CoderError) as caught:
            tls_context(ServerConfig(tls_enable=True, tls_cert_file=(cert,), tls_key_file=(key,)))
        assert caught.value.code == "bad_certificate"


async def test_address_in_use_is_one_error() -> None:
    first = await open_listeners(ServerConfig(http_address="127.0.0.1:0"))
    address = first[0][0].removeprefix("http://")
    with pytest.raises(CoderError) as caught:
        await open_listeners(ServerConfig(http_address=address))
    assert caught.value.code == "address_in_use"
    with pytest.raises(CoderError) as caught:
        await open_listeners(ServerConfig(http_address="nonsense"))
    assert caught.value.code == "bad_address"
    await first[0][1].aclose()


SOUND_TWO = ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")


def _chosen(tmp_path: Path, **settings: Any) -> set[str]:
    """Return the suites of TLS 1.2 that a server offers."""
    cert, key = certificate(tmp_path, "one.test")
    context = tls_context(ServerConfig(tls_enable=True, tls_cert_file=(cert,), tls_key_file=(key,), **settings))
    return {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"}


def test_only_named_suites_are_offered(tmp_path: Path) -> None:
    assert _chosen(tmp_path, tls_ciphers=SOUND_TWO) == {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"}
    assert len(_chosen(tmp_path)) > 2


@pytest.mark.parametrize("name", [name for name in tls_ciphers.WEAK if "RC4" not in name and "3DES" not in name])
def test_weak_suites_require_permission(tmp_path: Path, name: str) -> None:
    with pytest.raises(CoderError, match="known to be weak"):
        _chosen(tmp_path, tls_ciphers=(*SOUND_TWO, name))
    result = _chosen(tmp_path, tls_ciphers=(*SOUND_TWO, name), tls_allow_insecure_ciphers=True)
    assert tls_ciphers.WEAK[name] in result


@pytest.mark.parametrize("names", [("NONSENSE",), ("TLS_AES_128_GCM_SHA256",), ("AES128-SHA",)])
def test_suites_that_cannot_be_chosen(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(CoderError) as caught:
        _chosen(tmp_path, tls_ciphers=names, tls_allow_insecure_ciphers=True)
    assert caught.value.code == "bad_ciphers"
    with pytest.raises(CoderError):
        _chosen(tmp_path, tls_ciphers=SOUND_TWO, tls_min_version="tls13")


def handshake(
    server: ssl.SSLContext, client: ssl.SSLContext, name: str = "one.test"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Return both ends of a connection, the client's first."""
    outgoing, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_side = server.wrap_bio(outgoing, back, server_side=True)
    client_side = client.wrap_bio(back, outgoing, server_hostname=name)
    waiting: list[ssl.SSLObject] = [client_side, server_side]
    while waiting:
        end = waiting.pop(0)
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(end)
    return client_side, server_side


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(["h2", "http/1.1"], "http/1.1"), (["h2"], None), (["h2c", "h3"], None), ([], None), (["http/1.1"], "http/1.1")],
)
def test_http2_is_never_negotiated(offered: list[str], chosen: str | None, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "one.test")
    server = tls_context(ServerConfig(tls_enable=True, tls_cert_file=(cert,), tls_key_file=(key,)))
    client = ssl.create_default_context(cafile=cert)
    if offered:
        client.set_alpn_protocols(offered)
    client_side, server_side = handshake(server, client)
    assert (client_side.selected_alpn_protocol(), server_side.selected_alpn_protocol()) == (chosen, chosen)


def presented(server: ssl.SSLContext, name: str = "one.test") -> bytes:
    """Return the certificate that a new connection gets."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    found = handshake(server, client, name)[0].getpeercert(binary_form=True)
    assert found is not None
    return found


def encoded(certificate_file: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(Path(certificate_file).read_text())


def renewed(folder: Path, *names: str) -> tuple[str, str]:
    """Return another pair for these names."""
    folder.mkdir()
    return certificate(folder, *names)


def test_replaced_files_are_served(tmp_path: Path) -> None:
    pairs = certificate(tmp_path, "one.test"), certificate(tmp_path, "two.test")
    certificates, keys = zip(*pairs, strict=True)
    server = tls_context(ServerConfig(tls_enable=True, tls_cert_file=certificates, tls_key_file=keys))
    assert [presented(server, name) for name in ("one.test", "two.test")] == [encoded(file) for file in certificates]
    new = renewed(tmp_path / "new", "two.test", "three.test")
    for source, target in zip(new, pairs[1], strict=True):
        Path(source).replace(target)
    for name, file in (("one.test", 0), ("two.test", 1), ("three.test", 1), ("four.test", 0)):
        assert presented(server, name) == encoded(certificates[file])


def test_unusable_change_keeps_former_certificate(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "one.test")
    server = tls_context(ServerConfig(tls_enable=True, tls_cert_file=(cert,), tls_key_file=(key,)))
    former, new = encoded(cert), renewed(tmp_path / "new", "one.test")
    messages: list[str] = []

    def note(_level: Level, _at: datetime.datetime, _name: str, message: str, _fields: dict[str, Any]) -> None:
        messages.append(message)

    with log_to(note):
        for change in (Path(key).unlink, lambda: Path(new[0]).replace(cert), lambda: Path(key).write_text("no key")):
            change()
            assert [presented(server) for _ in range(3)] == [former] * 3
        assert messages == ["changed files cannot be used; what they had before stays"] * 3
        Path(new[1]).replace(key)
        assert presented(server) == encoded(cert) != former
    assert messages[3:] == ["changed files were read again"]


def test_replaced_authority_of_clients_counts(tmp_path: Path) -> None:
    pair, client_pair = certificate(tmp_path, "one.test"), certificate(tmp_path, "person")
    authority = tmp_path / "authority.pem"
    authority.write_bytes(Path(pair[0]).read_bytes())
    settings: dict[str, Any] = {"tls_client_auth": "require-and-verify", "tls_client_ca_file": str(authority)}
    server = tls_context(ServerConfig(tls_enable=True, tls_cert_file=(pair[0],), tls_key_file=(pair[1],), **settings))
    client = ssl.create_default_context(cafile=pair[0])
    client.load_cert_chain(*client_pair)
    with pytest.raises(ssl.SSLError):
        handshake(server, client)
    (tmp_path / "new.pem").write_bytes(Path(client_pair[0]).read_bytes())
    (tmp_path / "new.pem").replace(authority)
    handshake(server, client)
