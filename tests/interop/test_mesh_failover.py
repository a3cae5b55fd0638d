"""Two nodes in namespaces behind a router that also is the relay: direct by UDP, relayed when the router stops
forwarding, direct again, and not a byte of a running transfer lost."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import trio

from tests.kit import netns

pytestmark = [pytest.mark.system, pytest.mark.skipif(not netns.available(), reason="needs root and ip netns")]
ROOT = Path(__file__).resolve().parents[2]


class Process:
    """A node process: `latest` has the newest value of every field it reported."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self.latest: dict[str, Any] = {}
        self.changed = trio.lowlevel.ParkingLot()

    async def read(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        async for data in self.process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self.latest |= json.loads(line)
            self.changed.unpark_all()

    async def tell(self, **command: Any) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps(command).encode() + b"\n")

    async def wait(self, seconds: float, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        try:
            with trio.fail_after(seconds):
                while not condition(self.latest):
                    await self.changed.park()
        except trio.TooSlowError:
            raise AssertionError(f"not within {seconds} s: {self.latest}") from None
        return self.latest


@asynccontextmanager
async def process(net: netns.Net, where: str, *arguments: str) -> AsyncIterator[Process]:
    command = net.command(where, sys.executable, "-m", "tests.kit.mesh_process", *arguments)
    child = await trio.lowlevel.open_process(command, stdin=PIPE, stdout=PIPE, cwd=ROOT)
    running = Process(child)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(running.read)
        try:
            yield running
        finally:
            child.kill()
            await child.wait()
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def two_nodes(net: netns.Net, *options: str) -> AsyncIterator[tuple[Process, Process]]:
    for name in ("alice", "router", "bob"):
        net.add(name)
    net.cable("alice", "10.9.1.2/24", "router", "10.9.1.1/24")
    net.cable("bob", "10.9.2.2/24", "router", "10.9.2.1/24")
    net.route("alice", "10.9.1.1")
    net.route("bob", "10.9.2.1")
    net.forward("router", True)
    async with process(net, "router", "relay", "0.0.0.0") as relay:
        port = str((await relay.wait(10, lambda got: "port" in got))["port"])
        async with (
            process(net, "alice", "node", "1", "10.9.1.1", port, *options) as alice,
            process(net, "bob", "node", "2", "10.9.2.1", port, *options) as bob,
        ):
            for node in (alice, bob):
                await node.wait(10, lambda got: got.get("info"))
            await alice.tell(peer=bob.latest["info"])
            await bob.tell(peer=alice.latest["info"])
            yield alice, bob


def moved(latest: dict[str, Any], field: str, since: int, least: int = 200_000) -> bool:
    return bool(latest.get(field, 0) > since + least)


async def test_a_transfer_survives_the_death_and_return_of_its_direct_path() -> None:
    with netns.open_net() as net:
        async with two_nodes(net) as (alice, bob):
            await bob.tell(serve=5000)
            await trio.sleep(0.2)
            total = 40_000_000
            await alice.tell(send=5000, to=2, bytes=total, rate=2_000_000)
            await alice.wait(5, lambda got: got.get("path") == "direct")
            net.forward("router", False)
            died_at = trio.current_time()
            before = bob.latest.get("received", 0)
            await bob.wait(6, lambda got: moved(got, "received", before, 500_000))
            assert trio.current_time() - died_at < 5.5
            assert alice.latest["path"] != "direct"
            await trio.sleep(3)
            net.forward("router", True)
            await alice.wait(8, lambda got: got["path"] == "direct")
            await bob.wait(40, lambda got: "finished" in got)
            await alice.wait(5, lambda got: "done" in got)
            assert bob.latest["finished"] == alice.latest["done"] >= total
            assert bob.latest["sha256"] == alice.latest["sha256"]


async def test_without_udp_everything_takes_the_relay() -> None:
    with netns.open_net() as net:
        async with two_nodes(net, "nodirect") as (alice, bob):
            await bob.tell(serve=5000)
            await trio.sleep(0.2)
            await alice.tell(send=5000, to=2, bytes=4_000_000, rate=10_000_000)
            await bob.wait(10, lambda got: "finished" in got)
            assert alice.latest["path"] == "relayed"
            assert alice.latest["info"]["endpoints"] == []
