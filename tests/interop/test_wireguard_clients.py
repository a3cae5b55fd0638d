"""Plain WireGuard clients against wireguard-go as the phone: the configuration as printed, set up by wg-quick.

Two people's devices, one workspace. Both devices sit behind NAT; the server decrypts and routes.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kit.network.namespace_deployment import PASSWORD, URL, WORKSPACE, Deployment, open_deployment
from tests.kit.network.network_namespaces import find_tool, missing_tools

TOOLS = [tool for tool in ("wireguard-go", "wg", "wg-quick", "ping", "ssh", "curl") if not find_tool(tool)]
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(bool(missing_tools()), reason=missing_tools() or "-"),
    pytest.mark.skipif(bool(TOOLS), reason=f"not installed: {', '.join(TOOLS)}"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun for wireguard-go"),
]
SSH = (
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=60",
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "LogLevel=ERROR",
)
SOON = 60.0
SUITE_SIZE, SOAK_SIZE = 8 << 20, 100 << 20


@dataclass
class Phone:
    """A device with a configuration, in one of the world's machines."""

    deployment: Deployment
    host: str
    name: str
    made: dict[str, Any]

    @property
    def address(self) -> str:
        """The workspace's stable address, as the configuration tells it."""
        return str(self.made["client"]["targets"][0]["address"])

    def up(self) -> None:
        path = self.deployment.folder / f"{self.interface}.conf"
        path.write_text(self.made["config"])
        path.chmod(0o600)
        self._quick("up", path)

    def down(self) -> None:
        self._quick("down", self.deployment.folder / f"{self.interface}.conf")

    def _quick(self, verb: str, path: Path) -> None:
        env = {**os.environ, "WG_QUICK_USERSPACE_IMPLEMENTATION": find_tool("wireguard-go")}
        env["PATH"] = f"{env.get('PATH', '')}:/usr/sbin:/sbin"
        done = self.deployment.world.run(self.host, find_tool("wg-quick"), verb, str(path), env=env)
        assert done.returncode == 0, done.stderr.decode()

    @property
    def interface(self) -> str:
        return f"{self.name[:6]}{os.getpid() % 100000}"

    def ping(self, address: str, *, count: int = 1, patience: float = SOON, size: int = 56) -> bool:
        done = self.deployment.world.run(
            self.host,
            find_tool("ping"),
            "-6",
            "-c",
            str(count),
            "-i",
            "0.2",
            "-w",
            str(int(patience)),
            "-s",
            str(size),
            address,
        )
        return done.returncode == 0

    def ssh(self, address: str, command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return self.deployment.world.run(
            self.host, find_tool("ssh"), *SSH, f"anybody@{address}", command, stdin=stdin, timeout=120
        )


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    with open_deployment({"CODER_WIREGUARD_ADDRESS": ":51820"}) as found:
        yield found
        if found.agent is not None:
            found.kill(found.agent)  # it would wait for a server that is about to be gone


@pytest.fixture(scope="module")
def phone(deployment: Deployment) -> Iterator[Phone]:
    found = add(deployment, "phone")
    found.up()
    yield found
    found.down()


def add(deployment: Deployment, name: str, *flags: str, host: str = "client") -> Phone:
    done = deployment.coder("wireguard", "add", name, "-o", "json", *flags, check=True)
    return Phone(deployment, host, name, json.loads(done.stdout))


def agent_address(deployment: Deployment) -> str:
    """The address the agent itself has until its next build (the last ten bytes of its id)."""
    (workspace,) = deployment.json("list", "-o", "json")
    (agent,) = [agent for r in workspace["latest_build"]["resources"] for agent in r.get("agents") or []]
    tail = agent["id"].replace("-", "")[12:]
    return "fd7a:115c:a1e0:" + ":".join(tail[at : at + 4] for at in range(0, 20, 4))


def test_ping_reaches_both_agent_addresses(phone: Phone) -> None:
    assert phone.ping(phone.address), phone.deployment.log_ends()
    assert phone.ping(agent_address(phone.deployment))


def test_echoes_larger_than_tunnel_mtu(phone: Phone) -> None:
    """In fragments both ways; what the agent cuts for the path to the server is cut again for the phone."""
    for address in (phone.address, agent_address(phone.deployment)):
        for size in (1240, 1400, 3000):
            assert phone.ping(address, size=size), (address, size)


def test_ssh_and_http(phone: Phone) -> None:
    for address in (phone.address, agent_address(phone.deployment)):
        done = phone.ssh(address, "echo here; exit 5")
        assert (done.returncode, done.stdout) == (5, b"here\n"), done.stderr
    page = phone.deployment.world.run("client", find_tool("curl"), "-gsS", "-m", "60", f"http://[{phone.address}]:4/")
    assert page.returncode == 0, page.stderr


@pytest.mark.parametrize("size", [SUITE_SIZE, pytest.param(SOAK_SIZE, marks=pytest.mark.soak)])
def test_a_copy_each_way(phone: Phone, size: int) -> None:
    data = os.urandom(size)
    wanted = hashlib.sha256(data).hexdigest().encode()
    up = phone.ssh(phone.address, "tee /tmp/copied-by-wireguard | sha256sum", data)
    assert up.stdout.split()[:1] == [wanted], up.stderr
    down = phone.ssh(phone.address, "cat /tmp/copied-by-wireguard; rm /tmp/copied-by-wireguard")
    assert hashlib.sha256(down.stdout).hexdigest().encode() == wanted


def test_list_tells_who_is_there(phone: Phone) -> None:
    assert phone.ping(phone.address)
    (shown,) = phone.deployment.json("wireguard", "list", "-o", "json")
    assert shown["name"] == "phone" and shown["status"] == "active" and shown["last_handshake_at"]
    assert shown["rx_bytes"] > 0 and [t["workspace_name"] for t in shown["targets"]] == [WORKSPACE]
    table = phone.deployment.coder("wireguard", "list", check=True)
    assert b"phone" in table.stdout and phone.address.encode() in table.stderr


def test_other_users_client_reaches_nothing(phone: Phone) -> None:
    deployment = phone.deployment
    new_person(deployment, "bob")
    bobs = add(deployment, "tablet", "--user", "bob", host="agent")
    assert bobs.made["client"]["targets"] == []
    with up(bobs):
        assert not bobs.ping(phone.address, patience=1)
        assert not bobs.ping(agent_address(deployment), patience=1)
        assert phone.ping(phone.address)


def test_removal_suspension_expiry_stop_traffic(phone: Phone) -> None:
    deployment = phone.deployment
    removed = add(deployment, "removed", "--workspace", WORKSPACE, "--expires", "1h", host="agent")
    assert f"AllowedIPs = {removed.address}/128" in removed.made["config"]
    with up(removed):
        assert removed.ping(removed.address)
        deployment.coder("wireguard", "remove", "removed", "-y", check=True)
        is_cut_off(removed, phone)
    eve = new_person(deployment, "eve")
    (workspace,) = deployment.json("list", "-o", "json")
    api(deployment, "PATCH", f"/api/v2/workspaces/{workspace['id']}/acl", {"user_roles": {eve: "use"}})
    eves = add(deployment, "eves", "--user", "eve", host="agent")
    with up(eves):
        assert eves.ping(phone.address)
        api(deployment, "PUT", f"/api/v2/users/{eve}/status/suspend")
        is_cut_off(eves, phone)
    brief = add(deployment, "brief", "--expires", "30s", host="agent")
    end = time.monotonic() + 30  # made before now, so over by then
    with up(brief):
        assert brief.ping(brief.address)
        time.sleep(max(0.0, end - time.monotonic()))
        is_cut_off(brief, phone)
    assert losses(deployment) == [("eves", "owner_suspended"), ("brief", "expired")]


def is_cut_off(device: Phone, other: Phone) -> None:
    # What is promised is a second; a test's machine may be busy with something else for longer.
    until = time.monotonic() + SOON
    while device.ping(other.address, patience=1):
        assert time.monotonic() < until, "still let through"
    assert other.ping(other.address)


@contextmanager
def up(device: Phone) -> Iterator[None]:
    device.up()
    try:
        yield
    finally:
        device.down()


def new_person(deployment: Deployment, name: str) -> str:
    (me,) = deployment.json("whoami", "-o", "json")
    body = {
        "email": f"{name}@example.com",
        "username": name,
        "password": PASSWORD,
        "login_type": "password",
        "organization_ids": me["organization_ids"],
    }
    return str(api(deployment, "POST", "/api/v2/users", body)["id"])


def losses(deployment: Deployment) -> list[tuple[str, str]]:
    """Who was cut off and why, as the audit log has it."""
    entries = api(deployment, "GET", "/api/v2/audit?limit=100&q=resource_type:api_key")["audit_logs"]
    return [
        (entry["resource_target"], entry["additional_fields"]["reason"])
        for entry in reversed(entries)
        if "reason" in entry["additional_fields"]
    ]


def test_speedtest_with_original_protocol(deployment: Deployment) -> None:
    capture = deployment.folder / "inner.pcap"
    done = deployment.coder(
        "speedtest", WORKSPACE, "-t", "300ms", "-o", "json", "--pcap-file", str(capture), check=True
    )
    overall = json.loads(done.stdout)["overall"]
    assert overall["start_time_seconds"] == 0 and overall["throughput_mbits"] > 0
    assert capture.stat().st_size > 10_000


def test_udp_ports_are_forwarded(deployment: Deployment) -> None:
    echo = (
        "import socket;s=socket.socket(2,2);s.bind(('127.0.0.1',5353))\n"
        "while 1:d,a=s.recvfrom(9999);s.sendto(d[::-1],a)"
    )
    ask = "import socket;s=socket.socket(10,2);s.settimeout(60);s.sendto(b'abc',('::1',7777));print(s.recv(9999))"
    deployment.world.spawn("agent", sys.executable, "-c", echo)
    deployment.wait(lambda: listens(deployment, "agent", 5353), SOON, "nothing echoes")
    log = deployment.folder / "forward.log"
    command = [*deployment.program(), "port-forward", WORKSPACE, "--udp", "7777:5353"]
    forward = deployment.world.spawn("client", *command, env=deployment.env("client"), log=str(log))
    deployment.wait(lambda: "Ready!" in log.read_text(), SOON, "the port was not forwarded")
    done = deployment.world.run("client", sys.executable, "-c", ask)
    deployment.kill(forward)
    assert done.stdout == b"b'cba'\n", done.stderr


def listens(deployment: Deployment, host: str, port: int) -> bool:
    """For datagrams."""
    return bool(deployment.world.run(host, "ss", "-Hlun", f"sport = :{port}").stdout.strip())


@pytest.mark.soak
@pytest.mark.skipif(not find_tool("gpg"), reason="not installed: gpg")
def test_workspace_signs_with_local_key(deployment: Deployment) -> None:
    home = deployment.folder / "keys"
    home.mkdir(mode=0o700)
    env = deployment.env("client") | {"GNUPGHOME": str(home)}
    made = deployment.world.run(
        "client",
        find_tool("gpg"),
        "--batch",
        "--passphrase",
        "",
        "--quick-gen-key",
        "<t@e.st>",
        "default",
        "default",
        env=env,
    )
    assert made.returncode == 0, made.stderr
    try:
        signing = "echo data | gpg --batch --clearsign -u t@e.st"
        done = deployment.world.run("client", *deployment.program(), "ssh", "-G", WORKSPACE, signing, env=env)
        assert b"BEGIN PGP SIGNATURE" in done.stdout, done.stderr
    finally:
        deployment.world.run("client", find_tool("gpgconf"), "--kill", "gpg-agent", env=env)


def api(deployment: Deployment, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    token = deployment.coder("login", "token", check=True).stdout.decode().strip()
    content = ["-H", "Content-Type: application/json", "-d", json.dumps(body)] if body is not None else []
    done = deployment.world.run(
        "client", find_tool("curl"), "-fsS", "-X", method, "-H", f"Coder-Session-Token: {token}", *content, URL + path
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout else None
