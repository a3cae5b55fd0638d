"""`coder wireguard add`: the printed configuration, and the checks before a client is created."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from wireguard_tools import WireguardConfig

from coder.coderd.services.wireguard.wireguard_service import gateway_of
from tests.kit.programs.command_line import Result, run_cli
from tests.kit.server.server_in_process import World, running_coderd


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
