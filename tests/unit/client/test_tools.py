"""Speed test, UDP forwarding, connection information, capture and trace, over a real pair of nodes in this process."""

from __future__ import annotations

import io
import json
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
import trio
import trio.testing

from coder.agent.network.forward import relay_datagrams
from coder.agent.network.speedtest import serve_speedtest
from coder.base.errors import CoderError
from coder.client.link import WorkspaceLink
from coder.client.network_info import Rates, write_network_info
from coder.client.udp_forward import forward_udp, open_udp
from coder.client.usage import usage_app
from coder.mesh.drivers.pcap import PcapWriter
from coder.mesh.node import PingResult
from coder.mesh.trace import Trace
from coder.tailnet.speedtest import run_speedtest
from tests.kit.network.overlay_pair import Pair, node_pair


@dataclass
class _KnownPeers:
    """Controller for the links of these tests."""

    pair: Pair

    def public_key_of(self, _peer: object) -> object:
        return self.pair.two.self_info.public_key

    async def wait_reachable(self, _peer: object) -> float:
        return await self.pair.one.wait_reachable(self.pair.addresses[1])


def link_of_pair(pair: Pair) -> WorkspaceLink:
    controller: Any = _KnownPeers(pair)
    return WorkspaceLink(pair.one, controller, uuid4(), cast("Any", pair.addresses[1]), {999: "Coder Embedded Relay"})


@pytest.mark.parametrize("direction", ["down", "up"])
async def test_speedtest_against_the_agent(direction: Any) -> None:
    with trio.fail_after(60):
        async with node_pair(direct=False) as pair, trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, serve_speedtest, [pair.two.tcp_listen(3)])
            *parts, total = await run_speedtest(await link_of_pair(pair).connect(3), direction, 0.2)
            assert total.size > 0 and total.mbits > 0 and total.start == 0
            assert sum(part.size for part in parts) == total.size
            nursery.cancel_scope.cancel()


async def test_speedtest_rejection_reason() -> None:
    client_end, server_end = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:

        async def refuse() -> None:
            request = json.loads(await server_end.receive_some(4096))
            assert request == {"version": 2, "time": 5_000_000_000, "direction": 0}
            await server_end.send_all(b'{"error":"not today"}\n')

        nursery.start_soon(refuse)
        with pytest.raises(CoderError, match="not today"):
            await run_speedtest(client_end, "down", 5)


async def test_silent_speedtest_ends(autojump_clock: trio.testing.MockClock) -> None:
    client_end, _server_end = trio.testing.memory_stream_pair()
    with pytest.raises(CoderError, match="did not answer in time"):
        await run_speedtest(client_end, "down", 5)


async def test_udp_forward_separates_senders() -> None:
    with trio.fail_after(60):
        with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo:
            await echo.bind(("127.0.0.1", 0))
            port = echo.getsockname()[1]

            async def answer() -> None:
                while True:
                    payload, source = await echo.recvfrom(65_535)
                    await echo.sendto(payload[::-1], source)

            async with node_pair(direct=False) as pair, trio.open_nursery() as nursery:
                pair.two.set_udp_forward(relay_datagrams)
                nursery.start_soon(answer)
                local = open_udp("127.0.0.1", 0)
                sender_address = local.getsockname()
                nursery.start_soon(forward_udp, link_of_pair(pair), local, port)
                for text in (b"abc", b"x" * 3000):
                    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as person:
                        await person.sendto(text, sender_address)
                        assert await person.recv(65_535) == text[::-1]
                nursery.cancel_scope.cancel()


async def test_network_info_fields(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with node_pair(direct=False) as pair, trio.open_nursery() as nursery:
            nursery.start_soon(write_network_info, link_of_pair(pair), str(tmp_path / "new"), 1.0)
            path = tmp_path / "new" / f"{os.getppid()}.json"
            while not path.exists():
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
    info = json.loads(path.read_text())
    assert info["p2p"] is False and info["using_coder_connect"] is False
    assert info["preferred_derp"] == "Coder Embedded Relay" and "Coder Embedded Relay" in info["derp_latency"]
    assert isinstance(info["latency"], float) and info["latency"] > 0
    assert all(isinstance(info[name], int) for name in ("upload_bytes_sec", "download_bytes_sec"))
    assert list(tmp_path.glob("new/.*")) == []


def test_rates_per_second() -> None:
    rates = Rates(10.0)
    assert rates.since_last(1000, 500, 12.0) == (500, 250)
    assert rates.since_last(1000, 800, 13.0) == (0, 300)
    assert rates.since_last(1000, 900, 13.0) == (0, 0)


def test_usage_app_of_session() -> None:
    assert [usage_app(text) for text in ("", "vscode", "disable", "emacs")] == ["ssh", "vscode", "", "ssh"]


async def test_trace_reports_path() -> None:
    trace = Trace()
    with trio.fail_after(60):
        async with node_pair(trace=trace) as pair:
            await pair.one.wait_reachable(pair.addresses[1])
            fact = await trace.wait("path", peer=pair.two.self_info.public_key.hex(), state="direct")
    assert fact.fields["to"]
    assert trace.names().index("handshake") < len(trace.events)
    assert trace.find("path", state="on the moon") is None


async def test_capture_has_both_directions() -> None:
    file = io.BytesIO()
    with trio.fail_after(60):
        async with node_pair(direct=False) as pair:
            pair.one.endpoint.tap = PcapWriter(file, lambda: 1_700_000_000.25)
            await pair.one.wait_reachable(pair.addresses[1])
    data = file.getvalue()
    assert struct.unpack_from("!IHHiIII", data) == (0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101)
    packets, at = [], 24
    while at < len(data):
        seconds, micros, size, total = struct.unpack_from("!IIII", data, at)
        assert (seconds, micros, total) == (1_700_000_000, 250_000, size)
        packets.append(data[at + 16 : at + 16 + size])
        at += 16 + size
    first, two = (address.packed for address in pair.addresses)
    assert {(packet[8:24], packet[24:40]) for packet in packets} == {(first, two), (two, first)}
    assert all(len(packet) == 40 + int.from_bytes(packet[4:6], "big") for packet in packets)


async def test_lost_ping_keeps_file(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    class Silent:
        node: Any = None
        pings = 0

        async def wait_reachable(self) -> None:
            await trio.lowlevel.checkpoint()

        async def ping(self) -> PingResult:
            self.pings += 1
            raise CoderError("ping", "no answer")

    silent = Silent()
    with trio.move_on_after(0.05):
        await write_network_info(cast("Any", silent), str(tmp_path), 0.01)
    assert silent.pings > 1 and list(tmp_path.iterdir()) == []
