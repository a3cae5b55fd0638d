"""Two nodes in namespaces behind a router that also is the relay: direct by UDP, relayed when the router stops
forwarding, direct again, and not a byte of a running transfer lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import trio

from tests.kit.network import network_namespaces
from tests.kit.network.overlay_process_client import OverlayProcess, introduce, mesh_process, moved, until_direct

PATIENCE = 60
"""Seconds any wait may take on a busy machine. How soon a path is left is asked of a simulated clock
(tests/unit/mesh/core/test_endpoint.py), how soon a person sees it of `scripts/bench mesh`."""

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not network_namespaces.available(), reason="needs root and ip netns"),
]


@asynccontextmanager
async def two_nodes(net: network_namespaces.Net, *options: str) -> AsyncIterator[tuple[OverlayProcess, OverlayProcess]]:
    for name in ("alice", "router", "bob"):
        net.add(name)
    net.cable("alice", "10.9.1.2/24", "router", "10.9.1.1/24")
    net.cable("bob", "10.9.2.2/24", "router", "10.9.2.1/24")
    net.route("alice", "10.9.1.1")
    net.route("bob", "10.9.2.1")
    net.forward("router", True)

    def inside(name: str) -> Callable[[Sequence[str]], list[str]]:
        return lambda command: net.command(name, *command)

    async with mesh_process(inside("router"), "relay", "0.0.0.0") as relay:
        port = str((await relay.wait(PATIENCE, lambda got: "port" in got))["port"])
        async with (
            mesh_process(inside("alice"), "node", "1", "10.9.1.1", port, "-1", *options) as alice,
            mesh_process(inside("bob"), "node", "2", "10.9.2.1", port, "-1", *options) as bob,
        ):
            await introduce(alice, bob)
            yield alice, bob


async def test_transfer_survives_lost_direct_path() -> None:
    with network_namespaces.open_net() as net:
        async with two_nodes(net) as (alice, bob):
            await bob.tell(serve=5000)
            await bob.wait(PATIENCE, lambda got: "serving" in got)
            await alice.tell(send=5000, to=2, rate=2_000_000)
            await alice.wait(PATIENCE, lambda got: got.get("path") == "direct")
            net.forward("router", False)
            before = bob.latest.get("received", 0)
            await bob.wait(PATIENCE, lambda got: moved(got, "received", before, 500_000))
            await alice.wait(PATIENCE, lambda got: got["path"] != "direct")
            await trio.sleep(3)
            net.forward("router", True)
            await until_direct(alice, PATIENCE)
            await alice.tell(enough=True)
            await bob.wait(PATIENCE, lambda got: "finished" in got)
            await alice.wait(PATIENCE, lambda got: "done" in got)
            assert bob.latest["finished"] == alice.latest["done"] > 1_000_000
            assert bob.latest["sha256"] == alice.latest["sha256"]


@pytest.mark.skipif(shutil.which("nft", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None, reason="no nft")
async def test_path_mtu_black_hole() -> None:
    """The router's cable to bob carries 1000 bytes from now on, and nobody is told: the classic black hole."""
    with network_namespaces.open_net() as net:
        async with two_nodes(net) as (alice, bob):
            await bob.tell(serve=5000)
            await bob.wait(PATIENCE, lambda got: "serving" in got)
            await alice.tell(send=5000, to=2, rate=4_000_000)
            await alice.wait(PATIENCE, lambda got: got.get("path") == "direct")
            await bob.wait(PATIENCE, lambda got: got.get("received", 0) > 1_000_000)
            silence = "add table ip t; add chain ip t o { type filter hook output priority 0; }"
            net.run("router", "nft", f"{silence}; add rule ip t o icmp type destination-unreachable drop")
            net.run("router", "ip", "link", "set", "dev", "bob", "mtu", "1000")
            net.run("bob", "ip", "link", "set", "dev", "router", "mtu", "1000")
            before = bob.latest["received"]
            await bob.wait(PATIENCE, lambda got: moved(got, "received", before, 500_000))
            await until_direct(alice, PATIENCE)  # its new width is looked for, and then it is used
            await alice.tell(enough=True)
            await bob.wait(PATIENCE, lambda got: "finished" in got)
            await alice.wait(PATIENCE, lambda got: "done" in got)
            assert bob.latest["sha256"] == alice.latest["sha256"]


async def test_relay_carries_everything_without_udp() -> None:
    with network_namespaces.open_net() as net:
        async with two_nodes(net, "nodirect") as (alice, bob):
            await bob.tell(serve=5000)
            await bob.wait(PATIENCE, lambda got: "serving" in got)
            await alice.tell(send=5000, to=2, bytes=4_000_000, rate=10_000_000)
            await bob.wait(PATIENCE, lambda got: "finished" in got)
            assert alice.latest["path"] == "relayed"
            assert alice.latest["info"]["endpoints"] == []
