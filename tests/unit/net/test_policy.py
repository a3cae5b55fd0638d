"""Dialling under a policy: proxies and their exceptions, own authorities, client certificates, and error messages."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from coder.base.errors import CoderError
from coder.cli.core.session import read_headers
from coder.net.blocking import BlockingClient
from coder.net.errors import NetError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy, environment_proxies, proxy_for, tls_context
from tests.kit.network.middleboxes import AuthProxy, serve_box
from tests.kit.server.server_in_process import running_coderd
from tests.kit.stand_ins.certificates import Authority


@pytest.mark.parametrize(
    ("url", "no_proxy", "proxied"),
    [
        ("https://coder.example.com", "", True),
        ("https://coder.example.com", "example.com", False),
        ("https://coder.example.com", ".example.com", False),
        ("https://coder.example.com", "ample.com", True),
        ("https://coder.example.com", "other.test, coder.example.com:443", False),
        ("https://coder.example.com", "*", False),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://11.1.2.3", "10.0.0.0/8", True),
        ("https://coder.corp.example", "*.corp.example", False),
        ("https://Coder.Corp.Example", "*.CORP.example:8443", False),
        ("https://corp.example", "*.other, ,.", True),
        ("https://10.1.2.3", "10.1.2.3", False),
        ("https://10.1.2.3", "10.1.2.3:443", False),
        ("https://10.1.2.3", "1.2.3", True),
        ("https://[2001:db8::1]", "2001:db8::1", False),
        ("https://[2001:db8::1]", "[2001:db8::1]:443", False),
        ("https://[2001:db8::1]", "2001:db8::/32", False),
        ("https://[2001:db8::1]", "2001:db8::2, 10.0.0.0/8, nonsense/8, [", True),
        ("https://localhost:3000", "", False),
        ("https://127.0.0.1:3000", "", False),
        ("https://[::1]:3000", "", False),
    ],
)
def test_no_proxy(url: str, no_proxy: str, proxied: bool) -> None:
    policy = DialPolicy(url, proxies={"https": "http://box:3128", "no": no_proxy})
    assert bool(proxy_for(policy, policy.origin.hostname or "", "https")) is proxied


def test_environment_proxies() -> None:
    env = {"https_proxy": "http://low:1", "HTTPS_PROXY": "http://up:1", "ALL_PROXY": "box:2", "NO_PROXY": "a,b"}
    assert environment_proxies(env) == {"https": "http://low:1", "http": "box:2", "no": "a,b"}
    assert proxy_for(DialPolicy("http://x.test", proxies={"http": "box:2"}), "x.test", "http") == "http://box:2"


def test_other_proxy_kinds_are_rejected() -> None:
    """ALL_PROXY is for programs with SOCKS; a SOCKS value for HTTPS itself must not be ignored silently."""
    assert environment_proxies({"ALL_PROXY": "socks5://box:1080", "all_proxy": "SOCKS5H://box:1080"}) == {}
    env = {"ALL_PROXY": "http://box:3128", "all_proxy": "socks5://box:1080"}
    assert environment_proxies(env) == {"http": "http://box:3128", "https": "http://box:3128"}
    policy = DialPolicy("https://x.test", proxies=environment_proxies({"HTTPS_PROXY": "socks5://box:1080"}))
    with pytest.raises(NetError, match="socks5 proxies are not supported") as caught:
        proxy_for(policy, "x.test", "https")
    assert "HTTPS_PROXY" in caught.value.hint and "NO_PROXY" in caught.value.hint


def test_headers_of_a_command() -> None:
    assert read_headers(("a=1",), "echo b=2=3; echo; echo ' c = 4 '") == (("a", "1"), ("b", "2=3"), ("c", "4"))
    with pytest.raises(CoderError, match="needs the form key=value"):
        read_headers(("nonsense",), "")
    with pytest.raises(CoderError, match="ended with code 3"):
        read_headers((), "exit 3")


async def failure(policy: DialPolicy) -> tuple[NetError, NetError]:
    """Return the errors of the same request from trio and from a short command."""
    with pytest.raises(NetError) as patient:
        async with HttpClient(policy) as http:
            await http.request("GET", "/healthz")
    with pytest.raises(NetError) as blocking:
        await trio.to_thread.run_sync(ask, policy)
    return patient.value, blocking.value


def ask(policy: DialPolicy) -> bytes:
    client = BlockingClient(policy)
    try:
        return client.request("GET", "/healthz").body
    finally:
        client.close()


async def answers(policy: DialPolicy) -> bool:
    async with HttpClient(policy) as http:
        patient = (await http.request("GET", "/healthz")).body
    return bool(patient == await trio.to_thread.run_sync(ask, policy))


async def test_own_authority_and_client_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("coder.test")
    mine = authority.issue("ana")
    async with (
        running_coderd(
            http_address="",
            tls_enable=True,
            tls_address="127.0.0.1:0",
            tls_cert_file=(cert,),
            tls_key_file=(key,),
            tls_client_auth="require-and-verify",
            tls_client_ca_file=authority.file,
        ) as world,
        trio.open_nursery() as nursery,
    ):
        box = AuthProxy(("127.0.0.1", int(world.url.rsplit(":", 1)[1])), "ana", "secret")
        port = await nursery.start(serve_box, box)
        through = {"https": f"http://ana:secret@127.0.0.1:{port}"}
        policy = DialPolicy("https://coder.test", ca_file=authority.file, proxies=through)
        assert await answers(
            DialPolicy(policy.url, ca_file=authority.file, client_cert=mine[0], client_key=mine[1], proxies=through)
        )
        for error in await failure(policy):
            assert error.code == "tls"
            assert "--client-tls-cert-file" in error.hint
        for error in await failure(DialPolicy(policy.url, proxies=through)):
            assert error.code == "tls"
            assert "not trusted" in error.message
            assert "--client-tls-ca-file" in error.hint
        for error in await failure(DialPolicy(policy.url, proxies={"https": f"http://127.0.0.1:{port}"})):
            assert error.code == "proxy"
            assert "407" in error.message
            assert "user:password@" in error.hint
        for error in await failure(DialPolicy(policy.url, proxies={"https": "http://127.0.0.1:9"})):
            assert error.message == "cannot connect to the proxy 127.0.0.1:9"
        for error in await failure(DialPolicy(policy.url, ca_file="/nonexistent", proxies=through)):
            assert error.code == "tls_files"
        nursery.cancel_scope.cancel()


async def test_proxy_with_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("coder.test")
    async with (
        running_coderd(
            http_address="", tls_enable=True, tls_address="127.0.0.1:0", tls_cert_file=(cert,), tls_key_file=(key,)
        ) as world,
        trio.open_nursery() as nursery,
    ):
        box = AuthProxy(("127.0.0.1", int(world.url.rsplit(":", 1)[1])), "ana", "secret")
        port = await nursery.start(serve_box, box, authority.server_context("localhost"))
        policy = DialPolicy(
            "https://coder.test", ca_file=authority.file, proxies={"https": f"https://ana:secret@localhost:{port}"}
        )
        assert await answers(policy)
        nursery.cancel_scope.cancel()


def test_certificate_folder_needs_no_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every certificate of every file counts, as in Go; OpenSSL itself reads names of hashes only."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        (folder / "company-root.crt").write_bytes(Path(Authority(folder).file).read_bytes())
        (folder / "README").write_text("no certificate")
        (folder / "inner").mkdir()
    monkeypatch.setenv("SSL_CERT_DIR", f"{folders[0]}:{folders[1]}:{tmp_path}/none:")
    names = [str(item["subject"]) for item in tls_context("", "", "", False).get_ca_certs()]
    assert sum("Test Authority" in name for name in names) >= 2


def test_replaced_client_files_are_read(tmp_path: Path) -> None:
    """An agent runs longer than its certificate, and than the authority of its server."""
    authority = tmp_path / "authority.pem"
    others = [Authority(folder) for folder in (tmp_path / "a", tmp_path / "b") if folder.mkdir() is None]

    def serials() -> set[str]:
        return {str(item["serialNumber"]) for item in tls_context(str(authority), "", "", False).get_ca_certs()}

    authority.write_bytes(Path(others[0].file).read_bytes())
    before = serials()
    assert serials() == before
    Path(others[1].file).replace(authority)
    assert len(serials() - before) == 1
