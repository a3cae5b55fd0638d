"""The guide's configurations of reverse proxies, run as they stand there (docs/guides/reverse-proxies.md).

Only addresses, names and files are put in their places. Behind each proxy stand a server, a workspace whose agent knows
the proxy's address alone, and an application in it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from coder.base.secret import Secret
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_upgrade, connect_websocket
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import workspace_world
from tests.kit.free_ports import free_port
from tests.kit.stand_ins.certificates import Authority
from tests.kit.stand_ins.scripted_http_servers import WebApp, running_app

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/reverse-proxies.md"
WEB = "/@admin/dev/apps/web"
OPEN = "open--dev--admin.apps.test"
UNTRUSTED = "127.0.0.5"
"A visitor's address that is not the proxy's own."
pytestmark = pytest.mark.system


@dataclass(frozen=True, slots=True)
class Kind:
    """How one make of proxy is started."""

    program: str
    whole: Callable[[str, Path, int], str]
    "The guide's part -> a configuration that can run beside others."
    args: tuple[str, ...]
    one_file: bool = False
    "Certificate and key in one file."


def _nginx(text: str, folder: Path, port: int) -> str:
    places = "".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
    return f"daemon off; pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; {places}\n{text}}}"


def _haproxy(text: str, folder: Path, port: int) -> str:
    return text.replace("bind :443", f"bind 127.0.0.1:{port}")


def _caddy(text: str, folder: Path, port: int) -> str:
    options = f"admin off\nauto_https disable_redirects\nhttps_port {port}\nstorage file_system {folder}\n"
    return f"{{\n{options}default_bind 127.0.0.1\n}}\n{text}"


KINDS = {
    "nginx": Kind("nginx", _nginx, ("-p", "{folder}", "-c", "{file}")),
    "haproxy": Kind("haproxy", _haproxy, ("-q", "-db", "-f", "{file}"), one_file=True),
    "caddy": Kind("caddy", _caddy, ("run", "--adapter", "caddyfile", "--config", "{file}")),
}


def configurations() -> dict[str, str]:
    """What the guide shows, by the language of the block."""
    return dict(re.findall(r"```(\w+)\n(.*?)```", GUIDE.read_text(), re.DOTALL))


def program_of(kind: Kind) -> str:
    found = shutil.which(kind.program, path="/usr/sbin:/usr/bin:/usr/local/bin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"{kind.program} is not installed")
    return found


def configured(name: str, folder: Path, authority: Authority, port: int, upstream: str) -> Path:
    """The guide's configuration of one make with this test's places in it; each has to be there to be replaced."""
    text = configurations()[name]
    certificate, key = authority.issue("localhost", "*.apps.test")
    if KINDS[name].one_file:
        Path(certificate).write_bytes(Path(certificate).read_bytes() + Path(key).read_bytes())
    places = {"127.0.0.1:3000": upstream, "/etc/ssl/coder.pem": certificate}
    if not KINDS[name].one_file:
        places |= {"/etc/ssl/coder.key": key, "coder.example.com": "localhost", "*.apps.example.com": "*.apps.test"}
    for written, here in places.items():
        assert written in text, (name, written)
        text = text.replace(written, here)
    assert "example.com" not in text
    file = folder / f"{name}.conf"
    file.write_text(KINDS[name].whole(text, folder, port))
    return file


@contextmanager
def running_proxy(name: str, folder: Path, authority: Authority, port: int, upstream: str) -> Iterator[None]:
    program = program_of(KINDS[name])
    file = configured(name, folder, authority, port, upstream)
    command = [program, *(arg.format(file=file, folder=folder) for arg in KINDS[name].args)]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)}
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


@dataclass
class Behind:
    """What stands behind the proxy, and how one gets there."""

    world: Any
    app: WebApp
    policy: DialPolicy
    client: httpx.AsyncClient
    authority: str

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers={"Coder-Session-Token": self.world.token, **headers})


@asynccontextmanager
async def behind(name: str, folder: Path) -> AsyncIterator[Behind]:
    port, inner = free_port(), free_port()
    authority = Authority(folder)
    url = f"https://localhost:{port}"
    settings = {
        "access_url": url,
        "http_address": f"127.0.0.1:{inner}",
        "wildcard_access_url": "*.apps.test",
        "proxy_trusted_origins": ("127.0.0.1/32",),
        "proxy_trusted_headers": ("X-Forwarded-For",),
    }
    with running_proxy(name, folder, authority, port, f"127.0.0.1:{inner}"):
        async with running_app() as app:
            fields: dict[str, Any] = {"url": f"http://localhost:{app.port}"}
            apps = [
                pb.App(slug="web", sharing_level=pb.OWNER, **fields),
                pb.App(slug="open", sharing_level=pb.PUBLIC, subdomain=True, **fields),
            ]
            async with workspace_world(agent_fields={"apps": apps}, **settings) as agent:
                world = agent.world
                policy = DialPolicy(url, token=Secret(world.token), ca_file=authority.file, proxies={})
                transport = httpx.AsyncHTTPTransport(verify=_context(authority), local_address=UNTRUSTED)
                async with (
                    running_agent(agent, policy, folder / "agent"),
                    httpx.AsyncClient(base_url=url, transport=transport, timeout=60) as client,
                ):
                    yield Behind(world, app, policy, client, f"localhost:{port}")


def _context(authority: Authority) -> Any:
    import ssl

    return ssl.create_default_context(cafile=authority.file)


@pytest.mark.parametrize("name", sorted(KINDS))
async def test_everything_passes(name: str, open_path: Path) -> None:
    async with behind(name, open_path) as b:  # nginx as root works as somebody else
        await _pages(b)
        await _bodies_and_streams(b)
        await _who_asks(b)
        await _own_address(b)
        await _websockets(b)
        await _relay(b)


async def _pages(b: Behind) -> None:
    assert (await b.get("/healthz")).text == "OK"
    me = await b.get("/api/v2/users/me")
    assert me.status_code == 200 and me.json()["username"] == "admin"


async def _bodies_and_streams(b: Behind) -> None:
    size = 5_000_000
    token = {"Coder-Session-Token": b.world.token}
    sent = await b.client.post(f"{WEB}/size", content=bytes(size), headers=token)
    assert (sent.status_code, sent.text) == (200, str(size)), sent.text
    async with b.client.stream("GET", f"{WEB}/ticks", headers=token) as answer:
        pieces = answer.aiter_bytes()
        with trio.fail_after(60):
            assert await anext(pieces) == b"one"  # before the second was written: nobody waits for a full buffer
            b.app.tick.set()
            assert b"".join([piece async for piece in pieces]) == b"two"


async def _who_asks(b: Behind) -> None:
    """The visitor's address is the proxy's word, not the visitor's."""
    credentials = {"email": "a@b.c", "password": "SomeSecure123!"}
    made_up = {"X-Forwarded-For": "203.0.113.9", "X-Real-Ip": "203.0.113.9"}
    done = await b.client.post("/api/v2/users/login", json=credentials, headers=made_up)
    assert done.status_code == 201, done.text
    found = (await b.get("/api/v2/audit?q=action:login&limit=1")).json()["audit_logs"][0]
    assert found["ip"] == UNTRUSTED


async def _own_address(b: Behind) -> None:
    """A development URL: its own host, by the wildcard certificate."""
    request = b.client.build_request("GET", "/echo", headers={"Host": OPEN}, extensions={"sni_hostname": OPEN})
    answer = await b.client.send(request)
    assert answer.status_code == 200, answer.text
    headers = dict(answer.json()["headers"])
    assert headers["host"] == OPEN and headers["x-forwarded-proto"] == "https"


async def _websockets(b: Behind) -> None:
    ws = await connect_websocket(b.policy, f"{WEB}/ws", carry=False)
    for message in ("hello", bytes(200_000)):
        await ws.send_message(message)
        assert await ws.receive_message() == message
    await ws.aclose()


async def _relay(b: Behind) -> None:
    stream, headers, _ = await connect_upgrade(b.policy, "/derp", "DERP")
    assert headers["upgrade"].lower() == "derp"
    await trio.aclose_forcefully(stream)
