"""`coder wireguard add`: the printed configuration, and the checks before a client is created."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from wireguard_tools import WireguardConfig

from coder.coderd.services.wireguard.wireguard_service import gateway_of
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply


async def add(world: World, home: Path, name: str, *flags: str) -> Result:
    env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}
    return await run_cli(["wireguard", "add", name, "--no-qr", *flags], home=home, env=env)


async def names(world: World) -> list[str]:
    return [item["name"] for item in (await world.get("/api/v2/users/me/wireguard-clients")).json()]


async def test_wg_quick_configuration(tmp_path: Path) -> None:
    endpoint = "[2001:db8::1]:51820"
    async with running_coderd(first_user=True, wireguard_address="127.0.0.1:0", wireguard_endpoint=endpoint) as world:
        done = await add(world, tmp_path, "phone")
        assert done.code == 0, done.stderr
        assert f"\nEndpoint = {endpoint}\n" in done.stdout
        (client,) = (await world.get("/api/v2/users/me/wireguard-clients")).json()
        server = (await world.get("/api/v2/wireguard")).json()
        read = WireguardConfig.from_wgconfig(StringIO(done.stdout))
        assert read.private_key is not None and str(read.private_key.public_key()) == client["public_key"]
        assert [str(address) for address in read.addresses] == [client["address"] + "/128"] and read.mtu == 1280
        (peer,) = read.peers.values()
        assert str(peer.public_key) == server["public_key"] and peer.persistent_keepalive == 25
        assert [str(network) for network in peer.allowed_ips] == server["allowed_ips"]


async def test_unwritable_configuration_creates_no_client(tmp_path: Path) -> None:
    async with running_coderd(first_user=True, wireguard_address="127.0.0.1:0") as world:
        gateway = gateway_of(world.ctx)
        assert gateway is not None
        gateway.endpoint = "vpn.example.com"
        done = await add(world, tmp_path, "phone")
        assert done.code == 1 and "no client was added" in done.stderr and "it has no port" in done.stderr
        assert await names(world) == []
        gateway.endpoint = "vpn.example.com:51820"
        assert (await add(world, tmp_path, "phone")).code == 0
        assert await names(world) == ["phone"]


async def test_disabled_server_error(tmp_path: Path) -> None:
    async with running_coderd(first_user=True) as world:
        done = await add(world, tmp_path, "phone")
        assert done.code == 1 and "serves no plain WireGuard clients" in done.stderr


IDENT = "6f2d9a5e-5b0a-4c3e-9f3a-0d7b8d7c1a10"
KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


@pytest.mark.parametrize(
    "change",
    [
        {"client": {"name": "x\nPostUp = touch /tmp/x"}},
        {"client": {"username": "x\rPostUp = x"}},
        {"client": {"address": "fd7a::1\nPostUp = x"}},
        {"server": {"allowed_ips": ["fd7a::/48\nPostUp = x"]}},
        {"target": {"agent_name": "x\u2028PostUp = x"}},
        {"target": {"address": "fd7a::2\nPostUp = x"}},
    ],
)
async def test_lines_of_server_are_rejected(change: dict[str, dict[str, object]], tmp_path: Path) -> None:
    """wg-quick runs PostUp as root."""
    enabled = {"enabled": True, "endpoint": "127.0.0.1:1", "public_key": KEY, "mtu": 1280, "persistent_keepalive": 25}
    server = {**enabled, "allowed_ips": ["fd7a::/48"], **change.get("server", {})}
    ids = {"workspace_id": IDENT, "agent_id": IDENT, "workspace_name": "w", "owner_name": "o", "agent_name": "a"}
    target = {**ids, "address": "fd7a::2", **change.get("target", {})}
    created = {
        "id": IDENT,
        "user_id": IDENT,
        "username": "u",
        "name": "phone",
        "public_key": KEY,
        "address": "fd7a::1",
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": None,
        "workspace_ids": None,
        "status": "active",
        "last_handshake_at": None,
        "endpoint": "",
        "rx_bytes": 0,
        "tx_bytes": 0,
        "targets": [target],
        **change.get("client", {}),
    }
    with odd_server() as odd:
        odd.answer = lambda method, _path: reply(
            json.dumps(server if method == "GET" else {"client": created, "server": server})
        )
        env = {"CODER_URL": odd.url, "CODER_SESSION_TOKEN": "x"}
        words = ["wireguard", "add", "phone", "--no-qr", "--file", str(tmp_path / "wg.conf")]
        done = await run_cli(words, home=tmp_path, env=env)
    assert done.code == 1 and "control characters" in done.stderr, done.stderr
    assert not (tmp_path / "wg.conf").exists()
