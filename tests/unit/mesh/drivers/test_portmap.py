"""Choice of the router, and an exchange with one over real sockets on loopback."""

from __future__ import annotations

import sys

import pytest
import trio
import trio.testing

from coder.mesh.core.wire import portmap as wire
from coder.mesh.drivers import portmap
from coder.mesh.drivers.portmap import PortMapper, is_hidden
from tests.kit.network.middleboxes import Router, serve_router

TABLE = """Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
wlan0	00000000	{slow}	0003	0	0	600	00000000	0	0	0
eth0	00000000	{fast}	0003	0	0	100	00000000	0	0	0
eth0	00000000	{reject}	0200	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	100	00FFFFFF	0	0	0
"""
OUTSIDE = "203.0.113.5"


def hex_address(ip: str) -> str:
    return f"{int.from_bytes(bytes(map(int, ip.split('.'))), sys.byteorder):08X}"


def test_gateway_from_best_default_route() -> None:
    table = TABLE.format(slow=hex_address("10.0.0.1"), fast=hex_address("192.168.1.1"), reject=hex_address("0.0.0.0"))
    assert portmap._best_gateway(table) == "192.168.1.1"
    assert portmap._best_gateway(TABLE.splitlines()[0]) == ""


def test_only_translating_router_is_asked() -> None:
    assert is_hidden("192.168.1.7", [(OUTSIDE, 5)])
    assert not is_hidden("192.168.1.7", [("127.0.0.1", 5)]), "seen from this machine"
    assert not is_hidden("192.168.1.7", [])
    assert not is_hidden("192.168.1.7", [("192.168.1.7", 5)]), "seen without translation"
    assert not is_hidden("8.8.4.4", [(OUTSIDE, 5)]), "public"
    assert not is_hidden("192.168.1.7", [("2001:db8::1", 5)]), "IPv6 has nothing to map"


async def test_port_mapped_moved_and_released(monkeypatch: pytest.MonkeyPatch) -> None:
    router = Router(OUTSIDE)
    changes: list[object] = []
    arrived = trio.Event()

    def on_change() -> None:
        nonlocal arrived
        changes.append(mapper.external)
        arrived.set()
        arrived = trio.Event()

    mapper = PortMapper(on_change, lambda: ("127.0.0.1", "192.168.1.7"))
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve_router, router, "127.0.0.1")
        monkeypatch.setattr(wire, "PORT", port)
        nursery.start_soon(mapper.run)
        mapper.look(41000, [])
        await trio.testing.wait_all_tasks_blocked()
        assert not router.asked, "no server has seen us yet"
        with trio.fail_after(60):
            mapper.look(41000, [(OUTSIDE, 5)])
            await arrived.wait()
            mapper.look(41000, [])  # a round without an answer changes nothing
            mapper.look(41007, [(OUTSIDE, 5)])
            while mapper.external != (OUTSIDE, 41007):
                await arrived.wait()
            mapper.look(41007, [("192.168.1.7", 41007)])  # another network: no router translates us there
            while mapper.external is not None or router.mappings:
                await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    assert changes[0] == (OUTSIDE, 41000)
    assert (mapper.speaks, mapper.was_asked) == ("PCP", False)
