"""Clients behind real forward proxies of Debian, tinyproxy and squid, which allow CONNECT to port 443 only.

Each is tried without and with a required login. About three seconds a proxy.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio

from coder.base.secret import Secret
from coder.net.blocking import BlockingClient
from coder.net.errors import NetError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from tests.kit.free_ports import free_port
from tests.kit.server.server_in_process import World, running_coderd

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
LOGIN, PASSWORD = "ada", "p.ss-word"
_HELPERS = ("/usr/lib/squid/basic_ncsa_auth", "/usr/lib64/squid/basic_ncsa_auth")


def _tinyproxy(folder: Path, port: int, *, login: bool) -> tuple[str, list[str]]:
    required = f"BasicAuth {LOGIN} {PASSWORD}\n" if login else ""
    return (
        f"Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 100\nLogLevel Info\nConnectPort 443\n{required}",
        ["tinyproxy", "-d", "-c", f"{folder}/conf"],
    )


def _squid(folder: Path, port: int, *, login: bool) -> tuple[str, list[str]]:
    helper = next((path for path in _HELPERS if Path(path).exists()), "")
    digest = hashlib.md5(PASSWORD.encode(), usedforsecurity=False).hexdigest()
    (folder / "passwords").write_text(f"{LOGIN}:{digest}\n")
    required = (
        f"auth_param basic program {helper} {folder}/passwords\nacl known proxy_auth REQUIRED\n"
        "http_access deny !known\n"
        if login
        else ""
    )
    return (
        f"http_port 127.0.0.1:{port}\nacl ssl_ports port 443\nhttp_access deny CONNECT !ssl_ports\n{required}"
        f"http_access allow localhost\nhttp_access deny all\ncache deny all\npid_filename none\naccess_log none\n"
        f"cache_log {folder}/cache.log\ncoredump_dir {folder}\nshutdown_lifetime 0 seconds\n"
        f"cache_effective_user proxy\nvisible_hostname localhost\n",
        ["squid", "-N", "-f", f"{folder}/conf"],
    )


MAKES = {"tinyproxy": _tinyproxy, "squid": _squid}


@contextmanager
def forward_proxy(make: str, folder: Path, *, login: bool) -> Iterator[str]:
    """Run a proxy; yield its host and port."""
    port = free_port()
    text, command = MAKES[make](folder, port, login=login)
    (folder / "conf").write_text(text)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o644)
    program = shutil.which(command[0], path=_PATH)
    if program is None:
        pytest.skip(f"{make} is not installed (apt-get install {make})")
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen([program, *command[1:]], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        while not _listens(port):
            assert process.poll() is None, (folder / "out").read_text()
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(60)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def policy(world: World, address: str, login: str = "") -> DialPolicy:
    """Dial this machine by an address that is not exempt from proxies, as loopback addresses are."""
    url = world.url.replace("127.0.0.1", "0.0.0.0")
    proxy = f"http://{login}{address}"
    return DialPolicy(url, token=Secret(world.token), proxies={"http": proxy, "https": proxy})


def _me(chosen: DialPolicy) -> dict[str, str]:
    with contextlib.closing(BlockingClient(chosen)) as client:
        return dict(client.request("GET", "/api/v2/users/me").json())


async def _is_served(chosen: DialPolicy) -> None:
    """Both clients and a stream of messages reach the server."""
    found = await trio.to_thread.run_sync(_me, chosen)
    assert found["username"] == "admin"
    async with HttpClient(chosen) as client:
        assert (await client.request("GET", "/api/v2/users/me")).json() == found
    # Requests, and streams that need an upgrade, which these proxies strip.
    with trio.fail_after(60):
        stream = await connect_websocket(chosen, "/api/v2/tailnet?version=2.0")
        await stream.send_message(b"\x00")
        await stream.aclose()


@pytest.mark.parametrize("make", sorted(MAKES))
async def test_proxy_without_login(make: str, open_path: Path) -> None:
    async with running_coderd(first_user=True) as world:
        with forward_proxy(make, open_path, login=False) as address:
            await _is_served(policy(world, address))


@pytest.mark.parametrize("make", sorted(MAKES))
async def test_proxy_with_login(make: str, open_path: Path) -> None:
    async with running_coderd(first_user=True) as world:
        with forward_proxy(make, open_path, login=True) as address:
            await _is_served(policy(world, address, f"{LOGIN}:p%2Ess-word@"))
            for wrong in ("", f"{LOGIN}:wrong@"):
                with pytest.raises(NetError, match=r"407|401") as refused:
                    await trio.to_thread.run_sync(_me, policy(world, address, wrong))
                assert refused.value.code == "proxy"
